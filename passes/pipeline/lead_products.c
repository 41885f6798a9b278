/* lead-products: the first products of an iteration into tensor memory are begun an iteration
 * ahead, as their sums need no registers before they are read.
 *
 *     for %i (%x, %acc, %slot) {               mbar_wait %full, %first
 *       mbar_wait %full, %slot                 %s = dot_async %q, %k, %first, ready 0
 *       %s = dot_async %q, %k, %slot, ready 0  for %j = lo + step (%x, %acc, %slot, %now, %s) {
 *       %t = await %s                            %t = await %s {pending = 1}
 *       %p, %f, %y = softmax %t, %x              mbar_wait %full, %slot
 *       %a = ready %p                     =>     %n = dot_async %q, %k, %slot, ready 0
 *       %r = rescale %acc, %f                    %p, %f, %y = softmax %t, %x
 *       %v = dot_async %a, %w, %slot, %r         await {pending = 1}
 *       arrive %free, %slot {products}           %a = ready %p
 *       yield %y, %v, %slot + 1                  %r = rescale %acc, %f
 *     }                                          %v = dot_async %a, %w, %now, %r
 *                                                arrive %free, %now {products}
 *                                                yield %y, %v, %slot + 1, %slot, %n
 *                                              }
 *                                              the same for the last, without what is begun ahead
 *
 *  1. Where: loops whose products are all into tensor memory and say themselves that slots are
 *     free: some that begin with sums of their own (leading), of operands that are there when a
 *     barrier says so, and others whose sums the loop carries (late).
 *  2. The early part (rotate_loop.h) is leading products, what they wait for, and what these are
 *     computed from. All else is late: the loop carries the sums on their way, in columns that the
 *     first iteration's have, too (allocate-tensor).
 *  3. It stands behind the await of the sums that were in its columns, so that the matrix unit has
 *     work while threads compute from these. What it waits for must have been copied by then: where
 *     there are only two slots, one of which the late products of the iteration before have just
 *     freed, it stands as late as it may, before the next late products.
 *  4. Late products of the iteration before go on until threads change what these have: then they
 *     are awaited. So they go on while threads compute, too.
 *  5. Where there may be no iteration, all of that is in a branch, and so are the columns of what
 *     the loop carries: it gives the sums as threads read them.
 *
 * The matrix unit so has a late product and the next leading one while threads compute, which is
 * what attention has of it on this hardware with two blocks, or two groups of warps. */
#include "ir/plan/async_dot.h"
#include "ir/remark.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"
#include "passes/pipeline/rotate_loop.h"

enum { LEAST_SLOTS = 2, FEW_SLOTS = 2 };

typedef struct Lead {
    TlRotate r;
    TlMap early;     /* ops of the early part */
    bool *early_arg; /* of each carried value */
    int64_t leading, late;
    int32_t slots;    /* the fewest of a leading product's operand that changes */
    TlOp *last_await; /* of a leading product */
    TlOp *change;     /* the first late op that changes what late products have, */
    TlOp *await;      /* which this awaits */
} Lead;

/* ---- 1. where ---- */

static bool is_in_body(const Lead *l, const TlValue *v)
{
    return v->def ? v->def->block == l->r.body : v->block == l->r.body;
}

/* Of ops of one block. */
static bool is_before(const TlOp *a, const TlOp *b)
{
    while (a && a != b)
        a = a->next;
    return a != NULL;
}

/* An operand that lies in a buffer of its own; slots that change come in turn. */
static bool is_leading_side(Lead *l, const TlAsyncSide *s)
{
    if (!s->buf || !tl_is_invariant(s->buf, l->r.loop))
        return false;
    if (!tl_is_invariant(s->slot, l->r.loop) && s->buf->type->slots < l->slots)
        l->slots = s->buf->type->slots;
    return true;
}

/* It begins with a tile that all iterations have, and is awaited in the iteration. */
static bool is_leading(Lead *l, TlOp *dot)
{
    TlAsyncDot d = tl_async_dot(dot);
    const TlOp *ready = d.acc->def;
    if (!ready || ready->opcode != TL_OP_READY || ready->block != l->r.body ||
        !tl_is_invariant(tl_in(ready, 0), l->r.loop) || tl_use_count(dot->out[0]) != 1)
        return false;
    TlOp *await = dot->out[0]->uses->user;
    if (await->opcode != TL_OP_AWAIT || await->block != l->r.body || await->nin != 1)
        return false;
    if (!l->last_await || is_before(l->last_await, await))
        l->last_await = await;
    return is_leading_side(l, &d.side[TL_MMA_A]) && is_leading_side(l, &d.side[TL_MMA_B]) &&
           !tl_async_has(&d.side[TL_ASYNC_SCALES]);
}

/* Onto sums that the loop carries. */
static bool is_late(const Lead *l, const TlOp *dot)
{
    const TlValue *v = tl_async_dot(dot).acc;
    while (v->def && v->def->block == l->r.body &&
           (v->def->opcode == TL_OP_DOT_ASYNC || v->def->opcode == TL_OP_RESCALE))
        v = v->def->opcode == TL_OP_RESCALE ? tl_in(v->def, 0) : tl_async_dot(v->def).acc;
    return !v->def && v->block == l->r.body && v->index > 0;
}

/* Ops whose place among the others says nothing but what they take and give, or that the early part
 * leaves where they are; of barriers those that products and their copies have. */
static bool is_known(const TlOp *op)
{
    if (op->opcode == TL_OP_MBAR_WAIT)
        return tl_attr_flag(op, TL_ATTR_ONE) || tl_attr_flag(op, TL_ATTR_PRODUCTS);
    if (op->opcode == TL_OP_ARRIVE)
        return tl_attr_flag(op, TL_ATTR_PRODUCTS);
    if (op->opcode == TL_OP_COPY)
        return tl_is_bulk_copy(op);
    return op->opcode == TL_OP_EXPECT || op->opcode == TL_OP_AWAIT ||
           op->opcode == TL_OP_DOT_ASYNC || op->opcode == TL_OP_YIELD ||
           (op->opcode == TL_OP_LOAD && tl_is_constant_memory(tl_in(op, 0))) || tl_op_is_pure(op);
}

static bool is_loop_for_it(const TlOp *loop)
{
    bool arrives = false;
    if (loop->opcode != TL_OP_FOR || !tl_rotate_counts_up(loop))
        return false;
    for (const TlOp *op = loop->regions[0]->first; op; op = op->next) {
        if (!is_known(op))
            return false;
        arrives |= op->opcode == TL_OP_ARRIVE;
    }
    return arrives;
}

/* ---- 2. the parts ---- */

static bool is_early(const Lead *l, const TlOp *op)
{
    return tl_map_get(&l->early, (uint64_t)(uintptr_t)op, NULL);
}

static bool add_early(Lead *l, TlOp *op);

static bool add_value(Lead *l, const TlValue *v)
{
    if (!is_in_body(l, v))
        return true;
    if (v->def)
        return add_early(l, v->def);
    if (!v->index || l->early_arg[v->index - 1])
        return true;
    l->early_arg[v->index - 1] = true;
    return add_value(l, tl_in(l->r.body->last, v->index - 1));
}

/* And what it is computed from. False: that is of the late part. */
static bool add_early(Lead *l, TlOp *op)
{
    if (is_early(l, op))
        return true;
    if (op->nregions || op->opcode == TL_OP_RESCALE || op->opcode == TL_OP_AWAIT ||
        (op->opcode == TL_OP_DOT_ASYNC && is_late(l, op)) || op->opcode == TL_OP_LOAD)
        return false;
    tl_map_put(&l->early, (uint64_t)(uintptr_t)op, 1);
    for (uint32_t i = 0; i < op->nin; i++)
        if (!add_value(l, tl_in(op, i)))
            return false;
    return true;
}

/* Products of both kinds, and no others; what barriers leading ones wait at. */
static bool find_early(Lead *l)
{
    TlOp *last = NULL;
    for (TlOp *op = l->r.body->first; op; op = op->next) {
        if (op->opcode != TL_OP_DOT_ASYNC)
            continue;
        bool late = op->out[0]->type->kind == TL_TENSOR && is_late(l, op);
        if (!late && (op->out[0]->type->kind != TL_TENSOR || !is_leading(l, op)))
            return false;
        l->late += late;
        l->leading += !late;
        last = late ? last : op;
    }
    if (!l->late || !l->leading || l->slots < LEAST_SLOTS)
        return false;
    for (TlOp *op = l->r.body->first; op != last->next; op = op->next) {
        bool waits = op->opcode == TL_OP_MBAR_WAIT && !tl_attr_flag(op, TL_ATTR_ONE),
             leads = op->opcode == TL_OP_DOT_ASYNC && !is_late(l, op);
        if ((waits || leads) && !add_early(l, op))
            return false;
    }
    return true;
}

/* Does it write what late products read or add to? */
static bool changes(const Lead *l, const TlOp *op)
{
    if (op->opcode == TL_OP_RESCALE || (op->opcode == TL_OP_DOT_ASYNC && is_late(l, op)))
        return true;
    return op->opcode == TL_OP_READY && tl_tensor_is_a(op->out[0]);
}

/* Late are all others. The late products of the iteration before are awaited where theirs are
 * changed, which must be behind the leading ones' await. */
static bool find_late(Lead *l)
{
    TlRotate *r = &l->r;
    for (TlOp *op = r->body->first; op != r->body->last && !l->change; op = op->next)
        if (!is_early(l, op) && changes(l, op))
            l->change = op;
    if (!is_before(l->last_await, l->change))
        return false;
    TlBuilder b = tl_builder_before(l->change);
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = 0};
    l->await = tl_op_new(&b, TL_OP_AWAIT, 0, NULL, 0, NULL, 0, 1, &attr);
    for (TlOp *op = r->body->first; op != r->body->last; op = op->next)
        if (!is_early(l, op))
            tl_rotate_set_late(r, op);
    for (uint32_t i = 0; i < r->loop->nout; i++)
        r->late_carried[i] = !l->early_arg[i];
    tl_rotate_find_taken(r);
    return true;
}

/* ---- 3. and 4. the new loop ---- */

/* Threads meet where columns are used again: before the warp that begins products waits for copies.
 */
static void copy_early(const Lead *l, TlRotated *to)
{
    for (int rest = 0; rest < 2; rest++)
        for (TlOp *op = l->r.body->first; op != l->r.body->last; op = op->next)
            if (is_early(l, op) && (op->opcode != TL_OP_READY) == (rest != 0))
                tl_op_clone(&to->b, op, &to->early);
}

static void fill(void *user, TlRotated *to)
{
    const Lead *l = user;
    const TlOp *place = l->slots > FEW_SLOTS ? l->last_await : l->await->prev;
    for (TlOp *op = l->r.body->first; op != l->r.body->last; op = op->next) {
        if (!is_early(l, op)) {
            TlOp *made = tl_op_clone(&to->b, op, &to->now);
            if (op == l->await)
                tl_attr_set(l->r.fn, made, (TlAttr){.id = TL_ATTR_PENDING, .u.i = l->leading});
        }
        if (op == place)
            copy_early(l, to);
    }
}

/* An await of leading products lets the late ones go on that have begun since. */
static void let_late_go_on(const Lead *l)
{
    for (TlOp *op = l->r.body->first; op; op = op->next) {
        if (op->opcode != TL_OP_AWAIT || op == l->await)
            continue;
        int64_t n = tl_attr_int(op, TL_ATTR_PENDING, 0) + l->late;
        tl_attr_set(l->r.fn, op, (TlAttr){.id = TL_ATTR_PENDING, .u.i = n});
    }
}

/* ---- 5. no iteration ---- */

/* The await of sums that the loop gives, if nobody else has them, nor what they begin with. */
static TlOp *await_of(const TlOp *loop, uint32_t i)
{
    const TlValue *out = loop->out[i], *in = tl_in(loop, i + 3);
    if (tl_use_count(out) != 1 || tl_use_count(in) != 1 || !in->def ||
        in->def->opcode != TL_OP_READY)
        return NULL;
    TlOp *await = out->uses->user;
    return await->opcode == TL_OP_AWAIT && await->nin == 1 && await->block == loop->block ? await
                                                                                          : NULL;
}

static bool can_branch(const TlOp *loop)
{
    for (uint32_t i = 0; i < loop->nout; i++)
        if (loop->out[i]->type->kind == TL_TENSOR && !await_of(loop, i))
            return false;
    return true;
}

/* Of a carried value what the branch gives: of sums in tensor memory, the tile. */
static TlValue *given(TlBuilder *arm, TlValue *out, const TlType *type)
{
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = 0};
    return out->type == type ? out
                             : tl_op_new(arm, TL_OP_AWAIT, 1, &out, 1, &type, 0, 1, &attr)->out[0];
}

/* What they begin with is made in the branch. */
static void begin_in(Lead *l, TlBuilder *arm, TlValue **tiles)
{
    TlOp *loop = l->r.loop;
    for (uint32_t i = 0; i < loop->nout; i++) {
        tiles[i] = tl_in(loop, i + 3);
        if (loop->out[i]->type->kind != TL_TENSOR)
            continue;
        TlOp *ready = tiles[i]->def;
        tiles[i] = tl_in(ready, 0);
        TlOp *made = tl_op_new(arm, TL_OP_READY, 1, &tiles[i], 1, &loop->out[i]->type, 0, 0, NULL);
        tl_set_operand(loop, i + 3, made->out[0]);
        tl_op_erase(ready);
    }
}

static void make_branch(Lead *l, TlBuilder *b)
{
    TlOp *loop = l->r.loop;
    uint32_t n = loop->nout;
    const TlType **types = TL_NEW_ARRAY(l->r.arena, const TlType *, n + 1);
    TlValue **values = TL_NEW_ARRAY(l->r.arena, TlValue *, n + 1),
            **tiles = TL_NEW_ARRAY(l->r.arena, TlValue *, n + 1),
            *any = tl_binary(b, TL_OP_LT, tl_in(loop, 0), tl_in(loop, 1));
    for (uint32_t i = 0; i < n; i++)
        types[i] = loop->out[i]->type->kind == TL_TENSOR ? await_of(loop, i)->out[0]->type
                                                         : loop->out[i]->type;
    TlOp *branch = tl_op_new(b, TL_OP_IF, 1, &any, n, types, 2, 0, NULL);
    for (int r = 0; r < 2; r++) {
        TlBuilder arm = {.fn = l->r.fn, .block = branch->regions[r], .loc = loop->loc};
        arm.block->warps = loop->block->warps;
        if (r == 0) {
            begin_in(l, &arm, tiles);
            tl_rotate_make(&l->r, &arm, fill, l, values);
            for (uint32_t i = 0; i < n; i++)
                values[i] = given(&arm, values[i], types[i]);
        }
        tl_yield(&arm, TL_OP_YIELD, n, r == 0 ? values : tiles);
    }
    for (uint32_t i = 0; i < n; i++) {
        TlOp *await = types[i] == loop->out[i]->type ? NULL : loop->out[i]->uses->user;
        tl_replace_uses(await ? await->out[0] : loop->out[i], branch->out[i]);
        if (await)
            tl_op_erase(await);
    }
}

static void lead(Lead *l)
{
    TlWideInt trips;
    TlOp *loop = l->r.loop;
    TlBuilder b = tl_builder_before(loop);
    TlValue **out = TL_NEW_ARRAY(l->r.arena, TlValue *, loop->nout + 1);
    let_late_go_on(l);
    tl_remark(l->r.fn, loop, TL_REMARK_LEADING, l->leading);
    if (tl_const_trips(loop, &trips) && trips > 0) {
        tl_rotate_make(&l->r, &b, fill, l, out);
        for (uint32_t i = 0; i < loop->nout; i++)
            tl_replace_uses(loop->out[i], out[i]);
    } else {
        make_branch(l, &b);
    }
    tl_op_erase(loop);
}

/* ---- the pass ---- */

TlPassResult tl_pass_lead_products(TlFn *fn, TlPassCtx *px)
{
    TL_VEC(TlOp *) loops = {0};
    bool changed = false;
    if (!px->machine->tensor || !tl_fn_is_laid_out(fn))
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_loop_for_it(op))
            tl_vec_push(px->scratch, &loops, op);
    for (uint32_t i = 0; i < loops.len; i++) {
        Lead l = {.r = tl_rotate_begin(fn, px->scratch, loops.data[i]), .slots = TL_MAX_BUF_SLOTS};
        TlWideInt trips;
        l.early_arg = TL_NEW_ARRAY(px->scratch, bool, loops.data[i]->nout + 1);
        for (uint32_t k = 0; k < loops.data[i]->nout; k++)
            l.early_arg[k] = false;
        tl_map_init(&l.early, px->scratch);
        bool runs = tl_const_trips(loops.data[i], &trips) && trips > 0;
        if ((!runs && !can_branch(loops.data[i])) || !find_early(&l) || !find_late(&l))
            continue;
        lead(&l);
        changed = true;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
