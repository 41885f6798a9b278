/* What is wrong with a grid.
 *
 * truncated-grid: an axis is a quotient, and nothing says that it has no rest.
 *
 *     grid(N / B)        cdiv(N, B) programs have all of it
 *
 * swapped-grid: pid(a) goes along another extent than axis a counts, which another axis counts.
 *
 *     grid(cdiv(N, B), cdiv(M, B))        with x[pid(0) * B +: B, pid(1) * B +: B] of x[M, N]
 */
#include "frontend/lint.h"

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Where the part of the code that gives the value on the stack behind `end` begins. */
static uint32_t begin_of(const TlHostExpr *e, uint32_t end)
{
    int want = 1;
    while (end > 0 && want > 0)
        want += (int)tile_hx_operands(e->code.data[--end].op) - 1;
    return end;
}

/* A number of the code from `from` to `end`: a constant, or what a launch knows. */
static bool constant_at(const TlHostExpr *e, uint32_t from, uint32_t end, int64_t *out)
{
    *out = e->code.data[from].imm;
    return end - from == 1 && e->code.data[from].op == TILE_HX_CONST;
}

static TlLaunchNumber number_at(const TlHostExpr *e, uint32_t from, uint32_t end)
{
    const tile_hx_ins *c = &e->code.data[from];
    bool one = end - from == 1 && (c->op == TILE_HX_SYM || c->op == TILE_HX_ARG);
    return (TlLaunchNumber){c->op == TILE_HX_ARG, one ? (int32_t)c->imm : -1};
}

/* The greatest divisor of n that is seen to divide the value. */
static int64_t divisor_of(const TlLint *l, const TlHostExpr *e, uint32_t from, uint32_t end,
                          int64_t n)
{
    TL_ASSERT(from < end && n > 0, "no code, or multiples of %lld", (long long)n);
    int64_t c;
    if (constant_at(e, from, end, &c))
        return gcd(n, c < 0 ? -c : c);
    TlLaunchNumber number = number_at(e, from, end);
    for (int64_t unit = n; number.index >= 0 && unit > 1; unit--)
        if (n % unit == 0 && tl_required_multiple(l, number, unit))
            return unit;
    uint32_t op = e->code.data[end - 1].op;
    if (number.index >= 0 || (op != TILE_HX_MUL && op != TILE_HX_ADD && op != TILE_HX_SUB))
        return 1;
    uint32_t middle = begin_of(e, end - 1);
    int64_t a = divisor_of(l, e, from, middle, n);
    if (op != TILE_HX_MUL)
        return gcd(a, divisor_of(l, e, middle, end - 1, n));
    return a * divisor_of(l, e, middle, end - 1, n / a);
}

static bool is_same(TlLaunchNumber a, TlLaunchNumber b)
{
    return a.is_arg == b.is_arg && a.index == b.index;
}

/* Does a clause say that the number is equal to what n is seen to divide: N == m * B? */
static bool is_equal_to_multiple(const TlLint *l, TlLaunchNumber number, int64_t n)
{
    const TlHostExpr *e;
    for (uint32_t i = 0; number.index >= 0 && (e = tl_required_clause(l, i)) != NULL; i++) {
        uint32_t end = e->code.len - 1;
        if (e->code.len < 3 || e->code.data[end].op != TILE_HX_EQ)
            continue;
        uint32_t middle = begin_of(e, end);
        TlLaunchNumber left = number_at(e, 0, middle), right = number_at(e, middle, end);
        if ((is_same(left, number) && divisor_of(l, e, middle, end, n) == n) ||
            (is_same(right, number) && divisor_of(l, e, 0, middle, n) == n))
            return true;
    }
    return false;
}

/* (N + B - 1) / B rounds up, and who subtracts has thought of what is left. */
static bool is_sum(const TlHostExpr *e, uint32_t end)
{
    uint32_t op = e->code.data[end - 1].op;
    return op == TILE_HX_ADD || op == TILE_HX_SUB;
}

/* a, b: where the divisor and what is behind it begin. Does a clause say a % b, or a / b * b? */
static bool is_required(const TlLint *l, const TlHostExpr *e, uint32_t b)
{
    typedef TL_VEC(tile_hx_ins) Code;
    Code code = {0};
    for (uint32_t i = 0; i < e->code.len; i++)
        tl_vec_push(l->s->arena, &code, e->code.data[i]);
    code.data[code.len - 1].op = TILE_HX_REM;
    if (tl_required_code(l, code.data, code.len))
        return true;
    code.data[code.len - 1].op = TILE_HX_DIV;
    for (uint32_t i = b; i + 1 < e->code.len; i++)
        tl_vec_push(l->s->arena, &code, e->code.data[i]);
    tl_vec_push(l->s->arena, &code, (tile_hx_ins){TILE_HX_MUL, 0, 0});
    return tl_required_code(l, code.data, code.len);
}

static void warn_quotient(const TlLint *l, const TlExpr *written, const TlHostExpr *e)
{
    uint32_t end = e->code.len;
    if (written->kind != TL_EX_BINARY || written->u.op != TL_BIN_DIV || end < 3 ||
        e->code.data[end - 1].op != TILE_HX_DIV)
        return;
    uint32_t b = begin_of(e, end - 1);
    int64_t n;
    if (b == 0 || is_sum(e, b) || is_required(l, e, b))
        return;
    if (constant_at(e, b, end - 1, &n) &&
        (n < 1 || divisor_of(l, e, 0, b, n) == n ||
         is_equal_to_multiple(l, number_at(e, 0, b), n)))
        return;
    const char *of = tl_source_text(l->s->ctx, written->a->begin, written->a->end),
               *by = tl_source_text(l->s->ctx, written->b->begin, written->b->end);
    TlDiag *row = tl_diag(tl_lint_diags(l), written->loc, TL_W0617,
                          tl_format(l->s->arena, "%s / %s", of, by));
    bool product = written->a->kind == TL_EX_BINARY && !written->a->parens;
    row->label = tl_format(l->s->arena, "write cdiv(%s, %s), or add require(%s%s%s %% %s == 0)", of,
                           by, product ? "(" : "", of, product ? ")" : "", by);
}

/* ---- swapped-grid ---- */

static const TlLaunchNumber none = {false, -1};

/* The one number of the launch that an axis of the grid is computed from: N of cdiv(N, B). */
static TlLaunchNumber counted(const TlHostExpr *e)
{
    TlLaunchNumber n = none;
    for (uint32_t i = 0; i < e->code.len; i++) {
        const tile_hx_ins *c = &e->code.data[i];
        if (c->op != TILE_HX_SYM && c->op != TILE_HX_ARG)
            continue;
        if (n.index >= 0)
            return none;
        n = (TlLaunchNumber){c->op == TILE_HX_ARG, (int32_t)c->imm};
    }
    return n;
}

enum { MOST_USES = 64, MOST_PLACES = 16 };

/* The axes of views that pid(axis) goes along. */
typedef struct Places {
    const TlLint *l;
    bool unclear; /* it is used for more than starts and indices */
    uint32_t steps, n;
    TlLaunchNumber along[MOST_PLACES];
    const TlOp *first; /* with along[0] */
} Places;

static void add_place(Places *s, const TlUse *u)
{
    TlPlace p = tl_op_place(u->user);
    uint32_t axis = 0;
    while (axis < p.naxes && &p.index[axis] != u)
        axis++;
    TlLaunchNumber n = axis < p.naxes ? tl_lint_extent(s->l, p.base, axis) : none;
    s->unclear = s->unclear || n.index < 0 || s->n == MOST_PLACES;
    if (s->unclear)
        return;
    s->first = s->first ? s->first : u->user;
    s->along[s->n++] = n;
}

static void follow(Places *s, const TlValue *v)
{
    for (const TlUse *u = v->uses; u && !s->unclear; u = u->next) {
        const TlOp *op = u->user;
        int64_t n;
        if (s->steps++ >= MOST_USES) {
            s->unclear = true;
            return;
        }
        if (tl_attr(op, TL_ATTR_AXES)) {
            add_place(s, u);
            continue;
        }
        TlOpcode is = op->opcode;
        bool asks = is == TL_OP_LT || is == TL_OP_LE || is == TL_OP_GT || is == TL_OP_GE;
        if (asks) /* whether it is inside */
            continue;
        if (is == TL_OP_MUL)
            s->unclear = !tl_lint_constant(tl_in(op, 0), &n) && !tl_lint_constant(tl_in(op, 1), &n);
        if (is == TL_OP_MUL || is == TL_OP_ADD || is == TL_OP_SUB || is == TL_OP_CAST ||
            is == TL_OP_BROADCAST || is == TL_OP_EXPAND)
            follow(s, op->out[0]);
        else
            s->unclear = true;
    }
}

static Places places_of(const TlLint *l, uint32_t axis)
{
    Places s = {.l = l};
    for (const TlOp *op = tl_lint_first(l); op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_PID && tl_attr_int(op, TL_ATTR_AXIS, 0) == axis)
            follow(&s, op->out[0]);
    return s;
}

static bool goes_along(const Places *s, TlLaunchNumber n)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (tl_lint_same(s->along[i], n))
            return true;
    return false;
}

/* pid(a) never goes along what axis a of the grid counts, but along another axis of a view that has
 * both. */
static bool warn_other(const TlLint *l, uint32_t a, TlLaunchNumber own, TlLoc loc, const Places *s)
{
    const TlValue *view = tl_in(s->first, 0);
    bool has_own = false;
    for (uint32_t i = 0; i < view->type->rank; i++)
        has_own = has_own || tl_lint_same(own, tl_lint_extent(l, view, i));
    if (!has_own || tl_required_compared(l, own, s->along[0]) || !tl_warns_at(l->s, s->first->loc))
        return false;
    const char *name = tl_lint_name(l, s->along[0]);
    TlDiag *row =
        tl_diag(tl_lint_diags(l), loc, TL_W0618, a, tl_lint_name(l, own), a, name);
    row->label = tl_format(l->s->arena, "let the grid count along '%s'", name);
    tl_diag_note(tl_lint_diags(l), row, s->first->loc, "pid(%u) is used here", a);
    return true;
}

/* pid(a) never goes along what axis a of the grid counts, and it goes along what axis b counts. */
static bool warn_swapped(const TlLint *l, uint32_t a, TlLaunchNumber own, TlLoc loc)
{
    Places s = places_of(l, a);
    if (s.unclear || !s.n || own.index < 0 || goes_along(&s, own))
        return false;
    for (uint32_t b = 0; b < l->info->grid.len; b++) {
        TlLaunchNumber other = counted(&l->info->exprs.data[l->info->grid.data[b]]);
        if (b == a || tl_lint_same(own, other) || !goes_along(&s, other) ||
            tl_required_compared(l, own, other) || !tl_warns_at(l->s, s.first->loc))
            continue;
        TlDiag *row = tl_diag(tl_lint_diags(l), loc, TL_W0618, a, tl_lint_name(l, own), a,
                              tl_lint_name(l, other));
        row->label = tl_format(l->s->arena,
                               "exchange the axes %u and %u of the grid, or pid(%u) "
                               "and pid(%u)",
                               a, b, a, b);
        tl_diag_note(tl_lint_diags(l), row, s.first->loc, "pid(%u) is used here", a);
        return true;
    }
    return warn_other(l, a, own, loc, &s);
}

/* ---- both ---- */

void tl_lint_grid(const TlLint *l)
{
    bool swapped = false;
    for (uint32_t i = 0; i < l->item->clauses.len; i++) {
        const TlClause *c = &l->item->clauses.data[i];
        uint32_t axis = 0;
        for (uint32_t k = 0; c->kind == TL_CL_GRID && k < c->args.len; k++) {
            const TlExpr *written = c->args.data[k].value;
            if (c->args.data[k].name || axis >= l->info->grid.len)
                continue;
            const TlHostExpr *e = &l->info->exprs.data[l->info->grid.data[axis]];
            warn_quotient(l, written, e);
            swapped = swapped || warn_swapped(l, axis, counted(e), written->loc);
            axis++;
        }
    }
}
