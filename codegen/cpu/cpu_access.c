/* Memory on the CPU: loads, gathers, and the tests of bounds.
 *
 * The uniform part of an access (base address, valid interval of each slice) is computed once
 * where the op stands. In a nest, a position is then (a) contiguous in its lanes: one masked
 * vector access, plain when all lanes are inside, (b) apart: masked gather or scatter, or (c)
 * one element: a conditional scalar access. */
#include "codegen/cpu/cpu.h"
#include "passes/analysis/facts.h"

static LLVMValueRef i32_(TlCpuGen *g, uint64_t v)
{
    return LLVMConstInt(g->i32, v, 0);
}

static LLVMValueRef mul(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildMul(g->b, a, b, "");
}

/* --check: asks the runtime whether the element may be accessed. If not, it reports that. */
static LLVMValueRef check_address(TlCpuGen *g, LLVMValueRef p, uint64_t bytes, int param, TlLoc loc)
{
    LLVMTypeRef params[7] = {g->ptr, g->ptr, g->i64, g->i32, g->i32, g->i32, g->i32};
    LLVMValueRef args[7] = {g->ctx,
                            p,
                            tl_gen_int(&g->gen, (int64_t)bytes),
                            LLVMConstInt(g->i32, (unsigned long long)(int64_t)param, 1),
                            i32_(g, loc.file),
                            i32_(g, loc.line),
                            i32_(g, loc.col)};
    LLVMTypeRef type = LLVMFunctionType(g->i32, params, 7, 0);
    LLVMValueRef ok = tl_cpu_service(g, TL_CPU_SERVICE(check), type, args, 7);
    return LLVMBuildICmp(g->b, LLVMIntNE, ok, i32_(g, 0), "");
}

/* ---- the uniform part ---- */

TlCpuAccess *tl_cpu_access_of(TlCpuGen *g, const TlOp *op)
{
    return tl_map_get_ptr(&g->access, op);
}

/* How many steps have these elements, of which there is at least one? */
static LLVMValueRef steps_of(TlCpuGen *g, LLVMValueRef elements, int64_t step)
{
    LLVMValueRef one = tl_gen_int(&g->gen, 1), by = tl_gen_int(&g->gen, step);
    if (step == 1)
        return elements;
    LLVMValueRef last = LLVMBuildSub(g->b, elements, one, "");
    return LLVMBuildAdd(g->b, LLVMBuildUDiv(g->b, last, by, ""), one, "");
}

/* [lo, hi): the positions j in 0..width-1 with 0 <= start + j * step < extent. No start
 * overflows. */
static void slice_interval(TlCpuGen *g, TlCpuAccess *a, int i, LLVMValueRef start,
                           LLVMValueRef extent)
{
    TL_ASSERT(i >= 0 && (uint32_t)i < a->a->place.naxes, "axis %d", i);
    int64_t width = a->a->place.axes[i].width, step = a->a->place.axes[i].step;
    TL_ASSERT(width > 0 && step > 0, "a slice of width %d by %d", (int)width, (int)step);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), w = tl_gen_int(&g->gen, width);
    a->lo[i] = zero;
    if (a->a->axis[i].may_be_below) {
        LLVMValueRef neg = LLVMBuildNeg(g->b, start, "");
        LLVMValueRef lo =
            tl_gen_pick(&g->gen, LLVMIntSLE, start, tl_gen_int(&g->gen, -width * step), w,
                        steps_of(g, neg, step));
        a->lo[i] = tl_gen_pick(&g->gen, LLVMIntSGE, start, zero, zero, lo);
    }
    LLVMValueRef left = steps_of(g, LLVMBuildSub(g->b, extent, start, ""), step);
    /* If start is so far below 0 that left overflows, lo is width, and hi does not matter. */
    LLVMValueRef hi = tl_gen_pick(&g->gen, LLVMIntUGT, left, w, w, left);
    a->hi[i] = tl_gen_pick(&g->gen, LLVMIntSGE, start, extent, zero, hi);
}

/* Where an index tile that is start, start + 1, ... begins. */
static LLVMValueRef affine_start(TlCpuGen *g, const TlNestAffine *f)
{
    LLVMTypeRef type = f->dtype == TL_I32 ? g->i32 : g->i64;
    LLVMValueRef sum = LLVMConstInt(type, (unsigned long long)f->offset, 1);
    for (uint32_t k = 0; k < f->nterms; k++) {
        LLVMValueRef x = tl_gen_scalar(&g->gen, f->term[k]);
        sum = f->minus[k] ? LLVMBuildSub(g->b, sum, x, "") : LLVMBuildAdd(g->b, sum, x, "");
    }
    sum = LLVMBuildIntCast2(g->b, sum, g->i64, 1, "");
    return f->shift ? LLVMBuildAShr(g->b, sum, tl_gen_int(&g->gen, f->shift), "") : sum;
}

/* Numbers of i32 end at 2^31: what is behind is outside, whatever the extent. */
static LLVMValueRef affine_extent(TlCpuGen *g, const TlNestAffine *f, LLVMValueRef extent)
{
    LLVMValueRef most = tl_gen_int(&g->gen, (int64_t)INT32_MAX + 1);
    bool ends = f->is && f->dtype == TL_I32;
    return ends ? tl_gen_pick(&g->gen, LLVMIntSLT, extent, most, extent, most) : extent;
}

/* The number that a tile is everywhere. */
static LLVMValueRef one_number(TlCpuGen *g, const TlValue *tile)
{
    TlWideInt n = 0;
    if (tl_const_int_value(tile, &n))
        return tl_gen_int(&g->gen, (int64_t)n);
    TlValue *x = tl_in(tile->def, 0);
    return tl_gen_to_i64(&g->gen, x, tl_gen_scalar(&g->gen, x));
}

static LLVMValueRef smaller(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return tl_gen_pick(&g->gen, LLVMIntSLT, a, b, a, b);
}

static LLVMValueRef larger(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return tl_gen_pick(&g->gen, LLVMIntSGT, a, b, a, b);
}

/* The bounds of an index tile, of which the weaker one never exceeds the other one. */
static void find_bounds(TlCpuGen *g, TlCpuAccess *a, int i)
{
    const TlNestAffine *f = &a->a->axis[i].affine;
    LLVMValueRef least = f->least ? one_number(g, f->least) : NULL,
                 most = f->most ? one_number(g, f->most) : NULL;
    if (least && most && f->least_wins)
        most = larger(g, least, most);
    else if (least && most)
        least = smaller(g, least, most);
    a->least[i] = least;
    a->most[i] = most;
}

/* x / by, rounded up; 0 where x is less. */
static LLVMValueRef quotient_up(TlCpuGen *g, LLVMValueRef x, int64_t by)
{
    x = LLVMBuildAdd(g->b, larger(g, x, tl_gen_int(&g->gen, 0)), tl_gen_int(&g->gen, by - 1), "");
    return LLVMBuildUDiv(g->b, x, tl_gen_int(&g->gen, by), "");
}

/* Where a pattern's start is below this, and not below 0, no number of it wraps. */
static LLVMValueRef pattern_end(TlCpuGen *g, const TlNestAffine *f)
{
    enum { LARGE = 30 };
    return tl_gen_int(&g->gen, ((int64_t)1 << LARGE) >> f->shift);
}

/* [lo, hi), for an index tile with a pattern: whole periods. Where its scalars' sum is negative or
 * so large that a number of i32 may wrap, there are none. Vectors that a spread value reads may end
 * behind the pattern's last element, but within the view. */
static void pattern_interval(TlCpuGen *g, TlCpuAccess *a, int i)
{
    const TlNestAffine *f = &a->a->axis[i].affine;
    int64_t first, span = tl_nest_pattern_span(f, f->period, &first);
    LLVMValueRef start = LLVMBuildAdd(g->b, a->start[i], tl_gen_int(&g->gen, first), ""),
                 by = tl_gen_int(&g->gen, f->period), zero = tl_gen_int(&g->gen, 0),
                 width = tl_gen_int(&g->gen, tl_nest_axis_width(a->a, (uint32_t)i));
    LLVMValueRef lo = quotient_up(g, LLVMBuildSub(g->b, a->low[i], start, ""), f->step),
                 hi = LLVMBuildSub(g->b, a->high[i], start, "");
    hi = quotient_up(g, LLVMBuildSub(g->b, hi, tl_gen_int(&g->gen, span - 1), ""), f->step);
    if (a->a->reads_to > first + span) {
        LLVMValueRef left = LLVMBuildSub(g->b, a->view->extent[i], a->start[i], "");
        left = LLVMBuildSub(g->b, left, tl_gen_int(&g->gen, a->a->reads_to - 1), "");
        hi = smaller(g, hi, quotient_up(g, left, f->step));
    }
    hi = smaller(g, mul(g, hi, by), width);
    a->lo[i] = mul(g, lo, by);
    a->hi[i] = tl_gen_pick(&g->gen, LLVMIntULT, a->start[i], pattern_end(g, f), hi, zero);
}

/* [lo, hi): the positions at which a bounded index tile is what it would be without bounds, and
 * inside. */
static void clamped_interval(TlCpuGen *g, TlCpuAccess *a, int i, LLVMValueRef start)
{
    const TlNestAffine *f = &a->a->axis[i].affine;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), low = zero, extent = a->view->extent[i],
                 never = LLVMConstInt(g->i1, 0, 0), high = affine_extent(g, f, a->view->extent[i]),
                 width = tl_gen_int(&g->gen, tl_nest_axis_width(a->a, (uint32_t)i));
    find_bounds(g, a, i);
    LLVMValueRef least = a->least[i], most = a->most[i];
    a->bounded[i] = least && most ? LLVMBuildICmp(g->b, LLVMIntSGT, extent, zero, "") : never;
    if (least) {
        a->bounded[i] = LLVMBuildAnd(g->b, a->bounded[i],
                                     LLVMBuildICmp(g->b, LLVMIntULT, least, extent, ""), "");
        low = larger(g, least, zero);
    }
    if (most) {
        LLVMValueRef end = LLVMBuildAdd(g->b, most, tl_gen_int(&g->gen, 1), "");
        a->bounded[i] = LLVMBuildAnd(g->b, a->bounded[i],
                                     LLVMBuildICmp(g->b, LLVMIntULT, most, extent, ""), "");
        high = smaller(g, end, high);
    }
    a->start[i] = start;
    a->low[i] = low;
    a->high[i] = high;
    if (f->period) {
        pattern_interval(g, a, i);
        return;
    }
    a->lo[i] = larger(g, LLVMBuildSub(g->b, low, start, ""), zero);
    high = larger(g, LLVMBuildSub(g->b, high, start, ""), zero);
    a->hi[i] = smaller(g, high, width);
}

static void prepare_axis(TlCpuGen *g, TlCpuAccess *a, int i, LLVMValueRef *offset)
{
    TL_ASSERT(i >= 0 && (uint32_t)i < a->a->place.naxes, "axis %d of %u", i, a->a->place.naxes);
    const TlAxis *axis = &a->a->place.axes[i];
    TlValue *index = a->a->place.index[i].value;
    LLVMValueRef stride = a->view->stride[i];
    a->stride[i] = stride;
    const TlNestAffine *f = &a->a->axis[i].affine;
    if (axis->kind == TL_AXIS_TILE && f->is)
        clamped_interval(g, a, i, affine_start(g, f));
    if (axis->kind == TL_AXIS_TILE)
        return;
    LLVMValueRef at =
        f->is ? affine_start(g, f) : tl_gen_to_i64(&g->gen, index, tl_gen_scalar(&g->gen, index));
    LLVMValueRef part = mul(g, at, stride), *sum = LLVMIsAConstantInt(part) ? &a->shift : offset;
    *sum = LLVMBuildAdd(g->b, *sum, part, "");
    if (axis->kind == TL_AXIS_SCALAR) {
        if (!a->a->bounds)
            return;
        LLVMValueRef in = LLVMBuildICmp(g->b, LLVMIntULT, at, a->view->extent[i], "");
        a->ok = a->ok ? LLVMBuildAnd(g->b, a->ok, in, "") : in;
        return;
    }
    a->start[i] = at;
    a->stride[i] = mul(g, stride, tl_gen_int(&g->gen, axis->step));
    if (!a->a->bounds) {
        a->lo[i] = tl_gen_int(&g->gen, 0);
        a->hi[i] = tl_gen_int(&g->gen, axis->width);
    } else if (axis->step > 0) {
        slice_interval(g, a, i, at, affine_extent(g, f, a->view->extent[i]));
    }
}

/* The program has asked, and all is inside. */
static void take_whole(TlCpuGen *g, TlCpuAccess *a)
{
    a->ok = NULL;
    for (uint32_t i = 0; i < a->a->place.naxes; i++) {
        if (!tl_nest_asks_axis(a->a, i) || a->a->place.axes[i].kind == TL_AXIS_SCALAR)
            continue;
        a->lo[i] = tl_gen_int(&g->gen, 0);
        a->hi[i] = tl_gen_int(&g->gen, tl_nest_axis_width(a->a, i));
        a->bounded[i] = LLVMConstInt(g->i1, 1, 0);
    }
}

TlCpuAccess *tl_cpu_prepare_access(TlCpuGen *g, TlOp *op)
{
    TlCpuAccess *a = TL_NEW(g->arena, TlCpuAccess);
    a->a = tl_map_get_ptr(&g->plan->access, op);
    tl_map_put_ptr(&g->access, op, a);
    if (!a->a->place.axes)
        return a;
    a->view = tl_gen_view(&g->gen, a->a->place.base);
    LLVMValueRef offset = a->shift = tl_gen_int(&g->gen, 0);
    for (uint32_t i = 0; i < a->a->place.naxes; i++)
        prepare_axis(g, a, (int)i, &offset);
    a->origin = tl_gen_address(&g->gen, a->view->dtype, a->view->ptr, offset);
    a->ptr = tl_gen_address(&g->gen, a->view->dtype, a->origin, a->shift);
    if (g->whole && tl_nest_asked(g->plan, op))
        take_whole(g, a);
    return a;
}

/* ---- a position ---- */

static LLVMValueRef both(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return !a ? b : !b ? a : LLVMBuildAnd(g->b, a, b, "");
}

/* What an index tile has in this row of the nest; NULL: it is not known. */
static LLVMValueRef index_of_row(const TlCpuAccess *a, int i, const TlCpuAt *at)
{
    int dim = a->a->axis[i].dim;
    for (uint32_t k = 0; at->row && at->lane != dim && k < at->row->index.len; k++) {
        const TlCpuRowIndex *x = &at->row->index.data[k];
        if (x->access == a && x->axis == (uint32_t)i && x->at == at->idx[dim])
            return x->value;
    }
    return NULL;
}

static LLVMValueRef index_tile(TlCpuGen *g, const TlCpuAccess *a, int i, const TlCpuAt *at)
{
    int dim = a->a->axis[i].dim;
    TL_ASSERT((uint32_t)i < a->a->place.naxes && dim >= 0, "axis %d has no index tile", i);
    TlValue *v = a->a->place.index[i].value;
    TlCpuAt sub;
    LLVMValueRef known = index_of_row(a, i, at);
    if (known)
        return known;
    if (a->a->place.pointwise) {
        bool lanes = at->lane < v->type->rank;
        tl_cpu_at_under(g, &sub, at, v->type->rank, lanes ? at->lane : 0, lanes ? at->width : 1);
    } else {
        tl_cpu_at_under(g, &sub, at, 1, 0, at->lane == dim ? at->width : 1);
        sub.idx[0] = at->idx[dim];
    }
    return tl_gen_to_i64(&g->gen, v, tl_cpu_eval(g, v, &sub));
}

void tl_cpu_read_rows(TlCpuGen *g, TlCpuRow *row, TlCpuAt *at)
{
    for (uint32_t k = 0; k < row->nest->asks.len; k++) {
        const TlCpuAccess *a = tl_cpu_access_of(g, row->nest->asks.data[k].access->op);
        for (uint32_t i = 0; a->view && i < a->a->place.naxes; i++) {
            int dim = a->a->axis[i].dim;
            if (a->a->place.axes[i].kind != TL_AXIS_TILE || a->a->place.pointwise ||
                dim == at->lane || dim >= at->rank || index_of_row(a, (int)i, at))
                continue;
            LLVMValueRef x = index_tile(g, a, (int)i, at);
            tl_vec_push(g->arena, &row->index, (TlCpuRowIndex){a, i, at->idx[dim], x});
        }
    }
}

/* c: NULL is true. */
static void add_condition(TlCpuGen *g, TlCpuSpot *s, LLVMValueRef c)
{
    if (!c)
        return;
    if (tl_gen_width_of(c) > 1)
        s->mask = both(g, s->mask, c);
    else
        s->uniform = both(g, s->uniform, c);
}

/* The index along `dim`, as i64; along the lane dimension one for each lane. */
static LLVMValueRef lane_numbers(TlCpuGen *g, const TlCpuAt *at, int dim)
{
    TL_ASSERT(dim >= 0 && dim < at->rank, "axis %d of a tile of rank %d", dim, at->rank);
    if (at->width == 1 || dim != at->lane)
        return at->idx[dim];
    return LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, at->idx[dim], at->width),
                        tl_gen_iota(&g->gen, g->i64, at->width), "");
}

/* Positions of a slice that goes backwards. */
static LLVMValueRef stepped_inside(TlCpuGen *g, const TlCpuAccess *a, int i, LLVMValueRef j)
{
    TL_ASSERT((uint32_t)i < a->a->place.naxes, "axis %d of %u", i, a->a->place.naxes);
    int w = tl_gen_width_of(j);
    LLVMValueRef at = LLVMBuildAdd(
        g->b, tl_gen_splat(&g->gen, a->start[i], w),
        mul(g, j, tl_gen_splat(&g->gen, tl_gen_int(&g->gen, a->a->place.axes[i].step), w)), "");
    return LLVMBuildICmp(g->b, LLVMIntULT, at, tl_gen_splat(&g->gen, a->view->extent[i], w), "");
}

static bool is_const(LLVMValueRef v, int64_t n)
{
    return LLVMIsAConstantInt(v) && LLVMConstIntGetSExtValue(v) == n;
}

/* lo <= j < hi, for a position j, which is not negative. */
static LLVMValueRef is_between(TlCpuGen *g, LLVMValueRef j, LLVMValueRef lo, LLVMValueRef hi)
{
    int w = tl_gen_width_of(j);
    LLVMValueRef below = LLVMBuildICmp(g->b, LLVMIntSLT, j, tl_gen_splat(&g->gen, hi, w), "");
    if (is_const(lo, 0))
        return below;
    LLVMValueRef above = LLVMBuildICmp(g->b, LLVMIntSGE, j, tl_gen_splat(&g->gen, lo, w), "");
    return LLVMBuildAnd(g->b, above, below, "");
}

/* Position j of a slice; NULL: all are inside. */
static LLVMValueRef interval_inside(TlCpuGen *g, const TlCpuAccess *a, int i, LLVMValueRef j)
{
    TL_ASSERT((uint32_t)i < a->a->place.naxes && a->lo[i] && a->hi[i], "no interval of axis %d", i);
    if (is_const(a->lo[i], 0) && is_const(a->hi[i], a->a->place.axes[i].width))
        return NULL;
    return is_between(g, j, a->lo[i], a->hi[i]);
}

/* Does the nest go over rows that are outside, too, many of them maybe? Stores and products that
 * are stored do not. */
static bool visits_all_rows(const TlCpuAt *at)
{
    const TlNest *n = at->row ? at->row->nest : NULL;
    return n && (n->kind == TL_NEST_FILL || (n->kind == TL_NEST_PACK && !n->product->loop));
}

/* The lanes that are inside a slice of step 1: none if the spot's uniform condition does not hold.
 * The interval is within 0..width: 32 bits do. */
static void lane_interval(TlCpuGen *g, const TlCpuAccess *a, int i, const TlCpuAt *at, TlCpuSpot *s)
{
    LLVMValueRef j = at->idx[at->lane], lo = a->lo[i], hi = a->hi[i];
    if (s->uniform)
        hi = LLVMBuildSelect(g->b, s->uniform, hi, tl_gen_int(&g->gen, 0), "");
    if (visits_all_rows(at) && s->uniform != a->ok)
        s->row = s->uniform;
    s->uniform = NULL;
    LLVMValueRef end = LLVMBuildAdd(g->b, j, tl_gen_int(&g->gen, at->width), "");
    s->full = LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntSGE, j, lo, ""),
                           LLVMBuildICmp(g->b, LLVMIntSLE, end, hi, ""), "");
    LLVMValueRef j32 =
        LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, j, g->i32, ""), at->width),
                     tl_gen_iota(&g->gen, g->i32, at->width), "");
    LLVMValueRef lo32 = LLVMBuildTrunc(g->b, lo, g->i32, ""),
                 hi32 = LLVMBuildTrunc(g->b, hi, g->i32, "");
    LLVMValueRef m = is_between(g, j32, lo32, hi32);
    add_condition(g, s, m);
}

/* Is everything inside at this position, as the nest has asked? */
static bool is_whole(const TlCpuAccess *a, const TlCpuAt *at)
{
    return at->whole && a->a->has_interval && !a->a->asks;
}

/* Where the lanes are inside, may the row be outside, which then reads as zeros? */
static bool has_zero_rows(const TlCpuAccess *a, const TlCpuAt *at)
{
    return is_whole(a, at) && at->row && at->row->nest->zero_rows && tl_nest_has_zeros(a->a);
}

/* Do the loops of the nest visit only what is inside along this axis? */
static bool is_boxed(const TlCpuAccess *a, uint32_t i, const TlCpuAt *at)
{
    const TlNest *n = at->row ? at->row->nest : NULL;
    return n && n->boxed == a->a && n->boxed_axes >> i & 1;
}

/* along_lanes: along these the position is inside, and bounds leave it where it is. A position of
 * one lane has these along no dimension: the nest's may be along another one. */
static TlCpuSpot spot_of_view(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at,
                              bool along_lanes)
{
    bool all = is_whole(a, at), rows = !all || has_zero_rows(a, at);
    TlCpuSpot s = {.uniform = rows ? a->ok : NULL, .by_tiles = true};
    bool contiguous =
        at->width > 1 && (all || along_lanes ? tl_nest_is_contiguous_inside(a->a, at->lane)
                                             : tl_nest_is_contiguous(a->a, at->lane));
    int along = -1; /* the axis of the lanes, if their elements are adjacent */
    LLVMValueRef offset = tl_gen_int(&g->gen, 0), lanes = NULL;
    s.apart = at->width > 1 && !contiguous;
    for (uint32_t i = 0; i < a->a->place.naxes; i++) {
        TlAxisKind k = a->a->place.axes[i].kind;
        int dim = a->a->axis[i].dim;
        bool whole = all || (along_lanes && dim == at->lane);
        bool across = dim != at->lane || (at->width == 1 && !along_lanes);
        if (k == TL_AXIS_SCALAR)
            continue;
        LLVMValueRef j;
        if (k == TL_AXIS_TILE && whole && a->a->axis[i].affine.is && across && a->bounded[i]) {
            j = index_tile(g, a, (int)i, at); /* within its bounds */
        } else if (k == TL_AXIS_TILE && whole && a->a->axis[i].affine.is &&
                   (along_lanes || !a->a->axis[i].affine.period)) {
            j = contiguous ? at->idx[dim] : lane_numbers(g, at, dim);
            j = LLVMBuildAdd(g->b, j, tl_gen_splat(&g->gen, a->start[i], tl_gen_width_of(j)), "");
        } else if (k == TL_AXIS_TILE) {
            j = index_tile(g, a, (int)i, at);
            int w = tl_gen_width_of(j);
            if (a->a->bounds)
                add_condition(g, &s,
                              LLVMBuildICmp(g->b, LLVMIntULT, j,
                                            tl_gen_splat(&g->gen, a->view->extent[i], w), ""));
        } else if (contiguous && dim == at->lane) {
            along = (int)i;
            j = at->idx[at->lane];
        } else {
            j = lane_numbers(g, at, dim);
            if (a->a->bounds && (!whole || (rows && dim != at->lane)) && !is_boxed(a, i, at))
                add_condition(g, &s,
                              a->a->place.axes[i].step > 0 ? interval_inside(g, a, (int)i, j)
                                                           : stepped_inside(g, a, (int)i, j));
        }
        LLVMValueRef part = mul(g, j, tl_gen_splat(&g->gen, a->stride[i], tl_gen_width_of(j)));
        if (tl_gen_width_of(part) > 1)
            s.by_tiles &= k == TL_AXIS_TILE && !(whole && a->a->axis[i].affine.is);
        if (tl_gen_width_of(part) > 1)
            lanes = lanes ? LLVMBuildAdd(g->b, lanes, part, "") : part;
        else
            offset = LLVMBuildAdd(g->b, offset, part, "");
    }
    if (along >= 0 && !all && !along_lanes)
        lane_interval(g, a, along, at, &s);
    s.ptr = tl_gen_address(&g->gen, a->view->dtype, a->origin, offset);
    s.ptr = tl_gen_address(&g->gen, a->view->dtype, s.ptr, a->shift);
    s.base = s.ptr;
    s.offset = offset;
    s.lanes = lanes;
    if (s.apart)
        s.ptr = tl_gen_address(&g->gen, a->view->dtype, s.ptr,
                               lanes ? lanes
                                     : tl_gen_splat(&g->gen, tl_gen_int(&g->gen, 0), at->width));
    return s;
}

static TlCpuSpot view_spot(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at)
{
    return spot_of_view(g, a, at, false);
}

LLVMValueRef tl_cpu_access_address(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at)
{
    TL_ASSERT(a->view && at->width >= 1, "an address of no view");
    return view_spot(g, a, at).ptr;
}

TlCpuSpot tl_cpu_spot_at(TlCpuGen *g, const TlCpuAccess *a, TlCpuAt *at)
{
    TlCpuSpot s = {.apart = at->width > 1};
    if (a->view)
        s = view_spot(g, a, at);
    else
        s.ptr = tl_cpu_eval(g, a->a->place.base, at);
    if (a->a->place.mask) {
        add_condition(g, &s, tl_cpu_eval(g, a->a->place.mask, at));
        s.full = NULL;
    }
    return s;
}

LLVMValueRef tl_cpu_lanes_inside(TlCpuGen *g, TlCpuSpot *s, int width)
{
    LLVMValueRef u = s->uniform ? tl_gen_splat(&g->gen, s->uniform, width) : NULL;
    LLVMValueRef m = both(g, s->mask, u);
    return m ? m : tl_gen_splat(&g->gen, LLVMConstInt(g->i1, 1, 0), width);
}

/* ---- one element ---- */

/* `ok`, and the runtime says that the address is in the argument's array. */
static LLVMValueRef ask_address(TlCpuGen *g, const TlCpuAccess *a, TlCpuSpot *s, LLVMValueRef ok)
{
    uint64_t bytes = (uint64_t)tl_dtype_bytes(a->a->place.base->type->dtype);
    TlCpuBranch branch = tl_cpu_branch(g, ok, true, "then", "join");
    LLVMValueRef good = check_address(g, s->ptr, bytes, a->a->param, a->a->op->loc);
    return tl_cpu_join_value(g, branch, good, LLVMConstInt(g->i1, 0, 0));
}

/* The condition for accessing the element. With --check, code that reports a violation. */
LLVMValueRef tl_cpu_element_ok(TlCpuGen *g, const TlCpuAccess *a, TlCpuSpot *s)
{
    LLVMValueRef ok = both(g, s->uniform, s->mask);
    if (g->options->check && a->view && ok && tl_attr_flag(a->a->op, TL_ATTR_UNCHECKED))
        tl_cpu_fail(g, LLVMBuildNot(g->b, ok, ""), 1, a->a->op->loc,
                    "the promise of unchecked does not hold");
    return a->a->asks ? ask_address(g, a, s, ok) : ok;
}

static LLVMValueRef outside_value(TlCpuGen *g, const TlCpuAccess *a, const TlType *type,
                                  TlCpuAt *at)
{
    return a->a->place.other ? tl_cpu_eval(g, a->a->place.other, at)
                             : tl_gen_const(&g->gen, type, 0, at->width);
}

TlType tl_cpu_elem_of(const TlType *type)
{
    TlType t = {
        .kind = TL_TILE, .dtype = type->dtype, .ptr = type->kind == TL_TILE ? type->ptr : false};
    return t;
}

/* An address that is safe to read instead of an element outside; or instead of so many bytes. */
static LLVMValueRef zeros_at(TlCpuGen *g, const char *name, LLVMTypeRef type, unsigned align)
{
    LLVMValueRef z = LLVMGetNamedGlobal(g->gen.l->module, name);
    if (z)
        return z;
    z = LLVMAddGlobal(g->gen.l->module, type, name);
    LLVMSetInitializer(z, LLVMConstNull(type));
    LLVMSetGlobalConstant(z, 1);
    LLVMSetLinkage(z, LLVMInternalLinkage);
    LLVMSetAlignment(z, align);
    return z;
}

static LLVMValueRef zeros(TlCpuGen *g)
{
    return zeros_at(g, "tl.zeros", g->i64, 8);
}

/* Zeros in the place of a row: as many as a load may take, from so many elements before the address
 * on, or behind it. */
enum { ZEROS_AROUND = 64 };
static LLVMValueRef zero_row(TlCpuGen *g)
{
    enum { MOST_BYTES = TL_NEST_STRIDE * 2 * 64, AROUND = 8 * ZEROS_AROUND };
    LLVMTypeRef row = LLVMArrayType2(g->i8, MOST_BYTES + 2 * AROUND);
    LLVMValueRef by = tl_gen_int(&g->gen, AROUND), z = zeros_at(g, "tl.zero_row", row, 64);
    return LLVMBuildInBoundsGEP2(g->b, g->i8, z, &by, 1, "");
}

/* The address of a row, or where that is outside, of zeros. */
static LLVMValueRef row_or_zeros(TlCpuGen *g, LLVMValueRef p, LLVMValueRef inside)
{
    return inside ? LLVMBuildSelect(g->b, inside, p, zero_row(g), "") : p;
}

/* All bits where it is true, else none; hidden, as LLVM would choose again in each iteration. */
static LLVMValueRef bits_of(TlCpuGen *g, LLVMValueRef is)
{
    LLVMValueRef p = LLVMBuildIntToPtr(g->b, LLVMBuildSExt(g->b, is, g->i64, ""), g->ptr, "");
    p = tl_gen_intrinsic(&g->gen, "llvm.strip.invariant.group", &g->ptr, 1, &p, 1);
    return LLVMBuildPtrToInt(g->b, p, g->i64, "");
}

/* The spot's address, or where it is outside, of zeros. All of a row is or is not, so that only
 * what is added along it is computed in a loop. */
static LLVMValueRef spot_or_zeros(TlCpuGen *g, const TlCpuAccess *a, const TlCpuSpot *s)
{
    if (!s->uniform)
        return s->ptr;
    int64_t shift = LLVMConstIntGetSExtValue(a->shift);
    bool is_near = shift >= -ZEROS_AROUND && shift <= ZEROS_AROUND;
    LLVMValueRef by = is_near ? s->offset : LLVMBuildAdd(g->b, s->offset, a->shift, ""),
                 base = LLVMBuildSelect(g->b, s->uniform, a->origin, zero_row(g), "");
    by = LLVMBuildAnd(g->b, by, bits_of(g, s->uniform), "");
    LLVMValueRef p = tl_gen_address(&g->gen, a->view->dtype, base, by);
    return is_near ? tl_gen_address(&g->gen, a->view->dtype, p, a->shift) : p;
}

/* What nobody writes during the launch LLVM may read before a loop, whatever that stores. */
static LLVMValueRef plain_load(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                               LLVMValueRef p, int width)
{
    LLVMValueRef x = LLVMBuildLoad2(g->b, tl_gen_vec(tl_gen_mem_type(&g->gen, elem), width), p, "");
    LLVMSetAlignment(x, (unsigned)tl_gen_elem_bytes(elem));
    if (a->a->constant)
        tl_llvm_set_metadata(g->l, x, "invariant.load", NULL, 0);
    return tl_gen_from_mem(&g->gen, elem, x);
}

static LLVMValueRef load_element(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuSpot *s, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    LLVMValueRef ok = tl_cpu_element_ok(g, a, s), other = outside_value(g, a, &elem, at);
    if (!ok)
        return plain_load(g, a, &elem, s->ptr, 1);
    if (at->rank == 0) { /* no branch: LLVM's time grows with the square of the number of blocks */
        LLVMValueRef there = LLVMBuildSelect(g->b, ok, s->ptr, zeros(g), ""),
                     x = plain_load(g, a, &elem, there, 1);
        return LLVMIsNull(other) ? x : LLVMBuildSelect(g->b, ok, x, other, "");
    }
    TlCpuBranch branch = tl_cpu_branch(g, ok, true, "then", "join");
    return tl_cpu_join_value(g, branch, plain_load(g, a, &elem, s->ptr, 1), other);
}

/* ---- vectors ---- */

static LLVMValueRef masked_load(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef mask,
                                LLVMValueRef other, int width, bool apart)
{
    TL_ASSERT(width > 1, "a masked load of %d lanes", width);
    LLVMValueRef x = tl_llvm_masked(g->gen.l, g->b, apart ? TL_MASKED_GATHER : TL_MASKED_LOAD, p,
                                    tl_gen_elem_bytes(elem), mask,
                                    tl_gen_to_mem(&g->gen, elem, other));
    return tl_gen_from_mem(&g->gen, elem, x);
}

LLVMValueRef tl_cpu_pointer_run(TlCpuGen *g, const TlType *elem, LLVMValueRef ptrs, int width,
                                LLVMValueRef *out_first)
{
    TL_ASSERT(width > 1, "a run of %d pointers", width);
    LLVMValueRef first = LLVMBuildExtractElement(g->b, ptrs, i32_(g, 0), "");
    LLVMValueRef run = tl_gen_address(&g->gen, elem->dtype, tl_gen_splat(&g->gen, first, width),
                                      tl_gen_iota(&g->gen, g->i64, width));
    LLVMValueRef same = LLVMBuildICmp(g->b, LLVMIntEQ, ptrs, run, "");
    LLVMTypeRef bits = LLVMIntTypeInContext(LLVMGetTypeContext(g->i64), (unsigned)width);
    *out_first = first;
    return LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildBitCast(g->b, same, bits, ""),
                         LLVMConstAllOnes(bits), "");
}

LLVMValueRef tl_cpu_launch_stride(const TlCpuAccess *a, int lane)
{
    int i = a->view && !a->a->place.pointwise ? tl_nest_steps_of(&a->a->place, lane) : -1;
    return i < 0 || LLVMIsConstant(a->stride[i]) ? NULL : a->stride[i];
}

/* i1: is it true in no lane? */
static LLVMValueRef in_no_lane(TlCpuGen *g, LLVMValueRef mask)
{
    LLVMTypeRef bits = LLVMIntTypeInContext(g->c, (unsigned)tl_gen_width_of(mask));
    return LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildBitCast(g->b, mask, bits, ""),
                         LLVMConstNull(bits), "");
}

/* Lanes whose distance only the launch knows: side by side, all of one element, or apart. */
static LLVMValueRef load_by_stride(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                   LLVMValueRef ptrs, LLVMValueRef stride, LLVMValueRef mask,
                                   LLVMValueRef other, int width)
{
    LLVMValueRef first = LLVMBuildExtractElement(g->b, ptrs, i32_(g, 0), ""),
                 dense = LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, 1), ""),
                 same = LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, 0), "");
    TlCpuFork f = tl_cpu_fork(g, dense);
    tl_cpu_fork_else(g, &f, masked_load(g, elem, first, mask, other, width, false));
    TlCpuFork one = tl_cpu_fork(g, same);
    LLVMValueRef any = LLVMBuildNot(g->b, in_no_lane(g, mask), ""),
                 x = plain_load(g, a, elem, row_or_zeros(g, first, any), 1);
    x = LLVMBuildSelect(g->b, mask, tl_gen_splat(&g->gen, x, width), other, "");
    tl_cpu_fork_else(g, &one, x);
    x = tl_cpu_fork_end(g, &one, masked_load(g, elem, ptrs, mask, other, width, true));
    return tl_cpu_fork_end(g, &f, x);
}

static LLVMValueRef load_contiguous(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                    TlCpuSpot *s, LLVMValueRef other, int width)
{
    if (!s->mask && !s->uniform)
        return plain_load(g, a, elem, s->ptr, width);
    LLVMValueRef mask = tl_cpu_lanes_inside(g, s, width);
    /* CPUs take a microsecond where no lane is wanted and memory is not there */
    LLVMValueRef there = row_or_zeros(g, s->ptr, s->row);
    if (!s->full || !a->a->forks)
        return masked_load(g, elem, there, mask, other, width, false);
    LLVMValueRef all = s->uniform ? LLVMBuildAnd(g->b, s->full, s->uniform, "") : s->full;
    TlCpuFork f = tl_cpu_fork(g, all);
    tl_cpu_fork_else(g, &f, plain_load(g, a, elem, s->ptr, width));
    return tl_cpu_fork_end(g, &f, masked_load(g, elem, there, mask, other, width, false));
}

/* Loads of a nest that take every `stride`th element of one row, by groups: of those whose first
 * elements are in the same `stride`. The one with the most members is loaded, and those of the
 * groups beside it are its lanes, one lane further on.
 *
 *     x[i - 1 +: B : 2]   x[i +: B : 2]   x[i + 1 +: B : 2]   x[i + 2 +: B : 2]
 *     group -1            group 0         group 0             group 1
 *
 * All of a nest's loads are inside, as a whole. */
typedef struct Together {
    int before, behind;       /* elements from this one's first to the group's first, to its last */
    const TlCpuAccess *first; /* the load of the group's first element */
    int lanes;                /* this one's are so many lanes of the group's further on: -1, 0, 1 */
} Together;

enum { MOST_TOGETHER = 64 };
typedef struct Groups {
    const TlNestAccess *load[MOST_TOGETHER]; /* the one in question first */
    int64_t from[MOST_TOGETHER];             /* first elements, counted from a group's first */
    int n, stride;
} Groups;

static int64_t group_of(const Groups *s, int64_t from)
{
    int64_t rest = (from % s->stride + s->stride) % s->stride;
    return (from - rest) / s->stride;
}

/* Is it read at the nest's own lanes, and nowhere else? */
static bool is_at_lanes(const TlNest *n, const TlNestAccess *a, int lane)
{
    bool is = true;
    for (uint32_t i = 0; i < n->asks.len; i++)
        if (n->asks.data[i].access == a)
            is &= n->asks.data[i].lane == lane && n->asks.data[i].times == 1;
    return is;
}

static Groups find_groups(const TlCpuAccess *a, const TlCpuAt *at, int stride)
{
    const TlNest *n = at->row && is_at_lanes(at->row->nest, a->a, at->lane) ? at->row->nest : NULL;
    Groups s = {.load = {a->a}, .from = {tl_nest_number(a->a, at->lane)}, .n = 1, .stride = stride};
    int64_t by;
    for (uint32_t i = 0; n && i < n->asks.len && s.n < MOST_TOGETHER; i++)
        if (n->asks.data[i].access != a->a && is_at_lanes(n, n->asks.data[i].access, at->lane) &&
            tl_nest_distance(n, a->a, n->asks.data[i].access, at->lane, &by)) {
            s.load[s.n] = n->asks.data[i].access;
            s.from[s.n++] = s.from[0] + by;
        }
    return s;
}

/* Sets t to what of a group its members take; how many members has it? */
static int take_group(TlCpuGen *g, const Groups *s, int64_t group, Together *t)
{
    int n = 0, most = 0;
    int64_t start = group * s->stride, least = 0;
    for (int i = 0; i < s->n; i++) {
        if (group_of(s, s->from[i]) != group)
            continue;
        int64_t at = s->from[i] - start;
        if (n == 0 || at < least) {
            least = at;
            t->first = tl_cpu_access_of(g, s->load[i]->op);
        }
        most = n == 0 || at > most ? (int)at : most;
        n++;
    }
    int own = (int)(s->from[0] - s->stride * group_of(s, s->from[0]));
    t->before = own - (int)least;
    t->behind = most - own;
    return n;
}

static Together taken_together(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at, int stride)
{
    Groups s = find_groups(a, at, stride);
    int64_t own = group_of(&s, s.from[0]);
    Together t = {0}, x = {0};
    int most = take_group(g, &s, own, &t);
    for (int by = -1; by <= 1; by += 2) {
        int n = take_group(g, &s, own + by, &x);
        bool is_main = n > most || (n == most && by < 0);
        if (n && is_main && x.before >= 0 && x.behind >= 0) {
            most = n;
            t = x;
            t.lanes = -by;
        }
    }
    return t;
}

/* Every `stride`th element, from t.before elements behind p on: of so many vectors, none of which
 * ends behind the last element that is wanted: memory may end there. */
static LLVMValueRef load_every(TlCpuGen *g, const TlType *elem, LLVMValueRef p, int width,
                               int stride, Together t)
{
    TL_ASSERT(width > 1 && stride > 1 && stride <= TL_NEST_STRIDE, "%d lanes by %d", width, stride);
    LLVMValueRef v[TL_NEST_STRIDE];
    int last = (width - 1) * stride + 1 + t.before + t.behind - width;
    for (int k = 0; k < stride; k++) {
        LLVMValueRef by = tl_gen_int(&g->gen, tl_cpu_every_start(k, width, last));
        v[k] = plain_load(g, t.first, elem, tl_gen_address(&g->gen, elem->dtype, p, by), width);
    }
    return tl_cpu_every(g, v, stride, width, t.before, last);
}

/* Lane by lane in a loop, where that is seldom. */
static LLVMValueRef load_lanes(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    LLVMValueRef none = LLVMGetPoison(tl_gen_vec(tl_gen_elem_type(&g->gen, &elem), at->width)),
                 last = tl_gen_int(&g->gen, op->out[0]->type->shape[at->lane] - 1);
    TlCpuLoop lanes;
    tl_cpu_loop_known(g, &lanes, 0, at->width, 1, 1, &none);
    TlCpuAt one;
    tl_cpu_at_under(g, &one, at, at->rank, at->lane, 1);
    one.whole = false;
    LLVMValueRef i = LLVMBuildAdd(g->b, at->idx[at->lane], lanes.i, "");
    one.idx[at->lane] = tl_gen_pick(&g->gen, LLVMIntULT, i, last, i, last);
    TlCpuSpot s = tl_cpu_spot_at(g, a, &one);
    LLVMValueRef x = load_element(g, op, a, &s, &one);
    LLVMValueRef next = LLVMBuildInsertElement(g->b, lanes.carry[0], x, lanes.i, "");
    tl_cpu_loop_end(g, &lanes, &next);
    return lanes.carry[0];
}

/* i1: is one element of the position inside, by lane `lane`? */
static LLVMValueRef is_lane_inside(TlCpuGen *g, TlCpuAccess *a, const TlCpuAt *at, int lane)
{
    TlCpuAt one = *at;
    one.width = 1;
    one.idx[at->lane] = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, lane), "");
    LLVMValueRef ok = view_spot(g, a, &one).uniform;
    return ok ? ok : LLVMConstInt(g->i1, 1, 0);
}

static LLVMValueRef load_apart(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    if (tl_gen_elem_bytes(&elem) < 4 || !g->m.gathers)
        return load_lanes(g, op, a, at);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMValueRef mask =
        both(g, tl_cpu_lanes_inside(g, &s, at->width), tl_cpu_lane_mask(g, &form, at));
    return masked_load(g, &elem, s.ptr, mask, outside_value(g, a, &elem, at), at->width, true);
}

/* i1: do bounds leave the position's elements, but for the tile's padding, where they are? */
static LLVMValueRef is_unbounded(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at,
                                 int64_t extent)
{
    LLVMValueRef all = a->ok, n = tl_gen_int(&g->gen, extent), j = at->idx[at->lane],
                 end = LLVMBuildAdd(g->b, j, tl_gen_int(&g->gen, at->width), "");
    end = tl_gen_pick(&g->gen, LLVMIntSLT, end, n, end, n);
    for (uint32_t i = 0; i < a->a->place.naxes; i++) {
        int dim = a->a->axis[i].dim;
        if (dim == at->lane) {
            all = both(g, all, LLVMBuildICmp(g->b, LLVMIntSGE, j, a->lo[i], ""));
            all = both(g, all, LLVMBuildICmp(g->b, LLVMIntSLE, end, a->hi[i], ""));
        } else if (a->a->place.axes[i].kind == TL_AXIS_TILE) {
            LLVMValueRef row = a->bounded[i] ? NULL : index_tile(g, a, (int)i, at);
            all = both(g, all,
                       row ? LLVMBuildICmp(g->b, LLVMIntULT, row, a->view->extent[i], "")
                           : a->bounded[i]);
        } else if (a->a->place.axes[i].kind == TL_AXIS_SLICE) {
            all = both(g, all, interval_inside(g, a, (int)i, at->idx[dim]));
        }
    }
    return all;
}

static LLVMValueRef clamp(TlCpuGen *g, LLVMValueRef x, LLVMValueRef least, LLVMValueRef most)
{
    return smaller(g, larger(g, x, least), most);
}

/* In all lanes, in 32 bits: x, or a number of that sign which is as far from every lane. */
static LLVMValueRef in_lanes(TlCpuGen *g, LLVMValueRef x, int w)
{
    LLVMValueRef far = tl_gen_int(&g->gen, INT16_MAX);
    x = clamp(g, x, LLVMBuildNeg(g->b, far, ""), far);
    return tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, x, g->i32, ""), w);
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
    bool fits = a->a->axis[i].affine.fits;
    LLVMValueRef lanes = tl_gen_int(&g->gen, w), low = a->low[i], high = a->high[i],
                 last = larger(g, low, LLVMBuildSub(g->b, high, lanes, "")),
                 first = clamp(g, here, low, last), n = LLVMBuildSub(g->b, high, first, "");
    TlCpuAt moved = *at;
    moved.idx[at->lane] = LLVMBuildSub(g->b, first, a->start[i], "");
    TlCpuSpot s = spot_of_view(g, a, &moved, true);
    TL_ASSERT(!s.mask && !s.apart, "a border's vector has gaps");
    n = clamp(g, n, tl_gen_int(&g->gen, 0), lanes);
    if (s.uniform)
        n = LLVMBuildSelect(g->b, s.uniform, n, tl_gen_int(&g->gen, 0), "");
    LLVMValueRef number = tl_gen_iota(&g->gen, g->i32, w),
                 other = outside_value(g, a, &elem, &moved),
                 all = tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, n, g->i32, ""), w);
    LLVMValueRef read = LLVMBuildICmp(g->b, LLVMIntSLT, number, all, ""),
                 x = masked_load(g, &elem, s.ptr, read, other, w, false);
    LLVMValueRef index = LLVMBuildSub(g->b, here, first, "");
    index = LLVMBuildAdd(g->b, number, in_lanes(g, index, w), "");
    if (fits) {
        LLVMValueRef end = LLVMBuildSub(g->b, all, tl_gen_splat(&g->gen, i32_(g, 1), w), "");
        index = larger(g, smaller(g, index, end), LLVMConstNull(LLVMTypeOf(index)));
    }
    if (!fits && a->least[i])
        index = larger(g, index, in_lanes(g, LLVMBuildSub(g->b, a->least[i], first, ""), w));
    if (!fits && a->most[i])
        index = smaller(g, index, in_lanes(g, LLVMBuildSub(g->b, a->most[i], first, ""), w));
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntULT, index, all, "");
    x = tl_gen_to_mem(&g->gen, &elem, x);
    x = tl_gen_from_mem(&g->gen, &elem, tl_cpu_permute(g, x, bytes, index));
    return fits ? x : LLVMBuildSelect(g->b, inside, x, other, "");
}

/* Where bounds of an index tile change something. NULL: there is no instruction for that. A vector
 * whose numbers of i32 wrap, so that it has both ends of the view, is seldom. */
static LLVMValueRef load_border(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    int i = lane_tile(a, at), bytes = (int)tl_gen_elem_bytes(&elem);
    if (i < 0 || !a->low[i] || !tl_cpu_can_permute(g, bytes, at->width) ||
        (!g->m.masks && bytes < 4))
        return NULL;
    LLVMValueRef here = LLVMBuildAdd(g->b, a->start[i], at->idx[at->lane], "");
    if (a->a->axis[i].affine.dtype != TL_I32)
        return border_vector(g, op, a, at, i, here);
    here = LLVMBuildSExt(g->b, LLVMBuildTrunc(g->b, here, g->i32, ""), g->i64, "");
    LLVMValueRef most = tl_gen_int(&g->gen, (int64_t)INT32_MAX - at->width);
    TlCpuFork f = tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntSLE, here, most, ""));
    tl_cpu_fork_else(g, &f, border_vector(g, op, a, at, i, here));
    return tl_cpu_fork_end(g, &f, load_apart(g, op, a, at));
}

/* ---- element by element ---- */

/* i1: is element 0 of all axes that index tiles go along inside, and what all lanes share? */
static LLVMValueRef has_first(TlCpuGen *g, const TlCpuAccess *a, const TlCpuSpot *s)
{
    LLVMValueRef all = s->uniform;
    for (uint32_t i = 0; i < a->a->place.naxes; i++)
        if (a->a->place.axes[i].kind == TL_AXIS_TILE)
            all = both(
                g, all,
                LLVMBuildICmp(g->b, LLVMIntSGT, a->view->extent[i], tl_gen_int(&g->gen, 0), ""));
    return all;
}

/* The only index tile of a place, if that lies in memory, where its lanes are read; -1: there is
 * none. */
static int listed_axis(const TlCpuGen *g, const TlCpuAccess *a)
{
    int axis = -1;
    for (uint32_t i = 0; i < a->a->place.naxes; i++) {
        if (a->a->place.axes[i].kind == TL_AXIS_SCALAR)
            continue;
        if (a->a->place.axes[i].kind != TL_AXIS_TILE || axis >= 0)
            return -1;
        axis = (int)i;
    }
    TlNestPlace x = {.kind = TL_NEST_VIRTUAL};
    if (axis >= 0 && a->a->place.index[axis].value->type->rank == a->a->place.rank)
        x = g->plan->place[a->a->place.index[axis].value->id];
    bool lies = x.kind == TL_NEST_HOME && !g->plan->buffers.data[x.buffer].small;
    return lies && !a->a->place.mask ? axis : -1;
}

/* Elements from the base to lane k's. */
static LLVMValueRef lane_offset(TlCpuGen *g, const TlCpuAccess *a, LLVMValueRef lanes, int listed,
                                const TlCpuAt *at, int k)
{
    TlCpuAt one = *at;
    if (listed < 0)
        return LLVMBuildExtractElement(g->b, lanes, i32_(g, (uint64_t)k), "");
    tl_map_init(&one.memo, g->arena);
    one.width = 1;
    one.idx[at->lane] = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, k), "");
    LLVMValueRef j = index_tile(g, a, listed, &one), extent = a->view->extent[listed];
    if (a->a->bounds)
        j = tl_gen_pick(&g->gen, LLVMIntULT, j, extent, j, tl_gen_int(&g->gen, 0));
    return mul(g, j, a->stride[listed]);
}

/* A gather as loads of its elements, where their places are in memory, or are those of another one,
 * too. Lanes that are masked off read element 0. NULL: those may have no such element, or a gather
 * is as fast. */
static LLVMValueRef load_one_by_one(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                                    TlCpuSpot *s, LLVMValueRef mask, LLVMValueRef other,
                                    const TlCpuAt *at)
{
    bool once = !at->row || !tl_nest_is_split(at->row->nest) || at->whole,
         all = mask == LLVMConstAllOnes(LLVMTypeOf(mask));
    int listed = listed_axis(g, a);
    if (!g->m.one_by_one || !once || !s->lanes || a->a->place.mask || (!all && !s->by_tiles) ||
        (listed < 0 && !a->a->shares_places))
        return NULL;
    LLVMValueRef base = s->base, lanes = s->lanes;
    if (!all) {
        base = LLVMBuildSelect(g->b, has_first(g, a, s), base, zeros(g), "");
        lanes = LLVMBuildSelect(g->b, mask, lanes, LLVMConstNull(LLVMTypeOf(lanes)), "");
    }
    LLVMValueRef r = LLVMGetPoison(tl_gen_vec(tl_gen_mem_type(&g->gen, elem), at->width));
    for (int k = 0; k < at->width; k++) {
        LLVMValueRef by = lane_offset(g, a, lanes, listed, at, k),
                     p = tl_gen_address(&g->gen, elem->dtype, base, by),
                     x = plain_load(g, a, elem, p, 1);
        r = LLVMBuildInsertElement(g->b, r, tl_gen_to_mem(&g->gen, elem, x), i32_(g, (uint64_t)k),
                                   "");
    }
    r = tl_gen_from_mem(&g->gen, elem, r);
    return all ? r : LLVMBuildSelect(g->b, mask, r, other, "");
}

/* A gather of rows of which several fields are gathered. Lanes that are masked off read the first
 * row. NULL: there may be no such row, or it is the only field. */
static LLVMValueRef load_field(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, TlCpuSpot *s,
                               LLVMValueRef mask, LLVMValueRef other, const TlCpuAt *at)
{
    TlNestFields f = {0, 1};
    if (g->m.gathers && s->lanes && s->by_tiles && !a->a->place.mask && !a->a->asks &&
        at->width % TL_NEST_FIELDS == 0)
        f = tl_nest_fields(g->plan, a->a);
    if (f.n < TL_NEST_FIELDS - 1)
        return NULL;
    LLVMValueRef by = LLVMBuildSub(g->b, a->shift, tl_gen_int(&g->gen, f.own), ""),
                 row = tl_gen_address(&g->gen, elem->dtype, a->origin, s->offset),
                 first = tl_gen_address(&g->gen, elem->dtype, row, by),
                 base = LLVMBuildSelect(g->b, has_first(g, a, s), first, zero_row(g), ""),
                 lanes =
                     LLVMBuildSelect(g->b, mask, s->lanes, LLVMConstNull(LLVMTypeOf(s->lanes)), "");
    LLVMValueRef x = tl_cpu_load_field(g, elem, f, base, lanes, at->width);
    return LLVMBuildSelect(g->b, mask, x, other, "");
}

/* Where bounds of an index tile may change something. The last vector of a tile with padding is
 * most often none of those. */
static LLVMValueRef load_bounded(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    LLVMValueRef own = tl_cpu_lane_mask(g, &form, at),
                 border = a->a->has_interval ? load_border(g, op, a, at) : NULL;
    if (border)
        return border;
    if (!own || !a->a->has_interval)
        return load_apart(g, op, a, at);
    TlCpuAt whole = *at;
    whole.whole = true;
    TlCpuFork f = tl_cpu_fork(g, is_unbounded(g, a, at, form.extent[at->lane]));
    LLVMValueRef zero = tl_gen_const(&g->gen, &elem, 0, at->width);
    LLVMValueRef p = view_spot(g, a, &whole).ptr,
                 x = masked_load(g, &elem, p, own, zero, at->width, false);
    tl_cpu_fork_else(g, &f, x);
    return tl_cpu_fork_end(g, &f, load_apart(g, op, a, at));
}

/* A lane's element, where all are inside. */
static LLVMValueRef load_lane(TlCpuGen *g, const TlType *elem, const TlCpuAccess *a,
                              const TlCpuAt *at, int lane)
{
    TlCpuAt one = *at;
    one.width = 1;
    one.idx[at->lane] = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, lane), "");
    TlCpuSpot s = view_spot(g, a, &one);
    return plain_load(g, a, elem, has_zero_rows(a, at) ? spot_or_zeros(g, a, &s) : s.ptr, 1);
}

/* The lanes of x one further on, or back, and what comes in there. */
static LLVMValueRef next_lanes(TlCpuGen *g, LLVMValueRef x, LLVMValueRef one, int by)
{
    int w = tl_gen_width_of(x);
    LLVMValueRef lane[TL_NEST_LANES];
    for (int i = 0; i < w; i++) {
        bool comes = i == (by > 0 ? w - 1 : 0);
        lane[i] = i32_(g, (uint64_t)(comes ? w : i + by));
    }
    LLVMValueRef in =
        LLVMBuildInsertElement(g->b, LLVMGetPoison(LLVMTypeOf(x)), one, i32_(g, 0), "");
    return LLVMBuildShuffleVector(g->b, x, in, LLVMConstVector(lane, (unsigned)w), "");
}

/* Every few elements, where all are inside. */
static LLVMValueRef load_strided_inside(TlCpuGen *g, const TlType *elem, const TlCpuAccess *a,
                                        const TlCpuAt *at, int stride)
{
    Together t = {.first = a};
    if (is_whole(a, at) && a->a->bounds)
        t = taken_together(g, a, at, stride);
    TlCpuAt first = *at;
    first.width = 1;
    TlCpuSpot s = view_spot(g, t.first, &first);
    LLVMValueRef p = has_zero_rows(a, at) ? spot_or_zeros(g, t.first, &s) : s.ptr,
                 x = load_every(g, elem, p, at->width, stride, t);
    if (!t.lanes)
        return x;
    return next_lanes(g, x, load_lane(g, elem, a, at, t.lanes > 0 ? at->width - 1 : 0), t.lanes);
}

/* Of memory's vector k of those that every `stride`th element is taken from, the elements that are
 * wanted: mask says of which lanes. */
static LLVMValueRef spread_mask(TlCpuGen *g, LLVMValueRef mask, int stride, int k)
{
    int w = tl_gen_width_of(mask);
    LLVMValueRef from[TL_NEST_LANES];
    for (int i = 0; i < w; i++) {
        int at = k * w + i;
        from[i] = i32_(g, (uint64_t)(at % stride ? w : at / stride));
    }
    return LLVMBuildShuffleVector(g->b, mask, LLVMConstNull(LLVMTypeOf(mask)),
                                  LLVMConstVector(from, (unsigned)w), "");
}

/* Every few elements, of which some are inside: vectors that lie side by side, in which only those
 * are read; NULL: the CPU has no such loads, or they are too many. */
static LLVMValueRef load_strided_masked(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at,
                                        int stride)
{
    enum { MOST_VECTORS = 4 };
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    if (!g->m.masks || stride > MOST_VECTORS || !a->view || a->a->asks || elem.ptr ||
        tl_dtype_bits(elem.dtype) < 8)
        return NULL;
    TlNestForm form = tl_nest_form(op->out[0]->type);
    TlCpuAt first = *at;
    first.width = 1;
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMValueRef other = outside_value(g, a, &elem, at),
                 zero = tl_gen_const(&g->gen, &elem, 0, at->width),
                 mask = both(g, tl_cpu_lanes_inside(g, &s, at->width),
                             tl_cpu_lane_mask(g, &form, at)),
                 p = row_or_zeros(g, view_spot(g, a, &first).ptr, s.row), v[TL_NEST_STRIDE];
    for (int k = 0; k < stride; k++) {
        LLVMValueRef by = tl_gen_int(&g->gen, k * at->width),
                     from = tl_gen_address(&g->gen, elem.dtype, p, by);
        v[k] = masked_load(g, &elem, from, spread_mask(g, mask, stride, k), zero, at->width, false);
    }
    LLVMValueRef x = tl_cpu_every(g, v, stride, at->width, 0, stride * at->width);
    return LLVMIsNull(other) ? x : LLVMBuildSelect(g->b, mask, x, other, "");
}

/* A position at which every few elements are taken: all are inside, or each is asked. */
static LLVMValueRef load_strided(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at, int stride)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    int64_t n = form.extent[at->lane];
    bool is_padded = n % at->width != 0 || tl_cpu_may_be_padding(&form, at);
    if (is_whole(a, at) || (!a->a->bounds && !is_padded))
        return load_strided_inside(g, &elem, a, at, stride);
    LLVMValueRef end = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, at->width), ""),
                 extent = tl_gen_int(&g->gen, n), all = NULL;
    if (is_padded) /* which is not asked of where all of the tile is inside */
        all = LLVMBuildICmp(g->b, LLVMIntULE, end, extent, "");
    if (a->a->bounds) {
        all = both(g, all, is_lane_inside(g, a, at, 0));
        all = both(g, all, is_lane_inside(g, a, at, at->width - 1));
    }
    TlCpuFork f = tl_cpu_fork(g, all);
    tl_cpu_fork_else(g, &f, load_strided_inside(g, &elem, a, at, stride));
    LLVMValueRef x = load_strided_masked(g, op, a, at, stride);
    return tl_cpu_fork_end(g, &f, x ? x : load_apart(g, op, a, at));
}

/* Bytes or words at equal distances, all inside: one by one, as no instruction gathers them. NULL:
 * they are not such. elem: of what lies at their addresses. */
static LLVMValueRef load_short_ones(TlCpuGen *g, TlType elem, TlCpuAccess *a, TlCpuAt *at)
{
    TlDtype of_memory = a->a->place.base->type->dtype;
    int axis = a->view && at->width > 1 ? tl_nest_slice_of(&a->a->place, at->lane) : -1;
    if (axis < 0 || tl_gen_elem_bytes(&elem) >= 4 || !is_whole(a, at) || has_zero_rows(a, at) ||
        a->a->place.mask || tl_dtype_bits(elem.dtype) < 8 ||
        tl_nest_is_contiguous_inside(a->a, at->lane))
        return NULL;
    TlCpuAt one = *at;
    one.width = 1;
    TlCpuSpot s = view_spot(g, a, &one);
    LLVMValueRef r = LLVMGetPoison(tl_gen_vec(tl_gen_mem_type(&g->gen, &elem), at->width));
    for (int k = 0; k < at->width; k++) {
        LLVMValueRef by = mul(g, tl_gen_int(&g->gen, k), a->stride[axis]),
                     p = tl_gen_address(&g->gen, of_memory, s.ptr, by),
                     x = LLVMBuildLoad2(g->b, tl_gen_mem_type(&g->gen, &elem), p, "");
        LLVMSetAlignment(x, (unsigned)tl_dtype_bytes(of_memory));
        r = LLVMBuildInsertElement(g->b, r, x, i32_(g, (uint64_t)k), "");
    }
    return tl_gen_from_mem(&g->gen, &elem, r);
}

LLVMValueRef tl_cpu_eval_words(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlOp *low = tl_nest_low_byte(g->plan, op);
    TL_ASSERT(low, "%s joins no bytes", tl_op_info(op->opcode)->text);
    LLVMValueRef r = load_short_ones(g, tl_cpu_elem_of(op->out[0]->type),
                                     tl_cpu_access_of(g, low), at);
    return r ? r : tl_cpu_eval_elements(g, op, at);
}

/* Lanes of one or two vectors, which end with the last element that is wanted. NULL: it is no such
 * position. */
static LLVMValueRef load_pattern(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    const TlNestAffine *f = at->width > 1 ? tl_nest_pattern_along(a->a, at->lane) : NULL;
    int64_t first, span = f ? tl_nest_pattern_span(f, at->width, &first) : 0;
    if (!span || span > 2 * at->width || !is_whole(a, at) || at->shifted)
        return NULL;
    int64_t n = 1;
    while (2 * n <= span && n < at->width)
        n *= 2;
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlCpuAt moved = *at;
    moved.width = 1;
    LLVMValueRef group = LLVMBuildUDiv(g->b, at->idx[at->lane], tl_gen_int(&g->gen, f->period), "");
    moved.idx[at->lane] = LLVMBuildAdd(g->b, mul(g, group, tl_gen_int(&g->gen, f->step)),
                                       tl_gen_int(&g->gen, first), "");
    TlCpuSpot s = spot_of_view(g, a, &moved, true);
    s.ptr = spot_or_zeros(g, a, &s);
    LLVMValueRef v[2], lane[TL_NEST_LANES], r;
    for (int k = 0; k < 2; k++)
        v[k] = plain_load(
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
    return other ? LLVMBuildSelect(g->b, s.uniform, r, outside_value(g, a, &elem, at), "") : r;
}

/* What a spread value reads: elements side by side, from the position on. */
static LLVMValueRef load_window(TlCpuGen *g, TlOp *op, TlCpuAccess *a, const TlCpuAt *at)
{
    const TlNestSpread *s = at->spread;
    const TlNestAffine *f = tl_nest_pattern_along(a->a, at->lane);
    TL_ASSERT(f && is_whole(a, at), "%s has no pattern here", tl_op_info(op->opcode)->text);
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlCpuAt moved = *at;
    moved.width = 1;
    moved.idx[at->lane] = LLVMBuildAdd(g->b, at->idx[at->lane],
                                       tl_gen_int(&g->gen, f->of[0] - s->like->of[0]), "");
    TlCpuSpot spot = spot_of_view(g, a, &moved, true);
    return plain_load(g, a, &elem, spot_or_zeros(g, a, &spot), at->width);
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
    LLVMValueRef first = LLVMBuildAdd(g->b, mul(g, group, tl_gen_int(&g->gen, f->step)),
                                      a->start[i], ""),
                 order = LLVMConstVector(of, (unsigned)w),
                 x = LLVMBuildAdd(g->b, low_words(g, first, w), order, ""),
                 zero = tl_gen_int(&g->gen, 0);
    for (int k = 0; k < 2 && bound[k]; k++) {
        LLVMValueRef b = low_words(g, bound[k], w);
        LLVMIntPredicate within = k ? LLVMIntSLT : LLVMIntSGT;
        x = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, within, x, b, ""), x, b, "");
    }
    *out_small = LLVMBuildAnd(g->b,
                              LLVMBuildICmp(g->b, LLVMIntULT, a->start[i], pattern_end(g, f), ""),
                              LLVMBuildICmp(g->b, LLVMIntSGE, bound[0], zero, ""), "");
    return x;
}

/* A pattern at the bounds of its index tile: lanes of one vector of what these allow, as near to
 * the pattern as it lies, as the indices say. Where numbers may have wrapped, so that one is inside
 * and not in that vector, each lane is loaded by itself. NULL: it is none, or there is no
 * instruction for that. */
static LLVMValueRef load_pattern_border(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    const TlNestAffine *f = at->width > 1 ? tl_nest_pattern_along(a->a, at->lane) : NULL;
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    int i = f ? lane_tile(a, at) : -1, w = at->width, bytes = (int)tl_gen_elem_bytes(&elem);
    int64_t first, span = f ? tl_nest_pattern_span(f, w, &first) : 0;
    if (!span || span > w || i < 0 || !a->low[i] || at->shifted || a->a->forks ||
        !a->a->has_interval || !tl_cpu_can_permute(g, bytes, w))
        return NULL;
    LLVMValueRef group = LLVMBuildUDiv(g->b, at->idx[at->lane], tl_gen_int(&g->gen, f->period), ""),
                 here = LLVMBuildAdd(g->b, mul(g, group, tl_gen_int(&g->gen, f->step)),
                                     tl_gen_int(&g->gen, first), ""),
                 lanes = tl_gen_int(&g->gen, w), low = a->low[i], high = a->high[i],
                 last = larger(g, low, LLVMBuildSub(g->b, high, lanes, "")),
                 from = clamp(g, LLVMBuildAdd(g->b, here, a->start[i], ""), low, last);
    TlCpuAt moved = *at;
    moved.width = 1;
    moved.idx[at->lane] = LLVMBuildSub(g->b, from, a->start[i], "");
    TlCpuSpot s = spot_of_view(g, a, &moved, true);
    LLVMValueRef n = clamp(g, LLVMBuildSub(g->b, high, from, ""), tl_gen_int(&g->gen, 0), lanes),
                 other = outside_value(g, a, &elem, at), is_near,
                 lane = pattern_numbers(g, a, i, group, w, &is_near), is_there;
    if (s.uniform)
        n = LLVMBuildSelect(g->b, s.uniform, n, tl_gen_int(&g->gen, 0), "");
    LLVMValueRef read = LLVMBuildICmp(g->b, LLVMIntSLT, tl_gen_iota(&g->gen, g->i32, w),
                                      in_lanes(g, n, w), "");
    if (lane) {
        lane = LLVMBuildSub(g->b, lane, low_words(g, from, w), "");
        is_there = LLVMBuildICmp(g->b, LLVMIntULT, lane, in_lanes(g, n, w), "");
    } else {
        LLVMValueRef index = index_tile(g, a, i, at), extent = a->view->extent[i], is_inside;
        lane = LLVMBuildSub(g->b, index, tl_gen_splat(&g->gen, from, w), "");
        is_there = LLVMBuildICmp(g->b, LLVMIntULT, lane, tl_gen_splat(&g->gen, n, w), "");
        is_inside =
            LLVMBuildICmp(g->b, LLVMIntULT, index, tl_gen_splat(&g->gen, extent, w), "");
        if (s.uniform)
            is_inside = LLVMBuildAnd(g->b, is_inside, tl_gen_splat(&g->gen, s.uniform, w), "");
        is_inside = LLVMBuildAnd(g->b, is_inside, LLVMBuildNot(g->b, is_there, ""), "");
        is_near = in_no_lane(g, is_inside);
        lane = LLVMBuildTrunc(g->b, lane, tl_gen_vec(g->i32, w), "");
    }
    TlCpuFork fork = tl_cpu_fork(g, is_near);
    LLVMValueRef x =
        masked_load(g, &elem, s.ptr, read, tl_gen_const(&g->gen, &elem, 0, w), w, false);
    x = tl_cpu_permute(g, tl_gen_to_mem(&g->gen, &elem, x), bytes, lane);
    x = LLVMBuildSelect(g->b, is_there, tl_gen_from_mem(&g->gen, &elem, x), other, "");
    tl_cpu_fork_else(g, &fork, x);
    return tl_cpu_fork_end(g, &fork, load_apart(g, op, a, at));
}

LLVMValueRef tl_cpu_eval_load(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    if (at->spread)
        return load_window(g, op, a, at);
    LLVMValueRef pattern = load_pattern(g, op, a, at);
    pattern = pattern ? pattern : load_pattern_border(g, op, a, at);
    if (pattern)
        return pattern;
    int stride = at->width > 1 ? tl_nest_stride(a->a, at->lane) : 1;
    if (stride > 1)
        return load_strided(g, op, a, at, stride);
    LLVMValueRef short_ones = load_short_ones(g, tl_cpu_elem_of(op->out[0]->type), a, at);
    if (short_ones)
        return short_ones;
    if (at->width > 1 && !is_whole(a, at) && !tl_nest_is_contiguous(a->a, at->lane) &&
        tl_nest_is_contiguous_inside(a->a, at->lane))
        return load_bounded(g, op, a, at);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    if (at->width == 1)
        return load_element(g, op, a, &s, at);
    if (has_zero_rows(a, at) && !s.apart) {
        s.ptr = spot_or_zeros(g, a, &s);
        s.uniform = NULL;
    }
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    LLVMValueRef other = outside_value(g, a, &elem, at);
    if (!s.apart)
        tl_cpu_fetch_later(g, at->fetch, a, s.ptr, at->width * (int64_t)tl_gen_elem_bytes(&elem));
    if (!s.apart)
        return load_contiguous(g, a, &elem, &s, other, at->width);
    LLVMValueRef mask = tl_cpu_lanes_inside(g, &s, at->width);
    mask = both(g, mask, tl_cpu_lane_mask(g, &form, at));
    if (a->view) {
        LLVMValueRef x = load_field(g, a, &elem, &s, mask, other, at),
                     by = tl_cpu_launch_stride(a, at->lane);
        x = x ? x : load_one_by_one(g, a, &elem, &s, mask, other, at);
        if (!x && by)
            return load_by_stride(g, a, &elem, s.ptr, by, mask, other, at->width);
        return x ? x : masked_load(g, &elem, s.ptr, mask, other, at->width, true);
    }
    LLVMValueRef first, run = tl_cpu_pointer_run(g, &elem, s.ptr, at->width, &first);
    TlCpuFork f = tl_cpu_fork(g, run);
    tl_cpu_fork_else(g, &f, masked_load(g, &elem, first, mask, other, at->width, false));
    return tl_cpu_fork_end(g, &f, masked_load(g, &elem, s.ptr, mask, other, at->width, true));
}

LLVMValueRef tl_cpu_eval_inside(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    if (at->width > 1)
        return tl_cpu_lanes_inside(g, &s, at->width);
    LLVMValueRef ok = both(g, s.uniform, s.mask);
    return ok ? ok : LLVMConstInt(g->i1, 1, 0);
}
