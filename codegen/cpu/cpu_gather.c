/* Gathers from tiles: element by element, as vectors whose lanes are exchanged in pairs, as vectors
 * of other rows, or as vectors that begin at any element, which may be lanes of two neighbours. */
#include "codegen/cpu/cpu.h"

/* Lane `lane` of a gather: element k along the axis, the position's indices along the others. */
static LLVMValueRef gather_lane(TlCpuGen *g, TlValue *x, int axis, LLVMValueRef k,
                                const TlCpuAt *at, int lane)
{
    TL_ASSERT(lane < at->width, "lane %d of %d", lane, at->width);
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank, at->lane, 1);
    if (at->width > 1 && at->lane != axis)
        sub.idx[at->lane] = tl_cpu_lane_index(g, at, lane, x->type->shape[at->lane]);
    sub.idx[axis] = k;
    return tl_cpu_eval(g, x, &sub);
}

/* Elements i ^ m of x for the lanes i: of one whole vector, whose lanes change places in pairs, in
 * fours, and so on, as the low bits of m say. What is outside of x is any element. */
static LLVMValueRef partners(TlCpuGen *g, TlValue *x, TlValue *mask, const TlCpuAt *at)
{
    int w = at->width, d = at->lane;
    TL_ASSERT(tl_nest_readable(x->type, d) % w == 0, "%lld elements by %d",
              (long long)tl_nest_readable(x->type, d), w);
    LLVMValueRef m = tl_gen_to_i64(&g->gen, mask, tl_gen_scalar(&g->gen, mask)),
                 order[TL_NEST_LANES];
    LLVMValueRef high = LLVMBuildAnd(g->b, m, tl_gen_int(&g->gen, -w), ""),
                 first = LLVMBuildXor(g->b, at->idx[d], high, ""), zero = tl_gen_int(&g->gen, 0);
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank, d, w);
    sub.idx[d] = tl_gen_pick(&g->gen, LLVMIntULT, first,
                             tl_gen_int(&g->gen, tl_nest_readable(x->type, d)), first, zero);
    LLVMValueRef r = tl_cpu_eval(g, x, &sub);
    for (int bit = 1; bit < w; bit *= 2) {
        for (int i = 0; i < w; i++) order[i] = LLVMConstInt(g->i32, (unsigned)(i ^ bit), 0);
        LLVMValueRef exchanged = LLVMBuildShuffleVector(g->b, r, LLVMGetPoison(LLVMTypeOf(r)),
                                                        LLVMConstVector(order, (unsigned)w), "");
        LLVMValueRef is_set = LLVMBuildAnd(g->b, m, tl_gen_int(&g->gen, bit), "");
        is_set = LLVMBuildICmp(g->b, LLVMIntNE, is_set, zero, "");
        r = LLVMBuildSelect(g->b, is_set, exchanged, r, "");
    }
    return r;
}

/* ---- whole vectors that move ---- */

/* The vectors of another row: the index is the same in all lanes. */
static LLVMValueRef other_row(TlCpuGen *g, TlOp *op, int axis, const TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0), *index = tl_in(op, 1);
    TlCpuAt one, sub;
    tl_cpu_at_under(g, &one, at, at->rank, at->lane, 1);
    LLVMValueRef k = LLVMBuildIntCast2(g->b, tl_cpu_eval(g, index, &one), g->i64,
                                       tl_is_signed(index->type->dtype), "");
    tl_cpu_at_under(g, &sub, at, at->rank, at->lane, at->width);
    sub.idx[axis] = k;
    int64_t ahead = at->down ? tl_nest_rows_taken(g->plan, op) : 0;
    sub.ahead += ahead > 0 ? ahead : 0;
    if (g->plan->place[op->out[0]->id].inside)
        return tl_cpu_eval(g, x, &sub);
    LLVMValueRef extent = tl_gen_int(&g->gen, x->type->shape[axis]),
                 inside = LLVMBuildICmp(g->b, LLVMIntULT, k, extent, "");
    sub.idx[axis] = LLVMBuildSelect(g->b, inside, k, tl_gen_int(&g->gen, 0), "");
    LLVMValueRef r = tl_cpu_eval(g, x, &sub);
    return LLVMBuildSelect(g->b, inside, r, LLVMConstNull(LLVMTypeOf(r)), "");
}

/* Which lanes of the vector at `at` are element `from` or behind it; with `below`, the others. */
static LLVMValueRef lanes_from(TlCpuGen *g, LLVMValueRef at, int64_t from, int w, bool below)
{
    LLVMValueRef part[TL_NEST_LANES], vector = tl_gen_int(&g->gen, from / w * w);
    LLVMValueRef all = LLVMConstAllOnes(tl_gen_vec(g->i1, w)),
                 none = LLVMConstNull(LLVMTypeOf(all));
    for (int i = 0; i < w; i++)
        part[i] = LLVMConstInt(g->i1, (i >= from % w) != below, 0);
    LLVMValueRef here = LLVMBuildICmp(g->b, LLVMIntEQ, at, vector, ""),
                 before = LLVMBuildICmp(g->b, LLVMIntSLT, at, vector, "");
    LLVMValueRef r = LLVMBuildSelect(g->b, before, below ? all : none, below ? none : all, "");
    return LLVMBuildSelect(g->b, here, LLVMConstVector(part, (unsigned)w), r, "");
}

/* Where elements outside of the operand are wanted, zeros. */
static LLVMValueRef only_inside(TlCpuGen *g, const TlOp *op, const TlNestWindow *v,
                                const TlCpuAt *at, LLVMValueRef x)
{
    int64_t n = op->out[0]->type->shape[at->lane], extent = tl_in(op, 0)->type->shape[at->lane];
    int64_t lo = v->step > 0 ? -v->start : v->start - extent + 1,
            hi = v->step > 0 ? extent - v->start : v->start + 1;
    LLVMValueRef j = at->idx[at->lane], zero = LLVMConstNull(LLVMTypeOf(x));
    if (lo > 0)
        x = LLVMBuildSelect(g->b, lanes_from(g, j, lo, at->width, false), x, zero, "");
    if (hi < n)
        x = LLVMBuildSelect(g->b, lanes_from(g, j, hi, at->width, true), x, zero, "");
    return x;
}

/* The vector of x that begins at `first`; where that is outside, another one. */
static LLVMValueRef vector_at(TlCpuGen *g, TlValue *x, const TlCpuAt *at, LLVMValueRef first,
                              bool wraps)
{
    int d = at->lane;
    int64_t room = tl_nest_readable(x->type, d), last = room - at->width;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), end = tl_gen_int(&g->gen, last);
    if (wraps) {
        LLVMValueRef around = LLVMBuildSub(g->b, first, tl_gen_int(&g->gen, room), "");
        first = tl_gen_pick(&g->gen, LLVMIntSGT, first, end, around, first);
    } else {
        first = tl_cpu_larger(g, first, zero);
        first = tl_cpu_smaller(g, first, end);
    }
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank, d, at->width);
    sub.whole = at->whole && room == x->type->shape[d]; /* the padding is not inside */
    sub.idx[d] = first;
    return tl_cpu_eval(g, x, &sub);
}

/* Lanes of two neighbouring vectors. */
static LLVMValueRef shuffled(TlCpuGen *g, TlOp *op, const TlNestWindow *v, const TlCpuAt *at)
{
    int w = at->width;
    TlValue *x = tl_in(op, 0);
    int64_t low = v->step > 0 ? v->start : v->start - (w - 1), off = (low % w + w) % w;
    LLVMValueRef j = at->idx[at->lane], base = tl_gen_int(&g->gen, low - off), order[TL_NEST_LANES];
    base = v->step > 0 ? LLVMBuildAdd(g->b, base, j, "") : LLVMBuildSub(g->b, base, j, "");
    LLVMValueRef r = vector_at(g, x, at, base, v->wraps), other = LLVMGetPoison(LLVMTypeOf(r));
    if (off)
        other = vector_at(g, x, at, LLVMBuildAdd(g->b, base, tl_gen_int(&g->gen, w), ""), v->wraps);
    for (int i = 0; i < w; i++)
        order[i] = LLVMConstInt(g->i32, (unsigned)(off + (v->step > 0 ? i : w - 1 - i)), 0);
    if (off || v->step < 0)
        r = LLVMBuildShuffleVector(g->b, r, other, LLVMConstVector(order, (unsigned)w), "");
    return v->wraps ? r : only_inside(g, op, v, at, r);
}

/* Does the vector that begins at `first` lie within the operand, without its padding, which is not
 * zeros? NULL: all of them do. */
static LLVMValueRef is_within(TlCpuGen *g, const TlOp *op, const TlNestWindow *v,
                              const TlCpuAt *at, LLVMValueRef first)
{
    const TlValue *x = tl_in(op, 0);
    int64_t n = tl_nest_readable(op->out[0]->type, at->lane), w = at->width,
            room = x->type->shape[at->lane];
    int64_t low = v->step > 0 ? v->start : v->start - (n - 1), high = low + n;
    if (low >= 0 && high <= room)
        return NULL;
    return LLVMBuildICmp(g->b, LLVMIntULE, first, tl_gen_int(&g->gen, room - w), "");
}

/* The vector that begins where the window says, from where it is, or, at the ends, of two. */
static LLVMValueRef shifted(TlCpuGen *g, TlOp *op, const TlNestWindow *v, const TlCpuAt *at)
{
    int w = at->width;
    LLVMValueRef j = at->idx[at->lane], first, order[TL_NEST_LANES];
    first = v->step > 0 ? LLVMBuildAdd(g->b, j, tl_gen_int(&g->gen, v->start), "")
                        : LLVMBuildSub(g->b, tl_gen_int(&g->gen, v->start - (w - 1)), j, "");
    if (w > tl_in(op, 0)->type->shape[at->lane]) /* no vector lies within */
        return shuffled(g, op, v, at);
    LLVMValueRef within = is_within(g, op, v, at, first);
    TlCpuFork f = {0};
    if (within)
        f = tl_cpu_fork(g, within);
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank, at->lane, w);
    sub.shifted |= v->start % w != 0 || v->step < 0;
    sub.idx[at->lane] = first;
    LLVMValueRef r = tl_cpu_eval(g, tl_in(op, 0), &sub);
    for (int i = 0; i < w; i++)
        order[i] = LLVMConstInt(g->i32, (unsigned)(w - 1 - i), 0);
    if (v->step < 0)
        r = LLVMBuildShuffleVector(g->b, r, LLVMGetPoison(LLVMTypeOf(r)),
                                   LLVMConstVector(order, (unsigned)w), "");
    if (!within)
        return r;
    tl_cpu_fork_else(g, &f, r);
    return tl_cpu_fork_end(g, &f, shuffled(g, op, v, at));
}

/* Lanes of the vector at the same place, or of groups of it. */
static LLVMValueRef permuted(TlCpuGen *g, TlOp *op, const TlNestMove *m, const TlCpuAt *at)
{
    TlCpuAt same;
    LLVMValueRef order[TL_NEST_LANES];
    tl_cpu_at_under(g, &same, at, at->rank, at->lane, at->width);
    LLVMValueRef r = tl_cpu_eval(g, tl_in(op, 0), &same);
    for (int i = 0; i < at->width; i++)
        order[i] =
            LLVMConstInt(g->i32, (unsigned)(i / m->period * m->period + m->from[i % m->period]), 0);
    return LLVMBuildShuffleVector(g->b, r, LLVMGetPoison(LLVMTypeOf(r)),
                                  LLVMConstVector(order, (unsigned)at->width), "");
}

static bool may_shuffle(const TlNestMove *m, const TlOp *gather, int lane, int w)
{
    const TlType *from = tl_in(gather, 0)->type;
    int64_t room = m->window.wraps ? from->shape[lane] : tl_nest_readable(from, lane);
    return room % w == 0;
}

/* ---- gathers ---- */

LLVMValueRef tl_cpu_eval_gather(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0), *index = tl_in(op, 1);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0), w = at->width;
    const TlNestMove *m = w > 1 ? tl_nest_move_of(g->plan, op, at->lane) : NULL;
    TlNestWay way = g->plan->place[op->out[0]->id].way;
    if (m && m->rows)
        return other_row(g, op, axis, at);
    if (m && m->period && w % m->period == 0)
        return permuted(g, op, m, at);
    if (m && !m->period && may_shuffle(m, op, at->lane, w))
        return (way == TL_NEST_SHIFTS ? shifted : shuffled)(g, op, &m->window, at);
    LLVMTypeRef i64s = tl_gen_vec(g->i64, w);
    LLVMValueRef k = LLVMBuildIntCast2(g->b, tl_cpu_eval(g, index, at), i64s,
                                       tl_is_signed(index->type->dtype), "");
    LLVMValueRef extent = tl_gen_splat(&g->gen, tl_gen_int(&g->gen, x->type->shape[axis]), w);
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntULT, k, extent, "");
    LLVMValueRef zero = LLVMConstNull(tl_gen_vec(tl_gen_elem_type(&g->gen, x->type), w));
    k = LLVMBuildSelect(g->b, inside, k, LLVMConstNull(i64s), "");
    if (w == 1)
        return LLVMBuildSelect(g->b, inside, gather_lane(g, x, axis, k, at, 0), zero, "");
    TlValue *partner = g->plan->place[op->out[0]->id].partner;
    if (partner && at->lane == axis && tl_nest_readable(x->type, axis) % w == 0)
        return LLVMBuildSelect(g->b, inside, partners(g, x, partner, at), zero, "");
    LLVMValueRef r = zero;
    for (int i = 0; i < w; i++) {
        LLVMValueRef n = LLVMConstInt(g->i32, (unsigned)i, 0);
        LLVMValueRef e = gather_lane(g, x, axis, LLVMBuildExtractElement(g->b, k, n, ""), at, i);
        r = LLVMBuildInsertElement(g->b, r, e, n, "");
    }
    return LLVMBuildSelect(g->b, inside, r, zero, "");
}
