/* format_lines.c: lines that are too long are broken, and the text is written.
 *
 * A logical line is a statement, or the part of one that shape() gave a line. It is walked once
 * from left to right. Where a token passes the limit, the line is broken at the cheapest place
 * since its last line end, the last one of several, and the walk goes back to there; the tokens
 * before stay as they are. So the work is linear, and a text that was formatted comes out as it is:
 * the same tokens are broken in the same way.
 *
 * In brackets, what follows an element of several lines begins a line, too.
 *
 * What goes on in the next line stands below the first token in the innermost bracket; if that
 * token has a line of its own, one level deeper than the line with the bracket. Outside of brackets
 * it stands below the first token behind `=`, or one level deeper than the statement. */
#include "frontend/format/format_impl.h"
#include "frontend/grammar.tab.h"
#include <string.h>

/* A comment behind a line's end; comments that stood below each other still do. */
typedef struct Mark {
    size_t at;       /* in the output */
    uint32_t width;  /* of the line's text before it */
    uint32_t column; /* in the source */
    uint32_t line;   /* of the output */
} Mark;

typedef struct Writer {
    TlFmt *f;
    TlSbuf out;
    TL_VEC(Mark) marks;
    uint32_t line;
    uint32_t start, base; /* of the logical line: first token, columns of its indentation */
    uint32_t equals;      /* its first assignment that the walk passed; or NONE */
    uint32_t row_indent;  /* columns of the indentation of the line that is walked */
    uint32_t *aligns, *row_indents; /* of brackets, by token: column behind it; its line's */
} Writer;

static TlFmtToken *at(const Writer *w, uint32_t i)
{
    TL_ASSERT(i < w->f->tokens.len, "token %u of %u", i, w->f->tokens.len);
    return &w->f->tokens.data[i];
}

/* ---- columns ---- */

/* In brackets that were opened in this logical line? */
static bool in_brackets(const Writer *w, uint32_t open)
{
    return open != TL_FMT_NONE && open >= w->start && at(w, open)->role != TL_FR_BLOCK;
}

static uint32_t behind_bracket(const Writer *w, uint32_t open)
{
    return at(w, open + 1)->wrap ? w->row_indents[open] + TL_FORMAT_INDENT : w->aligns[open];
}

static uint32_t behind_equals(const Writer *w, uint32_t i)
{
    const TlFmtToken *t = at(w, i);
    uint32_t e = w->equals;
    if (e == TL_FMT_NONE || e + 1 >= i || at(w, e + 1)->wrap || t[-1].kind == ',')
        return w->base + TL_FORMAT_INDENT;
    return at(w, e + 1)->column - at(w, e + 1)->width;
}

/* Where a line starts that begins with the token, or, if `comment`, with a comment before it. */
static uint32_t indentation(const Writer *w, uint32_t i, bool comment)
{
    const TlFmtToken *t = at(w, i);
    bool closer = t->match != TL_FMT_NONE && t->match < i;
    if (t->line)
        return (comment ? t->comment_indent : t->indent) * TL_FORMAT_INDENT;
    if (closer && in_brackets(w, t->match)) {
        bool hangs = at(w, t->match + 1)->wrap && t->match + 1 != i;
        return hangs && !comment ? w->row_indents[t->match] : behind_bracket(w, t->match);
    }
    return in_brackets(w, t->inside) ? behind_bracket(w, t->inside) : behind_equals(w, i);
}

/* ---- breaking ---- */

static void pass(Writer *w, uint32_t i)
{
    TlFmtToken *t = at(w, i);
    if (t->wrap)
        w->row_indent = indentation(w, i, false);
    if (t->wrap)
        t->column = w->row_indent + t->lead + t->width;
    else
        t->column = at(w, i - 1)->column + t->spaced + t->lead + t->width;
    w->aligns[i] = t->column;
    w->row_indents[i] = w->row_indent;
    if (w->equals == TL_FMT_NONE && !in_brackets(w, t->inside) &&
        (tl_fmt_is_assignment(t) || t->kind == TL_TOK_RETURN))
        w->equals = i;
}

/* Would a line that begins with the token begin further left than the token stands now? */
static bool helps(const Writer *w, uint32_t i)
{
    const TlFmtToken *t = at(w, i);
    TlFmtToken *first = at(w, i);
    bool wrapped = first->wrap;
    first->wrap = true; /* a bracket before it would hang */
    uint32_t to = indentation(w, i, false);
    first->wrap = wrapped;
    return to + t->width < t->column;
}

/* The cheapest token behind `row` and up to i to begin a line with; or NONE. */
static uint32_t best_break(const Writer *w, uint32_t row, uint32_t i)
{
    uint32_t best = TL_FMT_NONE;
    for (uint32_t k = row + 1; k <= i; k++) {
        uint32_t cost = at(w, k)->cost;
        if (cost && (best == TL_FMT_NONE || cost <= at(w, best)->cost) && helps(w, k))
            best = k;
    }
    return best;
}

/* Does the token begin what follows, in brackets, behind a `,` and something of several lines?
 * `row`: the line's first token. */
static bool follows_tall(const Writer *w, uint32_t row, uint32_t i)
{
    uint32_t open = at(w, i)->inside, first = i - 1;
    if (at(w, i - 1)->kind != ',' || !at(w, i)->cost || !in_brackets(w, open))
        return false;
    while (first - 1 > open && at(w, first - 1)->kind != ',') {
        first--;
        if (at(w, first)->match < first)
            first = at(w, first)->match;
    }
    return row > first;
}

/* Walks the logical line from its first token up to `end`, not included. */
static void break_line(Writer *w, uint32_t end)
{
    uint32_t row = w->start, looked = row;
    TlFmtToken *first = at(w, w->start);
    first->column = w->base + first->lead + first->width;
    w->aligns[w->start] = first->column;
    w->row_indents[w->start] = w->row_indent = w->base;
    w->equals = first->kind == TL_TOK_RETURN ? w->start : TL_FMT_NONE;
    for (uint32_t i = w->start + 1; i < end; i++) {
        at(w, i)->wrap |= follows_tall(w, row, i);
        pass(w, i);
        if (at(w, i)->wrap)
            row = looked = i;
        if (at(w, i)->column <= TL_FORMAT_WIDTH)
            continue;
        uint32_t best = best_break(w, looked, i);
        looked = i; /* nothing before i can begin a line */
        if (best == TL_FMT_NONE)
            continue;
        at(w, best)->wrap = true;
        if (w->equals != TL_FMT_NONE && w->equals >= best)
            w->equals = TL_FMT_NONE;
        w->row_indent = w->row_indents[best - 1];
        i = best - 1;
    }
}

/* ---- writing ---- */

static void put_blanks(TlSbuf *out, uint32_t n)
{
    static const char blanks[] = "                                ";
    for (; n; n -= n < sizeof blanks - 1 ? n : sizeof blanks - 1)
        tl_sbuf_put(out, blanks, n < sizeof blanks - 1 ? n : sizeof blanks - 1);
}

static void new_line(Writer *w, bool blank, uint32_t indent)
{
    if (w->out.len) {
        tl_sbuf_puts(&w->out, blank ? "\n\n" : "\n");
        w->line += blank ? 2 : 1;
    }
    put_blanks(&w->out, indent);
}

static uint32_t source_column(const TlFmt *f, uint32_t i)
{
    uint32_t begin = i;
    while (begin && f->text[begin - 1] != '\n')
        begin--;
    return tl_fmt_width(f->text + begin, i - begin);
}

static uint32_t output_column(const TlSbuf *out)
{
    size_t begin = out->len;
    while (begin && out->text[begin - 1] != '\n')
        begin--;
    return tl_fmt_width(out->text + begin, out->len - begin);
}

/* A comment of several lines moves as a whole. */
static void put_comment(Writer *w, const TlFmtComment *c)
{
    const char *s = w->f->text + c->at, *end = s + c->len;
    uint32_t from = source_column(w->f, c->at), to = output_column(&w->out);
    for (;;) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        const char *last = stop ? stop : end;
        while (last > s && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r'))
            last--;
        tl_sbuf_put(&w->out, s, (size_t)(last - s));
        if (!stop)
            return;
        uint32_t n = 0;
        for (s = stop + 1; s < end && *s == ' '; s++)
            n++;
        tl_sbuf_puts(&w->out, "\n");
        w->line++;
        if (s < end && *s != '\n' && *s != '\r')
            put_blanks(&w->out, n + to > from ? n + to - from : 0);
    }
}

static void mark_trailing(Writer *w, const TlFmtComment *c)
{
    Mark m = {w->out.len, output_column(&w->out), source_column(w->f, c->at), w->line};
    tl_vec_push(w->f->arena, &w->marks, m);
    tl_sbuf_puts(&w->out, " ");
}

static bool begins_block(const Writer *w, uint32_t i)
{
    return i && at(w, i - 1)->kind == '{' && at(w, i - 1)->role == TL_FR_BLOCK;
}

static bool behind_opener(const Writer *w, uint32_t i)
{
    const TlFmtToken *before = i ? at(w, i - 1) : NULL;
    return before && (before->kind == '(' || before->kind == '[' ||
                      (before->kind == '{' && before->role != TL_FR_BLOCK));
}

/* The comments before the token, and what separates them from it, unless a line does. */
static void put_comments(Writer *w, uint32_t i)
{
    const TlFmtToken *t = at(w, i);
    uint32_t end = tl_fmt_comments_end(w->f, i);
    /* comments between two statements of one line belong to the second */
    bool with_token = (t->line || t->wrap) && !t->broken && t->kind != TL_TOK_END;
    bool leads = false;
    for (uint32_t k = t->comments; k < end; k++) {
        const TlFmtComment *c = &w->f->comments.data[k];
        bool first = k == t->comments;
        bool begins = (c->newline && (t->line || t->wrap)) || (first && with_token) || !w->out.len;
        leads |= begins;
        if (begins)
            new_line(w, c->blank && !(first && begins_block(w, i)), indentation(w, i, true));
        else if (w->f->text[c->at + 1] == '/')
            mark_trailing(w, c);
        else if (!first || !behind_opener(w, i))
            tl_sbuf_puts(&w->out, " ");
        put_comment(w, c);
    }
    bool closes = t->match != TL_FMT_NONE && t->match < i;
    if (!t->newline && t->kind != TL_TOK_END &&
        (t->spaced || leads || (behind_opener(w, i) && !closes)))
        tl_sbuf_puts(&w->out, " ");
}

static void put_token(Writer *w, uint32_t i)
{
    const TlFmtToken *t = at(w, i);
    bool commented = tl_fmt_comments_end(w->f, i) > t->comments;
    bool ends = commented ? t->newline : t->line || t->wrap;
    if (commented)
        put_comments(w, i);
    else if (!ends && t->spaced)
        tl_sbuf_puts(&w->out, " ");
    bool apart = t->apart || t->keep || (t->wrap && commented);
    if (ends && t->kind != TL_TOK_END)
        new_line(w, t->blank && apart && (commented || !begins_block(w, i)),
                 indentation(w, i, false));
    tl_sbuf_put(&w->out, w->f->text + t->at, t->len);
}

/* ---- comments behind lines ---- */

/* The marks from i on that stood below each other and are in consecutive lines. */
static uint32_t group_end(const Writer *w, uint32_t i)
{
    uint32_t k = i + 1;
    while (k < w->marks.len && w->marks.data[k].column == w->marks.data[i].column &&
           w->marks.data[k].line == w->marks.data[k - 1].line + 1)
        k++;
    return k;
}

static TlSbuf align_comments(Writer *w)
{
    TlSbuf out;
    size_t from = 0;
    tl_sbuf_init(&out, w->f->arena);
    for (uint32_t i = 0; i < w->marks.len;) {
        uint32_t end = group_end(w, i), width = 0;
        for (uint32_t k = i; k < end; k++)
            width = w->marks.data[k].width > width ? w->marks.data[k].width : width;
        for (; i < end; i++) {
            const Mark *m = &w->marks.data[i];
            tl_sbuf_put(&out, w->out.text + from, m->at - from);
            put_blanks(&out, width - m->width);
            from = m->at;
        }
    }
    tl_sbuf_put(&out, w->out.text + from, w->out.len - from);
    return out;
}

/* ---- the walk ---- */

/* Do comments before the token end a line? Not if they lead a line that it is in. */
static bool comments_end_line(const TlFmt *f, uint32_t i)
{
    bool ends = f->tokens.data[i].newline;
    for (uint32_t k = f->tokens.data[i].comments + 1; k < tl_fmt_comments_end(f, i); k++)
        ends |= f->comments.data[k].newline;
    return ends && tl_fmt_comments_end(f, i) > f->tokens.data[i].comments;
}

/* Comments end lines, and so does the author in brackets that were laid out. */
static void keep_line_ends(TlFmt *f)
{
    for (uint32_t i = 1; i < f->tokens.len; i++) {
        TlFmtToken *t = &f->tokens.data[i];
        if (!t->line)
            t->wrap = t->keep || comments_end_line(f, i);
    }
}

TlSbuf tl_fmt_lines(TlFmt *f)
{
    Writer w = {.f = f};
    uint32_t n = f->tokens.len;
    w.aligns = TL_NEW_ARRAY(f->arena, uint32_t, n);
    w.row_indents = TL_NEW_ARRAY(f->arena, uint32_t, n);
    tl_sbuf_init(&w.out, f->arena);
    keep_line_ends(f);
    for (uint32_t i = 0; i < n;) {
        uint32_t end = i + 1;
        while (end < n && !at(&w, end)->line)
            end++;
        w.start = i;
        w.base = at(&w, i)->indent * TL_FORMAT_INDENT;
        break_line(&w, end);
        for (; i < end; i++)
            put_token(&w, i);
    }
    if (w.out.len)
        tl_sbuf_puts(&w.out, "\n");
    return align_comments(&w);
}
