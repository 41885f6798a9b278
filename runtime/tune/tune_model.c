/* tune_model.c: ranks configurations for GPUs without one, from the compiler's report.
 *
 * A configuration is rejected when a block of it does not fit on a multiprocessor, as the target's
 * tools and limits say. For the others:
 *
 *  1. work of a block: bytes of global memory, multiply-adds, wavefronts in shared memory,
 *     instruction slots; each times the trips of the loops around it
 *  2. the cycles of each by the rates of gpu.def; the slowest of them bounds the block, and
 *     latency and barriers are added as far as other blocks do not hide them
 *  3. waves: blocks over multiprocessors times what one holds; never less than the arrays take
 *     from memory
 *
 * Good for an order among configurations of one kernel, no more; no GPU has been asked. */
#define TILE_UNSTABLE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/contract/gpu_rows.h"
#include "runtime/tune/tune.h"

typedef tl_gpu rates;

/* ---- how often ---- */

static const tile_arg *argument(const tl_tuner *t, const tl_instance *in, const char *name)
{
    const tile_image_param *p = tl_image_at(in->image, in->kernel->params);
    for (uint32_t i = 0; i < in->kernel->nparams && i < t->nargs; i++)
        if (strcmp(tl_image_text(in->image, p[i].name), name) == 0)
            return &t->args[i];
    return NULL;
}

static double trips_of(const tl_tuner *t, const tl_instance *in, const tilec_report_loop *l)
{
    const tile_arg *a = l->param ? argument(t, in, l->param) : NULL;
    if (l->trips >= 0)
        return (double)l->trips;
    if (!a || a->kind != TILE_ARG_VIEW || l->axis >= (uint32_t)a->rank)
        return 1;
    return fmax(0, ceil(((double)a->extent[l->axis] - (double)l->less) / (double)l->step));
}

/* The trips of all loops around something whose innermost loop is `loop`. */
static double times(const tl_tuner *t, const tl_instance *in, const tilec_report_kernel *k,
                    int loop)
{
    double n = 1;
    for (int i = loop; i >= 0 && (size_t)i < k->nloops; i = k->loops[i].outer)
        n *= trips_of(t, in, &k->loops[i]);
    return n;
}

/* ---- work ---- */

typedef struct work {
    double bytes, fma, wavefronts, slots, barriers;
    double matrix; /* cycles: each instruction by its own rate */
} work;

static double matrix_rate(const rates *r, int bits)
{
    double rate = bits <= 8    ? r->matrix8
                  : bits <= 16 ? r->matrix16
                  : bits <= 32 ? r->matrix32
                               : r->matrix64;
    return rate > 0 ? rate : r->fma;
}

static work work_of(const tl_tuner *t, const rates *r, const tl_instance *in,
                    const tilec_report_kernel *k)
{
    work w = {0};
    for (size_t i = 0; i < k->naccesses; i++) {
        const tilec_report_access *a = &k->accesses[i];
        double n = times(t, in, k, a->loop) * a->share / 100;
        w.bytes += n * (double)a->bytes * (a->least ? (double)a->sectors / a->least : 1);
        w.slots += n * a->requests * k->warps;
    }
    for (size_t i = 0; i < k->nexchanges; i++) {
        const tilec_report_exchange *x = &k->exchanges[i];
        double n = times(t, in, k, x->loop) * x->share / 100;
        double macs = n * (double)x->macs;
        w.matrix += x->matrix_bits ? macs / matrix_rate(r, x->matrix_bits) : 0;
        w.fma += x->matrix_bits ? 0 : macs;
        w.wavefronts += n * x->wavefronts * k->warps;
        w.slots += n * x->shuffles * k->warps;
        w.barriers += n * x->barriers;
    }
    w.slots += w.fma / k->lanes;
    return w;
}

/* ---- time ---- */

/* Bytes of all arrays, each read or written at least once. */
static double array_bytes(const tl_bound *bound)
{
    double bytes = 0;
    for (uint32_t i = 0; i < bound->launch.nargs; i++) {
        const tile_arg *a = &bound->args[i];
        uint64_t its = a->kind == TILE_ARG_SCALAR ? 0 : a->bytes, viewed;
        if (a->kind == TILE_ARG_VIEW && tl_view_bytes(a, &viewed) && viewed < its)
            its = viewed; /* less than the memory that the view lies in */
        bytes += its == UINT64_MAX ? 0 : (double)its;
    }
    return bytes;
}

static double estimate(const rates *r, const tilec_report_kernel *k, const work *w,
                       const tl_bound *bound)
{
    enum { BARRIER = 30, LATENCY = 600, ENOUGH_WARPS = 8 };
    int blocks = k->blocks > 0 ? k->blocks : 1;
    double warps = (double)blocks * k->warps;
    double busy = fmax(w->matrix + w->fma / r->fma, w->bytes / r->cache);
    busy = fmax(busy, fmax(w->wavefronts, w->slots / r->schedulers));
    busy *= k->spilled > 0 || k->private_bytes > 0 ? 1.5 : 1;
    double hidden = fmin(1, warps / ENOUGH_WARPS);
    double block = busy / hidden + LATENCY / (double)blocks + w->barriers * BARRIER / blocks;
    double programs = (double)bound->launch.programs;
    double full = (double)r->sms * blocks, waves = ceil(programs / full);
    double most = waves > 1 ? blocks : ceil(programs / r->sms);
    double cycles = waves * most * block;
    double memory = array_bytes(bound) / (r->memory * r->sms);
    return fmax(cycles, memory) / (r->ghz * 1e3);
}

/* ---- limits ---- */

static bool fits(tl_trial *trial, const tilec_report_kernel *k)
{
    enum { MOST_THREADS = 1024 };
    if (k->threads > MOST_THREADS)
        tl_tune_reject(trial, "%u threads, at most %d", k->threads, MOST_THREADS);
    else if (k->shared_bytes > k->shared_most)
        tl_tune_reject(trial, "shared memory: %u bytes, at most %u", k->shared_bytes,
                       k->shared_most);
    else if (k->blocks == 0)
        tl_tune_reject(trial, "no block fits on a multiprocessor: %s", k->limit);
    return !trial->rejected;
}

static void judge(const tl_tuner *t, const rates *r, tl_trial *trial, const tilec_report *report,
                  const tl_instance *in, const tl_bound *bound)
{
    for (size_t i = 0; i < report->nkernels; i++)
        if (!fits(trial, &report->kernels[i]))
            return;
    const tilec_report_kernel *k = &report->kernels[0]; /* the variant for aligned arguments */
    work w = work_of(t, r, in, k);
    trial->samples[0] = estimate(r, k, &w, bound);
    trial->nsamples = 1;
}

static tile_status model(tl_tuner *t, const rates *r, tl_trial *trial, tl_bound *bound)
{
    size_t size;
    const void *image = tilec_output_data(trial->output, &size);
    const tilec_report *report = tilec_output_report(trial->output);
    if (trial->rejected)
        return TILE_OK;
    if (!report || !report->nkernels)
        return tl_fail(TILE_INTERNAL, "the compiler gave no report");
    tile_status status = tl_image_check(image, size);
    if (status != TILE_OK)
        return status;
    tl_instance in = {.image = image, .kernel = tl_image_kernels(image)};
    tl_bind_result bind =
        tl_bind(t->device, &in, t->args, t->nargs, NULL, 0, bound);
    if (bind == TL_BIND_OK)
        judge(t, r, trial, report, &in, bound);
    else if (bind == TL_BIND_EMPTY)
        trial->nsamples = 1; /* nothing to run takes no time */
    else
        tl_tune_reject(trial, "%s", tile_last_error());
    return TILE_OK;
}

static void note(tl_tuner *t, tl_trial *trial)
{
    t->rejected += trial->rejected != NULL;
    t->done++;
    if (!trial->rejected && (!t->best || tl_tune_value(trial) < tl_tune_value(t->best)))
        t->best = trial;
}

tile_status tl_tune_model_all(tl_tuner *t)
{
    enum { GROUP = 16 };
    const rates *r = tl_gpu_find(t->like.device.target);
    tl_bound *bound = malloc(sizeof *bound);
    tile_status status = TILE_OK;
    if (!r || !bound) {
        free(bound);
        return r ? tl_fail(TILE_NO_MEMORY, "out of memory")
                 : tl_fail(TILE_UNAVAILABLE, "there is no model of %s", t->like.device.target);
    }
    bool go_on = true;
    for (size_t i = 0; i < t->ntrials && status == TILE_OK && go_on; i += GROUP) {
        size_t end = i + GROUP < t->ntrials ? i + GROUP : t->ntrials;
        go_on = tl_tune_compile(t, i, end);
        for (size_t k = i; k < end && status == TILE_OK && go_on; k++) {
            status = model(t, r, &t->trials[k], bound);
            note(t, &t->trials[k]);
            tilec_output_free(t->trials[k].output);
            t->trials[k].output = NULL;
            go_on = tl_tune_report(t, "model", &t->trials[k]);
        }
    }
    free(bound);
    return status;
}
