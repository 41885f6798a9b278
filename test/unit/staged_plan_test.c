/* Plans of put, get and copy: pairs of layouts with the instruction and number of accesses that
 * they must have, and random pairs; each proved by enumeration. */
#include "ir/plan/layout_rules.h"
#include "ir/plan/staged_plan.h"
#include "test/unit/shared_layouts.h"
#include "test/unit/unit.h"
#include <stdlib.h>

static TlCtx ctx;

static const TlLayout *lay(const char *text)
{
    TlLayout *l = tl_layout_parse(&ctx.perm, text);
    if (!CHECK(l != NULL))
        fprintf(stderr, "    %s\n", text);
    return tl_layout_intern(&ctx, l ? l : tl_layout_empty(&ctx.perm, 1));
}

static const TlType *tile_of(TlDtype d, int rank, const int32_t *shape, const TlLayout *l)
{
    return tl_type_with_layout(&ctx, tl_type_tile(&ctx, d, rank, shape), l);
}

#define VECTOR  TL_BUF_VECTOR
#define MATRIX  TL_BUF_MATRIX
#define TRANS   TL_BUF_MATRIX_TRANS
#define BYTES   TL_BUF_MATRIX_8
#define COLUMNS TL_BUF_COLUMNS

#define MAY_BYTES (TL_BUF_MAY_MATRIX | TL_BUF_MAY_MATRIX_8)

/* fragments of mma.m16n8k16 over 4 warps: A of 128x64 (2 warps along M), B of 64x128 and its
 * transpose */
#define A_FRAG                                                                                     \
    "reg(0,1)(8,0)(0,8)(0,16)(0,32)(16,0)(32,0) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(64,0)(0,0)"
#define B_FRAG "reg(1,0)(8,0)(0,8)(0,16)(16,0)(32,0) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp(0,0)(0,32)"
#define B_FRAG_T                                                                                   \
    "reg(0,1)(0,8)(8,0)(16,0)(0,16)(0,32) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(0,0)(32,0)"
#define SWIZZLED   "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(16,0)(32,0)(64,0)"
#define SWIZZLED64 "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(16,0)(32,0)"
/* 64x64 of 4 bytes */
#define TF32_A "reg(8,0)(0,4)(0,8)(0,16)(0,32)(16,0) lane(0,1)(0,2)(1,0)(2,0)(4,0) warp(32,0)(0,0)"

static const struct {
    TlDtype dtype;
    int32_t shape[2];
    const char *tile, *buf;
    uint32_t flags;
    TlBufKind kind;
    int words;
    uint32_t nregs, naccesses;
} rows[] = {
    /* what ldmatrix is for */
    {TL_F16, {128, 64}, A_FRAG, SWIZZLED, TL_BUF_MAY_MATRIX, MATRIX, 4, 8, 16},
    {TL_F16, {128, 64}, A_FRAG, SWIZZLED, 0, VECTOR, 0, 2, 64},
    {TL_F16, {64, 64}, B_FRAG, SWIZZLED64, TL_BUF_MAY_MATRIX, TRANS, 4, 8, 8},
    {TL_F16, {64, 64}, B_FRAG, SWIZZLED64, 0, VECTOR, 0, 1, 64},
    {TL_F16, {64, 64}, B_FRAG_T, SWIZZLED64, TL_BUF_MAY_MATRIX, MATRIX, 4, 8, 8},
    {TL_F32,
     {64, 64},
     TF32_A,
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(1,4)(2,8)(4,16)(0,32)(8,0)(16,0)(32,0)",
     TL_BUF_MAY_MATRIX,
     MATRIX,
     4,
     4,
     16},
    /* bytes: four in a word; transposed there is an instruction for 16 columns, on some machines */
    {TL_I8,
     {32, 32},
     "reg(0,1)(0,2)(8,0)(0,16) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(16,0)",
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(1,16)(2,0)(4,0)(8,0)(16,0)",
     TL_BUF_MAY_MATRIX,
     MATRIX,
     4,
     16,
     1},
    {TL_I8,
     {32, 32},
     "reg(1,0)(2,0)(0,8)(16,0) lane(4,0)(8,0)(0,1)(0,2)(0,4) warp(0,16)",
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(1,16)(2,0)(4,0)(8,0)(16,0)",
     TL_BUF_MAY_MATRIX,
     VECTOR,
     0,
     1,
     16},
    {TL_I8,
     {32, 32},
     "reg(1,0)(2,0)(0,8)(16,0) lane(4,0)(8,0)(0,1)(0,2)(0,4) warp(0,16)",
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(1,16)(2,0)(4,0)(8,0)(16,0)",
     MAY_BYTES,
     BYTES,
     4,
     16,
     1},
    {TL_F8E4M3,
     {16, 16},
     "reg(1,0)(2,0)(0,8) lane(4,0)(8,0)(0,1)(0,2)(0,4) warp",
     "offset(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,0)(8,0)",
     MAY_BYTES,
     BYTES,
     2,
     8,
     1},
    {TL_I8, /* as operands of 16 bits take it: rows 1 and 8 in a word */
     {32, 32},
     "reg(1,0)(8,0)(0,8)(0,16)(16,0) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp",
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(1,16)(2,0)(4,0)(8,0)(16,0)",
     MAY_BYTES,
     BYTES,
     4,
     16,
     2},
    {TL_I8, /* the warp, not a register, has the other 8 columns */
     {32, 16},
     "reg(1,0)(2,0)(16,0) lane(4,0)(8,0)(0,1)(0,2)(0,4) warp(0,8)",
     "offset(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,0)(8,0)(16,0)",
     MAY_BYTES,
     VECTOR,
     0,
     1,
     8},
    /* sums in bytes, put transposed */
    {TL_I8,
     {16, 32},
     "reg(0,1)(8,0)(0,8)(0,16) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp",
     "offset(1,0)(2,0)(4,0)(8,0)(0,1)(0,2)(0,4)(0,8)(0,16)",
     TL_BUF_WRITES | MAY_BYTES,
     BYTES,
     4,
     16,
     1},
    {TL_I8,
     {16, 8},
     "reg(0,1)(8,0) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp",
     "offset(1,0)(2,0)(4,0)(8,0)(0,1)(0,2)(0,4)",
     TL_BUF_WRITES | MAY_BYTES,
     BYTES,
     1,
     4,
     1},
    {TL_I8, /* other threads have the same */
     {16, 8},
     "reg(0,1)(8,0) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(0,0)",
     "offset(1,0)(2,0)(4,0)(8,0)(0,1)(0,2)(0,4)",
     TL_BUF_WRITES | MAY_BYTES,
     VECTOR,
     0,
     1,
     4},
    /* columns: rows of 16 elements, of which lanes bring 8 bytes each */
    {TL_F16,
     {64, 64},
     "reg(1,0)(2,0)(4,0)(16,0)(32,0)(0,32) lane(0,1)(0,2)(0,4)(0,8)(0,16)(8,0) warp",
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,16)(2,32)(4,0)(8,0)(16,0)(32,0)",
     TL_BUF_MAY_COLUMNS,
     COLUMNS,
     2,
     4,
     16},
    {TL_F16,
     {64, 64},
     "reg(1,0)(2,0)(4,0)(16,0)(32,0)(0,32) lane(0,1)(0,2)(0,4)(0,8)(0,16)(8,0) warp",
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,16)(2,32)(4,0)(8,0)(16,0)(32,0)",
     0,
     VECTOR,
     0,
     1,
     64},
    {TL_I8,
     {32, 32},
     "reg(1,0)(2,0)(4,0)(8,0) lane(0,1)(0,2)(0,4)(0,8)(0,16)(16,0) warp",
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(1,0)(2,0)(4,16)(8,0)(16,0)",
     TL_BUF_MAY_COLUMNS,
     COLUMNS,
     2,
     8,
     2},
    /* rows the other way round: vectors */
    {TL_F16,
     {32, 64},
     "reg(0,1)(0,2)(0,4)(0,16)(0,32) lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,8) warp",
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(16,0)",
     TL_BUF_MAY_COLUMNS,
     VECTOR,
     0,
     8,
     4},
    /* one or two matrices */
    {TL_F16,
     {8, 8},
     "reg(0,1) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp",
     "offset(0,1)(0,2)(0,4)(1,0)(2,0)(4,0)",
     TL_BUF_MAY_MATRIX,
     VECTOR,
     0,
     2,
     1},
    {TL_F16,
     {16, 8},
     "reg(0,1)(8,0) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp",
     "offset(0,1)(0,2)(0,4)(1,0)(2,0)(4,0)(8,0)",
     TL_BUF_MAY_MATRIX,
     MATRIX,
     2,
     4,
     1},
    {TL_F16,
     {8, 8},
     "reg(1,0) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp",
     "offset(0,1)(0,2)(0,4)(1,0)(2,0)(4,0)",
     TL_BUF_MAY_MATRIX,
     TRANS,
     1,
     2,
     1},
    {TL_F16,
     {16, 8},
     "reg(1,0)(8,0) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp",
     "offset(0,1)(0,2)(0,4)(1,0)(2,0)(4,0)(8,0)",
     TL_BUF_MAY_MATRIX,
     TRANS,
     2,
     4,
     1},
    /* no power of two: 48 rows are 3 chunks */
    {TL_F16,
     {48, 16},
     "reg(0,1)(8,0)(0,8) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp -> 16x16 * 3x1",
     "offset(0,1)(0,2)(0,4)(0,8)(1,8)(2,0)(4,0)(8,0) -> 16x16 * 3x1",
     TL_BUF_MAY_MATRIX,
     MATRIX,
     4,
     8,
     3},
    {TL_F16,
     {48, 16},
     "reg(0,1)(8,0)(0,8) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp -> 16x16 * 3x1",
     "offset(0,1)(0,2)(0,4)(0,8)(1,8)(2,0)(4,0) -> 8x16 * 6x1",
     TL_BUF_MAY_MATRIX,
     MATRIX,
     2,
     4,
     6},
    /* past the end there is no ldmatrix */
    {TL_F16,
     {47, 16},
     "reg(0,1)(8,0)(0,8) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp -> 16x16 * 3x1",
     "offset(0,1)(0,2)(0,4)(0,8)(1,8)(2,0)(4,0)(8,0) -> 16x16 * 3x1",
     TL_BUF_MAY_MATRIX,
     VECTOR,
     0,
     2,
     12},
    /* wide vectors; order matters to a copy only */
    {TL_F32,
     {16, 16},
     "reg(0,1)(0,2) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)",
     "offset(0,1)(0,2)(0,4)(0,8)(1,4)(2,8)(4,0)(8,0)",
     TL_BUF_MAY_MATRIX,
     VECTOR,
     0,
     4,
     1},
    {TL_F32,
     {16, 16},
     "reg(0,2)(0,1) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)",
     "offset(0,1)(0,2)(0,4)(0,8)(1,4)(2,8)(4,0)(8,0)",
     0,
     VECTOR,
     0,
     4,
     1},
    {TL_F32,
     {16, 16},
     "reg(0,2)(0,1) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)",
     "offset(0,1)(0,2)(0,4)(0,8)(1,4)(2,8)(4,0)(8,0)",
     TL_BUF_IN_ORDER,
     VECTOR,
     0,
     1,
     4},
    {TL_F32,
     {16, 16},
     "reg(0,1)(0,3) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)",
     "offset(0,1)(0,2)(0,4)(0,8)(1,4)(2,8)(4,0)(8,0)",
     0,
     VECTOR,
     0,
     4,
     1},
    /* a lane in the middle of a vector */
    {TL_F32,
     {4, 8},
     "reg(0,1)(0,4) lane(0,2)(1,0)(2,0)",
     "offset(0,1)(0,2)(0,4)(1,0)(2,0)",
     0,
     VECTOR,
     0,
     2,
     2},
    /* the end of the tile is in the middle of a vector for a get, in a buffer that reaches on */
    {TL_F32,
     {4, 6},
     "reg(0,1)(0,2) lane(0,4)(1,0)(2,0)",
     "offset(0,1)(0,2)(0,4)(1,0)(2,0)",
     0,
     VECTOR,
     0,
     2,
     2},
    {TL_F32,
     {4, 6},
     "reg(0,1)(0,2) lane(0,4)(1,0)(2,0)",
     "offset(0,1)(0,2)(0,4)(1,0)(2,0)",
     TL_BUF_WRITES,
     VECTOR,
     0,
     4,
     1},
    {TL_F32,
     {4, 6},
     "reg(0,1)(0,2) lane(0,4)(1,0)(2,0)",
     "offset(0,1)(1,0)(2,0) -> 4x2 * 1x3",
     TL_BUF_WRITES,
     VECTOR,
     0,
     2,
     2},
};

static void one_row(size_t i)
{
    const TlType *tile = tile_of(rows[i].dtype, 2, rows[i].shape, lay(rows[i].tile));
    const TlType *buf = tl_type_buf(&ctx, rows[i].dtype, 2, rows[i].shape, lay(rows[i].buf), 2);
    TlBufPlan *p = tl_buf_plan(&ctx.perm, tile, buf, 16, rows[i].flags);
    const char *fault = tl_buf_prove(&ctx.perm, p, tile, buf, rows[i].flags);
    bool ok = CHECK(!fault);
    ok &= CHECK_INT(p->kind, rows[i].kind);
    ok &= CHECK_INT(p->words, rows[i].words);
    ok &= CHECK_INT(p->nregs, rows[i].nregs);
    ok &= CHECK_INT(p->naccesses, rows[i].naccesses);
    if (!ok)
        fprintf(stderr, "    row %zu: %s\n", i, fault ? fault : "");
}

/* ---- the proof sees what is wrong ---- */

static void wrong_plans_are_refused(void)
{
    const TlType *tile = tile_of(TL_F16, 2, (int32_t[]){128, 64}, lay(A_FRAG));
    const TlType *buf = tl_type_buf(&ctx, TL_F16, 2, (int32_t[]){128, 64}, lay(SWIZZLED), 1);
    TlBufPlan *p = tl_buf_plan(&ctx.perm, tile, buf, 16, TL_BUF_MAY_MATRIX);
    CHECK(!tl_buf_prove(&ctx.perm, p, tile, buf, 0));
    p->inner.lane[3] ^= 16;
    CHECK(tl_buf_prove(&ctx.perm, p, tile, buf, 0));
    p->inner.lane[3] ^= 16;
    p->accesses[5].inner ^= 32;
    CHECK(tl_buf_prove(&ctx.perm, p, tile, buf, 0));
    p->accesses[5].inner ^= 32;
    p->accesses[5].regs[3] = p->accesses[5].regs[2];
    CHECK(tl_buf_prove(&ctx.perm, p, tile, buf, 0));
    p = tl_buf_plan(&ctx.perm, tile, buf, 16, TL_BUF_MAY_MATRIX);
    p->naccesses--;
    CHECK(tl_buf_prove(&ctx.perm, p, tile, buf, 0));
    tile = tile_of(TL_F32, 1, (int32_t[]){5}, lay("reg(1) lane(2)(4)"));
    buf = tl_type_buf(&ctx, TL_F32, 1, (int32_t[]){5}, lay("offset(1) -> 2 * 3"), 1);
    p = tl_buf_plan(&ctx.perm, tile, buf, 16, TL_BUF_WRITES);
    CHECK(p->accesses[0].guarded && p->nfar == 1);
    CHECK(!tl_buf_prove(&ctx.perm, p, tile, buf, TL_BUF_WRITES));
    p->accesses[0].guarded = false;
    CHECK(tl_buf_prove(&ctx.perm, p, tile, buf, TL_BUF_WRITES));
}

/* ---- random pairs ---- */

static uint64_t random_state = 17;
static uint32_t below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

/* Chunk bits of a shape dealt to inputs at random; with `mixed`, inputs XOR others in. spare: bits
 * of padding that the chunks may have. */
static const TlLayout *random_layout(const int32_t *shape, int nin, const TlInDim *in,
                                     const int *limit, int copies, int spare, bool mixed)
{
    TlLayout l = {.nin = (uint8_t)nin, .nout = 2, .reps = {1, 1, 1, 1, 1}};
    int used[3] = {0}, bits[2];
    memcpy(l.in, in, sizeof *in * (size_t)nin);
    for (int d = 0; d < 2; d++) {
        int most = 0;
        while (1 << most < shape[d])
            most++;
        bits[d] = (int)below((uint32_t)(most + spare + 1));
        if (bits[d] < most - 3)
            bits[d] = most - 3;
        l.out_bits[d] = (uint8_t)bits[d];
        l.reps[d] = (shape[d] + (1 << bits[d]) - 1) >> bits[d];
    }
    /* often in order, so that there is something for vectors and matrices */
    bool ordered = below(2);
    int at[2] = {0, 0};
    for (int left = bits[0] + bits[1]; left > 0; left--) {
        int d = (int)below(2), to = (int)below((uint32_t)nin);
        if (ordered && below(4))
            d = 1;
        if (at[d] == bits[d])
            d = 1 - d;
        if (used[to] >= limit[to])
            to = 0;
        l.basis[to][used[to]++][d] = 1 << (ordered ? at[d] : bits[d] - 1 - at[d]);
        at[d]++;
        if (to && copies && below(5) == 0 && used[to] < limit[to])
            used[to]++;
    }
    for (int i = 0; i < nin; i++)
        l.in_bits[i] = (uint8_t)(i == 0 ? used[i] : limit[i]);
    for (int n = mixed ? 4 : 0; n > 0; n--) {
        int i = (int)below((uint32_t)nin), k = (int)below((uint32_t)nin);
        int b = l.in_bits[i] ? (int)below(l.in_bits[i]) : 0,
            o = l.in_bits[k] ? (int)below(l.in_bits[k]) : 0;
        if ((i == k && b == o) || !l.in_bits[i] || !l.in_bits[k])
            continue;
        l.basis[i][b][0] ^= l.basis[k][o][0];
        l.basis[i][b][1] ^= l.basis[k][o][1];
    }
    return tl_layout_intern(&ctx, &l);
}

static const char *text_of(const TlLayout *l)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    tl_layout_print(&s, l);
    return s.text;
}

/* The fragment of a matrix instruction, grown to the tile: what ldmatrix may serve. */
static const TlLayout *fragment_layout(const int32_t *shape)
{
    static const char *const names[] = {"mma.v2.a16", "mma.v2.b16", "mma.v2.a8", "mma.v2.b8",
                                        "mma.v2.c"};
    int warps[2] = {(int)below(2), (int)below(2)}, order[2] = {1, 0};
    if (below(2))
        order[0] = 0, order[1] = 1;
    TlLayout *l = tl_layout_fragment(&ctx.perm, names[below(5)], warps, order);
    return tl_layout_intern(&ctx, tl_layout_cover(&ctx.perm, l, shape, order));
}

static int log2_of(int n)
{
    int bits = 0;
    while (1 << bits < n)
        bits++;
    return bits;
}

/* Rows or columns with rows of 16 bytes XORed. */
static const TlLayout *random_swizzled(const int32_t *shape, TlDtype d)
{
    bool turned = below(2);
    int rows_bits = log2_of(shape[turned]), cols_bits = log2_of(shape[!turned]);
    const TlLayout *l = swizzled_layout(&ctx.perm, rows_bits, cols_bits, 16 / tl_dtype_bytes(d),
                                        1 << below(3), 1 << below(4));
    return turned ? tl_layout_permuted(&ctx, l, (int64_t[]){1, 0}) : tl_layout_intern(&ctx, l);
}

static void random_pairs(void)
{
    static const TlDtype dtypes[] = {TL_I8, TL_F16, TL_F32, TL_F64};
    static const int32_t extents[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 48};
    static const TlInDim thread[3] = {TL_IN_REG, TL_IN_LANE, TL_IN_WARP}, offset = TL_IN_OFFSET;
    static const uint32_t flags[] = {0,
                                     TL_BUF_MAY_MATRIX,
                                     TL_BUF_WRITES,
                                     TL_BUF_WRITES | TL_BUF_IN_ORDER,
                                     TL_BUF_WRITES | TL_BUF_MAY_MATRIX,
                                     MAY_BYTES,
                                     TL_BUF_WRITES | MAY_BYTES};
    enum { FLAGS = sizeof flags / sizeof *flags };
    int kinds[COLUMNS + 1] = {0}, wide = 0, far = 0, guarded = 0;
    for (int i = 0; i < 1600; i++) {
        int32_t shape[2] = {extents[below(12)], extents[below(12)]};
        bool fragment = below(3) == 0;
        if (fragment)
            shape[0] = 16 << below(2), shape[1] = 16 << below(3);
        TlDtype d = dtypes[below(fragment ? 3 : 4)];
        int limit[3] = {12, below(2) ? 5 : 3 + (int)below(4), (int)below(3)}, most = 16;
        const TlLayout *l = fragment ? fragment_layout(shape)
                                     : random_layout(shape, 3, thread, limit, 1, 1, below(2));
        const TlLayout *m = fragment ? random_swizzled(shape, d)
                                     : random_layout(shape, 1, &offset, &most, 0, 1, below(2));
        const TlType *tile = tile_of(d, 2, shape, l), *buf = tl_type_buf(&ctx, d, 2, shape, m, 2);
        uint32_t f = flags[below(FLAGS)];
        TlBufPlan *p = tl_buf_plan(&ctx.perm, tile, buf, 1 << below(5), f);
        const char *fault = tl_buf_prove(&ctx.perm, p, tile, buf, f);
        kinds[p->kind]++;
        wide += p->nregs > 1;
        far += p->nfar > 0;
        guarded += p->accesses[0].guarded;
        if (!CHECK(!fault))
            fprintf(stderr, "    %s: %s and %s: %s\n", tl_type_str(&ctx, tile), text_of(l),
                    text_of(m), fault);
    }
    if (!CHECK(kinds[VECTOR] > 500 && kinds[MATRIX] > 10 && kinds[TRANS] > 5 && kinds[BYTES] > 5 &&
               wide > 200 && far > 100 && guarded > 50))
        fprintf(stderr, "    %d %d %d %d, %d wide, %d far, %d guarded\n", kinds[VECTOR],
                kinds[MATRIX], kinds[TRANS], kinds[BYTES], wide, far, guarded);
}

int main(void)
{
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlGuard g;
    if (TL_GUARD(&g)) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            one_row(i);
        wrong_plans_are_refused();
        random_pairs();
        tl_guard_pop(&g);
    } else {
        CHECK(!"fault");
        fprintf(stderr, "    %s\n", g.text);
    }
    tl_ctx_free(&ctx);
    return unit_result();
}
