/* Shared by the files of the reference interpreter. Nobody else includes this.
 *
 *     interp.c          a program: frames, slots, dispatch, folding
 *     interp_control.c  for, while, if, terminators, assert, print
 *     interp_elem.c     arithmetic, element by element
 *     interp_ring.c     the same when floats are a ring
 *     interp_cast.c     value conversions
 *     interp_shape.c    iota, broadcast, reshape, trans
 *     interp_reduce.c   reduce, scan
 *     interp_dot.c      dot
 *     interp_memory.c   views, places, load, store, checks
 *     interp_atomic.c   atomics
 *     interp_staged.c   buffers of shared memory, copies
 *
 * Every op has one evaluator, TL_EVAL(ID). It gets its operands' data and, already allocated, its
 * results' data. */
#ifndef TL_INTERP_IMPL_H
#define TL_INTERP_IMPL_H
#include "ir/interp/interp.h"
#include "ir/numeric.h"
#include "ir/interp/ring_float.h"

__extension__ typedef __int128 TlWide;
__extension__ typedef unsigned __int128 TlUWide;

/* An element of a tile of pointers. The argument it came from goes with it through ptr_add, select
 * and loops, so that --check can say whether an access stays inside the array it was made for. */
typedef struct TlInterpPtr {
    uint64_t address;
    int32_t arg;     /* parameter index, -1 unknown */
    uint32_t nibble; /* packed types: 1 = the high half of the byte */
} TlInterpPtr;

/* Packed types: the element at element offset o (last stride 1, outer strides even: rows start on a
 * byte) is nibble (o & 1) of byte o / 2. */
typedef struct TlInterpView {
    TlInterpPtr origin; /* of element 0 */
    int64_t extent[TL_MAX_VIEW_RANK], stride[TL_MAX_VIEW_RANK];
    int64_t row; /* elements side by side of the last axis' rows, which lie a stride apart; or 0 */
} TlInterpView;

/* The memory of one value. `spare` lets loop-carried values be swapped without copying twice. */
typedef struct TlSlot {
    void *data, *spare;
    size_t size, spare_size;
} TlSlot;

/* A reduction or scan whose combiner has control flow, one scalar pair at a time. */
typedef struct TlCombineState {
    int64_t extent, lanes; /* the axis, all other elements */
    int64_t k, lane;       /* the pair in progress: row k with what came before */
} TlCombineState;

typedef struct TlFrame {
    const TlOp *owner; /* NULL: the function's body */
    const TlBlock *block;
    const TlOp *next;
    uint64_t iv, step; /* for */
    TlUWide left;      /* for: iterations after this one */
    TlCombineState combine;
} TlFrame;

/* A copy that is on its way (interp_staged.c). */
typedef struct TlFlying {
    const TlOp *op;
    uint8_t *slot;
    const uint8_t *bar; /* bulk: the slot of the barrier that counts it */
    uint64_t group; /* how many commits came before it */
    int64_t n;
    size_t bytes; /* of an element */
    TlSlot from;  /* the address of each; 0: it becomes 0 */
} TlFlying;

/* A tile that is sent to memory: the slot is read when that is asked for, or at the end. */
typedef struct TlSending {
    const TlOp *op;
    const uint8_t *slot; /* NULL: it has been read, `data` has it */
    int64_t n;
    size_t bytes; /* of an element */
    TlSlot to;    /* the address of each; 0: it is dropped */
    TlSlot data;
} TlSending;

/* A product that is on its way. */
typedef struct TlProduct {
    const TlOp *op;
    const uint8_t *slot[4]; /* that it reads, of A, B, scales; NULL: none */
} TlProduct;

enum { TL_INTERP_TEMPS = 68 };

typedef TL_VEC(TlFrame) TlFrames;

typedef struct TlInterp {
    const TlFn *fn; /* NULL when folding */
    const TlInterpArg *args;
    const int32_t *pid, *npid;
    const TlInterpOptions *options;
    TlArena *arena;
    TlSlot *slots; /* by value id */
    TlFrames frames;
    TL_VEC(TlTileData) operands;
    TlSlot temps[TL_INTERP_TEMPS]; /* scratch of one evaluator, not kept between ops */
    uint64_t work;                 /* since hooks.stop was asked */
    TL_VEC(TlFlying) flying;       /* the first nflying are on their way, oldest first */
    uint32_t nflying;
    uint64_t commits;
    TL_VEC(TlProduct) products; /* on their way, oldest first */
    TL_VEC(TlSending) sending;  /* likewise: the first nsending */
    uint32_t nsending;
    /* ROLES: the frames of the two flows, of which one is in `frames`, and those around them */
    struct {
        bool is_open, is_over[2];
        int now, stuck; /* stuck: phases that nobody has completed, one after the other */
        TlFrames frames[2], outer;
    } roles;
} TlInterp;

typedef void TlEvaluator(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y);
#define OP(ID, ...) TlEvaluator tl_eval_##ID;
#include "ir/ops.def"
/* The head of an evaluator, which need not use all that it gets. */
#define TL_UNUSED __attribute__((unused))
#define TL_EVAL(ID)                                                                                \
    void tl_eval_##ID(TL_UNUSED TlInterp *in, TL_UNUSED const TlOp *op,                            \
                      TL_UNUSED const TlTileData *x, TL_UNUSED TlTileData *y)

/* ---- products (interp_dot.c) ---- */
/* With scales of blocks, x[3] and x[4]. */
void tl_interp_scaled_dot(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y);

/* ---- control (interp_control.c) ---- */
/* The flow waits for what the other one does: the op is tried again. False: the other cannot. */
bool tl_interp_wait(TlInterp *in, const TlOp *op);

/* ---- storage (interp.c) ---------------------------------------------------------------------- */
size_t tl_interp_elem_bytes(const TlType *t); /* of one element of a tile at run time */
size_t tl_interp_bytes(const TlType *t);
/* Contents are lost when it grows. */
void *tl_interp_reserve(TlInterp *in, TlSlot *slot, size_t bytes);
static inline void *tl_interp_temp(TlInterp *in, int i, size_t bytes)
{
    return tl_interp_reserve(in, &in->temps[i], bytes);
}
static inline TlSlot *tl_interp_slot(TlInterp *in, const TlValue *v)
{
    return &in->slots[v->id];
}
void *tl_interp_data(TlInterp *in, const TlValue *v); /* of a value that has been computed */
void tl_interp_fail(TlInterp *in, const TlOp *op, TlInterpFailKind kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* n scalars seen as a vector. */
TlTileData tl_interp_lanes(TlType *storage, const TlType *scalar, int64_t n, void *data);
TlEvaluator *tl_interp_evaluator(TlOpcode opcode);

/* ---- element kernels (interp_elem.c) ----
 * y[i] = a[i] op b[i]; y may be a or b; NULL when the type has no such op. This is the one table of
 * arithmetic. Callers name the type that tl_op_dtype gives: in the ring floats are integers. */
typedef void (*TlElemFn)(void *y, const void *a, const void *b, int64_t n);
TlElemFn tl_elem_fn(TlOpcode opcode, TlDtype d);
TlElemFn tl_ring_fn(TlOpcode opcode, TlDtype d); /* interp_ring.c; d: as tl_ring_dtype says */
TlElemFn tl_combine_fn(TlCombine kind, TlDtype d);
/* Converts n elements (interp_cast.c). */
void tl_elem_cast(TlDtype to, void *y, TlDtype from, const void *x, int64_t n, int round,
                  bool nosat);

/* ---- data movement (interp_shape.c) ---------------------------------------------------------- */
/* Copies a box row-major to y; strides of x in elements. */
void tl_elem_copy(void *y, const void *x, size_t bytes, int rank, const int32_t *shape,
                  const int64_t *stride);
void tl_elem_fill(void *y, const void *x, size_t bytes, int64_t n); /* n copies of one element */

/* ---- control (interp_control.c) -------------------------------------------------------------- */
void tl_frame_push(TlInterp *in, const TlOp *owner, const TlBlock *block);
void tl_frame_pop(TlInterp *in);
static inline TlFrame *tl_frame_top(TlInterp *in)
{
    return &in->frames.data[in->frames.len - 1];
}
void tl_combine_next(TlInterp *in, const TlOp *yield); /* interp_reduce.c */
void tl_interp_end_copies(TlInterp *in);               /* interp_staged.c */

/* ---- memory (interp_memory.c) ---------------------------------------------------------------- */
typedef struct TlAccess {
    TlPlace place;
    int64_t n;
    TlDtype dtype;
    size_t bytes; /* of an element in memory; packed types 1 */
    bool packed;
    const TlInterpPtr *pointers; /* pointer tiles: one each; NULL for views */
    TlInterpPtr origin; /* views: element 0, and where each element is, in elements from there */
    const uint64_t *offset;
    uint8_t *ok; /* the element is inside, and not masked off */
} TlAccess;
TlInterpPtr tl_access_at(const TlAccess *access, int64_t e);
/* Finds the elements of a memory op. verb: "load" etc. for messages. writes: shadow bytes become
 * initialised. */
void tl_access_find(TlInterp *in, const TlOp *op, const char *verb, bool reads, bool writes,
                    TlAccess *out);
const void *tl_access_operand(TlInterp *in, const TlValue *v, size_t bytes,
                              int64_t i); /* element i, or the only one */
#endif
