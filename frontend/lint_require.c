/* What the require and assume clauses of a kernel say about one number that a launch knows, found
 * by trying values. A value is possible if no clause is false for it, whatever the other numbers
 * are:
 *
 *     require(N <= 2 * B, N % B == 0)      with B = 64: N is 0, 64 or 128
 *
 * All values near 0 are tried, and larger ones near powers of two and near the constants of the
 * clauses, their halves and their doubles. A number that no clause names may be anything. */
#include "frontend/lint.h"

enum { MOST_TRIED = 4096, NEAR = 1, MOST_SHIFT = 6 };

typedef struct Word {
    bool known;
    int64_t v;
} Word;

/* ---- a clause, with one number given and the others unknown ---- */

static Word logical(tile_hx_op op, Word a, Word b)
{
    bool decides = op == TILE_HX_OR; /* whatever the other is */
    if ((a.known && (a.v != 0) == decides) || (b.known && (b.v != 0) == decides))
        return (Word){true, decides};
    return (Word){a.known && b.known, !decides};
}

static Word divided(tile_hx_op op, int64_t a, int64_t b)
{
    if (b <= 0)
        return (Word){0};
    return (Word){true, op == TILE_HX_REM ? a % b : a / b + (op == TILE_HX_CDIV && a % b > 0)};
}

/* What the operator leaves of its operands, of which only those are looked at that it has. */
static Word computed(tile_hx_op op, const Word *w)
{
    Word r = {.known = true};
    int64_t a = w[0].v, b = w[1].v;
    uint32_t n = tile_hx_operands(op);
    if (op == TILE_HX_AND || op == TILE_HX_OR)
        return logical(op, w[0], w[1]);
    if (!w[0].known || (n == 2 && !w[1].known) || (n == 1 && a == INT64_MIN))
        return (Word){0};
    switch (op) {
    case TILE_HX_ADD: r.known = !__builtin_add_overflow(a, b, &r.v); break;
    case TILE_HX_SUB: r.known = !__builtin_sub_overflow(a, b, &r.v); break;
    case TILE_HX_MUL: r.known = !__builtin_mul_overflow(a, b, &r.v); break;
    case TILE_HX_DIV:
    case TILE_HX_REM:
    case TILE_HX_CDIV: return divided(op, a, b);
    case TILE_HX_MIN: r.v = a < b ? a : b; break;
    case TILE_HX_MAX: r.v = a > b ? a : b; break;
    case TILE_HX_NEG: r.v = -a; break;
    case TILE_HX_ABS: r.v = a < 0 ? -a : a; break;
    case TILE_HX_NOT: r.v = !a; break;
    case TILE_HX_LT: r.v = a < b; break;
    case TILE_HX_LE: r.v = a <= b; break;
    case TILE_HX_EQ: r.v = a == b; break;
    case TILE_HX_NE: r.v = a != b; break;
    case TILE_HX_BAND: r.v = a & b; break;
    case TILE_HX_BOR: r.v = a | b; break;
    case TILE_HX_BXOR: r.v = a ^ b; break;
    case TILE_HX_SHL: r.v = (int64_t)((uint64_t)a << (b & 63)); break;
    case TILE_HX_SHR: r.v = a >> (b & 63); break;
    case TILE_HX_SELECT: return a ? w[1] : w[2];
    case TILE_HX_CONST: /* evaluate */
    case TILE_HX_SYM:
    case TILE_HX_ARG:
    case TILE_HX_SMS:
    case TILE_HX_AND: /* above */
    case TILE_HX_OR:
    case TILE_HX_I2F: /* floats are not followed */
    case TILE_HX_F2I:
    case TILE_HX_FADD:
    case TILE_HX_FSUB:
    case TILE_HX_FMUL:
    case TILE_HX_FDIV:
    case TILE_HX_FNEG:
    case TILE_HX_FMIN:
    case TILE_HX_FMAX:
    case TILE_HX_FLT:
    case TILE_HX_FLE:
    case TILE_HX_FEQ:
    case TILE_HX_FNE:
    case TILE_HX_COUNT: r.known = false;
    }
    return r;
}

static bool is_number(const tile_hx_ins *i, TlLaunchNumber n)
{
    return i->op == (uint32_t)(n.is_arg ? TILE_HX_ARG : TILE_HX_SYM) && i->imm == n.index;
}

static Word evaluate(const TlHostExpr *e, TlLaunchNumber n, int64_t value)
{
    Word stack[TILE_HX_MAX_STACK + 2] = {{0}};
    uint32_t at = 0;
    for (uint32_t i = 0; i < e->code.len; i++) {
        const tile_hx_ins *c = &e->code.data[i];
        tile_hx_op op = (tile_hx_op)c->op;
        TL_ASSERT(at <= TILE_HX_MAX_STACK, "a stack of %u", at);
        at -= tile_hx_operands(op);
        if (op == TILE_HX_CONST)
            stack[at] = (Word){true, c->imm};
        else if (op == TILE_HX_SYM || op == TILE_HX_ARG)
            stack[at] = (Word){is_number(c, n), value};
        else
            stack[at] = op == TILE_HX_SMS ? (Word){0} : computed(op, stack + at);
        at++;
    }
    TL_ASSERT(at == 1, "a clause leaves %u values", at);
    return stack[0];
}

/* ---- all clauses ---- */

static uint32_t number_of_clauses(const TlLint *l)
{
    return l->info->requires_.len + l->info->assumes.len;
}

static const TlHostExpr *clause_at(const TlLint *l, uint32_t i)
{
    uint32_t n = l->info->requires_.len;
    return &l->info->exprs.data[i < n ? l->info->requires_.data[i] : l->info->assumes.data[i - n]];
}

static bool names(const TlHostExpr *e, TlLaunchNumber n)
{
    for (uint32_t i = 0; i < e->code.len; i++)
        if (is_number(&e->code.data[i], n))
            return true;
    return false;
}

typedef struct Search {
    TL_VEC(const TlHostExpr *) clauses; /* that name the number */
    TlLaunchNumber n;
    int64_t least, most, unit;
    bool any, multiple; /* is there a possible value; is each one a multiple of the unit? */
} Search;

static void try_value(Search *s, int64_t v)
{
    if (v < 0 || v > INT32_MAX)
        return;
    for (uint32_t i = 0; i < s->clauses.len; i++) {
        Word w = evaluate(s->clauses.data[i], s->n, v);
        if (w.known && !w.v)
            return;
    }
    s->least = !s->any || v < s->least ? v : s->least;
    s->most = !s->any || v > s->most ? v : s->most;
    s->any = true;
    s->multiple = s->multiple && v % s->unit == 0;
}

static void try_near(Search *s, int64_t v)
{
    for (int64_t d = -NEAR; d <= NEAR; d++)
        try_value(s, v + d);
}

static void try_constants(Search *s)
{
    for (uint32_t i = 0; i < s->clauses.len; i++)
        for (uint32_t k = 0; k < s->clauses.data[i]->code.len; k++) {
            const tile_hx_ins *c = &s->clauses.data[i]->code.data[k];
            for (int shift = 0; c->op == TILE_HX_CONST && shift <= MOST_SHIFT; shift++) {
                try_near(s, c->imm >> shift);
                if (c->imm > 0 && c->imm <= INT32_MAX)
                    try_near(s, c->imm << shift);
            }
        }
}

static Search search(const TlLint *l, TlLaunchNumber n, int64_t unit)
{
    TL_ASSERT(unit > 0, "multiples of %lld", (long long)unit);
    Search s = {.n = n, .most = INT32_MAX, .unit = unit};
    for (uint32_t i = 0; n.index >= 0 && i < number_of_clauses(l); i++)
        if (names(clause_at(l, i), n))
            tl_vec_push(l->s->arena, &s.clauses, clause_at(l, i));
    if (!s.clauses.len)
        return s;
    s.multiple = true;
    for (int64_t v = 0; v <= MOST_TRIED; v++)
        try_value(&s, v);
    for (int shift = 1; shift < 32; shift++)
        try_near(&s, (int64_t)1 << shift);
    try_constants(&s);
    return s;
}

int64_t tl_required_least(const TlLint *l, TlLaunchNumber n)
{
    return search(l, n, 1).least;
}

int64_t tl_required_most(const TlLint *l, TlLaunchNumber n)
{
    return search(l, n, 1).most;
}

bool tl_required_multiple(const TlLint *l, TlLaunchNumber n, int64_t unit)
{
    return unit == 1 || search(l, n, unit).multiple;
}

const TlHostExpr *tl_required_clause(const TlLint *l, uint32_t i)
{
    return i < number_of_clauses(l) ? clause_at(l, i) : NULL;
}

bool tl_required_code(const TlLint *l, const tile_hx_ins *code, uint32_t n)
{
    for (uint32_t i = 0; i < number_of_clauses(l); i++) {
        const TlHostExpr *e = clause_at(l, i);
        for (uint32_t from = 0; from + n <= e->code.len; from++) {
            uint32_t same = 0;
            while (same < n && e->code.data[from + same].op == code[same].op &&
                   e->code.data[from + same].imm == code[same].imm)
                same++;
            if (same == n)
                return true;
        }
    }
    return false;
}

bool tl_required_together(const TlLint *l, TlLaunchNumber a, TlLaunchNumber b, tile_hx_op op)
{
    for (uint32_t i = 0; i < number_of_clauses(l) && a.index >= 0 && b.index >= 0; i++) {
        const TlHostExpr *e = clause_at(l, i);
        bool there = false;
        for (uint32_t k = 0; k < e->code.len; k++)
            there = there || e->code.data[k].op == (uint32_t)op;
        if (there && names(e, a) && names(e, b))
            return true;
    }
    return false;
}

bool tl_required_compared(const TlLint *l, TlLaunchNumber a, TlLaunchNumber b)
{
    return tl_required_together(l, a, b, TILE_HX_EQ) || tl_required_together(l, a, b, TILE_HX_LE) ||
           tl_required_together(l, a, b, TILE_HX_LT);
}
