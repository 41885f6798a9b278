/* cut-carried: a tile that a loop carries, and that takes most of a thread's registers, is carried
 * in parts.
 *
 *     %r = for ..., %v (%i, %x) {               %r0, %r1 = for ..., %v0, %v1 (%i, %x0, %x1) {
 *       %s = reduce %x {axis = 1}                 %s0 = reduce %x0 {axis = 1}
 *       %y = mul %x, (%s along axis 1)            %y0 = mul %x0, (%s0 along axis 1)
 *       %t = reduce %y {axis = 0}          =>     %s1 = reduce %x1 {axis = 1}
 *       %z = mul %y, (%t along axis 0)            %y1 = mul %x1, (%s1 along axis 1)
 *       yield %z                                  %t  = reduce (add %y0, %y1) {axis = 0}
 *     }                                           %z0 = mul %y0, (%t along axis 0)
 *                                                 %z1 = mul %y1, (%t along axis 0)
 *                                                 yield %z0, %z1
 *                                               }
 *
 * A whole tile is in registers or is not; of parts, some can wait in shared memory while others are
 * worked on (park-tiles). A row that no loop carries is read again in chunks instead (chunk-rows).
 *
 *  0. Totals of such tiles are taken axis by axis.
 *  1. The ops that must be cut together, as for chunks (chunk_find.c), but through loops and
 *     branches: what these carry or result in is cut with what goes in. No products: their sums
 *     have layouts of their own.
 *  2. In each stretch of a block without effects but loads: first what the reductions along the
 *     axis do not need, one part after the other; then these; then what follows from them.
 *  3. Loops and branches have a value for each part.
 *
 * Elements have the bits that they had; reductions of floats along the axis have another order, as
 * is open on a GPU. The option `parts=N` demands N parts of every tile that a loop carries. */
#include "ir/remark.h"
#include "passes/analysis/default_warps.h"
#include "passes/analysis/registers.h"
#include "passes/simplify/chunk_impl.h"
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PARTS = 16,
    LEAST_WORDS = 4,  /* of a part: a vector */
    MOST_SHARE = 75,  /* percent of the registers that a carried tile may take as a whole; */
    PART_SHARE = 12,  /* and that a part is to take */
    MOST_RESULTS = 4, /* of one reduction */
    MOST_DEPTH = 32   /* of blocks in which something is cut */
};

/* A loop or branch, and which of its results are cut. */
typedef struct Frame {
    TlOp *op;
    TL_VEC(uint32_t) cut;
} Frame;

typedef struct Place {
    TlValue *v;
    int axis;
} Place;

typedef struct Cut {
    TlChunkGroup g;
    TlArena *arena;
    TlMap axes; /* of values that are cut: which axis, + 1 */
    TL_VEC(Place) values;
    TlMap holds;           /* ops in whose regions something is cut */
    TL_VEC(Frame) frames;  /* inner ones first */
    TL_VEC(TlOp *) begins; /* constants: where parts begin */
    int nparts;
    TlChunkPart part[MOST_PARTS];
} Cut;

/* ---- 1. what is cut ---- */

static int axis_of(Cut *c, const TlValue *v)
{
    uint64_t at;
    return tl_map_get(&c->axes, (uint64_t)(uintptr_t)v, &at) ? (int)at - 1 : TL_CHUNK_WHOLE;
}

static bool add_value(Cut *c, TlValue *v, int axis)
{
    const TlType *t = v->type;
    if (axis < 0 || t->kind != TL_TILE || axis >= t->rank || t->shape[axis] != c->g.extent)
        return false;
    int known = axis_of(c, v);
    if (known >= 0)
        return known == axis;
    tl_map_put(&c->axes, (uint64_t)(uintptr_t)v, (uint64_t)axis + 1);
    tl_vec_push(c->arena, &c->values, ((Place){v, axis}));
    return true;
}

static int depth_of(const TlBlock *b)
{
    int depth = 0;
    for (; b->parent && depth <= MOST_DEPTH; b = b->parent->block)
        depth++;
    return depth;
}

static bool add_op(Cut *c, TlOp *op, int axis)
{
    const TlChunkOp *known = tl_chunk_member(&c->g, op);
    if (axis < 0 || known)
        return known && known->axis == axis;
    bool none = op->opcode == TL_OP_DOT || op->opcode == TL_OP_ATOMIC_RMW ||
                (op->opcode == TL_OP_SCAN && tl_attr_int(op, TL_ATTR_AXIS, 0) == axis) ||
                op->nout > MOST_RESULTS || depth_of(op->block) > MOST_DEPTH;
    if (none || !tl_chunk_can_cut(op, axis))
        return false;
    tl_vec_push(c->arena, &c->g.ops, ((TlChunkOp){.op = op, .axis = axis}));
    tl_map_put(&c->g.index, (uint64_t)(uintptr_t)op, c->g.ops.len);
    return true;
}

/* What a for carries as its i-th: the start, in its body, what a trip gives, the result. */
static bool add_carried(Cut *c, TlOp *loop, uint32_t i, int axis)
{
    TlBlock *body = loop->regions[0];
    return add_value(c, tl_in(loop, i + 3), axis) && add_value(c, body->args[i + 1], axis) &&
           add_value(c, tl_in(body->last, i), axis) && add_value(c, loop->out[i], axis);
}

static bool add_results(Cut *c, TlOp *branch, uint32_t i, int axis)
{
    return add_value(c, tl_in(branch->regions[0]->last, i), axis) &&
           add_value(c, tl_in(branch->regions[1]->last, i), axis) &&
           add_value(c, branch->out[i], axis);
}

static bool add_through(Cut *c, TlOp *frame, uint32_t i, int axis)
{
    if (depth_of(frame->block) > MOST_DEPTH)
        return false;
    if (frame->opcode == TL_OP_FOR)
        return add_carried(c, frame, i, axis);
    return frame->opcode == TL_OP_IF && add_results(c, frame, i, axis);
}

static bool add_def(Cut *c, TlValue *v, int axis)
{
    if (!v->def) {
        TlOp *loop = v->block->parent;
        return loop && loop->opcode == TL_OP_FOR && v->index > 0 &&
               add_carried(c, loop, v->index - 1, axis);
    }
    if (v->def->opcode == TL_OP_FOR || v->def->opcode == TL_OP_IF)
        return add_through(c, v->def, v->index, axis);
    return add_op(c, v->def, tl_chunk_axis_of_result(v->def, axis));
}

static bool add_user(Cut *c, TlOp *user, uint32_t i, int axis)
{
    if (user->opcode == TL_OP_FOR)
        return i >= 3 && add_carried(c, user, i - 3, axis);
    if (user->opcode == TL_OP_YIELD)
        return user->block->parent && add_through(c, user->block->parent, i, axis);
    if (tl_op_info(user->opcode)->flags & F_TERM)
        return false;
    return add_op(c, user, tl_chunk_axis_of_operand(user, i, axis));
}

static bool look_around_value(Cut *c, Place at)
{
    if (at.v->def && tl_chunk_is_made(at.v->def, at.axis))
        return true; /* each part makes it anew */
    if (!add_def(c, at.v, at.axis))
        return false;
    for (TlUse *u = at.v->uses; u; u = u->next)
        if (!add_user(c, u->user, (uint32_t)(u - u->user->in), at.axis))
            return false;
    return true;
}

static bool look_around_op(Cut *c, TlChunkOp m)
{
    for (uint32_t i = 0; i < m.op->nin; i++) {
        int a = tl_chunk_operand_axis(m.op, i, m.axis);
        if (a != TL_CHUNK_WHOLE && !add_value(c, tl_in(m.op, i), a))
            return false;
    }
    int a = tl_chunk_result_axis(m.op, m.axis);
    for (uint32_t i = 0; a >= 0 && i < m.op->nout; i++)
        if (!add_value(c, m.op->out[i], a))
            return false;
    return true;
}

static bool find(Cut *c, TlValue *carried, int axis)
{
    c->g.extent = carried->type->shape[axis];
    if (!add_value(c, carried, axis))
        return false;
    for (uint32_t v = 0, o = 0; v < c->values.len || o < c->g.ops.len;) {
        bool fine = v < c->values.len ? look_around_value(c, c->values.data[v++])
                                      : look_around_op(c, c->g.ops.data[o++]);
        if (!fine)
            return false;
    }
    return true;
}

/* ---- 2. a stretch of a block ---- */

typedef struct Stretch {
    TL_VEC(TlOp *) ops;
    TL_VEC(int) levels;
    TlMap index; /* op to its number, + 1 */
    int most;
} Stretch;

/* Of a reduction, over the parts that have been there. */
typedef struct Sums {
    TlValue *of[MOST_RESULTS];
} Sums;

static bool is_along(const TlChunkOp *m)
{
    return m && m->op->opcode == TL_OP_REDUCE &&
           tl_chunk_result_axis(m->op, m->axis) == TL_CHUNK_WHOLE;
}

/* How many reductions along the axis come before, one behind the other. */
static int level_by(Cut *c, Stretch *s, const TlOp *op)
{
    int level = 0;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlOp *def = tl_in(op, i)->def;
        uint64_t at;
        if (!def || !tl_map_get(&s->index, (uint64_t)(uintptr_t)def, &at))
            continue;
        int l = s->levels.data[at - 1] + is_along(tl_chunk_member(&c->g, def));
        level = l > level ? l : level;
    }
    return level;
}

static int level_of(Cut *c, Stretch *s, const TlOp *op)
{
    int level = level_by(c, s, op);
    for (const TlOp *in = tl_walk_next(op, op); op->nregions && in; in = tl_walk_next(in, op)) {
        int l = level_by(c, s, in);
        level = l > level ? l : level;
    }
    return level;
}

/* The sum, or whatever it is, of the parts; at the last, of the axis. */
static void reduce_parts(Cut *c, const TlChunkOp *m, TlValue **sums, int p)
{
    TlValue *x[MOST_RESULTS];
    TlChunkPart *part = &c->part[p];
    tl_chunk_operands(part, m, x);
    if (p)
        tl_chunk_combine(part, m->op, m->op->nout, sums, x);
    memcpy(sums, x, sizeof *x * m->op->nout);
    if (p < c->nparts - 1)
        return;
    tl_chunk_apply(part, m, sums, NULL);
    for (uint32_t i = 0; i < m->op->nout; i++) {
        TlValue *v = tl_cast(&part->b, sums[i], m->op->out[i]->type->dtype);
        v->name = m->op->out[i]->name;
        tl_replace_uses(m->op->out[i], v);
    }
}

static void emit_part(Cut *c, const Stretch *s, int level, int p, Sums *sums)
{
    for (uint32_t i = 0; i < s->ops.len; i++) {
        const TlChunkOp *m = tl_chunk_member(&c->g, s->ops.data[i]);
        if (!m || s->levels.data[i] != level)
            continue;
        c->part[p].b.loc = m->op->loc;
        if (is_along(m))
            reduce_parts(c, m, sums[i].of, p);
        else
            tl_chunk_copy(&c->part[p], m);
    }
}

/* Parts are made before `end`, and go by what is made there only. */
static void build_before(Cut *c, TlOp *end)
{
    for (int p = 0; p < c->nparts; p++) {
        TlChunkPart *part = &c->part[p];
        part->b = tl_builder_before(end);
        part->at = tl_const_int(&part->b, tl_type_scalar(part->ctx, TL_I32), p * part->width);
        tl_vec_push(c->arena, &c->begins, part->at->def);
        tl_map_init(&part->made, c->arena);
    }
}

static void emit_stretch(Cut *c, Stretch *s, TlOp *end)
{
    Sums *sums = TL_NEW_ARRAY(c->arena, Sums, s->ops.len + 1);
    build_before(c, end);
    for (int level = 0; level <= s->most; level++) {
        for (uint32_t i = 0; i < s->ops.len; i++)
            if (s->levels.data[i] == level && !tl_chunk_member(&c->g, s->ops.data[i]))
                tl_op_move_before(s->ops.data[i], end);
        for (int p = 0; p < c->nparts; p++)
            emit_part(c, s, level, p, sums);
    }
}

static bool ends_stretch(const TlOp *op)
{
    bool is_frame = op->nregions > 0 && op->opcode != TL_OP_REDUCE && op->opcode != TL_OP_SCAN;
    return is_frame || (!tl_op_is_pure(op) && op->opcode != TL_OP_LOAD);
}

/* ---- 3. loops and branches ---- */

static void emit_block(Cut *c, TlBlock *block);

static void yield_parts(Cut *c, TlBlock *block, const Frame *f)
{
    TlOp *yield = block->last;
    build_before(c, yield);
    for (uint32_t i = 0; i < f->cut.len; i++)
        for (int p = 0; p < c->nparts; p++) {
            TlValue *v = tl_in(yield, f->cut.data[i]);
            tl_add_operand(c->g.fn, yield, tl_chunk_value(&c->part[p], v, axis_of(c, v)));
        }
}

/* What goes into a for, and its arguments. */
static TlValue **begin_parts(Cut *c, const Frame *f)
{
    TlValue **in = TL_NEW_ARRAY(c->arena, TlValue *, f->cut.len * (uint32_t)c->nparts + 1);
    TlBlock *body = f->op->regions[0];
    build_before(c, f->op);
    for (uint32_t i = 0, n = 0; i < f->cut.len; i++) {
        TlValue *init = tl_in(f->op, f->cut.data[i] + 3), *arg = body->args[f->cut.data[i] + 1];
        for (int p = 0; p < c->nparts; p++, n++) {
            in[n] = tl_chunk_value(&c->part[p], init, axis_of(c, init));
            tl_map_put_ptr(&c->part[p].map, arg, tl_block_arg(body, in[n]->type, arg->name));
        }
    }
    return in;
}

static void emit_frame(Cut *c, TlOp *op)
{
    Frame f = {.op = op};
    for (uint32_t i = 0; i < op->nout; i++)
        if (axis_of(c, op->out[i]) >= 0)
            tl_vec_push(c->arena, &f.cut, i);
    uint32_t before = op->nout, n = 0;
    bool carries = op->opcode == TL_OP_FOR && f.cut.len;
    TlValue **in = carries ? begin_parts(c, &f) : NULL;
    for (uint32_t r = 0; r < op->nregions; r++) {
        emit_block(c, op->regions[r]);
        if (f.cut.len)
            yield_parts(c, op->regions[r], &f);
    }
    if (f.cut.len == 0)
        return;
    TL_VEC(int) axes = {0};
    for (uint32_t i = 0; i < f.cut.len; i++)
        tl_vec_push(c->arena, &axes, axis_of(c, op->out[f.cut.data[i]]));
    f.op = tl_op_extend(c->arena, op, carries ? f.cut.len * (uint32_t)c->nparts : 0, in);
    for (uint32_t i = 0; i < f.cut.len; i++) {
        TlValue *out = f.op->out[f.cut.data[i]];
        tl_map_put(&c->axes, (uint64_t)(uintptr_t)out, (uint64_t)axes.data[i] + 1);
        for (int p = 0; p < c->nparts; p++, n++) {
            f.op->out[before + n]->name = out->name;
            tl_map_put_ptr(&c->part[p].map, out, f.op->out[before + n]);
        }
    }
    if (carries)
        tl_remark(c->g.fn, f.op, TL_REMARK_CARRIED, c->nparts);
    tl_vec_push(c->arena, &c->frames, f);
}

static void emit_end(Cut *c, TlOp *op)
{
    const TlChunkOp *m = tl_chunk_member(&c->g, op);
    if (tl_map_get_ptr(&c->holds, op))
        emit_frame(c, op);
    if (!m)
        return;
    build_before(c, op);
    for (int p = 0; p < c->nparts; p++)
        tl_chunk_copy(&c->part[p], m);
}

static void emit_block(Cut *c, TlBlock *block)
{
    for (TlOp *op = block->first; op;) {
        Stretch s = {0};
        bool cuts = false;
        tl_map_init(&s.index, c->arena);
        for (; op && !ends_stretch(op); op = op->next) {
            int level = level_of(c, &s, op);
            tl_vec_push(c->arena, &s.ops, op);
            tl_vec_push(c->arena, &s.levels, level);
            tl_map_put(&s.index, (uint64_t)(uintptr_t)op, s.ops.len);
            s.most = level > s.most ? level : s.most;
            cuts |= tl_chunk_member(&c->g, op) != NULL;
        }
        if (cuts)
            emit_stretch(c, &s, op);
        TlOp *next = op ? op->next : NULL;
        if (op)
            emit_end(c, op);
        op = next;
    }
}

/* ---- what was whole ---- */

/* What is cut: its ops as they come in the function, and what holds them. */
static void order_group(Cut *c)
{
    TL_VEC(TlChunkOp) sorted = {0};
    for (TlOp *op = c->g.fn->body->first; op; op = tl_walk_next(op, NULL)) {
        const TlChunkOp *m = tl_chunk_member(&c->g, op);
        if (m)
            tl_vec_push(c->arena, &sorted, *m);
        bool cuts = m != NULL;
        for (uint32_t i = 0; op->nregions && i < op->nout; i++)
            cuts |= axis_of(c, op->out[i]) >= 0;
        if (cuts && op->nregions)
            tl_map_put_ptr(&c->holds, op, op);
        for (TlOp *in = op->block->parent; cuts && in; in = in->block->parent)
            tl_map_put_ptr(&c->holds, in, in);
    }
    TL_ASSERT(sorted.len == c->g.ops.len, "%u of %u ops found", sorted.len, c->g.ops.len);
    memcpy(c->g.ops.data, sorted.data, sizeof *sorted.data * sorted.len);
    for (uint32_t i = 0; i < sorted.len; i++)
        tl_map_put(&c->g.index, (uint64_t)(uintptr_t)sorted.data[i].op, i + 1);
}

static void erase_whole(Cut *c)
{
    for (uint32_t k = 0; k < c->frames.len; k++) {
        const Frame *f = &c->frames.data[k];
        for (uint32_t i = f->cut.len; i-- > 0;) {
            for (uint32_t r = 0; r < f->op->nregions; r++)
                tl_remove_operand(f->op->regions[r]->last, f->cut.data[i]);
            if (f->op->opcode == TL_OP_FOR)
                tl_remove_operand(f->op, f->cut.data[i] + 3);
        }
    }
    tl_chunk_erase(&c->g);
    for (uint32_t i = 0; i < c->begins.len; i++)
        if (!c->begins.data[i]->out[0]->uses)
            tl_op_erase(c->begins.data[i]);
    for (uint32_t k = 0; k < c->frames.len; k++) {
        const Frame *f = &c->frames.data[k];
        for (uint32_t i = f->cut.len; i-- > 0;) {
            if (f->op->opcode == TL_OP_FOR)
                tl_block_remove_arg(f->op->regions[0], f->cut.data[i] + 1);
            tl_op_remove_result(f->op, f->cut.data[i]);
        }
    }
}

static void cut_group(Cut *c, int nparts)
{
    c->nparts = nparts;
    order_group(c);
    for (int p = 0; p < nparts; p++) {
        c->part[p] =
            (TlChunkPart){.g = &c->g, .ctx = c->g.fn->module->ctx, .width = c->g.extent / nparts};
        tl_map_init(&c->part[p].map, c->arena);
    }
    emit_block(c, c->g.fn->body);
    erase_whole(c);
}

/* ---- whether, and in how many ---- */

typedef struct Room {
    int64_t threads, registers;
    int asked; /* parts that the option asks for; 0: none */
} Room;

/* Only floats of 16 bits share registers. */
static int64_t words_of(const Room *r, const TlType *t)
{
    enum { WORD = 32 };
    if (t->kind != TL_TILE || t->rank == 0)
        return 0;
    int bits = t->ptr ? 2 * WORD : tl_dtype_bits(t->dtype);
    if (bits < WORD && t->dtype != TL_F16 && t->dtype != TL_BF16)
        bits = WORD;
    return (tl_type_elems(t) * bits / WORD + r->threads - 1) / r->threads;
}

static int parts_of(const Room *r, const TlType *t)
{
    int64_t words = words_of(r, t);
    if (r->asked)
        return words ? r->asked : 1;
    if (100 * words <= r->registers * MOST_SHARE)
        return 1;
    int n = 1;
    while (n < MOST_PARTS && 100 * words > r->registers * PART_SHARE * n &&
           words / (2 * n) >= LEAST_WORDS)
        n *= 2;
    return n;
}

/* Along the first axis that can be cut in so many. */
static bool cut_tile(TlFn *fn, TlPassCtx *px, TlMap *tried, TlValue *carried, int nparts)
{
    for (int axis = 0; axis < carried->type->rank; axis++) {
        if (carried->type->shape[axis] % nparts || carried->type->shape[axis] == nparts)
            continue;
        Cut *c = TL_NEW(px->scratch, Cut);
        c->g.fn = fn;
        c->g.arena = c->arena = px->scratch;
        tl_map_init(&c->g.index, px->scratch);
        tl_map_init(&c->axes, px->scratch);
        tl_map_init(&c->holds, px->scratch);
        if (!find(c, carried, axis))
            continue;
        cut_group(c, nparts);
        for (uint32_t i = 0; i < c->frames.len; i++)
            tl_map_put_ptr(tried, c->frames.data[i].op, c->frames.data[i].op);
        return true;
    }
    return false;
}

static bool is_carried(const Room *r, const TlFn *fn)
{
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; op->opcode == TL_OP_FOR && i < op->nout; i++)
            if (parts_of(r, op->out[i]->type) > 1)
                return true;
    return false;
}

/* Those of tiles that are as large. */
static bool take_totals(const Room *r, const TlFn *fn)
{
    bool changed = false;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        TlValue *x = tl_chunk_total_of(op);
        if (!x || parts_of(r, x->type) == 1)
            continue;
        tl_chunk_total_by_axes(op, x);
        changed = true;
    }
    return changed;
}

static bool cut_one(TlFn *fn, TlPassCtx *px, const Room *r, TlMap *tried)
{
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_FOR || tl_map_get_ptr(tried, op))
            continue;
        tl_map_put_ptr(tried, op, op);
        for (uint32_t i = 0; i < op->nout; i++) {
            int nparts = parts_of(r, op->out[i]->type);
            if (nparts > 1 && cut_tile(fn, px, tried, op->out[i], nparts))
                return true;
        }
    }
    return false;
}

TlPassResult tl_pass_cut_carried(TlFn *fn, TlPassCtx *px)
{
    const TlMachine *m = px->machine;
    const char *asked = px->options ? strstr(px->options, "parts=") : NULL;
    int warps = tl_choose_warps(fn, m->warps, m->lanes); /* of whole tiles */
    Room r = {.threads = (int64_t)warps * m->lanes,
              .asked = asked ? (int)strtol(asked + strlen("parts="), NULL, 10) : 0};
    if (r.asked < 0 || r.asked > MOST_PARTS || (!r.asked && (m->reads_early || !m->file)))
        return TL_SAME; /* nothing would be parked */
    if (!r.asked)
        r.registers = tl_registers_in_block(m->registers, m->file, m->schedulers, warps);
    TlMap tried;
    tl_map_init(&tried, px->scratch);
    if (!is_carried(&r, fn))
        return TL_SAME;
    TlPassResult result = take_totals(&r, fn) ? TL_CHANGED : TL_SAME;
    while (cut_one(fn, px, &r, &tried))
        result = TL_CHANGED;
    if (result == TL_CHANGED)
        fn->body->warps = warps;
    return result;
}
