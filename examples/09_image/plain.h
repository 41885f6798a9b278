/* What the kernels are measured against, in plain C: for speed in float, as the truth in double.
 * Planes [3][h][w]; each filter is its definition. */
#include <stddef.h>
#include <tgmath.h>

#define PLAIN(name, real)                                                                         \
    /* The average of 2 r + 1 neighbours `step` apart, of n elements that are `step` apart. */    \
    static void name##_line(ptrdiff_t n, ptrdiff_t step, const real *x, real *y, real sigma)      \
    {                                                                                             \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            real total = 0, weights = 0;                                                          \
            for (ptrdiff_t d = -RADIUS; d <= RADIUS; d++) {                                       \
                if (i + d < 0 || i + d >= n) continue;                                            \
                real weight = exp((real)(-d * d) / (2 * sigma * sigma));                          \
                total += weight * x[(i + d) * step], weights += weight;                           \
            }                                                                                     \
            y[i * step] = total / weights;                                                        \
        }                                                                                         \
    }                                                                                             \
    static void name##_blur(ptrdiff_t h, ptrdiff_t w, const real *x, real *half, real *y,         \
                            real sigma)                                                           \
    {                                                                                             \
        for (ptrdiff_t i = 0; i < 3 * h; i++) name##_line(w, 1, x + i * w, half + i * w, sigma);  \
        for (ptrdiff_t c = 0; c < 3; c++)                                                         \
            for (ptrdiff_t j = 0; j < w; j++)                                                     \
                name##_line(h, w, half + c * h * w + j, y + c * h * w + j, sigma);                \
    }                                                                                             \
    static void name##_sobel(ptrdiff_t h, ptrdiff_t w, const real *x, real *y)                    \
    {                                                                                             \
        ptrdiff_t n = h * w;                                                                      \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            real across = 0, down = 0;                                                            \
            bool inside = i / w > 0 && i / w < h - 1 && i % w > 0 && i % w < w - 1;               \
            for (ptrdiff_t d = -1; inside && d <= 1; d++) {                                       \
                real weight = 2 - d * d;                                                          \
                const real part[3] = {(real)0.2126, (real)0.7152, (real)0.0722};                  \
                for (int c = 0; c < 3; c++) {                                                     \
                    const real *p = x + c * n + i;                                                \
                    across += weight * part[c] * (p[d * w + 1] - p[d * w - 1]);                   \
                    down += weight * part[c] * (p[w + d] - p[d - w]);                             \
                }                                                                                 \
            }                                                                                     \
            y[i] = y[n + i] = y[2 * n + i] = fmin((real)1, sqrt(across * across + down * down));  \
        }                                                                                         \
    }                                                                                             \
    static void name##_bilateral(ptrdiff_t h, ptrdiff_t w, const real *x, real *y, real sigma,    \
                                 real range)                                                      \
    {                                                                                             \
        ptrdiff_t n = h * w, r = WINDOW;                                                          \
        for (ptrdiff_t i = 0; i < n; i++) {                                                       \
            real weights = 0, sum[3] = {0, 0, 0};                                                 \
            for (ptrdiff_t dy = -r; dy <= r; dy++)                                                \
                for (ptrdiff_t dx = -r; dx <= r; dx++) {                                          \
                    if (i / w + dy < 0 || i / w + dy >= h || i % w + dx < 0 || i % w + dx >= w)   \
                        continue;                                                                 \
                    const real *p = x + i, *q = x + i + dy * w + dx;                              \
                    real far = 0;                                                                 \
                    for (int c = 0; c < 3; c++)                                                   \
                        far += (q[c * n] - p[c * n]) * (q[c * n] - p[c * n]);                     \
                    real weight = exp(-far / (2 * range * range) -                                \
                                      (real)(dx * dx + dy * dy) / (2 * sigma * sigma));           \
                    weights += weight;                                                            \
                    for (int c = 0; c < 3; c++) sum[c] += weight * q[c * n];                      \
                }                                                                                 \
            for (int c = 0; c < 3; c++) y[c * n + i] = sum[c] / weights;                          \
        }                                                                                         \
    }                                                                                             \
    static void name##_sharpen(ptrdiff_t h, ptrdiff_t w, const real *x, const real *soft, real *y, \
                               real amount)                                                       \
    {                                                                                             \
        for (ptrdiff_t i = 0; i < 3 * h * w; i++)                                                 \
            y[i] = fmin(fmax(x[i] + amount * (x[i] - soft[i]), (real)0), (real)1);                \
    }
