/* Names of leaves, and which GPU has them; programs without LLVM link this file too. */
#include "codegen/leaf/leaves.h"
#include "ir/plan/staged_plan.h"

const char *tl_leaf_name(tl_leaf leaf)
{
    TL_ASSERT((unsigned)leaf < TL_LEAF_COUNT, "leaf %d", (int)leaf);
    return tl_leaf_info(leaf)->name;
}

/* ---- matrix instructions ---- */

tl_mma_kind tl_leaf_mma_kind(const TlMma *mma)
{
    static const tl_mma_kind KINDS[] = {
#define MMA(name, family, kind, m, n, k, a, b, acc, frag_a, frag_b, frag_c) TL_MMA_##kind,
#include "ir/plan/mma.def"
    };
    return KINDS[tl_mma_index(mma)];
}

tl_leaf tl_leaf_of_mma(TlArena *arena, const TlMma *mma)
{
    uint32_t words[3];
    for (int i = 0; i < 3; i++) {
        int bits = tl_layout_in_bits(tl_mma_fragment(arena, mma, i), TL_IN_REG);
        words[i] = ((uint32_t)tl_dtype_bytes(mma->type[i]) << bits) / 4;
    }
    tl_leaf leaf = tl_leaf_of_size(mma->each ? TL_LEAF_FAMILY_MMA_SCALED : TL_LEAF_FAMILY_MMA,
                                   words[0] << 16 | words[1] << 8 | words[2]);
    TL_ASSERT(leaf != TL_LEAF_COUNT, "no leaf for %s", mma->name);
    return leaf;
}

tl_leaf tl_leaf_of_reduce(const TlTarget *t, const TlFn *fn, const TlReducePlan *p, const TlOp *op,
                          tl_redux *how)
{
    static const tl_redux HOW[] = {
        [TL_REDUCE_ADD] = TL_REDUX_ADD,   [TL_REDUCE_MIN] = TL_REDUX_MIN,
        [TL_REDUCE_MAX] = TL_REDUX_MAX,   [TL_REDUCE_UMIN] = TL_REDUX_UMIN,
        [TL_REDUCE_UMAX] = TL_REDUX_UMAX, [TL_REDUCE_AND] = TL_REDUX_AND,
        [TL_REDUCE_OR] = TL_REDUX_OR,     [TL_REDUCE_XOR] = TL_REDUX_XOR};
    TlRedux combines;
    tl_leaf leaf = tl_is_float(p->work[0]) ? TL_LEAF_REDUX_F32 : TL_LEAF_REDUX;
    if (fn->ring || !tl_leaf_is_of(t, leaf) ||
        !tl_reduce_redux(p, op, (int)tl_ceil_log2((uint32_t)t->lanes), &combines))
        return TL_LEAF_COUNT;
    *how = HOW[combines];
    return leaf;
}

static bool has_matrix_leaf(const TlTarget *t, tl_leaf leaf)
{
    TlArena arena;
    bool has = false;
    tl_arena_init(&arena, (TlAlloc){0});
    for (uint32_t i = 0; i < tl_mma_count() && !has; i++)
        has = tl_mma_has(t->matrix, tl_mma_at(i)) && tl_leaf_of_mma(&arena, tl_mma_at(i)) == leaf;
    tl_arena_free(&arena);
    return has;
}

uint32_t tl_leaf_gets(const TlTarget *t)
{
    return t->can & TL_CAN_LDMATRIX  ? tl_buf_matrices(t->can & TL_CAN_MATRIX_8)
           : t->can & TL_CAN_COLUMNS ? TL_BUF_MAY_COLUMNS
                                     : 0;
}

uint32_t tl_leaf_puts(const TlTarget *t)
{
    bool matrices = t->can & TL_CAN_STMATRIX;
    return TL_BUF_WRITES | (matrices ? tl_buf_matrices(t->can & TL_CAN_MATRIX_8) : 0);
}

bool tl_leaf_is_of(const TlTarget *t, tl_leaf leaf)
{
    const tl_leaf_row *row = tl_leaf_info(leaf);
    if (row->family == TL_LEAF_FAMILY_MMA || row->family == TL_LEAF_FAMILY_MMA_SCALED)
        return has_matrix_leaf(t, leaf);
    return (row->needs & ~t->can) == 0;
}
