/* Types as written: scalars, tiles with their extents, names bound to types, structs. */
#include "frontend/advice.h"
#include "frontend/sema.h"
#include <string.h>

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
    else if (v) {
        tl_label(s, row, "an expression alone does nothing: return it, or assign it");
        s->dropping = s->frame->def;
    }
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
        if (!tl_extent_check(s, e->loc, e, n, product)) {
            ok = false;
            continue;
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

/* ---- structs ---- */

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
