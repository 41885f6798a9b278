/* Softmax of the rows of a square f32 matrix: examples/02_softmax against memcpy of the same bytes
 *     on as many threads. bench_softmax [SIZE] */
#include "bench.h"
#include <math.h>
#include <pthread.h>

enum { ROUNDS = 15, MAX_THREADS = 64 };

typedef struct Part {
    char *to;
    const char *from;
    size_t bytes;
} Part;

static void *copy_part(void *part)
{
    const Part *p = part;
    memcpy(p->to, p->from, p->bytes);
    return NULL;
}

static void copy(float *to, const float *from, size_t bytes, int threads)
{
    pthread_t thread[MAX_THREADS];
    Part part[MAX_THREADS];
    size_t each = bytes / (size_t)threads;
    for (int i = 0; i < threads; i++) {
        size_t at = each * (size_t)i;
        part[i] =
            (Part){(char *)to + at, (const char *)from + at, i + 1 < threads ? each : bytes - at};
        if (i && pthread_create(&thread[i], NULL, copy_part, &part[i])) exit(1);
    }
    copy_part(&part[0]);
    for (int i = 1; i < threads; i++) pthread_join(thread[i], NULL);
}

/* Some rows in f64. */
static void check(const float *x, const float *y, int n)
{
    for (int r = n - 1; r >= 0; r -= n / 5 + 1) {
        const float *from = x + (size_t)r * (size_t)n, *to = y + (size_t)r * (size_t)n;
        double most = from[0], sum = 0;
        for (int i = 0; i < n; i++) most = fmax(most, from[i]);
        for (int i = 0; i < n; i++) sum += exp(from[i] - most);
        for (int i = 0; i < n; i++) {
            double want = exp(from[i] - most) / sum;
            DEMAND(fabs(to[i] - want) <= 1e-4 * want, "row %d, column %d: %g, not %g", r, i,
                   (double)to[i], want);
        }
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4096, width = 1, threads = bench_threads();
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    while (width < n) width *= 2;
    size_t count = (size_t)n * (size_t)n, bytes = count * 4;
    float *x = aligned_alloc(64, bytes + 64), *y = aligned_alloc(64, bytes + 64),
          *z = aligned_alloc(64, bytes + 64);
    for (size_t i = 0; i < count; i++) x[i] = (float)(i * 7919 % 2003) / 100, y[i] = NAN, z[i] = 0;
    tile_module *module = bench_module("02_softmax/softmax");
    tile_kernel *kernel = bench_kernel(module, "softmax", (tile_const[]){{"B", width, NULL}, {0}});
    double tile[ROUNDS], plain[ROUNDS];
    for (int i = -2; i < ROUNDS; i++) {
        double t0 = now();
        TRY(tile_launch(kernel, NULL, (tile_arg[]){tile_view(x, n, n), tile_view(y, n, n)}, 2));
        TRY(tile_stream_synchronize(NULL));
        double t1 = now();
        copy(z, x, bytes, threads);
        if (i >= 0) tile[i] = t1 - t0, plain[i] = now() - t1;
    }
    double t = median(tile, ROUNDS), c = median(plain, ROUNDS);
    check(x, y, n);
    DEMAND(!memcmp(x, z, bytes), "what was copied differs");
    printf("| softmax f32 %d x %d, %d thread%s | %.1f GB/s |", n, n, threads,
           threads > 1 ? "s" : "", 2e-9 * (double)bytes / t);
    printf(" memcpy %.1f GB/s | %.2f |\n", 2e-9 * (double)bytes / c, c / t);
    tile_module_free(module);
    free(x), free(y), free(z);
    return 0;
}
