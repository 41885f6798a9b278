/* lsp_scan.c: words, strings and comments of a text that need not be a program, for what is asked
 * of places that no check reaches. */
#include "tools/lsp/lsp.h"
#include <string.h>

static size_t line_stop(const char *text, size_t size, size_t at)
{
    const char *stop = memchr(text + at, '\n', size - at);
    return stop ? (size_t)(stop - text) : size;
}

static size_t comment_end(const char *text, size_t size, size_t at)
{
    if (text[at + 1] == '/')
        return line_stop(text, size, at);
    for (at += 2; at + 1 < size; at++)
        if (text[at] == '*' && text[at + 1] == '/')
            return at + 2;
    return size;
}

static size_t string_end(const char *text, size_t size, size_t at)
{
    size_t stop = line_stop(text, size, at);
    for (at++; at < stop && text[at] != '"'; at++)
        at += text[at] == '\\' && at + 1 < stop;
    return at < stop ? at + 1 : stop;
}

LspToken lsp_token(const char *text, size_t size, size_t at)
{
    while (at < size && text[at] && strchr(" \t\r\n", text[at]))
        at++;
    if (at >= size)
        return (LspToken){LSP_END, size, size};
    LspToken t = {LSP_SIGN, at, at + 1};
    bool digit = text[at] >= '0' && text[at] <= '9';
    if (text[at] == '/' && at + 1 < size && (text[at + 1] == '/' || text[at + 1] == '*')) {
        t.kind = LSP_COMMENT;
        t.to = comment_end(text, size, at);
    } else if (text[at] == '"') {
        t.kind = LSP_STRING;
        t.to = string_end(text, size, at);
    } else if (lsp_is_word(text[at])) {
        t.kind = digit ? LSP_NUMBER : LSP_WORD;
        while (t.to < size && (lsp_is_word(text[t.to]) || (digit && text[t.to] == '.')))
            t.to++;
    }
    return t;
}

bool lsp_token_is(const char *text, LspToken t, const char *word)
{
    return t.to - t.from == strlen(word) && memcmp(text + t.from, word, t.to - t.from) == 0;
}
