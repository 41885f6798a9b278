/* unpack: loads and stores of 4-bit elements become those of bytes.
 *
 *     %t = load %w, %i, %j {axes = [i, 64]} : tile<u4, 64>
 *  =>
 *     %p = view_ptr %w   %v = view %p, extents, (last + 1) / 2, strides / 2, 1 : view<const u8, 2>
 *     %b = load %v, %i, %j / 2 {axes = [i, 32]} : tile<u8, 32>
 *     %t = both halves of each byte, low one first, as u4
 *
 * Rows start on a byte, so that only the innermost axis is halved. A part of a view (sub_view) is
 * read through the whole one: what it skips is added to the index.
 *
 *  - A slice of step 1 with an even start and an even width takes its bytes as a slice; the halves
 *    are a new axis of 2, merged into the one before: no element changes threads where layouts are
 *    right.
 *  - Anything else takes one byte per element, as a gather.
 *
 * What is outside: bytes past the view read as 0, as elsewhere. The last byte of a row may have a
 * half too many: it is left out, unless the extent is even by proof. Masks, other values and the
 * bounds of parts are applied to the elements behind the load; no byte outside of the whole view is
 * read.
 *
 *     store %w, %i, %j, %t {axes = [i, 64]}
 *  =>
 *     %b = both halves of each byte as one: reshape to [32, 2], shift, reduce {kind = or}
 *     store %v, %i, %j / 2, %b {axes = [i, 32]}
 *
 * What a dot with scales takes, both sides of f4e2m1, becomes pairs in bytes, as its instruction
 * has them (scale-dots has left it for one): the bytes that are loaded, or, where masks come in
 * between or elements are computed, both halves of each byte joined.
 *
 *     %d = dot (load %a ...), (trans (load %b ...)), %c, %s, %t
 *  =>
 *     %d = dot (load of bytes), (trans (load of bytes)), %c, %s, %t
 *
 * The front end admits slices of step 1 whose start and width are even; others stay as they are.
 * The last byte of a row may have a half too many, and that of a part of a view a half that is its
 * neighbour's: such a byte is read, and keeps that half. */
#include "ir/plan/mma.h"
#include "passes/analysis/axis_impl.h"
#include "passes/pass.h"
#include <string.h>

typedef struct Unpack {
    TlBuilder b;
    TlCtx *ctx;
    const TlAxisInfo *axis;
    TlOp *op; /* the load or store */
    TlPlace p;
    const TlType *type;              /* of the tile that is loaded or stored */
    int last;                        /* the view's innermost axis */
    int dim;                         /* the tile's first axis that it gives; -1: none */
    TlValue *whole;                  /* the view that the place's view is a part of, or that view */
    TlValue *skip[TL_MAX_VIEW_RANK]; /* i64: how far into it the part begins; NULL: 0 */
} Unpack;

static bool is_packed(const TlType *t)
{
    return tl_dtype_bits(t->dtype) < 8;
}

/* ---- numbers ---- */

static TlValue *constant(Unpack *u, const TlValue *like, int64_t x)
{
    return tl_const_int(&u->b, like->type, x);
}

static TlValue *with(Unpack *u, TlOpcode opcode, TlValue *x, int64_t y)
{
    return tl_binary(&u->b, opcode, x, constant(u, x, y));
}

static TlValue *view_number(Unpack *u, TlOpcode opcode, TlValue *view, int axis)
{
    TL_ASSERT(view->type->kind == TL_VIEW && axis >= 0 && axis < view->type->rank,
              "axis %d of value %u", axis, view->id);
    const TlType *i64 = tl_type_scalar(u->ctx, TL_I64);
    TlAttr attr = {.id = TL_ATTR_AXIS, .u.i = axis};
    return tl_op_new(&u->b, opcode, 1, &view, 1, &i64, 0, 1, &attr)->out[0];
}

static TlValue *reshaped(Unpack *u, TlValue *x, int rank, const int32_t *shape)
{
    TL_ASSERT(rank <= TL_MAX_RANK, "a tile of rank %d", rank);
    const TlType *t = tl_type_with_shape(u->ctx, x->type, rank, shape);
    return t == x->type ? x : tl_op_new(&u->b, TL_OP_RESHAPE, 1, &x, 1, &t, 0, 0, NULL)->out[0];
}

/* A number per coordinate of the result's axes first, first + 1, ... as a tile of the result's
 * shape. */
static TlValue *spread(Unpack *u, TlValue *x, int first)
{
    TL_ASSERT(x->type->rank == 0 || (first >= 0 && first + x->type->rank <= u->type->rank),
              "axis %d of a tile of rank %d", first, (int)u->type->rank);
    int32_t shape[TL_MAX_RANK];
    int rank = u->type->rank;
    if (x->type->rank) {
        for (int d = 0; d < rank; d++)
            shape[d] = d >= first && d < first + x->type->rank ? u->type->shape[d] : 1;
        x = reshaped(u, x, rank, shape);
    }
    return tl_broadcast(&u->b, x, rank, u->type->shape);
}

/* ---- the whole view ---- */

/* Starts of parts are clipped to the view that they are parts of. */
static void find_whole(Unpack *u)
{
    TlValue *v = u->p.base;
    for (; v->def && v->def->opcode == TL_OP_SUB_VIEW; v = tl_in(v->def, 0))
        for (uint32_t d = 0; d < u->p.naxes; d++) {
            TlValue *from = tl_in(v->def, 1 + d);
            from = tl_binary(&u->b, TL_OP_MAX, from, constant(u, from, 0));
            from = tl_binary(&u->b, TL_OP_MIN, from,
                             view_number(u, TL_OP_EXTENT, tl_in(v->def, 0), (int)d));
            u->skip[d] = u->skip[d] ? tl_binary(&u->b, TL_OP_ADD, u->skip[d], from) : from;
        }
    u->whole = v;
}

/* The bytes of the whole view. */
static TlValue *bytes_of(Unpack *u)
{
    TL_ASSERT(u->whole && u->last >= 0 && u->last < TL_MAX_VIEW_RANK,
              "a view of %d axes", u->last + 1);
    int n = u->last + 1;
    TlValue *in[1 + 2 * TL_MAX_VIEW_RANK];
    const TlType *t = u->whole->type, *p = tl_type_ptr(u->ctx, t->dtype, t->is_const, 0, NULL),
                 *bytes = tl_type_view(u->ctx, TL_U8, t->is_const, n);
    TlViewFacts facts = tl_view_facts(u->axis, u->whole);
    in[0] = tl_op_new(&u->b, TL_OP_VIEW_PTR, 1, &u->whole, 1, &p, 0, 0, NULL)->out[0];
    for (int d = 0; d < n; d++) {
        TlValue *extent = view_number(u, TL_OP_EXTENT, u->whole, d),
                *stride = view_number(u, TL_OP_STRIDE, u->whole, d);
        if (d == u->last) {
            if (facts.extent[d] % 2)
                extent = with(u, TL_OP_ADD, extent, 1);
            extent = with(u, TL_OP_SHR, extent, 1);
            stride = constant(u, extent, 1);
        } else {
            if (facts.stride[d] % 2)
                stride = with(u, TL_OP_ADD, stride, 1);
            stride = with(u, TL_OP_SHR, stride, 1);
        }
        in[1 + d] = extent;
        in[1 + n + d] = stride;
    }
    TlAttr packed = {.id = TL_ATTR_PACKED, .u.i = 1};
    return tl_op_new(&u->b, TL_OP_VIEW, (uint32_t)(1 + 2 * n), in, 1, &bytes, 0, 1, &packed)
        ->out[0];
}

/* ---- indices ---- */

/* The index of an axis into the whole view: a start, an index or a tile of them. */
static TlValue *index_of(Unpack *u, uint32_t axis)
{
    TL_ASSERT(axis < u->p.naxes, "axis %u of %u", axis, u->p.naxes);
    TlValue *x = u->p.index[axis].value;
    if (!u->skip[axis])
        return x;
    x = tl_cast(&u->b, x, TL_I64);
    TlValue *skip = tl_broadcast(&u->b, u->skip[axis], x->type->rank, x->type->shape);
    return tl_binary(&u->b, TL_OP_ADD, x, skip);
}

/* The elements' numbers along an axis in i64: a scalar, or a tile of the axis's shape. */
static TlValue *numbers_of(Unpack *u, uint32_t axis)
{
    TL_ASSERT(axis < u->p.naxes, "axis %u of %u", axis, u->p.naxes);
    const TlAxis *a = &u->p.axes[axis];
    TlValue *x = tl_cast(&u->b, index_of(u, axis), TL_I64);
    if (a->kind != TL_AXIS_SLICE)
        return x;
    const TlType *t = tl_type_tile(u->ctx, TL_I64, 1, &a->width);
    TlValue *i = tl_op_new(&u->b, TL_OP_IOTA, 0, NULL, 1, &t, 0, 0, NULL)->out[0];
    x = tl_broadcast(&u->b, x, 1, &a->width);
    return tl_binary(&u->b, TL_OP_ADD, x, with(u, TL_OP_MUL, i, a->step));
}

/* ---- the load of bytes ---- */

typedef struct Bytes {
    TlAxis axes[TL_MAX_VIEW_RANK];
    TlValue *in[3 + TL_MAX_VIEW_RANK];
} Bytes;

static TlValue *load_bytes(Unpack *u, const Bytes *x, int rank, const int32_t *shape)
{
    static const TlAttrId kept[] = {TL_ATTR_UNCHECKED, TL_ATTR_CACHE, TL_ATTR_EVICT};
    TlAxis *axes = TL_NEW_ARRAY(&u->b.fn->module->arena, TlAxis, u->p.naxes);
    TlAttr attrs[1 + sizeof kept / sizeof *kept];
    uint32_t n = 0;
    for (uint32_t i = 0; i < u->p.naxes; i++)
        axes[i] = x->axes[i];
    attrs[n++] = (TlAttr){.id = TL_ATTR_AXES, .n = u->p.naxes, .u.axes = axes};
    for (uint32_t i = u->p.mask ? 1 : 0; i < sizeof kept / sizeof *kept; i++)
        if (tl_attr(u->op, kept[i])) /* masked-off elements may be outside */
            attrs[n++] = *tl_attr(u->op, kept[i]);
    const TlType *t = tl_type_tile(u->ctx, TL_U8, rank, shape);
    return tl_op_new(&u->b, TL_OP_LOAD, 1 + u->p.naxes, x->in, 1, &t, 0, n, attrs)->out[0];
}

static Bytes same_axes(Unpack *u)
{
    Bytes x = {.in = {bytes_of(u)}};
    for (uint32_t i = 0; i < u->p.naxes; i++) {
        x.axes[i] = u->p.axes[i];
        if ((int)i != u->last)
            x.in[1 + i] = index_of(u, i);
    }
    return x;
}

/* Bits 4 * odd .. 4 * odd + 3 of the bytes; `odd`, a tile of the bytes' shape, is 0 or 1. */
static TlValue *halves(Unpack *u, TlValue *bytes, TlValue *odd)
{
    odd = with(u, TL_OP_SHL, tl_cast(&u->b, odd, TL_U8), 2);
    return with(u, TL_OP_AND, tl_binary(&u->b, TL_OP_SHR, bytes, odd), 15);
}

/* ---- pairs: both halves of each byte ---- */

static bool is_even(const Unpack *u, const TlValue *v)
{
    return !v || tl_axis_facts(u->axis, v)->divisibility[0] % 2 == 0;
}

static bool makes_pairs(const Unpack *u)
{
    const TlAxis *a = &u->p.axes[u->last];
    const TlValue *v = u->p.base;
    bool is_part = v->def && v->def->opcode == TL_OP_SUB_VIEW;
    return a->kind == TL_AXIS_SLICE && a->step == 1 && a->width % 2 == 0 && !is_part &&
           is_even(u, u->p.index[u->last].value) && u->type->rank < TL_MAX_RANK;
}

/* The bytes of a load that makes pairs. */
static TlValue *load_whole(Unpack *u)
{
    int32_t shape[TL_MAX_RANK];
    Bytes x = same_axes(u);
    memcpy(shape, u->type->shape, sizeof shape);
    shape[u->type->rank - 1] /= 2;
    x.axes[u->last].width /= 2;
    x.in[1 + u->last] = with(u, TL_OP_SHR, u->p.index[u->last].value, 1);
    return load_bytes(u, &x, u->type->rank, shape);
}

static TlValue *load_pairs(Unpack *u)
{
    Bytes x = same_axes(u);
    int rank = u->type->rank;
    int32_t bytes[TL_MAX_RANK], pairs[TL_MAX_RANK], column[TL_MAX_RANK], row[TL_MAX_RANK], two = 2;
    for (int d = 0; d <= rank; d++) {
        pairs[d] = d == rank ? 2 : u->type->shape[d] / (d == rank - 1 ? 2 : 1);
        bytes[d] = pairs[d];
        column[d] = d == rank ? 1 : pairs[d];
        row[d] = d == rank ? 2 : 1;
    }
    x.axes[u->last].width /= 2;
    x.in[1 + u->last] = with(u, TL_OP_SHR, u->p.index[u->last].value, 1);
    TlValue *byte = reshaped(u, load_bytes(u, &x, rank, bytes), rank + 1, column);
    const TlType *which = tl_type_tile(u->ctx, TL_U8, 1, &two);
    TlValue *odd = tl_op_new(&u->b, TL_OP_IOTA, 0, NULL, 1, &which, 0, 0, NULL)->out[0];
    odd = tl_broadcast(&u->b, reshaped(u, odd, rank + 1, row), rank + 1, pairs);
    byte = tl_broadcast(&u->b, byte, rank + 1, pairs);
    return reshaped(u, halves(u, byte, odd), rank, u->type->shape);
}

/* ---- one byte per element ---- */

static TlValue *load_singles(Unpack *u, TlValue *number)
{
    Bytes x = same_axes(u);
    TlValue *byte = with(u, TL_OP_SHR, number, 1);
    bool all_tiles = u->p.pointwise && u->p.axes[u->last].kind == TL_AXIS_SLICE;
    if (u->p.axes[u->last].kind == TL_AXIS_SLICE)
        x.axes[u->last] = (TlAxis){.kind = TL_AXIS_TILE};
    x.in[1 + u->last] = byte;
    for (uint32_t i = 0; i < u->p.naxes && all_tiles; i++) {
        if (u->p.axes[i].kind == TL_AXIS_SCALAR)
            continue;
        TlValue *n = (int)i == u->last ? byte : numbers_of(u, i);
        x.axes[i] = (TlAxis){.kind = TL_AXIS_TILE};
        x.in[1 + i] = spread(u, n, tl_place_dim(&u->p, i));
    }
    TlValue *bytes = load_bytes(u, &x, u->type->rank, u->type->shape);
    return halves(u, bytes, spread(u, with(u, TL_OP_AND, number, 1), u->dim));
}

/* ---- what counts ---- */

/* i1 per element: it is inside and not masked off; NULL: the load's zeros are right already. */
static TlValue *counts(Unpack *u)
{
    bool checked = !tl_attr_flag(u->op, TL_ATTR_UNCHECKED);
    TlValue *ok = u->p.mask;
    if (checked && (ok || u->p.other || u->whole != u->p.base)) {
        TlValue *in[1 + TL_MAX_VIEW_RANK];
        for (uint32_t i = 0; i <= u->p.naxes; i++)
            in[i] = tl_in(u->op, i);
        const TlType *t = tl_type_with_dtype(u->ctx, u->type, TL_BOOL);
        TlValue *inside = tl_op_new(&u->b, TL_OP_INSIDE, 1 + u->p.naxes, in, 1, &t, 0, 1,
                                    tl_attr(u->op, TL_ATTR_AXES))
                              ->out[0];
        ok = ok ? tl_binary(&u->b, TL_OP_AND, ok, inside) : inside;
    } else if (checked && tl_view_facts(u->axis, u->whole).extent[u->last] % 2) {
        TlValue *number = numbers_of(u, (uint32_t)u->last);
        TlValue *end = view_number(u, TL_OP_EXTENT, u->whole, u->last);
        end = tl_broadcast(&u->b, end, number->type->rank, number->type->shape);
        ok = spread(u, tl_binary(&u->b, TL_OP_LT, number, end), u->dim);
    }
    return ok;
}

static TlValue *unpacked(Unpack *u)
{
    TlDtype d = u->type->dtype;
    TlValue *x = makes_pairs(u) ? load_pairs(u) : load_singles(u, numbers_of(u, (uint32_t)u->last));
    x = tl_cast(&u->b, x, TL_U4);
    if (d != TL_U4)
        x = tl_op_new(&u->b, TL_OP_BITCAST, 1, &x, 1, &u->type, 0, 0, NULL)->out[0];
    TlValue *ok = counts(u);
    if (!ok)
        return x;
    TlValue *other = u->p.other ? u->p.other : tl_const_bits(&u->b, u->type, 0);
    return tl_select(&u->b, ok, x, other);
}

/* ---- stores ---- */

/* i1 per byte: element `half`, 0 or 1, of it is inside of the place's view. */
static TlValue *half_inside(Unpack *u, int half)
{
    TlAxis *axes = TL_NEW_ARRAY(&u->b.fn->module->arena, TlAxis, u->p.naxes);
    TlValue *in[1 + TL_MAX_VIEW_RANK] = {u->p.base};
    for (uint32_t i = 0; i < u->p.naxes; i++) {
        axes[i] = u->p.axes[i];
        in[1 + i] = u->p.index[i].value;
    }
    axes[u->last].width /= 2;
    axes[u->last].step = 2;
    if (half)
        in[1 + u->last] = with(u, TL_OP_ADD, tl_cast(&u->b, in[1 + u->last], TL_I64), 1);
    TlAttr attr = {.id = TL_ATTR_AXES, .n = u->p.naxes, .u.axes = axes};
    const TlType *t = tl_type_tile(u->ctx, TL_BOOL, u->type->rank, u->type->shape);
    return tl_op_new(&u->b, TL_OP_INSIDE, 1 + u->p.naxes, in, 1, &t, 0, 1, &attr)->out[0];
}

/* The bytes of the elements x, as u8 with the halves' bits: a pair becomes an axis of 2. */
static TlValue *joined(Unpack *u, TlValue *x)
{
    int rank = x->type->rank, n = rank < TL_MAX_RANK ? rank + 1 : 2;
    int32_t pairs[TL_MAX_RANK], row[TL_MAX_RANK], two = 2, all = 1;
    for (int d = 0; d < rank; d++)
        all *= x->type->shape[d];
    for (int d = 0; d < n; d++) {
        pairs[d] = d == n - 1 ? 2 : n <= rank ? all / 2 : x->type->shape[d] / (d == n - 2 ? 2 : 1);
        row[d] = d == n - 1 ? 2 : 1;
    }
    const TlType *which = tl_type_tile(u->ctx, TL_U8, 1, &two);
    TlValue *odd = tl_op_new(&u->b, TL_OP_IOTA, 0, NULL, 1, &which, 0, 0, NULL)->out[0];
    odd = with(u, TL_OP_SHL, tl_broadcast(&u->b, reshaped(u, odd, n, row), n, pairs), 2);
    x = tl_binary(&u->b, TL_OP_SHL, reshaped(u, x, n, pairs), odd);
    TlAttr attrs[] = {{.id = TL_ATTR_AXIS, .u.i = n - 1},
                      {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_OR}};
    const TlType *t = tl_type_with_shape(u->ctx, x->type, n - 1, pairs);
    x = tl_op_new(&u->b, TL_OP_REDUCE, 1, &x, 1, &t, 0, 2, attrs)->out[0];
    return reshaped(u, x, u->type->rank, u->type->shape);
}

/* Where the second half is outside, byte keeps the bits that are there. */
static TlValue *keep_halves(Unpack *u, const TlAttr *axes, Bytes *x, TlValue *byte)
{
    TlValue *inside = half_inside(u, 1), *outside = tl_unary(&u->b, TL_OP_NOT, inside);
    TlAttr attrs[] = {*axes, {.id = TL_ATTR_MASK, .u.i = 1}};
    x->in[1 + u->p.naxes] = outside;
    const TlType *t = byte->type;
    TlValue *old = tl_op_new(&u->b, TL_OP_LOAD, 2 + u->p.naxes, x->in, 1, &t, 0, 2, attrs)->out[0];
    TlValue *mixed = tl_binary(&u->b, TL_OP_OR, with(u, TL_OP_AND, byte, 0x0f),
                               with(u, TL_OP_AND, old, 0xf0));
    return tl_select(&u->b, inside, byte, mixed);
}

static void store_pairs(Unpack *u, TlValue *x)
{
    static const TlAttrId kept[] = {TL_ATTR_UNCHECKED, TL_ATTR_CACHE, TL_ATTR_EVICT};
    TlAttr attrs[2 + sizeof kept / sizeof *kept];
    uint32_t n = 0, nin = 1 + u->p.naxes;
    bool is_checked = !tl_attr_flag(u->op, TL_ATTR_UNCHECKED), is_part = u->whole != u->p.base;
    Bytes bytes = same_axes(u);
    bytes.axes[u->last].width /= 2;
    bytes.in[1 + u->last] = with(u, TL_OP_SHR, index_of(u, (uint32_t)u->last), 1);
    TlAxis *axes = TL_NEW_ARRAY(&u->b.fn->module->arena, TlAxis, u->p.naxes);
    memcpy(axes, bytes.axes, sizeof *axes * u->p.naxes);
    attrs[n++] = (TlAttr){.id = TL_ATTR_AXES, .n = u->p.naxes, .u.axes = axes};
    TlValue *byte = joined(u, x);
    if (is_checked && (is_part || tl_view_facts(u->axis, u->whole).extent[u->last] % 2))
        byte = keep_halves(u, attrs, &bytes, byte);
    bytes.in[nin++] = byte;
    if (is_checked && is_part) {
        bytes.in[nin++] = half_inside(u, 0);
        attrs[n++] = (TlAttr){.id = TL_ATTR_MASK, .u.i = 1};
    }
    for (uint32_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (tl_attr(u->op, kept[i]))
            attrs[n++] = *tl_attr(u->op, kept[i]);
    tl_op_new(&u->b, TL_OP_STORE, nin, bytes.in, 0, NULL, 0, n, attrs);
}

static void pack(Unpack *u)
{
    const TlAxis *a = &u->p.axes[u->last];
    if (u->p.mask || a->kind != TL_AXIS_SLICE || a->step != 1 || a->width % 2)
        return; /* code generation refuses it */
    int32_t half[TL_MAX_RANK];
    TlValue *x = u->p.value;
    const TlType *t = tl_type_with_dtype(u->ctx, x->type, TL_U4);
    find_whole(u);
    if (x->type != t)
        x = tl_op_new(&u->b, TL_OP_BITCAST, 1, &x, 1, &t, 0, 0, NULL)->out[0];
    memcpy(half, t->shape, sizeof half);
    half[t->rank - 1] /= 2;
    u->type = tl_type_tile(u->ctx, TL_U8, t->rank, half);
    store_pairs(u, tl_cast(&u->b, x, TL_U8));
    tl_op_erase(u->op);
}

/* ---- products with scales ---- */

static Unpack unpack_of(TlFn *fn, const TlAxisInfo *axis, TlOp *op)
{
    Unpack u = {.b = tl_builder_before(op), .ctx = fn->module->ctx, .axis = axis, .op = op};
    u.b.loc = op->loc;
    u.p = tl_op_place(op);
    u.last = (int)u.p.naxes - 1;
    u.dim = tl_place_dim(&u.p, (uint32_t)u.last);
    if (op->nout)
        u.type = op->out[0]->type;
    return u;
}

/* Are the bytes of the load what is needed, but perhaps for half a byte at the end of a row? */
static bool loads_whole_bytes(const Unpack *u)
{
    return makes_pairs(u) && !u->p.mask && !u->p.other && u->dim == u->type->rank - 1;
}

/* The bytes, without the half that the last one of a row may have too many. */
static TlValue *whole_bytes(Unpack *u)
{
    u->whole = u->p.base;
    TlValue *bytes = load_whole(u);
    u->type = bytes->type;
    if (tl_attr_flag(u->op, TL_ATTR_UNCHECKED) ||
        tl_view_facts(u->axis, u->whole).extent[u->last] % 2 == 0)
        return bytes;
    int32_t n = bytes->type->shape[u->dim];
    const TlType *t = tl_type_tile(u->ctx, TL_I64, 1, &n);
    TlValue *i = tl_op_new(&u->b, TL_OP_IOTA, 0, NULL, 1, &t, 0, 0, NULL)->out[0],
            *first = with(u, TL_OP_SHR, tl_cast(&u->b, u->p.index[u->last].value, TL_I64), 1),
            *end = with(u, TL_OP_SHR, view_number(u, TL_OP_EXTENT, u->whole, u->last), 1);
    i = tl_binary(&u->b, TL_OP_ADD, i, tl_broadcast(&u->b, first, 1, &n));
    TlValue *both = tl_binary(&u->b, TL_OP_LT, i, tl_broadcast(&u->b, end, 1, &n));
    return tl_select(&u->b, spread(u, both, u->dim), bytes, with(u, TL_OP_AND, bytes, 15));
}

/* [R, K] of f4e2m1 as [R, K / 2] of bytes. */
static TlValue *pairs_of(TlFn *fn, const TlAxisInfo *axis, TlOp *dot, TlValue *x)
{
    TlOp *op = x->def;
    if (op && op->opcode == TL_OP_LOAD && tl_in(op, 0)->type->kind == TL_VIEW) {
        Unpack u = unpack_of(fn, axis, op);
        if (loads_whole_bytes(&u))
            return whole_bytes(&u);
    }
    Unpack u = {.b = tl_builder_before(dot), .ctx = fn->module->ctx};
    u.b.loc = dot->loc;
    const TlType *t = tl_type_with_dtype(u.ctx, x->type, TL_U4);
    int32_t half[2] = {t->shape[0], t->shape[1] / 2};
    x = tl_op_new(&u.b, TL_OP_BITCAST, 1, &x, 1, &t, 0, 0, NULL)->out[0];
    u.type = tl_type_tile(u.ctx, TL_U8, 2, half);
    return joined(&u, tl_cast(&u.b, x, TL_U8));
}

static bool takes_pairs(const TlOp *op)
{
    return op->opcode == TL_OP_DOT && op->nin > TL_MMA_SA && is_packed(tl_in(op, 0)->type) &&
           is_packed(tl_in(op, 1)->type);
}

static void take_pairs(TlFn *fn, const TlAxisInfo *axis, TlOp *dot)
{
    TlBuilder b = tl_builder_before(dot);
    TlValue *y = tl_transposed(&b, tl_in(dot, TL_MMA_B));
    tl_set_operand(dot, TL_MMA_A, pairs_of(fn, axis, dot, tl_in(dot, TL_MMA_A)));
    TlValue *pairs = pairs_of(fn, axis, dot, y);
    b = tl_builder_before(dot);
    tl_set_operand(dot, TL_MMA_B, tl_transposed(&b, pairs));
}

/* ---- the pass ---- */

static bool is_packed_access(const TlOp *op)
{
    return (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE) &&
           is_packed(tl_in(op, 0)->type) &&
           tl_in(op, 0)->type->kind == TL_VIEW;
}

static void unpack(TlFn *fn, const TlAxisInfo *axis, TlOp *op)
{
    TL_ASSERT(is_packed_access(op), "%s moves whole bytes", tl_op_info(op->opcode)->text);
    Unpack u = unpack_of(fn, axis, op);
    if (op->opcode == TL_OP_STORE) {
        pack(&u);
        return;
    }
    find_whole(&u);
    TlValue *x = unpacked(&u);
    x->name = op->out[0]->name;
    tl_replace_uses(op->out[0], x);
    tl_op_erase(op);
}

TlPassResult tl_pass_unpack(TlFn *fn, TlPassCtx *px)
{
    TL_VEC(TlOp *) accesses = {0}, dots = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_packed_access(op))
            tl_vec_push(px->scratch, &accesses, op);
        else if (takes_pairs(op))
            tl_vec_push(px->scratch, &dots, op);
    if (!accesses.len && !dots.len)
        return TL_SAME;
    const TlAxisInfo *axis = tl_pass_axis_info(fn, px);
    for (uint32_t i = 0; i < dots.len; i++)
        take_pairs(fn, axis, dots.data[i]);
    for (uint32_t i = 0; i < accesses.len; i++)
        unpack(fn, axis, accesses.data[i]);
    return TL_CHANGED;
}
