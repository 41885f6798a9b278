/* The part of the compiler that needs LLVM, behind one function, so that a program that finds its
 * kernels in the cache never loads it. A program has one of core_linked.c and core_loaded.c. */
#ifndef TL_CORE_H
#define TL_CORE_H
#include "codegen/compile.h"

typedef struct TlCore {
    const char *build_id; /* tl_build_id (cache/key.h) of the build that it is from */
    tilec_status (*compile)(const char *name, const char *text, size_t size,
                            const tilec_options *options, TlFiles *files,
                            tilec_output **out_output);
    void (*limit_stack)(size_t most); /* tl_worker_limit_stack */
} TlCore;

/* Thread-safe. NULL: it cannot be loaded; why[size] says why not, *out_status whether that is want
 * of memory (NO_MEMORY) or of the file (TOOL). */
const TlCore *tl_core(char *why, size_t size, tilec_status *out_status);

/* Notes where the core is, as the environment says now; loads nothing. tl_core does it, too. */
void tl_core_find(void);

/* What the shared object of the core exports. Its names, TL_CORE_FILE and TL_CORE_ALL, come from
 * CMakeLists.txt. */
enum { TL_CORE_WHY = 1024 };
#define TL_CORE_SYMBOL "tl_core_entry"
TILEC_API extern const TlCore tl_core_entry;
#endif
