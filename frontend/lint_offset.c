/* narrow-offset: a product of i32 wraps at 2^31, and a pointer that moves by it then points
 * elsewhere.
 *
 *     p[r * C + iota(B)]        write (i64)r * C: indices of views are computed as if in i64
 *
 * The walk goes from the offset of each ptr_add back through sums, casts, shapes, branches and
 * loops. There is no warning if a factor is a constant, or if the factors are known to be small:
 * from remainders, from the types that they come from, from require. */
#include "frontend/lint.h"

typedef struct Walk {
    const TlLint *l;
    bool *seen; /* by value */
} Walk;

static bool is_constant(const TlValue *v)
{
    int64_t n;
    while (v->def && (v->def->opcode == TL_OP_BROADCAST || v->def->opcode == TL_OP_EXPAND))
        v = tl_in(v->def, 0);
    return tl_lint_constant(v, &n);
}

/* What a launch knows as the factor, also spread. */
static TlLaunchNumber launch_number_of(const Walk *w, const TlValue *v)
{
    while (v->def && (v->def->opcode == TL_OP_BROADCAST || v->def->opcode == TL_OP_EXPAND))
        v = tl_in(v->def, 0);
    v = tl_lint_uncast(v);
    if (!v->def || v->def->opcode != TL_OP_PID)
        return tl_lint_number(w->l, v);
    int64_t axis = tl_attr_int(v->def, TL_ATTR_AXIS, 0);
    TlLaunchNumber none = {false, -1};
    if (axis >= w->l->info->grid.len)
        return none;
    const TlHostExpr *e = &w->l->info->exprs.data[w->l->info->grid.data[axis]];
    const tile_hx_ins *c = &e->code.data[0];
    bool one = e->code.len == 1 && (c->op == TILE_HX_SYM || c->op == TILE_HX_ARG);
    return one ? (TlLaunchNumber){c->op == TILE_HX_ARG, (int32_t)c->imm} : none;
}

/* a * (n / a), (n / a) * a: at most n. */
static bool undoes_quotient(const Walk *w, const TlValue *a, const TlValue *b)
{
    const TlOp *op = tl_lint_uncast(b)->def;
    if (!op || op->opcode != TL_OP_DIV)
        return false;
    const TlValue *by = tl_in(op, 1);
    TlLaunchNumber x = launch_number_of(w, a), y = launch_number_of(w, by);
    return tl_lint_uncast(a) == tl_lint_uncast(by) ||
           (x.index >= 0 && x.index == y.index && x.is_arg == y.is_arg);
}

static bool is_narrow_product(const Walk *w, const TlOp *op)
{
    if (op->opcode != TL_OP_MUL || op->out[0]->type->dtype != TL_I32)
        return false;
    const TlValue *a = tl_in(op, 0), *b = tl_in(op, 1);
    if (is_constant(a) || is_constant(b) || !tl_warns_at(w->l->s, op->loc))
        return false;
    if (tl_lint_most(w->l, a) * tl_lint_most(w->l, b) <= INT32_MAX)
        return false;
    if (undoes_quotient(w, a, b) || undoes_quotient(w, b, a))
        return false;
    return !tl_required_together(w->l, launch_number_of(w, a), launch_number_of(w, b), TILE_HX_MUL);
}

static void warn(const Walk *w, const TlOp *op)
{
    TlDiag *row = tl_diag(tl_lint_diags(w->l), op->loc, TL_W0616);
    row->label = "write (i64) before its first factor";
}

static void look(Walk *w, const TlValue *v);

static void look_operands(Walk *w, const TlOp *op, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to && i < op->nin; i++)
        look(w, tl_in(op, i));
}

/* What a branch or a loop passes on as its value number i. */
static void look_passed(Walk *w, const TlOp *op, uint32_t i, bool result)
{
    if (op->opcode == TL_OP_IF && result)
        for (uint32_t r = 0; r < 2; r++)
            look(w, tl_in(op->regions[r]->last, i));
    if (op->opcode == TL_OP_FOR && (result || i > 0)) {
        i -= !result;
        look(w, tl_in(op, 3 + i));
        look(w, tl_in(op->regions[0]->last, i));
    }
    if (op->opcode == TL_OP_WHILE) {
        look(w, tl_in(op, i));
        look(w, tl_in(op->regions[1]->last, i));
    }
}

static void look(Walk *w, const TlValue *v)
{
    const TlOp *op = v->def;
    if (w->seen[v->id] || !tl_is_int(v->type->dtype) || v->type->ptr)
        return;
    w->seen[v->id] = true;
    if (!op || op->nregions) {
        if (op || v->block->parent)
            look_passed(w, op ? op : v->block->parent, v->index, op != NULL);
        return;
    }
    if (is_narrow_product(w, op)) {
        warn(w, op);
        return;
    }
    static const bool PASSES_ON[TL_OP_COUNT] = {
        [TL_OP_ADD] = true,    [TL_OP_SUB] = true,       [TL_OP_MUL] = true,
        [TL_OP_NEG] = true,    [TL_OP_CAST] = true,      [TL_OP_SELECT] = true,
        [TL_OP_EXPAND] = true, [TL_OP_BROADCAST] = true, [TL_OP_RESHAPE] = true,
        [TL_OP_TRANS] = true};
    if (PASSES_ON[op->opcode])
        look_operands(w, op, op->opcode == TL_OP_SELECT, op->nin);
}

void tl_lint_offsets(const TlLint *l)
{
    Walk w = {.l = l};
    for (const TlOp *op = tl_lint_first(l); op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_PTR_ADD)
            continue;
        if (!w.seen)
            w.seen = TL_NEW_ARRAY(l->s->arena, bool, l->fn->nvalues + 1);
        look(&w, tl_in(op, 1));
    }
}
