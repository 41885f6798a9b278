/* What each op does to facts (axis_info.h), after Triton's AxisInfo, but sound for negative numbers
 * and for numbers that wrap.
 *
 * Along one axis a value is cut into runs that count up by 1 (length C, first element a multiple of
 * D) and into runs of equal elements (length K); all aligned powers of two, so the greatest common
 * divisor of two is the smaller. "Element divisor": what divides every element: D where C is 1.
 * For a run shorter than C, the first element is only a multiple of the shorter length.
 *
 *   x + y     counts up where one does and the other is constant
 *   x - y     the same; constant where both count up
 *   x / n     truncates, so only for x >= 0: constant on runs that start at multiples of g and are
 *             no longer than g, g dividing n; x >> s rounds down, so for any x
 *   x % n     for x >= 0: counts up on the same runs
 *   x < n     one answer on those runs; also x >= n, n > x, n <= x. The other four have none.
 *
 * Wrapping keeps divisibility by powers of two, and a run that starts at a multiple of its length
 * does not cross the end of the type. Other runs may: they are shortened where a number is widened,
 * unless its range shows that it never wrapped. */
#include "ir/numeric.h"
#include "passes/analysis/axis_impl.h"
#include "passes/analysis/facts.h"

/* ---- one axis ---- */

typedef struct Axis {
    int64_t c, d, k;
} Axis;

static Axis axis_of(const TlAxisFacts *f, int d)
{
    return (Axis){f->contiguity[d], f->divisibility[d], f->constancy[d]};
}

static void put_axis(TlAxisFacts *f, int d, Axis x)
{
    TL_ASSERT(x.c > 0 && x.d > 0 && x.k > 0,
              "axis %d: facts %lld, %lld, %lld", d, (long long)x.c, (long long)x.d, (long long)x.k);
    f->contiguity[d] = x.c;
    f->divisibility[d] = x.d;
    f->constancy[d] = x.k;
}

static int64_t min3(int64_t a, int64_t b, int64_t c)
{
    return tl_axis_min(a, tl_axis_min(b, c));
}

/* Divisor of every first element of runs of length c; unit: what one step adds. */
static int64_t start_divisor(Axis x, int64_t c, int64_t unit)
{
    return c >= x.c ? x.d : tl_axis_min(x.d, tl_axis_times(c, unit));
}

static int64_t each_divisor(Axis x)
{
    return start_divisor(x, 1, 1);
}

/* Longest runs of x that start at a multiple of their length and within which n, a divisor or
 * bound, is constant and a multiple of their length. */
static int64_t blocks(Axis x, Axis n)
{
    return min3(tl_axis_min(x.c, x.d), each_divisor(n), n.k);
}

/* ---- values ---- */

bool tl_axis_has_numbers(const TlType *t)
{
    return t->kind == TL_TILE && !t->ptr && (tl_is_int(t->dtype) || tl_is_bool(t->dtype));
}

static int axes_of(const TlType *t)
{
    return t->rank ? t->rank : 1;
}

static int64_t extent_divisor(const TlType *t, int d)
{
    return d < t->rank ? tl_axis_divisor(t->shape[d]) : 1;
}

void tl_axis_type_range(TlDtype d, int64_t *lo, int64_t *hi)
{
    TL_ASSERT(tl_is_int(d) || tl_is_bool(d) || tl_is_float(d), "element type %d", (int)d);
    int bits = tl_dtype_bits(d);
    *lo = INT64_MIN;
    *hi = INT64_MAX;
    if (tl_is_bool(d)) {
        *lo = 0;
        *hi = 1;
    } else if (tl_is_int(d) && bits < 64) {
        *lo = tl_is_signed(d) ? -((int64_t)1 << (bits - 1)) : 0;
        *hi = ((int64_t)1 << (tl_is_signed(d) ? bits - 1 : bits)) - 1;
    }
}

TlAxisFacts tl_axis_unknown(const TlType *t)
{
    TlAxisFacts f = {.is_known = false};
    for (int d = 0; d < TL_MAX_RANK; d++)
        put_axis(&f, d, (Axis){1, 1, 1});
    tl_axis_type_range(t->ptr ? TL_I64 : t->dtype, &f.lo, &f.hi);
    return f;
}

/* The range, unless the type cannot hold it; the number may have wrapped then. */
static void set_range(TlAxisFacts *f, const TlType *t, TlWideInt lo, TlWideInt hi)
{
    int64_t least, most;
    tl_axis_type_range(t->dtype, &least, &most);
    if (t->dtype == TL_U64)
        least = 0;
    if (lo < least || hi > most)
        return;
    f->lo = (int64_t)lo;
    f->hi = (int64_t)hi;
}

static TlAxisFacts known(const TlType *t, int64_t value)
{
    TlAxisFacts f = tl_axis_unknown(t);
    f.is_known = true;
    f.value = value;
    for (int d = 0; d < axes_of(t); d++)
        put_axis(&f, d, (Axis){1, tl_axis_divisor(value), extent_divisor(t, d)});
    set_range(&f, t, value, value);
    return f;
}

static int64_t step_of(const TlType *t)
{
    return t->ptr ? tl_dtype_bytes(t->dtype) : 1;
}

TlAxisFacts tl_axis_join(const TlType *t, const TlAxisFacts *a, const TlAxisFacts *b)
{
    TlAxisFacts f = tl_axis_unknown(t);
    for (int d = 0; d < axes_of(t); d++) {
        Axis x = axis_of(a, d), y = axis_of(b, d);
        int64_t c = tl_axis_min(x.c, y.c), unit = step_of(t);
        put_axis(&f, d,
                 (Axis){c, tl_axis_min(start_divisor(x, c, unit), start_divisor(y, c, unit)),
                        tl_axis_min(x.k, y.k)});
    }
    f.is_known = a->is_known && b->is_known && a->value == b->value;
    f.value = f.is_known ? a->value : 0;
    f.lo = tl_axis_min(a->lo, b->lo);
    f.hi = tl_axis_max(a->hi, b->hi);
    return f;
}

/* For a conversion to a wider type: runs that may wrap at the end of the type are shortened so that
 * they cannot. */
static TlAxisFacts unwrapped(const TlType *t, TlAxisFacts f)
{
    int64_t lo, hi;
    tl_axis_type_range(t->dtype, &lo, &hi);
    if (t->ptr || f.lo > lo || f.hi < hi)
        return f;
    for (int d = 0; d < axes_of(t); d++)
        if (f.contiguity[d] > f.divisibility[d])
            f.contiguity[d] = f.divisibility[d];
    return f;
}

/* ---- arithmetic ---- */

typedef struct Operands {
    const TlOp *op;
    const TlType *type; /* of the result */
    TlAxisFacts x, y;
} Operands;

static Axis add_axis(Axis x, Axis y, int64_t unit)
{
    Axis r;
    r.c = tl_axis_max(tl_axis_min(x.k, y.c), tl_axis_min(x.c, y.k));
    r.d = tl_axis_min(start_divisor(x, r.c, unit), tl_axis_times(start_divisor(y, r.c, 1), unit));
    r.k = tl_axis_min(x.k, y.k);
    return r;
}

static Axis sub_axis(Axis x, Axis y)
{
    Axis r;
    int64_t both = tl_axis_min(x.c, y.c);
    r.c = tl_axis_min(x.c, y.k);
    r.k = tl_axis_max(tl_axis_min(x.k, y.k), both);
    r.d = tl_axis_min(start_divisor(x, r.c, 1), start_divisor(y, r.c, 1));
    if (r.c == 1) /* what both runs count up by cancels */
        r.d = tl_axis_max(r.d, tl_axis_min(start_divisor(x, both, 1), start_divisor(y, both, 1)));
    return r;
}

static Axis mul_axis(Axis x, Axis y)
{
    return (Axis){1, tl_axis_times(each_divisor(x), each_divisor(y)), tl_axis_min(x.k, y.k)};
}

/* x / n for x >= 0, or rounding down; by: n when it is a known power of two, else 0. */
static Axis div_axis(Axis x, Axis n, int64_t by)
{
    Axis r = {1, 1, tl_axis_max(tl_axis_min(x.k, n.k), blocks(x, n))};
    if (by > 0 && x.c == 1)
        r.d = tl_axis_max(x.d / by, 1);
    return r;
}

static Axis rem_axis(Axis x, Axis n, bool negative)
{
    Axis r = {negative ? 1 : blocks(x, n), 1, tl_axis_min(x.k, n.k)};
    r.d = tl_axis_min(start_divisor(x, r.c, 1), each_divisor(n));
    return r;
}

static TlAxisFacts each_axis(const Operands *o, Axis (*f)(Axis, Axis))
{
    TlAxisFacts r = tl_axis_unknown(o->type);
    for (int d = 0; d < axes_of(o->type); d++)
        put_axis(&r, d, f(axis_of(&o->x, d), axis_of(&o->y, d)));
    return r;
}

static Axis plain_add(Axis x, Axis y)
{
    return add_axis(x, y, 1);
}

static bool is_known_as(const TlAxisFacts *f, int64_t value)
{
    return f->is_known && f->value == value;
}

static TlAxisFacts add(const Operands *o)
{
    TlAxisFacts r = each_axis(o, plain_add);
    set_range(&r, o->type, (TlWideInt)o->x.lo + o->y.lo, (TlWideInt)o->x.hi + o->y.hi);
    return r;
}

static TlAxisFacts sub(const Operands *o)
{
    TlAxisFacts r = each_axis(o, sub_axis);
    set_range(&r, o->type, (TlWideInt)o->x.lo - o->y.hi, (TlWideInt)o->x.hi - o->y.lo);
    return r;
}

static TlAxisFacts mul(const Operands *o)
{
    if (is_known_as(&o->x, 1))
        return o->y;
    if (is_known_as(&o->y, 1))
        return o->x;
    if (is_known_as(&o->x, 0) || is_known_as(&o->y, 0))
        return known(o->type, 0);
    TlAxisFacts r = each_axis(o, mul_axis);
    TlWideInt p[4] = {(TlWideInt)o->x.lo * o->y.lo, (TlWideInt)o->x.lo * o->y.hi,
                      (TlWideInt)o->x.hi * o->y.lo, (TlWideInt)o->x.hi * o->y.hi};
    TlWideInt lo = p[0], hi = p[0];
    for (int i = 1; i < 4; i++) {
        lo = p[i] < lo ? p[i] : lo;
        hi = p[i] > hi ? p[i] : hi;
    }
    bool squares = o->op->opcode == TL_OP_MUL && tl_in(o->op, 0) == tl_in(o->op, 1);
    set_range(&r, o->type, squares && lo < 0 ? 0 : lo, hi);
    return r;
}

static int64_t known_power(const TlAxisFacts *f)
{
    return f->is_known && f->value > 0 && (f->value & (f->value - 1)) == 0 ? f->value : 0;
}

static TlAxisFacts quotient(const Operands *o)
{
    if (is_known_as(&o->y, 1))
        return o->x;
    TlAxisFacts r = tl_axis_unknown(o->type);
    bool negative = o->x.lo < 0 && o->type->dtype != TL_U64;
    for (int d = 0; d < axes_of(o->type); d++) {
        Axis x = axis_of(&o->x, d), n = axis_of(&o->y, d);
        if (negative)
            x = (Axis){1, each_divisor(x), x.k};
        put_axis(&r, d, div_axis(x, n, known_power(&o->y)));
    }
    if (o->y.lo > 0)
        set_range(&r, o->type, o->x.lo / (o->x.lo < 0 ? o->y.lo : o->y.hi),
                  o->x.hi / (o->x.hi < 0 ? o->y.hi : o->y.lo));
    return r;
}

static TlAxisFacts rest(const Operands *o)
{
    if (is_known_as(&o->y, 1))
        return known(o->type, 0);
    TlAxisFacts r = tl_axis_unknown(o->type);
    bool negative = o->x.lo < 0 && o->type->dtype != TL_U64;
    for (int d = 0; d < axes_of(o->type); d++)
        put_axis(&r, d, rem_axis(axis_of(&o->x, d), axis_of(&o->y, d), negative));
    if (o->y.lo > 0 && o->x.lo >= 0)
        set_range(&r, o->type, 0, tl_axis_min(o->x.hi, o->y.hi - 1));
    else if (o->y.lo > 0)
        set_range(&r, o->type, 1 - (TlWideInt)o->y.hi, (TlWideInt)o->y.hi - 1);
    return r;
}

/* Amounts count modulo the width. */
static bool shift_amount(const Operands *o, int *out)
{
    *out = (int)(o->y.value & (tl_dtype_bits(o->type->dtype) - 1));
    return o->y.is_known;
}

static TlAxisFacts shift_left(const Operands *o)
{
    int s;
    Operands as_mul = *o;
    if (shift_amount(o, &s) && s < 62) {
        TlDtype d = o->type->dtype;
        as_mul.y = known(o->type, tl_bits_to_int(d, tl_bits_from_int(d, (int64_t)1 << s)));
        return mul(&as_mul);
    }
    TlAxisFacts r = tl_axis_unknown(o->type);
    for (int d = 0; d < axes_of(o->type); d++) {
        Axis x = axis_of(&o->x, d);
        put_axis(&r, d, (Axis){1, each_divisor(x), tl_axis_min(x.k, axis_of(&o->y, d).k)});
    }
    return r;
}

/* Rounds down, whatever the sign. */
static TlAxisFacts shift_right(const Operands *o)
{
    int s;
    TlAxisFacts r = tl_axis_unknown(o->type);
    bool fixed = shift_amount(o, &s) && s < 62;
    if (fixed && s == 0)
        return o->x;
    for (int d = 0; d < axes_of(o->type); d++) {
        Axis x = axis_of(&o->x, d), n = {1, 1, axis_of(&o->y, d).k};
        if (fixed)
            n.d = (int64_t)1 << s;
        put_axis(&r, d, div_axis(x, n, fixed ? n.d : 0));
    }
    int64_t least = fixed ? s : o->y.lo, most = fixed ? s : o->y.hi;
    if (least >= 0 && most < tl_dtype_bits(o->type->dtype) &&
        (o->type->dtype != TL_U64 || o->x.lo >= 0))
        set_range(&r, o->type, o->x.lo >> (o->x.lo < 0 ? least : most),
                  o->x.hi >> (o->x.hi < 0 ? most : least));
    return r;
}

/* ---- bits ---- */

static TlAxisFacts bits(const Operands *o)
{
    TlAxisFacts r = tl_axis_unknown(o->type);
    for (int d = 0; d < axes_of(o->type); d++) {
        Axis x = axis_of(&o->x, d), y = axis_of(&o->y, d);
        put_axis(&r, d,
                 (Axis){1, tl_axis_min(each_divisor(x), each_divisor(y)), tl_axis_min(x.k, y.k)});
    }
    return r;
}

/* Of numbers from -2^k to 2^k - 1, bits above k are their signs. */
static TlAxisFacts bits_of_either(const Operands *o)
{
    TlAxisFacts r = bits(o);
    int64_t lo = tl_axis_min(o->x.lo, o->y.lo), hi = tl_axis_max(o->x.hi, o->y.hi);
    if (o->type->dtype == TL_U64 && lo < 0)
        return r;
    TlWideInt most = 1;
    while (most <= hi || -most > lo)
        most *= 2;
    set_range(&r, o->type, lo < 0 ? -most : 0, most - 1);
    return r;
}

/* x & m: low bits are a remainder, high bits are constant on blocks; m at or below 0 counts as
 * high. */
static TlAxisFacts masked(const Operands *o)
{
    TlAxisFacts r = bits(o);
    TlAxisFacts x = o->x, m = o->y;
    if (x.is_known) {
        x = o->y;
        m = o->x;
    }
    for (int d = 0; d < axes_of(o->type); d++) {
        Axis a = axis_of(&x, d), b = axis_of(&m, d);
        r.divisibility[d] = tl_axis_max(each_divisor(a), each_divisor(b));
        if (!m.is_known)
            continue;
        r.constancy[d] =
            tl_axis_max(r.constancy[d], min3(tl_axis_min(a.c, a.d), tl_axis_divisor(m.value), b.k));
        bool low = m.value > 0 && m.value < INT64_MAX && (m.value & (m.value + 1)) == 0;
        if (!low)
            continue;
        r.contiguity[d] = min3(tl_axis_min(a.c, a.d), m.value + 1, b.k);
        r.divisibility[d] = start_divisor(a, r.contiguity[d], 1);
    }
    if (o->x.lo >= 0 || o->y.lo >= 0)
        set_range(&r, o->type, 0,
                  o->x.lo < 0   ? o->y.hi
                  : o->y.lo < 0 ? o->x.hi
                                : tl_axis_min(o->x.hi, o->y.hi));
    return r;
}

/* ---- choices ---- */

/* Elements of either, in any pattern that is constant on runs of `steady`. */
static Axis either(Axis x, Axis y, int64_t steady)
{
    Axis r = {min3(x.c, y.c, steady), 1, min3(x.k, y.k, steady)};
    r.d = tl_axis_min(start_divisor(x, r.c, 1), start_divisor(y, r.c, 1));
    return r;
}

static TlAxisFacts least_or_most(const Operands *o, bool most)
{
    const TlAxisFacts *x = &o->x, *y = &o->y;
    if (tl_axis_has_numbers(o->type) && o->type->dtype != TL_U64) {
        if (most ? x->lo >= y->hi : x->hi <= y->lo)
            return *x;
        if (most ? y->lo >= x->hi : y->hi <= x->lo)
            return *y;
    }
    TlAxisFacts r = tl_axis_unknown(o->type);
    for (int d = 0; d < axes_of(o->type); d++) {
        Axis a = axis_of(x, d), b = axis_of(y, d);
        put_axis(&r, d, either(a, b, 1));
        r.constancy[d] = tl_axis_min(a.k, b.k);
    }
    if (tl_axis_has_numbers(o->type) && (o->type->dtype != TL_U64 || (x->lo >= 0 && y->lo >= 0)))
        set_range(&r, o->type, most ? tl_axis_max(x->lo, y->lo) : tl_axis_min(x->lo, y->lo),
                  most ? tl_axis_max(x->hi, y->hi) : tl_axis_min(x->hi, y->hi));
    return r;
}

static TlAxisFacts least_of(const Operands *o)
{
    return least_or_most(o, false);
}

static TlAxisFacts most_of(const Operands *o)
{
    return least_or_most(o, true);
}

static TlAxisFacts select_facts(const TlAxisInfo *a, const TlOp *op)
{
    const TlAxisFacts *c = tl_axis_facts(a, tl_in(op, 0));
    const TlAxisFacts *x = tl_axis_facts(a, tl_in(op, 1)), *y = tl_axis_facts(a, tl_in(op, 2));
    const TlType *t = op->out[0]->type;
    if (c->is_known)
        return c->value ? *x : *y;
    TlAxisFacts r = tl_axis_join(t, x, y);
    if (r.is_known || tl_in(op, 0)->type->rank == 0)
        return r;
    for (int d = 0; d < axes_of(t); d++) {
        int64_t steady = c->constancy[d], run = tl_axis_min(r.contiguity[d], steady);
        r.divisibility[d] = start_divisor(axis_of(&r, d), run, step_of(t));
        r.contiguity[d] = run;
        r.constancy[d] = tl_axis_min(r.constancy[d], steady);
    }
    return r;
}

/* ---- comparisons ---- */

static TlAxisFacts compare(const Operands *o)
{
    TlAxisFacts r = tl_axis_unknown(o->type);
    TlOpcode op = o->op->opcode;
    bool forward = op == TL_OP_LT || op == TL_OP_GE, back = op == TL_OP_GT || op == TL_OP_LE;
    for (int d = 0; d < axes_of(o->type); d++) {
        Axis x = axis_of(&o->x, d), y = axis_of(&o->y, d);
        r.constancy[d] = tl_axis_min(x.k, y.k);
        if (forward)
            r.constancy[d] = tl_axis_max(r.constancy[d], blocks(x, y));
        if (back)
            r.constancy[d] = tl_axis_max(r.constancy[d], blocks(y, x));
    }
    return r;
}

/* 1 or 0, or -1 if the ranges do not decide. */
static int decided(const Operands *o)
{
    const TlAxisFacts *x = &o->x, *y = &o->y;
    bool below = x->hi<y->lo, above = x->lo> y->hi;
    bool not_above = x->hi <= y->lo, not_below = x->lo >= y->hi;
    TlOpcode op = o->op->opcode;
    if (op == TL_OP_LT)
        return below ? 1 : not_below ? 0 : -1;
    if (op == TL_OP_GE)
        return not_below ? 1 : below ? 0 : -1;
    if (op == TL_OP_GT)
        return above ? 1 : not_above ? 0 : -1;
    if (op == TL_OP_LE)
        return not_above ? 1 : above ? 0 : -1;
    bool equal = not_above && not_below;
    return below || above ? op == TL_OP_NE : equal ? op == TL_OP_EQ : -1;
}

static TlAxisFacts comparison(const TlAxisInfo *a, const TlOp *op)
{
    Operands o = {op, op->out[0]->type, *tl_axis_facts(a, tl_in(op, 0)),
                  *tl_axis_facts(a, tl_in(op, 1))};
    const TlType *t = tl_in(op, 0)->type;
    bool ordered = tl_axis_has_numbers(t) && (t->dtype != TL_U64 || (o.x.lo >= 0 && o.y.lo >= 0));
    int answer = ordered ? decided(&o) : -1;
    return answer >= 0 ? known(o.type, answer) : compare(&o);
}

/* ---- casts ---- */

static TlAxisFacts cast(const TlAxisInfo *a, const TlOp *op)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    TlAxisFacts f = *tl_axis_facts(a, tl_in(op, 0)), r = tl_axis_unknown(to);
    for (int d = 0; d < axes_of(to); d++)
        r.constancy[d] = f.constancy[d];
    if (!tl_axis_has_numbers(from) || !tl_axis_has_numbers(to) || tl_is_bool(to->dtype))
        return r;
    if (tl_dtype_bits(to->dtype) > tl_dtype_bits(from->dtype))
        f = unwrapped(from, f);
    for (int d = 0; d < axes_of(to); d++)
        put_axis(&r, d, axis_of(&f, d));
    if (from->dtype != TL_U64 || f.lo >= 0)
        set_range(&r, to, f.lo, f.hi);
    r.is_known = f.is_known;
    if (f.is_known) {
        r.value = tl_bits_to_int(to->dtype, tl_bits_from_int(to->dtype, f.value));
        r.lo = r.hi = r.value;
        if (to->dtype == TL_U64 && r.value < 0) {
            r.lo = INT64_MIN;
            r.hi = INT64_MAX;
        }
    }
    return r;
}

static TlAxisFacts ptr_add(const TlAxisInfo *a, const TlOp *op)
{
    const TlType *t = op->out[0]->type, *offset = tl_in(op, 1)->type;
    TlAxisFacts r = tl_axis_unknown(t), x = *tl_axis_facts(a, tl_in(op, 0));
    TlAxisFacts y = unwrapped(offset, *tl_axis_facts(a, tl_in(op, 1)));
    bool packed = tl_dtype_bits(t->dtype) < 8;
    for (int d = 0; d < axes_of(t); d++) {
        put_axis(&r, d, add_axis(axis_of(&x, d), axis_of(&y, d), step_of(t)));
        if (packed)
            r.divisibility[d] = 1;
    }
    return r;
}

/* Pointers made from addresses, which are aligned to the element. */
static TlAxisFacts pointer(const TlAxisInfo *a, const TlOp *op)
{
    const TlType *t = op->out[0]->type;
    TlAxisFacts r = tl_axis_unknown(t), u = *tl_axis_facts(a, tl_in(op, 0));
    for (int d = 0; d < axes_of(t); d++) {
        int64_t sure = u.contiguity[d] == 1 ? u.divisibility[d] : 1;
        r.divisibility[d] = tl_axis_max(sure, tl_dtype_bytes(t->dtype));
        r.constancy[d] = u.constancy[d];
    }
    return r;
}

/* ---- shapes ---- */

/* What divides every element, from the axis that tells most. */
static int64_t any_divisor(const TlAxisFacts *f, const TlType *t)
{
    int64_t best = 1;
    for (int d = 0; d < axes_of(t); d++)
        best = tl_axis_max(best, start_divisor(axis_of(f, d), 1, step_of(t)));
    return best;
}

static TlAxisFacts like(const TlAxisFacts *f, const TlType *t)
{
    TlAxisFacts r = tl_axis_unknown(t);
    r.is_known = f->is_known;
    r.value = f->value;
    r.lo = f->lo;
    r.hi = f->hi;
    return r;
}

static TlAxisFacts broadcast(const TlAxisFacts *f, const TlType *from, const TlType *to)
{
    TlAxisFacts r = like(f, to);
    int64_t each = any_divisor(f, from);
    for (int d = 0; d < to->rank; d++) {
        bool repeats = from->rank == 0 || from->shape[d] != to->shape[d];
        put_axis(&r, d, repeats ? (Axis){1, each, extent_divisor(to, d)} : axis_of(f, d));
    }
    return r;
}

static TlAxisFacts expand(const TlAxisFacts *f, const TlType *from, const TlType *to, int axis)
{
    TlAxisFacts r = like(f, to);
    for (int d = 0; d < to->rank; d++)
        put_axis(&r, d,
                 d == axis ? (Axis){1, any_divisor(f, from), 1} : axis_of(f, d - (d > axis)));
    return r;
}

static TlAxisFacts trans(const TlAxisFacts *f, const TlOp *op)
{
    const TlAttr *perm = tl_attr(op, TL_ATTR_PERM);
    TlAxisFacts r = like(f, op->out[0]->type);
    for (uint32_t d = 0; d < perm->n; d++)
        put_axis(&r, (int)d, axis_of(f, (int)perm->u.ints[d]));
    return r;
}

/* Product of the extents after axis d. */
static int64_t suffix(const TlType *t, int d)
{
    int64_t p = 1;
    while (++d < t->rank)
        p *= t->shape[d];
    return p;
}

/* One step along axis d of `to` is `t` steps along the axis of `from` that has room for it, as far
 * as both go. Where the whole of that axis is constant, the next ones go on. */
static Axis reshaped_axis(const TlAxisFacts *f, const TlType *from, const TlType *to, int d)
{
    Axis r = {1, any_divisor(f, from), 1};
    int64_t p = suffix(to, d), room = extent_divisor(to, d);
    for (int i = from->rank - 1; i >= 0 && room > 1; i--) {
        int64_t s = suffix(from, i), t = p / s;
        if (p % s != 0 || t >= from->shape[i] || from->shape[i] % t != 0)
            continue;
        Axis x = axis_of(f, i);
        int64_t whole = tl_axis_divisor(from->shape[i] / t);
        if (t == 1 && r.k == 1 && p == suffix(to, d)) {
            r.c = min3(x.c, whole, room);
            r.d = r.c > 1 ? start_divisor(x, r.c, step_of(from)) : r.d;
        }
        int64_t k = min3(tl_axis_max(x.k / t, 1), whole, room);
        r.k *= k;
        if (k * t != from->shape[i])
            break;
        room /= k;
        p *= k;
    }
    return r;
}

static TlAxisFacts reshape(const TlAxisFacts *f, const TlType *from, const TlType *to)
{
    TlAxisFacts r = like(f, to);
    for (int d = 0; d < axes_of(to); d++)
        put_axis(&r, d,
                 from->rank && to->rank ? reshaped_axis(f, from, to, d)
                                        : (Axis){1, any_divisor(f, from), 1});
    return r;
}

/* Equal rows have equal results, for integers: their order of combination makes no difference. */
static TlAxisFacts over_axis(const TlAxisInfo *a, const TlOp *op, uint32_t result)
{
    const TlType *t = op->out[result]->type;
    TlAxisFacts r = tl_axis_unknown(t);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0), kind = (int)tl_attr_int(op, TL_ATTR_KIND, 0);
    for (uint32_t i = 0; i < op->nin; i++)
        if (!tl_axis_has_numbers(tl_in(op, i)->type))
            return r;
    if (op->nin > op->nout) /* what it begins with is among the results */
        return r;
    bool drops = op->opcode == TL_OP_REDUCE;
    for (int d = 0; d < t->rank; d++) {
        int from = d + (drops && d >= axis);
        int64_t k = from == axis ? 1 : TL_AXIS_MAX;
        for (uint32_t i = 0; i < op->nin; i++)
            k = tl_axis_min(k, tl_axis_facts(a, tl_in(op, i))->constancy[from]);
        r.constancy[d] = k;
    }
    if (kind == TL_COMBINE_MIN || kind == TL_COMBINE_MAX) {
        r.lo = tl_axis_facts(a, tl_in(op, 0))->lo;
        r.hi = tl_axis_facts(a, tl_in(op, 0))->hi;
    }
    return r;
}

/* An element of x, or 0. */
static TlAxisFacts gathered(const TlAxisFacts *x, const TlType *t)
{
    TlAxisFacts r = tl_axis_unknown(t);
    if (tl_axis_has_numbers(t)) {
        r.lo = tl_axis_min(x->lo, 0);
        r.hi = tl_axis_max(x->hi, 0);
    }
    return r;
}

/* ---- the program, views, memory ---- */

static TlAxisFacts ranged(const TlType *t, int64_t lo, int64_t hi)
{
    TlAxisFacts f = tl_axis_unknown(t);
    f.lo = lo;
    f.hi = hi;
    return f;
}

static TlAxisFacts iota(const TlType *t)
{
    TlAxisFacts f = tl_axis_unknown(t);
    int64_t c = extent_divisor(t, 0);
    put_axis(&f, 0, (Axis){c, c == t->shape[0] ? TL_AXIS_MAX : c, 1});
    set_range(&f, t, 0, t->shape[0] - 1);
    return f;
}

static TlAxisFacts of_view(const TlAxisInfo *a, const TlOp *op)
{
    TlViewFacts v = tl_view_facts(a, tl_in(op, 0));
    const TlType *t = op->out[0]->type;
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, 0);
    bool extent = op->opcode == TL_OP_EXTENT;
    int64_t number = extent ? v.known_extent[axis] : v.known_stride[axis];
    if (op->opcode == TL_OP_VIEW_PTR) {
        TlAxisFacts f = tl_axis_unknown(t);
        f.divisibility[0] = v.base;
        return f;
    }
    if (number >= 0)
        return known(t, number);
    TlAxisFacts f = tl_axis_unknown(t);
    if (extent && v.extent_hi[axis] >= 0)
        f = ranged(t, 0, v.extent_hi[axis]);
    f.divisibility[0] = extent ? v.extent[axis] : v.stride[axis];
    return f;
}

static TlAxisFacts load(const TlAxisInfo *a, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    TlAxisFacts r = tl_axis_unknown(op->out[0]->type);
    for (int d = 0; d < p.rank && op->opcode == TL_OP_LOAD; d++)
        r.constancy[d] = tl_access_constancy(a, &p, d);
    return r;
}

/* Only that equal operands give equal results. */
static TlAxisFacts elementwise(const TlAxisInfo *a, const TlOp *op)
{
    TlAxisFacts r = tl_axis_unknown(op->out[0]->type);
    for (int d = 0; d < op->out[0]->type->rank; d++) {
        r.constancy[d] = TL_AXIS_MAX;
        for (uint32_t i = 0; i < op->nin; i++)
            if (tl_in(op, i)->type->rank)
                r.constancy[d] =
                    tl_axis_min(r.constancy[d], tl_axis_facts(a, tl_in(op, i))->constancy[d]);
    }
    return r;
}

static TlAxisFacts constant(const TlOp *op)
{
    const TlType *t = op->out[0]->type;
    uint64_t value = tl_attr(op, TL_ATTR_VALUE)->u.bits;
    if (tl_axis_has_numbers(t))
        return known(t, tl_bits_to_int(t->dtype, value));
    TlAxisFacts f = tl_axis_unknown(t);
    for (int d = 0; d < t->rank; d++)
        f.constancy[d] = extent_divisor(t, d);
    return f;
}

/* ---- all ops ---- */

/* Two known operands. */
static bool fold(const Operands *o, int64_t *out)
{
    uint64_t x = (uint64_t)o->x.value, y = (uint64_t)o->y.value, r;
    TlOpcode op = o->op->opcode;
    if (op == TL_OP_ADD)
        r = x + y;
    else if (op == TL_OP_SUB)
        r = x - y;
    else if (op == TL_OP_MUL)
        r = x * y;
    else if (op == TL_OP_AND)
        r = x & y;
    else if (op == TL_OP_OR)
        r = x | y;
    else if (op == TL_OP_XOR)
        r = x ^ y;
    else
        return false;
    TlDtype d = o->type->dtype;
    *out = tl_bits_to_int(d, tl_bits_from_int(d, (int64_t)r));
    return o->x.is_known && o->y.is_known;
}

/* The ops of two integers of which more is known than where they are constant. */
static TlAxisFacts (*const INTEGERS[TL_OP_COUNT])(const Operands *) = {
    [TL_OP_ADD] = add,      [TL_OP_SUB] = sub,           [TL_OP_MUL] = mul,
    [TL_OP_DIV] = quotient, [TL_OP_REM] = rest,          [TL_OP_SHL] = shift_left,
    [TL_OP_MIN] = least_of, [TL_OP_MAX] = most_of,       [TL_OP_SHR] = shift_right,
    [TL_OP_AND] = masked,   [TL_OP_OR] = bits_of_either, [TL_OP_XOR] = bits_of_either};

static TlAxisFacts integers(const TlAxisInfo *a, const TlOp *op)
{
    Operands o = {op, op->out[0]->type, *tl_axis_facts(a, tl_in(op, 0)),
                  *tl_axis_facts(a, tl_in(op, 1))};
    int64_t value;
    return fold(&o, &value) ? known(o.type, value) : INTEGERS[op->opcode](&o);
}

/* 0 - x */
static TlAxisFacts negative(const TlAxisInfo *a, const TlOp *op)
{
    TlAxisFacts zero = known(op->out[0]->type, 0);
    Operands o = {op, op->out[0]->type, zero, *tl_axis_facts(a, tl_in(op, 0))};
    return sub(&o);
}

/* ~x is -1 - x, of unsigned types 2^width - 1 - x. */
static TlAxisFacts complement(const TlAxisInfo *a, const TlOp *op)
{
    const TlType *t = op->out[0]->type;
    TlAxisFacts r = elementwise(a, op), x = *tl_axis_facts(a, tl_in(op, 0));
    int64_t lo, hi;
    tl_axis_type_range(t->dtype, &lo, &hi);
    if (t->dtype != TL_U64)
        set_range(&r, t, (TlWideInt)lo + hi - x.hi, (TlWideInt)lo + hi - x.lo);
    return r;
}

static TlAxisFacts magnitude(const TlAxisInfo *a, const TlOp *op)
{
    TlAxisFacts r = elementwise(a, op), x = *tl_axis_facts(a, tl_in(op, 0));
    TlWideInt lo = x.lo, hi = x.hi, most = -lo > hi ? -lo : hi;
    if (tl_is_signed(op->out[0]->type->dtype))
        set_range(&r, op->out[0]->type, lo > 0 ? lo : hi < 0 ? -hi : 0, most);
    return r;
}

/* clz, ctz, popcount. */
static TlAxisFacts count(const TlAxisInfo *a, const TlOp *op)
{
    const TlType *t = op->out[0]->type;
    TlAxisFacts r = elementwise(a, op), x = *tl_axis_facts(a, tl_in(op, 0));
    int64_t lo = 0, hi = tl_dtype_bits(t->dtype);
    if (op->opcode == TL_OP_CLZ && x.lo > 0) {
        hi -= 64 - __builtin_clzll((unsigned long long)x.lo);
        lo = tl_dtype_bits(t->dtype) - (64 - __builtin_clzll((unsigned long long)x.hi));
    }
    set_range(&r, t, lo, hi);
    return r;
}

/* A position inside of an axis that has elements. */
static TlAxisFacts bordered(const TlAxisInfo *a, const TlOp *op)
{
    const TlAxisFacts *extent = tl_axis_facts(a, tl_in(op, 1));
    TlAxisFacts f = elementwise(a, op);
    f.lo = extent->lo > 0 ? 0 : -1;
    f.hi = tl_axis_max(extent->hi - (extent->hi > INT64_MIN), 0);
    return f;
}

static TlAxisFacts of_elements(const TlAxisInfo *a, const TlOp *op)
{
    bool has_numbers = tl_axis_has_numbers(op->out[0]->type);
    if (op->opcode == TL_OP_PTR_ADD)
        return ptr_add(a, op);
    if (op->opcode == TL_OP_POINTER)
        return pointer(a, op);
    if (op->opcode == TL_OP_SELECT)
        return select_facts(a, op);
    if (op->opcode == TL_OP_CAST || op->opcode == TL_OP_BITCAST)
        return cast(a, op);
    if (op->opcode == TL_OP_BORDER)
        return bordered(a, op);
    if (op->opcode >= TL_OP_EQ && op->opcode <= TL_OP_GE)
        return comparison(a, op);
    if (op->opcode == TL_OP_NEG && has_numbers)
        return negative(a, op);
    if (op->opcode == TL_OP_NOT && tl_is_int(op->out[0]->type->dtype))
        return complement(a, op);
    if (op->opcode == TL_OP_ABS && tl_is_int(op->out[0]->type->dtype))
        return magnitude(a, op);
    if (op->opcode == TL_OP_CLZ || op->opcode == TL_OP_CTZ || op->opcode == TL_OP_POPCOUNT)
        return count(a, op);
    return INTEGERS[op->opcode] && has_numbers ? integers(a, op) : elementwise(a, op);
}

TlAxisFacts tl_axis_transfer(const TlAxisInfo *a, const TlOp *op, uint32_t result)
{
    TL_ASSERT(result < op->nout,
              "result %u of %s", result, tl_op_info(op->opcode)->text);
    const TlType *t = op->out[result]->type;
    const TlAxisFacts *x =
        op->nin && tl_in(op, 0)->type->kind == TL_TILE ? tl_axis_facts(a, tl_in(op, 0)) : NULL;
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    switch (op->opcode) {
    case TL_OP_CONST: return constant(op);
    case TL_OP_PID: return ranged(t, 0, tl_axis_max(a->pid_end[axis] - 1, 0));
    case TL_OP_BLOCK: return ranged(t, 0, INT32_MAX - 1);
    case TL_OP_NBLOCKS:
    case TL_OP_NPID: return ranged(t, 1, INT32_MAX);
    case TL_OP_IOTA: return iota(t);
    case TL_OP_BROADCAST: return broadcast(x, tl_in(op, 0)->type, t);
    case TL_OP_EXPAND: return expand(x, tl_in(op, 0)->type, t, axis);
    case TL_OP_TRANS: return trans(x, op);
    case TL_OP_REGROUP:
    case TL_OP_RESHAPE: return reshape(x, tl_in(op, 0)->type, t);
    case TL_OP_CONVERT: return *x;
    case TL_OP_REDUCE:
    case TL_OP_SCAN: return over_axis(a, op, result);
    case TL_OP_GATHER: return gathered(x, t);
    case TL_OP_HISTOGRAM:
        return op->nin > 1 ? tl_axis_unknown(t) : ranged(t, 0, tl_type_elems(tl_in(op, 0)->type));
    case TL_OP_EXTENT:
    case TL_OP_STRIDE:
    case TL_OP_VIEW_PTR: return of_view(a, op);
    case TL_OP_LOAD:
    case TL_OP_ATOMIC_RMW:
    case TL_OP_ATOMIC_CAS:
    case TL_OP_ATOMIC_LOAD:
    case TL_OP_COPY: return load(a, op);
#define OP(...)
#define ELEM(ID, ...) case TL_OP_##ID:
#include "ir/ops.def"
        return of_elements(a, op);
    case TL_OP_FOR: /* axis_info.c */
    case TL_OP_WHILE:
    case TL_OP_IF:
    case TL_OP_ROLES:
    case TL_OP_VIEW:
    case TL_OP_SUB_VIEW:
    case TL_OP_INSIDE:
    case TL_OP_DOT:
    case TL_OP_ALLOC:
    case TL_OP_GET:
    case TL_OP_MBAR:
    case TL_OP_TENSOR:
    case TL_OP_READY:
    case TL_OP_DOT_ASYNC:
    case TL_OP_RESCALE:
    case TL_OP_AWAIT:
    case TL_OP_YIELD: /* the others have no results */
    case TL_OP_CONDITION:
    case TL_OP_RETURN:
    case TL_OP_BARRIER:
    case TL_OP_STORE:
    case TL_OP_ATOMIC_STORE:
    case TL_OP_PUT:
    case TL_OP_READ:
    case TL_OP_COMMIT:
    case TL_OP_WAIT:
    case TL_OP_EXPECT:
    case TL_OP_ARRIVE:
    case TL_OP_MBAR_WAIT:
    case TL_OP_MBAR_END:
    case TL_OP_TENSOR_END:
    case TL_OP_BULK_STORE:
    case TL_OP_STORE_WAIT:
    case TL_OP_MEET:
    case TL_OP_PING_PONG_WAIT:
    case TL_OP_PING_PONG_ARRIVE:
    case TL_OP_FENCE:
    case TL_OP_PRINT:
    case TL_OP_ASSERT:
    case TL_OP_ASSUME:
    case TL_OP_COUNT: break;
    }
    return tl_axis_unknown(t);
}
