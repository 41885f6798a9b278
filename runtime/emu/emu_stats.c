/* emu_stats.c: counters of a launch that an emulator can take exactly: requests, sectors,
 * wavefronts.
 *
 * A request is what one warp does at one site with the same occurrence number: the k-th time that
 * each of its threads comes to that site. Threads run one after the other, so requests wait in a
 * queue per site and warp until the last thread has come, predicated off or not. Where no thread is
 * left on, there is no request.
 *
 * Global memory: sectors are aligned pieces of 32 bytes, lines of 128; a request's minimum is the
 * distinct bytes it touches / 32, rounded up. Shared memory: 32 banks of 4 bytes; a warp goes in
 * parts of 32 lanes for accesses of up to 4 bytes, of 16 lanes for 8 bytes, of 8 lanes for 16
 * bytes; each part takes as many wavefronts as distinct words that one bank has to give, at least
 * 1; the same word goes to any number of lanes. The minimum is one for each part with a lane that
 * is on; bank conflicts are what is above it. A load of matrices takes each 8 rows of 16 bytes as a
 * part. A copy from global to shared memory has a request on either side. (AMD's parts for 8 and 16
 * bytes are not runs of lanes: there the figure is not verified.) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/number.h"
#include "runtime/emu/emu_watch.h"

enum { SECTOR = 32, LINE = 128, BANKS = 32, WORD = 4, WIDTHS = 5 };

/* What is counted for each site, and added up over blocks. */
typedef struct counts {
    uint64_t executed;          /* by warps; barriers: by blocks */
    uint64_t requests, threads; /* memory: threads not predicated off */
    uint64_t bytes;             /* distinct, of each request */
    uint64_t units, minimum;    /* sectors or wavefronts */
    uint64_t lines;             /* global */
    uint64_t serial;            /* atomics: the most threads at one address, of each request */
} counts;

struct tl_emu_stats {
    const tl_launch *launch;
    uint32_t lanes, nsites;
    pthread_mutex_t lock;
    uint64_t blocks, threads; /* threads: of all blocks */
    counts *sites;            /* nsites; then again as many, for what copies do to shared memory */
};

typedef struct request {
    uint64_t on; /* by lane */
    uint32_t arrived;
    uint64_t at[TL_EMU_MAX_LANES];
} request;

/* Requests of one warp at one site that not all of its threads have reached, oldest first. */
typedef struct queue {
    request *items;
    uint32_t first, n, room; /* items[first] to items[n - 1] */
    uint32_t number;         /* of items[0], as an occurrence */
} queue;

typedef struct site_queues {
    uint32_t *seen; /* by thread: occurrences so far; NULL: the site was not reached */
    queue *warps;
    uint32_t bytes;
    tl_emu_space space;
    bool atomic;
} site_queues;

struct tl_emu_block_stats {
    tl_emu_stats *stats;
    uint32_t threads, nwarps;
    bool lost;           /* out of memory */
    counts *sites;       /* as those of stats */
    site_queues *queues; /* likewise */
};

/* ---- one request ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* How many distinct values at / unit there are, in sorted addresses. */
static uint64_t distinct(const uint64_t *at, uint32_t n, uint64_t unit)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += i == 0 || at[i] / unit != at[i - 1] / unit;
    return count;
}

static uint64_t most_equal(const uint64_t *at, uint32_t n)
{
    uint64_t most = 0, run = 0;
    for (uint32_t i = 0; i < n; i++) {
        run = i > 0 && at[i] == at[i - 1] ? run + 1 : 1;
        most = run > most ? run : most;
    }
    return most;
}

static uint32_t collect(const request *r, uint32_t from, uint32_t to, uint64_t *at)
{
    uint32_t n = 0;
    TL_INVARIANT_OR(0, to <= TL_EMU_MAX_LANES, "lanes %u to %u", from, to);
    for (uint32_t lane = from; lane < to; lane++)
        if (r->on >> lane & 1)
            at[n++] = r->at[lane];
    qsort(at, n, sizeof *at, by_value);
    return n;
}

/* All addresses are aligned to their width, which divides a sector: one access is in one. */
static void count_global(const request *r, const site_queues *site, uint32_t lanes, counts *c)
{
    uint64_t at[TL_EMU_MAX_LANES];
    uint32_t n = collect(r, 0, lanes, at);
    uint64_t bytes = distinct(at, n, site->bytes) * site->bytes;
    c->bytes += bytes;
    c->units += distinct(at, n, SECTOR);
    c->minimum += (bytes + SECTOR - 1) / SECTOR;
    c->lines += distinct(at, n, LINE);
    c->serial += site->atomic ? most_equal(at, n) : 0;
}

/* The greatest number of distinct words in one bank; the addresses are sorted. */
static uint64_t wavefronts(const uint64_t *at, uint32_t n, uint32_t bytes)
{
    uint64_t per_bank[BANKS] = {0}, most = 0, next = 0; /* words below `next` are counted */
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t w = at[i] / WORD; w * WORD < at[i] + bytes; w++) {
            if (w < next)
                continue;
            next = w + 1;
            uint64_t k = ++per_bank[w % BANKS];
            most = k > most ? k : most;
        }
    return most;
}

static void count_shared(const request *r, const site_queues *site, uint32_t lanes, counts *c)
{
    uint64_t at[TL_EMU_MAX_LANES];
    uint32_t part = site->bytes <= WORD ? BANKS : BANKS * WORD / site->bytes;
    for (uint32_t from = 0; from < lanes; from += part) {
        uint32_t n = collect(r, from, from + part < lanes ? from + part : lanes, at);
        c->units += wavefronts(at, n, site->bytes);
        c->minimum += n > 0;
        c->bytes += distinct(at, n, site->bytes) * site->bytes;
    }
}

static void count_request(const request *r, const site_queues *site, uint32_t lanes, counts *c)
{
    c->executed++;
    if (!r->on)
        return;
    TL_INVARIANT_VOID(site->bytes > 0 && (uint32_t)__builtin_popcountll(r->on) <= r->arrived,
                      "a request of %u bytes by %u threads", site->bytes, r->arrived);
    c->requests++;
    c->threads += (uint64_t)__builtin_popcountll(r->on);
    if (site->space == TL_EMU_GLOBAL)
        count_global(r, site, lanes, c);
    else
        count_shared(r, site, lanes, c);
}

/* ---- queues ---- */

static bool make_room(queue *q)
{
    if (q->first > 0 && q->first >= q->n / 2) {
        memmove(q->items, q->items + q->first, (q->n - q->first) * sizeof *q->items);
        q->number += q->first;
        q->n -= q->first;
        q->first = 0;
    }
    if (q->n < q->room)
        return true;
    uint32_t room = q->room ? 2 * q->room : 4;
    request *items = realloc(q->items, room * sizeof *items);
    if (!items)
        return false;
    q->items = items;
    q->room = room;
    return true;
}

/* Threads of a warp pass the occurrences in order, so a request is complete after those before
 * it. */
static void finish_front(tl_emu_block_stats *b, uint32_t site, queue *q, uint32_t width, bool all)
{
    for (; q->first < q->n && (all || q->items[q->first].arrived == width); q->first++)
        count_request(&q->items[q->first], &b->queues[site], b->stats->lanes, &b->sites[site]);
}

static bool meet_site(tl_emu_block_stats *b, site_queues *s)
{
    if (s->seen)
        return true;
    s->seen = calloc(b->threads, sizeof *s->seen);
    s->warps = calloc(b->nwarps, sizeof *s->warps);
    if (s->seen && s->warps)
        return true;
    free(s->seen);
    free(s->warps);
    s->seen = NULL;
    s->warps = NULL;
    return false;
}

static uint32_t warp_width(const tl_emu_block_stats *b, uint32_t warp)
{
    TL_INVARIANT_OR(0, warp < b->nwarps, "warp %u of %u", warp, b->nwarps);
    uint32_t rest = b->threads - warp * b->stats->lanes;
    return rest < b->stats->lanes ? rest : b->stats->lanes;
}

/* site: a number of b->sites. */
static void enter_access(tl_emu_block_stats *b, uint32_t site, uint32_t thread,
                         const tl_emu_access *access)
{
    if (thread >= b->threads || b->lost)
        return;
    site_queues *s = &b->queues[site];
    uint32_t lanes = b->stats->lanes, warp = thread / lanes;
    if (!meet_site(b, s)) {
        b->lost = true;
        return;
    }
    queue *q = &s->warps[warp];
    uint32_t number = s->seen[thread]++;
    if (number - q->number == q->n) {
        if (!make_room(q)) {
            b->lost = true;
            return;
        }
        q->items[q->n++] = (request){0};
    }
    TL_INVARIANT_VOID(number >= q->number + q->first && number - q->number < q->n,
                      "occurrence %u, those from %u to %u wait", number, q->number + q->first,
                      q->number + q->n);
    request *r = &q->items[number - q->number];
    r->arrived++;
    TL_INVARIANT_VOID(r->arrived <= lanes, "%u of %u lanes have come", r->arrived, lanes);
    if (access) {
        s->bytes = access->bytes;
        s->space = access->space;
        s->atomic = access->kind == TL_EMU_ATOMIC;
        r->on |= UINT64_C(1) << thread % lanes;
        r->at[thread % lanes] = access->at;
    }
    finish_front(b, site, q, warp_width(b, warp), false);
}

void tl_emu_block_stats_access(tl_emu_block_stats *b, uint32_t site, uint32_t thread,
                               const tl_emu_access *access)
{
    if (site < b->stats->nsites)
        enter_access(b, site, thread, access);
}

void tl_emu_block_stats_copy(tl_emu_block_stats *b, uint32_t site, uint32_t thread,
                             const tl_emu_access *from, const tl_emu_access *to)
{
    if (site >= b->stats->nsites)
        return;
    enter_access(b, site, thread, from);
    enter_access(b, b->stats->nsites + site, thread, to);
}

void tl_emu_block_stats_matrices(tl_emu_block_stats *b, uint32_t site, uint32_t n,
                                 const uint32_t *offsets)
{
    enum { ROWS = 8, ROW_BYTES = 16 };
    if (site >= b->stats->nsites)
        return;
    counts *c = &b->sites[site];
    c->executed++;
    c->requests++;
    c->threads += b->stats->lanes;
    for (uint32_t m = 0; m < n; m++) {
        uint64_t at[ROWS];
        for (uint32_t i = 0; i < ROWS; i++)
            at[i] = offsets[ROWS * m + i];
        qsort(at, ROWS, sizeof *at, by_value);
        c->units += wavefronts(at, ROWS, ROW_BYTES);
        c->minimum++;
        c->bytes += distinct(at, ROWS, ROW_BYTES) * ROW_BYTES;
    }
}

/* Warps execute as their first thread does, blocks as thread 0 does. */
void tl_emu_block_stats_count(tl_emu_block_stats *b, uint32_t site, uint32_t thread, tl_leaf leaf)
{
    uint32_t width = leaf == TL_LEAF_BARRIER ? b->threads : b->stats->lanes;
    if (site < b->stats->nsites && thread % width == 0)
        b->sites[site].executed++;
}

/* ---- blocks and launches ---- */

tl_emu_stats *tl_emu_stats_new(const tl_launch *launch, uint32_t lanes)
{
    tl_emu_stats *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->launch = launch;
    s->lanes = lanes < 1 ? 1 : lanes > TL_EMU_MAX_LANES ? TL_EMU_MAX_LANES : lanes;
    s->nsites = launch->kernel->nsites;
    s->sites = calloc(2 * s->nsites + 1, sizeof *s->sites);
    if (s->sites)
        return s;
    tl_emu_stats_free(s);
    return NULL;
}

void tl_emu_stats_free(tl_emu_stats *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    free(s->sites);
    free(s);
}

static void free_block(tl_emu_block_stats *b)
{
    for (uint32_t i = 0; b->queues && i < 2 * b->stats->nsites; i++) {
        for (uint32_t w = 0; b->queues[i].warps && w < b->nwarps; w++)
            free(b->queues[i].warps[w].items);
        free(b->queues[i].warps);
        free(b->queues[i].seen);
    }
    free(b->queues);
    free(b->sites);
    free(b);
}

tl_emu_block_stats *tl_emu_block_stats_new(tl_emu_stats *s, uint32_t threads)
{
    tl_emu_block_stats *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->stats = s;
    b->threads = threads;
    b->nwarps = (threads + s->lanes - 1) / s->lanes;
    b->sites = calloc(2 * s->nsites + 1, sizeof *b->sites);
    b->queues = calloc(2 * s->nsites + 1, sizeof *b->queues);
    if (b->sites && b->queues)
        return b;
    free_block(b);
    return NULL;
}

static void add(counts *to, const counts *from)
{
    to->executed += from->executed;
    to->requests += from->requests;
    to->threads += from->threads;
    to->bytes += from->bytes;
    to->units += from->units;
    to->minimum += from->minimum;
    to->lines += from->lines;
    to->serial += from->serial;
}

bool tl_emu_block_stats_end(tl_emu_block_stats *b)
{
    tl_emu_stats *s = b->stats;
    bool ok = !b->lost;
    TL_INVARIANT_OR(false, b->sites && b->queues, "counts of no block");
    for (uint32_t i = 0; i < 2 * s->nsites; i++)
        for (uint32_t w = 0; b->queues[i].warps && w < b->nwarps; w++)
            finish_front(b, i, &b->queues[i].warps[w], 0, true);
    pthread_mutex_lock(&s->lock);
    s->blocks++;
    s->threads += b->threads;
    for (uint32_t i = 0; i < 2 * s->nsites; i++)
        add(&s->sites[i], &b->sites[i]);
    pthread_mutex_unlock(&s->lock);
    free_block(b);
    return ok;
}

/* ---- text ---- */

/* One line of the text: the sites of one leaf at one position. */
typedef struct entry {
    tl_emu_position position;
    counts counts, target; /* target: of copies, what they do to shared memory */
} entry;

static int by_position(const void *a, const void *b)
{
    const tl_emu_position *x = &((const entry *)a)->position, *y = &((const entry *)b)->position;
    int path = strcmp(x->path, y->path);
    if (path)
        return path;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->col != y->col)
        return x->col < y->col ? -1 : 1;
    return x->leaf < y->leaf ? -1 : x->leaf > y->leaf;
}

static const tl_leaf_row *row_of(uint32_t leaf)
{
    static const tl_leaf_row unknown = {"?", "v", "", TL_LEAF_FAMILY_COUNT, 0, TL_LEAF_CLASS_PURE,
                                        0};
    return leaf < TL_LEAF_COUNT ? tl_leaf_info((tl_leaf)leaf) : &unknown;
}

static double per(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}
#define RATIO(a, b) TL_NUMBER("%.2f", per(a, b))

static void put_copy(FILE *f, const counts *from, const counts *to)
{
    fprintf(f,
            ": %" PRIu64 " requests, %s sectors/request (min %s), %s wavefronts/request (min %s)\n",
            to->requests, RATIO(from->units, to->requests), RATIO(from->minimum, to->requests),
            RATIO(to->units, to->requests), RATIO(to->minimum, to->requests));
}

static bool is_copy(const tl_leaf_row *row)
{
    return row->family == TL_LEAF_FAMILY_CP_ASYNC || row->family == TL_LEAF_FAMILY_CP_ROW ||
           row->family == TL_LEAF_FAMILY_CP_ROW_NEAR;
}

static void put_site(FILE *f, const entry *e)
{
    const counts *c = &e->counts;
    const tl_leaf_row *row = row_of(e->position.leaf);
    bool matrices = tl_leaf_is_ldsm(e->position.leaf) || tl_leaf_is_stsm(e->position.leaf);
    fprintf(f, "%.200s:%u:%u %s", e->position.path, e->position.line, e->position.col, row->name);
    if (is_copy(row)) {
        put_copy(f, c, &e->target);
        return;
    }
    switch (matrices ? TL_LEAF_CLASS_SHARED : row->class_) {
    case TL_LEAF_CLASS_GLOBAL:
        fprintf(f, ": %" PRIu64 " requests, %s sectors/request (min %s), %s lines/request\n",
                c->requests, RATIO(c->units, c->requests), RATIO(c->minimum, c->requests),
                RATIO(c->lines, c->requests));
        break;
    case TL_LEAF_CLASS_SHARED:
        fprintf(f, ": %" PRIu64 " requests, %s wavefronts/request (min %s)\n", c->requests,
                RATIO(c->units, c->requests), RATIO(c->minimum, c->requests));
        break;
    case TL_LEAF_CLASS_ATOMIC:
        fprintf(f,
                ": %" PRIu64 " requests, %" PRIu64 " operations, %s sectors/request (min %s), "
                "%s at one address\n",
                c->requests, c->threads, RATIO(c->units, c->requests),
                RATIO(c->minimum, c->requests), RATIO(c->serial, c->requests));
        break;
    case TL_LEAF_CLASS_PURE:
    case TL_LEAF_CLASS_WARP:
    case TL_LEAF_CLASS_BLOCK:
    case TL_LEAF_CLASS_GROUP:
    case TL_LEAF_CLASS_ASYNC:
    case TL_LEAF_CLASS_DEBUG: fprintf(f, ": %" PRIu64 "\n", c->executed); break;
    }
}

/* Sites merged by position and leaf and sorted; the number of entries. */
static uint32_t gather(const tl_emu_stats *s, entry *entries)
{
    uint32_t n = 0, merged = 0;
    for (uint32_t i = 0; i < s->nsites; i++)
        if (s->sites[i].executed)
            entries[n++] =
                (entry){tl_emu_site_position(s->launch, i), s->sites[i], s->sites[s->nsites + i]};
    qsort(entries, n, sizeof *entries, by_position);
    for (uint32_t i = 0; i < n; i++) {
        if (merged > 0 && by_position(&entries[merged - 1], &entries[i]) == 0)
            add(&entries[merged - 1].counts, &entries[i].counts),
                add(&entries[merged - 1].target, &entries[i].target);
        else
            entries[merged++] = entries[i];
    }
    TL_INVARIANT_OR(0, merged <= n && n <= s->nsites, "%u entries of %u sites", merged, s->nsites);
    return merged;
}

enum { LOADS, STORES };

typedef struct totals {
    counts global[2], shared[2], atomics, copied, target;
    uint64_t widths[WIDTHS]; /* threads' global accesses of 8 << i bits */
    uint64_t barriers, shuffles;
} totals;

static void add_to_totals(totals *t, const entry *e)
{
    const tl_leaf_row *row = row_of(e->position.leaf);
    const counts *c = &e->counts;
    bool loads = tl_leaf_is_shared_load_of_warp(e->position.leaf) ||
                 row->family == TL_LEAF_FAMILY_LDS;
    bool stores = tl_leaf_is_stsm(e->position.leaf) || row->family == TL_LEAF_FAMILY_STS;
    if (is_copy(row)) {
        add(&t->copied, c);
        add(&t->target, &e->target);
    } else if (loads || stores) {
        add(&t->shared[loads ? LOADS : STORES], c);
    } else if (row->class_ == TL_LEAF_CLASS_GLOBAL) {
        add(&t->global[*row->result == 'v' ? STORES : LOADS], c);
        TL_INVARIANT_VOID(row->size >= 8 && row->size >> (WIDTHS + 2) <= 1, "%u bits", row->size);
        t->widths[__builtin_ctz(row->size / 8)] += c->threads;
    } else if (row->class_ == TL_LEAF_CLASS_ATOMIC) {
        add(&t->atomics, c);
    } else if (row->family == TL_LEAF_FAMILY_BARRIER) {
        t->barriers += c->executed;
    } else if (row->family == TL_LEAF_FAMILY_SHFL_IDX || row->family == TL_LEAF_FAMILY_SHFL_END ||
               row->family == TL_LEAF_FAMILY_SHFL_XOR || row->family == TL_LEAF_FAMILY_SHFL_SHIFT ||
               row->family == TL_LEAF_FAMILY_REDUX || row->family == TL_LEAF_FAMILY_REDUX_F32) {
        t->shuffles += c->executed;
    }
}

static void put_totals(FILE *f, const totals *sum)
{
    static const char *const names[] = {"loads", "stores"};
    uint64_t accesses = 0, conflicts = 0;
    for (int i = 0; i < 2; i++)
        fprintf(f,
                "global %s: %" PRIu64 " requests, %" PRIu64 " sectors (min %" PRIu64 "), %" PRIu64
                " lines, %" PRIu64 " bytes\n",
                names[i], sum->global[i].requests, sum->global[i].units, sum->global[i].minimum,
                sum->global[i].lines, sum->global[i].bytes);
    for (int i = 0; i < 2; i++) {
        fprintf(f, "shared %s: %" PRIu64 " requests, %" PRIu64 " wavefronts (min %" PRIu64 ")\n",
                names[i], sum->shared[i].requests, sum->shared[i].units, sum->shared[i].minimum);
        conflicts += sum->shared[i].units - sum->shared[i].minimum;
    }
    if (sum->target.requests)
        fprintf(f,
                "copies: %" PRIu64 " requests, %" PRIu64 " sectors (min %" PRIu64 "), %" PRIu64
                " bytes, %" PRIu64 " wavefronts (min %" PRIu64 ")\n",
                sum->target.requests, sum->copied.units, sum->copied.minimum, sum->copied.bytes,
                sum->target.units, sum->target.minimum);
    conflicts += sum->target.units - sum->target.minimum;
    fprintf(f, "bank conflicts: %" PRIu64 "\n", conflicts);
    fprintf(f, "atomics: %" PRIu64 " requests, %" PRIu64 " operations, %" PRIu64 " sectors\n",
            sum->atomics.requests, sum->atomics.threads, sum->atomics.units);
    fprintf(f, "global widths:");
    for (int i = 0; i < WIDTHS; i++) {
        accesses += sum->widths[i];
        fprintf(f, "%s %d-bit %" PRIu64, i ? "," : "", 8 << i, sum->widths[i]);
    }
    fprintf(f, "\n128-bit accesses: %s%%\n",
            TL_NUMBER("%.1f", 100 * per(sum->widths[WIDTHS - 1], accesses)));
    fprintf(f, "barriers: %" PRIu64 "\nshuffles: %" PRIu64 "\n", sum->barriers, sum->shuffles);
}

char *tl_emu_stats_print(const tl_emu_stats *s)
{
    const tile_image_kernel *k = s->launch->kernel;
    entry *entries = calloc(s->nsites + 1, sizeof *entries);
    totals sum = {0};
    char *text = NULL;
    size_t size;
    FILE *f = entries ? open_memstream(&text, &size) : NULL;
    uint32_t n = f ? gather(s, entries) : 0;
    if (f)
        fprintf(f,
                "kernel %.200s: %" PRIu64 " blocks of %" PRIu64
                " threads, %u bytes of shared memory\n",
                tl_image_text(s->launch->image, k->name), s->blocks,
                s->blocks ? s->threads / s->blocks : 0, k->shared_bytes);
    for (uint32_t i = 0; i < n; i++) {
        put_site(f, &entries[i]);
        add_to_totals(&sum, &entries[i]);
    }
    if (f)
        put_totals(f, &sum);
    free(entries);
    if (f && fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}
