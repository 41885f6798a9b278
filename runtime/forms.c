/* forms.c: makes further forms of a kernel (ir/form.h) with the module's maker, when a launch asks
 * for them (choose.c). */
#include "runtime/runtime.h"
#include <stdlib.h>
#include <string.h>

#include "runtime/contract/form_text.h"

tile_status tl_forms_open(tl_instance *first)
{
    TL_INVARIANT(!first->forms, "a list of forms already");
    first->forms = calloc(1, sizeof *first->forms);
    return first->forms ? TILE_OK : tl_fail(TILE_NO_MEMORY, "out of memory");
}

void tl_forms_close(tl_instance *first)
{
    if (first->forms)
        atomic_store(&first->forms->closed, true);
}

bool tl_same_wish(const tl_wish *a, const tl_wish *b)
{
    return a->n == b->n && a->near == b->near && a->grid == b->grid && a->pairs == b->pairs &&
           memcmp(a->level, b->level, a->n) == 0;
}

/* ---- as text ---- */

static const char *param_of(const tl_instance *in, const tile_image_test *t)
{
    const tile_image_param *params = tl_image_at(in->image, in->kernel->params);
    return tl_image_text(in->image, params[t->param].name);
}

static void write_wish(const tl_instance *first, const tl_wish *w, tl_form_out *out)
{
    const tile_image_test *tests = tl_image_at(first->image, first->kernel->tests);
    uint32_t unit = 0;
    for (uint32_t i = 0; i < first->kernel->ntests && unit < w->n; i++) {
        if (!tl_test_is_unit(&tests[i]))
            continue;
        if (w->level[unit])
            tl_form_put_unit(out, param_of(first, &tests[i]), &tests[i],
                             (uint64_t)1 << w->level[unit]);
        unit++;
    }
    tl_form_end(out, w->near, w->grid, w->pairs);
}

/* NULL: out of memory. */
static char *text_of(const tl_instance *first, const tl_wish *w)
{
    tl_form_out size = {0}, out = {0};
    write_wish(first, w, &size);
    out.room = size.len + 1;
    out.text = calloc(1, out.room);
    if (out.text)
        write_wish(first, w, &out);
    TL_INVARIANT_OR(out.text, out.len <= size.len, "a form of %zu bytes in %zu", out.len, size.len);
    return out.text;
}

tile_status tl_form_wanted(const tile_device *device, const void *image, const tile_arg *args,
                           size_t nargs, char **out_text)
{
    tl_forms none = {0};
    tl_instance first = {.image = image, .kernel = tl_image_kernels(image), .forms = &none};
    tl_bound *bound = malloc(sizeof *bound);
    *out_text = NULL;
    if (!bound)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    bool fits = tl_bind(device, &first, args, nargs, NULL, 0, bound) == TL_BIND_OK;
    if (fits)
        tl_choose_form(bound, &first);
    bool taken = fits && bound->form;
    if (!taken)
        *out_text = fits ? text_of(&first, &bound->wish)
                         : strdup(TL_FORM_ALIGNED ";" TL_FORM_GENERAL);
    free(bound);
    return taken || *out_text ? TILE_OK : tl_fail(TILE_NO_MEMORY, "out of memory");
}

/* ---- making ---- */

static tile_status make(tile_kernel *k, uint32_t instance, const char *form, tl_instance **out)
{
    tile_module *m = k->module;
    void *data = NULL;
    size_t size = 0;
    tl_image *image = NULL;
    tile_status status = m->maker.make(m->maker.user, k->name, k->consts, form, &data, &size);
    if (status == TILE_OK)
        status = tl_module_add_image(m, data, size, &image);
    free(data);
    if (status != TILE_OK)
        return status;
    *out = tl_image_listed(image, k->name, instance);
    TL_INVARIANT(*out && (*out)->kernel->nparams == k->instances[instance]->kernel->nparams,
                 "form '%s' of '%s' is another kernel", form, k->name);
    return TILE_OK;
}

tile_status tl_forms_make(tile_kernel *k, uint32_t instance, const tl_wish *wish)
{
    tl_instance *first = k->instances[instance], *made;
    tl_forms *forms = first->forms;
    unsigned n = atomic_load(&forms->n);
    for (unsigned i = 0; i < n; i++)
        if (tl_same_wish(&forms->made[i].wish, wish))
            return TILE_OK;
    bool general = !wish->n && !wish->near && !wish->grid && !wish->pairs;
    if (n > TL_WISHED || (n == TL_WISHED && !general))
        return TILE_OK; /* another thread was faster: the launch looks again */
    char *form = text_of(first, wish);
    if (!form)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_status status = make(k, instance, form, &made);
    free(form);
    if (status != TILE_OK)
        return status;
    forms->made[n].wish = *wish;
    forms->made[n].form = made;
    atomic_store_explicit(&forms->n, n + 1, memory_order_release);
    return TILE_OK;
}
