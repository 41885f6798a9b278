/* What layouts cost: the only cost model of the passes that choose them. The unit is one simple
 * instruction of one warp; a wavefront of shared memory costs what the machine says, a sector of
 * global memory a few. */
#ifndef TL_LAYOUT_COST_H
#define TL_LAYOUT_COST_H
#include "passes/analysis/axis_info.h"
#include "passes/pass.h"

typedef struct TlLayoutCost {
    TlCtx *ctx;
    TlArena *arena;
    TlMap accesses; /* memory op to its TlAccessInfo */
    int wavefront;  /* of the machine */
    bool copies;    /* the machine copies to shared memory asynchronously */
} TlLayoutCost;

/* For conversions alone. */
TlLayoutCost tl_layout_costs(TlPassCtx *px);
/* Looks at all memory ops of fn, before the pass changes anything. */
void tl_layout_cost_init(TlLayoutCost *c, const TlFn *fn, TlPassCtx *px);
/* What a memory op does when its layout is l: at best, that is when rows begin at sectors. */
typedef struct TlAccessCount {
    int vector;          /* registers that move together */
    int64_t accesses;    /* of a thread */
    int64_t sectors;     /* of 32 bytes, to which the lanes of a warp go in one access; */
    int64_t all_sectors; /* in all of them, each counted once */
    int64_t lines;       /* of 128 bytes, to which the lanes of a warp go in one access */
} TlAccessCount;
TlAccessCount tl_layout_access_count(const TlAccessInfo *info, const TlOp *op, const TlLayout *l);
/* How often the body of a loop runs when the loop does, roughly. */
int64_t tl_layout_trips(const TlOp *loop);
/* How often a block runs when the kernel runs once, roughly. */
int64_t tl_layout_frequency(const TlBlock *b);
/* Running the op once when its layout (tl_op_layout; of a reduction: of its operands) is l. */
int64_t tl_layout_op_cost(TlLayoutCost *c, const TlOp *op, const TlLayout *l);
/* Taking a tile (t's own layout does not matter) from one layout to another once. */
int64_t tl_layout_convert_cost(TlLayoutCost *c, const TlType *t, const TlLayout *from,
                               const TlLayout *to);
/* The same of what a load brings for a loop's products: through a buffer, ahead of them, so that
 * nobody waits and one barrier serves all. Asynchronous copies fill it without the threads. false:
 * words are put together from narrower loads, as they are without a buffer. */
bool tl_layout_staged_cost(const TlLayoutCost *c, const TlOp *load, const TlLayout *from,
                           const TlLayout *to, int64_t *out);
#endif
