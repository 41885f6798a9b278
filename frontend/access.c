/* Places in memory: view[...] in all its forms, at(view, ...), pointers and tiles of pointers;
 * loads, stores, atomics on them; views made of pointers and of parts of views. A slice stays a
 * slice: nothing here turns a view into pointers and masks.
 *
 * In IR index tiles of rank 2 and more address points, vectors their outer product. So several
 * vectors of at(...) become tiles [1, N]: the place's shape in IR then begins with a 1 that nobody
 * sees (leading_1). */
#include "frontend/sema.h"
#include <string.h>

bool tl_access_ok(const TlAccess *a)
{
    return a->bad.kind == TL_VAL_VOID;
}

static void fail(TlAccess *out)
{
    out->bad = tl_bad();
}

/* Marks the place as unknown or wrong because a part of its address is. */
static void spoil(TlAccess *out, const TlVal *v)
{
    if (v->kind == TL_VAL_ERROR || out->bad.kind == TL_VAL_ERROR)
        out->bad = tl_bad();
    else
        out->bad = tl_unknown(TL_DTYPE_COUNT);
}

/* ---- indices ---- */

/* An index or start as an integer in IR; NULL after an error or when unknown (spoils the place). */
static TlValue *index_value(TlSema *s, TlAccess *out, const TlExpr *e, bool start)
{
    TlVal v = tl_eval_value(s, e);
    if (tl_is_bad(&v)) {
        TlDtype d = v.dtype;
        if (v.kind == TL_VAL_UNKNOWN && d != TL_DTYPE_COUNT && !tl_is_int(d)) {
            tl_err(s, e->loc, TL_E0503, tl_dtype_name(d));
            v = tl_bad();
        }
        spoil(out, &v);
        return NULL;
    }
    bool number = tl_is_number(&v) && !tl_is_pointer(&v);
    TlDtype d = number ? tl_val_type_of(s, &v)->dtype : TL_BOOL;
    bool ok = number && tl_is_int(d) && d != TL_I4 && d != TL_U4;
    if (ok && start && v.kind == TL_VAL_IR)
        ok = v.u.ir->type->rank == 0;
    if (ok && start && v.kind == TL_VAL_CHOICE)
        ok = v.items[0].u.ir->type->rank == 0;
    if (!ok) {
        tl_err(s, e->loc, start ? TL_E0504 : TL_E0503, tl_val_str(s, &v));
        fail(out);
        return NULL;
    }
    TlValue *ir = tl_materialize(s, &v, e->loc);
    if (!ir)
        fail(out);
    return ir;
}

static int32_t slice_number(TlSema *s, TlAccess *out, const TlExpr *e, const char *what,
                            bool positive)
{
    int64_t n = 0;
    bool unknown = false;
    if (!tl_eval_int(s, e, what, &n, &unknown)) {
        TlVal v = unknown ? tl_unknown(TL_DTYPE_COUNT) : tl_bad();
        spoil(out, &v);
        return 1;
    }
    bool is_down = !positive && n < 0 && n >= -TL_MAX_ELEMS;
    if (!is_down && !tl_extent_check(s, e->loc, e, n, 1)) {
        fail(out);
        return 1;
    }
    return (int32_t)n;
}

static void index_axis(TlSema *s, TlAccess *out, const TlIndex *ix)
{
    TL_ASSERT(ix->at && (ix->width || !ix->step), "an index with a step, but no width");
    TlAxis axis = {.kind = TL_AXIS_SCALAR, .width = 1, .step = 1};
    out->start_loc = ix->at->loc;
    out->width_loc = ix->width ? ix->width->loc : ix->at->loc;
    TlValue *at = index_value(s, out, ix->at, ix->width != NULL);
    if (ix->width) {
        axis.kind = TL_AXIS_SLICE;
        axis.width = slice_number(s, out, ix->width, "the width of a slice", true);
        if (ix->step)
            axis.step = slice_number(s, out, ix->step, "the step of a slice", false);
    } else if (at && at->type->rank) {
        axis.kind = TL_AXIS_TILE;
        out->gathers = true;
    }
    if (out->naxes < TL_MAX_VIEW_RANK) {
        out->axes[out->naxes] = axis;
        out->index[out->naxes] = at;
    }
    out->naxes++;
}

/* All index tiles are broadcast to one shape. */
static void broadcast_tiles(TlSema *s, TlAccess *out)
{
    int rank = 0;
    int32_t shape[TL_MAX_RANK] = {0};
    const TlType *all = tl_type_scalar(s->ctx, TL_I32);
    for (uint32_t i = 0; i < out->naxes; i++) {
        if (out->axes[i].kind != TL_AXIS_TILE)
            continue;
        if (!tl_broadcast_shape(all, out->index[i]->type, &rank, shape)) {
            tl_err(s, out->loc, TL_E0303, "the index tiles", tl_type_str(s->ctx, all),
                   tl_type_str(s->ctx, out->index[i]->type));
            fail(out);
            return;
        }
        all = tl_type_tile(s->ctx, TL_I32, rank, shape);
    }
    for (uint32_t i = 0; i < out->naxes; i++)
        if (out->axes[i].kind == TL_AXIS_TILE)
            out->index[i] = tl_broadcast_ir(s, out->index[i], all->rank, all->shape);
}

/* Index tiles of rank 2 and more gather point by point. */
static void align_pointwise(TlSema *s, TlAccess *out)
{
    int max_rank = 0, last_tile = -1, first_slice = TL_MAX_VIEW_RANK;
    for (uint32_t i = 0; i < out->naxes; i++) {
        if (out->axes[i].kind == TL_AXIS_TILE) {
            const TlType *t = out->index[i]->type;
            TL_ASSERT(t->rank > 0, "an index of rank 0 as a tile");
            if (t->rank > max_rank)
                max_rank = t->rank;
            last_tile = (int)i;
        }
        if (out->axes[i].kind == TL_AXIS_SLICE && (int)i < first_slice)
            first_slice = (int)i;
    }
    if (max_rank < 2)
        return;
    if (first_slice < last_tile) {
        tl_err(s, out->loc, TL_E0505, "");
        fail(out);
        return;
    }
    broadcast_tiles(s, out);
}

/* The first slice's positions as a tile of rank 1 in i64, which no start makes wrap. */
static TlValue *positions(TlSema *s, const TlAccess *a, uint32_t axis)
{
    const TlAxis *x = &a->axes[axis];
    TlValue *i = tl_emit_iota(s, x->width, TL_I64), *start = tl_cast(&s->b, a->index[axis], TL_I64);
    i = tl_binary(&s->b, TL_OP_MUL, i, tl_const_int(&s->b, i->type, x->step));
    return tl_binary(&s->b, TL_OP_ADD, tl_broadcast_ir(s, start, 1, &x->width), i);
}

/* Points by several vectors before slices that leave no room for an axis more: the first slice
 * becomes a second axis of all index tiles. */
static void fold_slice(TlSema *s, TlAccess *out, uint32_t slice)
{
    int32_t shape[2] = {0, out->axes[slice].width};
    TlValue *at = positions(s, out, slice);
    for (uint32_t i = 0; i < slice; i++)
        if (out->axes[i].kind == TL_AXIS_TILE) {
            shape[0] = out->index[i]->type->shape[0];
            TlValue *column = tl_emit_expand(s, out->index[i], 1);
            out->index[i] = tl_broadcast_ir(s, column, 2, shape);
        }
    out->axes[slice] = (TlAxis){.kind = TL_AXIS_TILE, .width = 1, .step = 1};
    out->index[slice] = tl_broadcast_ir(s, at, 2, shape);
}

/* The index tiles of at(...) address points whatever their rank. */
static void align_points(TlSema *s, TlAccess *out)
{
    uint32_t tiles = 0, first_slice = out->naxes;
    int rank = 0;
    broadcast_tiles(s, out);
    if (!tl_access_ok(out))
        return;
    for (uint32_t i = out->naxes; i-- > 0;) {
        if (out->axes[i].kind == TL_AXIS_SLICE)
            first_slice = i;
        tiles += out->axes[i].kind == TL_AXIS_TILE;
        if (out->axes[i].kind == TL_AXIS_TILE)
            rank = out->index[i]->type->rank;
    }
    if (tiles < 2 || rank != 1)
        return;
    if (out->naxes - first_slice == TL_MAX_RANK - 1) {
        fold_slice(s, out, first_slice);
        return;
    }
    for (uint32_t i = 0; i < out->naxes; i++)
        if (out->axes[i].kind == TL_AXIS_TILE)
            out->index[i] = tl_emit_expand(s, out->index[i], 0);
    out->leading_1 = true;
}

static void add_extent(TlAccess *out, int32_t n, int64_t *elems)
{
    TL_ASSERT(n > 0, "an extent of %d", (int)n);
    if (out->rank < TL_MAX_RANK)
        out->shape[out->rank] = n;
    out->rank++;
    *elems = *elems > TL_MAX_ELEMS ? *elems : *elems * n;
}

/* The shape of the accessed tile. */
static void find_shape(TlSema *s, TlAccess *out)
{
    bool tiles_done = false;
    int64_t elems = 1;
    for (uint32_t i = 0; i < out->naxes; i++) {
        if (out->axes[i].kind == TL_AXIS_SLICE)
            add_extent(out, out->axes[i].width, &elems);
        if (out->axes[i].kind != TL_AXIS_TILE)
            continue;
        const TlType *t = out->index[i]->type;
        if (t->rank > 1 && tiles_done)
            continue;
        tiles_done = t->rank > 1;
        for (int k = out->leading_1; k < t->rank; k++)
            add_extent(out, t->shape[k], &elems);
    }
    if (out->rank > TL_MAX_RANK) {
        tl_err(s, out->loc, TL_E0308, TL_MAX_RANK, out->rank);
        fail(out);
    } else if (elems > TL_MAX_ELEMS) {
        tl_err(s, out->loc, TL_E0307, TL_MAX_ELEMS);
        fail(out);
    }
}

static void access_view(TlSema *s, const TlVal *base, uint32_t n, const TlIndex *indices,
                        TlAccess *out)
{
    TL_ASSERT(base->kind == TL_VAL_VIEW, "a value of kind %d is no view", (int)base->kind);
    const TlType *t = base->u.ir->type;
    out->base = base->u.ir;
    out->view = true;
    out->is_const = t->is_const;
    out->dtype = t->dtype;
    for (uint32_t i = 0; i < n; i++)
        index_axis(s, out, &indices[i]);
    if (out->naxes != t->rank) {
        TlDiag *row = tl_err(s, out->loc, TL_E0502, (unsigned)t->rank, out->naxes);
        if (out->naxes < t->rank)
            tl_label(s, row,
                     out->points ? "every axis has an index: at(A, i, j)"
                                 : "every axis has an index or a slice, all in one pair of "
                                   "brackets: A[i, j +: B]");
        else if (t->rank == 1 && out->naxes == 2)
            tl_label(s, row, "for the elements from i on, write x[i +: B]");
        fail(out);
    }
    if (!tl_access_ok(out))
        return;
    if (out->points)
        align_points(s, out);
    else
        align_pointwise(s, out);
    if (tl_access_ok(out))
        find_shape(s, out);
}

/* ---- at(view, i, j, ...) ---- */

bool tl_is_at(const TlSema *s, const TlExpr *e)
{
    return e->kind == TL_EX_CALL && e->a->kind == TL_EX_NAME && !strcmp(e->a->u.name, "at") &&
           !tl_var_of(s, e->a) && !tl_mod_find(s->frame->mod, e->a->u.name);
}

/* Slices may only follow the indices. */
static bool check_order(TlSema *s, const TlExpr *call)
{
    bool sliced = false;
    for (uint32_t i = 1; i < call->args.len; i++) {
        const TlArg *a = &call->args.data[i];
        if (sliced && !a->width) {
            tl_err(s, a->loc, TL_E0370, "");
            return false;
        }
        sliced |= a->width != NULL;
    }
    return true;
}

static bool check_names(TlSema *s, const TlExpr *call)
{
    for (uint32_t i = 0; i < call->args.len; i++) {
        const TlArg *a = &call->args.data[i];
        if (a->name && (i || strcmp(a->name, "view"))) {
            tl_err(s, a->loc, TL_E0314, "at", a->name);
            return false;
        }
    }
    return true;
}

static void access_points(TlSema *s, const TlExpr *e, TlAccess *out)
{
    TL_ASSERT(e->kind == TL_EX_CALL, "expression kind %d is no call", (int)e->kind);
    uint32_t n = e->args.len;
    const TlArg *args = e->args.data;
    if (n < 2) {
        tl_err(s, e->loc, TL_E0313, "at", n ? "index" : "view");
        fail(out);
        return;
    }
    out->points = out->gathers = true;
    tl_fact_name(s, e->a);
    TlVal base = tl_eval_value(s, args[0].value);
    TlIndex *indices = TL_NEW_ARRAY(s->arena, TlIndex, n);
    for (uint32_t i = 1; i < n; i++)
        indices[i - 1] = (TlIndex){args[i].value, args[i].width, args[i].step};
    bool ok = check_names(s, e) && check_order(s, e);
    if (base.kind == TL_VAL_VIEW && ok) {
        access_view(s, &base, n - 1, indices, out);
        return;
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        index_axis(s, out, &indices[i]); /* for their errors */
    if (!tl_is_bad(&base) && base.kind != TL_VAL_VIEW)
        tl_err(s, args[0].value->loc, TL_E0338, "at", "view", "a view",
               tl_val_str(s, &base));
    if (base.kind != TL_VAL_UNKNOWN || !ok)
        base = tl_bad();
    spoil(out, &base);
}

static void access_pointer(TlValue *p, TlAccess *out)
{
    TL_ASSERT(p->type->ptr, "value %u is no pointer", p->id);
    out->base = p;
    out->is_const = p->type->is_const;
    out->dtype = p->type->dtype;
    out->rank = p->type->rank;
    for (int i = 0; i < out->rank; i++)
        out->shape[i] = p->type->shape[i];
}

/* What an index names that is wrong or unknown. */
static TlVal unread_element(TlSema *s, const TlVal *array)
{
    const TlTy *elem = array->u.type->items;
    bool is_scalar = elem->kind == TL_TY_VALUE && elem->type->rank == 0;
    if (!s->abstract)
        return tl_bad();
    return is_scalar ? tl_unknown(elem->type->dtype) : tl_zero(s, elem);
}

void tl_access(TlSema *s, const TlExpr *e, TlAccess *out)
{
    *out = (TlAccess){.bad = tl_val(TL_VAL_VOID),
                      .element = tl_val(TL_VAL_VOID),
                      .loc = e->loc,
                      .dtype = TL_DTYPE_COUNT};
    if (e->kind == TL_EX_UNCHECKED) {
        out->unchecked = true;
        e = e->a;
        out->loc = e->loc;
    }
    if (!tl_step(s, e->loc)) {
        fail(out);
        return;
    }
    if (tl_is_at(s, e)) {
        access_points(s, e, out);
        return;
    }
    if (e->kind != TL_EX_INDEX) { /* a pointer or a tile of pointers */
        TlVal p = tl_eval_value(s, e);
        if (tl_is_pointer(&p)) {
            access_pointer(p.u.ir, out);
        } else if (tl_is_bad(&p)) {
            spoil(out, &p);
        } else {
            TlDiag *row = tl_err(s, e->loc, TL_E0506, tl_val_str(s, &p));
            if (p.kind == TL_VAL_VIEW)
                tl_label(s, row, "name an element, %s[0], or a slice, %s[i +: B]",
                         tl_short_text(s, e, "x"), tl_short_text(s, e, "x"));
            fail(out);
        }
        return;
    }
    out->loc = e->a->loc;
    s->b.loc = e->loc;
    TlVal base = tl_eval_value(s, e->a);
    if (base.kind == TL_VAL_VIEW) {
        access_view(s, &base, e->indices.len, e->indices.data, out);
        return;
    }
    if (base.kind == TL_VAL_ARRAY) {
        TlArrayIndex i;
        bool ok = tl_array_index(s, &base, e, &i);
        if (out->unchecked)
            tl_err(s, e->a->loc, TL_E0506, "an element of an array");
        out->element = ok ? tl_array_get(s, &base, &i) : unread_element(s, &base);
        out->bad = tl_bad();
        return;
    }
    if (tl_is_pointer(&base) && e->indices.len == 1 && !e->indices.data[0].width) { /* p[i] */
        TlVal i = tl_eval_value(s, e->indices.data[0].at);
        TlVal p =
            tl_is_bad(&i) ? i : tl_binary_vals(s, TL_BIN_ADD, base, i, e->indices.data[0].at->loc);
        if (tl_is_pointer(&p))
            access_pointer(p.u.ir, out);
        else
            spoil(out, &p);
        return;
    }
    for (uint32_t i = 0; i < e->indices.len; i++)
        index_axis(s, out, &e->indices.data[i]); /* for their errors */
    if (!tl_is_bad(&base)) {
        TlDiag *row = tl_err(s, e->a->loc, TL_E0506, tl_val_str(s, &base));
        if (base.kind == TL_VAL_TUPLE)
            tl_label(s, row, "take it apart: auto (a, b) = ...;");
        else if (tl_is_tile(&base) && e->indices.len && e->indices.data[0].width)
            tl_label(s, row, "a part of a tile is extract(x, 0 +: M, 0 +: N)");
        else if (base.kind == TL_VAL_IR && base.u.ir->type->rank)
            tl_label(s, row, "pick(x, axis, i) takes elements of a tile, put(x, axis, i, v) "
                             "replaces them");
        else if (tl_is_pointer(&base))
            tl_label(s, row,
                     "a pointer has no extents: index p[i + iota(B)], or make a view of it");
        base = tl_bad();
    }
    spoil(out, &base);
}

/* ---- the operations ---- */

typedef struct Operands {
    TlValue *in[TL_MAX_VIEW_RANK + 6];
    uint32_t n;
    TlAttr attrs[8];
    uint32_t nattrs;
} Operands;

static void add_attr(Operands *o, TlAttrId id, int64_t v)
{
    TL_ASSERT(o->nattrs < sizeof o->attrs / sizeof *o->attrs, "attribute %u", o->nattrs);
    o->attrs[o->nattrs++] = (TlAttr){.id = id, .u.i = v};
}

static void add_place(TlSema *s, Operands *o, const TlAccess *a)
{
    TL_ASSERT(a->base && a->naxes <= TL_MAX_VIEW_RANK, "a place of %u axes", a->naxes);
    o->in[o->n++] = a->base;
    if (a->view) {
        TlAxis *axes = TL_NEW_ARRAY(&s->b.fn->module->arena, TlAxis, a->naxes + 1);
        for (uint32_t i = 0; i < a->naxes; i++) {
            axes[i] = a->axes[i];
            TL_ASSERT(a->index[i], "a place without index %u", i);
            o->in[o->n++] = a->index[i];
        }
        o->attrs[o->nattrs++] = (TlAttr){.id = TL_ATTR_AXES, .n = a->naxes, .u.axes = axes};
        if (a->unchecked)
            add_attr(o, TL_ATTR_UNCHECKED, 1);
    }
}

/* A type, with the shape that the place has for the program, as the place has it in IR. */
static const TlType *type_in_ir(TlSema *s, const TlAccess *a, const TlType *t)
{
    int32_t shape[TL_MAX_RANK] = {1};
    if (!a->leading_1)
        return t;
    TL_ASSERT(t->rank == a->rank && t->rank < TL_MAX_RANK, "points of rank %d", (int)t->rank);
    memcpy(shape + 1, t->shape, sizeof *shape * t->rank);
    return tl_type_with_shape(s->ctx, t, t->rank + 1, shape);
}

static TlValue *tile_in_ir(TlSema *s, const TlAccess *a, TlValue *x)
{
    const TlType *t = type_in_ir(s, a, x->type);
    return tl_emit_reshape(s, x, t->rank, t->shape);
}

static TlVal from_ir(TlSema *s, const TlAccess *a, TlValue *x)
{
    return tl_val_ir(a->leading_1 ? tl_emit_reshape(s, x, a->rank, a->shape) : x);
}

/* False when the mask is wrong. */
static bool add_mask(TlSema *s, Operands *o, const TlAccess *a, const TlMemArgs *m)
{
    if (!m || !m->mask)
        return true;
    const TlType *t = tl_type_tile(s->ctx, TL_BOOL, a->rank, a->shape);
    TlDtype d = tl_is_number(m->mask) && !tl_is_pointer(m->mask) ? tl_val_type_of(s, m->mask)->dtype
                                                                 : TL_DTYPE_COUNT;
    if (tl_is_bad(m->mask))
        return false;
    if (d != TL_BOOL) {
        tl_err(s, m->mask_loc, TL_E0509, tl_val_str(s, m->mask));
        return false;
    }
    TlValue *mask = tl_convert_ir(s, m->mask, t, m->mask_loc);
    if (!mask)
        return false;
    o->in[o->n++] = tile_in_ir(s, a, mask);
    add_attr(o, TL_ATTR_MASK, 1);
    return true;
}

static void add_hints(Operands *o, const TlMemArgs *m)
{
    if (m && m->cache >= 0)
        add_attr(o, TL_ATTR_CACHE, m->cache);
    if (m && m->evict >= 0)
        add_attr(o, TL_ATTR_EVICT, m->evict);
}

static const TlType *tile_of(TlSema *s, const TlAccess *a)
{
    TL_ASSERT(tl_access_ok(a) && a->rank <= TL_MAX_RANK, "a tile of rank %d", a->rank);
    return tl_type_tile(s->ctx, a->dtype, a->rank, a->shape);
}

TlVal tl_access_load(TlSema *s, const TlAccess *a, const TlMemArgs *m)
{
    Operands o = {0};
    const TlType *t = tile_of(s, a);
    add_place(s, &o, a);
    if (!add_mask(s, &o, a, m))
        return tl_bad();
    if (m && m->other) {
        TlValue *other = tl_convert_ir(s, m->other, t, m->other_loc);
        if (!other)
            return tl_is_bad(m->other) ? *m->other : tl_bad();
        o.in[o.n++] = tile_in_ir(s, a, other);
        add_attr(&o, TL_ATTR_OTHER, 1);
    }
    add_hints(&o, m);
    t = type_in_ir(s, a, t);
    return from_ir(s, a, tl_emit(s, TL_OP_LOAD, o.n, o.in, t, o.nattrs, o.attrs));
}

static bool writable(TlSema *s, const TlAccess *a)
{
    if (!a->is_const)
        return true;
    tl_label(s, tl_err(s, a->loc, TL_E0501, a->view ? "this view" : "this pointer's target"),
             "what a kernel writes to is declared without const");
    return false;
}

/* ---- stores to packed views ---- */

static void refuse_packed(TlSema *s, const TlAccess *a, TlLoc loc, const char *why,
                          const char *hint)
{
    TlDiag *row = tl_err(s, loc, TL_E0390, tl_dtype_name(a->dtype), why);
    if (hint)
        tl_label(s, row, "%s", hint);
}

/* Parts of a view: do they all begin on a byte for certain? */
static bool starts_on_byte(const TlSema *s, const TlAccess *a)
{
    for (const TlValue *v = a->base; v->def && v->def->opcode == TL_OP_SUB_VIEW;
         v = tl_in(v->def, 0))
        if (!tl_is_even(s, tl_in(v->def, a->naxes)))
            return false;
    return true;
}

/* Elements come in pairs that share a byte: no store may write to a half of one, but for the last
 * one of a row. */
static bool check_packed(TlSema *s, const TlAccess *a, const TlMemArgs *m)
{
    TL_ASSERT(a->view && a->naxes, "a packed place of %u axes", a->naxes);
    const TlAxis *last = &a->axes[a->naxes - 1];
    bool is_slice = last->kind == TL_AXIS_SLICE;
    if (m && m->mask)
        refuse_packed(s, a, m->mask_loc, "takes no mask", NULL);
    else if (!is_slice || last->step != 1)
        refuse_packed(s, a, is_slice ? a->width_loc : a->start_loc,
                      "must be a slice of step 1 along the last axis", NULL);
    else if (last->width % 2)
        refuse_packed(s, a, a->width_loc, "must have an even width along the last axis", NULL);
    else if (s->stand_ins) /* a caller may give an even start */
        return true;
    else if (!tl_is_even(s, a->index[a->naxes - 1]))
        refuse_packed(s, a, a->start_loc, "must begin at an even element for certain",
                      "multiple_of(i, 2) promises that i is even");
    else if (!starts_on_byte(s, a))
        refuse_packed(s, a, a->loc, "must lie in a part that begins at an even element for certain",
                      "sub(A, (i, multiple_of(j, 2)), ...) promises that j is even");
    else
        return true;
    return false;
}

void tl_access_store(TlSema *s, const TlAccess *a, const TlVal *v, TlLoc vloc, const TlMemArgs *m)
{
    Operands o = {0};
    const TlType *t = tile_of(s, a);
    bool ok = writable(s, a) && (!tl_is_packed(a->dtype) || check_packed(s, a, m));
    TlValue *x = tl_convert_ir(s, v, t, vloc);
    if (!ok || !x)
        return;
    add_place(s, &o, a);
    o.in[o.n++] = tile_in_ir(s, a, x);
    if (!add_mask(s, &o, a, m))
        return;
    add_hints(&o, m);
    tl_op_new(&s->b, TL_OP_STORE, o.n, o.in, 0, NULL, 0, o.nattrs, o.attrs);
}

bool tl_access_updates(TlSema *s, const TlAccess *a, TlLoc loc)
{
    bool packed = tl_access_ok(a) && tl_is_packed(a->dtype);
    if (packed)
        refuse_packed(s, a, loc, "takes no operator", NULL);
    return !packed;
}

TlVal tl_access_inside(TlSema *s, const TlAccess *a)
{
    if (!a->view) {
        tl_err(s, a->loc, TL_E0316, "in", "a pointer");
        return tl_bad();
    }
    Operands o = {0};
    TlAccess plain = *a;
    plain.unchecked = false;
    add_place(s, &o, &plain);
    const TlType *t = type_in_ir(s, a, tl_type_tile(s->ctx, TL_BOOL, a->rank, a->shape));
    return from_ir(s, a, tl_emit(s, TL_OP_INSIDE, o.n, o.in, t, o.nattrs, o.attrs));
}

static bool atomic_takes(TlOpcode op, int rmw, TlDtype d)
{
    return op == TL_OP_ATOMIC_RMW ? tl_rmw_takes((TlRmw)rmw, d) : tl_atomic_moves(d);
}

TlVal tl_access_atomic(TlSema *s, TlOpcode op, int rmw, const TlAccess *a, uint32_t nvals,
                       const TlVal *vals, const TlLoc *locs, const TlMemArgs *m)
{
    Operands o = {0};
    const TlType *t = tile_of(s, a);
    if (!atomic_takes(op, rmw, a->dtype)) {
        tl_err(s, s->b.loc, TL_E0508,
               op == TL_OP_ATOMIC_RMW
                   ? tl_format(s->arena, "atomic_%s", tl_enum_name(TL_FORM_RMW, rmw))
                   : tl_op_info(op)->text,
               tl_dtype_name(a->dtype));
        return tl_bad();
    }
    if (op != TL_OP_ATOMIC_LOAD && !writable(s, a))
        return tl_bad();
    add_place(s, &o, a);
    for (uint32_t i = 0; i < nvals; i++) {
        TlValue *x = tl_convert_ir(s, &vals[i], t, locs[i]);
        if (!x)
            return tl_is_bad(&vals[i]) ? vals[i] : tl_bad();
        o.in[o.n++] = tile_in_ir(s, a, x);
    }
    if (!add_mask(s, &o, a, m))
        return tl_bad();
    if (op == TL_OP_ATOMIC_RMW)
        add_attr(&o, TL_ATTR_RMW, rmw);
    add_attr(&o, TL_ATTR_ORDER, m->order >= 0 ? m->order : TL_ORDER_RELAXED);
    add_attr(&o, TL_ATTR_SCOPE, m->scope >= 0 ? m->scope : TL_SCOPE_DEVICE);
    bool result = op != TL_OP_ATOMIC_STORE;
    t = type_in_ir(s, a, t);
    TlOp *made = tl_op_new(&s->b, op, o.n, o.in, result, &t, 0, o.nattrs, o.attrs);
    return result ? from_ir(s, a, made->out[0]) : tl_val(TL_VAL_VOID);
}

/* ---- views ---- */

/* A tuple of integer scalars, or a single one, as i64; false if one is wrong or unknown. */
static bool numbers_of(TlSema *s, const TlVal *v, TlLoc loc, TlValues *out, TlVal *bad)
{
    const TlVal *items = v->kind == TL_VAL_TUPLE ? v->items : v;
    uint32_t n = v->kind == TL_VAL_TUPLE ? v->n : 1;
    for (uint32_t i = 0; i < n; i++) {
        TlVal x = items[i];
        if (tl_is_bad(&x)) {
            *bad = x;
            return false;
        }
        const TlType *t = tl_is_number(&x) && !tl_is_pointer(&x) ? tl_val_type_of(s, &x) : NULL;
        if (!t || t->rank || !tl_is_int(t->dtype)) {
            tl_err(s, loc, TL_E0503, tl_val_str(s, &x));
            *bad = tl_bad();
            return false;
        }
        if (x.kind == TL_VAL_CONST)
            x = tl_fold_cast(&x, TL_I64);
        if (tl_is_literal(&x))
            x = tl_convert_dtype(s, &x, TL_I64, loc);
        TlValue *ir = tl_materialize(s, &x, loc);
        if (!ir)
            return false;
        tl_vec_push(s->arena, out, tl_cast(&s->b, ir, TL_I64));
    }
    return true;
}

TlVal tl_make_view(TlSema *s, const TlVal *p, const TlVal *extents, const TlVal *strides,
                   const TlLoc *locs)
{
    TlValues e = {0}, st = {0}, in = {0};
    TlVal bad = tl_bad();
    if (tl_is_bad(p))
        return *p;
    if (!tl_is_pointer(p) || p->u.ir->type->rank) {
        tl_err(s, locs[0], TL_E0338, "view", "p", "a pointer", tl_val_str(s, p));
        return tl_bad();
    }
    if (!numbers_of(s, extents, locs[1], &e, &bad) || !numbers_of(s, strides, locs[2], &st, &bad))
        return bad;
    if (e.len != st.len || e.len > TL_MAX_VIEW_RANK) {
        tl_err(s, locs[2], TL_E0317, e.len, tl_format(s->arena, "%u", st.len));
        return tl_bad();
    }
    tl_vec_push(s->arena, &in, p->u.ir);
    for (uint32_t i = 0; i < e.len; i++)
        tl_vec_push(s->arena, &in, e.data[i]);
    for (uint32_t i = 0; i < e.len; i++)
        tl_vec_push(s->arena, &in, st.data[i]);
    const TlType *t =
        tl_type_view(s->ctx, p->u.ir->type->dtype, p->u.ir->type->is_const, (int)e.len);
    return tl_val_view(tl_emit(s, TL_OP_VIEW, in.len, in.data, t, 0, NULL));
}

TlVal tl_sub_view(TlSema *s, const TlVal *view, const TlVal *starts, const TlVal *extents,
                  const TlLoc *locs)
{
    TlValues a = {0}, e = {0}, in = {0};
    TlVal bad = tl_bad();
    if (tl_is_bad(view))
        return *view;
    if (view->kind != TL_VAL_VIEW) {
        tl_err(s, locs[0], TL_E0338, "sub", "A", "a view", tl_val_str(s, view));
        return tl_bad();
    }
    if (!numbers_of(s, starts, locs[1], &a, &bad) || !numbers_of(s, extents, locs[2], &e, &bad))
        return bad;
    const TlType *t = view->u.ir->type;
    if (a.len != t->rank || e.len != t->rank) {
        tl_err(s, a.len != t->rank ? locs[1] : locs[2], TL_E0502, (unsigned)t->rank,
               a.len != t->rank ? a.len : e.len);
        return tl_bad();
    }
    tl_vec_push(s->arena, &in, view->u.ir);
    for (uint32_t i = 0; i < a.len; i++)
        tl_vec_push(s->arena, &in, a.data[i]);
    for (uint32_t i = 0; i < e.len; i++)
        tl_vec_push(s->arena, &in, e.data[i]);
    return tl_val_view(tl_emit(s, TL_OP_SUB_VIEW, in.len, in.data, t, 0, NULL));
}

TlVal tl_view_extent(TlSema *s, TlValue *view, uint32_t axis, bool stride, bool wide)
{
    const TlType *t = tl_type_scalar(s->ctx, TL_I64);
    TlAttr at = {.id = TL_ATTR_AXIS, .u.i = axis};
    TlValue *v =
        tl_op_new(&s->b, stride ? TL_OP_STRIDE : TL_OP_EXTENT, 1, &view, 1, &t, 0, 1, &at)->out[0];
    return tl_val_ir(wide ? v : tl_cast(&s->b, v, TL_I32));
}
