/* LLVM's code generators for AMD's GPUs and for CPUs other than this machine's: a quarter of the
 * core. One without them (tilec_core_few) has llvm_few.c instead. */
#include "codegen/target/llvm.h"

#include <llvm-c/Target.h>

void tl_llvm_initialise_more(void)
{
#ifdef __aarch64__
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
#else
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
#endif
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser();    /* for asm(..) in kernels */
    LLVMInitializeAMDGPUDisassembler(); /* for tilec explain */
}

bool tl_llvm_has(const char *triple)
{
    (void)triple;
    return true;
}
