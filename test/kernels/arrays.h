/* arrays.h: arrays of any element type for the tests of libtilekernels, written and read as
 * doubles. */
#ifndef TL_TEST_ARRAYS_H
#define TL_TEST_ARRAYS_H
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tile_kernels.h>

/* Rounded toward zero, which is exact for what the tests write. */
static inline uint16_t half_of(double x)
{
    int exponent = 0;
    double m = frexp(fabs(x), &exponent); /* 0.5 <= m < 1 */
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x) || isinf(x))
        return isnan(x) ? 0x7e00 : sign | 0x7c00;
    if (m == 0 || exponent < -13)
        return sign;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)(m * 2048) & 0x3ff));
}

static inline double of_half(uint16_t h)
{
    int exponent = h >> 10 & 31, m = h & 0x3ff;
    double x = exponent == 31 ? (m ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + m, exponent - 25)
                              : ldexp(m, -24);
    return h & 0x8000 ? -x : x;
}

static inline void put(void *array, tile_dtype type, int64_t i, double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    switch (type) {
    case TILE_F32: ((float *)array)[i] = f; break;
    case TILE_F64: ((double *)array)[i] = x; break;
    case TILE_F16: ((uint16_t *)array)[i] = half_of(x); break;
    case TILE_BF16: ((uint16_t *)array)[i] = isnan(x) ? 0x7fc0 : (uint16_t)(bits >> 16); break;
    case TILE_I8: ((int8_t *)array)[i] = isnan(x) ? 99 : (int8_t)x; break;
    case TILE_I32: ((int32_t *)array)[i] = isnan(x) ? 987654 : (int32_t)x; break;
    default: abort();
    }
}

static inline double get(const void *array, tile_dtype type, int64_t i)
{
    uint32_t bits;
    float f;
    switch (type) {
    case TILE_F32: return ((const float *)array)[i];
    case TILE_F64: return ((const double *)array)[i];
    case TILE_F16: return of_half(((const uint16_t *)array)[i]);
    case TILE_BF16:
        bits = (uint32_t)((const uint16_t *)array)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    case TILE_I8: return ((const int8_t *)array)[i];
    case TILE_I32: return ((const int32_t *)array)[i];
    default: abort();
    }
}

/* Half a unit in the last place, relative. */
static inline double rounding(tile_dtype type)
{
    switch (type) {
    case TILE_F16: return ldexp(1, -11);
    case TILE_BF16: return ldexp(1, -8);
    case TILE_F32: return ldexp(1, -24);
    default: return 0;
    }
}
#endif
