/* Powers of two of which some are computed by sums and products, two f32 at a time (spread-exp2),
 * the others by the GPU's instruction. They are spread over the thread's registers, so that both
 * units have something to do at any time. */
#include "codegen/simt/simt.h"
#include "ir/exp_form.h"

static LLVMValueRef extreme(TlSimt *g, tl_leaf leaf, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef args[] = {LLVMBuildBitCast(g->b, x, g->i32, ""),
                           LLVMBuildBitCast(g->b, y, g->i32, "")};
    return LLVMBuildBitCast(g->b, tl_simt_leaf(g, leaf, 2, args), g->f32, "");
}

/* x cut to what tl_gen_exp2_flushed takes. */
static LLVMValueRef cut(TlSimt *g, LLVMValueRef x)
{
    x = extreme(g, TL_LEAF_MAX, x, LLVMConstReal(g->f32, TL_EXP2_LEAST));
    return extreme(g, TL_LEAF_MIN, x, LLVMConstReal(g->f32, TL_EXP2_MOST));
}

/* NaN comes in at the end: no x is greater than 2^x. */
static void by_arithmetic(TlSimt *g, LLVMValueRef *x, LLVMValueRef *out)
{
    LLVMValueRef both = LLVMGetPoison(LLVMVectorType(g->f32, 2));
    for (uint32_t i = 0; i < 2; i++)
        both = LLVMBuildInsertElement(g->b, both, cut(g, x[i]), tl_simt_i32(g, i), "");
    both = tl_gen_exp2_flushed(&g->gen, both);
    for (uint32_t i = 0; i < 2; i++)
        out[i] = extreme(g, TL_LEAF_MAX_NAN,
                         LLVMBuildExtractElement(g->b, both, tl_simt_i32(g, i), ""), x[i]);
}

bool tl_simt_spread_exp2(TlSimt *g, const TlOp *op)
{
    int64_t spread = op->opcode == TL_OP_EXP2 ? tl_attr_int(op, TL_ATTR_SPREAD, 0) : 0, sum = 0;
    if (!spread || g->fn->ring)
        return false;
    LLVMValueRef *x = tl_simt_regs(g, tl_in(op, 0)), *out = tl_simt_define(g, op->out[0]);
    int64_t n = tl_simt_count(op->out[0]);
    TL_ASSERT(n % 2 == 0 && spread <= TL_SPREAD_PAIRS, "%lld of %lld registers", (long long)spread,
              (long long)n);
    for (int64_t r = 0; r < n; r += 2) {
        sum += spread;
        if (sum >= TL_SPREAD_PAIRS)
            by_arithmetic(g, x + r, out + r);
        else
            for (int64_t k = r; k < r + 2; k++)
                out[k] = tl_gen_elementwise(&g->gen, op, x + k);
        sum %= TL_SPREAD_PAIRS;
    }
    return true;
}
