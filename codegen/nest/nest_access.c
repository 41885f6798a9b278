/* What is known of memory accesses at compile time: which axis of a view gives which dimension of
 * the tile, where elements are contiguous, which of them are known to be inside. */
#include "codegen/nest/nest.h"

#include <string.h>

#include "passes/analysis/facts.h"

int tl_nest_slice_of(const TlPlace *p, int dim)
{
    int i = tl_nest_steps_of(p, dim);
    return i >= 0 && p->axes[i].step == 1 ? i : -1;
}

int tl_nest_steps_of(const TlPlace *p, int dim)
{
    for (uint32_t i = 0; i < p->naxes; i++)
        if (tl_place_dim(p, i) == dim)
            return p->axes[i].kind == TL_AXIS_SLICE && p->axes[i].step > 0 ? (int)i : -1;
    return -1;
}

/* Elements of the rows, which may lie apart, that a view's last axis is; 0: it is none. */
static int64_t row_of(const TlValue *view)
{
    bool is = view->def && view->def->opcode == TL_OP_VIEW;
    return is ? tl_attr_int(view->def, TL_ATTR_ROW, 0) : 0;
}

int64_t tl_nest_turn(const TlNests *plan, int width)
{
    int64_t turn = plan->rows_apart;
    while (turn % width)
        turn += plan->rows_apart;
    return turn;
}

bool tl_nest_is_dense(const TlFn *fn, const TlPlace *p, int axis)
{
    const TlValue *base = p->base;
    while (base->def && base->def->opcode == TL_OP_SUB_VIEW) /* which has its view's strides */
        base = tl_in(base->def, 0);
    const TlOp *view = base->def;
    if (view && view->opcode == TL_OP_VIEW) {
        uint64_t bits;
        const TlValue *stride = tl_in(view, 1 + p->naxes + (uint32_t)axis);
        if (row_of(base) && axis + 1 == (int)p->naxes)
            return true;
        return tl_value_is_const(stride, &bits) && bits == 1;
    }
    if (!fn->info || view)
        return false;
    const TlParam *param = &fn->info->params.data[base->index];
    const TlDim *d = &param->stride[axis];
    bool last = axis + 1 == param->rank;
    return (d->kind == TILE_DIM_DENSE && last) || (d->kind == TILE_DIM_CONST && d->value == 1);
}

/* ---- extents and strides ---- */

bool tl_nest_extent(const TlFn *fn, const TlValue *view, uint32_t axis, int64_t *out)
{
    const TlOp *op = view->def;
    TlWideInt n, start;
    if (op && op->opcode == TL_OP_SUB_VIEW) {
        uint32_t rank = (uint32_t)view->type->rank;
        int64_t all;
        if (!tl_nest_extent(fn, tl_in(op, 0), axis, &all) ||
            !tl_const_int_value(tl_in(op, 1 + axis), &start) ||
            !tl_const_int_value(tl_in(op, 1 + rank + axis), &n))
            return false;
        start = start < 0 ? 0 : start > all ? all : start;
        n = n < all - start ? n : all - start;
        *out = n < 0 ? 0 : (int64_t)n;
        return true;
    }
    if (op) {
        if (op->opcode != TL_OP_VIEW || !tl_const_int_value(tl_in(op, 1 + axis), &n))
            return false;
        *out = (int64_t)n;
        return true;
    }
    const TlDim *d = &fn->info->params.data[view->index].extent[axis];
    *out = d->value;
    return d->kind == TILE_DIM_CONST;
}

/* The stride; 0: it is not known. */
static int64_t stride_of(const TlFn *fn, const TlValue *view, uint32_t axis)
{
    const TlOp *op = view->def;
    TlWideInt n;
    if (op && op->opcode == TL_OP_SUB_VIEW)
        return stride_of(fn, tl_in(op, 0), axis);
    if (row_of(view) && (int)axis + 1 == view->type->rank)
        return 1;
    if (op)
        return op->opcode == TL_OP_VIEW &&
                       tl_const_int_value(tl_in(op, 1 + (uint32_t)view->type->rank + axis), &n)
                   ? (int64_t)n
                   : 0;
    const TlParam *p = &fn->info->params.data[view->index];
    if (p->stride[axis].kind == TILE_DIM_CONST)
        return p->stride[axis].value;
    if (p->stride[axis].kind != TILE_DIM_DENSE)
        return 0;
    if (axis + 1 == p->rank)
        return 1;
    int64_t row;
    if (!tl_nest_extent(fn, view, axis + 1, &row))
        return 0;
    bool half = tl_dtype_bits(p->dtype) < 8 && axis + 2 == p->rank; /* rows end on a byte */
    return (half ? (row + 1) & -2 : row) * stride_of(fn, view, axis + 1);
}

/* ---- index tiles that are slices ---- */

/* The scalar that all elements of v are; NULL: they are a number or differ. */
static TlValue *scalar_of(const TlValue *v)
{
    const TlOp *op = v->def;
    bool is_one = op && op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0;
    return is_one ? tl_in(op, 0) : NULL;
}

/* Adds v, or what is left after it is subtracted. *iotas: how often iota is in the sum. */
static bool add_terms(TlNestAffine *a, const TlValue *v, bool minus, int *iotas, int depth)
{
    enum { MOST_DEPTH = 8 };
    const TlOp *op = v->def;
    TlWideInt n;
    TlValue *scalar = scalar_of(v);
    if (scalar && a->nterms < TL_NEST_TERMS) {
        a->term[a->nterms] = scalar;
        a->minus[a->nterms++] = minus;
        return true;
    }
    if (tl_const_int_value(v, &n)) {
        uint64_t by = (uint64_t)(int64_t)n;
        a->offset = (int64_t)((uint64_t)a->offset + (minus ? 0 - by : by));
        return true;
    }
    if (!op || depth > MOST_DEPTH || v->type->rank != 1)
        return false;
    bool rows = a->unit && op->opcode == TL_OP_DIV && tl_const_int_value(tl_in(op, 1), &n) &&
                n == a->unit && tl_in(op, 0)->def && tl_in(op, 0)->def->opcode == TL_OP_IOTA;
    if (rows || (op->opcode == TL_OP_IOTA && !a->unit)) {
        *iotas += minus ? -1 : 1;
        return true;
    }
    bool subtracts = op->opcode == TL_OP_SUB;
    return (op->opcode == TL_OP_ADD || subtracts) &&
           add_terms(a, tl_in(op, 0), minus, iotas, depth + 1) &&
           add_terms(a, tl_in(op, 1), minus != subtracts, iotas, depth + 1);
}

static bool is_one_number(const TlValue *v)
{
    uint64_t bits;
    return scalar_of(v) || tl_value_is_const(v, &bits);
}

/* v, unless it is x bounded by one number: then x. */
static TlValue *without_bound(TlNestAffine *a, TlValue *v)
{
    const TlOp *op = v->def;
    bool is_max = op && op->opcode == TL_OP_MAX, is_min = op && op->opcode == TL_OP_MIN;
    if (!is_max && !is_min)
        return v;
    TlValue **bound = is_max ? &a->least : &a->most;
    for (uint32_t i = 0; i < 2; i++)
        if (!*bound && is_one_number(tl_in(op, i))) {
            *bound = tl_in(op, i);
            return tl_in(op, 1 - i);
        }
    return v;
}

/* Is the sum of its terms so far from the ends of i64 that no position of the tile wraps, nor its
 * distance from another place in an array? */
static bool is_moderate(const TlNests *plan, const TlNestAffine *a)
{
    const int64_t far = (int64_t)1 << 62;
    TlWideInt lo = a->offset, hi = a->offset;
    for (uint32_t i = 0; i < a->nterms; i++) {
        const TlAxisFacts *f = tl_axis_facts(plan->axis, a->term[i]);
        lo += a->minus[i] ? -(TlWideInt)f->hi : f->lo;
        hi += a->minus[i] ? -(TlWideInt)f->lo : f->hi;
    }
    return lo >= -far && hi <= far;
}

/* The one number, without what made a tile of it. */
static const TlValue *without_splat(const TlValue *v)
{
    const TlValue *scalar = scalar_of(v);
    return scalar ? scalar : v;
}

/* Is v how many positions the axis has, or of rows of so many elements? (unit 0: none) */
static bool is_length(const TlNests *plan, const TlValue *v, const TlValue *view, uint32_t axis,
                      int64_t unit)
{
    TlWideInt n, all;
    if (!unit)
        return tl_axis_is_extent(plan->axis, v, view, axis);
    if (!view->def || view->def->opcode != TL_OP_VIEW)
        return false;
    const TlValue *elements = tl_in(view->def, 1 + axis);
    const TlOp *mul = elements->def;
    if (tl_const_int_value(elements, &all))
        return tl_const_int_value(v, &n) && n * unit == all;
    if (!mul || mul->opcode != TL_OP_MUL || !tl_const_int_value(tl_in(mul, 1), &n) || n != unit)
        return false;
    const TlOp *of = tl_axis_plain(plan->axis, tl_in(mul, 0))->def;
    return of && of->opcode == TL_OP_EXTENT &&
           tl_axis_is_extent(plan->axis, v, tl_in(of, 0),
                             (uint32_t)tl_attr_int(of, TL_ATTR_AXIS, 0));
}

/* Are its bounds 0 or more, and the last position of the view's axis? */
static bool fits(const TlNests *plan, const TlNestAffine *a, const TlValue *view, uint32_t axis)
{
    TlWideInt least, n;
    if (!a->least || !a->most || a->least_wins || a->behind ||
        !tl_const_int_value(without_splat(a->least), &least) || least)
        return false;
    const TlValue *most = tl_axis_plain(plan->axis, without_splat(a->most));
    const TlOp *last = most->def;
    for (uint32_t i = 0; last && last->opcode == TL_OP_ADD && i < 2; i++)
        if (tl_const_int_value(tl_in(last, i), &n) && n == -1)
            return is_length(plan, tl_in(last, 1 - i), view, axis, a->unit);
    const TlDim *d = a->unit ? NULL : tl_axis_param_extent(plan->fn, view, axis);
    return d && d->kind == TILE_DIM_CONST && tl_const_int_value(most, &n) && n == d->value - 1;
}

/* Is v all elements of rows, the ones behind the others, and a number more? The rows, of so many
 * elements; v: it is not. */
static TlValue *find_rows(TlNestAffine *a, TlValue *v)
{
    TlWideInt n, by, behind = 0;
    TlOp *op = v->def;
    if (op && op->opcode == TL_OP_ADD && tl_const_int_value(tl_in(op, 1), &behind))
        op = tl_in(op, 0)->def;
    if (!op || op->opcode != TL_OP_ADD || v->type->dtype != TL_I64)
        return v;
    const TlOp *rows = tl_in(op, 0)->def, *column = tl_in(op, 1)->def;
    if (!rows || rows->opcode != TL_OP_MUL || !tl_const_int_value(tl_in(rows, 1), &n) || n < 1 ||
        n > TL_NEST_LANES || !column || column->opcode != TL_OP_REM || !tl_in(column, 0)->def ||
        tl_in(column, 0)->def->opcode != TL_OP_IOTA || !tl_const_int_value(tl_in(column, 1), &by) ||
        by != n)
        return v;
    a->unit = (int64_t)n;
    a->behind = (int64_t)behind;
    TlValue *row = tl_in(rows, 0);
    bool widens =
        row->def && row->def->opcode == TL_OP_CAST && tl_in(row->def, 0)->type->dtype == TL_I32;
    return widens ? tl_in(row->def, 0) : row;
}

/* A pattern of which vectors are one or two of memory. */
static TlNestAffine find_pattern(const TlNests *plan, TlValue *v)
{
    enum { LANES = TL_NEST_PERIOD };
    TlNestAffine a = tl_nest_pattern(plan, v);
    int64_t first;
    return a.is && tl_nest_pattern_span(&a, LANES, &first) <= 2 * LANES
               ? a
               : (TlNestAffine){.is = false};
}

/* Index tile `axis` of the view. */
static TlNestAffine find_affine(const TlNests *plan, TlValue *v, bool loads, const TlValue *view,
                                uint32_t axis)
{
    TlNestAffine a = {.is = true};
    int iotas = 0;
    TlValue *all = v;
    v = loads ? find_rows(&a, v) : v;
    const TlOp *border = loads && v->def && v->def->opcode == TL_OP_BORDER ? v->def : NULL;
    if (border) {
        TlValue *x = tl_in(border, 0);
        a.dtype = TL_I64;
        a.mirrored = true;
        a.way = (TlWay)tl_attr_int(border, TL_ATTR_WAY, 0);
        bool is = x->type->dtype == TL_I64 && x->type->rank == 1 && !a.behind &&
                  is_length(plan, without_splat(tl_in(border, 1)), view, axis, a.unit) &&
                  add_terms(&a, x, false, &iotas, 0) && iotas == 1 && is_moderate(plan, &a);
        return is ? a : (TlNestAffine){.is = false};
    }
    if (v->def && v->def->opcode == TL_OP_CAST && v->type->dtype == TL_I64 &&
        tl_in(v->def, 0)->type->dtype == TL_I32)
        all = v = tl_in(v->def, 0);
    a.dtype = v->type->dtype;
    if (loads && (a.dtype == TL_I32 || a.dtype == TL_I64)) {
        v = without_bound(&a, v);
        a.least_wins = a.least != NULL;
        v = without_bound(&a, v);
    }
    bool is = v->type->rank == 1 && (a.dtype == TL_I32 || a.dtype == TL_I64) &&
              add_terms(&a, v, false, &iotas, 0) && iotas == 1;
    bool is_clamped = a.least || a.most;
    is &= a.dtype == TL_I32 || !is_clamped || is_moderate(plan, &a);
    return is ? a : loads ? find_pattern(plan, all) : (TlNestAffine){.is = false};
}

/* Is v an operand of a product, as it is or converted or transposed? Products have ways of their
 * own for rows that an index tile selects. */
static bool feeds_dot(const TlValue *v, int depth)
{
    enum { MOST_DEPTH = 4 };
    for (const TlUse *u = v->uses; u; u = u->next) {
        TlOpcode o = u->user->opcode;
        bool passes = o == TL_OP_CAST || o == TL_OP_TRANS || o == TL_OP_CONVERT;
        if (o == TL_OP_DOT ||
            (passes && depth < MOST_DEPTH && feeds_dot(u->user->out[0], depth + 1)))
            return true;
    }
    return false;
}

/* Index tiles that are start, start + 1, ... become slices; those that are bounded, where that
 * changes nothing. */
static void find_slices(TlNests *plan, TlNestAccess *a)
{
    TlPlace *p = &a->place;
    bool may = (a->op->opcode == TL_OP_LOAD || a->op->opcode == TL_OP_STORE) && !p->pointwise &&
               !p->mask && !plan->check && (!a->loads || !feeds_dot(a->op->out[0], 0));
    TlAxis *axes = NULL;
    TlType accessed = tl_nest_accessed(a);
    int lane = accessed.rank ? tl_nest_form(&accessed).lane : -1;
    for (uint32_t i = 0; may && i < p->naxes; i++) {
        TlNestAffine *f = &a->axis[i].affine;
        if (p->axes[i].kind == TL_AXIS_TILE)
            *f = find_affine(plan, p->index[i].value, a->loads, p->base, i);
        f->is &= !f->mirrored || !p->other;
        bool in_vectors = tl_place_dim(p, i) == lane && stride_of(plan->fn, p->base, i) == 1;
        if ((f->period || f->unit) && !in_vectors)
            *f = (TlNestAffine){.is = false};
        f->fits = f->is && fits(plan, f, p->base, i);
        if (!f->is || f->unit || tl_nest_is_clamped(&a->axis[i]))
            continue;
        if (!axes) {
            axes = TL_NEW_ARRAY(plan->arena, TlAxis, p->naxes);
            memcpy(axes, p->axes, p->naxes * sizeof *axes);
        }
        axes[i] =
            (TlAxis){.kind = TL_AXIS_SLICE, .width = p->index[i].value->type->shape[0], .step = 1};
    }
    p->axes = axes ? axes : p->axes;
}

/* ---- what is known ---- */

/* Which positions of a slice are inside, or whether a scalar index is. */
static void find_interval(const TlFn *fn, TlNestAccess *a, uint32_t i)
{
    const TlAxis *axis = &a->place.axes[i];
    TlNestAxis *x = &a->axis[i];
    TlWideInt start;
    int64_t extent;
    if (!a->bounds) {
        x->may_be_below = false;
        x->is_known = true;
        x->lo = 0;
        x->hi = axis->width;
        return;
    }
    if (x->affine.is || !tl_const_int_value(a->place.index[i].value, &start) ||
        !tl_nest_extent(fn, a->place.base, i, &extent))
        return;
    x->is_known = true;
    if (axis->kind == TL_AXIS_SCALAR) {
        x->hi = start >= 0 && start < extent;
        return;
    }
    TlWideInt lo = start >= 0 ? 0 : (-start + axis->step - 1) / axis->step,
              hi = start >= extent ? 0 : (extent - start + axis->step - 1) / axis->step;
    x->lo = lo < axis->width ? (int64_t)lo : axis->width;
    x->hi = hi < axis->width ? (int64_t)hi : axis->width;
}

/* Does a border keep a scalar index inside of an axis that has elements? */
static bool is_kept_inside(const TlNests *plan, const TlValue *v, const TlValue *view,
                           uint32_t axis)
{
    TlWideInt n;
    const TlOp *op = tl_axis_plain(plan->axis, v)->def;
    if (op && op->opcode == TL_OP_BORDER)
        return is_length(plan, tl_in(op, 1), view, axis, 0);
    for (uint32_t i = 0; op && op->opcode == TL_OP_MIN && i < 2; i++) {
        const TlOp *last = tl_axis_plain(plan->axis, tl_in(op, i))->def;
        if (last && last->opcode == TL_OP_ADD && tl_const_int_value(tl_in(last, 1), &n) &&
            n == -1 && is_length(plan, tl_in(last, 0), view, axis, 0))
            return tl_axis_facts(plan->axis, tl_in(op, 1 - i))->lo >= 0;
    }
    return false;
}

static void find_axis(const TlNests *plan, TlNestAccess *a, uint32_t i)
{
    const TlAxis *axis = &a->place.axes[i];
    TlNestAxis *x = &a->axis[i];
    x->dim = tl_place_dim(&a->place, i);
    x->stride = stride_of(plan->fn, a->place.base, i);
    if (axis->kind == TL_AXIS_TILE)
        return;
    if (axis->kind == TL_AXIS_SLICE) {
        x->stride *= axis->step;
        a->has_interval &= !a->bounds || axis->step > 0;
        x->may_be_below = tl_axis_facts(plan->axis, a->place.index[i].value)->lo < 0;
    }
    x->fits = axis->kind == TL_AXIS_SCALAR && a->bounds &&
              is_kept_inside(plan, a->place.index[i].value, a->place.base, i);
    if (axis->kind == TL_AXIS_SCALAR || !a->bounds || axis->step > 0)
        find_interval(plan->fn, a, i);
}

/* Is an index tile of it one of another load, too? */
static bool shares_places(const TlNestAccess *a)
{
    for (uint32_t i = 0; a->loads && i < a->place.naxes; i++)
        for (const TlUse *u = a->place.axes[i].kind == TL_AXIS_TILE ? a->place.index[i].value->uses
                                                                    : NULL;
             u; u = u->next)
            if (u->user != a->op && u->user->opcode == TL_OP_LOAD && tl_op_place(u->user).axes)
                return true;
    return false;
}

static void find_access(TlNests *plan, TlOp *op)
{
    TlNestAccess *a = TL_NEW(plan->arena, TlNestAccess);
    *a = (TlNestAccess){.op = op, .place = tl_op_place(op), .loads = op->opcode == TL_OP_LOAD};
    a->param = tl_base_param(a->place.base);
    a->row = row_of(a->place.base);
    a->constant = a->loads && tl_is_constant_memory(a->place.base);
    a->bounds = !tl_attr_flag(op, TL_ATTR_UNCHECKED) || plan->check;
    a->asks = plan->check && !tl_is_view_of_launch(a->place.base);
    a->has_interval = a->place.axes != NULL;
    int bytes = tl_dtype_bytes(a->place.base->type->dtype);
    a->forks = !plan->m.masks && !(plan->m.gathers && bytes >= 4);
    a->shares_places = a->place.axes && shares_places(a);
    if (a->place.axes)
        find_slices(plan, a);
    for (uint32_t i = 0; a->place.axes && i < a->place.naxes; i++)
        find_axis(plan, a, i);
    tl_map_put_ptr(&plan->access, op, a);
}

void tl_nest_find_accesses(TlNests *plan)
{
    TL_ASSERT(plan->axis, "nothing is known of '%s'", plan->fn->name);
    for (TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_INSIDE || op->opcode == TL_OP_STORE ||
            (tl_op_info(op->opcode)->flags & F_ATOMIC))
            find_access(plan, op);
}

static bool is_contiguous(const TlNestAccess *a, int dim, bool inside)
{
    if (!a->place.axes)
        return false;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        const TlAxis *axis = &a->place.axes[i];
        bool in_lane = a->axis[i].dim == dim;
        if (axis->kind == TL_AXIS_TILE && a->place.pointwise)
            in_lane = dim < a->place.index[i].value->type->rank;
        const TlNestAffine *f = &a->axis[i].affine;
        bool is_slice =
            axis->kind == TL_AXIS_SLICE ? axis->step == 1 : inside && f->is && !f->period;
        if (in_lane && (!is_slice || a->axis[i].stride != 1))
            return false;
    }
    return true;
}

int64_t tl_nest_axis_width(const TlNestAccess *a, uint32_t i)
{
    bool is_tile = a->place.axes[i].kind == TL_AXIS_TILE;
    return is_tile ? a->place.index[i].value->type->shape[0] : a->place.axes[i].width;
}

bool tl_nest_is_contiguous(const TlNestAccess *a, int dim)
{
    return is_contiguous(a, dim, false);
}

bool tl_nest_is_contiguous_inside(const TlNestAccess *a, int dim)
{
    return is_contiguous(a, dim, true);
}

int tl_nest_stride(const TlNestAccess *a, int dim)
{
    int64_t stride = 1;
    if (!a->place.axes || !a->loads || a->place.mask || a->asks ||
        tl_dtype_bits(a->place.base->type->dtype) < 8)
        return 1;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        if (a->place.axes[i].kind == TL_AXIS_TILE)
            return 1;
        if (a->place.axes[i].kind == TL_AXIS_SLICE && a->axis[i].dim == dim)
            stride = a->axis[i].stride;
    }
    return stride > 1 && stride <= TL_NEST_STRIDE ? (int)stride : 1;
}

TlType tl_nest_accessed(const TlNestAccess *a)
{
    TlType t = {
        .kind = TL_TILE, .dtype = a->place.base->type->dtype, .rank = (uint8_t)a->place.rank};
    for (int d = 0; d < a->place.rank; d++)
        t.shape[d] = a->place.shape[d];
    return t;
}

/* Of an index that a cast makes wider, which keeps its number: what is cast. */
static const TlValue *without_cast(const TlValue *v)
{
    bool is = v->def && v->def->opcode == TL_OP_CAST;
    return is ? tl_in(v->def, 0) : v;
}

const TlValue *tl_nest_without_number(const TlValue *v, int64_t *number)
{
    TlWideInt n;
    *number = 0;
    v = without_cast(v);
    if (v->type->dtype != TL_I32 && v->type->dtype != TL_I64)
        return v;
    const TlOp *op = v->def;
    for (uint32_t i = 0; op && op->opcode == TL_OP_ADD && i < 2; i++)
        if (tl_const_int_value(tl_in(op, i), &n)) {
            *number = (int64_t)n;
            const TlValue *of = tl_in(op, 1 - i), *narrow = without_cast(of);
            return of->type->dtype == TL_I64 && narrow->type->dtype == TL_I32 ? narrow : of;
        }
    return v;
}

int64_t tl_nest_number(const TlNestAccess *a, int dim)
{
    uint64_t sum = 0; /* wraps, as distances do */
    int64_t n;
    TlWideInt all;
    for (uint32_t i = 0; a->place.axes && i < a->place.naxes; i++) {
        const TlAxis *axis = &a->place.axes[i];
        bool in_lanes = axis->kind == TL_AXIS_SLICE && a->axis[i].dim == dim;
        if (tl_const_int_value(a->place.index[i].value, &all))
            n = (int64_t)all;
        else
            tl_nest_without_number(a->place.index[i].value, &n);
        sum += (uint64_t)n * (uint64_t)(a->axis[i].stride / (in_lanes ? axis->step : 1));
    }
    return (int64_t)sum;
}

bool tl_nest_index_distance(const TlValue *a, const TlValue *b, int64_t *out)
{
    TlWideInt x, y;
    int64_t from, to;
    *out = 0;
    if (a == b)
        return true;
    if (tl_const_int_value(a, &x) && tl_const_int_value(b, &y)) {
        *out = (int64_t)(y - x);
        return true;
    }
    bool wide = a->type != b->type && a->type->rank == 0 && b->type->rank == 0;
    if ((a->type != b->type && !wide) ||
        tl_nest_without_number(a, &from) != tl_nest_without_number(b, &to))
        return false;
    *out = to - from;
    return true;
}

bool tl_nest_distance(const TlNest *n, const TlNestAccess *a, const TlNestAccess *b, int dim,
                      int64_t *out)
{
    const TlPlace *p = &a->place, *q = &b->place;
    *out = 0;
    if (!p->axes || !q->axes || p->base != q->base || p->naxes != q->naxes || p->mask || q->mask ||
        !a->loads || !b->loads)
        return false;
    for (uint32_t i = 0; i < p->naxes; i++) {
        int64_t by;
        bool in_lanes = p->axes[i].kind == TL_AXIS_SLICE && a->axis[i].dim == dim;
        if (p->axes[i].kind != q->axes[i].kind || p->axes[i].kind == TL_AXIS_TILE ||
            p->axes[i].width != q->axes[i].width || p->axes[i].step != q->axes[i].step ||
            a->axis[i].dim != b->axis[i].dim || a->axis[i].affine.is || b->axis[i].affine.is ||
            !tl_nest_index_distance(p->index[i].value, q->index[i].value, &by))
            return false;
        int64_t stride = a->axis[i].stride / (in_lanes ? p->axes[i].step : 1);
        if (by && (stride == 0 || p->axes[i].step < 0 || (n->zero_rows && !in_lanes)))
            return false;
        *out += by * stride;
    }
    return true;
}

/* ---- bytes that make a word ---- */

/* The load whose bytes v widens to words; NULL: v is something else. */
static TlOp *widened_byte(const TlNests *plan, const TlValue *v)
{
    const TlOp *cast = v->def;
    TlOp *load = cast && cast->opcode == TL_OP_CAST ? tl_in(cast, 0)->def : NULL;
    if (!load || load->opcode != TL_OP_LOAD || load->out[0]->type->dtype != TL_U8 ||
        load->out[0]->type->rank == 0)
        return NULL;
    const TlNestAccess *a = tl_map_get_ptr(&plan->access, load);
    bool plain = a->place.axes && !a->place.mask && !a->place.other && !a->asks && a->has_interval;
    return plain && plan->place[load->out[0]->id].kind == TL_NEST_VIRTUAL ? load : NULL;
}

/* Does b load the byte behind each of those that a loads? All are inside if those of a are. */
static bool lies_behind(const TlNests *plan, const TlNestAccess *a, const TlNestAccess *b)
{
    const TlPlace *p = &a->place, *q = &b->place;
    uint32_t last = p->naxes - 1;
    TlWideInt at, next;
    if (p->base != q->base || p->naxes != q->naxes || !tl_nest_is_dense(plan->fn, p, (int)last) ||
        !b->axis[last].is_known || b->axis[last].hi != 1 ||
        !tl_const_int_value(p->index[last].value, &at) ||
        !tl_const_int_value(q->index[last].value, &next) || next != at + 1)
        return false;
    for (uint32_t i = 0; i <= last; i++) {
        const TlAxis *x = &p->axes[i], *y = &q->axes[i];
        if (x->kind != y->kind || x->kind == TL_AXIS_TILE || x->width != y->width ||
            x->step != y->step || (i < last && p->index[i].value != q->index[i].value))
            return false;
    }
    return p->axes[last].kind == TL_AXIS_SCALAR;
}

TlOp *tl_nest_low_byte(const TlNests *plan, const TlOp *op)
{
    enum { BITS = 8 };
    uint64_t by;
    if (op->opcode != TL_OP_OR || op->out[0]->type->dtype != TL_U16)
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const TlOp *shift = tl_in(op, 1 - i)->def;
        if (!shift || shift->opcode != TL_OP_SHL || !tl_value_is_const(tl_in(shift, 1), &by) ||
            by != BITS)
            continue;
        TlOp *low = widened_byte(plan, tl_in(op, i)),
             *high = widened_byte(plan, tl_in(shift, 0));
        if (low && high && lies_behind(plan, tl_map_get_ptr(&plan->access, low),
                                       tl_map_get_ptr(&plan->access, high)))
            return low;
    }
    return NULL;
}

/* Do both take elements of the same rows, known to be inside of those? How much farther does b's
 * lie? */
static bool is_same_row(const TlNestAccess *a, const TlNestAccess *b, int64_t *out)
{
    const TlPlace *p = &a->place, *q = &b->place;
    *out = 0;
    if (!p->axes || !q->axes || p->base != q->base || p->naxes != q->naxes || p->mask || q->mask ||
        p->pointwise != q->pointwise || !a->loads || !b->loads)
        return false;
    for (uint32_t i = 0; i < p->naxes; i++) {
        int64_t by;
        bool is_same = p->index[i].value == q->index[i].value,
             is_scalar = p->axes[i].kind == TL_AXIS_SCALAR;
        if (p->axes[i].kind != q->axes[i].kind || p->axes[i].kind == TL_AXIS_SLICE ||
            (!is_same && !is_scalar) ||
            !tl_nest_index_distance(p->index[i].value, q->index[i].value, &by) ||
            (by && (a->axis[i].stride != 1 || !a->axis[i].is_known || a->axis[i].hi == 0 ||
                    !b->axis[i].is_known || b->axis[i].hi == 0)))
            return false;
        *out += by;
    }
    return true;
}

TlNestFields tl_nest_fields(const TlNests *plan, const TlNestAccess *a)
{
    int64_t by, least = 0, most = 0;
    const TlUse *u = NULL;
    for (uint32_t i = 0; a->place.axes && i < a->place.naxes; i++)
        if (a->place.axes[i].kind == TL_AXIS_TILE)
            u = a->place.index[i].value->uses;
    for (; u; u = u->next) {
        const TlNestAccess *b = tl_map_get_ptr(&plan->access, u->user);
        if (b && b->op->block == a->op->block && is_same_row(a, b, &by) && by > -TL_NEST_FIELDS &&
            by < TL_NEST_FIELDS) {
            least = by < least ? by : least;
            most = by > most ? by : most;
        }
    }
    bool are = most - least < TL_NEST_FIELDS && tl_dtype_bytes(a->place.base->type->dtype) == 4;
    return are ? (TlNestFields){(int)-least, (int)(most - least + 1)} : (TlNestFields){0, 1};
}
