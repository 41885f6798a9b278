/* What a host CPU has no instruction for, spelled out.
 *
 * LLVM makes a library call of an operation that a CPU lacks (`__extendhfsf2`, `fmaf`), or of one
 * that its own passes have made out of others: fptrunc(maxnum(fpext a, fpext b)) becomes maxnum on
 * f16, and that a call of fmaxf for each element. A kernel's object can call nobody. So, after
 * LLVM's passes:
 *
 *   arithmetic of f16   in f32, then rounded: the same bits, as f32 has more than twice the digits;
 *                       comparisons, rounding to integers, minima and maxima likewise
 *   f16 <-> f32         by integers, where there is no instruction for that
 *   f64 -> f16          through an f32 that is rounded to odd
 *   fma of f16, f32     in f64: the product is exact, the sum is rounded to odd
 *   fma of f64          a call of the runtime, one element after the other
 *
 * Rounded to odd: the last bit is set where the result is not exact. A second rounding, to a format
 * with at least two digits less, then gives what one rounding would have given. */
#include <stddef.h>
#include <string.h>

#include "codegen/gen/gen_impl.h"
#include "codegen/workaround/workaround.h"
#include "runtime/contract/tile_image.h"

typedef struct Host {
    TlGen g;
    bool conversions, halves, fma; /* instructions that the CPU has: f16 <-> f32, all of f16 */
    bool services;
    LLVMValueRef at; /* what is being replaced */
} Host;

/* ---- long expansions in quick code ---- */

typedef LLVMValueRef Expansion(Host *, LLVMValueRef *operands);

static LLVMValueRef make_function(Host *h, const char *name, LLVMTypeRef type, Expansion *body)
{
    TlGen *g = &h->g;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMValueRef f = LLVMAddFunction(g->l->module, name, type), before = h->at, params[3];
    TL_ASSERT(LLVMCountParams(f) <= 3, "'%s' has %u operands", name, LLVMCountParams(f));
    LLVMGetParams(f, params);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    tl_llvm_set_attribute(g->l, f, LLVMAttributeFunctionIndex, "nounwind", 0);
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->c, f, ""));
    LLVMBuildRet(g->b, body(h, params));
    LLVMPositionBuilder(g->b, here, before);
    return f;
}

/* Quick code is for kernels with very many operations, of which LLVM would take as long for each of
 * these as for twenty others: there, each is a call. */
static LLVMValueRef expand(Host *h, const char *name, LLVMValueRef *in, unsigned n, LLVMTypeRef to,
                           Expansion *body)
{
    if (!h->g.l->quick)
        return body(h, in);
    LLVMTypeRef params[3] = {LLVMTypeOf(in[0]), LLVMTypeOf(in[0]), LLVMTypeOf(in[0])};
    LLVMTypeRef type = LLVMFunctionType(to, params, n, 0);
    name = tl_format(h->g.arena, "%s.%d", name, tl_gen_width_of(in[0]));
    LLVMValueRef f = LLVMGetNamedFunction(h->g.l->module, name);
    f = f ? f : make_function(h, name, type, body);
    return LLVMBuildCall2(h->g.b, type, f, in, n, "");
}

/* ---- f16 <-> f32 ---- */

/* The bits of f16 in i16, as an f32. */
static LLVMValueRef widen_half(Host *h, LLVMValueRef *x)
{
    TlGen *g = &h->g;
    int w = tl_gen_width_of(*x);
    LLVMValueRef b = LLVMBuildZExt(g->b, *x, tl_gen_vec(g->i32, w), "");
    LLVMValueRef mag = LLVMBuildAnd(g->b, b, like(b, 0x7FFF), "");
    LLVMValueRef sign =
        LLVMBuildShl(g->b, LLVMBuildAnd(g->b, b, like(b, 0x8000), ""), like(b, 16), "");
    LLVMValueRef placed = LLVMBuildShl(g->b, mag, like(b, 13), "");
    /* an f32 with the exponent bias of f16; times 2^112 is exact, also of subnormals */
    LLVMValueRef scaled = LLVMBuildFMul(g->b, as_float(g, placed, g->f32),
                                        tl_gen_splat_const(LLVMConstReal(g->f32, 0x1p112), w), "");
    LLVMValueRef special = LLVMBuildOr(g->b, placed, like(b, 0x7F800000), "");
    LLVMValueRef quiet = LLVMBuildOr(g->b, special, like(b, 0x00400000), "");
    LLVMValueRef r = select_(g, LLVMBuildICmp(g->b, LLVMIntUGE, mag, like(b, 0x7C00), ""), special,
                             bits_of(g, scaled, 32));
    r = select_(g, LLVMBuildICmp(g->b, LLVMIntUGT, mag, like(b, 0x7C00), ""), quiet, r);
    return as_float(g, LLVMBuildOr(g->b, r, sign, ""), g->f32);
}

/* And back. */
static LLVMValueRef narrow_to_half(Host *h, LLVMValueRef *x)
{
    TlGen *g = &h->g;
    int w = tl_gen_width_of(*x);
    LLVMValueRef b = bits_of(g, *x, 32), mag = LLVMBuildAnd(g->b, b, like(b, 0x7FFFFFFF), "");
    LLVMValueRef sign =
        LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, b, like(b, 16), ""), like(b, 0x8000), "");
    /* normal numbers: half an ulp less one, and the last bit kept; then cut, and re-biased */
    LLVMValueRef cut = LLVMBuildLShr(g->b, mag, like(b, 13), "");
    LLVMValueRef last = LLVMBuildAnd(g->b, cut, like(b, 1), "");
    LLVMValueRef normal = LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, mag, like(b, 0xFFF), ""), last, "");
    normal = LLVMBuildSub(g->b, LLVMBuildLShr(g->b, normal, like(b, 13), ""),
                          like(b, (127 - 15) << 10), "");
    /* overflow, in which all bits above the greatest finite number become infinity */
    normal = select_(g, LLVMBuildICmp(g->b, LLVMIntUGT, normal, like(b, 0x7C00), ""),
                     like(b, 0x7C00), normal);
    /* subnormal ones: adding 1/2 puts the last kept bit at the end of the word */
    LLVMValueRef half = tl_gen_splat_const(LLVMConstReal(g->f32, 0.5), w);
    LLVMValueRef sum = LLVMBuildFAdd(g->b, as_float(g, mag, g->f32), half, "");
    LLVMValueRef tiny = LLVMBuildSub(g->b, bits_of(g, sum, 32), bits_of(g, half, 32), "");
    LLVMValueRef nan =
        LLVMBuildOr(g->b, LLVMBuildAnd(g->b, cut, like(b, 0x3FF), ""), like(b, 0x7E00), "");
    LLVMValueRef r = select_(g, LLVMBuildICmp(g->b, LLVMIntULT, mag, like(b, (127 - 14) << 23), ""),
                             tiny, normal);
    r = select_(g, LLVMBuildICmp(g->b, LLVMIntUGT, mag, like(b, 0x7F800000), ""), nan, r);
    return LLVMBuildTrunc(g->b, LLVMBuildOr(g->b, r, sign, ""), tl_gen_vec(g->i16, w), "");
}

static LLVMValueRef half_to_f32(Host *h, LLVMValueRef x)
{
    TlGen *g = &h->g;
    LLVMTypeRef to = tl_gen_vec(g->f32, tl_gen_width_of(x));
    if (h->conversions)
        return LLVMBuildFPExt(g->b, x, to, "");
    x = bits_of(g, x, 16);
    return expand(h, "f16.to.f32", &x, 1, to, widen_half);
}

static LLVMValueRef f32_to_half(Host *h, LLVMValueRef x)
{
    TlGen *g = &h->g;
    int w = tl_gen_width_of(x);
    if (h->conversions)
        return LLVMBuildFPTrunc(g->b, x, tl_gen_vec(g->f16, w), "");
    x = expand(h, "f32.to.f16", &x, 1, tl_gen_vec(g->i16, w), narrow_to_half);
    return as_float(g, x, g->f16);
}

static LLVMValueRef to_f64(Host *h, LLVMValueRef x)
{
    TlGen *g = &h->g;
    LLVMTypeRef t = LLVMTypeOf(x);
    if (LLVMGetTypeKind(LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t) ==
        LLVMHalfTypeKind)
        x = half_to_f32(h, x);
    return LLVMBuildFPExt(g->b, x, tl_gen_vec(g->f64, tl_gen_width_of(x)), "");
}

static LLVMValueRef f64_to_half(Host *h, LLVMValueRef x)
{
    return f32_to_half(h, tl_gen_f64_to_f32_odd(&h->g, x));
}

/* ---- fused multiply-add ---- */

/* a + b of f64, rounded to odd; no bits are lost where the numbers came from f32. */
static LLVMValueRef add_to_odd(TlGen *g, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(a)), s = LLVMBuildFAdd(g->b, a, b, "");
    LLVMValueRef part = LLVMBuildFSub(g->b, s, a, "");
    LLVMValueRef from_a = LLVMBuildFSub(g->b, a, LLVMBuildFSub(g->b, s, part, ""), "");
    LLVMValueRef from_b = LLVMBuildFSub(g->b, b, part, "");
    LLVMValueRef error = LLVMBuildFAdd(g->b, from_a, from_b, ""); /* a + b - s, exactly (Knuth) */
    LLVMValueRef bits = bits_of(g, s, 64);
    LLVMValueRef away =
        LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildFCmp(g->b, LLVMRealOLT, error, zero, ""),
                      LLVMBuildFCmp(g->b, LLVMRealOLT, s, zero, ""), "");
    LLVMValueRef next =
        LLVMBuildAdd(g->b, bits, select_(g, away, like(bits, 1), like(bits, UINT64_MAX)), "");
    LLVMValueRef even = LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildAnd(g->b, bits, like(bits, 1), ""),
                                      like(bits, 0), "");
    LLVMValueRef inexact =
        LLVMBuildFCmp(g->b, LLVMRealONE, error, zero, ""); /* not of infinities */
    LLVMValueRef odd = select_(g, LLVMBuildAnd(g->b, even, inexact, ""), next, bits);
    return as_float(g, odd, g->f64);
}

static LLVMValueRef fma_in_f64(Host *h, LLVMValueRef *in)
{
    TlGen *g = &h->g;
    LLVMValueRef product = LLVMBuildFMul(g->b, to_f64(h, in[0]), to_f64(h, in[1]), "");
    return add_to_odd(g, product, to_f64(h, in[2]));
}

static LLVMValueRef fma_of_f32(Host *h, LLVMValueRef *in)
{
    return LLVMBuildFPTrunc(h->g.b, fma_in_f64(h, in), LLVMTypeOf(in[0]), "");
}

/* The runtime's function for it, and an operand to put before the others, if any. */
static LLVMValueRef runtime_fma(Host *h, LLVMTypeRef type)
{
    TlGen *g = &h->g;
    static const char NAME[] = "tl_emu_host_fma";
    if (!h->services) {
        LLVMValueRef f = LLVMGetNamedFunction(g->l->module, NAME);
        return f ? f : LLVMAddFunction(g->l->module, NAME, type);
    }
    LLVMValueRef at = tl_gen_int(g, offsetof(tile_cpu_ctx, services)),
                 ctx = LLVMGetParam(g->function, 0);
    LLVMValueRef table =
        LLVMBuildLoad2(g->b, g->ptr, LLVMBuildInBoundsGEP2(g->b, g->i8, ctx, &at, 1, ""), "");
    at = tl_gen_int(g, offsetof(tile_cpu_services, fma));
    return LLVMBuildLoad2(g->b, g->ptr, LLVMBuildInBoundsGEP2(g->b, g->i8, table, &at, 1, ""), "");
}

static LLVMValueRef fma_by_runtime(Host *h, LLVMValueRef *in)
{
    TlGen *g = &h->g;
    LLVMTypeRef params[3] = {g->f64, g->f64, g->f64}, type = LLVMFunctionType(g->f64, params, 3, 0);
    LLVMValueRef f = runtime_fma(h, type), r = LLVMGetPoison(LLVMTypeOf(in[0]));
    int w = tl_gen_width_of(in[0]);
    if (LLVMGetTypeKind(LLVMTypeOf(in[0])) != LLVMVectorTypeKind)
        return LLVMBuildCall2(g->b, type, f, in, 3, "");
    for (int i = 0; i < w; i++) {
        LLVMValueRef x[3], lane = LLVMConstInt(g->i32, (unsigned)i, 0);
        for (int k = 0; k < 3; k++)
            x[k] = LLVMBuildExtractElement(g->b, in[k], lane, "");
        r = LLVMBuildInsertElement(g->b, r, LLVMBuildCall2(g->b, type, f, x, 3, ""), lane, "");
    }
    return r;
}

/* ---- what an instruction becomes ---- */

static LLVMTypeKind kind_of(LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMTypeKind k = LLVMGetTypeKind(t);
    return k == LLVMVectorTypeKind ? LLVMGetTypeKind(LLVMGetElementType(t)) : k;
}

static bool is_half(LLVMValueRef x)
{
    return kind_of(x) == LLVMHalfTypeKind;
}

/* Sign operations change no other bit, not even of a NaN. Each is a select on the sign: LLVM would
 * turn plain masks of a scalar's bits into an operation on f16 again, and that into a call. */
static LLVMValueRef with_sign(Host *h, LLVMValueRef x, LLVMValueRef minus, bool other)
{
    TlGen *g = &h->g;
    LLVMValueRef b = bits_of(g, x, 16);
    LLVMValueRef set = LLVMBuildOr(g->b, b, like(b, 0x8000), "");
    LLVMValueRef clear = LLVMBuildAnd(g->b, b, like(b, 0x7FFF), "");
    minus = LLVMBuildICmp(g->b, LLVMIntSLT, bits_of(g, minus, 16), like(b, 0), "");
    return as_float(g, other ? select_(g, minus, clear, set) : select_(g, minus, set, clear),
                    g->f16);
}

static LLVMValueRef half_abs(Host *h, LLVMValueRef x)
{
    TlGen *g = &h->g;
    LLVMValueRef b = bits_of(g, x, 16), clear = LLVMBuildAnd(g->b, b, like(b, 0x7FFF), "");
    LLVMValueRef minus = LLVMBuildICmp(g->b, LLVMIntSLT, b, like(b, 0), "");
    return as_float(g, select_(g, minus, clear, b), g->f16);
}

/* The intrinsic's name without types: "llvm.fma"; NULL: it is no intrinsic. */
static const char *intrinsic_of(LLVMValueRef call)
{
    static const char *const NAMES[] = {
        "llvm.fma",     "llvm.fmuladd",    "llvm.fabs",       "llvm.copysign",    "llvm.sqrt",
        "llvm.floor",   "llvm.ceil",       "llvm.trunc",      "llvm.rint",        "llvm.nearbyint",
        "llvm.round",   "llvm.roundeven",  "llvm.minnum",     "llvm.maxnum",      "llvm.minimum",
        "llvm.maximum", "llvm.fptosi.sat", "llvm.fptoui.sat", "llvm.canonicalize"};
    size_t size;
    LLVMValueRef f = LLVMGetCalledValue(call);
    if (!LLVMIsAFunction(f))
        return NULL;
    const char *name = LLVMGetValueName2(f, &size);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        size_t n = strlen(NAMES[i]);
        if (size > n && !strncmp(name, NAMES[i], n) && name[n] == '.')
            return NAMES[i];
    }
    return NULL;
}

static bool is_fma(const char *name)
{
    return !strcmp(name, "llvm.fma") || !strcmp(name, "llvm.fmuladd");
}

static LLVMValueRef replace_fma(Host *h, LLVMValueRef *in)
{
    TL_ASSERT(in[0] && in[1] && in[2], "fma of fewer than three");
    if (is_half(in[0]))
        return f64_to_half(h, fma_in_f64(h, in));
    if (kind_of(in[0]) == LLVMDoubleTypeKind)
        return fma_by_runtime(h, in);
    return expand(h, "fma.f32", in, 3, LLVMTypeOf(in[0]), fma_of_f32);
}

/* NULL: the call stays. */
static LLVMValueRef replace_call(Host *h, LLVMValueRef x)
{
    TlGen *g = &h->g;
    LLVMValueRef in[3], wide[3];
    unsigned n = LLVMGetNumArgOperands(x);
    const char *name = intrinsic_of(x);
    if (!name || n < 1 || n > 3)
        return NULL;
    for (unsigned i = 0; i < n; i++)
        in[i] = LLVMGetArgOperand(x, i);
    bool half = !h->halves && is_half(in[0]);
    if (is_fma(name))
        return half || !h->fma ? replace_fma(h, in) : NULL;
    if (!half)
        return NULL;
    if (!strcmp(name, "llvm.fabs"))
        return half_abs(h, in[0]);
    if (!strcmp(name, "llvm.copysign"))
        return with_sign(h, in[0], in[1], false);
    for (unsigned i = 0; i < n; i++)
        wide[i] = half_to_f32(h, in[i]);
    LLVMTypeRef types[2] = {LLVMTypeOf(x), LLVMTypeOf(wide[0])};
    if (!is_half(x)) /* to an integer */
        return tl_gen_intrinsic(g, name, types, 2, wide, n);
    return f32_to_half(h, tl_gen_intrinsic(g, name, &types[1], 1, wide, n));
}

static LLVMValueRef replace_arithmetic(Host *h, LLVMValueRef x, LLVMOpcode op)
{
    LLVMValueRef a = half_to_f32(h, LLVMGetOperand(x, 0)), b = half_to_f32(h, LLVMGetOperand(x, 1));
    return f32_to_half(h, LLVMBuildBinOp(h->g.b, op, a, b, ""));
}

/* An integer to f16; in f64 integers of up to 53 bits are exact. */
static LLVMValueRef int_to_half(Host *h, LLVMValueRef x, LLVMOpcode op)
{
    TlGen *g = &h->g;
    LLVMValueRef from = LLVMGetOperand(x, 0);
    LLVMTypeRef f64 = tl_gen_vec(g->f64, tl_gen_width_of(from));
    return f64_to_half(h, LLVMBuildCast(g->b, op, from, f64, ""));
}

static LLVMValueRef convert_half(Host *h, LLVMValueRef x, LLVMOpcode op)
{
    TlGen *g = &h->g;
    LLVMValueRef from = LLVMGetOperand(x, 0);
    if (op == LLVMFPExt && is_half(from))
        return kind_of(x) == LLVMDoubleTypeKind ? to_f64(h, from) : half_to_f32(h, from);
    if (op == LLVMFPTrunc && is_half(x))
        return kind_of(from) == LLVMDoubleTypeKind ? f64_to_half(h, from) : f32_to_half(h, from);
    if ((op == LLVMSIToFP || op == LLVMUIToFP) && is_half(x))
        return int_to_half(h, x, op);
    if ((op == LLVMFPToSI || op == LLVMFPToUI) && is_half(from))
        return LLVMBuildCast(g->b, op, half_to_f32(h, from), LLVMTypeOf(x), "");
    return NULL;
}

/* The replacement for the instruction, inserted before it; NULL: the instruction stays. */
static LLVMValueRef replacement(Host *h, LLVMValueRef x)
{
    TlGen *g = &h->g;
    LLVMOpcode op = LLVMGetInstructionOpcode(x);
    if (op == LLVMCall)
        return replace_call(h, x);
    if (h->halves)
        return NULL;
    switch (op) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv: return is_half(x) ? replace_arithmetic(h, x, op) : NULL;
    case LLVMFNeg:
        return is_half(x) ? with_sign(h, LLVMGetOperand(x, 0), LLVMGetOperand(x, 0), true) : NULL;
    case LLVMFCmp:
        if (!is_half(LLVMGetOperand(x, 0)))
            return NULL;
        return LLVMBuildFCmp(g->b, LLVMGetFCmpPredicate(x), half_to_f32(h, LLVMGetOperand(x, 0)),
                             half_to_f32(h, LLVMGetOperand(x, 1)), "");
    case LLVMFPExt:
    case LLVMFPTrunc:
    case LLVMSIToFP:
    case LLVMUIToFP:
    case LLVMFPToSI:
    case LLVMFPToUI: return convert_half(h, x, op);
    default: return NULL;
    }
}

/* Conversions for which the CPU has instructions are left alone. */
static bool is_fine(const Host *h, LLVMValueRef x)
{
    LLVMOpcode op = LLVMGetInstructionOpcode(x);
    if (!h->conversions || (op != LLVMFPExt && op != LLVMFPTrunc))
        return false;
    return kind_of(x) == LLVMFloatTypeKind || kind_of(LLVMGetOperand(x, 0)) == LLVMFloatTypeKind;
}

static void complete(Host *h, LLVMValueRef function)
{
    h->g.function = function;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b), next; x; x = next) {
            next = LLVMGetNextInstruction(x);
            if (is_fine(h, x))
                continue;
            h->at = x;
            LLVMPositionBuilderBefore(h->g.b, x);
            LLVMValueRef r = replacement(h, x);
            if (!r)
                continue;
            LLVMReplaceAllUsesWith(x, r);
            LLVMInstructionEraseFromParent(x);
        }
}

void tl_host_complete(TlLlvm *l, bool services)
{
    TL_ASSERT(l->module && l->builder, "no module to complete");
    bool arm = !strncmp(LLVMGetTarget(l->module), "aarch64", 7);
    Host h = {.conversions = arm || tl_llvm_has_feature(l, "f16c"),
              .halves = tl_llvm_has_feature(l, arm ? "fullfp16" : "avx512fp16"),
              .fma = arm || tl_llvm_has_feature(l, "fma"),
              .services = services};
    tl_gen_init(&h.g, l, NULL, l->arena);
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            complete(&h, f);
}
