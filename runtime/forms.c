/* forms.c: further forms of a kernel (ir/form.h), made by the module's maker when a launch first
 * has arguments that the first form does not take.
 *
 * A launch states how well its arguments suit the first form's tests (tl_wish). For the first
 * TL_WISHED different wishes a form of its own is made; after that, and where the kernel is
 * prepared, launches make do with the forms that there are, the general one in the end. */
#include "runtime/runtime.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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
    return a->n == b->n && a->near == b->near && a->grid == b->grid &&
           memcmp(a->level, b->level, a->n) == 0;
}

/* ---- as text ---- */

typedef struct text {
    char *data;
    size_t len, size;
} text;

static void put_promise(text *t, const char *name, const tile_image_test *test, unsigned level)
{
    const char *part = test->kind == TILE_TEST_EXTENT   ? ".extent."
                       : test->kind == TILE_TEST_STRIDE ? ".stride."
                                                        : "";
    char axis[16] = "";
    if (*part)
        snprintf(axis, sizeof axis, "%" PRIu32, test->axis);
    t->len += (size_t)snprintf(t->data + t->len, t->size - t->len, "%s%s%s%s=%" PRIu64,
                               t->len ? "," : "", name, part, axis, (uint64_t)1 << level);
}

static void put_word(text *t, const char *word)
{
    t->len += (size_t)snprintf(t->data + t->len, t->size - t->len, "%s%s", t->len ? "," : "", word);
}

static const char *param_of(const tl_instance *in, const tile_image_test *t)
{
    const tile_image_param *params = tl_image_at(in->image, in->kernel->params);
    return tl_image_text(in->image, params[t->param].name);
}

/* NULL: out of memory. */
static char *text_of(const tl_instance *first, const tl_wish *w)
{
    const tile_image_test *tests = tl_image_at(first->image, first->kernel->tests);
    text t = {.size = 64};
    uint32_t unit = 0;
    for (uint32_t i = 0; i < first->kernel->ntests; i++)
        t.size += strlen(param_of(first, &tests[i])) + 64;
    t.data = calloc(1, t.size);
    if (!t.data)
        return NULL;
    for (uint32_t i = 0; i < first->kernel->ntests && unit < w->n; i++) {
        if (tests[i].kind == TILE_TEST_GRID || !(tests[i].mask & 1))
            continue;
        if (w->level[unit])
            put_promise(&t, param_of(first, &tests[i]), &tests[i], w->level[unit]);
        unit++;
    }
    if (w->near)
        put_word(&t, "near");
    if (w->grid)
        put_word(&t, "grid");
    if (!t.len)
        put_word(&t, "general");
    TL_INVARIANT_OR(t.data, t.len < t.size, "%zu bytes for a form of %zu", t.size, t.len);
    return t.data;
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
    bool general = !wish->n && !wish->near && !wish->grid;
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
