/* settle-variants: after all other passes, drops the forms of kernels that are not worth having
 * (passes/analysis/variants.h): those that need no promise and have as many accesses with a bounds
 * test as the general form, and those that ask as much as a form before them. A form without tests
 * is a general one. For the forms that are left, the info records what they ask of a launch's
 * arguments.
 *
 *     kernel @k(...) info {aligned ..}      =>      kernel @k(...) info {..}
 *     kernel @k(...) info {..} */
#include "passes/analysis/variants.h"
#include "passes/pass.h"

/* The forms of the kernel from number i on. */
static uint32_t count_forms(const TlModule *m, uint32_t i)
{
    uint32_t n = 1;
    while (tl_variant_is_aligned(m->fns.data[i + n - 1]) && i + n < m->fns.len &&
           tl_variant_of_one_kernel(m->fns.data[i], m->fns.data[i + n]))
        n++;
    return n;
}

/* Moves those of n forms that stay to the front; returns their number. *changed: one has become the
 * general form. */
static uint32_t settle(TlFn **forms, uint32_t n, TlArena *scratch, bool *changed)
{
    TlFn *last = forms[n - 1];
    bool general = !tl_variant_is_aligned(last);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n - general; i++) {
        TlFn *beside[2 * TL_MAX_FORMS];
        uint32_t nbeside = 0;
        tl_variant_settle(forms[i], scratch);
        for (uint32_t k = 0; k < kept && nbeside < TL_MAX_FORMS; k++)
            beside[nbeside++] = forms[k];
        if (general)
            beside[nbeside++] = last;
        if (tl_variant_profits(forms[i], beside, nbeside))
            forms[kept++] = forms[i];
    }
    if (general)
        forms[kept++] = last;
    for (uint32_t i = 0; i < kept; i++)
        if (tl_variant_is_aligned(forms[i]) && forms[i]->info->tests.len == 0) {
            forms[i]->info->aligned = false;
            forms[i]->info->promise = (TlPromise){.near = false};
            *changed = true;
        }
    return kept;
}

TlPassResult tl_pass_settle_variants(TlModule *m, TlPassCtx *px)
{
    uint32_t len = 0, before = m->fns.len;
    bool changed = false;
    for (uint32_t i = 0, n; i < before; i += n) {
        n = count_forms(m, i);
        uint32_t kept = settle(m->fns.data + i, n, px->scratch, &changed);
        for (uint32_t k = 0; k < kept; k++)
            m->fns.data[len++] = m->fns.data[i + k];
    }
    TL_ASSERT(len > 0 || !before, "no kernel of %u is left", before);
    m->fns.len = len;
    return len == before && !changed ? TL_SAME : TL_CHANGED;
}
