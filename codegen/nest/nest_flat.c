/* Tiles of short rows that loops carry, as one row.
 *
 * What is computed element by element cares for no axes. A tile [4, 4] whose rows do not fill a
 * vector is as well one of [16], which does; only what loads, stores, repeats or reduces along an
 * axis takes it as it was. So a loop over tiles that are blocks of an image, for the sake of what
 * neighbours have in common, costs what one over rows does.
 *
 *     while ... (%a: tile<f32, 4, 4>) {                while ... (%a: tile<f32, 16>) {
 *         %b = broadcast %row : tile<f32, 4, 4>   =>       %b = %row, four times : tile<f32, 16>
 *         %c = min %a, %b                                  %c = min %a, %b
 *
 *   1. groups  tiles of one shape: operands and results of ops that work element by element, and
 *              what loops and branches carry
 *   2. price   vectors that become fewer, by how deep in loops; beside them, what is put together
 *              or taken apart where something else gives or takes a tile of the group
 *   3. copy    the function once more: the plan is made for that
 *   4. spread  what comes from elsewhere, as one row. Rows and columns that repeat are repeated
 *              before what is computed from them, if that is as many vectors; places become numbers
 *   5. gather  what goes elsewhere, as it was */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    MOST_TRIPS = 64, /* of a loop that count */
    MOST_OPS = 64,   /* that a row is computed by, as one asks what that costs */
    MOST_DEPTH = 24  /* of ops that are repeated: recursion */
};

typedef struct Group {
    const TlType *type; /* of one of its tiles: the shape */
    int bytes;          /* of the largest element */
    bool carried;       /* by a loop */
    bool refused;       /* something needs it as it is */
    int64_t gain;
    const TlType *row; /* the shape as one row, of type's elements; NULL: it stays as it is */
} Group;

typedef struct Flat {
    const TlFn *of;
    TlFn *fn;
    const TlNestMachine *m;
    TlArena *arena;
    uint32_t *parent;         /* by value id: of the same group */
    Group *group;             /* by value id, of the group's first one */
    TL_VEC(TlValue *) chosen; /* values of groups that become rows */
    TlMap copy;               /* value to the copy's */
    TlMap rows;               /* values of the copy that become rows */
    TlMap spread;             /* value of the copy, axes and group to its row */
    TlMap *reshapes;          /* to rows, and back */
} Flat;

/* ---- 1. groups ---- */

static uint32_t find(Flat *f, uint32_t id)
{
    while (f->parent[id] != id)
        id = f->parent[id] = f->parent[f->parent[id]];
    return id;
}

static Group *group_of(Flat *f, const TlValue *v)
{
    return &f->group[find(f, v->id)];
}

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 1;
}

static void join(Flat *f, const TlValue *a, const TlValue *b)
{
    if (is_tile(a) && is_tile(b) && tl_same_shape(a->type, b->type))
        f->parent[find(f, a->id)] = find(f, b->id);
}

/* A load whose lanes lie where one tile says. */
static bool is_by_lane(const TlOp *op)
{
    if (op->opcode != TL_OP_LOAD)
        return false;
    TlPlace p = tl_op_place(op);
    uint32_t tiles = 0;
    for (uint32_t i = 0; p.axes && i < p.naxes; i++) {
        if (p.axes[i].kind == TL_AXIS_SLICE)
            return false;
        tiles += p.axes[i].kind == TL_AXIS_TILE;
    }
    return tiles == 1 && p.pointwise;
}

static bool is_elementwise(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & F_ELEM || is_by_lane(op);
}

static void join_op(Flat *f, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *to = is_elementwise(op) ? op->out[0] : tl_flows_to(op, i);
        if (to)
            join(f, tl_in(op, i), to);
    }
    for (uint32_t k = 0; tl_is_loop(op) && k < op->nout; k++)
        join(f, op->out[k],
             op->opcode == TL_OP_FOR ? op->regions[0]->args[k + 1] : op->regions[1]->args[k]);
}

/* ---- 2. price ---- */

/* Is how the op works decided by the axes of its operands, and by what these are computed from? */
static bool knows_axes(const TlOp *op)
{
    return op->opcode == TL_OP_DOT || op->opcode == TL_OP_GATHER || op->opcode == TL_OP_SCAN;
}

static void note_value(Flat *f, const TlValue *v)
{
    if (!is_tile(v))
        return;
    Group *g = group_of(f, v);
    int bytes = tl_is_bool(v->type->dtype) ? 1 : (int)tl_gen_elem_bytes(v->type);
    g->type = v->type;
    g->bytes = bytes > g->bytes ? bytes : g->bytes;
    g->refused |=
        v->type->ptr || tl_dtype_bits(v->type->dtype) < 8 || (v->def && knows_axes(v->def));
}

static void note_values(Flat *f)
{
    for (const TlOp *op = f->of->body->first; op; op = tl_walk_next(op, NULL)) {
        for (uint32_t i = 0; i < op->nout; i++)
            note_value(f, op->out[i]);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++) {
                note_value(f, op->regions[r]->args[i]);
                if (tl_is_loop(op) && is_tile(op->regions[r]->args[i]))
                    group_of(f, op->regions[r]->args[i])->carried = true;
            }
        for (uint32_t i = 0; knows_axes(op) && i < op->nin; i++)
            if (is_tile(tl_in(op, i)))
                group_of(f, tl_in(op, i))->refused = true;
    }
}

/* Vectors of a tile as it is, row by row, and as one row. */
typedef struct Vectors {
    int64_t rows, flat;
} Vectors;

static Vectors vectors_of(const Flat *f, const Group *g, const TlType *type)
{
    TlNestForm form = tl_nest_form(type);
    int64_t lanes = f->m->vector_bytes / g->bytes, n = tl_type_elems(type),
            row = form.extent[form.lane];
    return (Vectors){n / row * ((row + lanes - 1) / lanes), (n + lanes - 1) / lanes};
}

/* Is a use one by an op of the group? */
static bool is_inner(const TlUse *u)
{
    return is_elementwise(u->user) || tl_flows_to(u->user, (uint32_t)(u - u->user->in));
}

/* Does something take v by its axes? Other shapes of the same elements have them in a row. */
static bool goes_elsewhere(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next)
        if (!is_inner(u) && u->user->opcode != TL_OP_RESHAPE)
            return true;
    return false;
}

/* What an op that is none of the group's makes is as good as a row. */
static bool comes_as_row(const TlOp *op)
{
    return op->opcode == TL_OP_CONST || op->opcode == TL_OP_RESHAPE || is_elementwise(op) ||
           op->nregions;
}

static const TlBlock *block_of(const TlValue *v)
{
    return v->def ? v->def->block : v->block;
}

/* Of x, repeated element by element to a row. */
static int64_t cost_of_elements(const Group *g, const TlValue *x)
{
    return tl_likely_runs(block_of(x), NULL, MOST_TRIPS) * tl_type_elems(g->type);
}

/* Of x as a row, beside x itself: computed from rows, where that is less, in place of it. *left:
 * ops that may still be looked at. */
static int64_t cost_of_spread(const Flat *f, const Group *g, const TlValue *x, int *left)
{
    const TlOp *op = x->def;
    if (x->type->rank == 0)
        return 0;
    int64_t each = cost_of_elements(g, x), trips = tl_likely_runs(block_of(x), NULL, MOST_TRIPS);
    if (!op || --*left < 0)
        return each;
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA)
        return 0;
    if (op->opcode == TL_OP_BROADCAST || op->opcode == TL_OP_EXPAND)
        return cost_of_spread(f, g, tl_in(op, 0), left);
    if (!(tl_op_info(op->opcode)->flags & F_ELEM))
        return each;
    int64_t more = vectors_of(f, g, g->type).flat - vectors_of(f, g, x->type).rows,
            cost = more > 0 ? trips * tl_elem_work(op->opcode)->cpu * more : 0;
    for (uint32_t i = 0; i < op->nin; i++)
        cost += cost_of_spread(f, g, tl_in(op, i), left);
    return cost < each ? cost : each;
}

static int64_t cost_of_row(const Flat *f, const Group *g, const TlValue *x)
{
    int left = MOST_OPS;
    return cost_of_spread(f, g, x, &left);
}

/* Is it taken along all axes at once, as by any(v)? */
static bool is_asked_as_row(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next)
        if (u->user->opcode == TL_OP_RESHAPE)
            return true;
    return false;
}

static void price_value(Flat *f, const TlValue *v, const TlBlock *block)
{
    if (!is_tile(v))
        return;
    Group *g = group_of(f, v);
    Vectors n = vectors_of(f, g, g->type);
    const TlOp *op = v->def;
    int64_t trips = tl_likely_runs(block, NULL, MOST_TRIPS), work = 0;
    if (op && is_elementwise(op))
        work = tl_elem_work(op->opcode)->cpu;
    g->gain += trips * (work * (n.rows - n.flat) + (is_asked_as_row(v) ? n.rows : 0));
    if (op && (op->opcode == TL_OP_BROADCAST || op->opcode == TL_OP_EXPAND))
        g->gain -= cost_of_row(f, g, v);
    else if (op && !comes_as_row(op))
        g->gain -= trips * n.rows;
    if (goes_elsewhere(v))
        g->gain -= trips * n.rows;
}

static void price(Flat *f)
{
    for (const TlOp *op = f->of->body->first; op; op = tl_walk_next(op, NULL)) {
        for (uint32_t i = 0; i < op->nout; i++)
            price_value(f, op->out[i], op->block);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                price_value(f, op->regions[r]->args[i], op->regions[r]);
    }
}

/* Sets the rows of the groups that become such; are there any? */
static bool choose(Flat *f)
{
    bool any = false;
    for (uint32_t i = 0; i < f->of->nvalues; i++) {
        Group *g = &f->group[i];
        if (!g->type || !g->carried || g->refused || g->gain <= 0)
            continue;
        int32_t n = (int32_t)tl_type_elems(g->type);
        g->row = tl_type_with_shape(f->of->module->ctx, g->type, 1, &n);
        any = true;
    }
    return any;
}

/* ---- 3. copy ---- */

/* Does the op that makes v work on rows as it is? */
static bool becomes_row(const TlValue *v)
{
    return !v->def || is_elementwise(v->def) || v->def->nregions;
}

static bool is_row(const Flat *f, const TlValue *v)
{
    return tl_map_get(&f->rows, v->id, NULL);
}

TlFn *tl_nest_copy_function(const TlFn *of, TlMap *copy)
{
    TlFn *fn = TL_NEW(&of->module->arena, TlFn);
    *fn = (TlFn){
        .module = of->module, .name = of->name, .loc = of->loc, .info = of->info, .ring = of->ring};
    fn->body = tl_block_new(fn, NULL);
    fn->body->warps = of->body->warps;
    fn->body->stages = of->body->stages;
    for (uint32_t i = 0; i < of->body->nargs; i++) {
        const TlValue *a = of->body->args[i];
        tl_map_put_ptr(copy, a, tl_block_arg(fn->body, a->type, a->name));
    }
    TlBuilder b = tl_builder_end(fn->body);
    for (const TlOp *op = of->body->first; op; op = op->next)
        tl_op_clone(&b, op, copy);
    return fn;
}

static void copy_function(Flat *f)
{
    f->fn = tl_nest_copy_function(f->of, &f->copy);
    for (uint32_t i = 0; i < f->chosen.len; i++) {
        const TlValue *v = tl_map_get_ptr(&f->copy, f->chosen.data[i]);
        if (becomes_row(v))
            tl_map_put(&f->rows, v->id, 1);
    }
}

/* ---- 4. spread ---- */

/* Right behind what makes v. */
static TlBuilder builder_behind(const TlValue *v)
{
    TlBuilder b = tl_builder_before(v->def ? v->def->next : v->block->first);
    b.loc = v->def ? v->def->loc : b.loc;
    return b;
}

static const TlType *row_type(const Flat *f, const Group *g, const TlType *like)
{
    return tl_type_with_shape(f->fn->module->ctx, like, 1, g->row->shape);
}

/* A tile as a row, or back. */
static TlValue *reshaped(Flat *f, TlBuilder *b, TlValue *v, const TlType *to)
{
    TlOp *op = tl_op_new(b, TL_OP_RESHAPE, 1, &v, 1, &to, 0, 0, NULL);
    tl_map_put(f->reshapes, (uint64_t)(uintptr_t)op, 1);
    return op->out[0];
}

/* Numbers of places along axis d of the group's shape, element by element of the row. */
static TlValue *places(TlBuilder *b, const Group *g, int d, const TlType *row)
{
    TlValue *v = tl_op_new(b, TL_OP_IOTA, 0, NULL, 1, &row, 0, 0, NULL)->out[0];
    int64_t behind = 1;
    for (int k = d + 1; k < g->type->rank; k++)
        behind *= g->type->shape[k];
    if (behind > 1)
        v = tl_binary(b, TL_OP_DIV, v, tl_const_int(b, row, behind));
    if (behind * g->type->shape[d] < tl_type_elems(g->type))
        v = tl_binary(b, TL_OP_REM, v, tl_const_int(b, row, g->type->shape[d]));
    return v;
}

/* x repeated along the axes that it lacks, then as a row. */
static TlValue *repeated(Flat *f, const Group *g, TlValue *x, const int *axis)
{
    TlCtx *c = f->fn->module->ctx;
    TlBuilder b = builder_behind(x);
    int32_t shape[TL_MAX_RANK];
    for (int d = 0; d < g->type->rank; d++)
        shape[d] = 1;
    for (int d = 0; d < x->type->rank; d++)
        if (axis[d] >= 0)
            shape[axis[d]] = x->type->shape[d];
    const TlType *apart = tl_type_with_shape(c, x->type, g->type->rank, shape);
    TlValue *v = x;
    if (apart != x->type)
        v = tl_op_new(&b, TL_OP_RESHAPE, 1, &x, 1, &apart, 0, 0, NULL)->out[0];
    v = tl_broadcast(&b, v, g->type->rank, g->type->shape);
    return reshaped(f, &b, v, row_type(f, g, x->type));
}

static TlValue *spread(Flat *f, const Group *g, TlValue *x, const int *axis, int depth);

/* The op once more, for rows. */
static TlValue *spread_op(Flat *f, const Group *g, const TlOp *op, const int *axis, int depth)
{
    TlValue **in = TL_NEW_ARRAY(f->arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] =
            tl_in(op, i)->type->rank ? spread(f, g, tl_in(op, i), axis, depth + 1) : tl_in(op, i);
    const TlType *type = row_type(f, g, op->out[0]->type);
    TlBuilder b = builder_behind(op->out[0]);
    return tl_op_like(&b, op, op->nin, in, 1, &type)->out[0];
}

static TlValue *make_spread(Flat *f, const Group *g, TlValue *x, const int *axis, int depth)
{
    TlBuilder b = builder_behind(x);
    const TlOp *op = x->def;
    const TlType *row = row_type(f, g, x->type);
    int sub[TL_MAX_RANK];
    if (!op || is_row(f, x) || depth > MOST_DEPTH)
        return repeated(f, g, x, axis);
    if (op->opcode == TL_OP_CONST)
        return tl_const_bits(&b, row, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    if (op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0)
        return tl_broadcast(&b, tl_in(op, 0), 1, row->shape);
    if (op->opcode == TL_OP_IOTA)
        return axis[0] < 0 ? tl_const_int(&b, row, 0) : places(&b, g, axis[0], row);
    if (op->opcode == TL_OP_BROADCAST) {
        const TlType *from = tl_in(op, 0)->type;
        for (int d = 0; d < from->rank; d++)
            sub[d] = from->shape[d] == 1 ? -1 : axis[d];
        return spread(f, g, tl_in(op, 0), sub, depth + 1);
    }
    if (op->opcode == TL_OP_EXPAND) {
        int at = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
        for (int d = 0; d < x->type->rank; d++)
            if (d != at)
                sub[d > at ? d - 1 : d] = axis[d];
        return spread(f, g, tl_in(op, 0), sub, depth + 1);
    }
    if (tl_op_info(op->opcode)->flags & F_ELEM && cost_of_row(f, g, x) < cost_of_elements(g, x))
        return spread_op(f, g, op, axis, depth);
    return repeated(f, g, x, axis);
}

static uint64_t key_of(const Flat *f, const Group *g, const TlValue *x, const int *axis)
{
    enum { AXES = TL_MAX_RANK + 1 };
    uint64_t key = x->id;
    for (int d = 0; d < TL_MAX_RANK; d++)
        key = key * AXES + (uint64_t)(d < x->type->rank ? axis[d] + 1 : 0);
    return key * f->of->nvalues + (uint64_t)(g - f->group);
}

/* The row of which element e is that of x at e's place in the group's shape, along `axis` of it;
 * -1: x has one element there. */
static TlValue *spread(Flat *f, const Group *g, TlValue *x, const int *axis, int depth)
{
    if (x->type->rank == 0) {
        TlBuilder b = builder_behind(x);
        return tl_broadcast(&b, x, 1, g->row->shape);
    }
    uint64_t key = key_of(f, g, x, axis);
    uint64_t known;
    if (tl_map_get(&f->spread, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *made = make_spread(f, g, x, axis, depth);
    tl_map_put(&f->spread, key, (uint64_t)(uintptr_t)made);
    return made;
}

typedef TL_VEC(TlUse *) Uses;

static Uses uses_of(Flat *f, TlValue *v, bool inner)
{
    Uses all = {0};
    for (TlUse *u = v->uses; u; u = u->next)
        if (is_inner(u) == inner)
            tl_vec_push(f->arena, &all, u);
    return all;
}

static void set_uses(const Uses *uses, TlValue *by)
{
    for (uint32_t i = 0; i < uses->len; i++) {
        TlOp *user = uses->data[i]->user;
        tl_set_operand(user, (uint32_t)(uses->data[i] - user->in), by);
    }
}

/* What comes from elsewhere. */
static void take_in(Flat *f, const Group *g, TlValue *v)
{
    int axis[TL_MAX_RANK];
    for (int d = 0; d < TL_MAX_RANK; d++)
        axis[d] = d;
    Uses inner = uses_of(f, v, true);
    if (!inner.len)
        return;
    const TlType *row = row_type(f, g, v->type);
    TlBuilder b = builder_behind(v);
    TlValue *from = v->def->opcode == TL_OP_RESHAPE ? tl_in(v->def, 0) : NULL, *by;
    if (from)
        by = from->type == row ? from : reshaped(f, &b, from, row);
    else
        by = spread(f, g, v, axis, 0);
    set_uses(&inner, by);
}

/* ---- 5. gather ---- */

/* v is about to become a row: others take it as it was. */
static void give_out(Flat *f, TlValue *v)
{
    Uses outer = uses_of(f, v, false), others = {0};
    for (uint32_t i = 0; i < outer.len; i++)
        if (outer.data[i]->user->opcode != TL_OP_RESHAPE)
            tl_vec_push(f->arena, &others, outer.data[i]);
    if (!others.len)
        return;
    TlBuilder b = builder_behind(v);
    set_uses(&others, reshaped(f, &b, v, v->type));
}

/* Reshapes to what v is now. */
static void drop_reshapes(Flat *f, TlValue *v)
{
    Uses outer = uses_of(f, v, false);
    for (uint32_t i = 0; i < outer.len; i++) {
        TlOp *op = outer.data[i]->user;
        if (op->opcode != TL_OP_RESHAPE || op->out[0]->type != v->type)
            continue;
        tl_replace_uses(op->out[0], v);
        tl_op_erase(op);
    }
}

/* What nobody uses any more. */
static void drop_unused(TlBlock *block)
{
    for (TlOp *op = block->last, *before; op; op = before) {
        before = op->prev;
        for (uint32_t r = 0; r < op->nregions; r++)
            drop_unused(op->regions[r]);
        if (op->nout == 1 && !op->out[0]->uses && !op->nregions && tl_op_is_pure(op))
            tl_op_erase(op);
    }
}

typedef void Change(Flat *f, const Group *g, TlValue *v);

static void take_in_others(Flat *f, const Group *g, TlValue *v)
{
    if (!is_row(f, v))
        take_in(f, g, v);
}

static void give_out_own(Flat *f, const Group *g, TlValue *v)
{
    (void)g;
    if (is_row(f, v))
        give_out(f, v);
}

static void change_type(Flat *f, const Group *g, TlValue *v)
{
    if (is_row(f, v))
        v->type = row_type(f, g, v->type);
}

static void drop_reshapes_of(Flat *f, const Group *g, TlValue *v)
{
    (void)g;
    if (is_row(f, v))
        drop_reshapes(f, v);
}

static void change_all(Flat *f, Change *change)
{
    for (uint32_t i = 0; i < f->chosen.len; i++) {
        const TlValue *v = f->chosen.data[i];
        change(f, group_of(f, v), tl_map_get_ptr(&f->copy, v));
    }
}

static void list_value(Flat *f, TlValue *v)
{
    if (is_tile(v) && group_of(f, v)->row)
        tl_vec_push(f->arena, &f->chosen, v);
}

static void list_chosen(Flat *f)
{
    for (const TlOp *op = f->of->body->first; op; op = tl_walk_next(op, NULL)) {
        for (uint32_t i = 0; i < op->nout; i++)
            list_value(f, op->out[i]);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                list_value(f, op->regions[r]->args[i]);
    }
}

static bool has_loops(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (tl_is_loop(op))
            return true;
    return false;
}

TlFn *tl_nest_flatten(const TlFn *fn, const TlNestMachine *m, TlArena *arena, TlMap *rows)
{
    if (!has_loops(fn))
        return NULL;
    Flat f = {.of = fn,
              .m = m,
              .arena = arena,
              .copy = {.arena = arena},
              .rows = {.arena = arena},
              .reshapes = rows,
              .spread = {.arena = arena}};
    f.parent = TL_NEW_ARRAY(arena, uint32_t, fn->nvalues + 1);
    f.group = TL_NEW_ARRAY(arena, Group, fn->nvalues + 1);
    for (uint32_t i = 0; i < fn->nvalues; i++)
        f.parent[i] = i;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        join_op(&f, op);
    note_values(&f);
    price(&f);
    if (!choose(&f))
        return NULL;
    list_chosen(&f);
    copy_function(&f);
    change_all(&f, take_in_others);
    change_all(&f, give_out_own);
    change_all(&f, change_type);
    change_all(&f, drop_reshapes_of);
    drop_unused(f.fn->body);
    TlSbuf fault;
    tl_sbuf_init(&fault, arena);
    TL_ASSERT(tl_verify_fn(f.fn, &fault), "'%s': %s", fn->name, fault.text ? fault.text : "");
    return f.fn;
}
