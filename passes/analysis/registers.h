/* How many registers of a thread a kernel needs, by its tile IR: the one estimate that the choice
 * of warps (default_warps.h), the bounds that PTX states and `tilec explain` take. */
#ifndef TL_REGISTERS_H
#define TL_REGISTERS_H
#include "passes/analysis/axis_info.h"

typedef struct TlRegisterNeed {
    int registers;  /* of a thread: at the fullest op, with what is needed everywhere */
    int words;      /* of tiles among them */
    const TlOp *op; /* the fullest; NULL: there are no tiles */
} TlRegisterNeed;

/* Of a function that is laid out. by_llvm: the target's machine code is LLVM's. */
TlRegisterNeed tl_registers_needed(const TlFn *fn, const TlAxisInfo *axis, bool by_llvm,
                                   TlArena *scratch);
#endif
