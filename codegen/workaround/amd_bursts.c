/* Bursts of matrix products on AMD GPUs (ir/plan/mma_order.h).
 *
 * The SIMT lowering marks the start of a burst by an acquire fence of a single thread: reads of
 * shared memory that the burst needs have been issued before it, those for the next one follow.
 * Where the burst needs nothing new, the fence is acq_rel. A release fence ends the product. LLVM
 * would wait for each read before the instruction that takes it, and its scheduler moves reads and
 * matrix instructions as its estimate of registers wants. Here all that the burst needs is waited
 * for at once, nothing is scheduled across, and the reads for the next burst go between the first
 * matrix instructions of this one, which hide them. A wave in a product goes before those that are
 * not, so that of two waves of a scheduler one computes while the other loads, stores and reads.
 * What an iteration has loaded for the next one is waited for once, too. */
#include "codegen/workaround/workaround.h"

static bool is_mark(LLVMValueRef x)
{
    return LLVMGetInstructionOpcode(x) == LLVMFence && LLVMIsAtomicSingleThread(x);
}

static void call(TlLlvm *l, LLVMBuilderRef b, const char *name, unsigned bits, uint32_t value)
{
    LLVMValueRef x = LLVMConstInt(LLVMIntTypeInContext(l->context, bits), value, 0);
    tl_llvm_intrinsic(l, b, name, NULL, 0, &x, 1);
}

/* LLVM knows what an instruction has waited for only if another one, which is no barrier of its
 * scheduler, follows: this one is nothing in the code. */
static void put_nothing(TlLlvm *l, LLVMBuilderRef b)
{
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->context), NULL, 0, 0);
    LLVMValueRef none = LLVMGetInlineAsm(type, "", 0, "", 0, 1, 0, LLVMInlineAsmDialectATT, 0);
    tl_llvm_mark_call(l, LLVMBuildCall2(b, type, none, NULL, 0, ""), "memory");
}

/* raised: does the wave go before others, in this block? */
static void put_mark(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef mark, bool *raised)
{
    LLVMAtomicOrdering kind = LLVMGetOrdering(mark);
    bool raise = kind == LLVMAtomicOrderingAcquire;
    LLVMPositionBuilderBefore(b, mark);
    LLVMSetCurrentDebugLocation2(b, NULL);
    call(l, b, "llvm.amdgcn.sched.barrier", 32, 0);
    if (kind == LLVMAtomicOrderingAcquireRelease)
        return;
    if (raise)
        tl_amd_wait(l, b, TL_AMD_SHARED);
    if (raise && *raised)
        put_nothing(l, b);
    else
        call(l, b, "llvm.amdgcn.s.setprio", 16, raise);
    *raised = raise;
    call(l, b, "llvm.amdgcn.sched.barrier", 32, 0);
}

/* ---- reads between the matrix instructions ---- */

static bool is_read(LLVMValueRef x)
{
    return tl_llvm_is_call_of(x, "llvm.amdgcn.ds.read.tr") ||
           (LLVMIsALoadInst(x) &&
            LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(x, 0))) == 3);
}

static bool is_product(LLVMValueRef x)
{
    return tl_llvm_is_call_of(x, "llvm.amdgcn.mfma") || tl_llvm_is_call_of(x, "llvm.amdgcn.wmma");
}

/* The next instructions are so many of a kind. */
static void put_group(TlLlvm *l, LLVMBuilderRef b, uint32_t kind, uint32_t n)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(l->context);
    LLVMValueRef args[3] = {LLVMConstInt(i32, kind, 0), LLVMConstInt(i32, n, 0),
                            LLVMConstInt(i32, 0, 0)};
    tl_llvm_intrinsic(l, b, "llvm.amdgcn.sched.group.barrier", NULL, 0, args, 3);
}

/* From a mark to the next one. */
static void interleave(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef mark)
{
    enum { PRODUCT = 0x8, READ = 0x100 };
    uint32_t reads = 0, products = 0;
    LLVMValueRef x = LLVMGetNextInstruction(mark);
    for (; x && !is_mark(x); x = LLVMGetNextInstruction(x)) {
        reads += is_read(x);
        products += is_product(x);
    }
    if (!x || !reads || !products)
        return;
    LLVMPositionBuilderBefore(b, x);
    uint32_t each = (reads + products - 1) / products;
    for (; reads; reads -= each < reads ? each : reads, products--) {
        put_group(l, b, READ, each);
        put_group(l, b, PRODUCT, 1);
    }
    if (products)
        put_group(l, b, PRODUCT, products);
}

/* ---- loads of the iteration before ---- */

/* From memory: by an address, or by a buffer's descriptor. */
static bool is_load(LLVMValueRef x)
{
    return LLVMIsALoadInst(x) || tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.load");
}

/* Does the block take what the iteration before, or the code before the loop, has loaded? */
static bool takes_loads(LLVMBasicBlockRef header)
{
    LLVMValueRef x = LLVMGetFirstInstruction(header);
    for (; x && LLVMIsAPHINode(x); x = LLVMGetNextInstruction(x))
        for (unsigned i = 0; i < LLVMCountIncoming(x); i++) {
            LLVMValueRef v = LLVMGetIncomingValue(x, i);
            if (is_load(v) ||
                (LLVMIsAPHINode(v) && LLVMCountIncoming(v) && is_load(LLVMGetIncomingValue(v, 0))))
                return true;
        }
    return false;
}

static bool stores_shared(LLVMBasicBlockRef block)
{
    LLVMValueRef x = LLVMGetFirstInstruction(block);
    for (; x; x = LLVMGetNextInstruction(x))
        if (LLVMIsAStoreInst(x) &&
            LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(x, 1))) == 3)
            return true;
    return false;
}

static LLVMValueRef first_after_phis(LLVMBasicBlockRef block)
{
    LLVMValueRef x = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(x))
        x = LLVMGetNextInstruction(x);
    return x;
}

/* What a loop of products puts into shared memory has been on its way for an iteration: it is
 * waited for once, at the start of the next iteration, not load by load. */
static void wait_in_loops(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef f)
{
    TlLoops loops;
    if (tl_amd_find_products(f) != TL_AMD_MATRIX)
        return;
    tl_loops_find(l->arena, f, &loops);
    for (uint32_t i = 0; i < loops.loops.len; i++) {
        LLVMBasicBlockRef header = loops.loops.data[i].header;
        if (!takes_loads(header) || !stores_shared(header))
            continue;
        LLVMPositionBuilderBefore(b, first_after_phis(header));
        LLVMSetCurrentDebugLocation2(b, NULL);
        tl_amd_wait(l, b, TL_AMD_LOADS);
        put_nothing(l, b);
        call(l, b, "llvm.amdgcn.sched.barrier", 32, 0);
    }
}

void tl_amd_bursts(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k)) {
        bool raised = false;
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x))
            if (is_mark(x)) {
                interleave(l, b, x);
                put_mark(l, b, x, &raised);
            }
    }
    wait_in_loops(l, b, function);
}
