/* In which order a product by matrix instructions executes them, and when it reads their operands.
 *
 * Steps of k are outermost, then blocks of rows, then blocks of columns.
 *
 * In bursts, every other row goes backward, so that the first instruction of a row takes the same
 * part of B as the last one of the row before. If a step of k has fewer words of A to keep for all
 * columns than of B for all rows, blocks of columns come before blocks of rows, in the same way:
 * what is in registers anyway costs nothing. The instructions are cut into bursts of equal length.
 * The late operands (late.h) that a burst is the first to need are read while the burst before is
 * computed; for the first burst, before it. */
#ifndef TL_MMA_ORDER_H
#define TL_MMA_ORDER_H
#include "ir/plan/mma.h"

/* The start of a block. */
typedef struct TlMmaBlock {
    int32_t batch, row, column;
} TlMmaBlock;

typedef TL_VEC(TlMmaBlock) TlMmaBlocks;

/* One instruction: acc[block] += A at [row, k] . B at [k, column]. */
typedef struct TlMmaIssue {
    uint32_t block; /* of `blocks` */
    int32_t k;
} TlMmaIssue;

typedef struct TlMmaOrder {
    const TlMma *mma;
    const TlOp *dot;
    const TlLayout *fragment[TL_MMA_OPERANDS]; /* NULL: of what the dot lacks */
    bool spread;        /* columns of blocks are an instruction's (tl_mma_spread) */
    TlMmaBlocks blocks; /* of the accumulator, that warp 0 has; the others have as many */
    TL_VEC(TlMmaIssue) issues;
} TlMmaOrder;

TlMmaOrder tl_mma_order(TlArena *arena, const TlOp *dot, bool in_bursts);
/* Of an operand, that an instruction takes; of scales: row of A or column of B, number of the block
 * along K. */
TlMmaBlock tl_mma_part(const TlMmaOrder *o, const TlMmaIssue *issue, int operand);
/* The register of thread 0 for an element of the block's fragment; -1: the tile has none. */
int64_t tl_mma_register(const TlMmaOrder *o, int operand, TlMmaBlock block, uint32_t element);
/* The most words of late operands that a thread holds at once, in bursts of so many. */
int64_t tl_mma_words(TlArena *arena, const TlMmaOrder *o, uint32_t burst);
#endif
