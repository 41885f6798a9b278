/* Expressions. The parts of a node are evaluated here, and the files below combine their values;
 * they call back only if they decide themselves whether a part is evaluated.
 *
 * Values stay as far from IR as they can: literals have no type until another operand gives one,
 * constants are folded, and only what the program computes at run time becomes an op. */
#include "frontend/advice.h"
#include "frontend/sema.h"
#include <math.h>
#include <string.h>

/* ---- makers ---- */

static TlVal eval_tuple(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_TUPLE, "expression kind %d is no tuple", (int)e->kind);
    TlVal v = tl_val_items(s, TL_VAL_TUPLE, NULL, e->args.len);
    uint32_t parts = 1;
    for (uint32_t i = 0; i < v.n; i++) {
        v.items[i] = tl_eval_value(s, e->args.data[i].value);
        parts += tl_parts_of(&v.items[i]); /* each at most TL_MAX_PARTS, so there is no overflow */
    }
    return tl_parts_fit(s, parts, "this tuple", e->loc) ? v : tl_bad();
}

/* The field that a value of a list is for: the next one, or the one it names; n after an error. */
static uint32_t field_of(TlSema *s, const TlItem *item, const TlArg *a, uint32_t i, bool *named)
{
    uint32_t n = item->fields.len;
    if (!a->name) {
        if (*named)
            tl_err(s, a->loc, TL_E0380);
        return *named ? n : i;
    }
    *named = true;
    for (uint32_t k = 0; k < n; k++)
        if (item->fields.data[k].name == a->name)
            return k;
    const char **names = TL_NEW_ARRAY(s->arena, const char *, n + 1);
    for (uint32_t k = 0; k < n; k++)
        names[k] = item->fields.data[k].name;
    const char *what = tl_format(s->arena, "struct %s", item->name);
    tl_label_fields(s, tl_err(s, a->loc, TL_E0210, what, a->name), n, names);
    return n;
}

/* The value of a field that is not given, evaluated where the struct is defined. */
static TlVal default_of(TlSema *s, const TlTy *ty, uint32_t i)
{
    const TlFieldDecl *f = &ty->def->item->fields.data[i];
    TlFrame top = {.mod = ty->def->mod}, *frame = s->frame;
    if (!f->init)
        return tl_default_of(s, &ty->items[i], f->loc);
    tl_item_bind(s->prog, ty->def);
    s->frame = &top;
    TlVal v = tl_eval_init(s, f->init, &ty->items[i]);
    s->frame = frame;
    return v;
}

void tl_check_defaults(TlSema *s, const TlTy *ty)
{
    for (uint32_t i = 0; ty->kind == TL_TY_STRUCT && i < ty->n; i++)
        if (ty->def->item->fields.data[i].init)
            default_of(s, ty, i);
}

TlVal tl_default_of(TlSema *s, const TlTy *ty, TlLoc loc)
{
    if (ty->kind == TL_TY_AUTO) {
        tl_err(s, loc, TL_E0103, "a field of type auto");
        return tl_bad();
    }
    if (ty->kind != TL_TY_STRUCT)
        return tl_zero(s, ty);
    TlVal v = tl_val_items(s, TL_VAL_STRUCT, ty->def, ty->n);
    for (uint32_t i = 0; i < ty->n; i++)
        v.items[i] = default_of(s, ty, i);
    return v;
}

/* {1, left = 3}: the first fields by position, others by name, the rest by default. */
static TlVal eval_fields(TlSema *s, const TlExpr *list, const TlTy *ty)
{
    bool is_struct = ty->kind == TL_TY_STRUCT, named = false;
    uint32_t n = is_struct ? ty->n : 0;
    TlVal v = tl_val_items(s, TL_VAL_STRUCT, ty->def, n);
    bool *given = TL_NEW_ARRAY(s->arena, bool, n + 1);
    uint32_t by_position = 0;
    while (by_position < list->args.len && !list->args.data[by_position].name)
        by_position++;
    if (is_struct && by_position > n)
        tl_err(s, list->loc, TL_E0318, tl_ty_str(s, ty), n, by_position);
    for (uint32_t i = 0; i < list->args.len; i++) {
        const TlArg *a = &list->args.data[i];
        uint32_t k = is_struct ? field_of(s, ty->def->item, a, i, &named) : 0;
        TlTy none = tl_ty_unknown(TL_DTYPE_COUNT);
        TlVal x = tl_eval_init(s, a->value, k < n ? &ty->items[k] : &none);
        if (k < n && given[k])
            tl_err(s, a->loc, TL_E0381, ty->def->item->fields.data[k].name);
        if (k < n)
            v.items[k] = x, given[k] = true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!given[i])
            v.items[i] = default_of(s, ty, i);
    return is_struct ? v : tl_unknown(TL_DTYPE_COUNT);
}

static void refuse_braces(TlSema *s, const TlExpr *e, const TlTy *ty)
{
    TlDiag *row = tl_err(s, e->loc, TL_E0316, "{...}", tl_ty_str(s, ty));
    if (ty->kind == TL_TY_VALUE && ty->type->rank)
        tl_label(s, row, "one number fills a tile: = 0, which it also is without an initialiser");
    else if (ty->kind == TL_TY_VALUE)
        tl_label(s, row, "a scalar is written without braces");
}

TlVal tl_eval_init(TlSema *s, const TlExpr *e, const TlTy *ty)
{
    if (e->braces && ty->kind == TL_TY_ARRAY)
        return tl_array_fields(s, e, ty);
    if (e->braces) {
        if (ty->kind != TL_TY_STRUCT && ty->kind != TL_TY_UNKNOWN)
            refuse_braces(s, e, ty);
        return eval_fields(s, e, ty);
    }
    bool may_be_fn = ty->kind == TL_TY_AUTO;
    TlVal v = may_be_fn ? tl_eval(s, e) : tl_eval_value(s, e);
    TlVal x = may_be_fn && tl_is_fn(&v) ? v : tl_convert(s, &v, ty, e->loc);
    /* not a stand-in: it may be a constant that is known later */
    return v.kind == TL_VAL_UNKNOWN && x.kind == TL_VAL_IR ? tl_unknown(tl_val_dtype(&x)) : x;
}

static TlVal eval_struct(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_STRUCT, "expression kind %d is no struct", (int)e->kind);
    TlTy ty = tl_type_resolve(s, e->type);
    bool wrong = ty.kind != TL_TY_STRUCT && ty.kind != TL_TY_UNKNOWN;
    if (wrong)
        tl_err(s, e->type->loc, TL_E0212, tl_ty_str(s, &ty));
    TlVal v = eval_fields(s, e, &ty);
    return wrong ? tl_bad() : v;
}

static TlVal eval_make(TlSema *s, const TlExpr *e)
{
    TlTy ty = tl_type_resolve(s, e->type);
    TlVal v = e->args.len ? tl_eval_value(s, e->args.data[0].value) : tl_zero(s, &ty);
    if (e->args.len > 1)
        tl_err(s, e->args.data[1].loc, TL_E0312, tl_ty_str(s, &ty), 1u, e->args.len);
    bool scalar = ty.kind == TL_TY_VALUE && tl_is_scalar(ty.type) && !ty.type->ptr;
    if (scalar && v.kind == TL_VAL_IR && !v.u.ir->type->ptr &&
        (tl_is_tile(&v) || !tl_widens(v.u.ir->type->dtype, ty.type->dtype))) { /* float(v) */
        TlDiag *row = tl_err(s, e->loc, tl_is_tile(&v) ? TL_E0304 : TL_E0301, tl_val_str(s, &v),
                             tl_dtype_name(ty.type->dtype));
        tl_label(s, row, "a cast is written %s",
                 tl_cast_text(s, e->args.data[0].value, ty.type->dtype));
        return tl_bad();
    }
    return tl_convert(s, &v, &ty, e->args.len ? e->args.data[0].value->loc : e->loc);
}

static TlVal eval_cast(TlSema *s, const TlExpr *e)
{
    TlTy to = tl_type_resolve(s, e->type);
    TlVal v = tl_eval_value(s, e->a);
    bool is_pointer = to.kind == TL_TY_VALUE && to.type->ptr;
    if (e->type->pointer && !is_pointer) { /* (tile<f32, 4> *)u, or T is a tile's type */
        if (to.kind == TL_TY_UNKNOWN)
            return tl_unknown(TL_DTYPE_COUNT);
        tl_err(s, e->type->loc, TL_E0212, tl_format(s->arena, "%s *", tl_ty_str(s, &to)));
        return tl_bad();
    }
    return tl_cast_val(s, &v, &to, e->loc);
}

/* ---- operators and calls ---- */

/* Left operands are walked by a loop, so that sums of thousands of terms do not deepen the C
 * stack. */
static TlVal eval_binary(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_BINARY && e->a && e->b, "expression kind %d is no operation",
              (int)e->kind);
    TL_VEC(const TlExpr *) spine = {0};
    const TlExpr *left = e;
    for (; left->kind == TL_EX_BINARY; left = left->a)
        tl_vec_push(s->arena, &spine, left);
    TlVal v = tl_eval(s, left);
    for (uint32_t i = spine.len; i-- > 0;) {
        const TlExpr *at = spine.data[i];
        s->b.loc = at->loc;
        if (!tl_step(s, at->loc))
            return tl_bad();
        if (at->u.op == TL_BIN_LAND || at->u.op == TL_BIN_LOR) {
            tl_check_value(s, &v, at->a->loc);
            v = tl_eval_logical(s, at->u.op, v, at->b, at->loc);
        } else {
            TlVal right = tl_eval(s, at->b);
            s->b.loc = s->operator_at = at->loc;
            s->operands[0] = at->a, s->operands[1] = at->b;
            v = tl_binary_vals(s, at->u.op, v, right, at->loc);
        }
        tl_fact_result(s, at, &v);
    }
    return v;
}

/* Is it a word of another language, whose arguments are hardly ours? The one error is enough. */
static bool is_foreign(const TlExpr *f)
{
    bool member = f->kind == TL_EX_MEMBER;
    if (!member && f->kind != TL_EX_NAME)
        return false;
    if (tl_advice(f->u.name, strlen(f->u.name), member ? 'm' : 'n'))
        return true;
    return member && f->a->kind == TL_EX_NAME && tl_advice(f->a->u.name, strlen(f->a->u.name), 'n');
}

static TlVal eval_call(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_CALL && e->a, "expression kind %d is no call", (int)e->kind);
    TlVal f = tl_eval(s, e->a);
    if (f.kind == TL_VAL_BUILTIN)
        return tl_builtin_call(s, f.u.builtin, f.fast, e);
    if (tl_is_bad(&f) && is_foreign(e->a))
        return f;
    TlArgVal *args = TL_NEW_ARRAY(s->arena, TlArgVal, e->args.len + 1);
    for (uint32_t i = 0; i < e->args.len; i++) {
        const TlArg *a = &e->args.data[i];
        args[i] = (TlArgVal){
            .name = a->name, .loc = a->name ? a->loc : a->value->loc, .val = tl_eval(s, a->value)};
        if (args[i].val.kind == TL_VAL_VOID)
            tl_check_value(s, &args[i].val, a->value->loc);
        if (a->width)
            tl_err(s, a->width->loc, TL_E0338, f.kind == TL_VAL_FN ? f.def->item->name : "this",
                   "argument", "a value", "a slice");
    }
    s->b.loc = e->loc;
    if (f.kind == TL_VAL_FN)
        return tl_call_def(s, &f, e->args.len, args, e->loc);
    if (!tl_is_bad(&f)) {
        TlDiag *row = tl_err(s, e->loc, TL_E0208, tl_val_str(s, &f));
        if (f.kind == TL_VAL_TYPE)
            tl_label(s, row, "a cast to a named type is written cast(x, T)");
        return tl_bad();
    }
    return f;
}

static TlVal eval_fn(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->fn && e->fn->def, "a function that no name is bound in");
    if (e->fn->bad_head)
        return tl_bad();
    TlVal fn = tl_val_fn(e->fn->def, s->frame->vars ? s->frame : NULL);
    tl_check_nested(s, &fn);
    return fn;
}

static TlVal eval_place(TlSema *s, const TlExpr *e)
{
    TlAccess a;
    tl_access(s, e, &a);
    if (a.element.kind != TL_VAL_VOID)
        return a.element;
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
    case TL_EX_STRING: return tl_val_text(TL_VAL_STRING, e->u.string);
    case TL_EX_NAME: return tl_eval_name(s, e, NULL);
    case TL_EX_UNARY: return tl_unary_val(s, e->u.op, tl_eval(s, e->a), e->loc);
    case TL_EX_BINARY: return eval_binary(s, e);
    case TL_EX_COND: return tl_eval_choice(s, e);
    case TL_EX_CAST: return eval_cast(s, e);
    case TL_EX_CALL: return tl_is_at(s, e) ? eval_place(s, e) : eval_call(s, e);
    case TL_EX_INDEX:
    case TL_EX_UNCHECKED: return eval_place(s, e);
    case TL_EX_MEMBER: {
        TlVal v =
            e->a->kind == TL_EX_NAME ? tl_eval_name(s, e->a, e->u.name) : tl_eval(s, e->a);
        TlVal x = tl_member_of(s, &v, e->u.name, e->loc);
        bool unset = x.kind == TL_VAL_UNKNOWN && !s->abstract && !s->quiet_errors;
        if (unset && !s->ctx->diags.errors)
            tl_err(s, e->loc, TL_E0383, tl_source_text(s->ctx, e->begin, e->end));
        return x;
    }
    case TL_EX_TUPLE: return eval_tuple(s, e);
    case TL_EX_STRUCT: return eval_struct(s, e);
    case TL_EX_MAKE: return eval_make(s, e);
    case TL_EX_FN: return eval_fn(s, e);
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

/* ---- with what must be ---- */

TlVal tl_eval_value(TlSema *s, const TlExpr *e)
{
    TlVal v = tl_eval(s, e);
    tl_check_value(s, &v, e->loc);
    s->evaluated = e;
    return v;
}

bool tl_eval_int(TlSema *s, const TlExpr *e, const char *what, int64_t *out, bool *unknown)
{
    TlVal v = tl_eval_value(s, e);
    return tl_int_of(s, &v, e->loc, what, out, unknown);
}

TlValue *tl_eval_cond(TlSema *s, const TlExpr *e, TlVal *out)
{
    TlVal v = tl_eval_value(s, e);
    *out = v;
    if (tl_is_bad(&v))
        return NULL;
    if (v.kind == TL_VAL_CONST && v.dtype == TL_BOOL)
        return NULL;
    if (v.kind == TL_VAL_IR && v.u.ir->type->dtype == TL_BOOL && tl_is_scalar(v.u.ir->type) &&
        !v.u.ir->type->ptr)
        return v.u.ir;
    tl_no_condition(s, &v, e->loc);
    *out = tl_bad();
    return NULL;
}
