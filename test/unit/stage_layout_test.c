/* Layouts of staged tiles: what is chosen for operands of matrix instructions, that every element
 * has a place of its own, and that the costs are those of a count over banks. */
#include "ir/plan/stage_layout.h"
#include "test/unit/shared_layouts.h"
#include "test/unit/unit.h"
#include <string.h>

static TlCtx ctx;

enum { BANKS = 32, WORD = 4, VECTOR = 16, LDM = TL_STAGING_LDMATRIX | TL_STAGING_IMAGE };

static const TlLayout *lay(const char *text, int rank, const int32_t *shape)
{
    static const int order[] = {4, 3, 2, 1, 0};
    TlLayout *l = tl_layout_parse(&ctx.perm, text);
    if (!CHECK(l != NULL))
        fprintf(stderr, "    %s\n", text);
    return tl_layout_intern(&ctx,
                            tl_layout_cover(&ctx.perm, l, shape, order + TL_LAYOUT_MAX_OUT - rank));
}

/* ---- the image is TMA's ---- */

static void test_image(void)
{
    for (int bytes = 32; bytes <= 128; bytes *= 2)
        for (int elem = 1; elem <= 8; elem *= 2)
            for (int rows = 3; rows < 8; rows++)
                for (int cols = 5; cols < 9; cols++) {
                    if (elem << cols < bytes)
                        continue;
                    const TlLayout *nv =
                        nvmma_layout(&ctx.perm, rows, cols, 8 * elem, bytes);
                    const TlLayout *image = tl_staging_image(&ctx.perm, 2, (int[]){rows, cols},
                                                             elem, 1, bytes, TL_STAGING_PIECE);
                    CHECK(tl_layout_equal(nv, image));
                }
}

/* ---- costs against a count ---- */

static uint64_t offset_of(const TlLayout *shared, const int32_t *x)
{
    int32_t low[TL_LAYOUT_MAX_OUT];
    uint64_t rep = 0;
    for (int d = 0; d < shared->nout; d++) {
        low[d] = x[d] & ((1 << shared->out_bits[d]) - 1);
        rep = rep * (uint64_t)shared->reps[d] + (uint64_t)(x[d] >> shared->out_bits[d]);
    }
    int64_t at = tl_layout_solve(shared, TL_IN_OFFSET, low);
    CHECK(at >= 0);
    return (rep << tl_layout_in_bits(shared, TL_IN_OFFSET)) + (uint64_t)at;
}

/* Wavefronts of one access: vectors of `bytes` at offsets of the lanes; those that are the same are
 * one. */
static int count_wavefronts(const uint64_t *offset, int lanes, int bytes)
{
    int sum = 0, group = 128 / (bytes < WORD ? WORD : bytes);
    for (int from = 0; from < lanes; from += group) {
        uint64_t seen[64];
        int bank[BANKS] = {0}, n = 0, most = 0;
        for (int i = from; i < from + group && i < lanes; i++)
            for (int w = 0; w < (bytes + WORD - 1) / WORD; w++) {
                uint64_t word = offset[i] / WORD + (uint64_t)w;
                bool known = false;
                for (int k = 0; k < n; k++)
                    known |= seen[k] == word;
                if (known)
                    continue;
                seen[n++] = word;
                if (++bank[word % BANKS] > most)
                    most = bank[word % BANKS];
            }
        sum += most;
    }
    return sum;
}

/* A plain access of the first registers, all lanes of warp 0. */
static void check_plain(const TlLayout *l, const TlLayout *shared, int elem)
{
    TlStagingCost c = tl_staging_cost(&ctx.perm, elem, l, shared, false, 0);
    int vec = tl_staging_vector_bits(&ctx.perm, elem, l, shared);
    int lanes = 1 << tl_layout_in_bits(l, TL_IN_LANE);
    uint64_t offset[64];
    for (int lane = 0; lane < lanes; lane++) {
        uint32_t in[TL_LAYOUT_MAX_IN] = {0};
        int32_t x[TL_LAYOUT_MAX_OUT];
        in[tl_layout_in_index(l, TL_IN_LANE)] = (uint32_t)lane;
        tl_layout_apply_reg(l, 0, in, x);
        offset[lane] = (offset_of(shared, x) >> vec << vec) * (uint64_t)elem;
    }
    CHECK(c.accesses == (uint32_t)(tl_layout_registers(l) >> vec));
    CHECK(c.wavefronts == c.accesses * (uint32_t)count_wavefronts(offset, lanes, elem << vec));
}

static void check_places(const TlType *t, const TlLayout *shared)
{
    CHECK(is_invertible(shared) || shared->reps[0] * shared->reps[1] > 1);
    for (int d = 0; d < t->rank; d++)
        CHECK(tl_layout_extent(shared, d) >= t->shape[d] &&
              (shared->reps[d] - 1) << shared->out_bits[d] < t->shape[d]);
}

/* ---- operands ---- */

#define ROWS32     "reg(0,1)(0,2)(0,4) lane(0,8)(0,16)(1,0)(2,0)(4,0) warp(8,0)(16,0)"
#define ROWS64     "reg(0,1)(0,2)(0,4) lane(0,8)(0,16)(0,32)(1,0)(2,0) warp(4,0)(8,0)"
#define COLS       "reg(1,0)(2,0)(4,0) lane(8,0)(16,0)(32,0)(0,1)(0,2) warp(0,4)(0,8)"
#define MMA_A      "reg(0,1)(8,0)(0,8) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(0,0)(16,0)"
#define MMA_B      "reg(1,0)(8,0) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp(0,8)(0,0)"
#define MMA_A8     "reg(0,1)(0,2)(8,0)(0,16) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(0,0)(16,0)"
#define MMA_B32    "reg(4,0) lane(1,0)(2,0)(0,1)(0,2)(0,4) warp(0,8)(0,0)"
#define ROWS_F32   "reg(0,1)(0,2) lane(0,4)(0,8)(0,16)(1,0)(2,0) warp(4,0)(8,0)"
#define AMD_ROWS   "reg(0,1)(0,2)(0,4) lane(0,8)(0,16)(1,0)(2,0)(4,0)(8,0) warp(16,0)(32,0)"
#define AMD_ROWS64 "reg(0,1)(0,2)(0,4) lane(0,8)(0,16)(0,32)(1,0)(2,0)(4,0) warp(8,0)(16,0)"
#define MFMA_A     "reg(0,1)(0,2) lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,4) warp(0,0)(32,0)"
#define MFMA_B     "reg(1,0)(2,0) lane(0,1)(0,2)(0,4)(0,8)(0,16)(4,0) warp(0,32)(0,0)"
#define RDNA_QUADS "reg(0,1)(0,2)(0,4)(1,0)(2,0) lane(0,8)(0,16)(0,32)(0,64)(4,0) warp(8,0)(16,0)"
#define WMMA1_B    "reg(1,0)(2,0)(4,0)(8,0) lane(0,1)(0,2)(0,4)(0,8)(0,0) warp(0,16)(0,32)"

static const struct {
    TlDtype dtype;
    int32_t shape[TL_MAX_RANK];
    const char *put, *get;
    int row;
    uint32_t flags;
    uint32_t conflicts; /* at most */
    const char *layout; /* NULL: any */
} rows[] = {
    /* f16 by ldmatrix, as stored and transposed: TMA's image, no conflicts */
    {TL_F16,
     {128, 32},
     ROWS32,
     MMA_A,
     1,
     LDM,
     0,
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(1,0)(2,8)(4,16)(8,0)(16,0)(32,0)(64,0) -> 128x32"},
    {TL_F16,
     {128, 64},
     ROWS64,
     MMA_A,
     1,
     LDM,
     0,
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(16,0)(32,0)(64,0) -> 128x64"},
    {TL_F16,
     {32, 128},
     ROWS64,
     MMA_B,
     1,
     LDM,
     0,
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(16,0)(0,64) -> 32x128"},
    {TL_F16,
     {64, 128},
     COLS,
     MMA_A,
     0,
     LDM,
     0,
     "offset(1,0)(2,0)(4,0)(8,0)(16,0)(32,0)(8,1)(16,2)(32,4)(0,8)(0,16)(0,32)(0,64) -> 64x128"},
    {TL_F16, {64, 64}, COLS, MMA_B, 0, LDM, 0, NULL},
    /* small, and no powers of two */
    {TL_F16,
     {16, 16},
     ROWS32,
     MMA_A,
     1,
     LDM,
     0,
     "offset(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8)(8,0) -> 16x16"},
    {TL_F16, {48, 80}, ROWS32, MMA_A, 1, LDM, 0, NULL},
    {TL_F16, {20, 20}, ROWS32, MMA_A, 1, LDM, 0, NULL},
    /* bytes; words, where ldmatrix cannot turn */
    {TL_I8,
     {64, 128},
     "reg(0,1)(0,2)(0,4)(0,8) lane(0,16)(0,32)(0,64)(1,0)(2,0) warp(4,0)(8,0)",
     MMA_A8,
     1,
     LDM,
     0,
     NULL},
    {TL_F32, {32, 128}, ROWS_F32, MMA_B32, 1, LDM, 0, NULL},
    /* bytes, where it can */
    {TL_I8,
     {64, 128},
     "reg(0,1)(0,2)(0,4)(0,8) lane(0,16)(0,32)(0,64)(1,0)(2,0) warp(4,0)(8,0)",
     "reg(1,0)(2,0)(0,8)(16,0)(0,16)(0,32)(32,0) lane(4,0)(8,0)(0,1)(0,2)(0,4) warp(0,64)(0,0)",
     1,
     LDM | TL_STAGING_LDMATRIX_8,
     0,
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(0,64)(1,16)(2,32)(4,64)(8,0)(16,0)(32,0) -> 64x128"},
    /* AMD */
    {TL_F16, {128, 32}, AMD_ROWS, MFMA_A, 1, 0, 0, NULL},
    {TL_F16, {128, 64}, AMD_ROWS64, MFMA_A, 1, 0, 0, NULL},
    {TL_F16, {64, 128}, AMD_ROWS64, MFMA_B, 1, 0, 0, NULL},
    /* rows of 16 elements that transposing reads take are in different banks */
    {TL_F16,
     {64, 128},
     "reg(0,1)(0,2)(0,4)(16,0)(32,0) lane(0,8)(0,16)(0,32)(0,64)(1,0)(2,0) warp(4,0)(8,0)",
     "reg(1,0)(2,0)(4,0)(16,0)(32,0)(0,64) lane(0,1)(0,2)(0,4)(0,8)(0,16)(8,0) warp(0,0)(0,32)",
     1,
     TL_STAGING_COLUMNS,
     0,
     "offset(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,16)(2,32)(4,0)(8,0)(16,0)(32,0)(0,64) -> 64x128"},
    /* scales of rows, two each: a vector has those of four rows */
    {TL_U8,
     {128, 2},
     "lane(0,1)(1,0)(2,0)(4,0)(8,0) warp(16,0)(32,0)(64,0)",
     "reg(0,1)(16,0)(32,0)(64,0) lane(0,0)(0,0)(1,0)(2,0)(4,0) warp(0,0)(0,0)(8,0)",
     1,
     LDM,
     0,
     "offset(0,1)(16,0)(32,0)(1,0)(2,0)(4,0)(8,0)(64,0) -> 128x2"},
    /* quarters of a fragment ascend */
    {TL_F16,
     {32, 128},
     RDNA_QUADS,
     WMMA1_B,
     1,
     0,
     0,
     "offset(1,0)(2,0)(0,1)(0,8)(0,16)(0,32)(0,18)(0,36)(0,64)(4,0)(8,0)(16,0) -> 32x128"},
};

static void test_choice(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const TlType *t = tl_type_tile(&ctx, rows[i].dtype, 2, rows[i].shape);
        int elem = tl_dtype_bytes(rows[i].dtype);
        const TlLayout *put = lay(rows[i].put, 2, t->shape), *get = lay(rows[i].get, 2, t->shape);
        TlStagingUse use = {t, put, &get, 1, rows[i].row, rows[i].flags};
        const TlLayout *l = tl_staging_layout(&ctx, &ctx.perm, &use);
        TlStagingCost w = tl_staging_cost(&ctx.perm, elem, put, l, true, rows[i].flags);
        TlStagingCost r = tl_staging_cost(&ctx.perm, elem, get, l, false, rows[i].flags);
        TlSbuf s;
        tl_sbuf_init(&s, &ctx.perm);
        tl_layout_print(&s, l);
        if (!CHECK(w.conflicts + r.conflicts <= rows[i].conflicts &&
                   (!rows[i].layout || !strcmp(s.text, rows[i].layout))))
            fprintf(stderr, "    row %zu: %s, conflicts %u of put, %u of get\n", i, s.text,
                    w.conflicts, r.conflicts);
        check_places(t, l);
        check_plain(put, l, elem);
        check_plain(get, l, elem);
    }
}

int main(void)
{
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlGuard g;
    if (TL_GUARD(&g)) {
        test_image();
        test_choice();
        tl_guard_pop(&g);
    } else {
        CHECK(!"fault");
        fprintf(stderr, "    %s\n", g.text);
    }
    tl_ctx_free(&ctx);
    return unit_result();
}
