/* The reference interpreter: what tile IR means, on logical tiles. The oracle of every other way to
 * run a kernel. Explicit frames, no C recursion over regions. The same evaluators fold constants in
 * passes. */
#ifndef TL_INTERP_H
#define TL_INTERP_H
#include "ir/ir.h"

/* A value at run time: n elements, densely packed, dtype-sized (bool and packed types one byte
 * each); pointers are 8-byte addresses plus the argument they came from (see interp.c); views are
 * TlInterpView. */
typedef struct TlTileData {
    const TlType *type;
    void *data;
} TlTileData;

/* A run-time argument, in the order of the kernel's parameters. */
typedef struct TlInterpArg {
    void *address;               /* views and pointers */
    /* memory behind address; UINT64_MAX when unknown (no bounds check) */
    uint64_t bytes;
    /* one byte per byte of memory, nonzero = initialised; NULL = all initialised */
    uint8_t *shadow;
    uint64_t scalar;             /* scalars: the element's bits */
    int64_t extent[TL_MAX_VIEW_RANK], stride[TL_MAX_VIEW_RANK]; /* views; strides in elements */
} TlInterpArg;

typedef enum TlInterpFailKind {
    TL_FAIL_ASSERT,
    TL_FAIL_BOUNDS,
    TL_FAIL_ASSUME,
    TL_FAIL_UNINIT,
    TL_FAIL_ASYNC /* of a copy that is still on its way */
} TlInterpFailKind;

typedef struct TlInterpHooks {
    void *user;
    void (*print)(void *user, const int32_t *pid, const char *text, TlTileData value);
    /* Called on each failed assert / check; the program goes on (loads read 0, stores are
     * dropped). */
    void (*fail)(void *user, const int32_t *pid, TlInterpFailKind kind, TlLoc loc,
                 const char *text);
    bool (*stop)(void *user); /* polled now and then; true ends the run. May be NULL */
} TlInterpHooks;

typedef struct TlInterpOptions {
    bool check; /* bounds of raw pointers and unchecked accesses, uninitialised reads, assumes */
    TlInterpHooks hooks;
} TlInterpOptions;

/* Runs one program. `scratch` is reset to its entry state by the callee's caller (use one arena per
 * worker). fn must be verified. False when hooks.stop ended it. */
bool tl_interp_program(const TlFn *fn, const TlInterpArg *args, const int32_t pid[6],
                       const int32_t npid[6], const TlInterpOptions *options, TlArena *scratch);

/* Evaluates a pure op without regions, views or pointers on constant operands (n tiles of data)
 * into out (one per result, memory allocated in arena). False when the op is not foldable. The
 * folder's only evaluator. */
bool tl_interp_eval(const TlOp *op, const TlTileData *in, TlTileData *out, TlArena *arena);
#endif
