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
