/* The loops of a function in LLVM's IR. */
#ifndef TL_LLVM_LOOPS_H
#define TL_LLVM_LOOPS_H
#include <llvm-c/Core.h>

#include "ir/support/arena.h"

#define TL_NO_LOOP UINT32_MAX

/* All blocks from which its header is reached again without leaving it. */
typedef struct TlLoop {
    LLVMBasicBlockRef header;
    uint32_t outer; /* the loop around it, or TL_NO_LOOP */
} TlLoop;

typedef struct TlLoops {
    TL_VEC(TlLoop) loops; /* an outer one before its inner ones */
    TlMap innermost;      /* block to the smallest loop around it */
} TlLoops;

void tl_loops_find(TlArena *arena, LLVMValueRef function, TlLoops *out);
uint32_t tl_loop_around(const TlLoops *loops, LLVMBasicBlockRef block);
bool tl_loop_is_inside(const TlLoops *loops, uint32_t inner, uint32_t outer); /* or the same */
#endif
