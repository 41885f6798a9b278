/* reduce-locality: a loop that sums up reductions keeps one partial result per thread and register,
 * and reduces once, after the loop.
 *
 *     %s = for ..., %s0 : f32 (%i, %a: f32) {       %p = for ..., %id : T (%i, %q: T) {
 *       %x = load ... : T                             %x = load ... : T
 *       %r = reduce %x {kind = add} : f32      =>     %n = add %q, %x : T
 *       %n = add %a, %r : f32                         yield %n
 *       yield %n                                    }
 *     }                                             %r = reduce %p {kind = add} : f32
 *                                                   %s = add %s0, %r : f32
 *
 * A reduction across threads costs shuffles, and across warps a round through shared memory with
 * barriers; the elementwise form costs as many adds as the part of the reduction within a thread
 * did. It costs registers: as many as the tile has that is reduced, which is there anyway.
 *
 *  1. The loop carries an accumulator that is used once, in acc = acc op reduce(x), possibly with a
 *     convert of the reduction; for a sum also in acc = fma(acc, f, reduce(x)), which
 *     starts from 0 (the online softmax): then the partial sums are scaled by f too.
 *  2. The reduction crosses threads and the tile is small enough.
 *  3. The accumulator becomes a tile like x that starts as the operation's identity; reduction and
 *     converts go behind the loop.
 * Inner loops come first, so that an outer loop finds what has come out of them.
 *
 * The order of the operations changes. That is nothing to integers, min and max; sums of floats get
 * other rounding, within what a reduction promises, as its order is open on a GPU in any case. f16
 * and bf16 are left alone: their sums within a reduction are of higher precision. */
#include "ir/layout_rules.h"
#include "ir/numeric.h"
#include "ir/ring_float.h"
#include "passes/pass.h"

enum { MAX_WORDS = 64 }; /* registers of 32 bits that one accumulator may take */

typedef struct Sum {
    TlOp *loop, *next, *reduce, *convert; /* next: acc op ...; convert: NULL when there is none */
    TlValue *factor;                      /* of fma; NULL */
    uint32_t index;                       /* among what the loop carries */
} Sum;

static TlOpcode opcode_of(TlCombine kind)
{
    switch (kind) {
    case TL_COMBINE_ADD: return TL_OP_ADD;
    case TL_COMBINE_MUL: return TL_OP_MUL;
    case TL_COMBINE_MAX: return TL_OP_MAX;
    case TL_COMBINE_MIN: return TL_OP_MIN;
    case TL_COMBINE_AND: return TL_OP_AND;
    case TL_COMBINE_OR: return TL_OP_OR;
    case TL_COMBINE_XOR: return TL_OP_XOR;
    case TL_COMBINE_USER: break;
    }
    return TL_OP_COUNT;
}

/* ---- 1. the pattern ---- */

static TlOp *only_user(const TlValue *v)
{
    return tl_use_count(v) == 1 ? v->uses->user : NULL;
}

/* Nothing, which stays nothing when it is scaled. */
static bool is_zero(const TlValue *v, const TlFn *fn)
{
    uint64_t bits;
    return tl_value_is_const(v, &bits) &&
           (bits == 0 || (!fn->ring && bits == tl_bits_from_double(v->type->dtype, -0.0)));
}

/* A reduction in this block, through a convert, that is used here only. */
static bool find_reduce(Sum *s, const TlValue *v)
{
    const TlBlock *body = s->loop->regions[0];
    if (v->def && v->def->opcode == TL_OP_CONVERT && v->def->block == body && only_user(v)) {
        s->convert = v->def;
        v = tl_in(v->def, 0);
    }
    s->reduce = v->def;
    return v->def && v->def->opcode == TL_OP_REDUCE && v->def->block == body && v->def->nin == 1 &&
           only_user(v) != NULL;
}

static bool find_operands(Sum *s, const TlValue *acc)
{
    const TlBlock *body = s->loop->regions[0];
    bool first = tl_in(s->next, 0) == acc;
    if (s->next->opcode != TL_OP_FMA)
        return s->next->nin == 2 && find_reduce(s, tl_in(s->next, first ? 1 : 0));
    s->factor = tl_in(s->next, first ? 1 : 0);
    return tl_in(s->next, 2) != acc && is_zero(tl_in(s->loop, 3 + s->index), body->fn) &&
           find_reduce(s, tl_in(s->next, 2)); /* acc is used once: nothing comes from it */
}

static bool matches(Sum *s)
{
    const TlBlock *body = s->loop->regions[0];
    const TlValue *acc = body->args[1 + s->index];
    s->next = only_user(acc);
    if (!s->next || s->next->block != body || s->next->nout != 1 ||
        only_user(s->next->out[0]) != body->last || tl_in(body->last, s->index)->def != s->next ||
        !find_operands(s, acc))
        return false;
    TlCombine kind = (TlCombine)tl_attr_int(s->reduce, TL_ATTR_KIND, TL_COMBINE_USER);
    return s->factor ? kind == TL_COMBINE_ADD : s->next->opcode == opcode_of(kind);
}

/* ---- 2. worth it ---- */

static bool crosses_threads(const TlLayout *l, int axis)
{
    uint32_t threads = 1u << TL_IN_LANE | 1u << TL_IN_WARP;
    return !tl_layout_is_zero(l, threads, 1u << axis);
}

static bool is_worth_it(const Sum *s)
{
    const TlType *t = tl_in(s->reduce, 0)->type;
    if (!t->layout || !crosses_threads(t->layout, (int)tl_attr_int(s->reduce, TL_ATTR_AXIS, 0)))
        return false;
    if (tl_is_float(t->dtype) && t->dtype != TL_F32 && t->dtype != TL_F64 &&
        s->next->opcode != TL_OP_MAX && s->next->opcode != TL_OP_MIN)
        return false;
    int64_t words = (tl_dtype_bits(t->dtype) + 31) / 32;
    return tl_layout_registers(t->layout) * words <= MAX_WORDS;
}

/* ---- 3. the new form ---- */

/* x with which (x op y) is y, for every y, to the bit: of max and min of floats the NaN, which
 * loses, since all elements may be NaN; of sums -0.0. */
static uint64_t identity(const TlOp *reduce)
{
    TlCombine kind = (TlCombine)tl_attr_int(reduce, TL_ATTR_KIND, TL_COMBINE_USER);
    TlDtype d = tl_op_dtype(reduce, tl_in(reduce, 0)->type->dtype);
    int bits = tl_dtype_bits(d);
    uint64_t ones = bits == 64 ? UINT64_MAX : (1ull << bits) - 1, top = 1ull << (bits - 1);
    bool is_float = tl_is_float(d);
    switch (kind) {
    case TL_COMBINE_ADD: return is_float ? tl_bits_from_double(d, -0.0) : 0;
    case TL_COMBINE_MUL: return is_float ? tl_bits_from_double(d, 1) : 1;
    case TL_COMBINE_MAX:
        if (is_float)
            return tl_bits_from_double(d, __builtin_nan(""));
        return tl_is_signed(d) ? top : 0;
    case TL_COMBINE_MIN:
        if (is_float)
            return tl_bits_from_double(d, __builtin_nan(""));
        return tl_is_signed(d) ? top - 1 : ones;
    case TL_COMBINE_AND: return tl_is_bool(d) ? 1 : ones;
    case TL_COMBINE_OR:
    case TL_COMBINE_XOR:
    case TL_COMBINE_USER: break;
    }
    return 0;
}

/* The factor of a row, for each element of the tile. */
static TlValue *spread_factor(TlBuilder *b, const Sum *s, const TlType *to)
{
    TlCtx *ctx = b->fn->module->ctx;
    int axis = (int)tl_attr_int(s->reduce, TL_ATTR_AXIS, 0);
    TlValue *f = s->factor;
    if (f->type->rank) {
        const TlType *row = tl_type_with_layout(ctx, f->type, s->reduce->out[0]->type->layout);
        if (row != f->type)
            f = tl_op_new(b, TL_OP_CONVERT, 1, &f, 1, &row, 0, 0, NULL)->out[0];
        int32_t shape[TL_MAX_RANK];
        for (int d = 0; d < to->rank; d++)
            shape[d] = d == axis ? 1 : to->shape[d];
        const TlType *column =
            tl_type_with_layout(ctx, tl_type_with_shape(ctx, f->type, to->rank, shape),
                                tl_layout_collapsed(ctx, to->layout, 1u << axis));
        TlAttr at = {.id = TL_ATTR_AXIS, .u.i = axis};
        f = tl_op_new(b, TL_OP_EXPAND, 1, &f, 1, &column, 0, 1, &at)->out[0];
    }
    return tl_op_new(b, TL_OP_BROADCAST, 1, &f, 1, &to, 0, 0, NULL)->out[0];
}

static TlValue *build_partial(const Sum *s, TlValue *acc, TlValue *x)
{
    TlBuilder b = tl_builder_before(s->next);
    b.loc = s->next->loc;
    if (s->factor)
        return tl_fma(&b, acc, spread_factor(&b, s, x->type), x);
    return tl_binary(&b, s->next->opcode, acc, x);
}

/* What was in the loop now works on the partials, and on what the loop started from. */
static void move_behind(const Sum *s, TlValue *init)
{
    TlOp *behind = s->loop->next;
    TlValue *result = s->loop->out[s->index], *acc = s->loop->regions[0]->args[1 + s->index];
    TlValue *total = s->convert ? s->convert->out[0] : s->reduce->out[0];
    tl_op_move_before(s->reduce, behind);
    if (s->convert)
        tl_op_move_before(s->convert, behind);
    tl_op_move_before(s->next, behind);
    tl_replace_uses(result, s->factor ? total : s->next->out[0]);
    tl_set_operand(s->reduce, 0, result);
    if (s->factor)
        tl_op_erase(s->next);
    else
        tl_set_operand(s->next, tl_in(s->next, 0) == acc ? 0 : 1, init);
}

static void rewrite(const Sum *s)
{
    TlOp *loop = s->loop, *yield = loop->regions[0]->last;
    TlValue *x = tl_in(s->reduce, 0), *acc = loop->regions[0]->args[1 + s->index];
    TlValue *init = tl_in(loop, 3 + s->index);
    uint64_t start = identity(s->reduce);
    if (s->factor)
        tl_value_is_const(init, &start);
    TlBuilder b = tl_builder_before(loop);
    b.loc = loop->loc;
    tl_set_operand(loop, 3 + s->index, tl_const_bits(&b, x->type, start));
    acc->type = loop->out[s->index]->type = x->type;
    TlValue *partial = build_partial(s, acc, x);
    tl_set_operand(yield, s->index, partial);
    move_behind(s, init);
    partial->name = acc->name;
}

TlPassResult tl_pass_reduce_locality(TlFn *fn, TlPassCtx *px)
{
    TL_VEC(TlOp *) loops = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR)
            tl_vec_push(px->scratch, &loops, op);
    TlPassResult result = TL_SAME;
    while (loops.len) { /* an inner loop stands after those around it */
        TlOp *loop = loops.data[--loops.len];
        for (uint32_t i = 0; i < loop->nout; i++) {
            Sum s = {.loop = loop, .index = i};
            if (!matches(&s) || !is_worth_it(&s))
                continue;
            rewrite(&s);
            result = TL_CHANGED;
        }
    }
    return result;
}
