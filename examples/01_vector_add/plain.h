/* What the kernel is measured against, in plain C: for speed in float, as the truth in double. */
#include <tgmath.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define PLAIN(name, real)                                                                         \
    static __attribute__((noinline)) void name(size_t n, const float *x, const float *y, real *z) \
    {                                                                                             \
        for (size_t i = 0; i < n; i++) z[i] = (real)(x[i] + y[i]);                                \
    }
PLAIN(plain, float)
PLAIN(exact, double)
