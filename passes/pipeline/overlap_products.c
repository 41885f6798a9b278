/* overlap-products: an iteration begins the first product of the next one before it does the rest
 * of its own, so that matrix instructions and what is computed between them go on at the same time.
 *
 *     for %i (%x, %acc) {                      %s = await(dot_async %q, %k[lo])
 *       %s = await(dot_async %q, %k[%i])       %p, %y = softmax %s, %x
 *       %p, %y = softmax %s, %x                for %j = lo + step (%x = %y, %acc, %p) {
 *       %v = dot_async %p, ..., %acc     =>      %t = dot_async %q, %k[%j]
 *       %o = await %v                            %v = dot_async %p, ..., %acc
 *       arrive                                   %s = await %t {pending = 1}
 *       yield %y, %o                             %r, %y = softmax %s, %x
 *     }                                          %o = await %v
 *                                                arrive
 *                                                yield %y, %o, %r
 *                                              }
 *                                              %v = dot_async %p, ..., %acc
 *                                              %o = await %v
 *                                              arrive
 *
 *  1. Where: loops of warps whose copies another warp begins (specialize), so that an iteration
 *     only waits for what has come, in any order. They have products whose sums they carry (late),
 *     and others before, which do not depend on these (early).
 *  2. The late part: what depends on what the late products add to or give, and the arrivals that
 *     say that slots have been read. All else is the early part, of which nothing depends on the
 *     late one: the loop carries what the late part takes from it.
 *  3. The early part of the first iteration stands before the loop, the late one of the last behind
 *     it; where there may be no iteration, all of that is in a branch. In the loop the early part
 *     is an iteration ahead: its products begin first, then the late ones, then the early ones are
 *     awaited.
 *  4. Both products and what one thread computes between them need registers at the same time:
 *     where these are too few, the loop stays.
 *
 * This is how FlashAttention-3 overlaps softmax with products in one warpgroup (arXiv 2407.08608,
 * section 3.2). */
#include "ir/plan/async_dot.h"
#include "passes/analysis/alive.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"
#include "passes/pipeline/rotate_loop.h"

enum { OF_PRODUCER = 128 * 24 }; /* registers of the warps that begin copies (setmaxnreg) */

typedef struct Overlap {
    TlRotate r;
    int64_t begun; /* late products */
} Overlap;

/* ---- 1. where ---- */

/* Something whose place among the others says nothing but what it takes and gives, or that the two
 * parts keep in order. */
static bool is_movable(const TlOp *op)
{
    if (op->opcode == TL_OP_DOT_ASYNC || op->opcode == TL_OP_YIELD)
        return true;
    if (op->opcode == TL_OP_AWAIT)
        return op->nin > 0;
    if (op->opcode == TL_OP_MBAR_WAIT || op->opcode == TL_OP_ARRIVE)
        return !tl_attr_flag(op, TL_ATTR_MASK);
    if (op->opcode == TL_OP_LOAD)
        return tl_is_constant_memory(tl_in(op, 0));
    return tl_op_is_pure(op); /* branches too: a mask that few iterations need */
}

static bool is_loop_for_it(const TlOp *loop)
{
    if (loop->opcode != TL_OP_FOR || tl_op_role(loop) != 1 || !tl_rotate_counts_up(loop))
        return false;
    for (const TlOp *op = loop->regions[0]->first; op; op = op->next)
        if (!is_movable(op))
            return false;
    for (uint32_t i = 0; i < loop->nout; i++)
        if (tl_is_sums(loop->out[i]->type))
            return false; /* of one iteration pending in the next as it is */
    return true;
}

/* ---- 2. the parts ---- */

static bool is_marked(const TlMap *marks, const TlOp *op)
{
    return op && tl_map_get(marks, (uint64_t)(uintptr_t)op, NULL);
}

/* What takes the value in the same iteration. */
static void mark_dependents(const Overlap *o, TlMap *marks, const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *user = tl_op_in_block(u->user, o->r.body);
        if (user && user != o->r.body->last)
            tl_map_put(marks, (uint64_t)(uintptr_t)user, 1);
    }
}

static void spread(const Overlap *o, TlMap *marks)
{
    for (const TlOp *op = o->r.body->first; op; op = op->next)
        if (is_marked(marks, op))
            for (uint32_t i = 0; i < op->nout; i++)
                mark_dependents(o, marks, op->out[i]);
}

/* Are the sums of a product carried: from the argument through a product to what is yielded? */
static bool carries_sums(const Overlap *o, uint32_t i)
{
    TlMap from = {.arena = o->r.arena}, sums = {.arena = o->r.arena};
    mark_dependents(o, &from, o->r.body->args[i + 1]);
    spread(o, &from);
    for (const TlOp *op = o->r.body->first; op; op = op->next)
        if (op->opcode == TL_OP_DOT_ASYNC && is_marked(&from, tl_in(op, op->nin - 1)->def))
            mark_dependents(o, &sums, op->out[0]);
    spread(o, &sums);
    return is_marked(&sums, tl_in(o->r.body->last, i)->def);
}

/* Made from fewer registers: the loop carries these. Or put where a product takes it as A: the
 * product of the iteration before has that until it is awaited. */
static bool is_shape_for_late(const Overlap *o, const TlOp *op)
{
    bool puts = op->opcode == TL_OP_READY && tl_tensor_is_a(op->out[0]);
    if (op->opcode != TL_OP_EXPAND && op->opcode != TL_OP_BROADCAST && !puts)
        return false;
    for (const TlUse *u = op->out[0]->uses; u; u = u->next)
        if (!tl_rotate_is_late(&o->r, tl_op_in_block(u->user, o->r.body)))
            return false;
    return true;
}

/* The late part, and whether each of its values goes to the late part of the next iteration only.
 */
static bool find_late(Overlap *o)
{
    TlRotate *r = &o->r;
    for (uint32_t i = 0; i < r->loop->nout; i++) {
        r->late_carried[i] = carries_sums(o, i);
        if (r->late_carried[i])
            mark_dependents(o, &r->late, r->body->args[i + 1]);
    }
    for (TlOp *op = r->body->first; op; op = op->next)
        if (op->opcode == TL_OP_ARRIVE)
            tl_rotate_set_late(r, op);
    spread(o, &r->late);
    for (TlOp *op = r->body->last; op; op = op->prev)
        if (is_shape_for_late(o, op))
            tl_rotate_set_late(r, op);
    for (uint32_t i = 0; i < r->loop->nout; i++) {
        const TlValue *next = tl_in(r->body->last, i);
        if (next->def && tl_rotate_is_late(r, next->def) && !r->late_carried[i])
            return false;
    }
    return true;
}

static bool has_both(Overlap *o)
{
    int64_t early = 0;
    for (const TlOp *op = o->r.body->first; op; op = op->next) {
        bool product = op->opcode == TL_OP_DOT_ASYNC, late = tl_rotate_is_late(&o->r, op);
        o->begun += product && late;
        early += product && !late;
    }
    return early > 0 && o->begun > 0;
}

/* ---- 4. registers ---- */

static bool fits_registers(const Overlap *o, const TlPassCtx *px)
{
    int64_t threads = (int64_t)o->r.fn->body->warps * px->machine->lanes,
            all = (TL_WARPGROUP_REGISTERS - OF_PRODUCER) / threads, late = 0, early = 0;
    for (const TlOp *op = o->r.body->first; op; op = op->next) {
        if (op->opcode != TL_OP_DOT_ASYNC)
            continue;
        int64_t words = tl_rotate_is_late(&o->r, op) ? tl_words_alive(o->r.fn, o->r.arena, op) : 0;
        late = words > late ? words : late;
        early += tl_rotate_is_late(&o->r, op) ? 0 : tl_words_of(op->out[0]);
    }
    all = all < px->machine->registers ? all : px->machine->registers;
    return late + early + TL_OTHER_REGISTERS <= all;
}

/* ---- 3. the new loop ---- */

/* A part, from `from` on, up to the first await or to its end. */
static TlOp *copy_part(const Overlap *o, TlBuilder *b, TlOp *from, bool late, bool all, TlMap *map)
{
    TlOp *op = from;
    for (; op != o->r.body->last; op = op->next) {
        if (tl_rotate_is_late(&o->r, op) != late)
            continue;
        if (!all && op->opcode == TL_OP_AWAIT)
            return op;
        tl_op_clone(b, op, map);
    }
    return op;
}

/* Both begin what they begin; then the early part awaits its products, and goes on. */
static void fill(void *user, TlRotated *to)
{
    const Overlap *o = user;
    TlOp *first = o->r.body->first, *last = o->r.body->last,
         *awaited = copy_part(o, &to->b, first, false, false, &to->early),
         *behind = copy_part(o, &to->b, first, true, false, &to->now);
    if (awaited != last) {
        TlOp *await = tl_op_clone(&to->b, awaited, &to->early);
        tl_attr_set(o->r.fn, await, (TlAttr){.id = TL_ATTR_PENDING, .u.i = o->begun});
        copy_part(o, &to->b, awaited->next, false, true, &to->early);
    }
    copy_part(o, &to->b, behind, true, true, &to->now);
}

/* if there is an iteration { all of it } else { what comes in } */
static TlOp *make_branch(Overlap *o, TlBuilder *b)
{
    uint32_t n = o->r.loop->nout;
    const TlType **types = TL_NEW_ARRAY(o->r.arena, const TlType *, n + 1);
    TlValue **values = TL_NEW_ARRAY(o->r.arena, TlValue *, n + 1),
            *any = tl_binary(b, TL_OP_LT, tl_in(o->r.loop, 0), tl_in(o->r.loop, 1));
    for (uint32_t i = 0; i < n; i++)
        types[i] = o->r.loop->out[i]->type;
    TlOp *branch = tl_op_new(b, TL_OP_IF, 1, &any, n, types, 2, 0, NULL);
    for (int r = 0; r < 2; r++) {
        TlBuilder arm = {.fn = o->r.fn, .block = branch->regions[r], .loc = o->r.loop->loc};
        arm.block->warps = o->r.loop->block->warps;
        for (uint32_t i = 0; i < n; i++)
            values[i] = tl_in(o->r.loop, i + 3);
        if (r == 0)
            tl_rotate_make(&o->r, &arm, fill, o, values);
        tl_yield(&arm, TL_OP_YIELD, n, values);
    }
    return branch;
}

static void overlap(Overlap *o)
{
    TlWideInt trips;
    TlBuilder b = tl_builder_before(o->r.loop);
    TlValue **out = TL_NEW_ARRAY(o->r.arena, TlValue *, o->r.loop->nout + 1);
    if (tl_const_trips(o->r.loop, &trips) && trips > 0)
        tl_rotate_make(&o->r, &b, fill, o, out);
    else {
        TlOp *branch = make_branch(o, &b);
        for (uint32_t i = 0; i < o->r.loop->nout; i++)
            out[i] = branch->out[i];
    }
    for (uint32_t i = 0; i < o->r.loop->nout; i++)
        tl_replace_uses(o->r.loop->out[i], out[i]);
    tl_op_erase(o->r.loop);
}

/* ---- the pass ---- */

TlPassResult tl_pass_overlap_products(TlFn *fn, TlPassCtx *px)
{
    TL_VEC(TlOp *) loops = {0};
    bool changed = false;
    if (!px->machine->warpgroups || !tl_fn_is_laid_out(fn))
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_loop_for_it(op))
            tl_vec_push(px->scratch, &loops, op);
    for (uint32_t i = 0; i < loops.len; i++) {
        Overlap o = {.r = tl_rotate_begin(fn, px->scratch, loops.data[i])};
        if (!find_late(&o) || !has_both(&o) || !fits_registers(&o, px))
            continue;
        tl_rotate_find_taken(&o.r);
        overlap(&o);
        changed = true;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
