/* Control flow without jumps.
 *
 * An *arm* is code walked into a block of its own while the environment's trail records what it
 * assigned; when it ends, variables are back to what they were. Two arms of a condition are joined
 * by an IF whose results are the variables (their scalar and tile leaves) that the arms left
 * different.
 *
 * break, continue and return assign pseudo-variables (TlLoop.broken and continued,
 * TlFrame.returned and result), which are joined like all others. After a statement that may
 * have left, the rest of its list runs under the negated flag; when the flag is known, nothing
 * is emitted. Loops that can be left carry the flags and end when one is set. */
#include "frontend/sema.h"

/* ---- arms ---- */

void tl_arm_begin_in(TlSema *s, TlArm *arm, TlBlock *block)
{
    *arm = (TlArm){.block = block,
                   .outer = s->b,
                   .mark = s->trail.len,
                   .serial = s->serial,
                   .evens = s->evens.len};
    s->b.block = block;
    s->b.before = NULL;
}

void tl_arm_begin(TlSema *s, TlArm *arm)
{
    tl_arm_begin_in(s, arm, tl_block_new(s->b.fn, NULL));
}

static bool has_change(const TlArm *arm, const TlVar *var, TlVal *out)
{
    for (uint32_t i = 0; i < arm->changes.len; i++)
        if (arm->changes.data[i].var == var) {
            if (out)
                *out = arm->changes.data[i].val;
            return true;
        }
    return false;
}

void tl_arm_end(TlSema *s, TlArm *arm)
{
    TL_ASSERT(s->trail.len >= arm->mark, "a trail of %u is shorter than at its arm's begin, %u",
              s->trail.len, arm->mark);
    arm->changes.len = 0;
    for (uint32_t i = arm->mark; i < s->trail.len; i++) {
        TlVar *var = s->trail.data[i].var;
        if (var->serial < arm->serial && !has_change(arm, var, NULL))
            tl_vec_push(s->arena, &arm->changes, (TlChange){var, var->val});
    }
    while (s->trail.len > arm->mark) {
        TlTrail *t = &s->trail.data[--s->trail.len];
        t->var->val = t->old;
    }
    if (s->evens.len > arm->evens)
        s->evens.len = arm->evens;
    TL_ASSERT(arm->outer.block != arm->block, "an arm inside of itself");
    TlLoc loc = s->b.loc;
    s->b = arm->outer;
    s->b.loc = loc;
}

static void apply_changes(TlSema *s, const TlArm *arm)
{
    for (uint32_t i = 0; i < arm->changes.len; i++)
        tl_var_set(s, arm->changes.data[i].var, arm->changes.data[i].val);
}

void tl_arm_reopen(TlSema *s, TlArm *arm)
{
    arm->outer = s->b;
    arm->mark = s->trail.len;
    arm->evens = s->evens.len;
    apply_changes(s, arm);
    s->b.block = arm->block;
    s->b.before = NULL;
}

void tl_arm_inline(TlSema *s, TlArm *arm)
{
    TL_ASSERT(s->b.block != arm->block, "an arm that is still open is put in line");
    tl_block_move_ops(arm->block, s->b.block, s->b.before);
    apply_changes(s, arm);
}

void tl_arm_discard(TlArm *arm)
{
    while (arm->block->last)
        tl_op_erase(arm->block->last);
}

bool tl_arm_is_cheap(const TlArm *arm)
{
    uint32_t n = 0;
    if (arm->changes.len)
        return false;
    for (const TlOp *op = arm->block->first; op; op = op->next) {
        if (op->nregions || !tl_op_is_pure(op))
            return false;
        for (uint32_t i = 0; i < op->nout; i++)
            if (op->out[i]->type->rank)
                return false;
        n += op->opcode != TL_OP_CONST;
    }
    return n <= 8;
}

/* ---- views as scalars ---- */

/* A view that depends on control flow is carried as its pointer, extents and strides. */
static uint32_t view_leaves(const TlType *t)
{
    return 1 + 2u * t->rank;
}

static bool may_change(TlSema *s, const TlType *t, TlLoc loc)
{
    if (tl_dtype_bits(t->dtype) >= 8)
        return true;
    tl_err(s, loc, TL_E0345, tl_dtype_name(t->dtype)); /* its pointer could lie within a byte */
    return false;
}

static const TlType *pointer_of(TlSema *s, const TlType *t)
{
    return tl_type_ptr(s->ctx, t->dtype, t->is_const, 0, NULL);
}

static TlValue *view_number(TlSema *s, TlOpcode op, TlValue *view, int axis)
{
    TlAttr attr = {.id = TL_ATTR_AXIS, .u.i = axis};
    return tl_emit(s, op, 1, &view, tl_type_scalar(s->ctx, TL_I64), 1, &attr);
}

/* view NULL: there is no view; zeros. */
static void take_apart(TlSema *s, TlValue *view, const TlType *t, TlValues *out)
{
    TL_ASSERT(t->kind == TL_VIEW, "a type of kind %d is no view", (int)t->kind);
    const TlType *i64 = tl_type_scalar(s->ctx, TL_I64), *p = pointer_of(s, t);
    if (view)
        tl_vec_push(s->arena, out, tl_emit(s, TL_OP_VIEW_PTR, 1, &view, p, 0, NULL));
    else
        tl_vec_push(s->arena, out, tl_const_bits(&s->b, p, 0));
    for (int i = 0; i < 2 * t->rank; i++) {
        TlOpcode op = i < t->rank ? TL_OP_EXTENT : TL_OP_STRIDE;
        tl_vec_push(s->arena, out,
                    view ? view_number(s, op, view, i % t->rank) : tl_const_bits(&s->b, i64, 0));
    }
}

static TlVal put_together(TlSema *s, const TlType *t, TlValue *const *leaves)
{
    TL_ASSERT(t->kind == TL_VIEW && leaves[0]->type->ptr, "the leaves of no view");
    return tl_val_view(tl_emit(s, TL_OP_VIEW, view_leaves(t), leaves, t, 0, NULL));
}

/* ---- joins ---- */

/* A value of a join does not exist before its IF does: until then `n` is the number, from 1, of its
 * first leaf, and `u.type` the type of a view. */
typedef struct Join {
    TlSema *s;
    TlArm *arms[2];
    TlValues leaves[2];
    TL_VEC(const TlType *) types;
    TlLoc loc;
} Join;

static bool same_val(const TlVal *a, const TlVal *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case TL_VAL_IR:
    case TL_VAL_VIEW: return a->u.ir == b->u.ir;
    case TL_VAL_CONST: return a->dtype == b->dtype && a->u.bits == b->u.bits;
    case TL_VAL_TUPLE:
    case TL_VAL_STRUCT:
    case TL_VAL_ARRAY: return a->items == b->items;
    case TL_VAL_INT: return a->u.integer == b->u.integer;
    case TL_VAL_FN:
    case TL_VAL_BUILTIN: return tl_same_fn(a, b);
    case TL_VAL_ERROR:
    case TL_VAL_UNKNOWN:
    case TL_VAL_UNSET:
    case TL_VAL_VOID:
    case TL_VAL_FLOAT:
    case TL_VAL_CHOICE:
    case TL_VAL_TYPE:
    case TL_VAL_STRING:
    case TL_VAL_MODULE:
    case TL_VAL_SPACE: break;
    }
    return false;
}

/* The value as IR at the end of its arm. */
static TlValue *leaf_in_arm(Join *j, int arm, const TlVal *v)
{
    TL_ASSERT(arm == 0 || arm == 1, "arm %d", arm);
    TlBuilder saved = j->s->b;
    j->s->b.block = j->arms[arm]->block;
    j->s->b.before = NULL;
    TlValue *x = tl_materialize(j->s, v, j->loc);
    j->s->b = saved;
    return x;
}

static TlVal join_leaf(Join *j, const TlVal *a, const TlVal *b)
{
    TlTy ty = tl_ty_of(j->s, a->kind == TL_VAL_UNSET ? b : a);
    const TlVal *both[2] = {a, b};
    TlValue *x[2];
    for (int i = 0; i < 2; i++) {
        TlVal v = both[i]->kind == TL_VAL_UNSET ? tl_zero(j->s, &ty) : *both[i];
        x[i] = leaf_in_arm(j, i, &v);
        if (!x[i])
            return tl_unknown(TL_DTYPE_COUNT);
    }
    if (x[0]->type != x[1]->type) {
        tl_err(j->s, j->loc, TL_E0302, "the branches", tl_val_str(j->s, a), tl_val_str(j->s, b));
        return tl_bad();
    }
    tl_vec_push(j->s->arena, &j->leaves[0], x[0]);
    tl_vec_push(j->s->arena, &j->leaves[1], x[1]);
    tl_vec_push(j->s->arena, &j->types, x[0]->type);
    return (TlVal){
        .kind = TL_VAL_IR, .n = j->types.len, .dtype = TL_DTYPE_COUNT}; /* filled in by patch */
}

static TlVal join_views(Join *j, const TlVal *a, const TlVal *b)
{
    const TlVal *both[2] = {a, b};
    const TlType *t = (a->kind == TL_VAL_VIEW ? a : b)->u.ir->type;
    uint32_t first = j->types.len;
    for (int i = 0; i < 2; i++)
        if (both[i]->kind == TL_VAL_VIEW && both[i]->u.ir->type != t) {
            tl_err(j->s, j->loc, TL_E0302, "the branches", tl_val_str(j->s, a),
                   tl_val_str(j->s, b));
            return tl_bad();
        }
    if (!may_change(j->s, t, j->loc))
        return tl_bad();
    TlBuilder saved = j->s->b;
    for (int i = 0; i < 2; i++) {
        j->s->b.block = j->arms[i]->block;
        j->s->b.before = NULL;
        take_apart(j->s, both[i]->kind == TL_VAL_VIEW ? both[i]->u.ir : NULL, t, &j->leaves[i]);
    }
    j->s->b = saved;
    TL_ASSERT(j->leaves[0].len == j->leaves[1].len && j->leaves[0].len == first + view_leaves(t),
              "%u and %u leaves of two arms", j->leaves[0].len, j->leaves[1].len);
    for (uint32_t k = first; k < j->leaves[0].len; k++)
        tl_vec_push(j->s->arena, &j->types, j->leaves[0].data[k]->type);
    TlTy *ty = TL_NEW(j->s->arena, TlTy);
    *ty = tl_ty_of(j->s, a->kind == TL_VAL_VIEW ? a : b);
    return (TlVal){.kind = TL_VAL_VIEW, .n = first + 1, .dtype = TL_DTYPE_COUNT, .u.type = ty};
}

static TlVal join_vals(Join *j, const TlVal *a, const TlVal *b)
{
    if (same_val(a, b))
        return *a;
    if (tl_is_bad(a) || tl_is_bad(b))
        return tl_worse(a, b, TL_DTYPE_COUNT);
    const TlVal *set = a->kind == TL_VAL_UNSET ? b : a;
    if (set->kind == TL_VAL_VOID || set->kind == TL_VAL_UNSET)
        return *set;
    if (tl_has_items(set)) {
        TlVal out = tl_val_copy(j->s, set), unset = tl_val(TL_VAL_UNSET);
        for (uint32_t i = 0; i < set->n; i++)
            out.items[i] = join_vals(j, a->kind == TL_VAL_UNSET ? &unset : &a->items[i],
                                     b->kind == TL_VAL_UNSET ? &unset : &b->items[i]);
        return out;
    }
    if (tl_is_fn(set)) {
        if (a->kind != TL_VAL_UNSET && b->kind != TL_VAL_UNSET)
            tl_err(j->s, j->loc, TL_E0302, "the branches", tl_val_str(j->s, a),
                   tl_val_str(j->s, b));
        return *set;
    }
    return set->kind == TL_VAL_VIEW ? join_views(j, a, b) : join_leaf(j, a, b);
}

static void patch(TlSema *s, TlVal *v, TlValue *const *results)
{
    if (v->kind == TL_VAL_IR && !v->u.ir)
        *v = tl_val_ir(results[v->n - 1]);
    else if (v->kind == TL_VAL_VIEW && v->n)
        *v = put_together(s, v->u.type->type, results + v->n - 1);
    if (!tl_has_items(v))
        return;
    for (uint32_t i = 0; i < v->n; i++)
        patch(s, &v->items[i], results);
}

/* Variables that an arm changed, with their values after either arm. */
static void join_changes(Join *j, TlVars *vars, TlVal **vals)
{
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < j->arms[k]->changes.len; i++) {
            TlVar *var = j->arms[k]->changes.data[i].var;
            if (k == 0 || !has_change(j->arms[0], var, NULL))
                tl_vec_push(j->s->arena, vars, var);
        }
    *vals = TL_NEW_ARRAY(j->s->arena, TlVal, vars->len + 1);
    for (uint32_t i = 0; i < vars->len; i++) {
        TlVal a = vars->data[i]->val, b = a;
        has_change(j->arms[0], vars->data[i], &a);
        has_change(j->arms[1], vars->data[i], &b);
        (*vals)[i] = join_vals(j, &a, &b);
    }
}

void tl_arms_join(TlSema *s, TlValue *cond, TlArm *then, TlArm *els, const TlVal *a, const TlVal *b,
                  TlVal *out, TlLoc loc)
{
    TL_ASSERT(then, "a join of no arm");
    Join j = {.s = s, .arms = {then, els}, .loc = loc};
    TlVars vars = {0};
    TlVal *vals, joined = tl_val(TL_VAL_VOID);
    join_changes(&j, &vars, &vals);
    if (a)
        joined = join_vals(&j, a, b);
    if (then->block->first || els->block->first || j.types.len) {
        s->b.loc = loc;
        if (!cond)
            cond = tl_const_bits(&s->b, tl_type_scalar(s->ctx, TL_BOOL), 0);
        TL_ASSERT(j.types.len == j.leaves[0].len && j.types.len == j.leaves[1].len,
                  "%u results of %u and %u leaves", j.types.len, j.leaves[0].len, j.leaves[1].len);
        TlOp *op = tl_op_new(&s->b, TL_OP_IF, 1, &cond, j.types.len, j.types.data, 2, 0, NULL);
        for (int k = 0; k < 2; k++) {
            tl_block_move_ops(j.arms[k]->block, op->regions[k], NULL);
            TlBuilder end = {.fn = s->b.fn, .block = op->regions[k], .loc = s->b.loc};
            tl_yield(&end, TL_OP_YIELD, j.leaves[k].len, j.leaves[k].data);
        }
        patch(s, &joined, op->out);
        for (uint32_t i = 0; i < vars.len; i++)
            patch(s, &vals[i], op->out);
    }
    for (uint32_t i = 0; i < vars.len; i++)
        tl_var_set(s, vars.data[i], vals[i]);
    if (out)
        *out = joined;
}

/* ---- leaving ---- */

TlValue *tl_exit_state(TlSema *s, bool *known)
{
    const TlFrame *f = s->frame;
    const TlVar *flags[3] = {f->returned, f->loop ? f->loop->broken : NULL,
                             f->loop ? f->loop->continued : NULL};
    TlValue *any = NULL;
    *known = false;
    for (int i = 0; i < 3; i++) {
        if (!flags[i])
            continue;
        const TlVal *v = &flags[i]->val;
        if (v->kind == TL_VAL_CONST && v->u.bits) {
            *known = true;
            return NULL;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (!flags[i] || flags[i]->val.kind != TL_VAL_IR)
            continue;
        TlValue *x = flags[i]->val.u.ir;
        any = any ? tl_binary(&s->b, TL_OP_OR, any, x) : x;
    }
    return any;
}

/* The rest runs only where no flag is set, so each flag is false there. */
static void clear_flags(TlSema *s)
{
    TlFrame *f = s->frame;
    TlVar *flags[3] = {f->returned, f->loop ? f->loop->broken : NULL,
                       f->loop ? f->loop->continued : NULL};
    for (int i = 0; i < 3; i++)
        if (flags[i] && !(flags[i]->val.kind == TL_VAL_CONST && !flags[i]->val.u.bits))
            tl_var_set(s, flags[i], tl_val_bool(false));
}

void tl_sequence(TlSema *s, TlSeqFn item, void *user, uint32_t from, uint32_t n)
{
    TL_ASSERT(from <= n && item, "item %u of %u", from, n);
    for (uint32_t i = from; i < n && !s->exhausted; i++) {
        bool known;
        TlValue *left = tl_exit_state(s, &known);
        if (known && !s->abstract)
            return;
        if (!left && !known) {
            if (!item(s, user, i))
                return;
            continue;
        }
        TlArm rest, none;
        TlValue *cond = left ? tl_unary(&s->b, TL_OP_NOT, left) : NULL;
        tl_arm_begin(s, &rest);
        clear_flags(s);
        tl_sequence(s, item, user, i, n);
        bool rest_ends, loops = s->frame->loop != NULL;
        (void)tl_exit_state(s, &rest_ends);
        tl_arm_end(s, &rest);
        if (known) { /* never reached: walked for its errors only */
            tl_arm_discard(&rest);
            return;
        }
        tl_arm_begin(s, &none);
        tl_arm_end(s, &none);
        tl_arms_join(s, cond, &rest, &none, NULL, NULL, NULL, s->b.loc);
        if (rest_ends && !loops)
            tl_var_set(s, s->frame->returned, tl_val_bool(true)); /* on both paths */
        return;
    }
}

/* ---- what loops carry ---- */

static TlVal normal_val(TlSema *s, const TlVal *v, const TlTy *ty, TlLoc loc, TlValues *leaves)
{
    TlVal x = v->kind == TL_VAL_UNSET ? tl_zero(s, ty) : *v;
    if (tl_has_items(&x)) {
        TlVal out = tl_val_copy(s, &x);
        for (uint32_t i = 0; i < x.n; i++) {
            TlTy none = tl_ty_kind(TL_TY_AUTO);
            out.items[i] = normal_val(s, &x.items[i], &none, loc, leaves);
        }
        return out;
    }
    if (x.kind == TL_VAL_VIEW) {
        if (!may_change(s, x.u.ir->type, loc))
            return tl_bad();
        take_apart(s, x.u.ir, x.u.ir->type, leaves);
        return x;
    }
    if (!tl_is_number(&x))
        return x;
    TlValue *ir = tl_materialize(s, &x, loc);
    if (!ir)
        return tl_bad();
    tl_vec_push(s->arena, leaves, ir);
    return tl_val_ir(ir);
}

void tl_carry_begin(TlSema *s, TlCarried *c, TlLoc loc)
{
    for (uint32_t i = 0; i < c->vars.len; i++) {
        const TlVar *v = c->vars.data[i];
        const TlTy *ty = v == s->frame->result ? &s->frame->ty : &v->ty;
        tl_vec_push(s->arena, &c->init, normal_val(s, &v->val, ty, loc, &c->leaves));
    }
}

void tl_carry_late(TlSema *s, TlCarried *c, TlVar *v, const TlTy *ty, TlLoc loc)
{
    TlVal zero = tl_zero(s, ty);
    tl_vec_push(s->arena, &c->vars, v);
    tl_vec_push(s->arena, &c->init, normal_val(s, &zero, ty, loc, &c->leaves));
}

static TlVal with_leaves(TlSema *s, const TlVal *v, TlValue *const **values)
{
    if (v->kind == TL_VAL_IR) {
        TL_ASSERT((**values)->type == v->u.ir->type, "a loop carries a value as another type");
        return tl_val_ir(*(*values)++);
    }
    if (v->kind == TL_VAL_VIEW) {
        const TlType *t = v->u.ir->type;
        *values += view_leaves(t);
        return put_together(s, t, *values - view_leaves(t));
    }
    if (!tl_has_items(v))
        return *v;
    TlVal out = tl_val_copy(s, v);
    for (uint32_t i = 0; i < v->n; i++)
        out.items[i] = with_leaves(s, &v->items[i], values);
    return out;
}

void tl_carry_take(TlSema *s, const TlCarried *c, TlValue *const *values)
{
    for (uint32_t i = 0; i < c->vars.len; i++)
        tl_var_set(s, c->vars.data[i], with_leaves(s, &c->init.data[i], &values));
}

static void final_leaves(TlSema *s, const TlVal *init, const TlVal *now, TlValues *out)
{
    if (tl_has_items(init)) {
        TlVal bad = tl_bad();
        for (uint32_t i = 0; i < init->n; i++)
            final_leaves(s, &init->items[i],
                         now->kind == init->kind && now->n == init->n ? &now->items[i] : &bad, out);
        return;
    }
    if (init->kind == TL_VAL_VIEW) {
        const TlType *view = init->u.ir->type;
        bool same = now->kind == TL_VAL_VIEW && now->u.ir->type == view;
        take_apart(s, same ? now->u.ir : init->u.ir, view, out);
        return;
    }
    if (init->kind != TL_VAL_IR)
        return;
    const TlType *t = init->u.ir->type;
    TlValue *x = tl_is_number(now) ? tl_materialize(s, now, s->b.loc) : NULL;
    if (x && x->type != t)
        tl_err(s, s->b.loc, TL_E0302, "a variable of the loop", tl_type_str(s->ctx, t),
               tl_val_str(s, now));
    if (!x || x->type != t)
        x = t->ptr ? init->u.ir : tl_const_bits(&s->b, t, 0); /* after an error, or abstract */
    tl_vec_push(s->arena, out, x);
}

void tl_carry_final(TlSema *s, const TlCarried *c, TlValues *out)
{
    uint32_t before = out->len;
    for (uint32_t i = 0; i < c->vars.len; i++)
        final_leaves(s, &c->init.data[i], &c->vars.data[i]->val, out);
    TL_ASSERT(out->len - before == c->leaves.len, "%u leaves go round a loop that took %u",
              out->len - before, c->leaves.len);
}
