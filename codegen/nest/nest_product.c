/* Finds the loops that are products, for (k ...) acc = dot(A[m, k], B[k, n], acc) and nothing
 * else, and single products that an instruction sums; and what can be left out of those loops:
 * packing A if it can be read in memory, packing B again for each program, sums that the program
 * never stores, a separate store of the sums. */
#include "codegen/nest/nest.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"

enum {
    DEPTH = 256,          /* packed elements along k in a chunk, which has one iteration at least */
    KEPT_BYTES = 1 << 20, /* of packed chunks kept for later programs: a second cache; */
    KEPT_TAPS_BYTES = 5 << 20, /* of a filter's taps: programs of few rows would pack all of them */
    MAX_SLOTS = 64,
    SMALL_SLOTS = 128, /* of chunks that may be smaller than the greatest, */
    SMALL_TAPS = 256,  /* of taps */
    MOST_APART = 64,   /* elements of a listed column: for one outside there are as many zeros */
};

/* ---- which loops ---- */

/* May it be computed for each iteration anew? It has no home, or is a vector, such as indices are:
 * what reads that is packed before the next iteration. plan NULL: values have no places yet. */
static bool is_virtual_or_small(const TlNests *plan, const TlValue *v)
{
    return v->type->kind == TL_TILE &&
           (!plan || plan->place[v->id].kind != TL_NEST_HOME || v->type->rank == 1);
}

/* The index tile that says which rows of the view the load's are; NULL: none does. */
static TlValue *rows_of(const TlPlace *p)
{
    for (uint32_t i = 0; i < p->naxes; i++)
        if (tl_place_dim(p, i) == 0 && p->axes[i].kind == TL_AXIS_TILE && !p->pointwise)
            return p->index[i].value;
    return NULL;
}

/* How far apart elements along the axis of a place are, if that is known and not far; else 0. */
static int64_t step_along(const TlFn *fn, const TlPlace *p, int axis)
{
    TlWideInt step;
    const TlOp *view = p->base->def;
    if (tl_nest_is_dense(fn, p, axis))
        return 1;
    bool known = view && view->opcode == TL_OP_VIEW &&
                 tl_const_int_value(tl_in(view, 1 + p->naxes + (uint32_t)axis), &step);
    return known && step > 0 && step <= MOST_APART ? (int64_t)step : 0;
}

/* Is v a load by an index tile whose columns are evenly apart? Transposed, it is listed. */
static bool is_listed(const TlFn *fn, const TlValue *v)
{
    if (!v->def || v->def->opcode != TL_OP_LOAD)
        return false;
    TlPlace p = tl_op_place(v->def);
    int along = tl_nest_slice_of(&p, 1);
    return along >= 0 && rows_of(&p) && step_along(fn, &p, along);
}

/* May the op be lowered once more for each iteration? It then only says how elements are computed.
 */
static bool is_repeatable(const TlFn *fn, const TlNests *plan, const TlOp *op)
{
    static const bool MAY[TL_OP_COUNT] = {
        [TL_OP_CONST] = true,   [TL_OP_IOTA] = true,    [TL_OP_BROADCAST] = true,
        [TL_OP_EXPAND] = true,  [TL_OP_TRANS] = true,   [TL_OP_RESHAPE] = true,
        [TL_OP_REGROUP] = true, [TL_OP_CONVERT] = true, [TL_OP_EXTENT] = true,
        [TL_OP_STRIDE] = true,  [TL_OP_INSIDE] = true,  [TL_OP_LOAD] = true};
    if (!MAY[op->opcode] && !(tl_op_info(op->opcode)->flags & F_ELEM))
        return false;
    if (op->opcode == TL_OP_TRANS && tl_nest_dense_dim(fn, op->out[0]) < 0 &&
        !is_listed(fn, tl_in(op, 0)))
        return false;
    return op->nout == 1 && is_virtual_or_small(plan, op->out[0]);
}

TlOp *tl_nest_only_dot(const TlFn *fn, const TlNests *plan, const TlOp *loop)
{
    const TlBlock *body = loop->regions[0];
    TlOp *dot = NULL;
    if (loop->nout != 1 || loop->out[0]->type->rank != 2)
        return NULL;
    for (TlOp *op = body->first; op != body->last; op = op->next) {
        if (op->opcode == TL_OP_DOT && !dot)
            dot = op;
        else if (!is_repeatable(fn, plan, op))
            return NULL;
    }
    const TlValue *acc = body->args[1];
    if (!dot || tl_in(body->last, 0) != dot->out[0] || tl_in(dot, 2) != acc || !acc->uses ||
        acc->uses->next || dot->out[0]->uses->next)
        return NULL;
    return dot;
}

/* The loop around `loop` that does no more with a result than to pass it on: its iterations begin
 * with what they carry and yield what comes out. *out: its own result. NULL: there is none. */
static TlOp *passed_on(const TlOp *loop, int result, int *out)
{
    TlOp *outer = loop->block->parent;
    TL_ASSERT(result >= 0 && (uint32_t)result < loop->nout, "result %d of %u", result, loop->nout);
    const TlValue *end = loop->out[result], *begin = tl_in(loop, 3 + (uint32_t)result);
    if (!outer || outer->opcode != TL_OP_FOR || !end->uses || end->uses->next ||
        end->uses->user != outer->regions[0]->last || !begin->uses || begin->uses->next)
        return NULL;
    *out = (int)(end->uses - end->uses->user->in);
    return begin == outer->regions[0]->args[1 + *out] ? outer : NULL;
}

static bool begins_at_zero(const TlOp *loop)
{
    TL_ASSERT(loop->opcode == TL_OP_FOR && loop->nin > 3, "a loop without a sum");
    int result = 0, next;
    for (const TlOp *outer; (outer = passed_on(loop, result, &next)) != NULL; result = next)
        loop = outer;
    uint64_t bits;
    return tl_value_is_const(tl_in(loop, 3 + (uint32_t)result), &bits) && bits == 0;
}

static const TlValue *without_casts(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_CAST)
        v = tl_in(v->def, 0);
    return v;
}

/* The extent of a parameter's axis that is the extent of this axis of a view; NULL: not known. */
static const TlDim *extent_of(const TlFn *fn, const TlValue *view, uint32_t axis)
{
    if (!view->def || view->def->opcode != TL_OP_VIEW)
        return tl_axis_param_extent(fn, view, axis);
    const TlValue *v = without_casts(tl_in(view->def, 1 + axis));
    if (!v->def || v->def->opcode != TL_OP_EXTENT)
        return NULL;
    const TlDim *d = tl_axis_param_extent(fn, tl_in(v->def, 0),
                                          (uint32_t)tl_attr_int(v->def, TL_ATTR_AXIS, 0));
    return d && !d->is_i64 ? d : NULL; /* 32 bits hold it */
}

static bool same_dim(const TlFn *fn, const TlValue *v, uint32_t i, const TlValue *w, uint32_t j)
{
    const TlDim *x = extent_of(fn, v, i), *y = extent_of(fn, w, j);
    return x && y && x->kind == y->kind && x->value == y->value;
}

/* Two numbers that are computed alike, from extents that are the same. */
static bool same_number(const TlFn *fn, const TlValue *v, const TlValue *w, int depth)
{
    enum { MOST_DEPTH = 8 };
    v = without_casts(v);
    w = without_casts(w);
    const TlOp *x = v->def, *y = w->def;
    if (v == w || !x || !y || x->opcode != y->opcode || depth > MOST_DEPTH)
        return v == w;
    if (x->opcode == TL_OP_EXTENT)
        return same_dim(fn, tl_in(x, 0), (uint32_t)tl_attr_int(x, TL_ATTR_AXIS, 0), tl_in(y, 0),
                        (uint32_t)tl_attr_int(y, TL_ATTR_AXIS, 0));
    uint64_t a, b;
    if (tl_value_is_const(v, &a) && tl_value_is_const(w, &b))
        return a == b;
    return (x->opcode == TL_OP_DIV || x->opcode == TL_OP_MUL) &&
           same_number(fn, tl_in(x, 0), tl_in(y, 0), depth + 1) &&
           same_number(fn, tl_in(x, 1), tl_in(y, 1), depth + 1);
}

static bool same_axis(const TlFn *fn, const TlValue *v, uint32_t i, const TlValue *w, uint32_t j)
{
    const TlOp *x = v->def, *y = w->def;
    if (v == w && i == j)
        return true;
    if (x && y && x->opcode == TL_OP_VIEW && y->opcode == TL_OP_VIEW &&
        same_number(fn, tl_in(x, 1 + i), tl_in(y, 1 + j), 0))
        return true;
    if (!x || !y || x->opcode != TL_OP_SUB_VIEW || y->opcode != TL_OP_SUB_VIEW)
        return same_dim(fn, v, i, w, j);
    uint32_t n = (x->nin - 1) / 2, m = (y->nin - 1) / 2; /* a view, starts, extents */
    return same_axis(fn, tl_in(x, 0), i, tl_in(y, 0), j) &&
           same_number(fn, tl_in(x, 1 + i), tl_in(y, 1 + j), 0) &&
           same_number(fn, tl_in(x, 1 + n + i), tl_in(y, 1 + m + j), 0);
}

static bool same_extent(const TlFn *fn, const TlPlace *p, int i, const TlPlace *q, int j)
{
    return same_axis(fn, p->base, (uint32_t)i, q->base, (uint32_t)j);
}

bool tl_nest_same_slice(const TlFn *fn, const TlPlace *p, int p_dim, const TlPlace *q, int q_dim)
{
    int i = tl_nest_slice_of(p, p_dim), j = tl_nest_slice_of(q, q_dim);
    return i >= 0 && j >= 0 && p->index[i].value == q->index[j].value &&
           p->axes[i].width == q->axes[j].width && same_extent(fn, p, i, q, j);
}

/* The same of columns, which may be apart. */
static bool same_columns(const TlFn *fn, const TlPlace *p, const TlPlace *q)
{
    int i = tl_nest_steps_of(p, 1), j = tl_nest_steps_of(q, 1);
    return i >= 0 && j >= 0 && p->index[i].value == q->index[j].value &&
           p->axes[i].width == q->axes[j].width && p->axes[i].step == q->axes[j].step &&
           same_extent(fn, p, i, q, j);
}

/* Does the op transpose v, the only one that takes it? */
static bool is_only_turned(const TlOp *op, const TlValue *v)
{
    return op->opcode == TL_OP_TRANS && v->type->rank == 2 && op->block == v->def->block &&
           tl_attr(op, TL_ATTR_PERM)->u.ints[0] == 1 && !v->uses->next;
}

/* The result of an `if` that is v where one of its arms ends. NULL: the op ends no arm. */
static TlValue *given_by_if(const TlOp *op, uint32_t operand)
{
    TlOp *around = op->block->parent;
    bool ends = op->opcode == TL_OP_YIELD && around && around->opcode == TL_OP_IF;
    return ends ? around->out[operand] : NULL;
}

/* Does it compute each element of a tile of v's shape from the same element of v? */
static bool is_of_elements(const TlOp *op, const TlValue *v)
{
    return op->nout == 1 && op->out[0]->type->kind == TL_TILE &&
           tl_same_shape(op->out[0]->type, v->type) &&
           ((tl_op_info(op->opcode)->flags & F_ELEM) || op->opcode == TL_OP_CONVERT);
}

/* Stores whose slices say which elements of the sums matter. */
typedef struct Sight {
    const TlFn *fn;
    TlMap values; /* that depend on the sums, are they turned? */
    TlOp *store;  /* one of these */
    bool turned;  /* it is of values that are transposed */
} Sight;

static bool is_as_seen(Sight *s, TlOp *op, bool turned)
{
    TlPlace p = tl_op_place(op), q = tl_op_place(s->store ? s->store : op);
    if (!p.axes || p.mask || !tl_nest_same_slice(s->fn, &p, 0, &q, 0) ||
        !same_columns(s->fn, &p, &q) || (s->store && s->turned != turned))
        return false;
    s->store = op;
    s->turned = turned;
    return true;
}

/* Is v used only elementwise, and every result stored with the same slices? The result of an `if`
 * is v where an arm of it ends with v. */
static bool find_stores(Sight *s, const TlValue *v, bool turned, int depth)
{
    uint64_t was;
    if (tl_map_get(&s->values, v->id, &was))
        return was == turned;
    if (!v->uses || depth > 256)
        return false;
    tl_map_put(&s->values, v->id, turned);
    for (TlUse *u = v->uses; u; u = u->next) {
        TlOp *op = u->user;
        TlValue *given = given_by_if(op, (uint32_t)(u - op->in));
        bool stored = op->opcode == TL_OP_STORE && tl_op_place(op).value == v, turns = false;
        if (stored && !is_as_seen(s, op, turned))
            return false;
        if (stored)
            continue;
        if (!given && !is_of_elements(op, v) && !(turns = is_only_turned(op, v)))
            return false;
        if (!find_stores(s, given ? given : op->out[0], turned != turns, depth + 1))
            return false;
    }
    return true;
}

bool tl_nest_is_before(const TlValue *v, const TlOp *op)
{
    const TlBlock *home = v->def ? v->def->block : v->block;
    const TlOp *at = op;
    while (at && at->block != home)
        at = at->block->parent;
    for (const TlOp *x = v->def; at && x && x != at; x = x->next)
        if (!x->next)
            return false;
    return at != NULL;
}

/* The view, and where the slices begin, must be computed before the loop. */
static TlOp *find_store(const TlFn *fn, TlOp *loop, bool *turned, TlArena *arena)
{
    int result = 0, next;
    TlOp *last = loop;
    for (TlOp *outer; (outer = passed_on(last, result, &next)) != NULL; result = next)
        last = outer;
    Sight s = {.fn = fn, .values = {.arena = arena}};
    if (!find_stores(&s, last->out[result], false, 0) || !s.store)
        return NULL;
    TlPlace p = tl_op_place(s.store);
    *turned = s.turned;
    if (!tl_nest_is_before(p.base, loop))
        return NULL;
    for (int dim = 0; dim < 2; dim++)
        if (!tl_nest_is_before(p.index[tl_nest_steps_of(&p, dim)].value, loop))
            return NULL;
    return s.store;
}

/* Sets p->seen: does all that takes the sums choose them only for rows, or columns, below a number
 * that is known before? */
static void find_seen(TlNestProduct *p)
{
    int result = 0, next;
    TlOp *last = p->loop;
    for (TlOp *outer; (outer = passed_on(last, result, &next)) != NULL; result = next)
        last = outer;
    const TlValue *v = last->out[result];
    for (int dim = 0; dim < 2; dim++) {
        TlValue *n = v->uses ? tl_nest_chosen_below(v->uses, dim) : NULL;
        for (const TlUse *u = v->uses; u && n; u = u->next)
            if (tl_nest_chosen_below(u, dim) != n)
                n = NULL;
        p->seen[dim] = n && tl_nest_is_before(n, p->loop) ? n : NULL;
    }
}

/* A tile that it took might be a load, done only here. */
static bool takes_scalars(const TlOp *op)
{
    bool only = op->nout == 1 && op->out[0]->type->kind == TL_TILE && !op->out[0]->type->rank;
    for (uint32_t i = 0; i < op->nin; i++)
        only &= tl_in(op, i)->type->kind != TL_TILE || !tl_in(op, i)->type->rank;
    return only;
}

/* The sums after all chunks that wait for each other. */
static const TlValue *gathered_sums(const TlNestProduct *p)
{
    const TlOp *last = p->loop;
    int result = 0;
    for (int n = 0; n < p->ngathered; n++)
        last = passed_on(last, result, &result);
    return last->out[result];
}

/* May the last chunk store the sums where p->store does? Nothing else needs them, no memory is read
 * or written between the loop and the store, and what the chunk still reads stays as it is. */
static bool may_store(const TlFn *fn, const TlNestProduct *p)
{
    const TlValue *v = gathered_sums(p);
    if (!p->store || !v->uses || v->uses->next || v->uses->user != p->store ||
        p->store->block != v->def->block || tl_op_place(p->store).value != v ||
        tl_nest_form(v->type).padded[1] != v->type->shape[1])
        return false;
    for (const TlOp *op = v->def->next; op != p->store; op = op->next)
        if (!op || op->nregions || tl_op_effects(op) || !takes_scalars(op))
            return false;
    TlPlace c = tl_op_place(p->store);
    for (uint32_t i = 0; i < c.naxes; i++)
        if (c.axes[i].kind == TL_AXIS_TILE || !tl_nest_is_before(c.index[i].value, p->loop))
            return false;
    int columns = tl_nest_slice_of(&c, 1);
    return columns >= 0 && tl_nest_is_dense(fn, &c, columns) &&
           (!p->a_load || tl_is_constant_memory(tl_in(p->a_load, 0)));
}

/* How many elements v moves when the loop's own k moves by one; 0: it is not known. */
static TlWideInt times_k(const TlValue *v, const TlOp *loop)
{
    TlWideInt n = 0;
    if (v == loop->regions[0]->args[0])
        return 1;
    bool times = v->def && v->def->opcode == TL_OP_MUL &&
                 tl_in(v->def, 0) == loop->regions[0]->args[0] &&
                 tl_const_int_value(tl_in(v->def, 1), &n);
    return times ? n : 0;
}

/* How many elements v moves in each iteration, more or fewer; 0: none, or it is not known. */
static int64_t moves_by(const TlValue *v, const TlOp *loop)
{
    enum { MOST = 1 << 16 };
    TlWideInt step, n;
    while (v->def && v->def->opcode == TL_OP_ADD && v != loop->regions[0]->args[0]) {
        bool first = tl_is_invariant(tl_in(v->def, 0), loop);
        if (!first && !tl_is_invariant(tl_in(v->def, 1), loop))
            return 0;
        v = tl_in(v->def, first);
    }
    if (!tl_const_int_value(tl_in(loop, 2), &step) || step <= 0 || step > MOST)
        return 0;
    n = times_k(v, loop);
    return n > 0 && n <= MOST ? (int64_t)(n * step) : 0;
}

/* Is it known that the loop does not begin below 0? */
static bool begins_at_0_or_above(const TlNests *plan, const TlOp *loop)
{
    TlWideInt lo;
    const TlValue *first = tl_in(loop, 0);
    if (tl_const_int_value(first, &lo))
        return lo >= 0;
    return first->type->dtype != TL_U64 && tl_axis_facts(plan->axis, first)->lo >= 0;
}

/* Do the slices along a tile's axis follow each other from iteration to iteration, none before the
 * first element? */
static bool follows_loop(const TlNests *plan, const TlPlace *p, int dim, const TlOp *loop)
{
    TlWideInt step;
    int i = tl_nest_slice_of(p, dim);
    TlWideInt each = i >= 0 ? times_k(p->index[i].value, loop) : 0;
    return each > 0 && begins_at_0_or_above(plan, loop) &&
           tl_const_int_value(tl_in(loop, 2), &step) && step * each == p->axes[i].width;
}

/* Each scalar index of A must be a scalar index of the store, too, of an axis of equal extent: then
 * it is inside A where it is inside what is stored to. */
static bool scalars_agree(const TlFn *fn, const TlPlace *a, const TlPlace *c)
{
    for (uint32_t i = 0; i < a->naxes; i++) {
        bool found = a->axes[i].kind != TL_AXIS_SCALAR;
        for (uint32_t j = 0; j < c->naxes && !found; j++)
            found = c->axes[j].kind == TL_AXIS_SCALAR && a->index[i].value == c->index[j].value &&
                    same_extent(fn, a, (int)i, c, (int)j);
        if (!found)
            return false;
    }
    return true;
}

/* Do the view and all indices but the one along k stay the same during the loop? */
static bool moves_along_k(const TlPlace *p, int along, const TlOp *loop)
{
    if (!tl_is_invariant(p->base, loop))
        return false;
    for (uint32_t i = 0; i < p->naxes; i++)
        if ((int)i != along && !tl_is_invariant(p->index[i].value, loop))
            return false;
    return true;
}

static bool is_extent_of(const TlFn *fn, const TlValue *n, const TlValue *view, int axis)
{
    n = without_casts(n);
    if (view->def && view->def->opcode == TL_OP_VIEW)
        return same_number(fn, n, tl_in(view->def, 1 + (uint32_t)axis), 0);
    return n->def && n->def->opcode == TL_OP_EXTENT &&
           same_dim(fn, tl_in(n->def, 0), (uint32_t)tl_attr_int(n->def, TL_ATTR_AXIS, 0), view,
                    (uint32_t)axis);
}

/* start + iota? */
static bool counts_from(const TlValue *v, const TlValue *start)
{
    if (!v->def || v->def->opcode != TL_OP_ADD)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const TlOp *x = tl_in(v->def, i)->def, *y = tl_in(v->def, 1 - i)->def;
        if (x && y && x->opcode == TL_OP_BROADCAST && tl_in(x, 0) == start &&
            y->opcode == TL_OP_IOTA)
            return true;
    }
    return false;
}

/* Does the condition hold only where the slice along axis i of the place is inside? */
static bool holds_inside(const TlFn *fn, const TlValue *v, const TlPlace *b, int i)
{
    const TlOp *op = v->def;
    if (op && op->opcode == TL_OP_AND)
        return holds_inside(fn, tl_in(op, 0), b, i) || holds_inside(fn, tl_in(op, 1), b, i);
    if (!op || op->opcode != TL_OP_LT || !counts_from(tl_in(op, 0), b->index[i].value))
        return false;
    const TlOp *end = tl_in(op, 1)->def;
    return end && end->opcode == TL_OP_BROADCAST && is_extent_of(fn, tl_in(end, 0), b->base, i);
}

/* Do B's rows follow each other from iteration to iteration, so that those which are outside are
 * the last ones of all, and are A's columns outside, too, where they are? Zeros times zeros add
 * nothing to sums that began at 0; infinities of A would. */
static bool ends_with_loop(const TlNests *plan, const TlNestProduct *p)
{
    bool transposed;
    TlWideInt outside;
    const TlOp *b = tl_nest_load_under(tl_in(p->dot, 1), &transposed), *rows = p->a_rows->def;
    if (!b || !rows || rows->opcode != TL_OP_SELECT ||
        !tl_const_int_value(tl_in(rows, 2), &outside) || outside >= 0)
        return false;
    TlPlace pb = tl_op_place(b);
    int dim = transposed ? 1 : 0;
    return follows_loop(plan, &pb, dim, p->loop) &&
           holds_inside(plan->fn, tl_in(rows, 0), &pb, tl_nest_slice_of(&pb, dim));
}

/* The same of a load of which A is the transposition, by an index tile along k: what is outside is
 * zeros, and of its columns those are inside that are A's rows which are seen. */
static void find_transposed(const TlNests *plan, TlNestProduct *p, TlOp *a)
{
    const TlFn *fn = plan->fn;
    TlPlace pa = tl_op_place(a), pc;
    int along = tl_nest_slice_of(&pa, 1);
    if (!p->store || along < 0 || !rows_of(&pa) || tl_in(p->dot, 0)->def->opcode != TL_OP_TRANS ||
        tl_in(tl_in(p->dot, 0)->def, 0) != a->out[0])
        return;
    pc = tl_op_place(p->store);
    if (!tl_nest_same_slice(fn, &pa, 1, &pc, p->store_turned) || !step_along(fn, &pa, along) ||
        !tl_is_invariant(pa.base, p->loop) || !tl_is_invariant(pa.index[along].value, p->loop))
        return;
    for (uint32_t i = 0; i < pa.naxes; i++)
        if (pa.axes[i].kind == TL_AXIS_SCALAR && !tl_is_invariant(pa.index[i].value, p->loop))
            return;
    p->a_load = a;
    p->a_rows = rows_of(&pa);
    p->a_transposed = true;
    p->column_step = step_along(fn, &pa, along);
    p->cuts_listed = p->from_zero && ends_with_loop(plan, p);
}

/* Is A the transposition of the load, whose rows are dense? */
static bool is_by_columns(const TlFn *fn, const TlNestProduct *p, const TlOp *a)
{
    TlPlace pa = tl_op_place(a);
    const TlOp *under = tl_in(p->dot, 0)->def;
    int row = tl_nest_slice_of(&pa, 1);
    return p->per == 1 && under->opcode == TL_OP_TRANS && tl_in(under, 0) == a->out[0] &&
           row >= 0 && tl_nest_is_dense(fn, &pa, row);
}

/* A load whose rows begin further on in each iteration, and that is the same along k: so it is with
 * the taps of a filter, where channels are innermost. Where rows are as far apart as what the load
 * has of them is long, iterations follow each other in memory; that they are, and that all k are
 * inside, is looked at in the run. */
static bool find_moving(const TlNests *plan, TlNestProduct *p, TlOp *a)
{
    TlPlace pa = tl_op_place(a);
    int row = tl_nest_slice_of(&pa, 0), along = tl_nest_slice_of(&pa, 1);
    if (row < 0 || along < 0 || !tl_nest_is_dense(plan->fn, &pa, along) ||
        !moves_along_k(&pa, row, p->loop))
        return false;
    p->a_moves = moves_by(pa.index[row].value, p->loop);
    if (!p->a_moves)
        return false;
    p->a_load = a;
    p->a_may_end = p->a_is_whole = true;
    return true;
}

/* Sets p->a_load to a load of A that can be read where it lies: where k is outside of A it is
 * outside of B, or, where B is computed, no k of the chunk is. That rows which are computed are
 * inside, and that A ends with a whole packed element, is known, or is looked at in the run; rows
 * by an index tile may be outside. */
static void find_direct(const TlNests *plan, TlNestProduct *p)
{
    const TlFn *fn = plan->fn;
    bool a_transposed, b_transposed;
    TlOp *a = tl_nest_load_under(tl_in(p->dot, 0), &a_transposed);
    TlOp *b = tl_nest_load_under(tl_in(p->dot, 1), &b_transposed);
    if (!a || a->out[0]->type->dtype != p->part[0] || p->flips)
        return;
    if (a_transposed && p->per == 1)
        find_transposed(plan, p, a);
    if (p->a_load || (a->out[0] != tl_in(p->dot, 0) && !is_by_columns(fn, p, a)))
        return;
    bool columns = p->a_by_columns = a_transposed;
    if (!columns && find_moving(plan, p, a))
        return;
    TlPlace pa = tl_op_place(a);
    int k = columns ? 0 : 1, along = tl_nest_slice_of(&pa, k);
    if (b) {
        TlPlace pb = tl_op_place(b);
        if (!tl_nest_same_slice(fn, &pa, k, &pb, b_transposed ? 1 : 0))
            return;
    }
    p->a_rows = b && p->per == 1 && !columns ? rows_of(&pa) : NULL;
    if (along < 0 || (tl_nest_slice_of(&pa, 1 - k) < 0 && !p->a_rows) ||
        !follows_loop(plan, &pa, k, p->loop) || (!columns && !tl_nest_is_dense(fn, &pa, along)) ||
        !moves_along_k(&pa, along, p->loop)) {
        p->a_rows = NULL;
        return;
    }
    p->a_load = a;
    if (p->a_rows)
        return;
    p->a_may_end = true;
    p->a_is_whole = !b || p->tile; /* tiles end with an iteration */
    if (p->store && b) {
        TlPlace pc = tl_op_place(p->store);
        p->a_may_end = p->per > 1 || !tl_nest_same_slice(fn, &pa, 1 - k, &pc, p->store_turned) ||
                       !scalars_agree(fn, &pa, &pc);
    }
}

/* A view of a parameter's memory, of extents and strides that are the same throughout a launch: its
 * address says which. */
static bool is_told_by_address(const TlValue *view)
{
    const TlOp *op = view->def;
    bool same = !op || op->opcode == TL_OP_VIEW;
    for (uint32_t i = 1; same && op && i < op->nin; i++)
        same = tl_nest_is_of_launch(tl_in(op, i));
    return same;
}

/* The load of B, if its packed chunks may be kept: the address and the starts of the slices in a
 * chunk's first iteration determine all of its iterations. */
static TlOp *find_kept(const TlNestProduct *p)
{
    bool transposed;
    TlWideInt step;
    TlOp *load = tl_nest_load_under(tl_in(p->dot, 1), &transposed);
    if (!load || !is_told_by_address(tl_in(load, 0)) || !tl_is_constant_memory(tl_in(load, 0)) ||
        !tl_const_int_value(tl_in(p->loop, 2), &step))
        return NULL;
    TlPlace b = tl_op_place(load);
    int along = tl_nest_slice_of(&b, transposed ? 1 : 0);
    if (along < 0 || tl_nest_slice_of(&b, transposed ? 0 : 1) < 0)
        return NULL;
    bool follows = b.index[along].value == p->loop->regions[0]->args[0];
    return follows && moves_along_k(&b, along, p->loop) ? load : NULL;
}

/* Does B stay what it is during a loop around? */
static bool is_same_b(const TlNestProduct *p, const TlOp *outer)
{
    bool same = true;
    for (int i = 0; i < p->nkeys; i++)
        same &= tl_is_invariant(p->key[i], outer);
    if (!p->b_load)
        return same;
    TlPlace b = tl_op_place(p->b_load);
    same &= tl_is_invariant(b.base, outer);
    for (uint32_t i = 0; i < b.naxes; i++)
        same &= b.index[i].value == p->loop->regions[0]->args[0] ||
                tl_is_invariant(b.index[i].value, outer);
    return same;
}

/* The loops around in which the sum goes on and B becomes another: each of their iterations has
 * chunks of its own. */
static void find_around(TlNestProduct *p)
{
    TL_ASSERT(p->keeps_b && !p->naround, "loops around are looked for once, for kept chunks");
    int result = 0, next;
    TlOp *outer = p->loop;
    while (p->naround < TL_NEST_AROUND && (outer = passed_on(outer, result, &next)) != NULL) {
        if (!is_same_b(p, outer))
            p->around[p->naround++] = outer;
        result = next;
    }
}

/* The loops further around that begin new sums, in which B becomes another, too. */
static void find_beyond(TlNestProduct *p)
{
    TlOp *outer = p->naround ? p->around[p->naround - 1]->block->parent : NULL;
    for (; outer && p->nbeyond < TL_NEST_AROUND; outer = outer->block->parent)
        if (outer->opcode == TL_OP_FOR && !is_same_b(p, outer))
            p->beyond[p->nbeyond++] = outer;
}

/* The axes of B along which a scalar index moves it in all these loops; none if anything else but
 * the loop's own k does. */
static uint32_t find_numbering(const TlNestProduct *p)
{
    uint32_t axes = 0;
    if (!p->b_load || !p->naround)
        return 0;
    TlPlace b = tl_op_place(p->b_load);
    const TlOp *outer = p->nbeyond ? p->beyond[p->nbeyond - 1] : p->around[p->naround - 1];
    if (!tl_is_invariant(b.base, outer))
        return 0;
    for (uint32_t i = 0; i < b.naxes; i++) {
        const TlValue *at = b.index[i].value;
        if (at == p->loop->regions[0]->args[0] || tl_is_invariant(at, outer))
            continue;
        if (b.axes[i].kind != TL_AXIS_SCALAR)
            return 0;
        axes |= 1u << i;
    }
    return axes;
}

/* In how many of the loops around, inner first, do chunks wait for those of the next iterations?
 * They say where A and B are, so these must be there later, too; and all iterations must have as
 * many chunks, so that the last one has some. */
static int count_gathered(const TlFn *fn, const TlNests *plan, const TlNestProduct *p)
{
    int n = 0, result = 0;
    const TlOp *loop = p->loop;
    if (!p->a_load || p->a_transposed || !p->b_load ||
        !tl_is_constant_memory(tl_in(p->a_load, 0)) ||
        (tl_is_float(p->dtype) && !fn->ring && !p->from_zero))
        return 0;
    for (; n < p->naround; n++) {
        TlOp *outer = p->around[n];
        if (passed_on(loop, result, &result) != outer ||
            plan->place[outer->out[result]->id].buffer != plan->place[p->loop->out[0]->id].buffer)
            break;
        for (const TlOp *inner = p->loop; inner != outer; inner = inner->block->parent)
            for (uint32_t i = 0; i < 3; i++)
                if (!tl_is_invariant(tl_in(inner, i), outer))
                    return n;
        loop = outer;
    }
    return n;
}

/* Does v go one way as the loop's k does, or stay? k times what stays, or divided, and more. */
static bool goes_one_way(const TlValue *v, const TlOp *loop, int depth)
{
    enum { MOST_DEPTH = 8 };
    const TlOp *op = v->def;
    TlWideInt n;
    if (v == loop->regions[0]->args[0])
        return true;
    if (!op || depth > MOST_DEPTH || !op->nin)
        return false;
    TlOpcode o = op->opcode;
    if (o == TL_OP_CAST)
        return tl_is_int(tl_in(op, 0)->type->dtype) &&
               tl_dtype_bytes(tl_in(op, 0)->type->dtype) <= tl_dtype_bytes(v->type->dtype) &&
               goes_one_way(tl_in(op, 0), loop, depth + 1);
    if (o == TL_OP_DIV || o == TL_OP_SHR || o == TL_OP_SHL)
        return tl_const_int_value(tl_in(op, 1), &n) && n > 0 &&
               goes_one_way(tl_in(op, 0), loop, depth + 1);
    if (o != TL_OP_ADD && o != TL_OP_SUB && o != TL_OP_MUL)
        return false;
    bool first = tl_is_invariant(tl_in(op, 0), loop);
    return (first || tl_is_invariant(tl_in(op, 1), loop)) &&
           goes_one_way(tl_in(op, first), loop, depth + 1);
}

/* Is all that an iteration of the loop around does before the product a few scalars, without
 * effects? Then they may be computed once more, for another iteration. */
static bool begins_with_scalars(const TlOp *outer, const TlOp *loop)
{
    int left = TL_NEST_SLIDING;
    for (const TlOp *op = outer->regions[0]->first; op != loop; op = op->next)
        if (!op || op->nregions || tl_op_effects(op) || !takes_scalars(op) || --left < 0)
            return false;
    return true;
}

static bool is_within(const TlOp *op, const TlOp *loop)
{
    while (op && op != loop)
        op = op->block->parent;
    return op != NULL;
}

/* The loop right around, if A is the same in all of its iterations but for where its rows begin,
 * and these go one way: so it is with the taps of a row of a filter. */
static TlOp *find_sliding(const TlNestProduct *p)
{
    TlOp *outer = p->ngathered ? p->around[0] : NULL;
    if (!outer || !p->a_by_columns || !p->a_may_end || p->loop->block != outer->regions[0] ||
        !begins_with_scalars(outer, p->loop))
        return NULL;
    TlPlace pa = tl_op_place(p->a_load);
    int row = tl_nest_slice_of(&pa, 1), k = tl_nest_slice_of(&pa, 0);
    const TlValue *at = pa.index[row].value;
    for (uint32_t i = 0; i < pa.naxes; i++)
        if ((int)i != row && (int)i != k && !tl_is_invariant(pa.index[i].value, outer))
            return NULL;
    for (const TlUse *u = at->uses; u; u = u->next) /* the product asks it nowhere else */
        if (u->user != p->a_load && is_within(u->user, p->loop))
            return NULL;
    bool same = tl_is_invariant(pa.base, outer);
    return same && !tl_is_invariant(at, outer) && goes_one_way(at, outer, 0) ? outer : NULL;
}

/* Do all loops of a launch have the same number of iterations, and are those around it many? Then
 * chunks that are smaller than the greatest have room for what they are. */
static bool has_small_chunks(const TlNestProduct *p)
{
    bool steady = p->keeps_b && p->naround && p->slots > 1;
    for (uint32_t i = 0; i < 3; i++)
        steady = steady && tl_nest_is_of_launch(tl_in(p->loop, i));
    return steady;
}

/* Does AMX multiply it? */
static void find_tile(const TlNests *plan, TlNestProduct *p, int lanes)
{
    enum { SUM_BYTES = 4 };
    const int32_t *a = tl_in(p->dot, 0)->type->shape;
    TlDtype d = tl_in(p->dot, 0)->type->dtype;
    int64_t per = SUM_BYTES / tl_dtype_bytes(d), rows = a[0], k = a[1];
    p->tile = tl_cpu_tile_insn(plan->m.l, d, tl_in(p->dot, 1)->type->dtype);
    if (!p->tile)
        return;
    if (lanes != TL_CPU_TILE_BYTES / SUM_BYTES || k % per)
        p->untiled = "columns, or k, are no whole tiles";
    else if (!(p->tile_depth = tl_cpu_tile_depth(k / per, rows)))
        p->untiled = "few rows, or few elements along k";
    if (p->untiled)
        p->tile = NULL;
}

/* The instruction that sums the products, and so what a packed element is. */
static void find_insn(const TlFn *fn, const TlNests *plan, TlNestProduct *p)
{
    TlDtype a = tl_in(p->dot, 0)->type->dtype, b = tl_in(p->dot, 1)->type->dtype;
    int64_t columns = tl_nest_form(p->dot->out[0]->type).padded[1];
    int lanes = tl_nest_fit_width(columns, plan->m.vector_bytes / tl_dtype_bytes(p->dtype));
    int64_t k = tl_in(p->dot, 1)->type->shape[0];
    p->per = 1;
    p->part[0] = p->part[1] = p->dtype;
    if (fn->ring)
        return;
    find_tile(plan, p, lanes);
    const TlCpuDotInsn *insn = tl_cpu_dot_insn(plan->m.l, a, b, k, lanes, p->tile != NULL);
    TL_ASSERT(insn || !p->tile, "tiles without an instruction for single rows");
    if (!insn)
        return;
    TL_ASSERT(tl_dtype_bytes(p->dtype) == 4, "sums of %d bytes", tl_dtype_bytes(p->dtype));
    p->insn = insn;
    p->per = insn->per;
    p->part[0] = tl_cpu_dot_part(insn, a);
    p->part[1] = tl_cpu_dot_part(insn, b);
    p->flips = tl_cpu_dot_flips(insn, a, b);
    bool even = tl_in(p->dot, 0)->type->shape[0] % 2 == 0 && k % (2 * insn->per) == 0;
    p->pairs = even && !p->flips ? tl_cpu_dot_pairs(plan->m.l, insn) : NULL;
}

/* ---- a product by itself ---- */

/* Integers, whose sums have the same bits in any order, and bf16. */
static bool find_lone(const TlNests *plan, TlOp *dot, TlNestProduct *out)
{
    const TlType *sums = dot->out[0]->type;
    *out = (TlNestProduct){.dot = dot, .dtype = sums->dtype, .trips = 1, .slots = 1};
    if (plan->check || sums->rank != 2 || (!tl_is_int(sums->dtype) && sums->dtype != TL_F32) ||
        tl_dtype_bytes(sums->dtype) != 4)
        return false;
    find_insn(plan->fn, plan, out);
    return out->insn != NULL;
}

bool tl_nest_is_lone_product(const TlNests *plan, TlOp *dot)
{
    TlNestProduct unused;
    return find_lone(plan, dot, &unused);
}

TlNestProduct *tl_nest_lone_product(const TlNests *plan, TlOp *dot, TlArena *arena)
{
    uint64_t bits;
    TlNestProduct *p = TL_NEW(arena, TlNestProduct);
    if (!find_lone(plan, dot, p))
        return NULL;
    p->depth = p->a_row = tl_in(dot, 1)->type->shape[0] / p->per;
    p->panel_rows = p->depth + 1;
    p->from_zero = tl_value_is_const(tl_in(dot, 2), &bits) && bits == 0;
    int64_t bytes = tl_dtype_bytes(p->dtype);
    p->a_bytes = (uint64_t)(tl_in(dot, 0)->type->shape[0] * p->a_row * bytes);
    p->b_bytes = (uint64_t)(p->panel_rows * tl_nest_form(dot->out[0]->type).padded[1] * bytes);
    return p;
}

/* ---- a loop ---- */

TlNestProduct *tl_nest_product(const TlFn *fn, const TlNests *plan, TlOp *loop, TlArena *arena)
{
    TlOp *dot = tl_nest_only_dot(fn, plan, loop);
    if (!dot || plan->place[dot->out[0]->id].buffer != plan->place[loop->out[0]->id].buffer ||
        plan->place[loop->out[0]->id].buffer < 0)
        return NULL;
    TlDtype d = dot->out[0]->type->dtype;
    if (d != TL_F32 && d != TL_F64 && !tl_is_int(d))
        return NULL;
    TlNestProduct *p = TL_NEW(arena, TlNestProduct);
    *p = (TlNestProduct){.loop = loop, .dot = dot, .dtype = d};
    find_insn(fn, plan, p);
    int64_t k = tl_in(dot, 1)->type->shape[0] / p->per, bytes = tl_dtype_bytes(d);
    p->trips = k < DEPTH ? DEPTH / k : 1;
    p->depth = p->trips * k;
    p->panel_rows = p->depth + 1;
    p->store = find_store(fn, loop, &p->store_turned, arena);
    if (!p->store)
        find_seen(p);
    p->from_zero = begins_at_zero(loop);
    find_direct(plan, p);
    p->b_load = find_kept(p);
    p->keeps_b = p->b_load || tl_nest_find_keys(plan, p, arena);
    if (p->keeps_b)
        find_around(p);
    find_beyond(p);
    p->numbering = find_numbering(p);
    p->ngathered = count_gathered(fn, plan, p);
    p->slides = find_sliding(p);
    p->stores = may_store(fn, p);
    int64_t rows = tl_in(dot, 0)->type->shape[0];
    p->a_row = (!p->a_by_columns ? p->depth : p->slides ? 2 * rows : rows) + 64 / bytes;
    p->a_packs = p->a_load && p->a_by_columns && !p->ngathered;
    if (!p->a_load || p->a_may_end || p->a_packs)
        p->a_bytes = (uint64_t)((p->a_by_columns ? p->depth : rows) * p->a_row * bytes);
    p->b_bytes = (uint64_t)(p->panel_rows * tl_nest_form(dot->out[0]->type).padded[1] * bytes);
    uint64_t kept = p->numbering ? KEPT_TAPS_BYTES : KEPT_BYTES;
    uint64_t slots = p->keeps_b ? kept / p->b_bytes : 1;
    p->slots = slots > MAX_SLOTS ? MAX_SLOTS : slots ? (uint32_t)slots : 1;
    p->tagged = !has_small_chunks(p) ? p->slots : p->numbering ? SMALL_TAPS : SMALL_SLOTS;
    TL_ASSERT(p->depth > 0 && p->b_bytes > 0, "a chunk of %lld packed elements along k",
              (long long)p->depth);
    return p;
}
