/* Edits of laid-out IR, shared by passes that choose layouts. */
#ifndef TL_RELAYOUT_H
#define TL_RELAYOUT_H
#include "ir/plan/layout_rules.h"
#include "ir/rewrite.h"

bool tl_has_layout(const TlType *t); /* a tile of rank 1 or more */
bool tl_has_tile_operand(const TlOp *op); /* one with a layout */
void tl_set_layout(TlValue *v, const TlLayout *l);
/* What operand i must be laid out as while the op's results, the arguments of blocks and what a
 * store writes are as they are. NULL: anything, or it is no tile. */
const TlLayout *tl_wanted_layout(const TlOp *op, uint32_t i);
/* v itself when it is laid out like this */
TlValue *tl_relayout(TlBuilder *b, TlValue *v, const TlLayout *l);
/* Users of the result of a CONVERT take its operand, whatever layout they want. */
void tl_bypass_convert(TlOp *op);
/* Does each thread hold n neighbours along the axis, a power of two, from multiples of n on? */
bool tl_holds_along(const TlLayout *l, int axis, int32_t n);
#endif
