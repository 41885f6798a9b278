/* Products with scales of blocks into tensor memory (scale_tensor.c). */
#ifndef TL_SCALE_TENSOR_H
#define TL_SCALE_TENSOR_H
#include "passes/pass.h"
#include "passes/simplify/scale_dots.h"

/* What the products that keep their scales take of the kernel. */
typedef struct TlScaleRoom {
    uint64_t bytes;         /* of shared memory */
    int64_t columns, scales; /* of tensor memory: sums, and what scales share */
} TlScaleRoom;

/* Why the product cannot be such a one, with operands of these types; NONE: it can, whatever later
 * passes do, and *room, of those that can so far, has it too. It is of scales whose signs do not
 * count. */
TlScaleFault tl_scale_tensor_fault(const TlFn *fn, const TlPassCtx *px, const TlOp *dot,
                                   const TlDtype *types, TlScaleRoom *room);
#endif
