/* format.c: the formatter's steps in their order, and the check that nothing was lost. */
#include "frontend/ast.h"
#include "frontend/format/format_impl.h"
#include <string.h>

/* The source's mark and line ends again. */
static const char *with_line_ends(TlFmt *f, const TlSbuf *lines, size_t *out_size)
{
    TlSbuf out;
    tl_sbuf_init(&out, f->arena);
    tl_sbuf_puts(&out, f->bom ? "\xEF\xBB\xBF" : "");
    for (const char *s = lines->text, *end = s + lines->len; s < end;) {
        const char *stop = f->crlf ? memchr(s, '\n', (size_t)(end - s)) : NULL;
        tl_sbuf_put(&out, s, (size_t)((stop ? stop : end) - s));
        tl_sbuf_puts(&out, stop ? "\r\n" : "");
        s = stop ? stop + 1 : end;
    }
    *out_size = out.len;
    return out.text;
}

/* The next character of a comment, but for blanks at the ends and beginnings of its lines. */
static int next_char(const char **s, const char *end, bool *line_begins)
{
    for (;;) {
        const char *p = *s;
        while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
            p++;
        if (p == end || *p == '\n' || *line_begins)
            *s = p;
        if (*s == end)
            return -1;
        *line_begins = **s == '\n';
        return (unsigned char)*(*s)++;
    }
}

static bool same_comment(const TlFmt *a, const TlFmt *b, uint32_t i)
{
    const TlFmtComment *x = &a->comments.data[i], *y = &b->comments.data[i];
    const char *s = a->text + x->at, *t = b->text + y->at;
    bool s_begins = false, t_begins = false;
    for (;;) {
        int c = next_char(&s, a->text + x->at + x->len, &s_begins);
        if (c != next_char(&t, b->text + y->at + y->len, &t_begins))
            return false;
        if (c < 0)
            return true;
    }
}

static bool same_token(const TlFmt *a, const TlFmt *b, uint32_t i)
{
    const TlFmtToken *x = &a->tokens.data[i], *y = &b->tokens.data[i];
    return x->kind == y->kind && x->comments == y->comments && x->len == y->len &&
           memcmp(a->text + x->at, b->text + y->at, x->len) == 0;
}

static void check_same(const TlFmt *a, const TlFmt *b)
{
    uint32_t i = 0;
    TL_ASSERT(a->tokens.len == b->tokens.len && a->comments.len == b->comments.len,
              "the formatter made %u tokens and %u comments of %u and %u", b->tokens.len,
              b->comments.len, a->tokens.len, a->comments.len);
    while (i < a->tokens.len && same_token(a, b, i))
        i++;
    TL_ASSERT(i == a->tokens.len, "the formatter changed '%.*s' at byte %u",
              (int)a->tokens.data[i].len, a->text + a->tokens.data[i].at, a->tokens.data[i].at);
    for (i = 0; i < a->comments.len; i++)
        TL_ASSERT(same_comment(a, b, i), "the formatter changed the comment at byte %u",
                  a->comments.data[i].at);
}

static const char *format_once(TlCtx *ctx, uint32_t source, uint32_t *out_made, size_t *out_size)
{
    TlFmt f = tl_fmt_scan(ctx, source);
    tl_fmt_roles(&f);
    tl_fmt_breaks(&f);
    tl_fmt_shape(&f);
    TlSbuf lines = tl_fmt_lines(&f);
    const char *text = with_line_ends(&f, &lines, out_size);
    *out_made = tl_diags_source(&ctx->diags, "<formatted>", text, *out_size);
    TlFmt again = tl_fmt_scan(ctx, *out_made);
    check_same(&f, &again);
    return text;
}

/* What formatting does not change any more. Comments within brackets can move the places where
 * lines may break, so that the best breaks are found from what the first time left. */
const char *tl_format_source(TlCtx *ctx, uint32_t source, size_t *out_size)
{
    enum { MOST_TIMES = 4 };
    uint32_t errors = ctx->diags.errors, made;
    tl_parse(ctx, source);
    if (ctx->diags.errors > errors)
        return NULL;
    const char *text = format_once(ctx, source, &made, out_size), *before = NULL;
    for (int i = 1; i < MOST_TIMES && (!before || strcmp(before, text) != 0); i++) {
        before = text;
        text = format_once(ctx, made, &made, out_size);
    }
    return text;
}
