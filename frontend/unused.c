/* Names that nothing reads: variables, parameters and imports of the root module. The tree alone
 * says so, whatever is instantiated: both arms of a `static if` count. Writing a variable is not
 * reading it (`x = 1`, `x += 1`, `v.field = 1`); writing through a view or pointer reads its name.
 * Loop variables of ranges are there whether the body wants them or not: they are never reported.
 * Of the names of one unpacking, `auto (a, b) = t`, one that is read is enough. */
#include "frontend/sema.h"

typedef struct Named {
    struct Named *outer, *hidden; /* declared before it; of its name, or NULL */
    TlName name;
    TlLoc loc;
    const TlItem *item;
    const char *what; /* "variable"; NULL: not reported */
    bool *read;       /* shared by the names of one unpacking */
} Named;

typedef struct Scan {
    TlProgram *prog;
    Named *scope;
    const TlItem *item; /* the item being walked; NULL: none */
    TlMap names; /* TlName -> Named, the innermost */
} Scan;

static void see_expr(Scan *u, const TlExpr *e);
static void see_stmt(Scan *u, const TlStmt *st);

/* ---- scopes ---- */

static void declare_in(Scan *u, TlName name, TlLoc loc, const char *what, bool *read)
{
    TL_ASSERT(name && read, "a name without a mark of its being read");
    Named *n = TL_NEW(&u->prog->ctx->perm, Named);
    *n = (Named){.outer = u->scope,
                 .name = name,
                 .loc = loc,
                 .item = u->item,
                 .what = what,
                 .read = read};
    n->hidden = tl_map_get_ptr(&u->names, name);
    tl_map_put_ptr(&u->names, name, n);
    u->scope = n;
}

static void declare(Scan *u, TlName name, TlLoc loc, const char *what)
{
    declare_in(u, name, loc, what, TL_NEW(&u->prog->ctx->perm, bool));
}

static void read_name(const Scan *u, TlName name)
{
    Named *n = tl_map_get_ptr(&u->names, name);
    if (n)
        *n->read = true;
}

static void report(const Scan *u, const Named *n)
{
    TlDiags *diags = &u->prog->ctx->diags;
    if (*n->read || !n->what || n->name[0] == '_')
        return;
    TlDiag *row = tl_diag(diags, n->loc, TL_W0608, n->what, n->name);
    row->label = "remove it, or begin its name with '_'";
}

static void close_scope(Scan *u, Named *outer)
{
    for (; u->scope != outer; u->scope = u->scope->outer) {
        TL_ASSERT(u->scope, "a scope is closed that was never opened");
        report(u, u->scope);
        tl_map_put_ptr(&u->names, u->scope->name, u->scope->hidden);
    }
}

/* ---- types and expressions ---- */

static void see_type(Scan *u, const TlTypeExpr *t)
{
    if (!t)
        return;
    if (t->kind == TL_TE_NAME)
        read_name(u, t->module ? t->module : t->name);
    if (t->elem)
        see_type(u, t->elem);
    for (uint32_t i = 0; i < t->extents.len; i++)
        see_expr(u, t->extents.data[i]);
}

#define SEE_ARGS(u, args)                                                                          \
    for (uint32_t i_ = 0; i_ < (args)->len; i_++) {                                                \
        see_expr((u), (args)->data[i_].value);                                                     \
        see_expr((u), (args)->data[i_].width);                                                     \
    }

static void see_expr(Scan *u, const TlExpr *e)
{
    for (; e && e->kind == TL_EX_BINARY; e = e->a)
        see_expr(u, e->b);
    if (!e)
        return;
    if (e->kind == TL_EX_NAME)
        read_name(u, e->u.name);
    see_type(u, e->type);
    see_expr(u, e->a);
    see_expr(u, e->b);
    see_expr(u, e->c);
    SEE_ARGS(u, &e->args)
    for (uint32_t i = 0; i < e->indices.len; i++) {
        see_expr(u, e->indices.data[i].at);
        see_expr(u, e->indices.data[i].width);
        see_expr(u, e->indices.data[i].step);
    }
}

/* The place of an assignment: a variable, or a field of one, is not read. */
static void see_place(Scan *u, const TlExpr *e)
{
    const TlExpr *root = e;
    while (root->kind == TL_EX_MEMBER)
        root = root->a;
    if (root->kind == TL_EX_NAME)
        return;
    if (e->kind != TL_EX_TUPLE) {
        see_expr(u, e);
        return;
    }
    for (uint32_t i = 0; i < e->args.len; i++)
        see_place(u, e->args.data[i].value);
}

/* ---- statements ---- */

static void see_scoped(Scan *u, const TlStmt *st)
{
    Named *outer = u->scope;
    if (st)
        see_stmt(u, st);
    close_scope(u, outer);
}

static void see_decls(Scan *u, const TlStmt *st)
{
    see_type(u, st->type);
    see_expr(u, st->value); /* of `auto (a, b) = value` */
    bool *any = TL_NEW(&u->prog->ctx->perm, bool);
    for (uint32_t i = 0; i < st->decls.len; i++) {
        const TlDecl *d = &st->decls.data[i];
        see_expr(u, d->init);
        if (st->kind == TL_ST_UNPACK)
            declare_in(u, d->name, d->loc, "variable", any);
        else
            declare(u, d->name, d->loc, "variable");
    }
}

static void see_loop(Scan *u, const TlStmt *st)
{
    Named *outer = u->scope;
    see_type(u, st->type);
    see_expr(u, st->value);
    if (st->init)
        see_stmt(u, st->init);
    for (uint32_t i = 0; st->kind == TL_ST_RANGE && i < st->decls.len; i++)
        declare(u, st->decls.data[i].name, st->decls.data[i].loc, NULL);
    see_expr(u, st->cond);
    see_expr(u, st->hints.stages);
    see_expr(u, st->hints.factor);
    see_expr(u, st->hints.apart);
    if (st->update)
        see_stmt(u, st->update);
    see_scoped(u, st->then);
    close_scope(u, outer);
}

static void see_stmt(Scan *u, const TlStmt *st)
{
    for (; st && st->kind == TL_ST_IF; st = st->els) {
        see_expr(u, st->cond);
        see_scoped(u, st->then);
        if (st->els && st->els->kind != TL_ST_IF) {
            see_scoped(u, st->els);
            return;
        }
    }
    if (!st)
        return;
    switch (st->kind) {
    case TL_ST_BLOCK: {
        Named *outer = u->scope;
        for (uint32_t i = 0; i < st->body.len; i++)
            see_stmt(u, st->body.data[i]);
        close_scope(u, outer);
        return;
    }
    case TL_ST_DECL:
    case TL_ST_UNPACK: see_decls(u, st); return;
    case TL_ST_ASSIGN:
        see_place(u, st->place);
        see_expr(u, st->value);
        return;
    case TL_ST_EXPR:
    case TL_ST_RETURN: see_expr(u, st->value); return;
    case TL_ST_ASSERT: SEE_ARGS(u, &st->args) return;
    case TL_ST_WHILE:
    case TL_ST_RANGE:
    case TL_ST_FOR: see_loop(u, st); return;
    case TL_ST_IF:
    case TL_ST_EMPTY:
    case TL_ST_BREAK:
    case TL_ST_CONTINUE: return;
    }
}

/* ---- items ---- */

static void see_clause(Scan *u, const TlClause *c)
{
    SEE_ARGS(u, &c->args)
    see_expr(u, c->where);
    for (uint32_t i = 0; i < c->tunes.len; i++)
        for (uint32_t k = 0; k < c->tunes.data[i].values.len; k++)
            see_expr(u, c->tunes.data[i].values.data[k]);
    for (uint32_t i = 0; i < c->variants.len; i++)
        for (uint32_t k = 0; k < c->variants.data[i].bindings.len; k++)
            see_expr(u, c->variants.data[i].bindings.data[k].value);
}

/* A name that a parameter's type binds, an extent or `T`. Reading it counts as reading the
 * parameter, unless another parameter binds it too. */
static void bind_name(Scan *u, TlName name, TlLoc loc, bool *param)
{
    Named *n = tl_map_get_ptr(&u->names, name);
    if (!n || n->item != u->item)
        declare_in(u, name, loc, NULL, param);
    else if (!n->what && n->read != param)
        n->read = TL_NEW(&u->prog->ctx->perm, bool);
}

static bool is_name(const TlExpr *e)
{
    return e && e->kind == TL_EX_NAME && !e->parens;
}

/* `TA ? K : M` binds one of the two. */
static void bind_extent(Scan *u, const TlExpr *e, TlLoc loc, bool *read)
{
    if (is_name(e))
        bind_name(u, e->u.name, loc, read);
    if (!e || e->kind != TL_EX_COND)
        return;
    bind_extent(u, e->b, loc, read);
    bind_extent(u, e->c, loc, read);
}

static void bind_names(Scan *u, const TlParamDecl *p, bool *read)
{
    const TlTypeExpr *t = p->type, *elem = t && t->elem ? t->elem : t;
    if (elem && elem->kind == TL_TE_NAME && !elem->module)
        bind_name(u, elem->name, p->loc, read);
    for (uint32_t i = 0; t && i < t->extents.len; i++)
        if (is_name(t->extents.data[i]))
            bind_name(u, t->extents.data[i]->u.name, p->loc, read);
    for (uint32_t i = 0; i < p->extents.len; i++) {
        bind_extent(u, p->extents.data[i].extent, p->loc, read);
        bind_extent(u, p->extents.data[i].stride, p->loc, read);
    }
}

/* Names in a parameter's type: parameters are read there, names that the type binds are not. */
static void see_bound(Scan *u, const TlExpr *e)
{
    if (e && e->kind == TL_EX_COND) {
        see_expr(u, e->a);
        see_bound(u, e->b);
        see_bound(u, e->c);
        return;
    }
    const Named *n = is_name(e) ? tl_map_get_ptr(&u->names, e->u.name) : NULL;
    if (!n || n->what)
        see_expr(u, e);
}

static void see_param(Scan *u, const TlParamDecl *p)
{
    const TlTypeExpr *t = p->type, *elem = t && t->elem ? t->elem : t;
    const Named *n = elem && elem->name ? tl_map_get_ptr(&u->names, elem->name) : NULL;
    if (elem && (!n || n->what))
        see_type(u, elem);
    for (uint32_t i = 0; t && i < t->extents.len; i++)
        see_bound(u, t->extents.data[i]);
    see_expr(u, p->init);
    for (uint32_t i = 0; i < p->extents.len; i++) {
        see_bound(u, p->extents.data[i].extent);
        see_bound(u, p->extents.data[i].stride);
    }
}

static void see_function(Scan *u, const TlItem *f)
{
    Named *outer = u->scope;
    for (uint32_t i = 0; i < f->params.len; i++)
        declare(u, f->params.data[i].name, f->params.data[i].loc, "parameter");
    Named *param = u->scope;
    for (uint32_t i = f->params.len; i-- > 0; param = param->outer)
        TL_ASSERT(param->name == f->params.data[i].name, "parameter %u is out of order", i);
    param = u->scope;
    for (uint32_t i = f->params.len; i-- > 0; param = param->outer)
        bind_names(u, &f->params.data[i], param->read);
    for (uint32_t i = 0; i < f->params.len; i++)
        see_param(u, &f->params.data[i]);
    see_type(u, f->type);
    for (uint32_t i = 0; i < f->clauses.len; i++)
        see_clause(u, &f->clauses.data[i]);
    if (f->body)
        see_stmt(u, f->body);
    close_scope(u, outer);
}

static void see_item(Scan *u, const TlItem *item)
{
    u->item = item;
    switch (item->kind) {
    case TL_IT_IMPORT: return;
    case TL_IT_CONST:
        see_type(u, item->type);
        see_expr(u, item->value);
        return;
    case TL_IT_STRUCT:
        for (uint32_t i = 0; i < item->fields.len; i++)
            see_type(u, item->fields.data[i].type);
        return;
    case TL_IT_FUNCTION:
    case TL_IT_KERNEL: see_function(u, item); return;
    case TL_IT_ASSERT: SEE_ARGS(u, &item->args) return;
    }
}

void tl_warn_unused(TlProgram *p)
{
    const TlUnit *unit = p->root->unit;
    Scan u = {.prog = p};
    tl_map_init(&u.names, &p->ctx->perm);
    for (uint32_t i = 0; i < unit->items.len; i++)
        if (unit->items.data[i]->kind == TL_IT_IMPORT)
            declare(&u, unit->items.data[i]->name, unit->items.data[i]->loc, "import");
    for (uint32_t i = 0; i < unit->items.len; i++)
        see_item(&u, unit->items.data[i]);
    for (const Named *n = u.scope; n; n = n->outer)
        if (!*n->read && n->name[0] != '_')
            tl_diag(&p->ctx->diags, n->loc, TL_W0609, n->name);
}
