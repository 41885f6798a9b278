/* Offsets of accesses in loops: does NVIDIA code keep them in registers, or compute each where it
 * is used? */
#ifndef TL_KEPT_OFFSETS_H
#define TL_KEPT_OFFSETS_H
#include "passes/analysis/axis_info.h"

/* Accesses of one op from which on they are many: their offsets are bytes (simt_access.c). */
enum { TL_MANY_OFFSETS = 16 };

/* How often a thread loads, stores or copies for an op that is laid out; 0: it does not by itself,
 * but by a bulk copy. */
int64_t tl_op_accesses(const TlAxisInfo *axis, const TlOp *op);
/* Offsets of a kernel's loops that are too many to be kept; 0: they are kept. */
int64_t tl_offsets_not_kept(const TlFn *fn, const TlAxisInfo *axis);
#endif
