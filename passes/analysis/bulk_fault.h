/* Why a tile of memory that goes to shared memory is not, or cannot be, a bulk copy. */
#ifndef TL_BULK_FAULT_H
#define TL_BULK_FAULT_H
#include "ir/plan/bulk.h"
#include "passes/analysis/axis_info.h"

/* op: a LOAD whose tile goes to the buffer, or the COPY. warpgroups: the machine has products by
 * them, and bulk copies are for these; else threads read what they bring. TL_BULK_NONE: all that
 * can be said of the access and of who reads the buffer suits; when it is begun is another matter.
 */
TlBulkFault tl_bulk_fault(TlArena *arena, const TlAxisInfo *axis, const TlOp *op,
                          const TlValue *buf, bool warpgroups);
#endif
