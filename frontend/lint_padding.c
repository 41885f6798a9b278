/* padded-reduction: elements outside a view read as 0, and a maximum, a minimum, their positions,
 * a product or `all` takes them for elements.
 *
 *     auto v = x[r, 0 +: B];          require(C <= B)
 *     auto m = max(v * 2 - 1);        -1 where C < B and all others are below
 *
 * The walk goes from the reduction back through elementwise work, shapes, branches and loops to a
 * load, along one axis: what are the elements that come from outside? They may have a known value:
 * abs(v) has a 0, which no maximum notices, v + 1 a 1, which no product notices. A mask that
 * chooses is trusted. */
#include "frontend/lint.h"

#include <math.h>

#include "ir/numeric.h"

typedef enum PadKind {
    WITHOUT, /* nothing comes from outside */
    MASKED,  /* a choice that does not come from outside leaves it out, or not */
    PADDED
} PadKind;
typedef struct Pad {
    PadKind kind;
    bool known; /* the value of what is from outside (WITHOUT: of all) */
    double value;
    const TlOp *load;
    uint32_t axis; /* of its view */
} Pad;

typedef struct Walk {
    const TlLint *l;
    bool *busy; /* by value: a loop's variable that is being followed */
    int steps;
} Walk;

enum { MOST_STEPS = 4096 }; /* values that one reduction is traced through: time */

static Pad look(Walk *w, const TlValue *v, int axis);

/* ---- known values ---- */

static bool fold(TlOpcode op, TlDtype d, const double *x, double *out)
{
    double a = x[0], b = x[1];
    bool known = true;
    *out = op == TL_OP_ADD    ? a + b
           : op == TL_OP_SUB  ? a - b
           : op == TL_OP_MUL  ? a * b
           : op == TL_OP_DIV  ? a / b
           : op == TL_OP_NEG  ? -a
           : op == TL_OP_ABS  ? fabs(a)
           : op == TL_OP_SQRT ? sqrt(a)
           : op == TL_OP_MIN  ? fmin(a, b)
           : op == TL_OP_MAX  ? fmax(a, b)
           : op == TL_OP_FMA  ? a * b + x[2]
           : op == TL_OP_EQ   ? a == b
           : op == TL_OP_NE   ? a != b
           : op == TL_OP_LT   ? a < b
           : op == TL_OP_LE   ? a <= b
           : op == TL_OP_GT   ? a > b
           : op == TL_OP_GE   ? a >= b
           : op == TL_OP_AND  ? a != 0 && b != 0
           : op == TL_OP_OR   ? a != 0 || b != 0
           : op == TL_OP_XOR  ? a != b
           : op == TL_OP_NOT  ? a == 0
           : op == TL_OP_CAST ? d == TL_BOOL ? a != 0 : a
                              : (known = false);
    bool bits = op == TL_OP_AND || op == TL_OP_OR || op == TL_OP_XOR || op == TL_OP_NOT;
    bool traps = op == TL_OP_DIV && b == 0 && !tl_is_float(d);
    return known && !traps && (!bits || d == TL_BOOL);
}

/* ---- back to the loads ---- */

static Pad look_load(const Walk *w, const TlOp *op, int axis)
{
    Pad none = {0};
    if (op->opcode != TL_OP_LOAD || !tl_attr(op, TL_ATTR_AXES) || tl_attr(op, TL_ATTR_OTHER))
        return none;
    TlPlace p = tl_op_place(op);
    int at = tl_lint_slice(&p, axis);
    if (at < 0 || tl_lint_inside(w->l, op, &p, (uint32_t)at))
        return none;
    return (Pad){.kind = PADDED, .known = true, .load = op, .axis = (uint32_t)at};
}

/* One of two values, and nobody knows which. */
static Pad either(Pad a, Pad b)
{
    Pad r = a.kind >= b.kind ? a : b;
    bool same = a.known && b.known && a.value == b.value;
    if (a.kind == b.kind || r.kind == PADDED)
        r.known = r.known && same;
    return r;
}

static Pad look_select(Walk *w, const TlOp *op, int axis)
{
    Pad c = {0}, a = look(w, tl_in(op, 1), axis), b = look(w, tl_in(op, 2), axis);
    if (tl_in(op, 0)->type->rank)
        c = look(w, tl_in(op, 0), axis);
    Pad both = either(a, b);
    if (c.kind == PADDED && c.known)
        return c.value != 0 ? a : b;
    if (c.kind == WITHOUT && tl_in(op, 0)->type->rank && both.kind == PADDED)
        return (Pad){.kind = MASKED};
    if (c.kind == MASKED)
        return c;
    if (c.kind == PADDED && both.kind == WITHOUT)
        both = c, both.known = false;
    return both;
}

static Pad look_elements(Walk *w, const TlOp *op, int axis)
{
    Pad r = {.known = op->nin > 0 && op->nin <= 3};
    double x[3] = {0};
    bool zero = false, chooses = false;
    for (uint32_t i = 0; i < op->nin; i++) {
        Pad in = look(w, tl_in(op, i), axis);
        chooses = chooses || (in.kind == WITHOUT && !in.known);
        if (in.kind == MASKED)
            return in;
        r.known = r.known && in.known;
        if (i < 3)
            x[i] = in.value;
        zero = zero || (in.kind == PADDED && in.known && in.value == 0);
        if (in.kind == PADDED)
            r.kind = PADDED, r.load = in.load, r.axis = in.axis;
    }
    TlDtype d = op->out[0]->type->dtype;
    bool logical = d == TL_BOOL && (op->opcode == TL_OP_AND || op->opcode == TL_OP_OR);
    if (r.kind == PADDED && logical && chooses) /* in(x[...]) && x[...] > 0 */
        return (Pad){.kind = MASKED};
    if (!r.known && zero && op->opcode == TL_OP_MUL) {
        r.known = true; /* by 0 */
        r.value = 0;
    } else if (r.known) {
        r.known = fold(op->opcode, d, x, &r.value);
    }
    return r;
}

/* The same axes but for some of extent 1. */
static Pad look_reshape(Walk *w, const TlOp *op, int axis)
{
    const TlType *to = op->out[0]->type, *from = tl_in(op, 0)->type;
    int k = 0;
    for (int i = 0; i <= axis; i++) {
        if (to->shape[i] == 1)
            continue;
        while (k < from->rank && from->shape[k] == 1)
            k++;
        if (k == from->rank || from->shape[k] != to->shape[i])
            return (Pad){0};
        if (i == axis)
            return look(w, tl_in(op, 0), k);
        k++;
    }
    return (Pad){0};
}

/* What a loop carries, or a branch gives: by what each way there passes on. */
static Pad look_passed(Walk *w, const TlValue *v, int axis)
{
    const TlOp *op = v->def ? v->def : v->block->parent;
    Pad r = {0};
    if (!op || w->busy[v->id])
        return r;
    w->busy[v->id] = true;
    uint32_t i = v->index;
    if (op->opcode == TL_OP_IF && v->def)
        r = either(look(w, tl_in(op->regions[0]->last, i), axis),
                   look(w, tl_in(op->regions[1]->last, i), axis));
    if (op->opcode == TL_OP_FOR && (v->def || i > 0)) {
        i -= !v->def;
        r = either(look(w, tl_in(op, 3 + i), axis), look(w, tl_in(op->regions[0]->last, i), axis));
    }
    if (op->opcode == TL_OP_WHILE) {
        const TlBlock *test = op->regions[0], *body = op->regions[1];
        r = v->def || v->block == body ? look(w, tl_in(test->last, 1 + i), axis)
                                       : either(look(w, tl_in(op, i), axis),
                                                look(w, tl_in(body->last, i), axis));
    }
    w->busy[v->id] = false;
    return r;
}

static Pad look_op(Walk *w, const TlOp *op, int axis)
{
    const TlType *from = op->nin ? tl_in(op, 0)->type : NULL;
    int64_t at = tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (op->opcode == TL_OP_LOAD)
        return look_load(w, op, axis);
    if (op->opcode == TL_OP_SELECT)
        return look_select(w, op, axis);
    if (op->opcode == TL_OP_RESHAPE)
        return look_reshape(w, op, axis);
    if (op->opcode == TL_OP_BROADCAST && from->rank &&
        from->shape[axis] == op->out[0]->type->shape[axis])
        return look(w, tl_in(op, 0), axis);
    if (op->opcode == TL_OP_EXPAND && axis != at)
        return look(w, tl_in(op, 0), axis - (axis > at));
    if (op->opcode == TL_OP_TRANS)
        return look(w, tl_in(op, 0), (int)tl_attr(op, TL_ATTR_PERM)->u.ints[axis]);
    return tl_op_info(op->opcode)->flags & F_ELEM ? look_elements(w, op, axis) : (Pad){0};
}

static Pad look(Walk *w, const TlValue *v, int axis)
{
    uint64_t bits;
    if (w->steps-- <= 0 || v->type->kind == TL_VIEW || v->type->ptr)
        return (Pad){0};
    if (tl_value_is_const(v, &bits))
        return (Pad){.known = true, .value = tl_bits_to_double(v->type->dtype, bits)};
    if (axis >= v->type->rank)
        return (Pad){0};
    return !v->def || v->def->nregions ? look_passed(w, v, axis) : look_op(w, v->def, axis);
}

/* ---- neutral values ---- */

/* Is no element below 0? */
static bool is_nonnegative(const TlValue *v, int steps)
{
    uint64_t bits;
    TlDtype d = v->type->dtype;
    if (d == TL_BOOL || (tl_is_int(d) && !tl_is_signed(d)))
        return true;
    if (tl_value_is_const(v, &bits))
        return tl_bits_to_double(d, bits) >= 0;
    const TlOp *op = v->def;
    if (!op || steps-- == 0)
        return false;
    static const bool KEEPS[TL_OP_COUNT] = {
        [TL_OP_ADD] = true,   [TL_OP_MUL] = true,       [TL_OP_DIV] = true,
        [TL_OP_MIN] = true,   [TL_OP_CAST] = true,      [TL_OP_EXPAND] = true,
        [TL_OP_TRANS] = true, [TL_OP_BROADCAST] = true, [TL_OP_RESHAPE] = true};
    if (op->opcode == TL_OP_ABS || op->opcode == TL_OP_SQRT || op->opcode == TL_OP_EXP2 ||
        (op->opcode == TL_OP_MUL && tl_in(op, 0) == tl_in(op, 1)))
        return true;
    if (op->opcode == TL_OP_SELECT)
        return is_nonnegative(tl_in(op, 1), steps) && is_nonnegative(tl_in(op, 2), steps);
    if (op->opcode == TL_OP_MAX)
        return is_nonnegative(tl_in(op, 0), steps) || is_nonnegative(tl_in(op, 1), steps);
    if (!KEEPS[op->opcode]) /* what all operands are */
        return false;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!is_nonnegative(tl_in(op, i), steps))
            return false;
    return true;
}

/* The reductions, what to give elements from outside, and which of their values changes nothing. */
typedef struct Reduction {
    const char *word, *pad;
    double neutral;
    bool largest;
} Reduction;
static const Reduction reductions[] = {
    {"max", "-inf", -(double)INFINITY, true},  {"argmax", "-inf", -(double)INFINITY, true},
    {"min", "inf", (double)INFINITY, false},   {"argmin", "inf", (double)INFINITY, false},
    {"prod", "1", 1, false},                   {"all", "true", 1, false},
};

static bool is_neutral(const Reduction *r, const TlValue *x, const Pad *p)
{
    enum { MOST_LEVELS = 16 }; /* of ops: recursion */
    if (!p->known)
        return false;
    return p->value == r->neutral ||
           (r->largest && p->value == 0 && is_nonnegative(x, MOST_LEVELS));
}

/* ---- the warning ---- */

static const char *axis_name(const TlLint *l, const Pad *p)
{
    const TlValue *view = tl_in(p->load, 0);
    TlLaunchNumber n = tl_lint_extent(l, view, p->axis);
    if (n.index < 0)
        return tl_format(l->s->arena, "%u", p->axis);
    return tl_lint_name(l, n);
}

static const char *pad_text(const TlLint *l, const Reduction *r, TlDtype d)
{
    if (!tl_is_int(d) || !isinf(r->neutral))
        return r->pad;
    return tl_format(l->s->arena, "the %s %s", r->largest ? "least" : "greatest", tl_dtype_name(d));
}

static void warn(const TlLint *l, const TlOp *op, const Reduction *r, const Pad *p)
{
    TlDiag *row = tl_diag(tl_lint_diags(l), op->loc, TL_W0614, r->word, axis_name(l, p));
    row->label = tl_format(l->s->arena,
                           "give them a value, as in load(x[...], pad = %s), or leave them out: "
                           "where = in(x[...])",
                           pad_text(l, r, p->load->out[0]->type->dtype));
    tl_diag_note(tl_lint_diags(l), row, p->load->loc, "this slice may lie partly outside");
}

static const Reduction *reduction_of(const TlLint *l, const TlOp *op)
{
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (tl_lint_word(l, op->loc, reductions[i].word))
            return &reductions[i];
    return NULL;
}

/* x, or before it was made a vector for a reduction of all. */
static const TlValue *unflattened(const TlValue *x)
{
    while (x->def && x->def->opcode == TL_OP_CAST)
        x = tl_in(x->def, 0);
    return x->def && x->def->opcode == TL_OP_RESHAPE && x->type->rank == 1 ? tl_in(x->def, 0) : x;
}

static void check(const TlLint *l, bool *busy, const TlOp *op)
{
    const Reduction *r = reduction_of(l, op);
    bool any = tl_attr_int(op, TL_ATTR_KIND, -1) == TL_COMBINE_OR; /* of a mask: what is left */
    if (!r || any)
        return;
    const TlValue *x = tl_in(op, 0), *all = unflattened(x);
    int from = (int)tl_attr_int(op, TL_ATTR_AXIS, 0), to = from + 1;
    if (all->type->rank != x->type->rank)
        from = 0, to = all->type->rank, x = all;
    for (int axis = from; axis < to; axis++) {
        Walk w = {.l = l, .busy = busy, .steps = MOST_STEPS};
        Pad p = look(&w, x, axis);
        if (p.kind != PADDED || is_neutral(r, x, &p))
            continue;
        warn(l, op, r, &p);
        return;
    }
}

void tl_lint_padding(const TlLint *l)
{
    bool *busy = NULL;
    for (const TlOp *op = tl_lint_first(l); op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_REDUCE || !tl_warns_at(l->s, op->loc))
            continue;
        if (!busy)
            busy = TL_NEW_ARRAY(l->s->arena, bool, l->fn->nvalues + 1);
        check(l, busy, op);
    }
}
