/* Scales of blocks for products into tensor memory (rows of tensor.def that have some), and how
 * they come there.
 *
 * An instruction finds the scales of A's rows, and of B's columns, in tensor memory: row r's in
 * lane r % 32 of all four groups of 32 lanes, column r / 32, four factors that follow each other
 * along K in a word. It takes 1, 2 or 4 of these, from a byte on that its descriptor says. The
 * thread that begins products brings pieces of 128 rows by 4 factors there, 4 columns each, from
 * shared memory: 32 pieces of 16 bytes, row r's factor f in byte 16 (r % 32) + 4 (r / 32) + f. Its
 * products wait for what it has brought, and what it brings next waits for them.
 *
 * A tile of scales [R, L], L factors along K, has L / 4 groups of R / 32 columns, where R and L are
 * rounded up to whole pieces: what is behind the tile's own there, nobody writes nor uses. Pure
 * arithmetic.
 * Sources: PTX ISA, "Scale factors in tensor memory"; CUTLASS (cute/atom/mma_traits_sm100.hpp). */
#ifndef TL_TENSOR_SCALES_H
#define TL_TENSOR_SCALES_H
#include "ir/plan/async_dot.h"

/* Of a piece; rows of a column. */
enum {
    TL_SCALES_ROWS = 128,
    TL_SCALES_WORD = 4,
    TL_SCALES_PIECE_COLUMNS = 4,
    TL_SCALES_COLUMN_ROWS = 32
};

/* A buffer of one slot for such scales. */
const TlType *tl_tensor_scales_buf(TlCtx *ctx, TlArena *arena, const TlType *tile);
/* Is it such a buffer? */
bool tl_tensor_is_scales(TlArena *arena, const TlType *buf);
/* Columns of tensor memory that the scales take. */
int32_t tl_tensor_scales_columns(const TlType *scales);
/* Of those, the one where row and factor are; the factor is in byte factor % 4. */
int32_t tl_tensor_scales_column(const TlType *scales, int32_t row, int32_t factor);
/* Upper word of a piece's descriptor, as tl_async_descriptor has it. */
uint64_t tl_tensor_scales_descriptor(void);
/* The columns that the scales of a product take, A's before B's; 0: it has none. */
int32_t tl_tensor_dot_scales(const TlAsyncDot *dot);
#endif
