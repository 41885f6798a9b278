/* How values differ from those of the program before: start + iota by 0 some elements further on,
 * where start grows by so many; and what is computed from such values, and loaded from constant
 * memory at such places, is the same. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"

enum {
    SMALL = 1 << 20,       /* a number that something is multiplied by */
    LARGE = TL_NEST_LARGE, /* twice that does not wrap */
    MOST_DEPTH = 48,       /* of ops that a value is computed by: recursion */
};

typedef TlNestDrift Drift;
typedef TlNestDrifts Drifts;
static const int64_t ANY = INT64_MAX;

static Drift same(int64_t most)
{
    return (Drift){.known = true, .most = most};
}

static Drift unknown(void)
{
    return (Drift){.known = false};
}

static Drift find_drift(Drifts *k, const TlValue *v, int d, int depth);

static bool is_number(const TlValue *v, TlWideInt *out)
{
    return tl_const_int_value(v, out) && *out > -SMALL && *out < SMALL;
}

/* Where the program's number times the step is below LARGE, this does not wrap. */
static bool is_plain(const Drift *x, TlDtype dtype)
{
    return x->most < LARGE && (dtype == TL_I32 || dtype == TL_I64);
}

static Drift drift_of_product(Drifts *k, const TlOp *op, int d, int depth)
{
    TlWideInt n;
    for (uint32_t i = 0; i < 2; i++)
        if (is_number(tl_in(op, i), &n)) {
            Drift x = find_drift(k, tl_in(op, 1 - i), d, depth + 1);
            int64_t by = (int64_t)n, size = by < 0 ? -by : by;
            bool fits = x.by > -SMALL && x.by < SMALL;
            int64_t grows = fits && x.by ? x.by * by : 0;
            grows = grows < 0 ? -grows : grows;
            k->largest = grows > k->largest ? grows : k->largest;
            return fits ? (Drift){.known = x.known,
                                  .by = x.by * by,
                                  .most = x.most < LARGE ? x.most * size : ANY}
                        : unknown();
        }
    return unknown();
}

static Drift drift_of_sum(Drifts *k, const TlOp *op, int d, int depth)
{
    Drift a = find_drift(k, tl_in(op, 0), d, depth + 1),
          b = find_drift(k, tl_in(op, 1), d, depth + 1);
    int64_t by = op->opcode == TL_OP_SUB ? a.by - b.by : a.by + b.by;
    bool small = a.most < LARGE && b.most < LARGE;
    return (Drift){.known = a.known && b.known, .by = by, .most = small ? a.most + b.most : ANY};
}

/* A number that does not wrap is the same number in a larger type. */
static Drift drift_of_cast(Drifts *k, const TlOp *op, int d, int depth)
{
    Drift x = find_drift(k, tl_in(op, 0), d, depth + 1);
    bool keeps = is_plain(&x, tl_in(op, 0)->type->dtype) && is_plain(&x, op->out[0]->type->dtype);
    x.known &= x.by == 0 || keeps;
    x.most = keeps ? x.most : ANY;
    return x;
}

static Drift drift_of_load(Drifts *k, const TlOp *op, int d, int depth)
{
    TlPlace p = tl_op_place(op);
    bool constant = tl_is_constant_memory(p.base),
         is_same = p.axes && !p.pointwise && (constant || k->written) &&
                   (k->written ? tl_nest_is_of_launch(p.base) : !p.base->def);
    k->reads_written |= !constant;
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

static Drift drift_of_elements(Drifts *k, const TlOp *op, int d, int depth)
{
    bool is_same = true;
    for (uint32_t i = 0; is_same && i < op->nin; i++) {
        Drift x = find_drift(k, tl_in(op, i), d, depth + 1);
        is_same = x.known && x.by == 0;
    }
    return is_same ? same(ANY) : unknown();
}

/* The row and the column of elements in rows of n, of which a program has a whole number. */
static Drift drift_of_place(Drifts *k, const TlOp *op, int d, int depth)
{
    TlWideInt n;
    const TlOp *of = tl_in(op, 0)->def;
    bool is = d >= 0 && of && of->opcode == TL_OP_IOTA && tl_const_int_value(tl_in(op, 1), &n) &&
              n > 0 && k->step % n == 0;
    if (!is)
        return drift_of_elements(k, op, d, depth);
    Drift x = find_drift(k, tl_in(op, 0), d, depth + 1);
    find_drift(k, tl_in(op, 1), d, depth + 1);
    return op->opcode == TL_OP_REM
               ? same((int64_t)n)
               : (Drift){.known = true, .by = x.by / (int64_t)n, .most = x.most / (int64_t)n + 1};
}

/* Positions that are known to be inside, which are all so many further on, or those along another
 * axis, which stay. */
static Drift drift_of_gather(Drifts *k, const TlOp *op, int d, int depth)
{
    const TlValue *x = tl_in(op, 0), *index = tl_in(op, 1);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    int64_t first, extent = op->out[0]->type->shape[axis];
    bool moves = d == axis;
    if (moves && (!tl_counts_along(index, axis, &first) || first < 0 ||
                  first + extent > x->type->shape[axis]))
        return unknown();
    Drift of = find_drift(k, x, d, depth + 1), at = find_drift(k, index, d, depth + 1);
    bool is_same = of.known && of.by == 0 && at.known && at.by == (moves ? -k->step : 0);
    return is_same ? same(ANY) : unknown();
}

/* What a loop carries, if it is the same in its first trip and wherever it was in the trip before:
 * then that may be taken for granted here. */
static Drift drift_of_carried(Drifts *k, const TlValue *v, int d, int depth)
{
    const TlOp *loop = v->block->parent;
    if (!k->loops || loop->opcode != TL_OP_FOR)
        return unknown();
    uint32_t first = v->index ? v->index + 2 : 0, last = v->index ? first : 2;
    bool is_same = true;
    for (uint32_t i = first; is_same && i <= last; i++) { /* the bounds, or what it begins with */
        Drift x = find_drift(k, tl_in(loop, i), d, depth + 1);
        is_same = x.known && x.by == 0;
    }
    Drift next = same(ANY);
    if (is_same && v->index)
        next = find_drift(k, tl_in(v->block->last, v->index - 1), d, depth + 1);
    return is_same && next.known && next.by == 0 ? same(ANY) : unknown();
}

/* What a branch gives, if all programs take the same one. */
static Drift drift_of_branch(Drifts *k, const TlOp *op, uint32_t i, int d, int depth)
{
    Drift x = find_drift(k, tl_in(op, 0), -1, depth + 1);
    for (uint32_t r = 0; x.known && x.by == 0 && r < op->nregions; r++)
        x = find_drift(k, tl_in(op->regions[r]->last, i), d, depth + 1);
    return x.known && x.by == 0 ? same(ANY) : unknown();
}

/* Notes that the dimension d of a tile moves; may it? An axis of extent 1 that is not in the
 * operand stays as it is, and one that a reshape joins from others has none of them under it. */
static bool note_dim(Drifts *k, const TlValue *v, int d)
{
    if (!k->dims || v->type->kind != TL_TILE || v->type->rank == 0)
        return true;
    const TlOp *op = v->def;
    bool reshapes = op && (op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_EXPAND);
    if (d >= 0 && reshapes && tl_nest_drift_axis(op, d) < 0)
        return false;
    k->dims[v->id] |= 1u << (d + 1);
    return true;
}

int tl_nest_drift_axis(const TlOp *op, int d)
{
    int64_t times, parts;
    if (op->opcode == TL_OP_RESHAPE)
        return d < 0 ? -1 : tl_nest_axis_reshaped(op, d, &times, &parts);
    if (op->opcode == TL_OP_REDUCE)
        return d < (int)tl_attr_int(op, TL_ATTR_AXIS, 0) ? d : d + 1;
    return tl_nest_axis_under(op, d);
}

/* Rows of a program's own that are divided, or joined: so many elements are so many times, or as
 * many parts. */
static Drift drift_of_reshape(Drifts *k, const TlOp *op, int d, int depth)
{
    int64_t times = 1, parts = 1, step = k->step;
    int axis = d < 0 ? -1 : tl_nest_axis_reshaped(op, d, &times, &parts);
    if (d < 0 && tl_nest_is_renaming(op))
        return find_drift(k, tl_in(op, 0), -1, depth + 1);
    if (axis < 0 || step % parts != 0 || step > SMALL || times > SMALL)
        return unknown();
    k->step = step / parts * times;
    Drift x = find_drift(k, tl_in(op, 0), axis, depth + 1);
    k->step = step;
    bool moves = times == 1 && parts == 1; /* a number is one of those in its row */
    return moves || x.by == 0 ? x : unknown();
}

static Drift drift_of_pick(Drifts *k, const TlOp *op, int d, int depth)
{
    Drift x = find_drift(k, tl_in(op, 0), d < 0 ? -1 : tl_nest_drift_axis(op, d), depth + 1);
    return x.known && x.by == 0 ? same(ANY) : unknown();
}

static Drift drift_of_op(Drifts *k, const TlOp *op, int d, int depth)
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
        return (Drift){.known = true, .by = d >= 0 ? -k->step : 0, .most = type->shape[0]};
    if (op->opcode == TL_OP_LOAD)
        return drift_of_load(k, op, d, depth);
    if (op->opcode == TL_OP_GATHER)
        return drift_of_gather(k, op, d, depth);
    if (op->opcode == TL_OP_RESHAPE)
        return drift_of_reshape(k, op, d, depth);
    int64_t at;
    if (op->opcode == TL_OP_REDUCE && tl_picked_from(op, &at)) /* one by itself, in no order */
        return drift_of_pick(k, op, d, depth);
    if (op->opcode == TL_OP_EXPAND || op->opcode == TL_OP_BROADCAST || op->opcode == TL_OP_CONVERT)
        return find_drift(k, tl_in(op, 0), tl_nest_axis_under(op, d), depth + 1);
    if (!(tl_op_info(op->opcode)->flags & F_ELEM))
        return unknown();
    if (is_int && (op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB))
        return drift_of_sum(k, op, d, depth);
    bool places = op->opcode == TL_OP_REM || op->opcode == TL_OP_DIV;
    Drift x = places ? drift_of_place(k, op, d, depth) : drift_of_elements(k, op, d, depth);
    if (!x.known && is_int && op->opcode == TL_OP_MUL)
        return drift_of_product(k, op, d, depth);
    if (op->opcode == TL_OP_CAST && (!x.known || is_int))
        return drift_of_cast(k, op, d, depth);
    return x;
}

static Drift drift_of_value(Drifts *k, const TlValue *v, int d, int depth)
{
    const TlOp *op = v->def;
    if (!op) /* a parameter, or what a loop carries */
        return v->block->parent ? drift_of_carried(k, v, d, depth) : same(ANY);
    if (depth >= MOST_DEPTH)
        return unknown();
    if (op->opcode == TL_OP_FOR && k->loops)
        return find_drift(k, op->regions[0]->args[v->index + 1], d, depth + 1);
    if (op->opcode == TL_OP_IF && k->loops)
        return drift_of_branch(k, op, v->index, d, depth);
    return op->nout == 1 && !op->nregions ? drift_of_op(k, op, d, depth) : unknown();
}

static int64_t work_of(const Drifts *k, const TlValue *v)
{
    const TlOp *op = v->def;
    if (!op || v->type->kind != TL_TILE || v->type->rank != k->rank)
        return 0;
    bool is_element = tl_op_info(op->opcode)->flags & F_ELEM;
    return op->opcode == TL_OP_LOAD ? 1 : is_element ? tl_elem_work(op->opcode)->cpu : 0;
}

static Drift find_drift(Drifts *k, const TlValue *v, int d, int depth)
{
    uint64_t key = (uint64_t)v->id * (TL_MAX_RANK + 1) + (uint64_t)(d + 1);
    uint64_t known;
    if (tl_map_get(&k->seen, key, &known)) {
        const Drift *was = (const Drift *)(uintptr_t)known;
        return d < 0 || was->step == k->step ? *was : unknown();
    }
    Drift *x = TL_NEW(k->arena, Drift);
    *x = same(ANY); /* as long as it is being asked, which is in loops only */
    x->step = k->step;
    tl_map_put(&k->seen, key, (uint64_t)(uintptr_t)x);
    *x = note_dim(k, v, d) ? drift_of_value(k, v, d, depth) : unknown();
    x->step = k->step;
    k->work += work_of(k, v);
    return *x;
}

int64_t tl_nest_drift_step_along(const TlNestDrifts *k, const TlValue *v, int d)
{
    uint64_t known;
    bool asked =
        tl_map_get(&k->seen, (uint64_t)v->id * (TL_MAX_RANK + 1) + (uint64_t)(d + 1), &known);
    return asked ? ((const Drift *)(uintptr_t)known)->step : 0;
}

bool tl_nest_drifts_by(TlNestDrifts *k, const TlValue *v, int d, int64_t by)
{
    Drift x = find_drift(k, v, d, 0);
    return x.known && x.by == by && (by == 0 || is_plain(&x, v->type->dtype));
}

bool tl_nest_drift(TlNestDrifts *k, const TlValue *v, int64_t *out_by)
{
    Drift x = find_drift(k, v, -1, 0);
    *out_by = x.known ? x.by : 0;
    return x.known;
}

int64_t tl_nest_drift_step(const TlOp *op, int *axis)
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

int64_t tl_nest_drift_most(const TlNestDrifts *k)
{
    return LARGE / (k->largest > k->step ? k->largest : k->step);
}
