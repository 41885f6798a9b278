/* add-variants: puts an aligned form before each kernel that may profit from one.
 *
 *     kernel @k(...) info {..}      =>      kernel @k(...) info {aligned ..}
 *                                           kernel @k(...) info {..}
 *
 * From then on every pass treats each of the two on its own; what may be assumed of the aligned one
 * is in axis-info (passes/analysis/variants.h). Nothing is done to a module that has an aligned
 * kernel. */
#include "passes/analysis/variants.h"
#include "passes/pass.h"

static bool wants_variants(const TlModule *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->fns.len; i++) {
        if (tl_variant_is_aligned(m->fns.data[i]))
            return false;
        any |= tl_variant_may_profit(m->fns.data[i]);
    }
    return any;
}

TlPassResult tl_pass_add_variants(TlModule *m, TlPassCtx *px)
{
    (void)px;
    uint32_t n = m->fns.len, len = 0;
    if (!wants_variants(m))
        return TL_SAME;
    TlModule *copy = tl_module_clone(m); /* lives as long as the context */
    TL_ASSERT(copy->fns.len == n, "%u copies of %u kernels", copy->fns.len, n);
    TlFn **all = TL_NEW_ARRAY(&m->arena, TlFn *, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        if (tl_variant_may_profit(m->fns.data[i])) {
            TlFn *aligned = copy->fns.data[i];
            aligned->module = m;
            aligned->info->aligned = true;
            all[len++] = aligned;
        }
        all[len++] = m->fns.data[i];
    }
    TL_ASSERT(len > n && len <= 2 * n, "%u forms of %u kernels", len, n);
    m->fns.data = all;
    m->fns.len = m->fns.cap = len;
    return TL_CHANGED;
}
