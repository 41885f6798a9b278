/* jit.h: calls of the compiler, as jit.c and the tuner make them. */
#ifndef TL_JIT_H
#define TL_JIT_H
#include "codegen/include/tilec.h"
#include "runtime/include/tile_jit.h"

/* What a compilation says, all of it; freed with free(text). */
typedef struct tl_heard {
    char *text; /* NULL: nothing */
    size_t size;
    void (*diagnostic)(void *user, const char *rendered); /* who hears it too; NULL: nobody */
    void *user;
} tl_heard;

/* The members that the caller's options (NULL: none) have, and the defaults, in *options.
 * BAD_ARGUMENT: an option has an illegal value. */
tile_status tl_jit_take(const tile_jit_options *given, tile_jit_options *options);
/* What they say, as the compiler's options; `heard` takes the diagnostics. */
tilec_options tl_jit_compiler_options(const tile_jit_options *options, tl_heard *heard);
/* A list of constants, as the compiler takes it; one block for free(). NULL: out of memory. */
tilec_const *tl_jit_consts(const tile_const *consts, size_t *out_n);
/* The status of a compilation, with the thread's error text. `output` may be NULL. */
tile_status tl_jit_status(tilec_status status, const tilec_output *output, const tl_heard *heard);
#endif
