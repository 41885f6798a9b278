/* z = x + y on the default device, against plain C. Argument: the length. */
#include "../shared/example.h"
#include "plain.h"

int main(int argc, char **argv)
{
    size_t length = argc > 1 ? strtoul(argv[1], NULL, 0) : 4000037;
    enum { X, Y, Z, COUNT };
    size_t size[COUNT] = {length, length, length}, n = size[COUNT - 1];
    float *host[COUNT], *p = malloc(n * sizeof *p + 1);
    double *q = malloc(n * sizeof *q + 1), tile = INFINITY, c_time = INFINITY, error = 0;
    tile_buffer *device[COUNT];
    tile_module *module;
    tile_kernel *kernel;
    for (int i = 0; i < COUNT; i++) {
        host[i] = malloc(size[i] * 4 + 1);
        for (size_t j = 0; j < size[i]; j++) host[i][j] = (float)(j * 7919 % 2003) / 1001 - 1;
        TRY(tile_buffer_alloc(NULL, size[i] * 4, &device[i]) ||
            tile_buffer_upload(device[i], 0, host[i], size[i] * 4, NULL));
    }
    TRY(tile_module_load_file(NULL, KERNEL_DIR "/vector_add.tile", NULL, &module) ||
        tile_kernel_get(module, "vector_add", NULL, &kernel) ||
        tile_kernel_prepare(kernel));
    tile_arg args[] = {tile_f32_view(device[X], n), tile_f32_view(device[Y], n),
                       tile_f32_view(device[Z], n)};
    for (int i = 0; i < 9; i++) {
        double t0 = now();
        TRY(tile_launch(kernel, NULL, args, COUNT) || tile_stream_synchronize(NULL));
        double t1 = now();
        plain(n, host[X], host[Y], p);
        tile = fmin(tile, t1 - t0), c_time = fmin(c_time, now() - t1);
    }
    TRY(tile_buffer_download(device[COUNT - 1], 0, host[COUNT - 1], n * 4, NULL));
    exact(n, host[X], host[Y], q);
    for (size_t i = 0; i < n; i++) error = worse(error, fabs(host[COUNT - 1][i] - q[i]));
    printf("n = %zu: max error %g, %.1f GB/s, plain C %.1f GB/s\n", n, error,
           12e-9 * (double)n / tile, 12e-9 * (double)n / c_time);
    for (int i = 0; i < COUNT; i++) free(host[i]), tile_buffer_free(device[i]);
    return tile_module_free(module), free(p), free(q), !(error <= 0);
}
