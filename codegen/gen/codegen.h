/* From tile IR to code: what compile.c asks of the back ends. */
#ifndef TL_CODEGEN_H
#define TL_CODEGEN_H
#include "codegen/gen/image.h"
#include "codegen/target/target.h"

typedef enum TlEmit {
    TL_EMIT_NONE,
    TL_EMIT_NEST,
    TL_EMIT_LOOPS,
    TL_EMIT_LLVM,
    TL_EMIT_ASM,
    TL_EMIT_OBJ
} TlEmit;

typedef struct TlCodegenOptions {
    const TlTarget *target;
    int opt_level;
    bool check, debug;
    bool strict;          /* products are not fused with sums */
    bool emulate;         /* GPU targets: code for the emulator */
    const TlTarget *host; /* emulate: on this CPU; NULL: this machine's */
    const char *skip;     /* of TlLlvm */
} TlCodegenOptions;

/* Lowers every function of `m` for the host into one module and emits it as `emit` says. Rows
 * for the image are appended to `kernels` (code and ncode are the emitted bytes, shared by all).
 * Text ends with a NUL that is not counted. Memory is in `arena`. User errors are diagnosed in
 * m->ctx and give NULL. */
void *tl_cpu_compile(TlModule *m, const TlCodegenOptions *options, TlEmit emit, TlArena *arena,
                     TlKernelCodes *kernels, size_t *out_size);
/* The same for a GPU target, whose functions are laid out: PTX text (ASM, OBJ) for NVIDIA, assembly
 * or hsaco for AMD, with `emulate` a host object with undefined tl_emu_*. LLVM: the module before
 * leaves are expanded, the same with and without `emulate`. One code block for all kernels of m,
 * but for PTX: the whole text is returned, and each kernel has its own. */
void *tl_gpu_compile(TlModule *m, const TlCodegenOptions *options, TlEmit emit, TlArena *arena,
                     TlKernelCodes *kernels, size_t *out_size);

/* In PTX, a line before the text of each asm: then FILE:LINE:COL:LEN, the numbers of its TlLoc. */
#define TL_PTX_ASM "// asm "
#endif
