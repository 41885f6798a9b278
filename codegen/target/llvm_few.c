/* A core with code generators for NVIDIA's GPUs and this machine's CPU alone, in place of
 * llvm_more.c. */
#include "codegen/target/llvm.h"

#include <string.h>

void tl_llvm_initialise_more(void)
{
}

bool tl_llvm_has(const char *triple)
{
#ifdef __aarch64__
    static const char own[] = "aarch64";
#else
    static const char own[] = "x86_64";
#endif
    return !*triple || !strncmp(triple, "nvptx", 5) || !strncmp(triple, own, sizeof own - 1);
}
