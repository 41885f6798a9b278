/* C = A B of f16 with a long K, split among programs, on the default device, against plain C in
 * float. Arguments: M, N, K, and how many programs share a tile of C. */
#include "../shared/example.h"
#include "../shared/matmul.h"

int main(int argc, char **argv)
{
    size_t m[4] = {100, 120, 20011, 8}; /* M, N, K, S */
    for (int i = 0; i < 4 && i + 1 < argc; i++) m[i] = strtoul(argv[i + 1], NULL, 0);
    enum { A, B, C, PARTS, ARRIVED, COUNT, BLOCK = 64 };
    size_t n = m[0] * m[1], down = (m[0] + BLOCK - 1) / BLOCK, across = (m[1] + BLOCK - 1) / BLOCK;
    size_t size[COUNT] = {m[0] * m[2], m[2] * m[1], n, n * m[3], down * across};
    size_t bytes[COUNT] = {size[A] * 2, size[B] * 2, n * 2, size[PARTS] * 4, size[ARRIVED] * 4};
    float *host[PARTS];
    uint16_t *half[PARTS], *first = malloc(n * 2 + 1);
    double *q = malloc(n * sizeof *q + 1), tile = INFINITY, c_time = INFINITY, error = 0;
    tile_buffer *device[COUNT];
    tile_module *module;
    tile_kernel *kernel;
    for (int i = 0; i < COUNT; i++) TRY(tile_buffer_alloc(NULL, bytes[i], &device[i]));
    for (int i = 0; i < PARTS; i++) {
        host[i] = malloc(size[i] * 4 + 1), half[i] = malloc(size[i] * 2 + 1);
        for (size_t j = 0; j < size[i]; j++)
            half[i][j] = to_f16(host[i][j] = ((float)(j * 7919 % 129) - 64) / 64);
        TRY(tile_buffer_upload(device[i], 0, half[i], bytes[i], NULL));
    }
    tile_const consts[] = {{"BM", BLOCK, 0}, {"BN", BLOCK, 0}, {0}};
    TRY(tile_buffer_fill(device[ARRIVED], 0, 0, bytes[ARRIVED], NULL) ||
        tile_module_load_file(NULL, KERNEL_DIR "/split_k.tile", NULL, &module) ||
        tile_kernel_get(module, "split_k", consts, &kernel) || tile_kernel_prepare(kernel));
    tile_arg args[] = {tile_f16_view(device[A], m[0], m[2]), tile_f16_view(device[B], m[2], m[1]),
                       tile_f16_view(device[C], m[0], m[1]),
                       tile_f32_view(device[PARTS], m[3], m[0], m[1]),
                       tile_u32_view(device[ARRIVED], down, across)};
    for (int i = 0; i < 3; i++) {
        double t0 = now();
        TRY(tile_launch(kernel, NULL, args, COUNT) || tile_stream_synchronize(NULL));
        double t1 = now();
        plain(m[0], m[1], m[2], host[A], host[B], host[C], false);
        tile = fmin(tile, t1 - t0), c_time = fmin(c_time, now() - t1);
        TRY(tile_buffer_download(device[C], 0, i ? half[C] : first, n * 2, NULL));
        if (i && memcmp(half[C], first, n * 2)) return fprintf(stderr, "launches differ\n"), 1;
    }
    exact(m[0], m[1], m[2], host[A], host[B], q, false);
    for (size_t i = 0; i < n; i++)
        error = worse(error, fabs(from_f16(half[C][i]) - q[i]) / fmax(fabs(q[i]), 0x1p-14));
    printf("%zu x %zu x %zu by %zu: max relative error %.2g, %.3f ms, plain C %.3f ms\n", m[0],
           m[1], m[2], m[3], error, 1e3 * tile, 1e3 * c_time);
    for (int i = 0; i < COUNT; i++) tile_buffer_free(device[i]);
    for (int i = 0; i < PARTS; i++) free(host[i]), free(half[i]);
    /* sums are multiples of 2^-12, exact in f32 up to 2^12; then they are rounded to f16 */
    return tile_module_free(module), free(q), free(first), !(error <= 0x1p-11);
}
