/* Not yet: gives scratch a place in shared memory. */
#include "passes/pass.h"

TlPassResult tl_pass_allocate_shared(TlFn *fn, TlPassCtx *px)
{
    (void)fn, (void)px;
    return TL_SAME;
}
