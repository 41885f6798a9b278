/* split-argmax: where that costs less, argmax is the maximum and then the least index that has it.
 *
 *     %v, %r = reduce %x, %i {axis = 0, kind = user} ... (a combiner of ir/argmax.h)
 *  =>
 *     %m = reduce %x {axis = 0, kind = max}
 *     %b = broadcast %m;  %e = eq %x, %b;  %s = select %e, %i, INT32_MAX
 *     %f = reduce %s {axis = 0, kind = min}
 *     %l = reduce %i {axis = 0, kind = min}       (0 where %i counts along the axis)
 *     %r = %m == %m ? %f : %l                     (floats only)
 *
 * As pairs, each element takes all ops of the combiner, one waiting for the other; in two steps it
 * takes four, of which most are independent. NaN loses in both: a maximum is NaN if everything is,
 * and then the least index of all wins. -0 equals 0 in both.
 *
 *  1. A reduction by the combiner of argmax or argmin whose values nobody uses.
 *  2. What a thread does in both ways: combining what it has, butterflies over lanes, and an
 *     exchange through shared memory where several warps share a result. Small tiles of several
 *     warps stay pairs.
 *  3. The two reductions; a maximum of the same values that is there already is taken.
 *
 * It runs behind chunk-rows: a row that is read in chunks is read once for pairs, twice for two
 * steps. The option `threads=1` says that there are no threads to exchange (CPUs). */
#include "ir/argmax.h"
#include "ir/layout/layout.h"
#include "ir/numeric.h"
#include "ir/remark.h"
#include "passes/analysis/default_warps.h"
#include "passes/analysis/picked.h"
#include "passes/pass.h"
#include <math.h>
#include <string.h>

typedef struct Argmax {
    TlOp *op;
    TlValue *x, *index;
    int axis;
    bool greatest;
    bool needs_least; /* of all indices, for the case that all values are NaN */
} Argmax;

/* ---- 1. the pattern ---- */

static bool find(TlOp *op, Argmax *a)
{
    int64_t first;
    if (!tl_is_argmax(op, &a->greatest) || op->out[0]->uses)
        return false;
    a->op = op;
    a->x = tl_in(op, 0);
    a->index = tl_in(op, 1);
    a->axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    bool from_0 = tl_counts_along(a->index, a->axis, &first) && first == 0;
    a->needs_least = tl_is_float(a->x->type->dtype) && !from_0;
    return true;
}

/* ---- 2. what it costs ---- */

enum { EXCHANGE = 60 }; /* instructions' worth of waiting: shared memory and its barriers */

/* How the elements and results lie on threads. */
typedef struct Share {
    int64_t elements, results, steps; /* of a thread; steps over lanes */
    bool exchanges;                   /* through shared memory */
} Share;

static Share share_of(const Argmax *a, int64_t lanes, int64_t warps)
{
    const TlType *t = a->x->type;
    int64_t threads = lanes * warps, n = tl_type_elems(t), extent = t->shape[a->axis];
    return (Share){.elements = (n + threads - 1) / threads,
                   .results = (n / extent + threads - 1) / threads,
                   .steps = tl_ceil_log2(extent < lanes ? extent : lanes),
                   .exchanges = warps > 1 && n / extent < warps};
}

/* A reduction that takes so many ops for two elements, and shuffles so many values. */
static int64_t cost(const Share *s, int64_t ops, int64_t values)
{
    return s->elements * ops + s->results * s->steps * (ops + values) +
           (s->exchanges ? EXCHANGE : 0);
}

static int64_t cost_of_pairs(const Argmax *a, const Share *s)
{
    return cost(s, tl_argmax_ops(a->x->type->dtype), 2);
}

static int64_t cost_of_steps(const Argmax *a, const Share *s)
{
    int64_t one = cost(s, 1, 1), chosen = 2 * s->elements; /* comparison, selection */
    return one + chosen + one + (a->needs_least ? one : 0);
}

/* ---- 3. the two reductions ---- */

static TlValue *reduce(TlBuilder *b, const Argmax *a, TlValue *x, TlCombine kind)
{
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = a->axis}, {.id = TL_ATTR_KIND, .u.i = kind}};
    const TlOp *op = a->op;
    const TlType *t = tl_type_with_dtype(b->fn->module->ctx, op->out[0]->type, x->type->dtype);
    return tl_op_new(b, TL_OP_REDUCE, 1, &x, 1, &t, 0, 2, attrs)->out[0];
}

static bool stands_behind(const TlOp *op, const TlOp *other)
{
    while (op && op != other)
        op = op->next;
    return op != NULL;
}

/* The extreme value: that of a reduction which is there, or a new one. */
static TlValue *extreme(TlBuilder *b, const Argmax *a)
{
    TlCombine kind = a->greatest ? TL_COMBINE_MAX : TL_COMBINE_MIN;
    for (const TlUse *u = a->x->uses; u; u = u->next) {
        TlOp *op = u->user;
        if (op->opcode != TL_OP_REDUCE || op->block != a->op->block || op->nin != 1 ||
            tl_attr_int(op, TL_ATTR_KIND, -1) != (int64_t)kind ||
            tl_attr_int(op, TL_ATTR_AXIS, 0) != a->axis)
            continue;
        if (stands_behind(a->op, op))
            tl_op_move_before(op, a->op);
        return op->out[0];
    }
    return reduce(b, a, a->x, kind);
}

/* A value of each result, for each element along the axis. */
static TlValue *spread(TlBuilder *b, const Argmax *a, TlValue *v)
{
    const TlType *t = a->x->type;
    if (v->type->rank) {
        int32_t shape[TL_MAX_RANK];
        memcpy(shape, t->shape, sizeof shape);
        shape[a->axis] = 1;
        const TlType *kept = tl_type_with_shape(b->fn->module->ctx, v->type, t->rank, shape);
        TlAttr axis = {.id = TL_ATTR_AXIS, .u.i = a->axis};
        v = tl_op_new(b, TL_OP_EXPAND, 1, &v, 1, &kept, 0, 1, &axis)->out[0];
    }
    return tl_broadcast(b, v, t->rank, t->shape);
}

/* The mask of select(mask, v, what), or NULL. */
static TlValue *mask_of(const TlValue *v, uint64_t what)
{
    uint64_t bits;
    const TlOp *op = v->def;
    bool masked = op && op->opcode == TL_OP_SELECT && tl_value_is_const(tl_in(op, 2), &bits);
    return masked && bits == what ? tl_in(op, 0) : NULL;
}

/* The indices of elements whose value is the extreme one; INT32_MAX elsewhere. An index that a mask
 * chooses already is chosen by both at once: what is NaN without the mask equals nothing. */
static TlValue *indices(TlBuilder *b, const Argmax *a, TlValue *equal)
{
    TlValue *none = tl_const_int(b, a->index->type, INT32_MAX), *index = a->index;
    TlValue *mask = mask_of(index, INT32_MAX);
    if (mask) {
        index = tl_in(index->def, 1);
        TlDtype d = a->x->type->dtype;
        uint64_t nan = tl_is_float(d) ? tl_bits_from_double(d, (double)NAN) : 0;
        bool twice = tl_is_float(d) && mask_of(a->x, nan) == mask && !b->fn->ring;
        equal = twice ? equal : tl_binary(b, TL_OP_AND, equal, mask);
    }
    return tl_select(b, equal, index, none);
}

/* *out_first: the reduction of indices. */
static TlValue *in_two_steps(const Argmax *a, TlOp **out_first)
{
    TlBuilder b = tl_builder_before(a->op);
    TlValue *m = extreme(&b, a), *equal = tl_binary(&b, TL_OP_EQ, a->x, spread(&b, a, m));
    TlValue *first = reduce(&b, a, indices(&b, a, equal), TL_COMBINE_MIN);
    *out_first = first->def;
    if (!tl_is_float(m->type->dtype))
        return first;
    TlValue *least = a->needs_least ? reduce(&b, a, a->index, TL_COMBINE_MIN)
                                    : tl_const_int(&b, first->type, 0);
    return tl_select(&b, tl_binary(&b, TL_OP_EQ, m, m), first, least);
}

static bool split(TlOp *op, int64_t lanes, int64_t warps)
{
    Argmax a;
    if (!find(op, &a))
        return false;
    Share s = share_of(&a, lanes, warps);
    int64_t pairs = cost_of_pairs(&a, &s), steps = cost_of_steps(&a, &s);
    TlFn *fn = op->block->fn;
    TlOp *of_index = op;
    if (steps < pairs) {
        TlValue *r = in_two_steps(&a, &of_index);
        r->name = op->out[1]->name;
        tl_replace_uses(op->out[1], r);
        tl_op_erase(op);
    }
    tl_remark(fn, of_index, TL_REMARK_PAIRS, pairs);
    tl_remark(fn, of_index, TL_REMARK_STEPS, steps);
    return true;
}

TlPassResult tl_pass_split_argmax(TlFn *fn, TlPassCtx *px)
{
    bool alone = px->options && strstr(px->options, "threads=1"), changed = false;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        bool greatest;
        next = tl_walk_next(op, NULL);
        if (!tl_is_argmax(op, &greatest))
            continue;
        next = op->next ? op->next : next;
        int lanes = alone ? 1 : px->machine->lanes,
            warps = alone ? 1 : tl_choose_warps(fn, px->machine->warps, lanes);
        changed = split(op, lanes, warps) || changed;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
