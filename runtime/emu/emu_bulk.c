/* emu_bulk.c: barriers in shared memory that count arrivals and bytes (mbarrier), and copies of
 * boxes of a view, described by a tensor map, that one thread begins and a barrier counts.
 *
 * When a copy really happens is the schedule's to say:
 *   late     when somebody waits for its barrier; until then its target is poison. Schedules rr,
 *            ahead.
 *   early    at once. Schedule reverse.
 *   random   one or the other. Schedule random.
 * Whatever the time, it counts as on its way until somebody has waited for the phase: the watch
 * reports who touches its target before.
 *
 * Swizzles are said here by the formula of the documents (PTX ISA, "Swizzling modes"): address bits
 * 4 to 6 are XORed with bits 7 to 9, as many as the row of the box has 16-byte pieces. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu.h"
#include "runtime/tensor_map.h"

enum { PIECE = 16, POISON = 0xAB, ODDS = 2, MOST_SPINS = 64 };

typedef struct bar {
    uint32_t offset, count, left; /* left: arrivals to come in this phase */
    int64_t bytes;                /* to come */
    uint64_t phases;              /* complete */
    bool is_used;
} bar;

typedef struct box {
    uint32_t site, thread, offset, bar;
    tl_tensor_map map;
    int32_t at[TL_MAP_RANK];
    bool moved;
} box;

struct tl_emu_bulk {
    bar *bars;
    uint32_t nbars;
    box *boxes; /* on their way */
    uint32_t nboxes, room;
    uint64_t changes; /* of barriers */
};

void tl_emu_bulk_free(tl_emu_block *b)
{
    if (b->bulk) {
        free(b->bulk->bars);
        free(b->bulk->boxes);
    }
    free(b->bulk);
    b->bulk = NULL;
}

void tl_emu_bulk_reset(tl_emu_block *b)
{
    if (!b->bulk)
        return;
    b->bulk->nboxes = 0;
    for (uint32_t i = 0; i < b->bulk->nbars; i++)
        b->bulk->bars[i].is_used = false;
}

static struct tl_emu_bulk *bulk_of(tl_emu_block *b)
{
    if (!b->bulk) {
        b->bulk = tl_emu_grown(b, NULL, 1, sizeof *b->bulk);
        memset(b->bulk, 0, sizeof *b->bulk);
    }
    return b->bulk;
}

/* ---- barriers ---- */

static _Noreturn void complain(tl_emu_block *b, tl_fail_kind kind, uint32_t site, const char *text)
{
    tl_emu_report_failure(b->job, b->linear, kind, site, text);
    tl_emu_break(b);
}

static uint32_t bar_at(tl_emu_block *b, uint32_t site, uint32_t offset)
{
    const struct tl_emu_bulk *k = bulk_of(b);
    char text[80];
    for (uint32_t i = 0; i < k->nbars; i++)
        if (k->bars[i].is_used && k->bars[i].offset == offset)
            return i;
    snprintf(text, sizeof text, "there is no barrier at offset %" PRIu32 " of shared memory",
             offset);
    complain(b, TL_RUN_BOUNDS, site, text);
}

void tl_emu_mbar_init(uint32_t site, uint32_t pred, uint32_t offset, uint32_t count)
{
    tl_emu_block *b = tl_emu_now;
    struct tl_emu_bulk *k = bulk_of(b);
    uint32_t i = 0;
    tl_emu_count(b, site, TL_LEAF_MBAR_INIT);
    if (!pred)
        return;
    for (uint32_t n = 0; n < k->nbars; n++)
        if (k->bars[n].is_used && k->bars[n].offset == offset)
            complain(b, TL_RUN_ASYNC, site, "there is a barrier here, which has not ended");
    while (i < k->nbars && k->bars[i].is_used)
        i++;
    if (i == k->nbars) {
        k->bars = tl_emu_grown(b, k->bars, i + 1, sizeof *k->bars);
        k->nbars++;
    }
    k->bars[i] = (bar){.offset = offset, .count = count, .left = count, .is_used = true};
}

void tl_emu_mbar_end(uint32_t site, uint32_t pred, uint32_t offset)
{
    tl_emu_block *b = tl_emu_now;
    tl_emu_count(b, site, TL_LEAF_MBAR_END);
    if (!pred)
        return;
    uint32_t i = bar_at(b, site, offset);
    for (uint32_t n = 0; n < b->bulk->nboxes; n++)
        if (b->bulk->boxes[n].bar == i)
            complain(b, TL_RUN_ASYNC, site, "a copy that the barrier counts is on its way");
    b->bulk->bars[i].is_used = false;
}

uint32_t tl_emu_elect(uint32_t site)
{
    tl_emu_block *b = tl_emu_now;
    tl_emu_count(b, site, TL_LEAF_ELECT);
    return b->current->index % b->lanes == 0;
}

static void check_phase(struct tl_emu_bulk *k, bar *x)
{
    k->changes++;
    if (x->left || x->bytes)
        return;
    x->phases++;
    x->left = x->count;
}

void tl_emu_mbar_arrive(uint32_t site, uint32_t pred, uint32_t offset)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, TL_LEAF_MBAR_ARRIVE);
    if (!pred || tl_emu_is_dropped(b, site))
        return;
    bar *x = &b->bulk->bars[bar_at(b, site, offset)];
    if (!x->left)
        complain(b, TL_RUN_ASYNC, site, "more arrive at the barrier than it was made for");
    x->left--;
    check_phase(b->bulk, x);
}

void tl_emu_mbar_expect(uint32_t site, uint32_t pred, uint32_t offset, uint32_t bytes)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, TL_LEAF_MBAR_EXPECT);
    if (!pred || tl_emu_is_dropped(b, site))
        return;
    bar *x = &b->bulk->bars[bar_at(b, site, offset)];
    if (!x->left)
        complain(b, TL_RUN_ASYNC, site, "more arrive at the barrier than it was made for");
    x->bytes += tl_emu_bytes_expected(b, site, bytes);
    x->left--;
    check_phase(b->bulk, x);
}

/* ---- copies ---- */

/* One piece of 16 bytes of a box, by number. */
typedef struct piece {
    uint32_t offset;   /* in shared memory */
    uint64_t at;       /* address of its first element */
    uint32_t from, to; /* elements of it that are inside of the view */
    uint32_t elements;
} piece;

static uint32_t pieces_of(const box *x)
{
    uint32_t n = x->map.box[0] * x->map.bytes / PIECE;
    for (uint32_t d = 1; d < x->map.rank; d++)
        n *= x->map.box[d];
    return n;
}

static uint32_t bytes_of(const box *x)
{
    return pieces_of(x) * PIECE;
}

static piece piece_of(const box *x, uint32_t number)
{
    const tl_tensor_map *m = &x->map;
    uint32_t in_row = m->box[0] * m->bytes / PIECE, row = number / in_row, at = number % in_row;
    piece p = {.elements = PIECE / m->bytes, .at = m->address};
    uint32_t swizzle = m->span / PIECE - 1, linear = x->offset + number * PIECE;
    int64_t first = (int64_t)x->at[0] + at * p.elements;
    bool inside = true;
    p.offset = linear ^ ((linear >> 7 & swizzle) << 4);
    for (uint32_t d = 1; d < m->rank; d++) {
        int64_t c = x->at[d] + (int64_t)(row % m->box[d]);
        row /= m->box[d];
        inside &= c >= 0 && (uint64_t)c < m->extent[d];
        p.at += (uint64_t)c * m->stride[d];
    }
    p.at += (uint64_t)first * m->bytes;
    while (p.from < p.elements && first + p.from < 0)
        p.from++;
    p.to = p.from;
    while (inside && p.to < p.elements && first + p.to < (int64_t)m->extent[0])
        p.to++;
    return p;
}

static void move(tl_emu_block *b, box *x)
{
    for (uint32_t i = 0; i < pieces_of(x); i++) {
        piece p = piece_of(x, i);
        char *to = b->shared + p.offset;
        uint32_t bytes = x->map.bytes, skipped = p.from * bytes;
        memset(to, 0, PIECE);
        if (p.to > p.from)
            memcpy(to + skipped, (const void *)(uintptr_t)(p.at + skipped),
                   (p.to - p.from) * bytes);
    }
    x->moved = true;
}

/* To the watch, a piece of which only a part is inside reads nothing. */
static tl_emu_copy as_copy(const box *x, const piece *p)
{
    return (tl_emu_copy){.site = x->site,
                         .thread = x->thread,
                         .offset = p->offset,
                         .bytes = PIECE,
                         .at = p->at,
                         .inside = p->from == 0 && p->to == p->elements};
}

static void land(tl_emu_block *b, uint32_t i)
{
    struct tl_emu_bulk *k = b->bulk;
    box *x = &k->boxes[i];
    if (!x->moved)
        move(b, x);
    for (uint32_t n = 0; n < pieces_of(x); n++) {
        piece p = piece_of(x, n);
        tl_emu_copy c = as_copy(x, &p);
        tl_emu_block_bulk(b->watch, &c, true);
    }
    bar *counts = &k->bars[x->bar];
    counts->bytes -= bytes_of(x);
    k->boxes[i] = k->boxes[--k->nboxes];
    check_phase(k, counts);
}

/* What CUDA's library makes no map of, or the instruction does not take. */
static bool is_legal(const tl_tensor_map *m)
{
    enum { ROWS = 256 };
    const uint64_t far = UINT64_C(1) << 40;
    bool fine = m->address % PIECE == 0 && m->box[0] * m->bytes <= m->span &&
                m->box[0] * m->bytes % PIECE == 0;
    for (uint32_t d = 0; d < m->rank; d++)
        fine &= m->box[d] >= 1 && m->box[d] <= ROWS && m->extent[d] >= 1 &&
                m->extent[d] <= UINT64_C(1) << 32 &&
                (d == 0 || (m->stride[d] % PIECE == 0 && m->stride[d] < far));
    return fine;
}

static void begin(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset, uint32_t barrier,
                  uint32_t rank, const int32_t *at)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, (tl_leaf)(TL_LEAF_BULK_1 + rank - 1));
    if (!pred)
        return;
    box x = {.site = site, .thread = b->current->index, .offset = offset};
    x.bar = bar_at(b, site, barrier);
    memcpy(&x.map, (const void *)(uintptr_t)map, sizeof x.map);
    memcpy(x.at, at, rank * sizeof *at);
    TL_EMU_INVARIANT(b, site, x.map.rank == rank && offset % 128 == 0,
                     "a box of rank %u by a map of %u, to offset %u", rank, x.map.rank, offset);
    TL_EMU_INVARIANT(b, site, is_legal(&x.map), "a tensor map that there cannot be");
    for (uint32_t n = 0; n < pieces_of(&x); n++) {
        piece p = piece_of(&x, n);
        tl_emu_copy c = as_copy(&x, &p);
        if (!tl_emu_block_bulk(b->watch, &c, false))
            tl_emu_break(b);
        memset(b->shared + p.offset, POISON, PIECE);
    }
    struct tl_emu_bulk *k = b->bulk;
    if (k->nboxes == k->room) {
        k->room = k->room ? 2 * k->room : 16;
        k->boxes = tl_emu_grown(b, k->boxes, k->room, sizeof *k->boxes);
    }
    k->boxes[k->nboxes++] = x;
    if (b->job->schedule.order == TL_EMU_REVERSE || (b->random && tl_emu_random(b) % ODDS == 0))
        move(b, &k->boxes[k->nboxes - 1]);
}

void tl_emu_bulk_1(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset, uint32_t barrier,
                   int32_t a)
{
    begin(site, pred, map, offset, barrier, 1, (int32_t[]){a});
}
void tl_emu_bulk_2(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset, uint32_t barrier,
                   int32_t a, int32_t c)
{
    begin(site, pred, map, offset, barrier, 2, (int32_t[]){a, c});
}
void tl_emu_bulk_3(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset, uint32_t barrier,
                   int32_t a, int32_t c, int32_t d)
{
    begin(site, pred, map, offset, barrier, 3, (int32_t[]){a, c, d});
}
void tl_emu_bulk_4(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset, uint32_t barrier,
                   int32_t a, int32_t c, int32_t d, int32_t e)
{
    begin(site, pred, map, offset, barrier, 4, (int32_t[]){a, c, d, e});
}
void tl_emu_bulk_5(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset, uint32_t barrier,
                   int32_t a, int32_t c, int32_t d, int32_t e, int32_t f)
{
    begin(site, pred, map, offset, barrier, 5, (int32_t[]){a, c, d, e, f});
}

/* ---- waiting ---- */

static bool is_over(const bar *x, uint32_t parity)
{
    return (x->phases & 1) != parity;
}

/* Copies that the barrier counts arrive, if all that it waits for has been begun. */
static void land_all(tl_emu_block *b, uint32_t which)
{
    struct tl_emu_bulk *k = b->bulk;
    uint64_t phase = k->bars[which].phases;
    for (uint32_t i = 0; i < k->nboxes && k->bars[which].phases == phase;)
        if (k->boxes[i].bar == which)
            land(b, i);
        else
            i++;
}

/* What the block does that can end a wait. A thread that spins comes to its turn again when all
 * others spin, wait or have ended. */
static uint64_t progress(const tl_emu_block *b)
{
    return b->bulk->changes + b->ended + b->atomics;
}

void tl_emu_mbar_wait(uint32_t site, uint32_t offset, uint32_t parity)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, TL_LEAF_MBAR_WAIT);
    if (tl_emu_is_dropped(b, site))
        return;
    uint32_t which = bar_at(b, site, offset), spins = 0;
    uint64_t before = progress(b);
    while (!is_over(&b->bulk->bars[which], parity & 1)) {
        land_all(b, which);
        if (is_over(&b->bulk->bars[which], parity & 1))
            break;
        spins = progress(b) == before ? spins + 1 : 0;
        before = progress(b);
        if (spins > MOST_SPINS)
            complain(b, TL_RUN_DEADLOCK, site, "nobody completes this phase of the barrier");
        tl_emu_spin(b);
    }
}

void tl_emu_bulk_ended(tl_emu_block *b)
{
    if (b->bulk && b->bulk->nboxes)
        tl_emu_report_failure(b->job, b->linear, TL_RUN_ASYNC, b->bulk->boxes[0].site,
                              "the program has ended before this copy was waited for");
}
