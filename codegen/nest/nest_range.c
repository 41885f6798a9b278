/* Between which numbers the scalars of loops are, as far as a program can tell before them.
 *
 *     for (int d : range(lo, hi, 2)) x[j + d, ...]     d: lo .. lo + (trips - 1) * 2
 *
 * Here only which scalars that is known of, and how far apart the ends may be; the numbers
 * themselves are those of the run (codegen/cpu/cpu_range.c). An end is reached or is a bit too far:
 * what is inside at both ends is inside between them. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

/* The ends may be so far apart, so that no sum of them wraps twice. */
static const int64_t FAR = (int64_t)1 << 60;

static bool is_number(const TlValue *v)
{
    TlDtype d = v->type->dtype;
    return v->type->kind == TL_TILE && v->type->rank == 0 && !v->type->ptr &&
           (d == TL_I32 || d == TL_I64);
}

int64_t tl_nest_spread(const TlNests *plan, const TlValue *v)
{
    if (!v->def && (v->block == plan->fn->body || v->block == plan->asked_in))
        return 0; /* a parameter, or the trip that asks */
    return plan->spread[v->id];
}

/* The counter of a loop whose bounds are numbers known before it. */
static void note_counter(TlNests *plan, const TlOp *loop)
{
    const TlValue *i = loop->regions[0]->args[0];
    TlWideInt step;
    bool known = tl_const_int_value(tl_in(loop, 2), &step) && step != 0 && i->type->dtype == TL_I32;
    for (uint32_t k = 0; known && k < 2; k++)
        known = tl_nest_spread(plan, tl_in(loop, k)) == 0;
    plan->spread[i->id] = known ? (int64_t)UINT32_MAX : -1;
}

/* Of a product by a number, which is not large. */
static int64_t times_number(const TlNests *plan, const TlOp *op)
{
    enum { LARGE = 1 << 20 };
    for (uint32_t i = 0; i < 2; i++) {
        TlWideInt n;
        int64_t x = tl_nest_spread(plan, tl_in(op, 1 - i));
        if (tl_const_int_value(tl_in(op, i), &n) && n > -LARGE && n < LARGE && x <= FAR / LARGE)
            return x * (int64_t)(n < 0 ? -n : n);
    }
    return -1;
}

static int64_t spread_of(const TlNests *plan, const TlOp *op)
{
    int64_t of[2] = {0, 0};
    if (!is_number(op->out[0]))
        return -1;
    if (op->opcode == TL_OP_EXTENT)
        return tl_nest_spread(plan, tl_in(op, 0));
    for (uint32_t i = 0; i < op->nin && i < 2; i++) {
        of[i] = is_number(tl_in(op, i)) ? tl_nest_spread(plan, tl_in(op, i)) : -1;
        if (of[i] < 0)
            return -1;
    }
    int64_t sum = of[0] + of[1];
    switch ((int)op->opcode) {
    case TL_OP_CONST: return 0;
    case TL_OP_ADD:
    case TL_OP_SUB:
    case TL_OP_MIN:
    case TL_OP_MAX: return sum <= FAR ? sum : -1;
    case TL_OP_MUL: return sum ? times_number(plan, op) : 0;
    case TL_OP_CAST: return of[0]; /* the run asks whether all are numbers of i32 */
    }
    return -1;
}

void tl_nest_find_ranges(TlNests *plan)
{
    plan->spread = TL_NEW_ARRAY(plan->arena, int64_t, plan->fn->nvalues + 1);
    for (uint32_t i = 0; i <= plan->fn->nvalues; i++)
        plan->spread[i] = -1;
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode == TL_OP_FOR)
            note_counter(plan, op);
        if (op->nout == 1 && !op->nregions)
            plan->spread[op->out[0]->id] = plan->early[op->out[0]->id] ? 0 : spread_of(plan, op);
    }
}
