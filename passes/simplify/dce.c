/* dce: removes what nobody needs: ops, results of if and while, loop-carried values.
 *
 *     %a, %b = for ... : f32, f32 (%i, %x, %y) {       %a = for ... : f32 (%i, %x) {
 *       %y1 = add %y, %c                         =>      ...
 *       ...                                              yield %x1
 *       yield %x1, %y1                                 }
 *     }                        (b is not used)
 *
 *  1. Roots: ops with effects on memory or on the host, terminators of the body, and every while
 *     (it may not end). Loads and gets are not roots. If an op is needed, so are all ops around it.
 *  2. Needed values are found from the roots with a worklist. A carried value is needed if its
 *     argument or its result is; that it feeds itself does not count.
 *  3. Sweep, from the last op to the first, so that users go before what they use: ops that are
 *     not needed are removed with their regions; the others lose results, arguments and yielded
 *     values that are not needed. */
#include "passes/pass.h"

typedef struct Dce {
    bool *live; /* by value id */
    TlMap kept; /* ops that stay */
    TL_VEC(TlValue *) work;
    TlArena *arena;
    TlPassResult result;
} Dce;

/* ---- what is needed ---- */

static void need(Dce *d, TlValue *v)
{
    if (d->live[v->id])
        return;
    d->live[v->id] = true;
    tl_vec_push(d->arena, &d->work, v);
}

static void need_operands(Dce *d, const TlOp *op, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        need(d, tl_in(op, i));
}

/* Keeps the op, with the operands that it reads whichever results are needed, and the ops around
 * it. */
static void keep(Dce *d, TlOp *op)
{
    for (; op && !tl_map_get(&d->kept, (uint64_t)(uintptr_t)op, NULL); op = op->block->parent) {
        tl_map_put(&d->kept, (uint64_t)(uintptr_t)op, 1);
        bool combines = op->opcode == TL_OP_REDUCE || op->opcode == TL_OP_SCAN;
        for (TlOp *o = tl_walk_next(op, op); o && combines; o = tl_walk_next(o, op)) {
            tl_map_put(&d->kept, (uint64_t)(uintptr_t)o, 1);
            need_operands(d, o, o->nin);
        }
        if (op->opcode == TL_OP_FOR)
            need_operands(d, op, 3);
        else if (op->opcode == TL_OP_WHILE)
            need(d, tl_in(op->regions[0]->last, 0));
        else if (op->opcode != TL_OP_YIELD && op->opcode != TL_OP_CONDITION) /* by value */
            need_operands(d, op, op->nin);
    }
}

static void need_result(Dce *d, const TlValue *v)
{
    TL_ASSERT(v->def && v->index < v->def->nout, "value %u is no result", v->id);
    TlOp *op = v->def;
    uint32_t i = v->index;
    keep(d, op);
    if (op->opcode == TL_OP_FOR)
        need(d, op->regions[0]->args[i + 1]);
    if (op->opcode == TL_OP_WHILE)
        need(d, tl_in(op->regions[0]->last, i + 1));
    for (uint32_t r = 0; op->opcode == TL_OP_IF && r < op->nregions; r++)
        need(d, tl_in(op->regions[r]->last, i));
}

static void need_argument(Dce *d, const TlValue *v)
{
    TL_ASSERT(!v->def && v->block && v->index < v->block->nargs, "value %u is no argument", v->id);
    TlOp *op = v->block->parent;
    uint32_t i = v->index;
    if (!op)
        return; /* the kernel's body */
    keep(d, op);
    if (op->opcode == TL_OP_FOR && i > 0) {
        need(d, tl_in(op, i + 2));
        need(d, tl_in(v->block->last, i - 1));
    } else if (op->opcode == TL_OP_WHILE && v->block == op->regions[0]) {
        need(d, tl_in(op, i));
        need(d, tl_in(op->regions[1]->last, i));
    } else if (op->opcode == TL_OP_WHILE) {
        need(d, tl_in(op->regions[0]->last, i + 1));
    }
}

static bool is_root(const TlOp *op)
{
    return op->opcode == TL_OP_WHILE || op->opcode == TL_OP_RETURN ||
           (tl_op_info(op->opcode)->flags & (F_WRITE | F_ATOMIC | F_DEBUG | F_BUF_WRITE));
}

static void find_needed(Dce *d, TlFn *fn)
{
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_root(op))
            keep(d, op);
    while (d->work.len) {
        TlValue *v = d->work.data[--d->work.len];
        if (v->def)
            need_result(d, v);
        else
            need_argument(d, v);
    }
}

/* ---- sweep ---- */

static void drop_result(Dce *d, TlOp *op, uint32_t i)
{
    TL_ASSERT(i < op->nout && !op->out[i]->uses,
              "result %u of %s is used", i, tl_op_info(op->opcode)->text);
    tl_op_remove_result(op, i);
    d->result = TL_CHANGED;
}

/* What the region's end gives for unneeded results is let go before the region itself is swept. */
static void trim_ends(Dce *d, TlOp *op)
{
    if (op->opcode == TL_OP_FOR) {
        TlBlock *body = op->regions[0];
        for (uint32_t i = op->nout; i-- > 0;)
            if (!d->live[body->args[i + 1]->id])
                tl_remove_operand(body->last, i);
    } else if (op->opcode == TL_OP_WHILE) {
        TlBlock *before = op->regions[0], *after = op->regions[1];
        for (uint32_t i = op->nout; i-- > 0;)
            if (!d->live[after->args[i]->id] && !d->live[op->out[i]->id])
                tl_remove_operand(before->last, i + 1);
        for (uint32_t i = before->nargs; i-- > 0;)
            if (!d->live[before->args[i]->id])
                tl_remove_operand(after->last, i);
    } else if (op->opcode == TL_OP_IF) {
        for (uint32_t i = op->nout; i-- > 0;) {
            if (d->live[op->out[i]->id])
                continue;
            tl_remove_operand(op->regions[0]->last, i);
            tl_remove_operand(op->regions[1]->last, i);
        }
    }
}

/* The rest of what trim_ends began, when nothing inside uses the arguments any more. */
static void trim_frame(Dce *d, TlOp *op)
{
    if (op->opcode == TL_OP_FOR) {
        TlBlock *body = op->regions[0];
        for (uint32_t i = op->nout; i-- > 0;) {
            if (d->live[body->args[i + 1]->id])
                continue;
            tl_block_remove_arg(body, i + 1);
            tl_remove_operand(op, i + 3);
            drop_result(d, op, i);
        }
    } else if (op->opcode == TL_OP_WHILE) {
        TlBlock *before = op->regions[0], *after = op->regions[1];
        for (uint32_t i = op->nout; i-- > 0;) {
            if (d->live[after->args[i]->id] || d->live[op->out[i]->id])
                continue;
            tl_block_remove_arg(after, i);
            drop_result(d, op, i);
        }
        for (uint32_t i = before->nargs; i-- > 0;) {
            if (d->live[before->args[i]->id])
                continue;
            tl_block_remove_arg(before, i);
            tl_remove_operand(op, i);
            d->result = TL_CHANGED;
        }
    } else if (op->opcode == TL_OP_IF) {
        for (uint32_t i = op->nout; i-- > 0;)
            if (!d->live[op->out[i]->id])
                drop_result(d, op, i);
    }
}

static bool is_kept(const Dce *d, const TlOp *op)
{
    return (tl_op_info(op->opcode)->flags & F_TERM) ||
           tl_map_get(&d->kept, (uint64_t)(uintptr_t)op, NULL);
}

/* Backwards over all kept ops: an op with regions is trimmed, then its regions from the last to the
 * first are swept, then the rest of it goes. Without recursion: `at` is the op to look at, and when
 * a block is done its parent's previous region or frame is next. */
static void sweep(Dce *d, TlFn *fn)
{
    TlBlock *block = fn->body;
    TlOp *at = block->last;
    for (;;) {
        if (!at) { /* the block is done */
            TlOp *parent = block->parent;
            if (!parent)
                return;
            uint32_t r = 0;
            while (parent->regions[r] != block)
                r++;
            if (r > 0) {
                block = parent->regions[r - 1];
                at = block->last;
                continue;
            }
            trim_frame(d, parent);
            block = parent->block;
            at = parent->prev;
            continue;
        }
        if (!is_kept(d, at)) {
            TlOp *prev = at->prev;
            tl_op_erase(at);
            d->result = TL_CHANGED;
            at = prev;
        } else if (at->nregions) {
            trim_ends(d, at);
            block = at->regions[at->nregions - 1];
            at = block->last;
        } else {
            at = at->prev;
        }
    }
}

TlPassResult tl_pass_dce(TlFn *fn, TlPassCtx *px)
{
    Dce d = {.arena = px->scratch,
             .live = TL_NEW_ARRAY(px->scratch, bool, fn->nvalues),
             .result = TL_SAME,
             .kept = {.arena = px->scratch}};
    find_needed(&d, fn);
    sweep(&d, fn);
    return d.result;
}
