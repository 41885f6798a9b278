/* truncated-grid: an axis of the grid is a quotient, and nothing says that it has no rest.
 *
 *     grid(N / B)        cdiv(N, B) programs have all of it
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
    if (constant_at(e, b, end - 1, &n) && (n < 1 || divisor_of(l, e, 0, b, n) == n))
        return;
    const char *of = tl_source_text(l->s->ctx, written->a->begin, written->a->end),
               *by = tl_source_text(l->s->ctx, written->b->begin, written->b->end);
    TlDiag *row = tl_diag(tl_lint_diags(l), written->loc, TL_W0617,
                          tl_format(l->s->arena, "%s / %s", of, by));
    bool product = written->a->kind == TL_EX_BINARY && !written->a->parens;
    row->label = tl_format(l->s->arena, "write cdiv(%s, %s), or add require(%s%s%s %% %s == 0)", of,
                           by, product ? "(" : "", of, product ? ")" : "", by);
}

void tl_lint_grid(const TlLint *l)
{
    for (uint32_t i = 0; i < l->item->clauses.len; i++) {
        const TlClause *c = &l->item->clauses.data[i];
        uint32_t axis = 0;
        for (uint32_t k = 0; c->kind == TL_CL_GRID && k < c->args.len; k++)
            if (!c->args.data[k].name && axis < l->info->grid.len)
                warn_quotient(l, c->args.data[k].value,
                              &l->info->exprs.data[l->info->grid.data[axis++]]);
    }
}
