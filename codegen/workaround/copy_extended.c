/* Copies that save LLVM walks over the whole function.
 *
 * If a block extends a value x to 64 bits and later blocks use both x and the extension, LLVM's
 * CodeGenPrepare lets the later uses of x read the extension instead, so that only one of the two
 * needs a register. It replaces one use in each walk over the function (optimizeExtUses of LLVM 19
 * follows uses that it moves to another list): for n iterations of an unrolled loop that all use
 * x, it looks at all iterations n times. So if there are many such uses, the extended value is a
 * copy of x that LLVM does not recognise as one. */
#include "codegen/workaround/workaround.h"

enum { MANY_USES = 64 };

static bool is_used_outside(LLVMValueRef x, LLVMBasicBlockRef block)
{
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if (LLVMGetInstructionParent(LLVMGetUser(u)) != block)
            return true;
    return false;
}

/* The same, when LLVM has put addresses beside their users. */
static bool will_be_used_outside(LLVMValueRef x, LLVMBasicBlockRef block)
{
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if (LLVMIsAGetElementPtrInst(LLVMGetUser(u)) && is_used_outside(LLVMGetUser(u), block))
            return true;
    return is_used_outside(x, block);
}

/* Uses in other blocks; 0: one of them cannot read the extension. */
static unsigned uses_outside(LLVMValueRef x, LLVMBasicBlockRef block)
{
    unsigned n = 0;
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        if (LLVMGetInstructionParent(user) == block)
            continue;
        if (LLVMIsAPHINode(user) || LLVMIsALoadInst(user) || LLVMIsAStoreInst(user))
            return 0;
        n++;
    }
    return n;
}

/* An extension from 32 to 64 bits whose operand LLVM would replace many times. */
static bool is_wanted(LLVMValueRef x)
{
    if (!LLVMIsAZExtInst(x) && !LLVMIsASExtInst(x))
        return false;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(x))),
                i64 = LLVMInt64TypeInContext(LLVMGetTypeContext(LLVMTypeOf(x)));
    LLVMBasicBlockRef block = LLVMGetInstructionParent(x);
    LLVMValueRef from = LLVMGetOperand(x, 0);
    return LLVMTypeOf(x) == i64 && LLVMTypeOf(from) == i32 && LLVMIsAInstruction(from) &&
           LLVMGetInstructionParent(from) == block && will_be_used_outside(x, block) &&
           uses_outside(from, block) > MANY_USES;
}

void tl_copy_extended(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    bool amd = tl_llvm_family(l) == TL_LLVM_AMD;
    TL_VEC(LLVMValueRef) found = {0};
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x))
            if (is_wanted(x))
                tl_vec_push(l->arena, &found, x);
    TlMap varies;
    if (found.len)
        tl_amd_find_varying(l->arena, function, &varies);
    for (uint32_t i = 0; i < found.len; i++) {
        LLVMValueRef x = found.data[i], from = LLVMGetOperand(x, 0);
        bool varies_there = tl_map_get(&varies, (uint64_t)(uintptr_t)from, NULL);
        LLVMPositionBuilderBefore(b, x);
        const char *place = !amd ? "=r,0" : varies_there ? "=v,0" : "=s,0";
        LLVMSetOperand(x, 0, tl_llvm_copy(l, b, from, place));
    }
}
