/* Expressions that evaluate a side only if a condition says so: c ? a : b, && and ||. For a choice
 * between tiles both sides are evaluated, element by element. */
#include "frontend/sema.h"

/* ---- c ? a : b ---- */

/* c ? a : b, element by element */
static TlVal select_vals(TlSema *s, const TlVal *c, const TlVal *a, const TlVal *b, TlLoc loc)
{
    if (c->kind == TL_VAL_IR && tl_is_untyped(a) && tl_is_untyped(b)) {
        TlVal out = tl_val_items(s, TL_VAL_CHOICE, NULL, 3);
        out.items[0] = *c, out.items[1] = *a, out.items[2] = *b;
        return out;
    }
    TlVal vals[2] = {*a, *b}, bad;
    TlValue *x[2];
    if (tl_is_pointer(a) && tl_is_pointer(b) && c->kind == TL_VAL_IR) {
        int rank;
        int32_t shape[TL_MAX_RANK] = {0};
        const TlType *ta = a->u.ir->type, *tb = b->u.ir->type;
        const TlType *tc =
            tl_type_with_shape(s->ctx, ta, c->u.ir->type->rank, c->u.ir->type->shape);
        bool ok = ta->dtype == tb->dtype && ta->is_const == tb->is_const &&
                  tl_broadcast_shape(ta, tb, &rank, shape);
        if (ok)
            ok = tl_broadcast_shape(tl_type_with_shape(s->ctx, ta, rank, shape), tc, &rank, shape);
        if (ok) {
            TlValue *mask = tl_broadcast_ir(s, c->u.ir, rank, shape);
            return tl_val_ir(tl_select(&s->b, mask, tl_broadcast_ir(s, a->u.ir, rank, shape),
                                       tl_broadcast_ir(s, b->u.ir, rank, shape)));
        }
    }
    if (!tl_unify(s, 2, vals, (TlLoc[]){loc, loc}, loc, "?:", x, &bad))
        return bad;
    if (tl_is_bad(c))
        return tl_worse(c, c, x[0]->type->dtype);
    TlValue *mask = tl_materialize(s, c, loc);
    int rank;
    int32_t shape[TL_MAX_RANK] = {0};
    if (!mask)
        return tl_bad();
    if (!tl_broadcast_shape(x[0]->type, mask->type, &rank, shape)) {
        tl_err(s, loc, TL_E0303, "?:", tl_type_str(s->ctx, mask->type),
               tl_type_str(s->ctx, x[0]->type));
        return tl_bad();
    }
    if (mask->type->rank)
        mask = tl_broadcast_ir(s, mask, rank, shape);
    return tl_val_ir(tl_select(&s->b, mask, tl_broadcast_ir(s, x[0], rank, shape),
                               tl_broadcast_ir(s, x[1], rank, shape)));
}

/* `vals` are the values of the two sides; a known integer beside a float becomes one. */
static TlVal select_of(TlSema *s, const TlVal *c, TlVal *vals, const TlExpr *e)
{
    if (!tl_known_to_floats(s, 2, vals, (TlLoc[]){e->b->loc, e->c->loc}))
        return tl_bad();
    TlVal out = select_vals(s, c, &vals[0], &vals[1], e->loc);
    if (out.kind == TL_VAL_CHOICE) {
        TlLoc *locs = TL_NEW_ARRAY(s->arena, TlLoc, 2);
        locs[0] = e->b->loc, locs[1] = e->c->loc;
        out.u.locs = locs;
    }
    return out;
}

/* Converts the values of two arms to one type, each in its own arm. */
static bool align_arms(TlSema *s, TlArm *arms, TlVal *vals, const TlExpr *e)
{
    const TlLoc locs[2] = {e->b->loc, e->c->loc};
    TlVal *a = &vals[0], *b = &vals[1];
    if (tl_has_items(a) || !tl_is_number(a) ||
        !tl_is_number(b) || tl_is_pointer(a)) {
        TlTy ta = tl_ty_of(s, a), tb = tl_ty_of(s, b);
        if (!tl_ty_same(&ta, &tb)) {
            tl_err(s, e->loc, TL_E0302, "?:", tl_val_str(s, a), tl_val_str(s, b));
            return false;
        }
        return true;
    }
    TlDtype da = tl_val_dtype(a), db = tl_val_dtype(b), d = da;
    if (da == TL_DTYPE_COUNT && db == TL_DTYPE_COUNT) {
        da = tl_literal_dtype(a), db = tl_literal_dtype(b);
        d = da == TL_F32 || db == TL_F32 ? TL_F32 : tl_dtype_bits(da) > tl_dtype_bits(db) ? da : db;
    } else if (da == TL_DTYPE_COUNT)
        d = db;
    else if (db != TL_DTYPE_COUNT && !tl_common_dtype(da, db, &d)) {
        tl_err(s, e->loc, TL_E0302, "?:", tl_val_str(s, a), tl_val_str(s, b));
        return false;
    }
    int rank;
    int32_t shape[TL_MAX_RANK] = {0};
    const TlType *ta = tl_val_type_of(s, a), *tb = tl_val_type_of(s, b);
    if (!tl_broadcast_shape(ta, tb, &rank, shape)) {
        tl_err(s, e->loc, TL_E0303, "?:", tl_type_str(s->ctx, ta), tl_type_str(s->ctx, tb));
        return false;
    }
    const TlType *t = tl_type_tile(s->ctx, d, rank, shape);
    for (int i = 0; i < 2; i++) {
        TlBuilder saved = s->b;
        s->b.block = arms[i].block, s->b.before = NULL;
        TlValue *x = tl_convert_ir(s, &vals[i], t, locs[i]);
        s->b = saved;
        if (!x)
            return false;
        vals[i] = tl_val_ir(x);
    }
    return true;
}

/* The arm that is not taken: its errors are reported, its code is dropped, and arithmetic that
 * would fail in it is no error. */
static TlVal eval_untaken(TlSema *s, const TlExpr *e)
{
    TlArm arm;
    tl_arm_begin(s, &arm);
    s->untaken++;
    TlVal v = tl_eval_value(s, e);
    s->untaken--;
    tl_arm_end(s, &arm);
    tl_arm_discard(&arm);
    return v;
}

/* A condition known at compile time: both sides are typed, one is evaluated. */
static TlVal cond_known(TlSema *s, const TlExpr *e, bool take)
{
    TlVal yes = take ? tl_eval_value(s, e->b) : tl_bad(), no;
    if (take) {
        no = eval_untaken(s, e->c);
    } else {
        yes = eval_untaken(s, e->b);
        no = tl_eval_value(s, e->c);
    }
    TlVal v = take ? yes : no;
    const TlVal *other = take ? &no : &yes;
    TlDtype d, own = tl_val_dtype(&v), theirs = tl_val_dtype(other);
    if (tl_is_bad(&v) || tl_is_bad(other))
        return v;
    if (theirs != TL_DTYPE_COUNT && own == TL_DTYPE_COUNT && tl_is_untyped(&v))
        return tl_convert_dtype(s, &v, theirs, e->loc);
    if (own == TL_DTYPE_COUNT || theirs == TL_DTYPE_COUNT)
        return v;
    if (tl_is_known_int(&v) && tl_is_float(theirs))
        return tl_known_as_float(s, &v, theirs, e->loc);
    if (tl_is_known_int(other) && tl_is_float(own))
        return v;
    if (!tl_common_dtype(own, theirs, &d)) {
        tl_err(s, e->loc, TL_E0302, "?:", tl_val_str(s, &yes), tl_val_str(s, &no));
        return tl_bad();
    }
    return tl_convert_dtype(s, &v, d, e->loc);
}

static TlVal cond_scalar(TlSema *s, const TlExpr *e, TlValue *c)
{
    TL_ASSERT(c->type->rank == 0, "a condition of rank %d", (int)c->type->rank);
    TlArm arms[2];
    TlVal vals[2], out = tl_bad();
    tl_arm_begin(s, &arms[0]);
    vals[0] = tl_eval_value(s, e->b);
    tl_arm_end(s, &arms[0]);
    tl_arm_begin(s, &arms[1]);
    vals[1] = tl_eval_value(s, e->c);
    tl_arm_end(s, &arms[1]);
    tl_known_to_floats(s, 2, vals, (TlLoc[]){e->b->loc, e->c->loc});
    bool literals = tl_is_untyped(&vals[0]) && tl_is_untyped(&vals[1]);
    bool bad = tl_is_bad(&vals[0]) || tl_is_bad(&vals[1]);
    if (bad || (!literals && !align_arms(s, arms, vals, e))) {
        tl_arm_discard(&arms[1]);
        tl_arm_discard(&arms[0]);
        TlDtype d0 = tl_val_dtype(&vals[0]), d1 = tl_val_dtype(&vals[1]), d = d0;
        if (d0 == TL_DTYPE_COUNT || d1 == TL_DTYPE_COUNT)
            d = tl_beside_unknown(d0 == TL_DTYPE_COUNT ? d1 : d0);
        return bad ? tl_worse(&vals[0], &vals[1], d) : tl_bad();
    }
    bool scalars = vals[0].kind != TL_VAL_IR || tl_is_scalar(vals[0].u.ir->type);
    bool simple = literals || (vals[0].kind == TL_VAL_IR && scalars);
    if (simple && tl_arm_is_cheap(&arms[0]) && tl_arm_is_cheap(&arms[1])) {
        tl_arm_inline(s, &arms[0]);
        tl_arm_inline(s, &arms[1]);
        TlVal cv = tl_val_ir(c);
        return select_of(s, &cv, vals, e);
    }
    tl_arms_join(s, c, &arms[0], &arms[1], &vals[0], &vals[1], &out, e->loc);
    return out;
}

TlVal tl_eval_choice(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_COND && e->a && e->b && e->c,
              "expression kind %d is no choice", (int)e->kind);
    TlVal c = tl_eval_value(s, e->a);
    if (c.kind == TL_VAL_CONST && c.dtype == TL_BOOL)
        return cond_known(s, e, c.u.bits);
    if (c.kind == TL_VAL_IR && c.u.ir->type->dtype == TL_BOOL && !c.u.ir->type->ptr) {
        if (tl_is_scalar(c.u.ir->type))
            return cond_scalar(s, e, c.u.ir);
    } else if (!tl_is_bad(&c)) {
        tl_no_condition(s, &c, e->a->loc);
        c = tl_bad();
    }
    TlVal vals[2];
    vals[0] = tl_eval_value(s, e->b), vals[1] = tl_eval_value(s, e->c);
    const TlVal *a = &vals[0], *b = &vals[1];
    bool plain = tl_is_number(a) && tl_is_number(b) && !tl_is_pointer(a) && !tl_is_pointer(b);
    if (tl_is_bad(&c) && (!plain || (tl_is_untyped(a) && tl_is_untyped(b))))
        return tl_unknown(TL_DTYPE_COUNT);
    return select_of(s, &c, vals, e);
}

/* ---- && and || ---- */

TlVal tl_eval_logical(TlSema *s, int op, TlVal a, const TlExpr *right, TlLoc loc)
{
    TL_ASSERT(op == TL_BIN_LAND || op == TL_BIN_LOR, "operator %d decides nothing", op);
    bool is_and = op == TL_BIN_LAND;
    if (a.kind == TL_VAL_CONST && a.dtype == TL_BOOL) {
        bool decides = (a.u.bits != 0) != is_and;
        TlVal b = decides ? eval_untaken(s, right) : tl_eval_value(s, right);
        if (!decides || tl_is_bad(&b))
            return tl_binary_vals(s, op, a, b, loc);
        if (tl_val_dtype(&b) != TL_BOOL)
            return tl_binary_vals(s, op, a, b, loc);
        if (b.kind == TL_VAL_IR && b.u.ir->type->rank)
            return tl_val_ir(tl_const_bits(&s->b, b.u.ir->type, a.u.bits));
        return a;
    }
    if (a.kind != TL_VAL_IR || a.u.ir->type->rank || a.u.ir->type->dtype != TL_BOOL ||
        a.u.ir->type->ptr)
        return tl_binary_vals(s, op, a, tl_eval_value(s, right), loc);
    TlArm arms[2];
    tl_arm_begin(s, &arms[0]);
    TlVal b = tl_eval_value(s, right);
    tl_arm_end(s, &arms[0]);
    bool scalar = (b.kind == TL_VAL_IR && tl_is_scalar(b.u.ir->type) &&
                   b.u.ir->type->dtype == TL_BOOL && !b.u.ir->type->ptr) ||
                  (b.kind == TL_VAL_CONST && b.dtype == TL_BOOL);
    if (!scalar || tl_arm_is_cheap(&arms[0])) {
        tl_arm_inline(s, &arms[0]);
        return tl_binary_vals(s, op, a, b, loc);
    }
    tl_arm_begin(s, &arms[1]);
    TlVal known = tl_val_bool(!is_and), out = tl_bad();
    tl_arm_end(s, &arms[1]);
    tl_arms_join(s, a.u.ir, &arms[!is_and], &arms[is_and], is_and ? &b : &known,
                 is_and ? &known : &b, &out, loc);
    return out;
}
