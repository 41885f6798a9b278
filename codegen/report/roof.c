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

typedef struct Unit {
    const char *targets;
    TlRoof roof;
    double lanes;
    unsigned classes; /* bits */
} Unit;

static const Unit UNITS[] = {
#define UNIT(targets, roof, lanes, classes) {targets, TL_ROOF_##roof, lanes, classes},
#include "codegen/report/units.def"
};

static const struct {
    const char *targets;
    double wavefronts;
} SHAREDS[] = {
#define SHARED(targets, wavefronts) {targets, wavefronts},
#include "codegen/report/units.def"
};

static const struct {
    const char *targets;
    TlRoof roof;
} WITHINS[] = {
#define WITHIN(targets, roof) {targets, TL_ROOF_##roof},
#include "codegen/report/units.def"
};

static const struct {
    const char *targets;
    double share;
    const char *what, *help;
} SLOWERS[] = {
#define SLOWER(targets, share, what, help) {targets, share, what, help},
#include "codegen/report/units.def"
};

static const TlRates RATES_OF[] = {
#define RATES(...) {__VA_ARGS__},
#include "runtime/tune/model.def"
};

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

const TlRates *tl_rates_find(const char *target)
{
    for (size_t i = 0; i < sizeof RATES_OF / sizeof *RATES_OF; i++)
        if (strcmp(RATES_OF[i].target, target) == 0)
            return &RATES_OF[i];
    return NULL;
}

/* Is the word in a list with spaces between? */
static bool is_among(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(list, word); p; p = strstr(p + 1, word))
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0))
            return true;
    return false;
}

double tl_roof_share(const char *target, const char **out_what, const char **out_help)
{
    for (size_t i = 0; i < sizeof SLOWERS / sizeof *SLOWERS; i++)
        if (is_among(SLOWERS[i].targets, target)) {
            *out_what = SLOWERS[i].what;
            *out_help = SLOWERS[i].help;
            return SLOWERS[i].share;
        }
    return 1;
}

static const Unit *unit_of(const char *target, TlRoof roof)
{
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (UNITS[i].roof == roof && is_among(UNITS[i].targets, target))
            return &UNITS[i];
    return NULL;
}

double tl_roof_of_instruction(const char *target, TlRoof roof, unsigned lanes)
{
    const Unit *u = unit_of(target, roof);
    return u ? lanes / u->lanes : 0;
}

TlRoof tl_roof_of_issue(const char *target)
{
    return unit_of(target, TL_ROOF_ISSUE) ? TL_ROOF_ISSUE : TL_ROOF_VECTOR;
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

double tl_rates_matrix(const TlRates *r, int bits)
{
    double rate = bits <= 8    ? r->matrix8
                  : bits <= 16 ? r->matrix16
                  : bits <= 32 ? r->matrix32
                               : r->matrix64;
    return rate > 0 ? rate : r->fma;
}

static void add_exchanges(const tilec_report_kernel *k, const TlRates *r, TlRuns runs,
                          double out[TL_ROOF_COUNT])
{
    double wavefronts = 0, each = 0;
    for (size_t i = 0; i < k->nexchanges; i++) {
        const tilec_report_exchange *x = &k->exchanges[i];
        double n = runs_of(runs, x->loop) * x->share / 100;
        wavefronts += n * x->wavefronts * k->warps;
        if (x->matrix_bits)
            out[TL_ROOF_MATRIX] += n * (double)x->macs / tl_rates_matrix(r, x->matrix_bits);
    }
    for (size_t i = 0; i < sizeof SHAREDS / sizeof *SHAREDS; i++)
        each = is_among(SHAREDS[i].targets, r->target) ? SHAREDS[i].wavefronts : each;
    out[TL_ROOF_SHARED] = each > 0 ? wavefronts / each : 0;
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
static void add_bytes(const tilec_report_kernel *k, const TlRates *r, TlRuns runs,
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

void tl_roofs(const tilec_report_kernel *k, const TlRates *rates, TlRuns runs,
              double out[TL_ROOF_COUNT])
{
    TL_ASSERT(rates, "no rates");
    memset(out, 0, TL_ROOF_COUNT * sizeof *out);
    add_exchanges(k, rates, runs, out);
    add_bytes(k, rates, runs, out);
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (is_among(UNITS[i].targets, rates->target))
            out[UNITS[i].roof] =
                instructions(k, UNITS[i].classes, runs) * k->warps * k->lanes / UNITS[i].lanes;
    for (size_t i = 0; i < sizeof WITHINS / sizeof *WITHINS; i++)
        if (is_among(WITHINS[i].targets, rates->target))
            out[WITHINS[i].roof] += out[TL_ROOF_MATRIX];
}
