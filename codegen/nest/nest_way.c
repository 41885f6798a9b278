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

/* Is a home so large that, when it is read, most stores to it have come to the cache? A load across
 * two of those that have not waits for both. */
static bool is_settled(const TlNests *plan, int32_t home)
{
    enum { STORES = 32 }; /* as many as may wait, where something is computed for each */
    return plan->buffers.data[home].bytes > STORES * (uint64_t)plan->m.vector_bytes;
}

/* Can vectors of v, along d, begin at any of its elements? They are in memory, or are computed from
 * what is. */
static bool may_begin_anywhere(const TlNests *plan, const TlValue *v, int d, int depth)
{
    enum { MOST_DEPTH = 16 };
    const TlNestPlace *place = &plan->place[v->id];
    if (v->type->rank == 0)
        return true;
    if (place->kind == TL_NEST_HOME)
        return is_settled(plan, place->buffer) && tl_nest_form(v->type).lane == d;
    const TlOp *op = v->def;
    if (!op || depth > MOST_DEPTH)
        return false;
    if (op->opcode == TL_OP_LOAD) {
        const TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
        return !a->asks && !a->place.mask && tl_nest_is_contiguous(a, d);
    }
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA)
        return true;
    if (op->opcode == TL_OP_BROADCAST)
        return tl_in(op, 0)->type->rank == 0;
    const TlNestMove *m = op->opcode == TL_OP_GATHER ? tl_nest_move_of(plan, op, d) : NULL;
    if (m && m->rows)
        return may_begin_anywhere(plan, tl_in(op, 0), d, depth + 1);
    bool is_elementwise = tl_op_info(op->opcode)->flags & F_ELEM || op->opcode == TL_OP_CONVERT;
    for (uint32_t i = 0; is_elementwise && i < op->nin; i++)
        if (!may_begin_anywhere(plan, tl_in(op, i), d, depth + 1))
            return false;
    return is_elementwise;
}

static TlNestWay way_of_gather(const TlNests *plan, const TlOp *op, const TlValue *partner)
{
    int lane = tl_nest_form(op->out[0]->type).lane;
    const TlNestMove *m = tl_nest_move_of(plan, op, lane);
    if (!m)
        return partner ? TL_NEST_EXCHANGES : TL_NEST_GATHERS;
    if (m->rows)
        return TL_NEST_TAKES_ROWS;
    if (m->period)
        return TL_NEST_PERMUTES;
    bool shifts = !plan->check && may_begin_anywhere(plan, tl_in(op, 0), lane, 0);
    return shifts ? TL_NEST_SHIFTS : TL_NEST_SHUFFLES;
}

/* Are all of its indices elements of the operand? */
static bool is_inside(const TlNests *plan, const TlOp *gather)
{
    const TlAxisFacts *index = tl_axis_facts(plan->axis, tl_in(gather, 1));
    int axis = (int)tl_attr_int(gather, TL_ATTR_AXIS, 0);
    return index->lo >= 0 && index->hi < tl_in(gather, 0)->type->shape[axis];
}

/* ---- reshapes ---- */

bool tl_nest_puts_rows_apart(const TlNests *plan, const TlOp *op)
{
    enum { LEAST = 8 };
    const TlValue *x = tl_in(op, 0);
    const TlOp *load = x->def && x->def->opcode == TL_OP_LOAD ? x->def : NULL;
    const TlNestAccess *a = load ? tl_map_get_ptr(&plan->access, load) : NULL;
    int last = x->type->rank - 1;
    return a && a->place.axes && !plan->check && tl_nest_puts_rows(&plan->m, op, LEAST) &&
           tl_nest_is_contiguous_inside(a, last) && !tl_nest_is_contiguous(a, last - 1) &&
           tl_nest_stride(a, last - 1) == 1;
}

/* Does a transposition read a home as it is, or by the element's number? */
static bool turns_home(const TlNests *plan, const TlOp *trans)
{
    TlNestPlace from = plan->place[tl_in(trans, 0)->id];
    return from.kind == TL_NEST_HOME || from.way == TL_NEST_READS_HOME;
}

/* Does a reshape put rows one after the other? */
static bool puts_rows(const TlNests *plan, const TlOp *op)
{
    enum { LEAST = 16 }; /* what a register of the oldest CPUs holds */
    bool is_home = plan->place[tl_in(op, 0)->id].kind == TL_NEST_HOME;
    return (tl_nest_puts_rows(&plan->m, op, LEAST) && tl_nest_is_for_quads(plan, op)) ||
           (!is_home && tl_nest_puts_rows_apart(plan, op));
}

static TlNestWay way_of_reshape(const TlNests *plan, const TlOp *op)
{
    if (tl_nest_is_renaming(op))
        return TL_NEST_RENAMES;
    if (!plan->check && tl_nest_parts(op))
        return TL_NEST_PARTS;
    if (puts_rows(plan, op))
        return TL_NEST_PUTS_ROWS;
    bool is_home = plan->place[tl_in(op, 0)->id].kind == TL_NEST_HOME;
    if (!is_home && !plan->check && tl_nest_turned_words(op) && turns_home(plan, tl_in(op, 0)->def))
        return TL_NEST_TURNS_WORDS;
    if (!tl_nest_joins(op) || tl_nest_is_for_row(plan, op))
        return is_home && plan->place[op->out[0]->id].kind == TL_NEST_VIRTUAL &&
                       tl_nest_may_read_home(plan, op)
                   ? TL_NEST_READS_HOME
                   : TL_NEST_NUMBERS;
    return is_home ? TL_NEST_JOINS_HOME : TL_NEST_INTERLEAVES;
}

/* Is it a gather of vectors of a home that begin within registers, of words that one instruction
 * takes from two of these? */
static bool begins_within(const TlNests *plan, const TlOp *op)
{
    enum { LEAST_BYTES = 4 };
    if (op->opcode != TL_OP_GATHER || plan->place[op->out[0]->id].way != TL_NEST_SHIFTS ||
        plan->place[tl_in(op, 0)->id].kind != TL_NEST_HOME)
        return false;
    int bytes = (int)tl_gen_elem_bytes(op->out[0]->type), lanes = plan->m.vector_bytes / bytes;
    const TlNestMove *m = tl_nest_move_of(plan, op, tl_nest_form(op->out[0]->type).lane);
    return bytes >= LEAST_BYTES && m && m->known && m->window.step > 0 && m->window.start % lanes;
}

/* Neighbours along the lanes, as a filter takes them of a row that has a home: where registers are
 * as long as lines of memory, each load that begins within a line takes two, and is as long as two.
 * Two of three such are lanes of two vectors instead, which all of these share: then loads and
 * shuffles, which arithmetic needs the ports of, take as long. */
static void share_shifts(TlNests *plan)
{
    enum { LINE = 64, LEAST = 2, OF = 3 };
    typedef struct Row {
        uint32_t loads, done;
    } Row;
    Row *rows = TL_NEW_ARRAY(plan->arena, Row, plan->fn->nvalues + 1);
    if (plan->m.vector_bytes != LINE)
        return;
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL))
        rows[begins_within(plan, op) ? tl_in(op, 0)->id : plan->fn->nvalues].loads++;
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        Row *row = begins_within(plan, op) ? &rows[tl_in(op, 0)->id] : NULL;
        if (row && row->loads >= LEAST && row->done++ % OF != OF - 1)
            plan->place[op->out[0]->id].way = TL_NEST_SHUFFLES;
    }
}

void tl_nest_find_ways(TlNests *plan)
{
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlNestPlace *place = op->nout ? &plan->place[op->out[0]->id] : NULL;
        TlNestQuads quads;
        if (op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_REGROUP)
            place->way = way_of_reshape(plan, op);
        if (tl_nest_quads(plan, op, &quads))
            place->way = TL_NEST_SUMS_QUADS;
        if (tl_nest_adds_quads(plan, op) >= 0)
            place->way = TL_NEST_ADDS_QUADS;
        if (tl_nest_low_byte(plan, op))
            place->way = TL_NEST_LOADS_WORDS;
        if (op->opcode == TL_OP_LOAD && op->out[0]->type->rank &&
            tl_nest_part(plan, op, tl_nest_form(op->out[0]->type).lane).n > 1)
            place->way = TL_NEST_PART_OF_WORDS;
        if (op->opcode != TL_OP_GATHER)
            continue;
        place->partner = partner_of(tl_in(op, 1), (int)tl_attr_int(op, TL_ATTR_AXIS, 0));
        place->way = way_of_gather(plan, op, place->partner);
        place->inside = is_inside(plan, op);
    }
    share_shifts(plan);
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
