/* Which ops must be cut together, and along which of their axes (chunk_impl.h). */
#include "passes/analysis/facts.h"
#include "passes/simplify/chunk_impl.h"

/* ---- axes of one op ---- */

static bool is_access(const TlOp *op)
{
    return op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE || op->opcode == TL_OP_INSIDE ||
           op->opcode == TL_OP_ATOMIC_RMW;
}

/* An operand of an access: WHOLE for views, and for starts, which are moved instead. */
static int place_operand_axis(const TlOp *op, uint32_t i, int axis)
{
    TlPlace p = tl_op_place(op);
    const TlType *t = tl_in(op, i)->type;
    if (t->kind == TL_VIEW || t->rank == 0)
        return TL_CHUNK_WHOLE;
    if (!p.axes || i == 0 || i > p.naxes)
        return axis;
    int first = tl_place_dim(&p, i - 1);
    bool on_it = axis >= first && axis < first + t->rank;
    return on_it ? axis - first : TL_CHUNK_WHOLE;
}

/* Of a reshape: an axis of equal extent around which there is as much. */
static int reshaped_axis(const TlType *to, int axis, const TlType *from)
{
    int64_t before = 1, want = 1;
    for (int d = 0; d < axis; d++)
        want *= to->shape[d];
    for (int d = 0; d < from->rank; before *= from->shape[d++])
        if (before == want && from->shape[d] == to->shape[axis])
            return d;
    return TL_CHUNK_NOT;
}

static int shape_operand_axis(const TlOp *op, int axis)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    int at = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (op->opcode == TL_OP_BROADCAST)
        return from->rank == 0 || from->shape[axis] != to->shape[axis] ? TL_CHUNK_WHOLE : axis;
    if (op->opcode == TL_OP_EXPAND)
        return axis == at ? TL_CHUNK_NOT : axis - (axis > at);
    if (op->opcode == TL_OP_TRANS)
        return (int)tl_attr(op, TL_ATTR_PERM)->u.ints[axis];
    return op->opcode == TL_OP_RESHAPE ? reshaped_axis(to, axis, from) : TL_CHUNK_NOT;
}

/* Of a product's a, b and acc: a row of the sums needs a row of a, a column needs one of b. */
static int dot_operand_axis(const TlOp *op, uint32_t i, int axis)
{
    int rank = op->out[0]->type->rank;
    bool whole = (i == 0 && axis == rank - 1) || (i == 1 && axis == rank - 2);
    return whole ? TL_CHUNK_WHOLE : axis;
}

int tl_chunk_operand_axis(const TlOp *op, uint32_t i, int axis)
{
    TL_ASSERT(axis >= 0 && i < op->nin, "axis %d of operand %u", axis, i);
    if (op->opcode == TL_OP_DOT)
        return dot_operand_axis(op, i, axis);
    if (is_access(op))
        return place_operand_axis(op, i, axis);
    if (op->opcode == TL_OP_REDUCE || op->opcode == TL_OP_SCAN)
        return tl_in(op, i)->type->rank ? axis : TL_CHUNK_WHOLE;
    if (tl_op_info(op->opcode)->flags & F_ELEM)
        return tl_in(op, i)->type->rank ? axis : TL_CHUNK_WHOLE;
    return shape_operand_axis(op, axis);
}

int tl_chunk_result_axis(const TlOp *op, int axis)
{
    if (op->opcode != TL_OP_REDUCE)
        return axis;
    int along = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    return axis == along ? TL_CHUNK_WHOLE : axis - (axis > along);
}

int tl_chunk_axis_of_result(const TlOp *op, int axis)
{
    return op->opcode == TL_OP_REDUCE ? axis + (axis >= tl_attr_int(op, TL_ATTR_AXIS, 0)) : axis;
}

static int rank_of(const TlOp *op)
{
    if (is_access(op))
        return tl_op_place(op).rank;
    if (op->opcode == TL_OP_REDUCE || op->opcode == TL_OP_SCAN)
        return tl_in(op, 0)->type->rank;
    return op->nout ? op->out[0]->type->rank : 0;
}

int tl_chunk_axis_of_operand(const TlOp *op, uint32_t i, int axis)
{
    for (int a = 0; a < rank_of(op); a++)
        if (tl_chunk_operand_axis(op, i, a) == axis)
            return a;
    return TL_CHUNK_NOT;
}

bool tl_chunk_is_made(const TlOp *op, int axis)
{
    return op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA ||
           (op->opcode == TL_OP_BROADCAST && tl_chunk_operand_axis(op, 0, axis) == TL_CHUNK_WHOLE);
}

/* ---- may it be cut there? ---- */

/* A scan that begins with a scalar could go on with one only: a row of one axis. */
static bool can_go_on(const TlOp *op)
{
    return op->nin == op->nout || tl_in(op, 0)->type->rank == 1;
}

/* A combiner that works on tiles as on scalars. */
static bool is_plain(const TlBlock *region)
{
    for (const TlOp *op = region->first; op != region->last; op = op->next)
        if (op->opcode != TL_OP_CONST &&
            (!(tl_op_info(op->opcode)->flags & F_ELEM) || op->nout != 1))
            return false;
    return true;
}

static bool can_combine(const TlOp *op, int axis)
{
    if (tl_attr_int(op, TL_ATTR_AXIS, 0) != axis)
        return true;
    if (!can_go_on(op))
        return false;
    return tl_attr_int(op, TL_ATTR_KIND, 0) == TL_COMBINE_USER ? is_plain(op->regions[0])
                                                               : op->nout == 1;
}

/* A start that can be moved: u64 could be beyond what is added in i64. */
static bool can_move(const TlOp *op, int axis)
{
    TlPlace p = tl_op_place(op);
    for (uint32_t i = 0; p.axes && i < p.naxes; i++)
        if (p.axes[i].kind == TL_AXIS_SLICE && tl_place_dim(&p, i) == axis)
            return p.index[i].value->type->dtype != TL_U64;
    return true;
}

bool tl_chunk_can_cut(const TlOp *op, int axis)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (op->opcode == TL_OP_REDUCE || op->opcode == TL_OP_SCAN)
        return can_combine(op, axis);
    if (op->opcode == TL_OP_ATOMIC_RMW && (tl_attr_int(op, TL_ATTR_ORDER, 0) != TL_ORDER_RELAXED ||
                                           op->out[0]->uses || op->out[0]->type->rank == 0))
        return false;
    if (is_access(op))
        return can_move(op, axis);
    if (op->opcode == TL_OP_DOT)
        return op->nin == 3; /* without scales */
    return flags & (F_ELEM | F_VIEWLIKE);
}

/* In the group's block; or before it, and the same there. */
static bool stands_well(const TlChunkGroup *g, const TlOp *op, int axis)
{
    if (op->block == g->block)
        return true;
    for (const TlBlock *b = g->block; b->parent; b = b->parent->block)
        if (b->parent->block == op->block)
            return op->opcode == TL_OP_LOAD
                       ? tl_is_constant_memory(tl_in(op, 0))
                       : tl_op_is_pure(op) && tl_chunk_result_axis(op, axis) >= 0 &&
                             op->opcode != TL_OP_SCAN;
    return false;
}

/* ---- the group ---- */

TlChunkOp *tl_chunk_member(const TlChunkGroup *g, const TlOp *op)
{
    uint64_t at;
    return op && tl_map_get(&g->index, (uint64_t)(uintptr_t)op, &at) ? &g->ops.data[at - 1] : NULL;
}

static bool visit(TlChunkGroup *g, TlOp *op, int axis)
{
    const TlChunkOp *known = tl_chunk_member(g, op);
    if (axis < 0 || known)
        return known && known->axis == axis;
    if (!stands_well(g, op, axis) || !tl_chunk_can_cut(op, axis))
        return false;
    tl_vec_push(g->arena, &g->ops, ((TlChunkOp){.op = op, .axis = axis}));
    tl_map_put(&g->index, (uint64_t)(uintptr_t)op, g->ops.len);
    return true;
}

static bool visit_operands(TlChunkGroup *g, const TlOp *op, int axis)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        int a = tl_chunk_operand_axis(op, i, axis);
        TlOp *def = tl_in(op, i)->def;
        if (a == TL_CHUNK_WHOLE)
            continue;
        if (a == TL_CHUNK_NOT || !def || tl_in(op, i)->type->shape[a] != g->extent)
            return false;
        if (!tl_chunk_is_made(def, a) && !visit(g, def, tl_chunk_axis_of_result(def, a)))
            return false;
    }
    return true;
}

/* A user that takes it as a whole is none of the group. */
static bool visit_users(TlChunkGroup *g, const TlOp *op, int axis)
{
    int a = tl_chunk_result_axis(op, axis);
    for (uint32_t r = 0; a >= 0 && r < op->nout; r++)
        for (const TlUse *u = op->out[r]->uses; u; u = u->next) {
            uint32_t i = (uint32_t)(u - u->user->in);
            if (!visit(g, u->user, tl_chunk_axis_of_operand(u->user, i, a)))
                return false;
        }
    return true;
}

/* Members as they come in the function. False: one stands behind the block that has the others. */
static bool put_in_order(TlChunkGroup *g)
{
    TL_VEC(TlChunkOp) sorted = {0};
    TlOp *op = g->fn->body->first;
    const TlBlock *at = NULL; /* of the last one */
    for (; op && sorted.len < g->ops.len; op = tl_walk_next(op, NULL)) {
        const TlChunkOp *m = tl_chunk_member(g, op);
        if (!m)
            continue;
        if (op->block != g->block && at == g->block)
            return false;
        at = op->block;
        tl_vec_push(g->arena, &sorted, *m);
    }
    TL_ASSERT(sorted.len == g->ops.len, "%u of %u ops found", sorted.len, g->ops.len);
    for (uint32_t i = 0; i < sorted.len; i++) {
        g->ops.data[i] = sorted.data[i];
        tl_map_put(&g->index, (uint64_t)(uintptr_t)sorted.data[i].op, i + 1);
    }
    return true;
}

bool tl_chunk_find(TlChunkGroup *g, TlValue *tile, int axis)
{
    TL_ASSERT(tile->def && axis < tile->type->rank, "axis %d of value %u", axis, tile->id);
    g->extent = tile->type->shape[axis];
    g->block = tile->def->block;
    tl_map_init(&g->index, g->arena);
    if (!visit(g, tile->def, tl_chunk_axis_of_result(tile->def, axis)))
        return false;
    for (uint32_t i = 0; i < g->ops.len; i++) {
        TlChunkOp m = g->ops.data[i];
        if (!visit_operands(g, m.op, m.axis) || !visit_users(g, m.op, m.axis))
            return false;
    }
    return put_in_order(g);
}
