/* Is a slice certain to lie inside its view? Yes, if the extent, the width and the clauses say so,
 * or if the program handles the border in a way that is not fully understood: tests of the extent
 * around the access, starts that are moved back, loops and grids of whole slices. */
#include "frontend/lint.h"

typedef struct Slice {
    const TlLint *l;
    const TlOp *op;
    const TlValue *view, *start;
    uint32_t axis;
    int64_t width; /* from the first element to behind the last one */
} Slice;

/* ---- multiples ---- */

typedef enum Multiple { NOT_KNOWN, MULTIPLE, NO_MULTIPLE } Multiple;

static Multiple multiple_of(const TlValue *v, int64_t unit, int steps)
{
    int64_t n;
    v = tl_lint_uncast(v);
    const TlOp *op = v->def;
    if (tl_lint_constant(v, &n))
        return n % unit ? NO_MULTIPLE : MULTIPLE;
    if (steps-- == 0)
        return NOT_KNOWN;
    if (!op) {
        const TlOp *loop = v->block->parent;
        if (!loop || loop->opcode != TL_OP_FOR || v->index ||
            multiple_of(tl_in(loop, 2), unit, steps) != MULTIPLE)
            return NOT_KNOWN;
        return multiple_of(tl_in(loop, 0), unit, steps);
    }
    if (op->opcode != TL_OP_ADD && op->opcode != TL_OP_SUB && op->opcode != TL_OP_MUL)
        return NOT_KNOWN;
    Multiple a = multiple_of(tl_in(op, 0), unit, steps), b = multiple_of(tl_in(op, 1), unit, steps);
    if (op->opcode == TL_OP_MUL)
        return a == MULTIPLE || b == MULTIPLE ? MULTIPLE : NOT_KNOWN;
    if (a == MULTIPLE && b == MULTIPLE)
        return MULTIPLE;
    return (a == MULTIPLE && b == NO_MULTIPLE) || (a == NO_MULTIPLE && b == MULTIPLE) ? NO_MULTIPLE
                                                                                       : NOT_KNOWN;
}

enum { MOST_LEVELS = 8 }; /* of ops that an index is computed by: recursion */

/* ---- what is known of the extent ---- */

static bool by_extent(const Slice *s)
{
    int64_t start, known = tl_lint_known_extent(s->l, s->view, s->axis);
    TlLaunchNumber n = tl_lint_extent(s->l, s->view, s->axis);
    if (tl_lint_constant(s->start, &start) &&
        (start < 0 || start + s->width <= (known >= 0 ? known : tl_required_least(s->l, n))))
        return start >= 0;
    bool whole = known >= 0 ? known % s->width == 0 : tl_required_multiple(s->l, n, s->width);
    return whole && multiple_of(s->start, s->width, MOST_LEVELS) != NO_MULTIPLE;
}

/* ---- what the program does about the border ---- */

/* The extent, or the start before it, with nothing done to either: that alone keeps no slice
 * inside. */
static bool is_bare(const Slice *s, const TlValue *v)
{
    v = tl_lint_uncast(v);
    return !v->def || v->def->opcode == TL_OP_EXTENT || v->def->opcode == TL_OP_MUL ||
           v->def->opcode == TL_OP_PID || v == tl_lint_uncast(s->start);
}

/* i + B <= N; i < N / B * B */
static bool keeps_inside(const Slice *s, const TlValue *condition)
{
    const TlOp *op = condition->def;
    if (!tl_lint_mentions(s->l, condition, s->view, s->axis))
        return false;
    bool compares = op && (op->opcode == TL_OP_LT || op->opcode == TL_OP_GT);
    return !compares || !is_bare(s, tl_in(op, 0)) || !is_bare(s, tl_in(op, 1));
}

/* N / B * B, N - B + 1 */
static bool ends_before(const Slice *s, const TlValue *hi, int steps)
{
    const TlOp *op = tl_lint_uncast(hi)->def;
    if (!op || steps == 0)
        return false;
    if (op->opcode == TL_OP_DIV || op->opcode == TL_OP_REM || op->opcode == TL_OP_SUB ||
        op->opcode == TL_OP_AND || op->opcode == TL_OP_SHR)
        return tl_lint_mentions(s->l, hi, s->view, s->axis);
    for (uint32_t i = 0; i < op->nin && !op->nregions; i++)
        if (ends_before(s, tl_in(op, i), steps - 1))
            return true;
    return false;
}

static bool by_what_is_around(const Slice *s)
{
    for (const TlOp *op = s->op->block->parent; op; op = op->block->parent) {
        if (op->opcode == TL_OP_IF && keeps_inside(s, tl_in(op, 0)))
            return true;
        if (op->opcode == TL_OP_WHILE && keeps_inside(s, tl_in(op->regions[0]->last, 0)))
            return true;
        if (op->opcode == TL_OP_FOR && ends_before(s, tl_in(op, 1), MOST_LEVELS))
            return true;
    }
    return false;
}

/* min(i, N - B) */
static bool is_moved_back(const Slice *s, const TlValue *v, int steps)
{
    const TlOp *op = tl_lint_uncast(v)->def;
    if (!op || op->nregions || steps == 0)
        return false;
    if (op->opcode == TL_OP_MIN || op->opcode == TL_OP_SELECT || op->opcode == TL_OP_REM ||
        op->opcode == TL_OP_SUB || op->opcode == TL_OP_BORDER)
        return tl_lint_mentions(s->l, v, s->view, s->axis);
    for (uint32_t i = 0; i < op->nin; i++)
        if (is_moved_back(s, tl_in(op, i), steps - 1))
            return true;
    return false;
}

static int64_t pid_axis(const TlValue *v, int steps)
{
    const TlOp *op = tl_lint_uncast(v)->def;
    if (!op || op->nregions || steps == 0)
        return -1;
    if (op->opcode == TL_OP_PID)
        return tl_attr_int(op, TL_ATTR_AXIS, 0);
    for (uint32_t i = 0; i < op->nin; i++) {
        int64_t axis = pid_axis(tl_in(op, i), steps - 1);
        if (axis >= 0)
            return axis;
    }
    return -1;
}

/* A grid of N / B programs, of which none has the rest. */
static bool by_grid(const Slice *s)
{
    int64_t axis = pid_axis(s->start, MOST_LEVELS);
    if (axis < 0 || axis >= s->l->info->grid.len)
        return false;
    const TlHostExpr *e = &s->l->info->exprs.data[s->l->info->grid.data[axis]];
    return e->code.len == 3 && e->code.data[2].op == TILE_HX_DIV;
}

bool tl_lint_inside(const TlLint *l, const TlOp *op, const TlPlace *p, uint32_t axis)
{
    TL_ASSERT(axis < p->naxes, "axis %u of %u", axis, p->naxes);
    const TlAxis *a = &p->axes[axis];
    if (a->kind != TL_AXIS_SLICE || a->width == 1 || tl_attr_flag(op, TL_ATTR_UNCHECKED))
        return true;
    Slice s = {.l = l,
               .op = op,
               .view = p->base,
               .start = p->index[axis].value,
               .axis = axis,
               .width = (int64_t)(a->width - 1) * a->step + 1};
    return by_extent(&s) || by_what_is_around(&s) || is_moved_back(&s, s.start, MOST_LEVELS) ||
           by_grid(&s);
}
