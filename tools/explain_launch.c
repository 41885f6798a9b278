/* explain_launch.c: what a launch with given arguments costs at least: the roofs of a program times
 * the programs, over all multiprocessors; memory by all arrays, each once. And how long the
 * emulator would take for it. */
#include "tools/explain_launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- how often ---- */

static const RunShape *shape_of(const RunCounted *launch, const char *param)
{
    for (size_t i = 0; i < launch->nshapes; i++)
        if (strcmp(launch->shapes[i].name, param) == 0)
            return &launch->shapes[i];
    return NULL;
}

static double trips_of(const tilec_report_kernel *k, const tilec_report_loop *l,
                       const RunCounted *launch, bool *out_assumed)
{
    const RunShape *s = l->param ? shape_of(launch, l->param) : NULL;
    if (l->trips >= 0)
        return (double)l->trips;
    if (s && l->axis < (uint32_t)s->rank)
        return fmax(0, ceil((double)(s->extent[l->axis] - l->less) / (double)l->step));
    *out_assumed = true;
    return k->assumed_trips;
}

/* Loops come after those around them. */
static void find_runs(const tilec_report_kernel *k, const RunCounted *launch, double *runs,
                      bool *out_assumed)
{
    for (size_t i = 0; i < k->nloops; i++) {
        int outer = k->loops[i].outer;
        runs[i] = trips_of(k, &k->loops[i], launch, out_assumed) * (outer < 0 ? 1 : runs[outer]);
    }
}

/* ---- sums ---- */

static double flops_of(const tilec_report_kernel *k, const double *runs)
{
    double n = (double)k->outside.flops;
    for (size_t i = 0; i < k->nloops; i++)
        n += runs[i] * (double)k->loops[i].each.flops;
    return n;
}

/* Measured: a multiply-add of a matrix instruction takes 7 ns, an instruction 4 ns for each
 * thread. */
static double emulated_seconds(const tilec_report_kernel *k, const double *runs, double programs)
{
    const double multiply_add = 7e-9, instruction = 4e-9;
    double macs = 0, instructions = 0;
    double trips = k->main_loop >= 0 ? runs[k->main_loop] / k->unrolled : 0;
    for (size_t i = 0; i < k->nexchanges; i++) {
        const tilec_report_exchange *x = &k->exchanges[i];
        macs += (double)x->macs * x->share / 100 * (x->loop < 0 ? 1 : runs[x->loop]);
    }
    for (size_t i = 0; i < k->nmix; i++)
        instructions += k->mix[i].rest + k->mix[i].trip * trips;
    return programs * (macs * multiply_add + instructions * k->threads * instruction);
}

static void find_times(const tl_gpu *rates, const double *runs, ExplainLaunch *out)
{
    const tilec_report_kernel *k = out->k;
    double cycles[TL_ROOF_COUNT];
    tl_roofs(k, rates, (TlRuns){runs, 1}, cycles);
    double each = ceil(out->programs / rates->sms); /* of the busiest multiprocessor */
    for (int i = 0; i < TL_ROOF_COUNT; i++)
        out->us[i] = cycles[i] * each / (rates->ghz * 1e3);
    out->us[TL_ROOF_MEMORY] = out->bytes / (rates->memory * rates->sms) / (rates->ghz * 1e3);
    out->in_use = out->programs / (each * rates->sms);
    out->at_once = k->blocks > 0 ? (double)k->blocks * rates->sms : 0;
}

/* The emulator's symbol of a form has ".entry" behind it. */
static bool is_symbol(const char *emulated, const char *symbol)
{
    size_t n = strlen(symbol);
    return strncmp(emulated, symbol, n) == 0 && (emulated[n] == 0 || emulated[n] == '.');
}

void explain_launch(const tilec_report *r, const RunCounted *launch, ExplainLaunch *out)
{
    const tl_gpu *rates = tl_gpu_find(r->target);
    *out = (ExplainLaunch){.programs = (double)launch->programs, .bytes = launch->bytes};
    for (size_t i = 0; i < r->nkernels && launch->programs > 0; i++)
        if (is_symbol(launch->symbol, r->kernels[i].symbol))
            out->k = &r->kernels[i];
    double *runs = out->k ? calloc(out->k->nloops + 1, sizeof *runs) : NULL;
    if (runs) {
        find_runs(out->k, launch, runs, &out->assumed);
        out->flops = flops_of(out->k, runs) * out->programs;
        out->emulated = emulated_seconds(out->k, runs, out->programs) / launch->processors;
    }
    if (runs && rates)
        find_times(rates, runs, out);
    free(runs);
}

/* ---- text ---- */

static void show_time(const char *name, double us)
{
    if (us >= 1000)
        printf("         %-28s %10.2f ms\n", name, us / 1000);
    else
        printf("         %-28s %10.2f us\n", name, us);
}

static void show_programs(const ExplainLaunch *l)
{
    printf("         %-28s %10.0f", "programs", l->programs);
    if (l->at_once > 0)
        printf(": %.2f waves of %.0f, multiprocessors %.0f%% in use", l->programs / l->at_once,
               l->at_once, 100 * l->in_use);
    putchar('\n');
}

static void show_end(const ExplainLaunch *l)
{
    const double few = 0.9;
    TlRoof highest = tl_roof_highest(l->us);
    double us = l->us[highest];
    printf(
        "  at least this long, because of %s: at most %.0f GFLOP/s, %.0f GB/s of all arrays once\n",
        tl_roof_name(highest), l->flops / us / 1e3, l->bytes / us / 1e3);
    if (l->in_use < few && highest != TL_ROOF_MEMORY)
        printf(
            "  the programs do not fill the multiprocessors evenly: smaller tiles, or parts of the "
            "longest loop in programs of their own\n");
    if (l->assumed)
        printf("  where the trips of a loop are not known, %u are assumed\n", l->k->assumed_trips);
}

/* The highest first. */
static void show_times(const ExplainLaunch *l)
{
    bool shown[TL_ROOF_COUNT] = {false};
    for (;;) {
        int next = -1;
        for (int i = 0; i < TL_ROOF_COUNT; i++)
            if (!shown[i] && l->us[i] > 0 && (next < 0 || l->us[i] > l->us[next]))
                next = i;
        if (next < 0)
            return;
        shown[next] = true;
        show_time(tl_roof_name((TlRoof)next), l->us[next]);
    }
}

void explain_launch_text(const tilec_report *r, const ExplainLaunch *l)
{
    if (!l->k || !tl_gpu_find(r->target))
        return;
    printf("\nwith these arguments the form '%s' runs; at least\n", l->k->variant);
    show_programs(l);
    show_times(l);
    show_end(l);
}

/* ---- JSON ---- */

void explain_launch_json(TlSbuf *out, const ExplainLaunch *l)
{
    if (!l->k) {
        tl_sbuf_puts(out, "null");
        return;
    }
    tl_sbuf_putf(out,
                 "{\"symbol\": \"%s\", \"programs\": %.0f, \"at_once\": %.0f, \"in_use\": %.6g, "
                 "\"flops\": %.10g, \"bytes\": %.10g, \"assumed\": %s, \"emulated\": %.6g, "
                 "\"microseconds\": {",
                 l->k->symbol, l->programs, l->at_once, l->in_use, l->flops, l->bytes,
                 l->assumed ? "true" : "false", l->emulated);
    bool first = true;
    for (int i = 0; i < TL_ROOF_COUNT; i++)
        if (l->us[i] > 0) {
            tl_sbuf_putf(out, "%s\"%s\": %.6g", first ? "" : ", ", tl_roof_name((TlRoof)i),
                         l->us[i]);
            first = false;
        }
    tl_sbuf_puts(out, "}}");
}
