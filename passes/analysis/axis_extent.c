/* Which numbers are extents of views (axis_info.h): `bounds` uses this to prove accesses inside,
 * `pipeline` to prove them outside. */
#include "passes/analysis/axis_impl.h"
#include "passes/analysis/facts.h"

const TlValue *tl_axis_plain(const TlAxisInfo *a, const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_CAST && tl_is_scalar(v->type)) {
        const TlValue *from = tl_in(v->def, 0);
        int64_t lo, hi;
        if (!tl_axis_has_numbers(from->type) || !tl_axis_has_numbers(v->type))
            break;
        const TlAxisFacts *f = tl_axis_facts(a, from);
        tl_axis_type_range(v->type->dtype, &lo, &hi);
        bool unsure = from->type->dtype == TL_U64 || v->type->dtype == TL_U64;
        if (f->lo < (unsure ? 0 : lo) || f->hi > hi)
            break;
        v = from;
    }
    return v;
}

const TlDim *tl_axis_param_extent(const TlFn *fn, const TlValue *view, uint32_t axis)
{
    TL_ASSERT(axis < TL_MAX_VIEW_RANK, "axis %u of a view", axis);
    if (view->def || !fn->info || view->index >= fn->info->params.len)
        return NULL;
    return &fn->info->params.data[view->index].extent[axis];
}

/* Is the grid's axis of the pid the extent, or cdiv(extent, d) with d of `step` or more? */
static bool counts_up_to(const TlFn *fn, const TlOp *pid, int64_t step, const TlValue *view,
                         uint32_t axis)
{
    const TlKernelInfo *k = fn->info;
    int64_t grid = tl_attr_int(pid, TL_ATTR_AXIS, 0);
    const TlDim *extent = tl_axis_param_extent(fn, view, axis);
    if (!extent || !k->promise.grid || grid >= k->grid.len || extent->kind != TILE_DIM_SYM)
        return false;
    const TlHostExpr *e = &k->exprs.data[k->grid.data[grid]];
    const tile_hx_ins *code = e->code.data;
    if (!e->code.len || code[0].op != TILE_HX_SYM || code[0].imm != extent->value)
        return false;
    return e->code.len == 1 ? step == 1
                            : e->code.len == 3 && code[1].op == TILE_HX_CONST &&
                                  code[2].op == TILE_HX_CDIV && step > 0 && step <= code[1].imm;
}

bool tl_axis_pid_inside(const TlFn *fn, const TlOp *pid, const TlValue *view, uint32_t axis)
{
    return counts_up_to(fn, pid, 1, view, axis);
}

bool tl_axis_starts_inside(const TlAxisInfo *a, const TlValue *start, const TlValue *view,
                           uint32_t axis)
{
    TlWideInt step = 1;
    const TlValue *v = tl_axis_plain(a, start);
    if (v->def && v->def->opcode == TL_OP_MUL && tl_const_int_value(tl_in(v->def, 1), &step))
        v = tl_axis_plain(a, tl_in(v->def, 0));
    return v->def && v->def->opcode == TL_OP_PID && step <= INT32_MAX &&
           counts_up_to(a->fn, v->def, (int64_t)step, view, axis);
}

bool tl_axis_is_extent(const TlAxisInfo *a, const TlValue *v, const TlValue *view, uint32_t axis)
{
    TL_ASSERT(view->type->kind == TL_VIEW && axis < view->type->rank,
              "axis %u of value %u", axis, view->id);
    TlWideInt n, own;
    v = tl_axis_plain(a, v);
    if (view->def && view->def->opcode == TL_OP_VIEW) {
        const TlValue *extent = tl_axis_plain(a, tl_in(view->def, 1 + axis));
        bool numbers = tl_const_int_value(v, &n) && tl_const_int_value(extent, &own);
        return numbers ? n == own : extent == v;
    }
    if (tl_const_int_value(v, &n)) {
        const TlDim *d = tl_axis_param_extent(a->fn, view, axis);
        return d && d->kind == TILE_DIM_CONST && d->value == n;
    }
    if (!v->def || v->def->opcode != TL_OP_EXTENT)
        return false;
    const TlValue *of = tl_in(v->def, 0);
    uint32_t of_axis = (uint32_t)tl_attr_int(v->def, TL_ATTR_AXIS, 0);
    if (of == view && of_axis == axis)
        return true;
    const TlDim *x = tl_axis_param_extent(a->fn, view, axis);
    const TlDim *y = tl_axis_param_extent(a->fn, of, of_axis);
    return x && y && x->kind == TILE_DIM_SYM && y->kind == TILE_DIM_SYM && x->value == y->value;
}
