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
 * writes from the wait on that ends them.
 *
 * So it is with what is sent to memory from where threads have put it, and with what they have
 * written to bytes that bulk copies write later: there is a fence
 * before the barriers are made that count these. */
#include "ir/plan/shared_plan.h"
#include "ir/plan/staged.h"
#include "passes/pass.h"

/* Does it read shared memory not as threads do? */
static bool reads_behind(const TlOp *op)
{
    return op->opcode == TL_OP_DOT_ASYNC || op->opcode == TL_OP_SEND;
}

static bool has_product(const TlValue *buf)
{
    for (const TlUse *u = buf->uses; u; u = u->next)
        if (reads_behind(u->user))
            return true;
    return false;
}

static bool is_copy(const TlOp *op, bool bulk)
{
    return op->opcode == TL_OP_COPY && tl_is_bulk_copy(op) == bulk;
}

/* Behind it in the text, or in a loop around it? */
static bool product_follows(const TlOp *barrier)
{
    for (const TlOp *op = barrier; op; op = tl_walk_next(op, NULL))
        if (reads_behind(op))
            return true;
    for (const TlOp *loop = barrier->block->parent; loop; loop = loop->block->parent)
        for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
            if (reads_behind(op) && loop->opcode != TL_OP_IF)
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

enum { OF_PRODUCTS = 1, OF_BULK = 2 }; /* what has been written: bytes that these access */

typedef struct Bytes {
    uint64_t from, to;
} Bytes;

typedef struct Fences {
    TlArena *arena;
    TL_VEC(Bytes) bulk; /* of buffers that bulk copies write */
    int copied;         /* what copies by threads write, which waits end */
    bool dry, changed;  /* dry: nothing is inserted */
} Fences;

static Bytes bytes_at(const TlOp *op, uint64_t size)
{
    uint64_t from = (uint64_t)tl_attr_int(op, TL_ATTR_SHARED, 0);
    return (Bytes){from, from + size};
}

static bool is_of_bulk(const Fences *f, Bytes w)
{
    for (uint32_t i = 0; i < f->bulk.len && w.from < w.to; i++)
        if (w.from < f->bulk.data[i].to && f->bulk.data[i].from < w.to)
            return true;
    return false;
}

static Bytes bytes_of(const TlValue *buf)
{
    return bytes_at(buf->def, tl_buf_bytes(buf->type));
}

static int written_in(const Fences *f, const TlValue *buf)
{
    return (has_product(buf) ? OF_PRODUCTS : 0) | (is_of_bulk(f, bytes_of(buf)) ? OF_BULK : 0);
}

static int writes(const Fences *f, const TlOp *op)
{
    if (op->opcode == TL_OP_WAIT)
        return f->copied;
    if (op->opcode == TL_OP_PUT)
        return written_in(f, tl_in(op, 0));
    return is_of_bulk(f, bytes_at(op, tl_op_shared_bytes(f->arena, op))) ? OF_BULK : 0;
}

/* What must be visible at the barrier of this op. */
static int wanted_at(const TlOp *op)
{
    return (product_follows(op) ? OF_PRODUCTS : 0) | (op->opcode == TL_OP_MBAR ? OF_BULK : 0);
}

static int walk(Fences *f, const TlBlock *block, int dirty);

/* A loop's body begins with what is before it, or with what the body leaves. */
static int walk_loop(Fences *f, const TlOp *op, int dirty)
{
    bool dry = f->dry;
    int left = 0;
    f->dry = true;
    for (uint32_t r = 0; r < op->nregions; r++)
        left = walk(f, op->regions[r], left);
    f->dry = dry;
    left |= dirty;
    for (uint32_t r = 0; r < op->nregions; r++)
        left = walk(f, op->regions[r], left);
    return left | dirty;
}

/* One region of two. */
static int walk_either(Fences *f, const TlOp *op, int dirty)
{
    int left = 0;
    for (uint32_t r = 0; r < op->nregions; r++)
        left |= walk(f, op->regions[r], dirty);
    return left;
}

static int walk(Fences *f, const TlBlock *block, int dirty)
{
    for (TlOp *op = block->first; op; op = op->next) {
        if (op->opcode == TL_OP_FENCE)
            dirty = 0;
        if (dirty && has_barrier(op) && (dirty & wanted_at(op))) {
            if (!f->dry)
                fence_before(op);
            f->changed |= !f->dry;
            dirty = 0;
        }
        dirty |= writes(f, op);
        if (op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE)
            dirty = walk_loop(f, op, dirty);
        else if (op->opcode == TL_OP_IF || op->opcode == TL_OP_ROLES)
            dirty = walk_either(f, op, dirty);
    }
    return dirty;
}

static void find_copies(Fences *f, const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_copy(op, true))
            tl_vec_push(f->arena, &f->bulk, bytes_of(tl_op_place(op).buf));
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_copy(op, false))
            f->copied |= written_in(f, tl_op_place(op).buf);
}

TlPassResult tl_pass_fence_writes(TlFn *fn, TlPassCtx *px)
{
    Fences f = {.arena = px->scratch};
    if (!px->machine->warpgroups || tl_fn_level(fn) != TL_LEVEL_STAGED)
        return TL_SAME;
    find_copies(&f, fn);
    walk(&f, fn->body, 0);
    return f.changed ? TL_CHANGED : TL_SAME;
}
