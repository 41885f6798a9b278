/* Arena allocation. Three lifetimes are used: context (types, strings), module (IR), pass scratch.
 * Memory comes zeroed and is never NULL: when the host's allocator refuses, the arena unwinds to
 * the enclosing guard (guard.h) with TL_FAULT_MEMORY. Nothing is freed one by one. Not
 * thread-safe. */
#ifndef TL_ARENA_H
#define TL_ARENA_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The host's allocator, Lua-like: ptr NULL allocates, new_size 0 frees. May return NULL. */
typedef void *(*TlAllocFn)(void *user, void *ptr, size_t old_size, size_t new_size);
typedef struct TlAlloc {
    TlAllocFn fn; /* NULL: the C library */
    void *user;
} TlAlloc;

typedef struct TlChunk TlChunk;
typedef struct TlArena {
    TlAlloc alloc;
    TlChunk *chunks; /* newest first */
    char *cur, *end;
    size_t total; /* bytes taken from the host */
} TlArena;

void tl_arena_init(TlArena *arena, TlAlloc alloc);
void tl_arena_free(TlArena *arena); /* gives all memory back; the arena is empty and usable again */

void *tl_alloc(TlArena *arena, size_t size); /* zeroed, aligned to 16 bytes */
/* copy into a larger block */
void *tl_grow(TlArena *arena, void *old, size_t old_size, size_t new_size);
char *tl_strndup(TlArena *arena, const char *text, size_t length);
char *tl_format(TlArena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *tl_vformat(TlArena *arena, const char *format, va_list args);

#define TL_NEW(arena, T) ((T *)tl_alloc((arena), sizeof(T)))
#define TL_NEW_ARRAY(arena, T, n) ((T *)tl_alloc((arena), sizeof(T) * (size_t)(n)))

/* Growable array in an arena: TL_VEC(int) v = {0}; tl_vec_push(arena, &v, 3); v.data[0], v.len */
#define TL_VEC(T)          \
    struct {               \
        T *data;           \
        uint32_t len, cap; \
    }
#define tl_vec_push(arena, v, ...)                                                                 \
    ((v)->len == (v)->cap                                                                          \
         ? (void)((v)->data = tl_grow((arena), (v)->data, sizeof *(v)->data * (v)->cap,            \
                                      sizeof *(v)->data * ((v)->cap ? 2 * (size_t)(v)->cap : 8)),  \
                  (v)->cap = (v)->cap ? 2 * (v)->cap : 8)                                          \
         : (void)0,                                                                                \
     (void)((v)->data[(v)->len++] = __VA_ARGS__))

/* String builder in an arena; text is always terminated. */
typedef struct TlSbuf {
    TlArena *arena;
    char *text;
    size_t len, cap;
} TlSbuf;
void tl_sbuf_init(TlSbuf *s, TlArena *arena);
void tl_sbuf_put(TlSbuf *s, const char *text, size_t length);
void tl_sbuf_puts(TlSbuf *s, const char *text);
/* Reads a file to its end, or until the text has `most` bytes or more. False: a read error, of
 * which errno tells. */
bool tl_sbuf_read(TlSbuf *s, FILE *f, size_t most);
void tl_sbuf_putf(TlSbuf *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Hash map from 64-bit keys (ids, interned pointers) to 64-bit values, in an arena. */
typedef struct TlMap {
    TlArena *arena;
    uint64_t *keys, *vals;
    uint8_t *used;
    uint32_t len, cap;
} TlMap;
void tl_map_init(TlMap *m, TlArena *arena);
bool tl_map_get(const TlMap *m, uint64_t key, uint64_t *out_val); /* out_val may be NULL */
void tl_map_put(TlMap *m, uint64_t key, uint64_t val);
static inline void *tl_map_get_ptr(const TlMap *m, const void *key)
{
    uint64_t v = 0;
    return tl_map_get(m, (uint64_t)(uintptr_t)key, &v) ? (void *)(uintptr_t)v : NULL;
}
static inline void tl_map_put_ptr(TlMap *m, const void *key, const void *val)
{
    tl_map_put(m, (uint64_t)(uintptr_t)key, (uint64_t)(uintptr_t)val);
}

/* Interned strings: equal texts are equal pointers for the life of the table. */
typedef struct TlIntern {
    TlArena *arena;
    const char **buckets;
    uint32_t *lens;
    uint32_t len, cap;
} TlIntern;
void tl_intern_init(TlIntern *t, TlArena *arena);
const char *tl_intern(TlIntern *t, const char *text, size_t length);
const char *tl_intern_str(TlIntern *t, const char *text);

uint64_t tl_hash(const void *data, size_t size, uint64_t seed);
#endif
