/* Addresses that loops share, hidden from LLVM's loop strength reduction.
 *
 * An address that is computed before a loop and indexed in it is usually the start of a row. It
 * should stay as it is, because a base and an index are what an instruction's operand has. But
 * loop strength reduction looks through it, and spends a fifth of code generation on ways to share
 * parts of addresses among all the loops around, for code that is longer in the end. So the
 * address goes through an intrinsic, which vanishes when instructions are selected, and nothing is
 * known of it any more. */
#include "codegen/workaround/workaround.h"

static bool is_used_in_other_loop(const TlLoops *loops, LLVMValueRef x)
{
    uint32_t own = tl_loop_around(loops, LLVMGetInstructionParent(x));
    for (LLVMUseRef use = LLVMGetFirstUse(x); use; use = LLVMGetNextUse(use)) {
        uint32_t loop = tl_loop_around(loops, LLVMGetInstructionParent(LLVMGetUser(use)));
        if (loop != TL_NO_LOOP && loop != own)
            return true;
    }
    return false;
}

static void hide_in_block(TlLlvm *l, LLVMBuilderRef b, const TlLoops *loops,
                          LLVMBasicBlockRef block)
{
    LLVMTypeRef ptr = LLVMPointerTypeInContext(l->context, 0);
    for (LLVMValueRef x = LLVMGetFirstInstruction(block), next; x; x = next) {
        next = LLVMGetNextInstruction(x);
        if (!LLVMIsAGetElementPtrInst(x) || LLVMTypeOf(x) != ptr ||
            !is_used_in_other_loop(loops, x))
            continue;
        TL_ASSERT(next, "an address ends a block");
        LLVMPositionBuilderBefore(b, next);
        LLVMValueRef hidden = tl_llvm_intrinsic(l, b, "llvm.strip.invariant.group", &ptr, 1, &x, 1);
        LLVMReplaceAllUsesWith(x, hidden);
        LLVMSetOperand(hidden, 0, x);
    }
}

void tl_cpu_hide(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    TlLoops loops;
    tl_loops_find(l->arena, function, &loops);
    LLVMBasicBlockRef block = LLVMGetEntryBasicBlock(function); /* it is before all loops */
    while ((block = LLVMGetNextBasicBlock(block)))
        hide_in_block(l, b, &loops, block);
}
