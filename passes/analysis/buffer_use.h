/* How an op uses a buffer of shared memory: which bytes, which slot, and whether two uses may meet
 * (insert-barriers). Staged level only. */
#ifndef TL_BUFFER_USE_H
#define TL_BUFFER_USE_H
#include "ir/ir.h"

typedef struct TlBufUse {
    const TlValue *buf;
    uint64_t from, to; /* bytes of shared memory that the buffer has, all its slots */
    int64_t slot;      /* -1: no constant */
    int64_t ahead;     /* its slot is that of the get so many trips later; -1: not known */
    bool writes;
} TlBufUse;

/* Of put, get, copy and dot_async, which may use two; how many, at most 2. */
uint32_t tl_buf_uses(const TlOp *op, TlBufUse *out);
/* May both touch one byte, and one of them write? same_trip: they are in one innermost loop, in the
 * same trip of it. */
bool tl_buf_uses_meet(const TlBufUse *a, const TlBufUse *b, bool same_trip);
#endif
