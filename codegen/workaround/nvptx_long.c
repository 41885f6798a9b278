/* What LLVM does to PTX by more than the length of a function, and ptxas does again.
 *
 *   1 A long chain of integer sums is one sum of many terms to LLVM (NaryReassociate and others ask
 *     ScalarEvolution), which it sorts for each link: every LINKS links, a copy that it does not
 *     see through ends it.
 *   2 LLVM gives each division of 64 bits a branch around it, for operands that fit 32. From
 *     MANY_DIVISIONS on, what it does with so many blocks takes longer than all else: optsize is
 *     the attribute of a function without such branches. */
#include "codegen/workaround/workaround.h"

#include <string.h>

enum { LINKS = 64, MANY_DIVISIONS = 128 };

static bool is_link(LLVMValueRef x)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(x);
    return LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMIntegerTypeKind &&
           (opcode == LLVMAdd || opcode == LLVMSub || opcode == LLVMMul);
}

/* x, and how many links are before it; ends the chain. */
static void link(TlLlvm *l, LLVMBuilderRef b, TlMap *links, LLVMValueRef x)
{
    uint64_t most = 0, n;
    for (unsigned i = 0; i < 2; i++)
        if (tl_map_get(links, (uint64_t)(uintptr_t)LLVMGetOperand(x, i), &n) && n > most)
            most = n;
    TL_ASSERT(LLVMGetIntTypeWidth(LLVMTypeOf(x)) > 0 && LLVMGetNumOperands(x) == 2,
              "a link of %d operands", LLVMGetNumOperands(x));
    LLVMTypeRef t = LLVMTypeOf(x);
    bool fits = LLVMGetIntTypeWidth(t) == 32 || LLVMGetIntTypeWidth(t) == 64;
    if (most + 1 < LINKS || !fits) {
        tl_map_put(links, (uint64_t)(uintptr_t)x, most + 1);
        return;
    }
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(x));
    LLVMValueRef copy = tl_llvm_copy(l, b, x, LLVMGetIntTypeWidth(t) == 32 ? "=r,0" : "=l,0");
    LLVMReplaceAllUsesWith(x, copy);
    LLVMSetOperand(copy, 0, x);
}

static bool is_division(LLVMValueRef x)
{
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem: return LLVMGetIntTypeWidth(LLVMTypeOf(x)) == 64;
    default: return false;
    }
}

void tl_nvptx_long(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    unsigned divisions = 0;
    TlMap links = {.arena = l->arena};
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x)) {
            divisions += is_division(x);
            if (is_link(x))
                link(l, b, &links, x);
        }
    if (divisions > MANY_DIVISIONS)
        tl_llvm_set_attribute(l, function, LLVMAttributeFunctionIndex, "optsize", 0);
}
