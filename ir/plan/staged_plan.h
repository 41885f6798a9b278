/* How a tile goes between registers and a slot of a buffer: which registers move together, and
 * where. Pure arithmetic; right for every legal pair of layouts. The SIMT lowering of put, get and
 * copy follows the plan.
 *
 * An access moves registers regs[0 .. nregs) of a thread. Its offset, in bytes from the beginning
 * of the slot:
 *
 *     outer + sum over k of far[k].stride * (far[k].thread(thread) ^ far_at[k])
 *           + (inner(thread) ^ inner)
 *
 * far: axes along which threads are in different chunks of the buffer. Nothing of this kind where
 * the buffer's chunk is as large as what the threads of a block reach over.
 *
 * VECTOR  register regs[i] is the element at offset + i * element bytes; the offset is a multiple
 *         of all their bytes.
 * MATRIX  one ldmatrix.x`words`, or stmatrix, where no threads hold copies: the thread gives its
 *         offset as the address of a row of 16 bytes. Word i holds registers regs[i * n], ...,
 *         lowest bits first, n = 4 / element bytes. Matrix i has the rows of lanes 8i .. 8i + 7;
 *         lane l has word l & 3 of row l >> 2.
 * MATRIX_TRANS  the same with .trans: elements 2 (l & 3), 2 (l & 3) + 1 of column l >> 2.
 *
 * MATRIX_8  bytes, transposed. get: one ldmatrix.m16n16.trans; matrices have 16 rows, those of
 *         lanes 16i .. 16i + 15. Words 2i and 2i + 1 of lane l are of columns l >> 2 and (l >> 2) +
 *         8: the bytes of rows 4 (l & 3) .. 4 (l & 3) + 3. put: one stmatrix.m16n8.trans; of word i
 *         bytes 0 and 1 are of rows 8i + 2 (l & 3) and 8i + 2 (l & 3) + 1, column l >> 2, bytes 2
 *         and 3 of column (l >> 2) + 8.
 *
 * COLUMNS  one transposing read of warps of 64: the thread gives its offset as the address of 8
 *         bytes. Of lanes 16i .. 16i + 15 they are rows of 16 elements each, as many as 8 bytes
 *         have elements, one behind the other; lane l has column l & 15, in regs[0], regs[1], ...
 *
 * A guarded access may reach past the end in some thread. get: past the tile's shape, where perhaps
 * nobody has written: read at the beginning of the slot instead, and drop it. put: out of the
 * buffer: leave it. All elements of an access are on one side. */
#ifndef TL_STAGED_PLAN_H
#define TL_STAGED_PLAN_H
#include "ir/plan/layout_convert.h"
#include "ir/plan/staged.h"

typedef enum TlBufKind {
    TL_BUF_VECTOR,
    TL_BUF_MATRIX,
    TL_BUF_MATRIX_TRANS,
    TL_BUF_MATRIX_8,
    TL_BUF_COLUMNS
} TlBufKind;

typedef struct TlBufAccess {
    uint32_t inner, outer, far_at[TL_LAYOUT_MAX_OUT];
    bool guarded;
    int32_t *regs;
} TlBufAccess;

typedef struct TlBufFar {
    int dim;
    uint32_t stride; /* bytes */
    TlThreadMap thread;
} TlBufFar;

typedef struct TlBufPlan {
    TlBufKind kind;
    int words;      /* of a matrix: 1, 2, 4; of columns: 2 */
    uint32_t nregs; /* of an access */
    TlThreadMap inner;
    int nfar;
    TlBufFar far[TL_LAYOUT_MAX_OUT];
    uint32_t naccesses; /* by the first register */
    TlBufAccess *accesses;
} TlBufPlan;

enum {
    TL_BUF_MAY_MATRIX = 1,   /* ldmatrix, or stmatrix, of warps of 32; get or put only */
    TL_BUF_IN_ORDER = 2,     /* regs[i] = regs[0] + i */
    TL_BUF_WRITES = 4,       /* put and copy: what is guarded */
    TL_BUF_MAY_COLUMNS = 8,  /* transposing reads; get only */
    TL_BUF_MAY_MATRIX_8 = 16 /* with MAY_MATRIX: those of bytes, too */
};
/* MAY_MATRIX, of a machine that may have MAY_MATRIX_8, too. */
static inline uint32_t tl_buf_matrices(bool of_bytes)
{
    return TL_BUF_MAY_MATRIX | (of_bytes ? TL_BUF_MAY_MATRIX_8 : 0);
}
/* tile: a tile or token. max_regs: of a vector, a power of two; at most 16 bytes anyway. */
TlBufPlan *tl_buf_plan(TlArena *arena, const TlType *tile, const TlType *buf, int max_regs,
                       uint32_t flags);
/* The plan of a COPY: accesses of as many bytes as its `async` says, or those of a PUT. */
TlBufPlan *tl_copy_plan(TlArena *arena, const TlOp *op);
/* Copies of a warp that are a row: lane n's 16 bytes lie 16 n bytes behind lane 0's. The layout of
 * a tile whose copies are such, for as many warps; NULL: the buffer has places that are not in the
 * tile, or its chunk is less than a row. */
enum { TL_ROW_BYTES = 16 };
const TlLayout *tl_buf_row_layout(TlCtx *ctx, TlArena *arena, const TlType *buf, int lanes,
                                  int warps);
/* Is each access of a plan for tiles such a row? */
bool tl_buf_is_rows(const TlBufPlan *p, const TlType *buf, int lanes);
/* Executes the plan on numbers: every register is read from, or written to, the offset that its
 * element has in the buffer. NULL, or what is wrong, as text. */
const char *tl_buf_prove(TlArena *arena, const TlBufPlan *p, const TlType *tile, const TlType *buf,
                         uint32_t flags);
#endif
