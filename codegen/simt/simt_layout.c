/* Where a register's element is: coordinates of registers in a thread, and who holds what.
 *
 * A coordinate is constant per register XOR a part that depends on the thread: the images of the
 * set bits of lane and warp. As the map is linear, bit b of the part collects bit i of the lane
 * whenever image i has bit b: all pairs with the same b - i are one mask and one shift. */
#include "codegen/simt/simt.h"
#include "ir/plan/layout_convert.h"
#include "ir/plan/layout_rules.h"

#include <string.h>

/* ---- the warp ---- */

LLVMValueRef tl_simt_uniform_warp(TlSimt *g)
{
    if (g->uniform_warp)
        return g->uniform_warp;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(g->prologue));
    LLVMValueRef args[] = {g->first_warp, tl_simt_i32(g, 0)};
    g->uniform_warp = tl_simt_leaf(g, TL_LEAF_SHFL_IDX, 2, args);
    LLVMPositionBuilderAtEnd(g->b, here);
    return g->uniform_warp;
}

LLVMValueRef tl_simt_is_first_warp(TlSimt *g)
{
    if (g->one_warp)
        return LLVMConstInt(g->i1, 1, 0);
    return LLVMBuildICmp(g->b, LLVMIntEQ, tl_simt_uniform_warp(g), tl_simt_i32(g, 0), "");
}

/* ---- the thread's part ---- */

static LLVMValueRef shifted(TlSimt *g, LLVMValueRef x, uint32_t mask, int by)
{
    x = LLVMBuildAnd(g->b, x, tl_simt_i32(g, mask), "");
    if (by > 0)
        return LLVMBuildShl(g->b, x, tl_simt_i32(g, (uint32_t)by), "");
    return by < 0 ? LLVMBuildLShr(g->b, x, tl_simt_i32(g, (uint32_t)-by), "") : x;
}

/* The XOR of image[i] over the set bits i of x. */
static LLVMValueRef linear(TlSimt *g, LLVMValueRef sum, LLVMValueRef x, int bits,
                           const uint32_t *image)
{
    for (int by = -bits; by < 32; by++) {
        uint32_t mask = 0;
        for (int i = 0; i < bits; i++)
            if (i + by >= 0 && i + by < 32 && image[i] >> (i + by) & 1)
                mask |= 1u << i;
        if (mask)
            sum = LLVMBuildXor(g->b, sum, shifted(g, x, mask, by), "");
    }
    return sum;
}

LLVMValueRef tl_simt_thread_xor(TlSimt *g, int lane_bits, const uint32_t *lane, int warp_bits,
                                const uint32_t *warp)
{
    TL_ASSERT(lane_bits <= g->lane_bits && warp_bits <= g->warp_bits,
              "2^%d lanes, 2^%d warps", lane_bits, warp_bits);
    LLVMValueRef none = tl_simt_i32(g, 0);
    bool apart = g->options->target->family->scalar_base; /* a warp's number may be a scalar */
    const TlSimtThread *t = &g->thread;
    if (lane_bits < g->lane_bits || warp_bits == 0 || apart)
        return linear(g, linear(g, none, t->lane, lane_bits, lane), t->warp, warp_bits, warp);
    uint32_t image[TL_MAX_LANE_BITS + TL_MAX_WARP_BITS]; /* of the thread's number */
    memcpy(image, lane, sizeof *lane * (size_t)lane_bits);
    memcpy(image + lane_bits, warp, sizeof *warp * (size_t)warp_bits);
    return linear(g, none, t->tid, lane_bits + warp_bits, image);
}

/* The coordinates of a layout in this thread: per output the XOR part and the bits it may have. */
typedef struct Part {
    LLVMValueRef value[TL_LAYOUT_MAX_OUT];
    uint32_t bits[TL_LAYOUT_MAX_OUT];
} Part;

static int images(const TlLayout *l, TlInDim in, int out, uint32_t *image)
{
    int k = tl_layout_in_index(l, in), n = tl_layout_in_bits(l, in);
    for (int i = 0; i < n; i++)
        image[i] = (uint32_t)l->basis[k][i][out];
    return n;
}

/* Built in the block of the thread's numbers, so that it dominates every use of the layout. */
static Part *part_of(TlSimt *g, const TlLayout *l)
{
    Part *p = tl_map_get_ptr(g->thread.parts, l);
    if (p)
        return p;
    p = TL_NEW(g->arena, Part);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(g->thread.block));
    for (int d = 0; d < l->nout; d++) {
        uint32_t lane[TL_LAYOUT_MAX_BITS], warp[TL_LAYOUT_MAX_BITS];
        int lanes = images(l, TL_IN_LANE, d, lane), warps = images(l, TL_IN_WARP, d, warp);
        p->value[d] = tl_simt_thread_xor(g, lanes, lane, warps, warp);
        for (int i = 0; i < lanes; i++)
            p->bits[d] |= lane[i];
        for (int i = 0; i < warps; i++)
            p->bits[d] |= warp[i];
    }
    LLVMPositionBuilderAtEnd(g->b, here);
    tl_gen_set_loc(&g->gen, g->loc);
    tl_map_put_ptr(g->thread.parts, l, p);
    return p;
}

/* ---- registers ---- */

static void at_thread_0(const TlLayout *l, int64_t reg, int32_t *out)
{
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    tl_layout_apply_reg(l, reg, in, out);
}

TlSimtCoord tl_simt_split_coord(TlSimt *g, const TlLayout *l, int64_t reg, int dim)
{
    TL_ASSERT(dim >= 0 && dim < l->nout && reg >= 0,
              "axis %d of register %lld", dim, (long long)reg);
    Part *p = part_of(g, l);
    int32_t c[TL_LAYOUT_MAX_OUT];
    at_thread_0(l, reg, c);
    uint32_t chunk = 1u << l->out_bits[dim], low = (uint32_t)c[dim] & (chunk - 1);
    if (!(low & p->bits[dim]))
        return (TlSimtCoord){p->value[dim], c[dim], p->bits[dim]};
    LLVMValueRef x = LLVMBuildXor(g->b, p->value[dim], tl_simt_i32(g, low), "");
    return (TlSimtCoord){x, c[dim] - (int32_t)low, p->bits[dim] | low};
}

LLVMValueRef tl_simt_coord(TlSimt *g, const TlLayout *l, int64_t reg, int dim)
{
    TL_ASSERT(dim >= 0 && dim < l->nout && reg >= 0,
              "axis %d of register %lld", dim, (long long)reg);
    TlSimtCoord c = tl_simt_split_coord(g, l, reg, dim);
    return LLVMBuildNSWAdd(g->b, c.thread, tl_simt_i32(g, (uint32_t)c.constant), "");
}

LLVMValueRef tl_simt_both(TlSimt *g, LLVMValueRef a, LLVMValueRef b)
{
    return !a ? b : !b ? a : LLVMBuildAnd(g->b, a, b, "");
}

LLVMValueRef tl_simt_is_inside(TlSimt *g, const TlType *type, int64_t reg)
{
    TL_ASSERT(type->layout && reg >= 0, "register %lld", (long long)reg);
    const TlLayout *l = type->layout;
    LLVMValueRef all = NULL;
    int32_t c[TL_LAYOUT_MAX_OUT];
    at_thread_0(l, reg, c);
    for (int d = 0; d < l->nout; d++) {
        uint32_t most = (uint32_t)c[d] | part_of(g, l)->bits[d];
        if (most < (uint32_t)type->shape[d])
            continue;
        LLVMValueRef limit = tl_simt_i32(g, (uint32_t)type->shape[d]);
        all = tl_simt_both(g, all,
                           LLVMBuildICmp(g->b, LLVMIntULT, tl_simt_coord(g, l, reg, d), limit, ""));
    }
    return all;
}

static LLVMValueRef is_zero(TlSimt *g, LLVMValueRef x, uint32_t mask)
{
    if (!mask)
        return NULL;
    LLVMValueRef bits = LLVMBuildAnd(g->b, x, tl_simt_i32(g, mask), "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, bits, tl_simt_i32(g, 0), "");
}

LLVMValueRef tl_simt_is_owner(TlSimt *g, const TlLayout *l)
{
    uint32_t free_bits[TL_LAYOUT_MAX_IN] = {0};
    tl_layout_free_masks(l, free_bits);
    int lane = tl_layout_in_index(l, TL_IN_LANE), warp = tl_layout_in_index(l, TL_IN_WARP);
    return tl_simt_both(g, lane < 0 ? NULL : is_zero(g, g->thread.lane, free_bits[lane]),
                        warp < 0 ? NULL : is_zero(g, g->thread.warp, free_bits[warp]));
}

int64_t tl_simt_match(TlSimt *g, const TlLayout *of, const TlLayout *l, int64_t reg,
                      const int *dims)
{
    (void)g;
    int32_t from[TL_LAYOUT_MAX_OUT], to[TL_LAYOUT_MAX_OUT];
    at_thread_0(l, reg, from);
    for (int d = 0; d < of->nout; d++)
        to[d] = dims[d] < 0 ? 0 : from[dims[d]];
    int64_t r = tl_layout_register_at(of, to);
    TL_ASSERT(r >= 0, "no register of the operand holds the element of register %d", (int)reg);
    return r;
}
