/* The report's part on limits (explain.h): the roofs of one iteration of the main loop and of a
 * program, the cost of latency on top, and intensity. */
#include <stdlib.h>

#include "codegen/report/explain.h"
#include "codegen/report/roof.h"

enum { ASSUMED_TRIPS = 32 };

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

/* Floating-point operations of an iteration of the main loop; without one, of the program. */
static double flops_of(const tilec_report_kernel *k)
{
    double n = (double)k->outside.flops;
    if (k->main_loop >= 0 && !k->loops[k->main_loop].made)
        return (double)k->loops[k->main_loop].each.flops;
    for (size_t i = 0; i < k->nloops; i++)
        n += tl_roof_runs(k, NULL, (int)i) * (double)k->loops[i].each.flops;
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

static void explain_intensity(tilec_report_kernel *k, const tl_gpu *r, const double *roofs)
{
    double bytes = roofs[TL_ROOF_CACHE] * r->cache;
    k->intensity = bytes > 0 ? flops_of(k) / bytes : 0;
    k->ridge = 2 * fastest(k, r) / r->cache;
}

void tl_explain_roofs(TlExplain *e)
{
    tilec_report_kernel *k = e->k;
    const tl_gpu *r = tl_gpu_find(e->target->name);
    double trip[TL_ROOF_COUNT] = {0}, program[TL_ROOF_COUNT];
    k->assumed_trips = ASSUMED_TRIPS;
    if (!r)
        return;
    bool trips = k->main_loop >= 0 && !k->loops[k->main_loop].made;
    if (trips)
        tl_roofs_of_trip(k, r, k->main_loop, trip);
    tl_roofs(k, r, NULL, program);
    keep_roofs(e, trip, program);
    double busy = program[tl_roof_highest(program)];
    k->cycles = busy + tl_roof_latency(k, r, NULL, k->blocks, busy);
    explain_intensity(k, r, trips ? trip : program);
}
