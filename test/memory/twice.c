/* A kernel's whole life, twice; a third time after a failure. One of them may be refused memory
 * (fail_nth.c), and a status ends it then; the next must find everything in order, or be told that
 * LLVM is not used any more. Arguments: a device, a file. Ends with 0, or 70 after a failure; 4:
 * there were two. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/include/tile_jit.h"

enum { N = 64 };

static float x[N], y[N];

static tile_status launch(tile_device *device, const char *path)
{
    tile_module *module = NULL;
    tile_kernel *kernel = NULL;
    tile_stream *stream = NULL;
    tile_buffer *in = NULL, *out = NULL;
    tile_jit_options options = TILE_JIT_OPTIONS_INIT;
    options.cache = "off";
    tile_status s = tile_module_load_file(device, path, &options, &module);
    if (s == TILE_OK)
        s = tile_kernel_get(module, "k", NULL, &kernel);
    if (s == TILE_OK)
        s = tile_kernel_prepare(kernel);
    if (s == TILE_OK)
        s = tile_stream_create(device, &stream);
    if (s == TILE_OK)
        s = tile_buffer_alloc(device, sizeof x, &in);
    if (s == TILE_OK)
        s = tile_buffer_alloc(device, sizeof y, &out);
    if (s == TILE_OK)
        s = tile_buffer_upload(in, 0, x, sizeof x, stream);
    if (s == TILE_OK)
        s = tile_launch(kernel, stream,
                        (tile_arg[]){tile_f32_view(in, N), tile_f32_view(out, N)}, 2);
    if (s == TILE_OK)
        s = tile_buffer_download(out, 0, y, sizeof y, stream);
    if (s == TILE_OK)
        s = tile_stream_synchronize(stream);
    tile_buffer_free(out);
    tile_buffer_free(in);
    tile_stream_free(stream);
    tile_module_free(module);
    return s;
}

static tile_status life(const char *name, const char *path)
{
    tile_device *device = NULL;
    memset(y, 0, sizeof y);
    tile_status s = tile_device_open(name, &device);
    if (s == TILE_OK)
        s = launch(device, path);
    tile_device_close(device);
    if (s == TILE_OK && (y[0] < 2.7f || y[0] > 2.72f || y[N - 1] != y[0])) {
        fprintf(stderr, "y[0] is %g\n", (double)y[0]);
        return TILE_INTERNAL;
    }
    return s;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    for (int i = 0; i < N; i++)
        x[i] = 1;
    int failed = 0;
    for (int i = 0; i < 2 || (i == 2 && failed == 1); i++) {
        tile_status s = life(argv[1], argv[2]);
        bool lost = failed && strstr(tile_last_error(), "in this process any more");
        if (s != TILE_OK)
            fprintf(stderr, "life %d: %s: %s\n", i, tile_status_name(s), tile_last_error());
        if (s == TILE_NO_MEMORY && lost)
            break;
        failed += s != TILE_OK;
        if (s != TILE_OK && s != TILE_NO_MEMORY && s != TILE_IO && s != TILE_UNAVAILABLE)
            return 4;
    }
    return failed > 1 ? 4 : failed ? 70 : 0;
}
