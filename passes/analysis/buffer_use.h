/* How an op uses a buffer of shared memory: which bytes, which slot, and whether two uses may
 * conflict (synchronize). Staged level only. */
#ifndef TL_BUFFER_USE_H
#define TL_BUFFER_USE_H
#include "ir/ir.h"

/* A slot as another one and a distance: (base + ahead) mod slots, 0 <= ahead < slots. */
typedef struct TlBufSlot {
    const TlValue *base;
    int ahead;
} TlBufSlot;

typedef struct TlBufUse {
    const TlValue *buf;
    uint64_t from, to; /* bytes of shared memory that the buffer has, all its slots */
    int64_t slot;      /* -1: no constant */
    TlBufSlot of;
    bool writes;
} TlBufUse;

/* Of put, get, copy and dot_async, which may use several; how many. */
enum { TL_MOST_BUF_USES = 4 };
uint32_t tl_buf_uses(const TlOp *op, TlBufUse *out);
/* How many slots a PUT or COPY is ahead of the slot that its own is counted from, which this
 * iteration's gets read; 0 for any other op. */
int tl_op_ahead(const TlOp *op);
/* May both touch one byte, and one of them write? same_trip: they are in one innermost loop, in the
 * same iteration of it. */
bool tl_buf_uses_meet(const TlBufUse *a, const TlBufUse *b, bool same_trip);
#endif
