/* The formatter: turns .tile text into the same program in one style, which README.md describes.
 */
#ifndef TL_FORMAT_H
#define TL_FORMAT_H
#include "ir/type.h"

enum { TL_FORMAT_WIDTH = 100, TL_FORMAT_INDENT = 4 };

/* The formatted text of a source, in ctx->perm, with a NUL behind it. NULL when the source does not
 * parse, which ctx->diags then says. What comes back has the source's tokens and comments; if it
 * had not, that is a fault (guard.h). */
const char *tl_format_source(TlCtx *ctx, uint32_t source, size_t *out_size);
#endif
