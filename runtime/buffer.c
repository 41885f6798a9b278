/* buffer.c: device memory with a length, and the copies to and from it. */
#include "runtime/runtime.h"
#include <inttypes.h>
#include <stdlib.h>

/* ---- kept memory ----
 * Sizes are rounded up to one of eight steps in each power of two, so that at most an eighth is
 * wasted, and a buffer finds what an earlier one of about its size has left. Who frees a buffer has
 * made sure that nothing uses it (tile.h), so any stream may use it next. */

enum { SMALLEST = 9 }; /* log2 of bytes */

typedef struct room {
    uint64_t bytes;
    unsigned class;
} room;

static room room_for(uint64_t bytes)
{
    unsigned log = SMALLEST;
    while (log < 62 && bytes > (uint64_t)1 << log)
        log++;
    if (log == SMALLEST)
        return (room){(uint64_t)1 << SMALLEST, 0};
    uint64_t half = (uint64_t)1 << (log - 1), step = half / 8,
             steps = (bytes - half + step - 1) / step; /* 1 to 8 */
    return (room){half + steps * step, (log - SMALLEST) * 8 + (unsigned)steps};
}

/* A buffer that was freed; NULL: none of that size. */
static tile_buffer *take_kept(tile_device *d, room r)
{
    pthread_mutex_lock(&d->lock);
    tile_buffer *b = d->kept[r.class];
    if (b)
        d->kept[r.class] = b->next;
    pthread_mutex_unlock(&d->lock);
    TL_INVARIANT_OR(NULL, !b || b->room == r.bytes, "%" PRIu64 " bytes among those of %" PRIu64,
                    b->room, r.bytes);
    return b;
}

bool tl_buffers_trim(tile_device *d)
{
    bool any = false;
    for (unsigned i = 0; i < TL_KEPT_CLASSES; i++) {
        pthread_mutex_lock(&d->lock);
        tile_buffer *b = d->kept[i];
        d->kept[i] = NULL;
        pthread_mutex_unlock(&d->lock);
        for (tile_buffer *next; b; b = next) {
            next = b->next;
            d->driver->mem_free(d->dev, b->address);
            free(b);
            any = true;
        }
    }
    return any;
}

tile_status tile_device_trim(tile_device *device)
{
    tile_device *d;
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    tl_buffers_trim(d);
    tl_device_leave(d);
    return TILE_OK;
}

/* ---- buffers ---- */

/* Memory of the driver's, if need be after giving back what is kept. */
static tile_status new_memory(tile_device *d, tile_buffer *b)
{
    tile_status status = d->driver->mem_alloc(d->dev, b->room, &b->address);
    if (status == TILE_NO_MEMORY && tl_buffers_trim(d))
        status = d->driver->mem_alloc(d->dev, b->room, &b->address);
    TL_INVARIANT(status != TILE_OK || b->address,
                 "the driver of %s gave no address for %" PRIu64 " bytes", d->name, b->room);
    return status;
}

static tile_status new_buffer(tile_device *d, uint64_t bytes, tile_buffer **out_buffer)
{
    bool slow = d->driver->mem_is_slow && bytes < UINT64_MAX / 4;
    room r = slow ? room_for(bytes) : (room){bytes, 0};
    *out_buffer = slow ? take_kept(d, r) : NULL;
    if (*out_buffer)
        return TILE_OK;
    tile_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    b->device = d;
    b->room = r.bytes;
    tile_status status = new_memory(d, b);
    if (status == TILE_OK)
        *out_buffer = b;
    else
        free(b);
    return status;
}

static tile_status alloc(tile_device *d, uint64_t bytes, tile_buffer **out_buffer)
{
    tile_buffer *b;
    tile_status status = new_buffer(d, bytes, &b);
    if (status != TILE_OK)
        return status;
    b->bytes = bytes;
    b->prev = NULL;
    tl_device_keep(d);
    pthread_mutex_lock(&d->lock);
    b->next = d->buffers;
    if (b->next)
        b->next->prev = b;
    TL_DEBUG_INVARIANT(!b->next || !b->next->next || b->next->next->prev == b->next,
                       "a broken list of buffers");
    d->buffers = b;
    pthread_mutex_unlock(&d->lock);
    *out_buffer = b;
    return TILE_OK;
}

tile_status tile_buffer_alloc(tile_device *device, uint64_t bytes, tile_buffer **out_buffer)
{
    tile_device *d;
    if (!out_buffer)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_buffer_alloc: out_buffer is NULL");
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    status = alloc(d, bytes, out_buffer);
    tl_device_leave(d);
    return status;
}

/* Out of the device's list; its memory is kept, or goes back to the driver. */
static void give_back(tile_device *d, tile_buffer *b)
{
    pthread_mutex_lock(&d->lock);
    TL_DEBUG_INVARIANT(b->prev ? b->prev->next == b : d->buffers == b,
                       "a buffer that is not in its device's list");
    if (b->next)
        b->next->prev = b->prev;
    if (b->prev)
        b->prev->next = b->next;
    else
        d->buffers = b->next;
    bool kept = d->driver->mem_is_slow;
    if (kept) {
        unsigned class = room_for(b->room).class;
        b->next = d->kept[class];
        d->kept[class] = b;
    }
    pthread_mutex_unlock(&d->lock);
    if (!kept) {
        d->driver->mem_free(d->dev, b->address);
        free(b);
    }
}

void tile_buffer_free(tile_buffer *b)
{
    if (!b)
        return;
    tile_device *d = b->device;
    TL_INVARIANT_VOID(d && b->address, "a buffer of no device: was it freed before?");
    if (tl_device_enter_to_free(d)) {
        give_back(d, b);
        tl_device_leave(d);
    }
    tl_device_drop(d);
}

void *tile_buffer_ptr(const tile_buffer *b)
{
    return b ? b->address : NULL;
}

uint64_t tile_buffer_bytes(const tile_buffer *b)
{
    return b ? b->bytes : 0;
}

/* Half bytes of an element; 0: no such type. */
static uint64_t halves_of(int32_t dtype)
{
    if (dtype < 0) return dtype == TILE_ANY_WORD ? 4 : 2;
    return (uint64_t)tile_dtype_bits((tile_dtype)dtype) / 4;
}

/* Where no element begins: NULL, and the size of the whole buffer. */
tile_arg tile_arg_in_buffer(tile_arg arg, const tile_buffer *b, int64_t at)
{
    uint64_t halves = halves_of(arg.dtype), size = tile_buffer_bytes(b);
    bool there = halves && (uint64_t)at < size * 2 / halves && (uint64_t)at * halves % 2 == 0;
    uint64_t offset = there ? (uint64_t)at * halves / 2 : 0;
    arg.address = there ? (char *)b->address + offset : NULL;
    arg.bytes = size - offset;
    return arg;
}

uint64_t tl_buffer_bytes_at(tile_device *d, const void *address)
{
    uint64_t left = UINT64_MAX;
    uintptr_t at = (uintptr_t)address;
    pthread_mutex_lock(&d->lock);
    for (const tile_buffer *b = d->buffers; b && left == UINT64_MAX; b = b->next)
        if (at >= (uintptr_t)b->address && at - (uintptr_t)b->address < b->bytes)
            left = b->bytes - (at - (uintptr_t)b->address);
    pthread_mutex_unlock(&d->lock);
    return left;
}

static tile_status check_part(const tile_buffer *b, uint64_t offset, uint64_t bytes)
{
    if (!b)
        return tl_fail(TILE_BAD_ARGUMENT, "the buffer is NULL");
    if (offset <= b->bytes && bytes <= b->bytes - offset)
        return TILE_OK;
    return tl_fail(TILE_BAD_ARGUMENT,
                   "%" PRIu64 " bytes from %" PRIu64 " on are not inside a buffer of %" PRIu64,
                   bytes, offset, b->bytes);
}

/* Checks the part [offset, offset + bytes) of a buffer and finds the stream to use. On TILE_OK the
 * device is entered. host: the other side of a copy; any address for a fill. */
static tile_status enter_part(tile_buffer *b, uint64_t offset, uint64_t bytes, const void *host,
                              tile_stream *stream, tile_stream **out_stream)
{
    tile_device *d;
    tile_status status = check_part(b, offset, bytes);
    if (status != TILE_OK)
        return status;
    if (bytes > 0 && !host)
        return tl_fail(TILE_BAD_ARGUMENT, "the host memory of a copy of %" PRIu64 " bytes is NULL",
                       bytes);
    status = tl_device_enter(b->device, &d);
    if (status != TILE_OK)
        return status;
    status = tl_stream_of(d, stream, out_stream);
    if (status != TILE_OK)
        tl_device_leave(d);
    return status;
}

/* wait: until it is done; what kernels reported stays for tile_stream_synchronize. */
static tile_status copy(tile_stream *s, void *target, const void *source, uint64_t bytes,
                        tl_copy_kind kind, bool wait)
{
    const tl_driver *driver = s->device->driver;
    if (bytes == 0)
        return TILE_OK;
    TL_INVARIANT(target && source, "a copy between no addresses");
    tile_status status = driver->queue_copy(s->queue, target, source, bytes, kind);
    return status == TILE_OK && wait ? driver->queue_synchronize(s->queue) : status;
}

static tile_status upload(tile_buffer *b, uint64_t offset, const void *source, uint64_t bytes,
                          tile_stream *stream, bool wait)
{
    tile_stream *s;
    tile_status status = enter_part(b, offset, bytes, source, stream, &s);
    if (status != TILE_OK)
        return status;
    status = copy(s, (char *)b->address + offset, source, bytes, TL_COPY_UP, wait);
    tl_device_leave(b->device);
    return status;
}

static tile_status download(tile_buffer *b, uint64_t offset, void *target, uint64_t bytes,
                            tile_stream *stream, bool wait)
{
    tile_stream *s;
    tile_status status = enter_part(b, offset, bytes, target, stream, &s);
    if (status != TILE_OK)
        return status;
    status = copy(s, target, (char *)b->address + offset, bytes, TL_COPY_DOWN, wait);
    tl_device_leave(b->device);
    return status;
}

tile_status tile_buffer_upload(tile_buffer *b, uint64_t offset, const void *source, uint64_t bytes,
                               tile_stream *stream)
{
    return upload(b, offset, source, bytes, stream, true);
}

tile_status tile_buffer_upload_async(tile_buffer *b, uint64_t offset, const void *source,
                                     uint64_t bytes, tile_stream *stream)
{
    return upload(b, offset, source, bytes, stream, false);
}

tile_status tile_buffer_download(tile_buffer *b, uint64_t offset, void *target, uint64_t bytes,
                                 tile_stream *stream)
{
    return download(b, offset, target, bytes, stream, true);
}

tile_status tile_buffer_download_async(tile_buffer *b, uint64_t offset, void *target,
                                       uint64_t bytes, tile_stream *stream)
{
    return download(b, offset, target, bytes, stream, false);
}

/* ---- between buffers ---- */

/* A device whose memory is the host's needs no driver to be read or written. */
static bool is_host(const tile_device *d)
{
    return d->driver->queue_copy_from == NULL;
}

/* Which device copies: the target's, or the source's if only that is a GPU. */
static tile_device *mover(const tile_buffer *target, const tile_buffer *source)
{
    return is_host(target->device) && !is_host(source->device) ? source->device : target->device;
}

static tile_status copy_between(tile_stream *s, const tile_buffer *target, void *to,
                                const tile_buffer *source, const void *from, uint64_t bytes)
{
    tile_device *a = target->device, *b = source->device;
    const tl_driver *driver = s->device->driver;
    if (a == b || is_host(a) || is_host(b))
        return copy(s, to, from, bytes,
                    a == b       ? TL_COPY_WITHIN
                    : is_host(b) ? TL_COPY_UP
                                 : TL_COPY_DOWN,
                    false);
    if (a->driver != b->driver)
        return tl_fail(TILE_UNAVAILABLE,
                       "there are no copies from %s to %s: copy by way of the "
                       "host",
                       b->name, a->name);
    return driver->queue_copy_from(s->queue, to, b->dev, from, bytes);
}

static tile_status check_copy(const tile_buffer *target, uint64_t target_offset,
                              const tile_buffer *source, uint64_t source_offset, uint64_t bytes)
{
    tile_status status = check_part(target, target_offset, bytes);
    if (status == TILE_OK)
        status = check_part(source, source_offset, bytes);
    bool overlap = status == TILE_OK && target == source && target_offset < source_offset + bytes &&
                   source_offset < target_offset + bytes;
    return overlap ? tl_fail(TILE_BAD_ARGUMENT,
                             "tile_buffer_copy: the ranges from %" PRIu64 " and from %" PRIu64
                             " overlap",
                             source_offset, target_offset)
                   : status;
}

tile_status tile_buffer_copy(tile_buffer *target, uint64_t target_offset, tile_buffer *source,
                             uint64_t source_offset, uint64_t bytes, tile_stream *stream)
{
    tile_device *a, *b;
    tile_stream *s;
    tile_status status = check_copy(target, target_offset, source, source_offset, bytes);
    if (status == TILE_OK)
        status = tl_device_enter(target->device, &a);
    if (status != TILE_OK)
        return status;
    status = tl_device_enter(source->device, &b);
    if (status == TILE_OK) {
        status = tl_stream_of(mover(target, source), stream, &s);
        if (status == TILE_OK && bytes > 0)
            status = copy_between(s, target, (char *)target->address + target_offset, source,
                                  (const char *)source->address + source_offset, bytes);
        tl_device_leave(b);
    }
    tl_device_leave(a);
    return status;
}

/* ---- the host's memory ---- */

tile_status tile_host_alloc(tile_device *device, uint64_t bytes, void **out_memory)
{
    tile_device *d;
    if (!out_memory)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_host_alloc: out_memory is NULL");
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    status = d->driver->host_alloc(d->dev, bytes, out_memory);
    tl_device_leave(d);
    return status;
}

tile_status tile_host_free(tile_device *device, void *memory)
{
    tile_device *d;
    tile_status status = memory ? tl_device_enter(device, &d) : TILE_OK;
    if (status != TILE_OK || !memory)
        return status;
    d->driver->host_free(d->dev, memory);
    tl_device_leave(d);
    return TILE_OK;
}

tile_status tile_buffer_fill(tile_buffer *b, uint64_t offset, int value, uint64_t bytes,
                             tile_stream *stream)
{
    tile_stream *s;
    tile_status status = enter_part(b, offset, bytes, &value, stream, &s);
    if (status != TILE_OK)
        return status;
    if (bytes > 0)
        status = s->device->driver->queue_fill(s->queue, (char *)b->address + offset, value, bytes);
    tl_device_leave(b->device);
    return status;
}
