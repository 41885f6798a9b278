/* Matrix instructions (mma.def) and the layouts of the tiles that they work on.
 *
 * A DOT with attribute `mma` is done by that instruction. Its accumulator is the instruction's
 * fragment, times the warps along M, N and batch, grown by registers to the tile; its operands
 * follow from that: a warp has the rows of A and the columns of B that its part of the accumulator
 * needs, all of K. Extents round up to the instruction's; what is beyond K must be multiplied as 0
 * by who lowers the dot, what is beyond M or N meets nothing but itself. */
#ifndef TL_MMA_H
#define TL_MMA_H
#include "ir/ir.h"
#include "ir/layout/layout.h"

/* TL_MMA_SA, TL_MMA_SB: scales of A [M, K / n] and of B [N, K / n], of a dot that has them. */
/* Elements along K that a scale of this type is of: e8m0 as u8, and f8e4m3; 0: it is none. */
int32_t tl_scale_each(TlDtype scale);

enum { TL_MMA_A, TL_MMA_B, TL_MMA_C, TL_MMA_SA, TL_MMA_SB, TL_MMA_OPERANDS };

typedef struct TlMma {
    const char *name, *family;
    int32_t m, n, k;
    TlDtype type[TL_MMA_OPERANDS];         /* of A, B, C, and of scales */
    const char *fragment[TL_MMA_OPERANDS]; /* rows of layout_shapes.c */
    int32_t each; /* elements of K (of A's type) that one scale is of; 0: there are no scales */
} TlMma;

uint32_t tl_mma_count(void);
const TlMma *tl_mma_at(uint32_t i);
const TlMma *tl_mma_find(const char *name); /* NULL when unknown */
uint32_t tl_mma_index(const TlMma *mma);
/* Is the row's family one of these (names with spaces between; NULL: none)? */
bool tl_mma_has(const char *families, const TlMma *mma);
/* Products into tensor memory (tensor.def): rows that are none of mma.def, and that DOT has only
 * where it is one of warpgroups (below). A warp's part of the accumulator is 32 rows, one a lane;
 * four of them are the instruction's 128. Of instructions of 64 rows (the same names and ".m64",
 * none with scales), it is 16 rows, as mma.sync's. */
typedef struct TlTensorMma {
    TlMma mma;
    const char *kind;
    uint8_t code[3]; /* of the types of A, B, C */
    int32_t rows;    /* of the instruction: 128 or 64 */
} TlTensorMma;
const TlTensorMma *tl_tensor_mma_of(const TlMma *mma); /* NULL: no such row */
/* Rows that an instruction takes of a product that has `m`: 128 where they divide it, else 64. */
int32_t tl_tensor_rows(int32_t m);
/* Columns of tensor memory that sums of m rows by n columns take. */
int32_t tl_tensor_columns_of(int32_t m, int32_t n);
/* Of these types, for m rows without scales, and with scales; NULL: there is none. */
const TlMma *tl_tensor_mma_for(const TlDtype types[3], int32_t m);
const TlMma *tl_tensor_scaled_for(TlDtype a, TlDtype b, TlDtype scale);
/* NULL: the op is no DOT, or one by multiply-adds. */
const TlMma *tl_mma_of(const TlOp *op);
/* May warpgroups do the dot together? Operands 0 and 1 have any layout until async-dots decides. */
bool tl_is_warpgroup_dot(const TlOp *op);
void tl_set_mma(TlFn *fn, TlOp *op, const TlMma *mma, bool warpgroup);

/* A warpgroup: its warps, the rows of its instruction, the bytes of K that one takes. */
enum {
    TL_GROUP_WARP_BITS = 2,
    TL_GROUP_WARPS = 1 << TL_GROUP_WARP_BITS,
    TL_GROUP_ROWS = 64,
    TL_GROUP_STEP = 32
};

/* Tensor memory: its lanes, all of its columns, the fewest that a program takes. */
enum { TL_TENSOR_LANES = 128, TL_TENSOR_COLUMNS = 512, TL_TENSOR_LEAST = 32 };

/* What lanes give of an operand to one instruction: reg (elements), lane, one warp. */
TlLayout *tl_mma_fragment(TlArena *arena, const TlMma *mma, int operand);

enum { TL_MMA_SPREAD_BITS = 5 }; /* log2 of columns that take it */

/* log2 of how many warps share M, N and the batch; other warps hold copies. */
typedef struct TlMmaWarps {
    int m, n, batch;
    bool apart;  /* each warp along N has columns side by side, not every other instruction's */
    bool spread; /* columns 4 to 7 of an instruction are 16 further on (tl_mma_spread) */
} TlMmaWarps;

/* The layout of an operand, of this shape (rank 2 or 3; its own layout is not looked at).
 * Interned. */
const TlLayout *tl_mma_layout(TlCtx *ctx, const TlMma *mma, int operand, const TlType *tile,
                              TlMmaWarps warps, int warp_bits);
/* Is `l` the layout of an accumulator of this shape? Then how its warps are. */
bool tl_mma_warps(TlCtx *ctx, const TlMma *mma, const TlType *acc, const TlLayout *l,
                  TlMmaWarps *out);
/* Where a column of an instruction lies with `spread`: bits 2 and 4 are exchanged. So what lanes
 * read of an operand of 4 bytes that lies along N in memory is in different banks: rows of k, of
 * which there are four, differ in bits 4 and 5 of the address, by the swizzle of bulk copies, and
 * columns in bits 2, 3 and 6. */
int32_t tl_mma_spread(int32_t column);
/* Has an accumulator's layout this? */
bool tl_mma_is_spread(const TlMma *mma, const TlLayout *acc);
/* What an operand of a DOT with `mma` must have when its result is laid out as `acc`; NULL:
 * that is no layout of its accumulator, or no lanes hold the operand (tensor.def). */
const TlLayout *tl_mma_operand_layout(TlCtx *ctx, const TlOp *dot, int operand,
                                      const TlLayout *acc);
#endif
