/* emu_async.c: copies that a thread starts and waits for later (cp.async).
 *
 * The schedule says when the bytes really move, because a program must not depend on it:
 *   late     in the wait for the copy's group; until then its target is poison. A program that
 *            reads too early gets rubbish, and what it writes to the source too early is copied.
 *            Schedules rr, ahead.
 *   early    at once: a program that still needed the old contents has lost them. Schedule reverse.
 *   random   at any leaf of the thread in between, in any order. Schedule random.
 * In all cases, the copy counts as in flight until it is waited for: the watch reports anyone who
 * touches its target or writes its source (emu_check_async.c), and a thread that ends before. */
#include "runtime/emu/emu.h"
#include <stdlib.h>

enum { POISON = 0xAB, ODDS = 4 };

struct tl_emu_copies {
    struct {
        tl_emu_copy copy;
        uint64_t group; /* the number of commits before it */
        bool moved;
    } * data;
    uint32_t n, room; /* in the order in which they began */
    uint64_t commits;
};

static tl_emu_copies *copies_of(tl_emu_block *b)
{
    TL_EMU_INVARIANT(b, UINT32_MAX, b->current->index < b->room_copies, "thread %u of %u",
                     b->current->index, b->room_copies);
    return &b->copies[b->current->index];
}

bool tl_emu_copies_make_room(tl_emu_block *b, uint32_t threads)
{
    tl_emu_copies_free(b);
    b->copies = calloc(threads, sizeof *b->copies);
    b->room_copies = b->copies ? threads : 0;
    return b->copies != NULL;
}

void tl_emu_copies_free(tl_emu_block *b)
{
    for (uint32_t i = 0; i < b->room_copies; i++)
        free(b->copies[i].data);
    free(b->copies);
    b->copies = NULL;
    b->room_copies = 0;
}

void tl_emu_copies_reset(tl_emu_block *b)
{
    TL_INVARIANT_VOID(b->nthreads <= b->room_copies, "%u threads, copies of %u", b->nthreads,
                      b->room_copies);
    for (uint32_t i = 0; i < b->nthreads; i++)
        b->copies[i].n = 0, b->copies[i].commits = 0;
}

/* ---- moving ---- */

static void move(tl_emu_block *b, const tl_emu_copy *c)
{
    char *to = b->shared + c->offset;
    TL_EMU_INVARIANT(b, c->site, (uint64_t)c->offset + c->bytes <= b->room_shared,
                     "a copy of %u bytes to offset %u of %u", c->bytes, c->offset, b->room_shared);
    if (c->inside)
        memcpy(to, (const void *)(uintptr_t)c->at, c->bytes);
    else
        memset(to, 0, c->bytes);
}

static void move_one(tl_emu_block *b, tl_emu_copies *all, uint32_t i)
{
    if (!all->data[i].moved)
        move(b, &all->data[i].copy);
    all->data[i].moved = true;
}

static void progress(tl_emu_block *b)
{
    tl_emu_copies *all = copies_of(b);
    if (all->n && tl_emu_random(b) % ODDS == 0)
        move_one(b, all, (uint32_t)(tl_emu_random(b) % all->n));
}

void tl_emu_step(tl_emu_block *b)
{
    enum { TURN_ODDS = 256 };
    if (b->random)
        progress(b);
    if (b->random && tl_emu_random(b) % TURN_ODDS == 0) {
        b->event = TL_EMU_TURN;
        tl_fiber_switch(&b->current->fiber, b->main);
        return;
    }
    if (b->random || b->job->schedule.order == TL_EMU_AHEAD)
        tl_emu_switch_away(b);
}

/* ---- a copy's life ---- */

static void remember(tl_emu_block *b, const tl_emu_copy *c)
{
    tl_emu_copies *all = copies_of(b);
    TL_EMU_INVARIANT(b, c->site, all->n <= all->room, "%u copies, room for %u", all->n, all->room);
    all->data = tl_emu_room(b, all->data, all->n, &all->room, sizeof *all->data);
    all->data[all->n].copy = *c;
    all->data[all->n].group = all->commits;
    all->data[all->n].moved = false;
    all->n++;
    if (b->job->schedule.order == TL_EMU_REVERSE)
        move_one(b, all, all->n - 1);
    else
        memset(b->shared + c->offset, POISON, c->bytes);
}

static void begin_copy(uint32_t site, uint32_t pred, uint32_t offset, uint64_t at, uint32_t inside,
                       uint32_t bytes)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_copy c = {.site = site,
                     .thread = b->current->index,
                     .offset = offset,
                     .bytes = bytes,
                     .at = at,
                     .inside = inside};
    if (!pred)
        tl_emu_block_copy_skip(b->watch, site, c.thread);
    else if (tl_emu_block_copy_begins(b->watch, &c))
        remember(b, &c);
}

void tl_emu_cp_commit(uint32_t site)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_CP_COMMIT);
    if (b)
        copies_of(b)->commits++;
}

void tl_emu_cp_wait(uint32_t site, uint32_t pending)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_CP_WAIT);
    if (!b)
        return;
    tl_emu_copies *all = copies_of(b);
    uint32_t stay = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        TL_EMU_INVARIANT(b, all->data[i].copy.site, all->data[i].group <= all->commits,
                         "a copy of a group that is not begun");
        if (all->data[i].group + pending >= all->commits) {
            all->data[stay++] = all->data[i];
            continue;
        }
        move_one(b, all, i);
        tl_emu_block_copy_ends(b->watch, &all->data[i].copy);
    }
    all->n = stay;
}

void tl_emu_copies_ended(tl_emu_block *b, const tl_emu_thread *t)
{
    const tl_emu_copies *all = &b->copies[t->index];
    if (all->n)
        tl_emu_say(b, TL_RUN_ASYNC, all->data[0].copy.site,
                   "thread %u has ended before it waited for this copy", t->index);
}

#define COPY(n)                                                                                    \
    void tl_emu_cp_async_##n(uint32_t site, uint32_t pred, uint32_t slot, uint32_t offset,         \
                             uint64_t at, uint32_t inside, uint32_t hints)                         \
    {                                                                                              \
        (void)hints;                                                                               \
        begin_copy(site, pred, slot + offset, at, inside, n);                                      \
    }
COPY(4)
COPY(8)
COPY(16)
