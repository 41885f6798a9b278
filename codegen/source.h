/* Reading the files of a compilation. */
#ifndef TL_SOURCE_H
#define TL_SOURCE_H
#include "ir/support/arena.h"

/* The file's text, ended by a NUL, in the arena; "-" is standard input. NULL: it cannot be read,
 * and *out_error says why, or is NULL if there is no such file. */
const char *tl_source_read(TlArena *arena, const char *path, size_t *out_size,
                           const char **out_error);
#endif
