/* Which arguments an aligned kernel takes (axis_info.h).
 *
 * A view parameter counts when something of the kernel may rest on its promise: an access of a tile
 * through it or a part of it; a question for its extents or strides; its pointer. For each such view
 * the promise is tested, as far as the parameter's type does not say it already: a constant is what
 * it is, and dense strides are products of extents that are tested. Where pids count, the grid must be
 * the clause's own (axis_info.c). */
#include "passes/axis_impl.h"

static const TlParam *parameter_of(const TlFn *fn, const TlValue *view)
{
    while (view->def && view->def->opcode == TL_OP_SUB_VIEW)
        view = tl_in(view->def, 0);
    if (view->def || !fn->info || view->index >= fn->info->params.len)
        return NULL;
    return &fn->info->params.data[view->index];
}

/* Does what the op makes of its view rest on the view's facts? */
static bool rests_on_view(const TlOp *op)
{
    switch ((int)op->opcode) {
    case TL_OP_EXTENT:
    case TL_OP_STRIDE:
    case TL_OP_VIEW_PTR: return true;
    default: return tl_attr(op, TL_ATTR_AXES) && tl_op_place(op).rank > 0;
    }
}

static void push(TlArena *arena, TlTests *out, tile_test_kind kind, uint32_t param, int axis,
                 int64_t unit)
{
    tile_image_test t = {(uint32_t)kind, param, (uint32_t)axis, 0, (uint64_t)unit - 1};
    if (t.mask)
        tl_vec_push(arena, out, t);
}

static void test_view(TlArena *arena, TlTests *out, const TlParam *p, uint32_t index)
{
    int64_t unit = tl_axis_aligned_unit(p->dtype);
    push(arena, out, TILE_TEST_POINTER, index, 0, TL_AXIS_ALIGNMENT);
    int last = p->rank - 1;
    if (p->extent[last].kind != TILE_DIM_CONST)
        push(arena, out, TILE_TEST_EXTENT, index, last, unit);
    for (int d = 0; d < last; d++)
        if (p->stride[d].kind == TILE_DIM_SYM || p->stride[d].kind == TILE_DIM_EXPR)
            push(arena, out, TILE_TEST_STRIDE, index, d, unit);
}

void tl_variant_tests(const TlFn *fn, TlArena *arena, TlTests *out)
{
    if (!fn->info || !fn->info->aligned)
        return;
    bool *counts = TL_NEW_ARRAY(arena, bool, fn->info->params.len + 1), pids = false;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        pids |= op->opcode == TL_OP_PID;
        if (op->nin == 0 || tl_in(op, 0)->type->kind != TL_VIEW || !rests_on_view(op))
            continue;
        const TlParam *p = parameter_of(fn, tl_in(op, 0));
        if (p)
            counts[p - fn->info->params.data] = true;
    }
    for (uint32_t i = 0; i < fn->info->params.len; i++)
        if (counts[i])
            test_view(arena, out, &fn->info->params.data[i], i);
    if (out->len && pids && fn->info->grid.len)
        push(arena, out, TILE_TEST_GRID, 0, 0, 2);
}
