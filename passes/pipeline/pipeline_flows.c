/* One flow or two: do the kernel's warps begin the bulk copies of pipelined loops themselves, or
 * does a warp that does nothing else (specialize)?
 *
 *  1. Two are possible where all copies to shared memory are bulk copies, the other warp can
 *     compute where these are (producer.h), and there is room: for four more warps (registers go
 *     from one warpgroup to another), and for buffers that live all the time.
 *  2. A hint decides: `specialize` asks for two, `specialize(0)` for one. Without one, there are
 *     two where that hides something and costs nothing:
 *       - a loop stands in another: what the next tile needs comes while this one is stored; or a
 *         loop has products that wait for each other: between them its warps compute, and one that
 *         also copies keeps its warpgroup waiting;
 *       - a multiprocessor has room for one such block only, so that no other block does the same,
 *         and the registers of four more warps take the place of nothing.
 *     No figure of hardware stands behind this yet.
 *  3. With two, each iteration begins its own copies, into slots that are made once for the whole
 *     function; slot and parity run on through the loops around it. */
#include "ir/plan/shared_plan.h"
#include "ir/plan/staged.h"
#include "ir/remark.h"
#include "passes/analysis/alive.h"
#include "passes/analysis/producer.h"
#include "passes/pipeline/pipeline_impl.h"

enum { LEAST_SLOTS = 2 }; /* of a buffer: one is read while the other is filled */

/* ---- 1. possible ---- */

/* All copies to shared memory are bulk copies. What the warps load and put, they can put ahead
 * where slots begin with the loop: in no loop around it. */
static bool copies_are_bulk(const TlSchedules *all)
{
    bool bulk = false;
    for (uint32_t i = 0; i < all->len; i++)
        for (uint32_t k = 0; k < all->data[i].fetches.len; k++) {
            TlFetchHow how = all->data[i].fetches.data[k].how;
            bool in_loop = all->data[i].loop->block->parent;
            if (how == TL_FETCH_COPY || (how == TL_FETCH_PUT && in_loop))
                return false;
            bulk |= how == TL_FETCH_BULK;
        }
    return bulk;
}

static bool is_copied(const void *user, const TlOp *op)
{
    const TlSchedules *all = user;
    for (uint32_t i = 0; op->opcode == TL_OP_LOAD && i < all->len; i++) {
        const TlFetch *f = tl_schedule_of(&all->data[i], op);
        if (f && f->how == TL_FETCH_BULK)
            return true;
    }
    return false;
}

/* Does the buffer get its slots from a schedule? */
static bool is_of_loop(const TlSchedules *all, const TlOp *alloc)
{
    for (uint32_t i = 0; i < all->len; i++)
        for (uint32_t k = 0; k < all->data[i].fetches.len; k++) {
            const TlOp *put = all->data[i].fetches.data[k].put;
            if (put && tl_in(put, 0) == alloc->out[0])
                return true;
        }
    return false;
}

/* Buffers that live all the time. */
static uint64_t bytes_of(const TlSchedules *all)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < all->len; i++)
        bytes += tl_schedule_bytes(&all->data[i]) +
                 TL_SLOT_BARRIERS * (uint64_t)(all->data[i].stages + 1);
    return bytes;
}

/* Of everything else, at most: other buffers, with the greatest scratch in a loop, and the greatest
 * behind loops. */
static uint64_t other_bytes(const TlFn *fn, TlArena *arena, const TlSchedules *all)
{
    uint64_t buffers = 0, most[2] = {0, 0};
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool is_buffer = op->opcode == TL_OP_ALLOC, in_loop = op->block->parent;
        uint64_t bytes = tl_op_shared_bytes(arena, op);
        if (is_buffer)
            bytes = tl_buf_bytes(op->out[0]->type);
        if (is_buffer)
            buffers += is_of_loop(all, op) ? 0 : bytes;
        else if (bytes > most[in_loop])
            most[in_loop] = bytes;
    }
    return buffers + most[1] > most[0] ? buffers + most[1] : most[0];
}

static bool fits(const TlFn *fn, const TlPassCtx *px, const TlSchedules *all)
{
    return bytes_of(all) + other_bytes(fn, px->scratch, all) <= tl_pipeline_room(fn, px);
}

/* A slot less of each buffer that has more than `least`; false: none has. */
static bool drop_slots(TlSchedules *all, int least)
{
    bool any = false;
    for (uint32_t i = 0; i < all->len; i++)
        for (uint32_t k = 0; k < all->data[i].fetches.len; k++) {
            TlFetch *f = &all->data[i].fetches.data[k];
            bool drop = f->how == TL_FETCH_BULK && f->slots > least;
            f->slots -= drop;
            any |= drop;
        }
    return any;
}

/* With two flows any number of slots will do, from two on: as many as there is room for. */
static bool make_room(const TlFn *fn, const TlPassCtx *px, TlSchedules *all)
{
    TL_VEC(int) slots = {0}; /* as they were */
    for (uint32_t i = 0; i < all->len; i++)
        for (uint32_t k = 0; k < all->data[i].fetches.len; k++)
            tl_vec_push(px->scratch, &slots, all->data[i].fetches.data[k].slots);
    bool room = fits(fn, px, all);
    while (!room && drop_slots(all, LEAST_SLOTS))
        room = fits(fn, px, all);
    for (uint32_t i = 0, n = 0; !room && i < all->len; i++)
        for (uint32_t k = 0; k < all->data[i].fetches.len; k++)
            all->data[i].fetches.data[k].slots = slots.data[n++];
    return room;
}

static TlProducerFault find_fault(const TlFn *fn, const TlPassCtx *px, TlSchedules *all)
{
    TlProducer producer;
    if (!copies_are_bulk(all))
        return TL_PRODUCER_COPIES;
    if (!tl_producer_fits(fn, px->machine->lanes))
        return TL_PRODUCER_WARPS;
    if (!tl_producer_find(fn, px->scratch, is_copied, all, &producer))
        return TL_PRODUCER_PLACES;
    return make_room(fn, px, all) ? TL_PRODUCER_NONE : TL_PRODUCER_ROOM;
}

/* ---- 2. wanted ---- */

static bool is_said(const TlSchedules *all, bool what)
{
    for (uint32_t i = 0; i < all->len; i++) {
        const TlAttr *said = tl_attr(all->data[i].loop, TL_ATTR_SPECIALIZE);
        if (said && (said->u.i > 0) == what)
            return true;
    }
    return false;
}

static bool has_loop_around(const TlOp *loop)
{
    for (const TlOp *op = loop->block->parent; op; op = op->block->parent)
        if (op->opcode == TL_OP_FOR)
            return true;
    return false;
}

static bool products_wait(const TlFn *fn, TlArena *arena, const TlOp *loop)
{
    return tl_dots_are_chained(fn, arena, loop->regions[0]);
}

/* By an estimate of what is in registers at products. */
static bool is_alone(TlFn *fn, const TlPassCtx *px, const TlSchedules *all)
{
    int64_t words = 0, threads = (int64_t)fn->body->warps * px->machine->lanes;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool product = op->opcode == TL_OP_DOT_ASYNC || op->opcode == TL_OP_DOT;
        int64_t n = product ? tl_words_alive(fn, px->scratch, op) : 0;
        words = n > words ? n : words;
    }
    return 2 * threads * (words + TL_OTHER_REGISTERS) > TL_WARPGROUP_REGISTERS ||
           2 * bytes_of(all) > px->machine->shared_bytes;
}

static TlProducerFault ask_worth(TlFn *fn, const TlPassCtx *px, const TlSchedules *all)
{
    bool hides = false;
    for (uint32_t i = 0; i < all->len; i++)
        hides |= has_loop_around(all->data[i].loop) ||
                 products_wait(fn, px->scratch, all->data[i].loop);
    if (!hides)
        return TL_PRODUCER_HIDES_NOTHING;
    return is_alone(fn, px, all) ? TL_PRODUCER_NONE : TL_PRODUCER_CROWDED;
}

static TlProducerFault ask_wanted(TlFn *fn, const TlPassCtx *px, const TlSchedules *all)
{
    if (is_said(all, true))
        return TL_PRODUCER_NONE;
    return is_said(all, false) ? TL_PRODUCER_REFUSED : ask_worth(fn, px, all);
}

/* ---- 3. two flows ---- */

static bool has_bulk(const TlSchedule *s)
{
    for (uint32_t i = 0; i < s->fetches.len; i++)
        if (s->fetches.data[i].how == TL_FETCH_BULK)
            return true;
    return false;
}

/* A slot more where there is room, if the products of two iterations go on at the same time
 * (overlap-products): else nothing would be on its way meanwhile. */
static void add_slot(const TlFn *fn, const TlPassCtx *px, const TlSchedules *all, TlSchedule *s)
{
    uint64_t bytes = bytes_of(all) + other_bytes(fn, px->scratch, all) + TL_SLOT_BARRIERS;
    for (uint32_t i = 0; i < s->fetches.len; i++)
        if (s->fetches.data[i].how == TL_FETCH_BULK)
            bytes += tl_buf_slot_bytes(tl_in(s->fetches.data[i].put, 0)->type);
    bool room = bytes <= tl_pipeline_room(fn, px) && s->stages < TL_MAX_BUF_SLOTS;
    for (uint32_t i = 0; room && i < s->fetches.len; i++)
        s->fetches.data[i].slots += s->fetches.data[i].how == TL_FETCH_BULK;
}

static void begin_own_copies(TlSchedule *s)
{
    s->by_producer = true;
    s->most = 0;
    for (uint32_t i = 0; i < s->fetches.len; i++) {
        TlFetch *f = &s->fetches.data[i];
        f->ahead = f->how == TL_FETCH_BULK ? 0 : f->ahead;
        s->most = f->ahead > s->most ? f->ahead : s->most;
    }
}

void tl_pipeline_choose_flows(TlFn *fn, const TlPassCtx *px, TlSchedules *all)
{
    if (!px->machine->roles || !all->len)
        return;
    TlProducerFault fault = ask_wanted(fn, px, all);
    if (!fault)
        fault = find_fault(fn, px, all);
    for (uint32_t i = 0; i < all->len; i++) {
        bool turns = tl_attr_int(all->data[i].loop, TL_ATTR_SPECIALIZE, 0) == 2;
        TlAttr attr = {.id = TL_ATTR_SPECIALIZE, .u.i = fault ? 0 : 1 + turns};
        if (!has_bulk(&all->data[i]))
            continue;
        if (!fault && products_wait(fn, px->scratch, all->data[i].loop))
            add_slot(fn, px, all, &all->data[i]);
        if (!fault)
            begin_own_copies(&all->data[i]);
        else
            tl_remark(fn, all->data[i].loop, TL_REMARK_ONE_FLOW, fault);
        tl_attr_set(fn, all->data[i].loop, attr);
    }
}
