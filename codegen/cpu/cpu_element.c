/* What loads are made of: one element, a vector of neighbours, a gather of lanes; zeros in the
 * place of what is outside. */
#include "codegen/cpu/cpu_access.h"

LLVMValueRef tl_cpu_outside(TlCpuGen *g, const TlCpuAccess *a, const TlType *type, TlCpuAt *at)
{
    return a->a->place.other ? tl_cpu_eval(g, a->a->place.other, at)
                             : tl_gen_const(&g->gen, type, 0, at->width);
}

TlType tl_cpu_elem_of(const TlType *type)
{
    TlType t = {
        .kind = TL_TILE, .dtype = type->dtype, .ptr = type->kind == TL_TILE ? type->ptr : false};
    return t;
}

/* An address that is safe to read instead of an element outside; or instead of so many bytes. */
static LLVMValueRef zeros_at(TlCpuGen *g, const char *name, LLVMTypeRef type, unsigned align)
{
    LLVMValueRef z = LLVMGetNamedGlobal(g->gen.l->module, name);
    if (z)
        return z;
    z = LLVMAddGlobal(g->gen.l->module, type, name);
    LLVMSetInitializer(z, LLVMConstNull(type));
    LLVMSetGlobalConstant(z, 1);
    LLVMSetLinkage(z, LLVMInternalLinkage);
    LLVMSetAlignment(z, align);
    return z;
}

LLVMValueRef tl_cpu_zeros(TlCpuGen *g)
{
    return zeros_at(g, "tl.zeros", g->i64, 8);
}

/* Zeros in the place of a row: as many as a load may take, from so many elements before the address
 * on, or behind it. */
enum { ZEROS_AROUND = 64 };
LLVMValueRef tl_cpu_zero_row(TlCpuGen *g)
{
    enum { MOST_BYTES = TL_NEST_STRIDE * 2 * 64, AROUND = 8 * ZEROS_AROUND };
    _Static_assert(TL_NEST_LOOKED_UP * 64 <= MOST_BYTES + AROUND, "as long as a look-up");
    LLVMTypeRef row = LLVMArrayType2(g->i8, MOST_BYTES + 2 * AROUND);
    LLVMValueRef by = tl_gen_int(&g->gen, AROUND), z = zeros_at(g, "tl.zero_row", row, 64);
    return LLVMBuildInBoundsGEP2(g->b, g->i8, z, &by, 1, "");
}

/* All bits where it is true, else none; hidden, as LLVM would choose again in each iteration. */
static LLVMValueRef bits_of(TlCpuGen *g, LLVMValueRef is)
{
    LLVMValueRef p = LLVMBuildIntToPtr(g->b, LLVMBuildSExt(g->b, is, g->i64, ""), g->ptr, "");
    p = tl_gen_intrinsic(&g->gen, "llvm.strip.invariant.group", &g->ptr, 1, &p, 1);
    return LLVMBuildPtrToInt(g->b, p, g->i64, "");
}

/* The spot's address, or where it is outside, of zeros. All of a row is or is not, so that only
 * what is added along it is computed in a loop. */
LLVMValueRef tl_cpu_spot_or_zeros(TlCpuGen *g, const TlCpuAccess *a, const TlCpuSpot *s)
{
    if (!s->uniform)
        return s->ptr;
    int64_t shift = LLVMConstIntGetSExtValue(a->shift);
    bool is_near = shift >= -ZEROS_AROUND && shift <= ZEROS_AROUND;
    LLVMValueRef by = is_near ? s->offset : LLVMBuildAdd(g->b, s->offset, a->shift, ""),
                 base = LLVMBuildSelect(g->b, s->uniform, a->origin, tl_cpu_zero_row(g), "");
    by = LLVMBuildAnd(g->b, by, bits_of(g, s->uniform), "");
    LLVMValueRef p = tl_gen_address(&g->gen, a->view->dtype, base, by);
    return is_near ? tl_gen_address(&g->gen, a->view->dtype, p, a->shift) : p;
}

/* What nobody writes during the launch LLVM may read before a loop, whatever that stores. */
LLVMValueRef tl_cpu_plain_load(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem,
                               LLVMValueRef p, int width)
{
    LLVMValueRef x = LLVMBuildLoad2(g->b, tl_gen_vec(tl_gen_mem_type(&g->gen, elem), width), p, "");
    LLVMSetAlignment(x, (unsigned)tl_gen_elem_bytes(elem));
    if (a->a->constant && !tl_nest_frame_of(g->plan, a->a->place.base)) /* a copy is written */
        tl_llvm_set_metadata(g->l, x, "invariant.load", NULL, 0);
    return tl_gen_from_mem(&g->gen, elem, x);
}

LLVMValueRef tl_cpu_load_element(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuSpot *s, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    LLVMValueRef ok = tl_cpu_element_ok(g, a, s), other = tl_cpu_outside(g, a, &elem, at);
    if (!ok)
        return tl_cpu_plain_load(g, a, &elem, s->ptr, 1);
    if (at->rank == 0) { /* no branch: LLVM's time grows with the square of the number of blocks */
        LLVMValueRef there = LLVMBuildSelect(g->b, ok, s->ptr, tl_cpu_zeros(g), ""),
                     x = tl_cpu_plain_load(g, a, &elem, there, 1);
        return LLVMIsNull(other) ? x : LLVMBuildSelect(g->b, ok, x, other, "");
    }
    TlCpuBranch branch = tl_cpu_branch(g, ok, true, "then", "join");
    return tl_cpu_join_value(g, branch, tl_cpu_plain_load(g, a, &elem, s->ptr, 1), other);
}

LLVMValueRef tl_cpu_masked_load(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef mask,
                                LLVMValueRef other, int width, bool apart)
{
    TL_ASSERT(width > 1, "a masked load of %d lanes", width);
    LLVMValueRef x =
        tl_llvm_masked(g->gen.l, g->b, apart ? TL_MASKED_GATHER : TL_MASKED_LOAD, p,
                       tl_gen_elem_bytes(elem), mask, tl_gen_to_mem(&g->gen, elem, other));
    return tl_gen_from_mem(&g->gen, elem, x);
}

LLVMValueRef tl_cpu_in_no_lane(TlCpuGen *g, LLVMValueRef mask)
{
    LLVMTypeRef bits = LLVMIntTypeInContext(g->c, (unsigned)tl_gen_width_of(mask));
    return LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildBitCast(g->b, mask, bits, ""),
                         LLVMConstNull(bits), "");
}

/* Lane by lane in a loop, where that is seldom. */
static LLVMValueRef load_lanes(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    LLVMValueRef none = LLVMGetPoison(tl_gen_vec(tl_gen_elem_type(&g->gen, &elem), at->width)),
                 last = tl_gen_int(&g->gen, op->out[0]->type->shape[at->lane] - 1);
    TlCpuLoop lanes;
    tl_cpu_loop_known(g, &lanes, 0, at->width, 1, 1, &none);
    TlCpuAt one;
    tl_cpu_at_under(g, &one, at, at->rank, at->lane, 1);
    one.whole = false;
    LLVMValueRef i = LLVMBuildAdd(g->b, at->idx[at->lane], lanes.i, "");
    one.idx[at->lane] = tl_gen_pick(&g->gen, LLVMIntULT, i, last, i, last);
    TlCpuSpot s = tl_cpu_spot_at(g, a, &one);
    LLVMValueRef x = tl_cpu_load_element(g, op, a, &s, &one);
    LLVMValueRef next = LLVMBuildInsertElement(g->b, lanes.carry[0], x, lanes.i, "");
    tl_cpu_loop_end(g, &lanes, &next);
    return lanes.carry[0];
}

LLVMValueRef tl_cpu_load_apart(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    if (tl_gen_elem_bytes(&elem) < 4 || !g->m.gathers)
        return load_lanes(g, op, a, at);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMValueRef mask =
        tl_cpu_both(g, tl_cpu_lanes_inside(g, &s, at->width), tl_cpu_lane_mask(g, &form, at));
    return tl_cpu_masked_load(g, &elem, s.ptr, mask, tl_cpu_outside(g, a, &elem, at), at->width,
                              true);
}
