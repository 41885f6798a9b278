/* Programs of which everything is inside the arrays: most of a grid's.
 *
 * A program of few vectors takes as long to find out what is inside as to compute: the first and
 * the last position inside of each slice, what of that all accesses share, and in each row where
 * tests begin. So such a program asks first whether all is inside. If so, it goes on in code of its
 * own, without tests, in which every loop's end is known.
 *
 *     if (start <= extent - width && ...)   1. what is asked: only scalars that come before tiles,
 *                                              loops from their first number to the last
 *         the ops, all inside               2. what is saved: more than a part of the work
 *     else                                  3. no loops over what registers hold: nests of a row
 *         the ops, tested                      read it once
 */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

/* Values of all nests: code that is made twice. Work, in vectors: of an access; of an axis that is
 * asked, as a slice or as an index tile within bounds; of a row's beginning and end; scalars that
 * take as long as a vector. At least so great a part must be saved. */
enum {
    MOST_VALUES = 100,
    MOST_IN_LOOPS = 250, /* the same of a program with loops, which take longer than their code */
    ACCESS_WORK = 4,
    SLICE_WORK = 8,
    TILE_WORK = 24,
    ROW_WORK = 12,
    SCALARS = 4,
    PART = 8,
    REPEATED = 64, /* values of a nest that is made once for each vector, all together */
    ROWS_HELD = 4  /* of a row like it, so many fill the registers */
};

/* ---- 1. what is asked ---- */

/* Is the op computed before any tile? */
static bool is_early(const TlNests *plan, const bool *early, const TlOp *op)
{
    if (op->nregions || op->nout != 1 ||
        (op->out[0]->type->kind == TL_TILE && op->out[0]->type->rank))
        return false;
    bool loads = op->opcode == TL_OP_LOAD && tl_is_constant_memory(tl_op_place(op).base) &&
                 tl_op_place(op).axes;
    bool is = loads || tl_op_info(op->opcode)->flags & F_PURE;
    for (uint32_t i = 0; is && i < op->nin; i++)
        is = !tl_in(op, i)->def || early[tl_in(op, i)->id];
    return is && !plan->check;
}

static void note_early(TlNests *plan, const TlBlock *block)
{
    for (const TlOp *op = block->first; op; op = op->next)
        if (is_early(plan, plan->early, op))
            plan->early[op->out[0]->id] = true;
}

/* The body of a loop that is all of the program but for scalars, and carries nothing: each trip is
 * asked by itself. NULL: there is no such loop. */
static const TlBlock *find_trips(const TlNests *plan)
{
    const TlOp *loop = plan->fn->body->last->prev;
    if (!loop || loop->opcode != TL_OP_FOR || loop->nout)
        return NULL;
    for (const TlOp *op = loop->prev; op; op = op->prev)
        if (op->nout != 1 || !plan->early[op->out[0]->id])
            return NULL;
    return loop->regions[0];
}

static void find_early(TlNests *plan)
{
    plan->early = TL_NEW_ARRAY(plan->arena, bool, plan->fn->nvalues + 1);
    plan->asked_in = plan->fn->body;
    note_early(plan, plan->asked_in);
    const TlBlock *trips = find_trips(plan);
    if (!trips)
        return;
    plan->asked_in = trips;
    note_early(plan, trips);
}

const TlNestAccess *tl_nest_asked(const TlNests *plan, const TlOp *op)
{
    const TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
    bool before = op->nout == 1 && plan->early[op->out[0]->id];
    return a && a->place.axes && a->has_interval && a->bounds && !a->asks && !before ? a : NULL;
}

bool tl_nest_asks_axis(const TlNestAccess *a, uint32_t i)
{
    TL_ASSERT(i < a->place.naxes, "axis %u of %u", i, a->place.naxes);
    return a->place.axes[i].kind != TL_AXIS_TILE || a->axis[i].affine.is;
}

/* Is the one number that an index tile is everywhere known before any tile? */
static bool is_bound_known(const TlNests *plan, const TlValue *tile)
{
    uint64_t bits;
    return !tile || tl_value_is_const(tile, &bits) ||
           tl_nest_spread(plan, tl_in(tile->def, 0)) == 0;
}

/* Is it known before any tile between which places the axis is accessed? A pattern's place is asked
 * as a whole, where the access stands. */
static bool is_asked_early(const TlNests *plan, const TlNestAccess *a, uint32_t i)
{
    const TlNestAffine *f = &a->axis[i].affine;
    bool is = f->is || tl_nest_spread(plan, a->place.index[i].value) >= 0;
    for (uint32_t k = 0; f->is && k < f->nterms; k++)
        is &= tl_nest_spread(plan, f->term[k]) >= 0 &&
              (!f->period || !f->term[k]->def || plan->early[f->term[k]->id]);
    is &= !f->period || a->op->block == plan->asked_in;
    return is && is_bound_known(plan, f->least) && is_bound_known(plan, f->most);
}

/* ---- 2. what is saved ---- */

static const char *why_op_not(const TlNests *plan, const TlOp *op)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (op->opcode == TL_OP_DOT)
        return "its product is most of the work";
    if (flags & F_ATOMIC || op->opcode == TL_OP_PRINT || op->opcode == TL_OP_ASSERT ||
        op->opcode == TL_OP_HISTOGRAM)
        return "it does more than to load and store";
    const TlNestAccess *a = tl_nest_asked(plan, op);
    const TlValue *base = a ? a->place.base : NULL;
    if (base && base->def && !plan->early[base->id])
        return "its arrays follow from tiles or loops";
    for (uint32_t i = 0; a && i < a->place.naxes; i++)
        if (tl_nest_asks_axis(a, i) && !is_asked_early(plan, a, i))
            return "where it loads or stores follows from tiles or loops";
    return NULL;
}

int64_t tl_nest_times_of(const TlNests *plan, const TlOp *op)
{
    enum { MANY = 1 << 20 };
    return tl_likely_runs(op->block, plan->asked_in->parent, MANY);
}

static int64_t work_of_axes(const TlNests *plan)
{
    static const int64_t WORK[] = {
        [TL_AXIS_SCALAR] = 0, [TL_AXIS_SLICE] = SLICE_WORK, [TL_AXIS_TILE] = TILE_WORK};
    int64_t work = 0;
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        const TlNestAccess *a = tl_nest_asked(plan, op);
        for (uint32_t i = 0; a && i < a->place.naxes; i++)
            work += tl_nest_asks_axis(a, i)
                        ? WORK[a->place.axes[i].kind] * tl_nest_times_of(plan, op)
                        : 0;
    }
    return work;
}

static const char FEW_TESTS[] = "tests are a small part of the work";

static const char *why_not(const TlNests *plan)
{
    int64_t work = 0, values = 0, rows = 0, most = MOST_VALUES;
    bool again = false; /* in each trip of a loop */
    for (const TlOp *op = plan->asked_in->first; op;
         op = tl_walk_next(op, plan->asked_in->parent)) {
        const char *why = why_op_not(plan, op);
        most = tl_is_loop(op) ? MOST_IN_LOOPS : most;
        if (why)
            return why;
    }
    for (uint32_t i = 0; i < plan->all.len; i++) {
        const TlNest *n = plan->all.data[i];
        int64_t elems = n->form.rank ? n->form.elems : 1,
                row = n->form.rank ? n->form.padded[n->form.lane] : 1,
                times = tl_nest_times_of(plan, n->op);
        work += times * elems / (n->width > 1 ? n->width : SCALARS) *
                (n->work + 1 + ACCESS_WORK * (int64_t)n->asks.len);
        values += n->nvalues;
        if (n->split == TL_NEST_TESTED)
            return "it is tested at each vector";
        again |= tl_nest_is_split(n) && tl_enclosing_loop(n->op);
        if (tl_nest_is_split(n) && !n->unrolled && (n->split == TL_NEST_SPLIT || elems > row))
            rows += times * elems / row;
    }
    int64_t saved = work_of_axes(plan) + rows * ROW_WORK;
    return !rows && !again       ? "it asks once for all of a tile"
           : values > most       ? "it would be too much code"
           : saved * PART < work ? FEW_TESTS
                                 : NULL;
}

/* ---- 3. no loops ---- */

/* Rows of few vectors: what several nests load and compute of them then is the same, in registers,
 * and a program so short that the next one begins meanwhile. */
static bool is_repeated(const TlNests *plan, const TlNest *n)
{
    if (n->split != TL_NEST_SPLIT || n->unrolled || n->lane < 0 || n->width < 2)
        return false;
    int64_t vectors = n->form.padded[n->lane] / n->width;
    int64_t registers =
        n->form.padded[n->lane] * tl_dtype_bytes(n->type.dtype) / plan->m.vector_bytes;
    return vectors > 1 && registers * ROWS_HELD <= plan->m.nregs &&
           vectors * n->nvalues <= REPEATED;
}

static void repeat(const TlNests *plan)
{
    for (uint32_t i = 0; i < plan->all.len; i++)
        plan->all.data[i]->repeated = is_repeated(plan, plan->all.data[i]);
}

void tl_nest_find_whole(TlNests *plan)
{
    bool asks = false;
    find_early(plan);
    tl_nest_find_ranges(plan);
    for (uint32_t i = 0; i < plan->all.len && !plan->check; i++)
        asks |= tl_nest_is_split(plan->all.data[i]);
    if (!asks)
        return;
    plan->unwhole = why_not(plan);
    plan->whole = !plan->unwhole;
    plan->may_be_whole = plan->whole || plan->unwhole == FEW_TESTS;
    if (plan->whole)
        repeat(plan);
}
