/* embedded.c: kernels of images that the linker put into the program: what generated headers call.
 *
 * A device keeps a list of the embedded kernels launched on it, by image and name. It only grows,
 * at its head, so a launch walks it without a lock; making an entry takes the device's lock. */
#include <stdlib.h>
#include "runtime/runtime.h"

struct tl_embedded {
    const void *image;
    const char *name;   /* in the program's read-only data */
    tile_const *consts; /* a copy */
    tile_module *module;
    tile_kernel *kernel;
    struct tl_embedded *next;
};

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_consts(const tile_const *a, const tile_const *b)
{
    for (; a && a->name && b && b->name; a++, b++)
        if (strcmp(a->name, b->name) != 0 || a->value != b->value || !same_text(a->text, b->text))
            return false;
    return !(a && a->name) && !(b && b->name);
}

static tl_embedded *find(tl_embedded *list, const void *image, const char *name,
                         const tile_const *consts)
{
    while (list && (list->image != image || strcmp(list->name, name) != 0 ||
                    !same_consts(list->consts, consts)))
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

static void free_entry(tl_embedded *e)
{
    tile_module_free(e->module);
    tl_consts_free(e->consts);
    free(e);
}

static tile_status load(tile_device *d, tl_embedded *e)
{
    tile_status status = tile_module_load_image(d, e->image, bytes_of(e->image), &e->module);
    if (status == TILE_OK)
        status = tile_kernel_get(e->module, e->name, e->consts, &e->kernel);
    return status == TILE_OK ? tile_kernel_prepare(e->kernel) : status;
}

static tile_status make(tile_device *d, const void *image, const char *name,
                        const tile_const *consts, tl_embedded **out_entry)
{
    TL_FP_SCOPE();
    tl_embedded *e = calloc(1, sizeof *e);
    if (!e)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    e->image = image;
    e->name = name;
    e->consts = tl_consts_copy(consts);
    tile_status status = e->consts ? load(d, e) : tl_fail(TILE_NO_MEMORY, "out of memory");
    if (status != TILE_OK) {
        free_entry(e);
        return status;
    }
    e->next = atomic_load(&d->embedded);
    while (!atomic_compare_exchange_weak(&d->embedded, &e->next, e)) {}
    *out_entry = e;
    return TILE_OK;
}

tile_status tile_launch_embedded_variant(const void *image, const char *name,
                                         const tile_const *consts, tile_stream *stream,
                                         const tile_arg *args, size_t nargs)
{
    tile_device *d;
    if (!image || !name)
        return tl_fail(TILE_BAD_ARGUMENT, "tile_launch_embedded: the %s is NULL",
                       image ? "name" : "image");
    tile_status status = tl_device_enter(stream ? stream->device : NULL, &d);
    if (status != TILE_OK)
        return status;
    tl_embedded *e = find(atomic_load(&d->embedded), image, name, consts);
    if (!e)
        /* if two threads make one, only the newer is found; both are freed with the device */
        status = make(d, image, name, consts, &e);
    if (status == TILE_OK)
        status = tile_launch(e->kernel, stream ? stream : d->default_stream, args, nargs);
    tl_device_leave(d);
    return status;
}

tile_status tile_launch_embedded(const void *image, const char *name, tile_stream *stream,
                                 const tile_arg *args, size_t nargs)
{
    return tile_launch_embedded_variant(image, name, NULL, stream, args, nargs);
}

void tl_embedded_free(tile_device *d)
{
    for (tl_embedded *e = atomic_load(&d->embedded), *next; e; e = next) {
        next = e->next;
        free_entry(e);
    }
}
