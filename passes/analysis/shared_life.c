/* Where shared memory holds something (shared_life.h): an interval of positions in program order.
 *
 * Scratch (tl_op_shared_bytes) lives while its op runs, its regions included. What an `alloc`
 * makes lives, with all its slots, from its first use to its last; a use in a loop that does not
 * hold the alloc counts as one in the whole loop. Copies may still write it after its last use, so
 * it lives at least to the next `wait` for all of them or, for bulk copies, to where the mbarriers
 * that count them end, if that is before the kernel's end. */
#include "passes/analysis/shared_life.h"

#include "ir/plan/shared_plan.h"
#include "ir/plan/staged.h"

/* ---- order ---- */

static TlSpan *span_of(const TlPositions *order, const TlOp *op)
{
    uint64_t at = 0;
    bool known = tl_map_get(&order->numbers, (uint64_t)(uintptr_t)op, &at);
    TL_ASSERT(known, "an op without a place");
    return &order->spans.data[at];
}

void tl_positions_init(TlPositions *order, const TlFn *fn, TlArena *arena)
{
    TL_ASSERT(fn && arena, "nothing to number");
    *order = (TlPositions){0};
    tl_map_init(&order->numbers, arena);
    uint32_t n = 0;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        tl_map_put(&order->numbers, (uint64_t)(uintptr_t)op, n);
        tl_vec_push(arena, &order->spans, (TlSpan){n, n});
        n++;
        for (TlOp *outer = op->block->parent; !op->next && outer; outer = outer->block->parent)
            span_of(order, outer)->last = n - 1; /* the last of a region is the last so far */
    }
}

TlSpan tl_position_of(const TlPositions *order, const TlOp *op)
{
    return *span_of(order, op);
}

TlSpan tl_position_of_use(const TlPositions *order, const TlOp *user, const TlBlock *home)
{
    TlSpan s = *span_of(order, user);
    for (const TlBlock *b = user->block; b != home; b = b->parent->block)
        if (tl_is_loop(b->parent))
            s = *span_of(order, b->parent);
    return s;
}

/* ---- lives ---- */

typedef struct Lives {
    const TlPositions *order;
    const TlFn *fn;
    TlArena *arena;
    TlSharedLives all;
} Lives;

static void add_life(Lives *l, TlOp *op, uint64_t bytes, uint32_t alignment, TlSpan life)
{
    TL_ASSERT(bytes > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0,
              "%s of %llu bytes at multiples of %u",
              tl_op_info(op->opcode)->text, (unsigned long long)bytes, alignment);
    tl_vec_push(l->arena, &l->all, (TlSharedLife){op, bytes, alignment, life.first, life.last});
}

/* Is `outer` the block, or one around it? */
static bool is_around(const TlBlock *outer, const TlBlock *block)
{
    while (block && block != outer)
        block = block->parent ? block->parent->block : NULL;
    return block != NULL;
}

/* In loops between the blocks, the effects of one iteration may reach the next. */
static void live_in_loops(const Lives *l, const TlBlock *inner, const TlBlock *outer, TlSpan *life)
{
    for (; inner != outer; inner = inner->parent->block)
        if (tl_is_loop(inner->parent))
            life->first = span_of(l->order, inner->parent)->first;
}

static void live_until(TlSpan *life, uint32_t position)
{
    life->last = position > life->last ? position : life->last;
}

static bool waits_for_all(const TlOp *op, TlOpcode wait)
{
    return op->opcode == wait && tl_attr_int(op, TL_ATTR_PENDING, 0) == 0;
}

/* What waits for what the op begins, behind it in its block; NULL. */
static const TlOp *wait_behind(const TlOp *op, TlOpcode wait)
{
    while (op && !waits_for_all(op, wait))
        op = op->next;
    return op;
}

/* Copies have arrived at the first wait for all of them behind the last copy that cannot be passed
 * by; where there is none, in another iteration perhaps, or never. So it is with products and
 * awaits. */
static void live_until_arrival(const Lives *l, const TlBlock *home, TlOpcode wait, uint32_t copied,
                               TlSpan *life)
{
    for (const TlOp *op = l->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!waits_for_all(op, wait) || span_of(l->order, op)->first <= copied ||
            !is_around(op->block, home))
            continue;
        live_in_loops(l, home, op->block, life);
        live_until(life, span_of(l->order, op)->first);
        return;
    }
    live_in_loops(l, home, l->fn->body, life);
    live_until(life, l->order->spans.len);
}

/* Where the barriers that count a bulk copy end. */
static uint32_t end_of_bars(const Lives *l, const TlBlock *home, const TlOp *copy)
{
    for (const TlUse *u = tl_op_place(copy).bar->uses; u; u = u->next)
        if (u->user->opcode == TL_OP_MBAR_END)
            return tl_position_of_use(l->order, u->user, home).last;
    return l->order->spans.len;
}

/* What the user begins with the buffer arrives in the life; *later: at a wait behind that position.
 */
static void live_until_wait(const Lives *l, const TlBlock *home, const TlOp *user, TlOpcode wait,
                            TlSpan *life, uint32_t *later)
{
    const TlOp *behind = wait_behind(user, wait);
    uint32_t at = tl_position_of_use(l->order, behind ? behind : user, home).last;
    if (behind)
        live_until(life, at);
    else if (at > *later)
        *later = at;
}

static void find_life(Lives *l, TlOp *alloc)
{
    TL_ASSERT(tl_makes_buffer(alloc) && alloc->nout == 1,
              "%s makes no buffer", tl_op_info(alloc->opcode)->text);
    const TlValue *buf = alloc->out[0];
    TlSpan life = {UINT32_MAX, 0};
    if (alloc->opcode != TL_OP_ALLOC) /* it is made here */
        life = *span_of(l->order, alloc);
    uint32_t copied = 0, multiplied = 0;
    for (const TlUse *u = buf->uses; u; u = u->next) {
        const TlOp *user = u->user;
        TlSpan s = tl_position_of_use(l->order, user, alloc->block);
        life.first = s.first < life.first ? s.first : life.first;
        live_until(&life, s.last);
        bool copy = user->opcode == TL_OP_COPY && alloc->opcode == TL_OP_ALLOC;
        if (copy && tl_is_bulk_copy(user))
            live_until(&life, end_of_bars(l, alloc->block, user));
        else if (copy)
            live_until_wait(l, alloc->block, user, TL_OP_WAIT, &life, &copied);
        else if (user->opcode == TL_OP_DOT_ASYNC)
            live_until_wait(l, alloc->block, user, TL_OP_AWAIT, &life, &multiplied);
    }
    if (copied)
        live_until_arrival(l, alloc->block, TL_OP_WAIT, copied, &life);
    if (multiplied)
        live_until_arrival(l, alloc->block, TL_OP_AWAIT, multiplied, &life);
    if (buf->uses)
        add_life(l, alloc, tl_buf_bytes(buf->type), tl_buf_alignment(buf->type), life);
}

TlSharedLives tl_shared_lives(const TlPositions *order, const TlFn *fn, TlArena *arena)
{
    Lives l = {order, fn, arena, {0}};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        uint32_t bytes = tl_op_shared_bytes(arena, op);
        if (bytes)
            add_life(&l, op, bytes, TL_SHARED_ALIGNMENT, *span_of(order, op));
        else if (tl_makes_buffer(op))
            find_life(&l, op);
    }
    return l.all;
}

bool tl_lives_together(const TlSharedLife *a, const TlSharedLife *b)
{
    return a->first <= b->last && b->first <= a->last;
}
