/* Rows of homes that are wanted: those that are stored, or chosen.
 *
 * At the end of an array, tiles reach beyond it: of 64 rows of a tile, 24 may be inside. A store
 * visits only these, but what a loop carries would be computed for all, in each of its trips.
 * Elements that are computed from those at the same place, and only stored in the end, are wanted
 * where the store is inside. So the nests that fill such homes in loops visit the same rows.
 *
 *   1. want    from stores to what they are computed from, until nothing is new: nothing, what one
 *              store takes, or all
 *   2. box     nests in loops, where the store's place is known before
 *
 * So it is where a select chooses the rows below a number: 16 of a tile of 72 rows are added to
 * others, the other 56 are zeros. Rows of homes of rank 2 that are not chosen are not filled.
 *
 * Or those that later trips read. Where of a loop's result only some rows are used, and each trip
 * computes a row from itself and rows further on, as a tree of prices does, a trip needs those
 * rows and as many more as the trips that are left reach: 64 trips over 64 rows are half the work.
 *
 *   3. rows    that are used of the result
 *   4. reach   from what the loop carries to what it yields, and to nothing else */
#include "codegen/nest/nest.h"

enum { LEAST_ROWS = 16 }; /* of 8, loops of their own cost 1 part in 40 where all are inside */

/* ---- 1. want ---- */

typedef struct Wants {
    const TlNests *plan;
    const TlNest **by;    /* of each value: the store; NULL: none */
    const TlValue **rows; /* of each value: how many rows are chosen; NULL: none are */
    bool *all;            /* of each value: or anything else */
    bool grew;
} Wants;

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 0;
}

static void want(Wants *w, const TlValue *v, const TlNest *store, const TlValue *rows, bool all)
{
    bool some = w->by[v->id] || w->rows[v->id];
    if (!is_tile(v) || w->all[v->id] || (!store && !rows && !all) ||
        (!all && w->by[v->id] == store && w->rows[v->id] == rows))
        return;
    w->all[v->id] = all || some;
    w->by[v->id] = store;
    w->rows[v->id] = rows;
    w->grew = true;
}

static bool is_same_shape(const TlType *a, const TlType *b)
{
    bool same = a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++)
        same = a->shape[d] == b->shape[d];
    return same;
}

/* What is wanted of `of` is wanted of v, element by element. */
static void want_as(Wants *w, const TlValue *v, const TlValue *of)
{
    bool some = w->by[of->id] || w->rows[of->id] || w->all[of->id];
    want(w, v, w->by[of->id], w->rows[of->id],
         some && (w->all[of->id] || !is_same_shape(v->type, of->type)));
}

static const TlNest *nest_of_store(const TlNests *plan, const TlOp *op)
{
    for (uint32_t i = 0; i < plan->all.len; i++) {
        const TlNest *n = plan->all.data[i];
        if (n->kind == TL_NEST_STORE && n->op == op && n->boxed_axes && n->boxed == n->store &&
            !n->joined && !n->stored_by && !n->columns)
            return n;
    }
    return NULL;
}

static void want_for_store(Wants *w, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    const TlNest *store = nest_of_store(w->plan, op);
    for (uint32_t i = 0; i < op->nin; i++) {
        bool stored = store && tl_in(op, i) == p.value &&
                      is_same_shape(p.value->type, &store->type);
        want(w, tl_in(op, i), stored ? store : NULL, NULL, !stored);
    }
}

static bool carries(const TlOp *op)
{
    return op && (op->opcode == TL_OP_FOR || op->opcode == TL_OP_IF);
}

static void want_for(Wants *w, const TlOp *op)
{
    if (op->opcode == TL_OP_STORE) {
        want_for_store(w, op);
        return;
    }
    bool is_element = tl_op_info(op->opcode)->flags & F_ELEM,
         flows = carries(op) || (op->opcode == TL_OP_YIELD && carries(op->block->parent));
    for (uint32_t i = 0; i < op->nin; i++) {
        bool is_sum = op->opcode == TL_OP_DOT && i == 2; /* what products are added to */
        const TlValue *to = flows                  ? tl_flows_to(op, i)
                            : is_element || is_sum ? op->out[0]
                                                   : NULL,
                      *rows = tl_nest_chosen_below(&op->in[i], 0);
        if (rows) {
            want(w, tl_in(op, i), NULL, rows, false);
            continue;
        }
        if (op->opcode == TL_OP_YIELD && flows && !to)
            to = op->block->parent->out[i];
        if (to)
            want_as(w, tl_in(op, i), to);
        else
            want(w, tl_in(op, i), NULL, NULL, true);
    }
    for (uint32_t k = 0; op->opcode == TL_OP_FOR && k < op->nout; k++)
        want_as(w, op->regions[0]->args[k + 1], op->out[k]);
}

/* ---- 2. box ---- */

/* The op of the function's own block that `op` is in. */
static const TlOp *outermost(const TlOp *op)
{
    while (op->block->parent)
        op = op->block->parent;
    return op;
}

static bool is_place_known(const TlNestAccess *a, const TlOp *op)
{
    bool known = !a->place.base->def;
    for (uint32_t i = 0; known && i < a->place.naxes; i++)
        known =
            a->place.axes[i].kind != TL_AXIS_TILE && tl_nest_is_before(a->place.index[i].value, op);
    return known;
}

static bool is_in_loop(const TlOp *op)
{
    const TlOp *around = op->block->parent;
    while (around && around->opcode != TL_OP_FOR)
        around = around->block->parent;
    return around;
}

/* Do the nest's loops go over the store's rows, and enough of them? */
static bool has_rows(const TlNest *n, const TlNest *store)
{
    bool has = n->form.rank == n->type.rank && store->form.rank == store->type.rank &&
               is_same_shape(&n->type, &store->type);
    int64_t rows = 1;
    for (uint32_t i = 0; has && store->boxed_axes >> i; i++) {
        int d = store->boxed->axis[i].dim;
        if (!(store->boxed_axes >> i & 1))
            continue;
        has = d != n->lane && n->form.extent[d] == n->type.shape[d];
        rows *= n->type.shape[d];
    }
    return has && rows >= LEAST_ROWS;
}

static bool may_skip(const TlNest *n)
{
    return n->kind == TL_NEST_FILL && !n->unrolled && !n->keep && !n->columns && !n->boxed &&
           n->split != TL_NEST_ONE;
}

static bool may_box(const Wants *w, const TlNest *n)
{
    if (!may_skip(n) || !is_in_loop(n->op) || w->all[n->value->id])
        return false;
    const TlNest *store = w->by[n->value->id];
    return store && has_rows(n, store) && is_place_known(store->boxed, outermost(n->op));
}

/* Equal elements are filled as one row: row by row instead. */
static void split_rows(TlNest *n)
{
    const TlOp *op = n->value->def;
    TlNestForm f = tl_nest_form(n->value->type);
    if (!op || op->opcode != TL_OP_CONST || n->form.rank != 1 || n->asks.len)
        return;
    TL_ASSERT(n->split == TL_NEST_PLAIN, "constants are tested");
    n->type = *n->value->type;
    n->form = f;
    n->lane = f.lane;
    n->width = n->tested = tl_nest_fit_width(f.padded[f.lane], n->width);
}

/* What the nest fills: the first value of what a loop carries, or what it computes. */
static const TlValue *filled(const TlNests *plan, const TlNest *n)
{
    const TlOp *op = n->op;
    for (uint32_t k = 0; op->opcode == TL_OP_FOR && !n->own && k < op->nout; k++)
        if (tl_in(op, 3 + k) == n->value && plan->place[op->out[k]->id].buffer == n->home)
            return op->regions[0]->args[1 + k];
    return n->value;
}

/* The condition itself, not repeated. */
static const TlOp *condition_of(const TlOp *select)
{
    const TlOp *op = tl_in(select, 0)->def;
    while (op && op->opcode == TL_OP_BROADCAST)
        op = tl_in(op, 0)->def;
    return op;
}

const TlValue *tl_nest_only_row(const TlNests *plan, const TlNest *n)
{
    const TlOp *op = n->kind == TL_NEST_FILL && n->own ? n->value->def : NULL;
    bool puts = op && op->opcode == TL_OP_SELECT && n->value->type->rank == 2 &&
                n->value->type->shape[0] >= LEAST_ROWS && !tl_in(op, 2)->def &&
                plan->place[tl_in(op, 2)->id].buffer == n->home;
    const TlOp *is = puts ? condition_of(op) : NULL;
    const TlValue *row =
        is && is->opcode == TL_OP_EQ ? tl_nest_compared(tl_in(op, 0), 0, TL_OP_EQ) : NULL;
    uint64_t known;
    bool counts = row && !tl_value_is_const(row, &known) && tl_nest_is_before(row, n->op);
    return counts && n->form.rank == 2 && n->lane == 1 ? row : NULL;
}

/* Rows that are chosen of what it fills; or those that it chooses, the others being what is there
 * already, as the value is the next one of what a loop carries. */
static void find_chosen(const Wants *w, TlNest *n)
{
    if (!may_skip(n) || !is_in_loop(n->op))
        return;
    const TlValue *v = filled(w->plan, n), *to = w->all[v->id] ? NULL : w->rows[v->id],
                  *from = NULL;
    const TlOp *op = v->def;
    n->chosen_row = to ? NULL : tl_nest_only_row(w->plan, n);
    if (n->chosen_row) {
        const TlAxisFacts *facts = tl_axis_facts(w->plan->axis, n->chosen_row);
        n->has_row = facts->lo >= 0 && facts->hi < n->form.extent[0];
    }
    if (n->chosen_row || v->type->rank != 2 || v->type->shape[0] < LEAST_ROWS)
        return;
    if (!to && n->own && op && op->opcode == TL_OP_SELECT && !tl_in(op, 2)->def &&
        w->plan->place[tl_in(op, 2)->id].buffer == n->home) {
        to = tl_nest_chosen_below(&op->in[1], 0);
        from = to ? tl_nest_compared(tl_in(op, 0), 0, TL_OP_GE) : NULL;
    }
    if (!to || !tl_nest_is_before(to, n->op) || (from && !tl_nest_is_before(from, n->op)))
        return;
    split_rows(n);
    if (n->form.rank != 2 || n->lane != 1 || n->form.extent[0] != v->type->shape[0])
        return;
    n->chosen[0] = from;
    n->chosen[1] = to;
}

/* ---- 3. rows ---- */

/* The one row, or those side by side, that a gather takes of its operand. */
static bool find_rows(const TlNests *plan, const TlOp *op, TlNestReach *r)
{
    const TlNestMove *m = op->opcode == TL_OP_GATHER
                              ? tl_nest_move_of(plan, op, tl_nest_form(op->out[0]->type).lane)
                              : NULL;
    uint64_t row;
    if (!m || !m->rows)
        return false;
    int dim = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    int64_t extent = tl_in(op, 0)->type->shape[dim], from = 0, to = extent;
    if (tl_value_is_const(tl_in(op, 1), &row) && row < (uint64_t)extent) {
        from = (int64_t)row;
        to = from + 1;
    } else if (m->known && m->window.step > 0 && !m->window.wraps && m->window.start >= 0) {
        from = m->window.start;
        to = from + op->out[0]->type->shape[dim];
    }
    r->from = r->dim < 0 || from < r->from ? from : r->from;
    r->to = r->dim < 0 || to > r->to ? to : r->to;
    bool same = r->dim < 0 || r->dim == dim;
    r->dim = dim;
    return same && r->to < extent;
}

static bool find_used(const TlNests *plan, const TlValue *result, TlNestReach *r)
{
    r->dim = -1;
    for (const TlUse *u = result->uses; u; u = u->next)
        if (u != &u->user->in[0] || !find_rows(plan, u->user, r))
            return false;
    return r->dim >= 0;
}

/* ---- 4. reach ---- */

/* Do all uses of v, which is computed from rows so far ahead, lead to y, and what is the farthest?
 * Visits *left values. */
static bool leads_to(const TlNests *plan, const TlValue *v, const TlValue *y, int64_t ahead,
                     TlNestReach *r, int *left)
{
    if (v == y) {
        r->more = ahead > r->more ? ahead : r->more;
        return !y->uses->next; /* by what yields it */
    }
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = u->user;
        bool gathers = op->opcode == TL_OP_GATHER;
        int64_t more = gathers && u == &op->in[0] ? tl_nest_rows_ahead(plan, op) : 0;
        if (--*left < 0 || op->nout != 1 || op->block != y->def->block || more < 0 ||
            (gathers ? u != &op->in[0] || tl_attr_int(op, TL_ATTR_AXIS, 0) != r->dim
                     : !(tl_op_info(op->opcode)->flags & F_ELEM)) ||
            (op->out[0] != y && plan->place[op->out[0]->id].kind != TL_NEST_VIRTUAL) ||
            !leads_to(plan, op->out[0], y, ahead + more, r, left))
            return false;
    }
    return true;
}

/* The nest's value is the next one of a loop by 1, in whose home it is. */
static const TlNestReach *find_reach(const TlNests *plan, const TlNest *n)
{
    enum { MOST_VISITED = 512 };
    const TlValue *y = n->kind == TL_NEST_FILL && n->own ? n->value : NULL;
    const TlOp *loop = y && y->def ? y->def->block->parent : NULL;
    const TlUse *use = y ? y->uses : NULL;
    int left = MOST_VISITED;
    uint64_t step;
    TlNestReach r = {.loop = loop};
    if (!loop || loop->opcode != TL_OP_FOR || !use || use->user->opcode != TL_OP_YIELD ||
        use->user->block != y->def->block || !tl_value_is_const(tl_in(loop, 2), &step) || step != 1)
        return NULL;
    const TlValue *a = loop->regions[0]->args[1 + (use - use->user->in)],
                  *result = loop->out[use - use->user->in];
    if (plan->place[y->id].buffer != plan->place[a->id].buffer || !find_used(plan, result, &r) ||
        !leads_to(plan, a, y, 0, &r, &left))
        return NULL;
    bool goes = n->form.rank == n->type.rank && r.dim != n->lane &&
                n->form.extent[r.dim] == n->type.shape[r.dim] && r.more > 0 &&
                n->type.shape[r.dim] >= LEAST_ROWS;
    TlNestReach *reach = goes ? TL_NEW(plan->arena, TlNestReach) : NULL;
    if (reach)
        *reach = r;
    return reach;
}

void tl_nest_find_wanted(TlNests *plan)
{
    const TlFn *fn = plan->fn;
    Wants w = {plan, TL_NEW_ARRAY(plan->arena, const TlNest *, fn->nvalues + 1),
               TL_NEW_ARRAY(plan->arena, const TlValue *, fn->nvalues + 1),
               TL_NEW_ARRAY(plan->arena, bool, fn->nvalues + 1), true};
    TL_VEC(const TlOp *) ops = {0};
    if (plan->check)
        return;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        tl_vec_push(plan->arena, &ops, op);
    while (w.grew) { /* from users to what they use: once more for each loop in another */
        w.grew = false;
        for (uint32_t i = ops.len; i-- > 0;)
            want_for(&w, ops.data[i]);
    }
    for (uint32_t i = 0; i < plan->all.len; i++) {
        TlNest *n = plan->all.data[i];
        bool may = may_box(&w, n);
        if (!may)
            find_chosen(&w, n);
        if (!may && !n->chosen[1] && !n->chosen_row && !n->unrolled && !n->keep && !n->columns &&
            !n->boxed && n->split != TL_NEST_ONE)
            n->reach = find_reach(plan, n);
        if (!may)
            continue;
        n->boxed = w.by[n->value->id]->boxed;
        n->boxed_axes = w.by[n->value->id]->boxed_axes;
    }
}
