/* f32 matrix product: examples/03_matmul against OpenBLAS, found at run time, on the same threads
 * in the same run. bench_matmul [SIZE [BM BN BK]] */
#include "bench.h"
#include <dlfcn.h>
#include <math.h>

enum { ROUNDS = 15 };
typedef void Gemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);

static Gemm *find_blas(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "cblas_sgemm") : NULL;
    return (Gemm *)(uintptr_t)symbol;
}

/* Rows of the product, in f64: enough of them that no part of a tile is left out. */
static double worst_of_rows(const float *a, const float *b, const float *c, int n)
{
    double worst = 0;
    for (int i = 0; i < n; i += n / 7 + 1)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += (double)a[(size_t)i * (size_t)n + (size_t)k] *
                       (double)b[(size_t)k * (size_t)n + (size_t)j];
            double off = fabs(sum - (double)c[(size_t)i * (size_t)n + (size_t)j]);
            worst = off <= worst ? worst : off; /* NaN is worst */
        }
    return worst;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1024;
    size_t count = (size_t)n * (size_t)n;
    float *a = aligned_alloc(64, count * 4 + 64), *b = aligned_alloc(64, count * 4 + 64);
    float *c = aligned_alloc(64, count * 4 + 64), *d = aligned_alloc(64, count * 4 + 64);
    for (size_t i = 0; i < count; i++)
        a[i] = (float)(i % 127) / 64 - 1, b[i] = (float)(i % 131) / 64 - 1, c[i] = NAN, d[i] = 0;
    tile_const consts[] = {{"BM", 96, NULL}, {"BN", 512, NULL}, {"BK", 256, NULL}, {0}};
    for (int i = 0; i < 3 && i + 2 < argc; i++) consts[i].value = atoi(argv[i + 2]);
    tile_module *module = bench_module("03_matmul/matmul");
    tile_kernel *kernel = bench_kernel(module, "matmul", consts);
    Gemm *gemm = find_blas();
    double tile[ROUNDS], blas[ROUNDS], worst = 0;
    for (int i = -2; i < ROUNDS; i++) { /* two to warm up */
        double t0 = now();
        TRY(tile_launch(kernel, NULL,
                        (tile_arg[]){tile_view(a, n, n), tile_view(b, n, n), tile_view(c, n, n)},
                        3));
        TRY(tile_stream_synchronize(NULL));
        double t1 = now();
        if (gemm) gemm(101, 111, 111, n, n, n, 1, a, n, b, n, 0, d, n);
        if (i >= 0) tile[i] = t1 - t0, blas[i] = now() - t1;
    }
    double ops = 2e-9 * (double)n * (double)count, t = ops / median(tile, ROUNDS),
           o = ops / median(blas, ROUNDS);
    for (size_t i = 0; gemm && i < count; i++) worst = fmax(worst, fabsf(c[i] - d[i]));
    /* both sum n products of numbers up to 1 */
    DEMAND(worst <= 1e-6 * n, "%g from OpenBLAS's product", worst);
    worst = worst_of_rows(a, b, c, n);
    DEMAND(worst <= 1e-6 * n, "%g from the product in f64", worst);
    printf("| matmul f32 %d, %d thread%s | %.1f GFLOP/s |", n, bench_threads(),
           bench_threads() > 1 ? "s" : "", t);
    if (gemm) printf(" OpenBLAS %.1f GFLOP/s | %.2f |\n", o, t / o);
    else printf(" no libopenblas.so.0 | |\n");
    tile_module_free(module);
    free(a), free(b), free(c), free(d);
    return 0;
}
