/* Scratch of ops in shared memory: conversions so far. */
#include "ir/shared_plan.h"
#include "ir/layout_convert.h"

uint32_t tl_op_shared_bytes(TlArena *arena, const TlOp *op)
{
    if (op->opcode != TL_OP_CONVERT)
        return 0;
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    return tl_convert_bytes(arena, to, from->layout, to->layout);
}
