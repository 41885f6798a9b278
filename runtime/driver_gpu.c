/* driver_gpu.c: what the drivers cuda and hip share: nearly all (driver_gpu.h).
 *
 * Opening: the library, its symbols, its version, the device, its target, its context. Whatever is
 * missing on the way is TILE_UNAVAILABLE with a text that says what.
 *
 * Every call that needs the device makes it the calling thread's and puts back what was so before,
 * so a host that uses the vendor's library too sees no change. A launch passes the address of each
 * word of the parameter block, takes no lock and allocates nothing.
 *
 * The default queue is the vendor's default stream: what a host puts there is in order with ours.
 * Made queues are streams that do not wait for that one. Copies from and to memory that the vendor's
 * library has not pinned return when the memory may be used again.
 *
 * Kernels of one image that lie in one block of code share its loaded module. */
#include "runtime/driver_gpu.h"
#include "runtime/runtime.h"
#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    /* the same in both libraries */
    STREAM_NON_BLOCKING = 1,
    JIT_ERROR_LOG = 5,
    JIT_ERROR_LOG_BYTES = 6,
    FUNCTION_MAX_DYNAMIC_SHARED = 8,
    CODE_NOT_READY = 600,

    DEFAULT_SHARED_LIMIT = 48 * 1024, /* more must be asked for */
    JIT_LOG_BYTES = 4096,
};

struct tl_mark {
    tl_dev *dev;
    void *event;
    atomic_bool recorded;
};

struct tl_gpu_module {
    tl_gpu_module *next;
    const void *code; /* in its image: which one it is */
    void *handle;
    uint32_t users;
};

struct tl_code {
    tl_gpu_module *module;
    void *function;
    const void *image;
    const char *name;
    uint32_t threads, shared_bytes, debug_slot;
};
enum { NO_SLOT = UINT32_MAX };

/* status = call, with the device as the calling thread's. */
#define WITHIN(dev, status, call)                                                                  \
    do {                                                                                           \
        void *before_ = NULL;                                                                      \
        (status) = (dev)->kind->enter((dev), &before_);                                            \
        if ((status) == TILE_OK) {                                                                 \
            (status) = (call);                                                                     \
            (dev)->kind->leave((dev), before_);                                                    \
        }                                                                                          \
    } while (0)

/* ---- errors ---- */

static tile_status status_of(const tl_dev *d, int code)
{
    for (const tl_gpu_error *e = d->kind->errors; e->code; e++)
        if (e->code == code)
            return e->status;
    return TILE_DRIVER;
}

static const char *symbol_at(const tl_dev *d, size_t at)
{
    for (const tl_gpu_symbol *s = d->kind->symbols; s->name; s++)
        if (s->at == at)
            return s->name;
    return "?";
}

tile_status tl_gpu_failed(const tl_dev *d, size_t at, int code)
{
    const char *name = NULL, *text = NULL;
    if (d->api.error_name_of)
        name = d->api.error_name_of(code);
    else if (d->api.error_name && d->api.error_name(code, &name) != 0)
        name = NULL;
    if (d->api.error_string_of)
        text = d->api.error_string_of(code);
    else if (d->api.error_string && d->api.error_string(code, &text) != 0)
        text = NULL;
    bool says_more = text && !(name && strcmp(name, text) == 0);
    return tl_fail(status_of(d, code), "%s: %s (%d)%s%s", symbol_at(d, at), name ? name : "error",
                   code, says_more ? ": " : "", says_more ? text : "");
}

/* ---- opening ---- */

static tile_status open_library(tl_dev *d)
{
    char first[256] = "";
    for (const char *const *name = d->kind->libraries; *name && !d->library; name++) {
        d->library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        d->library_name = *name;
        const char *why = d->library ? NULL : dlerror();
        if (!first[0])
            snprintf(first, sizeof first, "%s", why ? why : *name);
    }
    if (d->library)
        return TILE_OK;
    return tl_fail(TILE_UNAVAILABLE, "no %s driver on this machine: %s", d->kind->vendor, first);
}

static tile_status resolve_symbols(tl_dev *d)
{
    for (const tl_gpu_symbol *s = d->kind->symbols; s->name; s++) {
        void *p = dlsym(d->library, s->name);
        if (!p && s->required)
            return tl_fail(TILE_UNAVAILABLE, "%s lacks %s: the %s driver is too old",
                           d->library_name, s->name, d->kind->vendor);
        memcpy((char *)&d->api + s->at, &p, sizeof p); /* ISO C has no cast from data to function */
    }
    return TILE_OK;
}

/* Whatever stops the library from starting, there is no device to be had. */
static tile_status start_library(tl_dev *d)
{
    const tl_gpu_kind *k = d->kind;
    int version = 0;
    tile_status status = TL_GPU_CALL(d, init, 0);
    if (status != TILE_OK)
        return tl_fail(status == TILE_NO_MEMORY ? status : TILE_UNAVAILABLE,
                       "the %s driver does not start: %s", k->vendor, tile_last_error());
    status = TL_GPU_CALL(d, driver_version, &version);
    if (status == TILE_OK && version < k->min_version)
        status = tl_fail(TILE_UNAVAILABLE,
                         "the %s driver is of version %d.%d, wants %d.%d or newer", k->vendor,
                         version / k->version_major, version % k->version_major / k->version_minor,
                         k->min_version / k->version_major,
                         k->min_version % k->version_major / k->version_minor);
    return status;
}

/* "" is the device that the calling thread uses already, else the first. */
static tile_status choose_device(tl_dev *d, const char *spec)
{
    int count = 0;
    tile_status status = TILE_OK;
    if (!*spec)
        status = d->kind->current(d, &d->ordinal);
    else
        d->ordinal = atoi(spec);
    if (status == TILE_OK)
        status = TL_GPU_CALL(d, device_count, &count);
    if (status == TILE_OK && d->ordinal >= count)
        status = tl_fail(TILE_UNAVAILABLE, "no device %s:%d: the driver has %d device%s",
                         d->kind->kind, d->ordinal, count, count == 1 ? "" : "s");
    if (status == TILE_OK)
        status = TL_GPU_CALL(d, device_get, &d->device, d->ordinal);
    return status;
}

static tile_status describe_device(tl_dev *d)
{
    const tl_gpu_kind *k = d->kind;
    tile_status status = TL_GPU_CALL(d, device_name, d->name, (int)sizeof d->name, d->device);
    if (status == TILE_OK)
        status = k->identify(d);
    if (status == TILE_OK)
        status =
            TL_GPU_CALL(d, device_attribute, &d->processors, k->attribute_processors, d->device);
    if (status == TILE_OK)
        status = TL_GPU_CALL(d, device_attribute, &d->max_threads, k->attribute_threads, d->device);
    if (status == TILE_OK)
        status = TL_GPU_CALL(d, device_attribute, &d->max_shared, k->attribute_shared, d->device);
    if (status == TILE_OK && d->api.device_memory)
        status = TL_GPU_CALL(d, device_memory, &d->memory_bytes, d->device);
    return status;
}

static tile_status open_parts(tl_dev *d, const char *spec)
{
    tile_status status = open_library(d);
    if (status == TILE_OK)
        status = resolve_symbols(d);
    if (status == TILE_OK)
        status = start_library(d);
    if (status == TILE_OK)
        status = choose_device(d, spec);
    if (status == TILE_OK)
        status = describe_device(d);
    if (status == TILE_OK)
        status = d->kind->attach(d);
    d->attached = status == TILE_OK;
    return status;
}

tile_status tl_gpu_open(const tl_gpu_kind *kind, const char *spec, tl_dev **out_dev)
{
    if (strspn(spec, "0123456789") != strlen(spec) || strlen(spec) > 3)
        return tl_fail(TILE_BAD_ARGUMENT, "device '%s:%s': wants a number after the colon",
                       kind->kind, spec);
    tl_dev *d = calloc(1, sizeof *d);
    if (!d)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    d->kind = kind;
    pthread_mutex_init(&d->lock, NULL);
    tile_status status = open_parts(d, spec);
    if (status != TILE_OK) {
        tl_gpu_close(d);
        return status;
    }
    *out_dev = d;
    return TILE_OK;
}

void tl_gpu_close(tl_dev *d)
{
    if (d->attached)
        d->kind->detach(d);
    if (d->library)
        dlclose(d->library);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

void tl_gpu_info(tl_dev *d, tile_device_info *info)
{
    snprintf(info->name, sizeof info->name, "%s (%s:%d)", d->name, d->kind->kind, d->ordinal);
    snprintf(info->target, sizeof info->target, "%s", d->target);
    info->processors = d->processors;
    info->host_memory = 0;
    info->memory_bytes = d->memory_bytes;
}

bool tl_gpu_accepts(tl_dev *d, const char *target)
{
    return d->kind->accepts(d, target);
}

/* ---- memory ---- */

tile_status tl_gpu_mem_alloc(tl_dev *d, uint64_t bytes, void **out_address)
{
    tile_status status;
    if (bytes > SIZE_MAX)
        return tl_fail(TILE_NO_MEMORY, "out of memory: a buffer of %" PRIu64 " bytes", bytes);
    WITHIN(d, status, TL_GPU_CALL(d, mem_alloc, out_address, bytes ? (size_t)bytes : 1));
    if (status == TILE_NO_MEMORY)
        return tl_fail(status, "out of device memory: a buffer of %" PRIu64 " bytes: %s", bytes,
                       tile_last_error());
    return status;
}

void tl_gpu_mem_free(tl_dev *d, void *address)
{
    tile_status status;
    WITHIN(d, status, (d->api.mem_free(address), TILE_OK));
    (void)status; /* nobody to tell */
}

/* ---- queues ---- */

static tl_queue *new_queue(tl_dev *d, tl_sink *sink)
{
    tl_queue *q = calloc(1, sizeof *q);
    if (!q) {
        tl_fail(TILE_NO_MEMORY, "out of memory");
        return NULL;
    }
    q->dev = d;
    q->sink = sink;
    return q;
}

static void link_queue(tl_queue *q)
{
    pthread_mutex_lock(&q->dev->lock);
    q->next = q->dev->queues;
    if (q->next)
        q->next->prev = q;
    q->dev->queues = q;
    pthread_mutex_unlock(&q->dev->lock);
}

static void unlink_queue(tl_queue *q)
{
    pthread_mutex_lock(&q->dev->lock);
    if (q->next)
        q->next->prev = q->prev;
    if (q->prev)
        q->prev->next = q->next;
    else
        q->dev->queues = q->next;
    pthread_mutex_unlock(&q->dev->lock);
}

tile_status tl_gpu_queue_create(const tl_driver *driver, tl_dev *d, tl_sink *sink, bool is_default,
                                tl_queue **out_queue)
{
    (void)driver;
    tile_status status = TILE_OK;
    tl_queue *q = new_queue(d, sink);
    if (!q)
        return TILE_NO_MEMORY;
    q->is_default = is_default;
    if (!is_default)
        WITHIN(d, status, TL_GPU_CALL(d, stream_create, &q->stream, STREAM_NON_BLOCKING));
    if (status != TILE_OK) {
        free(q);
        return status;
    }
    link_queue(q);
    *out_queue = q;
    return TILE_OK;
}

tile_status tl_gpu_queue_wrap(const tl_driver *driver, tl_dev *d, tl_sink *sink, void *native,
                              tl_queue **out_queue)
{
    (void)driver;
    tl_queue *q = new_queue(d, sink);
    if (!q)
        return TILE_NO_MEMORY;
    q->stream = native;
    q->wrapped = true;
    link_queue(q);
    *out_queue = q;
    return TILE_OK;
}

/* A wrapped stream stays the host's; kernels in it may write to the debug buffer still. */
static void drain(tl_queue *q)
{
    if (!q->wrapped || q->debug)
        q->dev->api.stream_wait(q->stream);
    tl_gpu_debug_drop(q);
    if (!q->wrapped && !q->is_default)
        q->dev->api.stream_destroy(q->stream);
}

void tl_gpu_queue_free(tl_queue *q)
{
    tile_status status = TILE_OK;
    if (!q)
        return;
    unlink_queue(q);
    WITHIN(q->dev, status, (drain(q), TILE_OK));
    (void)status; /* nobody to tell */
    free(q->debug);
    free(q);
}

static tile_status wait_and_collect(tl_queue *q)
{
    tile_status status = TL_GPU_CALL(q->dev, stream_wait, q->stream);
    if (status != TILE_OK)
        return status;
    pthread_mutex_lock(&q->dev->lock);
    status = tl_gpu_debug_collect(q);
    pthread_mutex_unlock(&q->dev->lock);
    return status;
}

tile_status tl_gpu_queue_synchronize(tl_queue *q)
{
    tile_status status;
    WITHIN(q->dev, status, wait_and_collect(q));
    return status;
}

tile_status tl_gpu_queue_copy(tl_queue *q, void *target, const void *source, uint64_t bytes,
                              tl_copy_kind kind)
{
    tile_status status;
    tl_dev *d = q->dev;
    WITHIN(d, status,
           kind == TL_COPY_UP
               ? TL_GPU_CALL(d, copy_up, target, source, (size_t)bytes, q->stream)
               : TL_GPU_CALL(d, copy_down, target, source, (size_t)bytes, q->stream));
    return status;
}

tile_status tl_gpu_queue_fill(tl_queue *q, void *target, int value, uint64_t bytes)
{
    tile_status status;
    WITHIN(q->dev, status,
           TL_GPU_CALL(q->dev, fill, target, (unsigned char)value, (size_t)bytes, q->stream));
    return status;
}

static tile_status launch(tl_queue *q, const tl_code *code, const tl_launch *l, void **params)
{
    tl_dev *d = q->dev;
    void *debug = NULL;
    if (code->debug_slot != NO_SLOT) {
        pthread_mutex_lock(&d->lock);
        tile_status status = tl_gpu_debug_begin(q, l, &debug);
        pthread_mutex_unlock(&d->lock);
        if (status != TILE_OK)
            return status;
        params[code->debug_slot] = &debug;
    }
    return TL_GPU_CALL(d, launch, code->function, (unsigned)l->programs, 1, 1, code->threads, 1, 1,
                       code->shared_bytes, q->stream, params, NULL);
}

tile_status tl_gpu_queue_launch(tl_queue *q, tl_code *code, const tl_launch *l)
{
    tl_dev *d = q->dev;
    void *params[TL_MAX_SLOTS + 1];
    tile_status status;
    if ((uint64_t)l->programs * code->threads > d->kind->max_threads)
        return tl_fail(TILE_NO_RESOURCE,
                       "kernel '%s': %" PRId64 " programs of %u threads are more threads than %s "
                       "starts at once (%" PRIu64 ")",
                       code->name, l->programs, code->threads, d->kind->vendor,
                       d->kind->max_threads);
    for (uint32_t i = 0; i < l->nslots; i++)
        params[i] = (void *)(uintptr_t)&l->slots[i];
    WITHIN(d, status, launch(q, code, l, params));
    if (status != TILE_OK)
        return tl_fail(status, "kernel '%s': %s", code->name, tile_last_error());
    return TILE_OK;
}

/* ---- marks ---- */

tile_status tl_gpu_mark_create(tl_dev *d, tl_mark **out_mark)
{
    tile_status status;
    tl_mark *m = calloc(1, sizeof *m);
    if (!m)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    m->dev = d;
    WITHIN(d, status, TL_GPU_CALL(d, event_create, &m->event, 0));
    if (status != TILE_OK) {
        free(m);
        return status;
    }
    *out_mark = m;
    return TILE_OK;
}

void tl_gpu_mark_free(tl_mark *m)
{
    tile_status status;
    if (!m)
        return;
    WITHIN(m->dev, status, (m->dev->api.event_destroy(m->event), TILE_OK));
    (void)status; /* nobody to tell */
    free(m);
}

tile_status tl_gpu_mark_record(tl_mark *m, tl_queue *q)
{
    tile_status status;
    WITHIN(m->dev, status, TL_GPU_CALL(m->dev, event_record, m->event, q->stream));
    if (status == TILE_OK)
        atomic_store(&m->recorded, true);
    return status;
}

tile_status tl_gpu_mark_wait(tl_mark *m, tl_queue *q)
{
    tile_status status = TILE_OK;
    if (atomic_load(&m->recorded))
        WITHIN(m->dev, status, TL_GPU_CALL(m->dev, stream_after, q->stream, m->event, 0));
    return status;
}

tile_status tl_gpu_mark_synchronize(tl_mark *m)
{
    tile_status status = TILE_OK;
    if (atomic_load(&m->recorded))
        WITHIN(m->dev, status, TL_GPU_CALL(m->dev, event_wait, m->event));
    return status;
}

static tile_status elapsed(tl_mark *from, tl_mark *to, float *out_milliseconds)
{
    tl_dev *d = from->dev;
    int code = d->api.event_elapsed(out_milliseconds, from->event, to->event);
    if (code == CODE_NOT_READY)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_event_elapsed: an event has not happened");
    return tl_gpu_result(d, offsetof(tl_gpu_api, event_elapsed), code);
}

tile_status tl_gpu_mark_elapsed(tl_mark *from, tl_mark *to, double *out_milliseconds)
{
    tile_status status;
    float milliseconds = 0;
    if (!atomic_load(&from->recorded) || !atomic_load(&to->recorded))
        return tl_fail(TILE_BAD_ARGUMENT, "tile_event_elapsed: the %s event was never recorded",
                       atomic_load(&from->recorded) ? "second" : "first");
    WITHIN(from->dev, status, elapsed(from, to, &milliseconds));
    if (status == TILE_OK)
        *out_milliseconds = milliseconds;
    return status;
}

/* ---- code ---- */

/* Loads text or an object; where the library compiles it, `log` gets what that says. */
static tile_status load_data(tl_dev *d, const void *data, void **out_handle, char *log)
{
    const int options[2] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
    void *values[2] = {log, (void *)(uintptr_t)JIT_LOG_BYTES};
    tile_status status;
    if (d->api.module_load_ex)
        WITHIN(d, status, TL_GPU_CALL(d, module_load_ex, out_handle, data, 2, options, values));
    else
        WITHIN(d, status, TL_GPU_CALL(d, module_load, out_handle, data));
    return status;
}

static tile_status new_module(tl_dev *d, const void *code, uint32_t ncode, tl_gpu_module **out)
{
    char log[JIT_LOG_BYTES] = "";
    tl_gpu_module *m = calloc(1, sizeof *m);
    char *data = malloc((size_t)ncode + 1); /* text must end with a NUL, objects be aligned */
    if (!m || !data) {
        free(m);
        free(data);
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    }
    memcpy(data, code, ncode);
    data[ncode] = 0;
    tile_status status = load_data(d, data, &m->handle, log);
    free(data);
    log[sizeof log - 1] = 0;
    if (status != TILE_OK) {
        free(m);
        return tl_fail(status, "the driver does not take the code: %s%s%s", tile_last_error(),
                       log[0] ? "\n" : "", log);
    }
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
    if (--m->users == 0) {
        tl_gpu_module **at = &d->modules;
        while (*at != m)
            at = &(*at)->next;
        *at = m->next;
        WITHIN(d, status, (d->api.module_unload(m->handle), TILE_OK));
        free(m);
    }
    pthread_mutex_unlock(&d->lock);
    (void)status; /* nobody to tell */
}

static tile_status check_resources(const tl_dev *d, const tile_image_kernel *k, const char *name)
{
    if (k->threads == 0 || k->ncode == 0)
        return tl_fail(TILE_BAD_IMAGE, "kernel '%s' has no code for a GPU in the image", name);
    if (k->threads > (uint32_t)d->max_threads)
        return tl_fail(TILE_NO_RESOURCE, "kernel '%s' wants blocks of %u threads, %s has %d", name,
                       k->threads, d->name, d->max_threads);
    if (k->shared_bytes > (uint32_t)d->max_shared)
        return tl_fail(TILE_NO_RESOURCE,
                       "kernel '%s' wants %u bytes of shared memory in a block, %s has %d", name,
                       k->shared_bytes, d->name, d->max_shared);
    return TILE_OK;
}

static tile_status find_function(tl_dev *d, tl_code *code, const char *symbol)
{
    tile_status status;
    WITHIN(d, status,
           TL_GPU_CALL(d, module_function, &code->function, code->module->handle, symbol));
    if (status == TILE_OK && code->shared_bytes > DEFAULT_SHARED_LIMIT && d->api.function_set)
        WITHIN(d, status,
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
    return NO_SLOT;
}

tile_status tl_gpu_code_load(tl_dev *d, const void *image, const tile_image_kernel *k,
                             tl_code **out_code)
{
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

/* What the image's kernels said is put into words by the image: before it goes. */
static void collect_all(tl_dev *d, const void *image)
{
    tile_status status = TILE_OK;
    pthread_mutex_lock(&d->lock);
    for (tl_queue *q = d->queues; q; q = q->next)
        if (tl_gpu_debug_holds(q, image))
            WITHIN(d, status,
                   d->api.stream_wait(q->stream) ? TILE_DRIVER : tl_gpu_debug_collect(q));
    pthread_mutex_unlock(&d->lock);
    (void)status; /* nobody to tell */
}

void tl_gpu_code_unload(tl_dev *d, tl_code *code)
{
    if (code->debug_slot != NO_SLOT)
        collect_all(d, code->image);
    if (code->module)
        drop_module(d, code->module);
    free(code);
}
