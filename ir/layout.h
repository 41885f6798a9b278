/* Linear layouts: linear maps over GF(2) from hardware index bits to bits of tile coordinates (architecture.md section 4).
 * A layout is stored as the images of its basis vectors: for each input dimension (reg, lane, warp, ...; or offset) and each
 * of its bits, the coordinate (one number per output dimension) that this bit contributes. L(x) is the XOR of the images of
 * x's set bits. Extents are chunk * repetitions: the map covers a power-of-two chunk per output dimension and `reps[d]`
 * copies of it lie side by side (kept in extra registers, outermost, row-major over dimensions). Immutable, in an arena. */
#ifndef TL_LAYOUT_H
#define TL_LAYOUT_H
#include "ir/support/arena.h"

enum { TL_LAYOUT_MAX_IN = 4, TL_LAYOUT_MAX_OUT = 5, TL_LAYOUT_MAX_BITS = 24 };

/* Input dimensions by name; an open list. */
typedef enum TlInDim { TL_IN_REG, TL_IN_LANE, TL_IN_WARP, TL_IN_CTA, TL_IN_OFFSET, TL_IN_COUNT } TlInDim;

struct TlLayout {
    uint8_t nin, nout;
    TlInDim in[TL_LAYOUT_MAX_IN];        /* which dimensions, in order */
    uint8_t in_bits[TL_LAYOUT_MAX_IN];   /* log2 of each input size */
    uint8_t out_bits[TL_LAYOUT_MAX_OUT]; /* log2 of the chunk per output dimension */
    int32_t reps[TL_LAYOUT_MAX_OUT];     /* chunks side by side, >= 1 */
    int32_t basis[TL_LAYOUT_MAX_IN][TL_LAYOUT_MAX_BITS][TL_LAYOUT_MAX_OUT];
};
typedef struct TlLayout TlLayout;
/* The algebra (make, apply, compose, invert, invert-and-compose, product, divide left/right, sublayout, transpose,
 * reshape, flatten, free-variable masks, consecutive elements, slice, equality, printing) is declared with layout.c. */
#endif
