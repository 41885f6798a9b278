/* dtype.c: element types, from the compiler's one list of them, and their bits as numbers. */
#include "runtime/runtime.h"
#include <math.h>

typedef enum kind { KIND_B, KIND_I, KIND_U, KIND_F } kind;

/* The meaning of the greatest exponent of a float, and of the encoding of -0. */
typedef enum special {
    SPECIAL_NONE, /* numbers */
    SPECIAL_IEEE, /* infinities and NaNs */
    SPECIAL_TOP,  /* numbers; NaN only if all bits of the fraction are set */
    SPECIAL_FNUZ  /* numbers; the encoding of -0 is NaN */
} special;

static const struct row {
    const char *text;
    int bits;
    kind kind;
    int exponent, fraction, bias; /* of floats: widths, and the exponent's bias */
    special special;
} rows[] = {
#define DTYPE(ID, text, bits, kind, numpy, exponent, fraction, bias, special)                      \
    {text, bits, KIND_##kind, exponent, fraction, bias, SPECIAL_##special},
#include "ir/types.def"
};

/* tile.h lists the types itself, because it is a public header; its numbers must be those of
 * types.def. */
enum {
#define DTYPE(ID, ...) ROW_##ID,
#include "ir/types.def"
    ROW_COUNT
};
#define DTYPE(ID, text, ...)                                                                       \
    _Static_assert((int)ROW_##ID == (int)TILE_##ID,                                                \
                   "tile.h and types.def number " text " differently");
#include "ir/types.def"

_Static_assert(TILE_BOOL == 0, "numbers of types begin at 0: tl_dtype_known");

bool tl_dtype_known(int dtype)
{
    return dtype >= 0 && dtype < ROW_COUNT;
}

const char *tile_dtype_name(tile_dtype dtype)
{
    return tl_dtype_known((int)dtype) ? rows[dtype].text : "?";
}

int tile_dtype_bits(tile_dtype dtype)
{
    return tl_dtype_known((int)dtype) ? rows[dtype].bits : 0;
}

bool tl_is_float_dtype(tile_dtype dtype)
{
    return tl_dtype_known((int)dtype) && rows[dtype].kind == KIND_F;
}

bool tl_is_packed_dtype(tile_dtype dtype)
{
    return tl_dtype_known((int)dtype) && rows[dtype].bits == 4;
}

/* 2^n, n in the range of normal numbers. */
static double power_of_2(int n)
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static double decode(const struct row *f, uint64_t bits)
{
    uint64_t all_ones = (1u << f->exponent) - 1;
    uint64_t fraction = bits & ((1u << f->fraction) - 1);
    uint64_t exponent = (bits >> f->fraction) & all_ones;
    double sign = (bits >> (f->fraction + f->exponent)) & 1 ? -1.0 : 1.0;
    if (exponent == all_ones && f->special == SPECIAL_IEEE)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == all_ones && f->special == SPECIAL_TOP && fraction == (1u << f->fraction) - 1)
        return (double)NAN;
    if (f->special == SPECIAL_FNUZ && sign < 0 && !exponent && !fraction)
        return (double)NAN;
    if (exponent == 0)
        return sign * (double)fraction * power_of_2(1 - f->bias - f->fraction);
    return sign * (double)(fraction | 1u << f->fraction) *
           power_of_2((int)exponent - f->bias - f->fraction);
}

double tl_decode_float(tile_dtype dtype, uint64_t bits)
{
    if (dtype == TILE_F64) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    if (dtype == TILE_F32) {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        return (double)f;
    }
    TL_INVARIANT_OR(0, tl_is_float_dtype(dtype), "%s is not decoded as a float",
                    tile_dtype_name(dtype));
    return decode(&rows[dtype], bits);
}

int64_t tl_decode_int(tile_dtype dtype, uint64_t bits)
{
    int width = tile_dtype_bits(dtype);
    TL_INVARIANT_OR(0, width > 0 && !tl_is_float_dtype(dtype), "%s is not decoded as an integer",
                    tile_dtype_name(dtype));
    if (dtype == TILE_BOOL)
        return (bits & 0xff) != 0;
    if (width >= 64)
        return (int64_t)bits;
    uint64_t low = bits & ((UINT64_C(1) << width) - 1);
    bool negative = rows[dtype].kind == KIND_I && (low >> (width - 1)) & 1;
    return (int64_t)(negative ? low | ~UINT64_C(0) << width : low);
}
