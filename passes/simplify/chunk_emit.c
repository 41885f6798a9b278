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

enum { MOST_RESULTS = 4 }; /* of one reduction or scan */

/* What one reduction or scan carries from chunk to chunk; values NULL: nothing yet. */
typedef struct Carry {
    TlChunkOp *m;
    uint32_t n;
    TlValue *value[MOST_RESULTS];
    TlValue *rest[MOST_RESULTS]; /* of a region: what the rest of the extent was reduced to */
} Carry;

typedef struct Emitter {
    TlChunkPart c; /* the chunk */
    int pass;
    int32_t chunk; /* elements of whole ones */
    TL_VEC(Carry) carries;
} Emitter;

/* ---- elements of a tile ---- */

/* 0, 1, ... along the axis of a tile, else all the same. */
static TlValue *count_along(Emitter *e, const TlType *tile, int axis)
{
    const TlType *t = tl_type_tile(e->c.ctx, TL_I32, 1, &tile->shape[axis]);
    TlValue *v = tl_op_new(&e->c.b, TL_OP_IOTA, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    int32_t shape[TL_MAX_RANK] = {tile->shape[axis]};
    for (int d = axis + 1; d < tile->rank; d++) {
        TlAttr behind = {.id = TL_ATTR_AXIS, .u.i = v->type->rank};
        shape[v->type->rank] = 1;
        t = tl_type_tile(e->c.ctx, TL_I32, v->type->rank + 1, shape);
        v = tl_op_new(&e->c.b, TL_OP_EXPAND, 1, &v, 1, &t, 0, 1, &behind)->out[0];
    }
    return tl_broadcast(&e->c.b, v, tile->rank, tile->shape);
}

static void emit_reduce(Emitter *e, Carry *c)
{
    TlValue *x[MOST_RESULTS];
    bool by_region = tl_chunk_is_by_region(c->m->op), whole = e->c.width == e->chunk;
    tl_chunk_operands(&e->c, c->m, x);
    if (!by_region || !whole)
        tl_chunk_apply(&e->c, c->m, x, NULL);
    if (by_region && !whole) {
        memcpy(c->rest, x, sizeof *x * c->n);
        return;
    }
    if (c->value[0])
        tl_chunk_combine(&e->c, c->m->op, c->n, c->value, x);
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
    TlValue *here = tl_binary(&e->c.b, TL_OP_EQ, count, tl_const_int(&e->c.b, count->type, last));
    const TlType *t = tl_type_with_dtype(e->c.ctx, x->type, word);
    if (word != d)
        x = tl_op_new(&e->c.b, TL_OP_BITCAST, 1, &x, 1, &t, 0, 0, NULL)->out[0];
    x = tl_select(&e->c.b, here, x, tl_const_bits(&e->c.b, t, 0));
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = axis},
                       {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_OR}};
    t = tl_chunk_without_axis(&e->c, t, axis);
    x = tl_op_new(&e->c.b, TL_OP_REDUCE, 1, &x, 1, &t, 0, 2, attrs)->out[0];
    t = tl_type_with_dtype(e->c.ctx, t, d);
    return word == d ? x : tl_op_new(&e->c.b, TL_OP_BITCAST, 1, &x, 1, &t, 0, 0, NULL)->out[0];
}

/* v, without the axis, for each element along it. */
static TlValue *along(Emitter *e, TlValue *v, const TlType *to, int axis)
{
    if (v->type->rank) {
        int32_t shape[TL_MAX_RANK];
        memcpy(shape, to->shape, sizeof shape);
        shape[axis] = 1;
        const TlType *t = tl_type_with_shape(e->c.ctx, v->type, to->rank, shape);
        TlAttr at = {.id = TL_ATTR_AXIS, .u.i = axis};
        v = tl_op_new(&e->c.b, TL_OP_EXPAND, 1, &v, 1, &t, 0, 1, &at)->out[0];
    }
    return tl_chunk_broadcast(&e->c, v, to);
}

/* A scan that begins with what is carried, scalars. */
static void emit_scan_from(Emitter *e, Carry *c, int32_t last)
{
    TlValue *x[MOST_RESULTS], *own[MOST_RESULTS];
    const TlOp *op = c->m->op;
    bool exclusive = tl_attr_flag(op, TL_ATTR_EXCLUSIVE);
    tl_chunk_operands(&e->c, c->m, own);
    memcpy(x, own, sizeof *x * c->n);
    tl_chunk_apply(&e->c, c->m, x, c->value);
    for (uint32_t i = 0; i < c->n; i++) {
        c->value[i] = element(e, x[i], c->m->axis, last);
        own[i] = exclusive ? element(e, own[i], c->m->axis, last) : NULL;
        tl_map_put_ptr(&e->c.map, op->out[i], tl_cast(&e->c.b, x[i], op->out[i]->type->dtype));
    }
    if (exclusive) {
        tl_chunk_combine(&e->c, op, c->n, c->value, own);
        memcpy(c->value, own, sizeof *own * c->n);
    }
}

static void emit_scan(Emitter *e, Carry *c)
{
    TlValue *x[MOST_RESULTS], *before[MOST_RESULTS];
    const TlOp *op = c->m->op;
    bool backward = e->c.g->backward >> e->pass & 1;
    int32_t last = backward ? 0 : e->c.width - 1;
    TL_ASSERT(backward == tl_attr_flag(op, TL_ATTR_REVERSE), "a scan in a pass the other way");
    if (op->nin > op->nout) {
        emit_scan_from(e, c, last);
        return;
    }
    tl_chunk_operands(&e->c, c->m, x);
    tl_chunk_apply(&e->c, c->m, x, NULL);
    for (uint32_t i = 0; c->value[0] && i < c->n; i++)
        before[i] = along(e, c->value[i], x[i]->type, c->m->axis);
    if (c->value[0])
        tl_chunk_combine(&e->c, op, c->n, before, x);
    for (uint32_t i = 0; i < c->n; i++) {
        c->value[i] = element(e, x[i], c->m->axis, last);
        tl_map_put_ptr(&e->c.map, op->out[i], tl_cast(&e->c.b, x[i], op->out[i]->type->dtype));
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
    e->c.at = at;
    e->c.width = width;
    tl_map_init(&e->c.map, e->c.g->arena);
    tl_map_init(&e->c.made, e->c.g->arena);
    for (uint32_t k = 0; k < e->c.g->ops.len; k++) {
        TlChunkOp *m = &e->c.g->ops.data[k];
        if (!(m->passes >> e->pass & 1))
            continue;
        e->c.b.loc = m->op->loc;
        Carry *c = carry_of(e, m);
        if (!c)
            tl_chunk_copy(&e->c, m);
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
        c->value[i - op->nout] = tl_chunk_is_widened(op) ? tl_cast(&e->c.b, v, TL_F32) : v;
    }
}

static void find_carries(Emitter *e)
{
    e->carries.len = 0;
    for (uint32_t k = 0; k < e->c.g->ops.len; k++) {
        TlChunkOp *m = &e->c.g->ops.data[k];
        if (!(m->passes >> e->pass & 1) || !is_carried(m) || !m->op->nout)
            continue;
        Carry c = {.m = m, .n = m->op->nout};
        begin_scan(e, &c);
        tl_vec_push(e->c.g->arena, &e->carries, c);
    }
}

/* Must a whole chunk come before the loop, to give it what to begin with? */
static bool must_begin(const Emitter *e)
{
    for (uint32_t i = 0; i < e->carries.len; i++)
        if (tl_chunk_is_by_region(e->carries.data[i].m->op) && !e->carries.data[i].value[0])
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
        const TlType *t = tl_chunk_without_axis(&e->c, tl_in(op, 0)->type, c->m->axis);
        if (tl_chunk_is_widened(op))
            t = tl_type_with_dtype(e->c.ctx, t, TL_F32);
        TlCombine kind = (TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0);
        uint64_t identity = tl_combine_identity(kind, tl_op_dtype(op, t->dtype));
        c->value[0] = tl_const_bits(&e->c.b, t, identity);
    }
}

static TlValue *number(Emitter *e, int32_t n)
{
    return tl_const_int(&e->c.b, tl_type_scalar(e->c.ctx, TL_I32), n);
}

/* What is carried goes through the loop: in, out, and from iteration to iteration. */
static void emit_loop(Emitter *e, int32_t from, int32_t to, int32_t step)
{
    begin_by_identity(e);
    TL_VEC(TlValue *) in = {0};
    TL_VEC(const TlType *) types = {0};
    TlValue *range[3] = {number(e, from), number(e, to), number(e, step)};
    for (int i = 0; i < 3; i++)
        tl_vec_push(e->c.g->arena, &in, range[i]);
    for (uint32_t i = 0; i < e->carries.len; i++)
        for (uint32_t r = 0; r < e->carries.data[i].n; r++) {
            tl_vec_push(e->c.g->arena, &in, e->carries.data[i].value[r]);
            tl_vec_push(e->c.g->arena, &types, e->carries.data[i].value[r]->type);
        }
    TlOp *loop = tl_op_new(&e->c.b, TL_OP_FOR, in.len, in.data, types.len, types.data, 1, 0, NULL);
    tl_remark(e->c.b.fn, loop, TL_REMARK_CHUNKS, e->c.g->extent);
    tl_map_put_ptr(e->c.g->loops, loop, loop);
    TlBuilder outer = e->c.b;
    e->c.b = tl_builder_end(loop->regions[0]);
    TlValue *at = tl_block_arg(loop->regions[0], range[0]->type, "chunk");
    for (uint32_t i = 0; i < e->carries.len; i++)
        for (uint32_t r = 0; r < e->carries.data[i].n; r++)
            e->carries.data[i].value[r] =
                tl_block_arg(loop->regions[0], e->carries.data[i].value[r]->type, NULL);
    emit_chunk(e, at, e->chunk);
    TL_VEC(TlValue *) next = {0};
    for (uint32_t i = 0; i < e->carries.len; i++)
        for (uint32_t r = 0; r < e->carries.data[i].n; r++)
            tl_vec_push(e->c.g->arena, &next, e->carries.data[i].value[r]);
    tl_yield(&e->c.b, TL_OP_YIELD, next.len, next.data);
    e->c.b = outer;
    for (uint32_t i = 0, k = 0; i < e->carries.len; i++)
        for (uint32_t r = 0; r < e->carries.data[i].n; r++)
            e->carries.data[i].value[r] = loop->out[k++];
}

/* All chunks, from the first on; reversed, from the last. */
static void emit_chunks(Emitter *e)
{
    int32_t n = e->c.g->extent / e->chunk, rest = e->c.g->extent % e->chunk, first = 0;
    bool reversed = e->c.g->backward >> e->pass & 1;
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
    e->c.b.loc = op->loc;
    if (tl_chunk_is_by_region(op)) {
        tl_chunk_apply(&e->c, c->m, c->value, NULL);
        if (c->rest[0])
            tl_chunk_combine(&e->c, op, c->n, c->rest, c->value);
    }
    for (uint32_t i = 0; i < c->n; i++) {
        TlValue *v = tl_cast(&e->c.b, c->value[i], op->out[i]->type->dtype);
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
    for (uint32_t i = 0; i < e->c.g->between.len; i++)
        if (e->c.g->when.data[i] == pass)
            tl_op_move_before(e->c.g->between.data[i], e->c.b.before);
    find_carries(e);
    const TlOp *last = last_of_pass(e->c.g, pass);
    if (!last)
        return;
    e->c.b.loc = last->loc;
    emit_chunks(e);
    for (uint32_t i = 0; i < e->carries.len; i++)
        finish_carry(e, &e->carries.data[i]);
}

void tl_chunk_emit(TlChunkGroup *g, int32_t chunk)
{
    TL_ASSERT(chunk > 0 && chunk <= g->extent, "chunks of %d of %d", (int)chunk, (int)g->extent);
    TlOp *last = g->ops.data[g->ops.len - 1].op;
    Emitter e = {.c = {.g = g, .ctx = g->fn->module->ctx}, .chunk = chunk};
    e.c.b = tl_builder_before(last->next);
    int most = g->npasses;
    for (uint32_t i = 0; i < g->when.len; i++)
        most = g->when.data[i] + 1 > most ? g->when.data[i] + 1 : most;
    for (int pass = 0; pass < most; pass++)
        emit_pass(&e, pass);
    tl_chunk_erase(g);
}
