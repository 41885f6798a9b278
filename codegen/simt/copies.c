/* What the lowering of asynchronous copies decides (copies.h). */
#include "codegen/simt/copies.h"

static bool is_within(const TlBlock *block, const TlOp *op)
{
    while (block && block->parent != op)
        block = block->parent ? block->parent->block : NULL;
    return block != NULL;
}

/* Does the innermost loop around the op change the value? */
static bool changes_around(const TlOp *op, const TlValue *v)
{
    const TlOp *loop = op->block->parent;
    while (loop && loop->opcode != TL_OP_FOR && loop->opcode != TL_OP_WHILE)
        loop = loop->block->parent;
    return loop && is_within(v->def ? v->def->block : v->block, loop);
}

uint32_t tl_copy_moving(const TlOp *op)
{
    uint32_t moving = 0;
    if (op->opcode != TL_OP_COPY)
        return 0;
    TlPlace p = tl_op_place(op);
    for (uint32_t i = 0; i < p.naxes && p.axes; i++)
        if (p.axes[i].kind != TL_AXIS_TILE && changes_around(op, p.index[i].value))
            moving |= 1u << i;
    return moving;
}

/* Where 32 bits do not decide an axis, its elements keep their tests, and the others theirs. */
bool tl_copy_is_decided(const TlOp *op, const TlAccessInfo *info, bool checked)
{
    uint32_t moving = tl_copy_moving(op), slices = 0;
    if (!moving || (tl_attr_flag(op, TL_ATTR_UNCHECKED) && !checked))
        return false;
    TlPlace p = tl_op_place(op);
    for (uint32_t i = 0; i < p.naxes; i++)
        if (p.axes[i].kind == TL_AXIS_SLICE)
            slices |= moving & 1u << i;
    return slices && (slices & ~info->narrow) == 0;
}

const TlBufPlan *tl_copy_plan(TlArena *arena, const TlOp *op, int width, bool can_copy,
                              bool *out_async)
{
    enum { LEAST = 4 };
    const TlType *tile = op->out[0]->type;
    const TlBufPlan *plan = tl_buf_plan(arena, tile, tl_op_place(op).buf->type, width,
                                        TL_BUF_WRITES | TL_BUF_IN_ORDER);
    *out_async = can_copy && (uint32_t)tl_dtype_bytes(tile->dtype) * plan->nregs >= LEAST;
    return plan;
}
