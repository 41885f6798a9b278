/* emu_math.c: leaves that compute one number: conversions and hardware math. An approximate
 * instruction gives the correctly rounded value here, or with the device's setting "perturb" one
 * that is off by as much as its documented bound allows: what a program makes of it must be right
 * on every such hardware. */
#include "runtime/emu/emu.h"
#include <math.h>

/* Rounds to nearest, ties to even; NaN becomes the canonical one. */
uint16_t tl_emu_bf16(uint32_t x);
uint16_t tl_emu_bf16(uint32_t x)
{
    enum { CANONICAL_NAN = 0x7fff, BELOW_HALF = 0x7fff };
    if ((x & 0x7fffffff) > 0x7f800000)
        return CANONICAL_NAN;
    return (uint16_t)((x + BELOW_HALF + (x >> 16 & 1)) >> 16);
}

uint64_t tl_emu_mul_wide(uint32_t x, uint32_t y);
uint64_t tl_emu_mul_wide(uint32_t x, uint32_t y)
{
    return (uint64_t)((int64_t)(int32_t)x * (int32_t)y);
}

uint64_t tl_emu_mul_wide_u(uint32_t x, uint32_t y);
uint64_t tl_emu_mul_wide_u(uint32_t x, uint32_t y)
{
    return (uint64_t)x * y;
}

uint32_t tl_emu_bytes(uint32_t a, uint32_t b, uint32_t from);
uint32_t tl_emu_bytes(uint32_t a, uint32_t b, uint32_t from)
{
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t word = 0;
    for (int i = 0; i < 32; i += 8)
        word |= (uint32_t)(both >> 8 * (from >> i & 7) & 0xff) << i;
    return word;
}

static float number(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof f);
    return bits;
}

enum { NO_NUMBER = 0x7fffffff /* a NaN */, EXPONENT = 0x7f800000, INFINITE = EXPONENT };

static bool is_tiny(uint32_t x)
{
    return (x & EXPONENT) == 0;
}

static bool is_normal(uint32_t x)
{
    return (x & EXPONENT) != 0 && (x & EXPONENT) != EXPONENT;
}

uint32_t tl_emu_f2i(uint32_t x, uint32_t bits, uint32_t how);
uint32_t tl_emu_f2i(uint32_t x, uint32_t bits, uint32_t how)
{
    bool is_signed = how & TL_F2I_SIGNED;
    double most = ldexp(1, (int)bits - is_signed) - 1, least = is_signed ? -most - 1 : 0;
    double v = number(x), y = how & TL_F2I_NEAREST ? nearbyint(v) : trunc(v);
    if (isnan(v))
        return 0;
    return (uint32_t)(int64_t)(y > most ? most : y < least ? least : y);
}

/* The result of an instruction that is within `ulp` units in the last place of `exact`: rounded, or
 * perturbed, always in the same way for the same operands x, as hardware does. */
static uint32_t within(double exact, uint32_t x, int32_t ulp)
{
    uint32_t y = bits_of((float)exact);
    uint64_t seed = tl_emu_now ? tl_emu_now->job->perturb : 0;
    TL_INVARIANT_OR(y, ulp > 0, "a bound of %d units", (int)ulp);
    if (!seed || !is_normal(y))
        return y;
    uint64_t h = (x + seed) * 0x9e3779b97f4a7c15u; /* the golden ratio: neighbours differ */
    uint32_t moved = y + (uint32_t)((h >> 32) % (2 * (uint32_t)ulp + 1)) - (uint32_t)ulp;
    double unit = fabs((double)number(y + 1) - (double)number(y));
    bool may = is_normal(moved) && fabs((double)number(moved) - exact) <= ulp * unit;
    return may ? moved : y;
}

/* Bounds as in leaf.def. */
uint32_t tl_emu_ex2(uint32_t x);
uint32_t tl_emu_ex2_ftz(uint32_t x);
uint32_t tl_emu_div(uint32_t x, uint32_t y);
uint32_t tl_emu_div_big(uint32_t x, uint32_t y);
uint32_t tl_emu_rcp(uint32_t x);
uint32_t tl_emu_fma_sat(uint32_t x, uint32_t y, uint32_t z);
uint32_t tl_emu_sqrt(uint32_t x);
uint32_t tl_emu_rsqrt(uint32_t x);

uint32_t tl_emu_ex2(uint32_t x)
{
    double y = exp2((double)number(x));
    return x & EXPONENT ? within(y, x, 1) : bits_of((float)y); /* 2^0 is exact on hardware too */
}

uint32_t tl_emu_ex2_ftz(uint32_t x)
{
    uint32_t y = tl_emu_ex2(x & EXPONENT ? x : 0);
    return y & EXPONENT ? y : 0;
}

/* The quotient in f64 is never so near to the middle of two f32 that it is rounded to the wrong
 * one. */
uint32_t tl_emu_div(uint32_t x, uint32_t y)
{
    enum { FRACTION = 0x7fffff };
    double a = number(x), b = number(y);
    if (!(y & FRACTION))
        return bits_of((float)(a / b));
    return within(a / b, x ^ y, a == 1 ? 1 : 2);
}

/* Other divisors are as wrong here as a promise that does not hold may make them. */
uint32_t tl_emu_div_big(uint32_t x, uint32_t y)
{
    return is_tiny(y) ? NO_NUMBER : tl_emu_div(x, y);
}

uint32_t tl_emu_rcp(uint32_t x)
{
    enum { ONE = 0x3f800000, TWO_TO_126 = 0x7e800000 };
    uint32_t magnitude = x & INT32_MAX;
    bool huge = magnitude > TWO_TO_126 && magnitude <= INFINITE;
    return huge || is_tiny(x) ? NO_NUMBER : tl_emu_div(ONE, x);
}

uint32_t tl_emu_fma_sat(uint32_t x, uint32_t y, uint32_t z)
{
    float sum = fmaf(number(x), number(y), number(z));
    return bits_of(sum > 0 ? fminf(sum, 1) : 0);
}

uint32_t tl_emu_sqrt(uint32_t x)
{
    return within(sqrt((double)number(x)), x, 2);
}

uint32_t tl_emu_rsqrt(uint32_t x)
{
    return within(1 / sqrt((double)number(x)), x, 2);
}

/* The extreme of two numbers, neither of them NaN: as integers of their order, in which -0 is below
 * +0. */
static uint32_t extreme(uint32_t x, uint32_t y, bool max)
{
    int32_t a = (int32_t)x < 0 ? (int32_t) ~(x & INT32_MAX) : (int32_t)x,
            b = (int32_t)y < 0 ? (int32_t) ~(y & INT32_MAX) : (int32_t)y;
    return (a < b) == max ? y : x;
}

static bool is_nan(uint32_t x)
{
    return (x & INT32_MAX) > INFINITE;
}

#define EXTREMES(name, max)                                                                        \
    uint32_t tl_emu_##name(uint32_t x, uint32_t y);                                                \
    uint32_t tl_emu_##name##_nan(uint32_t x, uint32_t y);                                          \
    uint32_t tl_emu_##name(uint32_t x, uint32_t y)                                                 \
    {                                                                                              \
        return is_nan(x) ? y : is_nan(y) ? x : extreme(x, y, max);                                 \
    }                                                                                              \
    uint32_t tl_emu_##name##_nan(uint32_t x, uint32_t y)                                           \
    {                                                                                              \
        return is_nan(x) ? x : is_nan(y) ? y : extreme(x, y, max);                                 \
    }
EXTREMES(min, false)
EXTREMES(max, true)
