/* Products in loops: what finds them (cpu_product.c) and what lowers them (cpu_matmul.c) share. */
#ifndef TL_CPU_MATMUL_H
#define TL_CPU_MATMUL_H
#include "codegen/cpu/cpu.h"

/* The load that v, an operand, is a conversion or a transposition of; elements outside are zeros.
 * *out_turned: v's rows are the load's columns. NULL: none. */
TlOp *tl_cpu_load_under(const TlValue *v, bool *out_turned);
/* The dimension of v along which the elements of the load under it lie without gaps in memory. -1:
 * neither, not known, or no such load. */
int tl_cpu_dense_dim(const TlFn *fn, const TlValue *v);
#endif
