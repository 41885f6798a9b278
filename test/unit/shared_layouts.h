/* Layouts of shared memory by their formulas: oracles for what the compiler chooses. */
#ifndef TL_SHARED_LAYOUTS_H
#define TL_SHARED_LAYOUTS_H
#include "ir/layout/layout.h"

static inline bool is_invertible(const TlLayout *l)
{
    return tl_layout_is_surjective(l) && tl_layout_is_injective(l);
}

/* Columns of row r are XORed with vec * ((r / per_phase) mod max_phase). */
static inline TlLayout *swizzled_layout(TlArena *arena, int rows_bits, int cols_bits, int vec,
                                        int per_phase, int max_phase)
{
    int32_t images[2 * TL_LAYOUT_MAX_BITS][2] = {{0}};
    for (int b = 0; b < cols_bits; b++)
        images[b][1] = (int32_t)1 << b;
    for (int b = 0; b < rows_bits; b++) {
        int32_t row = (int32_t)1 << b, cols = (int32_t)1 << cols_bits;
        images[cols_bits + b][0] = row;
        images[cols_bits + b][1] = vec * (row / per_phase % max_phase) % cols;
    }
    TlInBases in = {TL_IN_OFFSET, rows_bits + cols_bits, &images[0][0]};
    return tl_layout_make(arena, 2, (int[]){rows_bits, cols_bits}, 1, &in);
}

/* What TMA and wgmma use: 8 rows of `bytes` (32, 64, 128), 16-byte chunks swizzled; more rows lie
 * below each other, wider tiles repeat along columns outermost. */
static inline TlLayout *nvmma_layout(TlArena *arena, int rows_bits, int cols_bits, int elem_bits,
                                     int bytes)
{
    int inner = 0; /* columns of one swizzled row, log2 */
    while (elem_bits << inner < 8 * bytes)
        inner++;
    TlLayout *l = swizzled_layout(arena, 3, inner, 128 / elem_bits, 128 / bytes, bytes / 16);
    l = tl_layout_product(arena, l, tl_layout_identity(arena, rows_bits - 3, TL_IN_OFFSET, 2, 0));
    return tl_layout_product(arena, l,
                             tl_layout_identity(arena, cols_bits - inner, TL_IN_OFFSET, 2, 1));
}
#endif
