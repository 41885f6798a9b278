/* The report's part on time (explain.h): how far ahead things start, and what waits for them. */
#include "codegen/report/explain.h"
#include "ir/remark.h"
#include "passes/analysis/buffer_use.h"

static bool is_pipelined(const TlOp *loop)
{
    return loop && tl_remark_of(loop, TL_REMARK_STAGES);
}

/* What a yielded value is called where it arrives: an if's result, or a value of a pipelined loop's
 * next iteration. NULL: neither. */
static const TlValue *arrives_as(const TlUse *u, uint32_t *trips)
{
    const TlOp *parent = u->user->block->parent;
    uint32_t i = (uint32_t)(u - u->user->in);
    if (u->user->opcode != TL_OP_YIELD || !parent)
        return NULL;
    if (parent->opcode == TL_OP_IF)
        return parent->out[i];
    *trips += is_pipelined(parent);
    return is_pipelined(parent) ? parent->regions[0]->args[i + 1] : NULL;
}

/* Iterations until a loaded value is used for the first time, by anything but the loop itself. */
static uint32_t trips_to_use(const TlValue *v)
{
    enum { MOST_OPS = 64 }; /* that are followed: a loop would never end */
    uint32_t trips = 0;
    for (int i = 0; i < MOST_OPS && v; i++) {
        const TlValue *next = NULL;
        for (const TlUse *u = v->uses; u && !next; u = u->next) {
            if (u->user->opcode == TL_OP_PUT)
                return trips + (uint32_t)tl_op_ahead(u->user);
            next = arrives_as(u, &trips);
        }
        v = next;
    }
    return trips;
}

uint32_t tl_explain_ahead(const TlOp *op)
{
    TL_ASSERT(op, "nothing is begun");
    if (op->opcode == TL_OP_LOAD)
        return trips_to_use(op->out[0]);
    return (uint32_t)tl_op_ahead(op);
}

void tl_explain_waits(TlExplain *e)
{
    TL_VEC(tilec_report_wait) all = {0};
    for (const TlOp *op = e->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_WAIT)
            tl_vec_push(e->out, &all,
                        (tilec_report_wait){tl_explain_position(e, op->loc),
                                            tl_position_of(&e->order, op).first,
                                            (uint32_t)tl_attr_int(op, TL_ATTR_PENDING, 0),
                                            tl_explain_loop(e, op)});
    e->k->waits = all.data;
    e->k->nwaits = all.len;
}
