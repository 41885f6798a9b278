/* emu_run.c: launches on the emulator: blocks on workers.
 *
 * The kernel is what a GPU would run, made for the host: its entry runs one thread. Threads of a
 * block are fibers of one host thread (emu_fiber.c); they run until a collective needs the others
 * (emu_meet.c), and the schedule says who goes on (emu_sched.c). Leaves (emu_leaf.c) do what the
 * hardware would and tell the watch (emu_check.h).
 *
 * Blocks start in increasing order, on as many workers as the pool has. A worker runs one block to
 * its end before it starts the next, as long as that works. A program may wait for one of a lower
 * number, and those of a persistent kernel for each other: threads that only spin end the block's
 * time slice, and when all blocks of a worker have spun for some slices it starts another one
 * beside them, up to what tl_emu_resident says.
 *
 * Under the reverse schedule a worker takes CHUNK blocks at a time and begins with the last; under
 * the random one it always has some blocks, and chance says which runs next.
 *
 * The blocks of a cluster start together, on one worker, and when one of them breaks, all end. */
#include "runtime/emu/emu.h"
#include <stdlib.h>
#include <time.h>

enum {
    RESIDENT_RANDOM = 3,
    PATIENCE = 16, /* slices of each block before another is started */
    CHUNK = 8,
    POISON = 0xAB /* what shared memory holds at first */
};

struct tl_emu_worker {
    tl_fiber main;
    tl_fiber_stacks *stacks;
    tl_emu_block *resident, *unused; /* lists */
    uint32_t nresident, wanted, most; /* blocks at a time */
    uint64_t slices;                  /* since a block began or ended */
    int64_t begin, end;              /* blocks taken, not started */
    uint64_t chance;
};

typedef struct shift {
    tl_emu_crew *crew;
    tl_emu_job *job;
} shift;

/* ---- threads ---- */

/* A thread has returned. */
static void thread_ended(tl_emu_block *b, const tl_emu_thread *t)
{
    tl_emu_warp *w = &b->warps[t->index / b->lanes];
    tl_emu_copies_ended(b, t);
    tl_emu_wgmma_ended(b, t);
    b->ended++;
    w->ended++;
    TL_EMU_INVARIANT(b, t->site, b->ended <= b->nthreads && w->ended <= b->lanes,
                     "%u threads of %u have ended", b->ended, b->nthreads);
    tl_emu_meet_without(b, t);
    if (b->ended < b->nthreads)
        return;
    tl_emu_bulk_ended(b);
    tl_emu_stores_ended(b);
    tl_emu_tensor_ended(b);
    tl_emu_meet_ended(b, t->site);
}

static void live(void *user)
{
    tl_emu_block *b = user;
    tl_fiber_started(&b->current->fiber);
    for (;;) {
        b->job->kernel->entry(b->job->launch->slots);
        thread_ended(b, b->current);
        tl_emu_leave(b);
    }
}

/* ---- blocks ---- */

static uint32_t cluster_size(const tl_emu_job *job)
{
    return job->launch->cluster > 1 ? (uint32_t)job->launch->cluster : 1;
}

static void free_block(tl_emu_block *b)
{
    free(b->prints.data);
    tl_emu_copies_free(b);
    tl_emu_wgmma_free(b);
    tl_emu_bulk_free(b);
    tl_emu_stores_free(b);
    tl_emu_tensor_free_all(b);
    free(b->matrices);
    free(b->threads);
    free(b->warps);
    free(b->shared);
    free(b);
}

/* Room for the kernel's threads and shared memory. */
static bool make_room(tl_emu_block *b, const tl_emu_kernel *k)
{
    if (b->room_threads < k->threads) {
        free(b->threads);
        free(b->warps);
        b->threads = calloc(k->threads, sizeof *b->threads);
        b->warps = calloc(k->threads, sizeof *b->warps);
        b->room_threads = b->threads && b->warps ? k->threads : 0;
    }
    if (b->room_copies < k->threads && !tl_emu_copies_make_room(b, k->threads))
        return false;
    if (b->room_products < k->threads / k->lanes &&
        !tl_emu_wgmma_make_room(b, k->threads / k->lanes))
        return false;
    if (b->room_shared < k->shared_bytes) {
        free(b->shared);
        b->shared = aligned_alloc(64, (k->shared_bytes + 63) / 64 * (size_t)64);
        b->room_shared = b->shared ? k->shared_bytes : 0;
    }
    return b->room_threads >= k->threads && b->room_shared >= k->shared_bytes;
}

static tl_emu_block *unused_block(tl_emu_worker *w, const tl_emu_kernel *k)
{
    tl_emu_block *b = w->unused;
    if (b)
        w->unused = b->next;
    else
        b = calloc(1, sizeof *b);
    if (!b || make_room(b, k))
        return b;
    free_block(b);
    return NULL;
}

static void fill_in(tl_emu_block *b, tl_emu_worker *w, tl_emu_job *job, int64_t linear,
                    tl_emu_cluster *cluster, uint32_t rank)
{
    const tl_emu_kernel *k = job->kernel;
    TL_INVARIANT_VOID(k->lanes > 0 && k->threads % k->lanes == 0 && k->threads <= b->room_threads,
                      "%u threads in warps of %u, room for %u", k->threads, k->lanes,
                      b->room_threads);
    b->job = job;
    b->worker = w;
    b->main = &w->main;
    b->life = live;
    b->stacks = w->stacks;
    b->linear = linear;
    b->cluster = cluster;
    b->rank = rank;
    b->at_meeting = false;
    b->met = 0;
    cluster->blocks[rank] = b;
    cluster->running++;
    b->nthreads = k->threads;
    b->lanes = k->lanes;
    b->nwarps = k->threads / k->lanes;
    b->ended = b->warps_waiting = b->first_warp = 0;
    b->atomics = 0;
    b->current = NULL;
    memset(b->threads, 0, k->threads * sizeof *b->threads);
    memset(b->warps, 0, b->nwarps * sizeof *b->warps);
    for (uint32_t i = 0; i < k->threads; i++)
        b->threads[i].index = i;
    if (k->shared_bytes)
        memset(b->shared, POISON, k->shared_bytes);
    tl_emu_copies_reset(b);
    tl_emu_wgmma_reset(b);
    tl_emu_bulk_reset(b);
    tl_emu_stores_reset(b);
    tl_emu_tensor_reset(b);
    tl_emu_registers_reset(b);
    memset(b->at_number, 0, sizeof b->at_number);
    memset(b->passing, 0, sizeof b->passing);
    tl_emu_block_order(b);
}

/* Starts the block of the cluster in addition to the worker's resident blocks. False: out of
 * memory. */
static bool start_block(tl_emu_worker *w, tl_emu_job *job, int64_t linear, tl_emu_cluster *cluster,
                        uint32_t rank)
{
    tl_emu_block *b = unused_block(w, job->kernel);
    if (!b)
        return false;
    if (tl_emu_block_begin(job->watch, linear, job->kernel->threads, &b->watch) != TILE_OK) {
        b->next = w->unused;
        w->unused = b;
        return false;
    }
    fill_in(b, w, job, linear, cluster, rank);
    tl_emu_block **last = &w->resident;
    while (*last)
        last = &(*last)->next;
    b->next = NULL;
    *last = b;
    w->nresident++;
    w->slices = 0;
    return true;
}

/* All blocks of the cluster that begins with block `first`. */
static bool start_cluster(tl_emu_worker *w, tl_emu_job *job, int64_t first)
{
    tl_emu_cluster *c = calloc(1, sizeof *c);
    if (!c)
        return false;
    c->size = cluster_size(job);
    for (uint32_t i = 0; i < c->size; i++) {
        uint32_t rank = job->schedule.order == TL_EMU_REVERSE ? c->size - 1 - i : i;
        if (start_block(w, job, first + rank, c, rank))
            continue;
        c->broken = true; /* the others end */
        if (i == 0)
            free(c);
        return false;
    }
    return true;
}

static void leave_cluster(tl_emu_block *b)
{
    b->cluster->blocks[b->rank] = NULL;
    b->cluster->changes++;
    if (--b->cluster->running == 0)
        free(b->cluster);
    b->cluster = NULL;
}

/* False: an invariant broke; the worker stops. */
static bool end_block(tl_emu_worker *w, tl_emu_block *b)
{
    for (uint32_t i = 0; i < b->nthreads; i++)
        if (b->threads[i].stack) {
            tl_fiber_drop(&b->threads[i].fiber);
            tl_fiber_stack_give(w->stacks, b->threads[i].stack);
        }
    tl_emu_print_end(b);
    tl_emu_block_end(b->watch);
    leave_cluster(b);
    tl_emu_block **at = &w->resident;
    while (*at && *at != b)
        at = &(*at)->next;
    TL_INVARIANT_OR(false, *at && w->nresident > 0, "a block ends that is not resident");
    *at = b->next;
    b->next = w->unused;
    w->unused = b;
    w->nresident--;
    w->slices = 0;
    return true;
}

/* ---- workers ---- */

/* The first block of the next cluster to start; false: all have been started. */
static bool next_cluster(tl_emu_worker *w, tl_emu_job *job, int64_t *out_linear)
{
    int64_t size = cluster_size(job);
    if (w->begin == w->end) {
        int64_t n = job->schedule.order == TL_EMU_REVERSE ? (CHUNK + size - 1) / size * size : size;
        w->begin = atomic_fetch_add_explicit(&job->next, n, memory_order_relaxed);
        w->end = w->begin + n < job->launch->blocks ? w->begin + n : job->launch->blocks;
        if (w->begin >= w->end) {
            w->begin = w->end;
            return false;
        }
    }
    TL_INVARIANT_OR(false, w->begin < w->end && w->end <= job->launch->blocks,
                    "blocks %lld to %lld", (long long)w->begin, (long long)w->end);
    bool last = job->schedule.order == TL_EMU_REVERSE;
    *out_linear = last ? w->end - size : w->begin;
    w->end -= last ? size : 0;
    w->begin += last ? 0 : size;
    return true;
}

static void start_wanted(tl_emu_worker *w, tl_emu_job *job)
{
    int64_t linear;
    while (w->nresident < w->wanted && !job->no_memory && next_cluster(w, job, &linear))
        if (!start_cluster(w, job, linear))
            job->no_memory = true;
}

/* Moves the first resident block to the end and returns it. */
static tl_emu_block *take_turn(tl_emu_worker *w, const tl_emu_job *job)
{
    TL_INVARIANT_OR(NULL, w->resident && w->nresident > 0, "no block to run, of %u", w->nresident);
    uint32_t skip = job->schedule.order == TL_EMU_RANDOM ? (uint32_t)(w->chance % w->nresident) : 0;
    w->chance = w->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    for (uint32_t i = 0;; i++) {
        tl_emu_block *b = w->resident, **last = &w->resident;
        w->resident = b->next;
        while (*last)
            last = &(*last)->next;
        *last = b;
        b->next = NULL;
        if (i == skip)
            return b;
    }
}

/* A block's slice has ended with all its threads spinning. A slice is costly (every thread of the
 * block runs to the loop's barriers), so after a few slices the processor is left to other
 * workers. */
static void wait_for_others(tl_emu_worker *w)
{
    static const struct timespec pause = {0, 20000};
    if (w->slices > 2 * (uint64_t)w->nresident)
        nanosleep(&pause, NULL);
    if (++w->slices % ((uint64_t)PATIENCE * w->nresident) == 0 && w->wanted < w->most)
        w->wanted++;
}

uint32_t tl_emu_resident(uint32_t threads, uint32_t workers)
{
    enum { MOST_BLOCKS = 64, STACKS = 24576 };
    uint64_t all = (uint64_t)threads * workers, n = all ? STACKS / all : MOST_BLOCKS;
    return n > MOST_BLOCKS ? MOST_BLOCKS : n < RESIDENT_RANDOM ? RESIDENT_RANDOM : (uint32_t)n;
}

static void run_blocks(tl_emu_worker *w, tl_emu_job *job, uint32_t workers)
{
    w->begin = w->end = 0;
    w->most = tl_emu_resident(job->kernel->threads, workers);
    w->chance = job->schedule.seed;
    w->wanted = job->schedule.order == TL_EMU_RANDOM ? RESIDENT_RANDOM : 1;
    for (;;) {
        start_wanted(w, job);
        if (w->nresident == 0)
            return;
        tl_emu_block *b = take_turn(w, job);
        if (!b)
            return;
        tl_emu_cluster *c = b->cluster;
        uint64_t before = c->changes;
        tl_emu_event event = c->broken ? TL_EMU_BROKEN : tl_emu_block_slice(b);
        if (event == TL_EMU_STUCK)
            tl_emu_report_deadlock(b);
        c->broken |= event == TL_EMU_BROKEN || event == TL_EMU_STUCK;
        if (event == TL_EMU_SLICE && c->changes != before)
            w->slices = 0;
        else if (event == TL_EMU_SLICE)
            wait_for_others(w);
        else if (!end_block(w, b))
            return;
    }
}

/* Makes sure that the worker's stacks are large enough for this kernel. */
static bool ready_stacks(tl_emu_worker *w, size_t bytes)
{
    if (w->stacks && tl_fiber_stack_bytes(w->stacks) >= bytes)
        return true;
    tl_fiber_stacks_free(w->stacks);
    w->stacks = NULL;
    return tl_fiber_stacks_new(bytes, &w->stacks) == TILE_OK;
}

static void work(void *user, int index, int64_t begin, int64_t end)
{
    const shift *s = user;
    tl_emu_worker *w = &s->crew->workers[index];
    TL_INVARIANT_VOID((uint32_t)index < s->crew->nworkers, "worker %d of %u", index,
                      s->crew->nworkers);
    (void)begin;
    (void)end;
    if (ready_stacks(w, s->job->kernel->stack_bytes))
        run_blocks(w, s->job, s->crew->nworkers);
    else
        s->job->no_memory = true;
}

tile_status tl_emu_run(tl_pool *pool, tl_emu_crew *crew, tl_emu_job *job)
{
    TL_INVARIANT(pool && crew && job->launch, "a job of no launch");
    shift s = {crew, job};
    int64_t n = tl_pool_threads(pool);
    tile_status status = tl_pool_run(pool, n < job->launch->blocks ? n : job->launch->blocks,
                                     TL_POOL_INCREASING, work, &s);
    tile_status broken = tl_broken_status();
    if (status != TILE_OK || broken != TILE_OK)
        return TILE_INTERNAL;
    return job->no_memory ? tl_fail(TILE_NO_MEMORY, "out of memory for the emulator's threads")
                          : TILE_OK;
}

/* ---- the crew ---- */

tile_status tl_emu_crew_open(tl_pool *pool, tl_emu_crew *crew)
{
    TL_INVARIANT(pool && crew, "a crew of no pool");
    crew->nworkers = (uint32_t)tl_pool_threads(pool);
    crew->workers = calloc(crew->nworkers, sizeof *crew->workers);
    return crew->workers ? TILE_OK : tl_fail(TILE_NO_MEMORY, "out of memory");
}

void tl_emu_crew_close(tl_emu_crew *crew)
{
    for (uint32_t i = 0; crew->workers && i < crew->nworkers; i++) {
        tl_emu_worker *w = &crew->workers[i];
        TL_INVARIANT_VOID(!w->resident && w->nresident == 0, "worker %u still has %u blocks", i,
                          w->nresident);
        while (w->unused) {
            tl_emu_block *next = w->unused->next;
            free_block(w->unused);
            w->unused = next;
        }
        tl_fiber_stacks_free(w->stacks);
    }
    free(crew->workers);
    crew->workers = NULL;
}
