/* A shifted row is loaded at its place (chunk_impl.h).
 *
 *     %s = load %x, %at {axes = [N]}            %t = load %x, %at - 1 {axes = [N]}
 *     %i = add (iota), -1                 =>    %g = select (u32 %i) < N, %t, 0
 *     %g = gather %s, %i {axis = 0}
 *
 * A gather needs the row as a whole, so that it could not be cut. What `gather` gives outside of
 * the tile is 0, and what it gives inside is what memory has there. */
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"
#include "passes/simplify/chunk_impl.h"

/* Axes of a place that is read in another place; -1: it cannot be. */
static int axis_to_move(const TlOp *load, const TlPlace *p, int dim)
{
    if (!p->axes || p->mask || p->pointwise || tl_attr_flag(load, TL_ATTR_UNCHECKED) ||
        !tl_is_constant_memory(tl_in(load, 0)) ||
        (p->other && !tl_value_is_const(p->other, NULL)))
        return -1;
    for (uint32_t i = 0; i < p->naxes; i++)
        if (p->axes[i].kind == TL_AXIS_SLICE && tl_place_dim(p, i) == dim)
            return p->index[i].value->type->dtype == TL_U64 ? -1 : (int)i;
    return -1;
}

/* `by` elements of the tile further on, with the gather's extents. */
static TlValue *load_there(TlBuilder *b, const TlOp *load, const TlPlace *p, int axis, int64_t by,
                           const TlType *t)
{
    uint64_t outside = 0;
    TlArena *arena = &b->fn->module->arena;
    TlAxis *axes = TL_NEW_ARRAY(arena, TlAxis, p->naxes);
    TlValue **in = TL_NEW_ARRAY(arena, TlValue *, load->nin);
    TlAttr *attrs = TL_NEW_ARRAY(arena, TlAttr, load->nattrs);
    for (uint32_t i = 0; i < p->naxes; i++)
        axes[i] = p->axes[i];
    axes[axis].width = t->shape[tl_place_dim(p, (uint32_t)axis)];
    for (uint32_t i = 0; i < load->nin; i++)
        in[i] = tl_in(load, i);
    TlValue *start = tl_cast(b, in[1 + axis], TL_I64);
    TlValue *skip = tl_const_int(b, start->type, by * axes[axis].step);
    in[1 + axis] = tl_binary(b, TL_OP_ADD, start, skip);
    if (p->other && tl_value_is_const(p->other, &outside))
        in[load->nin - 1] =
            tl_const_bits(b, tl_type_scalar(b->fn->module->ctx, t->dtype), outside);
    for (uint32_t i = 0; i < load->nattrs; i++) {
        attrs[i] = load->attrs[i];
        if (attrs[i].id == TL_ATTR_AXES)
            attrs[i].u.axes = axes;
    }
    return tl_op_new(b, TL_OP_LOAD, load->nin, in, 1, &t, 0, load->nattrs, attrs)->out[0];
}

bool tl_chunk_read_shifted(TlOp *gather)
{
    TL_ASSERT(gather->opcode == TL_OP_GATHER, "%s shifts nothing",
              tl_op_info(gather->opcode)->text);
    const TlValue *x = tl_in(gather, 0);
    const TlOp *load = x->def;
    TlValue *index = tl_in(gather, 1);
    int dim = (int)tl_attr_int(gather, TL_ATTR_AXIS, 0);
    int64_t by;
    if (!load || load->opcode != TL_OP_LOAD || tl_is_packed(x->type->dtype) || x->type->ptr ||
        !tl_counts_from(index, dim, &by))
        return false;
    TlPlace place = tl_op_place(load);
    int axis = axis_to_move(load, &place, dim);
    if (axis < 0)
        return false;
    TlBuilder b = tl_builder_before(gather);
    b.loc = load->loc;
    const TlType *t = gather->out[0]->type,
                 *u32 = tl_type_with_dtype(b.fn->module->ctx, index->type, TL_U32);
    TlValue *v = load_there(&b, load, &place, axis, by, t);
    TlValue *at = index->type == u32 ? index : tl_cast(&b, index, TL_U32);
    TlValue *inside = tl_binary(&b, TL_OP_LT, at, tl_const_int(&b, u32, x->type->shape[dim]));
    v = tl_select(&b, inside, v, tl_const_bits(&b, t, 0));
    v->name = gather->out[0]->name;
    tl_replace_uses(gather->out[0], v);
    tl_op_erase(gather);
    return true;
}
