/* explain_launch.c: the least that a launch with given arguments costs: the roofs of a program
 * times the number of programs, over all multiprocessors, with the memory of each array counted
 * once. Also an estimate of the emulator's time. */
#include "ir/support/number.h"
#include "tools/explain_launch.h"

#include <string.h>

static int64_t extent_of(const void *user, const char *param, uint32_t axis)
{
    const RunCounted *launch = user;
    for (size_t i = 0; i < launch->nshapes; i++)
        if (strcmp(launch->shapes[i].name, param) == 0)
            return axis < (uint32_t)launch->shapes[i].rank ? launch->shapes[i].extent[axis] : -1;
    return -1;
}

static double flops_of(const tilec_report_kernel *k, const tilec_report_launch *launch)
{
    double n = (double)k->outside.flops;
    for (size_t i = 0; i < k->nloops; i++)
        n += tl_roof_runs(k, launch, (int)i) * (double)k->loops[i].each.flops;
    return n;
}

/* Measured: a multiply-add of a matrix instruction takes 7 ns, an instruction 4 ns for each
 * thread. */
static double emulated_seconds(const tilec_report_kernel *k, const tilec_report_launch *launch)
{
    const double multiply_add = 7e-9, instruction = 4e-9;
    double macs = 0, instructions = 0;
    for (size_t i = 0; i < k->nexchanges; i++) {
        const tilec_report_exchange *x = &k->exchanges[i];
        macs += (double)x->macs * x->share / 100 * tl_roof_runs(k, launch, x->loop);
    }
    for (size_t i = 0; i < k->nmix; i++)
        instructions += tl_roof_executed(k, launch, &k->mix[i]);
    return launch->programs * (macs * multiply_add + instructions * k->threads * instruction);
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
    const tilec_report_launch l = {out->programs, out->bytes, extent_of, launch};
    if (!out->k)
        return;
    out->assumed = tl_roof_assumes(out->k, &l);
    out->flops = flops_of(out->k, &l) * out->programs;
    out->emulated = emulated_seconds(out->k, &l) / launch->processors;
    if (rates)
        tl_launch_time(out->k, rates, &l, &out->time);
}

/* ---- text ---- */

static void show_time(const char *name, double us)
{
    if (us >= 1000)
        printf("         %-28s %s ms\n", name, TL_NUMBER("%10.2f", us / 1000));
    else
        printf("         %-28s %s us\n", name, TL_NUMBER("%10.2f", us));
}

static void show_programs(const ExplainLaunch *l)
{
    printf("         %-28s %s", "programs", TL_NUMBER("%10.0f", l->programs));
    if (l->time.at_once > 0)
        printf(": %s waves of %s, multiprocessors %s%% in use",
               TL_NUMBER("%.2f", l->programs / l->time.at_once), TL_NUMBER("%.0f", l->time.at_once),
               TL_NUMBER("%.0f", 100 * l->time.in_use));
    putchar('\n');
}

static void show_end(const ExplainLaunch *l)
{
    const double few = 0.9;
    TlRoof highest = tl_roof_highest(l->time.us);
    double us = l->time.us[highest];
    printf("  at least this long, because of %s: at most %s GFLOP/s, %s GB/s of all arrays once\n",
           tl_roof_name(highest), TL_NUMBER("%.0f", l->flops / us / 1e3),
           TL_NUMBER("%.0f", l->bytes / us / 1e3));
    if (l->time.in_use < few && highest != TL_ROOF_MEMORY)
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
            if (!shown[i] && l->time.us[i] > 0 && (next < 0 || l->time.us[i] > l->time.us[next]))
                next = i;
        if (next < 0)
            return;
        shown[next] = true;
        show_time(tl_roof_name((TlRoof)next), l->time.us[next]);
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
                 "{\"symbol\": \"%s\", \"programs\": %s, \"at_once\": %s, \"in_use\": %s, "
                 "\"flops\": %s, \"bytes\": %s, \"assumed\": %s, \"emulated\": %s, "
                 "\"microseconds\": {",
                 l->k->symbol, TL_NUMBER("%.0f", l->programs), TL_NUMBER("%.0f", l->time.at_once),
                 TL_NUMBER("%.6g", l->time.in_use), TL_NUMBER("%.10g", l->flops),
                 TL_NUMBER("%.10g", l->bytes), l->assumed ? "true" : "false",
                 TL_NUMBER("%.6g", l->emulated));
    bool first = true;
    for (int i = 0; i < TL_ROOF_COUNT; i++)
        if (l->time.us[i] > 0) {
            tl_sbuf_putf(out, "%s\"%s\": %s", first ? "" : ", ", tl_roof_name((TlRoof)i),
                         TL_NUMBER("%.6g", l->time.us[i]));
            first = false;
        }
    tl_sbuf_puts(out, "}}");
}
