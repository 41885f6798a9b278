/* Tiles whose axes meet others than was meant. What an axis of a tile runs along is the extent that
 * the launch gives to the slice that it comes from; found by looking back through elementwise work,
 * shapes, reductions, products, branches and loops.
 *
 * row-for-column: x[m +: B, n +: B] * s[m +: B], where s has the extent of x's first axis: a vector
 * is a row where shapes broadcast, so that s meets the other axis.
 *
 * whole-reduction: y[m +: B] = sum(x[m +: B, n +: B]), where y has the extent of one of x's axes:
 * without an axis the sum is one number, which each element gets. */
#include "frontend/lint.h"

static const TlLaunchNumber none = {false, -1};

/* Both are known, and no clause says that they are equal. */
static bool is_other(const TlLint *l, TlLaunchNumber a, TlLaunchNumber b)
{
    return a.index >= 0 && b.index >= 0 && !tl_lint_same(a, b) &&
           !tl_required_together(l, a, b, TILE_HX_EQ);
}

/* ---- what an axis runs along ---- */

enum { MOST_STEPS = 512 };

typedef struct Walk {
    const TlLint *l;
    int steps;
} Walk;

static TlLaunchNumber look(Walk *w, const TlValue *v, int axis);

static TlLaunchNumber look_load(const Walk *w, const TlOp *op, int axis)
{
    if (!tl_attr(op, TL_ATTR_AXES))
        return none;
    TlPlace p = tl_op_place(op);
    int at = tl_lint_slice(&p, axis);
    return at < 0 ? none : tl_lint_extent(w->l, p.base, (uint32_t)at);
}

/* The last two axes of a product are the rows of its first and the columns of its second. */
static TlLaunchNumber look_dot(Walk *w, const TlOp *op, int axis)
{
    int rank = op->out[0]->type->rank;
    return look(w, tl_in(op, axis == rank - 1), axis);
}

static TlLaunchNumber look_elements(Walk *w, const TlOp *op, int axis)
{
    TlLaunchNumber n = none;
    for (uint32_t i = 0; i < op->nin && n.index < 0; i++)
        if (tl_in(op, i)->type->rank > axis)
            n = look(w, tl_in(op, i), axis);
    return n;
}

/* A result of a branch or loop, by one of the ways there; what a loop carries, by its beginning. */
static TlLaunchNumber look_passed(Walk *w, const TlValue *v, int axis)
{
    const TlOp *op = v->def ? v->def : v->block->parent;
    if (op && v->def && (op->opcode == TL_OP_IF || op->opcode == TL_OP_FOR))
        return look(w, tl_in(op->regions[0]->last, v->index), axis);
    if (op && !v->def && op->opcode == TL_OP_FOR && v->index > 0)
        return look(w, tl_in(op, 2 + v->index), axis);
    return none;
}

static TlLaunchNumber look(Walk *w, const TlValue *v, int axis)
{
    const TlOp *op = v->def;
    if (w->steps-- <= 0 || v->type->kind == TL_VIEW || axis < 0 || axis >= v->type->rank)
        return none;
    if (!op || op->nregions)
        return look_passed(w, v, axis);
    int at = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    TlOpcode is = op->opcode;
    if (is == TL_OP_LOAD)
        return look_load(w, op, axis);
    if (is == TL_OP_DOT)
        return look_dot(w, op, axis);
    if (is == TL_OP_EXPAND)
        return axis == at ? none : look(w, tl_in(op, 0), axis - (axis > at));
    if (is == TL_OP_REDUCE)
        return look(w, tl_in(op, 0), axis + (axis >= at));
    if (is == TL_OP_TRANS)
        return look(w, tl_in(op, 0), (int)tl_attr(op, TL_ATTR_PERM)->u.ints[axis]);
    if (is == TL_OP_BROADCAST) {
        const TlType *from = tl_in(op, 0)->type;
        bool spread = from->rank <= axis || from->shape[axis] != v->type->shape[axis];
        return spread ? none : look(w, tl_in(op, 0), axis);
    }
    return tl_op_info(is)->flags & F_ELEM ? look_elements(w, op, axis) : none;
}

static TlLaunchNumber along(const TlLint *l, const TlValue *v, int axis)
{
    Walk w = {.l = l, .steps = MOST_STEPS};
    return look(&w, v, axis);
}

/* ---- row-for-column ---- */

static bool is_at(TlLoc a, TlLoc b)
{
    return a.file == b.file && a.line == b.line && a.col == b.col;
}

/* The vector that an operand of `op` was before the rule of broadcasting made it a row; NULL: it is
 * none. row(v) and broadcast(v, M, N) have positions of their own. */
static const TlValue *vector_of(const TlOp *op, const TlValue *v)
{
    if (!v->def || v->def->opcode != TL_OP_BROADCAST || !is_at(v->def->loc, op->loc))
        return NULL;
    v = tl_in(v->def, 0);
    bool expanded = false;
    while (v->def && v->def->opcode == TL_OP_EXPAND && is_at(v->def->loc, op->loc) &&
           tl_attr_int(v->def, TL_ATTR_AXIS, 0) == 0) {
        v = tl_in(v->def, 0);
        expanded = true;
    }
    return expanded && v->type->rank == 1 ? v : NULL;
}

/* The tile that a vector meets: another operand, or the slice that it is stored to. */
typedef struct Other {
    const TlValue *v;
    TlPlace place; /* when v is NULL */
    int rank;
} Other;

static TlLaunchNumber other_along(const TlLint *l, const Other *o, int axis)
{
    if (o->v)
        return along(l, o->v, axis);
    int at = tl_lint_slice(&o->place, axis);
    return at < 0 ? none : tl_lint_extent(l, o->place.base, (uint32_t)at);
}

static bool warn_row(const TlLint *l, const TlOp *op, const TlValue *vector, const Other *o)
{
    TlLaunchNumber own = along(l, vector, 0), last = other_along(l, o, o->rank - 1);
    if (!is_other(l, own, last))
        return false;
    for (int axis = 0; axis + 1 < o->rank; axis++) {
        if (!tl_lint_same(own, other_along(l, o, axis)))
            continue;
        TlDiag *row = tl_diag(tl_lint_diags(l), op->loc, TL_W0619, tl_lint_name(l, own),
                              tl_lint_name(l, last));
        row->label = "a vector is a row here; a value for each row is a column: col(v)";
        return true;
    }
    return false;
}

static void check_row(const TlLint *l, const TlOp *op)
{
    const TlValue *vector;
    if (op->opcode == TL_OP_STORE && tl_attr(op, TL_ATTR_AXES)) {
        Other o = {.place = tl_op_place(op)};
        o.rank = o.place.rank;
        if ((vector = vector_of(op, o.place.value)))
            warn_row(l, op, vector, &o);
        return;
    }
    if (!(tl_op_info(op->opcode)->flags & F_ELEM))
        return;
    for (uint32_t i = 0; i < op->nin; i++) {
        if (!(vector = vector_of(op, tl_in(op, i))))
            continue;
        for (uint32_t k = 0; k < op->nin; k++) {
            Other o = {.v = tl_in(op, k), .rank = tl_in(op, k)->type->rank};
            if (k != i && warn_row(l, op, vector, &o))
                return;
        }
    }
}

/* ---- whole-reduction ---- */

/* The reduction of all axes that a scalar is computed from, with other scalars; NULL: none. */
static const TlOp *whole_reduction(const TlValue *v, int steps)
{
    const TlOp *op = v->def;
    if (!op || op->nregions || steps == 0)
        return NULL;
    if (op->opcode == TL_OP_REDUCE) {
        const TlOp *flat = tl_in(op, 0)->def;
        while (flat && flat->opcode == TL_OP_CAST)
            flat = tl_in(flat, 0)->def;
        bool whole = flat && flat->opcode == TL_OP_RESHAPE && tl_in(op, 0)->type->rank == 1 &&
                     tl_in(flat, 0)->type->rank > 1;
        return whole ? op : NULL;
    }
    if (!(tl_op_info(op->opcode)->flags & F_ELEM) || v->type->rank)
        return NULL;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlOp *found = whole_reduction(tl_in(op, i), steps - 1);
        if (found)
            return found;
    }
    return NULL;
}

/* Of an accumulator what each trip of its loop adds: of y[...] = acc after acc += sum(...). */
static const TlValue *added(const TlValue *v)
{
    const TlOp *loop = v->def;
    if (!loop || loop->opcode != TL_OP_FOR)
        return v;
    const TlBlock *body = loop->regions[0];
    const TlOp *op = tl_in(body->last, v->index)->def;
    for (uint32_t i = 0; op && op->nin == 2 && i < 2; i++)
        if (tl_in(op, i) == body->args[1 + v->index])
            return tl_in(op, 1 - i);
    return v;
}

static const TlValue *reduced(const TlOp *reduce)
{
    const TlValue *v = tl_in(reduce, 0);
    while (v->def->opcode != TL_OP_RESHAPE)
        v = tl_in(v->def, 0);
    return tl_in(v->def, 0);
}

static void warn_whole(const TlLint *l, const TlOp *op, const TlOp *reduce, TlLaunchNumber stored)
{
    const TlValue *x = reduced(reduce);
    for (int axis = 0; axis < x->type->rank; axis++) {
        if (!tl_lint_same(stored, along(l, x, axis)))
            continue;
        TlLoc end = reduce->loc;
        end.col += end.len;
        const char *word = tl_source_text(l->s->ctx, reduce->loc, end);
        TlDiag *row =
            tl_diag(tl_lint_diags(l), reduce->loc, TL_W0620, word, tl_lint_name(l, stored));
        row->label = x->type->rank == 2
                         ? tl_format(l->s->arena, "for each element along '%s' its own: axis = %d",
                                     tl_lint_name(l, stored), 1 - axis)
                         : "name the axis: axis = ...";
        tl_diag_note(tl_lint_diags(l), row, op->loc, "stored here");
        return;
    }
}

static void check_whole(const TlLint *l, const TlOp *op)
{
    enum { MOST_LEVELS = 8 };
    if (op->opcode != TL_OP_STORE || !tl_attr(op, TL_ATTR_AXES))
        return;
    TlPlace p = tl_op_place(op);
    const TlOp *spread = added(p.value)->def;
    if (!spread || spread->opcode != TL_OP_BROADCAST || tl_in(spread, 0)->type->rank ||
        tl_lint_word(l, spread->loc, "broadcast") || tl_lint_word(l, spread->loc, "tile"))
        return; /* said by the program */
    const TlOp *reduce = whole_reduction(tl_in(spread, 0), MOST_LEVELS);
    if (!reduce || !tl_warns_at(l->s, reduce->loc))
        return;
    for (uint32_t i = 0; i < p.naxes; i++)
        if (p.axes[i].kind == TL_AXIS_SLICE && p.axes[i].width > 1)
            warn_whole(l, op, reduce, tl_lint_extent(l, p.base, i));
}

void tl_lint_axes(const TlLint *l)
{
    for (const TlOp *op = tl_lint_first(l); op; op = tl_walk_next(op, NULL)) {
        if (!tl_warns_at(l->s, op->loc))
            continue;
        check_row(l, op);
        check_whole(l, op);
    }
}
