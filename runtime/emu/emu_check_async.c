/* emu_check_async.c: copies in flight (emu_watch.h): which bytes of shared memory they will write,
 * and which global memory they may still read.
 *
 * A cell is 4 bytes of shared memory, the smallest unit of a copy; it knows the one copy that is
 * in flight to it. Sources are a list of those that somebody may write during the launch; it is
 * searched when somebody writes global memory while there are any. */
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu_watch.h"

enum { CELL = 4, THREAD_BITS = 11 };

_Static_assert(1 << THREAD_BITS == TL_EMU_STAMP_THREADS, "a name holds every thread");

static uint32_t name_of(const tl_emu_copy *c)
{
    TL_INVARIANT_OR(0, c->thread < 1u << THREAD_BITS && c->site < 1u << (32 - THREAD_BITS),
                    "thread %u at site %u", c->thread, c->site);
    return (c->site << THREAD_BITS | c->thread) + 1; /* 0: no copy */
}

void tl_emu_flights_free(tl_emu_flights *f)
{
    free(f->cells);
    free(f->sources);
    *f = (tl_emu_flights){0};
}

static bool make_room(tl_emu_flights *f, uint32_t shared_bytes)
{
    if (!f->cells)
        f->cells = calloc(shared_bytes / CELL + 1, sizeof *f->cells);
    if (f->cells && f->nsources == f->room) {
        uint32_t room = f->room ? 2 * f->room : 64;
        tl_emu_copy *sources = realloc(f->sources, room * sizeof *sources);
        if (!sources)
            return false;
        f->sources = sources;
        f->room = room;
    }
    return f->cells != NULL;
}

bool tl_emu_flights_add(tl_emu_flights *f, const tl_emu_copy *c, bool watches_source,
                        uint32_t shared_bytes)
{
    if (!make_room(f, shared_bytes))
        return false;
    TL_INVARIANT_OR(true, c->offset % CELL == 0 && c->offset + c->bytes <= shared_bytes,
                    "a copy of %u bytes to offset %u of %u", c->bytes, c->offset, shared_bytes);
    for (uint32_t i = 0; i < c->bytes; i += CELL)
        f->cells[(c->offset + i) / CELL] = name_of(c);
    if (watches_source)
        f->sources[f->nsources++] = *c;
    f->n++;
    return true;
}

void tl_emu_flights_remove(tl_emu_flights *f, const tl_emu_copy *c)
{
    TL_INVARIANT_VOID(f->n > 0 && f->cells, "a copy ends that never began");
    for (uint32_t i = 0; i < c->bytes; i += CELL)
        if (f->cells[(c->offset + i) / CELL] == name_of(c))
            f->cells[(c->offset + i) / CELL] = 0;
    for (uint32_t i = 0; i < f->nsources; i++)
        if (f->sources[i].site == c->site && f->sources[i].thread == c->thread &&
            f->sources[i].at == c->at && f->sources[i].offset == c->offset) {
            f->sources[i] = f->sources[--f->nsources];
            break;
        }
    f->n--;
}

static bool meets_target(const tl_emu_flights *f, const tl_emu_access *a, tl_emu_copy *out)
{
    for (uint64_t at = a->at / CELL; at * CELL < a->at + a->bytes; at++) {
        uint32_t name = f->cells[at];
        if (!name)
            continue;
        *out = (tl_emu_copy){.site = (name - 1) >> THREAD_BITS,
                             .thread = (name - 1) & ((1u << THREAD_BITS) - 1),
                             .offset = (uint32_t)at * CELL};
        return true;
    }
    return false;
}

bool tl_emu_flights_meet(const tl_emu_flights *f, const tl_emu_access *a, tl_emu_copy *out)
{
    if (f->n == 0)
        return false;
    if (a->space == TL_EMU_SHARED)
        return meets_target(f, a, out);
    for (uint32_t i = 0; i < f->nsources && a->kind != TL_EMU_LOAD; i++) {
        *out = f->sources[i];
        if (a->at < out->at + out->bytes && out->at < a->at + a->bytes)
            return true;
    }
    return false;
}
