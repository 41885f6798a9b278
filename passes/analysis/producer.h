/* What a warp would do that only issues the copies of a kernel: these copies, the loops and
 * branches around them with the carried values that it needs, and everything these are computed
 * from. */
#ifndef TL_PRODUCER_H
#define TL_PRODUCER_H
#include "ir/ir.h"

typedef struct TlProducer {
    TlMap kept, wanted; /* ops of it, by address; values that it computes, by id */
} TlProducer;

/* Why there is no such warp. */
typedef enum TlProducerFault {
    TL_PRODUCER_NONE,
    TL_PRODUCER_REFUSED, /* specialize(0) */
    TL_PRODUCER_COPIES,
    TL_PRODUCER_WARPS,
    TL_PRODUCER_ROOM,
    TL_PRODUCER_PLACES,
    TL_PRODUCER_HIDES_NOTHING,
    TL_PRODUCER_CROWDED,
    TL_PRODUCER_FAULT_COUNT
} TlProducerFault;

/* The rest of "no warp of its own begins bulk copies: ". */
const char *tl_producer_fault_text(TlProducerFault fault);

/* Which ops are its own: what they take is what it has to compute. */
typedef bool TlBegins(const void *user, const TlOp *op);

/* False: it would have to compute what only all threads can, tiles or what memory holds. */
bool tl_producer_find(const TlFn *fn, TlArena *arena, TlBegins *begins, const void *user,
                      TlProducer *out);
bool tl_producer_keeps(const TlProducer *p, const TlOp *op);
bool tl_producer_wants(const TlProducer *p, const TlValue *v);
/* Has a block of so many lanes a warp room for it: whole warpgroups, of which one more starts? */
bool tl_producer_fits(const TlFn *fn, int lanes);
#endif
