/* Is a kernel too crowded for LLVM's register allocator on AMD GPUs?
 *
 * The most words that live at once are counted, of all values and of those that one block alone
 * knows (amd_live.c). Two things take LLVM's allocator time by more than the square of the code's
 * length (2000 variables that live at once: 35 s):
 *
 *   1 where more values of one block live at once than there are registers, it looks for each
 *     register whether what is there could go to each other one (canReassign): a quarter more are
 *     left to it, but not where as many values of other blocks live, too
 *   2 where values do not fit that live in many blocks, it looks for each at every block where it
 *     could be in a register (growRegion)
 *
 * What is in a loop is worth more of that time, where sums of products without matrix instructions
 * keep hundreds of words. Where code has matrix instructions, its order and its registers are
 * mostly theirs; it takes LLVM no longer than its length lets expect. */
#include "codegen/workaround/workaround.h"

/* Words times blocks; in a loop that sums products. */
enum { MANY_WORDS = 1 << 17, MANY_OF_SUMS = 3 << 17 };

bool tl_amd_is_crowded(TlLlvm *l, LLVMValueRef function, unsigned registers, unsigned *out_words)
{
    TlAmdLive live;
    uint32_t n = 0, blocks = 0, all = 0, local = 0;
    tl_amd_find_live(l->arena, function, &live);
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x), n++) {
            TL_ASSERT(live.all[n] >= live.local[n] && live.local[n] >= 0,
                      "%d words live, %d of them in one block", live.all[n], live.local[n]);
            all = (uint32_t)live.all[n] > all ? (uint32_t)live.all[n] : all;
            local = (uint32_t)live.local[n] > local ? (uint32_t)live.local[n] : local;
        }
        blocks++;
    }
    *out_words = all;
    TlAmdProducts products = tl_amd_find_products(function);
    bool sums = live.loops.loops.len && products == TL_AMD_MANY_PRODUCTS;
    bool here = local > registers + registers / 4 || (local >= registers && all >= 2 * registers),
         there = all > registers && (uint64_t)all * blocks > (sums ? MANY_OF_SUMS : MANY_WORDS);
    return tl_workaround_is_on(l, TL_WORKAROUND_AMD_CROWD) && products != TL_AMD_MATRIX &&
           (here || there);
}
