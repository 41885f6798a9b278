/* decide: scalar comparisons whose outcome is known become constants, and the least or greatest of
 * two integers the one that it is for sure; a position that a border maps is itself where it is
 * inside.
 *
 *     grid 64                                        // %x has 64 rows
 *     %r = pid {axis = 0} : i32
 *     %c = const 63 : i32                    =>
 *     %in = le %r, %c : bool                         %in = const true : bool
 *     if %in { ... } else { ... }                    if %in { ... } else { ... }
 *
 * canonicalize, which comes next, keeps one side of such an if. A comparison is known
 *  - by numbers: the ranges of its operands do not meet (axis_info.h);
 *  - when it asks whether a pid is below an extent that its grid axis is (aligned kernels: their
 *    grid is the clause's).
 * This is for what the front end makes of borders (border.c). A kernel without an if, least or
 * greatest is left alone, and its facts are not asked for. */
#include "passes/analysis/axis_impl.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"

typedef enum Answer { UNKNOWN, NO, YES } Answer;

static Answer answer(bool yes, bool no)
{
    return yes ? YES : no ? NO : UNKNOWN;
}

/* Of u64 the facts tell nothing above INT64_MAX: lo is then below 0. */
static bool has_range(const TlAxisInfo *a, const TlValue *v)
{
    return tl_is_signed(v->type->dtype) || tl_axis_facts(a, v)->lo >= 0;
}

static Answer by_numbers(const TlAxisInfo *a, const TlOp *op)
{
    const TlAxisFacts *x = tl_axis_facts(a, tl_in(op, 0)), *y = tl_axis_facts(a, tl_in(op, 1));
    if (!has_range(a, tl_in(op, 0)) || !has_range(a, tl_in(op, 1)))
        return UNKNOWN;
    if (op->opcode == TL_OP_LT)
        return answer(x->hi < y->lo, x->lo >= y->hi);
    if (op->opcode == TL_OP_LE)
        return answer(x->hi <= y->lo, x->lo > y->hi);
    if (op->opcode == TL_OP_GT)
        return answer(x->lo > y->hi, x->hi <= y->lo);
    return answer(x->lo >= y->hi, x->hi < y->lo);
}

/* Is v an extent - 1? Gives the extent. */
static const TlOp *last_of_extent(const TlAxisInfo *a, const TlValue *v)
{
    TlWideInt n;
    const TlOp *add = v->def;
    if (!add || add->opcode != TL_OP_ADD || !tl_const_int_value(tl_in(add, 1), &n) || n != -1)
        return NULL;
    const TlValue *extent = tl_axis_plain(a, tl_in(add, 0));
    return extent->def && extent->def->opcode == TL_OP_EXTENT ? extent->def : NULL;
}

static Answer by_grid(const TlFn *fn, const TlAxisInfo *a, const TlOp *op)
{
    const TlValue *pid = tl_axis_plain(a, tl_in(op, 0));
    const TlOp *extent = op->opcode == TL_OP_LE ? last_of_extent(a, tl_in(op, 1)) : NULL;
    if (!extent || !pid->def || pid->def->opcode != TL_OP_PID)
        return UNKNOWN;
    int64_t axis = tl_attr_int(extent, TL_ATTR_AXIS, 0);
    return tl_axis_pid_inside(fn, pid->def, tl_in(extent, 0), (uint32_t)axis) ? YES : UNKNOWN;
}

static bool is_comparison(const TlOp *op)
{
    return (op->opcode == TL_OP_LT || op->opcode == TL_OP_LE || op->opcode == TL_OP_GT ||
            op->opcode == TL_OP_GE) &&
           tl_is_scalar(op->out[0]->type) && tl_axis_has_numbers(tl_in(op, 0)->type) &&
           !tl_is_bool(tl_in(op, 0)->type->dtype);
}

static bool is_choice(const TlOp *op)
{
    return (op->opcode == TL_OP_MIN || op->opcode == TL_OP_MAX) &&
           tl_axis_has_numbers(op->out[0]->type) && !tl_is_bool(op->out[0]->type->dtype);
}

/* The operand that min or max gives for sure, or NULL. */
static TlValue *chosen(const TlAxisInfo *a, const TlOp *op)
{
    TlValue *x = tl_in(op, 0), *y = tl_in(op, 1);
    const TlAxisFacts *f = tl_axis_facts(a, x), *g = tl_axis_facts(a, y);
    bool least = op->opcode == TL_OP_MIN;
    if (!has_range(a, x) || !has_range(a, y))
        return NULL;
    if (f->hi <= g->lo)
        return least ? x : y;
    return g->hi <= f->lo ? (least ? y : x) : NULL;
}

/* The positions that a border maps, if all of them are inside, or NULL. */
static TlValue *inside(const TlAxisInfo *a, TlOp *op)
{
    TlValue *x = tl_in(op, 0);
    const TlAxisFacts *f = tl_axis_facts(a, x), *extent = tl_axis_facts(a, tl_in(op, 1));
    if (f->lo < 0 || f->hi >= extent->lo)
        return NULL;
    TlBuilder b = tl_builder_before(op);
    return tl_cast(&b, x, TL_I64);
}

static bool is_concerned(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_IF || op->opcode == TL_OP_BORDER || is_choice(op))
            return true;
    return false;
}

/* What stands for the op's result, or NULL. */
static TlValue *decided(const TlFn *fn, const TlAxisInfo *a, TlOp *op)
{
    if (is_choice(op))
        return chosen(a, op);
    if (op->opcode == TL_OP_BORDER)
        return inside(a, op);
    Answer known = is_comparison(op) ? by_numbers(a, op) : UNKNOWN;
    if (is_comparison(op) && known == UNKNOWN)
        known = by_grid(fn, a, op);
    if (known == UNKNOWN)
        return NULL;
    TlBuilder b = tl_builder_before(op);
    return tl_const_bits(&b, op->out[0]->type, known == YES);
}

typedef struct Decision {
    TlOp *op;
    TlValue *by;
} Decision;

TlPassResult tl_pass_decide(TlFn *fn, TlPassCtx *px)
{
    if (!is_concerned(fn))
        return TL_SAME;
    const TlAxisInfo *a = tl_pass_axis_info(fn, px);
    TL_VEC(Decision) all = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlValue *by = op->nout == 1 && op->out[0]->uses ? decided(fn, a, op) : NULL;
        if (by)
            tl_vec_push(px->scratch, &all, (Decision){op, by});
    }
    for (uint32_t i = all.len; i-- > 0;) /* nothing is known of what is new; what stands for one may
                                          * be another one */
        tl_replace_uses(all.data[i].op->out[0], all.data[i].by);
    return all.len ? TL_CHANGED : TL_SAME;
}
