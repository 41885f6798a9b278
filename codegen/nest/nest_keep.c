/* Rows of a home that the program before has computed, too.
 *
 * A filter in two steps computes its first one for more rows than it stores: 20 for 8 of a 13 x 13
 * maximum. All but the last 8 of these are what the program before, along the grid's axis of the
 * rows, had 8 rows further on. Such a home stays in scratch memory from program to program: a
 * worker that has run the program before in this launch goes on behind its last rows, and computes
 * the others. Where the home ends, the last rows move to its front.
 *
 *       program 3   rows 18 .. 37   [ computed               ]
 *       program 4   rows 26 .. 45           [ kept   |computed]
 *
 *   1. drift   the values are the same `step` rows further on (nest_drift.c)
 *   2. price   what is saved must be more than moving it
 *   3. room    between both programs run all those along the first axis, each with a home of its
 *              own; where there are more in the run, nothing is kept */
#include "codegen/nest/nest.h"

enum {
    MOST_SLOTS = 32,         /* homes */
    LEAST_SLOTS = 4,
    MOST_BYTES = 256 << 10,  /* of all of them: a part of the second cache */
    MOVE_WORK = 2,           /* of a vector that is moved: a load, a store */
    LEAST_SAVED = 64,        /* work for vectors: the test of the tag */
    MOST_TURNS = 4,          /* then a quarter of the moves is left */
    MOST_NEAR = 16 << 10,    /* bytes of a home by itself: a part of the first cache */
};

/* ---- candidates ---- */

/* How many nests write the home, and how many values live in it? One each. */
static bool is_of_one(const TlNests *plan, int32_t home)
{
    int nests = 0, values = 0;
    for (uint32_t i = 0; i < plan->all.len; i++)
        nests += plan->all.data[i]->home == home;
    for (uint32_t i = 0; i < plan->fn->nvalues; i++)
        values += plan->place[i].kind == TL_NEST_HOME && plan->place[i].buffer == home;
    return nests == 1 && values == 1;
}

static bool may_keep(const TlNests *plan, const TlNest *n)
{
    return n->kind == TL_NEST_FILL && n->own && !n->unrolled && !n->columns && n->home >= 0 &&
           n->form.rank >= 2 && n->lane > 0 && !n->op->block->parent && n->op->nout == 1 &&
           !plan->buffers.data[n->home].small && is_of_one(plan, n->home) &&
           (uint64_t)n->form.stride[0] * tl_gen_elem_bytes(&n->type) %
                   (uint64_t)plan->m.vector_bytes ==
               0;
}

/* ---- 2. price, 3. room ---- */

static int slots_of(const TlNests *plan, const TlNest *n, int axis)
{
    if (tl_nest_at_once(plan, axis) > 1) /* the program before is one of these */
        return 0;
    if (axis == 0) /* it has just run */
        return 1;
    uint64_t slots = MOST_SLOTS;
    while (slots * plan->buffers.data[n->home].bytes > MOST_BYTES)
        slots /= 2;
    return axis == 1 && slots >= LEAST_SLOTS ? (int)slots : 0;
}

/* How many programs go on behind each other. */
static int turns_of(const TlNest *n, uint64_t bytes, int64_t step, int slots)
{
    uint64_t more = (uint64_t)(step * n->form.stride[0]) * tl_gen_elem_bytes(&n->type),
             room = slots > 1 ? MOST_BYTES / (uint64_t)slots : MOST_NEAR;
    int turns = 1;
    while (turns < MOST_TURNS && bytes + more * (uint64_t)turns <= room)
        turns++;
    return turns;
}

static const char *decide(TlNests *plan, TlNest *n, const TlNestDrifts *k)
{
    int64_t rows = n->form.extent[0] - k->step, vectors = n->form.stride[0] / n->width;
    int slots = slots_of(plan, n, k->axis);
    if (k->work <= MOVE_WORK || rows * vectors * (k->work - MOVE_WORK) < LEAST_SAVED)
        return "moving rows costs as much";
    if (!slots)
        return "homes would be too large";
    TlNestKeep *keep = TL_NEW(plan->arena, TlNestKeep);
    TlNestBuffer *b = &plan->buffers.data[n->home];
    int turns = turns_of(n, b->bytes, k->step, slots);
    *keep = (TlNestKeep){.axis = k->axis, .rows = rows, .step = k->step, .slots = slots,
                         .turns = turns, .most = tl_nest_drift_most(k), .tags = plan->zeroed_bytes};
    plan->zeroed_bytes += (uint64_t)slots * TL_NEST_TAG_BYTES;
    b->bytes += (uint64_t)((turns - 1) * k->step * n->form.stride[0]) *
                (uint64_t)tl_gen_elem_bytes(&n->type);
    keep->bytes = b->bytes;
    b->bytes *= (uint64_t)slots;
    b->first = 0; /* it stays */
    b->last = UINT32_MAX;
    n->keep = keep;
    return NULL;
}

static void keep_rows(TlNests *plan, TlNest *n)
{
    for (const TlOp *op = plan->fn->body->first; op; op = op->next) {
        TlNestDrifts k = {
            .arena = plan->arena, .rank = n->form.rank, .seen = {.arena = plan->arena}};
        k.step = tl_nest_drift_step(op, &k.axis);
        if (k.step <= 0 || k.step >= n->form.extent[0] ||
            !tl_nest_drifts_by(&k, n->value, 0, 0))
            continue;
        n->unkept = decide(plan, n, &k);
        return;
    }
}

void tl_nest_keep(TlNests *plan)
{
    for (uint32_t i = 0; i < plan->all.len && !plan->check; i++)
        if (may_keep(plan, plan->all.data[i]))
            keep_rows(plan, plan->all.data[i]);
}
