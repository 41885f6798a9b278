/* Shifts in addresses on AMD GPUs: of parts that are shifted alike, and of what is shifted again.
 *
 *     %s = shl i64 %rows, 7                       %m = mul i64 %rows, %batch
 *     %m = mul i64 %s, %batch               =>    %a = add i64 %m, %row
 *     %r = shl i64 %row, 7                        %o = shl i64 %a, 7
 *     %o = add i64 %m, %r
 *
 * A row of a view is a product with the stride of each axis, which are all multiples of the length
 * of a row: LLVM shifts each part, and once more by the size of an element. A shift of the sum does
 * both; sums and products are modulo 2^64 either way. For ptxas it makes the code longer.
 *
 *     %s = shl i32 %tid, 2                        %a = and i32 %tid, 15
 *     %a = and i32 %s, 60                   =>    %x = shl i32 %a, 4
 *     %x = shl i32 %a, 2                          %y = shl i32 %a, 3
 *     %y = shl i32 %a, 1
 *
 * A thread's place in a row, times the sizes of elements, is shifted once in each use. */
#include "codegen/workaround/workaround.h"

/* x << amount by a constant; NULL: it is none. */
static LLVMValueRef shifted(LLVMValueRef x, uint64_t *amount)
{
    if (!LLVMIsAInstruction(x) || LLVMGetInstructionOpcode(x) != LLVMShl ||
        !LLVMIsAConstantInt(LLVMGetOperand(x, 1)))
        return NULL;
    *amount = LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1));
    return LLVMGetOperand(x, 0);
}

static bool has_one_use(LLVMValueRef x)
{
    LLVMUseRef u = LLVMGetFirstUse(x);
    return u && !LLVMGetNextUse(u);
}

/* A product with a factor that is shifted: which operand, or -1. */
static int shifted_factor(LLVMValueRef x, uint64_t *amount)
{
    if (!LLVMIsAInstruction(x) || LLVMGetInstructionOpcode(x) != LLVMMul || !has_one_use(x))
        return -1;
    for (int i = 0; i < 2; i++)
        if (shifted(LLVMGetOperand(x, (unsigned)i), amount))
            return i;
    return -1;
}

/* The sum of a product, operand `at`, and a part that is shifted like it, shifted; NULL: it is
 * none. */
static LLVMValueRef joined(LLVMBuilderRef b, LLVMValueRef sum, unsigned at)
{
    uint64_t by, other;
    LLVMValueRef product = LLVMGetOperand(sum, at), part = LLVMGetOperand(sum, 1 - at);
    int factor = shifted_factor(product, &by);
    LLVMValueRef rest = factor < 0 || !has_one_use(part) ? NULL : shifted(part, &other);
    if (!rest || by != other)
        return NULL;
    LLVMPositionBuilderBefore(b, sum);
    LLVMValueRef x = LLVMBuildMul(b, shifted(LLVMGetOperand(product, (unsigned)factor), &by),
                                  LLVMGetOperand(product, 1 - (unsigned)factor), "");
    return LLVMBuildShl(b, LLVMBuildAdd(b, x, rest, ""), LLVMConstInt(LLVMTypeOf(sum), by, 0), "");
}

static bool is_sum(LLVMValueRef x)
{
    enum { WIDE = 64 };
    LLVMTypeRef t = LLVMTypeOf(x);
    return LLVMGetTypeKind(t) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) == WIDE &&
           LLVMGetInstructionOpcode(x) == LLVMAdd;
}

/* Do several uses, and all, shift it again, by no more than its bits with what it is shifted by? */
static bool is_shifted_again(LLVMValueRef x, uint64_t by)
{
    uint64_t more = 0, bits = LLVMGetIntTypeWidth(LLVMTypeOf(x));
    LLVMUseRef u = LLVMGetFirstUse(x);
    while (u && shifted(LLVMGetUser(u), &more) == x && by + more < bits)
        u = LLVMGetNextUse(u);
    return !u && LLVMGetFirstUse(x) && !has_one_use(x);
}

/* `bits`, an AND of a shift with a constant: of what is shifted, and each use shifts by both. */
static void shift_once(LLVMBuilderRef b, LLVMValueRef bits)
{
    uint64_t by, more;
    LLVMTypeRef type = LLVMTypeOf(bits);
    LLVMValueRef from = shifted(LLVMGetOperand(bits, 0), &by), mask = LLVMGetOperand(bits, 1);
    if (!from || !has_one_use(LLVMGetOperand(bits, 0)) || !LLVMIsAConstantInt(mask) ||
        !is_shifted_again(bits, by))
        return;
    LLVMPositionBuilderBefore(b, bits);
    uint64_t of_from = LLVMConstIntGetZExtValue(mask) >> by;
    LLVMValueRef x = LLVMBuildAnd(b, from, LLVMConstInt(type, of_from, 0), "");
    for (LLVMUseRef u; (u = LLVMGetFirstUse(bits));) {
        LLVMValueRef old = LLVMGetUser(u);
        shifted(old, &more);
        LLVMPositionBuilderBefore(b, old);
        LLVMReplaceAllUsesWith(old, LLVMBuildShl(b, x, LLVMConstInt(type, by + more, 0), ""));
        LLVMInstructionEraseFromParent(old);
    }
}

void tl_amd_shifts(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    (void)l;
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef x = LLVMGetFirstInstruction(block), next; x; x = next) {
            if (LLVMGetInstructionOpcode(x) == LLVMAnd)
                shift_once(b, x);
            next = LLVMGetNextInstruction(x);
            LLVMValueRef y = is_sum(x) ? joined(b, x, 0) : NULL;
            y = y || !is_sum(x) ? y : joined(b, x, 1);
            if (!y)
                continue;
            LLVMReplaceAllUsesWith(x, y);
            LLVMInstructionEraseFromParent(x);
        }
}
