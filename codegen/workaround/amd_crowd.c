/* Is a kernel too crowded for LLVM's register allocator on AMD GPUs?
 *
 * This counts the most words that live at once, of all values and of those that only one block
 * knows (amd_live.c). Two things make LLVM's allocator slower than the square of the code's length
 * (35 s for 2000 variables that live at once):
 *
 *   1 if more values of one block live at once than there are registers, it asks for each register
 *     whether its value could go to each other one (canReassign): a quarter more are left to it,
 *     but not if as many values of other blocks live, too
 *   2 if values that live in many blocks do not fit, it asks for each of them at every block
 *     whether it could be in a register (growRegion)
 *
 * Loops in which sums of products without matrix instructions keep hundreds of words are worth
 * more of that time. In code with matrix instructions, these largely determine the order and the
 * registers, and LLVM takes no longer than the code's length suggests. */
#include "codegen/workaround/workaround.h"

/* Words times blocks; in a loop that sums products. */
enum { MANY_WORDS = 1 << 17, MANY_OF_SUMS = 3 << 17 };

bool tl_amd_is_crowded(TlLlvm *l, LLVMValueRef function, unsigned registers, unsigned *out_words)
{
    TlAmdLive live;
    tl_amd_find_live(l->arena, function, &live);
    uint32_t blocks = LLVMCountBasicBlocks(function), all = live.most, local = live.most_local;
    *out_words = all;
    TlAmdProducts products = tl_amd_find_products(function);
    bool sums = live.loops.loops.len && products == TL_AMD_MANY_PRODUCTS;
    bool here = local > registers + registers / 4 || (local >= registers && all >= 2 * registers),
         there = all > registers && (uint64_t)all * blocks > (sums ? MANY_OF_SUMS : MANY_WORDS);
    return tl_workaround_is_on(l, TL_WORKAROUND_AMD_CROWD) && products != TL_AMD_MATRIX &&
           (here || there);
}
