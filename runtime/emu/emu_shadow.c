/* emu_shadow.c: for each byte, who wrote it last and who has read it since: FastTrack's rule, with
 * the order of emu_watch.h.
 *
 * Cells. Memory is shadowed in pages of 1 KiB that come when they are touched. A page has cells of
 * one size, that of the smallest access to it so far; a smaller one splits them all. A cell's
 * accesses cover all of its bytes, so splitting copies and nothing is lost or made up, whatever the
 * mixture of widths.
 *
 * Last write. One stamp is enough: writes before it that are not ordered have been reported.
 *
 * Crowds. Reads (and atomics, which may be unordered among themselves) need all that are not
 * ordered before another one. A crowd keeps the newest access of two blocks and of each a second
 * thread of the same epoch. Without order between blocks that is exact, since whoever comes next is
 * at most one thread of one block; with it, a third block's access may be forgotten and its race be
 * missed, never one made up. */
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu_watch.h"

enum { PAGE_BITS = 10, PAGE_BYTES = 1 << PAGE_BITS, CROWDS = TL_EMU_WRITES };

typedef struct crowd {
    tl_emu_stamp newest[2]; /* of different blocks */
    tl_emu_stamp second[2]; /* another thread of newest[i]'s block and epoch */
} crowd;

struct tl_emu_page {
    uint64_t number;
    uint32_t cell_bits; /* log2 of a cell's bytes */
    tl_emu_stamp *writes;
    crowd *crowds[CROWDS]; /* NULL: none yet */
};

/* When do two unordered accesses of different threads race? */
enum { NEVER, ALWAYS, IF_NARROW };
static const uint8_t races[TL_EMU_WRITES + 1][TL_EMU_WRITES + 1] = {
    /*                        reads   atomic reads  atomic writes  writes */
    [TL_EMU_READS] = {NEVER, NEVER, ALWAYS, ALWAYS},
    [TL_EMU_ATOMIC_READS] = {NEVER, NEVER, IF_NARROW, ALWAYS},
    [TL_EMU_ATOMIC_WRITES] = {ALWAYS, IF_NARROW, IF_NARROW, ALWAYS},
    [TL_EMU_WRITES] = {ALWAYS, ALWAYS, ALWAYS, ALWAYS},
};

_Static_assert(TL_EMU_WRITES == 3, "the effects before it are kept as crowds");

/* ---- pages ---- */

static void free_page(tl_emu_page *p)
{
    for (int i = 0; p && i < CROWDS; i++)
        free(p->crowds[i]);
    if (p)
        free(p->writes);
    free(p);
}

void tl_emu_shadow_free(tl_emu_shadow *s)
{
    for (uint32_t i = 0; i < s->nbuckets; i++)
        free_page(s->pages[i]);
    free(s->pages);
    *s = (tl_emu_shadow){0};
}

static uint32_t bucket_of(tl_emu_page *const *pages, uint32_t nbuckets, uint64_t number)
{
    TL_INVARIANT_OR(0, nbuckets > 0 && (nbuckets & (nbuckets - 1)) == 0, "%u buckets", nbuckets);
    uint32_t i = (uint32_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (nbuckets - 1);
    while (pages[i] && pages[i]->number != number)
        i = (i + 1) & (nbuckets - 1);
    return i;
}

static bool grow(tl_emu_shadow *s)
{
    uint32_t nbuckets = s->nbuckets ? 2 * s->nbuckets : 16;
    tl_emu_page **pages = calloc(nbuckets, sizeof *pages);
    if (!pages)
        return false;
    for (uint32_t i = 0; i < s->nbuckets; i++)
        if (s->pages[i])
            pages[bucket_of(pages, nbuckets, s->pages[i]->number)] = s->pages[i];
    free(s->pages);
    s->pages = pages;
    s->nbuckets = nbuckets;
    return true;
}

static tl_emu_page *new_page(uint64_t number, uint32_t cell_bits)
{
    tl_emu_page *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->number = number;
    p->cell_bits = cell_bits;
    p->writes = calloc(PAGE_BYTES >> cell_bits, sizeof *p->writes);
    if (p->writes)
        return p;
    free(p);
    return NULL;
}

static tl_emu_page *find_page(tl_emu_shadow *s, uint64_t number, uint32_t cell_bits)
{
    if (2 * (s->npages + 1) > s->nbuckets && !grow(s))
        return NULL;
    TL_INVARIANT_OR(NULL, 2 * s->npages < s->nbuckets, "%u pages in %u buckets", s->npages,
                    s->nbuckets);
    tl_emu_page **at = &s->pages[bucket_of(s->pages, s->nbuckets, number)];
    if (!*at) {
        *at = new_page(number, cell_bits);
        s->npages += *at != NULL;
    }
    return *at;
}

/* A copy of n elements in which each is repeated `times` times. */
static void *repeat(const void *from, size_t n, size_t size, size_t times)
{
    char *to = malloc(n * times * size);
    for (size_t i = 0; to && i < n * times; i++)
        memcpy(to + i * size, (const char *)from + i / times * size, size);
    return to;
}

static bool split(tl_emu_page *p, uint32_t cell_bits)
{
    TL_INVARIANT_OR(false, cell_bits < p->cell_bits && p->cell_bits <= PAGE_BITS,
                    "cells of 2^%u bytes split into 2^%u", p->cell_bits, cell_bits);
    size_t n = PAGE_BYTES >> p->cell_bits, times = (size_t)1 << (p->cell_bits - cell_bits);
    tl_emu_stamp *writes = repeat(p->writes, n, sizeof *writes, times);
    crowd *crowds[CROWDS] = {0};
    bool ok = writes != NULL;
    for (int i = 0; i < CROWDS; i++) {
        if (p->crowds[i])
            crowds[i] = repeat(p->crowds[i], n, sizeof(crowd), times);
        ok = ok && (!p->crowds[i] || crowds[i]);
    }
    if (!ok) {
        for (int i = 0; i < CROWDS; i++)
            free(crowds[i]);
        free(writes);
        return false;
    }
    for (int i = 0; i < CROWDS; i++) {
        free(p->crowds[i]);
        p->crowds[i] = crowds[i];
    }
    free(p->writes);
    p->writes = writes;
    p->cell_bits = cell_bits;
    return true;
}

/* ---- one cell ---- */

typedef struct entry {
    const tl_emu_order *order;
    tl_emu_effect effect;
    tl_emu_stamp stamp;
} entry;

/* Are both stores of one execution of an op where any value may win? */
static bool is_same_execution(const entry *e, tl_emu_stamp s)
{
    const uint32_t *ops = e->order->ops;
    return s.block == e->stamp.block && s.special && e->stamp.special && ops &&
           ops[s.site] == ops[e->stamp.site] && s.visit == e->stamp.visit;
}

static bool conflicts(const entry *e, tl_emu_effect with, tl_emu_stamp s)
{
    if (tl_emu_is_before(e->order, e->stamp.thread, s))
        return false;
    if (races[e->effect][with] == IF_NARROW)
        return s.block != e->stamp.block && (s.special || e->stamp.special);
    return e->effect != TL_EMU_WRITES || with != TL_EMU_WRITES || !is_same_execution(e, s);
}

static const tl_emu_stamp *find_conflict(const tl_emu_page *p, size_t cell, const entry *e,
                                         tl_emu_effect *out_with)
{
    *out_with = TL_EMU_WRITES;
    if (conflicts(e, TL_EMU_WRITES, p->writes[cell]))
        return &p->writes[cell];
    for (int with = 0; with < CROWDS; with++) {
        if (!p->crowds[with] || races[e->effect][with] == NEVER)
            continue;
        *out_with = (tl_emu_effect)with;
        const crowd *c = &p->crowds[with][cell];
        for (int i = 0; i < 2; i++) {
            if (conflicts(e, *out_with, c->newest[i]))
                return &c->newest[i];
            if (conflicts(e, *out_with, c->second[i]))
                return &c->second[i];
        }
    }
    return NULL;
}

static void swap(crowd *c)
{
    crowd old = *c;
    for (int i = 0; i < 2; i++) {
        c->newest[i] = old.newest[1 - i];
        c->second[i] = old.second[1 - i];
    }
}

/* Everything in entry 0 happened before this access: it can be forgotten. */
static bool is_settled(const crowd *c, const entry *e)
{
    return tl_emu_is_before(e->order, e->stamp.thread, c->newest[0]) &&
           tl_emu_is_before(e->order, e->stamp.thread, c->second[0]);
}

static void clear(crowd *c, int i)
{
    static const tl_emu_stamp none;
    c->newest[i] = c->second[i] = none;
}

static bool is_of(const crowd *c, int i, uint32_t block)
{
    return c->newest[i].tick && c->newest[i].block == block;
}

/* Makes entry 0 this block's (or empty) and entry 1 the newest other's. */
static void make_room(crowd *c, const entry *e)
{
    if (is_settled(c, e))
        clear(c, 0);
    if (c->newest[0].tick || is_of(c, 1, e->stamp.block))
        swap(c);
    if (!is_of(c, 0, e->stamp.block))
        clear(c, 0);
}

static void enter_crowd(crowd *c, const entry *e)
{
    const tl_emu_stamp s = e->stamp;
    TL_INVARIANT_VOID(s.tick > 0, "an access at no time");
    if (!is_of(c, 0, s.block))
        make_room(c, e);
    if (c->newest[0].tick < e->order->epoch)
        clear(c, 0);
    if (c->newest[0].tick && c->newest[0].thread != s.thread)
        c->second[0] = c->newest[0];
    TL_INVARIANT_VOID(!is_of(c, 1, s.block), "a crowd of one block only");
    c->newest[0] = s;
}

static void enter_cell(tl_emu_page *p, size_t cell, const entry *e)
{
    static const crowd nobody;
    if (e->effect != TL_EMU_WRITES) {
        enter_crowd(&p->crowds[e->effect][cell], e);
        return;
    }
    p->writes[cell] = e->stamp;
    for (int i = 0; i < CROWDS; i++)
        if (p->crowds[i])
            p->crowds[i][cell] = nobody; /* all are before this write, or reported */
}

/* ---- an access ---- */

static uint32_t log2_of(uint32_t bytes)
{
    return (uint32_t)__builtin_ctz(bytes);
}

static bool prepare(tl_emu_page *p, tl_emu_effect effect, uint32_t cell_bits)
{
    if (cell_bits < p->cell_bits && !split(p, cell_bits))
        return false;
    if (effect != TL_EMU_WRITES && !p->crowds[effect])
        p->crowds[effect] = calloc(PAGE_BYTES >> p->cell_bits, sizeof(crowd));
    return effect == TL_EMU_WRITES || p->crowds[effect];
}

tl_emu_verdict tl_emu_shadow_enter(tl_emu_shadow *s, const tl_emu_order *o, tl_emu_effect effect,
                                   tl_emu_stamp stamp, uint64_t at, uint32_t bytes,
                                   tl_emu_conflict *out)
{
    entry e = {o, effect, stamp};
    TL_INVARIANT_OR(TL_EMU_FINE, bytes > 0 && bytes <= 16 && (bytes & (bytes - 1)) == 0,
                    "an access of %u bytes", bytes);
    TL_INVARIANT_OR(TL_EMU_FINE, at % bytes == 0, "%u bytes at %llu", bytes,
                    (unsigned long long)at);
    tl_emu_verdict verdict = TL_EMU_FINE;
    uint32_t offset = (uint32_t)(at & (PAGE_BYTES - 1));
    tl_emu_page *p = find_page(s, at >> PAGE_BITS, log2_of(bytes));
    if (!p || !prepare(p, effect, log2_of(bytes)))
        return TL_EMU_NO_MEMORY;
    TL_INVARIANT_OR(TL_EMU_FINE, p->cell_bits <= log2_of(bytes), "cells of 2^%u bytes",
                    p->cell_bits);
    size_t first = offset >> p->cell_bits, end = (offset + bytes) >> p->cell_bits;
    for (size_t cell = first; cell < end; cell++) {
        tl_emu_effect with;
        const tl_emu_stamp *found =
            verdict == TL_EMU_FINE ? find_conflict(p, cell, &e, &with) : NULL;
        if (found) {
            *out = (tl_emu_conflict){*found, with, at - offset + (cell << p->cell_bits)};
            verdict = TL_EMU_RACES;
        }
        enter_cell(p, cell, &e);
    }
    return verdict;
}

void tl_emu_shadow_restamp(tl_emu_shadow *s, uint32_t thread, tl_emu_stamp stamp, uint64_t at,
                           uint32_t bytes)
{
    uint32_t i = s->nbuckets ? bucket_of(s->pages, s->nbuckets, at >> PAGE_BITS) : 0,
             offset = (uint32_t)(at & (PAGE_BYTES - 1));
    const tl_emu_page *p = s->nbuckets ? s->pages[i] : NULL;
    TL_INVARIANT_VOID(offset + bytes <= PAGE_BYTES, "%u bytes at %u", bytes, offset);
    for (uint32_t c = p ? offset >> p->cell_bits : 0; p && c << p->cell_bits < offset + bytes; c++)
        if (p->writes[c].thread == thread && p->writes[c].block == stamp.block)
            p->writes[c] = stamp;
}
