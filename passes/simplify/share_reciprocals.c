/* share-reciprocals: many quotients by one divisor become products with its reciprocal.
 *
 *     %d = broadcast %s              %a = abs %s
 *     %q = div %x, %d : f32    =>    %p = %a > 2^126 ? 2^-64 : %a < 2^-126 ? 2^64 : 1
 *                                    %c = %s * %p
 *                                    %n = 1 / %c {approx}
 *                                    %e = fma(-%c, %n, 1)
 *                                    %r = %e == %e ? fma(%n, %e, %n) : %n
 *                                    %q = (%x * broadcast %p) * broadcast %r
 *
 * f32's quotients need to be right to 2 ulp only (LANGUAGE.md section 5); this is within 1.51, as
 * %r and the last product are rounded once each: %n is right to 2 ulp, and one step of Newton's
 * squares that error. Where the divisor is 0 or infinite, %n stays. (A reciprocal that is rounded
 * once would take PTX a branch, and code for divisors that %p excludes.) %p keeps %r away from
 * where it would be subnormal or overflow: x * p is exact, or the quotient is 0 or infinite anyway.
 * Infinities, zeros and NaN come out as those of the division. A division takes five to ten times
 * as long as a product. Of a divisor that is known to be NaN or from 2^-126 to 2^126 in magnitude
 * (the attribute `divisor`), %p is 1 and %e a number: both are left out.
 *
 * The divisor may have been widened from f16 or bf16 after the broadcast: such quotients are
 * computed in f32 and then rounded.
 *
 * Left alone: constant divisors (who divides by 10 looks at the last digit), divisors for fewer
 * than four elements, and f64, whose quotients are correctly rounded. It runs on every device;
 * not with --fp=strict. */
#include "passes/pass.h"

#include "ir/numeric.h"

enum { FEWEST_SHARERS = 4 };

static bool is_widening(const TlOp *op)
{
    return op->opcode == TL_OP_CAST && tl_is_float(tl_in(op, 0)->type->dtype);
}

/* The value that is broadcast to be the divisor, where it pays. */
static TlValue *shared_divisor(const TlOp *op)
{
    uint64_t bits;
    if (op->opcode != TL_OP_DIV)
        return NULL;
    const TlType *t = op->out[0]->type;
    if (t->dtype != TL_F32 || t->rank == 0)
        return NULL;
    const TlOp *spread = tl_in(op, 1)->def;
    if (spread && is_widening(spread))
        spread = tl_in(spread, 0)->def;
    if (!spread || spread->opcode != TL_OP_BROADCAST)
        return NULL;
    TlValue *s = tl_in(spread, 0);
    if (tl_value_is_const(s, &bits) || tl_type_elems(t) < FEWEST_SHARERS * tl_type_elems(s->type))
        return NULL;
    return s;
}

static TlValue *number(TlBuilder *b, const TlValue *like, double x)
{
    return tl_const_bits(b, like->type, tl_bits_from_double(TL_F32, x));
}

/* 1 / d for a d that is no subnormal and whose reciprocal is none; normal: nor 0 or infinite. */
static TlValue *reciprocal(TlBuilder *b, TlValue *d, bool normal)
{
    TlValue *one = number(b, d, 1), *n = tl_binary(b, TL_OP_DIV, one, d);
    TlAttr approx = {.id = TL_ATTR_APPROX, .u.i = normal ? TL_APPROX_NORMAL : TL_APPROX_ANY};
    tl_attr_set(b->fn, n->def, approx);
    TlValue *e = tl_fma(b, tl_unary(b, TL_OP_NEG, d), n, one), *better = tl_fma(b, n, e, n);
    return normal ? better : tl_select(b, tl_binary(b, TL_OP_EQ, e, e), better, n);
}

/* A power of two for each divisor that keeps its product with it away from both ends of f32. */
static TlValue *guard(TlBuilder *b, TlValue *s)
{
    TlValue *a = tl_unary(b, TL_OP_ABS, s), *one = number(b, s, 1);
    TlValue *huge = tl_binary(b, TL_OP_GT, a, number(b, s, 0x1p126)),
            *tiny = tl_binary(b, TL_OP_LT, a, number(b, s, 0x1p-126));
    return tl_select(b, huge, number(b, s, 0x1p-64), tl_select(b, tiny, number(b, s, 0x1p64), one));
}

static void multiply(TlOp *op, TlValue *s)
{
    TL_ASSERT(op->opcode == TL_OP_DIV && tl_is_float(s->type->dtype), "%s by %s",
              tl_op_info(op->opcode)->text, tl_dtype_name(s->type->dtype));
    TlBuilder b = tl_builder_before(op);
    s = tl_cast(&b, s, TL_F32);
    const TlType *t = op->out[0]->type;
    bool normal = tl_attr_int(op, TL_ATTR_APPROX, TL_APPROX_ANY) == TL_APPROX_NORMAL;
    TlValue *p = normal ? NULL : guard(&b, s), *x = tl_in(op, 0);
    TlValue *r = reciprocal(&b, p ? tl_binary(&b, TL_OP_MUL, s, p) : s, normal);
    if (p)
        x = tl_binary(&b, TL_OP_MUL, x, tl_broadcast(&b, p, t->rank, t->shape));
    TlValue *q = tl_binary(&b, TL_OP_MUL, x, tl_broadcast(&b, r, t->rank, t->shape));
    q->name = op->out[0]->name;
    tl_replace_uses(op->out[0], q);
    tl_op_erase(op);
}

TlPassResult tl_pass_share_reciprocals(TlFn *fn, TlPassCtx *px)
{
    (void)px;
    TlPassResult result = TL_SAME;
    if (fn->ring)
        return TL_SAME;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        TlValue *s = shared_divisor(op);
        if (!s)
            continue;
        multiply(op, s);
        result = TL_CHANGED;
    }
    return result;
}
