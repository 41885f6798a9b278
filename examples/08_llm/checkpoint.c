/* Settings and tensors, whatever file they come from. */
#include "settings.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const FormatInfo format_info[FORMATS] = {
    [F32] = {"F32", 0, 1, 4},        [F16] = {"F16", 1, 1, 2},       [BF16] = {"BF16", 30, 1, 2},
    [I8] = {"I8", -1, 1, 1},         [RAW] = {"U8", -1, 1, 1},
    [Q4_0] = {"Q4_0", 2, 32, 18},    [Q4_1] = {"Q4_1", 3, 32, 20},
    [Q5_0] = {"Q5_0", 6, 32, 22},    [Q5_1] = {"Q5_1", 7, 32, 24},   [Q8_0] = {"Q8_0", 8, 32, 34},
    [Q2_K] = {"Q2_K", 10, 256, 84},  [Q3_K] = {"Q3_K", 11, 256, 110},
    [Q4_K] = {"Q4_K", 12, 256, 144}, [Q5_K] = {"Q5_K", 13, 256, 176},
    [Q6_K] = {"Q6_K", 14, 256, 210}, [IQ4_NL] = {"IQ4_NL", 20, 32, 18},
    [IQ4_XS] = {"IQ4_XS", 23, 256, 136}, [MXFP4] = {"MXFP4", 39, 32, 17},
};

bool checkpoint_fail(Checkpoint *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = snprintf(c->error, sizeof c->error, "%.200s: ", c->reading);
    vsnprintf(c->error + n, sizeof c->error - (size_t)n, format, list);
    va_end(list);
    return false;
}

bool read_file(Checkpoint *c, const char *path, char **out_bytes, size_t *out_size)
{
    c->reading = path;
    errno = EIO;
    FILE *f = fopen(path, "rb");
    long size = -1;
    char *bytes = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0 && size < INT64_MAX - 1 &&
        fseek(f, 0, SEEK_SET) == 0)
        bytes = malloc((size_t)size + 1);
    bool read = bytes && fread(bytes, 1, (size_t)size, f) == (size_t)size;
    int why = errno;
    if (f) fclose(f);
    if (!read) return free(bytes), checkpoint_fail(c, "%s", strerror(why));
    bytes[size] = 0;
    *out_bytes = bytes;
    *out_size = (size_t)size;
    return true;
}

bool keep_file(Checkpoint *c, const char *path, char **out_bytes, size_t *out_size)
{
    char **file = realloc(c->file, (c->files + 1) * sizeof *file);
    if (!file) return c->reading = path, checkpoint_fail(c, "no memory");
    c->file = file;
    if (!read_file(c, path, out_bytes, out_size)) return false;
    c->file[c->files++] = *out_bytes;
    return true;
}

char *keep_bytes(Checkpoint *c, size_t size)
{
    char **file = realloc(c->file, (c->files + 1) * sizeof *file);
    if (file) c->file = file;
    char *bytes = file ? malloc(size + 1) : NULL;
    if (!bytes) return checkpoint_fail(c, "no memory"), NULL;
    return c->file[c->files++] = bytes;
}

Tensor *more_tensors(Checkpoint *c, size_t count)
{
    size_t room = c->ntensors + count;
    Tensor *t = room < SIZE_MAX / sizeof *t ? realloc(c->tensor, (room + 1) * sizeof *t) : NULL;
    if (!t) return checkpoint_fail(c, "no memory"), NULL;
    c->tensor = t;
    return t + c->ntensors;
}

bool tensor_bytes(const Tensor *t, uint64_t *out_bytes)
{
    const FormatInfo *f = &format_info[t->format];
    uint64_t blocks = 1;
    if (t->rank && t->shape[t->rank - 1] % f->elements) return false;
    for (int i = 0; i < t->rank; i++) {
        uint64_t n = (uint64_t)t->shape[i] / (i == t->rank - 1 ? (uint64_t)f->elements : 1);
        if (t->shape[i] < 0 || (n && blocks > INT64_MAX / n)) return false;
        blocks *= n;
    }
    if (blocks > INT64_MAX / 64) return false;
    *out_bytes = blocks * (uint64_t)f->bytes;
    return true;
}

const Tensor *checkpoint_find(Checkpoint *c, const char *name)
{
    for (size_t i = 0; i < c->ntensors; i++)
        if (!strcmp(c->tensor[i].name, name)) return c->tensor[i].used = true, &c->tensor[i];
    return NULL;
}

const char *checkpoint_unused(const Checkpoint *c)
{
    for (size_t i = 0; i < c->ntensors; i++) {
        const char *name = c->tensor[i].name, *end = strrchr(name, '.');
        bool angles = end && (!strcmp(end, ".inv_freq") || strstr(name, ".attn_rot_embd."));
        if (!c->tensor[i].used && !angles) return name; /* angles follow from the settings */
    }
    return NULL;
}

bool checkpoint_ends(const Checkpoint *c, int token)
{
    for (int i = 0; i < c->config.ends; i++)
        if (c->config.end[i] == token) return true;
    return false;
}

/* What the kernels take. */
static bool check_sizes(Checkpoint *c)
{
    const Config *g = &c->config;
    const struct {
        const char *name[2]; /* in config.json, in GGUF behind the family's name */
        int value, most;
    } rows[] = {
        {{"num_hidden_layers", "block_count"}, g->layers, MOST_LAYERS},
        {{"hidden_size", "embedding_length"}, g->width, 1 << 16},
        {{"intermediate_size", "feed_forward_length"}, g->hidden, 1 << 20},
        {{"num_attention_heads", "attention.head_count"}, g->heads, 1024},
        {{"num_key_value_heads", "attention.head_count_kv"}, g->kv_heads, 1024},
        {{"head_dim", "attention.key_length"}, g->head_size, 2 * MOST_PAIRS},
        {{"max_position_embeddings", "context_length"}, g->context, 1 << 28},
        {{"vocab_size", "vocab_size"}, g->vocabulary, 1 << 24}};
    const char *family = c->gguf ? architecture[g->family].name[1] : "", *dot = c->gguf ? "." : "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < 1 || rows[i].value > rows[i].most)
            return checkpoint_fail(c, "'%s%s%s' is %d, or missing; it has to be from 1 to %d",
                                   family, dot, rows[i].name[c->gguf], rows[i].value,
                                   rows[i].most);
    if (g->vocabulary < words_count(c->words))
        return checkpoint_fail(c, "'%s%svocab_size' is %d, but there are %d tokens", family, dot,
                               g->vocabulary, words_count(c->words));
    return true;
}

static bool check_config(Checkpoint *c)
{
    const Config *g = &c->config;
    if (!check_sizes(c)) return false;
    if (g->heads % g->kv_heads)
        return checkpoint_fail(c, "%d heads share %d heads of keys", g->heads, g->kv_heads);
    if (g->head_size % 2) return checkpoint_fail(c, "the head size %d is odd", g->head_size);
    if (g->turned < 2 || g->turned % 2 || g->turned > g->head_size)
        return checkpoint_fail(c, "%d elements of a head's %d turn: they have to be pairs",
                               g->turned, g->head_size);
    if (!(g->rope.base > 0) || !(g->norm_eps >= 0) || !(g->attention_scale >= 0))
        return checkpoint_fail(c, "the base %g of positions, the epsilon %g of norms or the scale "
                               "%g of attention is out of range", g->rope.base, g->norm_eps,
                               g->attention_scale);
    for (int i = 0; i < g->ends; i++)
        if (g->end[i] >= g->vocabulary)
            return checkpoint_fail(c, "the token %d that ends a text is not in the vocabulary",
                                   g->end[i]);
    if (!(g->query_scalar >= 0) || !(g->attention_cap >= 0) || !(g->logit_cap >= 0) ||
        !(g->local_base >= 0))
        return checkpoint_fail(c, "the scalar %g of queries, the cap %g of scores or %g of logits, "
                               "or the base %g of near positions is out of range", g->query_scalar,
                               g->attention_cap, g->logit_cap, g->local_base);
    if (g->features & EXPERTS && (g->experts < 1 || g->experts > MOST_EXPERTS ||
                                  g->experts_used < 1 || g->experts_used > g->experts))
        return checkpoint_fail(c, "%d experts, of which a token goes through %d: it has to be one "
                               "or more of up to %d", g->experts, g->experts_used, MOST_EXPERTS);
    if (g->sees.count && g->sees.count != g->layers)
        return checkpoint_fail(c, "'layer_types' has %d layers of %d", g->sees.count, g->layers);
    for (int i = 0; i < g->layers; i++)
        if (g->sees.kind[i] == A_WINDOW && !g->window)
            return checkpoint_fail(c, "layers see a window, but 'sliding_window' is not said");
    return true;
}

/* Which layers see a window only: as is said of all, of each, or as the family has it. */
static void complete_sights(Config *g)
{
    for (int i = g->sees.count; i < g->layers && i < MOST_LAYERS; i++) {
        bool all = g->pattern && (i + 1) % g->pattern == 0;
        g->sees.kind[i] = g->sight ? (unsigned char)g->sight
                          : g->window && !all ? A_WINDOW : EVERYTHING;
    }
}

/* What scales the scores of queries and keys. llama.cpp knows the largest models by their layers,
 * whose scale is not that of their heads. */
static double scale_of_scores(const Config *g, bool gguf)
{
    const Architecture *a = &architecture[g->family];
    if (!gguf && g->query_scalar > 0) return 1 / sqrt(g->query_scalar);
    if (gguf && a->wide_layers && g->layers == a->wide_layers && g->heads > 0)
        return 1 / sqrt((double)g->width / g->heads);
    return 0;
}

/* What follows from other settings, or from the family, where nothing is said. */
static void complete(Config *g, const Words *words, bool gguf)
{
    const Architecture *a = &architecture[g->family];
    if (!g->kv_heads) g->kv_heads = g->heads;
    if (!g->head_size) g->head_size = a->head_size;
    if (!g->head_size && g->heads > 0) g->head_size = g->width / g->heads;
    if (!g->turned && g->turned_share >= 0 && g->turned_share <= 1)
        g->turned = g->turned_share > 0 ? (int)(g->head_size * g->turned_share) : g->head_size;
    if (!g->vocabulary) g->vocabulary = words_count(words);
    if (g->window < 0) g->window = a->window[gguf];
    if (a->features & UNUSED_WINDOW || g->sight == EVERYTHING) g->window = 0;
    if (a->features & (QKV_BIASES | ALL_BIASES)) g->attention_bias = 1;
    if (a->features & ALL_BIASES) g->mlp_bias = 1;
    if (!(g->gate_limit > 0)) g->gate_limit = 7;
    if (!(g->gate_slope > 0)) g->gate_slope = 1.702;
    if (!g->pattern) g->pattern = a->pattern;
    if (!g->activation) g->activation = a->activation;
    if (g->tied < 0) g->tied = a->tied && !gguf;
    if (!(g->rope.base > 0)) g->rope.base = a->base[gguf];
    if (!(g->local_base > 0)) g->local_base = a->local_base;
    if (!(g->query_scalar > 0)) g->query_scalar = a->query_scalar;
    if (g->attention_cap == -1) g->attention_cap = a->attention_cap;
    if (g->logit_cap == -1) g->logit_cap = a->logit_cap;
    if (!g->attention_scale) g->attention_scale = scale_of_scores(g, gguf);
    g->features = a->features | (g->experts > 0 ? EXPERTS : 0);
    if (g->features & EXPERTS && g->expert_hidden) g->hidden = g->expert_hidden;
    if (g->whole_share < 0) g->whole_share = a->whole_share[gguf];
    complete_sights(g);
}

/* What slows the turning of each pair of a head, if the file says it. */
static bool read_factor(Checkpoint *c, const char *name, float *factor)
{
    const Tensor *t = checkpoint_find(c, name);
    if (!t) return true;
    bool good = t->format == F32 && t->rank == 1 && t->shape[0] == c->config.turned / 2;
    if (good) memcpy(factor, t->data, t->bytes);
    for (int64_t i = 0; good && i < t->shape[0]; i++) good = factor[i] > 0;
    return good || checkpoint_fail(c, "%s is not F32, a positive number for each pair of a head",
                                   name);
}

/* As GGUF has it of Llama 3.1, and of Phi-3 for long texts. */
static bool read_factors(Checkpoint *c)
{
    Config *g = &c->config;
    bool far = architecture[g->family].features & LONG_FACTORS &&
               checkpoint_find(c, "rope_factors_long.weight");
    if (!far) return read_factor(c, "rope_freqs.weight", g->rope_factor);
    g->far_from = g->rope.original ? g->rope.original : g->context;
    g->rope.kind = LONGROPE;
    return read_factor(c, "rope_factors_long.weight", g->far_factor) &&
           (checkpoint_find(c, "rope_factors_short.weight") ||
            checkpoint_fail(c, "rope_factors_short.weight is not in the file")) &&
           read_factor(c, "rope_factors_short.weight", g->rope_factor);
}

bool checkpoint_open(Checkpoint *c, const char *path)
{
    size_t n = strlen(path);
    *c = (Checkpoint){.config = {.window = -1, .begin = -1, .last = -1, .add_begin = -1,
                                 .add_space = -1,
                                 .tied = -1, .whole_share = -1, .attention_cap = -1,
                                 .logit_cap = -1,
                                 .context = 2048, .rope = {.truncate = 1}},
                      .reading = path};
    for (int i = 0; i < MOST_PAIRS; i++) c->config.rope_factor[i] = 1;
    c->gguf = n > 5 && !strcmp(path + n - 5, ".gguf");
    if (!(c->gguf ? read_gguf(c, path) : read_folder(c, path))) return false;
    c->reading = path;
    complete(&c->config, c->words, c->gguf);
    return check_config(c) && (!c->gguf || read_factors(c)) && positions_scale(c);
}

void checkpoint_close(Checkpoint *c)
{
    for (size_t i = 0; i < c->ntensors; i++) free(c->tensor[i].name);
    for (size_t i = 0; i < c->files; i++) free(c->file[i]);
    words_free(c->words);
    free(c->tensor), free(c->file), free(c->chat);
    memset(c, 0, sizeof *c);
}
