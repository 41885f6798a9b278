/* outside: a load or store that is outside of its view for every extent that the view may have.
 *
 *     x[-1]        indices do not count from the end: it reads 0
 *     x[N]         one behind the last
 *     x[-4 +: 4]   up to the first
 *
 * The start is a number, or the extent itself. A place of the text that is outside in some copies
 * of a loop only, or of a function, is left alone; so is one that says what is outside. */
#include "frontend/lint.h"

typedef struct Outside {
    const TlLint *l;
    TlMap inside; /* places of the text -> an access there may be inside */
} Outside;

static uint64_t place_key(TlLoc loc)
{
    return (uint64_t)loc.file << 48 ^ (uint64_t)loc.line << 16 ^ loc.col;
}

/* The start along the axis is a number: is the last element of the access before the first of the
 * view, or its first behind the last? */
static bool is_outside_from(const TlLint *l, const TlPlace *p, uint32_t axis, int64_t start)
{
    const TlAxis *a = &p->axes[axis];
    int64_t last = a->kind == TL_AXIS_SLICE ? start + ((int64_t)a->width - 1) * a->step : start,
            known = tl_lint_known_extent(l, p->base, axis),
            most = known >= 0 ? known : tl_required_most(l, tl_lint_extent(l, p->base, axis));
    return last < 0 || (start >= most && (known >= 0 || most < INT32_MAX));
}

static bool is_outside(const TlLint *l, const TlPlace *p, uint32_t axis)
{
    int64_t start;
    if (p->axes[axis].kind != TL_AXIS_SCALAR && p->axes[axis].kind != TL_AXIS_SLICE)
        return false;
    const TlValue *at = p->index[axis].value;
    if (tl_lint_constant(at, &start))
        return is_outside_from(l, p, axis, start);
    return tl_lint_same(tl_lint_number(l, at), tl_lint_extent(l, p->base, axis));
}

/* The axis along which an access is outside; -1: there is none. */
static int outside_axis(const TlLint *l, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    for (uint32_t i = 0; i < p.naxes; i++)
        if (is_outside(l, &p, i))
            return (int)i;
    return -1;
}

static bool is_access(const TlOp *op)
{
    bool access = op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE;
    return access && tl_attr(op, TL_ATTR_AXES) && !tl_attr(op, TL_ATTR_OTHER);
}

static void warn(const TlLint *l, const TlOp *op, uint32_t axis)
{
    TlPlace p = tl_op_place(op);
    TlLaunchNumber n = tl_lint_extent(l, p.base, axis);
    int64_t start, known = tl_lint_known_extent(l, p.base, axis);
    TlArena *arena = l->s->arena;
    const char *name = n.index >= 0 ? tl_lint_name(l, n) : tl_format(arena, "%u", axis);
    bool before = tl_lint_constant(p.index[axis].value, &start) && start < 0;
    const char *what = tl_attr(op, TL_ATTR_UNCHECKED) ? "breaks the promise of 'unchecked'"
                       : op->opcode == TL_OP_LOAD     ? "reads 0"
                                                      : "stores nothing";
    TlDiag *row = tl_diag(tl_lint_diags(l), op->loc, TL_W0621, name, what);
    const char *last = known > 0      ? tl_format(arena, "%lld", (long long)known - 1)
                       : n.index >= 0 ? tl_format(arena, "%s - 1", name)
                                      : "one before the extent";
    row->label = tl_format(arena,
                           before ? "indices do not count from the end: the last one is %s"
                                  : "indices begin at 0: the last one is %s",
                           last);
}

void tl_lint_outside(const TlLint *l)
{
    Outside o = {.l = l};
    tl_map_init(&o.inside, l->s->arena);
    for (const TlOp *op = tl_lint_first(l); op; op = tl_walk_next(op, NULL))
        if (is_access(op) && outside_axis(l, op) < 0)
            tl_map_put(&o.inside, place_key(op->loc), 1);
    for (const TlOp *op = tl_lint_first(l); op; op = tl_walk_next(op, NULL)) {
        uint64_t inside = 0;
        int axis = is_access(op) && tl_warns_at(l->s, op->loc) ? outside_axis(l, op) : -1;
        if (axis < 0 || tl_map_get(&o.inside, place_key(op->loc), &inside))
            continue;
        warn(l, op, (uint32_t)axis);
        tl_map_put(&o.inside, place_key(op->loc), 1); /* once */
    }
}
