/* Local arrays, `tile<f32, 16> V[4] = {x, y};`: values, as everything else. An array of few
 * elements has them as its items, so that one whose indices are known costs what as many variables
 * do; an index at run time selects among them. One of many elements has its elements' leaves,
 * scalars and tiles, stacked in tiles [count, numbers of the leaf], from which an index gathers
 * (tl_array_is_stacked).
 *
 * An index is a scalar, or a tile of the elements' shape: then each lane has its own. If the
 * elements are scalars, a tile of any shape takes one for each of its lanes. */
#include "frontend/sema.h"

/* ---- types ---- */

static int64_t numbers_of(const TlTy *t)
{
    int64_t n = 0;
    if (t->kind == TL_TY_VALUE)
        return tl_type_elems(t->type);
    for (uint32_t i = 0; i < t->n; i++)
        n += numbers_of(&t->items[i]);
    return n;
}

static bool may_be_element(const TlTy *t)
{
    if (t->kind != TL_TY_STRUCT)
        return t->kind == TL_TY_VALUE && !t->type->ptr;
    for (uint32_t i = 0; i < t->n; i++)
        if (!may_be_element(&t->items[i]))
            return false;
    return true;
}

static bool is_unknown(const TlTy *t)
{
    for (uint32_t i = 0; t->kind == TL_TY_STRUCT && i < t->n; i++)
        if (is_unknown(&t->items[i]))
            return true;
    return t->kind == TL_TY_UNKNOWN;
}

TlTy tl_array_ty(TlSema *s, const TlTy *elem, const TlExpr *count, TlLoc loc)
{
    int64_t n = 0;
    bool unknown = false, ok = tl_eval_int(s, count, "the number of elements", &n, &unknown);
    if (is_unknown(elem))
        return tl_ty_unknown(TL_DTYPE_COUNT);
    if (!may_be_element(elem)) {
        tl_err(s, loc, TL_E0391, tl_ty_str(s, elem));
        return tl_ty_unknown(TL_DTYPE_COUNT);
    }
    if (!ok)
        return tl_ty_unknown(TL_DTYPE_COUNT);
    if (n < 1 || n > TL_MAX_ARRAY || n * numbers_of(elem) > TL_MAX_ELEMS) {
        tl_err(s, count->loc, TL_E0392, TL_MAX_ARRAY, TL_MAX_ELEMS);
        return tl_ty_unknown(TL_DTYPE_COUNT);
    }
    TlTy *items = TL_NEW(s->arena, TlTy);
    *items = *elem;
    return (TlTy){.kind = TL_TY_ARRAY, .dtype = TL_DTYPE_COUNT, .n = (uint32_t)n, .items = items};
}

/* ---- leaves ---- */

typedef TlVal (*LeafFn)(TlSema *s, void *user, const TlType *t, const TlVal *a, const TlVal *b);

/* fn of the leaves of two elements, b may be NULL, as an element. */
static TlVal map(TlSema *s, const TlTy *t, const TlVal *a, const TlVal *b, LeafFn fn, void *user)
{
    if (t->kind != TL_TY_STRUCT)
        return fn(s, user, t->type, a, b);
    TlVal out = tl_val_items(s, TL_VAL_STRUCT, t->def, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        out.items[i] = map(s, &t->items[i], a ? &a->items[i] : NULL, b ? &b->items[i] : NULL, fn,
                           user);
    return out;
}

static TlValue *ir_of(TlSema *s, const TlVal *v, const TlType *t)
{
    TlValue *x = tl_is_bad(v) ? NULL : tl_materialize(s, v, s->b.loc);
    return x ? x : tl_const_bits(&s->b, t, 0);
}

/* ---- indices ---- */

/* As i32, or i64 where it has 64 bits: a narrower type may not hold the count. */
static TlValue *wide_index(TlSema *s, TlValue *i)
{
    int bits = tl_dtype_bits(i->type->dtype);
    return bits == 64 || i->type->dtype == TL_I32
               ? i
               : tl_cast(&s->b, i, i->type->dtype == TL_U32 ? TL_I64 : TL_I32);
}

/* With --check, the program reports an index that is outside. */
static void assert_inside(TlSema *s, TlValue *i, uint32_t count)
{
    TlValue *end = tl_const_int(&s->b, i->type, count), *zero = tl_const_bits(&s->b, i->type, 0);
    TlValue *ok = tl_binary(&s->b, TL_OP_AND, tl_binary(&s->b, TL_OP_GE, i, zero),
                            tl_binary(&s->b, TL_OP_LT, i, end));
    const char *text = tl_format(s->arena, "the index is outside of the array's 0 to %u",
                                 count - 1);
    TlAttr attr = {.id = TL_ATTR_TEXT, .u.s = tl_intern_name(s, text)};
    tl_op_new(&s->b, TL_OP_ASSERT, 1, &ok, 0, NULL, 0, 1, &attr);
}

static bool fits_leaves(const TlTy *t, const TlType *index)
{
    if (t->kind != TL_TY_STRUCT) {
        bool same = t->type->rank == index->rank;
        for (int d = 0; same && d < index->rank; d++)
            same = t->type->shape[d] == index->shape[d];
        return same;
    }
    for (uint32_t i = 0; i < t->n; i++)
        if (!fits_leaves(&t->items[i], index))
            return false;
    return true;
}

static bool is_scalar(const TlTy *t)
{
    return t->kind == TL_TY_VALUE && t->type->rank == 0;
}

static bool check_index(TlSema *s, const TlTy *array, const TlVal *i, TlLoc loc)
{
    bool is_number = tl_is_number(i) && !tl_is_pointer(i);
    const TlType *t = is_number ? tl_val_type_of(s, i) : NULL;
    if (!t || !tl_is_int(t->dtype) || tl_is_packed(t->dtype)) {
        tl_err(s, loc, TL_E0503, tl_val_str(s, i));
        return false;
    }
    if (t->rank && !is_scalar(array->items) && !fits_leaves(array->items, t)) {
        tl_err(s, loc, TL_E0393, tl_ty_str(s, array->items), tl_val_str(s, i));
        return false;
    }
    return true;
}

bool tl_array_index(TlSema *s, const TlVal *array, const TlExpr *e, TlArrayIndex *out)
{
    TL_ASSERT(array->kind == TL_VAL_ARRAY && e->kind == TL_EX_INDEX && e->indices.len,
              "a value of kind %d is no array", (int)array->kind);
    const TlTy *ty = array->u.type;
    const TlIndex *at = &e->indices.data[0];
    TlVal i = tl_eval_value(s, at->at);
    *out = (TlArrayIndex){.loc = e->loc};
    if (e->indices.len > 1 || at->width) {
        const TlExpr *more = at->width ? at->width : e->indices.data[1].at;
        tl_err(s, more->loc, TL_E0394, tl_ty_str(s, ty));
        return false;
    }
    if (tl_is_bad(&i) || !check_index(s, ty, &i, at->at->loc))
        return false;
    out->ir = tl_materialize(s, &i, at->at->loc);
    if (!out->ir)
        return false;
    uint64_t bits;
    bool is_known = out->ir->type->rank == 0 && tl_value_is_const(out->ir, &bits);
    int64_t n = is_known ? tl_bits_to_int(out->ir->type->dtype, bits) : 0;
    out->is_known = is_known && n >= 0 && n < ty->n;
    out->known = (uint32_t)n;
    if (out->is_known)
        return true;
    out->ir = wide_index(s, out->ir);
    if (s->options->check)
        assert_inside(s, out->ir, ty->n);
    return true;
}

TlArrayIndex tl_array_known(TlSema *s, const TlVal *array, uint32_t k, TlLoc loc)
{
    TL_ASSERT(k < array->u.type->n, "element %u of %u", k, array->u.type->n);
    TlArrayIndex i = {.is_known = true, .known = k, .loc = loc};
    if (tl_array_is_stacked(array->u.type))
        i.ir = tl_const_int(&s->b, tl_type_scalar(s->ctx, TL_I32), k);
    return i;
}

/* ---- items ---- */

/* bool: the index is k */
static TlValue *index_is(TlSema *s, const TlArrayIndex *i, uint32_t k)
{
    return tl_binary(&s->b, TL_OP_EQ, i->ir, tl_const_int(&s->b, i->ir->type, k));
}

/* cond ? a : b of leaves; a scalar leaf takes the condition's shape. */
static TlVal select_leaf(TlSema *s, void *cond, const TlType *t, const TlVal *a, const TlVal *b)
{
    TlValue *c = cond, *x = ir_of(s, a, t), *y = ir_of(s, b, t);
    const TlType *to = t->rank || !c->type->rank ? t : c->type;
    if (x == y && to == t)
        return *a;
    c = tl_broadcast_ir(s, c, to->rank, to->shape);
    x = tl_broadcast_ir(s, x, to->rank, to->shape);
    y = tl_broadcast_ir(s, y, to->rank, to->shape);
    return tl_val_ir(tl_select(&s->b, c, x, y));
}

static TlVal get_item(TlSema *s, const TlVal *array, const TlArrayIndex *i)
{
    const TlTy *elem = array->u.type->items;
    TlVal out = array->items[0];
    if (i->is_known)
        return array->items[i->known];
    if (i->ir->type->rank && is_scalar(elem)) {
        TlValue *x = ir_of(s, &out, elem->type);
        out = tl_val_ir(tl_broadcast_ir(s, x, i->ir->type->rank, i->ir->type->shape));
    }
    for (uint32_t k = 1; k < array->n; k++)
        out = map(s, elem, &array->items[k], &out, select_leaf, index_is(s, i, k));
    return out;
}

/* ---- stacks ---- */

/* Elements of 4 bits do not move between lanes: they are stacked as bytes. */
static TlValue *as_bytes(TlSema *s, TlValue *x)
{
    if (!tl_is_packed(x->type->dtype))
        return x;
    const TlType *t = tl_type_with_dtype(s->ctx, x->type, TL_U4);
    if (x->type != t)
        x = tl_emit(s, TL_OP_BITCAST, 1, &x, t, 0, NULL);
    return tl_cast(&s->b, x, TL_U8);
}

static TlValue *from_bytes(TlSema *s, TlValue *x, TlDtype d)
{
    if (!tl_is_packed(d))
        return x;
    x = tl_cast(&s->b, x, TL_U4);
    return d == TL_U4 ? x
                      : tl_emit(s, TL_OP_BITCAST, 1, &x, tl_type_with_dtype(s->ctx, x->type, d), 0,
                                NULL);
}

/* x as a row, [1, elements], of the stack's width. */
static TlValue *row_of(TlSema *s, TlValue *x, int32_t width)
{
    int32_t shape[2] = {1, (int32_t)tl_type_elems(x->type)};
    x = tl_emit_reshape(s, x, 2, shape);
    shape[1] = width;
    return tl_broadcast_ir(s, x, 2, shape);
}

typedef struct Stacks {
    const TlVal *array;
    const TlArrayIndex *index;
    uint32_t at; /* the next leaf */
    TlVal out;   /* put: the array with the element */
} Stacks;

static TlVal get_leaf(TlSema *s, void *user, const TlType *t, const TlVal *a, const TlVal *b)
{
    (void)a, (void)b;
    Stacks *st = user;
    TlValue *x = ir_of(s, &st->array->items[st->at++], t), *i = st->index->ir;
    if (t->rank == 0 && i->type->rank) { /* one of the scalars for each lane */
        int32_t n = x->type->shape[0], lanes = (int32_t)tl_type_elems(i->type);
        TlValue *flat = tl_emit_reshape(s, i, 1, &lanes);
        TlValue *y = tl_emit_gather(s, tl_emit_reshape(s, x, 1, &n), flat, 0);
        return tl_val_ir(
            from_bytes(s, tl_emit_reshape(s, y, i->type->rank, i->type->shape), t->dtype));
    }
    TlValue *y = tl_emit_gather(s, x, row_of(s, i, x->type->shape[1]), 0);
    return tl_val_ir(from_bytes(s, tl_emit_reshape(s, y, t->rank, t->shape), t->dtype));
}

static TlVal get_stacked(TlSema *s, const TlVal *array, const TlArrayIndex *i)
{
    Stacks st = {.array = array, .index = i};
    return map(s, array->u.type->items, NULL, NULL, get_leaf, &st);
}

/* For each of n elements, the last lane whose index is the element, -1 if there is none: i32
 * [n]. */
static TlValue *last_lane(TlSema *s, TlValue *index, uint32_t n)
{
    int32_t lanes = (int32_t)tl_type_elems(index->type), shape[2] = {(int32_t)n, lanes};
    TlValue *number = tl_emit_index(s, 2, shape, 0), *lane = tl_emit_index(s, 2, shape, 1);
    TlValue *at = tl_broadcast_ir(s, row_of(s, index, lanes), 2, shape);
    TlValue *is = tl_binary(&s->b, TL_OP_EQ, at, tl_cast(&s->b, number, at->type->dtype));
    TlValue *x = tl_select(&s->b, is, lane, tl_const_int(&s->b, lane->type, -1));
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = 1}, {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_MAX}};
    return tl_emit(s, TL_OP_REDUCE, 1, &x, tl_type_tile(s->ctx, TL_I32, 1, shape), 2, attrs);
}

/* The scalars `old`, [n], with those of the lanes of x that the index sends to them. */
static TlValue *scatter(TlSema *s, TlValue *old, TlValue *x, TlValue *index)
{
    int32_t lanes = (int32_t)tl_type_elems(index->type);
    TlValue *from = last_lane(s, index, (uint32_t)old->type->shape[0]);
    TlValue *none = tl_const_bits(&s->b, from->type, 0);
    TlValue *y = tl_emit_gather(s, tl_emit_reshape(s, x, 1, &lanes), from, 0);
    return tl_select(&s->b, tl_binary(&s->b, TL_OP_GE, from, none), y, old);
}

static TlVal put_leaf(TlSema *s, void *user, const TlType *t, const TlVal *a, const TlVal *b)
{
    (void)b;
    Stacks *st = user;
    TlVal *slot = &st->out.items[st->at++];
    TlValue *old = ir_of(s, slot, t), *i = st->index->ir, *x = as_bytes(s, ir_of(s, a, t));
    const TlType *to = old->type;
    if (t->rank == 0 && i->type->rank) {
        int32_t n = to->shape[0];
        TlValue *y = scatter(s, tl_emit_reshape(s, old, 1, &n),
                             tl_broadcast_ir(s, x, i->type->rank, i->type->shape), i);
        *slot = tl_val_ir(tl_emit_reshape(s, y, 2, to->shape));
        return *a;
    }
    TlValue *number = tl_cast(&s->b, tl_emit_index(s, 2, to->shape, 0), i->type->dtype);
    TlValue *at = tl_broadcast_ir(s, row_of(s, i, to->shape[1]), 2, to->shape);
    TlValue *is = tl_binary(&s->b, TL_OP_EQ, number, at);
    x = tl_broadcast_ir(s, row_of(s, x, to->shape[1]), 2, to->shape);
    *slot = tl_val_ir(tl_select(&s->b, is, x, old));
    return *a;
}

/* ---- values ---- */

TlVal tl_array_get(TlSema *s, const TlVal *array, const TlArrayIndex *i)
{
    return tl_array_is_stacked(array->u.type) ? get_stacked(s, array, i) : get_item(s, array, i);
}

/* Lanes' own scalars, by an index that is a tile. */
static TlVal scatter_items(TlSema *s, const TlVal *array, const TlArrayIndex *i, TlValue *x)
{
    const TlType *t = array->u.type->items->type;
    TlVal out = tl_val_copy(s, array);
    TlValue *from = last_lane(s, i->ir, array->n);
    int32_t lanes = (int32_t)tl_type_elems(i->ir->type), one = 1;
    x = tl_emit_reshape(s, as_bytes(s, x), 1, &lanes);
    for (uint32_t k = 0; k < array->n; k++) {
        TlValue *lane = tl_const_int(&s->b, tl_type_tile(s->ctx, TL_I32, 1, &one), k);
        lane = tl_emit_gather(s, from, lane, 0);
        TlValue *y = tl_emit_reshape(s, tl_emit_gather(s, x, lane, 0), 0, &one);
        TlValue *old = ir_of(s, &array->items[k], t);
        lane = tl_emit_reshape(s, lane, 0, &one);
        TlValue *is = tl_binary(&s->b, TL_OP_GE, lane, tl_const_bits(&s->b, lane->type, 0));
        out.items[k] = tl_val_ir(tl_select(&s->b, is, from_bytes(s, y, t->dtype), old));
    }
    return out;
}

TlVal tl_array_put(TlSema *s, const TlVal *array, const TlArrayIndex *i, const TlVal *elem)
{
    const TlTy *ty = array->u.type;
    if (tl_array_is_stacked(ty)) {
        Stacks st = {.array = array, .index = i, .out = tl_val_copy(s, array)};
        map(s, ty->items, elem, NULL, put_leaf, &st);
        return st.out;
    }
    if (!i->is_known && i->ir->type->rank && is_scalar(ty->items)) {
        TlValue *x = ir_of(s, elem, ty->items->type);
        return scatter_items(s, array, i,
                             tl_broadcast_ir(s, x, i->ir->type->rank, i->ir->type->shape));
    }
    TlVal out = tl_val_copy(s, array);
    if (i->is_known)
        out.items[i->known] = *elem;
    for (uint32_t k = 0; !i->is_known && k < array->n; k++)
        out.items[k] = map(s, ty->items, elem, &array->items[k], select_leaf, index_is(s, i, k));
    return out;
}

TlTy tl_array_place_ty(TlSema *s, const TlVal *array, const TlArrayIndex *i)
{
    const TlTy *elem = array->u.type->items;
    if (!is_scalar(elem) || i->is_known || !i->ir->type->rank)
        return *elem;
    return tl_ty_value(tl_type_with_dtype(s->ctx, i->ir->type, elem->type->dtype));
}

TlVal tl_array_fields(TlSema *s, const TlExpr *list, const TlTy *ty)
{
    TL_ASSERT(ty->kind == TL_TY_ARRAY, "a type of kind %d is no array", (int)ty->kind);
    TlVal v = tl_zero(s, ty);
    if (list->args.len > ty->n) {
        tl_err(s, list->args.data[ty->n].loc, TL_E0317, ty->n,
               tl_format(s->arena, "%u", list->args.len));
        return v;
    }
    for (uint32_t k = 0; k < list->args.len; k++) {
        const TlArg *a = &list->args.data[k];
        TlVal x = tl_eval_init(s, a->value, ty->items);
        if (a->name)
            tl_err(s, a->loc, TL_E0210, tl_ty_str(s, ty), a->name);
        if (tl_is_bad(&x))
            x = tl_zero(s, ty->items);
        TlArrayIndex i = tl_array_known(s, &v, k, a->loc);
        v = tl_array_put(s, &v, &i, &x);
    }
    return v;
}
