/* Which kinds of numbers float values may have (float_kinds.h).
 *
 *     %m = const {value = -inf}                 no NaN, no zero
 *     %n = max %m, %x                           no NaN: one that loses is never the result
 *
 * Sets grow from nothing, so that what a loop carries is what it begins with and what the loop
 * makes of that. */
#include <math.h>

#include "ir/numeric.h"
#include "passes/analysis/float_kinds.h"

enum { ZEROS = TL_MAY_BE_PLUS_ZERO | TL_MAY_BE_MINUS_ZERO };

static TlFloatKinds of_const(const TlOp *op)
{
    double x = tl_bits_to_double(op->out[0]->type->dtype, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    if (isnan(x))
        return TL_MAY_BE_NAN;
    return x != 0 ? 0 : signbit(x) ? TL_MAY_BE_MINUS_ZERO : TL_MAY_BE_PLUS_ZERO;
}

static TlFloatKinds negated(TlFloatKinds x)
{
    return (TlFloatKinds)((x & TL_MAY_BE_NAN) |
                          (x & TL_MAY_BE_PLUS_ZERO ? TL_MAY_BE_MINUS_ZERO : 0) |
                          (x & TL_MAY_BE_MINUS_ZERO ? TL_MAY_BE_PLUS_ZERO : 0));
}

/* Rounding to another format may make zeros, and NaN where that has no infinity. */
static TlFloatKinds of_cast(const TlOp *op, TlFloatKinds x)
{
    TlDtype from = tl_in(op, 0)->type->dtype, to = op->out[0]->type->dtype;
    if (!tl_is_float(from))
        return TL_MAY_BE_PLUS_ZERO | (tl_dtype_bits(to) < 16 ? TL_MAY_BE_NAN : 0);
    return tl_dtype_bits(to) < 16 ? TL_MAY_BE_ANY : (TlFloatKinds)(x | ZEROS);
}

/* LLVM takes x * 1 and the like for x, so that a signaling NaN may stay one. */
static TlFloatKinds of_arithmetic(const TlOp *op, const TlFloatKinds *kinds)
{
    TlFloatKinds all = 0;
    bool by_const = false;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlOp *x = tl_in(op, i)->def;
        by_const |= x && x->opcode == TL_OP_CONST;
        all |= kinds[tl_in(op, i)->id];
    }
    return (TlFloatKinds)(TL_MAY_BE_QUIET | ZEROS | (by_const ? all & TL_MAY_BE_SIGNALING : 0));
}

static bool rounds(TlOpcode o)
{
    return o == TL_OP_FLOOR || o == TL_OP_CEIL || o == TL_OP_TRUNC || o == TL_OP_RINT ||
           o == TL_OP_ROUND;
}

static TlFloatKinds of_elements(const TlOp *op, const TlFloatKinds *kinds)
{
    TlOpcode o = op->opcode;
    TlFloatKinds a = kinds[tl_in(op, 0)->id], b = op->nin > 1 ? kinds[tl_in(op, 1)->id] : 0;
    if (o == TL_OP_MIN || o == TL_OP_MAX) { /* NaN only where both are: one of them */
        bool nan = a & TL_MAY_BE_NAN && b & TL_MAY_BE_NAN;
        return (TlFloatKinds)((a | b) & (nan ? TL_MAY_BE_ANY : ZEROS));
    }
    if (o == TL_OP_MIN_NAN || o == TL_OP_MAX_NAN)
        return a | b;
    if (o == TL_OP_SELECT)
        return b | kinds[tl_in(op, 2)->id];
    if (o == TL_OP_NEG)
        return negated(a);
    if (o == TL_OP_ABS)
        return (TlFloatKinds)((a & TL_MAY_BE_NAN) | (a & ZEROS ? TL_MAY_BE_PLUS_ZERO : 0));
    if (rounds(o))
        return a | ZEROS;
    if (o == TL_OP_EXP2)
        return (TlFloatKinds)((a & TL_MAY_BE_NAN ? TL_MAY_BE_QUIET : 0) | TL_MAY_BE_PLUS_ZERO);
    if (o == TL_OP_CAST)
        return of_cast(op, a);
    return o == TL_OP_BITCAST || o == TL_OP_ASM ? TL_MAY_BE_ANY : of_arithmetic(op, kinds);
}

/* Of an op's only result. */
static TlFloatKinds of_op(const TlOp *op, const TlFloatKinds *kinds)
{
    if (op->opcode == TL_OP_CONST)
        return of_const(op);
    if (tl_op_info(op->opcode)->flags & F_VIEWLIKE || op->opcode == TL_OP_CONVERT ||
        op->opcode == TL_OP_REGROUP)
        return kinds[tl_in(op, 0)->id];
    if (op->opcode == TL_OP_GATHER)
        return kinds[tl_in(op, 0)->id] | TL_MAY_BE_PLUS_ZERO;
    return tl_op_info(op->opcode)->flags & F_ELEM ? of_elements(op, kinds) : TL_MAY_BE_ANY;
}

static bool is_float_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && !v->type->ptr && tl_is_float(v->type->dtype);
}

static bool add(TlFloatKinds *kinds, const TlValue *to, TlFloatKinds more)
{
    TlFloatKinds old = kinds[to->id];
    kinds[to->id] |= more;
    return kinds[to->id] != old;
}

/* What is carried comes from where it flows from; a loop's results are what it carried last. */
static bool add_flows(TlFloatKinds *kinds, const TlOp *op)
{
    bool grows = false;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *to = tl_flows_to(op, i);
        if (to && is_float_tile(to))
            grows |= add(kinds, to, kinds[tl_in(op, i)->id]);
    }
    for (uint32_t k = 0; k < op->nout; k++) {
        const TlValue *last = op->opcode == TL_OP_FOR     ? op->regions[0]->args[k + 1]
                              : op->opcode == TL_OP_WHILE ? op->regions[1]->args[k]
                                                          : NULL;
        if (last)
            grows |= add(kinds, op->out[k], kinds[last->id]);
    }
    return grows;
}

/* Regions of loops and branches carry; those of others are called with anything. */
static void set_arguments(TlFloatKinds *kinds, const TlFn *fn)
{
    for (uint32_t i = 0; i < fn->body->nargs; i++)
        kinds[fn->body->args[i]->id] = TL_MAY_BE_ANY;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool carries =
            op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE || op->opcode == TL_OP_IF;
        for (uint32_t r = 0; r < op->nregions && !carries; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                kinds[op->regions[r]->args[i]->id] = TL_MAY_BE_ANY;
    }
}

const TlFloatKinds *tl_float_kinds(const TlFn *fn, TlArena *arena)
{
    TlFloatKinds *kinds = TL_NEW_ARRAY(arena, TlFloatKinds, fn->nvalues + 1);
    set_arguments(kinds, fn);
    for (bool grows = true; grows;) {
        grows = false;
        for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
            bool is_flow =
                op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE || op->opcode == TL_OP_IF;
            grows |= add_flows(kinds, op);
            for (uint32_t k = 0; k < op->nout && !is_flow; k++)
                if (is_float_tile(op->out[k]))
                    grows |=
                        add(kinds, op->out[k], op->nout == 1 ? of_op(op, kinds) : TL_MAY_BE_ANY);
        }
    }
    return kinds;
}
