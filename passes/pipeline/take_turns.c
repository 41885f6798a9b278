/* take-turns: in loops that ask for it (specialize(2)), warpgroups begin their products one after
 * the other, so that one computes what stands between products while matrix units work for another:
 *
 *     for ... {                                pass_turn {one}
 *       %t = dot_async ...                     for ... {
 *       %v = dot_async ...                       take_turn
 *       %s = await %t {pending = 1}      =>      %t = dot_async ...
 *       ...                                      %v = dot_async ...
 *     }                                          pass_turn
 *                                                %s = await %t {pending = 1}
 *                                                ...
 *                                              }
 *                                              take_turn {one}
 *
 *  1. Where: loops of the kernel's warps, of two warpgroups or more, whose copies another warp
 *     begins. A turn goes from a trip's first product to the last one before anything waits.
 *  2. The last warpgroup gives the first turn, before all these loops and the loops around them,
 *     and the first one takes the last, behind them: turns are even, also where there is no trip.
 *     In between they run on: of two turns in a row, one might be given before the other is taken.
 *
 * Without this the warpgroups find some order themselves. FlashAttention-3 calls it ping-pong
 * (arXiv 2407.08608, section 3.1). */
#include "passes/pass.h"

enum { WARPS_OF_TWO = 8 };

static bool asks(const TlOp *op)
{
    enum { TURNS = 2 };
    return op->opcode == TL_OP_FOR && tl_attr_int(op, TL_ATTR_SPECIALIZE, 0) == TURNS &&
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

static TlOp *last_of_turn(TlOp *first)
{
    TlOp *last = first;
    for (TlOp *op = first; op && !waits(op); op = op->next)
        last = op->opcode == TL_OP_DOT_ASYNC ? op : last;
    return last;
}

static void turn(TlBuilder b, TlOpcode opcode, bool first)
{
    TlAttr attr = {.id = TL_ATTR_ONE, .u.i = 1};
    tl_op_new(&b, opcode, 0, NULL, 0, NULL, 0, first, &attr);
}

static bool take_turns(TlOp *loop)
{
    TlOp *first = first_product(loop->regions[0]);
    if (!first)
        return false;
    turn(tl_builder_before(first), TL_OP_TAKE_TURN, false);
    turn(tl_builder_before(last_of_turn(first)->next), TL_OP_PASS_TURN, false);
    return true;
}

/* What the warps do that contains the op. */
static TlOp *in_role(TlOp *op)
{
    while (op->block->parent->opcode != TL_OP_ROLES)
        op = op->block->parent;
    return op;
}

TlPassResult tl_pass_take_turns(TlFn *fn, TlPassCtx *px)
{
    TlOp *first = NULL, *last = NULL;
    if (!px->machine->warpgroups || fn->body->warps < WARPS_OF_TWO)
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!asks(op) || !take_turns(op))
            continue;
        last = in_role(op);
        first = first ? first : last;
    }
    if (!first)
        return TL_SAME;
    turn(tl_builder_before(first), TL_OP_PASS_TURN, true);
    turn(tl_builder_before(last->next), TL_OP_TAKE_TURN, true);
    return TL_CHANGED;
}
