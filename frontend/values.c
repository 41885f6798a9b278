/* Values and their types: what they are called in messages, common types, broadcasting, implicit
 * conversions (literals, lossless widening), values as IR. */
#include "frontend/sema.h"
#include <string.h>

/* ---- for messages ---- */

TlVal tl_worse(const TlVal *a, const TlVal *b, TlDtype d)
{
    if (a->kind == TL_VAL_ERROR || b->kind == TL_VAL_ERROR)
        return tl_bad();
    return tl_unknown(d);
}

const char *tl_ty_str(TlSema *s, const TlTy *t)
{
    switch (t->kind) {
    case TL_TY_UNKNOWN:
        return t->dtype == TL_DTYPE_COUNT ? "a type not known yet" : tl_dtype_name(t->dtype);
    case TL_TY_VALUE: return tl_type_str(s->ctx, t->type);
    case TL_TY_VIEW: return "a view";
    case TL_TY_STRUCT: return tl_format(s->arena, "struct %s", t->def->item->name);
    case TL_TY_FN: return tl_val_str(s, t->fn);
    case TL_TY_VOID: return "void";
    case TL_TY_AUTO: return "auto";
    case TL_TY_ARRAY: return tl_format(s->arena, "%s[%u]", tl_ty_str(s, t->items), t->n);
    case TL_TY_TUPLE: break;
    }
    TlSbuf text;
    tl_sbuf_init(&text, s->arena);
    for (uint32_t i = 0; i < t->n; i++)
        tl_sbuf_putf(&text, "%s%s", i ? ", " : "(", tl_ty_str(s, &t->items[i]));
    tl_sbuf_puts(&text, ")");
    return text.text;
}

const char *tl_val_str(TlSema *s, const TlVal *v)
{
    switch (v->kind) {
    case TL_VAL_INT:
    case TL_VAL_FLOAT: return tl_format(s->arena, "the literal %s", tl_const_text(s, v));
    case TL_VAL_FN:
        return v->def->item->is_lambda
                   ? "a function"
                   : tl_format(s->arena, "the function '%s'", v->def->item->name);
    case TL_VAL_BUILTIN: return tl_format(s->arena, "the function '%s'", v->u.builtin->name);
    case TL_VAL_TYPE: return tl_format(s->arena, "the type %s", tl_ty_str(s, v->u.type));
    case TL_VAL_STRING: return "a text";
    case TL_VAL_MODULE: return "a module";
    case TL_VAL_SPACE: return tl_format(s->arena, "'%s'", v->u.string);
    case TL_VAL_VOID: return "the result of a void function";
    case TL_VAL_UNSET: return "nothing";
    case TL_VAL_ERROR:
    case TL_VAL_UNKNOWN:
    case TL_VAL_CHOICE:
    case TL_VAL_CONST:
    case TL_VAL_IR:
    case TL_VAL_VIEW:
    case TL_VAL_TUPLE:
    case TL_VAL_STRUCT:
    case TL_VAL_ARRAY: break;
    }
    TlTy t = tl_ty_of(s, v);
    return tl_ty_str(s, &t);
}

/* "fn(x)=>x*2": as one word, since it stands in lists of constants. */
static const char *lambda_text(TlSema *s, const TlItem *fn)
{
    const char *text = tl_source_text(s->ctx, fn->loc, fn->body->end);
    TlSbuf out;
    tl_sbuf_init(&out, s->arena);
    for (; *text; text++)
        if (*text != ' ')
            tl_sbuf_put(&out, text, 1);
    return out.text;
}

const char *tl_const_param_text(TlSema *s, const TlVal *v)
{
    if (v->kind == TL_VAL_TYPE)
        return tl_ty_str(s, v->u.type);
    if (v->kind == TL_VAL_FN)
        return v->def->item->is_lambda ? lambda_text(s, v->def->item) : v->def->item->name;
    if (v->kind == TL_VAL_BUILTIN)
        return v->u.builtin->name;
    return tl_const_text(s, v);
}

/* ---- of several ---- */

TlVal tl_val_items(TlSema *s, TlValKind kind, TlDef *def, uint32_t n)
{
    TlVal v = tl_val(kind);
    v.def = def;
    v.n = n;
    v.items = TL_NEW_ARRAY(s->arena, TlVal, n + 1);
    return v;
}

TlVal tl_val_copy(TlSema *s, const TlVal *v)
{
    TlVal out = *v;
    out.items = memcpy(TL_NEW_ARRAY(s->arena, TlVal, v->n + 1), v->items, sizeof(TlVal) * v->n);
    return out;
}

bool tl_same_val(const TlVal *a, const TlVal *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->def != b->def || a->n != b->n)
        return false;
    switch (a->kind) {
    case TL_VAL_UNKNOWN: return true;
    case TL_VAL_FN:
    case TL_VAL_BUILTIN: return tl_same_fn(a, b);
    case TL_VAL_INT: return a->u.integer == b->u.integer;
    case TL_VAL_CONST: return a->u.bits == b->u.bits;
    case TL_VAL_TYPE: return tl_ty_same(a->u.type, b->u.type);
    case TL_VAL_IR:
    case TL_VAL_VIEW: return a->u.ir == b->u.ir;
    case TL_VAL_TUPLE:
    case TL_VAL_STRUCT:
    case TL_VAL_ARRAY:
        for (uint32_t i = 0; i < a->n; i++)
            if (!tl_same_val(&a->items[i], &b->items[i]))
                return false;
        return true;
    case TL_VAL_ERROR:
    case TL_VAL_UNSET:
    case TL_VAL_VOID:
    case TL_VAL_FLOAT:
    case TL_VAL_CHOICE:
    case TL_VAL_STRING:
    case TL_VAL_MODULE:
    case TL_VAL_SPACE: break;
    }
    return false;
}

/* ---- checks ---- */

static void check_no_value(TlSema *s, const TlVal *v, TlLoc loc)
{
    const TlDef *def = s->frame ? s->frame->def : NULL;
    if (v->kind == TL_VAL_TYPE && def && def->item->broken)
        return; /* `(T)` before something that could not be read */
    TlDiag *row = tl_err(s, loc, TL_E0211, tl_val_str(s, v));
    if (v->kind == TL_VAL_STRING)
        tl_label(s, row, "a text is an argument by itself: assert(c, \"text\"), print(\"x\", x)");
    else if (v->kind == TL_VAL_ARRAY)
        tl_label(s, row, "an array has no arithmetic and is no tile: its elements are a[i]");
}

bool tl_check_value(TlSema *s, TlVal *v, TlLoc loc)
{
    switch (v->kind) {
    case TL_VAL_FN:
    case TL_VAL_BUILTIN:
    case TL_VAL_TYPE:
    case TL_VAL_STRING:
    case TL_VAL_MODULE:
    case TL_VAL_SPACE:
    case TL_VAL_VOID:
    case TL_VAL_UNSET:
        check_no_value(s, v, loc);
        *v = tl_bad();
        return false;
    case TL_VAL_ERROR:
    case TL_VAL_UNKNOWN:
    case TL_VAL_INT:
    case TL_VAL_FLOAT:
    case TL_VAL_CHOICE:
    case TL_VAL_CONST:
    case TL_VAL_IR:
    case TL_VAL_VIEW:
    case TL_VAL_TUPLE:
    case TL_VAL_STRUCT:
    case TL_VAL_ARRAY: break;
    }
    return true;
}

/* Why is the integer no constant? */
static void label_run_time(TlSema *s, TlDiag *row, const TlVal *v)
{
    const TlValue *x = v->kind == TL_VAL_IR ? v->u.ir : NULL;
    const TlOp *from = x && x->def && x->def->opcode == TL_OP_CAST ? tl_in(x->def, 0)->def : NULL;
    if (x && !x->def && x->name && x->block == s->b.fn->body)
        tl_label(s, row, "'%s' is known at the launch only: declare it const int %s", x->name,
                 x->name);
    else if (x && x->name && from && from->opcode == TL_OP_EXTENT)
        tl_label(s, row,
                 "'%s' is known at the launch only: take a constant B and require(%s <= B); what "
                 "is outside is masked",
                 x->name, x->name);
    else
        tl_label(s, row, "this is %s", tl_val_str(s, v));
}

/* Has the function around had the error for this name? All slices of a kernel have one width, which
 * is declared once, and wrong once. */
static bool is_known_width(TlSema *s, const TlValue *v, const char *what)
{
    bool named = v->name && (!v->def || v->def->opcode == TL_OP_CAST) && strstr(what, "width");
    const char *fault = named ? tl_format(s->arena, "%s: %s", what, v->name) : NULL;
    const TlDef *def = s->frame ? s->frame->def : NULL;
    for (uint32_t i = 0; named && i < s->prog->unknown_names.len; i++) {
        const TlUnknownName *row = &s->prog->unknown_names.data[i];
        if (row->def == def && strcmp(row->name, fault) == 0)
            return s->quiet_errors = true;
    }
    if (named)
        tl_vec_push(s->arena, &s->prog->unknown_names, (TlUnknownName){def, fault});
    return false;
}

bool tl_int_of(TlSema *s, const TlVal *v, TlLoc loc, const char *what, int64_t *out, bool *unknown)
{
    *unknown = tl_is_bad(v);
    if (tl_is_bad(v))
        return false;
    if (tl_const_int_of(v, out))
        return true;
    if (v->kind == TL_VAL_IR && is_known_width(s, v->u.ir, what))
        return false;
    if (v->kind == TL_VAL_INT || v->kind == TL_VAL_IR || v->kind == TL_VAL_CHOICE)
        label_run_time(s, tl_err(s, loc, TL_E0406, what), v);
    else {
        TlDiag *row = tl_err(s, loc, TL_E0338, what, "value", "an integer", tl_val_str(s, v));
        if (v->kind == TL_VAL_TUPLE)
            tl_label(s, row, "each number is an argument of its own: f(x, M, N), not f(x, (M, N))");
    }
    return false;
}

void tl_no_condition(TlSema *s, const TlVal *v, TlLoc loc)
{
    TlDiag *row = tl_err(s, loc, TL_E0305, tl_val_str(s, v));
    if (v->kind == TL_VAL_IR && v->u.ir->type->dtype == TL_BOOL)
        tl_label(s, row,
                 "it decides once for all elements, as any(c) and all(c) do: for each, "
                 "store(place, value, mask = c) or c ? a : b; what is outside of a view needs no "
                 "test");
    else if (v->kind == TL_VAL_IR && !v->u.ir->type->ptr)
        tl_label(s, row, "compare it, as in n != 0");
}

bool tl_is_constant(const TlVal *v)
{
    if (v->kind != TL_VAL_STRUCT)
        return v->kind != TL_VAL_IR && v->kind != TL_VAL_VIEW && v->kind != TL_VAL_CHOICE;
    for (uint32_t i = 0; i < v->n; i++)
        if (!tl_is_constant(&v->items[i]))
            return false;
    return true;
}

/* ---- parts ---- */

uint32_t tl_parts_of(const TlVal *v)
{
    uint32_t parts = 1;
    if (tl_has_items(v))
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

/* ---- types of values ---- */

/* A struct's fields that are auto have the types of what they hold. */
static TlTy ty_of_struct(TlSema *s, const TlVal *v)
{
    TlTy *items = TL_NEW_ARRAY(s->arena, TlTy, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++) {
        bool is_struct = v->def->fields[i].kind == TL_TY_STRUCT;
        items[i] = v->def->fields[i];
        if (items[i].kind == TL_TY_AUTO || (is_struct && v->items[i].kind == TL_VAL_STRUCT))
            items[i] = tl_ty_of(s, &v->items[i]);
    }
    return (TlTy){.kind = TL_TY_STRUCT,
                  .def = v->def,
                  .n = v->n,
                  .items = items,
                  .dtype = TL_DTYPE_COUNT};
}

static TlTy ty_of_fn(TlSema *s, const TlVal *v)
{
    TlVal *fn = TL_NEW(s->arena, TlVal);
    *fn = *v;
    return (TlTy){.kind = TL_TY_FN, .fn = fn, .dtype = TL_DTYPE_COUNT};
}

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
    case TL_VAL_STRUCT: return ty_of_struct(s, v);
    case TL_VAL_ARRAY: return *v->u.type;
    case TL_VAL_TUPLE: break;
    case TL_VAL_UNSET:
    case TL_VAL_VOID:
    case TL_VAL_TYPE:
    case TL_VAL_STRING:
    case TL_VAL_MODULE:
    case TL_VAL_SPACE: return tl_ty_kind(TL_TY_VOID);
    case TL_VAL_FN:
    case TL_VAL_BUILTIN: return ty_of_fn(s, v);
    }
    TlTy *items = TL_NEW_ARRAY(s->arena, TlTy, v->n ? v->n : 1);
    for (uint32_t i = 0; i < v->n; i++)
        items[i] = tl_ty_of(s, &v->items[i]);
    return (TlTy){.kind = TL_TY_TUPLE, .n = v->n, .items = items, .dtype = TL_DTYPE_COUNT};
}

TlTy tl_ty_settled(TlSema *s, const TlTy *ty, const TlVal *v)
{
    bool open = ty->kind == TL_TY_AUTO || (ty->kind == TL_TY_STRUCT && v->kind == TL_VAL_STRUCT);
    return open ? tl_ty_of(s, v) : *ty;
}

bool tl_ty_same(const TlTy *a, const TlTy *b)
{
    if (a->kind != b->kind || a->n != b->n || a->def != b->def)
        return false;
    if (a->kind == TL_TY_FN)
        return tl_same_fn(a->fn, b->fn);
    if (a->kind == TL_TY_ARRAY)
        return tl_ty_same(a->items, b->items);
    for (uint32_t i = 0; i < a->n; i++)
        if (!tl_ty_same(&a->items[i], &b->items[i]))
            return false;
    return a->kind == TL_TY_UNKNOWN || a->type == b->type;
}

const TlType *tl_val_type_of(TlSema *s, const TlVal *v)
{
    if (tl_is_literal(v))
        return tl_type_scalar(s->ctx, tl_literal_dtype(v));
    if (v->kind == TL_VAL_CHOICE)
        return tl_type_with_dtype(s->ctx, v->items[0].u.ir->type, tl_literal_dtype(v));
    if (v->kind == TL_VAL_CONST)
        return tl_type_scalar(s->ctx, v->dtype);
    return v->kind == TL_VAL_IR ? v->u.ir->type : NULL;
}

TlDtype tl_val_dtype(const TlVal *v)
{
    if (v->kind == TL_VAL_CONST || v->kind == TL_VAL_UNKNOWN)
        return v->dtype;
    return v->kind == TL_VAL_IR && !v->u.ir->type->ptr ? v->u.ir->type->dtype : TL_DTYPE_COUNT;
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
    if (v->kind == TL_VAL_IR)
        return v->u.ir;
    if (v->kind == TL_VAL_CONST)
        return tl_const_bits(&s->b, tl_type_scalar(s->ctx, v->dtype), v->u.bits);
    if (v->kind == TL_VAL_CHOICE)
        return choice_ir(s, v, tl_literal_dtype(v), loc);
    if (tl_is_literal(v))
        return tl_literal_bits(s, v, tl_literal_dtype(v), loc, &bits)
                   ? tl_const_bits(&s->b, tl_type_scalar(s->ctx, tl_literal_dtype(v)), bits)
                   : NULL;
    if (!tl_is_bad(v))
        check_no_value(s, v, loc);
    return NULL;
}

/* The expression that was evaluated last, when it stands at the position; or NULL. */
static const TlExpr *evaluated_at(const TlSema *s, TlLoc loc)
{
    const TlExpr *e = s->evaluated;
    bool same = e && e->loc.file == loc.file && e->loc.line == loc.line && e->loc.col == loc.col;
    return same ? e : NULL;
}

const char *tl_short_text(TlSema *s, const TlExpr *e, const char *other)
{
    enum { MOST_TEXT = 48 };
    const char *text = e ? tl_source_text(s->ctx, e->begin, e->end) : NULL;
    return text && strlen(text) <= MOST_TEXT && !strchr(text, '\n') ? text : other;
}

const char *tl_cast_text(TlSema *s, const TlExpr *e, TlDtype d)
{
    const char *text = tl_short_text(s, e, NULL);
    if (!text)
        return tl_format(s->arena, "(%s)%s", tl_dtype_name(d), e ? "(...)" : "x");
    bool loose = (e->kind == TL_EX_BINARY || e->kind == TL_EX_COND) && !e->parens;
    return tl_format(s->arena, loose ? "(%s)(%s)" : "(%s)%s", tl_dtype_name(d), text);
}

static TlVal refuse(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc)
{
    TlDiag *row = tl_err(s, loc, TL_E0301, tl_val_str(s, v), tl_dtype_name(d));
    const TlExpr *e = evaluated_at(s, loc);
    if (tl_is_number(v) && !tl_is_pointer(v))
        tl_label(s, row, e ? "write a cast: %s" : "cast it: %s", tl_cast_text(s, e, d));
    return tl_bad();
}

TlVal tl_convert_dtype(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc)
{
    TL_ASSERT((unsigned)d < TL_DTYPE_COUNT, "element type %d", (int)d);
    uint64_t bits;
    if (tl_is_known_int(v) && tl_is_float(d))
        return tl_known_as_float(s, v, d, loc);
    if (v->kind == TL_VAL_ERROR)
        return *v;
    if (v->kind == TL_VAL_UNKNOWN)
        return v->dtype == TL_DTYPE_COUNT || tl_widens(v->dtype, d) ? tl_unknown(d)
                                                                    : refuse(s, v, d, loc);
    if (tl_is_literal(v))
        return tl_literal_bits(s, v, d, loc, &bits) ? tl_val_const(d, bits) : tl_bad();
    if (v->kind == TL_VAL_CHOICE) {
        TlValue *x = choice_ir(s, v, d, loc);
        return x ? tl_val_ir(x) : tl_bad();
    }
    if (v->kind == TL_VAL_CONST)
        return tl_widens(v->dtype, d) ? tl_fold_cast(v, d) : refuse(s, v, d, loc);
    if (v->kind == TL_VAL_IR)
        return v->u.ir->type->ptr || !tl_widens(v->u.ir->type->dtype, d)
                   ? refuse(s, v, d, loc)
                   : tl_val_ir(tl_cast(&s->b, v->u.ir, d));
    check_no_value(s, v, loc);
    return tl_bad();
}

static TlVal convert_pointer(TlSema *s, const TlVal *v, const TlType *t, TlLoc loc)
{
    if (tl_is_bad(v))
        return *v;
    const TlType *from = tl_is_pointer(v) ? v->u.ir->type : NULL;
    if (from && from->dtype == t->dtype && (t->is_const || !from->is_const) &&
        tl_broadcasts_to(from, t->rank, t->shape))
        return tl_val_ir(tl_broadcast_ir(s, v->u.ir, t->rank, t->shape));
    TlDiag *row = tl_err(s, loc, TL_E0301, tl_val_str(s, v), tl_type_str(s->ctx, t));
    if (v->kind == TL_VAL_VIEW)
        tl_label(s, row, "write raw(%s) for the pointer of a view",
                 tl_short_text(s, evaluated_at(s, loc), "..."));
    return tl_bad();
}

static TlVal refuse_shape(TlSema *s, const TlVal *v, const TlType *t, TlLoc loc)
{
    TlDiag *row = tl_err(s, loc, TL_E0304, tl_val_str(s, v), tl_type_str(s->ctx, t));
    if (t->rank == 0)
        tl_label(s, row, "this is a tile: keep it with auto, or reduce it: sum(x), max(x)");
    const TlType *from = v->kind == TL_VAL_IR ? v->u.ir->type : t;
    if (t->rank == 2 && from->rank == 2 && t->shape[0] == from->shape[1] &&
        t->shape[1] == from->shape[0])
        tl_label(s, row, "the place is %d by %d, the value %d by %d: trans(x) swaps the axes",
                 t->shape[0], t->shape[1], from->shape[0], from->shape[1]);
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
    TlVal out = tl_val_copy(s, v);
    s->evaluated = NULL; /* the expression is no item's */
    for (uint32_t i = 0; i < v->n; i++)
        if (!tl_is_fn(&v->items[i]) || t->items[i].kind != TL_TY_AUTO)
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
            !tl_widens(tl_val_dtype(v), t->dtype) &&
            !(tl_is_known_int(v) && tl_is_float(t->dtype)))
            return refuse(s, v, t->dtype, loc);
        return v->kind == TL_VAL_ERROR ? *v : tl_unknown(t->dtype);
    case TL_TY_VIEW:
    case TL_TY_FN:
    case TL_TY_ARRAY: {
        TlTy own = tl_ty_of(s, v);
        if (tl_ty_same(&own, t))
            return *v;
        bool views = own.kind == TL_TY_VIEW && t->kind == TL_TY_VIEW;
        TlDiag *row = NULL;
        if (!tl_is_bad(v))
            row = tl_err(s, loc, TL_E0301, views ? tl_type_str(s->ctx, own.type) : tl_val_str(s, v),
                         views ? tl_type_str(s->ctx, t->type) : tl_ty_str(s, t));
        if (row && t->kind == TL_TY_ARRAY && own.kind == TL_TY_VALUE)
            tl_label(s, row, "%s is an array of variables; the type of this value is %s",
                     tl_ty_str(s, t), tl_ty_str(s, &own));
        return tl_is_bad(v) ? *v : tl_bad();
    }
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

/* ---- arrays ---- */

enum { MOST_ITEMS = 32, MOST_ITEM_PARTS = 256 };

static uint32_t leaves_of(const TlTy *t)
{
    uint32_t n = 0;
    if (t->kind != TL_TY_STRUCT)
        return 1;
    for (uint32_t i = 0; i < t->n; i++)
        n += leaves_of(&t->items[i]);
    return n;
}

bool tl_array_is_stacked(const TlTy *array)
{
    TL_ASSERT(array->kind == TL_TY_ARRAY, "a type of kind %d is no array", (int)array->kind);
    return array->n > MOST_ITEMS || array->n * leaves_of(array->items) > MOST_ITEM_PARTS;
}

/* Elements of 4 bits do not move between lanes: they are stacked as bytes. */
static TlVal zero_stack(TlSema *s, const TlType *t, uint32_t count)
{
    int32_t shape[2] = {(int32_t)count, (int32_t)tl_type_elems(t)};
    t = tl_type_tile(s->ctx, tl_is_packed(t->dtype) ? TL_U8 : t->dtype, 2, shape);
    return tl_val_ir(tl_const_bits(&s->b, t, 0));
}

static void zero_stacks(TlSema *s, const TlTy *t, TlVal *array)
{
    if (t->kind != TL_TY_STRUCT)
        array->items[array->n++] = zero_stack(s, t->type, array->u.type->n);
    for (uint32_t i = 0; t->kind == TL_TY_STRUCT && i < t->n; i++)
        zero_stacks(s, &t->items[i], array);
}

static TlVal zero_array(TlSema *s, const TlTy *t)
{
    bool stacked = tl_array_is_stacked(t);
    TlVal v = tl_val_items(s, TL_VAL_ARRAY, NULL, stacked ? leaves_of(t->items) : t->n);
    TlTy *own = TL_NEW(s->arena, TlTy);
    *own = *t;
    v.u.type = own;
    for (uint32_t i = 0; !stacked && i < v.n; i++)
        v.items[i] = tl_zero(s, t->items);
    if (stacked) {
        v.n = 0;
        zero_stacks(s, t->items, &v);
    }
    return v;
}

TlVal tl_zero(TlSema *s, const TlTy *t)
{
    if (t->kind == TL_TY_VALUE && !t->type->ptr)
        return t->type->rank ? tl_val_ir(tl_const_bits(&s->b, t->type, 0))
                             : tl_val_const(t->type->dtype, 0);
    if (t->kind == TL_TY_ARRAY)
        return zero_array(s, t);
    if (t->kind == TL_TY_FN)
        return *t->fn;
    if (t->kind != TL_TY_STRUCT && t->kind != TL_TY_TUPLE)
        return tl_unknown(TL_DTYPE_COUNT);
    TlVal v =
        tl_val_items(s, t->kind == TL_TY_STRUCT ? TL_VAL_STRUCT : TL_VAL_TUPLE, t->def, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        v.items[i] = tl_zero(s, &t->items[i]);
    return v;
}
