/* emu_math.c: leaves that compute one number: conversions and hardware math. An approximate
 * instruction gives the correctly rounded value here, or with the device's setting "perturb" one
 * that is off by as much as its documented bound allows: what a program makes of it must be right
 * on every such hardware. */
#include "runtime/emu/emu.h"
#include <math.h>
#include <string.h>

/* Rounds to nearest, ties to even; NaN becomes the canonical one. */
uint16_t tl_emu_bf16(uint32_t x);
uint16_t tl_emu_bf16(uint32_t x)
{
    enum { CANONICAL_NAN = 0x7fff, BELOW_HALF = 0x7fff };
    if ((x & 0x7fffffff) > 0x7f800000)
        return CANONICAL_NAN;
    return (uint16_t)((x + BELOW_HALF + (x >> 16 & 1)) >> 16);
}

/* ---- f8 and f4 ---- */

typedef struct small_format {
    int fraction, least; /* bits; exponent of normal numbers */
    uint32_t sign, greatest, nan;
} small_format;

static const small_format F4 = {1, 0, 8, 7, 7};

static const small_format *format_of(uint32_t type)
{
    static const small_format E4M3 = {3, -6, 0x80, 0x7e, 0x7f}, E5M2 = {2, -14, 0x80, 0x7b, 0x7f};
    return type == TILE_F8E5M2 ? &E5M2 : &E4M3;
}

/* To nearest, ties to even; the greatest of what is greater. */
static uint32_t round_to(const small_format *f, uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    if (isnan(x))
        return f->nan;
    uint32_t sign = signbit(x) ? f->sign : 0;
    if (isinf(x))
        return sign | f->greatest;
    int exponent = x == 0 || ilogbf(x) < f->least ? f->least : ilogbf(x);
    double units = rint(ldexp(fabs((double)x), f->fraction - exponent)); /* of the last place */
    double code = ldexp(exponent - f->least, f->fraction) + units;
    return sign | (code > f->greatest ? f->greatest : (uint32_t)code);
}

/* The bits of an f16, which has all these numbers. */
static uint32_t half_of(const small_format *f, uint32_t code)
{
    enum { HALF_FRACTION = 10, HALF_LEAST = -14, HALF_SIGN = 0x8000, HALF_NAN = 0x7fff };
    uint32_t magnitude = code & (f->sign - 1), places = 1u << f->fraction;
    bool e5m2 = f->least == HALF_LEAST;
    if (e5m2)
        return magnitude > 0x7c ? HALF_NAN : code << 8;
    if (magnitude == f->nan && f->nan != f->greatest)
        return HALF_NAN;
    uint32_t sign = code & f->sign ? HALF_SIGN : 0;
    if (magnitude == 0)
        return sign;
    int exponent = (int)(magnitude >> f->fraction) - 1 + f->least;
    uint32_t units = magnitude % places + places;
    if (magnitude < places) { /* subnormal here, not there */
        units = magnitude;
        for (exponent = f->least; units < places; units *= 2)
            exponent--;
    }
    return sign | (((uint32_t)(exponent - HALF_LEAST) << HALF_FRACTION) +
                   (units << (HALF_FRACTION - f->fraction)));
}

uint32_t tl_emu_of_f8(uint32_t codes, uint32_t type);
uint32_t tl_emu_of_f8(uint32_t codes, uint32_t type)
{
    const small_format *f = format_of(type);
    return half_of(f, codes & 0xff) | half_of(f, codes >> 8 & 0xff) << 16;
}

uint16_t tl_emu_to_f8(uint32_t x, uint32_t y, uint32_t type);
uint16_t tl_emu_to_f8(uint32_t x, uint32_t y, uint32_t type)
{
    const small_format *f = format_of(type);
    return (uint16_t)(round_to(f, x) | round_to(f, y) << 8);
}

uint32_t tl_emu_of_f4(uint32_t codes);
uint32_t tl_emu_of_f4(uint32_t codes)
{
    return half_of(&F4, codes & 15) | half_of(&F4, codes >> 4 & 15) << 16;
}

uint8_t tl_emu_to_f4(uint32_t x, uint32_t y);
uint8_t tl_emu_to_f4(uint32_t x, uint32_t y)
{
    return (uint8_t)(round_to(&F4, x) | round_to(&F4, y) << 4);
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
