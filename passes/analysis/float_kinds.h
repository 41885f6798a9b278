/* Which kinds of numbers a float value may have: whether it can be NaN, and which zeros. */
#ifndef TL_FLOAT_KINDS_H
#define TL_FLOAT_KINDS_H
#include "ir/ir.h"

/* A set; numbers that are not 0 need no bit. */
enum {
    TL_MAY_BE_QUIET = 1,     /* quiet NaN */
    TL_MAY_BE_SIGNALING = 2, /* signaling NaN: only what memory, a bitcast or a constant holds */
    TL_MAY_BE_NAN = TL_MAY_BE_QUIET | TL_MAY_BE_SIGNALING,
    TL_MAY_BE_PLUS_ZERO = 4,
    TL_MAY_BE_MINUS_ZERO = 8,
    TL_MAY_BE_ANY = 15
};
typedef uint8_t TlFloatKinds;

/* Of every value, by value id; of tiles, what any element may be. A fixed point over loops. */
const TlFloatKinds *tl_float_kinds(const TlFn *fn, TlArena *arena);
#endif
