/* emu_math.c: leaves that compute one number: conversions and hardware math. An approximate instruction gives
 * the correctly rounded value here. */
#include "runtime/emu.h"
#include <math.h>

/* Adds half of what is cut off; infinities and NaN stay. */
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

uint32_t tl_emu_ex2(uint32_t x);
uint32_t tl_emu_ex2_ftz(uint32_t x);
uint32_t tl_emu_ex2(uint32_t x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    f = (float)exp2((double)f);
    memcpy(&x, &f, sizeof f);
    return x;
}

uint32_t tl_emu_ex2_ftz(uint32_t x)
{
    enum { EXPONENT = 0x7f800000 };
    uint32_t y = tl_emu_ex2(x & EXPONENT ? x : 0);
    return y & EXPONENT ? y : 0;
}
