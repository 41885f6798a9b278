/* Index tiles that have one pattern, whatever the program: where images are scaled, or rows folded.
 *
 *     i = pid * 256 + iota(256)
 *     x[i / 2]                             start 128 * pid; 0 0 1 1 2 2 ...
 *     x[i % 2 == 0 ? (i - 1) / 2 : (i + 1) / 2]                -1 1 0 2 1 3 ...
 *
 * An element's index is a sum of scalars, divided by a power of two that divides it, and a number
 * that is known here. The numbers repeat, each time larger by a step: a vector of such elements is
 * a vector or two of memory, and one shuffle.
 *
 *   1. walk     the tile's elements by its ops, the scalars aside
 *   2. bound    what clamps all elements stays aside, too
 *   3. period   the shortest in which they repeat
 *
 * A quotient of a number below 0 is taken as rounded down, not toward 0. Either is 0 or less, so
 * that nothing may be added to it; bounds make both the same, and positions below 0 are tested. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum { MOST_ELEMENTS = 4096, MOST_VISITED = 64 }; /* walks visit what is shared again */
enum { FAR = 1 << 20 };                           /* numbers are no farther from 0 */

typedef struct Pattern {
    TlNestAffine sum; /* its scalars and bounds */
    int64_t *at;      /* by element */
    bool rounds_down;
} Pattern;

typedef struct Walk {
    const TlNests *plan;
    int64_t n;
    int visited;
} Walk;

static bool walk(Walk *w, TlValue *v, Pattern *p);

/* May more be computed from it? */
static bool walk_open(Walk *w, TlValue *v, Pattern *p)
{
    return walk(w, v, p) && !p->rounds_down && !p->sum.least && !p->sum.most;
}

static bool is_near(const Walk *w, const Pattern *p)
{
    for (int64_t i = 0; i < w->n; i++)
        if (p->at[i] < -FAR || p->at[i] > FAR)
            return false;
    return true;
}

/* Is the sum of the scalars a multiple of 2^shift, as each of them is? */
static bool divides(const Walk *w, const TlNestAffine *a, int shift)
{
    for (uint32_t i = 0; i < a->nterms; i++)
        if (shift < 0 ||
            tl_axis_facts(w->plan->axis, a->term[i])->divisibility[0] % ((int64_t)1 << shift))
            return false;
    return true;
}

/* -1: it is no power of two, or a large one. */
static int log2_of(TlWideInt n)
{
    enum { MOST = 20 };
    int shift = 0;
    while (shift < MOST && (TlWideInt)1 << shift < n)
        shift++;
    return (TlWideInt)1 << shift == n ? shift : -1;
}

/* ---- 1. walk ---- */

static bool add(Walk *w, const TlOp *op, Pattern *p)
{
    Pattern q;
    bool minus = op->opcode == TL_OP_SUB;
    if (!walk_open(w, tl_in(op, 0), p) || !walk_open(w, tl_in(op, 1), &q) ||
        (p->sum.nterms && q.sum.nterms && p->sum.shift != q.sum.shift) ||
        p->sum.nterms + q.sum.nterms > TL_NEST_TERMS)
        return false;
    p->sum.shift = q.sum.nterms ? q.sum.shift : p->sum.shift;
    for (uint32_t i = 0; i < q.sum.nterms; i++) {
        p->sum.term[p->sum.nterms] = q.sum.term[i];
        p->sum.minus[p->sum.nterms++] = q.sum.minus[i] != minus;
    }
    for (int64_t i = 0; i < w->n; i++)
        p->at[i] += minus ? -q.at[i] : q.at[i];
    return is_near(w, p);
}

/* By a power of two that divides the scalars; where there are none, by any number. */
static bool divide(Walk *w, const TlOp *op, Pattern *p)
{
    TlWideInt by;
    bool shifts = op->opcode == TL_OP_SHR;
    if (!walk_open(w, tl_in(op, 0), p) || !tl_const_int_value(tl_in(op, 1), &by) || by < 1 ||
        by > (shifts ? 20 : FAR))
        return false;
    int shift = shifts ? (int)by : log2_of(by);
    int64_t n = shifts ? (int64_t)1 << by : (int64_t)by;
    if (!divides(w, &p->sum, p->sum.shift + shift) || (p->sum.nterms && shift < 0))
        return false;
    p->sum.shift += p->sum.nterms ? shift : 0;
    for (int64_t i = 0; i < w->n; i++) {
        int64_t x = p->at[i];
        p->rounds_down |= !shifts && x < 0;
        p->at[i] = x / n - (x % n < 0);
    }
    return true;
}

/* What is left of a power of two that divides the scalars. */
static bool remain(Walk *w, const TlOp *op, Pattern *p)
{
    TlWideInt by;
    bool masks = op->opcode == TL_OP_AND;
    if (!walk_open(w, tl_in(op, 0), p) || !tl_const_int_value(tl_in(op, 1), &by) || by < 1)
        return false;
    int shift = log2_of(masks ? by + 1 : by);
    if (shift < 0 || !divides(w, &p->sum, p->sum.nterms ? p->sum.shift + shift : 0))
        return false;
    for (int64_t i = 0; i < w->n; i++) {
        if (!masks && p->at[i] < 0)
            return false;
        p->at[i] &= ((int64_t)1 << shift) - 1;
    }
    p->sum.nterms = 0;
    p->sum.shift = 0;
    return true;
}

static bool compare(TlOpcode o, int64_t a, int64_t b)
{
    if (o == TL_OP_EQ || o == TL_OP_NE)
        return (a == b) == (o == TL_OP_EQ);
    if (o == TL_OP_LT || o == TL_OP_GE)
        return (a < b) == (o == TL_OP_LT);
    return (a > b) == (o == TL_OP_GT);
}

/* The number or scalar that all elements are. */
static bool same_number(const TlValue *a, const TlValue *b)
{
    uint64_t x, y;
    if (a == b || !a || !b)
        return a == b;
    if (tl_value_is_const(a, &x) && tl_value_is_const(b, &y))
        return x == y;
    return a->def && b->def && a->def->opcode == TL_OP_BROADCAST &&
           b->def->opcode == TL_OP_BROADCAST && tl_in(a->def, 0) == tl_in(b->def, 0);
}

static bool same_sum(const TlNestAffine *a, const TlNestAffine *b)
{
    bool same = a->nterms == b->nterms && a->shift == b->shift && a->least_wins == b->least_wins &&
                same_number(a->least, b->least) && same_number(a->most, b->most);
    for (uint32_t i = 0; same && i < a->nterms; i++)
        same = a->term[i] == b->term[i] && a->minus[i] == b->minus[i];
    return same;
}

/* One of two patterns of the same scalars and bounds, as numbers compare. */
static bool choose(Walk *w, const TlOp *op, Pattern *p)
{
    const TlOp *c = tl_in(op, 0)->def;
    Pattern x, y, b;
    if (!c || c->opcode < TL_OP_EQ || c->opcode > TL_OP_GE || !walk_open(w, tl_in(c, 0), &x) ||
        !walk_open(w, tl_in(c, 1), &y) || x.sum.nterms || y.sum.nterms ||
        !walk(w, tl_in(op, 1), p) || !walk(w, tl_in(op, 2), &b) || !same_sum(&p->sum, &b.sum))
        return false;
    p->rounds_down |= b.rounds_down;
    for (int64_t i = 0; i < w->n; i++)
        p->at[i] = compare(c->opcode, x.at[i], y.at[i]) ? p->at[i] : b.at[i];
    return true;
}

/* ---- 2. bound ---- */

static bool set_bound(Walk *w, const TlOp *op, Pattern *p)
{
    bool max = op->opcode == TL_OP_MAX;
    for (uint32_t i = 0; i < 2; i++) {
        TlValue *x = tl_in(op, i);
        uint64_t bits;
        bool is_one = tl_value_is_const(x, &bits) || (x->def && x->def->opcode == TL_OP_BROADCAST &&
                                                      tl_in(x->def, 0)->type->rank == 0);
        if (!is_one)
            continue;
        if (!walk(w, tl_in(op, 1 - i), p) || (max ? p->sum.least : p->sum.most))
            return false;
        *(max ? &p->sum.least : &p->sum.most) = x;
        p->sum.least_wins = max;
        return true;
    }
    return false;
}

/* A number of all elements, a scalar, or the elements' own numbers. */
static bool is_leaf(Walk *w, const TlValue *v, Pattern *p)
{
    const TlOp *op = v->def;
    TlWideInt n = 0;
    bool is_scalar = op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0;
    if (!is_scalar && op->opcode != TL_OP_IOTA && !tl_const_int_value(v, &n))
        return false;
    *p = (Pattern){.at = TL_NEW_ARRAY(w->plan->arena, int64_t, w->n)};
    for (int64_t i = 0; i < w->n; i++)
        p->at[i] = op->opcode == TL_OP_IOTA ? i : (int64_t)n;
    if (is_scalar)
        p->sum.term[p->sum.nterms++] = tl_in(op, 0);
    return n >= -FAR && n <= FAR;
}

static bool walk(Walk *w, TlValue *v, Pattern *p)
{
    static bool (*const WAYS[TL_OP_COUNT])(Walk * w, const TlOp *op, Pattern *p) = {
        [TL_OP_ADD] = add,       [TL_OP_SUB] = add,       [TL_OP_DIV] = divide,
        [TL_OP_SHR] = divide,    [TL_OP_REM] = remain,    [TL_OP_AND] = remain,
        [TL_OP_SELECT] = choose, [TL_OP_MIN] = set_bound, [TL_OP_MAX] = set_bound};
    const TlOp *op = v->def;
    if (!op || v->type->rank != 1 || v->type->shape[0] != w->n || !tl_is_int(v->type->dtype) ||
        !tl_is_signed(v->type->dtype) || tl_dtype_bytes(v->type->dtype) < 4 ||
        ++w->visited > MOST_VISITED)
        return false;
    return WAYS[op->opcode] ? WAYS[op->opcode](w, op, p) : is_leaf(w, v, p);
}

/* ---- 3. period ---- */

static bool repeats(const Walk *w, const Pattern *p, int period)
{
    for (int64_t i = period; i < w->n; i++)
        if (p->at[i] - p->at[i - period] != p->at[period] - p->at[0])
            return false;
    return p->at[period] > p->at[0];
}

TlNestAffine tl_nest_pattern(const TlNests *plan, TlValue *v)
{
    Walk w = {plan, v->type->rank == 1 ? v->type->shape[0] : 0, 0};
    Pattern p;
    if (w.n <= TL_NEST_PERIOD || w.n > MOST_ELEMENTS || !walk(&w, v, &p))
        return (TlNestAffine){.is = false};
    TlNestAffine a = p.sum;
    for (a.period = 1; a.period <= TL_NEST_PERIOD; a.period *= 2)
        if (repeats(&w, &p, a.period))
            break;
    if (a.period > TL_NEST_PERIOD)
        return (TlNestAffine){.is = false};
    a.is = true;
    a.dtype = v->type->dtype;
    a.step = p.at[a.period] - p.at[0];
    for (int i = 0; i < a.period; i++)
        a.of[i] = p.at[i];
    return a;
}

const TlNestAffine *tl_nest_pattern_along(const TlNestAccess *a, int dim)
{
    for (uint32_t i = 0; a->place.axes && i < a->place.naxes; i++)
        if (a->axis[i].dim == dim && a->axis[i].affine.period)
            return &a->axis[i].affine;
    return NULL;
}

int64_t tl_nest_pattern_span(const TlNestAffine *f, int width, int64_t *out_first)
{
    int64_t least = f->of[0], most = f->of[0];
    for (int i = 1; i < f->period; i++) {
        least = f->of[i] < least ? f->of[i] : least;
        most = f->of[i] > most ? f->of[i] : most;
    }
    *out_first = least;
    return width % f->period ? 0 : most - least + (width / f->period - 1) * f->step + 1;
}

/* ---- conditions on positions ---- */

/* The scalar n of a condition of rank 2, "the position along dim < n", or ">= n", or of one of
 * several that must hold; NULL: it is another condition. */
static TlValue *compared(const TlValue *v, int dim, TlOpcode with, int depth)
{
    enum { MOST_DEPTH = 8 };
    while (v->def && v->def->opcode == TL_OP_BROADCAST && v->type->rank == 2)
        v = tl_in(v->def, 0);
    const TlOp *op = v->def;
    if (!op || v->type->rank != 2 || depth > MOST_DEPTH)
        return NULL;
    if (op->opcode == TL_OP_AND) {
        TlValue *n = compared(tl_in(op, 0), dim, with, depth + 1);
        return n ? n : compared(tl_in(op, 1), dim, with, depth + 1);
    }
    if (op->opcode != with || v->type->shape[1 - dim] != 1)
        return NULL;
    const TlOp *number = tl_in(op, 0)->def, *end = tl_in(op, 1)->def;
    if (number && (number->opcode == TL_OP_RESHAPE || number->opcode == TL_OP_EXPAND))
        number = tl_in(number, 0)->def;
    bool counts = number && number->opcode == TL_OP_IOTA && end && end->opcode == TL_OP_BROADCAST &&
                  tl_in(end, 0)->type->rank == 0;
    return counts ? tl_in(end, 0) : NULL;
}

TlValue *tl_nest_compared(const TlValue *v, int dim, TlOpcode with)
{
    return compared(v, dim, with, 0);
}

TlValue *tl_nest_chosen_below(const TlUse *use, int dim)
{
    const TlOp *op = use->user;
    if (op->opcode != TL_OP_SELECT || use != &op->in[1] || tl_in(op, 2) == use->value ||
        tl_in(op, 1)->type->rank != 2 ||
        tl_in(op, 0)->type->shape[dim] != tl_in(op, 1)->type->shape[dim])
        return NULL;
    return compared(tl_in(op, 0), dim, TL_OP_LT, 0);
}
