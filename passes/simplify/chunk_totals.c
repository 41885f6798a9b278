/* Totals axis by axis (chunk_impl.h). */
#include "passes/simplify/chunk_impl.h"

/* The cast of a reshape, as integers are summed up in a wider type; NULL: it is none. */
static TlOp *cast_of_reshape(const TlValue *v)
{
    TlOp *cast = v->def;
    if (!cast || cast->opcode != TL_OP_CAST || cast->nattrs)
        return NULL;
    const TlOp *reshape = tl_in(cast, 0)->def;
    return reshape && reshape->opcode == TL_OP_RESHAPE ? cast : NULL;
}

TlValue *tl_chunk_total_of(const TlOp *op)
{
    if (op->opcode != TL_OP_REDUCE || op->nin != 1 || tl_in(op, 0)->type->rank != 1)
        return NULL;
    const TlOp *cast = cast_of_reshape(tl_in(op, 0)),
               *reshape = cast ? tl_in(cast, 0)->def : tl_in(op, 0)->def;
    if (!reshape || reshape->opcode != TL_OP_RESHAPE || tl_in(reshape, 0)->type->rank < 2 ||
        tl_attr_int(op, TL_ATTR_KIND, 0) == TL_COMBINE_USER)
        return NULL;
    return tl_in(reshape, 0);
}

static void erase_unused(TlOp *op)
{
    if (op && !op->out[0]->uses)
        tl_op_erase(op);
}

void tl_chunk_total_by_axes(TlOp *op, TlValue *x)
{
    TlBuilder b = tl_builder_before(op);
    TlOp *cast = cast_of_reshape(tl_in(op, 0)),
         *reshape = (cast ? tl_in(cast, 0) : tl_in(op, 0))->def;
    TlDtype d = tl_in(op, 0)->type->dtype;
    x = tl_cast(&b, x, d);
    if (d == TL_F16 || d == TL_BF16)
        x = tl_cast(&b, x, TL_F32);
    while (x->type->rank) {
        int last = x->type->rank - 1;
        const TlType *t = tl_type_with_shape(b.fn->module->ctx, x->type, last, x->type->shape);
        TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = last}, *tl_attr(op, TL_ATTR_KIND)};
        x = tl_op_new(&b, TL_OP_REDUCE, 1, &x, 1, &t, 0, 2, attrs)->out[0];
    }
    x = tl_cast(&b, x, d);
    x->name = op->out[0]->name;
    tl_replace_uses(op->out[0], x);
    tl_op_erase(op);
    erase_unused(cast);
    erase_unused(reshape);
}
