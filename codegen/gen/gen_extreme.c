/* The larger or smaller of two floats: NaN loses, -0 < +0. No instruction of x86 does just that, so
 * what the operands may be (passes/analysis/float_kinds.h) decides what is asked of them.
 *
 *   1. one comparison  x86's max gives its second operand where that equals the first one or one
 *                      of them is NaN: right where that is no NaN, and no zero of the wrong sign
 *   2. vrange          right but for a signaling NaN, which it quiets: where an operand may be one,
 *                      only the lanes in which it is no NaN at all
 *   3. by bits         the extreme in both orders, whose bits joined settle equal zeros */
#include "codegen/gen/gen_impl.h"
#include "passes/analysis/float_kinds.h"

typedef struct Extreme {
    TlGen *g;
    bool max;
    LLVMValueRef a, b;
    TlFloatKinds of_a, of_b;
} Extreme;

static LLVMValueRef is_number(TlGen *g, LLVMValueRef x)
{
    return LLVMBuildFCmp(g->b, LLVMRealORD, x, x, "");
}

/* An f32, of which LLVM does not see that it was a half. LLVM (22.1, too) cannot select fences of
 * what all lanes of an AMD GPU share; there halves have instructions of their own. */
static LLVMValueRef fenced(TlGen *g, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    if (tl_llvm_family(g->l) == TL_LLVM_AMD)
        return x;
    return tl_gen_intrinsic(g, "llvm.arithmetic.fence", &type, 1, &x, 1);
}

/* x or y, y where both are equal or not in order; as_x: what is compared as x. */
static LLVMValueRef chosen(const Extreme *e, LLVMValueRef as_x, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef better = LLVMBuildFCmp(e->g->b, e->max ? LLVMRealOGT : LLVMRealOLT, as_x, y, "");
    return select_(e->g, better, x, y);
}

static LLVMValueRef compared(const Extreme *e, LLVMValueRef x, LLVMValueRef y)
{
    return chosen(e, x, x, y);
}

/* LLVM takes that for Arm's fmaxnm, which makes a quiet NaN of a signaling one: where x may be
 * such, LLVM must not see that what is compared is what is chosen. */
static LLVMValueRef compared_once(const Extreme *e, LLVMValueRef x, TlFloatKinds of_x,
                                  LLVMValueRef y)
{
    bool quiets = of_x & TL_MAY_BE_SIGNALING && tl_llvm_has_feature(e->g->l, "neon");
    return chosen(e, quiets ? fenced(e->g, x) : x, x, y);
}

/* Of zeros of both signs, may y be the wrong one? */
static bool zeros_matter(const Extreme *e, TlFloatKinds x, TlFloatKinds y)
{
    TlFloatKinds wins = e->max ? TL_MAY_BE_PLUS_ZERO : TL_MAY_BE_MINUS_ZERO,
                 loses = e->max ? TL_MAY_BE_MINUS_ZERO : TL_MAY_BE_PLUS_ZERO;
    return x & wins && y & loses;
}

static bool may_be_nan(TlFloatKinds x)
{
    return x & TL_MAY_BE_NAN;
}

/* ---- vrange ---- */

typedef struct Range {
    int bits, lanes;
    const char *name;
    unsigned nargs;
} Range;
static const Range RANGES[] = {{32, 16, "llvm.x86.avx512.mask.range.ps.512", 6},
                               {32, 8, "llvm.x86.avx512.mask.range.ps.256", 5},
                               {32, 4, "llvm.x86.avx512.mask.range.ps.128", 5},
                               {64, 8, "llvm.x86.avx512.mask.range.pd.512", 6},
                               {64, 4, "llvm.x86.avx512.mask.range.pd.256", 5},
                               {64, 2, "llvm.x86.avx512.mask.range.pd.128", 5}};

/* The widest that divides vectors of so many lanes; NULL: there is none. */
static const Range *range_of(TlGen *g, int bits, int width)
{
    if (!tl_llvm_has_feature(g->l, "avx512dq") || !tl_llvm_has_feature(g->l, "avx512vl"))
        return NULL;
    for (size_t i = 0; i < sizeof RANGES / sizeof *RANGES; i++)
        if (RANGES[i].bits == bits && width % RANGES[i].lanes == 0)
            return &RANGES[i];
    return NULL;
}

/* Lanes from .. from + n - 1 of x followed by y. */
static LLVMValueRef lanes_of(TlGen *g, LLVMValueRef x, LLVMValueRef y, int from, int n)
{
    LLVMValueRef *lane = TL_NEW_ARRAY(g->arena, LLVMValueRef, n);
    for (int i = 0; i < n; i++)
        lane[i] = LLVMConstInt(g->i32, (unsigned)(from + i), 0);
    return LLVMBuildShuffleVector(g->b, x, y, LLVMConstVector(lane, (unsigned)n), "");
}

/* Where no operand is a signaling NaN; of two quiet ones it gives x. */
static LLVMValueRef by_range(const Extreme *e, const Range *r, LLVMValueRef x, LLVMValueRef y)
{
    enum { SIGN_OF_RESULT = 4, MAX = 1, CURRENT_ROUNDING = 4 };
    TlGen *g = e->g;
    int width = tl_gen_width_of(x), n = width / 2;
    if (width > r->lanes) {
        LLVMValueRef low = by_range(e, r, lanes_of(g, x, x, 0, n), lanes_of(g, y, y, 0, n)),
                     high = by_range(e, r, lanes_of(g, x, x, n, n), lanes_of(g, y, y, n, n));
        return lanes_of(g, low, high, 0, width);
    }
    LLVMTypeRef mask = LLVMIntTypeInContext(g->c, r->lanes > 8 ? 16 : 8);
    LLVMValueRef args[6] = {x,
                            y,
                            LLVMConstInt(g->i32, SIGN_OF_RESULT | (e->max ? MAX : 0), 0),
                            x,
                            LLVMConstAllOnes(mask),
                            LLVMConstInt(g->i32, CURRENT_ROUNDING, 0)};
    return tl_gen_intrinsic(g, r->name, NULL, 0, args, r->nargs);
}

/* NULL: there is none. */
static LLVMValueRef ranged(const Extreme *e, int bits)
{
    const Range *r = range_of(e->g, bits, tl_gen_width_of(e->a));
    bool a_signals = e->of_a & TL_MAY_BE_SIGNALING, b_signals = e->of_b & TL_MAY_BE_SIGNALING;
    if (!r)
        return NULL;
    LLVMValueRef x = by_range(e, r, e->b, e->a);
    if (b_signals)
        x = select_(e->g, is_number(e->g, e->b), x, e->a);
    return a_signals || (b_signals && may_be_nan(e->of_a)) /* of two NaN it is b */
               ? select_(e->g, is_number(e->g, e->a), x, e->b)
               : x;
}

/* ---- by bits ---- */

static LLVMValueRef by_bits(Extreme *e, int bits)
{
    TlGen *g = e->g;
    bool zeros = zeros_matter(e, e->of_a, e->of_b);
    /* A choice between halves by their comparison as f32, LLVM takes for a minimum, and that of
     * zeros for either of them. */
    if (zeros && bits == 32) {
        e->a = fenced(g, e->a);
        e->b = fenced(g, e->b);
    }
    LLVMValueRef r = compared(e, e->a, e->b);
    if (zeros) {
        LLVMValueRef x = bits_of(g, r, bits), y = bits_of(g, compared(e, e->b, e->a), bits);
        r = e->max ? LLVMBuildAnd(g->b, x, y, "") : LLVMBuildOr(g->b, x, y, "");
        r = LLVMBuildBitCast(g->b, r, LLVMTypeOf(e->a), "");
    }
    if (may_be_nan(e->of_b))
        r = select_(g, is_number(g, e->b), r, e->a);
    return may_be_nan(e->of_a) ? select_(g, is_number(g, e->a), r, e->b) : r;
}

LLVMValueRef tl_gen_extreme(TlGen *g, bool max, LLVMValueRef a, LLVMValueRef b, TlFloatKinds of_a,
                            TlFloatKinds of_b)
{
    TL_ASSERT(LLVMTypeOf(a) == LLVMTypeOf(b), "extremes of different types");
    Extreme e = {g, max, a, b, of_a, of_b};
    int bits = LLVMTypeOf(a) == tl_gen_vec(g->f64, tl_gen_width_of(a)) ? 64 : 32;
    if (!may_be_nan(of_b) && !zeros_matter(&e, of_a, of_b))
        return compared_once(&e, a, of_a, b);
    if (!may_be_nan(of_a) && !zeros_matter(&e, of_b, of_a))
        return compared_once(&e, b, of_b, a);
    LLVMValueRef r = ranged(&e, bits);
    return r ? r : by_bits(&e, bits);
}
