/* From LLVM IR of kernels with leaves to a GPU's code. Only gpu.c and tests use the single steps.
 */
#ifndef TL_GPU_H
#define TL_GPU_H
#include "codegen/gen/codegen.h"
#include "codegen/target/llvm.h"

/* Makes the function `k->symbol` a kernel of the target: k->threads threads, slots as k->slots. */
void tl_gpu_set_kernel(TlLlvm *l, const TlTarget *target, const TlKernelCode *k);
/* Lowers a function, number so-and-so of its module, and appends its row to `kernels`. False:
 * diagnosed. */
bool tl_gpu_lower(TlLlvm *l, const TlFn *fn, uint32_t number, const TlCodegenOptions *options,
                  TlArena *arena, TlKernelCodes *kernels);
/* The middle end; the expansion of leaves. */
void tl_gpu_middle(TlLlvm *l, const TlCodegenOptions *options);
void tl_gpu_expand(TlLlvm *l, const TlCodegenOptions *options, TlKernelCodes *kernels);
/* Both, and emits the module as tl_gpu_compile says. */
void *tl_gpu_emit(TlLlvm *l, const TlCodegenOptions *options, TlEmit emit, TlArena *arena,
                  TlKernelCodes *kernels, size_t *out_size);
/* With -g: line information of the functions lowered until tl_gen_debug_close. */
void tl_gpu_debug_open(TlLlvm *l, const TlModule *m, const TlCodegenOptions *options);
/* ptx.c: tl_gpu_compile for PTX. */
void *tl_ptx_compile(TlModule *m, const TlCodegenOptions *options, TlArena *arena,
                     TlKernelCodes *kernels, size_t *out_size);
/* ptx.c: what LLVM made for a target that it does not know, as that target's; in `arena`. */
char *tl_ptx_say_target(TlArena *arena, const TlTarget *target, char *text_of_llvm, size_t *size);
/* ptx_join.c: the texts of n modules as the text of one, in `arena`. */
char *tl_ptx_join(TlArena *arena, const char *const *texts, uint32_t n, size_t *out_size);
#endif
