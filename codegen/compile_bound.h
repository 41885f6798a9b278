/* Everything that compilations of one source read, captured at one moment: tilec_bind (tilec.h).
 */
#ifndef TL_COMPILE_BOUND_H
#define TL_COMPILE_BOUND_H
#include "codegen/cache/store.h"
#include "codegen/source.h"

struct tilec_bound {
    TlAlloc alloc;
    TlArena arena;
    const char *process; /* what TILE_PROCESS says; NULL: nothing */
    TlFiles files; /* fixed: every path at which an import was looked for */
    TlStore store;
    bool cached;   /* store is open */
};
#endif
