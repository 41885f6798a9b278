/* Parameters and views in LLVM IR, the same on every device: a slot of the parameter table becomes
 * one value, a view is its pointer, extents and strides. */
#include "codegen/gen/gen.h"
#include <string.h>

/* ---- parameters ---- */

LLVMValueRef tl_gen_scalar(TlGen *g, const TlValue *v)
{
    TL_ASSERT(g->scalar[v->id], "scalar %u of '%s' has no value yet", v->id, g->fn->name);
    return g->scalar[v->id];
}

static LLVMValueRef find_slot(TlGen *g, const tile_image_slot *want)
{
    for (uint32_t i = 0; i < g->slots.len; i++)
        if (memcmp(&g->slots.data[i], want, sizeof *want) == 0)
            return g->slot.data[i];
    uint32_t n = g->slots.len;
    tl_vec_push(g->arena, &g->slots, *want);
    LLVMValueRef x = g->load_slot(g, n, (tile_slot_kind)want->kind);
    tl_vec_push(g->arena, &g->slot, x);
    return x;
}

LLVMValueRef tl_gen_slot(TlGen *g, tile_slot_kind kind, uint32_t param, uint32_t axis)
{
    TL_ASSERT(axis < TL_MAX_VIEW_RANK, "axis %u of parameter %u", axis, param);
    return find_slot(g, &(tile_image_slot){.kind = (uint32_t)kind, .param = param, .axis = axis});
}

LLVMValueRef tl_gen_map_slot(TlGen *g, uint32_t param, const TlBulk *bulk)
{
    tile_image_slot want = tl_bulk_slot(bulk, param);
    return find_slot(g, &want);
}

static LLVMValueRef scalar_param(TlGen *g, uint32_t i, const TlType *type)
{
    LLVMValueRef word = tl_gen_slot(g, TILE_SLOT_SCALAR, i, 0);
    LLVMTypeRef bits = LLVMIntTypeInContext(g->c, 8 * (unsigned)tl_gen_elem_bytes(type));
    LLVMValueRef x = LLVMBuildTrunc(g->b, word, bits, "");
    return tl_gen_from_mem(g, type, LLVMBuildBitCast(g->b, x, tl_gen_mem_type(g, type), ""));
}

static LLVMValueRef dim(TlGen *g, const TlDim *d, uint32_t param, uint32_t axis, bool stride)
{
    if (d->kind == TILE_DIM_CONST)
        return tl_gen_int(g, d->value);
    if (d->kind == TILE_DIM_SYM) {
        const TlSym *s = &g->fn->info->syms.data[d->value];
        return tl_gen_slot(g, s->is_stride ? TILE_SLOT_STRIDE : TILE_SLOT_EXTENT, s->param,
                           s->axis);
    }
    return tl_gen_slot(g, stride ? TILE_SLOT_STRIDE : TILE_SLOT_EXTENT, param, axis);
}

/* The extent of an axis; rows of 4-bit elements end on a byte. */
static LLVMValueRef row_of(TlGen *g, const TlGenView *v, uint32_t axis)
{
    TL_ASSERT(axis < TL_MAX_VIEW_RANK, "axis %u", axis);
    LLVMValueRef n = v->extent[axis];
    if (tl_dtype_bits(v->dtype) >= 8 || (int)axis + 1 < v->rank)
        return n;
    n = LLVMBuildAdd(g->b, n, tl_gen_int(g, 1), "");
    return LLVMBuildAnd(g->b, n, tl_gen_int(g, -2), "");
}

static TlGenView *view_param(TlGen *g, uint32_t i)
{
    TL_ASSERT(i < g->fn->body->nargs, "parameter %u of %u", i, g->fn->body->nargs);
    const TlParam *p = &g->fn->info->params.data[i];
    TlGenView *v = TL_NEW(g->arena, TlGenView);
    v->rank = p->rank;
    v->dtype = p->dtype;
    v->ptr = tl_gen_slot(g, TILE_SLOT_POINTER, i, 0);
    for (uint32_t a = p->rank; a-- > 0;) {
        v->extent[a] = dim(g, &p->extent[a], i, a, false);
        if (p->stride[a].kind != TILE_DIM_DENSE)
            v->stride[a] = dim(g, &p->stride[a], i, a, true);
        else if (a + 1 == p->rank)
            v->stride[a] = tl_gen_int(g, 1);
        else
            v->stride[a] = LLVMBuildMul(g->b, row_of(g, v, a + 1), v->stride[a + 1], "");
    }
    return v;
}

void tl_gen_params(TlGen *g)
{
    for (uint32_t i = 0; i < g->fn->body->nargs; i++) {
        TlValue *a = g->fn->body->args[i];
        if (a->type->kind == TL_VIEW)
            g->view[a->id] = view_param(g, i);
        else if (a->type->ptr)
            g->scalar[a->id] = tl_gen_slot(g, TILE_SLOT_POINTER, i, 0);
        else
            g->scalar[a->id] = scalar_param(g, i, a->type);
    }
}

/* ---- views ---- */

TlGenView *tl_gen_view(TlGen *g, const TlValue *v)
{
    TL_ASSERT(g->view[v->id], "view %u of '%s' is not known", v->id, g->fn->name);
    return g->view[v->id];
}

LLVMValueRef tl_gen_to_i64(TlGen *g, const TlValue *v, LLVMValueRef x)
{
    bool natural = g->halved && tl_axis_facts(g->halved, v)->lo >= 0;
    return LLVMBuildIntCast2(g->b, x, tl_gen_vec(g->i64, tl_gen_width_of(x)),
                             tl_is_signed(v->type->dtype) && !natural, "");
}

LLVMValueRef tl_gen_address(TlGen *g, TlDtype d, LLVMValueRef base, LLVMValueRef offset)
{
    TlType t = {.kind = TL_TILE, .dtype = d};
    return LLVMBuildGEP2(g->b, tl_gen_mem_type(g, &t), base, &offset, 1, "");
}

LLVMValueRef tl_gen_pick(TlGen *g, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b,
                         LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, p, a, b, ""), x, y, "");
}

static void lower_sub_view(TlGen *g, TlOp *op, TlGenView *out)
{
    TlGenView *v = tl_gen_view(g, tl_in(op, 0));
    LLVMValueRef offset = tl_gen_int(g, 0), zero = tl_gen_int(g, 0);
    *out = *v;
    for (int a = 0; a < v->rank;
         a++) { /* a negative start counts as 0; the extent ends with the view's, never below 0 */
        LLVMValueRef s = tl_gen_scalar(g, tl_in(op, 1 + (uint32_t)a)),
                     n = tl_gen_scalar(g, tl_in(op, 1 + (uint32_t)(v->rank + a)));
        s = tl_gen_pick(g, LLVMIntSLT, s, zero, zero, s);
        s = tl_gen_pick(g, LLVMIntSGT, s, v->extent[a], v->extent[a], s);
        LLVMValueRef left = LLVMBuildSub(g->b, v->extent[a], s, "");
        n = tl_gen_pick(g, LLVMIntSLT, n, left, n, left);
        out->extent[a] = tl_gen_pick(g, LLVMIntSLT, n, zero, zero, n);
        offset = LLVMBuildAdd(g->b, offset, LLVMBuildMul(g->b, s, v->stride[a], ""), "");
    }
    out->ptr = tl_gen_address(g, v->dtype, v->ptr, offset);
}

void tl_gen_lower_view(TlGen *g, TlOp *op)
{
    TL_ASSERT(op->nout == 1 && op->out[0]->type->kind == TL_VIEW,
              "%s makes no view", tl_op_info(op->opcode)->text);
    TlGenView *out = TL_NEW(g->arena, TlGenView);
    const TlType *type = op->out[0]->type;
    g->view[op->out[0]->id] = out;
    if (op->opcode == TL_OP_SUB_VIEW) {
        lower_sub_view(g, op, out);
        return;
    }
    out->rank = type->rank;
    out->dtype = type->dtype;
    out->ptr = tl_gen_scalar(g, tl_in(op, 0));
    for (int a = 0; a < type->rank; a++) {
        out->extent[a] = tl_gen_scalar(g, tl_in(op, 1 + (uint32_t)a));
        out->stride[a] = tl_gen_scalar(g, tl_in(op, 1 + (uint32_t)(type->rank + a)));
    }
}

LLVMValueRef tl_gen_of_view(TlGen *g, const TlOp *op)
{
    const TlGenView *view = tl_gen_view(g, tl_in(op, 0));
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, 0);
    TL_ASSERT(axis >= 0 && axis < view->rank, "axis %d of %d", (int)axis, (int)view->rank);
    return op->opcode == TL_OP_EXTENT   ? view->extent[axis]
           : op->opcode == TL_OP_STRIDE ? view->stride[axis]
                                        : view->ptr;
}
