/* load(place, border = ...): an index outside along an axis is mapped to one inside, as NumPy's
 * pad does.
 *
 *     if (every slice and scalar index is inside)   a plain load, without any test of bounds
 *     else                                          a gather at mapped positions
 *
 * Index tiles are mapped in both arms; where there is nothing else, there is one load. Along an
 * extent of 0 no position is inside (edge gives -1): the gather tests bounds and gives 0.
 *
 * With E the extent, an edge is min(max(x, 0), E - 1); the others are the op `border`, by whose
 * name passes know that what is inside stays (ir/border_op.h). */
#include <string.h>

#include "frontend/sema.h"
#include "ir/border_op.h"

static const char *const NAMES[] = {"edge", "reflect", "symmetric", "wrap"};

bool tl_border_of(TlSema *s, const TlExpr *e, TlBorder *out)
{
    const char *word = e->kind == TL_EX_NAME ? e->u.name : NULL;
    for (int i = 0; word && i < TL_BORDER_WRAP; i++)
        if (!strcmp(word, NAMES[i])) {
            *out = (TlBorder)(i + 1);
            return true;
        }
    tl_err(s, e->loc, TL_E0330, word ? word : "this", "edge, reflect, symmetric, wrap");
    return false;
}

/* ---- arithmetic ---- */

static TlValue *with(TlSema *s, TlOpcode op, TlValue *x, int64_t y)
{
    return tl_binary(&s->b, op, x, tl_const_int(&s->b, x->type, y));
}

static TlValue *spread(TlSema *s, TlValue *scalar, const TlValue *like)
{
    TL_ASSERT(scalar->type->rank == 0, "value %u is no scalar", scalar->id);
    return tl_broadcast_ir(s, scalar, like->type->rank, like->type->shape);
}

static TlValue *extent_of(TlSema *s, const TlAccess *a, uint32_t axis)
{
    return tl_view_extent(s, a->base, axis, false, true).u.ir;
}

/* The type that positions are computed in: of at least 32 bits, and has all of them. */
static TlDtype working_dtype(TlDtype d)
{
    if (tl_is_signed(d))
        return tl_dtype_bits(d) > 32 ? TL_I64 : TL_I32;
    return tl_dtype_bits(d) > 32 ? TL_U64 : tl_dtype_bits(d) == 32 ? TL_I64 : TL_I32;
}

/* Of a border but the edge. */
static TlWay way_of(TlBorder border)
{
    TL_ASSERT(border > TL_BORDER_EDGE, "border %d", (int)border);
    return border == TL_BORDER_REFLECT     ? TL_WAY_REFLECT
           : border == TL_BORDER_SYMMETRIC ? TL_WAY_SYMMETRIC
                                           : TL_WAY_WRAP;
}

/* A scalar in i64 in type d: its greatest number stands for all greater ones. */
static TlValue *bounded(TlSema *s, TlValue *x, TlDtype d)
{
    int64_t most = d == TL_I32 ? INT32_MAX : INT64_MAX;
    return tl_cast(&s->b, most < INT64_MAX ? with(s, TL_OP_MIN, x, most) : x, d);
}

static TlValue *clamped(TlSema *s, TlValue *x, TlValue *extent)
{
    TlValue *last = bounded(s, with(s, TL_OP_SUB, extent, 1), x->type->dtype);
    if (tl_is_signed(x->type->dtype))
        x = with(s, TL_OP_MAX, x, 0);
    return tl_binary(&s->b, TL_OP_MIN, x, spread(s, last, x));
}

/* Any positions, each mapped to one inside. */
static TlValue *mapped(TlSema *s, TlBorder border, TlValue *x, TlValue *extent)
{
    TlDtype d = working_dtype(x->type->dtype);
    x = tl_cast(&s->b, x, d);
    return border == TL_BORDER_EDGE ? clamped(s, x, extent)
                                    : tl_border_op(&s->b, way_of(border), x, extent);
}

/* A slice's start as another that no slice makes overflow and whose positions map alike. */
static TlValue *near_start(TlSema *s, TlBorder border, TlValue *x, TlValue *extent)
{
    const int64_t far = (int64_t)1 << 61;
    bool is_u64 = x->type->dtype == TL_U64;
    if (border == TL_BORDER_EDGE) {
        if (is_u64)
            x = with(s, TL_OP_MIN, x, far);
        x = tl_cast(&s->b, x, TL_I64);
        return with(s, TL_OP_MIN, with(s, TL_OP_MAX, x, -far), far);
    }
    if (tl_dtype_bits(x->type->dtype) <= 32) /* is near */
        return tl_cast(&s->b, x, TL_I64);
    TlDtype d = is_u64 ? TL_U64 : TL_I64;
    TlValue *period = tl_cast(&s->b, tl_border_period(&s->b, way_of(border), extent), d);
    x = tl_binary(&s->b, TL_OP_REM, tl_cast(&s->b, x, d), period);
    return tl_cast(&s->b, x, TL_I64);
}

/* ---- the place outside ---- */

static TlValue *positions(TlSema *s, TlBorder border, const TlAccess *a, uint32_t axis,
                          TlValue *extent)
{
    const TlAxis *x = &a->axes[axis];
    TlValue *start = near_start(s, border, a->index[axis], extent);
    TlValue *i = with(s, TL_OP_MUL, tl_emit_iota(s, x->width, TL_I64), x->step);
    return tl_binary(&s->b, TL_OP_ADD, spread(s, start, i), i);
}

static bool is_pointwise(const TlAccess *a)
{
    for (uint32_t i = 0; i < a->naxes; i++)
        if (a->index[i]->type->rank > 1)
            return true;
    return false;
}

/* Index tiles of a pointwise place and the slices behind them, as tiles of the place's shape. */
static void make_points(TlSema *s, TlAccess *a)
{
    int32_t shape[TL_MAX_RANK] = {1}, own[TL_MAX_RANK];
    int rank = a->rank + a->leading_1, at = 0;
    memcpy(shape + a->leading_1, a->shape, sizeof *shape * (size_t)a->rank);
    for (uint32_t i = 0; i < a->naxes; i++)
        if (a->axes[i].kind == TL_AXIS_TILE)
            at = a->index[i]->type->rank;
    for (uint32_t i = 0; i < a->naxes; i++) {
        bool slice = a->axes[i].kind == TL_AXIS_SLICE;
        if (a->axes[i].kind == TL_AXIS_SCALAR)
            continue;
        int first = slice ? at++ : 0, n = a->index[i]->type->rank;
        for (int k = 0; k < rank; k++)
            own[k] = k >= first && k < first + n ? shape[k] : 1;
        a->index[i] =
            tl_broadcast_ir(s, tl_emit_reshape(s, a->index[i], rank, own), rank, shape);
    }
}

/* All axes mapped, slices as index tiles. */
static TlAccess outside(TlSema *s, TlBorder border, const TlAccess *place)
{
    TlAccess a = *place;
    bool points = is_pointwise(place);
    for (uint32_t i = 0; i < a.naxes; i++) {
        TlValue *extent = extent_of(s, place, i), *x = a.index[i];
        if (a.axes[i].kind == TL_AXIS_SLICE)
            x = positions(s, border, place, i, extent);
        a.index[i] = mapped(s, border, x, extent);
    }
    if (points)
        make_points(s, &a);
    for (uint32_t i = 0; i < a.naxes; i++)
        if (a.axes[i].kind == TL_AXIS_SLICE)
            a.axes[i] = (TlAxis){.kind = TL_AXIS_TILE, .width = 1, .step = 1};
    return a;
}

/* ---- the place inside ---- */

static TlValue *both(TlSema *s, TlValue *a, TlValue *b)
{
    return a ? tl_binary(&s->b, TL_OP_AND, a, b) : b;
}

/* Is everything inside, once index tiles are mapped? Nothing here overflows. */
static TlValue *is_inside(TlSema *s, const TlAccess *a)
{
    TlValue *all = NULL;
    for (uint32_t i = 0; i < a->naxes; i++) {
        const TlAxis *x = &a->axes[i];
        TlValue *extent = extent_of(s, a, i);
        if (x->kind == TL_AXIS_TILE) {
            all = both(s, all, with(s, TL_OP_GT, extent, 0));
            continue;
        }
        int64_t to = x->kind == TL_AXIS_SLICE ? (int64_t)(x->width - 1) * x->step : 0;
        TlValue *start = tl_cast(&s->b, a->index[i], TL_I64);
        TlValue *most = with(s, TL_OP_SUB, extent, (to > 0 ? to : 0) + 1);
        all = both(s, all, with(s, TL_OP_GE, start, to < 0 ? -to : 0));
        all = both(s, all, tl_binary(&s->b, TL_OP_LE, start, most));
    }
    return all;
}

static TlAccess inside(TlSema *s, TlBorder border, const TlAccess *place)
{
    TlAccess a = *place;
    a.unchecked = true;
    for (uint32_t i = 0; i < a.naxes; i++)
        if (a.axes[i].kind == TL_AXIS_TILE)
            a.index[i] = mapped(s, border, a.index[i], extent_of(s, place, i));
    return a;
}

/* ---- the load ---- */

static bool check_place(TlSema *s, const TlAccess *a, const TlMemArgs *m, TlLoc loc)
{
    if (!a->view)
        tl_err(s, loc, TL_E0316, "border", "a pointer, which has no extents");
    else if (a->unchecked)
        tl_err(s, loc, TL_E0371, "unchecked");
    else if (m->other)
        tl_err(s, loc, TL_E0371, "pad");
    else
        return true;
    return false;
}

TlVal tl_border_load(TlSema *s, const TlAccess *place, const TlMemArgs *m, TlBorder border,
                     TlLoc loc)
{
    if (!check_place(s, place, m, loc))
        return tl_bad();
    bool sliced = false;
    for (uint32_t i = 0; i < place->naxes; i++)
        sliced |= place->axes[i].kind == TL_AXIS_SLICE;
    if (!sliced) {
        TlAccess a = outside(s, border, place);
        return tl_access_load(s, &a, m);
    }
    TlArm plain, gather;
    TlValue *cond = is_inside(s, place);
    tl_arm_begin(s, &plain);
    TlAccess in = inside(s, border, place);
    TlVal x = tl_access_load(s, &in, m), out;
    tl_arm_end(s, &plain);
    tl_arm_begin(s, &gather);
    TlAccess at = outside(s, border, place);
    TlVal y = tl_is_bad(&x) ? x : tl_access_load(s, &at, m);
    tl_arm_end(s, &gather);
    tl_arms_join(s, cond, &plain, &gather, &x, &y, &out, s->b.loc);
    return out;
}
