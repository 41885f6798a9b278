/* Constructors of the syntax tree: they set positions and depth, and report the few errors that
 * concern a node's form rather than its meaning. Also the parser's entry points, tl_parse and
 * tl_source_text. */
#include "frontend/grammar.tab.h"
#include "frontend/parse.h"
#include <string.h>

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Stops reading at trees too deep for a recursive walk. */
static void check_depth(TlParser *p, uint32_t depth, TlLoc loc, const char *what)
{
    if (depth <= TL_MAX_NESTING || p->stop)
        return;
    tl_diag(&p->ctx->diags, loc, TL_E0792, what, TL_MAX_NESTING);
    p->stop = p->broken = true;
}

/* ---- expressions ---- */

TlExpr *tl_expr_new(TlParser *p, TlExprKind kind, TlLoc loc, TlSpan span)
{
    TlExpr *e = TL_NEW(&p->ctx->perm, TlExpr);
    e->kind = kind;
    e->loc = loc;
    e->begin = span.begin;
    e->end = span.end;
    e->depth = 1;
    return e;
}

static TlExpr *deeper(TlParser *p, TlExpr *e, uint32_t depth)
{
    e->depth = depth + 1;
    check_depth(p, e->depth, e->loc, "expressions");
    return e;
}

TlExpr *tl_expr_unary(TlParser *p, int op, TlLoc loc, TlSpan span, TlExpr *a)
{
    TL_ASSERT(a, "an operator without an operand");
    TlExpr *e = tl_expr_new(p, TL_EX_UNARY, loc, span);
    e->u.op = op;
    e->a = a;
    return deeper(p, e, a->depth);
}

TlExpr *tl_expr_binary(TlParser *p, TlBinop op, TlLoc loc, TlExpr *a, TlExpr *b)
{
    TL_ASSERT(op >= TL_BIN_MUL && op <= TL_BIN_LOR && a && b, "operator %d", (int)op);
    TlExpr *e = tl_expr_new(p, TL_EX_BINARY, loc, (TlSpan){a->begin, b->end});
    e->u.op = op;
    e->a = a;
    e->b = b;
    return deeper(p, e, max_u32(a->kind == TL_EX_BINARY ? a->depth - 1 : a->depth, b->depth));
}

TlExpr *tl_expr_cond(TlParser *p, TlLoc loc, TlExpr *a, TlExpr *b, TlExpr *c)
{
    TL_ASSERT(a && b && c, "a choice without its arms");
    TlExpr *e = tl_expr_new(p, TL_EX_COND, loc, (TlSpan){a->begin, c->end});
    e->a = a;
    e->b = b;
    e->c = c;
    return deeper(p, e, max_u32(a->depth, max_u32(b->depth, c->depth)));
}

/* `parens` spans the type with its parentheses: what a diagnostic underlines. */
TlExpr *tl_expr_cast(TlParser *p, TlSpan parens, TlTypeExpr *type, TlExpr *a)
{
    TL_ASSERT(type && a, "a cast to nothing");
    TlLoc loc = parens.begin;
    TlExpr *e;
    if (parens.end.line == loc.line)
        loc.len = parens.end.col - loc.col;
    e = tl_expr_new(p, TL_EX_CAST, loc, (TlSpan){parens.begin, a->end});
    e->type = type;
    e->a = a;
    return deeper(p, e, a->depth);
}

TlExpr *tl_expr_name(TlParser *p, TlSpan span, TlName name)
{
    TlExpr *e = tl_expr_new(p, TL_EX_NAME, span.begin, span);
    e->u.name = name;
    return e;
}

TlExpr *tl_expr_member(TlParser *p, TlExpr *a, TlSpan span, TlName name)
{
    TL_ASSERT(a && name, "a member without a name");
    TlExpr *e = tl_expr_new(p, TL_EX_MEMBER, span.begin, (TlSpan){a->begin, span.end});
    e->a = a;
    e->u.name = name;
    return deeper(p, e, a->depth);
}

static uint32_t depth_of_args(const TlArgs *args)
{
    uint32_t i, depth = 0;
    for (i = 0; i < args->len; i++) {
        const TlArg *a = &args->data[i];
        depth = max_u32(depth, max_u32(a->value->depth, a->width ? a->width->depth : 0));
        depth = max_u32(depth, a->step ? a->step->depth : 0);
    }
    return depth;
}

TlExpr *tl_expr_call(TlParser *p, TlExpr *callee, TlSpan span, const TlArgs *args)
{
    TL_ASSERT(callee && args, "a call of nothing");
    TlExpr *e = tl_expr_new(p, TL_EX_CALL, callee->loc, span);
    e->a = callee;
    TL_VEC_TAKE(&e->args, args);
    return deeper(p, e, max_u32(callee->depth, depth_of_args(args)));
}

TlExpr *tl_expr_index(TlParser *p, TlExpr *base, TlSpan span, const TlIndices *indices)
{
    TL_ASSERT(base && indices->len > 0, "no index");
    TlExpr *e = tl_expr_new(p, TL_EX_INDEX, base->loc, span);
    uint32_t i, depth = base->depth;
    e->a = base;
    TL_VEC_TAKE(&e->indices, indices);
    for (i = 0; i < indices->len; i++) {
        const TlIndex *x = &indices->data[i];
        depth = max_u32(depth, x->at->depth);
        if (x->width)
            depth = max_u32(depth, x->width->depth);
        if (x->step)
            depth = max_u32(depth, x->step->depth);
    }
    return deeper(p, e, depth);
}

static TlArgs *tl_args_of(TlParser *p, const TlExprs *values)
{
    TlArgs *args = TL_NEW(&p->ctx->perm, TlArgs);
    uint32_t i;
    for (i = 0; i < values->len; i++)
        tl_vec_push(&p->ctx->perm, args,
                    (TlArg){.loc = values->data[i]->loc, .value = values->data[i]});
    return args;
}

TlExpr *tl_expr_tuple(TlParser *p, TlLoc loc, TlSpan span, const TlExprs *values)
{
    return tl_expr_typed(p, TL_EX_TUPLE, loc, span, NULL, tl_args_of(p, values));
}

/* TUPLE, STRUCT, MAKE, TYPE: a type (or NULL) and arguments (or NULL) */
TlExpr *tl_expr_typed(TlParser *p, TlExprKind kind, TlLoc loc, TlSpan span, TlTypeExpr *type,
                      const TlArgs *args)
{
    TlExpr *e = tl_expr_new(p, kind, loc, span);
    e->type = type;
    if (!args)
        return e;
    TL_VEC_TAKE(&e->args, args);
    return deeper(p, e, depth_of_args(args));
}

TlExpr *tl_expr_unchecked(TlParser *p, TlSpan span, TlExpr *a)
{
    TlExpr *e = tl_expr_new(p, TL_EX_UNCHECKED, span.begin, (TlSpan){span.begin, a->end});
    e->a = a;
    return deeper(p, e, a->depth);
}

/* The parentheses belong to the expression's text, and make no node. */
TlExpr *tl_expr_parens(TlExpr *e, TlSpan span)
{
    e->begin = span.begin;
    e->end = span.end;
    e->parens = true;
    return e;
}

TlExprs *tl_exprs_before(TlParser *p, TlExpr *first, const TlExprs *rest)
{
    TlExprs *all = TL_NEW(&p->ctx->perm, TlExprs);
    uint32_t i;
    tl_vec_push(&p->ctx->perm, all, first);
    for (i = 0; i < rest->len; i++)
        tl_vec_push(&p->ctx->perm, all, rest->data[i]);
    return all;
}

TlArg *tl_arg(TlParser *p, TlName name, TlLoc loc, const TlIndex *value)
{
    TlArg *a = TL_NEW(&p->ctx->perm, TlArg);
    *a = (TlArg){name, loc, value->at, value->width, value->step};
    return a;
}

TlIndex *tl_index(TlParser *p, TlExpr *at, TlExpr *width, TlExpr *step)
{
    TlIndex *x = TL_NEW(&p->ctx->perm, TlIndex);
    *x = (TlIndex){at, width, step};
    return x;
}

/* ---- types ---- */

TlTypeExpr *tl_type_expr(TlParser *p, TlTypeExprKind kind, TlLoc loc)
{
    TlTypeExpr *t = TL_NEW(&p->ctx->perm, TlTypeExpr);
    t->kind = kind;
    t->loc = loc;
    return t;
}

TlTypeExpr *tl_type_expr_scalar(TlParser *p, TlLoc loc, TlDtype dtype)
{
    TlTypeExpr *t = tl_type_expr(p, TL_TE_SCALAR, loc);
    t->dtype = dtype;
    return t;
}

TlTypeExpr *tl_type_expr_tile(TlParser *p, TlLoc loc, TlTypeExpr *elem, const TlExprs *extents)
{
    TlTypeExpr *t = tl_type_expr(p, TL_TE_TILE, loc);
    t->elem = elem;
    if (extents)
        t->extents = *extents;
    return t;
}

TlTypeExpr *tl_type_expr_path(TlParser *p, const TlExpr *path, bool struct_keyword)
{
    TlTypeExpr *t = tl_type_expr(p, TL_TE_NAME, path->loc);
    t->struct_keyword = struct_keyword;
    t->name = path->u.name;
    if (path->kind == TL_EX_MEMBER)
        t->module = path->a->u.name;
    return t;
}

TlTypeExpr *tl_type_expr_pointee(TlParser *p, const TlExpr *e, bool is_const)
{
    bool is_name = e->kind == TL_EX_NAME;
    TlTypeExpr *t = is_name ? tl_type_expr_path(p, e, false) : tl_type_expr(p, TL_TE_OTHER, e->loc);
    t->expr = is_name ? NULL : e;
    t->pointer = true;
    t->is_const = is_const;
    return t;
}

/* ---- statements ---- */

TlStmt *tl_stmt_new(TlParser *p, TlStmtKind kind, TlLoc loc, TlSpan span)
{
    TlStmt *s = TL_NEW(&p->ctx->perm, TlStmt);
    s->kind = kind;
    s->loc = loc;
    s->end = span.end;
    s->op = -1;
    s->depth = 1;
    return s;
}

static TlStmt *deeper_stmt(TlParser *p, TlStmt *s, uint32_t depth)
{
    s->depth = depth;
    check_depth(p, depth, s->loc, "statements");
    return s;
}

TlStmt *tl_stmt_block(TlParser *p, TlSpan span, const TlStmts *body)
{
    TlStmt *s = tl_stmt_new(p, TL_ST_BLOCK, span.begin, span);
    uint32_t i, depth = 0;
    s->body = *body;
    /* the brace itself; len 1 so that a diagnostic can point at it */
    s->end = (TlLoc){span.end.file, span.end.line, span.end.col > 1 ? span.end.col - 1 : 1, 1};
    for (i = 0; i < body->len; i++)
        depth = max_u32(depth, body->data[i]->depth);
    return deeper_stmt(p, s, depth + 1);
}

TlStmt *tl_stmt_decl(TlParser *p, TlSpan span, TlTypeExpr *type, bool is_const,
                     const TlDecls *decls)
{
    TlStmt *s = tl_stmt_new(p, TL_ST_DECL, span.begin, span);
    uint32_t i;
    s->type = type;
    s->is_const = is_const;
    TL_VEC_TAKE(&s->decls, decls);
    for (i = 0; i < decls->len; i++)
        if (type->kind == TL_TE_AUTO && !decls->data[i].init && !p->broken) {
            TlDiag *d = tl_diag(&p->ctx->diags, decls->data[i].loc, TL_E0103, decls->data[i].name);
            if (decls->data[decls->len - 1].init)
                d->label = "several results of one call: auto (a, b) = f(x);";
        }
    return s;
}

TlStmt *tl_stmt_unpack(TlParser *p, TlSpan span, bool is_const, const TlDecls *names, TlExpr *value)
{
    TlStmt *s = tl_stmt_new(p, TL_ST_UNPACK, span.begin, span);
    s->is_const = is_const;
    s->value = value;
    TL_VEC_TAKE(&s->decls, names);
    return s;
}

TlStmt *tl_stmt_assign(TlParser *p, int op, TlLoc loc, TlExpr *place, TlExpr *value)
{
    TL_ASSERT(place && value && op >= -1, "assignment %d", op);
    TlStmt *s = tl_stmt_new(p, TL_ST_ASSIGN, loc, (TlSpan){place->begin, value->end});
    s->op = op;
    s->place = place;
    s->value = value;
    return s;
}

TlStmt *tl_stmt_step(TlParser *p, TlBinop op, TlSpan op_span, TlExpr *place)
{
    TlExpr *one = tl_expr_new(p, TL_EX_INT, op_span.begin, op_span);
    one->u.integer = 1;
    return tl_stmt_assign(p, (int)op, op_span.begin, place, one);
}

TlStmt *tl_stmt_expr(TlParser *p, TlExpr *value)
{
    TlStmt *s = tl_stmt_new(p, TL_ST_EXPR, value->loc, (TlSpan){value->begin, value->end});
    s->value = value;
    return s;
}

/* How much a statement adds to the depth of the statement around it: a block's brace is counted in
 * the block. */
static uint32_t depth_of_body(const TlStmt *s)
{
    return s->kind == TL_ST_BLOCK ? s->depth : s->depth + 1;
}

TlStmt *tl_stmt_if(TlParser *p, TlSpan span, bool is_static, TlExpr *cond, TlStmt *then,
                   TlStmt *els)
{
    TL_ASSERT(cond && then, "if without a body");
    TlStmt *s = tl_stmt_new(p, TL_ST_IF, span.begin, span);
    uint32_t depth = depth_of_body(then);
    s->is_static = is_static;
    s->cond = cond;
    s->then = then;
    s->els = els;
    if (els)
        depth = max_u32(depth, els->kind == TL_ST_IF ? els->depth : depth_of_body(els));
    return deeper_stmt(p, s, depth);
}

TlStmt *tl_stmt_range(TlParser *p, TlSpan span, bool is_static, TlTypeExpr *type, TlName name,
                      TlLoc loc, TlExpr *range)
{
    TL_ASSERT(name && range, "a range without a name");
    TlStmt *s = tl_stmt_new(p, TL_ST_RANGE, span.begin, span);
    s->is_static = is_static;
    s->type = type;
    s->value = range;
    tl_vec_push(&p->ctx->perm, &s->decls, (TlDecl){.name = name, .loc = loc});
    return s;
}

TlStmt *tl_stmt_loop(TlParser *p, TlStmt *loop, const TlHints *hints, TlStmt *body)
{
    TL_ASSERT(loop && body, "a loop without a body");
    if (hints)
        loop->hints = *hints;
    loop->then = body;
    loop->end = body->end;
    return deeper_stmt(p, loop, depth_of_body(body));
}

TlStmt *tl_stmt_function(TlParser *p, TlSpan span, TlItem *fn, TlStmt *body)
{
    TL_ASSERT(fn && body, "a function without a body");
    TlStmt *s = tl_stmt_new(p, TL_ST_FUNCTION, span.begin, span);
    fn->body = body;
    fn->broken = p->broken;
    s->fn = fn;
    s->value = tl_expr_new(p, TL_EX_FN, fn->loc, span);
    s->value->fn = fn;
    tl_vec_push(&p->ctx->perm, &s->decls, (TlDecl){.name = fn->name, .loc = fn->loc});
    return deeper_stmt(p, s, depth_of_body(body));
}

TlDecl *tl_decl(TlParser *p, TlName name, TlLoc loc, TlExpr *init)
{
    TlDecl *d = TL_NEW(&p->ctx->perm, TlDecl);
    *d = (TlDecl){.name = name, .loc = loc, .init = init};
    return d;
}

TlDecls *tl_decls_of(TlParser *p, const TlDecl *decl)
{
    TlDecls *decls = TL_NEW(&p->ctx->perm, TlDecls);
    tl_vec_push(&p->ctx->perm, decls, *decl);
    return decls;
}

void tl_hint(TlParser *p, TlHints *hints, int token, TlLoc loc, TlExpr *arg)
{
    bool *flag = token == TL_TOK_PIPELINE   ? &hints->pipeline
                 : token == TL_TOK_UNROLL   ? &hints->unroll
                 : token == TL_TOK_NOUNROLL ? &hints->nounroll
                                            : &hints->specialize;
    if (*flag)
        tl_diag(&p->ctx->diags, loc, TL_E0105);
    *flag = true;
    if (token == TL_TOK_SPECIALIZE) {
        hints->specialize_loc = loc;
        hints->apart = arg;
    }
    if (token == TL_TOK_PIPELINE)
        hints->stages = arg;
    if (token == TL_TOK_UNROLL)
        hints->factor = arg;
    if (!hints->loc.line)
        hints->loc = loc;
    if (hints->unroll && hints->nounroll)
        tl_diag(&p->ctx->diags, loc, TL_E0106);
}

/* ---- parameters and clauses ---- */

TlParamDecl *tl_param(TlParser *p, TlParamForm form, TlTypeExpr *type, TlName name, TlLoc loc,
                      TlExpr *init)
{
    TL_ASSERT(name, "a parameter without a name");
    TlParamDecl *d = TL_NEW(&p->ctx->perm, TlParamDecl);
    d->form = form;
    d->type = type;
    d->name = name;
    d->loc = loc;
    d->init = init;
    d->is_const = form >= TL_PF_CONST || (form == TL_PF_POINTER && type->is_const);
    return d;
}

TlParamDecl *tl_param_view(TlParser *p, TlTypeExpr *type, TlName name, TlLoc loc,
                           const TlExtents *extents, bool is_const)
{
    TlParamDecl *d = tl_param(p, TL_PF_VIEW, type, name, loc, NULL);
    TL_VEC_TAKE(&d->extents, extents);
    d->is_const = is_const;
    return d;
}

TlExtent *tl_extent(TlParser *p, TlTypeExpr *width, TlExpr *extent, TlExpr *stride)
{
    TlExtent *x = TL_NEW(&p->ctx->perm, TlExtent);
    *x = (TlExtent){extent, stride, width, extent->loc};
    return x;
}

TlClause *tl_clause(TlParser *p, TlClauseKind kind, TlLoc loc)
{
    TlClause *c = TL_NEW(&p->ctx->perm, TlClause);
    c->kind = kind;
    c->loc = loc;
    return c;
}

TlVariant tl_variant(const TlBindings *bindings)
{
    TlVariant v;
    TL_VEC_TAKE(&v.bindings, bindings);
    return v;
}

TlFieldDecl *tl_field(TlParser *p, TlName name, TlLoc loc, TlExpr *init)
{
    TlFieldDecl *f = TL_NEW(&p->ctx->perm, TlFieldDecl);
    *f = (TlFieldDecl){.name = name, .loc = loc, .init = init};
    return f;
}

TlFields *tl_fields_typed(TlFields *fields, TlTypeExpr *type)
{
    uint32_t i;
    for (i = 0; i < fields->len; i++)
        fields->data[i].type = type;
    return fields;
}

/* ---- items ---- */

static const char *doc_above(const TlParser *p, TlLoc first)
{
    uint32_t i = p->docs.len;
    while (i--) {
        const TlDoc *d = &p->docs.data[i];
        if (d->next.line == first.line && d->next.col == first.col)
            return d->text;
    }
    return NULL;
}

/* Where reading stopped, the last item may hold a tree too deep to walk, complete or not: it is
 * dropped. */
void tl_item_add(TlParser *p, TlItem *item, TlLoc first)
{
    TL_ASSERT(item, "no item");
    item->doc = doc_above(p, first);
    item->broken = p->broken;
    p->broken = false;
    if (p->stop)
        p->unit->incomplete = true;
    else
        tl_vec_push(&p->ctx->perm, &p->unit->items, item);
}

TlItem *tl_item_new(TlParser *p, TlItemKind kind, TlName name, TlLoc loc)
{
    TL_ASSERT(name || kind == TL_IT_ASSERT || kind == TL_IT_IMPORT,
              "an item of kind %d without a name", (int)kind);
    TlItem *item = TL_NEW(&p->ctx->perm, TlItem);
    item->kind = kind;
    item->name = name;
    item->loc = loc;
    return item;
}

static bool is_identifier(const char *s, size_t len)
{
    size_t i;
    for (i = 0; i < len; i++) {
        char c = s[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return len > 0;
}

/* The name by which a module is used: the last word of std.random, the base name of
 * "lib/geo.tile". */
TlItem *tl_item_import(TlParser *p, TlLoc loc, const char *path, bool is_file)
{
    const char *slash = strrchr(path, is_file ? '/' : '.'), *base = slash ? slash + 1 : path;
    const char *dot = is_file ? strrchr(base, '.') : NULL;
    size_t len = dot ? (size_t)(dot - base) : strlen(base);
    TlItem *item;
    if (!is_identifier(base, len))
        tl_diag(&p->ctx->diags, loc, TL_E0104, path);
    item = tl_item_new(p, TL_IT_IMPORT, tl_intern(&p->ctx->strings, base, len), loc);
    item->path = path;
    item->is_file = is_file;
    return item;
}

/* const int A = 1, B = 2; */
void tl_item_constants(TlParser *p, TlLoc first, TlTypeExpr *type, const TlDecls *decls)
{
    uint32_t i;
    for (i = 0; i < decls->len; i++) {
        const TlDecl *d = &decls->data[i];
        TlItem *item = tl_item_new(p, TL_IT_CONST, d->name, d->loc);
        if (!d->init && !p->broken)
            tl_diag(&p->ctx->diags, d->loc, TL_E0103, d->name);
        else if (d->count && !p->broken)
            tl_diag(&p->ctx->diags, d->loc, TL_E0391, "constants outside of functions");
        p->broken |= d->count != NULL;
        item->type = type;
        item->value = d->init;
        p->broken |= !d->init;
        tl_item_add(p, item, first);
    }
}

/* The head is complete: clauses and body follow. */
void tl_item_function(TlParser *p, TlItemKind kind, TlTypeExpr *type, TlName name, TlLoc first,
                      TlLoc loc, const TlParams *params)
{
    TlItem *item = tl_item_new(p, kind, name, loc);
    item->doc = doc_above(p, first);
    item->type = type;
    if (p->heads && kind == TL_IT_FUNCTION)
        item->later = first;
    TL_VEC_TAKE(&item->params, params);
    p->current = item;
}

TlItem *tl_item_nested(TlParser *p, TlTypeExpr *type, TlName name, TlLoc loc,
                       const TlParams *params)
{
    TlItem *item = tl_item_new(p, TL_IT_FUNCTION, name, loc);
    item->type = type;
    TL_VEC_TAKE(&item->params, params);
    return item;
}

/* fn (a, b) => value: a function whose parameters and result are auto. */
TlExpr *tl_expr_fn(TlParser *p, TlSpan span, const TlDecls *params, TlExpr *value)
{
    TL_ASSERT(params && value, "a function without a value");
    TlExpr *e = tl_expr_new(p, TL_EX_FN, span.begin, span);
    TlParams list = {0};
    for (uint32_t i = 0; i < params->len; i++) {
        const TlDecl *d = &params->data[i];
        TlTypeExpr *any = tl_type_expr(p, TL_TE_AUTO, d->loc);
        tl_vec_push(&p->ctx->perm, &list, *tl_param(p, TL_PF_VALUE, any, d->name, d->loc, NULL));
    }
    e->fn = tl_item_nested(p, tl_type_expr(p, TL_TE_AUTO, span.begin),
                           tl_intern_str(&p->ctx->strings, "fn"), span.begin, &list);
    e->fn->is_lambda = true;
    e->fn->broken = p->broken;
    e->fn->body = tl_stmt_new(p, TL_ST_RETURN, value->loc, (TlSpan){value->begin, value->end});
    e->fn->body->value = value;
    return deeper(p, e, value->depth);
}

void tl_item_finish(TlParser *p, TlStmt *body)
{
    TlItem *item = p->current;
    item->body = body;
    item->broken = p->broken;
    p->current = NULL;
    p->broken = false;
    if (p->stop) { /* see tl_item_add; the name stays known */
        item->clauses.len = 0;
        item->body = tl_stmt_block(p, (TlSpan){body->loc, body->end}, &(TlStmts){0});
        item->broken = true;
    }
    tl_vec_push(&p->ctx->perm, &p->unit->items, item);
}

/* A function whose head was read is kept, so that its name is known. */
void tl_item_broken(TlParser *p)
{
    TlSpan span = {p->prev_end, p->prev_end};
    p->broken = true;
    if (p->current)
        tl_item_finish(p, tl_stmt_block(p, span, &(TlStmts){0}));
    else
        p->unit->incomplete = true;
    p->broken = false;
}

/* ---- entry points ---- */

static const unsigned char *after_byte_order_mark(const TlSource *source)
{
    const unsigned char *s = (const unsigned char *)source->text;
    return source->size >= 3 && s[0] == 0xEF && s[1] == 0xBB && s[2] == 0xBF ? s + 3 : s;
}

TlParser tl_parser_at_start(TlCtx *ctx, uint32_t source)
{
    TL_ASSERT(source < ctx->diags.sources.len, "source %u", source);
    const TlSource *text = &ctx->diags.sources.data[source];
    TlParser p = {.ctx = ctx, .unit = TL_NEW(&ctx->perm, TlUnit)};
    p.unit->source = source;
    p.limit = (const unsigned char *)text->text + text->size;
    p.cursor = (TlCursor){after_byte_order_mark(text), (const unsigned char *)text->text, 1};
    return p;
}

static TlUnit *parse(TlCtx *ctx, uint32_t source, bool heads)
{
    TlParser p = tl_parser_at_start(ctx, source);
    p.heads = heads;
    if (ctx->diags.sources.data[source].size > TL_MAX_SOURCE) {
        tl_diag(&ctx->diags, (TlLoc){source, 1, 1, 1}, TL_E0790, TL_MAX_SOURCE >> 20);
        p.unit->incomplete = true;
        return p.unit;
    }
    tl_yy_parse(&p);
    if (p.broken || p.current)
        tl_item_broken(&p); /* the text ended inside an item */
    return p.unit;
}

TlUnit *tl_parse(TlCtx *ctx, uint32_t source)
{
    return parse(ctx, source, false);
}

TlUnit *tl_parse_heads(TlCtx *ctx, uint32_t source)
{
    return parse(ctx, source, true);
}

static void find_lines(TlArena *arena, TlSource *source)
{
    const char *s = source->text, *end = s + source->size;
    for (; s; s = s ? s + 1 : NULL) {
        tl_vec_push(arena, &source->lines, (uint32_t)(s - source->text));
        s = memchr(s, '\n', (size_t)(end - s));
    }
}

/* The first byte of a position, or NULL when the text has no such line. */
static const char *text_at(TlArena *arena, TlSource *source, TlLoc loc)
{
    TL_ASSERT(loc.file < UINT32_MAX && source->text, "a source without text");
    if (!source->lines.len)
        find_lines(arena, source);
    if (loc.line > source->lines.len)
        return NULL;
    const char *s = source->text + (loc.line ? source->lines.data[loc.line - 1] : 0),
               *end = source->text + source->size;
    return loc.line && loc.col && loc.col - 1 <= (size_t)(end - s) ? s + (loc.col - 1) : NULL;
}

const TlStmt *tl_item_body(TlCtx *ctx, TlItem *item)
{
    TlLoc from = item->later;
    if (!from.line)
        return item->body;
    item->later = (TlLoc){0};
    TlSource *source = &ctx->diags.sources.data[from.file];
    const char *text = text_at(&ctx->perm, source, from);
    TL_ASSERT(text, "%s begins in line %u of %s", item->name, from.line, source->path);
    const unsigned char *at = (const unsigned char *)text;
    TlParser p = {.ctx = ctx,
                  .unit = TL_NEW(&ctx->perm, TlUnit),
                  .limit = (const unsigned char *)source->text + source->size,
                  .cursor = {at, at - (from.col - 1), from.line},
                  .one_item = true};
    p.unit->source = from.file;
    tl_yy_parse(&p);
    TL_ASSERT(p.unit->items.len == 1 && !p.broken, "%s of the library", item->name);
    item->body = p.unit->items.data[0]->body;
    return item->body;
}

static const char *skip_space(const char *s, const char *end)
{
    for (; s < end; s++) {
        if (s[0] == '/' && s[1] == '/') {
            while (s < end && *s != '\n')
                s++;
        } else if (s[0] == '/' && s[1] == '*') {
            for (s += 2; s + 1 < end && !(s[0] == '*' && s[1] == '/');)
                s++;
            s++;
        } else if (!strchr(" \t\r\n\f\v", *s) || !*s) {
            return s;
        }
    }
    return end;
}

const char *tl_source_text(TlCtx *ctx, TlLoc begin, TlLoc end)
{
    TlSource *source = &ctx->diags.sources.data[begin.file];
    const char *s = text_at(&ctx->perm, source, begin), *stop = text_at(&ctx->perm, source, end);
    bool quoted = false;
    TlSbuf out;
    tl_sbuf_init(&out, &ctx->perm);
    tl_sbuf_puts(&out, "");
    while (s && stop && s < stop) {
        const char *next = quoted ? s : skip_space(s, stop);
        if (next > s && next < stop && out.len)
            tl_sbuf_puts(&out, " ");
        if (next >= stop)
            break;
        if (*next == '"')
            quoted = !quoted;
        if (quoted && *next == '\\' && next + 1 < stop)
            tl_sbuf_put(&out, next++, 1);
        tl_sbuf_put(&out, next, 1);
        s = next + 1;
    }
    return out.text;
}
