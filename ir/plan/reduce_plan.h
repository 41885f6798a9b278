/* The plan of a reduction of laid-out tiles: who combines what, where. Pure arithmetic, asked for
 * bytes and carried out by the SIMT lowering. Right for every legal layout; a thread is
 * (lane, warp), all that depends on it is linear (TlThreadMap).
 *
 * 1. Each thread combines its own registers of one result: partial[r] of the registers
 *    group(r)[i].
 * 2. Steps over lanes: partial[r] = partial[r] with partial[r ^ step.reg] of lane ^ step.lane, for
 *    all r at once. Lanes whose bit first_bit is 0 hold the first operand. mirrored: step i goes
 *    between the halves of 2 << i lanes and turns them around, partials of 1 << i lanes being the
 *    same; nothing is guarded. Then on a machine that gives a row of 16 lanes what the row before
 *    has, that can replace the last steps (tl_reduce_goes_by_rows): row 1 gets what row 0 has, 3
 *    what 2 has; rows 2 and 3 what row 1 has; all lanes what the last lane has.
 * 3. When class_bits: threads without a bit of slots.skip_* write each partial of each operand to
 *    its slot, barrier, everybody reads the slots of all classes that has_value and combines them
 *    in order. Offset of a slot: operand_at[i] + slot * bytes of the element. `each` partials take
 *    part in a round (TlSharedRounds).
 *
 * Registers r are those of the result's layout (one for a scalar). Padding along the axis is left
 * out: where a register or partial may be of padding only it is guarded: it has a value where its
 * coordinate is below the extent. */
#ifndef TL_REDUCE_PLAN_H
#define TL_REDUCE_PLAN_H
#include "ir/ir.h"
#include "ir/plan/shared_slots.h"

/* A linear number of (partial register, thread). */
typedef struct TlReach {
    TlThreadMap thread;
    uint32_t reg[TL_LAYOUT_MAX_BITS];
} TlReach;

typedef struct TlReduceStep {
    uint32_t reg, lane;
    int first_bit;
    bool guarded;
    TlReach least; /* guarded: the least coordinate along the axis of what the partial is of */
    uint32_t least_partner; /* ^ this: the same of the partner */
} TlReduceStep;

typedef struct TlReduceMember {
    int32_t reg; /* of the operand */
    bool guarded;
} TlReduceMember;

typedef struct TlReducePlan {
    int axis;
    int32_t extent;
    uint32_t nregs, nresults;
    TlReduceMember
        *members; /* of result r: first[r] .. first[r + 1] - 1, ascending along the axis */
    uint32_t *first;
    int nsteps;
    TlReduceStep steps[TL_MAX_LANE_BITS];
    bool mirrored;
    int result_bits; /* of nresults, without repetitions */
    int class_bits;
    bool *has_value; /* by class */
    TlSharedSlots slots;
    uint32_t each, bytes, noperands, *operand_at;
    TlDtype *work; /* what each operand is kept in */
} TlReducePlan;

enum { TL_REDUCE_ROW = 16 }; /* lanes */

TlReducePlan *tl_reduce_plan(TlArena *arena, const TlOp *reduce);
/* can: the machine has TL_LEAF_SHFL_END. */
bool tl_reduce_goes_by_rows(const TlReducePlan *p, bool can);
/* How an instruction combines a word of all lanes of a warp. */
typedef enum TlRedux {
    TL_REDUCE_ADD,
    TL_REDUCE_MIN,
    TL_REDUCE_MAX,
    TL_REDUCE_UMIN,
    TL_REDUCE_UMAX,
    TL_REDUCE_AND,
    TL_REDUCE_OR,
    TL_REDUCE_XOR
} TlRedux;
/* Could such an instruction, of floats where the work type is one, do step 2? Smaller types are
 * extended. */
bool tl_reduce_redux(const TlReducePlan *p, const TlOp *reduce, int lane_bits, TlRedux *how);
uint32_t tl_reduce_shuffles(const TlReducePlan *p, bool can); /* of one partial */

/* ---- shared with scans ---- */
/* In what a REDUCE or SCAN keeps partial results: sums and products of f16 and bf16 in f32. */
TlDtype tl_combine_work_type(const TlOp *op, TlDtype d);
TlDtype *tl_combine_work(TlArena *arena, const TlOp *op);
/* What partials exchange: all classes of registers 0 .. n - 1, in rounds of `each` of them; those
 * from `first` on have, in their round, the slots of registers 0, 1, ... */
typedef struct TlSharedRounds {
    TlSharedSlots slots;
    uint32_t each, bytes; /* bytes: the end of what a round takes */
    uint32_t *operand_at; /* offset of each operand's slots */
} TlSharedRounds;
/* n: a multiple of the images' registers; from: the offset at which the scratch begins. One round,
 * unless the op has a room. */
TlSharedRounds tl_combine_rounds(TlArena *arena, const TlOp *op, const TlImages *x, int class_bits,
                                 uint32_t n, uint32_t from);
#endif
