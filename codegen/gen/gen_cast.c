/* Conversions between element types in LLVM IR, bit for bit as in ir/numeric.c. Those that a
 * device may lack or do differently (bf16, f8, 4-bit types, f64 to f16) are computed on the bits.
 */
#include "codegen/gen/gen_impl.h"
#include "ir/numeric.h"
#include "ir/interp/ring_float.h"
#include <math.h>

/* ---- floating-point formats ---- */

/* f64 to f32 with the last bit sticky (round to odd), so that a second rounding to a narrower
 * format is exact. */
LLVMValueRef tl_gen_f64_to_f32_odd(TlGen *g, LLVMValueRef x)
{
    int w = tl_gen_width_of(x);
    LLVMValueRef t = LLVMBuildFPTrunc(g->b, x, tl_gen_vec(g->f32, w), "");
    LLVMValueRef back = LLVMBuildFPExt(g->b, t, tl_gen_vec(g->f64, w), "");
    LLVMValueRef inexact = LLVMBuildFCmp(g->b, LLVMRealONE, back, x, "");
    LLVMValueRef over =
        LLVMBuildFCmp(g->b, LLVMRealOGT, call1(g, "llvm.fabs", back), call1(g, "llvm.fabs", x), "");
    LLVMValueRef b = bits_of(g, t, 32);
    LLVMValueRef down = select_(g, over, LLVMBuildSub(g->b, b, like(b, 1), ""), b);
    LLVMValueRef odd = LLVMBuildOr(g->b, down, like(b, 1), "");
    return as_float(g, select_(g, inexact, odd, b), g->f32);
}

static LLVMValueRef f32_to_bf16(TlGen *g, LLVMValueRef x)
{
    LLVMValueRef own = g->to_bf16 ? g->to_bf16(g, x) : NULL;
    if (own)
        return own;
    LLVMValueRef b = bits_of(g, x, 32);
    LLVMValueRef high = LLVMBuildLShr(g->b, b, like(b, 16), "");
    LLVMValueRef lsb = LLVMBuildAnd(g->b, high, like(b, 1), "");
    LLVMValueRef r = LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, b, like(b, 0x7FFF), ""), lsb, "");
    r = LLVMBuildLShr(g->b, r, like(b, 16), "");
    LLVMValueRef nan = LLVMBuildOr(g->b, high, like(b, 0x40), "");
    r = select_(g, LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, ""), nan, r);
    return LLVMBuildTrunc(g->b, r, tl_gen_vec(g->i16, tl_gen_width_of(x)), "");
}

static LLVMValueRef bf16_to_f32(TlGen *g, LLVMValueRef x)
{
    LLVMValueRef b = LLVMBuildZExt(g->b, x, tl_gen_vec(g->i32, tl_gen_width_of(x)), "");
    return as_float(g, LLVMBuildShl(g->b, b, like(b, 16), ""), g->f32);
}

static double power_of_two(int n)
{
    double p = 1;
    for (int i = 0; i < n; i++)
        p *= 2;
    for (int i = 0; i > n; i--)
        p /= 2;
    return p;
}

#define DTYPE(ID, text, bits, kind, numpy, exponent, fraction, bias, special)                      \
    _Static_assert((bits) > 8 || TL_SPECIAL_##special != TL_SPECIAL_IEEE || (bias) == 15,          \
                   "small_to_f32: infinities of " text ", which is not the top of f16");
#include "ir/types.def"

/* f8 and f4, by their row of types.def. e5m2 is the upper byte of f16; the others have no infinity,
 * and at most one NaN of each sign. */
static LLVMValueRef small_to_f32(TlGen *g, TlDtype d, LLVMValueRef x)
{
    const TlFloatFormat *s = tl_float_format(d);
    int w = tl_gen_width_of(x);
    unsigned width = (unsigned)s->width, up = 23 - (unsigned)s->fraction;
    if (s->special == TL_SPECIAL_IEEE) {
        LLVMValueRef half = LLVMBuildZExt(g->b, x, tl_gen_vec(g->i16, w), "");
        half = LLVMBuildShl(g->b, half, like(half, 16 - width), "");
        return LLVMBuildFPExt(g->b, as_float(g, half, g->f16), tl_gen_vec(g->f32, w), "");
    }
    LLVMValueRef b = LLVMBuildZExt(g->b, x, tl_gen_vec(g->i32, w), "");
    unsigned top = 1u << (width - 1);
    LLVMValueRef mag = LLVMBuildAnd(g->b, b, like(b, top - 1), "");
    LLVMValueRef sign =
        LLVMBuildShl(g->b, LLVMBuildAnd(g->b, b, like(b, top), ""), like(b, 32 - width), "");
    /* place exponent and fraction as an f32 with the format's exponent bias, then scale by the
     * difference of the biases: exact, subnormals too */
    LLVMValueRef f = as_float(g, LLVMBuildShl(g->b, mag, like(b, up), ""), g->f32);
    LLVMValueRef scale = LLVMConstReal(g->f32, power_of_two(127 - s->bias));
    f = LLVMBuildFMul(g->b, f, tl_gen_splat_const(scale, w), "");
    LLVMValueRef r = LLVMBuildOr(g->b, bits_of(g, f, 32), sign, "");
    if (!s->nan)
        return as_float(g, r, g->f32);
    LLVMValueRef quiet = like(b, 0x7FC00000);
    if (!tl_is_fnuz(d))
        quiet = LLVMBuildOr(g->b, quiet, sign, "");
    LLVMValueRef code = tl_is_fnuz(d) ? b : mag;
    LLVMValueRef nan = LLVMBuildICmp(g->b, LLVMIntEQ, code, like(b, s->nan), "");
    return as_float(g, select_(g, nan, quiet, r), g->f32);
}

/* Rounds an f32 to the fraction and the least exponent of d, to nearest even, as an f32:
 * adding and subtracting a power of two that puts the last kept bit at weight 1. Then packs.
 * Saturates unless nosat. */
static LLVMValueRef f32_to_small(TlGen *g, TlDtype d, LLVMValueRef x, bool nosat)
{
    const TlFloatFormat *f = tl_float_format(d);
    int w = tl_gen_width_of(x), cut = 23 - f->fraction, least = tl_float_normal_exponent(d);
    uint64_t nan_code = f->nan ? f->nan : f->max;
    LLVMValueRef b = bits_of(g, x, 32), infinity = like(b, 0x7F800000);
    LLVMValueRef sign = LLVMBuildAnd(g->b, b, like(b, 0x80000000u), "");
    sign = LLVMBuildLShr(g->b, sign, like(b, 32 - (unsigned)f->width), "");
    LLVMValueRef a = LLVMBuildAnd(g->b, b, like(b, 0x7FFFFFFF), "");
    /* normal results: add half an ulp less one plus the kept last bit, then cut */
    LLVMValueRef lsb =
        LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, a, like(b, (unsigned)cut), ""), like(b, 1), "");
    LLVMValueRef r =
        LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, a, like(b, (1u << (cut - 1)) - 1), ""), lsb, "");
    r = LLVMBuildLShr(g->b, r, like(b, (unsigned)cut), "");
    LLVMValueRef normal =
        LLVMBuildSub(g->b, r, like(b, (uint64_t)(127 - f->bias) << f->fraction), "");
    /* subnormal results: |x| + 2^(emin - mant + 23) rounds at the right bit; the low bits are the
     * answer */
    LLVMValueRef m =
        tl_gen_splat_const(LLVMConstReal(g->f32, power_of_two(23 + least - f->fraction)), w);
    LLVMValueRef s = LLVMBuildFAdd(g->b, as_float(g, a, g->f32), m, "");
    LLVMValueRef subnormal = LLVMBuildSub(g->b, bits_of(g, s, 32), bits_of(g, m, 32), "");
    LLVMValueRef small =
        LLVMBuildICmp(g->b, LLVMIntULT, a, like(b, (uint64_t)(127 + least) << 23), "");
    LLVMValueRef out = select_(g, small, subnormal, normal);
    LLVMValueRef over = like(b, nosat ? tl_float_overflow(d) : f->max);
    out = select_(g, LLVMBuildICmp(g->b, LLVMIntUGT, out, like(b, f->max), ""), over, out);
    out = select_(g, LLVMBuildICmp(g->b, LLVMIntUGE, a, infinity, ""), over, out);
    LLVMValueRef is_nan = LLVMBuildICmp(g->b, LLVMIntUGT, a, infinity, "");
    out = select_(g, is_nan, like(b, nan_code), out);
    if (!f->nan)
        sign = select_(g, is_nan, like(b, 0), sign);
    if (tl_is_fnuz(d)) /* no -0 */
        sign = select_(g, LLVMBuildICmp(g->b, LLVMIntEQ, out, like(b, 0), ""), like(b, 0), sign);
    return LLVMBuildTrunc(g->b, LLVMBuildOr(g->b, out, sign, ""), tl_gen_vec(g->i8, w), "");
}

/* What converts a float type to and from f32. */
typedef enum Way { WAY_NONE, WAY_SAME, WAY_F16, WAY_BF16, WAY_SMALL } Way;

static Way way_of(TlDtype d)
{
    switch (d) {
    case TL_F32: return WAY_SAME;
    case TL_F16: return WAY_F16;
    case TL_BF16: return WAY_BF16;
    case TL_F8E4M3:
    case TL_F8E5M2:
    case TL_F8E4M3FNUZ:
    case TL_F8E5M2FNUZ:
    case TL_F4E2M1: return WAY_SMALL;
    case TL_F64:
    case TL_BOOL:
    case TL_I4:
    case TL_I8:
    case TL_I16:
    case TL_I32:
    case TL_I64:
    case TL_U4:
    case TL_U8:
    case TL_U16:
    case TL_U32:
    case TL_U64:
    case TL_DTYPE_COUNT: break;
    }
    return WAY_NONE;
}

/* any float type to f32 (f64 excluded) */
LLVMValueRef tl_gen_widen(TlGen *g, TlDtype d, LLVMValueRef x)
{
    switch (way_of(d)) {
    case WAY_SAME: return x;
    case WAY_F16: return LLVMBuildFPExt(g->b, x, tl_gen_vec(g->f32, tl_gen_width_of(x)), "");
    case WAY_BF16: return bf16_to_f32(g, x);
    case WAY_SMALL: return small_to_f32(g, d, x);
    case WAY_NONE: break;
    }
    TL_UNREACHABLE("%s to f32", tl_dtype_name(d));
}

/* f32 to a float type, one rounding to nearest even */
/* LLVM would rather choose between converted values. Where an instruction converts two words
 * (TlGen.words), each half would be taken out of a pair for that and put back: so it may not look
 * through. */
LLVMValueRef tl_gen_narrow(TlGen *g, TlDtype d, LLVMValueRef x, bool nosat)
{
    switch (way_of(d)) {
    case WAY_SAME: return x;
    case WAY_F16:
        if (g->words && LLVMIsASelectInst(x))
            x = LLVMBuildFreeze(g->b, x, "");
        return LLVMBuildFPTrunc(g->b, x, tl_gen_vec(g->f16, tl_gen_width_of(x)), "");
    case WAY_BF16: return f32_to_bf16(g, x);
    case WAY_SMALL: return f32_to_small(g, d, x, nosat);
    case WAY_NONE: break;
    }
    TL_UNREACHABLE("f32 to %s", tl_dtype_name(d));
}

/* ---- conversions ---- */

/* |x| of a 64-bit integer to f64 with the bits below 2^11 of large values folded into one sticky
 * bit. */
static LLVMValueRef int_to_f64_sticky(TlGen *g, LLVMValueRef x, bool is_signed)
{
    int w = tl_gen_width_of(x);
    LLVMTypeRef f = tl_gen_vec(g->f64, w);
    LLVMValueRef neg = is_signed ? LLVMBuildICmp(g->b, LLVMIntSLT, x, like(x, 0), "") : NULL;
    LLVMValueRef m = is_signed ? select_(g, neg, LLVMBuildSub(g->b, like(x, 0), x, ""), x) : x;
    LLVMValueRef low = LLVMBuildAnd(g->b, m, like(x, 0x7FF), "");
    LLVMValueRef sticky =
        LLVMBuildZExt(g->b, LLVMBuildICmp(g->b, LLVMIntNE, low, like(x, 0), ""), LLVMTypeOf(x), "");
    LLVMValueRef high = LLVMBuildOr(g->b, LLVMBuildLShr(g->b, m, like(x, 11), ""), sticky, "");
    LLVMValueRef big = LLVMBuildFMul(g->b, LLVMBuildUIToFP(g->b, high, f, ""),
                                     tl_gen_splat_const(LLVMConstReal(g->f64, 2048), w), "");
    LLVMValueRef is_big = LLVMBuildICmp(g->b, LLVMIntUGE, m, like(x, 1ull << 53), "");
    LLVMValueRef r = select_(g, is_big, big, LLVMBuildUIToFP(g->b, m, f, ""));
    return is_signed ? select_(g, neg, LLVMBuildFNeg(g->b, r, ""), r) : r;
}

/* The stored form of 4-bit types: the high half of the byte is 0. */
static LLVMValueRef nibble(TlGen *g, LLVMValueRef x)
{
    return LLVMBuildAnd(g->b, x, like(x, 15), "");
}

/* 1024 + x is a float of f16 whose lowest bits are x, for x from 0 to 255. One difference, two of
 * which are an instruction, replaces the conversion and the rounding from f32; what follows is
 * computed in f16, too, where LLVM makes f32 of a difference of converted numbers. */
static LLVMValueRef byte_to_half(TlGen *g, TlDtype from, LLVMValueRef x)
{
    enum { BITS_OF_1024 = 0x6400 };
    bool four = tl_dtype_bits(from) == 4;
    int sign = !tl_is_signed(from) ? 0 : four ? 8 : 0x80;
    if (four)
        x = nibble(g, x);
    if (sign)
        x = LLVMBuildXor(g->b, x, like(x, sign), "");
    int w = tl_gen_width_of(x);
    LLVMValueRef bits = LLVMBuildZExt(g->b, x, tl_gen_vec(g->i16, w), "");
    LLVMValueRef h = as_float(g, LLVMBuildOr(g->b, bits, like(bits, BITS_OF_1024), ""), g->f16);
    return LLVMBuildFSub(g->b, h, tl_gen_splat_const(LLVMConstReal(g->f16, 1024 + sign), w), "");
}

static LLVMValueRef int_to_float(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x, bool nosat)
{
    int w = tl_gen_width_of(x);
    bool is_signed = tl_is_signed(from);
    if (to == TL_F32 || to == TL_F64) {
        LLVMTypeRef t = tl_gen_vec(to == TL_F32 ? g->f32 : g->f64, w);
        return is_signed ? LLVMBuildSIToFP(g->b, x, t, "") : LLVMBuildUIToFP(g->b, x, t, "");
    }
    if (tl_dtype_bits(from) <= 16) {
        LLVMTypeRef t = tl_gen_vec(g->f32, w);
        return tl_gen_narrow(
            g, to, is_signed ? LLVMBuildSIToFP(g->b, x, t, "") : LLVMBuildUIToFP(g->b, x, t, ""),
            nosat);
    }
    LLVMTypeRef t = tl_gen_vec(g->f64, w);
    LLVMValueRef d = tl_dtype_bits(from) == 64 ? int_to_f64_sticky(g, x, is_signed)
                     : is_signed               ? LLVMBuildSIToFP(g->b, x, t, "")
                                               : LLVMBuildUIToFP(g->b, x, t, "");
    return tl_gen_narrow(g, to, tl_gen_f64_to_f32_odd(g, d), nosat);
}

/* Vectors of f32 or f64 to integers of up to 32 bits, in vector instructions: LLVM makes scalars of
 * llvm.fptosi.sat on vectors for x86. NaN becomes 0; what is too small, the least number; what is
 * too great, the greatest one, around the conversion where that is no float. Those of 8 and 16 bits
 * go through i32. */
static LLVMValueRef vector_to_int(TlGen *g, LLVMValueRef x, bool is_signed, LLVMTypeRef to)
{
    int w = tl_gen_width_of(x), bits = (int)LLVMGetIntTypeWidth(LLVMGetElementType(to));
    LLVMTypeRef one = LLVMGetElementType(LLVMTypeOf(x)), wide = tl_gen_vec(g->i32, w);
    bool exact = bits <= 16;
    uint64_t most = (1ull << (is_signed ? bits - 1 : bits)) - 1;
    double low = is_signed ? -1.0 - (double)most : 0;
    LLVMValueRef least = tl_gen_splat_const(LLVMConstReal(one, low), w);
    LLVMValueRef past = tl_gen_splat_const(LLVMConstReal(one, (exact ? 0 : 1.0) + (double)most), w);
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x));
    LLVMValueRef over = LLVMBuildFCmp(g->b, LLVMRealOGE, x, past, "");
    LLVMValueRef is_nan = LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "");
    x = select_(g, LLVMBuildFCmp(g->b, LLVMRealOLT, x, least, ""), least, x);
    if (exact) {
        x = select_(g, LLVMBuildFCmp(g->b, LLVMRealOGT, x, past, ""), past, x);
        x = select_(g, is_nan, zero, x);
    } else {
        x = select_(g, LLVMBuildOr(g->b, over, is_nan, ""), zero, x);
    }
    x = is_signed || bits < 32 ? LLVMBuildFPToSI(g->b, x, wide, "")
                               : LLVMBuildFPToUI(g->b, x, wide, "");
    if (!exact)
        x = select_(g, over, like(x, most), x);
    return bits == 32 ? x : LLVMBuildTrunc(g->b, x, to, "");
}

static LLVMValueRef float_to_int(TlGen *g, TlDtype to, LLVMValueRef x)
{
    bool is_signed = tl_is_signed(to);
    LLVMValueRef own = g->to_int ? g->to_int(g, x, to) : NULL;
    if (own)
        return own;
    LLVMTypeRef types[2] = {tl_gen_vec(tl_gen_dtype_type(g, to), tl_gen_width_of(x)),
                            LLVMTypeOf(x)};
    if (tl_gen_width_of(x) > 1 && tl_dtype_bytes(to) <= 4)
        x = vector_to_int(g, x, is_signed, types[0]);
    else
        x = tl_gen_intrinsic(g, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", types, 2, &x, 1);
    if (tl_dtype_bits(to) == 8 * tl_dtype_bytes(to))
        return x;
    x = tl_gen_int_extreme(g, false, is_signed, x, like(x, is_signed ? 7 : 15));
    return is_signed ? nibble(g, tl_gen_int_extreme(g, true, true, x, like(x, (uint64_t)-8))) : x;
}

static LLVMValueRef int_resize(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x)
{
    LLVMTypeRef t = tl_gen_vec(tl_gen_dtype_type(g, to), tl_gen_width_of(x));
    int a = from == TL_BOOL ? 1 : tl_dtype_bytes(from) * 8, b = tl_dtype_bytes(to) * 8;
    if (from == TL_I4) { /* stored as the low nibble: extend its sign */
        x = LLVMBuildAShr(g->b, LLVMBuildShl(g->b, x, like(x, 4), ""), like(x, 4), "");
    } else if (from == TL_U4) {
        x = LLVMBuildAnd(g->b, x, like(x, 15), "");
    }
    if (a > b)
        x = LLVMBuildTrunc(g->b, x, t, "");
    if (a < b)
        x = tl_is_signed(from) ? LLVMBuildSExt(g->b, x, t, "") : LLVMBuildZExt(g->b, x, t, "");
    return tl_dtype_bits(to) == 4 ? nibble(g, x) : x;
}

/* A 64-bit integer, cut to its highest 53 bits: exact in f64. */
static LLVMValueRef highest_53_bits(TlGen *g, LLVMValueRef x, bool is_signed)
{
    LLVMValueRef zero = like(x, 0), neg = LLVMBuildNeg(g->b, x, "");
    LLVMValueRef below = LLVMBuildICmp(g->b, LLVMIntSLT, x, zero, "");
    LLVMValueRef m = is_signed ? select_(g, below, neg, x) : x;
    LLVMValueRef lead = tl_gen_count_zeros(g, "llvm.ctlz", m);
    LLVMValueRef cut = LLVMBuildSub(g->b, like(x, 11), lead, "");
    cut = select_(g, LLVMBuildICmp(g->b, LLVMIntULT, lead, like(x, 11), ""), cut, zero);
    m = LLVMBuildShl(g->b, LLVMBuildLShr(g->b, m, cut, ""), cut, "");
    return is_signed ? select_(g, below, LLVMBuildNeg(g->b, m, ""), m) : m;
}

/* The nearest value, or its neighbour toward zero if that is too great. */
static LLVMValueRef cast_toward_zero(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x, bool nosat)
{
    int w = tl_gen_width_of(x), bits = 8 * tl_dtype_bytes(to);
    if (tl_is_int(from) && tl_dtype_bits(from) == 64)
        x = highest_53_bits(g, x, tl_is_signed(from));
    LLVMValueRef exact = tl_gen_cast(g, from, TL_F64, x, TL_ROUND_NEAREST, false);
    if (to == TL_F64)
        return exact;
    LLVMValueRef near = tl_gen_cast(g, from, to, x, TL_ROUND_NEAREST, false);
    LLVMValueRef back = tl_gen_cast(g, to, TL_F64, near, TL_ROUND_NEAREST, false);
    LLVMValueRef magnitude = call1(g, "llvm.fabs", exact);
    LLVMValueRef over =
        LLVMBuildFCmp(g->b, LLVMRealOGT, call1(g, "llvm.fabs", back), magnitude, "");
    LLVMTypeRef word = tl_gen_vec(LLVMIntTypeInContext(g->c, (unsigned)bits), w);
    LLVMValueRef b = LLVMBuildBitCast(g->b, near, word, "");
    LLVMValueRef toward = LLVMBuildSub(g->b, b, like(b, 1), "");
    if (tl_is_fnuz(to)) { /* numbers closer to 0 than the least negative one become 0 */
        LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntEQ, toward, like(b, 0x80), "");
        toward = select_(g, none, like(b, 0), toward);
    }
    b = select_(g, over, toward, b);
    LLVMValueRef r = LLVMBuildBitCast(g->b, b, LLVMTypeOf(near), "");
    if (!nosat || tl_dtype_bits(to) > 8) /* a finite number does not overflow toward zero */
        return r;
    LLVMValueRef infinity = tl_gen_splat_const(LLVMConstReal(g->f64, (double)INFINITY), w);
    return select_(g, LLVMBuildFCmp(g->b, LLVMRealOEQ, magnitude, infinity, ""),
                   tl_gen_cast(g, from, to, x, TL_ROUND_NEAREST, true), r);
}

/* In the ring floats are integers of their width (ir/interp/ring_float.h). */
static LLVMValueRef ring_cast(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x)
{
    LLVMTypeRef t = tl_gen_vec(tl_gen_dtype_type(g, to), tl_gen_width_of(x));
    if (tl_is_float(from)) {
        x = bits_of(g, x, tl_dtype_bytes(from) * 8);
        from = tl_ring_dtype(from);
    }
    if (tl_is_float(to))
        to = tl_ring_dtype(to);
    return LLVMBuildBitCast(g->b, tl_gen_cast(g, from, to, x, TL_ROUND_NEAREST, false), t, "");
}

LLVMValueRef tl_gen_cast(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x, int round, bool nosat)
{
    TL_ASSERT((unsigned)from < TL_DTYPE_COUNT && (unsigned)to < TL_DTYPE_COUNT,
              "element types %d and %d", (int)from, (int)to);
    if (g->fn->ring && (tl_is_float(from) || tl_is_float(to)))
        return ring_cast(g, from, to, x);
    if (round == TL_ROUND_ZERO && tl_is_float(to) && from != to)
        return cast_toward_zero(g, from, to, x, nosat);
    if (from == to)
        return x;
    if (tl_is_float(from)) {
        LLVMValueRef f = from == TL_F64 ? x : tl_gen_widen(g, from, x);
        if (to == TL_BOOL)
            return LLVMBuildFCmp(g->b, LLVMRealUNE, f, LLVMConstNull(LLVMTypeOf(f)), "");
        if (tl_is_int(to))
            return float_to_int(g, to, f);
        if (to == TL_F64)
            return LLVMBuildFPExt(g->b, f, tl_gen_vec(g->f64, tl_gen_width_of(f)), "");
        if (from == TL_F64)
            f = to == TL_F32 ? LLVMBuildFPTrunc(g->b, x, tl_gen_vec(g->f32, tl_gen_width_of(x)), "")
                             : tl_gen_f64_to_f32_odd(g, x);
        return tl_gen_narrow(g, to, f, nosat);
    }
    if (to == TL_BOOL)
        return LLVMBuildICmp(g->b, LLVMIntNE, x, like(x, 0), "");
    if (tl_is_float(to)) {
        if (g->halves && to == TL_F16 && from != TL_BOOL &&
            LLVMTypeOf(x) == tl_gen_vec(g->i8, tl_gen_width_of(x)))
            return byte_to_half(g, from, x);
        if (from == TL_I4 || from == TL_U4)
            x = int_resize(g, from, from == TL_I4 ? TL_I16 : TL_U16, x),
            from = from == TL_I4 ? TL_I16 : TL_U16;
        if (from == TL_BOOL)
            x = int_resize(g, from, TL_U8, x), from = TL_U8;
        return int_to_float(g, from, to, x, nosat);
    }
    return int_resize(g, from, to, x);
}
