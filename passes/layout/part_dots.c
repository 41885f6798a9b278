/* part-dots: where a product is small and its loop long, warps take parts of k.
 *
 *     %s = for ..., %zero : T (%i, %acc) {     %p = for ..., %zeros : tile<f32, 4, M, N> (%i, %q) {
 *       %a = convert %x : tile<.., M, K>         %a = trans (reshape (convert %x)) : 4 x M x K/4
 *       %b = convert %y : tile<.., K, N>   =>    %b = reshape (convert %y) : 4 x K/4 x N
 *       %n = dot %a, %b, %acc                    %n = dot %a, %b, %q
 *       yield %n                                 yield %n
 *     }                                        }
 *                                              %s = reduce %p {axis = 0, kind = add} : T
 *
 * A product of 16 x 16 has work for two warps: others would repeat it, or each read all of k. As a
 * batch of products, each of a part of k, it has work for all of them, and each reads its part
 * only. The parts are added up once, behind the loop. reshape and trans are names for the same
 * registers, as the layout of the convert is chosen for them.
 *
 *  1. A loop sums up products in one value that nobody else looks at: dots in a row, all by the
 *     same matrix instruction, by each warp for itself. Their operands come out of converts, so
 *     that another layout costs what this one does.
 *  2. It must cost less than what warps do along M and N alone (dot_warps.h).
 *  3. What the loop carries gets an axis in front; what it began with is added behind it.
 *
 * Sums of floats get other rounding, within what a dot promises: their order is open. */
#include "ir/interp/ring_float.h"
#include "ir/numeric.h"
#include "ir/plan/mma.h"
#include "ir/remark.h"
#include "passes/layout/dot_warps.h"
#include "passes/layout/layout_cost.h"
#include "passes/layout/relayout.h"

enum { MOST_DOTS = 8, BOUNDS = 3 /* operands of a FOR in front of what it carries */ };

typedef struct Sum {
    TlCtx *ctx;
    TlOp *loop, *dot[MOST_DOTS];
    uint32_t index, ndots; /* index: among what the loop carries */
    int warp_bits;
    TlMmaWarps warps;
} Sum;

/* ---- 1. the pattern ---- */

static bool is_converted(const TlValue *v)
{
    return v->def && v->def->opcode == TL_OP_CONVERT;
}

static bool is_plain_dot(const TlOp *op, const TlOp *like)
{
    return op->opcode == TL_OP_DOT && op->nin == 3 && tl_mma_of(op) && !tl_is_warpgroup_dot(op) &&
           op->out[0]->type->rank == 2 && tl_mma_of(op) == tl_mma_of(like) &&
           tl_in(op, TL_MMA_A)->type->shape[1] == tl_in(like, TL_MMA_A)->type->shape[1] &&
           is_converted(tl_in(op, TL_MMA_A)) && is_converted(tl_in(op, TL_MMA_B));
}

static bool find_dots(Sum *s)
{
    const TlBlock *body = s->loop->regions[0];
    const TlValue *v = body->args[1 + s->index];
    for (TlOp *op = tl_only_user(v); op && op != body->last; op = tl_only_user(v)) {
        if (s->ndots == MOST_DOTS || op->block != body ||
            !is_plain_dot(op, s->ndots ? s->dot[0] : op) || tl_in(op, TL_MMA_C) != v)
            return false;
        s->dot[s->ndots++] = op;
        v = op->out[0];
    }
    return s->ndots && tl_only_user(v) == body->last && tl_in(body->last, s->index) == v;
}

/* ---- 2. worth it ---- */

static bool is_worth_it(Sum *s)
{
    enum { MARGIN = 8 }; /* an eighth, as more code and more registers have their price, too */
    const TlOp *dot = s->dot[0];
    TlDotShape shape = tl_dot_shape(dot, tl_mma_of(dot), 1 << s->warp_bits, false);
    TlDotWay whole = tl_warp_way(&shape), parts;
    if (!tl_parts_way(&shape, tl_layout_trips(s->loop) * s->ndots, &parts) ||
        parts.cost + parts.cost / MARGIN >= whole.cost)
        return false;
    s->warps = parts.warps;
    return true;
}

/* ---- operands ---- */

/* The types on the way of an operand into the product of parts. */
typedef struct Way {
    const TlType *from, *cut, *last; /* a matrix, with k as two axes, the parts in front */
} Way;

static const int64_t PARTS_FIRST[] = {1, 0, 2};

/* Of operand i of a dot; false: no layout makes all steps free. */
static bool find_way(const Sum *s, const TlOp *dot, int i, Way *w)
{
    const TlType *t = tl_in(dot, (uint32_t)i)->type;
    int32_t n = 1 << s->warps.batch, a = t->shape[0], b = t->shape[1];
    bool first = i == TL_MMA_A;
    const int32_t last[] = {n, first ? a : a / n, first ? b / n : b}, cut[] = {a, n, b / n};
    w->last = tl_type_tile(s->ctx, t->dtype, 3, last);
    const TlLayout *l = tl_mma_layout(s->ctx, tl_mma_of(dot), i, w->last, s->warps, s->warp_bits);
    w->last = w->cut = tl_type_with_layout(s->ctx, w->last, l);
    if (first)
        w->cut = tl_type_with_layout(s->ctx, tl_type_tile(s->ctx, t->dtype, 3, cut),
                                     tl_layout_permuted(s->ctx, l, PARTS_FIRST));
    l = tl_layout_reshaped(s->ctx, w->cut->layout, w->cut, t);
    w->from = l ? tl_type_with_layout(s->ctx, t, l) : NULL;
    return l && tl_layout_reshaped(s->ctx, l, w->from, w->cut) == w->cut->layout;
}

static bool have_ways(const Sum *s)
{
    Way w;
    for (uint32_t i = 0; i < s->ndots; i++)
        if (!find_way(s, s->dot[i], TL_MMA_A, &w) || !find_way(s, s->dot[i], TL_MMA_B, &w))
            return false;
    return true;
}

static TlValue *trans(TlBuilder *b, TlValue *x, const TlType *to)
{
    int64_t *perm = TL_NEW_ARRAY(&b->fn->module->arena, int64_t, 3);
    for (int d = 0; d < 3; d++)
        perm[d] = PARTS_FIRST[d];
    TlAttr attr = {.id = TL_ATTR_PERM, .n = 3, .u.ints = perm};
    return tl_op_new(b, TL_OP_TRANS, 1, &x, 1, &to, 0, 1, &attr)->out[0];
}

/* The operand in parts, made where it was converted. */
static TlValue *part_operand(const Sum *s, const TlOp *dot, int i)
{
    Way w;
    bool found = find_way(s, dot, i, &w);
    TlOp *convert = tl_in(dot, (uint32_t)i)->def;
    TL_ASSERT(found && convert->opcode == TL_OP_CONVERT, "an operand that has no parts");
    TlBuilder b = tl_builder_before(convert);
    b.loc = convert->loc;
    TlValue *x = tl_relayout(&b, tl_in(convert, 0), w.from->layout);
    x = tl_op_new(&b, TL_OP_RESHAPE, 1, &x, 1, &w.cut, 0, 0, NULL)->out[0];
    return i == TL_MMA_A ? trans(&b, x, w.last) : x;
}

/* ---- 3. into effect ---- */

static TlValue *part_dot(const Sum *s, TlOp *dot, TlValue *acc)
{
    TlFn *fn = s->loop->block->fn;
    TlValue *in[] = {part_operand(s, dot, TL_MMA_A), part_operand(s, dot, TL_MMA_B), acc};
    TlOp *convert[] = {tl_in(dot, TL_MMA_A)->def, tl_in(dot, TL_MMA_B)->def};
    TlBuilder b = tl_builder_before(dot);
    b.loc = dot->loc;
    TlOp *made = tl_op_like(&b, dot, 3, in, 1, &acc->type);
    made->out[0]->name = dot->out[0]->name;
    tl_remark(fn, made, TL_REMARK_PARTS_OF_K, (int64_t)1 << s->warps.batch);
    tl_replace_uses(dot->out[0], made->out[0]);
    tl_op_erase(dot);
    for (int i = 0; i < 2; i++)
        if (!convert[i]->out[0]->uses)
            tl_op_erase(convert[i]);
    return made->out[0];
}

/* What each part begins with: zero, as all began if that is what the loop began with (of either
 * sign, which it keeps); else what adds nothing. *out_all: nothing is to be added behind it. */
static uint64_t first_of(const Sum *s, const TlValue *init, bool *out_all)
{
    TlDtype dtype = init->type->dtype;
    uint64_t bits, none = tl_combine_identity(TL_COMBINE_ADD, tl_op_dtype(s->dot[0], dtype));
    *out_all = tl_value_is_const(init, &bits) && (bits == 0 || bits == none);
    return *out_all ? bits : none;
}

/* Behind the loop: the sum of the parts, and of what the loop began with, which users get. */
static void add_up(const Sum *s, TlValue *init, bool all)
{
    TlValue *parts = s->loop->out[s->index];
    TlBuilder b = tl_builder_after(parts);
    TlAttr attrs[] = {{.id = TL_ATTR_KIND, .u.i = TL_COMBINE_ADD}, {.id = TL_ATTR_AXIS, .u.i = 0}};
    const TlLayout *l = tl_layout_restricted(s->ctx, parts->type->layout, 1u << 1 | 1u << 2);
    const TlType *type = tl_type_with_layout(s->ctx, init->type, l);
    TlValue *begun = s->loop->regions[0]->args[1 + s->index]; /* until the users have moved */
    TlOp *reduce = tl_op_new(&b, TL_OP_REDUCE, 1, &begun, 1, &type, 0, 2, attrs);
    TlValue *sum = tl_relayout(&b, reduce->out[0], init->type->layout);
    if (!all)
        sum = tl_binary(&b, TL_OP_ADD, init, sum);
    sum->name = parts->name;
    tl_replace_uses(parts, sum);
    tl_set_operand(reduce, 0, parts);
}

static void rewrite(const Sum *s)
{
    TlValue *init = tl_in(s->loop, BOUNDS + s->index);
    TlValue *acc = s->loop->regions[0]->args[1 + s->index];
    const int32_t shape[] = {1 << s->warps.batch, init->type->shape[0], init->type->shape[1]};
    const TlType *parts = tl_type_tile(s->ctx, init->type->dtype, 3, shape);
    parts = tl_type_with_layout(s->ctx, parts,
                                tl_mma_layout(s->ctx, tl_mma_of(s->dot[0]), TL_MMA_C, parts,
                                              s->warps, s->warp_bits));
    TlBuilder b = tl_builder_before(s->loop);
    b.loc = s->loop->loc;
    bool all;
    uint64_t first = first_of(s, init, &all);
    tl_set_operand(s->loop, BOUNDS + s->index, tl_const_bits(&b, parts, first));
    acc->type = s->loop->out[s->index]->type = parts;
    TlValue *v = acc;
    for (uint32_t i = 0; i < s->ndots; i++)
        v = part_dot(s, s->dot[i], v);
    add_up(s, init, all);
}

TlPassResult tl_pass_part_dots(TlFn *fn, TlPassCtx *px)
{
    TlPassResult result = TL_SAME;
    if (tl_fn_level(fn) != TL_LEVEL_LAID_OUT)
        return result;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; op->opcode == TL_OP_FOR && i < op->nout; i++) {
            Sum s = {.ctx = px->ctx,
                     .loop = op,
                     .index = i,
                     .warp_bits = tl_floor_log2(fn->body->warps)};
            if (!find_dots(&s) || !is_worth_it(&s) || !have_ways(&s))
                continue;
            rewrite(&s);
            result = TL_CHANGED;
        }
    return result;
}
