/* Keeps what is known at the end of one loop from the loops after it.
 *
 * Loop strength reduction asks of each loop what is known where it begins. To answer,
 * ScalarEvolution walks up from a block to the one before it as long as there is only one: through
 * all the loops before, in a kernel of many statements, because each ends in a block with a single
 * predecessor. 256 stores took 4.8 s on the CPU, 1024 loops 11 s on sm_80. The walk ends where a
 * block is reached in two ways; so a loop's end is reached directly and through an empty block, by
 * a choice that is left open. CodeGenPrepare, which comes after loop strength reduction, removes
 * both, so the code stays the same. */
#include "codegen/workaround/workaround.h"

enum { FEW = 64 }; /* loops of a function that are nothing to walk through */

static bool is_reached_once(LLVMBasicBlockRef block)
{
    LLVMUseRef first = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); /* phis are none */
    return first && !LLVMGetNextUse(first);
}

/* The loop goes to `fork`, which goes to `end` directly and by way of `empty`. */
static void fork_before(TlLlvm *l, LLVMBuilderRef b, LLVMBasicBlockRef end)
{
    unsigned phis = 0;
    for (LLVMValueRef x = LLVMGetFirstInstruction(end); LLVMIsAPHINode(x);
         x = LLVMGetNextInstruction(x))
        phis++;
    LLVMBasicBlockRef fork = tl_llvm_part(l, end, phis);
    LLVMBasicBlockRef empty = LLVMInsertBasicBlockInContext(l->context, end, "");
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(fork));
    LLVMPositionBuilderAtEnd(b, fork);
    LLVMValueRef open = LLVMBuildFreeze(b, LLVMGetUndef(LLVMInt1TypeInContext(l->context)), "");
    LLVMBuildCondBr(b, open, empty, end);
    LLVMPositionBuilderAtEnd(b, empty);
    LLVMBuildBr(b, end);
    TL_ASSERT(!is_reached_once(end), "the end of a loop is still reached in one way only");
}

void tl_loops_apart(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    TlLoops loops;
    tl_loops_find(l->arena, function, &loops);
    if (loops.loops.len <= FEW)
        return;
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k)) {
        uint32_t loop = tl_loop_around(&loops, k);
        if (loop == TL_NO_LOOP)
            continue; /* the new blocks are in none either */
        LLVMValueRef last = LLVMGetBasicBlockTerminator(k);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(last); i++) {
            LLVMBasicBlockRef end = LLVMGetSuccessor(last, i);
            if (!tl_loop_is_inside(&loops, tl_loop_around(&loops, end), loop) &&
                is_reached_once(end))
                fork_before(l, b, end);
        }
    }
}
