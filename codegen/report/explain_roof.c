/* The report's part on limits (explain.h): roofs of a trip of the main loop and of a program, what
 * latency costs on top, intensity. */
#include <math.h>
#include <stdlib.h>

#include "codegen/report/explain.h"
#include "codegen/report/roof.h"

enum { ASSUMED_TRIPS = 32, LATENCY = 600 };

double tl_explain_runs(const tilec_report_kernel *k, int loop)
{
    double n = 1;
    for (int i = loop; i >= 0; i = k->loops[i].outer)
        n *= k->loops[i].trips >= 0 ? (double)k->loops[i].trips : ASSUMED_TRIPS;
    return n;
}

double tl_explain_exposed(const tilec_report_kernel *k, double busy)
{
    double blocks = k->blocks > 0 ? k->blocks : 1;
    return fmax(0, (LATENCY + busy) / blocks - busy);
}

static double *all_runs(TlExplain *e)
{
    double *runs = TL_NEW_ARRAY(e->scratch, double, e->k->nloops + 1);
    for (size_t i = 0; i < e->k->nloops; i++)
        runs[i] = tl_explain_runs(e->k, (int)i);
    return runs;
}

void tl_explain_program(TlExplain *e, const tl_gpu *r, double out[TL_ROOF_COUNT])
{
    tl_roofs(e->k, r, (TlRuns){all_runs(e), 1}, out);
}

/* What is in flight when a loop that is not pipelined waits: nothing of its own block. */
static double exposed_in_loops(const tilec_report_kernel *k, const tl_gpu *r, double *runs,
                               double *one)
{
    double cycles = 0, roofs[TL_ROOF_COUNT];
    for (size_t i = 0; i < k->nloops; i++) {
        if (k->loops[i].stages || !k->loops[i].each.bytes)
            continue;
        one[i] = 1;
        tl_roofs(k, r, (TlRuns){one, 0}, roofs);
        one[i] = 0;
        cycles += runs[i] * tl_explain_exposed(k, roofs[tl_roof_highest(roofs)]);
    }
    return cycles;
}

static int by_cycles(const void *a, const void *b)
{
    const tilec_report_roof *x = a, *y = b;
    double p = x->trip != y->trip ? x->trip : x->program;
    double q = x->trip != y->trip ? y->trip : y->program;
    return p < q ? 1 : p > q ? -1 : 0;
}

static void keep_roofs(TlExplain *e, const double *trip, const double *program)
{
    tilec_report_roof *rows = TL_NEW_ARRAY(e->out, tilec_report_roof, TL_ROOF_COUNT);
    size_t n = 0;
    for (int i = 0; i < TL_ROOF_COUNT; i++)
        if (trip[i] > 0 || program[i] > 0)
            rows[n++] = (tilec_report_roof){tl_roof_name((TlRoof)i), tl_roof_advice((TlRoof)i),
                                            trip[i], program[i]};
    qsort(rows, n, sizeof *rows, by_cycles);
    e->k->roofs = rows;
    e->k->nroofs = n;
}

/* Floating-point operations of a trip of the main loop; without one, of the program. */
static double flops_of(const tilec_report_kernel *k, const double *runs)
{
    double n = (double)k->outside.flops;
    if (k->main_loop >= 0)
        return (double)k->loops[k->main_loop].each.flops;
    for (size_t i = 0; i < k->nloops; i++)
        n += runs[i] * (double)k->loops[i].each.flops;
    return n;
}

static double fastest(const tilec_report_kernel *k, const tl_gpu *r)
{
    int bits = 0;
    for (size_t i = 0; i < k->nexchanges; i++)
        if (k->exchanges[i].matrix_bits && k->exchanges[i].loop == k->main_loop)
            bits = k->exchanges[i].matrix_bits;
    return bits == 0 ? r->fma : tl_rates_matrix(r, bits);
}

static void explain_intensity(tilec_report_kernel *k, const tl_gpu *r, const double *runs,
                              const double *roofs)
{
    double bytes = roofs[TL_ROOF_CACHE] * r->cache;
    k->intensity = bytes > 0 ? flops_of(k, runs) / bytes : 0;
    k->ridge = 2 * fastest(k, r) / r->cache;
}

void tl_explain_roofs(TlExplain *e)
{
    tilec_report_kernel *k = e->k;
    const tl_gpu *r = tl_gpu_find(e->target->name);
    double trip[TL_ROOF_COUNT] = {0}, program[TL_ROOF_COUNT];
    double *runs = all_runs(e), *one = TL_NEW_ARRAY(e->scratch, double, k->nloops + 1);
    k->assumed_trips = ASSUMED_TRIPS;
    if (!r)
        return;
    if (k->main_loop >= 0) {
        one[k->main_loop] = 1;
        tl_roofs(k, r, (TlRuns){one, 0}, trip);
        one[k->main_loop] = 0;
    }
    tl_explain_program(e, r, program);
    keep_roofs(e, trip, program);
    k->cycles = program[tl_roof_highest(program)] + exposed_in_loops(k, r, runs, one);
    if (k->nloops == 0)
        k->cycles += tl_explain_exposed(k, k->cycles);
    explain_intensity(k, r, runs, k->main_loop >= 0 ? trip : program);
}
