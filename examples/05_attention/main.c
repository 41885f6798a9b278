/* Causal attention, forward, against plain C. Arguments: heads, length, head dimension. */
#include "../shared/example.h"
#include "plain.h"

int main(int argc, char **argv)
{
    size_t a[3] = {3, 509, 60}, width = 16; /* H, M = N, D */
    for (int i = 0; i < 3 && i + 1 < argc; i++) a[i] = strtoul(argv[i + 1], NULL, 0);
    while (width < a[2]) width *= 2;
    size_t s = a[0] * a[1] * a[2];
    enum { Q, K, V, O, COUNT };
    size_t size[COUNT] = {s, s, s, s}, n = size[COUNT - 1];
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
    tile_const consts[] = {{"BD", (int64_t)width, 0}, {"CAUSAL", 1, 0}, {0}};
    TRY(tile_module_load_file(NULL, KERNEL_DIR "/attention.tile", NULL, &module) ||
        tile_kernel_get(module, "attention", consts, &kernel) ||
        tile_kernel_prepare(kernel));
#define VIEW(i) tile_f32_view(device[i], a[0], a[1], a[2])
    tile_arg args[] = {VIEW(Q), VIEW(K), VIEW(V), VIEW(O), tile_f32(1 / sqrtf((float)a[2]))};
    for (int i = 0; i < 3; i++) {
        double t0 = now();
        TRY(tile_launch(kernel, NULL, args, COUNT + 1) || tile_stream_synchronize(NULL));
        double t1 = now();
        plain(a[0], a[1], a[2], host[Q], host[K], host[V], p);
        tile = fmin(tile, t1 - t0), c_time = fmin(c_time, now() - t1);
    }
    TRY(tile_buffer_download(device[COUNT - 1], 0, host[COUNT - 1], n * 4, NULL));
    exact(a[0], a[1], a[2], host[Q], host[K], host[V], q);
    for (size_t i = 0; i < n; i++) error = worse(error, fabs(host[COUNT - 1][i] - q[i]));
    printf("%zu x %zu x %zu: max error %.2g, %.3f ms, plain C %.3f ms\n", a[0], a[1], a[2], error,
           1e3 * tile, 1e3 * c_time);
    for (int i = 0; i < COUNT; i++) free(host[i]), tile_buffer_free(device[i]);
    return tile_module_free(module), free(p), free(q), !(error <= 2e-6);
}
