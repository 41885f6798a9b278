/* What the form of a divisor's code says about its size (the attribute `divisor`): if enough is
 * known, a division by it, or its reciprocal, needs less care.
 *
 *     1.0 + exp(x), abs(x) + 0.5, x * x + 1e-6   never tiny: a constant and nothing negative
 *     max(x, 1e-5)                               the same
 *     %d = sub %x, (%x's maximum along an axis)  some %d is 0, and no %d is above it:
 *     %s = reduce (exp %d) {axis, kind = add}    %s is from 1 to the number of elements
 *
 * Or it is NaN. The results of calls of exp are remembered while their kernel is walked, because
 * the form of the code does not show them. */
#include "frontend/sema.h"

#include "ir/numeric.h"
#include "ir/rewrite.h"

/* A sum of so many powers is a number in f16 too; of f32, far more would do. Ops between a sum and
 * its use as a divisor. */
enum { MOST_TERMS = 1 << 15, MOST_STEPS = 8 };
static const double NOT_TINY = 0x1p-120;

void tl_remember_exp(TlSema *s, const TlValue *result, const TlValue *of)
{
    tl_map_put_ptr(&s->powers, result, of);
}

/* What v is e to the power of, or NULL; v may have been rounded or widened. */
static const TlValue *exponent(const TlSema *s, const TlValue *v)
{
    const TlValue *of = tl_map_get_ptr(&s->powers, v);
    for (int i = 0; !of && i < MOST_STEPS && v->def && v->def->opcode == TL_OP_CAST; i++) {
        v = tl_in(v->def, 0);
        of = tl_map_get_ptr(&s->powers, v);
    }
    return of;
}

static bool is_widening(const TlOp *cast)
{
    TlDtype from = tl_in(cast, 0)->type->dtype, to = cast->out[0]->type->dtype;
    return tl_is_float(from) && tl_is_float(to) && tl_dtype_bytes(from) <= tl_dtype_bytes(to);
}

const TlValue *tl_spread_from(const TlValue *v)
{
    for (int i = 0; i < MOST_STEPS && v->def; i++) {
        TlOpcode made_by = v->def->opcode;
        bool spreads = made_by == TL_OP_BROADCAST || made_by == TL_OP_EXPAND ||
                       made_by == TL_OP_RESHAPE || (made_by == TL_OP_CAST && is_widening(v->def));
        if (!spreads)
            break;
        v = tl_in(v->def, 0);
    }
    return v;
}

static bool is_reduction(const TlOp *op, TlCombine kind)
{
    return op && op->opcode == TL_OP_REDUCE && op->nin == 1 &&
           tl_attr_int(op, TL_ATTR_KIND, -1) == (int64_t)kind;
}

/* Is v the difference of a value and its own maximum along the axis? */
static bool is_below_own_maximum(const TlValue *v, int64_t axis)
{
    const TlOp *sub = v->def;
    if (!sub || sub->opcode != TL_OP_SUB)
        return false;
    const TlValue *spread = tl_in(sub, 1);
    const TlOp *max = spread->def, *expand = NULL;
    for (int i = 0; i < MOST_STEPS && max && max->opcode != TL_OP_REDUCE; i++) {
        if (max->opcode == TL_OP_EXPAND && !expand)
            expand = max;
        else if (max->opcode != TL_OP_BROADCAST)
            return false;
        max = tl_in(max, 0)->def;
    }
    int64_t at = expand ? tl_attr_int(expand, TL_ATTR_AXIS, 0) : 0;
    return is_reduction(max, TL_COMBINE_MAX) && tl_in(max, 0) == tl_in(sub, 0) &&
           tl_attr_int(max, TL_ATTR_AXIS, 0) == axis && at == axis &&
           (expand || v->type->rank == 1);
}

TlValue *tl_exponent(const TlSema *s, const TlValue *v)
{
    return (TlValue *)tl_map_get_ptr(&s->powers, v);
}

/* Rounded to f16, too. */
bool tl_is_sum_with_one(const TlSema *s, const TlOp *op)
{
    if (op->opcode == TL_OP_CAST)
        op = tl_in(op, 0)->def;
    if (!is_reduction(op, TL_COMBINE_ADD))
        return false;
    const TlValue *of = exponent(s, tl_in(op, 0));
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, 0);
    return of && tl_in(op, 0)->type->shape[axis] <= MOST_TERMS && is_below_own_maximum(of, axis);
}

static bool is_nowhere_negative(const TlSema *s, const TlValue *v)
{
    const TlOp *op = v->def;
    if (exponent(s, v))
        return true;
    if (!op)
        return false;
    return op->opcode == TL_OP_ABS || (op->opcode == TL_OP_MUL && tl_in(op, 0) == tl_in(op, 1));
}

/* A constant that alone is enough */
static bool is_large_constant(const TlValue *v)
{
    uint64_t bits;
    v = tl_spread_from(v);
    return tl_value_is_const(v, &bits) && tl_is_float(v->type->dtype) &&
           tl_bits_to_double(v->type->dtype, bits) >= NOT_TINY;
}

TlApprox tl_divisor(const TlSema *s, const TlValue *d)
{
    const TlOp *op = tl_spread_from(d)->def;
    if (!op)
        return TL_APPROX_ANY;
    if (tl_is_sum_with_one(s, op))
        return TL_APPROX_NORMAL;
    for (uint32_t i = 0; i < 2 && (op->opcode == TL_OP_ADD || op->opcode == TL_OP_MAX); i++)
        if (is_large_constant(tl_in(op, i)) &&
            (op->opcode == TL_OP_MAX || is_nowhere_negative(s, tl_in(op, 1 - i))))
            return TL_APPROX_NOT_TINY;
    return TL_APPROX_ANY;
}
