/* All statements except loops: declarations, assignments, branches, returns. */
#include "frontend/sema.h"
#include <string.h>

/* ---- declarations ---- */

/* The value of a mutable variable is no compile-time constant, even if its initialiser is. */
static TlVal forget(TlSema *s, const TlVal *v, TlLoc loc)
{
    if (v->kind == TL_VAL_CONST)
        return tl_val_ir(tl_materialize(s, v, loc));
    if (!tl_has_items(v))
        return *v;
    TlVal out = tl_val_copy(s, v);
    for (uint32_t i = 0; i < v->n; i++)
        out.items[i] = forget(s, &v->items[i], loc);
    return out;
}

/* 0, 0.5, -inf */
static bool is_literal(const TlExpr *e)
{
    if (e->kind == TL_EX_UNARY)
        e = e->a;
    return e->kind == TL_EX_INT || e->kind == TL_EX_FLOAT || e->kind == TL_EX_INF;
}

/* Declares a variable with a value that has been converted to ty. */
static void declare(TlSema *s, const TlDecl *d, TlTy ty, TlVal v, bool is_const)
{
    bool is_auto = ty.kind == TL_TY_AUTO;
    if (!is_const)
        v = forget(s, &v, d->loc);
    ty = tl_ty_settled(s, &ty, &v);
    if (ty.kind == TL_TY_UNKNOWN) {
        TlTy own = tl_ty_of(s, &v);
        if (own.kind != TL_TY_UNKNOWN)
            ty = own;
    }
    if (v.kind == TL_VAL_IR && v.u.ir && !v.u.ir->name)
        v.u.ir->name = d->name;
    tl_var_declare(s, d->local, ty, v, is_const)->made_of =
        is_auto && d->init && is_literal(d->init) ? d->init : NULL;
}

static void declare_one(TlSema *s, const TlStmt *st, const TlDecl *d)
{
    s->b.loc = d->loc;
    TlTy ty = tl_type_resolve(s, st->type);
    TlVal v;
    if (d->count)
        ty = tl_array_ty(s, &ty, d->count, d->loc);
    if (ty.kind == TL_TY_VOID) {
        tl_err(s, st->type->loc, TL_E0211, "a variable of type void");
        ty = tl_ty_unknown(TL_DTYPE_COUNT);
    }
    if (!d->init) {
        if (ty.kind == TL_TY_AUTO)
            ty = tl_ty_unknown(TL_DTYPE_COUNT); /* the parser has reported it */
        v = tl_default_of(s, &ty, d->loc);
    } else if (d->init->braces) {
        v = tl_eval_init(s, d->init, &ty);
    } else {
        TlVal x = tl_eval_value(s, d->init);
        v = tl_convert(s, &x, &ty, d->init->loc);
        if (st->is_const && x.kind == TL_VAL_UNKNOWN && ty.kind == TL_TY_VALUE)
            v = tl_unknown(ty.type->dtype);
        if (v.kind == TL_VAL_ERROR) /* one error is enough */
            v = ty.kind == TL_TY_VALUE || ty.kind == TL_TY_ARRAY ? tl_zero(s, &ty)
                                                                 : tl_unknown(TL_DTYPE_COUNT);
        if (tl_is_tile(&x) && ty.kind == TL_TY_VALUE && ty.type->rank == 0)
            v = tl_unknown(TL_DTYPE_COUNT), ty = tl_ty_unknown(TL_DTYPE_COUNT); /* auto was meant */
    }
    declare(s, d, ty, v, st->is_const);
}

static void unpack(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->kind == TL_ST_UNPACK, "statement kind %d unpacks nothing", (int)st->kind);
    TlVal v = tl_eval_value(s, st->value);
    bool fits = v.kind == TL_VAL_TUPLE && v.n == st->decls.len;
    if (!fits && !tl_is_bad(&v))
        tl_err(s, st->value->loc, TL_E0317, st->decls.len,
               v.kind == TL_VAL_TUPLE ? tl_format(s->arena, "%u: %s", v.n, tl_val_str(s, &v))
                                      : tl_val_str(s, &v));
    for (uint32_t i = 0; i < st->decls.len; i++) {
        const TlDecl *d = &st->decls.data[i];
        TlTy any = tl_ty_kind(TL_TY_AUTO);
        TlVal x =
            fits ? tl_convert(s, &v.items[i], &any, st->value->loc) : tl_unknown(TL_DTYPE_COUNT);
        declare(s, d, any, x, st->is_const);
    }
}

/* ---- assignments ---- */

/* The field of v that a chain of members names; NULL if there is none (diagnosed). */
static TlVal *find_field(TlSema *s, TlVal *v, TlTy *ty, const TlExpr *e)
{
    if (e->kind != TL_EX_MEMBER)
        return v;
    TlVal *outer = find_field(s, v, ty, e->a);
    if (!outer)
        return NULL;
    if (outer->kind == TL_VAL_STRUCT) {
        const TlItem *item = outer->def->item;
        *outer = tl_val_copy(s, outer);
        for (uint32_t i = 0; i < outer->n; i++)
            if (item->fields.data[i].name == e->u.name) {
                *ty = ty->kind == TL_TY_STRUCT ? ty->items[i] : outer->def->fields[i];
                return &outer->items[i];
            }
    }
    if (!tl_is_bad(outer))
        tl_err(s, e->loc, TL_E0210, tl_val_str(s, outer), e->u.name);
    return NULL;
}

static void refuse_const(TlSema *s, TlLoc loc, const TlVar *var)
{
    TlDiag *row = tl_err(s, loc, TL_E0209, var->name);
    if (var->val.kind == TL_VAL_VIEW)
        tl_label(s, row, "a view is no variable: assign to its elements, as in %s[i +: B] = ...",
                 var->name);
    if (var->loc.line)
        tl_note(s, row, var->loc, "declared here");
}

static TlDtype float_or_own(const TlVal *v)
{
    return v->kind == TL_VAL_FLOAT ? TL_F32 : tl_val_dtype(v);
}

/* A scalar that auto made of a literal meets what it cannot hold: `auto s = 0; s += 0.5;`. The
 * mistake is in the declaration. False: v may fit. */
static bool is_misdeclared(const TlVar *var, const TlVal *v)
{
    if (!var || !var->made_of || var->ty.kind != TL_TY_VALUE || !tl_is_scalar(var->ty.type) ||
        var->ty.type->ptr || tl_is_pointer(v) || !(tl_is_number(v) || v->kind == TL_VAL_UNKNOWN))
        return false;
    TlDtype own = var->ty.type->dtype, d = float_or_own(v);
    return tl_is_tile(v) || (tl_is_int(own) && d != TL_DTYPE_COUNT && tl_is_float(d));
}

/* `auto m = row(n) < N; m = m && col(k) < K;`: a tile of more elements than the variable's. */
static bool would_grow(const TlVar *var, const TlVal *v)
{
    const TlType *own = var->ty.kind == TL_TY_VALUE ? var->ty.type : NULL;
    if (!own || own->ptr || own->rank == 0 || v->kind != TL_VAL_IR || v->u.ir->type->ptr)
        return false;
    const TlType *t = v->u.ir->type;
    return t->dtype == own->dtype && tl_broadcasts_to(own, t->rank, t->shape) &&
           !tl_broadcasts_to(t, own->rank, own->shape);
}

/* One error with the declaration; afterwards the variable may be anything. */
static void blame_declaration(TlSema *s, TlVar *var, const TlVal *v, int op, TlLoc loc)
{
    TlDtype own = var->ty.type->dtype, d = float_or_own(v);
    const char *from = v->kind == TL_VAL_FLOAT     ? tl_const_text(s, v)
                       : v->kind == TL_VAL_UNKNOWN ? tl_dtype_name(d)
                                                   : tl_val_str(s, v);
    TlDiag *row = tl_is_tile(v) ? tl_err(s, loc, TL_E0304, from, tl_dtype_name(own))
                  : op >= 0     ? tl_err(s, loc, TL_E0302, tl_binop_text(op), tl_dtype_name(own),
                                         from)
                                : tl_err(s, loc, TL_E0301, from, tl_dtype_name(own));
    const char *type = tl_is_tile(v) ? tl_type_str(s->ctx, v->u.ir->type) : tl_dtype_name(d);
    const char *init = tl_source_text(s->ctx, var->made_of->begin, var->made_of->end);
    tl_label(s, row, "'%s' is %s, as %s is: declare %s %s = %s", var->name, tl_dtype_name(own),
             init, type, var->name, init);
    tl_note(s, row, var->loc, "declared here");
    var->is_wrong = true;
}

/* The variable that is assigned to, whose name root is; NULL after an error. */
static TlVar *assigned_var(TlSema *s, const TlExpr *place, const TlExpr *root)
{
    TlVar *var = tl_var_of(s, root);
    tl_fact_name(s, root);
    if (!var) {
        s->assigned = place;
        TlVal old = tl_eval(s, place); /* an unknown name is diagnosed there */
        if (!tl_is_bad(&old))
            tl_err(s, place->loc, TL_E0214, "");
        return NULL;
    }
    if (root->local->item != s->frame->item) {
        TlDiag *row = tl_err(s, root->loc, TL_E0347, var->name);
        tl_note(s, row, var->loc, "declared here");
        return NULL;
    }
    if (var->is_const)
        refuse_const(s, root->loc, var);
    return var->is_const ? NULL : var;
}

static void assign_var(TlSema *s, const TlExpr *place, const TlVal *v, TlLoc vloc)
{
    const TlExpr *root = place;
    while (root->kind == TL_EX_MEMBER)
        root = root->a;
    TlVar *var = assigned_var(s, place, root);
    if (!var)
        return;
    TlVal whole = var->val;
    TlTy ty = var->ty;
    TlVal *field = find_field(s, &whole, &ty, place);
    if (!field)
        return;
    if (var->is_wrong)
        return;
    if (place == root && is_misdeclared(var, v)) {
        blame_declaration(s, var, v, -1, vloc);
        return;
    }
    if (place == root && would_grow(var, v)) {
        TlDiag *row =
            tl_err(s, vloc, TL_E0304, tl_val_str(s, v), tl_type_str(s->ctx, var->ty.type));
        tl_label(s, row, "a variable keeps the shape that it is declared with: declare %s %s",
                 tl_type_str(s->ctx, v->u.ir->type), var->name);
        tl_note(s, row, var->loc, "declared here");
        return;
    }
    TlVal x = tl_convert(s, v, &ty, vloc);
    if (x.kind == TL_VAL_ERROR)
        return; /* the variable keeps a value of its type */
    *field = forget(s, &x, vloc);
    tl_var_set(s, var, whole);
}

/* ---- elements of arrays ---- */

/* An element of an array, V[i], or a field of one, V[i].f, as a place. */
typedef struct Element {
    const TlExpr *place;
    TlVar *var; /* the array; NULL after an error */
    TlArrayIndex index;
} Element;

/* The node V[i] in it; NULL if the place is none of an array. */
static const TlExpr *element_of(TlSema *s, const TlExpr *place)
{
    while (place->kind == TL_EX_MEMBER)
        place = place->a;
    if (place->kind != TL_EX_INDEX || place->a->kind != TL_EX_NAME)
        return NULL;
    const TlVar *var = tl_var_of(s, place->a);
    return var && var->val.kind == TL_VAL_ARRAY ? place : NULL;
}

static Element eval_element(TlSema *s, const TlExpr *place, const TlExpr *at)
{
    Element e = {.place = place, .var = assigned_var(s, place, at->a)};
    s->b.loc = at->loc;
    if (e.var && !tl_array_index(s, &e.var->val, at, &e.index))
        e.var = NULL;
    return e;
}

/* The value of an element, or of its field. The array may have been assigned since eval_element. */
static TlVal read_element(TlSema *s, const Element *e)
{
    TlVal x = tl_array_get(s, &e->var->val, &e->index);
    TlTy ty = *e->var->val.u.type->items;
    const TlVal *field = find_field(s, &x, &ty, e->place);
    return field ? *field : tl_bad();
}

static void assign_element(TlSema *s, const Element *e, const TlVal *v, TlLoc vloc)
{
    bool is_whole = e->place->kind == TL_EX_INDEX;
    if (!e->var || e->var->val.kind != TL_VAL_ARRAY)
        return;
    TlTy ty = tl_array_place_ty(s, &e->var->val, &e->index);
    TlVal x = tl_val(TL_VAL_VOID), *field = &x;
    if (!is_whole) {
        x = tl_array_get(s, &e->var->val, &e->index);
        field = find_field(s, &x, &ty, e->place);
    }
    if (!field)
        return;
    TlVal y = tl_convert(s, v, &ty, vloc);
    if (y.kind == TL_VAL_ERROR)
        return;
    if (tl_is_bad(&y))
        y = tl_zero(s, &ty);
    *field = forget(s, &y, vloc);
    tl_var_set(s, e->var, tl_array_put(s, &e->var->val, &e->index, &x));
}

/* V[i] = v and V[i] op= v: the place comes before the value. */
static void assign_to_element(TlSema *s, const TlStmt *st, const TlExpr *at)
{
    Element e = eval_element(s, st->place, at);
    TlVal old = st->op >= 0 && e.var ? read_element(s, &e) : tl_bad();
    TlVal v = tl_eval_value(s, st->value);
    s->b.loc = st->loc;
    if (st->op >= 0)
        v = tl_binary_vals(s, st->op, old, v, st->loc);
    s->b.loc = st->place->loc;
    if (v.kind != TL_VAL_ERROR)
        assign_element(s, &e, &v, st->op >= 0 ? st->loc : st->value->loc);
}

static void assign_to(TlSema *s, const TlExpr *place, const TlVal *v, TlLoc vloc);

static bool is_memory(const TlSema *s, const TlExpr *place)
{
    return place->kind == TL_EX_INDEX || place->kind == TL_EX_UNCHECKED || tl_is_at(s, place);
}

static void assign_tuple(TlSema *s, const TlExpr *place, const TlVal *v, TlLoc vloc)
{
    TL_ASSERT(place->kind == TL_EX_TUPLE, "expression kind %d is no tuple", (int)place->kind);
    bool fits = v->kind == TL_VAL_TUPLE && v->n == place->args.len;
    if (!fits && !tl_is_bad(v))
        tl_err(s, vloc, TL_E0317, place->args.len,
               v->kind == TL_VAL_TUPLE ? tl_format(s->arena, "%u: %s", v->n, tl_val_str(s, v))
                                       : tl_val_str(s, v));
    for (uint32_t i = 0; i < place->args.len; i++) {
        TlVal x = fits ? v->items[i] : tl_unknown(TL_DTYPE_COUNT);
        assign_to(s, place->args.data[i].value, &x, vloc);
    }
}

/* Assigns a value that has been evaluated. */
static void assign_to(TlSema *s, const TlExpr *place, const TlVal *v, TlLoc vloc)
{
    s->b.loc = place->loc;
    const TlExpr *at = element_of(s, place);
    if (at) {
        Element e = eval_element(s, place, at);
        assign_element(s, &e, v, vloc);
        return;
    }
    if (is_memory(s, place)) {
        TlAccess a;
        tl_access(s, place, &a);
        if (tl_access_ok(&a))
            tl_access_store(s, &a, v, vloc, NULL);
        return;
    }
    if (place->kind == TL_EX_NAME || place->kind == TL_EX_MEMBER)
        assign_var(s, place, v, vloc);
    else if (place->kind == TL_EX_TUPLE)
        assign_tuple(s, place, v, vloc);
    else
        tl_err(s, place->loc, TL_E0214, "");
}

/* view[...] = v and view[...] op= v: the place comes before the value. */
static void assign_memory(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->kind == TL_ST_ASSIGN, "statement kind %d assigns nothing", (int)st->kind);
    TlAccess a;
    s->b.loc = st->place->loc;
    tl_access(s, st->place, &a);
    TlVal old = tl_unknown(TL_DTYPE_COUNT);
    if (st->op >= 0 && tl_access_ok(&a)) {
        if (a.gathers) {
            tl_err(s, a.loc, TL_E0507, "");
            a.bad = tl_bad();
        } else if (!tl_access_updates(s, &a, st->loc)) {
            a.bad = tl_bad();
        } else {
            old = tl_access_load(s, &a, NULL);
        }
    }
    TlVal v = tl_eval_value(s, st->value);
    if (!tl_access_ok(&a))
        return;
    s->b.loc = s->operator_at = st->loc;
    s->operands[0] = st->place, s->operands[1] = st->value;
    if (st->op >= 0)
        v = tl_binary_vals(s, st->op, old, v, st->loc);
    s->b.loc = st->place->loc;
    tl_access_store(s, &a, &v, st->op >= 0 ? st->loc : st->value->loc, NULL);
}

static void assign(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->kind == TL_ST_ASSIGN, "statement kind %d assigns nothing", (int)st->kind);
    const TlExpr *at = element_of(s, st->place);
    if (at) {
        assign_to_element(s, st, at);
        return;
    }
    if (is_memory(s, st->place)) {
        assign_memory(s, st);
        return;
    }
    if (st->op < 0) {
        TlVal v = tl_eval_value(s, st->value);
        assign_to(s, st->place, &v, st->value->loc);
        return;
    }
    TlVar *var = tl_var_of(s, st->place);
    if (var && var->is_const) {
        tl_fact_name(s, st->place);
        refuse_const(s, st->place->loc, var);
        tl_eval_value(s, st->value);
        return;
    }
    TlVal old = tl_eval_value(s, st->place), v = tl_eval_value(s, st->value);
    s->b.loc = s->operator_at = st->loc;
    s->operands[0] = st->place, s->operands[1] = st->value;
    if (is_misdeclared(var, &v) && st->op <= TL_BIN_SUB) {
        blame_declaration(s, var, &v, st->op, st->loc);
        return;
    }
    if (var && var->made_of && v.kind == TL_VAL_UNKNOWN && v.dtype == TL_DTYPE_COUNT)
        var->is_wrong = true; /* it may be: an instance tells */
    v = tl_binary_vals(s, st->op, old, v, st->loc);
    if (v.kind != TL_VAL_ERROR)
        assign_to(s, st->place, &v, st->loc);
}

/* ---- return ---- */

/* May an instance return this, and nothing of the type that another arm of a static if returns? */
static bool is_of_other_instance(TlSema *s, const TlVal *v)
{
    const TlFrame *f = s->frame;
    if (!f->is_auto || !f->undecided || f->ty.kind == TL_TY_AUTO || tl_is_bad(v))
        return false;
    TlTy ty = tl_ty_of(s, v);
    return !tl_ty_same(&ty, &f->ty);
}

static void check_return(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->kind == TL_ST_RETURN, "statement kind %d returns nothing", (int)st->kind);
    TlFrame *f = s->frame;
    const char *name = f->def ? f->def->item->name : "this";
    bool nothing = !f->def || f->def->item->kind == TL_IT_KERNEL || f->ty.kind == TL_TY_VOID;
    if (!st->value && f->def && f->def->item->broken) { /* the value may not have parsed */
        if (f->ty.kind == TL_TY_AUTO)
            f->ty = tl_ty_kind(TL_TY_UNKNOWN);
        return;
    }
    if (!st->value) {
        if (!nothing && f->ty.kind != TL_TY_AUTO && f->ty.kind != TL_TY_UNKNOWN)
            tl_err(s, st->loc, TL_E0321, name, tl_ty_str(s, &f->ty));
        if (f->ty.kind == TL_TY_AUTO)
            f->ty = tl_ty_kind(TL_TY_VOID);
        return;
    }
    TlVal v = tl_eval(s, st->value);
    if (nothing) {
        if (v.kind != TL_VAL_VOID && v.kind != TL_VAL_ERROR)
            tl_err(s, st->value->loc, TL_E0319, name);
        return;
    }
    tl_check_value(s, &v, st->value->loc);
    if (is_of_other_instance(s, &v))
        f->ty = tl_ty_kind(TL_TY_UNKNOWN);
    TlVal x = tl_convert(s, &v, &f->ty, st->value->loc);
    if (x.kind == TL_VAL_ERROR)
        x = f->ty.kind == TL_TY_VALUE ? tl_zero(s, &f->ty) : tl_unknown(TL_DTYPE_COUNT);
    if (!tl_is_bad(&x))
        f->ty = tl_ty_settled(s, &f->ty, &x);
    tl_var_set(s, f->result, x);
}

static void leave(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->kind == TL_ST_RETURN || st->kind == TL_ST_BREAK || st->kind == TL_ST_CONTINUE,
              "statement kind %d leaves nothing", (int)st->kind);
    TlLoop *loop = s->frame->loop;
    if (st->kind == TL_ST_RETURN) {
        check_return(s, st);
        tl_var_set(s, s->frame->returned, tl_val_bool(true));
    } else if (!loop) {
        tl_err(s, st->loc, TL_E0331, st->kind == TL_ST_BREAK ? "break" : "continue");
    } else {
        TlVar *flag = st->kind == TL_ST_BREAK ? loop->broken : loop->continued;
        TL_ASSERT(flag, "a loop does not know that its body leaves it");
        tl_var_set(s, flag, tl_val_bool(true));
    }
}

/* ---- branches ---- */

/* An else-if ladder: a loop walks down the rungs, then they are joined from the end. */
static void if_ladder(TlSema *s, const TlStmt *st)
{
    TL_ASSERT(st->kind == TL_ST_IF && !st->is_static, "statement kind %d is no if", (int)st->kind);
    typedef struct Rung {
        TlArm then, els;
        TlValue *cond;
        TlLoc loc;
    } Rung;
    TL_VEC(Rung *) rungs = {0};
    for (; st && st->kind == TL_ST_IF && !st->is_static; st = st->els) {
        TlVal known;
        s->b.loc = st->loc;
        if (!tl_step(s, st->loc))
            break;
        TlValue *cond = tl_eval_cond(s, st->cond, &known);
        if (known.kind == TL_VAL_CONST) {
            if (known.u.bits) {
                st = st->then;
                break;
            }
            if (!s->abstract)
                continue; /* not this rung */
        }
        Rung *r = TL_NEW(s->arena, Rung);
        r->cond = cond, r->loc = st->loc;
        tl_arm_begin(s, &r->then);
        tl_stmt(s, st->then);
        tl_arm_end(s, &r->then);
        tl_arm_begin(s, &r->els);
        tl_vec_push(s->arena, &rungs, r);
    }
    if (st)
        tl_stmt(s, st);
    for (uint32_t i = rungs.len; i-- > 0;) {
        Rung *r = rungs.data[i];
        tl_arm_end(s, &r->els);
        tl_arms_join(s, r->cond, &r->then, &r->els, NULL, NULL, NULL, r->loc);
    }
}

static void static_if(TlSema *s, const TlStmt *st)
{
    for (; st; st = st->els) {
        if (st->kind != TL_ST_IF || !st->is_static) {
            tl_stmt(s, st);
            return;
        }
        TlVal c;
        TlValue *run_time = tl_eval_cond(s, st->cond, &c);
        if (run_time) {
            tl_err(s, st->cond->loc, TL_E0406, "the condition of static if");
            c = tl_bad();
        }
        if (c.kind == TL_VAL_CONST && c.u.bits) {
            tl_stmt(s, st->then);
            return;
        }
        if (c.kind == TL_VAL_CONST)
            continue;
        TlArm then, els; /* unknown here: both arms are walked */
        s->frame->undecided++;
        tl_arm_begin(s, &then);
        tl_stmt(s, st->then);
        tl_arm_end(s, &then);
        tl_arm_begin(s, &els);
        if (st->els)
            static_if(s, st->els);
        tl_arm_end(s, &els);
        s->frame->undecided--;
        tl_arms_join(s, NULL, &then, &els, NULL, NULL, NULL, st->loc);
        return;
    }
}

static bool ended(TlSema *s)
{
    bool known;
    (void)tl_exit_state(s, &known);
    return known;
}

static bool list_item(TlSema *s, void *user, uint32_t i);
static void list_from(TlSema *s, const TlStmts *list, uint32_t from);

/* `if` with one else at most, in a list: when one arm always leaves, the rest of the list
 * belongs to the other. True when the rest has been walked. */
static bool if_with_rest(TlSema *s, const TlStmt *st, const TlStmts *list, uint32_t rest)
{
    TlVal known;
    TlArm then, els;
    s->b.loc = st->loc;
    TlValue *cond = tl_eval_cond(s, st->cond, &known);
    if (known.kind == TL_VAL_CONST && !s->abstract) {
        const TlStmt *taken = known.u.bits ? st->then : st->els;
        if (taken)
            tl_stmt(s, taken);
        return false;
    }
    tl_arm_begin(s, &then);
    tl_stmt(s, st->then);
    bool then_ends = ended(s);
    tl_arm_end(s, &then);
    tl_arm_begin(s, &els);
    if (st->els)
        tl_stmt(s, st->els);
    bool els_ends = ended(s), done = then_ends != els_ends;
    if (then_ends && !els_ends)
        list_from(s, list, rest);
    tl_arm_end(s, &els);
    if (els_ends && !then_ends) {
        tl_arm_reopen(s, &then);
        list_from(s, list, rest);
        tl_arm_end(s, &then);
    }
    tl_arms_join(s, cond, &then, &els, NULL, NULL, NULL, st->loc);
    return done;
}

static void list_from(TlSema *s, const TlStmts *list, uint32_t from)
{
    TL_ASSERT(from <= list->len, "statement %u of %u", from, list->len);
    tl_sequence(s, list_item, (void *)(uintptr_t)list, from, list->len);
}

static bool list_item(TlSema *s, void *user, uint32_t i)
{
    const TlStmts *list = user;
    const TlStmt *st = list->data[i];
    bool plain_if =
        st->kind == TL_ST_IF && !st->is_static && (!st->els || st->els->kind != TL_ST_IF);
    bool leaves = st->exits.breaks || st->exits.continues || st->exits.returns;
    if (plain_if && i + 1 < list->len && leaves && tl_step(s, st->loc))
        return !if_with_rest(s, st, list, i + 1);
    tl_stmt(s, st);
    return true;
}

static void static_assert_stmt(TlSema *s, const TlStmt *st)
{
    if (!st->args.len) {
        tl_err(s, st->loc, TL_E0313, "static_assert", "cond");
        return;
    }
    TlVal c;
    TlValue *run_time = tl_eval_cond(s, st->args.data[0].value, &c);
    const TlExpr *text = st->args.len > 1 ? st->args.data[1].value : NULL;
    if (run_time)
        tl_err(s, st->args.data[0].value->loc, TL_E0406, "the condition of static_assert");
    if (text && text->kind != TL_EX_STRING)
        tl_err(s, text->loc, TL_E0338, "static_assert", "text", "a text", "something else");
    if (c.kind == TL_VAL_CONST && !c.u.bits)
        tl_err(s, st->args.data[0].value->loc, TL_E0407,
               text && text->kind == TL_EX_STRING
                   ? text->u.string
                   : tl_source_text(s->ctx, st->args.data[0].value->begin,
                                    st->args.data[0].value->end));
}

static void define(TlSema *s, const TlStmt *st)
{
    TlVal fn = st->fn->bad_head ? tl_bad() : tl_val_fn(st->fn->def, s->frame);
    tl_var_declare(s, st->decls.data[0].local, tl_ty_of(s, &fn), fn, true);
    tl_eval(s, st->value); /* which checks its body, where its name is known */
}

void tl_stmt(TlSema *s, const TlStmt *st)
{
    if (!tl_step(s, st->loc))
        return;
    s->b.loc = st->loc;
    switch (st->kind) {
    case TL_ST_EMPTY: return;
    case TL_ST_BLOCK: list_from(s, &st->body, 0); return;
    case TL_ST_DECL:
        for (uint32_t i = 0; i < st->decls.len; i++)
            declare_one(s, st, &st->decls.data[i]);
        return;
    case TL_ST_UNPACK: unpack(s, st); return;
    case TL_ST_ASSIGN: assign(s, st); return;
    case TL_ST_EXPR: {
        TlVal v = tl_eval(s, st->value);
        if (v.kind != TL_VAL_VOID)
            tl_check_value(s, &v, st->value->loc);
        return;
    }
    case TL_ST_IF:
        if (st->is_static)
            static_if(s, st);
        else
            if_ladder(s, st);
        return;
    case TL_ST_WHILE:
    case TL_ST_FOR: tl_stmt_loop_while(s, st); return;
    case TL_ST_RANGE:
        if (st->is_static)
            tl_stmt_static_for(s, st);
        else
            tl_stmt_loop_range(s, st);
        return;
    case TL_ST_RETURN:
    case TL_ST_BREAK:
    case TL_ST_CONTINUE: leave(s, st); return;
    case TL_ST_ASSERT: static_assert_stmt(s, st); return;
    case TL_ST_FUNCTION: define(s, st); return;
    }
}
