/* format_shape.c: statements, items and the parts of their heads get lines.
 *
 * A function, a compound statement or a struct that the author wrote in one line stays there if it
 * fits. Otherwise
 *     - the brace of an item's body has a line of its own, other braces follow their head, those of
 *       functions within functions, too;
 *     - clauses of a kernel have a line each, unless the head is one line;
 *     - a body without braces goes to the next line, unless it and its head are one line. */
#include "frontend/format/format_impl.h"
#include "frontend/grammar.tab.h"

static TlFmtToken *at(TlFmt *f, uint32_t i)
{
    TL_ASSERT(i < f->tokens.len, "token %u of %u", i, f->tokens.len);
    return &f->tokens.data[i];
}

/* ---- one line ---- */

/* Did the author write the tokens from i up to end, not included, in one line, and does it fit? */
static bool in_one_line(TlFmt *f, uint32_t i, uint32_t end, uint32_t indent)
{
    const TlFmtToken *first = at(f, i), *last = at(f, end - 1);
    uint32_t width = first->lead + first->width + (last->flat - first->flat);
    return last->lines == first->lines && indent * TL_FORMAT_INDENT + width <= TL_FORMAT_WIDTH;
}

static uint32_t stay_in_line(TlFmt *f, uint32_t i, uint32_t end)
{
    for (i++; i < end; i++)
        at(f, i)->cost = 0;
    return end;
}

static TlFmtToken *line(TlFmt *f, uint32_t i, uint32_t indent)
{
    TlFmtToken *t = at(f, i);
    t->line = true;
    t->indent = t->comment_indent = (uint16_t)indent;
    return t;
}

/* A line in a list of statements or items, which empty lines may divide. A `;` too many stays where
 * it is. */
static void list_line(TlFmt *f, uint32_t i, uint32_t indent)
{
    bool extra = i && at(f, i)->kind == ';' && at(f, i - 1)->kind != '{';
    if (!extra || tl_fmt_comments_end(f, i) > at(f, i)->comments)
        line(f, i, indent)->apart = true;
}

static void closing_line(TlFmt *f, uint32_t i, uint32_t indent)
{
    line(f, i, indent)->comment_indent = (uint16_t)(indent + 1);
}

/* Does a comment before the token end a line? */
static bool comment_breaks(TlFmt *f, uint32_t i)
{
    return at(f, i)->broken && tl_fmt_comments_end(f, i) > at(f, i)->comments;
}

/* ---- where a statement ends ---- */

/* Behind the `;` that ends what begins at i. */
static uint32_t simple_end(TlFmt *f, uint32_t i)
{
    for (; at(f, i)->kind != ';'; i++)
        if (at(f, i)->match != TL_FMT_NONE)
            i = at(f, i)->match;
    return i + 1;
}

/* The brace of the function that is defined at i; NONE: another statement begins there. */
static uint32_t nested_body(TlFmt *f, uint32_t i)
{
    for (; at(f, i)->kind != ';'; i++) {
        if (at(f, i)->kind == '{' && at(f, i)->role == TL_FR_BLOCK)
            return i;
        if (at(f, i)->match != TL_FMT_NONE)
            i = at(f, i)->match;
    }
    return TL_FMT_NONE;
}

/* The body of the loop whose `for` or `while` is at i. */
static uint32_t loop_body(TlFmt *f, uint32_t i)
{
    i = at(f, i + 1)->match + 1;
    while (tl_fmt_is_hint(at(f, i))) {
        i++;
        if (at(f, i)->kind == '(' && at(f, i)->role == TL_FR_HEAD)
            i = at(f, i)->match + 1;
    }
    return i;
}

static bool is_static(TlFmt *f, uint32_t i)
{
    return at(f, i)->kind == TL_TOK_STATIC &&
           (at(f, i + 1)->kind == TL_TOK_IF || at(f, i + 1)->kind == TL_TOK_FOR);
}

static uint32_t statement_end(TlFmt *f, uint32_t i)
{
    for (;;) {
        i += is_static(f, i);
        switch (at(f, i)->kind) {
        case '{': return at(f, i)->match + 1;
        case TL_TOK_FOR:
        case TL_TOK_WHILE: i = loop_body(f, i); break;
        case TL_TOK_IF:
            i = statement_end(f, at(f, i + 1)->match + 1);
            if (at(f, i)->kind != TL_TOK_ELSE)
                return i;
            i++;
            break;
        default: {
            uint32_t body = nested_body(f, i);
            return body == TL_FMT_NONE ? simple_end(f, i) : at(f, body)->match + 1;
        }
        }
    }
}

/* ---- statements ---- */

static uint32_t place(TlFmt *f, uint32_t i, uint32_t indent);

static void place_block(TlFmt *f, uint32_t open, uint32_t indent)
{
    uint32_t i = open + 1, close = at(f, open)->match;
    if (comment_breaks(f, open))
        line(f, open, indent);
    while (i < close) {
        list_line(f, i, indent + 1);
        i = place(f, i, indent + 1);
    }
    closing_line(f, close, indent);
}

/* A statement's body, whose head begins at `head`. */
static uint32_t place_body(TlFmt *f, uint32_t head, uint32_t body, uint32_t indent)
{
    uint32_t end = statement_end(f, body);
    if (at(f, body)->kind == '{') {
        place_block(f, body, indent);
        return end;
    }
    if (in_one_line(f, head, end, indent))
        return stay_in_line(f, head, end);
    line(f, body, indent + 1);
    return place(f, body, indent + 1);
}

static uint32_t place_if(TlFmt *f, uint32_t head, uint32_t indent)
{
    for (uint32_t i = head;;) {
        i += is_static(f, i);
        bool condition = at(f, i)->kind == TL_TOK_IF;
        i = place_body(f, head, condition ? at(f, i + 1)->match + 1 : i, indent);
        if (!condition || at(f, i)->kind != TL_TOK_ELSE)
            return i;
        const TlFmtToken *before = at(f, i - 1);
        bool behind_brace = before->kind == '}' && before->line && before->indent == indent;
        if (!behind_brace || comment_breaks(f, i))
            line(f, i, indent);
        head = i++;
    }
}

static uint32_t place(TlFmt *f, uint32_t i, uint32_t indent)
{
    uint32_t what = i + is_static(f, i), end;
    int kind = at(f, what)->kind;
    bool loop = kind == TL_TOK_FOR || kind == TL_TOK_WHILE;
    bool compound = loop || kind == TL_TOK_IF || kind == '{';
    uint32_t body = compound ? TL_FMT_NONE : nested_body(f, i);
    if (!compound && body == TL_FMT_NONE)
        return simple_end(f, i);
    end = statement_end(f, i);
    if (in_one_line(f, i, end, indent))
        return stay_in_line(f, i, end);
    if (loop)
        return place_body(f, i, loop_body(f, what), indent);
    if (kind == TL_TOK_IF)
        return place_if(f, i, indent);
    place_block(f, compound ? i : body, indent);
    return end;
}

/* ---- items ---- */

static uint32_t place_struct(TlFmt *f, uint32_t i)
{
    uint32_t open = i + 2, close = at(f, open)->match;
    uint32_t end = close + 1 + (at(f, close + 1)->kind == ';');
    if (in_one_line(f, i, end, 0))
        return stay_in_line(f, i, end);
    if (comment_breaks(f, open))
        line(f, open, 0);
    for (i = open + 1; i < close; i = simple_end(f, i))
        list_line(f, i, 1);
    closing_line(f, close, 0);
    return end;
}

/* Behind the parameter at i; `*constant`: is it one of compile time? `const` alone does not say so:
 * arrays and pointers have it, too. */
static uint32_t parameter_end(TlFmt *f, uint32_t i, bool *constant)
{
    bool defaults = false;
    *constant = at(f, i)->kind == TL_TOK_CONST;
    for (; at(f, i)->kind != ',' && at(f, i)->kind != ')'; i++) {
        defaults |= at(f, i)->kind == '=';
        if (!defaults && (at(f, i)->kind == '[' || at(f, i)->role == TL_FR_POINTER))
            *constant = false;
        if (at(f, i)->match != TL_FMT_NONE)
            i = at(f, i)->match;
    }
    return i;
}

/* In a head that is too long for a line, the constants behind the other parameters begin one. */
static void place_constants(TlFmt *f, uint32_t item, uint32_t open)
{
    uint32_t close = at(f, open)->match, first = open + 1;
    bool constant = false, before = true;
    if (at(f, close)->flat - at(f, item)->flat + at(f, item)->width <= TL_FORMAT_WIDTH)
        return;
    for (uint32_t i = open + 1, end; i < close; i = end + 1, before = constant) {
        end = parameter_end(f, i, &constant);
        first = constant && !before ? i : first;
    }
    at(f, first)->keep |= constant && first > open + 1;
}

static uint32_t place_function(TlFmt *f, uint32_t i)
{
    uint32_t open = tl_fmt_params(f, i), clauses = at(f, open)->match + 1, body;
    for (body = clauses; at(f, body)->kind != '{'; body++)
        if (at(f, body)->match != TL_FMT_NONE)
            body = at(f, body)->match;
    uint32_t end = at(f, body)->match + 1;
    if (in_one_line(f, i, end, 0))
        return stay_in_line(f, i, end);
    place_constants(f, i, open);
    bool apart = !in_one_line(f, i, body, 0);
    for (uint32_t c = clauses; apart && c < body; c = at(f, c + 1)->match + 1)
        line(f, c, 1);
    place_block(f, body, 0);
    line(f, body, 0)->comment_indent = apart && clauses < body;
    return end;
}

static uint32_t place_item(TlFmt *f, uint32_t i)
{
    if (at(f, i)->kind == TL_TOK_STRUCT && at(f, i + 2)->kind == '{')
        return place_struct(f, i);
    return tl_fmt_params(f, i) == TL_FMT_NONE ? simple_end(f, i) : place_function(f, i);
}

void tl_fmt_shape(TlFmt *f)
{
    uint32_t end = f->tokens.len - 1;
    for (uint32_t i = 0; i < end; i = place_item(f, i))
        list_line(f, i, 0);
    list_line(f, end, 0);
}
