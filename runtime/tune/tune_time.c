/* tune_time.c: which configuration is the fastest.
 *
 *  1. Groups of configurations are compiled, run once to compare their results, and timed once. The
 *     first results are there after a group, not at the end.
 *  2. Those that are not hopeless are timed in rounds, one launch of each in turn, so that what
 *     disturbs the machine disturbs all. Three times the slower half is given up, but nothing that
 *     is within 5% of the best.
 *  3. The rounds go on until no other can be faster than the best by more than 1%, as far as the
 *     spread of the times tells, or the time for that is over.
 *  4. The default is timed again, in turn with the best, if it was not among the last: what tuning
 *     gains is a ratio of two times of the same rounds.
 *
 * Each launch begins with cold caches: between launches, memory that is larger than the last cache
 * is written. A time is the median of the fastest quarter of the launches: other programs of the
 * machine only make them slower. On one processor it is the thread's processor time. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/tune/tune.h"

/* Bytes that are written to empty the caches: on CPUs twice the last one, within limits; launches
 * that are timed together. */
enum { LEAST_FLUSH = 8 << 20, MOST_FLUSH = 64 << 20, GPU_FLUSH = 256 << 20, LEAST_GROUP = 8 };
static const double HOPELESS = 3.0; /* times the best */
static const double NEAR = 1.05;    /* likewise */
static const double MATTERS = 0.01; /* a smaller part is no reason to go on */
static const double LONG = 1e5;     /* microseconds: a launch that is not repeated at once */
enum { BATCH = 8, LEAST_BESIDE = 4 };  /* rounds */
static const double LEAST_SETTLE = 4;  /* seconds, or half of the time before, if that is more */

/* ---- one launch ---- */

typedef struct stopwatch {
    void *memory;        /* host devices: what is written between launches */
    size_t bytes;
    tile_buffer *buffer; /* others */
    tile_event *from, *to;
    const char *reference; /* whose results are compared with */
} stopwatch;

static void stopwatch_free(stopwatch *c)
{
    free(c->memory);
    tile_buffer_free(c->buffer);
    tile_event_free(c->from);
    tile_event_free(c->to);
}

static tile_status stopwatch_make(const tl_tuner *t, stopwatch *c)
{
    *c = (stopwatch){0};
    if (t->info.host_memory) {
        long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
        c->bytes = cache > 0 && cache < MOST_FLUSH / 2 ? 2 * (size_t)cache : MOST_FLUSH;
        c->bytes = c->bytes < LEAST_FLUSH ? LEAST_FLUSH : c->bytes;
        c->memory = malloc(c->bytes);
        return c->memory ? TILE_OK : tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    c->bytes = GPU_FLUSH;
    tile_status status = tile_buffer_alloc(t->device, c->bytes, &c->buffer);
    if (status == TILE_OK)
        status = tile_event_create(t->device, &c->from);
    return status == TILE_OK ? tile_event_create(t->device, &c->to) : status;
}

static tile_status cool(const tl_tuner *t, stopwatch *c, int value)
{
    if (c->memory) {
        memset(c->memory, value, c->bytes);
        __asm__ volatile("" : : "r"(c->memory) : "memory"); /* written, though nothing reads it */
        return TILE_OK;
    }
    tile_stream *stream = t->device->default_stream;
    return tile_buffer_fill(c->buffer, 0, value, c->bytes, stream);
}

static tile_status run(const tl_tuner *t, const tl_trial *trial)
{
    return tile_launch(trial->kernel, t->device->default_stream, t->args, t->nargs);
}

static tile_status time_by_events(const tl_tuner *t, const stopwatch *c, const tl_trial *trial,
                                  double *out_us)
{
    tile_stream *stream = t->device->default_stream;
    double ms = 0;
    tile_status status = tile_event_record(c->from, stream);
    if (status == TILE_OK)
        status = run(t, trial);
    if (status == TILE_OK)
        status = tile_event_record(c->to, stream);
    if (status == TILE_OK)
        status = tile_stream_synchronize(stream);
    if (status == TILE_OK)
        status = tile_event_elapsed(c->from, c->to, &ms);
    *out_us = ms * 1e3;
    return status;
}

/* A launch on one processor is the calling thread's: its processor time says nothing of what other
 * programs took meanwhile. */
static double now_on(const tl_tuner *t)
{
    bool alone = strncmp(t->info.target, "cpu", 3) == 0 && t->info.processors == 1;
    struct timespec now;
    clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static tile_status time_once(const tl_tuner *t, stopwatch *c, tl_trial *trial)
{
    double us = 0;
    tile_status status = cool(t, c, (int)trial->nsamples);
    if (status != TILE_OK)
        return status;
    if (c->from) {
        status = time_by_events(t, c, trial, &us);
    } else {
        double start = now_on(t);
        status = run(t, trial);
        if (status == TILE_OK)
            status = tile_stream_synchronize(t->device->default_stream);
        us = (now_on(t) - start) * 1e6;
    }
    if (status == TILE_OK && trial->nsamples < TL_TUNE_SAMPLES)
        trial->samples[trial->nsamples++] = us;
    return status;
}

/* ---- step 1 ---- */

/* From an image to a kernel that can be launched; what fails is rejected. */
static bool prepare(tl_tuner *t, tl_trial *trial)
{
    size_t size;
    const void *image = tilec_output_data(trial->output, &size);
    tile_status status = tile_module_load_image(t->device, image, size, &trial->module);
    if (status == TILE_OK)
        status = tile_kernel_get(trial->module, t->kernel, NULL, &trial->kernel);
    if (status == TILE_OK)
        status = tile_launch_prepare(trial->kernel, t->args, t->nargs, NULL);
    if (status != TILE_OK)
        tl_tune_reject_failed(trial, status);
    tilec_output_free(trial->output);
    trial->output = NULL;
    return status == TILE_OK;
}

/* Runs it once, from what the arrays held at the beginning, and compares. Not OK: tuning cannot go
 * on; a launch that fails only rejects the trial. */
static tile_status check(tl_tuner *t, stopwatch *c, tl_trial *trial)
{
    char why[512];
    bool same = true;
    tile_status status = TILE_OK;
    if (!t->arrays)
        status = tl_tune_arrays_create(t, trial->kernel, &t->arrays);
    if (status == TILE_OK)
        status = tl_tune_arrays_restore(t, t->arrays);
    if (status != TILE_OK)
        return status;
    status = run(t, trial);
    if (status == TILE_OK)
        status = tile_stream_synchronize(t->device->default_stream);
    if (status != TILE_OK) {
        tl_tune_reject_failed(trial, status);
        return TILE_OK;
    }
    status = tl_tune_arrays_check(t, t->arrays, c->reference, &same, why, sizeof why);
    if (status == TILE_OK && !same)
        tl_tune_reject(trial, "%s", why);
    if (status == TILE_OK && same && !c->reference)
        c->reference = trial->config;
    return status;
}

/* The first time. One that is far from the best may have been disturbed: it gets two more chances,
 * if they cost little. */
static tile_status first_time(tl_tuner *t, stopwatch *c, tl_trial *trial)
{
    tile_status status = time_once(t, c, trial);
    for (int i = 0; i < 2 && status == TILE_OK && t->best; i++)
        if (tl_tune_value(trial) > tl_tune_value(t->best) && tl_tune_value(trial) < LONG)
            status = time_once(t, c, trial);
    if (status == TILE_OK && (!t->best || tl_tune_value(trial) < tl_tune_value(t->best)))
        t->best = trial;
    return status;
}

/* What is compiled where there are no results. */
static bool is_standard(const tl_tuner *t, const tl_trial *trial)
{
    return t->like.standard && strcmp(trial->config, t->like.standard) == 0;
}

/* Not the default's: it is timed once more in the end. */
static void drop_code(const tl_tuner *t, tl_trial *trial)
{
    if (is_standard(t, trial) && !trial->rejected && !trial->mute)
        return;
    tile_module_free(trial->module);
    trial->module = NULL;
    trial->kernel = NULL;
}

static void give_up(const tl_tuner *t, tl_trial *trial, const tl_trial *best)
{
    trial->times = tl_tune_value(trial) / tl_tune_value(best);
    trial->beaten_by = best;
    drop_code(t, trial);
}

static tile_status try_one(tl_tuner *t, stopwatch *c, tl_trial *trial)
{
    tile_status status = TILE_OK;
    if (!trial->rejected && prepare(t, trial)) {
        status = check(t, c, trial);
        if (status == TILE_OK && !trial->rejected && !trial->mute)
            status = first_time(t, c, trial);
    }
    if (trial->rejected || trial->mute)
        drop_code(t, trial);
    if (trial->mute)
        return status;
    t->rejected += trial->rejected != NULL;
    t->done++;
    return status;
}

static tile_status try_group(tl_tuner *t, stopwatch *c, size_t begin, size_t end, bool *out_go_on)
{
    tile_status status = TILE_OK;
    *out_go_on = tl_tune_compile(t, begin, end);
    for (size_t i = begin; i < end && status == TILE_OK && *out_go_on; i++) {
        status = try_one(t, c, &t->trials[i]);
        *out_go_on = tl_tune_report(t, "check", t->trials[i].mute ? NULL : &t->trials[i]);
    }
    return status;
}

/* ---- step 2 ---- */

static int by_value(const void *a, const void *b)
{
    const tl_trial *const *x = a, *const *y = b;
    double u = tl_tune_value(*x), v = tl_tune_value(*y);
    if (u != v)
        return u < v ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

/* The trials that may still be the best; sorted. Their first times are not of one round, and go. */
static size_t hopeful(const tl_tuner *t, tl_trial **out)
{
    size_t n = 0;
    double most = t->best ? HOPELESS * tl_tune_value(t->best) : 0;
    for (size_t i = 0; i < t->ntrials; i++)
        if (t->trials[i].nsamples && t->trials[i].kernel) {
            if (tl_tune_value(&t->trials[i]) <= most)
                out[n++] = &t->trials[i];
            else
                give_up(t, &t->trials[i], t->best);
        }
    qsort(out, n, sizeof *out, by_value);
    for (size_t i = 0; i < n && n > 1; i++)
        out[i]->nsamples = 0;
    return n;
}

/* One launch of each, in turn, beginning with another one each time. */
static tile_status round_of(tl_tuner *t, stopwatch *c, tl_trial **alive, size_t n, bool *out_go_on)
{
    tile_status status = TILE_OK;
    size_t first = alive[0]->nsamples % n;
    for (size_t i = 0; i < n && status == TILE_OK && *out_go_on; i++) {
        tl_trial *trial = alive[(first + i) % n];
        status = time_once(t, c, trial);
        *out_go_on = tl_tune_report(t, "time", trial);
    }
    return status;
}

static tile_status rounds_of(tl_tuner *t, stopwatch *c, tl_trial **alive, size_t n, int rounds,
                             bool *out_go_on)
{
    tile_status status = TILE_OK;
    for (int i = 0; i < rounds && *out_go_on && status == TILE_OK; i++)
        status = round_of(t, c, alive, n, out_go_on);
    qsort(alive, n, sizeof *alive, by_value);
    if (n && alive[0]->nsamples)
        t->best = alive[0];
    return status;
}

/* Half of them, and what is near the best. */
static size_t halve(const tl_tuner *t, tl_trial **alive, size_t n)
{
    size_t keep = (n + 1) / 2;
    while (keep < n && tl_tune_value(alive[keep]) <= NEAR * tl_tune_value(alive[0]))
        keep++;
    for (size_t i = keep; i < n; i++)
        give_up(t, alive[i], alive[0]);
    return keep;
}

/* ---- step 3 ---- */

/* All that may be faster than the best by a part that matters. */
static size_t doubtful(const tl_tuner *t, tl_trial **alive, size_t n)
{
    double low, high, best;
    size_t keep = 1;
    tl_tune_bounds(alive[0], &low, &best);
    for (size_t i = 1; i < n; i++) {
        tl_tune_bounds(alive[i], &low, &high);
        if (low < (1 - MATTERS) * best)
            alive[keep++] = alive[i];
        else
            give_up(t, alive[i], alive[0]);
    }
    return keep;
}

static tile_status settle(tl_tuner *t, stopwatch *c, tl_trial **alive, size_t n, bool *out_go_on)
{
    tile_status status = TILE_OK;
    double start = tl_tune_now(), most = 0.5 * (start - t->start);
    most = most < LEAST_SETTLE ? LEAST_SETTLE : most;
    while (n > 1 && *out_go_on && status == TILE_OK && tl_tune_now() - start < most &&
           alive[0]->nsamples + BATCH <= TL_TUNE_SAMPLES) {
        status = rounds_of(t, c, alive, n, BATCH, out_go_on);
        if (*out_go_on && status == TILE_OK)
            n = doubtful(t, alive, n);
    }
    return status;
}

/* ---- step 4 ---- */

static tile_status beside(tl_tuner *t, stopwatch *c, bool *out_go_on)
{
    tl_trial *standard = NULL;
    for (size_t i = 0; i < t->ntrials; i++)
        if (is_standard(t, &t->trials[i]) && t->trials[i].kernel && t->trials[i].nsamples)
            standard = &t->trials[i];
    if (!standard || standard == t->best || standard->nsamples > 2 * BATCH)
        return TILE_OK;
    tl_trial *pair[] = {t->best, standard};
    tile_status status = TILE_OK;
    double start = tl_tune_now();
    t->best->nsamples = standard->nsamples = 0;
    standard->beaten_by = NULL;
    for (int i = 0; i < 2 * BATCH && status == TILE_OK && *out_go_on; i++)
        if (i < LEAST_BESIDE || tl_tune_now() - start < LEAST_SETTLE)
            status = rounds_of(t, c, pair, 2, 1, out_go_on);
    return status;
}

static tile_status compare_all(tl_tuner *t, stopwatch *c, tl_trial **alive, bool *out_settled)
{
    tile_status status = TILE_OK;
    bool go_on = true;
    size_t n = hopeful(t, alive);
    for (int more = 3; n > 1 && more <= 7 && go_on && status == TILE_OK; more += 2) {
        status = rounds_of(t, c, alive, n, more, &go_on);
        if (go_on && status == TILE_OK)
            n = halve(t, alive, n);
    }
    if (status == TILE_OK && go_on)
        status = settle(t, c, alive, n, &go_on);
    *out_settled = status == TILE_OK && go_on;
    if (*out_settled)
        status = beside(t, c, &go_on);
    return status;
}

tile_status tl_tune_time_all(tl_tuner *t)
{
    stopwatch c;
    bool go_on = true;
    size_t group = 2 * tl_tune_processors();
    group = group > LEAST_GROUP ? group : LEAST_GROUP;
    tl_trial **alive = calloc(t->ntrials + 1, sizeof *alive);
    tile_status status = alive ? stopwatch_make(t, &c) : tl_fail(TILE_NO_MEMORY, "out of memory");
    if (!alive)
        return status;
    for (size_t i = 0; i < t->ntrials && status == TILE_OK && go_on; i += group) {
        size_t end = i + group < t->ntrials ? i + group : t->ntrials;
        status = try_group(t, &c, i, end, &go_on);
        if (status == TILE_OK)
            status = tl_tune_save(t);
    }
    if (status == TILE_OK && go_on && !t->o->only)
        status = compare_all(t, &c, alive, &t->settled);
    tile_status restored = tl_tune_arrays_restore(t, t->arrays);
    stopwatch_free(&c);
    free(alive);
    return status == TILE_OK ? restored : status;
}
