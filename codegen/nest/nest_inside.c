/* Where a nest needs no tests: the positions at which everything that it loads and stores is
 * inside.
 *
 * Masks cost more than the work of many kernels, and most tiles are inside as a whole. So a nest
 * is split in two along its lane dimension: from 0 to an end that is computed before it, accesses
 * are plain; from there on, they are tested. A nest that fills or stores may begin to be inside
 * behind the first vector: what is before that is tested, too. Along the other dimensions all loads
 * must be inside as a whole; otherwise the end is 0. A stencil's taps, of which some row is often
 * outside, read zeros for that one. Bounds of an index tile keep it inside there,
 * and along the lanes they are tests, as those of the array. A nest that stores visits only
 * positions at which its store is inside, starting with the first one along the lanes. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"

enum { ALL = INT32_MAX };   /* as an end: everything is inside */

/* n->end, until tl_nest_split. INT64_MAX: nothing has been asked; -1: it is known in the run. */
static void narrow(TlNest *n, bool is_known, int64_t by)
{
    if (n->end < 0 || !is_known)
        n->end = -1;
    else if (by < n->end)
        n->end = by;
}

static void add_slice(TlNest *n, const TlNestAccess *a, uint32_t i, int lane)
{
    TlNestAxis x = a->axis[i];
    int32_t width = a->place.axes[i].width;
    if (n->boxed == a && n->boxed_axes >> i & 1)
        x = (TlNestAxis){.dim = x.dim, .is_known = true, .hi = width};
    if (x.dim == lane)
        n->outside = true;
    bool inside = x.lo == 0 && (x.dim == lane || x.hi == width);
    narrow(n, x.is_known, !inside ? 0 : x.dim == lane ? x.hi : ALL);
}

static void add_slices(TlNests *plan, TlNest *n, TlNestAccess *a, int lane)
{
    n->differs |= !a->has_interval || a->asks || !a->bounds;
    if (!a->has_interval || a->asks)
        return;
    tl_vec_push(plan->arena, &n->asks, (TlNestAsk){a, lane});
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

static void add_value(TlNests *plan, TlNest *n, TlValue *v, int lane, TlMap *seen);

static void add_access(TlNests *plan, TlNest *n, TlNestAccess *a, int lane, TlMap *seen)
{
    TL_ASSERT(a, "an access of which nothing is known");
    const TlPlace *p = &a->place;
    add_slices(plan, n, a, lane);
    n->differs |= !p->axes;
    if (!p->axes)
        add_value(plan, n, tl_in(a->op, 0), lane, seen);
    for (uint32_t i = 0; p->axes && i < p->naxes; i++)
        if (p->axes[i].kind == TL_AXIS_TILE) {
            n->differs = true;
            add_value(plan, n, p->index[i].value, TL_NEST_ANY_LANES, seen);
        }
    if (p->mask)
        add_value(plan, n, p->mask, lane, seen);
    if (p->other)
        add_value(plan, n, p->other, lane, seen);
}

/* Adds what the op's result is computed from. `lane`: the dimension of the result along which the
 * nest's lanes are. */
static void add_operands(TlNests *plan, TlNest *n, const TlOp *op, int lane, TlMap *seen)
{
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    const TlType *from = op->nin ? tl_in(op, 0)->type : NULL;
    if (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_INSIDE) {
        add_access(plan, n, tl_map_get_ptr(&plan->access, op), lane, seen);
        return;
    }
    int64_t at;
    TlValue *picked = tl_picked_from(op, &at);
    if (picked) {
        add_value(plan, n, picked, lane < 0 ? lane : lane + (axis <= lane), seen);
        return;
    }
    TlNestQuads quads;
    if (tl_nest_quads(plan, op, &quads)) { /* four bytes for each lane */
        n->differs |= lane >= 0;
        for (uint32_t i = 0; i < 2; i++)
            add_value(plan, n, quads.factor[i], TL_NEST_ANY_LANES, seen);
        return;
    }
    bool same = true; /* the operand has the lanes, too, or is the same in all of them */
    TlNestWay way = plan->place[op->out[0]->id].way;
    if (op->opcode == TL_OP_BROADCAST)
        lane = lane < 0 || (from->rank && from->shape[lane] != 1) ? lane : TL_NEST_NO_LANES;
    else if (op->opcode == TL_OP_EXPAND)
        lane = lane == axis ? TL_NEST_NO_LANES : lane > axis ? lane - 1 : lane;
    else if (op->opcode == TL_OP_TRANS)
        lane = lane < 0 ? lane : (int)tl_attr(op, TL_ATTR_PERM)->u.ints[lane];
    else if (op->opcode != TL_OP_CONVERT)
        same = tl_op_info(op->opcode)->flags & F_ELEM;
    n->differs |= !same && op->opcode != TL_OP_CONST && lane >= 0;
    same |= way == TL_NEST_TAKES_ROWS && lane == tl_nest_form(op->out[0]->type).lane;
    for (uint32_t i = 0; i < (tl_nest_takes_window(way) ? 1 : op->nin); i++)
        add_value(plan, n, tl_in(op, i), same ? lane : TL_NEST_ANY_LANES, seen);
}

static void add_value(TlNests *plan, TlNest *n, TlValue *v, int lane, TlMap *seen)
{
    uint64_t key = (uint64_t)v->id * (TL_MAX_RANK + 2) + (uint64_t)(lane - TL_NEST_ANY_LANES);
    n->differs |= lane >= 0 && v->type->rank && plan->place[v->id].kind == TL_NEST_HOME;
    if (v->type->kind != TL_TILE || v->type->rank == 0 || !v->def ||
        plan->place[v->id].kind != TL_NEST_VIRTUAL || tl_map_get(seen, key, NULL))
        return;
    tl_map_put(seen, key, 1);
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
            has_rows |= a->axis[k].dim != n->asks.data[i].lane && !a->axis[k].is_known;
        if (!has_rows || n->asks.data[i].lane < 0 || !tl_nest_has_zeros(a))
            continue;
        param = taps ? param : a->param;
        taps += a->param == param;
    }
    return taps >= TAPS && !plan->check && (n->kind == TL_NEST_FILL || n->kind == TL_NEST_STORE);
}

void tl_nest_ask_access(TlNests *plan, TlNest *n, TlNestAccess *a, int lane)
{
    add_access(plan, n, a, lane, &n->seen);
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
    add_access(plan, n, a, lane, &n->seen);
}

void tl_nest_ask_value(TlNests *plan, TlNest *n, TlValue *v, int lane, bool own)
{
    if (own && v->def && n->nvalues <= TL_NEST_MOST_VALUES)
        add_operands(plan, n, v->def, lane, &n->seen);
    else
        add_value(plan, n, v, lane, &n->seen);
}

void tl_nest_split(TlNests *plan, TlNest *n, int64_t extent, int step)
{
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
    bool reduces = n->kind != TL_NEST_FILL && n->kind != TL_NEST_STORE;
    for (uint32_t i = 0; i < n->asks.len && !reduces && n->end < 0; i++)
        n->begins |= may_begin_later(&n->asks.data[i]);
    bool is_one = n->width > 1 && n->width == n->form.padded[n->form.lane] && n->end < 0;
    n->split = is_one ? TL_NEST_ONE : TL_NEST_SPLIT;
    n->begins &= !is_one;
}
