/* fence-writes: what threads have written to a buffer from which a DOT_ASYNC reads, by puts or by
 * copies that they have waited for, they make visible to it before the barrier that comes between
 * (PTX ISA, "Async proxy": writes of threads and accesses of wgmma are ordered by fence.proxy.async
 * only).
 *
 *     put %b, %s, %x                  put %b, %s, %x
 *     barrier                    =>   fence
 *     %u = dot_async %b, ...          barrier
 *                                     %u = dot_async %b, ...
 *
 * One walk over the text: is there such a write since the last fence? Of a loop or an if that has
 * one anywhere, it is assumed from its beginning on. */
#include "ir/plan/staged.h"
#include "passes/pass.h"

static bool has_product(const TlValue *buf)
{
    for (const TlUse *u = buf->uses; u; u = u->next)
        if (u->user->opcode == TL_OP_DOT_ASYNC)
            return true;
    return false;
}

/* A PUT, or a COPY by threads, from where on it is assumed to arrive at any time. */
static bool writes(const TlOp *op)
{
    switch ((int)op->opcode) {
    case TL_OP_PUT: return has_product(tl_in(op, 0));
    case TL_OP_COPY: return !tl_attr_flag(op, TL_ATTR_BULK) && has_product(tl_op_place(op).buf);
    default: return false;
    }
}

static bool writes_inside(const TlOp *region)
{
    for (const TlOp *op = tl_walk_next(region, region); op; op = tl_walk_next(op, region))
        if (writes(op))
            return true;
    return false;
}

/* Behind it in the text, or in a loop around it? */
static bool product_follows(const TlOp *barrier)
{
    for (const TlOp *op = barrier; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_DOT_ASYNC)
            return true;
    for (const TlOp *loop = barrier->block->parent; loop; loop = loop->block->parent)
        for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
            if (op->opcode == TL_OP_DOT_ASYNC && loop->opcode != TL_OP_IF)
                return true;
    return false;
}

/* An op with scratch of its own has barriers inside (ir/plan/shared_plan.h). */
static bool has_barrier(const TlOp *op)
{
    return op->opcode == TL_OP_BARRIER ||
           (op->opcode != TL_OP_ALLOC && tl_attr(op, TL_ATTR_SHARED) != NULL);
}

static void fence_before(TlOp *op)
{
    TlBuilder b = tl_builder_before(op);
    tl_op_new(&b, TL_OP_FENCE, 0, NULL, 0, NULL, 0, 0, NULL);
}

/* Ops of the block, and around it, that are not over yet: what they do to the flag at their end. */
static bool is_last_region(const TlOp *parent, const TlBlock *block)
{
    return parent->nregions && parent->regions[parent->nregions - 1] == block;
}

TlPassResult tl_pass_fence_writes(TlFn *fn, TlPassCtx *px)
{
    bool dirty = false, copied = false, changed = false;
    if (!px->machine->warpgroups || tl_fn_level(fn) != TL_LEVEL_STAGED)
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool structure = op->nregions > 0 && op->opcode != TL_OP_REDUCE && op->opcode != TL_OP_SCAN;
        copied |= op->opcode == TL_OP_COPY && writes(op);
        dirty |= writes(op) || (structure && writes_inside(op)) ||
                 (op->opcode == TL_OP_WAIT && copied);
        if (dirty && has_barrier(op) && product_follows(op)) {
            fence_before(op);
            changed = true;
            dirty = false;
        }
        for (const TlOp *o = op; !o->next && o->block->parent; o = o->block->parent)
            if (is_last_region(o->block->parent, o->block) || o->block->parent->opcode == TL_OP_IF)
                dirty |= writes_inside(o->block->parent);
    }
    return changed ? TL_CHANGED : TL_SAME;
}
