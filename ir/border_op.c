/* The op `border` as a number, and in other ops (border_op.h). */
#include "ir/border_op.h"

#include "ir/support/guard.h"

int64_t tl_border_position(TlWay way, bool is_u64, int64_t x, int64_t extent)
{
    bool below = !is_u64 && x < 0;
    uint64_t e = (uint64_t)extent, u = (uint64_t)x,
             m = below ? (way == TL_WAY_REFLECT ? 0 - u : ~u) : u,
             p = way == TL_WAY_WRAP      ? e
                 : way == TL_WAY_REFLECT ? (e - 1) << 1
                                         : e << 1;
    p = (int64_t)p > 1 ? p : 1;
    uint64_t r = m % p;
    if (way == TL_WAY_WRAP)
        return (int64_t)(below ? e - 1 - r : r);
    uint64_t other = way == TL_WAY_REFLECT ? p - r : p - 1 - r;
    return (int64_t)(r < other ? r : other);
}

static TlValue *with(TlBuilder *b, TlOpcode op, TlValue *x, int64_t y)
{
    return tl_binary(b, op, x, tl_const_int(b, x->type, y));
}

static TlValue *spread(TlBuilder *b, TlValue *x, const TlValue *like)
{
    return x->type->rank < like->type->rank
               ? tl_broadcast(b, x, like->type->rank, like->type->shape)
               : x;
}

TlValue *tl_border_op(TlBuilder *b, TlWay way, TlValue *x, TlValue *extent)
{
    TL_ASSERT(tl_is_int(x->type->dtype) && extent->type->rank == 0, "a border of value %u", x->id);
    TlValue *in[] = {x, NULL};
    TlAttr attr = {.id = TL_ATTR_WAY, .u.i = way};
    in[1] = spread(b, extent, x);
    return tl_op_new(b, TL_OP_BORDER, 2, in, 1, &in[1]->type, 0, 1, &attr)->out[0];
}

TlValue *tl_border_period(TlBuilder *b, TlWay way, TlValue *extent)
{
    TlValue *p = extent;
    if (way == TL_WAY_REFLECT)
        p = with(b, TL_OP_SUB, p, 1);
    if (way != TL_WAY_WRAP)
        p = with(b, TL_OP_SHL, p, 1);
    return with(b, TL_OP_MAX, p, 1);
}

TlValue *tl_border_expand(TlBuilder *b, const TlOp *border)
{
    TL_ASSERT(border->opcode == TL_OP_BORDER, "%s is no border", tl_op_info(border->opcode)->text);
    TlWay way = (TlWay)tl_attr_int(border, TL_ATTR_WAY, 0);
    TlValue *x = tl_in(border, 0), *extent = tl_in(border, 1), *below = NULL, *m = x;
    if (extent->def && extent->def->opcode == TL_OP_BROADCAST)
        extent = tl_in(extent->def, 0);
    bool narrow = tl_dtype_bits(x->type->dtype) == 32;
    TlDtype u = narrow ? TL_U32 : TL_U64;
    TlValue *period = tl_border_period(b, way, extent), *modulus = period;
    if (tl_is_signed(x->type->dtype)) {
        below = with(b, TL_OP_LT, x, 0);
        m = tl_unary(b, way == TL_WAY_REFLECT ? TL_OP_NEG : TL_OP_NOT, x);
        m = tl_select(b, below, m, x);
    }
    if (narrow) /* magnitudes of i32 are less than this */
        modulus = with(b, TL_OP_MIN, modulus, UINT32_MAX);
    m = tl_cast(b, m, u);
    m = tl_binary(b, TL_OP_REM, m, spread(b, tl_cast(b, modulus, u), m));
    TlValue *r = tl_cast(b, m, TL_I64);
    if (way == TL_WAY_WRAP) {
        if (!below)
            return r;
        TlValue *last = spread(b, with(b, TL_OP_SUB, extent, 1), r);
        return tl_select(b, below, tl_binary(b, TL_OP_SUB, last, r), r);
    }
    TlValue *end = way == TL_WAY_REFLECT ? period : with(b, TL_OP_SUB, period, 1);
    return tl_binary(b, TL_OP_MIN, r, tl_binary(b, TL_OP_SUB, spread(b, end, r), r));
}
