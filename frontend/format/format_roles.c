/* format_roles.c: what tokens are, as far as their spelling does not say it, and the spaces between
 * them. One walk with a stack of brackets; the text is known to be a program. */
#include "frontend/format/format_impl.h"
#include "frontend/grammar.tab.h"

/* Is the token a name, or a clause word, which can be one? */
static bool is_name(const TlFmtToken *t)
{
    switch (t->kind) {
    case TL_TOK_IDENT:
    case TL_TOK_GRID:
    case TL_TOK_REQUIRE:
    case TL_TOK_ASSUME:
    case TL_TOK_TUNE:
    case TL_TOK_KEY:
    case TL_TOK_INSTANTIATE:
    case TL_TOK_WARPS:
    case TL_TOK_STAGES:
    case TL_TOK_CLUSTER:
    case TL_TOK_PERSISTENT:
    case TL_TOK_MAXREG:
    case TL_TOK_ALIAS:
    case TL_TOK_GROUP:
    case TL_TOK_WHERE:
    case TL_TOK_TYPE: return true;
    default: return false;
    }
}

bool tl_fmt_is_hint(const TlFmtToken *t)
{
    return t->kind == TL_TOK_PIPELINE || t->kind == TL_TOK_UNROLL || t->kind == TL_TOK_NOUNROLL ||
           t->kind == TL_TOK_SPECIALIZE;
}

bool tl_fmt_is_assignment(const TlFmtToken *t)
{
    switch (t->kind) {
    case '=':
    case TL_TOK_ADDA:
    case TL_TOK_SUBA:
    case TL_TOK_MULA:
    case TL_TOK_DIVA:
    case TL_TOK_MODA:
    case TL_TOK_ANDA:
    case TL_TOK_ORA:
    case TL_TOK_XORA:
    case TL_TOK_SHLA:
    case TL_TOK_SHRA: return true;
    default: return false;
    }
}

/* Can an operand end with the token? */
static bool ends_operand(const TlFmtToken *t)
{
    switch (t->kind) {
    case TL_TOK_INTLIT:
    case TL_TOK_FLOATLIT:
    case TL_TOK_STRLIT:
    case TL_TOK_TRUE:
    case TL_TOK_FALSE:
    case TL_TOK_INF:
    case TL_TOK_NAN:
    case TL_TOK_SCALAR:
    case TL_TOK_INC:
    case TL_TOK_DEC:
    case ']': return true;
    case ')': return t->role != TL_FR_CAST && t->role != TL_FR_HEAD;
    case '}': return t->role != TL_FR_BLOCK;
    case '>': return t->role == TL_FR_ANGLE;
    default: return is_name(t);
    }
}

/* Do the parentheses hold a type, which makes them a cast where an operand is wanted? */
static bool holds_type(TlFmt *f, uint32_t open, uint32_t close)
{
    TlFmtToken *t = f->tokens.data;
    uint32_t first = open + 1;
    if (t[first].kind == TL_TOK_STRUCT)
        return t[close + 1].kind == '{';
    if (close > first && t[close - 1].kind == '*') {
        t[close - 1].role = TL_FR_POINTER;
        return true;
    }
    if (t[first].kind == TL_TOK_SCALAR)
        return first + 1 == close;
    return t[first].kind == TL_TOK_TILE && t[first + 1].match + 1 == close;
}

static bool takes_head(const TlFmtToken *t)
{
    return t->kind == TL_TOK_IF || t->kind == TL_TOK_FOR || t->kind == TL_TOK_WHILE ||
           tl_fmt_is_hint(t);
}

static void parenthesis_role(TlFmt *f, uint32_t open)
{
    TlFmtToken *t = f->tokens.data;
    const TlFmtToken *before = &t[open - 1];
    uint32_t close = t[open].match;
    uint8_t role = TL_FR_PLAIN;
    if (takes_head(before))
        role = TL_FR_HEAD;
    else if (!ends_operand(before) && before->kind != TL_TOK_IN && before->kind != TL_TOK_AUTO &&
             before->kind != TL_TOK_STATIC_ASSERT && holds_type(f, open, close))
        role = TL_FR_CAST;
    t[open].role = t[close].role = role;
}

static void brace_role(TlFmt *f, uint32_t open)
{
    TlFmtToken *t = f->tokens.data;
    const TlFmtToken *before = open ? &t[open - 1] : NULL;
    bool list = before && (before->kind == TL_TOK_IN || before->kind == '=' ||
                           (before->kind == ')' && before->role == TL_FR_CAST));
    if (!list)
        t[open].role = t[t[open].match].role = TL_FR_BLOCK;
}

static void operator_role(TlFmtToken *t, const TlFmtToken *before)
{
    switch (t->kind) {
    case '-':
    case '+':
    case '!':
    case '~': t->role = ends_operand(before) ? TL_FR_BINARY : TL_FR_UNARY; break;
    case '*':
    case '/':
    case '%':
    case '&':
    case '|':
    case '^':
    case '<':
    case '>':
    case TL_TOK_PLUSCOLON:
    case TL_TOK_LE:
    case TL_TOK_GE:
    case TL_TOK_EQ:
    case TL_TOK_NE:
    case TL_TOK_AND:
    case TL_TOK_OR:
    case TL_TOK_SHL:
    case TL_TOK_SHR:
        if (t->role == TL_FR_PLAIN)
            t->role = TL_FR_BINARY;
        break;
    default:
        if (tl_fmt_is_assignment(t))
            t->role = TL_FR_BINARY;
    }
}

/* ---- brackets ---- */

typedef TL_VEC(uint32_t) Stack;

static uint32_t top(const Stack *s)
{
    return s->len ? s->data[s->len - 1] : TL_FMT_NONE;
}

static bool opens(const TlFmtToken *t, const TlFmtToken *before)
{
    return t->kind == '(' || t->kind == '[' || t->kind == '{' ||
           (t->kind == '<' && before->kind == TL_TOK_TILE);
}

static bool closes(const TlFmt *f, const TlFmtToken *t, const Stack *open)
{
    return t->kind == ')' || t->kind == ']' || t->kind == '}' ||
           (t->kind == '>' && open->len && f->tokens.data[top(open)].kind == '<');
}

static void match_brackets(TlFmt *f)
{
    Stack open = {0};
    for (uint32_t i = 0; i < f->tokens.len; i++) {
        TlFmtToken *t = &f->tokens.data[i];
        if (closes(f, t, &open)) {
            TL_ASSERT(open.len, "a bracket closes nothing");
            TlFmtToken *o = &f->tokens.data[top(&open)];
            t->match = top(&open);
            o->match = i;
            if (t->kind == '>')
                t->role = o->role = TL_FR_ANGLE;
            open.len--;
        }
        t->inside = top(&open);
        if (i && opens(t, t - 1))
            tl_vec_push(f->arena, &open, i);
    }
    TL_ASSERT(!open.len, "a bracket stays open");
}

/* A `:` belongs to the last `?` between the same brackets. */
static void choice_role(TlFmt *f, uint32_t i, Stack *questions)
{
    TlFmtToken *t = f->tokens.data;
    if (t[i].kind == '?') {
        t[i].role = TL_FR_CHOICE;
        tl_vec_push(f->arena, questions, i);
    } else if (t[i].kind == ':' && questions->len && t[top(questions)].inside == t[i].inside) {
        t[i].role = TL_FR_CHOICE;
        questions->len--;
    }
}

/* ---- pointers ---- */

/* Does a statement begin behind the token? */
static bool ends_statement(const TlFmt *f, uint32_t i)
{
    const TlFmtToken *t = &f->tokens.data[i];
    switch (t->kind) {
    case TL_TOK_ELSE: return true;
    case '{':
    case '}': return t->role == TL_FR_BLOCK;
    case ')': return t->role == TL_FR_HEAD;
    case ';': return t->inside == TL_FMT_NONE || f->tokens.data[t->inside].kind == '{';
    case '(': return t[-1].kind == TL_TOK_FOR;
    default: return tl_fmt_is_hint(t);
    }
}

/* Does the parenthesis hold the parameters of a function within a function? */
static bool is_nested_head(const TlFmt *f, uint32_t open)
{
    const TlFmtToken *t = f->tokens.data;
    if (open == TL_FMT_NONE || t[open].inside == TL_FMT_NONE) /* a kernel's clause */
        return false;
    return t[open].kind == '(' && is_name(&t[open - 1]) && t[open - 2].kind != ')' &&
           t[t[open].match + 1].kind == '{';
}

/* Is the `*` behind a name part of a type? So it is where a statement or parameter begins with the
 * name. `params`: the parenthesis of the item's parameters. */
static bool is_pointer(const TlFmt *f, uint32_t star, uint32_t params)
{
    const TlFmtToken *t = f->tokens.data;
    uint32_t i = star - 1; /* the type's first token */
    if (t[i].kind == TL_TOK_SCALAR || t[i].role == TL_FR_ANGLE)
        return true;
    if (t[i].kind != TL_TOK_IDENT)
        return false;
    if (i > 1 && t[i - 1].kind == '.')
        i -= 2;
    if (i && t[i - 1].kind == TL_TOK_STRUCT)
        i--;
    if (!i || t[i - 1].kind == TL_TOK_CONST || ends_statement(f, i - 1))
        return true;
    return (t[i].inside == params || is_nested_head(f, t[i].inside)) &&
           (i - 1 == t[i].inside || t[i - 1].kind == ',');
}

uint32_t tl_fmt_params(const TlFmt *f, uint32_t item)
{
    const TlFmtToken *t = f->tokens.data;
    for (uint32_t i = item; i + 1 < f->tokens.len; i++) {
        if (t[i].kind == '(')
            return i;
        if (t[i].kind == ';' || t[i].kind == '{' || t[i].kind == '=' ||
            t[i].kind == TL_TOK_STATIC_ASSERT)
            return TL_FMT_NONE;
        if (t[i].role == TL_FR_ANGLE)
            i = t[i].match;
    }
    return TL_FMT_NONE;
}

/* ---- spaces ---- */

/* Does a parenthesis behind the token follow without a space? */
static bool takes_parenthesis(const TlFmtToken *t)
{
    return ends_operand(t) || t->kind == TL_TOK_IN || t->kind == TL_TOK_STATIC_ASSERT ||
           t->kind == '(' || t->kind == '[' || tl_fmt_is_hint(t) || t->role == TL_FR_UNARY ||
           t->role == TL_FR_CAST;
}

static bool is_number(const TlFmtToken *t)
{
    return t->kind == TL_TOK_INTLIT || t->kind == TL_TOK_FLOATLIT;
}

static bool space_before(const TlFmtToken *before, const TlFmtToken *t)
{
    switch (t->kind) {
    case ',':
    case ')':
    case ']':
    case '[':
    case TL_TOK_INC:
    case TL_TOK_DEC: return false;
    case ';': return before->kind == '{';
    case '.': return is_number(before); /* which would take the point for its own */
    case '(': return !takes_parenthesis(before);
    case '}': return t->role == TL_FR_BLOCK;
    case '<':
    case '>': return t->role != TL_FR_ANGLE;
    default: return true;
    }
}

static bool space_after(const TlFmtToken *before, const TlFmtToken *t)
{
    switch (before->kind) {
    case '(':
    case '[':
    case '.': return false;
    case ')': return before->role != TL_FR_CAST;
    case '{': return before->role == TL_FR_BLOCK;
    case '<': return before->role != TL_FR_ANGLE;
    case '*': return before->role != TL_FR_POINTER;
    default: return before->role != TL_FR_UNARY || t->kind == before->kind; /* - -x is not --x */
    }
}

/* ---- the walk ---- */

static void token_role(TlFmt *f, uint32_t i, uint32_t params, Stack *questions)
{
    TlFmtToken *t = &f->tokens.data[i];
    if (t->kind == '(')
        parenthesis_role(f, i);
    else if (t->kind == '{')
        brace_role(f, i);
    else if (t->kind == '*' && t->role == TL_FR_PLAIN && is_pointer(f, i, params))
        t->role = TL_FR_POINTER;
    choice_role(f, i, questions);
    operator_role(t, t - 1);
    t->spaced = space_before(t - 1, t) && space_after(t - 1, t);
}

void tl_fmt_roles(TlFmt *f)
{
    Stack questions = {0};
    match_brackets(f);
    uint32_t params = tl_fmt_params(f, 0);
    for (uint32_t i = 1; i < f->tokens.len; i++) {
        const TlFmtToken *before = &f->tokens.data[i - 1];
        if (before->inside == TL_FMT_NONE && (before->kind == ';' || before->kind == '}'))
            params = tl_fmt_params(f, i);
        token_role(f, i, params, &questions);
    }
}
