/* Compile-time arithmetic. Literals are exact: integers of 128 bits held within [-2^63, 2^64 -
 * 1], floats as f64. Typed constants are scalars by their bits and behave as at run time:
 * integers wrap, floats round after each operation (f64 arithmetic rounded once to f32, f16 or
 * bf16 is the correctly rounded result for + - * /). */
#include "frontend/sema.h"
#include "ir/support/number.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const TlInt int_min = -((TlInt)1 << 63), int_max = ((TlInt)1 << 64) - 1;

/* ---- operators ---- */

static const char *const binop_texts[] = {"*",  "/",  "%",  "+",  "-", "<<", ">>", "<",  ">",
                                          "<=", ">=", "==", "!=", "&", "^",  "|",  "&&", "||"};
_Static_assert(sizeof binop_texts / sizeof *binop_texts == TL_BIN_LOR + 1,
               "a text for each operator");

const char *tl_binop_text(int op)
{
    return binop_texts[op];
}

/* ---- integers ---- */

static bool in_range(TlInt v)
{
    return v >= int_min && v <= int_max;
}

bool tl_int_fits(TlDtype d, TlInt v)
{
    if (!tl_is_int(d))
        return false;
    int bits = tl_dtype_bits(d);
    if (tl_is_signed(d))
        return v >= -((TlInt)1 << (bits - 1)) && v < (TlInt)1 << (bits - 1);
    return v >= 0 && v < (TlInt)1 << bits;
}

static uint64_t bits_of_int(TlDtype d, TlInt v)
{
    return v > INT64_MAX ? tl_bits_from_uint(d, (uint64_t)v) : tl_bits_from_int(d, (int64_t)v);
}

static TlInt int_of_bits(TlDtype d, uint64_t bits)
{
    return d == TL_U64 ? (TlInt)bits : (TlInt)tl_bits_to_int(d, bits);
}

double tl_const_number(const TlVal *v)
{
    if (v->kind == TL_VAL_INT)
        return (double)v->u.integer;
    if (v->kind == TL_VAL_FLOAT)
        return v->u.number;
    return tl_bits_to_double(v->dtype, v->u.bits);
}

bool tl_const_int_of(const TlVal *v, int64_t *out)
{
    TlInt i;
    if (v->kind == TL_VAL_INT)
        i = v->u.integer;
    else if (v->kind == TL_VAL_CONST && tl_is_int(v->dtype))
        i = int_of_bits(v->dtype, v->u.bits);
    else
        return false;
    *out = (int64_t)i;
    return i >= INT64_MIN && i <= INT64_MAX;
}

/* ---- known integers ---- */

bool tl_is_known_int(const TlVal *v)
{
    return (v->kind == TL_VAL_CONST || v->kind == TL_VAL_UNKNOWN) && v->dtype != TL_DTYPE_COUNT &&
           tl_is_int(v->dtype);
}

static TlVal inexact(TlSema *s, const TlVal *v, const char *type, TlLoc loc)
{
    tl_label(s, tl_err(s, loc, TL_E0401, tl_const_text(s, v), type),
             "it would be rounded: write a cast if that is meant");
    return tl_bad();
}

TlVal tl_known_as_float(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc)
{
    TL_ASSERT(tl_is_known_int(v) && tl_is_float(d), "%s as %s", tl_dtype_name(v->dtype),
              tl_dtype_name(d));
    if (v->kind == TL_VAL_UNKNOWN)
        return tl_unknown(d);
    TlVal x = tl_fold_cast(v, d);
    TlInt whole = int_of_bits(v->dtype, v->u.bits);
    double y = tl_const_number(&x); /* below 2^64 if it is whole */
    bool exact = isfinite(y) && fabs(y) <= 0x1p64 && (TlInt)y == whole;
    return exact ? x : inexact(s, v, tl_dtype_name(d), loc);
}

TlVal tl_known_as_literal(TlSema *s, const TlVal *v, TlLoc loc)
{
    if (v->kind == TL_VAL_UNKNOWN)
        return tl_unknown(TL_DTYPE_COUNT);
    TlVal x = tl_known_as_float(s, v, TL_F64, loc);
    return x.kind == TL_VAL_CONST ? tl_val_float(tl_const_number(&x)) : x;
}

static const char *int_text(TlArena *arena, TlInt v)
{
    if (v > INT64_MAX)
        return tl_format(arena, "%llu", (unsigned long long)v);
    return tl_format(arena, "%lld", (long long)v);
}

static const char *float_text(TlArena *arena, double x)
{
    if (isnan(x))
        return "nan";
    if (isinf(x))
        return x < 0 ? "-inf" : "inf";
    int whole = 1; /* enough digits, so that 65520 is not shown as 6.552e+04 */
    for (double y = fabs(x); y >= 10 && fabs(x) < 1e16; y /= 10)
        whole++;
    for (int digits = whole; digits <= 17; digits++) {
        char *text = tl_format(arena, "%s", TL_NUMBER("%.*g", digits, x));
        if (tl_number_read(text, NULL) != x && digits < 17)
            continue;
        return strpbrk(text, ".e") ? text : tl_format(arena, "%s.0", text);
    }
    return "?";
}

const char *tl_const_text(TlSema *s, const TlVal *v)
{
    if (v->kind == TL_VAL_INT)
        return int_text(s->arena, v->u.integer);
    if (v->kind == TL_VAL_FLOAT)
        return float_text(s->arena, v->u.number);
    if (v->kind != TL_VAL_CONST)
        return "?";
    if (v->dtype == TL_BOOL)
        return v->u.bits ? "true" : "false";
    if (tl_is_int(v->dtype))
        return int_text(s->arena, int_of_bits(v->dtype, v->u.bits));
    return float_text(s->arena, tl_const_number(v));
}

TlDtype tl_literal_dtype(const TlVal *v)
{
    TL_ASSERT(tl_is_untyped(v), "a value of kind %d has a type", (int)v->kind);
    if (v->kind == TL_VAL_FLOAT)
        return TL_F32;
    if (v->kind == TL_VAL_CHOICE) {
        TlDtype a = tl_literal_dtype(&v->items[1]), b = tl_literal_dtype(&v->items[2]);
        return a == TL_F32 || b == TL_F32 ? TL_F32 : a == TL_I32 ? b : a;
    }
    if (tl_int_fits(TL_I32, v->u.integer))
        return TL_I32;
    return tl_int_fits(TL_I64, v->u.integer) ? TL_I64 : TL_U64;
}

/* Would the finite x become an infinity as d? */
static bool overflows(TlDtype d, double x)
{
    if (!isfinite(x))
        return false;
    double y = tl_bits_to_double(
        d, tl_cast_bits(TL_F64, d, tl_bits_from_double(TL_F64, x), TL_ROUND_NEAREST, true));
    return !isfinite(y);
}

bool tl_literal_bits(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc, uint64_t *out)
{
    TL_ASSERT(tl_is_literal(v) && (unsigned)d < TL_DTYPE_COUNT,
              "a value of kind %d as type %d", (int)v->kind, (int)d);
    *out = 0;
    if (tl_is_float(d)) {
        if (overflows(d, tl_const_number(v))) {
            tl_err(s, loc, TL_E0401, tl_const_text(s, v), tl_dtype_name(d));
            return false;
        }
        *out = v->kind == TL_VAL_INT ? bits_of_int(d, v->u.integer)
                                     : tl_bits_from_double(d, v->u.number);
        return true;
    }
    if (v->kind == TL_VAL_INT && tl_int_fits(d, v->u.integer)) {
        *out = bits_of_int(d, v->u.integer);
        return true;
    }
    if (v->kind == TL_VAL_FLOAT)
        tl_label(s, tl_err(s, loc, TL_E0402, tl_const_text(s, v), tl_dtype_name(d)),
                 "write a cast: (%s)%s", tl_dtype_name(d), tl_const_text(s, v));
    else if (d == TL_BOOL)
        tl_err(s, loc, TL_E0403, tl_const_text(s, v));
    else
        tl_err(s, loc, TL_E0401, tl_const_text(s, v), tl_dtype_name(d));
    return false;
}

/* ---- literals ---- */

static TlVal fold_int(TlSema *s, int op, TlInt a, TlInt b, TlLoc loc)
{
    TlInt r = 0;
    switch ((TlBinop)op) {
    case TL_BIN_MUL:
        if (__builtin_mul_overflow(a, b, &r))
            r = int_max + 1;
        break;
    case TL_BIN_DIV:
    case TL_BIN_REM:
        if (b == 0) {
            if (!s->untaken)
                tl_err(s, loc, TL_E0404, op == TL_BIN_DIV ? "division" : "remainder");
            return tl_bad();
        }
        r = op == TL_BIN_DIV ? a / b : a % b;
        break;
    case TL_BIN_ADD: r = a + b; break;
    case TL_BIN_SUB: r = a - b; break;
    case TL_BIN_SHL: r = b < 0 || b > 64 ? int_max + 1 : a * ((TlInt)1 << b); break;
    case TL_BIN_SHR: r = b < 0 ? int_max + 1 : a >> (b > 100 ? 100 : b); break;
    case TL_BIN_AND: r = a & b; break;
    case TL_BIN_XOR: r = a ^ b; break;
    case TL_BIN_OR: r = a | b; break;
    case TL_BIN_LT: return tl_val_bool(a < b);
    case TL_BIN_GT: return tl_val_bool(a > b);
    case TL_BIN_LE: return tl_val_bool(a <= b);
    case TL_BIN_GE: return tl_val_bool(a >= b);
    case TL_BIN_EQ: return tl_val_bool(a == b);
    case TL_BIN_NE: return tl_val_bool(a != b);
    case TL_BIN_LAND:
    case TL_BIN_LOR:
        tl_err(s, loc, TL_E0311, tl_binop_text(op), "an integer literal");
        return tl_bad();
    }
    if (!in_range(r)) {
        if (!s->untaken)
            tl_err(s, loc, TL_E0405, tl_binop_text(op));
        return tl_bad();
    }
    return tl_val_int(r);
}

static TlVal fold_float(TlSema *s, int op, double a, double b, TlLoc loc)
{
    double r = 0;
    switch ((TlBinop)op) {
    case TL_BIN_MUL: r = a * b; break;
    case TL_BIN_DIV:
        if (b == 0) {
            if (!s->untaken)
                tl_err(s, loc, TL_E0404, "division");
            return tl_bad();
        }
        r = a / b;
        break;
    case TL_BIN_ADD: r = a + b; break;
    case TL_BIN_SUB: r = a - b; break;
    case TL_BIN_LT: return tl_val_bool(a < b);
    case TL_BIN_GT: return tl_val_bool(a > b);
    case TL_BIN_LE: return tl_val_bool(a <= b);
    case TL_BIN_GE: return tl_val_bool(a >= b);
    case TL_BIN_EQ: return tl_val_bool(a == b);
    case TL_BIN_NE: return tl_val_bool(a != b);
    case TL_BIN_REM:
    case TL_BIN_SHL:
    case TL_BIN_SHR:
    case TL_BIN_AND:
    case TL_BIN_XOR:
    case TL_BIN_OR:
    case TL_BIN_LAND:
    case TL_BIN_LOR:
        tl_err(s, loc, TL_E0311, tl_binop_text(op), "a float literal");
        return tl_bad();
    }
    if (!isfinite(r) && isfinite(a) && isfinite(b)) {
        if (!s->untaken)
            tl_err(s, loc, TL_E0405, tl_binop_text(op));
        return tl_bad();
    }
    return tl_val_float(r);
}

TlVal tl_fold_literals(TlSema *s, int op, const TlVal *a, const TlVal *b, TlLoc loc)
{
    if (a->kind == TL_VAL_INT && b->kind == TL_VAL_INT)
        return fold_int(s, op, a->u.integer, b->u.integer, loc);
    return fold_float(s, op, tl_const_number(a), tl_const_number(b), loc);
}

/* ---- typed constants ---- */

static TlVal fold_typed_float(TlSema *s, int op, TlDtype d, double a, double b, TlLoc loc)
{
    TL_ASSERT(tl_is_float(d), "%s is no float", tl_dtype_name(d));
    if (op == TL_BIN_DIV && b == 0) {
        if (!s->untaken)
            tl_err(s, loc, TL_E0404, "division");
        return tl_bad();
    }
    if (op != TL_BIN_MUL && op != TL_BIN_DIV && op != TL_BIN_ADD && op != TL_BIN_SUB)
        return fold_float(s, op, a, b, loc); /* comparisons; others have been rejected */
    double r = op == TL_BIN_MUL   ? a * b
               : op == TL_BIN_DIV ? a / b
               : op == TL_BIN_ADD ? a + b
                                  : a - b;
    return tl_val_const(d, tl_bits_from_double(d, r));
}

static uint64_t shift(int op, TlDtype d, uint64_t a, uint64_t amount)
{
    TL_ASSERT(!tl_is_float(d), "%s is shifted", tl_dtype_name(d));
    int64_t v = tl_bits_to_int(d, a);
    uint64_t n = amount & (uint64_t)(tl_dtype_bits(d) - 1);
    if (op == TL_BIN_SHL)
        return tl_bits_from_int(d, (int64_t)((uint64_t)v << n));
    return tl_bits_from_int(d, tl_is_signed(d) ? v >> n : (int64_t)((uint64_t)v >> n));
}

static TlVal fold_typed_int(TlSema *s, int op, TlDtype d, uint64_t ab, uint64_t bb, TlLoc loc)
{
    TlInt a = int_of_bits(d, ab), b = int_of_bits(d, bb);
    if (op == TL_BIN_ADD)
        return tl_val_const(d, tl_bits_from_int(d, (int64_t)(uint64_t)(a + b)));
    if (op == TL_BIN_SUB)
        return tl_val_const(d, tl_bits_from_int(d, (int64_t)(uint64_t)(a - b)));
    if (op == TL_BIN_MUL)
        return tl_val_const(d, tl_bits_from_int(d, (int64_t)((uint64_t)a * (uint64_t)b)));
    if (op == TL_BIN_AND)
        return tl_val_const(d, ab & bb);
    if (op == TL_BIN_OR)
        return tl_val_const(d, ab | bb);
    if (op == TL_BIN_XOR)
        return tl_val_const(d, ab ^ bb);
    TlVal r = fold_int(s, op, a, b, loc);
    bool divides = op == TL_BIN_DIV || op == TL_BIN_REM;
    return divides && r.kind == TL_VAL_INT
               ? tl_val_const(d, tl_bits_from_int(d, (int64_t)(uint64_t)r.u.integer))
               : r;
}

TlVal tl_fold_consts(TlSema *s, int op, const TlVal *a, const TlVal *b, TlLoc loc)
{
    TL_ASSERT(a->kind == TL_VAL_CONST && b->kind == TL_VAL_CONST,
              "values of kinds %d and %d are folded", (int)a->kind, (int)b->kind);
    TlDtype d = a->dtype;
    if (op == TL_BIN_SHL || op == TL_BIN_SHR)
        return tl_val_const(d, shift(op, d, a->u.bits, b->u.bits));
    if (tl_is_float(d))
        return fold_typed_float(s, op, d, tl_const_number(a), tl_const_number(b), loc);
    if (d == TL_BOOL && (op == TL_BIN_LAND || op == TL_BIN_LOR))
        return tl_val_bool(op == TL_BIN_LAND ? a->u.bits && b->u.bits : a->u.bits || b->u.bits);
    return fold_typed_int(s, op, d, a->u.bits, b->u.bits, loc);
}

TlVal tl_fold_unary(TlSema *s, int op, const TlVal *a, TlLoc loc)
{
    TlVal zero = tl_val_int(0);
    switch (op) {
    case '-':
        if (a->kind == TL_VAL_INT)
            return fold_int(s, TL_BIN_SUB, zero.u.integer, a->u.integer, loc);
        if (a->kind == TL_VAL_FLOAT)
            return tl_val_float(-a->u.number);
        if (tl_is_float(a->dtype))
            return tl_val_const(a->dtype, tl_bits_from_double(a->dtype, -tl_const_number(a)));
        return fold_typed_int(s, TL_BIN_SUB, a->dtype, 0, a->u.bits, loc);
    case '~':
        if (a->kind == TL_VAL_INT)
            return tl_val_int(-a->u.integer - 1);
        return tl_val_const(a->dtype,
                            tl_bits_from_int(a->dtype, ~tl_bits_to_int(a->dtype, a->u.bits)));
    case '!': return tl_val_bool(!a->u.bits);
    default: return *a;
    }
}

TlVal tl_fold_cast(const TlVal *a, TlDtype to)
{
    if (a->kind == TL_VAL_INT) {
        if (to == TL_BOOL)
            return tl_val_bool(a->u.integer != 0);
        return tl_val_const(to, bits_of_int(to, a->u.integer));
    }
    if (a->kind == TL_VAL_FLOAT) {
        if (to == TL_BOOL)
            return tl_val_bool(a->u.number != 0);
        return tl_val_const(to, tl_bits_from_double(to, a->u.number));
    }
    return tl_val_const(to, tl_cast_bits(a->dtype, to, a->u.bits, TL_ROUND_NEAREST, false));
}
