/* Structs as options of kernels. A parameter `const S o` becomes a constant for each field, "o.f"
 * and "o.inner.n", before it in the list of parameters: what gives constants values, chooses, names
 * and records them sees nothing else. The parameter itself stays behind them, as their struct.
 *
 * A field's default is taken from the parameter's, `= {f = 3}`, as the expression (S){f = 3}.f. */
#include "frontend/sema.h"

enum { MOST_NESTED = 16 }; /* structs in structs; more is an error where types are read */

typedef TL_VEC(TlParamDecl) Params;

typedef struct Expand {
    TlProgram *p;
    Params *out;
    TlParamDecl *options;
    bool wrong; /* a field cannot be a constant: one error is enough */
} Expand;

static TlDef *struct_of(const TlMod *mod, const TlTypeExpr *t)
{
    if (!t || t->kind != TL_TE_NAME || t->pointer)
        return NULL;
    if (t->module) {
        const TlDef *import = tl_mod_find(mod, t->module);
        mod = import && import->item->kind == TL_IT_IMPORT ? import->import : NULL;
    }
    TlDef *def = mod ? tl_mod_find(mod, t->name) : NULL;
    return def && def->item->kind == TL_IT_STRUCT ? def : NULL;
}

static TlExpr *new_expr(const Expand *x, TlExprKind kind)
{
    TlExpr *e = TL_NEW(&x->p->ctx->perm, TlExpr);
    const TlExpr *init = x->options->init;
    e->kind = kind;
    e->loc = init ? init->loc : x->options->loc;
    e->begin = init ? init->begin : x->options->loc;
    e->end = init ? init->end : x->options->loc;
    return e;
}

static TlExpr *member_of(const Expand *x, TlExpr *of, TlName name)
{
    TlExpr *e = new_expr(x, TL_EX_MEMBER);
    e->a = of;
    e->u.name = name;
    return e;
}

/* (S){...} of the parameter's default. */
static TlExpr *whole_default(const Expand *x)
{
    TlExpr *init = x->options->init;
    if (init && !init->braces)
        return init;
    TlExpr *e = new_expr(x, TL_EX_STRUCT);
    e->type = x->options->type;
    if (init)
        e->args.data = init->args.data, e->args.len = init->args.len, e->args.cap = init->args.cap;
    return e;
}

static const char *kind_of(TlCtx *ctx, const TlTypeExpr *t)
{
    switch (t->kind) {
    case TL_TE_SCALAR: return t->pointer ? "a pointer" : NULL;
    case TL_TE_TILE: return "a tile";
    case TL_TE_AUTO: return "auto";
    case TL_TE_NAME: return tl_format(&ctx->perm, "'%s'", t->name);
    case TL_TE_VOID:
    case TL_TE_OTHER: break;
    }
    return "of no type";
}

static void add_fields(Expand *x, const TlDef *def, const char *prefix, TlExpr *value, bool given,
                       int depth)
{
    TlCtx *ctx = x->p->ctx;
    for (uint32_t i = 0; i < def->item->fields.len && depth < MOST_NESTED; i++) {
        const TlFieldDecl *f = &def->item->fields.data[i];
        const char *name = tl_format(&ctx->perm, "%s.%s", prefix, f->name);
        TlExpr *member = member_of(x, value, f->name);
        const TlDef *inner = struct_of(def->mod, f->type);
        const char *wrong = inner ? NULL : kind_of(ctx, f->type);
        if (inner) {
            add_fields(x, inner, name, member, given || f->init, depth + 1);
        } else if (wrong) {
            if (!x->wrong)
                tl_diag(&ctx->diags, x->options->loc, TL_E0382, f->name, x->options->name, wrong);
            x->wrong = true;
        } else {
            TlParamDecl p = {.form = TL_PF_CONST,
                             .name = tl_intern_str(&ctx->strings, name),
                             .loc = x->options->loc,
                             .is_const = true,
                             .type = f->type,
                             .init = given || f->init ? member : NULL,
                             .is_field = true};
            tl_vec_push(&ctx->perm, x->out, p);
        }
    }
}

static void expand_kernel(TlProgram *p, const TlMod *mod, TlItem *item)
{
    Params all = {0};
    bool any = false;
    for (uint32_t i = 0; i < item->params.len; i++) {
        TlParamDecl *param = &item->params.data[i];
        const TlDef *def = param->form == TL_PF_CONST ? struct_of(mod, param->type) : NULL;
        if (def) {
            Expand x = {p, &all, param, false};
            add_fields(&x, def, param->name, whole_default(&x), param->init != NULL, 0);
            param->form = TL_PF_OPTIONS;
            any = true;
        }
        tl_vec_push(&p->ctx->perm, &all, *param);
    }
    if (any)
        item->params.data = all.data, item->params.len = all.len, item->params.cap = all.cap;
}

void tl_options_expand(TlProgram *p)
{
    for (uint32_t i = 0; i < p->modules.len; i++) {
        const TlMod *m = p->modules.data[i];
        for (uint32_t k = 0; k < m->defs.len; k++)
            if (m->defs.data[k]->item->kind == TL_IT_KERNEL)
                expand_kernel(p, m, m->defs.data[k]->item);
    }
}

/* The struct of the fields that stand before it, from params[*at] on. */
static TlVal value_of_fields(TlSema *s, const TlItem *item, const TlTy *ty, uint32_t *at)
{
    TlVal v = tl_val_items(s, TL_VAL_STRUCT, ty->def, ty->n);
    for (uint32_t i = 0; i < ty->n; i++) {
        if (ty->items[i].kind == TL_TY_STRUCT) {
            v.items[i] = value_of_fields(s, item, &ty->items[i], at);
            continue;
        }
        bool there = *at < item->params.len && item->params.data[*at].is_field;
        const TlVar *var = there ? s->frame->vars[item->params.data[(*at)++].local->index] : NULL;
        v.items[i] = var ? var->val : tl_unknown(TL_DTYPE_COUNT);
    }
    return v;
}

void tl_const_param_bind(TlSema *s, const TlItem *item, const TlParamDecl *p, TlVal v)
{
    const TlParamDecl *end = item->params.data + item->params.len, *options = p + 1;
    tl_var_bind_const(s, p->local, p->loc, v);
    if (!p->is_field || options == end || options->form != TL_PF_OPTIONS)
        return;
    uint32_t first = (uint32_t)(p - item->params.data);
    while (first > 0 && item->params.data[first - 1].is_field)
        first--;
    TlTy ty = tl_type_resolve(s, options->type);
    TlVal all = ty.kind == TL_TY_STRUCT ? value_of_fields(s, item, &ty, &first)
                                        : tl_unknown(TL_DTYPE_COUNT);
    tl_var_bind_const(s, options->local, options->loc, all);
}
