/* Results of instructions that read other lanes, held in front of branches, on AMD GPUs.
 *
 *     w = permlanex16(v)                      w = permlanex16(v)
 *     if (lane == 0)                          h = convergent asm "" (w)
 *         store(v + w)                        if (lane == 0)
 *                                                 store(v + h)
 *
 * LLVM's passes over its IR leave convergent calls where they are. As machine instructions, some
 * are not marked so: MachineSinking of LLVM 19.1 moves v_permlane16, v_permlanex16, v_permlane64,
 * v_mov_b32_dpp8 and v_wmma to the block that alone uses the result, behind v_cmpx or
 * s_and_saveexec, where the lanes that they read may not be active. (Marked are v_mov_b32_dpp,
 * ds_swizzle, ds_bpermute, v_readlane, v_readfirstlane and MFMA. LLVM 22.1 marks v_permlane16 and
 * v_permlanex16, and WMMA of gfx12, but not that of gfx11.) So the result goes through an asm
 * without text that is convergent, which that pass does leave, and with it what it takes. It is on
 * every such result, also one that its own block alone uses: the user would be moved first, then
 * the instruction after it.
 *
 * The asm costs no instruction: it has the operand's registers, and nothing is ordered by it. The
 * other ways: ds_swizzle, which is an iteration to the LDS's crossbar and a wait each, and there is
 * none for WMMA; the option that turns the pass off, which is one of the process, so of a host that
 * has an LLVM of its own, too. test/tools/amd_lanes.py looks at the machine code. */
#include "codegen/workaround/workaround.h"

/* Those of leaf_amdgpu.c and leaf_mma.c that LLVM does not mark as convergent: since 22.1 only the
 * WMMA of gfx11. */
static bool is_moved(const TlLlvm *l, LLVMValueRef x)
{
    bool marks = tl_llvm_version() >= 22, wmma = tl_llvm_is_call_of(x, "llvm.amdgcn.wmma");
    if (tl_llvm_is_call_of(x, "llvm.amdgcn.permlane"))
        return !marks;
    return wmma && !(marks && tl_amd_generation(l) >= 12);
}

static void hold(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x)
{
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(x));
    LLVMValueRef held = tl_llvm_copy(l, b, x, "=v,0");
    tl_llvm_mark_call(l, held, "convergent");
    LLVMReplaceAllUsesWith(x, held);
    LLVMSetOperand(held, 0, x);
}

void tl_amd_hold(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x))
            if (is_moved(l, x))
                hold(l, b, x);
}
