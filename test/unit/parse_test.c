/* The parser: trees of well-formed text (shape, positions, printing is a fixed point), what is
 * wrong with the rest and where, recovery, and sizes: long programs are fine, deep ones are
 * errors. */
#include "frontend/ast.h"
#include "frontend/stdlib.h"
#include "test/unit/parse_programs.h"
#include "test/unit/unit.h"
#include <stdlib.h>

/* One parse; everything lives in ctx. */
typedef struct Parse {
    TlCtx ctx;
    uint32_t source;
    TlUnit *unit;
} Parse;

static void parse_bytes(Parse *p, const char *text, size_t size)
{
    tl_ctx_init(&p->ctx, (TlAlloc){0});
    p->source = tl_diags_source(&p->ctx.diags, "t.tile", text, size);
    p->unit = tl_parse(&p->ctx, p->source);
}

static void parse(Parse *p, const char *text)
{
    parse_bytes(p, text, strlen(text));
}

static const char *print_unit(const TlUnit *unit, TlArena *arena)
{
    TlSbuf out;
    tl_sbuf_init(&out, arena);
    tl_sbuf_puts(&out, "");
    tl_ast_print(&out, unit);
    return out.text;
}

static const char *print(Parse *p)
{
    return print_unit(p->unit, &p->ctx.perm);
}

/* ---- well-formed text ---- */

static void check_program(const char *text)
{
    Parse a, b;
    const char *once, *twice;
    parse(&a, text);
    CHECK_INT(a.ctx.diags.errors, 0);
    if (a.ctx.diags.errors)
        fprintf(stderr, "    in %s\n    %s\n", text, a.ctx.diags.rows.data[0].text);
    once = print(&a);
    parse(&b, once);
    CHECK_INT(b.ctx.diags.errors, 0);
    twice = print(&b);
    CHECK_STR(twice, once);
    tl_ctx_free(&a.ctx);
    tl_ctx_free(&b.ctx);
}

static void test_print(void)
{
    Parse p;
    parse(&p, "/// doc\nkernel k(const f16 A[M : lda, K], int n = 3) grid(M) { if (a) b = c + d * "
              "e - f; }");
    CHECK_INT(p.ctx.diags.errors, 1); /* only const parameters have defaults */
    tl_ctx_free(&p.ctx);
    parse(&p, "/// doc\nkernel k(const f16 A[M : lda, K]) grid(M) { if (a) b = -c + d * e - f; "
              "else x++; }");
    CHECK_STR(print(&p),
              "/// doc\nkernel k(const f16 A[M : lda, K])\n    grid(M)\n{\n    if (a) {\n"
              "        b = -c + (d * e) - f;\n    } else {\n        x += 1;\n    }\n}\n");
    tl_ctx_free(&p.ctx);
    parse(&p, "void f() { f32 a[2*n], b[3] = {1, x,}; T c[4] = a; a[i][j].f += b[2]; }");
    CHECK_STR(print(&p), "void f()\n{\n    f32 a[2 * n], b[3] = {1, x};\n    T c[4] = a;\n"
                         "    a[i][j].f += b[2];\n}\n");
    tl_ctx_free(&p.ctx);
}

/* ---- shape and positions ---- */

static const TlStmt *stmt_of(const Parse *p, uint32_t i)
{
    return p->unit->items.data[0]->body->body.data[i];
}

static bool at(TlLoc loc, uint32_t line, uint32_t col, uint32_t len)
{
    if (loc.line == line && loc.col == col && loc.len == len) return true;
    fprintf(stderr, "    at %u:%u len %u, want %u:%u len %u\n", loc.line, loc.col, loc.len, line,
            col, len);
    return false;
}

static void test_positions(void)
{
    Parse p;
    const TlExpr *e;
    parse(&p, "void f()\n{\n    x = aa + bb * geo.c(1)[2];\n    y = (f16) -z ? (u, v) : (w);\n}");
    CHECK(at(p.unit->items.data[0]->loc, 1, 6, 1));
    CHECK(at(p.unit->items.data[0]->body->end, 5, 1, 1));
    CHECK(at(stmt_of(&p, 0)->loc, 3, 7, 1));
    e = stmt_of(&p, 0)->value;
    CHECK(e->kind == TL_EX_BINARY && e->u.op == TL_BIN_ADD);
    CHECK(at(e->loc, 3, 12, 1) && at(e->begin, 3, 9, 2) && at(e->end, 3, 30, 0));
    e = e->b->b;
    CHECK(e->kind == TL_EX_INDEX && at(e->loc, 3, 23, 1) && at(e->begin, 3, 19, 3));
    e = e->a;
    CHECK(e->kind == TL_EX_CALL && at(e->loc, 3, 23, 1) && at(e->end, 3, 27, 0));
    CHECK(e->a->kind == TL_EX_MEMBER && at(e->a->a->loc, 3, 19, 3));
    e = stmt_of(&p, 1)->value;
    CHECK(e->kind == TL_EX_COND && at(e->loc, 4, 18, 1));
    CHECK(e->a->kind == TL_EX_CAST && at(e->a->loc, 4, 9, 5) && at(e->a->a->loc, 4, 15, 1));
    CHECK(e->b->kind == TL_EX_TUPLE && e->b->args.len == 2 && at(e->b->loc, 4, 20, 1));
    CHECK(e->c->kind == TL_EX_NAME && e->c->parens && at(e->c->loc, 4, 30, 1) &&
          at(e->c->begin, 4, 29, 1));
    tl_ctx_free(&p.ctx);
}

static void test_tree(void)
{
    Parse p;
    const TlItem *k;
    parse(&p,
          "import std.random;\nimport \"a/geo.tile\";\n"
          "kernel k(const f32 x[M : ld, i64 N], f32 *p, const type T = f16) grid(M, group = 8) {\n"
          "  const geo.vec v = {1}; for (int i : range(3)) pipeline(2) x++; }");
    CHECK_INT(p.unit->items.len, 3);
    CHECK_STR(p.unit->items.data[0]->name, "random");
    CHECK_STR(p.unit->items.data[0]->path, "std.random");
    CHECK_STR(p.unit->items.data[1]->name, "geo");
    CHECK(p.unit->items.data[1]->is_file);
    k = p.unit->items.data[2];
    CHECK(k->kind == TL_IT_KERNEL && k->params.len == 3 && k->clauses.len == 1);
    CHECK(k->params.data[0].form == TL_PF_VIEW && k->params.data[0].is_const &&
          k->params.data[0].extents.len == 2);
    CHECK(k->params.data[0].extents.data[0].stride && !k->params.data[0].extents.data[0].width);
    CHECK(k->params.data[0].extents.data[1].width->dtype == TL_I64);
    CHECK(k->params.data[1].form == TL_PF_POINTER && k->params.data[1].type->pointer &&
          !k->params.data[1].is_const);
    CHECK(k->params.data[2].form == TL_PF_CONST_TYPE && k->params.data[2].init->kind == TL_EX_TYPE);
    CHECK_STR(k->clauses.data[0].args.data[1].name, "group");
    CHECK(k->body->body.data[0]->is_const && k->body->body.data[0]->decls.data[0].init->braces);
    CHECK_STR(k->body->body.data[0]->type->module, "geo");
    CHECK(k->body->body.data[1]->kind == TL_ST_RANGE && k->body->body.data[1]->hints.stages);
    CHECK(k->body->body.data[1]->then->kind == TL_ST_ASSIGN &&
          k->body->body.data[1]->then->op == TL_BIN_ADD);
    tl_ctx_free(&p.ctx);
}

static void test_documentation(void)
{
    Parse p;
    parse(&p, "///  one\n/// two  \n\n// plain\nconst int A = 1;\nvoid f() {\n/// inside\n}\n/// "
              "g\nkernel g() {}\n/// end");
    CHECK_STR(p.unit->items.data[0]->doc, " one\ntwo");
    CHECK(p.unit->items.data[1]->doc == NULL);
    CHECK_STR(p.unit->items.data[2]->doc, "g");
    tl_ctx_free(&p.ctx);
}

static void test_source_text(void)
{
    Parse p;
    const TlExpr *e;
    parse(&p, "void f() {\n  a = B\n    >= /* bytes */ g( N, // all\n\t\t\"x  \\\" y\" );\n}");
    e = stmt_of(&p, 0)->value;
    CHECK_STR(tl_source_text(&p.ctx, e->begin, e->end), "B >= g( N, \"x  \\\" y\" )");
    CHECK_STR(tl_source_text(&p.ctx, e->end, e->begin), "");
    CHECK_STR(tl_source_text(&p.ctx, (TlLoc){0, 99, 1, 1}, e->end), "");
    tl_ctx_free(&p.ctx);
}

static void test_numbers(void)
{
    Parse p;
    const TlStmt *s;
    parse(&p, "void f() { g(0xFFFF_FFFF_FFFF_FFFF, 0b101, 1_000, 1e3, 0x1.8p-1, .5, 0, 0.0, 1E+2, "
              "9007199254740993.0); }");
    s = stmt_of(&p, 0);
    const TlArg *a = s->value->args.data;
    CHECK(a[0].value->u.integer == UINT64_MAX && a[1].value->u.integer == 5 &&
          a[2].value->u.integer == 1000);
    CHECK(a[3].value->kind == TL_EX_FLOAT && a[3].value->u.number == 1000 &&
          a[4].value->u.number == 0.75);
    CHECK(a[5].value->u.number == 0.5 && a[6].value->kind == TL_EX_INT &&
          a[7].value->kind == TL_EX_FLOAT);
    CHECK(a[8].value->u.number == 100 && a[9].value->u.number == 9007199254740992.0);
    tl_ctx_free(&p.ctx);
}

/* ---- what is wrong, and where ---- */

typedef struct Wrong {
    const char *text, *errors; /* "E0101@3:17 E0008@4:1" */
} Wrong;
static const Wrong wrongs[] = {
    {"kernel k(f32 c[N]) grid(1) {\n    c[0] = 1;\n    c[0 +: 4] = ;\n}\n", "E0101@3:17"},
    {"const int A = 017;", "E0009@1:15"},
    {"const int A = 0_1; const int B = 00;", "E0009@1:15 E0009@1:34"},
    {"const f32 A = 01.5;", "E0009@1:15"},
    {"const f32 A = 1.0f; const int B = 3u; const int C = 12abc;",
     "E0008@1:15 E0008@1:35 E0008@1:53"},
    {"const int A = 18446744073709551616;", "E0010@1:15"},
    {"const int A = 0x1_0000_0000_0000_0000;", "E0010@1:15"},
    {"const f64 A = 1e999;", "E0011@1:15"},
    {"const int A = 1__2; const int B = 1_; const int C = 0x_; const f32 D = 1_.5;",
     "E0012@1:15 E0012@1:35 E0012@1:53 E0012@1:72"},
    {"const int A = 0x; const int B = 0b; const int C = 0b102;",
     "E0013@1:15 E0013@1:33 E0013@1:51"},
    {"const f32 A = 0x1.8;", "E0014@1:15"},
    {"const int \xC3\xA9 = 1; const int B = 1; const int C = #;", "E0002@1:11 E0002@1:50"},
    {"const int \xFF\xFE = 1;", "E0004@1:11"},
    {"const int A = \xC0\x80;", "E0004@1:15"},         /* overlong */
    {"const int A = \xED\xA0\x80;", "E0004@1:15"},     /* a surrogate */
    {"// \xFF \x01\nconst int A = /* \xFF */ 1;", ""}, /* comments hold anything */
    {"/* /* */ const int A = 1; /* open\n\n", "E0005@1:27"},
    {"const int A = \"open\n;", "E0006@1:15"},
    {"const int A = \"open\\", "E0006@1:15 E0101@1:21"},
    {"const int A = \"\\q\\x0\\x00\";", "E0007@1:16 E0007@1:18 E0007@1:21"},
    {"void f() { auto z; auto a, b = 1; } const int A;", "E0103@1:17 E0103@1:25 E0103@1:47"},
    {"import \"9.tile\"; import \"a/\"; import \".tile\";", "E0104@1:8 E0104@1:25 E0104@1:38"},
    {"void f() { for (int i : range(3)) pipeline pipeline g(); }", "E0105@1:44"},
    {"void f() { for (int i : range(3)) unroll nounroll g(); }", "E0106@1:42"},
    {"\r\nconst int A =\r\n  ;\r\n", "E0101@3:3"},
    /* columns count bytes, the byte order mark's too */
    {"\xEF\xBB\xBF"
     "const int A = ;",
     "E0101@1:18"},
    {"\tx;", "E0101@1:3"},
    /* recovery: one error for one mistake, and the next statement or item is read */
    {"void f() { a = ; b = ; { c = ; } d = ; }\nvoid g() { e = ; }",
     "E0101@1:16 E0101@1:22 E0101@1:30 E0101@1:38 E0101@2:16"},
    {"void f() { if (a +) { b = 1; } else { c = 2; } d = ; }", "E0101@1:19 E0101@1:52"},
    {"void f() { while (a { b = 1; } d = ; }", "E0101@1:21 E0101@1:36"},
    {"void f() { g(a, (b; c = ; }", "E0101@1:19 E0101@1:25"},
    {"void f() { for (int i = 0, i < 3; i++) { a = 1; } d = ; }", "E0101@1:30 E0101@1:55"},
    {"void f() { int a = 3\n int b = 4 5;\n return a }", "E0101@2:2 E0101@2:12 E0101@3:11"},
    {"void f(f32 c[N) { a = 1; b = 2; }\nvoid g() { e = ; }", "E0101@1:15 E0101@2:16"},
    {"kernel k() grid(1 { a = 1; b = 2; }\nvoid g() { e = ; }", "E0101@1:19 E0101@2:16"},
    {"kernel k() tune(a in {1, b in {2}) { a = 1; }\nvoid g() { e = ; }", "E0101@1:28 E0101@2:16"},
    {"void f() { if (a) {\n  b = 1;\nkernel k() { c = ; }", "E0101@3:1 E0101@3:18"},
    {"const int A = 1\nconst int B = ;\nconst int C = 3 4; const int D = ;",
     "E0101@2:1 E0101@2:15 E0101@3:17 E0101@3:34"},
    {"struct s { i32 a i32 b; }; struct t { i32 a } const int A = ;",
     "E0101@1:18 E0101@1:45 E0101@1:47"},
    {"}\n)\nconst int A = ;", "E0101@1:1 E0101@2:1 E0101@3:15"},
    {"void f() { a = $; b = ; }", "E0002@1:16 E0101@1:23"},
    {"void f() { int pipeline = 3; int if = 3; }", "E0101@1:16 E0101@1:34"},
    {"i32 f16(i32 a) { return a; } const f32 f32 = 1;", "E0101@1:5 E0101@1:40"},
    {"void f() {", "E0101@1:11"},
    {"void f() { x = (1 + ", "E0101@1:21"},
    {"kernel", "E0101@1:7"},
    {"void f() { (T)x; a = (T)y; }", "E0101@1:15 E0101@1:25"},
    {"void f() { a + b; 3; }", "E0101@1:14"},
    {"void f() { else { } }", "E0101@1:12"},
};

static void append_errors(TlSbuf *out, TlDiags *d)
{
    tl_sbuf_puts(out, "");
    tl_diags_sort(d);
    for (uint32_t i = 0; i < d->rows.len; i++) {
        const TlDiag *row = &d->rows.data[i];
        tl_sbuf_putf(out, "%s%s@%u:%u", i ? " " : "", tl_diag_code(row->id), row->loc.line,
                     row->loc.col);
    }
}

static void test_wrongs(void)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        Parse p;
        TlSbuf out;
        parse(&p, wrongs[i].text);
        tl_sbuf_init(&out, &p.ctx.perm);
        append_errors(&out, &p.ctx.diags);
        if (!CHECK_STR(out.text, wrongs[i].errors)) fprintf(stderr, "    in %s\n", wrongs[i].text);
        tl_ctx_free(&p.ctx);
    }
}

static void test_messages(void)
{
    Parse p;
    parse(&p, "void f() { if (a = b) c(); }");
    CHECK_STR(p.ctx.diags.rows.data[0].text, "expected ')', found '='");
    CHECK_STR(p.ctx.diags.rows.data[0].fixit, "==");
    tl_ctx_free(&p.ctx);
    parse(&p, "void f() { a = [; }");
    CHECK_STR(p.ctx.diags.rows.data[0].text, "expected an expression, found '['");
    tl_ctx_free(&p.ctx);
    parse(&p, "void f( { a = 1; }");
    CHECK_STR(p.ctx.diags.rows.data[0].text, "expected a type or ')', found '{'");
    tl_ctx_free(&p.ctx);
    parse(&p, "void f() { a = b + (T) c; }");
    CHECK_STR(p.ctx.diags.rows.data[0].label, "a cast to a named type is written cast(x, T)");
    tl_ctx_free(&p.ctx);
    parse(&p, "void f() { a = g(T) c; }");
    CHECK(p.ctx.diags.rows.data[0].label == NULL);
    tl_ctx_free(&p.ctx);
    parse(&p, "42");
    CHECK_STR(p.ctx.diags.rows.data[0].text, "expected a declaration, found '42'");
    tl_ctx_free(&p.ctx);
}

/* A function with a syntax error keeps its name; NULs in the middle are seen; nothing after the
 * limit is read. */
static void test_broken(void)
{
    Parse p;
    parse(&p, "void f() { a = ; }\nvoid g() { }\nvoid h(f32 3) {}");
    CHECK(p.unit->items.len == 2 && p.unit->items.data[0]->broken &&
          !p.unit->items.data[1]->broken);
    CHECK(p.unit->incomplete);
    tl_ctx_free(&p.ctx);
    parse_bytes(&p, "const int A\0 = 1;", 17);
    CHECK(p.ctx.diags.rows.len == 1 && p.ctx.diags.rows.data[0].id == TL_E0003);
    tl_ctx_free(&p.ctx);
    parse_bytes(&p, "const int A = \"a\0b\";", 20);
    CHECK(p.ctx.diags.rows.len == 1 && p.ctx.diags.rows.data[0].id == TL_E0003 &&
          p.ctx.diags.rows.data[0].loc.col == 17);
    tl_ctx_free(&p.ctx);
}

/* ---- sizes ---- */

/* head, then part n times, then middle, then tail n times, then end */
static char *repeat(const char *head, const char *part, const char *middle, const char *tail,
                    const char *end, int n)
{
    size_t size =
        strlen(head) + strlen(middle) + strlen(end) + (strlen(part) + strlen(tail)) * (size_t)n + 1;
    char *s = malloc(size), *at = s;
    at += sprintf(at, "%s", head);
    for (int i = 0; i < n; i++) at += sprintf(at, "%s", part);
    at += sprintf(at, "%s", middle);
    for (int i = 0; i < n; i++) at += sprintf(at, "%s", tail);
    sprintf(at, "%s", end);
    return s;
}

typedef struct Size {
    const char *head, *part, *middle, *tail, *end;
    int fine, wrong; /* so many are read and printed; so many are an error (0: none is too many) */
    TlDiagId id;
} Size;
static const Size sizes[] = {
    {"void f() { a = 1", " + b", "", "", "; }", 20000, 0, TL_E0792},
    {"void f() { a = 1", " + b * c - d", "", "", "; }", 5000, 0, TL_E0792},
    {"void f() { a = b", " && b", "", "", "; }", 20000, 0, TL_E0792},
    {"void f() { ", "if (a) b(); else ", "c();", "", " }", 20000, 0, TL_E0792},
    {"void f() { ", "if (a) { b(); } else ", "{ c(); }", "", " }", 20000, 0, TL_E0792},
    {"void f() { ", "a = b;", "", "", " }", 20000, 0, TL_E0792},
    {"", "void f() {}", "", "", "", 20000, 0, TL_E0792},
    {"void f() { f(0", ", 1", "", "", "); }", 20000, 0, TL_E0792},
    {"void f() { a = ", "(", "1", ")", "; }", 255, 256, TL_E0791},
    {"void f() { a = ", "f(", "1", ")", "; }", 254, 256, TL_E0791},
    {"void f() { a = ", "b[", "1", "]", "; }", 254, 256, TL_E0791},
    {"void f() { ", "{", "", "}", " }", 255, 256, TL_E0791},
    {"void f() { ", "if (a) {", "", "}", " }", 255, 256, TL_E0791},
    {"void f() { ", "if (a) while (b) ", ";", "", " }", 120, 130, TL_E0792},
    {"void f() { ", "if (a) ", ";", "", " }", 250, 100000, TL_E0792},
    {"const int A = ", "~", "1", "", ";", 250, 100000, TL_E0792},
    {"kernel k() grid(", "~", "1", "", ") {}", 250, 100000, TL_E0792},
    {"void f() { a = ", "- ", "1", "", "; }", 250, 256, TL_E0792},
    {"void f() { a = ", "!", "b", "", "; }", 250, 20000, TL_E0792},
    {"void f() { a = ", "(f32)", "b", "", "; }", 250, 20000, TL_E0792},
    {"void f() { a = ", "b ? c : ", "d", "", "; }", 250, 20000, TL_E0792},
    {"void f() { a", ".b", "", "", " = 1; }", 250, 20000, TL_E0792},
    {"void f() { a", "[0]", "", "", " = 1; }", 250, 20000, TL_E0792},
    {"void f() { a = ", "b ? ", "c", " : d", "; }", 250, 20000, TL_E0792},
};

static void test_sizes(void)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const Size *s = &sizes[i];
        char *text = repeat(s->head, s->part, s->middle, s->tail, s->end, s->fine);
        Parse p;
        parse(&p, text);
        if (!CHECK_INT(p.ctx.diags.errors, 0))
            fprintf(stderr, "    row %d: %s\n", (int)i, p.ctx.diags.rows.data[0].text);
        CHECK(strlen(print(&p)) > 10);
        tl_ctx_free(&p.ctx);
        free(text);
        if (!s->wrong) continue;
        text = repeat(s->head, s->part, s->middle, s->tail, s->end, s->wrong);
        parse(&p, text);
        if (!CHECK(p.ctx.diags.rows.len == 1 && p.ctx.diags.rows.data[0].id == s->id))
            fprintf(stderr, "    row %d: %u errors\n", (int)i, p.ctx.diags.errors);
        CHECK(strlen(print(&p)) < 100); /* nothing deep is left in the tree */
        tl_ctx_free(&p.ctx);
        free(text);
    }
}

static void test_limits(void)
{
    size_t size = TL_MAX_SOURCE + 1;
    char *text = malloc(size + 1);
    Parse p;
    memset(text, ' ', size);
    text[size] = 0;
    parse_bytes(&p, text, size);
    CHECK(p.ctx.diags.rows.len == 1 && p.ctx.diags.rows.data[0].id == TL_E0790);
    tl_ctx_free(&p.ctx);
    parse_bytes(&p, text + 1, size - 1);
    CHECK_INT(p.ctx.diags.errors, 0);
    tl_ctx_free(&p.ctx);
    memset(text, '(', 1 << 20);
    parse_bytes(&p, text, 1 << 20);
    CHECK(p.ctx.diags.errors > 0);
    tl_ctx_free(&p.ctx);
    free(text);
}

/* Every prefix of every program ends in a tree, and in errors or not. */
static void test_prefixes(void)
{
    for (int i = 0; i < NPROGRAMS; i++)
        for (size_t n = 0; n < strlen(programs[i]); n++) {
            char *text = calloc(n + 1, 1);
            Parse p;
            memcpy(text, programs[i], n);
            parse_bytes(&p, text, n);
            CHECK(strlen(print(&p)) < 10000);
            tl_ctx_free(&p.ctx);
            free(text);
        }
}

/* Read body by body, a module of the library is what it is when it is read at once, but for the
 * bodies of kernels, which whoever imports it does not need. */
static void check_bodies(const char *name, const char *text, size_t size)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    uint32_t source = tl_diags_source(&ctx.diags, name, text, size);
    TlUnit *heads = tl_parse_heads(&ctx, source);
    TlUnit *all = tl_parse(&ctx, source);
    CHECK_INT(all->items.len, heads->items.len);
    for (uint32_t i = 0; i < all->items.len; i++)
        if (all->items.data[i]->kind == TL_IT_KERNEL)
            all->items.data[i]->body = heads->items.data[i]->body;
    const char *whole = print_unit(all, &ctx.perm);
    CHECK(strlen(print_unit(heads, &ctx.perm)) <= strlen(whole));
    for (uint32_t i = heads->items.len; i-- > 0;) {
        TlItem *item = heads->items.data[i];
        const TlStmt *body = tl_item_body(&ctx, item);
        bool has_body = item->kind == TL_IT_FUNCTION || item->kind == TL_IT_KERNEL;
        CHECK((body != NULL) == has_body);
        CHECK(tl_item_body(&ctx, item) == body);
    }
    CHECK(strcmp(print_unit(heads, &ctx.perm), whole) == 0);
    CHECK(ctx.diags.errors == 0);
    tl_ctx_free(&ctx);
}

static void test_stdlib(void)
{
    const char *name, *text;
    size_t size;
    CHECK(tl_stdlib_find("std.nothing", &size) == NULL);
    for (size_t i = 0; (name = tl_stdlib_name(i)); i++) {
        text = tl_stdlib_find(name, &size);
        CHECK(text && text[size] == 0);
        if (text) check_program(text);
        if (text) check_bodies(name, text, size);
    }
}

int main(void)
{
    for (int i = 0; i < NPROGRAMS; i++) check_program(programs[i]);
    test_print();
    test_positions();
    test_tree();
    test_documentation();
    test_source_text();
    test_numbers();
    test_wrongs();
    test_messages();
    test_broken();
    test_sizes();
    test_limits();
    test_prefixes();
    test_stdlib();
    return unit_result();
}
