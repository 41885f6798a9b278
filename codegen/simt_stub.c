/* Stands in until simt_lower.c is there. */
#include "codegen/simt.h"

bool tl_simt_lower(TlLlvm *l, const TlCodegenOptions *options, TlArena *arena, const TlFn *fn,
                   const char *symbol, TlKernelCode *code)
{
    (void)l, (void)arena, (void)symbol, (void)code;
    tl_diag(&fn->module->ctx->diags, fn->loc, TL_E0700,
            tl_format(arena, "a kernel for %s", options->target->name));
    return false;
}
