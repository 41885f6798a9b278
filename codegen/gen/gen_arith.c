/* Arithmetic on one element type, for scalars and vectors alike, on the CPU and in the threads of
 * a GPU: the meanings of tile IR in terms of LLVM IR, so that every bit agrees with the reference
 * interpreter. f16 and bf16 are widened to f32, computed and rounded once (TlGen.halves: but for
 * sums and products of f16, which are the same). Nothing traps and
 * nothing calls a library. */
#include <stdio.h>
#include <string.h>

#include "codegen/gen/gen_impl.h"
#include "ir/interp/ring_float.h"
#include "ir/numeric.h"

/* ---- element operations ---- */

/* a / d, no traps. Integers of 32 bits side by side are divided as f64, smaller ones as f32: CPUs
 * have no vectors of integer divisions, and as the quotient is an integer or differs from one by
 * 1 / d or more, which is more than its rounding, it is exact when it is cut. */
static LLVMValueRef quotient(TlGen *g, bool is_signed, LLVMValueRef a, LLVMValueRef d)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    int w = tl_gen_width_of(a);
    unsigned bits = w > 1 ? LLVMGetIntTypeWidth(LLVMGetElementType(t)) : 64;
    if (bits > 32 || LLVMIsConstant(d))
        return is_signed ? LLVMBuildSDiv(g->b, a, d, "") : LLVMBuildUDiv(g->b, a, d, "");
    LLVMTypeRef f = tl_gen_vec(bits > 16 ? g->f64 : g->f32, w);
    if (is_signed) {
        LLVMValueRef x = LLVMBuildSIToFP(g->b, a, f, ""), y = LLVMBuildSIToFP(g->b, d, f, "");
        return LLVMBuildFPToSI(g->b, LLVMBuildFDiv(g->b, x, y, ""), t, "");
    }
    LLVMValueRef x = LLVMBuildUIToFP(g->b, a, f, ""), y = LLVMBuildUIToFP(g->b, d, f, "");
    return LLVMBuildFPToUI(g->b, LLVMBuildFDiv(g->b, x, y, ""), t, "");
}

static LLVMValueRef safe_div(TlGen *g, bool rem, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    TL_ASSERT(LLVMTypeOf(a) == LLVMTypeOf(b), "a division of different types");
    LLVMValueRef zero = LLVMBuildICmp(g->b, LLVMIntEQ, b, like(b, 0), "");
    LLVMValueRef is_minus_one = LLVMBuildICmp(g->b, LLVMIntEQ, b, like(b, UINT64_MAX), "");
    if (LLVMIsConstant(b) && LLVMIsNull(zero) && LLVMIsNull(is_minus_one)) {
        LLVMValueRef q = quotient(g, is_signed, a, b);
        return rem ? LLVMBuildSub(g->b, a, LLVMBuildMul(g->b, q, b, ""), "") : q;
    }
    LLVMValueRef d = select_(g, zero, like(b, 1), b);
    if (is_signed) { /* MIN / -1 = MIN, MIN % -1 = 0: as division by 1 */
        LLVMTypeRef t = LLVMTypeOf(a);
        unsigned bits = LLVMGetIntTypeWidth(
            LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t);
        LLVMValueRef min = LLVMBuildICmp(g->b, LLVMIntEQ, a, like(a, 1ull << (bits - 1)), "");
        d = select_(g, LLVMBuildAnd(g->b, min, is_minus_one, ""), like(b, 1), d);
    }
    LLVMValueRef q = quotient(g, is_signed, a, d);
    if (rem)
        q = LLVMBuildSub(g->b, a, LLVMBuildMul(g->b, q, d, ""), "");
    return select_(g, zero, like(a, 0), q);
}

/* NaN wins, -0 < +0. */
static LLVMValueRef extreme_or_nan(TlGen *g, bool max, LLVMValueRef a, LLVMValueRef b)
{
    const TlFloatKinds zeros = TL_MAY_BE_PLUS_ZERO | TL_MAY_BE_MINUS_ZERO;
    LLVMValueRef r = tl_gen_extreme(g, max, a, b, zeros, zeros);
    LLVMValueRef nan = LLVMBuildFCmp(g->b, LLVMRealUNO, a, b, "");
    return select_(g, nan, LLVMBuildFAdd(g->b, a, b, ""), r);
}

LLVMValueRef tl_gen_int_extreme(TlGen *g, bool max, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    TL_ASSERT(LLVMTypeOf(a) == LLVMTypeOf(b), "extremes of different types");
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

/* Of floats, pointers (as unsigned integers), integers. */
static LLVMValueRef compare(TlGen *g, TlOpcode opcode, bool is_float, bool is_signed,
                            LLVMValueRef a, LLVMValueRef b)
{
    static const struct {
        LLVMRealPredicate of_float;
        LLVMIntPredicate of_int[2]; /* unsigned, signed */
    } ROWS[] = {[TL_OP_EQ] = {LLVMRealOEQ, {LLVMIntEQ, LLVMIntEQ}},
                [TL_OP_NE] = {LLVMRealUNE, {LLVMIntNE, LLVMIntNE}},
                [TL_OP_LT] = {LLVMRealOLT, {LLVMIntULT, LLVMIntSLT}},
                [TL_OP_LE] = {LLVMRealOLE, {LLVMIntULE, LLVMIntSLE}},
                [TL_OP_GT] = {LLVMRealOGT, {LLVMIntUGT, LLVMIntSGT}},
                [TL_OP_GE] = {LLVMRealOGE, {LLVMIntUGE, LLVMIntSGE}}};
    TL_ASSERT(opcode >= TL_OP_EQ && opcode <= TL_OP_GE, "%s compares nothing",
              tl_op_info(opcode)->text);
    return is_float ? LLVMBuildFCmp(g->b, ROWS[opcode].of_float, a, b, "")
                    : LLVMBuildICmp(g->b, ROWS[opcode].of_int[is_signed], a, b, "");
}

LLVMValueRef tl_gen_count_zeros(TlGen *g, const char *name, LLVMValueRef a)
{
    LLVMValueRef args[2] = {a, LLVMConstInt(g->i1, 0, 0)};
    return call_like(g, name, args, 2);
}

static LLVMValueRef shift(TlGen *g, TlOpcode opcode, TlDtype d, LLVMValueRef a, LLVMValueRef n)
{
    n = LLVMBuildAnd(g->b, n, like(n, (unsigned)tl_dtype_bits(d) - 1), "");
    if (opcode == TL_OP_SHL)
        return LLVMBuildShl(g->b, a, n, "");
    return tl_is_signed(d) ? LLVMBuildAShr(g->b, a, n, "") : LLVMBuildLShr(g->b, a, n, "");
}

static LLVMValueRef saturating(TlGen *g, bool add, bool is_signed, LLVMValueRef *in)
{
    static const char *const NAMES[2][2] = {{"llvm.usub.sat", "llvm.ssub.sat"},
                                            {"llvm.uadd.sat", "llvm.sadd.sat"}};
    return call_like(g, NAMES[add][is_signed], in, 2);
}

/* On integers of type d, or on f32 or f64. */
static LLVMValueRef portable_op(TlGen *g, TlOpcode opcode, TlDtype d, LLVMValueRef *in)
{
    LLVMValueRef a = in[0], b = in[1];
    bool f = tl_is_float(d), s = tl_is_signed(d);
    switch (opcode) {
    case TL_OP_ADD: return f ? LLVMBuildFAdd(g->b, a, b, "") : LLVMBuildAdd(g->b, a, b, "");
    case TL_OP_SUB: return f ? LLVMBuildFSub(g->b, a, b, "") : LLVMBuildSub(g->b, a, b, "");
    case TL_OP_MUL: return f ? LLVMBuildFMul(g->b, a, b, "") : LLVMBuildMul(g->b, a, b, "");
    case TL_OP_DIV: return f ? LLVMBuildFDiv(g->b, a, b, "") : safe_div(g, false, s, a, b);
    case TL_OP_REM: return f ? g->fmod(g, a, b) : safe_div(g, true, s, a, b);
    case TL_OP_MIN:
    case TL_OP_MAX: {
        bool max = opcode == TL_OP_MAX;
        return f ? tl_gen_extreme(g, max, a, b, TL_MAY_BE_ANY, TL_MAY_BE_ANY)
                 : tl_gen_int_extreme(g, max, s, a, b);
    }
    case TL_OP_MIN_NAN:
    case TL_OP_MAX_NAN: {
        bool max = opcode == TL_OP_MAX_NAN;
        return f ? extreme_or_nan(g, max, a, b) : tl_gen_int_extreme(g, max, s, a, b);
    }
    case TL_OP_AND: return LLVMBuildAnd(g->b, a, b, "");
    case TL_OP_OR: return LLVMBuildOr(g->b, a, b, "");
    case TL_OP_XOR: return LLVMBuildXor(g->b, a, b, "");
    case TL_OP_SHL:
    case TL_OP_SHR: return shift(g, opcode, d, a, b);
    case TL_OP_MULHI: return mul_high(g, d, a, b);
    case TL_OP_ADD_SAT: return saturating(g, true, s, in);
    case TL_OP_SUB_SAT: return saturating(g, false, s, in);
    case TL_OP_NEG: return LLVMBuildNeg(g->b, a, "");
    case TL_OP_NOT: return LLVMBuildNot(g->b, a, "");
    case TL_OP_ABS:
        return s ? select_(g, LLVMBuildICmp(g->b, LLVMIntSLT, a, like(a, 0), ""),
                           LLVMBuildNeg(g->b, a, ""), a)
                 : a;
    case TL_OP_POPCOUNT: return call1(g, "llvm.ctpop", a);
    case TL_OP_CLZ: return tl_gen_count_zeros(g, "llvm.ctlz", a);
    case TL_OP_CTZ: return tl_gen_count_zeros(g, "llvm.cttz", a);
    case TL_OP_EXP2: return tl_gen_exp2(g, a);
    case TL_OP_SQRT: return call1(g, "llvm.sqrt", a);
    case TL_OP_FLOOR: return call1(g, "llvm.floor", a);
    case TL_OP_CEIL: return call1(g, "llvm.ceil", a);
    case TL_OP_TRUNC: return call1(g, "llvm.trunc", a);
    case TL_OP_RINT: return call1(g, "llvm.roundeven", a);
    case TL_OP_ROUND: return call1(g, "llvm.round", a);
    case TL_OP_FMA: return call_like(g, "llvm.fma", in, 3);
    case TL_OP_EQ:
    case TL_OP_NE:
    case TL_OP_LT:
    case TL_OP_LE:
    case TL_OP_GT:
    case TL_OP_GE: return compare(g, opcode, f, s, a, b);
    case TL_OP_SELECT:
    case TL_OP_CAST:
    case TL_OP_BORDER:
    case TL_OP_BITCAST:
    case TL_OP_POINTER:
    case TL_OP_ADDRESS: /* tl_gen_elementwise */
    case TL_OP_PTR_ADD:
    case TL_OP_ASM: /* of back ends' own */
#define OP(ID, ...) case TL_OP_##ID:
#define ELEM(...)
#include "ir/ops.def"
    case TL_OP_COUNT: break;
    }
    TL_UNREACHABLE("op %s on %s", tl_op_info(opcode)->text, tl_dtype_name(d));
}

/* On f32 or f64. */
static LLVMValueRef float_op(TlGen *g, const TlOp *op, TlDtype d, LLVMValueRef *in)
{
    LLVMValueRef own = g->own ? g->own(g, op, in) : NULL;
    if (!own && g->kinds && (op->opcode == TL_OP_MIN || op->opcode == TL_OP_MAX))
        own = tl_gen_extreme(g, op->opcode == TL_OP_MAX, in[0], in[1], g->kinds[tl_in(op, 0)->id],
                             g->kinds[tl_in(op, 1)->id]);
    return own ? own : portable_op(g, op->opcode, d, in);
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

/* A float op in the ring; operands and result are in registers of their float types. */
static LLVMValueRef ring_op(TlGen *g, TlOpcode opcode, TlDtype d, uint32_t n, LLVMValueRef *in)
{
    TL_ASSERT(n > 0 && n <= 3, "%s of %u operands", tl_op_info(opcode)->text, n);
    LLVMTypeRef type = LLVMTypeOf(in[0]);
    LLVMValueRef x[3] = {NULL, NULL, NULL}, r;
    for (uint32_t i = 0; i < n; i++)
        x[i] = bits_of(g, in[i], tl_dtype_bits(d));
    if (opcode == TL_OP_FMA)
        r = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, x[0], x[1], ""), x[2], "");
    else if (tl_elem_work(opcode)->hashed)
        r = ring_hash(g, opcode, x[0], x[1]);
    else
        r = portable_op(g, opcode, tl_ring_dtype(d), x);
    bool compares = opcode >= TL_OP_EQ && opcode <= TL_OP_GE;
    return compares ? r : LLVMBuildBitCast(g->b, r, type, "");
}

LLVMValueRef tl_gen_multiply_add(TlGen *g, TlDtype d, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef c)
{
    LLVMValueRef in[3] = {a, b, c};
    if (!tl_is_float(d))
        return LLVMBuildAdd(g->b, LLVMBuildMul(g->b, a, b, ""), c, "");
    return g->fn->ring ? ring_op(g, TL_OP_FMA, d, 3, in) : call_like(g, "llvm.fma", in, 3);
}

/* Of two f16: rounding the result of f32 is the same, as that has over twice the bits. */
static bool is_sum_or_product(TlOpcode opcode)
{
    return opcode == TL_OP_ADD || opcode == TL_OP_SUB || opcode == TL_OP_MUL;
}

/* In 64 bits, as tl_border_position. */
static LLVMValueRef border(TlGen *g, const TlOp *op, LLVMValueRef x, LLVMValueRef extent)
{
    TlWay way = (TlWay)tl_attr_int(op, TL_ATTR_WAY, 0);
    bool is_signed = tl_is_signed(tl_in(op, 0)->type->dtype);
    LLVMValueRef one = like(extent, 1), period = extent, below = NULL;
    x = LLVMBuildIntCast2(g->b, x, LLVMTypeOf(extent), is_signed, "");
    if (way == TL_WAY_REFLECT)
        period = LLVMBuildSub(g->b, period, one, "");
    if (way != TL_WAY_WRAP)
        period = LLVMBuildShl(g->b, period, one, "");
    period = tl_gen_int_extreme(g, true, true, period, one);
    if (is_signed) {
        below = LLVMBuildICmp(g->b, LLVMIntSLT, x, like(x, 0), "");
        x = select_(g, below,
                    way == TL_WAY_REFLECT ? LLVMBuildNeg(g->b, x, "") : LLVMBuildNot(g->b, x, ""),
                    x);
    }
    LLVMValueRef r = LLVMBuildURem(g->b, x, period, "");
    if (way == TL_WAY_WRAP && !below)
        return r;
    if (way == TL_WAY_WRAP)
        return select_(g, below, LLVMBuildSub(g->b, LLVMBuildSub(g->b, extent, one, ""), r, ""), r);
    LLVMValueRef end = way == TL_WAY_REFLECT ? period : LLVMBuildSub(g->b, period, one, "");
    return tl_gen_int_extreme(g, false, true, r, LLVMBuildSub(g->b, end, r, ""));
}

LLVMValueRef tl_gen_elementwise(TlGen *g, const TlOp *op, LLVMValueRef *in)
{
    TL_ASSERT(op->nin > 0 && op->nout == 1, "%s of %u operands", tl_op_info(op->opcode)->text,
              op->nin);
    const TlType *type = tl_in(op, 0)->type;
    TlDtype d = type->dtype;
    if (op->opcode == TL_OP_SELECT)
        return select_(g, in[0], in[1], in[2]);
    if (op->opcode == TL_OP_CAST)
        return tl_gen_cast(g, d, op->out[0]->type->dtype, in[0],
                           (int)tl_attr_int(op, TL_ATTR_ROUND, TL_ROUND_NEAREST),
                           tl_attr_flag(op, TL_ATTR_NOSAT));
    if (op->opcode == TL_OP_BITCAST)
        return bitcast(g, op, in[0]);
    if (op->opcode == TL_OP_BORDER)
        return border(g, op, in[0], in[1]);
    if (op->opcode == TL_OP_POINTER)
        return LLVMBuildIntToPtr(g->b, in[0], tl_gen_vec(g->ptr, tl_gen_width_of(in[0])), "");
    if (op->opcode == TL_OP_ADDRESS)
        return LLVMBuildPtrToInt(g->b, in[0], tl_gen_vec(g->i64, tl_gen_width_of(in[0])), "");
    if (type->ptr)
        return compare(g, op->opcode, false, false, in[0], in[1]);
    if (!tl_is_float(d))
        return portable_op(g, op->opcode, d, in);
    if (g->fn->ring)
        return ring_op(g, op->opcode, d, op->nin, in);
    if (op->opcode == TL_OP_NEG || op->opcode == TL_OP_ABS)
        return sign_op(g, op->opcode, d, in[0]);
    if (d == TL_F32 || d == TL_F64)
        return float_op(g, op, d, in);
    if (d == TL_F16 && g->halves && is_sum_or_product(op->opcode))
        return portable_op(g, op->opcode, d, in);
    LLVMValueRef wide[3];
    for (uint32_t i = 0; i < op->nin; i++)
        wide[i] = tl_gen_widen(g, d, in[i]);
    LLVMValueRef r = float_op(g, op, d, wide);
    return op->out[0]->type->dtype == TL_BOOL ? r : tl_gen_narrow(g, d, r, false);
}

LLVMValueRef tl_gen_again(TlGen *g, const TlOp *op, LLVMValueRef *in, TlFloatKinds of_a,
                          TlFloatKinds of_b)
{
    TlDtype d = op->out[0]->type->dtype;
    bool max = op->opcode == TL_OP_MAX;
    if ((!max && op->opcode != TL_OP_MIN) || !tl_is_float(d) || g->fn->ring || g->own)
        return tl_gen_elementwise(g, op, in);
    if (d == TL_F32 || d == TL_F64)
        return tl_gen_extreme(g, max, in[0], in[1], of_a, of_b);
    LLVMValueRef a = tl_gen_widen(g, d, in[0]), b = tl_gen_widen(g, d, in[1]);
    return tl_gen_narrow(g, d, tl_gen_extreme(g, max, a, b, of_a, of_b), false);
}

LLVMValueRef tl_gen_combine(TlGen *g, TlCombine kind, TlDtype d, LLVMValueRef a, LLVMValueRef b)
{
    TL_ASSERT(kind != TL_COMBINE_USER && LLVMTypeOf(a) == LLVMTypeOf(b),
              "combiner %d of different types", (int)kind);
    TlOpcode op = tl_combine_opcode(kind);
    LLVMValueRef in[2] = {a, b};
    if (!tl_is_float(d)) {
        if (d == TL_BOOL && op == TL_OP_ADD)
            op = TL_OP_XOR;
        if (d == TL_BOOL && (op == TL_OP_MUL || op == TL_OP_MIN))
            op = TL_OP_AND;
        if (d == TL_BOOL && op == TL_OP_MAX)
            op = TL_OP_OR;
        return portable_op(g, op, d, in);
    }
    if (g->fn->ring)
        return ring_op(g, op, d, 2, in);
    if (d != TL_F64)
        in[0] = tl_gen_widen(g, d, a), in[1] = tl_gen_widen(g, d, b);
    /* the sign of a zero extreme is not specified here */
    LLVMValueRef r = op == TL_OP_MAX   ? call_like(g, "llvm.maxnum", in, 2)
                     : op == TL_OP_MIN ? call_like(g, "llvm.minnum", in, 2)
                                       : portable_op(g, op, d, in);
    return d == TL_F64 ? r : tl_gen_narrow(g, d, r, false);
}

bool tl_gen_op_is_scalar_only(const TlFn *fn, const TlOp *op)
{
    return !fn->ring && op->opcode == TL_OP_REM && tl_is_float(tl_in(op, 0)->type->dtype);
}
