/* Gathers from tiles, element by element, or as vectors whose lanes are exchanged in pairs. */
#include "codegen/cpu/cpu.h"

/* Lane `lane` of a gather: element k along the axis, the position's indices along the others. */
static LLVMValueRef gather_lane(TlCpuGen *g, TlValue *x, int axis, LLVMValueRef k,
                                const TlCpuAt *at, int lane)
{
    TL_ASSERT(lane < at->width, "lane %d of %d", lane, at->width);
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank, at->lane, 1);
    if (at->width > 1 && at->lane != axis)
        sub.idx[at->lane] = tl_cpu_lane_index(g, at, lane, x->type->shape[at->lane]);
    sub.idx[axis] = k;
    return tl_cpu_eval(g, x, &sub);
}

/* How many elements of x along d are there, those of whole vectors in the padding included? */
static int64_t readable(const TlValue *x, int d)
{
    TlNestForm f = tl_nest_form(x->type);
    return f.lane == d ? f.padded[d] : f.extent[d];
}

/* Elements i ^ m of x for the lanes i: of one whole vector, whose lanes change places in pairs, in
 * fours, and so on, as the low bits of m say. What is outside of x is any element. */
static LLVMValueRef partners(TlCpuGen *g, TlValue *x, TlValue *mask, const TlCpuAt *at)
{
    int w = at->width, d = at->lane;
    TL_ASSERT(readable(x, d) % w == 0, "%lld elements by %d", (long long)readable(x, d), w);
    LLVMValueRef m = tl_gen_to_i64(&g->gen, mask, tl_gen_scalar(&g->gen, mask)),
                 order[TL_NEST_LANES];
    LLVMValueRef high = LLVMBuildAnd(g->b, m, tl_gen_int(&g->gen, -w), ""),
                 first = LLVMBuildXor(g->b, at->idx[d], high, ""), zero = tl_gen_int(&g->gen, 0);
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank, d, w);
    sub.idx[d] =
        tl_gen_pick(&g->gen, LLVMIntULT, first, tl_gen_int(&g->gen, readable(x, d)), first, zero);
    LLVMValueRef r = tl_cpu_eval(g, x, &sub);
    for (int bit = 1; bit < w; bit *= 2) {
        for (int i = 0; i < w; i++) order[i] = LLVMConstInt(g->i32, (unsigned)(i ^ bit), 0);
        LLVMValueRef exchanged = LLVMBuildShuffleVector(g->b, r, LLVMGetPoison(LLVMTypeOf(r)),
                                                        LLVMConstVector(order, (unsigned)w), "");
        LLVMValueRef is_set = LLVMBuildAnd(g->b, m, tl_gen_int(&g->gen, bit), "");
        is_set = LLVMBuildICmp(g->b, LLVMIntNE, is_set, zero, "");
        r = LLVMBuildSelect(g->b, is_set, exchanged, r, "");
    }
    return r;
}

LLVMValueRef tl_cpu_eval_gather(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0), *index = tl_in(op, 1);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0), w = at->width;
    LLVMTypeRef i64s = tl_gen_vec(g->i64, w);
    LLVMValueRef k = LLVMBuildIntCast2(g->b, tl_cpu_eval(g, index, at), i64s,
                                       tl_is_signed(index->type->dtype), "");
    LLVMValueRef extent = tl_gen_splat(&g->gen, tl_gen_int(&g->gen, x->type->shape[axis]), w);
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntULT, k, extent, "");
    LLVMValueRef zero = LLVMConstNull(tl_gen_vec(tl_gen_elem_type(&g->gen, x->type), w));
    k = LLVMBuildSelect(g->b, inside, k, LLVMConstNull(i64s), "");
    if (w == 1)
        return LLVMBuildSelect(g->b, inside, gather_lane(g, x, axis, k, at, 0), zero, "");
    TlValue *partner = g->plan->place[op->out[0]->id].partner;
    if (partner && at->lane == axis && readable(x, axis) % w == 0)
        return LLVMBuildSelect(g->b, inside, partners(g, x, partner, at), zero, "");
    LLVMValueRef r = zero;
    for (int i = 0; i < w; i++) {
        LLVMValueRef n = LLVMConstInt(g->i32, (unsigned)i, 0);
        LLVMValueRef e = gather_lane(g, x, axis, LLVMBuildExtractElement(g->b, k, n, ""), at, i);
        r = LLVMBuildInsertElement(g->b, r, e, n, "");
    }
    return LLVMBuildSelect(g->b, inside, r, zero, "");
}
