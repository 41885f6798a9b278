/* The report's part on how often loops run (explain.h): which extent of which parameter, up to a
 * constant, is their bound, if it is one. */
#include "codegen/report/explain.h"
#include "passes/analysis/facts.h"

/* extent - less; or, with base NULL, a number: -less. */
typedef struct Bound {
    const TlValue *base; /* a view */
    uint32_t axis;
    int64_t less;
    int64_t down_to; /* less is for rounding down to a multiple of this; 0: it is not */
} Bound;

static bool small_const(const TlValue *v, int64_t *out)
{
    TlWideInt n;
    if (!tl_const_int_value(v, &n) || n > INT32_MAX || n < INT32_MIN)
        return false;
    *out = (int64_t)n;
    return true;
}

/* x - x % n, which is where a loop ends that has its last iteration peeled off. */
static bool is_rounded_down(const TlOp *op, int64_t *n)
{
    const TlOp *rest = op->opcode == TL_OP_SUB ? tl_in(op, 1)->def : NULL;
    return rest && rest->opcode == TL_OP_REM && tl_in(rest, 0) == tl_in(op, 0) &&
           small_const(tl_in(rest, 1), n) && *n > 0;
}

/* Follows casts, sums with constants, and one rounding down. */
static bool find_bound(const TlValue *v, Bound *out)
{
    enum { MOST_OPS = 16 }; /* that are followed; sources have few */
    *out = (Bound){0};
    for (int i = 0; i < MOST_OPS && v->def; i++) {
        const TlOp *op = v->def;
        int64_t n = 0;
        bool sum = op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB;
        if (op->opcode == TL_OP_EXTENT) {
            out->base = tl_in(op, 0);
            out->axis = (uint32_t)tl_attr_int(op, TL_ATTR_AXIS, 0);
            return true;
        }
        if (small_const(v, &n)) {
            out->less -= n;
            return true;
        }
        if (!out->down_to && out->less == 0 && is_rounded_down(op, &n)) {
            out->down_to = n;
            out->less += n - 1;
            v = tl_in(op, 0);
            continue;
        }
        if (op->opcode != TL_OP_CAST && !(sum && small_const(tl_in(op, 1), &n)))
            return false;
        out->less += op->opcode == TL_OP_ADD ? -n : n;
        v = tl_in(op, 0);
    }
    return false;
}

int tl_explain_loop(const TlExplain *e, const TlOp *op)
{
    for (const TlOp *p = op->block->parent; p; p = p->block->parent)
        for (uint32_t i = 0; i < e->loops.len; i++)
            if (e->loops.data[i] == p)
                return (int)i;
    return -1;
}

void tl_explain_trips(const TlExplain *e, const TlOp *loop, tilec_report_loop *out)
{
    Bound low, high;
    const TlKernelInfo *info = e->fn->info;
    if (loop->opcode != TL_OP_FOR || out->trips >= 0 || !find_bound(tl_in(loop, 0), &low) ||
        !find_bound(tl_in(loop, 1), &high) || !small_const(tl_in(loop, 2), &out->step) ||
        low.base || !high.base || out->step < 1 ||
        (high.down_to && (high.down_to != out->step || low.less != 0)))
        return;
    int param = tl_base_param(high.base);
    if (param < 0 || !info || (uint32_t)param >= info->params.len)
        return;
    out->param = tl_explain_keep(e, info->params.data[param].name);
    out->axis = high.axis;
    out->less = high.less - low.less;
}
