/* The table of options.def, for whoever reads or checks options. */
#ifndef TL_OPTIONS_H
#define TL_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>

#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"

typedef struct TlOption {
    const char *field, *option; /* "warps", "--warps" */
    size_t at;                  /* in tilec_options */
    const char *const *words;   /* NULL-terminated; NULL: an int from low to high, or `unset` */
    int low, high, unset;
} TlOption;

/* *to becomes complete: the members that the caller's options have, and the defaults of the others
 * and of those that are 0. `from` NULL: all defaults. false: their struct_size is not set, and *to
 * has the defaults. */
bool tl_options_take(tilec_options *to, const tilec_options *from);
/* A number of options that are complete, as it is meant. */
static inline int tl_option_number(int number)
{
    return number == TILEC_NONE ? 0 : number;
}
/* The row of "--warps"; NULL: there is none. */
const TlOption *tl_option_find(const char *option);
#endif
