/* emu_mma.c: matrix instructions: d = a . b + c of a warp.
 *
 * Which lane holds what is written here as formulas, as in the vendors' documents (PTX ISA,
 * "Matrix fragments for mma"; AMD's matrix instruction calculator), and not taken from the
 * compiler's layouts: test/unit/mma_test.c compares the two.
 *
 * Products and sums of floats are exact as far as f64 goes, and rounded once to the type of d
 * (hardware rounds or truncates in between; exactly representable results are equal). f64 is a
 * chain of fma, as in hardware; integers wrap; in the ring all are integers of their width. */
#include <math.h>

#include "runtime/emu/emu.h"
#include "runtime/runtime.h"
#include <string.h>

enum { SIDE = 32, CELLS = 2048 }; /* of the largest matrix: rows, columns; all of it */

typedef struct mma_call {
    tl_mma_kind kind;
    uint32_t k, type[3];
    bool ring;
    const uint32_t *in[3];
    uint32_t *out;
    uint32_t scale_type, scales[2], bytes; /* of products with scales; else 0 */
} mma_call;

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
    case TL_MMA_MFMA16R:
    case TL_MMA_MFMA64: return (shape){16, 16, 64, true};
    case TL_MMA_MFMA32:
    case TL_MMA_MFMA32R: return (shape){32, 32, 64, true};
    case TL_MMA_WMMA1: return (shape){16, 16, 32, false};
    case TL_MMA_WMMA1T:
    case TL_MMA_WMMA2:
    case TL_MMA_WMMA3: break;
    }
    return (shape){16, 16, 32, true};
}

/* Do both halves of a warp hold the operands? */
static bool has_copies(tl_mma_kind kind)
{
    return kind == TL_MMA_WMMA1 || kind == TL_MMA_WMMA1T;
}

static bool is_nvidia(tl_mma_kind kind)
{
    return kind == TL_MMA_M16N8 || kind == TL_MMA_M8N8;
}

/* Element e of a lane: where it is along M or N (*out_free), and along K. per: elements of a
 * word. */
static void operand_cell(tl_mma_kind kind, int operand, uint32_t k, uint32_t per, uint32_t lane,
                         uint32_t e, uint32_t *out_free, uint32_t *out_k)
{
    bool results = kind == TL_MMA_MFMA16R || kind == TL_MMA_MFMA32R;
    uint32_t word = e / per, part = e % per;
    bool wide = kind == TL_MMA_M16N8 && operand == 0; /* rows 8 apart: words 0 and 1 */
    shape s = shape_of(kind);
    if (is_nvidia(kind)) {
        *out_free = (lane >> 2) + (wide ? 8 * (word & 1) : 0);
        *out_k = per * (lane & 3) + part + 4 * per * (wide ? word >> 1 : word);
    } else { /* parts of K in lanes that are s.m apart, of so many neighbours at most */
        uint32_t parts = has_copies(kind) ? 1 : s.lanes / s.m, n = k / parts;
        uint32_t most = results ? 4 : kind == TL_MMA_WMMA3 ? 4 * per : 16;
        n = n < most ? n : most;
        *out_free = lane % s.m;
        *out_k = e % n + n * (lane / s.m % parts) + e / n * n * parts;
    }
}

/* Element e of a lane's C and D, of the instruction (before it is transposed). */
static void result_cell(tl_mma_kind kind, uint32_t lane, uint32_t e, uint32_t *out_i,
                        uint32_t *out_j)
{
    uint32_t side = shape_of(kind).m, part = lane / side;
    *out_j = lane % side;
    switch (kind) {
    case TL_MMA_M16N8:
    case TL_MMA_M8N8:
        *out_i = (lane >> 2) + 8 * (e >> 1);
        *out_j = 2 * (lane & 3) + (e & 1);
        return;
    case TL_MMA_MFMA16:
    case TL_MMA_MFMA16R:
    case TL_MMA_MFMA32R:
    case TL_MMA_MFMA32: *out_i = 8 * (e / 4) + 4 * part + e % 4; return;
    case TL_MMA_MFMA64: *out_i = part + 4 * e; return;
    case TL_MMA_WMMA1:
    case TL_MMA_WMMA1T: *out_i = 2 * e + part; return;
    case TL_MMA_WMMA2:
    case TL_MMA_WMMA3: *out_i = 8 * part + e; return;
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

void tl_emu_mma_scale(tl_mma_kind kind, int operand, uint32_t free, uint32_t block,
                      uint32_t *out_lane, uint32_t *out_byte)
{
    bool nvidia = is_nvidia(kind);
    *out_byte = nvidia ? block : 0;
    if (!nvidia)
        *out_lane = free + shape_of(kind).m * block;
    else /* rows 8 apart: in the next lane */
        *out_lane = 4 * (free % 8) + (operand == 0 ? free / 8 : 0);
}

/* ---- numbers ---- */

uint32_t tl_emu_type_bytes(uint32_t type)
{
    return ((uint32_t)tile_dtype_bits((tile_dtype)type) + 7) / 8;
}

tl_emu_number tl_emu_number_of(uint32_t type, uint64_t bits, bool integer, bool tf32)
{
    tf32 = tf32 && type == TILE_F32;
    if (!integer)
        return (tl_emu_number){
            .f = tl_decode_float((tile_dtype)type, tf32 ? bits & 0xffffe000 : bits)};
    unsigned up = 64 - 8 * tl_emu_type_bytes(type);
    return (tl_emu_number){.i = type == TILE_U8 ? bits : (uint64_t)((int64_t)(bits << up) >> up)};
}

static bool is_integer(const mma_call *x)
{
    return x->ring || x->type[2] == TILE_I32;
}

/* Loads one lane's operand, n elements, into its cells of the matrix. */
static void load(const mma_call *x, int operand, const uint16_t *at, uint32_t n, tl_emu_number *to)
{
    uint32_t type = x->type[operand], bytes = tl_emu_type_bytes(type);
    bool integer = is_integer(x), tf32 = x->kind == TL_MMA_M16N8 && operand < 2;
    TL_INVARIANT_VOID(bytes > 0 && bytes <= sizeof *to, "an element of %u bytes", bytes);
    for (uint32_t e = 0; e < n; e++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)x->in[operand] + (size_t)bytes * e, bytes);
        to[at[e]] = tl_emu_number_of(type, bits, integer, tf32);
    }
}

/* Stores one lane's part of the result. */
static void store(const mma_call *x, const uint16_t *at, uint32_t n, const tl_emu_number *from)
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

/* Where the elements of all lanes are in a matrix, whose rows follow each other. */
typedef struct cells {
    uint32_t key; /* what they are of; 0 for nothing */
    uint32_t n;   /* elements of a lane */
    uint16_t at[CELLS];
} cells;

struct tl_emu_matrices {
    cells kept[3]; /* computed once: most kernels use one kind of instruction only */
    tl_emu_number in[3][CELLS];
};

static struct tl_emu_matrices *matrices_of(tl_emu_block *b)
{
    if (!b->matrices) {
        b->matrices = tl_emu_grown(b, NULL, 1, sizeof *b->matrices);
        memset(b->matrices, 0, sizeof *b->matrices);
    }
    return b->matrices;
}

static const cells *cells_of(cells *kept, const mma_call *x, int operand)
{
    cells *p = &kept[operand];
    uint32_t bytes = tl_emu_type_bytes(x->type[operand]), per = bytes < 4 ? 4 / bytes : 1;
    uint32_t k = operand == 2 ? 1 : x->k, key = (uint32_t)x->kind << 16 | k << 8 | per;
    if (p->key == key)
        return p;
    shape s = shape_of(x->kind);
    uint32_t copies = has_copies(x->kind) && operand < 2 ? 2 : 1, row, column;
    uint32_t all = operand == 0 ? s.m * k : operand == 1 ? s.n * k : s.m * s.n;
    uint32_t columns = operand == 0 ? k : s.n;
    TL_INVARIANT_OR(p,
                    s.m <= SIDE && s.n <= SIDE && all * copies <= CELLS &&
                        all * copies % s.lanes == 0,
                    "a product of %u x %u x %u by %u lanes", s.m, s.n, k, s.lanes);
    p->key = key;
    p->n = all * copies / s.lanes;
    for (uint32_t lane = 0; lane < s.lanes; lane++)
        for (uint32_t e = 0; e < p->n; e++) {
            tl_emu_mma_cell(x->kind, operand, k, per, lane, e, &row, &column);
            TL_INVARIANT_OR(p, column < columns && row * columns + column < all,
                            "element %u of lane %u at %u, %u", e, lane, row, column);
            p->at[lane * p->n + e] = (uint16_t)(row * columns + column);
        }
    return p;
}

/* c += a * b for one row; for each element, k ascends. */
static void integer_row(const tl_emu_number *a, const tl_emu_number *b, tl_emu_number *c,
                        uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t column = 0; column < n; column++)
            c[column].i += a[i].i * b[i * n + column].i;
}

static void float_row(const tl_emu_number *a, const tl_emu_number *b, tl_emu_number *c, uint32_t n,
                      uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t column = 0; column < n; column++)
            c[column].f = fma(a[i].f, b[i * n + column].f, c[column].f);
}

/* All lanes have arrived; each gets its part of the result. */
static void multiply(tl_emu_block *block, void *const *mine)
{
    struct tl_emu_matrices *matrices = matrices_of(block);
    tl_emu_number(*in)[CELLS] = matrices->in;
    mma_call *const *lanes = (mma_call *const *)mine;
    const mma_call *first = lanes[0];
    shape s = shape_of(first->kind);
    TL_EMU_INVARIANT(block, block->current->site, block->lanes == s.lanes,
                     "a product of %u lanes in a warp of %u", s.lanes, block->lanes);
    for (int operand = 0; operand < 3; operand++) {
        const cells *p = cells_of(matrices->kept, first, operand);
        for (uint32_t lane = 0; lane < s.lanes; lane++)
            load(lanes[lane], operand, &p->at[lane * p->n], p->n, in[operand]);
    }
    for (uint32_t row = 0; row < s.m; row++)
        (is_integer(first) ? integer_row : float_row)(&in[0][row * first->k], in[1],
                                                      &in[2][row * s.n], s.n, first->k);
    const cells *p = cells_of(matrices->kept, first, 2);
    for (uint32_t lane = 0; lane < s.lanes; lane++)
        store(lanes[lane], &p->at[lane * p->n], p->n, in[2]);
}

/* ---- with scales ---- */

static double scale_value(uint32_t type, uint32_t code)
{
    if (type == TILE_U8)
        return code == 255 ? (double)NAN : ldexp(1.0, (int)code - 127);
    return tl_decode_float(TILE_F8E4M3, code & 0x7f);
}

/* Scale number `block` along K of a row of A or a column of B. */
static double scale_at(mma_call *const *lanes, int operand, uint32_t free, uint32_t block)
{
    uint32_t lane, byte, first = lanes[0]->bytes >> 8 * operand & 255;
    tl_emu_mma_scale(lanes[0]->kind, operand, free, block, &lane, &byte);
    TL_INVARIANT_OR(0, first + byte < 4, "a scale in byte %u of a word", first + byte);
    return scale_value(lanes[0]->scale_type,
                       lanes[lane]->scales[operand] >> 8 * (first + byte) & 255);
}

/* One lane's operand, n bytes, into its cells of the matrix as numbers times their scales; of a
 * pair the second one follows along K. */
static void load_scaled(mma_call *const *lanes, uint32_t lane, int operand, const uint16_t *at,
                        uint32_t n, tl_emu_number *to)
{
    const mma_call *x = lanes[0];
    bool pairs = x->type[operand] == TILE_U8;
    uint32_t width = shape_of(x->kind).n, per = pairs ? 2 : 1,
             each = x->scale_type == TILE_U8 ? 32 : 16;
    for (uint32_t e = 0; e < n; e++) {
        uint32_t code = ((const uint8_t *)lanes[lane]->in[operand])[e];
        for (uint32_t i = 0; i < per; i++) {
            uint32_t free = operand == 0 ? at[e] / x->k : at[e] % width,
                     k = (operand == 0 ? at[e] % x->k : at[e] / width) * per + i;
            bool f4 = pairs || x->type[operand] == TILE_F4E2M1;
            double v = f4 ? tl_decode_float(TILE_F4E2M1, code >> 4 * i & 15)
                             : tl_decode_float((tile_dtype)x->type[operand], code);
            to[operand == 0 ? free * x->k * per + k : k * width + free].f =
                v * scale_at(lanes, operand, free, k / each);
        }
    }
}

/* As multiply. */
static void multiply_scaled(tl_emu_block *block, void *const *mine)
{
    struct tl_emu_matrices *matrices = matrices_of(block);
    tl_emu_number(*in)[CELLS] = matrices->in;
    mma_call *const *lanes = (mma_call *const *)mine;
    const mma_call *first = lanes[0];
    shape s = shape_of(first->kind);
    uint32_t k = first->k * (first->type[0] == TILE_U8 ? 2 : 1);
    TL_EMU_INVARIANT(block, block->current->site,
                     block->lanes == s.lanes && s.m * k <= CELLS && k * s.n <= CELLS,
                     "a product of %u lanes in a warp of %u", s.lanes, block->lanes);
    for (int operand = 0; operand < 3; operand++) {
        const cells *p = cells_of(matrices->kept, first, operand);
        for (uint32_t lane = 0; lane < s.lanes; lane++)
            if (operand == 2)
                load(lanes[lane], operand, &p->at[lane * p->n], p->n, in[operand]);
            else
                load_scaled(lanes, lane, operand, &p->at[lane * p->n], p->n, in[operand]);
    }
    for (uint32_t row = 0; row < s.m; row++)
        float_row(&in[0][row * k], in[1], &in[2][row * s.n], s.n, k);
    const cells *p = cells_of(matrices->kept, first, 2);
    for (uint32_t lane = 0; lane < s.lanes; lane++)
        store(lanes[lane], &p->at[lane * p->n], p->n, in[2]);
}

static void run(tl_leaf leaf, uint32_t site, mma_call *x, uint32_t types)
{
    tl_emu_block *b = tl_emu_now;
    bool scaled = tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_MMA_SCALED;
    for (int i = 0; i < 3; i++)
        x->type[i] = types >> 8 * i & 0xff;
    x->scale_type = scaled ? types >> 24 : 0;
    tl_emu_count(b, site, leaf);
    tl_emu_meet_warp(b, leaf, site, types, x, scaled ? multiply_scaled : multiply);
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
        mma_call x = {.kind = (tl_mma_kind)kind,                                                   \
                      .k = k,                                                                      \
                      .ring = ring != 0,                                                           \
                      .in = {a, b, c},                                                             \
                      .out = out};                                                                 \
        run(TL_LEAF_MMA_##na##_##nb##_##nc, site, &x, types);                                      \
    }
#define LEAF_MMA_SCALED(na, nb, nc, ...)                                                           \
    void tl_emu_mma_scaled_##na##_##nb##_##nc(                                                     \
        uint32_t site, uint32_t kind, uint32_t k, uint32_t types, uint32_t ring,                   \
        const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t sa, uint32_t sb,         \
        uint32_t bytes, uint32_t *out);                                                            \
    void tl_emu_mma_scaled_##na##_##nb##_##nc(                                                     \
        uint32_t site, uint32_t kind, uint32_t k, uint32_t types, uint32_t ring,                   \
        const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t sa, uint32_t sb,         \
        uint32_t bytes, uint32_t *out)                                                             \
    {                                                                                              \
        (void)ring;                                                                                \
        mma_call x = {.kind = (tl_mma_kind)kind,                                                   \
                      .k = k,                                                                      \
                      .in = {a, b, c},                                                             \
                      .out = out,                                                                  \
                      .scales = {sa, sb},                                                          \
                      .bytes = bytes};                                                             \
        run(TL_LEAF_MMA_SCALED_##na##_##nb##_##nc, site, &x, types);                               \
    }
#include "runtime/contract/leaf.def"
