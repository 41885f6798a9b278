/* Reductions and scans, over an axis or over everything; `where` leaves elements out by giving
 * them the identity (for the float maximum and minimum: NaN, which loses, and the identity put
 * in at the end where nothing was left). */
#include "frontend/sema.h"
#include "ir/argmax.h"
#include <math.h>

enum { X = 0 };
/* Slots of the reductions' rows: x, [y,] axis, keep, where. */
typedef struct Over {
    TlValue *x, *mask; /* mask: bool of x's shape, or NULL */
    int axis;
    bool all, keep;
    TlType whole; /* x's type before it was flattened */
} Over;

static TlVal refuse(TlSema *s, TlCall *c, TlValue *x)
{
    tl_err(s, c->loc, TL_E0316, c->fn->name, tl_type_str(s->ctx, x->type));
    return tl_bad();
}

/* Reads the slots and flattens x when no axis is named. `first` is the slot of the axis. */
static bool read_over(TlSema *s, TlCall *c, uint32_t first, Over *o, TlVal *bad)
{
    *o = (Over){.all = !c->given[first]};
    *bad = tl_bad();
    o->x = tl_call_ir(s, c, X);
    if (!o->x)
        return false;
    o->whole = *o->x->type;
    if (!o->all && !tl_call_axis(s, c, first, o->x->type->rank, &o->axis, bad))
        return false;
    o->keep = c->given[first + 1] && c->val[first + 1].u.bits;
    if (c->given[first + 2]) {
        const TlType *t = tl_type_with_dtype(s->ctx, o->x->type, TL_BOOL);
        const TlVal *m = &c->val[first + 2];
        if (!tl_is_number(m) || tl_is_pointer(m) || tl_val_type_of(s, m)->dtype != TL_BOOL) {
            tl_err(s, c->vloc[first + 2], TL_E0509, tl_val_str(s, m));
            return false;
        }
        o->mask = tl_convert_ir(s, m, t, c->vloc[first + 2]);
        if (!o->mask)
            return false;
    }
    if (o->all) {
        int32_t n = (int32_t)tl_type_elems(o->x->type);
        if (!o->x->type->rank) {
            o->x = tl_broadcast(&s->b, o->x, 1, (int32_t[]){1});
            if (o->mask)
                o->mask = tl_broadcast(&s->b, o->mask, 1, (int32_t[]){1});
        } else if (o->x->type->rank > 1) {
            o->x = tl_emit_reshape(s, o->x, 1, &n);
            if (o->mask)
                o->mask = tl_emit_reshape(s, o->mask, 1, &n);
        }
    }
    return true;
}

static const TlType *reduced_type(TlSema *s, const TlType *t, int axis)
{
    TL_ASSERT(axis >= 0 && axis < t->rank, "axis %d of %d", axis, (int)t->rank);
    int32_t shape[TL_MAX_RANK] = {0};
    for (int i = 0, k = 0; i < t->rank; i++)
        if (i != axis)
            shape[k++] = t->shape[i];
    return tl_type_with_shape(s->ctx, t, t->rank - 1, shape);
}

static TlValue *emit_reduce(TlSema *s, TlValue *x, int axis, TlCombine kind)
{
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = axis}, {.id = TL_ATTR_KIND, .u.i = kind}};
    return tl_emit(s, TL_OP_REDUCE, 1, &x, reduced_type(s, x->type, axis), 2, attrs);
}

/* The result; keep = true leaves the axis with extent 1. */
static TlVal result_over(TlSema *s, const Over *o, TlValue *r)
{
    if (!o->keep)
        return tl_val_ir(r);
    if (!o->all)
        return tl_val_ir(r->type->rank ? tl_emit_expand(s, r, o->axis)
                                       : tl_broadcast(&s->b, r, 1, (int32_t[]){1}));
    int32_t ones[TL_MAX_RANK] = {1, 1, 1, 1, 1};
    return tl_val_ir(o->whole.rank ? tl_broadcast(&s->b, r, o->whole.rank, ones) : r);
}

static TlValue *nan_of(TlSema *s, const TlType *t)
{
    return tl_const_bits(&s->b, t, tl_bits_from_double(t->dtype, (double)NAN));
}

static TlVal reduce_with(TlSema *s, TlCall *c, uint32_t first, TlCombine kind)
{
    Over o;
    TlVal bad;
    if (!read_over(s, c, first, &o, &bad))
        return bad;
    TlDtype d = o.x->type->dtype;
    if (!tl_combine_is_offered(kind, d))
        return refuse(s, c, o.x);
    bool extreme = kind == TL_COMBINE_MAX || kind == TL_COMBINE_MIN;
    TlValue *x = tl_combine_is_wide(kind) ? tl_cast(&s->b, o.x, tl_sum_dtype(d)) : o.x;
    TlDtype w = x->type->dtype;
    bool nan_masks = extreme && tl_is_float(w) && o.mask;
    if (o.mask)
        x = tl_select(&s->b, o.mask, x,
                      nan_masks ? nan_of(s, x->type)
                                : tl_const_bits(&s->b, x->type, tl_combine_of_none(kind, w)));
    TlValue *r = emit_reduce(s, x, o.axis, kind);
    if (nan_masks) {
        TlValue *left = emit_reduce(s, o.mask, o.axis, TL_COMBINE_OR);
        r = tl_select(&s->b, left, r, tl_const_bits(&s->b, r->type, tl_combine_of_none(kind, w)));
    }
    if (tl_is_float(d))
        r = tl_cast(&s->b, r, d);
    return result_over(s, &o, r);
}

TlVal tl_bi_reduce_builtin(TlSema *s, TlCall *c)
{
    return reduce_with(s, c, 1, (TlCombine)c->fn->data);
}

TlVal tl_bi_reduce_or_elem(TlSema *s, TlCall *c)
{
    if (!c->given[1])
        return reduce_with(s, c, 2, c->fn->data == TL_OP_MAX ? TL_COMBINE_MAX : TL_COMBINE_MIN);
    if (c->given[2] || c->given[3] || c->given[4]) {
        tl_err(s, c->loc, TL_E0312, c->fn->name, 1u, 2u);
        return tl_bad();
    }
    tl_warn_axis_number(s, c->fn->name, &c->val[0], &c->val[1], c->vloc[1]);
    return tl_bi_elem_binary(s, c);
}

/* ---- argmax, argmin ---- */

TlVal tl_bi_reduce_arg(TlSema *s, TlCall *c)
{
    Over o;
    TlVal bad;
    bool max = c->fn->data;
    if (!read_over(s, c, 1, &o, &bad))
        return bad;
    TlValue *x = o.x;
    TlDtype d = x->type->dtype;
    if (d == TL_BOOL || tl_is_storage_only(d))
        return refuse(s, c, x);
    TlValue *index = tl_emit_index(s, x->type->rank, x->type->shape, o.axis);
    if (o.mask) { /* elements that are left out lose against all others: by value, then by index */
        TlCombine kind = max ? TL_COMBINE_MAX : TL_COMBINE_MIN;
        TlValue *worst =
            tl_is_float(d) ? nan_of(s, x->type)
                           : tl_const_bits(&s->b, x->type, tl_combine_of_none(kind, d));
        x = tl_select(&s->b, o.mask, x, worst);
        index = tl_select(&s->b, o.mask, index, tl_const_int(&s->b, index->type, INT32_MAX));
    }
    const TlType *types[2] = {reduced_type(s, x->type, o.axis),
                              reduced_type(s, index->type, o.axis)};
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = o.axis},
                       {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_USER}};
    TlOp *op = tl_op_new(&s->b, TL_OP_REDUCE, 2, (TlValue *[]){x, index}, 2, types, 1, 2, attrs);
    for (int k = 0; k < 4; k++)
        tl_block_arg(op->regions[0], tl_type_scalar(s->ctx, k & 1 ? TL_I32 : d), NULL);
    TlArm arm;
    tl_arm_begin_in(s, &arm, op->regions[0]);
    tl_argmax_fill(&s->b, op->regions[0], max);
    tl_arm_end(s, &arm);
    TlValue *r = op->out[1];
    if (o.mask) { /* nothing was left: no index is as high */
        TlValue *none = tl_const_int(&s->b, r->type, INT32_MAX);
        r = tl_select(&s->b, tl_binary(&s->b, TL_OP_EQ, r, none),
                      tl_const_bits(&s->b, r->type, 0), r);
    }
    return result_over(s, &o, r);
}

/* ---- scans ---- */

enum { REVERSE = 2, EXCLUSIVE = 3, INIT = 5 }; /* slots; of scan the first two one later */

/* The attributes of a scan; their number. `slot`: of reverse, before that of exclusive. */
static uint32_t scan_attrs(const TlCall *c, uint32_t slot, int axis, TlCombine kind, TlAttr *attrs)
{
    TL_ASSERT(slot + 1 < c->nslots, "slot %u of %s", slot, c->fn->name);
    static const TlAttrId flags[2] = {TL_ATTR_REVERSE, TL_ATTR_EXCLUSIVE};
    uint32_t n = 0;
    attrs[n++] = (TlAttr){.id = TL_ATTR_AXIS, .u.i = axis};
    attrs[n++] = (TlAttr){.id = TL_ATTR_KIND, .u.i = kind};
    for (uint32_t i = 0; i < 2; i++)
        if (c->given[slot + i] && c->val[slot + i].u.bits)
            attrs[n++] = (TlAttr){.id = flags[i], .u.i = 1};
    return n;
}

TlVal tl_bi_scan_builtin(TlSema *s, TlCall *c)
{
    TlVal bad;
    int axis = 0;
    TlCombine kind = (TlCombine)c->fn->data;
    TlValue *x = tl_call_ir(s, c, X);
    if (!x || !tl_call_axis(s, c, 1, x->type->rank, &axis, &bad))
        return x ? bad : tl_bad();
    TlDtype d = x->type->dtype;
    if (!tl_combine_is_offered(kind, d))
        return refuse(s, c, x);
    if (tl_combine_is_wide(kind))
        x = tl_cast(&s->b, x, tl_sum_dtype(d));
    TlAttr attrs[4];
    uint32_t nattrs = scan_attrs(c, REVERSE, axis, kind, attrs), n = 1;
    TlValue *in[2] = {x, NULL};
    if (c->given[EXCLUSIVE] && c->val[EXCLUSIVE].u.bits) {
        TlDtype w = x->type->dtype;
        in[n++] =
            tl_const_bits(&s->b, tl_type_scalar(s->ctx, w), tl_combine_of_none(kind, w));
    }
    TlValue *r = tl_emit(s, TL_OP_SCAN, n, in, x->type, nattrs, attrs);
    return tl_val_ir(tl_is_float(d) ? tl_cast(&s->b, r, d) : r);
}

/* ---- with a function of the user's ---- */

/* The tiles to combine, broadcast to one shape. */
static bool user_operands(TlSema *s, TlCall *c, TlValues *out)
{
    const TlVal *v = &c->val[X];
    bool tuple = v->kind == TL_VAL_TUPLE;
    int rank = 0;
    int32_t shape[TL_MAX_RANK] = {0};
    const TlType *all = tl_type_scalar(s->ctx, TL_I32);
    for (uint32_t i = 0; i < (tuple ? v->n : 1); i++) {
        const TlVal *item = tuple ? &v->items[i] : v;
        if (!tl_is_number(item) || tl_is_pointer(item)) {
            if (!tl_is_bad(item))
                tl_err(s, c->vloc[X], TL_E0316, c->fn->name, tl_val_str(s, item));
            return false;
        }
        TlValue *x = tl_materialize(s, item, c->vloc[X]);
        if (!x)
            return false;
        if (!tl_broadcast_shape(all, x->type, &rank, shape)) {
            tl_err(s, c->vloc[X], TL_E0303, c->fn->name, tl_type_str(s->ctx, all),
                   tl_type_str(s->ctx, x->type));
            return false;
        }
        all = tl_type_tile(s->ctx, TL_I32, rank, shape);
        tl_vec_push(s->arena, out, x);
    }
    for (uint32_t i = 0; i < out->len; i++)
        out->data[i] = tl_broadcast_ir(s, out->data[i], all->rank, all->shape);
    return out->len > 0;
}

/* A combiner is applied to elements wherever they are: it has no room for a tile. */
static bool has_tiles(const TlOp *op)
{
    for (const TlOp *o = op->regions[0]->first; o; o = tl_walk_next(o, op)) {
        for (uint32_t i = 0; i < o->nin; i++)
            if (o->in[i].value->type->rank)
                return true;
        for (uint32_t i = 0; i < o->nout; i++)
            if (o->out[i]->type->rank)
                return true;
    }
    return false;
}

/* f(a1..an, b1..bn) in the op's region. */
static void user_region(TlSema *s, TlCall *c, TlOp *op, uint32_t n)
{
    TL_ASSERT(n > 0 && op->nregions == 1, "a combiner of %u values", n);
    TlVal *args = TL_NEW_ARRAY(s->arena, TlVal, 2 * (size_t)n);
    for (uint32_t i = 0; i < 2 * n; i++)
        args[i] = tl_val_ir(tl_block_arg(
            op->regions[0], tl_type_scalar(s->ctx, op->in[i % n].value->type->dtype), NULL));
    TlArm arm;
    tl_arm_begin_in(s, &arm, op->regions[0]);
    TlVal r = tl_call_fn(s, &c->val[2], 2 * n, args, c->vloc[2]);
    bool fits = n == 1 ? tl_is_number(&r) : r.kind == TL_VAL_TUPLE && r.n == n;
    if (!fits && !tl_is_bad(&r))
        tl_err(s, c->vloc[2], TL_E0317, n, tl_val_str(s, &r));
    TlValues out = {0};
    for (uint32_t i = 0; i < n; i++) {
        const TlType *t = args[i].u.ir->type;
        TlVal item = !fits ? tl_bad() : n == 1 ? r : r.items[i];
        TlValue *x = tl_is_bad(&item) ? NULL : tl_convert_ir(s, &item, t, c->vloc[2]);
        tl_vec_push(s->arena, &out, x ? x : tl_const_bits(&s->b, t, 0));
    }
    tl_yield(&s->b, TL_OP_YIELD, n, out.data);
    tl_arm_end(s, &arm);
    const char *name = c->val[2].kind == TL_VAL_FN ? c->val[2].def->item->name : "this function";
    if (tl_op_effects(op))
        tl_err(s, c->vloc[2], TL_E0339, name);
    else if (has_tiles(op))
        tl_err(s, c->vloc[2], TL_E0349, name);
}

/* Adds what a scan begins with: init, a scalar for each tile, in its type. */
static bool add_init(TlSema *s, TlCall *c, TlValues *in)
{
    const TlVal *v = &c->val[INIT];
    uint32_t n = in->len;
    bool tuple = v->kind == TL_VAL_TUPLE;
    bool ok = n == (tuple ? v->n : 1) && tuple == (c->val[X].kind == TL_VAL_TUPLE);
    for (uint32_t i = 0; ok && i < n; i++) {
        const TlVal *item = tuple ? &v->items[i] : v;
        if (tl_is_bad(item))
            return false;
        ok = tl_is_number(item) && !tl_is_pointer(item) && !tl_val_type_of(s, item)->rank;
        if (!ok)
            break;
        const TlType *t = tl_type_scalar(s->ctx, in->data[i]->type->dtype);
        TlValue *x = tl_convert_ir(s, item, t, c->vloc[INIT]);
        if (!x)
            return false;
        tl_vec_push(s->arena, in, x);
    }
    if (!ok)
        tl_err(s, c->vloc[INIT], TL_E0338, c->fn->name, "init",
               n > 1 ? tl_format(s->arena, "a tuple of %u scalars", n) : "a scalar",
               tl_val_str(s, v));
    return ok;
}

/* The operands of a scan, and its attributes: true when they are right. */
static bool scan_operands(TlSema *s, TlCall *c, int axis, TlValues *in, TlAttr *attrs,
                          uint32_t *nattrs)
{
    *nattrs = scan_attrs(c, REVERSE + 1, axis, TL_COMBINE_USER, attrs);
    if (c->given[INIT])
        return add_init(s, c, in);
    bool exclusive = c->given[EXCLUSIVE + 1] && c->val[EXCLUSIVE + 1].u.bits;
    if (exclusive)
        tl_label(s, tl_err(s, c->loc, TL_E0313, c->fn->name, "init"),
                 "exclusive = true needs what comes before the first element");
    return !exclusive;
}

TlVal tl_bi_reduce_user(TlSema *s, TlCall *c)
{
    TlValues in = {0};
    TlVal bad;
    int axis = 0;
    bool scan = c->fn->data == TL_OP_SCAN;
    if (!user_operands(s, c, &in))
        return tl_bad();
    if (!scan && in.data[0]->type->rank == 0)
        return c->val[X];
    if (!tl_call_axis(s, c, 1, in.data[0]->type->rank, &axis, &bad))
        return bad;
    TlAttr attrs[4] = {{.id = TL_ATTR_AXIS, .u.i = axis},
                       {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_USER}};
    uint32_t n = in.len, nattrs = 2;
    if (scan && !scan_operands(s, c, axis, &in, attrs, &nattrs))
        return tl_bad();
    const TlType **types = TL_NEW_ARRAY(s->arena, const TlType *, n);
    for (uint32_t i = 0; i < n; i++)
        types[i] = scan ? in.data[i]->type : reduced_type(s, in.data[i]->type, axis);
    TlOp *op = tl_op_new(&s->b, scan ? TL_OP_SCAN : TL_OP_REDUCE, in.len, in.data, n, types, 1,
                         nattrs, attrs);
    user_region(s, c, op, n);
    if (c->val[X].kind != TL_VAL_TUPLE)
        return tl_val_ir(op->out[0]);
    TlVal out = tl_val_items(s, TL_VAL_TUPLE, NULL, n);
    for (uint32_t i = 0; i < n; i++)
        out.items[i] = tl_val_ir(op->out[i]);
    return out;
}
