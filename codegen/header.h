/* The typed C header of ahead-of-time kernels, and the host object that goes with it. */
#ifndef TL_HEADER_H
#define TL_HEADER_H
#include "ir/ir.h"

/* "gemm" of "dir/gemm.tile": what names the image's symbol and the include guard; a valid C
 * identifier. */
const char *tl_stem(TlArena *arena, const char *path);
/* The header's text: one launch function for each kernel name among the module's instances. */
void tl_header_write(TlSbuf *out, TlCtx *ctx, const TlModule *m, const char *stem,
                     const char *source);
#endif
