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
 * Where all is inside, bounds change no position, nor do the other borders (border_index.h), so
 * both arms load the same. On the CPU a loop nest asks itself which of its vectors the bounds leave
 * as they are, once for all loads in it (codegen/nest): so taps of a stencil need no copies of what
 * they read. GPUs keep the if. */
#include "ir/rewrite.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/border_index.h"
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
    const TlValue *extent = beside(v, TL_OP_ADD, is_minus_one, NULL);
    const TlOp *op = extent ? without_casts(extent)->def : NULL;
    return op && op->opcode == TL_OP_EXTENT && tl_in(op, 0) == a->view &&
           tl_attr_int(op, TL_ATTR_AXIS, 0) == a->axis;
}

static bool is_iota(const TlValue *v, const void *user)
{
    (void)user;
    return v->def && v->def->opcode == TL_OP_IOTA;
}

static bool is_start(const TlValue *v, const void *start)
{
    return without_casts(v) == without_casts(start);
}

/* Is v `start`, or start + iota, where that is within the axis? It may be known not to be below. */
static bool is_bounded(const TlValue *v, const TlValue *start, bool slice, Axis axis)
{
    TlValue *of = NULL;
    bool mirrors = tl_border_index(v, axis.view, axis.axis, &of) != TL_MIRROR_NONE;
    const TlValue *x = mirrors ? of : beside(v, TL_OP_MIN, is_last, &axis);
    if (!x && slice)
        return false;
    x = x ? x : v;
    const TlValue *above = mirrors ? NULL : beside(x, TL_OP_MAX, is_zero, NULL);
    x = above ? above : x;
    if (slice)
        x = beside(x, TL_OP_ADD, is_start, start);
    return x && (slice ? is_iota(x, NULL) : is_start(x, start));
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

/* The load by index tiles that does what the if does; NULL: there is none. */
static TlOp *load_of_both(const TlOp *branch, TlAxisInfo *facts)
{
    TlOp *in = only_load(branch->regions[0]), *out = only_load(branch->regions[1]);
    if (!in || !out || !tl_attr_flag(in, TL_ATTR_UNCHECKED))
        return NULL;
    TlPlace p = tl_op_place(in), q = tl_op_place(out);
    bool same = p.axes && q.axes && p.base == q.base && p.naxes == q.naxes && !p.mask && !q.mask &&
                !q.pointwise;
    for (uint32_t i = 0; same && i < p.naxes; i++) {
        bool slice = p.axes[i].kind == TL_AXIS_SLICE;
        same = p.axes[i].kind != TL_AXIS_TILE && (!slice || p.axes[i].step == 1) &&
               q.axes[i].kind == (slice ? TL_AXIS_TILE : TL_AXIS_SCALAR) &&
               is_bounded(q.index[i].value, p.index[i].value, slice, (Axis){p.base, i, facts});
    }
    return same ? out : NULL;
}

static bool is_branch(const TlOp *op)
{
    return op->opcode == TL_OP_IF && op->nregions == 2 && op->nout == 1 &&
           op->out[0]->type->kind == TL_TILE && op->out[0]->type->rank > 0;
}

TlPassResult tl_pass_gather_borders(TlFn *fn, TlPassCtx *px)
{
    int n = 0;
    TlAxisInfo *facts = NULL;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (is_branch(op) && !facts)
            facts = tl_axis_info(fn, px->scratch);
        n += is_branch(op) && load_of_both(op, facts);
    }
    if (!n || n > MOST_MERGED)
        return TL_SAME;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        TlOp *load = is_branch(op) ? load_of_both(op, facts) : NULL;
        if (!load)
            continue;
        next = load; /* what stands behind the if comes after it */
        TlBlock *from = op->regions[1];
        while (from->first != from->last)
            tl_op_move_before(from->first, op);
        tl_replace_uses(op->out[0], load->out[0]);
        tl_op_erase(op);
    }
    return TL_CHANGED;
}
