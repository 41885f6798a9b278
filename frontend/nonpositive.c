/* Values that are nowhere above zero, as the form of their code shows: std.math has a shorter exp
 * for them (exp_of_negative). Softmax, in its many forms, needs no other powers:
 *
 *     %m = reduce %x {axis, kind = max}
 *     %s = broadcast (expand %m {axis})
 *     %d = sub %x, %s                        every element is <= 0, or NaN
 *
 * This also recognises the maximum of several values, the last of which is the maximum so far, and
 * another number in place of a maximum of -inf: then every element is -inf, or NaN. */
#include "frontend/sema.h"

#include <math.h>

#include "ir/numeric.h"
#include "ir/rewrite.h"

enum { NOT_SPREAD = -1, MOST_STEPS = 8 /* from a difference to the maximum: recursion */ };

static bool is_minus_infinity(const TlValue *v)
{
    uint64_t bits;
    TlDtype d = v->type->dtype;
    return tl_value_is_const(v, &bits) && tl_is_float(d) &&
           bits == tl_bits_from_double(d, -(double)INFINITY);
}

/* c ? a : b with a only where b is -inf */
static bool keeps_all_but_minus_infinity(const TlOp *select)
{
    const TlOp *eq = tl_in(select, 0)->def;
    return eq && eq->opcode == TL_OP_EQ && tl_in(eq, 0) == tl_in(select, 2) &&
           is_minus_infinity(tl_in(eq, 1));
}

/* Does the reduction give the maximum of x along the axis that was spread again? A row has one. */
static bool is_maximum(const TlOp *op, const TlValue *x, int64_t axis)
{
    if (axis == NOT_SPREAD && x->type->rank == 1)
        axis = 0;
    return op->nin == 1 && tl_in(op, 0) == x &&
           tl_attr_int(op, TL_ATTR_KIND, -1) == TL_COMBINE_MAX &&
           tl_attr_int(op, TL_ATTR_AXIS, 0) == axis;
}

/* Is no element of x above that of b, b having been spread over the axis? */
static bool is_bound(const TlValue *b, const TlValue *x, int64_t axis, int steps)
{
    const TlOp *op = b->def;
    if (b == x)
        return axis == NOT_SPREAD;
    if (!op || steps == 0)
        return false;
    steps--;
    if (op->opcode == TL_OP_BROADCAST)
        return is_bound(tl_in(op, 0), x, axis, steps);
    if (op->opcode == TL_OP_EXPAND)
        return axis == NOT_SPREAD &&
               is_bound(tl_in(op, 0), x, tl_attr_int(op, TL_ATTR_AXIS, 0), steps);
    if (op->opcode == TL_OP_SELECT)
        return keeps_all_but_minus_infinity(op) && is_bound(tl_in(op, 2), x, axis, steps);
    if (op->opcode == TL_OP_MAX)
        return is_bound(tl_in(op, 0), x, axis, steps) || is_bound(tl_in(op, 1), x, axis, steps);
    return op->opcode == TL_OP_REDUCE && is_maximum(op, x, axis);
}

bool tl_is_nowhere_positive(const TlValue *v)
{
    const TlOp *op = v->def;
    if (!op || !tl_is_float(v->type->dtype))
        return false;
    if (op->opcode == TL_OP_NEG) {
        const TlOp *of = tl_in(op, 0)->def;
        return of && of->opcode == TL_OP_ABS;
    }
    return op->opcode == TL_OP_SUB && is_bound(tl_in(op, 1), tl_in(op, 0), NOT_SPREAD, MOST_STEPS);
}
