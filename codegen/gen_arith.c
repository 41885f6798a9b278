/* Arithmetic on one element type, for scalars and vectors alike, on the CPU and in the threads
 * of a GPU: tile IR's meanings spelled in LLVM IR so that every bit agrees with the reference
 * interpreter. f16 and bf16 are widened to f32, computed and rounded once; conversions that the
 * CPU may lack or do differently (bf16, f8, f64 to f16) are bit code. Nothing traps and nothing
 * calls a library. */
#include <stdio.h>
#include <string.h>

#include "codegen/gen.h"
#include "ir/numeric.h"
#include "ir/ring_float.h"

/* ---- types and constants ---- */

void tl_gen_init(TlGen *g, TlLlvm *l, const TlFn *fn, TlArena *arena)
{
    LLVMContextRef c = g->c = l->context;
    g->l = l;
    g->b = l->builder;
    g->fn = fn;
    g->arena = arena;
    g->scalar = TL_NEW_ARRAY(arena, LLVMValueRef, fn->nvalues + 1);
    g->view = TL_NEW_ARRAY(arena, TlGenView *, fn->nvalues + 1);
    g->i1 = LLVMInt1TypeInContext(c);
    g->i8 = LLVMInt8TypeInContext(c);
    g->i16 = LLVMInt16TypeInContext(c);
    g->i32 = LLVMInt32TypeInContext(c);
    g->i64 = LLVMInt64TypeInContext(c);
    g->f16 = LLVMHalfTypeInContext(c);
    g->f32 = LLVMFloatTypeInContext(c);
    g->f64 = LLVMDoubleTypeInContext(c);
    g->ptr = LLVMPointerTypeInContext(c, 0);
    g->void_ = LLVMVoidTypeInContext(c);
}

static LLVMTypeRef dtype_type(TlGen *g, TlDtype d)
{
    switch (d) {
    case TL_BOOL: return g->i1;
    case TL_I8:
    case TL_U8:
    case TL_F8E4M3:
    case TL_F8E5M2:
    case TL_I4:
    case TL_U4:
    case TL_F4E2M1: return g->i8;
    case TL_I16:
    case TL_U16:
    case TL_BF16: return g->i16;
    case TL_I32:
    case TL_U32: return g->i32;
    case TL_I64:
    case TL_U64: return g->i64;
    case TL_F16: return g->f16;
    case TL_F32: return g->f32;
    case TL_F64: return g->f64;
    case TL_DTYPE_COUNT: break;
    }
    TL_UNREACHABLE("element type %d", (int)d);
}

uint64_t tl_gen_elem_bytes(const TlType *type)
{
    return type->ptr ? 8 : (uint64_t)tl_dtype_bytes(type->dtype);
}

LLVMTypeRef tl_gen_elem_type(TlGen *g, const TlType *type)
{
    return type->ptr ? g->ptr : dtype_type(g, type->dtype);
}

LLVMTypeRef tl_gen_mem_type(TlGen *g, const TlType *type)
{
    return !type->ptr && type->dtype == TL_BOOL ? g->i8 : tl_gen_elem_type(g, type);
}

LLVMTypeRef tl_gen_vec(LLVMTypeRef elem, int width)
{
    return width == 1 ? elem : LLVMVectorType(elem, (unsigned)width);
}

int tl_gen_width_of(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

static LLVMValueRef splat_const(LLVMValueRef c, int width)
{
    if (width == 1)
        return c;
    LLVMValueRef lanes[64];
    TL_ASSERT(width <= 64, "vector of %d lanes", width);
    for (int i = 0; i < width; i++)
        lanes[i] = c;
    return LLVMConstVector(lanes, (unsigned)width);
}

LLVMValueRef tl_gen_splat(TlGen *g, LLVMValueRef scalar, int width)
{
    if (width == 1)
        return scalar;
    if (LLVMIsConstant(scalar))
        return splat_const(scalar, width);
    LLVMTypeRef t = tl_gen_vec(LLVMTypeOf(scalar), width);
    LLVMValueRef one =
        LLVMBuildInsertElement(g->b, LLVMGetPoison(t), scalar, LLVMConstInt(g->i32, 0, 0), "");
    return LLVMBuildShuffleVector(g->b, one, LLVMGetPoison(t),
                                  LLVMConstNull(LLVMVectorType(g->i32, (unsigned)width)), "");
}

LLVMValueRef tl_gen_int(TlGen *g, int64_t v)
{
    return LLVMConstInt(g->i64, (unsigned long long)v, 1);
}

LLVMValueRef tl_gen_iota(TlGen *g, LLVMTypeRef elem, int width)
{
    (void)g;
    LLVMValueRef lanes[64];
    if (width == 1)
        return LLVMConstInt(elem, 0, 0);
    for (int i = 0; i < width; i++)
        lanes[i] = LLVMConstInt(elem, (unsigned)i, 0);
    return LLVMConstVector(lanes, (unsigned)width);
}

static LLVMTypeRef int_type(TlGen *g, int bits)
{
    return bits == 1    ? g->i1
           : bits == 8  ? g->i8
           : bits == 16 ? g->i16
           : bits == 32 ? g->i32
                        : g->i64;
}

LLVMValueRef tl_gen_const(TlGen *g, const TlType *type, uint64_t bits, int width)
{
    if (type->ptr)
        return splat_const(LLVMConstNull(g->ptr), width);
    LLVMTypeRef t = dtype_type(g, type->dtype);
    int n = type->dtype == TL_BOOL ? 1 : tl_dtype_bytes(type->dtype) * 8;
    LLVMValueRef c = LLVMConstInt(int_type(g, n), bits, 0);
    if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind)
        c = LLVMConstBitCast(c, t);
    return splat_const(c, width);
}

LLVMValueRef tl_gen_intrinsic(TlGen *g, const char *name, LLVMTypeRef *types, unsigned ntypes,
                              LLVMValueRef *args, unsigned nargs)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    TL_ASSERT(id, "no intrinsic %s", name);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(g->l->module, id, types, ntypes);
    LLVMTypeRef ft = LLVMIntrinsicGetType(g->c, id, types, ntypes);
    return LLVMBuildCall2(g->b, ft, f, args, nargs, "");
}

static LLVMValueRef call1(TlGen *g, const char *name, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    return tl_gen_intrinsic(g, name, &t, 1, &x, 1);
}

/* an integer constant of x's type */
static LLVMValueRef like(LLVMValueRef x, uint64_t v)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    bool vec = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    return splat_const(LLVMConstInt(vec ? LLVMGetElementType(t) : t, v, 0), tl_gen_width_of(x));
}

static LLVMValueRef bits_of(TlGen *g, LLVMValueRef x, int nbits)
{
    return LLVMBuildBitCast(g->b, x, tl_gen_vec(int_type(g, nbits), tl_gen_width_of(x)), "");
}

static LLVMValueRef as_float(TlGen *g, LLVMValueRef x, LLVMTypeRef f)
{
    return LLVMBuildBitCast(g->b, x, tl_gen_vec(f, tl_gen_width_of(x)), "");
}

static LLVMValueRef select_(TlGen *g, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(g->b, c, a, b, "");
}

LLVMValueRef tl_gen_to_mem(TlGen *g, const TlType *type, LLVMValueRef x)
{
    if (type->ptr || type->dtype != TL_BOOL)
        return x;
    return LLVMBuildZExt(g->b, x, tl_gen_vec(g->i8, tl_gen_width_of(x)), "");
}

LLVMValueRef tl_gen_from_mem(TlGen *g, const TlType *type, LLVMValueRef x)
{
    if (type->ptr || type->dtype != TL_BOOL)
        return x;
    return LLVMBuildICmp(g->b, LLVMIntNE, x, like(x, 0), "");
}

/* ---- floating-point formats ---- */

/* f64 to f32 with the last bit sticky (round to odd), so that a second rounding to a narrower
 * format is exact. */
static LLVMValueRef f64_to_f32_odd(TlGen *g, LLVMValueRef x)
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

/* e4m3: exponent bias 7, no infinity, 0x7F is NaN; e5m2: the upper byte of f16. */
static LLVMValueRef f8_to_f32(TlGen *g, TlDtype d, LLVMValueRef x)
{
    int w = tl_gen_width_of(x);
    if (d == TL_F8E5M2) {
        LLVMValueRef h = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, x, tl_gen_vec(g->i16, w), ""),
                                      splat_const(LLVMConstInt(g->i16, 8, 0), w), "");
        return LLVMBuildFPExt(g->b, as_float(g, h, g->f16), tl_gen_vec(g->f32, w), "");
    }
    LLVMValueRef b = LLVMBuildZExt(g->b, x, tl_gen_vec(g->i32, w), "");
    LLVMValueRef mag = LLVMBuildAnd(g->b, b, like(b, 0x7F), "");
    LLVMValueRef sign =
        LLVMBuildShl(g->b, LLVMBuildAnd(g->b, b, like(b, 0x80), ""), like(b, 24), "");
    /* place exponent and fraction as an f32 with exponent bias 7, then scale by 2^120: exact,
     * subnormals too */
    LLVMValueRef f = as_float(g, LLVMBuildShl(g->b, mag, like(b, 20), ""), g->f32);
    f = LLVMBuildFMul(g->b, f, splat_const(LLVMConstReal(g->f32, 0x1p120), w), "");
    LLVMValueRef r = LLVMBuildOr(g->b, bits_of(g, f, 32), sign, "");
    LLVMValueRef nan = LLVMBuildICmp(g->b, LLVMIntEQ, mag, like(b, 0x7F), "");
    return as_float(g, select_(g, nan, LLVMBuildOr(g->b, like(b, 0x7FC00000), sign, ""), r),
                    g->f32);
}

/* Rounds an f32 to `mant` fraction bits with minimum exponent emin, to nearest even, as an f32:
 * adding and subtracting a power of two that puts the last kept bit at weight 1. Then packs.
 * Saturates unless nosat. */
static LLVMValueRef f32_to_f8(TlGen *g, TlDtype d, LLVMValueRef x, bool nosat)
{
    bool e4 = d == TL_F8E4M3;
    int w = tl_gen_width_of(x), mant = e4 ? 3 : 2, emin = e4 ? -6 : -14, bias = e4 ? 7 : 15;
    LLVMValueRef b = bits_of(g, x, 32);
    LLVMValueRef sign =
        LLVMBuildLShr(g->b, LLVMBuildAnd(g->b, b, like(b, 0x80000000u), ""), like(b, 24), "");
    LLVMValueRef a = LLVMBuildAnd(g->b, b, like(b, 0x7FFFFFFF), "");
    /* normal results: add half an ulp less one plus the kept last bit, then cut */
    int cut = 23 - mant;
    LLVMValueRef lsb =
        LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, a, like(b, (unsigned)cut), ""), like(b, 1), "");
    LLVMValueRef r =
        LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, a, like(b, (1u << (cut - 1)) - 1), ""), lsb, "");
    r = LLVMBuildLShr(g->b, r, like(b, (unsigned)cut), "");
    LLVMValueRef normal = LLVMBuildSub(g->b, r, like(b, (uint64_t)(127 - bias) << mant), "");
    /* subnormal results: |x| + 2^(emin - mant + 23) rounds at the right bit; the low bits are the
     * answer */
    double magic = 1;
    for (int i = 0; i < 23 + emin - mant; i++)
        magic *= 2;
    for (int i = 0; i > 23 + emin - mant; i--)
        magic /= 2;
    LLVMValueRef m = splat_const(LLVMConstReal(g->f32, magic), w);
    LLVMValueRef s = LLVMBuildFAdd(g->b, as_float(g, a, g->f32), m, "");
    LLVMValueRef subnormal = LLVMBuildSub(g->b, bits_of(g, s, 32), bits_of(g, m, 32), "");
    LLVMValueRef small =
        LLVMBuildICmp(g->b, LLVMIntULT, a, like(b, (uint64_t)(127 + emin) << 23), "");
    LLVMValueRef out = select_(g, small, subnormal, normal);
    unsigned max = e4 ? 0x7E : 0x7B, over = nosat ? (e4 ? 0x7F : 0x7C) : max,
             nan = e4 ? 0x7F : 0x7E;
    out = select_(g, LLVMBuildICmp(g->b, LLVMIntUGT, out, like(b, max), ""), like(b, over), out);
    out =
        select_(g, LLVMBuildICmp(g->b, LLVMIntUGE, a, like(b, 0x7F800000), ""), like(b, over), out);
    out =
        select_(g, LLVMBuildICmp(g->b, LLVMIntUGT, a, like(b, 0x7F800000), ""), like(b, nan), out);
    return LLVMBuildTrunc(g->b, LLVMBuildOr(g->b, out, sign, ""), tl_gen_vec(g->i8, w), "");
}

static LLVMValueRef f4_to_f32(TlGen *g, LLVMValueRef x)
{
    int w = tl_gen_width_of(x);
    LLVMValueRef b = LLVMBuildZExt(g->b, x, tl_gen_vec(g->i32, w), "");
    LLVMValueRef mag = LLVMBuildShl(g->b, LLVMBuildAnd(g->b, b, like(b, 7), ""), like(b, 22), "");
    LLVMValueRef f = LLVMBuildFMul(g->b, as_float(g, mag, g->f32),
                                   splat_const(LLVMConstReal(g->f32, 0x1p126), w), "");
    LLVMValueRef sign = LLVMBuildShl(g->b, LLVMBuildAnd(g->b, b, like(b, 8), ""), like(b, 28), "");
    return as_float(g, LLVMBuildOr(g->b, bits_of(g, f, 32), sign, ""), g->f32);
}

/* any float type to f32 (f64 excluded) */
static LLVMValueRef widen(TlGen *g, TlDtype d, LLVMValueRef x)
{
    switch (d) {
    case TL_F16: return LLVMBuildFPExt(g->b, x, tl_gen_vec(g->f32, tl_gen_width_of(x)), "");
    case TL_BF16: return bf16_to_f32(g, x);
    case TL_F8E4M3:
    case TL_F8E5M2: return f8_to_f32(g, d, x);
    case TL_F4E2M1: return f4_to_f32(g, x);
    default: return x;
    }
}

/* f32 to a float type, one rounding to nearest even */
static LLVMValueRef narrow(TlGen *g, TlDtype d, LLVMValueRef x, bool nosat)
{
    switch (d) {
    case TL_F16: return LLVMBuildFPTrunc(g->b, x, tl_gen_vec(g->f16, tl_gen_width_of(x)), "");
    case TL_BF16: return f32_to_bf16(g, x);
    case TL_F8E4M3:
    case TL_F8E5M2: return f32_to_f8(g, d, x, nosat);
    default: return x;
    }
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
                                     splat_const(LLVMConstReal(g->f64, 2048), w), "");
    LLVMValueRef is_big = LLVMBuildICmp(g->b, LLVMIntUGE, m, like(x, 1ull << 53), "");
    LLVMValueRef r = select_(g, is_big, big, LLVMBuildUIToFP(g->b, m, f, ""));
    return is_signed ? select_(g, neg, LLVMBuildFNeg(g->b, r, ""), r) : r;
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
        return narrow(g, to,
                      is_signed ? LLVMBuildSIToFP(g->b, x, t, "") : LLVMBuildUIToFP(g->b, x, t, ""),
                      nosat);
    }
    LLVMTypeRef t = tl_gen_vec(g->f64, w);
    LLVMValueRef d = tl_dtype_bits(from) == 64 ? int_to_f64_sticky(g, x, is_signed)
                     : is_signed               ? LLVMBuildSIToFP(g->b, x, t, "")
                                               : LLVMBuildUIToFP(g->b, x, t, "");
    return narrow(g, to, f64_to_f32_odd(g, d), nosat);
}

static LLVMValueRef float_to_int(TlGen *g, TlDtype to, LLVMValueRef x)
{
    LLVMTypeRef types[2] = {tl_gen_vec(dtype_type(g, to), tl_gen_width_of(x)), LLVMTypeOf(x)};
    return tl_gen_intrinsic(g, tl_is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", types, 2,
                            &x, 1);
}

static LLVMValueRef int_resize(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x)
{
    LLVMTypeRef t = tl_gen_vec(dtype_type(g, to), tl_gen_width_of(x));
    int a = from == TL_BOOL ? 1 : tl_dtype_bytes(from) * 8, b = tl_dtype_bytes(to) * 8;
    if (from == TL_I4) { /* stored as the low nibble: extend its sign */
        x = LLVMBuildAShr(g->b, LLVMBuildShl(g->b, x, like(x, 4), ""), like(x, 4), "");
    } else if (from == TL_U4) {
        x = LLVMBuildAnd(g->b, x, like(x, 15), "");
    }
    if (a == b)
        return x;
    if (a > b)
        return LLVMBuildTrunc(g->b, x, t, "");
    return tl_is_signed(from) ? LLVMBuildSExt(g->b, x, t, "") : LLVMBuildZExt(g->b, x, t, "");
}

bool tl_gen_rounds(TlDtype from, TlDtype to, int round)
{
    if (round == TL_ROUND_NEAREST || from == to || !tl_is_float(to))
        return true;
    bool exact = tl_is_float(from) || tl_dtype_bits(from) <= 32; /* in f64 */
    return round == TL_ROUND_ZERO && exact && tl_dtype_bits(to) >= 16;
}

/* The nearest one, and its neighbour toward zero where that is too great. */
static LLVMValueRef cast_toward_zero(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x)
{
    int w = tl_gen_width_of(x), bits = tl_dtype_bits(to);
    LLVMValueRef near = tl_gen_cast(g, from, to, x, TL_ROUND_NEAREST, false);
    LLVMValueRef back = tl_gen_cast(g, to, TL_F64, near, TL_ROUND_NEAREST, false);
    LLVMValueRef exact = tl_gen_cast(g, from, TL_F64, x, TL_ROUND_NEAREST, false);
    LLVMValueRef over = LLVMBuildFCmp(g->b, LLVMRealOGT, call1(g, "llvm.fabs", back),
                                      call1(g, "llvm.fabs", exact), "");
    LLVMTypeRef word = tl_gen_vec(LLVMIntTypeInContext(g->c, (unsigned)bits), w);
    LLVMValueRef b = LLVMBuildBitCast(g->b, near, word, "");
    b = select_(g, over, LLVMBuildSub(g->b, b, like(b, 1), ""), b);
    return LLVMBuildBitCast(g->b, b, LLVMTypeOf(near), "");
}

/* In the ring floats are integers of their width (ir/ring_float.h). */
static LLVMValueRef ring_cast(TlGen *g, TlDtype from, TlDtype to, LLVMValueRef x)
{
    LLVMTypeRef t = tl_gen_vec(dtype_type(g, to), tl_gen_width_of(x));
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
    if (g->fn->ring && (tl_is_float(from) || tl_is_float(to)))
        return ring_cast(g, from, to, x);
    TL_ASSERT(tl_gen_rounds(from, to, round), "rounding mode %d on the CPU", round);
    if (round == TL_ROUND_ZERO && tl_is_float(to) && from != to)
        return cast_toward_zero(g, from, to, x);
    if (from == to)
        return x;
    if (tl_is_float(from)) {
        LLVMValueRef f = from == TL_F64 ? x : widen(g, from, x);
        if (to == TL_BOOL)
            return LLVMBuildFCmp(g->b, LLVMRealUNE, f, LLVMConstNull(LLVMTypeOf(f)), "");
        if (tl_is_int(to))
            return float_to_int(g, to, f);
        if (to == TL_F64)
            return LLVMBuildFPExt(g->b, f, tl_gen_vec(g->f64, tl_gen_width_of(f)), "");
        if (from == TL_F64)
            f = to == TL_F32 ? LLVMBuildFPTrunc(g->b, x, tl_gen_vec(g->f32, tl_gen_width_of(x)), "")
                             : f64_to_f32_odd(g, x);
        return narrow(g, to, f, nosat);
    }
    if (to == TL_BOOL)
        return LLVMBuildICmp(g->b, LLVMIntNE, x, like(x, 0), "");
    if (tl_is_float(to)) {
        if (from == TL_I4 || from == TL_U4)
            x = int_resize(g, from, from == TL_I4 ? TL_I16 : TL_U16, x),
            from = from == TL_I4 ? TL_I16 : TL_U16;
        if (from == TL_BOOL)
            x = int_resize(g, from, TL_U8, x), from = TL_U8;
        return int_to_float(g, from, to, x, nosat);
    }
    return int_resize(g, from, to, x);
}

/* ---- element operations ---- */

static LLVMValueRef safe_div(TlGen *g, bool rem, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef zero = LLVMBuildICmp(g->b, LLVMIntEQ, b, like(b, 0), "");
    LLVMValueRef d = select_(g, zero, like(b, 1), b);
    if (is_signed) { /* MIN / -1 = MIN, MIN % -1 = 0: as division by 1 */
        LLVMTypeRef t = LLVMTypeOf(a);
        unsigned bits = LLVMGetIntTypeWidth(
            LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t);
        LLVMValueRef min = LLVMBuildICmp(g->b, LLVMIntEQ, a, like(a, 1ull << (bits - 1)), "");
        LLVMValueRef neg = LLVMBuildICmp(g->b, LLVMIntEQ, b, like(b, UINT64_MAX), "");
        d = select_(g, LLVMBuildAnd(g->b, min, neg, ""), like(b, 1), d);
    }
    LLVMValueRef q =
        rem ? (is_signed ? LLVMBuildSRem(g->b, a, d, "") : LLVMBuildURem(g->b, a, d, ""))
            : (is_signed ? LLVMBuildSDiv(g->b, a, d, "") : LLVMBuildUDiv(g->b, a, d, ""));
    return select_(g, zero, like(a, 0), q);
}

/* NaN loses, -0 < +0. Taking the maximum in both operand orders and joining the bits settles equal
 * zeros. */
static LLVMValueRef float_extreme(TlGen *g, bool max, bool nan_wins, LLVMValueRef a, LLVMValueRef b)
{
    int n = LLVMTypeOf(a) == tl_gen_vec(g->f64, tl_gen_width_of(a)) ? 64 : 32;
    LLVMTypeRef f = n == 64 ? g->f64 : g->f32;
    LLVMRealPredicate p = max ? LLVMRealOGT : LLVMRealOLT;
    LLVMValueRef x = bits_of(g, select_(g, LLVMBuildFCmp(g->b, p, a, b, ""), a, b), n);
    LLVMValueRef y = bits_of(g, select_(g, LLVMBuildFCmp(g->b, p, b, a, ""), b, a), n);
    LLVMValueRef r =
        as_float(g, max ? LLVMBuildAnd(g->b, x, y, "") : LLVMBuildOr(g->b, x, y, ""), f);
    LLVMValueRef an = LLVMBuildFCmp(g->b, LLVMRealUNO, a, a, ""),
                 bn = LLVMBuildFCmp(g->b, LLVMRealUNO, b, b, "");
    if (nan_wins)
        return select_(g, an, a, select_(g, bn, b, r));
    return select_(g, an, b, select_(g, bn, a, r));
}

static LLVMValueRef int_extreme(TlGen *g, bool max, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    LLVMIntPredicate p =
        max ? (is_signed ? LLVMIntSGT : LLVMIntUGT) : (is_signed ? LLVMIntSLT : LLVMIntULT);
    return select_(g, LLVMBuildICmp(g->b, p, a, b, ""), a, b);
}

static LLVMValueRef mul_high(TlGen *g, TlDtype d, LLVMValueRef a, LLVMValueRef b)
{
    unsigned bits = (unsigned)tl_dtype_bits(d);
    LLVMTypeRef wide = tl_gen_vec(LLVMIntTypeInContext(g->c, 2 * bits), tl_gen_width_of(a));
    bool s = tl_is_signed(d);
    LLVMValueRef x = s ? LLVMBuildSExt(g->b, a, wide, "") : LLVMBuildZExt(g->b, a, wide, "");
    LLVMValueRef y = s ? LLVMBuildSExt(g->b, b, wide, "") : LLVMBuildZExt(g->b, b, wide, "");
    LLVMValueRef p = LLVMBuildMul(g->b, x, y, "");
    return LLVMBuildTrunc(g->b, LLVMBuildLShr(g->b, p, like(p, bits), ""), LLVMTypeOf(a), "");
}

/* operands and result are f32 or f64 */
static LLVMValueRef float_op(TlGen *g, TlOpcode opcode, LLVMValueRef *in)
{
    LLVMValueRef a = in[0], b = in[1];
    switch (opcode) {
    case TL_OP_ADD: return LLVMBuildFAdd(g->b, a, b, "");
    case TL_OP_SUB: return LLVMBuildFSub(g->b, a, b, "");
    case TL_OP_MUL: return LLVMBuildFMul(g->b, a, b, "");
    case TL_OP_DIV: return LLVMBuildFDiv(g->b, a, b, "");
    case TL_OP_REM: return g->fmod(g, a, b);
    case TL_OP_MIN: return float_extreme(g, false, false, a, b);
    case TL_OP_MAX: return float_extreme(g, true, false, a, b);
    case TL_OP_MIN_NAN: return float_extreme(g, false, true, a, b);
    case TL_OP_MAX_NAN: return float_extreme(g, true, true, a, b);
    case TL_OP_EXP2: return g->exp2(g, a);
    case TL_OP_SQRT: return call1(g, "llvm.sqrt", a);
    case TL_OP_FLOOR: return call1(g, "llvm.floor", a);
    case TL_OP_CEIL: return call1(g, "llvm.ceil", a);
    case TL_OP_TRUNC: return call1(g, "llvm.trunc", a);
    case TL_OP_RINT: return call1(g, "llvm.roundeven", a);
    case TL_OP_ROUND: return call1(g, "llvm.round", a);
    case TL_OP_FMA: {
        LLVMTypeRef t = LLVMTypeOf(a);
        return tl_gen_intrinsic(g, "llvm.fma", &t, 1, in, 3);
    }
    case TL_OP_EQ: return LLVMBuildFCmp(g->b, LLVMRealOEQ, a, b, "");
    case TL_OP_NE: return LLVMBuildFCmp(g->b, LLVMRealUNE, a, b, "");
    case TL_OP_LT: return LLVMBuildFCmp(g->b, LLVMRealOLT, a, b, "");
    case TL_OP_LE: return LLVMBuildFCmp(g->b, LLVMRealOLE, a, b, "");
    case TL_OP_GT: return LLVMBuildFCmp(g->b, LLVMRealOGT, a, b, "");
    case TL_OP_GE: return LLVMBuildFCmp(g->b, LLVMRealOGE, a, b, "");
    default: TL_UNREACHABLE("op %s on floats", tl_op_info(opcode)->text);
    }
}

static LLVMValueRef int_compare(TlGen *g, TlOpcode opcode, bool s, LLVMValueRef a, LLVMValueRef b)
{
    LLVMIntPredicate p = opcode == TL_OP_EQ   ? LLVMIntEQ
                         : opcode == TL_OP_NE ? LLVMIntNE
                         : opcode == TL_OP_LT ? (s ? LLVMIntSLT : LLVMIntULT)
                         : opcode == TL_OP_LE ? (s ? LLVMIntSLE : LLVMIntULE)
                         : opcode == TL_OP_GT ? (s ? LLVMIntSGT : LLVMIntUGT)
                                              : (s ? LLVMIntSGE : LLVMIntUGE);
    return LLVMBuildICmp(g->b, p, a, b, "");
}

static LLVMValueRef count_zeros(TlGen *g, const char *name, LLVMValueRef a)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    LLVMValueRef args[2] = {a, LLVMConstInt(g->i1, 0, 0)};
    return tl_gen_intrinsic(g, name, &t, 1, args, 2);
}

static LLVMValueRef int_op(TlGen *g, TlOpcode opcode, TlDtype d, LLVMValueRef *in)
{
    LLVMValueRef a = in[0], b = in[1];
    bool s = tl_is_signed(d);
    switch (opcode) {
    case TL_OP_ADD: return LLVMBuildAdd(g->b, a, b, "");
    case TL_OP_SUB: return LLVMBuildSub(g->b, a, b, "");
    case TL_OP_MUL: return LLVMBuildMul(g->b, a, b, "");
    case TL_OP_DIV: return safe_div(g, false, s, a, b);
    case TL_OP_REM: return safe_div(g, true, s, a, b);
    case TL_OP_MIN:
    case TL_OP_MIN_NAN: return int_extreme(g, false, s, a, b);
    case TL_OP_MAX:
    case TL_OP_MAX_NAN: return int_extreme(g, true, s, a, b);
    case TL_OP_AND: return LLVMBuildAnd(g->b, a, b, "");
    case TL_OP_OR: return LLVMBuildOr(g->b, a, b, "");
    case TL_OP_XOR: return LLVMBuildXor(g->b, a, b, "");
    case TL_OP_SHL:
        return LLVMBuildShl(g->b, a,
                            LLVMBuildAnd(g->b, b, like(b, (unsigned)tl_dtype_bits(d) - 1), ""), "");
    case TL_OP_SHR:
        b = LLVMBuildAnd(g->b, b, like(b, (unsigned)tl_dtype_bits(d) - 1), "");
        return s ? LLVMBuildAShr(g->b, a, b, "") : LLVMBuildLShr(g->b, a, b, "");
    case TL_OP_MULHI: return mul_high(g, d, a, b);
    case TL_OP_NEG: return LLVMBuildNeg(g->b, a, "");
    case TL_OP_NOT: return LLVMBuildNot(g->b, a, "");
    case TL_OP_ABS:
        return s ? select_(g, LLVMBuildICmp(g->b, LLVMIntSLT, a, like(a, 0), ""),
                           LLVMBuildNeg(g->b, a, ""), a)
                 : a;
    case TL_OP_POPCOUNT: return call1(g, "llvm.ctpop", a);
    case TL_OP_CLZ: return count_zeros(g, "llvm.ctlz", a);
    case TL_OP_CTZ: return count_zeros(g, "llvm.cttz", a);
    case TL_OP_EQ:
    case TL_OP_NE:
    case TL_OP_LT:
    case TL_OP_LE:
    case TL_OP_GT:
    case TL_OP_GE: return int_compare(g, opcode, s, a, b);
    default: TL_UNREACHABLE("op %s on integers", tl_op_info(opcode)->text);
    }
}

/* sign operations work on the bits, so that NaN payloads and signs are exact in every format */
static LLVMValueRef sign_op(TlGen *g, TlOpcode opcode, TlDtype d, LLVMValueRef a)
{
    int n = tl_dtype_bytes(d) * 8;
    LLVMValueRef b = bits_of(g, a, n);
    uint64_t sign = 1ull << (n - 1);
    b = opcode == TL_OP_NEG ? LLVMBuildXor(g->b, b, like(b, sign), "")
                            : LLVMBuildAnd(g->b, b, like(b, sign - 1), "");
    return LLVMBuildBitCast(g->b, b, LLVMTypeOf(a), "");
}

static LLVMValueRef bitcast(TlGen *g, const TlOp *op, LLVMValueRef x)
{
    const TlType *to = op->out[0]->type, *from = tl_in(op, 0)->type;
    x = tl_gen_to_mem(g, from, x);
    x = LLVMBuildBitCast(g->b, x, tl_gen_vec(tl_gen_mem_type(g, to), tl_gen_width_of(x)), "");
    return tl_gen_from_mem(g, to, x);
}

static LLVMValueRef ring_mix(TlGen *g, LLVMValueRef z)
{
    z = LLVMBuildXor(g->b, z, LLVMBuildLShr(g->b, z, like(z, 30), ""), "");
    z = LLVMBuildMul(g->b, z, like(z, TL_RING_MIX1), "");
    z = LLVMBuildXor(g->b, z, LLVMBuildLShr(g->b, z, like(z, 27), ""), "");
    z = LLVMBuildMul(g->b, z, like(z, TL_RING_MIX2), "");
    return LLVMBuildXor(g->b, z, LLVMBuildLShr(g->b, z, like(z, 31), ""), "");
}

/* tl_ring_hash on integers of the operands' width */
static LLVMValueRef ring_hash(TlGen *g, TlOpcode opcode, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef word = tl_gen_vec(g->i64, tl_gen_width_of(a));
    LLVMValueRef z = LLVMBuildZExt(g->b, a, word, "");
    z = ring_mix(g, LLVMBuildAdd(g->b, z, like(z, tl_ring_tag(opcode)), ""));
    if (b)
        z = LLVMBuildAdd(g->b, z, LLVMBuildZExt(g->b, b, word, ""), "");
    return LLVMBuildTrunc(g->b, ring_mix(g, z), LLVMTypeOf(a), "");
}

/* A float op in the ring; operands and result as their float types have them in registers. */
static LLVMValueRef ring_op(TlGen *g, TlOpcode opcode, TlDtype d, uint32_t n, LLVMValueRef *in)
{
    LLVMTypeRef type = LLVMTypeOf(in[0]);
    LLVMValueRef x[3] = {NULL, NULL, NULL}, r;
    for (uint32_t i = 0; i < n; i++)
        x[i] = bits_of(g, in[i], tl_dtype_bits(d));
    if (opcode == TL_OP_FMA)
        r = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, x[0], x[1], ""), x[2], "");
    else if (tl_ring_is_hash(opcode))
        r = ring_hash(g, opcode, x[0], x[1]);
    else
        r = int_op(g, opcode, tl_ring_dtype(d), x);
    bool compares = opcode >= TL_OP_EQ && opcode <= TL_OP_GE;
    return compares ? r : LLVMBuildBitCast(g->b, r, type, "");
}

LLVMValueRef tl_gen_multiply_add(TlGen *g, TlDtype d, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef c)
{
    LLVMValueRef in[3] = {a, b, c};
    LLVMTypeRef t = LLVMTypeOf(a);
    if (!tl_is_float(d))
        return LLVMBuildAdd(g->b, LLVMBuildMul(g->b, a, b, ""), c, "");
    return g->fn->ring ? ring_op(g, TL_OP_FMA, d, 3, in)
                       : tl_gen_intrinsic(g, "llvm.fma", &t, 1, in, 3);
}

LLVMValueRef tl_gen_elementwise(TlGen *g, const TlOp *op, LLVMValueRef *in)
{
    const TlType *type = tl_in(op, 0)->type;
    TlDtype d = type->dtype;
    switch (op->opcode) {
    case TL_OP_SELECT: return select_(g, in[0], in[1], in[2]);
    case TL_OP_CAST:
        return tl_gen_cast(g, d, op->out[0]->type->dtype, in[0],
                           (int)tl_attr_int(op, TL_ATTR_ROUND, TL_ROUND_NEAREST),
                           tl_attr_flag(op, TL_ATTR_NOSAT));
    case TL_OP_BITCAST: return bitcast(g, op, in[0]);
    default: break;
    }
    if (type->ptr)
        return int_compare(g, op->opcode, false, in[0], in[1]);
    if (!tl_is_float(d))
        return int_op(g, op->opcode, d, in);
    if (g->fn->ring)
        return ring_op(g, op->opcode, d, op->nin, in);
    if (op->opcode == TL_OP_NEG || op->opcode == TL_OP_ABS)
        return sign_op(g, op->opcode, d, in[0]);
    if (d == TL_F32 || d == TL_F64)
        return float_op(g, op->opcode, in);
    LLVMValueRef wide[3];
    for (uint32_t i = 0; i < op->nin; i++)
        wide[i] = widen(g, d, in[i]);
    LLVMValueRef r = float_op(g, op->opcode, wide);
    return op->out[0]->type->dtype == TL_BOOL ? r : narrow(g, d, r, false);
}

LLVMValueRef tl_gen_combine(TlGen *g, TlCombine kind, TlDtype d, LLVMValueRef a, LLVMValueRef b)
{
    static const TlOpcode OPS[] = {
        [TL_COMBINE_ADD] = TL_OP_ADD, [TL_COMBINE_MUL] = TL_OP_MUL, [TL_COMBINE_MAX] = TL_OP_MAX,
        [TL_COMBINE_MIN] = TL_OP_MIN, [TL_COMBINE_AND] = TL_OP_AND, [TL_COMBINE_OR] = TL_OP_OR,
        [TL_COMBINE_XOR] = TL_OP_XOR};
    TL_ASSERT(kind != TL_COMBINE_USER, "user combiner without region");
    TlOpcode op = OPS[kind];
    if (!tl_is_float(d)) {
        if (d == TL_BOOL && op == TL_OP_ADD)
            op = TL_OP_XOR;
        if (d == TL_BOOL && (op == TL_OP_MUL || op == TL_OP_MIN))
            op = TL_OP_AND;
        if (d == TL_BOOL && op == TL_OP_MAX)
            op = TL_OP_OR;
        LLVMValueRef in[2] = {a, b};
        return int_op(g, op, d, in);
    }
    LLVMValueRef in[2] = {a, b};
    if (g->fn->ring)
        return ring_op(g, op, d, 2, in);
    if (d != TL_F64)
        in[0] = widen(g, d, a), in[1] = widen(g, d, b);
    LLVMValueRef r;
    if (op == TL_OP_MAX || op == TL_OP_MIN) { /* the sign of a zero result is open here */
        LLVMTypeRef t = LLVMTypeOf(in[0]);
        r = tl_gen_intrinsic(g, op == TL_OP_MAX ? "llvm.maxnum" : "llvm.minnum", &t, 1, in, 2);
    } else {
        r = float_op(g, op, in);
    }
    return d == TL_F64 ? r : narrow(g, d, r, false);
}

bool tl_gen_op_is_scalar_only(const TlGen *g, const TlOp *op)
{
    return !g->fn->ring && op->opcode == TL_OP_REM && tl_is_float(tl_in(op, 0)->type->dtype);
}
