/* LLVM behind one interface: target machines, passes, emission, faults. Only llvm.c knows LLVM's
 * version and global state. LLVM's fatal errors unwind to the enclosing guard as TL_FAULT_LLVM;
 * the LLVM context of that compilation is lost. */
#ifndef TL_LLVM_H
#define TL_LLVM_H
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "ir/support/arena.h"
#include "ir/support/diag.h"
#include "ir/support/guard.h"
#include "ir/support/trace.h"

typedef struct TlLlvm {
    TlArena *arena; /* the caller's, as long-lived as this */
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTargetMachineRef machine;
    const char *cpu, *features, *tune; /* as given to functions; tune NULL: as cpu */
    const char *gpu;                   /* its name, where LLVM knows it by another's; NULL: cpu */
    LLVMDIBuilderRef di;               /* gen_debug.c; NULL: no line information */
    const struct TlCtx *debug_sources;
    bool quick;         /* tl_llvm_watch */
    const char *skip;   /* names of codegen/workaround/workarounds.def, with commas; NULL */
    TlTraceLane *trace; /* of the thread that has it now; NULL */
} TlLlvm;

unsigned tl_llvm_version(void); /* 19, 22 */
/* What the module's code is for. */
typedef enum TlLlvmFamily {
    TL_LLVM_NVPTX,
    TL_LLVM_AMD,
    TL_LLVM_HOST,
    TL_LLVM_FAMILIES
} TlLlvmFamily;
TlLlvmFamily tl_llvm_family(const TlLlvm *l);
/* This machine: its triple, and "+sse3,+ssse3": those of its features that code may use, rows of
 * runtime/contract/cpu_level.def. */
const char *tl_llvm_host_triple(TlArena *arena);
const char *tl_llvm_host_features(TlArena *arena);
/* The feature that LLVM lists of a host that has this one (llvm_versions.c). */
const char *tl_llvm_host_name(const char *feature);
/* What a CPU's or GPU's code is made with, which has these features. */
const char *tl_llvm_features(TlArena *arena, const char *cpu, const char *features);
/* triple "", cpu "": this machine's, with tl_llvm_host_features. opt_level 0..3. */
/* Code generators that a small core lacks (llvm_more.c, llvm_few.c). */
void tl_llvm_initialise_more(void);
bool tl_llvm_has(const char *triple); /* "": this machine's */

void tl_llvm_open(TlLlvm *l, TlArena *arena, const char *name, const char *triple, const char *cpu,
                  const char *features, int opt_level);
void tl_llvm_close(TlLlvm *l);
/* After a fault: the same, if what l has is not lost. */
void tl_llvm_abandon(TlLlvm *l, TlFault fault);
/* llvm_memory.c: from now on running out of memory in LLVM is a fault, TL_FAULT_LLVM_MEMORY: where
 * operator new finds none, which the host may take back at any time; where LLVM's containers find
 * none, to be called once. */
void tl_llvm_watch_memory(void);
void tl_llvm_watch_containers(void);
/* Makes the module one for another machine, compiled quickly (code generation level 0). */
void tl_llvm_retarget(TlLlvm *l, const char *triple, const char *cpu, const char *features);
/* Links IR text into the module; what it defines, all of it named tl.*, becomes internal. A fault
 * when it does not parse. */
void tl_llvm_link_text(TlLlvm *l, const char *text, size_t size);
void tl_llvm_verify(TlLlvm *l); /* TL_ASSERT that the module is valid */
void tl_llvm_run(TlLlvm *l, const char *passes);
/* What the assembler of l's target says of inline asm with these operands: NULL, or its first
 * complaint, in l's arena. `type`: a function type of scalars from l's context. The module is not
 * touched. */
const char *tl_llvm_asm_error(const TlLlvm *l, const char *text, size_t text_size,
                              const char *constraints, size_t constraints_size, LLVMTypeRef type);
/* Looks how long the function of a kernel has become, whose loops are nested `depth` deep. When it
 * is too much for code generation, which grows by more than the length of a function and by the
 * square of the depth, the module's code is generated quickly (level 0), in time and memory nearly
 * linear in its size, and a warning says so, with `hint` how to make it shorter. Code for ptxas
 * without loops comes to that sooner. False, after an error, when it is too long even for that. */
bool tl_llvm_watch(TlLlvm *l, TlDiags *diags, TlLoc loc, const char *name, LLVMValueRef function,
                   unsigned depth, const char *hint);
/* From now on the module's code is generated quickly. */
void tl_llvm_be_quick(TlLlvm *l);
#define TL_LLVM_QUICK_PASSES "function(sroa,early-cse)"
/* The block's first n instructions become one of their own, the one returned, before the rest. */
LLVMBasicBlockRef tl_llvm_part(TlLlvm *l, LLVMBasicBlockRef block, unsigned n);
/* Parts blocks of more than that many instructions: selection takes time by the square of a
 * block. */
void tl_llvm_part_blocks(TlLlvm *l, unsigned most);
void *tl_llvm_emit(TlLlvm *l, TlArena *arena, bool object,
                   size_t *out_size); /* object bytes or assembly text */
char *tl_llvm_text(TlLlvm *l, TlArena *arena, size_t *out_size);
bool tl_llvm_has_feature(const TlLlvm *l, const char *feature); /* "avx512f" */

/* ---- attributes ---- */
/* Of the function f (index LLVMAttributeFunctionIndex) or its parameter `index`, from 1 on: LLVM's
 * name; a value, 0 for most, or text. */
void tl_llvm_set_attribute(TlLlvm *l, LLVMValueRef f, unsigned index, const char *name,
                           uint64_t value);
/* The function's parameter is a pointer to memory of so many bytes that the caller passes. */
void tl_llvm_set_byval(TlLlvm *l, LLVMValueRef f, unsigned param, unsigned bytes, unsigned align);
/* The function's parameter, a number, is below `end`; is that known of it? */
void tl_llvm_set_range(TlLlvm *l, LLVMValueRef f, unsigned param, uint64_t end);
bool tl_llvm_has_range(LLVMValueRef f, unsigned param);
void tl_llvm_set_text_attribute(TlLlvm *l, LLVMValueRef f, unsigned index, const char *name,
                                const char *value);

/* What a kernel for NVPTX needs: so many threads of a block, at most so many registers of a thread,
 * at least so many blocks on a multiprocessor. */
typedef enum TlKernelLimit {
    TL_KERNEL_THREADS,
    TL_KERNEL_REGISTERS,
    TL_KERNEL_BLOCKS
} TlKernelLimit;
void tl_llvm_limit_kernel(TlLlvm *l, LLVMValueRef f, TlKernelLimit limit, uint32_t value);
/* These parameters, from 1 on, are read where they are: without this, LLVM would copy them. */
void tl_llvm_read_in_place(TlLlvm *l, LLVMValueRef f, const uint32_t *params, uint32_t n);

/* ---- instructions ---- */
void tl_llvm_set_metadata(TlLlvm *l, LLVMValueRef x, const char *kind, LLVMMetadataRef *operands,
                          unsigned n);
/* Calls the intrinsic, a row of intrinsic.def, overloaded on `types`; name, types and operands are
 * LLVM 19's. */
LLVMValueRef tl_llvm_intrinsic(TlLlvm *l, LLVMBuilderRef b, const char *name, LLVMTypeRef *types,
                               unsigned ntypes, LLVMValueRef *args, unsigned nargs);
/* Masked accesses of vectors. */
typedef enum TlMasked {
    TL_MASKED_LOAD,
    TL_MASKED_GATHER,
    TL_MASKED_STORE,
    TL_MASKED_SCATTER,
    TL_MASKED_COUNT
} TlMasked;
typedef struct TlMaskedAccess {
    const char *name;
    unsigned pointer, mask, data; /* operands; data: what is stored, or is where none is loaded */
} TlMaskedAccess;
extern const TlMaskedAccess tl_masked_accesses[TL_MASKED_COUNT];
/* p: a pointer, or one for each lane. */
LLVMValueRef tl_llvm_masked(TlLlvm *l, LLVMBuilderRef b, TlMasked kind, LLVMValueRef p,
                            unsigned align, LLVMValueRef mask, LLVMValueRef data);
/* Gives a call an attribute of functions, such as "convergent"; "memory": it accesses none. */
void tl_llvm_mark_call(TlLlvm *l, LLVMValueRef call, const char *attribute);
/* x, of which LLVM does not see that it is x: through an asm without text. constraints: where,
 * such as "=s,0". */
LLVMValueRef tl_llvm_hide(LLVMBuilderRef b, LLVMValueRef x, const char *constraints);
/* The same, which LLVM may move, join and remove. */
LLVMValueRef tl_llvm_copy(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x, const char *constraints);
/* An instruction that does not fault, nor reads memory or other threads. */
bool tl_llvm_only_computes(LLVMValueRef x);
/* Is it a call of a function whose name begins so? */
bool tl_llvm_is_call_of(LLVMValueRef x, const char *name);
#endif
