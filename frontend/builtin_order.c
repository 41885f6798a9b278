/* Built-in functions of order: sort, argsort and topk, which are functions of std.order, and
 * histogram. */
#include "frontend/sema.h"

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

/* sort (data 0), argsort (data 1) */
TlVal tl_bi_order_sort(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
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
    TlVal bad;
    int64_t k = 0;
    TlValue *x = sortable(s, c);
    if (!x || !tl_call_int(s, c, 1, "k", &k, &bad))
        return x ? bad : tl_bad();
    int axis = x->type->rank - 1;
    int32_t n = x->type->shape[axis];
    if (k < 1 || k > n) {
        tl_err(s, c->vloc[1], TL_E0338, c->fn->name, "k", tl_format(s->arena, "1 to %d", n),
               tl_format(s->arena, "%lld", (long long)k));
        return tl_bad();
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

/* 0 to bins - 1 as i32 where the element counts, -1 where it does not. */
static TlValue *bin_of(TlSema *s, TlValue *x, int32_t bins, TlValue *mask)
{
    TL_ASSERT(bins > 0, "%d bins", (int)bins);
    const TlType *t = x->type;
    const TlType *i32 = tl_type_with_dtype(s->ctx, t, TL_I32);
    int bits = tl_dtype_bits(t->dtype) - tl_is_signed(t->dtype);
    TlValue *counts = mask;
    if (bits > 30 || (int64_t)1 << bits > bins)
        counts = both(s, counts, tl_binary(&s->b, TL_OP_LT, x, tl_const_int(&s->b, t, bins)));
    if (bits == 63) /* otherwise negative values stay negative */
        counts = both(s, counts, tl_binary(&s->b, TL_OP_GE, x, tl_const_bits(&s->b, t, 0)));
    x = tl_cast(&s->b, x, TL_I32);
    return counts ? tl_select(&s->b, counts, x, tl_const_int(&s->b, i32, -1)) : x;
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
    if (bins < 1 || bins > TL_MAX_ELEMS) {
        if (bins < 1)
            tl_err(s, c->vloc[1], TL_E0306, (long long)bins);
        else
            tl_err(s, c->vloc[1], TL_E0307, TL_MAX_ELEMS);
        return tl_bad();
    }
    if (c->given[2]) {
        mask =
            tl_convert_ir(s, &c->val[2], tl_type_with_dtype(s->ctx, x->type, TL_BOOL), c->vloc[2]);
        if (!mask)
            return tl_bad();
    }
    x = bin_of(s, x, (int32_t)bins, mask);
    if (x->type->rank == 0)
        x = tl_broadcast(&s->b, x, 1, (int32_t[]){1});
    int32_t n = (int32_t)bins;
    return tl_val_ir(
        tl_emit(s, TL_OP_HISTOGRAM, 1, &x, tl_type_tile(s->ctx, TL_I32, 1, &n), 0, NULL));
}
