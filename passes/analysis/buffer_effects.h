/* How ops use slots of buffers in shared memory: who accesses them, and what says that the access
 * is over (buffer_effects.def). */
#ifndef TL_BUFFER_EFFECTS_H
#define TL_BUFFER_EFFECTS_H
#include "ir/ir.h"

typedef struct TlEffect {
    bool writes;      /* slots; else it reads them */
    bool is_async;    /* an engine does it, which sees what threads write behind a fence only */
    bool seen_by_all; /* who has waited sees it; else only who began it, others behind a barrier */
    TlOpcode done;    /* the op that waits for it; TL_OP_COUNT: it is over at once */
} TlEffect;

TlEffect tl_effect_of(const TlOp *op); /* of other ops: a read by threads */
bool tl_goes_on(const TlOp *op);       /* behind the op, until another says that it is over */
bool tl_is_wait(const TlOp *op);       /* for what goes on, of some kind */
#endif
