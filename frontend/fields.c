/* Structs as parameters of kernels. `const S o` becomes a constant for each field, "o.f" and
 * "o.inner.n", before it in the list of parameters: what gives constants values, chooses, names and
 * records them sees nothing else. So does `S s`, with scalar parameters "s.f", which is what a
 * launch passes. The parameter itself stays behind them, as their struct.
 *
 * A field's default is taken from the parameter's, `= {f = 3}`, as the expression (S){f = 3}.f. */
#include "frontend/sema.h"

enum { MOST_NESTED = 16 }; /* structs in structs; more is an error where types are read */

typedef TL_VEC(TlParamDecl) Params;

typedef struct Expand {
    TlProgram *p;
    Params *out;
    TlParamDecl *options;
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

typedef struct Part {
    const TlDef *def;
    const char *name, *types; /* "o.inner", "S.part" */
    TlExpr *value;            /* its default */
    bool given;               /* and it has one */
    int depth;
} Part;

static void add_fields(Expand *x, Part part)
{
    TlCtx *ctx = x->p->ctx;
    const TlItem *item = part.def->item;
    bool is_const = x->options->form == TL_PF_CONST;
    for (uint32_t i = 0; i < item->fields.len && part.depth < MOST_NESTED; i++) {
        const TlFieldDecl *f = &item->fields.data[i];
        const char *name = tl_format(&ctx->perm, "%s.%s", part.name, f->name);
        TlExpr *member = member_of(x, part.value, f->name);
        const TlDef *inner = struct_of(part.def->mod, f->type);
        const char *wrong = inner ? NULL : kind_of(ctx, f->type);
        bool given = part.given || f->init;
        if (inner) {
            const char *types = tl_format(&ctx->perm, "%s.%s", part.types, inner->item->name);
            add_fields(x, (Part){inner, name, types, member, given, part.depth + 1});
        } else if (wrong) {
            if (!x->options->broken) /* one error is enough */
                tl_diag(&ctx->diags, x->options->loc, TL_E0382, f->name, x->options->name, wrong);
            x->options->broken = true;
        } else {
            TlParamDecl p = {.form = x->options->form,
                             .name = tl_intern_str(&ctx->strings, name),
                             .loc = x->options->loc,
                             .is_const = is_const,
                             .type = f->type,
                             .init = given ? member : NULL,
                             .of = part.types};
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
        bool is_value = param->form == TL_PF_CONST || param->form == TL_PF_VALUE;
        const TlDef *def = is_value ? struct_of(mod, param->type) : NULL;
        if (def) {
            Expand x = {p, &all, param};
            add_fields(&x, (Part){def, param->name, def->item->name, whole_default(&x),
                                  param->init != NULL, 0});
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
        bool there = *at < item->params.len && item->params.data[*at].of;
        const TlVar *var = there ? s->frame->vars[item->params.data[(*at)++].local->index] : NULL;
        v.items[i] = var ? var->val : tl_unknown(TL_DTYPE_COUNT);
    }
    return v;
}

TlName tl_dotted_name(TlSema *s, const TlExpr *e)
{
    if (e->kind == TL_EX_NAME)
        return e->u.name;
    TlName of = e->kind == TL_EX_MEMBER ? tl_dotted_name(s, e->a) : NULL;
    return of ? tl_intern_name(s, tl_format(s->arena, "%s.%s", of, e->u.name)) : NULL;
}

void tl_head_param_bind(TlSema *s, const TlItem *item, const TlParamDecl *p, TlVal v)
{
    const TlParamDecl *end = item->params.data + item->params.len, *options = p + 1;
    tl_var_bind_const(s, p->local, p->loc, v);
    if (!p->of || options == end || options->form != TL_PF_OPTIONS)
        return;
    uint32_t first = (uint32_t)(p - item->params.data);
    while (first > 0 && item->params.data[first - 1].of)
        first--;
    TlTy ty = tl_type_resolve(s, options->type);
    TlVal all = ty.kind == TL_TY_STRUCT && !options->broken
                    ? value_of_fields(s, item, &ty, &first)
                    : tl_unknown(TL_DTYPE_COUNT);
    tl_var_bind_const(s, options->local, options->loc, all);
}
