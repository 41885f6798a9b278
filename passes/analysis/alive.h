/* How many registers of a thread hold what at a product by matrix instructions. This is an
 * estimate: it counts tiles, not addresses and scalars, and takes everything that is computed from
 * them as alive from its definition on. */
#ifndef TL_ALIVE_H
#define TL_ALIVE_H
#include "ir/ir.h"
#include "passes/analysis/axis_info.h"

/* For addresses, counters, what is computed from the tiles meanwhile; for these and fragments, in a
 * loop that fetches ahead. */
enum { TL_OTHER_REGISTERS = 40, TL_LOOP_REGISTERS = 76 };

enum { TL_WARPGROUP_REGISTERS = 64 << 10 }; /* of a multiprocessor that has warpgroups */

/* Words of a thread that hold a tile, or sums on their way; 0: it is in no registers of its own. */
int64_t tl_words_of(const TlValue *v);
/* Words of a thread right behind a load: less than 4 bytes at a time are a register each. */
int64_t tl_words_loaded(const TlAxisInfo *axis, const TlOp *load);
/* Words that are alive beside the operands that a product gets from buffers: what is there before
 * it and used by it or later, and its result. */
int64_t tl_words_alive(const TlFn *fn, TlArena *arena, const TlOp *dot);
/* Words that one thread can have of a target's `registers` when a block has so many warps: CDNA's
 * warps share those of a scheduler. */
int64_t tl_registers_of_thread(int registers, int warps);
#endif
