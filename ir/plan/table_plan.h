/* A tile as a table in shared memory: all elements in row-major order, so that every thread can
 * read any of them by its number. Pure arithmetic, used for the size of scratch and by the SIMT
 * lowering of gather, histogram and regroup.
 *
 * A table that is too big for the scratch goes through it in rounds: round i holds the elements
 * i * count .. i * count + count - 1. A round: (after round 0: barrier) all writes, barrier,
 * reads. */
#ifndef TL_TABLE_PLAN_H
#define TL_TABLE_PLAN_H
#include "ir/ir.h"

typedef struct TlTablePlan {
    uint32_t elems, count,
        nrounds;    /* of the tile; of a round; count is a power of two if nrounds > 1 */
    uint32_t bytes; /* of scratch */
    uint32_t elem_bytes;
    uint32_t weights, weight_bytes; /* of a histogram's second table: its offset; 0: none */
    int weight_vec_bits;
    /* of a histogram: elements of the table, and weights, that one access reads; it divides the
     * elements, so that none is read that was not written */
    uint32_t counted_at_once;
    bool adds;                    /* a histogram that does; then it has no table of weights, */
    uint32_t spare, spare_bytes;  /* but, at this offset, a word of each thread */
    uint32_t stride[TL_MAX_RANK]; /* elements */
    int vec_bits; /* registers r .. r + (1 << vec_bits) - 1 are neighbours, inside together, and in
                     one round: they are written at once, at a multiple of their size */
} TlTablePlan;

/* How a histogram goes: each bin counts its values in a table of them; or the bins are the table,
 * and each value adds 1, or its weight, to its bin, whoever else does so at the same time. Rounds
 * are then of bins: zeros, barrier, additions, barrier, reads. A value that is no bin of the round
 * adds to a word that nobody reads: a select, where a predicate would be a branch in NVIDIA's and
 * AMD's code. */
typedef struct TlHistogramWay {
    bool adds;
    int64_t counting, adding; /* cycles of a thread by each way, as layouts are priced */
    const char *why_not;      /* it cannot add; "" */
} TlHistogramWay;
/* `bins`: the layout of the result. Layouts of operands that are not chosen yet are NULL. */
TlHistogramWay tl_histogram_way(const TlOp *op, const TlLayout *bins);

/* The table of operand 0 of such an op; behind it that of a histogram's weights. Of a histogram
 * that adds: that of its bins. */
TlTablePlan tl_table_plan(const TlOp *op);
#endif
