/* The table of options.def, for whoever reads or checks options. */
#ifndef TL_OPTIONS_H
#define TL_OPTIONS_H
#include <stddef.h>

#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"

/* The struct_size of version 0.1; nobody's is less. */
enum { TL_OPTIONS_FIRST_SIZE = offsetof(tilec_options, report) + sizeof(int) };

typedef struct TlOption {
    const char *field, *option; /* "warps", "--warps" */
    size_t at;                  /* in tilec_options */
    const char *const *words;   /* NULL-terminated; NULL: an int from low to high, or `unset` */
    int low, high, unset;
} TlOption;

/* The row of "--warps"; NULL: there is none. */
const TlOption *tl_option_find(const char *option);
#endif
