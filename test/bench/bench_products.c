/* tile_gemm of libtilekernels beside OpenBLAS (libopenblas.so.0, found at run time) on random
 * shapes of the sizes that models use, in f32 on the default device:
 *
 *     OPENBLAS_NUM_THREADS=1 TILE_THREADS=1 bench_products [COUNT]
 *
 * A line for each shape: its sizes, both times, and OpenBLAS's time over ours; then how these
 * ratios are distributed. Each time is the least of nine runs of 0.3 ms or more. OpenBLAS takes a
 * slower kernel on CPUs that it does not know: OPENBLAS_CORETYPE=SKYLAKEX where it has AVX-512. */
#include "bench.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <tile_kernels.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
typedef void Gemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);

static Gemm *blas;
static tile_kernels *library;
static int M, N, K;
static bool tb;
static float *A, *B, *C;

static void run_blas(void)
{
    blas(ROW_MAJOR, PLAIN, tb ? TRANSPOSED : PLAIN, M, N, K, 1, A, K, B, tb ? K : N, 0, C, N);
}

static void run_ours(void)
{
    TRY(tile_gemm(library, NULL, TILE_F32, TILE_NO_TRANSPOSE,
                  tb ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE, M, N, K, 1, A, K, B, tb ? K : N, 0, C, N,
                  NULL));
}

/* Of one call, in microseconds. */
static double time_of(void (*call)(void))
{
    for (int calls = 1;; calls *= 2) {
        double start = now();
        for (int i = 0; i < calls; i++)
            call();
        double us = (now() - start) * 1e6;
        if (us > 300 || calls >= 4096)
            return us / calls;
    }
}

static float *floats(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof *p + 64) / 64 * 64);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(i % 7) - 3;
    return p;
}

static int of(const int *list, int n)
{
    static unsigned state = 44;
    state = state * 1103515245 + 12345;
    return list[(state >> 16) % (unsigned)n];
}

/* M is a number of rows or tokens, N and K are widths of layers; at most 2e9 multiplications. */
static void draw(void)
{
    static const int rows[] = {1, 2, 4, 7, 8, 16, 32, 50, 64, 77, 100, 128, 196, 197, 256, 512, 784,
                               1024};
    static const int widths[] = {64, 96, 128, 160, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536,
                                 2048, 3072, 4096};
    static const int either[] = {0, 1};
    do {
        M = of(rows, sizeof rows / sizeof *rows);
        N = of(widths, sizeof widths / sizeof *widths);
        K = of(widths, sizeof widths / sizeof *widths);
        tb = of(either, 2);
    } while ((double)M * N * K > 2e9);
}

static double compare(void)
{
    double theirs = 1e30, ours = 1e30, t;
    A = floats((size_t)M * (size_t)K);
    B = floats((size_t)N * (size_t)K);
    C = floats((size_t)M * (size_t)N);
    run_blas();
    run_ours();
    for (int i = 0; i < 9; i++) {
        theirs = (t = time_of(run_blas)) < theirs ? t : theirs;
        ours = (t = time_of(run_ours)) < ours ? t : ours;
    }
    printf("%s %5d %5d %5d  %9.2f us %9.2f us  %.2f\n", tb ? "nt" : "nn", M, N, K, theirs, ours,
           theirs / ours);
    free(A);
    free(B);
    free(C);
    return theirs / ours;
}

int main(int argc, char **argv)
{
    enum { MOST = 1000 };
    double ratios[MOST];
    int count = argc > 1 ? atoi(argv[1]) : 20;
    void *found = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    blas = found ? (Gemm *)(uintptr_t)dlsym(found, "cblas_sgemm") : NULL;
    if (!blas || count < 1 || count > MOST) {
        fprintf(stderr, blas ? "bench_products [COUNT], 1 to 1000\n" : "no libopenblas.so.0\n");
        return 2;
    }
    TRY(tile_kernels_open(NULL, &library));
    for (int i = 0; i < count; i++) {
        draw();
        ratios[i] = compare();
    }
    double middle = median(ratios, count); /* sorts them */
    printf("of %d shapes: median %.2f, least %.2f, a twentieth below %.2f\n", count,
           middle, ratios[0], ratios[count / 20]);
    tile_kernels_close(library);
    return 0;
}
