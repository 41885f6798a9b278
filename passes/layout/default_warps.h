/* Warps of a kernel that states none, and why. */
#ifndef TL_DEFAULT_WARPS_H
#define TL_DEFAULT_WARPS_H
#include "passes/pass.h"

typedef struct TlDefaultWarps {
    int warps;
    const TlOp *largest; /* whose tile would be too much for 4 warps; NULL: there are 4 */
    int64_t each;        /* 32-bit words that it would take of each of their threads */
    bool of_dots;        /* the sums of products */
} TlDefaultWarps;

TlDefaultWarps tl_default_warps(const TlFn *fn, int lanes);
#endif
