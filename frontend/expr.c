/* Expressions: names, operators, casts, selection. Calls are in call.c, indexing in access.c.
 *
 * Values stay as far from IR as they can: literals have no type until another operand gives one,
 * constants are folded, and only what the program computes at run time becomes an op. Left
 * operands are walked by a loop, so that sums of thousands of terms do not deepen the C stack. */
#include "frontend/advice.h"
#include "frontend/sema.h"
#include <math.h>
#include <string.h>

static const char *const binop_texts[] = {"*",  "/",  "%",  "+",  "-", "<<", ">>", "<",  ">",
                                          "<=", ">=", "==", "!=", "&", "^",  "|",  "&&", "||"};
_Static_assert(sizeof binop_texts / sizeof *binop_texts == TL_BIN_LOR + 1,
               "a text for each operator");
static const TlOpcode binop_ops[] = {TL_OP_MUL, TL_OP_DIV, TL_OP_REM, TL_OP_ADD, TL_OP_SUB,
                                     TL_OP_SHL, TL_OP_SHR, TL_OP_LT,  TL_OP_GT,  TL_OP_LE,
                                     TL_OP_GE,  TL_OP_EQ,  TL_OP_NE,  TL_OP_AND, TL_OP_XOR,
                                     TL_OP_OR,  TL_OP_AND, TL_OP_OR};

const char *tl_binop_text(int op)
{
    return binop_texts[op];
}

/* ---- checks ---- */

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
        tl_err(s, loc, TL_E0211, tl_val_str(s, v));
        *v = tl_bad();
        return false;
    default: return true;
    }
}

TlVal tl_eval_value(TlSema *s, const TlExpr *e)
{
    TlVal v = tl_eval(s, e);
    tl_check_value(s, &v, e->loc);
    return v;
}

bool tl_int_of(TlSema *s, const TlVal *v, TlLoc loc, const char *what, int64_t *out, bool *unknown)
{
    *unknown = tl_is_bad(v);
    if (tl_is_bad(v))
        return false;
    if (tl_const_int_of(v, out))
        return true;
    if (v->kind == TL_VAL_INT || v->kind == TL_VAL_IR || v->kind == TL_VAL_CHOICE)
        tl_label(s, tl_err(s, loc, TL_E0406, what), "this is %s", tl_val_str(s, v));
    else
        tl_err(s, loc, TL_E0338, what, "value", "an integer", tl_val_str(s, v));
    return false;
}

bool tl_eval_int(TlSema *s, const TlExpr *e, const char *what, int64_t *out, bool *unknown)
{
    TlVal v = tl_eval_value(s, e);
    return tl_int_of(s, &v, e->loc, what, out, unknown);
}

static void no_condition(TlSema *s, const TlVal *v, TlLoc loc)
{
    TlDiag *row = tl_err(s, loc, TL_E0305, tl_val_str(s, v));
    if (v->kind == TL_VAL_IR && v->u.ir->type->dtype == TL_BOOL)
        tl_label(s, row, "any(...) or all(...) of it is a scalar");
    else if (v->kind == TL_VAL_IR && !v->u.ir->type->ptr)
        tl_label(s, row, "compare it, as in n != 0");
}

TlValue *tl_eval_cond(TlSema *s, const TlExpr *e, TlVal *out)
{
    TlVal v = tl_eval_value(s, e);
    *out = v;
    if (tl_is_bad(&v))
        return NULL;
    if (v.kind == TL_VAL_CONST && v.dtype == TL_BOOL)
        return NULL;
    if (v.kind == TL_VAL_IR && v.u.ir->type->dtype == TL_BOOL && tl_is_scalar(v.u.ir->type) &&
        !v.u.ir->type->ptr)
        return v.u.ir;
    no_condition(s, &v, e->loc);
    *out = tl_bad();
    return NULL;
}

/* ---- names ---- */

static TlVal target_fact(TlSema *s, TlName name, TlLoc loc)
{
    TL_ASSERT(name, "a fact without a name");
    const char *text = !strcmp(name, "kind")   ? s->options->target_kind
                       : !strcmp(name, "arch") ? s->options->target_arch
                                               : NULL;
    if (text)
        return (TlVal){.kind = TL_VAL_STRING, .dtype = TL_DTYPE_COUNT, .u.string = text};
    if (strcmp(name, "kind") && strcmp(name, "arch"))
        tl_err(s, loc, TL_E0203, "target", name);
    return tl_unknown(TL_DTYPE_COUNT);
}

static TlVal const_value(TlSema *s, TlDef *def, TlLoc loc)
{
    if (def->state == TL_BUSY) {
        tl_err(s, loc, TL_E0409, def->item->name);
        return tl_bad();
    }
    if (def->state == TL_DONE)
        return def->value;
    def->state = TL_BUSY;
    TlFrame top = {.mod = def->mod}, *frame = s->frame;
    TlWorld world = tl_world_enter(s);
    s->frame = &top;
    TlVal v = def->item->value ? tl_eval_value(s, def->item->value)
                               : tl_bad(); /* none after a syntax error */
    if (!tl_is_bad(&v)) {
        TlTy ty = def->item->type ? tl_type_resolve(s, def->item->type) : tl_ty_kind(TL_TY_AUTO);
        v = tl_convert(s, &v, &ty, def->item->value->loc);
        if (v.kind != TL_VAL_CONST && !tl_is_bad(&v)) {
            tl_err(s, def->item->value->loc, TL_E0406,
                   tl_format(s->arena, "the value of '%s'", def->item->name));
            v = tl_bad();
        }
    }
    tl_world_leave(s, world);
    s->frame = frame;
    def->value = v;
    def->state = TL_DONE;
    return v;
}

static TlVal def_value(TlSema *s, TlDef *def, TlLoc loc)
{
    switch (def->item->kind) {
    case TL_IT_CONST: return const_value(s, def, loc);
    case TL_IT_FUNCTION: return (TlVal){.kind = TL_VAL_FN, .def = def, .dtype = TL_DTYPE_COUNT};
    case TL_IT_STRUCT: {
        TlTy *ty = TL_NEW(s->arena, TlTy);
        *ty = tl_struct_ty(s, def);
        return tl_val_type(ty);
    }
    case TL_IT_IMPORT: {
        TlMod *m = def->import;
        return m ? (TlVal){.kind = TL_VAL_MODULE, .dtype = TL_DTYPE_COUNT, .u.module = m}
                 : tl_bad();
    }
    case TL_IT_KERNEL:
        tl_err(s, loc, TL_E0211, tl_format(s->arena, "the kernel '%s'", def->item->name));
        return tl_bad();
    case TL_IT_ASSERT: break;
    }
    return tl_bad();
}

/* Reports an undeclared name; member: the name after its dot, or NULL. */
static TlVal unknown_name(TlSema *s, const TlExpr *e, TlName member)
{
    TlName name = e->u.name;
    if (s->frame->mod->unit->incomplete || (s->frame->def && s->frame->def->item->broken))
        return tl_bad();
    TlDiag *row = tl_err(s, e->loc, TL_E0201, name);
    bool few = s->ctx->diags.errors < 10 * TL_DIAG_MAX; /* the search is long */
    if (!row || !few)
        return tl_bad();
    const char *full = member ? tl_format(s->arena, "%s.%s", name, member) : name;
    const char *advice = tl_advice(full, strlen(full), 'n');
    if (!advice && member && tl_advice(name, strlen(name), 'n')) {
        advice = tl_advice(member, strlen(member), 'n');
        if (!advice && tl_builtin_find(member))
            advice = tl_format(s->arena, "write %s(...): functions have no prefix here", member);
        if (!advice)
            advice = tl_advice_of_library(s->arena, member);
    }
    if (!advice)
        advice = tl_advice(name, strlen(name), 'n');
    if (!advice)
        advice = tl_advice_of_library(s->arena, name);
    const char *near = advice ? NULL : tl_near_name(s, name);
    if (advice)
        row->label = advice;
    if (near) {
        tl_label(s, row, "did you mean '%s'?", near);
        row->fixit = near;
    }
    return tl_bad();
}

static TlVal eval_name(TlSema *s, const TlExpr *e, TlName member)
{
    TL_ASSERT(e->kind == TL_EX_NAME && e->u.name, "expression kind %d is no name", (int)e->kind);
    TlName name = e->u.name;
    const TlVar *v = tl_var_find(s, name);
    if (v)
        return v->val.kind == TL_VAL_UNSET ? tl_unknown(TL_DTYPE_COUNT) : v->val;
    TlDef *def = tl_mod_find(s->frame->mod, name);
    if (def)
        return def_value(s, def, e->loc);
    const TlBuiltin *b = tl_builtin_find(name);
    if (b)
        return (TlVal){.kind = TL_VAL_BUILTIN, .dtype = TL_DTYPE_COUNT, .u.builtin = b};
    if (!strcmp(name, "fast") || !strcmp(name, "target") || !strcmp(name, "device"))
        return (TlVal){.kind = TL_VAL_SPACE, .dtype = TL_DTYPE_COUNT, .u.string = name};
    return unknown_name(s, e, member);
}

static TlVal member_of(TlSema *s, const TlVal *v, TlName name, TlLoc loc)
{
    if (v->kind == TL_VAL_MODULE) {
        const TlMod *m = v->u.module;
        TlDef *def = tl_mod_find(m, name);
        if (def && def->item->kind != TL_IT_IMPORT)
            return def_value(s, def, loc);
        if (!m->unit->incomplete)
            tl_err(s, loc, TL_E0203, m->path, name);
        return tl_bad();
    }
    if (v->kind == TL_VAL_SPACE) {
        if (!strcmp(v->u.string, "target"))
            return target_fact(s, name, loc);
        const TlBuiltin *b = !strcmp(v->u.string, "fast") ? tl_builtin_find(name) : NULL;
        if (b)
            return (TlVal){
                .kind = TL_VAL_BUILTIN, .dtype = TL_DTYPE_COUNT, .fast = true, .u.builtin = b};
        tl_err(s, loc, TL_E0203, v->u.string, name);
        return tl_bad();
    }
    if (v->kind == TL_VAL_STRUCT) {
        const TlItem *item = v->def->item;
        for (uint32_t i = 0; i < v->n; i++)
            if (item->fields.data[i].name == name)
                return v->items[i];
    }
    if (tl_is_bad(v))
        return *v;
    TlDiag *row = tl_err(s, loc, TL_E0210, tl_val_str(s, v), name);
    const char *advice = tl_advice(name, strlen(name), 'm');
    if (advice)
        tl_label(s, row, "%s", advice);
    return tl_bad();
}

/* ---- operators on values ---- */

/* The common type of d and an unknown type, if it is certain: the unknown one may be wider. */
static TlDtype beside_unknown(TlDtype d)
{
    for (int wide = 0; wide < TL_DTYPE_COUNT && d != TL_DTYPE_COUNT; wide++)
        if (wide != (int)d && tl_widens(d, (TlDtype)wide))
            return TL_DTYPE_COUNT;
    return d;
}

/* In `0.5 * i` it is i that should be cast: as an integer, the literal would be 0. */
static bool is_float_for_int(TlSema *s, const TlVal *literal, TlDtype other, TlLoc loc)
{
    if (literal->kind != TL_VAL_FLOAT || other == TL_DTYPE_COUNT || !tl_is_int(other))
        return false;
    tl_label(s, tl_err(s, loc, TL_E0402, tl_const_text(s, literal), tl_dtype_name(other)),
             "cast the integers instead: (f32)x");
    return true;
}

bool tl_unify(TlSema *s, uint32_t n, TlVal *vals, const TlLoc *locs, TlLoc loc, const char *what,
              TlValue **out, TlVal *bad)
{
    TL_ASSERT(n > 0 && vals && locs && out, "%u values to unify", n);
    TlDtype d = TL_DTYPE_COUNT, all = TL_DTYPE_COUNT;
    uint32_t first = 0;
    bool open = false;
    *bad = tl_val(TL_VAL_VOID);
    for (uint32_t i = 0; i < n; i++) {
        if (!tl_check_value(s, &vals[i], locs[i]))
            *bad = tl_bad();
        if (vals[i].kind == TL_VAL_TUPLE || vals[i].kind == TL_VAL_STRUCT ||
            vals[i].kind == TL_VAL_VIEW || tl_is_pointer(&vals[i])) {
            TlDiag *row = tl_err(s, loc, TL_E0316, what, tl_val_str(s, &vals[i]));
            tl_label_view(s, row, &vals[i]);
            *bad = tl_bad();
            return false;
        }
        if (tl_is_bad(&vals[i]) && bad->kind != TL_VAL_ERROR)
            *bad = vals[i];
        TlDtype own = tl_val_dtype(&vals[i]);
        if (own == TL_DTYPE_COUNT) {
            open = open || vals[i].kind == TL_VAL_UNKNOWN;
            continue;
        }
        TlDtype common = own;
        if (d != TL_DTYPE_COUNT && !tl_common_dtype(d, own, &common)) {
            tl_label(s,
                     tl_err(s, loc, TL_E0302, what, tl_val_str(s, &vals[first]),
                            tl_val_str(s, &vals[i])),
                     "cast one of them");
            *bad = tl_bad();
            return false;
        }
        if (common != d)
            first = i;
        d = common;
    }
    if (tl_is_bad(bad)) {
        if (bad->kind == TL_VAL_UNKNOWN)
            bad->dtype = open ? beside_unknown(d) : d;
        return false;
    }
    if (d == TL_DTYPE_COUNT) /* untyped ones only */
        for (uint32_t i = 0; i < n; i++) {
            all = tl_literal_dtype(&vals[i]);
            if (d == TL_DTYPE_COUNT || all == TL_F32 ||
                (d != TL_F32 && tl_dtype_bits(all) > tl_dtype_bits(d)))
                d = all;
        }
    int rank = 0;
    int32_t shape[TL_MAX_RANK] = {0};
    const TlType *so_far = tl_type_scalar(s->ctx, d);
    for (uint32_t i = 0; i < n; i++) {
        const TlVal before = vals[i];
        if (is_float_for_int(s, &before, d, locs[i])) {
            *bad = tl_bad();
            return false;
        }
        vals[i] = tl_convert_dtype(s, &before, d, locs[i]);
        const TlType *t = tl_is_bad(&vals[i]) ? NULL : tl_val_type_of(s, &vals[i]);
        if (!t) {
            *bad = tl_bad();
            return false;
        }
        if (!tl_broadcast_shape(so_far, t, &rank, shape)) {
            tl_err(s, loc, TL_E0303, what, tl_type_str(s->ctx, so_far), tl_type_str(s->ctx, t));
            *bad = tl_bad();
            return false;
        }
        so_far = tl_type_tile(s->ctx, d, rank, shape);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (vals[i].kind == TL_VAL_CONST)
            out[i] = tl_const_bits(&s->b, so_far, vals[i].u.bits);
        else
            out[i] = tl_broadcast_ir(s, tl_materialize(s, &vals[i], locs[i]), so_far->rank,
                                     so_far->shape);
    }
    return true;
}

static bool is_compare(int op)
{
    return op >= TL_BIN_LT && op <= TL_BIN_NE;
}
static bool is_bitwise(int op)
{
    return op == TL_BIN_AND || op == TL_BIN_OR || op == TL_BIN_XOR;
}
static bool is_shift(int op)
{
    return op == TL_BIN_SHL || op == TL_BIN_SHR;
}
static bool is_logical(int op)
{
    return op == TL_BIN_LAND || op == TL_BIN_LOR;
}
/* Does the operator take elements of type d? */
static bool op_takes(int op, TlDtype d)
{
    if (d == TL_DTYPE_COUNT)
        return true;
    if (tl_is_storage_only(d))
        return false;
    if (is_logical(op))
        return d == TL_BOOL;
    if (op == TL_BIN_EQ || op == TL_BIN_NE)
        return true;
    if (is_bitwise(op))
        return !tl_is_float(d);
    if (op == TL_BIN_REM || is_shift(op))
        return tl_is_int(d);
    return d != TL_BOOL;
}

static bool operands_ok(TlSema *s, int op, const TlVal *a, const TlVal *b, TlLoc loc)
{
    const TlVal *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        TlDtype d = tl_val_dtype(both[i]);
        if (d == TL_DTYPE_COUNT && both[i]->kind == TL_VAL_CHOICE)
            d = tl_literal_dtype(both[i]);
        if (is_logical(op) && tl_is_literal(both[i]))
            d = tl_literal_dtype(both[i]);
        if (op_takes(op, d))
            continue;
        TlDiag *row = tl_err(s, loc, TL_E0311, tl_binop_text(op), tl_val_str(s, both[i]));
        if (tl_is_storage_only(d))
            tl_label(s, row, "cast to a wider type first");
        else if (op == TL_BIN_REM && tl_is_float(d))
            tl_label(s, row, "fmod(x, y) is the remainder of floats");
        else if (is_logical(op))
            tl_label(s, row, "compare with 0 first: x != 0");
        return false;
    }
    return true;
}

/* f16 and bf16 quotients are computed in f32 and rounded once. */
static TlValue *emit_binary(TlSema *s, int op, TlValue *a, TlValue *b)
{
    TL_ASSERT(a->type->rank == b->type->rank,
              "ranks %d and %d", (int)a->type->rank, (int)b->type->rank);
    TlDtype d = a->type->dtype;
    if (op != TL_BIN_DIV || (d != TL_F16 && d != TL_BF16))
        return tl_binary(&s->b, binop_ops[op], a, b);
    TlValue *wide_a = tl_cast(&s->b, a, TL_F32), *wide_b = tl_cast(&s->b, b, TL_F32);
    return tl_cast(&s->b, tl_binary(&s->b, TL_OP_DIV, wide_a, wide_b), d);
}

static TlVal pointer_arithmetic(TlSema *s, int op, const TlVal *a, const TlVal *b, TlLoc loc)
{
    bool swap = !tl_is_pointer(a);
    const TlVal *p = swap ? b : a, *i = swap ? a : b;
    if (tl_is_bad(i))
        return *i;
    TlDtype d = tl_val_dtype(i);
    if (tl_is_pointer(i) || (op != TL_BIN_ADD && (op != TL_BIN_SUB || swap)) || !tl_is_number(i) ||
        (d != TL_DTYPE_COUNT && (!tl_is_int(d) || tl_is_storage_only(d))) ||
        i->kind == TL_VAL_FLOAT) {
        tl_err(s, loc, TL_E0302, tl_binop_text(op), tl_val_str(s, a), tl_val_str(s, b));
        return tl_bad();
    }
    TlValue *offset = tl_materialize(s, i, loc);
    if (!offset)
        return tl_bad();
    if (op == TL_BIN_SUB)
        offset =
            tl_unary(&s->b, TL_OP_NEG,
                     tl_is_signed(offset->type->dtype) ? offset : tl_cast(&s->b, offset, TL_I64));
    int rank;
    int32_t shape[TL_MAX_RANK] = {0};
    if (!tl_broadcast_shape(p->u.ir->type, offset->type, &rank, shape)) {
        tl_err(s, loc, TL_E0303, tl_binop_text(op), tl_val_str(s, a), tl_val_str(s, b));
        return tl_bad();
    }
    TlValue *base = tl_broadcast_ir(s, p->u.ir, rank, shape);
    return tl_val_ir(
        tl_binary(&s->b, TL_OP_PTR_ADD, base, tl_broadcast_ir(s, offset, rank, shape)));
}

/* A shift has the type of its left operand; the amount counts modulo the width. */
static TlVal shift_vals(TlSema *s, int op, TlVal a, TlVal b, TlLoc loc)
{
    if (tl_is_untyped(&a))
        a = tl_convert_dtype(s, &a, tl_literal_dtype(&a), loc);
    if (b.kind == TL_VAL_CHOICE)
        b = tl_convert_dtype(s, &b, tl_literal_dtype(&b), loc);
    if (tl_is_bad(&a) || tl_is_bad(&b))
        return tl_worse(&a, &b, tl_val_dtype(&a));
    TlDtype d = tl_val_dtype(&a);
    if (tl_is_literal(&b)) {
        if (b.kind == TL_VAL_FLOAT) {
            tl_err(s, loc, TL_E0311, tl_binop_text(op), tl_val_str(s, &b));
            return tl_bad();
        }
        b = tl_val_const(d, (uint64_t)b.u.integer & (uint64_t)(tl_dtype_bits(d) - 1));
    }
    if (!operands_ok(s, op, &a, &b, loc))
        return tl_bad();
    if (b.kind == TL_VAL_CONST)
        b = tl_fold_cast(&b, d);
    if (a.kind == TL_VAL_CONST && b.kind == TL_VAL_CONST)
        return tl_fold_consts(s, op, &a, &b, loc);
    if (b.kind == TL_VAL_IR)
        b = tl_val_ir(tl_cast(&s->b, b.u.ir, d));
    TlVal vals[2] = {a, b}, bad;
    TlValue *x[2];
    if (!tl_unify(s, 2, vals, (TlLoc[]){loc, loc}, loc, tl_binop_text(op), x, &bad))
        return bad;
    return tl_val_ir(tl_binary(&s->b, binop_ops[op], x[0], x[1]));
}

static TlVal compare_strings(TlSema *s, int op, const TlVal *a, const TlVal *b, TlLoc loc)
{
    TL_ASSERT(a->kind == TL_VAL_STRING || b->kind == TL_VAL_STRING,
              "values of kinds %d and %d are no texts", (int)a->kind, (int)b->kind);
    if (a->kind == TL_VAL_UNKNOWN || b->kind == TL_VAL_UNKNOWN)
        return tl_unknown(TL_BOOL);
    if (a->kind == TL_VAL_STRING && b->kind == TL_VAL_STRING &&
        (op == TL_BIN_EQ || op == TL_BIN_NE))
        return tl_val_bool(!strcmp(a->u.string, b->u.string) == (op == TL_BIN_EQ));
    tl_err(s, loc, TL_E0302, tl_binop_text(op), tl_val_str(s, a), tl_val_str(s, b));
    return tl_bad();
}

static TlVal compare_types(TlSema *s, int op, const TlVal *a, const TlVal *b, TlLoc loc)
{
    TL_ASSERT(a->kind == TL_VAL_TYPE || b->kind == TL_VAL_TYPE,
              "values of kinds %d and %d are no types", (int)a->kind, (int)b->kind);
    if (tl_is_bad(a) || tl_is_bad(b))
        return tl_worse(a, b, TL_BOOL);
    if (a->kind == b->kind && (op == TL_BIN_EQ || op == TL_BIN_NE))
        return tl_val_bool(tl_ty_same(a->u.type, b->u.type) == (op == TL_BIN_EQ));
    tl_err(s, loc, TL_E0302, tl_binop_text(op), tl_val_str(s, a), tl_val_str(s, b));
    return tl_bad();
}

/* `(c ? 1 : 0) + 2` is still untyped: `c ? 1 + 2 : 0 + 2`. */
static bool stays_literal(int op, const TlVal *a, const TlVal *b)
{
    bool one = (a->kind == TL_VAL_CHOICE && tl_is_literal(b)) ||
               (b->kind == TL_VAL_CHOICE && tl_is_literal(a));
    return one && !is_shift(op) && !is_compare(op) && !is_logical(op);
}

static TlVal choice_of_results(TlSema *s, int op, const TlVal *a, const TlVal *b, TlLoc loc)
{
    TlVal out = a->kind == TL_VAL_CHOICE ? *a : *b;
    TlVal *arms = out.items;
    out.items = TL_NEW_ARRAY(s->arena, TlVal, 3);
    out.items[0] = arms[0];
    out.u.locs = NULL;
    for (int i = 1; i < 3; i++) {
        out.items[i] = a->kind == TL_VAL_CHOICE ? tl_binary_vals(s, op, arms[i], *b, loc)
                                                : tl_binary_vals(s, op, *a, arms[i], loc);
        if (out.items[i].kind == TL_VAL_ERROR)
            return out.items[i];
    }
    return out;
}

TlVal tl_binary_vals(TlSema *s, int op, TlVal a, TlVal b, TlLoc loc)
{
    if (a.kind == TL_VAL_ERROR || b.kind == TL_VAL_ERROR)
        return tl_bad();
    if (a.kind == TL_VAL_STRING || b.kind == TL_VAL_STRING)
        return compare_strings(s, op, &a, &b, loc);
    if (a.kind == TL_VAL_TYPE || b.kind == TL_VAL_TYPE)
        return compare_types(s, op, &a, &b, loc);
    if (!tl_check_value(s, &a, loc) || !tl_check_value(s, &b, loc))
        return tl_bad();
    if (tl_is_literal(&a) && tl_is_literal(&b))
        return tl_fold_literals(s, op, &a, &b, loc);
    if (stays_literal(op, &a, &b))
        return choice_of_results(s, op, &a, &b, loc);
    if (tl_is_pointer(&a) || tl_is_pointer(&b))
        return pointer_arithmetic(s, op, &a, &b, loc);
    const TlVal *both[2] = {&a, &b};
    for (int i = 0; i < 2; i++)
        if (!tl_is_number(both[i]) && !tl_is_bad(both[i])) {
            TlDiag *row = tl_err(s, loc, TL_E0311, tl_binop_text(op), tl_val_str(s, both[i]));
            tl_label_view(s, row, both[i]);
            return tl_bad();
        }
    if (is_shift(op))
        return shift_vals(s, op, a, b, loc);
    if (!operands_ok(s, op, &a, &b, loc))
        return tl_bad();
    if (is_float_for_int(s, &a, tl_val_dtype(&b), loc) ||
        is_float_for_int(s, &b, tl_val_dtype(&a), loc))
        return tl_bad();
    if (a.kind == TL_VAL_CONST && tl_is_literal(&b))
        b = tl_convert_dtype(s, &b, a.dtype, loc);
    if (b.kind == TL_VAL_CONST && tl_is_literal(&a))
        a = tl_convert_dtype(s, &a, b.dtype, loc);
    TlDtype d;
    if (a.kind == TL_VAL_CONST && b.kind == TL_VAL_CONST && tl_common_dtype(a.dtype, b.dtype, &d)) {
        a = tl_fold_cast(&a, d), b = tl_fold_cast(&b, d);
        return tl_fold_consts(s, op, &a, &b, loc);
    }
    TlVal vals[2] = {a, b}, bad;
    TlValue *x[2];
    if (!tl_unify(s, 2, vals, (TlLoc[]){loc, loc}, loc, tl_binop_text(op), x, &bad)) {
        if (bad.kind == TL_VAL_UNKNOWN && (is_compare(op) || is_logical(op)))
            bad.dtype = TL_BOOL;
        return bad;
    }
    if (!op_takes(op, x[0]->type->dtype)) {
        tl_err(s, loc, TL_E0311, tl_binop_text(op), tl_type_str(s->ctx, x[0]->type));
        return tl_bad();
    }
    return tl_val_ir(emit_binary(s, op, x[0], x[1]));
}

static TlVal unary_val(TlSema *s, int op, TlVal a, TlLoc loc)
{
    const char *text = op == '-' ? "unary -" : op == '+' ? "unary +" : op == '!' ? "!" : "~";
    if (!tl_check_value(s, &a, loc))
        return a;
    if (a.kind == TL_VAL_ERROR)
        return a;
    if (a.kind == TL_VAL_CHOICE && (op == '-' || op == '+')) {
        TlVal out = a;
        out.items = TL_NEW_ARRAY(s->arena, TlVal, 3);
        out.items[0] = a.items[0];
        out.u.locs = NULL;
        for (int i = 1; i < 3; i++)
            out.items[i] = unary_val(s, op, a.items[i], loc);
        return out;
    }
    TlDtype d = tl_is_untyped(&a) ? tl_literal_dtype(&a) : tl_val_dtype(&a);
    bool ok = (tl_is_number(&a) && !tl_is_pointer(&a)) || a.kind == TL_VAL_UNKNOWN;
    if (ok && d != TL_DTYPE_COUNT)
        ok = !tl_is_storage_only(d) && (op == '!'   ? d == TL_BOOL
                                        : op == '~' ? tl_is_int(d)
                                                    : d != TL_BOOL);
    if (!ok) {
        TlDiag *row = tl_err(s, loc, TL_E0311, text, tl_val_str(s, &a));
        if (op == '!')
            tl_label(s, row, "compare with 0: x == 0");
        return tl_bad();
    }
    if (a.kind == TL_VAL_UNKNOWN || op == '+')
        return a;
    if (a.kind != TL_VAL_IR && a.kind != TL_VAL_CHOICE)
        return tl_fold_unary(s, op, &a, loc);
    TlValue *x = tl_materialize(s, &a, loc);
    return x ? tl_val_ir(tl_unary(&s->b, op == '-' ? TL_OP_NEG : TL_OP_NOT, x)) : tl_bad();
}

/* ---- casts ---- */

/* (T *)u: of a u64, or a tile of them. */
static TlVal cast_to_pointer(TlSema *s, const TlVal *v, const TlType *to, TlLoc loc)
{
    TlVal u = *v;
    if (tl_dtype_bits(to->dtype) < 8) {
        tl_err(s, loc, TL_E0337, tl_format(s->arena, "a pointer to %s", tl_dtype_name(to->dtype)),
               tl_val_str(s, v));
        return tl_bad();
    }
    if (u.kind == TL_VAL_INT)
        u = tl_convert_dtype(s, v, TL_U64, loc);
    if (tl_is_bad(&u))
        return u.kind == TL_VAL_ERROR ? u : tl_unknown(TL_DTYPE_COUNT);
    if (!tl_is_number(&u) || tl_val_dtype(&u) != TL_U64) {
        TlDiag *row = tl_err(s, loc, TL_E0337, tl_type_str(s->ctx, to), tl_val_str(s, v));
        if (tl_is_number(&u))
            tl_label(s, row,
                     tl_is_pointer(&u) ? "(u64) of it is its address" : "an address is a u64");
        return tl_bad();
    }
    TlValue *x = tl_materialize(s, &u, loc);
    if (!x)
        return tl_bad();
    const TlType *t = tl_type_ptr(s->ctx, to->dtype, to->is_const, x->type->rank, x->type->shape);
    return tl_val_ir(tl_emit(s, TL_OP_POINTER, 1, &x, t, 0, NULL));
}

/* (u64)p; t may be a tile. */
static TlVal cast_to_address(TlSema *s, const TlVal *v, const TlTy *to, TlLoc loc)
{
    const TlType *t = to->type;
    if (t->dtype != TL_U64 || tl_dtype_bits(v->u.ir->type->dtype) < 8) {
        tl_err(s, loc, TL_E0337, tl_ty_str(s, to), tl_val_str(s, v));
        return tl_bad();
    }
    TlValue *p = v->u.ir;
    const TlType *u = tl_type_with_shape(s->ctx, tl_type_scalar(s->ctx, TL_U64), p->type->rank,
                                         p->type->shape);
    TlVal x = tl_val_ir(tl_emit(s, TL_OP_ADDRESS, 1, &p, u, 0, NULL));
    return t->rank ? tl_convert(s, &x, to, loc) : x;
}

TlVal tl_cast_val(TlSema *s, const TlVal *v, const TlTy *to, TlLoc loc)
{
    if (to->kind == TL_TY_UNKNOWN || v->kind == TL_VAL_ERROR)
        return v->kind == TL_VAL_ERROR ? *v : tl_unknown(to->dtype);
    if (to->kind == TL_TY_VALUE && to->type->ptr)
        return cast_to_pointer(s, v, to->type, loc);
    if (to->kind == TL_TY_VALUE && tl_is_pointer(v))
        return cast_to_address(s, v, to, loc);
    if (to->kind != TL_TY_VALUE) {
        if (to->kind == TL_TY_STRUCT)
            return tl_convert(s, v, to, loc);
        tl_err(s, loc, TL_E0337, tl_ty_str(s, to), tl_val_str(s, v));
        return tl_bad();
    }
    const TlType *t = to->type;
    if (v->kind == TL_VAL_UNKNOWN)
        return t->rank ? tl_val_ir(tl_const_bits(&s->b, t, 0)) : tl_unknown(t->dtype);
    if (!tl_is_number(v)) {
        tl_err(s, loc, TL_E0337, tl_ty_str(s, to), tl_val_str(s, v));
        return tl_bad();
    }
    TlVal x = *v;
    if (tl_is_literal(v) || v->kind == TL_VAL_CONST)
        x = tl_fold_cast(v, t->dtype);
    else {
        TlValue *ir = tl_materialize(s, v, loc);
        if (!ir)
            return tl_bad();
        x = tl_val_ir(tl_cast(&s->b, ir, t->dtype));
    }
    return t->rank ? tl_convert(s, &x, to, loc) : x;
}

static TlVal eval_cast(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_CAST && e->a, "expression kind %d is no cast", (int)e->kind);
    TlTy to = tl_type_resolve(s, e->type);
    TlVal v = tl_eval_value(s, e->a);
    bool is_pointer = to.kind == TL_TY_VALUE && to.type->ptr;
    if (e->type->pointer && !is_pointer) { /* (tile<f32, 4> *)u, or T is a tile's type */
        if (to.kind == TL_TY_UNKNOWN)
            return tl_unknown(TL_DTYPE_COUNT);
        tl_err(s, e->type->loc, TL_E0212, tl_format(s->arena, "%s *", tl_ty_str(s, &to)));
        return tl_bad();
    }
    return tl_cast_val(s, &v, &to, e->loc);
}

/* ---- selection ---- */

/* c ? a : b, element by element */
static TlVal select_vals(TlSema *s, const TlVal *c, const TlVal *a, const TlVal *b, TlLoc loc)
{
    if (c->kind == TL_VAL_IR && tl_is_untyped(a) && tl_is_untyped(b)) {
        TlVal out = {.kind = TL_VAL_CHOICE,
                     .n = 3,
                     .dtype = TL_DTYPE_COUNT,
                     .items = TL_NEW_ARRAY(s->arena, TlVal, 3)};
        out.items[0] = *c, out.items[1] = *a, out.items[2] = *b;
        out.u.locs = NULL;
        return out;
    }
    TlVal vals[2] = {*a, *b}, bad;
    TlValue *x[2];
    if (tl_is_pointer(a) && tl_is_pointer(b) && c->kind == TL_VAL_IR) {
        int rank;
        int32_t shape[TL_MAX_RANK] = {0};
        const TlType *ta = a->u.ir->type, *tb = b->u.ir->type;
        const TlType *tc =
            tl_type_with_shape(s->ctx, ta, c->u.ir->type->rank, c->u.ir->type->shape);
        bool ok = ta->dtype == tb->dtype && ta->is_const == tb->is_const &&
                  tl_broadcast_shape(ta, tb, &rank, shape);
        if (ok)
            ok = tl_broadcast_shape(tl_type_with_shape(s->ctx, ta, rank, shape), tc, &rank, shape);
        if (ok) {
            TlValue *mask = tl_broadcast_ir(s, c->u.ir, rank, shape);
            return tl_val_ir(tl_select(&s->b, mask, tl_broadcast_ir(s, a->u.ir, rank, shape),
                                       tl_broadcast_ir(s, b->u.ir, rank, shape)));
        }
    }
    if (!tl_unify(s, 2, vals, (TlLoc[]){loc, loc}, loc, "?:", x, &bad))
        return bad;
    if (tl_is_bad(c))
        return tl_worse(c, c, x[0]->type->dtype);
    TlValue *mask = tl_materialize(s, c, loc);
    int rank;
    int32_t shape[TL_MAX_RANK] = {0};
    if (!mask)
        return tl_bad();
    if (!tl_broadcast_shape(x[0]->type, mask->type, &rank, shape)) {
        tl_err(s, loc, TL_E0303, "?:", tl_type_str(s->ctx, mask->type),
               tl_type_str(s->ctx, x[0]->type));
        return tl_bad();
    }
    if (mask->type->rank)
        mask = tl_broadcast_ir(s, mask, rank, shape);
    return tl_val_ir(tl_select(&s->b, mask, tl_broadcast_ir(s, x[0], rank, shape),
                               tl_broadcast_ir(s, x[1], rank, shape)));
}

static TlVal select_of(TlSema *s, const TlVal *c, const TlVal *a, const TlVal *b, const TlExpr *e)
{
    TlVal out = select_vals(s, c, a, b, e->loc);
    if (out.kind == TL_VAL_CHOICE) {
        TlLoc *locs = TL_NEW_ARRAY(s->arena, TlLoc, 2);
        locs[0] = e->b->loc, locs[1] = e->c->loc;
        out.u.locs = locs;
    }
    return out;
}

/* Converts the values of two arms to one type, each in its own arm. */
static bool align_arms(TlSema *s, TlArm *arms, TlVal *vals, const TlExpr *e)
{
    const TlLoc locs[2] = {e->b->loc, e->c->loc};
    TlVal *a = &vals[0], *b = &vals[1];
    if (a->kind == TL_VAL_TUPLE || a->kind == TL_VAL_STRUCT || !tl_is_number(a) ||
        !tl_is_number(b) || tl_is_pointer(a)) {
        TlTy ta = tl_ty_of(s, a), tb = tl_ty_of(s, b);
        if (!tl_ty_same(&ta, &tb)) {
            tl_err(s, e->loc, TL_E0302, "?:", tl_val_str(s, a), tl_val_str(s, b));
            return false;
        }
        return true;
    }
    TlDtype da = tl_val_dtype(a), db = tl_val_dtype(b), d = da;
    if (da == TL_DTYPE_COUNT && db == TL_DTYPE_COUNT) {
        da = tl_literal_dtype(a), db = tl_literal_dtype(b);
        d = da == TL_F32 || db == TL_F32 ? TL_F32 : tl_dtype_bits(da) > tl_dtype_bits(db) ? da : db;
    } else if (da == TL_DTYPE_COUNT)
        d = db;
    else if (db != TL_DTYPE_COUNT && !tl_common_dtype(da, db, &d)) {
        tl_err(s, e->loc, TL_E0302, "?:", tl_val_str(s, a), tl_val_str(s, b));
        return false;
    }
    int rank;
    int32_t shape[TL_MAX_RANK] = {0};
    const TlType *ta = tl_val_type_of(s, a), *tb = tl_val_type_of(s, b);
    if (!tl_broadcast_shape(ta, tb, &rank, shape)) {
        tl_err(s, e->loc, TL_E0303, "?:", tl_type_str(s->ctx, ta), tl_type_str(s->ctx, tb));
        return false;
    }
    const TlType *t = tl_type_tile(s->ctx, d, rank, shape);
    for (int i = 0; i < 2; i++) {
        TlBuilder saved = s->b;
        s->b.block = arms[i].block, s->b.before = NULL;
        TlValue *x = tl_convert_ir(s, &vals[i], t, locs[i]);
        s->b = saved;
        if (!x)
            return false;
        vals[i] = tl_val_ir(x);
    }
    return true;
}

/* The arm that is not taken: its errors are reported, its code is dropped, and arithmetic that
 * would fail in it is no error. */
static TlVal eval_untaken(TlSema *s, const TlExpr *e)
{
    TlArm arm;
    tl_arm_begin(s, &arm);
    s->untaken++;
    TlVal v = tl_eval_value(s, e);
    s->untaken--;
    tl_arm_end(s, &arm);
    tl_arm_discard(&arm);
    return v;
}

/* A condition known at compile time: both sides are typed, one is evaluated. */
static TlVal cond_known(TlSema *s, const TlExpr *e, bool take)
{
    TlVal yes = take ? tl_eval_value(s, e->b) : tl_bad(), no;
    if (take) {
        no = eval_untaken(s, e->c);
    } else {
        yes = eval_untaken(s, e->b);
        no = tl_eval_value(s, e->c);
    }
    TlVal v = take ? yes : no;
    const TlVal *other = take ? &no : &yes;
    TlDtype d, own = tl_val_dtype(&v), theirs = tl_val_dtype(other);
    if (tl_is_bad(&v) || tl_is_bad(other))
        return v;
    if (theirs != TL_DTYPE_COUNT && own == TL_DTYPE_COUNT && tl_is_untyped(&v))
        return tl_convert_dtype(s, &v, theirs, e->loc);
    if (own == TL_DTYPE_COUNT || theirs == TL_DTYPE_COUNT)
        return v;
    if (!tl_common_dtype(own, theirs, &d)) {
        tl_err(s, e->loc, TL_E0302, "?:", tl_val_str(s, &yes), tl_val_str(s, &no));
        return tl_bad();
    }
    return tl_convert_dtype(s, &v, d, e->loc);
}

static TlVal cond_scalar(TlSema *s, const TlExpr *e, TlValue *c)
{
    TL_ASSERT(c->type->rank == 0, "a condition of rank %d", (int)c->type->rank);
    TlArm arms[2];
    TlVal vals[2], out = tl_bad();
    tl_arm_begin(s, &arms[0]);
    vals[0] = tl_eval_value(s, e->b);
    tl_arm_end(s, &arms[0]);
    tl_arm_begin(s, &arms[1]);
    vals[1] = tl_eval_value(s, e->c);
    tl_arm_end(s, &arms[1]);
    bool literals = tl_is_untyped(&vals[0]) && tl_is_untyped(&vals[1]);
    bool bad = tl_is_bad(&vals[0]) || tl_is_bad(&vals[1]);
    if (bad || (!literals && !align_arms(s, arms, vals, e))) {
        tl_arm_discard(&arms[1]);
        tl_arm_discard(&arms[0]);
        TlDtype d0 = tl_val_dtype(&vals[0]), d1 = tl_val_dtype(&vals[1]), d = d0;
        if (d0 == TL_DTYPE_COUNT || d1 == TL_DTYPE_COUNT)
            d = beside_unknown(d0 == TL_DTYPE_COUNT ? d1 : d0);
        return bad ? tl_worse(&vals[0], &vals[1], d) : tl_bad();
    }
    bool scalars = vals[0].kind != TL_VAL_IR || tl_is_scalar(vals[0].u.ir->type);
    bool simple = literals || (vals[0].kind == TL_VAL_IR && scalars);
    if (simple && tl_arm_is_cheap(&arms[0]) && tl_arm_is_cheap(&arms[1])) {
        tl_arm_inline(s, &arms[0]);
        tl_arm_inline(s, &arms[1]);
        TlVal cv = tl_val_ir(c);
        return select_of(s, &cv, &vals[0], &vals[1], e);
    }
    tl_arms_join(s, c, &arms[0], &arms[1], &vals[0], &vals[1], &out, e->loc);
    return out;
}

static TlVal eval_cond_expr(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_COND && e->a && e->b && e->c,
              "expression kind %d is no choice", (int)e->kind);
    TlVal c = tl_eval_value(s, e->a);
    if (c.kind == TL_VAL_CONST && c.dtype == TL_BOOL)
        return cond_known(s, e, c.u.bits);
    if (c.kind == TL_VAL_IR && c.u.ir->type->dtype == TL_BOOL && !c.u.ir->type->ptr) {
        if (tl_is_scalar(c.u.ir->type))
            return cond_scalar(s, e, c.u.ir);
    } else if (!tl_is_bad(&c)) {
        no_condition(s, &c, e->a->loc);
        c = tl_bad();
    }
    TlVal a = tl_eval_value(s, e->b), b = tl_eval_value(s, e->c);
    bool plain = tl_is_number(&a) && tl_is_number(&b) && !tl_is_pointer(&a) && !tl_is_pointer(&b);
    if (tl_is_bad(&c) && (!plain || (tl_is_untyped(&a) && tl_is_untyped(&b))))
        return tl_unknown(TL_DTYPE_COUNT);
    return select_of(s, &c, &a, &b, e);
}

/* && and || of scalars evaluate the right side only when it is needed; of tiles both, element by
 * element. */
static TlVal eval_logical(TlSema *s, int op, TlVal a, const TlExpr *right, TlLoc loc)
{
    TL_ASSERT(op == TL_BIN_LAND || op == TL_BIN_LOR, "operator %d decides nothing", op);
    bool is_and = op == TL_BIN_LAND;
    if (a.kind == TL_VAL_CONST && a.dtype == TL_BOOL) {
        bool decides = (a.u.bits != 0) != is_and;
        TlVal b = decides ? eval_untaken(s, right) : tl_eval_value(s, right);
        if (!decides || tl_is_bad(&b))
            return tl_binary_vals(s, op, a, b, loc);
        if (tl_val_dtype(&b) != TL_BOOL)
            return tl_binary_vals(s, op, a, b, loc);
        if (b.kind == TL_VAL_IR && b.u.ir->type->rank)
            return tl_val_ir(tl_const_bits(&s->b, b.u.ir->type, a.u.bits));
        return a;
    }
    if (a.kind != TL_VAL_IR || a.u.ir->type->rank || a.u.ir->type->dtype != TL_BOOL ||
        a.u.ir->type->ptr)
        return tl_binary_vals(s, op, a, tl_eval_value(s, right), loc);
    TlArm arms[2];
    tl_arm_begin(s, &arms[0]);
    TlVal b = tl_eval_value(s, right);
    tl_arm_end(s, &arms[0]);
    bool scalar = (b.kind == TL_VAL_IR && tl_is_scalar(b.u.ir->type) &&
                   b.u.ir->type->dtype == TL_BOOL && !b.u.ir->type->ptr) ||
                  (b.kind == TL_VAL_CONST && b.dtype == TL_BOOL);
    if (!scalar || tl_arm_is_cheap(&arms[0])) {
        tl_arm_inline(s, &arms[0]);
        return tl_binary_vals(s, op, a, b, loc);
    }
    tl_arm_begin(s, &arms[1]);
    TlVal known = tl_val_bool(!is_and), out = tl_bad();
    tl_arm_end(s, &arms[1]);
    tl_arms_join(s, a.u.ir, &arms[!is_and], &arms[is_and], is_and ? &b : &known,
                 is_and ? &known : &b, &out, loc);
    return out;
}

static TlVal eval_binary(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_BINARY && e->a && e->b,
              "expression kind %d is no operation", (int)e->kind);
    TL_VEC(const TlExpr *) spine = {0};
    const TlExpr *left = e;
    for (; left->kind == TL_EX_BINARY; left = left->a)
        tl_vec_push(s->arena, &spine, left);
    TlVal v = tl_eval(s, left);
    for (uint32_t i = spine.len; i-- > 0;) {
        const TlExpr *at = spine.data[i];
        s->b.loc = at->loc;
        if (!tl_step(s, at->loc))
            return tl_bad();
        if (is_logical(at->u.op)) {
            tl_check_value(s, &v, at->a->loc);
            v = eval_logical(s, at->u.op, v, at->b, at->loc);
        } else {
            TlVal right = tl_eval(s, at->b);
            s->b.loc = at->loc;
            v = tl_binary_vals(s, at->u.op, v, right, at->loc);
        }
    }
    return v;
}

/* ---- makers ---- */

static TlVal eval_tuple(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_TUPLE, "expression kind %d is no tuple", (int)e->kind);
    TlVal v = {.kind = TL_VAL_TUPLE,
               .n = e->args.len,
               .dtype = TL_DTYPE_COUNT,
               .items = TL_NEW_ARRAY(s->arena, TlVal, e->args.len + 1)};
    uint32_t parts = 1;
    for (uint32_t i = 0; i < v.n; i++) {
        v.items[i] = tl_eval_value(s, e->args.data[i].value);
        parts += tl_parts_of(&v.items[i]); /* each at most TL_MAX_PARTS, so there is no overflow */
    }
    return tl_parts_fit(s, parts, "this tuple", e->loc) ? v : tl_bad();
}

static TlVal eval_struct(TlSema *s, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_STRUCT, "expression kind %d is no struct", (int)e->kind);
    TlTy ty = tl_type_resolve(s, e->type);
    if (ty.kind != TL_TY_STRUCT) {
        if (ty.kind != TL_TY_UNKNOWN)
            tl_err(s, e->type->loc, TL_E0212, tl_ty_str(s, &ty));
        for (uint32_t i = 0; i < e->args.len; i++)
            tl_eval_value(s, e->args.data[i].value);
        return ty.kind == TL_TY_UNKNOWN ? tl_unknown(TL_DTYPE_COUNT) : tl_bad();
    }
    TlVal v = {.kind = TL_VAL_STRUCT,
               .n = ty.n,
               .def = ty.def,
               .dtype = TL_DTYPE_COUNT,
               .items = TL_NEW_ARRAY(s->arena, TlVal, ty.n + 1)};
    if (e->args.len > ty.n)
        tl_err(s, e->loc, TL_E0318, tl_ty_str(s, &ty), ty.n, e->args.len);
    for (uint32_t i = 0; i < e->args.len; i++) {
        TlVal x = tl_eval_value(s, e->args.data[i].value);
        if (i < ty.n)
            v.items[i] = tl_convert(s, &x, &ty.items[i], e->args.data[i].value->loc);
    }
    for (uint32_t i = e->args.len; i < ty.n; i++)
        v.items[i] = tl_zero(s, &ty.items[i]);
    return v;
}

static TlVal eval_make(TlSema *s, const TlExpr *e)
{
    TlTy ty = tl_type_resolve(s, e->type);
    TlVal v = e->args.len ? tl_eval_value(s, e->args.data[0].value) : tl_zero(s, &ty);
    if (e->args.len > 1)
        tl_err(s, e->args.data[1].loc, TL_E0312, tl_ty_str(s, &ty), 1u, e->args.len);
    return tl_convert(s, &v, &ty, e->args.len ? e->args.data[0].value->loc : e->loc);
}

static TlVal eval_place(TlSema *s, const TlExpr *e)
{
    TlAccess a;
    tl_access(s, e, &a);
    if (!tl_access_ok(&a))
        return a.bad;
    return tl_access_load(s, &a, NULL);
}

static TlVal eval_kind(TlSema *s, const TlExpr *e)
{
    switch (e->kind) {
    case TL_EX_INT: return tl_val_int((TlInt)e->u.integer);
    case TL_EX_FLOAT: return tl_val_float(e->u.number);
    case TL_EX_BOOL: return tl_val_bool(e->u.integer != 0);
    case TL_EX_INF: return tl_val_float((double)INFINITY);
    case TL_EX_NAN: return tl_val_float((double)NAN);
    case TL_EX_STRING:
        return (TlVal){.kind = TL_VAL_STRING, .dtype = TL_DTYPE_COUNT, .u.string = e->u.string};
    case TL_EX_NAME: return eval_name(s, e, NULL);
    case TL_EX_UNARY: return unary_val(s, e->u.op, tl_eval(s, e->a), e->loc);
    case TL_EX_BINARY: return eval_binary(s, e);
    case TL_EX_COND: return eval_cond_expr(s, e);
    case TL_EX_CAST: return eval_cast(s, e);
    case TL_EX_CALL: return tl_eval_call(s, e);
    case TL_EX_INDEX:
    case TL_EX_UNCHECKED: return eval_place(s, e);
    case TL_EX_MEMBER: {
        TlVal v =
            e->a->kind == TL_EX_NAME ? eval_name(s, e->a, e->u.name) : tl_eval(s, e->a);
        return member_of(s, &v, e->u.name, e->loc);
    }
    case TL_EX_TUPLE: return eval_tuple(s, e);
    case TL_EX_STRUCT: return eval_struct(s, e);
    case TL_EX_MAKE: return eval_make(s, e);
    case TL_EX_TYPE: break;
    }
    TlTy *ty = TL_NEW(s->arena, TlTy);
    *ty = tl_type_resolve(s, e->type);
    return ty->kind == TL_TY_UNKNOWN && ty->dtype == TL_DTYPE_COUNT ? tl_unknown(TL_DTYPE_COUNT)
                                                                    : tl_val_type(ty);
}

TlVal tl_eval(TlSema *s, const TlExpr *e)
{
    if (!tl_step(s, e->loc))
        return tl_bad();
    TlLoc outer = s->b.loc;
    s->b.loc = e->loc;
    TlVal v = eval_kind(s, e);
    /* an instance knows everything: nothing may be swallowed without an error */
    TL_ASSERT(v.kind != TL_VAL_UNKNOWN || s->abstract || s->quiet_errors || s->ctx->diags.errors,
              "no value at line %u, column %u", e->loc.line, e->loc.col);
    s->b.loc = outer;
    return v;
}
