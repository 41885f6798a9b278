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
        check_extents(mma);
        for (int operand = 0; operand < 3; operand++)
            check_fragment(mma, operand);
    }
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
    CHECK(found.apart == warps.apart);
}

static void check_tiles(void)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    const TlMma *f16 = tl_mma_find("mma.m16n8k16.f16"), *wide = tl_mma_find("mfma.32x32x8.f16");
    check_tile(&ctx, f16, 2, (int32_t[]){128, 128}, (TlMmaWarps){1, 1, 0, false}, 2);
    check_tile(&ctx, f16, 2, (int32_t[]){192, 176}, (TlMmaWarps){2, 0, 0, false}, 2);
    check_tile(&ctx, f16, 2, (int32_t[]){5, 3}, (TlMmaWarps){0, 0, 0, false}, 3);
    check_tile(&ctx, f16, 3, (int32_t[]){4, 32, 16}, (TlMmaWarps){0, 1, 2, false}, 3);
    check_tile(&ctx, f16, 2, (int32_t[]){64, 96}, (TlMmaWarps){2, 1, 0, true}, 3);
    check_tile(&ctx, f16, 2, (int32_t[]){64, 128}, (TlMmaWarps){2, 2, 0, true}, 4);
    check_tile(&ctx, wide, 2, (int32_t[]){64, 96}, (TlMmaWarps){1, 1, 0, false}, 3);
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
