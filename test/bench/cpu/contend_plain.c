/* Plain C with OpenMP, as it would be written in an afternoon: compiled with gcc and with clang,
 * -O3 -march=native -ffast-math. */
#include "contender.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

static const float *a, *b, *c;
static const int32_t *index_;
static float *out;
static int32_t *counts;

/* ---- products ---- */

static void matmul(const float *x, const float *y, float *z, long m, long n, long k)
{
#pragma omp parallel for schedule(dynamic, 4)
    for (long i = 0; i < m; i++) {
        float *row = z + i * n;
        memset(row, 0, (size_t)n * sizeof *row);
        for (long p = 0; p < k; p++)
            for (long j = 0; j < n; j++) row[j] += x[i * k + p] * y[p * n + j];
    }
}
static bool prepare_matmul(void)
{
    a = floats(0, (size_t)(arg[0] * arg[2]), -1, 1);
    b = floats(1, (size_t)(arg[2] * arg[1]), -1, 1);
    out = result((size_t)(arg[0] * arg[1]));
    return true;
}
static void run_matmul(void)
{
    matmul(a, b, out, arg[0], arg[1], arg[2]);
}

static bool prepare_gemv(void)
{
    a = floats(0, (size_t)(arg[0] * arg[1]), -1, 1);
    b = floats(1, (size_t)arg[1], -1, 1);
    out = result((size_t)arg[0]);
    return true;
}
static void run_gemv(void)
{
    long m = arg[0], n = arg[1];
#pragma omp parallel for
    for (long i = 0; i < m; i++) {
        float sum = 0;
        for (long j = 0; j < n; j++) sum += a[i * n + j] * b[j];
        out[i] = sum;
    }
}

/* The same with weights in ggml's blocks, of arg[2] equal matrices in turn. */
typedef struct Q4 {
    uint16_t d; /* f16 */
    uint8_t q[16];
} Q4;
typedef struct Q8 {
    uint16_t d;
    int8_t q[32];
} Q8;
static const void *weights;

static bool prepare_blocks(size_t size)
{
    weights = blocks(0, (size_t)(arg[0] * arg[1] / 32) * size, (size_t)arg[2], size);
    b = floats(1, (size_t)arg[1], -1, 1);
    out = result((size_t)arg[0]);
    return true;
}
static bool prepare_gemv_q4_0(void)
{
    return prepare_blocks(sizeof(Q4));
}
static bool prepare_gemv_q8_0(void)
{
    return prepare_blocks(sizeof(Q8));
}
static inline float of_f16(uint16_t bits)
{
#ifdef __F16C__
    return _cvtsh_ss(bits);
#else
    float f = ldexpf((float)(1024 + (bits & 1023)), (bits >> 10 & 31) - 25); /* no subnormals */
    return bits & 0x8000 ? -f : f;
#endif
}
static void run_gemv_q4_0(void)
{
    long m = arg[0], n = arg[1] / 32;
    const Q4 *w = (const Q4 *)weights + (size_t)(m * n) * turn_of(arg[2]);
#pragma omp parallel for
    for (long i = 0; i < m; i++) {
        float sum = 0;
        for (long l = 0; l < n; l++) {
            const Q4 *at = w + i * n + l;
            const float *x = b + 32 * l;
            float part = 0;
            for (int j = 0; j < 16; j++)
                part +=
                    (float)((at->q[j] & 15) - 8) * x[j] + (float)((at->q[j] >> 4) - 8) * x[j + 16];
            sum += of_f16(at->d) * part;
        }
        out[i] = sum;
    }
}
static void run_gemv_q8_0(void)
{
    long m = arg[0], n = arg[1] / 32;
    const Q8 *w = (const Q8 *)weights + (size_t)(m * n) * turn_of(arg[2]);
#pragma omp parallel for
    for (long i = 0; i < m; i++) {
        float sum = 0;
        for (long l = 0; l < n; l++) {
            const Q8 *at = w + i * n + l;
            float part = 0;
            for (int j = 0; j < 32; j++)
                part += (float)at->q[j] * b[32 * l + j];
            sum += of_f16(at->d) * part;
        }
        out[i] = sum;
    }
}

/* ---- elementwise ---- */

static bool prepare_add(void)
{
    a = floats(0, (size_t)arg[0], -1, 1);
    b = floats(1, (size_t)arg[0], -1, 1);
    out = result((size_t)arg[0]);
    return true;
}
static void run_add(void)
{
    long n = arg[0];
#pragma omp parallel for simd if (n > 1 << 15)
    for (long i = 0; i < n; i++) out[i] = a[i] + b[i];
}

static bool prepare_gelu(void)
{
    a = floats(0, (size_t)arg[0], -4, 4);
    out = result((size_t)arg[0]);
    return true;
}
static void run_gelu(void)
{
    long n = arg[0];
#pragma omp parallel for simd
    for (long i = 0; i < n; i++) out[i] = 0.5f * a[i] * (1 + erff(a[i] * 0.70710678f));
}

/* Price of a call and of a put: n options, spot, strike and time from three inputs. */
static bool prepare_black_scholes(void)
{
    size_t n = (size_t)arg[0];
    a = floats(0, n, 5, 30);
    b = floats(1, n, 1, 100);
    c = floats(2, n, 0.25f, 10);
    out = result(2 * n);
    return true;
}
static inline float normal(float x)
{
    return 0.5f * erfcf(-x * 0.70710678f);
}
static void run_black_scholes(void)
{
    const float rate = 0.02f, volatility = 0.3f;
    long n = arg[0];
#pragma omp parallel for simd
    for (long i = 0; i < n; i++) {
        float root = sqrtf(c[i]);
        float d1 = (logf(a[i] / b[i]) + (rate + 0.5f * volatility * volatility) * c[i]) /
                   (volatility * root);
        float d2 = d1 - volatility * root, worth = b[i] * expf(-rate * c[i]);
        out[i] = a[i] * normal(d1) - worth * normal(d2);
        out[n + i] = worth * normal(-d2) - a[i] * normal(-d1);
    }
}

static bool prepare_mandelbrot(void)
{
    counts = int_result((size_t)(arg[0] * arg[1]));
    return true;
}
static void run_mandelbrot(void)
{
    long w = arg[0], h = arg[1], most = arg[2];
#pragma omp parallel for schedule(dynamic, 4)
    for (long y = 0; y < h; y++)
        for (long x = 0; x < w; x++) {
            float cx = -2 + 3 * (float)x / (float)w, cy = -1 + 2 * (float)y / (float)h;
            float zx = cx, zy = cy;
            int32_t n = 0;
            for (; n < most && zx * zx + zy * zy <= 4; n++) {
                float t = zx * zx - zy * zy + cx;
                zy = 2 * zx * zy + cy;
                zx = t;
            }
            counts[y * w + x] = n;
        }
}

/* ---- rows: arg[0] of length arg[1] ---- */

static bool prepare_rows(void)
{
    size_t n = (size_t)(arg[0] * arg[1]);
    a = floats(0, n, -4, 4);
    b = floats(1, (size_t)arg[1], 0.5f, 1.5f);
    c = floats(2, (size_t)arg[1], -1, 1);
    out = result(n);
    return true;
}
static bool prepare_sums(void)
{
    a = floats(0, (size_t)(arg[0] * arg[1]), -4, 4);
    out = result((size_t)arg[0]);
    return true;
}
static void run_sums(void)
{
    long rows = arg[0], n = arg[1];
#pragma omp parallel for
    for (long r = 0; r < rows; r++) {
        float sum = 0;
        for (long i = 0; i < n; i++) sum += a[r * n + i];
        out[r] = sum;
    }
}
static void run_softmax(void)
{
    long rows = arg[0], n = arg[1];
#pragma omp parallel for
    for (long r = 0; r < rows; r++) {
        const float *x = a + r * n;
        float *y = out + r * n, most = -INFINITY, sum = 0;
        for (long i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
        for (long i = 0; i < n; i++) sum += y[i] = expf(x[i] - most);
        for (long i = 0; i < n; i++) y[i] *= 1 / sum;
    }
}
static void run_layer_norm(void)
{
    long rows = arg[0], n = arg[1];
#pragma omp parallel for
    for (long r = 0; r < rows; r++) {
        const float *x = a + r * n;
        float *y = out + r * n, sum = 0, square = 0;
        for (long i = 0; i < n; i++) sum += x[i];
        float mean = sum / (float)n;
        for (long i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
        float scale = 1 / sqrtf(square / (float)n + 1e-5f);
        for (long i = 0; i < n; i++) y[i] = (x[i] - mean) * scale * b[i] + c[i];
    }
}
static void run_rms_norm(void)
{
    long rows = arg[0], n = arg[1];
#pragma omp parallel for
    for (long r = 0; r < rows; r++) {
        const float *x = a + r * n;
        float *y = out + r * n, square = 0;
        for (long i = 0; i < n; i++) square += x[i] * x[i];
        float scale = 1 / sqrtf(square / (float)n + 1e-5f);
        for (long i = 0; i < n; i++) y[i] = x[i] * scale * b[i];
    }
}
static void run_cumsum(void)
{
    long rows = arg[0], n = arg[1];
#pragma omp parallel for
    for (long r = 0; r < rows; r++) {
        float sum = 0;
        for (long i = 0; i < n; i++) out[r * n + i] = sum += a[r * n + i];
    }
}
static int by_value(const void *x, const void *y)
{
    float p = *(const float *)x, q = *(const float *)y;
    return (p > q) - (p < q);
}
static void run_sort(void)
{
    long rows = arg[0], n = arg[1];
#pragma omp parallel for schedule(dynamic, 4)
    for (long r = 0; r < rows; r++) {
        memcpy(out + r * n, a + r * n, (size_t)n * sizeof *a);
        qsort(out + r * n, (size_t)n, sizeof *out, by_value);
    }
}

/* ---- moving ---- */

static bool prepare_transpose(void)
{
    a = floats(0, (size_t)(arg[0] * arg[1]), -1, 1);
    out = result((size_t)(arg[0] * arg[1]));
    return true;
}
static void run_transpose(void)
{
    long m = arg[0], n = arg[1];
#pragma omp parallel for collapse(2)
    for (long i = 0; i < m; i += 32)
        for (long j = 0; j < n; j += 32)
            for (long p = i; p < m && p < i + 32; p++)
                for (long q = j; q < n && q < j + 32; q++) out[q * m + p] = a[p * n + q];
}

/* arg[0] rows of a table of arg[2] rows of length arg[1]. */
static bool prepare_gather(void)
{
    a = floats(0, (size_t)(arg[2] * arg[1]), -1, 1);
    index_ = ints(1, (size_t)arg[0], (int32_t)arg[2]);
    out = result((size_t)(arg[0] * arg[1]));
    return true;
}
static void run_gather(void)
{
    long rows = arg[0], n = arg[1];
#pragma omp parallel for
    for (long r = 0; r < rows; r++)
        memcpy(out + r * n, a + index_[r] * n, (size_t)n * sizeof *a);
}

static bool prepare_histogram(void)
{
    index_ = ints(0, (size_t)arg[0], (int32_t)arg[1]);
    counts = int_result((size_t)arg[1]);
    return true;
}
/* Each thread has a table of its own. A reduction over counts[:bins] would say the same, but what
 * clang 14 makes of it loses counts when there are two threads. */
static void run_histogram(void)
{
    long n = arg[0], bins = arg[1];
    memset(counts, 0, (size_t)bins * sizeof *counts);
#pragma omp parallel
    {
        int32_t *mine = calloc((size_t)bins, sizeof *mine);
        if (!mine) {
            fprintf(stderr, "out of memory\n");
            exit(1);
        }
#pragma omp for nowait
        for (long i = 0; i < n; i++) mine[index_[i]]++;
#pragma omp critical
        for (long b = 0; b < bins; b++) counts[b] += mine[b];
        free(mine);
    }
}

/* ---- neighbourhoods ---- */

static bool prepare_stencil(void)
{
    a = floats(0, (size_t)((arg[0] + 2) * (arg[1] + 2)), -1, 1);
    out = result((size_t)(arg[0] * arg[1]));
    return true;
}
static void run_stencil(void)
{
    long h = arg[0], w = arg[1], p = w + 2;
#pragma omp parallel for
    for (long y = 0; y < h; y++)
        for (long x = 0; x < w; x++) {
            const float *at = a + (y + 1) * p + x + 1;
            out[y * w + x] = 0.5f * at[0] + 0.125f * (at[-1] + at[1] + at[-p] + at[p]);
        }
}

/* A 3 x 3 filter, arg[2] channels to arg[3], over an image of arg[0] x arg[1] with a border. */
static bool prepare_convolution(void)
{
    long h = arg[0], w = arg[1], from = arg[2], to = arg[3];
    a = floats(0, (size_t)((h + 2) * (w + 2) * from), -1, 1);
    b = floats(1, (size_t)(9 * from * to), -1, 1);
    out = result((size_t)(h * w * to));
    return true;
}
static void run_convolution(void)
{
    long h = arg[0], w = arg[1], from = arg[2], to = arg[3];
#pragma omp parallel for
    for (long y = 0; y < h; y++)
        for (long x = 0; x < w; x++) {
            float *z = out + (y * w + x) * to;
            memset(z, 0, (size_t)to * sizeof *z);
            for (long t = 0; t < 9; t++)
                for (long i = 0; i < from; i++) {
                    float v = a[((y + t / 3) * (w + 2) + x + t % 3) * from + i];
                    for (long o = 0; o < to; o++) z[o] += v * b[(t * from + i) * to + o];
                }
        }
}

/* ---- attention: arg[0] heads, arg[1] places, arg[2] wide; arg[3]: causal ---- */

static bool prepare_attention(void)
{
    size_t n = (size_t)(arg[0] * arg[1] * arg[2]);
    a = floats(0, n, -1, 1);
    b = floats(1, n, -1, 1);
    c = floats(2, n, -1, 1);
    out = result(n);
    return true;
}
static void run_attention(void)
{
    long heads = arg[0], n = arg[1], d = arg[2];
    float scale = 1 / sqrtf((float)d);
#pragma omp parallel for collapse(2) schedule(dynamic, 16)
    for (long h = 0; h < heads; h++)
        for (long i = 0; i < n; i++) {
            long end = arg[3] ? i + 1 : n;
            float score[end], most = -INFINITY, sum = 0, *z = out + (h * n + i) * d;
            for (long j = 0; j < end; j++) {
                float s = 0;
                for (long e = 0; e < d; e++)
                    s += a[(h * n + i) * d + e] * b[(h * n + j) * d + e];
                score[j] = s * scale;
                most = score[j] > most ? score[j] : most;
            }
            for (long j = 0; j < end; j++) sum += score[j] = expf(score[j] - most);
            memset(z, 0, (size_t)d * sizeof *z);
            for (long j = 0; j < end; j++)
                for (long e = 0; e < d; e++) z[e] += score[j] / sum * c[(h * n + j) * d + e];
        }
}

const Work works[] = {
    {"matmul", prepare_matmul, run_matmul},
    {"gemv", prepare_gemv, run_gemv},
    {"gemv_q4_0", prepare_gemv_q4_0, run_gemv_q4_0},
    {"gemv_q8_0", prepare_gemv_q8_0, run_gemv_q8_0},
    {"add", prepare_add, run_add},
    {"gelu", prepare_gelu, run_gelu},
    {"black_scholes", prepare_black_scholes, run_black_scholes},
    {"mandelbrot", prepare_mandelbrot, run_mandelbrot},
    {"sums", prepare_sums, run_sums},
    {"softmax", prepare_rows, run_softmax},
    {"layer_norm", prepare_rows, run_layer_norm},
    {"rms_norm", prepare_rows, run_rms_norm},
    {"cumsum", prepare_rows, run_cumsum},
    {"sort", prepare_rows, run_sort},
    {"transpose", prepare_transpose, run_transpose},
    {"gather", prepare_gather, run_gather},
    {"histogram", prepare_histogram, run_histogram},
    {"stencil", prepare_stencil, run_stencil},
    {"convolution", prepare_convolution, run_convolution},
    {"attention", prepare_attention, run_attention},
};
const size_t nworks = sizeof works / sizeof *works;
