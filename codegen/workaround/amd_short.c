/* Extents below 2^31 on AMD GPUs, seen in machine code.
 *
 * Extents are parameters of 64 bits, of which most are known to be below 2^31 (attribute `range`).
 * LLVM's middle end makes use of that, but code generation loads a parameter as any number: the
 * upper half of a stride times a row's number, say, takes two instructions and a register for a
 * factor that is 0. So each such parameter is cut to 32 bits at the start of the kernel. It has to
 * be done last: earlier, passes would move the cut behind shifts, where more than 32 bits are left.
 *
 * A number of 32 bits that is compared with one, without signs, is compared in 32 bits: scalar
 * instructions have no such comparison of 64 bits, and a negative one is large in both. */
#include "codegen/workaround/workaround.h"

/* The 32 bits that x is extended from; NULL: none. */
static LLVMValueRef before_extension(LLVMValueRef x)
{
    if (!LLVMIsASExtInst(x) && !LLVMIsAZExtInst(x))
        return NULL;
    LLVMTypeRef t = LLVMTypeOf(LLVMGetOperand(x, 0));
    return LLVMGetIntTypeWidth(t) == 32 ? LLVMGetOperand(x, 0) : NULL;
}

static bool is_unsigned_order(LLVMValueRef test)
{
    LLVMIntPredicate p = LLVMGetICmpPredicate(test);
    return p == LLVMIntULT || p == LLVMIntULE || p == LLVMIntUGT || p == LLVMIntUGE;
}

static void compare_short(LLVMBuilderRef b, LLVMValueRef test, LLVMValueRef param)
{
    unsigned at = LLVMGetOperand(test, 0) == param ? 0 : 1;
    LLVMValueRef x = before_extension(LLVMGetOperand(test, 1 - at)), operands[2];
    if (!x || !is_unsigned_order(test))
        return;
    LLVMPositionBuilderBefore(b, test);
    operands[at] = LLVMBuildTrunc(b, param, LLVMTypeOf(x), "");
    operands[1 - at] = x;
    LLVMReplaceAllUsesWith(
        test, LLVMBuildICmp(b, LLVMGetICmpPredicate(test), operands[0], operands[1], ""));
    LLVMInstructionEraseFromParent(test);
}

static void compare_all_short(LLVMBuilderRef b, LLVMValueRef param)
{
    for (LLVMUseRef u = LLVMGetFirstUse(param), next; u; u = next) {
        next = LLVMGetNextUse(u);
        if (LLVMIsAICmpInst(LLVMGetUser(u)))
            compare_short(b, LLVMGetUser(u), param);
    }
}

static void cut(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef param)
{
    LLVMTypeRef i64 = LLVMInt64TypeInContext(l->context);
    LLVMValueRef f = LLVMGetParamParent(param);
    TL_ASSERT(LLVMTypeOf(param) == i64, "an extent that has not 64 bits");
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(f)));
    LLVMValueRef low = LLVMBuildAnd(b, param, LLVMConstInt(i64, UINT32_MAX, 0), "");
    LLVMReplaceAllUsesWith(param, low);
    LLVMSetOperand(low, 0, param);
}

void tl_amd_short(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    LLVMSetCurrentDebugLocation2(b, NULL);
    for (unsigned i = 0; i < LLVMCountParams(function); i++) {
        LLVMValueRef param = LLVMGetParam(function, i);
        if (!tl_llvm_has_range(function, i))
            continue;
        compare_all_short(b, param);
        if (LLVMGetFirstUse(param))
            cut(l, b, param);
    }
}
