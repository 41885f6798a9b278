/* What a file declares, whether it compiles or not. */
#ifndef TL_DECLARED_H
#define TL_DECLARED_H
#include "frontend/frontend.h"
#include "tools/tilec_options.h"

/* The program of a file or a module of the library, for its kernels' names and parameters; it lives
 * in *ctx. Nothing is said of errors, and imports are not read. NULL: `path` is NULL or "-", or it
 * cannot be read. Under a guard. */
TlProgram *declared(TlCtx *ctx, const char *path);

/* After a failure: says which PARAM=VALUE are meant for constants. */
void say_constants(const Options *o);
#endif
