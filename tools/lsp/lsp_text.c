/* lsp_text.c: bytes, lines, UTF-16 units; paths and URIs. */
#include "ir/support/ascii.h"
#include "tools/lsp/lsp.h"
#include <stdlib.h>
#include <string.h>

bool lsp_is_word(char c)
{
    return tl_is_alnum((unsigned char)c) || c == '_';
}

/* ---- places ---- */

/* Bytes of the character at s, and its UTF-16 units; bytes that are no UTF-8 count one by one. */
static size_t character(const char *s, const char *end, uint32_t *units)
{
    unsigned char c = (unsigned char)*s;
    size_t n = c < 0xC2 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 1;
    for (size_t i = 1; i < n; i++)
        if (s + i >= end || ((unsigned char)s[i] & 0xC0) != 0x80)
            n = 1;
    *units = n == 4 ? 2 : 1;
    return n;
}

/* A line of the protocol ends at a line feed, a carriage return, or both; one of the compiler at a
 * line feed. */
static const char *line_end(const char *s, const char *end)
{
    while (s < end && *s != '\n' && *s != '\r')
        s++;
    return s;
}

/* The next line's first byte; NULL: there is no next line. */
static const char *next_line(const char *s, const char *end)
{
    s = line_end(s, end);
    return s == end ? NULL : s[0] == '\r' && s + 1 < end && s[1] == '\n' ? s + 2 : s + 1;
}

size_t lsp_offset(const char *text, size_t size, double line, double character_)
{
    const char *s = text, *end = text + size;
    for (; line >= 1; line--) {
        s = next_line(s, end);
        if (!s)
            return size;
    }
    const char *stop = line_end(s, end);
    for (uint32_t units; s < stop && character_ >= 1; character_ -= units)
        s += character(s, stop, &units);
    return (size_t)(s - text);
}

void lsp_place(const char *text, size_t size, size_t offset, uint32_t *line, uint32_t *column)
{
    const char *s = text, *at = text + (offset < size ? offset : size);
    *line = *column = 0;
    for (const char *next; (next = next_line(s, text + size)) && next <= at; s = next)
        (*line)++;
    for (uint32_t units; s < at; *column += units)
        s += character(s, text + size, &units);
}

TlLoc lsp_loc(const char *text, size_t offset)
{
    TlLoc loc = {0, 1, 1, 1};
    for (size_t i = 0; i < offset; i++) {
        loc.col++;
        if (text[i] == '\n') {
            loc.line++;
            loc.col = 1;
        }
    }
    return loc;
}

size_t lsp_loc_offset(const char *text, size_t size, TlLoc loc)
{
    const char *s = text, *end = text + size;
    for (uint32_t line = 1; line < loc.line; line++) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        if (!stop)
            return size;
        s = stop + 1;
    }
    size_t at = (size_t)(s - text) + (loc.col ? loc.col - 1 : 0);
    return at < size ? at : size;
}

/* ---- members ---- */

/* The text with U+FFFD in the place of each byte that is no UTF-8. */
static json_t *mended(const char *text)
{
    static const char INSTEAD[] = "\xEF\xBF\xBD";
    size_t size = strlen(text), used = 0;
    char *out = malloc(size * (sizeof INSTEAD - 1) + 1);
    if (!out)
        return NULL;
    for (const char *s = text, *end = text + size; s < end;) {
        uint32_t units;
        size_t n = character(s, end, &units);
        json_t *one = json_stringn(s, n);
        if (one)
            memcpy(out + used, s, n);
        else
            memcpy(out + used, INSTEAD, sizeof INSTEAD - 1);
        used += one ? n : sizeof INSTEAD - 1;
        s += one ? n : 1;
        json_decref(one);
    }
    json_t *all = json_stringn(out, used);
    free(out);
    return all;
}

void lsp_put_text(json_t *object, const char *name, const char *text)
{
    json_t *value = json_string(text);
    json_object_set_new(object, name, value ? value : mended(text));
}

void lsp_put_number(json_t *object, const char *name, double number)
{
    json_object_set_new(object, name, json_integer((json_int_t)number));
}

void lsp_put_true(json_t *object, const char *name)
{
    json_object_set_new(object, name, json_true());
}

json_t *lsp_put_object(json_t *object, const char *name)
{
    json_t *value = json_object();
    return json_object_set_new(object, name, value) ? NULL : value;
}

double lsp_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

json_t *lsp_position(const char *text, size_t size, size_t offset)
{
    uint32_t line, column;
    json_t *p = json_object();
    lsp_place(text, size, offset, &line, &column);
    lsp_put_number(p, "line", line);
    lsp_put_number(p, "character", column);
    return p;
}

json_t *lsp_range(const char *text, size_t size, size_t from, size_t to)
{
    json_t *r = json_object();
    json_object_set_new(r, "start", lsp_position(text, size, from));
    json_object_set_new(r, "end", lsp_position(text, size, to));
    return r;
}

json_t *lsp_loc_range(const char *text, size_t size, TlLoc loc)
{
    size_t from = lsp_loc_offset(text, size, loc), n = loc.len ? loc.len : 1;
    return lsp_range(text, size, from, n < size - from ? from + n : size);
}

/* ---- URIs ---- */

static int hex(char c)
{
    return tl_is_digit((unsigned char)c) ? c - '0' : tl_to_lower((unsigned char)c) - 'a' + 10;
}

char *lsp_uri_path(const char *uri)
{
    static const char scheme[] = "file://";
    char *path = malloc(strlen(uri) + 1), *to = path;
    if (!path || strncmp(uri, scheme, sizeof scheme - 1) != 0)
        return path ? strcpy(path, uri) : NULL;
    const char *s = uri + sizeof scheme - 1;
    s += strcspn(s, "/"); /* past the host */
    while (*s) {
        bool code =
            s[0] == '%' && tl_is_xdigit((unsigned char)s[1]) && tl_is_xdigit((unsigned char)s[2]);
        *to++ = code ? (char)(hex(s[1]) * 16 + hex(s[2])) : *s;
        s += code ? 3 : 1;
    }
    *to = 0;
    return path;
}

char *lsp_path_uri(const char *path)
{
    char *uri = malloc(3 * strlen(path) + sizeof "file://"), *to = uri;
    if (!uri)
        return NULL;
    to += sprintf(to, path[0] == '/' ? "file://" : "");
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;
        if (tl_is_alnum(c) || strchr("/-._~:", c))
            *to++ = (char)c;
        else
            to += sprintf(to, "%%%02X", c);
    }
    *to = 0;
    return uri;
}
