/* What the targets' own tools report on compiled kernels: registers, spills, memory per thread. */
#ifndef TL_USAGE_H
#define TL_USAGE_H
#include "codegen/target/target.h"
#include "ir/support/arena.h"

/* -1: nobody says. */
typedef struct TlUsage {
    int registers;             /* of a thread; AMD: vector registers, accumulators with them */
    int accumulators, scalars; /* AMD */
    int spilled;               /* bytes stored; AMD: vector registers */
    int reloaded;              /* NVIDIA: bytes */
    int spilled_scalars;       /* AMD: to vector registers */
    int private_bytes;         /* of a thread, in memory: spills and more */
} TlUsage;
#define TL_USAGE_UNKNOWN                                                                           \
    {                                                                                              \
        -1, -1, -1, -1, -1, -1, -1                                                                 \
    }

/* PTX as ptxas makes code of it, in `words` what `ptxas -v` said; a linked AMD code object. False:
 * it has nothing of that kernel. */
bool tl_usage_of_ptxas(const char *words, const char *kernel, TlUsage *out);
bool tl_usage_of_hsaco(const void *code, size_t size, const char *kernel, TlUsage *out);
#endif
