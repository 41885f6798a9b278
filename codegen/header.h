/* The typed C header of ahead-of-time kernels, and the host object that goes with it. */
#ifndef TL_HEADER_H
#define TL_HEADER_H
#include "codegen/compile.h"
#include "ir/ir.h"

/* What names the image's symbol and the include guard, a valid C identifier: the option, else
 * "gemm" of "dir/gemm.tile". */
const char *tl_image_name(TlArena *arena, const tilec_options *options, const char *source);
/* The header's text: launch functions for the kernels among the module's instances. prefix: before
 * all names that it declares; NULL: nothing. */
void tl_header_write(TlSbuf *out, TlCtx *ctx, const TlModule *m, const char *image,
                     const char *prefix, const char *source);
#endif
