#include "model.h"
#include "../shared/example.h"
#include "team.h"

/* ---- the tensors of a model ---- */

enum {
    EMBEDDING, LAST_NORM, HEAD, /* once; these of each layer: */
    NORM, QUERY, KEY, VALUE, QUERY_NORM, KEY_NORM, OUT, HIDDEN_NORM, GATE, UP, DOWN, ROLES,
    LAYERED = NORM
};

enum { ONE, WIDTH, QUERIES, KEYS, HIDDEN, TOKENS, OF_A_HEAD, EXTENTS };

enum { UNBIASED, ATTENTION, MLP };

static const struct {
    const char *name[2]; /* in safetensors, in GGUF */
    int rows, cols;      /* of EXTENTS */
    int bias;
} roles[ROLES] = {
    [EMBEDDING] = {{"model.embed_tokens", "token_embd"}, TOKENS, WIDTH, UNBIASED},
    [LAST_NORM] = {{"model.norm", "output_norm"}, ONE, WIDTH, UNBIASED},
    [HEAD] = {{"lm_head", "output"}, TOKENS, WIDTH, UNBIASED},
    [NORM] = {{"model.layers.%d.input_layernorm", "blk.%d.attn_norm"}, ONE, WIDTH, UNBIASED},
    [QUERY] = {{"model.layers.%d.self_attn.q_proj", "blk.%d.attn_q"}, QUERIES, WIDTH, ATTENTION},
    [KEY] = {{"model.layers.%d.self_attn.k_proj", "blk.%d.attn_k"}, KEYS, WIDTH, ATTENTION},
    [VALUE] = {{"model.layers.%d.self_attn.v_proj", "blk.%d.attn_v"}, KEYS, WIDTH, ATTENTION},
    [QUERY_NORM] = {{"model.layers.%d.self_attn.q_norm", "blk.%d.attn_q_norm"}, ONE, OF_A_HEAD,
                    UNBIASED},
    [KEY_NORM] = {{"model.layers.%d.self_attn.k_norm", "blk.%d.attn_k_norm"}, ONE, OF_A_HEAD,
                  UNBIASED},
    [OUT] = {{"model.layers.%d.self_attn.o_proj", "blk.%d.attn_output"}, WIDTH, QUERIES, ATTENTION},
    [HIDDEN_NORM] = {{"model.layers.%d.post_attention_layernorm", "blk.%d.ffn_norm"}, ONE, WIDTH,
                     UNBIASED},
    [GATE] = {{"model.layers.%d.mlp.gate_proj", "blk.%d.ffn_gate"}, HIDDEN, WIDTH, MLP},
    [UP] = {{"model.layers.%d.mlp.up_proj", "blk.%d.ffn_up"}, HIDDEN, WIDTH, MLP},
    [DOWN] = {{"model.layers.%d.mlp.down_proj", "blk.%d.ffn_down"}, WIDTH, HIDDEN, MLP},
};

/* What the kernels call each format. */
static const struct {
    const char *type, *decode; /* of elements; of blocks */
    tile_dtype dtype;
} kernel_format[FORMATS] = {
    [F32] = {"f32", 0, TILE_F32},
    [F16] = {"f16", 0, TILE_F16},
    [BF16] = {"bf16", 0, TILE_BF16},
    [I8] = {"i8", 0, TILE_I8},
    [Q4_0] = {0, "ggml.from_q4_0", TILE_U8},
    [Q4_1] = {0, "ggml.from_q4_1", TILE_U8},
    [Q5_0] = {0, "ggml.from_q5_0", TILE_U8},
    [Q5_1] = {0, "ggml.from_q5_1", TILE_U8},
    [Q8_0] = {0, "ggml.from_q8_0", TILE_U8},
    [Q2_K] = {0, "ggml.from_q2_k", TILE_U8},
    [Q3_K] = {0, "ggml.from_q3_k", TILE_U8},
    [Q4_K] = {0, "ggml.from_q4_k", TILE_U8},
    [Q5_K] = {0, "ggml.from_q5_k", TILE_U8},
    [Q6_K] = {0, "ggml.from_q6_k", TILE_U8},
    [IQ4_NL] = {0, "ggml.from_iq4_nl", TILE_U8},
    [IQ4_XS] = {0, "ggml.from_iq4_xs", TILE_U8},
    [MXFP4] = {0, "ggml.from_mxfp4", TILE_U8},
};

static const char *const activations[ACTIVATIONS] = {
    [SILU] = "activation.silu", [GELU] = "activation.gelu", [GELU_TANH] = "activation.gelu_tanh",
    [GELU_QUICK] = "activation.gelu_fast", [RELU] = "activation.relu",
    [RELU_SQUARED] = "activation.relu_squared",
};

/* Rows that go through a layer together: a kernel for each number. */
static const int together[] = {1, 4, 16, MOST_ROWS};
enum { FORMS = sizeof together / sizeof *together };

typedef struct Matrix {
    Format format;
    int rows, cols;
    tile_buffer *data, *scale, *bias; /* scale: of rows, for I8; bias: f32, NULL: none */
    bool add;                  /* what goes through is added to the result */
    tile_kernel *linear[FORMS]; /* NULL: not needed so far */
} Matrix;

/* Arrays of a step. */
enum {
    TOKEN, PLACE, SLOT, LENGTH, LISTS, PICK, TOP_K, NEXT, KEPT, /* of integers; of f32: */
    TEMPERATURE, TOP_P, X, H, Q_, K_, V_, PART_O, PART_LSE, ATTENDED, LSE, GATED, ACTIVE, RSTD,
    PICKED, LOGITS, COSINE, SINE, FACTOR, ARRAYS
};
enum { PARTS = 8 }; /* programs that share the keys of a sequence, at most */

typedef struct Cache {
    tile_buffer *keys, *values;
} Cache;

struct Model {
    Config config; /* heads, kv_heads and hidden: what this rank has of them */
    int tokens, length, lists, pages;
    Matrix *matrix; /* [ROLES - LAYERED] for each layer behind the first LAYERED */
    Cache *cache;
    tile_buffer *array[ARRAYS];
    Modules modules;
    tile_kernel *embed, *norm, *norm_heads, *rope, *write, *attend, *merge, *gate, *pick, *sample;
    tile_kernel *copy;
    uint64_t bytes;
};

static Matrix *matrix_of(const Model *m, int role, int layer)
{
    return &m->matrix[role < LAYERED ? role : role + layer * (ROLES - LAYERED)];
}

/* ---- loading ---- */

typedef struct Loader {
    Model *m;
    Checkpoint *c;
    char *error;
    size_t size;
    int extent[EXTENTS]; /* of the whole model */
    Part part[EXTENTS];  /* this rank's */
} Loader;

static bool load_fail(Loader *l, const char *name, const char *text)
{
    snprintf(l->error, l->size, "%s%s%s", name, *name ? ": " : "", text);
    return false;
}

static bool upload(Loader *l, const char *name, const void *data, uint64_t bytes, tile_buffer **out)
{
    return !(tile_buffer_alloc(NULL, bytes, out) ||
             tile_buffer_upload(*out, 0, data, bytes, NULL)) ||
           load_fail(l, name, tile_last_error());
}

static bool has_shape(const Tensor *t, int rows, int cols)
{
    return rows == 1 && t->rank == 1 ? t->shape[0] == cols
                                     : t->rank == 2 && t->shape[0] == rows && t->shape[1] == cols;
}

static bool shape_fail(Loader *l, const char *name, int rows, int cols)
{
    char text[120];
    snprintf(text, sizeof text, "has not the shape [%d, %d] that the sizes of the model imply",
             rows, cols);
    return load_fail(l, name, text);
}

/* The scales of an I8 tensor's rows, NAME_scale [rows, 1], in f32. */
static bool load_scale(Loader *l, const char *name, int rows, Part part, tile_buffer **out)
{
    char scale[160];
    snprintf(scale, sizeof scale, "%s_scale", name);
    const Tensor *t = checkpoint_find(l->c, scale);
    if (!t || t->format != F32 || !has_shape(t, rows, 1))
        return load_fail(l, scale, "of I8 weights there have to be scales of their rows, in F32");
    return upload(l, scale, t->data + 4 * (size_t)part.first, 4 * (uint64_t)part.count, out);
}

/* This rank's rows, or its columns of all rows, in whole blocks. */
static bool load_part(Loader *l, const Tensor *t, Part rows, Part cols, tile_buffer **out)
{
    const FormatInfo *f = &format_info[t->format];
    size_t line = (size_t)t->shape[1] / (size_t)f->elements * (size_t)f->bytes;
    size_t begin = (size_t)(cols.first / f->elements * f->bytes);
    size_t bytes = (size_t)(cols.count / f->elements * f->bytes), n = (size_t)rows.count;
    const unsigned char *from = t->data + (size_t)rows.first * line;
    if (bytes == line) return upload(l, t->name, from, n * line, out);
    if (cols.first % f->elements || cols.count % f->elements)
        return load_fail(l, t->name, "so many ranks would cut blocks of its rows");
    unsigned char *part = malloc(n * bytes + 1);
    if (!part) return load_fail(l, t->name, "no memory");
    for (size_t i = 0; i < n; i++) memcpy(part + i * bytes, from + i * line + begin, bytes);
    bool good = upload(l, t->name, part, n * bytes, out);
    return free(part), good;
}

static float float_of(Format format, const unsigned char *bytes)
{
    uint32_t half = bytes[0] | (uint32_t)bytes[1] << 8, bits = half << 16;
    float v;
    if (format == F32) return memcpy(&v, bytes, sizeof v), v;
    if (format == F16) { /* exponents 15 and 127 mean 1; 31: infinity or NaN */
        bits = (half & 0x7FFF) << 13;
        memcpy(&v, &bits, sizeof v);
        v *= 0x1p112f;
        memcpy(&bits, &v, sizeof v);
        bits |= (half & 0x8000) << 16 | ((half & 0x7C00) == 0x7C00 ? 0x7F800000 : 0);
    }
    return memcpy(&v, &bits, sizeof v), v;
}

/* A norm's weights or a bias become f32 here: they are few. */
static bool load_vector(Loader *l, const Tensor *t, int count, Part part, tile_buffer **out)
{
    if (!has_shape(t, 1, count)) return shape_fail(l, t->name, 1, count);
    if (t->format > BF16) return load_fail(l, t->name, "a norm's weights or a bias are no floats");
    float *v = malloc((size_t)part.count * sizeof *v);
    if (!v) return load_fail(l, t->name, "no memory");
    for (int i = 0; i < part.count; i++)
        v[i] = float_of(t->format, t->data + (part.first + i) * format_info[t->format].bytes);
    bool good = upload(l, t->name, v, (uint64_t)part.count * sizeof *v, out);
    return free(v), good;
}

/* Ranks that have parts of the columns have addends of the results: what is not from weights, a
 * bias and what went past the layer, is in the first rank's. */
static bool counts_once(int role)
{
    return (role != OUT && role != DOWN) || team_rank() == 0;
}

/* GGUF has a bias where there is one. transformers' settings say where biases are; the one behind
 * attention is often left out. */
static bool load_bias(Loader *l, int role, const char *stem, Matrix *w)
{
    const Config *g = &l->m->config;
    int said = roles[role].bias == ATTENTION ? g->attention_bias
               : roles[role].bias == MLP     ? g->mlp_bias : 0;
    if (roles[role].bias == UNBIASED || !(said || l->c->gguf)) return true;
    char name[140];
    snprintf(name, sizeof name, "%s.bias", stem);
    const Tensor *t = checkpoint_find(l->c, name);
    if (!t && said && role != OUT && g->family == QWEN2)
        return load_fail(l, name, "is not in the file, but 'model_type' is qwen2");
    if (!t && said && role != OUT)
        return load_fail(l, name, roles[role].bias == MLP
                                      ? "is not in the file, but 'mlp_bias' is true"
                                      : "is not in the file, but 'attention_bias' is true");
    if (!t || !counts_once(role)) return true;
    return load_vector(l, t, l->extent[roles[role].rows], l->part[roles[role].rows], &w->bias);
}

static bool same_tensor(const Tensor *a, const Tensor *b)
{
    return a->format == b->format && a->bytes == b->bytes && !memcmp(a->data, b->data, a->bytes);
}

/* Qwen 3 has norms of heads, before they are turned. */
static bool has_role(const Config *g, int role)
{
    return (role != QUERY_NORM && role != KEY_NORM) || g->family == QWEN3;
}

/* The head may be the embedding: if settings say so, or, in GGUF, if there is none. */
static bool load_tied(Loader *l, const Tensor *head, bool *tied)
{
    char name[140];
    snprintf(name, sizeof name, "%s.weight", roles[EMBEDDING].name[l->c->gguf]);
    const Tensor *e = checkpoint_find(l->c, name);
    *tied = !head && (l->m->config.tied || l->c->gguf);
    if (!head && !*tied)
        return load_fail(l, "lm_head.weight",
                         "is not in the file, but 'tie_word_embeddings' is not true");
    if (head && l->m->config.tied && !same_tensor(head, e))
        return load_fail(l, "lm_head.weight",
                         "is not the embedding, but 'tie_word_embeddings' is true");
    if (*tied) *matrix_of(l->m, HEAD, 0) = *matrix_of(l->m, EMBEDDING, 0);
    return true;
}

static bool load(Loader *l, int role, int layer)
{
    char stem[120], name[140];
    snprintf(stem, sizeof stem, roles[role].name[l->c->gguf], layer);
    snprintf(name, sizeof name, "%s.weight", stem);
    const Tensor *t = checkpoint_find(l->c, name);
    Matrix *w = matrix_of(l->m, role, layer);
    bool tied = false;
    if (role == HEAD && !load_tied(l, t, &tied)) return false;
    if (tied) return true;
    if (!t) return load_fail(l, name, "is not in the file");
    int rows = l->extent[roles[role].rows], cols = l->extent[roles[role].cols];
    Part part = l->part[roles[role].rows];
    *w = (Matrix){.format = t->format, .rows = part.count, .cols = l->part[roles[role].cols].count,
                  .add = (role == OUT || role == DOWN) && counts_once(role)};
    bool vector = roles[role].rows == ONE;
    if (!vector && !has_shape(t, rows, cols)) return shape_fail(l, name, rows, cols);
    if (!(vector ? load_vector(l, t, cols, (Part){0, cols}, &w->data)
                 : load_part(l, t, part, l->part[roles[role].cols], &w->data)))
        return false;
    if (role != EMBEDDING) l->m->bytes += tile_buffer_bytes(w->data);
    return vector ||
           ((w->format != I8 || load_scale(l, name, rows, part, &w->scale)) &&
            load_bias(l, role, stem, w));
}

/* The blocks of the second product's rows: so many columns of the hidden layer stay together. */
static int hidden_unit(Loader *l)
{
    char name[140], stem[120];
    int unit = 1;
    for (int layer = 0; layer < l->m->config.layers; layer++) {
        snprintf(stem, sizeof stem, roles[DOWN].name[l->c->gguf], layer);
        snprintf(name, sizeof name, "%s.weight", stem);
        const Tensor *t = checkpoint_find(l->c, name);
        if (t && format_info[t->format].elements > unit) unit = format_info[t->format].elements;
    }
    return l->m->config.hidden % unit ? 1 : unit;
}

/* Heads of keys, with their queries, and columns of the hidden layers go to one rank each. */
static bool divide(Loader *l)
{
    Config *g = &l->m->config;
    int group = g->heads / g->kv_heads, size = g->head_size, unit = hidden_unit(l);
    Part keys = team_part(g->kv_heads), hidden = team_part(g->hidden / unit);
    const int extent[EXTENTS] = {1, g->width, g->heads * size, g->kv_heads * size, g->hidden,
                                 l->m->tokens, size};
    memcpy(l->extent, extent, sizeof extent);
    for (int i = 0; i < EXTENTS; i++) l->part[i] = (Part){0, extent[i]};
    if (team_size() > g->kv_heads || team_size() > g->hidden / unit)
        return load_fail(l, "", "more ranks than heads of keys, or than blocks of hidden columns");
    l->part[QUERIES] = (Part){keys.first * group * size, keys.count * group * size};
    l->part[KEYS] = (Part){keys.first * size, keys.count * size};
    l->part[HIDDEN] = (Part){hidden.first * unit, hidden.count * unit};
    g->heads = keys.count * group, g->kv_heads = keys.count, g->hidden = hidden.count * unit;
    return true;
}

static bool load_matrices(Loader *l)
{
    Model *m = l->m;
    m->matrix = calloc((size_t)(LAYERED + m->config.layers * (ROLES - LAYERED)), sizeof *m->matrix);
    if (!m->matrix) return load_fail(l, "", "no memory");
    if (!divide(l)) return false;
    for (int role = 0; role < LAYERED; role++)
        if (!load(l, role, 0)) return false;
    if (matrix_of(m, HEAD, 0)->data == matrix_of(m, EMBEDDING, 0)->data)
        m->bytes += tile_buffer_bytes(matrix_of(m, HEAD, 0)->data);
    for (int layer = 0; layer < m->config.layers; layer++)
        for (int role = LAYERED; role < ROLES; role++)
            if (has_role(&m->config, role) && !load(l, role, layer)) return false;
    const char *unused = checkpoint_unused(l->c);
    return !unused || load_fail(l, unused, "is in the file, but no part of this model");
}

/* ---- kernels and memory ---- */

#define OWN KERNEL_DIR "/llm.tile"
#define LAYERS "std.kernels.layers"
#define DECODE "std.kernels.decode"

static bool get(Model *m, const char *module, const char *name, const tile_const *consts,
                tile_kernel **out)
{
    tile_module *from = module_get(&m->modules, module);
    return from && !tile_kernel_get(from, name, consts, out) && !tile_kernel_prepare(*out);
}

/* The kernel that takes `rows` rows through w. */
static tile_kernel *linear(Model *m, Matrix *w, int rows)
{
    int form = 0;
    while (together[form] < rows) form++;
    if (w->linear[form]) return w->linear[form];
    const char *decode = kernel_format[w->format].decode;
    const FormatInfo *f = &format_info[w->format];
    tile_const elements[] = {{"W", 0, kernel_format[w->format].type},
                             {"SCALED", w->format == I8, 0},
                             {"BIASED", w->bias != NULL, 0},
                             {"ADD", w->add, 0},
                             {"BB", together[form], 0},
                             {0}};
    tile_const blocks[] = {{"decode", 0, decode}, {"EACH", f->elements, 0}, {"BYTES", f->bytes, 0},
                           {"BIASED", w->bias != NULL, 0}, {"ADD", w->add, 0},
                           {"BB", together[form], 0}, {0}};
    tile_kernel *k = NULL;
    return get(m, OWN, decode ? "linear_blocks" : "linear", decode ? blocks : elements, &k)
               ? w->linear[form] = k : NULL;
}

bool model_prepare(Model *m, int rows)
{
    if (!linear(m, matrix_of(m, HEAD, 0), rows)) return false;
    for (int layer = 0; layer < m->config.layers; layer++)
        for (int role = LAYERED; role < ROLES; role++)
            if (roles[role].rows != ONE && !linear(m, matrix_of(m, role, layer), rows))
                return false;
    return true;
}

static bool get_kernels(Model *m)
{
    const Config *g = &m->config;
    const Matrix *e = matrix_of(m, EMBEDDING, 0);
    const char *decode = kernel_format[e->format].decode;
    tile_device_info device = TILE_DEVICE_INFO_INIT;
    if (tile_device_get_info(NULL, &device)) return false;
    int group = g->heads / g->kv_heads; /* rows of a product: a GPU's matrix units want 16 */
    tile_const elements[] = {
        {"W", 0, kernel_format[e->format].type}, {"SCALED", e->format == I8, 0}, {0}};
    tile_const blocks[] = {{"decode", 0, decode}, {"EACH", format_info[e->format].elements, 0},
                           {"BYTES", format_info[e->format].bytes, 0}, {0}};
    tile_const norm[] = {{"T", 0, "f32"}, {"BN", g->width, 0}, {"W", 0, "f32"}, {0}};
    tile_const norm_heads[] = {{"T", 0, "f32"}, {"BN", g->head_size, 0}, {"W", 0, "f32"}, {0}};
    tile_const rope[] = {
        {"T", 0, "f32"}, {"D", g->head_size, 0}, {"INTERLEAVED", g->interleaved, 0}, {0}};
    tile_const sized[] = {{"T", 0, "f32"}, {"D", g->head_size, 0}, {0}};
    tile_const attend[] = {{"T", 0, "f32"}, {"D", g->head_size, 0}, {"PAGE", PAGE, 0},
                           {"o.window", g->window > 0, 0},
                           {"BH", device.host_memory || group > 16 ? group : 16, 0}, {0}};
    tile_const merge[] = {{"O_", 0, "f32"}, {"D", g->head_size, 0}, {"BS", PARTS, 0}, {0}};
    tile_const gate[] = {{"T", 0, "f32"}, {"act", 0, activations[g->activation]}, {0}};
    tile_const f32[] = {{"T", 0, "f32"}, {0}};
    return get(m, OWN, decode ? "embed_blocks" : "embed", decode ? blocks : elements, &m->embed) &&
           get(m, OWN, "embed", NULL, &m->pick) && get(m, OWN, "copy", NULL, &m->copy) &&
           get(m, "std.kernels.norms", "rms_norm", norm, &m->norm) &&
           get(m, "std.kernels.norms", "rms_norm", norm_heads, &m->norm_heads) &&
           get(m, LAYERS, "rope", rope, &m->rope) && get(m, LAYERS, "gated", gate, &m->gate) &&
           get(m, DECODE, "cache_write", sized, &m->write) &&
           get(m, DECODE, "decode_paged", attend, &m->attend) &&
           get(m, DECODE, "decode_merge", merge, &m->merge) &&
           get(m, "std.kernels.sampling", "sample_top_k_top_p", f32, &m->sample);
}

static bool allocate(Model *m)
{
    const Config *g = &m->config;
    uint64_t rows = MOST_ROWS, heads = (uint64_t)g->heads, d = (uint64_t)g->head_size;
    uint64_t keys = (uint64_t)g->kv_heads * d, table = (uint64_t)m->length * d / 2;
    uint64_t hidden = (uint64_t)g->hidden, width = (uint64_t)g->width;
    /* clang-format off */
    const uint64_t count[ARRAYS] = {
        [TOKEN] = rows, [PLACE] = rows, [SLOT] = rows, [LENGTH] = rows,
        [LISTS] = rows * (uint64_t)m->lists, [PICK] = rows, [TOP_K] = rows, [NEXT] = rows,
        [KEPT] = rows, [TEMPERATURE] = rows, [TOP_P] = rows,
        [X] = rows * width, [H] = rows * width, [Q_] = rows * heads * d, [K_] = rows * keys,
        [V_] = rows * keys, [PART_O] = rows * heads * PARTS * d, [PART_LSE] = rows * heads * PARTS,
        [ATTENDED] = rows * heads * d, [LSE] = rows * heads, [GATED] = rows * 2 * hidden,
        [ACTIVE] = rows * hidden, [RSTD] = rows * heads, [PICKED] = rows * width,
        [LOGITS] = rows * (uint64_t)m->tokens, [COSINE] = table, [SINE] = table,
        [FACTOR] = MOST_PAIRS};
    /* clang-format on */
    for (int i = 0; i < ARRAYS; i++)
        if (tile_buffer_alloc(NULL, 4 * count[i], &m->array[i])) return false;
    if (!(m->cache = calloc((size_t)g->layers, sizeof *m->cache))) return false;
    uint64_t bytes = (uint64_t)m->pages * PAGE * keys * 4;
    for (int i = 0; i < g->layers; i++)
        if (tile_buffer_alloc(NULL, bytes, &m->cache[i].keys) ||
            tile_buffer_alloc(NULL, bytes, &m->cache[i].values))
            return false;
    return true;
}

/* ---- a step ---- */

static tile_arg no_rows(void) { return tile_f32_view(NULL, 0, 0); }

static bool tables(Model *m)
{
    tile_kernel *k;
    const Config *g = &m->config;
    int i = g->head_size / 2;
    tile_buffer *const *a = m->array;
    return get(m, LAYERS, "rope_tables", (tile_const[]){{"SCALED", 1, 0}, {0}}, &k) &&
           !tile_buffer_upload(a[FACTOR], 0, g->rope_factor, 4 * (uint64_t)i, NULL) &&
           LAUNCH(k, tile_f32_view(a[COSINE], m->length, i), tile_f32_view(a[SINE], m->length, i),
               tile_f32_view(a[FACTOR], i), tile_f32((float)g->rope.base));
}

/* The weights as the kernels take them, with their scales, if they have any. */
static tile_arg weights(const Matrix *w)
{
    const FormatInfo *f = &format_info[w->format];
    tile_dtype type = kernel_format[w->format].dtype;
    return f->elements == 1
               ? tile_buffer_view(w->data, type, w->rows, w->cols)
               : tile_buffer_view(w->data, type, w->rows, w->cols / f->elements, f->bytes);
}

static tile_arg scales(const Matrix *w) { return tile_f32_view(w->scale, w->scale ? w->rows : 0); }
static tile_arg bias(const Matrix *w) { return tile_f32_view(w->bias, w->bias ? w->rows : 0); }

/* y = x w^T for `rows` rows, or y += x w^T; from column `at` of the rows of y, which are `stride`
 * apart. x and y are arrays. */
static bool multiply(Model *m, Matrix *w, int rows, int x, int y, int at, int stride)
{
    const int64_t extents[] = {rows, w->rows}, strides[] = {stride, 1};
    tile_arg in = tile_f32_view(m->array[x], rows, w->cols);
    tile_arg out = tile_buffer_view_strided(m->array[y], at, TILE_F32, 2, extents, strides);
    tile_kernel *k = linear(m, w, rows);
    return k && (kernel_format[w->format].decode
                     ? LAUNCH(k, in, weights(w), bias(w), out)
                     : LAUNCH(k, in, weights(w), scales(w), bias(w), out));
}

static bool normalise_by(Model *m, tile_kernel *k, const Matrix *w, int rows, int x, int y)
{
    tile_buffer *const *a = m->array;
    return LAUNCH(k, tile_f32_view(a[x], rows, w->cols), no_rows(),
               tile_f32_view(w->data, w->cols), tile_f32_view(a[y], rows, w->cols), no_rows(),
               tile_f32_view(a[RSTD], rows), tile_f32((float)m->config.norm_eps), tile_f32(0));
}

static bool normalise(Model *m, const Matrix *w, int rows, int x, int y)
{
    return normalise_by(m, m->norm, w, rows, x, y);
}

static bool rotate(Model *m, int rows, int x, int heads)
{
    int d = m->config.head_size;
    tile_buffer *const *a = m->array;
    tile_arg v = tile_f32_view(a[x], rows, heads, d);
    return LAUNCH(m->rope, v, tile_i32_view(a[PLACE], rows),
               tile_f32_view(a[COSINE], m->length, d / 2), tile_f32_view(a[SINE], m->length, d / 2),
               v);
}

/* Queries, or keys: each head is normalised, where the model does that, and turned to its place.
 * What attention writes is free before it. */
static bool multiply_heads(Model *m, Matrix *w, const Matrix *norm, int rows, int y, int heads)
{
    bool good = multiply(m, w, rows, H, norm->data ? ATTENDED : y, 0, w->rows);
    if (good && norm->data)
        good = normalise_by(m, m->norm_heads, norm, rows * heads, ATTENDED, y);
    return good && rotate(m, rows, y, heads);
}

/* Queries of all rows against the keys of their sequences, which are in the cache, own ones too. */
static bool attend(Model *m, const Cache *cache, int rows, int parts)
{
    const Config *g = &m->config;
    int h = g->heads, hk = g->kv_heads, d = g->head_size, slots = m->pages * PAGE;
    tile_buffer *const *a = m->array;
    tile_arg part_o = tile_f32_view(a[PART_O], rows, h, parts, d);
    tile_arg part_lse = tile_f32_view(a[PART_LSE], rows, h, parts);
    tile_arg k = tile_f32_view(cache->keys, slots, hk, d);
    tile_arg v = tile_f32_view(cache->values, slots, hk, d);
    return LAUNCH(m->write, tile_f32_view(a[K_], rows, hk, d), tile_f32_view(a[V_], rows, hk, d),
               tile_i32_view(a[SLOT], rows), k, v) &&
           LAUNCH(m->attend, tile_f32_view(a[Q_], rows, h, d), k, v,
               tile_i32_view(a[LISTS], rows, m->lists), tile_i32_view(a[LENGTH], rows), part_o,
               part_lse, tile_f32((float)g->attention_scale), tile_f32(0),
               tile_i32(g->window - 1), tile_i32(0), tile_i32(0), tile_f32(0), tile_u64(0),
               tile_i32(0)) &&
           LAUNCH(m->merge, part_o, part_lse, tile_f32_view(NULL, 0),
               tile_f32_view(a[ATTENDED], rows, h, d), tile_f32_view(a[LSE], rows, h));
}

static bool run_layer(Model *m, int layer, int rows, int parts)
{
    const Config *g = &m->config;
    tile_buffer *const *a = m->array;
    int keys = g->kv_heads * g->head_size, f = g->hidden;
    size_t count = (size_t)rows * (size_t)g->width;
#define W(role) matrix_of(m, role, layer)
    return normalise(m, W(NORM), rows, X, H) &&
           multiply_heads(m, W(QUERY), W(QUERY_NORM), rows, Q_, g->heads) &&
           multiply_heads(m, W(KEY), W(KEY_NORM), rows, K_, g->kv_heads) &&
           multiply(m, W(VALUE), rows, H, V_, 0, keys) &&
           attend(m, &m->cache[layer], rows, parts) &&
           multiply(m, W(OUT), rows, ATTENDED, X, 0, g->width) && team_sum(a[X], count) &&
           normalise(m, W(HIDDEN_NORM), rows, X, H) &&
           multiply(m, W(GATE), rows, H, GATED, 0, 2 * f) &&
           multiply(m, W(UP), rows, H, GATED, f, 2 * f) &&
           LAUNCH(m->gate, tile_f32_view(a[GATED], rows, 2 * f),
                  tile_f32_view(a[ACTIVE], rows, f)) &&
           multiply(m, W(DOWN), rows, ACTIVE, X, 0, g->width) && team_sum(a[X], count);
#undef W
}

static bool put(Model *m, int array, const void *numbers, size_t count)
{
    return !tile_buffer_upload(m->array[array], 0, numbers, 4 * count, NULL);
}

/* Uploads what the kernels ask of the rows; returns how many tokens are wanted, -1: failed. */
static int put_rows(Model *m, const Row *row, int rows)
{
    int token[MOST_ROWS], place[MOST_ROWS], slot[MOST_ROWS], length[MOST_ROWS], pick[MOST_ROWS];
    int top_k[MOST_ROWS], wanted = 0;
    float temperature[MOST_ROWS], top_p[MOST_ROWS];
    for (int i = 0; i < rows; i++) {
        const Row *r = &row[i];
        token[i] = r->token, place[i] = r->place, length[i] = r->place + 1;
        slot[i] = r->pages[r->place / PAGE] * PAGE + r->place % PAGE;
        if (tile_buffer_upload(m->array[LISTS], (uint64_t)i * (uint64_t)m->lists * 4, r->pages,
                               (uint64_t)m->lists * 4, NULL))
            return -1;
        if (!r->wanted) continue;
        pick[wanted] = i, temperature[wanted] = r->temperature;
        top_k[wanted] = r->top_k, top_p[wanted++] = r->top_p;
    }
    size_t n = (size_t)rows, w = (size_t)wanted;
    bool good = put(m, TOKEN, token, n) && put(m, PLACE, place, n) && put(m, SLOT, slot, n) &&
                put(m, LENGTH, length, n) && put(m, PICK, pick, w) &&
                put(m, TEMPERATURE, temperature, w) && put(m, TOP_K, top_k, w) &&
                put(m, TOP_P, top_p, w);
    return good ? wanted : -1;
}

static bool run_head(Model *m, Row *row, int rows, int wanted, uint64_t seed)
{
    int width = m->config.width, next[MOST_ROWS];
    tile_buffer *const *a = m->array;
    if (!(LAUNCH(m->pick, tile_f32_view(a[X], rows, width), tile_f32_view(NULL, 0),
              tile_i32_view(a[PICK], wanted), tile_f32_view(a[PICKED], wanted, width)) &&
          normalise(m, matrix_of(m, LAST_NORM, 0), wanted, PICKED, H) &&
          multiply(m, matrix_of(m, HEAD, 0), wanted, H, LOGITS, 0, m->tokens) &&
          LAUNCH(m->sample, tile_f32_view(a[LOGITS], wanted, m->tokens),
              tile_f32_view(a[TEMPERATURE], wanted), tile_i32_view(a[TOP_K], wanted),
              tile_f32_view(a[TOP_P], wanted), tile_i32_view(a[NEXT], wanted),
              tile_i32_view(a[KEPT], wanted), tile_u64(seed)) &&
          team_agree(a[NEXT], (size_t)wanted) &&
          !tile_buffer_download(m->array[NEXT], 0, next, (size_t)wanted * 4, NULL)))
        return false;
    for (int i = 0, j = 0; i < rows; i++)
        if (row[i].wanted) row[i].next = next[j++];
    return true;
}

bool model_step(Model *m, Row *row, int rows, uint64_t seed)
{
    const Matrix *e = matrix_of(m, EMBEDDING, 0);
    int wanted = put_rows(m, row, rows), longest = 0;
    for (int i = 0; i < rows; i++) longest = row[i].place > longest ? row[i].place : longest;
    int parts = longest / 64 + 1 < PARTS ? longest / 64 + 1 : PARTS;
    tile_arg token = tile_i32_view(m->array[TOKEN], rows),
             x = tile_f32_view(m->array[X], rows, m->config.width);
    if (wanted < 0 || !(kernel_format[e->format].decode
                            ? LAUNCH(m->embed, weights(e), token, x)
                            : LAUNCH(m->embed, weights(e), scales(e), token, x)))
        return false;
    for (int layer = 0; layer < m->config.layers; layer++)
        if (!run_layer(m, layer, rows, parts)) return false;
    return (wanted == 0 || run_head(m, row, rows, wanted, seed)) && !tile_stream_synchronize(NULL);
}

bool model_logits(const Model *m, float *logits, int rows)
{
    return !tile_buffer_download(m->array[LOGITS], 0, logits,
                                 (uint64_t)rows * (uint64_t)m->tokens * 4, NULL);
}

/* ---- the rest ---- */

Model *model_new(Checkpoint *c, int length, int pages, char *error, size_t size)
{
    Model *m = calloc(1, sizeof *m);
    Loader l = {.m = m, .c = c, .error = error, .size = size};
    if (!m) return load_fail(&l, "", "no memory"), NULL;
    m->config = c->config;
    m->tokens = c->config.vocabulary;
    m->length = length;
    m->lists = (length + PAGE - 1) / PAGE;
    m->pages = pages;
    if (!load_matrices(&l)) return model_free(m), NULL;
    if (get_kernels(m) && allocate(m) && tables(m)) return m;
    return load_fail(&l, "", tile_last_error()), model_free(m), NULL;
}

void model_free(Model *m)
{
    if (!m) return;
    int matrices = m->matrix ? LAYERED + m->config.layers * (ROLES - LAYERED) : 0;
    for (int i = 0; i < matrices; i++) {
        if (i == HEAD && m->matrix[HEAD].data == m->matrix[EMBEDDING].data) continue;
        tile_buffer_free(m->matrix[i].data), tile_buffer_free(m->matrix[i].scale);
        tile_buffer_free(m->matrix[i].bias);
    }
    for (int i = 0; m->cache && i < m->config.layers; i++)
        tile_buffer_free(m->cache[i].keys), tile_buffer_free(m->cache[i].values);
    for (int i = 0; i < ARRAYS; i++) tile_buffer_free(m->array[i]);
    modules_free(&m->modules), free(m->matrix), free(m->cache), free(m);
}

int model_pages(const Model *m)
{
    return m->lists;
}

int model_tokens(const Model *m)
{
    return m->tokens;
}

uint64_t model_bytes(const Model *m)
{
    return m->bytes;
}

double model_copy_speed(const Model *m)
{
    enum { COUNT = 1 << 24 };
    tile_buffer *a = NULL, *b = NULL;
    double best = 0;
    bool good =
        !(tile_buffer_alloc(NULL, 4 * COUNT, &a) || tile_buffer_alloc(NULL, 4 * COUNT, &b) ||
          tile_buffer_fill(a, 0, 1, 4 * COUNT, NULL));
    for (int i = 0; good && i < 5; i++) {
        double start = now();
        good = LAUNCH(m->copy, tile_f32_view(a, COUNT), tile_f32_view(b, COUNT)) &&
               !tile_stream_synchronize(NULL);
        best = fmax(best, 8.0 * COUNT / (now() - start));
    }
    tile_buffer_free(a), tile_buffer_free(b);
    return good ? best : 0;
}
