/* Rules of canonicalize for shapes, casts, pointers and views, and for the masks of memory ops. */
#include "ir/numeric.h"
#include "passes/analysis/axis_info.h"
#include "passes/simplify/canon.h"
#include <string.h>

/* ---- shapes ---- */

/* The scalar that all elements of v equal, if v is made from it by shape ops alone. */
static TlValue *scalar_origin(TlValue *v)
{
    while (v->type->rank > 0) {
        if (!v->def || !(tl_op_info(v->def->opcode)->flags & F_VIEWLIKE))
            return NULL;
        v = tl_in(v->def, 0);
    }
    return v;
}

/* What all shape ops share: of a constant a constant, of a scalar one broadcast, of the same type
 * nothing. */
static TlValue *plain_shape(Canon *c)
{
    TlValue *x = canon_in(c, 0);
    uint64_t bits;
    if (canon_is_const(x, &bits))
        return canon_const(c, bits);
    TlValue *origin = scalar_origin(x);
    if (!origin)
        return NULL;
    if (canon_type(c)->rank == 0)
        return origin;
    if (c->op->opcode == TL_OP_BROADCAST && origin == x)
        return NULL;
    return canon_op1(c, TL_OP_BROADCAST, origin, canon_type(c));
}

static TlValue *rule_broadcast(Canon *c)
{
    TlValue *x = canon_in(c, 0), *v = plain_shape(c);
    if (v || x->type == canon_type(c))
        return v ? v : x;
    TlOp *inner = canon_def(x, TL_OP_BROADCAST);
    return inner ? canon_op1(c, TL_OP_BROADCAST, tl_in(inner, 0), canon_type(c)) : NULL;
}

static TlValue *rule_reshape(Canon *c)
{
    TlValue *x = canon_in(c, 0), *v = plain_shape(c);
    if (v || x->type == canon_type(c))
        return v ? v : x;
    TlOp *inner = canon_def(x, TL_OP_RESHAPE);
    if (!inner)
        inner = canon_def(x, TL_OP_EXPAND);
    return inner ? canon_op1(c, TL_OP_RESHAPE, tl_in(inner, 0), canon_type(c)) : NULL;
}

static TlValue *build_trans(Canon *c, TlValue *x, const int64_t *perm, uint32_t n)
{
    int64_t *kept = TL_NEW_ARRAY(&c->fn->module->arena, int64_t, n);
    memcpy(kept, perm, sizeof *perm * n);
    TlAttr attr = {.id = TL_ATTR_PERM, .n = n, .u.ints = kept};
    const TlType *type = canon_type(c);
    return tl_op_new(&c->b, TL_OP_TRANS, 1, &x, 1, &type, 0, 1, &attr)->out[0];
}

static TlValue *rule_trans(Canon *c)
{
    TlValue *x = canon_in(c, 0), *v = plain_shape(c);
    if (v)
        return v;
    const TlAttr *perm = tl_attr(c->op, TL_ATTR_PERM);
    bool identity = true,
         in_order =
             true; /* in_order: only axes of extent 1 move, and those have no elements to move */
    int64_t last = -1;
    for (uint32_t i = 0; i < perm->n; i++) {
        int64_t from = perm->u.ints[i];
        identity &= from == (int64_t)i;
        if (x->type->shape[from] == 1)
            continue;
        in_order &= from > last;
        last = from;
    }
    if (identity)
        return x;
    if (in_order)
        return canon_op1(c, TL_OP_RESHAPE, x, canon_type(c));
    TlOp *inner = canon_def(x, TL_OP_TRANS);
    if (!inner)
        return NULL;
    int64_t both[TL_MAX_RANK];
    for (uint32_t i = 0; i < perm->n; i++)
        both[i] = tl_attr(inner, TL_ATTR_PERM)->u.ints[perm->u.ints[i]];
    return build_trans(c, tl_in(inner, 0), both, perm->n);
}

static TlValue *rule_iota(Canon *c)
{
    return canon_type(c)->shape[0] == 1 ? canon_const(c, 0) : NULL;
}

/* Over an axis of extent 1 there is nothing to combine. */
static bool is_trivial_axis(const Canon *c)
{
    return canon_in(c, 0)->type->shape[tl_attr_int(c->op, TL_ATTR_AXIS, 0)] == 1;
}
static TlValue *rule_reduce(Canon *c)
{
    return is_trivial_axis(c) ? canon_op1(c, TL_OP_RESHAPE, canon_in(c, 0), canon_type(c)) : NULL;
}
static TlValue *rule_scan(Canon *c)
{
    return is_trivial_axis(c) && c->op->nin == c->op->nout ? canon_in(c, 0) : NULL;
}

/* ---- casts ---- */

/* Significant bits of a float type. */
static int float_digits(TlDtype d)
{
    return tl_float_format(d)->fraction + 1;
}

/* Significant bits of an integer type or bool. */
static int int_digits(TlDtype d)
{
    return tl_is_bool(d) ? 1 : tl_dtype_bits(d) - (tl_is_signed(d) ? 1 : 0);
}

/* Can `to` represent every value of `from`? */
static bool is_lossless(TlDtype from, TlDtype to)
{
    if (from == to)
        return true;
    if (tl_is_bool(to))
        return false;
    if (tl_is_float(from)) {
        /* e4m3 and fnuz have no infinity, f4 not even NaN, fnuz no -0: into such formats nothing is
         * lossless */
        return tl_is_float(to) && !tl_is_small_float(to) &&
               float_digits(from) <= float_digits(to) &&
               tl_float_max_exponent(from) <= tl_float_max_exponent(to) &&
               tl_float_least_exponent(from) >= tl_float_least_exponent(to);
    }
    if (tl_is_float(to))
        return int_digits(from) <= float_digits(to) &&
               int_digits(from) <= tl_float_max_exponent(to);
    if (tl_is_signed(from) && !tl_is_signed(to))
        return false;
    return int_digits(from) <= int_digits(to);
}

static TlValue *direct_cast(Canon *c, TlValue *x)
{
    if (x->type == canon_type(c))
        return x;
    const TlType *type = canon_type(c);
    return tl_op_new(&c->b, TL_OP_CAST, 1, &x, 1, &type, 0, c->op->nattrs, c->op->attrs)->out[0];
}

static TlValue *rule_cast(Canon *c)
{
    TlValue *x = canon_in(c, 0);
    TlDtype to = canon_type(c)->dtype;
    if (x->type == canon_type(c))
        return x;
    TlOp *inner = canon_def(x, TL_OP_CAST);
    if (!inner)
        return NULL;
    TlValue *origin = tl_in(inner, 0);
    TlDtype from = origin->type->dtype, middle = x->type->dtype;
    /* through a float an integer saturates, directly it wraps */
    bool saturates =
        tl_is_float(middle) && !tl_is_float(from) && tl_is_int(to) && !is_lossless(from, to);
    if (is_lossless(from, middle) && !saturates)
        return direct_cast(c, origin);
    bool wraps =
        tl_is_int(from) && tl_is_int(middle) && tl_is_int(to); /* the low bits of the low bits */
    return wraps && tl_dtype_bits(to) <= tl_dtype_bits(middle) ? direct_cast(c, origin) : NULL;
}

static TlValue *rule_bitcast(Canon *c)
{
    TlValue *x = canon_in(c, 0);
    TlOp *inner = canon_def(x, TL_OP_BITCAST);
    if (inner)
        x = tl_in(inner, 0);
    if (x->type == canon_type(c))
        return x;
    return inner ? canon_op1(c, TL_OP_BITCAST, x, canon_type(c)) : NULL;
}

/* ---- pointers and views ---- */

static TlValue *rule_ptr_add(Canon *c)
{
    uint64_t bits;
    return canon_is_const(canon_in(c, 1), &bits) && bits == 0 ? canon_in(c, 0) : NULL;
}

/* The extent that made the view, or the number that the launch demands. */
static TlValue *rule_extent(Canon *c)
{
    uint32_t axis = (uint32_t)tl_attr_int(c->op, TL_ATTR_AXIS, 0);
    TlOp *view = canon_def(canon_in(c, 0), TL_OP_VIEW);
    if (view)
        return tl_in(view, 1 + axis);
    const TlDim *extent = tl_axis_param_extent(c->fn, canon_in(c, 0), axis);
    bool is_number = extent && extent->kind == TILE_DIM_CONST;
    return is_number ? canon_const(c, (uint64_t)extent->value) : NULL;
}

static TlValue *rule_stride(Canon *c)
{
    TlValue *v = canon_in(c, 0);
    uint32_t axis = (uint32_t)tl_attr_int(c->op, TL_ATTR_AXIS, 0);
    TlOp *view = canon_def(v, TL_OP_VIEW), *sub = canon_def(v, TL_OP_SUB_VIEW);
    if (view)
        return tl_in(view, 1 + v->type->rank + axis);
    if (!sub)
        return NULL;
    tl_set_operand(c->op, 0, tl_in(sub, 0));
    canon_touch(c);
    return NULL;
}

static TlValue *rule_view_ptr(Canon *c)
{
    TlOp *view = canon_def(canon_in(c, 0), TL_OP_VIEW);
    if (!view || tl_in(view, 0)->type != canon_type(c))
        return NULL;
    return tl_in(view, 0);
}

const CanonRow canon_shape_rows[] = {
    {TL_OP_BROADCAST, rule_broadcast}, {TL_OP_EXPAND, plain_shape}, {TL_OP_RESHAPE, rule_reshape},
    {TL_OP_TRANS, rule_trans},         {TL_OP_IOTA, rule_iota},     {TL_OP_REDUCE, rule_reduce},
    {TL_OP_SCAN, rule_scan},           {TL_OP_CAST, rule_cast},     {TL_OP_BITCAST, rule_bitcast},
    {TL_OP_PTR_ADD, rule_ptr_add},     {TL_OP_EXTENT, rule_extent}, {TL_OP_STRIDE, rule_stride},
    {TL_OP_VIEW_PTR, rule_view_ptr},   {TL_OP_CONST, NULL}};

/* ---- masks ---- */

static void drop_operand(TlOp *op, uint32_t i, TlAttrId flag)
{
    tl_remove_operand(op, i);
    tl_attr_remove(op, flag);
}

/* Is it a load that reads nothing? */
static bool load_nothing(Canon *c, TlValue *other)
{
    const TlType *type = canon_type(c);
    TlValue *v = other ? tl_broadcast(&c->b, other, type->rank, type->shape) : canon_const(c, 0);
    tl_replace_uses(c->op->out[0], v);
    tl_op_erase(c->op);
    return true;
}

static bool simplify_mask(Canon *c, uint32_t at, TlValue *other)
{
    TlOp *op = c->op;
    TlValue *mask = tl_in(op, at), *origin = scalar_origin(mask);
    uint64_t bits;
    if (canon_is_const(mask, &bits)) {
        if (bits) {
            drop_operand(op, at, TL_ATTR_MASK);
            return true;
        }
        if (op->opcode == TL_OP_LOAD)
            return load_nothing(c, other);
        if (op->opcode != TL_OP_STORE)
            return false;
        tl_op_erase(op);
        return true;
    }
    if (!origin || origin == mask)
        return false;
    tl_set_operand(op, at, origin);
    return true;
}

static bool simplify_other(TlOp *op)
{
    uint32_t at = op->nin - 1;
    TlValue *other = tl_in(op, at), *origin = scalar_origin(other);
    uint64_t bits;
    if (canon_is_const(other, &bits) && bits == 0) {
        drop_operand(op, at, TL_ATTR_OTHER);
        return true;
    }
    if (!origin || origin == other)
        return false;
    tl_set_operand(op, at, origin);
    return true;
}

bool canon_memory(Canon *c)
{
    TlOp *op = c->op;
    uint64_t bits;
    if (op->opcode == TL_OP_ASSERT || op->opcode == TL_OP_ASSUME) {
        if (!canon_is_const(canon_in(c, 0), &bits) || !bits)
            return false;
        tl_op_erase(op);
        return true;
    }
    bool is_access = op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE ||
                     (tl_op_info(op->opcode)->flags & F_ATOMIC);
    bool masked = tl_attr_flag(op, TL_ATTR_MASK), has_other = tl_attr_flag(op, TL_ATTR_OTHER);
    TlValue *other = has_other ? tl_in(op, op->nin - 1) : NULL;
    if (is_access && masked && simplify_mask(c, op->nin - 1 - has_other, other))
        return true;
    return is_access && has_other && simplify_other(op);
}
