/* Types, constants and vectors of element values in LLVM IR (gen.h). */
#include "codegen/gen/gen_impl.h"

/* ---- types and constants ---- */

void tl_gen_init(TlGen *g, TlLlvm *l, const TlFn *fn, TlArena *arena)
{
    TL_ASSERT(l->context && l->module, "no module to build in");
    LLVMContextRef c = g->c = l->context;
    g->l = l;
    g->b = l->builder;
    g->fn = fn;
    g->arena = arena;
    uint32_t nvalues = fn ? fn->nvalues : 0;
    g->scalar = TL_NEW_ARRAY(arena, LLVMValueRef, nvalues + 1);
    g->view = TL_NEW_ARRAY(arena, TlGenView *, nvalues + 1);
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

/* LLVM's own floats; of all others, bf16 too, the bits. */
LLVMTypeRef tl_gen_dtype_type(TlGen *g, TlDtype d)
{
    if (d == TL_F16)
        return g->f16;
    if (d == TL_F32)
        return g->f32;
    if (d == TL_F64)
        return g->f64;
    return tl_is_bool(d) ? g->i1 : LLVMIntTypeInContext(g->c, 8 * (unsigned)tl_dtype_bytes(d));
}

uint64_t tl_gen_elem_bytes(const TlType *type)
{
    return type->ptr ? 8 : (uint64_t)tl_dtype_bytes(type->dtype);
}

LLVMTypeRef tl_gen_elem_type(TlGen *g, const TlType *type)
{
    return type->ptr ? g->ptr : tl_gen_dtype_type(g, type->dtype);
}

LLVMTypeRef tl_gen_mem_type(TlGen *g, const TlType *type)
{
    return !type->ptr && type->dtype == TL_BOOL ? g->i8 : tl_gen_elem_type(g, type);
}

LLVMTypeRef tl_gen_vec(LLVMTypeRef elem, int width)
{
    TL_ASSERT(width > 0, "a vector of %d", width);
    return width == 1 ? elem : LLVMVectorType(elem, (unsigned)width);
}

int tl_gen_width_of(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

LLVMValueRef tl_gen_splat_const(LLVMValueRef c, int width)
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
    TL_ASSERT(width > 0, "a vector of %d", width);
    if (width == 1)
        return scalar;
    if (LLVMIsConstant(scalar))
        return tl_gen_splat_const(scalar, width);
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
    TL_ASSERT(width > 0, "a vector of %d", width);
    (void)g;
    LLVMValueRef lanes[64];
    if (width == 1)
        return LLVMConstInt(elem, 0, 0);
    for (int i = 0; i < width; i++)
        lanes[i] = LLVMConstInt(elem, (unsigned)i, 0);
    return LLVMConstVector(lanes, (unsigned)width);
}

LLVMTypeRef tl_gen_int_type(TlGen *g, int bits)
{
    TL_ASSERT(bits > 0 && bits <= 128, "an integer of %d bits", bits);
    return bits == 1    ? g->i1
           : bits == 8  ? g->i8
           : bits == 16 ? g->i16
           : bits == 32 ? g->i32
                        : g->i64;
}

LLVMValueRef tl_gen_const(TlGen *g, const TlType *type, uint64_t bits, int width)
{
    TL_ASSERT(type->kind == TL_TILE && width > 0, "a constant of kind %d", (int)type->kind);
    if (type->ptr)
        return tl_gen_splat_const(LLVMConstNull(g->ptr), width);
    LLVMTypeRef t = tl_gen_dtype_type(g, type->dtype);
    int n = type->dtype == TL_BOOL ? 1 : tl_dtype_bytes(type->dtype) * 8;
    LLVMValueRef c = LLVMConstInt(tl_gen_int_type(g, n), bits, 0);
    if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind)
        c = LLVMConstBitCast(c, t);
    return tl_gen_splat_const(c, width);
}

LLVMValueRef tl_gen_intrinsic(TlGen *g, const char *name, LLVMTypeRef *types, unsigned ntypes,
                              LLVMValueRef *args, unsigned nargs)
{
    return tl_llvm_intrinsic(g->l, g->b, name, types, ntypes, args, nargs);
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
