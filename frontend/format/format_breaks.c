/* format_breaks.c: where a line may go on in the next one. A line that is too long is broken where
 * it costs least: outside before inside, at commas before operators, at operators that bind loosely
 * before those that bind tightly, rather behind `=` than in an index, and never behind the
 * parenthesis of a head. An author's line ends stay only in brackets that were laid out by hand. */
#include "frontend/format/format_impl.h"
#include "frontend/grammar.tab.h"

enum { PER_BRACKET = 100, ASSIGNMENT = 150, INDEX = 60, BEHIND_OPENER = 60, CHOICE = 5 };

/* How dear it is to part the operands of an operator. */
static uint32_t operator_cost(int kind)
{
    switch (kind) {
    case TL_TOK_OR: return 10;
    case TL_TOK_AND: return 14;
    case '|': return 18;
    case '^': return 22;
    case '&': return 26;
    case TL_TOK_EQ:
    case TL_TOK_NE: return 30;
    case '<':
    case '>':
    case TL_TOK_LE:
    case TL_TOK_GE: return 34;
    case TL_TOK_SHL:
    case TL_TOK_SHR: return 38;
    case '+':
    case '-': return 42;
    case TL_TOK_PLUSCOLON: return 80;
    default: return 60;
    }
}

static bool is_opener(const TlFmtToken *t)
{
    return t->kind == '(' || t->kind == '[' || (t->kind == '{' && t->role != TL_FR_BLOCK);
}

static bool is_closer(const TlFmtToken *t)
{
    return t->kind == ')' || t->kind == ']' || (t->kind == '}' && t->role != TL_FR_BLOCK);
}

/* Did the author lay out what is in the brackets: do they open and close at the ends of lines? */
static bool is_laid_out(const TlFmt *f, uint32_t open)
{
    const TlFmtToken *t = f->tokens.data;
    return open != TL_FMT_NONE && is_opener(&t[open]) && t[open].role != TL_FR_HEAD &&
           t[open + 1].newline && t[t[open].match].newline && open + 1 != t[open].match;
}

/* Does `t` begin a line when the author says so, and at which cost does it otherwise? `depth`: of
 * the brackets around it in its statement. */
static void consider(TlFmt *f, uint32_t i, uint32_t depth)
{
    TlFmtToken *t = &f->tokens.data[i];
    const TlFmtToken *before = t - 1;
    bool in_index = t->inside != TL_FMT_NONE && f->tokens.data[t->inside].kind == '[';
    uint32_t cost = 1 + PER_BRACKET * depth + (in_index ? INDEX : 0);
    if (is_closer(t)) {
        t->keep = is_laid_out(f, t->match);
        return;
    }
    if (before->kind == ',' || (before->kind == TL_TOK_STRLIT && t->kind == TL_TOK_STRLIT))
        t->cost = cost;
    else if (before->kind == ';' && depth && t->kind != ';')
        t->cost = cost;
    else if (is_opener(before) && before->role != TL_FR_HEAD)
        t->cost = cost + BEHIND_OPENER;
    else if (t->role == TL_FR_CHOICE)
        t->cost = cost + CHOICE + (t->kind == ':');
    else if (tl_fmt_is_assignment(before))
        t->cost = depth ? 0 : cost + ASSIGNMENT;
    else if (before->kind == TL_TOK_GIVES)
        t->cost = cost + CHOICE;
    else if (before->role == TL_FR_BINARY)
        t->cost = cost + operator_cost(before->kind);
    t->keep = t->newline && t->cost && is_laid_out(f, t->inside);
}

void tl_fmt_breaks(TlFmt *f)
{
    TL_VEC(uint32_t) around = {0}; /* depths outside of the blocks that are open */
    uint32_t depth = 0, flat = 0, lines = 0;
    for (uint32_t i = 0; i < f->tokens.len; i++) {
        TlFmtToken *t = &f->tokens.data[i];
        if (t->kind == '}' && t->role == TL_FR_BLOCK)
            depth = around.data[--around.len];
        else if (is_closer(t) || (t->kind == '>' && t->role == TL_FR_ANGLE))
            depth -= t->kind == '>' ? 2 : 1;
        if (i && t->role != TL_FR_BLOCK)
            consider(f, i, is_closer(t) ? depth + 1 : depth);
        if (t->kind == '{' && t->role == TL_FR_BLOCK) {
            tl_vec_push(f->arena, &around, depth);
            depth = 0;
        } else if (is_opener(t) || (t->kind == '<' && t->role == TL_FR_ANGLE)) {
            depth += t->kind == '<' ? 2 : 1;
        }
        flat += t->lead + t->spaced + t->width;
        lines += t->broken;
        t->flat = flat;
        t->lines = lines;
    }
}
