/* emu_check.c: which accesses of a running kernel are errors, and how they are reported.
 *
 * Each access goes through: bounds and alignment (always; an access outside must not happen),
 * then, for a checked kernel, "has anything written what this reads" and "is this ordered with
 * whoever touched the byte before" (emu_watch.h), then the counters.
 *
 * Global memory is what the launch's arguments bring: the bytes of each, up to the end of the
 * allocation that it points into. Shared memory is [0, shared_bytes) of each block, all unwritten
 * at its start.
 *
 * Registers of padding are no exception: the lowering reads nothing that nobody writes. Loads of
 * global memory are predicated; if a conversion through shared memory has to read something for
 * padding, its plan gives it a place that is written (ir/plan/layout_convert.h).
 *
 * A block reports only its first race and its first unwritten read: later ones may follow from
 * them, and tl_sink_fail keeps only one in any case. A race of two blocks is reported for the
 * lower one, so that the report is the same whichever came second. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu_watch.h"

/* The memory of one argument. */
typedef struct range {
    uint64_t at, bytes; /* UINT64_MAX: unknown, holds everything */
    tl_emu_memory *memory;
    const char *name;
    uint32_t param;
    bool is_const;
    bool is_shared; /* this range or one that overlaps it may be written */
} range;

typedef struct stripe {
    pthread_mutex_t lock;
    tl_emu_shadow shadow;
} stripe;

struct tl_emu_watch {
    const tl_launch *launch;
    tl_emu_watch_options options;
    tl_emu_report report;
    void *user;
    uint32_t nranges;
    range ranges[TL_MAX_PARAMS];
    stripe stripes[TL_EMU_STRIPES];
    tl_emu_released *released;
    tl_emu_stats *stats;
    uint32_t *ops;    /* by site, see tl_emu_order; UINT32_MAX: others */
    bool has_products;
    atomic_bool lost; /* out of memory: races can no longer be found */
};

struct tl_emu_block_watch {
    tl_emu_watch *watch;
    int64_t block;
    tl_emu_order order;
    tl_emu_shadow shared;
    uint8_t *written; /* a bit per byte of shared memory */
    tl_emu_block_stats *stats;
    uint32_t **visits; /* by site, then thread; allocated when first needed */
    bool told_unwritten;
    uint32_t told_race; /* the block in whose name one was reported */
    tl_emu_flights flights;
    bool told_flight;
    tl_emu_products products;
};

enum { SCOPE_BLOCK }; /* ir/enums.def */
_Static_assert(TL_EMU_STRIPES == 64, "the upper 6 bits of a hash choose the stripe");
_Static_assert(TL_EMU_STAMP_THREADS == 1 << 11 && TL_EMU_MAX_SITES == 1 << 20,
               "a stamp has 11 bits for the thread, 20 for the site");

/* ---- reports ---- */

static const tile_image_site *sites_of(const tl_launch *l)
{
    return (const void *)tl_image_text(l->image, l->kernel->sites);
}

static const char *verb_of(const tl_emu_access *a)
{
    return a->kind == TL_EMU_LOAD ? "load" : a->kind == TL_EMU_STORE ? "store" : "atomic";
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "'x'", "shared memory" (of no range) */
typedef struct memory_name {
    char text[104];
} memory_name;

static memory_name name_of(const range *r)
{
    memory_name n = {"shared memory"};
    if (r)
        snprintf(n.text, sizeof n.text, "'%.100s'", r->name);
    return n;
}

/* Where a byte is in its array or in shared memory. */
static uint64_t offset_in(const range *r, uint64_t at)
{
    return r ? at - r->at : at;
}

/* In the name of a block. */
__attribute__((format(printf, 5, 6))) static void tell(const tl_emu_watch *w, int64_t block,
                                                       tl_fail_kind kind, uint32_t site,
                                                       const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->report(w->user, block, kind, site, text);
}

/* ---- ranges ---- */

static bool holds(const range *r, uint64_t at, uint32_t bytes)
{
    if (r->bytes == UINT64_MAX)
        return true;
    return at >= r->at && at - r->at <= r->bytes && bytes <= r->bytes - (at - r->at);
}

/* The range of the parameter that, according to the compiler, a site accesses; NULL: the compiler
 * does not know. */
static const range *range_of_site(const tl_emu_watch *w, uint32_t site)
{
    const tl_launch *l = w->launch;
    uint32_t param = site < l->kernel->nsites ? sites_of(l)[site].param : 0;
    for (uint32_t i = 0; param && i < w->nranges; i++)
        if (w->ranges[i].param == param - 1)
            return &w->ranges[i];
    return NULL;
}

/* Does it change nothing? */
static bool only_reads(const tl_emu_access *a)
{
    return a->kind == TL_EMU_LOAD || (a->kind == TL_EMU_ATOMIC && a->atom == TL_ATOM_LOAD);
}

/* The range that contains an access; NULL: none. With checks, an access through a parameter must
 * stay in its range. Otherwise writes prefer ranges that may be written, and ranges of known size
 * come first. */
static const range *find_range(const tl_emu_watch *w, const tl_emu_access *a)
{
    const range *best = range_of_site(w, a->site);
    if (best && (w->options.check || holds(best, a->at, a->bytes)))
        return holds(best, a->at, a->bytes) ? best : NULL;
    best = NULL;
    for (uint32_t i = 0; i < w->nranges; i++) {
        const range *r = &w->ranges[i];
        if (!holds(r, a->at, a->bytes))
            continue;
        bool fits = only_reads(a) || !r->is_const;
        if (fits && r->bytes != UINT64_MAX)
            return r;
        if (!best || (fits && best->is_const))
            best = r;
    }
    return best;
}

static uint64_t distance(const range *r, uint64_t at)
{
    if (at < r->at)
        return r->at - at;
    return at - r->at < r->bytes ? 0 : at - r->at - r->bytes;
}

/* The range that an address outside of all ranges was probably meant for; NULL: it is far from
 * all. */
static const range *nearest(const tl_emu_watch *w, uint64_t at)
{
    const range *best = NULL;
    for (uint32_t i = 0; i < w->nranges; i++)
        if (!best || distance(&w->ranges[i], at) < distance(best, at))
            best = &w->ranges[i];
    return best && distance(best, at) < UINT64_C(1) << 40 ? best : NULL;
}

static bool overlaps(const range *a, const range *b)
{
    const range *low = a->at <= b->at ? a : b, *high = low == a ? b : a;
    return low->bytes == UINT64_MAX || high->at - low->at < low->bytes;
}

static void bind_ranges(tl_emu_watch *w)
{
    const tl_launch *l = w->launch;
    const tile_image_param *params = (const void *)tl_image_text(l->image, l->kernel->params);
    for (uint32_t i = 0; i < l->nargs; i++) {
        const tile_arg *a = &l->args[i];
        uint64_t left;
        if (a->kind == TILE_ARG_SCALAR || !a->address)
            continue;
        TL_INVARIANT_VOID(w->nranges < TL_MAX_PARAMS, "%u ranges", w->nranges);
        range *r = &w->ranges[w->nranges++];
        r->name = tl_image_text(l->image, params[i].name);
        r->param = i;
        r->at = (uintptr_t)a->address;
        r->memory = tl_emu_memory_at(a->address, &left);
        r->bytes = a->bytes;
        if (r->memory && r->bytes > left)
            r->bytes = left;
        r->is_const = params[i].is_const;
        if (!w->options.check && !r->is_const && r->memory)
            tl_emu_memory_give_up(r->memory);
    }
    for (uint32_t i = 0; i < w->nranges; i++)
        for (uint32_t k = 0; k < w->nranges; k++)
            w->ranges[i].is_shared |=
                !w->ranges[k].is_const && overlaps(&w->ranges[i], &w->ranges[k]);
}

/* ---- the watch ---- */

void tl_emu_watch_free(tl_emu_watch *w)
{
    if (!w)
        return;
    for (int i = 0; i < TL_EMU_STRIPES; i++) {
        tl_emu_shadow_free(&w->stripes[i].shadow);
        pthread_mutex_destroy(&w->stripes[i].lock);
    }
    tl_emu_released_free(w->released);
    tl_emu_stats_free(w->stats);
    free(w->ops);
    free(w);
}

/* Sites of one op follow one another among the sites with the same flag. NULL: out of memory. */
static uint32_t *find_ops(const tl_launch *l)
{
    const tile_image_site *s = sites_of(l), *last = NULL;
    uint32_t *ops = malloc((l->kernel->nsites + 1) * sizeof *ops);
    for (uint32_t i = 0, op = 0; ops && i < l->kernel->nsites; i++) {
        bool any_wins = s[i].flags & TILE_SITE_ANY_WINS;
        if (any_wins &&
            (!last || last->file != s[i].file || last->line != s[i].line || last->col != s[i].col))
            op = i;
        if (any_wins)
            last = &s[i];
        ops[i] = any_wins ? op : UINT32_MAX;
    }
    return ops;
}

/* Does the leaf read shared memory not as threads do? */
static bool reads_behind(uint32_t leaf)
{
    return leaf == TL_LEAF_WGMMA ||
           tl_leaf_info((tl_leaf)leaf)->family == TL_LEAF_FAMILY_BULK_STORE;
}

tile_status tl_emu_watch_new(const tl_launch *launch, const tl_emu_watch_options *options,
                             tl_emu_report report, void *user, tl_emu_watch **out_watch)
{
    TL_INVARIANT(launch && options && out_watch, "a watch of no launch");
    tl_emu_watch *w = calloc(1, sizeof *w);
    if (!w)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    w->launch = launch;
    w->options = *options;
    w->report = report;
    w->user = user;
    for (int i = 0; i < TL_EMU_STRIPES; i++)
        pthread_mutex_init(&w->stripes[i].lock, NULL);
    w->released = options->check ? tl_emu_released_new() : NULL;
    w->ops = options->check ? find_ops(launch) : NULL;
    w->stats = options->stats ? tl_emu_stats_new(launch, options->lanes) : NULL;
    if ((options->check && (!w->released || !w->ops)) || (options->stats && !w->stats)) {
        tl_emu_watch_free(w);
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    bind_ranges(w);
    for (uint32_t i = 0; i < launch->kernel->nsites; i++)
        w->has_products |= reads_behind(sites_of(launch)[i].leaf);
    *out_watch = w;
    return TILE_OK;
}

tile_status tl_emu_watch_status(const tl_emu_watch *w)
{
    TL_INVARIANT(w, "no watch");
    if (!atomic_load(&w->lost))
        return TILE_OK;
    return tl_fail(TILE_NO_MEMORY, "out of memory: the emulator's checks of a launch");
}

char *tl_emu_stats_text(const tl_emu_watch *w)
{
    return w->stats ? tl_emu_stats_print(w->stats) : calloc(1, 1);
}

/* ---- blocks ---- */

tile_status tl_emu_block_begin(tl_emu_watch *w, int64_t block, uint32_t threads,
                               tl_emu_block_watch **out_block)
{
    TL_INVARIANT(threads > 0 && out_block, "a block of no threads");
    if (threads > TL_EMU_STAMP_THREADS)
        return tl_fail(TILE_NO_RESOURCE, "a block of %u threads: the emulator has %d", threads,
                       TL_EMU_STAMP_THREADS);
    tl_emu_block_watch *b = calloc(1, sizeof *b);
    if (!b)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    b->watch = w;
    b->block = block;
    b->told_race = UINT32_MAX;
    tl_emu_order_begin(&b->order, (uint32_t)block, threads);
    b->order.ops = w->ops;
    b->written = w->options.check ? calloc(w->options.shared_bytes / 8 + 1, 1) : NULL;
    b->stats = w->stats ? tl_emu_block_stats_new(w->stats, threads) : NULL;
    bool products = w->has_products && w->options.check;
    if ((w->options.check && !b->written) || (w->stats && !b->stats) ||
        (products && !tl_emu_products_make(&b->products, w->options.shared_bytes, threads))) {
        tl_emu_block_end(b);
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    *out_block = b;
    return TILE_OK;
}

void tl_emu_block_end(tl_emu_block_watch *b)
{
    if (!b)
        return;
    TL_INVARIANT_VOID(b->watch, "a block that nothing watches ends");
    if (b->stats && !tl_emu_block_stats_end(b->stats))
        atomic_store(&b->watch->lost, true);
    for (uint32_t i = 0; b->visits && i < b->watch->launch->kernel->nsites; i++)
        free(b->visits[i]);
    free(b->visits);
    tl_emu_order_end(&b->order);
    tl_emu_shadow_free(&b->shared);
    tl_emu_flights_free(&b->flights);
    tl_emu_products_free(&b->products);
    free(b->written);
    free(b);
}

void tl_emu_block_barrier(tl_emu_block_watch *b)
{
    if (!tl_emu_order_barrier(&b->order))
        atomic_store(&b->watch->lost, true);
}

/* ---- bounds and alignment ---- */

static void tell_outside(tl_emu_block_watch *b, const tl_emu_access *a)
{
    bool global = a->space == TL_EMU_GLOBAL;
    const range *r = global ? range_of_site(b->watch, a->site) : NULL;
    if (global && !r)
        r = nearest(b->watch, a->at);
    if (global && !r)
        tell(b->watch, b->block, TL_RUN_BOUNDS, a->site,
             "%s of %u byte%s at %#" PRIx64 ", which is in no argument", verb_of(a), a->bytes,
             plural(a->bytes), a->at);
    else
        tell(b->watch, b->block, TL_RUN_BOUNDS, a->site,
             "%s of %u byte%s at offset %" PRId64 " of %s, which has %" PRIu64, verb_of(a),
             a->bytes, plural(a->bytes), (int64_t)offset_in(r, a->at), name_of(r).text,
             r ? r->bytes : b->watch->options.shared_bytes);
}

static void tell_misaligned(tl_emu_block_watch *b, const tl_emu_access *a, const range *r)
{
    if (r)
        tell(b->watch, b->block, TL_RUN_MISALIGNED, a->site,
             "%s of %u bytes at offset %" PRIu64 " of %s, whose address is %u mod %u", verb_of(a),
             a->bytes, a->at - r->at, name_of(r).text, (unsigned)(r->at % a->bytes), a->bytes);
    else
        tell(b->watch, b->block, TL_RUN_MISALIGNED, a->site, "%s of %u bytes at %s%" PRIu64 "%s",
             verb_of(a), a->bytes, a->space == TL_EMU_GLOBAL ? "address " : "offset ", a->at,
             a->space == TL_EMU_GLOBAL ? "" : " of shared memory");
}

/* Without checks, a pointer that comes from no parameter may point into any buffer. */
static bool is_in_some_buffer(const tl_emu_watch *w, const tl_emu_access *a)
{
    uint64_t left;
    return !w->options.check && !range_of_site(w, a->site) &&
           tl_emu_memory_at((const void *)(uintptr_t)a->at, &left) && a->bytes <= left;
}

/* Sets *out_range for global accesses; NULL: in no array of the launch. */
static bool is_allowed(tl_emu_block_watch *b, const tl_emu_access *a, const range **out_range)
{
    uint32_t size = b->watch->options.shared_bytes;
    bool global = a->space == TL_EMU_GLOBAL;
    *out_range = NULL;
    TL_INVARIANT_OR(false, a->bytes > 0 && (a->bytes & (a->bytes - 1)) == 0,
                    "an access of %u bytes", a->bytes);
    TL_INVARIANT_OR(false, a->thread < b->order.threads, "thread %u of %u", a->thread,
                    b->order.threads);
    *out_range = global ? find_range(b->watch, a) : NULL;
    bool outside = global ? !*out_range && !is_in_some_buffer(b->watch, a)
                          : a->at > size || a->bytes > size - a->at;
    if (outside) {
        tell_outside(b, a);
        return false;
    }
    if (a->at % a->bytes != 0) {
        tell_misaligned(b, a, *out_range);
        return false;
    }
    if (*out_range && !only_reads(a) && (*out_range)->is_const) {
        tell(b->watch, b->block, TL_RUN_BOUNDS, a->site,
             "%s of %u byte%s at offset %" PRIu64 " of %s, which is const", verb_of(a), a->bytes,
             plural(a->bytes), a->at - (*out_range)->at, name_of(*out_range).text);
        return false;
    }
    return true;
}

/* ---- unwritten reads ---- */

/* The first byte of shared memory in [at, at + bytes) that is not written, from at. */
static uint32_t shared_gap(const tl_emu_block_watch *b, uint64_t at, uint32_t bytes)
{
    uint32_t i = 0;
    TL_INVARIANT_OR(bytes, at + bytes <= b->watch->options.shared_bytes,
                    "%u bytes at %" PRIu64 " of %u were let through", bytes, at,
                    b->watch->options.shared_bytes);
    while (i < bytes && b->written[(at + i) / 8] >> (at + i) % 8 & 1)
        i++;
    return i;
}

static void tell_unwritten(tl_emu_block_watch *b, const tl_emu_access *a, const range *r,
                           uint32_t gap)
{
    char part[40] = "", where[160];
    if (a->bytes > 4 || gap > 0)
        snprintf(part, sizeof part, "; the first is byte %u", gap);
    if (r)
        snprintf(where, sizeof where, "%.100s + %" PRIu64, r->name, a->at - r->at);
    else
        snprintf(where, sizeof where, "offset %" PRIu64 " of shared memory", a->at);
    b->told_unwritten = true;
    tell(b->watch, b->block, TL_RUN_UNINIT, a->site,
         "%s of %u byte%s at %s, which nothing has written%s", verb_of(a), a->bytes,
         plural(a->bytes), where, part);
}

static void check_written(tl_emu_block_watch *b, const tl_emu_access *a, const range *r)
{
    bool reads = a->kind == TL_EMU_LOAD || (a->kind == TL_EMU_ATOMIC && a->atom != TL_ATOM_STORE);
    if (r && !r->memory)
        return;
    if (reads && !b->told_unwritten) {
        uint32_t gap =
            r ? tl_emu_memory_gap(r->memory, a->at, a->bytes) : shared_gap(b, a->at, a->bytes);
        if (gap < a->bytes)
            tell_unwritten(b, a, r, gap);
    }
    if (a->kind == TL_EMU_LOAD)
        return;
    if (r)
        tl_emu_memory_mark(r->memory, a->at, a->bytes);
    for (uint64_t i = a->at; !r && i < a->at + a->bytes; i++)
        b->written[i / 8] |= (uint8_t)(1u << i % 8);
}

/* ---- races ---- */

static const char *const effect_names[] = {
    [TL_EMU_READS] = "load",
    [TL_EMU_ATOMIC_READS] = "atomic load",
    [TL_EMU_ATOMIC_WRITES] = "atomic",
    [TL_EMU_WRITES] = "store",
};

static tl_emu_effect effect_of(const tl_emu_access *a)
{
    if (a->kind == TL_EMU_LOAD)
        return TL_EMU_READS;
    if (a->kind == TL_EMU_STORE)
        return TL_EMU_WRITES;
    return a->atom == TL_ATOM_LOAD ? TL_EMU_ATOMIC_READS : TL_EMU_ATOMIC_WRITES;
}

static void say_program(const tl_launch *l, uint32_t block, char *text, size_t size)
{
    int32_t pid[TILE_MAX_GRID];
    size_t n = (size_t)snprintf(text, size, "program ");
    tl_launch_pid(l, block, pid);
    for (uint32_t i = 0; i < l->ngrid && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%d", i ? "," : "", pid[i]);
    if (l->ngrid == 0)
        snprintf(text + n, size - n, "0");
}

static void say_thread(uint32_t thread, char *text, size_t size)
{
    if (thread == TL_EMU_NOBODY)
        snprintf(text, size, "in bulk, and not waited for");
    else
        snprintf(text, size, "thread %" PRIu32, thread);
}

static void tell_race(tl_emu_block_watch *b, const tl_emu_access *a, const range *r,
                      tl_emu_conflict c)
{
    tl_emu_stamp here = {.block = b->order.block, .thread = a->thread, .site = a->site};
    tl_emu_effect effect = effect_of(a);
    if (c.with.block < here.block) { /* reported in the name of the lower block */
        tl_emu_stamp s = here;
        tl_emu_effect e = effect;
        here = c.with;
        effect = c.effect;
        c.with = s;
        c.effect = e;
    }
    if (here.block >= b->told_race)
        return;
    tl_emu_position with = tl_emu_site_position(b->watch->launch, c.with.site);
    char who[100] = "this program", threads[2][40];
    say_thread(here.thread, threads[0], sizeof threads[0]);
    say_thread(c.with.thread, threads[1], sizeof threads[1]);
    if (c.with.block != here.block)
        say_program(b->watch->launch, c.with.block, who, sizeof who);
    b->told_race = here.block;
    tell(b->watch, here.block, TL_RUN_RACE, here.site,
         "this %s (%s) and the %s at %.200s:%u:%u (%s, %s) touch byte %" PRIu64
         " of %s in no order",
         effect_names[effect], threads[0], effect_names[c.effect], with.path, with.line, with.col,
         who, threads[1], offset_in(r, c.at), name_of(r).text);
}

static stripe *stripe_of(tl_emu_watch *w, uint64_t at)
{
    return &w->stripes[(at >> 10) * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

/* For stores where any value may win: numbers the executions of the site. */
static bool count_turn(tl_emu_block_watch *b, const tl_emu_access *a, tl_emu_stamp *stamp)
{
    TL_INVARIANT_OR(false, a->site < b->watch->launch->kernel->nsites, "site %u", a->site);
    if (!b->visits)
        b->visits = calloc(b->watch->launch->kernel->nsites, sizeof *b->visits);
    if (b->visits && !b->visits[a->site])
        b->visits[a->site] = calloc(b->order.threads, sizeof **b->visits);
    if (!b->visits || !b->visits[a->site])
        return false;
    stamp->special = 1;
    stamp->visit = b->visits[a->site][a->thread]++;
    return true;
}

static tl_emu_stamp stamp_of(const tl_emu_block_watch *b, const tl_emu_access *a)
{
    return (tl_emu_stamp){.block = b->order.block,
                          .tick = a->thread == TL_EMU_NOBODY ? UINT32_MAX : b->order.tick,
                          .thread = a->thread,
                          .site = a->site < TL_EMU_MAX_SITES ? a->site : TL_EMU_MAX_SITES - 1,
                          .special = a->kind == TL_EMU_ATOMIC && a->scope == SCOPE_BLOCK};
}

static void check_race(tl_emu_block_watch *b, const tl_emu_access *a, const range *r)
{
    tl_emu_stamp stamp = stamp_of(b, a);
    tl_emu_conflict conflict;
    tl_emu_verdict verdict;
    TL_INVARIANT_VOID(b->order.epoch <= b->order.tick && b->watch->ops, "epoch %u at tick %u",
                      b->order.epoch, b->order.tick);
    if ((r && !r->is_shared) || atomic_load(&b->watch->lost))
        return;
    if (a->kind == TL_EMU_STORE && a->site < b->watch->launch->kernel->nsites &&
        b->watch->ops[a->site] != UINT32_MAX && !count_turn(b, a, &stamp)) {
        atomic_store(&b->watch->lost, true);
        return;
    }
    if (r) {
        stripe *s = stripe_of(b->watch, a->at);
        pthread_mutex_lock(&s->lock);
        verdict = tl_emu_shadow_enter(&s->shadow, &b->order, effect_of(a), stamp, a->at, a->bytes,
                                      &conflict);
        pthread_mutex_unlock(&s->lock);
    } else {
        verdict = tl_emu_shadow_enter(&b->shared, &b->order, effect_of(a), stamp, a->at, a->bytes,
                                      &conflict);
    }
    if (verdict == TL_EMU_RACES)
        tell_race(b, a, r, conflict);
    if (verdict == TL_EMU_NO_MEMORY)
        atomic_store(&b->watch->lost, true);
}

/* ---- copies that are on their way ---- */

static void tell_flight(tl_emu_block_watch *b, const tl_emu_access *a, const range *r,
                        const tl_emu_copy *c)
{
    tl_emu_position with = tl_emu_site_position(b->watch->launch, c->site);
    b->told_flight = true;
    tell(b->watch, b->block, TL_RUN_ASYNC, a->site,
         "this %s (thread %u) touches byte %" PRIu64
         " of %s, %s where the copy at %.200s:%u:%u (thread %u) is on its way",
         verb_of(a), a->thread, r ? c->at - r->at : c->offset, name_of(r).text, r ? "from" : "to",
         with.path, with.line, with.col, c->thread);
}

static void check_flights(tl_emu_block_watch *b, const tl_emu_access *a, const range *r)
{
    tl_emu_copy c;
    if (b->flights.n && !b->told_flight && tl_emu_flights_meet(&b->flights, a, &c))
        tell_flight(b, a, r, &c);
}

/* ---- accesses ---- */

static void tell_products(tl_emu_block_watch *b, const tl_emu_access *a, uint32_t site)
{
    tl_emu_position with = tl_emu_site_position(b->watch->launch, site);
    bool product = with.leaf == TL_LEAF_WGMMA || with.leaf == TL_LEAF_TENSOR_MMA ||
                   with.leaf == TL_LEAF_TENSOR_MMA_SCALED || with.leaf == TL_LEAF_TENSOR_SCALES;
    b->told_flight = true;
    tell(b->watch, b->block, TL_RUN_ASYNC, a->site,
         "this %s (thread %u) touches byte %" PRIu64
         " of shared memory, which the %s at %.200s:%u:%u may still read",
         verb_of(a), a->thread, a->at, product ? "product" : "bulk store", with.path, with.line,
         with.col);
}

/* What threads write, for products. */
static void check_products(tl_emu_block_watch *b, const tl_emu_access *a)
{
    uint32_t site;
    if (a->space != TL_EMU_SHARED || a->kind == TL_EMU_LOAD || !b->products.cells)
        return;
    if (!b->told_flight && tl_emu_products_meet(&b->products, a, &site))
        tell_products(b, a, site);
    tl_emu_products_wrote(&b->products, a);
}

static void check_access(tl_emu_block_watch *b, const tl_emu_access *a, const range *r)
{
    check_flights(b, a, r);
    check_products(b, a);
    check_written(b, a, r);
    check_race(b, a, r);
}

bool tl_emu_block_access(tl_emu_block_watch *b, const tl_emu_access *a)
{
    const range *r;
    bool allowed = is_allowed(b, a, &r);
    if (b->stats)
        tl_emu_block_stats_access(b->stats, a->site, a->thread, allowed ? a : NULL);
    if (!allowed || !b->watch->options.check)
        return allowed;
    if (a->kind == TL_EMU_ATOMIC && a->space == TL_EMU_GLOBAL)
        tl_emu_released_lock(b->watch->released, a->at);
    check_access(b, a, r);
    return true;
}

static tl_emu_access access_of(tl_emu_space space, tl_emu_kind kind, uint32_t site, uint32_t thread,
                               uint64_t at, uint32_t bytes)
{
    return (tl_emu_access){
        .space = space, .kind = kind, .site = site, .thread = thread, .at = at, .bytes = bytes};
}

static tl_emu_access source_of(const tl_emu_copy *c)
{
    return access_of(TL_EMU_GLOBAL, TL_EMU_LOAD, c->site, c->thread, c->at, c->bytes);
}

static tl_emu_access target_of(const tl_emu_copy *c)
{
    return access_of(TL_EMU_SHARED, TL_EMU_STORE, c->site, c->thread, c->offset, c->bytes);
}

bool tl_emu_block_copy_begins(tl_emu_block_watch *b, const tl_emu_copy *c)
{
    tl_emu_access from = source_of(c), to = target_of(c);
    const range *r = NULL, *none;
    bool allowed = is_allowed(b, &to, &none) && (!c->inside || is_allowed(b, &from, &r));
    if (b->stats)
        tl_emu_block_stats_copy(b->stats, c->site, c->thread, allowed && c->inside ? &from : NULL,
                                allowed ? &to : NULL);
    if (!allowed || !b->watch->options.check)
        return allowed;
    if (c->inside)
        check_access(b, &from, r);
    check_access(b, &to, NULL);
    if (!tl_emu_flights_add(&b->flights, c, r && r->is_shared, b->watch->options.shared_bytes))
        atomic_store(&b->watch->lost, true);
    return true;
}

/* What other threads did since the copy began is a race unless a barrier orders it. */
void tl_emu_block_copy_ends(tl_emu_block_watch *b, const tl_emu_copy *c)
{
    tl_emu_access from = source_of(c), to = target_of(c);
    if (!b->watch->options.check || atomic_load(&b->watch->lost))
        return;
    tl_emu_flights_remove(&b->flights, c);
    if (c->inside)
        check_race(b, &from, find_range(b->watch, &from));
    check_race(b, &to, NULL);
    check_products(b, &to);
}

void tl_emu_block_copy_skip(tl_emu_block_watch *b, uint32_t site, uint32_t thread)
{
    if (b->stats)
        tl_emu_block_stats_copy(b->stats, site, thread, NULL, NULL);
}

/* A row is read for four lanes. Checking two of them is enough: at least one is not the thread that
 * wrote the row. It counts as written by the first of them. */
void tl_emu_block_matrices(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint32_t n,
                           bool stores, const uint32_t *offsets, bool *allowed)
{
    enum { ROWS = 8, ROW_BYTES = 16, LANES = 4 };
    const range *r;
    TL_INVARIANT_VOID(n > 0 && n <= 4 && thread + ROWS * LANES <= b->order.threads,
                      "%u matrices from thread %u of %u on", n, thread, b->order.threads);
    if (b->stats)
        tl_emu_block_stats_matrices(b->stats, site, n, offsets);
    for (uint32_t i = 0; i < ROWS * n; i++) {
        tl_emu_access a = access_of(TL_EMU_SHARED, stores ? TL_EMU_STORE : TL_EMU_LOAD, site,
                                    thread + LANES * (i % ROWS), offsets[i], ROW_BYTES);
        allowed[i] = is_allowed(b, &a, &r);
        if (!allowed[i] || !b->watch->options.check)
            continue;
        check_access(b, &a, NULL);
        a.thread++;
        if (!stores)
            check_race(b, &a, NULL);
    }
}

/* what: "this product reads" */
static void check_visible(tl_emu_block_watch *b, const tl_emu_access *a, const char *what)
{
    uint32_t writer;
    if (b->told_flight || !tl_emu_products_unseen(&b->products, a, &writer))
        return;
    b->told_flight = true;
    tell(b->watch, b->block, TL_RUN_RACE, a->site,
         "%s byte %" PRIu64
         " of shared memory, which thread %u has written and not made visible (fence_async)",
         what, a->at, writer);
}

bool tl_emu_block_bulk(tl_emu_block_watch *b, const tl_emu_copy *c, tl_emu_way way)
{
    tl_emu_access from = source_of(c), to = target_of(c);
    const range *r = NULL, *none;
    bool ends = way == TL_EMU_ENDS;
    if (!b->watch->options.check)
        return ends || (is_allowed(b, &to, &none) && (!c->inside || is_allowed(b, &from, &r)));
    if (ends) {
        tl_emu_flights_remove(&b->flights, c);
        tl_emu_products_forget(&b->products, &to);
        return true;
    }
    if (!is_allowed(b, &to, &none) || (c->inside && !is_allowed(b, &from, &r)))
        return false;
    if (c->inside && way == TL_EMU_BEGINS)
        check_access(b, &from, r);
    check_flights(b, &to, NULL);
    check_visible(b, &to, "this copy writes");
    check_products(b, &to);
    check_written(b, &to, NULL);
    if (!tl_emu_flights_add(&b->flights, c, r && r->is_shared, b->watch->options.shared_bytes))
        atomic_store(&b->watch->lost, true);
    return true;
}

enum { PIECE_BYTES = 16 };
typedef enum reader { PRODUCT, SCALES, STORE } reader;

/* What products, what brings their scales, and bulk stores read of shared memory, in pieces. A warp
 * reads as a whole: two threads are checked, of which one is not who wrote. */
static bool reads_piece(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t offset,
                        bool ends, reader by)
{
    const range *r;
    bool by_warp = by != STORE;
    tl_emu_access a = access_of(TL_EMU_SHARED, TL_EMU_LOAD, site, thread, offset, PIECE_BYTES);
    if (!is_allowed(b, &a, &r))
        return false;
    if (!b->watch->options.check)
        return true;
    if (!ends) {
        check_flights(b, &a, NULL);
        if (by != SCALES)
            check_written(b, &a, NULL);
        check_race(b, &a, NULL);
        check_visible(b, &a, by == STORE ? "this store reads" : "this product reads");
    }
    if (ends || by_warp)
        check_race(b, &a, NULL);
    if (by_warp) {
        a.thread++;
        check_race(b, &a, NULL);
    }
    tl_emu_products_read(&b->products, &a, ends);
    return true;
}

bool tl_emu_block_product(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t offset,
                          bool ends)
{
    return reads_piece(b, site, thread, offset, ends, PRODUCT);
}

bool tl_emu_block_brings(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t offset,
                         bool ends, uint32_t *out_missing)
{
    *out_missing = 0;
    if (!reads_piece(b, site, thread, offset, ends, SCALES))
        return false;
    for (uint32_t i = 0; i < PIECE_BYTES && b->watch->options.check; i++)
        *out_missing |= shared_gap(b, offset + i, 1) ? 0 : 1u << i;
    return true;
}

tl_emu_moment tl_emu_block_moment(const tl_emu_block_watch *b, uint32_t thread)
{
    return (tl_emu_moment){b->order.tick, thread};
}

bool tl_emu_block_is_past(const tl_emu_block_watch *b, tl_emu_moment then, uint32_t thread)
{
    tl_emu_stamp s = {.block = b->order.block, .tick = then.tick, .thread = then.thread};
    return !b->watch->options.check || tl_emu_is_before(&b->order, thread, s);
}

bool tl_emu_block_sends(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint32_t offset,
                        bool ends)
{
    return reads_piece(b, site, thread, offset, ends, STORE);
}

/* What one thread has written, another has, and now. */
static void restamp(tl_emu_block_watch *b, const range *r, const tl_emu_access *a, uint32_t from,
                    uint32_t to)
{
    tl_emu_access by = *a;
    stripe *s = stripe_of(b->watch, a->at);
    by.thread = to;
    if (!r || !r->is_shared)
        return;
    pthread_mutex_lock(&s->lock);
    tl_emu_shadow_restamp(&s->shadow, from, stamp_of(b, &by), a->at, a->bytes);
    pthread_mutex_unlock(&s->lock);
}

bool tl_emu_block_stores(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t at,
                         uint32_t bytes)
{
    const range *r;
    tl_emu_access a = access_of(TL_EMU_GLOBAL, TL_EMU_STORE, site, thread, at, bytes);
    if (!is_allowed(b, &a, &r))
        return false;
    if (!b->watch->options.check)
        return true;
    check_access(b, &a, r);
    restamp(b, r, &a, thread, TL_EMU_NOBODY);
    return true;
}

void tl_emu_block_stored(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t at,
                         uint32_t bytes)
{
    tl_emu_access a = access_of(TL_EMU_GLOBAL, TL_EMU_STORE, site, thread, at, bytes);
    if (b->watch->options.check)
        restamp(b, find_range(b->watch, &a), &a, TL_EMU_NOBODY, thread);
}

void tl_emu_block_fence(tl_emu_block_watch *b, uint32_t thread)
{
    tl_emu_products_fence(&b->products, thread);
}

void tl_emu_block_atomic_done(tl_emu_block_watch *b, const tl_emu_access *a, bool wrote)
{
    if (!b->watch->options.check)
        return;
    if (!tl_emu_order_atomic(&b->order, b->watch->released, a, wrote))
        atomic_store(&b->watch->lost, true);
    tl_emu_released_unlock(b->watch->released, a->at);
}

void tl_emu_block_skip(tl_emu_block_watch *b, uint32_t site, uint32_t thread)
{
    if (b->stats)
        tl_emu_block_stats_access(b->stats, site, thread, NULL);
}

void tl_emu_block_count(tl_emu_block_watch *b, uint32_t site, uint32_t thread, tl_leaf leaf)
{
    if (b->stats)
        tl_emu_block_stats_count(b->stats, site, thread, leaf);
}
