/* How many registers of a thread a kernel needs, by its tile IR: the one estimate that the choice
 * of warps (default_warps.h), the bounds that PTX states and `tilec explain` take. */
#ifndef TL_REGISTERS_H
#define TL_REGISTERS_H
#include "passes/analysis/axis_info.h"

typedef struct TlRegisterNeed {
    int registers;  /* of a thread: at the fullest op, with what is needed everywhere */
    int words;      /* of tiles among them */
    int taken;      /* registers, with what the compiler takes for factors of products if it may */
    const TlOp *op; /* the fullest; NULL: there are no tiles */
} TlRegisterNeed;

/* Parts of a thread's registers by which an estimate may be off; where loops have products by
 * multiply-adds (tl_looped_multiply_adds), whose factors are read ahead. */
enum { TL_REGISTERS_DOUBT = 8, TL_REGISTERS_DOUBT_FACTORS = 6 };

/* Who gives registers: ptxas; LLVM, for waves of 64 lanes, or of 32. */
typedef enum TlAllocator { TL_ALLOCATOR_PTXAS, TL_ALLOCATOR_CDNA, TL_ALLOCATOR_RDNA } TlAllocator;
TlAllocator tl_allocator_of(bool by_llvm, int lanes);

/* Registers of a thread, of so many, that hold tiles before there are layouts, all products as if
 * by multiply-adds. */
int tl_registers_of_tiles(const TlFn *fn, int threads, TlAllocator by, TlArena *scratch);
/* Registers, of those that a thread can have, that it may have in a block of so many warps, where
 * each scheduler has a file of so many for a lane. Where there is a second file, for accumulators,
 * everything but sums of products only passes the time there: half of it counts. */
int64_t tl_registers_in_block(int registers, int file, int schedulers, int warps);
/* Of a function that is laid out. */
TlRegisterNeed tl_registers_needed(const TlFn *fn, const TlAxisInfo *axis, TlAllocator by,
                                   TlArena *scratch);
#endif
