/* Products of f32 and what was f16: RDNA has a multiply-add whose operands are either, LLVM 19
 * takes it for multiply-adds and for products that become f16, and converts the operands of others.
 *
 *     %x = fpext half %h to float                  %x = fpext half %h to float
 *     %p = fmul float %x, %y                 =>    %p = call float @llvm.fma(%x, %y, -0.0)
 *
 * Adding -0 changes nothing. Where the converted value is needed for something else, too, the
 * product stays. */
#include "codegen/workaround/workaround.h"

static bool is_fma(LLVMValueRef x)
{
    return tl_llvm_is_call_of(x, "llvm.fma.f32");
}

static bool is_product(LLVMValueRef x)
{
    return LLVMIsAInstruction(x) && LLVMGetInstructionOpcode(x) == LLVMFMul &&
           LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMFloatTypeKind;
}

/* Is x converted from f16 for products and multiply-adds alone? */
static bool is_for_products(LLVMValueRef x)
{
    if (!LLVMIsAInstruction(x) || LLVMGetInstructionOpcode(x) != LLVMFPExt ||
        LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(x, 0))) != LLVMHalfTypeKind)
        return false;
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if (!is_product(LLVMGetUser(u)) && !is_fma(LLVMGetUser(u)))
            return false;
    return true;
}

/* Is it rounded to f16, and nothing else? */
static bool becomes_f16(LLVMValueRef x)
{
    LLVMUseRef only = LLVMGetFirstUse(x);
    if (!only || LLVMGetNextUse(only) || !LLVMIsAFPTruncInst(LLVMGetUser(only)))
        return false;
    return LLVMGetTypeKind(LLVMTypeOf(LLVMGetUser(only))) == LLVMHalfTypeKind;
}

static LLVMValueRef as_fma(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x)
{
    LLVMTypeRef f32 = LLVMTypeOf(x);
    LLVMValueRef args[3] = {LLVMGetOperand(x, 0), LLVMGetOperand(x, 1), LLVMConstReal(f32, -0.0)};
    return tl_llvm_intrinsic(l, b, "llvm.fma", &f32, 1, args, 3);
}

void tl_amd_mix(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    LLVMValueRef next;
    if (tl_amd_generation(l) < 11)
        return;
    for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = next) {
            next = LLVMGetNextInstruction(x);
            if (!is_product(x) || becomes_f16(x) ||
                (!is_for_products(LLVMGetOperand(x, 0)) &&
                 !is_for_products(LLVMGetOperand(x, 1))))
                continue;
            LLVMPositionBuilderBefore(b, x);
            LLVMReplaceAllUsesWith(x, as_fma(l, b, x));
            LLVMInstructionEraseFromParent(x);
        }
}
