/* module.c: images, the kernels in them, and the choice of instances by constants.
 *
 * A module from an image has that one image. A module from source has a maker and gets an image for
 * each new question (name and constants) that tile_kernel_get asks. A kernel handle is the answer
 * to one question and is kept, so the same question never compiles or searches twice. Code is
 * loaded by prepare, once per instance, under the module's lock; launches only look at `ready`. */
#include "ir/support/number.h"
#include "runtime/contract/form_text.h"
#include "runtime/cpu_level.h"
#include "runtime/ranges.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { IMAGE_ALIGNMENT = 64 };

/* ---- images ---- */

static void free_image(tile_device *device, tl_image *image)
{
    for (uint32_t i = 0; i < image->ninstances; i++)
        TL_DEBUG_INVARIANT(!image->instances[i].ready || image->instances[i].code,
                           "an instance is ready without code");
    for (uint32_t i = 0; i < image->ninstances; i++) {
        if (image->instances[i].code)
            device->driver->code_unload(device->dev, image->instances[i].code);
        free(image->instances[i].forms);
    }
    free(image->instances);
    free(image->data);
    free(image);
}

static void *copy_bytes(const void *data, size_t size)
{
    TL_INVARIANT_OR(NULL, data && size < SIZE_MAX - IMAGE_ALIGNMENT, "an image of %zu bytes", size);
    void *p = aligned_alloc(IMAGE_ALIGNMENT,
                            (size + IMAGE_ALIGNMENT) / IMAGE_ALIGNMENT * IMAGE_ALIGNMENT);
    return p ? memcpy(p, data, size) : NULL;
}

static const char *target_of(const void *image)
{
    return tl_image_text(image, ((const tile_image_header *)image)->target);
}

static uint32_t accepts(tile_device *d, const char *made_for)
{
    return d->driver->accepts ? d->driver->accepts(d->dev, made_for)
                              : strcmp(made_for, d->target) == 0;
}

static const char *features_of(const void *image)
{
    const tile_image_header *h = image;
    return h->features ? tl_image_text(image, h->features) : "";
}

/* How many features the image needs that the device's CPU lacks; `text` gets their names. */
static uint32_t lacks(tile_device *d, const void *image, char *text, size_t size)
{
    uint64_t have = d->driver->cpu_features ? d->driver->cpu_features(d->dev) : 0;
    return tl_cpu_lacks(features_of(image), have, text, size);
}

static tile_status check_target(tile_device *d, const void *image)
{
    const char *made_for = target_of(image);
    char text[300];
    if (!accepts(d, made_for))
        return tl_fail(TILE_BAD_IMAGE, "the image was made for target '%s', the device needs '%s'",
                       made_for, d->target);
    if (lacks(d, image, text, sizeof text))
        return tl_fail(TILE_BAD_IMAGE,
                       "the image was made for target '%s' and uses features that the CPU of "
                       "device '%s' "
                       "lacks: %s",
                       made_for, d->name, text);
    return TILE_OK;
}

/* Ranks an image for the device. The device's own target is better than another one that it
 * accepts. Of several CPU levels that the machine supports, the one that uses most features is
 * best. */
enum { OF_NO_USE, LACKS_FEATURES, RUNS };
static uint32_t worth(tile_device *d, const void *image)
{
    char text[1];
    const char *target = target_of(image);
    uint32_t good = accepts(d, target);
    if (!good)
        return OF_NO_USE;
    if (lacks(d, image, text, sizeof text))
        return LACKS_FEATURES;
    return RUNS + good + (strcmp(target, d->target) == 0) + 2 * tl_cpu_count(features_of(image));
}

/* Several images may follow one another, one for each target (tilec --target a,b). Moves the best
 * one for the device to the start: of those that run, the last of the best; otherwise the first of
 * the best, for check_target to reject. Anything that is not a sequence of whole images is left for
 * tl_image_check to reject. */
static tile_status choose_image(tile_device *d, char *data, size_t *size)
{
    size_t at = 0, chosen = 0, bytes = *size, next;
    uint32_t best = 0;
    while (tl_image_extent(data + at, *size - at, &next)) {
        if (next == *size)
            return TILE_OK;
        tile_status status = tl_image_check(data + at, next);
        if (status != TILE_OK)
            return status;
        uint32_t good = worth(d, data + at);
        if (at == 0 || good > best || (good >= RUNS && good == best)) {
            chosen = at;
            bytes = next;
            best = good;
        }
        at += next;
    }
    if (at == *size) {
        TL_INVARIANT(bytes <= *size - chosen, "%zu bytes at %zu of %zu", bytes, chosen, *size);
        memmove(data, data + chosen, bytes);
        *size = bytes;
    }
    return TILE_OK;
}

/* Copies, checks and adds an image to the module. */
tile_status tl_module_add_image(tile_module *m, const void *data, size_t size,
                                tl_image **out_image)
{
    if (size < sizeof(tile_image_header))
        return tl_fail(TILE_BAD_IMAGE, "not a kernel image: it is too short");
    tl_image *image = calloc(1, sizeof *image);
    if (image)
        image->data = copy_bytes(data, size);
    if (!image || !image->data) {
        free(image);
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    tile_status status = choose_image(m->device, image->data, &size);
    if (status == TILE_OK)
        status = tl_image_check(image->data, size);
    if (status == TILE_OK)
        status = check_target(m->device, image->data);
    if (status == TILE_OK) {
        const tile_image_header *h = image->data;
        image->instances = calloc(h->nkernels + 1, sizeof *image->instances);
        image->ninstances = image->instances ? h->nkernels : 0;
        if (!image->instances)
            status = tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    if (status != TILE_OK) {
        free_image(m->device, image);
        return status;
    }
    for (uint32_t i = 0; i < image->ninstances; i++) {
        tl_instance *in = &image->instances[i];
        in->image = image->data;
        in->kernel = &tl_image_kernels(image->data)[i];
    }
    image->next = m->images;
    m->images = image;
    *out_image = image;
    return TILE_OK;
}

/* Rows that only replace others are not listed. */
static bool is_listed(const tl_instance *instance)
{
    return !(instance->kernel->flags & TILE_KERNEL_OTHERWISE);
}

static const char *instance_name(const tl_instance *instance)
{
    return tl_image_text(instance->image, instance->kernel->name);
}

tl_instance *tl_image_listed(const tl_image *image, const char *name, uint32_t index)
{
    for (uint32_t i = 0; i < image->ninstances; i++) {
        tl_instance *in = &image->instances[i];
        if (is_listed(in) && strcmp(instance_name(in), name) == 0 && index-- == 0)
            return in;
    }
    return NULL;
}

/* ---- modules ---- */

static tile_status new_module(tile_device *d, tl_maker maker, tile_module **out_module)
{
    tile_module *m = calloc(1, sizeof *m);
    if (!m)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    m->device = d;
    m->maker = maker;
    pthread_mutex_init(&m->lock, NULL);
    tl_device_keep(d);
    *out_module = m;
    return TILE_OK;
}

tile_status tl_module_create_maker(tile_device *device, tl_maker maker, tile_module **out_module)
{
    TL_INVARIANT(out_module, "a module for nobody");
    tile_device *d;
    tile_status status = tl_device_enter(device, &d);
    if (status == TILE_OK) {
        status = new_module(d, maker, out_module);
        tl_device_leave(d);
    }
    if (status != TILE_OK && maker.free)
        maker.free(maker.user);
    return status;
}

tile_status tile_module_load_image(tile_device *device, const void *data, size_t size,
                                   tile_module **out_module)
{
    if (!data || !out_module)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_module_load_image: an argument is NULL");
    tile_module *m;
    tl_image *image;
    tile_status status = tl_module_create_maker(device, (tl_maker){0}, &m);
    if (status != TILE_OK)
        return status;
    status = tl_module_add_image(m, data, size, &image);
    if (status != TILE_OK) {
        tile_module_free(m);
        return status;
    }
    *out_module = m;
    return TILE_OK;
}

void tl_consts_free(tile_const *consts)
{
    for (tile_const *c = consts; c && c->name; c++) {
        free((char *)c->name);
        free((char *)c->text);
    }
    free(consts);
}

static void free_kernel(tile_kernel *k)
{
    tl_again_close(k);
    tl_consts_free(k->consts);
    free(k->key);
    free(k->instances);
    free(k->rows);
    free(k);
}

void tile_module_free(tile_module *m)
{
    if (!m)
        return;
    for (tile_kernel *k = m->kernels, *next; k; k = next) {
        next = k->next;
        free_kernel(k);
    }
    if (tl_device_enter_to_free(m->device)) {
        for (tl_image *i = m->images, *next; i; i = next) {
            next = i->next;
            free_image(m->device, i);
        }
        tl_device_leave(m->device);
    }
    if (m->maker.free)
        m->maker.free(m->maker.user);
    pthread_mutex_destroy(&m->lock);
    tl_device_drop(m->device);
    free(m);
}

/* Kernel number `index` of a module with one image. NULL: there are no more; *out_count is their
 * number. */
static const tl_instance *listed(const tile_module *m, size_t index, size_t *out_count)
{
    *out_count = 0;
    for (uint32_t i = 0; m && !m->maker.make && m->images && i < m->images->ninstances; i++)
        if (is_listed(&m->images->instances[i]) && (*out_count)++ == index)
            return &m->images->instances[i];
    return NULL;
}

size_t tile_module_kernel_count(const tile_module *m)
{
    size_t count;
    listed(m, SIZE_MAX, &count);
    return count;
}

const char *tile_module_kernel_name(const tile_module *m, size_t index)
{
    size_t count;
    const tl_instance *in = listed(m, index, &count);
    return in ? instance_name(in) : NULL;
}

/* ---- constants ---- */

static bool is_number(const char *text, double *out)
{
    char *end;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out = text[0] == 't';
        return true;
    }
    *out = tl_number_read(text, &end);
    return end != text && *end == 0;
}

/* Are two values equal? 64 and "64", 1 and "true", "1e-5" and "0.00001" are. Large integers are
 * compared as text. */
static bool same_value(const char *have, const char *given)
{
    double a, b;
    return strcmp(have, given) == 0 ||
           (is_number(have, &a) && is_number(given, &b) && a == b && !(a > 9e15 || a < -9e15));
}

static const char *const_text(const tile_const *c, char *buffer, size_t size)
{
    if (c->text)
        return c->text;
    snprintf(buffer, size, "%" PRId64, c->value);
    return buffer;
}

typedef enum agreement { AGREES, DIFFERS, LACKS } agreement;

static agreement const_agrees(const tl_instance *in, const tile_const *c)
{
    const tile_image_const *have = tl_image_at(in->image, in->kernel->consts);
    char buffer[32];
    for (uint32_t i = 0; i < in->kernel->nconsts; i++)
        if (strcmp(tl_image_text(in->image, have[i].name), c->name) == 0)
            return same_value(tl_image_text(in->image, have[i].value),
                              const_text(c, buffer, sizeof buffer))
                       ? AGREES
                       : DIFFERS;
    return LACKS;
}

static bool all_agree(const tl_instance *in, const tile_const *consts)
{
    for (const tile_const *c = consts; c && c->name; c++)
        if (const_agrees(in, c) != AGREES)
            return false;
    return true;
}

/* ---- questions and answers ---- */

/* "gemm(2BM2=64,1T3=f16,)": with lengths, because values may hold any character. NULL: out of
 * memory. */
static char *make_key(const char *name, const tile_const *consts)
{
    char buffer[32];
    size_t size = strlen(name) + 3, n;
    for (const tile_const *c = consts; c && c->name; c++)
        size += strlen(c->name) + strlen(const_text(c, buffer, sizeof buffer)) + 2 + 2 * 20;
    char *key = calloc(1, size);
    if (!key)
        return NULL;
    n = (size_t)snprintf(key, size, "%s(", name);
    for (const tile_const *c = consts; c && c->name; c++) {
        const char *text = const_text(c, buffer, sizeof buffer);
        n += (size_t)snprintf(key + n, size - n, "%zu%s%zu=%s,", strlen(c->name), c->name,
                              strlen(text), text);
    }
    snprintf(key + n, size - n, ")");
    return key;
}

static void append(char *text, size_t size, const char *more)
{
    size_t n = strlen(text);
    snprintf(text + n, size - n, "%s%s", n ? ", " : "", more);
}

static tile_status no_such_kernel(const tl_image *image, const char *name)
{
    char names[1024] = "";
    for (uint32_t i = 0; i < image->ninstances; i++)
        if (i == 0 || strcmp(instance_name(&image->instances[i]),
                             instance_name(&image->instances[i - 1])) != 0)
            append(names, sizeof names, instance_name(&image->instances[i]));
    return tl_fail(TILE_NOT_FOUND, "no kernel '%s'; kernels are: %s", name,
                   names[0] ? names : "(none)");
}

/* Names the constant that no instance has, or lists the values of the first instance. */
static tile_status no_such_instance(const tl_image *image, const char *name,
                                    const tile_const *consts)
{
    char known[1024] = "", one[160];
    const tl_instance *first = NULL;
    for (uint32_t i = 0; i < image->ninstances && !first; i++)
        if (strcmp(instance_name(&image->instances[i]), name) == 0)
            first = &image->instances[i];
    if (!first)
        return no_such_kernel(image, name);
    const tile_image_const *have = tl_image_at(first->image, first->kernel->consts);
    for (uint32_t i = 0; i < first->kernel->nconsts; i++) {
        snprintf(one, sizeof one, "%.60s=%.60s", tl_image_text(first->image, have[i].name),
                 tl_image_text(first->image, have[i].value));
        append(known, sizeof known, one);
    }
    for (const tile_const *c = consts; c && c->name; c++)
        if (const_agrees(first, c) == LACKS)
            return tl_fail(TILE_NOT_FOUND, "kernel '%s' has no constant '%s'; it has: %s", name,
                           c->name, known[0] ? known : "(none)");
    return tl_fail(TILE_NOT_FOUND,
                   "kernel '%s': no variant agrees with the constants given; the first has %s",
                   name, known);
}

static size_t rows_of(const tl_instance *in)
{
    return in->kernel->nkeys && in->kernel->ntuned ? in->kernel->ntuned : 1;
}

/* A row for each bucket of a tuned instance. All have the same keys: they are of one kernel. */
static void list_rows(tile_kernel *k)
{
    tl_row *row = k->rows;
    for (uint32_t i = 0; i < k->ninstances; i++) {
        const tl_instance *in = k->instances[i];
        const int32_t *buckets = tl_image_at(in->image, in->kernel->tuned);
        uint32_t nkeys = in->kernel->nkeys;
        bool comparable = in->kernel->ntuned && nkeys == k->instances[0]->kernel->nkeys;
        for (size_t b = 0; b < rows_of(in); b++)
            *row++ = (tl_row){i, comparable ? buckets + b * nkeys : NULL};
        k->tuned |= comparable;
    }
}

/* A handle for the image's instances of that name. filter: only those that agree with consts. */
static tile_status answer(tile_module *m, const tl_image *image, const char *name,
                          const tile_const *consts, bool filter, tile_kernel **out_kernel)
{
    tile_kernel *k = calloc(1, sizeof *k);
    if (k) {
        k->instances = calloc(image->ninstances + 1, sizeof *k->instances);
        k->key = make_key(name, consts);
    }
    if (!k || !k->instances || !k->key) {
        if (k)
            free_kernel(k);
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    k->module = m;
    for (uint32_t i = 0; i < image->ninstances; i++) {
        tl_instance *in = &image->instances[i];
        if (is_listed(in) && strcmp(instance_name(in), name) == 0 &&
            (!filter || all_agree(in, consts))) {
            k->instances[k->ninstances++] = in;
            k->nrows += rows_of(in);
        }
    }
    if (k->ninstances == 0) {
        free_kernel(k);
        return no_such_instance(image, name, consts);
    }
    k->rows = calloc(k->nrows, sizeof *k->rows);
    if (!k->rows) {
        free_kernel(k);
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    list_rows(k);
    TL_DEBUG_INVARIANT(strcmp(instance_name(k->instances[0]), name) == 0, "asked for %s", name);
    k->name = instance_name(k->instances[0]);
    k->next = m->kernels;
    m->kernels = k;
    *out_kernel = k;
    return TILE_OK;
}

tile_const *tl_consts_copy(const tile_const *consts)
{
    size_t n = 0;
    while (consts && consts[n].name)
        n++;
    tile_const *copy = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = (tile_const){strdup(consts[i].name), consts[i].value,
                               consts[i].text ? strdup(consts[i].text) : NULL};
        if (copy[i].name && !copy[i].text == !consts[i].text)
            continue;
        for (size_t k = 0; k <= i; k++) {
            free((char *)copy[k].name);
            free((char *)copy[k].text);
        }
        free(copy);
        return NULL;
    }
    return copy;
}

/* Kernels with tests and no row behind them get more forms when launches want them. */
static tile_status open_forms(tile_kernel *k, const tile_const *consts)
{
    tile_status status = TILE_OK;
    k->consts = tl_consts_copy(consts);
    if (!k->consts)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < k->ninstances && status == TILE_OK; i++)
        if (k->instances[i]->kernel->ntests && !k->instances[i]->forms)
            status = tl_forms_open(k->instances[i]);
    return status;
}

static tile_status make_and_answer(tile_module *m, const char *name, const tile_const *consts,
                                   tile_kernel **out_kernel)
{
    void *data = NULL;
    size_t size = 0;
    tl_image *image;
    tile_status status = m->maker.make(m->maker.user, name, consts, TL_FORM_ALIGNED, &data, &size);
    TL_INVARIANT(status != TILE_OK || data, "the maker of '%s' gave no image", name);
    if (status == TILE_OK)
        status = tl_module_add_image(m, data, size, &image);
    free(data);
    if (status == TILE_OK)
        status = answer(m, image, name, consts, false, out_kernel);
    if (status != TILE_OK)
        return status;
    status = open_forms(*out_kernel, consts);
    if (status != TILE_OK) { /* not to be found by the next question */
        m->kernels = (*out_kernel)->next;
        free_kernel(*out_kernel);
    }
    return status;
}

static tile_status get_locked(tile_module *m, const char *name, const tile_const *consts,
                              tile_kernel **out_kernel)
{
    char *key = make_key(name, consts);
    if (!key)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_kernel *k = m->kernels;
    while (k && strcmp(k->key, key) != 0)
        k = k->next;
    free(key);
    if (k) {
        *out_kernel = k;
        return TILE_OK;
    }
    TL_INVARIANT(m->maker.make || m->images, "a module without an image");
    return m->maker.make ? make_and_answer(m, name, consts, out_kernel)
                         : answer(m, m->images, name, consts, true, out_kernel);
}

typedef struct question {
    tile_module *module;
    const char *name;
    const tile_const *consts;
    tile_kernel *kernel;
} question;

static tile_status get_request(void *user)
{
    question *q = user;
    return get_locked(q->module, q->name, q->consts, &q->kernel);
}

tile_status tile_kernel_get(tile_module *m, const char *name, const tile_const *consts,
                            tile_kernel **out_kernel)
{
    TL_FP_SCOPE();
    if (!m || !name || !out_kernel)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_kernel_get: an argument is NULL");
    tile_device *d;
    tile_status status = tl_device_enter(m->device, &d);
    if (status != TILE_OK)
        return status;
    pthread_mutex_lock(&m->lock);
    question q = {.module = m, .name = name, .consts = consts};
    status = tl_with_stack(get_request, &q);
    pthread_mutex_unlock(&m->lock);
    if (status == TILE_OK)
        *out_kernel = q.kernel;
    tl_device_leave(d);
    return status;
}

tile_status tl_instance_load(tile_device *d, tl_instance *in)
{
    tl_code *code;
    if (atomic_load(&in->ready))
        return TILE_OK;
    TL_INVARIANT(!in->code, "code was loaded, but not made ready");
    bool range = tl_range_begin("load", tl_image_text(in->image, in->kernel->name));
    tile_status status = d->driver->code_load(d->dev, in->image, in->kernel, &code);
    tl_range_end(range);
    if (status != TILE_OK)
        return status;
    status = d->driver->code_prepare ? d->driver->code_prepare(d->dev, code) : TILE_OK;
    if (status != TILE_OK) {
        d->driver->code_unload(d->dev, code);
        return status;
    }
    TL_INVARIANT(code, "no code");
    in->code = code;
    atomic_store_explicit(&in->ready, true, memory_order_release);
    return TILE_OK;
}

/* All forms of the instance that any launch may want. */
static tile_status load_forms(tile_kernel *k, uint32_t i)
{
    static const tl_wish GENERAL = {.n = 0};
    tile_device *d = k->module->device;
    tl_instance *first = k->instances[i];
    tile_status status = TILE_OK;
    for (tl_instance *in = first; status == TILE_OK && in; in = tl_next_form(in))
        status = tl_instance_load(d, in);
    if (status == TILE_OK && first->forms)
        status = tl_forms_make(k, i, &GENERAL);
    for (unsigned f = 0; status == TILE_OK && first->forms && f < first->forms->n; f++)
        status = tl_instance_load(d, first->forms->made[f].form);
    if (status == TILE_OK)
        tl_forms_close(first);
    return status;
}

static tile_status prepare_request(void *user)
{
    tile_kernel *k = user;
    tile_status status = TILE_OK;
    for (uint32_t i = 0; i < k->ninstances && status == TILE_OK; i++)
        status = load_forms(k, i);
    return status == TILE_OK ? tl_again_open(k) : status;
}

tile_status tile_kernel_prepare(tile_kernel *k)
{
    TL_FP_SCOPE();
    if (!k)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_kernel_prepare: the kernel is NULL");
    tile_device *d;
    tile_status status = tl_device_enter(k->module->device, &d);
    if (status != TILE_OK)
        return status;
    pthread_mutex_lock(&k->module->lock);
    status = tl_with_stack(prepare_request, k);
    pthread_mutex_unlock(&k->module->lock);
    tl_device_leave(d);
    return status;
}

/* ---- what a kernel is ---- */

const char *tile_kernel_name(const tile_kernel *k)
{
    return k ? k->name : NULL;
}

size_t tile_kernel_param_count(const tile_kernel *k)
{
    return k ? k->instances[0]->kernel->nparams : 0;
}

static uint64_t value_of(const tile_image_header *image, const tile_image_param *p)
{
    uint64_t value;
    memcpy(&value, tl_image_at(image, p->value), sizeof value);
    return value;
}

tile_status tile_kernel_param(const tile_kernel *k, size_t index, tile_param_info *out_info)
{
    if (!k || !out_info)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_kernel_param: %s is NULL",
                       k ? "out_info" : "the kernel");
    const tl_instance *in = k->instances[0];
    tile_status status = TL_TAKE(tile_param_info, NULL, out_info, name);
    if (status != TILE_OK)
        return status;
    if (index >= in->kernel->nparams)
        return tl_fail(TILE_BAD_ARGUMENT, "kernel '%s' has %u parameters; there is no number %zu",
                       k->name, in->kernel->nparams, index);
    const tile_image_param *p =
        (const tile_image_param *)tl_image_at(in->image, in->kernel->params) + index;
    const tile_param_info info = {.name = tl_image_text(in->image, p->name),
                                  .kind = (tile_arg_kind)p->kind,
                                  .dtype = (tile_dtype)p->dtype,
                                  .is_const = p->is_const != 0,
                                  .rank = p->kind == TILE_PARAM_VIEW ? (int)p->rank : 0,
                                  .has_default = p->value != 0,
                                  .value = p->value ? value_of(in->image, p) : 0};
    tl_struct_give(out_info, &info, sizeof info);
    return TILE_OK;
}
