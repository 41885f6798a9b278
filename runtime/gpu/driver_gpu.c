/* driver_gpu.c: what the drivers cuda and hip share: nearly all (driver_gpu.h).
 *
 * Opening: the library, its symbols, its version, the device, its target, its context. Whatever is
 * missing on the way is TILE_UNAVAILABLE with a text that says what.
 *
 * Every call that needs the device makes it the calling thread's and puts back what was so before,
 * so a host that uses the vendor's library too sees no change. Launches: driver_gpu_launch.c.
 *
 * The default queue is the vendor's default stream: what a host puts there is in order with ours.
 * Made queues are streams that do not wait for that one. Copies from and to memory that the
 * vendor's library has not pinned return when the memory may be used
 * again. */
#include "runtime/gpu/driver_gpu.h"
#include "runtime/runtime.h"
#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    /* the same in both libraries */
    STREAM_NON_BLOCKING = 1,
    HOST_PORTABLE = 1, /* pinned for every device */
    CODE_NOT_READY = 600,
};

struct tl_mark {
    tl_dev *dev;
    void *event;
    atomic_bool recorded;
};

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
    TL_INVARIANT_OR("?", false, "no symbol is at %zu of the table of %s", at, d->kind->vendor);
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

tile_status tl_gpu_lacks(const tl_dev *d, size_t at)
{
    return tl_fail(TILE_UNAVAILABLE, "%s lacks %s: the %s driver is too old", d->library_name,
                   symbol_at(d, at), d->kind->vendor);
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
        TL_INVARIANT(s->at + sizeof(void *) <= sizeof d->api && s->at % sizeof(void *) == 0,
                     "%s lies at %zu of a table of %zu bytes", s->name, s->at, sizeof d->api);
        void *p = dlsym(d->library, s->name);
        if (!p && s->required)
            return tl_fail(TILE_UNAVAILABLE, "%s lacks %s: the %s driver is too old",
                           d->library_name, s->name, d->kind->vendor);
        memcpy((char *)&d->api + s->at, &p, sizeof p); /* ISO C has no cast from data to function */
    }
    return TILE_OK;
}

/* Whatever keeps the library from starting, no device is available. */
static tile_status start_library(tl_dev *d)
{
    const tl_gpu_kind *k = d->kind;
    tile_status status = TL_GPU_CALL(d, init, 0);
    if (status != TILE_OK)
        return tl_fail(status == TILE_NO_MEMORY ? status : TILE_UNAVAILABLE,
                       "the %s driver does not start: %s", k->vendor, tile_last_error());
    status = TL_GPU_CALL(d, driver_version, &d->version);
    if (status == TILE_OK && d->version < k->min_version)
        status = tl_fail(
            TILE_UNAVAILABLE, "the %s driver has version %d.%d, but %d.%d or newer is "
                              "required", k->vendor,
            d->version / k->version_major, d->version % k->version_major / k->version_minor,
            k->min_version / k->version_major,
            k->min_version % k->version_major / k->version_minor);
    return status;
}

/* "" is the device that the calling thread already uses, or else the first one. */
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
    TL_INVARIANT(status != TILE_OK || d->target[0], "device %s:%d has no target", k->kind,
                 d->ordinal);
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
    TL_INVARIANT(kind && spec && out_dev, "a device of no kind");
    if (strspn(spec, "0123456789") != strlen(spec) || strlen(spec) > 3)
        return tl_fail(TILE_BAD_ARGUMENT, "device '%s:%s': expected a number after the colon",
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
    TL_INVARIANT_VOID(!d->queues && !d->modules, "device %s:%d is closed while it is in use",
                      d->kind->kind, d->ordinal);
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

uint32_t tl_gpu_accepts(tl_dev *d, const char *target)
{
    return d->kind->accepts(d, target);
}

/* ---- memory ---- */

tile_status tl_gpu_mem_alloc(tl_dev *d, uint64_t bytes, void **out_address)
{
    TL_INVARIANT(out_address, "no memory to allocate");
    tile_status status;
    if (bytes > SIZE_MAX)
        return tl_fail(TILE_NO_MEMORY, "out of memory: a buffer of %" PRIu64 " bytes", bytes);
    TL_GPU_WITHIN(d, status, TL_GPU_CALL(d, mem_alloc, out_address, bytes ? (size_t)bytes : 1));
    if (status == TILE_NO_MEMORY)
        return tl_fail(status, "out of device memory: a buffer of %" PRIu64 " bytes: %s", bytes,
                       tile_last_error());
    return status;
}

void tl_gpu_mem_free(tl_dev *d, void *address)
{
    tile_status status;
    TL_GPU_WITHIN(d, status, (d->api.mem_free(address), TILE_OK));
    (void)status; /* nobody to tell */
}

tile_status tl_gpu_host_alloc(tl_dev *d, uint64_t bytes, void **out_address)
{
    TL_INVARIANT(out_address, "no memory to allocate");
    tile_status status;
    if (!d->api.host_alloc || !d->api.host_free)
        return tl_gpu_lacks(d, d->api.host_alloc ? offsetof(tl_gpu_api, host_free)
                                          : offsetof(tl_gpu_api, host_alloc));
    if (bytes > SIZE_MAX)
        return tl_fail(TILE_NO_MEMORY, "out of memory: %" PRIu64 " bytes", bytes);
    TL_GPU_WITHIN(
        d, status,
        TL_GPU_CALL(d, host_alloc, out_address, bytes ? (size_t)bytes : 1, HOST_PORTABLE));
    return status;
}

void tl_gpu_host_free(tl_dev *d, void *address)
{
    tile_status status;
    TL_GPU_WITHIN(d, status, (d->api.host_free(address), TILE_OK));
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
    TL_DEBUG_INVARIANT(q->prev ? q->prev->next == q : q->dev->queues == q,
                       "a queue that is not in its device's list");
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
    TL_INVARIANT(driver && sink && out_queue, "a queue without a sink");
    (void)driver;
    tile_status status = TILE_OK;
    tl_queue *q = new_queue(d, sink);
    if (!q)
        return TILE_NO_MEMORY;
    q->is_default = is_default;
    if (!is_default)
        TL_GPU_WITHIN(d, status, TL_GPU_CALL(d, stream_create, &q->stream, STREAM_NON_BLOCKING));
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
    TL_INVARIANT(driver && sink && out_queue, "a queue without a sink");
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

/* A wrapped stream belongs to the host, but its kernels may still write to the debug buffer. */
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
    TL_GPU_WITHIN(q->dev, status, (drain(q), TILE_OK));
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
    TL_GPU_WITHIN(q->dev, status, wait_and_collect(q));
    return status;
}

tile_status tl_gpu_queue_copy(tl_queue *q, void *target, const void *source, uint64_t bytes,
                              tl_copy_kind kind)
{
    TL_INVARIANT((target && source) || !bytes, "a copy between no addresses");
    tile_status status;
    tl_dev *d = q->dev;
    size_t n = (size_t)bytes;
    if (kind == TL_COPY_WITHIN && !d->api.copy_within)
        return tl_gpu_lacks(d, offsetof(tl_gpu_api, copy_within));
    TL_GPU_WITHIN(d, status,
                  kind == TL_COPY_UP     ? TL_GPU_CALL(d, copy_up, target, source, n, q->stream)
                  : kind == TL_COPY_DOWN ? TL_GPU_CALL(d, copy_down, target, source, n, q->stream)
                                         : TL_GPU_CALL(d, copy_within, target, source, n,
                                                       q->stream));
    return status;
}

static tile_status copy_from(tl_queue *q, void *target, const tl_dev *from, const void *source,
                             size_t bytes)
{
    tl_dev *d = q->dev;
    if (d->api.copy_peer)
        return TL_GPU_CALL(d, copy_peer, target, d->context, source, from->context, bytes,
                           q->stream);
    if (d->api.copy_peer_of)
        return TL_GPU_CALL(d, copy_peer_of, target, d->ordinal, source, from->ordinal, bytes,
                           q->stream);
    return tl_gpu_lacks(d, d->context ? offsetof(tl_gpu_api, copy_peer) /* cuda */
                               : offsetof(tl_gpu_api, copy_peer_of));
}

tile_status tl_gpu_queue_copy_from(tl_queue *q, void *target, tl_dev *from, const void *source,
                                   uint64_t bytes)
{
    TL_INVARIANT(from && ((target && source) || !bytes), "a copy between no addresses");
    tile_status status;
    TL_GPU_WITHIN(q->dev, status, copy_from(q, target, from, source, (size_t)bytes));
    return status;
}

tile_status tl_gpu_queue_call(tl_queue *q, tile_status (*call)(void *user, void *native),
                              void *user, void *written, uint64_t bytes)
{
    tile_status status;
    (void)written;
    (void)bytes;
    TL_GPU_WITHIN(q->dev, status, call(user, q->stream));
    return status;
}

void *tl_gpu_queue_native(const tl_queue *q)
{
    return q->stream;
}

/* Where the library cannot tell, what is not allowed fails in it. */
tile_status tl_gpu_queue_captures(const tl_queue *q, bool *out_captures)
{
    int captures = 0;
    tile_status status = TILE_OK;
    if (q->dev->api.stream_captures)
        TL_GPU_WITHIN(q->dev, status, TL_GPU_CALL(q->dev, stream_captures, q->stream, &captures));
    *out_captures = captures != 0;
    return status;
}

tile_status tl_gpu_queue_fill(tl_queue *q, void *target, int value, uint64_t bytes)
{
    TL_INVARIANT(target || !bytes, "a fill of no address");
    tile_status status;
    TL_GPU_WITHIN(
        q->dev, status,
        TL_GPU_CALL(q->dev, fill, target, (unsigned char)value, (size_t)bytes, q->stream));
    return status;
}

/* ---- marks ---- */

tile_status tl_gpu_mark_create(tl_dev *d, tl_mark **out_mark)
{
    TL_INVARIANT(out_mark, "a mark for nobody");
    tile_status status;
    tl_mark *m = calloc(1, sizeof *m);
    if (!m)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    m->dev = d;
    TL_GPU_WITHIN(d, status, TL_GPU_CALL(d, event_create, &m->event, 0));
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
    TL_GPU_WITHIN(m->dev, status, (m->dev->api.event_destroy(m->event), TILE_OK));
    (void)status; /* nobody to tell */
    free(m);
}

tile_status tl_gpu_mark_record(tl_mark *m, tl_queue *q)
{
    TL_INVARIANT(m && q, "no mark to record");
    tile_status status;
    TL_GPU_WITHIN(m->dev, status, TL_GPU_CALL(m->dev, event_record, m->event, q->stream));
    if (status == TILE_OK)
        atomic_store(&m->recorded, true);
    return status;
}

tile_status tl_gpu_mark_wait(tl_mark *m, tl_queue *q)
{
    TL_INVARIANT(m && q, "no mark to wait for");
    tile_status status = TILE_OK;
    if (atomic_load(&m->recorded))
        TL_GPU_WITHIN(m->dev, status, TL_GPU_CALL(m->dev, stream_after, q->stream, m->event, 0));
    return status;
}

tile_status tl_gpu_mark_synchronize(tl_mark *m)
{
    TL_INVARIANT(m, "no mark");
    tile_status status = TILE_OK;
    if (atomic_load(&m->recorded))
        TL_GPU_WITHIN(m->dev, status, TL_GPU_CALL(m->dev, event_wait, m->event));
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
    TL_INVARIANT(from && to && out_milliseconds, "a time between no marks");
    tile_status status;
    float milliseconds = 0;
    if (!atomic_load(&from->recorded) || !atomic_load(&to->recorded))
        return tl_fail(TILE_BAD_ARGUMENT, "tile_event_elapsed: the %s event was never recorded",
                       atomic_load(&from->recorded) ? "second" : "first");
    TL_GPU_WITHIN(from->dev, status, elapsed(from, to, &milliseconds));
    if (status == TILE_OK)
        *out_milliseconds = milliseconds;
    return status;
}
