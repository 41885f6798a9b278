/* What the expansions of leaves (leaf_nvptx.c, leaf_amdgpu.c, leaf_emu.c) share. */
#ifndef TL_LEAF_EXPAND_H
#define TL_LEAF_EXPAND_H
#include "codegen/leaf/leaves.h"
#include "codegen/target/llvm_loops.h"

enum { TL_LEAF_MAX_ARGS = 16 + TL_LEAF_MOST_WORDS };

/* A call of a leaf about to be replaced; the builder stands in front of it. */
typedef struct TlLeafCall {
    TlLlvm *l;
    LLVMContextRef c;
    LLVMBuilderRef b;
    tl_leaf leaf;
    LLVMValueRef function; /* that it stands in */
    LLVMValueRef args[TL_LEAF_MAX_ARGS];
    unsigned nargs;
    LLVMTypeRef i1, i8, i16, i32, i64, result;
    TlSbuf *prelude; /* IR text to be linked afterwards: see tl_leaf_helper */
} TlLeafCall;

/* Gives every call of a leaf to `expand`, whose result (NULL for void) replaces it, then removes
 * the declarations and links the prelude. True: there is one, to be inlined. */
typedef LLVMValueRef (*TlLeafExpander)(TlLeafCall *call);
bool tl_leaf_expand_each(TlLlvm *l, TlLeafExpander expand);

/* Calls the prelude function `name`, whose text (tl_sbuf_putf(call->prelude, ...)) is due when
 * *out_new says so. */
LLVMValueRef tl_leaf_helper(TlLeafCall *call, const char *name, LLVMTypeRef result,
                            LLVMValueRef *args, unsigned nargs, bool *out_new);
LLVMValueRef tl_leaf_intrinsic(TlLeafCall *call, const char *name, LLVMTypeRef *types,
                               unsigned ntypes, LLVMValueRef *args, unsigned nargs);
LLVMValueRef tl_leaf_i32(const TlLeafCall *call, uint32_t v);

/* An i1 that is known. */
bool tl_leaf_is_true(LLVMValueRef pred);
bool tl_leaf_is_false(LLVMValueRef pred);
/* The value of an operand that the lowering makes constant: hints, op, order, scope. */
uint32_t tl_leaf_constant(const TlLeafCall *call, unsigned index);

/* What PTX's matrix instructions call the type of an operand; f32: the tf32 that they take. */
const char *tl_leaf_ptx_type(TlDtype d);

/* What a load from global memory gives, as that type, where its predicate is false. */
LLVMValueRef tl_leaf_fill(const TlLeafCall *call, LLVMTypeRef type);

/* Width in bits of a memory leaf (LDG_64: 64). */
unsigned tl_leaf_bits(tl_leaf leaf);

/* ---- shared memory of the GPUs ---- */
LLVMValueRef tl_leaf_shared_slot(TlLeafCall *call, LLVMValueRef slot, LLVMValueRef offset);
LLVMValueRef tl_leaf_mul_wide(TlLeafCall *call);
/* Plain loads and stores of LLVM, naturally aligned. */
LLVMValueRef tl_leaf_load(TlLeafCall *call, LLVMValueRef address);
void tl_leaf_store(TlLeafCall *call, LLVMValueRef address, LLVMValueRef value);
/* The families LDS and STS; store_where: how the GPU does a store to shared memory that may not
 * happen. */
typedef void (*TlLeafStoreWhere)(TlLeafCall *call, LLVMValueRef address, LLVMValueRef pred,
                                 LLVMValueRef value);
LLVMValueRef tl_leaf_load_shared(TlLeafCall *call);
void tl_leaf_store_shared(TlLeafCall *call, TlLeafStoreWhere store_where);

/* ---- matrix instructions (leaf_mma.c) ---- */
LLVMValueRef tl_leaf_mma_nvptx(TlLeafCall *call);
LLVMValueRef tl_leaf_mma_amdgpu(TlLeafCall *call);

/* ---- products of warpgroups (nvptx_wgmma.c) ---- */
LLVMValueRef tl_leaf_wgmma_nvptx(TlLeafCall *call);
LLVMValueRef tl_leaf_wgmma_fence_nvptx(TlLeafCall *call);
LLVMValueRef tl_leaf_wgmma_wait_nvptx(TlLeafCall *call);
void tl_leaf_fence_async_nvptx(TlLeafCall *call);

/* ---- copies that LLVM does not see through (leaf_copy.c) ---- */
/* In front of the builder; constraints: "=r,0", with the target's letter for a register. */
LLVMValueRef tl_leaf_copy(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x, const char *constraints);
/* Of values with many uses that are also extended; constraints of values that are equal, or not, in
 * the threads of a wave. When leaves are expanded. */
void tl_leaf_copy_extended(TlLlvm *l, const char *uniform, const char *varying);

/* ---- elements of vectors in PTX (nvptx_pieces.c); when leaves are expanded ---- */
void tl_nvptx_pieces(TlLlvm *l);

/* ---- long chains of sums and very many divisions in PTX (nvptx_long.c); when leaves are expanded
 * ---- */
void tl_nvptx_long(TlLlvm *l);

/* ---- LDB and STB on AMD (amd_buffer.c); scalars: after leaves are expanded ---- */
LLVMValueRef tl_amd_load_buffer(TlLeafCall *call);
void tl_amd_store_buffer(TlLeafCall *call);
void tl_amd_buffer_scalars(TlLlvm *l);
/* ---- divisions of 64-bit integers on AMD (amd_divide.c); before leaves are expanded ---- */
void tl_amd_divide(TlLlvm *l);
/* ---- what differs between the threads of a wave on AMD (amd_varying.c), as keys of a map; after
 * leaves are expanded ---- */
void tl_amd_find_varying(TlArena *arena, LLVMValueRef function, TlMap *out);
/* ---- registers on AMD (amd_live.c): words of a type, and of all values that live right after each
 * instruction, by its number in the order of the text; after leaves are expanded ---- */
typedef struct TlAmdLive {
    TlLoops loops;
    const int32_t *all, *local; /* local: what one block alone knows */
} TlAmdLive;

unsigned tl_amd_words_of(LLVMTypeRef t);
void tl_amd_find_live(TlArena *arena, LLVMValueRef function, TlAmdLive *out);
/* Would LLVM's allocator take very long (amd_crowd.c)? About how many words live at once? */
bool tl_amd_is_crowded(TlArena *arena, LLVMValueRef function, unsigned registers,
                       unsigned *out_words);
/* How much a function multiplies (amd_live.c): integers and fma; many: an eighth of it. */
typedef enum TlAmdProducts {
    TL_AMD_FEW_PRODUCTS,
    TL_AMD_MANY_PRODUCTS,
    TL_AMD_MATRIX
} TlAmdProducts;
TlAmdProducts tl_amd_find_products(LLVMValueRef function);
/* ---- the order of long computations on AMD (amd_order.c); when leaves are expanded ---- */
void tl_amd_order(TlLlvm *l);
/* Is it a call of a function whose name begins so? */
bool tl_leaf_is_call_of(LLVMValueRef x, const char *name);
/* Of the module's target: 9 for gfx942 and gfx90a, 11 for gfx1100. */
int tl_amd_generation(const TlLlvm *l);
/* ---- waits on AMD (amd_release.c): an instruction until nothing of a kind is on its way; those of
 * releases that LLVM does not make, when leaves are expanded ---- */
typedef enum TlAmdWait {
    TL_AMD_SHARED,
    TL_AMD_LOADS,
    TL_AMD_SHARED_AND_LOADS,
    TL_AMD_ALL
} TlAmdWait;
void tl_amd_wait(TlLlvm *l, LLVMBuilderRef b, TlAmdWait what);
void tl_amd_release(TlLlvm *l);
/* amd_turns.c: the turns of matrix products. */
void tl_amd_turns(TlLlvm *l);
/* amd_offsets.c: offsets and addresses are computed in loops, for a kernel of which LLVM has
 * spilled so many of so many registers; `all`: as many as may be. */
void tl_amd_offsets(TlLlvm *l, LLVMValueRef function, unsigned registers, unsigned spilled,
                    bool all);
/* ---- addresses and tests beside their users on AMD (amd_near.c); when leaves are expanded ---- */
void tl_amd_near(TlLlvm *l);
/* ---- long blocks on AMD in parts that are scheduled one by one (amd_part.c); the last ---- */
void tl_amd_part(TlLlvm *l);
/* ---- results of instructions that read other lanes, held in front of branches, on AMD
 * (amd_hold.c); after what looks at products ---- */
void tl_amd_hold(TlLlvm *l);

/* ---- FAIL, OUTSIDE and PRINT on a real GPU (leaf_debug.c): records of runtime/contract/leaf.h
 * ---- */
/* Marks argument `index` of the kernel as the address of the debug buffer. */
void tl_leaf_mark_debug(TlLlvm *l, LLVMValueRef kernel, unsigned index);
/* block, thread: i32 */
void tl_leaf_debug(TlLeafCall *call, LLVMValueRef block, LLVMValueRef thread);
#endif
