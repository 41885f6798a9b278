/* Products turned: c + a b as the transpose of c' + b' a', whose rows are c's columns. */
#ifndef TL_TURN_DOT_H
#define TL_TURN_DOT_H
#include "ir/plan/mma.h"

/* The instruction for its turned product; NULL: there is none. */
const TlMma *tl_turned_mma(const TlMma *mma);
/* Puts the turned product in the place of a dot of two axes; its operands, and what users see, are
 * transposed. */
TlOp *tl_turn_dot(TlOp *dot);
/* Loops that carry what is only seen transposed, and transpose it back, carry the transpose. */
void tl_carry_turned(TlFn *fn, TlArena *scratch);
#endif
