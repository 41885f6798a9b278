/* gather-borders: a load with its border repeated is one load again, by index tiles.
 *
 *     %t = if %inside {                              // border = edge (border.c): whether all is
 *         %a = load %x, %s {axes = [64], unchecked}  // inside is asked once
 *         yield %a
 *     } else {                                       =>
 *         %i = min(max(%s + iota, 0), extent - 1)        %i = min(max(%s + iota, 0), extent - 1)
 *         %b = load %x, %i {axes = [t]}                  %t = load %x, %i {axes = [t]}
 *         yield %b
 *     }
 *
 * Where all is inside, bounds change no position, nor do the other borders (the op `border`), so
 * both arms load the same. Axes that no border changes stay slices. On the CPU a loop nest asks
 * itself which of its vectors the bounds leave as they are, once for all loads in it
 * (codegen/nest): so taps of a stencil need no copies of what they read. GPUs keep the if. */
#include <string.h>

#include "ir/rewrite.h"
#include "passes/analysis/axis_impl.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"

enum { MOST_MERGED = 40 }; /* of a function: a nest that computes too much is not made twice */

/* The other operand of an op of two, one of which is a scalar or number that `is` holds for. */
typedef bool Is(const TlValue *v, const void *user);
static TlValue *beside(const TlValue *v, TlOpcode opcode, Is *is, const void *user)
{
    const TlOp *op = v->def;
    for (uint32_t i = 0; op && op->opcode == opcode && i < 2; i++) {
        const TlValue *x = tl_in(op, i);
        if (x->def && x->def->opcode == TL_OP_BROADCAST)
            x = tl_in(x->def, 0);
        if (is(x, user))
            return tl_in(op, 1 - i);
    }
    return NULL;
}

static const TlValue *without_casts(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_CAST && tl_is_int(tl_in(v->def, 0)->type->dtype) &&
           tl_is_signed(tl_in(v->def, 0)->type->dtype))
        v = tl_in(v->def, 0);
    return v;
}

static bool is_zero(const TlValue *v, const void *user)
{
    uint64_t bits;
    (void)user;
    return tl_value_is_const(v, &bits) && bits == 0;
}

static bool is_minus_one(const TlValue *v, const void *user)
{
    TlWideInt n;
    (void)user;
    return tl_const_int_value(v, &n) && n == -1;
}

typedef struct Axis {
    const TlValue *view;
    uint32_t axis;
    TlAxisInfo *facts;
} Axis;

static bool is_most_i32(const TlValue *v, const void *user)
{
    TlWideInt n;
    (void)user;
    return tl_const_int_value(v, &n) && n == INT32_MAX;
}

/* Is v the last position of the axis? In i32: or one behind all of that type, if it is so great. */
static bool is_last(const TlValue *v, const void *user)
{
    const Axis *a = user;
    const TlValue *wide = v->def && v->def->opcode == TL_OP_CAST ? tl_in(v->def, 0) : NULL;
    if (wide && v->type->dtype == TL_I32 && wide->type->dtype == TL_I64) {
        v = beside(wide, TL_OP_MIN, is_most_i32, NULL);
        if (!v && tl_axis_facts(a->facts, wide)->hi > INT32_MAX)
            return false;
        v = v ? v : wide;
    }
    TlWideInt last;
    const TlDim *d = tl_axis_param_extent(a->facts->fn, a->view, a->axis);
    if (tl_const_int_value(v, &last))
        return d && d->kind == TILE_DIM_CONST && last == (TlWideInt)d->value - 1;
    const TlValue *extent = beside(v, TL_OP_ADD, is_minus_one, NULL);
    return extent && tl_axis_is_extent(a->facts, without_casts(extent), a->view, a->axis);
}

/* Is v `start`, or start + iota? */
static bool counts_from(const TlValue *v, const TlValue *start, bool slice)
{
    TlWideInt n, first;
    bool known = tl_const_int_value(without_casts(start), &first);
    if (!slice)
        return known ? tl_const_int_value(without_casts(v), &n) && n == first
                     : without_casts(v) == without_casts(start);
    const TlOp *op = v->def;
    if (op && op->opcode == TL_OP_IOTA)
        return known && first == 0;
    for (uint32_t i = 0; op && op->opcode == TL_OP_ADD && i < 2; i++) {
        const TlValue *x = tl_in(op, i), *by = tl_in(op, 1 - i);
        if (!x->def || x->def->opcode != TL_OP_IOTA)
            continue;
        if (tl_const_int_value(by, &n))
            return known && n == first;
        if (by->def && by->def->opcode == TL_OP_BROADCAST)
            return without_casts(tl_in(by->def, 0)) == without_casts(start);
    }
    return false;
}

/* What v's numbers are within the axis; v: it is not said that they are others outside. */
static const TlValue *within(const TlValue *v, const Axis *axis)
{
    if (v->def && v->def->opcode == TL_OP_BORDER) {
        const TlValue *extent = tl_in(v->def, 1);
        if (extent->def && extent->def->opcode == TL_OP_BROADCAST)
            extent = tl_in(extent->def, 0);
        return tl_axis_is_extent(axis->facts, extent, axis->view, axis->axis) ? tl_in(v->def, 0)
                                                                              : v;
    }
    const TlValue *x = beside(v, TL_OP_MIN, is_last, axis);
    x = x ? x : v;
    const TlValue *above = beside(x, TL_OP_MAX, is_zero, NULL);
    return above ? above : x;
}

/* The load that a block is, but for what that one is computed from; NULL: it is more. */
static TlOp *only_load(const TlBlock *b)
{
    TlOp *load = b->last->nin == 1 ? tl_in(b->last, 0)->def : NULL;
    if (!load || load->opcode != TL_OP_LOAD || load->block != b)
        return NULL;
    for (const TlOp *op = b->first; op != b->last; op = op->next)
        if (op != load && (op->nregions || !(tl_op_info(op->opcode)->flags & F_PURE)))
            return NULL;
    return load;
}

/* The arms of an if that load the same where all is inside. */
typedef struct Arms {
    TlOp *in, *out;
    uint32_t plain; /* axes that no border changes */
} Arms;

static bool find_arms(const TlOp *branch, TlAxisInfo *facts, Arms *arms)
{
    TlOp *in = only_load(branch->regions[0]), *out = only_load(branch->regions[1]);
    *arms = (Arms){in, out, 0};
    if (!in || !out || !tl_attr_flag(in, TL_ATTR_UNCHECKED))
        return false;
    TlPlace p = tl_op_place(in), q = tl_op_place(out);
    bool same = p.axes && q.axes && p.base == q.base && p.naxes == q.naxes && !p.mask && !q.mask &&
                !q.pointwise;
    for (uint32_t i = 0; same && i < p.naxes; i++) {
        bool slice = p.axes[i].kind == TL_AXIS_SLICE;
        const TlValue *start = p.index[i].value, *v = q.index[i].value,
                      *x = within(v, &(Axis){p.base, i, facts});
        same = p.axes[i].kind != TL_AXIS_TILE && (!slice || p.axes[i].step == 1) &&
               q.axes[i].kind == (slice ? TL_AXIS_TILE : TL_AXIS_SCALAR) &&
               counts_from(x, start, slice);
        if (slice && x == v && !(start->def && start->def->block == in->block))
            arms->plain |= 1U << i;
    }
    return same;
}

/* The load of the arm outside, by slices along axes that no border changes, instead of the if. */
static TlOp *merge(TlFn *fn, TlOp *branch, const Arms *arms)
{
    TlBlock *from = branch->regions[1];
    TlPlace p = tl_op_place(arms->in);
    TlAxis *axes = TL_NEW_ARRAY(&fn->module->arena, TlAxis, p.naxes);
    memcpy(axes, tl_op_place(arms->out).axes, p.naxes * sizeof *axes);
    while (from->first != from->last)
        tl_op_move_before(from->first, branch);
    for (uint32_t i = 0; i < p.naxes; i++)
        if (arms->plain >> i & 1) {
            axes[i] = p.axes[i];
            tl_set_operand(arms->out, 1 + i, p.index[i].value);
        }
    if (arms->plain)
        tl_attr_set(fn, arms->out, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
    tl_replace_uses(branch->out[0], arms->out->out[0]);
    tl_op_erase(branch);
    return arms->out;
}

static bool is_branch(const TlOp *op)
{
    return op->opcode == TL_OP_IF && op->nregions == 2 && op->nout == 1 &&
           op->out[0]->type->kind == TL_TILE && op->out[0]->type->rank > 0;
}

TlPassResult tl_pass_gather_borders(TlFn *fn, TlPassCtx *px)
{
    int n = 0;
    Arms arms;
    TlAxisInfo *facts = NULL;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (is_branch(op) && !facts)
            facts = tl_axis_info(fn, px->scratch);
        n += is_branch(op) && find_arms(op, facts, &arms);
    }
    if (!n || n > MOST_MERGED)
        return TL_SAME;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        if (is_branch(op) && find_arms(op, facts, &arms))
            next = merge(fn, op, &arms); /* what stands behind the if comes after it */
    }
    return TL_CHANGED;
}
