/* How much shared memory an op wants for itself while it runs, and what it does there. Pure
 * arithmetic, asked by allocate-shared, insert-barriers and the SIMT lowering alike.
 *
 * An op with scratch uses [SHARED, SHARED + bytes) like this, which insert-barriers relies on:
 * first it writes (no barrier before: what was there must be done with), then come barriers of its
 * own, and last it reads. So before it a barrier is due when an access to these bytes, read or
 * write, may be pending; after it nothing older than its own reads is pending any more. */
#ifndef TL_SHARED_PLAN_H
#define TL_SHARED_PLAN_H
#include "ir/ir.h"
#include "ir/plan/layout_convert.h"

/* Bytes of scratch of this op; 0 when it works without shared memory and without a barrier.
 * Laid-out level only. convert, reduce, scan, dot, gather; an atomic whose result others need than
 * the thread that did it. */
uint32_t tl_op_shared_bytes(TlArena *arena, const TlOp *op);
/* What an op takes at most where it can do with less, in more rounds. */
enum { TL_SHARED_BUDGET = 32 * 1024 };
/* The plan that these bytes are of. */
TlConvert *tl_op_convert_plan(TlArena *arena, const TlOp *convert);
/* Alignment of all scratch, in bytes. */
enum { TL_SHARED_ALIGNMENT = 16 };
#endif
