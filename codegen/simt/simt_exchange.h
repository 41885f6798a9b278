/* What the lowerings of convert, reduce, scan and dot share: addresses in shared memory that are
 * linear in the thread, and combining partial results of several operands. */
#ifndef TL_SIMT_EXCHANGE_H
#define TL_SIMT_EXCHANGE_H
#include "codegen/simt/simt.h"
#include "ir/plan/shared_slots.h"

/* ---- numbers that are linear in the thread ---- */
/* thread ^ c for constants c; bits: those that it may have. */
typedef struct TlSimtLinear {
    LLVMValueRef thread; /* i32 */
    uint32_t bits;
} TlSimtLinear;
TlSimtLinear tl_simt_linear(TlSimt *g, const TlThreadMap *m, int lane_bits, int warp_bits,
                            uint32_t scale);
/* base + (thread ^ c): a constant is added where that is the same. */
LLVMValueRef tl_simt_linear_at(TlSimt *g, const TlSimtLinear *x, uint32_t c, uint32_t base);
/* i1: (thread ^ c) < limit; NULL: always. */
LLVMValueRef tl_simt_linear_below(TlSimt *g, const TlSimtLinear *x, uint32_t c, uint32_t limit);
/* i1: does the thread have none of these bits, or of lanes those of `last` alone? NULL: always. */
LLVMValueRef tl_simt_without(TlSimt *g, uint32_t lanes, uint32_t last, uint32_t warps);
/* Bit `bit` of an i32 as an i1. */
LLVMValueRef tl_simt_bit(TlSimt *g, LLVMValueRef x, int bit);
/* Offset of the op's scratch; it must have some. */
uint32_t tl_simt_scratch(const TlOp *op);

/* ---- partial results ---- */
typedef struct TlSimtCombiner {
    TlSimt *g;
    const TlOp *op;
    uint32_t n; /* operands */
    bool user;
    const TlDtype *work;
    TlType *types; /* scalars of the work types */
} TlSimtCombiner;
/* One value per operand. `has`: is there a value, i1; NULL: yes. */
typedef struct TlSimtPartial {
    LLVMValueRef *v, has;
} TlSimtPartial;
TlSimtCombiner tl_simt_combiner(TlSimt *g, const TlOp *op, const TlDtype *work);
/* Register `reg` of all operands, in the work types. */
TlSimtPartial tl_simt_partial(const TlSimtCombiner *c, int64_t reg);
/* To the type of result i. */
LLVMValueRef tl_simt_narrow(const TlSimtCombiner *c, uint32_t i, LLVMValueRef x);
/* a combined with b; where one has no value the other. */
TlSimtPartial tl_simt_join(const TlSimtCombiner *c, TlSimtPartial a, TlSimtPartial b);
/* Values of a where `cond`, else of b; `has` stays open (NULL). */
TlSimtPartial tl_simt_choose(const TlSimtCombiner *c, LLVMValueRef cond, TlSimtPartial a,
                             TlSimtPartial b);
/* What lane ^ mask has. */
TlSimtPartial tl_simt_partner(const TlSimtCombiner *c, TlSimtPartial x, uint32_t mask);
/* What the last lane of the n lanes before has; of lane `lane`. */
TlSimtPartial tl_simt_before(const TlSimtCombiner *c, TlSimtPartial x, uint32_t n);
TlSimtPartial tl_simt_of_lane(const TlSimtCombiner *c, TlSimtPartial x, LLVMValueRef lane);
/* What the lane n before has, in groups of `lanes`; `has` says whether there is one. */
TlSimtPartial tl_simt_shifted(const TlSimtCombiner *c, TlSimtPartial x, int n, uint32_t lanes);
/* Each of n partials, the registers from `first` on in the slots' plan, goes to its slot of a round
 * of their own; operand i's are at scratch + at[i]. */
void tl_simt_write_slots(const TlSimtCombiner *c, const TlSharedSlots *s, const uint32_t *at,
                         uint32_t first, uint32_t n, const TlSimtPartial *x);
/* The classes that are wanted (NULL: all) of registers k .. k + (1 << vec_bits) - 1; class c of the
 * register k + e is [c << vec_bits | e]. */
TlSimtPartial *tl_simt_read_slots(const TlSimtCombiner *c, const TlSharedSlots *s,
                                  const uint32_t *at, uint32_t k, int class_bits,
                                  const bool *wanted);
#endif
