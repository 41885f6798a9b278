/* The combiner of argmax and argmin: what the frontend puts into the region of a REDUCE of (values,
 * indices), and passes know again. (a, i) wins over (b, j) by value, where NaN loses, then by the
 * lower index. One table has its ops. */
#ifndef TL_ARGMAX_H
#define TL_ARGMAX_H
#include "ir/ir.h"

/* Fills the region, whose arguments are there: (a, i, b, j). greatest: argmax, not argmin. */
void tl_argmax_fill(TlBuilder *b, const TlBlock *region, bool greatest);

/* A REDUCE with such a region? */
bool tl_is_argmax(const TlOp *op, bool *out_greatest);

/* The ops that combine two elements of d with their indices. */
uint32_t tl_argmax_ops(TlDtype d);
#endif
