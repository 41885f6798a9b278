/* Built-in functions that make tiles and change their shape, and matrix products. */
#include "frontend/sema.h"
#include <string.h>

/* ---- make ---- */

TlVal tl_bi_make_iota(TlSema *s, TlCall *c)
{
    int64_t n = 0;
    TlVal bad;
    if (!tl_call_int(s, c, 0, "the length of iota", &n, &bad))
        return bad;
    if (!tl_extent_check(s, c->vloc[0], c->expr[0], n, 1))
        return tl_bad();
    return tl_val_ir(tl_emit_iota(s, (int32_t)n, TL_I32));
}

TlVal tl_bi_make_zeros(TlSema *s, TlCall *c)
{
    TlTy ty = tl_ty_of(s, &c->val[0]);
    return tl_zero(s, &ty);
}

TlVal tl_bi_make_identity(TlSema *s, TlCall *c)
{
    (void)s;
    return c->val[0];
}

/* ---- shapes ---- */

/* The variadic integers as a shape. False: diagnosed. */
static bool rest_shape(TlSema *s, TlCall *c, int *rank, int32_t *shape, TlVal *bad)
{
    int64_t product = 1;
    *bad = tl_bad();
    *rank = (int)c->nrest;
    if (c->nrest > TL_MAX_RANK) {
        tl_err(s, c->loc, TL_E0308, TL_MAX_RANK, (int)c->nrest);
        return false;
    }
    for (uint32_t i = 0; i < c->nrest; i++) {
        int64_t n = 0;
        bool unknown = false;
        if (!tl_int_of(s, &c->rest[i], c->rest_expr[i]->loc, "an extent", &n, &unknown))
            return false;
        if (!tl_extent_check(s, c->rest_expr[i]->loc, c->rest_expr[i], n, product))
            return false;
        product *= n;
        shape[i] = (int32_t)n;
    }
    return true;
}

/* Slot 0 as a tile of any element, pointers too. */
static TlValue *tile_arg(TlSema *s, TlCall *c, uint32_t i)
{
    if (tl_is_pointer(&c->val[i]))
        return c->val[i].u.ir;
    return tl_call_ir(s, c, i);
}

static TlVal wrong_rank(TlSema *s, TlCall *c, TlValue *x)
{
    tl_err(s, c->loc, TL_E0316, c->fn->name, tl_type_str(s->ctx, x->type));
    return tl_bad();
}

TlVal tl_bi_shape_vector(TlSema *s, TlCall *c)
{
    TlValue *x = tile_arg(s, c, 0);
    if (!x)
        return tl_bad();
    if (x->type->rank != 1)
        return wrong_rank(s, c, x);
    return tl_val_ir(tl_emit_expand(s, x, c->fn->data));
}

TlVal tl_bi_shape_expand(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlValue *x = tile_arg(s, c, 0);
    if (!x)
        return tl_bad();
    const char *result = tl_format(s->arena, "the result, of rank %d", x->type->rank + 1);
    if (!tl_call_axis_of(s, c, 1, x->type->rank + 1, result, &axis, &bad))
        return bad;
    if (x->type->rank == TL_MAX_RANK) {
        tl_err(s, c->loc, TL_E0308, TL_MAX_RANK, TL_MAX_RANK + 1);
        return tl_bad();
    }
    return tl_val_ir(x->type->rank ? tl_emit_expand(s, x, axis)
                                   : tl_broadcast(&s->b, x, 1, (int32_t[]){1}));
}

TlVal tl_bi_shape_broadcast(TlSema *s, TlCall *c)
{
    TlVal bad;
    int rank;
    int32_t shape[TL_MAX_RANK] = {0};
    TlValue *x = tile_arg(s, c, 0);
    if (!x || !rest_shape(s, c, &rank, shape, &bad))
        return x ? bad : tl_bad();
    if (!tl_broadcasts_to(x->type, rank, shape)) {
        tl_err(s, c->loc, TL_E0304, tl_type_str(s->ctx, x->type),
               tl_type_str(s->ctx, tl_type_with_shape(s->ctx, x->type, rank, shape)));
        return tl_bad();
    }
    return tl_val_ir(tl_broadcast_ir(s, x, rank, shape));
}

static TlValue *as_rank1(TlSema *s, TlValue *x)
{
    return x->type->rank ? x : tl_broadcast(&s->b, x, 1, (int32_t[]){1});
}

TlVal tl_bi_shape_reshape(TlSema *s, TlCall *c)
{
    TlVal bad;
    int rank;
    int32_t shape[TL_MAX_RANK] = {0};
    TlValue *x = tile_arg(s, c, 0);
    if (!x || !rest_shape(s, c, &rank, shape, &bad))
        return x ? bad : tl_bad();
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    if (n != tl_type_elems(x->type)) {
        tl_err(s, c->loc, TL_E0327, tl_type_str(s->ctx, x->type), (long long)tl_type_elems(x->type),
               (long long)n);
        return tl_bad();
    }
    return tl_val_ir(tl_emit_reshape(s, rank ? as_rank1(s, x) : x, rank, shape));
}

TlVal tl_bi_shape_trans(TlSema *s, TlCall *c)
{
    TlValue *x = tile_arg(s, c, 0);
    if (!x)
        return tl_bad();
    int rank = x->type->rank;
    if (rank < 2 && !c->nrest)
        return wrong_rank(s, c, x);
    int64_t *perm = TL_NEW_ARRAY(&s->b.fn->module->arena, int64_t, TL_MAX_RANK);
    uint32_t used = 0;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    if (!c->nrest)
        perm[rank - 2] = rank - 1, perm[rank - 1] = rank - 2;
    bool ok = !c->nrest || (int)c->nrest == rank;
    for (uint32_t i = 0; i < c->nrest && ok; i++) {
        bool unknown = false;
        int64_t p = 0;
        if (!tl_int_of(s, &c->rest[i], c->rest_expr[i]->loc, "an axis", &p, &unknown))
            return tl_bad();
        ok = p >= 0 && p < rank && !(used & 1u << p);
        if (ok)
            used |= 1u << p, perm[i] = p;
    }
    if (!ok) {
        tl_err(s, c->nrest ? c->rest_expr[0]->loc : c->loc, TL_E0332, rank - 1);
        return tl_bad();
    }
    int32_t shape[TL_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++)
        shape[i] = x->type->shape[perm[i]];
    TlAttr attr = {.id = TL_ATTR_PERM, .n = (uint32_t)rank, .u.ints = perm};
    return tl_val_ir(
        tl_emit(s, TL_OP_TRANS, 1, &x, tl_type_with_shape(s->ctx, x->type, rank, shape), 1, &attr));
}

TlVal tl_bi_shape_squeeze(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0, k = 0;
    TlValue *x = tile_arg(s, c, 0);
    if (!x || !tl_call_axis(s, c, 1, x->type->rank, &axis, &bad))
        return x ? bad : tl_bad();
    if (x->type->shape[axis] != 1)
        return wrong_rank(s, c, x);
    int32_t shape[TL_MAX_RANK] = {0};
    for (int i = 0; i < x->type->rank; i++)
        if (i != axis)
            shape[k++] = x->type->shape[i];
    return tl_val_ir(tl_emit_reshape(s, x, k, shape));
}

/* [.., E] to [.., E, 1] to [.., E, n] to [.., E * n] */
static TlValue *repeat_last(TlSema *s, TlValue *x, int32_t n)
{
    int rank = x->type->rank;
    int32_t shape[TL_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++)
        shape[i] = x->type->shape[i];
    shape[rank] = n;
    TlValue *y = tl_broadcast(&s->b, tl_emit_expand(s, x, rank), rank + 1, shape);
    shape[rank - 1] *= n;
    return tl_emit_reshape(s, y, rank, shape);
}

/* [.., E, ..] to [.., E, 1, ..] to [.., E, n, ..] to [.., E * n, ..] */
TlVal tl_bi_shape_repeat(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    int64_t n = 0;
    TlValue *x = tile_arg(s, c, 0);
    if (!x || !tl_call_axis(s, c, 1, x->type->rank, &axis, &bad) ||
        !tl_call_int(s, c, 2, "n", &n, &bad))
        return x ? bad : tl_bad();
    if (!tl_extent_check(s, c->vloc[2], c->expr[2], n, tl_type_elems(x->type)))
        return tl_bad();
    if (axis == x->type->rank - 1 && axis + 1 < TL_MAX_RANK)
        return tl_val_ir(repeat_last(s, x, (int32_t)n));
    int32_t flat[3] = {1, x->type->shape[axis], 1}, shape[TL_MAX_RANK] = {0};
    for (int i = 0; i < x->type->rank; i++) {
        shape[i] = x->type->shape[i] * (i == axis ? (int32_t)n : 1);
        if (i < axis)
            flat[0] *= x->type->shape[i];
        if (i > axis)
            flat[2] *= x->type->shape[i];
    }
    TlValue *y = tl_emit_expand(s, tl_emit_reshape(s, x, 3, flat), 2);
    y = tl_broadcast(&s->b, y, 4, (int32_t[]){flat[0], flat[1], (int32_t)n, flat[2]});
    return tl_val_ir(tl_emit_reshape(s, y, x->type->rank, shape));
}

/* Both, side by side, along a new last axis. */
static TlValue *joined(TlSema *s, TlValue *const x[2])
{
    TL_ASSERT(x[0]->type == x[1]->type, "tiles of different types");
    int rank = x[0]->type->rank;
    int32_t shape[TL_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++)
        shape[i] = x[0]->type->shape[i];
    shape[rank] = 2;
    TlValue *y[2];
    for (int i = 0; i < 2; i++)
        y[i] = tl_broadcast(&s->b, rank ? tl_emit_expand(s, x[i], rank) : x[i], rank + 1, shape);
    TlValue *index = tl_emit_index(s, rank + 1, shape, rank);
    TlValue *first = tl_binary(&s->b, TL_OP_EQ, index, tl_const_bits(&s->b, index->type, 0));
    return tl_select(&s->b, first, y[0], y[1]);
}

/* interleave: the new axis is merged into the one before it. A tile of the greatest rank has no
 * room for another axis: its first two are one meanwhile. */
static TlValue *interleaved(TlSema *s, TlValue *x[2])
{
    TL_ASSERT(x[0]->type == x[1]->type, "tiles of different types");
    const TlType *t = x[0]->type;
    int32_t shape[TL_MAX_RANK];
    memcpy(shape, t->shape, sizeof shape);
    shape[t->rank - 1] *= 2;
    if (t->rank == TL_MAX_RANK) {
        int32_t merged[TL_MAX_RANK] = {t->shape[0] * t->shape[1], t->shape[2], t->shape[3],
                                       t->shape[4]};
        for (int i = 0; i < 2; i++)
            x[i] = tl_emit_reshape(s, x[i], TL_MAX_RANK - 1, merged);
    }
    return tl_emit_reshape(s, joined(s, x), t->rank, shape);
}

TlVal tl_bi_shape_join(TlSema *s, TlCall *c)
{
    TlVal vals[2] = {c->val[0], c->val[1]}, bad;
    TlValue *x[2];
    if (!tl_unify(s, 2, vals, c->vloc, c->loc, c->fn->name, x, &bad))
        return bad;
    bool interleave = c->fn->data;
    int rank = x[0]->type->rank;
    if (interleave ? !rank : rank == TL_MAX_RANK)
        return wrong_rank(s, c, x[0]);
    if (2 * tl_type_elems(x[0]->type) > TL_MAX_ELEMS) {
        tl_err(s, c->loc, TL_E0307, TL_MAX_ELEMS);
        return tl_bad();
    }
    return tl_val_ir(interleave ? interleaved(s, x) : joined(s, x));
}

/* ---- one element of an axis: all others masked to zero bits, and an exclusive or of the bits
 * ---- */

static TlValue *masked_one(TlSema *s, TlValue *x, int axis, TlValue *mask)
{
    TL_ASSERT(axis >= 0 && axis < x->type->rank, "axis %d of %d", axis, (int)x->type->rank);
    TlDtype d = x->type->dtype, u = d == TL_BOOL ? TL_BOOL : tl_bits_dtype(d);
    const TlType *t = x->type, *ut = tl_type_with_dtype(s->ctx, t, u);
    TlValue *bits = u == d ? x : tl_emit(s, TL_OP_BITCAST, 1, &x, ut, 0, NULL);
    bits = tl_select(&s->b, mask, bits, tl_const_bits(&s->b, ut, 0));
    int32_t shape[TL_MAX_RANK] = {0};
    for (int i = 0, k = 0; i < t->rank; i++)
        if (i != axis)
            shape[k++] = t->shape[i];
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = axis},
                       {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_OR}};
    TlValue *r = tl_emit(s, TL_OP_REDUCE, 1, &bits,
                         tl_type_with_shape(s->ctx, ut, t->rank - 1, shape), 2, attrs);
    return u == d
               ? r
               : tl_emit(s, TL_OP_BITCAST, 1, &r, tl_type_with_dtype(s->ctx, r->type, d), 0, NULL);
}

static TlValue *index_is(TlSema *s, const TlType *t, int axis, TlValue *i)
{
    TL_ASSERT(axis >= 0 && axis < t->rank, "axis %d of %d", axis, (int)t->rank);
    TlValue *index = tl_emit_index(s, t->rank, t->shape, axis);
    if (i->type->dtype != TL_I32)
        index = tl_cast(&s->b, index, i->type->dtype);
    return tl_binary(&s->b, TL_OP_EQ, index, tl_broadcast_ir(s, i, t->rank, t->shape));
}

/* With --check, the program reports an index that is outside. */
static void assert_inside(TlSema *s, TlCall *c, TlValue *i, int32_t extent)
{
    TL_ASSERT(extent > 0, "an axis of %d", (int)extent);
    TlValue *end = tl_const_int(&s->b, i->type, extent), *zero = tl_const_bits(&s->b, i->type, 0);
    TlValue *ok = tl_binary(&s->b, TL_OP_AND, tl_binary(&s->b, TL_OP_GE, i, zero),
                            tl_binary(&s->b, TL_OP_LT, i, end));
    const char *text =
        tl_format(s->arena, "%s: the index is outside of 0 to %d", c->fn->name, extent - 1);
    TlAttr attr = {.id = TL_ATTR_TEXT, .u.s = tl_intern_name(s, text)};
    tl_op_new(&s->b, TL_OP_ASSERT, 1, &ok, 0, NULL, 0, 1, &attr);
}

/* The index as i32 or i64: a narrower type may not hold the axis's last number. */
static TlValue *run_time_index(TlSema *s, TlCall *c, uint32_t slot, int32_t extent)
{
    TL_ASSERT(slot < c->nslots && extent > 0, "slot %u of %s", slot, c->fn->name);
    TlValue *i = tl_call_ir(s, c, slot);
    if (!i)
        return NULL;
    if (!tl_is_int(i->type->dtype) || i->type->rank) {
        tl_err(s, c->vloc[slot], TL_E0503, tl_type_str(s->ctx, i->type));
        return NULL;
    }
    int bytes = tl_dtype_bytes(i->type->dtype);
    TlDtype wide = bytes > 4 || i->type->dtype == TL_U32 ? TL_I64 : TL_I32;
    i = i->type->dtype == wide ? i : tl_cast(&s->b, i, wide);
    if (s->options->check)
        assert_inside(s, c, i, extent);
    return i;
}

TlVal tl_bi_shape_pick(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlValue *x = tl_call_ir(s, c, 0);
    if (!x || !tl_call_axis(s, c, 1, x->type->rank, &axis, &bad))
        return x ? bad : tl_bad();
    TlValue *i = run_time_index(s, c, 2, x->type->shape[axis]);
    return i ? tl_val_ir(masked_one(s, x, axis, index_is(s, x->type, axis, i))) : tl_bad();
}

TlVal tl_bi_shape_put(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlValue *x = tl_call_ir(s, c, 0);
    if (!x || !tl_call_axis(s, c, 1, x->type->rank, &axis, &bad))
        return x ? bad : tl_bad();
    TlValue *i = run_time_index(s, c, 2, x->type->shape[axis]);
    int32_t shape[TL_MAX_RANK] = {0};
    for (int k = 0, n = 0; k < x->type->rank; k++)
        if (k != axis)
            shape[n++] = x->type->shape[k];
    TlValue *v = tl_convert_ir(
        s, &c->val[3], tl_type_with_shape(s->ctx, x->type, x->type->rank - 1, shape), c->vloc[3]);
    if (!i || !v)
        return tl_bad();
    if (v->type->rank)
        v = tl_emit_expand(s, v, axis);
    v = tl_broadcast_ir(s, v, x->type->rank, x->type->shape);
    return tl_val_ir(tl_select(&s->b, index_is(s, x->type, axis, i), v, x));
}

TlVal tl_bi_shape_split(TlSema *s, TlCall *c)
{
    TlValue *x = tl_call_ir(s, c, 0);
    if (!x)
        return tl_bad();
    int last = x->type->rank - 1;
    if (last < 0 || x->type->shape[last] != 2)
        return wrong_rank(s, c, x);
    TlVal out = tl_val_items(s, TL_VAL_TUPLE, NULL, 2);
    for (int k = 0; k < 2; k++) {
        TlValue *i = tl_const_int(&s->b, tl_type_scalar(s->ctx, TL_I32), k);
        out.items[k] = tl_val_ir(masked_one(s, x, last, index_is(s, x->type, last, i)));
    }
    return out;
}

/* ---- dot ---- */

/* The result's element type for two operands' types; COUNT: they cannot be multiplied. */
static TlDtype dot_result(TlDtype a, TlDtype b)
{
    bool small = tl_is_int(a) && tl_is_int(b) && tl_dtype_bits(a) == tl_dtype_bits(b);
    if (small && (tl_dtype_bits(a) == 8 || tl_dtype_bits(a) == 16))
        return TL_I32;
    if (tl_is_f8_pair(a, b))
        return TL_F32;
    if (a != b)
        return TL_DTYPE_COUNT;
    if (a == TL_F16 || a == TL_BF16 || a == TL_F32)
        return TL_F32;
    return a == TL_F64 || (tl_is_int(a) && tl_dtype_bits(a) >= 32) ? a : TL_DTYPE_COUNT;
}

static bool dot_shapes(TlSema *s, TlCall *c, TlValue *a, TlValue *b, int32_t *shape)
{
    const TlType *x = a->type, *y = b->type;
    int r = x->rank;
    if (x->rank != y->rank || r < 2 || r > 3 || (r == 3 && x->shape[0] != y->shape[0])) {
        TlDiag *row = tl_err(s, c->loc, TL_E0325, tl_type_str(s->ctx, x), tl_type_str(s->ctx, y));
        if (r == 1 && y->rank == 1)
            tl_label(s, row, "dot is of matrices; of vectors, write sum(a * b)");
        else if (r == 1 || y->rank == 1)
            tl_label(s, row, "dot is of matrices; a vector becomes one by row(v) or col(v)");
        return false;
    }
    if (x->shape[r - 1] != y->shape[r - 2]) {
        tl_label(s, tl_err(s, c->loc, TL_E0324, x->shape[r - 1], y->shape[r - 2]),
                 "the operands are %s and %s", tl_type_str(s->ctx, x), tl_type_str(s->ctx, y));
        return false;
    }
    if (r == 3)
        shape[0] = x->shape[0];
    shape[r - 2] = x->shape[r - 2];
    shape[r - 1] = y->shape[r - 1];
    return true;
}

/* The initial accumulator: the argument, converted to t, or 0. NULL: diagnosed. */
static TlValue *dot_acc(TlSema *s, TlCall *c, uint32_t slot, const TlType *t)
{
    TL_ASSERT(slot < c->nslots, "slot %u of %s", slot, c->fn->name);
    if (!c->given[slot])
        return tl_const_bits(&s->b, t, 0);
    const TlVal *v = &c->val[slot];
    if (tl_is_untyped(v) || (tl_is_number(v) && tl_val_type_of(s, v) == t))
        return tl_convert_ir(s, v, t, c->vloc[slot]);
    tl_err(s, c->loc, TL_E0333, tl_type_str(s->ctx, t), tl_val_str(s, v));
    return NULL;
}

TlVal tl_bi_matrix_dot(TlSema *s, TlCall *c)
{
    TlValue *a = tl_call_ir(s, c, 0), *b = tl_call_ir(s, c, 1);
    int32_t shape[TL_MAX_RANK] = {0};
    if (!a || !b || !dot_shapes(s, c, a, b, shape))
        return tl_bad();
    TlDtype d = dot_result(a->type->dtype, b->type->dtype);
    if (d == TL_DTYPE_COUNT) {
        TlDiag *row =
            tl_err(s, c->loc, TL_E0325, tl_type_str(s->ctx, a->type), tl_type_str(s->ctx, b->type));
        tl_label(s, row,
                 "cast them: dot takes f8, 8-bit or 16-bit integers, or two of one other type");
        return tl_bad();
    }
    int64_t precision = tl_call_word(s, c, 3, TL_FORM_PRECISION);
    if (precision == -2)
        return tl_bad();
    if (precision >= 0 && a->type->dtype != TL_F32) {
        tl_err(s, c->loc, TL_E0334, "precision", tl_dtype_name(a->type->dtype));
        return tl_bad();
    }
    if (c->given[4]) { /* out = f16 */
        const TlTy *to = c->val[4].u.type;
        TlDtype out = to->kind == TL_TY_VALUE && !to->type->rank ? to->type->dtype : TL_DTYPE_COUNT;
        bool half = out == TL_F16 && d == TL_F32 && a->type->dtype != TL_F32;
        if (out != d && !half) {
            tl_err(s, c->vloc[4], TL_E0338, "dot", "out", half ? "f16" : tl_dtype_name(d),
                   tl_ty_str(s, to));
            return tl_bad();
        }
        d = out;
    }
    const TlType *t = tl_type_tile(s->ctx, d, a->type->rank, shape);
    TlValue *acc = dot_acc(s, c, 2, t);
    if (!acc)
        return tl_bad();
    TlAttr attr = {.id = TL_ATTR_PRECISION, .u.i = precision};
    return tl_val_ir(tl_emit(s, TL_OP_DOT, 3, (TlValue *[]){a, b, acc}, t, precision > 0, &attr));
}

/* ---- dot_scaled ---- */

static bool is_scaled(TlDtype d)
{
    return tl_is_small_float(d);
}

/* The number of elements per scale: 16 if scales are f8e4m3 (nvfp4), 32 if they are e8m0, as u8
 * (mx). */
static int32_t block_of(TlDtype scale)
{
    return scale == TL_F8E4M3 ? 16 : 32;
}

/* Scales: a byte per block of each of `rows` rows of length k. */
static bool fits_scales(TlSema *s, TlCall *c, uint32_t slot, TlDtype scale, int32_t rows, int32_t k)
{
    TL_ASSERT(rows > 0 && k > 0, "scales of %d by %d", (int)rows, (int)k);
    TlValue *x = tl_call_ir(s, c, slot);
    int32_t shape[2] = {rows, k / block_of(scale)};
    const TlType *want = tl_type_tile(s->ctx, scale, 2, shape);
    if (x && x->type != want)
        tl_err(s, c->vloc[slot], TL_E0338, c->fn->name, slot == 1 ? "sa" : "sb",
               tl_type_str(s->ctx, want), tl_type_str(s->ctx, x->type));
    return x && x->type == want;
}

/* A DOT with scales. */
TlVal tl_bi_matrix_dot_scaled(TlSema *s, TlCall *c)
{
    TlValue *a = tl_call_ir(s, c, 0), *b = tl_call_ir(s, c, 2), *sa = tl_call_ir(s, c, 1);
    int32_t shape[TL_MAX_RANK] = {0};
    if (!a || !b || !sa)
        return tl_bad();
    if (!is_scaled(a->type->dtype) || !is_scaled(b->type->dtype) || a->type->rank != 2) {
        tl_err(s, c->loc, TL_E0325, tl_type_str(s->ctx, a->type), tl_type_str(s->ctx, b->type));
        return tl_bad();
    }
    if (!dot_shapes(s, c, a, b, shape))
        return tl_bad();
    TlDtype scale = sa->type->dtype == TL_F8E4M3 ? TL_F8E4M3 : TL_U8; /* of both sides */
    int32_t k = a->type->shape[1];
    if (k % block_of(scale)) {
        tl_err(s, c->loc, TL_E0342, k, block_of(scale));
        return tl_bad();
    }
    bool fits = fits_scales(s, c, 1, scale, shape[0], k) & fits_scales(s, c, 3, scale, shape[1], k);
    TlValue *acc = dot_acc(s, c, 4, tl_type_tile(s->ctx, TL_F32, 2, shape));
    if (!fits || !acc)
        return tl_bad();
    TlValue *in[5] = {a, b, acc, sa, tl_call_ir(s, c, 3)};
    return tl_val_ir(tl_emit(s, TL_OP_DOT, 5, in, acc->type, 0, NULL));
}
