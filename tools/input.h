/* input.h: a file's text. */
#ifndef TL_INPUT_H
#define TL_INPUT_H
#include "ir/support/arena.h"
#include <stdbool.h>

/* Appends what a file holds, or standard input for "-", up to somewhat more than the front end
 * takes; out->text then ends with a NUL. False: it cannot be read, and errno says why, or is 0. */
bool input_read(const char *path, TlSbuf *out);
#endif
