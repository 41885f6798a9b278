/* The table of options.def, for whoever reads or checks options. */
#ifndef TL_OPTIONS_H
#define TL_OPTIONS_H
#include <stddef.h>

#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"
#include "runtime/contract/grow.h"

typedef struct TlOption {
    const char *field, *option; /* "warps", "--warps" */
    size_t at;                  /* in tilec_options */
    const char *const *words;   /* NULL-terminated; NULL: an int from low to high, or `unset` */
    int low, high, unset;
} TlOption;

/* The members that the caller's options have, over the defaults in *to; false: their struct_size is
 * not set. */
static inline bool tl_options_take(tilec_options *to, const tilec_options *from)
{
    return tl_struct_take(to, sizeof *to, from, TL_LEAST_SIZE(tilec_options, target));
}
/* The row of "--warps"; NULL: there is none. */
const TlOption *tl_option_find(const char *option);
#endif
