/* Warps of a kernel that states none, and why. */
#ifndef TL_DEFAULT_WARPS_H
#define TL_DEFAULT_WARPS_H
#include "passes/pass.h"

/* As an earlier pass has set in the body, else as the kernel says, else --warps, else by its tiles;
 * then the info has why. */
int tl_choose_warps(TlFn *fn, const TlMachine *machine);
#endif
