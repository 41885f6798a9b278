/* The rules of ops.def's `rule` column: types and attributes of each op. What a rule may rely on is
 * in verify.h. A rule without a function, or a function without a rule, does not build. */
#include "ir/plan/async_dot.h"
#include "ir/plan/bulk.h"
#include "ir/plan/late.h"
#include "ir/plan/mma.h"
#include "ir/verify/verify.h"
#include <string.h>

#define OP(ID, text, nin, nout, nregions, rule, attrs, flags, layout, doc)                         \
    static void tl_check_##rule(TlVerify *v, const TlOp *op);
#include "ir/ops.def"

static const TlCheckFn rules[TL_OP_COUNT] = {
#define OP(ID, text, nin, nout, nregions, rule, ...) [TL_OP_##ID] = tl_check_##rule,
#include "ir/ops.def"
};

TlCheckFn tl_verify_rule(TlOpcode opcode) { return rules[opcode]; }

/* ---- words used by the rules ---- */

#define FAULT(...) tl_verify_fault(v, op, __VA_ARGS__)

static const TlType *in_type(const TlOp *op, uint32_t i) { return op->in[i].value->type; }
static const TlType *out_type(const TlOp *op, uint32_t i) { return op->out[i]->type; }
static bool is_tile(const TlType *t) { return t->kind == TL_TILE && !t->ptr; }
static bool is_scalar_of(const TlType *t, TlDtype d)
{
    return is_tile(t) && t->rank == 0 && t->dtype == d;
}
static bool is_int_tile(const TlType *t)
{
    return is_tile(t) && tl_is_int(t->dtype) && tl_dtype_bits(t->dtype) >= 8;
}
static bool is_int_scalar(const TlType *t) { return is_int_tile(t) && t->rank == 0; }
static bool is_bool_tile(const TlType *t) { return is_tile(t) && tl_is_bool(t->dtype); }
static bool is_same_element(const TlType *a, const TlType *b)
{
    return a->kind == TL_TILE && b->kind == TL_TILE && a->dtype == b->dtype && a->ptr == b->ptr &&
           a->is_const == b->is_const;
}

static bool has_arithmetic(TlDtype d)
{
    return (tl_is_int(d) && tl_dtype_bits(d) >= 8) || (tl_is_float(d) && tl_dtype_bits(d) >= 16);
}
static bool is_number(TlDtype d) { return has_arithmetic(d); }
static bool is_real(TlDtype d) { return has_arithmetic(d) && tl_is_float(d); }
static bool is_whole(TlDtype d) { return has_arithmetic(d) && tl_is_int(d); }
static bool is_wide_real(TlDtype d) { return d == TL_F32 || d == TL_F64; }
static bool is_bit_type(TlDtype d) { return tl_is_bool(d) || is_whole(d); }

static bool want_type(TlVerify *v, const TlOp *op, const char *what, uint32_t i, const TlType *got,
                      const TlType *want)
{
    return got == want ||
           FAULT("%s %u is %s, not %s", what, i, tl_verify_type(v, got), tl_verify_type(v, want));
}

static bool want_scalar(TlVerify *v, const TlOp *op, uint32_t i, TlDtype d)
{
    return is_scalar_of(in_type(op, i), d) ||
           FAULT("operand %u is %s, not %s", i, tl_verify_type(v, in_type(op, i)),
                 tl_dtype_name(d));
}

/* All operands and the result have one type, of an element that `fits`. */
static void check_same(TlVerify *v, const TlOp *op, bool (*fits)(TlDtype), const char *elements)
{
    const TlType *t = out_type(op, 0);
    if (!is_tile(t) || !fits(t->dtype)) {
        FAULT("the result is %s, not %s", tl_verify_type(v, t), elements);
        return;
    }
    for (uint32_t i = 0; i < op->nin; i++) want_type(v, op, "operand", i, in_type(op, i), t);
}

/* ---- structure ---- */

static void tl_check_constant(TlVerify *v, const TlOp *op)
{
    const TlType *t = out_type(op, 0);
    uint64_t bits = tl_attr(op, TL_ATTR_VALUE)->u.bits;
    int width = t->ptr ? 64 : tl_dtype_bits(t->dtype);
    if (t->kind != TL_TILE) FAULT("a view is not a constant");
    else if (width < 64 && bits >> width) FAULT("more bits than %s has", tl_dtype_name(t->dtype));
    else if (!t->ptr && tl_is_bool(t->dtype) && bits > 1) FAULT("a bool is 0 or 1");
}

/* The block ends in `terminator`, whose operands from number `from` on are n values of the given
 * types. */
static bool want_end(TlVerify *v, const TlOp *op, const TlBlock *b, TlOpcode terminator,
                     uint32_t from, uint32_t n, TlValue *const *like)
{
    const TlOp *end = b->last;
    if (end->opcode != terminator)
        return FAULT("a region ends in %s, not %s", tl_op_info(end->opcode)->text,
                     tl_op_info(terminator)->text);
    if (end->nin != from + n)
        return FAULT("a region gives %u values, %u expected", end->nin, from + n);
    for (uint32_t i = 0; i < n; i++)
        if (!want_type(v, op, "yielded value", i, in_type(end, from + i), like[i]->type))
            return false;
    return true;
}

static bool want_args(TlVerify *v, const TlOp *op, const TlBlock *b, uint32_t n)
{
    return b->nargs == n || FAULT("a region has %u arguments, %u expected", b->nargs, n);
}

/* Only tiles and scalars are carried and chosen, and products that are on their way through loops:
 * a token that DOT_ASYNC takes. */
static bool want_no_views(TlVerify *v, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nout; i++)
        if (out_type(op, i)->kind != TL_TILE &&
            (op->opcode == TL_OP_IF || !tl_is_sums(out_type(op, i))))
            return FAULT("result %u is a %s", i,
                         out_type(op, i)->kind == TL_VIEW ? "view"
                                                          : tl_verify_type(v, out_type(op, i)));
    return true;
}

static bool want_hint(TlVerify *v, const TlOp *op, TlAttrId id, int64_t low)
{
    int64_t n = tl_attr_int(op, id, 0);
    return (n >= low && n <= INT32_MAX) || FAULT("%s = %lld", tl_attr_name(id), (long long)n);
}

static void tl_check_loop_for(TlVerify *v, const TlOp *op)
{
    if (op->nin < 3) {
        FAULT("lo, hi and step are missing");
        return;
    }
    uint32_t n = op->nin - 3;
    const TlBlock *b = op->regions[0];
    const TlType *iv = in_type(op, 0);
    if (!is_int_scalar(iv))
        FAULT("the bounds are %s, not an integer scalar", tl_verify_type(v, iv));
    else if (op->nout != n) FAULT("%u results, %u expected", op->nout, n);
    else if (want_type(v, op, "operand", 1, in_type(op, 1), iv) &&
             want_type(v, op, "operand", 2, in_type(op, 2), iv) && want_args(v, op, b, n + 1) &&
             want_type(v, op, "region argument", 0, b->args[0]->type, iv) && want_no_views(v, op) &&
             want_hint(v, op, TL_ATTR_PIPELINE, 0) && want_hint(v, op, TL_ATTR_UNROLL, -1)) {
        for (uint32_t i = 0; i < n; i++) {
            want_type(v, op, "operand", i + 3, in_type(op, i + 3), out_type(op, i));
            want_type(v, op, "region argument", i + 1, b->args[i + 1]->type, out_type(op, i));
        }
        want_end(v, op, b, TL_OP_YIELD, 0, n, op->out);
    }
}

static void tl_check_loop_while(TlVerify *v, const TlOp *op)
{
    const TlBlock *before = op->regions[0], *after = op->regions[1];
    if (!want_args(v, op, before, op->nin) || !want_args(v, op, after, op->nout) ||
        !want_no_views(v, op) || !want_hint(v, op, TL_ATTR_UNROLL, -1))
        return;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!want_type(v, op, "region argument", i, before->args[i]->type, in_type(op, i))) return;
    for (uint32_t i = 0; i < op->nout; i++)
        if (!want_type(v, op, "region argument", i, after->args[i]->type, out_type(op, i))) return;
    if (!want_end(v, op, before, TL_OP_CONDITION, 1, op->nout, op->out)) return;
    want_end(v, op, after, TL_OP_YIELD, 0, before->nargs, before->args);
}

static void tl_check_branch(TlVerify *v, const TlOp *op)
{
    if (!want_scalar(v, op, 0, TL_BOOL) || !want_no_views(v, op)) return;
    for (uint32_t r = 0; r < 2; r++)
        if (!want_args(v, op, op->regions[r], 0) ||
            !want_end(v, op, op->regions[r], TL_OP_YIELD, 0, op->nout, op->out))
            return;
}

/* The enclosing op's rule checks what is yielded. */
static void tl_check_yield(TlVerify *v, const TlOp *op)
{
    const TlOp *parent = op->block->parent;
    if (!parent) FAULT("ends a kernel, which return must");
    else if (parent->opcode == TL_OP_WHILE && parent->regions[0] == op->block)
        FAULT("ends a region that condition must");
}

static void tl_check_condition(TlVerify *v, const TlOp *op)
{
    const TlOp *parent = op->block->parent;
    if (!parent || parent->opcode != TL_OP_WHILE || parent->regions[0] != op->block)
        FAULT("is not in region 0 of a while");
    else if (op->nin == 0) FAULT("the condition is missing");
    else want_scalar(v, op, 0, TL_BOOL);
}

static void tl_check_ret(TlVerify *v, const TlOp *op)
{
    if (op->block->parent) FAULT("is inside a region");
}

/* ---- the program, making and shaping ---- */

static void tl_check_npid(TlVerify *v, const TlOp *op)
{
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, -1);
    if (!is_scalar_of(out_type(op, 0), TL_I32))
        FAULT("the result is %s, not i32", tl_verify_type(v, out_type(op, 0)));
    if (axis < 0 || axis >= TILE_MAX_GRID) FAULT("axis = %lld", (long long)axis);
}

static void tl_check_pid(TlVerify *v, const TlOp *op)
{
    tl_check_npid(v, op);
    if (op->nin > 1 || (op->nin && !is_scalar_of(in_type(op, 0), TL_I32)))
        FAULT("it takes the number of a program, i32, or nothing");
}

static void tl_check_block(TlVerify *v, const TlOp *op)
{
    if (!is_scalar_of(out_type(op, 0), TL_I32))
        FAULT("the result is %s, not i32", tl_verify_type(v, out_type(op, 0)));
}

static void tl_check_iota(TlVerify *v, const TlOp *op)
{
    const TlType *t = out_type(op, 0);
    if (!is_int_tile(t) || t->rank != 1)
        FAULT("the result is %s, not an integer vector", tl_verify_type(v, t));
}

/* Operand and result are tiles of one element. */
static bool want_reshaping(TlVerify *v, const TlOp *op)
{
    return is_same_element(in_type(op, 0), out_type(op, 0)) ||
           FAULT("takes %s to %s", tl_verify_type(v, in_type(op, 0)),
                 tl_verify_type(v, out_type(op, 0)));
}

static void tl_check_broadcast(TlVerify *v, const TlOp *op)
{
    const TlType *a = in_type(op, 0), *r = out_type(op, 0);
    if (!want_reshaping(v, op) || a->rank == 0) return;
    bool ok = a->rank == r->rank;
    for (int i = 0; ok && i < a->rank; i++) ok = a->shape[i] == r->shape[i] || a->shape[i] == 1;
    if (!ok) FAULT("%s does not fit %s", tl_verify_type(v, a), tl_verify_type(v, r));
}

static void tl_check_expand(TlVerify *v, const TlOp *op)
{
    const TlType *a = in_type(op, 0), *r = out_type(op, 0);
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, -1);
    if (!want_reshaping(v, op)) return;
    bool ok = r->rank == a->rank + 1 && axis >= 0 && axis <= a->rank;
    for (int i = 0; ok && i < r->rank; i++)
        ok = r->shape[i] == (i == axis ? 1 : a->shape[i - (i > axis)]);
    if (!ok)
        FAULT("%s at axis %lld is not %s", tl_verify_type(v, a), (long long)axis,
              tl_verify_type(v, r));
}

static void tl_check_reshape(TlVerify *v, const TlOp *op)
{
    if (want_reshaping(v, op) && tl_type_elems(in_type(op, 0)) != tl_type_elems(out_type(op, 0)))
        FAULT("%s has other elements than %s", tl_verify_type(v, in_type(op, 0)),
              tl_verify_type(v, out_type(op, 0)));
}

static void tl_check_trans(TlVerify *v, const TlOp *op)
{
    const TlType *a = in_type(op, 0), *r = out_type(op, 0);
    const TlAttr *perm = tl_attr(op, TL_ATTR_PERM);
    if (!want_reshaping(v, op)) return;
    bool ok = a->rank == r->rank && perm->n == a->rank;
    uint32_t seen = 0;
    for (int i = 0; ok && i < a->rank; i++) {
        int64_t p = perm->u.ints[i];
        ok = p >= 0 && p < a->rank && !(seen >> p & 1) && r->shape[i] == a->shape[p];
        if (ok) seen |= 1u << p;
    }
    if (!ok) FAULT("perm does not take %s to %s", tl_verify_type(v, a), tl_verify_type(v, r));
}

/* ---- arithmetic ---- */

static void tl_check_arith(TlVerify *v, const TlOp *op) { check_same(v, op, is_number, "numbers"); }
static void tl_check_arith_f(TlVerify *v, const TlOp *op) { check_same(v, op, is_real, "floats"); }
static void tl_check_arith_i(TlVerify *v, const TlOp *op)
{
    check_same(v, op, is_whole, "integers");
}
static void tl_check_arith_f3(TlVerify *v, const TlOp *op)
{
    check_same(v, op, is_wide_real, "f32 or f64");
}
static void tl_check_bits(TlVerify *v, const TlOp *op)
{
    check_same(v, op, is_bit_type, "integers or bool");
}
static void tl_check_shift(TlVerify *v, const TlOp *op) { check_same(v, op, is_whole, "integers"); }

static void tl_check_compare(TlVerify *v, const TlOp *op)
{
    const TlType *a = in_type(op, 0), *r = out_type(op, 0);
    if (!is_tile(a) || !(is_number(a->dtype) || tl_is_bool(a->dtype)))
        FAULT("operand 0 is %s, not numbers or bool", tl_verify_type(v, a));
    else if (want_type(v, op, "operand", 1, in_type(op, 1), a) &&
             !(is_bool_tile(r) && tl_same_shape(a, r)))
        FAULT("the result is %s", tl_verify_type(v, r));
}

static void tl_check_select(TlVerify *v, const TlOp *op)
{
    const TlType *c = in_type(op, 0), *r = out_type(op, 0);
    if (r->kind != TL_TILE) FAULT("the result is a view");
    else if (!is_bool_tile(c) || (c->rank > 0 && !tl_same_shape(c, r)))
        FAULT("the condition is %s, the result %s", tl_verify_type(v, c), tl_verify_type(v, r));
    else if (want_type(v, op, "operand", 1, in_type(op, 1), r))
        want_type(v, op, "operand", 2, in_type(op, 2), r);
}

static bool want_conversion(TlVerify *v, const TlOp *op)
{
    const TlType *a = in_type(op, 0), *r = out_type(op, 0);
    return (is_tile(a) && is_tile(r) && tl_same_shape(a, r)) ||
           FAULT("takes %s to %s", tl_verify_type(v, a), tl_verify_type(v, r));
}

static void tl_check_cast(TlVerify *v, const TlOp *op)
{
    if (!want_conversion(v, op)) return;
    TlDtype to = out_type(op, 0)->dtype;
    if (tl_attr(op, TL_ATTR_ROUND) && !tl_is_float(to)) FAULT("round is for casts to floats");
    if (tl_attr_int(op, TL_ATTR_ROUND, 0) == TL_ROUND_STOCHASTIC)
        FAULT("round = stochastic has no seed here");
    if (tl_attr_flag(op, TL_ATTR_NOSAT) && !tl_is_f8(to)) FAULT("nosat is for casts to f8");
}

static void tl_check_border(TlVerify *v, const TlOp *op)
{
    const TlType *x = in_type(op, 0), *n = in_type(op, 1), *r = out_type(op, 0);
    bool whole = is_int_tile(x) && (tl_dtype_bits(x->dtype) == 64 || x->dtype == TL_I32);
    if (!whole)
        FAULT("maps %s, not i32, i64 or u64", tl_verify_type(v, x));
    else if (!is_int_tile(n) || n->dtype != TL_I64 || !tl_same_shape(x, n))
        FAULT("extents are %s, not i64 of its shape", tl_verify_type(v, n));
    else if (r != n)
        FAULT("the result is %s, not i64 of its shape", tl_verify_type(v, r));
}

static void tl_check_bitcast(TlVerify *v, const TlOp *op)
{
    if (!want_conversion(v, op)) return;
    TlDtype from = in_type(op, 0)->dtype, to = out_type(op, 0)->dtype;
    if (tl_dtype_bits(from) != tl_dtype_bits(to))
        FAULT("%s and %s differ in size", tl_dtype_name(from), tl_dtype_name(to));
    else if (from != to && (tl_is_bool(from) || tl_is_bool(to))) FAULT("bool has no bits");
}

static bool fits_register(const TlType *t)
{
    return is_tile(t) && tl_dtype_bits(t->dtype) >= 16 && !tl_is_bool(t->dtype);
}

static void tl_check_assembly(TlVerify *v, const TlOp *op)
{
    const TlType *r = out_type(op, 0);
    if (!fits_register(r)) FAULT("the result is %s", tl_verify_type(v, r));
    for (uint32_t i = 0; i < op->nin; i++)
        if (!fits_register(in_type(op, i)) || !tl_same_shape(in_type(op, i), r))
            FAULT("operand %u is %s, the result %s", i, tl_verify_type(v, in_type(op, i)),
                  tl_verify_type(v, r));
}

/* ---- over an axis ---- */

static bool want_scalar_value(TlVerify *v, const TlOp *op, const TlType *t)
{
    return (is_tile(t) && t->rank == 0) ||
           FAULT("the region has a value of type %s, not only scalars", tl_verify_type(v, t));
}

/* Only scalars and no effects, because a back end may run the region anywhere and any number of
 * times. */
static bool want_scalar_region(TlVerify *v, const TlOp *op)
{
    if (tl_op_effects(op)) return FAULT("the region has effects");
    for (const TlOp *o = op->regions[0]->first; o; o = tl_walk_next(o, op)) {
        if (o->opcode == TL_OP_REDUCE || o->opcode == TL_OP_SCAN || o->opcode == TL_OP_DOT)
            return FAULT("the region has a %s", tl_op_info(o->opcode)->text);
        for (uint32_t i = 0; i < o->nin; i++)
            if (!want_scalar_value(v, op, in_type(o, i))) return false;
        for (uint32_t i = 0; i < o->nout; i++)
            if (!want_scalar_value(v, op, out_type(o, i))) return false;
    }
    return true;
}

/* The region takes a1..an, b1..bn and yields n scalars of the operands' elements. */
static bool want_combiner(TlVerify *v, const TlOp *op)
{
    uint32_t n = op->nout;
    const TlBlock *b = op->regions[0];
    if (!want_args(v, op, b, 2 * n)) return false;
    for (uint32_t i = 0; i < 2 * n; i++)
        if (!is_scalar_of(b->args[i]->type, in_type(op, i % n)->dtype))
            return FAULT("region argument %u is %s", i, tl_verify_type(v, b->args[i]->type));
    return want_end(v, op, b, TL_OP_YIELD, 0, n, b->args) && want_scalar_region(v, op);
}

/* The rules that reduce and scan share. */
static bool want_combine(TlVerify *v, const TlOp *op)
{
    TlCombine kind = (TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0);
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, -1);
    bool begins = op->opcode == TL_OP_SCAN && op->nin == 2 * op->nout;
    if (op->nin == 0 || (op->nout != op->nin && !begins))
        return FAULT("%u operands, %u results", op->nin, op->nout);
    for (uint32_t i = 0; i < op->nout; i++) {
        const TlType *t = in_type(op, i);
        if (!is_tile(t) || t->rank == 0 || !tl_same_shape(t, in_type(op, 0)))
            return FAULT("operand %u is %s", i, tl_verify_type(v, t));
        if (axis < 0 || axis >= t->rank)
            return FAULT("axis %lld of %s", (long long)axis, tl_verify_type(v, t));
        if (!tl_combine_takes(kind, t->dtype)) return FAULT("not on %s", tl_dtype_name(t->dtype));
    }
    if ((kind == TL_COMBINE_USER) != (op->nregions == 1)) return FAULT("%u regions", op->nregions);
    if (kind != TL_COMBINE_USER) return op->nout == 1 || FAULT("several operands need kind = user");
    return want_combiner(v, op);
}

static void tl_check_reduce(TlVerify *v, const TlOp *op)
{
    if (!want_combine(v, op)) return;
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, 0);
    for (uint32_t i = 0; i < op->nout; i++) {
        const TlType *a = in_type(op, i), *r = out_type(op, i);
        bool ok = is_same_element(a, r) && r->rank == a->rank - 1;
        for (int d = 0; ok && d < r->rank; d++) ok = r->shape[d] == a->shape[d + (d >= axis)];
        if (!ok) FAULT("result %u of %s is %s", i, tl_verify_type(v, a), tl_verify_type(v, r));
    }
}

/* f32 in, f32 out. */
static void tl_check_exp2(TlVerify *v, const TlOp *op)
{
    if (!want_type(v, op, "the result, number", 0, out_type(op, 0), in_type(op, 0))) return;
    if (!is_tile(in_type(op, 0)) || in_type(op, 0)->ptr || in_type(op, 0)->dtype != TL_F32)
        FAULT("exp2 of %s", tl_verify_type(v, in_type(op, 0)));
}

static void tl_check_scan(TlVerify *v, const TlOp *op)
{
    if (!want_combine(v, op)) return;
    for (uint32_t i = 0; i < op->nout; i++)
        want_type(v, op, "result", i, out_type(op, i), in_type(op, i));
    for (uint32_t i = op->nout; i < op->nin; i++)
        if (!is_scalar_of(in_type(op, i), in_type(op, i - op->nout)->dtype))
            FAULT("it begins with %s", tl_verify_type(v, in_type(op, i)));
    if (tl_attr_flag(op, TL_ATTR_EXCLUSIVE) && op->nin == op->nout)
        FAULT("exclusive, but without a scalar to begin with");
}

static void tl_check_gather(TlVerify *v, const TlOp *op)
{
    const TlType *x = in_type(op, 0), *i = in_type(op, 1), *r = out_type(op, 0);
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, -1);
    bool ok = is_tile(x) && is_int_tile(i) && x->rank == i->rank && axis >= 0 && axis < x->rank;
    for (int d = 0; ok && d < x->rank; d++) ok = d == axis || x->shape[d] == i->shape[d];
    if (!ok)
        FAULT("index %s along axis %lld of %s", tl_verify_type(v, i), (long long)axis,
              tl_verify_type(v, x));
    else if (!is_same_element(x, r) || !tl_same_shape(r, i))
        FAULT("%s at index %s gives %s", tl_verify_type(v, x), tl_verify_type(v, i),
              tl_verify_type(v, r));
}

static void tl_check_histogram(TlVerify *v, const TlOp *op)
{
    if (op->nin < 1 || op->nin > 2) {
        FAULT("%u operands", op->nin);
        return;
    }
    const TlType *x = in_type(op, 0), *w = op->nin > 1 ? in_type(op, 1) : x, *r = out_type(op, 0);
    if (!is_tile(x) || x->rank == 0 || x->dtype != TL_I32)
        FAULT("operand 0 is %s, not a tile of i32", tl_verify_type(v, x));
    else if (!is_tile(w) || !tl_same_shape(w, x) || !is_number(w->dtype) || !tl_is_word(w->dtype))
        FAULT("the weights are %s", tl_verify_type(v, w));
    else if (!is_tile(r) || r->rank != 1 || r->dtype != w->dtype)
        FAULT("the result is %s, not a vector of %s", tl_verify_type(v, r),
              tl_dtype_name(w->dtype));
}

static bool is_byte(TlDtype d) { return d == TL_I8 || d == TL_U8; }
static bool is_half_word(TlDtype d) { return d == TL_I16 || d == TL_U16; }

static bool dot_takes(TlDtype a, TlDtype b, TlDtype acc)
{
    if ((is_byte(a) && is_byte(b)) || (is_half_word(a) && is_half_word(b))) return acc == TL_I32;
    if (a != b && !tl_is_f8_pair(a, b)) return false;
    if (a == TL_F32 || a == TL_F64 || (tl_is_int(a) && tl_dtype_bits(a) >= 32)) return acc == a;
    return (a == TL_F16 || a == TL_BF16 || tl_is_f8(a)) && (acc == TL_F32 || acc == TL_F16);
}

/* The instruction takes exactly these types. */
static void check_mma(TlVerify *v, const TlOp *op)
{
    const TlAttr *name = tl_attr(op, TL_ATTR_MMA);
    const TlMma *mma = tl_mma_of(op);
    if (!name) return;
    if (!mma) FAULT("there is no instruction '%s'", name->u.s);
    if (mma && (mma->each != 0) != (op->nin > 3))
        FAULT("'%s' and %u operands", name->u.s, op->nin);
    for (uint32_t i = 0; mma && i < op->nin; i++)
        if (in_type(op, i)->dtype != mma->type[i])
            FAULT("operand %u is %s, '%s' takes %s", i, tl_verify_type(v, in_type(op, i)),
                  name->u.s, tl_dtype_name(mma->type[i]));
}

/* Scales of a dot: of rows of A or columns of B, each of so many elements of K. */
static bool want_scales(TlVerify *v, const TlOp *op, uint32_t i, int32_t rows, int32_t k)
{
    const TlType *t = in_type(op, i);
    int32_t each = tl_scale_each(t->dtype);
    if (is_tile(t) && t->rank == 2 && t->dtype == in_type(op, TL_MMA_SA)->dtype && each &&
        k % each == 0 && t->shape[0] == rows && t->shape[1] == k / each)
        return true;
    return FAULT("operand %u is %s: no scales of %d rows of %d", i, tl_verify_type(v, t),
                 (int)rows, (int)k);
}

/* f8 or f4e2m1, or pairs of f4e2m1. */
static bool takes_scales(TlDtype a, TlDtype b)
{
    return (tl_is_small_float(a) && tl_is_small_float(b)) || (a == TL_U8 && b == TL_U8);
}

static bool check_scales(TlVerify *v, const TlOp *op)
{
    const TlType *a = in_type(op, 0), *b = in_type(op, 1), *c = in_type(op, 2);
    int32_t k = a->shape[1] * (a->dtype == TL_U8 ? 2 : 1);
    if (a->rank != 2 || c->dtype != TL_F32 || !takes_scales(a->dtype, b->dtype))
        return FAULT("%s by %s onto %s, with scales", tl_verify_type(v, a), tl_verify_type(v, b),
                     tl_verify_type(v, c));
    return want_scales(v, op, TL_MMA_SA, c->shape[0], k) &&
           want_scales(v, op, TL_MMA_SB, c->shape[1], k);
}

static void tl_check_dot(TlVerify *v, const TlOp *op)
{
    if (op->nin != 3 && op->nin != TL_MMA_OPERANDS) {
        FAULT("%u operands", op->nin);
        return;
    }
    const TlType *a = in_type(op, 0), *b = in_type(op, 1), *c = in_type(op, 2);
    int r = a->rank;
    if (!want_type(v, op, "the result, number", 0, out_type(op, 0), c)) return;
    bool ok = is_tile(a) && is_tile(b) && is_tile(c) && (r == 2 || r == 3) && b->rank == r &&
              c->rank == r && a->shape[r - 1] == b->shape[r - 2] &&
              c->shape[r - 2] == a->shape[r - 2] && c->shape[r - 1] == b->shape[r - 1] &&
              (r == 2 || (a->shape[0] == b->shape[0] && a->shape[0] == c->shape[0]));
    if (ok && op->nin > 3 && !check_scales(v, op)) return;
    if (!ok || (op->nin == 3 && !dot_takes(a->dtype, b->dtype, c->dtype)))
        FAULT("%s by %s onto %s", tl_verify_type(v, a), tl_verify_type(v, b), tl_verify_type(v, c));
    else if (tl_attr_int(op, TL_ATTR_PRECISION, TL_PRECISION_IEEE) != TL_PRECISION_IEEE &&
             a->dtype != TL_F32)
        FAULT("precision is for f32");
    else if (tl_attr(op, TL_ATTR_BURST) && !tl_attr(op, TL_ATTR_MMA))
        FAULT("burst without mma");
    else if (tl_attr_flag(op, TL_ATTR_UNSIGNED) && op->nin == 3)
        FAULT("unsigned without scales");
    else if (op->nin > 3 && in_type(op, TL_MMA_SA)->dtype != TL_U8 && tl_attr(op, TL_ATTR_MMA) &&
             !tl_attr_flag(op, TL_ATTR_UNSIGNED))
        FAULT("an instruction with scales of f8e4m3, whose signs count");
    else if (tl_attr_int(op, TL_ATTR_BURST, 1) < 1)
        FAULT("bursts of %d", (int)tl_attr_int(op, TL_ATTR_BURST, 1));
    else
        check_mma(v, op);
}

/* ---- pointers and views ---- */

static void tl_check_ptr_add(TlVerify *v, const TlOp *op)
{
    const TlType *p = in_type(op, 0), *n = in_type(op, 1);
    if (p->kind != TL_TILE || !p->ptr) FAULT("operand 0 is %s, not pointers", tl_verify_type(v, p));
    else if (!is_int_tile(n) || !tl_same_shape(p, n))
        FAULT("an offset of %s for %s", tl_verify_type(v, n), tl_verify_type(v, p));
    else want_type(v, op, "result", 0, out_type(op, 0), p);
}

/* Pointers to elements that begin on a byte, and their addresses. */
static bool want_addresses(TlVerify *v, const TlOp *op, const TlType *p, const TlType *u)
{
    if (p->kind != TL_TILE || !p->ptr || tl_dtype_bits(p->dtype) < 8 || !is_tile(u) ||
        u->dtype != TL_U64 || !tl_same_shape(p, u))
        return FAULT("takes %s to %s", tl_verify_type(v, in_type(op, 0)),
                     tl_verify_type(v, out_type(op, 0)));
    return true;
}

static void tl_check_pointer(TlVerify *v, const TlOp *op)
{
    want_addresses(v, op, out_type(op, 0), in_type(op, 0));
}
static void tl_check_address(TlVerify *v, const TlOp *op)
{
    want_addresses(v, op, in_type(op, 0), out_type(op, 0));
}

/* Operand 0, then 2 * rank scalars of i64. */
static bool want_view_words(TlVerify *v, const TlOp *op, uint32_t rank)
{
    if (op->nin != 1 + 2 * rank) return FAULT("%u operands, %u expected", op->nin, 1 + 2 * rank);
    for (uint32_t i = 1; i < op->nin; i++)
        if (!want_scalar(v, op, i, TL_I64)) return false;
    return true;
}

static void tl_check_view(TlVerify *v, const TlOp *op)
{
    const TlType *r = out_type(op, 0);
    if (r->kind != TL_VIEW) {
        FAULT("the result is %s, not a view", tl_verify_type(v, r));
        return;
    }
    if (!want_view_words(v, op, r->rank)) return;
    const TlType *p = in_type(op, 0);
    /* those that hold the elements */
    bool bytes = r->dtype == TL_U8 && tl_dtype_bits(p->dtype) == 4;
    if (!tl_is_scalar(p) || !p->ptr || (p->dtype != r->dtype && !bytes) ||
        (p->is_const && !r->is_const))
        FAULT("%s of %s", tl_verify_type(v, r), tl_verify_type(v, p));
}

static bool want_view(TlVerify *v, const TlOp *op)
{
    if (op->nin == 0) return FAULT("the view is missing");
    return in_type(op, 0)->kind == TL_VIEW ||
           FAULT("operand 0 is %s, not a view", tl_verify_type(v, in_type(op, 0)));
}

static void tl_check_sub_view(TlVerify *v, const TlOp *op)
{
    if (want_view(v, op) && want_view_words(v, op, in_type(op, 0)->rank))
        want_type(v, op, "result", 0, out_type(op, 0), in_type(op, 0));
}

static void tl_check_view_query(TlVerify *v, const TlOp *op)
{
    if (!want_view(v, op)) return;
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, -1);
    if (axis < 0 || axis >= in_type(op, 0)->rank)
        FAULT("axis %lld of %s", (long long)axis, tl_verify_type(v, in_type(op, 0)));
    if (!is_scalar_of(out_type(op, 0), TL_I64))
        FAULT("the result is %s, not i64", tl_verify_type(v, out_type(op, 0)));
}

static void tl_check_view_ptr(TlVerify *v, const TlOp *op)
{
    if (!want_view(v, op)) return;
    const TlType *t = in_type(op, 0), *r = out_type(op, 0);
    if (!tl_is_scalar(r) || !r->ptr || r->dtype != t->dtype || r->is_const != t->is_const)
        FAULT("%s of %s", tl_verify_type(v, r), tl_verify_type(v, t));
}

/* ---- laid-out level ---- */

/* The layouts themselves are checked by verify_layout.c. */
static void tl_check_convert(TlVerify *v, const TlOp *op)
{
    const TlType *a = in_type(op, 0), *r = out_type(op, 0);
    bool ok =
        is_same_element(a, r) && tl_same_shape(a, r) && (a->layout != NULL) == (r->layout != NULL);
    if (!ok) FAULT("takes %s to %s", tl_verify_type(v, a), tl_verify_type(v, r));
}

static void tl_check_barrier(TlVerify *v, const TlOp *op) { (void)v, (void)op; }

/* ---- memory ---- */

static bool want_axes(TlVerify *v, const TlOp *op, const TlAttr *axes)
{
    const TlType *t = in_type(op, 0);
    if (axes->n != t->rank) return FAULT("%u axes for %s", axes->n, tl_verify_type(v, t));
    TlValue *index[TL_MAX_VIEW_RANK];
    for (uint32_t i = 0; i < axes->n; i++) {
        const TlAxis *x = &axes->u.axes[i];
        index[i] = op->in[1 + i].value;
        if ((unsigned)x->kind > TL_AXIS_TILE) return FAULT("axis %u is of no kind", i);
        if (!is_int_tile(index[i]->type))
            return FAULT("index %u is %s", i, tl_verify_type(v, index[i]->type));
        if ((x->kind == TL_AXIS_TILE) != (index[i]->type->rank > 0))
            return FAULT("index %u is %s, which its axis is not", i,
                         tl_verify_type(v, index[i]->type));
        if (x->kind == TL_AXIS_SLICE && (x->width < 1 || x->width > TL_MAX_ELEMS || x->step == 0))
            return FAULT("axis %u: width %d, step %d", i, (int)x->width, (int)x->step);
    }
    int rank;
    int32_t shape[TL_MAX_RANK];
    if (!tl_place_shape(axes->n, axes->u.axes, index, &rank, shape))
        return FAULT("the axes do not form a tile");
    int64_t elems = 1;
    for (int i = 0; i < rank; i++)
        if ((elems *= shape[i]) > TL_MAX_ELEMS) return FAULT("more than 2^20 elements");
    return true;
}

/* Checks the place and how many operands follow it; after this tl_op_place may be called. */
static bool want_place(TlVerify *v, const TlOp *op, uint32_t values)
{
    const TlAttr *axes = tl_attr(op, TL_ATTR_AXES);
    uint32_t n = 1 + (axes ? axes->n : 0) + values + tl_attr_flag(op, TL_ATTR_MASK) +
                 tl_attr_flag(op, TL_ATTR_OTHER) + (tl_is_bulk_copy(op) ? 2 : 0);
    if (op->nin != n) return FAULT("%u operands, %u expected", op->nin, n);
    const TlType *t = in_type(op, 0);
    if (axes) return want_view(v, op) && want_axes(v, op, axes);
    return (t->kind == TL_TILE && t->ptr) ||
           FAULT("operand 0 is %s, not a pointer", tl_verify_type(v, t));
}

static bool has_shape(const TlType *t, const TlPlace *p)
{
    return t->kind == TL_TILE && t->rank == p->rank &&
           memcmp(t->shape, p->shape, sizeof *p->shape * t->rank) == 0;
}

/* A value of the place's element and shape. */
static bool want_element(TlVerify *v, const TlOp *op, const char *what, const TlType *t,
                         const TlPlace *p)
{
    const TlType *base = p->base->type;
    return (is_tile(t) && t->dtype == base->dtype && has_shape(t, p)) ||
           FAULT("%s is %s, which is not what is at the place", what, tl_verify_type(v, t));
}

static bool want_mask(TlVerify *v, const TlOp *op, const TlPlace *p)
{
    if (!p->mask) return true;
    const TlType *t = p->mask->type;
    return (is_bool_tile(t) && (t->rank == 0 || has_shape(t, p))) ||
           FAULT("the mask is %s", tl_verify_type(v, t));
}

static bool want_other(TlVerify *v, const TlOp *op, const TlPlace *p)
{
    if (!p->other) return true;
    const TlType *t = p->other->type;
    return is_scalar_of(t, p->base->type->dtype) || want_element(v, op, "other", t, p);
}

static bool want_writable(TlVerify *v, const TlOp *op)
{
    return !in_type(op, 0)->is_const ||
           FAULT("%s may not be written", tl_verify_type(v, in_type(op, 0)));
}

static void tl_check_load(TlVerify *v, const TlOp *op)
{
    if (!want_place(v, op, 0)) return;
    TlPlace p = tl_op_place(op);
    if (want_element(v, op, "the result", out_type(op, 0), &p) && want_mask(v, op, &p))
        want_other(v, op, &p);
}

static void tl_check_store(TlVerify *v, const TlOp *op)
{
    if (!want_place(v, op, 1) || !want_writable(v, op)) return;
    TlPlace p = tl_op_place(op);
    if (want_element(v, op, "the value", p.value->type, &p)) want_mask(v, op, &p);
}

static void tl_check_inside(TlVerify *v, const TlOp *op)
{
    if (!want_place(v, op, 0)) return;
    TlPlace p = tl_op_place(op);
    const TlType *r = out_type(op, 0);
    if (!is_bool_tile(r) || !has_shape(r, &p)) FAULT("the result is %s", tl_verify_type(v, r));
}

static bool want_atomic(TlVerify *v, const TlOp *op, bool fits)
{
    return fits || FAULT("not on %s", tl_dtype_name(in_type(op, 0)->dtype));
}

/* An atomic with so many values behind its place. */
static void check_atomic(TlVerify *v, const TlOp *op, uint32_t values)
{
    if (!want_place(v, op, values) || (values && !want_writable(v, op))) return;
    TlPlace p = tl_op_place(op);
    TlDtype d = p.base->type->dtype;
    const TlAttr *kind = tl_attr(op, TL_ATTR_RMW);
    if (want_atomic(v, op, kind ? tl_rmw_takes((TlRmw)kind->u.i, d) : tl_atomic_moves(d)) &&
        (!p.value || want_element(v, op, "the value", p.value->type, &p)) &&
        (!p.expected || want_element(v, op, "what is expected", p.expected->type, &p)) &&
        (!op->nout || want_element(v, op, "the result", out_type(op, 0), &p)))
        want_mask(v, op, &p);
}

static void tl_check_atomic_rmw(TlVerify *v, const TlOp *op) { check_atomic(v, op, 1); }
static void tl_check_atomic_cas(TlVerify *v, const TlOp *op) { check_atomic(v, op, 2); }
static void tl_check_atomic_load(TlVerify *v, const TlOp *op) { check_atomic(v, op, 0); }
static void tl_check_atomic_store(TlVerify *v, const TlOp *op) { check_atomic(v, op, 1); }

/* ---- buffers and copies ---- */

static bool want_buf(TlVerify *v, const TlOp *op, const TlType *t)
{
    return t->kind == TL_BUF || FAULT("%s is not a buffer", tl_verify_type(v, t));
}

/* A tile or token of the buffer's element and shape. */
static bool want_content(TlVerify *v, const TlOp *op, const TlType *buf, const TlType *t,
                         TlTypeKind kind)
{
    bool ok = t->kind == kind && !t->ptr && t->dtype == buf->dtype && t->rank == buf->rank &&
              memcmp(t->shape, buf->shape, sizeof t->shape) == 0;
    return ok || FAULT("%s does not fit %s", tl_verify_type(v, t), tl_verify_type(v, buf));
}

static void tl_check_alloc(TlVerify *v, const TlOp *op) { want_buf(v, op, out_type(op, 0)); }

static void tl_check_put(TlVerify *v, const TlOp *op)
{
    if (want_buf(v, op, in_type(op, 0)) && want_scalar(v, op, 1, TL_I32))
        want_content(v, op, in_type(op, 0), in_type(op, 2), TL_TILE);
}

/* Does the op, or an op inside of it, use the tile of the get? */
static bool takes(const TlOp *op, const TlOp *get)
{
    for (const TlOp *o = op; o; o = tl_walk_next(o, op))
        for (uint32_t i = 0; i < o->nin; i++)
            if (tl_get_of(tl_in(o, i)) == get) return true;
    return false;
}

static bool reads_late(const TlOp *op)
{
    return op->opcode == TL_OP_TRANS || op->opcode == TL_OP_READ || tl_mma_of(op);
}

/* The tile must be read, at the latest by an op that uses it, before the slot can change. */
static void want_late(TlVerify *v, const TlOp *op)
{
    const TlOp *end = NULL;
    for (const TlOp *o = op->next; o && tl_attr(op, TL_ATTR_LATE); o = o->next) {
        const char *text = tl_op_info(o->opcode)->text;
        if (takes(o, op)) {
            if (end) FAULT("late: '%s' reads it after '%s'", text, tl_op_info(end->opcode)->text);
            else if (!reads_late(o)) FAULT("late: '%s' takes it before it is read", text);
            if (end || !reads_late(o)) return;
            if (o->opcode == TL_OP_READ && !tl_attr(o, TL_ATTR_LATE)) return;
        }
        if (!end && !tl_may_read_behind(o)) end = o;
    }
}

static void tl_check_get(TlVerify *v, const TlOp *op)
{
    if (!want_buf(v, op, in_type(op, 0)) || !want_scalar(v, op, 1, TL_I32) ||
        !want_content(v, op, in_type(op, 0), out_type(op, 0), TL_TILE))
        return;
    want_late(v, op);
}

static void tl_check_read(TlVerify *v, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++)
        if (!tl_late_get(tl_in(op, i))) FAULT("operand %u does not come from a late get", i);
}

static void want_way(TlVerify *v, const TlOp *op, const TlPlace *p)
{
    const TlAttr *async = tl_attr(op, TL_ATTR_ASYNC);
    int64_t n = async ? async->u.i : 0, unit = tl_dtype_bytes(p->base->type->dtype);
    bool ok = !async || ((n == 4 || n == 8 || n == 16) && n % unit == 0);
    if (!ok)
        FAULT("async = %lld, with elements of %lld bytes", (long long)n, (long long)unit);
}

static bool want_bar(TlVerify *v, const TlOp *op, const TlType *t)
{
    bool ok = t->kind == TL_BUF && t->dtype == TL_U64 && t->rank == 1 && t->shape[0] == 1;
    return ok || FAULT("%s is no buffer of barriers", tl_verify_type(v, t));
}

static bool want_cluster(TlVerify *v, const TlOp *op)
{
    int64_t n = tl_attr_int(op, TL_ATTR_CLUSTER, 1);
    return (n >= 1 && n <= TL_MAX_CLUSTER) || FAULT("cluster = %lld", (long long)n);
}

static void tl_check_copy(TlVerify *v, const TlOp *op)
{
    if (!want_place(v, op, 2))
        return;
    TlPlace p = tl_op_place(op);
    const TlType *buf = p.buf->type;
    TlDtype d = p.base->type->dtype;
    if (p.bar && (!want_bar(v, op, p.bar->type) || p.bar_slot->type->rank ||
                  (p.mask && p.mask->type->rank) || tl_attr(op, TL_ATTR_ASYNC))) {
        FAULT("bulk: a barrier and its slot, a scalar mask, not async");
        return;
    }
    if (!want_cluster(v, op))
        return;
    if (tl_attr(op, TL_ATTR_CLUSTER) && !p.bar) {
        FAULT("cluster without bulk");
        return;
    }
    bool pair = tl_attr_flag(op, TL_ATTR_PAIR);
    if (pair ? !p.bar || tl_attr(op, TL_ATTR_CLUSTER) : buf->halved != 0) {
        FAULT("pair: bulk, without cluster; what a pair has halves of comes so");
        return;
    }
    if (!tl_is_scalar(p.slot->type) || p.slot->type->dtype != TL_I32) {
        FAULT("operand %u is %s, not i32", op->nin - (p.bar ? 3 : 1),
              tl_verify_type(v, p.slot->type));
        return;
    }
    if (!want_buf(v, op, buf) || !want_content(v, op, buf, out_type(op, 0), TL_TOKEN) ||
        !want_mask(v, op, &p))
        return;
    if (d != buf->dtype || buf->rank != p.rank ||
        memcmp(buf->shape, p.shape, sizeof *p.shape * buf->rank) != 0)
        FAULT("%s is not what is at the place", tl_verify_type(v, buf));
    else if (tl_is_bool(d) || tl_dtype_bits(d) < 8) /* in memory they look other than in tiles */
        FAULT("not of %s", tl_dtype_name(d));
    else
        want_way(v, op, &p);
}

/* ---- bulk stores ---- */

static void tl_check_bulk_store(TlVerify *v, const TlOp *op)
{
    TlBulk ignored;
    if (!want_place(v, op, 2))
        return;
    TlPlace p = tl_op_place(op);
    const TlType *buf = p.buf->type;
    TlDtype d = p.base->type->dtype;
    if (!want_buf(v, op, buf) || !want_scalar(v, op, op->nin - 1, TL_I32))
        return;
    if (d != buf->dtype || buf->rank != p.rank ||
        memcmp(buf->shape, p.shape, sizeof *p.shape * buf->rank) != 0)
        FAULT("%s is not what is at the place", tl_verify_type(v, buf));
    else if (buf->layout && !tl_bulk_plan(&v->scratch, op, buf, &ignored))
        FAULT("no boxes of a tensor map are %s", tl_verify_type(v, buf));
}

static void tl_check_store_wait(TlVerify *v, const TlOp *op) { want_buf(v, op, in_type(op, 0)); }

/* ---- barriers that count ---- */

static void tl_check_mbar(TlVerify *v, const TlOp *op)
{
    int64_t n = tl_attr_int(op, TL_ATTR_ARRIVALS, 0);
    if (want_bar(v, op, out_type(op, 0)) && want_cluster(v, op) && (n < 1 || n > 1024))
        FAULT("arrivals = %lld", (long long)n);
}

static void tl_check_expect(TlVerify *v, const TlOp *op)
{
    int64_t n = tl_attr_int(op, TL_ATTR_BYTES, 0);
    bool masked = tl_attr_flag(op, TL_ATTR_MASK);
    if (op->nin != (masked ? 3u : 2u)) FAULT("%u operands", op->nin);
    else if (want_bar(v, op, in_type(op, 0)) && want_scalar(v, op, 1, TL_I32) &&
             (!masked || want_scalar(v, op, 2, TL_BOOL)) && (n < 0 || n >= 1 << 20))
        FAULT("bytes = %lld", (long long)n);
}

static void tl_check_roles(TlVerify *v, const TlOp *op)
{
    const TlOp *next = op->next && op->next->opcode == TL_OP_MEET ? op->next->next : op->next;
    if (op->block->parent || !next || next->opcode != TL_OP_RETURN) {
        FAULT("not the last op of the kernel");
        return;
    }
    for (int r = 0; r < 2; r++)
        if (!want_end(v, op, op->regions[r], TL_OP_YIELD, 0, 0, NULL))
            return;
}

static void tl_check_ping_pong(TlVerify *v, const TlOp *op)
{
    if (tl_op_role(op) != 1)
        FAULT("not among the kernel's warps of roles");
}

static bool is_tensor_of_pair(const TlFn *fn)
{
    const TlOp *op = fn->body->first;
    while (op && op->opcode != TL_OP_TENSOR)
        op = op->next;
    return op && tl_attr_flag(op, TL_ATTR_PAIR);
}

static void tl_check_arrive(TlVerify *v, const TlOp *op)
{
    bool masked = tl_attr_flag(op, TL_ATTR_MASK);
    if (op->nin != (masked ? 3u : 2u)) FAULT("%u operands", op->nin);
    else if (tl_attr_flag(op, TL_ATTR_PAIR) !=
             (tl_attr_flag(op, TL_ATTR_PRODUCTS) && is_tensor_of_pair(v->fn)))
        FAULT("pair, and products are not, or the other way round");
    else if (want_bar(v, op, in_type(op, 0)) && want_scalar(v, op, 1, TL_I32) && masked)
        want_scalar(v, op, 2, TL_BOOL);
}

static void tl_check_mbar_wait(TlVerify *v, const TlOp *op)
{
    bool masked = tl_attr_flag(op, TL_ATTR_MASK);
    if (op->nin != (masked ? 4u : 3u)) FAULT("%u operands", op->nin);
    else if (masked && !tl_attr_flag(op, TL_ATTR_ONE)) FAULT("a mask, but all threads wait");
    else if (want_bar(v, op, in_type(op, 0)) && want_scalar(v, op, 1, TL_I32) &&
             want_scalar(v, op, 2, TL_I32) && masked)
        want_scalar(v, op, 3, TL_BOOL);
}

static void tl_check_mbar_end(TlVerify *v, const TlOp *op) { want_bar(v, op, in_type(op, 0)); }

/* ---- products on their way ---- */

/* A token and the tile that it is of. */
static bool want_token(TlVerify *v, const TlOp *op, const TlType *token, const TlType *tile)
{
    bool ok = tl_is_sums(token) && is_tile(tile) && token->dtype == tile->dtype &&
              token->rank == tile->rank && token->layout == tile->layout &&
              memcmp(token->shape, tile->shape, sizeof tile->shape) == 0;
    return ok || FAULT("%s is no token of %s", tl_verify_type(v, token), tl_verify_type(v, tile));
}

static void tl_check_ready(TlVerify *v, const TlOp *op)
{
    int64_t column = tl_attr_int(op, TL_ATTR_COLUMN, 0);
    if (want_token(v, op, out_type(op, 0), in_type(op, 0)) &&
        (column < 0 || column >= TL_TENSOR_COLUMNS))
        FAULT("column = %lld", (long long)column);
}

static void tl_check_rescale(TlVerify *v, const TlOp *op)
{
    if (want_token(v, op, out_type(op, 0), in_type(op, 1)) &&
        want_type(v, op, "the result, number", 0, out_type(op, 0), in_type(op, 0)) &&
        out_type(op, 0)->kind != TL_TENSOR)
        FAULT("%s is not in tensor memory", tl_verify_type(v, out_type(op, 0)));
}

static void tl_check_tensor(TlVerify *v, const TlOp *op)
{
    int64_t n = tl_attr_int(op, TL_ATTR_COLUMNS, 0);
    int32_t slots = TL_TENSOR_SLOTS + tl_attr_flag(op, TL_ATTR_PAIR);
    if (out_type(op, 0)->slots != slots)
        FAULT("%d slots", (int)out_type(op, 0)->slots);
    else if (want_bar(v, op, out_type(op, 0)) &&
        (n < TL_TENSOR_LEAST || n > TL_TENSOR_COLUMNS || n & (n - 1)))
        FAULT("columns = %lld", (long long)n);
}

static void tl_check_tensor_end(TlVerify *v, const TlOp *op)
{
    const TlOp *tensor = tl_in(op, 0)->def;
    if (!tensor || tensor->opcode != TL_OP_TENSOR) FAULT("operand 0 is of no tensor");
}

/* How many operands a side takes; 0: it is none. */
static uint32_t side_operands(TlVerify *v, const TlOp *op, uint32_t at)
{
    bool buf = at < op->nin && in_type(op, at)->kind == TL_BUF,
         tensor = at == 0 && op->nin && in_type(op, at)->kind == TL_TENSOR;
    if (at + (buf ? 1u : 0u) >= op->nin || in_type(op, at)->rank != 2 ||
        (!buf && !tensor && !is_tile(in_type(op, at)))) {
        FAULT("operand %u is no matrix", at);
        return 0;
    }
    return buf ? want_scalar(v, op, at + 1, TL_I32) ? 2 : 0 : 1;
}

/* Scales, from operand `at` on: each a buffer and a slot, of rows of A or columns of B. */
static bool check_async_scales(TlVerify *v, const TlOp *op, uint32_t at, const TlMma *mma,
                               const TlAsyncDot *d)
{
    int32_t shape[2][2];
    for (int i = 0; i < 2; i++)
        tl_async_side_shape(&d->side[i], shape[i]);
    for (int i = 0; i < 2; i++, at += 2) {
        const TlType *t = in_type(op, at);
        int32_t rows = shape[i][i], k = shape[TL_MMA_A][1];
        if (!want_scalar(v, op, at + 1, TL_I32))
            return false;
        if (t->rank != 2 || t->dtype != mma->type[TL_MMA_SA + i] || t->shape[0] != rows ||
            t->shape[1] * mma->each != k)
            return FAULT("operand %u is %s: no scales of %d rows of %d", at,
                         tl_verify_type(v, t), (int)rows, (int)k);
    }
    if (mma->type[TL_MMA_SA] != TL_U8 && !tl_attr_flag(op, TL_ATTR_UNSIGNED))
        return FAULT("an instruction with scales of f8e4m3, whose signs count");
    return true;
}

/* All products are of pairs, or none is; those that are have halves of B. */
static void want_pair(TlVerify *v, const TlOp *op, const TlAsyncDot *d)
{
    bool pair = tl_attr_flag(op, TL_ATTR_PAIR);
    const TlType *b = d->side[TL_MMA_B].buf ? d->side[TL_MMA_B].buf->type : NULL;
    if (pair != (b && b->halved))
        FAULT("pair, but not halves of B, or the other way round");
    else if (pair != is_tensor_of_pair(v->fn))
        FAULT("pair, and tensor memory is not, or the other way round");
}

static void tl_check_dot_async(TlVerify *v, const TlOp *op)
{
    uint32_t a = side_operands(v, op, 0), b = a ? side_operands(v, op, a) : 0, scales = 0;
    if (!b) return;
    while (scales < 4 && a + b + scales + 1 < op->nin &&
           in_type(op, a + b + scales)->kind == TL_BUF)
        scales += 2;
    if (op->nin != a + b + scales + 1) {
        FAULT("%u operands, not %u", op->nin, a + b + scales + 1);
        return;
    }
    const TlType *acc = in_type(op, a + b + scales);
    if (!want_type(v, op, "the result, number", 0, out_type(op, 0), acc)) return;
    const TlMma *mma = tl_mma_find(tl_attr(op, TL_ATTR_MMA)->u.s);
    TlAsyncDot d = tl_async_dot(op);
    if (scales != (mma && mma->each ? 4 : 0)) {
        FAULT("%u operands are too many or too few for '%s'", op->nin, mma ? mma->name : "");
        return;
    }
    if (scales && !check_async_scales(v, op, a + b, mma, &d)) return;
    int32_t shape[2][2];
    for (int i = 0; i < 2; i++)
        if (tl_async_side_shape(&d.side[i], shape[i]) != (mma ? mma->type[i] : TL_DTYPE_COUNT)) {
            FAULT("operand %d is not what the instruction takes", i);
            return;
        }
    const TlValue *a_there = d.side[TL_MMA_A].tensor;
    if (a_there && (!a_there->def || a_there->def->opcode != TL_OP_READY ||
                    a_there->def->block != op->block)) {
        FAULT("operand 0 is of no ready in the block");
        return;
    }
    bool in_tensor = mma && tl_tensor_mma_of(mma);
    if (acc->kind != (in_tensor ? TL_TENSOR : TL_TOKEN) || acc->rank != 2 ||
        acc->dtype != mma->type[2] || acc->shape[0] != shape[0][0] ||
        acc->shape[1] != shape[1][1] || shape[0][1] != shape[1][0])
        FAULT("%d x %d by %d x %d onto %s", (int)shape[0][0], (int)shape[0][1], (int)shape[1][0],
              (int)shape[1][1], tl_verify_type(v, acc));
    else if (acc->layout && !tl_async_plan(&v->scratch, mma, d.side, acc))
        FAULT(in_tensor ? "no instruction does it" : "no warpgroup does it");
    else
        want_pair(v, op, &d);
}

static void tl_check_fence(TlVerify *v, const TlOp *op) { (void)v, (void)op; }

static void tl_check_await(TlVerify *v, const TlOp *op)
{
    int64_t n = tl_attr_int(op, TL_ATTR_PENDING, 0);
    if (n < 0 || n > TL_MAX_BUF_SLOTS) FAULT("pending = %lld", (long long)n);
    if (op->nout != op->nin) FAULT("%u tokens, %u tiles", op->nin, op->nout);
    for (uint32_t i = 0; i < op->nin && op->nout == op->nin; i++)
        if (!want_token(v, op, in_type(op, i), out_type(op, i)))
            return;
}

static void tl_check_commit(TlVerify *v, const TlOp *op) { (void)v, (void)op; }

static void tl_check_wait(TlVerify *v, const TlOp *op)
{
    int64_t n = tl_attr_int(op, TL_ATTR_PENDING, 0);
    if (n < 0 || n > TL_MAX_BUF_SLOTS) FAULT("pending = %lld", (long long)n);
}

/* ---- debugging and promises ---- */

static void tl_check_print(TlVerify *v, const TlOp *op)
{
    if (in_type(op, 0)->kind == TL_VIEW) FAULT("a view cannot be shown");
    else if (in_type(op, 0)->kind != TL_TILE)
        FAULT("%s cannot be shown", tl_verify_type(v, in_type(op, 0)));
}

static void tl_check_assertion(TlVerify *v, const TlOp *op)
{
    if (!is_bool_tile(in_type(op, 0)))
        FAULT("operand 0 is %s, not bool", tl_verify_type(v, in_type(op, 0)));
}
