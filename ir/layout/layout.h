/* Linear layouts: linear maps over GF(2) from hardware index bits to bits of tile coordinates
 * (ir/IR.md, "Levels"). A layout is stored as the images of its basis vectors: for each
 * input dimension (reg, lane, warp, ...; or offset) and each of its bits, the coordinate (one
 * number per output dimension) that this bit contributes. L(x) is the XOR of the images of x's set
 * bits. Extents are chunk * repetitions: the map covers a power-of-two chunk per output dimension
 * and `reps[d]` copies of it lie side by side (kept in extra registers, outermost, row-major over
 * dimensions). Immutable, in an arena. */
#ifndef TL_LAYOUT_H
#define TL_LAYOUT_H
#include "ir/support/arena.h"

/* Rounded up; rounded down. Of what is below 1: 0. */
static inline int tl_ceil_log2(int64_t n)
{
    return n <= 1 ? 0 : 64 - __builtin_clzll((uint64_t)n - 1);
}
static inline int tl_floor_log2(int64_t n)
{
    return n <= 1 ? 0 : 63 - __builtin_clzll((uint64_t)n);
}

enum { TL_LAYOUT_MAX_IN = 5, TL_LAYOUT_MAX_OUT = 5, TL_LAYOUT_MAX_BITS = 24 };

/* Input dimensions by name; an open list. */
typedef enum TlInDim {
    TL_IN_REG,
    TL_IN_LANE,
    TL_IN_WARP,
    TL_IN_CTA,
    TL_IN_OFFSET,
    TL_IN_COUNT
} TlInDim;

struct TlLayout {
    uint8_t nin, nout;
    TlInDim in[TL_LAYOUT_MAX_IN];        /* which dimensions, in order */
    uint8_t in_bits[TL_LAYOUT_MAX_IN];   /* log2 of each input size */
    uint8_t out_bits[TL_LAYOUT_MAX_OUT]; /* log2 of the chunk per output dimension */
    int32_t reps[TL_LAYOUT_MAX_OUT];     /* chunks side by side, >= 1 */
    int32_t basis[TL_LAYOUT_MAX_IN][TL_LAYOUT_MAX_BITS][TL_LAYOUT_MAX_OUT];
};
typedef struct TlLayout TlLayout;
/* Where nothing else is said: results are new layouts in `arena`; "columns" are the basis images of
 * the inputs in order (first input dimension and bit 0 first); outputs are numbered, outermost
 * first, and flatten row-major (the last one is minor).
 * Misuse (sizes that do not fit) is an assertion; a question with the answer "there is none" gives
 * NULL. */

/* ---- making ---- */
typedef struct TlInBases { /* images of one input dimension: bits rows of nout numbers */
    TlInDim dim;
    int bits;
    const int32_t *images;
} TlInBases;
/* out_bits NULL: the least that hold the images. */
TlLayout *tl_layout_make(TlArena *arena, int nout, const int *out_bits, int nin,
                         const TlInBases *ins);
/* no inputs, every chunk 1: the neutral element of the product */
TlLayout *tl_layout_empty(TlArena *arena, int nout);
TlLayout *tl_layout_identity(TlArena *arena, int bits, TlInDim in, int nout, int out);
TlLayout *tl_layout_zeros(TlArena *arena, int bits, TlInDim in, int nout); /* replicated data */
/* x to x << shift */
TlLayout *tl_layout_strided(TlArena *arena, int bits, int shift, TlInDim in, int nout, int out);
/* The text of tl_layout_print; whitespace is free and "-> ..." may be left out (the least chunk).
 * NULL when malformed. */
TlLayout *tl_layout_parse(TlArena *arena, const char *text);

/* ---- questions ---- */
int tl_layout_in_index(const TlLayout *l, TlInDim dim); /* -1 when absent */
int tl_layout_in_bits(const TlLayout *l, TlInDim dim);  /* 0 when absent */
int tl_layout_total_in_bits(const TlLayout *l);
int tl_layout_total_out_bits(const TlLayout *l);
int32_t tl_layout_extent(const TlLayout *l, int out); /* chunk * reps */
int64_t tl_layout_registers(const TlLayout *l);       /* values per thread, repetitions included */
bool tl_layout_equal(const TlLayout *a, const TlLayout *b);
/* in[i] for l->in[i]; first repetition */
void tl_layout_apply(const TlLayout *l, const uint32_t *in, int32_t *out);
/* The same with the repetition that register number reg (0 .. registers - 1) belongs to; in[] of
 * TL_IN_REG is ignored. */
void tl_layout_apply_reg(const TlLayout *l, int64_t reg, const uint32_t *in, int32_t *out);
/* The value of input `in`, all others 0 and free bits 0, whose image is `out`; -1 when there is
 * none. */
int64_t tl_layout_solve(const TlLayout *l, TlInDim in, const int32_t *out);
int tl_layout_rank(const TlLayout *l); /* of the matrix */
bool tl_layout_is_surjective(const TlLayout *l);
bool tl_layout_is_injective(const TlLayout *l);
/* Bits of each input that add nothing: element i (of l->in) gets a mask. Threads that differ only
 * there hold the same data. */
void tl_layout_free_masks(const TlLayout *l, uint32_t *out_masks);
/* log2 of the vector width: how many low bits of input `in` count up the flattened (row-major)
 * output, with all else a multiple. */
int tl_layout_consecutive_bits(const TlLayout *l, TlInDim in);
/* log2 of how many elements along `out` lie in consecutive values of `in` from its bit 0 on. */
int tl_layout_contiguous_bits(const TlLayout *l, TlInDim in, int out);
/* that part of the matrix; masks as in sublayout */
bool tl_layout_is_zero(const TlLayout *l, uint32_t in_mask, uint32_t out_mask);

/* ---- algebra; `inner` of a product and what is covered have reps of 1 ---- */
/* Block-diagonal: `inner` is repeated as `outer` says. Inputs of `inner` first; common ones get
 * outer's bits above. */
TlLayout *tl_layout_product(TlArena *arena, const TlLayout *inner, const TlLayout *outer);
/* l made to hold a tile: where the tile is smaller, columns outside become zero; where it is
 * larger, register bits are added along order[0] first, then repetitions for what is no power of
 * two. The extent is rounded up to a multiple of l's chunk. */
TlLayout *tl_layout_cover(TlArena *arena, const TlLayout *l, const int32_t *shape,
                          const int *order);

/* In place, the one form of equal layouts of tiles: inputs in the order of TlInDim; reg, lane and
 * warp always there; no register bit that only repeats what other registers hold. A layout of
 * shared memory stays as it is. */
void tl_layout_canonicalize(TlLayout *l);

/* "reg(0,1)(8,0) lane(0,2)(0,4)(1,0)(2,0)(4,0) -> 16x8", with repetitions "-> 16x16 * 1x11" */
void tl_layout_print(TlSbuf *out, const TlLayout *l);

/* ---- shapes that are made by rule (layout_shapes.c); order[0] is the fastest dimension ---- */
/* Each thread holds size[d] neighbours, lanes[d] threads side by side, warps[d] warps; all log2. */
TlLayout *tl_layout_blocked(TlArena *arena, int rank, const int *size, const int *lanes,
                            const int *warps, const int *order);
/* An instruction's fragment (a row of layout_shapes.c, e.g. "mma.v2.c") repeated over warps (log2
 * per dimension; order of the warps), not yet grown to a tile: tl_layout_cover does that. NULL for
 * an unknown name. */
TlLayout *tl_layout_fragment(TlArena *arena, const char *name, const int *warps,
                             const int *warp_order);
#endif
