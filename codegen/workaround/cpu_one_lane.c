/* Masked stores of which one lane is stored for certain: a store of that element.
 *
 *     %t = trunc <16 x i32> %x to <16 x i16>
 *     call @llvm.masked.store(%t, %p, <16 x i1> <i1 true, i1 false, ...>)
 *  =>
 *     %e = extractelement <16 x i16> %t, i64 0
 *     store i16 %e, %p
 *
 * With AVX-512 LLVM 22.1 first joins the store with the truncation, and then stores the lane as
 * wide as it was before that: four bytes here, over the next element's
 * (https://github.com/llvm/llvm-project/issues/179489). Programs write the last element of an odd
 * tile so, and what follows is another program's. */
#include "codegen/workaround/workaround.h"
#include <llvm-c/Target.h>

enum { NONE_OR_MORE = -1 };

/* The one lane of a constant mask that is set; what is undefined counts as not set, as LLVM has
 * it. */
static int only_lane(LLVMValueRef mask)
{
    int found = NONE_OR_MORE;
    if (!LLVMIsConstant(mask))
        return NONE_OR_MORE;
    for (unsigned i = 0; i < LLVMGetVectorSize(LLVMTypeOf(mask)); i++) {
        LLVMValueRef lane = LLVMGetAggregateElement(mask, i);
        if (!lane)
            return NONE_OR_MORE;
        if (!LLVMIsAConstantInt(lane) || LLVMConstIntGetZExtValue(lane) == 0)
            continue;
        if (found >= 0)
            return NONE_OR_MORE;
        found = (int)i;
    }
    return found;
}

static void store_lane(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef call, unsigned lane)
{
    const TlMaskedAccess *m = &tl_masked_accesses[TL_MASKED_STORE];
    LLVMValueRef data = LLVMGetOperand(call, m->data), p = LLVMGetOperand(call, m->pointer);
    LLVMTypeRef elem = LLVMGetElementType(LLVMTypeOf(data));
    LLVMPositionBuilderBefore(b, call);
    LLVMValueRef index = LLVMConstInt(LLVMInt64TypeInContext(l->context), lane, 0);
    LLVMValueRef x = LLVMBuildExtractElement(b, data, index, ""),
                 at = lane ? LLVMBuildGEP2(b, elem, p, &index, 1, "") : p,
                 store = LLVMBuildStore(b, x, at);
    LLVMSetAlignment(store, (unsigned)LLVMABISizeOfType(LLVMGetModuleDataLayout(l->module), elem));
    LLVMInstructionEraseFromParent(call);
}

void tl_cpu_one_lane(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    const TlMaskedAccess *m = &tl_masked_accesses[TL_MASKED_STORE];
    TL_ASSERT(function, "no function");
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef x = LLVMGetFirstInstruction(block), next; x; x = next) {
            next = LLVMGetNextInstruction(x);
            int lane = tl_llvm_is_call_of(x, m->name) ? only_lane(LLVMGetOperand(x, m->mask))
                                                      : NONE_OR_MORE;
            if (lane >= 0)
                store_lane(l, b, x, (unsigned)lane);
        }
}
