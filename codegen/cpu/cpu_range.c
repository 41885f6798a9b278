/* Between which numbers the scalars of a program are, those of its loops included: computed where
 * the program begins, before any tile (nest_range.c says of which that can be).
 *
 * Numbers of i32 are computed in 64 bits, where none overflows; whether all between the ends are
 * i32 is a test. Ends of i64 wrap together, so that they are in order unless one between them
 * wraps. */
#include "codegen/cpu/cpu.h"
#include "passes/analysis/facts.h"

static TlCpuRange one_number(LLVMValueRef x)
{
    return (TlCpuRange){x, x};
}

static void require(TlCpuGen *g, TlCpuRanges *r, LLVMValueRef is)
{
    r->hold = r->hold ? LLVMBuildAnd(g->b, r->hold, is, "") : is;
}

/* The numbers as those of a type. */
static TlCpuRange as_type(TlCpuGen *g, TlCpuRanges *r, TlCpuRange x, TlDtype dtype)
{
    if (x.lo == x.hi && dtype == TL_I32) {
        LLVMValueRef low = LLVMBuildTrunc(g->b, x.lo, g->i32, "");
        return one_number(LLVMBuildSExt(g->b, low, g->i64, ""));
    }
    if (x.lo == x.hi)
        return x;
    if (dtype == TL_I64) {
        require(g, r, LLVMBuildICmp(g->b, LLVMIntSLE, x.lo, x.hi, ""));
        return x;
    }
    LLVMValueRef least = tl_gen_int(&g->gen, INT32_MIN), most = tl_gen_int(&g->gen, INT32_MAX);
    require(g, r, LLVMBuildICmp(g->b, LLVMIntSGE, x.lo, least, ""));
    require(g, r, LLVMBuildICmp(g->b, LLVMIntSLE, x.hi, most, ""));
    return x;
}

static TlCpuRange sum(TlCpuGen *g, TlCpuRange a, TlCpuRange b, bool minus)
{
    bool one = a.lo == a.hi && b.lo == b.hi;
    LLVMValueRef lo =
        minus ? LLVMBuildSub(g->b, a.lo, b.hi, "") : LLVMBuildAdd(g->b, a.lo, b.lo, "");
    if (one)
        return one_number(lo);
    LLVMValueRef hi =
        minus ? LLVMBuildSub(g->b, a.hi, b.lo, "") : LLVMBuildAdd(g->b, a.hi, b.hi, "");
    return (TlCpuRange){lo, hi};
}

static TlCpuRange extreme(TlCpuGen *g, TlCpuRange a, TlCpuRange b, bool larger)
{
    LLVMValueRef (*of)(TlCpuGen * g, LLVMValueRef a, LLVMValueRef b) =
        larger ? tl_cpu_larger : tl_cpu_smaller;
    LLVMValueRef lo = of(g, a.lo, b.lo);
    bool one = a.lo == a.hi && b.lo == b.hi;
    return one ? one_number(lo) : (TlCpuRange){lo, of(g, a.hi, b.hi)};
}

/* By a number, unless both are one. */
static TlCpuRange product(TlCpuGen *g, const TlOp *op, TlCpuRange a, TlCpuRange b)
{
    if (a.lo == a.hi && b.lo == b.hi)
        return one_number(LLVMBuildMul(g->b, a.lo, b.lo, ""));
    TlWideInt n = 0;
    bool known = tl_const_int_value(tl_in(op, a.lo == a.hi ? 0 : 1), &n);
    TL_ASSERT(known, "a range is multiplied by one");
    TlCpuRange x = a.lo == a.hi ? b : a;
    LLVMValueRef by = tl_gen_int(&g->gen, (int64_t)n), lo = LLVMBuildMul(g->b, x.lo, by, ""),
                 hi = LLVMBuildMul(g->b, x.hi, by, "");
    return n < 0 ? (TlCpuRange){hi, lo} : (TlCpuRange){lo, hi};
}

/* The numbers of a loop; if it has no trip, the first, which nobody sees. */
static TlCpuRange counter(TlCpuGen *g, TlCpuRanges *r, const TlOp *loop)
{
    TlCpuRange of[3];
    LLVMValueRef x[3], some;
    TlWideInt step = 0;
    for (uint32_t i = 0; i < 3; i++) {
        of[i] = tl_cpu_range(g, r, tl_in(loop, i));
        TL_ASSERT(of[i].lo == of[i].hi, "bounds of a loop that are no numbers");
        x[i] = LLVMBuildTrunc(g->b, of[i].lo, g->i32, "");
    }
    tl_const_int_value(tl_in(loop, 2), &step);
    LLVMValueRef n = tl_gen_trips(&g->gen, loop, x[0], x[1], x[2], &some),
                 last = LLVMBuildSub(g->b, n, tl_gen_int(&g->gen, 1), "");
    last = LLVMBuildAdd(g->b, of[0].lo, LLVMBuildMul(g->b, last, of[2].lo, ""), "");
    last = LLVMBuildSelect(g->b, some, last, of[0].lo, "");
    return step < 0 ? (TlCpuRange){last, of[0].lo} : (TlCpuRange){of[0].lo, last};
}

static TlCpuRange find(TlCpuGen *g, TlCpuRanges *r, const TlValue *v)
{
    const TlOp *op = v->def;
    TlWideInt n;
    TL_ASSERT(tl_nest_spread(g->plan, v) >= 0, "value %u has no range", v->id);
    if (tl_const_int_value(v, &n))
        return one_number(tl_gen_int(&g->gen, (int64_t)n));
    if (!op && v->block != g->fn->body && v->block != g->plan->asked_in)
        return counter(g, r, v->block->parent);
    if (!op || g->plan->early[v->id])
        return one_number(tl_gen_to_i64(&g->gen, v, tl_gen_scalar(&g->gen, v)));
    if (op->opcode == TL_OP_EXTENT)
        return one_number(tl_gen_of_view(&g->gen, op));
    TlCpuRange a = tl_cpu_range(g, r, tl_in(op, 0)), b = a;
    if (op->nin > 1)
        b = tl_cpu_range(g, r, tl_in(op, 1));
    switch ((int)op->opcode) {
    case TL_OP_CAST: break;
    case TL_OP_ADD:
    case TL_OP_SUB: a = sum(g, a, b, op->opcode == TL_OP_SUB); break;
    case TL_OP_MUL: a = product(g, op, a, b); break;
    case TL_OP_MIN:
    case TL_OP_MAX: return extreme(g, a, b, op->opcode == TL_OP_MAX);
    }
    return as_type(g, r, a, v->type->dtype);
}

TlCpuRange tl_cpu_range(TlCpuGen *g, TlCpuRanges *r, const TlValue *v)
{
    TlCpuRange *x = tl_map_get_ptr(&r->seen, v);
    if (x)
        return *x;
    x = TL_NEW(g->arena, TlCpuRange);
    *x = find(g, r, v);
    tl_map_put_ptr(&r->seen, v, x);
    return *x;
}

TlCpuRange tl_cpu_affine_range(TlCpuGen *g, TlCpuRanges *r, const TlNestAffine *f)
{
    TlCpuRange all = one_number(tl_gen_int(&g->gen, f->offset));
    TL_ASSERT(f->is, "an index tile that counts otherwise");
    for (uint32_t k = 0; k < f->nterms; k++)
        all = sum(g, all, tl_cpu_range(g, r, f->term[k]), f->minus[k]);
    all = as_type(g, r, all, f->dtype);
    if (!f->shift)
        return all;
    LLVMValueRef by = tl_gen_int(&g->gen, f->shift), lo = LLVMBuildAShr(g->b, all.lo, by, "");
    return all.lo == all.hi ? one_number(lo)
                            : (TlCpuRange){lo, LLVMBuildAShr(g->b, all.hi, by, "")};
}
