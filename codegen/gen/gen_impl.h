/* What gen_value.c, gen_cast.c and gen_arith.c share; private to them. */
#ifndef TL_GEN_IMPL_H
#define TL_GEN_IMPL_H
#include "codegen/gen/gen.h"

/* gen_value.c */
LLVMTypeRef tl_gen_dtype_type(TlGen *g, TlDtype d);
LLVMTypeRef tl_gen_int_type(TlGen *g, int bits);
LLVMValueRef tl_gen_splat_const(LLVMValueRef c, int width);

/* gen_cast.c */
LLVMValueRef tl_gen_f64_to_f32_odd(TlGen *g, LLVMValueRef x);
LLVMValueRef tl_gen_widen(TlGen *g, TlDtype d, LLVMValueRef x); /* any float type but f64 to f32 */
/* f32 to a float type, one rounding to nearest even */
LLVMValueRef tl_gen_narrow(TlGen *g, TlDtype d, LLVMValueRef x, bool nosat);

/* gen_extreme.c. Of f32 or f64: NaN loses, -0 < +0, where the operands may be what is said. */
LLVMValueRef tl_gen_extreme(TlGen *g, bool max, LLVMValueRef a, LLVMValueRef b, TlFloatKinds of_a,
                            TlFloatKinds of_b);

/* gen_arith.c */
LLVMValueRef tl_gen_int_extreme(TlGen *g, bool max, bool is_signed, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef tl_gen_count_zeros(TlGen *g, const char *name, LLVMValueRef a);

/* An intrinsic of the type of its first argument. */
static inline LLVMValueRef call_like(TlGen *g, const char *name, LLVMValueRef *args, unsigned n)
{
    LLVMTypeRef t = LLVMTypeOf(args[0]);
    return tl_gen_intrinsic(g, name, &t, 1, args, n);
}

static inline LLVMValueRef call1(TlGen *g, const char *name, LLVMValueRef x)
{
    return call_like(g, name, &x, 1);
}

/* an integer constant of x's type */
static inline LLVMValueRef like(LLVMValueRef x, uint64_t v)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    bool vec = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    return tl_gen_splat_const(LLVMConstInt(vec ? LLVMGetElementType(t) : t, v, 0),
                              tl_gen_width_of(x));
}

static inline LLVMValueRef bits_of(TlGen *g, LLVMValueRef x, int nbits)
{
    return LLVMBuildBitCast(g->b, x, tl_gen_vec(tl_gen_int_type(g, nbits), tl_gen_width_of(x)), "");
}

static inline LLVMValueRef as_float(TlGen *g, LLVMValueRef x, LLVMTypeRef f)
{
    return LLVMBuildBitCast(g->b, x, tl_gen_vec(f, tl_gen_width_of(x)), "");
}

static inline LLVMValueRef select_(TlGen *g, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(g->b, c, a, b, "");
}

#endif
