/* What frontend/border.c makes of indices, found again: with r the magnitude of x modulo a period,
 *
 *     wrap        period E            x < 0 ? E - 1 - r : r      r of x, or of ~x below 0
 *     symmetric   period 2 E          min(r, 2 E - 1 - r)        the same
 *     reflect     period 2 (E - 1)    min(r, 2 (E - 1) - r)      r of x, or of -x below 0
 *
 * where periods are 1 at least. What is known not to be below 0 has no `x < 0`. */
#include "passes/analysis/border_index.h"

#include "ir/rewrite.h"
#include "passes/analysis/facts.h"

typedef struct Axis {
    const TlValue *view;
    uint32_t axis;
} Axis;

static bool is_number(const TlValue *v, TlWideInt n)
{
    TlWideInt x;
    return tl_const_int_value(v, &x) && x == n;
}

/* The scalar that all elements are. */
static const TlValue *scalar_of(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_BROADCAST)
        v = tl_in(v->def, 0);
    return v;
}

static const TlValue *without_casts(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_CAST && tl_is_int(tl_in(v->def, 0)->type->dtype))
        v = tl_in(v->def, 0);
    return v;
}

/* The other operand of an op with that number; v: it is none. */
static const TlValue *without(const TlValue *v, TlOpcode opcode, TlWideInt n)
{
    const TlOp *op = v->def;
    for (uint32_t i = 0; op && op->opcode == opcode && op->nin == 2 && i < 2; i++)
        if (is_number(tl_in(op, i), n))
            return tl_in(op, 1 - i);
    return v;
}

static bool is_extent(const TlValue *v, Axis a)
{
    const TlOp *op = v->def;
    return op && op->opcode == TL_OP_EXTENT && tl_in(op, 0) == a.view &&
           tl_attr_int(op, TL_ATTR_AXIS, 0) == a.axis;
}

static bool is_extent_less_1(const TlValue *v, Axis a)
{
    const TlValue *x = without(v, TL_OP_ADD, -1);
    return x != v && is_extent(x, a);
}

/* The way whose period v is. */
static TlMirror way_of(const TlValue *v, Axis a)
{
    v = without(v, TL_OP_MAX, 1);
    if (is_extent(v, a))
        return TL_MIRROR_WRAP;
    const TlValue *half = without(v, TL_OP_SHL, 1);
    if (half == v || !is_number(tl_in(v->def, 1), 1))
        return TL_MIRROR_NONE;
    return is_extent(half, a)          ? TL_MIRROR_SYMMETRIC
           : is_extent_less_1(half, a) ? TL_MIRROR_REFLECT
                                       : TL_MIRROR_NONE;
}

/* x, where v is its magnitude; *out_below: x < 0, NULL where it is not. */
static TlValue *of_magnitude(TlValue *v, TlMirror way, const TlValue **out_below)
{
    const TlOp *op = v->def;
    *out_below = NULL;
    if (!op || op->opcode != TL_OP_SELECT)
        return v;
    TlOpcode turn = way == TL_MIRROR_REFLECT ? TL_OP_NEG : TL_OP_NOT;
    TlValue *x = tl_in(op, 2);
    const TlOp *is = tl_in(op, 0)->def, *turned = tl_in(op, 1)->def;
    if (!is || is->opcode != TL_OP_LT || tl_in(is, 0) != x || !is_number(tl_in(is, 1), 0) ||
        !turned || turned->opcode != turn || tl_in(turned, 0) != x)
        return NULL;
    *out_below = tl_in(op, 0);
    return x;
}

/* r's way and x. */
static TlMirror of_remainder(const TlValue *r, Axis a, TlValue **out_x, const TlValue **out_below)
{
    const TlOp *cast = r->def,
               *rem = cast && cast->opcode == TL_OP_CAST ? tl_in(cast, 0)->def : NULL;
    if (!rem || rem->opcode != TL_OP_REM || tl_is_signed(rem->out[0]->type->dtype))
        return TL_MIRROR_NONE;
    const TlOp *m = tl_in(rem, 0)->def;
    const TlValue *period = without_casts(scalar_of(tl_in(rem, 1)));
    period = without(period, TL_OP_MIN, UINT32_MAX);
    TlMirror way = way_of(period, a);
    if (!way || !m || m->opcode != TL_OP_CAST ||
        tl_dtype_bits(tl_in(m, 0)->type->dtype) != tl_dtype_bits(m->out[0]->type->dtype))
        return TL_MIRROR_NONE;
    *out_x = of_magnitude(tl_in(m, 0), way, out_below);
    return *out_x ? way : TL_MIRROR_NONE;
}

/* Is v a number less r? */
static const TlValue *less(const TlValue *v, const TlValue *r)
{
    const TlOp *op = v->def;
    return op && op->opcode == TL_OP_SUB && tl_in(op, 1) == r ? scalar_of(tl_in(op, 0)) : NULL;
}

TlMirror tl_border_index(const TlValue *v, const TlValue *view, uint32_t axis, TlValue **out_x)
{
    const TlOp *op = v->def;
    const TlValue *below = NULL, *end;
    Axis a = {view, axis};
    TlMirror way = TL_MIRROR_NONE;
    if (op && op->opcode == TL_OP_SELECT) {
        const TlValue *r = tl_in(op, 2);
        way = of_remainder(r, a, out_x, &below);
        end = less(tl_in(op, 1), r);
        bool is = way == TL_MIRROR_WRAP && below == tl_in(op, 0) && end && is_extent_less_1(end, a);
        return is ? way : TL_MIRROR_NONE;
    }
    for (uint32_t i = 0; op && op->opcode == TL_OP_MIN && i < 2; i++) {
        const TlValue *r = tl_in(op, i);
        way = of_remainder(r, a, out_x, &below);
        end = less(tl_in(op, 1 - i), r);
        const TlValue *period =
            end && way == TL_MIRROR_SYMMETRIC ? without(end, TL_OP_ADD, -1) : end;
        if (way > TL_MIRROR_WRAP && end && (way == TL_MIRROR_REFLECT || period != end) &&
            way_of(period, a) == way)
            return way;
    }
    way = of_remainder(v, a, out_x, &below);
    return way == TL_MIRROR_WRAP && !below ? way : TL_MIRROR_NONE;
}
