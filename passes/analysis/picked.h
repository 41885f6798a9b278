/* Single elements along an axis, as `pick` and `split` take them, or the first that a condition
 * chooses. */
#ifndef TL_PICKED_H
#define TL_PICKED_H
#include "ir/rewrite.h"

/* Is v, at each position, *first + its coordinate along dim? */
bool tl_counts_along(const TlValue *v, int dim, int64_t *first);
/* As i32 or u32 of these bits, where *first may be less than 0? */
bool tl_counts_from(const TlValue *v, int dim, int64_t *first);
/* Does a reduction give the first coordinate along its axis at which a condition holds: the least
 * of select(c, i, INT32_MAX) for an i that counts along the axis? The select, or NULL. */
const TlOp *tl_first_where(const TlOp *reduce);
/* The tile of which a reduction by `or`, of a select with 0 elsewhere, leaves the elements at *at
 * along its axis. NULL: it does more. */
TlValue *tl_picked_from(const TlOp *reduce, int64_t *at);
#endif
