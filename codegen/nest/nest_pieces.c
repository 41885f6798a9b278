/* Programs whose loops carry more than registers hold, piece by piece.
 *
 * A loop that carries tiles of many vectors, beside others that its trips share, moves all of them
 * through memory in each trip. Where elements do not look at each other, the program is as well
 * done for one row's vector after the other: then what a loop carries is a register, and what its
 * trips have in common stays in one.
 *
 *     sum: [4, 64]                            for each of 4 rows, of 4 strips of 16:
 *     for 25 places: sum += f(x[j +: 4, ...    sum: [16]
 *     y[j +: 4, i +: 64] = sum        =>      for 25 places: sum += f(x[j + row, ...
 *                                             y[j + row, i + 16 * strip +: 16] = sum
 *
 *   1. check   ops that work element by element; loads only of what nobody writes; each array is
 *              stored to once, after the loops
 *   2. roles   to which axis of what is stored each axis of each tile belongs
 *   3. price   loops of few trips, so that what they read stays near; more is carried than half of
 *              the registers hold; how many vectors are a piece
 *   4. cut     the function once more, in a loop over pieces; tiles have one axis, or none */
#include <string.h>

#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    MOST_TRIPS = 1024, /* of loops in each other */
    LEAST_WORK = 64,   /* of an element's loops, in sums: a piece has a beginning, too */
    PART = 8,          /* of the work, that is saved at least, that may be done again at most */
    HALF = 2,          /* of the registers: what loops carry is more */
    MOST_VECTORS = 4,  /* of a piece */
    MOST_DEPTH = 400   /* of values that lead to what is stored */
};
enum { NO_ROLE = -1 }; /* of an axis of extent 1 */

typedef struct Pieces {
    const TlNests *plan;
    TlArena *arena;
    int rank, lane;
    int32_t shape[TL_MAX_RANK]; /* of what is stored */
    int32_t strip;              /* elements along `lane` of a piece */
    TlMap roles;                /* value to its Roles */
    int depth;                  /* of the value that is looked at */
    bool failed;
} Pieces;

typedef struct Roles {
    int of[TL_MAX_RANK];
} Roles;

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 0;
}

/* ---- 1. check ---- */

static bool is_one_number(const TlValue *v)
{
    uint64_t bits;
    const TlOp *op = v->def;
    return tl_value_is_const(v, &bits) ||
           (op && op->opcode == TL_OP_BROADCAST && !tl_in(op, 0)->type->rank);
}

/* Does an index tile count up by 1, within bounds or not? Then it is a slice where all is inside,
 * or a scalar, of one row. Others cost more than what they read. */
static bool counts(const TlValue *v, int depth)
{
    enum { MOST_STEPS = 12 };
    const TlOp *op = v->def;
    if (!op || depth > MOST_STEPS)
        return false;
    switch ((int)op->opcode) {
    case TL_OP_IOTA: return true;
    case TL_OP_CAST: return counts(tl_in(op, 0), depth + 1);
    case TL_OP_ADD:
    case TL_OP_MIN:
    case TL_OP_MAX:
        if (is_one_number(tl_in(op, 0)))
            return counts(tl_in(op, 1), depth + 1);
        return is_one_number(tl_in(op, 1)) && counts(tl_in(op, 0), depth + 1);
    case TL_OP_SUB: return is_one_number(tl_in(op, 1)) && counts(tl_in(op, 0), depth + 1);
    }
    return false;
}

static bool may_load(const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    bool may =
        p.axes && !p.pointwise && (op->opcode == TL_OP_INSIDE || tl_is_constant_memory(p.base));
    for (uint32_t i = 0; may && i < p.naxes; i++)
        may = p.axes[i].kind != TL_AXIS_TILE || counts(p.index[i].value, 0);
    return may;
}

static bool may_store(const Pieces *x, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    bool may = p.axes && !p.pointwise && op->block == x->plan->fn->body && is_tile(p.value);
    for (uint32_t i = 0; may && i < p.naxes; i++)
        may = p.axes[i].kind != TL_AXIS_TILE &&
              (p.axes[i].kind == TL_AXIS_SCALAR || p.axes[i].step > 0);
    for (const TlOp *other = op->next; may && other; other = other->next)
        may = other->opcode != TL_OP_STORE ||
              !tl_may_alias(x->plan->fn, p.base, tl_op_place(other).base);
    return may;
}

static const char *why_op_not(const Pieces *x, const TlOp *op)
{
    TlWideInt n;
    bool may = false;
    switch ((int)op->opcode) {
    case TL_OP_LOAD:
    case TL_OP_INSIDE: return may_load(op) ? NULL : "it gathers, or loads what is written";
    case TL_OP_STORE: return may_store(x, op) ? NULL : "it stores in loops, or several times";
    case TL_OP_FOR:
        return tl_const_trips(op, &n) && n <= MOST_TRIPS ? NULL : "its loops may have many trips";
    case TL_OP_RESHAPE: may = tl_nest_is_renaming(op); break;
    case TL_OP_CONST:
    case TL_OP_IOTA:
    case TL_OP_BROADCAST:
    case TL_OP_EXPAND:
    case TL_OP_TRANS:
    case TL_OP_PID:
    case TL_OP_NPID:
    case TL_OP_EXTENT:
    case TL_OP_STRIDE:
    case TL_OP_IF:
    case TL_OP_YIELD:
    case TL_OP_RETURN: return NULL;
    }
    may |= op->nout == 1 && tl_op_info(op->opcode)->flags & F_ELEM && !op->out[0]->type->ptr;
    return may ? NULL : "it does more than to work element by element";
}

/* ---- 2. roles ---- */

/* Numbers, which have whatever roles they are used in. */
static bool is_any_role(const TlValue *v)
{
    return v->def && (v->def->opcode == TL_OP_CONST || v->def->opcode == TL_OP_IOTA);
}

static void set_roles(Pieces *x, TlValue *v, const Roles *r);

static void set_under(Pieces *x, const TlOp *op, const Roles *r)
{
    TlValue *from = tl_in(op, 0);
    const TlAttr *perm = op->opcode == TL_OP_TRANS ? tl_attr(op, TL_ATTR_PERM) : NULL;
    Roles under;
    for (int d = 0; d < from->type->rank; d++)
        under.of[d] = NO_ROLE;
    for (int d = 0; d < op->out[0]->type->rank; d++) {
        int axis = perm ? (int)perm->u.ints[d] : tl_nest_axis_under(op, d);
        if (axis >= 0)
            under.of[axis] = r->of[d];
    }
    set_roles(x, from, &under);
}

/* What the tile's axes give those of the index tiles. */
static void set_place(Pieces *x, const TlOp *op, const Roles *r)
{
    TlPlace p = tl_op_place(op);
    for (uint32_t i = 0; i < p.naxes; i++) {
        int dim = tl_place_dim(&p, i);
        if (p.axes[i].kind == TL_AXIS_TILE)
            set_roles(x, p.index[i].value, &(Roles){{r->of[dim]}});
        /* vectors of columns would be gathers, where blocks of rows are transposed */
        x->failed |= dim >= 0 && r->of[dim] == x->rank - 1 && i + 1 != p.naxes;
    }
    TlValue *same[] = {p.value, p.mask, p.other};
    for (int i = 0; i < 3; i++)
        if (same[i])
            set_roles(x, same[i], r);
}

/* Result number i of a loop or a branch, and what becomes it. */
static void set_carried(Pieces *x, const TlOp *op, uint32_t i, const Roles *r)
{
    bool loops = op->opcode == TL_OP_FOR;
    set_roles(x, op->out[i], r);
    if (loops) {
        set_roles(x, tl_in(op, i + 3), r);
        set_roles(x, op->regions[0]->args[i + 1], r);
    }
    for (uint32_t k = 0; k < op->nregions; k++)
        set_roles(x, tl_in(op->regions[k]->last, i), r);
}

static void set_operands(Pieces *x, TlValue *v, const Roles *r)
{
    const TlOp *op = v->def;
    if (!op) {
        set_carried(x, v->block->parent, v->index - 1, r);
        return;
    }
    switch ((int)op->opcode) {
    case TL_OP_LOAD:
    case TL_OP_INSIDE: set_place(x, op, r); return;
    case TL_OP_FOR:
    case TL_OP_IF: set_carried(x, op, v->index, r); return;
    case TL_OP_BROADCAST:
    case TL_OP_EXPAND:
    case TL_OP_TRANS:
    case TL_OP_RESHAPE: set_under(x, op, r); return;
    }
    for (uint32_t i = 0; i < op->nin; i++)
        set_roles(x, tl_in(op, i), r);
}

static void set_roles(Pieces *x, TlValue *v, const Roles *r)
{
    if (!is_tile(v) || is_any_role(v) || x->failed)
        return;
    Roles *known = tl_map_get_ptr(&x->roles, v);
    for (int d = 0; d < v->type->rank; d++) {
        int role = v->type->shape[d] == 1 ? NO_ROLE : r->of[d];
        x->failed |= known && known->of[d] != role;
        x->failed |= role == NO_ROLE ? v->type->shape[d] != 1 : v->type->shape[d] != x->shape[role];
    }
    if (known || x->failed)
        return;
    known = TL_NEW(x->arena, Roles);
    for (int d = 0; d < v->type->rank; d++)
        known->of[d] = v->type->shape[d] == 1 ? NO_ROLE : r->of[d];
    tl_map_put_ptr(&x->roles, v, known);
    x->failed |= ++x->depth > MOST_DEPTH;
    set_operands(x, v, known);
    x->depth--;
}

static void find_roles(Pieces *x)
{
    for (const TlOp *op = x->plan->fn->body->first; op && !x->failed; op = op->next) {
        if (op->opcode != TL_OP_STORE)
            continue;
        const TlType *t = tl_op_place(op).value->type;
        Roles own;
        for (int d = 0; d < t->rank; d++)
            own.of[d] = d;
        x->failed |= x->rank && (x->rank != t->rank ||
                                 memcmp(x->shape, t->shape, (size_t)t->rank * sizeof *t->shape));
        x->rank = t->rank;
        memcpy(x->shape, t->shape, sizeof x->shape);
        if (!x->failed)
            set_place(x, op, &own);
    }
    x->lane = x->rank - 1;
}

/* ---- 3. price ---- */

typedef struct Price {
    int64_t carried; /* bytes, of the loop that carries most */
    int64_t work;    /* of an element in loops, where a sum is 1 */
    int64_t again;   /* the same of rows and columns, which all pieces would compute again */
    int64_t saved;   /* loads and stores of what loops carry, loads that all trips share */
    int64_t trips;   /* of the innermost of them */
    int held;        /* registers of a piece of one vector: what loops carry, what trips share, */
    int numbers;     /* and numbers, which all pieces have */
    int64_t bytes;   /* of the largest element */
} Price;

static int64_t trips_around(const TlOp *op)
{
    int64_t times = 1;
    TlWideInt n;
    for (op = tl_enclosing_loop(op); op && times <= MOST_TRIPS; op = tl_enclosing_loop(op))
        times *= tl_const_trips(op, &n) ? (int64_t)n : MOST_TRIPS;
    return times;
}

/* Is a value the same in all trips of a loop, or computed from what is? *asked: values so far. */
static bool is_same_in_trips(const TlValue *v, const TlOp *loop, int *asked)
{
    enum { MOST_ASKED = 256 };
    if (tl_is_invariant(v, loop))
        return true;
    if (!v->def || v->def->nregions || ++*asked > MOST_ASKED)
        return false;
    for (uint32_t i = 0; i < v->def->nin; i++)
        if (!is_same_in_trips(tl_in(v->def, i), loop, asked))
            return false;
    return true;
}

static void add_loop(Price *p, const TlOp *loop)
{
    int64_t bytes = 0;
    int tiles = 0;
    for (uint32_t i = 0; i < loop->nout; i++)
        if (is_tile(loop->out[i])) {
            bytes +=
                tl_type_elems(loop->out[i]->type) * (int64_t)tl_gen_elem_bytes(loop->out[i]->type);
            tiles++;
        }
    p->carried = bytes > p->carried ? bytes : p->carried;
    p->held = tiles > p->held ? tiles : p->held;
    if (tl_is_innermost(loop))
        p->saved += 2 * tiles * trips_around(loop->regions[0]->last);
}

static bool is_full(const Pieces *x, const TlValue *v)
{
    return v->type->rank == x->rank &&
           !memcmp(v->type->shape, x->shape, (size_t)x->rank * sizeof *x->shape);
}

static Price price_of(const Pieces *x)
{
    Price p = {.bytes = 1};
    int shared = 0;
    for (const TlOp *op = x->plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        const TlOp *loop = tl_enclosing_loop(op);
        const TlValue *v = op->nout == 1 && is_tile(op->out[0]) ? op->out[0] : NULL;
        if (op->opcode == TL_OP_FOR)
            add_loop(&p, op);
        p.numbers += v && op->opcode == TL_OP_CONST && tl_type_elems(v->type) > 1 &&
                     v->type->rank == x->rank;
        if (!loop || !v)
            continue;
        int64_t bytes = (int64_t)tl_gen_elem_bytes(v->type), trips = trips_around(op);
        bool element = tl_op_info(op->opcode)->flags & F_ELEM;
        int64_t work = element ? tl_elem_work(op->opcode)->cpu * trips : trips;
        int asked = 0;
        if (!is_full(x, v)) {
            p.again += element && !counts(v, 0) ? work : 0;
            continue;
        }
        p.bytes = bytes > p.bytes ? bytes : p.bytes;
        p.trips = trips > p.trips ? trips : p.trips;
        p.work += work;
        bool same = op->opcode == TL_OP_LOAD && is_same_in_trips(v, loop, &asked);
        p.saved += same ? trips : 0;
        shared += same;
    }
    p.held += shared;
    return p;
}

/* Sets the strip; NULL, or why it does not pay. */
static const char *why_not(Pieces *x)
{
    const TlNestMachine *m = &x->plan->m;
    Price p = price_of(x);
    int64_t held = p.carried / m->vector_bytes, lanes = m->vector_bytes / p.bytes, vectors = 1;
    if (held * HALF <= m->nregs)
        return "registers hold what loops carry";
    if (p.work < LEAST_WORK || p.trips > MOST_TRIPS)
        return p.trips > MOST_TRIPS ? "loops have many trips" : "loops do little";
    if (p.saved * PART < p.work)
        return "it computes more than it carries";
    if (p.again * PART > p.work)
        return "rows or columns would be computed again";
    if (x->shape[x->lane] % lanes)
        return "rows are no whole vectors";
    int64_t room = m->nregs - p.numbers, most = x->shape[x->lane] / lanes;
    while (vectors < MOST_VECTORS && vectors * 2 * p.held <= room && most % (vectors * 2) == 0)
        vectors *= 2;
    x->strip = (int32_t)(vectors * lanes);
    return NULL;
}

/* ---- 4. cut ---- */

typedef struct Cut {
    Pieces *x;
    TlBuilder b;
    TlMap map;                   /* value to the new function's */
    TlValue *start[TL_MAX_RANK]; /* i64: the piece's first place along each axis */
} Cut;

static TlValue *number(Cut *c, int64_t n)
{
    return tl_const_int(&c->b, tl_type_scalar(c->b.fn->module->ctx, TL_I64), n);
}

/* The axis of a tile that stays one, -1: none. */
static int kept_axis(const Pieces *x, const TlValue *v, const Roles *r)
{
    for (int d = 0; d < v->type->rank; d++)
        if (r->of[d] == x->lane)
            return d;
    return -1;
}

static const TlType *cut_type(const Cut *c, const TlValue *v, const Roles *r)
{
    if (!is_tile(v) || !r)
        return v->type;
    int rank = kept_axis(c->x, v, r) >= 0;
    return tl_type_with_shape(c->b.fn->module->ctx, v->type, rank, &c->x->strip);
}

/* 0, 1, ... from the piece's first place on. */
static TlValue *cut_iota(Cut *c, const TlValue *v, const Roles *r)
{
    TlDtype dtype = v->type->dtype;
    const TlType *type = cut_type(c, v, r);
    int role = v->type->shape[0] == 1 ? NO_ROLE : r->of[0];
    TlValue *first = tl_cast(&c->b, role == NO_ROLE ? number(c, 0) : c->start[role], dtype);
    if (!type->rank)
        return first;
    TlValue *count = tl_op_new(&c->b, TL_OP_IOTA, 0, NULL, 1, &type, 0, 0, NULL)->out[0];
    return tl_binary(&c->b, TL_OP_ADD, tl_broadcast(&c->b, first, 1, type->shape), count);
}

/* Of a tile that leads to nothing there are none. */
static const Roles *roles_of(Cut *c, const TlValue *v)
{
    const Roles *r = tl_map_get_ptr(&c->x->roles, v);
    c->x->failed |= is_tile(v) && !r;
    return r;
}

/* The value that an operand of these roles is in the new function. */
static TlValue *use(Cut *c, TlValue *v, const Roles *r)
{
    uint64_t bits;
    if (is_tile(v) && v->def && v->def->opcode == TL_OP_IOTA)
        return cut_iota(c, v, r);
    if (is_tile(v) && v->def && v->def->opcode == TL_OP_CONST && tl_value_is_const(v, &bits))
        return tl_const_bits(&c->b, cut_type(c, v, r), bits);
    TlValue *to = tl_map_get_ptr(&c->map, v);
    c->x->failed |= !to;
    return to;
}

static void define(Cut *c, const TlValue *v, TlValue *to)
{
    if (!to)
        return;
    to->name = v->name;
    tl_map_put_ptr(&c->map, v, to);
}

/* Loads and stores: axes of rows are scalar, the others end with the strip. */
static void cut_access(Cut *c, const TlOp *op, const Roles *r)
{
    TlPlace p = tl_op_place(op);
    TlValue **in = TL_NEW_ARRAY(c->x->arena, TlValue *, op->nin);
    TlAxis *axes = TL_NEW_ARRAY(&c->b.fn->module->arena, TlAxis, p.naxes + 1);
    const TlType *type = op->nout ? cut_type(c, op->out[0], r) : NULL;
    for (uint32_t i = 0; i < op->nin; i++) {
        uint32_t axis = i - 1;
        int dim = i > 0 && axis < p.naxes ? tl_place_dim(&p, axis) : -1;
        int role = dim >= 0 ? r->of[dim] : NO_ROLE;
        bool places = i > 0 && axis < p.naxes, tile = places && p.axes[axis].kind == TL_AXIS_TILE;
        in[i] = use(c, tl_in(op, i), tile ? &(Roles){{role}} : r);
        if (!in[i])
            return;
        if (!places)
            continue;
        axes[axis] = p.axes[axis];
        if (role != c->x->lane)
            axes[axis] = (TlAxis){.kind = TL_AXIS_SCALAR, .width = 1, .step = 1};
        if (p.axes[axis].kind != TL_AXIS_SLICE || role == NO_ROLE)
            continue;
        TlValue *by = number(c, p.axes[axis].step);
        by = tl_binary(&c->b, TL_OP_MUL, c->start[role], by);
        in[i] = tl_binary(&c->b, TL_OP_ADD, tl_cast(&c->b, in[i], TL_I64), by);
        axes[axis].width = role == c->x->lane ? c->x->strip : 1;
    }
    TlOp *made = tl_op_like(&c->b, op, op->nin, in, op->nout, &type);
    tl_attr_set(c->b.fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
    if (op->nout)
        define(c, op->out[0], made->out[0]);
}

/* Ops that put a tile's axes elsewhere: one axis is left, so only repeating elements is left. */
static void cut_under(Cut *c, const TlOp *op, const Roles *r)
{
    TlValue *from = tl_in(op, 0);
    const Roles *under = tl_map_get_ptr(&c->x->roles, from);
    Roles any;
    if (!under) { /* a number, or a scalar */
        for (int d = 0; d < TL_MAX_RANK; d++)
            any.of[d] = NO_ROLE;
        for (int d = 0; d < op->out[0]->type->rank && op->opcode != TL_OP_TRANS; d++)
            if (tl_nest_axis_under(op, d) >= 0)
                any.of[tl_nest_axis_under(op, d)] = r->of[d];
        under = &any;
        c->x->failed |= op->opcode == TL_OP_TRANS;
    }
    TlValue *x = use(c, from, under);
    const TlType *type = cut_type(c, op->out[0], r);
    if (x && x->type->rank < type->rank)
        x = tl_broadcast(&c->b, x, 1, type->shape);
    if (x)
        tl_map_put_ptr(&c->map, op->out[0], x);
}

static void cut_block(Cut *c, TlBlock *to, const TlBlock *from);

static void cut_regions(Cut *c, const TlOp *op)
{
    TlValue **in = TL_NEW_ARRAY(c->x->arena, TlValue *, op->nin + 1);
    const TlType **types = TL_NEW_ARRAY(c->x->arena, const TlType *, op->nout + 1);
    uint32_t bounds = op->opcode == TL_OP_FOR ? 3 : 1;
    for (uint32_t i = 0; i < op->nin; i++) {
        in[i] = use(c, tl_in(op, i), i < bounds ? NULL : roles_of(c, op->out[i - bounds]));
        if (!in[i])
            return;
    }
    for (uint32_t i = 0; i < op->nout; i++)
        types[i] = cut_type(c, op->out[i], roles_of(c, op->out[i]));
    TlOp *made = tl_op_like(&c->b, op, op->nin, in, op->nout, types);
    for (uint32_t i = 0; i < op->nout; i++)
        define(c, op->out[i], made->out[i]);
    for (uint32_t k = 0; k < op->nregions; k++)
        cut_block(c, made->regions[k], op->regions[k]);
}

/* Element by element; the end of a region; scalars. */
static void cut_same(Cut *c, const TlOp *op, const Roles *r)
{
    TlValue **in = TL_NEW_ARRAY(c->x->arena, TlValue *, op->nin + 1);
    const TlOp *around = op->opcode == TL_OP_YIELD ? op->block->parent : NULL;
    for (uint32_t i = 0; i < op->nin; i++) {
        in[i] = use(c, tl_in(op, i), around ? roles_of(c, around->out[i]) : r);
        if (!in[i])
            return;
    }
    const TlType *type = op->nout ? cut_type(c, op->out[0], r) : NULL;
    TlOp *made = tl_op_like(&c->b, op, op->nin, in, op->nout, &type);
    if (op->nout)
        define(c, op->out[0], made->out[0]);
}

static void cut_op(Cut *c, const TlOp *op)
{
    const TlValue *v = op->nout == 1 ? op->out[0] : NULL;
    const Roles *r = v ? tl_map_get_ptr(&c->x->roles, v) : NULL;
    bool tile = v && is_tile(v);
    c->b.loc = op->loc;
    if (op->opcode == TL_OP_FOR || op->opcode == TL_OP_IF) {
        cut_regions(c, op);
        return;
    }
    if (tile && !r) /* a number, made where it is used; or it leads to nothing */
        return;
    switch ((int)op->opcode) {
    case TL_OP_STORE: {
        Roles own;
        for (int d = 0; d < TL_MAX_RANK; d++)
            own.of[d] = d < c->x->rank && c->x->shape[d] > 1 ? d : NO_ROLE;
        cut_access(c, op, &own);
        return;
    }
    case TL_OP_LOAD:
    case TL_OP_INSIDE:
        if (tile)
            cut_access(c, op, r);
        else
            cut_same(c, op, NULL);
        return;
    case TL_OP_BROADCAST:
    case TL_OP_EXPAND:
    case TL_OP_TRANS:
    case TL_OP_RESHAPE:
        if (tile)
            cut_under(c, op, r);
        else
            cut_same(c, op, NULL);
        return;
    case TL_OP_RETURN: return;
    }
    cut_same(c, op, r);
}

static void cut_block(Cut *c, TlBlock *to, const TlBlock *from)
{
    TlBuilder outer = c->b;
    c->b.block = to;
    for (uint32_t i = 0; i < from->nargs; i++) {
        const TlValue *v = from->args[i];
        define(c, v, tl_block_arg(to, cut_type(c, v, roles_of(c, v)), v->name));
    }
    for (const TlOp *op = from->first; op && !c->x->failed; op = op->next)
        cut_op(c, op);
    c->b = outer;
}

/* Where a piece begins along each axis, of the pieces in row-major order. */
static void find_starts(Cut *c, TlValue *piece)
{
    const Pieces *x = c->x;
    TlValue *left = tl_cast(&c->b, piece, TL_I64);
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t each = d == x->lane ? x->strip : 1, n = x->shape[d] / each;
        c->start[d] = number(c, 0);
        if (n == 1)
            continue;
        TlValue *of = tl_binary(&c->b, TL_OP_REM, left, number(c, n));
        c->start[d] = tl_binary(&c->b, TL_OP_MUL, of, number(c, each));
        left = tl_binary(&c->b, TL_OP_DIV, left, number(c, n));
    }
}

static TlFn *cut(Pieces *x, int64_t pieces)
{
    const TlFn *of = x->plan->fn;
    TlCtx *ctx = of->module->ctx;
    TlFn *fn = TL_NEW(&of->module->arena, TlFn);
    *fn = (TlFn){
        .module = of->module, .name = of->name, .loc = of->loc, .info = of->info, .ring = of->ring};
    fn->body = tl_block_new(fn, NULL);
    Cut c = {
        .x = x, .b = {.fn = fn, .block = fn->body, .loc = of->loc}, .map = {.arena = x->arena}};
    for (uint32_t i = 0; i < of->body->nargs; i++) {
        const TlValue *v = of->body->args[i];
        define(&c, v, tl_block_arg(fn->body, v->type, v->name));
    }
    const TlType *i32 = tl_type_scalar(ctx, TL_I32);
    TlValue *bounds[] = {tl_const_int(&c.b, i32, 0), tl_const_int(&c.b, i32, pieces),
                         tl_const_int(&c.b, i32, 1)};
    TlOp *loop = tl_op_new(&c.b, TL_OP_FOR, 3, bounds, 0, NULL, 1, 0, NULL);
    tl_op_new(&c.b, TL_OP_RETURN, 0, NULL, 0, NULL, 0, 0, NULL);
    TlBlock *body = loop->regions[0];
    c.b.block = body;
    find_starts(&c, tl_block_arg(body, i32, "piece"));
    for (const TlOp *op = of->body->first; op && !x->failed; op = op->next)
        cut_op(&c, op);
    c.b.block = body;
    tl_yield(&c.b, TL_OP_YIELD, 0, NULL);
    return x->failed ? NULL : fn;
}

static bool carries_tiles(const TlFn *fn)
{
    bool carries = false;
    for (const TlOp *op = fn->body->first; op && !carries; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; tl_is_loop(op) && i < op->nout; i++)
            carries |= is_tile(op->out[i]);
    return carries;
}

TlFn *tl_nest_cut(TlNests *plan)
{
    const TlFn *fn = plan->fn;
    Pieces x = {.plan = plan, .arena = plan->arena, .roles = {.arena = plan->arena}};
    if (plan->check || !fn->info || !carries_tiles(fn))
        return NULL;
    for (const TlOp *op = fn->body->first; op && !plan->uncut; op = tl_walk_next(op, NULL))
        plan->uncut = why_op_not(&x, op);
    if (!plan->uncut)
        find_roles(&x);
    if (!plan->uncut)
        plan->uncut =
            x.failed || !x.rank ? "tiles have several shapes, or are transposed" : why_not(&x);
    if (plan->uncut)
        return NULL;
    int64_t pieces = 1;
    for (int d = 0; d < x.rank; d++)
        pieces *= x.shape[d] / (d == x.lane ? x.strip : 1);
    plan->strip = x.strip;
    return cut(&x, pieces);
}
