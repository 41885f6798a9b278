/* Where values come from, and how large they can be, for the warnings about an instance. Every
 * answer may be "not known". */
#include "frontend/lint.h"

#include <string.h>

#include "ir/numeric.h"

const TlValue *tl_lint_uncast(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_CAST && tl_is_int(v->type->dtype) &&
           tl_is_int(tl_in(v->def, 0)->type->dtype))
        v = tl_in(v->def, 0);
    return v;
}

bool tl_lint_constant(const TlValue *v, int64_t *out)
{
    uint64_t bits;
    v = tl_lint_uncast(v);
    if (!tl_is_int(v->type->dtype) || v->type->ptr || !tl_value_is_const(v, &bits))
        return false;
    *out = (int64_t)tl_bits_to_double(v->type->dtype, bits);
    return true;
}

TlLaunchNumber tl_lint_extent(const TlLint *l, const TlValue *view, uint32_t axis)
{
    TlLaunchNumber none = {false, -1};
    if (view->def && view->def->opcode == TL_OP_VIEW)
        return tl_lint_number(l, tl_in(view->def, 1 + axis));
    if (view->def || view->block != l->fn->body)
        return none;
    const TlDim *d = &l->info->params.data[view->index].extent[axis];
    return d->kind == TILE_DIM_SYM ? (TlLaunchNumber){false, (int32_t)d->value} : none;
}

int64_t tl_lint_known_extent(const TlLint *l, const TlValue *view, uint32_t axis)
{
    int64_t n;
    if (view->def && view->def->opcode == TL_OP_VIEW)
        return tl_lint_constant(tl_in(view->def, 1 + axis), &n) ? n : -1;
    if (view->def || view->block != l->fn->body)
        return -1;
    const TlDim *d = &l->info->params.data[view->index].extent[axis];
    return d->kind == TILE_DIM_CONST ? d->value : -1;
}

TlLaunchNumber tl_lint_number(const TlLint *l, const TlValue *v)
{
    v = tl_lint_uncast(v);
    const TlOp *op = v->def;
    if (op && op->opcode == TL_OP_EXTENT)
        return tl_lint_extent(l, tl_in(op, 0), (uint32_t)tl_attr_int(op, TL_ATTR_AXIS, 0));
    if (op && op->opcode == TL_OP_BROADCAST)
        return tl_lint_number(l, tl_in(op, 0));
    bool is_scalar = !op && v->block == l->fn->body && v->type->kind != TL_VIEW && !v->type->ptr;
    return (TlLaunchNumber){true, is_scalar ? (int32_t)v->index : -1};
}

bool tl_lint_same(TlLaunchNumber a, TlLaunchNumber b)
{
    return a.index >= 0 && a.index == b.index && a.is_arg == b.is_arg;
}

const char *tl_lint_name(const TlLint *l, TlLaunchNumber n)
{
    TL_ASSERT(n.index >= 0, "a number without a name");
    return n.is_arg ? l->info->params.data[n.index].name : l->info->syms.data[n.index].name;
}

/* ---- how large ---- */

static int64_t most_of(const TlLint *l, const TlValue *v, int steps);

/* Within i64 when both are magnitudes of i32. */
static int64_t capped(int64_t n)
{
    return n < INT32_MAX ? n : INT32_MAX;
}

static int64_t most_of_dtype(TlDtype d)
{
    int bits = tl_dtype_bits(d);
    return d == TL_BOOL ? 1 : bits >= 32 ? INT32_MAX : (int64_t)1 << (bits - tl_is_signed(d));
}

static int64_t most_of_pid(const TlLint *l, const TlOp *op)
{
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (axis >= l->info->grid.len)
        return l->info->grid.len ? 1 : INT32_MAX;
    const TlHostExpr *e = &l->info->exprs.data[l->info->grid.data[axis]];
    if (e->code.len != 1)
        return INT32_MAX;
    const tile_hx_ins *c = &e->code.data[0];
    if (c->op == TILE_HX_CONST)
        return capped(c->imm);
    return c->op == TILE_HX_SYM || c->op == TILE_HX_ARG
               ? tl_required_most(l, (TlLaunchNumber){c->op == TILE_HX_ARG, (int32_t)c->imm})
               : INT32_MAX;
}

static int64_t most_of_argument(const TlLint *l, const TlValue *v, int steps)
{
    const TlOp *loop = v->block->parent;
    if (!loop)
        return tl_required_most(l, tl_lint_number(l, v));
    if (loop->opcode != TL_OP_FOR || v->index)
        return INT32_MAX;
    int64_t lo = most_of(l, tl_in(loop, 0), steps), hi = most_of(l, tl_in(loop, 1), steps);
    return lo > hi ? lo : hi;
}

static int64_t most_of_result(const TlLint *l, const TlOp *op, int steps)
{
    int64_t a = op->nin ? most_of(l, tl_in(op, 0), steps) : INT32_MAX,
            b = op->nin > 1 ? most_of(l, tl_in(op, 1), steps) : INT32_MAX, c;
    static const bool NOT_ABOVE_FIRST[TL_OP_COUNT] = {
        [TL_OP_BROADCAST] = true, [TL_OP_EXPAND] = true, [TL_OP_RESHAPE] = true,
        [TL_OP_TRANS] = true,     [TL_OP_CAST] = true,   [TL_OP_ABS] = true,
        [TL_OP_NEG] = true,       [TL_OP_DIV] = true,    [TL_OP_SHR] = true};
    if (NOT_ABOVE_FIRST[op->opcode])
        return a;
    if (op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB)
        return capped(a + b);
    if (op->opcode == TL_OP_MUL)
        return capped(a * b);
    if (op->opcode == TL_OP_MIN || op->opcode == TL_OP_REM) /* of what is not negative */
        return a < b ? a : b;
    if (op->opcode == TL_OP_AND && tl_lint_constant(tl_in(op, 1), &c) && c >= 0)
        return c;
    if (op->opcode == TL_OP_AND || op->opcode == TL_OP_MAX)
        return a > b ? a : b;
    if (op->opcode != TL_OP_SELECT)
        return INT32_MAX;
    c = most_of(l, tl_in(op, 2), steps);
    return b > c ? b : c;
}

static int64_t most_of(const TlLint *l, const TlValue *v, int steps)
{
    int64_t n, own = most_of_dtype(v->type->dtype);
    const TlOp *op = v->def;
    if (tl_lint_constant(v, &n))
        return capped(n < 0 ? -n : n);
    if (steps == 0 || own < INT32_MAX)
        return own;
    if (!op)
        return most_of_argument(l, v, steps - 1);
    if (op->opcode == TL_OP_IOTA)
        return v->type->shape[0];
    if (op->opcode == TL_OP_PID)
        return most_of_pid(l, op);
    if (op->opcode == TL_OP_EXTENT) {
        n = tl_lint_known_extent(l, tl_in(op, 0), (uint32_t)tl_attr_int(op, TL_ATTR_AXIS, 0));
        return n >= 0 ? capped(n) : tl_required_most(l, tl_lint_number(l, v));
    }
    bool computes = (tl_op_info(op->opcode)->flags & F_PURE) && !op->nregions;
    return computes ? most_of_result(l, op, steps - 1) : INT32_MAX;
}

int64_t tl_lint_most(const TlLint *l, const TlValue *v)
{
    enum { MOST_LEVELS = 8 }; /* of ops: recursion */
    return most_of(l, v, MOST_LEVELS);
}

/* ---- the rest ---- */

static bool mentions(const TlLint *l, const TlValue *v, const TlValue *view, uint32_t axis,
                     int steps)
{
    const TlOp *op = v->def;
    TlLaunchNumber n = tl_lint_extent(l, view, axis), own = tl_lint_number(l, v);
    if (tl_lint_same(n, own))
        return true;
    if (view->def && (view->def->opcode == TL_OP_VIEW || view->def->opcode == TL_OP_SUB_VIEW)) {
        uint32_t at = view->def->opcode == TL_OP_VIEW ? 1 + axis : 1 + view->type->rank + axis;
        if (tl_lint_uncast(v) == tl_lint_uncast(tl_in(view->def, at)))
            return true;
    }
    if (!op || op->nregions || steps == 0)
        return false;
    if (op->opcode == TL_OP_EXTENT)
        return tl_in(op, 0) == view && tl_attr_int(op, TL_ATTR_AXIS, 0) == axis;
    for (uint32_t i = 0; i < op->nin; i++)
        if (mentions(l, tl_in(op, i), view, axis, steps - 1))
            return true;
    return false;
}

bool tl_lint_mentions(const TlLint *l, const TlValue *v, const TlValue *view, uint32_t axis)
{
    enum { MOST_LEVELS = 8 }; /* of ops: recursion */
    return mentions(l, v, view, axis, MOST_LEVELS);
}

int tl_lint_slice(const TlPlace *p, int axis)
{
    for (uint32_t i = 0; i < p->naxes; i++)
        if (p->axes[i].kind == TL_AXIS_SLICE && tl_place_dim(p, i) == axis)
            return (int)i;
    return -1;
}

bool tl_lint_word(const TlLint *l, TlLoc loc, const char *word)
{
    if (!loc.line || loc.len != strlen(word))
        return false;
    TlLoc end = loc;
    end.col += loc.len;
    return strcmp(tl_source_text(l->s->ctx, loc, end), word) == 0;
}
