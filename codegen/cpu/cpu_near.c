/* Gathers whose lanes are near each other (nest_near.c): one load or two, and lanes of them.
 *
 *     offsets   7 7 7 8 8 8 9 9        from the first to the last: elements 7 to 9
 *     loaded    7 8 9 . . . . .        no more than these, which lanes want
 *     lanes     0 0 0 1 1 1 2 2
 *
 * The ends are those of the first and the last lane. If some lane lies outside of them, or is
 * masked off, or the ends are farther apart than what is loaded, it is a gather. What lies between
 * two elements is loaded with them: the array holds it. Two vectors are loaded where one
 * instruction takes lanes of both: sound and images that are made smaller have lanes that are 1 to
 * 2 elements apart. */
#include "codegen/cpu/cpu_access.h"

/* Numbers as they were before they were made wider: where lanes are elements of a view that is
 * indexed by i32, half the instructions. */
static LLVMValueRef as_narrow(LLVMValueRef x)
{
    return LLVMIsASExtInst(x) ? LLVMGetOperand(x, 0) : x;
}

static LLVMValueRef lane_of(TlCpuGen *g, LLVMValueRef x, int lane)
{
    x = LLVMBuildExtractElement(g->b, x, tl_cpu_i32(g, (uint64_t)lane), "");
    return LLVMBuildIntCast2(g->b, x, g->i64, 1, "");
}

/* A vector of what is loaded: lanes `from` and on, up to `span` elements behind p. */
static LLVMValueRef load_part(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef span,
                              int from, int width)
{
    TlGen *gen = &g->gen;
    LLVMValueRef most = tl_gen_splat(gen, LLVMBuildTrunc(g->b, span, g->i32, ""), width),
                 at = LLVMBuildAdd(g->b, tl_gen_iota(gen, g->i32, width),
                                   tl_gen_splat(gen, tl_cpu_i32(g, (uint64_t)from), width), ""),
                 read = LLVMBuildICmp(g->b, LLVMIntULE, at, most, ""),
                 zero = tl_gen_const(gen, elem, 0, width);
    p = tl_gen_address(gen, elem->dtype, p, tl_gen_int(gen, from));
    return tl_gen_to_mem(gen, elem, tl_cpu_masked_load(g, elem, p, read, zero, width, false));
}

static LLVMValueRef take_lanes(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef span,
                               LLVMValueRef lane)
{
    int width = tl_gen_width_of(lane), bytes = (int)tl_gen_elem_bytes(elem);
    bool may_two = tl_cpu_can_permute_two(g, bytes, width);
    TlCpuFork f = {NULL};
    if (may_two)
        f = tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntULT, span, tl_gen_int(&g->gen, width), ""));
    LLVMValueRef x = tl_cpu_permute(g, load_part(g, elem, p, span, 0, width), bytes, lane);
    if (may_two) { /* else most of what it would load second is masked off */
        tl_cpu_fork_else(g, &f, x);
        LLVMValueRef first = load_part(g, elem, p, span, 0, width),
                     second = load_part(g, elem, p, span, width, width);
        x = tl_cpu_fork_end(g, &f, tl_cpu_permute_two(g, first, second, bytes, lane));
    }
    return tl_gen_from_mem(&g->gen, elem, x);
}

bool tl_cpu_fork_near(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, const TlCpuSpot *s,
                      LLVMValueRef mask, int width, TlCpuFork *out_fork)
{
    int bytes = (int)tl_gen_elem_bytes(elem);
    int reach = tl_cpu_can_permute_two(g, bytes, width) ? 2 * width : width;
    if (!s->lanes || bytes < 4 || !tl_cpu_can_permute(g, bytes, width) ||
        !tl_nest_may_be_near(g->plan, a->a))
        return false;
    LLVMValueRef of = as_narrow(s->lanes), first = lane_of(g, of, 0),
                 last = lane_of(g, of, width - 1), low = tl_cpu_smaller(g, first, last),
                 span = LLVMBuildSub(g->b, tl_cpu_larger(g, first, last), low, "");
    LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(of));
    LLVMValueRef from = LLVMBuildIntCast2(g->b, low, type, 1, ""),
                 most = LLVMBuildIntCast2(g->b, span, type, 0, ""),
                 lane = LLVMBuildSub(g->b, of, tl_gen_splat(&g->gen, from, width), ""),
                 is = LLVMBuildICmp(g->b, LLVMIntULE, lane, tl_gen_splat(&g->gen, most, width), ""),
                 fits = LLVMBuildICmp(g->b, LLVMIntULT, span, tl_gen_int(&g->gen, reach), "");
    is = LLVMBuildNot(g->b, LLVMBuildAnd(g->b, is, mask, ""), "");
    fits = LLVMBuildAnd(g->b, fits, tl_cpu_in_no_lane(g, is), "");
    *out_fork = tl_cpu_fork(g, fits);
    LLVMValueRef p = tl_gen_address(&g->gen, elem->dtype, s->base, low);
    tl_cpu_fork_else(g, out_fork, take_lanes(g, elem, p, span, lane));
    return true;
}
