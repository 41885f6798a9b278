/* Elementwise built-in functions: choosing, integers, math, casts. Given literals or constants,
 * they return the same. */
#include "frontend/sema.h"
#include <math.h>
#include <string.h>

static TlVal refuse(TlSema *s, TlCall *c, const char *type)
{
    tl_err(s, c->loc, TL_E0316, c->fn->name, type);
    return tl_bad();
}

/* All n slots in one type and shape. kinds: the elements that are accepted: 'i' integers, 'f'
 * floats, 'n' both. */
static bool operands(TlSema *s, TlCall *c, uint32_t n, char kinds, TlValue **x, TlVal *bad)
{
    TL_ASSERT(n > 0 && n <= c->nslots, "%u operands of %s", n, c->fn->name);
    TlVal vals[3];
    for (uint32_t i = 0; i < n; i++)
        vals[i] = c->val[i];
    if (!tl_unify(s, n, vals, c->vloc, c->loc, c->fn->name, x, bad))
        return false;
    TlDtype d = x[0]->type->dtype;
    bool ok = d != TL_BOOL && !tl_is_storage_only(d) &&
              (kinds == 'n' || (kinds == 'i' ? tl_is_int(d) : tl_is_float(d)));
    if (ok)
        return true;
    TlDiag *row = tl_err(s, c->loc, TL_E0316, c->fn->name, tl_type_str(s->ctx, x[0]->type));
    if (kinds == 'f' && tl_is_int(d))
        tl_label(s, row, "cast to a float type first");
    *bad = tl_bad();
    return false;
}

/* ---- folding ---- */

/* All slots known to the compiler and brought to one kind: literals, or constants of one type. */
static bool known(TlSema *s, TlCall *c, uint32_t n, TlVal *out)
{
    TlDtype d = TL_DTYPE_COUNT;
    if (!tl_known_to_floats(s, n, c->val, c->vloc))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = c->val[i];
        if (!tl_is_literal(&out[i]) && out[i].kind != TL_VAL_CONST)
            return false;
        if (out[i].kind != TL_VAL_CONST)
            continue;
        TlDtype own = out[i].dtype;
        if (own == TL_BOOL || (d != TL_DTYPE_COUNT && !tl_common_dtype(d, own, &own)))
            return false;
        d = own;
    }
    for (uint32_t i = 0; i < n && d != TL_DTYPE_COUNT; i++) {
        TlVal v = tl_convert_dtype(s, &out[i], d, c->vloc[i]);
        if (v.kind != TL_VAL_CONST)
            return false;
        out[i] = v;
    }
    return true;
}

static bool less(const TlVal *a, const TlVal *b)
{
    if (a->kind == TL_VAL_INT && b->kind == TL_VAL_INT)
        return a->u.integer < b->u.integer;
    if (a->kind == TL_VAL_CONST && tl_is_int(a->dtype)) {
        if (a->dtype == TL_U64)
            return a->u.bits < b->u.bits;
        return tl_bits_to_int(a->dtype, a->u.bits) < tl_bits_to_int(b->dtype, b->u.bits);
    }
    double x = tl_const_number(a), y = tl_const_number(b);
    if (x == 0 && y == 0)
        return signbit(x) > signbit(y);
    return x < y;
}

static bool is_nan_val(const TlVal *v)
{
    return (v->kind == TL_VAL_FLOAT || (v->kind == TL_VAL_CONST && tl_is_float(v->dtype))) &&
           isnan(tl_const_number(v));
}

static TlVal pick_known(const TlVal *a, const TlVal *b, bool max)
{
    if (is_nan_val(a))
        return *b;
    if (is_nan_val(b))
        return *a;
    return less(a, b) == max ? *b : *a;
}

/* ---- min, max, clamp, abs, sign ---- */

TlVal tl_bi_elem_binary(TlSema *s, TlCall *c)
{
    TlVal k[2], bad;
    TlValue *x[2];
    int op = c->fn->data;
    if ((op == TL_OP_MIN || op == TL_OP_MAX) && known(s, c, 2, k))
        return pick_known(&k[0], &k[1], op == TL_OP_MAX);
    char kinds = op == TL_OP_MULHI ? 'i' : op == TL_OP_MIN_NAN || op == TL_OP_MAX_NAN ? 'f' : 'n';
    if (!operands(s, c, 2, kinds, x, &bad))
        return bad;
    return tl_val_ir(tl_binary(&s->b, (TlOpcode)op, x[0], x[1]));
}

TlVal tl_bi_elem_clamp(TlSema *s, TlCall *c)
{
    TlVal k[3], bad;
    TlValue *x[3];
    if (known(s, c, 3, k)) {
        TlVal low = pick_known(&k[0], &k[1], true);
        return pick_known(&low, &k[2], false);
    }
    if (!operands(s, c, 3, 'n', x, &bad))
        return bad;
    return tl_val_ir(tl_binary(&s->b, TL_OP_MIN, tl_binary(&s->b, TL_OP_MAX, x[0], x[1]), x[2]));
}

TlVal tl_bi_elem_abs(TlSema *s, TlCall *c)
{
    TlVal k[1], bad;
    TlValue *x[1];
    if (known(s, c, 1, k)) {
        TlVal zero = k[0].kind == TL_VAL_CONST ? tl_val_const(k[0].dtype, 0) : tl_val_int(0);
        bool negative =
            k[0].kind == TL_VAL_FLOAT || (k[0].kind == TL_VAL_CONST && tl_is_float(k[0].dtype))
                ? signbit(tl_const_number(&k[0])) != 0
                : less(&k[0], &zero);
        return negative ? tl_fold_unary(s, '-', &k[0], c->loc) : k[0];
    }
    if (!operands(s, c, 1, 'n', x, &bad))
        return bad;
    if (tl_dtype_kind(x[0]->type->dtype) == TL_KIND_U)
        return tl_val_ir(x[0]);
    return tl_val_ir(tl_unary(&s->b, TL_OP_ABS, x[0]));
}

/* 1, -1, or x itself (zeros and NaN) */
TlVal tl_bi_elem_sign(TlSema *s, TlCall *c)
{
    TlVal bad;
    TlValue *x[1];
    if (!operands(s, c, 1, 'n', x, &bad))
        return bad;
    const TlType *t = x[0]->type;
    TlValue *zero = tl_const_bits(&s->b, t, 0),
            *one = tl_const_bits(&s->b, t, tl_dtype_one_bits(t->dtype));
    TlValue *r = tl_select(&s->b, tl_binary(&s->b, TL_OP_GT, x[0], zero), one, x[0]);
    if (tl_dtype_kind(t->dtype) == TL_KIND_U)
        return tl_val_ir(r);
    TlValue *minus = tl_const_int(&s->b, t, -1);
    return tl_val_ir(tl_select(&s->b, tl_binary(&s->b, TL_OP_LT, x[0], zero), minus, r));
}

TlVal tl_bi_elem_is(TlSema *s, TlCall *c)
{
    TlVal k[1], bad;
    TlValue *x[1];
    if (known(s, c, 1, k) && (k[0].kind == TL_VAL_FLOAT || k[0].kind == TL_VAL_CONST)) {
        double v = tl_const_number(&k[0]);
        if (k[0].kind == TL_VAL_FLOAT || tl_is_float(k[0].dtype))
            return tl_val_bool(c->fn->data ? isinf(v) : isnan(v));
    }
    if (!operands(s, c, 1, 'f', x, &bad))
        return bad;
    if (!c->fn->data)
        return tl_val_ir(tl_binary(&s->b, TL_OP_NE, x[0], x[0]));
    const TlType *t = x[0]->type;
    TlValue *infinite = tl_const_bits(&s->b, t, tl_bits_from_double(t->dtype, (double)INFINITY));
    return tl_val_ir(tl_binary(&s->b, TL_OP_EQ, tl_unary(&s->b, TL_OP_ABS, x[0]), infinite));
}

/* ---- integers ---- */

/* The least or the greatest number of an integer type. */
static TlInt limit_of(TlDtype d, bool greatest)
{
    TlInt above = (TlInt)1 << (tl_dtype_bits(d) - tl_is_signed(d));
    return greatest ? above - 1 : tl_is_signed(d) ? -above : 0;
}

static bool are_integers(uint32_t n, const TlVal *v)
{
    bool ok = true;
    for (uint32_t i = 0; i < n; i++)
        ok &= v[i].kind == TL_VAL_INT || (v[i].kind == TL_VAL_CONST && tl_is_int(v[i].dtype));
    return ok;
}

static TlInt integer_of(const TlVal *v)
{
    if (v->kind == TL_VAL_INT)
        return v->u.integer;
    return v->dtype == TL_U64 ? (TlInt)v->u.bits : (TlInt)tl_bits_to_int(v->dtype, v->u.bits);
}

static TlVal typed_integer(TlDtype d, TlInt v)
{
    return tl_val_const(d, tl_bits_from_int(d, (int64_t)(uint64_t)v));
}

/* The ceiling of a / b for b > 0: the quotient toward zero, plus one if a positive remainder is
 * left. */
TlVal tl_bi_elem_cdiv(TlSema *s, TlCall *c)
{
    TlVal k[2], bad;
    TlValue *x[2];
    if (known(s, c, 2, k) && k[0].kind != TL_VAL_FLOAT && k[1].kind != TL_VAL_FLOAT &&
        (k[0].kind == TL_VAL_INT || tl_is_int(k[0].dtype))) {
        TlVal zero = k[0].kind == TL_VAL_INT ? tl_val_int(0) : tl_val_const(k[0].dtype, 0);
        TlVal q = k[0].kind == TL_VAL_INT ? tl_fold_literals(s, TL_BIN_DIV, &k[0], &k[1], c->loc)
                                          : tl_fold_consts(s, TL_BIN_DIV, &k[0], &k[1], c->loc);
        if (tl_is_bad(&q))
            return q;
        TlVal r = k[0].kind == TL_VAL_INT ? tl_fold_literals(s, TL_BIN_REM, &k[0], &k[1], c->loc)
                                          : tl_fold_consts(s, TL_BIN_REM, &k[0], &k[1], c->loc);
        if (!less(&zero, &r))
            return q;
        TlVal one = k[0].kind == TL_VAL_INT ? tl_val_int(1) : tl_val_const(k[0].dtype, 1);
        return k[0].kind == TL_VAL_INT ? tl_fold_literals(s, TL_BIN_ADD, &q, &one, c->loc)
                                       : tl_fold_consts(s, TL_BIN_ADD, &q, &one, c->loc);
    }
    if (!operands(s, c, 2, 'i', x, &bad))
        return bad;
    TlValue *q = tl_binary(&s->b, TL_OP_DIV, x[0], x[1]),
            *r = tl_binary(&s->b, TL_OP_REM, x[0], x[1]);
    TlValue *more = tl_binary(&s->b, TL_OP_GT, r, tl_const_bits(&s->b, r->type, 0));
    return tl_val_ir(tl_binary(&s->b, TL_OP_ADD, q, tl_cast(&s->b, more, r->type->dtype)));
}

/* The quotient or the remainder toward -infinity, of two literals or two constants. */
static TlVal fold_floor(TlSema *s, const TlVal *k, bool mod, TlLoc loc)
{
    bool typed = k[0].kind == TL_VAL_CONST;
    TlVal quotient = typed ? tl_fold_consts(s, TL_BIN_DIV, &k[0], &k[1], loc)
                           : tl_fold_literals(s, TL_BIN_DIV, &k[0], &k[1], loc);
    if (tl_is_bad(&quotient))
        return quotient;
    TlInt a = integer_of(&k[0]), b = integer_of(&k[1]), q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0))
        q--, r += b;
    return typed ? typed_integer(k[0].dtype, mod ? r : q) : tl_val_int(mod ? r : q);
}

/* The exponent of the power of two that all elements are; -1: they are none, or not known. */
static int power_of_two(const TlValue *v)
{
    if (!v->def || v->def->opcode != TL_OP_CONST)
        return -1;
    TlInt n = (TlInt)tl_attr(v->def, TL_ATTR_VALUE)->u.bits;
    TlDtype d = v->type->dtype;
    if (n == 0 || (n & (n - 1)) || (tl_is_signed(d) && n > limit_of(d, true)))
        return -1;
    return __builtin_ctzll((uint64_t)n);
}

/* bool: is r, a remainder toward zero, none and of another sign than the divisor? */
static TlValue *is_on_other_side(TlSema *s, TlValue *r, TlValue *b)
{
    TL_ASSERT(r->type == b->type, "a remainder of another type than the divisor");
    TlBuilder *at = &s->b;
    TlDtype d = b->type->dtype;
    TlValue *zero = tl_const_bits(at, r->type, 0);
    if (b->def && b->def->opcode == TL_OP_CONST) {
        bool below = tl_bits_to_int(d, tl_attr(b->def, TL_ATTR_VALUE)->u.bits) < 0;
        return tl_binary(at, below ? TL_OP_GT : TL_OP_LT, r, zero);
    }
    TlValue *differ = tl_binary(at, TL_OP_LT, tl_binary(at, TL_OP_XOR, r, b), zero);
    return tl_binary(at, TL_OP_AND, differ, tl_binary(at, TL_OP_NE, r, zero));
}

/* floor_div (data 0), floor_mod (data 1): as / and %, corrected where they went the other way. */
TlVal tl_bi_elem_floor_div(TlSema *s, TlCall *c)
{
    TlVal k[2], bad;
    TlValue *x[2];
    bool mod = c->fn->data;
    if (known(s, c, 2, k) && are_integers(2, k))
        return fold_floor(s, k, mod, c->loc);
    if (!operands(s, c, 2, 'i', x, &bad))
        return bad;
    TlBuilder *at = &s->b;
    const TlType *t = x[0]->type;
    int power = power_of_two(x[1]);
    if (power >= 0)
        return tl_val_ir(
            mod ? tl_binary(at, TL_OP_AND, x[0], tl_const_int(at, t, ((int64_t)1 << power) - 1))
                : tl_binary(at, TL_OP_SHR, x[0], tl_const_int(at, t, power)));
    if (!tl_is_signed(t->dtype))
        return tl_val_ir(tl_binary(at, mod ? TL_OP_REM : TL_OP_DIV, x[0], x[1]));
    TlValue *r = tl_binary(at, TL_OP_REM, x[0], x[1]);
    TlValue *other = is_on_other_side(s, r, x[1]);
    if (mod)
        return tl_val_ir(tl_select(at, other, tl_binary(at, TL_OP_ADD, r, x[1]), r));
    TlValue *q = tl_binary(at, TL_OP_DIV, x[0], x[1]);
    return tl_val_ir(tl_binary(at, TL_OP_SUB, q, tl_cast(at, other, t->dtype)));
}

/* Of two literals or two constants; literals get the type that they have when they stand alone. */
static TlVal fold_integers(const TlVal *k, int op)
{
    TlInt a = integer_of(&k[0]), b = integer_of(&k[1]);
    TlDtype d = k[0].kind == TL_VAL_CONST ? k[0].dtype : tl_literal_dtype(&k[0]);
    if (k[0].kind == TL_VAL_INT && tl_dtype_bits(tl_literal_dtype(&k[1])) > tl_dtype_bits(d))
        d = tl_literal_dtype(&k[1]);
    TlInt v = op == TL_OP_ADD_SAT ? a + b : op == TL_OP_SUB_SAT ? a - b : (a + b + 1) >> 1;
    TlInt least = limit_of(d, false), greatest = limit_of(d, true);
    return typed_integer(d, v < least ? least : v > greatest ? greatest : v);
}

/* add_sat, sub_sat, by an op; avg (data SHR): of a + b = 2 (a | b) - (a ^ b) the half, rounded up,
 * which stays within the type. */
TlVal tl_bi_elem_integers(TlSema *s, TlCall *c)
{
    TlVal k[2], bad;
    TlValue *x[2];
    int op = c->fn->data;
    if (known(s, c, 2, k) && are_integers(2, k))
        return fold_integers(k, op);
    if (!operands(s, c, 2, 'i', x, &bad))
        return bad;
    if (op != TL_OP_SHR)
        return tl_val_ir(tl_binary(&s->b, (TlOpcode)op, x[0], x[1]));
    TlValue *more = tl_binary(&s->b, TL_OP_OR, x[0], x[1]),
            *differ = tl_binary(&s->b, TL_OP_XOR, x[0], x[1]);
    TlValue *half = tl_binary(&s->b, TL_OP_SHR, differ, tl_const_int(&s->b, differ->type, 1));
    return tl_val_ir(tl_binary(&s->b, TL_OP_SUB, more, half));
}

/* popcount, clz or ctz of a literal or a constant, in its type */
static TlVal fold_bits(const TlVal *k, int op)
{
    TlDtype d = k->kind == TL_VAL_CONST ? k->dtype : tl_literal_dtype(k);
    int width = tl_dtype_bits(d);
    uint64_t bits = tl_bits_from_int(d, (int64_t)(uint64_t)integer_of(k));
    if (op == TL_OP_POPCOUNT)
        return typed_integer(d, __builtin_popcountll(bits));
    if (bits == 0)
        return typed_integer(d, width);
    int zeros = op == TL_OP_CTZ ? __builtin_ctzll(bits) : __builtin_clzll(bits) - (64 - width);
    return typed_integer(d, zeros);
}

TlVal tl_bi_elem_bits(TlSema *s, TlCall *c)
{
    TlVal k[1], bad;
    TlValue *x[1];
    if (known(s, c, 1, k) && are_integers(1, k))
        return fold_bits(k, c->fn->data);
    if (!operands(s, c, 1, 'i', x, &bad))
        return bad;
    return tl_val_ir(tl_unary(&s->b, (TlOpcode)c->fn->data, x[0]));
}

/* Shift amounts count modulo the width, so the right part is x >> -n. */
TlVal tl_bi_elem_rotl(TlSema *s, TlCall *c)
{
    TlVal bad;
    TlValue *x[2];
    TlDtype own = tl_val_dtype(&c->val[0]);
    if (own != TL_DTYPE_COUNT && tl_is_int(own) && c->val[1].kind == TL_VAL_IR &&
        !c->val[1].u.ir->type->ptr && tl_is_int(c->val[1].u.ir->type->dtype))
        c->val[1] = tl_val_ir(tl_cast(&s->b, c->val[1].u.ir, own));
    if (c->val[1].kind == TL_VAL_CONST && own != TL_DTYPE_COUNT && tl_is_int(c->val[1].dtype))
        c->val[1] = tl_fold_cast(&c->val[1], own);
    if (!operands(s, c, 2, 'i', x, &bad))
        return bad;
    static const TlDtype unsigned_of[TL_DTYPE_COUNT] = {
        [TL_I8] = TL_U8, [TL_I16] = TL_U16, [TL_I32] = TL_U32, [TL_I64] = TL_U64};
    TlDtype d = x[0]->type->dtype;
    const TlType *t = x[0]->type,
                 *u = tl_is_signed(d) ? tl_type_with_dtype(s->ctx, t, unsigned_of[d]) : t;
    TlValue *v = u == t ? x[0] : tl_emit(s, TL_OP_BITCAST, 1, &x[0], u, 0, NULL);
    TlValue *n = u == t ? x[1] : tl_emit(s, TL_OP_BITCAST, 1, &x[1], u, 0, NULL);
    TlValue *left = tl_binary(&s->b, TL_OP_SHL, v, n),
            *right = tl_binary(&s->b, TL_OP_SHR, v, tl_unary(&s->b, TL_OP_NEG, n));
    TlValue *r = tl_binary(&s->b, TL_OP_OR, left, right);
    return tl_val_ir(u == t ? r : tl_emit(s, TL_OP_BITCAST, 1, &r, t, 0, NULL));
}

/* ---- math ---- */

static double m_rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double m_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double m_logaddexp(double x, double y)
{
    double most = x > y ? x : y;
    return x == y && isinf(x) ? x : most + log1p(exp(-fabs(x - y)));
}

typedef struct MathFn {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    bool f64; /* std.math has name_f64 */
} MathFn;
static const MathFn math_fns[] = {
    {"sqrt", sqrt, 0, true},    {"floor", floor, 0, true},  {"ceil", ceil, 0, true},
    {"round", round, 0, true},  {"rint", rint, 0, true},    {"trunc", trunc, 0, true},
    {"fmod", 0, fmod, true},    {"exp", exp, 0, true},      {"exp2", exp2, 0, false},
    {"expm1", expm1, 0, false}, {"log", log, 0, true},      {"log2", log2, 0, false},
    {"log10", log10, 0, false}, {"log1p", log1p, 0, false}, {"rsqrt", m_rsqrt, 0, false},
    {"cbrt", cbrt, 0, false},   {"sin", sin, 0, true},      {"cos", cos, 0, true},
    {"tan", tan, 0, false},     {"asin", asin, 0, false},   {"acos", acos, 0, false},
    {"atan", atan, 0, false},   {"atan2", 0, atan2, false}, {"sinh", sinh, 0, false},
    {"cosh", cosh, 0, false},   {"tanh", tanh, 0, true},    {"erf", erf, 0, false},
    {"erfc", erfc, 0, false},   {"pow", 0, pow, true},      {"sigmoid", m_sigmoid, 0, false},
    {"logaddexp", 0, m_logaddexp, true},
};

static const MathFn *math_find(const char *name)
{
    for (uint32_t i = 0; i < sizeof math_fns / sizeof *math_fns; i++)
        if (!strcmp(math_fns[i].name, name))
            return &math_fns[i];
    return NULL;
}

/* Where all operands are literals or known integers, the integers are literals. False after an
 * error. */
static bool known_to_literals(TlSema *s, TlCall *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!tl_is_literal(&c->val[i]) && !tl_is_known_int(&c->val[i]))
            return true;
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        if (tl_is_known_int(&c->val[i]))
            c->val[i] = tl_known_as_literal(s, &c->val[i], c->vloc[i]);
        ok &= c->val[i].kind != TL_VAL_ERROR;
    }
    return ok;
}

/* Literals and known integers give a literal, computed by the C library. */
static bool fold_math(TlSema *s, TlCall *c, uint32_t n, TlVal *out)
{
    TL_ASSERT(n > 0 && n <= c->nslots, "%u operands of %s", n, c->fn->name);
    const MathFn *f = math_find(c->fn->name);
    if (!f)
        return false;
    if (!known_to_literals(s, c, n)) {
        *out = tl_bad();
        return true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!tl_is_literal(&c->val[i]))
            return false;
    double x = tl_const_number(&c->val[0]);
    *out = tl_val_float(f->one ? f->one(x) : f->two(x, tl_const_number(&c->val[1])));
    return true;
}

static TlVal back_to(TlSema *s, TlValue *x, TlDtype d)
{
    return tl_val_ir(tl_cast(&s->b, x, d));
}

static TlValue *emit_unary(TlSema *s, TlOpcode opcode, TlValue *x)
{
    TlAttr approx = {.id = TL_ATTR_APPROX, .u.i = TL_APPROX_ANY};
    bool may = opcode == TL_OP_SQRT && tl_may_approximate(s, x->type->dtype);
    return tl_emit(s, opcode, 1, &x, x->type, may, &approx);
}

TlVal tl_bi_math_op(TlSema *s, TlCall *c)
{
    TlVal bad;
    TlValue *x[1];
    if (fold_math(s, c, 1, &bad))
        return bad;
    if (!operands(s, c, 1, 'f', x, &bad))
        return bad;
    TlDtype d = x[0]->type->dtype;
    bool wide = d == TL_F32 || d == TL_F64;
    return back_to(
        s, emit_unary(s, (TlOpcode)c->fn->data, wide ? x[0] : tl_cast(&s->b, x[0], TL_F32)), d);
}

TlVal tl_bi_math_fma(TlSema *s, TlCall *c)
{
    TlVal bad = tl_bad();
    TlValue *x[3];
    if (!known_to_literals(s, c, 3) || !operands(s, c, 3, 'f', x, &bad))
        return bad;
    TlDtype d = x[0]->type->dtype;
    if (d == TL_F32 || d == TL_F64)
        return tl_val_ir(tl_fma(&s->b, x[0], x[1], x[2]));
    TlVal args[3] = {tl_val_ir(x[0]), tl_val_ir(x[1]), tl_val_ir(x[2])};
    return tl_call_std(s, "std.math", tl_format(s->arena, "fma_%s", tl_dtype_name(d)), 3, args,
                       c->loc);
}

TlVal tl_bi_math_fmod(TlSema *s, TlCall *c)
{
    TlVal bad;
    TlValue *x[2];
    if (fold_math(s, c, 2, &bad))
        return bad;
    if (!operands(s, c, 2, 'f', x, &bad))
        return bad;
    TlDtype d = x[0]->type->dtype;
    for (int i = 0; i < 2 && d != TL_F64; i++)
        x[i] = tl_cast(&s->b, x[i], TL_F32);
    return back_to(s, tl_binary(&s->b, TL_OP_REM, x[0], x[1]), d);
}

/* Do GPUs have an instruction that comes in here? It is within the documented bound, but
 * --fp=strict requires the same bits everywhere. */
static bool has_exp2(const TlSema *s, TlDtype d)
{
    const TlFrontendOptions *o = &s->prog->options;
    const char *kind = o->target_kind ? o->target_kind : "";
    bool gpu = !strcmp(kind, "cuda") || !strcmp(kind, "hip") || !strcmp(kind, "emu");
    return gpu && d != TL_F64 && !o->strict;
}

/* Is a sum of a product clamped to 0 and 1 by the same instruction? */
static bool has_saturation(const TlSema *s)
{
    const char *arch = s->prog->options.target_arch;
    return arch && !strncmp(arch, "sm_", strlen("sm_"));
}

static TlValue *emit_exp2(TlSema *s, TlValue *x, bool fast)
{
    TlAttr flush = {.id = TL_ATTR_APPROX, .u.i = TL_APPROX_FLUSH};
    return tl_emit(s, TL_OP_EXP2, 1, &x, x->type, fast, &flush);
}

/* Does fast.name have a function of its own? With --fp=strict none has. */
static bool has_fast_form(TlSema *s, const TlCall *c, TlDtype d)
{
    TlMod *m =
        c->fast && d != TL_F64 && !s->prog->options.strict ? tl_mod_std(s->prog, "std.fast") : NULL;
    return m && tl_mod_find(m, tl_intern_name(s, c->fn->name));
}

static const char *exp_of_gpu(const TlSema *s, bool below)
{
    if (has_saturation(s))
        return below ? "exp_of_negative_by_sat" : "exp_by_sat";
    return below ? "exp_of_negative_by_exp2" : "exp_by_exp2";
}

/* The function of std.math for f32 that has the least to do here: exp of what is nowhere positive
 * is shorter, and so is what will be rounded to d. */
static const char *best_form(const TlSema *s, const TlCall *c, bool below, TlDtype d)
{
    if (!strcmp(c->fn->name, "logaddexp") && has_exp2(s, TL_F32))
        return has_saturation(s) ? "logaddexp_by_sat" : "logaddexp_by_exp2";
    if (strcmp(c->fn->name, "exp") != 0)
        return c->fn->name;
    if (has_exp2(s, TL_F32) && d != TL_BF16)
        return d == TL_F16 ? "exp_for_f16_by_exp2" : exp_of_gpu(s, below);
    return below ? "exp_of_negative" : "exp"; /* the same bits by fewer operations */
}

/* GPUs' sigmoid: (x < 0 ? e : 1) times the reciprocal of 1 + e, which is from 1 to 2, with e =
 * e^-|x| by their exp2. */
static TlValue *emit_sigmoid(TlSema *s, TlValue *x, TlLoc loc)
{
    TlValue *one = tl_const_bits(&s->b, x->type, tl_bits_from_double(TL_F32, 1));
    TlVal below = tl_val_ir(tl_unary(&s->b, TL_OP_NEG, tl_unary(&s->b, TL_OP_ABS, x)));
    TlVal e = tl_call_std(s, "std.math", exp_of_gpu(s, true), 1, &below, loc);
    if (e.kind != TL_VAL_IR)
        return NULL;
    tl_remember_exp(s, e.u.ir, below.u.ir);
    TlAttr approx = {.id = TL_ATTR_APPROX, .u.i = TL_APPROX_NORMAL};
    TlValue *in[2] = {one, tl_binary(&s->b, TL_OP_ADD, e.u.ir, one)};
    TlValue *r = tl_emit(s, TL_OP_DIV, 2, in, x->type, 1, &approx);
    TlValue *zero = tl_const_bits(&s->b, x->type, 0);
    TlValue *negative = tl_binary(&s->b, TL_OP_LT, x, zero);
    return tl_binary(&s->b, TL_OP_MUL, tl_select(&s->b, negative, e.u.ir, one), r);
}

/* What is a few ops; else NULL. */
static TlValue *emit_by_ops(TlSema *s, const TlCall *c, TlValue *x, TlDtype d)
{
    if (!strcmp(c->fn->name, "sigmoid") && !c->fast && has_exp2(s, d))
        return emit_sigmoid(s, x, c->loc);
    if (!strcmp(c->fn->name, "exp2") && has_exp2(s, d))
        return emit_exp2(s, x, c->fast);
    if (strcmp(c->fn->name, "rsqrt") != 0 || d == TL_F64 || !tl_may_approximate(s, TL_F32))
        return NULL;
    TlValue *one = tl_const_bits(&s->b, x->type, tl_bits_from_double(TL_F32, 1));
    return tl_emit_quotient(s, one, emit_unary(s, TL_OP_SQRT, x));
}

/* A function of std.math on f32 (or name_f64), or of std.fast; f16 and bf16 go through f32. */
TlVal tl_bi_math_lib(TlSema *s, TlCall *c)
{
    TlVal bad, args[2];
    TlValue *x[2];
    const MathFn *f = math_find(c->fn->name);
    uint32_t n = f && f->two ? 2 : 1;
    if (fold_math(s, c, n, &bad))
        return bad;
    if (!operands(s, c, n, 'f', x, &bad))
        return bad;
    TlDtype d = x[0]->type->dtype;
    const TlValue *given = x[0];
    bool below = !c->fast && tl_is_nowhere_positive(x[0]);
    if (d == TL_F64 && !(f && f->f64)) {
        tl_err(s, c->loc, TL_E0336, c->fn->name);
        return tl_bad();
    }
    for (uint32_t i = 0; i < n; i++)
        x[i] = d == TL_F64 ? x[i] : tl_cast(&s->b, x[i], TL_F32);
    TlValue *ops = emit_by_ops(s, c, x[0], d);
    if (ops)
        return back_to(s, ops, d);
    for (uint32_t i = 0; i < n; i++)
        args[i] = tl_val_ir(x[i]);
    bool fast = has_fast_form(s, c, d);
    const char *name = d == TL_F64 ? tl_format(s->arena, "%s_f64", c->fn->name)
                       : fast      ? c->fn->name
                                   : best_form(s, c, below, d);
    TlVal r = tl_call_std(s, fast ? "std.fast" : "std.math", name, n, args, c->loc);
    if (r.kind != TL_VAL_IR)
        return r;
    TlVal y = back_to(s, r.u.ir, d);
    if (!strcmp(c->fn->name, "exp"))
        tl_remember_exp(s, y.u.ir, given);
    return y;
}

/* ---- casts ---- */

static TlValue *emit_cast(TlSema *s, TlValue *x, TlDtype d, int64_t mode, bool nosat)
{
    TL_ASSERT(x->type->kind == TL_TILE, "value %u is no tile", x->id);
    TlAttr attrs[2];
    uint32_t n = 0;
    if (x->type->dtype == d)
        return x;
    if (mode != TL_ROUND_NEAREST)
        attrs[n++] = (TlAttr){.id = TL_ATTR_ROUND, .u.i = mode};
    if (nosat)
        attrs[n++] = (TlAttr){.id = TL_ATTR_NOSAT, .u.i = 1};
    return tl_emit(s, TL_OP_CAST, 1, &x, tl_type_with_dtype(s->ctx, x->type, d), n, attrs);
}

/* Integers to integers: what is beyond d's limits becomes the limit. Compared in x's type, where a
 * limit that x can pass is a number. */
static TlValue *emit_clamped(TlSema *s, TlValue *x, TlDtype d)
{
    TlDtype from = x->type->dtype;
    TL_ASSERT(tl_is_int(from) && tl_is_int(d), "%s to %s", tl_dtype_name(from), tl_dtype_name(d));
    if (tl_dtype_bits(from) == 4)
        return emit_clamped(s, tl_cast(&s->b, x, tl_is_signed(from) ? TL_I8 : TL_U8), d);
    for (int greatest = 0; greatest < 2; greatest++) {
        TlInt own = limit_of(from, greatest), limit = limit_of(d, greatest);
        if (greatest ? limit >= own : limit <= own)
            continue;
        TlValue *bound = tl_const_bits(&s->b, x->type, tl_bits_from_int(from, (int64_t)limit));
        x = tl_binary(&s->b, greatest ? TL_OP_MIN : TL_OP_MAX, x, bound);
    }
    return tl_cast(&s->b, x, d);
}

/* Row-major numbers of x's elements. */
static TlValue *element_numbers(TlSema *s, const TlValue *x)
{
    const TlType *t = x->type;
    if (t->rank == 0)
        return tl_const_bits(&s->b, tl_type_scalar(s->ctx, TL_I32), 0);
    return tl_emit_reshape(s, tl_emit_iota(s, (int32_t)tl_type_elems(t), TL_I32), t->rank,
                           t->shape);
}

/* cast(x, to, round = stochastic(seed)), a function of std.random. */
static TlVal cast_stochastic(TlSema *s, TlCall *c, TlValue *x, TlDtype d, bool nosat)
{
    const TlExpr *call = c->expr[2];
    TlTy *types = TL_NEW_ARRAY(s->arena, TlTy, 2);
    types[0] = tl_ty_value(tl_type_scalar(s->ctx, d));
    types[1] = tl_ty_value(tl_type_scalar(s->ctx, tl_bits_dtype(d)));
    TlTy u64 = tl_ty_value(tl_type_scalar(s->ctx, TL_U64));
    if (call->args.len != 1 || call->args.data[0].name || call->args.data[0].width) {
        tl_err(s, c->vloc[2], TL_E0313, "stochastic", "seed");
        return tl_bad();
    }
    TlVal seed = tl_eval_value(s, call->args.data[0].value);
    seed = tl_convert(s, &seed, &u64, call->args.data[0].value->loc);
    if (tl_is_bad(&seed))
        return seed;
    if (!tl_is_float(x->type->dtype) || !tl_is_float(d) || tl_dtype_bits(d) == 4) {
        tl_err(s, c->vloc[2], TL_E0337,
               tl_format(s->arena, "a stochastic rounding to %s", tl_dtype_name(d)),
               tl_dtype_name(x->type->dtype));
        return tl_bad();
    }
    if (tl_widens(x->type->dtype, d))
        return tl_val_ir(tl_cast(&s->b, x, d));
    bool is_small = tl_dtype_bits(d) == 8;
    TlVal args[8] = {tl_val_ir(x),
                     tl_val_ir(emit_cast(s, x, d, TL_ROUND_ZERO, false)),
                     tl_val_ir(emit_cast(s, x, d, TL_ROUND_NEAREST, nosat)),
                     seed,
                     tl_val_ir(element_numbers(s, x)),
                     tl_val_type(&types[0]),
                     tl_val_type(&types[1]),
                     tl_val_bool(is_small && !nosat)};
    return tl_call_std(s, "std.random", "stochastic", 8, args, c->loc);
}

static TlVal unwanted(TlSema *s, TlCall *c, uint32_t slot, const char *name, const char *wanted,
                      const char *given)
{
    tl_err(s, c->vloc[slot], TL_E0338, c->fn->name, name, wanted, given);
    return tl_bad();
}

/* `sat` decides nothing in other casts: those of floats to integers and f4e2m1 always saturate. */
static TlVal unwanted_sat(TlSema *s, TlCall *c, TlDtype from, TlDtype to)
{
    bool always = (tl_is_float(from) && tl_is_int(to)) || to == TL_F4E2M1;
    const char *given = tl_format(s->arena, "one from %s to %s%s", tl_dtype_name(from),
                                  tl_dtype_name(to), always ? ", which always saturates" : "");
    return unwanted(s, c, 3, "sat", "a cast to f8 or between integers", given);
}

/* `stochastic(seed)` is syntax, not a call of a function. */
static bool is_stochastic(const TlExpr *e)
{
    return e->kind == TL_EX_CALL && e->a->kind == TL_EX_NAME && !strcmp(e->a->u.name, "stochastic");
}

/* Is it the cast of a known integer to an integer type, which gives a known integer? */
static bool is_known_cast(const TlCall *c, const TlTy *to)
{
    return to->kind == TL_TY_VALUE && !to->type->ptr && to->type->rank == 0 &&
           tl_is_int(to->type->dtype) && tl_dtype_bits(to->type->dtype) >= 8 && !c->given[2] &&
           are_integers(1, &c->val[0]);
}

static TlVal fold_clamped(const TlVal *v, TlDtype d)
{
    TlInt x = integer_of(v), least = limit_of(d, false), greatest = limit_of(d, true);
    return typed_integer(d, x < least ? least : x > greatest ? greatest : x);
}

TlVal tl_bi_type_cast(TlSema *s, TlCall *c)
{
    const TlTy *to = c->val[1].u.type;
    if (!c->given[2] && !c->given[3])
        return tl_cast_val(s, &c->val[0], to, c->loc);
    if (is_known_cast(c, to) && c->val[3].u.bits)
        return fold_clamped(&c->val[0], to->type->dtype);
    if (is_known_cast(c, to))
        return tl_cast_val(s, &c->val[0], to, c->loc);
    bool stochastic = c->given[2] && is_stochastic(c->expr[2]);
    int64_t mode =
        c->given[2] && !stochastic ? tl_call_word(s, c, 2, TL_FORM_ROUND) : TL_ROUND_NEAREST;
    if (mode == -2)
        return tl_bad();
    if (mode == TL_ROUND_STOCHASTIC) {
        tl_err(s, c->vloc[2], TL_E0313, "stochastic", "seed");
        return tl_bad();
    }
    TlValue *x = tl_call_ir(s, c, 0);
    if (!x)
        return tl_bad();
    if (to->kind != TL_TY_VALUE || to->type->ptr)
        return refuse(s, c, tl_ty_str(s, to));
    TlDtype d = to->type->dtype, from = x->type->dtype;
    bool sat = c->given[3] && c->val[3].u.bits, nosat = c->given[3] && !sat;
    bool of_integers = tl_is_int(from) && tl_is_int(d);
    if (c->given[2] && !tl_is_float(d))
        return unwanted(s, c, 2, "round", "a cast to a float type",
                        tl_format(s->arena, "one to %s", tl_dtype_name(d)));
    if (c->given[3] && !tl_is_f8(d) && !of_integers)
        return unwanted_sat(s, c, from, d);
    TlVal v = of_integers && sat ? tl_val_ir(emit_clamped(s, x, d))
              : stochastic       ? cast_stochastic(s, c, x, d, nosat)
                                 : tl_val_ir(emit_cast(s, x, d, mode, nosat && !of_integers));
    return to->type->rank && !tl_is_bad(&v) ? tl_convert(s, &v, to, c->loc) : v;
}

TlVal tl_bi_type_bitcast(TlSema *s, TlCall *c)
{
    const TlTy *to = c->val[1].u.type;
    if (to->kind != TL_TY_VALUE || to->type->ptr)
        return refuse(s, c, tl_ty_str(s, to));
    TlDtype d = to->type->dtype;
    TlVal v = c->val[0];
    if (tl_is_literal(&v))
        v = tl_convert_dtype(s, &v, tl_literal_dtype(&v), c->vloc[0]);
    if (!tl_is_number(&v) || tl_is_pointer(&v))
        return refuse(s, c, tl_val_str(s, &v));
    TlDtype from = tl_val_type_of(s, &v)->dtype;
    if (tl_dtype_bits(from) != tl_dtype_bits(d) || (from == TL_BOOL) != (d == TL_BOOL)) {
        tl_err(s, c->loc, TL_E0329, tl_dtype_name(from), tl_dtype_bits(from), tl_dtype_name(d),
               tl_dtype_bits(d));
        return tl_bad();
    }
    if (v.kind == TL_VAL_CONST && !to->type->rank)
        return tl_val_const(d, v.u.bits);
    TlValue *x = tl_materialize(s, &v, c->loc);
    if (!x)
        return tl_bad();
    if (from != d)
        x = tl_emit(s, TL_OP_BITCAST, 1, &x, tl_type_with_dtype(s->ctx, x->type, d), 0, NULL);
    v = tl_val_ir(x);
    return to->type->rank ? tl_convert(s, &v, to, c->loc) : v;
}
