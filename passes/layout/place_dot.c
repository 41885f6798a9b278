/* Layouts of accumulators of dots by multiply-adds (place_impl.h).
 *
 * Operands are read from shared memory for each k: a thread that holds r rows and c columns reads
 * r + c values for r * c products, so the block of a thread should be square and large; lanes that
 * read the same word get it at once. 4 neighbours along N and 8 lanes side by side write 128 bytes
 * at once when the result is stored. The other lanes go along M.
 *
 * The warps of a single dot divide the larger side. When one dot's result goes into another dot
 * (attention), all warps go along M, and what a thread has along M depends on M alone: then rows of
 * both are on the same threads, and what is computed per row needs no exchange. */
#include "passes/analysis/facts.h"
#include "passes/layout/place_impl.h"

/* Logarithms: elements of an access of 16 bytes of f32, lanes along n, rows of a register tile. */
enum { VECTOR_BITS = 2, LANES_ALONG_N = 3, MOST_ROWS = 2 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

const TlLayout *tl_place_dot_layout(Placement *p, const TlOp *dot)
{
    TL_ASSERT(dot->opcode == TL_OP_DOT && dot->out[0]->type->rank >= 2,
              "%s is no product", tl_op_info(dot->opcode)->text);
    const TlType *t = dot->out[0]->type;
    int rank = t->rank, m = rank - 2, n = rank - 1, order[TL_MAX_RANK];
    int size[TL_MAX_RANK] = {0}, lanes[TL_MAX_RANK] = {0}, warps[TL_MAX_RANK] = {0};
    int room[TL_MAX_RANK] = {0}, all = 0;
    for (int d = 0; d < rank; d++) {
        order[d] = rank - 1 - d;
        room[d] = tl_ceil_log2(t->shape[d]);
        all += room[d];
    }
    int each = all - p->lane_bits - p->warp_bits, left = p->lane_bits;
    each = each < 0 ? 0 : each;
    room[n] -= size[n] = least(least(VECTOR_BITS, room[n]), each);
    room[n] -= lanes[n] = least(least(LANES_ALONG_N, room[n]), left);
    left -= lanes[n];
    for (int d = m; d >= 0; d--) {
        room[d] -= lanes[d] = least(room[d], left);
        left -= lanes[d];
    }
    int more = least(room[n], left);
    lanes[n] += more;
    room[n] -= more;
    lanes[n] += left - more; /* these hold copies: tl_layout_cover clears them */
    if (p->dots_of != dot->block)
        p->dots_are_chained = tl_dots_are_chained(p->fn, p->arena, dot->block);
    p->dots_of = dot->block;
    bool chained = p->dots_are_chained;
    for (left = p->warp_bits; left > 0; left--) {
        int d = rank == 3 && room[0] ? 0 : room[m] && (chained || room[m] >= room[n]) ? m : n;
        if (!room[d])
            d = room[m] ? m : n;
        warps[d]++;
        room[d] -= room[d] > 0;
    }
    size[m] = least(least(MOST_ROWS, room[m]), each - size[n]);
    TlLayout *l = tl_layout_blocked(p->arena, rank, size, lanes, warps, order);
    return tl_layout_intern(p->ctx, tl_layout_cover(p->arena, l, t->shape, order));
}
