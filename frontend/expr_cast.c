/* Casts: of numbers and tiles, and between pointers and addresses. */
#include "frontend/sema.h"

/* (T *)u: of a u64, or a tile of them. */
static TlVal cast_to_pointer(TlSema *s, const TlVal *v, const TlType *to, TlLoc loc)
{
    TlVal u = *v;
    if (tl_dtype_bits(to->dtype) < 8) {
        tl_err(s, loc, TL_E0337, tl_format(s->arena, "a pointer to %s", tl_dtype_name(to->dtype)),
               tl_val_str(s, v));
        return tl_bad();
    }
    if (u.kind == TL_VAL_INT)
        u = tl_convert_dtype(s, v, TL_U64, loc);
    if (tl_is_bad(&u))
        return u.kind == TL_VAL_ERROR ? u : tl_unknown(TL_DTYPE_COUNT);
    if (!tl_is_number(&u) || tl_val_dtype(&u) != TL_U64) {
        TlDiag *row = tl_err(s, loc, TL_E0337, tl_type_str(s->ctx, to), tl_val_str(s, v));
        if (tl_is_number(&u))
            tl_label(s, row,
                     tl_is_pointer(&u) ? "(u64) of it is its address" : "an address is a u64");
        return tl_bad();
    }
    TlValue *x = tl_materialize(s, &u, loc);
    if (!x)
        return tl_bad();
    const TlType *t = tl_type_ptr(s->ctx, to->dtype, to->is_const, x->type->rank, x->type->shape);
    return tl_val_ir(tl_emit(s, TL_OP_POINTER, 1, &x, t, 0, NULL));
}

/* (u64)p; t may be a tile. */
static TlVal cast_to_address(TlSema *s, const TlVal *v, const TlTy *to, TlLoc loc)
{
    const TlType *t = to->type;
    if (t->dtype != TL_U64 || tl_dtype_bits(v->u.ir->type->dtype) < 8) {
        tl_err(s, loc, TL_E0337, tl_ty_str(s, to), tl_val_str(s, v));
        return tl_bad();
    }
    TlValue *p = v->u.ir;
    const TlType *u = tl_type_with_shape(s->ctx, tl_type_scalar(s->ctx, TL_U64), p->type->rank,
                                         p->type->shape);
    TlVal x = tl_val_ir(tl_emit(s, TL_OP_ADDRESS, 1, &p, u, 0, NULL));
    return t->rank ? tl_convert(s, &x, to, loc) : x;
}

TlVal tl_cast_val(TlSema *s, const TlVal *v, const TlTy *to, TlLoc loc)
{
    if (to->kind == TL_TY_UNKNOWN || v->kind == TL_VAL_ERROR)
        return v->kind == TL_VAL_ERROR ? *v : tl_unknown(to->dtype);
    if (to->kind == TL_TY_VALUE && to->type->ptr)
        return cast_to_pointer(s, v, to->type, loc);
    if (to->kind == TL_TY_VALUE && tl_is_pointer(v))
        return cast_to_address(s, v, to, loc);
    if (to->kind != TL_TY_VALUE) {
        if (to->kind == TL_TY_STRUCT)
            return tl_convert(s, v, to, loc);
        tl_err(s, loc, TL_E0337, tl_ty_str(s, to), tl_val_str(s, v));
        return tl_bad();
    }
    const TlType *t = to->type;
    if (v->kind == TL_VAL_UNKNOWN)
        return t->rank ? tl_val_ir(tl_const_bits(&s->b, t, 0)) : tl_unknown(t->dtype);
    if (!tl_is_number(v)) {
        tl_err(s, loc, TL_E0337, tl_ty_str(s, to), tl_val_str(s, v));
        return tl_bad();
    }
    TlVal x = *v;
    if (tl_is_literal(v) || v->kind == TL_VAL_CONST)
        x = tl_fold_cast(v, t->dtype);
    else {
        TlValue *ir = tl_materialize(s, v, loc);
        if (!ir)
            return tl_bad();
        x = tl_val_ir(tl_cast(&s->b, ir, t->dtype));
    }
    return t->rank ? tl_convert(s, &x, to, loc) : x;
}
