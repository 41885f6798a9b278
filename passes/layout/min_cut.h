/* The cheapest choice between two states for each of many items, with costs that depend on pairs.
 */
#ifndef TL_MIN_CUT_H
#define TL_MIN_CUT_H
#include "ir/support/arena.h"

typedef struct TlCut TlCut;
TlCut *tl_cut_new(TlArena *arena, uint32_t n);
/* Thing x costs cost[0] or cost[1]. */
void tl_cut_one(TlCut *c, uint32_t x, int64_t cost0, int64_t cost1);
/* x and y together cost more; cost[state of x][state of y]. When equal states cost more than
 * different ones (which no cut can express) the different ones are taken as dearer. */
void tl_cut_two(TlCut *c, uint32_t x, uint32_t y, int64_t cost[2][2]);
/* out[x]: the state of x in a choice of least sum. */
void tl_cut_solve(TlCut *c, bool *out);
#endif
