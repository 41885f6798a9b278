/* Why a tile is not a bulk copy (bulk_fault.h), checked in this order: who reads it, the access,
 * its boxes. */
#include "passes/analysis/bulk_fault.h"
#include "ir/rewrite.h"

enum { LEAST = 16 /* bytes that lie side by side everywhere: addresses and rows are multiples */ };

/* Products of warpgroups read the buffer, and nobody else does. */
static bool feeds_products(const TlValue *buf)
{
    bool product = false;
    for (const TlUse *u = buf->uses; u; u = u->next) {
        if (u->user->opcode == TL_OP_GET)
            return false;
        product |= u->user->opcode == TL_OP_DOT_ASYNC;
    }
    return product;
}

static bool is_padded(const TlPlace *p)
{
    uint64_t bits;
    return p->other && !(tl_value_is_const(p->other, &bits) && bits == 0);
}

/* The mask of a copy of one bit says whether there is such an iteration. */
static bool is_masked(const TlOp *op, const TlPlace *p)
{
    return p->mask && (op->opcode == TL_OP_LOAD || p->mask->type->rank > 0);
}

TlBulkFault tl_bulk_fault(TlArena *arena, const TlAxisInfo *axis, const TlOp *op,
                          const TlValue *buf, bool warpgroups)
{
    TL_ASSERT(op->opcode == TL_OP_LOAD || op->opcode == TL_OP_COPY, "%s copies nothing",
              tl_op_info(op->opcode)->text);
    TlPlace p = tl_op_place(op);
    TlBulk bulk;
    if (warpgroups && !feeds_products(buf))
        return TL_BULK_READERS;
    if (is_masked(op, &p))
        return TL_BULK_MASK;
    if (is_padded(&p))
        return TL_BULK_PADDING;
    if (!tl_bulk_plan(arena, op, buf->type, &bulk))
        return bulk.fault;
    TlAccessInfo info = tl_access_info(axis, op);
    if (info.dim >= 0 && info.dim != tl_place_dim(&p, bulk.row))
        return TL_BULK_CROSSED;
    int bytes = tl_dtype_bytes(buf->type->dtype) * info.width;
    return bytes < LEAST ? TL_BULK_NARROW : TL_BULK_NONE;
}
