/* Structs as parameters of kernels. `const S o` becomes a constant for each field, "o.f" and
 * "o.inner.n", before it in the list of parameters: what gives constants values, chooses, names and
 * records them sees nothing else. So does `S s`, with scalar parameters "s.f", which is what a
 * launch passes. The parameter itself stays behind them, as their struct.
 *
 * A field's default is what the parameter's has for it, `= {f = 3}`, which sees the fields before
 * it, or else the expression (S){}.f. */
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

/* The parameter's default, or (S){}. */
static TlExpr *whole_default(const Expand *x)
{
    TlExpr *init = x->options->init;
    if (init && !init->braces)
        return init;
    TlExpr *e = new_expr(x, TL_EX_STRUCT);
    e->type = x->options->type;
    return e;
}

/* What a list {1, f = 3} has for field i; NULL. */
static TlExpr *value_in(const TlExpr *list, const TlItem *item, uint32_t i)
{
    for (uint32_t k = 0; list && k < list->args.len; k++) {
        const TlArg *a = &list->args.data[k];
        if (a->name ? a->name == item->fields.data[i].name : k == i)
            return a->value;
    }
    return NULL;
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
    const struct Part *up; /* the struct of which this is a field, f; or NULL */
    TlName field;
    const TlDef *def;
    const char *name, *types; /* "o.inner", "S.part" */
    TlExpr *value;            /* its default */
    const TlExpr *list;       /* of which these are other than that: {...}; or NULL */
    bool given;               /* and it has one */
    int depth;
} Part;

/* {}, {f = {}} and so on to (S){f = {}}: no value but the fields in which the part lies. */
static TlExpr *without_values(const Expand *x, const Part *part)
{
    TlExpr *list = new_expr(x, TL_EX_TUPLE);
    list->braces = true;
    for (const Part *p = part; p->up; p = p->up) {
        TlExpr *outer = new_expr(x, p->up->up ? TL_EX_TUPLE : TL_EX_STRUCT);
        outer->braces = p->up->up != NULL;
        outer->type = x->options->type;
        TlArg arg = {.name = p->field, .loc = outer->loc, .value = list};
        tl_vec_push(&x->p->ctx->perm, &outer->args, arg);
        list = outer;
    }
    return list;
}

/* (S){f = {}}.f */
static TlExpr *blank(const Expand *x, const Part *part, TlExpr *whole)
{
    return part->up ? member_of(x, blank(x, part->up, whole), part->field) : whole;
}

static void add_fields(Expand *x, Part part)
{
    TlCtx *ctx = x->p->ctx;
    const TlItem *item = part.def->item;
    bool is_const = x->options->form == TL_PF_CONST;
    for (uint32_t i = 0; i < item->fields.len && part.depth < MOST_NESTED; i++) {
        const TlFieldDecl *f = &item->fields.data[i];
        const char *name = tl_format(&ctx->perm, "%s.%s", part.name, f->name);
        TlExpr *own = value_in(part.list, item, i);
        TlExpr *value = own && !own->braces ? own : member_of(x, part.value, f->name);
        const TlDef *inner = struct_of(part.def->mod, f->type);
        const char *wrong = inner ? NULL : kind_of(ctx, f->type);
        bool given = part.given || f->init || own;
        if (inner) {
            const char *types = tl_format(&ctx->perm, "%s.%s", part.types, inner->item->name);
            Part next = {&part, f->name, inner, name, types, value, NULL, given, part.depth + 1};
            if (own && own->braces) {
                next.list = own;
                next.value = blank(x, &next, without_values(x, &next));
            }
            add_fields(x, next);
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
                             .init = given ? value : NULL,
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
            const TlExpr *list = param->init && param->init->braces ? param->init : NULL;
            add_fields(&x, (Part){.def = def,
                                  .name = param->name,
                                  .types = def->item->name,
                                  .value = whole_default(&x),
                                  .list = list,
                                  .given = param->init != NULL});
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
    const TlParamDecl *end = item->params.data + item->params.len, *options = p;
    tl_var_bind_const(s, p->local, p->loc, v);
    while (options < end && options->of)
        options++;
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
