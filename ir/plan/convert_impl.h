/* Shared by the files that plan conversions (layout_convert.c, layout_swizzle.c,
 * layout_prove.c). Nobody else includes this. */
#ifndef TL_CONVERT_IMPL_H
#define TL_CONVERT_IMPL_H
#include "ir/layout/gf2.h"
#include "ir/plan/layout_convert.h"

enum { TL_SIDE_MAX_REGS = 60 };

/* A layout as a linear map into the tile's element numbers ("elements"): axes are 1 << axis_bits
 * long and flatten row-major, the last one low. Repetitions are more register bits, above the real
 * ones; numbered so, a register is "virtual". Some virtual registers do not exist. */
typedef struct TlSide {
    const TlLayout *l;
    int nreal, nregs, nlanes, nwarps; /* bits */
    uint64_t reg[TL_SIDE_MAX_REGS], lane[TL_MAX_LANE_BITS], warp[TL_MAX_WARP_BITS];
    int rep_bits[TL_LAYOUT_MAX_OUT], rep_from[TL_LAYOUT_MAX_OUT]; /* register bits of an axis' */
} TlSide;

typedef struct TlElements {
    int rank, bits; /* of all axes */
    int axis_bits[TL_LAYOUT_MAX_OUT], shift[TL_LAYOUT_MAX_OUT];
    const int32_t *shape;
} TlElements;

typedef struct TlPlanner {
    TlArena *arena;
    TlElements e;
    TlSide src, dst; /* the images of dst are cut to what src reaches */
    TlConvert *c;
    uint32_t max_bytes;
    bool fit; /* TL_CONVERT_FIT */
} TlPlanner;

/* p->arena, max_bytes and fit are set. */
void tl_planner_init(TlPlanner *p, const int32_t *shape, uint32_t elem_bytes, const TlLayout *src,
                     const TlLayout *dst);
/* The virtual register of a real one. */
uint64_t tl_side_virtual(const TlSide *s, int64_t reg);
/* XOR of the images of x's set bits. */
static inline uint64_t tl_apply_bits(const uint64_t *images, uint64_t x)
{
    uint64_t v = 0;
    for (int i = 0; x; i++, x >>= 1)
        if (x & 1)
            v ^= images[i];
    return v;
}

/* Fills the plan's SHARED part (layout_swizzle.c). */
void tl_plan_shared(TlPlanner *p);
#endif
