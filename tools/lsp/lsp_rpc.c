/* lsp_rpc.c: messages over pipes: a header with Content-Length, an empty line, JSON. */
#include "ir/support/ascii.h"
#include "tools/lsp/lsp.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MOST_BYTES = 128 << 20, MOST_HEADER = 8192 }; /* of a message; of its header */

/* Takes what there is; false at the end of the input, or when nothing is there and no one waits. */
static bool fill(Reader *r, bool wait)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    if (r->ended || (!wait && poll(&p, 1, 0) <= 0))
        return false;
    if (r->cap - r->len < 1 << 14) {
        size_t cap = r->cap ? 2 * r->cap : 1 << 15;
        char *more = realloc(r->data, cap);
        r->ended = !more;
        if (!more)
            return false;
        r->data = more;
        r->cap = cap;
    }
    ssize_t n;
    do
        n = read(r->fd, r->data + r->len, r->cap - r->len);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        r->ended = true;
    r->len += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void drop(Reader *r, size_t n)
{
    memmove(r->data, r->data + n, r->len - n);
    r->len -= n;
}

/* The header's length when all of it is there, 0 when not. */
static size_t header_length(const Reader *r)
{
    for (size_t i = 0; i + 1 < r->len; i++) {
        if (r->data[i] == '\n' && r->data[i + 1] == '\n')
            return i + 2;
        if (i + 3 < r->len && memcmp(r->data + i, "\r\n\r\n", 4) == 0)
            return i + 4;
    }
    return 0;
}

/* The number from `p` to the line's end; -1: it is none, or too large. */
static long long number_until(const char *p, const char *end)
{
    long long n = 0;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p == end || *p < '0' || *p > '9')
        return -1;
    for (; p < end && *p >= '0' && *p <= '9' && n <= MOST_BYTES; p++)
        n = 10 * n + (*p - '0');
    return n > MOST_BYTES ? -1 : n;
}

/* What the header says of the body's length; -1: nothing of use. */
static long long body_length(const char *header, size_t n)
{
    static const char name[] = "Content-Length:";
    for (const char *line = header, *end = header + n; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            break;
        if ((size_t)(stop - line) > sizeof name && tl_same_letters(line, name, sizeof name - 1))
            return number_until(line + sizeof name - 1, stop);
        line = stop + 1;
    }
    return -1;
}

char *lsp_read(Reader *r, bool wait)
{
    for (;;) {
        size_t header = r->len ? header_length(r) : 0;
        if (!header) {
            if (r->len > MOST_HEADER)
                r->len = 0; /* no header of ours */
            if (!fill(r, wait))
                return NULL;
            continue;
        }
        long long body = body_length(r->data, header);
        if (body < 0) {
            drop(r, header);
            continue;
        }
        while (r->len < header + (size_t)body)
            if (!fill(r, wait))
                return NULL;
        char *text = malloc((size_t)body + 1);
        if (!text)
            return NULL;
        memcpy(text, r->data + header, (size_t)body);
        text[body] = 0;
        drop(r, header + (size_t)body);
        return text;
    }
}

/* ---- sending ---- */

void lsp_send(Server *s, json_t *message)
{
    lsp_put_text(message, "jsonrpc", "2.0");
    char *text = json_dumps(message, JSON_COMPACT);
    json_decref(message);
    if (!text || fprintf(s->out, "Content-Length: %zu\r\n\r\n%s", strlen(text), text) < 0 ||
        fflush(s->out) != 0)
        s->broken = true;
    free(text);
}

static json_t *answer(const json_t *id)
{
    json_t *message = json_object();
    json_object_set_new(message, "id", id ? json_deep_copy(id) : json_null());
    return message;
}

void lsp_reply(Server *s, const json_t *id, json_t *result)
{
    json_t *message = answer(id);
    json_object_set_new(message, "result", result ? result : json_null());
    lsp_send(s, message);
}

void lsp_fail(Server *s, const json_t *id, int code, const char *text)
{
    json_t *message = answer(id), *error = lsp_put_object(message, "error");
    lsp_put_number(error, "code", code);
    lsp_put_text(error, "message", text);
    lsp_send(s, message);
}

void lsp_notify(Server *s, const char *method, json_t *params)
{
    json_t *message = json_object();
    lsp_put_text(message, "method", method);
    json_object_set_new(message, "params", params);
    lsp_send(s, message);
}
