#include "steps.h"
#include "ranks.h"
#include "share.h"

enum { W, G, FIRST, SECOND, MASTER, TOTAL, TABLES, SUMS = 64, MOST = 256 };
_Static_assert(TABLES == sizeof((Steps *)0)->table / sizeof(tile_buffer *), "tables");

/* ---- this rank's part ---- */

/* One piece of each tensor at most: a rank's part of a bucket has no gap. */
static bool list_pieces(Steps *s)
{
    const Model *m = s->model;
    size_t ranks = (size_t)ranks_count(), me = (size_t)ranks_me();
    s->piece = calloc((size_t)m->tensors, sizeof *s->piece);
    for (int i = 0; s->piece && i < m->tensors; i++) {
        const Tensor *t = &m->tensor[i];
        const Bucket *b = &m->bucket[t->bucket];
        size_t part = b->n / ranks, from = b->at + me * part, to = from + part;
        size_t end = t->at + (size_t)t->rows * (size_t)t->cols, at = t->at > from ? t->at : from;
        if (end > to) end = to;
        if (at >= end) continue;
        s->piece[s->pieces++] = (Piece){t, at, b->at / ranks + (at - from), end - at};
        s->matrices += i < m->matrices;
    }
    return s->piece && m->tensors <= MOST;
}

/* ---- tables ---- */

static uint64_t address(const tile_buffer *b, size_t at, size_t size)
{
    return (uint64_t)(uintptr_t)tile_buffer_ptr(b) + at * size;
}

static bool put_table(Buffers *b, tile_buffer **table, const uint64_t *x, int n)
{
    return zeros(b, table, (size_t)n, 8) &&
           !tile_buffer_upload(*table, 0, x, (uint64_t)n * 8, NULL);
}

/* Where each piece lies in a buffer: `own`: of this rank's part alone. */
static bool put_pieces(Steps *s, int table, const tile_buffer *base, size_t size, bool own)
{
    uint64_t at[MOST];
    for (int i = 0; i < s->pieces; i++)
        at[i] = address(base, own ? s->piece[i].own : s->piece[i].at, size);
    return put_table(&s->buffers, &s->table[table], at, s->pieces);
}

static bool put_lengths(Steps *s)
{
    const Model *m = s->model;
    uint64_t piece[MOST], length[MOST], grads[MOST], totals[MOST];
    for (int i = 0; i < s->pieces; i++) piece[i] = s->piece[i].n;
    for (int i = 0; i < m->tensors; i++) {
        length[i] = (uint64_t)m->tensor[i].rows * (uint64_t)m->tensor[i].cols;
        grads[i] = address(m->grads, m->tensor[i].at, 4);
        totals[i] = address(s->total, m->tensor[i].at, 4);
    }
    Buffers *b = &s->buffers;
    return put_table(b, &s->length, piece, s->pieces) &&
           put_table(b, &s->all_length, length, m->tensors) &&
           put_table(b, &s->all_table[0], grads, m->tensors) &&
           put_table(b, &s->all_table[1], totals, m->tensors);
}

static bool put_tables(Steps *s)
{
    const Model *m = s->model;
    return put_lengths(s) &&
           put_pieces(s, W, m->weights, (size_t)type_size(m->config.type), false) &&
           put_pieces(s, G, m->grads, 4, false) && put_pieces(s, TOTAL, s->total, 4, false) &&
           put_pieces(s, FIRST, s->first, 4, true) && put_pieces(s, SECOND, s->second, 4, true) &&
           put_pieces(s, MASTER, s->master, 4, true);
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

/* This rank's piece of the tensor, if it has one. */
static bool set_master(Steps *s, const Tensor *t, const float *w)
{
    for (int i = 0; i < s->pieces; i++) {
        const Piece *p = &s->piece[i];
        if (p->tensor == t)
            return !tile_buffer_upload(s->master, p->own * 4, w + (p->at - t->at), p->n * 4, NULL);
    }
    return true;
}

bool steps_set(Steps *s, const Tensor *t, const float *w)
{
    const Model *m = s->model;
    size_t n = (size_t)t->rows * (size_t)t->cols;
    if (m->config.type == F32) return !tile_buffer_upload(m->weights, t->at * 4, w, n * 4, NULL);
    uint16_t *half = malloc(n * sizeof *half);
    for (size_t i = 0; half && i < n; i++) half[i] = narrow(w[i], m->config.type);
    bool good = half && !tile_buffer_upload(m->weights, t->at * 2, half, n * 2, NULL) &&
                set_master(s, t, w);
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
            w[k] = t->rows == 1 ? 1 : size * (float)normal_at(seed, t->chance + k);
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
    const size_t own = m->size / (size_t)ranks_count();
    return list_pieces(s) && zeros(b, &s->master, m->config.type == F32 ? 0 : own, 4) &&
           zeros(b, &s->first, own, 4) && zeros(b, &s->second, own, 4) &&
           zeros(b, &s->total, m->size, 4) && zeros(b, &s->part, SUMS, 4) &&
           zeros(b, &s->factor, 1, 4) && zeros(b, &s->norm, 1, 4) && zeros(b, &s->taken, 1, 4) &&
           zeros(b, &s->good, 1, 4) &&
           !tile_buffer_upload(m->scale, 0, &scale, 4, NULL) && put_tables(s) &&
           first_weights(s, seed);
}

void steps_close(Steps *s)
{
    buffers_free(&s->buffers);
    free(s->piece);
}

/* ---- a step ---- */

/* Of a table, the pieces from `from` on, before `to`. */
static tile_arg part_of(const tile_buffer *table, tile_dtype type, int from, int to)
{
    return tile_buffer_view_at(table, from, type, to - from);
}

bool steps_accumulate(Steps *s, bool first)
{
    int n = s->model->tensors;
    return RUN(&s->model->kernels, first ? ACCUMULATE_FIRST : ACCUMULATE,
               tile_u64_view(s->all_table[1], n), tile_u64_view(s->all_table[0], n),
               tile_i64_view(s->all_length, n), tile_f32(1));
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

/* Gradients of the pieces are summed over the ranks: those of one batch have begun on the way. */
static bool sum_gradients(Steps *s, bool accumulated)
{
    const Model *m = s->model;
    for (int i = 0; accumulated && i < m->buckets; i++)
        if (!share_begin(s->total, m->bucket[i].at, m->bucket[i].n)) return false;
    return share_end();
}

static bool gather_weights(Steps *s)
{
    const Model *m = s->model;
    for (int i = 0; i < m->buckets; i++)
        if (!share_gather(m->weights, type_dtype(m->config.type), m->bucket[i].at, m->bucket[i].n))
            return false;
    return true;
}

bool steps_step(Steps *s, bool accumulated, float rate, float decay)
{
    Kernels *k = &s->model->kernels;
    int n = s->pieces, grads = accumulated ? TOTAL : G;
    bool scaled = s->model->config.type == F16;
    tile_arg part = tile_f32_view(s->part, SUMS);
    return sum_gradients(s, accumulated) &&
           RUN(k, SQUARES, part_of(s->table[grads], TILE_U64, 0, n),
               part_of(s->length, TILE_I64, 0, n), part) &&
           share_sum(s->part, SUMS) &&
           RUN(k, CONTROL, part, tile_f32_view(s->factor, 1), tile_f32_view(s->norm, 1),
               tile_f32_view(s->model->scale, 1), tile_i32_view(s->taken, 1),
               tile_i32_view(s->good, 1), tile_f32(1), tile_f32(1), tile_f32(scaled ? 2 : 1),
               tile_f32(scaled ? 0.5f : 1), tile_i32(500)) &&
           adam(s, grads, 0, s->matrices, rate, decay) &&
           adam(s, grads, s->matrices, n, rate, 0) && gather_weights(s);
}

bool steps_state(const Steps *s, int *taken, float *norm, float *scale)
{
    return !(tile_buffer_download(s->taken, 0, taken, 4, NULL) ||
             tile_buffer_download(s->norm, 0, norm, 4, NULL) ||
             tile_buffer_download(s->model->scale, 0, scale, 4, NULL));
}
