/* C = relu(A B) of f16 on the default device, against plain C in float. Arguments: M, N, K. */
#include "../shared/example.h"
#include "../shared/matmul.h"

int main(int argc, char **argv)
{
    size_t m[3] = {511, 770, 1023}; /* M, N, K */
    for (int i = 0; i < 3 && i + 1 < argc; i++) m[i] = strtoul(argv[i + 1], NULL, 0);
    enum { A, B, C, COUNT };
    size_t size[COUNT] = {m[0] * m[2], m[2] * m[1], m[0] * m[1]}, n = size[C];
    float *host[COUNT];
    uint16_t *half[COUNT];
    double *q = malloc(n * sizeof *q + 1), tile = INFINITY, c_time = INFINITY, error = 0;
    tile_buffer *device[COUNT];
    tile_module *module;
    tile_kernel *kernel;
    for (int i = 0; i < COUNT; i++) {
        host[i] = malloc(size[i] * 4 + 1), half[i] = malloc(size[i] * 2 + 1);
        for (size_t j = 0; j < size[i]; j++)
            half[i][j] = to_f16(host[i][j] = ((float)(j * 7919 % 129) - 64) / 64);
        TRY(tile_buffer_alloc(NULL, size[i] * 2, &device[i]) ||
            tile_buffer_upload(device[i], 0, half[i], size[i] * 2, NULL));
    }
    tile_const consts[] = {{"epilogue", 0, "relu"}, {0}};
    TRY(tile_module_load_file(NULL, KERNEL_DIR "/persistent.tile", NULL, &module) ||
        tile_kernel_get(module, "persistent", consts, &kernel) ||
        tile_kernel_prepare(kernel));
    tile_arg args[] = {tile_f16_view(device[A], m[0], m[2]), tile_f16_view(device[B], m[2], m[1]),
                       tile_f16_view(device[C], m[0], m[1])};
    for (int i = 0; i < 3; i++) {
        double t0 = now();
        TRY(tile_launch(kernel, NULL, args, COUNT) || tile_stream_synchronize(NULL));
        double t1 = now();
        plain(m[0], m[1], m[2], host[A], host[B], host[C], true);
        tile = fmin(tile, t1 - t0), c_time = fmin(c_time, now() - t1);
    }
    TRY(tile_buffer_download(device[C], 0, half[C], n * 2, NULL));
    exact(m[0], m[1], m[2], host[A], host[B], q, true);
    for (size_t i = 0; i < n; i++)
        error = worse(error, fabs(from_f16(half[C][i]) - q[i]) / fmax(q[i], 0x1p-14));
    double ops = 2e-9 * (double)(n * m[2]);
    printf("%zu x %zu x %zu: max relative error %.2g, %.1f GFLOP/s, plain C %.1f GFLOP/s\n", m[0],
           m[1], m[2], error, ops / tile, ops / c_time);
    for (int i = 0; i < COUNT; i++) free(host[i]), free(half[i]), tile_buffer_free(device[i]);
    /* sums are multiples of 2^-12, exact in f32 up to 2^12; then they are rounded to f16 */
    return tile_module_free(module), free(q), !(error <= 0x1p-11);
}
