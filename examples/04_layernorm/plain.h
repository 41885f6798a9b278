/* What the kernel is measured against, in plain C: for speed in float, as the truth in double. */
#include <tgmath.h>

#define PLAIN(name, real)                                                                         \
    static __attribute__((noinline)) void name(size_t r, size_t c, const float *x, const float *w,\
                                                const float *b, real *y)                          \
    {                                                                                             \
        for (size_t i = 0; i < r; i++, x += c, y += c) {                                          \
            real mean = 0, square = 0;                                                            \
            for (size_t j = 0; j < c; j++) mean += x[j];                                          \
            mean /= (real)c;                                                                      \
            for (size_t j = 0; j < c; j++) square += (x[j] - mean) * (x[j] - mean);               \
            real scale = 1 / sqrt(square / (real)c + (real)1e-5);                                 \
            for (size_t j = 0; j < c; j++) y[j] = (x[j] - mean) * scale * w[j] + b[j];            \
        }                                                                                         \
    }
PLAIN(plain, float)
PLAIN(exact, double)
