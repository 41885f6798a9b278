/* Divisions of 64-bit integers that are equal in all threads, on AMD GPUs.
 *
 * LLVM makes each some 150 instructions in place, by way of floats. The floats are vectors whatever
 * the operands are, and of each value that goes from there to a scalar register and back, a pass of
 * LLVM (SIFixSGPRCopies) looks at all that hangs on it: time grows by the square of the number of
 * divisions. So in a kernel with more than a few of them the operands go to vector registers first,
 * and the quotient comes back by an instruction of its own. */
#include "codegen/workaround/workaround.h"

enum { FEW_DIVISIONS = 4 };

/* Does it provably fit 32 bits? LLVM then divides 32-bit numbers. */
static bool is_narrow(LLVMValueRef x)
{
    if (LLVMIsAConstantInt(x)) {
        int64_t v = LLVMConstIntGetSExtValue(x);
        return v >= INT32_MIN && v <= INT32_MAX;
    }
    if (LLVMIsASelectInst(x))
        return (LLVMIsAConstantInt(LLVMGetOperand(x, 1)) ||
                LLVMIsACastInst(LLVMGetOperand(x, 1))) &&
               is_narrow(LLVMGetOperand(x, 1)) && is_narrow(LLVMGetOperand(x, 2));
    return (LLVMIsASExtInst(x) || LLVMIsAZExtInst(x)) &&
           LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(x, 0))) <= 32;
}

static bool is_division(LLVMValueRef x)
{
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMSDiv:
    case LLVMUDiv:
    case LLVMSRem:
    case LLVMURem: break;
    default: return false;
    }
    return LLVMTypeOf(x) == LLVMInt64TypeInContext(LLVMGetTypeContext(LLVMTypeOf(x))) &&
           !LLVMIsAConstantInt(LLVMGetOperand(x, 1)) &&
           !(is_narrow(LLVMGetOperand(x, 0)) && is_narrow(LLVMGetOperand(x, 1)));
}

static LLVMValueRef in_scalar(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    return tl_llvm_intrinsic(l, b, "llvm.amdgcn.readfirstlane", &t, 1, &x, 1);
}

static void divide_in_vectors(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef old)
{
    LLVMPositionBuilderBefore(b, old);
    LLVMValueRef x = tl_llvm_hide(b, LLVMGetOperand(old, 0), "=v,0"),
                 y = tl_llvm_hide(b, LLVMGetOperand(old, 1), "=v,0");
    LLVMValueRef q = LLVMBuildBinOp(b, LLVMGetInstructionOpcode(old), x, y, "");
    LLVMReplaceAllUsesWith(old, in_scalar(l, b, q));
    LLVMInstructionEraseFromParent(old);
}

void tl_amd_divide(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    TlMap varies;
    TL_VEC(LLVMValueRef) divisions = {0};
    tl_amd_find_varying(l->arena, function, &varies);
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x))
            if (is_division(x) && !tl_map_get(&varies, (uint64_t)(uintptr_t)x, NULL))
                tl_vec_push(l->arena, &divisions, x);
    for (uint32_t i = 0; divisions.len > FEW_DIVISIONS && i < divisions.len; i++)
        divide_in_vectors(l, b, divisions.data[i]);
}
