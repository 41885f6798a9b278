/* Can a product with scales of blocks be into tensor memory (tcgen05)? No other instruction of
 * these machines takes scales, so that there is no way back: what later passes need is made sure of
 * here. accelerate-dot then takes the instruction, whatever others cost, and async-dots gives these
 * products' operands their place in shared memory before all others.
 *
 *  - types: those of tensor.def; both sides of f4e2m1 are pairs by then (unpack), f4e2m1 beside f8
 *    is f8e4m3 (scale-dots)
 *  - rows by 128, as many as instructions with scales have; columns of whole instructions, that
 *    warps can share; whole steps along K; operands that the instruction can read along K where a
 *    buffer has them
 *  - four warps, which read the sums
 *  - room in shared memory for one slot of each operand, in tensor memory for sums and scales, with
 *    those that the kernel's other products of this kind take */
#include "passes/simplify/scale_tensor.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "ir/plan/tensor_scales.h"

/* Of a matrix with so many rows and steps of K: a buffer whose rows run along K. */
static const TlType *buffer(const TlPassCtx *px, TlDtype d, int32_t rows, int32_t k)
{
    const TlType *tile = tl_type_tile(px->ctx, d, 2, (int32_t[]){rows, k});
    return tl_staging_image_buf(px->ctx, px->scratch, tile, 1, TL_STAGING_PIECE);
}

/* Operand A or B, transposed: can the instruction read it along K? Where it lies the other way, and
 * cannot be read so, threads turn it (async-dots). */
static bool is_readable(const TlPassCtx *px, const TlMma *mma, int operand, const TlType *buf)
{
    TlValue as_if = {.type = buf};
    TlAsyncSide side = {.buf = &as_if, .flipped = operand == TL_MMA_B};
    return buf && tl_async_reads(px->scratch, mma, operand, &side);
}

/* Warps that the kernel or the command states; 0: choose-warps finds some, four at the least. */
static int stated_warps(const TlFn *fn, const TlPassCtx *px)
{
    if (fn->body->warps || !fn->info || !fn->info->warps)
        return fn->body->warps ? fn->body->warps : px->machine->warps;
    return fn->info->warps;
}

/* Rows, columns and depth of the product. warps: 0: as many as there may ever be. */
static bool has_shape(const TlMma *mma, const TlOp *dot, int warps)
{
    enum { MOST_WARPS = 32 };
    const TlType *c = dot->out[0]->type;
    int32_t k = tl_in(dot, TL_MMA_SA)->type->shape[1] * mma->each;
    int bits = tl_floor_log2(warps ? warps : MOST_WARPS) - TL_GROUP_WARP_BITS;
    return c->shape[0] % TL_TENSOR_LANES == 0 && k % mma->k == 0 &&
           tl_tensor_has_columns(mma, c->shape[1], bits);
}

static bool has_room(const TlPassCtx *px, const TlScaleRoom *r)
{
    return r->bytes + TL_SHARED_BUDGET <= px->machine->shared_bytes &&
           r->columns + r->scales <= TL_TENSOR_COLUMNS;
}

TlScaleFault tl_scale_tensor_fault(const TlFn *fn, const TlPassCtx *px, const TlOp *dot,
                                   const TlDtype *types, TlScaleRoom *room)
{
    const TlMma *mma =
        tl_tensor_scaled_for(types[0], types[1], tl_in(dot, TL_MMA_SA)->type->dtype);
    TlScaleRoom more = *room;
    int warps = stated_warps(fn, px);
    int64_t scales = 0;
    if (!mma)
        return TL_SCALE_TYPES;
    if (warps && warps < TL_GROUP_WARPS)
        return TL_SCALE_WARPS;
    if (!has_shape(mma, dot, warps))
        return TL_SCALE_SHAPE;
    for (int i = 0; i < 2; i++) {
        const TlType *s = tl_in(dot, (uint32_t)(TL_MMA_SA + i))->type,
                     *buf = tl_tensor_scales_buf(px->ctx, px->scratch, s);
        int32_t rows = s->shape[0], k = s->shape[1] * mma->each;
        const TlType *image = buffer(px, mma->type[i], rows, k);
        if (!is_readable(px, mma, i, image))
            return TL_SCALE_SHAPE;
        more.bytes += tl_buf_bytes(buf) + tl_buf_bytes(image);
        scales += tl_tensor_scales_columns(buf);
    }
    more.columns += tl_tensor_columns(dot->out[0]->type);
    more.scales = scales > more.scales ? scales : more.scales;
    if (!has_room(px, &more))
        return TL_SCALE_ROOM;
    *room = more;
    return TL_SCALE_NONE;
}
