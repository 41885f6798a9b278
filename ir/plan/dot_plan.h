/* The plan of a matrix product by multiply-adds: both operands go through shared memory, some rows
 * along K at a time, and each thread reads what its accumulators need. Pure arithmetic; right for
 * every legal layout of the accumulator and the operands.
 *
 * A side is one operand: row k holds its elements at k, `row` cells for the coordinates (batch and
 * M, or batch and N) that the accumulator has. The cell of a coordinate is linear and follows the
 * accumulator's layout, so that what a thread reads of a row lies side by side. Byte address of
 * cell p in row k of a round:
 *
 *     scratch + base + (k mod rows) * row * bytes + (p ^ swizzle(k)) * bytes
 *
 * The swizzle lies inside of the row: it spares writes bank conflicts and costs reads nothing, as
 * all lanes read one k. Bits of k below log2(unroll), which a reader knows, may also turn the
 * elements of a vector around; of the others it is a multiple of a vector. A round: (after round 0:
 * barrier) all writes whose k is in it, barrier, the rows in order.
 *
 * Where the op's room is less than a row of both sides, as of products of thousands of batches,
 * rows go in parts: part p of a side has the cells p << part_bits and on, and a register of the
 * accumulator needs the same part in all threads. For each pair of parts that some register needs
 * there are all rounds then, for these registers.
 *
 * Numbers of (register, thread) are a constant of the register ^ a TlThreadMap. */
#ifndef TL_DOT_PLAN_H
#define TL_DOT_PLAN_H
#include "ir/ir.h"
#include "ir/plan/layout_convert.h"

typedef struct TlDotWrite {
    uint32_t cell, k; /* of regs[0] in thread 0 */
    int32_t *regs;     /* 1 << write_bits of the operand */
} TlDotWrite;

typedef struct TlDotSide {
    uint32_t row, base; /* cells, of a part; bytes */
    uint32_t nparts;
    int part_bits;
    int swizzle_bits;
    uint32_t swizzle[TL_LAYOUT_MAX_BITS]; /* by bit of k */
    /* writing */
    int write_bits;
    uint32_t nwrites;
    TlDotWrite *writes;
    TlThreadMap write_cell, write_k; /* the first with the swizzle of the second */
    uint32_t skip_lanes, skip_warps;
    bool checks_cell; /* the operand has coordinates past the accumulator's */
    /* reading */
    int vec_bits;
    uint32_t nvectors, *vectors; /* cells in thread 0 */
    bool checks_vector;          /* some may not have been written: read cell 0 where padding */
    int64_t *vector_reg;         /* a register of the accumulator that needs the vector */
    TlThreadMap read_cell;
    uint32_t *value_of; /* by register of the accumulator: vector << vec_bits | element */
} TlDotSide;

typedef struct TlDotPlan {
    TlDtype sum;                             /* what products and sums are in */
    uint32_t k, rows, nrounds, bytes, nregs; /* rows: a power of two unless there is one round */
    uint32_t unroll;                         /* rows that a loop takes at once; a power of two */
    int free_dim[2], k_dim[2];               /* of the operands */
    TlDotSide side[2];
} TlDotPlan;

TlDotPlan *tl_dot_plan(TlArena *arena, const TlOp *dot);
/* Does the register of the accumulator need these parts? Does some? */
bool tl_dot_reg_needs(const TlDotPlan *p, uint32_t reg, uint32_t a, uint32_t b);
bool tl_dot_needs(const TlDotPlan *p, uint32_t a, uint32_t b);
uint32_t tl_dot_swizzle(const TlDotSide *s, uint32_t k);
/* In what a DOT with this accumulator multiplies and adds. */
TlDtype tl_dot_sum_type(TlDtype acc);
#endif
