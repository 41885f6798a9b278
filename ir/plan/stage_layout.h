/* Where a tile lies in shared memory between the threads that put it there and those that get it:
 * the choice of a buffer's layout, and the cost of accesses to it. Pure arithmetic on layouts.
 *
 * Costs count wavefronts of one warp, of at most 128 bytes from 32 banks each. */
#ifndef TL_STAGE_LAYOUT_H
#define TL_STAGE_LAYOUT_H
#include "ir/layout/layout.h"
#include "ir/type.h"

typedef struct TlStagingCost {
    uint32_t accesses, wavefronts;
    uint32_t conflicts; /* wavefronts that would not be without bank conflicts */
} TlStagingCost;

enum {
    TL_STAGING_LDMATRIX = 1,   /* gets may be by ldmatrix, with and without .trans */
    TL_STAGING_LDMATRIX_8 = 8, /* ... of bytes, with .trans */
    TL_STAGING_COLUMNS = 4,    /* gets may be by transposing reads of 16 lanes (staged_plan.h) */
    TL_STAGING_IMAGE =
        2, /* rather the image that TMA and wgmma use, and vectors of puts as they are */
};

/* Who takes part: `put` by one layout, `ngets` others get. All are layouts of the tile, of one
 * machine. */
typedef struct TlStagingUse {
    const TlType *type;
    const TlLayout *put, *const *gets;
    int ngets;
    int row;        /* the axis along which neighbours in memory lie: rows run along it */
    uint32_t flags; /* TL_STAGING_* */
} TlStagingUse;

/* The layout of the buffer, from OFFSET. It holds whatever `put` and the gets hold, padding too. */
const TlLayout *tl_staging_layout(TlCtx *ctx, TlArena *arena, const TlStagingUse *use);

/* Bytes that an image's swizzle moves as one: 16, or 32 where tcgen05 reads 32 bits across K. */
enum { TL_STAGING_PIECE = 16, TL_STAGING_WIDE_PIECE = 32 };

/* The image: rows of at most `bytes` (128, 64, 32: with pieces of 16 bytes swizzled; less: plain)
 * along axis `row`, all other axes of the chunk below them, the last one fastest; wider tiles in
 * panels. chunk_bits: log2 of the chunk per axis. piece: of 32 bytes only rows of 128 are read. Of
 * two axes it is what TMA and wgmma read. */
TlLayout *tl_staging_image(TlArena *arena, int rank, const int *chunk_bits, int elem_bytes, int row,
                           int bytes, int piece);
/* A buffer of one slot for a tile of rank 2, with rows along an axis, that is such an image; NULL:
 * its rows are shorter than 32 bytes, or 128 with wide pieces. */
const TlType *tl_staging_image_buf(TlCtx *ctx, TlArena *arena, const TlType *tile, int row,
                                   int piece);
/* Is each chunk of a buffer that image? */
bool tl_staging_is_image(TlArena *arena, const TlType *buf, int row, int bytes, int piece);

/* What all threads' accesses of a tile laid out as `l` to a buffer laid out as `shared` cost.
 * writes: copies do not take part. */
TlStagingCost tl_staging_cost(TlArena *arena, int elem_bytes, const TlLayout *l,
                              const TlLayout *shared, bool writes, uint32_t flags);
/* The same of all who take part. */
TlStagingCost tl_staging_total(TlArena *arena, const TlStagingUse *use, const TlLayout *shared);
/* log2 of how many elements one access moves: neighbours both in registers and in the buffer. */
int tl_staging_vector_bits(TlArena *arena, int elem_bytes, const TlLayout *l,
                           const TlLayout *shared);
#endif
