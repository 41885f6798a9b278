/* emu_math.c: leaves that compute one number: conversions and hardware math. An approximate
 * instruction gives the correctly rounded value here, or with the device's setting "perturb" one
 * that is off by as much as its documented bound allows: what a program makes of it must be right
 * on every such hardware. */
#include "runtime/emu/emu.h"
#include <math.h>

/* Rounds to nearest, ties away from zero; infinities stay, NaN becomes the canonical one. */
uint32_t tl_emu_tf32(uint32_t x);
uint32_t tl_emu_tf32(uint32_t x)
{
    enum { CUT = 0x1fff };
    if ((x & 0x7f800000) == 0x7f800000)
        return x & 0x7fffff ? 0x7fffffff : x;
    return (x + CUT / 2 + 1) & ~(uint32_t)CUT;
}

uint64_t tl_emu_mul_wide(uint32_t x, uint32_t y);
uint64_t tl_emu_mul_wide(uint32_t x, uint32_t y)
{
    return (uint64_t)((int64_t)(int32_t)x * (int32_t)y);
}

/* Changes a normal number by up to `ulp` units in the last place, always in the same way for the
 * same x, as hardware does. */
static uint32_t perturbed(uint32_t result, uint32_t x, uint32_t ulp)
{
    enum { EXPONENT = 0x7f800000, FIRST_NORMAL = 0x00800000 };
    TL_INVARIANT_OR(result, ulp > 0 && ulp < FIRST_NORMAL, "a bound of %u units", ulp);
    uint64_t seed = tl_emu_now ? tl_emu_now->job->perturb : 0;
    if (!seed)
        return result;
    uint64_t h = (x + seed) * 0x9e3779b97f4a7c15u; /* the golden ratio: neighbours differ */
    uint32_t size = result & ~(1u << 31),
             moved = size + (uint32_t)((h >> 32) % (2 * ulp + 1)) - ulp;
    bool normal = size >= FIRST_NORMAL && size < EXPONENT;
    return normal && moved >= FIRST_NORMAL && moved < EXPONENT ? (result ^ size) | moved : result;
}

uint32_t tl_emu_ex2(uint32_t x);
uint32_t tl_emu_ex2_ftz(uint32_t x);
uint32_t tl_emu_ex2(uint32_t x)
{
    enum { ULP = 2, EXPONENT = 0x7f800000 }; /* leaf.def */
    float f;
    memcpy(&f, &x, sizeof f);
    f = (float)exp2((double)f);
    uint32_t y;
    memcpy(&y, &f, sizeof f);
    return x & EXPONENT ? perturbed(y, x, ULP) : y; /* 2^0 is exact on hardware too */
}

uint32_t tl_emu_ex2_ftz(uint32_t x)
{
    enum { EXPONENT = 0x7f800000 };
    uint32_t y = tl_emu_ex2(x & EXPONENT ? x : 0);
    return y & EXPONENT ? y : 0;
}
