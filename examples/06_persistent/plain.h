/* What the kernel is measured against, in plain C: for speed in float, as the truth in double; and
 * f16 for the host. */
#include <math.h>
#include <stdint.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of numbers that f16 holds exactly and that are not subnormal there. */
static uint16_t to_f16(float x)
{
    union { float f; uint32_t u; } bits = {x};
    uint32_t exponent_mantissa = (bits.u >> 13 & 0x3ffff) - ((127 - 15) << 10);
    return x == 0 ? 0 : (uint16_t)((bits.u >> 16 & 0x8000) | exponent_mantissa);
}

static double from_f16(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -x : x;
}

#define PLAIN(name, real)                                                                         \
    static __attribute__((noinline)) void name(size_t rows, size_t cols, size_t depth,            \
                                                const float *a, const float *b, real *c)          \
    {                                                                                             \
        for (size_t i = 0; i < rows; i++, a += depth, c += cols) {                                \
            for (size_t j = 0; j < cols; j++) c[j] = 0;                                           \
            for (size_t l = 0; l < depth; l++)                                                    \
                for (size_t j = 0; j < cols; j++) c[j] += (real)a[l] * b[l * cols + j];           \
            for (size_t j = 0; j < cols; j++) c[j] = c[j] > 0 ? c[j] : 0;                         \
        }                                                                                         \
    }
PLAIN(plain, float)
PLAIN(exact, double)
