/* How much shared memory a function takes (allocate_shared.c). */
#ifndef TL_ALLOCATE_SHARED_H
#define TL_ALLOCATE_SHARED_H
#include "passes/analysis/shared_life.h"
#include "passes/pass.h"

/* Bytes of all there is, without the scratch of `without` and with one life more; NULL: neither. */
uint64_t tl_shared_total(TlFn *fn, TlPassCtx *px, const TlOp *without, const TlSharedLife *more);
#endif
