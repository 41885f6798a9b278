/* A schedule put into effect (pipeline.c).
 *
 * A value of the body has a meaning in every iteration. Here it is asked for at a moment: before the
 * loop, of iteration n; or in the loop, of the iteration n trips further on (n = 0: this one). What a moment
 * needs is made when it is asked for first:
 *
 *   the counter        lo + n * step, or counter + n * step
 *   a carried value    before: the initial one, or what iteration n - 1 yields; in the loop: one
 *                      more carried value that runs n trips ahead
 *   a fetched load     begun at its own moment (`ahead`) under the mask "is there such an iteration";
 *                      later moments of the same iteration get it through carried values, one per trip
 *   anything else      is pure: once more, of operands of the same moment
 *
 *  1. The prologue, trip by trip as the loop itself will do: for trip -most .. -1 all fetches whose iteration is
 *     0 or more; copies of one trip are one group.
 *  2. The start of the body: wait for the oldest group, copies, commit, puts of what came, loads.
 *  3. The rest of the body stays, with what was fetched for it in place of the loads.
 *  4. The loop is made again, with the new carried values. After it, nothing is in flight: wait for all.
 *
 * Slots: iteration i is in slot i mod slots; a carried counter says which one this trip's gets read.
 *
 * "Is there an iteration n trips after the one with counter i?" is i < hi - n * step, where the right side is
 * computed once, before the loop, and saturates, so that nothing overflows. A step that is not known is
 * handled by the same in 64 bits. */
#include "ir/numeric.h"
#include "passes/pipeline_impl.h"
#include "passes/relayout.h"

typedef struct Moment {
    bool in_loop;
    int n;
} Moment;

/* One more carried value. Its next one is `of` at `moment`, made when all that comes first is there. */
typedef struct Carried {
    TlValue *arg, *init, *next, *of;
    Moment moment;
} Carried;

typedef struct Expand {
    TlFn *fn;
    TlCtx *ctx;
    TlArena *arena;
    const TlSchedule *s;
    TlOp *loop;
    TlBlock *body;
    TlBuilder before, start; /* before the loop; before what the body had at first */
    TlMap values;            /* value and moment to value */
    TlMap tests;             /* moment to the test of it */
    TlMap limits;            /* n to hi - n * step */
    TlMap buffers, slots;    /* old buffer to new; number of slots to the index of its counter */
    TlMap later;             /* slots and n to the slot n trips later */
    TlMap constants;         /* type and number to a constant before the loop */
    TL_VEC(Carried) carried;
} Expand;

static TlBuilder *builder(Expand *x, Moment m)
{
    return m.in_loop ? &x->start : &x->before;
}

static uint64_t moment_key(Moment m, uint64_t what)
{
    return what << 9 | (uint64_t)m.in_loop << 8 | (uint64_t)m.n;
}

/* A constant before the loop. */
static TlValue *int_of(Expand *x, const TlType *t, TlWideInt v)
{
    int64_t number = (int64_t)v;
    uint64_t key = tl_hash(&t, sizeof t, tl_hash(&number, sizeof number, 0)), known;
    if (tl_map_get(&x->constants, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *made = tl_const_int(&x->before, t, number);
    tl_map_put(&x->constants, key, (uint64_t)(uintptr_t)made);
    return made;
}

/* ---- is there such an iteration? ---- */

static bool fits_type(const TlType *t, TlWideInt v)
{
    TlWideInt lo = tl_is_signed(t->dtype) ? -((TlWideInt)1 << (tl_dtype_bits(t->dtype) - 1)) : 0;
    TlWideInt hi = lo + (((TlWideInt)1 << tl_dtype_bits(t->dtype)) - 1);
    return lo <= v && v <= hi;
}

static TlWideInt type_end(const TlType *t, bool low)
{
    TlWideInt lo = tl_is_signed(t->dtype) ? -((TlWideInt)1 << (tl_dtype_bits(t->dtype) - 1)) : 0;
    return low ? lo : lo + (((TlWideInt)1 << tl_dtype_bits(t->dtype)) - 1);
}

bool tl_pipeline_has_trips(const TlOp *loop)
{
    TlWideInt step;
    return tl_const_int_value(tl_in(loop, 2), &step) ||
           tl_dtype_bits(tl_in(loop, 2)->type->dtype) <= 32;
}

/* hi - n * step, no further than the type goes; NULL: no iteration is n trips before the end. */
static TlValue *saturated_limit(Expand *x, TlWideInt step, int n)
{
    TlBuilder *b = &x->before;
    TlValue *hi = tl_in(x->loop, 1), *move;
    const TlType *t = hi->type;
    TlWideInt by = step * n, end = type_end(t, step > 0), edge = end + by, known;
    if (!fits_type(t, by > 0 ? by : -by) || !fits_type(t, edge))
        return NULL;
    if (tl_const_int_value(hi, &known))
        return int_of(x, t, fits_type(t, known - by) ? known - by : end);
    move = int_of(x, t, by > 0 ? by : -by);
    TlValue *moved = tl_binary(b, step > 0 ? TL_OP_SUB : TL_OP_ADD, hi, move);
    if (step > 0 ? x->s->bound_lo >= edge : x->s->bound_hi <= edge)
        return moved;
    TlValue *is_far = tl_binary(b, step > 0 ? TL_OP_GT : TL_OP_LT, hi, int_of(x, t, edge));
    return tl_select(b, is_far, moved, int_of(x, t, end));
}

static TlValue *known_step_test(Expand *x, TlBuilder *b, TlValue *counter, TlWideInt step, int n)
{
    TlValue *limit = n ? tl_map_get_ptr(&x->limits, (void *)(uintptr_t)n) : tl_in(x->loop, 1);
    if (!limit) {
        limit = saturated_limit(x, step, n);
        if (!limit)
            return int_of(x, tl_type_scalar(x->ctx, TL_BOOL), 0);
        tl_map_put_ptr(&x->limits, (void *)(uintptr_t)n, limit);
    }
    return tl_binary(b, step > 0 ? TL_OP_LT : TL_OP_GT, counter, limit);
}

static TlValue *any_step_test(Expand *x, TlBuilder *b, TlValue *counter, int n)
{
    TlValue *step = tl_cast(b, tl_in(x->loop, 2), TL_I64),
            *hi = tl_cast(b, tl_in(x->loop, 1), TL_I64);
    TlValue *i = tl_cast(b, counter, TL_I64), *zero = int_of(x, step->type, 0);
    TlValue *far = tl_binary(b, TL_OP_MUL, step, int_of(x, step->type, n));
    TlValue *limit = tl_binary(b, TL_OP_SUB, hi, far);
    TlValue *up = tl_binary(b, TL_OP_AND, tl_binary(b, TL_OP_GT, step, zero),
                            tl_binary(b, TL_OP_LT, i, limit));
    TlValue *down = tl_binary(b, TL_OP_AND, tl_binary(b, TL_OP_LT, step, zero),
                              tl_binary(b, TL_OP_GT, i, limit));
    return tl_binary(b, TL_OP_OR, up, down);
}

/* NULL: there is, always. */
static TlValue *test_of(Expand *x, Moment m)
{
    TlWideInt trips, step = 0;
    uint64_t key = moment_key(m, 0);
    TlValue *known = tl_map_get_ptr(&x->tests, (void *)(uintptr_t)(key + 1));
    if (known)
        return known;
    if (!m.in_loop && tl_const_trips(x->loop, &trips) && m.n < trips)
        return NULL;
    TlBuilder *b = builder(x, m);
    TlValue *counter = m.in_loop ? x->body->args[0] : tl_in(x->loop, 0);
    TlValue *test = tl_const_int_value(tl_in(x->loop, 2), &step) && step
                        ? known_step_test(x, b, counter, step, m.n)
                        : any_step_test(x, b, counter, m.n);
    tl_map_put_ptr(&x->tests, (void *)(uintptr_t)(key + 1), test);
    return test;
}

/* ---- values ---- */

static TlValue *value_at(Expand *x, TlValue *v, Moment m);

static TlValue *carry(Expand *x, const TlType *type, const char *name, Carried c)
{
    c.arg = tl_block_arg(x->body, type, name);
    tl_vec_push(x->arena, &x->carried, c);
    return c.arg;
}

/* A counter moved by n steps, but no further than its type goes (a multiple of the step, so that what is
 * known of its divisors stays): what is fetched for a trip that there is not is not used, and that the sum
 * does not wrap is known to who tests bounds. */
static TlValue *add_saturated(Expand *x, TlBuilder *b, TlValue *counter, TlWideInt step, int n)
{
    const TlType *t = counter->type;
    TlWideInt by = step * n, edge = step ? (type_end(t, by < 0) - by) / step * step : 0;
    if (by && fits_type(t, by) && fits_type(t, edge))
        counter = tl_binary(b, by > 0 ? TL_OP_MIN : TL_OP_MAX, counter, int_of(x, t, edge));
    return tl_binary(b, TL_OP_ADD, counter, int_of(x, t, by));
}

static TlValue *counter_at(Expand *x, Moment m)
{
    TlBuilder *b = builder(x, m);
    TlValue *from = m.in_loop ? x->body->args[0] : tl_in(x->loop, 0), *by = tl_in(x->loop, 2);
    TlWideInt step, lo;
    if (m.n == 0)
        return from;
    if (!tl_const_int_value(by, &step))
        return tl_binary(b, TL_OP_ADD, from, tl_binary(b, TL_OP_MUL, by, int_of(x, by->type, m.n)));
    if (tl_const_int_value(from, &lo))
        return int_of(x, by->type, lo + step * m.n);
    return add_saturated(x, b, from, step, m.n);
}

static void remember(Expand *x, const TlValue *v, Moment m, TlValue *made)
{
    tl_map_put(&x->values, moment_key(m, v->id), (uint64_t)(uintptr_t)made);
}

/* An argument of the body. */
static TlValue *carried_at(Expand *x, TlValue *v, Moment m)
{
    TlValue *yielded = tl_in(x->body->last, v->index - 1);
    if (!m.in_loop && m.n == 0)
        return tl_in(x->loop, v->index + 2);
    if (!m.in_loop)
        return value_at(x, yielded, (Moment){false, m.n - 1});
    Carried c = {.init = value_at(x, v, (Moment){false, m.n}), .of = yielded, .moment = m};
    return carry(x, v->type, v->name, c);
}

/* The mask of a fetch: its own, and the moment's test. */
static TlValue *mask_at(Expand *x, const TlFetch *f, const TlPlace *p, Moment m)
{
    TlBuilder *b = builder(x, m);
    TlValue *test = f->ends ? NULL : test_of(x, m),
            *mask = p->mask ? value_at(x, p->mask, m) : NULL;
    if (!test || !mask)
        return test ? test : mask;
    if (mask->type->rank)
        test = tl_op_new(b, TL_OP_BROADCAST, 1, &test, 1, &mask->type, 0, 0, NULL)->out[0];
    return tl_binary(b, TL_OP_AND, mask, test);
}

/* The load's operands at a moment and what else there is, in `in`; their number. */
static uint32_t place_at(Expand *x, const TlFetch *f, Moment m, TlValue **in, bool *out_mask)
{
    const TlOp *load = f->load;
    TlPlace p = tl_op_place(load);
    uint32_t n = load->nin - (p.mask != NULL) - (p.other != NULL);
    for (uint32_t i = 0; i < n; i++)
        in[i] = value_at(x, tl_in(load, i), m);
    TlValue *mask = mask_at(x, f, &p, m);
    if (mask)
        in[n++] = mask;
    *out_mask = mask != NULL;
    return n;
}

static void set_flag(Expand *x, TlOp *op, TlAttrId id, bool on)
{
    if (on)
        tl_attr_set(x->fn, op, (TlAttr){.id = id, .u.i = 1});
    else
        tl_attr_remove(op, id);
}

static TlValue *load_at(Expand *x, const TlFetch *f, Moment m)
{
    bool masked;
    TlValue **in = TL_NEW_ARRAY(x->arena, TlValue *, f->load->nin + 2);
    TlValue *other = tl_op_place(f->load).other;
    uint32_t n = place_at(x, f, m, in, &masked);
    if (other)
        in[n++] = value_at(x, other, m);
    TlBuilder *b = builder(x, m);
    b->loc = f->load->loc;
    TlOp *made = tl_op_new(b, TL_OP_LOAD, n, in, 1, &f->load->out[0]->type, 0, f->load->nattrs,
                           f->load->attrs);
    set_flag(x, made, TL_ATTR_MASK, masked);
    made->out[0]->name = f->load->out[0]->name;
    return made->out[0];
}

/* What the load gave when it was begun, ahead - n trips ago. */
static TlValue *waiting_at(Expand *x, const TlFetch *f, Moment m)
{
    TlValue *v = f->load->out[0];
    Carried c = {.init = value_at(x, v, (Moment){false, m.n}), .of = v, .moment = {true, m.n + 1}};
    return carry(x, v->type, v->name, c);
}

static TlValue *again_at(Expand *x, const TlOp *op, uint32_t result, Moment m)
{
    TlMap map;
    tl_map_init(&map, x->arena);
    for (uint32_t i = 0; i < op->nin; i++)
        tl_map_put_ptr(&map, tl_in(op, i), value_at(x, tl_in(op, i), m));
    return tl_op_clone(builder(x, m), op, &map)->out[result];
}

static TlValue *make_at(Expand *x, TlValue *v, Moment m)
{
    if (!v->def)
        return v->index == 0 ? counter_at(x, m) : carried_at(x, v, m);
    const TlFetch *f = tl_schedule_of(x->s, v->def);
    if (f && m.in_loop && m.n < f->ahead)
        return waiting_at(x, f, m);
    return f ? load_at(x, f, m) : again_at(x, v->def, v->index, m);
}

static TlValue *value_at(Expand *x, TlValue *v, Moment m)
{
    uint64_t known;
    if (tl_is_invariant(v, x->loop))
        return v;
    if (tl_map_get(&x->values, moment_key(m, v->id), &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *made = make_at(x, v, m);
    remember(x, v, m, made);
    return made;
}

/* ---- slots ---- */

static TlValue *slot_const(Expand *x, int slot)
{
    return int_of(x, tl_type_scalar(x->ctx, TL_I32), slot);
}

/* (slot + n) mod slots, for n < slots */
static TlValue *later_slot(Expand *x, TlBuilder *b, TlValue *slot, int n, int slots)
{
    uint64_t key = (uint64_t)slots << 8 | (uint64_t)n, known;
    if (tl_map_get(&x->later, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *sum = tl_binary(b, TL_OP_ADD, slot, slot_const(x, n));
    TlValue *over = tl_binary(b, TL_OP_GE, sum, slot_const(x, slots));
    sum = tl_select(b, over, tl_binary(b, TL_OP_SUB, sum, slot_const(x, slots)), sum);
    tl_map_put(&x->later, key, (uint64_t)(uintptr_t)sum);
    return sum;
}

/* Of this trip's gets. One counter for all buffers with so many slots. */
static TlValue *slot_counter(Expand *x, int slots)
{
    uint64_t i;
    if (tl_map_get(&x->slots, (uint64_t)slots, &i))
        return x->carried.data[i].arg;
    tl_map_put(&x->slots, (uint64_t)slots, x->carried.len);
    Carried c = {.init = slot_const(x, 0)};
    TlValue *slot = carry(x, tl_type_scalar(x->ctx, TL_I32), "slot", c);
    x->carried.data[x->carried.len - 1].next = later_slot(x, &x->start, slot, 1, slots);
    return slot;
}

static TlValue *slot_at(Expand *x, const TlFetch *f, Moment m)
{
    if (!m.in_loop || f->slots == 1)
        return slot_const(x, m.n % f->slots);
    TlValue *now = slot_counter(x, f->slots);
    return m.n ? later_slot(x, &x->start, now, m.n, f->slots) : now;
}

/* The buffer with all its slots, before the loop; gets of the old one read it. */
static TlValue *buffer_of(Expand *x, const TlFetch *f)
{
    TlValue *old = tl_in(f->put, 0), *made = tl_map_get_ptr(&x->buffers, old);
    if (made)
        return made;
    TlBuilder b = tl_builder_before(x->loop);
    const TlType *t = old->type;
    t = tl_type_buf(x->ctx, t->dtype, t->rank, t->shape, t->layout, f->slots);
    b.loc = f->load->loc;
    made = tl_op_new(&b, TL_OP_ALLOC, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    made->name = f->load->out[0]->name;
    tl_map_put_ptr(&x->buffers, old, made);
    return made;
}

static void redirect_gets(Expand *x, const TlFetch *f)
{
    TlValue *old = tl_in(f->put, 0), *made = buffer_of(x, f);
    for (TlUse *u = old->uses, *next; u; u = next) {
        next = u->next;
        if (f->slots > 1 && u->user->opcode == TL_OP_GET)
            tl_set_operand(u->user, 1, slot_counter(x, f->slots));
        tl_set_operand(u->user, 0, made);
    }
}

/* ---- fetches ---- */

static void set_ahead(Expand *x, TlOp *op, Moment m)
{
    if (m.in_loop && m.n)
        tl_attr_set(x->fn, op, (TlAttr){.id = TL_ATTR_AHEAD, .u.i = m.n});
}

static void copy_at(Expand *x, const TlFetch *f, Moment m)
{
    bool masked;
    TlValue **in = TL_NEW_ARRAY(x->arena, TlValue *, f->load->nin + 4);
    const TlType *t = f->load->out[0]->type;
    uint32_t n = place_at(x, f, m, in, &masked);
    in[n++] = buffer_of(x, f);
    in[n++] = slot_at(x, f, m);
    t = tl_type_token(x->ctx, t->dtype, t->rank, t->shape, t->layout);
    TlBuilder *b = builder(x, m);
    b->loc = f->load->loc;
    TlOp *made = tl_op_new(b, TL_OP_COPY, n, in, 1, &t, 0, f->load->nattrs, f->load->attrs);
    made->out[0]->name = f->load->out[0]->name;
    set_flag(x, made, TL_ATTR_OTHER, false);
    set_flag(x, made, TL_ATTR_MASK, masked);
    set_ahead(x, made, m);
}

static void put_at(Expand *x, const TlFetch *f, Moment m)
{
    TlValue *in[] = {buffer_of(x, f), slot_at(x, f, m), value_at(x, f->load->out[0], m)};
    TlBuilder *b = builder(x, m);
    b->loc = f->put->loc;
    set_ahead(x, tl_op_new(b, TL_OP_PUT, 3, in, 0, NULL, 0, 0, NULL), m);
}

/* A trip, or (before the loop) trip number t < 0: iterations from 0 on. */
static Moment moment_of(bool in_loop, int t, int ahead)
{
    return (Moment){in_loop, in_loop ? ahead : t + ahead};
}

static void begin_copies(Expand *x, bool in_loop, int t)
{
    bool any = false;
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        Moment m = moment_of(in_loop, t, f->ahead);
        if (f->how != TL_FETCH_COPY || m.n < 0)
            continue;
        copy_at(x, f, m);
        any = true;
    }
    if (any)
        tl_op_new(in_loop ? &x->start : &x->before, TL_OP_COMMIT, 0, NULL, 0, NULL, 0, 0, NULL);
}

/* What comes from registers: puts first, so that these get free. */
static void begin_loads(Expand *x, bool in_loop, int t)
{
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        Moment m = moment_of(in_loop, t, f->put_ahead);
        if (f->how == TL_FETCH_PUT && m.n >= 0)
            put_at(x, f, m);
    }
    for (uint32_t i = 0; i < x->s->fetches.len; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        Moment m = moment_of(in_loop, t, f->ahead);
        if (f->how != TL_FETCH_COPY && m.n >= 0)
            value_at(x, f->load->out[0], m);
    }
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
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = pending};
    tl_op_new(b, TL_OP_WAIT, 0, NULL, 0, NULL, 0, 1, &attr);
}

static void fill_body(Expand *x)
{
    int oldest = oldest_copy(x->s);
    if (oldest)
        wait_for(&x->start, oldest - 1);
    begin_copies(x, true, 0);
    begin_loads(x, true, 0);
}

static void yield_carried(Expand *x)
{
    for (uint32_t i = 0; i < x->carried.len; i++) {
        Carried c = x->carried.data[i];
        tl_add_operand(x->fn, x->body->last, c.next ? c.next : value_at(x, c.of, c.moment));
    }
}

/* This trip's part takes what was fetched. Nothing of the old body changes before all that is made of it is
 * there. */
static void use_fetched(Expand *x)
{
    uint32_t n = x->s->fetches.len;
    TlValue **now = TL_NEW_ARRAY(x->arena, TlValue *, n);
    for (uint32_t i = 0; i < n; i++) {
        const TlFetch *f = &x->s->fetches.data[i];
        if (f->put)
            redirect_gets(x, f);
        if (f->how != TL_FETCH_COPY)
            now[i] = value_at(x, f->load->out[0], (Moment){true, 0});
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

static void add_attrs(Expand *x, TlOp *loop)
{
    tl_attr_remove(loop, TL_ATTR_PIPELINE);
    tl_attr_set(x->fn, loop, (TlAttr){.id = TL_ATTR_PIPELINED, .u.i = x->s->stages});
}

/* The loop with room for what is carried now. */
static TlOp *remake_loop(Expand *x)
{
    uint32_t n = x->loop->nout, all = n + x->carried.len;
    TlValue **in = TL_NEW_ARRAY(x->arena, TlValue *, all + 3);
    const TlType **types = TL_NEW_ARRAY(x->arena, const TlType *, all);
    for (uint32_t i = 0; i < n + 3; i++)
        in[i] = tl_in(x->loop, i);
    for (uint32_t i = 0; i < all; i++) {
        types[i] = i < n ? x->loop->out[i]->type : x->carried.data[i - n].arg->type;
        in[i + 3] = i < n ? in[i + 3] : x->carried.data[i - n].init;
    }
    TlBuilder b = tl_builder_before(x->loop);
    TlOp *made =
        tl_op_new(&b, TL_OP_FOR, all + 3, in, all, types, 1, x->loop->nattrs, x->loop->attrs);
    TlBlock *body = made->regions[0];
    body->warps = x->body->warps;
    for (uint32_t i = 0; i <= all; i++) {
        TlValue *old = x->body->args[i];
        tl_replace_uses(old, tl_block_arg(body, old->type, old->name));
    }
    tl_block_move_ops(x->body, body, NULL);
    for (uint32_t i = 0; i < n; i++) {
        made->out[i]->name = x->loop->out[i]->name;
        tl_replace_uses(x->loop->out[i], made->out[i]);
    }
    tl_op_erase(x->loop);
    return made;
}

void tl_pipeline_expand(TlFn *fn, TlPassCtx *px, const TlSchedule *s)
{
    TlBlock *body = s->loop->regions[0];
    Expand x = {.fn = fn,
                .ctx = px->ctx,
                .arena = px->scratch,
                .s = s,
                .loop = s->loop,
                .body = body,
                .before = tl_builder_before(s->loop),
                .start = tl_builder_before(body->first)};
    TlMap *maps[] = {&x.values, &x.tests, &x.limits, &x.buffers, &x.slots, &x.later, &x.constants};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        tl_map_init(maps[i], px->scratch);
    for (int t = -s->most; t < 0; t++) {
        begin_copies(&x, false, t);
        begin_loads(&x, false, t);
    }
    fill_body(&x);
    use_fetched(&x);
    TlOp *loop = remake_loop(&x);
    add_attrs(&x, loop);
    if (oldest_copy(s)) {
        TlBuilder after = tl_builder_after(loop->out[0]);
        wait_for(&after, 0);
    }
}
