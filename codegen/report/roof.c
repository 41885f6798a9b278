/* Roofs of kernels (roof.h): work of a block over what a multiprocessor does in a cycle. */
#include "codegen/report/roof.h"

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

static double runs_of(TlRuns runs, int loop)
{
    return loop < 0 ? runs.outside : runs.loops[loop];
}

double tl_rates_matrix(const tl_gpu *r, int bits)
{
    double rate = bits <= 8    ? r->matrix8
                  : bits <= 16 ? r->matrix16
                  : bits <= 32 ? r->matrix32
                               : r->matrix64;
    return rate > 0 ? rate : r->fma;
}

static void add_exchanges(const tilec_report_kernel *k, const tl_gpu *r, TlRuns runs,
                          double out[TL_ROOF_COUNT])
{
    double wavefronts = 0;
    for (size_t i = 0; i < k->nexchanges; i++) {
        const tilec_report_exchange *x = &k->exchanges[i];
        double n = runs_of(runs, x->loop) * x->share / 100;
        wavefronts += n * x->wavefronts * k->warps;
        if (x->matrix_bits)
            out[TL_ROOF_MATRIX] += n * (double)x->macs / tl_rates_matrix(r, x->matrix_bits);
    }
    out[TL_ROOF_SHARED] = wavefronts / r->wavefronts;
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
static void add_bytes(const tilec_report_kernel *k, const tl_gpu *r, TlRuns runs,
                      double out[TL_ROOF_COUNT])
{
    bool products = has_products(k);
    for (size_t i = 0; i < k->naccesses; i++) {
        const tilec_report_access *a = &k->accesses[i];
        double bytes = bytes_of(a) * runs_of(runs, a->loop) * a->share / 100;
        out[TL_ROOF_CACHE] += bytes / r->cache;
        out[TL_ROOF_MEMORY] += products && is_looped(k, a->param) ? 0 : bytes / r->memory;
    }
}

/* Instructions of the classes. Trips of the machine's main loop may be several of the report's. */
static double instructions(const tilec_report_kernel *k, unsigned classes, TlRuns runs)
{
    double n = 0, trips = k->main_loop >= 0 ? runs.loops[k->main_loop] / k->unrolled : 0;
    for (size_t i = 0; i < k->nmix; i++)
        for (int c = 0; c < TL_MIX_COUNT; c++)
            if (classes >> c & 1 && strcmp(k->mix[i].name, tl_mix_class((TlMixClass)c)->name) == 0)
                n += k->mix[i].rest * runs.outside + k->mix[i].trip * trips;
    return n;
}

void tl_roofs(const tilec_report_kernel *k, const tl_gpu *rates, TlRuns runs,
              double out[TL_ROOF_COUNT])
{
    TL_ASSERT(rates, "no rates");
    memset(out, 0, TL_ROOF_COUNT * sizeof *out);
    add_exchanges(k, rates, runs, out);
    add_bytes(k, rates, runs, out);
    for (int i = 0; i < TL_ROOF_COUNT; i++) {
        double unit = lanes_of(rates, (TlRoof)i);
        if (unit > 0)
            out[i] = instructions(k, CLASSES[i], runs) * k->warps * k->lanes / unit;
    }
    if (rates->matrix_in_vector)
        out[TL_ROOF_VECTOR] += out[TL_ROOF_MATRIX];
}
