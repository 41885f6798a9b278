/* ring: puts a kernel into the ring mode (ir/interp/ring_float.h): every float constant becomes
 * its image in the ring, and the function is marked, so that everything computes in the ring from
 * then on.
 *
 *     kernel @k(...) {                          kernel @k(...) fp ring {
 *       %c = const {value = -2.0} : f16    =>     %c = const {value = bits 0xfffe} : f16
 *
 * It runs first, so that later constant folding gives numbers of the ring. */
#include "ir/interp/ring_float.h"
#include "passes/pass.h"

static void embed(TlFn *fn, TlOp *op)
{
    const TlType *t = op->out[0]->type;
    if (op->opcode != TL_OP_CONST || t->ptr || !tl_is_float(t->dtype))
        return;
    uint64_t bits = tl_ring_embed(t->dtype, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    tl_attr_set(fn, op, (TlAttr){.id = TL_ATTR_VALUE, .u.bits = bits});
}

TlPassResult tl_pass_ring(TlFn *fn, TlPassCtx *px)
{
    (void)px;
    if (fn->ring)
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->nout)
            embed(fn, op);
    fn->ring = true;
    return TL_CHANGED;
}
