/* What LLVM makes us do (workarounds.def): each entry is a pass over LLVM IR, which the table
 * runs, or a function that other files call. Also what these need to know about code for AMD GPUs.
 */
#ifndef TL_WORKAROUND_H
#define TL_WORKAROUND_H
#include "codegen/gen/image.h"
#include "codegen/target/llvm.h"
#include "codegen/target/llvm_loops.h"
#include "codegen/target/target.h"

typedef enum TlWorkaround {
#define WORKAROUND(ID, ...) TL_WORKAROUND_##ID,
#include "codegen/workaround/workarounds.def"
} TlWorkaround;

typedef enum TlWorkaroundWhen {
    TL_WHEN_EXPANDED,
    TL_WHEN_EMIT,
    TL_WHEN_FULL_EMIT,
    TL_WHEN_BY_CALL
} TlWorkaroundWhen;

/* Those of the family that are due, but for those of newer LLVMs and those that l leaves out. */
void tl_work_around(TlLlvm *l, TlFamilyId family, TlWorkaroundWhen when);
bool tl_workaround_is_on(const TlLlvm *l, TlWorkaround w);
const char *tl_workaround_names(void); /* "a,b" */

#define EACH(f) void f(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function);
#define ALL(f)  void f(TlLlvm *l);
#define NONE
#define WORKAROUND(ID, name, families, when, run, ...) run
#include "codegen/workaround/workarounds.def"
#undef EACH
#undef ALL
#undef NONE

/* ---- by call ---- */
/* Is x, equal in all threads, clamped by an instruction whose result is in vector registers?
 * (amd_clamp.c) */
bool tl_amd_is_clamped(const TlLlvm *l, LLVMValueRef x);
/* Would LLVM's allocator take very long (amd_crowd.c)? About how many words live at once? */
bool tl_amd_is_crowded(TlLlvm *l, LLVMValueRef function, unsigned registers, unsigned *out_words);
/* amd_sparing.c: the code of a module that LLVM makes machine code of, with leaves expanded, in
 * `arena`, with as few registers spilled as may be. */
void *tl_amd_emit_sparing(TlLlvm *l, const TlTarget *target, const TlKernelCodes *kernels,
                          bool object, TlArena *arena, size_t *out_size);
/* amd_offsets.c: offsets and addresses are computed in loops, for a kernel of which LLVM has
 * spilled so many of so many registers; `all`: as many as may be. Would that be more? */
bool tl_amd_offsets(TlLlvm *l, LLVMValueRef function, unsigned registers, unsigned spilled,
                    bool all);
/* amd_part.c: blocks in parts of so many instructions that LLVM schedules one by one. */
void tl_amd_part_long(TlLlvm *l, LLVMValueRef function, unsigned size);
/* host_ops.c: replaces operations that l's CPU has no instruction for and that LLVM would therefore
 * make calls of a library: arithmetic and conversions of f16, fused multiply-add. The results are
 * the same bits. services: kernels of the CPU, whose first parameter is a tile_cpu_ctx; else of the
 * emulator.
 * For modules that only have to be emitted: LLVM's passes could bring some of them back. */
void tl_host_complete(TlLlvm *l, bool services);

/* ---- values on AMD GPUs ---- */
/* Of the module's target: 9 for gfx942 and gfx90a, 11 for gfx1100. */
int tl_amd_generation(const TlLlvm *l);
/* What differs between the threads of a wave (amd_varying.c), as keys of a map. */
void tl_amd_find_varying(TlArena *arena, LLVMValueRef function, TlMap *out);
/* Registers (amd_live.c): words of a type, and of all values that live right after each
 * instruction, by its number in the order of the text. */
typedef struct TlAmdLive {
    TlLoops loops;
    const int32_t *all, *local; /* local: what one block alone knows */
    uint32_t most, most_local;  /* of them */
} TlAmdLive;

unsigned tl_amd_words_of(LLVMTypeRef t);
void tl_amd_find_live(TlArena *arena, LLVMValueRef function, TlAmdLive *out);
/* How much a function multiplies (amd_live.c): integers and fma; many: an eighth of it. */
typedef enum TlAmdProducts {
    TL_AMD_FEW_PRODUCTS,
    TL_AMD_MANY_PRODUCTS,
    TL_AMD_MATRIX
} TlAmdProducts;
TlAmdProducts tl_amd_find_products(LLVMValueRef function);
/* Waits (amd_release.c): an instruction until nothing of a kind is on its way. */
typedef enum TlAmdWait {
    TL_AMD_SHARED,
    TL_AMD_LOADS,
    TL_AMD_SHARED_AND_LOADS,
    TL_AMD_ALL
} TlAmdWait;
void tl_amd_wait(TlLlvm *l, LLVMBuilderRef b, TlAmdWait what);
/* x in a scalar register, or what `constraints` say, of which LLVM does not see what it is, and
 * that it does not move. */
LLVMValueRef tl_amd_hide(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x, const char *constraints);
#endif
