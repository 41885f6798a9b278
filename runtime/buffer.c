/* buffer.c: device memory with a length, and the copies to and from it. */
#include "runtime/runtime.h"
#include <inttypes.h>
#include <stdlib.h>

static tile_status alloc(tile_device *d, uint64_t bytes, tile_buffer **out_buffer)
{
    tile_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    b->device = d;
    b->bytes = bytes;
    tile_status status = d->driver->mem_alloc(d->dev, bytes, &b->address);
    if (status != TILE_OK) {
        free(b);
        return status;
    }
    TL_INVARIANT(b->address, "the driver of %s gave no address for %" PRIu64 " bytes", d->name,
                 bytes);
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

void tile_buffer_free(tile_buffer *b)
{
    if (!b)
        return;
    tile_device *d = b->device;
    TL_INVARIANT_VOID(d && b->address, "a buffer of no device: was it freed before?");
    pthread_mutex_lock(&d->lock);
    TL_DEBUG_INVARIANT(b->prev ? b->prev->next == b : d->buffers == b,
                       "a buffer that is not in its device's list");
    if (b->next)
        b->next->prev = b->prev;
    if (b->prev)
        b->prev->next = b->next;
    else
        d->buffers = b->next;
    pthread_mutex_unlock(&d->lock);
    d->driver->mem_free(d->dev, b->address);
    free(b);
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

/* Checks the part [offset, offset + bytes) of a buffer and finds the stream to use. On TILE_OK the
 * device is entered. host: the other side of a copy; any address for a fill. */
static tile_status enter_part(tile_buffer *b, uint64_t offset, uint64_t bytes, const void *host,
                              tile_stream *stream, tile_stream **out_stream)
{
    tile_device *d;
    if (!b)
        return tl_fail(TILE_BAD_ARGUMENT, "the buffer is NULL");
    if (offset > b->bytes || bytes > b->bytes - offset)
        return tl_fail(TILE_BAD_ARGUMENT,
                       "%" PRIu64 " bytes from %" PRIu64 " on are not inside a buffer of %" PRIu64,
                       bytes, offset, b->bytes);
    if (bytes > 0 && !host)
        return tl_fail(TILE_BAD_ARGUMENT, "the host memory of a copy of %" PRIu64 " bytes is NULL",
                       bytes);
    tile_status status = tl_device_enter(b->device, &d);
    if (status != TILE_OK)
        return status;
    status = tl_stream_of(d, stream, out_stream);
    if (status != TILE_OK)
        tl_device_leave(d);
    return status;
}

/* Waits for the queue. What kernels reported stays for tile_stream_synchronize. */
static tile_status copy(tile_stream *s, void *target, const void *source, uint64_t bytes,
                        tl_copy_kind kind)
{
    const tl_driver *driver = s->device->driver;
    if (bytes == 0)
        return TILE_OK;
    TL_INVARIANT(target && source, "a copy between no addresses");
    tile_status status = driver->queue_copy(s->queue, target, source, bytes, kind);
    return status == TILE_OK ? driver->queue_synchronize(s->queue) : status;
}

tile_status tile_buffer_upload(tile_buffer *b, uint64_t offset, const void *source, uint64_t bytes,
                               tile_stream *stream)
{
    tile_stream *s;
    tile_status status = enter_part(b, offset, bytes, source, stream, &s);
    if (status != TILE_OK)
        return status;
    status = copy(s, (char *)b->address + offset, source, bytes, TL_COPY_UP);
    tl_device_leave(b->device);
    return status;
}

tile_status tile_buffer_download(tile_buffer *b, uint64_t offset, void *target, uint64_t bytes,
                                 tile_stream *stream)
{
    tile_stream *s;
    tile_status status = enter_part(b, offset, bytes, target, stream, &s);
    if (status != TILE_OK)
        return status;
    status = copy(s, target, (char *)b->address + offset, bytes, TL_COPY_DOWN);
    tl_device_leave(b->device);
    return status;
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
