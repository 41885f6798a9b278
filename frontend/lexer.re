/* The lexer: bytes to tokens, by re2c. It also keeps what must be known about the text around a
 * token: open brackets (for the nesting limit and for recovery), documentation lines, and where
 * the token before ended.
 *
 * The source ends with a NUL byte at p->limit, so the scanner needs no bounds checks: a NUL
 * before the limit is an error, at the limit the end. Comments, strings and runs of bad bytes
 * are walked by hand, since they may hold NULs.
 *
 * Recovery from a syntax error (see parse.h). The statement that holds the error lies in the
 * innermost open block; `recover_height` is the number of brackets around it. Its end is the
 * first of
 *     ';' at that height, the '}' that brings us back to that height (and no `else` follows), the
 *     '}' of the block
 *     itself (not part of it), a word that only starts an item, at height 0 a word in the first
 *     column that can. */
#include "frontend/advice.h"
#include "frontend/parse.h"
#include "frontend/grammar.tab.h"
#include <string.h>

typedef union TL_YY_STYPE Value;

TlLoc tl_loc_at(const TlParser *p, const TlCursor *start, const unsigned char *at, size_t len)
{
    uint32_t column = (uint32_t)(at - start->line_start) + 1;
    return (TlLoc){p->unit->source, start->line, column, (uint32_t)len};
}

static TlDiags *diags(const TlParser *p)
{
    return &p->ctx->diags;
}

/* ---- white space that has text in it ---- */

static void new_line(TlParser *p, const unsigned char *line_start)
{
    p->cursor.line++;
    p->cursor.line_start = line_start;
}

/* To the end of the line, or of the text. */
static void skip_line(TlParser *p)
{
    const unsigned char *end = memchr(p->cursor.at, '\n', (size_t)(p->limit - p->cursor.at));
    p->cursor.at = end ? end : p->limit;
}

/* A line `/// text`: kept for the item below. `////...` is a plain comment. */
static void doc_line(TlParser *p)
{
    const unsigned char *begin = p->cursor.at, *end, *nul;
    skip_line(p);
    if (p->brackets.len || *begin == '/') return;
    nul = memchr(begin, 0, (size_t)(p->cursor.at - begin)); /* texts are C strings */
    end = nul ? nul : p->cursor.at;
    while (end > begin && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) end--;
    if (begin < end && *begin == ' ') begin++;
    if (!p->doc.arena) tl_sbuf_init(&p->doc, &p->ctx->perm);
    if (p->doc.len) tl_sbuf_puts(&p->doc, "\n");
    TL_ASSERT(begin <= end && end <= p->limit, "a documentation line that ends before it begins");
    tl_sbuf_put(&p->doc, (const char *)begin, (size_t)(end - begin));
}

/* The comment between the token's start and the cursor, for a reader that wants comments, too. */
static void keep_comment(TlParser *p)
{
    TlComment c = {p->token_start.at, p->cursor.at};
    if (p->comments) tl_vec_push(&p->ctx->perm, p->comments, c);
}

/* After the opening of a comment; false when it is never closed. */
static bool skip_comment(TlParser *p)
{
    const unsigned char *s = p->cursor.at;
    for (; s < p->limit; s++) {
        if (*s == '\n') new_line(p, s + 1);
        if (s[0] == '*' && s[1] == '/') {
            p->cursor.at = s + 2;
            return true;
        }
    }
    tl_diag(diags(p), tl_loc_at(p, &p->token_start, p->token_start.at, 2), TL_E0005);
    p->cursor.at = p->limit;
    p->stop = p->broken = true;
    return false;
}

/* ---- tokens of more than a shape ---- */

static int invalid(TlParser *p, TlDiagId id, const unsigned char *token, const char *shown,
                   const char *label)
{
    TlLoc loc = tl_loc_at(p, &p->token_start, token, (size_t)(p->cursor.at - token));
    TlDiag *d = tl_diag(diags(p), loc, id, shown);
    d->label = label;
    p->broken = true;
    return TL_TOK_INVALID;
}

static int bad_character(TlParser *p, const unsigned char *token)
{
    char *shown = tl_strndup(&p->ctx->perm, (const char *)token, (size_t)(p->cursor.at - token));
    const char *label = NULL;
    if (token[0] < ' ' || token[0] == 0x7F) shown = tl_format(&p->ctx->perm, "\\x%02X", token[0]);
    const unsigned char *end = p->cursor.at;
    while (end < p->limit && *end >= 'a' && *end <= 'z') end++;
    bool shown_yet = diags(p)->errors < TL_DIAG_MAX; /* later ones are not: millions may come */
    if (shown_yet) label = tl_advice((const char *)token, (size_t)(end - token), 'c');
    if (shown_yet && !label && *token == '@' && token == p->cursor.line_start && end > token + 1)
        label = tl_advice("@ line", 6, 'c'); /* a decorator */
    if (shown_yet && !label) label = tl_advice((const char *)token, 1, 'c');
    return invalid(p, TL_E0002, token, shown, label);
}

static int number(TlParser *p, Value *value, const unsigned char *token)
{
    TlNumber n = tl_lex_number(p, token, p->cursor.at);
    if (n.is_float)
        value->number = n.number;
    else
        value->integer = n.integer;
    return n.is_float ? TL_TOK_FLOATLIT : TL_TOK_INTLIT;
}

/* After the opening quote. */
static int string(TlParser *p, Value *value, const unsigned char *token)
{
    const unsigned char *s = p->cursor.at;
    while (s < p->limit && *s != '"' && *s != '\n')
        s += s[0] == '\\' && s[1] != '\n' && s + 1 < p->limit ? 2 : 1;
    p->cursor.at = s;
    if (s >= p->limit || *s != '"') {
        /* what closes the line was hardly meant to be in the string */
        while (s > token + 1 && strchr(" \t\r);]", s[-1])) s--;
        p->cursor.at = s;
        tl_diag(diags(p), tl_loc_at(p, &p->token_start, token, 1), TL_E0006);
        value->string = "";
        return TL_TOK_STRLIT;
    }
    p->cursor.at++;
    value->string = tl_lex_string(p, token, p->cursor.at);
    return TL_TOK_STRLIT;
}

static int word(TlParser *p, Value *value, const unsigned char *token, int contextual)
{
    size_t len = (size_t)(p->cursor.at - token);
    if (!contextual && tl_dtype_parse((const char *)token, len, &value->dtype))
        return TL_TOK_SCALAR;
    TL_ASSERT(len > 0, "a word without letters");
    value->name = tl_intern(&p->ctx->strings, (const char *)token, len);
    return contextual ? contextual : TL_TOK_IDENT;
}

/* The next token; position and brackets are next_token's. */
static int scan(TlParser *p, Value *value)
{
    const unsigned char *token, *YYMARKER;
again:
    if (p->stop) return TL_TOK_END;
    p->token_start = p->cursor;
    token = p->cursor.at;
    /*!re2c
    re2c:define:YYCTYPE = "unsigned char";
    re2c:define:YYCURSOR = "p->cursor.at";
    re2c:yyfill:enable = 0;

    D = [0-9];
    W = [a-zA-Z_0-9];
    ID = [a-zA-Z_] W*;
    TAIL = [\x80-\xBF];
    UTF8 = [\xC2-\xDF] TAIL
         | "\xE0" [\xA0-\xBF] TAIL | [\xE1-\xEC\xEE\xEF] TAIL TAIL | "\xED" [\x80-\x9F] TAIL
         | "\xF0" [\x90-\xBF] TAIL TAIL | [\xF1-\xF3] TAIL TAIL TAIL | "\xF4" [\x80-\x8F] TAIL TAIL;

    "\x00" {
        if (token >= p->limit) { p->cursor.at = p->limit; return TL_TOK_END; }
        while (p->cursor.at < p->limit && !*p->cursor.at) p->cursor.at++;
        return invalid(p, TL_E0003, token, "", NULL);
    }
    "\n"            { new_line(p, p->cursor.at); goto again; }
    [ \t\r\f\v]+    { goto again; }
    "///"           { doc_line(p); keep_comment(p); goto again; }
    "//"            { skip_line(p); keep_comment(p); goto again; }
    "/*"            {
        if (!skip_comment(p)) return TL_TOK_END;
        keep_comment(p);
        goto again;
    }

    "kernel"        { return TL_TOK_KERNEL; }
    "const"         { return TL_TOK_CONST; }
    "import"        { return TL_TOK_IMPORT; }
    "struct"        { return TL_TOK_STRUCT; }
    "tile"          { return TL_TOK_TILE; }
    "auto"          { return TL_TOK_AUTO; }
    "void"          { return TL_TOK_VOID; }
    "fn"            { return TL_TOK_FN; }
    "if"            { return TL_TOK_IF; }
    "else"          { return TL_TOK_ELSE; }
    "for"           { return TL_TOK_FOR; }
    "while"         { return TL_TOK_WHILE; }
    "return"        { return TL_TOK_RETURN; }
    "break"         { return TL_TOK_BREAK; }
    "continue"      { return TL_TOK_CONTINUE; }
    "static"        { return TL_TOK_STATIC; }
    "static_assert" { return TL_TOK_STATIC_ASSERT; }
    "in"            { return TL_TOK_IN; }
    "unchecked"     { return TL_TOK_UNCHECKED; }
    "true"          { return TL_TOK_TRUE; }
    "false"         { return TL_TOK_FALSE; }
    "inf"           { return TL_TOK_INF; }
    "nan"           { return TL_TOK_NAN; }
    "pipeline"      { return TL_TOK_PIPELINE; }
    "unroll"        { return TL_TOK_UNROLL; }
    "nounroll"      { return TL_TOK_NOUNROLL; }
    "specialize"    { return TL_TOK_SPECIALIZE; }
    "grid"          { return word(p, value, token, TL_TOK_GRID); }
    "require"       { return word(p, value, token, TL_TOK_REQUIRE); }
    "assume"        { return word(p, value, token, TL_TOK_ASSUME); }
    "tune"          { return word(p, value, token, TL_TOK_TUNE); }
    "key"           { return word(p, value, token, TL_TOK_KEY); }
    "instantiate"   { return word(p, value, token, TL_TOK_INSTANTIATE); }
    "warps"         { return word(p, value, token, TL_TOK_WARPS); }
    "stages"        { return word(p, value, token, TL_TOK_STAGES); }
    "cluster"       { return word(p, value, token, TL_TOK_CLUSTER); }
    "persistent"    { return word(p, value, token, TL_TOK_PERSISTENT); }
    "maxreg"        { return word(p, value, token, TL_TOK_MAXREG); }
    "alias"         { return word(p, value, token, TL_TOK_ALIAS); }
    "group"         { return word(p, value, token, TL_TOK_GROUP); }
    "where"         { return word(p, value, token, TL_TOK_WHERE); }
    "type"          { return word(p, value, token, TL_TOK_TYPE); }
    ID              { return word(p, value, token, 0); }

    // One rule for whatever looks like a number: literal.c says what is wrong with it.
    "0" [xX] W* ("." W*)?                                   { return number(p, value, token); }
    "0" [xX] [0-9a-fA-F_]* ("." [0-9a-fA-F_]*)? [pP] [+-] W* { return number(p, value, token); }
    D [0-9_]* ("." [0-9_]*)? ([eE] [+-]? D)? W*             { return number(p, value, token); }
    "." D [0-9_]* ([eE] [+-]? D)? W*                        { return number(p, value, token); }
    ["]             { return string(p, value, token); }

    "+:"  { return TL_TOK_PLUSCOLON; }
    "<="  { return TL_TOK_LE; }
    ">="  { return TL_TOK_GE; }
    "=="  { return TL_TOK_EQ; }
    "=>"  { return TL_TOK_GIVES; }
    "!="  { return TL_TOK_NE; }
    "&&"  { return TL_TOK_AND; }
    "||"  { return TL_TOK_OR; }
    "<<"  { return TL_TOK_SHL; }
    ">>"  { return TL_TOK_SHR; }
    "+="  { return TL_TOK_ADDA; }
    "-="  { return TL_TOK_SUBA; }
    "*="  { return TL_TOK_MULA; }
    "/="  { return TL_TOK_DIVA; }
    "%="  { return TL_TOK_MODA; }
    "&="  { return TL_TOK_ANDA; }
    "|="  { return TL_TOK_ORA; }
    "^="  { return TL_TOK_XORA; }
    "<<=" { return TL_TOK_SHLA; }
    ">>=" { return TL_TOK_SHRA; }
    "++"  { return TL_TOK_INC; }
    "--"  { return TL_TOK_DEC; }
    [-+*/%&|^~!<>=?:;,.(){}[\]] { return *token; }

    UTF8  { return bad_character(p, token); }
    [\x80-\xFF] {
        while (*p->cursor.at >= 0x80) p->cursor.at++;
        return invalid(p, TL_E0004, token, "", NULL);
    }
    *     { return bad_character(p, token); }
    */
}

/* ---- brackets ---- */

static char closer_of(char open)
{
    TL_ASSERT(open == '(' || open == '[' || open == '{', "'%c' opens nothing", open);
    return open == '(' ? ')' : open == '[' ? ']' : '}';
}

static void open_bracket(TlParser *p, char open, TlLoc loc)
{
    TlBracket b = {open, false, p->token, loc};
    if (p->brackets.len == TL_MAX_NESTING && !p->stop) {
        tl_diag(diags(p), loc, TL_E0791, TL_MAX_NESTING);
        p->stop = p->broken = true;
        return;
    }
    tl_vec_push(&p->ctx->perm, &p->brackets, b);
}

/* A brace closes what was left open inside it; other closers do not reach over a brace. */
static void close_bracket(TlParser *p, char close)
{
    uint32_t n = p->brackets.len;
    for (; n; n--) {
        char open = p->brackets.data[n - 1].open;
        if (closer_of(open) == close) {
            p->brackets.len = n - 1;
            return;
        }
        if (open == '{') return;
    }
}

void tl_lex_open_block(TlParser *p)
{
    uint32_t n = p->brackets.len;
    /* the brace may not be the last bracket: the token after it may have been read already */
    while (n && p->brackets.data[n - 1].open != '{') n--;
    if (n) p->brackets.data[n - 1].block = true;
}

/* ---- recovery ---- */

static int next_token(TlParser *p, Value *value, TlSpan *span)
{
    TlLoc end = tl_loc_at(p, &p->cursor, p->cursor.at, 0);
    int t = scan(p, value);
    TL_ASSERT(p->token_start.at <= p->cursor.at && p->cursor.at <= p->limit,
              "a token outside of the text");
    size_t len = (size_t)(p->cursor.at - p->token_start.at);
    p->prev_end = end;
    p->height_before = p->brackets.len;
    span->begin = tl_loc_at(p, &p->token_start, p->token_start.at, len);
    span->end = tl_loc_at(p, &p->cursor, p->cursor.at, 0);
    if (t == '(' || t == '[' || t == '{') open_bracket(p, (char)t, span->begin);
    if (t == ')' || t == ']' || t == '}') close_bracket(p, (char)t);
    if (p->stop) t = TL_TOK_END;
    p->token = t;
    return t;
}

static void put_back(TlParser *p)
{
    TL_ASSERT(p->token_start.at <= p->cursor.at, "a token is put back twice");
    p->cursor = p->token_start;
    p->brackets.len = p->height_before; /* closing a bracket leaves it in place above the length */
}

/* [](, [&](, [=]( */
bool tl_at_lambda(const TlParser *p)
{
    const unsigned char *s = p->token_start.at;
    if (p->token != '[' || s + 3 >= p->limit) return false;
    s += s[1] == '&' || s[1] == '=' ? 2 : 1;
    return s[0] == ']' && s + 1 < p->limit && s[1] == '(';
}

void tl_lex_recover(TlParser *p, bool here)
{
    /* twice at one token: drop it, or we never end */
    bool again = p->token_start.at == p->last_error;
    uint32_t n;
    p->last_error = p->token_start.at;
    p->in_lambda = tl_at_lambda(p);
    if (again)
        p->height_before = p->brackets.len;
    else
        put_back(p);
    for (n = p->brackets.len; n && !p->brackets.data[n - 1].block; n--) {}
    p->recover_height = n;
    p->recovering = here && !again ? TL_RECOVER_HERE : TL_RECOVER_SKIP;
    p->torn = p->recovering == TL_RECOVER_SKIP;
}

/* Can the token start an item, and does it, if it stands in the first column? */
static bool starts_item(int t)
{
    switch (t) {
    case TL_TOK_CONST:
    case TL_TOK_STRUCT:
    case TL_TOK_STATIC_ASSERT:
    case TL_TOK_SCALAR:
    case TL_TOK_TILE:
    case TL_TOK_AUTO:
    case TL_TOK_VOID:
    case TL_TOK_IDENT: return true;
    default: return false;
    }
}

/* Only an item can start here: all blocks are over. */
static void leave_blocks(TlParser *p)
{
    uint32_t i;
    put_back(p);
    for (i = 0; i < p->brackets.len; i++) p->closers += p->brackets.data[i].block;
    p->brackets.len = 0;
}

/* After the brace that ended a bracketed part of the broken statement: is that its end? Outside of
 * blocks, braces without a beginning go together. */
static bool ends_after_brace(TlParser *p)
{
    Value value;
    TlSpan span;
    uint32_t line = p->cursor.line;
    int t;
    do t = next_token(p, &value, &span);
    while (t == '}' && !p->recover_height);
    if (t == TL_TOK_ELSE) return false;
    if (t == TL_TOK_IDENT && !p->recover_height && span.begin.line == line)
        return false; /* typedef struct { ... } name; */
    if (t != ';' || p->recover_height) put_back(p);
    return true;
}

/* Are only parentheses open in the broken statement, and not those of a `for` head if `but_for`? */
static bool only_parentheses(const TlParser *p, uint32_t len, bool but_for)
{
    uint32_t i;
    for (i = p->recover_height; i < len; i++) {
        const TlBracket *b = &p->brackets.data[i];
        if (b->open == '{' || (but_for && b->after == TL_TOK_FOR)) return false;
    }
    return true;
}

/* A brace inside parentheses that is no set and no list: a body, and the parentheses were never
 * closed. */
static void forget_parentheses(TlParser *p, int before)
{
    uint32_t n = p->brackets.len;
    if (p->in_lambda || n < p->recover_height + 2 || before == TL_TOK_IN || before == '=') return;
    if (!only_parentheses(p, n - 1, false)) return;
    TL_ASSERT(p->recover_height < n, "bracket %u of %u", p->recover_height, n);
    p->brackets.data[p->recover_height] = p->brackets.data[n - 1];
    p->brackets.len = p->recover_height + 1;
}

/* Skips one token of what is broken; true when that is over. */
static bool skip_token(TlParser *p, bool first)
{
    uint32_t height = p->recover_height;
    Value value;
    TlSpan span;
    int before = p->token, t = next_token(p, &value, &span);
    if (t == TL_TOK_END) return true;
    if (t == TL_TOK_KERNEL || t == TL_TOK_IMPORT ||
        (!height && !first && span.begin.col == 1 && starts_item(t))) {
        leave_blocks(p);
        return true;
    }
    if (t == ';') {
        if (!only_parentheses(p, p->height_before, true)) return false;
        p->brackets.len = height;
        return true;
    }
    if (t == '{') forget_parentheses(p, before);
    if (t != '}') return false;
    if (p->brackets.len < height) {
        put_back(p);
        return true;
    }
    if (!height && span.begin.col == 1) p->brackets.len = 0;
    return p->brackets.len == height && ends_after_brace(p);
}

static int recover(TlParser *p, TlSpan *span)
{
    bool first = true;
    TlLoc at;
    if (p->recovering == TL_RECOVER_SKIP)
        while (!skip_token(p, first)) first = false;
    p->recovering = TL_RECOVER_NOT;
    if (p->token == TL_TOK_END) {
        p->stop = true; /* what was open stays open: that is part of the error that was reported */
        return TL_TOK_END;
    }
    at = tl_loc_at(p, &p->cursor, p->cursor.at, 0);
    *span = (TlSpan){at, at};
    return TL_TOK_RECOVERED;
}

/* From the brace that opens a function's body to the one that closes it. The library's functions
 * have neither strings nor comments of the other form in them; parse_test reads all of them. */
static void pass_over(TlParser *p)
{
    const unsigned char *s = p->cursor.at;
    for (uint32_t open = 1; s < p->limit; s++) {
        if (*s == '\n') new_line(p, s + 1);
        if (s[0] == '/' && s[1] == '/')
            while (s + 1 < p->limit && s[1] != '\n') s++;
        open += *s == '{';
        open -= *s == '}';
        if (!open) break;
    }
    p->cursor.at = s;
}

int tl_yy_lex(Value *value, TlSpan *span, TlParser *p)
{
    int t, before = p->token;
    if (p->recovering) return recover(p, span);
    if (p->closers) {
        TlLoc at = tl_loc_at(p, &p->cursor, p->cursor.at, 0);
        p->closers--;
        *span = (TlSpan){at, at};
        return '}';
    }
    if (p->one_item && before == '}' && !p->brackets.len) return TL_TOK_END;
    t = next_token(p, value, span);
    if (p->heads && t == '{' && before == ')' && p->brackets.len == 1) pass_over(p);
    if (p->doc.len) {
        TlDoc doc = {span->begin, tl_strndup(&p->ctx->perm, p->doc.text, p->doc.len)};
        tl_vec_push(&p->ctx->perm, &p->docs, doc);
        p->doc.len = 0;
    }
    return t;
}
