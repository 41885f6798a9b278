/* Pairs: two programs of a cluster of two, which multiply rows of their own by the same columns,
 * do that as one product of twice as many rows. Each brings its own rows of A, and half of the
 * columns of B; the first one begins the product for both, each has the sums of its own rows.
 *
 *     %b = alloc : buf<f16, 64, 256, #0, 1>       %b = alloc : buf<f16, 64, 256, #1, 1, half 1>
 *     %m = tensor                            =>   %m = tensor {pair}
 *     dot_async %a, 0, %b, 0, %t                  dot_async %a, 0, %b, 0, %t {pair}
 *
 *  1. All products of the kernel are of pairs, or none: the hardware has it so. Each stands in a
 *     pipelined loop whose operands come by bulk copies alone, and where products say themselves
 *     that slots are free (pipeline_bulk.c): then the first program's warp is the only one that
 *     waits for copies, of both, and commits arrive at the barriers of both.
 *  2. What it brings: shared memory takes half of B, as does what copies write and products read
 *     there, and where that is what products wait for, they are faster. What it costs: where sums
 *     are made ready, the first program waits until threads of both have read what was there
 *     before. So it pays where many bytes are saved in each trip, for some trips.
 *  3. Only a form that is launched in whole clusters can do it (ir/form.h): `pairs`. */
#include "ir/plan/async_dot.h"
#include "ir/plan/bulk.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "ir/remark.h"
#include "passes/analysis/cluster.h"
#include "passes/analysis/pair.h"
#include "passes/pipeline/pipeline_impl.h"

typedef struct Pair {
    TlFn *fn;
    const TlPassCtx *px;
    TlArena *arena;
    const TlSchedules *all;
} Pair;

/* ---- 1. possible ---- */

static const TlSchedule *schedule_around(const Pair *p, const TlOp *dot)
{
    for (uint32_t i = 0; i < p->all->len; i++)
        if (p->all->data[i].loop == dot->block->parent)
            return &p->all->data[i];
    return NULL;
}

static const TlFetch *fetch_to(const TlSchedule *s, const TlValue *buf)
{
    for (uint32_t i = 0; i < s->fetches.len; i++) {
        const TlFetch *f = &s->fetches.data[i];
        if (f->how == TL_FETCH_BULK && tl_in(f->put, 0) == buf)
            return f;
    }
    return NULL;
}

/* Does one product read it, and nothing else? */
static bool is_of_one_product(const TlFetch *f, const TlOp *dot)
{
    uint32_t n = 0;
    for (const TlUse *u = tl_in(f->put, 0)->uses; u; u = u->next)
        n += u->user == dot ? 1 : u->user == f->put ? 0 : 2;
    return n == 1;
}

static bool is_of_kind(const TlOp *dot)
{
    const TlMma *mma = tl_mma_find(tl_attr(dot, TL_ATTR_MMA)->u.s);
    const TlTensorMma *tensor = mma ? tl_tensor_mma_of(mma) : NULL;
    return tensor && tensor->rows == TL_TENSOR_LANES && !mma->each;
}

/* The axis of the tile along which rows of boxes run. */
static int row_of(const TlBulk *bulk, const TlOp *load)
{
    TlPlace p = tl_op_place(load);
    return tl_place_dim(&p, bulk->row);
}

/* B's buffer with a half of its columns for each program, of one slot; NULL: there is none. */
static const TlType *halved_type(const Pair *p, const TlOp *dot, const TlFetch *f)
{
    TlAsyncDot d = tl_async_dot(dot);
    const TlMma *mma = tl_mma_find(tl_attr(dot, TL_ATTR_MMA)->u.s);
    const TlType *t = d.side[TL_MMA_B].buf->type;
    int axis = d.side[TL_MMA_B].flipped ? 0 : 1;
    if (t->shape[axis] % 2)
        return NULL;
    int32_t half[2] = {t->shape[0], t->shape[1]};
    half[axis] /= 2;
    const TlType *tile = tl_type_tile(p->px->ctx, t->dtype, 2, half);
    for (int row = 0; row < 2; row++) {
        int piece = tl_async_piece(mma, tl_dtype_bytes(t->dtype), row == axis);
        const TlType *own =
            piece ? tl_staging_image_buf(p->px->ctx, p->arena, tile, row, piece) : NULL;
        TlBulk bulk;
        if (!own)
            continue;
        TlLayout l = *own->layout;
        l.reps[axis] *= 2;
        const TlType *both =
            tl_type_buf(p->px->ctx, t->dtype, 2, t->shape, tl_layout_intern(p->px->ctx, &l), 1);
        both = tl_type_halved(p->px->ctx, both, axis);
        TlValue as_if = {.type = both};
        TlAsyncSide sides[TL_ASYNC_SIDES] = {d.side[TL_MMA_A], d.side[TL_MMA_B]};
        sides[TL_MMA_B].buf = &as_if;
        if (tl_bulk_plan(p->arena, f->load, t, &bulk) && row_of(&bulk, f->load) == row &&
            tl_bulk_plan(p->arena, f->load, both, &bulk) &&
            tl_async_plan(p->arena, mma, sides, dot->out[0]->type))
            return both;
    }
    return NULL;
}

static TlPairFault fault_of(const Pair *p, const TlOp *dot)
{
    const TlSchedule *s = schedule_around(p, dot);
    if (!is_of_kind(dot))
        return TL_PAIR_PRODUCTS;
    TlAsyncDot d = tl_async_dot(dot);
    const TlFetch *a = s ? fetch_to(s, d.side[TL_MMA_A].buf) : NULL,
                  *b = s ? fetch_to(s, d.side[TL_MMA_B].buf) : NULL;
    if (!a || !b || !is_of_one_product(b, dot) || !tl_pipeline_products_release(s))
        return TL_PAIR_LOOP;
    TlShareFault of_a = tl_share_fault(p->fn, p->arena, a->load, NULL),
                 of_b = tl_share_fault(p->fn, p->arena, b->load, NULL);
    if (of_b != TL_SHARE_NONE)
        return of_b == TL_SHARE_TRIPS ? TL_PAIR_TRIPS : TL_PAIR_B;
    if (of_a != TL_SHARE_PLACE)
        return TL_PAIR_A;
    return halved_type(p, dot, b) ? TL_PAIR_NONE : TL_PAIR_HALVES;
}

/* ---- 2. worth it ---- */

/* In wavefronts of shared memory: what half of B takes, written and read once for each 128 rows, in
 * so many trips; and what two programs that wait for each other do not do meanwhile. No figure of
 * hardware stands behind these yet. */
static bool is_worth(const TlOp *dot)
{
    enum { WAVEFRONT = 128, TRIPS = 8, MEETING = 512 };
    TlAsyncDot d = tl_async_dot(dot);
    const TlType *b = d.side[TL_MMA_B].buf->type;
    int64_t bytes = tl_type_elems(b) * tl_dtype_bytes(b->dtype) / 2,
            times = 1 + dot->out[0]->type->shape[0] / TL_TENSOR_LANES;
    return bytes * times / WAVEFRONT * TRIPS >= MEETING;
}

static TlPairFault ask(const Pair *p)
{
    const TlKernelInfo *info = p->fn->info;
    if (tl_cluster_size(p->fn) != 2)
        return TL_PAIR_CLUSTER;
    if (!info->promise.pairs)
        return TL_PAIR_FORM;
    for (const TlOp *op = p->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlPairFault fault = op->opcode == TL_OP_RESCALE || op->opcode == TL_OP_DOT
                                ? TL_PAIR_PRODUCTS
                                : TL_PAIR_NONE;
        if (op->opcode == TL_OP_DOT_ASYNC)
            fault = fault_of(p, op);
        if (op->opcode == TL_OP_DOT_ASYNC && !fault && !is_worth(op))
            fault = TL_PAIR_COST;
        if (fault)
            return fault;
    }
    return TL_PAIR_NONE;
}

/* ---- the kernel's products become those of pairs ---- */

static TlOp *tensor_of(const TlFn *fn)
{
    TlOp *op = fn->body->first;
    while (op && op->opcode != TL_OP_TENSOR)
        op = op->next;
    return op;
}

static void take_up(const Pair *p, TlOp *dot)
{
    const TlAttr pair = {.id = TL_ATTR_PAIR, .u.i = 1};
    TlValue *b = tl_async_dot(dot).side[TL_MMA_B].buf;
    b->type = halved_type(p, dot, fetch_to(schedule_around(p, dot), b));
    tl_attr_set(p->fn, dot, pair);
}

/* One more barrier, where both programs arrive. */
static void take_up_tensor(const Pair *p, TlOp *tensor)
{
    const TlAttr pair = {.id = TL_ATTR_PAIR, .u.i = 1};
    TlValue *bars = tensor->out[0];
    const TlType *t = bars->type;
    bars->type = tl_type_buf(p->px->ctx, t->dtype, t->rank, t->shape, t->layout, t->slots + 1);
    tl_attr_set(p->fn, tensor, pair);
}

static void say(const Pair *p, TlPairFault fault)
{
    for (uint32_t i = 0; i < p->all->len; i++)
        tl_remark(p->fn, p->all->data[i].loop, TL_REMARK_NO_PAIR, fault);
}

bool tl_pipeline_choose_pair(TlFn *fn, const TlPassCtx *px, const TlSchedules *all)
{
    Pair p = {.fn = fn, .px = px, .arena = px->scratch, .all = all};
    TlOp *tensor = tensor_of(fn);
    if (!tensor || !px->machine->multicast || !fn->info || fn->info->cluster < 2)
        return false;
    TlPairFault fault = ask(&p);
    if (fault) {
        say(&p, fault);
        return false;
    }
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_DOT_ASYNC)
            take_up(&p, op);
    take_up_tensor(&p, tensor);
    return true;
}
