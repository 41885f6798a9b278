/* dtype.c: element types, from the compiler's one list of them, and their bits as numbers. */
#include "runtime/runtime.h"
#include <math.h>

typedef enum kind { KIND_B, KIND_I, KIND_U, KIND_F } kind;

static const struct row {
    const char *text;
    int bits;
    kind kind;
} rows[] = {
#define DTYPE(ID, text, bits, kind, numpy) {text, bits, KIND_##kind},
#include "ir/types.def"
};

/* tile.h lists the types itself, because it is a public header; its numbers must be those of
 * types.def. */
enum {
#define DTYPE(ID, text, bits, kind, numpy) ROW_##ID,
#include "ir/types.def"
    ROW_COUNT
};
#define DTYPE(ID, text, bits, kind, numpy)                                                         \
    _Static_assert((int)ROW_##ID == (int)TILE_##ID,                                                \
                   "tile.h and types.def number " text " differently");
#include "ir/types.def"

/* The meaning of the greatest exponent, and of the encoding of -0. */
typedef enum special {
    SPECIAL_IEEE,     /* infinities and NaNs */
    SPECIAL_ALL_ONES, /* numbers; NaN only if all bits of the fraction are set */
    SPECIAL_NONE,     /* numbers */
    SPECIAL_FNUZ      /* numbers; the encoding of -0 is NaN; the bias is larger by 1 */
} special;

/* Exponent and fraction widths. */
static const struct format {
    int8_t dtype, exponent, fraction, special;
} formats[] = {
    {TILE_F16, 5, 10, SPECIAL_IEEE},          {TILE_BF16, 8, 7, SPECIAL_IEEE},
    {TILE_F8E4M3, 4, 3, SPECIAL_ALL_ONES},    {TILE_F8E5M2, 5, 2, SPECIAL_IEEE},
    {TILE_F8E4M3FNUZ, 4, 3, SPECIAL_FNUZ},    {TILE_F8E5M2FNUZ, 5, 2, SPECIAL_FNUZ},
    {TILE_F4E2M1, 2, 1, SPECIAL_NONE},
};

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

static double decode(const struct format *f, uint64_t bits)
{
    uint64_t all_ones = (1u << f->exponent) - 1;
    uint64_t fraction = bits & ((1u << f->fraction) - 1);
    uint64_t exponent = (bits >> f->fraction) & all_ones;
    int bias = (1 << (f->exponent - 1)) - (f->special == SPECIAL_FNUZ ? 0 : 1);
    double sign = (bits >> (f->fraction + f->exponent)) & 1 ? -1.0 : 1.0;
    if (exponent == all_ones && f->special == SPECIAL_IEEE)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == all_ones && f->special == SPECIAL_ALL_ONES &&
        fraction == (1u << f->fraction) - 1)
        return (double)NAN;
    if (f->special == SPECIAL_FNUZ && sign < 0 && !exponent && !fraction)
        return (double)NAN;
    if (exponent == 0)
        return sign * ldexp((double)fraction, 1 - bias - f->fraction);
    return sign * ldexp((double)(fraction | 1u << f->fraction), (int)exponent - bias - f->fraction);
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
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dtype == (int8_t)dtype)
            return decode(&formats[i], bits);
    TL_INVARIANT_OR(0, false, "%s is not decoded as a float", tile_dtype_name(dtype));
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
