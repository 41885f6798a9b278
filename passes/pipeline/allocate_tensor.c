/* allocate-tensor: where in tensor memory the sums of each product are, and how much of it the
 * kernel has.
 *
 *     %m = tensor {columns = 512}              %m = tensor {columns = 256}
 *     %t = ready %z : tensor<f32, 128, 256>    %t = ready %z {column = 0} : tensor<...>
 *     ... await %t                        =>   ... await %t
 *     %u = ready %z : tensor<f32, 128, 128>    %u = ready %z {column = 0} : tensor<...>
 *     ... await %u                             ... await %u
 *
 *  1. A READY's sums live from there to the last op that has them, through products and loops.
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
} Sums;

typedef struct Tensor {
    TlFn *fn;
    TlArena *arena;
    TlPositions order;
    TL_VEC(Sums) all;
} Tensor;

/* ---- 1. lives ---- */

/* What the op makes of operand i, which is in tensor memory: the same, later. NULL: it ends here.
 */
static TlValue *next_of(const TlOp *op, uint32_t i)
{
    if (op->opcode == TL_OP_DOT_ASYNC || op->opcode == TL_OP_RESCALE)
        return op->out[0];
    if (op->opcode == TL_OP_FOR)
        return op->out[i - 3];
    return NULL;
}

static void live_on(const Tensor *t, Sums *s, const TlValue *v)
{
    for (; v;) {
        const TlValue *next = NULL;
        for (const TlUse *u = v->uses; u; u = u->next) {
            uint32_t at = tl_position_of(&t->order, u->user).last;
            s->last = at > s->last ? at : s->last;
            TlValue *then = next_of(u->user, (uint32_t)(u - u->user->in));
            TL_ASSERT(!then || !next, "sums of '%s' go two ways", t->fn->name);
            next = then ? then : next;
        }
        v = next;
    }
}

static void find(Tensor *t)
{
    for (TlOp *op = t->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_READY || op->out[0]->type->kind != TL_TENSOR)
            continue;
        Sums s = {.ready = op, .columns = tl_tensor_columns(op->out[0]->type)};
        s.first = s.last = tl_position_of(&t->order, op).first;
        live_on(t, &s, op->out[0]);
        tl_vec_push(t->arena, &t->all, s);
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
        if (is_in_the_way(s, &t->all.data[i])) {
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
        place(&t, i);
        tl_attr_set(fn, s->ready, (TlAttr){.id = TL_ATTR_COLUMN, .u.i = s->column});
        end = end < s->column + s->columns ? s->column + s->columns : end;
    }
    end = place_scales(&t, end);
    while (columns < end)
        columns *= 2;
    tl_attr_set(fn, tensor, (TlAttr){.id = TL_ATTR_COLUMNS, .u.i = columns});
    return TL_CHANGED;
}
