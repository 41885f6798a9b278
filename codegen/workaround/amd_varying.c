/* Which values differ between the threads of a wave on AMD GPUs; all others are in scalar
 * registers. Branches are uniform, or hold only a store or an atomic, so whether a value varies
 * depends only on its operands. */
#include "codegen/workaround/workaround.h"

#include <string.h>

/* Does it differ between threads whatever its operands are? What lies in shared memory comes in
 * vector registers. */
static bool is_source(LLVMValueRef x)
{
    static const char WORKGROUP[] = "llvm.amdgcn.workgroup";
    size_t n;
    LLVMValueRef f;
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMLoad: return LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(x, 0))) == 3;
    case LLVMAlloca:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg: return true;
    case LLVMCall:
        f = LLVMGetCalledValue(x);
        if (!LLVMIsAFunction(f))
            return true;
        return !strncmp(LLVMGetValueName2(f, &n), WORKGROUP, 11) &&
               strncmp(LLVMGetValueName2(f, &n), WORKGROUP, sizeof WORKGROUP - 1) != 0;
    default: return false;
    }
}

void tl_amd_find_varying(TlArena *arena, LLVMValueRef function, TlMap *out)
{
    TL_VEC(LLVMValueRef) todo = {0};
    tl_map_init(out, arena);
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
            if (is_source(x)) {
                tl_map_put_ptr(out, x, x);
                tl_vec_push(arena, &todo, x);
            }
    while (todo.len) {
        LLVMUseRef u = LLVMGetFirstUse(todo.data[--todo.len]);
        for (; u; u = LLVMGetNextUse(u)) {
            LLVMValueRef x = LLVMGetUser(u);
            if (tl_llvm_is_call_of(x, "llvm.amdgcn.read")) /* a lane's, for all */
                continue;
            if (tl_map_get(out, (uint64_t)(uintptr_t)x, NULL))
                continue;
            tl_map_put_ptr(out, x, x);
            tl_vec_push(arena, &todo, x);
        }
    }
}
