/* persistent: a kernel with this clause does the whole grid with any number of programs.
 *
 *     kernel @f info { persistent }              %t0 = block;  %n = nblocks
 *       %m = pid {axis = 0}                      %all = npid {axis = 0} * npid {axis = 1}
 *       ...                             =>       for %t0, %all, %n (%t) {
 *       return                                     %m = pid %t {axis = 0}
 *                                                  ...
 *                                                }
 *                                                return
 *
 * What the program did once, it does for each part that falls to it, in the order in which
 * programs start. As many programs start as run at once (the runtime's choose_blocks); the copies
 * of a part may start while the part before is stored (specialize). Kernels that print or are
 * checked stay as they are, because their messages name their program. */
#include "ir/rewrite.h"
#include "passes/pass.h"

static bool says_things(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (tl_op_info(op->opcode)->flags & F_DEBUG)
            return true;
    return false;
}

static TlValue *scalar(TlBuilder *b, TlOpcode opcode, uint32_t nin, TlValue **in, int axis)
{
    const TlType *t = tl_type_scalar(b->fn->module->ctx, TL_I32);
    TlAttr attr = {.id = TL_ATTR_AXIS, .u.i = axis};
    return tl_op_new(b, opcode, nin, in, 1, &t, 0, axis >= 0, &attr)->out[0];
}

/* The number of programs on the grid: below 2^31. */
static TlValue *all_programs(TlBuilder *b, const TlKernelInfo *info)
{
    TlValue *n = scalar(b, TL_OP_NPID, 0, NULL, 0);
    for (uint32_t axis = 1; axis < info->grid.len; axis++)
        n = tl_binary(b, TL_OP_MUL, n, scalar(b, TL_OP_NPID, 0, NULL, (int)axis));
    return n;
}

static void name_programs(TlFn *fn, TlOp *loop, TlValue *t)
{
    for (TlOp *op = tl_walk_next(loop, loop), *next; op; op = next) {
        next = tl_walk_next(op, loop);
        if (op->opcode == TL_OP_PID && op->nin == 0)
            tl_add_operand(fn, op, t);
    }
}

TlPassResult tl_pass_persistent(TlFn *fn, TlPassCtx *px)
{
    const TlType *i32 = tl_type_scalar(px->ctx, TL_I32);
    if (!fn->info || !fn->info->persistent || fn->info->grid.len == 0 || px->machine->check ||
        says_things(fn))
        return TL_SAME;
    TlOp *end = fn->body->last;
    TlBuilder b = tl_builder_before(end);
    TlValue *in[] = {scalar(&b, TL_OP_BLOCK, 0, NULL, -1), all_programs(&b, fn->info),
                     scalar(&b, TL_OP_NBLOCKS, 0, NULL, -1)};
    TlOp *first = in[0]->def, *loop = tl_op_new(&b, TL_OP_FOR, 3, in, 0, NULL, 1, 0, NULL);
    TlBlock *body = loop->regions[0];
    TlValue *t = tl_block_arg(body, i32, "part");
    TlBuilder inner = {.fn = fn, .block = body, .loc = end->loc};
    TlOp *yield = tl_yield(&inner, TL_OP_YIELD, 0, NULL);
    for (TlOp *op = fn->body->first, *next; op != first; op = next) {
        next = op->next;
        tl_op_move_before(op, yield);
    }
    body->warps = fn->body->warps;
    name_programs(fn, loop, t);
    fn->info->persistent = false; /* done */
    return TL_CHANGED;
}
