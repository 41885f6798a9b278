/* reduce-locality: a loop that sums up reductions keeps one partial result per thread, and reduces
 * across threads once, after the loop.
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
 * barriers. What a thread has of a row is still reduced in the loop (not shown above): the bits of
 * the coordinate along the axis that are registers become axes of their own, which are reduced
 *
 *     %v = reshape %x : 128x8x4x2;  reduce axis 3, reduce axis 1 : 128x4
 *
 * as far as the layout says each bit by one register, lane or warp; otherwise the loop carries x's
 * elements one by one, for as many operations and more registers.
 *
 *  1. The loop carries an accumulator that is used once, in acc = acc op reduce(x), possibly with a
 *     convert of the reduction; for a sum also in acc = fma(acc, f, reduce(x)), which
 *     starts from 0 (the online softmax): then the partial sums are scaled by f too.
 *  2. The reduction crosses threads and the tile is small enough.
 *  3, 4. x is reduced within threads; the accumulator becomes a tile like the result, which starts
 *     as the operation's identity; reduction and converts go behind the loop.
 * Inner loops come first, so that an outer loop finds what has come out of them.
 *
 * The order of the operations changes. That is nothing to integers, min and max; sums of floats get
 * other rounding, within what a reduction promises, as its order is open on a GPU in any case. f16
 * and bf16 are left alone: their sums within a reduction are of higher precision. */
#include "ir/plan/layout_rules.h"
#include "ir/numeric.h"
#include "ir/interp/ring_float.h"
#include "passes/pass.h"

enum { MAX_WORDS = 64 }; /* registers of 32 bits that one accumulator may take */

typedef struct Sum {
    TlOp *loop, *next, *reduce, *convert; /* next: acc op ...; convert: NULL when there is none */
    TlValue *factor;                      /* of fma; NULL */
    uint32_t index;                       /* among what the loop carries */
} Sum;

/* ---- 1. the pattern ---- */

/* A zero that stays zero when it is scaled. */
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
    if (v->def && v->def->opcode == TL_OP_CONVERT && v->def->block == body && tl_only_user(v)) {
        s->convert = v->def;
        v = tl_in(v->def, 0);
    }
    s->reduce = v->def;
    return v->def && v->def->opcode == TL_OP_REDUCE && v->def->block == body && v->def->nin == 1 &&
           tl_only_user(v) != NULL;
}

static bool find_operands(Sum *s, const TlValue *acc)
{
    const TlBlock *body = s->loop->regions[0];
    bool first = tl_in(s->next, 0) == acc;
    if (s->next->opcode != TL_OP_FMA)
        return s->next->nin == 2 && find_reduce(s, tl_in(s->next, first ? 1 : 0));
    s->factor = tl_in(s->next, first ? 1 : 0);
    return tl_in(s->next, 2) != acc && is_zero(tl_in(s->loop, 3 + s->index), body->fn) &&
           find_reduce(s, tl_in(s->next, 2)); /* acc has a single use: nothing else depends on it */
}

static bool matches(Sum *s)
{
    const TlBlock *body = s->loop->regions[0];
    const TlValue *acc = body->args[1 + s->index];
    s->next = tl_only_user(acc);
    if (!s->next || s->next->block != body || s->next->nout != 1 ||
        tl_only_user(s->next->out[0]) != body->last ||
        tl_in(body->last, s->index)->def != s->next || !find_operands(s, acc))
        return false;
    TlCombine kind = (TlCombine)tl_attr_int(s->reduce, TL_ATTR_KIND, TL_COMBINE_USER);
    return s->factor ? kind == TL_COMBINE_ADD : s->next->opcode == tl_combine_opcode(kind);
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

/* ---- 3. within threads ---- */

/* The axis cut into runs of bits that are all registers or all threads, outermost first. */
typedef struct Runs {
    int n;
    int32_t extent[TL_MAX_RANK];
    bool in_thread[TL_MAX_RANK];
} Runs;

/* Which input a bit of the coordinate is; -1: not one of its own. */
static int input_of_bit(const TlLayout *l, int axis, int bit)
{
    int found = -1;
    for (int k = 0; k < l->nin; k++)
        for (int i = 0; i < l->in_bits[k]; i++) {
            int32_t at = l->basis[k][i][axis];
            bool alone = at == 1 << bit;
            for (int d = 0; d < l->nout; d++)
                alone &= d == axis || l->basis[k][i][d] == 0;
            if (!(at >> bit & 1))
                continue;
            if (!alone || found >= 0)
                return -1;
            found = (int)l->in[k];
        }
    return found;
}

static bool cut_axis(const TlType *t, int axis, Runs *r)
{
    const TlLayout *l = t->layout;
    int bits = l->out_bits[axis];
    *r = (Runs){0};
    if (l->reps[axis] != 1 || t->shape[axis] != 1 << bits)
        return false;
    for (int bit = bits - 1; bit >= 0; bit--) {
        int in = input_of_bit(l, axis, bit);
        if (in < 0)
            return false;
        if (r->n && r->in_thread[r->n - 1] == (in == TL_IN_REG)) {
            r->extent[r->n - 1] *= 2;
            continue;
        }
        if (t->rank + r->n > TL_MAX_RANK)
            return false;
        r->extent[r->n] = 2;
        r->in_thread[r->n++] = in == TL_IN_REG;
    }
    return true;
}

/* The type with `n` extents for the axis; NULL: no layout is the same. */
static const TlType *recut(TlCtx *ctx, const TlType *t, int axis, int width, int n,
                           const int32_t *extents)
{
    int32_t shape[2 * TL_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < t->rank; d++) {
        if (d == axis)
            for (int i = 0; i < n; i++)
                shape[rank++] = extents[i];
        if (d < axis || d >= axis + width)
            shape[rank++] = t->shape[d];
    }
    const TlType *to = tl_type_with_shape(ctx, t, rank, shape);
    const TlLayout *l = tl_layout_reshaped(ctx, t->layout, t, to);
    return l ? tl_type_with_layout(ctx, to, l) : NULL;
}

static const TlType *without_axis(TlCtx *ctx, const TlType *t, int axis)
{
    int32_t shape[TL_MAX_RANK];
    uint32_t others = (1u << t->rank) - 1 - (1u << axis);
    for (int d = 0, n = 0; d < t->rank; d++)
        if (d != axis)
            shape[n++] = t->shape[d];
    return tl_type_with_layout(ctx, tl_type_with_shape(ctx, t, t->rank - 1, shape),
                               tl_layout_restricted(ctx, t->layout, others));
}

/* The types on the way from x to what each thread has of it: reshaped, reduced once per run in a
 * thread, with one axis again. */
typedef struct Way {
    Runs runs;
    const TlType *cut, *reduced[TL_MAX_RANK], *last;
} Way;

static bool find_way(TlCtx *ctx, const Sum *s, Way *w)
{
    const TlType *x = tl_in(s->reduce, 0)->type;
    int axis = (int)tl_attr_int(s->reduce, TL_ATTR_AXIS, 0), kept = 0;
    if (!cut_axis(x, axis, &w->runs))
        return false;
    const TlType *t = w->cut = recut(ctx, x, axis, 1, w->runs.n, w->runs.extent);
    int32_t extent = 1;
    for (int i = w->runs.n - 1; t && i >= 0; i--) {
        if (w->runs.in_thread[i])
            t = w->reduced[i] = without_axis(ctx, t, axis + i);
        else
            extent *= w->runs.extent[i], kept++;
    }
    if (!t || kept == w->runs.n)
        return false;
    w->last = recut(ctx, t, axis, kept, 1, &extent);
    return w->last && (x->rank == 1 ||
                       without_axis(ctx, w->last, axis)->layout == s->reduce->out[0]->type->layout);
}

static TlValue *reshape(TlBuilder *b, TlValue *x, const TlType *to)
{
    return x->type == to ? x : tl_op_new(b, TL_OP_RESHAPE, 1, &x, 1, &to, 0, 0, NULL)->out[0];
}

/* Reduces x as far as possible within threads. */
static TlValue *reduce_in_thread(TlBuilder *b, const Sum *s)
{
    Way w;
    TlValue *x = tl_in(s->reduce, 0);
    int64_t axis = tl_attr_int(s->reduce, TL_ATTR_AXIS, 0);
    if (!find_way(b->fn->module->ctx, s, &w))
        return x;
    x = reshape(b, x, w.cut);
    for (int i = w.runs.n - 1; i >= 0; i--) {
        if (!w.runs.in_thread[i])
            continue;
        TlAttr attrs[2] = {*tl_attr(s->reduce, TL_ATTR_KIND),
                           {.id = TL_ATTR_AXIS, .u.i = axis + i}};
        x = tl_op_new(b, TL_OP_REDUCE, 1, &x, 1, &w.reduced[i], 0, 2, attrs)->out[0];
    }
    return reshape(b, x, w.last);
}

/* ---- 4. the new form ---- */

/* Broadcasts the factor of a row to each element of the tile. */
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

static TlValue *build_partial(TlBuilder *b, const Sum *s, TlValue *acc, TlValue *x)
{
    if (s->factor)
        return tl_fma(b, acc, spread_factor(b, s, x->type), x);
    return tl_binary(b, s->next->opcode, acc, x);
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
    TlValue *acc = loop->regions[0]->args[1 + s->index], *init = tl_in(loop, 3 + s->index);
    TlBuilder inside = tl_builder_before(s->next);
    inside.loc = s->next->loc;
    TlValue *x = reduce_in_thread(&inside, s);
    TlDtype dtype = tl_op_dtype(s->reduce, tl_in(s->reduce, 0)->type->dtype);
    uint64_t start = tl_combine_identity(
        (TlCombine)tl_attr_int(s->reduce, TL_ATTR_KIND, TL_COMBINE_USER), dtype);
    if (s->factor)
        tl_value_is_const(init, &start);
    TlBuilder b = tl_builder_before(loop);
    b.loc = loop->loc;
    tl_set_operand(loop, 3 + s->index, tl_const_bits(&b, x->type, start));
    acc->type = loop->out[s->index]->type = x->type;
    TlValue *partial = build_partial(&inside, s, acc, x);
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
    while (loops.len) { /* inner loops come after the loops around them */
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
