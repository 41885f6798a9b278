/* choose.c: which code runs a launch. A kernel is a table of rows, and the first row whose tests
 * all hold runs:
 *
 *     row                           its tests
 *     an instance (module.c: those  types, ranks, extents, strides, `require`, the grid: tl_bind
 *     that agree with constants)
 *     a form of that instance       units of addresses, extents, strides and scalars, sizes, the
 *                                   grid's origin, tensor maps: `passes`
 *
 * Instances stand in the image's order. If some are tuned, those for the sizes nearest to the
 * launch's come first. The bucket of a launch is a small number for each key of the kernel,
 * ceil(log2(value)), and an instance has a row for each bucket that it was best for. The smallest
 * sum of differences wins; of equally near buckets, the smaller one, number by number; rows
 * without buckets are last. So the same sizes always run the same code.
 *
 * Forms stand in the image's order, followed by those that launches have asked for. A launch
 * records how well its arguments suit the first form's tests (tl_wish), and a form that suits as
 * well is made on the first miss (forms.c), until there are TL_WISHED of them or the kernel is
 * prepared. After that, launches use the existing forms, in the end the general one. */
#include "runtime/runtime.h"
#include <stdio.h>

/* ---- the order of instances ---- */

int32_t tl_bucket(int64_t value)
{
    if (value < 1)
        return -1;
    return value == 1 ? 0 : 64 - __builtin_clzll((unsigned long long)value - 1);
}

bool tl_find_keys(const tl_instance *in, const tile_device *device, const tl_bound *bound,
                  int64_t *out_values, const char **out_wrong)
{
    const tile_image_expr *exprs = tl_image_at(in->image, in->kernel->exprs);
    const uint32_t *keys = tl_image_at(in->image, in->kernel->keys);
    tl_hx_env env = {bound->syms, bound->args, device->processors};
    for (uint32_t i = 0; i < in->kernel->nkeys; i++) {
        const tile_image_expr *e = &exprs[keys[i]];
        *out_wrong = tl_image_text(in->image, e->text);
        if (tl_hostexpr_eval(tl_image_at(in->image, e->code), e->ncode, &env, &out_values[i]) !=
            TL_HX_FINE)
            return false;
    }
    return true;
}

/* The launch's bucket. False: no instance is tuned, or the arguments are wrong, which tl_bind will
 * say, or a key cannot be computed. */
static bool find_bucket(const tl_question *q, tl_bound *scratch, int32_t *out)
{
    const tl_instance *first = q->kernel->instances[0];
    const tile_device *device = q->kernel->module->device;
    int64_t values[TILE_IMAGE_MAX_KEYS];
    const char *ignored;
    if (!q->kernel->tuned || !tl_bind_names(device, first, q->args, q->nargs, scratch) ||
        !tl_find_keys(first, device, scratch, values, &ignored))
        return false;
    for (uint32_t i = 0; i < first->kernel->nkeys; i++)
        out[i] = tl_bucket(values[i]);
    return true;
}

static int64_t distance(const int32_t *a, const int32_t *b, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] < b[i] ? (int64_t)b[i] - a[i] : (int64_t)a[i] - b[i];
    return sum;
}

bool tl_nearer(const int32_t *want, const int32_t *a, const int32_t *b, uint32_t n)
{
    int64_t da = distance(want, a, n), db = distance(want, b, n);
    for (uint32_t i = 0; i < n && da == db; i++) {
        da = a[i];
        db = b[i];
    }
    return da < db;
}

static bool is_before(const int32_t *want, uint32_t n, const tl_row *a, const tl_row *b)
{
    if (a->bucket && b->bucket && memcmp(a->bucket, b->bucket, n * sizeof *want) != 0)
        return tl_nearer(want, a->bucket, b->bucket, n);
    return !a->bucket == !b->bucket ? a < b : a->bucket != NULL;
}

/* The row after `last` (NULL: the first) for launches of bucket `want` (NULL: of no bucket). */
static const tl_row *next_row(const tile_kernel *k, const int32_t *want, const tl_row *last)
{
    const tl_row *end = k->rows + k->nrows, *next = NULL;
    uint32_t nkeys = k->instances[0]->kernel->nkeys;
    if (!want)
        return !last ? k->rows : last + 1 < end ? last + 1 : NULL;
    for (const tl_row *r = k->rows; r < end; r++)
        if ((!last || is_before(want, nkeys, last, r)) &&
            (!next || is_before(want, nkeys, r, next)))
            next = r;
    return next;
}

/* ---- the tests of forms ---- */

static uint64_t test_value(const tl_bound *b, const tile_image_kernel *form,
                           const tile_image_test *t)
{
    const tile_arg *a = &b->args[t->param];
    uint64_t bytes;
    switch ((tile_test_kind)t->kind) {
    case TILE_TEST_POINTER: return (uint64_t)(uintptr_t)a->address;
    case TILE_TEST_EXTENT: return (uint64_t)a->extent[t->axis];
    case TILE_TEST_STRIDE: return (uint64_t)a->stride[t->axis];
    case TILE_TEST_SPAN: return tl_view_bytes(a, &bytes) ? bytes : UINT64_MAX;
    case TILE_TEST_SCALAR: return (uint64_t)tl_decode_int((tile_dtype)a->dtype, a->scalar);
    case TILE_TEST_GRID: return !b->own_grid;
    case TILE_TEST_CLUSTER:
        return form->cluster > 1 && tl_cluster_of(&b->launch, form) != (int32_t)form->cluster;
    case TILE_TEST_COUNT: break;
    }
    return UINT64_MAX;
}

/* Can bulk copies access all views that the form has tensor maps of? */
static bool has_maps(const tl_bound *b, const tl_instance *form)
{
    const tile_image_slot *s = tl_image_at(form->image, form->kernel->slots);
    tl_tensor_map ignored;
    for (uint32_t i = 0; i < form->kernel->nslots; i++)
        if (s[i].kind == TILE_SLOT_MAP &&
            !tl_tensor_map_of(&s[i], &b->args[s[i].param], &ignored))
            return false;
    return true;
}

static bool passes(const tl_bound *b, const tl_instance *form)
{
    const tile_image_test *tests = tl_image_at(form->image, form->kernel->tests);
    for (uint32_t i = 0; i < form->kernel->ntests; i++)
        if (test_value(b, form->kernel, &tests[i]) & tests[i].mask)
            return false;
    return has_maps(b, form);
}

/* ---- wishes ---- */

bool tl_test_is_unit(const tile_image_test *t)
{
    return t->kind != TILE_TEST_GRID && t->kind != TILE_TEST_CLUSTER && t->mask & 1;
}

/* Addresses are multiples of an element's size anyway. */
static uint8_t level_of(const tl_bound *b, const tile_image_test *t, uint64_t value)
{
    uint8_t level = 0;
    uint32_t bits = (uint32_t)tile_dtype_bits((tile_dtype)b->args[t->param].dtype);
    while (t->mask >> level & 1 && !(value >> level & 1))
        level++;
    return t->kind == TILE_TEST_POINTER && 8u << level <= bits ? 0 : level;
}

/* More tests than a wish has room for: then it is for the general form. */
static void take_wish(tl_bound *b, const tl_instance *first)
{
    const tile_image_test *tests = tl_image_at(first->image, first->kernel->tests);
    uint32_t ntests = first->kernel->ntests;
    bool room = ntests <= TL_MAX_WISH, near = true, grid = true, pairs = true;
    tl_wish *w = &b->wish;
    w->n = 0;
    for (uint32_t i = 0; i < ntests && room; i++) {
        uint64_t value = test_value(b, first->kernel, &tests[i]), mask = tests[i].mask;
        if (tl_test_is_unit(&tests[i]))
            w->level[w->n++] = level_of(b, &tests[i], value);
        else if (value & mask)
            *(tests[i].kind == TILE_TEST_GRID      ? &grid
              : tests[i].kind == TILE_TEST_CLUSTER ? &pairs
                                                   : &near) = false;
    }
    w->near = room && near;
    w->grid = room && grid;
    w->pairs = room && pairs && first->kernel->cluster == 2;
    bool any = w->near || w->grid || w->pairs;
    for (uint32_t i = 0; i < w->n; i++)
        any |= w->level[i] > 0;
    w->n = any ? w->n : 0;
}

/* The made form that is as wished; else, if no more are made, the first that the arguments suit. A
 * form may test what the first one did not. NULL: the wish says which form is to be made. */
static tl_instance *choose_made(tl_bound *b, const tl_instance *first)
{
    tl_forms *forms = first->forms;
    unsigned n = atomic_load_explicit(&forms->n, memory_order_acquire);
    bool full = atomic_load_explicit(&forms->closed, memory_order_relaxed) || n >= TL_WISHED;
    take_wish(b, first);
    for (unsigned i = 0; i < n; i++)
        if (tl_same_wish(&forms->made[i].wish, &b->wish)) {
            if (passes(b, forms->made[i].form))
                return forms->made[i].form;
            full = true;
        }
    for (unsigned i = 0; i < n && full; i++)
        if (passes(b, forms->made[i].form))
            return forms->made[i].form;
    if (full)
        b->wish = (tl_wish){.n = 0};
    return NULL;
}

tl_instance *tl_next_form(tl_instance *in)
{
    int64_t index = in->kernel - tl_image_kernels(in->image);
    return in->kernel->otherwise ? in + (in->kernel->otherwise - 1 - index) : NULL;
}

void tl_choose_form(tl_bound *b, tl_instance *first)
{
    tl_instance *form = first;
    while (form && !passes(b, form))
        form = tl_next_form(form);
    if (!form && first->forms)
        form = choose_made(b, first);
    b->form = form;
    if (form)
        tl_bind_slots(b);
}

/* ---- a launch ---- */

/* The error is that of the first row whose `require` fails, or else of the first. */
static tile_status no_instance_fits(const tile_kernel *kernel, const char *why)
{
    if (kernel->ninstances == 1)
        return tl_fail(TILE_BAD_ARGUMENT, "%s", why);
    return tl_fail(TILE_BAD_ARGUMENT,
                   "kernel '%s': none of its %u variants takes these arguments; the first: %s",
                   kernel->name, kernel->ninstances, why);
}

tile_status tl_choose(const tl_question *q, tl_bound *out)
{
    const tile_kernel *k = q->kernel;
    int32_t bucket[TILE_IMAGE_MAX_KEYS];
    const int32_t *want = find_bucket(q, out, bucket) ? bucket : NULL;
    char why[1024];
    bool said = false, said_require = false;
    for (const tl_row *row = next_row(k, want, NULL); row; row = next_row(k, want, row)) {
        tl_instance *in = k->instances[row->instance];
        tl_bind_result r =
            tl_bind(k->module->device, in, q->args, q->nargs, q->grid, q->naxes, out);
        out->instance = row->instance;
        if (r == TL_BIND_OK)
            tl_choose_form(out, in);
        if (r == TL_BIND_OK || r == TL_BIND_EMPTY)
            return TILE_OK;
        if (!said || (r == TL_BIND_REQUIRE && !said_require))
            snprintf(why, sizeof why, "%s", tile_last_error());
        said = true;
        said_require |= r == TL_BIND_REQUIRE;
    }
    return no_instance_fits(k, why);
}

/* Makes the form that is wished for. Meanwhile another thread may have made others, after which
 * launches make do with less: the wish is another one then. */
static tile_status make_form(tile_kernel *k, tl_bound *b)
{
    enum { TRIES = TL_WISHED + 2 };
    tile_status status = tl_check_forms(k, b);
    for (int i = 0; status == TILE_OK && !b->form && i < TRIES; i++) {
        pthread_mutex_lock(&k->module->lock);
        status = tl_forms_make(k, b->instance, &b->wish);
        pthread_mutex_unlock(&k->module->lock);
        if (status == TILE_OK)
            tl_choose_form(b, k->instances[b->instance]);
    }
    TL_INVARIANT(status != TILE_OK || b->form, "kernel '%s' has no general form", k->name);
    return status;
}

tile_status tl_check_forms(const tile_kernel *k, const tl_bound *b)
{
    if (b->form || k->instances[b->instance]->forms)
        return TILE_OK;
    return tl_fail(TILE_BAD_ARGUMENT,
                   "kernel '%s': the image has no form for arguments that are aligned like these "
                   "(--forms)",
                   k->name);
}

tile_status tl_load_chosen(tile_kernel *k, tl_bound *b)
{
    tile_status status = make_form(k, b);
    if (status != TILE_OK || atomic_load_explicit(&b->form->ready, memory_order_acquire))
        return status;
    pthread_mutex_lock(&k->module->lock);
    status = tl_instance_load(k->module->device, b->form);
    if (status == TILE_OK)
        status = tl_again_open(k);
    pthread_mutex_unlock(&k->module->lock);
    return status;
}
