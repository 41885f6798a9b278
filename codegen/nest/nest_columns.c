/* Homes that a store takes rows from, held in registers instead.
 *
 * A filter in two steps computes a home of rows and stores sums of some of them. In programs of
 * which all is inside (nest_whole.c), the nest that stores can go down columns: at each vector
 * along the lanes it computes the rows of the home one after the other, as the window slides, and
 * each once. Nothing goes through memory.
 *
 *     fill home: each row, each vector          each vector:
 *     store:     each row, each vector,     ->      row 0, row 1, row 2, store, row 3, store, ...
 *                of 3 rows of the home
 *
 *   1. store    whole vectors, some rows
 *   2. home     filled from constant memory, so that it may be computed later; needed for nothing
 *               but such rows, as numbers that are known
 *   3. price    rows that the program before has computed (nest_keep.c) are computed again; what
 *               registers must hold, how long the code is
 *
 * Homes that are computed from rows of other ones join, last first. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    MOST_ROWS = 16,    /* that are stored */
    MOST_CODE = 384,   /* values of all rows of a column */
    MOST_DEPTH = 64,   /* of values that one is computed from */
    HELD = 2,          /* the part of the registers that hold rows: one of so many */
};

typedef struct Columns {
    TlNests *plan;
    TlNest *store;
    int rows;       /* the dimension */
    int64_t code;   /* values of all rows */
    int64_t held;   /* rows that are held at a time */
} Columns;

/* The only dimension besides the lanes' of which there are several positions; -1: none, or more. */
static int rows_of(const TlNestForm *f)
{
    int rows = -1;
    for (int d = 0; d < f->rank; d++) {
        if (d == f->lane || f->extent[d] == 1)
            continue;
        if (rows >= 0)
            return -1;
        rows = d;
    }
    return rows;
}

static bool has_whole_vectors(const TlNest *n)
{
    int lane = n->form.lane;
    return n->form.rank > 1 && n->width > 1 && n->lane == lane &&
           n->form.extent[lane] == n->form.padded[lane] && !n->unrolled && !n->stored_by &&
           tl_nest_is_split(n);
}

/* ---- 2. homes ---- */

static TlNest *fill_of(const Columns *c, const TlValue *v)
{
    const TlNestPlace *place = &c->plan->place[v->id];
    TlNest *n = v->def && place->kind == TL_NEST_HOME ? tl_nest_of(c->plan, v->def, 0) : NULL;
    return n && n->kind == TL_NEST_FILL && n->own && n->value == v ? n : NULL;
}

/* Rows of a gather's operand that are known, in their order; NULL: it is no such. */
static const TlNestMove *rows_taken(const Columns *c, const TlOp *op)
{
    const TlNestMove *m = tl_nest_move_of(c->plan, op, c->store->lane);
    bool takes = m && m->rows && m->known && m->window.step == 1 &&
                 tl_attr_int(op, TL_ATTR_AXIS, 0) == c->rows &&
                 c->plan->place[op->out[0]->id].inside;
    return takes ? m : NULL;
}

/* Is v needed for nothing but what is stored, at the same position or by rows that are taken? Of
 * those that are taken from v: the first, the last, how many times. */
static bool leads_to_store(const Columns *c, const TlValue *v, int64_t *low, int64_t *high,
                           int *taken, int depth)
{
    const TlNestForm *f = &c->store->form;
    if (depth > MOST_DEPTH || v->type->rank != f->rank ||
        v->type->shape[f->lane] != f->extent[f->lane])
        return false;
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = u->user;
        const TlNestMove *m = op->opcode == TL_OP_GATHER ? rows_taken(c, op) : NULL;
        uint32_t k = (uint32_t)(u - op->in);
        if (op == c->store->op && c->store->value == v && tl_op_place(op).mask != v)
            continue;
        bool plain = tl_op_info(op->opcode)->flags & F_ELEM || op->opcode == TL_OP_CONVERT;
        if (op->nout != 1 || (!plain && (!m || k != 0)))
            return false;
        int64_t unused_low = 0, unused_high = 0;
        int unused = 0;
        const TlValue *out = op->out[0];
        const TlNestPlace *place = &c->plan->place[out->id];
        if (place->kind == TL_NEST_HOME ? place->columns != c->store
                                        : !leads_to_store(c, out, &unused_low, &unused_high,
                                                          &unused, depth + 1))
            return false;
        if (m) {
            int64_t at = m->window.start;
            *low = !*taken || at < *low ? at : *low;
            *high = !*taken || at > *high ? at : *high;
            ++*taken;
        } else if (depth == 0 && c->plan->place[v->id].kind == TL_NEST_HOME) {
            return false; /* of another shape, or in another order */
        }
    }
    return true;
}

/* Is what v is computed from, but homes, there at any time? */
static bool may_wait(const Columns *c, const TlValue *v, bool own, TlMap *seen, int depth)
{
    const TlOp *op = v->def;
    if (v->type->kind != TL_TILE || v->type->rank == 0 || tl_map_get(seen, v->id, NULL))
        return true;
    tl_map_put(seen, v->id, 1);
    if (!own && c->plan->place[v->id].kind == TL_NEST_HOME) /* read, or computed with these */
        return op && c->plan->place[v->id].columns == NULL;
    if (depth > MOST_DEPTH || !op)
        return false;
    if (op->opcode == TL_OP_LOAD && !tl_is_constant_memory(tl_in(op, 0)))
        return false;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!may_wait(c, tl_in(op, i), false, seen, depth + 1))
            return false;
    return true;
}

/* ---- 3. price ---- */

static bool join(Columns *c, TlNest *n)
{
    const TlNestForm *f = &n->form;
    int64_t low = 0, high = 0, rows = f->extent[c->rows], stored = c->store->form.extent[c->rows];
    int taken = 0;
    TlMap seen = {.arena = c->plan->arena};
    if (rows_of(f) != c->rows || f->lane != c->store->lane ||
        f->padded[f->lane] != f->extent[f->lane] || c->plan->buffers.data[n->home].small ||
        n->unrolled || n->op->block != c->store->op->block ||
        tl_map_get(&c->plan->fused, (uint64_t)(uintptr_t)n->op, NULL) ||
        !leads_to_store(c, n->value, &low, &high, &taken, 0) || taken < 2 ||
        !may_wait(c, n->value, true, &seen, 0))
        return false;
    int64_t held = c->held + high - low + 1, code = c->code + rows * (n->nvalues + 1),
            again = (rows - stored) * n->nvalues, saved = stored * (taken + 1);
    if (again > saved || code > MOST_CODE || held > c->plan->m.nregs / HELD)
        return false;
    c->held = held;
    c->code = code;
    n->columns = c->store;
    c->plan->place[n->value->id].columns = c->store;
    return true;
}

static void find_columns(TlNests *plan, TlNest *store)
{
    Columns c = {.plan = plan, .store = store, .rows = rows_of(&store->form)};
    if (store->kind != TL_NEST_STORE || store->joined || !has_whole_vectors(store) || c.rows < 0 ||
        store->form.extent[c.rows] > MOST_ROWS)
        return;
    c.code = store->form.extent[c.rows] * (store->nvalues + 1);
    bool any = false;
    for (const TlOp *op = store->op->prev; op; op = op->prev) {
        TlNest *n = op->nout == 1 ? fill_of(&c, op->out[0]) : NULL;
        any |= n && join(&c, n);
    }
    if (any) {
        store->columns = store;
        store->rows_dim = c.rows;
    }
}

void tl_nest_find_columns(TlNests *plan)
{
    for (uint32_t i = 0; plan->whole && i < plan->all.len; i++)
        find_columns(plan, plan->all.data[i]);
}
