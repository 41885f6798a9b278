/* split-rows: short rows, each of whose columns becomes a tile of its own.
 *
 * A row of three or four elements does not fill a vector; a column of 128 does. What is computed
 * element by element, reduced along the rows or put together from columns is as well computed
 * column by column:
 *
 *     %v = load %x, %i, 0 {axes = [128, 3]}    %v0 = load %x, %i, 0 {axes = [128, i]}, and 1, 2
 *     %b = broadcast %a : tile<f32, 128, 3>    (%a: tile<f32, 128, 1>, an expand of %c)
 *     %w = mul %v, %b                          %w0 = mul %v0, %c, ...
 *     %s = reduce %w {axis = 1, kind = add} => %s = add (add %w0, %w2), %w1
 *     %t = select (iota == 0), %p, %q          %t0 = %p, %t1 = %q, %t2 = %q
 *     store %y, %i, 0, %t                      store %y, %i, 0, %t0, ...
 *
 * A transposed tile is that whose rows are the columns; rows of a tile's neighbouring elements
 * (reshape %v : tile<f32, 256> to tile<f32, 128, 2>) have every second element of what is loaded.
 * So are columns stored that a reshape would put one after the other for a store (interleave).
 *
 * On the CPU, loads of neighbouring columns share what they load, and stores of such are
 * interleaved (codegen/nest/nest_join.c). Where rows only go through, they are one axis with their
 * neighbours there (nest_fold.c), which is better still: so this is done only where columns meet
 * what has none, by a reduction along the rows, a column that they repeat or a transposition. GPUs
 * keep tiles.
 *
 *   1. check    ops that work column by column
 *   2. groups   values with rows of so many elements, which such ops take one from another; those
 *               that another op makes or takes stay
 *   3. price    vectors of rows, beside those of columns and what takes columns from memory
 *   4. columns  as far as a group's values lead; what nobody uses then is dce's */
#include <string.h>

#include "ir/rewrite.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"
#include "passes/pass.h"

enum {
    MOST_COLUMNS = 4,
    REGISTER = 32 /* bytes of a vector, as most CPUs have */
};

/* Values that go together. */
typedef struct Group {
    bool stays;            /* some op wants rows */
    bool meets;            /* columns meet what has none */
    bool picks;            /* ... by single columns that are taken (passes/analysis/picked.h), */
    bool parts;            /* of neighbouring elements: vectors are as well taken apart there */
    int64_t rows, columns; /* vectors that are computed, by the one and by the other */
} Group;

typedef struct Split {
    TlFn *fn;
    TlArena *arena;
    uint32_t *parent; /* by value id, of one group: a number that is less, or its own */
    Group *group;     /* by the least value id of it */
    uint32_t nvalues; /* that have such */
    TlMap columns;    /* value to its columns, TlValue ** */
    TlMap only;       /* by value and axis of one element: the value without it */
} Split;

static int last_of(const TlType *t)
{
    return t->rank - 1;
}

static bool is_few(int n)
{
    return n > 1 && n <= MOST_COLUMNS;
}

/* The axis of a tile's columns: its last one, or the first one of a tile that is such transposed.
 * -1: it has none. */
static int axis_of(const TlType *t)
{
    if (t->kind != TL_TILE || t->rank == 0 || t->ptr || tl_dtype_bits(t->dtype) < 8)
        return -1;
    return is_few(t->shape[last_of(t)]) ? last_of(t) : t->rank == 2 && is_few(t->shape[0]) ? 0 : -1;
}

/* So many columns; 0: it has none. */
static int columns_of(const TlType *t)
{
    int axis = axis_of(t);
    return axis < 0 ? 0 : t->shape[axis];
}

static bool is_along_rows(const TlOp *op)
{
    return op->opcode == TL_OP_REDUCE && columns_of(tl_in(op, 0)->type) &&
           tl_attr_int(op, TL_ATTR_AXIS, 0) == axis_of(tl_in(op, 0)->type);
}

static bool carries(const TlOp *op)
{
    return op->opcode == TL_OP_FOR || op->opcode == TL_OP_IF || op->opcode == TL_OP_YIELD;
}

/* ---- 1. check ---- */

/* The place's axis that is that one of the tile, if it is a slice; -1. */
static int slice_of(const TlPlace *p, int dim)
{
    for (uint32_t i = 0; p->axes && !p->pointwise && i < p->naxes; i++)
        if (tl_place_dim(p, i) == dim)
            return p->axes[i].kind == TL_AXIS_SLICE ? (int)i : -1;
    return -1;
}

/* Is the tile's axis a slice of the place, which is else the same for all of it? */
static bool has_columns(const TlPlace *p, const TlType *t, int axis)
{
    if (slice_of(p, axis) < 0 || p->rank != t->rank || tl_dtype_bits(t->dtype) < 8 ||
        memcmp(p->shape, t->shape, sizeof *t->shape * (size_t)t->rank) != 0)
        return false;
    const TlValue *also[] = {p->mask, p->other};
    for (int i = 0; i < 2; i++)
        if (also[i] && also[i]->type->rank && !tl_same_shape(also[i]->type, t))
            return false;
    return true;
}

/* Are all tiles among the operands of that shape, and none of packed elements? */
static bool has_one_shape(const TlOp *op, const TlType *t)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlType *x = tl_in(op, i)->type;
        if (x->kind != TL_TILE ||
            (x->rank && (!tl_same_shape(x, t) || x->ptr || tl_dtype_bits(x->dtype) < 8)))
            return false;
    }
    return true;
}

/* Are every few elements of v, along its last axis, as well loaded or computed by themselves? */
static bool has_parts(const TlValue *v, int depth)
{
    enum { MOST_DEPTH = 8 };
    const TlOp *op = v->def;
    const TlType *t = v->type;
    if (!op || t->kind != TL_TILE || t->rank == 0 || depth > MOST_DEPTH)
        return t->kind == TL_TILE && t->rank == 0;
    if (op->opcode == TL_OP_CONST)
        return true;
    if (op->opcode == TL_OP_LOAD) {
        TlPlace p = tl_op_place(op);
        return tl_dtype_bits(t->dtype) >= 8 && slice_of(&p, last_of(t)) >= 0 &&
               !(p.mask && p.mask->type->rank) && !(p.other && p.other->type->rank) &&
               !v->uses->next;
    }
    if (!(tl_op_info(op->opcode)->flags & F_ELEM) || op->opcode == TL_OP_ASM || v->uses->next ||
        !has_one_shape(op, t))
        return false;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!has_parts(tl_in(op, i), depth + 1))
            return false;
    return true;
}

/* Is it rows of neighbouring elements? */
static bool takes_parts(const TlOp *op)
{
    const TlType *in = tl_in(op, 0)->type, *out = op->out[0]->type;
    int n = columns_of(out), last = in->rank - 1;
    if (op->opcode != TL_OP_RESHAPE || !n || axis_of(out) != last_of(out) ||
        (n == 4 && tl_multiplies_bytes(tl_in(op, 0))) || out->rank != in->rank + 1 || last < 0 ||
        out->shape[last] * n != in->shape[last])
        return false;
    for (int d = 0; d < last; d++)
        if (in->shape[d] != out->shape[d])
            return false;
    return has_parts(tl_in(op, 0), 0);
}

/* Does a store take v by a slice along its last axis? Every few of those elements are one, too. */
static bool may_store_parts(const TlOp *store, const TlValue *v)
{
    if (store->opcode != TL_OP_STORE || store->block != v->def->block)
        return false;
    TlPlace p = tl_op_place(store);
    int i = p.value == v ? slice_of(&p, last_of(v->type)) : -1;
    return i >= 0 && p.axes[i].step > 0 && !(p.mask && p.mask->type->rank);
}

/* Does a reshape put rows one after the other for stores alone? Columns are as well stored by
 * themselves, each every few elements. */
static bool stores_parts(const TlOp *op)
{
    if (op->opcode != TL_OP_RESHAPE)
        return false;
    const TlType *in = tl_in(op, 0)->type, *out = op->out[0]->type;
    int n = columns_of(in), last = last_of(out);
    if (!n || columns_of(out) || axis_of(in) != last_of(in) || in->rank != out->rank + 1 ||
        in->shape[last] * n != out->shape[last])
        return false;
    for (int d = 0; d < last; d++)
        if (in->shape[d] != out->shape[d])
            return false;
    const TlUse *u = op->out[0]->uses;
    while (u && may_store_parts(u->user, op->out[0]))
        u = u->next;
    return op->out[0]->uses && !u;
}

/* Are the result's columns none of the operand's, which may have some along another axis? */
static bool begins_columns(const TlOp *op)
{
    const TlType *in = op->nin ? tl_in(op, 0)->type : NULL;
    int axis = op->nout ? axis_of(op->out[0]->type) : -1;
    if (op->opcode == TL_OP_BROADCAST)
        return axis >= 0 && (in->rank == 0 || in->shape[axis] == 1);
    return op->opcode == TL_OP_RESHAPE && takes_parts(op);
}

/* Which axis of the result is that of the operand's columns? */
static int axis_behind(const TlOp *op, int axis)
{
    int by = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    return op->opcode == TL_OP_EXPAND   ? axis + (by <= axis)
           : op->opcode == TL_OP_REDUCE ? axis - (by < axis)
           : op->opcode == TL_OP_TRANS  ? 1 - axis
                                        : axis;
}

/* Does an op, one of whose values has columns, work by these? */
static bool works_by_columns(const TlOp *op)
{
    const TlType *out = op->nout ? op->out[0]->type : NULL,
                 *in = op->nin ? tl_in(op, 0)->type : NULL;
    int to = out ? axis_of(out) : -1, from = in ? axis_of(in) : -1;
    bool passes = to >= 0 && from >= 0 && columns_of(in) == columns_of(out);
    if (tl_op_info(op->opcode)->flags & F_ELEM)
        return to >= 0 && op->opcode != TL_OP_ASM && has_one_shape(op, out);
    switch ((int)op->opcode) {
    case TL_OP_CONST:
    case TL_OP_IOTA: return true;
    case TL_OP_BROADCAST: return begins_columns(op) || (passes && from == to);
    case TL_OP_TRANS: return passes && in->rank == 2 && axis_behind(op, from) == to;
    case TL_OP_EXPAND: return passes && axis_behind(op, from) == to;
    case TL_OP_RESHAPE:
        return begins_columns(op) || stores_parts(op) ||
               (passes && from == last_of(in) && to == last_of(out));
    case TL_OP_REDUCE:
        return op->nin == 1 && !op->nregions &&
               (is_along_rows(op) || (passes && axis_behind(op, from) == to));
    case TL_OP_LOAD:
    case TL_OP_STORE:
    case TL_OP_INSIDE: {
        TlPlace p = tl_op_place(op);
        const TlType *t = p.value ? p.value->type : out;
        for (uint32_t i = 0; i < p.naxes; i++)
            if (columns_of(p.index[i].value->type))
                return false;
        return t && columns_of(t) && has_columns(&p, t, axis_of(t));
    }
    }
    return false;
}

/* ---- 2. groups ---- */

static Group *group_of(const Split *s, const TlValue *v)
{
    uint32_t id = v->id;
    while (s->parent[id] != id)
        id = s->parent[id] = s->parent[s->parent[id]];
    return &s->group[id];
}

static void tie(Split *s, const TlValue *v, const TlValue *w)
{
    uint32_t x = (uint32_t)(group_of(s, v) - s->group), y = (uint32_t)(group_of(s, w) - s->group);
    s->parent[x > y ? x : y] = x < y ? x : y;
}

static uint32_t count_values(const TlOp *op)
{
    return op->nin + op->nout;
}

static TlValue *value_at(const TlOp *op, uint32_t i)
{
    return i < op->nin ? tl_in(op, i) : op->out[i - op->nin];
}

static void tie_op(Split *s, const TlOp *op)
{
    const TlValue *first = NULL;
    if (op->nregions || tl_op_info(op->opcode)->flags & F_TERM) {
        for (uint32_t i = 0; i < op->nin; i++) {
            const TlValue *to = tl_flows_to(op, i);
            if (to && columns_of(to->type))
                tie(s, tl_in(op, i), to);
        }
        for (uint32_t i = 0; op->opcode == TL_OP_FOR && i < op->nout; i++) /* of no trip */
            if (columns_of(op->out[i]->type))
                tie(s, op->regions[0]->args[1 + i], op->out[i]);
        return;
    }
    for (uint32_t i = 0; i < count_values(op) && !is_along_rows(op) && !begins_columns(op); i++) {
        const TlValue *v = value_at(op, i);
        if (!columns_of(v->type))
            continue;
        first = first ? first : v;
        tie(s, first, v);
    }
}

static void keep(Split *s, const TlValue *v)
{
    if (columns_of(v->type))
        group_of(s, v)->stays = true;
}

static void keep_all(Split *s, const TlOp *op)
{
    for (uint32_t i = 0; i < count_values(op); i++)
        keep(s, value_at(op, i));
    for (uint32_t r = 0; r < op->nregions; r++)
        for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
            keep(s, op->regions[r]->args[i]);
}

/* ---- 3. price ---- */

/* The value that says what an op is for its group; NULL: it is of none. */
static const TlValue *main_value(const TlOp *op)
{
    const TlValue *v = op->opcode == TL_OP_STORE            ? tl_op_place(op).value
                       : is_along_rows(op) || op->nout == 0 ? (op->nin ? tl_in(op, 0) : NULL)
                                                            : op->out[0];
    if (v && columns_of(v->type))
        return v;
    return op->nin && columns_of(tl_in(op, 0)->type) ? tl_in(op, 0) : NULL;
}

/* Does it repeat a column, of more than one row? */
static bool repeats_column(const TlOp *op)
{
    const TlType *in = op->opcode == TL_OP_BROADCAST ? tl_in(op, 0)->type : NULL;
    return in && in->rank && in->shape[last_of(in)] == 1 && tl_type_elems(in) > 1;
}

static void price_op(Split *s, const TlOp *op, const TlValue *v)
{
    const TlType *t = v->type;
    Group *g = group_of(s, v);
    int n = columns_of(t), axis = axis_of(t), beside = axis == last_of(t) ? axis - 1 : last_of(t);
    int64_t lanes = REGISTER / (tl_dtype_bits(t->dtype) / 8), rows = tl_type_elems(t) / n,
            along = beside >= 0 ? t->shape[beside] : 1,
            vectors = rows / along * n * ((along + lanes - 1) / lanes),
            work = tl_elem_work(op->opcode)->cpu;
    bool moves = op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE ||
                 (op->opcode == TL_OP_RESHAPE && (takes_parts(op) || stores_parts(op)));
    if (op->opcode == TL_OP_TRANS) { /* from a home to another one */
        g->meets = true;
        g->rows += 2 * rows;
    } else if (axis != last_of(t)) {
        bool sums = is_along_rows(op); /* what of, into a home of its own */
        g->meets |= sums;
        g->rows += vectors * (sums ? 2 : work);
        g->columns += vectors * (sums ? 1 : work);
    } else if (moves) { /* columns are taken from as many vectors side by side */
        g->parts |= op->opcode == TL_OP_RESHAPE && takes_parts(op);
        g->rows += rows;
        g->columns += vectors * n;
    } else if (is_along_rows(op)) {
        int64_t at;
        bool picks = tl_picked_from(op, &at) != NULL;
        g->meets |= !picks;
        g->picks |= picks;
        g->rows += rows * n;
        g->columns += vectors;
    } else {
        g->meets |= repeats_column(op);
        g->rows += rows * work;
        g->columns += vectors * work;
    }
}

static bool pays(const Group *g)
{
    return !g->stays && (g->meets || (g->picks && !g->parts)) && g->columns < g->rows;
}

/* Its columns are to be made. */
static bool splits(const Split *s, const TlValue *v)
{
    return v->id < s->nvalues && columns_of(v->type) && pays(group_of(s, v));
}

static bool find_groups(Split *s)
{
    bool any = false;
    for (const TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL))
        tie_op(s, op);
    for (const TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        const TlValue *v = main_value(op);
        if (carries(op))
            continue;
        if (v && works_by_columns(op))
            price_op(s, op, v);
        else
            keep_all(s, op);
        if (is_along_rows(op)) /* what is put together has no columns from here */
            keep(s, op->out[0]);
        if (begins_columns(op))
            keep(s, tl_in(op, 0));
    }
    for (uint32_t i = 0; i < s->nvalues && !any; i++)
        any = pays(&s->group[i]);
    return any;
}

/* ---- 4. columns ---- */

/* The type without an axis. */
static const TlType *without_axis(const Split *s, const TlType *t, int axis)
{
    int32_t shape[TL_MAX_RANK];
    for (int d = 0, n = 0; d < t->rank; d++)
        if (d != axis)
            shape[n++] = t->shape[d];
    return tl_type_with_shape(s->fn->module->ctx, t, t->rank - 1, shape);
}

static const TlType *column_type(const Split *s, const TlType *t)
{
    return without_axis(s, t, axis_of(t));
}

static TlValue **columns_in(const Split *s, const TlValue *v)
{
    return tl_map_get_ptr(&s->columns, v);
}

static TlValue **columns_or_all(const Split *s, const TlOp *op, int c)
{
    TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++) {
        TlValue **of = columns_in(s, tl_in(op, i));
        in[i] = of ? of[c] : tl_in(op, i);
    }
    return in;
}

/* The op once more, with types and operands of a column. */
static TlValue *of_column(const Split *s, TlBuilder *b, const TlOp *op, int c)
{
    const TlType *t = column_type(s, op->out[0]->type);
    return tl_op_like(b, op, op->nin, columns_or_all(s, op, c), 1, &t)->out[0];
}

/* What is `by` steps further on along a slice. In i64: i32 could overflow where the slice did not.
 */
static TlValue *further(TlBuilder *b, TlValue *start, int64_t by)
{
    if (!by)
        return start;
    start = tl_cast(b, start, start->type->dtype == TL_U64 ? TL_U64 : TL_I64);
    return tl_binary(b, TL_OP_ADD, start, tl_const_int(b, start->type, by));
}

/* A load, store or `inside` of one column, along the tile's axis. */
static TlOp *access_column(const Split *s, TlBuilder *b, const TlOp *op, int axis, int c)
{
    TlPlace p = tl_op_place(op);
    uint32_t i = (uint32_t)slice_of(&p, axis), at = (uint32_t)(&p.index[i] - op->in);
    TlValue **in = columns_or_all(s, op, c);
    TlAxis *axes = TL_NEW_ARRAY(&s->fn->module->arena, TlAxis, p.naxes);
    memcpy(axes, p.axes, sizeof *axes * p.naxes);
    in[at] = further(b, in[at], (int64_t)c * axes[i].step);
    axes[i] = (TlAxis){.kind = TL_AXIS_SCALAR};
    const TlType *t = op->nout ? without_axis(s, op->out[0]->type, axis) : NULL;
    TlOp *made = tl_op_like(b, op, op->nin, in, op->nout, &t);
    tl_attr_set(s->fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
    return made;
}

/* Of v, of which the axis has one element: without it. */
static TlValue *only_column(Split *s, TlValue *v, int axis)
{
    uint64_t key = (uint64_t)v->id * TL_MAX_RANK + (uint64_t)axis, known;
    if (tl_map_get(&s->only, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlOp *op = v->def;
    TlBuilder b = tl_builder_after(v);
    const TlType *t = without_axis(s, v->type, axis);
    TlPlace p = {0};
    if (op && op->opcode == TL_OP_LOAD)
        p = tl_op_place(op);
    TlValue *made;
    if (op && op->opcode == TL_OP_EXPAND && tl_attr_int(op, TL_ATTR_AXIS, 0) == axis) {
        made = tl_in(op, 0);
    } else if (p.axes && has_columns(&p, v->type, axis) && !(p.mask && p.mask->type->rank) &&
               !(p.other && p.other->type->rank)) {
        made = access_column(s, &b, op, axis, 0)->out[0];
    } else if (op && tl_op_info(op->opcode)->flags & F_ELEM && op->opcode != TL_OP_ASM &&
               has_one_shape(op, v->type)) {
        TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, op->nin);
        for (uint32_t i = 0; i < op->nin; i++)
            in[i] = tl_in(op, i)->type->rank ? only_column(s, tl_in(op, i), axis) : tl_in(op, i);
        b = tl_builder_after(v);
        made = tl_op_like(&b, op, op->nin, in, 1, &t)->out[0];
    } else {
        made = tl_op_new(&b, TL_OP_RESHAPE, 1, &v, 1, &t, 0, 0, NULL)->out[0];
    }
    tl_map_put(&s->only, key, (uint64_t)(uintptr_t)made);
    return made;
}

/* Elements c, c + n, ... of v along its last axis (has_parts). */
static TlValue *part(const Split *s, TlBuilder *b, TlValue *v, int n, int c)
{
    const TlOp *op = v->def;
    int32_t shape[TL_MAX_RANK];
    if (v->type->rank == 0)
        return v;
    memcpy(shape, v->type->shape, sizeof shape);
    shape[last_of(v->type)] /= n;
    const TlType *t = tl_type_with_shape(s->fn->module->ctx, v->type, v->type->rank, shape);
    if (op->opcode == TL_OP_CONST)
        return tl_const_bits(b, t, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = op->opcode == TL_OP_LOAD ? tl_in(op, i) : part(s, b, tl_in(op, i), n, c);
    if (op->opcode != TL_OP_LOAD)
        return tl_op_like(b, op, op->nin, in, 1, &t)->out[0];
    TlPlace p = tl_op_place(op);
    uint32_t i = (uint32_t)slice_of(&p, last_of(v->type)), at = (uint32_t)(&p.index[i] - op->in);
    TlAxis *axes = TL_NEW_ARRAY(&s->fn->module->arena, TlAxis, p.naxes);
    memcpy(axes, p.axes, sizeof *axes * p.naxes);
    in[at] = further(b, in[at], (int64_t)c * axes[i].step);
    axes[i].width /= n;
    axes[i].step *= n;
    TlOp *made = tl_op_like(b, op, op->nin, in, 1, &t);
    tl_attr_set(s->fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
    return made->out[0];
}

static TlValue *repeat(TlBuilder *b, TlValue *v, const TlType *t)
{
    return tl_broadcast(b, v, t->rank, t->shape);
}

static TlValue *of_shape(TlBuilder *b, TlValue *v, const TlType *t)
{
    return v->type->rank == 0 || tl_same_shape(v->type, t)
               ? repeat(b, v, t)
               : tl_op_new(b, TL_OP_RESHAPE, 1, &v, 1, &t, 0, 0, NULL)->out[0];
}

/* A reduction along another axis, which may be one less. */
static TlValue *reduce_column(const Split *s, TlBuilder *b, const TlOp *op, int c)
{
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, 0);
    TlValue *v = of_column(s, b, op, c);
    if (axis_of(tl_in(op, 0)->type) < axis)
        tl_attr_set(s->fn, v->def, (TlAttr){.id = TL_ATTR_AXIS, .u.i = axis - 1});
    return v;
}

/* Column c of what op makes. */
static TlValue *make_column(Split *s, TlBuilder *b, const TlOp *op, int c)
{
    const TlType *out = op->out[0]->type, *t = column_type(s, out);
    TlValue *in = op->nin ? tl_in(op, 0) : NULL,
            **of = in && !begins_columns(op) ? columns_in(s, in) : NULL;
    switch ((int)op->opcode) {
    case TL_OP_CONST: return tl_const_bits(b, t, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    case TL_OP_IOTA: return tl_const_int(b, t, c);
    case TL_OP_BROADCAST:
        return repeat(b,
                      of                    ? of[c]
                      : in->type->rank == 0 ? in
                                            : only_column(s, in, axis_of(out)),
                      t);
    case TL_OP_TRANS: return of[c];
    case TL_OP_EXPAND: return of_shape(b, of[c], t);
    case TL_OP_REDUCE: return reduce_column(s, b, op, c);
    case TL_OP_RESHAPE: return of ? of_shape(b, of[c], t) : part(s, b, in, columns_of(out), c);
    case TL_OP_LOAD:
    case TL_OP_INSIDE: return access_column(s, b, op, axis_of(out), c)->out[0];
    }
    return of_column(s, b, op, c);
}

/* All columns, combined by halves, as the interpreter does it; f16 and bf16 in f32. */
static TlValue *combine(Split *s, TlBuilder *b, const TlOp *reduce)
{
    const TlValue *v = tl_in(reduce, 0);
    TlValue **of = columns_in(s, v), *x[MOST_COLUMNS];
    TlCombine kind = (TlCombine)tl_attr_int(reduce, TL_ATTR_KIND, 0);
    TlDtype dtype = v->type->dtype;
    bool wide = tl_combine_is_wide(kind) && (dtype == TL_F16 || dtype == TL_BF16);
    int n = columns_of(v->type);
    for (int c = 0; c < n; c++)
        x[c] = wide ? tl_cast(b, of[c], TL_F32) : of[c];
    for (; n > 1; n = (n + 1) / 2)
        for (int c = 0; c < n / 2; c++)
            x[c] = tl_binary(b, tl_combine_opcode(kind), x[c], x[(n + 1) / 2 + c]);
    return tl_cast(b, x[0], dtype);
}

static void split_block(Split *s, TlBlock *block);

static void add_columns(const Split *s, TlOp *op, const TlValue *v)
{
    TlValue **of = columns_in(s, v);
    for (int c = 0; c < columns_of(v->type); c++)
        tl_add_operand(s->fn, op, of[c]);
}

/* A loop or branch that carries some: their columns, too. */
static TlOp *split_carried(Split *s, TlOp *op)
{
    TL_VEC(TlValue *) more = {0};
    uint32_t had = op->nout;
    bool loops = op->opcode == TL_OP_FOR;
    bool *split = TL_NEW_ARRAY(s->arena, bool, had + 1);
    for (uint32_t i = 0; i < had; i++) {
        split[i] = splits(s, op->out[i]);
        if (!split[i] || !loops)
            continue;
        TlValue *arg = op->regions[0]->args[1 + i], **of = columns_in(s, tl_in(op, 3 + i)),
                **args = TL_NEW_ARRAY(s->arena, TlValue *, MOST_COLUMNS);
        for (int c = 0; c < columns_of(arg->type); c++) {
            tl_vec_push(s->arena, &more, of[c]);
            args[c] = tl_block_arg(op->regions[0], of[c]->type, arg->name);
        }
        tl_map_put_ptr(&s->columns, arg, args);
    }
    for (uint32_t r = 0; r < op->nregions; r++) {
        split_block(s, op->regions[r]);
        TlOp *yield = op->regions[r]->last;
        for (uint32_t i = 0; i < had; i++)
            if (split[i])
                add_columns(s, yield, tl_in(yield, i));
    }
    if (op->nregions == 0 || op->regions[0]->last->nin == had)
        return op;
    TlOp *made = tl_op_extend(s->arena, op, more.len, more.data);
    uint32_t at = had;
    for (uint32_t i = 0; i < had; i++) {
        if (!split[i])
            continue;
        TlValue **of = TL_NEW_ARRAY(s->arena, TlValue *, MOST_COLUMNS);
        for (int c = 0; c < columns_of(made->out[i]->type); c++)
            of[c] = made->out[at++];
        tl_map_put_ptr(&s->columns, made->out[i], of);
    }
    return made;
}

/* The store of columns that a reshape would put one after the other. */
static void store_parts(Split *s, TlBuilder *b, const TlOp *op, TlValue **of, int n)
{
    TlPlace p = tl_op_place(op);
    uint32_t i = (uint32_t)slice_of(&p, last_of(p.value->type)),
             at = (uint32_t)(&p.index[i] - op->in);
    for (int c = 0; c < n; c++) {
        TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, op->nin);
        TlAxis *axes = TL_NEW_ARRAY(&s->fn->module->arena, TlAxis, p.naxes);
        memcpy(axes, p.axes, sizeof *axes * p.naxes);
        for (uint32_t k = 0; k < op->nin; k++)
            in[k] = tl_in(op, k) == p.value ? of[c] : tl_in(op, k);
        in[at] = further(b, in[at], (int64_t)c * axes[i].step);
        axes[i].width /= n;
        axes[i].step *= n;
        TlOp *made = tl_op_like(b, op, op->nin, in, 0, NULL);
        tl_attr_set(s->fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
    }
}

static void split_op(Split *s, TlOp *op)
{
    TlBuilder b = tl_builder_before(op);
    b.loc = op->loc;
    const TlValue *v = op->opcode == TL_OP_STORE ? tl_op_place(op).value : NULL;
    const TlOp *puts = v && v->def && stores_parts(v->def) ? v->def : NULL;
    if (puts && columns_in(s, tl_in(puts, 0))) {
        store_parts(s, &b, op, columns_in(s, tl_in(puts, 0)), columns_of(tl_in(puts, 0)->type));
        tl_op_erase(op);
    } else if (v && columns_in(s, v)) {
        for (int c = 0; c < columns_of(v->type); c++)
            access_column(s, &b, op, axis_of(v->type), c);
        tl_op_erase(op);
    } else if (is_along_rows(op) && columns_in(s, tl_in(op, 0))) {
        TlValue *made = combine(s, &b, op);
        tl_replace_uses(op->out[0], made);
        tl_op_erase(op);
    } else if (op->nout == 1 && splits(s, op->out[0])) {
        TlValue **of = TL_NEW_ARRAY(s->arena, TlValue *, MOST_COLUMNS);
        for (int c = 0; c < columns_of(op->out[0]->type); c++)
            of[c] = make_column(s, &b, op, c);
        tl_map_put_ptr(&s->columns, op->out[0], of);
    }
}

static void split_block(Split *s, TlBlock *block)
{
    for (TlOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (op->opcode == TL_OP_FOR || op->opcode == TL_OP_IF)
            split_carried(s, op);
        else if (op->nregions)
            for (uint32_t r = 0; r < op->nregions; r++)
                split_block(s, op->regions[r]);
        else
            split_op(s, op);
    }
}

static bool split_rows(TlFn *fn, TlArena *arena)
{
    Split s = {.fn = fn,
               .arena = arena,
               .parent = TL_NEW_ARRAY(arena, uint32_t, fn->nvalues + 1),
               .group = TL_NEW_ARRAY(arena, Group, fn->nvalues + 1),
               .nvalues = fn->nvalues,
               .columns = {.arena = arena},
               .only = {.arena = arena}};
    for (uint32_t i = 0; i < fn->nvalues; i++)
        s.parent[i] = i;
    if (!find_groups(&s))
        return false;
    split_block(&s, fn->body);
    return true;
}

/* Once more, as columns may be tiles of few rows: each time, values lose an axis. */
TlPassResult tl_pass_split_rows(TlFn *fn, TlPassCtx *px)
{
    bool changed = split_rows(fn, px->scratch);
    for (int axes = 1; changed && axes < TL_MAX_RANK; axes++)
        if (!split_rows(fn, px->scratch))
            break;
    return changed ? TL_CHANGED : TL_SAME;
}
