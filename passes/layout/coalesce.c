/* coalesce: gives every tile a layout.
 *
 *     %x = load %A, %i {axes = [512]} : tile<f32, 512>
 *     %s = reduce %x {axis = 0, kind = add} : f32
 *  =>
 *     %x = load %A, %i {axes = [512]} : tile<f32, 512, "reg(1)(2) lane(4)...(64) warp(128)(256)">
 *     %s = reduce %x ...
 *
 *  1. Each memory op chooses a layout for itself: as many neighbours per thread as one access can
 *     move (tl_access_info: 16 bytes at most), never more than the tile has for each thread; then
 *     lanes and warps side by side, first along the axis whose addresses count up, then along the
 *     others, the last first. So a warp reads whole lines.
 *     Of what products of warpgroups read of 32 or 8 bits, threads hold squares, if memory lies
 *     along the axis that it should not (of 32 bits for tcgen05: in rows of less than 128 bytes).
 *  2. Each shape has one layout: that of its widest access, else one element per thread. Every
 *     value of that shape gets it; so elementwise ops, scans, dots and whatever loops and branches
 *     carry agree. Shapes that no access has follow one where its elements are taken apart (the
 *     fields of a byte, pairs: a last axis of at most 8, broadcast to, and reshapes of that): the
 *     parts of an element stay with the thread that loaded it.
 *  3. Each op whose layouts must differ (memory ops; reduce, broadcast, expand, trans, reshape)
 *     gets its operands through converts, and users of its result get the shape's layout through
 *     one. Reshapes between layouts that do not fit become `regroup`, or, of few elements, have
 *     them all in every thread. A convert stands right after what it converts, so one serves all
 *     users.
 *
 * It is for place-layouts to make the converts few. */
#include "ir/plan/async_dot.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/default_warps.h"
#include "passes/pass.h"
#include "passes/layout/relayout.h"
#include <string.h>

/* Of atomics and operands of dots a thread has as many neighbours as a word holds, even if it moves
 * one by one: no two lanes are on one word of memory, and operands go on as words. */
enum {
    WORD_BYTES = 4,
    SCAN_BYTES = 16, /* of neighbours that a thread scans by itself */
    MOST_PARTS = 8,      /* of an element that is taken apart */
    MOST_REPLICATED = 64 /* elements of a tile that each thread may hold whole */
};

/* log2 of a square's side, and of how many a warp has side by side */
enum { SQUARE_BITS = 2, SQUARES_ALONG = 3 };

typedef struct Choice { /* of a memory op, or for a shape */
    int order[TL_MAX_RANK], vec_bits;
    bool square; /* a thread has as many along the second axis as along the first */
} Choice;

typedef struct Made {
    Choice choice;
    const TlLayout *layout;
} Made;

typedef struct Shape {
    int rank;
    const int32_t *extents;
    Choice widest;
    const TlLayout *layout; /* of values; NULL: not computed yet */
    TL_VEC(Made) made;      /* the few that its accesses want */
    bool in_parts;          /* its elements are parts of those of an access */
} Shape;

typedef struct Coalesce {
    TlFn *fn;
    TlCtx *ctx;
    TlArena *scratch;
    int lane_bits, warp_bits;
    bool warpgroups, tensor;
    TlMap shapes;           /* type without element type and layout to Shape */
    TlMap accesses;         /* memory op to its TlLayout */
    TlMap converts;         /* source value and layout to the CONVERT's result */
    TL_VEC(TlOp *) ops;     /* as they were at first, in text order */
    TL_VEC(TlOp *) created; /* converts */
} Coalesce;

static bool is_access(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & (F_READ | F_WRITE) || op->opcode == TL_OP_INSIDE;
}

/* ---- 1. choices ---- */

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* `first` is fastest, then the others, the last first. */
static void order_axes(int rank, int first, int *order)
{
    TL_ASSERT(rank <= TL_MAX_RANK && first < rank, "axis %d of a tile of rank %d", first, rank);
    int n = 0;
    if (first >= 0)
        order[n++] = first;
    for (int d = rank - 1; d >= 0; d--)
        if (d != first)
            order[n++] = d;
}

static Choice choose(const Coalesce *c, int rank, const int32_t *shape, int first, int width)
{
    TL_ASSERT(rank > 0 && width > 0, "a width of %d in a tile of rank %d", width, rank);
    Choice r = {.square = false};
    order_axes(rank, first, r.order);
    int64_t elems = 1;
    for (int d = 0; d < rank; d++)
        elems *= shape[d];
    int each = tl_floor_log2(elems) - c->lane_bits - c->warp_bits;
    r.vec_bits = min_int(tl_floor_log2(width), each < 0 ? 0 : each);
    return r;
}

/* Spreads `bits` bits of threads over what is left of the axes; those that find nothing hold
 * copies. */
static void spread(int rank, const Choice *choice, int bits, int *room, int *out)
{
    TL_ASSERT(bits >= 0, "%d bits to share", bits);
    for (int k = 0; k < rank; k++) {
        int d = choice->order[k];
        out[d] = min_int(bits, room[d]);
        room[d] -= out[d];
        bits -= out[d];
    }
    out[choice->order[rank - 1]] += bits;
}

static bool same_choice(const Choice *a, const Choice *b, int rank)
{
    for (int d = 0; d < rank; d++)
        if (a->order[d] != b->order[d])
            return false;
    return a->vec_bits == b->vec_bits && a->square == b->square;
}

/* Squares go to rows of shared memory along the second axis: eight lanes after each other, which
 * store at once, are two along the first axis and four along the second: different pieces of 16
 * bytes, as these are XORed by the row. */
static void order_lanes(TlLayout *l)
{
    static const int from[] = {0, 3, 4, 1, 2};
    int lane = tl_layout_in_index(l, TL_IN_LANE);
    TlLayout old = *l;
    for (int b = 0; b < (int)(sizeof from / sizeof *from); b++)
        memcpy(l->basis[lane][b], old.basis[lane][from[b]], sizeof l->basis[lane][b]);
}

static const TlLayout *lay_out(Coalesce *c, Shape *s, const Choice *choice)
{
    for (uint32_t i = 0; i < s->made.len; i++)
        if (same_choice(&s->made.data[i].choice, choice, s->rank))
            return s->made.data[i].layout;
    int size[TL_MAX_RANK] = {0}, lanes[TL_MAX_RANK], warps[TL_MAX_RANK], room[TL_MAX_RANK];
    size[choice->order[0]] = choice->vec_bits;
    if (choice->square)
        size[choice->order[1]] = choice->vec_bits;
    for (int d = 0; d < s->rank; d++)
        room[d] = tl_ceil_log2(s->extents[d]) - size[d];
    if (choice->square) {
        lanes[choice->order[0]] = SQUARES_ALONG;
        lanes[choice->order[1]] = c->lane_bits - SQUARES_ALONG;
        for (int d = 0; d < 2; d++)
            room[d] -= lanes[d];
    } else {
        spread(s->rank, choice, c->lane_bits, room, lanes);
    }
    spread(s->rank, choice, c->warp_bits, room, warps);
    TlLayout *l = tl_layout_blocked(c->scratch, s->rank, size, lanes, warps, choice->order);
    if (choice->square)
        order_lanes(l);
    l = tl_layout_cover(c->scratch, l, s->extents, choice->order);
    Made made = {*choice, tl_layout_intern(c->ctx, l)};
    tl_vec_push(c->scratch, &s->made, made);
    return made.layout;
}

static Shape *shape_of(Coalesce *c, int rank, const int32_t *extents)
{
    TL_ASSERT(rank > 0 && rank <= TL_MAX_RANK, "a tile of rank %d", rank);
    const TlType *key = tl_type_tile(c->ctx, TL_BOOL, rank, extents);
    Shape *s = tl_map_get_ptr(&c->shapes, key);
    if (s)
        return s;
    s = TL_NEW(c->scratch, Shape);
    s->rank = rank;
    s->extents = key->shape;
    s->widest = choose(c, rank, extents, -1, 1);
    tl_map_put_ptr(&c->shapes, key, s);
    return s;
}

/* Are they 32 bits that are rounded, or 8 bits for warpgroups, which take 64 rows? */
static bool is_for_matrix(const TlOp *dot, uint32_t operand)
{
    enum { LEAST_ROWS = 8 };
    const TlType *c = dot->out[0]->type;
    if (tl_dtype_bits(tl_in(dot, operand)->type->dtype) == 32)
        return tl_attr_int(dot, TL_ATTR_PRECISION, TL_PRECISION_IEEE) != TL_PRECISION_IEEE;
    return tl_dtype_bits(tl_in(dot, operand)->type->dtype) == 8 && c->rank == 2 &&
           c->shape[0] % TL_GROUP_ROWS == 0;
}

/* Bytes stay bytes: of others, what is loaded need not lie as the product reads. */
static bool keeps_size(const TlOp *op, const TlValue *v)
{
    const TlType *t = op->out[0]->type;
    return tl_dtype_bits(v->type->dtype) != 8 || (!t->ptr && tl_dtype_bits(t->dtype) == 8);
}

/* Does a product take the value with k along the other axis than `axis`? */
static bool is_crossed(const TlValue *v, int axis, int depth)
{
    enum { MOST_CHAIN = 5 }; /* pure ops between a load and the product: recursion */
    bool found = false;
    for (const TlUse *u = v->uses; u && !found && depth < MOST_CHAIN; u = u->next) {
        const TlOp *op = u->user;
        uint32_t operand = (uint32_t)(u - op->in);
        if (op->opcode == TL_OP_DOT)
            found = operand < 2 && axis == (int)operand && is_for_matrix(op, operand);
        else if (tl_op_info(op->opcode)->flags & F_PURE && op->nout == 1 && op->nregions == 0 &&
                 keeps_size(op, v))
            found = is_crossed(op->out[0], op->opcode == TL_OP_TRANS ? 1 - axis : axis, depth + 1);
    }
    return found;
}

/* What warpgroups read of 32 or 8 bits lies along k in shared memory: threads that load along the
 * other axis hold squares, whose rows they store as columns. */
static bool is_in_squares(const Coalesce *c, const TlOp *op, const TlAccessInfo *info,
                          const Choice *choice)
{
    TlPlace p = tl_op_place(op);
    int bits = tl_dtype_bits(p.base->type->dtype);
    if (!c->warpgroups || op->opcode != TL_OP_LOAD || p.rank != 2 || info->dim < 0 ||
        (bits != 32 && bits != 8) || choice->vec_bits < SQUARE_BITS)
        return false;
    if (bits == 32 && c->tensor && tl_tensor_reads_across(p.shape[info->dim]))
        return false;
    int other = 1 - info->dim, each = SQUARE_BITS + SQUARES_ALONG;
    int64_t threads = (int64_t)1 << (c->lane_bits + c->warp_bits);
    return (int64_t)p.shape[0] * p.shape[1] >= threads << 2 * SQUARE_BITS &&
           p.shape[info->dim] >= 1 << each &&
           p.shape[other] >= 1 << (SQUARE_BITS + c->lane_bits - SQUARES_ALONG) &&
           is_crossed(op->out[0], info->dim, 0);
}

static void choose_access(Coalesce *c, const TlAxisInfo *axis, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    if (p.rank == 0)
        return;
    TlAccessInfo info = tl_access_info(axis, op);
    int bytes = tl_dtype_bytes(p.base->type->dtype);
    int word = bytes < WORD_BYTES ? WORD_BYTES / bytes : 1;
    if (tl_op_info(op->opcode)->flags & F_ATOMIC)
        info.width = min_int(info.width, word);
    if (info.dim >= 0 && info.width < word && op->opcode == TL_OP_LOAD &&
        p.shape[info.dim] % word == 0 && tl_dot_of(op->out[0]))
        info.width = word;
    Choice mine = choose(c, p.rank, p.shape, info.dim, info.width);
    mine.square = is_in_squares(c, op, &info, &mine);
    if (mine.square)
        mine.vec_bits = SQUARE_BITS;
    Shape *s = shape_of(c, p.rank, p.shape);
    if (s->made.len == 0 || s->widest.vec_bits < mine.vec_bits)
        s->widest = mine;
    tl_map_put_ptr(&c->accesses, op, lay_out(c, s, &mine));
}

/* What is scanned along memory's axis, where accesses move one by one: a thread has some neighbours
 * nevertheless, which it scans by itself. */
static void choose_scan(Coalesce *c, const TlOp *op)
{
    const TlType *t = tl_in(op, 0)->type;
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0), bytes = 1;
    Shape *s = shape_of(c, t->rank, t->shape);
    for (uint32_t i = 0; i < op->nout; i++) {
        int each = tl_dtype_bytes(op->out[i]->type->dtype);
        bytes = each > bytes ? each : bytes;
    }
    if (s->made.len && s->widest.vec_bits == 0 && s->widest.order[0] == axis && bytes < SCAN_BYTES)
        s->widest = choose(c, t->rank, t->shape, axis, SCAN_BYTES / bytes);
}

/* ---- 2. the layout of a shape ---- */

static const TlLayout *shape_layout(Coalesce *c, const TlType *t)
{
    Shape *s = shape_of(c, t->rank, t->shape);
    if (!s->layout)
        s->layout = lay_out(c, s, &s->widest);
    return s->layout;
}

static bool is_open(const Shape *s)
{
    return !s->layout && s->made.len == 0;
}

static bool are_parts(int32_t n)
{
    return n <= MOST_PARTS && 1 << tl_floor_log2(n) == n;
}

/* Is x, which the op broadcasts along its last axis, loaded with that axis added behind, and are
 * the parts few? Then the loaded tile, else NULL. */
static TlValue *taken_apart(const TlOp *op)
{
    const TlType *x = tl_in(op, 0)->type, *y = op->out[0]->type;
    const TlOp *added = tl_in(op, 0)->def;
    int last = y->rank - 1;
    if (op->opcode != TL_OP_BROADCAST || x->rank != y->rank || last < 1 || x->shape[last] != 1 ||
        !are_parts(y->shape[last]) || !added ||
        (added->opcode != TL_OP_RESHAPE && added->opcode != TL_OP_EXPAND))
        return NULL;
    TlValue *whole = tl_in(added, 0);
    bool same = whole->type->rank == last;
    for (int d = 0; d < last && same; d++)
        same = x->shape[d] == y->shape[d] && whole->type->shape[d] == y->shape[d];
    return same ? whole : NULL;
}

static void follow(Shape *s, const TlLayout *l)
{
    if (!l || !is_open(s))
        return;
    s->layout = l;
    s->in_parts = true;
}

/* Each thread has all parts of an element, after each other. */
static void follow_parts(Coalesce *c, const TlOp *op, const TlValue *whole)
{
    const TlType *x = tl_in(op, 0)->type, *y = op->out[0]->type;
    Shape *loaded = shape_of(c, whole->type->rank, whole->type->shape);
    if (loaded->made.len == 0)
        return;
    const TlLayout *each = tl_layout_for_result(c->ctx, tl_in(op, 0)->def, 0,
                                                shape_layout(c, whole->type));
    if (!each)
        return;
    int last = y->rank - 1;
    TlLayout *parts = tl_layout_identity(c->scratch, tl_ceil_log2(y->shape[last]), TL_IN_REG,
                                         y->rank, last);
    follow(shape_of(c, x->rank, x->shape), each);
    follow(shape_of(c, y->rank, y->shape),
           tl_layout_intern(c->ctx, tl_layout_product(c->scratch, parts, each)));
}

static void follow_access(Coalesce *c, const TlOp *op)
{
    if (op->opcode != TL_OP_BROADCAST && op->opcode != TL_OP_RESHAPE)
        return;
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    if (!tl_has_layout(from) || !tl_has_layout(to))
        return;
    TlValue *whole = taken_apart(op);
    Shape *s = shape_of(c, from->rank, from->shape);
    if (whole)
        follow_parts(c, op, whole);
    else if (op->opcode == TL_OP_RESHAPE && s->in_parts)
        follow(shape_of(c, to->rank, to->shape),
               tl_layout_reshaped(c->ctx, s->layout, from, to));
}

static void set_shape_layout(Coalesce *c, TlValue *v)
{
    if (tl_has_layout(v->type))
        tl_set_layout(v, shape_layout(c, v->type));
}

static void set_shape_layouts(Coalesce *c, TlOp *op)
{
    for (uint32_t i = 0; i < op->nout; i++)
        set_shape_layout(c, op->out[i]);
    for (uint32_t r = 0; r < op->nregions; r++)
        for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
            set_shape_layout(c, op->regions[r]->args[i]);
}

/* ---- 3. converts ---- */

/* Converts the elements to another layout. */
static TlValue *converted(Coalesce *c, TlValue *v, const TlLayout *l)
{
    while (v->type->layout != l && v->def && v->def->opcode == TL_OP_CONVERT)
        v = tl_in(v->def, 0);
    if (v->type->layout == l)
        return v;
    uint64_t key = tl_hash(&l, sizeof l, tl_hash(&v, sizeof v, 0));
    TlValue *known = tl_map_get_ptr(&c->converts, (void *)(uintptr_t)key);
    if (known && tl_in(known->def, 0) == v && known->type->layout == l)
        return known;
    TlBuilder b = tl_builder_after(v);
    const TlType *type = tl_type_with_layout(c->ctx, v->type, l);
    TlOp *op = tl_op_new(&b, TL_OP_CONVERT, 1, &v, 1, &type, 0, 0, NULL);
    tl_vec_push(c->scratch, &c->created, op);
    tl_map_put_ptr(&c->converts, (void *)(uintptr_t)key, op->out[0]);
    return op->out[0];
}

static void convert_operand(Coalesce *c, TlOp *op, uint32_t i, const TlLayout *l)
{
    TL_ASSERT(i < op->nin, "operand %u of %s", i, tl_op_info(op->opcode)->text);
    if (l && l != tl_in(op, i)->type->layout)
        tl_set_operand(op, i, converted(c, tl_in(op, i), l));
}

/* Gives the result layout l; its users get a conversion to the layout of its shape. */
static void convert_result(Coalesce *c, TlValue *v, const TlLayout *l)
{
    TL_ASSERT(v->def, "value %u is no result", v->id);
    const TlLayout *outside = v->type->layout;
    if (!l || l == outside)
        return;
    tl_set_layout(v, l);
    if (!v->uses)
        return;
    TlValue *seen = converted(c, v, outside);
    for (TlUse *u = v->uses, *next; u; u = next) {
        next = u->next;
        if (u->user != seen->def)
            tl_set_operand(u->user, (uint32_t)(u - u->user->in), seen);
    }
}

static void convert_operands(Coalesce *c, TlOp *op, const TlLayout *l)
{
    for (uint32_t i = 0; i < op->nin; i++)
        convert_operand(c, op, i, tl_layout_for_operand(c->ctx, op, i, l));
}

static void lay_out_access(Coalesce *c, TlOp *op)
{
    const TlLayout *l = tl_map_get_ptr(&c->accesses, op);
    if (!l)
        return;
    convert_operands(c, op, l);
    if (op->nout)
        convert_result(c, op->out[0], l);
}

/* All operands have one shape; the results follow from them. */
static void lay_out_reduce(Coalesce *c, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_REDUCE && op->nout > 0,
              "%s is no reduction", tl_op_info(op->opcode)->text);
    const TlLayout *l = tl_layout_for_result(c->ctx, op, 0, tl_in(op, 0)->type->layout);
    for (uint32_t i = 0; i < op->nout; i++)
        convert_result(c, op->out[i], l);
}

/* Goes through shared memory, between the given layouts. */
static void regroup(TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_RESHAPE, "%s is no reshape", tl_op_info(op->opcode)->text);
    TlBuilder b = tl_builder_before(op);
    TlValue *x = tl_in(op, 0);
    b.loc = op->loc;
    TlOp *made = tl_op_new(&b, TL_OP_REGROUP, 1, &x, 1, &op->out[0]->type, 0, 0, NULL);
    made->out[0]->name = op->out[0]->name;
    tl_replace_uses(op->out[0], made->out[0]);
    tl_op_erase(op);
}

/* Tries forward, then backward; small tiles may also have all elements in every thread, which
 * always works. */
static void lay_out_reshape(Coalesce *c, TlOp *op)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    if (!tl_has_layout(from))
        return;
    if (!tl_has_layout(to)) {
        convert_operand(c, op, 0, tl_layout_collapsed(c->ctx, from->layout, ~0u));
        return;
    }
    const TlLayout *l = tl_layout_reshaped(c->ctx, from->layout, from, to);
    if (l) {
        convert_result(c, op->out[0], l);
        return;
    }
    l = tl_layout_reshaped(c->ctx, to->layout, to, from);
    if (!l && tl_type_elems(to) > MOST_REPLICATED) {
        regroup(op);
        return;
    }
    if (!l) {
        l = tl_layout_replicated(c->ctx, from, c->lane_bits, c->warp_bits);
        convert_result(c, op->out[0], tl_layout_replicated(c->ctx, to, c->lane_bits, c->warp_bits));
    }
    convert_operand(c, op, 0, l);
}

static void fit(Coalesce *c, TlOp *op)
{
    if (is_access(op))
        lay_out_access(c, op);
    else if (op->opcode == TL_OP_REDUCE)
        lay_out_reduce(c, op);
    else if (op->opcode == TL_OP_RESHAPE)
        lay_out_reshape(c, op);
    else
        convert_operands(c, op, tl_op_layout(op));
}

TlPassResult tl_pass_coalesce(TlFn *fn, TlPassCtx *px)
{
    if (tl_fn_level(fn) != TL_LEVEL_TILE)
        return TL_SAME;
    fn->body->warps = tl_choose_warps(fn, px->machine->warps, px->machine->lanes);
    TL_ASSERT(fn->body->warps > 0 && px->machine->lanes > 0,
              "'%s' has %d warps of %d", fn->name, (int)fn->body->warps, px->machine->lanes);
    Coalesce c = {.fn = fn,
                  .ctx = fn->module->ctx,
                  .scratch = px->scratch,
                  .lane_bits = tl_ceil_log2(px->machine->lanes),
                  .warp_bits = tl_ceil_log2(fn->body->warps),
                  .warpgroups = px->machine->warpgroups,
                  .tensor = px->machine->tensor,
                  .shapes = {.arena = px->scratch},
                  .accesses = {.arena = px->scratch},
                  .converts = {.arena = px->scratch}};
    const TlAxisInfo *axis = tl_pass_axis_info(fn, px);
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        tl_vec_push(c.scratch, &c.ops, op);
        if (is_access(op))
            choose_access(&c, axis, op);
    }
    for (uint32_t i = 0; i < c.ops.len; i++)
        if (c.ops.data[i]->opcode == TL_OP_SCAN)
            choose_scan(&c, c.ops.data[i]);
    for (uint32_t i = 0; i < c.ops.len; i++)
        follow_access(&c, c.ops.data[i]);
    for (uint32_t i = 0; i < c.ops.len; i++)
        set_shape_layouts(&c, c.ops.data[i]);
    for (uint32_t i = 0; i < c.ops.len; i++)
        fit(&c, c.ops.data[i]);
    while (c.created.len) {
        TlOp *op = c.created.data[--c.created.len];
        if (!op->out[0]->uses)
            tl_op_erase(op);
    }
    return TL_CHANGED;
}
