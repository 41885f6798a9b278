/* What layouts cost (layout_cost.h).
 *
 * All figures are per warp, in slots of one of a multiprocessor's four schedulers: a simple
 * instruction takes 1; what the multiprocessor does once per cycle for all four (a shuffle, a load
 * of four sectors that are in the first-level cache) takes 4. A wavefront of shared memory takes
 * what the machine says (TlMachine.wavefront): 4, but 1 where an instruction of a wave takes four
 * cycles. A sector (32 bytes) of global memory takes 4 as well, half of what the second-level cache
 * can do: loads pay each once, since what a warp touches again it finds in the first level; stores
 * and atomics pay in every access. A barrier takes 64, as the plans of conversions have it. What a
 * loop with a pipeline hint loads pays 4 for each register in which it waits for its iteration.
 *
 * Replicated data needs no rule: more registers are more work of every warp. */
#include "passes/layout/layout_cost.h"
#include "ir/plan/layout_convert.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/mma.h"
#include "ir/plan/table_plan.h"
#include "passes/analysis/facts.h"

enum {
    SHARED_RATE = 4, /* shuffle, issue of an access */
    SECTOR = 4,
    NARROW = 2, /* of an access of less than a register: what it moves is packed */
    REGISTER_BYTES = 4,
    WAITING = 4, /* per register held from one iteration to the next */
    BARRIER = 64,
    SECTOR_BYTES = 32,
    LINE_BYTES = 128,
    MOST_TRIPS = 64 /* so that one loop does not outweigh everything outside of it */
};

TlLayoutCost tl_layout_costs(TlPassCtx *px)
{
    int known = px->machine->wavefront;
    return (TlLayoutCost){.ctx = px->ctx,
                          .arena = px->scratch,
                          .wavefront = known ? known : SHARED_RATE,
                          .copies = px->machine->copies && !px->machine->copies_rows};
}

void tl_layout_cost_init(TlLayoutCost *c, const TlFn *fn, TlPassCtx *px)
{
    TlArena *arena = px->scratch;
    *c = tl_layout_costs(px);
    tl_map_init(&c->accesses, arena);
    const TlAxisInfo *axis = tl_pass_axis_info(fn, px);
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!(tl_op_info(op->opcode)->flags & (F_READ | F_WRITE)) || tl_op_place(op).rank == 0)
            continue;
        TlAccessInfo *info = TL_NEW(arena, TlAccessInfo);
        *info = tl_access_info(axis, op);
        tl_map_put_ptr(&c->accesses, op, info);
    }
}

int64_t tl_layout_trips(const TlOp *loop)
{
    return tl_likely_trips(loop, MOST_TRIPS);
}

int64_t tl_layout_frequency(const TlBlock *b)
{
    TL_ASSERT(b->fn, "a block of no function");
    return tl_likely_runs(b, NULL, MOST_TRIPS);
}

/* ---- conversions ---- */

static int64_t plan_cost(TlArena *arena, int wavefront, const TlType *t, const TlLayout *from,
                         const TlLayout *to)
{
    const TlConvert *p = tl_convert_plan(arena, t, from, to, 0, 0);
    switch (p->kind) {
    case TL_CONVERT_NONE: return 0;
    case TL_CONVERT_RENAME: return 1;
    case TL_CONVERT_SHUFFLE: return 1 + SHARED_RATE * (int64_t)p->shuffles + p->selects;
    case TL_CONVERT_SHARED:
        return wavefront * ((int64_t)p->write.wavefronts + p->read.wavefronts) +
               BARRIER * (int64_t)p->nrounds;
    }
    TL_UNREACHABLE("convert kind %d", (int)p->kind);
}

/* A tile of the same shape, of unsigned elements of this size. */
static const TlType *plain_type(TlCtx *ctx, const TlType *t, int log)
{
    static const TlDtype by_log[] = {TL_U8, TL_U16, TL_U32, TL_U64};
    return tl_type_tile(ctx, by_log[log], t->rank, t->shape);
}

int64_t tl_layout_convert_cost(TlLayoutCost *c, const TlType *t, const TlLayout *from,
                               const TlLayout *to)
{
    TL_ASSERT(t->kind == TL_TILE && from && to, "a conversion without layouts");
    if (from == to)
        return 0;
    int log = tl_ceil_log2(t->ptr ? 8 : tl_dtype_bytes(t->dtype)); /* one size, one cost */
    const void *what[2] = {from, to};
    uint64_t known,
        key = tl_hash(t->shape, sizeof *t->shape * t->rank, (uint64_t)(log + 8 * c->wavefront));
    key = tl_hash(what, sizeof what, key);
    if (tl_map_get(&c->ctx->convert_costs, key, &known))
        return (int64_t)known;
    TlArena plan;
    tl_arena_init(&plan, c->arena->alloc);
    int64_t cost = plan_cost(&plan, c->wavefront, plain_type(c->ctx, t, log), from, to);
    tl_arena_free(&plan);
    tl_map_put(&c->ctx->convert_costs, key, (uint64_t)cost);
    return cost;
}

/* ---- memory ---- */

/* How many sectors the lanes of a warp go to in one access, or (with_registers) in all. Places that
 * differ in the lowest `near` bits along `dim` only are in one sector. */
static int64_t sectors(const TlLayout *l, int dim, int near, bool with_registers)
{
    TL_ASSERT(dim < l->nout, "axis %d of a layout of rank %d", dim, (int)l->nout);
    TlLayout far = *l;
    int64_t reps = 1;
    for (int d = 0; d < l->nout; d++) {
        int shift = d != dim ? 0 : near < l->out_bits[d] ? near : l->out_bits[d];
        far.out_bits[d] = (uint8_t)(l->out_bits[d] - shift);
        far.reps[d] = 1;
        reps *= l->reps[d];
        for (int i = 0; i < l->nin; i++)
            for (int b = 0; b < l->in_bits[i]; b++) {
                bool counts = l->in[i] == TL_IN_LANE || (with_registers && l->in[i] == TL_IN_REG);
                far.basis[i][b][d] = counts ? l->basis[i][b][d] >> shift : 0;
            }
    }
    return (int64_t)(1 << tl_layout_rank(&far)) * (with_registers ? reps : 1);
}

static int64_t load_cost(int64_t accesses, int64_t each, int64_t all)
{
    return accesses * SHARED_RATE * (each < 4 ? 1 : each / 4) + (SECTOR - 1) * all;
}

TlAccessCount tl_layout_access_count(const TlAccessInfo *info, const TlOp *op, const TlLayout *l)
{
    TL_ASSERT(info->width > 0 && info->dim < (int)l->nout,
              "an access along axis %d of a layout of rank %d", info->dim, (int)l->nout);
    TlPlace p = tl_op_place(op);
    int near = 0, line = 0, bytes = tl_dtype_bytes(p.base->type->dtype);
    if (info->dim >= 0) {
        near = tl_floor_log2(SECTOR_BYTES / bytes);
        line = tl_floor_log2(LINE_BYTES / bytes);
    }
    TlAccessCount c = {.vector = tl_access_vector(info, op, l)};
    c.accesses = tl_layout_registers(l) / c.vector;
    c.sectors = sectors(l, info->dim, near, false);
    c.all_sectors = sectors(l, info->dim, near, true);
    c.lines = sectors(l, info->dim, line, false);
    return c;
}

/* Loads of a pipelined loop occupy registers until their iteration. */
static int64_t waiting_cost(const TlOp *load, int64_t bytes)
{
    return tl_is_in_hinted_loop(load) ? WAITING * (bytes / REGISTER_BYTES) : 0;
}

static int64_t access_cost(TlLayoutCost *c, const TlOp *op, const TlLayout *l)
{
    const TlAccessInfo *info = tl_map_get_ptr(&c->accesses, op);
    if (!info)
        return 0;
    TlAccessCount n = tl_layout_access_count(info, op, l);
    int bytes = n.vector * tl_dtype_bytes(tl_op_place(op).base->type->dtype);
    int64_t packing = bytes < REGISTER_BYTES ? NARROW * n.accesses : 0;
    if (op->opcode == TL_OP_LOAD)
        return packing + load_cost(n.accesses, n.sectors, n.all_sectors) +
               waiting_cost(op, n.accesses * bytes);
    int64_t each = SHARED_RATE + SECTOR * n.sectors;
    return packing + n.accesses * each * (op->opcode == TL_OP_STORE ? 1 : 4);
}

bool tl_layout_staged_cost(const TlLayoutCost *c, const TlOp *load, const TlLayout *from,
                           const TlLayout *to, int64_t *out)
{
    const TlAccessInfo *info = tl_map_get_ptr(&c->accesses, load);
    int bytes = tl_dtype_bytes(load->out[0]->type->dtype);
    if (!info || tl_access_vector(info, load, from) * bytes < REGISTER_BYTES)
        return false;
    int64_t elements = tl_layout_registers(from) + tl_layout_registers(to);
    *out = c->copies ? 1 : SHARED_RATE * elements * bytes / REGISTER_BYTES;
    return true;
}

/* ---- other ops ---- */

/* One element of an op without regions. */
static int64_t element_cost(const TlOp *op)
{
    const TlType *t = op->nout ? op->out[0]->type : NULL;
    int64_t wide = t && !t->ptr && tl_dtype_bits(t->dtype) == 64 ? 2 : 1;
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (flags & F_ELEM)
        return tl_elem_work(op->opcode)->gpu * wide;
    if (flags & F_VIEWLIKE || op->opcode == TL_OP_CONST)
        return 0;
    return op->opcode == TL_OP_INSIDE ? 3 : wide;
}

static int64_t region_cost(const TlOp *op)
{
    int64_t cost = 0;
    for (const TlOp *o = tl_walk_next(op, op); o; o = tl_walk_next(o, op))
        cost += element_cost(o);
    return cost ? cost : 1;
}

/* Bits of an input that lead along `axis`. */
static int bits_along(const TlLayout *l, TlInDim in, int axis)
{
    TL_ASSERT(axis < l->nout, "axis %d of a layout of rank %d", axis, (int)l->nout);
    int i = tl_layout_in_index(l, in), n = 0;
    for (int b = 0; i >= 0 && b < l->in_bits[i]; b++)
        n += l->basis[i][b][axis] != 0;
    return n;
}

/* First in each thread, then by shuffles, then through shared memory: only what remains. */
static int64_t reduce_cost(TlLayoutCost *c, const TlOp *op, const TlLayout *l)
{
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    TL_ASSERT(axis >= 0 && axis < l->nout, "a reduction along axis %d of %d", axis, (int)l->nout);
    int64_t all = tl_layout_registers(l), combine = region_cost(op);
    int64_t left =
        tl_layout_registers(tl_layout_restricted(c->ctx, l, ~(1u << axis))); /* all >= left */
    int64_t cost = (all - left) * combine;
    cost += bits_along(l, TL_IN_LANE, axis) * left * (SHARED_RATE + combine);
    if (bits_along(l, TL_IN_WARP, axis))
        cost += BARRIER + 4 * SHARED_RATE * left;
    return cost * op->nout;
}

/* log2 of the neighbours along the axis that a thread has in registers. */
static int own_bits(const TlLayout *l, int axis)
{
    int in = tl_layout_in_index(l, TL_IN_REG), run = 0, b = 0;
    while (in >= 0 && b < l->in_bits[in]) {
        bool is_next = l->basis[in][b][axis] == 1 << run;
        for (int d = 0; d < l->nout; d++)
            is_next = is_next && (d == axis || l->basis[in][b][d] == 0);
        run += is_next;
        b = is_next ? 0 : b + 1;
    }
    return run;
}

/* Neighbours in each thread, then totals of these by shuffles and through shared memory, where each
 * thread reads those of all warps; last, what comes before each goes to its elements. */
static int64_t scan_cost(const TlLayoutCost *c, const TlOp *op, const TlLayout *l)
{
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0), own = own_bits(l, axis);
    int64_t all = tl_layout_registers(l), cells = all >> own, combine = region_cost(op);
    int64_t warps = (int64_t)1 << bits_along(l, TL_IN_WARP, axis);
    int64_t cost = (all - cells) * combine + all * combine;
    cost += bits_along(l, TL_IN_LANE, axis) * cells * (SHARED_RATE * op->nout + combine);
    if (warps > 1)
        cost += BARRIER + cells * (c->wavefront * op->nout * (1 + warps) + warps * combine);
    return cost;
}

/* By fma, with operands through shared memory: for each k, each thread reads a column and a row of
 * its elements. */
static int64_t dot_cost(TlLayoutCost *c, const TlOp *op, const TlLayout *l)
{
    TL_ASSERT(op->opcode == TL_OP_DOT && l->nout >= 2, "a product of rank %d", (int)l->nout);
    if (tl_mma_of(op)) /* it has one layout only */
        return 0;
    const TlType *a = tl_in(op, 0)->type;
    uint32_t m = 1u << (l->nout - 2), n = 1u << (l->nout - 1);
    int64_t rows = tl_layout_registers(tl_layout_restricted(c->ctx, l, m)),
            columns = tl_layout_registers(tl_layout_restricted(c->ctx, l, n));
    return a->shape[a->rank - 1] * (tl_layout_registers(l) + 2 * (rows + columns));
}

/* Through shared memory, one element after the other: which thread reads what is not known. */
static int64_t gather_cost(const TlOp *op, const TlLayout *l)
{
    enum { CONFLICTS = 2 };
    const TlLayout *from = tl_in(op, 0)->type->layout;
    int64_t write = from ? tl_layout_registers(from) : tl_layout_registers(l);
    return BARRIER + SHARED_RATE * (write + CONFLICTS * tl_layout_registers(l));
}

static int64_t histogram_cost(const TlOp *op, const TlLayout *l)
{
    TlHistogramWay way = tl_histogram_way(op, l);
    return way.adds ? way.adding : way.counting;
}

int64_t tl_layout_op_cost(TlLayoutCost *c, const TlOp *op, const TlLayout *l)
{
    if (!l)
        return 0;
    if (op->opcode == TL_OP_REDUCE)
        return reduce_cost(c, op, l);
    if (op->opcode == TL_OP_SCAN)
        return scan_cost(c, op, l);
    if (op->opcode == TL_OP_DOT)
        return dot_cost(c, op, l);
    if (op->opcode == TL_OP_REGROUP || op->opcode == TL_OP_GATHER)
        return gather_cost(op, l);
    if (op->opcode == TL_OP_HISTOGRAM)
        return histogram_cost(op, l);
    if (op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE || op->opcode == TL_OP_IF)
        return 0;
    if (tl_op_info(op->opcode)->flags & (F_READ | F_WRITE))
        return access_cost(c, op, l);
    return tl_layout_registers(l) * element_cost(op);
}
