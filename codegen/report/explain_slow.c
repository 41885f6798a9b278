/* The report's hints (hints.h) that come from ops: divisions, exponentials, products without matrix
 * instructions, indices of 64 bits. The numbers of instructions per op are roughly what the
 * targets' compilers make. */
#include "codegen/report/hints.h"
#include "ir/exp_form.h"
#include "ir/plan/mma.h"
#include "ir/remark.h"
#include "passes/analysis/facts.h"

enum { ROUNDED = 12, DIVIDE_32 = 20, DIVIDE_64 = 70, MULTIPLY_64 = 6 };

static double runs_of(const TlHints *h, const TlOp *op)
{
    return tl_hint_runs(h, tl_explain_loop(h->e, op), tl_explain_share(tl_explain_branch(op)));
}

/* Cycles of an op that is so many instructions for each element; for a scalar, in each warp. */
static double elementwise(const TlHints *h, const TlOp *op, int instructions)
{
    const TlType *t = op->out[0]->type;
    double n =
        t->kind == TL_TILE && t->rank ? (double)tl_type_elems(t) / h->e->k->lanes : h->e->k->warps;
    return n * instructions * h->issue * runs_of(h, op);
}

static void hint_op(TlHints *h, TlHintId id, const TlOp *op, double cycles, const char *text)
{
    tl_explain_hint(h, id, tl_explain_position(h->e, op->loc), cycles,
                    (TlHintText){"", text, NULL});
}

static void find_rounded(TlHints *h, const TlOp *op)
{
    bool root = op->opcode == TL_OP_SQRT;
    if ((!root && op->opcode != TL_OP_DIV) || op->out[0]->type->dtype != TL_F32 ||
        tl_attr_flag(op, TL_ATTR_APPROX))
        return;
    hint_op(h, TL_HINT_DIVIDE, op, elementwise(h, op, ROUNDED),
            root ? "a square root that is correctly rounded: a dozen instructions"
                 : "a division that is correctly rounded: a dozen instructions");
}

static void find_exp(TlHints *h, const TlOp *op)
{
    enum { FAST = 2 };
    TlExpForm form = (TlExpForm)tl_remark_of(op, TL_REMARK_EXP);
    if (op->opcode != TL_OP_EXP2 || form == TL_EXP_FORM_NONE)
        return;
    const TlExpFormInfo *f = tl_exp_form_info(form);
    hint_op(h, TL_HINT_EXP, op, elementwise(h, op, f->instructions - FAST),
            tl_format(h->e->out, "exp takes about %d instructions: %s", f->instructions, f->why));
}

static bool is_known(const TlValue *v)
{
    TlWideInt n;
    return tl_const_int_value(v, &n) || (v->def && v->def->opcode == TL_OP_CONST);
}

static void find_int_division(TlHints *h, const TlOp *op)
{
    TlDtype d = op->nout ? op->out[0]->type->dtype : TL_F32;
    TlDtypeKind kind = tl_dtype_kind(d);
    if ((op->opcode != TL_OP_DIV && op->opcode != TL_OP_REM) ||
        (kind != TL_KIND_I && kind != TL_KIND_U) || is_known(tl_in(op, 1)))
        return;
    bool wide = tl_dtype_bits(d) == 64;
    hint_op(h, wide ? TL_HINT_WIDE_DIVIDE : TL_HINT_INT_DIVIDE, op,
            elementwise(h, op, wide ? DIVIDE_64 : DIVIDE_32),
            tl_format(h->e->out,
                      "a division of integers of %d bits by a number that varies: about "
                      "%d instructions",
                      tl_dtype_bits(d), wide ? DIVIDE_64 : DIVIDE_32));
}

/* Why there is no matrix instruction for a product. */
static const char *why_multiply_adds(const TlExplain *e, const TlType *a, const TlType *out)
{
    enum { FEWEST_ROWS = 16 };
    if (a->dtype == TL_F32)
        return "a product of f32 by multiply-adds: exact f32 has no matrix instruction here";
    return tl_format(e->out, "a product of %s by multiply-adds: %s", tl_dtype_name(a->dtype),
                     out->shape[out->rank - 2] < FEWEST_ROWS
                         ? "matrix instructions take 16 rows or more"
                         : "no matrix instruction of this target takes these types");
}

/* What products by multiply-adds take more than matrix instructions would. */
static void find_multiply_adds(TlHints *h, const TlOp *op)
{
    const tl_gpu *r = tl_gpu_find(h->target);
    if (op->opcode != TL_OP_DOT || tl_mma_of(op) || r->matrix16 <= 0)
        return;
    const TlType *a = tl_in(op, 0)->type, *out = op->out[0]->type;
    double macs = (double)tl_type_elems(out) * (double)a->shape[a->rank - 1];
    bool other = a->dtype == TL_F32 && r->matrix32 > 0; /* f32 in fewer bits */
    double each = 1 / r->fma - 1 / (other ? r->matrix32 : r->matrix16);
    hint_op(h, other ? TL_HINT_DOT_F32 : TL_HINT_DOT, op, macs * each * runs_of(h, op),
            why_multiply_adds(h->e, a, out));
}

/* As simt_access.c decides it. */
static void find_wide_index(TlHints *h, const TlOp *op)
{
    if (!(tl_op_info(op->opcode)->flags & (F_READ | F_WRITE)))
        return;
    TlPlace p = tl_op_place(op);
    for (uint32_t i = 0; i < p.naxes && p.axes; i++) {
        if (p.axes[i].kind != TL_AXIS_TILE || tl_dtype_bits(p.index[i].value->type->dtype) < 64)
            continue;
        double n = 1;
        for (int d = 0; d < p.rank; d++)
            n *= p.shape[d];
        hint_op(h, TL_HINT_WIDE_INDEX, op,
                n / h->e->k->lanes * MULTIPLY_64 * h->issue * runs_of(h, op),
                "an index of 64 bits: a multiplication and a test of 64 bits for each element");
    }
}

void tl_hints_of_ops(TlHints *h)
{
    for (const TlOp *op = h->e->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->loc.line == 0)
            continue;
        find_rounded(h, op);
        find_exp(h, op);
        find_int_division(h, op);
        find_multiply_adds(h, op);
        find_wide_index(h, op);
    }
}
