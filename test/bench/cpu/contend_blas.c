/* OpenBLAS, found at run time: products, and attention as two of them and a softmax. */
#include "contender.h"
#include <dlfcn.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
typedef void Gemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void Gemv(int order, int ta, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int incx, float beta, float *y, int incy);

static Gemm *gemm;
static Gemv *gemv;
static const float *a, *b, *c;
static float *out, *scores;

static bool find(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return refuse("no libopenblas.so.0");
    gemm = (Gemm *)(uintptr_t)dlsym(library, "cblas_sgemm");
    gemv = (Gemv *)(uintptr_t)dlsym(library, "cblas_sgemv");
    return gemm && gemv ? true : refuse("libopenblas.so.0 has no cblas");
}

static void multiply(const float *x, const float *y, float *z, long m, long n, long k)
{
    gemm(ROW_MAJOR, PLAIN, PLAIN, (int)m, (int)n, (int)k, 1, x, (int)k, y, (int)n, 0, z, (int)n);
}

static bool prepare_matmul(void)
{
    a = floats(0, (size_t)(arg[0] * arg[2]), -1, 1);
    b = floats(1, (size_t)(arg[2] * arg[1]), -1, 1);
    out = result((size_t)(arg[0] * arg[1]));
    return find();
}
static void run_matmul(void)
{
    multiply(a, b, out, arg[0], arg[1], arg[2]);
}

/* C = A W^T; of one row, W times it. */
static bool prepare_lib_gemm(void)
{
    a = floats(0, (size_t)(arg[0] * arg[2]), -1, 1);
    b = floats(1, (size_t)(arg[1] * arg[2]), -1, 1);
    out = result((size_t)(arg[0] * arg[1]));
    return find();
}
static void run_lib_gemm(void)
{
    int m = (int)arg[0], n = (int)arg[1], k = (int)arg[2];
    if (m == 1)
        gemv(ROW_MAJOR, PLAIN, n, k, 1, b, k, a, 1, 0, out, 1);
    else
        gemm(ROW_MAJOR, PLAIN, TRANSPOSED, m, n, k, 1, a, k, b, k, 0, out, n);
}
/* C = A B; of one row B^T times it, of one column A times it. */
static void run_lib_gemm_nn(void)
{
    int m = (int)arg[0], n = (int)arg[1], k = (int)arg[2];
    if (m == 1)
        gemv(ROW_MAJOR, TRANSPOSED, k, n, 1, b, n, a, 1, 0, out, 1);
    else if (n == 1)
        gemv(ROW_MAJOR, PLAIN, m, k, 1, a, k, b, 1, 0, out, 1);
    else
        run_matmul();
}

static bool prepare_batched(void)
{
    a = floats(0, (size_t)(arg[0] * arg[1] * arg[3]), -1, 1);
    b = floats(1, (size_t)(arg[0] * arg[3] * arg[2]), -1, 1);
    out = result((size_t)(arg[0] * arg[1] * arg[2]));
    return find();
}
static void run_batched(void)
{
    long m = arg[1], n = arg[2], k = arg[3];
    for (long l = 0; l < arg[0]; l++)
        multiply(a + l * m * k, b + l * k * n, out + l * m * n, m, n, k);
}

static bool prepare_gemv(void)
{
    a = floats(0, (size_t)(arg[0] * arg[1]), -1, 1);
    b = floats(1, (size_t)arg[1], -1, 1);
    out = result((size_t)arg[0]);
    return find();
}
static void run_gemv(void)
{
    gemv(ROW_MAJOR, PLAIN, (int)arg[0], (int)arg[1], 1, a, (int)arg[1], b, 1, 0, out, 1);
}

static bool prepare_attention(void)
{
    size_t n = (size_t)(arg[0] * arg[1] * arg[2]);
    a = floats(0, n, -1, 1);
    b = floats(1, n, -1, 1);
    c = floats(2, n, -1, 1);
    out = result(n);
    scores = memory(3, (size_t)(arg[1] * arg[1]) * sizeof *scores);
    return find();
}
/* Of a causal head, all scores are computed and half of them used. */
static void soften(float *s, long n, bool causal)
{
#pragma omp parallel for schedule(dynamic, 16)
    for (long i = 0; i < n; i++) {
        long end = causal ? i + 1 : n;
        float *row = s + i * n, most = -INFINITY, sum = 0;
        for (long j = 0; j < end; j++) most = row[j] > most ? row[j] : most;
        for (long j = 0; j < end; j++) sum += row[j] = expf(row[j] - most);
        for (long j = 0; j < end; j++) row[j] /= sum;
        for (long j = end; j < n; j++) row[j] = 0;
    }
}
static void run_attention(void)
{
    int n = (int)arg[1], d = (int)arg[2];
    for (long h = 0; h < arg[0]; h++) {
        size_t at = (size_t)(h * n * d);
        gemm(ROW_MAJOR, PLAIN, TRANSPOSED, n, n, d, 1 / sqrtf((float)d), a + at, d, b + at, d, 0,
             scores, n);
        soften(scores, n, arg[3]);
        multiply(scores, c + at, out + at, n, d, n);
    }
}

const Work works[] = {
    {"matmul", prepare_matmul, run_matmul},
    {"lib_gemm", prepare_lib_gemm, run_lib_gemm},
    {"lib_gemm_nn", prepare_matmul, run_lib_gemm_nn},
    {"lib_gemm_split_k", prepare_matmul, run_matmul},
    {"batched", prepare_batched, run_batched},
    {"gemv", prepare_gemv, run_gemv},
    {"attention", prepare_attention, run_attention},
};
const size_t nworks = sizeof works / sizeof *works;
