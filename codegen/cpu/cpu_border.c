/* Loads through index tiles: patterns, which are shuffles of whole vectors, and what is at the
 * bounds of an index tile (clamped, or outside): a vector of what these allow, and lanes of it. */
#include "codegen/cpu/cpu_access.h"

enum { BITS = 8 };

/* i1: do bounds leave the position's elements, but for the tile's padding, where they are? */
static LLVMValueRef is_unbounded(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at,
                                 int64_t extent)
{
    LLVMValueRef all = a->ok, n = tl_gen_int(&g->gen, extent), j = at->idx[at->lane],
                 end = LLVMBuildAdd(g->b, j, tl_gen_int(&g->gen, at->width), "");
    end = tl_cpu_smaller(g, end, n);
    for (uint32_t i = 0; i < a->a->place.naxes; i++) {
        int dim = a->a->axis[i].dim;
        if (dim == at->lane) {
            all = tl_cpu_both(g, all, LLVMBuildICmp(g->b, LLVMIntSGE, j, a->lo[i], ""));
            all = tl_cpu_both(g, all, LLVMBuildICmp(g->b, LLVMIntSLE, end, a->hi[i], ""));
        } else if (a->a->place.axes[i].kind == TL_AXIS_TILE) {
            LLVMValueRef row = a->bounded[i] ? NULL : tl_cpu_index_tile(g, a, (int)i, at);
            all = tl_cpu_both(g, all,
                              row ? LLVMBuildICmp(g->b, LLVMIntULT, row, a->view->extent[i], "")
                                  : a->bounded[i]);
        } else if (a->a->place.axes[i].kind == TL_AXIS_SLICE) {
            all = tl_cpu_both(g, all, tl_cpu_interval_inside(g, a, (int)i, at->idx[dim]));
        }
    }
    return all;
}

static LLVMValueRef clamp(TlCpuGen *g, LLVMValueRef x, LLVMValueRef least, LLVMValueRef most)
{
    return tl_cpu_smaller(g, tl_cpu_larger(g, x, least), most);
}

/* In all lanes: x, or a number of that sign which is as far from every lane. */
static LLVMValueRef in_lanes(TlCpuGen *g, LLVMValueRef x, LLVMTypeRef type, int w)
{
    LLVMValueRef far = tl_gen_int(&g->gen, TL_NEST_LANES);
    x = clamp(g, x, LLVMBuildNeg(g->b, far, ""), far);
    return tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, x, type, ""), w);
}

/* The axis of the lanes, if that is an index tile; -1: it is not. */
static int lane_tile(const TlCpuAccess *a, const TlCpuAt *at)
{
    for (uint32_t i = 0; i < a->a->place.naxes; i++)
        if (a->a->axis[i].dim == at->lane && a->a->place.axes[i].kind == TL_AXIS_TILE)
            return (int)i;
    return -1;
}

/* One vector of what the bounds of an index tile allow, as near to the position `here` as it lies,
 * and lanes of that.
 *
 *     view        0 1 2 3 4 5 6 7 ...        position -3, bounds from 0 on
 *     the vector  0 1 2 3 4 5 6 7
 *     its lanes   0 0 0 0 1 2 3 4 */
static LLVMValueRef border_vector(TlCpuGen *g, TlOp *op, TlCpuAccess *a, const TlCpuAt *at, int i,
                                  LLVMValueRef here)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    int w = at->width, bytes = (int)tl_gen_elem_bytes(&elem);
    LLVMValueRef lanes = tl_gen_int(&g->gen, w), low = a->low[i], high = a->high[i],
                 last = tl_cpu_larger(g, low, LLVMBuildSub(g->b, high, lanes, "")),
                 first = clamp(g, here, low, last), n = LLVMBuildSub(g->b, high, first, "");
    TlCpuAt moved = *at;
    moved.idx[at->lane] = LLVMBuildSub(g->b, first, a->start[i], "");
    TlCpuSpot s = tl_cpu_view_spot(g, a, &moved, true);
    TL_ASSERT(!s.mask && !s.apart, "a border's vector has gaps");
    n = clamp(g, n, tl_gen_int(&g->gen, 0), lanes);
    if (s.uniform)
        n = LLVMBuildSelect(g->b, s.uniform, n, tl_gen_int(&g->gen, 0), "");
    LLVMTypeRef type = LLVMIntTypeInContext(g->c, (unsigned)(BITS * bytes)); /* as lanes are wide */
    LLVMValueRef number = tl_gen_iota(&g->gen, type, w),
                 other = tl_cpu_outside(g, a, &elem, &moved), all = in_lanes(g, n, type, w);
    LLVMValueRef read = tl_cpu_lane_range(g, tl_gen_int(&g->gen, 0), n, w),
                 x = tl_cpu_masked_load(g, &elem, s.ptr, read, other, w, false);
    LLVMValueRef index = LLVMBuildSub(g->b, here, first, "");
    index = LLVMBuildAdd(g->b, number, in_lanes(g, index, type, w), "");
    if (a->least[i]) {
        LLVMValueRef least = LLVMBuildSub(g->b, a->least[i], first, "");
        index = tl_cpu_larger(g, index, in_lanes(g, least, type, w));
    }
    if (a->most[i]) {
        LLVMValueRef most = LLVMBuildSub(g->b, a->most[i], first, "");
        index = tl_cpu_smaller(g, index, in_lanes(g, most, type, w));
    }
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntULT, index, all, "");
    x = tl_gen_to_mem(&g->gen, &elem, x);
    x = tl_gen_from_mem(&g->gen, &elem, tl_cpu_permute(g, x, bytes, index));
    return LLVMBuildSelect(g->b, inside, x, other, "");
}

/* ---- the first or last element, again and again; at the other end, or mirrored ---- */

/* Lanes in the other order. */
static LLVMValueRef reversed(TlCpuGen *g, LLVMValueRef x)
{
    LLVMValueRef order[TL_NEST_LANES];
    int w = tl_gen_width_of(x);
    for (int k = 0; k < w; k++)
        order[k] = tl_cpu_i32(g, w - 1 - k);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(order, (unsigned)w), "");
}

/* Those of the vector's elements that are inside, from position `from` on; others are 0. */
static LLVMValueRef inside_vector(TlCpuGen *g, const TlType *elem, TlCpuAccess *a,
                                  const TlCpuAt *at, int i, LLVMValueRef from)
{
    int w = at->width;
    LLVMValueRef to = a->view->extent[i];
    TlCpuAt moved = *at;
    moved.idx[at->lane] = LLVMBuildSub(g->b, from, a->start[i], "");
    TlCpuSpot s = tl_cpu_view_spot(g, a, &moved, true);
    TL_ASSERT(!s.mask && !s.apart, "a border's vector has gaps");
    if (s.uniform)
        to = LLVMBuildSelect(g->b, s.uniform, to, tl_gen_int(&g->gen, 0), "");
    LLVMValueRef read =
        tl_cpu_lane_range(g, LLVMBuildNeg(g->b, from, ""), LLVMBuildSub(g->b, to, from, ""), w);
    return tl_cpu_masked_load(g, elem, s.ptr, read, tl_gen_const(&g->gen, elem, 0, w), w, false);
}

/* The row of elements at a position of the axis (one, where it has no rows), again and again, as
 * lanes from `here` on have it; is: there is one, else zeros. */
static LLVMValueRef repeated(TlCpuGen *g, const TlType *elem, TlCpuAccess *a, const TlCpuAt *at,
                             int i, LLVMValueRef position, LLVMValueRef is)
{
    int64_t unit = a->a->axis[i].affine.unit;
    int n = unit ? (int)unit : 1, w = at->width;
    LLVMValueRef v = LLVMGetPoison(tl_gen_vec(tl_gen_elem_type(&g->gen, elem), w)),
                 lane[TL_NEST_LANES], rows = tl_gen_int(&g->gen, n);
    TlCpuAt one = *at;
    for (int k = 0; k < n; k++) { /* rows begin with the nest */
        LLVMValueRef by = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, k), "");
        by = LLVMBuildAdd(g->b, position, LLVMBuildURem(g->b, by, rows, ""), "");
        one.idx[at->lane] = LLVMBuildSub(g->b, by, a->start[i], "");
        LLVMValueRef p = tl_cpu_view_spot(g, a, &one, true).ptr;
        p = LLVMBuildSelect(g->b, is, p, tl_cpu_zero_row(g), "");
        v = LLVMBuildInsertElement(g->b, v, tl_cpu_plain_load(g, a, elem, p, 1),
                                   tl_cpu_i32(g, (uint64_t)k), "");
    }
    for (int k = 0; k < w; k++)
        lane[k] = tl_cpu_i32(g, (uint64_t)(k % n));
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(lane, (unsigned)w), "");
}

/* Where bounds are those of the view: what is inside of the vector, and beside that its ends.
 *
 *     positions  -2  -1   0   1      lanes  .  .  0  1   and  0  0  .  . */
static LLVMValueRef ended_vector(TlCpuGen *g, const TlType *elem, TlCpuAccess *a, TlCpuAt *at,
                                 int i, LLVMValueRef here)
{
    int64_t row = a->a->axis[i].affine.unit ? a->a->axis[i].affine.unit : 1;
    LLVMValueRef n = a->view->extent[i], zero = tl_gen_int(&g->gen, 0),
                 last = LLVMBuildSub(g->b, n, tl_gen_int(&g->gen, row), ""),
                 is = tl_cpu_both(g, tl_cpu_view_spot(g, a, at, true).uniform,
                                  LLVMBuildICmp(g->b, LLVMIntSGT, n, zero, "")),
                 before = LLVMBuildNeg(g->b, here, ""),
                 below = tl_cpu_lane_range(g, zero, before, at->width),
                 inside = tl_cpu_lane_range(g, before, LLVMBuildSub(g->b, n, here, ""), at->width),
                 x = inside_vector(g, elem, a, at, i, here),
                 ends = LLVMBuildSelect(g->b, below, repeated(g, elem, a, at, i, zero, is),
                                        repeated(g, elem, a, at, i, last, is), "");
    x = LLVMBuildSelect(g->b, inside, x, ends, "");
    bool other = a->a->place.other; /* of rows outside */
    return other ? LLVMBuildSelect(g->b, is, x, tl_cpu_outside(g, a, elem, at), "") : x;
}

/* The other vector that one from `here` on takes from: from its first element to behind its last.
 * Returned: does it have all lanes that are outside, of one end? Below, those are from 0 on; above,
 * they end with the array. Of arrays of few elements, or far from them, it may not. */
static LLVMValueRef find_other(TlCpuGen *g, TlWay way, LLVMValueRef here, LLVMValueRef end,
                               LLVMValueRef n, LLVMValueRef *out_from)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), one = tl_gen_int(&g->gen, 1),
                 below = LLVMBuildICmp(g->b, LLVMIntSLT, here, zero, ""),
                 above = LLVMBuildNot(g->b, below, ""), from, to;
    if (way == TL_WAY_WRAP) {
        LLVMValueRef by = LLVMBuildSelect(g->b, below, n, LLVMBuildNeg(g->b, n, ""), "");
        from = LLVMBuildAdd(g->b, here, by, "");
        to = LLVMBuildAdd(g->b, end, by, "");
    } else { /* position x is at `sum` - x */
        int64_t last = way == TL_WAY_REFLECT ? 0 : -1;
        LLVMValueRef sum = LLVMBuildAdd(g->b, n, n, "");
        sum = LLVMBuildSub(g->b, sum, tl_gen_int(&g->gen, last + 2), "");
        sum = LLVMBuildSelect(g->b, below, tl_gen_int(&g->gen, last), sum, "");
        from = LLVMBuildAdd(g->b, LLVMBuildSub(g->b, sum, end, ""), one, "");
        to = LLVMBuildAdd(g->b, LLVMBuildSub(g->b, sum, here, ""), one, "");
    }
    *out_from = from;
    LLVMValueRef begins = LLVMBuildICmp(g->b, LLVMIntSGE, from, zero, ""),
                 ends = LLVMBuildICmp(g->b, LLVMIntSLE, to, n, ""),
                 has = LLVMBuildSelect(g->b, way == TL_WAY_WRAP ? below : above, begins, ends, ""),
                 one_end =
                     LLVMBuildOr(g->b, above, LLVMBuildICmp(g->b, LLVMIntSLE, end, n, ""), "");
    return LLVMBuildAnd(g->b, has, one_end, "");
}

/* A vector that lies across one end of the array, or outside: what is inside of it, and beside that
 * a vector from the other end, or the same end turned round; else lane by lane.
 *
 *     wrap       positions  E-2 E-1  E  E+1      lanes  E-2 E-1  .   .    and  .  .  0   1
 *     symmetric  positions   -2  -1  0   1               .   .   0   1    and  1  0  .   . */
static LLVMValueRef mirrored_vector(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at, int i,
                                    LLVMValueRef here)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlWay way = a->a->axis[i].affine.way;
    int w = at->width;
    LLVMValueRef n = a->view->extent[i], from,
                 end = LLVMBuildAdd(g->b, here, tl_gen_int(&g->gen, w), "");
    TlCpuFork f = tl_cpu_fork(g, find_other(g, way, here, end, n, &from));
    LLVMValueRef inside = tl_cpu_lane_range(g, LLVMBuildNeg(g->b, here, ""),
                                            LLVMBuildSub(g->b, n, here, ""), w),
                 x = inside_vector(g, &elem, a, at, i, here),
                 y = inside_vector(g, &elem, a, at, i, from);
    y = way == TL_WAY_WRAP ? y : reversed(g, y);
    tl_cpu_fork_else(g, &f, LLVMBuildSelect(g->b, inside, x, y, ""));
    return tl_cpu_fork_end(g, &f, tl_cpu_load_apart(g, op, a, at));
}

/* A vector of which bounds of an index tile may change something. One whose numbers of i32 wrap, so
 * that it has both ends of the view, is seldom. */
static LLVMValueRef changed_vector(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at, int i,
                                   LLVMValueRef here)
{
    if (a->a->axis[i].affine.mirrored)
        return mirrored_vector(g, op, a, at, i, here);
    const TlNestAffine *f = &a->a->axis[i].affine;
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    if (f->dtype != TL_I32)
        return f->fits ? ended_vector(g, &elem, a, at, i, here)
                       : border_vector(g, op, a, at, i, here);
    here = LLVMBuildSExt(g->b, LLVMBuildTrunc(g->b, here, g->i32, ""), g->i64, "");
    LLVMValueRef most = tl_gen_int(&g->gen, (int64_t)INT32_MAX - at->width);
    TlCpuFork fork = tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntSLE, here, most, ""));
    tl_cpu_fork_else(g, &fork,
                     f->fits ? ended_vector(g, &elem, a, at, i, here)
                             : border_vector(g, op, a, at, i, here));
    return tl_cpu_fork_end(g, &fork, tl_cpu_load_apart(g, op, a, at));
}

/* Can it be made of vectors? Rows of elements at an edge or the other end can. */
static bool has_border_vector(const TlCpuGen *g, const TlNestAffine *f, int bytes, int width)
{
    enum { MOST_ROW = 8 };
    if (!g->m.masks && bytes < 4)
        return false;
    if (f->unit)
        return f->unit <= MOST_ROW && f->unit <= width && f->dtype == TL_I64 &&
               (f->mirrored ? f->way == TL_WAY_WRAP : f->fits);
    return f->mirrored || f->fits || tl_cpu_can_permute(g, bytes, width);
}

/* The same; of a nest's vectors at a border, most loads have all inside. NULL: there is no
 * instruction for what bounds change. */
static LLVMValueRef load_border(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    int i = lane_tile(a, at), bytes = (int)tl_gen_elem_bytes(&elem);
    if (i < 0 || !a->low[i] || !has_border_vector(g, &a->a->axis[i].affine, bytes, at->width))
        return NULL;
    LLVMValueRef here = LLVMBuildAdd(g->b, a->start[i], at->idx[at->lane], ""),
                 end = LLVMBuildAdd(g->b, here, tl_gen_int(&g->gen, at->width), "");
    TlCpuSpot s = tl_cpu_view_spot(g, a, at, true);
    TL_ASSERT(!s.mask && !s.apart, "a border's vector has gaps");
    LLVMValueRef inside = LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntSGE, here, a->low[i], ""),
                                       LLVMBuildICmp(g->b, LLVMIntSLE, end, a->high[i], ""), "");
    TlCpuFork f = tl_cpu_fork(g, tl_cpu_both(g, s.uniform, inside));
    tl_cpu_fork_else(g, &f, tl_cpu_plain_load(g, a, &elem, s.ptr, at->width));
    return tl_cpu_fork_end(g, &f, changed_vector(g, op, a, at, i, here));
}

/* Where bounds of an index tile may change something. The last vector of a tile with padding is
 * most often none of those. */
LLVMValueRef tl_cpu_load_bounded(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    LLVMValueRef own = tl_cpu_lane_mask(g, &form, at), border = NULL;
    TlCpuAt whole = *at;
    whole.whole = true;
    if (tl_cpu_is_asked_whole(g, a->a) &&
        !g->tests_lanes) { /* of a copy, too, which has what is outside */
        LLVMValueRef p = tl_cpu_view_spot(g, a, &whole, false).ptr,
                     zero = tl_gen_const(&g->gen, &elem, 0, at->width);
        return own ? tl_cpu_masked_load(g, &elem, p, own, zero, at->width, false)
                   : tl_cpu_plain_load(g, a, &elem, p, at->width);
    }
    if (a->a->has_interval)
        border = load_border(g, op, a, at);
    if (border)
        return border;
    if (!own || !a->a->has_interval)
        return tl_cpu_load_apart(g, op, a, at);
    TlCpuFork f = tl_cpu_fork(g, is_unbounded(g, a, at, form.extent[at->lane]));
    LLVMValueRef zero = tl_gen_const(&g->gen, &elem, 0, at->width);
    LLVMValueRef p = tl_cpu_view_spot(g, a, &whole, false).ptr,
                 x = tl_cpu_masked_load(g, &elem, p, own, zero, at->width, false);
    tl_cpu_fork_else(g, &f, x);
    return tl_cpu_fork_end(g, &f, tl_cpu_load_apart(g, op, a, at));
}

/* Lanes of one or two vectors, which end with the last element that is wanted. NULL: it is no such
 * position. */
LLVMValueRef tl_cpu_load_pattern(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    const TlNestAffine *f = at->width > 1 ? tl_nest_pattern_along(a->a, at->lane) : NULL;
    int64_t first, span = f ? tl_nest_pattern_span(f, at->width, &first) : 0;
    if (!span || span > 2 * at->width || !tl_cpu_is_inside(a, at) || at->shifted)
        return NULL;
    int64_t n = 1;
    while (2 * n <= span && n < at->width)
        n *= 2;
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlCpuAt moved = *at;
    moved.width = 1;
    LLVMValueRef group = LLVMBuildUDiv(g->b, at->idx[at->lane], tl_gen_int(&g->gen, f->period), "");
    moved.idx[at->lane] = LLVMBuildAdd(g->b, tl_cpu_mul(g, group, tl_gen_int(&g->gen, f->step)),
                                       tl_gen_int(&g->gen, first), "");
    TlCpuSpot s = tl_cpu_view_spot(g, a, &moved, true);
    s.ptr = tl_cpu_spot_or_zeros(g, a, &s);
    LLVMValueRef v[2], lane[TL_NEST_LANES], r;
    for (int k = 0; k < 2; k++)
        v[k] = tl_cpu_plain_load(
            g, a, &elem,
            tl_gen_address(&g->gen, elem.dtype, s.ptr, tl_gen_int(&g->gen, k ? span - n : 0)),
            (int)n);
    for (int k = 0; k < at->width; k++) {
        int64_t e = k / f->period * f->step + f->of[k % f->period] - first;
        lane[k] = LLVMConstInt(g->i32, (uint64_t)(e < n ? e : e - (span - n) + n), 0);
    }
    LLVMValueRef order = LLVMConstVector(lane, (unsigned)at->width);
    r = n == 1 ? tl_gen_splat(&g->gen, v[0], at->width) /* all lanes take one element */
               : LLVMBuildShuffleVector(g->b, v[0], v[1], order, "");
    bool other = s.uniform && a->a->place.other;
    return other ? LLVMBuildSelect(g->b, s.uniform, r, tl_cpu_outside(g, a, &elem, at), "") : r;
}

LLVMValueRef tl_cpu_load_window(TlCpuGen *g, TlOp *op, TlCpuAccess *a, const TlCpuAt *at)
{
    const TlNestSpread *s = at->spread;
    const TlNestAffine *f = tl_nest_pattern_along(a->a, at->lane);
    TL_ASSERT(f && tl_cpu_is_inside(a, at), "%s has no pattern here", tl_op_info(op->opcode)->text);
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlCpuAt moved = *at;
    moved.width = 1;
    moved.idx[at->lane] =
        LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, f->of[0] - s->like->of[0]), "");
    TlCpuSpot spot = tl_cpu_view_spot(g, a, &moved, true);
    return tl_cpu_plain_load(g, a, &elem, tl_cpu_spot_or_zeros(g, a, &spot), at->width);
}

static LLVMValueRef low_words(TlCpuGen *g, LLVMValueRef x, int w)
{
    return tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, x, g->i32, ""), w);
}

/* Numbers of a pattern in i32, within bounds of which the least is not below 0, where the sum of
 * its scalars is so small that none wraps. NULL: it has no such bounds. *out_small: i1, it is. */
static LLVMValueRef pattern_numbers(TlCpuGen *g, const TlCpuAccess *a, int i, LLVMValueRef group,
                                    int w, LLVMValueRef *out_small)
{
    const TlNestAffine *f = &a->a->axis[i].affine;
    if (f->dtype != TL_I32 || !a->least[i])
        return NULL;
    LLVMValueRef of[TL_NEST_LANES], bound[] = {a->least[i], a->most[i]};
    for (int k = 0; k < w; k++)
        of[k] = LLVMConstInt(g->i32, (uint64_t)(k / f->period * f->step + f->of[k % f->period]), 1);
    LLVMValueRef first = LLVMBuildAdd(g->b, tl_cpu_mul(g, group, tl_gen_int(&g->gen, f->step)),
                                      a->start[i], ""),
                 order = LLVMConstVector(of, (unsigned)w),
                 x = LLVMBuildAdd(g->b, low_words(g, first, w), order, ""),
                 zero = tl_gen_int(&g->gen, 0);
    for (int k = 0; k < 2 && bound[k]; k++) {
        LLVMValueRef b = low_words(g, bound[k], w);
        LLVMIntPredicate within = k ? LLVMIntSLT : LLVMIntSGT;
        x = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, within, x, b, ""), x, b, "");
    }
    *out_small = LLVMBuildAnd(
        g->b, LLVMBuildICmp(g->b, LLVMIntULT, a->start[i], tl_cpu_pattern_end(g, f), ""),
        LLVMBuildICmp(g->b, LLVMIntSGE, bound[0], zero, ""), "");
    return x;
}

/* A pattern at the bounds of its index tile: lanes of one vector of what these allow, as near to
 * the pattern as it lies, as the indices say. Where numbers may have wrapped, so that one is inside
 * and not in that vector, each lane is loaded by itself. NULL: it is none, or there is no
 * instruction for that. */
LLVMValueRef tl_cpu_load_pattern_border(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    const TlNestAffine *f = at->width > 1 ? tl_nest_pattern_along(a->a, at->lane) : NULL;
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    int i = f ? lane_tile(a, at) : -1, w = at->width, bytes = (int)tl_gen_elem_bytes(&elem);
    int64_t first, span = f ? tl_nest_pattern_span(f, w, &first) : 0;
    if (!span || span > w || i < 0 || !a->low[i] || at->shifted || a->a->forks ||
        !a->a->has_interval || !tl_cpu_can_permute(g, bytes, w))
        return NULL;
    LLVMValueRef group = LLVMBuildUDiv(g->b, at->idx[at->lane], tl_gen_int(&g->gen, f->period), ""),
                 here = LLVMBuildAdd(g->b, tl_cpu_mul(g, group, tl_gen_int(&g->gen, f->step)),
                                     tl_gen_int(&g->gen, first), ""),
                 lanes = tl_gen_int(&g->gen, w), low = a->low[i], high = a->high[i],
                 last = tl_cpu_larger(g, low, LLVMBuildSub(g->b, high, lanes, "")),
                 from = clamp(g, LLVMBuildAdd(g->b, here, a->start[i], ""), low, last);
    TlCpuAt moved = *at;
    moved.width = 1;
    moved.idx[at->lane] = LLVMBuildSub(g->b, from, a->start[i], "");
    TlCpuSpot s = tl_cpu_view_spot(g, a, &moved, true);
    LLVMValueRef n = clamp(g, LLVMBuildSub(g->b, high, from, ""), tl_gen_int(&g->gen, 0), lanes),
                 other = tl_cpu_outside(g, a, &elem, at), is_near,
                 lane = pattern_numbers(g, a, i, group, w, &is_near), is_there;
    if (s.uniform)
        n = LLVMBuildSelect(g->b, s.uniform, n, tl_gen_int(&g->gen, 0), "");
    LLVMValueRef read = tl_cpu_lane_range(g, tl_gen_int(&g->gen, 0), n, w);
    if (lane) {
        lane = LLVMBuildSub(g->b, lane, low_words(g, from, w), "");
        is_there = LLVMBuildICmp(g->b, LLVMIntULT, lane, in_lanes(g, n, g->i32, w), "");
    } else {
        LLVMValueRef index = tl_cpu_index_tile(g, a, i, at), extent = a->view->extent[i], is_inside;
        lane = LLVMBuildSub(g->b, index, tl_gen_splat(&g->gen, from, w), "");
        is_there = LLVMBuildICmp(g->b, LLVMIntULT, lane, tl_gen_splat(&g->gen, n, w), "");
        is_inside = LLVMBuildICmp(g->b, LLVMIntULT, index, tl_gen_splat(&g->gen, extent, w), "");
        if (s.uniform)
            is_inside = LLVMBuildAnd(g->b, is_inside, tl_gen_splat(&g->gen, s.uniform, w), "");
        is_inside = LLVMBuildAnd(g->b, is_inside, LLVMBuildNot(g->b, is_there, ""), "");
        is_near = tl_cpu_in_no_lane(g, is_inside);
        lane = LLVMBuildTrunc(g->b, lane, tl_gen_vec(g->i32, w), "");
    }
    TlCpuFork fork = tl_cpu_fork(g, is_near);
    LLVMValueRef x =
        tl_cpu_masked_load(g, &elem, s.ptr, read, tl_gen_const(&g->gen, &elem, 0, w), w, false);
    x = tl_cpu_permute(g, tl_gen_to_mem(&g->gen, &elem, x), bytes, lane);
    x = LLVMBuildSelect(g->b, is_there, tl_gen_from_mem(&g->gen, &elem, x), other, "");
    tl_cpu_fork_else(g, &fork, x);
    return tl_cpu_fork_end(g, &fork, tl_cpu_load_apart(g, op, a, at));
}
