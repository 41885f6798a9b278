/* xla_ffi.h: what of XLA's foreign function interface the handler reads and calls (xla.c): the
 * layout of its structs, as of version 0.1 to 0.3. They only grow, and say their size. */
#ifndef TL_XLA_FFI_H
#define TL_XLA_FFI_H
#include <stddef.h>
#include <stdint.h>

enum { XLA_METADATA = 1, XLA_EXECUTE = 3, XLA_BUFFER = 1, XLA_ARRAY = 1, XLA_SCALAR = 3 };

typedef enum xla_type {
    XLA_PRED = 1,
    XLA_S8,
    XLA_S16,
    XLA_S32,
    XLA_S64,
    XLA_U8,
    XLA_U16,
    XLA_U32,
    XLA_U64,
    XLA_F16,
    XLA_F32,
    XLA_F64,
    XLA_BF16 = 16,
    XLA_F8E5M2 = 19,
    XLA_F8E4M3FN = 20,
    XLA_F8E5M2FNUZ = 24,
    XLA_F8E4M3FNUZ = 25,
    XLA_TYPES
} xla_type;

typedef enum xla_code {
    XLA_INVALID_ARGUMENT = 3,
    XLA_NOT_FOUND = 5,
    XLA_RESOURCE_EXHAUSTED = 8,
    XLA_INTERNAL = 13,
} xla_code;

typedef struct xla_extension {
    size_t struct_size;
    int32_t type;
    struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
    size_t struct_size;
    xla_extension *extensions;
    int32_t major, minor;
} xla_version;

typedef struct xla_metadata {
    size_t struct_size;
    xla_version version;
    uint32_t traits;
} xla_metadata;

typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_error_args {
    size_t struct_size;
    xla_extension *extensions;
    const char *message;
    int32_t code; /* xla_code */
} xla_error_args;

typedef struct xla_stream_args {
    size_t struct_size;
    xla_extension *extensions;
    void *context;
    void *stream; /* out: a CUstream, hipStream_t */
} xla_stream_args;

typedef struct xla_api {
    size_t struct_size;
    xla_extension *extensions;
    xla_version version;
    const void *internal;
    void *(*error_create)(xla_error_args *args);
    void *error_message, *error_destroy, *handler_register;
    void *(*stream_get)(xla_stream_args *args);
} xla_api;

typedef struct xla_buffer {
    size_t struct_size;
    xla_extension *extensions;
    int32_t type; /* xla_type, or another */
    void *data;
    int64_t rank;
    const int64_t *dims;
} xla_buffer;

typedef struct xla_scalar {
    int32_t type;
    const void *value;
} xla_scalar;

typedef struct xla_array {
    int32_t type;
    size_t size;
    const void *data;
} xla_array;

typedef struct xla_text {
    const char *data;
    size_t size;
} xla_text;

typedef struct xla_list {
    size_t struct_size;
    xla_extension *extensions;
    int64_t size;
    const int32_t *types;
    void *const *items;
} xla_list;

typedef struct xla_attributes {
    size_t struct_size;
    xla_extension *extensions;
    int64_t size;
    const int32_t *types;
    xla_text *const *names;
    void *const *items;
} xla_attributes;

typedef struct xla_frame {
    size_t struct_size;
    xla_extension *extensions;
    const xla_api *api;
    void *context;
    int32_t stage;
    xla_list operands, results;
    xla_attributes attributes;
} xla_frame;
#endif
