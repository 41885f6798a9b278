/* Copies of loop bodies, for passes that repeat or peel iterations. */
#ifndef TL_LOOPS_H
#define TL_LOOPS_H
#include "ir/rewrite.h"

uint32_t tl_loop_size(const TlOp *loop); /* ops in it, at any depth */
/* A copy of a FOR's body at the builder, without its yield, for one value of the induction
 * variable; `carried` (one per result) goes in and comes out. */
void tl_loop_copy_body(TlBuilder *b, const TlOp *loop, TlValue *iv, TlValue **carried,
                       TlArena *scratch);
#endif
