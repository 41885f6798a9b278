/* Two f32 by one instruction (Blackwell: add, sub, mul, fma of f32x2), of which LLVM 19 knows
 * nothing: it would take vectors apart.
 *
 *     %z = fadd <2 x float> %x, %y   =>   add.rn.f32x2 z, x, y
 *
 * The lowering makes such vectors for GPUs that have these (TL_CAN_PAIRS), LLVM's middle end keeps
 * them. Elements go in and out one by one: ptxas has pairs in registers next to each other, without
 * moves. */
#include "codegen/leaf/leaf_expand.h"
#include "codegen/target/target.h"

#include <string.h>

static bool is_pair(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind && LLVMGetVectorSize(t) == 2 &&
           LLVMGetTypeKind(LLVMGetElementType(t)) == LLVMFloatTypeKind;
}

static bool is_fma(LLVMValueRef x)
{
    static const char FMA[] = "llvm.fma.v2f32";
    size_t n;
    LLVMValueRef f = LLVMGetCalledValue(x);
    return LLVMIsAFunction(f) && strcmp(LLVMGetValueName2(f, &n), FMA) == 0;
}

/* NULL: not one of these instructions. */
static const char *name_of(LLVMValueRef x)
{
    if (!is_pair(LLVMTypeOf(x)))
        return NULL;
    LLVMOpcode op = LLVMGetInstructionOpcode(x);
    if (op == LLVMCall)
        return is_fma(x) ? "fma" : NULL;
    return op == LLVMFAdd ? "add" : op == LLVMFSub ? "sub" : op == LLVMFMul ? "mul" : NULL;
}

static LLVMValueRef element(const TlLeafCall *call, LLVMValueRef pair, uint32_t i)
{
    return LLVMBuildExtractElement(call->b, pair, tl_leaf_i32(call, i), "");
}

static LLVMValueRef replace(TlLeafCall *call, LLVMValueRef x, const char *name)
{
    static const char *const REGISTERS[] = {"x", "y", "w"};
    unsigned n = strcmp(name, "fma") == 0 ? 3 : 2;
    LLVMTypeRef each[2] = {call->f32, call->f32};
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, 2, "=f");
    tl_sbuf_puts(&a.text, "{ .reg .b64 x, y, w, z; ");
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef from = LLVMGetOperand(x, i);
        unsigned first = tl_leaf_asm_operand(&a, element(call, from, 0));
        tl_leaf_asm_operand(&a, element(call, from, 1));
        tl_sbuf_putf(&a.text, "mov.b64 %s, {$%u, $%u}; ", REGISTERS[i], first, first + 1);
    }
    tl_sbuf_putf(&a.text, "%s.rn.f32x2 z, x, y%s; mov.b64 {$0, $1}, z; }", name,
                 n > 2 ? ", w" : "");
    LLVMValueRef made = tl_leaf_asm_end(&a, LLVMStructTypeInContext(call->c, each, 2, 0),
                                        TL_LEAF_PURE),
                 pair = LLVMGetPoison(LLVMTypeOf(x));
    for (uint32_t i = 0; i < 2; i++)
        pair = LLVMBuildInsertElement(call->b, pair, LLVMBuildExtractValue(call->b, made, i, ""),
                                      tl_leaf_i32(call, i), "");
    return pair;
}

static void replace_in(TlLeafCall *call, LLVMBasicBlockRef block)
{
    for (LLVMValueRef x = LLVMGetFirstInstruction(block), next; x; x = next) {
        const char *name = name_of(x);
        next = LLVMGetNextInstruction(x);
        if (!name)
            continue;
        LLVMPositionBuilderBefore(call->b, x);
        LLVMReplaceAllUsesWith(x, replace(call, x, name));
        LLVMInstructionEraseFromParent(x);
    }
}

void tl_leaf_pairs_nvptx(TlLlvm *l)
{
    bool emulate;
    TlLeafCall call = {.l = l,
                       .c = l->context,
                       .b = l->builder,
                       .i32 = LLVMInt32TypeInContext(l->context),
                       .f32 = LLVMFloatTypeInContext(l->context)};
    if (!(tl_target_find(l->gpu ? l->gpu : l->cpu, &emulate)->can & TL_CAN_PAIRS))
        return;
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            replace_in(&call, b);
}
