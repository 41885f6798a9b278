/* Built-in functions of order: sort, argsort and topk, which call functions of std.order and may
 * take other tiles along; histogram. */
#include "frontend/sema.h"
#include "ir/layout/layout.h"
#include "ir/numeric.h"
#include <math.h>
#include <string.h>

enum { MAX_SORTED = 1 << 14 };

/* ---- sorting ---- */

/* Slot 0 as a tile of numbers that have an order. */
static TlValue *sortable(TlSema *s, TlCall *c)
{
    TlValue *x = tl_call_ir(s, c, 0);
    TlDtype d = x ? x->type->dtype : TL_BOOL;
    bool ok = d != TL_BOOL && !tl_is_storage_only(d);
    if (!x || (ok && x->type->rank > 0))
        return x;
    tl_err(s, c->loc, TL_E0316, c->fn->name, tl_type_str(s->ctx, x->type));
    return NULL;
}

/* Calls a function of std.order with the tile, the positions along the axis, and its other
 * arguments. */
static TlVal sort_by(TlSema *s, TlCall *c, const char *function, TlValue *x, int axis, bool down)
{
    TL_ASSERT(axis >= 0 && axis < x->type->rank, "axis %d of %d", axis, (int)x->type->rank);
    int32_t n = x->type->shape[axis];
    if (n > MAX_SORTED) {
        tl_err(s, c->loc, TL_E0341, c->fn->name, MAX_SORTED, n);
        return tl_bad();
    }
    TlVal args[5] = {tl_val_ir(x), tl_val_ir(tl_emit_index(s, x->type->rank, x->type->shape, axis)),
                     tl_val_int(axis), tl_val_int(n), tl_val_bool(down)};
    return tl_call_std(s, "std.order", function, 5, args, c->loc);
}

/* The places of the k greatest along the axis, where taking one after the other is less work than
 * the steps of the sorting network; NULL: it is more, or an error was reported. */
static TlValue *greatest_places(TlSema *s, TlCall *c, TlValue *x, int axis, int32_t k)
{
    const TlType *t = x->type;
    int32_t n = t->shape[axis], shape[TL_MAX_RANK];
    int levels = tl_ceil_log2(n);
    if (n > MAX_SORTED || k > levels * (levels + 1) / 2)
        return NULL;
    memcpy(shape, t->shape, sizeof shape);
    shape[axis] = k;
    uint64_t least = tl_is_float(t->dtype) ? tl_bits_from_double(t->dtype, -INFINITY)
                                           : tl_combine_identity(TL_COMBINE_MAX, t->dtype);
    TlVal args[7] = {tl_val_ir(x),
                     tl_val_ir(tl_emit_index(s, t->rank, t->shape, axis)),
                     tl_val_ir(tl_emit_index(s, t->rank, shape, axis)),
                     tl_val_const(t->dtype, least),
                     tl_val_int(axis),
                     tl_val_int(n),
                     tl_val_int(k)};
    TlVal places = tl_call_std(s, "std.order", "greatest_places", 7, args, c->loc);
    return tl_is_bad(&places) ? NULL : places.u.ir;
}

/* ---- a key with what stands beside it ---- */

static bool is_together(const TlCall *c)
{
    return c->val[0].kind == TL_VAL_TUPLE;
}

/* The tuple in slot 0 as tiles of one shape, of which the first has an order. NULL after an error,
 * or where one is unknown (*out). */
static TlValue **tiles_together(TlSema *s, TlCall *c, TlVal *out)
{
    const TlVal *v = &c->val[0];
    TL_ASSERT(v->kind == TL_VAL_TUPLE && v->n > 0, "a tuple of %u", v->n);
    TlValue **x = TL_NEW_ARRAY(s->arena, TlValue *, v->n);
    int rank = 0;
    int32_t shape[TL_MAX_RANK] = {0};
    const TlType *all = tl_type_scalar(s->ctx, TL_I32);
    *out = tl_bad();
    for (uint32_t i = 0; i < v->n; i++) {
        TlVal item = v->items[i];
        if (tl_is_bad(&item)) {
            *out = item;
            return NULL;
        }
        bool moves = tl_is_number(&item) && !tl_is_pointer(&item);
        x[i] = moves ? tl_materialize(s, &item, c->vloc[0]) : NULL;
        if (moves && !x[i])
            return NULL;
        TlDtype d = moves ? x[i]->type->dtype : TL_BOOL;
        bool ok = i ? moves && !tl_is_packed(d) : moves && d != TL_BOOL && !tl_is_storage_only(d);
        if (!ok) {
            tl_err(s, c->vloc[0], TL_E0316, c->fn->name, tl_val_str(s, &item));
            return NULL;
        }
        if (!tl_broadcast_shape(all, x[i]->type, &rank, shape)) {
            tl_err(s, c->vloc[0], TL_E0303, c->fn->name, tl_type_str(s->ctx, all),
                   tl_type_str(s->ctx, x[i]->type));
            return NULL;
        }
        all = tl_type_tile(s->ctx, TL_I32, rank, shape);
    }
    if (rank == 0) {
        tl_err(s, c->vloc[0], TL_E0316, c->fn->name, tl_val_str(s, &v->items[0]));
        return NULL;
    }
    for (uint32_t i = 0; i < v->n; i++)
        x[i] = tl_broadcast_ir(s, x[i], rank, shape);
    return x;
}

/* The tiles' elements at places along the axis. */
static TlVal all_at(TlSema *s, uint32_t n, TlValue **x, TlValue *places, int axis)
{
    TlVal out = tl_val_items(s, TL_VAL_TUPLE, NULL, n);
    for (uint32_t i = 0; i < n; i++)
        out.items[i] = tl_val_ir(tl_emit_gather(s, x[i], places, axis));
    return out;
}

/* The first `most` along the axis of all n tiles, in the order of the first; the others move once,
 * when the places are known. */
static TlVal sort_together(TlSema *s, TlCall *c, uint32_t n, TlValue **x, int axis, int32_t most,
                           bool down)
{
    TL_ASSERT(n > 0 && most > 0, "%u tiles, the first %d", n, (int)most);
    TlValue *places =
        most < x[0]->type->shape[axis] && down ? greatest_places(s, c, x[0], axis, most) : NULL;
    if (places)
        return all_at(s, n, x, places, axis);
    TlVal both = sort_by(s, c, "sort_pairs", x[0], axis, down);
    if (tl_is_bad(&both))
        return both;
    TlVal out = tl_val_items(s, TL_VAL_TUPLE, NULL, n);
    TlValue *from = tl_emit_window(s, both.items[1].u.ir, axis, most, 0, 1);
    out.items[0] = tl_val_ir(tl_emit_window(s, both.items[0].u.ir, axis, most, 0, 1));
    for (uint32_t i = 1; i < n; i++)
        out.items[i] = tl_val_ir(tl_emit_gather(s, x[i], from, axis));
    return out;
}

static TlVal sort_tuple(TlSema *s, TlCall *c, bool down)
{
    TlVal bad;
    int axis = 0;
    TlValue **x = tiles_together(s, c, &bad);
    if (!x || !tl_call_axis(s, c, 1, x[0]->type->rank, &axis, &bad))
        return bad;
    return sort_together(s, c, c->val[0].n, x, axis, x[0]->type->shape[axis], down);
}

/* sort (data 0), argsort (data 1) */
TlVal tl_bi_order_sort(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    if (!c->fn->data && is_together(c))
        return sort_tuple(s, c, c->given[2] && c->val[2].u.bits);
    TlValue *x = sortable(s, c);
    if (!x || !tl_call_axis(s, c, 1, x->type->rank, &axis, &bad))
        return x ? bad : tl_bad();
    bool down = c->given[2] && c->val[2].u.bits;
    if (!c->fn->data && tl_is_int(x->type->dtype))
        return sort_by(s, c, "sort_values", x, axis, down);
    TlVal both = sort_by(s, c, "sort_pairs", x, axis, down);
    return tl_is_bad(&both) ? both : both.items[c->fn->data];
}

TlVal tl_bi_order_topk(TlSema *s, TlCall *c)
{
    TlVal bad = tl_bad();
    int64_t k = 0;
    TlValue **all = is_together(c) ? tiles_together(s, c, &bad) : NULL;
    TlValue *x = all ? all[0] : is_together(c) ? NULL : sortable(s, c);
    if (!x || !tl_call_int(s, c, 1, "k", &k, &bad))
        return bad;
    int axis = x->type->rank - 1;
    int32_t n = x->type->shape[axis];
    if (k < 1 || k > n) {
        tl_err(s, c->vloc[1], TL_E0338, c->fn->name, "k", tl_format(s->arena, "1 to %d", n),
               tl_format(s->arena, "%lld", (long long)k));
        return tl_bad();
    }
    if (all)
        return sort_together(s, c, c->val[0].n, all, axis, (int32_t)k, true);
    TlValue *places = greatest_places(s, c, x, axis, (int32_t)k);
    if (places) {
        TlVal out = tl_val_items(s, TL_VAL_TUPLE, NULL, 2);
        out.items[0] = tl_val_ir(tl_emit_gather(s, x, places, axis));
        out.items[1] = tl_val_ir(places);
        return out;
    }
    TlVal both = sort_by(s, c, "sort_pairs", x, axis, true);
    if (tl_is_bad(&both))
        return both;
    for (int i = 0; i < 2; i++)
        both.items[i] = tl_val_ir(tl_emit_window(s, both.items[i].u.ir, axis, (int32_t)k, 0, 1));
    return both;
}

/* ---- histogram ---- */

static TlValue *both(TlSema *s, TlValue *a, TlValue *b)
{
    return a ? tl_binary(&s->b, TL_OP_AND, a, b) : b;
}

/* Numbers of bins as i32; the op ignores what is none: numbers from `bins` on and negative ones,
 * such as those of u32 that i32 does not have. */
static TlValue *bin_of(TlSema *s, TlValue *x, int32_t bins, TlValue *mask)
{
    TL_ASSERT(bins > 0, "%d bins", (int)bins);
    const TlType *t = x->type;
    const TlType *i32 = tl_type_with_dtype(s->ctx, t, TL_I32);
    TlValue *counts = mask;
    if (tl_dtype_bits(t->dtype) == 64) { /* others stay what they are */
        counts = both(s, counts, tl_binary(&s->b, TL_OP_LT, x, tl_const_int(&s->b, t, bins)));
        if (tl_is_signed(t->dtype))
            counts = both(s, counts, tl_binary(&s->b, TL_OP_GE, x, tl_const_bits(&s->b, t, 0)));
    }
    x = tl_cast(&s->b, x, TL_I32);
    return counts ? tl_select(&s->b, counts, x, tl_const_int(&s->b, i32, -1)) : x;
}

/* The weights as tiles of x's shape, in the type of their sum. NULL: diagnosed. */
static TlValue *weights_of(TlSema *s, TlCall *c, const TlType *x)
{
    enum { WEIGHTS = 3 };
    const TlVal *v = &c->val[WEIGHTS];
    bool number = tl_is_number(v) && !tl_is_pointer(v);
    TlValue *w = number ? tl_materialize(s, v, c->vloc[WEIGHTS]) : NULL;
    if (number && !w)
        return NULL;
    if (!w || tl_is_storage_only(w->type->dtype)) {
        tl_err(s, c->vloc[WEIGHTS], TL_E0316, c->fn->name, tl_val_str(s, v));
        return NULL;
    }
    if (!tl_broadcasts_to(w->type, x->rank, x->shape)) {
        tl_err(s, c->vloc[WEIGHTS], TL_E0303, c->fn->name, tl_type_str(s->ctx, x),
               tl_type_str(s->ctx, w->type));
        return NULL;
    }
    w = tl_cast(&s->b, w, tl_sum_dtype(w->type->dtype));
    return tl_broadcast_ir(s, w, x->rank, x->shape);
}

/* Of i32 values, and weights or NULL, in bins from 0 on. d: of the result. */
static TlVal emit_histogram(TlSema *s, TlValue *x, TlValue *weights, int32_t bins, TlDtype d)
{
    TlValue *in[2] = {x, weights};
    for (int i = 0; i < 2; i++)
        if (in[i] && in[i]->type->rank == 0)
            in[i] = tl_broadcast(&s->b, in[i], 1, (int32_t[]){1});
    const TlType *t =
        tl_type_tile(s->ctx, weights ? weights->type->dtype : TL_I32, 1, &bins);
    TlValue *r = tl_emit(s, TL_OP_HISTOGRAM, weights ? 2 : 1, in, t, 0, NULL);
    return tl_val_ir(tl_is_float(d) ? tl_cast(&s->b, r, d) : r);
}

TlVal tl_bi_order_histogram(TlSema *s, TlCall *c)
{
    TlVal bad;
    int64_t bins = 0;
    TlValue *x = tl_call_ir(s, c, 0), *mask = NULL;
    if (!x || !tl_call_int(s, c, 1, "bins", &bins, &bad))
        return x ? bad : tl_bad();
    if (!tl_is_int(x->type->dtype) || tl_is_storage_only(x->type->dtype)) {
        tl_err(s, c->loc, TL_E0316, c->fn->name, tl_type_str(s->ctx, x->type));
        return tl_bad();
    }
    if (!tl_extent_check(s, c->vloc[1], c->expr[1], bins, 1))
        return tl_bad();
    if (c->given[2]) {
        mask =
            tl_convert_ir(s, &c->val[2], tl_type_with_dtype(s->ctx, x->type, TL_BOOL), c->vloc[2]);
        if (!mask)
            return tl_bad();
    }
    TlValue *weights = c->given[3] ? weights_of(s, c, x->type) : NULL;
    if (c->given[3] && !weights)
        return tl_bad();
    TlDtype d = weights ? tl_val_type_of(s, &c->val[3])->dtype : TL_I32;
    return emit_histogram(s, bin_of(s, x, (int32_t)bins, mask), weights, (int32_t)bins, d);
}
