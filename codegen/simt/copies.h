/* What the lowering of asynchronous copies decides, for it (simt_staged.c) and for `tilec explain`.
 *
 * Copies that stand beside each other begin together. Where the loop around them moves the tiles
 * along axes of their views, one test of whether the tiles are inside as a whole can replace the
 * tests of their elements along these axes: then the code is there twice, without those tests and
 * with them. */
#ifndef TL_COPIES_H
#define TL_COPIES_H
#include "ir/plan/staged_plan.h"
#include "passes/analysis/axis_info.h"

/* Axes whose start changes in the innermost loop around a copy; 0 for other ops. */
uint32_t tl_copy_moving(const TlOp *op);
/* Does a test of the whole tile replace those of its elements along the axes that move? checked:
 * the kernel is compiled with --check, which tests what is unchecked too. */
bool tl_copy_is_decided(const TlOp *op, const TlAccessInfo *info, bool checked);
/* What a copy writes to its buffer, of `width` registers at once at most. *out_async: by cp.async;
 * else by loads and stores. */
const TlBufPlan *tl_copy_plan(TlArena *arena, const TlOp *op, int width, bool can_copy,
                              bool *out_async);
#endif
