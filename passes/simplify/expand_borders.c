/* expand-borders: positions that a border maps to ones inside become arithmetic.
 *
 *     %p = border %x, %n {way = wrap} : i64       %m = cast (%x < 0 ? ~%x : %x) : u32
 *                                            =>   %r = rem %m, max(%n, 1)
 *                                                 %p = %x < 0 ? %n - 1 - %r : %r
 *
 * GPUs have no other way; what follows then folds it with what is around it. The CPU keeps the op:
 * its loop nests load what is inside by whole vectors (codegen/nest), and know the op. */
#include "ir/border_op.h"
#include "ir/rewrite.h"
#include "passes/pass.h"

TlPassResult tl_pass_expand_borders(TlFn *fn, TlPassCtx *px)
{
    bool changed = false;
    (void)px;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        if (op->opcode != TL_OP_BORDER)
            continue;
        TlBuilder b = tl_builder_before(op);
        TlValue *v = tl_border_expand(&b, op);
        v->name = v->name ? v->name : op->out[0]->name;
        tl_replace_uses(op->out[0], v);
        tl_op_erase(op);
        changed = true;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
