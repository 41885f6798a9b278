/* emu_bulk_store.c: boxes of a view that a thread stores from shared memory (cp.async.bulk.tensor
 * to global memory), in groups that it commits and waits for.
 *
 * The schedule says when a store really reads shared memory, and writes:
 *   late     when the thread waits for its group. Schedules rr, ahead.
 *   early    at once. Schedule reverse.
 *   random   one or the other. Schedule random.
 * In all cases, it counts as in flight until it has been waited for: the watch reports anyone who
 * writes what it reads, anything that threads had not made visible to it, and in global memory
 * anyone, another bulk store included, who touches what it writes, until a wait for that or the
 * kernel's end. Most waits are for reading only, as `.read` says. */
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu_box.h"

enum { ODDS = 2 };

struct tl_emu_stores {
    tl_emu_box *all; /* on their way to memory, oldest first */
    uint32_t n, room;
    uint64_t commits[TL_EMU_MAX_THREADS]; /* of each thread */
};

void tl_emu_stores_free(tl_emu_block *b)
{
    if (b->stores)
        free(b->stores->all);
    free(b->stores);
    b->stores = NULL;
}

void tl_emu_stores_reset(tl_emu_block *b)
{
    if (!b->stores)
        return;
    b->stores->n = 0;
    memset(b->stores->commits, 0, sizeof b->stores->commits);
}

static struct tl_emu_stores *stores_of(tl_emu_block *b)
{
    if (!b->stores) {
        b->stores = tl_emu_grown(b, NULL, 1, sizeof *b->stores);
        memset(b->stores, 0, sizeof *b->stores);
    }
    return b->stores;
}

static void move(tl_emu_block *b, tl_emu_box *x)
{
    for (uint32_t i = 0; i < tl_emu_box_pieces(x) && !x->moved; i++) {
        tl_emu_box_piece p = tl_emu_box_piece_of(x, i);
        uint32_t bytes = x->map.bytes, skipped = p.from * bytes;
        if (p.to > p.from)
            memcpy((void *)(uintptr_t)(p.at + skipped), b->shared + p.offset + skipped,
                   (p.to - p.from) * bytes);
    }
    x->moved = true;
}

/* Says of the elements of a piece that they are on their way, or written (`over`): at once where
 * they are 16 bytes. */
static bool tell_piece(tl_emu_block *b, const tl_emu_box *x, const tl_emu_box_piece *p, bool over)
{
    bool whole = p->from == 0 && p->to == p->elements && p->at % TL_EMU_PIECE == 0, fine = true;
    uint32_t bytes = whole ? TL_EMU_PIECE : x->map.bytes, n = whole ? 1 : p->to - p->from;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = p->at + p->from * x->map.bytes + i * bytes;
        if (over)
            tl_emu_block_stored(b->watch, x->site, x->thread, at, bytes);
        else
            fine &= tl_emu_block_stores(b->watch, x->site, x->thread, at, bytes);
    }
    return fine;
}

static void begin_bulk_store(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset,
                             uint32_t rank, const int32_t *at)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, (tl_leaf)(TL_LEAF_BULK_STORE_1 + rank - 1));
    if (!pred)
        return;
    struct tl_emu_stores *s = stores_of(b);
    tl_emu_box x = tl_emu_box_of(b, site, map, offset, rank, at);
    x.group = s->commits[x.thread];
    for (uint32_t i = 0; i < tl_emu_box_pieces(&x); i++) {
        tl_emu_box_piece p = tl_emu_box_piece_of(&x, i);
        if (!tl_emu_block_sends(b->watch, site, x.thread, p.offset, false) ||
            !tell_piece(b, &x, &p, false))
            tl_emu_break(b);
    }
    s->all = tl_emu_room(b, s->all, s->n, &s->room, sizeof *s->all);
    s->all[s->n++] = x;
    if (b->job->schedule.order == TL_EMU_REVERSE || (b->random && tl_emu_random(b) % ODDS == 0))
        move(b, &s->all[s->n - 1]);
}

#define AT(...) ((int32_t[]){__VA_ARGS__})
#define STORE(n, at, ...)                                                                          \
    void tl_emu_bulk_store_##n(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset,        \
                               __VA_ARGS__)                                                        \
    {                                                                                              \
        begin_bulk_store(site, pred, map, offset, n, at);                                          \
    }
STORE(1, AT(a), int32_t a)
STORE(2, AT(a, c), int32_t a, int32_t c)
STORE(3, AT(a, c, d), int32_t a, int32_t c, int32_t d)
STORE(4, AT(a, c, d, e), int32_t a, int32_t c, int32_t d, int32_t e)
STORE(5, AT(a, c, d, e, f), int32_t a, int32_t c, int32_t d, int32_t e, int32_t f)

void tl_emu_bulk_commit(uint32_t site)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_BULK_COMMIT);
    if (b)
        stores_of(b)->commits[b->current->index]++;
}

/* It has read; or it is over. */
static void end_bulk_store(tl_emu_block *b, tl_emu_box *x, bool written)
{
    move(b, x);
    for (uint32_t i = 0; i < tl_emu_box_pieces(x); i++) {
        tl_emu_box_piece p = tl_emu_box_piece_of(x, i);
        if (!x->read)
            tl_emu_block_sends(b->watch, x->site, x->thread, p.offset, true);
        if (written)
            tell_piece(b, x, &p, true);
    }
    x->read = true;
}

void tl_emu_bulk_wait(uint32_t site, uint32_t pending, uint32_t written)
{
    tl_emu_block *b = tl_emu_now;
    struct tl_emu_stores *s = b->stores;
    uint32_t stay = 0, me = b->current->index;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, TL_LEAF_BULK_WAIT);
    bool dropped = tl_emu_is_dropped(b, site), all = written && tl_emu_waits_for_memory(b, site);
    for (uint32_t i = 0; s && !dropped && i < s->n; i++) {
        tl_emu_box *x = &s->all[i];
        bool over = x->thread == me && x->group + pending < s->commits[me];
        if (over && (all || !x->read))
            end_bulk_store(b, x, all);
        if (!over || !all)
            s->all[stay++] = *x;
    }
    if (s && !dropped)
        s->n = stay;
}

void tl_emu_stores_ended(tl_emu_block *b)
{
    for (uint32_t i = 0; b->stores && i < b->stores->n; i++)
        if (!b->stores->all[i].read) {
            tl_emu_say(b, TL_RUN_ASYNC, b->stores->all[i].site,
                       "the program has ended before this store had read shared memory");
            return;
        }
}
