/* Ping-pong: in loops that ask for it (specialize(2)), warpgroups begin their products one after
 * the other, so that one computes what stands between products while matrix units work for another
 * (FlashAttention-3, arXiv 2407.08608, section 3.1):
 *
 *     for ... {                                ping_pong_arrive {one}
 *       %t = dot_async ...                     for ... {
 *       %v = dot_async ...                       ping_pong_wait
 *       %s = await %t {pending = 1}      =>      %t = dot_async ...
 *       ...                                      %v = dot_async ...
 *     }                                          ping_pong_arrive
 *                                                %s = await %t {pending = 1}
 *                                                ...
 *                                              }
 *                                              ping_pong_wait {one}
 *
 *  1. Where: loops of the kernel's warps, of two warpgroups or more, whose copies another warp
 *     begins, and whose products are not by one thread. It is a warpgroup's time from an
 *     iteration's first product to the last one before anything waits.
 *  2. The last warpgroup lets the first one begin, before all these loops and the loops around
 *     them, and the first one waits for the last, behind them: waits and arrivals are even, also
 *     where there is no iteration. In between they run on. */
#include "passes/pipeline/sync_impl.h"

enum { WARPS_OF_TWO = 8 };

static bool asks(const TlOp *op)
{
    enum { PING_PONG = 2 };
    return op->opcode == TL_OP_FOR && tl_attr_int(op, TL_ATTR_SPECIALIZE, 0) == PING_PONG &&
           tl_op_role(op) == 1;
}

static bool waits(const TlOp *op)
{
    return op->nregions || op->opcode == TL_OP_AWAIT || op->opcode == TL_OP_BARRIER;
}

static TlOp *first_product(const TlBlock *body)
{
    TlOp *op = body->first;
    while (op && op->opcode != TL_OP_DOT_ASYNC)
        op = op->next;
    return op;
}

static TlOp *last_product(TlOp *first)
{
    TlOp *last = first;
    for (TlOp *op = first; op && !waits(op); op = op->next)
        last = op->opcode == TL_OP_DOT_ASYNC ? op : last;
    return last;
}

static void add(TlBuilder b, TlOpcode opcode, bool one)
{
    TlAttr attr = {.id = TL_ATTR_ONE, .u.i = 1};
    tl_op_new(&b, opcode, 0, NULL, 0, NULL, 0, one, &attr);
}

static bool alternate(TlOp *loop)
{
    TlOp *first = first_product(loop->regions[0]);
    if (!first || first->out[0]->type->kind == TL_TENSOR)
        return false;
    add(tl_builder_before(first), TL_OP_PING_PONG_WAIT, false);
    add(tl_builder_before(last_product(first)->next), TL_OP_PING_PONG_ARRIVE, false);
    return true;
}

/* What the warps do that contains the op. */
static TlOp *in_role(TlOp *op)
{
    while (op->block->parent->opcode != TL_OP_ROLES)
        op = op->block->parent;
    return op;
}

bool tl_sync_ping_pong(TlFn *fn)
{
    TlOp *first = NULL, *last = NULL;
    if (fn->body->warps < WARPS_OF_TWO)
        return false;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!asks(op) || !alternate(op))
            continue;
        last = in_role(op);
        first = first ? first : last;
    }
    if (!first)
        return false;
    add(tl_builder_before(first), TL_OP_PING_PONG_ARRIVE, true);
    add(tl_builder_before(last->next), TL_OP_PING_PONG_WAIT, true);
    return true;
}
