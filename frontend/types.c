/* Types: as written to types of values, implicit conversions (literals, lossless widening),
 * broadcasting. */
#include "frontend/advice.h"
#include "frontend/sema.h"
#include <string.h>

/* ---- types as written ---- */

static TlTy pointer_or_scalar(TlSema *s, TlDtype d, const TlTypeExpr *t)
{
    if (t->pointer)
        return tl_ty_value(tl_type_ptr(s->ctx, d, t->is_const, 0, NULL));
    return tl_ty_value(tl_type_scalar(s->ctx, d));
}

/* A name used as a type: bound by `const type T` or a call, or a struct. */
static TlTy resolve_name(TlSema *s, const TlTypeExpr *t)
{
    const TlMod *m = s->frame->mod;
    if (t->module) {
        TlDef *import = tl_mod_find(m, t->module);
        m = import && import->item->kind == TL_IT_IMPORT ? import->import : NULL;
        if (!m) {
            if (!s->frame->mod->unit->incomplete)
                tl_err(s, t->loc, TL_E0201, t->module);
            return tl_ty_unknown(TL_DTYPE_COUNT);
        }
    }
    const TlVar *v = t->module ? NULL : tl_var_find(s, t->local, t->name);
    if (v)
        tl_fact_use(s, t->loc, v->loc, &v->val);
    if (v && v->val.kind == TL_VAL_TYPE) {
        const TlTy *ty = v->val.u.type;
        if (t->pointer && ty->kind == TL_TY_VALUE && tl_is_scalar(ty->type))
            return pointer_or_scalar(s, ty->type->dtype, t);
        return *ty;
    }
    if (v && tl_is_bad(&v->val))
        return tl_ty_unknown(TL_DTYPE_COUNT);
    TlDef *def = v ? NULL : tl_mod_find(m, t->name);
    if (def)
        tl_fact_def(s, t->loc, def);
    if (def && def->item->kind == TL_IT_STRUCT)
        return tl_struct_ty(s, def);
    if (!def && !v && m->unit->incomplete)
        return tl_ty_unknown(TL_DTYPE_COUNT);
    TlDiag *row = tl_err(s, t->loc, v || def ? TL_E0212 : TL_E0201, t->name);
    const char *advice = v || def ? NULL : tl_advice(t->name, strlen(t->name), 't');
    if (advice)
        tl_label(s, row, "%s", advice);
    return tl_ty_unknown(TL_DTYPE_COUNT);
}

/* The extents of tile<..., e0, e1>; false when one is wrong or not known yet. */
static bool resolve_extents(TlSema *s, const TlTypeExpr *t, int32_t *shape)
{
    bool ok = true;
    int64_t product = 1;
    if (t->extents.len > TL_MAX_RANK) {
        tl_err(s, t->extents.data[TL_MAX_RANK]->loc, TL_E0308, TL_MAX_RANK, (int)t->extents.len);
        return false;
    }
    for (uint32_t i = 0; i < t->extents.len; i++) {
        int64_t n = 0;
        bool unknown = false;
        const TlExpr *e = t->extents.data[i];
        if (!tl_eval_int(s, e, "an extent", &n, &unknown)) {
            ok = false;
            continue;
        }
        if (n < 1) {
            tl_err(s, e->loc, TL_E0306, (long long)n);
            ok = false;
            continue;
        }
        if (n > TL_MAX_ELEMS || product * n > TL_MAX_ELEMS) {
            tl_err(s, e->loc, TL_E0307, TL_MAX_ELEMS);
            return false;
        }
        product *= n;
        shape[i] = (int32_t)n;
    }
    return ok;
}

TlTy tl_type_resolve(TlSema *s, const TlTypeExpr *t)
{
    switch (t->kind) {
    case TL_TE_SCALAR: return pointer_or_scalar(s, t->dtype, t);
    case TL_TE_NAME: return resolve_name(s, t);
    case TL_TE_AUTO: return tl_ty_kind(TL_TY_AUTO);
    case TL_TE_VOID: return tl_ty_kind(TL_TY_VOID);
    case TL_TE_OTHER:
        tl_err(s, t->loc, TL_E0212, tl_source_text(s->ctx, t->expr->begin, t->expr->end));
        return tl_ty_unknown(TL_DTYPE_COUNT);
    case TL_TE_TILE: break;
    }
    TlTy elem = tl_type_resolve(s, t->elem);
    int32_t shape[TL_MAX_RANK] = {0};
    bool ok = resolve_extents(s, t, shape);
    if (elem.kind == TL_TY_UNKNOWN)
        return elem;
    if (elem.kind != TL_TY_VALUE || elem.type->rank || elem.type->ptr) {
        tl_err(s, t->elem->loc, TL_E0316, "tile<...>", tl_ty_str(s, &elem));
        return tl_ty_unknown(TL_DTYPE_COUNT);
    }
    if (!ok)
        return tl_ty_unknown(elem.type->dtype);
    return tl_ty_value(tl_type_tile(s->ctx, elem.type->dtype, (int)t->extents.len, shape));
}

/* ---- parts ---- */

uint32_t tl_parts_of(const TlVal *v)
{
    uint32_t parts = 1;
    if (v->kind == TL_VAL_TUPLE || v->kind == TL_VAL_STRUCT)
        for (uint32_t i = 0; i < v->n; i++)
            parts += tl_parts_of(&v->items[i]);
    return parts;
}

bool tl_parts_fit(TlSema *s, uint32_t parts, const char *what, TlLoc loc)
{
    if (parts <= TL_MAX_PARTS)
        return true;
    tl_err(s, loc, TL_E0705, what, TL_MAX_PARTS);
    return false;
}

/* The fields of a struct that is seen for the first time. */
static void resolve_fields(TlSema *s, TlDef *def, uint32_t n)
{
    TL_ASSERT(n <= def->item->fields.len, "%u of %u fields", n, def->item->fields.len);
    for (uint32_t i = 0; i < n; i++) {
        const TlFieldDecl *f = &def->item->fields.data[i];
        def->fields[i] = tl_ty_unknown(TL_DTYPE_COUNT);
        if (f->count)
            tl_err(s, f->loc, TL_E0346, f->name);
        else
            def->fields[i] = tl_type_resolve(s, f->type);
        def->parts += def->fields[i].kind == TL_TY_STRUCT ? def->fields[i].def->parts : 1;
        for (uint32_t j = 0; j < i; j++)
            if (def->item->fields.data[j].name == f->name)
                tl_err(s, f->loc, TL_E0206, f->name);
    }
}

TlTy tl_struct_ty(TlSema *s, TlDef *def)
{
    TL_ASSERT(def->item->kind == TL_IT_STRUCT, "item kind %d is no struct", (int)def->item->kind);
    TlTy ty = {
        .kind = TL_TY_STRUCT, .def = def, .dtype = TL_DTYPE_COUNT, .n = def->item->fields.len};
    if (def->state == TL_FRESH) {
        def->state = TL_BUSY;
        TlFrame top = {.mod = def->mod}, *frame = s->frame;
        s->frame = &top;
        def->fields = TL_NEW_ARRAY(s->arena, TlTy, ty.n ? ty.n : 1);
        def->parts = 1 + ty.n;
        if (def->parts <= TL_MAX_PARTS && s->nested_structs < TL_MAX_PARTS) {
            def->parts = 1;
            s->nested_structs++;
            resolve_fields(s, def, ty.n);
            s->nested_structs--;
        } else {
            def->parts = TL_MAX_PARTS + 1; /* too deeply nested: the whole would be too large */
        }
        tl_parts_fit(s, def->parts, tl_format(s->arena, "struct %s", def->item->name),
                     def->item->loc);
        s->frame = frame;
        def->state = TL_DONE;
    } else if (def->state == TL_BUSY) {
        tl_err(s, def->item->loc, TL_E0409, def->item->name);
        return tl_ty_unknown(TL_DTYPE_COUNT);
    }
    if (def->parts > TL_MAX_PARTS)
        return tl_ty_unknown(TL_DTYPE_COUNT);
    ty.items = def->fields;
    return ty;
}

/* ---- types of values ---- */

TlTy tl_ty_of(TlSema *s, const TlVal *v)
{
    switch (v->kind) {
    case TL_VAL_ERROR:
    case TL_VAL_UNKNOWN: return tl_ty_unknown(v->dtype);
    case TL_VAL_INT:
    case TL_VAL_FLOAT:
    case TL_VAL_CHOICE:
    case TL_VAL_CONST:
    case TL_VAL_IR: return tl_ty_value(tl_val_type_of(s, v));
    case TL_VAL_VIEW:
        return (TlTy){.kind = TL_TY_VIEW, .type = v->u.ir->type, .dtype = TL_DTYPE_COUNT};
    case TL_VAL_STRUCT:
        return (TlTy){.kind = TL_TY_STRUCT,
                      .def = v->def,
                      .n = v->n,
                      .items = v->def->fields,
                      .dtype = TL_DTYPE_COUNT};
    case TL_VAL_TUPLE: break;
    default: return tl_ty_kind(TL_TY_VOID);
    }
    TlTy *items = TL_NEW_ARRAY(s->arena, TlTy, v->n ? v->n : 1);
    for (uint32_t i = 0; i < v->n; i++)
        items[i] = tl_ty_of(s, &v->items[i]);
    return (TlTy){.kind = TL_TY_TUPLE, .n = v->n, .items = items, .dtype = TL_DTYPE_COUNT};
}

bool tl_ty_same(const TlTy *a, const TlTy *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    if (a->kind == TL_TY_STRUCT)
        return a->def == b->def;
    for (uint32_t i = 0; i < a->n; i++)
        if (!tl_ty_same(&a->items[i], &b->items[i]))
            return false;
    return a->kind == TL_TY_UNKNOWN || a->type == b->type;
}

const TlType *tl_val_type_of(TlSema *s, const TlVal *v)
{
    switch (v->kind) {
    case TL_VAL_INT:
    case TL_VAL_FLOAT: return tl_type_scalar(s->ctx, tl_literal_dtype(v));
    case TL_VAL_CHOICE:
        return tl_type_with_dtype(s->ctx, v->items[0].u.ir->type, tl_literal_dtype(v));
    case TL_VAL_CONST: return tl_type_scalar(s->ctx, v->dtype);
    case TL_VAL_IR: return v->u.ir->type;
    default: return NULL;
    }
}

TlDtype tl_val_dtype(const TlVal *v)
{
    switch (v->kind) {
    case TL_VAL_CONST:
    case TL_VAL_UNKNOWN: return v->dtype;
    case TL_VAL_IR: return v->u.ir->type->ptr ? TL_DTYPE_COUNT : v->u.ir->type->dtype;
    default: return TL_DTYPE_COUNT;
    }
}

bool tl_widens(TlDtype from, TlDtype to)
{
    if (from == to)
        return true;
    if (tl_is_packed(from) || tl_is_packed(to) || from == TL_BOOL || to == TL_BOOL)
        return false;
    if (tl_is_float(from) != tl_is_float(to))
        return false;
    if (tl_is_float(from)) /* each f8 lacks a least number, NaN or -0 */
        return !tl_is_f8(to) && tl_float_format(from)->fraction <= tl_float_format(to)->fraction &&
               tl_float_max_exponent(from) <= tl_float_max_exponent(to);
    if (tl_is_signed(from) && !tl_is_signed(to))
        return false;
    return tl_dtype_bits(from) < tl_dtype_bits(to);
}

bool tl_is_storage_only(TlDtype d)
{
    return tl_is_packed(d) || tl_is_small_float(d);
}

bool tl_common_dtype(TlDtype a, TlDtype b, TlDtype *out)
{
    *out = tl_widens(a, b) ? b : a;
    return tl_widens(a, b) || tl_widens(b, a);
}

TlDtype tl_bits_dtype(TlDtype d)
{
    TL_ASSERT((unsigned)d < TL_DTYPE_COUNT, "element type %d", (int)d);
    switch (tl_dtype_bits(d)) {
    case 16: return TL_U16;
    case 32: return TL_U32;
    case 64: return TL_U64;
    default: return TL_U8;
    }
}

/* ---- shapes ---- */

bool tl_broadcast_shape(const TlType *a, const TlType *b, int *rank, int32_t *shape)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < *rank; i++) {
        int ia = i - (*rank - a->rank), ib = i - (*rank - b->rank);
        int32_t x = ia < 0 ? 1 : a->shape[ia], y = ib < 0 ? 1 : b->shape[ib];
        if (x != y && x != 1 && y != 1)
            return false;
        shape[i] = x == 1 ? y : x;
    }
    return true;
}

bool tl_broadcasts_to(const TlType *from, int rank, const int32_t *shape)
{
    if (from->rank > rank)
        return false;
    for (int i = 0; i < from->rank; i++) {
        int32_t x = from->shape[i], y = shape[i + rank - from->rank];
        if (x != y && x != 1)
            return false;
    }
    return true;
}

TlValue *tl_broadcast_ir(TlSema *s, TlValue *v, int rank, const int32_t *shape)
{
    TL_ASSERT(rank >= v->type->rank && rank <= TL_MAX_RANK,
              "rank %d becomes %d", (int)v->type->rank, rank);
    if (v->def && v->def->opcode == TL_OP_CONST && !v->type->ptr && v->type->rank == 0 && rank > 0)
        return tl_const_bits(&s->b, tl_type_with_shape(s->ctx, v->type, rank, shape),
                             tl_attr(v->def, TL_ATTR_VALUE)->u.bits);
    return tl_broadcast(&s->b, v, rank, shape);
}

/* ---- values in IR ---- */

/* c ? a : b of literals as elements of type d */
static TlValue *choice_ir(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc)
{
    TL_ASSERT(v->kind == TL_VAL_CHOICE && v->n == 3,
              "a value of kind %d is no choice", (int)v->kind);
    TlValue *c = v->items[0].u.ir;
    const TlType *t = tl_type_with_dtype(s->ctx, c->type, d);
    TlValue *arms[2];
    for (int i = 0; i < 2; i++) {
        const TlVal *arm = &v->items[1 + i];
        uint64_t bits;
        if (arm->kind == TL_VAL_CHOICE) {
            arms[i] = choice_ir(s, arm, d, loc);
            if (!arms[i] || !tl_broadcasts_to(arms[i]->type, t->rank, t->shape))
                return NULL;
            arms[i] = tl_broadcast_ir(s, arms[i], t->rank, t->shape);
        } else {
            if (!tl_literal_bits(s, arm, d, v->u.locs ? v->u.locs[i] : loc, &bits))
                return NULL;
            arms[i] = tl_const_bits(&s->b, t, bits);
        }
    }
    return tl_select(&s->b, c, arms[0], arms[1]);
}

TlValue *tl_materialize(TlSema *s, const TlVal *v, TlLoc loc)
{
    uint64_t bits;
    switch (v->kind) {
    case TL_VAL_IR: return v->u.ir;
    case TL_VAL_CONST: return tl_const_bits(&s->b, tl_type_scalar(s->ctx, v->dtype), v->u.bits);
    case TL_VAL_INT:
    case TL_VAL_FLOAT:
        if (!tl_literal_bits(s, v, tl_literal_dtype(v), loc, &bits))
            return NULL;
        return tl_const_bits(&s->b, tl_type_scalar(s->ctx, tl_literal_dtype(v)), bits);
    case TL_VAL_CHOICE: return choice_ir(s, v, tl_literal_dtype(v), loc);
    case TL_VAL_ERROR:
    case TL_VAL_UNKNOWN: return NULL;
    default: tl_err(s, loc, TL_E0211, tl_val_str(s, v)); return NULL;
    }
}

static TlVal refuse(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc)
{
    TlDiag *row = tl_err(s, loc, TL_E0301, tl_val_str(s, v), tl_dtype_name(d));
    if (tl_is_number(v) && !tl_is_pointer(v))
        tl_label(s, row, "write a cast: (%s)", tl_dtype_name(d));
    return tl_bad();
}

TlVal tl_convert_dtype(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc)
{
    TL_ASSERT((unsigned)d < TL_DTYPE_COUNT, "element type %d", (int)d);
    uint64_t bits;
    switch (v->kind) {
    case TL_VAL_ERROR: return *v;
    case TL_VAL_UNKNOWN:
        return v->dtype == TL_DTYPE_COUNT || tl_widens(v->dtype, d) ? tl_unknown(d)
                                                                    : refuse(s, v, d, loc);
    case TL_VAL_INT:
    case TL_VAL_FLOAT:
        return tl_literal_bits(s, v, d, loc, &bits) ? tl_val_const(d, bits) : tl_bad();
    case TL_VAL_CHOICE: {
        TlValue *x = choice_ir(s, v, d, loc);
        return x ? tl_val_ir(x) : tl_bad();
    }
    case TL_VAL_CONST: return tl_widens(v->dtype, d) ? tl_fold_cast(v, d) : refuse(s, v, d, loc);
    case TL_VAL_IR:
        if (v->u.ir->type->ptr || !tl_widens(v->u.ir->type->dtype, d))
            return refuse(s, v, d, loc);
        return tl_val_ir(tl_cast(&s->b, v->u.ir, d));
    default: tl_err(s, loc, TL_E0211, tl_val_str(s, v)); return tl_bad();
    }
}

static TlVal convert_pointer(TlSema *s, const TlVal *v, const TlType *t, TlLoc loc)
{
    if (tl_is_bad(v))
        return *v;
    const TlType *from = tl_is_pointer(v) ? v->u.ir->type : NULL;
    if (from && from->dtype == t->dtype && (t->is_const || !from->is_const) &&
        tl_broadcasts_to(from, t->rank, t->shape))
        return tl_val_ir(tl_broadcast_ir(s, v->u.ir, t->rank, t->shape));
    tl_err(s, loc, TL_E0301, tl_val_str(s, v), tl_type_str(s->ctx, t));
    return tl_bad();
}

static TlVal refuse_shape(TlSema *s, const TlVal *v, const TlType *t, TlLoc loc)
{
    TlDiag *row = tl_err(s, loc, TL_E0304, tl_val_str(s, v), tl_type_str(s->ctx, t));
    if (t->rank == 0)
        tl_label(s, row, "this is a tile: keep it with auto, or reduce it: sum(x), max(x)");
    return tl_bad();
}

static TlVal convert_value(TlSema *s, const TlVal *v, const TlType *t, TlLoc loc)
{
    if (t->ptr)
        return convert_pointer(s, v, t, loc);
    if (tl_is_tile(v) && t->rank == 0)
        return refuse_shape(s, v, t, loc);
    TlVal x = tl_convert_dtype(s, v, t->dtype, loc);
    if (x.kind == TL_VAL_ERROR)
        return x;
    if (x.kind == TL_VAL_UNKNOWN)
        return tl_val_ir(tl_const_bits(&s->b, t, 0)); /* a placeholder of the right type */
    if (x.kind == TL_VAL_CONST)
        return t->rank ? tl_val_ir(tl_const_bits(&s->b, t, x.u.bits)) : x;
    if (!tl_broadcasts_to(x.u.ir->type, t->rank, t->shape))
        return refuse_shape(s, v, t, loc);
    return tl_val_ir(tl_broadcast_ir(s, x.u.ir, t->rank, t->shape));
}

static TlVal convert_items(TlSema *s, const TlVal *v, const TlTy *t, TlLoc loc)
{
    TlValKind want = t->kind == TL_TY_STRUCT ? TL_VAL_STRUCT : TL_VAL_TUPLE;
    if (v->kind != want || v->n != t->n || v->def != t->def) {
        if (!tl_is_bad(v))
            tl_err(s, loc, TL_E0301, tl_val_str(s, v), tl_ty_str(s, t));
        return tl_is_bad(v) ? *v : tl_bad();
    }
    TlVal out = *v;
    out.items = TL_NEW_ARRAY(s->arena, TlVal, v->n ? v->n : 1);
    for (uint32_t i = 0; i < v->n; i++)
        out.items[i] = tl_convert(s, &v->items[i], &t->items[i], loc);
    return out;
}

TlVal tl_convert(TlSema *s, const TlVal *v, const TlTy *t, TlLoc loc)
{
    switch (t->kind) {
    case TL_TY_VALUE: return convert_value(s, v, t->type, loc);
    case TL_TY_STRUCT:
    case TL_TY_TUPLE: return convert_items(s, v, t, loc);
    case TL_TY_UNKNOWN:
        if (t->dtype != TL_DTYPE_COUNT && tl_val_dtype(v) != TL_DTYPE_COUNT &&
            !tl_widens(tl_val_dtype(v), t->dtype))
            return refuse(s, v, t->dtype, loc);
        return v->kind == TL_VAL_ERROR ? *v : tl_unknown(t->dtype);
    case TL_TY_VIEW:
        if (v->kind == TL_VAL_VIEW && v->u.ir->type == t->type)
            return *v;
        if (!tl_is_bad(v))
            tl_err(s, loc, TL_E0301, tl_val_str(s, v), tl_ty_str(s, t));
        return tl_is_bad(v) ? *v : tl_bad();
    case TL_TY_AUTO: break;
    case TL_TY_VOID:
        if (v->kind == TL_VAL_VOID || tl_is_bad(v))
            return *v;
        tl_err(s, loc, TL_E0211, "a value of type void");
        return tl_bad();
    }
    if (tl_is_literal(v))
        return tl_convert_dtype(s, v, tl_literal_dtype(v), loc);
    if (v->kind == TL_VAL_CHOICE)
        return tl_convert_dtype(s, v, tl_literal_dtype(v), loc);
    if (v->kind == TL_VAL_TUPLE) {
        TlTy own = tl_ty_of(s, v);
        return convert_items(s, v, &own, loc);
    }
    TlVal out = *v;
    if (!tl_check_value(s, &out, loc))
        return tl_bad();
    return out;
}

TlValue *tl_convert_ir(TlSema *s, const TlVal *v, const TlType *t, TlLoc loc)
{
    TlTy ty = tl_ty_value(t);
    TlVal x = tl_convert(s, v, &ty, loc);
    return tl_is_bad(&x) ? NULL : tl_materialize(s, &x, loc);
}

TlVal tl_zero(TlSema *s, const TlTy *t)
{
    if (t->kind == TL_TY_VALUE && !t->type->ptr)
        return t->type->rank ? tl_val_ir(tl_const_bits(&s->b, t->type, 0))
                             : tl_val_const(t->type->dtype, 0);
    if (t->kind != TL_TY_STRUCT && t->kind != TL_TY_TUPLE)
        return tl_unknown(TL_DTYPE_COUNT);
    TlVal v = {.kind = t->kind == TL_TY_STRUCT ? TL_VAL_STRUCT : TL_VAL_TUPLE,
               .def = t->def,
               .n = t->n,
               .dtype = TL_DTYPE_COUNT};
    v.items = TL_NEW_ARRAY(s->arena, TlVal, t->n ? t->n : 1);
    for (uint32_t i = 0; i < t->n; i++)
        v.items[i] = tl_zero(s, &t->items[i]);
    return v;
}
