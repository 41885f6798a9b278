/* Divisions of 64-bit integers that are equal in all threads, on AMD GPUs.
 *
 * LLVM makes each some 150 instructions in place, by way of floats. The floats are vectors whatever
 * the operands are, and of each value that goes from there to a scalar register and back, a pass of
 * LLVM (SIFixSGPRCopies) looks at all that hangs on it: time grows by the square of the number of
 * divisions. So in a kernel with more than a few of them the operands go to vector registers first,
 * and the quotient comes back by an instruction of its own. */
#include "codegen/leaf/leaf_expand.h"

#include <string.h>

enum { FEW = 4 };

typedef TL_VEC(LLVMValueRef) Values;

typedef struct Divide {
    TlLlvm *l;
    TlMap varies; /* instructions whose values may differ between the threads of a wave */
    Values todo;
    Values divisions;
} Divide;

/* Does the callee return equal values to equal threads? */
static bool is_even(LLVMValueRef callee)
{
    static const char LEAF[] = "tl.leaf.";
    size_t n;
    const char *name = LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &n) : "";
    if (!strncmp(name, "llvm.", 5))
        return true;
    if (strncmp(name, LEAF, sizeof LEAF - 1))
        return false; /* asm */
    name += sizeof LEAF - 1;
    for (int leaf = 0; leaf < TL_LEAF_COUNT; leaf++)
        if (!strcmp(name, tl_leaf_name((tl_leaf)leaf)))
            return (tl_leaf_class_of((tl_leaf)leaf) == TL_LEAF_CLASS_PURE && leaf != TL_LEAF_TID) ||
                   tl_leaf_info((tl_leaf)leaf)->family == TL_LEAF_FAMILY_LDG ||
                   tl_leaf_info((tl_leaf)leaf)->family == TL_LEAF_FAMILY_LDB;
    return false;
}

static bool is_source(LLVMValueRef x)
{
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMCall: return !is_even(LLVMGetCalledValue(x));
    case LLVMLoad:
    case LLVMAlloca: return true;
    default: return false;
    }
}

static void mark(Divide *d, LLVMValueRef x)
{
    if (tl_map_get(&d->varies, (uint64_t)(uintptr_t)x, NULL))
        return;
    tl_map_put_ptr(&d->varies, x, x);
    tl_vec_push(d->l->arena, &d->todo, x);
}

/* Branches are uniform in the block, so a value varies by its operands alone. */
static void find_varying(Divide *d, LLVMValueRef function)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
            if (is_source(x))
                mark(d, x);
    while (d->todo.len)
        for (LLVMUseRef u = LLVMGetFirstUse(d->todo.data[--d->todo.len]); u; u = LLVMGetNextUse(u))
            mark(d, LLVMGetUser(u));
}

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

static void find_divisions(Divide *d, LLVMValueRef function)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
            if (is_division(x) && !tl_map_get(&d->varies, (uint64_t)(uintptr_t)x, NULL))
                tl_vec_push(d->l->arena, &d->divisions, x);
}

static LLVMValueRef in_vector(TlLlvm *l, LLVMValueRef x)
{
    return tl_llvm_hide(l->builder, x, "=v,0");
}

static LLVMValueRef in_scalar(TlLlvm *l, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    return tl_llvm_intrinsic(l, l->builder, "llvm.amdgcn.readfirstlane", &t, 1, &x, 1);
}

static void divide_in_vectors(TlLlvm *l, LLVMValueRef old)
{
    LLVMPositionBuilderBefore(l->builder, old);
    LLVMValueRef a = in_vector(l, LLVMGetOperand(old, 0)), b = in_vector(l, LLVMGetOperand(old, 1));
    LLVMValueRef q = LLVMBuildBinOp(l->builder, LLVMGetInstructionOpcode(old), a, b, "");
    LLVMReplaceAllUsesWith(old, in_scalar(l, q));
    LLVMInstructionEraseFromParent(old);
}

void tl_amd_divide(TlLlvm *l)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f)) {
        Divide d = {.l = l};
        tl_map_init(&d.varies, l->arena);
        find_varying(&d, f);
        find_divisions(&d, f);
        for (uint32_t i = 0; d.divisions.len > FEW && i < d.divisions.len; i++)
            divide_in_vectors(l, d.divisions.data[i]);
    }
}
