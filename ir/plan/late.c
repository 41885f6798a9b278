/* Tiles that are read later than at their GET (late.h). */
#include "ir/plan/late.h"

TlOp *tl_get_of(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_TRANS)
        v = tl_in(v->def, 0);
    return v->def && v->def->opcode == TL_OP_GET ? v->def : NULL;
}

TlOp *tl_late_get(const TlValue *v)
{
    TlOp *get = tl_get_of(v);
    return get && tl_attr(get, TL_ATTR_LATE) ? get : NULL;
}

/* It has no regions and does not change shared memory. */
static bool is_quiet(const TlOp *op)
{
    bool pure = tl_op_info(op->opcode)->flags & F_PURE && op->nregions == 0;
    return (pure && !tl_attr(op, TL_ATTR_SHARED)) || op->opcode == TL_OP_LOAD;
}

bool tl_may_read_behind(const TlOp *op)
{
    if (op->opcode == TL_OP_GET || op->opcode == TL_OP_READ || op->opcode == TL_OP_COPY ||
        op->opcode == TL_OP_COMMIT || tl_begins_bulk(op))
        return true;
    if (op->opcode != TL_OP_IF)
        return is_quiet(op);
    for (const TlOp *in = tl_walk_next(op, op); in; in = tl_walk_next(in, op))
        if (in->opcode != TL_OP_YIELD && in->opcode != TL_OP_IF && !is_quiet(in))
            return false;
    return true;
}
