#include "steps.h"
#include "share.h"

enum { W, G, FIRST, SECOND, MASTER, TOTAL, TABLES, SUMS = 64 };
_Static_assert(TABLES == sizeof((Steps *)0)->table / sizeof(tile_buffer *), "tables");

/* Where each tensor lies in a buffer. */
static bool fill_table(const Steps *s, tile_buffer *table, const tile_buffer *base, size_t size)
{
    const Model *m = s->model;
    uint64_t at[256];
    for (int i = 0; i < m->tensors && i < 256; i++)
        at[i] = (uint64_t)(uintptr_t)tile_buffer_ptr(base) + m->tensor[i].at * size;
    return !tile_buffer_upload(table, 0, at, (uint64_t)m->tensors * 8, NULL);
}

static bool fill_tables(Steps *s)
{
    const Model *m = s->model;
    const tile_buffer *base[TABLES] = {m->weights, m->grads, s->first, s->second, s->master,
                                       s->total};
    int64_t length[256];
    for (int i = 0; i < m->tensors && i < 256; i++)
        length[i] = (int64_t)m->tensor[i].rows * m->tensor[i].cols;
    bool good = m->tensors <= 256 && zeros(&s->buffers, &s->length, (size_t)m->tensors, 8) &&
                !tile_buffer_upload(s->length, 0, length, (uint64_t)m->tensors * 8, NULL);
    for (int i = 0; good && i < TABLES; i++)
        good = zeros(&s->buffers, &s->table[i], (size_t)m->tensors, 8) &&
               fill_table(s, s->table[i], base[i],
                          i == W ? (size_t)type_size(m->config.type) : sizeof(float));
    return good;
}

/* ---- the first weights ---- */

/* f32 to a type of 16 bits, to nearest even; weights are no NaN and far from the greatest. */
static uint16_t narrow(float x, Type type)
{
    union { float f; uint32_t u; } v = {x};
    if (type == BF16) return (uint16_t)((v.u + 0x7FFF + (v.u >> 16 & 1)) >> 16);
    uint32_t sign = v.u >> 16 & 0x8000;
    float size = fabsf(x), unit = size < 0x1p-14f ? 0x1p-24f : ldexpf(1, ilogbf(size) - 10);
    uint32_t n = (uint32_t)rintf(size / unit); /* of units; a carry goes into the exponent */
    return (uint16_t)(sign | (size < 0x1p-14f ? n : ((uint32_t)(ilogbf(size) + 14) << 10) + n));
}

bool steps_set(Steps *s, const Tensor *t, const float *w)
{
    const Model *m = s->model;
    size_t n = (size_t)t->rows * (size_t)t->cols;
    if (m->config.type == F32) return !tile_buffer_upload(m->weights, t->at * 4, w, n * 4, NULL);
    uint16_t *half = malloc(n * sizeof *half);
    for (size_t i = 0; half && i < n; i++) half[i] = narrow(w[i], m->config.type);
    bool good = half && !tile_buffer_upload(m->weights, t->at * 2, half, n * 2, NULL) &&
                !tile_buffer_upload(s->master, t->at * 4, w, n * 4, NULL);
    return free(half), good;
}

/* Norms are 1. Matrices that add to what goes past them are smaller, the more there are of them. */
static bool first_weights(Steps *s, uint64_t seed)
{
    const Model *m = s->model;
    for (int i = 0; i < m->tensors; i++) {
        const Tensor *t = &m->tensor[i];
        size_t n = (size_t)t->rows * (size_t)t->cols;
        float *w = malloc(n * sizeof *w), size = 0.5f / sqrtf((float)t->rows);
        if (t->role == EMBEDDING) size = 0.1f;
        if (t->role == OUT || t->role == DOWN) size /= sqrtf(2 * (float)m->config.layers);
        for (size_t k = 0; w && k < n; k++)
            w[k] = t->rows == 1 ? 1 : size * (float)normal_at(seed, t->at + k);
        bool good = w && steps_set(s, t, w);
        free(w);
        if (!good) return false;
    }
    return true;
}

bool steps_open(Steps *s, Model *m, uint64_t seed)
{
    Buffers *b = &s->buffers;
    const float scale = m->config.type == F16 ? 65536 : 1;
    *s = (Steps){.model = m};
    return zeros(b, &s->master, m->config.type == F32 ? 0 : m->size, 4) &&
           zeros(b, &s->first, m->size, 4) && zeros(b, &s->second, m->size, 4) &&
           zeros(b, &s->total, m->size, 4) && zeros(b, &s->part, SUMS, 4) &&
           zeros(b, &s->factor, 1, 4) && zeros(b, &s->norm, 1, 4) && zeros(b, &s->taken, 1, 4) &&
           zeros(b, &s->good, 1, 4) &&
           !tile_buffer_upload(m->scale, 0, &scale, 4, NULL) && fill_tables(s) &&
           first_weights(s, seed);
}

void steps_close(Steps *s)
{
    buffers_free(&s->buffers);
}

/* ---- a step ---- */

/* Of a table, the tensors from `from` on, before `to`. */
static tile_arg part_of(const tile_buffer *table, tile_dtype type, int from, int to)
{
    return tile_buffer_view_at(table, from, type, to - from);
}

bool steps_accumulate(Steps *s, bool first)
{
    int n = s->model->tensors;
    return RUN(&s->model->kernels, first ? ACCUMULATE_FIRST : ACCUMULATE,
               part_of(s->table[TOTAL], TILE_U64, 0, n), part_of(s->table[G], TILE_U64, 0, n),
               part_of(s->length, TILE_I64, 0, n), tile_f32(1));
}

static bool adam(Steps *s, int grads, int from, int to, float rate, float decay)
{
    bool master = s->model->config.type != F32;
    return RUN(&s->model->kernels, ADAM, part_of(s->table[W], TILE_U64, from, to),
               part_of(s->table[grads], TILE_U64, from, to),
               part_of(s->table[FIRST], TILE_U64, from, to),
               part_of(s->table[SECOND], TILE_U64, from, to),
               part_of(s->table[MASTER], TILE_U64, from, master ? to : from),
               part_of(s->length, TILE_I64, from, to), tile_f32_view(s->factor, 1),
               tile_i32_view(s->taken, 1), tile_f32(1), tile_i32(0), tile_f32(rate), tile_f32(0.9f),
               tile_f32(0.99f), tile_f32(1e-8f), tile_f32(decay), tile_u64(0));
}

bool steps_step(Steps *s, bool accumulated, float rate, float decay)
{
    Kernels *k = &s->model->kernels;
    int n = s->model->tensors, matrices = s->model->matrices, grads = accumulated ? TOTAL : G;
    bool scaled = s->model->config.type == F16;
    tile_arg part = tile_f32_view(s->part, SUMS);
    return share_sum(accumulated ? s->total : s->model->grads, s->model->size) &&
           RUN(k, SQUARES, part_of(s->table[grads], TILE_U64, 0, n),
               part_of(s->length, TILE_I64, 0, n), part) &&
           RUN(k, CONTROL, part, tile_f32_view(s->factor, 1), tile_f32_view(s->norm, 1),
               tile_f32_view(s->model->scale, 1), tile_i32_view(s->taken, 1),
               tile_i32_view(s->good, 1), tile_f32(1), tile_f32(1), tile_f32(scaled ? 2 : 1),
               tile_f32(scaled ? 0.5f : 1), tile_i32(500)) &&
           adam(s, grads, 0, matrices, rate, decay) && adam(s, grads, matrices, n, rate, 0);
}

bool steps_state(const Steps *s, int *taken, float *norm, float *scale)
{
    return !(tile_buffer_download(s->taken, 0, taken, 4, NULL) ||
             tile_buffer_download(s->norm, 0, norm, 4, NULL) ||
             tile_buffer_download(s->model->scale, 0, scale, 4, NULL));
}
