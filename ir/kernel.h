/* What a launch must know of a kernel instance: parameters, names of extents, launch-time
 * expressions, clauses. Made by the front end, carried by the function, written into the image
 * (tile_image.h) by codegen. */
#ifndef TL_KERNEL_H
#define TL_KERNEL_H
#include "ir/type.h"
#include "runtime/contract/tile_image.h"

typedef struct TlHostExpr {
    const char *text; /* as the user wrote it */
    TlLoc loc;
    bool is_float;
    TL_VEC(tile_hx_ins) code;
} TlHostExpr;

typedef struct TlDim {
    tile_dim_kind kind;
    bool is_i64;
    int64_t value; /* constant, symbol or expression index */
} TlDim;

typedef struct TlParam {
    const char *name;
    TlLoc loc;
    tile_param_kind kind;
    TlDtype dtype;
    bool is_const;
    uint8_t rank;
    const char *of; /* of a field "s.inner.n": the types of s and inner, "S.part"; else NULL */
    bool has_value; /* a field of a default: */
    uint64_t value;
    TlDim extent[TL_MAX_VIEW_RANK], stride[TL_MAX_VIEW_RANK];
} TlParam;

typedef struct TlSym {
    const char *name;
    uint32_t param, axis;
    bool is_stride;
} TlSym;

typedef struct TlConstBinding {
    const char *name, *value; /* "BM", "128"; "T", "f16"; "epi", "relu" */
} TlConstBinding;

typedef TL_VEC(tile_image_test) TlTests;

/* What a form of a kernel may assume of a launch (form.h). */
typedef struct TlPromise {
    TlTests units; /* POINTER, EXTENT, STRIDE, SCALAR: multiples of mask + 1 */
    bool near, grid;
    bool pairs; /* programs run in the kernel's clusters, none alone */
} TlPromise;

typedef struct TlKernelInfo {
    const char *doc; /* the /// text, or NULL */
    TL_VEC(TlParam) params; /* run-time parameters in order: argument i of the function's body */
    TL_VEC(TlSym) syms;
    TL_VEC(TlHostExpr) exprs;
    TL_VEC(TlConstBinding) consts; /* every compile-time parameter of this instance */
    TL_VEC(uint32_t) grid;      /* expression indices */
    int32_t group;              /* expression index, -1 none */
    TL_VEC(uint32_t) requires_, assumes;
    TL_VEC(tile_image_alias) aliases;
    int32_t warps, stages, maxreg; /* 0 = not said */
    int32_t cluster, cluster_axis; /* programs that follow each other along it; 0 = not said */
    bool persistent; /* fewer programs than the grid has may start; each does several parts */
    const char *warps_why; /* where more than 4 were chosen for the kernel; NULL; not printed */
    const char *stages_why; /* where fewer were chosen than the target has; NULL; not printed */
    const char *kept_why;   /* where the body says `kept`; NULL; not printed */
    const char *sparing_why; /* where the body says `sparing`; NULL; not printed */
    /* expression indices: what the choice of a configuration depends on */
    TL_VEC(uint32_t) keys;
    /* this instance is the tuned one of so many buckets: keys.len numbers for each */
    uint32_t ntuned;
    TL_VEC(int32_t) buckets;
    bool aligned; /* this is a form that rests on promises: */
    TlPromise promise;
    /* of such a form: what it asks of a launch's arguments (passes/analysis/variants.h); not
     * printed. Known from settle-variants until a pass changes the kernel */
    bool tests_known;
    TlTests tests;
} TlKernelInfo;
#endif
