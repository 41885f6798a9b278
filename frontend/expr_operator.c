/* Unary and binary operators on values: folded where both sides are constants, else with operands
 * of one type and one shape. */
#include "frontend/sema.h"
#include <string.h>

static const TlOpcode binop_ops[] = {TL_OP_MUL, TL_OP_DIV, TL_OP_REM, TL_OP_ADD, TL_OP_SUB,
                                     TL_OP_SHL, TL_OP_SHR, TL_OP_LT,  TL_OP_GT,  TL_OP_LE,
                                     TL_OP_GE,  TL_OP_EQ,  TL_OP_NE,  TL_OP_AND, TL_OP_XOR,
                                     TL_OP_OR,  TL_OP_AND, TL_OP_OR};

/* ---- one type and one shape ---- */

TlDtype tl_beside_unknown(TlDtype d)
{
    for (int wide = 0; wide < TL_DTYPE_COUNT && d != TL_DTYPE_COUNT; wide++)
        if (wide != (int)d && tl_widens(d, (TlDtype)wide))
            return TL_DTYPE_COUNT;
    return d;
}

/* The operands of the operator at a position, as written; NULL: not known. */
static const TlExpr *const *operands_at(const TlSema *s, uint32_t n, TlLoc loc)
{
    bool same = s->operator_at.file == loc.file && s->operator_at.line == loc.line &&
                s->operator_at.col == loc.col;
    return n == 2 && same ? s->operands : NULL;
}

/* In `0.5 * i` it is i that should be cast: as an integer, the literal would be 0. */
static bool is_float_for_int(TlSema *s, const TlVal *literal, TlDtype other, TlLoc loc)
{
    if (literal->kind != TL_VAL_FLOAT || other == TL_DTYPE_COUNT || !tl_is_int(other))
        return false;
    TlDiag *row = tl_err(s, loc, TL_E0402, tl_const_text(s, literal), tl_dtype_name(other));
    const TlExpr *const *exprs = operands_at(s, 2, loc);
    bool right = exprs && exprs[0]->kind == TL_EX_FLOAT;
    if (exprs && (right || exprs[1]->kind == TL_EX_FLOAT))
        tl_label(s, row, "cast the integer instead: %s", tl_cast_text(s, exprs[right], TL_F32));
    else
        tl_label(s, row, "cast the integers instead: (f32)x");
    return true;
}

/* The float type that numbers beside known integers have in common, COUNT if there is none;
 * `*literal`: a float without a type is among them. */
static TlDtype float_beside(uint32_t n, const TlVal *vals, bool *literal)
{
    TlDtype d = TL_DTYPE_COUNT;
    *literal = false;
    for (uint32_t i = 0; i < n; i++) {
        TlDtype own = tl_val_dtype(&vals[i]);
        if (tl_is_untyped(&vals[i]))
            *literal |= tl_is_float(tl_literal_dtype(&vals[i]));
        else if (own != TL_DTYPE_COUNT && tl_is_float(own) &&
                 (d == TL_DTYPE_COUNT || !tl_common_dtype(d, own, &d)))
            d = own;
    }
    return d;
}

bool tl_known_to_floats(TlSema *s, uint32_t n, TlVal *vals, const TlLoc *locs)
{
    bool literal, ok = true;
    TlDtype d = float_beside(n, vals, &literal);
    for (uint32_t i = 0; i < n && (d != TL_DTYPE_COUNT || literal); i++) {
        if (!tl_is_known_int(&vals[i]))
            continue;
        vals[i] = d != TL_DTYPE_COUNT ? tl_known_as_float(s, &vals[i], d, locs[i])
                                      : tl_known_as_literal(s, &vals[i], locs[i]);
        ok &= vals[i].kind != TL_VAL_ERROR;
    }
    return ok;
}

/* Has the vector one element for each row of the matrix? */
static bool is_row_vector(const TlType *matrix, const TlType *vector)
{
    return matrix->rank == 2 && vector->rank == 1 && matrix->shape[0] == vector->shape[0];
}

/* Two shapes that do not broadcast: what may have been meant, else the axes that do not fit. */
static void label_shapes(TlSema *s, TlDiag *row, const char *what, const TlType *a,
                         const TlType *b)
{
    if (is_row_vector(a, b) || is_row_vector(b, a)) {
        tl_label(s, row, "a value for each row is a column: write col(v), or keep = true in the "
                         "reduction");
        return;
    }
    if (!strcmp(what, "*") && a->rank == 2 && b->rank == 2 && a->shape[1] == b->shape[0]) {
        tl_label(s, row, "* is element by element: the product of matrices is dot(a, b, acc)");
        return;
    }
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        int32_t m = a->shape[a->rank - i], n = b->shape[b->rank - i];
        if (m != n && m != 1 && n != 1) {
            tl_label(s, row, "counted from the last, axes have equal lengths, or one of them 1: "
                             "%d and %d do not fit", m, n);
            return;
        }
    }
}

static bool is_compare(int op)
{
    return op >= TL_BIN_LT && op <= TL_BIN_NE;
}

/* v & 1 == 0 */
static void label_precedence(TlSema *s, TlDiag *row, const char *what, const TlExpr *const *exprs)
{
    const TlExpr *left = exprs ? exprs[0] : NULL, *right = exprs ? exprs[1] : NULL;
    bool compares = right && right->kind == TL_EX_BINARY && !right->parens &&
                    is_compare(right->u.op);
    tl_label(s, row, "comparisons bind tighter than %s: write (%s %s %s) %s %s", what,
             compares ? tl_short_text(s, left, "a") : "a", what,
             compares ? tl_short_text(s, right->a, "b") : "b",
             compares ? tl_binop_text(right->u.op) : "==",
             compares ? tl_short_text(s, right->b, "c") : "c");
}

/* What to write where two types meet; exprs: as written, or NULL. */
static void label_types(TlSema *s, TlDiag *row, const char *what, TlDtype a, TlDtype b,
                        const TlExpr *const *exprs)
{
    bool bits = strchr("&|^", what[0]) && !what[1];
    if (bits && (a == TL_BOOL || b == TL_BOOL))
        label_precedence(s, row, what, exprs);
    else if (tl_is_float(a) != tl_is_float(b) && (tl_is_int(a) || tl_is_int(b)))
        tl_label(s, row, "cast the integer: %s",
                 tl_cast_text(s, exprs ? exprs[tl_is_float(a)] : NULL, tl_is_float(a) ? a : b));
    else
        tl_label(s, row, "cast one of them");
}

/* Arithmetic with what is true or false; truth: which operand that is. */
static void label_bool(TlSema *s, TlDiag *row, int op, TlDtype d, int truth, TlLoc loc)
{
    const TlExpr *const *exprs = operands_at(s, 2, loc);
    if (d != TL_BOOL)
        return;
    if (op == TL_BIN_MUL)
        tl_label(s, row, "write %s ? %s : 0", tl_short_text(s, exprs ? exprs[truth] : NULL, "c"),
                 tl_short_text(s, exprs ? exprs[!truth] : NULL, "x"));
    else if (op == TL_BIN_ADD)
        tl_label(s, row, "sum(c) counts what is true; of one, cast it: (i32)c");
    else
        tl_label(s, row, "cast it: (i32)c");
}

/* 0 < a < 1 */
static void label_chain(TlSema *s, TlDiag *row, int op, TlLoc loc)
{
    const TlExpr *const *exprs = operands_at(s, 2, loc);
    const TlExpr *left = exprs ? exprs[0] : NULL;
    if (!left || left->kind != TL_EX_BINARY || left->parens || !is_compare(left->u.op))
        return;
    const char *middle = tl_short_text(s, left->b, "b");
    tl_label(s, row, "two comparisons are joined by &&: %s %s %s && %s %s %s",
             tl_short_text(s, left->a, "a"), tl_binop_text(left->u.op), middle, middle,
             tl_binop_text(op), tl_short_text(s, exprs[1], "c"));
}

bool tl_unify(TlSema *s, uint32_t n, TlVal *vals, const TlLoc *locs, TlLoc loc, const char *what,
              TlValue **out, TlVal *bad)
{
    TL_ASSERT(n > 0 && vals && locs && out, "%u values to unify", n);
    TlDtype d = TL_DTYPE_COUNT, all = TL_DTYPE_COUNT;
    uint32_t first = 0;
    bool open = false;
    *bad = tl_bad();
    if (!tl_known_to_floats(s, n, vals, locs))
        return false;
    *bad = tl_val(TL_VAL_VOID);
    for (uint32_t i = 0; i < n; i++) {
        if (!tl_check_value(s, &vals[i], locs[i]))
            *bad = tl_bad();
        if (tl_has_items(&vals[i]) || vals[i].kind == TL_VAL_VIEW || tl_is_pointer(&vals[i])) {
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
            label_types(s,
                        tl_err(s, loc, TL_E0302, what, tl_val_str(s, &vals[first]),
                               tl_val_str(s, &vals[i])),
                        what, d, own, operands_at(s, n, loc));
            *bad = tl_bad();
            return false;
        }
        if (common != d)
            first = i;
        d = common;
    }
    if (tl_is_bad(bad)) {
        if (bad->kind == TL_VAL_UNKNOWN)
            bad->dtype = open ? tl_beside_unknown(d) : d;
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
            TlDiag *row =
                tl_err(s, loc, TL_E0303, what, tl_type_str(s->ctx, so_far), tl_type_str(s->ctx, t));
            label_shapes(s, row, what, so_far, t);
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

/* ---- which types an operator takes ---- */

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
        label_bool(s, row, op, d, i, loc);
        if (is_compare(op))
            label_chain(s, row, op, loc);
        if (tl_is_storage_only(d))
            tl_label(s, row, "cast to a wider type first");
        else if (op == TL_BIN_XOR && tl_is_float(d))
            tl_label(s, row, "a power is pow(x, y); the bits of x are bitcast(x, u32)");
        else if (op == TL_BIN_REM && tl_is_float(d))
            tl_label(s, row, "fmod(x, y) is the remainder of floats");
        else if (is_logical(op))
            tl_label(s, row, "compare with 0 first: x != 0");
        return false;
    }
    return true;
}

/* ---- binary operators ---- */

/* f16 and bf16 quotients are computed in f32 and rounded once. */
static TlValue *emit_binary(TlSema *s, int op, TlValue *a, TlValue *b)
{
    TL_ASSERT(a->type->rank == b->type->rank, "ranks %d and %d", (int)a->type->rank,
              (int)b->type->rank);
    TlDtype d = a->type->dtype;
    if (op != TL_BIN_DIV)
        return tl_binary(&s->b, binop_ops[op], a, b);
    if (d != TL_F16 && d != TL_BF16)
        return tl_emit_quotient(s, a, b);
    TlValue *wide_a = tl_cast(&s->b, a, TL_F32), *wide_b = tl_cast(&s->b, b, TL_F32);
    return tl_cast(&s->b, tl_emit_quotient(s, wide_a, wide_b), d);
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
    bool left = a->kind == TL_VAL_CHOICE;
    TlVal out = tl_val_copy(s, left ? a : b);
    out.u.locs = NULL;
    for (int i = 1; i < 3; i++) {
        out.items[i] = left ? tl_binary_vals(s, op, out.items[i], *b, loc)
                            : tl_binary_vals(s, op, *a, out.items[i], loc);
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
    if (!is_shift(op) && (tl_is_known_int(&a) || tl_is_known_int(&b))) {
        TlVal both[2] = {a, b};
        if (!tl_known_to_floats(s, 2, both, (TlLoc[]){loc, loc}))
            return tl_bad();
        a = both[0], b = both[1];
    }
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
        label_bool(s, tl_err(s, loc, TL_E0311, tl_binop_text(op), tl_type_str(s->ctx, x[0]->type)),
                   op, x[0]->type->dtype, 0, loc);
        return tl_bad();
    }
    return tl_val_ir(emit_binary(s, op, x[0], x[1]));
}

/* ---- unary operators ---- */

TlVal tl_unary_val(TlSema *s, int op, TlVal a, TlLoc loc)
{
    const char *text = op == '-' ? "unary -" : op == '+' ? "unary +" : op == '!' ? "!" : "~";
    if (!tl_check_value(s, &a, loc))
        return a;
    if (a.kind == TL_VAL_ERROR)
        return a;
    if (a.kind == TL_VAL_CHOICE && (op == '-' || op == '+')) {
        TlVal out = tl_val_copy(s, &a);
        out.u.locs = NULL;
        for (int i = 1; i < 3; i++)
            out.items[i] = tl_unary_val(s, op, a.items[i], loc);
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
        else if (op == '~' && d == TL_BOOL)
            tl_label(s, row, "write !x");
        return tl_bad();
    }
    if (a.kind == TL_VAL_UNKNOWN || op == '+')
        return a;
    if (a.kind != TL_VAL_IR && a.kind != TL_VAL_CHOICE)
        return tl_fold_unary(s, op, &a, loc);
    TlValue *x = tl_materialize(s, &a, loc);
    return x ? tl_val_ir(tl_unary(&s->b, op == '-' ? TL_OP_NEG : TL_OP_NOT, x)) : tl_bad();
}
