/* Layouts of matrix instructions (mma.h). */
#include "ir/plan/mma.h"
#include <string.h>

static const char WARPGROUP[] = "wg";

int32_t tl_scale_each(TlDtype scale)
{
    return scale == TL_U8 ? 32 : scale == TL_F8E4M3 ? 16 : 0;
}

static const TlMma ROWS[] = {
#define MMA(name, family, kind, m, n, k, a, b, acc, frag_a, frag_b, frag_c)                        \
    {name, family, m, n, k, {TL_##a, TL_##b, TL_##acc}, {frag_a, frag_b, frag_c}, 0},
#define MMA_SCALED(name, family, kind, m, n, k, a, b, acc, frag_a, frag_b, frag_c, scale, each,    \
                   frag_sa, frag_sb)                                                               \
    {name,                                                                                         \
     family,                                                                                       \
     m,                                                                                            \
     n,                                                                                            \
     k,                                                                                            \
     {TL_##a, TL_##b, TL_##acc, TL_##scale, TL_##scale},                                           \
     {frag_a, frag_b, frag_c, frag_sa, frag_sb},                                                   \
     each},
#include "ir/plan/mma.def"
};

enum { TENSOR_ALL = TL_TENSOR_LANES, TENSOR_HALF = TL_TENSOR_LANES / 2 };

static const TlTensorMma TENSOR_ROWS[] = {
#define TENSOR(name, kind, k, a, b, acc, code_a, code_b, code_acc)                                 \
    {{name, "tcgen05", 32, 8, k, {TL_##a, TL_##b, TL_##acc}, {NULL, NULL, "tensor.c"}, 0},         \
     kind,                                                                                         \
     {code_a, code_b, code_acc},                                                                   \
     TENSOR_ALL},
#define TENSOR_SCALED(name, kind, k, a, b, acc, code_a, code_b, code_acc, scale, each)             \
    {{name,                                                                                        \
      "tcgen05",                                                                                   \
      32,                                                                                          \
      8,                                                                                           \
      k,                                                                                           \
      {TL_##a, TL_##b, TL_##acc, TL_##scale, TL_##scale},                                          \
      {NULL, NULL, "tensor.c"},                                                                    \
      each},                                                                                       \
     kind,                                                                                         \
     {code_a, code_b, code_acc},                                                                   \
     TENSOR_ALL},
#include "ir/plan/tensor.def"
#define TENSOR(name, kind, k, a, b, acc, code_a, code_b, code_acc)                                 \
    {{name ".m64", "tcgen05", 16, 8, k, {TL_##a, TL_##b, TL_##acc}, {NULL, NULL, "mma.v3.c"}, 0},  \
     kind,                                                                                         \
     {code_a, code_b, code_acc},                                                                   \
     TENSOR_HALF},
#define TENSOR_SCALED(...) /* 128 rows only */
#include "ir/plan/tensor.def"
};

enum { NTENSOR_ROWS = sizeof TENSOR_ROWS / sizeof *TENSOR_ROWS };

const TlTensorMma *tl_tensor_mma_of(const TlMma *mma)
{
    for (uint32_t i = 0; i < NTENSOR_ROWS; i++)
        if (&TENSOR_ROWS[i].mma == mma)
            return &TENSOR_ROWS[i];
    return NULL;
}

int32_t tl_tensor_rows(int32_t m)
{
    return m % TENSOR_ALL ? TENSOR_HALF : TENSOR_ALL;
}

int32_t tl_tensor_columns_of(int32_t m, int32_t n)
{
    int32_t rows = tl_tensor_rows(m);
    return (m + rows - 1) / rows * n;
}

const TlMma *tl_tensor_mma_for(const TlDtype types[3], int32_t m)
{
    for (uint32_t i = 0; i < NTENSOR_ROWS; i++)
        if (memcmp(TENSOR_ROWS[i].mma.type, types, 3 * sizeof *types) == 0 &&
            !TENSOR_ROWS[i].mma.each && TENSOR_ROWS[i].rows == tl_tensor_rows(m))
            return &TENSOR_ROWS[i].mma;
    return NULL;
}

const TlMma *tl_tensor_scaled_for(TlDtype a, TlDtype b, TlDtype scale)
{
    for (uint32_t i = 0; i < NTENSOR_ROWS; i++) {
        const TlMma *mma = &TENSOR_ROWS[i].mma;
        if (mma->each && mma->type[TL_MMA_A] == a && mma->type[TL_MMA_B] == b &&
            mma->type[TL_MMA_SA] == scale)
            return mma;
    }
    return NULL;
}

uint32_t tl_mma_count(void)
{
    return sizeof ROWS / sizeof *ROWS;
}

const TlMma *tl_mma_at(uint32_t i)
{
    TL_ASSERT(i < tl_mma_count(), "matrix instruction %u", i);
    return i < tl_mma_count() ? &ROWS[i] : NULL;
}

uint32_t tl_mma_index(const TlMma *mma)
{
    TL_ASSERT(mma >= ROWS && mma < ROWS + tl_mma_count(), "no row of mma.def");
    return (uint32_t)(mma - ROWS);
}

const TlMma *tl_mma_find(const char *name)
{
    for (uint32_t i = 0; i < tl_mma_count(); i++)
        if (strcmp(ROWS[i].name, name) == 0)
            return &ROWS[i];
    for (uint32_t i = 0; i < NTENSOR_ROWS; i++)
        if (strcmp(TENSOR_ROWS[i].mma.name, name) == 0)
            return &TENSOR_ROWS[i].mma;
    return NULL;
}

bool tl_mma_has(const char *families, const TlMma *mma)
{
    size_t n = strlen(mma->family);
    for (const char *at = families; at && (at = strstr(at, mma->family)); at += n)
        if ((at == families || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
            return true;
    return false;
}

const TlMma *tl_mma_of(const TlOp *op)
{
    const TlAttr *a = op->opcode == TL_OP_DOT ? tl_attr(op, TL_ATTR_MMA) : NULL;
    return a ? tl_mma_find(a->u.s + (tl_is_warpgroup_dot(op) ? strlen(WARPGROUP) : 0)) : NULL;
}

bool tl_is_warpgroup_dot(const TlOp *op)
{
    const TlAttr *a = op->opcode == TL_OP_DOT ? tl_attr(op, TL_ATTR_MMA) : NULL;
    return a && strncmp(a->u.s, WARPGROUP, strlen(WARPGROUP)) == 0;
}

void tl_set_mma(TlFn *fn, TlOp *op, const TlMma *mma, bool warpgroup)
{
    TlCtx *ctx = fn->module->ctx;
    const char *name = tl_format(&ctx->perm, "%s%s", warpgroup ? WARPGROUP : "", mma->name);
    tl_attr_set(fn, op, (TlAttr){.id = TL_ATTR_MMA, .u.s = tl_intern_str(&ctx->strings, name)});
}

TlLayout *tl_mma_fragment(TlArena *arena, const TlMma *mma, int operand)
{
    TL_ASSERT(operand >= TL_MMA_A && operand < TL_MMA_OPERANDS && mma->fragment[operand],
              "operand %d of %s", operand, mma->name);
    return tl_layout_fragment(arena, mma->fragment[operand], (int[]){0, 0}, (int[]){1, 0});
}

/* One warp: the fragment, with a batch axis in front for rank 3. */
static TlLayout fragment(TlArena *arena, const TlMma *mma, int operand, int rank)
{
    TlLayout l = *tl_mma_fragment(arena, mma, operand);
    for (; l.nout < rank; l.nout++) {
        for (int i = 0; i < l.nin; i++)
            for (int b = 0; b < l.in_bits[i]; b++) {
                memmove(l.basis[i][b] + 1, l.basis[i][b], sizeof(int32_t) * l.nout);
                l.basis[i][b][0] = 0;
            }
        memmove(l.out_bits + 1, l.out_bits, l.nout);
        l.out_bits[0] = 0;
        l.reps[l.nout] = 1;
    }
    return l;
}

/* Puts warps side by side along output d; -1: all hold the same. */
static void add_warps(TlLayout *l, int d, int bits)
{
    int warp = tl_layout_in_index(l, TL_IN_WARP);
    for (int b = 0; b < bits; b++) {
        int32_t *image = l->basis[warp][l->in_bits[warp]++];
        memset(image, 0, sizeof(int32_t) * TL_LAYOUT_MAX_OUT);
        if (d >= 0)
            image[d] = (int32_t)1 << l->out_bits[d]++;
    }
}

int32_t tl_mma_spread(int32_t column)
{
    enum { NEAR = 2, FAR = 4 };
    int32_t differs = (column >> NEAR ^ column >> FAR) & 1;
    return column ^ (differs << NEAR | differs << FAR);
}

/* NVIDIA's of a warp. */
static bool is_of_warp(const TlMma *mma)
{
    return strncmp(mma->name, "mma.", 4) == 0;
}

bool tl_mma_is_spread(const TlMma *mma, const TlLayout *acc)
{
    enum { FAR = 16 };
    int lane = tl_layout_in_index(acc, TL_IN_LANE);
    bool is = false;
    for (int b = 0; is_of_warp(mma) && lane >= 0 && b < acc->in_bits[lane]; b++)
        is |= acc->basis[lane][b][acc->nout - 1] == FAR;
    return is;
}

static void spread(TlLayout *l, int n)
{
    TL_ASSERT(l->out_bits[n] >= TL_MMA_SPREAD_BITS, "columns in chunks of 2^%d", l->out_bits[n]);
    for (int i = 0; i < l->nin; i++)
        for (int b = 0; b < l->in_bits[i]; b++)
            l->basis[i][b][n] = tl_mma_spread(l->basis[i][b][n]);
}

const TlLayout *tl_mma_layout(TlCtx *ctx, const TlMma *mma, int operand, const TlType *tile,
                              TlMmaWarps warps, int warp_bits)
{
    TL_ASSERT(operand >= TL_MMA_A && operand < TL_MMA_OPERANDS && warp_bits >= 0, "operand %d",
              operand);
    bool of_a = operand == TL_MMA_A || operand == TL_MMA_SA;
    int rank = tile->rank, m = of_a || operand == TL_MMA_C ? rank - 2 : -1,
        n = of_a ? -1 : operand == TL_MMA_SB ? rank - 2 : rank - 1,
        inner = operand == TL_MMA_B ? rank - 2 : rank - 1;
    /* NVIDIA's B has blocks before k, so that one ldmatrix of four gives one step of k to two
     * blocks: half as many loads are in flight, from half as many addresses. */
    bool blocks_first = operand == TL_MMA_B && is_of_warp(mma);
    int outer = 2 * rank - 3 - inner,
        order[TL_MAX_RANK] = {blocks_first ? outer : inner, blocks_first ? inner : outer, 0};
    TL_ASSERT(rank == 2 || rank == 3, "mma of rank %d", rank);
    TlArena arena;
    tl_arena_init(&arena, ctx->perm.alloc);
    TlLayout l = fragment(&arena, mma, operand, rank);
    bool apart = warps.apart && n >= 0;
    add_warps(&l, m, warps.m);
    if (apart) { /* all that a warp has, then the next warp's */
        int32_t shape[2] = {tile->shape[0], tile->shape[1]};
        TL_ASSERT(rank == 2 && shape[n] % (mma->n << warps.n) == 0, "%d columns for %d warps",
                  (int)shape[n], 1 << warps.n);
        shape[n] >>= warps.n;
        l = *tl_layout_cover(&arena, &l, shape, order);
    }
    add_warps(&l, n, warps.n);
    add_warps(&l, rank == 3 ? 0 : -1, warps.batch);
    add_warps(&l, -1, warp_bits - warps.m - warps.n - warps.batch);
    if (!apart)
        l = *tl_layout_cover(&arena, &l, tile->shape, order);
    if (warps.spread && n >= 0)
        spread(&l, n);
    const TlLayout *made = tl_layout_intern(ctx, &l);
    tl_arena_free(&arena);
    return made;
}

bool tl_mma_warps(TlCtx *ctx, const TlMma *mma, const TlType *acc, const TlLayout *l,
                  TlMmaWarps *out)
{
    TL_ASSERT(acc->rank >= 2, "a product of rank %d", (int)acc->rank);
    int warp = tl_layout_in_index(l, TL_IN_WARP), rank = acc->rank;
    *out = (TlMmaWarps){.spread = tl_mma_is_spread(mma, l)};
    if (warp < 0 || l->nout != rank || (out->spread && l->out_bits[rank - 1] < TL_MMA_SPREAD_BITS))
        return false;
    for (int b = 0; b < l->in_bits[warp]; b++) {
        const int32_t *image = l->basis[warp][b];
        out->apart |= image[rank - 1] > mma->n && !out->n;
        out->m += image[rank - 2] != 0;
        out->n += image[rank - 1] != 0;
        out->batch += rank == 3 && image[0] != 0;
    }
    return out->m + out->n + out->batch <= l->in_bits[warp] &&
           tl_mma_layout(ctx, mma, TL_MMA_C, acc, *out, l->in_bits[warp]) == l;
}

const TlLayout *tl_mma_operand_layout(TlCtx *ctx, const TlOp *dot, int operand, const TlLayout *acc)
{
    TL_ASSERT(dot->opcode == TL_OP_DOT, "%s is no product", tl_op_info(dot->opcode)->text);
    const TlMma *mma = tl_mma_of(dot);
    TlMmaWarps warps;
    if (!mma || !mma->fragment[operand] ||
        !tl_mma_warps(ctx, mma, dot->out[0]->type, acc, &warps))
        return NULL;
    return tl_mma_layout(ctx, mma, operand, tl_in(dot, (uint32_t)operand)->type, warps,
                         tl_layout_in_bits(acc, TL_IN_WARP));
}
