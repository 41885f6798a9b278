/* turn-rows: loops that go along rows, of which each lane has one, take blocks of columns.
 *
 *     for %i in 0 .. %n {                            for %t in 0 .. %n by 64 {
 *         %a = load %x, %r, %i {axes = [16, i]}          %b = load %x, %r, %t {axes = [16, 32]}
 *         %s = ... %a ...                                %c = trans %b
 *         store %y, %r, %i, %s {axes = [16, i]}   =>     for %k in 0 .. min(32, %n - %t) {
 *     }                                                      %a = row %k of %c
 *                                                            %s = ... %a ...
 *                                                            %d = %s as row %k of %d
 *                                                        }
 *                                                        store %y, %r, %t, trans %d
 *                                                    }
 *
 * The elements of a trip lie a row apart: each is a load or a store of its own, of a line of memory
 * that the next trips want again. Where rows are a power of two apart, all these lines are in one
 * set of the cache, and are gone by then. A block's rows are vectors, which the CPU's loop nests
 * transpose in registers, and its trips load and store vectors of the first cache.
 *
 *   1. column   where an access goes from trip to trip: so many columns on, along an axis whose
 *               elements lie side by side, behind that of the lanes
 *   2. check    loops with no other effects than loads and stores; a load from what the loop stores
 *               takes what was there before: its column is stored later
 *   3. blocks   loads of one array, columns of which some trips share, have one block; so many
 *               trips that the blocks of a loop stay in the first cache
 *   4. limits   enough lanes and trips for vectors that are transposed; blocks of a bounded size.
 *               Both ways are not compared: rows whose lines do not meet in the cache may lose
 *   5. turn     two loops in the place of one */
#include <string.h>

#include "ir/remark.h"
#include "ir/rewrite.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"

enum {
    MOST_TRIPS = 64,  /* of a block: its rows are one line or two; */
    MOST_ROW = 128,   /* bytes of these */
    LEAST_TRIPS = 16, /* whole vectors that are transposed */
    LEAST_LANES = 8,
    MOST_STEP = 4, /* columns from trip to trip */
    MOST_TERMS = 4,
    MOST_DEPTH = 12,        /* of ops that compute a column */
    FIRST_CACHE = 32 << 10, /* bytes that blocks and their transpositions take, if they can, */
    MOST_BYTES = 256 << 10, /* and at most */
    MOST_ACCESSES = 32
};

/* The column where the loop's variable is i: times * i + offset + term[0] + ... */
typedef struct Column {
    int64_t times, offset;
    int64_t step; /* columns from trip to trip */
    int nterms;
    const TlValue *term[MOST_TERMS];
    bool minus[MOST_TERMS];
} Column;

typedef struct Access {
    TlOp *op;
    TlPlace place;
    uint32_t along; /* the view's axis that trips go along */
    Column column;
    bool loads, stays; /* stays: as it is */
    int block;         /* number of its block */
} Access;

/* Columns that are loaded or stored together. */
typedef struct Block {
    const Access *first; /* the one of the least offset */
    int64_t most;        /* the greatest offset */
    int32_t width;       /* columns */
    TlValue *tile;       /* a load's, transposed; a store's, as trips see it */
    uint32_t carried;    /* a store's: its number among what the loops carry */
} Block;

typedef struct Turn {
    TlOp *loop;
    int64_t step; /* of the loop */
    TlArena *scratch;
    TL_VEC(Access) all;
    TL_VEC(Block) blocks;
    int32_t trips; /* of a block */
} Turn;

/* ---- 1. column ---- */

static bool add_column(Column *c, const TlValue *v, const TlOp *loop, int64_t times, int depth)
{
    TlWideInt n;
    const TlOp *op = v->def;
    if (v == loop->regions[0]->args[0]) {
        c->times += times;
        return true;
    }
    if (tl_const_int_value(v, &n)) {
        c->offset += times * (int64_t)n;
        return n < INT32_MAX && n > INT32_MIN;
    }
    if (tl_is_invariant(v, loop)) {
        bool fits = c->nterms < MOST_TERMS && (times == 1 || times == -1);
        if (fits) {
            c->minus[c->nterms] = times < 0;
            c->term[c->nterms++] = v;
        }
        return fits;
    }
    if (!op || depth > MOST_DEPTH)
        return false;
    switch ((int)op->opcode) {
    case TL_OP_ADD:
    case TL_OP_SUB:
        return add_column(c, tl_in(op, 0), loop, times, depth + 1) &&
               add_column(c, tl_in(op, 1), loop, op->opcode == TL_OP_SUB ? -times : times,
                          depth + 1);
    case TL_OP_MUL:
        for (uint32_t i = 0; i < 2; i++)
            if (tl_const_int_value(tl_in(op, i), &n) && n >= -MOST_STEP && n <= MOST_STEP)
                return add_column(c, tl_in(op, 1 - i), loop, times * (int64_t)n, depth + 1);
        return false;
    case TL_OP_CAST: /* of what has not wrapped */
        return tl_in(op, 0) == loop->regions[0]->args[0] && v->type->dtype == TL_I64 &&
               add_column(c, tl_in(op, 0), loop, times, depth + 1);
    }
    return false;
}

/* Do trips go so far apart, besides the offset, from the same place? */
static bool has_same_terms(const Column *a, const Column *b)
{
    bool same = a->times == b->times && a->nterms == b->nterms;
    for (int i = 0; same && i < a->nterms; i++)
        same = a->term[i] == b->term[i] && a->minus[i] == b->minus[i];
    return same;
}

/* Do elements of the view follow each other along the axis? */
static bool is_dense(const TlFn *fn, const TlValue *view, uint32_t axis)
{
    while (view->def && view->def->opcode == TL_OP_SUB_VIEW)
        view = tl_in(view->def, 0);
    TlWideInt stride;
    if (view->def && view->def->opcode == TL_OP_VIEW)
        return tl_const_int_value(tl_in(view->def, 1 + (uint32_t)view->type->rank + axis),
                                  &stride) &&
               stride == 1;
    const TlKernelInfo *info = fn->info;
    if (view->def || view->block->parent || !info || view->index >= info->params.len)
        return false;
    const TlParam *p = &info->params.data[view->index];
    const TlDim *d = &p->stride[axis];
    return (d->kind == TILE_DIM_DENSE && (int)axis + 1 == p->rank) ||
           (d->kind == TILE_DIM_CONST && d->value == 1);
}

/* A mask, or what stands for what is masked. */
static bool is_repeated(const TlValue *v, const TlOp *loop)
{
    return !v || tl_is_invariant(v, loop);
}

/* Is the access a tile of rows, one element of each, whose columns are trips'? */
static bool find_access(const Turn *t, TlOp *op, Access *a)
{
    TlPlace p = tl_op_place(op);
    *a = (Access){.op = op, .place = p, .loads = op->opcode == TL_OP_LOAD, .block = -1};
    if (!p.axes || p.pointwise || p.rank != 1 || p.shape[0] < LEAST_LANES ||
        tl_dtype_bits(p.base->type->dtype) < 8 || !tl_is_invariant(p.base, t->loop) ||
        !is_repeated(p.mask, t->loop) || !is_repeated(p.other, t->loop))
        return false;
    bool has_lanes = false, has_along = false;
    for (uint32_t i = 0; i < p.naxes; i++) {
        const TlValue *index = p.index[i].value;
        bool stays = tl_is_invariant(index, t->loop);
        if (p.axes[i].kind != TL_AXIS_SCALAR) {
            if (!stays || has_along)
                return false;
            has_lanes = true;
        } else if (!stays) {
            if (has_along || !has_lanes || !tl_is_signed(index->type->dtype) ||
                !is_dense(t->loop->block->fn, p.base, i) ||
                !add_column(&a->column, index, t->loop, 1, 0))
                return false;
            has_along = true;
            a->along = i;
        }
    }
    a->column.step = a->column.times * t->step;
    int64_t step = a->column.step < 0 ? -a->column.step : a->column.step;
    return has_along && step && step <= (a->loads ? MOST_STEP : 1);
}

/* ---- 2. check ---- */

/* Are the two the same, but for the offset of their columns? */
static bool is_same_place(const Access *a, const Access *b)
{
    const TlPlace *p = &a->place, *q = &b->place;
    if (p->base != q->base || a->along != b->along || p->mask != q->mask || p->other != q->other ||
        !has_same_terms(&a->column, &b->column) ||
        p->index[a->along].value->type != q->index[a->along].value->type)
        return false;
    for (uint32_t i = 0; i < p->naxes; i++)
        if (i != a->along && (p->index[i].value != q->index[i].value ||
                              memcmp(&p->axes[i], &q->axes[i], sizeof *p->axes) != 0))
            return false;
    return true;
}

static bool is_before(const TlOp *a, const TlOp *b)
{
    while (a && a != b)
        a = a->next;
    return a == b;
}

/* Has the load what was there before the loop, or would have, were all of a block loaded first? */
static bool is_early(const Access *load, const Access *store)
{
    int64_t by = load->column.offset - store->column.offset;
    by = store->column.step < 0 ? -by : by;
    return is_same_place(load, store) && (by > 0 || (by == 0 && is_before(load->op, store->op)));
}

static Access *access_of(Turn *t, const TlOp *op)
{
    for (uint32_t i = 0; i < t->all.len; i++)
        if (t->all.data[i].op == op)
            return &t->all.data[i];
    return NULL;
}

/* Ops of the loop that may touch what the access does, one of them writing. */
static bool may_meet(const TlOp *op, const Access *a)
{
    bool stores = op->opcode == TL_OP_STORE;
    if (op == a->op || (op->opcode != TL_OP_LOAD && !stores) || (a->loads && !stores))
        return false;
    return tl_may_alias(a->op->block->fn, tl_in(op, 0), a->place.base);
}

/* Is everything that may meet the access such that the order of their effects is seen by none? */
static bool is_apart(Turn *t, const Access *a)
{
    for (const TlOp *op = tl_walk_next(t->loop, t->loop); op; op = tl_walk_next(op, t->loop)) {
        if (!may_meet(op, a))
            continue;
        const Access *b = access_of(t, op);
        if (!b || b->stays || a->loads == b->loads || !(a->loads ? is_early(a, b) : is_early(b, a)))
            return false;
    }
    return true;
}

/* Loads and stores, and no other loops. */
static bool is_plain(const TlOp *loop)
{
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        if (tl_is_loop(op) || (op->opcode != TL_OP_LOAD && op->opcode != TL_OP_STORE &&
                               op->opcode != TL_OP_IF && tl_op_effects(op) != 0))
            return false;
    return true;
}

static bool find_accesses(Turn *t)
{
    TlBlock *body = t->loop->regions[0];
    for (TlOp *op = body->first; op; op = op->next) {
        Access a;
        if ((op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE) && find_access(t, op, &a)) {
            if (t->all.len == MOST_ACCESSES)
                return false;
            tl_vec_push(t->scratch, &t->all, a);
        }
    }
    for (bool changed = true; changed;) { /* what stays may keep others from going */
        changed = false;
        for (uint32_t i = 0; i < t->all.len; i++) {
            Access *a = &t->all.data[i];
            bool stays = !a->stays && !is_apart(t, a);
            a->stays |= stays;
            changed |= stays;
        }
    }
    return t->all.len > 0;
}

/* ---- 3. blocks ---- */

static void add_to_blocks(Turn *t, Access *a)
{
    for (uint32_t i = 0; a->loads && i < t->blocks.len; i++) {
        Block *b = &t->blocks.data[i];
        int64_t least = b->first->column.offset, most = b->most, at = a->column.offset;
        least = at < least ? at : least;
        most = at > most ? at : most;
        if (!b->first->loads || !is_same_place(a, b->first) || most - least >= LEAST_TRIPS)
            continue;
        b->first = at == least ? a : b->first;
        b->most = most;
        a->block = (int)i;
        return;
    }
    a->block = (int)t->blocks.len;
    tl_vec_push(t->scratch, &t->blocks, ((Block){.first = a, .most = a->column.offset}));
}

static int64_t length(int64_t step)
{
    return step < 0 ? -step : step;
}

/* Columns of a block of so many trips: what is transposed is whole vectors. */
static int64_t width_of(const Block *b, int64_t trips)
{
    int64_t columns =
        length(b->first->column.step) * (trips - 1) + 1 + b->most - b->first->column.offset;
    return (columns + LEAST_TRIPS - 1) / LEAST_TRIPS * LEAST_TRIPS;
}

static int64_t bytes_of(const Turn *t, int64_t trips)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < t->blocks.len; i++) {
        const Block *b = &t->blocks.data[i];
        bytes += 2 * width_of(b, trips) * b->first->place.shape[0] *
                 tl_dtype_bytes(b->first->place.base->type->dtype);
    }
    return bytes;
}

/* ---- 4. limits ---- */

static int32_t most_trips(const Turn *t)
{
    int32_t most = MOST_TRIPS;
    for (uint32_t i = 0; i < t->blocks.len; i++) {
        int32_t n = MOST_ROW / tl_dtype_bytes(t->blocks.data[i].first->place.base->type->dtype);
        most = n < most ? n : most;
    }
    return most > LEAST_TRIPS ? most : LEAST_TRIPS;
}

/* Sets the trips of a block. */
static bool is_within_limits(Turn *t)
{
    TlWideInt trips;
    bool known = tl_const_trips(t->loop, &trips);
    if (!t->blocks.len || (known && trips < LEAST_TRIPS))
        return false;
    t->trips = most_trips(t);
    while (t->trips > LEAST_TRIPS &&
           (bytes_of(t, t->trips) > FIRST_CACHE || (known && trips < t->trips)))
        t->trips /= 2;
    return bytes_of(t, t->trips) <= MOST_BYTES;
}

/* ---- 5. turn ---- */

static TlValue *times(TlBuilder *b, TlValue *v, int64_t n)
{
    return n == 1 ? v : tl_binary(b, TL_OP_MUL, v, tl_const_int(b, v->type, n));
}

static TlValue *plus(TlBuilder *b, TlValue *v, int64_t n)
{
    return n == 0 ? v : tl_binary(b, TL_OP_ADD, v, tl_const_int(b, v->type, n));
}

/* The least column of a block whose trips begin at `trip`, in the type of the index, which wraps
 * alike. */
static TlValue *first_column(const Turn *t, TlBuilder *b, const Block *x, TlValue *trip)
{
    const Column *c = &x->first->column;
    TlDtype type = x->first->place.index[x->first->along].value->type->dtype;
    TlValue *v = times(b, tl_cast(b, trip, type), c->times);
    for (int i = 0; i < c->nterms; i++)
        v = tl_binary(b, c->minus[i] ? TL_OP_SUB : TL_OP_ADD, v,
                      tl_cast(b, (TlValue *)(uintptr_t)c->term[i], type));
    return plus(b, v, c->offset + (c->step < 0 ? c->step * (t->trips - 1) : 0));
}

/* The column of trip k in its block. */
static TlValue *row_of(const Turn *t, TlBuilder *b, const Access *a, TlValue *k)
{
    const Block *x = &t->blocks.data[a->block];
    int64_t step = a->column.step, by = a->column.offset - x->first->column.offset;
    return step > 0 ? plus(b, times(b, k, step), by)
                    : tl_binary(b, TL_OP_SUB, tl_const_int(b, k->type, by - step * (t->trips - 1)),
                                times(b, k, -step));
}

static const TlType *with_shape(const TlBuilder *b, const TlType *like, int32_t rows,
                                int32_t columns)
{
    return tl_type_with_shape(b->fn->module->ctx, like, 2, (int32_t[]){rows, columns});
}

/* v, of each row, for all columns of the block. */
static TlValue *for_columns(TlBuilder *b, TlValue *v, int32_t width)
{
    if (v->type->rank) {
        const TlType *column = with_shape(b, v->type, v->type->shape[0], 1);
        v = tl_op_new(b, TL_OP_RESHAPE, 1, &v, 1, &column, 0, 0, NULL)->out[0];
    }
    return v->type->rank ? tl_broadcast(b, v, 2, (int32_t[]){v->type->shape[0], width}) : v;
}

/* 0, 1, ... up to n. */
static TlValue *numbers(TlBuilder *b, int32_t n)
{
    const TlType *t = tl_type_tile(b->fn->module->ctx, TL_I32, 1, &n);
    return tl_op_new(b, TL_OP_IOTA, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
}

/* The first one of a block's accesses, with all of its columns. */
static TlOp *access_block(TlBuilder *b, const Block *x, TlValue *start, TlValue *value,
                          TlValue *mask)
{
    const Access *a = x->first;
    const TlPlace *p = &a->place;
    TlAxis *axes = TL_NEW_ARRAY(&b->fn->module->arena, TlAxis, p->naxes);
    memcpy(axes, p->axes, sizeof *axes * p->naxes);
    axes[a->along] = (TlAxis){TL_AXIS_SLICE, x->width, 1};
    TlValue *in[TL_MAX_VIEW_RANK + 4] = {p->base};
    uint32_t n = 1;
    for (uint32_t i = 0; i < p->naxes; i++)
        in[n++] = i == a->along ? start : p->index[i].value;
    if (value)
        in[n++] = value;
    if (mask)
        in[n++] = mask;
    if (p->other)
        in[n++] = for_columns(b, p->other, x->width);
    const TlType *type =
        with_shape(b, a->op->nout ? a->op->out[0]->type : p->value->type, p->shape[0], x->width);
    TlOp *made = tl_op_like(b, a->op, n, in, a->op->nout, &type);
    tl_attr_set(b->fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = p->naxes, .u.axes = axes});
    if (mask && !p->mask)
        tl_attr_set(b->fn, made, (TlAttr){.id = TL_ATTR_MASK, .u.i = 1});
    if (a->loads) /* of trips that there are not, too */
        tl_attr_remove(made, TL_ATTR_UNCHECKED);
    return made;
}

static TlValue *mask_of(TlBuilder *b, const Block *x)
{
    TlValue *mask = x->first->place.mask;
    return mask ? for_columns(b, mask, x->width) : NULL;
}

static void load_blocks(Turn *t, TlBuilder *b, TlValue *trip)
{
    for (uint32_t i = 0; i < t->blocks.len; i++) {
        Block *x = &t->blocks.data[i];
        if (!x->first->loads)
            continue;
        TlOp *load = access_block(b, x, first_column(t, b, x, trip), NULL, mask_of(b, x));
        x->tile = tl_transposed(b, load->out[0]);
    }
}

/* What the trips, as many as `left`, have stored. */
static void store_block(const Turn *t, TlBuilder *b, const Block *x, TlValue *trip, TlValue *left)
{
    TlValue *start = first_column(t, b, x, trip), *value = tl_transposed(b, x->tile),
            *mask = mask_of(b, x), *at = numbers(b, x->width);
    TlWideInt n;
    if (tl_const_int_value(left, &n) && n == t->trips) {
        access_block(b, x, start, value, mask);
        return;
    }
    TlValue *all = tl_binary(b, TL_OP_EQ, left, tl_const_int(b, left->type, t->trips));
    TlOp *either = tl_op_new(b, TL_OP_IF, 1, &all, 0, NULL, 2, 0, NULL);
    TlBuilder full = tl_builder_end(either->regions[0]), part = tl_builder_end(either->regions[1]);
    full.loc = part.loc = b->loc;
    access_block(&full, x, start, value, mask);
    tl_yield(&full, TL_OP_YIELD, 0, NULL);
    bool back = x->first->column.step < 0;
    TlValue *end =
        back ? tl_binary(&part, TL_OP_SUB, tl_const_int(&part, left->type, t->trips), left) : left;
    TlValue *is = tl_binary(&part, back ? TL_OP_GE : TL_OP_LT, at,
                            tl_broadcast(&part, end, 1, at->type->shape));
    int32_t shape[] = {x->first->place.shape[0], x->width};
    is = tl_broadcast(&part, is, 2, shape);
    access_block(&part, x, start, value, mask ? tl_binary(&part, TL_OP_AND, mask, is) : is);
    tl_yield(&part, TL_OP_YIELD, 0, NULL);
}

/* How many trips of a block there are, from `trip` on. */
static TlValue *trips_left(const Turn *t, TlBuilder *b, TlValue *trip)
{
    TlWideInt all;
    const TlType *i32 = tl_type_scalar(b->fn->module->ctx, TL_I32);
    if (tl_const_trips(t->loop, &all) && all % t->trips == 0)
        return tl_const_int(b, i32, t->trips);
    TlValue *end = tl_cast(b, tl_in(t->loop, 1), TL_I64), *from = tl_cast(b, trip, TL_I64),
            *left = t->step > 0 ? tl_binary(b, TL_OP_SUB, end, from)
                                : tl_binary(b, TL_OP_SUB, from, end);
    if (length(t->step) > 1) {
        left = plus(b, left, length(t->step) - 1);
        left = tl_binary(b, TL_OP_DIV, left, tl_const_int(b, left->type, length(t->step)));
    }
    left = tl_binary(b, TL_OP_MIN, left, tl_const_int(b, left->type, t->trips));
    return tl_cast(b, left, TL_I32);
}

static TlOp *new_loop(TlBuilder *b, TlValue *from, TlValue *to, TlValue *step, uint32_t n,
                      TlValue *const *carried, TlArena *scratch)
{
    TlValue **in = TL_NEW_ARRAY(scratch, TlValue *, n + 3);
    const TlType **types = TL_NEW_ARRAY(scratch, const TlType *, n + 1);
    in[0] = from;
    in[1] = to;
    in[2] = step;
    for (uint32_t i = 0; i < n; i++) {
        in[3 + i] = carried[i];
        types[i] = carried[i]->type;
    }
    TlOp *loop = tl_op_new(b, TL_OP_FOR, n + 3, in, n, types, 1, 0, NULL);
    tl_block_arg(loop->regions[0], from->type, NULL);
    for (uint32_t i = 0; i < n; i++)
        tl_block_arg(loop->regions[0], types[i], carried[i]->name);
    return loop;
}

/* A trip's load: a row of what is transposed. */
static TlValue *take_row(const Turn *t, TlBuilder *b, const Access *a, TlValue *k)
{
    TlValue *tile = t->blocks.data[a->block].tile;
    int32_t shape[] = {1, tile->type->shape[1]};
    TlValue *in[] = {tile, tl_broadcast(b, row_of(t, b, a, k), 2, shape)};
    const TlType *row = tl_type_with_shape(b->fn->module->ctx, tile->type, 2, shape),
                 *type = a->op->out[0]->type;
    TlAttr axis = {.id = TL_ATTR_AXIS, .u.i = 0};
    TlValue *v = tl_op_new(b, TL_OP_GATHER, 2, in, 1, &row, 0, 1, &axis)->out[0];
    return tl_op_new(b, TL_OP_RESHAPE, 1, &v, 1, &type, 0, 0, NULL)->out[0];
}

/* A trip's store: the tile with another row. */
static TlValue *put_row(const Turn *t, TlBuilder *b, const Access *a, TlValue *k, TlValue *value,
                        TlValue *tile)
{
    int32_t rows = tile->type->shape[0], lanes = tile->type->shape[1];
    TlValue *at = numbers(b, rows);
    const TlType *column = with_shape(b, at->type, rows, 1);
    at = tl_op_new(b, TL_OP_RESHAPE, 1, &at, 1, &column, 0, 0, NULL)->out[0];
    TlValue *is = tl_binary(b, TL_OP_EQ, at, tl_broadcast(b, row_of(t, b, a, k), 2, column->shape));
    int32_t shape[] = {rows, lanes};
    return tl_select(b, tl_broadcast(b, is, 2, shape), tl_broadcast(b, value, 2, shape), tile);
}

/* The body of the inner loop: a trip. */
static void copy_trip(Turn *t, TlOp *inner, TlValue *trip)
{
    TlBlock *from = t->loop->regions[0], *to = inner->regions[0];
    TlBuilder b = tl_builder_end(to);
    TlMap map = {.arena = t->scratch};
    TlValue *k = to->args[0], *i = tl_cast(&b, k, from->args[0]->type->dtype);
    tl_map_put_ptr(&map, from->args[0], tl_binary(&b, TL_OP_ADD, trip, times(&b, i, t->step)));
    for (uint32_t c = 0; c < t->loop->nout; c++)
        tl_map_put_ptr(&map, from->args[c + 1], to->args[c + 1]);
    uint32_t n = inner->nout;
    TlValue **next = TL_NEW_ARRAY(t->scratch, TlValue *, n + 1);
    for (uint32_t c = 0; c < n; c++)
        next[c] = to->args[c + 1];
    for (TlOp *op = from->first; op != from->last; op = op->next) {
        const Access *a = access_of(t, op);
        b.loc = op->loc;
        if (!a || a->stays) {
            tl_op_clone(&b, op, &map);
        } else if (a->loads) {
            tl_map_put_ptr(&map, op->out[0], take_row(t, &b, a, k));
        } else {
            uint32_t c = t->blocks.data[a->block].carried;
            next[c] = put_row(t, &b, a, k, tl_mapped(&map, a->place.value), next[c]);
        }
    }
    for (uint32_t c = 0; c < t->loop->nout; c++)
        next[c] = tl_mapped(&map, tl_in(from->last, c));
    tl_yield(&b, TL_OP_YIELD, n, next);
}

static void turn(Turn *t)
{
    TlOp *loop = t->loop;
    TlBuilder b = tl_builder_before(loop);
    uint32_t n = loop->nout;
    TlValue **carried = TL_NEW_ARRAY(t->scratch, TlValue *, n + t->blocks.len);
    for (uint32_t i = 0; i < n; i++)
        carried[i] = tl_in(loop, 3 + i);
    for (uint32_t i = 0; i < t->blocks.len; i++) {
        Block *x = &t->blocks.data[i];
        x->width = (int32_t)width_of(x, t->trips);
        if (x->first->loads)
            continue;
        x->carried = n;
        carried[n++] = tl_const_bits(
            &b, with_shape(&b, x->first->place.value->type, x->width, x->first->place.shape[0]), 0);
    }
    TlValue *step = tl_const_int(&b, tl_in(loop, 2)->type, t->step * t->trips);
    TlOp *outer = new_loop(&b, tl_in(loop, 0), tl_in(loop, 1), step, n, carried, t->scratch);
    tl_remark(b.fn, outer, TL_REMARK_TURNED, t->trips);
    TlBlock *body = outer->regions[0];
    body->warps = loop->regions[0]->warps;
    TlBuilder in = tl_builder_end(body);
    in.loc = loop->loc;
    TlValue *trip = body->args[0], *left = trips_left(t, &in, trip);
    load_blocks(t, &in, trip);
    TlOp *inner = new_loop(&in, tl_const_int(&in, left->type, 0), left,
                           tl_const_int(&in, left->type, 1), n, body->args + 1, t->scratch);
    copy_trip(t, inner, trip);
    for (uint32_t i = 0; i < t->blocks.len; i++) {
        Block *x = &t->blocks.data[i];
        if (x->first->loads)
            continue;
        x->tile = inner->out[x->carried];
        store_block(t, &in, x, trip, left);
    }
    tl_yield(&in, TL_OP_YIELD, n, inner->out);
    for (uint32_t i = 0; i < loop->nout; i++)
        tl_replace_uses(loop->out[i], outer->out[i]);
    tl_op_erase(loop);
}

static bool find(Turn *t)
{
    const TlOp *loop = t->loop;
    TlWideInt step;
    const TlType *type = loop->opcode == TL_OP_FOR ? loop->regions[0]->args[0]->type : NULL;
    if (!type || (type->dtype != TL_I32 && type->dtype != TL_I64) ||
        !tl_const_int_value(tl_in(loop, 2), &step) || step == 0 || step < -MOST_STEP ||
        step > MOST_STEP || !is_plain(loop))
        return false;
    t->step = (int64_t)step;
    if (!find_accesses(t))
        return false;
    for (uint32_t i = 0; i < t->all.len; i++)
        if (!t->all.data[i].stays)
            add_to_blocks(t, &t->all.data[i]);
    return is_within_limits(t);
}

TlPassResult tl_pass_turn_rows(TlFn *fn, TlPassCtx *px)
{
    TL_VEC(TlOp *) loops = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR)
            tl_vec_push(px->scratch, &loops, op);
    bool changed = false;
    for (uint32_t i = 0; i < loops.len; i++) {
        Turn t = {.loop = loops.data[i], .scratch = px->scratch};
        if (!find(&t))
            continue;
        turn(&t);
        changed = true;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
