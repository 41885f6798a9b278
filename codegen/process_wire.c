/* The messages of process_wire.h: how they are written, read and sent. */
#include "codegen/process_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "ir/support/guard.h"

/* ---- payloads ---- */

static const uint64_t NONE = UINT64_MAX; /* the length of a text that is NULL */

void tl_wire_number(TlSbuf *s, uint64_t number)
{
    tl_sbuf_put(s, (const char *)&number, sizeof number);
}

void tl_wire_bytes(TlSbuf *s, const void *data, size_t size)
{
    tl_wire_number(s, data ? size : NONE);
    if (!data)
        return;
    tl_sbuf_put(s, data, size);
    tl_sbuf_put(s, "", 1);
}

void tl_wire_text(TlSbuf *s, const char *text)
{
    tl_wire_bytes(s, text, text ? strlen(text) : 0);
}

static const char *next(TlWire *w, uint64_t size)
{
    if (size > w->size - w->at)
        tl_fault(TL_FAULT_INTERNAL, "a message to or from the compiler's process is too short");
    const char *data = w->data + w->at;
    w->at += size;
    return data;
}

uint64_t tl_wire_next_number(TlWire *w)
{
    uint64_t number;
    memcpy(&number, next(w, sizeof number), sizeof number);
    return number;
}

const void *tl_wire_next_bytes(TlWire *w, size_t *out_size)
{
    uint64_t size = tl_wire_next_number(w);
    *out_size = size == NONE ? 0 : size;
    if (size == NONE)
        return NULL;
    const char *data = next(w, size);
    TL_ASSERT(*next(w, 1) == 0, "a text without an end");
    return data;
}

const char *tl_wire_next_text(TlWire *w)
{
    size_t size;
    return tl_wire_next_bytes(w, &size);
}

/* ---- options: the table of cache/key.def ---- */

static void put_list(TlSbuf *s, const char *const *texts, size_t n)
{
    tl_wire_number(s, n);
    for (size_t i = 0; i < n; i++)
        tl_wire_text(s, texts[i]);
}

static void put_consts(TlSbuf *s, const tilec_const *consts, size_t n)
{
    tl_wire_number(s, n);
    for (size_t i = 0; i < n; i++) {
        tl_wire_text(s, consts[i].name);
        tl_wire_text(s, consts[i].value);
    }
}

static void put_tuned(TlSbuf *s, const tilec_tuned *rows, size_t n)
{
    tl_wire_number(s, n);
    for (size_t i = 0; i < n; i++) {
        const tilec_tuned *r = &rows[i];
        tl_wire_text(s, r->target);
        tl_wire_text(s, r->kernel);
        tl_wire_text(s, r->hash);
        tl_wire_text(s, r->constants);
        tl_wire_text(s, r->keys);
        tl_wire_number(s, r->nbucket);
        for (size_t k = 0; k < r->nbucket; k++)
            tl_wire_number(s, (uint64_t)r->bucket[k]);
        put_list(s, r->configs, r->nconfigs);
    }
}

#define PUT(member)                                                                                \
    _Generic((o->member), const char * : tl_wire_text, default : tl_wire_number)(s, o->member);

void tl_wire_options(TlSbuf *s, const tilec_options *o)
{
#define FREE(member)
#define TEXT(member)          PUT(member)
#define NUMBER(member)        PUT(member)
#define LIST(member, count)   put_list(s, o->member, o->count);
#define CONSTS(member, count) put_consts(s, o->member, o->count);
#define TUNED(member, count)  put_tuned(s, o->member, o->count);
#define WATCH(member, unset)  PUT(member)
#define FOLDER(member)        PUT(member)
#include "codegen/cache/key.def"
}

/* How many follow: each takes at least a word. */
static size_t next_count(TlWire *w)
{
    uint64_t n = tl_wire_next_number(w);
    TL_ASSERT(n <= (w->size - w->at) / sizeof(uint64_t), "a list longer than its message");
    return n;
}

static const char *const *next_list(TlWire *w, TlArena *arena, size_t *out_n)
{
    size_t n = *out_n = next_count(w);
    const char **texts = TL_NEW_ARRAY(arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        texts[i] = tl_wire_next_text(w);
    return texts;
}

static const tilec_const *next_consts(TlWire *w, TlArena *arena, size_t *out_n)
{
    size_t n = *out_n = next_count(w);
    tilec_const *consts = TL_NEW_ARRAY(arena, tilec_const, n + 1);
    for (size_t i = 0; i < n; i++) {
        consts[i].name = tl_wire_next_text(w);
        consts[i].value = tl_wire_next_text(w);
    }
    return consts;
}

static const tilec_tuned *next_tuned(TlWire *w, TlArena *arena, size_t *out_n)
{
    size_t n = *out_n = next_count(w);
    tilec_tuned *rows = TL_NEW_ARRAY(arena, tilec_tuned, n + 1);
    for (size_t i = 0; i < n; i++) {
        tilec_tuned *r = &rows[i];
        r->target = tl_wire_next_text(w);
        r->kernel = tl_wire_next_text(w);
        r->hash = tl_wire_next_text(w);
        r->constants = tl_wire_next_text(w);
        r->keys = tl_wire_next_text(w);
        r->nbucket = next_count(w);
        int32_t *bucket = TL_NEW_ARRAY(arena, int32_t, r->nbucket + 1);
        for (size_t k = 0; k < r->nbucket; k++)
            bucket[k] = (int32_t)tl_wire_next_number(w);
        r->bucket = bucket;
        r->configs = next_list(w, arena, &r->nconfigs);
    }
    return rows;
}

#define NEXT(member)                                                                               \
    o->member = _Generic((o->member), const char *: tl_wire_next_text, \
                         default: tl_wire_next_number)(w);

void tl_wire_next_options(TlWire *w, TlArena *arena, tilec_options *o)
{
#define FREE(member)
#define TEXT(member)          NEXT(member)
#define NUMBER(member)        NEXT(member)
#define LIST(member, count)   o->member = next_list(w, arena, &o->count);
#define CONSTS(member, count) o->member = next_consts(w, arena, &o->count);
#define TUNED(member, count)  o->member = next_tuned(w, arena, &o->count);
#define WATCH(member, unset)  NEXT(member)
#define FOLDER(member)        NEXT(member)
#include "codegen/cache/key.def"
}

/* ---- sending ---- */

typedef struct Header {
    uint64_t kind, size;
} Header;

static bool send_all(int fd, const char *data, size_t size, int more)
{
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL | more);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

bool tl_wire_send(int fd, TlWireKind kind, const char *data, size_t size)
{
    Header header = {kind, size};
    return send_all(fd, (const char *)&header, sizeof header, size ? MSG_MORE : 0) &&
           send_all(fd, data, size, 0);
}

uint64_t tl_wire_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static TlWireEnd receive_all(int fd, uint64_t until, char *data, size_t size)
{
    while (size) {
        uint64_t now = until ? tl_wire_now() : 0;
        int wait = !until ? -1 : until <= now ? 0 : until - now > 1000 ? 1000 : (int)(until - now);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, wait);
        if (ready == 0 && until && until <= tl_wire_now())
            return TL_WIRE_LATE;
        if (ready <= 0)
            continue; /* EINTR, ENOMEM, or a second is over */
        ssize_t n = recv(fd, data, size, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return TL_WIRE_CLOSED;
        data += n;
        size -= (size_t)n;
    }
    return TL_WIRE_OK;
}

TlWireEnd tl_wire_receive(int fd, uint64_t until, TlArena *arena, TlWire *out)
{
    Header header;
    TlWireEnd end = receive_all(fd, until, (char *)&header, sizeof header);
    if (end != TL_WIRE_OK)
        return end;
    char *data = tl_alloc(arena, header.size + 1);
    *out = (TlWire){.kind = (TlWireKind)header.kind, .data = data, .size = header.size};
    return receive_all(fd, until, data, header.size);
}
