/* Where a nest needs no tests: the positions at which everything that it loads and stores is
 * inside.
 *
 * Masks cost more than the work of many kernels, and most tiles are inside as a whole. So a nest
 * is split in two along its lane dimension: from 0 to an end that is computed before it, accesses
 * are plain; from there on, they are tested. A nest that fills or stores may begin to be inside
 * behind the first vector: what is before that is tested, too. Along the other dimensions all loads
 * of a row must be inside; otherwise its end is 0. Where a load has other dimensions than the nest,
 * that is asked once for all rows. A stencil's taps, of which some row is often outside, read zeros
 * for that one, where rows are long or few. Bounds of an index tile keep it inside there,
 * and along the lanes they are tests, as those of the array. A nest that stores visits only
 * positions at which its store is inside, starting with the first one along the lanes. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"

enum { ALL = INT32_MAX };   /* as an end: everything is inside */

/* The dimension of a value that the nest's lanes are along, or what else is needed of it.
 * At lane l of the nest, its positions from times * l on are needed, so many; below 0, the one at
 * l / -times. */
typedef struct Lane {
    int dim, times;
    bool same; /* along the other dimensions, the nest's positions are needed */
} Lane;
static const Lane SAME = {TL_NEST_NO_LANES, 1, false}, ANY = {TL_NEST_ANY_LANES, 1, false};
enum { MOST_TIMES = TL_NEST_STRIDE };

/* n->end, until tl_nest_split. INT64_MAX: nothing has been asked; -1: it is known in the run. */
static void narrow(TlNest *n, bool is_known, int64_t by)
{
    if (n->end < 0 || !is_known)
        n->end = -1;
    else if (by < n->end)
        n->end = by;
}

/* Position x of an access, as a lane of the nest. */
static int64_t scaled(int64_t x, int times)
{
    TL_ASSERT(times, "lanes that are nowhere");
    return times < 0 ? x * -times : x / times;
}

bool tl_nest_in_box(const TlNest *n, const TlNestAsk *ask, uint32_t i)
{
    const TlNestAccess *a = ask->access;
    int dim = a->axis[i].dim;
    if (n->boxed == a)
        return n->boxed_axes >> i & 1;
    for (uint32_t k = 0; ask->same && n->boxed_axes >> k; k++)
        if (n->boxed_axes >> k & 1 && dim >= 0 && n->boxed->axis[k].dim == dim)
            return tl_nest_same_slice(n->op->block->fn, &a->place, dim, &n->boxed->place, dim);
    return false;
}

static void add_slice(TlNest *n, TlNestAccess *a, uint32_t i, Lane lane)
{
    TlNestAxis x = a->axis[i];
    int32_t width = a->place.axes[i].width;
    if (tl_nest_in_box(n, &(TlNestAsk){a, lane.dim, lane.times, lane.same}, i))
        x = (TlNestAxis){.dim = x.dim, .is_known = true, .hi = width};
    bool in_lanes = x.dim == lane.dim;
    if (in_lanes)
        n->outside = true;
    bool inside = x.lo == 0 && (in_lanes || x.hi == width);
    narrow(n, x.is_known,
           !inside    ? 0
           : in_lanes ? scaled(x.hi, lane.times)
                      : ALL);
}

static void add_slices(TlNests *plan, TlNest *n, TlNestAccess *a, Lane lane)
{
    n->differs |= !a->has_interval || a->asks || !a->bounds;
    n->unasked |= !a->has_interval || a->asks;
    if (!a->has_interval || a->asks)
        return;
    tl_vec_push(plan->arena, &n->asks, (TlNestAsk){a, lane.dim, lane.times, lane.same});
    bool scalars = false, are_known = true, inside = true;
    for (uint32_t i = 0; i < a->place.naxes && a->bounds; i++) {
        if (a->place.axes[i].kind != TL_AXIS_SCALAR)
            continue;
        scalars = true;
        are_known &= a->axis[i].is_known;
        inside &= a->axis[i].hi > 0;
    }
    if (scalars)
        narrow(n, are_known, inside ? ALL : 0);
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind == TL_AXIS_SLICE)
            add_slice(n, a, i, lane);
        else if (a->axis[i].affine.is)
            narrow(n, false, 0);
}

static void add_value(TlNests *plan, TlNest *n, TlValue *v, Lane lane, TlMap *seen);

static void add_access(TlNests *plan, TlNest *n, TlNestAccess *a, Lane lane, TlMap *seen)
{
    TL_ASSERT(a, "an access of which nothing is known");
    const TlPlace *p = &a->place;
    add_slices(plan, n, a, lane);
    n->differs |= !p->axes;
    if (!p->axes)
        add_value(plan, n, tl_in(a->op, 0), lane, seen);
    for (uint32_t i = 0; p->axes && i < p->naxes; i++)
        if (p->axes[i].kind == TL_AXIS_TILE) {
            int64_t work = n->work;
            uint32_t values = n->nvalues;
            n->differs = true;
            add_value(plan, n, p->index[i].value, ANY, seen);
            if (a->axis[i].affine.is) { /* computed at bounds only */
                n->work = work;
                n->nvalues = values;
            }
        }
    if (p->mask)
        add_value(plan, n, p->mask, lane, seen);
    if (p->other)
        add_value(plan, n, p->other, lane, seen);
}

static int64_t elems_before(const TlType *type, int d)
{
    int64_t n = 1;
    for (int i = 0; i < d; i++)
        n *= type->shape[i];
    return n;
}

/* Of a reshape's operand: what follows as many elements, along which each position is several of
 * the result's, or several are one. */
static Lane lane_under_reshape(const TlOp *op, Lane lane)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    if (lane.dim < 0 || from->ptr || !from->rank)
        return ANY;
    int64_t before = elems_before(to, lane.dim), extent = to->shape[lane.dim];
    int d = 0;
    while (d < from->rank && (elems_before(from, d) < before || from->shape[d] == 1))
        d++;
    if (d == from->rank || elems_before(from, d) != before || extent == 1)
        return ANY;
    int64_t other = from->shape[d], times = other >= extent ? other / extent : -(extent / other);
    bool divides = other % extent == 0 || extent % other == 0,
         fits = times <= MOST_TIMES && times >= -MOST_TIMES;
    if (!divides || !fits || (lane.times != 1 && times != 1 && times != -1))
        return ANY;
    return (Lane){d, times == 1 || times == -1 ? lane.times : (int)times, false};
}

/* Of the operand: the dimension along which the nest's lanes are. */
static Lane lane_under(const TlOp *op, Lane lane)
{
    if (op->opcode == TL_OP_RESHAPE)
        return lane_under_reshape(op, lane);
    if (lane.dim < 0)
        return lane;
    if (op->opcode == TL_OP_TRANS)
        return (Lane){(int)tl_attr(op, TL_ATTR_PERM)->u.ints[lane.dim], lane.times, false};
    if (op->opcode != TL_OP_BROADCAST && op->opcode != TL_OP_EXPAND)
        return lane;
    int d = tl_nest_axis_under(op, lane.dim);
    return d < 0 ? SAME : (Lane){d, lane.times, false};
}

/* Adds what the op's result is computed from. `lane`: the dimension of the result along which the
 * nest's lanes are. */
static void add_operands(TlNests *plan, TlNest *n, const TlOp *op, Lane lane, TlMap *seen)
{
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_INSIDE) {
        add_access(plan, n, tl_map_get_ptr(&plan->access, op), lane, seen);
        return;
    }
    int64_t at;
    TlValue *picked = tl_picked_from(op, &at);
    if (picked) {
        Lane of_row = {lane.dim + (axis <= lane.dim), lane.times, false};
        add_value(plan, n, picked, lane.dim < 0 ? lane : of_row, seen);
        return;
    }
    TlNestQuads quads;
    if (tl_nest_quads(plan, op, &quads)) { /* four bytes for each lane */
        n->differs |= lane.dim >= 0;
        for (uint32_t i = 0; i < 2; i++)
            add_value(plan, n, quads.factor[i], ANY, seen);
        return;
    }
    TlNestWay way = plan->place[op->out[0]->id].way;
    bool renames = op->opcode == TL_OP_BROADCAST || op->opcode == TL_OP_EXPAND ||
                   op->opcode == TL_OP_TRANS || op->opcode == TL_OP_CONVERT;
    /* the operand has the lanes, too, or is the same in all of them */
    bool same = renames || tl_op_info(op->opcode)->flags & F_ELEM;
    n->differs |= !same && op->opcode != TL_OP_CONST && lane.dim >= 0;
    same |= op->opcode == TL_OP_RESHAPE ||
            (way == TL_NEST_TAKES_ROWS && lane.dim == tl_nest_form(op->out[0]->type).lane);
    Lane under = same && op->nin ? lane_under(op, lane) : ANY;
    for (uint32_t i = 0; i < (tl_nest_takes_window(way) ? 1 : op->nin); i++)
        add_value(plan, n, tl_in(op, i), under, seen);
}

/* Of a vector, where a sum is 1; a quotient by a number that is known is a product and a shift. */
static int64_t work_of(const TlOp *op)
{
    enum { BY_NUMBER = 3 };
    uint64_t bits;
    if (!(tl_op_info(op->opcode)->flags & F_ELEM))
        return 1;
    int work = tl_elem_work(op->opcode)->cpu;
    bool by_number = (op->opcode == TL_OP_DIV || op->opcode == TL_OP_REM) &&
                     tl_value_is_const(tl_in(op, 1), &bits);
    return by_number && work > BY_NUMBER ? BY_NUMBER : work > 1 ? work : 1;
}

static void add_value(TlNests *plan, TlNest *n, TlValue *v, Lane lane, TlMap *seen)
{
    uint64_t key = ((uint64_t)v->id * (TL_MAX_RANK + 2) +
                    (uint64_t)(lane.dim - TL_NEST_ANY_LANES)) *
                       (2 * MOST_TIMES + 1) +
                   (uint64_t)(lane.times + MOST_TIMES);
    key = 2 * key + lane.same;
    n->differs |= lane.dim >= 0 && v->type->rank && plan->place[v->id].kind == TL_NEST_HOME;
    if (v->type->kind != TL_TILE || v->type->rank == 0 || !v->def ||
        plan->place[v->id].kind != TL_NEST_VIRTUAL || tl_map_get(seen, key, NULL))
        return;
    tl_map_put(seen, key, 1);
    n->work += work_of(v->def);
    if (++n->nvalues <= TL_NEST_MOST_VALUES)
        add_operands(plan, n, v->def, lane, seen);
}

/* Is v some place, and a number back from there? */
static bool is_back(const TlValue *v)
{
    TlWideInt n;
    while (v->def && v->def->opcode == TL_OP_CAST)
        v = tl_in(v->def, 0);
    const TlOp *op = v->def;
    for (uint32_t i = 0; op && op->opcode == TL_OP_ADD && i < 2; i++)
        if (tl_const_int_value(tl_in(op, i), &n) && n < 0)
            return true;
    return op && op->opcode == TL_OP_SUB;
}

/* May the first element of a load along the lanes well be outside, and others inside? */
static bool may_begin_later(const TlNestAsk *ask)
{
    const TlNestAccess *a = ask->access;
    for (uint32_t i = 0; a->loads && i < a->place.naxes; i++)
        if (a->axis[i].dim == ask->lane &&
            (tl_nest_is_clamped(&a->axis[i]) ||
             (a->axis[i].may_be_below && is_back(a->place.index[i].value))))
            return true;
    return false;
}

/* Is it a stencil, of which some taps are often outside by a row? It loads several rows of an
 * array. */
static bool has_taps(const TlNests *plan, const TlNest *n)
{
    enum { TAPS = 4, STEPS = 4 }; /* rows of fewer steps, of several, ask too much for each */
    int taps = 0, param = -1;
    int64_t row = n->form.rank ? n->form.extent[n->form.lane] : 1;
    if (row * STEPS < n->form.elems && row < STEPS * (int64_t)n->width)
        return false;
    for (uint32_t i = 0; i < n->asks.len; i++) {
        const TlNestAccess *a = n->asks.data[i].access;
        bool has_rows = false;
        for (uint32_t k = 0; k < a->place.naxes; k++)
            has_rows |=
                a->axis[k].dim != n->asks.data[i].lane && !a->axis[k].is_known && !a->axis[k].fits;
        int lane = n->asks.data[i].lane;
        if (!has_rows || lane < 0 || !tl_nest_has_zeros(a) ||
            (!tl_nest_is_contiguous_inside(a, lane) && tl_nest_stride(a, lane) == 1 &&
             !tl_nest_pattern_along(a, lane)))
            continue;
        param = taps ? param : a->param;
        taps += a->param == param;
    }
    return taps >= TAPS && !plan->check && (n->kind == TL_NEST_FILL || n->kind == TL_NEST_STORE);
}

/* Are rows that may be outside of few loads, each said to be so by scalars alone? Then code of its
 * own for all of them inside is short, and asked for once. */
static bool may_fork_rows(const TlNest *n)
{
    enum { MOST_VALUES = 64, LEAST_VECTORS = 4 };
    bool alone = n->form.elems == n->form.padded[n->form.lane];
    for (uint32_t i = 0; alone && i < n->asks.len; i++) {
        const TlNestAccess *a = n->asks.data[i].access;
        for (uint32_t k = 0; tl_nest_has_zeros(a) && k < a->place.naxes; k++)
            alone &=
                a->place.axes[k].kind == TL_AXIS_SCALAR || a->axis[k].dim == n->asks.data[i].lane;
    }
    return alone && n->nvalues <= MOST_VALUES && n->form.elems >= LEAST_VECTORS * (int64_t)n->width;
}

bool tl_nest_asks_row(const TlNest *n, const TlNestAsk *ask, uint32_t i)
{
    TL_ASSERT(i < ask->access->place.naxes, "axis %u of %u", i, ask->access->place.naxes);
    int dim = ask->access->axis[i].dim;
    return ask->same && ask->access->place.axes[i].kind == TL_AXIS_SLICE && dim >= 0 &&
           dim != ask->lane && !tl_nest_in_box(n, ask, i);
}

static Lane own_lanes(const TlNest *n, int lane)
{
    return (Lane){lane, 1, n->form.rank > 1 && lane == n->form.lane};
}

void tl_nest_ask_access(TlNests *plan, TlNest *n, TlNestAccess *a, int lane)
{
    add_access(plan, n, a, own_lanes(n, lane), &n->seen);
}

void tl_nest_ask_store(TlNests *plan, TlNest *n, TlNestAccess *a, int lane)
{
    TL_ASSERT(a && !n->store && a->op->opcode == TL_OP_STORE, "a nest has one store");
    n->store = n->boxed = a;
    bool skips = a->has_interval && !a->asks && !tl_attr_flag(a->op, TL_ATTR_UNCHECKED);
    for (uint32_t i = 0; skips && i < a->place.naxes; i++) {
        const TlAxis *axis = &a->place.axes[i];
        if (axis->kind != TL_AXIS_SLICE)
            continue;
        if (a->axis[i].dim == lane)
            n->last_axis = (int)i;
        else if (axis->width > 1)
            n->boxed_axes |= 1u << i;
    }
    add_access(plan, n, a, own_lanes(n, lane), &n->seen);
}

void tl_nest_ask_value(TlNests *plan, TlNest *n, TlValue *v, int lane, bool own)
{
    n->work += own && v->def ? work_of(v->def) : 0;
    if (own && v->def && n->nvalues <= TL_NEST_MOST_VALUES)
        add_operands(plan, n, v->def, own_lanes(n, lane), &n->seen);
    else
        add_value(plan, n, v, own_lanes(n, lane), &n->seen);
}

/* Are there rows of which some may have all that they load inside, and others not? */
static bool may_differ_by_row(const TlNest *n)
{
    if ((n->kind != TL_NEST_FILL && n->kind != TL_NEST_STORE) || n->end >= 0 || n->zero_rows)
        return false;
    for (uint32_t i = 0; i < n->asks.len; i++) {
        const TlNestAsk *ask = &n->asks.data[i];
        for (uint32_t k = 0; ask->same && k < ask->access->place.naxes; k++)
            if (tl_nest_asks_row(n, ask, k) && !ask->access->axis[k].is_known &&
                ask->access->place.axes[k].width > 1)
                return true;
    }
    return false;
}

void tl_nest_split(TlNests *plan, TlNest *n, int64_t extent, int step)
{
    enum { FEW = 8 }; /* vectors */
    TL_ASSERT(step > 0 && (step & (step - 1)) == 0, "%d lanes", step);
    bool has_end = n->end != INT64_MAX && n->nvalues <= TL_NEST_MOST_VALUES;
    n->unsplit = plan->check                        ? "all is checked"
                 : n->nvalues > TL_NEST_MOST_VALUES ? "too much code for two copies"
                                                    : NULL;
    n->tested = tl_nest_tested_width(plan, n->width);
    if (!has_end || n->form.rank == 0) {
        n->split = n->asks.len ? TL_NEST_TESTED : TL_NEST_PLAIN;
        n->end = 0;
        if (n->asks.len)
            n->width = n->tested;
        else
            n->tested = n->width;
        return;
    }
    if (n->end >= 0)
        n->end = (n->end < extent ? n->end : extent) & -(int64_t)step;
    n->zero_rows = n->end < 0 && has_taps(plan, n);
    n->forks_rows = n->zero_rows && may_fork_rows(n);
    n->by_row = may_differ_by_row(n);
    bool reduces = n->kind != TL_NEST_FILL && n->kind != TL_NEST_STORE;
    for (uint32_t i = 0; i < n->asks.len && !reduces && n->end < 0; i++)
        n->begins |= may_begin_later(&n->asks.data[i]);
    n->tested = tl_nest_wide_tests(plan, n);
    if (n->begins && n->width > n->tested && extent < FEW * n->width)
        n->width = n->tested; /* else much of a row comes before its first whole vector */
    bool is_one = n->width > 1 && n->width == n->form.padded[n->form.lane] && n->end < 0;
    n->split = is_one ? TL_NEST_ONE : TL_NEST_SPLIT;
    n->begins &= !is_one;
}
