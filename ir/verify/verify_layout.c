/* The verifier at the laid-out level: every tile has a layout that holds it, and the layouts of an
 * op's operands and results are as layout_rules.h derives them from each other.
 *
 *  1. each layout by itself: inputs reg, lane, warp only (of a buffer: offset only, and one place
 *     for each element); one output per axis; every element of the chunk is somewhere; chunk times
 *     repetitions covers the extent, without a repetition too many;
 *  2. the machine: as many lanes everywhere, as many warps as the block says that the value is in;
 *  3. each op: what every operand must have follows from the op's layout.
 *
 * At the tile level there is nothing to check. A value that a loop or branch carries has one type,
 * layout included; that is in the rules of those ops already. */
#include "ir/plan/layout_rules.h"
#include "ir/plan/mma.h"
#include "ir/plan/staged_plan.h"
#include "ir/verify/verify.h"

enum { MAX_REGISTERS = 1 << 20 };

typedef struct Machine {
    int lane_bits, warp_bits; /* -1: not known yet */
} Machine;

/* Spread over threads. */
static bool is_tile(const TlType *t)
{
    return (t->kind == TL_TILE && t->rank > 0) || tl_is_sums(t);
}

/* ---- 1. a layout ---- */

static bool fault(TlVerify *v, const TlOp *op, const TlType *t, const char *what)
{
    return tl_verify_fault(v, op, "%s: %s", tl_verify_type(v, t), what);
}

static bool check_inputs(TlVerify *v, const TlOp *op, const TlType *t)
{
    if (t->kind == TL_BUF)
        return (t->layout->nin == 1 && t->layout->in[0] == TL_IN_OFFSET) ||
               fault(v, op, t, "a buffer is laid out over offset only");
    for (int i = 0; i < t->layout->nin; i++)
        if (t->layout->in[i] > TL_IN_WARP)
            return fault(v, op, t, "a tile is laid out over reg, lane and warp only");
    return true;
}

static bool check_cover(TlVerify *v, const TlOp *op, const TlType *t)
{
    const TlLayout *l = t->layout;
    if (l->nout != t->rank)
        return fault(v, op, t, "the layout is of another rank");
    for (int d = 0; d < t->rank; d++) {
        int64_t chunk = (int64_t)1 << l->out_bits[d];
        if (chunk * l->reps[d] < t->shape[d])
            return fault(v, op, t, "the layout does not hold all elements");
        if (chunk * (l->reps[d] - 1) >= t->shape[d])
            return fault(v, op, t, "the layout has a repetition without elements");
    }
    return true;
}

static bool check_layout(TlVerify *v, const TlOp *op, const TlType *t)
{
    if (!is_tile(t) && t->kind != TL_BUF)
        return !t->layout || fault(v, op, t, "has a layout");
    if (!t->layout)
        return fault(v, op, t, "has no layout, as other tiles have");
    if (!check_inputs(v, op, t) || !check_cover(v, op, t))
        return false;
    if (!tl_layout_is_surjective(t->layout))
        return fault(v, op, t,
                     t->kind == TL_BUF ? "some of the elements have no place"
                                       : "no thread has some of the elements");
    if (t->kind == TL_BUF)
        return tl_layout_is_injective(t->layout) ||
               fault(v, op, t, "some of the elements have several places");
    return tl_layout_registers(t->layout) <= MAX_REGISTERS ||
           fault(v, op, t, "more than 2^20 registers");
}

/* ---- 2. the machine ---- */

static bool check_lanes(TlVerify *v, Machine *m, const TlOp *op, const TlType *t)
{
    int bits = tl_layout_in_bits(t->layout, TL_IN_LANE);
    if (m->lane_bits < 0)
        m->lane_bits = bits;
    return bits == m->lane_bits ||
           tl_verify_fault(v, op, "%s: %d lanes, others have %d", tl_verify_type(v, t), 1 << bits,
                           1 << m->lane_bits);
}

static bool check_warps(TlVerify *v, Machine *m, const TlOp *op, const TlType *t, const TlBlock *b)
{
    int bits = tl_layout_in_bits(t->layout, TL_IN_WARP);
    int32_t warps = tl_block_warps(b);
    if (warps)
        return warps == (int32_t)1 << bits ||
               tl_verify_fault(v, op, "%s: %d warps, the block has %d", tl_verify_type(v, t),
                               1 << bits, (int)warps);
    if (m->warp_bits < 0)
        m->warp_bits = bits;
    return bits == m->warp_bits ||
           tl_verify_fault(v, op, "%s: %d warps, others have %d", tl_verify_type(v, t), 1 << bits,
                           1 << m->warp_bits);
}

static bool check_value(TlVerify *v, Machine *m, const TlOp *op, const TlValue *x, const TlBlock *b)
{
    if (!check_layout(v, op, x->type))
        return false;
    return !is_tile(x->type) ||
           (check_lanes(v, m, op, x->type) && check_warps(v, m, op, x->type, b));
}

static bool check_values(TlVerify *v, Machine *m, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nout; i++)
        if (!check_value(v, m, op, op->out[i], op->block))
            return false;
    for (uint32_t r = 0; r < op->nregions; r++)
        for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
            if (!check_value(v, m, op, op->regions[r]->args[i], op->regions[r]))
                return false;
    return true;
}

/* ---- 3. ops ---- */

static const char *layout_text(TlVerify *v, const TlLayout *l)
{
    TlSbuf s;
    tl_sbuf_init(&s, &v->scratch);
    tl_layout_print(&s, l);
    return s.text;
}

static bool want_layout(TlVerify *v, const TlOp *op, const char *what, uint32_t i,
                        const TlLayout *got, const TlLayout *want)
{
    return got == want || tl_verify_fault(v, op, "%s %u is laid out as %s, not %s", what, i,
                                          layout_text(v, got), layout_text(v, want));
}

/* The results of a reduction follow from its operands, which all have one layout. */
static bool check_reduce(TlVerify *v, TlCtx *ctx, const TlOp *op)
{
    const TlLayout *l = tl_in(op, 0)->type->layout;
    for (uint32_t i = 1; i < op->nin; i++)
        if (!want_layout(v, op, "operand", i, tl_in(op, i)->type->layout, l))
            return false;
    const TlLayout *want = tl_layout_for_result(ctx, op, 0, l);
    for (uint32_t i = 0; want && i < op->nout; i++)
        if (!want_layout(v, op, "result", i, op->out[i]->type->layout, want))
            return false;
    return true;
}

/* One direction is enough: where extents are padded only one may be derivable. */
static bool check_reshape(TlVerify *v, TlCtx *ctx, const TlOp *op)
{
    const TlType *a = tl_in(op, 0)->type, *r = op->out[0]->type;
    if (!is_tile(a))
        return true;
    if (!is_tile(r)) /* every thread needs the single element */
        return want_layout(v, op, "operand", 0, a->layout,
                           tl_layout_collapsed(ctx, a->layout, ~0u));
    if (tl_layout_reshaped(ctx, r->layout, r, a) == a->layout ||
        tl_layout_reshaped(ctx, a->layout, a, r) == r->layout)
        return true;
    return tl_verify_fault(v, op, "the layouts of %s and %s do not fit", tl_verify_type(v, a),
                           tl_verify_type(v, r));
}

/* The elements that an asynchronous copy moves are contiguous in the buffer too. */
static bool check_async(TlVerify *v, const TlOp *op)
{
    const TlAttr *async = tl_attr(op, TL_ATTR_ASYNC);
    if (op->opcode != TL_OP_COPY || !async)
        return true;
    const TlType *tile = op->out[0]->type;
    int n = (int)async->u.i / tl_dtype_bytes(tile->dtype);
    const TlBufPlan *plan = tl_copy_plan(&v->scratch, op);
    return plan->nregs == (uint32_t)n ||
           tl_verify_fault(v, op, "async = %d, but only %u elements of %s are contiguous",
                           (int)async->u.i, plan->nregs, tl_verify_type(v, tile));
}

static bool check_op(TlVerify *v, TlCtx *ctx, const TlOp *op)
{
    if (!check_async(v, op))
        return false;
    if (op->opcode == TL_OP_REDUCE)
        return check_reduce(v, ctx, op);
    if (op->opcode == TL_OP_RESHAPE)
        return check_reshape(v, ctx, op);
    const TlLayout *l = tl_op_layout(op);
    if (tl_mma_of(op) && !tl_mma_operand_layout(ctx, op, TL_MMA_C, l))
        return tl_verify_fault(v, op, "%s is not an accumulator of '%s'", layout_text(v, l),
                               tl_mma_of(op)->name);
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlLayout *want = tl_layout_for_operand(ctx, op, i, l);
        if (want && !want_layout(v, op, "operand", i, tl_in(op, i)->type->layout, want))
            return false;
    }
    return true;
}

void tl_verify_layouts(TlVerify *v)
{
    if (tl_fn_level(v->fn) == TL_LEVEL_TILE)
        return;
    Machine m = {-1, -1};
    const TlOp *first = v->fn->body->first;
    for (const TlOp *op = first; op; op = tl_walk_next(op, NULL))
        if (!check_values(v, &m, op))
            return;
    for (const TlOp *op = first; op; op = tl_walk_next(op, NULL))
        check_op(v, v->fn->module->ctx, op);
}
