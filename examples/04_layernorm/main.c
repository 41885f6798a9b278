/* Layer normalisation of rows on the default device, against plain C. Arguments: rows, columns. */
#include "../shared/example.h"
#include "plain.h"

int main(int argc, char **argv)
{
    size_t r = argc > 2 ? strtoul(argv[1], NULL, 0) : 3001;
    size_t c = argc > 2 ? strtoul(argv[2], NULL, 0) : 1777, width = 1;
    while (width < c) width *= 2; /* of the tile that holds a row */
    enum { X, W, B, Y, COUNT };
    size_t size[COUNT] = {r * c, c, c, r * c}, n = size[COUNT - 1];
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
    tile_const consts[] = {{"B", (int64_t)width, 0}, {0}};
    TRY(tile_module_load_file(NULL, KERNEL_DIR "/layernorm.tile", NULL, &module) ||
        tile_kernel_get(module, "layernorm", consts, &kernel) ||
        tile_kernel_prepare(kernel));
    tile_arg args[] = {tile_f32_view(device[X], r, c), tile_f32_view(device[W], c),
                       tile_f32_view(device[B], c), tile_f32_view(device[Y], r, c)};
    for (int i = 0; i < 5; i++) {
        double t0 = now();
        TRY(tile_launch(kernel, NULL, args, COUNT) || tile_stream_synchronize(NULL));
        double t1 = now();
        plain(r, c, host[X], host[W], host[B], p);
        tile = fmin(tile, t1 - t0), c_time = fmin(c_time, now() - t1);
    }
    TRY(tile_buffer_download(device[COUNT - 1], 0, host[COUNT - 1], n * 4, NULL));
    exact(r, c, host[X], host[W], host[B], q);
    for (size_t i = 0; i < n; i++) error = worse(error, fabs(host[COUNT - 1][i] - q[i]));
    printf("%zu x %zu: max error %.2g, %.3f ms, plain C %.3f ms\n", r, c, error, 1e3 * tile,
           1e3 * c_time);
    for (int i = 0; i < COUNT; i++) free(host[i]), tile_buffer_free(device[i]);
    return tile_module_free(module), free(p), free(q), !(error <= 1e-5);
}
