/* emu_block.c: what leaves need from their block: whether this leaf is left out (mutation),
 * counters, messages, and how a block ends that cannot go on. */
#include "runtime/emu/emu.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Thread_local tl_emu_block *tl_emu_now;

/* ---- leaves ---- */

void tl_emu_count(tl_emu_block *b, uint32_t site, tl_leaf leaf)
{
    if (b->job->stats)
        tl_emu_block_count(b->watch, site, b->current->index, leaf);
}

static bool is_mutated(tl_emu_block *b, uint32_t site)
{
    if (site == b->job->dropped)
        atomic_store_explicit(&b->job->met, true, memory_order_relaxed);
    return site == b->job->dropped;
}

bool tl_emu_is_dropped(tl_emu_block *b, uint32_t site)
{
    return b->job->mutation == TL_EMU_LEAVE_OUT && is_mutated(b, site);
}

tl_emu_block *tl_emu_enter(uint32_t site, tl_leaf leaf)
{
    tl_emu_block *b = tl_emu_now;
    if (tl_emu_is_dropped(b, site))
        return NULL;
    tl_emu_count(b, site, leaf);
    return b;
}

uint32_t tl_emu_bytes_expected(tl_emu_block *b, uint32_t site, uint32_t bytes)
{
    enum { PIECE = 16 };
    if (b->job->mutation == TL_EMU_LEAVE_OUT || !is_mutated(b, site))
        return bytes;
    return b->job->mutation == TL_EMU_MORE_BYTES ? bytes + PIECE : bytes / 2;
}

bool tl_emu_waits_for_memory(tl_emu_block *b, uint32_t site)
{
    return b->job->mutation != TL_EMU_READ_ONLY || !is_mutated(b, site);
}

/* ---- reports ---- */

void tl_emu_report_failure(void *user, int64_t block, tl_fail_kind kind, uint32_t site,
                           const char *text)
{
    const tl_emu_job *job = user;
    const tile_image_site *s = tl_emu_site(job->launch, site);
    tl_sink_fail(job->sink, job->launch, block, kind,
                 s ? tl_image_path(job->launch->image, s->file) : NULL, s ? s->line : 0,
                 s ? s->col : 0, text);
}

static void say(tl_emu_block *b, tl_fail_kind kind, uint32_t site, const char *format, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    tl_emu_report_failure(b->job, b->linear, kind, site, text);
}

void tl_emu_say(tl_emu_block *b, tl_fail_kind kind, uint32_t site, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(b, kind, site, format, args);
    va_end(args);
}

void tl_emu_complain(tl_emu_block *b, tl_fail_kind kind, uint32_t site, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(b, kind, site, format, args);
    va_end(args);
    tl_emu_break(b);
}

void tl_emu_broken(tl_emu_block *b, uint32_t site)
{
    static const char prefix[] = "internal error: "; /* the report has its own */
    bool known = tl_broken_status() != TILE_OK;
    tl_emu_complain(b, TL_RUN_INTERNAL, site, "%s",
                    known ? tile_last_error() + sizeof prefix - 1 : "an invariant of the emulator");
}

/* ---- the end ---- */

void tl_emu_break(tl_emu_block *b)
{
    b->event = TL_EMU_BROKEN;
    tl_fiber_leave(&b->current->fiber, b->main);
}

void *tl_emu_grown(tl_emu_block *b, void *data, size_t n, size_t size)
{
    void *more = realloc(data, n * size);
    if (!more) {
        b->job->no_memory = true;
        tl_emu_break(b);
    }
    return more;
}

void *tl_emu_room(tl_emu_block *b, void *data, uint32_t n, uint32_t *room, size_t size)
{
    if (n < *room)
        return data;
    *room = *room ? 2 * *room : 16;
    return tl_emu_grown(b, data, *room, size);
}
