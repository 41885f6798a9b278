/* What PTX says to ptxas about registers, and what ptxas then takes. */
#ifndef TL_PTXAS_LIMIT_H
#define TL_PTXAS_LIMIT_H
#include "codegen/target/target.h"
#include "ir/ir.h"

typedef struct TlPtxasLimit {
    bool stated;     /* is `most` less than what ptxas would choose from, or all of it for sure? */
    uint32_t blocks; /* of .minnctapersm: a multiprocessor must have room for them; 0: nothing */
    int most;        /* registers that a thread may have */
    int expected;    /* that ptxas is expected to take */
    const char *why; /* in words, of what is stated */
} TlPtxasLimit;

/* Of a kernel of so many threads. Without blocks where the kernel's clause `maxreg` says it. */
TlPtxasLimit tl_ptxas_limit(const TlTarget *target, const TlFn *fn, uint32_t threads,
                            TlArena *scratch);
#endif
