/* Not yet: inserts barriers. */
#include "passes/pass.h"

TlPassResult tl_pass_insert_barriers(TlFn *fn, TlPassCtx *px)
{
    (void)fn, (void)px;
    return TL_SAME;
}
