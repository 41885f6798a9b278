/* The parser on broken text: well-formed programs with random bytes and words put in and taken out.
 * Each must end in a tree or in errors; a text without errors must be printed so that it reads back
 * the same. The seed is fixed; another one and a count may be given: parse_mutants_test 7
 * 100000. */
#include "frontend/ast.h"
#include "test/unit/parse_programs.h"
#include "test/unit/unit.h"
#include <stdlib.h>

static uint64_t state;

static uint32_t random_below(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- texts ---- */

typedef struct Text {
    char data[16384];
    size_t len;
} Text;

static const char *const words[] = {
    "{",         "}",       "(",      ")",    "[",      "]",       ";",  ",",  "kernel",
    "import",    "const ",  "if",     "else", " for",   "static ", "=",  "+:", "@",
    "\"",        "\n",      "/*",     "*/",   "//",     "///",     "0x", "1.", "017",
    "tile<",     "struct ", "auto ",  " x ",  "return", "\xff",    ":",  "?",  "-",
    "void f(){", "in",      "where ", "f32 ", "\\",     "'",       ".",  "++", "unroll",
};

static void put(Text *t, size_t at, const char *s, size_t n)
{
    if (t->len + n > sizeof t->data) return;
    memmove(t->data + at + n, t->data + at, t->len - at);
    memcpy(t->data + at, s, n);
    t->len += n;
}

static void take(Text *t, size_t at, size_t n)
{
    if (n > t->len - at) n = t->len - at;
    memmove(t->data + at, t->data + at + n, t->len - at - n);
    t->len -= n;
}

static void mutate(Text *t)
{
    const char *word = words[random_below(sizeof words / sizeof *words)];
    size_t at = random_below(t->len + 1);
    switch (random_below(4)) {
    case 0: take(t, at, 1 + random_below(6)); break;
    case 1: put(t, at, "\0", 1); break;
    default: put(t, at, word, strlen(word)); break;
    }
}

static void make(Text *t)
{
    t->len = 0;
    for (int i = 0; i < 3; i++) {
        const char *program = programs[random_below(NPROGRAMS)];
        put(t, t->len, program, strlen(program));
        put(t, t->len, "\n", 1);
    }
    for (uint32_t n = 1 + random_below(8); n; n--) mutate(t);
}

/* ---- one text ---- */

static TlUnit *parse(TlCtx *ctx, const char *text, size_t len)
{
    tl_ctx_init(ctx, (TlAlloc){0});
    return tl_parse(ctx, tl_diags_source(&ctx->diags, "t.tile", text, len));
}

static const char *print(TlCtx *ctx, const TlUnit *unit)
{
    TlSbuf out;
    tl_sbuf_init(&out, &ctx->perm);
    tl_sbuf_puts(&out, "");
    tl_ast_print(&out, unit);
    return out.text;
}

static void check_text(const Text *t)
{
    TlCtx a, b;
    char *copy = malloc(t->len + 1); /* of the exact size, for the sanitizers */
    memcpy(copy, t->data, t->len);
    copy[t->len] = 0;
    const char *once = print(&a, parse(&a, copy, t->len));
    TlSbuf shown;
    tl_sbuf_init(&shown, &a.perm);
    tl_diags_render(&a.diags, (TlDiagFormat)random_below(3), random_below(2), &shown);
    if (a.diags.errors == 0) {
        const char *twice = print(&b, parse(&b, once, strlen(once)));
        CHECK_INT(b.diags.errors, 0);
        if (!CHECK_STR(twice, once)) fprintf(stderr, "    of %s\n", copy);
        tl_ctx_free(&b);
    }
    tl_ctx_free(&a);
    free(copy);
}

int main(int argc, char **argv)
{
    static Text text;
    int count = argc > 2 ? atoi(argv[2]) : 3000;
    state = argc > 1 ? (uint64_t)atoi(argv[1]) : 1;
    for (int i = 0; i < count; i++) {
        make(&text);
        check_text(&text);
    }
    return unit_result();
}
