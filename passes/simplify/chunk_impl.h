/* What the files of chunk-rows share (chunk_rows.c says what the pass does).
 *
 * A group is the ops that must be cut together: tiles that are long along one axis, which
 * elementwise ops, accesses, reductions, scans and products connect. Each op of it has the axis
 * that is cut: of its result; of a reduction or scan, its operands'; of an access, the accessed
 * tile's. */
#ifndef TL_CHUNK_IMPL_H
#define TL_CHUNK_IMPL_H
#include "ir/ir.h"
#include "passes/pass.h"

enum { TL_CHUNK_MOST_LEVELS = 8 };

/* From which end a pass takes its chunks. */
enum { TL_CHUNK_FORWARD = 1, TL_CHUNK_BACKWARD = 2 };

typedef struct TlChunkOp {
    TlOp *op;
    int axis;
    int level;       /* how many reductions along the axis come before it, one behind the other */
    unsigned ways;   /* directions that it and the scans that it is computed from need */
    unsigned passes; /* bit k: it is computed in the k-th pass over the row */
} TlChunkOp;

typedef struct TlChunkGroup {
    TlFn *fn;
    TlArena *arena;
    TlBlock *block; /* where the loops go */
    int32_t extent; /* along the axis */
    TL_VEC(TlChunkOp) ops; /* in program order; those before `block` (pure) first */
    TlMap index;           /* op to its number in ops, + 1 */
    TlMap *loops;          /* that go over chunks: those made for this group are added */
    int npasses;
    unsigned backward; /* bit k: the k-th pass goes from the last chunk to the first */
    TL_VEC(TlOp *) between; /* ops of the block among them that are not of the group, in order, */
    TL_VEC(int) when;       /* and before which pass they come */
} TlChunkGroup;

/* ---- axes (chunk_find.c) ---- */
enum { TL_CHUNK_WHOLE = -1, TL_CHUNK_NOT = -2 };
/* The axis of operand i that is the op's `axis`. WHOLE: the operand is the same for all chunks.
 * NOT: the op cannot be cut there. */
int tl_chunk_operand_axis(const TlOp *op, uint32_t i, int axis);
/* The axis of the op's results that is the op's `axis`; WHOLE: they have it no more. */
int tl_chunk_result_axis(const TlOp *op, int axis);
/* Is it cheaper to make anew in each chunk than to keep: a constant, a count, one value for all? */
bool tl_chunk_is_made(const TlOp *op, int axis);
/* The op's place in the group; NULL: it is not of it. */
TlChunkOp *tl_chunk_member(const TlChunkGroup *g, const TlOp *op);
/* Finds the group of a tile, cut along an axis of it. False: some op cannot be cut. */
bool tl_chunk_find(TlChunkGroup *g, TlValue *tile, int axis);

/* Is there a way to cut the op along its axis? */
bool tl_chunk_can_cut(const TlOp *op, int axis);
/* The other way: the op's axis of which its results have `axis`; of which operand i has it. */
int tl_chunk_axis_of_result(const TlOp *op, int axis);
int tl_chunk_axis_of_operand(const TlOp *op, uint32_t i, int axis);

/* ---- one part (chunk_copy.c) ---- */
typedef struct TlChunkPart {
    TlChunkGroup *g;
    TlCtx *ctx;
    TlBuilder b;
    int32_t width; /* elements along the axis, from */
    TlValue *at;   /* (i32) on */
    TlMap map;     /* values of the group to those of this part */
    TlMap made;    /* others, by the axis that is cut */
} TlChunkPart;
/* A value in this part, `axis` being what is cut: as it is, if that is WHOLE; made anew, if it is
 * not of the group. */
TlValue *tl_chunk_value(TlChunkPart *c, TlValue *v, int axis);
/* The op on this part; its results are added to the map. */
TlOp *tl_chunk_copy(TlChunkPart *c, const TlChunkOp *m);
/* The tiles that a reduction or scan has in this part, in f32 if they are kept so between parts. */
void tl_chunk_operands(TlChunkPart *c, const TlChunkOp *m, TlValue **x);
bool tl_chunk_is_widened(const TlOp *op);
bool tl_chunk_is_by_region(const TlOp *op);
/* y = x combined with y, element by element; x comes first. */
void tl_chunk_combine(TlChunkPart *c, const TlOp *op, uint32_t n, TlValue **x, TlValue **y);
/* x -> the reduction or scan of it, as the op does it. first: what a scan begins with, if it
 * does. */
void tl_chunk_apply(TlChunkPart *c, const TlChunkOp *m, TlValue **x, TlValue *const *first);
TlValue *tl_chunk_broadcast(TlChunkPart *c, TlValue *v, const TlType *shape);
const TlType *tl_chunk_without_axis(const TlChunkPart *c, const TlType *t, int axis);
/* Erases the ops of the group, from the last in its order to the first, and what was made for them
 * only. */
void tl_chunk_erase(TlChunkGroup *g);

/* ---- totals (chunk_totals.c) ---- */
/* The tile that the reduction is the total of: of its reshape to one axis. NULL: it is something
 * else. */
TlValue *tl_chunk_total_of(const TlOp *op);
/* Reduces x axis by axis instead, in f32 where the reduction itself would be, so that there is one
 * rounding. The op goes. */
void tl_chunk_total_by_axes(TlOp *op, TlValue *x);

/* ---- shifted rows (chunk_shift.c) ---- */
/* Has a gather that shifts a loaded tile replaced with a load of its own. False: it stays. */
bool tl_chunk_read_shifted(TlOp *gather);

/* ---- passes over the row (chunk_order.c) ---- */
/* The direction in which the op carries something from chunk to chunk; 0: any, as a reduction,
 * whose combination is commutative. */
unsigned tl_chunk_way(const TlOp *op, int axis);
/* Which op is computed in which pass. False: memory would not hold the same, or an op needs both
 * directions at once. */
bool tl_chunk_order(TlChunkGroup *g);

/* ---- the loops (chunk_emit.c) ---- */
/* chunk: elements along the axis. */
void tl_chunk_emit(TlChunkGroup *g, int32_t chunk);
#endif
