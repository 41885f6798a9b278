/* line_diff.h: how one text differs from another, line by line. */
#ifndef TL_LINE_DIFF_H
#define TL_LINE_DIFF_H
#include "ir/support/arena.h"

/* Appends a unified diff of two texts; nothing when they are equal. */
void line_diff(TlSbuf *out, const char *path, const char *a, size_t a_size, const char *b,
               size_t b_size);
#endif
