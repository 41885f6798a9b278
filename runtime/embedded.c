/* embedded.c: kernels of images that the linker put into the program: what generated headers call.
 *
 * A device keeps a list of the embedded kernels launched on it, by image and name. It only grows,
 * at its head, so a launch walks it without a lock; making an entry takes the device's lock. */
#include <stdlib.h>
#include "runtime/runtime.h"

struct tl_embedded {
    const void *image;
    const char *name; /* in the program's read-only data */
    tile_module *module;
    tile_kernel *kernel;
    struct tl_embedded *next;
};

static tl_embedded *find(tl_embedded *list, const void *image, const char *name)
{
    while (list && (list->image != image || strcmp(list->name, name) != 0))
        list = list->next;
    return list;
}

/* The size of one image or several. Each holds its own size; the list ends where no image header
 * follows. */
static size_t bytes_of(const void *image)
{
    size_t n = 0, next;
    while (tl_image_extent((const char *)image + n, SIZE_MAX / 2, &next))
        n += next;
    TL_INVARIANT_OR(0, n % 64 == 0, "images of %zu bytes", n);
    return n;
}

static tile_status make(tile_device *d, const void *image, const char *name,
                        tl_embedded **out_entry)
{
    TL_FP_SCOPE();
    tl_embedded *e = calloc(1, sizeof *e);
    if (!e)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    e->image = image;
    e->name = name;
    tile_status status = tile_module_load_image(d, image, bytes_of(image), &e->module);
    if (status == TILE_OK)
        status = tile_kernel_get(e->module, name, NULL, &e->kernel);
    if (status == TILE_OK)
        status = tile_kernel_prepare(e->kernel);
    if (status != TILE_OK) {
        tile_module_free(e->module);
        free(e);
        return status;
    }
    e->next = atomic_load(&d->embedded);
    while (!atomic_compare_exchange_weak(&d->embedded, &e->next, e)) {}
    *out_entry = e;
    return TILE_OK;
}

tile_status tile_launch_embedded(const void *image, const char *name, tile_stream *stream,
                                 const tile_arg *args, size_t nargs)
{
    tile_device *d;
    if (!image || !name)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_embedded: the %s is NULL",
                       image ? "name" : "image");
    tile_status status = tl_device_enter(stream ? stream->device : NULL, &d);
    if (status != TILE_OK)
        return status;
    tl_embedded *e = find(atomic_load(&d->embedded), image, name);
    if (!e)
        /* if two threads make one, only the newer is found; both are freed with the device */
        status = make(d, image, name, &e);
    if (status == TILE_OK)
        status = tile_launch(e->kernel, stream ? stream : d->default_stream, args, nargs);
    tl_device_leave(d);
    return status;
}

void tl_embedded_free(tile_device *d)
{
    for (tl_embedded *e = atomic_load(&d->embedded), *next; e; e = next) {
        next = e->next;
        tile_module_free(e->module);
        free(e);
    }
}
