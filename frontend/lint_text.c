/* Warnings that follow from the text of a function alone, whatever is instantiated.
 *
 * no-effect: an expression as a statement, if nothing in it stores, prints, promises, or calls
 * something that does. A function called by the name of a parameter, or by a field's, may do
 * anything.
 *
 * lost-accumulator: a loop assigns `acc = dot(...)`, or another reduction, unconditionally to a
 * variable from before the loop; nothing in the loop reads the variable, and something after it
 * does. */
#include "frontend/lint.h"

#include <string.h>

typedef struct Text {
    TlProgram *p;
    const TlMod *mod;   /* whose names are meant */
    TlMap acts;         /* TlItem -> Acts */
    const TlItem *item; /* the function that is looked through */
} Text;

typedef enum Acts { NOT_KNOWN, MAY, DOES_NOT } Acts;

/* ---- what acts ---- */

/* Built-in functions with effects; a word that ends in _ is a beginning. */
static const char *const acting[] = {"store", "atomic_", "print", "assert", "assume", "asm"};

static bool builtin_acts(const char *name)
{
    for (size_t i = 0; i < sizeof acting / sizeof *acting; i++) {
        size_t n = strlen(acting[i]);
        if (strncmp(name, acting[i], n) == 0 && (acting[i][n - 1] == '_' || !name[n]))
            return true;
    }
    return false;
}

static bool expr_acts(Text *t, const TlExpr *e);
static bool stmt_acts(Text *t, const TlStmt *st);

/* A function's body, bound, of this module. While it is looked through it does not act: a ring of
 * calls is an error elsewhere. */
static bool function_acts(Text *t, const TlItem *fn)
{
    uint64_t known = NOT_KNOWN;
    if (tl_map_get(&t->acts, (uint64_t)(uintptr_t)fn, &known))
        return known == MAY;
    tl_map_put(&t->acts, (uint64_t)(uintptr_t)fn, DOES_NOT);
    bool acts = fn->broken || !fn->body || stmt_acts(t, fn->body);
    tl_map_put(&t->acts, (uint64_t)(uintptr_t)fn, acts ? MAY : DOES_NOT);
    return acts;
}

/* An item of any module. */
static bool def_acts(Text *t, TlDef *def)
{
    if (def->item->kind != TL_IT_FUNCTION)
        return def->item->kind != TL_IT_STRUCT;
    tl_item_bind(t->p, def);
    const TlMod *outer = t->mod;
    t->mod = def->mod;
    bool acts = function_acts(t, def->item);
    t->mod = outer;
    return acts;
}

static bool is_local(const TlExpr *e)
{
    return e->kind == TL_EX_NAME && e->local && e->local->name == e->u.name;
}

static bool same_place(TlLoc a, TlLoc b)
{
    return a.file == b.file && a.line == b.line && a.col == b.col;
}

/* The function within a function that a callee names, or NULL. */
static const TlItem *callee_nested(const TlExpr *f)
{
    const TlItem *around = is_local(f) ? f->local->item : NULL;
    for (uint32_t i = 0; around && i < around->nested.len; i++)
        if (same_place(around->nested.data[i]->loc, f->local->loc))
            return around->nested.data[i];
    return NULL;
}

/* The item that a callee names; NULL: a local's value, a built-in function, nothing. */
static TlDef *callee_def(const Text *t, const TlExpr *f)
{
    if (f->kind == TL_EX_NAME)
        return is_local(f) ? NULL : tl_mod_find(t->mod, f->u.name);
    if (f->kind != TL_EX_MEMBER || f->a->kind != TL_EX_NAME)
        return NULL;
    const TlDef *import = callee_def(t, f->a);
    return import && import->item->kind == TL_IT_IMPORT && import->import
               ? tl_mod_find(import->import, f->u.name)
               : NULL;
}

static bool call_acts(Text *t, const TlExpr *e)
{
    const TlExpr *f = e->a;
    TlDef *def = callee_def(t, f);
    if (def)
        return def_acts(t, def);
    if (is_local(f)) {
        const TlItem *nested = callee_nested(f);
        return !nested || function_acts(t, nested);
    }
    bool field = f->kind == TL_EX_MEMBER && is_local(f->a); /* a function in a struct */
    bool named = f->kind == TL_EX_NAME || f->kind == TL_EX_MEMBER;
    return field || !named || !tl_builtin_find(f->u.name) || builtin_acts(f->u.name);
}

static bool expr_acts(Text *t, const TlExpr *e)
{
    for (; e && e->kind == TL_EX_BINARY; e = e->a)
        if (expr_acts(t, e->b))
            return true;
    if (!e)
        return false;
    if (e->kind == TL_EX_CALL && call_acts(t, e))
        return true;
    for (uint32_t i = 0; i < e->args.len; i++)
        if (expr_acts(t, e->args.data[i].value))
            return true;
    for (uint32_t i = 0; i < e->indices.len; i++)
        if (expr_acts(t, e->indices.data[i].at))
            return true;
    return (e->kind != TL_EX_CALL && expr_acts(t, e->a)) || expr_acts(t, e->b) ||
           expr_acts(t, e->c);
}

static bool place_acts(Text *t, const TlExpr *e)
{
    if (e->kind == TL_EX_INDEX || e->kind == TL_EX_UNCHECKED || e->kind == TL_EX_CALL) /* at(...) */
        return true;
    for (uint32_t i = 0; e->kind == TL_EX_TUPLE && i < e->args.len; i++)
        if (place_acts(t, e->args.data[i].value))
            return true;
    return false;
}

static bool stmt_acts(Text *t, const TlStmt *st)
{
    for (; st && st->kind == TL_ST_IF; st = st->els)
        if (expr_acts(t, st->cond) || stmt_acts(t, st->then))
            return true;
    if (!st)
        return false;
    for (uint32_t i = 0; i < st->decls.len; i++)
        if (expr_acts(t, st->decls.data[i].init))
            return true;
    for (uint32_t i = 0; i < st->body.len; i++)
        if (stmt_acts(t, st->body.data[i]))
            return true;
    return st->kind == TL_ST_ASSERT || (st->kind == TL_ST_ASSIGN && place_acts(t, st->place)) ||
           expr_acts(t, st->value) || expr_acts(t, st->cond) || stmt_acts(t, st->init) ||
           stmt_acts(t, st->update) || stmt_acts(t, st->then);
}

/* ---- no-effect ---- */

static bool returns_value(const TlItem *item)
{
    return item->kind == TL_IT_FUNCTION && item->type && item->type->kind != TL_TE_VOID;
}

static void warn_no_effect(Text *t, const TlExpr *e)
{
    TlCtx *ctx = t->p->ctx;
    TlDef *def = e->kind == TL_EX_CALL ? callee_def(t, e->a) : NULL;
    const TlItem *item = def ? def->item : e->kind == TL_EX_CALL ? callee_nested(e->a) : NULL;
    bool is_void = item && !returns_value(item);
    const char *why = is_void
                          ? tl_format(&ctx->perm, "'%s' changes only what is its own", item->name)
                          : "its value is dropped";
    TlDiag *row = tl_diag(&ctx->diags, e->loc, TL_W0613, why);
    bool promise = e->kind == TL_EX_CALL && !item && e->a->kind == TL_EX_NAME &&
                   (!strcmp(e->a->u.name, "multiple_of") || !strcmp(e->a->u.name, "contiguous"));
    if (is_void)
        row->label = "parameters are copies: let it return the value";
    else if (promise)
        row->label =
            tl_format(&ctx->perm, "what it returns has the promise: i = %s(i, ...);", e->a->u.name);
    else if (e->kind == TL_EX_CALL)
        row->label = "assign it, or return it";
    else if (e->kind == TL_EX_BINARY && e->u.op == TL_BIN_EQ)
        row->label = "'=' assigns";
}

/* ---- lost-accumulator ---- */

typedef struct Names {
    const TlLocal *of;
    bool in_order; /* what is read behind an assignment is not what was there before */
    bool read, assigned;
} Names;

static void find_in_expr(Names *n, const TlExpr *e)
{
    for (; e && e->kind == TL_EX_BINARY; e = e->a)
        find_in_expr(n, e->b);
    if (!e || (n->in_order && n->assigned))
        return;
    n->read = n->read || (e->kind == TL_EX_NAME && e->local == n->of && e->u.name == n->of->name);
    find_in_expr(n, e->a);
    find_in_expr(n, e->b);
    find_in_expr(n, e->c);
    for (uint32_t i = 0; i < e->args.len; i++)
        find_in_expr(n, e->args.data[i].value);
    for (uint32_t i = 0; i < e->indices.len; i++)
        find_in_expr(n, e->indices.data[i].at);
}

/* Of `x = v` and `x.field = v` the place is not read, of x += v it is. */
static void find_in_place(Names *n, const TlExpr *e, bool reads)
{
    const TlExpr *root = e;
    while (root->kind == TL_EX_MEMBER)
        root = root->a;
    for (uint32_t i = 0; e->kind == TL_EX_TUPLE && i < e->args.len; i++)
        find_in_place(n, e->args.data[i].value, reads);
    if (root->kind != TL_EX_NAME || reads)
        find_in_expr(n, e->kind == TL_EX_TUPLE ? NULL : e);
    else if (root == e && root->local == n->of && root->u.name == n->of->name)
        n->assigned = true;
}

/* The branches of an if may assign, or not. */
static void find_in_stmt(Names *n, const TlStmt *st)
{
    bool sure = !n->assigned;
    for (; st && st->kind == TL_ST_IF; st = st->els) {
        find_in_expr(n, st->cond);
        find_in_stmt(n, st->then);
        n->assigned = n->assigned && !sure;
    }
    if (!st)
        return;
    if (st->kind == TL_ST_ASSIGN) {
        find_in_expr(n, st->value);
        find_in_place(n, st->place, st->op >= 0);
        return;
    }
    find_in_expr(n, st->value);
    find_in_expr(n, st->cond);
    for (uint32_t i = 0; i < st->decls.len; i++)
        find_in_expr(n, st->decls.data[i].init);
    if (st->init)
        find_in_stmt(n, st->init);
    for (uint32_t i = 0; i < st->body.len; i++)
        find_in_stmt(n, st->body.data[i]);
    if (st->then)
        find_in_stmt(n, st->then);
    if (st->update)
        find_in_stmt(n, st->update);
    for (uint32_t i = 0; i < st->args.len; i++)
        find_in_expr(n, st->args.data[i].value);
    if (st->kind == TL_ST_WHILE || st->kind == TL_ST_RANGE || st->kind == TL_ST_FOR)
        n->assigned = n->assigned && !sure;
}

typedef struct After {
    const TlStmt *loop;
    Names names;
    bool passed; /* the loop is behind */
} After;

/* Looks through what comes after the loop, in the order of the text. The other branches of an if
 * that the loop stands in are not after it. */
static void find_after(After *a, const TlStmt *st)
{
    if (a->passed) {
        find_in_stmt(&a->names, st);
        return;
    }
    for (; st && st->kind == TL_ST_IF && !a->passed; st = st->els)
        find_after(a, st->then);
    if (!st || a->passed)
        return;
    a->passed = st == a->loop;
    if (!a->passed && st->then)
        find_after(a, st->then);
    for (uint32_t i = 0; i < st->body.len; i++)
        find_after(a, st->body.data[i]);
}

/* The reductions that a lost value is one of, and what to write instead: @ is the variable. */
static const struct Reduction {
    const char *word, *text;
} reductions[] = {
    {"dot", "add to it: @ = dot(a, b, @), or @ += ..."},
    {"dot_scaled", "add to it: @ = dot_scaled(a, sa, b, sb, @), or @ += ..."},
    {"sum", "add to it: @ += ..."},
    {"prod", "multiply it: @ *= ..."},
    {"max", "combine them: @ = max(@, ...)"},
    {"min", "combine them: @ = min(@, ...)"},
    {"any", "combine them: @ = @ || ..."},
    {"all", "combine them: @ = @ && ..."},
    {"xor_sum", "combine them: @ ^= ..."},
    {"argmax", "combine them, or declare @ in the loop"},
    {"argmin", "combine them, or declare @ in the loop"},
    {"reduce", "combine them, or declare @ in the loop"},
};

static const struct Reduction *reduction_of(const Text *t, const TlExpr *e)
{
    while (e) {
        bool scales = e->kind == TL_EX_BINARY && (e->u.op == TL_BIN_MUL || e->u.op == TL_BIN_DIV);
        if (scales) {
            const struct Reduction *r = reduction_of(t, e->b);
            if (r)
                return r;
        }
        if (scales || e->kind == TL_EX_CAST || (e->kind == TL_EX_UNARY && e->u.op == '-')) {
            e = e->a;
            continue;
        }
        const TlExpr *f = e->kind == TL_EX_CALL ? e->a : NULL;
        if (!f || f->kind != TL_EX_NAME || is_local(f) || tl_mod_find(t->mod, f->u.name))
            return NULL;
        bool two = e->args.len > 1 && !e->args.data[1].name; /* max(a, b) */
        for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
            if (!strcmp(f->u.name, reductions[i].word))
                return two && reductions[i].word[0] == 'm' ? NULL : &reductions[i];
        return NULL;
    }
    return NULL;
}

static const char *with_name(TlArena *arena, const char *text, const char *name)
{
    TlSbuf out;
    tl_sbuf_init(&out, arena);
    for (; *text; text++)
        tl_sbuf_put(&out, *text == '@' ? name : text, *text == '@' ? strlen(name) : 1);
    return out.text;
}

/* Is a variable among the values that the loop carries from trip to trip itself? In an index and in
 * the place of a load it only says which part of the whole comes next. */
static bool takes_carried(const TlStmt *loop, const TlExpr *e)
{
    for (; e && e->kind == TL_EX_BINARY; e = e->a)
        if (takes_carried(loop, e->b))
            return true;
    if (!e || e->kind == TL_EX_INDEX)
        return false;
    for (uint32_t i = 0; e->kind == TL_EX_NAME && i < loop->assigned.len; i++)
        if (loop->assigned.data[i] == e->local && e->local->name == e->u.name)
            return true;
    if (e->kind == TL_EX_CALL && e->a->kind == TL_EX_NAME && !strcmp(e->a->u.name, "load"))
        return false;
    for (uint32_t i = 0; i < e->args.len; i++)
        if (takes_carried(loop, e->args.data[i].value))
            return true;
    return takes_carried(loop, e->a) || takes_carried(loop, e->b) || takes_carried(loop, e->c);
}

/* Does a function within the function, which may be called anywhere, read the variable? */
static bool read_in_nested(const TlItem *fn, const TlLocal *l)
{
    for (uint32_t i = 0; i < fn->nested.len; i++) {
        Names within = {.of = l};
        if (fn->nested.data[i]->body)
            find_in_stmt(&within, fn->nested.data[i]->body);
        if (within.read || read_in_nested(fn->nested.data[i], l))
            return true;
    }
    return false;
}

static void warn_lost(const Text *t, const TlStmt *loop, const TlStmt *st)
{
    const TlExpr *place = st->place;
    const TlLocal *l = place->kind == TL_EX_NAME ? place->local : NULL;
    const struct Reduction *r = st->op < 0 && l ? reduction_of(t, st->value) : NULL;
    if (!r || l->name != place->u.name || takes_carried(loop, st->value))
        return;
    bool outside = false;
    for (uint32_t i = 0; i < loop->assigned.len; i++)
        outside = outside || loop->assigned.data[i] == l;
    Names within = {.of = l};
    find_in_expr(&within, loop->cond);
    if (loop->update)
        find_in_stmt(&within, loop->update);
    find_in_stmt(&within, loop->then);
    After after = {.loop = loop, .names = {.of = l, .in_order = true}};
    find_after(&after, t->item->body);
    if (!outside || within.read || !after.names.read || read_in_nested(t->item, l))
        return;
    TlDiag *row = tl_diag(&t->p->ctx->diags, st->loc, TL_W0615, l->name);
    row->label = with_name(&t->p->ctx->perm, r->text, l->name);
    tl_diag_note(&t->p->ctx->diags, row, loop->loc, "the loop");
}

static bool is_loop(const TlStmt *st)
{
    return st->kind == TL_ST_WHILE || st->kind == TL_ST_RANGE || st->kind == TL_ST_FOR;
}

/* What every trip through the loop assigns. */
static void look_in_loop(const Text *t, const TlStmt *loop, const TlStmt *st)
{
    if (st->kind == TL_ST_ASSIGN)
        warn_lost(t, loop, st);
    for (uint32_t i = 0; st->kind == TL_ST_BLOCK && i < st->body.len; i++)
        look_in_loop(t, loop, st->body.data[i]);
}

/* ---- all statements ---- */

static void look_in_function(Text *t, const TlItem *fn);

static void look(Text *t, const TlStmt *st)
{
    for (; st && st->kind == TL_ST_IF; st = st->els)
        look(t, st->then);
    if (!st)
        return;
    if (st->kind == TL_ST_EXPR && !expr_acts(t, st->value))
        warn_no_effect(t, st->value);
    if (is_loop(st) && !st->exits.breaks && !st->exits.continues && !st->exits.returns)
        look_in_loop(t, st, st->then);
    for (uint32_t i = 0; i < st->body.len; i++)
        look(t, st->body.data[i]);
    if (st->init)
        look(t, st->init);
    if (st->update)
        look(t, st->update);
    if (st->then)
        look(t, st->then);
    if (st->kind == TL_ST_FUNCTION)
        look_in_function(t, st->fn);
}

static void look_in_function(Text *t, const TlItem *fn)
{
    const TlItem *outer = t->item;
    t->item = fn;
    look(t, fn->body);
    t->item = outer;
}

void tl_lint_text(TlProgram *p)
{
    Text t = {.p = p, .mod = p->root};
    tl_map_init(&t.acts, &p->ctx->perm);
    for (uint32_t i = 0; i < p->root->defs.len; i++) {
        const TlItem *item = p->root->defs.data[i]->item;
        if ((item->kind != TL_IT_FUNCTION && item->kind != TL_IT_KERNEL) || !item->body)
            continue;
        look_in_function(&t, item);
    }
}
