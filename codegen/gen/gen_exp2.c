/* 2^x of f32 where there is no instruction for it: the arithmetic of std.math's exp2
 * (stdlib/math.tile has the reasons), bit for bit. Scalars and vectors. */
#include "codegen/gen/gen.h"

/* c in each lane of the type of x, or the integers as wide. */
static LLVMValueRef splat(LLVMValueRef x, LLVMValueRef c)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMValueRef all[64];
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return c;
    unsigned n = LLVMGetVectorSize(t);
    TL_ASSERT(n <= 64, "a vector of %u", n);
    for (unsigned i = 0; i < n; i++)
        all[i] = c;
    return LLVMConstVector(all, n);
}

static LLVMValueRef real(TlGen *g, LLVMValueRef x, double c)
{
    return splat(x, LLVMConstReal(g->f32, c));
}

static LLVMValueRef integer(TlGen *g, LLVMValueRef x, uint32_t c)
{
    return splat(x, LLVMConstInt(g->i32, c, 0));
}

static LLVMTypeRef words_like(TlGen *g, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMVectorType(g->i32, LLVMGetVectorSize(t))
                                                    : g->i32;
}

static LLVMValueRef fma_of(TlGen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMTypeRef t = LLVMTypeOf(a);
    LLVMValueRef args[3] = {a, b, c};
    return tl_gen_intrinsic(g, "llvm.fma", &t, 1, args, 3);
}

/* a x + b */
static LLVMValueRef linear(TlGen *g, LLVMValueRef x, float a, float b)
{
    return fma_of(g, x, real(g, x, a), real(g, x, b));
}

/* x cut to [low, high]; NaN stays. */
static LLVMValueRef cut(TlGen *g, LLVMValueRef x, double low, double high)
{
    LLVMValueRef h = real(g, x, high), l = real(g, x, low);
    x = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOGT, x, h, ""), h, x, "");
    return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOLT, x, l, ""), l, x, "");
}

/* p * 2^n, n + 254 in the low bits of a word. */
static LLVMValueRef scale(TlGen *g, LLVMValueRef p, LLVMValueRef bits)
{
    LLVMBuilderRef b = g->b;
    LLVMTypeRef t = LLVMTypeOf(p);
    LLVMValueRef half = LLVMBuildAnd(b, LLVMBuildShl(b, bits, integer(g, p, 22), ""),
                                     integer(g, p, 0x7f800000), ""),
                 rest = LLVMBuildSub(b, LLVMBuildShl(b, bits, integer(g, p, 23), ""), half, "");
    p = LLVMBuildFMul(b, p, LLVMBuildBitCast(b, half, t, ""), "");
    return LLVMBuildFMul(b, p, LLVMBuildBitCast(b, rest, t, ""), "");
}

/* With `flush`, too: subnormal results that need not be cut to 0 are rare. */
LLVMValueRef tl_gen_exp2(TlGen *g, LLVMValueRef x)
{
    LLVMBuilderRef b = g->b;
    LLVMValueRef magic = real(g, x, 12583166.0), y = cut(g, x, -254.0, 129.0);
    LLVMValueRef t = LLVMBuildFAdd(b, y, magic, "");
    LLVMValueRef r = LLVMBuildFSub(b, y, LLVMBuildFSub(b, t, magic, ""), "");
    LLVMValueRef u = LLVMBuildFMul(b, r, r, "");
    LLVMValueRef q = linear(g, r, 0.000133314446f, 0.00133879273f);
    q = fma_of(g, q, u, linear(g, r, 0.00962544698f, 0.0555036627f));
    q = fma_of(g, q, u, linear(g, r, 0.240225941f, 0.693147182f));
    q = fma_of(g, q, r, real(g, r, 1.0));
    return scale(g, q, LLVMBuildBitCast(b, t, words_like(g, x), ""));
}
