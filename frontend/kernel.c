/* Kernels: parameters, extents and their names, clauses, and the body. One walk makes one
 * function with its launch facts. */
#include "frontend/advice.h"
#include "frontend/sema.h"
#include <string.h>

typedef struct Kernel {
    TlSema *s;
    TlDef *def;
    const TlItem *item;
    TlFn *fn;
    TlKernelInfo *info;
    bool has_grid;
    TlLoc cluster_loc; /* of the size that is more than 1 */
    TlVal *views;    /* per parameter declaration: the value bound to it */
    uint32_t *index; /* per declaration: run-time parameter number */
} Kernel;

/* ---- constants ---- */

static void bind_consts(Kernel *k, const TlBoundConst *consts)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < k->item->params.len; i++) {
        const TlParamDecl *p = &k->item->params.data[i];
        if (!tl_is_const_form(p))
            continue;
        const char *given_by = consts[at].given_by;
        TlVal v = consts[at++].val;
        tl_head_param_bind(k->s, k->item, p, v);
        TlVar *var = tl_var_find(k->s, p->local, p->name);
        if (var)
            var->given_by = given_by;
        if (!tl_is_bad(&v))
            tl_vec_push(k->s->arena, &k->info->consts,
                        (TlConstBinding){p->name, tl_const_param_text(k->s, &v)});
    }
}

/* ---- run-time parameters ---- */

/* The default of a field; only tools that make arguments use it. */
static void bind_default(Kernel *k, const TlParamDecl *p, const TlType *t, TlParam *out)
{
    if (!p->init)
        return;
    TlTy ty = tl_ty_value(t);
    TlVal v = tl_eval(k->s, p->init), x = tl_convert(k->s, &v, &ty, p->init->loc);
    out->has_value = x.kind == TL_VAL_CONST;
    out->value = out->has_value ? x.u.bits : 0;
    if (!tl_is_constant(&x))
        tl_err(k->s, p->init->loc, TL_E0406,
               tl_format(k->s->arena, "the default of '%s'", p->name));
}

static TlVal bind_arg(Kernel *k, const TlParamDecl *p, const TlType *t, tile_param_kind kind)
{
    TlParam out = {.name = p->name,
                   .loc = p->loc,
                   .kind = kind,
                   .dtype = t->dtype,
                   .is_const = kind == TILE_PARAM_SCALAR || t->is_const,
                   .of = p->of,
                   .rank = kind == TILE_PARAM_VIEW ? t->rank : 0};
    bind_default(k, p, t, &out);
    tl_vec_push(k->s->arena, &k->info->params, out);
    TlValue *arg = tl_block_arg(k->fn->body, t, p->name);
    return kind == TILE_PARAM_VIEW ? tl_val_view(arg) : tl_val_ir(arg);
}

static TlVal view_param(Kernel *k, const TlParamDecl *p)
{
    TL_ASSERT(p->form == TL_PF_VIEW, "parameter form %d is no view", (int)p->form);
    TlTy elem = tl_type_resolve(k->s, p->type);
    if (p->extents.len > TL_MAX_VIEW_RANK) {
        tl_err(k->s, p->loc, TL_E0308, TL_MAX_VIEW_RANK, (int)p->extents.len);
        return tl_bad();
    }
    if (elem.kind != TL_TY_VALUE || elem.type->rank || elem.type->ptr) {
        if (elem.kind != TL_TY_UNKNOWN)
            tl_err(k->s, p->type->loc, TL_E0605,
                   tl_format(k->s->arena, "a view of %s", tl_ty_str(k->s, &elem)));
        return tl_unknown(TL_DTYPE_COUNT);
    }
    TlDtype d = elem.type->dtype;
    return bind_arg(k, p, tl_type_view(k->s->ctx, d, p->is_const, (int)p->extents.len),
                    TILE_PARAM_VIEW);
}

static TlVal plain_param(Kernel *k, const TlParamDecl *p)
{
    TlTy ty = tl_type_resolve(k->s, p->type);
    bool pointer = p->form == TL_PF_POINTER || (ty.kind == TL_TY_VALUE && ty.type->ptr);
    if (ty.kind == TL_TY_UNKNOWN)
        return tl_unknown(ty.dtype);
    if (ty.kind != TL_TY_VALUE || ty.type->rank) {
        tl_err(k->s, p->loc, TL_E0605, tl_ty_str(k->s, &ty));
        return tl_bad();
    }
    const TlType *t = ty.type;
    if (pointer)
        t = tl_type_ptr(k->s->ctx, t->dtype, p->is_const || t->is_const, 0, NULL);
    if (pointer && tl_dtype_bits(t->dtype) == 4) {
        tl_err(k->s, p->loc, TL_E0605,
               tl_format(k->s->arena, "a pointer to %s", tl_dtype_name(t->dtype)));
        return tl_bad();
    }
    if (!pointer && tl_dtype_bits(t->dtype) == 4) {
        tl_err(k->s, p->loc, TL_E0605,
               tl_format(k->s->arena, "a scalar of %s", tl_dtype_name(t->dtype)));
        return tl_bad();
    }
    return bind_arg(k, p, t, pointer ? TILE_PARAM_POINTER : TILE_PARAM_SCALAR);
}

static void bind_params(Kernel *k)
{
    TlMap seen;
    tl_map_init(&seen, k->s->arena);
    for (uint32_t i = 0; i < k->item->params.len; i++) {
        const TlParamDecl *p = &k->item->params.data[i];
        if (tl_map_get_ptr(&seen, p->name))
            tl_err(k->s, p->loc, TL_E0202, p->name);
        tl_map_put_ptr(&seen, p->name, p);
        if (p->form == TL_PF_OPTIONS && !k->s->frame->vars[p->local->index]) /* of no fields */
            tl_var_bind_const(k->s, p->local, p->loc, tl_unknown(TL_DTYPE_COUNT));
        if (tl_is_const_form(p) || p->form == TL_PF_OPTIONS)
            continue;
        if (k->info->params.len == TILE_IMAGE_MAX_PARAMS)
            tl_err(k->s, p->loc, TL_E0606, TILE_IMAGE_MAX_PARAMS, "parameters");
        k->index[i] = k->info->params.len;
        TlVal v = p->form == TL_PF_VIEW ? view_param(k, p) : plain_param(k, p);
        k->views[i] = v;
        tl_head_param_bind(k->s, k->item, p, v);
    }
}

/* ---- extents ---- */

static bool names_param(const Kernel *k, TlName name)
{
    for (uint32_t i = 0; i < k->item->params.len; i++)
        if (k->item->params.data[i].name == name)
            return true;
    return false;
}

static int32_t find_sym(const Kernel *k, TlName name)
{
    for (uint32_t i = 0; i < k->info->syms.len; i++)
        if (k->info->syms.data[i].name == name)
            return (int32_t)i;
    return -1;
}

/* Is the extent declared i64 in one of its places? Then it is i64 in all. */
static bool is_wide_name(const Kernel *k, TlName name)
{
    for (uint32_t i = 0; i < k->item->params.len; i++) {
        const TlParamDecl *p = &k->item->params.data[i];
        for (uint32_t a = 0; p->form == TL_PF_VIEW && a < p->extents.len; a++) {
            const TlExtent *x = &p->extents.data[a];
            if (x->width && x->width->dtype == TL_I64 && x->extent->u.name == name)
                return true;
        }
    }
    return false;
}

/* An extent computed from an i64 one may be as large. */
static bool is_wide(const Kernel *k, const TlExpr *e)
{
    while (e && e->kind == TL_EX_BINARY) {
        if (is_wide(k, e->b))
            return true;
        e = e->a;
    }
    if (!e)
        return false;
    if (e->kind == TL_EX_NAME)
        return is_wide_name(k, e->u.name);
    for (uint32_t i = 0; e->kind == TL_EX_CALL && i < e->args.len; i++)
        if (is_wide(k, e->args.data[i].value))
            return true;
    if (e->kind == TL_EX_COND)
        return is_wide(k, e->b) || is_wide(k, e->c);
    return (e->kind == TL_EX_UNARY || e->kind == TL_EX_CAST) && is_wide(k, e->a);
}

/* Does it consist of literals and constants only? */
static bool is_constant(Kernel *k, const TlExpr *e)
{
    if (e->kind == TL_EX_NAME) {
        const TlVar *v = tl_var_of(k->s, e);
        if (v)
            return v->val.kind == TL_VAL_CONST || tl_is_bad(&v->val);
        TlDef *def = tl_mod_find(k->s->frame->mod, e->u.name);
        return def && def->item->kind == TL_IT_CONST;
    }
    if (e->kind == TL_EX_MEMBER) { /* of options or a module */
        TlVal v = tl_eval(k->s, e);
        return v.kind == TL_VAL_CONST || tl_is_bad(&v);
    }
    if (e->kind == TL_EX_INT)
        return true;
    if (e->kind == TL_EX_CALL) {
        for (uint32_t i = 0; i < e->args.len; i++)
            if (!is_constant(k, e->args.data[i].value))
                return false;
        return true;
    }
    while (e->kind == TL_EX_BINARY) {
        if (!is_constant(k, e->b))
            return false;
        e = e->a;
        if (e->kind != TL_EX_BINARY)
            return is_constant(k, e);
    }
    if (e->kind == TL_EX_COND)
        return is_constant(k, e->a) && is_constant(k, e->b) && is_constant(k, e->c);
    return (e->kind == TL_EX_UNARY || e->kind == TL_EX_CAST) && is_constant(k, e->a);
}

/* Of `TA ? K : M` with a constant TA the one that it chooses. NULL: only instances know TA. */
static const TlExpr *chosen(Kernel *k, const TlExpr *e)
{
    while (e && e->kind == TL_EX_COND && is_constant(k, e->a)) {
        TlVal v;
        tl_eval_cond(k->s, e->a, &v);
        if (tl_is_bad(&v))
            return NULL;
        e = v.u.bits ? e->b : e->c;
    }
    return e;
}

/* A bare name in an extent's or stride's place is a run-time number; its first place gives it. */
static void declare_sym(Kernel *k, uint32_t param, uint32_t axis, const TlExpr *e, bool stride)
{
    TL_ASSERT(axis < TL_MAX_VIEW_RANK, "axis %u of parameter %u", axis, param);
    TlSema *s = k->s;
    const TlExpr *one = chosen(k, e);
    if (e && !one) { /* either may be */
        declare_sym(k, param, axis, e->b, stride);
        declare_sym(k, param, axis, e->c, stride);
    }
    e = one;
    if (!e || e->kind != TL_EX_NAME || e->parens)
        return;
    TlDef *def = tl_mod_find(s->frame->mod, e->u.name);
    if (names_param(k, e->u.name) || (def && def->item->kind == TL_IT_CONST)) {
        tl_err(s, e->loc, TL_E0213, e->u.name, e->u.name);
        return;
    }
    if (find_sym(k, e->u.name) >= 0)
        return;
    bool wide = is_wide_name(k, e->u.name);
    const TlVal *view = &k->views[param];
    s->b.loc = e->loc;
    TlVal v = view->kind == TL_VAL_VIEW ? tl_view_extent(s, view->u.ir, axis, stride, wide)
                                        : tl_unknown(wide ? TL_I64 : TL_I32);
    if (v.kind == TL_VAL_IR)
        v.u.ir->name = e->u.name;
    if (k->info->syms.len == TILE_IMAGE_MAX_SYMS)
        tl_err(s, e->loc, TL_E0606, TILE_IMAGE_MAX_SYMS, "names of extents and strides");
    tl_vec_push(s->arena, &k->info->syms, (TlSym){e->u.name, k->index[param], axis, stride});
    tl_var_bind_const(s, e->local, e->loc, v);
}

/* C for C / GROUPS where GROUPS is 1: it is known to be the extent C. */
static const TlExpr *undivided(Kernel *k, const TlExpr *e)
{
    bool unknown;
    int64_t n = 0;
    while (e->kind == TL_EX_BINARY && e->u.op == TL_BIN_DIV && is_constant(k, e->b) &&
           tl_eval_int(k->s, e->b, "an extent", &n, &unknown) && n == 1)
        e = e->a;
    return e;
}

static TlDim dim_of(Kernel *k, const TlExpr *declared, bool is_i64)
{
    TlSema *s = k->s;
    const TlExpr *one = chosen(k, declared), *e = undivided(k, one ? one : declared);
    TlDim d = {.kind = TILE_DIM_CONST, .is_i64 = is_i64};
    int32_t sym = e->kind == TL_EX_NAME && !e->parens ? find_sym(k, e->u.name) : -1;
    tl_fact_name(s, e);
    if (sym >= 0) {
        d.kind = TILE_DIM_SYM;
        d.value = sym;
    } else if (is_constant(k, e)) {
        bool unknown;
        int64_t n = 0;
        if (tl_eval_int(s, e, "an extent", &n, &unknown) && n < 0)
            tl_err(s, e->loc, TL_E0306, (long long)n);
        d.value = n;
    } else {
        int32_t i = tl_host_expr(s, k->info, e, TL_HOST_INT);
        d.kind = TILE_DIM_EXPR;
        d.value = i < 0 ? 0 : i;
    }
    return d;
}

/* The rows of a packed view begin on bytes. */
static void check_row(Kernel *k, const TlParamDecl *p, uint32_t axis, const TlParam *out,
                      const TlDim *stride)
{
    TL_ASSERT(axis < TL_MAX_VIEW_RANK, "axis %u", axis);
    bool is_dense =
        stride->kind == TILE_DIM_DENSE || (stride->kind == TILE_DIM_CONST && stride->value == 1);
    if (tl_dtype_bits(out->dtype) == 4 && axis + 1 == p->extents.len && !is_dense)
        tl_err(k->s, p->extents.data[axis].stride->loc, TL_E0605,
               "a packed view with a stride along its last axis");
}

static void bind_extents(Kernel *k)
{
    for (uint32_t i = 0; i < k->item->params.len; i++) {
        const TlParamDecl *p = &k->item->params.data[i];
        for (uint32_t a = 0; p->form == TL_PF_VIEW && a < p->extents.len; a++) {
            declare_sym(k, i, a, p->extents.data[a].extent, false);
            declare_sym(k, i, a, p->extents.data[a].stride, true);
        }
    }
    for (uint32_t i = 0; i < k->item->params.len; i++) {
        const TlParamDecl *p = &k->item->params.data[i];
        if (p->form != TL_PF_VIEW)
            continue;
        bool there = k->views[i].kind == TL_VAL_VIEW;
        for (uint32_t a = 0; a < p->extents.len && a < TL_MAX_VIEW_RANK; a++) {
            const TlExtent *x = &p->extents.data[a];
            TlDim extent = dim_of(k, x->extent, is_wide(k, x->extent)),
                  stride = {.kind = TILE_DIM_DENSE};
            if (x->stride)
                stride = dim_of(k, x->stride, true);
            if (!there)
                continue;
            TlParam *out = &k->info->params.data[k->index[i]];
            check_row(k, p, a, out, &stride);
            out->extent[a] = extent;
            out->stride[a] = stride;
        }
    }
}

/* ---- clauses ---- */

static void push_expr(Kernel *k, void *list, const TlExpr *e, TlHostType want)
{
    TL_VEC(uint32_t) *out = list;
    int32_t i = tl_host_expr(k->s, k->info, e, want);
    if (i >= 0)
        tl_vec_push(k->s->arena, out, (uint32_t)i);
}

static void clause_grid(Kernel *k, const TlClause *c)
{
    TL_ASSERT(c->kind == TL_CL_GRID, "clause %d is no grid", (int)c->kind);
    uint32_t axes = 0;
    if (k->has_grid)
        tl_err(k->s, c->loc, TL_E0604, "grid", "it is given twice");
    k->has_grid = true;
    for (uint32_t i = 0; i < c->args.len; i++) {
        const TlArg *a = &c->args.data[i];
        if (a->name && strcmp(a->name, "group"))
            tl_err(k->s, a->loc, TL_E0314, "grid", a->name);
        else if (a->name)
            k->info->group = tl_host_expr(k->s, k->info, a->value, TL_HOST_INT);
        else if (axes++ < TILE_MAX_GRID)
            push_expr(k, &k->info->grid, a->value, TL_HOST_INT);
    }
    if (axes < 1 || axes > TILE_MAX_GRID)
        tl_err(k->s, c->loc, TL_E0601, TILE_MAX_GRID, axes);
}

static int32_t clause_number(Kernel *k, const TlClause *c, const char *name, int64_t least,
                             int64_t most)
{
    TL_ASSERT(most > 0, "%s of at most %lld", name, (long long)most);
    int64_t n = 0;
    bool unknown = false;
    if (c->args.len != 1) {
        tl_err(k->s, c->loc, TL_E0604, name, "it takes one number");
        return 0;
    }
    if (!tl_eval_int(k->s, c->args.data[0].value, name, &n, &unknown))
        return 0;
    if (n < least || n > most) {
        tl_err(k->s, c->args.data[0].value->loc, TL_E0604, name,
               tl_format(k->s->arena, "%lld is not between %lld and %lld", (long long)n,
                         (long long)least, (long long)most));
        return 0;
    }
    return (int32_t)n;
}

/* The view or pointer parameter that e names. False: another thing (diagnosed), or its type is
 * not known here. */
static bool memory_param(Kernel *k, const TlExpr *e, uint32_t *index)
{
    for (uint32_t i = 0; e->kind == TL_EX_NAME && i < k->item->params.len; i++) {
        if (k->item->params.data[i].name != e->u.name || tl_is_const_form(&k->item->params.data[i]))
            continue;
        *index = k->index[i];
        tl_fact_name(k->s, e);
        if (tl_is_bad(&k->views[i]))
            return false;
        if (k->views[i].kind == TL_VAL_VIEW || tl_is_pointer(&k->views[i]))
            return true;
    }
    tl_err(k->s, e->loc, TL_E0604, "alias", "this is not a view or pointer parameter");
    return false;
}

static void clause_alias(Kernel *k, const TlClause *c)
{
    TL_ASSERT(c->kind == TL_CL_ALIAS, "clause %d names no alias", (int)c->kind);
    if (c->args.len < 2)
        tl_err(k->s, c->loc, TL_E0604, "alias", "it takes two parameters or more");
    for (uint32_t i = 0; i < c->args.len; i++)
        for (uint32_t j = i + 1; j < c->args.len; j++) {
            uint32_t a = 0, b = 0;
            bool ok = memory_param(k, c->args.data[i].value, &a);
            if (memory_param(k, c->args.data[j].value, &b) && ok)
                tl_vec_push(k->s->arena, &k->info->aliases, (tile_image_alias){a, b});
        }
}

/* An extent, a stride, or a scalar or constant parameter: anything that a launch knows as one
 * value. */
static bool names_scalar(const Kernel *k, TlName name)
{
    for (uint32_t i = 0; i < k->item->params.len; i++)
        if (k->item->params.data[i].name == name)
            return k->item->params.data[i].form != TL_PF_VIEW &&
                   k->item->params.data[i].form != TL_PF_POINTER;
    return find_sym(k, name) >= 0;
}

/* A launch can compute it, and it is no float. */
static TlHostType key_type(const Kernel *k, TlName name)
{
    for (uint32_t i = 0; i < k->item->params.len; i++) {
        const TlParamDecl *p = &k->item->params.data[i];
        const TlVar *v = p->name == name ? tl_var_find(k->s, p->local, name) : NULL;
        if (v && v->ty.kind == TL_TY_VALUE && v->ty.type->dtype == TL_BOOL)
            return TL_HOST_BOOL;
    }
    return TL_HOST_INT;
}

static void clause_key(Kernel *k, const TlClause *c)
{
    TL_ASSERT(c->kind == TL_CL_KEY, "clause %d is no key", (int)c->kind);
    for (uint32_t i = 0; i < c->args.len; i++) {
        const TlExpr *e = c->args.data[i].value;
        TlName name = tl_dotted_name(k->s, e);
        if (e->kind == TL_EX_NAME)
            tl_fact_name(k->s, e);
        if (!name || !names_scalar(k, name))
            tl_err(k->s, e->loc, TL_E0604, "key", "this is not an extent or a scalar parameter");
        else if (k->info->keys.len == TILE_IMAGE_MAX_KEYS)
            tl_err(k->s, e->loc, TL_E0606, TILE_IMAGE_MAX_KEYS, "keys");
        else
            push_expr(k, &k->info->keys, e, key_type(k, name));
    }
}

static void check_binding(Kernel *k, TlName name, TlLoc loc, const TlExpr *value,
                          const char *clause, bool knobs)
{
    const TlParamDecl *p = tl_const_param(k->item, name);
    int32_t most = knobs ? tl_knob_most(name) : 0;
    TlVal v = tl_eval(k->s, value);
    if (p)
        tl_const_param_value(k->s, k->def, p, &v, value->loc);
    else if (!most) {
        TlDiag *row = tl_err(k->s, loc, TL_E0604, clause,
                             tl_format(k->s->arena, "'%s' is not a compile-time parameter", name));
        const char *advice = knobs ? tl_advice(name, strlen(name), 'k') : NULL;
        if (advice)
            tl_label(k->s, row, "%s", advice);
    } else {
        int64_t n = 1;
        bool unknown = false;
        if (tl_int_of(k->s, &v, value->loc, name, &n, &unknown) && (n < 1 || n > most))
            tl_err(k->s, value->loc, TL_E0604, clause,
                   tl_format(k->s->arena, "%s: %lld is not between 1 and %d", name, (long long)n,
                             (int)most));
    }
}

static void check_listed_once(Kernel *k, const TlTuneItem *item)
{
    for (uint32_t i = 0; i < k->item->clauses.len; i++) {
        const TlClause *c = &k->item->clauses.data[i];
        for (uint32_t j = 0; c->kind == TL_CL_TUNE && j < c->tunes.len; j++) {
            if (&c->tunes.data[j] == item)
                return;
            if (c->tunes.data[j].name == item->name)
                tl_err(k->s, item->loc, TL_E0604, "tune",
                       tl_format(k->s->arena, "'%s' is listed twice", item->name));
        }
    }
}

/* Within `where` the knobs are numbers: the first that the clause offers, or 1. */
static void bind_knobs(Kernel *k, const TlClause *c)
{
    for (int i = 0; i < TL_KNOBS; i++) {
        int64_t n = 1;
        bool unknown = false;
        const char *name = tl_knobs[i].name;
        for (uint32_t j = 0; j < c->tunes.len; j++)
            if (!strcmp(c->tunes.data[j].name, name) && c->tunes.data[j].values.len)
                tl_eval_int(k->s, c->tunes.data[j].values.data[0], name, &n, &unknown);
        tl_knob_bind(k->s, i, c->loc, n);
    }
}

static void clause_tune(Kernel *k, const TlClause *c)
{
    TL_ASSERT(c->kind == TL_CL_TUNE, "clause %d tunes nothing", (int)c->kind);
    for (uint32_t i = 0; i < c->tunes.len; i++) {
        check_listed_once(k, &c->tunes.data[i]);
        for (uint32_t j = 0; j < c->tunes.data[i].values.len; j++)
            check_binding(k, c->tunes.data[i].name, c->tunes.data[i].loc,
                          c->tunes.data[i].values.data[j], "tune", true);
    }
    if (!c->where)
        return;
    TlVar **vars = k->s->frame->vars, **within = tl_head_vars_new(k->s, k->def);
    k->s->frame->vars = memcpy(within, vars, k->item->nhead * sizeof *vars);
    bind_knobs(k, c);
    TlVal v;
    if (tl_eval_cond(k->s, c->where, &v))
        tl_err(k->s, c->where->loc, TL_E0406, "the condition of tune");
    k->s->frame->vars = vars;
}

/* Checked once per kernel: an instance checks its own row only. */
static void clause_instantiate(Kernel *k, const TlClause *c)
{
    TL_ASSERT(c->kind == TL_CL_INSTANTIATE, "clause %d makes no instance", (int)c->kind);
    if (!k->s->abstract)
        return;
    for (uint32_t i = 0; i < c->variants.len; i++)
        for (uint32_t j = 0; j < c->variants.data[i].bindings.len; j++) {
            const TlBinding *b = &c->variants.data[i].bindings.data[j];
            check_binding(k, b->name, b->loc, b->value, "instantiate", false);
        }
}

/* A size for each axis of the grid, of which one may be more than 1. */
static void clause_cluster(Kernel *k, const TlClause *c)
{
    if (c->args.len < 1 || c->args.len > TILE_MAX_GRID)
        tl_err(k->s, c->loc, TL_E0604, "cluster",
               tl_format(k->s->arena, "it takes 1 to %d numbers", (int)TILE_MAX_GRID));
    k->info->cluster = 1;
    for (uint32_t i = 0; i < c->args.len; i++) {
        const TlExpr *e = c->args.data[i].value;
        int64_t n;
        bool unknown = false;
        if (!tl_eval_int(k->s, e, "cluster", &n, &unknown))
            continue;
        if (n < 1 || n > TL_MAX_CLUSTER)
            tl_err(k->s, e->loc, TL_E0604, "cluster",
                   tl_format(k->s->arena, "%lld is not between 1 and %d", (long long)n,
                             (int)TL_MAX_CLUSTER));
        else if (n > 1 && k->info->cluster > 1)
            tl_err(k->s, e->loc, TL_E0604, "cluster", "only one axis may have more than 1");
        else if (n > 1) {
            tl_warn_no_effect(k->s, "cluster", c->loc);
            k->info->cluster = (int32_t)n;
            k->info->cluster_axis = (int32_t)i;
            k->cluster_loc = e->loc;
        }
    }
}

/* The clauses may come in any order. */
static void check_cluster_axis(Kernel *k)
{
    uint32_t axes = k->info->grid.len, axis = (uint32_t)k->info->cluster_axis;
    if (k->info->cluster > 1 && axes && axis >= axes)
        tl_err(k->s, k->cluster_loc, TL_E0604, "cluster",
               tl_format(k->s->arena, "the grid has no axis %u: it has %u", axis, axes));
}

static void clause(Kernel *k, const TlClause *c)
{
    switch (c->kind) {
    case TL_CL_GRID: clause_grid(k, c); return;
    case TL_CL_REQUIRE:
        for (uint32_t i = 0; i < c->args.len; i++)
            push_expr(k, &k->info->requires_, c->args.data[i].value, TL_HOST_BOOL);
        return;
    case TL_CL_ASSUME:
        for (uint32_t i = 0; i < c->args.len; i++)
            push_expr(k, &k->info->assumes, c->args.data[i].value, TL_HOST_BOOL);
        return;
    case TL_CL_KEY: clause_key(k, c); return;
    case TL_CL_ALIAS: clause_alias(k, c); return;
    case TL_CL_WARPS: k->info->warps = clause_number(k, c, "warps", 1, 64); return;
    case TL_CL_STAGES: k->info->stages = clause_number(k, c, "stages", 1, 64); return;
    case TL_CL_MAXREG: k->info->maxreg = clause_number(k, c, "maxreg", 1, 1024); return;
    case TL_CL_PERSISTENT:
        k->info->persistent = clause_number(k, c, "persistent", 0, 1) > 0;
        return;
    case TL_CL_CLUSTER: clause_cluster(k, c); return;
    case TL_CL_TUNE: clause_tune(k, c); return;
    case TL_CL_INSTANTIATE: clause_instantiate(k, c); return;
    }
}

/* ---- the walk ---- */

TlFn *tl_kernel_walk(TlSema *s, TlDef *def, const TlBoundConst *consts, TlModule *out)
{
    TL_ASSERT(def->item->kind == TL_IT_KERNEL, "item kind %d is no kernel", (int)def->item->kind);
    const TlItem *item = def->item;
    Kernel k = {.s = s,
                .def = def,
                .item = item,
                .fn = tl_fn_new(out, item->name, item->loc),
                .info = TL_NEW(&out->arena, TlKernelInfo)};
    k.views = TL_NEW_ARRAY(s->arena, TlVal, item->params.len + 1);
    k.index = TL_NEW_ARRAY(s->arena, uint32_t, item->params.len + 1);
    k.fn->info = k.info;
    k.info->doc = item->doc;
    k.info->group = -1;
    TlFrame frame = {.def = def,
                     .mod = def->mod,
                     .item = item,
                     .vars = tl_vars_new(s, def),
                     .depth = 1,
                     .ty = tl_ty_kind(TL_TY_VOID)};
    s->frame = &frame;
    s->trail.len = 0;
    s->b = (TlBuilder){.fn = k.fn, .block = k.fn->body, .loc = item->loc};
    frame.returned =
        tl_var_new(s, " returned", (TlLoc){0}, tl_ty_value(tl_type_scalar(s->ctx, TL_BOOL)),
                   tl_val_bool(false), false);
    frame.result = tl_var_new(s, " result", (TlLoc){0}, frame.ty, tl_val(TL_VAL_UNSET), false);
    bind_consts(&k, consts);
    bind_params(&k);
    bind_extents(&k);
    for (uint32_t i = 0; i < item->clauses.len; i++)
        clause(&k, &item->clauses.data[i]);
    check_cluster_axis(&k);
    if (item->body)
        tl_stmt(s, item->body);
    s->b.loc = item->body ? item->body->end : item->loc;
    tl_yield(&s->b, TL_OP_RETURN, 0, NULL);
    tl_shorten_powers(s);
    tl_warn_kernel(s, item, k.fn);
    s->frame = NULL;
    return k.fn;
}

void tl_check_kernel(TlSema *s, TlDef *def)
{
    TL_ASSERT(def->item->kind == TL_IT_KERNEL, "item kind %d is no kernel", (int)def->item->kind);
    const TlItem *item = def->item;
    TlBoundConst *consts = TL_NEW_ARRAY(s->arena, TlBoundConst, item->params.len + 1);
    TlFrame frame = {.def = def,
                     .mod = def->mod,
                     .item = item,
                     .vars = tl_vars_new(s, def),
                     .depth = 1};
    TlModule *scratch = s->b.fn->module;
    TlBuilder outer = s->b;
    uint32_t at = 0;
    s->frame = &frame;
    tl_options_unset(s, item, frame.vars);
    for (uint32_t i = 0; i < item->params.len;
         i++) { /* instances supply the values; here defaults are checked only */
        const TlParamDecl *p = &item->params.data[i];
        TlTy whole = p->form == TL_PF_OPTIONS && p->init ? tl_type_resolve(s, p->type)
                                                         : tl_ty_kind(TL_TY_UNKNOWN);
        if (whole.kind == TL_TY_STRUCT) /* names and number of its values */
            tl_eval_init(s, p->init, &whole);
        if (!tl_is_const_form(p))
            continue;
        TlTy ty = p->form == TL_PF_CONST ? tl_type_resolve(s, p->type) : tl_ty_kind(TL_TY_AUTO);
        if (p->init)
            tl_const_param_eval(s, def, p, p->init);
        TlVal unknown = tl_unknown(ty.kind == TL_TY_VALUE ? ty.type->dtype : TL_DTYPE_COUNT);
        consts[at].name = p->name;
        consts[at++].val = unknown;
        tl_head_param_bind(s, item, p, unknown);
    }
    tl_kernel_walk(s, def, consts, scratch);
    s->b = outer;
    s->frame = NULL;
}
