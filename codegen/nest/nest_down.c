/* Nests that fill homes and go down the rows of a vector, with rows further on in registers.
 *
 *     down[i] = k * (grey[i] + grey[i + 6]) + ...      of each vector: six rows of grey, then
 *                                                      row by row the next one of it, and down[i]
 *
 * A nest goes over rows, and over the vectors of each. What it takes of rows further on, it would
 * load or compute again for each row: instead it goes down the rows of one vector, then of the
 * next one, and carries these from row to row.
 *
 *   1. may     values in loops that are carried or yielded (nest_trips.c): such a value needs no
 *              home then
 *   2. visit   what the nest computes, and how many rows further on
 *   3. price   loads that it saves, beside those before the first row; registers
 *
 * Not where something is tested, or computed in branches. */
#include "codegen/nest/nest.h"

enum {
    LEAST_DOWN = 4,  /* rows, */
    LEAST_LOADS = 4, /* loads of a home for each row that become one, */
    HELD = 2,        /* the part of the registers that hold them: one of so many, */
    MOST_AHEAD = 31, /* rows further on: bits */
    MOST_VISITED = 256
};

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 0;
}

/* ---- 1. may ---- */

bool tl_nest_may_go_down(const TlNests *plan, const TlOp *gather, const TlOp *root)
{
    const TlValue *y = root && root->nout == 1 ? root->out[0] : NULL;
    const TlOp *loop = root ? root->block->parent : NULL;
    bool may = y && loop && loop->opcode == TL_OP_FOR && y->type->rank == 2 &&
               y->type->shape[0] >= LEAST_DOWN && y->type->shape[1] > 1 && !y->type->ptr &&
               plan->place[y->id].kind == TL_NEST_HOME && y->uses && !y->uses->next &&
               y->uses->user == loop->regions[0]->last;
    return may && tl_attr_int(gather, TL_ATTR_AXIS, 0) == 0 &&
           tl_same_shape(y->type, gather->out[0]->type) && tl_nest_rows_ahead(plan, gather) > 0;
}

/* ---- 2. visit ---- */

typedef struct Down {
    TlNests *plan;
    TlNest *nest;
    TL_VEC(const TlValue *) others; /* tiles that are not taken row for row */
    int left;
    bool failed, fuses; /* some products with sums */
} Down;

static TlNestDown *of_value(Down *d, TlValue *v, bool add)
{
    TlNest *n = d->nest;
    for (uint32_t i = 0; i < n->down.len; i++)
        if (n->down.data[i]->value == v)
            return n->down.data[i];
    if (!add)
        return NULL;
    TlNestDown *made = TL_NEW(d->plan->arena, TlNestDown);
    made->value = v;
    made->is_home = d->plan->place[v->id].kind == TL_NEST_HOME;
    tl_vec_push(d->plan->arena, &n->down, made);
    return made;
}

static void visit(Down *d, TlValue *v, int64_t ahead, bool gathered);

static void visit_operands(Down *d, const TlOp *op, int64_t ahead)
{
    int64_t more = op->opcode == TL_OP_GATHER && tl_attr_int(op, TL_ATTR_AXIS, 0) == 0
                       ? tl_nest_rows_taken(d->plan, op)
                       : -1;
    if (more >= 0) {
        visit(d, tl_in(op, 0), ahead + more, true); /* the index is known */
        return;
    }
    bool by_row = tl_op_info(op->opcode)->flags & F_ELEM;
    d->failed |= !by_row && op->opcode == TL_OP_GATHER;
    for (uint32_t i = 0; i < op->nin; i++) {
        if (by_row)
            visit(d, tl_in(op, i), ahead, false);
        else
            tl_vec_push(d->plan->arena, &d->others, tl_in(op, i));
    }
}

/* What is computed, `ahead` rows further on. */
static void visit(Down *d, TlValue *v, int64_t ahead, bool gathered)
{
    const TlNestPlace *place = &d->plan->place[v->id];
    bool is_home = place->kind == TL_NEST_HOME, own = place->buffer == d->nest->home;
    if (!is_tile(v) || (is_home && own)) /* rows that are not written yet are as they were */
        return;
    d->failed |= --d->left < 0 || ahead > MOST_AHEAD || v->type->rank != 2 || v->type->ptr;
    if (d->failed)
        return;
    TlNestDown *has = of_value(d, v, gathered);
    if (has) {
        has->ahead = ahead > has->ahead ? (int)ahead : has->ahead;
        has->rows |= 1u << ahead;
    }
    const TlOp *op = v->def;
    if (is_home)
        return;
    d->fuses |= op && op->opcode == TL_OP_FMA;
    d->failed |= !op || tl_map_get_ptr(&d->plan->rare, op) ||
                 tl_map_get_ptr(&d->plan->spreads, op) || op->opcode == TL_OP_LOAD;
    if (!d->failed)
        visit_operands(d, op, ahead);
}

/* Is something carried needed in another way, too? Values are looked at up to their homes. */
static bool is_needed(Down *d, const TlValue *v)
{
    if (--d->left < 0)
        return true;
    for (uint32_t i = 0; i < d->nest->down.len; i++)
        if (d->nest->down.data[i]->value == v)
            return true;
    if (!is_tile(v) || d->plan->place[v->id].kind == TL_NEST_HOME || !v->def)
        return false;
    for (uint32_t i = 0; i < v->def->nin; i++)
        if (is_needed(d, tl_in(v->def, i)))
            return true;
    return false;
}

/* ---- 3. price ---- */

/* A home's rows: are they loaded so often that carrying them takes less? */
static bool saves(const TlNest *n, const TlNestDown *v)
{
    int64_t loads = __builtin_popcount(v->rows), rows = n->form.extent[0];
    return loads >= LEAST_LOADS && (loads - 1) * rows > 2 * v->ahead;
}

/* Do registers hold so many rows of homes? An fma that the CPU does not have needs them itself. */
static bool fits(const Down *d, int64_t held)
{
    const TlNest *n = d->nest;
    int64_t bytes = n->width * (int64_t)tl_gen_elem_bytes(&n->type),
            registers = (bytes + d->plan->m.vector_bytes - 1) / d->plan->m.vector_bytes;
    return HELD * held * registers <= d->plan->m.nregs && (d->plan->m.fma || !d->fuses);
}

static void find_down(TlNests *plan, TlNest *n)
{
    Down d = {.plan = plan, .nest = n, .left = MOST_VISITED};
    int64_t held = 0;
    uint32_t kept = 0;
    bool homes = false;
    d.fuses = n->value->def->opcode == TL_OP_FMA;
    visit_operands(&d, n->value->def, 0);
    for (uint32_t i = 0; i < d.others.len && !d.failed; i++)
        d.failed = is_needed(&d, d.others.data[i]);
    for (uint32_t i = 0; i < n->down.len && !d.failed; i++) {
        TlNestDown *v = n->down.data[i];
        if (v->is_home && !saves(n, v))
            continue;
        held += v->ahead;
        homes |= v->is_home;
        n->down.data[kept++] = v;
        d.failed = !v->is_home && !n->op->block->parent; /* it is little work at each use */
    }
    n->down.len = kept;
    if (d.failed || held > TL_NEST_SUMS || (homes && !fits(&d, held)))
        n->down.len = 0;
}

void tl_nest_find_down(TlNests *plan)
{
    for (uint32_t i = 0; i < plan->all.len; i++) {
        TlNest *n = plan->all.data[i];
        if (n->kind == TL_NEST_FILL && n->own && !plan->check && n->split == TL_NEST_PLAIN &&
            !n->unrolled && !n->keep && !n->columns && !n->boxed && !n->chosen[1] &&
            !n->chosen_row && !n->words && n->form.rank == 2 && n->value->type->rank == 2 &&
            n->lane == 1 && n->width > 1 && n->form.extent[0] >= LEAST_DOWN)
            find_down(plan, n);
    }
}

bool tl_nest_goes_down(const TlNests *plan)
{
    for (uint32_t i = 0; i < plan->all.len; i++)
        for (uint32_t k = 0; k < plan->all.data[i]->down.len; k++)
            if (!plan->all.data[i]->down.data[k]->is_home)
                return true;
    return false;
}
