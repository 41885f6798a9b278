/* Rules of canonicalize for arithmetic, comparisons and select. What holds for floats holds for all
 * of them, zeros of both signs and infinities included; "ints" stands for integers and, where the
 * op takes it, bool. */
#include "ir/numeric.h"
#include "passes/simplify/canon.h"
#include <math.h>

static TlDtype dtype(const Canon *c)
{
    return canon_in(c, 0)->type->dtype;
}
static bool on_floats(const Canon *c)
{
    return tl_is_float(dtype(c));
}

static uint64_t ones(TlDtype d)
{
    if (tl_is_bool(d))
        return 1;
    return tl_dtype_bits(d) == 64 ? ~0ull : (1ull << tl_dtype_bits(d)) - 1;
}
static uint64_t sign_bit(TlDtype d)
{
    return 1ull << (tl_dtype_bits(d) - 1);
}
static uint64_t one(TlDtype d)
{
    return tl_is_float(d) ? tl_dtype_one_bits(d) : 1;
}
static uint64_t minus_one(TlDtype d)
{
    return tl_is_float(d) ? one(d) | sign_bit(d) : ones(d);
}

static bool is_bits(const TlValue *v, uint64_t want)
{
    uint64_t bits;
    return canon_is_const(v, &bits) && bits == want;
}
static bool is_zero(const TlValue *v)
{
    return is_bits(v, 0);
} /* +0 of floats */
static bool is_negative_zero(const TlValue *v)
{
    return is_bits(v, sign_bit(v->type->dtype));
}

static TlValue *negated(const TlValue *v)
{
    TlOp *op = canon_def(v, TL_OP_NEG);
    return op ? tl_in(op, 0) : NULL;
}

static TlValue *binary(Canon *c, TlOpcode opcode, TlValue *x, TlValue *y)
{
    return tl_binary(&c->b, opcode, x, y);
}

/* A value with v's magnitude and, for all elements, v's sign or the other: of -x it is x, of x * -c
 * it is x * c. NULL if there is none that is simpler. f(x) and f(-x) then share their parts. */
static TlValue *without_sign(Canon *c, TlValue *v)
{
    TlOp *mul = canon_def(v, TL_OP_MUL);
    uint64_t bits;
    if (negated(v))
        return negated(v);
    if (!mul || !tl_is_float(v->type->dtype) || !canon_is_const(tl_in(mul, 1), &bits) ||
        !(bits & sign_bit(v->type->dtype)))
        return NULL;
    return binary(c, TL_OP_MUL, tl_in(mul, 0), tl_unary(&c->b, TL_OP_NEG, tl_in(mul, 1)));
}

/* op(op(x, c1), c2) is op(x, op(c1, c2)); the inner one folds at the next visit. */
static TlValue *reassociate(Canon *c)
{
    TlOp *inner = canon_def(canon_in(c, 0), c->op->opcode);
    if (!inner || !canon_is_const(canon_in(c, 1), NULL) || !canon_is_const(tl_in(inner, 1), NULL))
        return NULL;
    return binary(c, c->op->opcode, tl_in(inner, 0),
                  binary(c, c->op->opcode, tl_in(inner, 1), canon_in(c, 1)));
}

/* ---- sums and products ---- */

/* a, of (a / n) * n and a % n. */
static TlValue *divided(const TlValue *x, const TlValue *y)
{
    TlOp *mul = canon_def(x, TL_OP_MUL), *rem = canon_def(y, TL_OP_REM);
    TlOp *div = mul ? canon_def(tl_in(mul, 0), TL_OP_DIV) : NULL;
    uint64_t by, times, n;
    bool are = div && rem && tl_in(div, 0) == tl_in(rem, 0) &&
               canon_is_const(tl_in(div, 1), &by) && canon_is_const(tl_in(mul, 1), &times) &&
               canon_is_const(tl_in(rem, 1), &n);
    return are && by == times && by == n && by != 0 ? tl_in(rem, 0) : NULL;
}

static TlValue *rule_add(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    if (on_floats(c) ? is_negative_zero(y) : is_zero(y))
        return x;
    if (negated(y))
        return binary(c, TL_OP_SUB, x, negated(y));
    if (negated(x))
        return binary(c, TL_OP_SUB, y, negated(x));
    if (on_floats(c))
        return NULL;
    if (divided(x, y) || divided(y, x))
        return divided(x, y) ? divided(x, y) : divided(y, x);
    TlOp *sub = canon_def(x, TL_OP_SUB); /* (c1 - x) + c2 */
    if (sub && canon_is_const(y, NULL) && canon_is_const(tl_in(sub, 0), NULL))
        return binary(c, TL_OP_SUB, binary(c, TL_OP_ADD, tl_in(sub, 0), y), tl_in(sub, 1));
    return reassociate(c);
}

static TlValue *rule_sub(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    if (is_zero(y))
        return x;
    if (on_floats(c) ? is_negative_zero(x) : is_zero(x))
        return tl_unary(&c->b, TL_OP_NEG, y);
    if (negated(y))
        return binary(c, TL_OP_ADD, x, negated(y));
    if (on_floats(c))
        return NULL;
    if (x == y)
        return canon_const(c, 0);
    if (canon_is_const(y, NULL))
        return binary(c, TL_OP_ADD, x, tl_unary(&c->b, TL_OP_NEG, y));
    return NULL;
}

static TlValue *rule_mul(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    if (is_bits(y, one(dtype(c))))
        return x;
    if (is_bits(y, minus_one(dtype(c))))
        return tl_unary(&c->b, TL_OP_NEG, x);
    if (negated(x) && negated(y))
        return binary(c, TL_OP_MUL, negated(x), negated(y));
    if (negated(x) && canon_is_const(y, NULL))
        return binary(c, TL_OP_MUL, negated(x), tl_unary(&c->b, TL_OP_NEG, y));
    if (on_floats(c)) {
        TlValue *root = x == y ? without_sign(c, x) : NULL;
        return root ? binary(c, TL_OP_MUL, root, root) : NULL;
    }
    return is_zero(y) ? canon_const(c, 0) : reassociate(c);
}

/* log2 of an unsigned constant, or -1. */
static int power_of_two(const TlValue *v)
{
    uint64_t bits;
    if (tl_is_signed(v->type->dtype) || !canon_is_const(v, &bits) || bits == 0 || bits & (bits - 1))
        return -1;
    int n = 0;
    while (bits >>= 1)
        n++;
    return n;
}

/* 1 / y if y and 1 / y are powers of two: then x * (1 / y) equals x / y, with the same single
 * rounding. */
static bool exact_reciprocal(TlDtype d, uint64_t bits, uint64_t *out)
{
    double y = tl_bits_to_double(d, bits), r = 1 / y;
    int exponent;
    *out = tl_bits_from_double(d, r);
    bool power = y != 0 && y - y == 0 && fabs(frexp(y, &exponent)) == 0.5; /* 1/3 * 3 rounds to 1 */
    return power && r - r == 0 && tl_bits_to_double(d, *out) == r;
}

static TlValue *rule_div(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    uint64_t bits, reciprocal;
    if (is_bits(y, one(dtype(c))))
        return x;
    if (on_floats(c)) {
        if (!canon_is_const(y, &bits) || !exact_reciprocal(dtype(c), bits, &reciprocal))
            return NULL;
        return binary(c, TL_OP_MUL, x, tl_const_bits(&c->b, y->type, reciprocal));
    }
    int shift = power_of_two(y);
    return shift < 0 ? NULL : binary(c, TL_OP_SHR, x, tl_const_int(&c->b, y->type, shift));
}

static TlValue *rule_rem(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    if (on_floats(c))
        return NULL;
    if (is_bits(y, 1))
        return canon_const(c, 0);
    int shift = power_of_two(y);
    return shift < 0 ? NULL
                     : binary(c, TL_OP_AND, x, tl_const_bits(&c->b, y->type, (1ull << shift) - 1));
}

static TlValue *rule_neg(Canon *c)
{
    TlValue *x = canon_in(c, 0);
    if (negated(x))
        return negated(x);
    TlOp *sub = canon_def(x, TL_OP_SUB); /* not for floats: 1 - 1 is +0 in either order */
    return sub && !on_floats(c) ? binary(c, TL_OP_SUB, tl_in(sub, 1), tl_in(sub, 0)) : NULL;
}

static TlValue *rule_abs(Canon *c)
{
    TlValue *x = canon_in(c, 0);
    if (tl_dtype_kind(dtype(c)) == TL_KIND_U || canon_def(x, TL_OP_ABS))
        return x;
    TlValue *same = without_sign(c, x);
    return same ? tl_unary(&c->b, TL_OP_ABS, same) : NULL;
}

/* Rounding a value that is already an integer. */
static TlValue *rule_round(Canon *c)
{
    TlValue *x = canon_in(c, 0);
    TlOpcode made_by = x->def ? x->def->opcode : TL_OP_COUNT;
    bool is_round = made_by == TL_OP_FLOOR || made_by == TL_OP_CEIL || made_by == TL_OP_TRUNC ||
                    made_by == TL_OP_RINT || made_by == TL_OP_ROUND;
    return is_round ? x : NULL;
}

static TlValue *rule_fma(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1), *z = canon_in(c, 2);
    if (canon_is_const(x, NULL) && !canon_is_const(y, NULL))
        return tl_fma(&c->b, y, x, z);
    if (is_bits(y, one(dtype(c))))
        return binary(c, TL_OP_ADD, x, z);
    if (is_bits(y, minus_one(dtype(c))))
        return binary(c, TL_OP_SUB, z, x);
    if (is_negative_zero(z))
        return binary(c, TL_OP_MUL, x, y);
    if (negated(x) && negated(y))
        return tl_fma(&c->b, negated(x), negated(y), z);
    if (negated(x) && canon_is_const(y, NULL))
        return tl_fma(&c->b, negated(x), tl_unary(&c->b, TL_OP_NEG, y), z);
    return NULL;
}

/* ---- bits and order ---- */

/* of(x, x) and of(x, neutral) are x, of(x, zero) is that zero. */
static TlValue *rule_lattice(Canon *c, uint64_t neutral, uint64_t zero)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    if (x == y || is_bits(y, neutral))
        return x;
    return is_bits(y, zero) ? y : reassociate(c);
}

static TlValue *rule_and(Canon *c)
{
    return rule_lattice(c, ones(dtype(c)), 0);
}

static TlValue *rule_or(Canon *c)
{
    return rule_lattice(c, 0, ones(dtype(c)));
}

static TlValue *rule_xor(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    if (is_zero(y))
        return x;
    if (x == y)
        return canon_const(c, 0);
    return is_bits(y, ones(dtype(c))) ? tl_unary(&c->b, TL_OP_NOT, x) : reassociate(c);
}

static TlValue *rule_shift(Canon *c)
{
    uint64_t bits;
    bool none =
        canon_is_const(canon_in(c, 1), &bits) && bits % (uint64_t)tl_dtype_bits(dtype(c)) == 0;
    return none ? canon_in(c, 0) : NULL;
}

static TlOpcode opposite(TlOpcode opcode)
{
    static const TlOpcode OF[TL_OP_COUNT] = {
        [TL_OP_EQ] = TL_OP_NE, [TL_OP_NE] = TL_OP_EQ, [TL_OP_LT] = TL_OP_GE,
        [TL_OP_GE] = TL_OP_LT, [TL_OP_LE] = TL_OP_GT, [TL_OP_GT] = TL_OP_LE};
    return opcode >= TL_OP_EQ && opcode <= TL_OP_GE ? OF[opcode] : TL_OP_COUNT;
}

static TlValue *rule_not(Canon *c)
{
    TlOp *x = canon_in(c, 0)->def;
    if (!x)
        return NULL;
    if (x->opcode == TL_OP_NOT)
        return tl_in(x, 0);
    TlOpcode other = opposite(x->opcode);
    if (other == TL_OP_COUNT || tl_use_count(x->out[0]) != 1)
        return NULL;
    bool ordered =
        x->opcode != TL_OP_EQ && x->opcode != TL_OP_NE; /* of NaN neither < nor >= holds */
    if (ordered && tl_is_float(tl_in(x, 0)->type->dtype))
        return NULL;
    return binary(c, other, tl_in(x, 0), tl_in(x, 1));
}

/* The least (or greatest) value of integers. */
static bool is_least(const TlValue *v)
{
    return is_bits(v, tl_dtype_min_bits(v->type->dtype));
}
static bool is_greatest(const TlValue *v)
{
    return is_bits(v, tl_dtype_max_bits(v->type->dtype));
}

static TlValue *rule_extremum(Canon *c)
{
    TlDtype d = dtype(c);
    if (on_floats(c))
        return canon_in(c, 0) == canon_in(c, 1) ? canon_in(c, 0) : reassociate(c);
    uint64_t least = tl_dtype_min_bits(d), greatest = tl_dtype_max_bits(d);
    return c->op->opcode == TL_OP_MIN ? rule_lattice(c, greatest, least)
                                      : rule_lattice(c, least, greatest);
}

static TlValue *rule_equal(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    bool eq = c->op->opcode == TL_OP_EQ;
    uint64_t bits;
    if (!on_floats(c) && x == y)
        return canon_const(c, eq);
    if (!tl_is_bool(dtype(c)) || !canon_is_const(y, &bits))
        return NULL;
    return (bits == 1) == eq ? x : tl_unary(&c->b, TL_OP_NOT, x);
}

static TlValue *rule_order(Canon *c)
{
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    TlOpcode op = c->op->opcode;
    if (on_floats(c) || tl_is_bool(dtype(c)))
        return NULL;
    if (x == y)
        return canon_const(c, op == TL_OP_LE || op == TL_OP_GE);
    if (is_least(y) && op == TL_OP_LT)
        return canon_const(c, 0);
    if (is_least(y) && op == TL_OP_GE)
        return canon_const(c, 1);
    if (is_greatest(y) && op == TL_OP_GT)
        return canon_const(c, 0);
    if (is_greatest(y) && op == TL_OP_LE)
        return canon_const(c, 1);
    return NULL;
}

/* ---- select ---- */

/* c ? x : y of bool is logic. Only where the condition has the result's shape. */
static TlValue *select_of_bool(Canon *c)
{
    TlValue *cond = canon_in(c, 0), *x = canon_in(c, 1), *y = canon_in(c, 2);
    if (cond->type != canon_type(c))
        return NULL;
    bool true_x = is_bits(x, 1), false_x = is_bits(x, 0), true_y = is_bits(y, 1),
         false_y = is_bits(y, 0);
    if (true_x && false_y)
        return cond;
    if (false_x && true_y)
        return tl_unary(&c->b, TL_OP_NOT, cond);
    if (true_x)
        return binary(c, TL_OP_OR, cond, y);
    if (false_y)
        return binary(c, TL_OP_AND, cond, x);
    return NULL;
}

/* x < y ? x : y of integers. */
static TlValue *select_is_min(Canon *c)
{
    TlOp *cmp = canon_in(c, 0)->def;
    TlValue *x = canon_in(c, 1), *y = canon_in(c, 2);
    if (!cmp || canon_type(c)->ptr || tl_is_float(canon_type(c)->dtype) ||
        tl_is_bool(canon_type(c)->dtype))
        return NULL;
    bool less = cmp->opcode == TL_OP_LT || cmp->opcode == TL_OP_LE,
         more = cmp->opcode == TL_OP_GT || cmp->opcode == TL_OP_GE;
    if (!less && !more)
        return NULL;
    bool straight = tl_in(cmp, 0) == x && tl_in(cmp, 1) == y,
         crossed = tl_in(cmp, 0) == y && tl_in(cmp, 1) == x;
    if (!straight && !crossed)
        return NULL;
    return binary(c, less == straight ? TL_OP_MIN : TL_OP_MAX, x, y);
}

static TlValue *rule_select(Canon *c)
{
    TlValue *cond = canon_in(c, 0), *x = canon_in(c, 1), *y = canon_in(c, 2), *v;
    uint64_t bits;
    if (canon_is_const(cond, &bits))
        return bits ? x : y;
    if (x == y)
        return x;
    if (!canon_type(c)->ptr && canon_is_const(x, &bits) && is_bits(y, bits))
        return x;
    TlOp *inverse = canon_def(cond, TL_OP_NOT), *splat = canon_def(cond, TL_OP_BROADCAST);
    if (inverse)
        return tl_select(&c->b, tl_in(inverse, 0), y, x);
    if (splat && tl_in(splat, 0)->type->rank == 0)
        return tl_select(&c->b, tl_in(splat, 0), x, y);
    TlOp *inner = canon_def(x, TL_OP_SELECT);
    if (inner && tl_in(inner, 0) == cond)
        return tl_select(&c->b, cond, tl_in(inner, 1), y);
    inner = canon_def(y, TL_OP_SELECT);
    if (inner && tl_in(inner, 0) == cond)
        return tl_select(&c->b, cond, x, tl_in(inner, 2));
    if (!canon_type(c)->ptr && tl_is_bool(canon_type(c)->dtype) && (v = select_of_bool(c)))
        return v;
    return select_is_min(c);
}

const CanonRow canon_arith_rows[] = {
    {TL_OP_ADD, rule_add},        {TL_OP_SUB, rule_sub},        {TL_OP_MUL, rule_mul},
    {TL_OP_DIV, rule_div},        {TL_OP_REM, rule_rem},        {TL_OP_NEG, rule_neg},
    {TL_OP_ABS, rule_abs},        {TL_OP_FLOOR, rule_round},    {TL_OP_CEIL, rule_round},
    {TL_OP_TRUNC, rule_round},    {TL_OP_RINT, rule_round},     {TL_OP_ROUND, rule_round},
    {TL_OP_FMA, rule_fma},        {TL_OP_AND, rule_and},        {TL_OP_OR, rule_or},
    {TL_OP_XOR, rule_xor},        {TL_OP_SHL, rule_shift},      {TL_OP_SHR, rule_shift},
    {TL_OP_NOT, rule_not},        {TL_OP_MIN, rule_extremum},   {TL_OP_MAX, rule_extremum},
    {TL_OP_MIN_NAN, reassociate}, {TL_OP_MAX_NAN, reassociate}, {TL_OP_EQ, rule_equal},
    {TL_OP_NE, rule_equal},       {TL_OP_LT, rule_order},       {TL_OP_LE, rule_order},
    {TL_OP_GT, rule_order},       {TL_OP_GE, rule_order},       {TL_OP_SELECT, rule_select},
    {TL_OP_CONST, NULL}};
