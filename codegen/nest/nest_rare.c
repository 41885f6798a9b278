/* Arms of selects that are much work, computed only where a lane takes them.
 *
 * A tile's select has both its arms computed. Where one of them is much work that nothing else
 * needs, such as the way of a great angle to a quarter of a turn, a vector of which no lane takes
 * that arm goes around it: a branch is little beside such work, and if some lane does, all is as
 * it was. Selects of one condition in one nest go together, as they share work.
 *
 *   1. group    the selects of a condition that the same nest computes, the same arm of each
 *   2. within   what is computed for these arms alone, element by element; the rest are leaves,
 *               which are computed before the branch */
#include "codegen/nest/nest.h"

enum { LEAST_WORK = 24 };                       /* where a sum is 1 */
enum { MOST_WITHIN = 256, MOST_WALKED = 4096 }; /* values of a group, ops looked at: time */

typedef struct Group {
    const TlNests *plan;
    TlNestRare *rare;
    TlMap within; /* value ids */
    int work;
} Group;

/* ---- 1. group ---- */

static bool is_virtual(const TlNests *plan, const TlValue *v)
{
    return plan->place[v->id].kind == TL_NEST_VIRTUAL;
}

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 0;
}

static bool may_branch(const TlNests *plan, const TlOp *op)
{
    return op->opcode == TL_OP_SELECT && is_tile(op->out[0]) && !op->out[0]->type->ptr &&
           is_tile(tl_in(op, 0)) && !tl_map_get_ptr(&plan->spreads, op);
}

/* Is the other arm computed, too? Else that is the exception: x < inf ? log(x) : x, and this one is
 * not rare. */
static bool has_other_way(const TlOp *select, uint32_t arm)
{
    const TlOp *other = tl_in(select, 3 - arm)->def;
    return other && other->opcode != TL_OP_CONST && tl_op_info(other->opcode)->flags & F_ELEM;
}

static void find_group(Group *x, TlOp *first)
{
    const TlNests *plan = x->plan;
    const TlOp *root = is_virtual(plan, first->out[0]) ? plan->root[first->out[0]->id] : NULL;
    for (const TlUse *u = tl_in(first, 0)->uses; u; u = u->next) {
        TlOp *op = u->user;
        bool with = may_branch(plan, op) && u == &op->in[0] && op->block == first->block && root &&
                    is_virtual(plan, op->out[0]) && plan->root[op->out[0]->id] == root &&
                    tl_same_shape(op->out[0]->type, first->out[0]->type);
        if ((op == first || with) && has_other_way(op, x->rare->arm))
            tl_vec_push(plan->arena, &x->rare->selects, op);
    }
}

/* ---- 2. within ---- */

static bool is_arm(const Group *x, const TlUse *use)
{
    for (uint32_t i = 0; i < x->rare->selects.len; i++)
        if (use == &x->rare->selects.data[i]->in[x->rare->arm])
            return true;
    return false;
}

static bool is_within(const Group *x, const TlOp *op)
{
    const TlValue *v = op->nout == 1 ? op->out[0] : NULL;
    if (!v || !is_tile(v) || v->type->ptr || !(tl_op_info(op->opcode)->flags & F_ELEM) ||
        !is_virtual(x->plan, v) || tl_map_get_ptr(&x->plan->spreads, op) ||
        tl_map_get_ptr(&x->plan->rare, op) || /* it has a branch of its own, with others */
        !tl_same_shape(v->type, x->rare->selects.data[0]->out[0]->type))
        return false;
    for (const TlUse *u = v->uses; u; u = u->next) {
        bool by = u->user->nout == 1 && tl_map_get(&x->within, u->user->out[0]->id, NULL);
        if (!by && !is_arm(x, u))
            return false;
    }
    return v->uses;
}

/* What is computed for the arms, from the last select up, as users come before what they use. */
static void find_within(Group *x)
{
    if (!x->rare->selects.len)
        return;
    const TlOp *last = x->rare->selects.data[0];
    for (uint32_t i = 1; i < x->rare->selects.len; i++)
        for (const TlOp *op = last->next; op; op = op->next)
            if (op == x->rare->selects.data[i])
                last = op;
    int walked = 0;
    for (const TlOp *op = last->prev; op && ++walked < MOST_WALKED; op = op->prev) {
        if (x->within.len >= MOST_WITHIN || !is_within(x, op))
            continue;
        tl_map_put(&x->within, op->out[0]->id, 1);
        x->work += tl_elem_work(op->opcode)->cpu;
        for (uint32_t i = 0; i < op->nin; i++)
            if (is_tile(tl_in(op, i)))
                tl_vec_push(x->plan->arena, &x->rare->leaves, tl_in(op, i));
    }
}

/* Of the operands those that are computed before. */
static void keep_leaves(Group *x)
{
    TlMap seen = {.arena = x->plan->arena};
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->rare->leaves.len; i++) {
        TlValue *v = x->rare->leaves.data[i];
        if (tl_map_get(&x->within, v->id, NULL) || tl_map_get(&seen, v->id, NULL))
            continue;
        tl_map_put(&seen, v->id, 1);
        x->rare->leaves.data[n++] = v;
    }
    x->rare->leaves.len = n;
}

static Group make_group(TlNests *plan, TlOp *first, uint32_t arm)
{
    Group x = {.plan = plan, .rare = TL_NEW(plan->arena, TlNestRare)};
    tl_map_init(&x.within, plan->arena);
    x.rare->arm = arm;
    find_group(&x, first);
    find_within(&x);
    return x;
}

void tl_nest_find_rare(TlNests *plan)
{
    for (TlOp *op = plan->check ? NULL : plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!may_branch(plan, op) || tl_map_get_ptr(&plan->rare, op))
            continue;
        Group then = make_group(plan, op, 1), otherwise = make_group(plan, op, 2);
        Group *x = then.work > otherwise.work ? &then : &otherwise;
        if (x->work < LEAST_WORK)
            continue;
        keep_leaves(x);
        for (uint32_t i = 0; i < x->rare->selects.len; i++)
            tl_map_put_ptr(&plan->rare, x->rare->selects.data[i], x->rare);
    }
}
