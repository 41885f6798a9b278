#include "lstm.h"

enum { EMBED, EMBED_BACK, SEQUENCE, SEQUENCE_BACK, PRODUCT, PRODUCT_BACK, PRODUCT_WEIGHTS, LOSS,
       LOSS_BACK, SQUARES, CONTROL, ADAM, KERNELS };
enum { SUMS = 64 };

/* ---- kernels: all of them are the library's ---- */

#define GEMM "std.kernels.gemm"
#define RNN "std.kernels.rnn"
#define LAYERS "std.kernels.layers"
#define LOSSES "std.kernels.losses"
#define OPTIMIZERS "std.kernels.optimizers"

static bool open_kernels(Lstm *m)
{
#define F {"T", 0, "f32"}
#define TILES {"BM", 64, 0}, {"BN", 64, 0}
    static const KernelRow rows[KERNELS] = {
        [EMBED] = {LAYERS, "embedding", {F}},
        [EMBED_BACK] = {LAYERS, "embedding_backward_sorted", {F}},
        [SEQUENCE] = {RNN, "lstm_sequence", {F, {"BB", 8, 0}}},
        [SEQUENCE_BACK] = {RNN, "lstm_sequence_backward", {F, {"BB", 8, 0}}},
        [PRODUCT] = {GEMM, "gemm", {F, TILES}},
        [PRODUCT_BACK] = {GEMM, "gemm", {F, TILES, {"TB", 1, 0}}},
        [PRODUCT_WEIGHTS] = {GEMM, "gemm", {F, TILES, {"TA", 1, 0}}},
        [LOSS] = {LOSSES, "cross_entropy", {F, {"BV", BYTES, 0}}},
        [LOSS_BACK] = {LOSSES, "cross_entropy_backward", {F, {"BV", BYTES, 0}}},
        [SQUARES] = {OPTIMIZERS, "sum_squares", {{"U", 0, "f32"}}},
        [CONTROL] = {OPTIMIZERS, "step_control", {{0}}},
        [ADAM] = {OPTIMIZERS, "adam", {F, {"o.control", 1, 0}}},
    };
    return kernels_get(&m->modules, rows, KERNELS, m->kernel);
}

/* ---- memory ---- */

static bool allocate_chunk(Lstm *m)
{
    Buffers *a = &m->buffers;
    size_t b = (size_t)m->rows, n = b * (size_t)m->length, h = (size_t)m->width;
    return zeros(a, &m->token, n, 4) && zeros(a, &m->label, n, 4) && zeros(a, &m->order, n, 4) &&
           zeros(a, &m->offsets, BYTES + 1, 4) && zeros(a, &m->loss, n, 4) &&
           zeros(a, &m->lse, n, 4) && zeros(a, &m->dloss, n, 4) && zeros(a, &m->x, n * h, 16) &&
           zeros(a, &m->gates, n * h, 16) && zeros(a, &m->logits, n * BYTES, 4) &&
           zeros(a, &m->dh, n * h, 4) && zeros(a, &m->dz, n * h, 16) &&
           zeros(a, &m->dc, b * h, 4) && zeros(a, &m->dstart, b * h, 4) &&
           zeros(a, &m->part, SUMS, 4) && zeros(a, &m->factor, 1, 4) && zeros(a, &m->norm, 1, 4) &&
           zeros(a, &m->scale, 1, 4) && zeros(a, &m->steps, 1, 4) && zeros(a, &m->good, 1, 4);
}

/* Tensors, and where they are for kernels that take all of them at once. */
static bool allocate_tensors(Lstm *m)
{
    int64_t sizes[TENSORS];
    for (int i = 0; i < TENSORS; i++) sizes[i] = (int64_t)m->size[i];
    if (!zeros(&m->buffers, &m->sizes, TENSORS, 8) ||
        tile_buffer_upload(m->sizes, 0, sizes, sizeof sizes, NULL))
        return false;
    for (int t = 0; t < TABLES; t++) {
        uint64_t at[TENSORS];
        for (int i = 0; i < TENSORS; i++) {
            if (!zeros(&m->buffers, &m->tensor[t][i], m->size[i], 4)) return false;
            at[i] = (uint64_t)(uintptr_t)tile_buffer_ptr(m->tensor[t][i]);
        }
        if (!zeros(&m->buffers, &m->table[t], TENSORS, 8) ||
            tile_buffer_upload(m->table[t], 0, at, sizeof at, NULL))
            return false;
    }
    return true;
}

void lstm_close(Lstm *m)
{
    buffers_free(&m->buffers), modules_free(&m->modules);
}

bool lstm_remember(const Lstm *m, Memory *s)
{
    size_t n = (size_t)(m->length + 1) * (size_t)m->rows * (size_t)m->width;
    *s = (Memory){.h = NULL};
    return zeros(&s->buffers, &s->h, n, 4) && zeros(&s->buffers, &s->c, n, 4);
}

void lstm_forget(Memory *s)
{
    buffers_free(&s->buffers);
}

/* ---- the first weights ---- */

/* A byte's row of INPUT has its biases, too: that of the forget gate begins with 1, so that the
 * network remembers. */
static bool first_weights(Lstm *m, uint64_t seed)
{
    size_t h = (size_t)m->width;
    for (int i = 0; i < TENSORS; i++) {
        double size = i == INPUT ? 0.2 : 1 / sqrt((double)h);
        float *w = malloc(m->size[i] * sizeof *w);
        for (size_t k = 0; w && k < m->size[i]; k++) {
            bool forgets = i == INPUT && k / h % 4 == 1;
            w[k] = (float)(forgets + size * normal_at(seed + (uint64_t)i, k));
        }
        bool good = w && !tile_buffer_upload(m->tensor[WEIGHTS][i], 0, w, m->size[i] * 4, NULL);
        free(w);
        if (!good) return false;
    }
    return true;
}

bool lstm_open(Lstm *m, int width, int rows, int length, uint64_t seed)
{
    size_t h = (size_t)width;
    const float one = 1;
    *m = (Lstm){.width = width, .rows = rows, .length = length,
                .size = {[INPUT] = BYTES * 4 * h, [STATE] = 4 * h * h, [SCORES] = h * BYTES}};
    return open_kernels(m) && allocate_tensors(m) && allocate_chunk(m) && first_weights(m, seed) &&
           !tile_buffer_upload(m->scale, 0, &one, 4, NULL);
}

/* ---- arguments ---- */

static tile_arg tensor(const Lstm *m, Table t, Tensor i, int rows, int cols)
{
    return tile_f32_view(m->tensor[t][i], rows, cols);
}

static tile_arg places(const Lstm *m, const tile_buffer *b, int rows, int length)
{
    return tile_f32_view(b, length + 1, rows, m->width);
}

/* The states after each step, as rows. */
static tile_arg states(const Lstm *m, const Memory *s, int rows, int length)
{
    return tile_buffer_view_at(s->h, rows * m->width, TILE_F32, rows * length, m->width);
}

static tile_arg gates(const Lstm *m, const tile_buffer *b, int rows, int length)
{
    return tile_f32_view(b, length, rows, 4, m->width);
}

static tile_arg recurrent(const Lstm *m)
{
    return tile_f32_view(m->tensor[WEIGHTS][STATE], m->width, 4, m->width);
}

/* ---- a chunk ---- */

bool lstm_load(Lstm *m, const uint8_t *x, int rows, int length)
{
    int n = rows * length;
    size_t bytes = (size_t)n * sizeof(int32_t);
    int32_t offsets[BYTES + 1], *token = malloc(3 * bytes + 1);
    if (!token) return false;
    int32_t *label = token + n, *order = token + 2 * n;
    for (int i = 0; i < n; i++) {
        int at = i % rows * (length + 1) + i / rows;
        token[i] = x[at], label[i] = x[at + 1];
    }
    text_sort(token, n, order, offsets);
    bool good = !(tile_buffer_upload(m->token, 0, token, bytes, NULL) ||
                  tile_buffer_upload(m->label, 0, label, bytes, NULL) ||
                  tile_buffer_upload(m->order, 0, order, bytes, NULL) ||
                  tile_buffer_upload(m->offsets, 0, offsets, sizeof offsets, NULL));
    return free(token), good;
}

bool lstm_forward(Lstm *m, Memory *s, int rows, int length)
{
    int n = rows * length, h = m->width;
    return RUN(m, EMBED, tensor(m, WEIGHTS, INPUT, BYTES, 4 * h), tile_i32_view(m->token, n),
               tile_f32_view(m->x, n, 4 * h), tile_f32(1)) &&
           RUN(m, SEQUENCE, gates(m, m->x, rows, length), recurrent(m),
               places(m, s->h, rows, length), places(m, s->c, rows, length),
               gates(m, m->gates, rows, length)) &&
           RUN(m, PRODUCT, states(m, s, rows, length), tensor(m, WEIGHTS, SCORES, h, BYTES),
               tile_f32_view(m->logits, n, BYTES));
}

bool lstm_go_on(const Lstm *m, Memory *s, int rows, int length)
{
    uint64_t bytes = (uint64_t)rows * (uint64_t)m->width * 4, end = bytes * (uint64_t)length;
    return !(tile_buffer_copy(s->h, 0, s->h, end, bytes, NULL) ||
             tile_buffer_copy(s->c, 0, s->c, end, bytes, NULL));
}

bool lstm_loss(Lstm *m, int rows, int length, double *mean)
{
    int n = rows * length;
    float *loss = malloc((size_t)n * sizeof *loss);
    bool good = loss &&
                RUN(m, LOSS, tile_f32_view(m->logits, n, BYTES), tile_i32_view(m->label, n),
                    tile_f32_view(m->loss, n), tile_f32_view(m->lse, n), tile_f32(0), tile_f32(0),
                    tile_i32(-1)) &&
                !tile_buffer_download(m->loss, 0, loss, (uint64_t)n * 4, NULL);
    *mean = 0;
    for (int i = 0; good && i < n; i++) *mean += (double)loss[i] / n;
    return free(loss), good;
}

/* Each byte's part of the mean. */
static bool fill_dloss(Lstm *m, int n)
{
    float *each = malloc((size_t)n * sizeof *each);
    for (int i = 0; each && i < n; i++) each[i] = 1 / (float)n;
    bool good = each && !tile_buffer_upload(m->dloss, 0, each, (uint64_t)n * 4, NULL);
    return free(each), good;
}

bool lstm_backward(Lstm *m, Memory *s, int rows, int length)
{
    int n = rows * length, h = m->width;
    tile_arg logits = tile_f32_view(m->logits, n, BYTES), dz = tile_f32_view(m->dz, n, 4 * h);
    return fill_dloss(m, n) &&
           RUN(m, LOSS_BACK, logits, tile_i32_view(m->label, n), tile_f32_view(m->lse, n),
               tile_f32_view(m->dloss, n), logits, tile_f32(0), tile_f32(0), tile_i32(-1)) &&
           RUN(m, PRODUCT_WEIGHTS, states(m, s, rows, length), logits,
               tensor(m, GRADIENTS, SCORES, h, BYTES)) &&
           RUN(m, PRODUCT_BACK, logits, tensor(m, WEIGHTS, SCORES, h, BYTES),
               tile_f32_view(m->dh, n, h)) &&
           !tile_buffer_fill(m->dc, 0, 0, (uint64_t)rows * (uint64_t)h * 4, NULL) &&
           RUN(m, SEQUENCE_BACK, tile_f32_view(m->dh, length, rows, h), recurrent(m),
               gates(m, m->gates, rows, length), places(m, s->c, rows, length),
               gates(m, m->dz, rows, length), tile_f32_view(m->dstart, rows, h),
               tile_f32_view(m->dc, rows, h)) &&
           RUN(m, PRODUCT_WEIGHTS, tile_f32_view(s->h, n, h), dz,
               tensor(m, GRADIENTS, STATE, h, 4 * h)) &&
           RUN(m, EMBED_BACK, dz, tile_i32_view(m->order, n), tile_i32_view(m->offsets, BYTES + 1),
               tensor(m, GRADIENTS, INPUT, BYTES, 4 * h), tile_f32(1));
}

/* ---- a step ---- */

static tile_arg all_of(const Lstm *m, Table t) { return tile_u64_view(m->table[t], TENSORS); }

bool lstm_step(Lstm *m, float rate)
{
    tile_arg sizes = tile_i64_view(m->sizes, TENSORS), part = tile_f32_view(m->part, SUMS);
    return RUN(m, SQUARES, all_of(m, GRADIENTS), sizes, part) &&
           RUN(m, CONTROL, part, tile_f32_view(m->factor, 1), tile_f32_view(m->norm, 1),
               tile_f32_view(m->scale, 1), tile_i32_view(m->steps, 1), tile_i32_view(m->good, 1),
               tile_f32(1), tile_f32(1), tile_f32(1), tile_f32(1), tile_i32(1000)) &&
           RUN(m, ADAM, all_of(m, WEIGHTS), all_of(m, GRADIENTS), all_of(m, FIRST),
               all_of(m, SECOND), tile_u64_view(NULL, 0), sizes, tile_f32_view(m->factor, 1),
               tile_i32_view(m->steps, 1), tile_f32(1), tile_i32(0), tile_f32(rate), tile_f32(0.9f),
               tile_f32(0.99f), tile_f32(1e-8f), tile_f32(0), tile_u64(0));
}
