/* Waits of releases, on AMD GPUs.
 *
 *     for (...) {                             for (...) {
 *         fence release                           fence release
 *         s_barrier                               s_waitcnt lgkmcnt(0)
 *         ...                                     s_barrier
 *         store to shared memory                  ...
 *     }                                       }
 *
 * A release waits for what the wave has accessed before. SIMemoryLegalizer puts these waits into
 * the machine code as "soft" ones, and SIInsertWaitcnts takes out those before which nothing is on
 * its way. It looks at a loop's first block first as it is reached from before the loop; where
 * nothing is on its way from there, the wait is gone when it learns, in its next walk, what comes
 * around. So of LLVM 19.1 to 22.1 (mended in September 2026, llvm-project 220357), on the targets
 * where barriers do not wait by themselves: gfx90a, gfx942 and since gfx10. Then a wave passes the
 * barrier while what it stored may still be on its way to the LDS, which orders the accesses of a
 * wave only, not those of two waves: another one may read what was there before, or have its own
 * store overwritten. So a barrier in a loop has a wait that is not soft. It costs an instruction
 * where LLVM would have found nothing to wait for.
 *
 *     store to memory                         store to memory
 *     fence release                           fence release
 *     s_barrier                               s_waitcnt vmcnt(0) lgkmcnt(0)
 *     if (thread == 0)                        s_barrier
 *         fence release                       if (thread == 0)
 *         atomic                                  fence release
 *                                                 s_waitcnt vmcnt(0) lgkmcnt(0)
 *                                                 atomic
 *
 * An atomic that releases is a fence and an atomic that does not (leaf_amdgpu.c), with a wait
 * between them: besides what loops lose, LLVM 19.1 does not know that writing back the L2 cache,
 * which such a fence does on gfx942, is on its way until it has been waited for. And it releases
 * what all waves of the block have stored, but its wave waits for its own stores alone. Those of
 * the others have to be done at the barrier before it, where on gfx9 LLVM waits for the LDS only,
 * as the waves see each other's stores in the cache. So there the last barriers before an atomic
 * that releases wait for everything.
 *
 * A fence that releases waits for all copies to LDS of gfx950 besides (LLVM 22), those of later
 * trips of a loop, too, which are to be on their way at its barriers: what is needed of them, the
 * program waits for before. So where a function has such copies, the wait takes the place of the
 * barrier's fences. That LLVM moves no access across the barrier, the barrier itself sees to.
 *
 *     wait for copies but the last 4          s_waitcnt vmcnt(4)
 *     fence release                           s_waitcnt lgkmcnt(0)
 *     s_barrier                               s_barrier
 *     fence acquire
 *
 * test/tools/amd_waits.py looks at the machine code. */
#include "codegen/workaround/workaround.h"

/* ---- waits ---- */

/* s_waitcnt has fields for all counters, of which the others are at their greatest; they lie
 * elsewhere since gfx11. gfx12 has an instruction for each. */
static const struct Wait {
    uint32_t gfx9, gfx11;
    const char *gfx12[3];
} WAITS[] = {
    [TL_AMD_SHARED] = {0xc07f, 0xfc07, {"dscnt"}},
    [TL_AMD_LOADS] = {0x0f70, 0x03f7, {"loadcnt"}},
    [TL_AMD_SHARED_AND_LOADS] = {0x0070, 0x0007, {"loadcnt", "dscnt"}},
    [TL_AMD_ALL] = {0x0070, 0x0007, {"loadcnt", "storecnt", "dscnt"}},
};

/* Stores have a counter of their own since gfx10, for which LLVM 19 has no intrinsic. */
static void wait_for_stores(TlLlvm *l, LLVMBuilderRef b)
{
    static const char TEXT[] = "s_waitcnt_vscnt null, 0x0", MEMORY[] = "~{memory}";
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->context), NULL, 0, 0);
    LLVMBuildCall2(b, type,
                   LLVMGetInlineAsm(type, TEXT, sizeof TEXT - 1, MEMORY, sizeof MEMORY - 1, 1, 0,
                                    LLVMInlineAsmDialectATT, 0),
                   NULL, 0, "");
}

void tl_amd_wait(TlLlvm *l, LLVMBuilderRef b, TlAmdWait what)
{
    const struct Wait *w = &WAITS[what];
    int generation = tl_amd_generation(l);
    LLVMValueRef none = LLVMConstInt(LLVMInt16TypeInContext(l->context), 0, 0),
                 x = LLVMConstInt(LLVMInt32TypeInContext(l->context),
                                  generation >= 11 ? w->gfx11 : w->gfx9, 0);
    for (int i = 0; generation >= 12 && i < 3 && w->gfx12[i]; i++)
        tl_llvm_intrinsic(l, b, tl_format(l->arena, "llvm.amdgcn.s.wait.%s", w->gfx12[i]), NULL, 0,
                          &none, 1);
    if (generation >= 12)
        return;
    if (generation >= 10 && what == TL_AMD_ALL)
        wait_for_stores(l, b);
    tl_llvm_intrinsic(l, b, "llvm.amdgcn.s.waitcnt", NULL, 0, &x, 1);
}

/* ---- releases ---- */

/* Of a barrier, or of an atomic (not the mark of a burst). */
static bool is_release(LLVMValueRef x)
{
    return LLVMGetInstructionOpcode(x) == LLVMFence && !LLVMIsAtomicSingleThread(x) &&
           LLVMGetOrdering(x) == LLVMAtomicOrderingRelease;
}

static bool is_of_barrier(LLVMValueRef fence)
{
    return tl_llvm_is_call_of(LLVMGetNextInstruction(fence), "llvm.amdgcn.s.barrier");
}

typedef TL_VEC(LLVMBasicBlockRef) Blocks;

/* The last barrier's fence of the block, from x on towards its start; x may be NULL. */
static LLVMValueRef find_back(LLVMValueRef x)
{
    while (x && !(is_release(x) && is_of_barrier(x)))
        x = LLVMGetPreviousInstruction(x);
    return x;
}

/* Adds the blocks that may come before a block and were not seen yet. */
static void add_before(TlLlvm *l, LLVMBasicBlockRef block, TlMap *seen, Blocks *todo)
{
    LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block));
    for (; u; u = LLVMGetNextUse(u)) {
        LLVMBasicBlockRef from = LLVMGetInstructionParent(LLVMGetUser(u));
        if (tl_map_get(seen, (uint64_t)(uintptr_t)from, NULL))
            continue;
        tl_map_put_ptr(seen, from, from);
        tl_vec_push(l->arena, todo, from);
    }
}

/* Adds the last barrier's fence on each way to an atomic's fence. */
static void find_barriers(TlLlvm *l, LLVMValueRef atomic, TlMap *out)
{
    TlMap seen;
    Blocks todo = {0};
    LLVMBasicBlockRef block = LLVMGetInstructionParent(atomic);
    LLVMValueRef fence = find_back(LLVMGetPreviousInstruction(atomic));
    tl_map_init(&seen, l->arena);
    for (;;) {
        if (fence)
            tl_map_put_ptr(out, fence, fence);
        else
            add_before(l, block, &seen, &todo);
        if (!todo.len)
            return;
        block = todo.data[--todo.len];
        fence = find_back(LLVMGetLastInstruction(block));
    }
}

static bool stores(LLVMBasicBlockRef block)
{
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x)) {
        LLVMOpcode opcode = LLVMGetInstructionOpcode(x);
        if (opcode == LLVMAtomicRMW || opcode == LLVMAtomicCmpXchg ||
            (opcode == LLVMStore &&
             LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(x, 1))) != 3) ||
            tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.store"))
            return true;
    }
    return false;
}

/* Does the outermost loop around the block store to memory? */
static bool loop_stores(const TlLoops *loops, LLVMBasicBlockRef block)
{
    uint32_t loop = tl_loop_around(loops, block);
    while (loop != TL_NO_LOOP && loops->loops.data[loop].outer != TL_NO_LOOP)
        loop = loops->loops.data[loop].outer;
    LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(LLVMGetBasicBlockParent(block));
    for (; k && loop != TL_NO_LOOP; k = LLVMGetNextBasicBlock(k)) {
        uint32_t around = tl_loop_around(loops, k);
        if (around != TL_NO_LOOP && tl_loop_is_inside(loops, around, loop) && stores(k))
            return true;
    }
    return false;
}

static bool has_copies(LLVMValueRef function)
{
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
            if (tl_llvm_is_call_of(x, "llvm.amdgcn.global.load.lds") ||
                tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.load.lds"))
                return true;
    return false;
}

/* The two around a barrier: the one that releases, and the one behind. */
static void erase_fences(LLVMValueRef release)
{
    LLVMValueRef x = LLVMGetNextInstruction(release);
    while (x && !tl_llvm_is_call_of(x, "llvm.amdgcn.s.barrier"))
        x = LLVMGetNextInstruction(x);
    LLVMValueRef acquire = x ? LLVMGetNextInstruction(x) : NULL;
    if (acquire && LLVMGetInstructionOpcode(acquire) == LLVMFence)
        LLVMInstructionEraseFromParent(acquire);
    LLVMInstructionEraseFromParent(release);
}

/* What a barrier waits for. What its waves have stored to memory is seen by each other on gfx9,
 * whose compute units have one cache each; since gfx10 a block may be on two of them, and LLVM's
 * fence waits for all. `all`: an atomic releases it; `always`: nothing else waits. */
static void wait_at_barrier(TlLlvm *l, LLVMBuilderRef b, const TlLoops *loops, LLVMValueRef fence,
                            bool all, bool always)
{
    bool gfx9 = tl_amd_generation(l) < 10;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(fence);
    if (all && gfx9)
        tl_amd_wait(l, b, TL_AMD_ALL);
    else if (always || tl_loop_around(loops, block) != TL_NO_LOOP)
        tl_amd_wait(l, b,
                    gfx9                        ? TL_AMD_SHARED
                    : loop_stores(loops, block) ? TL_AMD_ALL
                                                : TL_AMD_SHARED_AND_LOADS);
}

void tl_amd_release(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    TlLoops loops;
    TlMap before; /* the fences of barriers before atomics that release */
    TL_VEC(LLVMValueRef) fences = {0};
    tl_loops_find(l->arena, function, &loops);
    tl_map_init(&before, l->arena);
    bool copies = has_copies(function);
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x)) {
            if (is_release(x))
                tl_vec_push(l->arena, &fences, x);
            if (is_release(x) && !is_of_barrier(x))
                find_barriers(l, x, &before);
        }
    for (uint32_t i = 0; i < fences.len; i++) {
        LLVMValueRef x = fences.data[i];
        LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(x));
        LLVMSetCurrentDebugLocation2(b, NULL);
        bool at_barrier = is_of_barrier(x);
        if (at_barrier)
            wait_at_barrier(l, b, &loops, x, tl_map_get(&before, (uint64_t)(uintptr_t)x, NULL),
                            copies);
        else
            tl_amd_wait(l, b, TL_AMD_ALL);
        if (copies && at_barrier)
            erase_fences(x);
    }
}
