/* Tiles of a GET with `late`, whose registers a later READ, or a product by matrix instructions,
 * reads from the buffer (IR.md "Staged"). */
#ifndef TL_LATE_H
#define TL_LATE_H
#include "ir/ir.h"

/* The GET that a tile comes from, directly or through TRANS; NULL if there is none. */
TlOp *tl_get_of(const TlValue *v);
/* The same if the GET has `late`; otherwise NULL. */
TlOp *tl_late_get(const TlValue *v);
/* May this op stand between a GET and the op that reads its tile? Not if it changes shared memory,
 * including the scratch of ops, or lets other warps change it. A copy may: one that could overwrite
 * what has not been read starts after a barrier, a bulk copy after the warps' arrivals at one. */
bool tl_may_read_behind(const TlOp *op);
#endif
