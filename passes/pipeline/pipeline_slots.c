/* Slots of a pipelined loop's buffers: iteration i is in slot i mod slots; a carried counter says
 * which one this iteration's gets read. */
#include "passes/pipeline/pipeline_impl.h"

static TlValue *slot_const(TlExpand *x, int slot)
{
    return tl_pipeline_int(x, tl_type_scalar(x->ctx, TL_I32), slot);
}

TlCarried tl_pipeline_from_0(TlExpand *x)
{
    bool runs_on = x->s->by_producer;
    const TlType *t = tl_type_scalar(x->ctx, TL_I32);
    TlValue *zero = runs_on ? tl_const_int(&x->home, t, 0) : slot_const(x, 0);
    return (TlCarried){.init = zero, .runs_on = runs_on};
}

TlValue *tl_pipeline_wraps(TlExpand *x, TlBuilder *b, TlValue *slot, int n, int slots)
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
    TlValue *over = tl_pipeline_wraps(x, b, slot, n, slots),
            *further = tl_binary(b, TL_OP_ADD, slot, slot_const(x, n)),
            *again =
                n == 1 ? slot_const(x, 0) : tl_binary(b, TL_OP_SUB, slot, slot_const(x, slots - n)),
            *then = tl_select(b, over, again, further);
    tl_map_put(&x->later, key, (uint64_t)(uintptr_t)then);
    return then;
}

TlValue *tl_pipeline_slot(TlExpand *x, int slots)
{
    uint64_t i;
    if (tl_map_get(&x->slots, (uint64_t)slots, &i))
        return x->carried.data[i].arg;
    tl_map_put(&x->slots, (uint64_t)slots, x->carried.len);
    TlCarried c = tl_pipeline_from_0(x);
    TlValue *slot = tl_pipeline_carry(x, tl_type_scalar(x->ctx, TL_I32), "slot", c);
    x->carried.data[x->carried.len - 1].next = later_slot(x, &x->start, slot, 1, slots);
    return slot;
}

/* The slot of the last iteration's gets: that of the iteration slots - 1 further on, too. */
TlValue *tl_pipeline_last_slot(TlExpand *x, int slots)
{
    uint64_t i, key = (uint64_t)slots | 1u << 8;
    if (tl_map_get(&x->slots, key, &i))
        return x->carried.data[i].arg;
    TlCarried c = {.init = slot_const(x, slots - 1), .next = tl_pipeline_slot(x, slots)};
    tl_map_put(&x->slots, key, x->carried.len);
    return tl_pipeline_carry(x, tl_type_scalar(x->ctx, TL_I32), "last", c);
}

TlValue *tl_pipeline_slot_at(TlExpand *x, const TlFetch *f, TlMoment m)
{
    TL_ASSERT(f->slots > 0, "a fetch without slots");
    if (!m.in_loop || f->slots == 1)
        return slot_const(x, m.n % f->slots);
    TlValue *now = tl_pipeline_slot(x, f->slots);
    if (f->slots > 2 && m.n == f->slots - 1)
        return tl_pipeline_last_slot(x, f->slots);
    return m.n ? later_slot(x, &x->start, now, m.n, f->slots) : now;
}

TlValue *tl_pipeline_buffer(TlExpand *x, const TlFetch *f)
{
    TL_ASSERT(f->put && tl_in(f->put, 0)->type->kind == TL_BUF, "a fetch without a buffer");
    TlValue *old = tl_in(f->put, 0), *made = tl_map_get_ptr(&x->buffers, old);
    if (made)
        return made;
    const TlType *t = old->type;
    int halved = t->halved - 1;
    t = tl_type_buf(x->ctx, t->dtype, t->rank, t->shape, t->layout, f->slots);
    t = tl_type_halved(x->ctx, t, halved);
    x->home.loc = f->load->loc;
    made = tl_op_new(&x->home, TL_OP_ALLOC, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    made->name = f->load->out[0]->name;
    tl_map_put_ptr(&x->buffers, old, made);
    return made;
}

void tl_pipeline_redirect_gets(TlExpand *x, const TlFetch *f)
{
    TlValue *old = tl_in(f->put, 0), *made = tl_pipeline_buffer(x, f);
    for (TlUse *u = old->uses, *next; u; u = next) {
        next = u->next;
        uint32_t i = (uint32_t)(u - u->user->in);
        if (f->slots > 1 && u->user->opcode != TL_OP_PUT)
            tl_set_operand(u->user, i + 1, tl_pipeline_slot(x, f->slots));
        tl_set_operand(u->user, i, made);
    }
}
