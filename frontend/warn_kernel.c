/* Warnings about one instance of a kernel, read from its IR and its clauses: axes of pid that the
 * grid lacks, updates by several programs of one place, slices that leave the rest of an axis,
 * outer products of index vectors, and clauses that the target ignores. Only positions in the root
 * module are reported: a library's function cannot know who calls it. */
#include "frontend/advice.h"
#include "frontend/lint.h"
#include <string.h>

typedef TlLint Warn;

static TlDiags *diags(const Warn *w)
{
    return tl_lint_diags(w);
}

static TlOp *first_op(const Warn *w)
{
    return tl_lint_first(w);
}

static bool is_atomic(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & F_ATOMIC;
}

/* ---- grid-axis ---- */

static void warn_grid_axis(const Warn *w, const TlOp *op)
{
    bool is_pid = op->opcode == TL_OP_PID;
    int64_t axis = tl_attr_int(op, TL_ATTR_AXIS, 0);
    uint32_t naxes = w->info->grid.len;
    if ((!is_pid && op->opcode != TL_OP_NPID) || !naxes || axis < naxes)
        return;
    tl_diag(diags(w), op->loc, TL_W0603, is_pid ? "pid" : "npid", (long long)axis, !is_pid,
            w->item->name, naxes, naxes == 1 ? "axis" : "axes");
}

/* ---- outer-index ---- */

static void warn_outer_index(const Warn *w, const TlOp *op)
{
    if (op->opcode != TL_OP_STORE && !is_atomic(op))
        return;
    TlPlace p = tl_op_place(op);
    uint32_t vectors = 0;
    for (uint32_t i = 0; i < p.naxes; i++)
        vectors += p.axes[i].kind == TL_AXIS_TILE && p.index[i].value->type->rank == 1;
    if (vectors < 2)
        return;
    TlDiag *row = tl_diag(diags(w), op->loc, TL_W0606, vectors);
    row->label = "for an element of each, write at(x, i, j); for all combinations, index with "
                 "col(i), row(j)";
}

/* ---- unguarded-add ---- */

/* Which values differ between the programs along one axis of a grid: those computed from pid of the
 * axis, and the results of atomics. */
typedef struct Differ {
    int64_t axis; /* ANY_AXIS: the kernel has no grid clause */
    bool *value;  /* by id */
    bool changed;
} Differ;

enum { ANY_AXIS = -1 };

static void join(Differ *d, const TlValue *to, bool differs)
{
    d->changed |= differs && !d->value[to->id];
    d->value[to->id] |= differs;
}

static bool operands_differ(const Differ *d, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++)
        if (d->value[tl_in(op, i)->id])
            return true;
    return false;
}

/* Operands `from`... of an op, to as many values. */
static void pass_on(Differ *d, const TlOp *op, uint32_t from, TlValue *const *to, uint32_t n)
{
    TL_ASSERT(from + n <= op->nin, "operands %u to %u of %u", from, from + n, op->nin);
    for (uint32_t i = 0; i < n; i++)
        join(d, to[i], d->value[tl_in(op, from + i)->id]);
}

static void loop_differs(Differ *d, const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_FOR, "%s is no loop", tl_op_info(op->opcode)->text);
    const TlBlock *body = op->regions[0];
    bool bounds = d->value[tl_in(op, 0)->id] || d->value[tl_in(op, 2)->id];
    join(d, body->args[0], bounds);
    pass_on(d, op, 3, body->args + 1, op->nout);
    pass_on(d, body->last, 0, body->args + 1, op->nout);
    pass_on(d, op, 3, op->out, op->nout);
    pass_on(d, body->last, 0, op->out, op->nout);
}

static void while_differs(Differ *d, const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_WHILE, "%s is no loop", tl_op_info(op->opcode)->text);
    const TlBlock *test = op->regions[0], *body = op->regions[1];
    pass_on(d, op, 0, test->args, op->nout);
    pass_on(d, body->last, 0, test->args, op->nout);
    pass_on(d, test->last, 1, body->args, op->nout);
    pass_on(d, test->last, 1, op->out, op->nout);
}

static void branch_differs(Differ *d, const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_IF, "%s is no branch", tl_op_info(op->opcode)->text);
    for (uint32_t r = 0; r < 2; r++)
        pass_on(d, op->regions[r]->last, 0, op->out, op->nout);
    for (uint32_t i = 0; i < op->nout; i++)
        join(d, op->out[i], d->value[tl_in(op, 0)->id]);
}

static void op_differs(Differ *d, const TlOp *op)
{
    bool own = d->axis == ANY_AXIS || tl_attr_int(op, TL_ATTR_AXIS, 0) == d->axis;
    bool differs = (op->opcode == TL_OP_PID && own) || is_atomic(op);
    if (op->opcode == TL_OP_FOR)
        loop_differs(d, op);
    else if (op->opcode == TL_OP_WHILE)
        while_differs(d, op);
    else if (op->opcode == TL_OP_IF)
        branch_differs(d, op);
    else
        differs = differs || operands_differ(d, op);
    for (uint32_t i = 0; i < op->nout; i++)
        join(d, op->out[i], differs);
}

enum { MOST_PASSES = 32 }; /* over the kernel; then all is assumed to differ */

static Differ find_differences(const Warn *w, int64_t axis)
{
    Differ d = {.axis = axis,
                .value = TL_NEW_ARRAY(w->s->arena, bool, w->fn->nvalues + 1),
                .changed = true};
    for (int passes = 0; d.changed; passes++) {
        TL_ASSERT(passes <= MOST_PASSES + 1, "what differs is never settled");
        d.changed = false;
        if (passes == MOST_PASSES) /* give up: assume that all differ */
            memset(d.value, true, w->fn->nvalues + 1);
        for (TlOp *op = first_op(w); op; op = tl_walk_next(op, NULL))
            op_differs(&d, op);
    }
    return d;
}

/* Does it depend on the program whether the op runs? */
static bool is_guarded(const Differ *d, const TlOp *op)
{
    for (const TlOp *outer = op->block->parent; outer; op = outer, outer = op->block->parent) {
        if (outer->opcode == TL_OP_IF && d->value[tl_in(outer, 0)->id])
            return true;
        if (outer->opcode == TL_OP_FOR &&
            (d->value[tl_in(outer, 0)->id] || d->value[tl_in(outer, 1)->id]))
            return true;
        if (outer->opcode == TL_OP_WHILE && d->value[tl_in(outer->regions[0]->last, 0)->id])
            return true;
    }
    return false;
}

/* What made the value, before casts and broadcasts. */
static const TlOp *made_by(const TlValue *v)
{
    while (v->def && (v->def->opcode == TL_OP_CAST || v->def->opcode == TL_OP_BROADCAST))
        v = tl_in(v->def, 0);
    return v->def;
}

/* The same value, or pid of the same axis, or the same of the same. */
static bool is_same_index(const TlValue *a, const TlValue *b, int steps)
{
    const TlOp *x = a->def, *y = b->def;
    uint64_t m, n;
    if (a == b)
        return true;
    if (tl_value_is_const(a, &m) && tl_value_is_const(b, &n))
        return m == n && a->type == b->type;
    if (!x || !y || x->opcode != y->opcode || x->nin != y->nin || x->nregions || steps == 0)
        return false;
    if (x->opcode == TL_OP_PID)
        return tl_attr_int(x, TL_ATTR_AXIS, 0) == tl_attr_int(y, TL_ATTR_AXIS, 0);
    bool computes = x->nin == 2 && (tl_op_info(x->opcode)->flags & F_ELEM);
    return computes && is_same_index(tl_in(x, 0), tl_in(y, 0), steps - 1) &&
           is_same_index(tl_in(x, 1), tl_in(y, 1), steps - 1);
}

static bool reads_place(const TlOp *from, const TlPlace *to)
{
    enum { MOST_LEVELS = 4 };
    if (!from || from->opcode != TL_OP_LOAD || !tl_attr(from, TL_ATTR_AXES) ||
        tl_in(from, 0) != to->base)
        return false;
    for (uint32_t i = 0; i < to->naxes; i++)
        if (!is_same_index(tl_in(from, 1 + i), to->index[i].value, MOST_LEVELS))
            return false;
    return true;
}

/* Is the op a store of a value computed from the same place: `view[...] op= t`? */
static bool is_update(const TlOp *op)
{
    if (op->opcode != TL_OP_STORE || !tl_attr(op, TL_ATTR_AXES))
        return false;
    TlPlace to = tl_op_place(op);
    const TlOp *made = made_by(to.value);
    if (!made || made->nin < 2 || made->nregions)
        return false;
    return reads_place(made_by(tl_in(made, 0)), &to) || reads_place(made_by(tl_in(made, 1)), &to);
}

static bool has_op(const TlHostExpr *e, tile_hx_op op)
{
    for (uint32_t i = 0; i < e->code.len; i++)
        if (e->code.data[i].op == (uint32_t)op)
            return true;
    return false;
}

/* pid % G, pid / G, where a launch knows G: may the grid have more than G programs? Not one of G,
 * or of fewer. */
static bool may_exceed(const Warn *w, const TlOp *pid, const TlOp *op)
{
    TlLaunchNumber n = tl_lint_number(w, tl_in(op, 1));
    int64_t axis = tl_attr_int(pid, TL_ATTR_AXIS, 0);
    if ((op->opcode != TL_OP_REM && op->opcode != TL_OP_DIV) || n.index < 0 ||
        axis >= w->info->grid.len)
        return false;
    const TlHostExpr *e = &w->info->exprs.data[w->info->grid.data[axis]];
    if (has_op(e, TILE_HX_MIN) || has_op(e, TILE_HX_SELECT) || has_op(e, TILE_HX_SMS))
        return false;
    for (uint32_t i = 0; i < e->code.len; i++) {
        const tile_hx_ins *c = &e->code.data[i];
        TlLaunchNumber own = {c->op == TILE_HX_ARG, (int32_t)c->imm};
        bool is_number = c->op == TILE_HX_SYM || c->op == TILE_HX_ARG;
        if (is_number && ((tl_lint_same(own, n) && !has_op(e, TILE_HX_MUL)) ||
                          tl_required_compared(w, own, n)))
            return false;
    }
    return tl_lint_most(w, pid->out[0]) > 1;
}

/* pid % 2, pid / 2, pid & 1, pid >> 1 as the only index that differs: programs share an element. */
static bool is_shared(const Warn *w, const TlValue *index)
{
    int64_t c;
    const TlOp *op, *pid;
    for (op = tl_lint_uncast(index)->def; op; op = tl_lint_uncast(tl_in(op, 0))->def) {
        bool moves = op->opcode == TL_OP_MUL || op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB;
        if (op->nin != 2 || (moves && !tl_lint_constant(tl_in(op, 1), &c)))
            return false;
        if (!moves)
            break;
    }
    if (!op)
        return false;
    pid = tl_lint_uncast(tl_in(op, 0))->def;
    if (!pid || pid->opcode != TL_OP_PID)
        return false;
    if (!tl_lint_constant(tl_in(op, 1), &c))
        return may_exceed(w, pid, op);
    int64_t most = tl_lint_most(w, pid->out[0]);
    return (op->opcode == TL_OP_REM && most > c) ||
           (op->opcode == TL_OP_DIV && c > 1 && most > 1) ||
           (op->opcode == TL_OP_SHR && c > 0 && most > 1) ||
           (op->opcode == TL_OP_AND && most > c + 1);
}

/* Have the programs along an axis places of their own? */
static bool has_own_place(const Warn *w, const Differ *d, const TlPlace *p)
{
    const TlValue *differs = NULL;
    uint32_t n = d->value[p->base->id];
    for (uint32_t i = 0; i < p->naxes; i++)
        if (d->value[p->index[i].value->id])
            differs = p->index[i].value, n++;
    return n > 1 || (n == 1 && (!differs || !is_shared(w, differs)));
}

/* Do programs take turns? They need an acquiring atomic for it. */
static bool takes_turns(const Warn *w)
{
    for (const TlOp *op = first_op(w); op; op = tl_walk_next(op, NULL)) {
        int64_t order = tl_attr_int(op, TL_ATTR_ORDER, TL_ORDER_RELAXED);
        if (order == TL_ORDER_ACQUIRE || order == TL_ORDER_ACQ_REL)
            return true;
    }
    return false;
}

static bool is_one_program(const Warn *w, uint32_t axis)
{
    TL_ASSERT(axis < w->info->grid.len, "axis %u of %u", axis, w->info->grid.len);
    const TlHostExpr *e = &w->info->exprs.data[w->info->grid.data[axis]];
    return e->code.len == 1 && e->code.data[0].op == TILE_HX_CONST && e->code.data[0].imm <= 1;
}

static const char *way_out(const Warn *w, const Differ *d, const TlPlace *p)
{
    bool some = false;
    for (uint32_t i = 0; i < p->naxes; i++)
        some = some || d->value[p->index[i].value->id];
    const char *of = d->axis == ANY_AXIS || w->info->grid.len < 2
                         ? "pid"
                         : tl_format(w->s->arena, "pid(%d)", (int)d->axis);
    return tl_format(w->s->arena,
                     some ? "several values of %s give one place: use atomic_add(place, value)"
                          : "no index depends on %s: use atomic_add(place, value), or let one "
                            "program do it",
                     of);
}

/* The differences along the axes that may have several programs. */
static uint32_t find_all_differences(const Warn *w, Differ *out)
{
    uint32_t n = 0;
    if (!w->info->grid.len)
        out[n++] = find_differences(w, ANY_AXIS);
    for (uint32_t axis = 0; axis < w->info->grid.len; axis++)
        if (!is_one_program(w, axis))
            out[n++] = find_differences(w, axis);
    TL_ASSERT(n <= TILE_MAX_GRID, "a grid of %u axes", n);
    return n;
}

static void warn_unguarded(const Warn *w)
{
    TlOp *op = first_op(w);
    while (op && !(is_update(op) && tl_warns_at(w->s, op->loc)))
        op = tl_walk_next(op, NULL);
    if (!op || takes_turns(w))
        return;
    Differ d[TILE_MAX_GRID];
    uint32_t n = find_all_differences(w, d);
    for (; op; op = tl_walk_next(op, NULL)) {
        if (!is_update(op) || !tl_warns_at(w->s, op->loc))
            continue;
        TlPlace p = tl_op_place(op);
        uint32_t i = 0;
        while (i < n && (has_own_place(w, &d[i], &p) || is_guarded(&d[i], op)))
            i++;
        if (i < n)
            tl_diag(diags(w), op->loc, TL_W0604)->label = way_out(w, &d[i], &p);
    }
}

/* ---- unrequired-tail ---- */

/* Does the expression contain the name, other than within a remainder? */
static bool bounds_somehow(const TlExpr *e, TlName name)
{
    for (; e && e->kind == TL_EX_BINARY && e->u.op != TL_BIN_REM; e = e->a)
        if (bounds_somehow(e->b, name))
            return true;
    if (!e || e->kind == TL_EX_BINARY)
        return false;
    if (e->kind == TL_EX_NAME)
        return e->u.name == name;
    for (uint32_t i = 0; i < e->args.len; i++)
        if (bounds_somehow(e->args.data[i].value, name))
            return true;
    return bounds_somehow(e->a, name) || bounds_somehow(e->b, name) || bounds_somehow(e->c, name);
}

/* For a comparison of the name with a known number: the greatest value that the name may have.
 * False: `e` is none. */
static bool greatest(const Warn *w, const TlExpr *e, TlName name, int64_t *out)
{
    static const int mirrored[] = {[TL_BIN_LT] = TL_BIN_GT, [TL_BIN_GT] = TL_BIN_LT,
                                   [TL_BIN_LE] = TL_BIN_GE, [TL_BIN_GE] = TL_BIN_LE,
                                   [TL_BIN_EQ] = TL_BIN_EQ, [TL_BIN_NE] = TL_BIN_NE};
    bool left = e->a->kind == TL_EX_NAME && e->a->u.name == name;
    bool right = e->b->kind == TL_EX_NAME && e->b->u.name == name;
    if (left == right || e->u.op < TL_BIN_LT || e->u.op > TL_BIN_NE)
        return false;
    TlArm arm;
    tl_arm_begin(w->s, &arm);
    TlVal v = tl_eval(w->s, left ? e->b : e->a);
    tl_arm_end(w->s, &arm);
    tl_arm_discard(&arm);
    int op = left ? e->u.op : mirrored[e->u.op];
    if (!tl_const_int_of(&v, out))
        return false;
    if (op == TL_BIN_GE || op == TL_BIN_GT || op == TL_BIN_NE)
        *out = INT64_MAX;
    *out -= op == TL_BIN_LT;
    return true;
}

/* Does the clause's condition bound the name by `width`? Conditions that are not understood count
 * as if they did. */
static bool keeps_below(const Warn *w, const TlExpr *e, TlName name, int32_t width)
{
    int64_t most;
    for (; e->kind == TL_EX_BINARY && e->u.op == TL_BIN_LAND; e = e->a)
        if (keeps_below(w, e->b, name, width))
            return true;
    if (e->kind == TL_EX_BINARY && greatest(w, e, name, &most))
        return most <= width;
    return bounds_somehow(e, name);
}

static bool is_required(const Warn *w, TlName name, int32_t width)
{
    TL_ASSERT(width > 0, "a slice of %d", (int)width);
    for (uint32_t i = 0; i < w->item->clauses.len; i++) {
        const TlClause *c = &w->item->clauses.data[i];
        if (c->kind != TL_CL_REQUIRE && c->kind != TL_CL_ASSUME)
            continue;
        for (uint32_t k = 0; k < c->args.len; k++)
            if (keeps_below(w, c->args.data[k].value, name, width))
                return true;
    }
    return false;
}

/* The symbol that is the extent of the axis of a parameter's view; -1: there is none. */
static int32_t symbol_of(const Warn *w, const TlValue *view, uint32_t axis)
{
    if (view->def || view->block != w->fn->body)
        return -1;
    const TlDim *d = &w->info->params.data[view->index].extent[axis];
    return d->kind == TILE_DIM_SYM ? (int32_t)d->value : -1;
}

static bool is_constant(const TlValue *v, uint64_t *bits)
{
    const TlOp *def = v->def;
    if (!def || def->opcode != TL_OP_CONST)
        return false;
    *bits = tl_attr(def, TL_ATTR_VALUE)->u.bits;
    return true;
}

static bool is_start(const TlPlace *p, uint32_t axis)
{
    uint64_t start;
    return p->axes[axis].kind == TL_AXIS_SLICE && is_constant(p->index[axis].value, &start) &&
           start == 0;
}

/* Does the access reach more of the axis than a slice from 0 would? A known position does not
 * tell. */
static bool goes_further(const TlPlace *p, uint32_t axis)
{
    uint64_t at;
    bool fixed = p->axes[axis].kind == TL_AXIS_SCALAR && is_constant(p->index[axis].value, &at);
    return !fixed && !is_start(p, axis);
}

/* How far slices from 0 reach along each symbol's axes; INT32_MAX: there is more than such slices.
 * Whatever else is done with a view than to access it and to ask for its extents may reach all. */
static int32_t *find_reach(const Warn *w)
{
    int32_t *reach = TL_NEW_ARRAY(w->s->arena, int32_t, w->info->syms.len + 1);
    for (const TlOp *op = first_op(w); op; op = tl_walk_next(op, NULL)) {
        bool access = tl_attr(op, TL_ATTR_AXES) != NULL;
        if (op->opcode == TL_OP_EXTENT || op->opcode == TL_OP_STRIDE)
            continue;
        TlPlace p = {0};
        if (access)
            p = tl_op_place(op);
        for (uint32_t i = 0; i < op->nin; i++) {
            const TlValue *v = tl_in(op, i);
            for (uint32_t a = 0; v->type->kind == TL_VIEW && a < v->type->rank; a++) {
                int32_t sym = symbol_of(w, v, a);
                if (sym >= 0 && (!access || goes_further(&p, a)))
                    reach[sym] = INT32_MAX;
                else if (sym >= 0 && p.axes[a].width > reach[sym])
                    reach[sym] = p.axes[a].width;
            }
        }
    }
    return reach;
}

/* The constant whose value is n, when there is one and only one; else n. */
static const char *constant_or_number(const Warn *w, int32_t n)
{
    const char *number = tl_format(w->s->arena, "%d", n), *name = NULL;
    for (uint32_t i = 0; i < w->info->consts.len; i++) {
        const TlConstBinding *c = &w->info->consts.data[i];
        if (strcmp(c->value, number) != 0)
            continue;
        if (name)
            return number;
        name = c->name;
    }
    return name ? name : number;
}

static void warn_slice(const Warn *w, const TlOp *op, const TlPlace *p, uint32_t axis,
                       const int32_t *reach)
{
    TL_ASSERT(axis < p->naxes, "axis %u of %u", axis, p->naxes);
    int32_t sym = symbol_of(w, p->base, axis), width = p->axes[axis].width;
    if (sym < 0 || reach[sym] != width || !is_start(p, axis) || p->axes[axis].step != 1 ||
        width == 1)
        return;
    TlName name = w->info->syms.data[sym].name;
    TlLaunchNumber n = {false, sym};
    if (is_required(w, name, width) || tl_required_most(w, n) <= width ||
        tl_required_least(w, n) >= width)
        return; /* all of the axis, or a part of it that is meant */
    TlDiag *row = tl_diag(diags(w), op->loc, TL_W0605, name);
    row->label = tl_format(w->s->arena, "add require(%s <= %s), or loop over the axis", name,
                           constant_or_number(w, width));
}

static void warn_tails(const Warn *w)
{
    const int32_t *reach = find_reach(w);
    for (const TlOp *op = first_op(w); op; op = tl_walk_next(op, NULL)) {
        if (!tl_attr(op, TL_ATTR_AXES) || !tl_warns_at(w->s, op->loc))
            continue;
        TlPlace p = tl_op_place(op);
        for (uint32_t a = 0; a < p.naxes; a++)
            warn_slice(w, op, &p, a, reach);
    }
}

/* ---- all ---- */

void tl_warn_kernel(TlSema *s, const TlItem *item, const TlFn *fn)
{
    TL_ASSERT(item->kind == TL_IT_KERNEL, "item kind %d is no kernel", (int)item->kind);
    Warn w = {.s = s, .item = item, .fn = fn, .info = fn->info};
    if (s->abstract || s->quiet_errors)
        return;
    for (const TlOp *op = first_op(&w); op; op = tl_walk_next(op, NULL)) {
        if (!tl_warns_at(s, op->loc))
            continue;
        warn_grid_axis(&w, op);
        warn_outer_index(&w, op);
    }
    warn_unguarded(&w);
    warn_tails(&w);
    tl_lint_padding(&w);
    tl_lint_offsets(&w);
    tl_lint_axes(&w);
    tl_lint_outside(&w);
    if (item->loc.file == s->prog->root->unit->source)
        tl_lint_grid(&w);
}
