/* Binds names: the first step of the meaning of a function, done once for all its calls and
 * instances. Each NAME in an expression or type gets its local; each loop and branch gets what it
 * may assign and how it may be left. Whether a local has a value, and which, only an instance
 * knows: a name in the type of a parameter binds what an argument brings, if anything. A name that
 * is not a local's, or is that of a local without a value, belongs to an item or a built-in
 * function.
 *
 * The same step marks what is read, for the warnings about unused names: variables, parameters and
 * imports of the root module, whatever is instantiated (both arms of a `static if` count). Writing
 * a variable is not reading it (`x = 1`, `x += 1`, `v.field = 1`); writing through a view or
 * pointer reads its name. Loop variables of ranges exist whether the body needs them or not, and
 * are never reported. Of the names of one unpacking, `auto (a, b) = t`, it is enough that one is
 * read.
 *
 * A function within a function has locals of its own and sees those around it. Its parameters'
 * types do not bind names that are visible there already. */
#include "frontend/sema.h"

/* A loop whose body, or whose update, is walked. */
typedef struct Loop {
    struct Loop *outer;
    uint32_t first;     /* the locals from here are its own */
    TlLocals *assigned; /* of the others */
    TlLocals *stored;   /* those x with x[i] = e */
} Loop;

typedef struct Bind {
    TlCtx *ctx;
    TlArena *arena;
    TlMod *mod;
    TlItem *item;
    const TlLocal *scope;
    TlMap names; /* TlName -> TlLocal, the innermost */
    uint32_t depth;
    Loop *loop;
} Bind;

static void bind_expr(Bind *b, TlExpr *e);
static TlExits bind_stmt(Bind *b, TlStmt *st);
static void bind_nested(Bind *b, TlItem *fn);

/* ---- scopes ---- */

static TlLocal *declare(Bind *b, TlName name, TlLoc loc, const char *what, bool *read)
{
    TL_ASSERT(name && read, "a name without a mark of its being read");
    TlLocal *l = TL_NEW(b->arena, TlLocal);
    *l = (TlLocal){.name = name,
                   .loc = loc,
                   .item = b->item,
                   .index = b->item->locals.len,
                   .depth = b->depth,
                   .outer = b->scope,
                   .hides = tl_map_get_ptr(&b->names, name),
                   .what = what,
                   .read = read};
    tl_map_put_ptr(&b->names, name, l);
    tl_vec_push(b->arena, &b->item->locals, l);
    b->scope = l;
    return l;
}

static bool *new_mark(Bind *b)
{
    return TL_NEW(b->arena, bool);
}

static void close_scope(Bind *b, const TlLocal *outer)
{
    for (; b->scope != outer; b->scope = b->scope->outer) {
        TL_ASSERT(b->scope, "a scope is closed that was never opened");
        tl_map_put_ptr(&b->names, b->scope->name, (void *)(uintptr_t)b->scope->hides);
    }
}

static TlLocal *find(const Bind *b, TlName name)
{
    return tl_map_get_ptr(&b->names, name);
}

static void read_import(const Bind *b, TlName name)
{
    TlDef *def = tl_mod_find(b->mod, name);
    if (def)
        def->read = true;
}

/* The local that a name reads; else what tl_near_name begins with. */
static const TlLocal *read_name(const Bind *b, TlName name)
{
    const TlLocal *l = find(b, name);
    if (l)
        *l->read = true;
    else
        read_import(b, name);
    return l ? l : b->scope;
}

/* ---- types and expressions ---- */

static void bind_type(Bind *b, TlTypeExpr *t)
{
    if (!t)
        return;
    if (t->module)
        read_name(b, t->module);
    else if (t->kind == TL_TE_NAME)
        t->local = read_name(b, t->name);
    bind_type(b, t->elem);
    for (uint32_t i = 0; i < t->extents.len; i++)
        bind_expr(b, t->extents.data[i]);
}

#define BIND_ARGS(b, args)                                                                         \
    for (uint32_t i_ = 0; i_ < (args)->len; i_++) {                                                \
        bind_expr((b), (args)->data[i_].value);                                                    \
        bind_expr((b), (args)->data[i_].width);                                                    \
        bind_expr((b), (args)->data[i_].step);                                                     \
    }

static void bind_expr(Bind *b, TlExpr *e)
{
    for (; e && e->kind == TL_EX_BINARY; e = e->a)
        bind_expr(b, e->b);
    if (!e)
        return;
    if (e->kind == TL_EX_NAME)
        e->local = read_name(b, e->u.name);
    if (e->kind == TL_EX_FN)
        bind_nested(b, e->fn);
    bind_type(b, e->type);
    bind_expr(b, e->a);
    bind_expr(b, e->b);
    bind_expr(b, e->c);
    BIND_ARGS(b, &e->args)
    for (uint32_t i = 0; i < e->indices.len; i++) {
        bind_expr(b, e->indices.data[i].at);
        bind_expr(b, e->indices.data[i].width);
        bind_expr(b, e->indices.data[i].step);
    }
}

static void note(Bind *b, const TlLocal *l, TlLocals *list)
{
    if (l->item != b->item || l->index >= b->loop->first)
        return;
    for (uint32_t i = 0; i < list->len; i++)
        if (list->data[i] == l)
            return;
    tl_vec_push(b->arena, list, l);
}

static void note_assigned(Bind *b, const TlLocal *l)
{
    if (b->loop)
        note(b, l, b->loop->assigned);
}

static void note_stored(Bind *b, const TlLocal *l)
{
    if (b->loop)
        note(b, l, b->loop->stored);
}

/* x[i] = e and x[i].f = e: an assignment to x if that is an array, which only an instance knows. */
static void bind_element(Bind *b, TlExpr *e)
{
    TlExpr *root = e;
    while (root->kind == TL_EX_MEMBER || root->kind == TL_EX_INDEX)
        root = root->a;
    bind_expr(b, e);
    const TlLocal *l = root->kind == TL_EX_NAME ? find(b, root->u.name) : NULL;
    if (l)
        note_stored(b, l);
}

/* The place of an assignment: a variable, or a field of one, is not read. */
static void bind_place(Bind *b, TlExpr *e)
{
    TlExpr *root = e;
    while (root->kind == TL_EX_MEMBER)
        root = root->a;
    if (root->kind == TL_EX_NAME) {
        const TlLocal *l = find(b, root->u.name);
        root->local = l ? l : b->scope;
        if (l)
            note_assigned(b, l);
    } else if (e->kind == TL_EX_TUPLE) {
        for (uint32_t i = 0; i < e->args.len; i++)
            bind_place(b, e->args.data[i].value);
    } else {
        bind_element(b, e);
    }
}

/* ---- statements ---- */

static TlExits both(TlExits x, TlExits y)
{
    return (TlExits){.breaks = x.breaks || y.breaks,
                     .continues = x.continues || y.continues,
                     .returns = x.returns || y.returns,
                     .always = x.always || y.always};
}

static TlExits bind_scoped(Bind *b, TlStmt *st)
{
    const TlLocal *outer = b->scope;
    b->depth++;
    TlExits x = st ? bind_stmt(b, st) : (TlExits){0};
    b->depth--;
    close_scope(b, outer);
    return x;
}

static void bind_decls(Bind *b, TlStmt *st)
{
    bind_type(b, st->type);
    bind_expr(b, st->value); /* of `auto (a, b) = value` */
    bool *any = new_mark(b);
    for (uint32_t i = 0; i < st->decls.len; i++) {
        TlDecl *d = &st->decls.data[i];
        bind_expr(b, d->count);
        bind_expr(b, d->init);
        d->local = declare(b, d->name, d->loc, "variable",
                           st->kind == TL_ST_UNPACK ? any : new_mark(b));
    }
}

/* Binds a loop's body or update; the locals from `first` are its own, others that it assigns go to
 * `out` and `stored`. */
static TlExits bind_pass(Bind *b, TlStmt *st, uint32_t first, TlLocals *out, TlLocals *stored)
{
    Loop loop = {b->loop, first, out, stored};
    b->loop = &loop;
    TlExits x = bind_scoped(b, st);
    b->loop = loop.outer;
    return x;
}

static TlExits bind_loop(Bind *b, TlStmt *st)
{
    const TlLocal *outer = b->scope;
    b->depth++;
    bind_type(b, st->type);
    bind_expr(b, st->value);
    if (st->init)
        bind_stmt(b, st->init);
    uint32_t first = b->item->locals.len;
    for (uint32_t i = 0; st->kind == TL_ST_RANGE && i < st->decls.len; i++)
        st->decls.data[i].local =
            declare(b, st->decls.data[i].name, st->decls.data[i].loc, NULL, new_mark(b));
    bind_expr(b, st->cond);
    bind_expr(b, st->hints.stages);
    bind_expr(b, st->hints.factor);
    bind_expr(b, st->hints.apart);
    bind_pass(b, st->update, first, &st->updated, &st->stored);
    st->exits = bind_pass(b, st->then, first, &st->assigned, &st->stored);
    b->depth--;
    close_scope(b, outer);
    for (uint32_t i = 0; i < st->updated.len; i++)
        note_assigned(b, st->updated.data[i]);
    for (uint32_t i = 0; i < st->assigned.len; i++)
        note_assigned(b, st->assigned.data[i]);
    for (uint32_t i = 0; i < st->stored.len; i++)
        note_stored(b, st->stored.data[i]);
    if (st->is_static)
        return (TlExits){st->exits.breaks, st->exits.continues, st->exits.returns, false};
    return (TlExits){.returns = st->exits.returns};
}

/* A ladder of else-ifs, by a loop. */
static TlExits bind_if(Bind *b, TlStmt *st)
{
    TlStmt *head = st, *last = NULL;
    TlExits x = {0};
    bool always = true;
    for (; st && st->kind == TL_ST_IF; last = st, st = st->els) {
        bind_expr(b, st->cond);
        TlExits then = bind_scoped(b, st->then);
        always = always && then.always;
        x = both(x, then);
    }
    TL_ASSERT(last, "statement kind %d is no if", (int)head->kind);
    TlExits els = bind_scoped(b, st);
    x = both(x, els);
    x.always = always && els.always;
    head->exits = x;
    return x;
}

static TlExits bind_stmt(Bind *b, TlStmt *st)
{
    switch (st->kind) {
    case TL_ST_BLOCK: {
        const TlLocal *outer = b->scope;
        TlExits x = {0};
        b->depth++;
        for (uint32_t i = 0; i < st->body.len; i++)
            x = both(x, bind_stmt(b, st->body.data[i]));
        b->depth--;
        close_scope(b, outer);
        return x;
    }
    case TL_ST_DECL:
    case TL_ST_UNPACK: bind_decls(b, st); return (TlExits){0};
    case TL_ST_ASSIGN:
        bind_place(b, st->place);
        bind_expr(b, st->value);
        return (TlExits){0};
    case TL_ST_EXPR: bind_expr(b, st->value); return (TlExits){0};
    case TL_ST_RETURN: bind_expr(b, st->value); return (TlExits){.returns = true, .always = true};
    case TL_ST_BREAK: return (TlExits){.breaks = true};
    case TL_ST_CONTINUE: return (TlExits){.continues = true};
    case TL_ST_ASSERT: BIND_ARGS(b, &st->args) return (TlExits){0};
    case TL_ST_WHILE:
    case TL_ST_RANGE:
    case TL_ST_FOR: return bind_loop(b, st);
    case TL_ST_IF: return bind_if(b, st);
    case TL_ST_FUNCTION: /* its body sees its name, so that recursion is one */
        st->decls.data[0].local =
            declare(b, st->fn->name, st->fn->loc, NULL, new_mark(b));
        bind_nested(b, st->fn);
        return (TlExits){0};
    case TL_ST_EMPTY: break;
    }
    return (TlExits){0};
}

/* ---- items ---- */

static void bind_clause(Bind *b, TlClause *c)
{
    BIND_ARGS(b, &c->args)
    bind_expr(b, c->where);
    for (uint32_t i = 0; i < c->tunes.len; i++)
        for (uint32_t k = 0; k < c->tunes.data[i].values.len; k++)
            bind_expr(b, c->tunes.data[i].values.data[k]);
    for (uint32_t i = 0; i < c->variants.len; i++)
        for (uint32_t k = 0; k < c->variants.data[i].bindings.len; k++)
            bind_expr(b, c->variants.data[i].bindings.data[k].value);
}

/* A name that a parameter's type binds, an extent or `T`. Reading it counts as reading the
 * parameter, unless another parameter binds it too. */
static void declare_bound(Bind *b, TlName name, TlLoc loc, bool *param)
{
    TlLocal *l = find(b, name);
    if (!l)
        declare(b, name, loc, NULL, param);
    else if (!l->what && l->read != param)
        l->read = new_mark(b);
}

/* The name of a struct is a type wherever it stands. */
static bool is_struct(const Bind *b, TlName name)
{
    const TlDef *def = tl_mod_find(b->mod, name);
    return def && def->item->kind == TL_IT_STRUCT;
}

/* The same for a name that stands in the type itself: one that is visible around a nested function
 * is not the call's to bind. */
static void declare_in_type(Bind *b, TlName name, TlLoc at, TlLoc loc, bool *param,
                            bool is_extent)
{
    const TlLocal *l = find(b, name);
    if (l && l->item != b->item && !is_struct(b, name)) {
        TlDiag *row = b->item->bad_head ? NULL : tl_diag(&b->ctx->diags, at, TL_E0348, name);
        if (row) {
            row->label = is_extent ? tl_format(b->arena, "(%s) is the one outside; choose another "
                                                         "name for one that the call binds", name)
                                   : "choose another name, or write auto";
            tl_diag_note(&b->ctx->diags, row, l->loc, "'%s' is declared here", name);
        }
        b->item->bad_head = true;
        return;
    }
    declare_bound(b, name, loc, param);
}

static bool is_name(const TlExpr *e)
{
    return e && e->kind == TL_EX_NAME && !e->parens;
}

/* `TA ? K : M` binds one of the two. */
static void declare_extent(Bind *b, const TlExpr *e, TlLoc loc, bool *read)
{
    if (is_name(e))
        declare_in_type(b, e->u.name, e->loc, loc, read, true);
    if (!e || e->kind != TL_EX_COND)
        return;
    declare_extent(b, e->b, loc, read);
    declare_extent(b, e->c, loc, read);
}

static void declare_names(Bind *b, const TlParamDecl *p)
{
    const TlTypeExpr *t = p->type, *elem = t && t->elem ? t->elem : t;
    if (elem && elem->kind == TL_TE_NAME && !elem->module)
        declare_in_type(b, elem->name, elem->loc, p->loc, p->local->read, false);
    for (uint32_t i = 0; t && i < t->extents.len; i++)
        if (is_name(t->extents.data[i]))
            declare_in_type(b, t->extents.data[i]->u.name, t->extents.data[i]->loc, p->loc,
                            p->local->read, true);
    for (uint32_t i = 0; i < p->extents.len; i++) {
        declare_extent(b, p->extents.data[i].extent, p->loc, p->local->read);
        declare_extent(b, p->extents.data[i].stride, p->loc, p->local->read);
    }
}

/* Names in a parameter's type: parameters are read there, names that the type binds are not. */
static void bind_extent(Bind *b, TlExpr *e)
{
    if (e && e->kind == TL_EX_COND) {
        bind_expr(b, e->a);
        bind_extent(b, e->b);
        bind_extent(b, e->c);
        return;
    }
    const TlLocal *l = is_name(e) ? find(b, e->u.name) : NULL;
    if (l && !l->what)
        e->local = l;
    else
        bind_expr(b, e);
}

static void bind_param(Bind *b, TlParamDecl *p)
{
    TlTypeExpr *t = p->type, *elem = t && t->elem ? t->elem : t;
    const TlLocal *l = elem && elem->name && !elem->module ? find(b, elem->name) : NULL;
    if (l && !l->what)
        elem->local = l;
    else
        bind_type(b, elem);
    for (uint32_t i = 0; t && i < t->extents.len; i++)
        bind_extent(b, t->extents.data[i]);
    bind_expr(b, p->init);
    for (uint32_t i = 0; i < p->extents.len; i++) {
        bind_extent(b, p->extents.data[i].extent);
        bind_extent(b, p->extents.data[i].stride);
    }
}

const TlParamDecl *tl_const_param(const TlItem *item, TlName name)
{
    for (uint32_t i = 0; i < item->params.len; i++)
        if (tl_is_const_form(&item->params.data[i]) && item->params.data[i].name == name)
            return &item->params.data[i];
    return NULL;
}

const TlKnob tl_knobs[TL_KNOBS] = {
    {"warps", 64}, {"stages", 64}, {"cluster", TL_MAX_CLUSTER}, {"maxreg", 1024}};

bool tl_tunes(const TlItem *item, TlName name)
{
    for (uint32_t i = 0; i < item->clauses.len; i++) {
        const TlClause *c = &item->clauses.data[i];
        for (uint32_t k = 0; c->kind == TL_CL_TUNE && k < c->tunes.len; k++)
            if (!name || c->tunes.data[k].name == name)
                return true;
    }
    return false;
}

/* Within clauses of `tune` the knobs are names, too. */
static void declare_knobs(Bind *b)
{
    for (int i = 0; i < TL_KNOBS && tl_tunes(b->item, NULL); i++)
        declare_bound(b, tl_intern_str(&b->ctx->strings, tl_knobs[i].name), b->item->loc,
                      new_mark(b));
}

static void bind_function(Bind *b)
{
    TlItem *f = b->item;
    for (uint32_t i = 0; i < f->params.len; i++) {
        TlParamDecl *p = &f->params.data[i];
        p->local = declare(b, p->name, p->loc, p->of ? NULL : "parameter", new_mark(b));
    }
    for (uint32_t i = f->params.len; i-- > 0;)
        declare_names(b, &f->params.data[i]);
    declare_knobs(b);
    for (uint32_t i = 0; i < f->params.len; i++)
        bind_param(b, &f->params.data[i]);
    bind_type(b, f->type);
    for (uint32_t i = 0; i < f->clauses.len; i++)
        bind_clause(b, &f->clauses.data[i]);
    f->nhead = f->locals.len;
    if (f->body)
        f->always_returns = bind_stmt(b, f->body).always;
}

/* Loops around a function assign nothing in it. */
static void bind_nested(Bind *b, TlItem *fn)
{
    TL_ASSERT(fn->kind == TL_IT_FUNCTION, "item kind %d within a function", (int)fn->kind);
    Bind outer = *b;
    fn->is_bound = true;
    fn->broken |= outer.item->broken;
    fn->def = TL_NEW(b->arena, TlDef);
    *fn->def = (TlDef){.item = fn, .mod = b->mod};
    tl_vec_push(b->arena, &outer.item->nested, fn);
    b->item = fn;
    b->loop = NULL;
    b->depth++;
    bind_function(b);
    close_scope(b, outer.scope);
    b->item = outer.item;
    b->loop = outer.loop;
    b->depth = outer.depth;
}

void tl_item_bind(TlProgram *p, TlDef *def)
{
    TlItem *item = def->item;
    if (item->is_bound)
        return;
    item->is_bound = true;
    Bind b = {.ctx = p->ctx, .arena = &p->ctx->perm, .mod = def->mod, .item = item};
    tl_map_init(&b.names, b.arena);
    switch (item->kind) {
    case TL_IT_IMPORT: return;
    case TL_IT_CONST:
        bind_type(&b, item->type);
        bind_expr(&b, item->value);
        return;
    case TL_IT_STRUCT:
        for (uint32_t i = 0; i < item->fields.len; i++) {
            bind_type(&b, item->fields.data[i].type);
            bind_expr(&b, item->fields.data[i].init);
        }
        return;
    case TL_IT_FUNCTION:
    case TL_IT_KERNEL:
        tl_item_body(p->ctx, item);
        bind_function(&b);
        return;
    case TL_IT_ASSERT: BIND_ARGS(&b, &item->args) return;
    }
}

/* ---- names that nothing reads ---- */

static void warn_locals(TlDiags *diags, const TlItem *item)
{
    for (uint32_t k = 0; k < item->locals.len; k++) {
        const TlLocal *l = item->locals.data[k];
        if (*l->read || !l->what || l->name[0] == '_')
            continue;
        TlDiag *row = tl_diag(diags, l->loc, TL_W0608, l->what, l->name);
        row->label = "remove it, or begin its name with '_'";
    }
    for (uint32_t k = 0; k < item->nested.len; k++)
        warn_locals(diags, item->nested.data[k]);
}

void tl_warn_unused(TlProgram *p)
{
    TlDiags *diags = &p->ctx->diags;
    for (uint32_t i = 0; i < p->root->defs.len; i++)
        tl_item_bind(p, p->root->defs.data[i]);
    for (uint32_t i = 0; i < p->root->defs.len; i++) {
        const TlDef *def = p->root->defs.data[i];
        const TlItem *item = def->item;
        if (item->kind == TL_IT_IMPORT && !def->read && item->name[0] != '_')
            tl_diag(diags, item->loc, TL_W0609, item->name);
        warn_locals(diags, item);
    }
}
