/* String builder, hash map, string interning and the hash they share (arena.h). All live in arenas
 * and only grow. */
#include "ir/support/arena.h"
#include "ir/support/guard.h"
#include <stdio.h>
#include <string.h>

/* ---- hash ---- */

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

uint64_t tl_hash(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ size * 0x9e3779b97f4a7c15u;
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word = (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
                        (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 |
                        (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56; /* the same on every host */
        h = mix(h ^ word) + 0x9e3779b97f4a7c15u;
    }
    uint64_t rest = 0;
    while (size-- > 0) rest = rest << 8 | p[size];
    return mix(h ^ rest);
}

/* ---- string builder ---- */

void tl_sbuf_init(TlSbuf *s, TlArena *arena)
{
    s->arena = arena;
    s->len = 0;
    s->cap = 64;
    s->text = tl_alloc(arena, s->cap);
}

static void sbuf_reserve(TlSbuf *s, size_t more)
{
    if (more < s->cap - s->len) return; /* one byte stays for the terminator */
    size_t cap = 2 * s->cap;
    while (cap - s->len <= more) cap *= 2;
    s->text = tl_grow(s->arena, s->text, s->cap, cap);
    s->cap = cap;
}

void tl_sbuf_put(TlSbuf *s, const char *text, size_t length)
{
    TL_ASSERT(s->arena, "a text without an arena");
    if (length == 0) return;
    sbuf_reserve(s, length);
    memcpy(s->text + s->len, text, length);
    s->len += length;
    s->text[s->len] = 0;
}

void tl_sbuf_puts(TlSbuf *s, const char *text) { tl_sbuf_put(s, text, strlen(text)); }

bool tl_sbuf_read(TlSbuf *s, FILE *f, size_t most)
{
    char block[1 << 14];
    for (size_t n; s->len < most && (n = fread(block, 1, sizeof block, f)) > 0;)
        tl_sbuf_put(s, block, n);
    return !ferror(f);
}

void tl_sbuf_putf(TlSbuf *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s->text + s->len, s->cap - s->len, format, args);
    va_end(args);
    TL_ASSERT(n >= 0, "format '%s' failed", format);
    if ((size_t)n >= s->cap - s->len) {
        sbuf_reserve(s, (size_t)n);
        va_start(args, format);
        vsnprintf(s->text + s->len, s->cap - s->len, format, args);
        va_end(args);
    }
    s->len += (size_t)n;
}

/* ---- map: open addressing, linear probing, power-of-two size, at most 3/4 full ---- */

void tl_map_init(TlMap *m, TlArena *arena)
{
    memset(m, 0, sizeof *m);
    m->arena = arena;
}

static uint32_t map_bucket(const TlMap *m, uint64_t key)
{
    uint32_t i = (uint32_t)mix(key) & (m->cap - 1);
    while (m->used[i] && m->keys[i] != key) i = (i + 1) & (m->cap - 1);
    return i;
}

bool tl_map_get(const TlMap *m, uint64_t key, uint64_t *out_val)
{
    if (m->cap == 0) return false;
    uint32_t i = map_bucket(m, key);
    if (!m->used[i]) return false;
    if (out_val) *out_val = m->vals[i];
    return true;
}

static void map_enlarge(TlMap *m)
{
    TlMap old = *m;
    m->cap = old.cap ? 2 * old.cap : 16;
    m->keys = TL_NEW_ARRAY(m->arena, uint64_t, m->cap);
    m->vals = TL_NEW_ARRAY(m->arena, uint64_t, m->cap);
    m->used = TL_NEW_ARRAY(m->arena, uint8_t, m->cap);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (!old.used[i]) continue;
        uint32_t j = map_bucket(m, old.keys[i]);
        m->used[j] = 1;
        m->keys[j] = old.keys[i];
        m->vals[j] = old.vals[i];
    }
}

void tl_map_put(TlMap *m, uint64_t key, uint64_t val)
{
    TL_ASSERT(m->arena, "a map without an arena");
    if (4 * ((uint64_t)m->len + 1) > 3 * (uint64_t)m->cap) map_enlarge(m);
    uint32_t i = map_bucket(m, key);
    if (!m->used[i]) {
        m->used[i] = 1;
        m->keys[i] = key;
        m->len++;
    }
    m->vals[i] = val;
}

/* ---- interned strings ---- */

void tl_intern_init(TlIntern *t, TlArena *arena)
{
    memset(t, 0, sizeof *t);
    t->arena = arena;
}

static uint32_t intern_bucket(const TlIntern *t, const char *text, size_t length)
{
    uint32_t i = (uint32_t)tl_hash(text, length, 0) & (t->cap - 1);
    while (t->buckets[i] && !(t->lens[i] == length && memcmp(t->buckets[i], text, length) == 0))
        i = (i + 1) & (t->cap - 1);
    return i;
}

static void intern_enlarge(TlIntern *t)
{
    TlIntern old = *t;
    t->cap = old.cap ? 2 * old.cap : 64;
    t->buckets = TL_NEW_ARRAY(t->arena, const char *, t->cap);
    t->lens = TL_NEW_ARRAY(t->arena, uint32_t, t->cap);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (!old.buckets[i]) continue;
        uint32_t j = intern_bucket(t, old.buckets[i], old.lens[i]);
        t->buckets[j] = old.buckets[i];
        t->lens[j] = old.lens[i];
    }
}

const char *tl_intern(TlIntern *t, const char *text, size_t length)
{
    TL_ASSERT(length <= UINT32_MAX, "string of %zu bytes", length);
    if (4 * ((uint64_t)t->len + 1) > 3 * (uint64_t)t->cap) intern_enlarge(t);
    uint32_t i = intern_bucket(t, text, length);
    if (!t->buckets[i]) {
        t->buckets[i] = tl_strndup(t->arena, text, length);
        t->lens[i] = (uint32_t)length;
        t->len++;
    }
    return t->buckets[i];
}

const char *tl_intern_str(TlIntern *t, const char *text)
{
    return tl_intern(t, text, strlen(text));
}
