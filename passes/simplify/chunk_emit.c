/* The loops over chunks (chunk_impl.h).
 *
 * Each pass is a loop over the whole chunks, and code for the rest of the extent. A loop carries
 *  - of a reduction by a known kind: what has been reduced so far; a reduction of f16 or bf16 is
 *    kept in f32 between chunks as it is within one, and rounded at the end;
 *  - of one by a region: a tile of the chunk's shape, to which each chunk is combined element by
 *    element; it is reduced behind the loop. There is no identity to begin with, so the first whole
 *    chunk comes before the loop;
 *  - of a scan: its last element, which goes into all elements of the next chunk; what a scan
 *    begins with is carried as if it were one of an earlier chunk. */
#include "ir/interp/ring_float.h"
#include "ir/plan/reduce_plan.h"
#include "ir/remark.h"
#include "passes/analysis/facts.h"
#include "passes/simplify/chunk_impl.h"
#include <string.h>

enum {
    MOST_RESULTS = 4,    /* of one reduction or scan */
    MOST_START = 1 << 30 /* of a slice, and of its last element from there: their sum fits in i32 */
};

/* What one reduction or scan carries from chunk to chunk; values NULL: nothing yet. */
typedef struct Carry {
    TlChunkOp *m;
    uint32_t n;
    TlValue *value[MOST_RESULTS];
    TlValue *rest[MOST_RESULTS]; /* of a region: what the rest of the extent was reduced to */
} Carry;

typedef struct Emitter {
    TlChunkGroup *g;
    TlCtx *ctx;
    TlBuilder b;
    int pass;
    int32_t chunk, width; /* of whole chunks; of this one */
    TlValue *at;          /* i32: where it begins */
    TlMap map;            /* values of the group to those of this chunk */
    TlMap made;           /* others, by the axis that is cut */
    TL_VEC(Carry) carries;
} Emitter;

/* ---- types ---- */

static const TlType *cut(const Emitter *e, const TlType *t, int axis)
{
    int32_t shape[TL_MAX_RANK];
    memcpy(shape, t->shape, sizeof shape);
    shape[axis] = e->width;
    return tl_type_with_shape(e->ctx, t, t->rank, shape);
}

static bool is_by_region(const TlOp *op)
{
    return tl_attr_int(op, TL_ATTR_KIND, 0) == TL_COMBINE_USER;
}

/* Kept in f32 between the chunks. */
static bool is_widened(const TlOp *op)
{
    TlDtype d = tl_in(op, 0)->type->dtype;
    return tl_combine_work_type(op, d) != d;
}

/* ---- combiners ---- */

static TlValue *as_wide(Emitter *e, TlValue *v, const TlType *like)
{
    return like->rank ? tl_broadcast(&e->b, v, like->rank, like->shape) : v;
}

/* The region of a reduction or scan on tiles: y = region(x, y). */
static void combine_by_region(Emitter *e, const TlBlock *region, uint32_t n, TlValue **x,
                              TlValue **y)
{
    TlMap map = {.arena = e->g->arena};
    const TlType *like = y[0]->type;
    for (uint32_t i = 0; i < n; i++) {
        tl_map_put_ptr(&map, region->args[i], x[i]);
        tl_map_put_ptr(&map, region->args[n + i], y[i]);
    }
    for (const TlOp *op = region->first; op != region->last; op = op->next) {
        for (uint32_t i = 0; i < op->nin; i++)
            if (!tl_map_get_ptr(&map, tl_in(op, i)))
                tl_map_put_ptr(&map, tl_in(op, i), as_wide(e, tl_in(op, i), like));
        TlOp *copy = tl_op_clone(&e->b, op, &map);
        copy->out[0]->type =
            tl_type_with_shape(e->ctx, copy->out[0]->type, like->rank, like->shape);
    }
    for (uint32_t i = 0; i < n; i++) {
        TlValue *v = tl_map_get_ptr(&map, tl_in(region->last, i));
        y[i] = v ? v : as_wide(e, tl_in(region->last, i), like);
    }
}

/* y = x combined with y; x comes first. */
static void combine(Emitter *e, const TlOp *op, uint32_t n, TlValue **x, TlValue **y)
{
    TlCombine kind = (TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0);
    if (kind == TL_COMBINE_USER)
        combine_by_region(e, op->regions[0], n, x, y);
    else
        y[0] = tl_binary(&e->b, tl_combine_opcode(kind), x[0], y[0]);
}

/* ---- the operands of a chunk ---- */

static TlValue *broadcast_to(Emitter *e, TlValue *v, const TlType *shape)
{
    const TlType *t = tl_type_with_shape(e->ctx, v->type, shape->rank, shape->shape);
    return tl_op_new(&e->b, TL_OP_BROADCAST, 1, &v, 1, &t, 0, 0, NULL)->out[0];
}

/* 0, 1, ... along the axis of a tile, else all the same. */
static TlValue *count_along(Emitter *e, const TlType *tile, int axis)
{
    const TlType *t = tl_type_tile(e->ctx, TL_I32, 1, &tile->shape[axis]);
    TlValue *v = tl_op_new(&e->b, TL_OP_IOTA, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    int32_t shape[TL_MAX_RANK] = {tile->shape[axis]};
    for (int d = axis + 1; d < tile->rank; d++) {
        TlAttr behind = {.id = TL_ATTR_AXIS, .u.i = v->type->rank};
        shape[v->type->rank] = 1;
        t = tl_type_tile(e->ctx, TL_I32, v->type->rank + 1, shape);
        v = tl_op_new(&e->b, TL_OP_EXPAND, 1, &v, 1, &t, 0, 1, &behind)->out[0];
    }
    return tl_broadcast(&e->b, v, tile->rank, tile->shape);
}

static TlValue *make(Emitter *e, const TlOp *op, int axis)
{
    const TlType *t = cut(e, op->out[0]->type, axis);
    if (op->opcode == TL_OP_BROADCAST)
        return broadcast_to(e, tl_in(op, 0), t);
    if (op->opcode == TL_OP_CONST)
        return tl_const_bits(&e->b, t, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    TlValue *v = tl_op_new(&e->b, TL_OP_IOTA, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    TlValue *base = tl_cast(&e->b, e->at, t->dtype);
    return tl_binary(&e->b, TL_OP_ADD, v, broadcast_to(e, base, t));
}

/* Operand i in this chunk: as it is, if the op takes it whole, though others may take it cut. */
static TlValue *operand(Emitter *e, const TlOp *op, uint32_t i, int axis)
{
    TlValue *v = tl_in(op, i);
    int a = tl_chunk_operand_axis(op, i, axis);
    TlValue *known = a < 0 ? v : tl_map_get_ptr(&e->map, v);
    uint64_t key = (uint64_t)v->id * TL_MAX_RANK + (uint64_t)(a < 0 ? 0 : a), at;
    if (known)
        return known;
    if (tl_map_get(&e->made, key, &at))
        return (TlValue *)(uintptr_t)at;
    TL_ASSERT(v->def && tl_chunk_is_made(v->def, a), "operand %u of %s has not been cut", i,
              tl_op_info(op->opcode)->text);
    TlLoc loc = e->b.loc;
    e->b.loc = v->def->loc;
    TlValue *made = make(e, v->def, a);
    made->name = v->name;
    tl_map_put(&e->made, key, (uint64_t)(uintptr_t)made);
    e->b.loc = loc;
    return made;
}

/* Where a slice begins in this chunk: in i32 if both parts are small numbers from 0 on, else in
 * i64, which is wide enough for all that the whole slice reached. */
static TlValue *start_of_chunk(Emitter *e, TlValue *start, int32_t step)
{
    TlWideInt from;
    bool is_small = tl_const_int_value(start, &from) && from >= 0 && from <= MOST_START &&
                    step <= MOST_START / TL_MAX_ELEMS;
    TlDtype d = is_small ? TL_I32 : TL_I64;
    const TlType *t = tl_type_scalar(e->ctx, d);
    TlValue *at = tl_cast(&e->b, e->at, d);
    if (step != 1)
        at = tl_binary(&e->b, TL_OP_MUL, at, tl_const_int(&e->b, t, step));
    if (is_small && from == 0)
        return at;
    return tl_binary(&e->b, TL_OP_ADD, tl_cast(&e->b, start, d), at);
}

/* An access to a view, moved to the chunk. */
static void move_place(Emitter *e, TlOp *copy, const TlOp *op, int axis)
{
    TlPlace p = tl_op_place(op);
    if (!p.axes)
        return;
    TlAxis *axes = TL_NEW_ARRAY(&e->g->fn->module->arena, TlAxis, p.naxes);
    memcpy(axes, p.axes, sizeof *axes * p.naxes);
    for (uint32_t i = 0; i < p.naxes; i++) {
        if (axes[i].kind != TL_AXIS_SLICE || tl_place_dim(&p, i) != axis)
            continue;
        axes[i].width = e->width;
        TlBuilder b = e->b;
        e->b.before = copy;
        TlValue *start = start_of_chunk(e, p.index[i].value, axes[i].step);
        e->b = b;
        tl_set_operand(copy, i + 1, start);
    }
    TlAttr attr = {.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes};
    tl_attr_set(e->g->fn, copy, attr);
}

/* ---- one op in one chunk ---- */

static TlOp *emit_copy(Emitter *e, const TlChunkOp *m)
{
    int a = tl_chunk_result_axis(m->op, m->axis);
    TlValue **in = TL_NEW_ARRAY(e->g->arena, TlValue *, m->op->nin + 1);
    for (uint32_t i = 0; i < m->op->nin; i++)
        in[i] = operand(e, m->op, i, m->axis);
    TlOp *copy = tl_op_clone(&e->b, m->op, &e->map);
    for (uint32_t i = 0; i < m->op->nin; i++)
        tl_set_operand(copy, i, in[i]);
    for (uint32_t r = 0; a >= 0 && r < copy->nout; r++)
        copy->out[r]->type = cut(e, copy->out[r]->type, a);
    if (copy->nin && tl_in(copy, 0)->type->kind == TL_VIEW)
        move_place(e, copy, m->op, m->axis);
    return copy;
}

/* The op's tiles in this chunk, in f32 if they are kept so. */
static void operands(Emitter *e, const TlChunkOp *m, TlValue **x)
{
    for (uint32_t i = 0; i < m->op->nout; i++) {
        x[i] = operand(e, m->op, i, m->axis);
        if (is_widened(m->op))
            x[i] = tl_cast(&e->b, x[i], TL_F32);
    }
}

static const TlType *without_axis(const Emitter *e, const TlType *t, int axis)
{
    int32_t shape[TL_MAX_RANK];
    int n = 0;
    for (int d = 0; d < t->rank; d++)
        if (d != axis)
            shape[n++] = t->shape[d];
    return tl_type_with_shape(e->ctx, t, n, shape);
}

/* x -> the reduction or scan of it, as the op does it. first: what a scan begins with, if it
 * does. */
static void apply(Emitter *e, const TlChunkOp *m, TlValue **x, TlValue *const *first)
{
    TlMap map = {.arena = e->g->arena};
    for (uint32_t i = 0; i < m->op->nout; i++)
        tl_map_put_ptr(&map, tl_in(m->op, i), x[i]);
    TlOp *copy = tl_op_clone(&e->b, m->op, &map);
    for (uint32_t i = copy->nout; i < copy->nin; i++)
        tl_set_operand(copy, i, first[i - copy->nout]);
    for (uint32_t i = 0; i < copy->nout; i++) {
        const TlType *t = x[i]->type;
        copy->out[i]->type = m->op->opcode == TL_OP_SCAN ? t : without_axis(e, t, m->axis);
        x[i] = copy->out[i];
    }
}

static void emit_reduce(Emitter *e, Carry *c)
{
    TlValue *x[MOST_RESULTS];
    bool by_region = is_by_region(c->m->op), whole = e->width == e->chunk;
    operands(e, c->m, x);
    if (!by_region || !whole)
        apply(e, c->m, x, NULL);
    if (by_region && !whole) {
        memcpy(c->rest, x, sizeof *x * c->n);
        return;
    }
    if (c->value[0])
        combine(e, c->m->op, c->n, c->value, x);
    memcpy(c->value, x, sizeof *x * c->n);
}

static TlDtype word_of(TlDtype d)
{
    static const TlDtype words[] = {TL_U8, TL_U16, TL_U32, TL_U64};
    int bytes = tl_dtype_bytes(d);
    return tl_is_float(d) ? words[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3] : d;
}

/* The element of x at index `last` of the axis, by its bits: all others become 0. */
static TlValue *element(Emitter *e, TlValue *x, int axis, int32_t last)
{
    TlDtype d = x->type->dtype, word = word_of(d);
    TlValue *count = count_along(e, x->type, axis);
    TlValue *here = tl_binary(&e->b, TL_OP_EQ, count, tl_const_int(&e->b, count->type, last));
    const TlType *t = tl_type_with_dtype(e->ctx, x->type, word);
    if (word != d)
        x = tl_op_new(&e->b, TL_OP_BITCAST, 1, &x, 1, &t, 0, 0, NULL)->out[0];
    x = tl_select(&e->b, here, x, tl_const_bits(&e->b, t, 0));
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = axis},
                       {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_OR}};
    t = without_axis(e, t, axis);
    x = tl_op_new(&e->b, TL_OP_REDUCE, 1, &x, 1, &t, 0, 2, attrs)->out[0];
    t = tl_type_with_dtype(e->ctx, t, d);
    return word == d ? x : tl_op_new(&e->b, TL_OP_BITCAST, 1, &x, 1, &t, 0, 0, NULL)->out[0];
}

/* v, without the axis, for each element along it. */
static TlValue *along(Emitter *e, TlValue *v, const TlType *to, int axis)
{
    if (v->type->rank) {
        int32_t shape[TL_MAX_RANK];
        memcpy(shape, to->shape, sizeof shape);
        shape[axis] = 1;
        const TlType *t = tl_type_with_shape(e->ctx, v->type, to->rank, shape);
        TlAttr at = {.id = TL_ATTR_AXIS, .u.i = axis};
        v = tl_op_new(&e->b, TL_OP_EXPAND, 1, &v, 1, &t, 0, 1, &at)->out[0];
    }
    return broadcast_to(e, v, to);
}

/* A scan that begins with what is carried, scalars. */
static void emit_scan_from(Emitter *e, Carry *c, int32_t last)
{
    TlValue *x[MOST_RESULTS], *own[MOST_RESULTS];
    const TlOp *op = c->m->op;
    bool exclusive = tl_attr_flag(op, TL_ATTR_EXCLUSIVE);
    operands(e, c->m, own);
    memcpy(x, own, sizeof *x * c->n);
    apply(e, c->m, x, c->value);
    for (uint32_t i = 0; i < c->n; i++) {
        c->value[i] = element(e, x[i], c->m->axis, last);
        own[i] = exclusive ? element(e, own[i], c->m->axis, last) : NULL;
        tl_map_put_ptr(&e->map, op->out[i], tl_cast(&e->b, x[i], op->out[i]->type->dtype));
    }
    if (exclusive) {
        combine(e, op, c->n, c->value, own);
        memcpy(c->value, own, sizeof *own * c->n);
    }
}

static void emit_scan(Emitter *e, Carry *c)
{
    TlValue *x[MOST_RESULTS], *before[MOST_RESULTS];
    const TlOp *op = c->m->op;
    bool backward = e->g->backward >> e->pass & 1;
    int32_t last = backward ? 0 : e->width - 1;
    TL_ASSERT(backward == tl_attr_flag(op, TL_ATTR_REVERSE), "a scan in a pass the other way");
    if (op->nin > op->nout) {
        emit_scan_from(e, c, last);
        return;
    }
    operands(e, c->m, x);
    apply(e, c->m, x, NULL);
    for (uint32_t i = 0; c->value[0] && i < c->n; i++)
        before[i] = along(e, c->value[i], x[i]->type, c->m->axis);
    if (c->value[0])
        combine(e, op, c->n, before, x);
    for (uint32_t i = 0; i < c->n; i++) {
        c->value[i] = element(e, x[i], c->m->axis, last);
        tl_map_put_ptr(&e->map, op->out[i], tl_cast(&e->b, x[i], op->out[i]->type->dtype));
    }
}

static Carry *carry_of(const Emitter *e, const TlChunkOp *m)
{
    for (uint32_t i = 0; i < e->carries.len; i++)
        if (e->carries.data[i].m == m)
            return &e->carries.data[i];
    return NULL;
}

/* The chunk of `width` elements that begins at `at`. */
static void emit_chunk(Emitter *e, TlValue *at, int32_t width)
{
    TL_ASSERT(width > 0 && width <= e->chunk, "%d elements of %d", (int)width, (int)e->chunk);
    e->at = at;
    e->width = width;
    tl_map_init(&e->map, e->g->arena);
    tl_map_init(&e->made, e->g->arena);
    for (uint32_t k = 0; k < e->g->ops.len; k++) {
        TlChunkOp *m = &e->g->ops.data[k];
        if (!(m->passes >> e->pass & 1))
            continue;
        e->b.loc = m->op->loc;
        Carry *c = carry_of(e, m);
        if (!c)
            emit_copy(e, m);
        else if (m->op->opcode == TL_OP_SCAN)
            emit_scan(e, c);
        else
            emit_reduce(e, c);
    }
}

/* ---- the chunks of a pass ---- */

static bool is_carried(const TlChunkOp *m)
{
    return tl_chunk_way(m->op, m->axis) ||
           tl_chunk_result_axis(m->op, m->axis) == TL_CHUNK_WHOLE;
}

/* What a scan begins with. */
static void begin_scan(Emitter *e, Carry *c)
{
    const TlOp *op = c->m->op;
    for (uint32_t i = op->nout; i < op->nin; i++) {
        TlValue *v = tl_in(op, i);
        c->value[i - op->nout] = is_widened(op) ? tl_cast(&e->b, v, TL_F32) : v;
    }
}

static void find_carries(Emitter *e)
{
    e->carries.len = 0;
    for (uint32_t k = 0; k < e->g->ops.len; k++) {
        TlChunkOp *m = &e->g->ops.data[k];
        if (!(m->passes >> e->pass & 1) || !is_carried(m) || !m->op->nout)
            continue;
        Carry c = {.m = m, .n = m->op->nout};
        begin_scan(e, &c);
        tl_vec_push(e->g->arena, &e->carries, c);
    }
}

/* Must a whole chunk come before the loop, to give it what to begin with? */
static bool must_begin(const Emitter *e)
{
    for (uint32_t i = 0; i < e->carries.len; i++)
        if (is_by_region(e->carries.data[i].m->op) && !e->carries.data[i].value[0])
            return true;
    return false;
}

static void begin_by_identity(Emitter *e)
{
    for (uint32_t i = 0; i < e->carries.len; i++) {
        Carry *c = &e->carries.data[i];
        if (c->value[0])
            continue;
        const TlOp *op = c->m->op;
        const TlType *t = without_axis(e, tl_in(op, 0)->type, c->m->axis);
        if (is_widened(op))
            t = tl_type_with_dtype(e->ctx, t, TL_F32);
        TlCombine kind = (TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0);
        c->value[0] = tl_const_bits(&e->b, t, tl_combine_identity(kind, tl_op_dtype(op, t->dtype)));
    }
}

static TlValue *number(Emitter *e, int32_t n)
{
    return tl_const_int(&e->b, tl_type_scalar(e->ctx, TL_I32), n);
}

/* What is carried goes through the loop: in, out, and from iteration to iteration. */
static void emit_loop(Emitter *e, int32_t from, int32_t to, int32_t step)
{
    begin_by_identity(e);
    TL_VEC(TlValue *) in = {0};
    TL_VEC(const TlType *) types = {0};
    TlValue *range[3] = {number(e, from), number(e, to), number(e, step)};
    for (int i = 0; i < 3; i++)
        tl_vec_push(e->g->arena, &in, range[i]);
    for (uint32_t i = 0; i < e->carries.len; i++)
        for (uint32_t r = 0; r < e->carries.data[i].n; r++) {
            tl_vec_push(e->g->arena, &in, e->carries.data[i].value[r]);
            tl_vec_push(e->g->arena, &types, e->carries.data[i].value[r]->type);
        }
    TlOp *loop = tl_op_new(&e->b, TL_OP_FOR, in.len, in.data, types.len, types.data, 1, 0, NULL);
    tl_remark(e->b.fn, loop, TL_REMARK_CHUNKS, e->g->extent);
    tl_map_put_ptr(e->g->loops, loop, loop);
    TlBuilder outer = e->b;
    e->b = tl_builder_end(loop->regions[0]);
    TlValue *at = tl_block_arg(loop->regions[0], range[0]->type, "chunk");
    for (uint32_t i = 0; i < e->carries.len; i++)
        for (uint32_t r = 0; r < e->carries.data[i].n; r++)
            e->carries.data[i].value[r] =
                tl_block_arg(loop->regions[0], e->carries.data[i].value[r]->type, NULL);
    emit_chunk(e, at, e->chunk);
    TL_VEC(TlValue *) next = {0};
    for (uint32_t i = 0; i < e->carries.len; i++)
        for (uint32_t r = 0; r < e->carries.data[i].n; r++)
            tl_vec_push(e->g->arena, &next, e->carries.data[i].value[r]);
    tl_yield(&e->b, TL_OP_YIELD, next.len, next.data);
    e->b = outer;
    for (uint32_t i = 0, k = 0; i < e->carries.len; i++)
        for (uint32_t r = 0; r < e->carries.data[i].n; r++)
            e->carries.data[i].value[r] = loop->out[k++];
}

/* All chunks, from the first on; reversed, from the last. */
static void emit_chunks(Emitter *e)
{
    int32_t n = e->g->extent / e->chunk, rest = e->g->extent % e->chunk, first = 0;
    bool reversed = e->g->backward >> e->pass & 1;
    if (reversed && rest)
        emit_chunk(e, number(e, n * e->chunk), rest);
    if (must_begin(e) || n == 1) {
        emit_chunk(e, number(e, reversed ? (n - 1) * e->chunk : 0), e->chunk);
        first = 1;
    }
    if (n > first && reversed)
        emit_loop(e, (n - 1 - first) * e->chunk, -e->chunk, -e->chunk);
    else if (n > first)
        emit_loop(e, first * e->chunk, n * e->chunk, e->chunk);
    if (!reversed && rest)
        emit_chunk(e, number(e, n * e->chunk), rest);
}

/* What a reduction has come to takes the place of its results. */
static void finish_carry(Emitter *e, Carry *c)
{
    const TlOp *op = c->m->op;
    if (op->opcode == TL_OP_SCAN)
        return;
    e->b.loc = op->loc;
    if (is_by_region(op)) {
        apply(e, c->m, c->value, NULL);
        if (c->rest[0])
            combine(e, op, c->n, c->rest, c->value);
    }
    for (uint32_t i = 0; i < c->n; i++) {
        TlValue *v = tl_cast(&e->b, c->value[i], op->out[i]->type->dtype);
        v->name = op->out[i]->name;
        tl_replace_uses(op->out[i], v);
    }
}

/* ---- all passes ---- */

static const TlOp *last_of_pass(const TlChunkGroup *g, int pass)
{
    const TlOp *last = NULL;
    for (uint32_t k = 0; k < g->ops.len; k++)
        if (g->ops.data[k].passes >> pass & 1)
            last = g->ops.data[k].op;
    return last;
}

static void emit_pass(Emitter *e, int pass)
{
    e->pass = pass;
    for (uint32_t i = 0; i < e->g->between.len; i++)
        if (e->g->when.data[i] == pass)
            tl_op_move_before(e->g->between.data[i], e->b.before);
    find_carries(e);
    const TlOp *last = last_of_pass(e->g, pass);
    if (!last)
        return;
    e->b.loc = last->loc;
    emit_chunks(e);
    for (uint32_t i = 0; i < e->carries.len; i++)
        finish_carry(e, &e->carries.data[i]);
}

/* The group, and what was made for it only. */
static void erase_group(TlChunkGroup *g)
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

void tl_chunk_emit(TlChunkGroup *g, int32_t chunk)
{
    TL_ASSERT(chunk > 0 && chunk <= g->extent, "chunks of %d of %d", (int)chunk, (int)g->extent);
    TlOp *last = g->ops.data[g->ops.len - 1].op;
    Emitter e = {.g = g, .ctx = g->fn->module->ctx, .chunk = chunk};
    e.b = tl_builder_before(last->next);
    int most = g->npasses;
    for (uint32_t i = 0; i < g->when.len; i++)
        most = g->when.data[i] + 1 > most ? g->when.data[i] + 1 : most;
    for (int pass = 0; pass < most; pass++)
        emit_pass(&e, pass);
    erase_group(g);
}
