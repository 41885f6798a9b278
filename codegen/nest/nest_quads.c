/* Sums of four products of bytes that are neighbours: a lane of a dot-product instruction.
 *
 *     %p = mul (cast %x), (broadcast (cast %y))     i32 [M, 4 N], x and y of i8 or u8
 *     %q = reshape %p                               i32 [M, N, 4]
 *     %s = reduce %q {axis = 2, kind = add}         i32 [M, N]
 *
 * Such a sum has no nest of its own and no homes for its products: it is computed where an element
 * is needed, as products of the vectors of both factors, each along its row. So a product with few
 * rows that is written in this way turns neither side. What is added to such a sum is what the
 * instruction begins with. */
#include "codegen/nest/nest.h"

/* The op that widens bytes to v, but for what repeats them; NULL: v is something else. */
static const TlOp *widening(const TlValue *v)
{
    const TlOp *op = v->def;
    if (op && op->opcode == TL_OP_BROADCAST)
        op = tl_in(op, 0)->def;
    while (op && op->opcode == TL_OP_EXPAND) op = tl_in(op, 0)->def;
    if (!op || op->opcode != TL_OP_CAST || op->out[0]->type->rank == 0)
        return NULL;
    TlDtype from = tl_in(op, 0)->type->dtype;
    return from == TL_I8 || from == TL_U8 ? op : NULL;
}

static const TlOp *only_def(const TlValue *v, TlOpcode opcode)
{
    bool is_only = v->def && v->def->opcode == opcode && v->uses && !v->uses->next;
    return is_only ? v->def : NULL;
}

/* Are these the same elements, four of the one in place of an element of the other? */
static bool has_four_times(const TlType *products, const TlType *sums)
{
    int last = sums->rank - 1;
    if (last < 0 || products->rank != sums->rank || products->shape[last] != 4 * sums->shape[last])
        return false;
    for (int d = 0; d < last; d++)
        if (products->shape[d] != sums->shape[d])
            return false;
    return tl_nest_form(products).padded[last] >= 4 * tl_nest_form(sums).padded[last];
}

bool tl_nest_quads(const TlNests *plan, const TlOp *op, TlNestQuads *out)
{
    if (op->opcode != TL_OP_REDUCE || op->nin != 1 || plan->check || plan->fn->ring ||
        tl_attr_int(op, TL_ATTR_KIND, TL_COMBINE_USER) != TL_COMBINE_ADD ||
        op->out[0]->type->dtype != TL_I32)
        return false;
    const TlOp *reshape = only_def(tl_in(op, 0), TL_OP_RESHAPE);
    const TlOp *mul = reshape ? only_def(tl_in(reshape, 0), TL_OP_MUL) : NULL;
    if (!mul || tl_attr_int(op, TL_ATTR_AXIS, 0) != op->out[0]->type->rank ||
        !has_four_times(mul->out[0]->type, op->out[0]->type))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const TlOp *cast = widening(tl_in(mul, i));
        if (!cast)
            return false;
        out->factor[i] = tl_in(mul, i);
        out->byte[i] = tl_in(cast, 0);
    }
    return true;
}

/* Weights of few bits are cut out of bytes. */
static bool is_small(const TlValue *v, int depth)
{
    enum { MOST_DEPTH = 8 };
    const TlOp *op = v->def;
    uint64_t n;
    if (v->type->dtype != TL_U8 || depth > MOST_DEPTH || !op)
        return false;
    if (tl_value_is_const(v, &n))
        return n < 128;
    TlOpcode o = op->opcode;
    if (o == TL_OP_SHR)
        return tl_value_is_const(tl_in(op, 1), &n) && n > 0 && n < 8;
    if (o == TL_OP_AND || o == TL_OP_OR) {
        bool first = is_small(tl_in(op, 0), depth + 1), second = is_small(tl_in(op, 1), depth + 1);
        return o == TL_OP_AND ? first || second : first && second;
    }
    bool moves = o == TL_OP_RESHAPE || o == TL_OP_EXPAND || o == TL_OP_BROADCAST ||
                 o == TL_OP_TRANS || o == TL_OP_GATHER;
    return moves && is_small(tl_in(op, 0), depth + 1); /* a gather's others are 0 */
}

bool tl_nest_is_small_byte(const TlValue *v)
{
    return is_small(v, 0);
}

int tl_nest_adds_quads(const TlNests *plan, const TlOp *op)
{
    TlNestQuads quads;
    for (int i = 0; op->opcode == TL_OP_ADD && i < 2; i++) {
        const TlOp *sum = only_def(tl_in(op, (uint32_t)i), TL_OP_REDUCE);
        if (sum && plan->place[sum->out[0]->id].kind == TL_NEST_VIRTUAL &&
            tl_nest_quads(plan, sum, &quads))
            return i;
    }
    return -1;
}

/* Is v, for each of its uses, a factor of such sums, their products, or the reshape of these; on
 * the way to a factor, with `repeats` only where a broadcast follows? Each use makes its own sums,
 * as those of a loop and of what is left of it. */
static bool leads_to_sums(const TlNests *plan, const TlValue *v, bool repeats, int depth,
                          int *left)
{
    enum { MOST_DEPTH = 8 };
    TlNestQuads quads;
    if (!v->uses || depth > MOST_DEPTH)
        return false;
    for (const TlUse *u = v->uses; u; u = u->next) {
        TlOpcode o = u->user->opcode;
        bool goes_on =
            o == TL_OP_EXPAND || o == TL_OP_BROADCAST || o == TL_OP_RESHAPE || o == TL_OP_MUL;
        bool leads = --*left > 0 && o == TL_OP_REDUCE
                         ? !repeats && tl_nest_quads(plan, u->user, &quads)
                         : *left > 0 && goes_on &&
                               leads_to_sums(plan, u->user->out[0],
                                             repeats && o != TL_OP_BROADCAST, depth + 1, left);
        if (!leads)
            return false;
    }
    return true;
}

static bool leads_to_sum(const TlNests *plan, const TlValue *v, bool repeats)
{
    enum { MOST_VALUES = 64 };
    int left = MOST_VALUES;
    return leads_to_sums(plan, v, repeats, 0, &left);
}

bool tl_nest_feeds_quads(const TlNests *plan, const TlOp *op)
{
    TlOpcode o = op->opcode;
    bool may = o == TL_OP_BROADCAST || o == TL_OP_RESHAPE || o == TL_OP_MUL;
    return may && leads_to_sum(plan, op->out[0], false);
}

bool tl_nest_widens_for_quads(const TlNests *plan, const TlOp *op)
{
    return op->opcode == TL_OP_CAST && leads_to_sum(plan, op->out[0], true);
}

static bool reaches_sum(const TlNests *plan, const TlValue *v, int depth, int *left)
{
    enum { MOST_DEPTH = 10 };
    TlNestQuads quads;
    for (const TlUse *u = v->uses; u && depth < MOST_DEPTH && --*left > 0; u = u->next) {
        const TlOp *op = u->user;
        TlOpcode o = op->opcode;
        if (tl_nest_quads(plan, op, &quads))
            return true;
        bool goes_on = o == TL_OP_EXPAND || o == TL_OP_BROADCAST || o == TL_OP_RESHAPE ||
                       (o == TL_OP_GATHER && u == &op->in[0]) || tl_op_info(o)->flags & F_ELEM;
        if (goes_on && op->nout == 1 && reaches_sum(plan, op->out[0], depth + 1, left))
            return true;
    }
    return false;
}

bool tl_nest_is_for_quads(const TlNests *plan, const TlOp *op)
{
    enum { MOST_VALUES = 64 };
    int left = MOST_VALUES;
    return reaches_sum(plan, op->out[0], 0, &left);
}
