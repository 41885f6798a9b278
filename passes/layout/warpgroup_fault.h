/* Why four warps together (wgmma) do not do a product. */
#ifndef TL_WARPGROUP_FAULT_H
#define TL_WARPGROUP_FAULT_H
#include "ir/plan/mma.h"
#include "passes/analysis/axis_info.h"
#include "passes/layout/dot_warps.h"

typedef enum TlWarpgroupFault {
    TL_WARPGROUP_NONE,
#define WARPGROUP(ID, why) TL_WARPGROUP_##ID,
#include "passes/layout/warpgroup_fault.def"
    TL_WARPGROUP_COUNT
} TlWarpgroupFault;

/* What the product itself says, or (turned) that of the transposed operands: before async-dots, and
 * behind it of one that it gave up. NONE: nothing; whether there is room for the operands is
 * another matter. */
TlWarpgroupFault tl_warpgroup_fault(const TlAxisInfo *axis, const TlOp *dot, const TlDotShape *s);
/* Is B computed, element by element, from elements of so many bits that lie along N in memory? */
bool tl_lies_along_n(const TlAxisInfo *axis, const TlOp *dot, int bits);
const char *tl_warpgroup_fault_text(TlWarpgroupFault fault);
#endif
