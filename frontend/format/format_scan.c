/* format_scan.c: the source's tokens and comments, and the line ends between them. */
#include "frontend/format/format_impl.h"
#include "frontend/grammar.tab.h"
#include <string.h>

uint32_t tl_fmt_width(const char *text, size_t len)
{
    uint32_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

/* Without the blanks at its end. */
static size_t trimmed(const char *text, size_t len)
{
    while (len && strchr(" \t\r\f\v", text[len - 1]) && text[len - 1])
        len--;
    return len;
}

/* How many lines end in white space. */
static uint32_t line_ends(const char *text, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (; from < to; from++)
        n += text[from] == '\n';
    return n;
}

/* The comments that stand between `from` and the token; returns where the last one ends. */
static uint32_t read_comments(TlFmt *f, const TlComments *comments, uint32_t from, TlFmtToken *t)
{
    bool tall = false;
    for (; f->comments.len < comments->len; tall = f->comments.data[f->comments.len - 1].tall) {
        const TlComment *c = &comments->data[f->comments.len];
        uint32_t at = (uint32_t)((const char *)c->begin - f->text);
        uint32_t len = (uint32_t)trimmed(f->text + at, (size_t)(c->end - c->begin));
        uint32_t ends = line_ends(f->text, from, at);
        TlFmtComment kept = {at, len, ends || tall, ends > 1, memchr(f->text + at, '\n', len)};
        t->lead = kept.newline ? 0 : t->lead;
        t->lead += tl_fmt_width(f->text + at, len) + 1;
        t->broken |= kept.newline || kept.tall;
        tl_vec_push(f->arena, &f->comments, kept);
        from = (uint32_t)((const char *)c->end - f->text);
    }
    t->newline = tall;
    return from;
}

static void read_tokens(TlFmt *f, TlParser *p)
{
    uint32_t end = (uint32_t)((const char *)p->cursor.at - f->text);
    for (int kind = 1; kind != TL_TOK_END;) {
        union TL_YY_STYPE value;
        TlSpan span;
        TlFmtToken t = {.comments = f->comments.len, .match = TL_FMT_NONE, .inside = TL_FMT_NONE};
        t.kind = (short)(kind = tl_yy_lex(&value, &span, p));
        t.at = (uint32_t)((const char *)p->token_start.at - f->text);
        t.len = (uint32_t)((const char *)p->cursor.at - f->text) - t.at;
        t.width = tl_fmt_width(f->text + t.at, t.len);
        end = read_comments(f, p->comments, end, &t);
        uint32_t ends = line_ends(f->text, end, t.at);
        t.newline |= ends > 0;
        t.blank = ends > 1;
        t.broken |= t.newline;
        if (t.newline)
            t.lead = 0;
        tl_vec_push(f->arena, &f->tokens, t);
        end = t.at + t.len;
    }
}

TlFmt tl_fmt_scan(TlCtx *ctx, uint32_t source)
{
    const TlSource *s = &ctx->diags.sources.data[source];
    TlComments comments = {0};
    TlParser p = tl_parser_at_start(ctx, source);
    TlFmt f = {.arena = &ctx->perm, .text = s->text, .size = s->size};
    const char *end = memchr(s->text, '\n', s->size);
    p.comments = &comments;
    f.bom = (const char *)p.cursor.at != s->text;
    f.crlf = end && end > s->text && end[-1] == '\r';
    read_tokens(&f, &p);
    return f;
}
