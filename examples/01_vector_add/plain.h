/* What the kernel is measured against, in plain C: for speed in float, as the truth in double. */
#include <tgmath.h>

#define PLAIN(name, real)                                                                         \
    static __attribute__((noinline)) void name(size_t n, const float *x, const float *y, real *z) \
    {                                                                                             \
        for (size_t i = 0; i < n; i++) z[i] = (real)(x[i] + y[i]);                                \
    }
PLAIN(plain, float)
PLAIN(exact, double)
