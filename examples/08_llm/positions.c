/* Positions in texts that are longer than those a model has learned from. A head's pair i turns by
 * base^(-2 i / d) radians from one place to the next; what turns slowly is slowed further, so that
 * rope_factor[i] divides its angles. */
#include "settings.h"
#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

enum {
    AT_LINEAR = 1 << LINEAR, AT_LLAMA3 = 1 << LLAMA3, AT_YARN = 1 << YARN, AT_LONG = 1 << LONGROPE
};

/* What each way of scaling needs, and may have. */
static const struct {
    const char *name;
    size_t at;
    int needed, taken;
} parameters[] = {
    {"factor", offsetof(Rope, factor), AT_LINEAR | AT_LLAMA3 | AT_YARN,
     AT_LINEAR | AT_LLAMA3 | AT_YARN | AT_LONG},
    {"low_freq_factor", offsetof(Rope, low), AT_LLAMA3, AT_LLAMA3},
    {"high_freq_factor", offsetof(Rope, high), AT_LLAMA3, AT_LLAMA3},
    {"attention_factor", offsetof(Rope, attention), 0, AT_YARN | AT_LONG},
    {"beta_fast", offsetof(Rope, fast), 0, AT_YARN},
    {"beta_slow", offsetof(Rope, slow), 0, AT_YARN},
    {"mscale", offsetof(Rope, mscale), 0, AT_YARN},
    {"mscale_all_dim", offsetof(Rope, mscale_all), 0, AT_YARN},
};
static const char *const names[] = {[UNSCALED] = "default", [LINEAR] = "linear",
                                    [LLAMA3] = "llama3", [YARN] = "yarn",
                                    [LONGROPE] = "longrope"};

static bool check(Checkpoint *c)
{
    const Rope *r = &c->config.rope;
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        double v;
        memcpy(&v, (const char *)r + parameters[i].at, sizeof v);
        bool neutral = v == 0 || (parameters[i].at == offsetof(Rope, factor) && v == 1);
        if (v == 0 && parameters[i].needed >> r->kind & 1)
            return checkpoint_fail(c, "positions of type '%s' need '%s'", names[r->kind],
                                   parameters[i].name);
        if (!neutral && !(parameters[i].taken >> r->kind & 1))
            return checkpoint_fail(c, "positions of type '%s' have no '%s', %g", names[r->kind],
                                   parameters[i].name, v);
        if (!(v >= 0 && v < 1e9))
            return checkpoint_fail(c, "'%s' of positions is %g", parameters[i].name, v);
    }
    return r->kind != LLAMA3 || r->high > r->low ||
           checkpoint_fail(c, "'high_freq_factor', %g, is not above 'low_freq_factor', %g", r->high,
                           r->low);
}

static double between(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Llama 3.1: pairs that turn more than `high` times in a text of the original length stay, those
 * that turn less than `low` times are slowed. The share that stays. */
static double share_llama3(const Config *g, int i)
{
    const Rope *r = &g->rope;
    double turns = r->original * pow(r->base, -2.0 * i / g->turned) / (2 * pi);
    return between((turns - r->low) / (r->high - r->low), 0, 1);
}

/* The pair that turns so many times in a text of the original length. */
static double pair_that_turns(const Config *g, double times)
{
    return g->turned * log(g->rope.original / (times * 2 * pi)) / (2 * log(g->rope.base));
}

/* YaRN (Peng et al. 2023): a ramp from the pair that turns `fast` times to the one of `slow`. */
static double share_yarn(const Config *g, int i)
{
    const Rope *r = &g->rope;
    double low = pair_that_turns(g, r->fast ? r->fast : 32);
    double high = pair_that_turns(g, r->slow ? r->slow : 1);
    if (r->truncate) low = floor(low), high = ceil(high);
    low = low < 0 ? 0 : low;
    high = high > g->turned - 1 ? g->turned - 1 : high;
    return 1 - between((i - low) / (high == low ? 0.001 : high - low), 0, 1);
}

static double growth(double factor, double m) { return factor > 1 ? 0.1 * m * log(factor) + 1 : 1; }

/* What YaRN multiplies queries and keys by. */
static double size_yarn(const Rope *r)
{
    if (r->attention) return r->attention;
    if (r->mscale && r->mscale_all)
        return growth(r->factor, r->mscale) / growth(r->factor, r->mscale_all);
    return growth(r->factor, 1);
}

/* LongRoPE (Ding et al. 2024): factors by a search, for texts up to the original length and for
 * longer ones. */
static bool take_long_factors(Checkpoint *c)
{
    Config *g = &c->config;
    const Rope *r = &g->rope;
    int pairs = g->turned / 2;
    if (g->far_from) return true; /* by tensors */
    if (r->kind != LONGROPE)
        return !(r->near.count || r->far.count) ||
               checkpoint_fail(c, "positions of type '%s' have no 'short_factor' and no "
                               "'long_factor'", names[r->kind]);
    if (r->near.count != pairs || r->far.count != pairs)
        return checkpoint_fail(c, "'short_factor' has %d numbers and 'long_factor' %d, not one for "
                               "each of the %d pairs of a head", r->near.count, r->far.count,
                               pairs);
    g->far_from = r->original;
    for (int i = 0; i < pairs; i++)
        g->rope_factor[i] = (float)r->near.of[i], g->far_factor[i] = (float)r->far.of[i];
    return true;
}

/* What it multiplies queries and keys by, in texts of any length. */
static double size_long(const Config *g, bool gguf)
{
    const Rope *r = &g->rope;
    double factor = r->factor ? r->factor : (double)g->context / r->original;
    if (r->attention || gguf) return r->attention ? r->attention : 1; /* GGUF says it */
    return factor > 1 ? sqrt(1 + log(factor) / log(r->original)) : 1;
}

bool positions_scale(Checkpoint *c)
{
    Config *g = &c->config;
    Rope *r = &g->rope;
    if (!r->original) r->original = g->context;
    if (g->family == GPT_OSS && !c->gguf && !r->kind)
        return checkpoint_fail(c, "'rope_scaling' is not said");
    if (!r->kind) r->kind = c->gguf && r->factor ? LINEAR : UNSCALED;
    if (c->gguf && r->kind == LINEAR && !r->factor) r->factor = 1;
    if (!check(c) || !take_long_factors(c)) return false;
    for (int i = 0; i < g->turned / 2; i++) {
        double stay = r->kind == LLAMA3 ? share_llama3(g, i) : r->kind == YARN ? share_yarn(g, i)
                      : r->kind == LINEAR ? 0 : 1;
        double slower = stay == 1 ? 1 : 1 / ((1 - stay) / r->factor + stay);
        g->rope_factor[i] = (float)(g->rope_factor[i] * slower);
    }
    double size = r->kind == YARN ? size_yarn(r) : r->kind == LONGROPE ? size_long(g, c->gguf)
                                                              : 1;
    if (!g->attention_scale) g->attention_scale = 1 / sqrt(g->head_size);
    g->rope_size = size;
    return true;
}
