/* The plan of an inclusive scan of laid-out tiles; right for every legal layout. Pure arithmetic,
 * asked for bytes and carried out by the SIMT lowering.
 *
 * Element by element along the axis, "before" is what the scan meets first: lower coordinates, or
 * higher ones when reversed. The bits of the coordinate inside of a chunk are taken from the lowest
 * up. After bits 0 .. b - 1 a thread knows, of every register's block (the 1 << b coordinates that
 * differ in these bits), the total, and the prefix: what comes before the register in its block.
 *
 * 1. Bits below own_bits are registers in order: a cell is the 1 << own_bits registers
 *    cell ^ along[m], m going up the axis. They are scanned one after the other. Prefixes are kept
 *    per cell from here on.
 * 2. Steps, one bit or several each. The same total is kept once, for register rep[r]. A step by
 *    one bit gets the total of the sibling block from register r ^ reg of lane ^ lane. A step by
 *    shifts takes nbits bits at once, which are neighbouring bits of the lane and of nothing else:
 *    the totals so far come from `lane` lanes before, then from 2 * lane, and so on, after which
 *    the last lane met has the new one; then the prefixes, from `lane` lanes before. A step by
 *    classes takes nbits bits at once: totals of registers parts[i] are written to slot i, barrier,
 *    everybody reads all classes of each; in rounds of `each` of them (TlSharedRounds). Steps have
 *    scratch of their own, or, in_parts, the same, with a barrier between them.
 * 3. Repetitions along the axis follow one another in the thread.
 *
 * Coordinates are axis images: low axis_bits of `x`. */
#ifndef TL_SCAN_PLAN_H
#define TL_SCAN_PLAN_H
#include "ir/plan/reduce_plan.h"

/* Which lanes need the total after a step by shifts. */
typedef enum TlScanTotal {
    TL_SCAN_TOTAL_ALL,
    TL_SCAN_TOTAL_LAST, /* the last one met: it writes a slot */
    TL_SCAN_TOTAL_NONE
} TlScanTotal;

typedef struct TlScanStep {
    int bit, nbits; /* of the coordinate */
    uint32_t reg, lane;
    bool by_classes, by_shifts;
    TlScanTotal total;
    uint32_t *rep;           /* before the step, by register without repetitions */
    uint32_t nparts, *parts; /* by_classes; all repetitions */
    uint32_t each;
    TlSharedSlots slots;
    uint32_t *operand_at;
} TlScanStep;

typedef struct TlScanPlan {
    int axis, axis_bits, reg_bits; /* without repetitions */
    int32_t extent, reps;          /* along the axis */
    uint32_t rep_unit, nregs;      /* rep_unit: from one repetition along the axis to the next */
    TlImages x;
    int own_bits;
    uint32_t *along; /* 1 << own_bits */
    int nsteps;
    TlScanStep steps[TL_LAYOUT_MAX_BITS];
    uint32_t *cell; /* by register without repetitions */
    uint32_t *rep;  /* after all steps */
    bool in_parts;
    uint32_t bytes;
    TlDtype *work;
} TlScanPlan;

/* can: the machine has TL_LEAF_SHFL_SHIFT. The bytes do not depend on it. */
TlScanPlan *tl_scan_plan(TlArena *arena, const TlOp *scan, bool can);
/* Shuffles of one total in the step. */
uint32_t tl_scan_shuffles(const TlScanStep *step);
#endif
