/* Expressions: the value of each kind. Names, operators, casts and choices are in the other files
 * of expr.h, calls in call.c, indexing in access.c.
 *
 * Values stay as far from IR as they can: literals have no type until another operand gives one,
 * constants are folded, and only what the program computes at run time becomes an op. */
#include "frontend/expr.h"
#include <math.h>

/* ---- checks ---- */

bool tl_check_value(TlSema *s, TlVal *v, TlLoc loc)
{
    switch (v->kind) {
    case TL_VAL_FN:
    case TL_VAL_BUILTIN:
    case TL_VAL_TYPE:
    case TL_VAL_STRING:
    case TL_VAL_MODULE:
    case TL_VAL_SPACE:
    case TL_VAL_VOID:
    case TL_VAL_UNSET:
        tl_err(s, loc, TL_E0211, tl_val_str(s, v));
        *v = tl_bad();
        return false;
    default: return true;
    }
}

TlVal tl_eval_value(TlSema *s, const TlExpr *e)
{
    TlVal v = tl_eval(s, e);
    tl_check_value(s, &v, e->loc);
    return v;
}

bool tl_int_of(TlSema *s, const TlVal *v, TlLoc loc, const char *what, int64_t *out, bool *unknown)
{
    *unknown = tl_is_bad(v);
    if (tl_is_bad(v))
        return false;
    if (tl_const_int_of(v, out))
        return true;
    if (v->kind == TL_VAL_INT || v->kind == TL_VAL_IR || v->kind == TL_VAL_CHOICE)
        tl_label(s, tl_err(s, loc, TL_E0406, what), "this is %s", tl_val_str(s, v));
    else
        tl_err(s, loc, TL_E0338, what, "value", "an integer", tl_val_str(s, v));
    return false;
}

bool tl_eval_int(TlSema *s, const TlExpr *e, const char *what, int64_t *out, bool *unknown)
{
    TlVal v = tl_eval_value(s, e);
    return tl_int_of(s, &v, e->loc, what, out, unknown);
}

/* ---- makers ---- */

static TlVal eval_tuple(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_TUPLE, "expression kind %d is no tuple", (int)e->kind);
    TlVal v = {.kind = TL_VAL_TUPLE,
               .n = e->args.len,
               .dtype = TL_DTYPE_COUNT,
               .items = TL_NEW_ARRAY(s->arena, TlVal, e->args.len + 1)};
    uint32_t parts = 1;
    for (uint32_t i = 0; i < v.n; i++) {
        v.items[i] = tl_eval_value(s, e->args.data[i].value);
        parts += tl_parts_of(&v.items[i]); /* each at most TL_MAX_PARTS, so there is no overflow */
    }
    return tl_parts_fit(s, parts, "this tuple", e->loc) ? v : tl_bad();
}

static TlVal eval_struct(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_STRUCT, "expression kind %d is no struct", (int)e->kind);
    TlTy ty = tl_type_resolve(s, e->type);
    if (ty.kind != TL_TY_STRUCT) {
        if (ty.kind != TL_TY_UNKNOWN)
            tl_err(s, e->type->loc, TL_E0212, tl_ty_str(s, &ty));
        for (uint32_t i = 0; i < e->args.len; i++)
            tl_eval_value(s, e->args.data[i].value);
        return ty.kind == TL_TY_UNKNOWN ? tl_unknown(TL_DTYPE_COUNT) : tl_bad();
    }
    TlVal v = {.kind = TL_VAL_STRUCT,
               .n = ty.n,
               .def = ty.def,
               .dtype = TL_DTYPE_COUNT,
               .items = TL_NEW_ARRAY(s->arena, TlVal, ty.n + 1)};
    if (e->args.len > ty.n)
        tl_err(s, e->loc, TL_E0318, tl_ty_str(s, &ty), ty.n, e->args.len);
    for (uint32_t i = 0; i < e->args.len; i++) {
        TlVal x = tl_eval_value(s, e->args.data[i].value);
        if (i < ty.n)
            v.items[i] = tl_convert(s, &x, &ty.items[i], e->args.data[i].value->loc);
    }
    for (uint32_t i = e->args.len; i < ty.n; i++)
        v.items[i] = tl_zero(s, &ty.items[i]);
    return v;
}

static TlVal eval_make(TlSema *s, const TlExpr *e)
{
    TlTy ty = tl_type_resolve(s, e->type);
    TlVal v = e->args.len ? tl_eval_value(s, e->args.data[0].value) : tl_zero(s, &ty);
    if (e->args.len > 1)
        tl_err(s, e->args.data[1].loc, TL_E0312, tl_ty_str(s, &ty), 1u, e->args.len);
    return tl_convert(s, &v, &ty, e->args.len ? e->args.data[0].value->loc : e->loc);
}

static TlVal eval_place(TlSema *s, const TlExpr *e)
{
    TlAccess a;
    tl_access(s, e, &a);
    if (!tl_access_ok(&a))
        return a.bad;
    return tl_access_load(s, &a, NULL);
}

static TlVal eval_kind(TlSema *s, const TlExpr *e)
{
    switch (e->kind) {
    case TL_EX_INT: return tl_val_int((TlInt)e->u.integer);
    case TL_EX_FLOAT: return tl_val_float(e->u.number);
    case TL_EX_BOOL: return tl_val_bool(e->u.integer != 0);
    case TL_EX_INF: return tl_val_float((double)INFINITY);
    case TL_EX_NAN: return tl_val_float((double)NAN);
    case TL_EX_STRING:
        return (TlVal){.kind = TL_VAL_STRING, .dtype = TL_DTYPE_COUNT, .u.string = e->u.string};
    case TL_EX_NAME: return tl_eval_name(s, e, NULL);
    case TL_EX_UNARY: return tl_eval_unary(s, e->u.op, tl_eval(s, e->a), e->loc);
    case TL_EX_BINARY: return tl_eval_binary(s, e);
    case TL_EX_COND: return tl_eval_choice(s, e);
    case TL_EX_CAST: return tl_eval_cast(s, e);
    case TL_EX_CALL: return tl_eval_call(s, e);
    case TL_EX_INDEX:
    case TL_EX_UNCHECKED: return eval_place(s, e);
    case TL_EX_MEMBER: {
        TlVal v =
            e->a->kind == TL_EX_NAME ? tl_eval_name(s, e->a, e->u.name) : tl_eval(s, e->a);
        return tl_eval_member(s, &v, e->u.name, e->loc);
    }
    case TL_EX_TUPLE: return eval_tuple(s, e);
    case TL_EX_STRUCT: return eval_struct(s, e);
    case TL_EX_MAKE: return eval_make(s, e);
    case TL_EX_TYPE: break;
    }
    TlTy *ty = TL_NEW(s->arena, TlTy);
    *ty = tl_type_resolve(s, e->type);
    return ty->kind == TL_TY_UNKNOWN && ty->dtype == TL_DTYPE_COUNT ? tl_unknown(TL_DTYPE_COUNT)
                                                                    : tl_val_type(ty);
}

TlVal tl_eval(TlSema *s, const TlExpr *e)
{
    if (!tl_step(s, e->loc))
        return tl_bad();
    TlLoc outer = s->b.loc;
    s->b.loc = e->loc;
    TlVal v = eval_kind(s, e);
    /* an instance knows everything: nothing may be swallowed without an error */
    TL_ASSERT(v.kind != TL_VAL_UNKNOWN || s->abstract || s->quiet_errors || s->ctx->diags.errors,
              "no value at line %u, column %u", e->loc.line, e->loc.col);
    s->b.loc = outer;
    tl_fact_result(s, e, &v);
    return v;
}
