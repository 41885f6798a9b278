/* Single elements along an axis.
 *
 *     %q = eq (iota), 3
 *     %s = select %q, %x, 0
 *     %e = reduce %s {axis = 0, kind = or}      element 3 of x */
#include "passes/analysis/picked.h"

static bool is_i32(const TlValue *v, int64_t *out)
{
    uint64_t bits;
    if (v->type->dtype != TL_I32 || !tl_value_is_const(v, &bits))
        return false;
    *out = (int32_t)(uint32_t)bits;
    return true;
}

/* Are v's elements, in row-major order, *first, *first + 1, ..., as bits of i32? */
static bool counts_up(const TlValue *v, int64_t *first)
{
    enum { FAR = 1 << 30 }; /* with an extent more it is an i32 */
    const TlOp *op = v->def;
    if (!op || (v->type->dtype != TL_I32 && v->type->dtype != TL_U32))
        return false;
    *first = 0;
    if (op->opcode == TL_OP_IOTA)
        return v->type->rank == 1;
    if (op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_EXPAND || op->opcode == TL_OP_BITCAST)
        return counts_up(tl_in(op, 0), first);
    int64_t more;
    if (op->opcode != TL_OP_ADD || !counts_up(tl_in(op, 0), first) || !is_i32(tl_in(op, 1), &more))
        return false;
    *first += more;
    return *first >= -FAR && *first <= FAR;
}

bool tl_counts_from(const TlValue *v, int dim, int64_t *first)
{
    int32_t n = v->type->shape[dim];
    if (v->def && v->def->opcode == TL_OP_BROADCAST)
        v = tl_in(v->def, 0);
    if (v->type->rank <= dim || v->type->shape[dim] != n || tl_type_elems(v->type) != n)
        return false;
    return counts_up(v, first);
}

bool tl_counts_along(const TlValue *v, int dim, int64_t *first)
{
    return v->type->dtype == TL_I32 && tl_counts_from(v, dim, first) && *first >= 0;
}

const TlOp *tl_first_where(const TlOp *reduce)
{
    int64_t first, none;
    if (reduce->opcode != TL_OP_REDUCE || reduce->nin != 1 ||
        tl_attr_int(reduce, TL_ATTR_KIND, 0) != TL_COMBINE_MIN)
        return NULL;
    const TlOp *op = tl_in(reduce, 0)->def;
    bool chooses = op && op->opcode == TL_OP_SELECT && is_i32(tl_in(op, 2), &none) &&
                   none == INT32_MAX && tl_in(op, 0)->type->rank > 0;
    int axis = (int)tl_attr_int(reduce, TL_ATTR_AXIS, 0);
    return chooses && tl_counts_along(tl_in(op, 1), axis, &first) ? op : NULL;
}

/* Is v true at one coordinate along dim, *at, and only there? */
static bool is_at(const TlValue *v, int dim, int64_t *at)
{
    int32_t n = v->type->shape[dim];
    if (v->def && v->def->opcode == TL_OP_BROADCAST)
        v = tl_in(v->def, 0);
    int64_t first, number;
    if (!v->def || v->def->opcode != TL_OP_EQ || v->type->rank <= dim || v->type->shape[dim] != n ||
        !tl_counts_along(tl_in(v->def, 0), dim, &first) || !is_i32(tl_in(v->def, 1), &number))
        return false;
    *at = number - first;
    return *at >= 0 && *at < n;
}

TlValue *tl_picked_from(const TlOp *reduce, int64_t *at)
{
    uint64_t bits;
    if (reduce->opcode != TL_OP_REDUCE || reduce->nin != 1 ||
        tl_attr_int(reduce, TL_ATTR_KIND, 0) != TL_COMBINE_OR)
        return NULL;
    const TlOp *select = tl_in(reduce, 0)->def;
    if (!select || select->opcode != TL_OP_SELECT || !tl_value_is_const(tl_in(select, 2), &bits) ||
        bits || tl_in(select, 0)->type->rank == 0 ||
        !is_at(tl_in(select, 0), (int)tl_attr_int(reduce, TL_ATTR_AXIS, 0), at))
        return NULL;
    return tl_in(select, 1);
}
