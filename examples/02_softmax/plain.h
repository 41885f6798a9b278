/* What the kernel is measured against, in plain C: for speed in float, as the truth in double. */
#include <tgmath.h>

#define PLAIN(name, real)                                                                         \
    static __attribute__((noinline)) void name(size_t r, size_t c, const float *x, real *y)       \
    {                                                                                             \
        for (size_t i = 0; i < r; i++, x += c, y += c) {                                          \
            real greatest = x[0], total = 0;                                                      \
            for (size_t j = 1; j < c; j++) greatest = x[j] > greatest ? x[j] : greatest;          \
            for (size_t j = 0; j < c; j++) total += y[j] = exp(x[j] - greatest);                  \
            for (size_t j = 0; j < c; j++) y[j] /= total;                                         \
        }                                                                                         \
    }
PLAIN(plain, float)
PLAIN(exact, double)
