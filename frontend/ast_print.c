/* The tree as .tile text again, for --emit=ast: declarations in one style, operands that are
 * operators themselves in parentheses. Reading the text gives the same tree, so printing that
 * again gives the same text.
 *
 * Chains do not nest: a + b - c is printed without parentheses when the left operand has the
 * operator's precedence, and else-ifs stay on one level; both are walked by loops (see ast.h on
 * depth). */
#include "frontend/name_facts.h"
#include "ir/support/number.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Printer {
    TlSbuf *out;
    int indent;
} Printer;

static void put(Printer *p, const char *text)
{
    tl_sbuf_puts(p->out, text);
}

static void new_line(Printer *p)
{
    int i;
    put(p, "\n");
    for (i = 0; i < p->indent; i++)
        put(p, "    ");
}

static void print_expr(Printer *p, const TlExpr *e);

/* ---- operators ---- */

typedef struct Binop {
    const char *text;
    int level; /* of precedence, 1 binds loosest */
} Binop;
static const Binop binops[] = {
    [TL_BIN_MUL] = {"*", 10}, [TL_BIN_DIV] = {"/", 10},  [TL_BIN_REM] = {"%", 10},
    [TL_BIN_ADD] = {"+", 9},  [TL_BIN_SUB] = {"-", 9},   [TL_BIN_SHL] = {"<<", 8},
    [TL_BIN_SHR] = {">>", 8}, [TL_BIN_LT] = {"<", 7},    [TL_BIN_GT] = {">", 7},
    [TL_BIN_LE] = {"<=", 7},  [TL_BIN_GE] = {">=", 7},   [TL_BIN_EQ] = {"==", 6},
    [TL_BIN_NE] = {"!=", 6},  [TL_BIN_AND] = {"&", 5},   [TL_BIN_XOR] = {"^", 4},
    [TL_BIN_OR] = {"|", 3},   [TL_BIN_LAND] = {"&&", 2}, [TL_BIN_LOR] = {"||", 1},
};

static bool is_operator(const TlExpr *e)
{
    return e->kind == TL_EX_BINARY || e->kind == TL_EX_COND || e->kind == TL_EX_FN;
}

/* An operand: operators get parentheses, and so does a sign after a sign, because `--x` is another
 * token. */
static void print_operand(Printer *p, const TlExpr *e, bool after_sign)
{
    bool parens = is_operator(e) || (after_sign && e->kind == TL_EX_UNARY);
    if (parens)
        put(p, "(");
    print_expr(p, e);
    if (parens)
        put(p, ")");
}

/* The base of a call, index or member: whatever is not a postfix expression gets parentheses. */
static void print_base(Printer *p, const TlExpr *e)
{
    TL_ASSERT(e, "no expression");
    bool parens = is_operator(e) || e->kind == TL_EX_UNARY || e->kind == TL_EX_CAST ||
                  e->kind == TL_EX_UNCHECKED;
    if (parens)
        put(p, "(");
    print_expr(p, e);
    if (parens)
        put(p, ")");
}

static bool chained(const TlExpr *e)
{
    return e->a->kind == TL_EX_BINARY && binops[e->a->u.op].level == binops[e->u.op].level;
}

static void print_binary(Printer *p, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_BINARY && e->a && e->b,
              "expression kind %d is no operation", (int)e->kind);
    const TlExpr *x = e, **chain;
    uint32_t i, n = 1;
    for (; x->a->kind == TL_EX_BINARY; x = x->a)
        n++;
    chain = TL_NEW_ARRAY(p->out->arena, const TlExpr *, n);
    for (x = e, i = n; i--; x = x->a)
        chain[i] = x;
    for (i = n; i-- > 1;)
        if (!chained(chain[i]))
            put(p, "(");
    print_operand(p, chain[0]->a, false);
    for (i = 0; i < n; i++) {
        if (i && !chained(chain[i]))
            put(p, ")");
        tl_sbuf_putf(p->out, " %s ", binops[chain[i]->u.op].text);
        print_operand(p, chain[i]->b, false);
    }
}

/* ---- literals ---- */

/* The shortest decimal text that reads back as the same number, as a float literal. */
static void print_float(Printer *p, double x)
{
    char text[40];
    int digits;
    for (digits = 1; digits <= 17; digits++) {
        tl_number_format(text, sizeof text, "%.*g", digits, x);
        if (tl_number_read(text, NULL) == x)
            break;
    }
    put(p, text);
    if (!strpbrk(text, ".e"))
        put(p, ".0");
}

static void print_string(Printer *p, const char *s)
{
    static const char names[] = "nrtabfv\\\"", values[] = "\n\r\t\a\b\f\v\\\"";
    put(p, "\"");
    for (; *s; s++) {
        const char *at = strchr(values, *s);
        if (at)
            tl_sbuf_putf(p->out, "\\%c", names[at - values]);
        else if ((unsigned char)*s < ' ' || *s == 0x7F)
            tl_sbuf_putf(p->out, "\\x%02x", (unsigned char)*s);
        else
            tl_sbuf_put(p->out, s, 1);
    }
    put(p, "\"");
}

/* ---- types ---- */

static void print_type(Printer *p, const TlTypeExpr *t)
{
    uint32_t i;
    if (t->pointer && t->is_const)
        put(p, "const ");
    if (t->struct_keyword)
        put(p, "struct ");
    switch (t->kind) {
    case TL_TE_SCALAR: put(p, tl_dtype_name(t->dtype)); break;
    case TL_TE_NAME:
        if (t->module)
            tl_sbuf_putf(p->out, "%s.", t->module);
        put(p, t->name);
        break;
    case TL_TE_AUTO: put(p, "auto"); break;
    case TL_TE_VOID: put(p, "void"); break;
    case TL_TE_OTHER: print_expr(p, t->expr); break;
    case TL_TE_TILE:
        put(p, "tile<");
        print_type(p, t->elem);
        for (i = 0; i < t->extents.len; i++) {
            const TlExpr *n = t->extents.data[i];
            put(p, ", ");
            if (n->parens)
                put(p, "("); /* (N) is not N here, and comparisons need parentheses */
            print_expr(p, n);
            if (n->parens)
                put(p, ")");
        }
        put(p, ">");
        break;
    }
    if (t->pointer)
        put(p, " *");
}

/* A type and the blank before a name; there is none after a star. */
static void print_type_of(Printer *p, const TlTypeExpr *t)
{
    print_type(p, t);
    if (!t->pointer)
        put(p, " ");
}

/* ---- expressions ---- */

static void print_index(Printer *p, const TlIndex *x)
{
    print_expr(p, x->at);
    if (x->width) {
        put(p, " +: ");
        print_expr(p, x->width);
    }
    if (x->step) {
        put(p, " : ");
        print_expr(p, x->step);
    }
}

static void print_arg(Printer *p, const TlArg *a)
{
    if (a->name)
        tl_sbuf_putf(p->out, "%s = ", a->name);
    print_index(p, &(TlIndex){a->value, a->width, a->step});
}

static void print_args(Printer *p, const TlArg *args, uint32_t n)
{
    uint32_t i;
    for (i = 0; i < n; i++) {
        if (i)
            put(p, ", ");
        print_arg(p, &args[i]);
    }
}

static void print_enclosed(Printer *p, const char *open, const TlExpr *e, const char *close)
{
    put(p, open);
    print_args(p, e->args.data, e->args.len);
    put(p, close);
}

static void print_cond(Printer *p, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_COND && e->a && e->b && e->c,
              "expression kind %d is no choice", (int)e->kind);
    print_operand(p, e->a, false);
    put(p, " ? ");
    print_operand(p, e->b, false);
    put(p, " : ");
    if (e->c->kind == TL_EX_COND)
        print_expr(p, e->c); /* ladders are not indented */
    else
        print_operand(p, e->c, false);
}

static void print_postfix(Printer *p, const TlExpr *e)
{
    uint32_t i;
    print_base(p, e->a);
    if (e->kind == TL_EX_MEMBER) {
        tl_sbuf_putf(p->out, ".%s", e->u.name);
    } else if (e->kind == TL_EX_CALL) {
        print_enclosed(p, "(", e, ")");
    } else {
        put(p, "[");
        for (i = 0; i < e->indices.len; i++) {
            if (i)
                put(p, ", ");
            print_index(p, &e->indices.data[i]);
        }
        put(p, "]");
    }
}

/* A type together with its attributes. */
static void print_typed(Printer *p, const TlExpr *e)
{
    if (e->kind == TL_EX_MAKE || e->kind == TL_EX_TYPE) {
        print_type(p, e->type);
        if (e->kind == TL_EX_MAKE)
            print_enclosed(p, "(", e, ")");
        return;
    }
    put(p, "(");
    print_type(p, e->type);
    put(p, ")");
    if (e->kind == TL_EX_CAST)
        print_operand(p, e->a, true);
    else
        print_enclosed(p, "{", e, "}");
}

/* fn (a, b) => e */
static void print_lambda(Printer *p, const TlItem *fn)
{
    put(p, "fn (");
    for (uint32_t i = 0; i < fn->params.len; i++)
        tl_sbuf_putf(p->out, "%s%s", i ? ", " : "", fn->params.data[i].name);
    put(p, ") => ");
    print_expr(p, fn->body->value);
}

static void print_expr(Printer *p, const TlExpr *e)
{
    switch (e->kind) {
    case TL_EX_INT: tl_sbuf_putf(p->out, "%llu", (unsigned long long)e->u.integer); break;
    case TL_EX_FLOAT: print_float(p, e->u.number); break;
    case TL_EX_BOOL: put(p, e->u.integer ? "true" : "false"); break;
    case TL_EX_INF: put(p, "inf"); break;
    case TL_EX_NAN: put(p, "nan"); break;
    case TL_EX_STRING: print_string(p, e->u.string); break;
    case TL_EX_NAME: put(p, e->u.name); break;
    case TL_EX_UNARY:
        tl_sbuf_putf(p->out, "%c", e->u.op);
        print_operand(p, e->a, true);
        break;
    case TL_EX_BINARY: print_binary(p, e); break;
    case TL_EX_COND: print_cond(p, e); break;
    case TL_EX_CALL:
    case TL_EX_INDEX:
    case TL_EX_MEMBER: print_postfix(p, e); break;
    case TL_EX_TUPLE: print_enclosed(p, e->braces ? "{" : "(", e, e->braces ? "}" : ")"); break;
    case TL_EX_CAST:
    case TL_EX_STRUCT:
    case TL_EX_MAKE:
    case TL_EX_TYPE: print_typed(p, e); break;
    case TL_EX_UNCHECKED:
        put(p, "unchecked ");
        print_base(p, e->a);
        break;
    case TL_EX_FN: print_lambda(p, e->fn); break;
    }
}

/* ---- statements ---- */

static void print_stmt(Printer *p, const TlStmt *s);
static void print_head(Printer *p, const TlItem *item);

static void print_decls(Printer *p, const TlStmt *s)
{
    TL_ASSERT(s->kind == TL_ST_DECL && s->decls.len > 0,
              "statement kind %d declares nothing", (int)s->kind);
    uint32_t i;
    if (s->is_const)
        put(p, "const ");
    print_type_of(p, s->type);
    for (i = 0; i < s->decls.len; i++) {
        const TlDecl *d = &s->decls.data[i];
        if (i)
            put(p, ", ");
        put(p, d->name);
        if (d->count) {
            put(p, "[");
            print_expr(p, d->count);
            put(p, "]");
        }
        if (!d->init)
            continue;
        put(p, " = ");
        print_expr(p, d->init);
    }
}

static void print_unpack(Printer *p, const TlStmt *s)
{
    TL_ASSERT(s->kind == TL_ST_UNPACK, "statement kind %d unpacks nothing", (int)s->kind);
    uint32_t i;
    put(p, s->is_const ? "const auto (" : "auto (");
    for (i = 0; i < s->decls.len; i++)
        tl_sbuf_putf(p->out, "%s%s", i ? ", " : "", s->decls.data[i].name);
    put(p, ") = ");
    print_expr(p, s->value);
}

static void print_assign(Printer *p, const TlStmt *s)
{
    TL_ASSERT(s->kind == TL_ST_ASSIGN && s->op >= -1,
              "statement kind %d assigns nothing", (int)s->kind);
    if (s->place->kind == TL_EX_UNCHECKED)
        print_expr(p, s->place);
    else
        print_base(p, s->place);
    tl_sbuf_putf(p->out, " %s= ", s->op < 0 ? "" : binops[s->op].text);
    print_expr(p, s->value);
}

/* A statement that can be in the head of a `for`. */
static void print_simple(Printer *p, const TlStmt *s)
{
    if (!s)
        return;
    if (s->kind == TL_ST_DECL)
        print_decls(p, s);
    else if (s->kind == TL_ST_UNPACK)
        print_unpack(p, s);
    else if (s->kind == TL_ST_ASSIGN)
        print_assign(p, s);
    else
        print_base(p, s->value); /* `(a + b);` is a statement, `a + b;` is not */
}

static void print_hint(Printer *p, const char *word, const TlExpr *arg)
{
    tl_sbuf_putf(p->out, " %s", word);
    if (!arg)
        return;
    put(p, "(");
    print_expr(p, arg);
    put(p, ")");
}

static void print_hints(Printer *p, const TlHints *h)
{
    if (h->pipeline)
        print_hint(p, "pipeline", h->stages);
    if (h->unroll)
        print_hint(p, "unroll", h->factor);
    if (h->nounroll)
        print_hint(p, "nounroll", NULL);
    if (h->specialize)
        print_hint(p, "specialize", h->apart);
}

static void print_block(Printer *p, const TlStmt *s)
{
    TL_ASSERT(s->kind == TL_ST_BLOCK, "statement kind %d is no block", (int)s->kind);
    uint32_t i;
    put(p, "{");
    p->indent++;
    for (i = 0; i < s->body.len; i++) {
        new_line(p);
        print_stmt(p, s->body.data[i]);
    }
    p->indent--;
    new_line(p);
    put(p, "}");
}

/* A body, in braces even if it was written without them, so that an `else` stays with its `if`. */
static void print_body(Printer *p, const TlStmt *s)
{
    put(p, " ");
    if (s->kind == TL_ST_BLOCK) {
        print_block(p, s);
        return;
    }
    put(p, "{");
    p->indent++;
    new_line(p);
    print_stmt(p, s);
    p->indent--;
    new_line(p);
    put(p, "}");
}

static void print_if(Printer *p, const TlStmt *s)
{
    TL_ASSERT(s->kind == TL_ST_IF && s->cond && s->then,
              "statement kind %d is no if", (int)s->kind);
    for (;; s = s->els) {
        put(p, s->is_static ? "static if (" : "if (");
        print_expr(p, s->cond);
        put(p, ")");
        print_body(p, s->then);
        if (!s->els)
            return;
        put(p, " else");
        if (s->els->kind != TL_ST_IF)
            break;
        put(p, " ");
    }
    print_body(p, s->els);
}

static void print_loop(Printer *p, const TlStmt *s)
{
    TL_ASSERT(s->kind == TL_ST_WHILE || s->kind == TL_ST_RANGE || s->kind == TL_ST_FOR,
              "statement kind %d is no loop", (int)s->kind);
    if (s->is_static)
        put(p, "static ");
    put(p, s->kind == TL_ST_WHILE ? "while (" : "for (");
    if (s->kind == TL_ST_WHILE) {
        print_expr(p, s->cond);
    } else if (s->kind == TL_ST_RANGE) {
        print_type_of(p, s->type);
        tl_sbuf_putf(p->out, "%s : ", s->decls.data[0].name);
        print_expr(p, s->value);
    } else {
        print_simple(p, s->init);
        put(p, "; ");
        if (s->cond)
            print_expr(p, s->cond);
        put(p, "; ");
        print_simple(p, s->update);
    }
    put(p, ")");
    print_hints(p, &s->hints);
    print_body(p, s->then);
}

static void print_assert(Printer *p, const TlArg *args, uint32_t n)
{
    put(p, "static_assert(");
    print_args(p, args, n);
    put(p, ");");
}

static void print_stmt(Printer *p, const TlStmt *s)
{
    switch (s->kind) {
    case TL_ST_BLOCK: print_block(p, s); break;
    case TL_ST_EMPTY: put(p, ";"); break;
    case TL_ST_DECL:
    case TL_ST_UNPACK:
    case TL_ST_ASSIGN:
    case TL_ST_EXPR:
        print_simple(p, s);
        put(p, ";");
        break;
    case TL_ST_IF: print_if(p, s); break;
    case TL_ST_WHILE:
    case TL_ST_RANGE:
    case TL_ST_FOR: print_loop(p, s); break;
    case TL_ST_RETURN:
        put(p, s->value ? "return " : "return");
        if (s->value)
            print_expr(p, s->value);
        put(p, ";");
        break;
    case TL_ST_BREAK: put(p, "break;"); break;
    case TL_ST_CONTINUE: put(p, "continue;"); break;
    case TL_ST_ASSERT: print_assert(p, s->args.data, s->args.len); break;
    case TL_ST_FUNCTION:
        print_head(p, s->fn);
        put(p, " ");
        print_block(p, s->fn->body);
        break;
    }
}

/* ---- items ---- */

static void print_extent(Printer *p, const TlExtent *x)
{
    if (x->width)
        print_type_of(p, x->width);
    print_expr(p, x->extent);
    if (!x->stride)
        return;
    put(p, " : ");
    print_expr(p, x->stride);
}

static void print_param(Printer *p, const TlParamDecl *d)
{
    uint32_t i;
    if (d->is_const && d->form != TL_PF_POINTER)
        put(p, "const ");
    if (d->form == TL_PF_CONST_FN)
        put(p, "fn ");
    if (d->form == TL_PF_CONST_TYPE)
        put(p, "type ");
    if (d->type)
        print_type_of(p, d->type);
    put(p, d->name);
    if (d->form == TL_PF_VIEW) {
        put(p, "[");
        for (i = 0; i < d->extents.len; i++) {
            if (i)
                put(p, ", ");
            print_extent(p, &d->extents.data[i]);
        }
        put(p, "]");
    }
    if (!d->init)
        return;
    put(p, " = ");
    print_expr(p, d->init);
}

static const char *const clause_names[] = {
    [TL_CL_GRID] = "grid",
    [TL_CL_REQUIRE] = "require",
    [TL_CL_ASSUME] = "assume",
    [TL_CL_KEY] = "key",
    [TL_CL_ALIAS] = "alias",
    [TL_CL_WARPS] = "warps",
    [TL_CL_STAGES] = "stages",
    [TL_CL_CLUSTER] = "cluster",
    [TL_CL_PERSISTENT] = "persistent",
    [TL_CL_MAXREG] = "maxreg",
    [TL_CL_TUNE] = "tune",
    [TL_CL_INSTANTIATE] = "instantiate",
};

static void print_tune(Printer *p, const TlClause *c)
{
    uint32_t i, j;
    for (i = 0; i < c->tunes.len; i++) {
        const TlTuneItem *t = &c->tunes.data[i];
        tl_sbuf_putf(p->out, "%s%s in {", i ? ", " : "", t->name);
        for (j = 0; j < t->values.len; j++) {
            if (j)
                put(p, ", ");
            print_expr(p, t->values.data[j]);
        }
        put(p, "}");
    }
    if (!c->where)
        return;
    put(p, "; where ");
    print_expr(p, c->where);
}

static void print_variants(Printer *p, const TlClause *c)
{
    uint32_t i, j;
    for (i = 0; i < c->variants.len; i++) {
        const TlVariant *v = &c->variants.data[i];
        if (i)
            put(p, "; ");
        for (j = 0; j < v->bindings.len; j++) {
            tl_sbuf_putf(p->out, "%s%s = ", j ? ", " : "", v->bindings.data[j].name);
            print_expr(p, v->bindings.data[j].value);
        }
    }
}

static void print_clause(Printer *p, const TlClause *c)
{
    put(p, "\n    ");
    put(p, clause_names[c->kind]);
    put(p, "(");
    if (c->kind == TL_CL_TUNE)
        print_tune(p, c);
    else if (c->kind == TL_CL_INSTANTIATE)
        print_variants(p, c);
    else
        print_args(p, c->args.data, c->args.len);
    put(p, ")");
}

static void print_head(Printer *p, const TlItem *item)
{
    TL_ASSERT(item->kind == TL_IT_FUNCTION || item->kind == TL_IT_KERNEL,
              "item kind %d is no function", (int)item->kind);
    uint32_t i;
    if (item->kind == TL_IT_KERNEL)
        put(p, "kernel ");
    else
        print_type_of(p, item->type);
    tl_sbuf_putf(p->out, "%s(", item->name);
    bool any = false;
    for (i = 0; i < item->params.len; i++) {
        if (item->params.data[i].of)
            continue;
        put(p, any ? ", " : "");
        print_param(p, &item->params.data[i]);
        any = true;
    }
    put(p, ")");
}

static void print_function(Printer *p, const TlItem *item)
{
    print_head(p, item);
    for (uint32_t i = 0; i < item->clauses.len; i++)
        print_clause(p, &item->clauses.data[i]);
    put(p, "\n");
    print_block(p, item->body);
    put(p, "\n");
}

static void print_struct(Printer *p, const TlItem *item)
{
    TL_ASSERT(item->kind == TL_IT_STRUCT, "item kind %d is no struct", (int)item->kind);
    uint32_t i;
    tl_sbuf_putf(p->out, "struct %s {", item->name);
    p->indent++;
    for (i = 0; i < item->fields.len; i++) {
        const TlFieldDecl *f = &item->fields.data[i];
        new_line(p);
        print_type_of(p, f->type);
        put(p, f->name);
        if (f->count) {
            put(p, "[");
            print_expr(p, f->count);
            put(p, "]");
        }
        if (f->init) {
            put(p, " = ");
            print_expr(p, f->init);
        }
        put(p, ";");
    }
    p->indent--;
    put(p, "\n};\n");
}

static void print_doc(Printer *p, const char *doc)
{
    while (doc) {
        const char *end = strchr(doc, '\n');
        size_t n = end ? (size_t)(end - doc) : strlen(doc);
        put(p, n ? "/// " : "///");
        tl_sbuf_put(p->out, doc, n);
        put(p, "\n");
        doc = end ? end + 1 : NULL;
    }
}

static void print_constant(Printer *p, const TlItem *item)
{
    TL_ASSERT(item->kind == TL_IT_CONST, "item kind %d is no constant", (int)item->kind);
    put(p, "const ");
    print_type_of(p, item->type);
    tl_sbuf_putf(p->out, "%s = ", item->name);
    print_expr(p, item->value);
    put(p, ";\n");
}

static void print_item(Printer *p, const TlItem *item)
{
    print_doc(p, item->doc);
    switch (item->kind) {
    case TL_IT_IMPORT:
        put(p, "import ");
        if (item->is_file)
            print_string(p, item->path);
        else
            put(p, item->path);
        put(p, ";\n");
        break;
    case TL_IT_CONST: print_constant(p, item); break;
    case TL_IT_STRUCT: print_struct(p, item); break;
    case TL_IT_FUNCTION:
    case TL_IT_KERNEL: print_function(p, item); break;
    case TL_IT_ASSERT:
        print_assert(p, item->args.data, item->args.len);
        put(p, "\n");
        break;
    }
}

void tl_ast_print_head(TlSbuf *out, const TlItem *item)
{
    Printer p = {out, 0};
    switch (item->kind) {
    case TL_IT_IMPORT:
        tl_sbuf_putf(out, "import %s%s%s", item->is_file ? "\"" : "", item->path,
                     item->is_file ? "\"" : "");
        break;
    case TL_IT_CONST:
        if (item->value)
            print_constant(&p, item);
        break;
    case TL_IT_STRUCT: print_struct(&p, item); break;
    case TL_IT_FUNCTION:
    case TL_IT_KERNEL: print_head(&p, item); break;
    case TL_IT_ASSERT: break;
    }
}

void tl_ast_print_item(TlSbuf *out, const TlItem *item)
{
    Printer p = {out, 0};
    print_item(&p, item);
}

void tl_ast_print(TlSbuf *out, const TlUnit *unit)
{
    Printer p = {out, 0};
    uint32_t i;
    for (i = 0; i < unit->items.len; i++) {
        if (unit->items.data[i]->kind == TL_IT_CONST && !unit->items.data[i]->value)
            continue;
        if (i)
            put(&p, "\n");
        print_item(&p, unit->items.data[i]);
    }
}
