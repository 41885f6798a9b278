/* How warps share a product (dot_warps.h): of all ways to deal out their number's bits the one that
 * costs a warp least; among equals the one with more along the batch, then along M.
 *
 *   instructions  blocks of the warp that has most, rounded up. No warp is idle while there
 *                 are blocks; those that find none repeat what others do
 *   reads         of a step of k, the rows of A and the columns of B that the warp has, from shared
 *                 memory. An instruction of a warpgroup reads its 64 rows and all its columns,
 *                 each warp a quarter
 *   registers     of the sums, which someone stores
 *   exchange      where products are chained, warps along N share rows: what is computed per row,
 *                 and the sums that are the next product's A, go through shared memory, the more
 *                 of them the more warps
 *
 *   adding      of warps along K, each of which sums up its part: after the loop, once
 *
 * So a single product's warps have parts that are nearly square, those of chained ones are along M
 * as far as there are rows, and those of warpgroups likewise: two instructions of half the columns
 * read A twice. Where M has no 64 rows for each, the other warpgroups go along N, each with columns
 * that lie side by side. */
#include "passes/layout/dot_warps.h"
#include "ir/plan/async_dot.h"

/* Slots of a scheduler (layout_cost.c): of a wavefront of 128 bytes, a register that is kept, the
 * barriers of an exchange. */
enum { SHARED_RATE = 4, WAVEFRONT = 128, KEPT = 1, BARRIERS = 128 };
/* Rows times columns times bytes of k that a matrix unit multiplies in a slot. */
enum { RATE = 1024 };

TlDotShape tl_dot_shape(const TlOp *dot, const TlMma *mma, int warps, bool turned)
{
    const TlType *c = dot->out[0]->type, *a = tl_in(dot, TL_MMA_A)->type;
    TL_ASSERT(c->rank >= 2 && warps > 0, "a product of rank %d", (int)c->rank);
    return (TlDotShape){.mma = mma,
                        .rank = c->rank,
                        .batch = c->rank == 3 ? c->shape[0] : 1,
                        .m = c->shape[turned ? c->rank - 1 : c->rank - 2],
                        .n = c->shape[turned ? c->rank - 2 : c->rank - 1],
                        .k = a->shape[a->rank - 1],
                        .warp_bits = tl_floor_log2(warps),
                        .turned = turned};
}

static int64_t rounded_up(int64_t extent, int64_t to)
{
    return (extent + to - 1) / to * to;
}

/* What a warp with so many rows and columns costs, which reads `reads` of them for all of k. */
static int64_t cost_of(const TlDotShape *s, int64_t rows, int64_t columns, int64_t reads,
                       TlMmaWarps w)
{
    enum { LANES = 32, WORD = 4 };
    int64_t bytes = rounded_up(s->k, s->mma->k) * tl_dtype_bits(s->mma->type[TL_MMA_A]) / 8;
    int64_t sums = rows * columns * tl_dtype_bytes(s->mma->type[TL_MMA_C]) / (LANES * WORD);
    int64_t cost = rows * columns * bytes / RATE + reads * bytes * SHARED_RATE / WAVEFRONT;
    if (s->chained)
        cost += (s->turned ? w.m : w.n) * (BARRIERS + 2 * SHARED_RATE * sums);
    return cost + KEPT * sums;
}

/* ---- each warp by itself ---- */

static int64_t warp_cost(const TlDotShape *s, TlMmaWarps w)
{
    int64_t rows = rounded_up(s->m, (int64_t)s->mma->m << w.m) >> w.m,
            columns = rounded_up(s->n, (int64_t)s->mma->n << w.n) >> w.n,
            batches = rounded_up(s->batch, (int64_t)1 << w.batch) >> w.batch;
    return batches * cost_of(s, rows, columns, rows + columns, w);
}

/* Do so many warps along an axis all have blocks there, or but for what is rounded up? */
static bool has_for(int64_t extent, int64_t block, int bits)
{
    return bits == 0 || extent > block << (bits - 1);
}

/* Has each warp blocks, or, where there are not enough, each block a warp? */
static bool is_fair(const TlDotShape *s, TlMmaWarps w)
{
    bool all = w.m + w.n + w.batch == s->warp_bits;
    return has_for(s->batch, 1, w.batch) && has_for(s->m, s->mma->m, w.m) &&
           has_for(s->n, s->mma->n, w.n) &&
           (all || (!has_for(s->batch, 1, w.batch + 1) && !has_for(s->m, s->mma->m, w.m + 1) &&
                    !has_for(s->n, s->mma->n, w.n + 1)));
}

TlDotWay tl_warp_way(const TlDotShape *s)
{
    TlDotWay best = {.cost = -1};
    for (int batch = s->warp_bits; batch >= 0; batch--)
        for (int m = s->warp_bits - batch; m >= 0; m--)
            for (int n = s->warp_bits - batch - m; n >= 0; n--) {
                TlMmaWarps w = {.m = m, .n = n, .batch = batch};
                int64_t cost = is_fair(s, w) ? warp_cost(s, w) : -1;
                if (cost >= 0 && (best.cost < 0 || cost < best.cost))
                    best = (TlDotWay){.warps = w, .cost = cost};
            }
    TL_ASSERT(best.cost >= 0, "no warps for a product of %d x %d", (int)s->m, (int)s->n);
    return best;
}

/* ---- each warp by itself, parts of K ---- */

/* What it takes to add up the parts: each warp writes its sums, and reads its share of all. */
static int64_t adding_cost(const TlDotShape *s, int64_t rows, int64_t columns)
{
    enum { LANES = 32, WORD = 4 };
    int64_t words = rows * columns * tl_dtype_bytes(s->mma->type[TL_MMA_C]) / (LANES * WORD);
    return BARRIERS + 2 * SHARED_RATE * words;
}

bool tl_parts_way(const TlDotShape *s, int64_t trips, TlDotWay *out)
{
    TL_ASSERT(trips > 0, "a product in %lld trips", (long long)trips);
    *out = (TlDotWay){.cost = -1};
    for (int k = 1; k <= s->warp_bits && s->batch == 1 && s->k % (s->mma->k << k) == 0; k++)
        for (int m = s->warp_bits - k; m >= 0; m--) {
            TlMmaWarps w = {.m = m, .n = s->warp_bits - k - m, .batch = k};
            if (!has_for(s->m, s->mma->m, w.m) || !has_for(s->n, s->mma->n, w.n))
                continue;
            TlDotShape part = *s;
            part.k = s->k >> k;
            int64_t rows = rounded_up(s->m, (int64_t)s->mma->m << w.m) >> w.m,
                    columns = rounded_up(s->n, (int64_t)s->mma->n << w.n) >> w.n;
            int64_t cost = cost_of(&part, rows, columns, rows + columns, w) +
                           adding_cost(s, rows, columns) / trips;
            if (out->cost < 0 || cost < out->cost)
                *out = (TlDotWay){.warps = w, .cost = cost};
        }
    return out->cost >= 0;
}

/* ---- warpgroups ---- */

/* Columns of an instruction, 2^bits warpgroups of which are along N. 0: there is none. */
static int32_t columns_at_once(const TlDotShape *s, int bits)
{
    int32_t all = s->n >> bits, power = s->n & -s->n;
    int32_t run = bits ? power >> bits : all;
    return s->n % (s->mma->n << bits) ? 0 : tl_async_columns(s->mma, all, run);
}

bool tl_warpgroup_way(const TlDotShape *s, TlDotWay *out)
{
    *out = (TlDotWay){.warpgroup = true, .cost = -1};
    for (int m = s->warp_bits; m >= TL_GROUP_WARP_BITS; m--) {
        int n = s->warp_bits - m;
        TlMmaWarps w = {.m = m, .n = n, .apart = s->n >> n > s->mma->n && n > 0};
        int32_t at_once = s->m % (s->mma->m << m) ? 0 : columns_at_once(s, n);
        if (s->batch > 1 || at_once == 0)
            continue;
        int64_t rows = s->m >> m, columns = s->n >> n;
        int64_t instructions = rows / s->mma->m * (columns / at_once);
        int64_t reads = instructions * (TL_GROUP_ROWS + at_once) / TL_GROUP_WARPS;
        int64_t cost = cost_of(s, rows, columns, reads, w);
        if (out->cost < 0 || cost < out->cost)
            *out = (TlDotWay){.warps = w, .warpgroup = true, .cost = cost};
    }
    return out->cost >= 0;
}

/* ---- one thread, into tensor memory ---- */

/* What the matrix unit takes, which is four times as fast, half of that with 64 rows, and what it
 * takes to read the sums; where products are chained, to put them into shared memory for the next
 * one, and, for warps along N, to exchange what is computed per row. The tensor core reads shared
 * memory beside the warps. */
bool tl_tensor_way(const TlDotShape *s, TlDotWay *out)
{
    enum { FASTER = 4, LANES = 32 };
    int64_t faster = FASTER * tl_tensor_rows(s->m) / TL_TENSOR_LANES;
    *out = (TlDotWay){.warpgroup = true, .cost = -1};
    for (int m = s->warp_bits; m >= TL_GROUP_WARP_BITS; m--) {
        int n = s->warp_bits - m;
        TlMmaWarps w = {.m = m, .n = n, .apart = s->n >> n > s->mma->n && n > 0};
        bool fits = s->m % (s->mma->m << m) == 0 && tl_tensor_has_columns(s->mma, s->n, n);
        if (s->batch > 1 || !fits)
            continue;
        int64_t rows = s->m >> m, columns = s->n >> n,
                bytes = s->k * tl_dtype_bytes(s->mma->type[TL_MMA_A]);
        int64_t sums = rows * columns / LANES;
        int64_t cost = rows * columns * bytes / (faster * RATE) + KEPT * sums;
        if (s->chained)
            cost += BARRIERS + SHARED_RATE * sums + w.n * BARRIERS;
        if (out->cost < 0 || cost < out->cost)
            *out = (TlDotWay){.warps = w, .warpgroup = true, .cost = cost};
    }
    return out->cost >= 0;
}
