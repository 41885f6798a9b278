/* Can a product with scales of blocks be into tensor memory (tcgen05)? No other instruction of
 * these machines takes scales, so that there is no way back: what later passes need is made sure of
 * here. accelerate-dot then takes the instruction, whatever others cost, and async-dots gives these
 * products' operands their place in shared memory before all others.
 *
 *  - types: those of tensor.def; both sides of f4e2m1 are pairs by then (unpack), f4e2m1 beside f8
 *    is f8e4m3 (scale-dots)
 *  - rows and columns by 128, as scales lie; whole words of four scales along K, or a half or
 *    quarter of one, whose other bytes nobody reads; operands that the instruction can read where a
 *    buffer has them, whichever way their rows go
 *  - four warps, which read the sums
 *  - room in shared memory for one slot of each operand, in tensor memory for sums and scales, with
 *    those that the kernel's other products of this kind take */
#include "passes/simplify/scale_tensor.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "ir/plan/tensor_scales.h"

/* Of a matrix with so many rows and steps of K: a buffer whose rows run along axis `row`. */
static const TlType *buffer(const TlPassCtx *px, TlDtype d, int32_t rows, int32_t k, int row)
{
    const TlType *tile = tl_type_tile(px->ctx, d, 2, (int32_t[]){rows, k});
    return tl_staging_image_buf(px->ctx, px->scratch, tile, row, TL_STAGING_PIECE);
}

/* Operand A or B, transposed: can the instruction read it whichever way it lies? Pairs lie along K.
 */
static bool is_readable(const TlPassCtx *px, const TlMma *mma, int operand, int32_t rows, int32_t k)
{
    bool pairs = mma->type[operand] == TL_U8;
    for (int row = pairs ? 1 : 0; row < 2; row++) {
        TlValue as_if = {.type = buffer(px, mma->type[operand], rows, k, row)};
        TlAsyncSide side = {.buf = &as_if, .flipped = operand == TL_MMA_B};
        if (!as_if.type || !tl_async_reads(px->scratch, mma, operand, &side))
            return false;
    }
    return true;
}

/* Warps that the kernel or the command states; 0: choose-warps finds some, four at the least. */
static int stated_warps(const TlFn *fn, const TlPassCtx *px)
{
    if (fn->body->warps || !fn->info || !fn->info->warps)
        return fn->body->warps ? fn->body->warps : px->machine->warps;
    return fn->info->warps;
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
    for (int i = 0; i < 2; i++) {
        const TlType *s = tl_in(dot, (uint32_t)(TL_MMA_SA + i))->type,
                     *buf = tl_tensor_scales_buf(px->ctx, px->scratch, s);
        int32_t rows = s->shape[0], k = s->shape[1] * mma->each;
        if (!buf || !is_readable(px, mma, i, rows, k))
            return TL_SCALE_SHAPE;
        more.bytes += tl_buf_bytes(buf) + tl_buf_bytes(buffer(px, mma->type[i], rows, k, 1));
        scales += tl_tensor_scales_columns(buf);
    }
    more.columns += tl_tensor_columns(dot->out[0]->type);
    more.scales = scales > more.scales ? scales : more.scales;
    if (!has_room(px, &more))
        return TL_SCALE_ROOM;
    *room = more;
    return TL_SCALE_NONE;
}
