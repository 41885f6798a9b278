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
 * Walks over all ways through the text: can there be such a write since the last fence? Copies are
 * writes from the wait on that ends them. */
#include "ir/plan/staged.h"
#include "passes/pass.h"

static bool has_product(const TlValue *buf)
{
    for (const TlUse *u = buf->uses; u; u = u->next)
        if (u->user->opcode == TL_OP_DOT_ASYNC)
            return true;
    return false;
}

static bool is_copy(const TlOp *op)
{
    return op->opcode == TL_OP_COPY && !tl_attr_flag(op, TL_ATTR_BULK) &&
           has_product(tl_op_place(op).buf);
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

typedef struct Fences {
    bool copies;       /* there are copies by threads: waits end them */
    bool dry, changed; /* dry: nothing is inserted */
} Fences;

static bool walk(Fences *f, const TlBlock *block, bool dirty);

/* A loop's body begins with what is before it, or with what the body leaves. */
static bool walk_loop(Fences *f, const TlOp *op, bool dirty)
{
    bool dry = f->dry, left = false;
    f->dry = true;
    for (uint32_t r = 0; r < op->nregions; r++)
        left = walk(f, op->regions[r], left);
    f->dry = dry;
    left |= dirty;
    for (uint32_t r = 0; r < op->nregions; r++)
        left = walk(f, op->regions[r], left);
    return left || dirty;
}

/* One region of two. */
static bool walk_either(Fences *f, const TlOp *op, bool dirty)
{
    bool left = false;
    for (uint32_t r = 0; r < op->nregions; r++)
        left |= walk(f, op->regions[r], dirty);
    return left;
}

static bool walk(Fences *f, const TlBlock *block, bool dirty)
{
    for (TlOp *op = block->first; op; op = op->next) {
        dirty |= (op->opcode == TL_OP_PUT && has_product(tl_in(op, 0))) ||
                 (op->opcode == TL_OP_WAIT && f->copies);
        dirty &= op->opcode != TL_OP_FENCE;
        if (dirty && has_barrier(op) && product_follows(op)) {
            if (!f->dry)
                fence_before(op);
            f->changed |= !f->dry;
            dirty = false;
        }
        if (op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE)
            dirty = walk_loop(f, op, dirty);
        else if (op->opcode == TL_OP_IF || op->opcode == TL_OP_ROLES)
            dirty = walk_either(f, op, dirty);
    }
    return dirty;
}

TlPassResult tl_pass_fence_writes(TlFn *fn, TlPassCtx *px)
{
    Fences f = {0};
    if (!px->machine->warpgroups || tl_fn_level(fn) != TL_LEVEL_STAGED)
        return TL_SAME;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        f.copies |= is_copy(op);
    walk(&f, fn->body, false);
    return f.changed ? TL_CHANGED : TL_SAME;
}
