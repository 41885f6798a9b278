/* settle-variants: when all else is done, drops the aligned forms that did not profit: that need no
 * promise and have as many accesses with a test of bounds as the general form. Of the others it
 * leaves in the kernel's info what they ask of a launch's arguments (passes/analysis/variants.h).
 *
 *     kernel @k(...) info {aligned ..}      =>      kernel @k(...) info {..}
 *     kernel @k(...) info {..}
 */
#include <string.h>

#include "passes/analysis/variants.h"
#include "passes/pass.h"

TlPassResult tl_pass_settle_variants(TlModule *m, TlPassCtx *px)
{
    uint32_t len = 0, before = m->fns.len;
    for (uint32_t i = 0; i < m->fns.len; i++) {
        TlFn *fn = m->fns.data[i], *next = i + 1 < m->fns.len ? m->fns.data[i + 1] : NULL;
        TL_ASSERT(!next || next->module == m, "'%s' is of another module", next->name);
        bool pair = tl_variant_is_aligned(fn) && next && !strcmp(fn->name, next->name) &&
                    !tl_variant_is_aligned(next);
        if (!pair || tl_variant_profits(fn, next, px->scratch))
            m->fns.data[len++] = fn;
    }
    TL_ASSERT(len > 0 || !before, "no kernel of %u is left", before);
    m->fns.len = len;
    return len == before ? TL_SAME : TL_CHANGED;
}
