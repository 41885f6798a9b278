/* Stores of neighbouring channels that follow each other become one.
 *
 *     y[i +: B, 0] = r;
 *     y[i +: B, 1] = g;      y is [N, 3]: elements of each store are 3 apart, and the three
 *     y[i +: B, 2] = b;      together lie side by side
 *
 * The last one stores all: vectors of each value, interleaved. The values are computed in its nest,
 * and what several of them need once. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum { MOST_JOINED = 4 };

/* The axis along which b's element is right behind a's, all else being equal; -1: there is none. */
static int channel_axis(const TlNestAccess *a, const TlNestAccess *b)
{
    const TlPlace *p = &a->place, *q = &b->place;
    int axis = -1;
    if (!p->axes || !q->axes || p->base != q->base || p->naxes != q->naxes || p->mask || q->mask ||
        p->value->type != q->value->type || p->value->type->rank == 0)
        return -1;
    for (uint32_t i = 0; i < p->naxes; i++) {
        if (p->axes[i].kind != q->axes[i].kind || p->axes[i].kind == TL_AXIS_TILE)
            return -1;
        if (p->index[i].value == q->index[i].value && p->axes[i].width == q->axes[i].width &&
            p->axes[i].step == q->axes[i].step)
            continue;
        if (axis >= 0 || p->axes[i].kind != TL_AXIS_SCALAR)
            return -1;
        axis = (int)i;
    }
    TlWideInt from, to;
    bool follows = axis >= 0 && tl_const_int_value(p->index[axis].value, &from) &&
                   tl_const_int_value(q->index[axis].value, &to) && to == from + 1;
    return follows && a->axis[axis].stride == 1 ? axis : -1;
}

static bool is_inside(const TlNestAccess *a, int axis)
{
    return a->axis[axis].is_known && a->axis[axis].hi > 0;
}

/* May what stands between two stores read what they write, or write? */
static bool is_in_the_way(const TlNests *plan, const TlOp *op, const TlNestAccess *store)
{
    uint32_t effects = tl_op_effects(op);
    if (op->nregions || effects & (F_WRITE | F_ATOMIC))
        return true;
    const TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
    return effects & F_READ &&
           (!a || tl_nest_may_alias(plan->fn, a->place.base, store->place.base));
}

/* The store behind `first` that continues it; NULL: there is none. */
static TlNestAccess *next_store(const TlNests *plan, const TlNestAccess *first)
{
    for (const TlOp *op = first->op->next; op; op = op->next) {
        if (op->opcode == TL_OP_STORE)
            return tl_map_get_ptr(&plan->access, op);
        if (is_in_the_way(plan, op, first))
            return NULL;
    }
    return NULL;
}

/* The stride of a store's elements along the lanes; 0: not known. */
static int64_t lane_stride(const TlNestAccess *a)
{
    int lane = tl_nest_form(a->place.value->type).lane;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind == TL_AXIS_SLICE && a->axis[i].dim == lane)
            return a->axis[i].stride;
    return 0;
}

static void join_from(TlNests *plan, TlNestAccess *first)
{
    TlNestAccess *all[MOST_JOINED] = {first};
    int64_t n = first->place.axes && first->place.value->type->rank ? lane_stride(first) : 0;
    bool may = n >= 2 && n <= MOST_JOINED && first->has_interval && first->bounds && !first->asks &&
               tl_dtype_bits(first->place.base->type->dtype) >= 8;
    for (int k = 1; may && k < n; k++) {
        all[k] = next_store(plan, all[k - 1]);
        int axis = all[k] && all[k]->has_interval && all[k]->bounds
                       ? channel_axis(all[k - 1], all[k])
                       : -1;
        may = axis >= 0 && is_inside(all[k], axis) && (k > 1 || is_inside(first, axis));
    }
    if (!may)
        return;
    TlNestJoined *j = TL_NEW(plan->arena, TlNestJoined);
    j->n = (int)n;
    for (int k = 0; k < n; k++) {
        j->store[k] = all[k];
        tl_map_put_ptr(&plan->joined, all[k]->op, j);
    }
}

void tl_nest_join_stores(TlNests *plan)
{
    if (plan->check)
        return;
    for (TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_STORE && !tl_nest_joined(plan, op))
            join_from(plan, tl_map_get_ptr(&plan->access, op));
}

const TlNestJoined *tl_nest_joined(const TlNests *plan, const TlOp *store)
{
    return tl_map_get_ptr(&plan->joined, store);
}
