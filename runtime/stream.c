/* stream.c: streams and events over the driver's queues and marks. */
#include "runtime/runtime.h"
#include <stdlib.h>

static void link_stream(tile_stream *s)
{
    pthread_mutex_lock(&s->device->lock);
    s->next = s->device->streams;
    if (s->next)
        s->next->prev = s;
    s->device->streams = s;
    pthread_mutex_unlock(&s->device->lock);
}

static void unlink_stream(tile_stream *s)
{
    pthread_mutex_lock(&s->device->lock);
    if (s->next)
        s->next->prev = s->prev;
    if (s->prev)
        s->prev->next = s->next;
    else if (s->device->streams == s)
        s->device->streams = s->next;
    pthread_mutex_unlock(&s->device->lock);
}

/* A stream around a queue that `native` names, or around a new one. */
static tile_status open_stream(tile_device *device, bool is_default, void *native,
                               tile_stream **out_stream)
{
    const tl_driver *driver = device->driver;
    tile_stream *s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    s->device = device;
    tile_status status = tl_sink_create(&s->sink);
    if (status == TILE_OK)
        status = native ? driver->queue_wrap(driver, device->dev, s->sink, native, &s->queue)
                        : driver->queue_create(driver, device->dev, s->sink, is_default, &s->queue);
    if (status != TILE_OK) {
        tl_sink_free(s->sink);
        free(s);
        return status;
    }
    link_stream(s);
    *out_stream = s;
    return TILE_OK;
}

tile_status tl_stream_open(tile_device *device, bool is_default, tile_stream **out_stream)
{
    return open_stream(device, is_default, NULL, out_stream);
}

tile_status tl_stream_or_default(tile_device *device, tile_stream *stream, tile_stream **out_stream)
{
    *out_stream = stream;
    if (stream)
        return device && stream->device != device
                   ? tl_fail(TILE_BAD_ARGUMENT, "the stream is of another device")
                   : TILE_OK;
    tile_device *d;
    tile_status status = tl_device_or_default(device, &d);
    if (status == TILE_OK)
        *out_stream = d->default_stream;
    return status;
}

tile_status tile_stream_create(tile_device *device, tile_stream **out_stream)
{
    tile_device *d;
    if (!out_stream)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_stream_create: out_stream is NULL");
    tile_status status = tl_device_or_default(device, &d);
    return status == TILE_OK ? open_stream(d, false, NULL, out_stream) : status;
}

tile_status tile_stream_wrap(tile_device *device, void *native, tile_stream **out_stream)
{
    tile_device *d;
    if (!out_stream || !native)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_stream_wrap: an argument is NULL");
    tile_status status = tl_device_or_default(device, &d);
    if (status != TILE_OK)
        return status;
    if (!d->driver->queue_wrap)
        return tl_fail(TILE_UNAVAILABLE, "device %s has no streams of its driver's own", d->name);
    return open_stream(d, false, native, out_stream);
}

void tile_stream_free(tile_stream *s)
{
    if (!s)
        return;
    unlink_stream(s);
    s->device->driver->queue_free(s->queue);
    tl_sink_free(s->sink);
    free(s);
}

tile_status tile_device_default_stream(tile_device *device, tile_stream **out_stream)
{
    return tl_stream_or_default(device, NULL, out_stream);
}

/* A failure in a kernel is told before one of the driver: it came first, or caused it. */
tile_status tile_stream_synchronize(tile_stream *stream)
{
    tile_stream *s;
    tile_status status = tl_stream_or_default(NULL, stream, &s);
    if (status != TILE_OK)
        return status;
    status = s->device->driver->queue_synchronize(s->queue);
    tile_status said = tl_sink_deliver(s->sink, &s->device->callbacks);
    return said != TILE_OK ? said : status;
}

/* The lock is not held while waiting: streams may come and go meanwhile, but not the ones waited
 * for. */
tile_status tile_device_synchronize(tile_device *device)
{
    tile_device *d;
    tile_status first = tl_device_or_default(device, &d);
    if (first != TILE_OK)
        return first;
    pthread_mutex_lock(&d->lock);
    tile_stream *s = d->streams;
    pthread_mutex_unlock(&d->lock);
    while (s) {
        tile_status status = tile_stream_synchronize(s);
        if (first == TILE_OK)
            first = status;
        pthread_mutex_lock(&d->lock);
        s = s->next;
        pthread_mutex_unlock(&d->lock);
    }
    return first;
}

/* ---- events ---- */

tile_status tile_event_create(tile_device *device, tile_event **out_event)
{
    tile_device *d;
    if (!out_event)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_event_create: out_event is NULL");
    tile_status status = tl_device_or_default(device, &d);
    if (status != TILE_OK)
        return status;
    tile_event *e = calloc(1, sizeof *e);
    if (!e)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    e->device = d;
    status = d->driver->mark_create(d->dev, &e->mark);
    if (status != TILE_OK) {
        free(e);
        return status;
    }
    *out_event = e;
    return TILE_OK;
}

void tile_event_free(tile_event *e)
{
    if (!e)
        return;
    e->device->driver->mark_free(e->mark);
    free(e);
}

tile_status tile_event_record(tile_event *e, tile_stream *stream)
{
    tile_stream *s;
    tile_status status = tl_stream_or_default(e->device, stream, &s);
    return status == TILE_OK ? e->device->driver->mark_record(e->mark, s->queue) : status;
}

tile_status tile_stream_wait_event(tile_stream *stream, tile_event *e)
{
    tile_stream *s;
    tile_status status = tl_stream_or_default(e->device, stream, &s);
    return status == TILE_OK ? e->device->driver->mark_wait(e->mark, s->queue) : status;
}

tile_status tile_event_synchronize(tile_event *e)
{
    return e->device->driver->mark_synchronize(e->mark);
}

tile_status tile_event_elapsed(tile_event *from, tile_event *to, double *out_milliseconds)
{
    if (from->device != to->device)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_event_elapsed: the events are of two devices");
    return from->device->driver->mark_elapsed(from->mark, to->mark, out_milliseconds);
}
