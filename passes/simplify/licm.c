/* licm: computes what does not depend on a loop before the loop.
 *
 *     for %lo, %hi, %one (%i) {             %s = mul %a, %b
 *       %s = mul %a, %b               =>    for %lo, %hi, %one (%i) {
 *       %t = add %s, %i                       %t = add %s, %i
 *
 * Inner loops are handled first, so an op can leave several. From a loop's own blocks (not from
 * ifs in them), in order, each pure op without regions, or reduction, moves before the loop if its
 * operands come from outside. No op traps, so it does not matter if the loop never runs. Loads
 * stay: a loop that never runs must not read. */
#include "passes/analysis/facts.h"
#include "passes/pass.h"

/* Also what the regions of a reduction use must be invariant, or be the region's own. */
static bool is_movable(const TlOp *op, const TlOp *loop)
{
    if (!(tl_op_info(op->opcode)->flags & F_PURE))
        return false;
    for (const TlOp *o = op; o; o = tl_walk_next(o, op)) {
        for (uint32_t i = 0; i < o->nin; i++) {
            const TlValue *v = tl_in(o, i);
            const TlBlock *home = v->def ? v->def->block : v->block;
            if (!tl_block_is_inside(home, op) && !tl_is_invariant(v, loop))
                return false;
        }
    }
    return true;
}

static bool empty_loop(TlOp *loop)
{
    TL_ASSERT(tl_is_loop(loop) && loop->block, "%s is no loop", tl_op_info(loop->opcode)->text);
    bool changed = false;
    for (uint32_t r = 0; r < loop->nregions; r++) {
        for (TlOp *op = loop->regions[r]->first, *next; op; op = next) {
            next = op->next;
            if (!is_movable(op, loop))
                continue;
            tl_op_move_before(op, loop);
            changed = true;
        }
    }
    return changed;
}

TlPassResult tl_pass_licm(TlFn *fn, TlPassCtx *px)
{
    TL_VEC(TlOp *) loops = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (tl_is_loop(op))
            tl_vec_push(px->scratch, &loops, op);
    TlPassResult result = TL_SAME;
    while (loops.len) /* inner loops come after the loops around them */
        if (empty_loop(loops.data[--loops.len]))
            result = TL_CHANGED;
    return result;
}
