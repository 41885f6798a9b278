/* A schedule put into effect (pipeline.c).
 *
 *  1. The prologue, trip by trip as the loop itself will do: for trip -most .. -1 all fetches whose
 *     iteration is 0 or more; copies of one trip are one group.
 *  2. The start of the body: wait for the oldest group, copies, commit, puts of what came, loads.
 *     Where accesses need bounds and one scalar test can say that all of it is inside
 *     (pipeline_inside.c), they stand there twice, in the arms of an if: without tests, which is
 *     what nearly all trips do, and with.
 *  3. The rest of the body stays, with what was fetched for it in place of the loads. What its
 *     first product gets from shared memory, it gets before fetches for later trips begin.
 *  4. The loop is made again, with the new carried values. After it, nothing is in flight: wait for
 *     all.
 *
 * Slots: iteration i is in slot i mod slots; a carried counter says which one this trip's gets
 * read. */
#include "ir/plan/bulk.h"
#include "passes/analysis/cluster.h"
#include "passes/layout/relayout.h"
#include "passes/pipeline/pipeline_impl.h"

/* ---- slots ---- */

static TlValue *slot_const(TlExpand *x, int slot)
{
    return tl_pipeline_int(x, tl_type_scalar(x->ctx, TL_I32), slot);
}

static TlCarried running_from_0(TlExpand *x)
{
    bool runs_on = x->s->by_producer;
    const TlType *t = tl_type_scalar(x->ctx, TL_I32);
    TlValue *zero = runs_on ? tl_const_int(&x->home, t, 0) : slot_const(x, 0);
    return (TlCarried){.init = zero, .runs_on = runs_on};
}

/* Do slots begin again within n trips of the one of `slot`? */
static TlValue *wraps(TlExpand *x, TlBuilder *b, TlValue *slot, int n, int slots)
{
    uint64_t key = 1u << 16 | (uint64_t)slots << 8 | (uint64_t)n, known;
    if (tl_map_get(&x->later, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *over = tl_binary(b, TL_OP_GE, slot, slot_const(x, slots - n));
    tl_map_put(&x->later, key, (uint64_t)(uintptr_t)over);
    return over;
}

/* (slot + n) mod slots, for n < slots */
static TlValue *later_slot(TlExpand *x, TlBuilder *b, TlValue *slot, int n, int slots)
{
    TL_ASSERT(slots > 0 && slots <= TL_MAX_BUF_SLOTS && n >= 0, "slot %d of %d", n, slots);
    uint64_t key = (uint64_t)slots << 8 | (uint64_t)n, known;
    if (tl_map_get(&x->later, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *over = wraps(x, b, slot, n, slots),
            *further = tl_binary(b, TL_OP_ADD, slot, slot_const(x, n)),
            *again = n == 1 ? slot_const(x, 0)
                            : tl_binary(b, TL_OP_SUB, slot, slot_const(x, slots - n)),
            *then = tl_select(b, over, again, further);
    tl_map_put(&x->later, key, (uint64_t)(uintptr_t)then);
    return then;
}

/* The slot of this trip's gets. Buffers with the same number of slots share a counter. */
static TlValue *slot_counter(TlExpand *x, int slots)
{
    uint64_t i;
    if (tl_map_get(&x->slots, (uint64_t)slots, &i))
        return x->carried.data[i].arg;
    tl_map_put(&x->slots, (uint64_t)slots, x->carried.len);
    TlCarried c = running_from_0(x);
    TlValue *slot = tl_pipeline_carry(x, tl_type_scalar(x->ctx, TL_I32), "slot", c);
    x->carried.data[x->carried.len - 1].next = later_slot(x, &x->start, slot, 1, slots);
    return slot;
}

/* The slot of the last trip's gets: that of the trip slots - 1 further on, too. */
static TlValue *last_slot(TlExpand *x, int slots)
{
    uint64_t i, key = (uint64_t)slots | 1u << 8;
    if (tl_map_get(&x->slots, key, &i))
        return x->carried.data[i].arg;
    TlCarried c = {.init = slot_const(x, slots - 1), .next = slot_counter(x, slots)};
    tl_map_put(&x->slots, key, x->carried.len);
    return tl_pipeline_carry(x, tl_type_scalar(x->ctx, TL_I32), "last", c);
}

static TlValue *slot_at(TlExpand *x, const TlFetch *f, TlMoment m)
{
    TL_ASSERT(f->slots > 0, "a fetch without slots");
    if (!m.in_loop || f->slots == 1)
        return slot_const(x, m.n % f->slots);
    TlValue *now = slot_counter(x, f->slots);
    if (f->slots > 2 && m.n == f->slots - 1)
        return last_slot(x, f->slots);
    return m.n ? later_slot(x, &x->start, now, m.n, f->slots) : now;
}

/* The buffer with all its slots, before the loop; gets of the old one read it. */
static TlValue *buffer_of(TlExpand *x, const TlFetch *f)
{
    TL_ASSERT(f->put && tl_in(f->put, 0)->type->kind == TL_BUF, "a fetch without a buffer");
    TlValue *old = tl_in(f->put, 0), *made = tl_map_get_ptr(&x->buffers, old);
    if (made)
        return made;
    const TlType *t = old->type;
    t = tl_type_buf(x->ctx, t->dtype, t->rank, t->shape, t->layout, f->slots);
    x->home.loc = f->load->loc;
    made = tl_op_new(&x->home, TL_OP_ALLOC, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    made->name = f->load->out[0]->name;
    tl_map_put_ptr(&x->buffers, old, made);
    return made;
}

static void redirect_gets(TlExpand *x, const TlFetch *f)
{
    TlValue *old = tl_in(f->put, 0), *made = buffer_of(x, f);
    for (TlUse *u = old->uses, *next; u; u = next) {
        next = u->next;
        uint32_t i = (uint32_t)(u - u->user->in);
        if (f->slots > 1 && u->user->opcode != TL_OP_PUT)
            tl_set_operand(u->user, i + 1, slot_counter(x, f->slots));
        tl_set_operand(u->user, i, made);
    }
}

/* ---- fetches ---- */

static void set_ahead(TlExpand *x, TlOp *op, TlMoment m)
{
    if (m.in_loop && m.n)
        tl_attr_set(x->fn, op, (TlAttr){.id = TL_ATTR_AHEAD, .u.i = m.n});
}

static void put_at(TlExpand *x, const TlFetch *f, TlMoment m)
{
    TL_ASSERT(f->how == TL_FETCH_PUT, "a fetch that puts nothing");
    TlValue *in[] = {buffer_of(x, f), slot_at(x, f, m), tl_pipeline_value(x, f->load->out[0], m)};
    TlBuilder *b = m.in_loop ? &x->start : &x->before;
    b->loc = f->put->loc;
    set_ahead(x, tl_op_new(b, TL_OP_PUT, 3, in, 0, NULL, 0, 0, NULL), m);
}

/* A trip, or (before the loop) trip number t < 0: iterations from 0 on. */
static TlMoment moment_of(bool in_loop, int t, int ahead)
{
    TL_ASSERT(ahead >= 0, "%d trips ahead", ahead);
    return (TlMoment){in_loop, in_loop ? ahead : t + ahead};
}

typedef TL_VEC(TlAccess) Accesses;

static void begin(TlExpand *x, TlBuilder *b, const TlAccess *a, bool inside, TlValue **out)
{
    TlOp *op = tl_pipeline_begin(x, b, a, inside);
    if (op->opcode == TL_OP_COPY)
        set_ahead(x, op, a->m);
    else
        *out = op->out[0];
}

/* One arm of the if around accesses: begins them, yields what loads give. */
static void fill_arm(TlExpand *x, TlBlock *arm, const Accesses *all, bool inside)
{
    TlBuilder b = {.fn = x->fn, .block = arm, .loc = x->loop->loc};
    TlValue **results = TL_NEW_ARRAY(x->arena, TlValue *, all->len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        begin(x, &b, &all->data[i], inside, &results[n]);
        n += results[n] != NULL;
    }
    tl_yield(&b, TL_OP_YIELD, n, results);
}

/* if all of it is inside { without tests } else { with tests } */
static void begin_asking(TlExpand *x, const Accesses *all)
{
    TL_ASSERT(all->len > 0, "nobody asks");
    const TlFetch **fetches = TL_NEW_ARRAY(x->arena, const TlFetch *, all->len);
    const TlType **types = TL_NEW_ARRAY(x->arena, const TlType *, all->len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        fetches[i] = all->data[i].f;
        if (fetches[i]->how > TL_FETCH_COPY)
            types[n++] = fetches[i]->load->out[0]->type;
    }
    TlValue *test = tl_pipeline_inside(x, all->len, fetches);
    x->start.loc = fetches[0]->load->loc;
    TlOp *branch = tl_op_new(&x->start, TL_OP_IF, 1, &test, n, types, 2, 0, NULL);
    fill_arm(x, branch->regions[0], all, true);
    fill_arm(x, branch->regions[1], all, false);
    n = 0;
    for (uint32_t i = 0; i < all->len; i++)
        if (fetches[i]->how > TL_FETCH_COPY)
            tl_pipeline_remember(x, fetches[i]->load->out[0], all->data[i].m, branch->out[n++]);
}

/* What the accesses need is there; some may have been begun for others of them. */
static void begin_all(TlExpand *x, bool in_loop, const Accesses *all)
{
    Accesses asking = {0};
    for (uint32_t i = 0; i < all->len; i++) {
        const TlAccess *a = &all->data[i];
        TlValue *v = a->f->load->out[0], *loaded = NULL;
        if (tl_pipeline_is_known(x, v, a->m))
            continue;
        if (in_loop && a->f->asks) {
            tl_vec_push(x->arena, &asking, *a);
            continue;
        }
        begin(x, in_loop ? &x->start : &x->before, a, false, &loaded);
        if (loaded)
            tl_pipeline_remember(x, v, a->m, loaded);
    }
    if (asking.len)
        begin_asking(x, &asking);
}

/* ---- bulk copies ---- */

/* Do programs of a cluster bring parts of what the loop needs to each other? */
static bool is_shared(const TlSchedule *s)
{
    bool shared = false;
    for (uint32_t i = 0; i < s->fetches.len; i++)
        shared |= s->fetches.data[i].shared;
    return shared;
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
        x->bars = make_barriers(x, f, 1, false);
        x->empties = make_barriers(x, f, x->fn->body->warps, is_shared(x->s));
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

/* The parity of the phase that this trip's barrier is in: it changes when slots begin again. */
static TlValue *parity(TlExpand *x, const TlFetch *f)
{
    const TlType *t = tl_type_scalar(x->ctx, TL_I32);
    TlCarried c = running_from_0(x);
    if (x->parity)
        return x->parity;
    TlValue *last = wraps(x, &x->start, slot_counter(x, f->slots), 1, f->slots);
    TlValue *now = tl_pipeline_carry(x, t, "parity", c);
    TlValue *other = tl_binary(&x->start, TL_OP_XOR, now, tl_pipeline_int(x, t, 1));
    x->carried.data[x->carried.len - 1].next = tl_select(&x->start, last, other, now);
    x->parity = now;
    return now;
}

/* The slot that is copied to now was read S trips before the one that it is for: the phase before
 * that one's. Nobody has read it before its first use, whose wait is over at once. */
static void await_empty(TlExpand *x, const TlFetch *f, TlMoment m, TlValue *slot, TlValue *mask)
{
    TlBuilder *b = &x->start;
    const TlType *t = tl_type_scalar(x->ctx, TL_I32);
    TlValue *now = parity(x, f), *before = tl_binary(b, TL_OP_XOR, now, tl_pipeline_int(x, t, 1));
    if (m.n)
        before = tl_select(b, wraps(x, b, slot_counter(x, f->slots), m.n, f->slots), now, before);
    TlValue *in[] = {empties_of(x, f), slot, before, mask};
    TlAttr attrs[] = {{.id = TL_ATTR_ONE, .u.i = 1}, {.id = TL_ATTR_MASK, .u.i = 1}};
    tl_op_new(b, TL_OP_PHASE, mask ? 4 : 3, in, 0, NULL, 0, mask ? 2 : 1, attrs);
}

/* At the end of a trip, its slot has been read; while its products go on, the last trip's. */
static void arrive_empty(TlExpand *x, const TlFetch *f)
{
    const TlOp *await = tl_loop_await(x->loop);
    bool behind = await && tl_attr_int(await, TL_ATTR_PENDING, 0) > 0;
    TlBuilder b = tl_builder_before(x->body->last);
    TlValue *in[] = {empties_of(x, f), slot_counter(x, f->slots), NULL};
    TlAttr attr = {.id = TL_ATTR_MASK, .u.i = 1};
    if (behind) {
        const TlType *t = tl_type_scalar(x->ctx, TL_BOOL);
        TlCarried c = {.init = tl_const_int(&x->before, t, 0),
                       .next = tl_const_int(&x->before, t, 1)};
        in[1] = last_slot(x, f->slots);
        x->again = x->carried.len;
        in[2] = tl_pipeline_carry(x, t, "again", c);
    }
    tl_op_new(&b, TL_OP_ARRIVE, behind ? 3 : 2, in, 0, NULL, 0, behind, &attr);
}

static const TlFetch *first_bulk(const TlSchedule *s)
{
    for (uint32_t i = 0; i < s->fetches.len; i++)
        if (s->fetches.data[i].how == TL_FETCH_BULK)
            return &s->fetches.data[i];
    return NULL;
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

/* Those of one trip, which are all as many ahead, have one barrier. */
static void begin_bulk(TlExpand *x, bool in_loop, int t)
{
    const TlFetch *first = first_bulk(x->s);
    TlBuilder *b = in_loop ? &x->start : &x->before;
    TlMoment m = first ? moment_of(in_loop, t, first->ahead) : (TlMoment){0};
    if (!first || m.n < 0)
        return;
    TlValue *bars = barriers_of(x, first), *slot = slot_at(x, first, m), *expect[3] = {bars, slot};
    Accesses all = {0};
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        if (f->how != TL_FETCH_BULK)
            continue;
        TlAccess a = tl_pipeline_access(x, f, m);
        a.in[a.n++] = buffer_of(x, f);
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
        set_ahead(x, copy, m);
        if (all.data[i].f->shared)
            tl_attr_set(x->fn, copy, attr);
    }
    TlAttr attrs[] = {{.id = TL_ATTR_BYTES, .u.i = bulk_bytes(x)}, {.id = TL_ATTR_MASK, .u.i = 1}};
    tl_op_new(b, TL_OP_EXPECT, expect[2] ? 3 : 2, expect, 0, NULL, 0, expect[2] ? 2 : 1, attrs);
}

static void await_bulk(TlExpand *x)
{
    const TlFetch *f = first_bulk(x->s);
    if (!f)
        return;
    TlValue *in[] = {barriers_of(x, f), slot_counter(x, f->slots), parity(x, f)};
    tl_op_new(&x->start, TL_OP_PHASE, 3, in, 0, NULL, 0, 0, NULL);
}

static void begin_copies(TlExpand *x, bool in_loop, int t)
{
    Accesses all = {0};
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        TlMoment m = moment_of(in_loop, t, f->ahead);
        if (f->how != TL_FETCH_COPY || m.n < 0)
            continue;
        TlAccess a = tl_pipeline_access(x, f, m);
        a.in[a.n++] = buffer_of(x, f);
        a.in[a.n++] = slot_at(x, f, m);
        tl_vec_push(x->arena, &all, a);
    }
    begin_all(x, in_loop, &all);
    if (all.len)
        tl_op_new(in_loop ? &x->start : &x->before, TL_OP_COMMIT, 0, NULL, 0, NULL, 0, 0, NULL);
}

/* Values in registers: puts come first, to free the registers. */
static void begin_loads(TlExpand *x, bool in_loop, int t)
{
    Accesses all = {0};
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        TlMoment m = moment_of(in_loop, t, f->put_ahead);
        if (f->how == TL_FETCH_PUT && m.n >= 0)
            put_at(x, f, m);
    }
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        TlMoment m = moment_of(in_loop, t, f->ahead);
        if (f->how > TL_FETCH_COPY && m.n >= 0 && !tl_pipeline_is_known(x, f->load->out[0], m))
            tl_vec_push(x->arena, &all, tl_pipeline_access(x, f, m));
    }
    begin_all(x, in_loop, &all);
}

/* ---- products ---- */

/* Is what a trip reads of the buffer still there in the next one? */
static bool stays(const TlExpand *x, const TlValue *buf)
{
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        int ahead = f->how == TL_FETCH_PUT ? f->put_ahead : f->ahead;
        if (f->put && tl_in(f->put, 0) == buf)
            return f->slots > ahead + 1;
    }
    for (const TlUse *u = buf->uses; u; u = u->next)
        if (u->user->opcode != TL_OP_DOT_ASYNC && u->user->opcode != TL_OP_GET &&
            tl_block_is_inside(u->user->block, x->loop))
            return false;
    return true;
}

/* Products of this trip go on while the next one begins. */
static void let_products_go_on(TlExpand *x)
{
    TlOp *await = tl_loop_await(x->loop);
    int64_t n = 0;
    if (!await)
        return;
    for (TlOp *op = x->body->first; op; op = op->next) {
        if (op->opcode != TL_OP_DOT_ASYNC)
            continue;
        n++;
        for (uint32_t i = 0; i < op->nin; i++)
            if (tl_in(op, i)->type->kind == TL_BUF && !stays(x, tl_in(op, i)))
                return;
    }
    tl_attr_set(x->fn, await, (TlAttr){.id = TL_ATTR_PENDING, .u.i = n});
}

/* ---- the parts ---- */

static int oldest_copy(const TlSchedule *s)
{
    int least = 0;
    for (uint32_t i = 0; i < s->fetches.len; i++)
        if (s->fetches.data[i].how == TL_FETCH_COPY && (!least || s->fetches.data[i].ahead < least))
            least = s->fetches.data[i].ahead;
    return least;
}

static void wait_for(TlBuilder *b, int pending)
{
    TL_ASSERT(pending >= 0, "%d groups pending", pending);
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = pending};
    tl_op_new(b, TL_OP_WAIT, 0, NULL, 0, NULL, 0, 1, &attr);
}

static void fill_body(TlExpand *x)
{
    int oldest = oldest_copy(x->s);
    if (oldest)
        wait_for(&x->start, oldest - 1);
    if (x->s->by_producer)
        begin_bulk(x, true, 0);
    await_bulk(x);
    if (!x->s->by_producer)
        begin_bulk(x, true, 0);
    if (first_bulk(x->s))
        arrive_empty(x, first_bulk(x->s));
    begin_copies(x, true, 0);
    begin_loads(x, true, 0);
}

static void yield_carried(TlExpand *x)
{
    for (uint32_t i = 0; i < x->carried.len; i++) {
        TlCarried c = x->carried.data[i];
        tl_add_operand(x->fn, x->body->last,
                       c.next ? c.next : tl_pipeline_value(x, c.of, c.moment));
    }
}

/* This trip's part takes what was fetched. Nothing of the old body changes before all that is made
 * of it is there. */
static void use_fetched(TlExpand *x)
{
    uint32_t n = x->s->fetches.len;
    TlValue **now = TL_NEW_ARRAY(x->arena, TlValue *, n);
    for (uint32_t i = 0; i < n; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        if (f->put)
            redirect_gets(x, f);
        if (f->how > TL_FETCH_COPY)
            now[i] = tl_pipeline_value(x, f->load->out[0], (TlMoment){true, 0});
    }
    yield_carried(x);
    for (uint32_t i = 0; i < n; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        if (f->put)
            tl_op_erase(f->put);
        if (now[i])
            tl_replace_uses(f->load->out[0], now[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        tl_op_erase(x->s->fetches.data[i].load);
}

/* Where fetches for later trips begin, behind what is put for this one; NULL: nowhere. */
static TlOp *first_fetch(TlBlock *body)
{
    TlOp *found = NULL;
    for (TlOp *op = body->first; op && op->opcode != TL_OP_GET && op->opcode != TL_OP_DOT_ASYNC;
         op = op->next)
        if (op->opcode == TL_OP_PUT)
            found = NULL;
        else if (!found && (op->opcode == TL_OP_COPY || op->opcode == TL_OP_EXPECT ||
                            (op->opcode == TL_OP_PHASE && tl_attr_flag(op, TL_ATTR_ONE)) ||
                            op->opcode == TL_OP_LOAD || op->opcode == TL_OP_IF))
            found = op;
    return found;
}

/* Everything that it takes is known before the body, or is in shared memory. */
static bool is_there(const TlOp *product)
{
    for (uint32_t i = 0; i < product->nin; i++) {
        const TlOp *def = tl_in(product, i)->def;
        if (def && def->block == product->block && def->opcode != TL_OP_CONST &&
            !(def->opcode == TL_OP_DOT_ASYNC && is_there(def)))
            return false;
    }
    return true;
}

/* A get of a slot that is known before the body or a constant; a constant; what a moved get is
 * transposed to. */
static bool may_come_first(const TlOp *op)
{
    const TlOp *def = op->nin ? tl_in(op, op->nin - 1)->def : NULL;
    switch ((int)op->opcode) {
    case TL_OP_CONST: return op->out[0]->type->rank == 0;
    case TL_OP_GET: return !def || def->block != op->block || def->opcode == TL_OP_CONST;
    case TL_OP_DOT_ASYNC: return is_there(op);
    case TL_OP_TRANS: return def && def->opcode == TL_OP_GET && may_come_first(def);
    default: return false;
    }
}

/* What the first product of the trip gets, it gets before fetches begin: these take a while, in
 * which its first fragments come; and a barrier before the gets, at which some machines wait for
 * all loads, does not wait for these. */
static void get_first(TlBlock *body)
{
    TlOp *fetch = first_fetch(body), *next;
    for (TlOp *op = fetch;
         op && op->opcode != TL_OP_DOT && op->opcode != TL_OP_PUT && op->opcode != TL_OP_AWAIT;
         op = next) {
        next = op->next;
        if (may_come_first(op))
            tl_op_move_before(op, fetch);
    }
}

static void add_attrs(TlExpand *x, TlOp *loop)
{
    tl_attr_remove(loop, TL_ATTR_PIPELINE);
    tl_attr_set(x->fn, loop, (TlAttr){.id = TL_ATTR_PIPELINED, .u.i = x->s->stages});
}

/* The loop, with the new carried values. */
static TlOp *remake_loop(TlExpand *x)
{
    TL_ASSERT(x->body->last->nin == x->loop->nout + x->carried.len,
              "%u values for %u that are carried", x->body->last->nin, x->loop->nout);
    TlValue **inits = TL_NEW_ARRAY(x->arena, TlValue *, x->carried.len);
    for (uint32_t i = 0; i < x->carried.len; i++)
        inits[i] = x->carried.data[i].init;
    return tl_op_extend(x->arena, x->loop, x->carried.len, inits);
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

/* The slot of the last trip has been read, too, when its products are awaited. */
static void arrive_last(TlExpand *x, TlOp *loop)
{
    const TlFetch *f = first_bulk(x->s);
    uint64_t last, key = (uint64_t)f->slots | 1u << 8;
    uint32_t n = loop->nout - x->carried.len;
    TlOp *await = loop->next;
    if (!tl_map_get(&x->slots, key, &last))
        return; /* each trip arrives for itself */
    while (await && (await->opcode != TL_OP_AWAIT || tl_attr_int(await, TL_ATTR_PENDING, 0)))
        await = await->next;
    TL_ASSERT(await, "products that nobody awaits");
    TlBuilder b = tl_builder_before(await->next);
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

static void retire(TlExpand *x, TlOp *loop)
{
    TlBuilder after = tl_builder_before(loop->next);
    if (is_shared(x->s))
        meet(&after); /* others arrive at barriers of this program */
    tl_op_new(&after, TL_OP_RETIRE, 1, &x->bars, 0, NULL, 0, 0, NULL);
    tl_op_new(&after, TL_OP_RETIRE, 1, &x->empties, 0, NULL, 0, 0, NULL);
}

void tl_pipeline_expand(TlFn *fn, TlPassCtx *px, const TlSchedule *s)
{
    TL_ASSERT(s->loop->opcode == TL_OP_FOR && s->fetches.len > 0,
              "a schedule of %u fetches", s->fetches.len);
    TlBlock *body = s->loop->regions[0];
    TlExpand x = {.fn = fn,
                  .ctx = px->ctx,
                  .arena = px->scratch,
                  .s = s,
                  .loop = s->loop,
                  .body = body,
                  .home = tl_builder_before(s->by_producer ? fn->body->first : s->loop),
                  .before = tl_builder_before(s->loop),
                  .start = tl_builder_before(body->first)};
    TlMap *maps[] = {&x.values, &x.tests, &x.limits, &x.buffers, &x.slots, &x.later, &x.constants};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        tl_map_init(maps[i], px->scratch);
    for (int t = -s->most; t < 0; t++) {
        begin_bulk(&x, false, t);
        begin_copies(&x, false, t);
        begin_loads(&x, false, t);
    }
    let_products_go_on(&x);
    fill_body(&x);
    use_fetched(&x);
    if (!s->by_producer)
        get_first(body);
    TlOp *loop = remake_loop(&x);
    add_attrs(&x, loop);
    if (s->by_producer)
        go_on(&x, loop);
    else if (x.bars)
        retire(&x, loop);
    if (oldest_copy(s)) {
        TlBuilder after = tl_builder_after(loop->out[0]);
        wait_for(&after, 0);
    }
}
