/* emu_mma.c: matrix instructions: d = a . b + c of a warp.
 *
 * Which lane holds what is said here by formulas, as the vendors' documents have it (PTX ISA,
 * "Matrix fragments for mma"; AMD's matrix instruction calculator), and not taken from the
 * compiler's layouts: test/unit/mma_test.c compares the two.
 *
 * Products and sums of floats are exact as far as f64 goes, and rounded once to the type of d
 * (hardware rounds or cuts off in between; exactly representable results are equal). f64 is a chain
 * of fma, as hardware has it; integers wrap; in the ring all are integers of their width. */
#include <math.h>

#include "runtime/emu/emu.h"
#include "runtime/runtime.h"

enum { SIDE = 32 }; /* of the largest matrix: rows, columns, k */

typedef struct mma_call {
    tl_mma_kind kind;
    uint32_t k, type[3];
    bool ring;
    const uint32_t *in[3];
    uint32_t *out;
} mma_call;

typedef union element {
    double f;
    uint64_t i;
} element;

/* ---- who holds what ---- */

typedef struct shape {
    uint32_t m, n, lanes;
    bool transposed; /* the instruction's D is [n, m] */
} shape;

static shape shape_of(tl_mma_kind kind)
{
    switch (kind) {
    case TL_MMA_M16N8: return (shape){16, 8, 32, false};
    case TL_MMA_M8N8: return (shape){8, 8, 32, false};
    case TL_MMA_MFMA16:
    case TL_MMA_MFMA64: return (shape){16, 16, 64, true};
    case TL_MMA_MFMA32: return (shape){32, 32, 64, true};
    case TL_MMA_WMMA1: return (shape){16, 16, 32, false};
    case TL_MMA_WMMA1T:
    case TL_MMA_WMMA2: break;
    }
    return (shape){16, 16, 32, true};
}

/* Element e of a lane: where it is along M or N (*out_free), and along K. per: elements of a
 * word. */
static void operand_cell(tl_mma_kind kind, int operand, uint32_t k, uint32_t per, uint32_t lane,
                          uint32_t e, uint32_t *out_free, uint32_t *out_k)
{
    uint32_t group = lane >> 2, in_group = lane & 3, word = e / per, part = e % per;
    switch (kind) {
    case TL_MMA_M16N8:
        if (operand == 0) {
            *out_free = group + 8 * (word & 1);
            *out_k = per * in_group + part + 4 * per * (word >> 1);
        } else {
            *out_free = group;
            *out_k = per * in_group + part + 4 * per * word;
        }
        return;
    case TL_MMA_M8N8:
        *out_free = group;
        *out_k = per * in_group + part;
        return;
    case TL_MMA_MFMA16:
    case TL_MMA_MFMA64:
        *out_free = lane % 16;
        *out_k = k / 4 * (lane / 16) + e;
        return;
    case TL_MMA_MFMA32:
        *out_free = lane % 32;
        *out_k = k / 2 * (lane / 32) + e;
        return;
    case TL_MMA_WMMA1:
    case TL_MMA_WMMA1T: /* both halves of the lanes have the same */
        *out_free = lane % 16;
        *out_k = e;
        return;
    case TL_MMA_WMMA2:
        *out_free = lane % 16;
        *out_k = k / 2 * (lane / 16) + e;
        return;
    }
}

/* Element e of a lane's C and D, of the instruction (before it is transposed). */
static void result_cell(tl_mma_kind kind, uint32_t lane, uint32_t e, uint32_t *out_i,
                         uint32_t *out_j)
{
    uint32_t group = lane >> 2, in_group = lane & 3;
    switch (kind) {
    case TL_MMA_M16N8:
        *out_i = group + 8 * (e >> 1);
        *out_j = 2 * in_group + (e & 1);
        return;
    case TL_MMA_M8N8:
        *out_i = group;
        *out_j = 2 * in_group + e;
        return;
    case TL_MMA_MFMA16:
        *out_i = 4 * (lane / 16) + e;
        *out_j = lane % 16;
        return;
    case TL_MMA_MFMA64:
        *out_i = lane / 16 + 4 * e;
        *out_j = lane % 16;
        return;
    case TL_MMA_MFMA32:
        *out_i = 8 * (e / 4) + 4 * (lane / 32) + e % 4;
        *out_j = lane % 32;
        return;
    case TL_MMA_WMMA1:
    case TL_MMA_WMMA1T:
        *out_i = 2 * e + lane / 16;
        *out_j = lane % 16;
        return;
    case TL_MMA_WMMA2:
        *out_i = 8 * (lane / 16) + e;
        *out_j = lane % 16;
        return;
    }
}

void tl_emu_mma_cell(tl_mma_kind kind, int operand, uint32_t k, uint32_t per_word, uint32_t lane,
                      uint32_t e, uint32_t *out_row, uint32_t *out_column)
{
    uint32_t x, y;
    if (operand == 2) {
        result_cell(kind, lane, e, &x, &y);
        bool swap = shape_of(kind).transposed;
        *out_row = swap ? y : x;
        *out_column = swap ? x : y;
        return;
    }
    operand_cell(kind, operand, k, per_word, lane, e, &x, &y);
    *out_row = operand == 0 ? x : y;
    *out_column = operand == 0 ? y : x;
}

/* ---- numbers ---- */

uint32_t tl_emu_type_bytes(uint32_t type)
{
    return ((uint32_t)tile_dtype_bits((tile_dtype)type) + 7) / 8;
}

static uint64_t raw(const uint32_t *words, uint32_t bytes, uint32_t e)
{
    uint64_t v = 0;
    TL_INVARIANT_OR(0, bytes > 0 && bytes <= sizeof v, "an element of %u bytes", bytes);
    memcpy(&v, (const char *)words + (size_t)bytes * e, bytes);
    return v;
}

static int64_t sign_extended(uint64_t v, uint32_t bytes)
{
    unsigned up = 64 - 8 * bytes;
    return (int64_t)(v << up) >> up;
}

static bool is_integer(const mma_call *x)
{
    return x->ring || x->type[2] == TILE_I32;
}

/* Loads one lane's operand, n elements, into its cells of the matrix. */
static void load(const mma_call *x, int operand, const uint16_t *at, uint32_t n, element *to)
{
    uint32_t type = x->type[operand], bytes = tl_emu_type_bytes(type);
    const uint32_t *in = x->in[operand];
    bool tf32 = x->kind == TL_MMA_M16N8 && operand < 2;
    uint32_t seen = tf32 ? 0xffffe000 : UINT32_MAX; /* NVIDIA's take 10 bits of the fraction */
    if (is_integer(x))
        for (uint32_t e = 0; e < n; e++)
            to[at[e]].i =
                type == TILE_U8 ? raw(in, 1, e) : (uint64_t)sign_extended(raw(in, bytes, e), bytes);
    else if (type == TILE_F32)
        for (uint32_t e = 0; e < n; e++)
            to[at[e]].f = tl_decode_float(TILE_F32, in[e] & seen);
    else
        for (uint32_t e = 0; e < n; e++)
            to[at[e]].f = tl_decode_float((tile_dtype)type, raw(in, bytes, e));
}

/* Stores one lane's part of the result. */
static void store(const mma_call *x, const uint16_t *at, uint32_t n, const element *from)
{
    uint32_t bytes = tl_emu_type_bytes(x->type[2]);
    char *to = (char *)x->out;
    if (is_integer(x) || bytes == sizeof *from)
        for (uint32_t e = 0; e < n; e++)
            memcpy(to + (size_t)bytes * e, &from[at[e]], bytes); /* little-endian */
    else
        for (uint32_t e = 0; e < n; e++) {
            float f = (float)from[at[e]].f;
            memcpy(to + sizeof f * e, &f, sizeof f);
        }
}

/* ---- the product ---- */

/* Where the elements of all lanes are in a matrix of SIDE columns. */
typedef struct cells {
    uint32_t key; /* what they are of; 0 for nothing */
    uint32_t n;   /* elements of a lane */
    uint16_t at[2 * SIDE * SIDE];
} cells;

/* Do both halves of a warp hold the operands? */
static bool has_copies(tl_mma_kind kind)
{
    return kind == TL_MMA_WMMA1 || kind == TL_MMA_WMMA1T;
}

/* Computed once and kept: most kernels use one kind of instruction only. */
static const cells *cells_of(const mma_call *x, int operand)
{
    static _Thread_local cells kept[3];
    cells *p = &kept[operand];
    uint32_t bytes = tl_emu_type_bytes(x->type[operand]), per = bytes < 4 ? 4 / bytes : 1;
    uint32_t k = operand == 2 ? 1 : x->k, key = (uint32_t)x->kind << 16 | k << 8 | per;
    if (p->key == key)
        return p;
    shape s = shape_of(x->kind);
    uint32_t copies = has_copies(x->kind) && operand < 2 ? 2 : 1, row, column;
    uint32_t all = operand == 0 ? s.m * k : operand == 1 ? s.n * k : s.m * s.n;
    TL_INVARIANT_OR(p, s.m <= SIDE && s.n <= SIDE && k <= SIDE && all * copies % s.lanes == 0,
                    "a product of %u x %u x %u by %u lanes", s.m, s.n, k, s.lanes);
    p->key = key;
    p->n = all * copies / s.lanes;
    for (uint32_t lane = 0; lane < s.lanes; lane++)
        for (uint32_t e = 0; e < p->n; e++) {
            tl_emu_mma_cell(x->kind, operand, k, per, lane, e, &row, &column);
            TL_INVARIANT_OR(p, row < SIDE && column < SIDE, "element %u of lane %u at %u, %u", e,
                            lane, row, column);
            p->at[lane * p->n + e] = (uint16_t)(row * SIDE + column);
        }
    return p;
}

/* c += a * b for one row; for each element, k ascends. */
static void integer_row(const element *a, const element *b, element *c, uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t column = 0; column < n; column++)
            c[column].i += a[i].i * b[i * SIDE + column].i;
}

static void float_row(const element *a, const element *b, element *c, uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t column = 0; column < n; column++)
            c[column].f = fma(a[i].f, b[i * SIDE + column].f, c[column].f);
}

/* All lanes have arrived; each gets its part of the result. */
static void multiply(tl_emu_block *block, void *const *mine)
{
    element in[3][SIDE * SIDE];
    mma_call *const *lanes = (mma_call *const *)mine;
    const mma_call *first = lanes[0];
    shape s = shape_of(first->kind);
    TL_EMU_INVARIANT(block, block->current->site, block->lanes == s.lanes,
                     "a product of %u lanes in a warp of %u", s.lanes, block->lanes);
    for (int operand = 0; operand < 3; operand++) {
        const cells *p = cells_of(first, operand);
        for (uint32_t lane = 0; lane < s.lanes; lane++)
            load(lanes[lane], operand, &p->at[lane * p->n], p->n, in[operand]);
    }
    for (uint32_t row = 0; row < s.m * SIDE; row += SIDE)
        (is_integer(first) ? integer_row : float_row)(&in[0][row], in[1], &in[2][row], s.n,
                                                      first->k);
    const cells *p = cells_of(first, 2);
    for (uint32_t lane = 0; lane < s.lanes; lane++)
        store(lanes[lane], &p->at[lane * p->n], p->n, in[2]);
}

static void run(tl_leaf leaf, uint32_t site, mma_call *x, uint32_t types)
{
    tl_emu_block *b = tl_emu_now;
    for (int i = 0; i < 3; i++)
        x->type[i] = types >> 8 * i & 0xff;
    if (b->job->stats)
        tl_emu_block_count(b->watch, site, b->current->index, leaf);
    tl_emu_meet_warp(b, leaf, site, types, x, multiply);
}

/* Operands and the result are passed by address (codegen/leaf/leaf_emu.c). */
#define LEAF_MMA(na, nb, nc, ...)                                                                  \
    void tl_emu_mma_##na##_##nb##_##nc(uint32_t site, uint32_t kind, uint32_t k, uint32_t types,   \
                                       uint32_t ring, const uint32_t *a, const uint32_t *b,        \
                                       const uint32_t *c, uint32_t *out);                          \
    void tl_emu_mma_##na##_##nb##_##nc(uint32_t site, uint32_t kind, uint32_t k, uint32_t types,   \
                                       uint32_t ring, const uint32_t *a, const uint32_t *b,        \
                                       const uint32_t *c, uint32_t *out)                           \
    {                                                                                              \
        mma_call x = {(tl_mma_kind)kind, k, {0}, ring != 0, {a, b, c}, out};                       \
        run(TL_LEAF_MMA_##na##_##nb##_##nc, site, &x, types);                                      \
    }
#include "runtime/contract/leaf.def"
