/* Reading the files of a compilation. */
#ifndef TL_SOURCE_H
#define TL_SOURCE_H
#include <stdbool.h>

#include "ir/support/arena.h"

/* The file's text, ended by a NUL, in the arena; "-" is standard input. NULL: it cannot be read,
 * and *out_error says why, or is NULL if there is no such file. */
const char *tl_source_read(TlArena *arena, const char *path, size_t *out_size,
                           const char **out_error);
/* Can it be read only once, or is it no file at all? A pipe, a device, a folder, "-". */
bool tl_source_is_stream(const char *path);
#endif
