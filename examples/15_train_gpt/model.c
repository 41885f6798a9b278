#include "model.h"

enum { PARTS = 16 }; /* programs that sum a norm's gradient together */

/* ---- tensors ---- */

static void add_tensor(Model *m, Role role, int layer, int rows, int cols)
{
    size_t n = ((size_t)rows * (size_t)cols + 63) / 64 * 64, chance = 0;
    if (m->tensors) {
        const Tensor *last = &m->tensor[m->tensors - 1];
        chance = last->chance + ((size_t)last->rows * (size_t)last->cols + 63) / 64 * 64;
    }
    m->tensor[m->tensors++] = (Tensor){role, layer, rows, cols, m->size, chance, m->buckets};
    m->size += n;
}

static void end_bucket(Model *m)
{
    size_t at = m->buckets ? m->bucket[m->buckets - 1].at + m->bucket[m->buckets - 1].n : 0;
    size_t unit = 64 * (size_t)(m->config.ranks ? m->config.ranks : 1);
    m->size = at + (m->size - at + unit - 1) / unit * unit;
    m->bucket[m->buckets++] = (Bucket){at, m->size - at};
}

enum { EMBEDDING_BUCKET, HEAD_BUCKET, FIRST_LAYER }; /* behind the layers: that of the norms */

static bool list_tensors(Model *m)
{
    const Config *c = &m->config;
    int d = c->width, f = c->hidden;
    m->tensor = calloc((size_t)(3 + 6 * c->layers), sizeof *m->tensor);
    m->bucket = calloc((size_t)(3 + c->layers), sizeof *m->bucket);
    if (!m->tensor || !m->bucket) return false;
    add_tensor(m, EMBEDDING, 0, BYTES, d), end_bucket(m);
    add_tensor(m, HEAD, 0, d, BYTES), end_bucket(m);
    for (int l = 0; l < c->layers; l++) {
        add_tensor(m, QKV, l, d, 3 * d), add_tensor(m, OUT, l, d, d);
        add_tensor(m, UP, l, d, 2 * f), add_tensor(m, DOWN, l, f, d), end_bucket(m);
    }
    m->matrices = m->tensors;
    add_tensor(m, LAST_NORM, 0, 1, d);
    for (int l = 0; l < c->layers; l++)
        add_tensor(m, NORM, l, 1, d), add_tensor(m, HIDDEN_NORM, l, 1, d);
    end_bucket(m);
    return true;
}

Tensor *model_tensor(const Model *m, Role role, int layer)
{
    Tensor *t = m->tensor;
    while (t->role != role || t->layer != layer) t++;
    return t;
}

/* ---- memory ---- */

static bool allocate_layer(Buffers *b, Layer *l, const Config *c, size_t n, size_t s)
{
    size_t d = (size_t)c->width, f = (size_t)c->hidden, h = (size_t)c->heads;
    return zeros(b, &l->x, n * d, s) && zeros(b, &l->rstd, n, 4) && zeros(b, &l->y, n * d, s) &&
           zeros(b, &l->qkv, n * 3 * d, s) && zeros(b, &l->lse, n * h, 4) &&
           zeros(b, &l->heads, n * d, s) && zeros(b, &l->mid, n * d, s) &&
           zeros(b, &l->rstd_mid, n, 4) && zeros(b, &l->z, n * d, s) &&
           zeros(b, &l->up, n * 2 * f, s) && zeros(b, &l->act, n * f, s);
}

static bool allocate_all(Model *m)
{
    const Config *c = &m->config;
    Buffers *b = &m->buffers;
    size_t n = (size_t)c->batch * (size_t)c->context, s = (size_t)type_size(c->type);
    size_t d = (size_t)c->width, f = (size_t)c->hidden, h = (size_t)c->heads;
    size_t angles = (size_t)c->context * d / h / 2;
    m->layer = calloc((size_t)c->layers, sizeof *m->layer);
    for (int l = 0; l < c->layers; l++)
        if (!m->layer || !allocate_layer(b, &m->layer[l], c, n, s)) return false;
    return zeros(b, &m->weights, m->size, s) && zeros(b, &m->grads, m->size, 4) &&
           zeros(b, &m->token, n, 4) && zeros(b, &m->place, n, 4) && zeros(b, &m->label, n, 4) &&
           zeros(b, &m->order, n, 4) && zeros(b, &m->offsets, BYTES + 1, 4) &&
           zeros(b, &m->cosine, angles, 4) && zeros(b, &m->sine, angles, 4) &&
           zeros(b, &m->branch, n * d, s) && zeros(b, &m->last, n * d, s) &&
           zeros(b, &m->rstd_last, n, 4) && zeros(b, &m->y_last, n * d, s) &&
           zeros(b, &m->logits, n * BYTES, s) && zeros(b, &m->loss, n, 4) &&
           zeros(b, &m->lse, n, 4) && zeros(b, &m->scale, 1, 4) && zeros(b, &m->dloss, n, 4) &&
           zeros(b, &m->zero, n, 4) && zeros(b, &m->d[0], n * d, s) &&
           zeros(b, &m->d[1], n * d, s) && zeros(b, &m->dy, n * d, s) &&
           zeros(b, &m->dact, n * f, s) && zeros(b, &m->dup, n * 2 * f, s) &&
           zeros(b, &m->dqkv, n * 3 * d, s) && zeros(b, &m->dheads, n * d, s) &&
           zeros(b, &m->delta, n * h, 4) && zeros(b, &m->part, PARTS * d, 4);
}

void model_close(Model *m)
{
    buffers_free(&m->buffers), modules_free(&m->kernels.modules);
    free(m->layer), free(m->tensor), free(m->bucket);
}

/* ---- arguments ---- */

/* Rows of config.type. */
static tile_arg rows_of(const Model *m, const tile_buffer *b, int rows, int cols)
{
    return tile_buffer_view(b, type_dtype(m->config.type), rows, cols);
}

static tile_arg none(const Model *m) { return rows_of(m, NULL, 0, 0); }

/* A tensor's weights, or with `grads` its derivatives. */
static tile_arg of(const Model *m, Role role, int layer, bool grads)
{
    const Tensor *t = model_tensor(m, role, layer);
    const tile_buffer *b = grads ? m->grads : m->weights;
    tile_dtype type = grads ? TILE_F32 : type_dtype(m->config.type);
    return t->rows == 1 ? tile_buffer_view_at(b, t->at, type, t->cols)
                        : tile_buffer_view_at(b, t->at, type, t->rows, t->cols);
}

/* Queries (0), keys (1) or values (2) in rows of all three, [sequences, heads, tokens, head]. */
static tile_arg third(const Model *m, const tile_buffer *b, int which, int rows, int length)
{
    const Config *c = &m->config;
    const int64_t d = c->width, head = c->width / c->heads;
    const int64_t extent[] = {rows, c->heads, length, head};
    const int64_t stride[] = {length * 3 * d, head, 3 * d, 1};
    return tile_buffer_view_strided(b, which * d, type_dtype(c->type), 4, extent, stride);
}

/* Rows of all heads, [sequences, heads, tokens, head]. */
static tile_arg heads_of(const Model *m, const tile_buffer *b, int rows, int length)
{
    const Config *c = &m->config;
    const int64_t d = c->width, head = c->width / c->heads;
    const int64_t extent[] = {rows, c->heads, length, head}, stride[] = {length * d, head, d, 1};
    return tile_buffer_view_strided(b, 0, type_dtype(c->type), 4, extent, stride);
}

/* Queries and keys alike, [tokens, heads, head]: both are rotated. */
static tile_arg rotated(const Model *m, const tile_buffer *b, int n)
{
    const Config *c = &m->config;
    const int64_t head = c->width / c->heads;
    const int64_t extent[] = {n, 2 * c->heads, head}, stride[] = {3 * c->width, head, 1};
    return tile_buffer_view_strided(b, 0, type_dtype(c->type), 3, extent, stride);
}

static tile_arg by_head(const Model *m, const tile_buffer *b, int rows, int length)
{
    return tile_f32_view(b, rows, m->config.heads, length);
}

/* ---- opening ---- */

bool model_open(Model *m, Config c)
{
    const float one = 1;
    *m = (Model){.config = c};
    if (!list_tensors(m) || !kernels_open(&m->kernels, c.type, c.width, c.width / c.heads) ||
        !allocate_all(m) || tile_buffer_upload(m->scale, 0, &one, 4, NULL))
        return false;
    int half = c.width / c.heads / 2;
    return RUN(&m->kernels, ROPE_TABLES, tile_f32_view(m->cosine, c.context, half),
               tile_f32_view(m->sine, c.context, half), tile_f32_view(NULL, 0), tile_f32(10000));
}

/* ---- a batch ---- */

bool model_load(Model *m, const uint8_t *x, int rows, int length)
{
    int n = rows * length;
    size_t bytes = (size_t)n * sizeof(int32_t);
    int32_t offsets[BYTES + 1], *token = malloc(4 * bytes + 1);
    if (!token) return false;
    int32_t *label = token + n, *order = token + 2 * n, *place = token + 3 * n;
    for (int i = 0; i < n; i++) {
        int at = i / length * (length + 1) + i % length;
        token[i] = x[at], label[i] = x[at + 1], place[i] = i % length;
    }
    text_sort(token, n, order, offsets);
    bool good = !(tile_buffer_upload(m->token, 0, token, bytes, NULL) ||
                  tile_buffer_upload(m->label, 0, label, bytes, NULL) ||
                  tile_buffer_upload(m->order, 0, order, bytes, NULL) ||
                  tile_buffer_upload(m->place, 0, place, bytes, NULL) ||
                  tile_buffer_upload(m->offsets, 0, offsets, sizeof offsets, NULL));
    return free(token), good;
}

/* ---- forward ---- */

static const float epsilon = 0x1p-17f; /* of the norms: about 1e-5 */

/* y = norm(x), or with `residual` total = x + residual and y = norm(total). */
static bool norm(Model *m, const tile_buffer *x, const tile_buffer *residual, tile_arg w,
                 tile_buffer *y, tile_buffer *total, tile_buffer *rstd, int n)
{
    int d = m->config.width;
    return RUN(&m->kernels, residual ? ADD_NORM : FIRST_NORM, rows_of(m, x, n, d),
               residual ? rows_of(m, residual, n, d) : none(m), w, rows_of(m, y, n, d),
               residual ? rows_of(m, total, n, d) : none(m), tile_f32_view(rstd, n),
               tile_f32(epsilon), tile_f32(0));
}

/* The numbers of attention: its scale, and what only other options take. */
#define SCORES(m)                                                                                  \
    tile_f32(1 / sqrtf((float)((m)->config.width / (m)->config.heads))), tile_f32(1), tile_i32(0), \
        tile_i32(0), tile_i32(0), tile_f32(0), tile_u64(0), tile_i32(0)

static bool attend(Model *m, Layer *l, int rows, int length)
{
    return RUN(&m->kernels, ATTEND, third(m, l->qkv, 0, rows, length),
               third(m, l->qkv, 1, rows, length), third(m, l->qkv, 2, rows, length),
               heads_of(m, l->heads, rows, length), by_head(m, l->lse, rows, length),
               tile_f32_view(NULL, 0), tile_f32_view(NULL, 0), SCORES(m));
}

static bool rotate(Model *m, tile_buffer *b, int n, Id id)
{
    const Config *c = &m->config;
    int half = c->width / c->heads / 2;
    return RUN(&m->kernels, id, rotated(m, b, n), tile_i32_view(m->place, n),
               tile_f32_view(m->cosine, c->context, half), tile_f32_view(m->sine, c->context, half),
               rotated(m, b, n));
}

/* m->branch, what the layer before left, is added to what that layer has added to. */
static bool forward_layer(Model *m, int i, int rows, int length)
{
    Kernels *k = &m->kernels;
    Layer *l = &m->layer[i];
    int n = rows * length, d = m->config.width, f = m->config.hidden;
    const tile_buffer *branch = i ? m->branch : l->x, *before = i ? m->layer[i - 1].mid : NULL;
    return norm(m, branch, before, of(m, NORM, i, false), l->y, l->x, l->rstd, n) &&
           RUN(k, PRODUCT, rows_of(m, l->y, n, d), of(m, QKV, i, false),
               rows_of(m, l->qkv, n, 3 * d)) &&
           rotate(m, l->qkv, n, ROPE) && attend(m, l, rows, length) &&
           RUN(k, PRODUCT, rows_of(m, l->heads, n, d), of(m, OUT, i, false),
               rows_of(m, m->branch, n, d)) &&
           norm(m, m->branch, l->x, of(m, HIDDEN_NORM, i, false), l->z, l->mid, l->rstd_mid, n) &&
           RUN(k, PRODUCT, rows_of(m, l->z, n, d), of(m, UP, i, false),
               rows_of(m, l->up, n, 2 * f)) &&
           RUN(k, GATE, rows_of(m, l->up, n, 2 * f), rows_of(m, l->act, n, f)) &&
           RUN(k, PRODUCT, rows_of(m, l->act, n, f), of(m, DOWN, i, false),
               rows_of(m, m->branch, n, d));
}

bool model_forward(Model *m, int rows, int length)
{
    Kernels *k = &m->kernels;
    const Config *c = &m->config;
    int n = rows * length, d = c->width;
    if (!RUN(k, EMBED, of(m, EMBEDDING, 0, false), tile_i32_view(m->token, n),
             rows_of(m, m->layer[0].x, n, d), tile_f32(1)))
        return false;
    for (int i = 0; i < c->layers; i++)
        if (!forward_layer(m, i, rows, length)) return false;
    return norm(m, m->branch, m->layer[c->layers - 1].mid, of(m, LAST_NORM, 0, false), m->y_last,
                m->last, m->rstd_last, n) &&
           RUN(k, PRODUCT, rows_of(m, m->y_last, n, d), of(m, HEAD, 0, false),
               rows_of(m, m->logits, n, BYTES));
}

bool model_loss(Model *m, int rows, int length)
{
    int n = rows * length;
    return RUN(&m->kernels, LOSS, rows_of(m, m->logits, n, BYTES), tile_i32_view(m->label, n),
               tile_f32_view(m->loss, n), tile_f32_view(m->lse, n), tile_f32(0), tile_f32(0),
               tile_i32(-1));
}

/* ---- backward ---- */

/* Of y = x w: dx = dy w^T and dw = x^T dy. */
static bool product_back(Model *m, const tile_buffer *x, int in, Role role, int layer,
                         const tile_buffer *dy, int out, tile_buffer *dx, int n)
{
    return RUN(&m->kernels, PRODUCT_WEIGHTS, rows_of(m, x, n, in), rows_of(m, dy, n, out),
               of(m, role, layer, true)) &&
           RUN(&m->kernels, PRODUCT_BACK, rows_of(m, dy, n, out), of(m, role, layer, false),
               rows_of(m, dx, n, in));
}

/* dx = what goes back through the norm of `total`, plus what goes past it, `past`. */
static bool norm_back(Model *m, const tile_buffer *dy, const tile_buffer *total,
                      const tile_buffer *rstd, const tile_buffer *past, tile_buffer *dx, Role role,
                      int layer, int n)
{
    int d = m->config.width;
    tile_arg part = tile_f32_view(m->part, PARTS, d);
    return RUN(&m->kernels, past ? ADD_NORM_BACK : NORM_BACK, rows_of(m, dy, n, d),
               rows_of(m, total, n, d), of(m, role, layer, false), tile_f32_view(rstd, n),
               past ? rows_of(m, past, n, d) : none(m), rows_of(m, dx, n, d), part, tile_f32(0)) &&
           RUN(&m->kernels, SUM_PARTS, part, of(m, role, layer, true));
}

static bool attend_back(Model *m, Layer *l, int rows, int length)
{
    tile_arg q = third(m, l->qkv, 0, rows, length), k = third(m, l->qkv, 1, rows, length),
             v = third(m, l->qkv, 2, rows, length), up = heads_of(m, m->dheads, rows, length),
             lse = by_head(m, l->lse, rows, length), delta = by_head(m, m->delta, rows, length),
             no = tile_f32_view(NULL, 0);
    return RUN(&m->kernels, ATTEND_BACK_SUMS, heads_of(m, l->heads, rows, length), up, lse, delta,
               no, no) &&
           RUN(&m->kernels, ATTEND_BACK_Q, q, k, v, up, lse, delta,
               third(m, m->dqkv, 0, rows, length), no, SCORES(m)) &&
           RUN(&m->kernels, ATTEND_BACK_KV, q, k, v, up, lse, delta,
               third(m, m->dqkv, 1, rows, length), third(m, m->dqkv, 2, rows, length), no,
               SCORES(m));
}

/* m->d[0], the derivative by what the layer gave, becomes that by what it got. */
static bool backward_layer(Model *m, int i, int rows, int length)
{
    Layer *l = &m->layer[i];
    int n = rows * length, d = m->config.width, f = m->config.hidden;
    return product_back(m, l->act, f, DOWN, i, m->d[0], d, m->dact, n) &&
           RUN(&m->kernels, GATE_BACK, rows_of(m, m->dact, n, f), rows_of(m, l->up, n, 2 * f),
               rows_of(m, m->dup, n, 2 * f)) &&
           product_back(m, l->z, d, UP, i, m->dup, 2 * f, m->dy, n) &&
           norm_back(m, m->dy, l->mid, l->rstd_mid, m->d[0], m->d[1], HIDDEN_NORM, i, n) &&
           product_back(m, l->heads, d, OUT, i, m->d[1], d, m->dheads, n) &&
           attend_back(m, l, rows, length) && rotate(m, m->dqkv, n, ROPE_BACK) &&
           product_back(m, l->y, d, QKV, i, m->dqkv, 3 * d, m->dy, n) &&
           norm_back(m, m->dy, l->x, l->rstd, m->d[1], m->d[0], NORM, i, n);
}

static bool is_ready(const Model *m, int bucket, Ready *ready)
{
    return !ready || ready(m, &m->bucket[bucket]);
}

bool model_backward(Model *m, int rows, int length, double all, Ready *ready)
{
    Kernels *k = &m->kernels;
    int n = rows * length, d = m->config.width;
    tile_arg logits = rows_of(m, m->logits, n, BYTES);
    /* dloss = scale / all in each row: the one row of a table with one column */
    if (!RUN(k, SPREAD, tile_f32_view(m->scale, 1, 1), tile_i32_view(m->zero, n),
             tile_f32_view(m->dloss, n, 1), tile_f32((float)(1 / all))) ||
        !RUN(k, LOSS_BACK, logits, tile_i32_view(m->label, n), tile_f32_view(m->lse, n),
             tile_f32_view(m->dloss, n), logits, tile_f32(0), tile_f32(0), tile_i32(-1)) ||
        !product_back(m, m->y_last, d, HEAD, 0, m->logits, BYTES, m->dy, n) ||
        !is_ready(m, HEAD_BUCKET, ready) ||
        !norm_back(m, m->dy, m->last, m->rstd_last, NULL, m->d[0], LAST_NORM, 0, n))
        return false;
    for (int i = m->config.layers - 1; i >= 0; i--)
        if (!backward_layer(m, i, rows, length) || !is_ready(m, FIRST_LAYER + i, ready))
            return false;
    return RUN(k, EMBED_BACK, rows_of(m, m->d[0], n, d), tile_i32_view(m->order, n),
               tile_i32_view(m->offsets, BYTES + 1), of(m, EMBEDDING, 0, true), tile_f32(1)) &&
           is_ready(m, EMBEDDING_BUCKET, ready) &&
           is_ready(m, FIRST_LAYER + m->config.layers, ready);
}
