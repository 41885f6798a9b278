/* sizes.h: --sizes NAME=N[,N...]: arguments for each combination of sizes (sizes.c). */
#ifndef TL_SIZES_H
#define TL_SIZES_H
#include "tools/tilec_options.h"

enum { SIZES_MOST = 16 };

/* EXIT_FINE, or EXIT_USAGE, which is said. */
int sizes_check(const Options *o);
/* sizes: "M=16 N=4096". */
typedef int SizesRun(const Options *with, const char *sizes, void *user);
/* Calls run for every combination, the last name varying fastest, with the names in PARAM=VALUE
 * replaced; without --sizes once. Ends at the first result that is not EXIT_FINE, and returns
 * it. */
int sizes_each(const Options *o, SizesRun *run, void *user);
#endif
