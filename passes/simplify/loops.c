/* Copies of loop bodies (loops.h). */
#include "passes/simplify/loops.h"

uint32_t tl_loop_size(const TlOp *loop)
{
    TL_ASSERT(loop->nregions > 0, "%s is no loop", tl_op_info(loop->opcode)->text);
    uint32_t n = 0;
    for (const TlOp *o = tl_walk_next(loop, loop); o; o = tl_walk_next(o, loop))
        n++;
    return n;
}

void tl_loop_copy_body(TlBuilder *b, const TlOp *loop, TlValue *iv, TlValue **carried,
                       TlArena *scratch)
{
    TL_ASSERT(loop->opcode == TL_OP_FOR && loop->regions[0]->nargs == loop->nout + 1,
              "%s has no body to copy", tl_op_info(loop->opcode)->text);
    TL_ASSERT(iv->type == loop->regions[0]->args[0]->type, "the counter becomes another type");
    const TlBlock *body = loop->regions[0];
    TlMap map = {.arena = scratch};
    tl_map_put_ptr(&map, body->args[0], iv);
    for (uint32_t i = 0; i < loop->nout; i++)
        tl_map_put_ptr(&map, body->args[i + 1], carried[i]);
    const TlOp *end = body->last;
    for (const TlOp *op = body->first; op != end; op = op->next)
        tl_op_clone(b, op, &map);
    TlValue **next = TL_NEW_ARRAY(scratch, TlValue *, loop->nout);
    for (uint32_t i = 0; i < loop->nout; i++) {
        TlValue *v = tl_map_get_ptr(&map, tl_in(end, i));
        next[i] = v ? v : tl_in(end, i);
    }
    for (uint32_t i = 0; i < loop->nout; i++)
        carried[i] = next[i];
}
