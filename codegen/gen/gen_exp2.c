/* 2^x of f32 where there is no instruction for it: the arithmetic of std.math's exp2
 * (stdlib/math.tile has the reasons), bit for bit. Scalars and vectors. */
#include "codegen/gen/gen_impl.h"

/* Of a polynomial for 2^r, |r| <= 1/2, from the constant on. */
static const float FACTOR[] = {1.0f,           0.693147182f,   0.240225941f,   0.0555036627f,
                               0.00962544698f, 0.00133879273f, 0.000133314446f};

/* c in each lane of x. */
static LLVMValueRef real(TlGen *g, LLVMValueRef x, double c)
{
    return tl_gen_splat_const(LLVMConstReal(g->f32, c), tl_gen_width_of(x));
}

/* a b + c */
static LLVMValueRef fma_of(TlGen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMValueRef args[3] = {a, b, c};
    return call_like(g, "llvm.fma", args, 3);
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
    x = select_(g, LLVMBuildFCmp(g->b, LLVMRealOGT, x, h, ""), h, x);
    return select_(g, LLVMBuildFCmp(g->b, LLVMRealOLT, x, l, ""), l, x);
}

/* p * 2^n, n + 254 in the low bits of a word. */
static LLVMValueRef scale(TlGen *g, LLVMValueRef p, LLVMValueRef n)
{
    LLVMBuilderRef b = g->b;
    LLVMValueRef half =
                     LLVMBuildAnd(b, LLVMBuildShl(b, n, like(n, 22), ""), like(n, 0x7f800000), ""),
                 rest = LLVMBuildSub(b, LLVMBuildShl(b, n, like(n, 23), ""), half, "");
    p = LLVMBuildFMul(b, p, as_float(g, half, g->f32), "");
    return LLVMBuildFMul(b, p, as_float(g, rest, g->f32), "");
}

/* With `flush`, too: subnormal results that need not be cut to 0 are rare. */
LLVMValueRef tl_gen_exp2(TlGen *g, LLVMValueRef x)
{
    LLVMBuilderRef b = g->b;
    LLVMValueRef magic = real(g, x, 12583166.0), y = cut(g, x, -254.0, 129.0);
    LLVMValueRef t = LLVMBuildFAdd(b, y, magic, "");
    LLVMValueRef r = LLVMBuildFSub(b, y, LLVMBuildFSub(b, t, magic, ""), "");
    LLVMValueRef u = LLVMBuildFMul(b, r, r, "");
    LLVMValueRef q = linear(g, r, FACTOR[6], FACTOR[5]);
    q = fma_of(g, q, u, linear(g, r, FACTOR[4], FACTOR[3]));
    q = fma_of(g, q, u, linear(g, r, FACTOR[2], FACTOR[1]));
    q = fma_of(g, q, r, real(g, r, FACTOR[0]));
    return scale(g, q, bits_of(g, t, 32));
}

/* 2^n 2^r, x = n + r: one multiply-add after the other, as many elements are on their way. n is in
 * the low bits of t, from where it is added to the exponent of 2^r: the least is 0 then, the
 * greatest infinity, where r is 0. */
LLVMValueRef tl_gen_exp2_flushed(TlGen *g, LLVMValueRef x)
{
    enum { DEGREE = sizeof FACTOR / sizeof *FACTOR - 1 };
    LLVMBuilderRef b = g->b;
    LLVMValueRef magic = real(g, x, 12582912.0), t = LLVMBuildFAdd(b, x, magic, ""),
                 r = LLVMBuildFSub(b, x, LLVMBuildFSub(b, t, magic, ""), ""),
                 q = real(g, x, FACTOR[DEGREE]);
    for (int i = DEGREE - 1; i >= 0; i--)
        q = fma_of(g, q, r, real(g, x, FACTOR[i]));
    LLVMValueRef n = bits_of(g, t, 32), power = LLVMBuildShl(b, n, like(n, 23), "");
    return as_float(g, LLVMBuildAdd(b, bits_of(g, q, 32), power, ""), g->f32);
}
