/* Every allocation of a launch's whole life fails in turn: each time the answer is TILE_NO_MEMORY
 * (or the work is done all the same), nothing leaks and nothing crashes. And a launch after prepare
 * allocates nothing. The allocator is wrapped here, so this test means nothing under a sanitizer
 * that wraps it, too. */
#include "codegen/include/tilec.h"
#include "runtime/include/tile.h"
#include "test/unit/unit.h"
#include <stdlib.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WRAPPED 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static _Thread_local long countdown =
    -1; /* allocations of this thread until one fails; -1: never */
static _Thread_local long allocations;
static _Thread_local long balance;

static bool refused(void)
{
    allocations++;
    if (countdown >= 0 && countdown-- == 0)
        return true;
    balance++;
    return false;
}
void *malloc(size_t size)
{
    return refused() ? NULL : __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    return refused() ? NULL : __libc_calloc(n, size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
    return refused() ? NULL : __libc_memalign(alignment, size);
}
void free(void *p)
{
    balance -= p != NULL;
    __libc_free(p);
}
#endif

static const char source[] = "kernel k(f32 x[N], const int B = 64) grid(cdiv(N, B))\n"
                             "{\n"
                             "    int i = pid(0) * B;\n"
                             "    x[i +: B] = sum(x[i +: B]) + 1;\n"
                             "}\n";

#ifdef WRAPPED
static const void *image;
static size_t image_size;
static float data[256];

/* The whole life of a launch; the first status that is not OK. */
static tile_status life(void)
{
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = NULL;
    tile_stream *stream = NULL;
    tile_buffer *b = NULL;
    tile_event *e = NULL;
    const tile_const consts[] = {{"B", 64, 0}, {0, 0, 0}};
    tile_status s = tile_device_open("cpu", &dev);
    if (!s)
        s = tile_module_load_image(dev, image, image_size, &mod);
    if (!s)
        s = tile_kernel_get(mod, "k", consts, &k);
    if (!s)
        s = tile_kernel_prepare(k);
    if (!s)
        s = tile_stream_create(dev, &stream);
    if (!s)
        s = tile_event_create(dev, &e);
    if (!s)
        s = tile_buffer_alloc(dev, sizeof data, &b);
    if (!s)
        s = tile_buffer_upload(b, 0, data, sizeof data, stream);
    if (!s)
        s = tile_launch(k, stream, (tile_arg[]){tile_view_typed(TILE_F32, tile_buffer_ptr(b), 256)},
                        1);
    if (!s)
        s = tile_event_record(e, stream);
    if (!s)
        s = tile_stream_synchronize(stream);
    tile_event_free(e);
    tile_stream_free(stream); /* first: the launch in it may be running still */
    tile_buffer_free(b);
    tile_module_free(mod);
    tile_device_close(dev);
    return s;
}

static void each_fails(void)
{
    int failures = 0;
    life(); /* what the C library keeps for itself is there now */
    for (long n = 0; n < 1000; n++) {
        long before = balance;
        countdown = n;
        tile_status s = life();
        bool reached = countdown < 0;
        countdown = -1;
        if (!CHECK(s == TILE_OK || s == TILE_NO_MEMORY))
            fprintf(stderr, "    allocation %ld: %s\n", n, tile_last_error());
        if (!CHECK(balance == before))
            fprintf(stderr, "    allocation %ld leaks %ld\n", n, balance - before);
        failures += s != TILE_OK;
        if (!reached) {
            CHECK(s == TILE_OK);
            break;
        }
    }
    CHECK(failures >= 8);
}

static void launches_allocate_nothing(void)
{
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = NULL;
    CHECK_INT(tile_device_open("cpu", &dev), TILE_OK);
    CHECK_INT(tile_module_load_image(dev, image, image_size, &mod), TILE_OK);
    CHECK_INT(tile_kernel_get(mod, "k", NULL, &k), TILE_OK);
    CHECK_INT(tile_kernel_prepare(k), TILE_OK);
    long before = allocations;
    for (int i = 0; i < 100; i++)
        CHECK_INT(tile_launch(k, NULL, (tile_arg[]){tile_view(data, 256)}, 1), TILE_OK);
    CHECK_INT(allocations - before, 0);
    tile_module_free(mod);
    tile_device_close(dev);
}
#endif

int main(void)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out = NULL;
    CHECK_INT(tilec_compile_source("faults.tile", source, sizeof source - 1, &o, &out), TILEC_OK);
#ifdef WRAPPED
    image = tilec_output_data(out, &image_size);
    if (CHECK(image != NULL)) {
        each_fails();
        launches_allocate_nothing();
    }
#endif
    tilec_output_free(out);
    return unit_result();
}
