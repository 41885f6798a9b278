#include "model.h"
#include "../shared/example.h"
#include "team.h"
#include "weights.h"

/* ---- what kernels are called ---- */

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
static const int together[FORMS] = {1, 4, 16, MOST_ROWS};

/* Arrays of a step. */
enum {
    TOKEN, PLACE, SLOT, LENGTH, LISTS, PICK, TOP_K, NEXT, KEPT,
    EXPERT, ORDER, BLOCK, /* of integers; of f32: */
    TEMPERATURE, TOP_P, X, H, Q_, K_, V_, PART_O, PART_LSE, ATTENDED, LSE, GATED, ACTIVE, RSTD,
    PICKED, LOGITS, ROUTE, SHARE, SPREAD, BRANCH, FACTOR, COSINE, SINE, LOCAL_COSINE, LOCAL_SINE,
    ARRAYS
};
enum { PARTS = 8 }; /* programs that share the keys of a sequence, at most */

typedef struct Cache {
    tile_buffer *keys, *values;
} Cache;

struct Model {
    Weights weights;
    Config config; /* that of the weights */
    int tokens, length, lists, pages;
    Cache *cache;
    tile_buffer *array[ARRAYS];
    Modules modules;
    tile_kernel *embed, *norm, *norm_heads, *norm_add, *rope, *write, *attend[2], *merge, *gate;
    tile_kernel *route, *align[FORMS], *sum_experts; /* where there are experts */
    tile_kernel *pick, *cap, *sample, *copy; /* attend: all keys; those of a window */
};

static Matrix *matrix_of(const Model *m, Role role, int layer)
{
    return weights_of(&m->weights, role, layer);
}

static bool has_window(const Model *m, int layer) { return m->config.sees.kind[layer] == A_WINDOW; }

static bool has_feature(const Model *m, Feature f)
{
    return m->config.features & f;
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

/* The form of kernels for so many rows; of experts, for as many as one of them has of these on
 * average. */
static int form_of(const Model *m, int experts, int rows)
{
    int form = 0, each = experts ? rows * m->config.experts_used / experts : rows;
    while (together[form] < each && form < (experts ? FORMS - 2 : FORMS - 1)) form++;
    return form;
}

static bool get_align(Model *m, int form)
{
    int most = 1, experts = m->config.experts;
    while (most < experts) most *= 2;
    const tile_const consts[] = {{"BM", together[form], 0}, {"BE", most, 0}, {0}};
    return m->align[form] || get(m, "std.kernels.moe", "moe_align", consts, &m->align[form]);
}

/* The kernel that takes rows of that form through the experts' w, which all have a row each if it
 * is the last one. */
static tile_kernel *expert_linear(Model *m, Matrix *w, bool last, int form)
{
    if (w->linear[form]) return w->linear[form];
    const char *decode = kernel_format[w->format].decode;
    const FormatInfo *f = &format_info[w->format];
    int div = last ? 1 : m->config.experts_used;
    tile_const elements[] = {{"W", 0, kernel_format[w->format].type},
                             {"SCALED", w->format == I8, 0},
                             {"BIASED", w->bias != NULL, 0},
                             {"WEIGHTED", last, 0},
                             {"DIV", div, 0},
                             {"BB", together[form], 0},
                             {0}};
    tile_const blocks[] = {{"decode", 0, decode}, {"EACH", f->elements, 0}, {"BYTES", f->bytes, 0},
                           {"BIASED", w->bias != NULL, 0}, {"WEIGHTED", last, 0}, {"DIV", div, 0},
                           {"BB", together[form], 0}, {0}};
    tile_kernel *k = NULL;
    return get_align(m, form) && get(m, OWN, decode ? "experts_blocks" : "experts",
                                     decode ? blocks : elements, &k)
               ? w->linear[form] = k : NULL;
}

/* The kernel that takes `rows` rows through w. */
static tile_kernel *linear(Model *m, Matrix *w, int rows)
{
    int form = form_of(m, 0, rows);
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

static bool prepare_matrix(Model *m, Matrix *w, bool last, int rows)
{
    return w->experts ? expert_linear(m, w, last, form_of(m, w->experts, rows)) != NULL
                      : linear(m, w, rows) != NULL;
}

bool model_prepare(Model *m, int rows)
{
    if (!linear(m, matrix_of(m, HEAD, 0), rows)) return false;
    for (int layer = 0; layer < m->config.layers; layer++)
        for (Role role = LAYERED; role < ROLES; role++)
            if (!role_is_vector(role) && weights_have(&m->weights, role) &&
                !prepare_matrix(m, matrix_of(m, role, layer), role == DOWN, rows))
                return false;
    return true;
}

/* Attention to all keys, or those of a window: what layers of the model have. */
static bool get_attend(Model *m, int window)
{
    const Config *g = &m->config;
    bool used = false;
    tile_device_info device = TILE_DEVICE_INFO_INIT;
    for (int layer = 0; layer < g->layers; layer++) used = used || has_window(m, layer) == window;
    if (!used) return true;
    if (tile_device_get_info(NULL, &device)) return false;
    int group = g->heads / g->kv_heads; /* rows of a product: a GPU's matrix units want 16 */
    tile_const attend[] = {{"T", 0, "f32"}, {"D", g->head_size, 0}, {"PAGE", PAGE, 0},
                           {"o.window", window, 0},
                           {"o.softcap", g->attention_cap > 0, 0},
                           {"BH", device.host_memory || group > 16 ? group : 16, 0}, {0}};
    return get(m, DECODE, "decode_paged", attend, &m->attend[window]);
}

/* What chooses experts, and adds up what they give. */
static bool get_experts(Model *m)
{
    const Config *g = &m->config;
    int most = 1;
    while (most < g->experts) most *= 2;
    const tile_const route[] = {
        {"TOPK", g->experts_used, 0}, {"NORMALISE", g->whole_share, 0}, {"BE", most, 0}, {0}};
    const tile_const sum[] = {{"ADD", matrix_of(m, DOWN, 0)->add, 0}, {0}};
    return !has_feature(m, EXPERTS) ||
           (get(m, "std.kernels.moe", "moe_route", route, &m->route) &&
            get(m, OWN, "sum_experts", sum, &m->sum_experts));
}

static bool get_kernels(Model *m)
{
    const Config *g = &m->config;
    const Matrix *e = matrix_of(m, EMBEDDING, 0);
    const char *decode = kernel_format[e->format].decode;
    tile_const elements[] = {
        {"W", 0, kernel_format[e->format].type}, {"SCALED", e->format == I8, 0}, {0}};
    tile_const blocks[] = {{"decode", 0, decode}, {"EACH", format_info[e->format].elements, 0},
                           {"BYTES", format_info[e->format].bytes, 0}, {0}};
    tile_const norm[] = {{"T", 0, "f32"}, {"BN", g->width, 0}, {"W", 0, "f32"}, {0}};
    tile_const row[] = {{"BN", g->width, 0}, {0}};
    tile_const norm_heads[] = {{"T", 0, "f32"}, {"BN", g->head_size, 0}, {"W", 0, "f32"}, {0}};
    tile_const rope[] = {
        {"T", 0, "f32"}, {"D", g->head_size, 0}, {"I", g->turned / 2, 0},
        {"INTERLEAVED", g->interleaved, 0}, {0}};
    tile_const sized[] = {{"T", 0, "f32"}, {"D", g->head_size, 0}, {0}};
    tile_const merge[] = {{"O_", 0, "f32"}, {"D", g->head_size, 0},
                          {"SINKS", has_feature(m, HEAD_SINKS), 0}, {"BS", PARTS, 0}, {0}};
    tile_const gate[] = {{"T", 0, "f32"}, {"act", 0, activations[g->activation]}, {0}};
    tile_const f32[] = {{"T", 0, "f32"}, {0}};
    return get(m, OWN, decode ? "embed_blocks" : "embed", decode ? blocks : elements, &m->embed) &&
           get(m, OWN, "embed", NULL, &m->pick) && get(m, OWN, "copy", NULL, &m->copy) &&
           get(m, "std.kernels.norms", "rms_norm", norm, &m->norm) &&
           get(m, "std.kernels.norms", "rms_norm", norm_heads, &m->norm_heads) &&
           (!has_feature(m, NORMS_AFTER) || get(m, OWN, "norm_add", row, &m->norm_add)) &&
           (!g->logit_cap || get(m, OWN, "cap", NULL, &m->cap)) &&
           get(m, LAYERS, "rope", rope, &m->rope) &&
           (has_feature(m, CLAMPED) ? get(m, OWN, "gated_clamped", NULL, &m->gate)
                                    : get(m, LAYERS, "gated", gate, &m->gate)) &&
           get(m, DECODE, "cache_write", sized, &m->write) &&
           get_attend(m, 0) && get_attend(m, 1) && get_experts(m) &&
           get(m, DECODE, "decode_merge", merge, &m->merge) &&
           get(m, "std.kernels.sampling", "sample_top_k_top_p", f32, &m->sample);
}

static bool allocate(Model *m)
{
    const Config *g = &m->config;
    uint64_t rows = MOST_ROWS, heads = (uint64_t)g->heads, d = (uint64_t)g->head_size;
    uint64_t keys = (uint64_t)g->kv_heads * d, table = (uint64_t)m->length * d / 2;
    uint64_t local = g->local_base > 0 ? table : 0;
    uint64_t pairs = rows * (uint64_t)(g->experts ? g->experts_used : 1);
    uint64_t experts = (uint64_t)g->experts, spread = experts ? pairs * (uint64_t)g->width : 0;
    uint64_t order = experts ? pairs + experts * (MOST_ROWS - 1) + MOST_ROWS : 0;
    uint64_t branch = has_feature(m, NORMS_AFTER) ? rows * (uint64_t)g->width : 0;
    uint64_t hidden = (uint64_t)g->hidden, width = (uint64_t)g->width;
    /* clang-format off */
    const uint64_t count[ARRAYS] = {
        [TOKEN] = rows, [PLACE] = rows, [SLOT] = rows, [LENGTH] = rows,
        [LISTS] = rows * (uint64_t)m->lists, [PICK] = rows, [TOP_K] = rows, [NEXT] = rows,
        [KEPT] = rows, [TEMPERATURE] = rows, [TOP_P] = rows,
        [X] = rows * width, [H] = rows * width, [Q_] = rows * heads * d, [K_] = rows * keys,
        [V_] = rows * keys, [PART_O] = rows * heads * PARTS * d, [PART_LSE] = rows * heads * PARTS,
        [ATTENDED] = rows * heads * d, [LSE] = rows * heads, [GATED] = pairs * 2 * hidden,
        [ACTIVE] = pairs * hidden, [RSTD] = rows * heads, [PICKED] = rows * width,
        [LOGITS] = rows * (uint64_t)m->tokens, [ROUTE] = rows * experts,
        [EXPERT] = pairs, [SHARE] = pairs, [ORDER] = order, [BLOCK] = order, [SPREAD] = spread,
        [BRANCH] = branch, [FACTOR] = MOST_PAIRS,
        [COSINE] = table, [SINE] = table, [LOCAL_COSINE] = local, [LOCAL_SINE] = local};
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

static bool fill_tables(Model *m, int cosine, int sine, const float *factor, double base,
                        double size)
{
    tile_kernel *k, *scale;
    int i = m->config.turned / 2;
    tile_buffer *const *a = m->array;
    return get(m, LAYERS, "rope_tables", (tile_const[]){{"SCALED", 1, 0}, {0}}, &k) &&
           !tile_buffer_upload(a[FACTOR], 0, factor, 4 * (uint64_t)i, NULL) &&
           LAUNCH(k, tile_f32_view(a[cosine], m->length, i), tile_f32_view(a[sine], m->length, i),
                  tile_f32_view(a[FACTOR], i), tile_f32((float)base)) &&
           (size == 1 ||
            (get(m, OWN, "scale", NULL, &scale) &&
             LAUNCH(scale, tile_f32_view(a[cosine], m->length * i), tile_f32((float)size)) &&
             LAUNCH(scale, tile_f32_view(a[sine], m->length * i), tile_f32((float)size)))) &&
           !tile_stream_synchronize(NULL);
}

/* Layers with a window may turn by another base, and never more slowly in longer texts. Where there
 * are factors for long texts, all are taken as long if any may become so. */
static bool tables(Model *m)
{
    const Config *g = &m->config;
    float ones[MOST_PAIRS];
    bool far = g->far_from && m->length > g->far_from;
    for (int i = 0; i < MOST_PAIRS; i++) ones[i] = 1;
    return fill_tables(m, COSINE, SINE, far ? g->far_factor : g->rope_factor, g->rope.base,
                       g->rope_size) &&
           (!(g->local_base > 0) ||
            fill_tables(m, LOCAL_COSINE, LOCAL_SINE, ones, g->local_base, 1));
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

static bool rotate(Model *m, int layer, int rows, int x, int heads)
{
    int d = m->config.head_size, pairs = m->config.turned / 2;
    bool local = m->config.local_base > 0 && has_window(m, layer);
    int cosine = local ? LOCAL_COSINE : COSINE, sine = local ? LOCAL_SINE : SINE;
    tile_buffer *const *a = m->array;
    tile_arg v = tile_f32_view(a[x], rows, heads, d);
    return LAUNCH(m->rope, v, tile_i32_view(a[PLACE], rows),
               tile_f32_view(a[cosine], m->length, pairs), tile_f32_view(a[sine], m->length, pairs),
               v);
}

/* Queries, or keys: each head is normalised, where the model does that, and turned to its place.
 * What attention writes is free before it. */
static bool multiply_heads(Model *m, int layer, Role role, Role role_norm, int rows, int y,
                           int heads)
{
    Matrix *w = matrix_of(m, role, layer), *norm = matrix_of(m, role_norm, layer);
    bool good = multiply(m, w, rows, H, norm->data ? ATTENDED : y, 0, w->rows);
    if (good && norm->data)
        good = normalise_by(m, m->norm_heads, norm, rows * heads, ATTENDED, y);
    return good && rotate(m, layer, rows, y, heads);
}

/* Queries of all rows against the keys of their sequences, which are in the cache, own ones too. */
static bool attend(Model *m, int layer, int rows, int parts)
{
    const Cache *cache = &m->cache[layer];
    const Config *g = &m->config;
    int h = g->heads, hk = g->kv_heads, d = g->head_size, slots = m->pages * PAGE;
    const Matrix *sinks = matrix_of(m, SINKS, layer);
    tile_buffer *const *a = m->array;
    tile_arg part_o = tile_f32_view(a[PART_O], rows, h, parts, d);
    tile_arg part_lse = tile_f32_view(a[PART_LSE], rows, h, parts);
    tile_arg k = tile_f32_view(cache->keys, slots, hk, d);
    tile_arg v = tile_f32_view(cache->values, slots, hk, d);
    return LAUNCH(m->write, tile_f32_view(a[K_], rows, hk, d), tile_f32_view(a[V_], rows, hk, d),
               tile_i32_view(a[SLOT], rows), k, v) &&
           LAUNCH(m->attend[has_window(m, layer)], tile_f32_view(a[Q_], rows, h, d), k, v,
               tile_i32_view(a[LISTS], rows, m->lists), tile_i32_view(a[LENGTH], rows), part_o,
               part_lse, tile_f32((float)g->attention_scale), tile_f32((float)g->attention_cap),
               tile_i32(g->window - 1), tile_i32(0), tile_i32(0), tile_f32(0), tile_u64(0),
               tile_i32(0)) &&
           LAUNCH(m->merge, part_o, part_lse, tile_f32_view(sinks->data, sinks->data ? h : 0),
               tile_f32_view(a[ATTENDED], rows, h, d), tile_f32_view(a[LSE], rows, h));
}

/* Where what a part of a layer gives goes: to what it is added to, or to where its norm is. */
static int branch_of(const Model *m) { return has_feature(m, NORMS_AFTER) ? BRANCH : X; }

/* What the ranks have of a part of a layer is summed up, and normalised and added, if it has not
 * been added. */
static bool add_branch(Model *m, int layer, Role norm, int rows)
{
    int width = m->config.width, y = branch_of(m);
    tile_buffer *const *a = m->array;
    if (!team_sum(a[y], (size_t)rows * (size_t)width)) return false;
    return y == X || LAUNCH(m->norm_add, tile_f32_view(a[y], rows, width),
                            tile_f32_view(matrix_of(m, norm, layer)->data, width),
                            tile_f32_view(a[X], rows, width), tile_f32((float)m->config.norm_eps));
}

static bool activate(Model *m, int rows)
{
    int f = m->config.hidden;
    tile_arg x = tile_f32_view(m->array[GATED], rows, 2 * f);
    tile_arg y = tile_f32_view(m->array[ACTIVE], rows, f);
    if (!has_feature(m, CLAMPED)) return LAUNCH(m->gate, x, y);
    return LAUNCH(m->gate, x, y, tile_f32((float)m->config.gate_limit),
                  tile_f32((float)m->config.gate_slope));
}

static bool run_hidden(Model *m, int layer, int rows)
{
    int f = m->config.hidden;
    return multiply(m, matrix_of(m, GATE, layer), rows, H, GATED, 0, 2 * f) &&
           multiply(m, matrix_of(m, UP, layer), rows, H, GATED, f, 2 * f) && activate(m, rows) &&
           multiply(m, matrix_of(m, DOWN, layer), rows, ACTIVE, branch_of(m), 0, m->config.width);
}

/* Pairs of a row and an expert, sorted by expert in `blocks` blocks of the form. */
typedef struct Pairs {
    int form, pairs, blocks;
} Pairs;

/* y[i] = x w^T for all pairs i, of which x has a row or, before the last matrix, their rows have;
 * from column `at` of the rows of y, which are `stride` apart. */
static bool multiply_experts(Model *m, Role role, int layer, Pairs p, int x, int y, int at,
                             int stride)
{
    Matrix *w = matrix_of(m, role, layer);
    bool last = role == DOWN;
    const FormatInfo *f = &format_info[w->format];
    tile_dtype type = kernel_format[w->format].dtype;
    tile_buffer *const *a = m->array;
    const int64_t extents[] = {p.pairs, w->rows}, strides[] = {stride, 1};
    tile_arg in = tile_f32_view(a[x], last ? p.pairs : p.pairs / m->config.experts_used, w->cols);
    tile_arg out = tile_buffer_view_strided(a[y], at, TILE_F32, 2, extents, strides);
    tile_arg order = tile_i32_view(a[ORDER], p.blocks * together[p.form]);
    tile_arg block = tile_i32_view(a[BLOCK], p.blocks);
    tile_arg share = tile_f32_view(a[SHARE], last ? p.pairs : 0);
    tile_arg scale = tile_f32_view(w->scale, w->scale ? w->experts : 0, w->scale ? w->rows : 0);
    tile_arg bias = tile_f32_view(w->bias, w->bias ? w->experts : 0, w->bias ? w->rows : 0);
    tile_kernel *k = expert_linear(m, w, last, p.form);
    if (!k) return false;
    if (!kernel_format[w->format].decode)
        return LAUNCH(k, in, tile_buffer_view(w->data, type, w->experts, w->rows, w->cols), scale,
                      bias, order, block, share, out);
    return LAUNCH(k, in, tile_buffer_view(w->data, type, w->experts, w->rows,
                                          w->cols / f->elements, f->bytes),
                  bias, order, block, share, out);
}

/* Each row goes through the experts that the router gives it to. */
static bool run_experts(Model *m, int layer, int rows)
{
    const Config *g = &m->config;
    int f = g->hidden, used = g->experts_used, form = form_of(m, g->experts, rows);
    int size = together[form], pairs = rows * used;
    Pairs p = {form, pairs, (pairs + g->experts * (size - 1) + size - 1) / size};
    tile_buffer *const *a = m->array;
    return get_align(m, form) &&
           multiply(m, matrix_of(m, ROUTER, layer), rows, H, ROUTE, 0, g->experts) &&
           LAUNCH(m->route, tile_f32_view(a[ROUTE], rows, g->experts),
                  tile_i32_view(a[EXPERT], rows, used), tile_f32_view(a[SHARE], rows, used),
                  tile_f32(1)) &&
           LAUNCH(m->align[form], tile_i32_view(a[EXPERT], pairs),
                  tile_i32_view(a[ORDER], p.blocks * size), tile_i32_view(a[BLOCK], p.blocks),
                  tile_i32(g->experts)) &&
           multiply_experts(m, GATE, layer, p, H, GATED, 0, 2 * f) &&
           multiply_experts(m, UP, layer, p, H, GATED, f, 2 * f) && activate(m, pairs) &&
           multiply_experts(m, DOWN, layer, p, ACTIVE, SPREAD, 0, g->width) &&
           LAUNCH(m->sum_experts, tile_f32_view(a[SPREAD], rows, used, g->width),
                  tile_f32_view(a[branch_of(m)], rows, g->width));
}

static bool run_layer(Model *m, int layer, int rows, int parts)
{
    const Config *g = &m->config;
    int keys = g->kv_heads * g->head_size;
#define W(role) matrix_of(m, role, layer)
    return normalise(m, W(NORM), rows, X, H) &&
           multiply_heads(m, layer, QUERY, QUERY_NORM, rows, Q_, g->heads) &&
           multiply_heads(m, layer, KEY, KEY_NORM, rows, K_, g->kv_heads) &&
           multiply(m, W(VALUE), rows, H, V_, 0, keys) && attend(m, layer, rows, parts) &&
           multiply(m, W(OUT), rows, ATTENDED, branch_of(m), 0, g->width) &&
           add_branch(m, layer, OUT_NORM, rows) && normalise(m, W(HIDDEN_NORM), rows, X, H) &&
           (has_feature(m, EXPERTS) ? run_experts(m, layer, rows) : run_hidden(m, layer, rows)) &&
           add_branch(m, layer, DOWN_NORM, rows);
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
              tile_i32_view(a[PICK], wanted), tile_f32_view(a[PICKED], wanted, width),
              tile_f32(1)) &&
          normalise(m, matrix_of(m, LAST_NORM, 0), wanted, PICKED, H) &&
          multiply(m, matrix_of(m, HEAD, 0), wanted, H, LOGITS, 0, m->tokens) &&
          (!m->cap || LAUNCH(m->cap, tile_f32_view(a[LOGITS], wanted * (int64_t)m->tokens),
                             tile_f32((float)m->config.logit_cap))) &&
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
             x = tile_f32_view(m->array[X], rows, m->config.width),
             factor = tile_f32(has_feature(m, WIDE_EMBEDDING) ? sqrtf((float)m->config.width) : 1);
    if (wanted < 0 || !(kernel_format[e->format].decode
                            ? LAUNCH(m->embed, weights(e), token, x, factor)
                            : LAUNCH(m->embed, weights(e), scales(e), token, x, factor)))
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
    if (!m) return snprintf(error, size, "no memory"), NULL;
    m->tokens = c->config.vocabulary;
    m->length = length;
    m->lists = (length + PAGE - 1) / PAGE;
    m->pages = pages;
    if (!weights_load(&m->weights, c, error, size)) return model_free(m), NULL;
    m->config = m->weights.config;
    if (get_kernels(m) && allocate(m) && tables(m)) return m;
    return snprintf(error, size, "%s", tile_last_error()), model_free(m), NULL;
}

void model_free(Model *m)
{
    if (!m) return;
    weights_free(&m->weights);
    for (int i = 0; m->cache && i < m->config.layers; i++)
        tile_buffer_free(m->cache[i].keys), tile_buffer_free(m->cache[i].values);
    for (int i = 0; i < ARRAYS; i++) tile_buffer_free(m->array[i]);
    modules_free(&m->modules), free(m->cache), free(m);
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
    return m->weights.bytes;
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
