/* spread-exp2: where special functions take a loop's threads longest, some of its powers of two are
 * computed by sums and products, whose units have time left.
 *
 *     for ... {                               for ... {
 *       %s = await ...                          %s = await ...
 *       %m = reduce %s {kind = max}             %m = reduce %s {kind = max}
 *       %p = exp2 (%s - %m) {flush}      =>     %p = exp2 (%s - %m) {flush, spread = 5}
 *       %t = dot_async ...                      %t = dot_async ...
 *     }                                       }
 *
 *  1. Where: innermost loops with products into tensor memory, of machines that add and multiply
 *     two f32 at once (others begin too few instructions for it). Other loops wait for memory. Of
 *     powers whose subnormal results may be 0: tiles of which each thread has pairs of registers.
 *  2. What a trip takes, in cycles of a multiprocessor, by the machine's rates. Products go on
 *     beside it. Threads first do what reductions need that powers are computed from, then the
 *     rest: this takes as long as the unit that has most to do, which may be the special functions,
 *     the multiply-adds, or what begins instructions. Ops in branches count nothing.
 *  3. How many: of 16 pairs of registers the least number with which the longer of both, products
 *     and threads, is shortest.
 *
 * The arithmetic (codegen/gen/gen_exp2.c) is no less exact than the instruction. */
#include "ir/exp_form.h"
#include "ir/plan/async_dot.h"
#include "ir/remark.h"
#include "passes/pass.h"

/* Of a power by arithmetic, in halves: instructions, two f32 being one (three extremes, one for the
 * exponent, halves of three sums and six multiply-adds); those sums and multiply-adds. */
enum { HALVES = 2, BEGUN = 17, ADDED = 18 };
enum { PAIRS = TL_SPREAD_PAIRS };

/* What the units have to do, in halves of what they do for an element in a cycle of a lane. */
typedef struct Load {
    int64_t issue, fma, special;
} Load;

typedef struct Trip {
    const TlMachine *machine;
    TlArena *arena;
    TlOp *loop;
    TlMap first;       /* ops that reductions need which powers are computed from */
    Load before, rest; /* of these; of the others */
    int64_t powers;    /* elements that may be spread */
    int64_t products;  /* multiply-adds of 16 bits */
} Trip;

/* ---- 1. where ---- */

/* The first op of that kind in the loop, or its branches and loops; NULL: none. */
static const TlOp *inside(const TlOp *loop, TlOpcode opcode)
{
    const TlOp *op = tl_walk_next(loop, loop);
    while (op && op->opcode != opcode)
        op = tl_walk_next(op, loop);
    return op;
}

static bool can_be_spread(const TlOp *op)
{
    const TlValue *v = op->opcode == TL_OP_EXP2 ? op->out[0] : NULL;
    return v && v->type->rank && tl_layout_registers(v->type->layout) % 2 == 0 &&
           tl_attr_int(op, TL_ATTR_APPROX, TL_APPROX_ANY) == TL_APPROX_FLUSH;
}

/* ---- 2. what a trip takes ---- */

typedef TL_VEC(const TlOp *) Ops;

static void add_sources(const Trip *t, Ops *work, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlOp *def = tl_in(op, i)->def;
        if (def && def->block == t->loop->regions[0])
            tl_vec_push(t->arena, work, def);
    }
}

/* What op is computed from in the loop's block. */
static void find_sources(const Trip *t, const TlOp *op, TlMap *found)
{
    Ops work = {0};
    add_sources(t, &work, op);
    for (uint32_t i = 0; i < work.len; i++) {
        if (tl_map_get_ptr(found, work.data[i]))
            continue;
        tl_map_put_ptr(found, work.data[i], work.data[i]);
        add_sources(t, &work, work.data[i]);
    }
}

static void find_first(Trip *t)
{
    TlMap of_powers;
    tl_map_init(&of_powers, t->arena);
    tl_map_init(&t->first, t->arena);
    const TlBlock *body = t->loop->regions[0];
    for (const TlOp *op = body->first; op; op = op->next)
        if (can_be_spread(op))
            find_sources(t, op, &of_powers);
    for (const TlOp *op = body->first; op; op = op->next)
        if (op->opcode == TL_OP_REDUCE && tl_map_get_ptr(&of_powers, op)) {
            tl_map_put_ptr(&t->first, op, op);
            find_sources(t, op, &t->first);
        }
}

static bool is_added(const TlOp *op, TlDtype d)
{
    bool adds = op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB || op->opcode == TL_OP_MUL ||
                op->opcode == TL_OP_FMA ||
                (op->opcode == TL_OP_REDUCE && tl_attr_int(op, TL_ATTR_KIND, 0) == TL_COMBINE_ADD);
    return adds && d == TL_F32;
}

/* Of an element of its result, of a reduction of its operand. */
static Load load_of(const Trip *t, const TlOp *op, TlDtype d)
{
    enum { WORD = 32 };
    int64_t lanes = (int64_t)t->machine->lanes * t->machine->schedulers;
    unsigned flags = tl_op_info(op->opcode)->flags;
    bool half = op->opcode == TL_OP_CAST && tl_dtype_bits(d) < WORD;
    if (is_added(op, d))
        return (Load){1, HALVES, 0};
    if (op->opcode == TL_OP_EXP2)
        return (Load){HALVES, 0, HALVES * lanes / t->machine->special};
    if ((!(flags & F_ELEM) && op->opcode != TL_OP_REDUCE) || flags & F_VIEWLIKE)
        return (Load){0};
    return (Load){half ? 1 : HALVES, 0, 0};
}

static void add_op(Trip *t, const TlOp *op)
{
    if (op->opcode == TL_OP_DOT_ASYNC) {
        const TlType *c = op->out[0]->type;
        TlAsyncDot d = tl_async_dot(op);
        int32_t a[2];
        int bits = tl_dtype_bits(tl_async_side_shape(&d.side[TL_MMA_A], a));
        t->products += tl_type_elems(c) * a[1] * bits / 16;
        return;
    }
    if (!op->nout || op->nregions)
        return;
    const TlType *of = op->opcode == TL_OP_REDUCE ? tl_in(op, 0)->type : op->out[0]->type;
    if (of->kind != TL_TILE || !of->rank)
        return;
    Load each = load_of(t, op, of->dtype),
         *to = tl_map_get_ptr(&t->first, op) ? &t->before : &t->rest;
    int64_t n = tl_type_elems(of);
    to->issue += n * each.issue;
    to->fma += n * each.fma;
    to->special += n * each.special;
    if (can_be_spread(op))
        t->powers += n;
}

static int64_t longest(Load x)
{
    int64_t y = x.issue > x.fma ? x.issue : x.fma;
    return y > x.special ? y : x.special;
}

/* Cycles of threads with so many of PAIRS by arithmetic. */
static int64_t cycles(const Trip *t, int spread)
{
    const TlMachine *m = t->machine;
    int64_t lanes = (int64_t)m->lanes * m->schedulers, n = t->powers * spread / PAIRS;
    Load rest = t->rest;
    rest.issue += n * (BEGUN - HALVES);
    rest.fma += n * ADDED;
    rest.special -= n * HALVES * lanes / m->special;
    return (longest(t->before) + longest(rest)) / (HALVES * lanes);
}

/* ---- 3. how many ---- */

static int64_t with(int64_t threads, int64_t products)
{
    return threads > products ? threads : products;
}

static int choose(const Trip *t, int64_t products)
{
    int best = 0;
    for (int n = 1; n <= PAIRS; n++)
        if (with(cycles(t, n), products) < with(cycles(t, best), products))
            best = n;
    return best;
}

/* Has it such powers? */
static bool spread_in(TlFn *fn, const TlPassCtx *px, TlOp *loop)
{
    Trip t = {.machine = px->machine, .arena = px->scratch, .loop = loop};
    find_first(&t);
    for (const TlOp *op = loop->regions[0]->first; op; op = op->next)
        add_op(&t, op);
    int64_t products = t.products / px->machine->most_products;
    int n = t.powers ? choose(&t, products) : 0;
    if (t.powers) {
        tl_remark(fn, loop, TL_REMARK_EXP2_PRODUCTS, products + 1);
        tl_remark(fn, loop, TL_REMARK_EXP2_THREADS, cycles(&t, 0) + 1);
        tl_remark(fn, loop, TL_REMARK_EXP2_SPREAD, cycles(&t, n) + 1);
    }
    for (TlOp *op = loop->regions[0]->first; op && n; op = op->next)
        if (can_be_spread(op))
            tl_attr_set(fn, op, (TlAttr){.id = TL_ATTR_SPREAD, .u.i = n});
    return t.powers > 0;
}

TlPassResult tl_pass_spread_exp2(TlFn *fn, TlPassCtx *px)
{
    bool any = false;
    const TlMachine *m = px->machine;
    if (!m->tensor || !m->pairs || !m->special || !m->most_products || fn->ring)
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR && !inside(op, TL_OP_FOR) && inside(op, TL_OP_DOT_ASYNC))
            any |= spread_in(fn, px, op);
    return any ? TL_CHANGED : TL_SAME;
}
