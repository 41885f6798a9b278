/* Ops once more, for a part of the axis that is cut (chunk_impl.h). */
#include "ir/plan/reduce_plan.h"
#include "passes/analysis/facts.h"
#include "passes/simplify/chunk_impl.h"
#include <string.h>

enum { MOST_START = 1 << 30 }; /* of a slice, and of its last element from there: they fit in i32 */

/* ---- types ---- */

static const TlType *cut(const TlChunkPart *c, const TlType *t, int axis)
{
    int32_t shape[TL_MAX_RANK];
    memcpy(shape, t->shape, sizeof shape);
    shape[axis] = c->width;
    return tl_type_with_shape(c->ctx, t, t->rank, shape);
}

bool tl_chunk_is_by_region(const TlOp *op)
{
    return tl_attr_int(op, TL_ATTR_KIND, 0) == TL_COMBINE_USER;
}

bool tl_chunk_is_widened(const TlOp *op)
{
    TlDtype d = tl_in(op, 0)->type->dtype;
    return tl_combine_work_type(op, d) != d;
}

/* ---- combiners ---- */

static TlValue *as_wide(TlChunkPart *c, TlValue *v, const TlType *like)
{
    return like->rank ? tl_broadcast(&c->b, v, like->rank, like->shape) : v;
}

/* The region of a reduction or scan on tiles: y = region(x, y). */
static void combine_by_region(TlChunkPart *c, const TlBlock *region, uint32_t n, TlValue **x,
                              TlValue **y)
{
    TlMap map = {.arena = c->g->arena};
    const TlType *like = y[0]->type;
    for (uint32_t i = 0; i < n; i++) {
        tl_map_put_ptr(&map, region->args[i], x[i]);
        tl_map_put_ptr(&map, region->args[n + i], y[i]);
    }
    for (const TlOp *op = region->first; op != region->last; op = op->next) {
        for (uint32_t i = 0; i < op->nin; i++)
            if (!tl_map_get_ptr(&map, tl_in(op, i)))
                tl_map_put_ptr(&map, tl_in(op, i), as_wide(c, tl_in(op, i), like));
        TlOp *copy = tl_op_clone(&c->b, op, &map);
        copy->out[0]->type =
            tl_type_with_shape(c->ctx, copy->out[0]->type, like->rank, like->shape);
    }
    for (uint32_t i = 0; i < n; i++) {
        TlValue *v = tl_map_get_ptr(&map, tl_in(region->last, i));
        y[i] = v ? v : as_wide(c, tl_in(region->last, i), like);
    }
}

void tl_chunk_combine(TlChunkPart *c, const TlOp *op, uint32_t n, TlValue **x, TlValue **y)
{
    TlCombine kind = (TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0);
    if (kind == TL_COMBINE_USER)
        combine_by_region(c, op->regions[0], n, x, y);
    else
        y[0] = tl_binary(&c->b, tl_combine_opcode(kind), x[0], y[0]);
}

/* ---- the operands of a chunk ---- */

TlValue *tl_chunk_broadcast(TlChunkPart *c, TlValue *v, const TlType *shape)
{
    const TlType *t = tl_type_with_shape(c->ctx, v->type, shape->rank, shape->shape);
    return tl_op_new(&c->b, TL_OP_BROADCAST, 1, &v, 1, &t, 0, 0, NULL)->out[0];
}

static TlValue *make(TlChunkPart *c, const TlOp *op, int axis)
{
    const TlType *t = cut(c, op->out[0]->type, axis);
    if (op->opcode == TL_OP_BROADCAST)
        return tl_chunk_broadcast(c, tl_in(op, 0), t);
    if (op->opcode == TL_OP_CONST)
        return tl_const_bits(&c->b, t, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    TlValue *v = tl_op_new(&c->b, TL_OP_IOTA, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    TlValue *base = tl_cast(&c->b, c->at, t->dtype);
    return tl_binary(&c->b, TL_OP_ADD, v, tl_chunk_broadcast(c, base, t));
}

TlValue *tl_chunk_value(TlChunkPart *c, TlValue *v, int a)
{
    TlValue *known = a < 0 ? v : tl_map_get_ptr(&c->map, v);
    uint64_t key = (uint64_t)v->id * TL_MAX_RANK + (uint64_t)(a < 0 ? 0 : a), at;
    if (known)
        return known;
    if (tl_map_get(&c->made, key, &at))
        return (TlValue *)(uintptr_t)at;
    TL_ASSERT(v->def && tl_chunk_is_made(v->def, a), "value %u has not been cut", v->id);
    TlLoc loc = c->b.loc;
    c->b.loc = v->def->loc;
    TlValue *made = make(c, v->def, a);
    made->name = v->name;
    tl_map_put(&c->made, key, (uint64_t)(uintptr_t)made);
    c->b.loc = loc;
    return made;
}

static TlValue *operand(TlChunkPart *c, const TlOp *op, uint32_t i, int axis)
{
    return tl_chunk_value(c, tl_in(op, i), tl_chunk_operand_axis(op, i, axis));
}

/* Where a slice begins in this chunk: in i32 if both parts are small numbers from 0 on, else in
 * i64, which is wide enough for all that the whole slice reached. */
static TlValue *start_of_chunk(TlChunkPart *c, TlValue *start, int32_t step)
{
    TlWideInt from;
    bool is_small = tl_const_int_value(start, &from) && from >= 0 && from <= MOST_START &&
                    step <= MOST_START / TL_MAX_ELEMS;
    TlDtype d = is_small ? TL_I32 : TL_I64;
    const TlType *t = tl_type_scalar(c->ctx, d);
    TlValue *at = tl_cast(&c->b, c->at, d);
    if (step != 1)
        at = tl_binary(&c->b, TL_OP_MUL, at, tl_const_int(&c->b, t, step));
    if (is_small && from == 0)
        return at;
    return tl_binary(&c->b, TL_OP_ADD, tl_cast(&c->b, start, d), at);
}

/* An access to a view, moved to the chunk. */
static void move_place(TlChunkPart *c, TlOp *copy, const TlOp *op, int axis)
{
    TlPlace p = tl_op_place(op);
    if (!p.axes)
        return;
    TlAxis *axes = TL_NEW_ARRAY(&c->g->fn->module->arena, TlAxis, p.naxes);
    memcpy(axes, p.axes, sizeof *axes * p.naxes);
    for (uint32_t i = 0; i < p.naxes; i++) {
        if (axes[i].kind != TL_AXIS_SLICE || tl_place_dim(&p, i) != axis)
            continue;
        axes[i].width = c->width;
        TlBuilder b = c->b;
        c->b.before = copy;
        TlValue *start = start_of_chunk(c, p.index[i].value, axes[i].step);
        c->b = b;
        tl_set_operand(copy, i + 1, start);
    }
    TlAttr attr = {.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes};
    tl_attr_set(c->g->fn, copy, attr);
}

/* ---- one op in one chunk ---- */

TlOp *tl_chunk_copy(TlChunkPart *c, const TlChunkOp *m)
{
    int a = tl_chunk_result_axis(m->op, m->axis);
    TlValue **in = TL_NEW_ARRAY(c->g->arena, TlValue *, m->op->nin + 1);
    for (uint32_t i = 0; i < m->op->nin; i++)
        in[i] = operand(c, m->op, i, m->axis);
    TlOp *copy = tl_op_clone(&c->b, m->op, &c->map);
    for (uint32_t i = 0; i < m->op->nin; i++)
        tl_set_operand(copy, i, in[i]);
    for (uint32_t r = 0; a >= 0 && r < copy->nout; r++)
        copy->out[r]->type = cut(c, copy->out[r]->type, a);
    if (copy->nin && tl_in(copy, 0)->type->kind == TL_VIEW)
        move_place(c, copy, m->op, m->axis);
    return copy;
}

void tl_chunk_operands(TlChunkPart *c, const TlChunkOp *m, TlValue **x)
{
    for (uint32_t i = 0; i < m->op->nout; i++) {
        x[i] = operand(c, m->op, i, m->axis);
        if (tl_chunk_is_widened(m->op))
            x[i] = tl_cast(&c->b, x[i], TL_F32);
    }
}

const TlType *tl_chunk_without_axis(const TlChunkPart *c, const TlType *t, int axis)
{
    int32_t shape[TL_MAX_RANK];
    int n = 0;
    for (int d = 0; d < t->rank; d++)
        if (d != axis)
            shape[n++] = t->shape[d];
    return tl_type_with_shape(c->ctx, t, n, shape);
}

void tl_chunk_apply(TlChunkPart *c, const TlChunkOp *m, TlValue **x, TlValue *const *first)
{
    TlMap map = {.arena = c->g->arena};
    for (uint32_t i = 0; i < m->op->nout; i++)
        tl_map_put_ptr(&map, tl_in(m->op, i), x[i]);
    TlOp *copy = tl_op_clone(&c->b, m->op, &map);
    for (uint32_t i = copy->nout; i < copy->nin; i++)
        tl_set_operand(copy, i, first[i - copy->nout]);
    for (uint32_t i = 0; i < copy->nout; i++) {
        const TlType *t = x[i]->type;
        copy->out[i]->type = m->op->opcode == TL_OP_SCAN ? t : tl_chunk_without_axis(c, t, m->axis);
        x[i] = copy->out[i];
    }
}

void tl_chunk_erase(TlChunkGroup *g)
{
    TL_VEC(TlOp *) made = {0};
    for (uint32_t k = g->ops.len; k-- > 0;) {
        TlOp *op = g->ops.data[k].op;
        for (uint32_t i = 0; i < op->nin; i++) {
            TlOp *def = tl_in(op, i)->def;
            if (def && !tl_chunk_member(g, def) && tl_op_is_pure(def) && def->nout == 1)
                tl_vec_push(g->arena, &made, def);
        }
        tl_op_erase(op);
    }
    for (uint32_t i = 0; i < made.len; i++)
        if (made.data[i]->block && !made.data[i]->out[0]->uses)
            tl_op_erase(made.data[i]);
}
