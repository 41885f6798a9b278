/* How ops whose elements are elsewhere in their operands (reshapes, gathers) take them as vectors,
 * and which values of a histogram are counted where they lie in memory. */
#include "codegen/nest/nest.h"

/* ---- gathers ---- */

/* Is element i of v, along dimension d, i? */
static bool is_place(const TlValue *v, int d)
{
    const TlOp *op = v->def;
    if (!op)
        return false;
    if (op->opcode == TL_OP_IOTA)
        return true;
    if (!(tl_op_info(op->opcode)->flags & F_VIEWLIKE))
        return false;
    const TlValue *x = tl_in(op, 0);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (op->opcode == TL_OP_EXPAND)
        return d != axis && is_place(x, d > axis ? d - 1 : d);
    if (op->opcode == TL_OP_RESHAPE) /* axes of extent 1 are added */
        return x->type->rank == 1 && x->type->shape[0] == v->type->shape[d] && is_place(x, 0);
    return op->opcode == TL_OP_BROADCAST && x->type->rank && x->type->shape[d] != 1 &&
           is_place(x, d);
}

/* The scalar m where element i of the index along d is i ^ m, as in networks that sort; or NULL. */
static TlValue *partner_of(const TlValue *index, int d)
{
    const TlOp *op = index->def;
    for (uint32_t i = 0; i < 2 && op && op->opcode == TL_OP_XOR; i++) {
        const TlOp *other = tl_in(op, 1 - i)->def;
        if (is_place(tl_in(op, i), d) && other && other->opcode == TL_OP_BROADCAST &&
            tl_in(other, 0)->type->rank == 0)
            return tl_in(other, 0);
    }
    return NULL;
}

/* ---- reshapes ---- */

static TlNestWay way_of_reshape(const TlNests *plan, const TlOp *op)
{
    if (tl_nest_is_renaming(op))
        return TL_NEST_RENAMES;
    if (!plan->check && tl_nest_parts(op))
        return TL_NEST_PARTS;
    if (!tl_nest_joins(op))
        return TL_NEST_NUMBERS;
    bool is_home = plan->place[tl_in(op, 0)->id].kind == TL_NEST_HOME;
    return is_home ? TL_NEST_JOINS_HOME : TL_NEST_INTERLEAVES;
}

void tl_nest_find_ways(TlNests *plan)
{
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlNestPlace *place = op->nout ? &plan->place[op->out[0]->id] : NULL;
        if (op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_REGROUP)
            place->way = way_of_reshape(plan, op);
        if (op->opcode != TL_OP_GATHER)
            continue;
        const TlNestMove *m = tl_nest_move_of(plan, op, tl_nest_form(op->out[0]->type).lane);
        place->partner = partner_of(tl_in(op, 1), (int)tl_attr_int(op, TL_ATTR_AXIS, 0));
        place->way = m                ? m->rows ? TL_NEST_TAKES_ROWS : TL_NEST_SHUFFLES
                     : place->partner ? TL_NEST_EXCHANGES
                                      : TL_NEST_GATHERS;
    }
}

/* ---- histograms ---- */

/* Do whole vectors come by loads without masks? */
static bool is_plain(const TlNestAccess *a, int lane)
{
    bool tiles = false;
    for (uint32_t i = 0; a->place.axes && i < a->place.naxes; i++)
        tiles |= a->place.axes[i].kind == TL_AXIS_TILE;
    return !a->place.mask && !a->asks && tl_nest_is_contiguous(a, lane) &&
           (!a->bounds || (a->has_interval && !tiles));
}

TlValue *tl_nest_counted(const TlNests *plan, TlValue *v, int lane)
{
    uint64_t bits;
    /* where -1 is what it gives for some, it gives the others as they are */
    while (plan->place[v->id].kind == TL_NEST_VIRTUAL && v->def->opcode == TL_OP_SELECT &&
           tl_value_is_const(tl_in(v->def, 2), &bits) && (uint32_t)bits == UINT32_MAX)
        v = tl_in(v->def, 1);
    const TlOp *op = v->def;
    if (plan->place[v->id].kind == TL_NEST_VIRTUAL && op->opcode == TL_OP_CAST &&
        tl_in(op, 0)->type->dtype == TL_U8)
        v = tl_in(op, 0);
    if (plan->place[v->id].kind == TL_NEST_HOME)
        return v;
    bool loads = v->def->opcode == TL_OP_LOAD;
    return loads && is_plain(tl_map_get_ptr(&plan->access, v->def), lane) ? v : NULL;
}
