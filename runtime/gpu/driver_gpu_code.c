/* driver_gpu_code.c: kernels of images, loaded by the library of a GPU's vendor.
 *
 * The library takes the code as it lies in the image: PTX, which it compiles, or an object. Kernels
 * of one image that lie in one block of code share its loaded module. */
#include "runtime/gpu/driver_gpu.h"
#include "runtime/runtime.h"
#include <stdlib.h>

enum {
    /* the same in both libraries */
    JIT_ERROR_LOG = 5,
    JIT_ERROR_LOG_BYTES = 6,
    FUNCTION_MAX_DYNAMIC_SHARED = 8,

    DEFAULT_SHARED_LIMIT = 48 * 1024, /* more has to be requested */
    JIT_LOG_BYTES = 4096,
};

struct tl_gpu_module {
    tl_gpu_module *next;
    const void *code; /* identifies it: its address in the image */
    char *data;       /* a copy: HIP may read it while the module is loaded */
    void *handle;
    uint32_t users;
};

/* Loads text or an object. If the library compiles it, `log` gets the compiler's messages. */
static tile_status load_data(tl_dev *d, const void *data, void **out_handle, char *log)
{
    const int options[2] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
    void *values[2] = {log, (void *)(uintptr_t)JIT_LOG_BYTES};
    tile_status status;
    if (d->api.module_load_ex)
        TL_GPU_WITHIN(d, status,
                      TL_GPU_CALL(d, module_load_ex, out_handle, data, 2, options, values));
    else
        TL_GPU_WITHIN(d, status, TL_GPU_CALL(d, module_load, out_handle, data));
    return status;
}

static void free_module(tl_gpu_module *m)
{
    if (m)
        free(m->data);
    free(m);
}

static tile_status new_module(tl_dev *d, const void *code, uint32_t ncode, tl_gpu_module **out)
{
    char log[JIT_LOG_BYTES] = "";
    tl_gpu_module *m = calloc(1, sizeof *m);
    if (m)
        m->data = malloc((size_t)ncode + 1); /* text must end with a NUL, objects be aligned */
    if (!m || !m->data) {
        free_module(m);
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    memcpy(m->data, code, ncode);
    m->data[ncode] = 0;
    tile_status status = load_data(d, m->data, &m->handle, log);
    log[sizeof log - 1] = 0;
    if (status != TILE_OK) {
        free_module(m);
        return tl_fail(status, "the driver rejects the code: %s%s%s", tile_last_error(),
                       log[0] ? "\n" : "", log);
    }
    TL_INVARIANT(m->handle, "the driver gave no module");
    m->code = code;
    m->next = d->modules;
    d->modules = m;
    *out = m;
    return TILE_OK;
}

static tile_status hold_module(tl_dev *d, const void *code, uint32_t ncode, tl_gpu_module **out)
{
    tile_status status = TILE_OK;
    pthread_mutex_lock(&d->lock);
    tl_gpu_module *m = d->modules;
    while (m && m->code != code)
        m = m->next;
    if (!m)
        status = new_module(d, code, ncode, &m);
    if (status == TILE_OK) {
        m->users++;
        *out = m;
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

static void drop_module(tl_dev *d, tl_gpu_module *m)
{
    tile_status status = TILE_OK;
    pthread_mutex_lock(&d->lock);
    TL_DEBUG_INVARIANT(m->users > 0, "a module is dropped by more than hold it");
    if (--m->users == 0) {
        tl_gpu_module **at = &d->modules;
        while (*at != m)
            at = &(*at)->next;
        *at = m->next;
        TL_GPU_WITHIN(d, status, (d->api.module_unload(m->handle), TILE_OK));
        free_module(m);
    }
    pthread_mutex_unlock(&d->lock);
    (void)status; /* nobody to tell */
}

static tile_status check_resources(const tl_dev *d, const tile_image_kernel *k, const char *name)
{
    if (k->threads == 0 || k->ncode == 0)
        return tl_fail(TILE_BAD_IMAGE, "kernel '%s' has no code for a GPU in the image", name);
    if (k->threads > (uint32_t)d->max_threads)
        return tl_fail(TILE_NO_RESOURCE, "kernel '%s' needs blocks of %u threads, %s has %d", name,
                       k->threads, d->name, d->max_threads);
    if (k->shared_bytes > (uint32_t)d->max_shared)
        return tl_fail(TILE_NO_RESOURCE,
                       "kernel '%s' needs %u bytes of shared memory in a block, %s has %d", name,
                       k->shared_bytes, d->name, d->max_shared);
    return TILE_OK;
}

static tile_status find_function(tl_dev *d, tl_code *code, const char *symbol)
{
    tile_status status;
    TL_GPU_WITHIN(d, status,
                  TL_GPU_CALL(d, module_function, &code->function, code->module->handle, symbol));
    TL_INVARIANT(status != TILE_OK || code->function, "the driver gave no function for %s", symbol);
    if (status == TILE_OK && code->shared_bytes > DEFAULT_SHARED_LIMIT && d->api.function_set)
        TL_GPU_WITHIN(d, status,
                      TL_GPU_CALL(d, function_set, code->function, FUNCTION_MAX_DYNAMIC_SHARED,
                                  (int)code->shared_bytes));
    return status;
}

static uint32_t debug_slot(const void *image, const tile_image_kernel *k)
{
    const tile_image_slot *slots = tl_image_at(image, k->slots);
    for (uint32_t i = 0; i < k->nslots; i++)
        if (slots[i].kind == TILE_SLOT_DEBUG)
            return i;
    return TL_GPU_NO_SLOT;
}

tile_status tl_gpu_code_load(tl_dev *d, const void *image, const tile_image_kernel *k,
                             tl_code **out_code)
{
    TL_INVARIANT(image && k && out_code, "no code to load");
    const char *name = tl_image_text(image, k->name);
    tile_status status = check_resources(d, k, name);
    if (status != TILE_OK)
        return status;
    tl_code *code = calloc(1, sizeof *code);
    if (!code)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    code->image = image;
    code->name = name;
    code->debug_slot = debug_slot(image, k);
    code->threads = k->threads;
    code->shared_bytes = k->shared_bytes;
    status = hold_module(d, tl_image_at(image, k->code), k->ncode, &code->module);
    if (status == TILE_OK)
        status = find_function(d, code, tl_image_text(image, k->symbol));
    if (status != TILE_OK) {
        tl_gpu_code_unload(d, code);
        return tl_fail(status, "kernel '%s': %s", name, tile_last_error());
    }
    *out_code = code;
    return TILE_OK;
}

/* The texts of what the kernels reported are in the image, so reports are collected before it is
 * freed. */
static void collect_all(tl_dev *d, const void *image)
{
    tile_status status = TILE_OK;
    pthread_mutex_lock(&d->lock);
    for (tl_queue *q = d->queues; q; q = q->next)
        if (tl_gpu_debug_holds(q, image))
            TL_GPU_WITHIN(d, status,
                          d->api.stream_wait(q->stream) ? TILE_DRIVER : tl_gpu_debug_collect(q));
    pthread_mutex_unlock(&d->lock);
    (void)status; /* nobody to tell */
}

void tl_gpu_code_unload(tl_dev *d, tl_code *code)
{
    TL_INVARIANT_VOID(code && code->image, "code of no image is unloaded");
    if (code->debug_slot != TL_GPU_NO_SLOT)
        collect_all(d, code->image);
    if (code->module)
        drop_module(d, code->module);
    free(code);
}
