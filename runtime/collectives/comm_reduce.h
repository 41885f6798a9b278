/* comm_reduce.h: the reductions of libtile-collectives that the host computes. */
#ifndef TL_COMM_REDUCE_H
#define TL_COMM_REDUCE_H
#include "runtime/include/tile_collectives.h"
#include <stdbool.h>

/* Reductions take this type. */
bool tl_comm_reduces(tile_dtype dtype);
/* to[i] = the reduction of from[0][i], from[1][i], ... in this order, for n elements. f16 and bf16
 * are reduced in f32 and rounded once. `to` overlaps none of them, or is one of them. */
void tl_comm_combine(tile_dtype dtype, tile_comm_reduction reduction, const void *const *from,
                     int ranks, void *to, size_t n);
#endif
