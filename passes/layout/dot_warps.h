/* How the warps of a kernel share a product by matrix instructions: along M, N, K and the batch, by
 * cost. The only place that decides it. */
#ifndef TL_DOT_WARPS_H
#define TL_DOT_WARPS_H
#include "ir/plan/mma.h"

typedef struct TlDotShape {
    const TlMma *mma;
    int32_t rank, batch, m, n, k;
    int warp_bits;
    bool chained; /* its block has products whose results go into others */
    bool turned;  /* the transposed operands' product: m and n are the dot's columns and rows */
} TlDotShape;
TlDotShape tl_dot_shape(const TlOp *dot, const TlMma *mma, int warps, bool turned);

typedef struct TlDotWay {
    TlMmaWarps warps;
    bool warpgroup; /* four warps execute an instruction together */
    int64_t cost;   /* of a warp, as layout_cost.c counts */
} TlDotWay;

/* Each warp by itself. */
TlDotWay tl_warp_way(const TlDotShape *s);
/* Each warp by itself, some along K: `warps.batch` is the logarithm of the number of parts. Their
 * sums go through shared memory once in `trips` such products. false: K has no parts. */
bool tl_parts_way(const TlDotShape *s, int64_t trips, TlDotWay *out);
/* One thread, into tensor memory, which four warps read together; false: its rows and columns do
 * not go into the product's. */
bool tl_tensor_way(const TlDotShape *s, TlDotWay *out);
/* Warpgroups; false: their instruction's rows and columns do not go into the product's. */
bool tl_warpgroup_way(const TlDotShape *s, TlDotWay *out);
#endif
