/* stream.c: streams and events over the driver's queues and marks. */
#include "runtime/runtime.h"
#include <stdlib.h>

/* The error for a NULL argument. */
static tile_status is_null(const char *function, const char *what)
{
    return tl_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", function, what);
}

static void link_stream(tile_stream *s)
{
    pthread_mutex_lock(&s->device->lock);
    s->next = s->device->streams;
    if (s->next)
        s->next->prev = s;
    s->device->streams = s;
    pthread_mutex_unlock(&s->device->lock);
}

/* Waits for threads that have pinned the stream (pin_next). */
static void unlink_stream(tile_stream *s)
{
    pthread_mutex_lock(&s->device->lock);
    while (s->pins > 0)
        pthread_cond_wait(&s->device->left, &s->device->lock);
    TL_DEBUG_INVARIANT(s->prev ? s->prev->next == s : s->device->streams == s,
                       "a stream that is not in its device's list");
    if (s->next)
        s->next->prev = s->prev;
    if (s->prev)
        s->prev->next = s->next;
    else if (s->device->streams == s)
        s->device->streams = s->next;
    pthread_mutex_unlock(&s->device->lock);
}

/* Iterates over the device's streams without holding the lock while it waits for one: a pinned
 * stream stays in the list. Unpins `s`, if not NULL, and pins the next one. */
static tile_stream *pin_next(tile_device *d, tile_stream *s)
{
    pthread_mutex_lock(&d->lock);
    tile_stream *next = s ? s->next : d->streams;
    if (next)
        next->pins++;
    TL_DEBUG_INVARIANT(!s || s->pins > 0, "a stream is let go that was not pinned");
    if (s && --s->pins == 0)
        pthread_cond_broadcast(&d->left);
    pthread_mutex_unlock(&d->lock);
    return next;
}

/* A stream for the native queue, or for a new one if `native` is NULL. is_default: as for
 * queue_create. */
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
    TL_INVARIANT(s->queue && s->sink, "the driver of %s gave no queue", device->name);
    link_stream(s);
    *out_stream = s;
    return TILE_OK;
}

tile_status tl_stream_open(tile_device *device, bool is_default, tile_stream **out_stream)
{
    TL_INVARIANT(device && out_stream, "a stream of no device");
    return open_stream(device, is_default, NULL, out_stream);
}

void tl_stream_close(tile_stream *s)
{
    if (!s)
        return;
    unlink_stream(s);
    s->device->driver->queue_free(s->queue);
    tl_sink_free(s->sink);
    free(s);
}

tile_status tl_stream_of(tile_device *device, tile_stream *stream, tile_stream **out_stream)
{
    *out_stream = stream ? stream : device->default_stream;
    TL_INVARIANT(*out_stream, "device %s has no default stream", device->name);
    return (*out_stream)->device == device
               ? TILE_OK
               : tl_fail(TILE_BAD_ARGUMENT, "the stream is of another device");
}

/* A stream that the caller made keeps the device. A host driver's that is part of others does
 * everything at once, in the calling thread. */
static tile_status make_stream(tile_device *device, void *native, tl_part part,
                               tile_stream **out_stream)
{
    bool is_host = device->driver->run != NULL;
    tile_status status = open_stream(device, part.count > 0 && is_host, native, out_stream);
    if (status != TILE_OK)
        return status;
    (*out_stream)->part = part;
    tl_device_keep(device);
    return TILE_OK;
}

static tile_status create(tile_device *device, tl_part part, tile_stream **out_stream)
{
    tile_device *d;
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    status = make_stream(d, NULL, part, out_stream);
    tl_device_leave(d);
    return status;
}

tile_status tile_stream_create(tile_device *device, tile_stream **out_stream)
{
    if (!out_stream)
        return is_null("tile_stream_create", "out_stream");
    return create(device, (tl_part){0}, out_stream);
}

tile_status tile_stream_create_part(tile_device *device, uint32_t part, uint32_t parts,
                                    tile_stream **out_stream)
{
    if (!out_stream)
        return is_null("tile_stream_create_part", "out_stream");
    if (part >= parts)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_stream_create_part: part %u of %u", part, parts);
    return create(device, (tl_part){part, parts}, out_stream);
}

tile_status tile_stream_wrap(tile_device *device, void *native, tile_stream **out_stream)
{
    tile_device *d;
    if (!out_stream || !native)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_stream_wrap: an argument is NULL");
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    status = d->driver->queue_wrap
                 ? make_stream(d, native, (tl_part){0}, out_stream)
                 : tl_fail(TILE_UNAVAILABLE, "device %s has no streams of its driver's own",
                           d->name);
    tl_device_leave(d);
    return status;
}

void *tile_stream_native(const tile_stream *s)
{
    return s && s->device->driver->queue_native ? s->device->driver->queue_native(s->queue) : NULL;
}

void tile_stream_free(tile_stream *s)
{
    tile_device *d = s ? s->device : NULL;
    if (!s || s == d->default_stream)
        return;
    if (tl_device_enter_to_free(d)) {
        tl_stream_close(s);
        tl_device_leave(d);
    }
    tl_device_drop(d);
}

tile_status tile_device_default_stream(tile_device *device, tile_stream **out_stream)
{
    tile_device *d;
    if (!out_stream)
        return is_null("tile_device_default_stream", "out_stream");
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    *out_stream = d->default_stream;
    tl_device_leave(d);
    return TILE_OK;
}

/* A failure in a kernel takes precedence over one of the driver: it came first, or caused it. */
tile_status tl_stream_finish(tile_stream *s)
{
    TL_FP_SCOPE();
    TL_INVARIANT(s->queue, "a stream without a queue");
    tile_device *d = s->device;
    tile_status status = d->driver->queue_synchronize(s->queue);
    pthread_mutex_lock(&d->lock);
    tile_callbacks callbacks = d->callbacks;
    pthread_mutex_unlock(&d->lock);
    tile_status said = tl_sink_deliver(s->sink, &callbacks);
    tile_status broken = tl_broken_status(); /* the last to set the text */
    return broken != TILE_OK ? broken : said != TILE_OK ? said : status;
}

tile_status tile_stream_synchronize(tile_stream *stream)
{
    tile_device *d;
    tile_status status = tl_device_enter(stream ? stream->device : NULL, &d);
    if (status != TILE_OK)
        return status;
    status = tl_stream_finish(stream ? stream : d->default_stream);
    tl_device_leave(d);
    return status;
}

/* The status is that of the first failure. */
tile_status tile_device_synchronize(tile_device *device)
{
    tile_device *d;
    tile_status first = tl_device_enter(device, &d);
    if (first != TILE_OK)
        return first;
    for (tile_stream *s = pin_next(d, NULL); s; s = pin_next(d, s)) {
        tile_status status = tl_stream_finish(s);
        if (first == TILE_OK)
            first = status;
    }
    tl_device_leave(d);
    return first;
}

void tl_streams_drain(tile_device *d)
{
    for (tile_stream *s = pin_next(d, NULL); s; s = pin_next(d, s))
        if (s != d->default_stream)
            d->driver->queue_synchronize(s->queue); /* nobody to tell */
}

tile_status tile_stream_call(tile_device *device, tile_stream *stream,
                             tile_status (*call)(void *user, void *native), void *user,
                             void *written, uint64_t bytes)
{
    tile_device *d;
    tile_stream *s;
    if (!call)
        return is_null("tile_stream_call", "call");
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    TL_FP_SCOPE();
    status = tl_stream_of(d, stream, &s);
    if (status == TILE_OK)
        status = d->driver->queue_call(s->queue, call, user, written, bytes);
    tl_device_leave(d);
    return status;
}

/* ---- events ---- */

tile_status tile_event_create(tile_device *device, tile_event **out_event)
{
    tile_device *d;
    if (!out_event)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_event_create: out_event is NULL");
    tile_status status = tl_device_enter(device, &d);
    if (status != TILE_OK)
        return status;
    tile_event *e = calloc(1, sizeof *e);
    status = e ? d->driver->mark_create(d->dev, &e->mark)
               : tl_fail(TILE_NO_MEMORY, "out of memory");
    if (status == TILE_OK) {
        e->device = d;
        tl_device_keep(d);
        *out_event = e;
    } else {
        free(e);
    }
    tl_device_leave(d);
    return status;
}

void tile_event_free(tile_event *e)
{
    if (!e)
        return;
    TL_INVARIANT_VOID(e->device && e->mark, "an event of no device: was it freed before?");
    tile_device *d = e->device;
    if (tl_device_enter_to_free(d)) {
        d->driver->mark_free(e->mark);
        free(e);
        tl_device_leave(d);
    }
    tl_device_drop(d);
}

tile_status tile_event_record(tile_event *e, tile_stream *stream)
{
    tile_device *d;
    tile_stream *s;
    if (!e)
        return is_null("tile_event_record", "the event");
    tile_status status = tl_device_enter(e->device, &d);
    if (status != TILE_OK)
        return status;
    status = tl_stream_of(d, stream, &s);
    if (status == TILE_OK)
        status = d->driver->mark_record(e->mark, s->queue);
    tl_device_leave(d);
    return status;
}

/* On a stream of the event's device, or of another one whose driver has the same marks. */
static tile_status wait_in(tile_event *e, tile_stream *stream)
{
    if (!stream || stream->device == e->device) {
        tile_stream *s = stream ? stream : e->device->default_stream;
        return e->device->driver->mark_wait(e->mark, s->queue);
    }
    tile_device *d;
    tile_status status = tl_device_enter(stream->device, &d);
    if (status != TILE_OK)
        return status;
    status = d->driver->mark_wait == e->device->driver->mark_wait &&
                     (d->driver == e->device->driver || !d->driver->queue_copy_from)
                 ? d->driver->mark_wait(e->mark, stream->queue)
                 : tl_fail(TILE_BAD_ARGUMENT,
                           "tile_stream_wait_event: the stream is of %s, the event of %s", d->name,
                           e->device->name);
    tl_device_leave(d);
    return status;
}

tile_status tile_stream_wait_event(tile_stream *stream, tile_event *e)
{
    tile_device *d;
    if (!e)
        return is_null("tile_stream_wait_event", "the event");
    tile_status status = tl_device_enter(e->device, &d);
    if (status != TILE_OK)
        return status;
    status = wait_in(e, stream);
    tl_device_leave(d);
    return status;
}

tile_status tile_event_synchronize(tile_event *e)
{
    tile_device *d;
    if (!e)
        return is_null("tile_event_synchronize", "the event");
    tile_status status = tl_device_enter(e->device, &d);
    if (status != TILE_OK)
        return status;
    status = d->driver->mark_synchronize(e->mark);
    tl_device_leave(d);
    return status;
}

tile_status tile_event_elapsed(tile_event *from, tile_event *to, double *out_milliseconds)
{
    TL_FP_SCOPE();
    tile_device *d;
    if (!from || !to || !out_milliseconds)
        return is_null("tile_event_elapsed", !from || !to ? "an event" : "out_milliseconds");
    if (from->device != to->device)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_event_elapsed: the events are of two devices");
    tile_status status = tl_device_enter(from->device, &d);
    if (status != TILE_OK)
        return status;
    status = d->driver->mark_elapsed(from->mark, to->mark, out_milliseconds);
    tl_device_leave(d);
    return status;
}
