/* What the kernel is measured against, in plain C: for speed in float, as the truth in double. */
#include <tgmath.h>

#define PLAIN(name, real)                                                                         \
    static __attribute__((noinline)) void name(size_t h, size_t m, size_t d, const float *q,      \
                                                const float *k, const float *v, real *o)          \
    {                                                                                             \
        for (size_t i = 0; i < h * m; i++) {                                                      \
            real total = 0, *y = o + i * d;                                                       \
            for (size_t l = 0; l < d; l++) y[l] = 0;                                              \
            for (size_t j = i - i % m; j <= i; j++) {                                             \
                real s = 0;                                                                       \
                for (size_t l = 0; l < d; l++) s += (real)q[i * d + l] * k[j * d + l];            \
                total += s = exp(s / sqrt((real)d)); /* scores are small here */                  \
                for (size_t l = 0; l < d; l++) y[l] += s * v[j * d + l];                          \
            }                                                                                     \
            for (size_t l = 0; l < d; l++) y[l] /= total;                                         \
        }                                                                                         \
    }
PLAIN(plain, float)
PLAIN(exact, double)
