/* Operations that several files emit, by their results' types. */
#include "frontend/sema.h"
#include <string.h>

TlValue *tl_emit(TlSema *s, TlOpcode op, uint32_t n, TlValue *const *in, const TlType *type,
                 uint32_t nattrs, const TlAttr *attrs)
{
    return tl_op_new(&s->b, op, n, in, 1, &type, 0, nattrs, attrs)->out[0];
}

bool tl_may_approximate(const TlSema *s, TlDtype d)
{
    static const char *const EXACT[] = {"std.math", "std.random"};
    const char *module = s->frame && s->frame->mod->path ? s->frame->mod->path : "";
    for (size_t i = 0; i < sizeof EXACT / sizeof *EXACT; i++)
        if (!strcmp(module, EXACT[i]))
            return false;
    return d == TL_F32 && !s->prog->options.strict;
}

TlValue *tl_emit_reshape(TlSema *s, TlValue *x, int rank, const int32_t *shape)
{
    const TlType *t = tl_type_with_shape(s->ctx, x->type, rank, shape);
    return t == x->type ? x : tl_emit(s, TL_OP_RESHAPE, 1, &x, t, 0, NULL);
}

TlValue *tl_emit_expand(TlSema *s, TlValue *x, int axis)
{
    TL_ASSERT(axis >= 0 && axis <= x->type->rank && x->type->rank < TL_MAX_RANK,
              "axis %d at rank %d", axis, (int)x->type->rank);
    int32_t shape[TL_MAX_RANK] = {0};
    for (int i = 0, k = 0; i <= x->type->rank; i++)
        shape[i] = i == axis ? 1 : x->type->shape[k++];
    const TlType *t = tl_type_with_shape(s->ctx, x->type, x->type->rank + 1, shape);
    TlAttr at = {.id = TL_ATTR_AXIS, .u.i = axis};
    return tl_emit(s, TL_OP_EXPAND, 1, &x, t, 1, &at);
}

TlValue *tl_emit_iota(TlSema *s, int32_t n, TlDtype d)
{
    return tl_emit(s, TL_OP_IOTA, 0, NULL, tl_type_tile(s->ctx, d, 1, &n), 0, NULL);
}

TlValue *tl_emit_index(TlSema *s, int rank, const int32_t *shape, int axis)
{
    TL_ASSERT(axis >= 0 && axis < rank, "axis %d of %d", axis, rank);
    int32_t ones[TL_MAX_RANK];
    for (int i = 0; i < rank; i++)
        ones[i] = i == axis ? shape[i] : 1;
    return tl_broadcast(&s->b, tl_emit_reshape(s, tl_emit_iota(s, shape[axis], TL_I32), rank, ones),
                        rank, shape);
}

TlValue *tl_emit_gather(TlSema *s, TlValue *x, TlValue *index, int axis)
{
    const TlType *t = tl_type_with_shape(s->ctx, x->type, index->type->rank, index->type->shape);
    TlAttr attr = {.id = TL_ATTR_AXIS, .u.i = axis};
    return tl_emit(s, TL_OP_GATHER, 2, (TlValue *[]){x, index}, t, 1, &attr);
}

TlValue *tl_emit_quotient(TlSema *s, TlValue *a, TlValue *b)
{
    TlAttr approx = {.id = TL_ATTR_APPROX, .u.i = tl_divisor(s, b)};
    TlValue *in[2] = {a, b};
    return tl_emit(s, TL_OP_DIV, 2, in, a->type, tl_may_approximate(s, a->type->dtype), &approx);
}
