/* Roofs of kernels (roof.h): work of a block over what a multiprocessor does in a cycle. */
#include "codegen/report/roof.h"

#include <math.h>
#include <string.h>

#include "codegen/report/mix.h"
#include "ir/support/guard.h"

/* ---- tables ---- */

static const struct {
    const char *name, *advice;
} ROOFS[] = {
#define ROOF(ID, name, advice) [TL_ROOF_##ID] = {name, advice},
#include "codegen/report/roof.def"
};

static const struct {
    const char *name, *words;
} KINDS[] = {
#define KIND(ID, name, words) [TL_EXCHANGE_##ID] = {name, words},
#include "codegen/report/roof.def"
};

#define M(ID) (1u << TL_MIX_##ID)
/* The instructions that count in a roof. */
static const unsigned CLASSES[TL_ROOF_COUNT] = {
    [TL_ROOF_ISSUE] = ~M(IDLE),
    [TL_ROOF_VECTOR] = M(FLOAT) | M(INTEGER) | M(CONVERT) | M(SELECT) | M(MOVE) | M(SHUFFLE),
    [TL_ROOF_FLOAT] = M(FLOAT),
    [TL_ROOF_SPECIAL] = M(SPECIAL),
    [TL_ROOF_SHUFFLE] = M(SHUFFLE),
};
#undef M

const char *tl_exchange_kind_name(TlExchangeKind kind)
{
    TL_ASSERT((unsigned)kind < TL_EXCHANGE_COUNT, "kind %d", (int)kind);
    return KINDS[kind].name;
}

const char *tl_exchange_kind_words(TlExchangeKind kind)
{
    TL_ASSERT((unsigned)kind < TL_EXCHANGE_COUNT, "kind %d", (int)kind);
    return KINDS[kind].words;
}

const char *tl_roof_name(TlRoof roof)
{
    TL_ASSERT((unsigned)roof < TL_ROOF_COUNT, "roof %d", (int)roof);
    return ROOFS[roof].name;
}

const char *tl_roof_advice(TlRoof roof)
{
    TL_ASSERT((unsigned)roof < TL_ROOF_COUNT, "roof %d", (int)roof);
    return ROOFS[roof].advice;
}

/* Lanes of instructions that the unit takes in a cycle; 0: it has none of its own. */
static double lanes_of(const tl_gpu *g, TlRoof roof)
{
    double issue = g->vector > 0 ? 0 : g->schedulers * g->lanes;
    switch (roof) {
    case TL_ROOF_ISSUE: return issue;
    case TL_ROOF_VECTOR: return g->vector;
    case TL_ROOF_FLOAT: return g->fma < issue ? g->fma : 0;
    case TL_ROOF_SPECIAL: return g->special;
    case TL_ROOF_SHUFFLE: return g->shuffle;
    case TL_ROOF_MATRIX:
    case TL_ROOF_MEMORY:
    case TL_ROOF_CACHE:
    case TL_ROOF_SHARED:
    case TL_ROOF_COUNT: return 0;
    }
    TL_UNREACHABLE("roof %d", (int)roof);
}

double tl_roof_of_instruction(const tl_gpu *gpu, TlRoof roof, unsigned lanes)
{
    double unit = lanes_of(gpu, roof);
    return unit > 0 ? lanes / unit : 0;
}

TlRoof tl_roof_of_issue(const tl_gpu *gpu)
{
    return lanes_of(gpu, TL_ROOF_ISSUE) > 0 ? TL_ROOF_ISSUE : TL_ROOF_VECTOR;
}

TlRoof tl_roof_highest(const double roofs[TL_ROOF_COUNT])
{
    int best = 0;
    for (int i = 1; i < TL_ROOF_COUNT; i++)
        if (roofs[i] > roofs[best])
            best = i;
    return (TlRoof)best;
}

/* ---- work ---- */

static double trips_of(const tilec_report_loop *l, const tilec_report_launch *launch)
{
    if (l->trips >= 0)
        return (double)l->trips;
    int64_t extent = launch && l->param ? launch->extent(launch->user, l->param, l->axis) : -1;
    return extent < 0 ? -1 : fmax(0, ceil((double)(extent - l->less) / (double)l->step));
}

double tl_roof_runs(const tilec_report_kernel *k, const tilec_report_launch *launch, int loop)
{
    double n = 1;
    for (int i = loop; i >= 0; i = k->loops[i].outer) {
        double trips = trips_of(&k->loops[i], launch);
        n *= trips < 0 ? k->assumed_trips : trips;
    }
    return n;
}

bool tl_roof_loops(const tilec_report_kernel *k)
{
    bool found = false;
    for (size_t i = 0; i < k->nloops; i++)
        found |= !k->loops[i].made;
    return found;
}

bool tl_roof_assumes(const tilec_report_kernel *k, const tilec_report_launch *launch)
{
    for (size_t i = 0; i < k->nloops; i++)
        if (trips_of(&k->loops[i], launch) < 0)
            return true;
    return false;
}

/* What is summed up: a program of the launch, or an iteration of one loop. */
typedef struct Sum {
    const tilec_report_kernel *k;
    const tl_gpu *rates;
    const tilec_report_launch *launch;
    int trip_of; /* -1: a program */
    double *out;
} Sum;

static double runs_of(const Sum *s, int loop)
{
    return s->trip_of < 0 ? tl_roof_runs(s->k, s->launch, loop) : loop == s->trip_of;
}

double tl_rates_matrix(const tl_gpu *r, int bits)
{
    double rate = bits <= 8    ? r->matrix8
                  : bits <= 16 ? r->matrix16
                  : bits <= 32 ? r->matrix32
                               : r->matrix64;
    return rate > 0 ? rate : r->fma;
}

static void add_exchanges(const Sum *s)
{
    double wavefronts = 0;
    for (size_t i = 0; i < s->k->nexchanges; i++) {
        const tilec_report_exchange *x = &s->k->exchanges[i];
        double n = runs_of(s, x->loop) * x->share / 100;
        wavefronts += n * x->wavefronts * tl_roof_warps(s->k);
        if (x->matrix_bits)
            s->out[TL_ROOF_MATRIX] +=
                n * (double)x->macs / tl_rates_matrix(s->rates, x->matrix_bits);
    }
    s->out[TL_ROOF_SHARED] = wavefronts / s->rates->wavefronts;
}

static bool has_products(const tilec_report_kernel *k)
{
    for (size_t i = 0; i < k->nexchanges; i++)
        if (k->exchanges[i].macs)
            return true;
    return false;
}

/* Does a loop of the kernel access the array? */
static bool is_looped(const tilec_report_kernel *k, const char *param)
{
    for (size_t i = 0; i < k->naccesses; i++)
        if (k->accesses[i].loop >= 0 && strcmp(k->accesses[i].param, param) == 0)
            return true;
    return false;
}

/* Whole sectors, but for what several requests of a thread take of the same ones: the first cache
 * keeps these. */
static double bytes_of(const tilec_report_access *a)
{
    enum { SECTOR = 32 };
    bool whole = a->run >= SECTOR || a->least == 0;
    return (double)a->bytes * (whole ? 1 : (double)a->sectors / a->least);
}

/* What loops read for products, other programs read too: it comes from the second
 * cache. */
static void add_bytes(const Sum *s)
{
    bool products = has_products(s->k);
    for (size_t i = 0; i < s->k->naccesses; i++) {
        const tilec_report_access *a = &s->k->accesses[i];
        double bytes = bytes_of(a) * runs_of(s, a->loop) * a->share / 100;
        s->out[TL_ROOF_CACHE] += bytes / s->rates->cache;
        s->out[TL_ROOF_MEMORY] +=
            products && is_looped(s->k, a->param) ? 0 : bytes / s->rates->memory;
    }
}

/* Iterations of the machine's main loop may be several of the report's. */
static double executed_in_loops(const Sum *s, const tilec_report_mix *m)
{
    const tilec_report_kernel *k = s->k;
    bool loops = k->main_loop >= 0;
    return m->around * runs_of(s, loops ? k->loops[k->main_loop].outer : -1) +
           (loops ? m->trip * runs_of(s, k->main_loop) / k->unrolled : 0);
}

static double executed(const Sum *s, const tilec_report_mix *m)
{
    return m->rest * runs_of(s, -1) + executed_in_loops(s, m);
}

uint32_t tl_roof_warps(const tilec_report_kernel *k)
{
    return k->working_warps ? k->working_warps : k->warps;
}

double tl_roof_executed(const tilec_report_kernel *k, const tilec_report_launch *launch,
                        const tilec_report_mix *mix)
{
    return executed(&(Sum){.k = k, .launch = launch, .trip_of = -1}, mix);
}

/* Instructions of the classes, of all warps: those that begin copies run no loop of the report's
 * but for these. */
static double instructions(const Sum *s, unsigned classes)
{
    const tilec_report_kernel *k = s->k;
    double n = 0;
    for (size_t i = 0; i < k->nmix; i++)
        for (int c = 0; c < TL_MIX_COUNT; c++)
            if (classes >> c & 1 && strcmp(k->mix[i].name, tl_mix_class((TlMixClass)c)->name) == 0)
                n += k->mix[i].rest * runs_of(s, -1) * k->warps +
                     executed_in_loops(s, &k->mix[i]) * tl_roof_warps(k);
    return n;
}

static void add_all(const Sum *s)
{
    TL_ASSERT(s->rates, "no rates");
    memset(s->out, 0, TL_ROOF_COUNT * sizeof *s->out);
    add_exchanges(s);
    add_bytes(s);
    for (int i = 0; i < TL_ROOF_COUNT; i++) {
        double unit = lanes_of(s->rates, (TlRoof)i);
        if (unit > 0)
            s->out[i] = instructions(s, CLASSES[i]) * s->k->lanes / unit;
    }
    if (s->rates->matrix_in_vector)
        s->out[TL_ROOF_VECTOR] += s->out[TL_ROOF_MATRIX];
}

void tl_roofs(const tilec_report_kernel *k, const tl_gpu *rates, const tilec_report_launch *launch,
              double out[TL_ROOF_COUNT])
{
    add_all(&(Sum){k, rates, launch, -1, out});
}

void tl_roofs_of_trip(const tilec_report_kernel *k, const tl_gpu *rates, int loop,
                      double out[TL_ROOF_COUNT])
{
    TL_ASSERT(loop >= 0 && (size_t)loop < k->nloops, "loop %d", loop);
    add_all(&(Sum){k, rates, NULL, loop, out});
}

/* ---- latency ---- */

double tl_roof_exposed(double blocks, double busy)
{
    enum { LATENCY = 600 };
    return fmax(0, (LATENCY + busy) / fmax(blocks, 1) - busy);
}

/* What is in flight when a loop that is not pipelined waits: nothing of its own block. */
double tl_roof_latency(const tilec_report_kernel *k, const tl_gpu *rates,
                       const tilec_report_launch *launch, double blocks, double busy)
{
    double cycles = tl_roof_loops(k) ? 0 : tl_roof_exposed(blocks, busy), trip[TL_ROOF_COUNT];
    for (size_t i = 0; i < k->nloops; i++) {
        if (k->loops[i].stages || !k->loops[i].each.bytes)
            continue;
        tl_roofs_of_trip(k, rates, (int)i, trip);
        cycles += tl_roof_runs(k, launch, (int)i) *
                  tl_roof_exposed(blocks, trip[tl_roof_highest(trip)]);
    }
    return cycles;
}

/* ---- launches ---- */

void tl_launch_time(const tilec_report_kernel *k, const tl_gpu *rates,
                    const tilec_report_launch *launch, TlLaunchTime *out)
{
    double cycles[TL_ROOF_COUNT], each = ceil(launch->programs / rates->sms), /* of the busiest */
        a_us = rates->ghz * 1e3, blocks = fmin(k->blocks, each);
    tl_roofs(k, rates, launch, cycles);
    double latency =
        tl_roof_latency(k, rates, launch, blocks, cycles[tl_roof_highest(cycles)]);
    for (int i = 0; i < TL_ROOF_COUNT; i++)
        out->us[i] = cycles[i] * each / a_us;
    out->us[TL_ROOF_MEMORY] = launch->bytes / (rates->memory * rates->sms) / a_us;
    out->expected = out->us[tl_roof_highest(out->us)] + latency * each / a_us;
    out->in_use = launch->programs / (each * rates->sms);
    out->at_once = k->blocks > 0 ? (double)k->blocks * rates->sms : 0;
}

double tilec_report_time(const tilec_report *report, const tilec_report_kernel *kernel,
                         const tilec_report_launch *launch)
{
    const tl_gpu *rates = report && kernel ? tl_gpu_find(report->target) : NULL;
    TlLaunchTime time;
    if (!rates || !launch)
        return -1;
    tl_launch_time(kernel, rates, launch, &time);
    return time.expected;
}
