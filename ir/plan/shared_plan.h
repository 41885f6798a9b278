/* How much shared memory an op wants for itself while it runs, and what it does there. Pure
 * arithmetic, asked by allocate-shared, synchronize and the SIMT lowering alike.
 *
 * An op with scratch uses [SHARED, SHARED + bytes) like this, which synchronize relies on:
 * first it writes (no barrier before: what was there must be done with), then come barriers of its
 * own, and last it reads. So before it a barrier is due when an access to these bytes, read or
 * write, may be pending; after it nothing older than its own reads is pending any more.
 *
 * What an op moves need not be there at once. In rounds a part of it is written, read, and then the
 * next part is written in its place: barrier, write, barrier, read. Tables and products take so
 * many rounds that TL_SHARED_BUDGET is enough, conversions too where no thread is idle then, all
 * others one. Where `shared` says how many bytes there are, they are fewer than the op would take:
 * every plan then has as many rounds as it needs. allocate-shared alone sets it. */
#ifndef TL_SHARED_PLAN_H
#define TL_SHARED_PLAN_H
#include "ir/ir.h"
#include "ir/plan/layout_convert.h"

/* Bytes of scratch of this op; 0 when it works without shared memory and without a barrier.
 * Laid-out level only. convert, reduce, scan, dot, gather; an atomic whose result others need than
 * the thread that did it. */
uint32_t tl_op_shared_bytes(TlArena *arena, const TlOp *op);
/* The same of an op that does not go in parts. */
uint32_t tl_op_whole_bytes(TlArena *arena, const TlOp *op);
/* What an op takes at most where it can do with less, in more rounds, at no great cost. */
enum { TL_SHARED_BUDGET = 32 * 1024 };
/* The bytes that its `shared` says; where it says none, `most`. */
uint32_t tl_op_room(const TlOp *op, uint32_t most);
bool tl_op_goes_in_parts(const TlOp *op);                   /* does it say some? */
void tl_op_set_room(TlFn *fn, TlOp *op, uint32_t bytes); /* 0: none */
/* The plan that these bytes are of. */
TlConvert *tl_op_convert_plan(TlArena *arena, const TlOp *convert);
/* How many elements of its result an atomic passes on in a round; the next ones in the next. */
uint32_t tl_atomic_part(const TlOp *atomic);
/* Alignment of all scratch, in bytes. */
enum { TL_SHARED_ALIGNMENT = 16 };
#endif
