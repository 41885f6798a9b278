/* add-variants: makes those forms of each kernel that may profit from more than the general one
 * (ir/form.h): an aligned form and the general one, or those that the machine's `forms` lists.
 * Where pairs of programs may do products together, one between them promises all else.
 *
 *     kernel @k(...) info {..}      =>      kernel @k(...) info {aligned ..}
 *                                           kernel @k(...) info {..}
 *
 * From then on every pass treats each form separately; axis-info says what may be assumed of each.
 * A kernel that cannot profit has only the general form. A module that already has an aligned
 * kernel is left alone. */
#include <string.h>

#include "passes/analysis/variants.h"
#include "passes/pass.h"

/* Aligned, but for launches without whole clusters, if pairs of programs are promised otherwise. */
#define ALONE "alone"

typedef struct List { /* the texts of forms, the general one last if it is there */
    const char *text[TL_MAX_FORMS];
    uint32_t n;
} List;

static List read_list(const char *forms, TlArena *arena)
{
    List list = {.n = 0};
    bool general = false;
    while (*forms) {
        size_t n = strcspn(forms, ";");
        const char *text = tl_strndup(arena, forms, n);
        TL_ASSERT(list.n < TL_MAX_FORMS, "more than %d forms", TL_MAX_FORMS);
        if (strcmp(text, TL_FORM_GENERAL) == 0)
            general = true;
        else
            list.text[list.n++] = text;
        forms += n + (forms[n] == ';');
    }
    if (general || list.n == 0)
        list.text[list.n++] = TL_FORM_GENERAL;
    return list;
}

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

static TlPromise promise_of(const TlKernelInfo *k, const char *text, TlArena *arena)
{
    TlPromise alone = tl_promise_all(k, arena);
    alone.pairs = false;
    if (strcmp(text, TL_FORM_GENERAL) == 0)
        return (TlPromise){.near = false};
    if (strcmp(text, ALONE) == 0)
        return alone;
    return strcmp(text, TL_FORM_ALIGNED) == 0 ? tl_promise_all(k, arena)
                                              : tl_promise_read(k, text, arena);
}

static bool may_pair(const TlFn *fn, TlArena *arena)
{
    return fn->info && tl_promise_all(fn->info, arena).pairs;
}

static void make(TlFn *fn, const char *text, TlArena *arena)
{
    fn->info->promise = promise_of(fn->info, text, arena);
    fn->info->aligned = fn->info->promise.units.len || fn->info->promise.near ||
                        fn->info->promise.grid || fn->info->promise.pairs;
}

TlPassResult tl_pass_add_variants(TlModule *m, TlPassCtx *px)
{
    uint32_t n = m->fns.len, len = 0;
    const char *forms = px->machine->forms;
    const char *usual = px->machine->tensor ? "aligned;" ALONE ";general" : "aligned;general";
    List list = read_list(forms ? forms : usual, px->scratch);
    if (!wants_variants(m))
        return TL_SAME;
    TlModule *copies[TL_MAX_FORMS] = {m};
    for (uint32_t f = 1; f < list.n; f++)
        copies[f] = tl_module_clone(m); /* lives as long as the context */
    TlFn **all = TL_NEW_ARRAY(&m->arena, TlFn *, list.n * n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t f = 0; f < list.n; f++) {
            TlFn *fn = copies[f]->fns.data[i];
            bool profits = tl_variant_may_profit(fn);
            fn->module = m;
            if (strcmp(list.text[f], ALONE) == 0 && !may_pair(fn, &m->arena))
                continue;
            if (profits)
                make(fn, list.text[f], &m->arena);
            if (profits || f + 1 == list.n)
                all[len++] = fn;
        }
    TL_ASSERT(len >= n && len <= list.n * n, "%u forms of %u kernels", len, n);
    m->fns.data = all;
    m->fns.len = m->fns.cap = len;
    return len == n && strcmp(list.text[0], TL_FORM_GENERAL) == 0 ? TL_SAME : TL_CHANGED;
}
