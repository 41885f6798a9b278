/* Our own linker of AMDGPU code objects (hsaco.c). */
#ifndef TL_HSACO_H
#define TL_HSACO_H
#include "ir/support/arena.h"

/* Links a relocatable AMDGPU object in memory into a loadable code object (hsaco), in `arena`. What
 * LLVM makes of our modules always links: everything else is a fault. */
void *tl_hsaco_link(TlArena *arena, const void *object, size_t size, size_t *out_size);
#endif
