/* Products that are done while the program goes on (DOT_ASYNC): what their operands are, and their
 * plan for warpgroups (wgmma of sm_90a) or one thread (tcgen05 of sm_100a). Pure arithmetic.
 *
 * Four warps that follow each other, a warpgroup, execute one instruction: a strip of 64 rows by up
 * to 256 columns, one step of k. Its accumulator, and A where it is in registers, are those of the
 * instruction of one warp that `mma` names, four of them along M: a thread holds exactly what it
 * holds for DOT. So which of the two is used is no matter of layouts, as long as the first two bits
 * of the warp's number go along M. What is in shared memory, the instruction finds by a descriptor:
 * rows of `span` bytes, whose 16-byte pieces are XORed by the row, as tl_staging_image makes them.
 * Rows of 32 bits that tcgen05 reads across K have pieces of 32 bytes.
 * Sources: PTX ISA, "Asynchronous warpgroup level matrix instructions"; the canonical layouts of
 * CUTLASS (cute/arch/mma_sm90_desc.hpp).
 *
 * Of instructions whose sums are in tensor memory (tensor.def), one thread begins those of all
 * strips, 128 rows by up to 256 columns each. Row r and column c of the accumulator are in lane
 * r % 128 and column r / 128 * N + c of what the program has for it. Where M is no multiple of 128,
 * strips have 64 rows: row r is in lane r % 16 + r / 16 % 4 * 32 and column r / 64 * N + c, and a
 * warp takes its 16 rows as fragments of mma.sync. Operands lie as for warpgroups; scales, if there
 * are some, are in buffers, too (tensor_scales.h). A may be in tensor memory instead, where threads
 * put it (READY): rows in lanes as those of sums, along K as many elements in a column as 32 bits
 * have. Sources: PTX ISA, "TensorCore 5th generation"; CUTLASS (cute/arch/mma_sm100_desc.hpp). */
#ifndef TL_ASYNC_DOT_H
#define TL_ASYNC_DOT_H
#include "ir/plan/mma.h"

/* An operand, A or B: a tile, or what a slot of a buffer holds; flipped: there it is transposed.
 * Or, of A, what is in tensor memory. */
typedef struct TlAsyncSide {
    TlValue *tile, *buf, *slot, *tensor;
    bool flipped;
} TlAsyncSide;
bool tl_async_has(const TlAsyncSide *s);

/* Of a product with scales of blocks: those of A, of B. */
enum { TL_ASYNC_SCALES = 2, TL_ASYNC_SIDES = 4 };

typedef struct TlAsyncDot {
    TlAsyncSide side[TL_ASYNC_SIDES];
    TlValue *acc; /* a token */
} TlAsyncDot;
TlAsyncDot tl_async_dot(const TlOp *op); /* a DOT_ASYNC whose operands are well formed */
/* The type of the matrix's element, and its rows and columns. */
TlDtype tl_async_side_shape(const TlAsyncSide *s, int32_t out_shape[2]);

/* What descriptors of one buffer have in common. */
typedef struct TlAsyncSlot {
    int span;              /* bytes of a row: 128, 64 or 32 */
    int piece;             /* bytes that the swizzle moves as one (stage_layout.h) */
    bool across;           /* rows run along M or N, not along K */
    /* bytes: between panels, where rows go across; between 8 rows, or 4 of wide pieces */
    uint32_t lead, stride;
} TlAsyncSlot;

typedef struct TlAsyncStrip { /* of the accumulator, for one instruction of each step of k */
    int32_t row, column;
} TlAsyncStrip;

typedef struct TlAsyncPlan {
    const TlMma *mma;
    int32_t k, n;        /* of the product; columns of an instruction */
    bool pair;           /* two programs do it together: B is halved (TlType) */
    TlAsyncSlot slot[2]; /* of operands in buffers */
    TL_VEC(TlAsyncStrip) strips; /* that warpgroup 0 has; the others have as many. tensor: all */
    /* what bits 2, ... of the warp's number add to a row or column: M or N; 0: nothing */
    int32_t warp_row[TL_LAYOUT_MAX_BITS], warp_column[TL_LAYOUT_MAX_BITS];
    int warp_bits; /* from bit 2 on */
} TlAsyncPlan;

/* Of an instruction, for a warpgroup that has so many columns, of which `run` and `run` lie side by
 * side; 0: there is none. */
int32_t tl_async_columns(const TlMma *mma, int32_t columns, int32_t run);
/* NULL: warpgroups cannot do a product by this instruction, with such operands onto `acc`: a tile
 * or token. sides: A, B, and of an instruction with scales those, too. */
TlAsyncPlan *tl_async_plan(TlArena *arena, const TlMma *mma, const TlAsyncSide *sides,
                           const TlType *acc);
/* Of the image of a buffer from which the instruction reads rows along K, or across it: the bytes
 * that its swizzle moves as one. 0: it reads no such rows. */
int tl_async_piece(const TlMma *mma, int elem_bytes, bool across);
/* Does tcgen05 read rows of 32 bits across K: of so many columns or rows of the product? They are
 * of 128 bytes, in one chunk. */
bool tl_tensor_reads_across(int32_t n);
/* Can the instruction read operand A or B where its buffer has it? */
bool tl_async_reads(TlArena *arena, const TlMma *mma, int operand, const TlAsyncSide *side);
/* In bytes from the start of the slot: of the element in row i (of A: along M) or column i (of B:
 * along N) and step k, both multiples of the instruction's. */
uint32_t tl_async_offset(const TlAsyncSide *s, int operand, int32_t i, int32_t k);
/* Upper and lower word of a descriptor, of which the lower one lacks the slot's address / 16. */
uint64_t tl_async_descriptor(const TlMma *mma, const TlAsyncSlot *slot);

/* ---- in tensor memory ---- */

/* Barriers at which products arrive in turn, and the next slot of TENSOR's buffer, where the
 * address of the program's columns is; that of a pair has one more, the barrier of the first
 * program at which both arrive. */
enum { TL_TENSOR_BARS = 4, TL_TENSOR_SLOTS = TL_TENSOR_BARS + 1 };

/* The descriptor of an instruction of the plan: types, columns, how operands lie; of one with
 * scales also in which byte of a word they begin, which the step from k on says. */
uint32_t tl_tensor_instruction(const TlAsyncPlan *plan, int32_t k);
/* Is it of as many rows as two programs have lanes? */
bool tl_tensor_is_pair(uint32_t instruction);
/* Columns that the accumulator, or an A, has, and where an element of it is: a word has 4 bytes. */
int32_t tl_tensor_columns(const TlType *t);
int32_t tl_tensor_column(const TlType *t, int32_t row, int32_t column);
/* Are n columns those of whole instructions, and can 1 << bits warps share them? */
bool tl_tensor_has_columns(const TlMma *mma, int32_t n, int bits);
/* Can threads put a tile of this type there as A: row r in lane r % 128, whole words each? */
bool tl_tensor_takes_a(const TlType *t);
/* Is it what a product takes as A? */
bool tl_tensor_is_a(const TlValue *v);
/* An await of tokens that lets later products go on (`pending`): it is for their products, and no
 * others, which have been committed where they were begun. */
bool tl_tensor_awaits_tokens(const TlOp *await);
/* Do all threads meet at an await without tokens? Not where they do so behind it in its block: no
 * warp lags so far behind that it misses a phase of a barrier. */
bool tl_tensor_meets_at(const TlOp *await);
/* The READY from which a value of type tensor is: through products, and as loops carry it. */
TlOp *tl_tensor_root(const TlValue *v);
#endif
