/* The plan of a conversion: how a tile goes from one layout to another. Pure arithmetic; the SIMT
 * lowering follows the plan, allocate-shared asks it for bytes, passes for its cost.
 *
 * Registers are numbered as tl_layout_apply_reg does. A thread is (lane, warp); what depends on it
 * is always linear: the XOR of what the set bits of its numbers give (TlThreadMap).
 *
 * NONE    nothing to do: register r of the result is register r of the operand.
 * RENAME  register r of the result is register regs[r].src of the operand.
 * SHUFFLE three steps, the first and last only where their map is not zero, on virtual arrays:
 *           1. t[x] = operand[x ^ from_reg(thread)]          selects among own registers
 *           2. u[r] = t[regs[r].src] of lane regs[r].lane ^ from_lane(thread), same warp;
 *              when is_xor, from_lane(thread) is the own lane: a shuffle by xor of regs[r].lane;
 *              when regs[r].stays, u[r] = t[regs[r].src] without a shuffle
 *           3. result[r] = u[r ^ to_reg(thread)]             selects again
 *         pairs: elements have 16 bits, to_reg is 0 or 1, and u[2 k] and u[2 k + 1] are the same
 *         register of this lane and of another one: a word of the result is of bytes of two words.
 * SHARED  through `bytes` of shared memory, in rounds. In each round in which somebody writes:
 *         (after the first: barrier) all write accesses of that round, barrier, all its read
 *         accesses. A thread does an access in round access.round ^ side.round(thread), and moves
 *         vec_bytes between registers regs[0 .. 1 << vec_bits) and address
 *         scratch + (offset ^ side.offset(thread)), element i at + i * element bytes.
 *         Writes: only threads without a bit of skip_lanes and skip_warps (others hold copies).
 *         A register -1: write anything, drop what is read. A guarded read may name an element that
 *         nobody wrote, for some threads: if the coordinate of regs[first not -1] is outside of the
 *         operand's layout (tl_layout_extent along some axis), read at scratch + fallback[round]
 *         instead. So may a thread in a round that is not the access's, where not all_written.
 * In all kinds src -1: the register holds padding only, its value is open. */
#ifndef TL_LAYOUT_CONVERT_H
#define TL_LAYOUT_CONVERT_H
#include "ir/layout/layout.h"
#include "ir/type.h"

typedef enum TlConvertKind {
    TL_CONVERT_NONE,
    TL_CONVERT_RENAME,
    TL_CONVERT_SHUFFLE,
    TL_CONVERT_SHARED
} TlConvertKind;

enum { TL_MAX_LANE_BITS = 8, TL_MAX_WARP_BITS = 8 };

typedef struct TlThreadMap {
    uint32_t lane[TL_MAX_LANE_BITS], warp[TL_MAX_WARP_BITS];
} TlThreadMap;
uint32_t tl_thread_map(const TlThreadMap *m, uint32_t lane, uint32_t warp);
uint32_t tl_thread_map_bits(const TlThreadMap *m); /* that any thread sets */

typedef struct TlConvertReg {
    int32_t src;
    uint32_t lane;
    bool stays;
} TlConvertReg;

typedef struct TlConvertAccess {
    uint32_t round, offset; /* bytes */
    bool guarded;           /* reads */
    int32_t *regs;
} TlConvertAccess;

typedef struct TlConvertSide {
    int vec_bits; /* log2 of elements per access */
    uint32_t vec_bytes;
    TlThreadMap offset, round;
    uint32_t skip_lanes, skip_warps; /* writes */
    uint32_t naccesses;              /* in the order of rounds */
    TlConvertAccess *accesses;
    uint32_t times;      /* in so many rounds an access happens, for some thread each */
    uint32_t wavefronts; /* of one warp, all accesses: 128 bytes each at best */
} TlConvertSide;
/* Does some thread do the access in this round? */
bool tl_convert_in_round(const TlConvertSide *side, const TlConvertAccess *a, uint32_t round);

typedef struct TlConvert {
    TlConvertKind kind;
    int lane_bits, warp_bits;
    uint32_t elem_bytes, nsrc, ndst; /* registers of operand and result */
    TlConvertReg *regs;              /* NONE, RENAME, SHUFFLE: of the result */
    TlThreadMap from_reg, from_lane, to_reg;
    bool is_xor, pairs;
    uint32_t shuffles, selects; /* of one thread; in words, which small elements share */
    TlConvertSide write, read;
    uint32_t nrounds, nfilled, bytes; /* nfilled: rounds in which something is written */
    uint32_t *fallback;               /* by round: where somebody writes in it, or TL_NOT_FILLED */
    bool all_written;                 /* in every round every element of `bytes` is */
} TlConvert;

enum {
    TL_CONVERT_NO_SHUFFLE = 1,
    TL_CONVERT_KIND = 2, /* of a way through shared memory nothing but the kind is filled in */
    TL_CONVERT_FIT = 4   /* max_bytes is what there is */
};
#define TL_NOT_FILLED UINT32_MAX

/* The plan for a tile of this shape and element (pointers are 8 bytes, its own layout is not looked
 * at). Both layouts are canonical and of one machine. max_bytes: the tile goes through shared
 * memory in more rounds when it needs more; 0: one round. Bytes may still be more than that when
 * no registers tell the rounds apart; with TL_CONVERT_FIT threads do, so that some of them have
 * nothing to write or read in a round, and bytes are more only if max_bytes is less than a vector
 * of 16 bytes. */
TlConvert *tl_convert_plan(TlArena *arena, const TlType *type, const TlLayout *src,
                           const TlLayout *dst, uint32_t max_bytes, uint32_t flags);

/* Where tl_convert_plan would put elements that go from src to dst, as a layout from OFFSET: the
 * least wavefronts of both. The shape's extents are powers of two, the layouts have one repetition.
 * vec_bits: log2 of the registers that src moves at once; -1: as is best. */
TlLayout *tl_swizzle_layout(TlArena *arena, int elem_bytes, int rank, const int32_t *shape,
                            const TlLayout *src, const TlLayout *dst, int vec_bits);

/* Carries the plan out on numbers: every element of the result is where its layout says, no two
 * elements share a byte, no read of what was not written. Costs registers * threads steps; NULL, or
 * what is wrong, as text. */
const char *tl_convert_prove(TlArena *arena, const TlConvert *c, const TlType *type,
                             const TlLayout *src, const TlLayout *dst);
#endif
