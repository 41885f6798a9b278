/* Memory on the CPU: where an access lies, and the tests of bounds.
 *
 * The uniform part of an access (base address, valid interval of each slice) is computed once
 * where the op stands. In a nest, a position is then (a) contiguous in its lanes: one masked
 * vector access, plain when all lanes are inside, (b) apart: masked gather or scatter, or (c)
 * one element: a conditional scalar access. */
#include "codegen/cpu/cpu_access.h"
#include "passes/analysis/facts.h"

/* --check: asks the runtime whether the element may be accessed. If not, it reports that. */
static LLVMValueRef check_address(TlCpuGen *g, LLVMValueRef p, uint64_t bytes, int param, TlLoc loc)
{
    LLVMTypeRef params[7] = {g->ptr, g->ptr, g->i64, g->i32, g->i32, g->i32, g->i32};
    LLVMValueRef args[7] = {g->ctx,
                            p,
                            tl_gen_int(&g->gen, (int64_t)bytes),
                            LLVMConstInt(g->i32, (unsigned long long)(int64_t)param, 1),
                            tl_cpu_i32(g, loc.file),
                            tl_cpu_i32(g, loc.line),
                            tl_cpu_i32(g, loc.col)};
    LLVMTypeRef type = LLVMFunctionType(g->i32, params, 7, 0);
    LLVMValueRef ok = tl_cpu_service(g, TL_CPU_SERVICE(check), type, args, 7);
    return LLVMBuildICmp(g->b, LLVMIntNE, ok, tl_cpu_i32(g, 0), "");
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

LLVMValueRef tl_cpu_affine_extent(TlCpuGen *g, const TlNestAffine *f, LLVMValueRef extent)
{
    LLVMValueRef most = tl_gen_int(&g->gen, (int64_t)INT32_MAX + 1);
    bool ends = f->is && f->dtype == TL_I32;
    return ends ? tl_cpu_smaller(g, extent, most) : extent;
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

/* The bounds of an index tile, of which the weaker one never exceeds the other one. */
static void find_bounds(TlCpuGen *g, TlCpuAccess *a, int i)
{
    const TlNestAffine *f = &a->a->axis[i].affine;
    LLVMValueRef least = f->least ? one_number(g, f->least) : NULL,
                 most = f->most ? one_number(g, f->most) : NULL;
    if (least && most && f->least_wins)
        most = tl_cpu_larger(g, least, most);
    else if (least && most)
        least = tl_cpu_smaller(g, least, most);
    a->least[i] = least;
    a->most[i] = most;
}

/* x / by, rounded up; 0 where x is less. */
static LLVMValueRef quotient_up(TlCpuGen *g, LLVMValueRef x, int64_t by)
{
    x = LLVMBuildAdd(g->b, tl_cpu_larger(g, x, tl_gen_int(&g->gen, 0)), tl_gen_int(&g->gen, by - 1),
                     "");
    return LLVMBuildUDiv(g->b, x, tl_gen_int(&g->gen, by), "");
}

LLVMValueRef tl_cpu_pattern_end(TlCpuGen *g, const TlNestAffine *f)
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
        hi = tl_cpu_smaller(g, hi, quotient_up(g, left, f->step));
    }
    hi = tl_cpu_smaller(g, tl_cpu_mul(g, hi, by), width);
    a->lo[i] = tl_cpu_mul(g, lo, by);
    a->hi[i] = tl_gen_pick(&g->gen, LLVMIntULT, a->start[i], tl_cpu_pattern_end(g, f), hi, zero);
}

/* [lo, hi), for an index tile of rows of elements: from the first row to behind the last one that
 * its bounds leave as they are, where that is inside of the view. */
static void rows_interval(TlCpuGen *g, TlCpuAccess *a, int i, LLVMValueRef start)
{
    const TlNestAffine *f = &a->a->axis[i].affine;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), unit = tl_gen_int(&g->gen, f->unit),
                 behind = tl_gen_int(&g->gen, f->behind), extent = a->view->extent[i],
                 width = tl_gen_int(&g->gen, tl_nest_axis_width(a->a, (uint32_t)i)),
                 rows = tl_cpu_affine_extent(g, f, LLVMBuildUDiv(g->b, extent, unit, "")),
                 low = a->least[i] ? tl_cpu_larger(g, a->least[i], zero) : zero, high = rows;
    if (a->most[i])
        high = tl_cpu_smaller(g, high, LLVMBuildAdd(g->b, a->most[i], tl_gen_int(&g->gen, 1), ""));
    low = LLVMBuildAdd(g->b, tl_cpu_mul(g, tl_cpu_smaller(g, low, rows), unit), behind, "");
    high = LLVMBuildAdd(g->b, tl_cpu_mul(g, tl_cpu_larger(g, high, zero), unit), behind, "");
    low = tl_cpu_larger(g, low, zero);
    high = tl_cpu_smaller(g, high, extent);
    start = LLVMBuildAdd(g->b, tl_cpu_mul(g, start, unit), behind, "");
    a->bounded[i] = LLVMConstInt(g->i1, 0, 0);
    a->start[i] = start;
    a->low[i] = low;
    a->high[i] = high;
    a->lo[i] = tl_cpu_larger(g, LLVMBuildSub(g->b, low, start, ""), zero);
    a->hi[i] =
        tl_cpu_smaller(g, tl_cpu_larger(g, LLVMBuildSub(g->b, high, start, ""), zero), width);
}

/* [lo, hi): the positions at which a bounded index tile is what it would be without bounds, and
 * inside. */
static void clamped_interval(TlCpuGen *g, TlCpuAccess *a, int i, LLVMValueRef start)
{
    const TlNestAffine *f = &a->a->axis[i].affine;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), low = zero, extent = a->view->extent[i],
                 never = LLVMConstInt(g->i1, 0, 0),
                 high = tl_cpu_affine_extent(g, f, a->view->extent[i]),
                 width = tl_gen_int(&g->gen, tl_nest_axis_width(a->a, (uint32_t)i));
    find_bounds(g, a, i);
    if (f->unit) {
        rows_interval(g, a, i, start);
        return;
    }
    LLVMValueRef least = a->least[i], most = a->most[i];
    bool ends = (least && most) || f->mirrored;
    a->bounded[i] = ends ? LLVMBuildICmp(g->b, LLVMIntSGT, extent, zero, "") : never;
    if (least) {
        a->bounded[i] = LLVMBuildAnd(g->b, a->bounded[i],
                                     LLVMBuildICmp(g->b, LLVMIntULT, least, extent, ""), "");
        low = tl_cpu_larger(g, least, zero);
    }
    if (most) {
        LLVMValueRef end = LLVMBuildAdd(g->b, most, tl_gen_int(&g->gen, 1), "");
        a->bounded[i] = LLVMBuildAnd(g->b, a->bounded[i],
                                     LLVMBuildICmp(g->b, LLVMIntULT, most, extent, ""), "");
        high = tl_cpu_smaller(g, end, high);
    }
    a->start[i] = start;
    a->low[i] = low;
    a->high[i] = high;
    if (f->period) {
        pattern_interval(g, a, i);
        return;
    }
    a->lo[i] = tl_cpu_larger(g, LLVMBuildSub(g->b, low, start, ""), zero);
    high = tl_cpu_larger(g, LLVMBuildSub(g->b, high, start, ""), zero);
    a->hi[i] = tl_cpu_smaller(g, high, width);
}

/* An index of the array that is inside, as this one is, from which it lies a number known here. It
 * is the first one there was: addresses then share a register, and LLVM sees what is loaded twice.
 * NULL: this one is the first, or may be outside. */
static const TlCpuMark *mark_of(TlCpuGen *g, const TlCpuAccess *a, uint32_t i, LLVMValueRef at,
                                int64_t *out_by)
{
    const TlValue *index = a->a->place.index[i].value;
    bool plain = a->a->place.axes[i].kind != TL_AXIS_TILE && !a->a->axis[i].affine.is &&
                 (index->type->dtype == TL_I32 || index->type->dtype == TL_I64);
    if (!g->whole || !plain || !tl_nest_asked(g->plan, a->a->op))
        return NULL;
    int64_t number;
    const TlValue *scalar = tl_nest_without_number(index, &number), *base = a->a->place.base;
    const TlNestAbreast *abreast = g->nturns ? g->plan->abreast : NULL;
    int turn = g->turn;
    if (abreast && abreast->known[scalar->id]) {
        number += turn * abreast->by[scalar->id];
        turn = 0;
    }
    for (uint32_t k = 0; k < g->marks.len; k++) {
        const TlCpuMark *m = &g->marks.data[k];
        if (m->base != base || m->axis != i || m->scalar != scalar || m->turn != turn ||
            m->block != a->a->op->block)
            continue;
        *out_by = number - m->number;
        return m;
    }
    tl_vec_push(g->arena, &g->marks,
                (TlCpuMark){base, scalar, a->a->op->block, i, turn, number, at});
    return NULL;
}

static void take_slice(TlCpuGen *g, TlCpuAccess *a, int i, LLVMValueRef at)
{
    TL_ASSERT(i >= 0 && (uint32_t)i < a->a->place.naxes, "axis %d of %u", i, a->a->place.naxes);
    const TlAxis *axis = &a->a->place.axes[i];
    a->start[i] = at;
    if (!a->a->bounds) {
        a->lo[i] = tl_gen_int(&g->gen, 0);
        a->hi[i] = tl_gen_int(&g->gen, axis->width);
    } else if (axis->step > 0) {
        slice_interval(g, a, i, at,
                       tl_cpu_affine_extent(g, &a->a->axis[i].affine, a->view->extent[i]));
    }
}

/* Is it an axis of rows that may lie apart? */
static bool is_row_axis(const TlCpuAccess *a, int i)
{
    return a->a->row && i + 1 == (int)a->a->place.naxes;
}

/* The row with which an access of such begins: its index is so many rows' elements. */
static LLVMValueRef first_row(TlCpuGen *g, const TlCpuAccess *a, TlValue *index)
{
    TlWideInt n, row;
    if (tl_const_int_value(index, &n))
        return tl_gen_int(&g->gen, (int64_t)n / a->a->row);
    const TlOp *op = index->def;
    TL_ASSERT(op && op->opcode == TL_OP_MUL && tl_const_int_value(tl_in(op, 1), &row) &&
                  row == a->a->row,
              "rows begin within one");
    return tl_gen_to_i64(&g->gen, tl_in(op, 0), tl_gen_scalar(&g->gen, tl_in(op, 0)));
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
    int64_t by = 0;
    if (is_row_axis(a, i)) {
        a->pitch = stride;
        a->dense = LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, a->a->row), "");
        *offset = LLVMBuildAdd(g->b, *offset, tl_cpu_mul(g, first_row(g, a, index), stride), "");
        take_slice(g, a, i, at);
        return;
    }
    const TlCpuMark *mark = mark_of(g, a, (uint32_t)i, at, &by);
    LLVMValueRef part = tl_cpu_mul(g, mark ? mark->at : at, stride),
                 *sum = LLVMIsAConstantInt(part) ? &a->shift : offset;
    *sum = LLVMBuildAdd(g->b, *sum, part, "");
    if (by) {
        part = tl_cpu_mul(g, stride, tl_gen_int(&g->gen, by));
        sum = LLVMIsAConstantInt(part) ? &a->shift : offset;
        *sum = LLVMBuildAdd(g->b, *sum, part, "");
    }
    if (axis->kind == TL_AXIS_SCALAR) {
        if (!a->a->bounds)
            return;
        LLVMValueRef extent = a->view->extent[i], zero = tl_gen_int(&g->gen, 0),
                     in = a->a->axis[i].fits ? LLVMBuildICmp(g->b, LLVMIntSGT, extent, zero, "")
                                             : LLVMBuildICmp(g->b, LLVMIntULT, at, extent, "");
        a->ok = a->ok ? LLVMBuildAnd(g->b, a->ok, in, "") : in;
        return;
    }
    a->stride[i] = tl_cpu_mul(g, stride, tl_gen_int(&g->gen, axis->step));
    take_slice(g, a, i, at);
}

bool tl_cpu_tests_axis(const TlCpuGen *g, const TlNestAccess *a, uint32_t i)
{
    return g->tests_lanes && a->axis[i].dim == g->plan->all.data[0]->lane;
}

/* The program has asked, and all is inside. */
static void take_whole(TlCpuGen *g, TlCpuAccess *a)
{
    a->ok = NULL;
    for (uint32_t i = 0; i < a->a->place.naxes; i++) {
        if (!tl_nest_asks_axis(a->a, i) || a->a->place.axes[i].kind == TL_AXIS_SCALAR ||
            tl_cpu_tests_axis(g, a->a, i))
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

/* The index along `dim`, as i64; along the lane dimension one for each lane. */
static LLVMValueRef lane_numbers(TlCpuGen *g, const TlCpuAt *at, int dim)
{
    TL_ASSERT(dim >= 0 && dim < at->rank, "axis %d of a tile of rank %d", dim, at->rank);
    if (at->width == 1 || dim != at->lane)
        return at->idx[dim];
    return LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, at->idx[dim], at->width),
                        tl_gen_iota(&g->gen, g->i64, at->width), "");
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

LLVMValueRef tl_cpu_index_tile(TlCpuGen *g, const TlCpuAccess *a, int i, const TlCpuAt *at)
{
    int dim = a->a->axis[i].dim;
    TL_ASSERT((uint32_t)i < a->a->place.naxes && dim >= 0, "axis %d has no index tile", i);
    TlValue *v = a->a->place.index[i].value;
    TlCpuAt sub;
    LLVMValueRef known = index_of_row(a, i, at);
    if (known)
        return known;
    const TlNestAffine *f = &a->a->axis[i].affine;
    if (g->whole && tl_nest_asked(g->plan, a->a->op) && f->is && !f->period) {
        LLVMValueRef j = lane_numbers(g, at, dim);
        return LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, a->start[i], tl_gen_width_of(j)), j, "");
    }
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
            LLVMValueRef x = tl_cpu_index_tile(g, a, (int)i, at);
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
        s->mask = tl_cpu_both(g, s->mask, c);
    else
        s->uniform = tl_cpu_both(g, s->uniform, c);
}

/* Positions of a slice that goes backwards. */
static LLVMValueRef stepped_inside(TlCpuGen *g, const TlCpuAccess *a, int i, LLVMValueRef j)
{
    TL_ASSERT((uint32_t)i < a->a->place.naxes, "axis %d of %u", i, a->a->place.naxes);
    int w = tl_gen_width_of(j);
    LLVMValueRef at = LLVMBuildAdd(
        g->b, tl_gen_splat(&g->gen, a->start[i], w),
        tl_cpu_mul(g, j, tl_gen_splat(&g->gen, tl_gen_int(&g->gen, a->a->place.axes[i].step), w)),
        "");
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

LLVMValueRef tl_cpu_interval_inside(TlCpuGen *g, const TlCpuAccess *a, int i, LLVMValueRef j)
{
    TL_ASSERT((uint32_t)i < a->a->place.naxes && a->lo[i] && a->hi[i], "no interval of axis %d", i);
    if (is_const(a->lo[i], 0) && is_const(a->hi[i], a->a->place.axes[i].width))
        return NULL;
    return is_between(g, j, a->lo[i], a->hi[i]);
}

/* Does the nest go over rows that are outside, too, many of them maybe? Stores and products whose
 * store says which rows are seen do not, but where rows are packed in blocks: to load nothing from
 * pages that are not there takes the CPU long. */
static bool visits_all_rows(const TlCpuAt *at)
{
    const TlNest *n = at->row ? at->row->nest : NULL;
    return n &&
           (n->kind == TL_NEST_FILL || n->kind == TL_NEST_REDUCE ||
            (n->kind == TL_NEST_PACK &&
             (n->transposed || !(n->product->loop && (n->product->store || n->product->seen[0])))));
}

/* So many bits, the lowest ones, are 1. */
static LLVMValueRef low_bits(TlCpuGen *g, LLVMValueRef n, int width)
{
    LLVMValueRef all = tl_gen_int(&g->gen, -1), zero = tl_gen_int(&g->gen, 0);
    n = tl_cpu_larger(g, n, zero);
    LLVMValueRef is_all = LLVMBuildICmp(g->b, LLVMIntSGE, n, tl_gen_int(&g->gen, width), ""),
                 by = LLVMBuildSelect(g->b, is_all, zero, n, ""),
                 some = LLVMBuildNot(g->b, LLVMBuildShl(g->b, all, by, ""), "");
    return LLVMBuildSelect(g->b, is_all, all, some, "");
}

LLVMValueRef tl_cpu_lane_range(TlCpuGen *g, LLVMValueRef from, LLVMValueRef to, int width)
{
    TL_ASSERT(width > 1 && width <= TL_NEST_LANES, "%d lanes", width);
    if (g->m.mask_bits) {
        LLVMTypeRef bits = LLVMIntTypeInContext(g->c, (unsigned)width);
        LLVMValueRef before = LLVMBuildNot(g->b, low_bits(g, from, width), ""),
                     m = LLVMBuildAnd(g->b, low_bits(g, to, width), before, "");
        return LLVMBuildBitCast(g->b, LLVMBuildIntCast2(g->b, m, bits, 0, ""),
                                tl_gen_vec(g->i1, width), "");
    }
    LLVMValueRef lane = tl_gen_iota(&g->gen, g->i32, width), bound[] = {from, to},
                 most = tl_gen_int(&g->gen, width), zero = tl_gen_int(&g->gen, 0);
    for (int k = 0; k < 2; k++) {
        LLVMValueRef b = tl_cpu_smaller(g, tl_cpu_larger(g, bound[k], zero), most);
        bound[k] = tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, b, g->i32, ""), width);
    }
    return LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntSGE, lane, bound[0], ""),
                        LLVMBuildICmp(g->b, LLVMIntSLT, lane, bound[1], ""), "");
}

/* The lanes that are inside a slice of step 1: none if the spot's uniform condition does not hold.
 * The interval is within 0..width: 32 bits do. */
static void lane_interval(TlCpuGen *g, const TlCpuAccess *a, int i, const TlCpuAt *at, TlCpuSpot *s)
{
    LLVMValueRef j = at->idx[at->lane], lo = a->lo[i], hi = a->hi[i];
    if (s->uniform)
        hi = LLVMBuildSelect(g->b, s->uniform, hi, tl_gen_int(&g->gen, 0), "");
    if (visits_all_rows(at))
        s->row = LLVMBuildICmp(g->b, LLVMIntSLT, j, hi, "");
    else if (at->row && at->row->nest->kind == TL_NEST_STORE) /* a stencil's rows */
        s->row = s->uniform;
    s->uniform = NULL;
    LLVMValueRef end = LLVMBuildAdd(g->b, j, tl_gen_int(&g->gen, at->width), "");
    s->full = LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntSGE, j, lo, ""),
                           LLVMBuildICmp(g->b, LLVMIntSLE, end, hi, ""), "");
    if (at->width > tl_nest_tested_width(g->plan, at->width)) {
        add_condition(g, s,
                      tl_cpu_lane_range(g, LLVMBuildSub(g->b, lo, j, ""),
                                        LLVMBuildSub(g->b, hi, j, ""), at->width));
        return;
    }
    LLVMValueRef j32 =
        LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, j, g->i32, ""), at->width),
                     tl_gen_iota(&g->gen, g->i32, at->width), "");
    LLVMValueRef lo32 = LLVMBuildTrunc(g->b, lo, g->i32, ""),
                 hi32 = LLVMBuildTrunc(g->b, hi, g->i32, "");
    LLVMValueRef m = is_between(g, j32, lo32, hi32);
    add_condition(g, s, m);
}

bool tl_cpu_is_inside(const TlCpuAccess *a, const TlCpuAt *at)
{
    return at->whole && a->a->has_interval && !a->a->asks;
}

bool tl_cpu_is_asked_whole(const TlCpuGen *g, const TlNestAccess *a)
{
    bool is = g->whole && tl_nest_asked(g->plan, a->op);
    for (uint32_t i = 0; is && i < a->place.naxes; i++)
        is = tl_nest_asks_axis(a, i);
    return is;
}

bool tl_cpu_has_zero_rows(const TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at)
{
    return tl_cpu_is_inside(a, at) && at->row && at->row->nest->zero_rows &&
           !at->row->rows_inside && tl_nest_has_zeros(a->a) && !tl_cpu_is_asked_whole(g, a->a);
}

/* Do the loops of the nest visit only what is inside along this axis? */
static bool is_boxed(const TlCpuAccess *a, uint32_t i, const TlCpuAt *at)
{
    const TlNest *n = at->row ? at->row->nest : NULL;
    return n && n->boxed == a->a && n->boxed_axes >> i & 1;
}

/* The number that an index tile is in all places, of which a scalar tells; NULL: it is none. */
static LLVMValueRef shared_index(TlCpuGen *g, const TlCpuAccess *a, uint32_t i)
{
    TlValue *v = a->a->place.index[i].value;
    while (v->type->rank && v->def &&
           (v->def->opcode == TL_OP_BROADCAST || v->def->opcode == TL_OP_EXPAND ||
            v->def->opcode == TL_OP_RESHAPE))
        v = tl_in(v->def, 0);
    return v->type->rank ? NULL : tl_gen_to_i64(&g->gen, v, tl_gen_scalar(&g->gen, v));
}

LLVMValueRef tl_cpu_rows_offset(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at,
                                LLVMValueRef j)
{
    bool turns = at->turn && at->turn == j;
    LLVMValueRef from = turns ? at->turn_from : j, row, column;
    int w = tl_gen_width_of(j);
    if (w > 1) /* there are instructions for 32 bits */
        from = LLVMBuildTrunc(g->b, from, tl_gen_vec(g->i32, w), "");
    LLVMValueRef n = tl_gen_splat(
        &g->gen, LLVMConstInt(w > 1 ? g->i32 : g->i64, (unsigned long long)a->a->row, 0), w);
    row = LLVMBuildUDiv(g->b, from, n, "");
    column = turns ? tl_gen_int(&g->gen, at->behind % a->a->row)
                   : LLVMBuildSub(g->b, from, tl_cpu_mul(g, row, n), "");
    if (turns)
        row = LLVMBuildAdd(g->b, row, tl_gen_int(&g->gen, at->behind / a->a->row), "");
    if (w > 1) {
        row = LLVMBuildZExt(g->b, row, tl_gen_vec(g->i64, w), "");
        column = LLVMBuildZExt(g->b, column, tl_gen_vec(g->i64, w), "");
    }
    return LLVMBuildAdd(g->b, tl_cpu_mul(g, row, tl_gen_splat(&g->gen, a->pitch, w)), column, "");
}

TlCpuSpot tl_cpu_view_spot(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at, bool along_lanes)
{
    bool all = tl_cpu_is_inside(a, at), rows = !all || tl_cpu_has_zero_rows(g, a, at);
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
            j = tl_cpu_index_tile(g, a, (int)i, at); /* within its bounds */
        } else if (k == TL_AXIS_TILE && whole && a->a->axis[i].affine.is &&
                   (along_lanes || !a->a->axis[i].affine.period)) {
            j = contiguous ? at->idx[dim] : lane_numbers(g, at, dim);
            j = LLVMBuildAdd(g->b, j, tl_gen_splat(&g->gen, a->start[i], tl_gen_width_of(j)), "");
        } else if (k == TL_AXIS_TILE) {
            j = at->width > 1 ? shared_index(g, a, i) : NULL;
            j = j ? j : tl_cpu_index_tile(g, a, (int)i, at);
            int w = tl_gen_width_of(j);
            bool asked = a->a->axis[i].affine.is && !a->a->axis[i].affine.period &&
                         tl_cpu_is_asked_whole(g, a->a) && !tl_cpu_tests_axis(g, a->a, i);
            if (a->a->bounds && !asked)
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
                              a->a->place.axes[i].step > 0 ? tl_cpu_interval_inside(g, a, (int)i, j)
                                                           : stepped_inside(g, a, (int)i, j));
        }
        LLVMValueRef part = j;
        if (is_row_axis(a, (int)i))
            part = tl_cpu_rows_offset(g, a, at, j);
        else if (!is_const(a->stride[i], 1))
            part = tl_cpu_mul(g, j, tl_gen_splat(&g->gen, a->stride[i], tl_gen_width_of(j)));
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

LLVMValueRef tl_cpu_access_address(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at)
{
    TL_ASSERT(a->view && at->width >= 1, "an address of no view");
    return tl_cpu_view_spot(g, a, at, false).ptr;
}

TlCpuSpot tl_cpu_spot_at(TlCpuGen *g, const TlCpuAccess *a, TlCpuAt *at)
{
    TlCpuSpot s = {.apart = at->width > 1};
    if (a->view)
        s = tl_cpu_view_spot(g, a, at, false);
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
    LLVMValueRef m = tl_cpu_both(g, s->mask, u);
    return m ? m : tl_gen_splat(&g->gen, LLVMConstInt(g->i1, 1, 0), width);
}

/* `ok`, and the runtime says that the address is in the argument's array. */
static LLVMValueRef ask_address(TlCpuGen *g, const TlCpuAccess *a, TlCpuSpot *s, LLVMValueRef ok)
{
    uint64_t bytes = (uint64_t)tl_dtype_bytes(a->a->place.base->type->dtype);
    TlCpuBranch branch = tl_cpu_branch(g, ok, true, "then", "join");
    LLVMValueRef good = check_address(g, s->ptr, bytes, a->a->param, a->a->op->loc);
    return tl_cpu_join_value(g, branch, good, LLVMConstInt(g->i1, 0, 0));
}

LLVMValueRef tl_cpu_element_ok(TlCpuGen *g, const TlCpuAccess *a, TlCpuSpot *s)
{
    LLVMValueRef ok = tl_cpu_both(g, s->uniform, s->mask);
    if (g->options->check && a->view && ok && tl_attr_flag(a->a->op, TL_ATTR_UNCHECKED))
        tl_cpu_fail(g, LLVMBuildNot(g->b, ok, ""), 1, a->a->op->loc,
                    "the promise of unchecked does not hold");
    return a->a->asks ? ask_address(g, a, s, ok) : ok;
}

LLVMValueRef tl_cpu_eval_inside(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    if (at->width > 1)
        return tl_cpu_lanes_inside(g, &s, at->width);
    LLVMValueRef ok = tl_cpu_both(g, s.uniform, s.mask);
    return ok ? ok : LLVMConstInt(g->i1, 1, 0);
}
