/* Long blocks on AMD GPUs, in parts that LLVM schedules one by one.
 *
 * LLVM's machine schedulers look at pairs of instructions of a block: at each two that access
 * memory whether one depends on the other, for which they follow all that lies between
 * (BaseMemOpClusterMutation), and on RDNA at each two that could be issued together
 * (VOPDPairingMutation). So a block with very many instructions, or many of them accesses, gets a
 * scheduling barrier every PART instructions.
 *
 * A barrier keeps loads in their part. What is computed from them would still be moved to a later
 * block that alone uses it (MachineSinking), and what was loaded would wait for it in registers: a
 * use at the end of the block, which is no instruction, holds it.
 *
 * SIFoldOperands looks at all uses of a register for each that it makes of a copy. So each part has
 * parameters with very many uses in registers of its own. */
#include "codegen/leaf/leaf_expand.h"

/* In a part, and in a block whatever it does; accesses times instructions in a block. */
enum { PART = 1024, MANY = 4096, MANY_PAIRS = 1 << 18 };

static bool is_access(LLVMValueRef x)
{
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMLoad:
    case LLVMStore:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg: return true;
    default: return false;
    }
}

static bool is_long(LLVMBasicBlockRef block)
{
    uint64_t instructions = 0, accesses = 0;
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x)) {
        instructions++;
        accesses += is_access(x);
    }
    return instructions > MANY ||
           (instructions > PART + PART / 2 && instructions * accesses > MANY_PAIRS);
}

static void put_barrier(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef before)
{
    LLVMValueRef nothing = LLVMConstInt(LLVMInt32TypeInContext(l->context), 0, 0); /* may pass */
    LLVMPositionBuilderBefore(b, before);
    tl_llvm_intrinsic(l, b, "llvm.amdgcn.sched.barrier", NULL, 0, &nothing, 1);
}

static bool is_used_elsewhere(LLVMValueRef x)
{
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if (LLVMGetInstructionParent(LLVMGetUser(u)) != LLVMGetInstructionParent(x))
            return true;
    return false;
}

/* Could a pass of LLVM move it to its users, and does it fit a register? */
static bool is_movable(LLVMValueRef x)
{
    switch (LLVMGetTypeKind(LLVMTypeOf(x))) {
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind: break;
    case LLVMIntegerTypeKind: {
        unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(x));
        if (bits != 32 && bits != 64)
            return false;
        break;
    }
    default: return false;
    }
    return !LLVMIsAPHINode(x) && !is_access(x);
}

static void hold(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x, LLVMBasicBlockRef block)
{
    LLVMTypeRef t = LLVMTypeOf(x),
                type = LLVMFunctionType(LLVMVoidTypeInContext(l->context), &t, 1, 0);
    LLVMValueRef none =
        LLVMGetInlineAsm(type, "", 0, "v", 1, 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(block));
    tl_llvm_mark_call(l, LLVMBuildCall2(b, type, none, &x, 1, ""), "memory");
}

/* ---- parameters ---- */

static unsigned uses_of(LLVMValueRef x)
{
    unsigned n = 0;
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        n++;
    return n;
}

/* The instruction and those after it use a copy of a parameter that has very many uses. */
static void copy_parameters(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef first)
{
    TL_ASSERT(!LLVMIsAPHINode(first), "nothing stands in front of a phi");
    LLVMValueRef f = LLVMGetBasicBlockParent(LLVMGetInstructionParent(first));
    unsigned n = LLVMCountParams(f);
    LLVMValueRef *copies = TL_NEW_ARRAY(l->arena, LLVMValueRef, n + 1);
    LLVMPositionBuilderBefore(b, first);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef p = LLVMGetParam(f, i);
        copies[i] = uses_of(p) > PART / 2 ? tl_leaf_copy(l, b, p, "=s,0") : NULL;
        unsigned left = PART;
        for (LLVMValueRef x = first; copies[i] && x && left--; x = LLVMGetNextInstruction(x))
            for (int k = 0; k < LLVMGetNumOperands(x); k++)
                if (LLVMGetOperand(x, (unsigned)k) == p)
                    LLVMSetOperand(x, (unsigned)k, copies[i]);
    }
}

/* ---- parts ---- */

static void part(TlLlvm *l, LLVMBuilderRef b, LLVMBasicBlockRef block)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    unsigned n = 0;
    TL_ASSERT(end, "a block without an end");
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x != end; x = LLVMGetNextInstruction(x)) {
        if (LLVMIsAPHINode(x) || LLVMIsAAllocaInst(x))
            continue;
        if (++n % PART == 0) {
            put_barrier(l, b, x);
            copy_parameters(l, b, x);
        }
        if (is_movable(x) && is_used_elsewhere(x))
            hold(l, b, x, block);
    }
}

void tl_amd_part(TlLlvm *l)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->context);
    LLVMValueRef f;
    for (f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef x = LLVMGetFirstBasicBlock(f); x; x = LLVMGetNextBasicBlock(x))
            if (is_long(x))
                part(l, b, x);
    LLVMDisposeBuilder(b);
}
