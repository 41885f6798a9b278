/* Clamped numbers that are equal in all threads, on AMD GPUs.
 *
 *     %m = smax(%n, 0)
 *     %r = umin(%m, 8192)
 *
 * LLVM 22 makes one v_med3_i32 of the two, though %n is in a scalar register (LLVM 19 keeps them
 * apart, with a select). If it is the length of a buffer, each access is in a loop over the lanes
 * then, as these might have different ones. So amd_buffer.c takes the first lane's. */
#include "codegen/workaround/workaround.h"

static bool has_limit(LLVMValueRef x, const char *name)
{
    return tl_llvm_is_call_of(x, name) && LLVMIsAConstantInt(LLVMGetOperand(x, 1));
}

static bool is_least(LLVMValueRef x)
{
    return has_limit(x, "llvm.umin.i32") || has_limit(x, "llvm.smin.i32");
}

static bool is_greatest(LLVMValueRef x)
{
    return has_limit(x, "llvm.umax.i32") || has_limit(x, "llvm.smax.i32");
}

/* Or one in bytes, or nothing. */
static bool is_clamped(LLVMValueRef x)
{
    if (LLVMIsASelectInst(x))
        return is_clamped(LLVMGetOperand(x, 1)) || is_clamped(LLVMGetOperand(x, 2));
    if (LLVMIsAInstruction(x) && LLVMGetInstructionOpcode(x) == LLVMShl)
        return is_clamped(LLVMGetOperand(x, 0));
    return (is_least(x) && is_greatest(LLVMGetOperand(x, 0))) ||
           (is_greatest(x) && is_least(LLVMGetOperand(x, 0)));
}

bool tl_amd_is_clamped(const TlLlvm *l, LLVMValueRef x)
{
    return tl_workaround_is_on(l, TL_WORKAROUND_AMD_CLAMP) && is_clamped(x);
}
