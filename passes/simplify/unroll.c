/* unroll: loops with an unroll hint.
 *
 *     for 0, 4, 1 {unroll = 0} ...        four copies of the body, no loop
 *
 *     %r = for %lo, %hi, 1 {unroll = 4} : f32 (%i, %x) { B }
 *  =>
 *     %mid = ...                          lo + (trips - trips mod 4), computed without overflow
 *     %m = for %lo, %mid, 4 : f32 (%i, %x) { B(i) B(i+1) B(i+2) B(i+3) }
 *     %r = for %mid, %hi, 1 : f32 (%i, %x) { B }
 *
 *  1. unroll = 0, or no fewer copies than iterations: full, if the number of iterations is a
 *     constant and the result is not too long;
 *  2. unroll = n: by n, if the step is a constant. With a constant number of iterations the rest is
 *     copies, else a second loop. lo + n*step never leaves the type: the last start of a group of n
 *     is a value that the loop would have taken anyway, and when the groups use up all iterations
 *     the bound is hi itself.
 *  3. the hint is taken off, so that the pass does not begin again. Inner loops go first. */
#include "ir/numeric.h"
#include "passes/analysis/facts.h"
#include "passes/simplify/loops.h"
#include "passes/pass.h"

enum { MAX_OPS = 1 << 14 }; /* of all copies of a body together */

typedef struct Loop {
    TlOp *op;
    TlBlock *body;
    const TlType *iv_type;
    TlWideInt step; /* constant */
    uint32_t ops;   /* in one body */
} Loop;

static TlValue *int_const(TlBuilder *b, const TlType *type, TlWideInt v)
{
    return tl_const_int(b, type, (int64_t)v);
}

/* Value of the induction variable k steps after iv. */
static TlValue *advance(TlBuilder *b, const Loop *l, TlValue *iv, TlWideInt k)
{
    return k ? tl_binary(b, TL_OP_ADD, iv, int_const(b, l->iv_type, k * l->step)) : iv;
}

static TlValue **initial(const Loop *l, TlArena *scratch)
{
    TlValue **carried = TL_NEW_ARRAY(scratch, TlValue *, l->op->nout);
    for (uint32_t i = 0; i < l->op->nout; i++)
        carried[i] = tl_in(l->op, i + 3);
    return carried;
}

static void replace_loop(Loop *l, TlValue **results)
{
    TL_ASSERT(l->op->opcode == TL_OP_FOR, "%s is no loop", tl_op_info(l->op->opcode)->text);
    for (uint32_t i = 0; i < l->op->nout; i++)
        tl_replace_uses(l->op->out[i], results[i]);
    tl_op_erase(l->op);
}

static void unroll_fully(Loop *l, TlWideInt trips, TlArena *scratch)
{
    TL_ASSERT(trips >= 0, "fewer than no trips");
    TlBuilder b = tl_builder_before(l->op);
    TlValue **carried = initial(l, scratch);
    for (TlWideInt k = 0; k < trips; k++)
        tl_loop_copy_body(&b, l->op, advance(&b, l, tl_in(l->op, 0), k), carried, scratch);
    replace_loop(l, carried);
}

/* The bound at which the groups of n end: lo + (iterations - iterations mod n) * step, or hi.
 * Computed in u64, where differences of any type are exact. */
static TlValue *middle(TlBuilder *b, const Loop *l, TlWideInt n)
{
    TlValue *lo = tl_in(l->op, 0), *hi = tl_in(l->op, 1);
    bool up = l->step > 0;
    TlValue *from = tl_cast(b, up ? lo : hi, TL_U64), *to = tl_cast(b, up ? hi : lo, TL_U64);
    const TlType *u64 = from->type;
    TlValue *zero = int_const(b, u64, 0), *one = int_const(b, u64, 1);
    TlValue *size = int_const(b, u64, up ? l->step : -l->step);
    TlValue *any = tl_binary(b, TL_OP_LT, up ? lo : hi, up ? hi : lo);
    TlValue *last = tl_binary(
        b, TL_OP_DIV, tl_binary(b, TL_OP_SUB, tl_binary(b, TL_OP_SUB, to, from), one), size);
    TlValue *trips = tl_select(b, any, tl_binary(b, TL_OP_ADD, last, one), zero);
    TlValue *rest = tl_binary(b, TL_OP_REM, trips, int_const(b, u64, n));
    TlValue *groups = tl_cast(b, tl_binary(b, TL_OP_SUB, trips, rest), l->iv_type->dtype);
    TlValue *mid = tl_binary(b, TL_OP_ADD, lo,
                             tl_binary(b, TL_OP_MUL, groups, int_const(b, l->iv_type, l->step)));
    return tl_select(b, tl_binary(b, TL_OP_EQ, rest, zero), hi, mid);
}

/* A loop like l over lo to hi by step with an empty body; hints but unroll stay. */
static TlOp *new_loop(TlBuilder *b, const Loop *l, TlValue *lo, TlValue *hi, TlValue *step,
                      TlValue **carried, TlArena *scratch)
{
    TL_ASSERT(lo->type == hi->type && step->type == lo->type, "a loop whose bounds differ in type");
    uint32_t n = l->op->nout;
    TlValue **in = TL_NEW_ARRAY(scratch, TlValue *, n + 3);
    const TlType **types = TL_NEW_ARRAY(scratch, const TlType *, n);
    in[0] = lo, in[1] = hi, in[2] = step;
    for (uint32_t i = 0; i < n; i++) {
        in[i + 3] = carried[i];
        types[i] = l->op->out[i]->type;
    }
    TlOp *loop = tl_op_like(b, l->op, n + 3, in, n, types);
    tl_attr_remove(loop, TL_ATTR_UNROLL);
    loop->regions[0]->warps = l->body->warps;
    for (uint32_t i = 0; i <= n; i++)
        tl_block_arg(loop->regions[0], l->body->args[i]->type, l->body->args[i]->name);
    for (uint32_t i = 0; i < n; i++)
        loop->out[i]->name = l->op->out[i]->name;
    return loop;
}

/* Fills a new loop with n copies of the body; its results become the carried values. */
static void fill_loop(TlOp *loop, const Loop *l, TlWideInt n, TlValue **carried, TlArena *scratch)
{
    TL_ASSERT(loop->nout == l->op->nout && n > 0, "%u results became %u", l->op->nout, loop->nout);
    TlBlock *body = loop->regions[0];
    TlBuilder b = {.fn = body->fn, .block = body, .loc = l->op->loc};
    for (uint32_t i = 0; i < loop->nout; i++)
        carried[i] = body->args[i + 1];
    for (TlWideInt k = 0; k < n; k++)
        tl_loop_copy_body(&b, l->op, advance(&b, l, body->args[0], k), carried, scratch);
    tl_yield(&b, TL_OP_YIELD, loop->nout, carried);
    for (uint32_t i = 0; i < loop->nout; i++)
        carried[i] = loop->out[i];
}

static bool fits_type(const TlType *t, TlWideInt v)
{
    TlWideInt back;
    uint64_t bits = tl_bits_from_int(t->dtype, (int64_t)v);
    back = t->dtype == TL_U64 ? (TlWideInt)bits : (TlWideInt)tl_bits_to_int(t->dtype, bits);
    return back == v;
}

static bool unroll_by(Loop *l, TlWideInt n, const TlWideInt *trips, TlArena *scratch)
{
    TL_ASSERT(n > 1 && l->step != 0, "a loop without a step");
    if (!fits_type(l->iv_type, n * l->step))
        return false;
    TlBuilder b = tl_builder_before(l->op);
    TlValue **carried = initial(l, scratch), *lo = tl_in(l->op, 0), *hi = tl_in(l->op, 1);
    TlValue *mid =
        trips ? (*trips % n ? advance(&b, l, lo, *trips - *trips % n) : hi) : middle(&b, l, n);
    TlOp *groups =
        new_loop(&b, l, lo, mid, int_const(&b, l->iv_type, n * l->step), carried, scratch);
    fill_loop(groups, l, n, carried, scratch);
    if (trips) {
        for (TlWideInt k = *trips - *trips % n; k < *trips; k++)
            tl_loop_copy_body(&b, l->op, advance(&b, l, lo, k), carried, scratch);
    } else {
        TlOp *rest = new_loop(&b, l, mid, hi, tl_in(l->op, 2), carried, scratch);
        fill_loop(rest, l, 1, carried, scratch);
    }
    replace_loop(l, carried);
    return true;
}

static bool unroll(TlOp *op, TlArena *scratch)
{
    TL_ASSERT(op->opcode == TL_OP_FOR, "%s is no loop", tl_op_info(op->opcode)->text);
    const TlAttr *hint = tl_attr(op, TL_ATTR_UNROLL);
    if (!hint || hint->u.i < 0)
        return false;
    TlWideInt n = hint->u.i, trips = 0;
    Loop l = {
        .op = op, .body = op->regions[0], .iv_type = tl_in(op, 0)->type, .ops = tl_loop_size(op)};
    bool known = tl_const_trips(op, &trips),
         stepped = tl_const_int_value(tl_in(op, 2), &l.step) && l.step != 0;
    tl_attr_remove(op, TL_ATTR_UNROLL);
    if (known && (n == 0 || trips <= n) && trips * l.ops <= MAX_OPS && stepped)
        unroll_fully(&l, trips, scratch);
    else if (n > 1 && stepped && n * l.ops <= MAX_OPS)
        unroll_by(&l, n, known ? &trips : NULL, scratch);
    return true;
}

TlPassResult tl_pass_unroll(TlFn *fn, TlPassCtx *px)
{
    TL_VEC(TlOp *) loops = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR)
            tl_vec_push(px->scratch, &loops, op);
    TlPassResult result = TL_SAME;
    while (loops.len)
        if (unroll(loops.data[--loops.len], px->scratch))
            result = TL_CHANGED;
    return result;
}
