/* Which bulk copies bring the same data to all programs of a cluster, so that each program can
 * bring a part of it to all. A cluster's programs are consecutive along one axis of the grid
 * (TlKernelInfo). */
#ifndef TL_CLUSTER_H
#define TL_CLUSTER_H
#include "ir/ir.h"

/* Why a copy is each program's own; in words: tl_share_fault_text. */
typedef enum TlShareFault {
    TL_SHARE_NONE,
    TL_SHARE_PLACE, /* programs read other parts of memory */
    TL_SHARE_TRIPS, /* programs come to it, or to its iterations, at other times */
    TL_SHARE_PARTS, /* no boxes that all begin as many of */
    TL_SHARE_COUNT
} TlShareFault;

/* Why no launch of the kernel's own grid has whole clusters (runtime/launch_bind.c), of those that
 * its clause asks for; NULL: some may, or it asks for none. */
const char *tl_cluster_never(const TlFn *fn);
/* Of programs of a cluster, as the kernel's clause says; 1: there are none. */
int32_t tl_cluster_size(const TlFn *fn);
/* op: a LOAD, or a bulk COPY, of what goes to the buffer as a bulk copy. buf NULL: in which parts,
 * nobody asks. */
TlShareFault tl_share_fault(const TlFn *fn, TlArena *arena, const TlOp *op, const TlType *buf);
/* The rest of "each program brings its own: ". */
const char *tl_share_fault_text(TlShareFault fault);
#endif
