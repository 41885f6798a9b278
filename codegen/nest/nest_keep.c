/* Rows of a home that the program before has computed, too.
 *
 * A filter in two steps computes its first one for more rows than it stores: 20 for 8 of a 13 x 13
 * maximum. All but the last 8 of these are what the program before, along the grid's axis of the
 * rows, had 8 rows further on. Such a home stays in scratch memory from program to program: a
 * worker that has run the program before in this launch moves its last rows to the front, and
 * computes the others.
 *
 *       program 3   rows 18 .. 37   [ computed               ]
 *       program 4   rows 26 .. 45           [ kept   |computed]
 *
 *   1. drift   by how much each value differs from what the program before has `step` rows further
 *              on: start + iota by 0, where start grows by step; what is computed from such values,
 *              and loaded from constant memory at such places, is the same
 *   2. price   what is saved must be more than moving it
 *   3. room    between both programs run all those along the first axis, each with a home of its
 *              own; where there are more in the run, nothing is kept */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    SMALL = 1 << 20,         /* a number that something is multiplied by */
    LARGE = 1 << 30,         /* twice that does not wrap */
    MOST_DEPTH = 48,         /* of ops that a value is computed by: recursion */
    MOST_SLOTS = 32,         /* homes */
    LEAST_SLOTS = 4,
    MOST_BYTES = 256 << 10,  /* of all of them: a part of the second cache */
    MOVE_WORK = 2,           /* of a vector that is moved: a load, a store */
    LEAST_SAVED = 64,        /* work for vectors: the test of the tag */
};

/* What a value is beside that of the program before, `step` rows further on. */
typedef struct Drift {
    bool known;
    int64_t by;    /* it is so much more, modulo its type; 0: the same */
    int64_t most;  /* it is the program's number times a number, and at most so much; ANY: not so */
} Drift;
static const int64_t ANY = INT64_MAX;

typedef struct Keeper {
    const TlNests *plan;
    int axis; /* of the grid */
    int64_t step;
    int rank; /* of the home: values of that rank are work */
    int64_t work;
    TlMap seen; /* value and dimension to Drift */
} Keeper;

static Drift same(int64_t most)
{
    return (Drift){.known = true, .most = most};
}

static Drift unknown(void)
{
    return (Drift){.known = false};
}

/* ---- 1. drift ---- */

static Drift find_drift(Keeper *k, const TlValue *v, int d, int depth);

static bool is_number(const TlValue *v, TlWideInt *out)
{
    return tl_const_int_value(v, out) && *out > -SMALL && *out < SMALL;
}

/* Where the program's number times the step is below LARGE, this does not wrap. */
static bool is_plain(const Drift *x, TlDtype dtype)
{
    return x->most < LARGE && (dtype == TL_I32 || dtype == TL_I64);
}

static Drift drift_of_product(Keeper *k, const TlOp *op, int d, int depth)
{
    TlWideInt n;
    for (uint32_t i = 0; i < 2; i++)
        if (is_number(tl_in(op, i), &n)) {
            Drift x = find_drift(k, tl_in(op, 1 - i), d, depth + 1);
            int64_t by = (int64_t)n, size = by < 0 ? -by : by;
            bool fits = x.by > -SMALL && x.by < SMALL;
            return fits ? (Drift){x.known, x.by * by, x.most < LARGE ? x.most * size : ANY}
                        : unknown();
        }
    return unknown();
}

static Drift drift_of_sum(Keeper *k, const TlOp *op, int d, int depth)
{
    Drift a = find_drift(k, tl_in(op, 0), d, depth + 1),
          b = find_drift(k, tl_in(op, 1), d, depth + 1);
    int64_t by = op->opcode == TL_OP_SUB ? a.by - b.by : a.by + b.by;
    bool small = a.most < LARGE && b.most < LARGE;
    return (Drift){a.known && b.known, by, small ? a.most + b.most : ANY};
}

/* A number that does not wrap is the same number in a larger type. */
static Drift drift_of_cast(Keeper *k, const TlOp *op, int d, int depth)
{
    Drift x = find_drift(k, tl_in(op, 0), d, depth + 1);
    bool keeps = is_plain(&x, tl_in(op, 0)->type->dtype) && is_plain(&x, op->out[0]->type->dtype);
    x.known &= x.by == 0 || keeps;
    x.most = keeps ? x.most : ANY;
    return x;
}

static Drift drift_of_load(Keeper *k, const TlOp *op, int d, int depth)
{
    TlPlace p = tl_op_place(op);
    bool is_same = p.axes && !p.pointwise && tl_is_constant_memory(p.base) && !p.base->def;
    for (uint32_t i = 0; is_same && i < p.naxes; i++) {
        const TlAxis *axis = &p.axes[i];
        bool is_row = d >= 0 && axis->kind != TL_AXIS_SCALAR && tl_place_dim(&p, i) == d;
        bool is_slice = axis->kind == TL_AXIS_SLICE;
        Drift x = find_drift(k, p.index[i].value, is_row && !is_slice ? 0 : -1, depth + 1);
        int64_t by = is_row && is_slice ? k->step * axis->step : 0;
        is_same = x.known && x.by == by && (by == 0 || is_plain(&x, p.index[i].value->type->dtype));
    }
    TlValue *others[] = {p.mask, p.other};
    for (int i = 0; is_same && i < 2; i++) {
        Drift x = others[i] ? find_drift(k, others[i], d, depth + 1) : same(ANY);
        is_same = x.known && x.by == 0;
    }
    return is_same ? same(ANY) : unknown();
}

static Drift drift_of_elements(Keeper *k, const TlOp *op, int d, int depth)
{
    bool is_same = true;
    for (uint32_t i = 0; is_same && i < op->nin; i++) {
        Drift x = find_drift(k, tl_in(op, i), d, depth + 1);
        is_same = x.known && x.by == 0;
    }
    return is_same ? same(ANY) : unknown();
}

static Drift drift_of_op(Keeper *k, const TlOp *op, int d, int depth)
{
    const TlType *type = op->out[0]->type;
    TlWideInt n;
    bool is_int = tl_is_int(type->dtype);
    if (op->opcode == TL_OP_CONST)
        return same(is_int && is_number(op->out[0], &n) ? (int64_t)(n < 0 ? -n : n) : ANY);
    if (op->opcode == TL_OP_PID && tl_attr_int(op, TL_ATTR_AXIS, 0) == k->axis)
        return (Drift){.known = true, .by = 1};
    if (op->opcode == TL_OP_PID || op->opcode == TL_OP_NPID || op->opcode == TL_OP_EXTENT)
        return same(ANY);
    if (op->opcode == TL_OP_IOTA)
        return (Drift){true, d >= 0 ? -k->step : 0, type->shape[0]};
    if (op->opcode == TL_OP_LOAD)
        return drift_of_load(k, op, d, depth);
    bool renames = op->opcode == TL_OP_RESHAPE && tl_nest_is_renaming(op);
    if (renames || op->opcode == TL_OP_EXPAND || op->opcode == TL_OP_BROADCAST ||
        op->opcode == TL_OP_CONVERT)
        return find_drift(k, tl_in(op, 0), tl_nest_axis_under(op, d), depth + 1);
    if (!(tl_op_info(op->opcode)->flags & F_ELEM))
        return unknown();
    if (is_int && (op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB))
        return drift_of_sum(k, op, d, depth);
    Drift x = drift_of_elements(k, op, d, depth);
    if (!x.known && is_int && op->opcode == TL_OP_MUL)
        return drift_of_product(k, op, d, depth);
    if (op->opcode == TL_OP_CAST && (!x.known || is_int))
        return drift_of_cast(k, op, d, depth);
    return x;
}

/* Of a value whose dimension d is the rows; -1: it has none. */
static Drift find_drift(Keeper *k, const TlValue *v, int d, int depth)
{
    uint64_t key = (uint64_t)v->id * (TL_MAX_RANK + 1) + (uint64_t)(d + 1);
    uint64_t known;
    if (tl_map_get(&k->seen, key, &known))
        return *(const Drift *)(uintptr_t)known;
    if (!v->def) /* a parameter; what regions carry is not known */
        return v->block->parent ? unknown() : same(ANY);
    const TlOp *op = v->def;
    bool may = depth < MOST_DEPTH && op->nout == 1 && !op->nregions;
    Drift *x = TL_NEW(k->plan->arena, Drift);
    *x = may ? drift_of_op(k, op, d, depth) : unknown();
    tl_map_put(&k->seen, key, (uint64_t)(uintptr_t)x);
    if (v->type->kind == TL_TILE && v->type->rank == k->rank)
        k->work += op->opcode == TL_OP_LOAD                      ? 1
                   : tl_op_info(op->opcode)->flags & F_ELEM ? tl_elem_work(op->opcode)->cpu
                                                                 : 0;
    return *x;
}

/* ---- candidates ---- */

/* How many nests write the home, and how many values live in it? One each. */
static bool is_of_one(const TlNests *plan, int32_t home)
{
    int nests = 0, values = 0;
    for (uint32_t i = 0; i < plan->all.len; i++)
        nests += plan->all.data[i]->home == home;
    for (uint32_t i = 0; i < plan->fn->nvalues; i++)
        values += plan->place[i].kind == TL_NEST_HOME && plan->place[i].buffer == home;
    return nests == 1 && values == 1;
}

static bool may_keep(const TlNests *plan, const TlNest *n)
{
    return n->kind == TL_NEST_FILL && n->own && !n->unrolled && !n->columns && n->home >= 0 &&
           n->form.rank >= 2 && n->lane > 0 && !n->op->block->parent && n->op->nout == 1 &&
           !plan->buffers.data[n->home].small && is_of_one(plan, n->home) &&
           (uint64_t)n->form.stride[0] * tl_gen_elem_bytes(&n->type) %
                   (uint64_t)plan->m.vector_bytes ==
               0;
}

/* By how much starts may grow from program to program along an axis of the grid: what its number is
 * multiplied by, or 1. 0: op is no such number. */
static int64_t step_of(const TlOp *op, int *axis)
{
    TlWideInt n;
    *axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (op->opcode == TL_OP_PID)
        return 1;
    for (uint32_t i = 0; op->opcode == TL_OP_MUL && i < 2; i++) {
        const TlOp *pid = tl_in(op, i)->def;
        if (pid && pid->opcode == TL_OP_PID && is_number(tl_in(op, 1 - i), &n) && n > 0) {
            *axis = (int)tl_attr_int(pid, TL_ATTR_AXIS, 0);
            return (int64_t)n;
        }
    }
    return 0;
}

/* ---- 2. price, 3. room ---- */

static int slots_of(const TlNests *plan, const TlNest *n, int axis)
{
    if (axis == 0)
        return 1; /* the program before has just run */
    uint64_t slots = MOST_SLOTS;
    while (slots * plan->buffers.data[n->home].bytes > MOST_BYTES)
        slots /= 2;
    return axis == 1 && slots >= LEAST_SLOTS ? (int)slots : 0;
}

static const char *decide(TlNests *plan, TlNest *n, const Keeper *k)
{
    int64_t rows = n->form.extent[0] - k->step, vectors = n->form.stride[0] / n->width;
    int slots = slots_of(plan, n, k->axis);
    if (k->work <= MOVE_WORK || rows * vectors * (k->work - MOVE_WORK) < LEAST_SAVED)
        return "moving rows costs as much";
    if (!slots)
        return "homes would be too large";
    TlNestKeep *keep = TL_NEW(plan->arena, TlNestKeep);
    TlNestBuffer *b = &plan->buffers.data[n->home];
    *keep = (TlNestKeep){.axis = k->axis, .rows = rows, .step = k->step, .slots = slots,
                         .most = LARGE / k->step, .bytes = b->bytes, .tags = plan->zeroed_bytes};
    plan->zeroed_bytes += (uint64_t)slots * TL_NEST_TAG_BYTES;
    b->bytes *= (uint64_t)slots;
    b->first = 0; /* it stays */
    b->last = UINT32_MAX;
    n->keep = keep;
    return NULL;
}

static void keep_rows(TlNests *plan, TlNest *n)
{
    for (const TlOp *op = plan->fn->body->first; op; op = op->next) {
        Keeper k = {.plan = plan, .rank = n->form.rank, .seen = {.arena = plan->arena}};
        k.step = step_of(op, &k.axis);
        if (k.step <= 0 || k.step >= n->form.extent[0])
            continue;
        Drift x = find_drift(&k, n->value, 0, 0);
        if (!x.known || x.by != 0)
            continue;
        n->unkept = decide(plan, n, &k);
        return;
    }
}

void tl_nest_keep(TlNests *plan)
{
    for (uint32_t i = 0; i < plan->all.len && !plan->check; i++)
        if (may_keep(plan, plan->all.data[i]))
            keep_rows(plan, plan->all.data[i]);
}
