/* How many lanes a nest takes at a time: two registers of the largest element that it computes
 * with, fewer if an op or an access requires it. */
#include "codegen/nest/nest.h"
#include "passes/analysis/picked.h"

enum { GATHERED = 16 };   /* most lanes of a gather: each is a load of its own */
enum { JOINED = 4 };      /* and of one whose elements are several lanes of a vector each */
enum { MOST_DEPTH = 24 }; /* of ops that an index is computed by: recursion */

/* ---- accesses ---- */

static bool is_one_number(const TlValue *v)
{
    uint64_t bits;
    return tl_value_is_const(v, &bits) ||
           (v->def && v->def->opcode == TL_OP_BROADCAST && tl_in(v->def, 0)->type->rank == 0);
}

/* Are the lanes of an integer or pointer tile an arithmetic progression, up to wrapping? Then the
 * elements may be adjacent, and a test at run time is worthwhile. */
static bool is_affine(const TlNests *plan, const TlValue *v, int depth)
{
    if (v->type->rank == 0)
        return true;
    if (!v->def || depth > MOST_DEPTH || plan->place[v->id].kind == TL_NEST_HOME)
        return false;
    const TlOp *op = v->def;
    const TlValue *x = op->nin ? tl_in(op, 0) : NULL, *y = op->nin > 1 ? tl_in(op, 1) : NULL;
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA)
        return true;
    if (op->opcode == TL_OP_CAST)
        return tl_is_int(v->type->dtype) && tl_is_int(x->type->dtype) &&
               is_affine(plan, x, depth + 1);
    if (op->opcode == TL_OP_BROADCAST || op->opcode == TL_OP_EXPAND)
        return is_affine(plan, x, depth + 1);
    if (op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB || op->opcode == TL_OP_PTR_ADD)
        return is_affine(plan, x, depth + 1) && is_affine(plan, y, depth + 1);
    return op->opcode == TL_OP_MUL && ((is_one_number(x) && is_affine(plan, y, depth + 1)) ||
                                       (is_one_number(y) && is_affine(plan, x, depth + 1)));
}

/* At most n, for this reason. */
static int at_most(int limit, int n, const char *reason, const char **why)
{
    if (n >= limit)
        return limit;
    *why = reason;
    return n;
}

/* Loads beside this one in memory, itself included: of other elements of the same rows, known by
 * their scalar indices. */
static int beside(const TlNests *plan, const TlNestAccess *a, int lane)
{
    const TlPlace *p = &a->place;
    int n = 0;
    for (const TlUse *u = p->base->uses; u && n < TL_NEST_STRIDE; u = u->next) {
        const TlNestAccess *b = tl_map_get_ptr(&plan->access, u->user);
        const TlPlace *q = b ? &b->place : NULL;
        bool same = b && b->op->block == a->op->block && b->loads && u == &u->user->in[0] &&
                    q->naxes == p->naxes && q->axes && !q->mask;
        for (uint32_t i = 0; same && i < p->naxes; i++)
            same = a->axis[i].dim == b->axis[i].dim &&
                   (a->axis[i].dim != lane || p->index[i].value == q->index[i].value);
        n += same;
    }
    return n > 0 ? n : 1;
}

/* apart: lanes for which there is no load of elements apart. */
static int access_width(const TlNests *plan, const TlNestAccess *a, int limit, int apart,
                        const char **why)
{
    TL_ASSERT(limit > 0, "%d lanes at most", limit);
    if (a->op->opcode == TL_OP_INSIDE)
        return limit;
    enum { NARROW_APART = 8 };
    int bytes = tl_dtype_bytes(a->place.base->type->dtype);
    if (a->asks || (plan->check && tl_attr_flag(a->op, TL_ATTR_UNCHECKED)))
        return at_most(limit, 1, "each element is checked", why);
    TlType shape = tl_nest_accessed(a);
    bool is_view = a->place.axes != NULL;
    int lane = shape.rank ? tl_nest_form(&shape).lane : 0;
    if (is_view && tl_nest_is_contiguous_inside(a, lane))
        return limit;
    int lanes = plan->m.vector_bytes / bytes, stride = tl_nest_stride(a, lane);
    TlNestLookup lookup = tl_nest_lookup(plan, a);
    if (lookup.permute)
        return at_most(limit, lookup.permute->lanes, "a look-up", why);
    int64_t first;
    const TlNestAffine *pattern = is_view ? tl_nest_pattern_along(a, lane) : NULL;
    if (pattern && tl_nest_pattern_span(pattern, lanes, &first))
        return at_most(limit, lanes, "elements in a pattern", why);
    bool zips = stride > 1 && tl_nest_zips(&plan->m, bytes, stride, beside(plan, a, lane));
    if (stride > 1 && (stride <= 4 || stride <= lanes / 2 || zips))
        return at_most(limit, lanes, stride == 2 ? "every second element" : "elements a few apart",
                       why);
    if (!is_view && is_affine(plan, a->place.base, 0))
        return limit;
    if (bytes < 4 && is_view && apart < NARROW_APART) /* what is computed of them is much more */
        apart = NARROW_APART;
    if (bytes < 4 || !plan->m.gathers || (!is_view && !a->place.base->type->ptr))
        return at_most(limit, apart, "elements apart, without an instruction", why);
    return at_most(limit, lanes, "elements apart", why); /* short ones by two instructions */
}

int tl_nest_access_width(const TlNests *plan, const TlNestAccess *a, int limit, const char **why)
{
    return access_width(plan, a, limit, 1, why);
}

int tl_nest_tested_width(const TlNests *plan, int width)
{
    int most = plan->m.vector_bytes / (int)sizeof(int32_t);
    TL_ASSERT(most > 0 && width > 0, "%d lanes of at most %d", width, most);
    return width < most ? width : most;
}

/* Where masks are bits and all that is asked lies side by side along the lanes, tests are as wide
 * as a register of what is loaded and stored: what of a vector is inside is a shift. */
int tl_nest_wide_tests(const TlNests *plan, const TlNest *n)
{
    int bytes = 1;
    bool is = n->kind == TL_NEST_FILL || n->kind == TL_NEST_STORE;
    if (!plan->m.mask_bits || !is || n->unasked)
        return n->tested;
    for (uint32_t i = 0; i < n->asks.len; i++) {
        const TlNestAccess *a = n->asks.data[i].access;
        int lane = n->asks.data[i].lane, own = tl_dtype_bytes(a->place.base->type->dtype);
        if (lane == TL_NEST_NO_LANES)
            continue;
        if (lane < 0 || n->asks.data[i].times != 1 || a->row ||
            tl_dtype_bits(a->place.base->type->dtype) < 8 || !tl_nest_is_contiguous_inside(a, lane))
            return n->tested;
        bytes = own > bytes ? own : bytes;
    }
    int lanes = plan->m.vector_bytes / bytes;
    lanes = lanes < n->width ? lanes : n->width;
    return lanes > n->tested ? lanes : n->tested;
}

int tl_nest_transpose_width(const TlNests *plan, TlDtype dtype)
{
    int w = plan->m.vector_bytes / tl_dtype_bytes(dtype);
    return w < 4 ? 4 : w < TL_NEST_TRANSPOSED ? w : TL_NEST_TRANSPOSED;
}

/* ---- values ---- */

static int width_of_gather(const TlNests *plan, const TlOp *op, int limit, const char **why)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    int lane = tl_nest_form(to).lane;
    const TlNestMove *m = tl_nest_move_of(plan, op, lane);
    if (!m || plan->check)
        return at_most(limit, GATHERED, "a gather", why);
    if (m->rows)
        return limit;
    if (m->period)
        return m->period <= limit ? limit : at_most(limit, GATHERED, "a gather", why);
    int lanes = plan->m.vector_bytes / (int)tl_gen_elem_bytes(to);
    int64_t room = m->window.wraps ? from->shape[lane] : tl_nest_readable(from, lane);
    return at_most(limit, tl_nest_fit_width(room, lanes < limit ? lanes : limit), "a shuffle", why);
}

static int width_of_op(const TlNests *plan, const TlOp *op, int limit, int apart, const char **why)
{
    TL_ASSERT(limit > 0, "%d lanes at most", limit);
    if (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_INSIDE)
        return access_width(plan, tl_map_get_ptr(&plan->access, op), limit, apart, why);
    if (tl_gen_op_is_scalar_only(plan->fn, op))
        return at_most(limit, 1, "an op on scalars", why);
    if (op->opcode == TL_OP_GATHER)
        return width_of_gather(plan, op, limit, why);
    bool regroups = op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_REGROUP;
    if (plan->place[op->out[0]->id].way == TL_NEST_READS_HOME)
        return limit;
    if (plan->place[op->out[0]->id].way == TL_NEST_TURNS_WORDS)
        limit = at_most(limit, plan->m.vector_bytes, "a register", why);
    if (regroups && !plan->check && tl_nest_joins(op) && !tl_nest_is_for_row(plan, op))
        return at_most(limit, tl_nest_join_width(op, limit), "a reshape", why);
    if (regroups && plan->place[op->out[0]->id].way == TL_NEST_PARTS) {
        int lanes = plan->m.vector_bytes / (int)tl_gen_elem_bytes(op->out[0]->type);
        return at_most(limit, tl_nest_part_width(op, lanes < limit ? lanes : limit), "a split",
                       why);
    }
    if (regroups && !tl_nest_is_renaming(op)) {
        const TlType *a = tl_in(op, 0)->type, *b = op->out[0]->type;
        int w = tl_nest_fit_width(a->shape[tl_nest_form(a).lane], limit);
        return at_most(limit, tl_nest_fit_width(b->shape[tl_nest_form(b).lane], w), "a reshape",
                       why);
    }
    return limit;
}

/* The values visited; lanes of loads of elements apart; is it the bytes of sums of four products?
 */
typedef struct Walk {
    TlMap seen;
    int apart;
    bool quads;
} Walk;

static int chain_width(const TlNests *plan, TlValue *v, int limit, bool own, Walk *walk,
                       const char **why);

/* Of sums of four products of bytes: vectors of bytes have four times as many lanes. */
static int width_of_quads(const TlNests *plan, const TlNestQuads *quads, int limit, Walk *walk,
                          const char **why)
{
    int bytes = at_most(4 * limit, TL_NEST_LANES, "four bytes a lane", why);
    walk->quads = true;
    for (uint32_t i = 0; i < 2 && bytes > 1; i++)
        bytes = chain_width(plan, quads->byte[i], bytes, false, walk, why);
    walk->quads = false;
    return bytes < 8 ? 1 : bytes / 4;
}

/* Of rows one after the other: one, or several if one is taken as a whole. */
static int width_of_rows(const TlNests *plan, const TlOp *op, int limit, Walk *walk,
                         const char **why)
{
    TlValue *x = tl_in(op, 0);
    const TlType *to = op->out[0]->type;
    int row = x->type->shape[x->type->rank - 1], most = limit < row ? limit : row;
    int w = chain_width(plan, x, most, false, walk, why);
    limit = at_most(limit, plan->m.vector_bytes, "a register", why);
    return w < row ? w : tl_nest_fit_width(to->shape[to->rank - 1], limit);
}

/* Of a value at lanes along axis d, which need not be its own; -1: of one element. */
static int width_along(const TlNests *plan, TlValue *v, int d, int limit, Walk *walk,
                       const char **why)
{
    const TlOp *op = v->def;
    if (d < 0 || v->type->kind != TL_TILE || v->type->rank == 0)
        return limit;
    if (d == tl_nest_form(v->type).lane)
        return chain_width(plan, v, limit, false, walk, why);
    TlNestPlace place = plan->place[v->id];
    uint64_t key = (uint64_t)(d + 1) << 32 | v->id;
    if (!op || place.kind == TL_NEST_HOME || tl_map_get(&walk->seen, key, NULL))
        return limit;
    tl_map_put(&walk->seen, key, 1);
    bool each = tl_op_info(op->opcode)->flags & F_ELEM;
    bool maps = each || op->opcode == TL_OP_EXPAND || op->opcode == TL_OP_BROADCAST ||
                place.way == TL_NEST_RENAMES;
    for (uint32_t i = 0; maps && i < op->nin; i++)
        limit = width_along(plan, tl_in(op, i), each ? d : tl_nest_axis_under(op, d), limit, walk,
                            why);
    return limit; /* others: one element at a time */
}

/* Of n vectors that are interleaved: their lanes are along the axis before the last one. */
static int width_of_join(const TlNests *plan, const TlOp *op, int limit, const char **why)
{
    TlValue *x = tl_in(op, 0);
    /* at other lanes; each of a few elements loaded one by one is several lanes of the result */
    Walk walk = {.seen = {.arena = plan->arena}, .apart = JOINED};
    int last = tl_nest_last_axis(x->type), n = x->type->shape[last];
    if (limit <= n)
        return limit;
    int w = width_along(plan, x, last - 1, limit / n, &walk, why);
    return at_most(limit, n * w, "a reshape", why);
}

/* Is it an index tile of a load that is computed at bounds only, and there by few lanes? */
static bool is_seldom_computed(const TlNests *plan, const TlOp *op, const TlValue *index)
{
    const TlNestAccess *a = op->opcode == TL_OP_LOAD ? tl_map_get_ptr(&plan->access, op) : NULL;
    bool is = false;
    for (uint32_t i = 0; a && a->place.axes && i < a->place.naxes; i++) {
        if (a->place.axes[i].kind != TL_AXIS_TILE || a->place.index[i].value != index)
            continue;
        if (!a->axis[i].affine.is || a->axis[i].affine.period)
            return false;
        is = true;
    }
    return is;
}

static int chain_width(const TlNests *plan, TlValue *v, int limit, bool own, Walk *walk,
                       const char **why)
{
    TL_ASSERT(limit > 0 && v->id < plan->fn->nvalues, "value %u, %d lanes", v->id, limit);
    if (v->type->kind != TL_TILE || v->type->rank == 0)
        return limit;
    int bytes = (int)tl_gen_elem_bytes(v->type);
    limit = at_most(limit, 2 * plan->m.vector_bytes / bytes, "two registers", why);
    if (!own && plan->place[v->id].kind == TL_NEST_HOME)
        return limit;
    if (!v->def || tl_map_get(&walk->seen, v->id, NULL))
        return limit;
    tl_map_put(&walk->seen, v->id, 1);
    TlNestQuads quads;
    if (tl_nest_quads(plan, v->def, &quads))
        return width_of_quads(plan, &quads, limit, walk, why);
    if (plan->place[v->id].way == TL_NEST_PUTS_ROWS)
        return width_of_rows(plan, v->def, limit, walk, why);
    limit = width_of_op(plan, v->def, limit, walk->apart, why);
    if (plan->place[v->id].way == TL_NEST_INTERLEAVES) {
        const TlType *from = tl_in(v->def, 0)->type;
        limit = width_of_join(plan, v->def, limit, why);
        if (limit > from->shape[tl_nest_last_axis(from)])
            return limit; /* which are its operand's along the axis before the last one */
    }
    if (plan->place[v->id].way == TL_NEST_TURNS_WORDS)
        return limit; /* from memory */
    if (v->def->opcode == TL_OP_BROADCAST && !tl_nest_keeps_lanes(v->def))
        return limit; /* the operand is evaluated one element at a time */
    /* the index of a gather that shuffles is not computed; of one that takes rows, for one lane:
     * there is room for all bytes that an instruction multiplies */
    TlNestWay way = plan->place[v->id].way;
    bool only_first = tl_nest_takes_window(way) || (walk->quads && way == TL_NEST_TAKES_ROWS);
    int64_t at;
    TlValue *picked = v->def->opcode == TL_OP_REDUCE ? tl_picked_from(v->def, &at) : NULL;
    if (picked && !own) /* by itself; which one it is of a row is not computed */
        return chain_width(plan, picked, limit, false, walk, why);
    for (uint32_t i = 0; i < (only_first && !plan->check ? 1 : v->def->nin) && limit > 1; i++)
        if (!is_seldom_computed(plan, v->def, tl_in(v->def, i)))
            limit = chain_width(plan, tl_in(v->def, i), limit, false, walk, why);
    return limit;
}

int tl_nest_width(const TlNests *plan, TlValue *v, int limit, bool own, const char **why)
{
    Walk walk = {.seen = {.arena = plan->arena}, .apart = 1};
    int w = chain_width(plan, v, limit, own, &walk, why);
    return w < 1 ? 1 : w;
}
