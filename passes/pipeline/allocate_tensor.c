/* allocate-tensor: where in tensor memory the sums of each product are, and what products take from
 * there as A, and how much of it the kernel has.
 *
 *     %m = tensor {columns = 512}              %m = tensor {columns = 256}
 *     %t = ready %z : tensor<f32, 128, 256>    %t = ready %z {column = 0} : tensor<...>
 *     ... await %t                        =>   ... await %t
 *     %u = ready %z : tensor<f32, 128, 128>    %u = ready %z {column = 0} : tensor<...>
 *     ... await %u                             ... await %u
 *
 *  1. A READY's sums live from there to the last op that has them, through products and loops. What
 *     a product takes as A, it may read until its sums are awaited: it lives as long as these, in a
 *     loop that carries them throughout. What a loop carries has one place: where a READY in the
 *     loop gives what the next iteration has of the one before the loop, they live as one.
 *  2. Sums that are alive at the same position share no column: first fit, in program order.
 *     accelerate-dot has seen to it that all fit side by side. Threads have read what was there
 *     when a READY is over, so that the next product may begin.
 *  3. Scales that products bring there (tensor_scales.h) have columns behind all sums, the same for
 *     all products: one thread begins them, in order.
 *  4. The kernel asks for a power of two of columns, from 32 on: what other blocks of the
 *     multiprocessor do not get. */
#include "ir/plan/tensor_scales.h"
#include "passes/analysis/shared_life.h"
#include "passes/pass.h"

typedef struct Sums {
    TlOp *ready;
    uint32_t first, last; /* positions */
    int32_t column, columns;
    uint32_t with; /* which of them it is one with, or itself */
} Sums;

typedef struct Tensor {
    TlFn *fn;
    TlArena *arena;
    TlPositions order;
    TL_VEC(Sums) all;
} Tensor;

/* ---- 1. lives ---- */

/* Does the loop around give it to its next iteration? */
static bool is_for_next(const TlOp *op)
{
    return op->opcode == TL_OP_YIELD && op->block->parent->opcode == TL_OP_FOR;
}

/* What the op makes of operand i, which is in tensor memory: the same, later; of an A, the sums
 * that it is for. NULL: it ends here. */
static TlValue *next_of(const TlOp *op, uint32_t i)
{
    if (op->opcode == TL_OP_DOT_ASYNC || op->opcode == TL_OP_RESCALE)
        return op->out[0];
    if (op->opcode == TL_OP_FOR)
        return op->out[i - 3];
    if (is_for_next(op))
        return op->block->parent->out[i];
    return NULL;
}

static void live_at(Sums *s, TlSpan at)
{
    s->first = at.first < s->first ? at.first : s->first;
    s->last = at.last > s->last ? at.last : s->last;
}

/* What the READY is one with, if its sums, and not those that it is an A for, are carried by the
 * loop that yields them. */
static void join(Tensor *t, uint32_t which, const TlOp *yield, uint32_t i)
{
    const TlOp *root = tl_tensor_root(tl_in(yield->block->parent, i + 3));
    Sums *s = &t->all.data[which];
    uint32_t k = 0;
    while (t->all.data[k].ready != root)
        k++;
    k = t->all.data[k].with;
    if (k == which)
        return;
    live_at(&t->all.data[k], (TlSpan){s->first, s->last});
    s->with = k;
}

static void live_on(Tensor *t, uint32_t which)
{
    const TlValue *v = t->all.data[which].ready->out[0];
    bool own = !tl_tensor_is_a(v);
    while (v) {
        const TlValue *next = NULL;
        for (const TlUse *u = v->uses; u; u = u->next) {
            uint32_t i = (uint32_t)(u - u->user->in);
            bool ends = is_for_next(u->user); /* there again in all of the loop */
            const TlOp *at = ends ? u->user->block->parent : u->user;
            live_at(&t->all.data[which], tl_position_of(&t->order, at));
            if (ends && own)
                join(t, which, u->user, i);
            TlValue *then = next_of(u->user, i);
            TL_ASSERT(!then || !next, "sums of '%s' go two ways", t->fn->name);
            next = then ? then : next;
        }
        v = next;
    }
    const Sums *s = &t->all.data[which];
    live_at(&t->all.data[s->with], (TlSpan){s->first, s->last});
}

static void find(Tensor *t)
{
    for (TlOp *op = t->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_READY || op->out[0]->type->kind != TL_TENSOR)
            continue;
        Sums s = {.ready = op, .columns = tl_tensor_columns(op->out[0]->type), .with = t->all.len};
        s.first = s.last = tl_position_of(&t->order, op).first;
        tl_vec_push(t->arena, &t->all, s);
        live_on(t, t->all.len - 1);
    }
}

/* ---- 2. places ---- */

static bool is_in_the_way(const Sums *a, const Sums *b)
{
    return a->first <= b->last && b->first <= a->last && a->column < b->column + b->columns &&
           b->column < a->column + a->columns;
}

static void place(Tensor *t, uint32_t which)
{
    Sums *s = &t->all.data[which];
    for (uint32_t i = 0; i < which; i++)
        if (t->all.data[i].with == i && is_in_the_way(s, &t->all.data[i])) {
            s->column = t->all.data[i].column + t->all.data[i].columns;
            i = UINT32_MAX; /* from the first one again */
        }
    TL_ASSERT(s->column + s->columns <= TL_TENSOR_COLUMNS, "'%s' has sums in %d columns",
              t->fn->name, (int)(s->column + s->columns));
}

/* ---- 3. scales ---- */

/* Behind `column`; returns the last one's end. */
static int32_t place_scales(const Tensor *t, int32_t column)
{
    int32_t end = column;
    for (TlOp *op = t->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlAsyncDot d = {.acc = NULL};
        if (op->opcode == TL_OP_DOT_ASYNC)
            d = tl_async_dot(op);
        int32_t columns = tl_tensor_dot_scales(&d);
        if (!columns)
            continue;
        tl_attr_set(t->fn, op, (TlAttr){.id = TL_ATTR_COLUMN, .u.i = column});
        end = column + columns > end ? column + columns : end;
    }
    TL_ASSERT(end <= TL_TENSOR_COLUMNS, "'%s' has scales up to column %d", t->fn->name, (int)end);
    return end;
}

/* ---- the pass ---- */

static TlOp *tensor_of(const TlFn *fn)
{
    TlOp *op = fn->body->first;
    while (op && op->opcode != TL_OP_TENSOR)
        op = op->next;
    return op;
}

TlPassResult tl_pass_allocate_tensor(TlFn *fn, TlPassCtx *px)
{
    Tensor t = {.fn = fn, .arena = px->scratch};
    TlOp *tensor = tensor_of(fn);
    int32_t columns = TL_TENSOR_LEAST, end = 0;
    if (!tensor)
        return TL_SAME;
    tl_positions_init(&t.order, fn, px->scratch);
    find(&t);
    for (uint32_t i = 0; i < t.all.len; i++) {
        Sums *s = &t.all.data[i];
        if (s->with == i)
            place(&t, i);
        else
            s->column = t.all.data[s->with].column;
        tl_attr_set(fn, s->ready, (TlAttr){.id = TL_ATTR_COLUMN, .u.i = s->column});
        end = end < s->column + s->columns ? s->column + s->columns : end;
    }
    end = place_scales(&t, end);
    while (columns < end)
        columns *= 2;
    tl_attr_set(fn, tensor, (TlAttr){.id = TL_ATTR_COLUMNS, .u.i = columns});
    return TL_CHANGED;
}
