/* emu_bulk.c: mbarriers, which count arrivals and bytes in shared memory, and bulk copies: boxes
 * of a view, described by a tensor map, that one thread starts and an mbarrier counts.
 *
 * The schedule says when a copy really happens:
 *   late     when somebody waits for its barrier; until then its target is poison. Schedules rr,
 *            ahead.
 *   early    at once. Schedule reverse.
 *   random   one or the other. Schedule random.
 * In all cases, it counts as in flight until somebody has waited for the phase: the watch reports
 * anyone who touches its target before.
 *
 * Swizzles are written here as the formula of the documents (PTX ISA, "Swizzling modes"): address
 * bits 4 to 6 are XORed with bits 7 to 9, as many as the row of the box has 16-byte pieces; bits 5
 * and 6 with bits 7 and 8, where pieces have 32 bytes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu_box.h"

enum { PIECE = TL_EMU_PIECE, POISON = 0xAB, ODDS = 2, MOST_SPINS = 64 };

typedef struct bar {
    uint32_t offset, count, left; /* left: arrivals to come in this phase */
    int64_t bytes;                /* to come */
    uint64_t phases;              /* complete */
    /* how often the cluster had met when it was made, and must have met before it ends: other
     * blocks have arrived, which they may do before or after what this block does */
    uint64_t made, stays;
    uint32_t by; /* where one has */
    uint64_t handed, passed; /* numbers of arrivals (emu_tensor.c): in this phase, before it */
    /* phases at the last arrival of a pair's product that the other program began, and at the last
     * wait: behind that, it has arrived for sure */
    uint64_t from_pair, waited;
    uint32_t product; /* where */
    bool is_used;
} bar;

struct tl_emu_bulk {
    bar *bars;
    uint32_t nbars;
    tl_emu_box *boxes; /* on their way */
    uint32_t nboxes, room;
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

/* In block m, which may be another one of the cluster of b, the current one. */
static uint32_t bar_in(tl_emu_block *b, tl_emu_block *m, uint32_t site, uint32_t offset)
{
    const struct tl_emu_bulk *k = m->bulk;
    uint32_t i = 0, n = k ? k->nbars : 0;
    while (i < n && !(k->bars[i].is_used && k->bars[i].offset == offset))
        i++;
    if (i == n)
        tl_emu_complain(b, TL_RUN_BOUNDS, site,
                        "there is no barrier at offset %" PRIu32 " of shared memory%s", offset,
                        m == b ? "" : " of another program of the cluster");
    if (m != b && k->bars[i].made >= b->met)
        tl_emu_complain(b, TL_RUN_ASYNC, site,
                        "nothing says that the barrier is there: the cluster has not met since "
                        "another program made it");
    return i;
}

static uint32_t bar_at(tl_emu_block *b, uint32_t site, uint32_t offset)
{
    return bar_in(b, b, site, offset);
}

/* A block of the cluster. */
static tl_emu_block *member(tl_emu_block *b, uint32_t site, uint32_t rank)
{
    if (rank >= b->cluster->size)
        tl_emu_complain(b, TL_RUN_BOUNDS, site, "program %" PRIu32 " of a cluster of %" PRIu32,
                        rank, b->cluster->size);
    if (!b->cluster->blocks[rank])
        tl_emu_complain(b, TL_RUN_ASYNC, site, "the program that this is for has ended");
    return b->cluster->blocks[rank];
}

/* Others may still arrive, for all that this block knows. */
static bool is_shared_yet(const tl_emu_block *b, const bar *x)
{
    return x->is_used && x->stays > b->met;
}

static const char STAYS[] =
    "another program may arrive here after this one's barrier has ended: the cluster has not met "
    "since";

/* Nobody has waited for it. */
static bool may_arrive_yet(const bar *x)
{
    return x->is_used && x->from_pair > x->waited;
}

static const char ARRIVES[] =
    "a product of the pair may arrive here after that: nobody has waited for its phase";

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
            tl_emu_complain(b, TL_RUN_ASYNC, site, "there is a barrier here, which has not ended");
    while (i < k->nbars && k->bars[i].is_used)
        i++;
    if (i == k->nbars) {
        k->bars = tl_emu_grown(b, k->bars, i + 1, sizeof *k->bars);
        k->nbars++;
    }
    k->bars[i] = (bar){
        .offset = offset, .count = count, .left = count, .made = b->met, .is_used = true};
}

static void nothing(tl_emu_block *b, void *const *mine)
{
    (void)b, (void)mine;
}

/* The lanes of the warp come together: none may be so far behind that it misses a phase. */
uint32_t tl_emu_elect(uint32_t site)
{
    tl_emu_block *b = tl_emu_now;
    tl_emu_count(b, site, TL_LEAF_ELECT);
    tl_emu_meet_warp(b, TL_LEAF_ELECT, site, 0, NULL, nothing);
    return b->current->index % b->lanes == 0;
}

static void check_phase(tl_emu_block *b, bar *x)
{
    b->cluster->changes++;
    if (x->left || x->bytes)
        return;
    x->passed = x->handed;
    x->phases++;
    x->left = x->count;
}

/* One of those that complete a phase comes to the barrier, and bytes are to come. */
static void arrive(tl_emu_block *b, uint32_t site, bar *x, uint32_t bytes)
{
    if (!x->left)
        tl_emu_complain(b, TL_RUN_ASYNC, site, "more arrive at the barrier than it was made for");
    x->bytes += bytes;
    x->left--;
    check_phase(b, x);
}

/* False: nothing is to be done. */
static bool comes_to(tl_emu_block *b, uint32_t site, uint32_t pred, tl_leaf leaf)
{
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, leaf);
    return pred && !tl_emu_is_dropped(b, site);
}

void tl_emu_mbar_arrive(uint32_t site, uint32_t pred, uint32_t offset)
{
    tl_emu_block *b = tl_emu_now;
    if (comes_to(b, site, pred, TL_LEAF_MBAR_ARRIVE))
        arrive(b, site, &b->bulk->bars[bar_at(b, site, offset)], 0);
}

/* Block b, another one, arrives at the barrier. */
static void stay(const tl_emu_block *b, bar *x, uint32_t site)
{
    if (x->stays >= b->met + 1)
        return;
    x->stays = b->met + 1;
    x->by = site;
}

void tl_emu_mbar_arrive_at(uint32_t site, uint32_t pred, uint32_t offset, uint32_t rank)
{
    tl_emu_block *b = tl_emu_now;
    if (!comes_to(b, site, pred, TL_LEAF_MBAR_ARRIVE_AT))
        return;
    tl_emu_block *m = member(b, site, rank);
    bar *x = &m->bulk->bars[bar_in(b, m, site, offset)];
    if (m != b) {
        stay(b, x, site);
        tl_emu_tensor_hands(b, &x->handed);
    }
    arrive(b, site, x, 0);
}

void tl_emu_mbar_expect(uint32_t site, uint32_t pred, uint32_t offset, uint32_t bytes)
{
    tl_emu_block *b = tl_emu_now;
    if (comes_to(b, site, pred, TL_LEAF_MBAR_EXPECT))
        arrive(b, site, &b->bulk->bars[bar_at(b, site, offset)],
               tl_emu_bytes_expected(b, site, bytes));
}

/* ---- copies ---- */

uint32_t tl_emu_box_pieces(const tl_emu_box *x)
{
    uint32_t n = x->map.box[0] * x->map.bytes / PIECE;
    for (uint32_t d = 1; d < x->map.rank; d++)
        n *= x->map.box[d];
    return n;
}

static uint32_t bytes_of(const tl_emu_box *x)
{
    return tl_emu_box_pieces(x) * PIECE;
}

tl_emu_box_piece tl_emu_box_piece_of(const tl_emu_box *x, uint32_t number)
{
    const tl_tensor_map *m = &x->map;
    uint32_t in_row = m->box[0] * m->bytes / PIECE, row = number / in_row, at = number % in_row;
    tl_emu_box_piece p = {.elements = PIECE / m->bytes, .at = m->address};
    uint32_t swizzle = m->span / m->piece - 1, linear = x->offset + number * PIECE;
    int64_t first = (int64_t)x->at[0] + at * p.elements;
    bool inside = true;
    p.offset = linear ^ (linear >> 7 & swizzle) * m->piece;
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

static void move(tl_emu_block *b, tl_emu_box *x)
{
    for (uint32_t i = 0; i < tl_emu_box_pieces(x); i++) {
        tl_emu_box_piece p = tl_emu_box_piece_of(x, i);
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
static tl_emu_copy as_copy(const tl_emu_box *x, const tl_emu_box_piece *p)
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
    tl_emu_box *x = &k->boxes[i];
    if (!x->moved)
        move(x->to, x);
    for (uint32_t n = 0; n < tl_emu_box_pieces(x); n++) {
        tl_emu_box_piece p = tl_emu_box_piece_of(x, n);
        tl_emu_copy c = as_copy(x, &p);
        tl_emu_block_bulk(x->to->watch, &c, TL_EMU_ENDS);
    }
    bar *counts = &k->bars[x->bar];
    counts->bytes -= bytes_of(x);
    k->boxes[i] = k->boxes[--k->nboxes];
    check_phase(b, counts);
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

tl_emu_box tl_emu_box_of(tl_emu_block *b, uint32_t site, uint64_t map, uint32_t offset,
                         uint32_t rank, const int32_t *at)
{
    tl_emu_box x = {.site = site, .thread = b->current->index, .offset = offset};
    memcpy(&x.map, (const void *)(uintptr_t)map, sizeof x.map);
    memcpy(x.at, at, rank * sizeof *at);
    TL_EMU_INVARIANT(b, site, x.map.rank == rank && offset % 128 == 0,
                     "a box of rank %u by a map of %u, at offset %u", rank, x.map.rank, offset);
    TL_EMU_INVARIANT(b, site, is_legal(&x.map), "a tensor map that there cannot be");
    return x;
}

/* A box begins to come to block m; a barrier of `counts`, m or another one, counts it. */
static void begin_to(tl_emu_block *b, tl_emu_block *m, tl_emu_block *counts, tl_emu_box x,
                     uint32_t barrier)
{
    x.bar = bar_in(b, counts, x.site, barrier);
    x.to = m;
    for (uint32_t n = 0; n < tl_emu_box_pieces(&x); n++) {
        tl_emu_box_piece p = tl_emu_box_piece_of(&x, n);
        tl_emu_copy c = as_copy(&x, &p);
        if (!tl_emu_block_bulk(m->watch, &c, m == b ? TL_EMU_BEGINS : TL_EMU_COMES))
            tl_emu_break(b);
        memset(m->shared + p.offset, POISON, PIECE);
    }
    struct tl_emu_bulk *k = counts->bulk;
    k->boxes = tl_emu_room(b, k->boxes, k->nboxes, &k->room, sizeof *k->boxes);
    k->boxes[k->nboxes++] = x;
    if (b->job->schedule.order == TL_EMU_REVERSE || (b->random && tl_emu_random(b) % ODDS == 0))
        move(m, &k->boxes[k->nboxes - 1]);
}

/* programs: of the cluster, as bits; 0: this one, by the leaf for one. */
static void begin_bulk_copy(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset,
                            uint32_t barrier, uint32_t programs, uint32_t rank, const int32_t *at)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site,
                 (tl_leaf)((programs ? TL_LEAF_BULK_ALL_1 : TL_LEAF_BULK_1) + rank - 1));
    if (!pred)
        return;
    if (programs && tl_emu_is_dropped(b, site))
        programs = 1u << b->rank;
    tl_emu_box x = tl_emu_box_of(b, site, map, offset, rank, at);
    for (uint32_t n = 0; programs >> n; n++)
        if (programs >> n & 1)
            begin_to(b, member(b, site, n), member(b, site, n), x, barrier);
    if (!programs)
        begin_to(b, b, b, x, barrier);
}

/* To this block, counted by the first one of its pair. */
static void begin_pair_copy(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset,
                            uint32_t barrier, uint32_t rank, const int32_t *at)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, (tl_leaf)(TL_LEAF_BULK_PAIR_1 + rank - 1));
    if (!pred)
        return;
    tl_emu_block *counts = tl_emu_is_dropped(b, site) ? b : member(b, site, b->rank & ~1u);
    begin_to(b, b, counts, tl_emu_box_of(b, site, map, offset, rank, at), barrier);
}

/* Leaves for one program, for some of the cluster, and for a pair. */
#define BULK(n, at, ...)                                                                           \
    void tl_emu_bulk_##n(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset,              \
                         uint32_t barrier, __VA_ARGS__)                                            \
    {                                                                                              \
        begin_bulk_copy(site, pred, map, offset, barrier, 0, n, at);                               \
    }                                                                                              \
    void tl_emu_bulk_all_##n(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset,          \
                             uint32_t barrier, uint32_t programs, __VA_ARGS__)                     \
    {                                                                                              \
        begin_bulk_copy(site, pred, map, offset, barrier, programs, n, at);                        \
    }                                                                                              \
    void tl_emu_bulk_pair_##n(uint32_t site, uint32_t pred, uint64_t map, uint32_t offset,         \
                              uint32_t barrier, __VA_ARGS__)                                       \
    {                                                                                              \
        begin_pair_copy(site, pred, map, offset, barrier, n, at);                                  \
    }
#define AT(...) ((int32_t[]){__VA_ARGS__})
BULK(1, AT(a), int32_t a)
BULK(2, AT(a, c), int32_t a, int32_t c)
BULK(3, AT(a, c, d), int32_t a, int32_t c, int32_t d)
BULK(4, AT(a, c, d, e), int32_t a, int32_t c, int32_t d, int32_t e)
BULK(5, AT(a, c, d, e, f), int32_t a, int32_t c, int32_t d, int32_t e, int32_t f)

/* ---- waiting ---- */

static bool is_over(const bar *x, uint32_t parity)
{
    return (x->phases & 1) != parity;
}

/* At b's barrier, by the oldest commit to it. */
static void arrive_products(tl_emu_block *b, tl_emu_block *by, uint32_t offset)
{
    tl_emu_arrival a = tl_emu_tensor_arrives(by, offset, by != b);
    arrive(by, a.site, &by->bulk->bars[bar_at(by, a.site, a.offset)], 0);
    if (!a.other)
        return;
    bar *theirs = &a.other->bulk->bars[bar_in(by, a.other, a.site, a.offset)];
    stay(by, theirs, a.site);
    arrive(by, a.site, theirs, 0);
    theirs->from_pair = theirs->phases;
    theirs->product = a.site;
}

/* Copies that the barrier counts arrive, if all that it waits for has been begun; so do products.
 */
static void land_all(tl_emu_block *b, uint32_t which)
{
    struct tl_emu_bulk *k = b->bulk;
    uint64_t phase = k->bars[which].phases;
    uint32_t offset = k->bars[which].offset;
    tl_emu_block *by;
    while (k->bars[which].phases == phase && (by = tl_emu_tensor_is_due(b, offset)) != NULL)
        arrive_products(b, by, offset);
    for (uint32_t i = 0; i < k->nboxes && k->bars[which].phases == phase;)
        if (k->boxes[i].bar == which)
            land(b, i);
        else
            i++;
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
            tl_emu_complain(b, TL_RUN_ASYNC, site, "a copy that the barrier counts is on its way");
    if (tl_emu_tensor_is_under_way(b, offset))
        tl_emu_complain(b, TL_RUN_ASYNC, site, "a product that arrives here is on its way");
    for (tl_emu_block *by; (by = tl_emu_tensor_is_due(b, offset)) != NULL;)
        arrive_products(b, by, offset);
    if (may_arrive_yet(&b->bulk->bars[i]))
        tl_emu_complain(b, TL_RUN_ASYNC, site, "%s", ARRIVES);
    if (is_shared_yet(b, &b->bulk->bars[i]))
        tl_emu_complain(b, TL_RUN_ASYNC, site, "%s", STAYS);
    b->bulk->bars[i].is_used = false;
}

/* What the cluster's blocks do that can end a wait. A thread that spins runs again
 * when all others of its block spin, wait or have ended. */
static uint64_t progress(const tl_emu_block *b)
{
    uint64_t n = b->cluster->changes;
    for (uint32_t i = 0; i < b->cluster->size; i++)
        if (b->cluster->blocks[i])
            n += b->cluster->blocks[i]->ended + b->cluster->blocks[i]->atomics;
    return n;
}

/* Has another block of the cluster threads that go on? */
static bool others_run(const tl_emu_block *b)
{
    bool run = false;
    for (uint32_t i = 0; i < b->cluster->size; i++) {
        const tl_emu_block *m = b->cluster->blocks[i];
        run |= m && m != b && m->ready.count > 0;
    }
    return run;
}

void tl_emu_mbar_wait(uint32_t site, uint32_t offset, uint32_t parity)
{
    tl_emu_block *b = tl_emu_now;
    if (!comes_to(b, site, true, TL_LEAF_MBAR_WAIT))
        return;
    uint32_t which = bar_at(b, site, offset), spins = 0;
    uint64_t before = progress(b);
    while (!is_over(&b->bulk->bars[which], parity & 1)) {
        land_all(b, which);
        if (is_over(&b->bulk->bars[which], parity & 1))
            break;
        spins = progress(b) == before && !others_run(b) ? spins + 1 : 0;
        before = progress(b);
        if (spins > MOST_SPINS)
            tl_emu_complain(b, TL_RUN_DEADLOCK, site, "nobody completes this phase of the barrier");
        tl_emu_spin(b);
    }
    bar *x = &b->bulk->bars[which];
    x->waited = x->phases;
    tl_emu_tensor_waited(b, x->passed);
}

/* A copy to block b that a barrier of another one counts; NULL: none. */
static const tl_emu_box *box_to(const tl_emu_block *b)
{
    for (uint32_t r = 0; r < b->cluster->size; r++) {
        const tl_emu_block *m = b->cluster->blocks[r];
        for (uint32_t i = 0; m && m != b && m->bulk && i < m->bulk->nboxes; i++)
            if (m->bulk->boxes[i].to == b)
                return &m->bulk->boxes[i];
    }
    return NULL;
}

void tl_emu_bulk_ended(tl_emu_block *b)
{
    const tl_emu_box *elsewhere = box_to(b);
    if (elsewhere) {
        tl_emu_say(b, TL_RUN_ASYNC, elsewhere->site,
                   "the program has ended before this copy, which another one waits for, was here");
        b->cluster->broken = true;
    }
    if (b->bulk && b->bulk->nboxes)
        tl_emu_say(b, TL_RUN_ASYNC, b->bulk->boxes[0].site,
                   "the program has ended before this copy was waited for");
    for (uint32_t i = 0; b->bulk && i < b->bulk->nbars; i++) {
        const bar *x = &b->bulk->bars[i];
        bool shared = is_shared_yet(b, x);
        if (!shared && !may_arrive_yet(x))
            continue;
        tl_emu_say(b, TL_RUN_ASYNC, shared ? x->by : x->product, "%s", shared ? STAYS : ARRIVES);
        return;
    }
}
