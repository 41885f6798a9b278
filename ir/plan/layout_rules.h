/* How layouts fit together at the laid-out level: which layout an op wants of an operand when its
 * result has a given one, and the other way round. The verifier, the passes that place layouts and
 * the SIMT lowering all ask here (IR.md, "Levels").
 *
 * Every layout that comes back is interned: equal layouts are equal pointers. An axis that is
 * dropped, or repeated by a broadcast, leaves lanes and warps that hold copies, and no registers
 * that do. Registers are numbered anew wherever a layout is derived: what register of one holds the
 * element of a register of the other is asked by coordinates (tl_layout_register_at). */
#ifndef TL_LAYOUT_RULES_H
#define TL_LAYOUT_RULES_H
#include "ir/ir.h"
#include "ir/layout/layout.h"

/* ---- derived layouts ---- */
/* Only the outputs of the mask (bits 1 << number), in order. */
const TlLayout *tl_layout_restricted(TlCtx *ctx, const TlLayout *l, uint32_t outs);
/* A new output of chunk 1 as number `axis`. */
const TlLayout *tl_layout_expanded(TlCtx *ctx, const TlLayout *l, int axis);
/* The outputs of the mask have one element, which everybody has. */
const TlLayout *tl_layout_collapsed(TlCtx *ctx, const TlLayout *l, uint32_t outs);
/* Output i is l's output perm[i]. */
const TlLayout *tl_layout_permuted(TlCtx *ctx, const TlLayout *l, const int64_t *perm);
/* What l has along one axis dealt out anew, the least first: to registers, then lanes, then
 * warps. */
const TlLayout *tl_layout_registers_first(TlCtx *ctx, const TlLayout *l, int axis);
/* The same elements on the same threads after a reshape between these shapes; NULL when the
 * elements' row-major numbers are not linear in both. */
const TlLayout *tl_layout_reshaped(TlCtx *ctx, const TlLayout *l, const TlType *from,
                                   const TlType *to);
/* Every thread has all elements of `type`; always fits a reshape, a print, anything. */
const TlLayout *tl_layout_replicated(TlCtx *ctx, const TlType *type, int lane_bits, int warp_bits);

/* The register (0 .. registers - 1) of lane 0 of warp 0 that has the element; -1 when none has. */
int64_t tl_layout_register_at(const TlLayout *l, const int32_t *coordinate);

/* The register of `from` that holds in every thread what register `reg` of `to`, its reshape,
 * holds; -1: nothing but padding. */
int64_t tl_layout_reshape_source(const TlType *from, const TlType *to, int64_t reg);

/* ---- ops ---- */
/* The layout that an op is about: of its first result, or of what a store or atomic accesses. NULL
 * when that is a scalar, a view or nothing. */
const TlLayout *tl_op_layout(const TlOp *op);
/* What operand number `operand` must have when the op's layout (tl_op_layout; of all results) is
 * `layout`. NULL: anything, or it is no tile. A reduction's operands are asked with
 * tl_layout_for_result. */
const TlLayout *tl_layout_for_operand(TlCtx *ctx, const TlOp *op, uint32_t operand,
                                      const TlLayout *layout);
/* The op's layout when operand number `operand` has `layout`. NULL: it does not follow. */
const TlLayout *tl_layout_for_result(TlCtx *ctx, const TlOp *op, uint32_t operand,
                                     const TlLayout *layout);

/* How many warps run a block: its own number or that of the nearest block around; 0 = not said. */
int32_t tl_block_warps(const TlBlock *b);
#endif
