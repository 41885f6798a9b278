/* The pool (runtime/host/pool.c): every number is handed out once, in the order asked for, for any
 * number of threads, also when threads are late; whoever waits for a lower number gets on. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
#include "test/unit/unit.h"

enum { MOST = 5000, THREADS = 7 };

typedef struct Job {
    int64_t n;
    atomic_int times[MOST];   /* that a number was handed out */
    int64_t last[THREADS];    /* that each worker was given, -1: none */
    atomic_int back[THREADS]; /* times that a worker was given a lower number than before */
    atomic_int bad;
    atomic_int ended[MOST];
} Job;

static void begin_job(Job *j, int64_t n)
{
    memset(j, 0, sizeof *j);
    j->n = n;
    for (int i = 0; i < THREADS; i++) j->last[i] = -1;
}

static void take(void *user, int worker, int64_t begin, int64_t end)
{
    Job *j = user;
    if (begin < 0 || begin >= end || end > j->n || worker < 0 || worker >= THREADS) {
        j->bad++;
        return;
    }
    if (begin < j->last[worker])
        j->back[worker]++;
    j->last[worker] = end - 1;
    for (int64_t i = begin; i < end; i++) j->times[i]++;
}

/* Spins until the number below has ended. */
static void take_after_lower(void *user, int worker, int64_t begin, int64_t end)
{
    Job *j = user;
    take(user, worker, begin, end);
    for (int64_t i = begin; i < end; i++) {
        while (i > 0 && !j->ended[i - 1]) sched_yield();
        j->ended[i] = 1;
    }
}

/* Worker 0 stops in its first range until all other numbers have been handed out. */
static void take_late(void *user, int worker, int64_t begin, int64_t end)
{
    Job *j = user;
    take(user, worker, begin, end);
    for (int64_t taken = 0; worker == 0 && taken < j->n; sched_yield()) {
        taken = 0;
        for (int64_t i = 0; i < j->n; i++) taken += j->times[i];
    }
}

static void each_once(const Job *j)
{
    int64_t once = 0;
    for (int64_t i = 0; i < j->n; i++) once += j->times[i] == 1;
    CHECK_INT(once, j->n);
    CHECK_INT(j->bad, 0);
}

static void orders(tl_pool *pool)
{
    static const int64_t counts[] = {0, 1, 2, 3, 5, 6, 7, 8, 63, 100, 1023, MOST};
    static Job j;
    for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
        begin_job(&j, counts[c]);
        CHECK_INT(tl_pool_run(pool, j.n, TL_POOL_INCREASING, take, &j), TILE_OK);
        each_once(&j);
        for (int i = 0; i < THREADS; i++) CHECK_INT(j.back[i], 0);

        begin_job(&j, counts[c]);
        CHECK_INT(tl_pool_run(pool, j.n, TL_POOL_INCREASING, take_after_lower, &j), TILE_OK);
        each_once(&j);

        begin_job(&j, counts[c]);
        CHECK_INT(tl_pool_run(pool, j.n, TL_POOL_SHARES, take, &j), TILE_OK);
        each_once(&j);
        /* up through its own share, then from share to share: back to lower ones once, where the
         * numbers begin again */
        for (int i = 0; i < THREADS; i++) CHECK(j.back[i] <= 1);
    }
}

typedef struct First {
    atomic_int came, threads;
    int64_t first[THREADS];
} First;

/* Nobody goes on until all threads have come. */
static void meet(void *user, int worker, int64_t begin, int64_t end)
{
    First *f = user;
    (void)end;
    if (f->first[worker] >= 0)
        return;
    f->first[worker] = begin;
    f->came++;
    while (f->came < f->threads) sched_yield();
}

/* Each thread's first number is where its share begins, in each job. */
static void shares_are_kept(tl_pool *pool, int threads)
{
    for (int round = 0; round < 3; round++) {
        First f = {.threads = threads};
        for (int i = 0; i < THREADS; i++) f.first[i] = -1;
        CHECK_INT(tl_pool_run(pool, 100 * threads, TL_POOL_SHARES, meet, &f), TILE_OK);
        for (int i = 0; i < threads; i++) CHECK_INT(f.first[i], 100 * i);
    }
}

/* A thread that is late does not keep its share from being done. */
static void others_help(tl_pool *pool, int threads)
{
    static Job j;
    if (threads == 1)
        return;
    /* one number a range: what the late one holds is but its first */
    begin_job(&j, 16 * threads);
    CHECK_INT(tl_pool_run(pool, j.n, TL_POOL_SHARES, take_late, &j), TILE_OK);
    each_once(&j);
}

int main(void)
{
    for (int threads = 1; threads <= THREADS; threads++) {
        tl_pool *pool;
        if (!CHECK_INT(tl_pool_create(threads, NULL, &pool), TILE_OK))
            break;
        if (CHECK_INT(tl_pool_threads(pool), threads)) {
            orders(pool);
            shares_are_kept(pool, threads);
            others_help(pool, threads);
        }
        tl_pool_free(pool);
    }
    return unit_result();
}
