/* Programs that run abreast: neighbours along the grid's second axis, which load the same rows.
 *
 * A program that stores one row of a stencil loads the rows around it, and the next one loads most
 * of these again, and computes the same of them. Where all that some such programs load and store
 * is inside the arrays, one nest runs them together, vector by vector. Their loads are at distances
 * that are known here, so LLVM sees which of them are the same, and what is computed of those.
 *
 *     program j             vector i:   load x[j - 1], x[j], x[j + 1];  store y[j]
 *     program j + 1     =>              load x[j + 2];                  store y[j + 1]
 *
 *   1. what   programs that have code without tests (nest_whole.c), or could have, of one nest,
 *             which stores
 *   2. drift  by how much each scalar index grows from program to program (nest_drift.c)
 *   3. price  loads that are left: as many programs as save a part of them, and as code is short
 *   4. begin  where a grid's first rows load rows before the arrays, those that run abreast begin
 *             behind them, so that no more run one by one */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    MOST_TIMES = 4,
    LEAST_SAVED = 4,   /* one of so many loads */
    MOST_ROWS = 14,    /* that are loaded or stored: a register for each one's address */
    LEAST_LOADS = 3,   /* of a program, of rows that another one loads, too */
    MOST_LOADS = 32,   /* of a program */
    MOST_VALUES = 256, /* of all of them */
    HELD = 2 /* the part of the registers that loads which are shared fill: one of so many */
};

typedef struct Abreast {
    const TlNests *plan;
    const TlNest *nest;
    TlNestDrifts drifts;
    TlNestAbreast found;
    const TlNestAccess *load[MOST_LOADS];
    int n;
} Abreast;

/* ---- 1. what ---- */

static bool has_regions(const TlBlock *b)
{
    bool has = false;
    for (const TlOp *op = b->first; op; op = op->next)
        has |= op->nregions > 0;
    return has;
}

static bool may_run_abreast(const TlNests *plan, const TlNest *n)
{
    return plan->may_be_whole && plan->all.len == 1 && !plan->buffers.len &&
           tl_nest_at_once(plan, 1) == 1 && plan->asked_in == plan->fn->body &&
           !has_regions(plan->fn->body) && n->kind == TL_NEST_STORE && tl_nest_is_split(n) &&
           n->lane >= 0 && n->width > 1 && !n->joined && !n->unrolled && !n->columns &&
           !tl_nest_slides(plan, n) && !n->next.len && !n->ahead && !n->stored_by &&
           n->form.extent[n->lane] % n->width == 0;
}

/* ---- 2. drift ---- */

/* An index as a scalar and a number; NULL: it is a number alone. */
static const TlValue *split_index(const TlValue *v, int64_t *number)
{
    TlWideInt n;
    if (!tl_const_int_value(v, &n))
        return tl_nest_without_number(v, number);
    *number = (int64_t)n;
    return NULL;
}

/* By how much is a scalar more in the next program? */
static bool find_drift(Abreast *a, const TlValue *v, int64_t *out_by)
{
    *out_by = 0;
    if (!v)
        return true;
    a->found.known[v->id] = tl_nest_drift(&a->drifts, v, &a->found.by[v->id]);
    *out_by = a->found.by[v->id];
    return a->found.known[v->id];
}

static void find_loads(Abreast *a)
{
    a->found.tests_lanes = a->nest->split == TL_NEST_SPLIT;
    for (uint32_t i = 0; i < a->nest->asks.len && a->n < MOST_LOADS; i++) {
        const TlNestAccess *x = a->nest->asks.data[i].access;
        for (uint32_t k = 0; x->place.axes && k < x->place.naxes; k++) {
            int64_t number, by;
            const TlValue *v = split_index(x->place.index[k].value, &number);
            bool known = x->place.axes[k].kind != TL_AXIS_TILE && find_drift(a, v, &by);
            if (x->axis[k].dim == a->nest->lane)
                a->found.tests_lanes &= known && !by;
        }
        if (x->loads && x->constant && x->place.axes && !x->place.mask && !x->place.pointwise)
            a->load[a->n++] = x;
    }
}

/* ---- 3. price ---- */

/* Is load x of program r at the place of load y of program s, or with `row`, a number of elements
 * from it? */
static bool is_beside(const Abreast *a, const TlNestAccess *x, int r, const TlNestAccess *y, int s,
                      bool row)
{
    const TlPlace *p = &x->place, *q = &y->place;
    bool same = p->base == q->base && p->naxes == q->naxes;
    for (uint32_t i = 0; same && i < p->naxes; i++) {
        const TlAxis *b = &p->axes[i], *c = &q->axes[i];
        int64_t from, to, by = 0;
        const TlValue *v = split_index(p->index[i].value, &from),
                      *w = split_index(q->index[i].value, &to);
        bool known = b->kind != TL_AXIS_TILE && (!v || a->found.known[v->id]);
        if (known && v)
            by = a->found.by[v->id];
        same = b->kind == c->kind && b->width == c->width && b->step == c->step && v == w &&
               (known || r == s) && (from + r * by == to + s * by || (row && x->axis[i].stride));
    }
    return same;
}

static bool is_same(const Abreast *a, const TlNestAccess *x, int r, const TlNestAccess *y, int s)
{
    return is_beside(a, x, r, y, s, false);
}

/* Loads of the first `times` programs that none before has at their place, or in their row. */
static int count_distinct(const Abreast *a, int times, bool rows)
{
    int n = 0;
    for (int r = 0; r < times; r++)
        for (int i = 0; i < a->n; i++) {
            bool seen = false;
            for (int k = 0; !seen && k < r * a->n + i; k++)
                seen = is_beside(a, a->load[i], r, a->load[k % a->n], k / a->n, rows);
            n += !seen;
        }
    return n;
}

/* Loads of a program that the next one has, too, of rows: not those that are the same in all. */
static int count_shared(const Abreast *a)
{
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        bool shared = false;
        for (int k = 0; k < a->n; k++)
            shared |= is_same(a, a->load[i], 0, a->load[k], 1);
        n += shared && !is_same(a, a->load[i], 0, a->load[i], 1);
    }
    return n;
}

static bool pays(Abreast *a, int times)
{
    const TlNest *n = a->nest;
    int64_t registers = (int64_t)n->width * tl_dtype_bytes(n->type.dtype) / a->plan->m.vector_bytes;
    a->found.times = times;
    a->found.loads = times * a->n;
    a->found.distinct = count_distinct(a, times, false);
    return n->nvalues * (uint32_t)times <= MOST_VALUES &&
           (a->found.loads - a->found.distinct) * LEAST_SAVED >= a->found.loads &&
           count_distinct(a, times, true) + times <= MOST_ROWS &&
           (registers > 1 ? registers : 1) * count_shared(a) * HELD <= a->plan->m.nregs;
}

/* ---- 4. begin ---- */

/* Programs at the grid's beginning of which a row is outside: so many that a row's number, which
 * grows from 0, makes up for what is taken from it. */
static int count_before(const Abreast *a)
{
    int64_t first = 0;
    for (int i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < a->load[i]->place.naxes; k++) {
            int64_t number;
            const TlValue *v = split_index(a->load[i]->place.index[k].value, &number);
            int64_t by = v && a->found.known[v->id] ? a->found.by[v->id] : 0;
            int64_t before = by > 0 && number < 0 ? (by - 1 - number) / by : 0;
            first = before > first ? before : first;
        }
    return (int)(first % a->found.times);
}

void tl_nest_find_abreast(TlNests *plan)
{
    Abreast a = {.plan = plan, .nest = plan->all.len ? plan->all.data[0] : NULL};
    if (!a.nest || !may_run_abreast(plan, a.nest))
        return;
    a.drifts = (TlNestDrifts){.arena = plan->arena, .axis = 1, .seen = {.arena = plan->arena}};
    a.found.known = TL_NEW_ARRAY(plan->arena, bool, plan->fn->nvalues + 1);
    a.found.by = TL_NEW_ARRAY(plan->arena, int64_t, plan->fn->nvalues + 1);
    find_loads(&a);
    if (count_shared(&a) < LEAST_LOADS)
        return;
    for (int times = MOST_TIMES; times > 1; times /= 2)
        if (pays(&a, times)) {
            a.found.first = count_before(&a);
            TlNestAbreast *found = TL_NEW(plan->arena, TlNestAbreast);
            *found = a.found;
            plan->abreast = found;
            plan->whole = true;
            plan->unwhole = NULL;
            return;
        }
}
