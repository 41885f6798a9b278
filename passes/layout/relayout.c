/* Edits of laid-out IR, shared by passes that choose layouts (relayout.h). */
#include "passes/layout/relayout.h"

bool tl_has_layout(const TlType *t)
{
    return t->kind == TL_TILE && t->rank > 0;
}

bool tl_has_tile_operand(const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++)
        if (tl_has_layout(tl_in(op, i)->type))
            return true;
    return false;
}

void tl_set_layout(TlValue *v, const TlLayout *l)
{
    TL_ASSERT(tl_has_layout(v->type) && l, "value %u takes no layout", v->id);
    TlBlock *b = v->def ? v->def->block : v->block;
    v->type = tl_type_with_layout(b->fn->module->ctx, v->type, l);
}

static const TlLayout *reshape_operand(TlCtx *ctx, const TlOp *op)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    if (!tl_has_layout(to))
        return tl_layout_collapsed(ctx, from->layout, ~0u);
    if (tl_layout_reshaped(ctx, from->layout, from, to) == to->layout)
        return from->layout;
    return tl_layout_reshaped(ctx, to->layout, to, from);
}

const TlLayout *tl_wanted_layout(const TlOp *op, uint32_t i)
{
    TL_ASSERT(i < op->nin, "operand %u of %s", i, tl_op_info(op->opcode)->text);
    if (!tl_has_layout(tl_in(op, i)->type))
        return NULL;
    TlCtx *ctx = op->block->fn->module->ctx;
    const TlValue *to = tl_flows_to(op, i);
    if (to || tl_op_info(op->opcode)->flags & F_TERM)
        return to ? to->type->layout : NULL;
    if (op->opcode == TL_OP_REDUCE)
        return tl_in(op, 0)->type->layout;
    return op->opcode == TL_OP_RESHAPE ? reshape_operand(ctx, op)
                                       : tl_layout_for_operand(ctx, op, i, tl_op_layout(op));
}

TlValue *tl_relayout(TlBuilder *b, TlValue *v, const TlLayout *l)
{
    TL_ASSERT(tl_has_layout(v->type) && l, "value %u takes no layout", v->id);
    if (v->type->layout == l)
        return v;
    const TlType *type = tl_type_with_layout(b->fn->module->ctx, v->type, l);
    return tl_op_new(b, TL_OP_CONVERT, 1, &v, 1, &type, 0, 0, NULL)->out[0];
}

void tl_bypass_convert(TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_CONVERT && op->nin == 1,
              "%s is no conversion", tl_op_info(op->opcode)->text);
    if (!tl_in(op, 0)->name)
        tl_in(op, 0)->name = op->out[0]->name;
    tl_replace_uses(op->out[0], tl_in(op, 0));
    tl_op_erase(op);
}

bool tl_holds_along(const TlLayout *l, int axis, int32_t n)
{
    TL_ASSERT(l && axis >= 0 && axis < l->nout, "axis %d of a layout", axis);
    for (int32_t i = 1; i < n; i *= 2) {
        int32_t at[TL_LAYOUT_MAX_OUT] = {0};
        at[axis] = i;
        if (tl_layout_solve(l, TL_IN_REG, at) < 0)
            return false;
    }
    return true;
}
