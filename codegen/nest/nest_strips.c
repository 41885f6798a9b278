/* Strips: homes that registers hold, beside those of a vector or two (nest_place.c).
 *
 * A tile of a few vectors that a loop carries, or whose rows are shorter than a register, would go
 * through memory in each trip. LLVM keeps it in registers if each access to it has a place that is
 * known when code is made, and so all nests over it are unrolled: made once for each vector.
 *
 *   1. candidate  few vectors without padding; a nest in a loop touches it, or rows are short
 *   2. refuse     homes that a nest touches which cannot be unrolled, or would become too long;
 *                 more at a time than there are registers
 *   3. unroll     the nests that touch those that are left */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    MOST_VALUES = 400, /* that an unrolled nest computes, vector after vector */
    MOST_DEPTH = 64,   /* of values that one is computed from */
};

typedef struct Strips {
    TlNests *plan;
    bool *is;       /* by buffer: a strip, so far */
    bool *wanted;   /* by buffer: it pays */
    bool *touched;  /* by buffer: by the nest that is looked at */
    uint32_t *seen; /* by value id: by which question, an odd number where places are not known */
    uint32_t asks;
} Strips;

/* ---- what a nest touches ---- */

/* Do positions of the op's result give positions of its operands that are known, whole vectors, if
 * the result's are? */
static bool keeps_places(const TlNests *plan, const TlOp *op)
{
    TlNestWay way = plan->place[op->out[0]->id].way;
    if (op->opcode == TL_OP_GATHER)
        return tl_nest_takes_window(way);
    if (op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_REGROUP)
        return way == TL_NEST_RENAMES || way == TL_NEST_READS_HOME;
    return op->opcode != TL_OP_TRANS;
}

/* Marks the homes that v is computed from; false: of one, places are not known. */
static bool touch(Strips *s, const TlValue *v, bool own, bool known, int depth)
{
    uint32_t question = s->asks + !known;
    if (v->type->kind != TL_TILE || v->type->rank == 0 || s->seen[v->id] >= question)
        return true;
    s->seen[v->id] = question;
    const TlNestPlace *place = &s->plan->place[v->id];
    if (!own && place->kind == TL_NEST_HOME) {
        s->touched[place->buffer] = true;
        return known && depth < MOST_DEPTH;
    }
    bool all = depth < MOST_DEPTH;
    for (uint32_t i = 0; v->def && i < v->def->nin; i++)
        all &= touch(s, tl_in(v->def, i), false, known && keeps_places(s->plan, v->def), depth + 1);
    return all;
}

static void touch_home(Strips *s, int32_t home)
{
    if (home >= 0)
        s->touched[home] = true;
}

static int64_t positions(const TlNest *n)
{
    int64_t all = 1;
    for (int d = 0; d < n->form.rank; d++)
        all *= d == n->lane ? n->form.padded[d] / n->width : n->form.extent[d];
    return all;
}

/* Does a reduction go over one row of vectors that need no tests? */
static bool is_one_row(const TlNest *n)
{
    for (int d = 0; d < n->form.rank; d++)
        if (d != n->axis && n->form.extent[d] > 1)
            return false;
    return n->along && n->parts == 1 && n->split == TL_NEST_PLAIN;
}

static bool can_unroll(const TlNest *n)
{
    bool may = n->kind == TL_NEST_FILL || n->kind == TL_NEST_COPY || n->kind == TL_NEST_STORE ||
               (n->kind == TL_NEST_REDUCE && is_one_row(n));
    return may && !n->stored_by && n->form.rank &&
           positions(n) * (n->nvalues + 1) <= MOST_VALUES;
}

/* Marks what n touches; can it be unrolled? */
static bool look_at(Strips *s, const TlNest *n)
{
    s->asks += 2;
    for (uint32_t i = 0; i < s->plan->buffers.len; i++)
        s->touched[i] = false;
    touch_home(s, n->home);
    touch_home(s, n->from);
    bool known = can_unroll(n) && !tl_nest_only_row(s->plan, n);
    if (n->value)
        known &= touch(s, n->value, n->own, true, 0);
    if (n->fill)
        known &= touch(s, n->fill, true, true, 0);
    const TlOp *op = n->reduce ? n->reduce : n->op;
    bool takes_all = n->reduce || n->kind == TL_NEST_STORE;
    /* of others: whatever their ops take and give */
    for (uint32_t i = 0; (takes_all || !known) && i < op->nin; i++)
        known &= touch(s, tl_in(op, i), false, true, 0);
    for (uint32_t i = 0; (n->reduce || !known) && i < op->nout; i++)
        if (s->plan->place[op->out[i]->id].kind == TL_NEST_HOME)
            touch_home(s, s->plan->place[op->out[i]->id].buffer);
    return known;
}

/* ---- candidates ---- */

static void find_candidates(Strips *s)
{
    const TlNests *plan = s->plan;
    for (uint32_t i = 0; i < plan->buffers.len; i++) {
        const TlNestBuffer *b = &plan->buffers.data[i];
        s->is[i] = b->plain && b->bytes <= TL_NEST_STRIP * (uint64_t)plan->m.vector_bytes;
        s->wanted[i] = b->short_rows;
    }
}

static void refuse(Strips *s)
{
    const TlNests *plan = s->plan;
    for (uint32_t k = 0; k < plan->all.len; k++) {
        const TlNest *n = plan->all.data[k];
        bool can = look_at(s, n), in_loop = tl_enclosing_loop(n->op) != NULL;
        for (uint32_t i = 0; i < plan->buffers.len; i++) {
            s->is[i] &= can || !s->touched[i];
            s->wanted[i] |= in_loop && s->touched[i];
        }
    }
}

/* What is carried has two homes, of which one is dead where the other begins. */
static void fit_registers(Strips *s)
{
    const TlNests *plan = s->plan;
    uint64_t room = 2 * (uint64_t)plan->m.nregs * (uint64_t)plan->m.vector_bytes;
    for (uint32_t i = 0; i < plan->buffers.len; i++) {
        const TlNestBuffer *b = &plan->buffers.data[i];
        uint64_t bytes = 0;
        for (uint32_t j = 0; s->is[i] && j < plan->buffers.len; j++) {
            const TlNestBuffer *c = &plan->buffers.data[j];
            if ((s->is[j] && s->wanted[j]) && b->first <= c->last && c->first <= b->last)
                bytes += c->bytes;
        }
        s->is[i] &= s->wanted[i] && bytes <= room;
    }
}

/* ---- unroll ---- */

/* Vectors that begin anywhere would be loads across registers. */
static void take_registers(Strips *s)
{
    for (const TlOp *op = s->plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlNestPlace *place = op->nout == 1 ? &s->plan->place[op->out[0]->id] : NULL;
        if (!place || place->way != TL_NEST_SHIFTS)
            continue;
        s->asks += 2;
        for (uint32_t i = 0; i < s->plan->buffers.len; i++)
            s->touched[i] = false;
        touch(s, tl_in(op, 0), false, true, 0);
        for (uint32_t i = 0; i < s->plan->buffers.len; i++)
            if (s->touched[i] && s->is[i])
                place->way = TL_NEST_SHUFFLES;
    }
}

static void unroll(Strips *s)
{
    TlNests *plan = s->plan;
    for (uint32_t k = 0; k < plan->all.len; k++) {
        TlNest *n = plan->all.data[k];
        look_at(s, n);
        for (uint32_t i = 0; i < plan->buffers.len; i++)
            n->unrolled |= s->touched[i] && s->is[i] && positions(n) > 1;
        n->overlaps &= !n->unrolled;
    }
    for (uint32_t i = 0; i < plan->buffers.len; i++)
        plan->buffers.data[i].small |= s->is[i];
}

void tl_nest_find_strips(TlNests *plan)
{
    uint32_t n = plan->buffers.len + 1;
    Strips s = {.plan = plan,
                .is = TL_NEW_ARRAY(plan->arena, bool, n),
                .wanted = TL_NEW_ARRAY(plan->arena, bool, n),
                .touched = TL_NEW_ARRAY(plan->arena, bool, n),
                .seen = TL_NEW_ARRAY(plan->arena, uint32_t, plan->fn->nvalues + 1)};
    find_candidates(&s);
    bool any = false;
    for (uint32_t i = 0; i < plan->buffers.len && !any; i++)
        any = s.is[i];
    if (!any || plan->check)
        return;
    refuse(&s);
    fit_registers(&s);
    take_registers(&s);
    unroll(&s);
}
