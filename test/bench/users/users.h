/* Types and bounds of users_pictures.c and users_data.c: in plain C, what users.tile does. */
#ifndef USERS_H
#define USERS_H
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define R restrict
typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f;

static inline int cl(int v, int n)
{
    return v < 0 ? 0 : v >= n ? n - 1 : v;
}

static inline u8 c8(int v)
{
    return v < 0 ? 0 : v > 255 ? 255 : v;
}
#endif
