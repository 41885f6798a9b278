/* bounds: accesses of views that are inside by proof are marked `unchecked`.
 *
 *     for %zero, %N, %W (%i) {                      %rest = rem (%N - 0), %W; %mid = %N - %rest
 *       %t = load %x, %row, %i {axes = [i, W]}      for %zero, %mid, %W (%i) {
 *       ...                                  =>     %t = load %x, %row, %i
 *     }                                                      {axes = [i, W], unchecked}
 *                                                     ...
 *                                                   }
 *                                                   if %mid < %N { the body once more, bounded }
 *
 * An axis of an access is inside
 *  - by numbers: the index has a range, the extent is a constant (axis_info.h);
 *  - when a scalar index counts a loop, from 0 or above, up to the extent;
 *  - when a scalar index is a pid whose grid axis is the extent (aligned kernels: their grid is the
 *    clause's);
 *  - when a slice starts where a loop counts in steps at least as long as the slice, and the loop
 *    ends before the extent by a step: what peeling makes.
 * Two numbers are the same extent when they are the same value, or extents of parameters that the
 * launch demands to be equal; casts that keep the number are looked through.
 *
 *  1. Innermost loops by a constant step are peeled when that lets an access in them go without
 *     bounds, and the body is short. Not those with a dot or a pipeline hint: the body would be
 *     there twice, and what a pipelined loop fetches ahead is masked anyway.
 *  2. Accesses of which all axes are inside are marked. With --check they are tested all the same.
 *     Of others, and of tests, the axes that are inside are not tested (tl_bounds_sure_axes, which
 *     the lowering asks: where an access has been moved to another iteration of a loop, its index
 *     is no longer the loop's). */
#include "passes/simplify/bounds.h"
#include "ir/remark.h"
#include "passes/analysis/axis_impl.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"
#include "passes/simplify/loops.h"

enum { MAX_PEELED_OPS = 160 };

typedef struct Bounds {
    const TlFn *fn;
    const TlAxisInfo *axis;
    const TlOp *peeling; /* a loop to be treated as peeled, or NULL */
    TlArena *scratch;
} Bounds;

static const TlOp *loop_of_iv(const TlValue *v)
{
    const TlOp *loop = v->def ? NULL : v->block->parent;
    return loop && loop->opcode == TL_OP_FOR && v->index == 0 ? loop : NULL;
}

static int64_t least(const Bounds *b, const TlValue *v)
{
    return v->type->dtype == TL_U64 ? 0 : tl_axis_facts(b->axis, v)->lo;
}

/* ---- loops that end with a whole step ---- */

static bool is_zero(const TlValue *v)
{
    TlWideInt n;
    return tl_const_int_value(v, &n) && n == 0;
}

static bool same_number(const TlValue *a, const TlValue *b)
{
    TlWideInt x, y;
    return a == b || (tl_const_int_value(a, &x) && tl_const_int_value(b, &y) && x == y);
}

/* Is v hi - lo? */
static bool is_length(const TlValue *v, const TlValue *lo, const TlValue *hi)
{
    if (is_zero(lo))
        return v == hi;
    return v->def && v->def->opcode == TL_OP_SUB && tl_in(v->def, 0) == hi &&
           same_number(tl_in(v->def, 1), lo);
}

/* hi of a loop from lo to hi - (hi - lo) % step, which peeling makes; else NULL. */
static const TlValue *whole_bound(const Bounds *b, const TlOp *loop)
{
    const TlOp *sub = tl_in(loop, 1)->def;
    if (!sub || sub->opcode != TL_OP_SUB)
        return NULL;
    const TlValue *hi = tl_in(sub, 0);
    const TlOp *rem = tl_in(sub, 1)->def;
    bool fits = rem && rem->opcode == TL_OP_REM && tl_is_signed(hi->type->dtype) &&
                same_number(tl_in(rem, 1), tl_in(loop, 2)) &&
                is_length(tl_in(rem, 0), tl_in(loop, 0), hi);
    return fits && least(b, hi) >= 0 && least(b, tl_in(loop, 0)) >= 0 ? hi : NULL;
}

/* ---- axes ---- */

/* Counts up to the extent. */
static bool loop_index_inside(const Bounds *b, const TlPlace *p, uint32_t i, const TlOp *loop)
{
    if (least(b, tl_in(loop, 0)) < 0 || tl_axis_facts(b->axis, tl_in(loop, 2))->lo <= 0)
        return false;
    const TlValue *end = tl_in(loop, 1), *whole = whole_bound(b, loop);
    return tl_axis_is_extent(b->axis, end, p->base, i) ||
           (whole && tl_axis_is_extent(b->axis, whole, p->base, i));
}

static bool slice_inside(const Bounds *b, const TlPlace *p, uint32_t i, const TlOp *loop)
{
    const TlValue *whole = loop == b->peeling ? tl_in(loop, 1) : whole_bound(b, loop);
    TlWideInt step;
    return whole && p->axes[i].step == 1 && tl_const_int_value(tl_in(loop, 2), &step) &&
           p->axes[i].width <= step && tl_axis_is_extent(b->axis, whole, p->base, i);
}

static bool axis_inside(const Bounds *b, const TlPlace *p, const TlViewFacts *v, uint32_t i)
{
    if (tl_access_axis_inside(b->axis, p, v, i))
        return true;
    const TlValue *index = p->index[i].value;
    if (index->type->rank > 0)
        return false;
    index = tl_axis_plain(b->axis, index);
    const TlOp *loop = loop_of_iv(index);
    if (p->axes[i].kind == TL_AXIS_SLICE)
        return loop && slice_inside(b, p, i, loop);
    if (loop)
        return loop_index_inside(b, p, i, loop);
    return index->def && index->def->opcode == TL_OP_PID &&
           tl_axis_pid_inside(b->fn, index->def, p->base, i);
}

static bool is_candidate(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & (F_READ | F_WRITE) && tl_attr(op, TL_ATTR_AXES) &&
           !tl_attr_flag(op, TL_ATTR_UNCHECKED);
}

static bool is_inside(const Bounds *b, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    TlViewFacts v = tl_view_facts(b->axis, p.base);
    for (uint32_t i = 0; i < p.naxes; i++)
        if (!axis_inside(b, &p, &v, i))
            return false;
    return true;
}

/* ---- 1. peeling ---- */

static bool gains(Bounds *b, const TlOp *loop)
{
    bool any = false;
    b->peeling = NULL;
    for (const TlOp *op = tl_walk_next(loop, loop); op && !any; op = tl_walk_next(op, loop)) {
        if (!is_candidate(op) || is_inside(b, op))
            continue;
        b->peeling = loop;
        any = is_inside(b, op);
        b->peeling = NULL;
    }
    return any;
}

/* Will the pass `pipeline` pipeline it? */
static bool is_pipelined(const TlOp *loop)
{
    if (tl_attr(loop, TL_ATTR_PIPELINE))
        return true;
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        if (op->opcode == TL_OP_DOT)
            return true;
    return false;
}

/* The numbers of the new bound stay in the type: 0 <= lo and 0 <= hi. */
static bool may_peel(const Bounds *b, const TlOp *loop)
{
    TlWideInt step, trips;
    return loop->opcode == TL_OP_FOR && tl_const_int_value(tl_in(loop, 2), &step) && step > 1 &&
           least(b, tl_in(loop, 0)) >= 0 && least(b, tl_in(loop, 1)) >= 0 &&
           tl_is_signed(tl_in(loop, 0)->type->dtype) && !tl_const_trips(loop, &trips) &&
           tl_is_innermost(loop) && tl_loop_size(loop) <= MAX_PEELED_OPS && !is_pipelined(loop);
}

/* hi - (hi - lo) % step: with lo > hi it is not above lo, and not below hi. */
static TlValue *middle(TlBuilder *at, const TlOp *loop)
{
    TlValue *lo = tl_in(loop, 0), *hi = tl_in(loop, 1);
    uint64_t zero;
    TlValue *length =
        tl_value_is_const(lo, &zero) && zero == 0 ? hi : tl_binary(at, TL_OP_SUB, hi, lo);
    return tl_binary(at, TL_OP_SUB, hi, tl_binary(at, TL_OP_REM, length, tl_in(loop, 2)));
}

static void peel(Bounds *b, TlOp *loop)
{
    uint32_t n = loop->nout;
    TlValue *hi = tl_in(loop, 1), **carried = TL_NEW_ARRAY(b->scratch, TlValue *, n + 1);
    const TlType **types = TL_NEW_ARRAY(b->scratch, const TlType *, n + 1);
    TlBuilder at = tl_builder_before(loop);
    TlValue *mid = middle(&at, loop);
    tl_set_operand(loop, 1, mid);

    at = (TlBuilder){
        .fn = loop->block->fn, .block = loop->block, .before = loop->next, .loc = loop->loc};
    TlValue *more = tl_binary(&at, TL_OP_LT, mid, hi);
    for (uint32_t i = 0; i < n; i++)
        types[i] = loop->out[i]->type;
    TlOp *last = tl_op_new(&at, TL_OP_IF, 1, &more, n, types, 2, 0, NULL);
    for (uint32_t i = 0; i < n; i++) {
        last->out[i]->name = loop->out[i]->name;
        tl_replace_uses(loop->out[i], last->out[i]);
        carried[i] = loop->out[i];
    }
    TlBuilder no = tl_builder_end(last->regions[1]), yes = tl_builder_end(last->regions[0]);
    tl_yield(&no, TL_OP_YIELD, n, carried);
    tl_loop_copy_body(&yes, loop, mid, carried, b->scratch);
    tl_yield(&yes, TL_OP_YIELD, n, carried);
}

/* ---- why not ---- */

/* Is the number made, by scalar arithmetic, from something that `is` holds for? */
static bool comes_from(const TlValue *v, bool (*is)(const TlValue *v), int depth)
{
    enum { MOST_DEPTH = 12 }; /* of ops: recursion */
    if (depth > MOST_DEPTH || v->type->rank > 0 || is(v))
        return depth <= MOST_DEPTH && is(v);
    bool any = false;
    for (uint32_t i = 0; v->def && tl_op_info(v->def->opcode)->flags & F_ELEM && i < v->def->nin;
         i++)
        any |= comes_from(tl_in(v->def, i), is, depth + 1);
    return any;
}

static bool is_pid(const TlValue *v)
{
    return v->def && v->def->opcode == TL_OP_PID;
}

static bool is_loop_index(const TlValue *v)
{
    return loop_of_iv(v) != NULL;
}

static bool is_in_pipeline(const TlOp *op)
{
    while (op && !tl_remark_of(op, TL_REMARK_STAGES))
        op = op->block->parent;
    return op != NULL;
}

/* The end of a loop that was peeled, where the rest begins? */
static bool begins_rest(const TlValue *v)
{
    const TlOp *rem = v->def && v->def->opcode == TL_OP_SUB ? tl_in(v->def, 1)->def : NULL;
    return rem && rem->opcode == TL_OP_REM;
}

static TlBound why_not_peeled(Bounds *b, const TlPlace *p, uint32_t i, const TlOp *loop)
{
    TlWideInt step;
    if (!tl_const_int_value(tl_in(loop, 2), &step) || step < p->axes[i].width)
        return TL_BOUND_LOOP_STEP;
    if (!tl_axis_is_extent(b->axis, tl_in(loop, 1), p->base, i) && !whole_bound(b, loop))
        return TL_BOUND_LOOP_END;
    if (least(b, tl_in(loop, 0)) < 0 || least(b, tl_in(loop, 1)) < 0)
        return TL_BOUND_LOOP_SIGN;
    if (!tl_is_innermost(loop))
        return TL_BOUND_LOOP_OUTER;
    if (is_pipelined(loop) || tl_remark_of(loop, TL_REMARK_STAGES))
        return TL_BOUND_LOOP_AHEAD;
    return tl_loop_size(loop) > MAX_PEELED_OPS ? TL_BOUND_LOOP_LONG : TL_BOUND_LOOP;
}

TlBound tl_bounds_of_axis(const TlFn *fn, const TlAxisInfo *facts, const TlOp *access,
                          uint32_t axis)
{
    TL_ASSERT(axis < tl_op_place(access).naxes, "axis %u of %s", axis,
              tl_op_info(access->opcode)->text);
    Bounds b = {.fn = fn, .axis = facts};
    TlPlace p = tl_op_place(access);
    TlViewFacts v = tl_view_facts(facts, p.base);
    if (axis_inside(&b, &p, &v, axis))
        return TL_BOUND_INSIDE;
    if (p.axes[axis].kind == TL_AXIS_TILE)
        return TL_BOUND_VALUES;
    const TlValue *index = tl_axis_plain(b.axis, p.index[axis].value);
    if (index->def && index->def->opcode == TL_OP_ADD && loop_of_iv(tl_in(index->def, 0)))
        index = tl_in(index->def, 0); /* for a later iteration */
    const TlOp *loop = loop_of_iv(index);
    if (loop)
        return why_not_peeled(&b, &p, axis, loop);
    if (tl_axis_facts(facts, index)->is_known)
        return TL_BOUND_LENGTH;
    if (is_pid(index) && p.axes[axis].kind == TL_AXIS_SCALAR && fn->info && !fn->info->promise.grid)
        return TL_BOUND_GRID;
    if (begins_rest(index))
        return TL_BOUND_REST;
    if (comes_from(index, is_loop_index, 0))
        return is_in_pipeline(access) ? TL_BOUND_LOOP_AHEAD : TL_BOUND_START;
    return comes_from(index, is_pid, 0) ? TL_BOUND_PROGRAM : TL_BOUND_START;
}

bool tl_bounds_is_constant(const TlAxisInfo *facts, const TlOp *access, uint32_t axis)
{
    TlPlace p = tl_op_place(access);
    TL_ASSERT(axis < p.naxes, "axis %u of %u", axis, p.naxes);
    TlViewFacts v = tl_view_facts(facts, p.base);
    return tl_access_axis_inside(facts, &p, &v, axis) &&
           tl_axis_facts(facts, p.index[axis].value)->is_known;
}

uint32_t tl_bounds_sure_axes(const TlFn *fn, const TlAxisInfo *facts, const TlOp *access)
{
    Bounds b = {.fn = fn, .axis = facts};
    TlPlace p = tl_op_place(access);
    bool may = access->opcode == TL_OP_INSIDE ||
               (is_candidate(access) && !(tl_op_info(access->opcode)->flags & F_ATOMIC));
    TlViewFacts v = may && p.axes ? tl_view_facts(facts, p.base) : (TlViewFacts){0};
    uint32_t axes = 0;
    for (uint32_t i = 0; i < p.naxes && may; i++) {
        if (p.index[i].value->type->rank == 0 && axis_inside(&b, &p, &v, i))
            axes |= 1u << i;
    }
    return axes;
}

bool tl_bounds_is_peeled(const TlFn *fn, const TlAxisInfo *facts, const TlOp *loop)
{
    Bounds b = {.fn = fn, .axis = facts};
    return loop->opcode == TL_OP_FOR && whole_bound(&b, loop);
}

/* ---- the pass ---- */

static uint32_t peel_all(Bounds *b, TlFn *fn)
{
    TL_VEC(TlOp *) loops = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR && may_peel(b, op) && gains(b, op))
            tl_vec_push(b->scratch, &loops, op);
    for (uint32_t i = 0; i < loops.len; i++)
        peel(b, loops.data[i]);
    return loops.len;
}

static bool mark(const Bounds *b, TlFn *fn, TlOp *op)
{
    if (is_candidate(op) && is_inside(b, op)) {
        tl_attr_set(fn, op, (TlAttr){.id = TL_ATTR_UNCHECKED, .u.i = 1});
        return true;
    }
    return false;
}

static uint32_t mark_all(Bounds *b, TlFn *fn)
{
    uint32_t n = 0;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        n += mark(b, fn, op);
    return n;
}

TlPassResult tl_pass_bounds(TlFn *fn, TlPassCtx *px)
{
    Bounds b = {.fn = fn, .axis = tl_pass_axis_info(fn, px), .scratch = px->scratch};
    uint32_t peeled = peel_all(&b, fn);
    if (peeled)
        b.axis = tl_axis_info(fn, px->scratch);
    return mark_all(&b, fn) + peeled ? TL_CHANGED : TL_SAME;
}
