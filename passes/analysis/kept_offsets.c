/* Which offsets loops keep (kept_offsets.h).
 *
 * An offset of 32 bits that does not change in a loop takes a register, and then an add and an
 * extension for each access, where computing it takes a multiply-add more. ptxas makes more of it:
 * it keeps the address of each offset and array, too, two registers each. So the cost of keeping
 * grows with the arrays, until it is spills: scans of three arrays of 128x64 took 650 instructions
 * a trip with 255 registers and 64 bytes of local memory, and 439 with 96 registers where they
 * compute. Where all fits, keeping is cheaper: a product with odd rows took 151 instructions a
 * trip, and 171 where it computed. MOST_KEPT is between what these two have. */
#include "passes/analysis/kept_offsets.h"

#include "ir/plan/layout_rules.h"
#include "passes/analysis/facts.h"

enum { MOST_KEPT = 64 };

int64_t tl_op_accesses(const TlAxisInfo *axis, const TlOp *op)
{
    const TlLayout *l = tl_op_layout(op);
    if (!l || tl_is_bulk_copy(op))
        return 0;
    TlAccessInfo info = tl_access_info(axis, op);
    return tl_layout_registers(l) / tl_access_vector(&info, op, l);
}

/* Of 32 bits. */
static int64_t offsets_of(const TlAxisInfo *axis, const TlOp *op)
{
    bool is_access = tl_op_info(op->opcode)->flags & (F_READ | F_WRITE);
    if (!is_access || tl_op_place(op).rank == 0 || !tl_access_info(axis, op).local)
        return 0;
    return tl_op_accesses(axis, op);
}

int64_t tl_offsets_not_kept(const TlFn *fn, const TlAxisInfo *axis)
{
    int64_t all = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        int64_t n = tl_enclosing_loop(op) ? offsets_of(axis, op) : 0;
        all += n >= TL_MANY_OFFSETS ? n : 0;
    }
    return all > MOST_KEPT ? all : 0;
}
