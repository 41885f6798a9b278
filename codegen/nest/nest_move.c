/* Gathers whose index is known before the run, which the front end makes of shift, roll, flip, cat
 * and extract: where each element of the result comes from.
 *
 * Along another axis than the lanes', a gather takes whole vectors of other rows, whatever its
 * index. Along the lanes, where the elements of a vector lie side by side in the operand, it takes
 * them as they lie in memory, or from two neighbouring vectors by one shuffle (nest_way.c); or from
 * one vector, where each group of a few lanes takes elements of its own (one of four for all). */
#include "codegen/nest/nest.h"
#include "ir/interp/interp.h"

enum { MOST_KNOWN = 1 << 16 }; /* elements of an index that are looked at */
enum { MOST_DEPTH = 24 };      /* of ops that an index is computed by: recursion */

/* ---- where an index varies ---- */

/* May elements of v differ along axis d? */
static bool varies(const TlValue *v, int d, int depth)
{
    const TlOp *op = v->def;
    if (v->type->rank == 0 || d < 0 || v->type->shape[d] == 1)
        return false;
    if (!op || depth > MOST_DEPTH)
        return true;
    const TlValue *x = op->nin ? tl_in(op, 0) : NULL;
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (op->opcode == TL_OP_CONST)
        return false;
    if (op->opcode == TL_OP_BROADCAST)
        return x->type->rank && varies(x, d, depth + 1);
    if (op->opcode == TL_OP_EXPAND)
        return varies(x, d > axis ? d - 1 : d, depth + 1);
    if (op->opcode == TL_OP_CONVERT)
        return varies(x, d, depth + 1);
    if (op->opcode == TL_OP_RESHAPE && tl_nest_is_renaming(op))
        return varies(x, tl_nest_axis_under(op, d), depth + 1);
    if (!(tl_op_info(op->opcode)->flags & F_ELEM))
        return true;
    for (uint32_t i = 0; i < op->nin; i++)
        if (varies(tl_in(op, i), d, depth + 1))
            return true;
    return false;
}

/* ---- what an index is ---- */

/* The vector that v has along axis d, and nothing else; NULL: there is none. */
static const TlValue *vector_along(const TlValue *v, int d)
{
    for (int depth = 0; v->type->rank > 1; depth++) {
        const TlOp *op = v->def;
        if (!op || !op->nin || depth > MOST_DEPTH || d < 0)
            return NULL;
        int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
        if (op->opcode == TL_OP_EXPAND && d != axis)
            d -= d > axis;
        else if (op->opcode == TL_OP_RESHAPE && tl_nest_is_renaming(op))
            d = tl_nest_axis_under(op, d);
        else if (op->opcode != TL_OP_BROADCAST && op->opcode != TL_OP_CONVERT)
            return NULL;
        v = tl_in(op, 0);
        if (op->opcode == TL_OP_BROADCAST)
            for (int k = 0; k < v->type->rank; k++)
                if (k != d && v->type->shape[k] > 1)
                    return NULL;
    }
    return v->type->rank == 1 ? v : NULL;
}

/* All elements of a vector of integers; false: they are not known. */
static bool evaluate(TlArena *arena, const TlValue *v, TlTileData *out, int depth)
{
    const TlOp *op = v->def;
    TlTileData in[3];
    if (!op || op->nout != 1 || op->nin > 3 || depth > MOST_DEPTH)
        return false;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!evaluate(arena, tl_in(op, i), &in[i], depth + 1))
            return false;
    return tl_interp_eval(op, in, out, arena);
}

static int64_t element(const TlTileData *x, int64_t i)
{
    bool is_signed = tl_is_signed(x->type->dtype);
    switch (tl_dtype_bytes(x->type->dtype)) {
    case 1: return is_signed ? ((const int8_t *)x->data)[i] : ((const uint8_t *)x->data)[i];
    case 2: return is_signed ? ((const int16_t *)x->data)[i] : ((const uint16_t *)x->data)[i];
    case 4:
        return is_signed ? ((const int32_t *)x->data)[i] : (int64_t)((const uint32_t *)x->data)[i];
    default: return ((const int64_t *)x->data)[i];
    }
}

/* Elements that follow each other, forwards or backwards, or around the end. What is outside of
 * the operand may be any number that is outside. */
static bool is_window(const TlTileData *index, int64_t n, int64_t extent, TlNestWindow *w)
{
    int64_t first = 0;
    while (first < n && (element(index, first) < 0 || element(index, first) >= extent))
        first++;
    if (first == n)
        return false;
    int64_t at = element(index, first);
    bool is_last = first + 1 == n;
    w->step = !is_last && element(index, first + 1) == at - 1 ? -1 : 1;
    w->start = at - w->step * first;
    w->wraps = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t is = element(index, i), would = w->start + w->step * i;
        bool inside = is >= 0 && is < extent, would_be = would >= 0 && would < extent;
        if (w->wraps || (inside && !would_be && first == 0 && w->step > 0 && n == extent)) {
            w->wraps = true;
            if (is != would % extent)
                return false;
        } else if (inside != would_be || (inside && is != would)) {
            return false;
        }
    }
    return true;
}

/* Does each group of so many elements take its own, all groups in the same order? */
static bool has_period(const TlTileData *index, int64_t n, int period)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t in_group = element(index, i) - i / period * period;
        if (in_group < 0 || in_group >= period || in_group != element(index, i % period))
            return false;
    }
    return n % period == 0;
}

/* The fewest elements that are such a group, a power of two and no more than a register's `lanes`;
 * 0: there are none. */
static int period_of(const TlTileData *index, int64_t n, int lanes, uint8_t *from)
{
    for (int period = 2; period <= lanes && period <= n; period *= 2) {
        if (!has_period(index, n, period))
            continue;
        for (int i = 0; i < period; i++)
            from[i] = (uint8_t)element(index, i);
        return period;
    }
    return 0;
}

/* ---- the pass ---- */

static TlNestMove *find_move(TlNests *plan, const TlOp *op)
{
    const TlValue *x = tl_in(op, 0), *index = tl_in(op, 1);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0), lane = tl_nest_form(op->out[0]->type).lane;
    TlNestMove *m = TL_NEW(plan->arena, TlNestMove);
    if (x->type->ptr)
        return NULL;
    int64_t n = index->type->shape[axis];
    const TlValue *vector = vector_along(index, axis);
    TlTileData data;
    *m = (TlNestMove){.lane = lane, .rows = axis != lane};
    if (m->rows && varies(index, lane, 0))
        return NULL;
    bool evaluated = n > 1 && n <= MOST_KNOWN && vector && vector->type->shape[0] == n &&
                     evaluate(plan->arena, vector, &data, 0);
    m->known = evaluated && is_window(&data, n, x->type->shape[axis], &m->window);
    if (evaluated && !m->rows && !m->known && x->type->shape[axis] == n)
        m->period =
            period_of(&data, n, plan->m.vector_bytes / (int)tl_gen_elem_bytes(x->type), m->from);
    if (m->period)
        return m;
    if (m->rows || !m->known)
        return m->rows ? m : NULL;
    bool is_padded = tl_nest_readable(op->out[0]->type, axis) != n;
    return m->window.wraps && is_padded ? NULL : m; /* vectors wrap as a whole */
}

void tl_nest_find_moves(TlNests *plan)
{
    for (TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlNestMove *m = op->opcode == TL_OP_GATHER ? find_move(plan, op) : NULL;
        if (m)
            tl_map_put_ptr(&plan->moves, op, m);
    }
}

const TlNestMove *tl_nest_move_of(const TlNests *plan, const TlOp *gather, int lane)
{
    const TlNestMove *m = tl_map_get_ptr(&plan->moves, gather);
    return m && m->lane == lane ? m : NULL;
}

int64_t tl_nest_rows_taken(const TlNests *plan, const TlOp *op)
{
    const TlType *to = op->nout == 1 ? op->out[0]->type : NULL;
    const TlNestMove *m = op->opcode == TL_OP_GATHER && !plan->check
                              ? tl_nest_move_of(plan, op, tl_nest_form(to).lane)
                              : NULL;
    bool is = m && m->rows && m->known && m->window.step > 0 && !m->window.wraps;
    return is ? m->window.start : -1;
}

int64_t tl_nest_rows_ahead(const TlNests *plan, const TlOp *op)
{
    int64_t taken = tl_nest_rows_taken(plan, op);
    return taken < 0 || tl_same_shape(tl_in(op, 0)->type, op->out[0]->type) ? taken : -1;
}
