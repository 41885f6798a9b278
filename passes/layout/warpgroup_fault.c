/* Why a product is none of warpgroups (warpgroup_fault.h). Only B of 16 bits can be transposed on
 * the way (into tensor memory A, too, both of 8 bits, and of 32 bits rows of 128 bytes); else
 * threads do that. Sums stay in
 * registers while warpgroups work: where these are too many, ptxas waits for each instruction. */
#include "passes/layout/warpgroup_fault.h"
#include "ir/plan/async_dot.h"
#include "ir/plan/late.h"
#include "ir/plan/staged.h"
#include "passes/analysis/facts.h"
#include "passes/layout/relayout.h"

/* What a buffer holds: the copy's access, or what is put into it. NULL: several do that. */
static const TlOp *writer_of(const TlValue *buf)
{
    const TlOp *found = NULL;
    for (const TlUse *u = buf->uses; u; u = u->next) {
        if (u->user->opcode != TL_OP_PUT && u->user->opcode != TL_OP_COPY)
            continue;
        if (found)
            return NULL;
        found = u->user;
    }
    return found;
}

/* One op further up: through transpositions, conversions, buffers, and what goes element by
 * element. NULL: not further. */
static const TlValue *value_before(const TlValue *v, bool *flipped)
{
    bool turned;
    const TlValue *source = tl_matrix_source((TlValue *)v, &turned);
    *flipped ^= turned;
    if (source != v || !v->def)
        return source != v ? source : NULL;
    if (v->def->opcode == TL_OP_GET) {
        const TlOp *writer = writer_of(tl_in(v->def, 0));
        return !writer || writer->opcode == TL_OP_COPY ? NULL : tl_in(writer, 2);
    }
    bool each = (tl_op_info(v->def->opcode)->flags & F_ELEM) && v->def->nin > 0;
    return each ? tl_in(v->def, 0) : NULL;
}

/* The load, or copy, that the matrix is computed from, element by element; NULL. *plain: it is that
 * as it is, perhaps transposed. *flipped changes where it is transposed on the way. */
static const TlOp *access_of(const TlValue *v, bool *plain, bool *flipped)
{
    enum { MOST_CHAIN = 16 }; /* ops between a load and the product */
    *plain = true;
    for (int i = 0; i < MOST_CHAIN && v; i++) {
        if (v->def && v->def->opcode == TL_OP_LOAD)
            return v->def;
        if (v->def && v->def->opcode == TL_OP_GET) {
            const TlOp *writer = writer_of(tl_in(v->def, 0));
            if (writer && writer->opcode == TL_OP_COPY)
                return writer;
        }
        *plain &= !v->def || !(tl_op_info(v->def->opcode)->flags & F_ELEM);
        v = value_before(v, flipped);
    }
    return NULL;
}

/* Does memory count up along K where operand i comes from; or do threads load 4 elements of it
 * along K, or squares (coalesce), which they can put that way? */
static bool goes_along_k(const TlAxisInfo *axis, const TlOp *dot, uint32_t i)
{
    enum { EACH = 4 };
    bool flipped = false, plain;
    const TlOp *op = access_of(tl_in(dot, i), &plain, &flipped);
    int k_axis = (i == TL_MMA_A ? 1 : 0) ^ (int)flipped;
    if (!op)
        return false;
    if (plain && tl_access_info(axis, op).dim == k_axis)
        return true;
    return op->opcode == TL_OP_LOAD &&
           tl_dtype_bits(op->out[0]->type->dtype) == tl_dtype_bits(tl_in(dot, i)->type->dtype) &&
           op->out[0]->type->rank == 2 && tl_holds_along(op->out[0]->type->layout, k_axis, EACH);
}

bool tl_lies_along_n(const TlAxisInfo *axis, const TlOp *dot, int bits)
{
    bool flipped = false, plain;
    const TlOp *op = access_of(tl_in(dot, TL_MMA_B), &plain, &flipped);
    return op && op->out[0]->type->rank == 2 && tl_dtype_bits(op->out[0]->type->dtype) == bits &&
           tl_access_info(axis, op).dim == 1 - (int)flipped;
}

enum { MOST_WORDS = 192, LANES = 32 };

/* The sums of a thread, when it has them, are more than it should have. */
static bool is_large(const TlDotShape *s)
{
    return (int64_t)s->m * s->n > (int64_t)MOST_WORDS * LANES << s->warp_bits;
}

/* Of a product into tensor memory. */
static TlWarpgroupFault tensor_fault(const TlAxisInfo *axis, const TlOp *dot, const TlDotShape *s)
{
    const TlMma *mma = s->mma;
    if (s->warp_bits < TL_GROUP_WARP_BITS)
        return TL_WARPGROUP_TENSOR_WARPS;
    if (s->rank != 2)
        return TL_WARPGROUP_TENSOR_BATCH;
    if (s->m % tl_tensor_rows(s->m))
        return TL_WARPGROUP_TENSOR_ROWS;
    if (s->k % mma->k)
        return TL_WARPGROUP_TENSOR_STEPS;
    if (!tl_tensor_way(s, &(TlDotWay){0}))
        return TL_WARPGROUP_TENSOR_COLUMNS;
    if (is_large(s))
        return TL_WARPGROUP_TENSOR_SUMS;
    for (uint32_t i = 0; i < 2; i++)
        if (tl_dtype_bits(mma->type[i]) > 16 && !goes_along_k(axis, dot, i) &&
            !tl_tensor_reads_across(i == TL_MMA_A ? s->m : s->n))
            return TL_WARPGROUP_TENSOR_CROSSED;
    return TL_WARPGROUP_NONE;
}

TlWarpgroupFault tl_warpgroup_fault(const TlAxisInfo *axis, const TlOp *dot, const TlDotShape *s)
{
    const TlMma *mma = s->mma;
    if (tl_tensor_mma_of(mma))
        return tensor_fault(axis, dot, s);
    if (mma->n != 8 || mma->m != 16 || mma->k * tl_dtype_bytes(mma->type[0]) != TL_GROUP_STEP)
        return TL_WARPGROUP_TYPES;
    if (s->warp_bits < TL_GROUP_WARP_BITS)
        return TL_WARPGROUP_WARPS;
    if (s->rank != 2)
        return TL_WARPGROUP_BATCH;
    if (s->m % TL_GROUP_ROWS)
        return TL_WARPGROUP_ROWS;
    if (s->k % mma->k)
        return TL_WARPGROUP_STEPS;
    if (!tl_warpgroup_way(s, &(TlDotWay){0}))
        return TL_WARPGROUP_COLUMNS;
    if (is_large(s))
        return TL_WARPGROUP_SUMS;
    if (tl_dtype_bits(mma->type[TL_MMA_B]) != 16 &&
        !goes_along_k(axis, dot, s->turned ? TL_MMA_A : TL_MMA_B))
        return TL_WARPGROUP_CROSSED;
    return TL_WARPGROUP_NONE;
}

const char *tl_warpgroup_fault_text(TlWarpgroupFault fault)
{
    static const char *const TEXT[] = {
        [TL_WARPGROUP_NONE] = "",
#define WARPGROUP(ID, why) [TL_WARPGROUP_##ID] = why,
#include "passes/layout/warpgroup_fault.def"
    };
    TL_ASSERT((unsigned)fault < TL_WARPGROUP_COUNT, "fault %d", (int)fault);
    return TEXT[fault];
}
