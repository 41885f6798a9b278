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
#include "passes/analysis/alive.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"

enum { OF_PRODUCER = 128 * 24 }; /* registers of the warps that begin copies (setmaxnreg) */

typedef struct Overlap {
    TlFn *fn;
    TlCtx *ctx;
    TlArena *arena;
    TlOp *loop;
    TlBlock *body;
    TlMap late;              /* ops of the late part */
    TL_VEC(TlValue *) taken; /* by the late part, from the early one or the iteration's start */
    int64_t begun;           /* late products */
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

static bool counts_up(const TlOp *loop)
{
    TlWideInt step;
    return tl_is_signed(tl_in(loop, 2)->type->dtype) &&
           tl_const_int_value(tl_in(loop, 2), &step) && step > 0;
}

static bool is_loop_for_it(const TlOp *loop)
{
    if (loop->opcode != TL_OP_FOR || tl_op_role(loop) != 1 || !counts_up(loop))
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

static bool is_late(const Overlap *o, const TlOp *op)
{
    return is_marked(&o->late, op);
}

static bool is_in_body(const Overlap *o, const TlValue *v)
{
    return v->def ? v->def->block == o->body : v->block == o->body;
}

/* What takes the value in the same iteration. */
static void mark_dependents(const Overlap *o, TlMap *marks, const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *user = tl_op_in_block(u->user, o->body);
        if (user && user != o->body->last)
            tl_map_put(marks, (uint64_t)(uintptr_t)user, 1);
    }
}

static void spread(const Overlap *o, TlMap *marks)
{
    for (const TlOp *op = o->body->first; op; op = op->next)
        if (is_marked(marks, op))
            for (uint32_t i = 0; i < op->nout; i++)
                mark_dependents(o, marks, op->out[i]);
}

/* Are the sums of a product carried: from the argument through a product to what is yielded? */
static bool carries_sums(const Overlap *o, uint32_t i)
{
    TlMap from = {.arena = o->arena}, sums = {.arena = o->arena};
    mark_dependents(o, &from, o->body->args[i + 1]);
    spread(o, &from);
    for (const TlOp *op = o->body->first; op; op = op->next)
        if (op->opcode == TL_OP_DOT_ASYNC && is_marked(&from, tl_in(op, op->nin - 1)->def))
            mark_dependents(o, &sums, op->out[0]);
    spread(o, &sums);
    return is_marked(&sums, tl_in(o->body->last, i)->def);
}

/* Made from fewer registers: the loop carries these. */
static bool is_shape_for_late(const Overlap *o, const TlOp *op)
{
    if (op->opcode != TL_OP_EXPAND && op->opcode != TL_OP_BROADCAST)
        return false;
    for (const TlUse *u = op->out[0]->uses; u; u = u->next)
        if (!is_late(o, tl_op_in_block(u->user, o->body)))
            return false;
    return true;
}

/* The late part, and whether each of its values goes to the late part of the next iteration only.
 */
static bool find_late(Overlap *o)
{
    tl_map_init(&o->late, o->arena);
    for (uint32_t i = 0; i < o->loop->nout; i++)
        if (carries_sums(o, i))
            mark_dependents(o, &o->late, o->body->args[i + 1]);
    for (TlOp *op = o->body->first; op; op = op->next)
        if (op->opcode == TL_OP_ARRIVE)
            tl_map_put(&o->late, (uint64_t)(uintptr_t)op, 1);
    spread(o, &o->late);
    for (TlOp *op = o->body->last; op; op = op->prev)
        if (is_shape_for_late(o, op))
            tl_map_put(&o->late, (uint64_t)(uintptr_t)op, 1);
    for (uint32_t i = 0; i < o->loop->nout; i++) {
        const TlValue *next = tl_in(o->body->last, i);
        if (next->def && is_late(o, next->def) && !carries_sums(o, i))
            return false;
    }
    return true;
}

static bool has_both(Overlap *o)
{
    int64_t early = 0;
    for (const TlOp *op = o->body->first; op; op = op->next) {
        bool product = op->opcode == TL_OP_DOT_ASYNC;
        o->begun += product && is_late(o, op);
        early += product && !is_late(o, op);
    }
    return early > 0 && o->begun > 0;
}

static bool is_taken(const Overlap *o, const TlValue *v)
{
    for (uint32_t i = 0; i < o->taken.len; i++)
        if (o->taken.data[i] == v)
            return true;
    return false;
}

/* Is it of the late part: what one of its ops gives, or sums that come in? */
static bool is_its_own(const Overlap *o, const TlValue *v)
{
    return v->def ? is_late(o, v->def) : v->index > 0 && carries_sums(o, v->index - 1);
}

static void find_taken(Overlap *o)
{
    for (TlOp *op = o->body->first; op; op = tl_walk_next(op, o->loop))
        for (uint32_t i = 0; is_late(o, tl_op_in_block(op, o->body)) && i < op->nin; i++) {
            TlValue *v = tl_in(op, i);
            if (is_in_body(o, v) && !is_its_own(o, v) && !is_taken(o, v))
                tl_vec_push(o->arena, &o->taken, v);
        }
}

/* ---- 4. registers ---- */

static bool fits_registers(const Overlap *o, const TlPassCtx *px)
{
    int64_t threads = (int64_t)o->fn->body->warps * px->machine->lanes,
            all = (TL_WARPGROUP_REGISTERS - OF_PRODUCER) / threads, late = 0, early = 0;
    for (const TlOp *op = o->body->first; op; op = op->next) {
        if (op->opcode != TL_OP_DOT_ASYNC)
            continue;
        int64_t words = is_late(o, op) ? tl_words_alive(o->fn, o->arena, op) : 0;
        late = words > late ? words : late;
        early += is_late(o, op) ? 0 : tl_words_of(op->out[0]);
    }
    all = all < px->machine->registers ? all : px->machine->registers;
    return late + early + TL_OTHER_REGISTERS <= all;
}

/* ---- 3. the new loop ---- */

/* A part, from `from` on, up to the first await or to its end. */
static TlOp *copy_part(const Overlap *o, TlBuilder *b, TlOp *from, bool late, bool all, TlMap *map)
{
    TlOp *op = from;
    for (; op != o->body->last; op = op->next) {
        if (is_late(o, op) != late)
            continue;
        if (!all && op->opcode == TL_OP_AWAIT)
            return op;
        tl_op_clone(b, op, map);
    }
    return op;
}

/* The early part of iteration lo: `map` knows its values then. */
static void begin_first(const Overlap *o, TlBuilder *b, TlMap *map)
{
    tl_map_put_ptr(map, o->body->args[0], tl_in(o->loop, 0));
    for (uint32_t i = 0; i < o->loop->nout; i++)
        tl_map_put_ptr(map, o->body->args[i + 1], tl_in(o->loop, i + 3));
    copy_part(o, b, o->body->first, false, true, map);
}

/* lo + step, no further than the type goes: then there is no second iteration. */
static TlValue *second(const Overlap *o, TlBuilder *b)
{
    TlValue *lo = tl_in(o->loop, 0), *step = tl_in(o->loop, 2);
    TlWideInt by, most = ((TlWideInt)1 << (tl_dtype_bits(lo->type->dtype) - 1)) - 1, known;
    tl_const_int_value(step, &by);
    if (tl_const_int_value(lo, &known))
        return tl_const_int(b, lo->type, (int64_t)(known + by < most ? known + by : most));
    lo = tl_binary(b, TL_OP_MIN, lo, tl_const_int(b, lo->type, (int64_t)(most - by)));
    return tl_binary(b, TL_OP_ADD, lo, step);
}

static TlOp *make_loop(const Overlap *o, TlBuilder *b, TlMap *first)
{
    uint32_t n = o->loop->nout, all = n + o->taken.len;
    TlValue **in = TL_NEW_ARRAY(o->arena, TlValue *, all + 3);
    const TlType **types = TL_NEW_ARRAY(o->arena, const TlType *, all + 1);
    in[0] = second(o, b);
    in[1] = tl_in(o->loop, 1);
    in[2] = tl_in(o->loop, 2);
    for (uint32_t i = 0; i < all; i++) {
        TlValue *v = i >= n               ? o->taken.data[i - n]
                     : carries_sums(o, i) ? o->body->args[i + 1]
                                          : tl_in(o->body->last, i);
        in[i + 3] = tl_mapped(first, v);
        types[i] = in[i + 3]->type;
    }
    TlOp *made = tl_op_like(b, o->loop, all + 3, in, all, types);
    TlBlock *body = made->regions[0];
    body->warps = o->body->warps;
    for (uint32_t i = 0; i <= all; i++) {
        const TlValue *old = i <= n ? o->body->args[i] : o->taken.data[i - n - 1];
        tl_block_arg(body, old->type, old->name);
    }
    return made;
}

static void fill_loop(const Overlap *o, TlOp *made)
{
    uint32_t n = o->loop->nout;
    TlBlock *body = made->regions[0];
    TlBuilder b = {.fn = o->fn, .block = body, .loc = o->loop->loc};
    TlMap early = {.arena = o->arena}, late = {.arena = o->arena};
    tl_map_put_ptr(&early, o->body->args[0], body->args[0]);
    for (uint32_t i = 0; i < n; i++)
        tl_map_put_ptr(carries_sums(o, i) ? &late : &early, o->body->args[i + 1],
                       body->args[i + 1]);
    for (uint32_t i = 0; i < o->taken.len; i++)
        tl_map_put_ptr(&late, o->taken.data[i], body->args[n + 1 + i]);
    TlOp *awaited = copy_part(o, &b, o->body->first, false, false, &early),
         *behind = copy_part(o, &b, o->body->first, true, false, &late);
    if (awaited != o->body->last) {
        TlOp *await = tl_op_clone(&b, awaited, &early);
        tl_attr_set(o->fn, await, (TlAttr){.id = TL_ATTR_PENDING, .u.i = o->begun});
        copy_part(o, &b, awaited->next, false, true, &early);
    }
    copy_part(o, &b, behind, true, true, &late);
    TlValue **next = TL_NEW_ARRAY(o->arena, TlValue *, made->nout);
    for (uint32_t i = 0; i < made->nout; i++)
        next[i] = i >= n ? tl_mapped(&early, o->taken.data[i - n])
                         : tl_mapped(carries_sums(o, i) ? &late : &early, tl_in(o->body->last, i));
    tl_yield(&b, TL_OP_YIELD, made->nout, next);
}

/* The late part of the last iteration; `out`: what the whole gives. */
static void end_last(const Overlap *o, TlBuilder *b, const TlOp *made, TlValue **out)
{
    uint32_t n = o->loop->nout;
    TlMap map = {.arena = o->arena};
    for (uint32_t i = 0; i < o->taken.len; i++)
        tl_map_put_ptr(&map, o->taken.data[i], made->out[n + i]);
    for (uint32_t i = 0; i < n; i++)
        if (carries_sums(o, i))
            tl_map_put_ptr(&map, o->body->args[i + 1], made->out[i]);
    copy_part(o, b, o->body->first, true, true, &map);
    for (uint32_t i = 0; i < n; i++)
        out[i] = carries_sums(o, i) ? tl_mapped(&map, tl_in(o->body->last, i)) : made->out[i];
}

static void make_all(const Overlap *o, TlBuilder *b, TlValue **out)
{
    TlMap first = {.arena = o->arena};
    begin_first(o, b, &first);
    TlOp *made = make_loop(o, b, &first);
    fill_loop(o, made);
    end_last(o, b, made, out);
}

/* if there is an iteration { all of it } else { what comes in } */
static TlOp *make_branch(const Overlap *o, TlBuilder *b)
{
    uint32_t n = o->loop->nout;
    const TlType **types = TL_NEW_ARRAY(o->arena, const TlType *, n + 1);
    TlValue **values = TL_NEW_ARRAY(o->arena, TlValue *, n + 1),
            *any = tl_binary(b, TL_OP_LT, tl_in(o->loop, 0), tl_in(o->loop, 1));
    for (uint32_t i = 0; i < n; i++)
        types[i] = o->loop->out[i]->type;
    TlOp *branch = tl_op_new(b, TL_OP_IF, 1, &any, n, types, 2, 0, NULL);
    for (int r = 0; r < 2; r++) {
        TlBuilder arm = {.fn = o->fn, .block = branch->regions[r], .loc = o->loop->loc};
        arm.block->warps = o->loop->block->warps;
        for (uint32_t i = 0; i < n; i++)
            values[i] = tl_in(o->loop, i + 3);
        if (r == 0)
            make_all(o, &arm, values);
        tl_yield(&arm, TL_OP_YIELD, n, values);
    }
    return branch;
}

static void overlap(Overlap *o)
{
    TlWideInt trips;
    TlBuilder b = tl_builder_before(o->loop);
    TlValue **out = TL_NEW_ARRAY(o->arena, TlValue *, o->loop->nout + 1);
    if (tl_const_trips(o->loop, &trips) && trips > 0)
        make_all(o, &b, out);
    else {
        TlOp *branch = make_branch(o, &b);
        for (uint32_t i = 0; i < o->loop->nout; i++)
            out[i] = branch->out[i];
    }
    for (uint32_t i = 0; i < o->loop->nout; i++)
        tl_replace_uses(o->loop->out[i], out[i]);
    tl_op_erase(o->loop);
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
        Overlap o = {.fn = fn,
                     .ctx = px->ctx,
                     .arena = px->scratch,
                     .loop = loops.data[i],
                     .body = loops.data[i]->regions[0]};
        if (!find_late(&o) || !has_both(&o) || !fits_registers(&o, px))
            continue;
        find_taken(&o);
        overlap(&o);
        changed = true;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
