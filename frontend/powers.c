/* Shorter forms of exp on GPUs, where no use tells the difference. A call of exp is made of ops
 * when it is walked, and its uses come later; so this is done once a kernel's body is there.
 *
 *     1.0 + exp(x)                  every use is a sum with a constant from 1 on: the sum is made
 *                                   at once (exp_plus of std.math): subnormal powers are lost in it
 *     exp(x - max(x))               of what is nowhere positive, where results below 2^-126 may as
 *                                   well be 0 (exp_of_negative_flushed): each use
 *       sum(e)                        is a sum in which a 1 stands, or one with such a constant,
 *       (f16)(e / sum(e) * y)         or ends, through ops that make it greater by known factors
 *                                     at most, in a cast to a type that has no such numbers
 *
 * What else a power comes to (a store, a loop's next iteration, a factor of unknown size) sees
 * it. */
#include "frontend/sema.h"

#include <math.h>

#include "ir/numeric.h"
#include "ir/rewrite.h"

/* Ops that are looked through; powers of two: nothing is known, and what 2^-126 may be multiplied
 * by and still be nothing beside a number of f16 or f8 (or 1). */
enum { MOST_STEPS = 8, UNKNOWN = 1000, MOST_FACTOR = 80 };

/* ---- how great values are: |v| <= 2^n ---- */

static int size_of(const TlSema *s, const TlValue *v, int steps);

static bool is_constant_from_one(const TlValue *v)
{
    uint64_t bits;
    v = tl_spread_from(v);
    return v->type->dtype == TL_F32 && tl_value_is_const(v, &bits) &&
           tl_bits_to_double(TL_F32, bits) >= 1.0 && !isinf(tl_bits_to_double(TL_F32, bits));
}

/* The operand beside v, if the op is the sum of v and a constant from 1 on. */
static TlValue *constant_beside(const TlOp *op, const TlValue *v)
{
    for (uint32_t i = 0; op->opcode == TL_OP_ADD && i < 2; i++)
        if (tl_in(op, i) == v && is_constant_from_one(tl_in(op, 1 - i)))
            return tl_in(op, 1 - i);
    return NULL;
}

/* Is it 1 or more, or NaN? */
static bool is_from_one(const TlSema *s, const TlValue *v)
{
    const TlOp *op = tl_spread_from(v)->def;
    if (op && op->opcode == TL_OP_ADD)
        for (uint32_t i = 0; i < 2; i++)
            if (tl_exponent(s, tl_in(op, i)) && constant_beside(op, tl_in(op, i)))
                return true;
    return op && tl_is_sum_with_one(s, op);
}

static bool has_tiny_numbers(TlDtype d) { return d == TL_F32 || d == TL_F64 || d == TL_BF16; }

static int size_of_dtype(TlDtype d)
{
    return tl_is_float(d) ? (has_tiny_numbers(d) ? UNKNOWN : 16) : (int)tl_dtype_bits(d);
}

static int size_of_op(const TlSema *s, const TlOp *op, int steps)
{
    int a = op->nin > 0 ? size_of(s, tl_in(op, 0), steps) : UNKNOWN;
    if (op->opcode == TL_OP_CAST || op->opcode == TL_OP_NEG || op->opcode == TL_OP_ABS)
        return a;
    if (op->opcode == TL_OP_DIV)
        return is_from_one(s, tl_in(op, 1)) ? a : UNKNOWN;
    if (op->opcode == TL_OP_SELECT) {
        a = size_of(s, tl_in(op, 1), steps);
        int b = size_of(s, tl_in(op, 2), steps);
        return a > b ? a : b;
    }
    return op->opcode == TL_OP_MUL ? a + size_of(s, tl_in(op, 1), steps) : UNKNOWN;
}

static int size_of(const TlSema *s, const TlValue *v, int steps)
{
    uint64_t bits;
    v = tl_spread_from(v);
    int by_type = size_of_dtype(v->type->dtype);
    const TlValue *x = tl_exponent(s, v);
    if (by_type < UNKNOWN || steps == 0 || !v->def)
        return by_type;
    if (x && tl_is_nowhere_positive(x))
        return 0;
    if (tl_value_is_const(v, &bits)) {
        double c = fabs(tl_bits_to_double(v->type->dtype, bits));
        return c <= 1 ? 0 : c < ldexp(1, MOST_FACTOR) ? ilogb(c) + 1 : UNKNOWN;
    }
    return size_of_op(s, v->def, steps - 1);
}

/* ---- who sees results below 2^-126 ---- */

static bool nobody_sees(const TlSema *s, const TlValue *v, int factor, int steps);

/* Casts to types that have no such numbers see nothing, but a way of rounding might. */
static bool cast_hides(const TlSema *s, const TlOp *cast, int factor, int steps)
{
    TlDtype to = cast->out[0]->type->dtype;
    if (!tl_is_float(to) || tl_attr(cast, TL_ATTR_ROUND))
        return false;
    return !has_tiny_numbers(to) || nobody_sees(s, cast->out[0], factor, steps);
}

static bool moves_elements(TlOpcode opcode)
{
    return opcode == TL_OP_NEG || opcode == TL_OP_BROADCAST || opcode == TL_OP_EXPAND ||
           opcode == TL_OP_RESHAPE || opcode == TL_OP_TRANS;
}

/* A sum loses nothing by it if the constant in it is not small. */
static bool sum_hides(const TlSema *s, const TlValue *v, const TlOp *sum, int factor, int steps)
{
    return (tl_exponent(s, v) && constant_beside(sum, v)) ||
           nobody_sees(s, sum->out[0], factor + 1, steps);
}

/* 2^factor is what the value has been multiplied by at most since it was a power. */
static bool use_hides(const TlSema *s, const TlValue *v, const TlOp *op, int factor, int steps)
{
    bool first = tl_in(op, 0) == v;
    if (op->opcode == TL_OP_REDUCE)
        return tl_exponent(s, v) && tl_is_sum_with_one(s, op);
    if (op->opcode == TL_OP_CAST)
        return cast_hides(s, op, factor, steps);
    if (op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB)
        return sum_hides(s, v, op, factor, steps);
    if (op->opcode == TL_OP_MUL) {
        const TlValue *by = tl_in(op, first ? 1 : 0);
        factor += size_of(s, by, MOST_STEPS);
        return by != v && nobody_sees(s, op->out[0], factor, steps);
    }
    bool passes = op->opcode == TL_OP_SELECT ? !first
                  : op->opcode == TL_OP_DIV  ? first && is_from_one(s, tl_in(op, 1))
                                             : moves_elements(op->opcode);
    return passes && nobody_sees(s, op->out[0], factor, steps);
}

static bool nobody_sees(const TlSema *s, const TlValue *v, int factor, int steps)
{
    if (steps == 0 || factor > MOST_FACTOR)
        return false;
    for (const TlUse *u = v->uses; u; u = u->next)
        if (!use_hides(s, v, u->user, factor, steps - 1))
            return false;
    return true;
}

/* ---- the forms ---- */

static bool is_in_sums_alone(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next)
        if (!constant_beside(u->user, v))
            return false;
    return v->uses != NULL;
}

static TlValue *replace(TlSema *s, TlValue *v, const char *form, uint32_t n, const TlVal *args)
{
    s->b = tl_builder_before(v->def);
    TlVal r = tl_call_std(s, "std.math", form, n, args, v->def->loc);
    if (r.kind != TL_VAL_IR)
        return v;
    tl_replace_uses(v, r.u.ir);
    return r.u.ir;
}

static void shorten(TlSema *s, TlValue *v, TlValue *x)
{
    TlVal args[2] = {tl_val_ir(x)};
    if (is_in_sums_alone(v)) {
        while (v->uses) {
            TlOp *sum = v->uses->user;
            args[1] = tl_val_ir(constant_beside(sum, v));
            if (replace(s, sum->out[0], "exp_plus", 2, args) == sum->out[0])
                return;
            tl_op_erase(sum);
        }
    } else if (tl_is_nowhere_positive(x) && nobody_sees(s, v, 0, MOST_STEPS)) {
        tl_remember_exp(s, replace(s, v, "exp_of_negative_flushed", 1, args), x);
    }
}

/* One of a GPU's two long forms: the product of two powers. */
static bool is_long(const TlValue *v)
{
    const TlOp *op = v->def;
    const TlOp *power = op && op->opcode == TL_OP_MUL ? tl_in(op, 0)->def : NULL;
    return power && power->opcode == TL_OP_EXP2 && v->type->dtype == TL_F32;
}

void tl_shorten_powers(TlSema *s)
{
    TlBuilder at = s->b;
    for (TlOp *op = s->b.fn->body->first; op && !s->abstract; op = tl_walk_next(op, NULL)) {
        TlValue *v = op->nout == 1 ? op->out[0] : NULL;
        TlValue *x = v ? tl_exponent(s, v) : NULL;
        if (x && is_long(v) && x->type == v->type)
            shorten(s, v, x);
    }
    s->b = at;
}
