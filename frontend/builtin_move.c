/* Built-in functions that move elements: gather along an axis, and those that are gathers with an
 * index made by the compiler: cat, flip, extract, shift, roll. */
#include "frontend/sema.h"

/* ---- arguments ---- */

/* Slot i as a tile with axes, of elements that can be moved (4-bit types cannot). */
static TlValue *tile_arg(TlSema *s, TlCall *c, uint32_t i)
{
    TL_ASSERT(i < c->nslots, "slot %u of %s", i, c->fn->name);
    TlValue *x = tl_call_ir(s, c, i);
    if (!x || (x->type->rank > 0 && tl_dtype_bits(x->type->dtype) != 4))
        return x;
    tl_err(s, c->loc, TL_E0316, c->fn->name, tl_type_str(s->ctx, x->type));
    return NULL;
}

/* Slot 0 as a tile and slot `slot` as one of its axes; NULL: *out is the call's value. */
static TlValue *tile_and_axis(TlSema *s, TlCall *c, uint32_t slot, int *axis, TlVal *out)
{
    TlValue *x = tile_arg(s, c, 0);
    *out = tl_bad();
    return x && tl_call_axis(s, c, slot, x->type->rank, axis, out) ? x : NULL;
}

/* Tiles of one rank whose extents may differ along `axis` only. */
static bool fit_beside(TlSema *s, TlCall *c, const TlValue *x, const TlValue *y, int axis)
{
    bool ok = x->type->rank == y->type->rank;
    for (int d = 0; ok && d < x->type->rank; d++)
        ok = d == axis || x->type->shape[d] == y->type->shape[d];
    if (!ok)
        tl_err(s, c->loc, TL_E0340, c->fn->name, tl_type_str(s->ctx, x->type),
               tl_type_str(s->ctx, y->type), axis);
    return ok;
}

/* ---- gathers along an axis ---- */

/* A vector of numbers as the index of a gather from x along `axis`. */
static TlValue *along(TlSema *s, const TlValue *x, int axis, TlValue *vector)
{
    TL_ASSERT(axis >= 0 && axis < x->type->rank, "axis %d of %d", axis, (int)x->type->rank);
    int rank = x->type->rank;
    int32_t shape[TL_MAX_RANK], ones[TL_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        shape[d] = d == axis ? vector->type->shape[0] : x->type->shape[d];
        ones[d] = d == axis ? shape[d] : 1;
    }
    return tl_broadcast(&s->b, tl_emit_reshape(s, vector, rank, ones), rank, shape);
}

/* start, start + step, ...: n numbers of start's type, which is an integer scalar */
static TlValue *numbers(TlSema *s, int32_t n, TlValue *start, int step)
{
    TlValue *i = tl_emit_iota(s, n, start->type->dtype);
    TlValue *from = tl_broadcast(&s->b, start, 1, &n);
    return tl_binary(&s->b, step < 0 ? TL_OP_SUB : TL_OP_ADD, from, i);
}

static TlValue *i32_const(TlSema *s, int64_t v)
{
    return tl_const_int(&s->b, tl_type_scalar(s->ctx, TL_I32), v);
}

TlValue *tl_emit_window(TlSema *s, TlValue *x, int axis, int32_t n, int32_t start, int step)
{
    if (start == 0 && step == 1 && n == x->type->shape[axis])
        return x;
    return tl_emit_gather(s, x, along(s, x, axis, numbers(s, n, i32_const(s, start), step)), axis);
}

TlVal tl_bi_move_gather(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlValue *x = tile_and_axis(s, c, 2, &axis, &bad), *index = tl_call_ir(s, c, 1);
    if (!x || !index)
        return x ? tl_bad() : bad;
    if (!tl_is_int(index->type->dtype) || tl_dtype_bits(index->type->dtype) < 8) {
        tl_err(s, c->vloc[1], TL_E0503, tl_type_str(s->ctx, index->type));
        return tl_bad();
    }
    bool fits = fit_beside(s, c, x, index, axis);
    return fits ? tl_val_ir(tl_emit_gather(s, x, index, axis)) : tl_bad();
}

TlVal tl_bi_move_flip(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlValue *x = tile_and_axis(s, c, 1, &axis, &bad);
    if (!x)
        return bad;
    int32_t n = x->type->shape[axis];
    return tl_val_ir(n == 1 ? x : tl_emit_window(s, x, axis, n, n - 1, -1));
}

/* ---- cat ---- */

/* a before b along a new axis of 2 before `axis`, which is then merged into it: with suitable
 * layouts no element moves between threads. For extents that are equal powers of two. */
static TlValue *stack(TlSema *s, TlValue *a, TlValue *b, int axis)
{
    TL_ASSERT(a->type == b->type && axis >= 0 && axis <= a->type->rank,
              "axis %d at rank %d", axis, (int)a->type->rank);
    int rank = a->type->rank;
    int32_t shape[TL_MAX_RANK + 1], joined[TL_MAX_RANK];
    for (int d = 0; d <= rank; d++)
        shape[d] = d == axis ? 2 : a->type->shape[d - (d > axis)];
    for (int d = 0; d < rank; d++)
        joined[d] = a->type->shape[d] * (d == axis ? 2 : 1);
    a = tl_broadcast(&s->b, tl_emit_expand(s, a, axis), rank + 1, shape);
    b = tl_broadcast(&s->b, tl_emit_expand(s, b, axis), rank + 1, shape);
    TlValue *which = tl_emit_index(s, rank + 1, shape, axis);
    TlValue *first = tl_binary(&s->b, TL_OP_EQ, which, tl_const_bits(&s->b, which->type, 0));
    return tl_emit_reshape(s, tl_select(&s->b, first, a, b), rank, joined);
}

/* Gathers both along the result's axis and selects between them. */
static TlValue *cat(TlSema *s, TlValue *a, TlValue *b, int axis)
{
    TL_ASSERT(axis >= 0 && axis < a->type->rank, "axis %d of %d", axis, (int)a->type->rank);
    int32_t na = a->type->shape[axis], nb = b->type->shape[axis], n = na + nb;
    if (na == nb && !(na & (na - 1)) && a->type->rank < TL_MAX_RANK)
        return stack(s, a, b, axis);
    TlValue *x = tl_emit_window(s, a, axis, n, 0, 1), *y = tl_emit_window(s, b, axis, n, -na, 1);
    TlValue *i = tl_emit_iota(s, n, TL_I32);
    TlValue *first = tl_binary(&s->b, TL_OP_LT, i, tl_const_int(&s->b, i->type, na));
    return tl_select(&s->b, along(s, x, axis, first), x, y);
}

TlVal tl_bi_move_cat(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlValue *x = tile_and_axis(s, c, 2, &axis, &bad), *y = x ? tile_arg(s, c, 1) : NULL;
    if (!x || !y)
        return x ? tl_bad() : bad;
    TlDtype d;
    if (!fit_beside(s, c, x, y, axis))
        return tl_bad();
    if (!tl_common_dtype(x->type->dtype, y->type->dtype, &d)) {
        tl_err(s, c->loc, TL_E0302, c->fn->name, tl_type_str(s->ctx, x->type),
               tl_type_str(s->ctx, y->type));
        return tl_bad();
    }
    if (tl_type_elems(x->type) + tl_type_elems(y->type) > TL_MAX_ELEMS) {
        tl_err(s, c->loc, TL_E0307, TL_MAX_ELEMS);
        return tl_bad();
    }
    return tl_val_ir(cat(s, tl_cast(&s->b, x, d), tl_cast(&s->b, y, d), axis));
}

/* ---- extract ---- */

/* Index i of extract as start and width; an index without a width is one element and drops its
 * axis. */
static bool part_of_axis(TlSema *s, TlCall *c, uint32_t i, int32_t extent, int64_t *start,
                         int64_t *width)
{
    TL_ASSERT(extent > 0, "an axis of %d", (int)extent);
    bool unknown = false;
    *width = c->widths[i] < 0 ? 1 : c->widths[i];
    if (!tl_int_of(s, &c->rest[i], c->rest_expr[i]->loc, "the start of extract", start, &unknown))
        return false;
    if (*start >= 0 && *width >= 1 && *start + *width <= extent)
        return true;
    tl_err(s, c->loc, TL_E0335, (long long)*start, (long long)(*start + *width - 1), extent);
    return false;
}

TlVal tl_bi_move_extract(TlSema *s, TlCall *c)
{
    int32_t shape[TL_MAX_RANK];
    int rank = 0;
    TlValue *x = tile_arg(s, c, 0);
    if (!x)
        return tl_bad();
    if ((int)c->nrest != x->type->rank) {
        tl_err(s, c->loc, TL_E0317, (unsigned)x->type->rank, tl_format(s->arena, "%u", c->nrest));
        return tl_bad();
    }
    for (uint32_t i = 0; i < c->nrest; i++) {
        int64_t start = 0, width = 0;
        if (!part_of_axis(s, c, i, x->type->shape[i], &start, &width))
            return tl_bad();
        x = tl_emit_window(s, x, (int)i, (int32_t)width, (int32_t)start, 1);
        if (c->widths[i] >= 0)
            shape[rank++] = (int32_t)width;
    }
    return tl_val_ir(tl_emit_reshape(s, x, rank, shape));
}

/* ---- shift ---- */

/* The distance as an integer scalar of at least 32 bits. */
static TlValue *distance(TlSema *s, TlCall *c, uint32_t slot)
{
    TL_ASSERT(slot < c->nslots, "slot %u of %s", slot, c->fn->name);
    TlValue *n = tl_call_ir(s, c, slot);
    if (n && (n->type->rank || !tl_is_int(n->type->dtype))) {
        tl_err(s, c->vloc[slot], TL_E0338, c->fn->name, "n", "an integer scalar",
               tl_type_str(s->ctx, n->type));
        return NULL;
    }
    return n && tl_dtype_bits(n->type->dtype) < 32 ? tl_cast(&s->b, n, TL_I32) : n;
}

/* result[i] = x[i - n]. The differences wrap around: read as unsigned, those below the extent are
 * valid. */
TlVal tl_bi_move_shift(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlValue *x = tile_and_axis(s, c, 1, &axis, &bad), *n = x ? distance(s, c, 2) : NULL;
    if (!x || !n)
        return x ? tl_bad() : bad;
    int32_t extent = x->type->shape[axis];
    TlValue *i = numbers(s, extent, tl_unary(&s->b, TL_OP_NEG, n), 1);
    TlDtype d = tl_dtype_bits(n->type->dtype) == 64 ? TL_U64 : TL_U32;
    i = tl_emit(s, TL_OP_BITCAST, 1, &i, tl_type_with_dtype(s->ctx, i->type, d), 0, NULL);
    TlValue *y = tl_emit_gather(s, x, along(s, x, axis, i), axis);
    if (!c->given[3])
        return tl_val_ir(y);
    TlValue *fill = tl_convert_ir(s, &c->val[3], x->type, c->vloc[3]);
    if (!fill)
        return tl_bad();
    TlValue *inside = tl_binary(&s->b, TL_OP_LT, i, tl_const_int(&s->b, i->type, extent));
    return tl_val_ir(tl_select(&s->b, along(s, x, axis, inside), y, fill));
}

/* ---- roll ---- */

/* n modulo the extent, from 0 on, as an i32 scalar; known distances stay known. */
static TlValue *distance_around(TlSema *s, TlValue *n, int32_t extent)
{
    TL_ASSERT(extent > 0 && n->type->rank == 0, "around %d elements", (int)extent);
    TlBuilder *b = &s->b;
    TlValue *r = tl_binary(b, TL_OP_REM, n, tl_const_int(b, n->type, extent));
    r = tl_cast(b, r, TL_I32);
    if (!tl_is_signed(n->type->dtype))
        return r;
    TlValue *below = tl_binary(b, TL_OP_LT, r, i32_const(s, 0));
    return tl_select(b, below, tl_binary(b, TL_OP_ADD, r, i32_const(s, extent)), r);
}

/* result[i] = x[(i - n) mod extent] */
TlVal tl_bi_move_roll(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlValue *x = tile_and_axis(s, c, 1, &axis, &bad), *n = x ? distance(s, c, 2) : NULL;
    if (!x || !n)
        return x ? tl_bad() : bad;
    int32_t extent = x->type->shape[axis];
    if (extent == 1)
        return tl_val_ir(x);
    TlValue *from = tl_unary(&s->b, TL_OP_NEG, distance_around(s, n, extent));
    TlValue *i = numbers(s, extent, from, 1);
    TlValue *zero = tl_const_bits(&s->b, i->type, 0),
            *around = tl_binary(&s->b, TL_OP_ADD, i, tl_const_int(&s->b, i->type, extent));
    i = tl_select(&s->b, tl_binary(&s->b, TL_OP_LT, i, zero), around, i);
    return tl_val_ir(tl_emit_gather(s, x, along(s, x, axis, i), axis));
}
