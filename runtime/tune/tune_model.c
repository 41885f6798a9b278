/* tune_model.c: ranks configurations for GPUs without a device, from the compiler's report.
 *
 * A configuration is rejected if one of its blocks does not fit on a multiprocessor, by the
 * target's tools and limits. The others get the time that the report's roofs and latencies give
 * for the launch (tilec_report_time): the formula of tilec explain. It is good enough to order
 * configurations of one kernel, no more; no GPU has confirmed it. */
#define TILE_UNSTABLE
#include <stdlib.h>
#include <string.h>

#include "runtime/contract/gpu_rows.h"
#include "runtime/tune/tune.h"

/* ---- the launch ---- */

typedef struct launch {
    const tl_instance *instance;
    const tl_bound *bound;
} launch;

static int64_t extent_of(const void *user, const char *param, uint32_t axis)
{
    const launch *l = user;
    const tl_instance *in = l->instance;
    const tile_image_param *p = tl_image_at(in->image, in->kernel->params);
    for (uint32_t i = 0; i < in->kernel->nparams; i++)
        if (strcmp(tl_image_text(in->image, p[i].name), param) == 0)
            return p[i].kind == TILE_PARAM_VIEW && axis < p[i].rank ? l->bound->args[i].extent[axis]
                                                                    : -1;
    return -1;
}

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

/* ---- limits ---- */

static bool fits(tl_trial *trial, const tilec_report_kernel *k)
{
    enum { MOST_THREADS = 1024 }; /* of a block, on every GPU */
    if (k->threads > MOST_THREADS)
        tl_tune_reject(trial, "%u threads, at most %d", k->threads, MOST_THREADS);
    else if (k->shared_bytes > k->shared_most)
        tl_tune_reject(trial, "shared memory: %u bytes, at most %u", k->shared_bytes,
                       k->shared_most);
    else if (k->blocks == 0)
        tl_tune_reject(trial, "no block fits on a multiprocessor: %s", k->limit);
    return !trial->rejected;
}

static void judge(tl_trial *trial, const tilec_report *report, const launch *l)
{
    for (size_t i = 0; i < report->nkernels; i++)
        if (!fits(trial, &report->kernels[i]))
            return;
    const tilec_report_kernel *k = &report->kernels[0]; /* the variant for aligned arguments */
    trial->samples[0] =
        tilec_report_time(report, k,
                          &(tilec_report_launch){(double)l->bound->launch.programs,
                                                 array_bytes(l->bound), extent_of, l});
    trial->nsamples = 1;
}

static tile_status model(tl_tuner *t, tl_trial *trial, tl_bound *bound)
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
    tl_bind_result bind = tl_bind(t->device, &in, t->args, t->nargs, NULL, 0, bound);
    if (bind == TL_BIND_OK)
        judge(trial, report, &(launch){&in, bound});
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
    bool known = tl_gpu_find(t->like.device.target) != NULL;
    tl_bound *bound = malloc(sizeof *bound);
    tile_status status = TILE_OK;
    if (!known || !bound) {
        free(bound);
        return known ? tl_fail(TILE_NO_MEMORY, "out of memory")
                     : tl_fail(TILE_UNAVAILABLE, "there is no model of %s", t->like.device.target);
    }
    bool go_on = true;
    for (size_t i = 0; i < t->ntrials && status == TILE_OK && go_on; i += GROUP) {
        size_t end = i + GROUP < t->ntrials ? i + GROUP : t->ntrials;
        go_on = tl_tune_compile(t, i, end);
        for (size_t k = i; k < end && status == TILE_OK && go_on; k++) {
            status = model(t, &t->trials[k], bound);
            note(t, &t->trials[k]);
            tilec_output_free(t->trials[k].output);
            t->trials[k].output = NULL;
            go_on = tl_tune_report(t, "model", &t->trials[k]);
        }
    }
    free(bound);
    return status;
}
