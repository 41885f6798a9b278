/* emu_check_memory.c: which bytes of device memory anything has written: one bit per byte of each
 * allocation, in one registry per process. Bits are set by the host's copies and fills and by the
 * stores of checked kernels; launches run on several host threads, so the words are atomic. An
 * allocation is not freed while a launch uses it: who has found it needs no lock. */
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu_watch.h"
#include "runtime/life.h"

struct tl_emu_memory {
    tl_emu_memory *next;
    uintptr_t at;
    uint64_t bytes;
    atomic_bool whole;
    atomic_uint_fast64_t written[];
};
_Static_assert(sizeof(atomic_uint_fast64_t) == 8, "64 bytes to a word");

static struct {
    pthread_mutex_t lock;
    tl_emu_memory *first;
} registry = {PTHREAD_MUTEX_INITIALIZER, NULL};

/* ---- forks: other threads may be using other devices, or streams ---- */

static void hold(tl_life *life)
{
    (void)life;
    pthread_mutex_lock(&registry.lock);
}

static void let_go(tl_life *life)
{
    (void)life;
    pthread_mutex_unlock(&registry.lock);
}

static void watch_forks(void)
{
    static tl_life life = {.hold = hold, .let_go = let_go, .forked = let_go};
    tl_life_begin(&life);
}

/* ---- allocations ---- */

tile_status tl_emu_memory_allocated(const void *at, uint64_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    TL_INVARIANT(at, "memory without an address");
    pthread_once(&once, watch_forks);
    tl_emu_memory *m = calloc(1, sizeof *m + (size_t)(bytes + 63) / 64 * 8);
    if (!m)
        return tl_fail(TILE_NO_MEMORY, "out of memory: the shadow of a buffer of %llu bytes",
                       (unsigned long long)bytes);
    m->at = (uintptr_t)at;
    m->bytes = bytes;
    pthread_mutex_lock(&registry.lock);
    m->next = registry.first;
    registry.first = m;
    pthread_mutex_unlock(&registry.lock);
    return TILE_OK;
}

void tl_emu_memory_freed(const void *at)
{
    pthread_mutex_lock(&registry.lock);
    tl_emu_memory **to = &registry.first;
    while (*to && (*to)->at != (uintptr_t)at)
        to = &(*to)->next;
    tl_emu_memory *m = *to;
    if (m)
        *to = m->next;
    pthread_mutex_unlock(&registry.lock);
    TL_INVARIANT_VOID(m, "memory at %p is freed that was not allocated", at);
    free(m);
}

tl_emu_memory *tl_emu_memory_at(const void *at, uint64_t *out_left)
{
    uintptr_t a = (uintptr_t)at;
    pthread_mutex_lock(&registry.lock);
    tl_emu_memory *m = registry.first;
    while (m && (a < m->at || a - m->at >= m->bytes))
        m = m->next;
    *out_left = m ? m->bytes - (a - m->at) : UINT64_MAX;
    pthread_mutex_unlock(&registry.lock);
    return m;
}

/* The bits of [offset, offset + bytes) that lie in offset's word. */
static uint64_t bits_of(uint64_t offset, uint64_t bytes, uint64_t *out_n)
{
    uint64_t in_word = 64 - offset % 64, n = bytes < in_word ? bytes : in_word;
    *out_n = n;
    return (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1) << offset % 64;
}

uint32_t tl_emu_memory_gap(const tl_emu_memory *m, uint64_t at, uint32_t bytes)
{
    TL_INVARIANT_OR(bytes, at >= m->at && at - m->at + bytes <= m->bytes,
                    "%u bytes at offset %lld of %llu", bytes, (long long)(at - m->at),
                    (unsigned long long)m->bytes);
    if (atomic_load_explicit(&m->whole, memory_order_relaxed))
        return bytes;
    for (uint64_t i = 0, n, offset = at - m->at; i < bytes; i += n) {
        uint64_t bits = bits_of(offset + i, bytes - i, &n);
        uint64_t gaps =
            bits & ~atomic_load_explicit(&m->written[(offset + i) / 64], memory_order_relaxed);
        if (gaps)
            return (uint32_t)(i + (uint64_t)__builtin_ctzll(gaps) - (offset + i) % 64);
    }
    return bytes;
}

void tl_emu_memory_mark(tl_emu_memory *m, uint64_t at, uint64_t bytes)
{
    TL_INVARIANT_VOID(at >= m->at && at - m->at + bytes <= m->bytes,
                      "%llu bytes at offset %lld of %llu", (unsigned long long)bytes,
                      (long long)(at - m->at), (unsigned long long)m->bytes);
    for (uint64_t i = 0, n, offset = at - m->at; i < bytes; i += n) {
        uint64_t bits = bits_of(offset + i, bytes - i, &n);
        atomic_uint_fast64_t *word = &m->written[(offset + i) / 64];
        if (bits & ~atomic_load_explicit(word, memory_order_relaxed))
            atomic_fetch_or_explicit(word, bits, memory_order_relaxed);
    }
}

void tl_emu_memory_written(const void *at, uint64_t bytes)
{
    uint64_t left;
    tl_emu_memory *m = tl_emu_memory_at(at, &left);
    if (m)
        tl_emu_memory_mark(m, (uintptr_t)at, bytes < left ? bytes : left);
}

void tl_emu_memory_give_up(tl_emu_memory *m)
{
    atomic_store_explicit(&m->whole, true, memory_order_relaxed);
}
