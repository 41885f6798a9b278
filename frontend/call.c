/* Calls. A user's function is walked anew at each call, in a frame of its own, with its
 * parameters as variables; the names in its parameters' types are bound by the arguments. */
#include "frontend/sema.h"

#include <string.h>

#include "ir/exp_form.h"
#include "ir/remark.h"

/* ---- binding ---- */

/* The parameters of one call, and the names their types bind. */
typedef struct Binding {
    TlSema *s;
    TlDef *def;
    TlLoc loc;
    const TlArgVal **args; /* per parameter; NULL: not given */
    bool ok, unknown;
} Binding;

/* What this call has bound the name of a type to. */
static TlVar *bound_type(Binding *b, const TlTypeExpr *t)
{
    return tl_var_find(b->s, t->local, t->name);
}

static void mismatch(Binding *b, TlName name, TlLoc loc, const char *now, const char *before)
{
    tl_err(b->s, loc, TL_E0322, name, before, now);
    b->ok = false;
}

static void bind_type(Binding *b, const TlTypeExpr *t, TlDtype d, TlLoc loc)
{
    TlSema *s = b->s;
    TlVar *v = bound_type(b, t);
    if (v && v->val.kind == TL_VAL_TYPE) {
        const TlTy *ty = v->val.u.type;
        if (ty->kind == TL_TY_VALUE && ty->type != tl_type_scalar(s->ctx, d))
            mismatch(b, t->name, loc, tl_dtype_name(d), tl_ty_str(s, ty));
        return;
    }
    if (v)
        return;
    TlTy *ty = TL_NEW(s->arena, TlTy);
    *ty = tl_ty_value(tl_type_scalar(s->ctx, d));
    tl_var_bind_const(s, t->local, t->loc, tl_val_type(ty));
}

static bool is_struct_name(TlSema *s, const TlTypeExpr *t)
{
    if (t->module)
        return true;
    TlDef *def = tl_mod_find(s->frame->mod, t->name);
    return def && def->item->kind == TL_IT_STRUCT;
}

/* Is the extent a name that an argument may bind? */
static bool binds_extent(Binding *b, const TlExpr *e)
{
    if (e->kind != TL_EX_NAME || e->parens)
        return false;
    TlDef *def = tl_mod_find(b->s->frame->mod, e->u.name);
    if (def && def->item->kind == TL_IT_CONST) {
        tl_err(b->s, e->loc, TL_E0213, e->u.name, e->u.name);
        b->ok = false;
        return false;
    }
    return true;
}

static void bind_extent(Binding *b, const TlExpr *e, int32_t n, TlLoc loc)
{
    TL_ASSERT(n > 0, "an extent of %d", (int)n);
    TlSema *s = b->s;
    int64_t before;
    if (!binds_extent(b, e))
        return;
    TlVar *v = tl_var_of(b->s, e);
    if (!v) {
        tl_var_bind_const(s, e->local, e->loc, tl_val_const(TL_I32, (uint32_t)n));
        return;
    }
    if (tl_const_int_of(&v->val, &before) && before != n)
        mismatch(b, e->u.name, loc, tl_format(s->arena, "%d", n),
                 tl_format(s->arena, "%lld", (long long)before));
}

/* Binds the names in the type of a value parameter. Literals bind nothing: they take the type that
 * other arguments give. */
static void bind_value_type(Binding *b, const TlTypeExpr *t, const TlArgVal *a)
{
    TlSema *s = b->s;
    const TlTypeExpr *elem = t->kind == TL_TE_TILE ? t->elem : t;
    bool generic = elem->kind == TL_TE_NAME && !is_struct_name(s, elem);
    if (tl_is_bad(&a->val)) {
        b->unknown = true;
        return;
    }
    if (a->val.kind == TL_VAL_STRUCT && generic && t->kind == TL_TE_NAME) {
        TlTy *ty = TL_NEW(s->arena, TlTy);
        *ty = tl_ty_of(s, &a->val);
        if (!bound_type(b, t))
            tl_var_bind_const(s, t->local, t->loc, tl_val_type(ty));
        return;
    }
    if (!tl_is_number(&a->val))
        return;
    const TlType *type = tl_val_type_of(s, &a->val);
    if (generic && !tl_is_untyped(&a->val) && !tl_is_known_int(&a->val))
        bind_type(b, elem, type->dtype, a->loc);
    if (t->kind != TL_TE_TILE)
        return;
    if (type->rank != t->extents.len) {
        bool names = false;
        for (uint32_t i = 0; i < t->extents.len; i++)
            names |= t->extents.data[i]->kind == TL_EX_NAME;
        if (names && type->rank) {
            tl_err(s, a->loc, TL_E0338, b->def->item->name, "tile",
                   tl_format(s->arena, "a tile of rank %u", t->extents.len),
                   tl_val_str(s, &a->val));
            b->ok = false;
        }
        return;
    }
    for (uint32_t i = 0; i < t->extents.len; i++)
        bind_extent(b, t->extents.data[i], type->shape[i], a->loc);
}

static bool is_float_type(const TlVar *v)
{
    const TlTy *ty = v && v->val.kind == TL_VAL_TYPE ? v->val.u.type : NULL;
    return ty && ty->kind == TL_TY_VALUE && tl_is_float(ty->type->dtype);
}

/* A type name that only literals could bind takes their default type. A known integer binds its
 * own, but beside a float it is one. */
static void default_type(Binding *b, const TlTypeExpr *t, const TlArgVal *a)
{
    const TlTypeExpr *elem = t->kind == TL_TE_TILE ? t->elem : t;
    if (elem->kind != TL_TE_NAME || is_struct_name(b->s, elem))
        return;
    if (a->val.kind == TL_VAL_CONST && tl_is_known_int(&a->val)) {
        if (!is_float_type(bound_type(b, elem)))
            bind_type(b, elem, a->val.dtype, a->loc);
        return;
    }
    if (bound_type(b, elem) || !tl_is_untyped(&a->val))
        return;
    bind_type(b, elem, tl_literal_dtype(&a->val), a->loc);
}

/* In abstract walks, and after errors: every name of the type that is not bound is unknown. */
static void bind_unknown_expr(Binding *b, const TlExpr *e)
{
    if (!e)
        return;
    if (e->kind == TL_EX_NAME && !e->parens && !tl_var_of(b->s, e) &&
        !tl_mod_find(b->s->frame->mod, e->u.name))
        tl_var_bind_const(b->s, e->local, e->loc, tl_unknown(TL_I32));
}

static void bind_unknown_type(Binding *b, const TlTypeExpr *t)
{
    const TlTypeExpr *elem = t->kind == TL_TE_TILE ? t->elem : t;
    if (elem->kind == TL_TE_NAME && !is_struct_name(b->s, elem) && !bound_type(b, elem))
        tl_var_bind_const(b->s, elem->local, elem->loc, tl_unknown(TL_DTYPE_COUNT));
    for (uint32_t i = 0; i < t->extents.len; i++)
        bind_unknown_expr(b, t->extents.data[i]);
}

/* ---- parameters of the other forms ---- */

/* Binds one name of a view's extents or strides to the run-time number, if it is not bound yet. */
static void bind_view_name(Binding *b, const TlExpr *e, TlValue *view, uint32_t axis, bool stride,
                           bool wide)
{
    if (!e || !binds_extent(b, e) || tl_var_of(b->s, e))
        return;
    tl_var_bind_const(b->s, e->local, e->loc, tl_view_extent(b->s, view, axis, stride, wide));
}

static void bind_view(Binding *b, const TlParamDecl *p, const TlArgVal *a)
{
    TlSema *s = b->s;
    if (tl_is_bad(&a->val)) {
        b->unknown = true;
        return;
    }
    const TlType *t = a->val.kind == TL_VAL_VIEW ? a->val.u.ir->type : NULL;
    if (!t || t->rank != p->extents.len) {
        tl_err(s, a->loc, TL_E0338, b->def->item->name, p->name,
               tl_format(s->arena, "a view of rank %u", p->extents.len),
               t ? tl_type_str(s->ctx, t) : tl_val_str(s, &a->val));
        b->ok = false;
        return;
    }
    if (t->is_const && !p->is_const) {
        tl_err(s, b->loc, TL_E0510, b->def->item->name, p->name);
        b->ok = false;
        return;
    }
    if (p->type->kind == TL_TE_NAME && !is_struct_name(s, p->type)) {
        bind_type(b, p->type, t->dtype, a->loc);
    } else if (p->type->kind == TL_TE_SCALAR && p->type->dtype != t->dtype) {
        tl_err(s, a->loc, TL_E0338, b->def->item->name, p->name,
               tl_format(s->arena, "a view of %s", tl_dtype_name(p->type->dtype)),
               tl_type_str(s->ctx, t));
        b->ok = false;
        return;
    }
    for (uint32_t i = 0; i < p->extents.len; i++) {
        const TlExtent *x = &p->extents.data[i];
        bool wide = x->width && (x->width->dtype == TL_I64 || x->width->dtype == TL_U64);
        bind_view_name(b, x->extent, a->val.u.ir, i, false, wide);
        bind_view_name(b, x->stride, a->val.u.ir, i, true, wide);
    }
}

static void bind_unknown_view(Binding *b, const TlParamDecl *p)
{
    bind_unknown_type(b, p->type);
    for (uint32_t i = 0; i < p->extents.len; i++) {
        bind_unknown_expr(b, p->extents.data[i].extent);
        bind_unknown_expr(b, p->extents.data[i].stride);
    }
}

TlVal tl_const_param_value(TlSema *s, TlDef *def, const TlParamDecl *p, const TlVal *v, TlLoc loc)
{
    TL_ASSERT(p->form == TL_PF_CONST || p->form == TL_PF_CONST_FN || p->form == TL_PF_CONST_TYPE,
              "parameter form %d is no constant", (int)p->form);
    if (v->kind == TL_VAL_ERROR || v->kind == TL_VAL_UNKNOWN)
        return *v;
    if (p->form == TL_PF_CONST_FN) {
        if (tl_is_fn(v))
            return *v;
        tl_err(s, loc, TL_E0338, def->item->name, p->name, "a function", tl_val_str(s, v));
        return tl_bad();
    }
    if (p->form == TL_PF_CONST_TYPE) {
        if (v->kind == TL_VAL_TYPE)
            return *v;
        tl_err(s, loc, TL_E0338, def->item->name, p->name, "a type", tl_val_str(s, v));
        return tl_bad();
    }
    TlTy ty = tl_type_resolve(s, p->type);
    bool is_it = v->kind == TL_VAL_STRUCT && ty.kind == TL_TY_STRUCT && v->def == ty.def;
    TlVal x = is_it ? *v : tl_convert(s, v, &ty, loc); /* what is unknown in it stays so */
    if (!tl_is_constant(&x)) {
        tl_label(s,
                 tl_err(s, loc, TL_E0406,
                        tl_format(s->arena, "the argument '%s' of '%s'", p->name, def->item->name)),
                 "this is %s", tl_val_str(s, v));
        return tl_bad();
    }
    return x;
}

TlVal tl_const_param_eval(TlSema *s, TlDef *def, const TlParamDecl *p, const TlExpr *e)
{
    TlTy ty = e->braces ? tl_type_resolve(s, p->type) : tl_ty_kind(TL_TY_AUTO);
    TlVal v = e->braces ? tl_eval_init(s, e, &ty) : tl_eval(s, e);
    return tl_const_param_value(s, def, p, &v, e->loc);
}

/* The defaults of const parameters see the parameters before them. */
static void bind_const(Binding *b, const TlParamDecl *p, const TlArgVal *a)
{
    TlSema *s = b->s;
    TlVal v = a ? a->val : tl_unknown(TL_DTYPE_COUNT);
    TlVal x = !a && p->init ? tl_const_param_eval(s, b->def, p, p->init)
                            : tl_const_param_value(s, b->def, p, &v, a ? a->loc : p->loc);
    if (x.kind == TL_VAL_ERROR)
        b->ok = false;
    if (x.kind == TL_VAL_UNKNOWN && p->form == TL_PF_CONST) {
        TlTy ty = tl_type_resolve(s, p->type);
        x = tl_unknown(ty.kind == TL_TY_VALUE ? ty.type->dtype : TL_DTYPE_COUNT);
    }
    tl_var_bind_const(s, p->local, p->loc, x);
}

static void bind_pointer(Binding *b, const TlParamDecl *p, const TlArgVal *a)
{
    if (tl_is_pointer(&a->val) && p->type->kind == TL_TE_NAME && !is_struct_name(b->s, p->type))
        bind_type(b, p->type, a->val.u.ir->type->dtype, a->loc);
    if (tl_is_bad(&a->val))
        b->unknown = true;
}

/* ---- the frame ---- */

static const TlItem *item_of(const Binding *b)
{
    return b->def->item;
}

static void no_parameter(TlSema *s, const TlItem *f, const TlArgVal *a)
{
    const char **names = TL_NEW_ARRAY(s->arena, const char *, f->params.len + 1);
    for (uint32_t i = 0; i < f->params.len; i++) names[i] = f->params.data[i].name;
    tl_label_parameters(s, tl_err(s, a->loc, TL_E0314, f->name, a->name), f->params.len, names);
}

/* Assigns arguments to parameters. */
static bool match_args(Binding *b, uint32_t nargs, const TlArgVal *args)
{
    TL_ASSERT(args || !nargs, "%u arguments that are not there", nargs);
    TlSema *s = b->s;
    const TlItem *f = item_of(b);
    uint32_t at = 0;
    bool ok = true;
    for (uint32_t i = 0; i < nargs; i++) {
        uint32_t p = at;
        if (args[i].name)
            for (p = 0; p < f->params.len && f->params.data[p].name != args[i].name; p++) {
            }
        else
            at++;
        if (p >= f->params.len) {
            if (args[i].name)
                no_parameter(s, f, &args[i]);
            else
                tl_err(s, b->loc, TL_E0312, f->name, f->params.len, nargs);
            return false;
        }
        if (b->args[p]) {
            tl_err(s, args[i].loc, TL_E0315, f->params.data[p].name);
            return false;
        }
        b->args[p] = &args[i];
    }
    for (uint32_t p = 0; p < f->params.len; p++)
        if (!b->args[p] && !(tl_is_const_form(&f->params.data[p]) && f->params.data[p].init)) {
            tl_err(s, b->loc, TL_E0313, f->name, f->params.data[p].name);
            ok = false;
        }
    return ok;
}

/* `const T x`: its type may be a name that other arguments bind. */
static bool named_type(const TlParamDecl *p)
{
    return p->form == TL_PF_CONST && p->type->kind == TL_TE_NAME;
}

/* First round: everything that binds names. */
static void bind_names(Binding *b)
{
    const TlItem *f = item_of(b);
    for (uint32_t i = 0; i < f->params.len; i++)
        if (tl_is_const_form(&f->params.data[i]) && b->args[i] && !named_type(&f->params.data[i]))
            bind_const(b, &f->params.data[i], b->args[i]);
    for (uint32_t i = 0; i < f->params.len; i++) {
        const TlParamDecl *p = &f->params.data[i];
        if (!b->args[i])
            continue;
        if (p->form == TL_PF_VALUE)
            bind_value_type(b, p->type, b->args[i]);
        if (p->form == TL_PF_VIEW)
            bind_view(b, p, b->args[i]);
        if (p->form == TL_PF_POINTER)
            bind_pointer(b, p, b->args[i]);
    }
    for (uint32_t i = 0; i < f->params.len; i++)
        if (f->params.data[i].form == TL_PF_VALUE && b->args[i])
            default_type(b, f->params.data[i].type, b->args[i]);
    for (uint32_t i = 0; i < f->params.len; i++)
        if (tl_is_const_form(&f->params.data[i]) && (!b->args[i] || named_type(&f->params.data[i])))
            bind_const(b, &f->params.data[i], b->args[i]);
    if (b->unknown || !b->ok)
        for (uint32_t i = 0; i < f->params.len; i++) {
            const TlParamDecl *p = &f->params.data[i];
            if (p->form == TL_PF_VALUE || p->form == TL_PF_POINTER)
                bind_unknown_type(b, p->type);
            if (p->form == TL_PF_VIEW)
                bind_unknown_view(b, p);
        }
}

/* Does the type contain a name that no argument bound, though all arguments are known? */
static bool lacks_name(Binding *b, const TlTypeExpr *t)
{
    const TlTypeExpr *elem = t->kind == TL_TE_TILE ? t->elem : t;
    TlName lost = NULL;
    if (elem->kind == TL_TE_NAME && !is_struct_name(b->s, elem) && !bound_type(b, elem))
        lost = elem->name;
    for (uint32_t i = 0; i < t->extents.len && !lost; i++) {
        const TlExpr *e = t->extents.data[i];
        if (e->kind == TL_EX_NAME && !tl_var_of(b->s, e) &&
            !tl_mod_find(b->s->frame->mod, e->u.name))
            lost = e->u.name;
    }
    if (!lost)
        return false;
    tl_err(b->s, b->loc, TL_E0323, lost, item_of(b)->name);
    b->ok = false;
    return true;
}

/* Second round: the variables, converted to the parameters' types. */
static void bind_variables(Binding *b)
{
    TlSema *s = b->s;
    const TlItem *f = item_of(b);
    for (uint32_t i = 0; i < f->params.len && b->ok; i++) {
        const TlParamDecl *p = &f->params.data[i];
        const TlArgVal *a = b->args[i];
        if (tl_is_const_form(p) || !a)
            continue;
        if (p->form == TL_PF_VIEW) {
            tl_var_bind_const(s, p->local, p->loc, a->val);
            continue;
        }
        if (lacks_name(b, p->type))
            return;
        TlTy ty = tl_type_resolve(s, p->type);
        TlVal v = tl_convert(s, &a->val, &ty, a->loc);
        if (v.kind == TL_VAL_ERROR)
            b->ok = false;
        ty = tl_ty_settled(s, &ty, &v);
        TlValue *ir = v.kind == TL_VAL_CONST ? tl_materialize(s, &v, a->loc) : NULL;
        if (ir)
            v = tl_val_ir(ir);
        tl_var_bind(s, p->local, p->loc, ty, v, false);
    }
}

static TlVal run_body(Binding *b)
{
    TlSema *s = b->s;
    const TlItem *f = item_of(b);
    const TlStmt *body = f->body;
    TlFrame *frame = s->frame;
    frame->ty = f->type ? tl_type_resolve(s, f->type) : tl_ty_kind(TL_TY_AUTO);
    frame->is_auto = frame->ty.kind == TL_TY_AUTO;
    frame->returned =
        tl_var_new(s, " returned", (TlLoc){0}, tl_ty_value(tl_type_scalar(s->ctx, TL_BOOL)),
                   tl_val_bool(false), false);
    frame->result = tl_var_new(s, " result", (TlLoc){0}, frame->ty, tl_val(TL_VAL_UNSET), false);
    if (body)
        tl_stmt(s, body);
    bool known;
    TlValue *maybe = tl_exit_state(s, &known);
    bool wants = frame->ty.kind != TL_TY_VOID && frame->ty.kind != TL_TY_AUTO &&
                 frame->ty.kind != TL_TY_UNKNOWN;
    if (!known &&
        (wants || (maybe && frame->ty.kind != TL_TY_VOID && frame->ty.kind != TL_TY_AUTO)) &&
        body && !f->broken && !s->exhausted && !f->always_returns &&
        s->dropping != frame->def)
        tl_err(s, body->end, TL_E0320, f->name);
    if (frame->result->val.kind != TL_VAL_UNSET)
        return frame->result->val;
    if (frame->ty.kind == TL_TY_VOID || frame->ty.kind == TL_TY_AUTO)
        return tl_val(TL_VAL_VOID);
    return tl_unknown(TL_DTYPE_COUNT);
}

/* A nested function may run within itself where it sees other variables: as an argument of one that
 * another call of the function around it made. */
static bool may_call(TlSema *s, const TlVal *fn, TlLoc loc, uint32_t *depth)
{
    *depth = s->frame ? s->frame->depth + 1 : 1;
    if (*depth > TL_MAX_CALLS) {
        tl_err(s, loc, TL_E0704, TL_MAX_CALLS);
        return false;
    }
    for (const TlFrame *f = s->frame; f; f = f->outer)
        if (f->def == fn->def && f->up == fn->u.up) {
            tl_err(s, loc, TL_E0207, fn->def->item->name);
            return false;
        }
    return true;
}

/* ---- calls that abstract walks have seen ---- */

/* A call whose result was unknown. The body is not walked again for the same arguments: it would
 * find what it found, and a tree of calls has two to the power of its depth. */
typedef struct Walked {
    const TlFrame *up;
    const TlArgVal *args;
    uint32_t nargs;
    TlVal result;
    struct Walked *next;
} Walked;

enum { MOST_WALKED = 64 }; /* of a function that are remembered */

static bool same_args(uint32_t n, const TlArgVal *a, const TlArgVal *b)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].name != b[i].name || !tl_same_val(&a[i].val, &b[i].val))
            return false;
    return true;
}

/* In all its parts. */
static bool is_unknown(const TlVal *v)
{
    if (!tl_has_items(v))
        return v->kind == TL_VAL_UNKNOWN;
    for (uint32_t i = 0; i < v->n; i++)
        if (!is_unknown(&v->items[i]))
            return false;
    return true;
}

static const Walked *walked_before(const TlSema *s, const TlVal *fn, uint32_t nargs,
                                   const TlArgVal *args)
{
    const Walked *w = s->abstract ? tl_map_get_ptr(&s->walked, fn->def) : NULL;
    while (w && (w->nargs != nargs || w->up != fn->u.up || !same_args(nargs, w->args, args)))
        w = w->next;
    return w;
}

/* Not what was walked without a word about its errors. */
static void remember(TlSema *s, const TlVal *fn, uint32_t nargs, const TlArgVal *args,
                     const TlVal *result)
{
    if (!s->abstract || s->untaken || s->exhausted || !is_unknown(result))
        return;
    Walked *first = tl_map_get_ptr(&s->walked, fn->def), *w = TL_NEW(s->arena, Walked);
    uint32_t n = 0;
    for (const Walked *k = first; k; k = k->next)
        n++;
    if (n == MOST_WALKED)
        return;
    *w = (Walked){fn->u.up, args, nargs, *result, first};
    tl_map_put_ptr(&s->walked, fn->def, w);
}

enum { STEPS_OF_CALL = 100 }; /* as its arguments and variables take 3 KB of memory */

/* The frame of a call: it outlives the call where its result holds a function nested in it. */
static TlFrame *frame_of_call(TlSema *s, const TlVal *fn, uint32_t depth)
{
    TlFrame *frame = TL_NEW(s->arena, TlFrame);
    *frame = (TlFrame){.mod = fn->def->mod,
                       .item = fn->def->item,
                       .vars = tl_vars_new(s, fn->def),
                       .up = fn->u.up,
                       .depth = depth};
    return frame;
}

TlVal tl_call_def(TlSema *s, const TlVal *fn, uint32_t nargs, const TlArgVal *args, TlLoc loc)
{
    TL_ASSERT(fn->kind == TL_VAL_FN && fn->def->item->kind == TL_IT_FUNCTION,
              "a value of kind %d is called", (int)fn->kind);
    TlDef *def = fn->def;
    uint32_t depth;
    if (!tl_steps(s, loc, STEPS_OF_CALL) || !may_call(s, fn, loc, &depth))
        return tl_bad();
    const Walked *known = walked_before(s, fn, nargs, args);
    if (known)
        return known->result;
    Binding b = {.s = s,
                 .def = def,
                 .loc = loc,
                 .ok = true,
                 .args = TL_NEW_ARRAY(s->arena, const TlArgVal *, def->item->params.len + 1)};
    if (!match_args(&b, nargs, args))
        return tl_bad();
    TlFrame *caller = s->frame, *frame = frame_of_call(s, fn, depth);
    TlLoc at = s->b.loc;
    /* types and defaults are checked in the function, arguments in the caller */
    frame->def = caller ? caller->def : NULL;
    frame->call = caller ? caller->call : (TlLoc){0};
    frame->outer = caller ? caller->outer : NULL;
    s->frame = frame;
    bind_names(&b);
    bind_variables(&b);
    TlVal result = tl_bad();
    frame->def = def;
    frame->call = loc;
    frame->outer = caller;
    if (b.ok) {
        result = run_body(&b);
    } else if (def->item->type) {
        TlTy ty = def->item->type->kind == TL_TE_SCALAR ? tl_type_resolve(s, def->item->type)
                                                        : tl_ty_kind(TL_TY_AUTO);
        if (ty.kind == TL_TY_VALUE)
            result = tl_zero(s, &ty);
        if (ty.kind == TL_TY_AUTO)
            result = tl_bad();
    }
    s->frame = caller;
    s->b.loc = at;
    remember(s, fn, nargs, args, &result);
    return s->exhausted ? tl_bad() : result; /* the walk of the body may have stopped early */
}

TlVal tl_call_fn(TlSema *s, const TlVal *fn, uint32_t nargs, const TlVal *args, TlLoc loc)
{
    TL_ASSERT(tl_is_fn(fn), "a value of kind %d is called",
              (int)fn->kind);
    if (fn->kind == TL_VAL_BUILTIN)
        return tl_builtin_apply(s, fn->u.builtin, fn->fast, nargs, args, loc);
    if (fn->kind != TL_VAL_FN) {
        if (!tl_is_bad(fn))
            tl_err(s, loc, TL_E0208, tl_val_str(s, fn));
        return tl_is_bad(fn) ? *fn : tl_bad();
    }
    TlArgVal *named = TL_NEW_ARRAY(s->arena, TlArgVal, nargs + 1);
    for (uint32_t i = 0; i < nargs; i++)
        named[i] = (TlArgVal){.loc = loc, .val = args[i]};
    return tl_call_def(s, fn, nargs, named, loc);
}

/* The exp2 that a form of exp is made of. */
static const TlOp *exp2_in(const TlValue *v)
{
    enum { MOST_STEPS = 4 };
    for (int i = 0; i < MOST_STEPS && v->def && v->def->nin; i++) {
        if (v->def->opcode == TL_OP_EXP2)
            return v->def;
        v = tl_in(v->def, 0);
    }
    return NULL;
}

static void remark_exp(TlSema *s, const char *function, const TlVal *r)
{
    TlExpForm form = tl_exp_form_of(function);
    const TlOp *op = form != TL_EXP_FORM_NONE && r->kind == TL_VAL_IR ? exp2_in(r->u.ir) : NULL;
    if (op)
        tl_remark(s->b.fn, op, TL_REMARK_EXP, form);
}

TlVal tl_call_std(TlSema *s, const char *module, const char *name, uint32_t nargs,
                  const TlVal *args, TlLoc loc)
{
    TlMod *m = tl_mod_std(s->prog, module);
    TlDef *def = m ? tl_mod_find(m, tl_intern_name(s, name)) : NULL;
    TL_ASSERT(def && def->item->kind == TL_IT_FUNCTION, "%s has no function %s", module, name);
    TlVal fn = tl_val_fn(def, NULL), r = tl_call_fn(s, &fn, nargs, args, loc);
    remark_exp(s, name, &r);
    return r;
}

/* ---- abstract check of a function's body ---- */

static TlVal abstract_of(TlSema *s, const TlTy *ty, TlName name)
{
    if (ty->kind == TL_TY_VALUE)
        return tl_val_ir(tl_block_arg(s->b.fn->body, ty->type, name));
    if (ty->kind != TL_TY_STRUCT)
        return tl_unknown(ty->kind == TL_TY_UNKNOWN ? ty->dtype : TL_DTYPE_COUNT);
    TlVal v = tl_val_items(s, TL_VAL_STRUCT, ty->def, ty->n);
    for (uint32_t i = 0; i < ty->n; i++)
        v.items[i] = abstract_of(s, &ty->items[i], name);
    return v;
}

static TlVal abstract_arg(TlSema *s, const TlParamDecl *p)
{
    TlTy ty = p->form == TL_PF_VALUE || p->form == TL_PF_POINTER ? tl_type_resolve(s, p->type)
                                                                 : tl_ty_kind(TL_TY_AUTO);
    if (p->form == TL_PF_VIEW) {
        TlTy elem = tl_type_resolve(s, p->type);
        if (elem.kind != TL_TY_VALUE)
            return tl_unknown(TL_DTYPE_COUNT);
        const TlType *t = tl_type_view(s->ctx, elem.type->dtype, p->is_const, (int)p->extents.len);
        return tl_val_view(tl_block_arg(s->b.fn->body, t, p->name));
    }
    return abstract_of(s, &ty, p->name);
}

static void check_body(TlSema *s, const TlVal *fn, uint32_t depth)
{
    TL_ASSERT(fn->def->item->kind == TL_IT_FUNCTION,
              "item kind %d is no function", (int)fn->def->item->kind);
    TlDef *def = fn->def;
    const TlItem *f = def->item;
    TlFrame *outer = s->frame, *frame = frame_of_call(s, fn, depth);
    Binding b = {.s = s, .def = def, .loc = f->loc, .ok = true, .unknown = true};
    b.args = TL_NEW_ARRAY(s->arena, const TlArgVal *, f->params.len + 1);
    frame->def = def;
    frame->outer = outer;
    s->frame = frame;
    for (uint32_t i = 0; i < f->params.len; i++) {
        const TlParamDecl *p = &f->params.data[i];
        if (tl_is_const_form(p))
            continue;
        if (p->form == TL_PF_VIEW)
            bind_unknown_view(&b, p);
        else
            bind_unknown_type(&b, p->type);
    }
    for (uint32_t i = 0; i < f->params.len; i++) {
        const TlParamDecl *p = &f->params.data[i];
        if (p->form == TL_PF_CONST_FN || p->form == TL_PF_CONST_TYPE)
            tl_var_bind_const(s, p->local, p->loc, tl_unknown(TL_DTYPE_COUNT));
        if (p->form == TL_PF_CONST) {
            bind_unknown_type(&b, p->type);
            TlTy ty = tl_type_resolve(s, p->type);
            tl_var_bind_const(s, p->local, p->loc,
                      tl_unknown(ty.kind == TL_TY_VALUE ? ty.type->dtype : TL_DTYPE_COUNT));
        }
    }
    for (uint32_t i = 0; i < f->params.len; i++) {
        const TlParamDecl *p = &f->params.data[i];
        for (uint32_t j = 0; j < i; j++)
            if (f->params.data[j].name == p->name)
                tl_err(s, p->loc, TL_E0202, p->name);
        if (tl_is_const_form(p))
            continue;
        TlVal v = abstract_arg(s, p);
        if (p->form == TL_PF_VALUE && p->type->kind == TL_TE_VOID)
            tl_err(s, p->type->loc, TL_E0211, "a parameter of type void");
        TlTy ty = tl_ty_of(s, &v);
        tl_var_bind(s, p->local, p->loc, ty, v, p->form == TL_PF_VIEW);
    }
    s->stand_ins++;
    run_body(&b);
    s->stand_ins--;
    s->frame = outer;
}

void tl_check_function(TlSema *s, TlDef *def)
{
    TlVal fn = tl_val_fn(def, NULL);
    check_body(s, &fn, 1);
}

/* ---- functions within functions ---- */

/* Not those of the library: its modules are checked by their own tests. */
static bool is_users(const TlSema *s, const TlMod *m)
{
    return m == s->prog->root || strncmp(m->path, "std.", 4) != 0;
}

void tl_check_nested(TlSema *s, const TlVal *fn)
{
    uint32_t depth;
    if (!s->abstract || fn->kind != TL_VAL_FN || fn->def->state != TL_FRESH ||
        !is_users(s, fn->def->mod) || !may_call(s, fn, fn->def->item->loc, &depth))
        return;
    TlArm arm;
    fn->def->state = TL_DONE;
    tl_arm_begin(s, &arm);
    check_body(s, fn, depth);
    tl_arm_end(s, &arm);
    tl_arm_discard(&arm);
}
