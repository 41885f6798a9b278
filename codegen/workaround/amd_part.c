/* Long blocks on AMD GPUs, in parts that LLVM schedules one by one.
 *
 * LLVM's machine schedulers look at pairs of instructions of a block: for each two that access
 * memory, whether one depends on the other, for which they follow everything between them
 * (BaseMemOpClusterMutation), and on RDNA for each two, whether they could be issued together
 * (VOPDPairingMutation). So a block with very many instructions, or with many accesses, gets a
 * scheduling barrier every PART instructions.
 *
 * A barrier keeps loads in their part. What is computed from them could still be moved to a later
 * block that alone uses it (MachineSinking), and the loaded values would wait for it in registers;
 * a use at the end of the block, which is no instruction, prevents that.
 *
 * A block whose values take many registers, and not only for each other, is divided into smaller
 * parts if the kernel has no loop and few products: for a scan of 32 elements of a thread, LLVM's
 * scheduler makes all sums of neighbours before it combines the first two, and takes 355
 * registers; in its own order the code takes 194. Loops, products whose operands are loaded beside
 * the products before, and sums of loaded values are better if the scheduler sees everything.
 *
 * SIFoldOperands looks at all uses of a register for each that it makes from a copy. So each part
 * has registers of its own for parameters with very many uses. */
#include "codegen/workaround/workaround.h"

/* In a part, and in a block whatever it does; accesses times instructions in a block. */
enum { PART = 1024, MANY = 4096, MANY_PAIRS = 1 << 18 };
/* Of crowded blocks: in a part, in a block; words. */
enum { SMALL_PART = 256, SOME = 512, CROWD = 96 };

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

/* The instructions of a part; 0: the block stays whole. `words`: the most that live at once in it,
 * 0 where a part is not to be small. */
static unsigned part_of(LLVMBasicBlockRef block, int32_t words)
{
    uint64_t instructions = 0, accesses = 0;
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x)) {
        instructions++;
        accesses += is_access(x);
    }
    if (instructions > SOME && words >= CROWD)
        return SMALL_PART;
    bool is_long = instructions > MANY ||
                   (instructions > PART + PART / 2 && instructions * accesses > MANY_PAIRS);
    return is_long ? PART : 0;
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
    LLVMValueRef none = LLVMGetInlineAsm(type, "", 0, "v", 1, 1, 0, LLVMInlineAsmDialectATT, 0);
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
        copies[i] = uses_of(p) > PART / 2 ? tl_llvm_copy(l, b, p, "=s,0") : NULL;
        unsigned left = PART;
        for (LLVMValueRef x = first; copies[i] && x && left--; x = LLVMGetNextInstruction(x))
            for (int k = 0; k < LLVMGetNumOperands(x); k++)
                if (LLVMGetOperand(x, (unsigned)k) == p)
                    LLVMSetOperand(x, (unsigned)k, copies[i]);
    }
}

/* ---- parts ---- */

static void part(TlLlvm *l, LLVMBuilderRef b, LLVMBasicBlockRef block, unsigned size)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    unsigned n = 0;
    TL_ASSERT(end, "a block without an end");
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x != end; x = LLVMGetNextInstruction(x)) {
        if (LLVMIsAPHINode(x) || LLVMIsAAllocaInst(x))
            continue;
        if (++n % size == 0) {
            put_barrier(l, b, x);
            copy_parameters(l, b, x);
        }
        if (is_movable(x) && is_used_elsewhere(x))
            hold(l, b, x, block);
    }
}

void tl_amd_part(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    TlAmdLive live;
    uint32_t n = 0;
    tl_amd_find_live(l->arena, function, &live);
    bool small = !live.loops.loops.len && tl_amd_find_products(function) == TL_AMD_FEW_PRODUCTS;
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k)) {
        int32_t words = 0, local = 0;
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x), n++) {
            words = live.all[n] > words ? live.all[n] : words;
            local = live.local[n] > local ? live.local[n] : local;
        }
        unsigned size = part_of(k, small && 8 * local < 7 * words ? words : 0);
        if (size)
            part(l, b, k, size);
    }
}

void tl_amd_part_long(TlLlvm *l, LLVMValueRef function, unsigned size)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->context);
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k)) {
        LLVMValueRef x = LLVMGetFirstInstruction(k), end = LLVMGetBasicBlockTerminator(k);
        for (unsigned n = 0; x != end; x = LLVMGetNextInstruction(x))
            if (!LLVMIsAPHINode(x) && !LLVMIsAAllocaInst(x) && ++n % size == 0)
                put_barrier(l, b, x);
    }
    LLVMDisposeBuilder(b);
}
