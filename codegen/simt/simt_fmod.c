/* Remainder of floats in the SIMT lowering: exact, by subtraction.
 *
 * With a = |x|, b = |y|, both finite, b > 0:
 *   t = b; while (t <= a - t) t += t;                     now t = b * 2^k <= a < 2t, or a < b
 *   for (;;) { if (a >= t) a -= t; if (t == b) break; t *= 0.5; }
 * Each step is exact: t only changes its exponent, and t <= a < 2t makes a - t exact (Sterbenz). In
 * the first loop's test a - t may round, but never across t. Threads of a warp may take different
 * numbers of steps; nothing in here is collective. */
#include <string.h>

#include "codegen/simt/simt.h"

static LLVMValueRef call(TlSimt *g, const char *name, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMValueRef args[2] = {x, y};
    return tl_gen_intrinsic(&g->gen, name, &t, 1, args, y ? 2 : 1);
}

static LLVMValueRef compare(TlSimt *g, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFCmp(g->b, p, a, b, "");
}

/* The largest b * 2^k <= a; b when a < b. */
static LLVMValueRef scale_up(TlSimt *g, LLVMValueRef a, LLVMValueRef b)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), loop = tl_gen_block(&g->gen, "up"),
                      done = tl_gen_block(&g->gen, "scaled");
    LLVMBuildBr(g->b, loop);
    LLVMPositionBuilderAtEnd(g->b, loop);
    LLVMValueRef t = LLVMBuildPhi(g->b, LLVMTypeOf(a), "");
    LLVMValueRef more = compare(g, LLVMRealOLE, t, LLVMBuildFSub(g->b, a, t, ""));
    LLVMValueRef twice = LLVMBuildFAdd(g->b, t, t, "");
    LLVMAddIncoming(t, &b, &from, 1);
    LLVMAddIncoming(t, &twice, &loop, 1);
    LLVMBuildCondBr(g->b, more, loop, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    return t;
}

/* a mod b, from t on down. */
static LLVMValueRef subtract_down(TlSimt *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef t)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), loop = tl_gen_block(&g->gen, "down"),
                      done = tl_gen_block(&g->gen, "reduced");
    LLVMBuildBr(g->b, loop);
    LLVMPositionBuilderAtEnd(g->b, loop);
    LLVMValueRef rest = LLVMBuildPhi(g->b, type, ""), step = LLVMBuildPhi(g->b, type, "");
    LLVMValueRef fits = compare(g, LLVMRealOGE, rest, step);
    LLVMValueRef next = LLVMBuildSelect(g->b, fits, LLVMBuildFSub(g->b, rest, step, ""), rest, "");
    LLVMValueRef half = LLVMBuildFMul(g->b, step, LLVMConstReal(type, 0.5), "");
    LLVMAddIncoming(rest, &a, &from, 1);
    LLVMAddIncoming(rest, &next, &loop, 1);
    LLVMAddIncoming(step, &t, &from, 1);
    LLVMAddIncoming(step, &half, &loop, 1);
    LLVMBuildCondBr(g->b, compare(g, LLVMRealOGT, step, b), loop, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    return next;
}

LLVMValueRef tl_simt_fmod(TlGen *gen, LLVMValueRef x, LLVMValueRef y)
{
    TL_ASSERT(LLVMTypeOf(x) == LLVMTypeOf(y), "a remainder of different types");
    TlSimt *g = (TlSimt *)gen; /* gen is its first member */
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef zero = LLVMConstNull(type), one = LLVMConstReal(type, 1.0),
                 inf = LLVMConstRealOfString(type, "inf"), nan = LLVMConstRealOfString(type, "nan");
    LLVMValueRef a = call(g, "llvm.fabs", x, NULL), b = call(g, "llvm.fabs", y, NULL);
    LLVMValueRef defined =
        LLVMBuildAnd(g->b, compare(g, LLVMRealOLT, a, inf), compare(g, LLVMRealOGT, b, zero), "");
    LLVMValueRef far = compare(g, LLVMRealOEQ, b, inf);
    LLVMValueRef easy = LLVMBuildOr(g->b, far, LLVMBuildNot(g->b, defined, ""), "");
    LLVMValueRef from = LLVMBuildSelect(g->b, easy, zero, a, ""),
                 by = LLVMBuildSelect(g->b, easy, one, b, "");
    LLVMValueRef r = subtract_down(g, from, by, scale_up(g, from, by));
    r = call(g, "llvm.copysign", LLVMBuildSelect(g->b, far, a, r, ""), x);
    return LLVMBuildSelect(g->b, defined, r, nan, "");
}
