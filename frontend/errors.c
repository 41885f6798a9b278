/* errors.def as text: one row, or the page of all of them. */
#include "frontend/errors.h"
#include "ir/support/ascii.h"
#include <stdlib.h>
#include <string.h>

typedef struct Row {
    TlDiagId id;
    const char *meaning, *wrong, *right;
} Row;

static const Row rows[] = {
#define EXPLAIN(id, meaning, wrong, right) {TL_##id, meaning, wrong, right},
#include "frontend/errors.def"
};
enum { NROWS = sizeof rows / sizeof *rows };

/* The kernel around examples that are statements. */
static const char *const HEAD =
    "kernel k(const f32 x[N], f32 o[N], const i32 a[N], i32 p[N], const f32 A[M, K], "
    "int n) grid(1) {";

static void put_lines(TlSbuf *out, const char *text, const char *before)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        tl_sbuf_putf(out, "%s%.*s\n", before, (int)n, text);
        text += n + (text[n] == '\n');
    }
}

/* A message with "..." where a diagnostic says what it is about: %s, %.*s, %lld. */
static void put_summary(TlSbuf *out, const char *format)
{
    for (const char *at; (at = strchr(format, '%')); format = at) {
        tl_sbuf_put(out, format, (size_t)(at - format));
        bool is_percent = *++at == '%';
        at += is_percent ? 0 : strspn(at, "0123456789.*hlzjt");
        tl_sbuf_puts(out, is_percent ? "%" : "...");
        at += *at != 0;
    }
    tl_sbuf_puts(out, format);
}

/* E0303 is also e0303 and 303. */
static bool is_called(const char *code, const char *name)
{
    size_t n = strlen(code);
    bool is_number = n && strspn(code + 1, "0123456789") == n - 1;
    if (is_number && strspn(name, "0123456789") == strlen(name))
        return strlen(name) && strtol(name, NULL, 10) == strtol(code + 1, NULL, 10);
    return n == strlen(name) && (is_number ? tl_same_letters(code, name, n) : !strcmp(code, name));
}

bool tl_errors_explain(TlSbuf *out, const char *name)
{
    bool found = false;
    for (int i = 0; i < NROWS; i++) {
        const Row *r = &rows[i];
        if (!is_called(tl_diag_code(r->id), name))
            continue;
        found = true;
        tl_sbuf_putf(out, "%s: ", tl_diag_code(r->id));
        put_summary(out, tl_diag_summary(r->id));
        tl_sbuf_putf(out, "\n%s\n", r->meaning);
        if (!r->wrong)
            continue;
        tl_sbuf_puts(out, "\nWrong:\n");
        put_lines(out, r->wrong, "    ");
        tl_sbuf_puts(out, "Right:\n");
        put_lines(out, r->right, "    ");
    }
    return found;
}

const char *tl_errors_at(uint32_t i, TlSbuf *out_summary)
{
    if (i >= NROWS)
        return NULL;
    put_summary(out_summary, tl_diag_summary(rows[i].id));
    return tl_diag_code(rows[i].id);
}

static void put_row(TlSbuf *out, const Row *r)
{
    tl_sbuf_putf(out, "\n## %s\n\n`", tl_diag_code(r->id));
    put_summary(out, tl_diag_summary(r->id));
    tl_sbuf_putf(out, "`\n\n%s\n", r->meaning);
    if (!r->wrong)
        return;
    tl_sbuf_putf(out, "\n```\n%s\n```\n\n```\n%s\n```\n", r->wrong, r->right);
}

void tl_errors_page(TlSbuf *out)
{
    tl_sbuf_putf(out,
                 "# Diagnostics\n\nThe meaning of each error and warning, an example that "
                 "causes it (the first block), and one that does not (the second). `tilec error "
                 "ID` prints a section. Examples without a kernel are statements in\n\n"
                 "```\n%s ... }\n```\n\n`tilec error --markdown` writes this page from "
                 "`errors.def` and `ir/support/diags.def`.\n",
                 HEAD);
    for (int i = 0; i < NROWS; i++)
        put_row(out, &rows[i]);
}
