/* pool.c: a persistent thread pool that hands out ranges of program numbers.
 *
 * If a program may spin until one of a lower number has done something, the order matters more
 * than the balance. Ranges are claimed in increasing order and each is run in order, so the lowest
 * program that has not ended is always one that a thread is running, or will run next without
 * waiting for anybody; spinning programs wait for it. This holds for any number of threads, one
 * included, as long as the system runs every thread now and then.
 *
 * If no program waits, each thread has a share of the numbers, the same in every job, and then
 * helps the others with theirs: neighbours touch the same memory, and what a thread wrote in one
 * job is in its core's cache in the next.
 *
 * Workers sleep on a condition between jobs. The caller works too, as worker 0, and returns when
 * every range has ended. Waking a thread takes from 5 to 50 microseconds, so the caller runs a job
 * of one range alone, and a waiting thread spins for SPIN_NS before it sleeps: a worker for the
 * next job, the caller for the last range. Nobody spins in an idle pool, nor if there are fewer
 * processors than threads.
 *
 * Workers may be pinned to processors (affinity.c). The caller never is: its thread is the user's.
 * The first place is left to it.
 *
 * After a fork the child's pool has no workers until its first job, which starts them again. When
 * the library is unloaded, idle workers end; a later job is the caller's alone. */
#include "runtime/host/processors.h"
#include "runtime/life.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_THREADS = 1024, RANGES_PER_THREAD = 16, MAX_RANGE = 64 };
enum { SPIN_NS = 30000, LOOKS = 32 }; /* looks between two readings of the clock */

typedef struct worker {
    tl_pool *pool;
    pthread_t thread;
    int index;
} worker;

/* Numbers that are handed out in increasing order; apart from what another thread writes to. */
typedef struct share {
    _Alignas(64) atomic_int_fast64_t next;
    int64_t end;
} share;

/* What the machine and the environment say. */
typedef struct setting {
    int threads;
    int usable;         /* threads that can run at once */
    int *place, places; /* tl_affinity_places */
} setting;

struct tl_pool {
    tl_life life;
    setting setting;      /* threads: those that could be started */
    bool is_lost;         /* the workers are those of the process that forked */
    int threads;          /* including the caller */
    bool spins;           /* there is a processor for each */
    pthread_mutex_t caller; /* held by the caller whose job runs */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake, idle;
    atomic_uint_fast64_t job; /* increases: a worker joins each job at most once */
    int wanted;               /* workers that may still join */
    atomic_int busy;          /* workers that have joined */
    bool quit;
    tl_pool_work *work;
    void *user;
    int64_t range;
    int nshares;      /* at most as many as threads; one: in increasing order */
    share *shares;
    bool is_broken;   /* an invariant, in a worker, in this job */
    char broken[256]; /* its text */
    worker workers[]; /* threads - 1 */
};

/* ---- looking before sleeping; without the lock, so what it finds is looked at again ---- */

static void relax(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool has_job(tl_pool *p, uint64_t seen)
{
    return atomic_load_explicit(&p->job, memory_order_relaxed) != seen;
}

static bool has_ended(tl_pool *p, uint64_t unused)
{
    (void)unused;
    return atomic_load_explicit(&p->busy, memory_order_relaxed) == 0;
}

static void look_for(tl_pool *p, bool (*happened)(tl_pool *p, uint64_t x), uint64_t x)
{
    if (!p->spins || happened(p, x))
        return;
    for (int64_t end = now() + SPIN_NS; now() < end;)
        for (int i = 0; i < LOOKS; i++) {
            if (happened(p, x))
                return;
            relax();
        }
}

/* ---- workers ---- */

static void take_ranges_of(tl_pool *p, int index, share *s)
{
    for (;;) {
        int64_t begin = atomic_fetch_add_explicit(&s->next, p->range, memory_order_relaxed);
        if (begin >= s->end)
            return;
        TL_DEBUG_INVARIANT(begin >= 0 && p->range > 0 && index < p->threads,
                           "worker %d of %d takes %lld from %lld", index, p->threads,
                           (long long)p->range, (long long)begin);
        p->work(p->user, index, begin, begin + p->range < s->end ? begin + p->range : s->end);
    }
}

/* The worker's own share, then those of the others. */
static void take_ranges(tl_pool *p, int index)
{
    for (int i = 0; i < p->nshares; i++)
        take_ranges_of(p, index, &p->shares[(index + i) % p->nshares]);
}

/* Takes over what broke in a worker's thread, which has no caller to tell. The lock is held. */
static void keep_broken(tl_pool *p)
{
    if (tl_broken_status() == TILE_OK || p->is_broken)
        return;
    snprintf(p->broken, sizeof p->broken, "%s", tile_last_error());
    p->is_broken = true;
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    tl_pool *p = w->pool;
    uint64_t seen = 0;
    bool looked = true;
    tl_fp_enter();
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        if (p->job == seen || p->wanted == 0) {
            if (looked) {
                pthread_cond_wait(&p->wake, &p->lock);
                continue;
            }
            looked = true;
            pthread_mutex_unlock(&p->lock);
            look_for(p, has_job, seen);
            pthread_mutex_lock(&p->lock);
            continue;
        }
        seen = p->job;
        looked = false;
        p->wanted--;
        p->busy++;
        TL_DEBUG_INVARIANT(p->wanted >= 0 && p->busy < p->threads, "%d wanted, %d busy, %d threads",
                           p->wanted, p->busy, p->threads);
        pthread_mutex_unlock(&p->lock);
        take_ranges(p, w->index);
        pthread_mutex_lock(&p->lock);
        keep_broken(p);
        if (--p->busy == 0)
            pthread_cond_signal(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- making a pool ---- */

static tile_status read_setting(int threads, const char *affinity, setting *out)
{
    tl_processors allowed;
    tl_processors_allowed(&allowed);
    const char *name = affinity ? "affinity" : "TILE_AFFINITY";
    if (!affinity)
        affinity = secure_getenv(name);
    if (threads < 0 || threads > MAX_THREADS)
        return tl_fail(TILE_BAD_ARGUMENT, "threads is %d, but must be a number from 1 to %d",
                       threads, MAX_THREADS);
    tile_status status =
        tl_affinity_places("", name, affinity, &allowed, &out->place, &out->places);
    if (status != TILE_OK)
        return status;
    int most = out->places ? out->places : tl_processors_count(&allowed);
    out->usable = tl_processors_quota("", most < MAX_THREADS ? most : MAX_THREADS);
    int64_t n = threads > 0 ? threads : out->usable;
    if (threads == 0)
        status = tl_env_number("TILE_THREADS", 1, MAX_THREADS, &n);
    out->threads = (int)n;
    return status;
}

static tile_status start_workers(tl_pool *p, const setting *s)
{
    for (int i = 1; i < s->threads; i++) {
        worker *w = &p->workers[i - 1];
        *w = (worker){.pool = p, .index = i};
        if (tl_thread_start(&w->thread, worker_main, w) != 0)
            return TILE_OK; /* run with fewer */
        p->threads++;
        tile_status status =
            s->places ? tl_affinity_pin(w->thread, s->place[i % s->places]) : TILE_OK;
        if (status != TILE_OK)
            return status;
    }
    return TILE_OK;
}

static void make_locks(tl_pool *p)
{
    pthread_mutex_init(&p->caller, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->idle, NULL);
}

/* No worker is busy. */
static void end_workers(tl_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->threads - 1; i++)
        pthread_join(p->workers[i].thread, NULL);
    p->threads = 1;
}

static void unload(tl_life *life)
{
    tl_pool *p = (tl_pool *)life; /* its first member */
    if (p->is_lost || pthread_mutex_trylock(&p->caller) != 0)
        return;
    end_workers(p);
    pthread_mutex_unlock(&p->caller);
}

/* Locks that other threads held stay locked in the child. */
static void forked(tl_life *life)
{
    tl_pool *p = (tl_pool *)life;
    make_locks(p);
    p->threads = 1;
    p->busy = 0;
    p->wanted = 0;
    p->is_broken = false;
    p->is_lost = true;
}

static tile_status make_pool(const setting *s, tl_pool **out_pool)
{
    tl_pool *p = calloc(1, sizeof *p + (size_t)s->threads * sizeof *p->workers);
    share *shares = aligned_alloc(_Alignof(share), (size_t)s->threads * sizeof *shares);
    if (!p || !shares) {
        free(p);
        free(shares);
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    p->shares = shares;
    p->setting = *s;
    p->setting.place = NULL;
    p->life = (tl_life){.forked = forked, .unload = unload};
    make_locks(p);
    p->threads = 1;
    tl_life_begin(&p->life);
    tile_status status = start_workers(p, s);
    if (status != TILE_OK) {
        tl_pool_free(p);
        return status;
    }
    TL_INVARIANT(p->threads >= 1 && p->threads <= s->threads, "%d threads of %d", p->threads,
                 s->threads);
    p->spins = p->threads <= s->usable;
    p->setting.threads = p->threads;
    p->setting.place = s->place;
    *out_pool = p;
    return TILE_OK;
}

tile_status tl_pool_create(int threads, const char *affinity, tl_pool **out_pool)
{
    TL_INVARIANT(out_pool, "a pool for nobody");
    setting s = {0};
    tile_status status = read_setting(threads, affinity, &s);
    if (status == TILE_OK)
        status = make_pool(&s, out_pool);
    if (status != TILE_OK)
        free(s.place);
    return status;
}

void tl_pool_free(tl_pool *p)
{
    if (!p)
        return;
    tl_life_end(&p->life);
    TL_DEBUG_INVARIANT(p->busy == 0, "a pool is freed while %d workers are busy", p->busy);
    end_workers(p);
    pthread_cond_destroy(&p->idle);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->caller);
    free(p->setting.place);
    free(p->shares);
    free(p);
}

/* What there may be: after a fork, too, of which its first job makes an end. */
int tl_pool_threads(const tl_pool *p)
{
    return p->setting.threads;
}

/* A caller alone has nobody to share with: each range begins the kernel's code anew. */
static int64_t range_size(const tl_pool *p, int64_t n)
{
    if (p->threads == 1)
        return n < 1 ? 1 : n;
    int64_t range = n / ((int64_t)p->threads * RANGES_PER_THREAD);
    return range < 1 ? 1 : range > MAX_RANGE ? MAX_RANGE : range;
}

static void wake_workers(tl_pool *p, int64_t ranges)
{
    int wanted = ranges - 1 < p->threads - 1 ? (int)(ranges - 1) : p->threads - 1;
    pthread_mutex_lock(&p->lock);
    p->job++;
    p->wanted = wanted;
    if (wanted == p->threads - 1)
        pthread_cond_broadcast(&p->wake);
    else
        for (int i = 0; i < wanted; i++)
            pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

/* Shares differ by one number at most. */
static void set_shares(tl_pool *p, int64_t n, tl_pool_order order)
{
    int count = order == TL_POOL_INCREASING ? 1 : n < p->threads ? (int)n : p->threads;
    int64_t each = count ? n / count : 0, more = count ? n % count : 0, at = 0;
    for (int i = 0; i < count; i++) {
        atomic_init(&p->shares[i].next, at);
        at += each + (i < more);
        p->shares[i].end = at;
    }
    p->nshares = count;
}

static tile_status wait_for_workers(tl_pool *p)
{
    tile_status status = TILE_OK;
    look_for(p, has_ended, 0);
    pthread_mutex_lock(&p->lock);
    p->wanted = 0; /* workers that have not joined by now are not needed */
    while (p->busy > 0)
        pthread_cond_wait(&p->idle, &p->lock);
    if (p->is_broken)
        status = tl_fail(TILE_INTERNAL, "%s", p->broken);
    p->is_broken = false;
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* Of a job of more than one range, which workers help with. */
static tile_status run_ranges(tl_pool *p, int64_t n, tl_pool_order order)
{
    set_shares(p, n, order);
    wake_workers(p, (n + p->range - 1) / p->range);
    take_ranges(p, 0);
    tile_status status = wait_for_workers(p);
    for (int i = 0; i < p->nshares; i++)
        TL_DEBUG_INVARIANT(p->shares[i].next >= p->shares[i].end && p->busy == 0,
                           "a job of %lld ends at %lld, %d busy", (long long)n,
                           (long long)p->shares[i].next, p->busy);
    return status;
}

tile_status tl_pool_run(tl_pool *p, int64_t n, tl_pool_order order, tl_pool_work *work, void *user)
{
    tile_status status = TILE_OK;
    pthread_mutex_lock(&p->caller);
    if (p->is_lost) {
        p->is_lost = false;
        start_workers(p, &p->setting); /* one that cannot be pinned runs anywhere */
    }
    p->work = work;
    p->user = user;
    p->range = range_size(p, n);
    if (n > p->range)
        status = run_ranges(p, n, order);
    else if (n > 0) /* dividing and sharing it out takes longer than a small kernel */
        work(user, 0, 0, n);
    pthread_mutex_unlock(&p->caller);
    return status;
}
