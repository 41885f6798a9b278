/* Bulk copies of a pipelined loop: their mbarriers, the waits and arrivals on them, and which
 * slots and parities continue when an outer loop runs the loop again. */
#include "ir/plan/async_dot.h"
#include "ir/plan/bulk.h"
#include "passes/analysis/cluster.h"
#include "passes/pipeline/pipeline_impl.h"

/* ---- barriers ---- */

/* Do programs of a cluster bring parts of what the loop needs to each other? */
static bool is_shared(const TlSchedule *s)
{
    bool shared = false;
    for (uint32_t i = 0; i < s->fetches.len; i++)
        shared |= s->fetches.data[i].shared;
    return shared;
}

/* Do products alone read what it brings? */
static bool is_for_products(const TlFetch *f)
{
    const TlUse *u = f->how == TL_FETCH_BULK ? tl_in(f->put, 0)->uses : NULL;
    bool all = u != NULL;
    for (; u && all; u = u->next)
        all = u->user == f->put || u->user->opcode == TL_OP_DOT_ASYNC;
    return all;
}

/* Are all products awaited in an iteration before the op, those of the one before, too? */
static bool is_behind_await(const TlExpand *x, const TlOp *op)
{
    bool behind = false;
    for (const TlOp *o = x->body->first; o && o != op && !behind; o = o->next)
        behind = o->opcode == TL_OP_AWAIT && tl_attr_int(o, TL_ATTR_PENDING, 0) == 0;
    return behind && op->block == x->body;
}

/* May nobody touch the buffer while a product of the iteration before reads it? A bulk copy brings
 * it, it is the same in all iterations, or what threads put there is behind an await. */
static bool is_left_alone(const TlExpand *x, const TlValue *buf)
{
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        if (f->how == TL_FETCH_BULK && tl_in(f->put, 0) == buf)
            return true;
    }
    bool alone = true;
    for (const TlUse *u = buf->uses; u && alone; u = u->next)
        alone = u->user->opcode == TL_OP_DOT_ASYNC || u->user->opcode == TL_OP_GET ||
                !tl_block_is_inside(u->user->block, x->loop) || is_behind_await(x, u->user);
    return alone;
}

static bool operands_are_left_alone(const TlExpand *x, const TlOp *dot)
{
    bool all = true;
    for (uint32_t i = 0; i < dot->nin && all; i++)
        all = tl_in(dot, i)->type->kind != TL_BUF || is_left_alone(x, tl_in(dot, i));
    const TlValue *a = tl_async_dot(dot).side[TL_MMA_A].tensor; /* threads put it there */
    return all && (!a || is_behind_await(x, a->def));
}

/* Do products say themselves that slots are free? Those into tensor memory, of which the loop
 * awaits no sums, if all that is fetched comes by bulk copies for this program alone, and nobody
 * touches their operands too early. Then only their warp waits for copies, and nobody for
 * products. */
static bool products_release(const TlExpand *x)
{
    const TlOp *await = tl_loop_await(x->loop);
    bool all = await && !is_shared(x->s);
    for (uint32_t i = 0; i < x->s->fetches.len && all; i++)
        all = is_for_products(&x->s->fetches.data[i]);
    for (const TlOp *op = tl_walk_next(x->loop, x->loop); op && all; op = tl_walk_next(op, x->loop))
        if (op->opcode == TL_OP_DOT_ASYNC)
            all = op->block == x->body && op->out[0]->type->kind == TL_TENSOR &&
                  operands_are_left_alone(x, op);
    return all;
}

static void meet(TlBuilder *b)
{
    tl_op_new(b, TL_OP_MEET, 0, NULL, 0, NULL, 0, 0, NULL);
}

/* of_all: of all programs of the cluster */
static TlValue *make_barriers(TlExpand *x, const TlFetch *f, int arrivals, bool of_all)
{
    static const int32_t shape[1] = {1};
    const TlLayout *l =
        tl_layout_intern(x->ctx, tl_layout_identity(x->arena, 0, TL_IN_OFFSET, 1, 0));
    const TlType *t = tl_type_buf(x->ctx, TL_U64, 1, shape, l, f->slots);
    TlAttr attrs[] = {{.id = TL_ATTR_ARRIVALS, .u.i = arrivals},
                      {.id = TL_ATTR_CLUSTER, .u.i = tl_cluster_size(x->fn)}};
    x->home.loc = f->load->loc;
    return tl_op_new(&x->home, TL_OP_MBAR, 0, NULL, 1, &t, 0, of_all ? 2 : 1, attrs)->out[0];
}

/* The barriers of all bulk copies of the loop: one arrival, which says how many bytes come. What
 * other programs copy to this one, too, they copy when they know that the barriers are there. */
static TlValue *barriers_of(TlExpand *x, const TlFetch *f)
{
    if (!x->bars) {
        x->by_products = products_release(x);
        x->bars = make_barriers(x, f, 1, false);
        x->empties = make_barriers(x, f, x->by_products ? 1 : x->fn->body->warps,
                                   is_shared(x->s));
        if (is_shared(x->s))
            meet(&x->home);
    }
    return x->bars;
}

/* The barriers at which the warps arrive that have read a slot. */
static TlValue *empties_of(TlExpand *x, const TlFetch *f)
{
    barriers_of(x, f);
    return x->empties;
}

/* The parity of the phase that this iteration's barrier is in: it changes when slots begin again.
 */
static TlValue *parity(TlExpand *x, const TlFetch *f)
{
    const TlType *t = tl_type_scalar(x->ctx, TL_I32);
    TlCarried c = tl_pipeline_from_0(x);
    if (x->parity)
        return x->parity;
    TlValue *last = tl_pipeline_wraps(x, &x->start, tl_pipeline_slot(x, f->slots), 1, f->slots);
    TlValue *now = tl_pipeline_carry(x, t, "parity", c);
    TlValue *other = tl_binary(&x->start, TL_OP_XOR, now, tl_pipeline_int(x, t, 1));
    x->carried.data[x->carried.len - 1].next = tl_select(&x->start, last, other, now);
    x->parity = now;
    return now;
}

/* The slot that is copied to now was read S iterations before the one that it is for: the phase
 * before that one's. Nobody has read it before its first use, whose wait is over at once. */
static void await_empty(TlExpand *x, const TlFetch *f, TlMoment m, TlValue *slot, TlValue *mask)
{
    TlBuilder *b = &x->start;
    const TlType *t = tl_type_scalar(x->ctx, TL_I32);
    TlValue *now = parity(x, f), *before = tl_binary(b, TL_OP_XOR, now, tl_pipeline_int(x, t, 1));
    if (m.n)
        before = tl_select(b, tl_pipeline_wraps(x, b, tl_pipeline_slot(x, f->slots), m.n, f->slots),
                           now, before);
    TlValue *in[] = {empties_of(x, f), slot, before, mask};
    TlAttr attrs[] = {{.id = TL_ATTR_ONE, .u.i = 1}, {.id = TL_ATTR_MASK, .u.i = 1}};
    tl_op_new(b, TL_OP_MBAR_WAIT, mask ? 4 : 3, in, 0, NULL, 0, mask ? 2 : 1, attrs);
}

static const TlFetch *first_bulk(const TlSchedule *s)
{
    for (uint32_t i = 0; i < s->fetches.len; i++)
        if (s->fetches.data[i].how == TL_FETCH_BULK)
            return &s->fetches.data[i];
    return NULL;
}

static void arrive_by_products(TlExpand *x, const TlFetch *f)
{
    TlBuilder b = tl_builder_before(x->body->last);
    TlValue *in[] = {empties_of(x, f), tl_pipeline_slot(x, f->slots)};
    TlAttr attr = {.id = TL_ATTR_PRODUCTS, .u.i = 1};
    tl_op_new(&b, TL_OP_ARRIVE, 2, in, 0, NULL, 0, 1, &attr);
    tl_op_erase(tl_loop_await(x->loop));
}

/* At the end of an iteration, its slot has been read; while its products go on, the last
 * iteration's. */
void tl_pipeline_arrive_empty(TlExpand *x)
{
    const TlFetch *f = first_bulk(x->s);
    if (!f)
        return;
    if (x->by_products) {
        arrive_by_products(x, f);
        return;
    }
    const TlOp *await = tl_loop_await(x->loop);
    bool behind = await && tl_attr_int(await, TL_ATTR_PENDING, 0) > 0;
    TlBuilder b = tl_builder_before(x->body->last);
    TlValue *in[] = {empties_of(x, f), tl_pipeline_slot(x, f->slots), NULL};
    TlAttr attr = {.id = TL_ATTR_MASK, .u.i = 1};
    if (behind) {
        const TlType *t = tl_type_scalar(x->ctx, TL_BOOL);
        TlCarried c = {.init = tl_const_int(&x->before, t, 0),
                       .next = tl_const_int(&x->before, t, 1)};
        in[1] = tl_pipeline_last_slot(x, f->slots);
        x->again = x->carried.len;
        in[2] = tl_pipeline_carry(x, t, "again", c);
    }
    tl_op_new(&b, TL_OP_ARRIVE, behind ? 3 : 2, in, 0, NULL, 0, behind, &attr);
}

static int64_t bulk_bytes(TlExpand *x)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        TlBulk bulk;
        if (f->how == TL_FETCH_BULK &&
            tl_bulk_plan(x->arena, f->load, tl_in(f->put, 0)->type, &bulk))
            bytes += bulk.bytes;
    }
    return bytes;
}

/* Those of one iteration, which are all as many ahead, have one barrier. */
void tl_pipeline_begin_bulk(TlExpand *x, bool in_loop, int t)
{
    const TlFetch *first = first_bulk(x->s);
    TlBuilder *b = in_loop ? &x->start : &x->before;
    TlMoment m = first ? tl_pipeline_moment(in_loop, t, first->ahead) : (TlMoment){0};
    if (!first || m.n < 0)
        return;
    TlValue *bars = barriers_of(x, first), *slot = tl_pipeline_slot_at(x, first, m),
            *expect[3] = {bars, slot};
    TL_VEC(TlAccess) all = {0};
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        if (f->how != TL_FETCH_BULK)
            continue;
        TlAccess a = tl_pipeline_access(x, f, m);
        a.in[a.n++] = tl_pipeline_buffer(x, f);
        a.in[a.n++] = slot;
        a.in[a.n++] = bars;
        a.in[a.n++] = slot;
        tl_vec_push(x->arena, &all, a);
    }
    expect[2] = tl_pipeline_test(x, m);
    if (in_loop)
        await_empty(x, first, m, slot, expect[2]);
    for (uint32_t i = 0; i < all.len; i++) {
        TlOp *copy = tl_pipeline_begin(x, b, &all.data[i], false);
        TlAttr attr = {.id = TL_ATTR_CLUSTER, .u.i = tl_cluster_size(x->fn)};
        tl_pipeline_say_ahead(x, copy, m);
        if (all.data[i].f->shared)
            tl_attr_set(x->fn, copy, attr);
    }
    TlAttr attrs[] = {{.id = TL_ATTR_BYTES, .u.i = bulk_bytes(x)}, {.id = TL_ATTR_MASK, .u.i = 1}};
    tl_op_new(b, TL_OP_EXPECT, expect[2] ? 3 : 2, expect, 0, NULL, 0, expect[2] ? 2 : 1, attrs);
}

void tl_pipeline_await_bulk(TlExpand *x)
{
    const TlFetch *f = first_bulk(x->s);
    if (!f)
        return;
    TlValue *in[] = {barriers_of(x, f), tl_pipeline_slot(x, f->slots), parity(x, f)};
    TlAttr attr = {.id = TL_ATTR_PRODUCTS, .u.i = 1};
    tl_op_new(&x->start, TL_OP_MBAR_WAIT, 3, in, 0, NULL, 0, x->by_products, &attr);
}

/* ---- loops that are run again ---- */

typedef struct Operand {
    TlOp *op;
    uint32_t i;
} Operand;

/* Result i of the loop goes on as its initial value where loops around it run it again, `first` at
 * the first time. Branches between them that do not run it hand on what there was. */
static void run_on(TlExpand *x, TlOp *loop, uint32_t i)
{
    TlValue *first = tl_in(loop, i + 3), *result = loop->out[i];
    TL_VEC(Operand) wanting = {0}; /* what was last */
    tl_vec_push(x->arena, &wanting, (Operand){loop, i + 3});
    for (TlOp *outer = loop->block->parent; outer; outer = outer->block->parent) {
        bool loops = outer->opcode == TL_OP_FOR;
        TlBlock *in = result->def->block;
        for (uint32_t r = 0; r < outer->nregions; r++) {
            TlOp *yield = outer->regions[r]->last;
            tl_add_operand(x->fn, yield, outer->regions[r] == in ? result : first);
            if (outer->regions[r] != in)
                tl_vec_push(x->arena, &wanting, (Operand){yield, yield->nin - 1});
        }
        if (loops) {
            TlValue *arg = tl_block_arg(in, first->type, loop->regions[0]->args[i + 1]->name);
            for (uint32_t k = 0; k < wanting.len; k++)
                tl_set_operand(wanting.data[k].op, wanting.data[k].i, arg);
            wanting.len = 0;
        }
        outer = tl_op_extend(x->arena, outer, loops, &first);
        result = outer->out[outer->nout - 1];
        if (loops)
            tl_vec_push(x->arena, &wanting, (Operand){outer, outer->nin - 1});
    }
}

/* The await behind the loop of all of its products. */
static TlOp *await_behind(TlOp *loop)
{
    TlOp *op = loop->next;
    while (op && (op->opcode != TL_OP_AWAIT || tl_attr_int(op, TL_ATTR_PENDING, 0)))
        op = op->next;
    TL_ASSERT(op, "products that nobody awaits");
    return op;
}

/* The slot of the last iteration has been read, too, when its products are awaited. */
static void arrive_last(TlExpand *x, TlOp *loop)
{
    const TlFetch *f = first_bulk(x->s);
    uint64_t last, key = (uint64_t)f->slots | 1u << 8;
    uint32_t n = loop->nout - x->carried.len;
    if (!tl_map_get(&x->slots, key, &last))
        return; /* each iteration arrives for itself */
    TlBuilder b = tl_builder_before(await_behind(loop)->next);
    TlValue *in[] = {x->empties, loop->out[n + last], loop->out[n + x->again]};
    TlAttr attr = {.id = TL_ATTR_MASK, .u.i = 1};
    tl_op_new(&b, TL_OP_ARRIVE, 3, in, 0, NULL, 0, 1, &attr);
}

/* The producer begins the copies of the next time before this one is over. */
static void go_on(TlExpand *x, TlOp *loop)
{
    uint32_t n = loop->nout - x->carried.len;
    TlOp *end = x->fn->body->last;
    TlBuilder b = tl_builder_before(end);
    if (is_shared(x->s) && (!end->prev || end->prev->opcode != TL_OP_MEET))
        meet(&b); /* as long as others arrive at its barriers, a program is there */
    if (!loop->block->parent)
        return;
    arrive_last(x, loop);
    for (uint32_t i = 0; i < x->carried.len; i++)
        if (x->carried.data[i].runs_on)
            run_on(x, loop, n + i);
}

static void end_barriers(TlExpand *x, TlOp *loop)
{
    TlBuilder after = tl_builder_before(x->by_products ? await_behind(loop)->next : loop->next);
    if (is_shared(x->s))
        meet(&after); /* others arrive at barriers of this program */
    tl_op_new(&after, TL_OP_MBAR_END, 1, &x->bars, 0, NULL, 0, 0, NULL);
    tl_op_new(&after, TL_OP_MBAR_END, 1, &x->empties, 0, NULL, 0, 0, NULL);
}

void tl_pipeline_end_bulk(TlExpand *x, TlOp *loop)
{
    if (x->s->by_producer)
        go_on(x, loop);
    else if (x->bars)
        end_barriers(x, loop);
}
