/* Matrix instructions: the compiler's layouts (ir/plan/mma.def, layout_shapes.c) against the
 * emulator's formulas, which say the same from the vendors' documents, lane by lane and element by
 * element; and the layouts of whole tiles. */
#include "codegen/leaf/leaves.h"
#include "ir/plan/mma.h"
#include "runtime/emu/emu.h"
#include "test/unit/unit.h"

static TlArena arena;

static void check_fragment(const TlMma *mma, int operand)
{
    const TlLayout *f = tl_mma_fragment(&arena, mma, operand);
    int bytes = tl_dtype_bytes(mma->type[operand]), wrong = 0;
    uint32_t per = bytes < 4 ? 4u / (uint32_t)bytes : 1;
    uint32_t lanes = 1u << tl_layout_in_bits(f, TL_IN_LANE);
    for (uint32_t lane = 0; lane < lanes; lane++)
        for (uint32_t e = 0; e < 1u << tl_layout_in_bits(f, TL_IN_REG); e++) {
            uint32_t in[TL_LAYOUT_MAX_IN] = {0}, row, column;
            int32_t at[TL_LAYOUT_MAX_OUT];
            in[tl_layout_in_index(f, TL_IN_REG)] = e;
            in[tl_layout_in_index(f, TL_IN_LANE)] = lane;
            tl_layout_apply(f, in, at);
            tl_emu_mma_cell(tl_leaf_mma_kind(mma), operand, (uint32_t)mma->k, per, lane, e, &row,
                             &column);
            wrong += (int32_t)row != at[0] || (int32_t)column != at[1];
        }
    if (!CHECK(wrong == 0))
        fprintf(stderr, "    %s, operand %d: %d elements elsewhere\n", mma->name, operand, wrong);
}

/* The lane that the instruction asks for a scale has it, in the register of the byte that it asks
 * for. */
static void check_scales(const TlMma *mma, int operand)
{
    const TlLayout *f = tl_mma_fragment(&arena, mma, operand);
    uint32_t rows = (uint32_t)(operand == TL_MMA_SA ? mma->m : mma->n),
             blocks = (uint32_t)(mma->k / mma->each);
    int wrong = 0;
    CHECK(tl_layout_extent(f, 0) == (int32_t)rows && tl_layout_extent(f, 1) == (int32_t)blocks);
    CHECK(tl_layout_is_surjective(f));
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t block = 0; block < blocks; block++) {
            uint32_t in[TL_LAYOUT_MAX_IN] = {0}, lane, byte;
            int32_t at[TL_LAYOUT_MAX_OUT];
            tl_emu_mma_scale(tl_leaf_mma_kind(mma), operand == TL_MMA_SB, row, block, &lane, &byte);
            in[tl_layout_in_index(f, TL_IN_REG)] = byte;
            in[tl_layout_in_index(f, TL_IN_LANE)] = lane;
            tl_layout_apply(f, in, at);
            wrong += at[0] != (int32_t)row || at[1] != (int32_t)block ||
                     byte >> tl_layout_in_bits(f, TL_IN_REG);
        }
    if (!CHECK(wrong == 0))
        fprintf(stderr, "    %s, operand %d: %d scales elsewhere\n", mma->name, operand, wrong);
}

/* PTX ISA, "Block scaling for mma.sync": of scale_vec::1X, 2X, 4X; and the CDNA 4 ISA, 7.2: one
 * scale a lane. Rows of a table, each of an instruction: scale number, lane, byte. */
static void check_table(void)
{
    static const struct {
        const char *name;
        int operand;
        uint32_t free, block, lane, byte;
    } TABLE[] = {
        {"mma.mx.m16n8k32.e4m3", 0, 0, 0, 0, 0},      {"mma.mx.m16n8k32.e4m3", 0, 8, 0, 1, 0},
        {"mma.mx.m16n8k32.e4m3", 0, 7, 0, 28, 0},     {"mma.mx.m16n8k32.e4m3", 0, 15, 0, 29, 0},
        {"mma.mx.m16n8k32.e4m3", 1, 3, 0, 12, 0},     {"mma.mx.m16n8k64.e2m1", 0, 9, 1, 5, 1},
        {"mma.mx.m16n8k64.e2m1", 1, 7, 1, 28, 1},     {"mma.nv.m16n8k64.e2m1", 0, 10, 3, 9, 3},
        {"mma.nv.m16n8k64.e2m1", 1, 2, 2, 8, 2},      {"mfma.mx.16x16x128.e4m3", 0, 5, 3, 53, 0},
        {"mfma.mx.16x16x128.e2m1", 1, 15, 1, 31, 0}, {"mfma.mx.32x32x64.e4m3", 0, 31, 1, 63, 0},
    };
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        uint32_t lane, byte;
        tl_emu_mma_scale(tl_leaf_mma_kind(tl_mma_find(TABLE[i].name)), TABLE[i].operand,
                         TABLE[i].free, TABLE[i].block, &lane, &byte);
        CHECK(lane == TABLE[i].lane && byte == TABLE[i].byte);
    }
}

/* Cells of some fragments, as other makers of code have them: AMD's matrix calculator (bytes on
 * RDNA 4), else Triton 3.9's layouts, which for gfx950, gfx1250 and RDNA 4 are AMD's own; those of
 * mma.sync are in the PTX ISA ("Matrix fragments for mma.m16n8k32"). The calculator has K of f16
 * and bf16 on RDNA 4 in pieces of 4, where these have 8, in A and B alike: the same product. All
 * cells of these families were compared so on 2026-11-30; none was elsewhere. */
static void check_cells(void)
{
    static const struct {
        const char *name;
        int operand;
        int32_t row, column;
        uint32_t lane, element;
    } TABLE[] = {
        /* clang-format off */
        {"mma.mx.m16n8k32.e4m3", 0, 13, 22, 21, 14}, {"mma.mx.m16n8k32.e4m3", 1, 12, 6, 27, 0},
        {"mma.mx.m16n8k32.e4m3", 2, 11, 6, 15, 2},  {"mma.mx.m16n8k64.e2m1", 0, 13, 22, 21, 14},
        {"mma.mx.m16n8k64.e2m1", 1, 12, 6, 27, 0},  {"mma.mx.m16n8k64.e2m1", 2, 11, 6, 15, 2},
        {"mfma.32x32x16.f16", 0, 29, 11, 61, 3},    {"mfma.32x32x16.f16", 1, 6, 30, 30, 6},
        {"mfma.32x32x16.f16", 2, 27, 24, 27, 12},   {"mfma.16x16x32.bf16", 0, 13, 22, 45, 6},
        {"mfma.16x16x32.bf16", 1, 12, 14, 30, 4},   {"mfma.16x16x32.bf16", 2, 11, 12, 59, 0},
        {"mfma.32x32x32.i8", 0, 29, 22, 61, 6},     {"mfma.32x32x32.i8", 1, 12, 30, 30, 12},
        {"mfma.32x32x32.i8", 2, 27, 24, 27, 12},    {"mfma.16x16x64.i8", 0, 13, 44, 45, 12},
        {"mfma.16x16x64.i8", 1, 24, 14, 30, 8},     {"mfma.16x16x64.i8", 2, 11, 12, 59, 0},
        {"mfma.32x32x64.e4m3", 0, 29, 44, 29, 28},  {"mfma.32x32x64.e4m3", 1, 24, 30, 62, 8},
        {"mfma.32x32x64.e4m3", 2, 27, 24, 27, 12},  {"mfma.16x16x128.e5m2", 0, 13, 88, 29, 24},
        {"mfma.16x16x128.e5m2", 1, 48, 14, 62, 0},  {"mfma.16x16x128.e5m2", 2, 11, 12, 59, 0},
        {"mfma.mx.32x32x64.e2m1", 0, 29, 22, 61, 6}, {"mfma.mx.32x32x64.e2m1", 1, 12, 30, 30, 12},
        {"mfma.mx.32x32x64.e2m1", 2, 27, 24, 27, 12}, {"mfma.mx.16x16x128.e4m3", 0, 13, 88, 29, 24},
        {"mfma.mx.16x16x128.e4m3", 1, 48, 14, 62, 0}, {"mfma.mx.16x16x128.e4m3", 2, 11, 12, 59, 0},
        {"wmma2.16x16x16.f16", 0, 13, 11, 29, 3},   {"wmma2.16x16x16.f16", 1, 6, 14, 14, 6},
        {"wmma2.16x16x16.f16", 2, 11, 12, 27, 4},   {"wmma2.16x16x16.s8", 0, 13, 11, 29, 3},
        {"wmma2.16x16x16.s8", 1, 6, 14, 14, 6},     {"wmma2.16x16x16.s8", 2, 11, 12, 27, 4},
        {"wmma3.16x16x32.f16", 0, 13, 22, 13, 14},  {"wmma3.16x16x32.f16", 1, 12, 14, 30, 4},
        {"wmma3.16x16x32.f16", 2, 11, 12, 27, 4},   {"wmma3.16x16x4.f32", 0, 13, 2, 29, 0},
        {"wmma3.16x16x4.f32", 1, 1, 14, 14, 1},     {"wmma3.16x16x4.f32", 2, 11, 12, 27, 4},
        {"wmma3.16x16x64.s8", 0, 13, 44, 13, 28},   {"wmma3.16x16x64.s8", 1, 24, 14, 30, 8},
        {"wmma3.16x16x64.s8", 2, 11, 12, 27, 4},    {"wmma3.16x16x128.e4m3", 0, 13, 88, 29, 40},
        {"wmma3.16x16x128.e4m3", 1, 48, 14, 30, 16}, {"wmma3.16x16x128.e4m3", 2, 11, 12, 27, 4},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        const TlMma *mma = tl_mma_find(TABLE[i].name);
        if (!CHECK(mma != NULL))
            continue;
        const TlLayout *f = tl_mma_fragment(&arena, mma, TABLE[i].operand);
        uint32_t in[TL_LAYOUT_MAX_IN] = {0};
        int32_t at[TL_LAYOUT_MAX_OUT];
        in[tl_layout_in_index(f, TL_IN_REG)] = TABLE[i].element;
        in[tl_layout_in_index(f, TL_IN_LANE)] = TABLE[i].lane;
        tl_layout_apply(f, in, at);
        if (!CHECK(at[0] == TABLE[i].row && at[1] == TABLE[i].column))
            fprintf(stderr, "    %s, operand %d: %d, %d\n", mma->name, TABLE[i].operand, at[0],
                    at[1]);
    }
}

/* Each fragment is the whole of its matrix, and no more. */
static void check_extents(const TlMma *mma)
{
    const int32_t want[3][2] = {{mma->m, mma->k}, {mma->k, mma->n}, {mma->m, mma->n}};
    for (int i = 0; i < 3; i++) {
        const TlLayout *f = tl_mma_fragment(&arena, mma, i);
        CHECK(tl_layout_is_surjective(f));
        CHECK(tl_layout_extent(f, 0) == want[i][0] && tl_layout_extent(f, 1) == want[i][1]);
    }
}

static void check_rows(void)
{
    for (uint32_t i = 0; i < tl_mma_count(); i++) {
        const TlMma *mma = tl_mma_at(i);
        CHECK(tl_mma_find(mma->name) == mma && tl_mma_index(mma) == i);
        CHECK(tl_leaf_of_mma(&arena, mma) >= TL_LEAF_MMA_1_1_2);
        CHECK((tl_leaf_info(tl_leaf_of_mma(&arena, mma))->family == TL_LEAF_FAMILY_MMA_SCALED) ==
              (mma->each != 0));
        check_extents(mma);
        for (int operand = 0; operand < 3; operand++)
            check_fragment(mma, operand);
        for (int operand = TL_MMA_SA; operand < TL_MMA_OPERANDS && mma->each; operand++)
            check_scales(mma, operand);
    }
    check_table();
    check_cells();
}

/* What warps share is found again from the layout, and every warp has what it needs. */
static void check_tile(TlCtx *ctx, const TlMma *mma, int rank, const int32_t *shape,
                       TlMmaWarps warps, int warp_bits)
{
    const TlType *acc = tl_type_tile(ctx, mma->type[TL_MMA_C], rank, shape);
    const TlLayout *l = tl_mma_layout(ctx, mma, TL_MMA_C, acc, warps, warp_bits);
    TlMmaWarps found;
    CHECK(tl_layout_is_surjective(l));
    CHECK(tl_layout_in_bits(l, TL_IN_WARP) == warp_bits);
    CHECK(tl_mma_warps(ctx, mma, acc, l, &found));
    CHECK(found.m == warps.m && found.n == warps.n && found.batch == warps.batch);
    CHECK(found.apart == warps.apart && found.spread == warps.spread);
}

static void check_tiles(void)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    const TlMma *f16 = tl_mma_find("mma.m16n8k16.f16"), *wide = tl_mma_find("mfma.32x32x8.f16"),
                *tf32 = tl_mma_find("mma.m16n8k8.tf32");
    check_tile(&ctx, f16, 2, (int32_t[]){128, 128}, (TlMmaWarps){1, 1, 0, false, false}, 2);
    check_tile(&ctx, f16, 2, (int32_t[]){192, 176}, (TlMmaWarps){2, 0, 0, false, false}, 2);
    check_tile(&ctx, f16, 2, (int32_t[]){5, 3}, (TlMmaWarps){0, 0, 0, false, false}, 3);
    check_tile(&ctx, f16, 3, (int32_t[]){4, 32, 16}, (TlMmaWarps){0, 1, 2, false, false}, 3);
    check_tile(&ctx, f16, 2, (int32_t[]){64, 96}, (TlMmaWarps){2, 1, 0, true, false}, 3);
    check_tile(&ctx, f16, 2, (int32_t[]){64, 128}, (TlMmaWarps){2, 2, 0, true, false}, 4);
    check_tile(&ctx, wide, 2, (int32_t[]){64, 96}, (TlMmaWarps){1, 1, 0, false, false}, 3);
    check_tile(&ctx, tf32, 2, (int32_t[]){128, 128}, (TlMmaWarps){1, 1, 0, false, true}, 2);
    check_tile(&ctx, tf32, 2, (int32_t[]){64, 96}, (TlMmaWarps){0, 2, 0, false, true}, 2);
    check_tile(&ctx, tf32, 3, (int32_t[]){4, 32, 32}, (TlMmaWarps){0, 1, 2, false, true}, 3);
    const TlType *acc = tl_type_tile(&ctx, TL_F32, 2, (int32_t[]){128, 128});
    TlMmaWarps both = {.m = 1, .n = 1};
    const TlLayout *other = tl_mma_layout(&ctx, wide, TL_MMA_C, acc, both, 2);
    TlMmaWarps found;
    CHECK(!tl_mma_warps(&ctx, f16, acc, other, &found));
    CHECK(tl_mma_has("mma mma.tf32", f16) && !tl_mma_has("mma.tf32 mma.f8", f16));
    CHECK(!tl_mma_has(NULL, f16) && !tl_mma_find("mma"));
    tl_ctx_free(&ctx);
}

int main(void)
{
    tl_arena_init(&arena, (TlAlloc){0});
    check_rows();
    check_tiles();
    tl_arena_free(&arena);
    return unit_result();
}
