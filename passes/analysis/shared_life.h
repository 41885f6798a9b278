/* Program order as numbers, and where in it each piece of shared memory holds something. */
#ifndef TL_SHARED_LIFE_H
#define TL_SHARED_LIFE_H
#include "ir/ir.h"

/* The position of an op, and that of the last op in its regions. */
typedef struct TlSpan {
    uint32_t first, last;
} TlSpan;

/* Positions count from 0 in text order. Valid until the function changes. */
typedef struct TlPositions {
    TlMap numbers;
    TL_VEC(TlSpan) spans;
} TlPositions;

void tl_positions_init(TlPositions *order, const TlFn *fn, TlArena *arena);
TlSpan tl_position_of(const TlPositions *order, const TlOp *op);
/* Where a use of a value from block `home` counts: at the op itself, or at the outermost loop
 * around it within `home`. */
TlSpan tl_position_of_use(const TlPositions *order, const TlOp *user, const TlBlock *home);

/* Shared memory that an op has for itself, or the buffer of an alloc. */
typedef struct TlSharedLife {
    TlOp *op;
    uint64_t bytes;
    uint32_t alignment;
    uint32_t first, last; /* positions where it is alive */
} TlSharedLife;

typedef TL_VEC(TlSharedLife) TlSharedLives;

/* All of a function that is laid out, in program order; an alloc without uses has none. */
TlSharedLives tl_shared_lives(const TlPositions *order, const TlFn *fn, TlArena *arena);
/* Is there a position at which both hold something? Then they share no byte. */
bool tl_lives_together(const TlSharedLife *a, const TlSharedLife *b);
#endif
