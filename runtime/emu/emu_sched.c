/* emu_sched.c: which thread of a block runs next.
 *
 * A block's threads have positions; a schedule is an order of positions and a rule of choice.
 * `ready` has those who may run, the current one included; `idle` those who may, but have said that
 * they only spin until somebody else has done something. When `ready` is empty, the idle get their
 * next try, after the worker has looked at its other blocks (TL_EMU_TURN).
 *
 *   round robin  thread order; the next ready one
 *   reverse      the other way round
 *   ahead        strict priority by position; the leading warp (another in each block) comes first,
 *                so it runs until it must wait for the others
 *   random       anybody, after every leaf
 *
 * Threads switch to each other directly; the worker's own context is entered for the events alone.
 * A thread gets a stack when it first runs. One that has ended hands its stack to the next that
 * begins, without a switch: threads that wait for nobody are function calls in a loop. */
#include "runtime/emu/emu.h"
#include <stdlib.h>

bool tl_emu_schedule_parse(const char *text, tl_emu_schedule *out_schedule)
{
    static const char *const names[] = {"rr", "reverse", "ahead"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *out_schedule = (tl_emu_schedule){(tl_emu_policy)i, 0};
            return true;
        }
    if (strncmp(text, "random:", 7) != 0)
        return false;
    char *end;
    out_schedule->order = TL_EMU_RANDOM;
    out_schedule->seed = strtoull(text + 7, &end, 10);
    return text[7] && *end == 0;
}

/* ---- sets ---- */

void tl_emu_set_add(tl_emu_set *s, uint32_t position)
{
    TL_DEBUG_INVARIANT(position < TL_EMU_MAX_THREADS, "position %u", position);
    uint64_t bit = UINT64_C(1) << position % 64, *word = &s->words[position / 64];
    s->count += !(*word & bit);
    *word |= bit;
}

void tl_emu_set_remove(tl_emu_set *s, uint32_t position)
{
    TL_DEBUG_INVARIANT(position < TL_EMU_MAX_THREADS, "position %u", position);
    uint64_t bit = UINT64_C(1) << position % 64, *word = &s->words[position / 64];
    s->count -= !!(*word & bit);
    *word &= ~bit;
}

/* The first member at or after `position`, wrapping around; the set is not empty. */
static uint32_t next_member(const tl_emu_set *s, uint32_t position, uint32_t nwords)
{
    TL_INVARIANT_OR(0, s->count > 0 && nwords > 0, "nobody is in the set");
    uint32_t w = position / 64 % nwords;
    uint64_t word = s->words[w] & ~UINT64_C(0) << position % 64;
    while (!word)
        word = s->words[w = (w + 1) % nwords];
    return w * 64 + (uint32_t)__builtin_ctzll(word);
}

/* ---- order and choice ---- */

/* splitmix64 */
uint64_t tl_emu_random(tl_emu_block *b)
{
    uint64_t z = b->chance += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void tl_emu_block_order(tl_emu_block *b)
{
    const tl_emu_schedule *s = &b->job->schedule;
    uint32_t n = b->nthreads, shift = 0;
    if (s->order == TL_EMU_AHEAD)
        shift = (uint32_t)(b->linear % b->nwarps) * b->lanes;
    TL_INVARIANT_VOID(n > 0 && n <= TL_EMU_MAX_THREADS && b->nwarps * b->lanes == n,
                      "%u threads in %u warps of %u", n, b->nwarps, b->lanes);
    memset(&b->ready, 0, sizeof b->ready);
    memset(&b->idle, 0, sizeof b->idle);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t position = s->order == TL_EMU_REVERSE ? n - 1 - i : (i + n - shift) % n;
        b->threads[i].position = position;
        b->order[position] = (uint16_t)i;
        tl_emu_set_add(&b->ready, i);
    }
    TL_INVARIANT_VOID(b->ready.count == n, "%u of %u threads are ready", b->ready.count, n);
    b->random = s->order == TL_EMU_RANDOM;
    b->chance = s->seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)b->linear;
}

/* Chooses a ready thread; `ready` is not empty. */
static tl_emu_thread *choose(tl_emu_block *b)
{
    uint32_t from = 0;
    if (b->random)
        from = (uint32_t)(tl_emu_random(b) % b->nthreads);
    else if (b->job->schedule.order != TL_EMU_AHEAD && b->current)
        from = b->current->position + 1;
    uint32_t position = next_member(&b->ready, from, (b->nthreads + 63) / 64);
    TL_DEBUG_INVARIANT(position < b->nthreads, "position %u of %u", position, b->nthreads);
    uint32_t after = position + 1 < b->nthreads ? position + 1 : 0;
    __builtin_prefetch(b->threads[b->order[after]].fiber.sp); /* the likely choice after this one */
    return &b->threads[b->order[position]];
}

/* ---- switching ---- */

/* Gives `t` its stack. False: no memory; the block is broken. */
static bool begin_thread(tl_emu_block *b, tl_emu_thread *t)
{
    t->stack = tl_fiber_stack_take(b->stacks);
    if (!t->stack) {
        b->job->no_memory = true;
        b->event = TL_EMU_BROKEN;
        return false;
    }
    tl_fiber_prepare(&t->fiber, b->stacks, t->stack, b->life, b);
    return true;
}

/* The context to continue with: a thread, or the worker's, with an event set. */
static tl_fiber *next_context(tl_emu_block *b)
{
    if (b->ready.count == 0) {
        bool stuck = b->idle.count == 0 && !b->at_meeting;
        b->event = b->ended == b->nthreads ? TL_EMU_ENDED : stuck ? TL_EMU_STUCK : TL_EMU_TURN;
        return b->main;
    }
    tl_emu_thread *t = choose(b);
    if (!t->stack && !begin_thread(b, t))
        return b->main;
    b->current = t;
    return &t->fiber;
}

tl_emu_event tl_emu_block_slice(tl_emu_block *b)
{
    if (b->ready.count == 0) {
        b->ready = b->idle;
        memset(&b->idle, 0, sizeof b->idle);
    }
    TL_INVARIANT_OR(TL_EMU_BROKEN, !tl_emu_now && b->main, "a block runs inside of another one");
    tl_emu_now = b;
    tl_fiber *to = next_context(b);
    if (to != b->main)
        tl_fiber_switch(b->main, to);
    tl_emu_now = NULL;
    return b->event;
}

void tl_emu_switch_away(tl_emu_block *b)
{
    tl_emu_thread *t = b->current;
    tl_fiber *to = next_context(b);
    if (to != &t->fiber)
        tl_fiber_switch(&t->fiber, to);
}

void tl_emu_spin(tl_emu_block *b)
{
    TL_EMU_INVARIANT(b, b->current->site, !b->current->waits, "a thread that waits spins");
    tl_emu_set_remove(&b->ready, b->current->position);
    tl_emu_set_add(&b->idle, b->current->position);
    tl_emu_switch_away(b);
}

void tl_emu_leave(tl_emu_block *b)
{
    tl_emu_thread *t = b->current;
    tl_emu_set_remove(&b->ready, t->position);
    tl_emu_thread *next = b->ready.count ? choose(b) : NULL;
    if (next && !next->stack) {
        next->stack = t->stack;
        next->fiber = t->fiber;
        t->stack = NULL;
        b->current = next;
        return;
    }
    tl_fiber *to = next_context(b);
    tl_fiber_stack_give(b->stacks, t->stack);
    t->stack = NULL;
    tl_fiber_leave(&t->fiber, to);
}
