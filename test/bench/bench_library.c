/* Calls of libtilekernels, and of OpenBLAS where it has the function, one at a time, for
 * library_ratios.py, which times PyTorch beside them. Commands on the standard input, an answer
 * each:
 *
 *     case NAME NUMBER...     makes the arrays of a call; "ok", or "blas" if OpenBLAS has it too
 *     ours SECONDS            the processor's time of one call, in microseconds, of calls that
 *     blas SECONDS            take so long together
 *
 * All is f32, on the default device. */
#include "bench.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <tile_kernels.h>

enum { ARRAYS = 10, NUMBERS = 12 };
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
typedef void Gemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);

static tile_kernels *library;
static Gemm *blas;
static int64_t n[NUMBERS];    /* those of the case */
static float *arrays[ARRAYS]; /* of it, too */

static void make(int i, int64_t count)
{
    free(arrays[i]);
    arrays[i] = aligned_alloc(64, ((size_t)count * sizeof(float) + 64) / 64 * 64);
    DEMAND(arrays[i], "out of memory");
    for (int64_t j = 0; j < count; j++)
        arrays[i][j] = (float)((j * 37 + i) % 101) / 64 - 0.8F;
}

#define A arrays

/* ---- products: batch, M, N, K, is B transposed ---- */

static void make_gemm(void)
{
    make(0, n[0] * n[1] * n[3]);
    make(1, n[0] * n[2] * n[3]);
    make(2, n[0] * n[1] * n[2]);
}

static void gemm(void)
{
    tile_transpose tb = n[4] ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE;
    int64_t M = n[1], N = n[2], K = n[3], ldb = n[4] ? K : N;
    if (n[0] == 1)
        TRY(tile_gemm(library, NULL, TILE_F32, TILE_NO_TRANSPOSE, tb, M, N, K, 1, A[0], K, A[1],
                      ldb, 0, A[2], N, NULL));
    else
        TRY(tile_gemm_batched(library, NULL, TILE_F32, TILE_NO_TRANSPOSE, tb, M, N, K, 1, A[0], K,
                              M * K, A[1], ldb, N * K, 0, A[2], N, M * N, n[0], NULL));
}

static void blas_gemm(void)
{
    int M = (int)n[1], N = (int)n[2], K = (int)n[3];
    for (int64_t z = 0; z < n[0]; z++)
        blas(ROW_MAJOR, PLAIN, n[4] ? TRANSPOSED : PLAIN, M, N, K, 1, A[0] + z * M * K, K,
             A[1] + z * N * K, n[4] ? K : N, 0, A[2] + z * M * N, N);
}

/* ---- attention: B, H, HK, M, N, D, causal ---- */

static void make_attention(void)
{
    const int64_t q = n[0] * n[1] * n[3] * n[5], k = n[0] * n[2] * n[4] * n[5];
    const int64_t sizes[] = {q, k, k, q, q, q, k, k, n[0] * n[1] * n[3], n[0] * n[1] * n[3]};
    for (int i = 0; i < ARRAYS; i++)
        make(i, sizes[i]);
}

/* Heads first, as PyTorch has them. */
static tile_attention_options attention_options(void)
{
    tile_attention_options o = TILE_ATTENTION_OPTIONS_INIT;
    const int64_t q[] = {n[1] * n[3] * n[5], n[3] * n[5], n[5]};
    const int64_t k[] = {n[2] * n[4] * n[5], n[4] * n[5], n[5]};
    o.causal = (int)n[6];
    o.lse = A[8];
    memcpy(o.q_strides, q, sizeof q);
    memcpy(o.o_strides, q, sizeof q);
    memcpy(o.k_strides, k, sizeof k);
    memcpy(o.v_strides, k, sizeof k);
    return o;
}

static void attention(void)
{
    tile_attention_options o = attention_options();
    TRY(tile_attention(library, NULL, TILE_F32, n[0], n[1], n[2], n[3], n[4], n[5], A[0], A[1],
                       A[2], A[3], &o));
}

static void make_attention_backward(void)
{
    make_attention();
    attention();
}

static void attention_backward(void)
{
    tile_attention_options o = attention_options();
    TRY(tile_attention_backward(library, NULL, TILE_F32, n[0], n[1], n[2], n[3], n[4], n[5], A[0],
                                A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[9], &o));
}

/* ---- rows: M, N ---- */

static void make_rows(void)
{
    make(0, n[0] * n[1]);
    make(1, n[0] * n[1]);
    make(2, n[0] > n[1] ? n[0] : n[1]);
    make(3, n[0] > n[1] ? n[0] : n[1]);
    make(4, n[0]);
    make(5, n[0]);
    for (int64_t i = 0; i < n[0]; i++)
        ((int32_t *)A[4])[i] = (int32_t)(i * 7 % n[1]);
}

static void softmax(void)
{
    TRY(tile_softmax(library, NULL, TILE_F32, n[0], n[1], A[0], n[1], A[1], n[1]));
}

static void layer_norm(void)
{
    TRY(tile_layer_norm(library, NULL, TILE_F32, n[0], n[1], A[0], n[1], A[2], A[3], 1e-5, A[1],
                        n[1], NULL));
}

static void rms_norm(void)
{
    TRY(tile_rms_norm(library, NULL, TILE_F32, n[0], n[1], A[0], n[1], A[2], 1e-5, A[1], n[1],
                      NULL));
}

static void cross_entropy(void)
{
    TRY(tile_cross_entropy(library, NULL, TILE_F32, n[0], n[1], A[0], n[1], (int32_t *)A[4], A[5],
                           A[2], NULL));
}

/* M, N, which: 0 the sum of rows, 1 of columns, 2 the greatest of rows. */
static void reduce(void)
{
    if (n[2] == 1)
        TRY(tile_reduce(library, NULL, TILE_F32, TILE_REDUCE_SUM, 1, n[0], n[1], A[0], A[2], NULL));
    else
        TRY(tile_reduce(library, NULL, TILE_F32, n[2] ? TILE_REDUCE_MAX : TILE_REDUCE_SUM, n[0],
                        n[1], 1, A[0], A[2], NULL));
}

/* ---- windows: N, C, H, W, K, taps, stride, pad, groups, layout ---- */

static int64_t outputs_of(int64_t size)
{
    return (size + 2 * n[7] - n[5]) / n[6] + 1;
}

static tile_window_options window_options(void)
{
    tile_window_options o = TILE_WINDOW_OPTIONS_INIT;
    for (int i = 0; i < 2; i++) {
        o.stride[i] = n[6];
        o.pad[i] = n[7];
    }
    o.groups = n[8];
    o.layout = (tile_layout)n[9];
    o.workspace = A[3];
    return o;
}

static void make_conv(void)
{
    tile_window_options o = window_options();
    make(0, n[0] * n[1] * n[2] * n[3]);
    make(1, n[5] * n[5] * n[1] / n[8] * n[4]);
    make(2, n[0] * n[4] * outputs_of(n[2]) * outputs_of(n[3]));
    make(3, (int64_t)tile_conv2d_workspace(TILE_F32, n[0], n[2], n[3], n[1], n[4], n[5], n[5], &o) /
                4);
    make(4, n[4]);
}

static void conv(void)
{
    tile_window_options o = window_options();
    TRY(tile_conv2d(library, NULL, TILE_F32, n[0], n[2], n[3], n[1], n[4], n[5], n[5], A[0], A[1],
                    A[4], A[2], &o));
}

static void make_pool(void)
{
    make_conv();
    make(3, n[0] * n[4] * outputs_of(n[2]) * outputs_of(n[3]));
}

static void max_pool(void)
{
    tile_window_options o = window_options();
    o.groups = 0;
    TRY(tile_max_pool2d(library, NULL, TILE_F32, n[0], n[2], n[3], n[1], n[5], n[5], A[0], A[2],
                        (int32_t *)A[3], &o));
}

static void avg_pool(void)
{
    tile_window_options o = window_options();
    o.groups = 0;
    TRY(tile_avg_pool2d(library, NULL, TILE_F32, n[0], n[2], n[3], n[1], n[5], n[5], A[0], A[2],
                        &o));
}

static const struct {
    const char *name;
    void (*make)(void), (*call)(void), (*blas)(void);
} cases[] = {
    {"gemm", make_gemm, gemm, blas_gemm},
    {"attention", make_attention, attention, NULL},
    {"attention_backward", make_attention_backward, attention_backward, NULL},
    {"softmax", make_rows, softmax, NULL},
    {"layer_norm", make_rows, layer_norm, NULL},
    {"rms_norm", make_rows, rms_norm, NULL},
    {"cross_entropy", make_rows, cross_entropy, NULL},
    {"reduce", make_rows, reduce, NULL},
    {"conv2d", make_conv, conv, NULL},
    {"max_pool2d", make_pool, max_pool, NULL},
    {"avg_pool2d", make_pool, avg_pool, NULL},
};

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void answer_time(void (*call)(void), double seconds)
{
    for (int64_t calls = 1;; calls *= 2) {
        double start = processor_time();
        for (int64_t i = 0; i < calls; i++)
            call();
        double took = processor_time() - start;
        if (took >= seconds || calls > 1 << 20) {
            printf("%.4f\n", took / (double)calls * 1e6);
            return;
        }
    }
}

/* The case's number, or -1. */
static int take_case(char *words)
{
    char *rest, *name = strtok_r(words, " \n", &rest), *word;
    for (int i = 0; i < NUMBERS; i++)
        n[i] = (word = strtok_r(NULL, " \n", &rest)) != NULL ? strtoll(word, NULL, 10) : 0;
    for (size_t i = 0; name && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].make();
            cases[i].call();
            return (int)i;
        }
    return -1;
}

int main(void)
{
    char line[512];
    int at = -1;
    void *found = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    blas = found ? (Gemm *)(uintptr_t)dlsym(found, "cblas_sgemm") : NULL;
    TRY(tile_kernels_open(NULL, &library));
    while (fgets(line, sizeof line, stdin)) {
        bool begins = strncmp(line, "case ", 5) == 0, is_blas = line[0] == 'b';
        if (begins)
            at = take_case(line + 5);
        DEMAND(at >= 0, "no such case: %s", line);
        if (begins)
            puts(blas && cases[at].blas ? "blas" : "ok");
        else
            answer_time(is_blas ? cases[at].blas : cases[at].call, atof(line + 5));
        fflush(stdout);
    }
    for (int i = 0; i < ARRAYS; i++)
        free(arrays[i]);
    tile_kernels_close(library);
    return 0;
}
