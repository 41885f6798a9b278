/* What the expansions of leaves (leaf_nvptx.c, leaf_amdgpu.c, leaf_emu.c) share. */
#ifndef TL_LEAF_EXPAND_H
#define TL_LEAF_EXPAND_H
#include "codegen/leaf/leaves.h"
#include "codegen/workaround/workaround.h"

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
    LLVMTypeRef i1, i8, i16, i32, i64, f32, void_, result;
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

/* ---- inline asm (leaf_asm.c) ---- */
/* Results and operands are $0, $1, ... in the order in which they are added, results first. */
typedef struct TlLeafAsm {
    TlLeafCall *call;
    TlSbuf text, constraints;
    LLVMValueRef args[TL_LEAF_MAX_ARGS];
    unsigned nargs, nresults;
} TlLeafAsm;
/* What it does beside giving its results: nothing; something that is to stay in order, to memory;
 * with all threads of the warp. */
typedef enum TlLeafEffects { TL_LEAF_PURE, TL_LEAF_ORDERED, TL_LEAF_CONVERGENT } TlLeafEffects;
TlLeafAsm tl_leaf_asm_begin(TlLeafCall *call);
void tl_leaf_asm_results(TlLeafAsm *a, unsigned n, const char *constraint); /* "=r" */
unsigned tl_leaf_asm_operand(TlLeafAsm *a, LLVMValueRef x);                 /* its number */
void tl_leaf_asm_tie(TlLeafAsm *a, unsigned result,
                     LLVMValueRef x);                            /* x is where the result goes */
void tl_leaf_asm_list(TlLeafAsm *a, unsigned first, unsigned n); /* "{$2,$3}", in the text */
LLVMValueRef tl_leaf_asm_end(TlLeafAsm *a, LLVMTypeRef result, TlLeafEffects effects);

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
/* `ptr addrspace(3)` of a byte offset: dynamic shared memory, whose size the launch gives. */
LLVMValueRef tl_leaf_shared(TlLeafCall *call, LLVMValueRef offset);
LLVMValueRef tl_leaf_shared_slot(TlLeafCall *call, LLVMValueRef slot, LLVMValueRef offset);
LLVMValueRef tl_leaf_mul_wide(TlLeafCall *call, bool has_sign);
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

/* ---- two f32 at a time (nvptx_pairs.c) ---- */
void tl_leaf_pairs_nvptx(TlLlvm *l);

/* ---- products of warpgroups (nvptx_wgmma.c) ---- */
LLVMValueRef tl_leaf_wgmma_nvptx(TlLeafCall *call);
LLVMValueRef tl_leaf_wgmma_fence_nvptx(TlLeafCall *call);
LLVMValueRef tl_leaf_wgmma_wait_nvptx(TlLeafCall *call);

/* In 64 bits, from its constant part, operand `upper` of the leaf, and where the matrix begins, the
 * next operand. */
LLVMValueRef tl_leaf_descriptor_nvptx(TlLeafCall *call, unsigned upper);

/* ---- tensor memory (nvptx_tensor.c) ---- */
LLVMValueRef tl_leaf_tensor_nvptx(TlLeafCall *call);

/* ---- LDB and STB on AMD (amd_buffer.c); scalars: after leaves are expanded ---- */
LLVMValueRef tl_amd_load_buffer(TlLeafCall *call);
void tl_amd_store_buffer(TlLeafCall *call);
void tl_amd_buffer_scalars(TlLlvm *l);

/* The address of 16 bytes of memory that hold a word four times. (leaf_amdgpu.c) */
LLVMValueRef tl_amd_filled(TlLeafCall *call, uint32_t word);

/* ---- copies to LDS on AMD (amd_copy.c) ---- */
/* Before leaves are expanded: the groups of CP_WAIT become instructions of the hardware's count. */
void tl_amd_count_copies(TlLlvm *l);
void tl_amd_begin_copy(TlLeafCall *call);
void tl_amd_copy_buffer(TlLeafCall *call); /* amd_buffer.c */
void tl_amd_await_copies(TlLeafCall *call);
/* Afterwards: LLVM learns that what copies write is touched behind waits only. */
void tl_amd_set_copies_apart(TlLlvm *l);

/* ---- FAIL, OUTSIDE and PRINT on a real GPU (leaf_debug.c): records of runtime/contract/leaf.h
 * ---- */
/* Marks argument `index` of the kernel as the address of the debug buffer. */
void tl_leaf_mark_debug(TlLlvm *l, LLVMValueRef kernel, unsigned index);
/* block, thread: i32 */
void tl_leaf_debug(TlLeafCall *call, LLVMValueRef block, LLVMValueRef thread);
#endif
