/* bulk-stores: a tile goes to memory as boxes of a tensor map, which one thread begins to store,
 * from a buffer where the others have put it.
 *
 *     %c = convert %x : tile<f16, 128, 256, #1>      %b = alloc : buf<f16, 128, 256, #2, 1>
 *     store %C, %m, %n, %c                     =>    put %b, 0, %x
 *                                                    bulk_store %C, %m, %n, %b, 0
 *                                                    ...
 *                                                    store_wait %b
 *                                                    return
 *
 *  1. Which stores: of whole tiles of rank 2 to views that are parameters, of which 16 bytes lie
 *     side by side for sure, in memory that nothing else in the kernel accesses: what is stored is
 *     there when the kernel ends, and nobody waits for it before. So there is none in a kernel with
 *     atomics that release. Iterations of a loop may store to one place, so the next one waits
 *     until memory has what this one stored; but not the parts of a persistent kernel, which are to
 *     each other as programs are. An iteration without loops is too short for that.
 *     A transposition between the conversion and the store goes in front of the conversion, where
 *     it costs as little.
 *  2. What is it worth? Threads need an instruction for each vector, which takes as long as it
 *     touches lines, and often exchange the tile before, since neighbours in memory are to be
 *     neighbours in a warp. To put it into the buffer takes its wavefronts; two barriers come with
 *     that.
 *  3. Is there room? The buffer may not cost the multiprocessor a block. Where loops are over, what
 *     was theirs is free.
 *     With --stress-layouts all are worth it that there is room for at all.
 *  4. `store_wait` stands before the next put, so that the next iteration's products come between,
 *     and at the end. */
#include "passes/pipeline/bulk_stores.h"
#include "ir/plan/bulk.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged_plan.h"
#include "ir/remark.h"
#include "passes/analysis/alive.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/footprint.h"
#include "passes/layout/layout_cost.h"
#include "passes/layout/relayout.h"
#include "passes/pipeline/allocate_shared.h"
#include "passes/pipeline/pipeline_impl.h"
#include <string.h>

enum {
    WAVEFRONT = 4, /* SHARED_RATE of passes/layout/layout_cost.c */
    BARRIER = 64,
    LEAST_RUN = 16, /* bytes that lie side by side */
    LEAST_ROWS = 8  /* of a box */
};

typedef struct Stores {
    TlFn *fn;
    TlPassCtx *px;
    TlLayoutCost cost;
    const TlAxisInfo *axis;
    TL_VEC(TlOp *) all;
    bool products; /* by matrix instructions: it is worth saying why not */
    TL_VEC(tile_image_slot) maps;
    TlPositions order;
} Stores;

/* A store as it may become: the tile, in the layout that it has before it is changed for the store.
 */
typedef struct Sending {
    TlOp *store;
    TlOp *convert; /* which only the store wants; NULL: none */
    TlValue *tile;
    const TlType *buf;
    TlAccessInfo access;
} Sending;

static bool is_product(const TlOp *op)
{
    return op->opcode == TL_OP_DOT_ASYNC ||
           (op->opcode == TL_OP_DOT && tl_attr(op, TL_ATTR_MMA));
}

/* ---- 1. which ---- */

static bool is_loop_of_parts(const TlOp *op)
{
    return op->opcode == TL_OP_FOR && tl_in(op, 2)->def &&
           tl_in(op, 2)->def->opcode == TL_OP_NBLOCKS;
}

static bool has_loop_inside(const TlOp *loop)
{
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        if (tl_is_loop(op))
            return true;
    return false;
}

/* May iterations of a loop around it store to one place, one after the other? */
static bool may_repeat(const TlOp *store)
{
    const TlOp *loop = tl_enclosing_loop(store);
    while (loop && is_loop_of_parts(loop))
        loop = tl_enclosing_loop(loop);
    return loop != NULL;
}

/* Do the iterations do too little to wait for each other's stores? */
static bool is_in_short_loop(const TlOp *store)
{
    const TlOp *loop = tl_enclosing_loop(store);
    return loop && !has_loop_inside(loop);
}

/* A flow, loops and branches are all that may be around it. */
static bool is_in_other_region(const TlOp *store)
{
    const TlOp *op = store->block->parent;
    while (op && (op->opcode == TL_OP_FOR || op->opcode == TL_OP_IF || op->opcode == TL_OP_ROLES))
        op = op->block->parent;
    return op != NULL;
}

static TlThreadsStore ask_others(const Stores *s, const TlOp *store)
{
    const TlFootprint *mine = tl_footprint(store, s->px->scratch);
    if (!mine)
        return TL_THREADS_MEMORY;
    for (const TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        const TlFootprint *f = op == store ? NULL : tl_footprint(op, s->px->scratch);
        int64_t order = tl_attr_int(op, TL_ATTR_ORDER, TL_ORDER_RELAXED);
        if (f && tl_footprints_overlap(mine, f))
            return TL_THREADS_MEMORY;
        if (order == TL_ORDER_RELEASE || order == TL_ORDER_ACQ_REL)
            return TL_THREADS_ORDER;
    }
    return TL_THREADS_NONE;
}

static TlThreadsStore ask_map(Stores *s, const Sending *x)
{
    TlBulk b;
    if (!tl_bulk_plan(s->px->scratch, x->store, x->buf, &b))
        return TL_THREADS_BOXES;
    TlPlace p = tl_op_place(x->store);
    tile_image_slot map = tl_bulk_slot(&b, tl_bulk_param(&p)->index);
    for (uint32_t i = 0; i < s->maps.len; i++)
        if (memcmp(&s->maps.data[i], &map, sizeof map) == 0)
            return TL_THREADS_NONE;
    if (s->maps.len == TL_MAX_MAPS)
        return TL_THREADS_MAPS;
    tl_vec_push(s->px->scratch, &s->maps, map);
    return TL_THREADS_NONE;
}

static TlThreadsStore ask_place(Stores *s, Sending *x)
{
    TlPlace p = tl_op_place(x->store);
    int bytes = tl_dtype_bytes(p.base->type->dtype);
    bool tested = s->px->machine->check && tl_attr_flag(x->store, TL_ATTR_UNCHECKED);
    if (p.mask || tested)
        return TL_THREADS_MASK;
    if (tl_attr(x->store, TL_ATTR_CACHE) || tl_attr(x->store, TL_ATTR_EVICT))
        return TL_THREADS_HINT;
    if (is_in_short_loop(x->store) || is_in_other_region(x->store))
        return TL_THREADS_LOOP;
    TlThreadsStore others = ask_others(s, x->store);
    if (others != TL_THREADS_NONE)
        return others;
    if (!p.axes || p.rank != 2 || tl_dtype_bits(p.base->type->dtype) < 8)
        return TL_THREADS_BOXES;
    if (x->access.dim < 0 || x->access.width * bytes < LEAST_RUN)
        return TL_THREADS_NARROW;
    x->buf = tl_staging_image_buf(s->px->ctx, s->px->scratch, x->tile->type, x->access.dim,
                                  TL_STAGING_PIECE);
    if (!x->buf || p.shape[1 - x->access.dim] < LEAST_ROWS)
        return TL_THREADS_SHORT;
    return TL_THREADS_NONE;
}

/* ---- 2. worth ---- */

static int64_t cost_by_threads(Stores *s, const Sending *x)
{
    const TlLayout *l = tl_op_layout(x->store);
    TlAccessCount n = tl_layout_access_count(&x->access, x->store, l);
    int64_t change = 0;
    if (x->convert)
        change = tl_layout_convert_cost(&s->cost, x->tile->type, x->tile->type->layout, l);
    return WAVEFRONT * n.accesses * n.lines + change;
}

static int64_t cost_by_boxes(const Stores *s, const Sending *x)
{
    enum { ANY = 16 };
    uint32_t flags = TL_BUF_WRITES | tl_buf_matrices(s->px->machine->matrix_8);
    const TlBufPlan *plan = tl_buf_plan(s->px->scratch, x->tile->type, x->buf, ANY, flags);
    TlStagingCost c =
        tl_staging_cost(s->px->scratch, tl_dtype_bytes(x->buf->dtype), x->tile->type->layout,
                        x->buf->layout, true, 0);
    int64_t wavefronts = plan->kind == TL_BUF_VECTOR ? (int64_t)c.wavefronts
                                                     : (int64_t)plan->naccesses * plan->words;
    return WAVEFRONT * wavefronts + 2 * BARRIER;
}

/* ---- 3. room ---- */

/* Of the buffer, from the put to the end of its flow; in a loop, always. */
static TlSharedLife life_of(const Stores *s, const Sending *x)
{
    TlSpan at = tl_position_of_use(&s->order, x->store, s->fn->body);
    return (TlSharedLife){.op = x->store,
                          .bytes = tl_buf_bytes(x->buf),
                          .alignment = tl_buf_alignment(x->buf),
                          .first = at.first,
                          .last = s->order.spans.len};
}

/* Blocks of a multiprocessor that registers allow, by what is in them at products. */
static int64_t blocks_by_registers(const Stores *s)
{
    int64_t words = 0, threads = (int64_t)s->fn->body->warps * s->px->machine->lanes;
    for (const TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        int64_t n = is_product(op) ? tl_words_alive(s->fn, s->px->scratch, op) : 0;
        words = n > words ? n : words;
    }
    int64_t blocks = TL_WARPGROUP_REGISTERS / (threads * (words + TL_OTHER_REGISTERS));
    return blocks < 1 ? 1 : blocks;
}

static bool has_room(const Stores *s, const Sending *x)
{
    enum { OF_BLOCK = 1024 }; /* that the system takes */
    TlSharedLife life = life_of(s, x);
    uint64_t before = tl_shared_total(s->fn, s->px, NULL, NULL),
             after = tl_shared_total(s->fn, s->px, x->convert, &life);
    int64_t all = s->px->machine->shared_bytes + OF_BLOCK,
            was = all / (int64_t)(before + OF_BLOCK), is = all / (int64_t)(after + OF_BLOCK),
            most = blocks_by_registers(s);
    if (after > s->px->machine->shared_bytes) /* conversions go in parts, buffers do not */
        return false;
    return after <= before ||
           (after <= tl_pipeline_room(s->fn, s->px) &&
            (s->px->machine->stress || is >= (was < most ? was : most)));
}

static TlThreadsStore ask(Stores *s, Sending *x)
{
    TlThreadsStore place = ask_place(s, x);
    if (place != TL_THREADS_NONE)
        return place;
    if (!s->px->machine->stress && cost_by_boxes(s, x) >= cost_by_threads(s, x))
        return TL_THREADS_CHEAP;
    if (!has_room(s, x))
        return TL_THREADS_ROOM;
    return ask_map(s, x);
}

/* ---- 4. into effect ---- */

static TlValue *zero(TlBuilder *b)
{
    return tl_const_int(b, tl_type_scalar(b->fn->module->ctx, TL_I32), 0);
}

static void wait_until_sent(TlBuilder *b, TlValue *buf, bool written)
{
    TlAttr attr = {.id = TL_ATTR_WRITTEN, .u.i = 1};
    tl_op_new(b, TL_OP_STORE_WAIT, 1, &buf, 0, NULL, 0, written, &attr);
}

/* The end of the outermost block that one flow has to itself. */
static TlOp *end_of_flow(const TlFn *fn, const TlOp *op)
{
    const TlBlock *b = op->block;
    while (b->parent && b->parent->opcode != TL_OP_ROLES)
        b = b->parent->block;
    TL_ASSERT(b->parent || b == fn->body, "a store in no flow of '%s'", fn->name);
    return b->last;
}

static void send(Stores *s, const Sending *x)
{
    static const TlAttrId kept[] = {TL_ATTR_AXES, TL_ATTR_UNCHECKED};
    TlOp *store = x->store;
    TlPlace p = tl_op_place(store);
    TlBuilder home = tl_builder_before(s->fn->body->first), b = tl_builder_before(store),
              end = tl_builder_before(end_of_flow(s->fn, store));
    home.loc = end.loc = store->loc;
    TlValue *buf = tl_op_new(&home, TL_OP_ALLOC, 0, NULL, 1, &x->buf, 0, 0, NULL)->out[0];
    TlValue *put[] = {buf, zero(&b), x->tile}, *in[TL_MAX_VIEW_RANK + 3];
    TlAttr attrs[sizeof kept / sizeof *kept];
    uint32_t n = 0, nattrs = 0;
    if (tl_enclosing_loop(store))
        wait_until_sent(&b, buf, may_repeat(store));
    tl_op_new(&b, TL_OP_PUT, 3, put, 0, NULL, 0, 0, NULL);
    in[n++] = p.base;
    for (uint32_t i = 0; i < p.naxes; i++)
        in[n++] = p.index[i].value;
    in[n++] = buf;
    in[n++] = put[1];
    for (uint32_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (tl_attr(store, kept[i]))
            attrs[nattrs++] = *tl_attr(store, kept[i]);
    tl_op_new(&b, TL_OP_BULK_STORE, n, in, 0, NULL, 0, nattrs, attrs);
    wait_until_sent(&end, buf, false);
    tl_op_erase(store);
    if (x->convert)
        tl_op_erase(x->convert);
}

/* The only user's operand, made by such an op; NULL. */
static TlOp *only_for_it(const TlValue *v, TlOpcode opcode)
{
    return v->def && v->def->opcode == opcode && v->uses && !v->uses->next ? v->def : NULL;
}

/* store trans(convert(x)) => store convert(trans(x)) */
static bool transpose_first(const Stores *s, TlOp *store)
{
    TlOp *trans = only_for_it(tl_op_place(store).value, TL_OP_TRANS),
         *convert = trans ? only_for_it(tl_in(trans, 0), TL_OP_CONVERT) : NULL;
    if (!convert)
        return false;
    TlValue *x = tl_in(convert, 0), *out = trans->out[0];
    const TlLayout *l = tl_layout_for_result(s->px->ctx, trans, 0, x->type->layout);
    if (!l)
        return false;
    const TlType *type = tl_type_with_layout(s->px->ctx, out->type, l);
    TlBuilder b = tl_builder_before(trans);
    TlValue *turned = tl_op_like(&b, trans, 1, &x, 1, &type)->out[0];
    tl_replace_uses(out, tl_relayout(&b, turned, out->type->layout));
    tl_op_erase(trans);
    tl_op_erase(convert);
    return true;
}

static Sending sending_of(const Stores *s, TlOp *store)
{
    TlValue *v = tl_op_place(store).value;
    Sending x = {.store = store, .tile = v, .access = tl_access_info(s->axis, store)};
    if (v->def && v->def->opcode == TL_OP_CONVERT && !v->uses->next) {
        x.convert = v->def;
        x.tile = tl_in(v->def, 0);
    }
    return x;
}

static void find_stores(Stores *s)
{
    for (TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        s->products |= is_product(op);
        if (op->opcode == TL_OP_STORE && tl_op_place(op).rank > 0)
            tl_vec_push(s->px->scratch, &s->all, op);
        if (!tl_is_bulk_copy(op))
            continue;
        Sending copy = {.store = op, .buf = tl_op_place(op).buf->type};
        ask_map(s, &copy);
    }
}

TlPassResult tl_pass_bulk_stores(TlFn *fn, TlPassCtx *px)
{
    Stores s = {.fn = fn, .px = px};
    bool changed = false;
    if (!tl_fn_is_laid_out(fn) || !px->machine->bulk)
        return TL_SAME;
    find_stores(&s);
    if (s.all.len == 0)
        return TL_SAME;
    for (uint32_t i = 0; i < s.all.len; i++)
        changed |= transpose_first(&s, s.all.data[i]);
    s.axis = tl_pass_axis_info(fn, px);
    tl_layout_cost_init(&s.cost, fn, px);
    for (uint32_t i = 0; i < s.all.len; i++) {
        Sending x = sending_of(&s, s.all.data[i]);
        tl_positions_init(&s.order, fn, px->scratch);
        TlThreadsStore why = ask(&s, &x);
        if (why == TL_THREADS_NONE)
            send(&s, &x);
        else if (x.convert || s.products)
            tl_remark(fn, x.store, TL_REMARK_BY_THREADS, why);
        changed |= why == TL_THREADS_NONE || x.convert || s.products;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
