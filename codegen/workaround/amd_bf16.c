/* Pairs of bf16 on AMD GPUs that round f32 to bf16 by an instruction (gfx950), which takes two.
 *
 *     %a = bitcast (fptrunc float %x to bfloat) to i16        %p = fptrunc <2 x float> <%x, %y>
 *     %b = bitcast (fptrunc float %y to bfloat) to i16             to <2 x bfloat>
 *     %u = insertelement %v, %a, 2i                       =>  %q = bitcast %p to <2 x i16>
 *     %w = insertelement %u, %b, 2i + 1                       %u = insertelement %v, %q[0], 2i
 *                                                             %w = insertelement %u, %q[1], 2i + 1
 *
 * LLVM takes the instruction for each, and joins the halves by a permutation. */
#include "codegen/workaround/workaround.h"

/* What is rounded to the bf16 whose bits x is; NULL: x is something else. */
static LLVMValueRef rounded(LLVMValueRef x)
{
    LLVMValueRef cut = LLVMIsABitCastInst(x) ? LLVMGetOperand(x, 0) : NULL;
    if (!cut || !LLVMIsAFPTruncInst(cut) ||
        LLVMGetTypeKind(LLVMTypeOf(cut)) != LLVMBFloatTypeKind)
        return NULL;
    return LLVMGetOperand(cut, 0);
}

/* The place in the vector; -1: it is computed. */
static int64_t place_of(LLVMValueRef insert)
{
    LLVMValueRef at = LLVMGetOperand(insert, 2);
    return LLVMIsAConstantInt(at) ? (int64_t)LLVMConstIntGetZExtValue(at) : -1;
}

/* The first of two inserts, of which `second` is the other; NULL: there are none. */
static LLVMValueRef first_of_pair(LLVMValueRef second)
{
    LLVMValueRef first = LLVMGetOperand(second, 0);
    int64_t place = place_of(second);
    if (place < 0 || place % 2 == 0 || !LLVMIsAInsertElementInst(first) ||
        place_of(first) != place - 1 || !rounded(LLVMGetOperand(second, 1)) ||
        !rounded(LLVMGetOperand(first, 1)))
        return NULL;
    return first;
}

static LLVMValueRef round_pair(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(l->context), i16 = LLVMInt16TypeInContext(l->context),
                bf16 = LLVMBFloatTypeInContext(l->context);
    LLVMValueRef pair = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(x), 2));
    pair = LLVMBuildInsertElement(b, pair, x, LLVMConstInt(i32, 0, 0), "");
    pair = LLVMBuildInsertElement(b, pair, y, LLVMConstInt(i32, 1, 0), "");
    pair = LLVMBuildFPTrunc(b, pair, LLVMVectorType(bf16, 2), "");
    return LLVMBuildBitCast(b, pair, LLVMVectorType(i16, 2), "");
}

static void join(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef first, LLVMValueRef second)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(l->context);
    LLVMPositionBuilderBefore(b, second);
    LLVMValueRef made = LLVMGetOperand(first, 0),
                 pair = round_pair(l, b, rounded(LLVMGetOperand(first, 1)),
                                   rounded(LLVMGetOperand(second, 1)));
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef half = LLVMBuildExtractElement(b, pair, LLVMConstInt(i32, i, 0), "");
        made = LLVMBuildInsertElement(b, made, half, LLVMGetOperand(i ? second : first, 2), "");
    }
    LLVMReplaceAllUsesWith(second, made);
    LLVMInstructionEraseFromParent(second);
}

void tl_amd_bf16(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);
    for (; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef x = LLVMGetFirstInstruction(block), next; x; x = next) {
            LLVMValueRef first = LLVMIsAInsertElementInst(x) ? first_of_pair(x) : NULL;
            next = LLVMGetNextInstruction(x);
            if (first)
                join(l, b, first, x);
        }
}
