/* How many blocks of a kernel a multiprocessor holds at once, and what keeps it from more
 * (runtime/contract/gpu.def has the targets' numbers). */
#ifndef TL_OCCUPANCY_H
#define TL_OCCUPANCY_H
#include "codegen/target/target.h"

typedef enum TlLimit {
    TL_LIMIT_REGISTERS,
    TL_LIMIT_SHARED,
    TL_LIMIT_WARPS,
    TL_LIMIT_BLOCKS,
    TL_LIMIT_COUNT
} TlLimit;

typedef struct TlOccupancy {
    int blocks, warps, most_warps; /* of a multiprocessor */
    int by[TL_LIMIT_COUNT];        /* blocks that each alone allows; -1: not known */
} TlOccupancy;

/* registers: of a thread, as the target's tools count them (AMD: vector registers); -1: not known.
 * False: the target is no GPU. */
bool tl_occupancy(const TlTarget *target, uint32_t warps, int registers, uint32_t shared_bytes,
                  TlOccupancy *out);
const char *tl_limit_name(TlLimit limit);
#endif
