/* tune.c: tile_tune: from a kernel and the arguments of a launch to a line in a file.
 *
 *  1. the compiler lists the configurations (tune_compile.c); the launch's keys give the bucket
 *  2. the file is read: what it has of the same kernel, constants, device and bucket is kept,
 *     unless the kernel has changed since
 *  3. what has no time yet is timed (tune_time.c), or judged by the model (tune_model.c); if the
 *     last run was stopped before it had compared the best ones, they are timed again
 *  4. the file is read again, so that what others have added stays, and written
 *
 * New times are compared with one of the old best that is taken again beside them. */
#include "runtime/threads.h"
#include "runtime/tune/tune.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/tune_select.h"

static const double OPEN = 1.5; /* times the best: what is compared again after a stop */

double tl_tune_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- trials ---- */

static char no_memory[] = "out of memory"; /* where there is none to say more */

void tl_tune_reject(tl_trial *trial, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text[strcspn(text, "\n")] = 0;
    if (!trial->rejected)
        trial->rejected = strdup(text);
    if (!trial->rejected) {
        trial->rejected = no_memory;
        trial->passing = true;
    }
    if (trial->nsamples) /* a compiling thread writes nothing that the others read */
        trial->nsamples = 0;
}

void tl_tune_reject_failed(tl_trial *trial, tile_status status)
{
    trial->passing = trial->passing || (!trial->rejected && status == TILE_NO_MEMORY);
    tl_tune_reject(trial, "%s", tile_last_error());
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The trial's launches, the fastest first. */
static uint32_t sort_samples(const tl_trial *trial, double *out)
{
    memcpy(out, trial->samples, trial->nsamples * sizeof *out);
    qsort(out, trial->nsamples, sizeof *out, by_size);
    return trial->nsamples;
}

double tl_tune_value(const tl_trial *trial)
{
    double sorted[TL_TUNE_SAMPLES];
    uint32_t n = sort_samples(trial, sorted);
    return trial->beaten_by ? trial->times * tl_tune_value(trial->beaten_by)
           : n              ? sorted[(n - 1) / 8]
                            : 0;
}

/* Of n launches, the number of those below the time that one in eight is below has the mean n/8 and
 * the variance n/8 * 7/8, whatever the times are distributed like. */
void tl_tune_bounds(const tl_trial *trial, double *out_low, double *out_high)
{
    double sorted[TL_TUNE_SAMPLES];
    int n = (int)sort_samples(trial, sorted), middle = (n - 1) / 8,
        spread = (int)ceil(2 * sqrt(n * (1 / 8.0) * (7 / 8.0)));
    int low = middle - spread, high = middle + spread;
    *out_low = n ? sorted[low > 0 ? low : 0] : 0;
    *out_high = n && high < n ? sorted[high] : INFINITY;
}

/* Seconds that the rest takes, if it goes on as it did: compiling counts as half of the work. */
static double time_left(const tl_tuner *t, double elapsed)
{
    double all = 2 * (double)t->ntrials, now = (double)(t->compiled + t->done);
    if (now < 4)
        return -1;
    double rest = elapsed / now * (all - now);
    double round = 0, best = t->best ? tl_tune_value(t->best) * 1e-6 : 0;
    for (size_t i = 0; i < t->ntrials; i++)
        round += t->trials[i].nsamples ? best : 0;
    rest += t->best && t->best->nsamples < 4 ? 3 * round : 0;
    return t->deadline > 0 && rest > t->deadline - tl_tune_now() ? t->deadline - tl_tune_now()
                                                                 : rest;
}

bool tl_tune_report(tl_tuner *t, const char *step, const tl_trial *trial)
{
    double now = tl_tune_now();
    if (t->deadline > 0 && now > t->deadline)
        t->stopped = true;
    if (!t->o->progress)
        return !t->stopped;
    tile_tune_progress p = {.struct_size = sizeof p,
                            .kernel = t->kernel,
                            .config = trial ? trial->config : NULL,
                            .us = trial && trial->nsamples ? tl_tune_value(trial) : 0,
                            .rejected = trial ? trial->rejected : NULL,
                            .step = step,
                            .done = t->done + t->kept,
                            .total = t->asked,
                            .best = t->best ? t->best->config : NULL,
                            .best_us = t->best ? tl_tune_value(t->best) : 0,
                            .elapsed = now - t->start,
                            .left = time_left(t, now - t->start)};
    if (p.done > p.total)
        p.done = p.total;
    t->stopped |= t->o->progress(t->o->user, &p) != 0;
    return !t->stopped;
}

/* ---- results ---- */

static bool set_text(char **field, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return false;
    free(*field);
    *field = copy;
    return true;
}

/* Our result in a file, made if it is missing; NULL: no memory. */
static tl_tune_result *result_in(const tl_tuner *t, tl_tune_file *file)
{
    const tl_tune_result *like = &t->like;
    tl_tune_result *r = tl_tune_find(file, like);
    if (!r) {
        r = tl_tune_add(file);
        if (!r)
            return NULL;
        r->device = like->device;
        r->nkeys = like->nkeys;
        memcpy(r->bucket, like->bucket, sizeof r->bucket);
        if (!set_text(&r->kernel, like->kernel) || !set_text(&r->constants, like->constants) ||
            !set_text(&r->keys, like->keys) || !set_text(&r->hash, like->hash) ||
            !set_text(&r->how, like->how) || !set_text(&r->tool, like->tool))
            return NULL;
    }
    return r;
}

static bool same_work(const tl_tune_result *r, const tl_tune_result *like)
{
    return strcmp(r->hash, like->hash) == 0 && strcmp(r->how, like->how) == 0;
}

static bool enter_trial(tl_tune_result *r, const tl_trial *trial)
{
    if (trial->passing || (!trial->nsamples && !trial->rejected))
        return true;
    tl_tune_time *time = tl_tune_time_of(r, trial->config);
    time = time ? time : tl_tune_add_time(r, trial->config);
    if (!time)
        return false;
    free(time->rejected);
    time->rejected = trial->rejected ? strdup(trial->rejected) : NULL;
    time->us = trial->rejected ? 0 : tl_tune_value(trial);
    return !trial->rejected || time->rejected;
}

static const tl_trial *trial_of(const tl_tuner *t, const char *config)
{
    for (size_t i = 0; config && i < t->ntrials; i++)
        if (strcmp(t->trials[i].config, config) == 0)
            return &t->trials[i];
    return NULL;
}

/* The best of what was timed now, unless the best before was not among that and is faster. */
static bool choose(const tl_tuner *t, tl_tune_result *r)
{
    const tl_tune_time *old = r->best ? tl_tune_time_of(r, r->best) : NULL;
    const tl_trial *again = trial_of(t, r->best);
    if (!old || old->rejected) {
        free(r->best);
        r->best = NULL;
        old = NULL;
    }
    if (!t->best || (old && !(again && again->nsamples) && old->us <= tl_tune_value(t->best)))
        return true;
    return set_text(&r->best, t->best->config);
}

static tile_status enter(const tl_tuner *t, tl_tune_file *file)
{
    tl_tune_result *r = result_in(t, file);
    bool ok = r != NULL;
    if (ok && !same_work(r, &t->like))
        tl_tune_clear(r);
    ok = ok && set_text(&r->hash, t->like.hash) && set_text(&r->how, t->like.how) &&
         set_text(&r->tool, t->like.tool) && set_text(&r->standard, t->like.standard);
    if (ok)
        memcpy(r->sizes, t->like.sizes, sizeof r->sizes);
    bool news = false;
    for (size_t i = 0; ok && i < t->ntrials; i++) {
        news |= t->trials[i].nsamples > 0;
        ok = enter_trial(r, &t->trials[i]);
    }
    ok = ok && choose(t, r);
    if (ok)
        r->open = t->settled ? false : r->open || (news && !t->o->model);
    return ok ? TILE_OK : tl_fail(TILE_NO_MEMORY, "out of memory");
}

static tile_status add_to_file(const tl_tuner *t)
{
    tl_tune_file file;
    char why[512];
    tile_status status = tl_tune_read(t->file_path, &file, why, sizeof why);
    if (status != TILE_OK)
        return tl_fail(status, "%s: %s; it is not overwritten", t->file_path, why);
    status = enter(t, &file);
    if (status == TILE_OK && tl_tune_find(&file, &t->like)->ntimes)
        status = tl_tune_write(t->file_path, &file);
    tl_tune_file_free(&file);
    return status;
}

tile_status tl_tune_save(tl_tuner *t)
{
    if (!t->file_path)
        return TILE_OK;
    int lock = tl_tune_lock(t->file_path);
    tile_status status = add_to_file(t);
    tl_tune_unlock(lock);
    return status;
}

/* ---- what is to be done ---- */

static tile_status read_results(tl_tuner *t)
{
    char why[512];
    const char *asked = t->o->file;
    if (asked && !*asked)
        return TILE_OK;
    t->file_path = asked ? strdup(asked) : tl_tune_path(t->path);
    if (!t->file_path)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_status status = tl_tune_read(t->file_path, &t->file, why, sizeof why);
    return status == TILE_OK ? status
                             : tl_fail(status, "%s: %s; repair or remove it", t->file_path, why);
}

/* Has it a time already, that counts? */
static bool is_known(const tl_tuner *t, const tl_tune_result *r, const char *config)
{
    return r && !t->o->again && same_work(r, &t->like) && tl_tune_time_of(r, config);
}

/* A model's opinion does not replace times. */
static bool is_better_known(const tl_tuner *t, const tl_tune_result *r)
{
    return r && t->o->model && !t->o->again && strcmp(r->how, "timed") == 0 &&
           strcmp(r->hash, t->like.hash) == 0;
}

/* Does the caller ask for this one? */
static bool is_asked(const tl_tuner *t, const char *config)
{
    const char *const *only = t->o->only;
    while (only && *only && strcmp(*only, config) != 0)
        only++;
    return !only || *only;
}

static bool is_best(const tl_tune_result *r, const char *config)
{
    return r && r->best && strcmp(r->best, config) == 0;
}

/* Was the last run stopped before it had compared this one with the best side by side? */
static bool is_open(const tl_tuner *t, const tl_tune_result *r, const char *config)
{
    const tl_tune_time *best = r && r->best ? tl_tune_time_of(r, r->best) : NULL,
                       *mine = best ? tl_tune_time_of(r, config) : NULL;
    return mine && r->open && !t->o->only && !t->o->model && !mine->rejected &&
           mine->us <= OPEN * best->us;
}

/* Others' results are compared with those of the best one so far: it is known to be right. If there
 * is none, with those of the first in the list that is not known to be wrong. */
static const char *find_reference(const tl_tuner *t, const tl_tune_result *r)
{
    const char *first = NULL;
    for (size_t i = t->tuning->nconfigs; i-- > 0;) {
        const char *config = t->tuning->configs[i];
        const tl_tune_time *time = is_known(t, r, config) ? tl_tune_time_of(r, config) : NULL;
        if (time && is_best(r, config))
            return config;
        first = time && time->rejected ? first : config;
    }
    return first;
}

/* What needs no time of its own is run once, if it is the reference. */
static void put_reference_first(tl_tuner *t, const char *reference)
{
    size_t at = 0;
    while (at < t->ntrials && strcmp(t->trials[at].config, reference) != 0)
        at++;
    tl_trial found = {.config = reference, .mute = true};
    if (at < t->ntrials)
        found = t->trials[at];
    memmove(t->trials + 1, t->trials, at * sizeof *t->trials);
    t->trials[0] = found;
    t->ntrials += found.mute;
}

static tile_status plan(tl_tuner *t)
{
    const tl_tune_result *r = tl_tune_find(&t->file, &t->like);
    size_t n = t->tuning->nconfigs, missing = 0;
    t->trials = calloc(n + 2, sizeof *t->trials);
    if (!t->trials)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n && !is_better_known(t, r); i++) {
        const char *config = t->tuning->configs[i];
        missing += is_asked(t, config) && (!is_known(t, r, config) || is_open(t, r, config));
    }
    for (size_t i = 0; i < n; i++) {
        const char *config = t->tuning->configs[i];
        bool known = is_known(t, r, config);
        if (!is_asked(t, config))
            continue;
        t->asked++;
        if (missing && (!known || is_best(r, config) || is_open(t, r, config)))
            t->trials[t->ntrials++].config = config;
    }
    t->kept = t->asked - t->ntrials;
    const char *reference = t->ntrials && !t->o->model ? find_reference(t, r) : NULL;
    if (reference)
        put_reference_first(t, reference);
    return TILE_OK;
}

/* A result of an earlier run that is still the best among the configurations listed. */
static void find_kept(tl_tuner *t)
{
    const tl_tune_result *r = tl_tune_find(&t->file, &t->like);
    for (size_t i = 0; r && i < t->tuning->nconfigs; i++) {
        const tl_tune_time *time = tl_tune_time_of(r, t->tuning->configs[i]);
        if (!time || time->rejected || (t->kept_best && time->us >= t->kept_best_us))
            continue;
        t->kept_best = time->config;
        t->kept_best_us = time->us;
    }
    if (r && r->best && t->kept_best && tl_tune_time_of(r, r->best)) {
        t->kept_best = r->best;
        t->kept_best_us = tl_tune_time_of(r, r->best)->us;
    }
}

/* Now, or in an earlier run. */
static double standard_us(const tl_tuner *t)
{
    const char *config = t->like.standard;
    const tl_tune_result *r = tl_tune_find(&t->file, &t->like);
    const tl_trial *trial = trial_of(t, config);
    if (trial && trial->nsamples)
        return tl_tune_value(trial);
    const tl_tune_time *time = config && r ? tl_tune_time_of(r, config) : NULL;
    return time && !time->rejected ? time->us : 0;
}

static void fill_result(const tl_tuner *t, tile_tune_result *out)
{
    size_t timed = 0;
    for (size_t i = 0; i < t->ntrials; i++)
        timed += t->trials[i].nsamples > 0;
    bool done = t->o->look ? !t->ntrials : !t->stopped;
    tile_tune_result r = {.best_us = t->best ? tl_tune_value(t->best) : t->kept_best_us,
                          .total = t->asked,
                          .timed = timed,
                          .rejected = t->rejected,
                          .kept = t->kept,
                          .complete = done};
    const char *best = t->best ? t->best->config : t->kept_best;
    r.standard_us = standard_us(t);
    snprintf(r.best, sizeof r.best, "%s", best ? best : "");
    tl_struct_give(out, &r, sizeof r);
}

/* If nothing at all could run, the first reason is the error. */
static tile_status verdict(const tl_tuner *t)
{
    if (t->best || t->kept_best || t->stopped || !t->ntrials || t->o->look || t->o->only)
        return TILE_OK;
    return tl_fail(TILE_NO_RESOURCE, "kernel '%s': none of its %zu configurations can run; %s: %s",
                   t->kernel, t->ntrials, t->trials[0].config, t->trials[0].rejected);
}

static tile_status tune(tl_tuner *t)
{
    tile_status status = tl_tune_list(t);
    if (status == TILE_OK)
        status = tl_tune_device_of(t->device, &t->like.device);
    if (status != TILE_OK)
        return status;
    t->like.kernel = (char *)(uintptr_t)t->tuning->kernel;
    t->like.constants = (char *)(uintptr_t)t->tuning->constants;
    t->like.keys = (char *)(uintptr_t)t->tuning->keys;
    t->like.hash = (char *)(uintptr_t)t->tuning->hash;
    t->like.standard = (char *)(uintptr_t)t->tuning->configs[t->tuning->nconfigs];
    t->like.how = (char *)(uintptr_t)(t->o->model ? "model" : "timed");
    t->like.tool = (char *)(uintptr_t)tilec_version();
    status = tl_tune_sizes(t);
    if (status == TILE_OK)
        status = read_results(t);
    if (status == TILE_OK)
        status = plan(t);
    if (status == TILE_OK)
        find_kept(t);
    if (status == TILE_OK && t->ntrials && !t->o->look) {
        status = (t->o->model ? tl_tune_model_all : tl_tune_time_all)(t);
        tile_status saved = tl_tune_save(t);
        status = status == TILE_OK ? saved : status;
    }
    return status == TILE_OK ? verdict(t) : status;
}

/* ---- the call ---- */

static tile_status check_call(const tl_tuner *t)
{
    bool emulated = strncmp(t->info.target, "emu:", 4) == 0;
    if (!(t->o->budget >= 0) || !(t->o->tolerance >= 0))
        return tl_fail(TILE_BAD_ARGUMENT, "tile_tune_options: a %s below 0",
                       t->o->budget >= 0 ? "tolerance" : "budget");
    if (emulated && !t->o->model)
        return tl_fail(TILE_BAD_ARGUMENT,
                       "device %s: the emulator's times say nothing of the GPU; use the model",
                       t->device->name);
    if (t->o->model && t->info.host_memory && !emulated)
        return tl_fail(TILE_BAD_ARGUMENT, "device %s: the model is for GPUs", t->device->name);
    return TILE_OK;
}

static void free_tuner(tl_tuner *t)
{
    for (size_t i = 0; i < t->ntrials; i++) {
        tilec_output_free(t->trials[i].output);
        tile_module_free(t->trials[i].module);
        if (t->trials[i].rejected != no_memory)
            free(t->trials[i].rejected);
    }
    free(t->trials);
    tl_tune_arrays_free(t->arrays);
    tl_tune_file_free(&t->file);
    tilec_output_free(t->listed);
    free(t->file_path);
    free(t->consts);
}

/* The device is entered. */
static tile_status tune_request(void *user)
{
    tl_tuner *t = user;
    tile_status status = check_call(t);
    t->consts = tl_jit_consts(t->o->consts, &t->nconsts);
    if (status == TILE_OK && !t->consts)
        status = tl_fail(TILE_NO_MEMORY, "out of memory");
    return status == TILE_OK ? tune(t) : status;
}

tile_status tile_tune(tile_device *device, const char *path, const char *kernel,
                      const tile_arg *args, size_t nargs, const tile_tune_options *options,
                      tile_tune_result *out_result)
{
    TL_FP_SCOPE();
    tile_tune_options o = TILE_TUNE_OPTIONS_INIT;
    tile_jit_options jit;
    if (!path || (nargs && !args))
        return tl_fail(TILE_BAD_ARGUMENT, "tile_tune: the %s is NULL",
                       path ? "list of arguments" : "path");
    tile_status status = options ? TL_TAKE(tile_tune_options, &o, options, jit) : TILE_OK;
    if (status == TILE_OK)
        status = tl_jit_take(o.jit, &jit);
    o.jit = &jit;
    if (status == TILE_OK && out_result)
        status = TL_TAKE(tile_tune_result, NULL, out_result, best);
    if (status != TILE_OK)
        return status;
    tl_tuner t = {.path = path, .kernel = kernel, .args = args, .nargs = nargs, .o = &o};
    t.info = (tile_device_info)TILE_DEVICE_INFO_INIT;
    t.start = tl_tune_now();
    t.deadline = t.o->budget > 0 ? t.start + t.o->budget : 0;
    status = tl_device_enter(device, &t.device);
    if (status != TILE_OK)
        return status;
    status = tile_device_get_info(t.device, &t.info);
    if (status == TILE_OK)
        status = tl_with_stack(tune_request, &t);
    if (out_result && t.tuning)
        fill_result(&t, out_result);
    free_tuner(&t);
    tl_device_leave(t.device);
    return status;
}
