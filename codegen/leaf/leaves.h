/* The leaf table in LLVM IR: declarations of `tl.leaf.NAME`, and the expansion of their calls
 * after the middle end has run, to instructions of the target or to calls of the emulator's
 * functions. */
#ifndef TL_LEAVES_H
#define TL_LEAVES_H
#include "codegen/target/llvm.h"
#include "codegen/target/target.h"
#include "ir/plan/mma.h"
#include "ir/plan/reduce_plan.h"
#include "runtime/contract/leaf.h"

/* Types of the letters of leaf.def, which lists them. */
LLVMTypeRef tl_leaf_type(LLVMContextRef c, char letter);
const char *tl_leaf_name(tl_leaf leaf); /* "tid" */
tl_leaf_class tl_leaf_class_of(tl_leaf leaf);
/* Does the GPU have it? */
bool tl_leaf_is_of(const TlTarget *t, tl_leaf leaf);
/* The function `tl.leaf.NAME` of the module, declared on first use with the attributes of its
 * class: nounwind always; PURE memory(none) willreturn speculatable; WARP and BLOCK convergent;
 * GLOBAL and SHARED loads memory(read) willreturn; the rest may do anything to memory. */
LLVMValueRef tl_leaf_declare(TlLlvm *l, tl_leaf leaf);

/* The same of a leaf that takes words, with this type: `tl.leaf.NAME.` and a number. */
LLVMValueRef tl_leaf_declare_words(TlLlvm *l, tl_leaf leaf, LLVMTypeRef result, LLVMTypeRef *params,
                                   unsigned nparams);

/* Expansion: every call of a leaf is replaced and the declarations go. One file per family of GPUs
 * (leaf_nvptx.c, leaf_amdgpu.c), one for the emulator (leaf_emu.c). */
#define FAMILY_GPU(ID, ident) void tl_leaf_expand_##ident(TlLlvm *l);
#include "codegen/target/family.def"
/* Calls of the C functions tl_emu_NAME: letters b, c, h are passed and returned as uint32_t
 * (zero-extended), 2 and 4 as vectors of uint32_t, p as a plain pointer. Then for each kernel F of
 * the module a function `F.entry(const uint64_t *params)` that calls it with the words. Changes the
 * module's triple, data layout and machine to the host's, drops target attributes and calling
 * conventions. */
void tl_leaf_expand_emu(TlLlvm *l, const TlTarget *host); /* host: a row of kind CPU */

/* Before the expansion: gives loads TL_HINT_ANY_FILL whose fill nobody sees (leaf_unseen.c). */
void tl_leaf_find_unseen(TlLlvm *l);

/* The leaf of a matrix instruction, by how many words a lane gives; and how the lanes hold them. */
tl_leaf tl_leaf_of_mma(TlArena *arena, const TlMma *mma);
tl_mma_kind tl_leaf_mma_kind(const TlMma *mma);
/* The leaf by which the target combines all lanes' partials at once, and *how; TL_LEAF_COUNT: it
 * has none, and goes by steps. */
tl_leaf tl_leaf_of_reduce(const TlTarget *t, const TlFn *fn, const TlReducePlan *p, const TlOp *op,
                          tl_redux *how);
/* How a target may get what is in a buffer: TL_BUF_MAY_* of ir/plan/staged_plan.h. */
uint32_t tl_leaf_gets(const TlTarget *t);
uint32_t tl_leaf_puts(const TlTarget *t); /* the same of what it puts there */
#endif
