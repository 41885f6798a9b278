/* How many warps a kernel gets that states none, and why. */
#ifndef TL_DEFAULT_WARPS_H
#define TL_DEFAULT_WARPS_H
#include "ir/ir.h"

/* A thread can hold no more registers than this of one tile. */
enum { TL_MAX_TILE_REGISTERS = 1024 };

/* As an earlier pass has set in the body, else as the kernel says, else `asked` (--warps; 0:
 * nothing), else by its tiles; then the info has why. */
int tl_choose_warps(TlFn *fn, int asked, int lanes);
#endif
