/* Gives every tile a layout. For now the one that is always right: each thread has all elements. */
#include "ir/layout_rules.h"
#include "passes/pass.h"

static int log2_of(int x)
{
    int n = 0;
    while (1 << n < x)
        n++;
    return n;
}

static void lay_out(TlFn *fn, const TlMachine *m, TlValue *v)
{
    if (v->type->kind != TL_TILE || v->type->rank == 0)
        return;
    TlCtx *ctx = fn->module->ctx;
    v->type = tl_type_with_layout(ctx, v->type,
                                  tl_layout_replicated(ctx, v->type, log2_of(m->lanes),
                                                       log2_of(fn->body->warps)));
}

TlPassResult tl_pass_coalesce(TlFn *fn, TlPassCtx *px)
{
    if (tl_fn_level(fn) == TL_LEVEL_LAID_OUT)
        return TL_SAME;
    fn->body->warps = fn->info && fn->info->warps ? fn->info->warps : px->machine->warps;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        for (uint32_t i = 0; i < op->nout; i++)
            lay_out(fn, px->machine, op->out[i]);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                lay_out(fn, px->machine, op->regions[r]->args[i]);
    }
    return TL_CHANGED;
}
