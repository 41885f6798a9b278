/* What to write instead of words of other languages. */
#ifndef TL_ADVICE_H
#define TL_ADVICE_H
#include "ir/support/arena.h"

/* The advice for a word at a kind of error (a letter of advice.def); NULL when there is none.
 * Static. */
const char *tl_advice(const char *word, size_t length, char where);
/* "write import std.activation; and activation.relu(...)", of a function of the library, or what to
 * import of a module of it; NULL: the library has neither. */
const char *tl_advice_of_library(TlArena *arena, const char *name);
#endif
