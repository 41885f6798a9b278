/* Arenas: a list of chunks, allocation bumps a pointer in the newest. Chunks double from 4 KiB to 1
 * MiB; a request that would waste most of a chunk gets one of its own, placed behind the newest so
 * that the newest stays in use. */
#include "ir/support/arena.h"
#include "ir/support/guard.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 4 << 10, LARGEST_CHUNK = 1 << 20, ALIGN = 16 };

struct TlChunk {
    TlChunk *older;
    size_t size; /* with this header */
};
enum { HEADER = (sizeof(TlChunk) + ALIGN - 1) / ALIGN * ALIGN };

static void *libc_alloc(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

void tl_arena_init(TlArena *arena, TlAlloc alloc)
{
    memset(arena, 0, sizeof *arena);
    arena->alloc = alloc;
    if (!arena->alloc.fn) arena->alloc.fn = libc_alloc;
}

void tl_arena_free(TlArena *arena)
{
    for (TlChunk *c = arena->chunks, *older; c; c = older) {
        older = c->older;
        arena->alloc.fn(arena->alloc.user, c, c->size, 0);
    }
    arena->chunks = NULL;
    arena->cur = arena->end = NULL;
    arena->total = 0;
}

static TlChunk *chunk_new(TlArena *arena, size_t size)
{
    TL_ASSERT(arena->alloc.fn, "arena used before tl_arena_init");
    TlChunk *c = arena->alloc.fn(arena->alloc.user, NULL, 0, size);
    if (!c) tl_fault(TL_FAULT_MEMORY, "out of memory: %zu bytes refused", size);
    c->size = size;
    arena->total += size;
    return c;
}

static size_t round_up(size_t size) { return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1); }

static void *alloc_slow(TlArena *arena, size_t size)
{
    size_t wanted = arena->chunks ? 2 * arena->chunks->size : FIRST_CHUNK;
    if (wanted > LARGEST_CHUNK) wanted = LARGEST_CHUNK;
    if (size + HEADER > wanted / 4) {
        TlChunk *own = chunk_new(arena, size + HEADER);
        TlChunk **at = arena->chunks ? &arena->chunks->older : &arena->chunks;
        own->older = *at;
        *at = own;
        return (char *)own + HEADER;
    }
    TlChunk *c = chunk_new(arena, wanted);
    c->older = arena->chunks;
    arena->chunks = c;
    arena->cur = (char *)c + HEADER + size;
    arena->end = (char *)c + wanted;
    return (char *)c + HEADER;
}

void *tl_alloc(TlArena *arena, size_t size)
{
    if (size > SIZE_MAX / 4) tl_fault(TL_FAULT_MEMORY, "out of memory: %zu bytes asked for", size);
    size = size ? round_up(size) : ALIGN;
    void *p = arena->cur;
    if (p && (size_t)(arena->end - arena->cur) >= size) arena->cur += size;
    else p = alloc_slow(arena, size);
    memset(p, 0, size);
    return p;
}

void *tl_grow(TlArena *arena, void *old, size_t old_size, size_t new_size)
{
    TL_ASSERT(new_size >= old_size, "%zu bytes grow to %zu", old_size, new_size);
    size_t have = round_up(old_size), need = round_up(new_size);
    if (old && have && (char *)old + have == arena->cur && need >= have &&
        (size_t)(arena->end - arena->cur) >= need - have) {
        memset(arena->cur, 0, need - have); /* the newest block grows in place */
        arena->cur += need - have;
        return old;
    }
    void *p = tl_alloc(arena, new_size);
    if (old_size) memcpy(p, old, old_size < new_size ? old_size : new_size);
    return p;
}

char *tl_strndup(TlArena *arena, const char *text, size_t length)
{
    TL_ASSERT(text || !length, "%zu bytes of no text", length);
    char *p = tl_alloc(arena, length + 1);
    if (length) memcpy(p, text, length);
    return p;
}

char *tl_vformat(TlArena *arena, const char *format, va_list args)
{
    TL_ASSERT(format, "no format");
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    TL_ASSERT(n >= 0, "format '%s' failed", format);
    char *p = tl_alloc(arena, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, format, args);
    return p;
}

char *tl_format(TlArena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *p = tl_vformat(arena, format, args);
    va_end(args);
    return p;
}
