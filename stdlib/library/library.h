/* library.h: what the functions of libtilekernels share: the tables as types, and the kernel that a
 * call runs.
 *
 * A call of a function is a kernel of kernels.def in an element type and a form, in the tile that
 * choices.def has for its sizes. Code is loaded when it is first asked for; after that, the way
 * from the call to the launch is a walk over a few rows and one load of a pointer. */
#ifndef TL_LIBRARY_H
#define TL_LIBRARY_H
#include <stdbool.h>
#include <tile_kernels.h>

typedef enum TlLibKernel {
#define KERNEL(name, file, module, kernel, forms) TL_LIB_##name,
#include "stdlib/library/kernels.def"
    TL_LIB_KERNELS
} TlLibKernel;

/* Kinds of devices: the columns of choices.def. */
typedef enum TlLibKind { TL_LIB_CPU, TL_LIB_REF, TL_LIB_GPU } TlLibKind;

/* An object file that tilec made. Each function's file has those of its kernels alone, so that a
 * program is linked with the functions that it calls. */
typedef struct TlLibImage {
    TlLibKernel kernel;
    TlLibKind kind;
    tile_dtype type;
    const unsigned char *image;
    const size_t *size;
} TlLibImage;

/* The lists of the files, which CMake writes (library.cmake), each with {.image = NULL} at its
 * end. */
#define SOURCE(name) extern const TlLibImage tl_lib_##name##_images[];
#include "stdlib/library/kernels.def"

/* What a call runs. */
typedef struct TlLibCall {
    const char *function; /* for messages */
    const TlLibImage *images;
    TlLibKernel kernel;
    tile_dtype type;
    int form, speed; /* speed: the column of TILE that counts */
    bool causal;     /* HEADS: queries see the keys up to their own */
    int64_t sizes[3]; /* those of choices.def */
    int64_t batch;    /* how often that is done */
} TlLibCall;

/* The kernel of a call, prepared. Thread-safe. */
tile_status tl_lib_kernel(tile_kernels *k, const TlLibCall *call, tile_kernel **out_kernel);
/* That kernel, launched. */
tile_status tl_lib_launch(tile_kernels *k, tile_stream *stream, const TlLibCall *call,
                          const tile_arg *args, size_t nargs);
/* Loads all kernels of the images. */
tile_status tl_lib_prepare(tile_kernels *k, const TlLibImage *images);

/* Do kernels of the device read and write memory of the process? */
bool tl_lib_has_host_memory(const tile_kernels *k);

/* Of the device. */
int tl_lib_processors(const tile_kernels *k);

/* Is there a row of choices.def for the call? */
bool tl_lib_fits(const tile_kernels *k, const TlLibCall *call);

/* ---- checks of arguments (check.c) ---- */

/* A matrix, or several, as stored. */
typedef struct TlLibMatrix {
    const char *name, *ld_name, *stride_name;
    const void *address;
    int64_t rows, columns, ld, stride;
} TlLibMatrix;

/* "FUNCTION: NAME is VALUE, but must be RULE" */
tile_status tl_lib_wrong(const char *function, const char *name, int64_t value, const char *rule);
/* From 0 to 2^31 - 1. */
tile_status tl_lib_check_extent(const char *function, const char *name, int64_t value);
/* The leading dimension holds a row, the whole is not larger than memory, and there is an address
 * if there is an element. */
tile_status tl_lib_check_matrix_fully(const char *function, const TlLibMatrix *m, int64_t batch);
static inline tile_status tl_lib_check_matrix(const char *function, const TlLibMatrix *m,
                                              int64_t batch)
{
    /* as almost always: numbers of 28 bits or less, which make no span that is too large */
    uint64_t all = (uint64_t)(batch | m->rows | m->columns | m->ld | m->stride);
    if (!(all >> 28) && m->ld >= m->columns && m->ld && m->address)
        return TILE_OK;
    return tl_lib_check_matrix_fully(function, m, batch);
}
/* x and y are the same matrix or apart. */
tile_status tl_lib_check_in_place(const char *function, const TlLibMatrix *x, const TlLibMatrix *y,
                                  tile_dtype type);
/* The bytes of a strided array, up to the last element's end, if the strides are not negative and
 * that is not larger than memory; else -1. */
int64_t tl_lib_span(const int64_t *extents, const int64_t *strides, int n, tile_dtype type);
/* A strided array: strides are not negative, the whole is not larger than memory, and there is an
 * address if there is an element. */
tile_status tl_lib_check_strided(const char *function, const char *name, const char *strides_name,
                                 const void *address, const int64_t *extents,
                                 const int64_t *strides, int n, tile_dtype type);
/* Do no two elements share a place? As far as nested axes go: false also for some odd layouts. */
bool tl_lib_is_apart(const int64_t *extents, const int64_t *strides, int n);
/* f32, f16 or bf16. */
tile_status tl_lib_check_float(const char *function, tile_dtype type);
/* f32 or f64. */
tile_status tl_lib_check_real(const char *function, tile_dtype type);
/* The first or the second of two; `of`: what the message says that it must be. */
tile_status tl_lib_check_choice(const char *function, const char *name, int value, const char *of);
/* An increment of BLAS: not 0. */
tile_status tl_lib_check_increment(const char *function, const char *name, int64_t value);

/* As tile_arg_view_strided and tile_bits, in place: only what a launch reads is written, for a
 * small call takes a tenth of its time to fill tile_args. */
static inline void tl_lib_put_view(tile_arg *to, const void *address, tile_dtype type, int rank,
                                   const int64_t *extents, const int64_t *strides)
{
    to->kind = TILE_ARG_VIEW;
    to->dtype = (int32_t)type;
    to->rank = rank;
    to->strided = 1;
    to->address = (void *)(uintptr_t)address;
    to->bytes = to->scalar = 0;
    for (int i = 0; i < rank; i++) {
        to->extent[i] = extents[i];
        to->stride[i] = strides[i];
    }
}

static inline void tl_lib_put_bits(tile_arg *to, tile_dtype type, uint64_t bits)
{
    to->kind = TILE_ARG_SCALAR;
    to->dtype = (int32_t)type;
    to->rank = to->strided = 0;
    to->address = NULL;
    to->bytes = 0;
    to->scalar = bits;
}

/* A vector of BLAS: n elements, from the last in memory on where the increment is negative. */
void tl_lib_put_vector(tile_arg *to, const void *address, tile_dtype type, int64_t n,
                       int64_t increment);
/* A number of f32 or f64. */
void tl_lib_put_factor(tile_arg *to, double x, tile_dtype type);

/* Rows i and on, columns j and on of a matrix, or of each of a batch. */
TlLibMatrix tl_lib_part(const TlLibMatrix *m, tile_dtype type, int64_t i, int64_t j, int64_t rows,
                        int64_t columns);

/* A batch of matrices. */
static inline void tl_lib_put_matrix(tile_arg *to, const TlLibMatrix *m, int64_t batch,
                                     tile_dtype type)
{
    const int64_t extents[] = {batch, m->rows, m->columns}, strides[] = {m->stride, m->ld, 1};
    tl_lib_put_view(to, m->address, type, 3, extents, strides);
}

/* One matrix. */
static inline void tl_lib_put_single(tile_arg *to, const TlLibMatrix *m, tile_dtype type)
{
    const int64_t extents[] = {m->rows, m->columns}, strides[] = {m->ld, 1};
    tl_lib_put_view(to, m->address, type, 2, extents, strides);
}

/* An array of any rank to 5, as stored; in dense ones the last axis is the fastest. */
typedef struct TlLibArray {
    const char *name, *strides_name; /* strides_name: the argument they come from; NULL: dense */
    const void *address;
    tile_dtype type;
    int rank;
    int64_t extents[5], strides[5];
} TlLibArray;

TlLibArray tl_lib_dense(const char *name, const void *address, tile_dtype type, int rank,
                        const int64_t *extents);
/* tl_lib_check_strided of each of n arrays. */
tile_status tl_lib_check_arrays(const char *function, const TlLibArray *arrays, int n);
tile_arg tl_lib_array_view(const TlLibArray *a);

typedef struct TlLibExtent {
    const char *name;
    int64_t value;
} TlLibExtent;

/* tl_lib_check_extent of each of n. */
tile_status tl_lib_check_extents(const char *function, const TlLibExtent *extents, int n);
/* What functions of f32 and f64 matrices take: A, and B if it has a name. The last one is written,
 * and its matrices of a batch do not overlap. */
tile_status tl_lib_check_matrices(const char *function, const tile_kernels *kernels,
                                  tile_dtype type, const TlLibExtent *extents, int n,
                                  const TlLibMatrix *a, const TlLibMatrix *b, int64_t batch);
/* An array of so many elements is there. */
tile_status tl_lib_check_given(const char *function, const char *name, const void *address,
                               int64_t elements);

/* The rows and columns of one matrix, as an argument. */
tile_arg tl_lib_matrix_view(const TlLibMatrix *m, tile_dtype type);

/* Sets the thread's error text and returns the status. */
__attribute__((format(printf, 2, 3))) tile_status tl_lib_fail(tile_status status,
                                                              const char *format, ...);
/* Copies an options struct of the caller, if there is one, over the defaults in *to. */
tile_status tl_lib_take(const char *function, const char *type, void *to, size_t size,
                        const void *from, size_t least);
#endif
