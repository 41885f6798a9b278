/* comm_reduce.c: arrays of several ranks become one. A block of elements at a time goes through an
 * accumulator in the type in which the reduction computes:
 *
 *     f32 f16 bf16   f32
 *     f64            f64
 *     i8 i32 i64     i64, in which sums of i8 and i32 are exact; wrapping is the same mod 2^n
 *     u8 u32 u64     u64, likewise
 *
 * so that a mean of i8 is that of the true sum. The order is that of the ranks, whatever the speed
 * of each: runs repeat. Products of integers wrap. */
#include "runtime/collectives/comm_reduce.h"
#include <math.h>
#include <string.h>

enum { BLOCK = 256 };

/* ---- 16-bit floats ---- */

typedef union Word {
    float f;
    uint32_t u;
} Word;

static float from_f16(uint16_t h)
{
    Word w = {.u = (uint32_t)(h & 0x7FFF) << 13};
    w.f *= 0x1p112f; /* the exponent's bias; exact, subnormals too */
    if ((h & 0x7C00) == 0x7C00)
        w.u |= 0x7F800000; /* infinity, NaN */
    w.u |= (uint32_t)(h & 0x8000) << 16;
    return w.f;
}

/* To nearest, ties to even. */
static uint16_t to_f16(float f)
{
    Word w = {f}, small;
    uint32_t sign = w.u >> 16 & 0x8000, a = w.u & 0x7FFFFFFF;
    if (a > 0x7F800000)
        return (uint16_t)(sign | 0x7E00);
    if (a >= 0x477FF000) /* 65520 and more */
        return (uint16_t)(sign | 0x7C00);
    if (a >= 0x38800000) /* 2^-14: normal */
        return (uint16_t)(sign | (a - (112u << 23) + 0xFFF + (a >> 13 & 1)) >> 13);
    w.u = a;
    small.f = w.f + 0.5f; /* the last place of 0.5 is f16's smallest number */
    return (uint16_t)(sign | (small.u - 0x3F000000));
}

static float from_bf16(uint16_t h)
{
    return (Word){.u = (uint32_t)h << 16}.f;
}

static uint16_t to_bf16(float f)
{
    Word w = {f};
    if ((w.u & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(w.u >> 16 | 0x40);
    return (uint16_t)((w.u + 0x7FFF + (w.u >> 16 & 1)) >> 16);
}

/* ---- accumulators ---- */

static float greater_f32(float a, float b)
{
    return a != a || a >= b ? a : b;
}
static float lesser_f32(float a, float b)
{
    return a != a || a <= b ? a : b;
}
static double greater_f64(double a, double b)
{
    return a != a || a >= b ? a : b;
}
static double lesser_f64(double a, double b)
{
    return a != a || a <= b ? a : b;
}
static int64_t greater_i64(int64_t a, int64_t b)
{
    return a >= b ? a : b;
}
static int64_t lesser_i64(int64_t a, int64_t b)
{
    return a <= b ? a : b;
}
static uint64_t greater_u64(uint64_t a, uint64_t b)
{
    return a >= b ? a : b;
}
static uint64_t lesser_u64(uint64_t a, uint64_t b)
{
    return a <= b ? a : b;
}
static int64_t plus_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t times_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* One row for each accumulator: its type, sum and product. */
#define ACCUMULATORS(X)                                                                            \
    X(f32, float, a[i] + b[i], a[i] * b[i])                                                        \
    X(f64, double, a[i] + b[i], a[i] * b[i])                                                       \
    X(i64, int64_t, plus_i64(a[i], b[i]), times_i64(a[i], b[i]))                                   \
    X(u64, uint64_t, a[i] + b[i], a[i] * b[i])

#define FOLD(name, T, plus, times)                                                                 \
    static void fold_##name(tile_comm_reduction reduction, T *a, const T *b, size_t n)             \
    {                                                                                              \
        size_t i;                                                                                  \
        switch (reduction) {                                                                       \
        case TILE_COMM_SUM:                                                                        \
        case TILE_COMM_AVG:                                                                        \
            for (i = 0; i < n; i++)                                                                \
                a[i] = plus;                                                                       \
            break;                                                                                 \
        case TILE_COMM_PROD:                                                                       \
            for (i = 0; i < n; i++)                                                                \
                a[i] = times;                                                                      \
            break;                                                                                 \
        case TILE_COMM_MAX:                                                                        \
            for (i = 0; i < n; i++)                                                                \
                a[i] = greater_##name(a[i], b[i]);                                                 \
            break;                                                                                 \
        case TILE_COMM_MIN:                                                                        \
            for (i = 0; i < n; i++)                                                                \
                a[i] = lesser_##name(a[i], b[i]);                                                  \
            break;                                                                                 \
        }                                                                                          \
    }
ACCUMULATORS(FOLD)

/* ---- element types ---- */

/* One row for each: its name, C type, accumulator, and the conversions of v to and from that. */
#define ELEMENTS(X)                                                                                \
    X(TILE_F32, f32, float, f32, float, v, v)                                                      \
    X(TILE_F16, f16, uint16_t, f32, float, from_f16(v), to_f16(v))                                 \
    X(TILE_BF16, bf16, uint16_t, f32, float, from_bf16(v), to_bf16(v))                             \
    X(TILE_F64, f64, double, f64, double, v, v)                                                    \
    X(TILE_I8, i8, int8_t, i64, int64_t, v, (int8_t)(uint8_t)(uint64_t)v)                          \
    X(TILE_U8, u8, uint8_t, u64, uint64_t, v, (uint8_t)v)                                          \
    X(TILE_I32, i32, int32_t, i64, int64_t, v, (int32_t)(uint32_t)(uint64_t)v)                     \
    X(TILE_U32, u32, uint32_t, u64, uint64_t, v, (uint32_t)v)                                      \
    X(TILE_I64, i64, int64_t, i64, int64_t, v, v)                                                  \
    X(TILE_U64, u64, uint64_t, u64, uint64_t, v, v)

#define COMBINE(dtype, name, T, acc, A, widen, narrow)                                             \
    static void combine_##name(tile_comm_reduction reduction, const void *const *from, int ranks,  \
                               void *to, size_t n)                                                 \
    {                                                                                              \
        A a[BLOCK], b[BLOCK];                                                                      \
        for (size_t at = 0; at < n; at += BLOCK) {                                                 \
            size_t part = n - at < BLOCK ? n - at : BLOCK;                                         \
            for (int r = 0; r < ranks; r++) {                                                      \
                const T *x = (const T *)from[r] + at;                                              \
                A *into = r ? b : a;                                                               \
                for (size_t i = 0; i < part; i++) {                                                \
                    const T v = x[i];                                                              \
                    into[i] = widen;                                                               \
                }                                                                                  \
                if (r)                                                                             \
                    fold_##acc(reduction, a, b, part);                                             \
            }                                                                                      \
            T *out = (T *)to + at;                                                                 \
            for (size_t i = 0; i < part; i++) {                                                    \
                const A v = reduction == TILE_COMM_AVG ? (A)(a[i] / (A)ranks) : a[i];              \
                out[i] = narrow;                                                                   \
            }                                                                                      \
        }                                                                                          \
    }
ELEMENTS(COMBINE)

typedef void Combine(tile_comm_reduction reduction, const void *const *from, int ranks, void *to,
                     size_t n);

static Combine *combine_of(tile_dtype dtype)
{
    static const struct {
        tile_dtype dtype;
        Combine *combine;
    } rows[] = {
#define ROW(dtype, name, T, acc, A, widen, narrow) {dtype, combine_##name},
        ELEMENTS(ROW)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == dtype)
            return rows[i].combine;
    return NULL;
}

bool tl_comm_reduces(tile_dtype dtype)
{
    return combine_of(dtype) != NULL;
}

void tl_comm_combine(tile_dtype dtype, tile_comm_reduction reduction, const void *const *from,
                     int ranks, void *to, size_t n)
{
    combine_of(dtype)(reduction, from, ranks, to, n);
}
