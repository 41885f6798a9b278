/* The library as a source: modules that stand where a path may. */
#ifndef TL_COMPILE_LIBRARY_H
#define TL_COMPILE_LIBRARY_H
#include <stdbool.h>

#include "ir/support/arena.h"

#define TL_KERNELS "std.kernels." /* how the names of modules with ready kernels begin */

/* Does it name a module of the library, which there may be or not, and no file? */
bool tl_library_is_name(const char *path);
/* "gemm" of "std.kernels.gemm" */
const char *tl_library_own_name(const char *module);
/* The modules that have ready kernels, with commas between them. */
const char *tl_library_kernels(TlArena *arena);
#endif
