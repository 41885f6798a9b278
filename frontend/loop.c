/* Loops. A counted loop without exits is a FOR; all others are WHILE: region 0 takes the carried
 * values and computes whether to go on (not when a flag of an exit is set), region 1 is the
 * body. What a loop carries is found before it is walked: the outer variables that its text
 * assigns, and the flags and the result when it has exits. */
#include "frontend/sema.h"
#include <string.h>

typedef struct Loop {
    const TlStmt *st;
    TlExits exits;
    TlLoop links;
    TlCarried carried;
    /* of a range: the declared type, the bounds, and with exits the counter, the loop's own copy */
    TlDtype dtype;
    TlValue *lo, *hi, *step;
    TlVar *counter;
} Loop;

static TlVar *flag_var(TlSema *s)
{
    TlVar *v = tl_var_new(s, " flag", (TlLoc){0}, tl_ty_value(tl_type_scalar(s->ctx, TL_BOOL)),
                          tl_val_bool(false), false);
    return v;
}

static void add_vars(TlSema *s, const TlLocals *locals, TlVars *out)
{
    for (uint32_t i = 0; i < locals->len; i++) {
        TlVar *v = tl_var_find(s, locals->data[i], locals->data[i]->name);
        bool known = !v || v->is_const;
        for (uint32_t k = 0; k < out->len && !known; k++)
            known = out->data[k] == v;
        if (!known)
            tl_vec_push(s->arena, out, v);
    }
}

/* Those that are arrays: storing to an element assigns them. */
static void add_arrays(TlSema *s, const TlLocals *stored, TlVars *out)
{
    for (uint32_t i = 0; i < stored->len; i++) {
        const TlVar *v = tl_var_find(s, stored->data[i], stored->data[i]->name);
        TlLocals one = {0};
        tl_vec_push(s->arena, &one, stored->data[i]);
        if (v && v->val.kind == TL_VAL_ARRAY)
            add_vars(s, &one, out);
    }
}

/* The flags, and the list of what is carried. */
static void loop_begin(TlSema *s, Loop *l, const TlStmt *st)
{
    TL_ASSERT(st->then, "a loop without a body");
    *l = (Loop){.st = st, .exits = st->exits};
    l->links.outer = s->frame->loop;
    add_vars(s, &st->assigned, &l->carried.vars);
    add_vars(s, &st->updated, &l->carried.vars);
    add_arrays(s, &st->stored, &l->carried.vars);
    l->links.broken = flag_var(s);
    if (l->exits.breaks)
        tl_vec_push(s->arena, &l->carried.vars, l->links.broken);
}

/* Is the result's type known, and one whose values can go round a loop? */
static bool has_result(const TlFrame *f)
{
    return f->ty.kind == TL_TY_VALUE || f->ty.kind == TL_TY_STRUCT ||
           f->ty.kind == TL_TY_TUPLE || f->ty.kind == TL_TY_ARRAY;
}

static void carry_returns(TlSema *s, Loop *l)
{
    TlFrame *f = s->frame;
    if (!l->exits.returns)
        return;
    tl_vec_push(s->arena, &l->carried.vars, f->returned);
    if (has_result(f))
        tl_vec_push(s->arena, &l->carried.vars, f->result);
}

/* One pass through the body, with `continue` ending here. */
static void walk_body(TlSema *s, Loop *l)
{
    TL_ASSERT(s->frame->loop == &l->links && !l->links.continued, "the body of another loop");
    l->links.continued = l->exits.continues ? flag_var(s) : NULL;
    tl_stmt(s, l->st->then);
    if (l->links.continued)
        tl_var_set(s, l->links.continued, tl_val_bool(false));
    l->links.continued = NULL;
}

static const TlType **types_of(TlSema *s, const TlValues *v)
{
    const TlType **types = TL_NEW_ARRAY(s->arena, const TlType *, v->len + 1);
    for (uint32_t i = 0; i < v->len; i++)
        types[i] = v->data[i]->type;
    return types;
}

static void add_args(const TlValues *leaves, uint32_t from, TlBlock *block)
{
    for (uint32_t i = from; i < leaves->len; i++)
        tl_block_arg(block, leaves->data[i]->type, leaves->data[i]->name);
}

/* ---- hints ---- */

enum { MOST_HINTS = 4 }; /* of a loop: each kind once */

static int64_t hint_number(TlSema *s, const TlExpr *e, const char *what, int64_t least)
{
    TL_ASSERT(least >= 0, "%s of at least %lld", what, (long long)least);
    int64_t n = 0;
    bool unknown;
    if (!e || !tl_eval_int(s, e, what, &n, &unknown))
        return 0;
    if (n < least || n > 1024)
        tl_err(s, e->loc, TL_E0338, what, "n", "a small positive number",
               tl_format(s->arena, "%lld", (long long)n));
    return n;
}

/* specialize(1), specialize(0): with a warp of its own for copies, or without; 2: warpgroups take
 * turns, too. */
static int64_t apart_hint(TlSema *s, const TlExpr *e)
{
    int64_t n = 1;
    bool unknown;
    if (!e || !tl_eval_int(s, e, "specialize", &n, &unknown))
        return 1;
    if (n < 0 || n > 2)
        tl_err(s, e->loc, TL_E0338, "specialize", "n", "0, 1 or 2",
               tl_format(s->arena, "%lld", (long long)n));
    return n;
}

static uint32_t hint_attrs(TlSema *s, const TlHints *h, bool counted, TlAttr *attrs)
{
    uint32_t n = 0;
    int64_t stages = hint_number(s, h->stages, "pipeline", 1),
            factor = hint_number(s, h->factor, "unroll", 1), apart = apart_hint(s, h->apart);
    if (h->pipeline && counted)
        attrs[n++] = (TlAttr){.id = TL_ATTR_PIPELINE, .u.i = stages};
    if (h->unroll)
        attrs[n++] = (TlAttr){.id = TL_ATTR_UNROLL, .u.i = factor};
    if (h->nounroll && !h->unroll)
        attrs[n++] = (TlAttr){.id = TL_ATTR_UNROLL, .u.i = -1};
    if (h->specialize && apart)
        tl_warn_no_effect(s, "specialize", h->specialize_loc);
    if (h->specialize && counted)
        attrs[n++] = (TlAttr){.id = TL_ATTR_SPECIALIZE, .u.i = apart};
    TL_ASSERT(n <= MOST_HINTS, "%u hints", n);
    return n;
}

static void declare_counter(TlSema *s, const TlStmt *st, TlValue *iv, TlDtype d, bool is_even)
{
    TL_ASSERT(st->decls.len > 0 && iv->type->rank == 0, "a loop without a counter");
    const TlDecl *v = &st->decls.data[0];
    if (is_even)
        tl_even_promise(s, iv);
    tl_var_declare(s, v->local, tl_ty_value(tl_type_scalar(s->ctx, d)),
                   tl_val_ir(tl_cast(&s->b, iv, d)), st->is_const);
}

static bool goes_by_evens(const TlSema *s, const Loop *l)
{
    return tl_is_even(s, l->lo) && tl_is_even(s, l->step);
}

/* ---- one pass ---- */

static TlVal range_cond(TlSema *s, const Loop *l)
{
    TlValue *i = l->counter->val.u.ir;
    uint64_t bits;
    if (tl_value_is_const(l->step, &bits)) {
        int64_t n = tl_bits_to_int(i->type->dtype, bits);
        return n == 0 ? tl_val_bool(false)
                      : tl_val_ir(tl_binary(&s->b, n > 0 ? TL_OP_LT : TL_OP_GT, i, l->hi));
    }
    TlValue *up = tl_binary(&s->b, TL_OP_LT, i, l->hi),
            *down = tl_binary(&s->b, TL_OP_GT, i, l->hi);
    TlValue *zero = tl_const_bits(&s->b, i->type, 0);
    up = tl_binary(&s->b, TL_OP_AND, up, tl_binary(&s->b, TL_OP_GT, l->step, zero));
    down = tl_binary(&s->b, TL_OP_AND, down, tl_binary(&s->b, TL_OP_LT, l->step, zero));
    return tl_val_ir(tl_binary(&s->b, TL_OP_OR, up, down));
}

/* The counter is copied before the body and advanced after it, whatever the body does. */
static void range_pass(TlSema *s, Loop *l)
{
    TlValue *i = l->counter->val.u.ir;
    declare_counter(s, l->st, i, l->dtype, goes_by_evens(s, l));
    walk_body(s, l);
    tl_var_set(s, l->counter, tl_val_ir(tl_binary(&s->b, TL_OP_ADD, i, l->step)));
}

static TlVal plain_cond(TlSema *s, const TlStmt *st)
{
    TlVal known = tl_val_bool(true);
    if (!st->cond)
        return known;
    TlValue *c = tl_eval_cond(s, st->cond, &known);
    return c ? tl_val_ir(c) : known;
}

static bool pass_item(TlSema *s, void *user, uint32_t i)
{
    Loop *l = user;
    if (i == 0)
        walk_body(s, l);
    else
        tl_stmt(s, l->st->update);
    return true;
}

/* ---- while ---- */

static TlVal loop_cond(TlSema *s, const Loop *l)
{
    return l->counter ? range_cond(s, l) : plain_cond(s, l->st);
}

/* In region 0: go on? */
static TlValue *while_test(TlSema *s, const Loop *l)
{
    const TlType *boolean = tl_type_scalar(s->ctx, TL_BOOL);
    bool known;
    TlLoop *outer = s->frame->loop;
    TlLoop own = {.broken = l->exits.breaks ? l->links.broken : NULL};
    s->frame->loop = &own;
    TlValue *left = l->exits.breaks || l->exits.returns ? tl_exit_state(s, &known) : NULL;
    s->frame->loop = outer;
    if (!left) {
        TlVal c = loop_cond(s, l);
        TlValue *x = tl_is_bad(&c) ? NULL : tl_materialize(s, &c, l->st->loc);
        return x ? x : tl_const_bits(&s->b, boolean, 0);
    }
    TlArm test, stop;
    TlValue *go = tl_unary(&s->b, TL_OP_NOT, left);
    tl_arm_begin(s, &test);
    TlVal c = loop_cond(s, l), no = tl_val_bool(false), out = no;
    tl_arm_end(s, &test);
    if (tl_is_bad(&c))
        c = no;
    if (c.kind == TL_VAL_CONST && c.u.bits) {
        tl_arm_discard(&test);
        return go;
    }
    if (tl_arm_is_cheap(&test)) {
        tl_arm_inline(s, &test);
        return tl_binary(&s->b, TL_OP_AND, go, tl_materialize(s, &c, l->st->loc));
    }
    tl_arm_begin(s, &stop);
    tl_arm_end(s, &stop);
    tl_arms_join(s, go, &test, &stop, &c, &no, &out, l->st->loc);
    return tl_materialize(s, &out, l->st->loc);
}

static void clear_exits(TlSema *s, Loop *l)
{
    if (l->exits.breaks)
        tl_var_set(s, l->links.broken, tl_val_bool(false));
    if (l->exits.returns)
        tl_var_set(s, s->frame->returned, tl_val_bool(false));
}

static TlBlock *region_of(TlSema *s, const TlValues *leaves)
{
    TlBlock *block = tl_block_new(s->b.fn, NULL);
    add_args(leaves, 0, block);
    return block;
}

/* The first return of an auto function was in the loop's body: the loop carries the result, too. No
 * pass reads that of the pass before: one that returns is the last. */
static void carry_result(TlSema *s, Loop *l, const TlArm *body)
{
    const TlFrame *f = s->frame;
    const TlVars *vars = &l->carried.vars;
    if (!l->exits.returns || !has_result(f) || vars->data[vars->len - 1] == f->result)
        return;
    TlBuilder inside = s->b;
    s->b = body->outer;
    tl_carry_late(s, &l->carried, f->result, &f->ty, l->st->loc);
    s->b = inside;
}

/* Can its value change while the loop runs? Names that the body assigns, memory, and calls can. */
static bool changes(const TlExpr *e, const TlLocals *assigned)
{
    switch (e->kind) {
    case TL_EX_INT: return false;
    case TL_EX_NAME:
        for (uint32_t i = 0; i < assigned->len; i++)
            if (assigned->data[i] == e->local)
                return true;
        return false;
    case TL_EX_UNARY:
    case TL_EX_CAST: return changes(e->a, assigned);
    case TL_EX_BINARY:
        return e->depth > 8 || changes(e->a, assigned) || changes(e->b, assigned);
    case TL_EX_FLOAT:
    case TL_EX_BOOL:
    case TL_EX_INF:
    case TL_EX_NAN:
    case TL_EX_STRING:
    case TL_EX_COND:
    case TL_EX_CALL:
    case TL_EX_INDEX:
    case TL_EX_MEMBER:
    case TL_EX_TUPLE:
    case TL_EX_STRUCT:
    case TL_EX_MAKE:
    case TL_EX_TYPE:
    case TL_EX_FN:
    case TL_EX_UNCHECKED: break;
    }
    return true;
}

/* for (int i = a; ...; i += c) with even a and c, neither of which the loop changes: i, else
 * NULL. */
static const TlVar *even_counter(TlSema *s, const TlStmt *st)
{
    const TlStmt *u = st->update;
    if (!u || u->kind != TL_ST_ASSIGN || (u->op != TL_BIN_ADD && u->op != TL_BIN_SUB) ||
        u->place->kind != TL_EX_NAME || changes(u->place, &st->assigned) ||
        changes(u->value, &st->assigned) || changes(u->value, &st->updated))
        return NULL;
    const TlVar *i = tl_var_of(s, u->place);
    bool is_int = i && i->val.kind == TL_VAL_IR && !i->val.u.ir->type->rank &&
                  !i->val.u.ir->type->ptr && tl_is_int(i->val.u.ir->type->dtype);
    if (!is_int || !tl_is_even(s, i->val.u.ir))
        return NULL;
    TlArm aside;
    tl_arm_begin(s, &aside);
    TlVal step = tl_eval(s, u->value);
    TlValue *x = tl_is_number(&step) ? tl_materialize(s, &step, u->value->loc) : NULL;
    bool is_even = x && tl_is_even(s, x);
    tl_arm_end(s, &aside);
    tl_arm_discard(&aside);
    return is_even ? i : NULL;
}

static void emit_while(TlSema *s, Loop *l)
{
    const TlVar *even = even_counter(s, l->st);
    TlAttr attrs[MOST_HINTS];
    uint32_t nattrs = hint_attrs(s, &l->st->hints, false, attrs);
    carry_returns(s, l);
    tl_carry_begin(s, &l->carried, l->st->loc);
    const TlValues *leaves = &l->carried.leaves;
    uint32_t first = leaves->len;
    TlArm test, body;
    TlValues pass = {0}, next = {0};
    s->b.loc = l->st->loc;
    TlBlock *regions[2] = {region_of(s, leaves), region_of(s, leaves)};

    tl_arm_begin_in(s, &test, regions[0]);
    tl_carry_take(s, &l->carried, regions[0]->args);
    tl_vec_push(s->arena, &pass, while_test(s, l));
    TlBuilder tested = s->b;
    tl_arm_end(s, &test);

    tl_arm_begin_in(s, &body, regions[1]);
    tl_carry_take(s, &l->carried, regions[1]->args);
    if (even)
        tl_even_promise(s, even->val.u.ir);
    clear_exits(s, l);
    s->frame->loop = &l->links;
    if (l->counter)
        range_pass(s, l);
    else
        tl_sequence(s, pass_item, l, 0, l->st->update ? 2 : 1);
    s->frame->loop = l->links.outer;
    carry_result(s, l, &body);
    tl_carry_final(s, &l->carried, &next);
    tl_yield(&s->b, TL_OP_YIELD, next.len, next.data);
    tl_arm_end(s, &body);

    TlLoc after = s->b.loc;
    s->b.loc = l->st->loc;
    TlOp *op = tl_op_new(&s->b, TL_OP_WHILE, leaves->len, leaves->data, leaves->len,
                         types_of(s, leaves), 2, nattrs, attrs);
    for (int r = 0; r < 2; r++) {
        add_args(leaves, first, regions[r]);
        op->regions[r] = regions[r];
        regions[r]->parent = op;
    }
    for (uint32_t i = 0; i < leaves->len; i++)
        tl_vec_push(s->arena, &pass, regions[0]->args[i]);
    tl_yield(&tested, TL_OP_CONDITION, pass.len, pass.data);
    s->b.loc = after;
    tl_carry_take(s, &l->carried, op->out);
}

/* Does nothing follow the loop, because only a return can leave it? */
static bool endless(const TlStmt *st, TlExits x)
{
    return !x.breaks && (!st->cond || (st->cond->kind == TL_EX_BOOL && st->cond->u.integer));
}

/* ---- ranges ---- */

typedef struct Range {
    TlVal lo, hi, step;
    TlLoc locs[3];
    bool bad;
} Range;

/* tl.static_range(...) */
static bool is_static_range(const TlExpr *e)
{
    const TlExpr *f = e->kind == TL_EX_CALL ? e->a : NULL;
    bool named = f && (f->kind == TL_EX_NAME || f->kind == TL_EX_MEMBER);
    return named && !strcmp(f->u.name, "static_range");
}

/* range(n), range(lo, hi), range(lo, hi, step), evaluated once. */
static Range eval_range(TlSema *s, const TlExpr *e)
{
    Range r = {.lo = tl_val_int(0), .step = tl_val_int(1), .locs = {e->loc, e->loc, e->loc}};
    bool is_range =
        e->kind == TL_EX_CALL && e->a->kind == TL_EX_NAME && !strcmp(e->a->u.name, "range");
    if (!is_range || e->args.len < 1 || e->args.len > 3) {
        if (is_range && e->args.len)
            tl_err(s, e->loc, TL_E0312, "range", 3u, e->args.len);
        else if (is_range)
            tl_err(s, e->loc, TL_E0313, "range", "n");
        else
            tl_label(
                s, tl_err(s, e->loc, TL_E0338, "for", "range", "range(...)", "another expression"),
                "write %sfor (int i : range(n))", is_static_range(e) ? "static " : "");
        r.bad = true;
        return r;
    }
    TlVal *parts[3] = {&r.lo, &r.hi, &r.step};
    for (uint32_t i = 0; i < e->args.len; i++) {
        uint32_t at = e->args.len == 1 ? 1 : i;
        *parts[at] = tl_eval_value(s, e->args.data[i].value);
        r.locs[at] = e->args.data[i].value->loc;
    }
    for (int i = 0; i < 3; i++) {
        TlVal *v = parts[i];
        if (tl_is_bad(v)) {
            r.bad |= v->kind == TL_VAL_ERROR;
            continue;
        }
        if (v->kind == TL_VAL_CHOICE)
            *v = tl_convert_dtype(s, v, tl_literal_dtype(v), r.locs[i]);
        TlDtype d = tl_val_dtype(v);
        bool ok =
            v->kind == TL_VAL_INT || (tl_is_number(v) && d != TL_DTYPE_COUNT && tl_is_int(d) &&
                                      (v->kind != TL_VAL_IR || !v->u.ir->type->rank));
        if (ok)
            continue;
        tl_err(s, r.locs[i], TL_E0338, "range",
               i == 0   ? "lo"
               : i == 1 ? "hi"
                        : "step",
               "an integer scalar", tl_val_str(s, v));
        r.bad = true;
    }
    return r;
}

/* The loop variable's type: as declared, or the bounds' common type. COUNT after an error. */
static TlDtype range_dtype(TlSema *s, const TlStmt *st, const Range *r)
{
    TL_ASSERT(st->kind == TL_ST_RANGE, "statement kind %d is no range", (int)st->kind);
    TlTy ty = tl_type_resolve(s, st->type);
    const TlVal *parts[3] = {&r->lo, &r->hi, &r->step};
    TlDtype common = TL_DTYPE_COUNT;
    bool wide = false;
    for (int i = 0; i < 3; i++) {
        TlDtype d = tl_val_dtype(parts[i]);
        wide |= parts[i]->kind == TL_VAL_INT && !tl_int_fits(TL_I32, parts[i]->u.integer);
        if (d == TL_DTYPE_COUNT)
            continue;
        if (common != TL_DTYPE_COUNT && !tl_common_dtype(common, d, &d)) {
            tl_err(s, r->locs[i], TL_E0302, "range", tl_dtype_name(common),
                   tl_dtype_name(tl_val_dtype(parts[i])));
            return TL_DTYPE_COUNT;
        }
        common = d;
    }
    if (ty.kind == TL_TY_AUTO)
        return common != TL_DTYPE_COUNT ? common : wide ? TL_I64 : TL_I32;
    if (ty.kind == TL_TY_UNKNOWN)
        return TL_I32;
    if (ty.kind != TL_TY_VALUE || ty.type->rank || ty.type->ptr || !tl_is_int(ty.type->dtype)) {
        tl_err(s, st->type->loc, TL_E0338, "for", "variable", "an integer type", tl_ty_str(s, &ty));
        return TL_DTYPE_COUNT;
    }
    if (common != TL_DTYPE_COUNT && !tl_widens(common, ty.type->dtype)) {
        tl_err(s, st->decls.data[0].loc, TL_E0301,
               tl_format(s->arena, "a range of %s", tl_dtype_name(common)),
               tl_dtype_name(ty.type->dtype));
        return TL_DTYPE_COUNT;
    }
    return ty.type->dtype;
}

static TlDtype counter_dtype(TlDtype d)
{
    return tl_widens(d, TL_I32) ? TL_I32 : TL_I64;
}

static TlValue *range_part(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc)
{
    TlTy ty = tl_ty_value(tl_type_scalar(s->ctx, d));
    TlVal x = tl_val_dtype(v) == TL_DTYPE_COUNT ? tl_convert(s, v, &ty, loc)
                                                : tl_cast_val(s, v, &ty, loc);
    TlValue *ir = tl_is_bad(&x) ? NULL : tl_materialize(s, &x, loc);
    return ir ? ir : tl_const_bits(&s->b, ty.type, 0);
}

static void emit_for(TlSema *s, Loop *l)
{
    TlAttr attrs[MOST_HINTS];
    uint32_t nattrs = hint_attrs(s, &l->st->hints, true, attrs);
    tl_carry_begin(s, &l->carried, l->st->loc);
    const TlValues *leaves = &l->carried.leaves;
    TlValues in = {0};
    tl_vec_push(s->arena, &in, l->lo);
    tl_vec_push(s->arena, &in, l->hi);
    tl_vec_push(s->arena, &in, l->step);
    for (uint32_t i = 0; i < leaves->len; i++)
        tl_vec_push(s->arena, &in, leaves->data[i]);
    s->b.loc = l->st->loc;
    TlOp *op = tl_op_new(&s->b, TL_OP_FOR, in.len, in.data, leaves->len, types_of(s, leaves), 1,
                         nattrs, attrs);
    TlValue *iv = tl_block_arg(op->regions[0], l->lo->type, l->st->decls.data[0].name);
    add_args(leaves, 0, op->regions[0]);
    TlArm body;
    tl_arm_begin_in(s, &body, op->regions[0]);
    tl_carry_take(s, &l->carried, op->regions[0]->args + 1);
    declare_counter(s, l->st, iv, l->dtype, goes_by_evens(s, l));
    s->frame->loop = &l->links;
    walk_body(s, l);
    s->frame->loop = l->links.outer;
    TlValues next = {0};
    tl_carry_final(s, &l->carried, &next);
    tl_yield(&s->b, TL_OP_YIELD, next.len, next.data);
    tl_arm_end(s, &body);
    tl_carry_take(s, &l->carried, op->out);
}

void tl_stmt_loop_range(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->kind == TL_ST_RANGE, "statement kind %d is no range", (int)st->kind);
    Range parts = eval_range(s, st->value);
    TlDtype d = parts.bad ? TL_I32 : range_dtype(s, st, &parts);
    if (d == TL_DTYPE_COUNT)
        d = TL_I32, parts.bad = true;
    if (parts.bad)
        parts.lo = parts.hi = parts.step = tl_val_int(1);
    Loop l;
    loop_begin(s, &l, st);
    bool exits = l.exits.breaks || l.exits.returns;
    TlDtype c = exits ? TL_I64 : counter_dtype(d);
    l.dtype = d;
    l.lo = range_part(s, &parts.lo, c, parts.locs[0]);
    l.hi = range_part(s, &parts.hi, c, parts.locs[1]);
    l.step = range_part(s, &parts.step, c, parts.locs[2]);
    if (!exits) {
        emit_for(s, &l);
    } else {
        TlTy ty = tl_ty_value(l.lo->type);
        l.counter = tl_var_new(s, " counter", (TlLoc){0}, ty, tl_val_ir(l.lo), false);
        tl_vec_push(s->arena, &l.carried.vars, l.counter);
        emit_while(s, &l);
    }
}

/* ---- plain for and while ---- */

/* for (int i = a; i < n; i += c) with a positive literal c and nothing that changes i or n: the
 * comparison (its left side is i) and the step. */
static bool counts(TlSema *s, const TlStmt *st, const TlVar **counter)
{
    const TlStmt *init = st->init, *update = st->update;
    const TlExpr *c = st->cond;
    if (!init || !update || !c || init->kind != TL_ST_DECL || init->decls.len != 1 ||
        init->is_const)
        return false;
    if (c->kind != TL_EX_BINARY || c->u.op != TL_BIN_LT || c->a->kind != TL_EX_NAME)
        return false;
    const TlVar *i = tl_var_of(s, c->a);
    const TlType *t = i && i->ty.kind == TL_TY_VALUE ? i->ty.type : NULL;
    if (!t || c->a->local != init->decls.data[0].local || t->rank || t->ptr ||
        i->val.kind != TL_VAL_IR)
        return false;
    if (t->dtype != TL_I32 && t->dtype != TL_I64)
        return false;
    bool by_literal = update->kind == TL_ST_ASSIGN && update->op == TL_BIN_ADD &&
                      update->place->kind == TL_EX_NAME && update->place->u.name == i->name &&
                      update->value->kind == TL_EX_INT && update->value->u.integer > 0 &&
                      tl_int_fits(t->dtype, (TlInt)update->value->u.integer);
    *counter = i;
    return by_literal && !changes(c->a, &st->assigned) && !changes(c->b, &st->assigned);
}

/* The same loop as for (i : range(i, n, c)); false when n has another type than i. */
static bool emit_counted(TlSema *s, Loop *l, const TlVar *counter)
{
    const TlType *t = counter->ty.type;
    TlVal hi = tl_eval_value(s, l->st->cond->b);
    if (!tl_is_number(&hi) || tl_val_type_of(s, &hi) != t)
        return false;
    TlStmt *range = TL_NEW(s->arena, TlStmt);
    *range = *l->st;
    range->decls = l->st->init->decls;
    l->dtype = t->dtype;
    l->lo = counter->val.u.ir;
    l->hi = tl_materialize(s, &hi, l->st->cond->b->loc);
    l->step = tl_const_int(&s->b, t, (int64_t)l->st->update->value->u.integer);
    l->st = range;
    emit_for(s, l);
    return true;
}

void tl_stmt_loop_while(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->kind == TL_ST_WHILE || st->kind == TL_ST_FOR,
              "statement kind %d is no loop", (int)st->kind);
    if (st->init)
        tl_stmt(s, st->init);
    Loop l;
    const TlVar *counter = NULL;
    loop_begin(s, &l, st);
    bool exits = l.exits.breaks || l.exits.returns;
    if (!exits && !s->abstract && counts(s, st, &counter)) {
        TlCarried all = l.carried;
        l.carried.vars = (TlVars){0};
        add_vars(s, &st->assigned, &l.carried.vars); /* the counter belongs to the loop */
        add_arrays(s, &st->stored, &l.carried.vars);
        if (emit_counted(s, &l, counter))
            return;
        l.carried = all;
    }
    emit_while(s, &l);
    if (endless(st, l.exits) && l.exits.returns)
        tl_var_set(s, s->frame->returned, tl_val_bool(true));
}

/* ---- static for ---- */

typedef struct StaticFor {
    const TlStmt *st;
    int64_t lo, step;
    TlDtype dtype;
    bool unknown;
    TlVar *var; /* one for all iterations: it is const, so nothing refers to it later */
} StaticFor;

static bool static_pass(TlSema *s, void *user, uint32_t i)
{
    StaticFor *f = user;
    const TlDecl *d = &f->st->decls.data[0];
    if (!tl_step(s, f->st->loc))
        return false;
    TlVal v = tl_val_const(f->dtype, tl_bits_from_int(f->dtype, f->lo + (int64_t)i * f->step));
    if (f->unknown)
        v = tl_unknown(f->dtype);
    if (!f->var)
        f->var = tl_var_bind(s, d->local, d->loc, tl_ty_value(tl_type_scalar(s->ctx, f->dtype)), v,
                             true);
    f->var->val = v;
    tl_stmt(s, f->st->then);
    return true;
}

void tl_stmt_static_for(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->is_static, "a loop of run time is unrolled");
    Range r = eval_range(s, st->value);
    StaticFor f = {.st = st};
    TlDtype d = r.bad ? TL_I32 : range_dtype(s, st, &r);
    f.dtype = d == TL_DTYPE_COUNT ? TL_I32 : d;
    int64_t bounds[3] = {0};
    const TlVal *parts[3] = {&r.lo, &r.hi, &r.step};
    for (int i = 0; i < 3 && !r.bad; i++) {
        bool unknown = false;
        if (!tl_int_of(s, parts[i], r.locs[i], "the range of static for", &bounds[i], &unknown))
            f.unknown = true;
    }
    if (f.unknown || r.bad) { /* walked once, for its errors */
        TlArm once;
        f.unknown = true;
        tl_arm_begin(s, &once);
        static_pass(s, &f, 0);
        tl_arm_end(s, &once);
        tl_arm_discard(&once);
        return;
    }
    f.lo = bounds[0], f.step = bounds[2];
    TlInt span = (TlInt)bounds[1] - bounds[0], n = 0;
    if (f.step > 0 && span > 0)
        n = (span + f.step - 1) / f.step;
    if (f.step < 0 && span < 0)
        n = (-span - f.step - 1) / -(TlInt)f.step;
    if (n > TL_MAX_STEPS) {
        tl_err(s, st->loc, TL_E0702, TL_MAX_STEPS);
        return;
    }
    tl_sequence(s, static_pass, &f, 0, (uint32_t)n);
}
