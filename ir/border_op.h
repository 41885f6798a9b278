/* Positions along an axis of some extent, each mapped to one inside: what the op `border` computes.
 *
 * With E the extent, P the period, at least 1, and r the magnitude modulo P (of x, or of ~x below
 * 0, so that no number overflows):
 *
 *     wrap        P = E          x < 0 ? E - 1 - r : r
 *     symmetric   P = 2 E        min(r, P - 1 - r)
 *     reflect     P = 2 (E - 1)  min(r, P - r)             r of |x|
 *
 * Along an extent of 0 the result is -1 or 0, which is outside. */
#ifndef TL_BORDER_H
#define TL_BORDER_H
#include "ir/ir.h"

/* Of x, which is the bits of a u64 or a signed number. */
int64_t tl_border_position(TlWay way, bool is_u64, int64_t x, int64_t extent);
/* The op: x a tile of i32, i64 or u64, extent an i64 scalar. */
TlValue *tl_border_op(TlBuilder *b, TlWay way, TlValue *x, TlValue *extent);
/* P, of an extent in i64. */
TlValue *tl_border_period(TlBuilder *b, TlWay way, TlValue *extent);
/* The same in other ops. */
TlValue *tl_border_expand(TlBuilder *b, const TlOp *border);
#endif
