/* Number formats by their bits.
 *
 * One table, made of the columns of types.def, describes every float format (width of the fraction,
 * bias, greatest finite code, codes of infinity and NaN), and two functions do all the work.
 * `unpack` gives the exact value as a double: every format here is a subset of binary64. `pack`
 * takes an exact value sig * 2^exp with a 64-bit significand and rounds it once: it cuts the
 * significand at the target's precision (or at its least subnormal), looks at the rest, and lets
 * the carry run into the exponent field, which is right because codes of one sign are ordered as
 * their values are. Nothing depends on the host's rounding mode, flush-to-zero state or
 * half-precision instructions.
 *
 * NaN: a narrowed NaN keeps its sign and the top of its payload and is quiet, as the hardware of
 * all targets does; f8e4m3 has one NaN per sign, f8e5m2 gets its quiet one, f4e2m1 has none and
 * takes the greatest finite value, without the sign, as PTX does. The fnuz formats have one NaN,
 * the code that would be -0. */
#include "ir/numeric.h"

#include <math.h>
#include <string.h>

#include "ir/ir.h"

typedef TlFloatFormat Format;

/* All codes of `bits` bits below the sign. */
#define ONES(bits)                      (((uint64_t)1 << (bits)) - 1)
#define INFINITY_OF(exponent, fraction) (ONES(exponent) << (fraction))
#define FORMAT_NONE(e, f)               .max = ONES((e) + (f))
#define FORMAT_IEEE(e, f)                                                                          \
    .max = INFINITY_OF(e, f) - 1, .infinity = INFINITY_OF(e, f),                                   \
    .nan = INFINITY_OF(e, f) | (uint64_t)1 << ((f)-1)
#define FORMAT_TOP(e, f)  .max = ONES((e) + (f)) - 1, .nan = ONES((e) + (f))
#define FORMAT_FNUZ(e, f) .max = ONES((e) + (f)), .nan = (uint64_t)1 << ((e) + (f))

static const Format formats[TL_DTYPE_COUNT] = {
#define DTYPE(ID, text, bits, kind, numpy, exponent, fraction, bias, special)                      \
    [TL_##ID] = {fraction, bits, bias, TL_SPECIAL_##special, FORMAT_##special(exponent, fraction)},
#include "ir/types.def"
};

enum { FIELDS_OF_B = false, FIELDS_OF_I = false, FIELDS_OF_U = false, FIELDS_OF_F = true };
#define DTYPE(ID, text, bits, kind, numpy, exponent, fraction, bias, special)                      \
    _Static_assert(FIELDS_OF_##kind ? 1 + (exponent) + (fraction) == (bits)                        \
                                    : (exponent) + (fraction) + (bias) == 0,                       \
                   "types.def: the fields of " text);
#include "ir/types.def"

const TlFloatFormat *tl_float_format(TlDtype d)
{
    TL_ASSERT(tl_is_float(d), "%s is not a float type", tl_dtype_name(d));
    return &formats[d];
}

int tl_float_max_exponent(TlDtype d)
{
    const Format *f = tl_float_format(d);
    return (int)(f->max >> f->fraction) - f->bias;
}

int tl_float_normal_exponent(TlDtype d)
{
    return 1 - tl_float_format(d)->bias;
}

int tl_float_least_exponent(TlDtype d)
{
    return tl_float_normal_exponent(d) - tl_float_format(d)->fraction;
}

static uint64_t overflow_of(const Format *f)
{
    return f->infinity ? f->infinity : f->nan ? f->nan : f->max;
}

uint64_t tl_float_overflow(TlDtype d)
{
    return overflow_of(tl_float_format(d));
}

bool tl_is_fnuz(TlDtype d)
{
    return formats[d].special == TL_SPECIAL_FNUZ;
}

static uint64_t double_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double bits_double(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint32_t float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint64_t low_mask(int bits)
{
    return bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
}

/* ---- any small format to double, exactly ----------------------------------------------------- */

/* Does -0's code stand for NaN? */
static bool is_fnuz(const Format *f)
{
    return f->special == TL_SPECIAL_FNUZ;
}

/* The least number; a normal double, as f64 itself does not come here. */
static double value_of_1(const Format *f)
{
    return bits_double((uint64_t)(1023 + 1 - f->bias - f->fraction) << 52);
}

static double unpack(const Format *f, uint64_t bits)
{
    if (is_fnuz(f) && bits == f->nan)
        return bits_double(0x7ff8000000000000);
    uint64_t sign = (bits >> (f->width - 1) & 1) << 63;
    uint64_t code = bits & low_mask(f->width - 1);
    uint64_t top = code << (52 - f->fraction); /* exponent and mantissa, where a double has them */
    if (code > f->max) {
        if (code == f->infinity)
            return bits_double(sign | 0x7ff0000000000000);
        return bits_double(sign | 0x7ff8000000000000 | (top & low_mask(52)));
    }
    if (code >> f->fraction == 0)
        return bits_double(sign | double_bits((double)code * value_of_1(f)));
    return bits_double(sign | (top + ((uint64_t)(1023 - f->bias) << 52)));
}

float tl_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, code = h & 0x7fff;
    if (code >= 0x7c00)
        return bits_float(sign | 0x7f800000 | (code & 0x3ff) << 13 |
                          (code > 0x7c00 ? 0x400000u : 0));
    if (code < 0x400)
        return bits_float(sign | float_bits((float)code * 0x1p-24f));
    return bits_float(sign | ((code << 13) + (112u << 23)));
}

float tl_bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    return bits_float((u & 0x7fffffff) > 0x7f800000 ? u | 0x400000 : u);
}

/* ---- an exact value to any format, one rounding ---------------------------------------------- */

static uint64_t overflow(const Format *f, int round, bool saturate)
{
    if (saturate || round == TL_ROUND_ZERO)
        return f->max;
    return overflow_of(f);
}

/* The code (without sign) of sig * 2^exp. */
static uint64_t pack(const Format *f, uint64_t sig, int exp, int round, bool saturate)
{
    if (sig == 0)
        return 0;
    int lead = __builtin_clzll(sig);
    sig <<= lead;
    int field = exp - lead + 63 + f->bias; /* the exponent field of a normal number */
    int cut = 63 - f->fraction + (field < 1 ? 1 - field : 0);
    if (field > 4000)
        return overflow(f, round, saturate);
    uint64_t kept = cut > 63 ? 0 : sig >> cut;
    uint64_t rest = cut > 64    ? 1
                    : cut == 64 ? sig
                                : sig & low_mask(cut); /* over 64: below half of code 1 */
    uint64_t half = cut > 64 ? 2 : (uint64_t)1 << (cut - 1);
    if (round != TL_ROUND_ZERO && (rest > half || (rest == half && (kept & 1))))
        kept++;
    uint64_t code = field < 1 ? kept : ((uint64_t)(field - 1) << f->fraction) + kept;
    return code > f->max ? overflow(f, round, saturate) : code;
}

static uint64_t with_sign(const Format *f, bool negative, uint64_t code)
{
    if (is_fnuz(f) && (code == 0 || code == f->nan))
        return code;
    return (uint64_t)negative << (f->width - 1) | code;
}

static uint64_t pack_nan(const Format *f, uint64_t double_code)
{
    if (!f->nan)
        return f->max;
    if (!f->infinity || f->width == 8)
        return f->nan;
    return f->nan | (double_code & low_mask(52)) >> (52 - f->fraction);
}

static uint64_t pack_double(const Format *f, double x, int round, bool saturate)
{
    uint64_t u = double_bits(x), code = u & low_mask(63);
    bool negative = u >> 63;
    if (code > 0x7ff0000000000000)
        return with_sign(f, negative && f->nan, pack_nan(f, code));
    if (code == 0x7ff0000000000000) {
        return with_sign(f, negative, saturate ? f->max : overflow_of(f));
    }
    int field = (int)(code >> 52);
    uint64_t sig = code & low_mask(52);
    if (field)
        sig |= (uint64_t)1 << 52;
    return with_sign(f, negative, pack(f, sig, (field ? field : 1) - 1075, round, saturate));
}

static uint64_t pack_integer(const Format *f, bool negative, uint64_t magnitude, int round,
                             bool saturate)
{
    return with_sign(f, negative, pack(f, magnitude, 0, round, saturate));
}

/* The common case, in plain bit operations: dot and every f16 operation of the interpreter use
 * it. */
uint16_t tl_f32_to_f16(float x)
{
    uint32_t u = float_bits(x), sign = u >> 16 & 0x8000, code = u & 0x7fffffff;
    if (code >= 0x47800000) { /* 2^16 and above, infinity, NaN */
        if (code > 0x7f800000)
            return (uint16_t)(sign | 0x7e00 | (code >> 13 & 0x3ff));
        return (uint16_t)(sign | 0x7c00);
    }
    if (code < 0x38800000) { /* below the least normal: align to 2^-24 by adding 0.5 */
        float aligned = bits_float(code) + 0.5f; /* the addition rounds to nearest even at 2^-24 */
        return (uint16_t)(sign | (float_bits(aligned) - 0x3f000000));
    }
    code += 0xfff + (code >> 13 & 1);
    return (uint16_t)(sign | ((code - (112u << 23)) >> 13));
}

uint16_t tl_f32_to_bf16(float x)
{
    uint32_t u = float_bits(x);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* ---- one element of any type ----------------------------------------------------------------- */

double tl_bits_to_double(TlDtype d, uint64_t bits)
{
    if (d == TL_F64)
        return bits_double(bits);
    if (d == TL_F32)
        return (double)bits_float((uint32_t)bits);
    if (tl_is_float(d))
        return unpack(&formats[d], bits & low_mask(formats[d].width));
    if (d == TL_U64)
        return (double)bits;
    return (double)tl_bits_to_int(d, bits);
}

int64_t tl_bits_to_int(TlDtype d, uint64_t bits)
{
    TL_ASSERT(!tl_is_float(d), "%s is no integer", tl_dtype_name(d));
    if (d == TL_BOOL)
        return (bits & 0xff) != 0;
    int width = tl_dtype_bits(d);
    bits &= low_mask(width);
    if (tl_is_signed(d) && bits >> (width - 1))
        bits |= ~low_mask(width);
    return (int64_t)bits;
}

static uint64_t int_from_double(TlDtype d, double x)
{
    TL_ASSERT(tl_is_int(d), "%s is no integer", tl_dtype_name(d));
    int width = tl_dtype_bits(d);
    bool is_signed = tl_is_signed(d);
    if (x != x)
        return 0;
    double top = ldexp(1.0, is_signed ? width - 1 : width); /* first value above the range */
    if (x >= top)
        return tl_dtype_max_bits(d);
    if (!is_signed)
        return x <= 0 ? 0 : (uint64_t)x;
    if (x < -top)
        return tl_dtype_min_bits(d);
    return (uint64_t)(int64_t)x & low_mask(width);
}

static uint64_t from_double(TlDtype d, double x, int round, bool nosat)
{
    if (d == TL_BOOL)
        return x != 0;
    if (!tl_is_float(d))
        return int_from_double(d, x);
    if (d == TL_F64)
        return double_bits(x);
    return pack_double(tl_float_format(d), x, round, tl_is_small_float(d) && !nosat);
}

static uint64_t from_integer(TlDtype d, bool negative, uint64_t magnitude, int round, bool nosat)
{
    if (d == TL_BOOL)
        return magnitude != 0;
    if (tl_is_float(d))
        return pack_integer(tl_float_format(d), negative, magnitude, round,
                            tl_is_small_float(d) && !nosat);
    return (negative ? 0 - magnitude : magnitude) & low_mask(tl_dtype_bits(d));
}

uint64_t tl_bits_from_double(TlDtype d, double x)
{
    TL_ASSERT((unsigned)d < TL_DTYPE_COUNT, "element type %d", (int)d);
    return from_double(d, x, TL_ROUND_NEAREST, false);
}

uint64_t tl_bits_from_int(TlDtype d, int64_t x)
{
    return from_integer(d, x < 0, x < 0 ? 0 - (uint64_t)x : (uint64_t)x, TL_ROUND_NEAREST, false);
}

uint64_t tl_bits_from_uint(TlDtype d, uint64_t x)
{
    return from_integer(d, false, x, TL_ROUND_NEAREST, false);
}

uint64_t tl_cast_bits(TlDtype from, TlDtype to, uint64_t bits, int round, bool nosat)
{
    TL_ASSERT(round != TL_ROUND_STOCHASTIC,
              "a stochastic cast needs random bits; it is made of other ops");
    if (from == to && from != TL_BOOL)
        return bits & low_mask(tl_dtype_bits(from));
    if (tl_is_float(from))
        return from_double(to, tl_bits_to_double(from, bits), round, nosat);
    if (from == TL_U64)
        return from_integer(to, false, bits, round, nosat);
    int64_t x = tl_bits_to_int(from, bits);
    return from_integer(to, x < 0, x < 0 ? 0 - (uint64_t)x : (uint64_t)x, round, nosat);
}

/* ---- limits and elements of tiles ------------------------------------------------------------ */

static uint64_t lowest_float(const Format *f)
{
    return (uint64_t)1 << (f->width - 1) | (f->infinity ? f->infinity : f->max);
}

uint64_t tl_dtype_min_bits(TlDtype d)
{
    if (tl_is_float(d))
        return lowest_float(tl_float_format(d));
    return tl_is_signed(d) ? (uint64_t)1 << (tl_dtype_bits(d) - 1) : 0;
}

uint64_t tl_dtype_max_bits(TlDtype d)
{
    if (d == TL_BOOL)
        return 1;
    if (tl_is_float(d))
        return lowest_float(tl_float_format(d)) & low_mask(formats[d].width - 1);
    return low_mask(tl_dtype_bits(d) - tl_is_signed(d));
}

uint64_t tl_dtype_one_bits(TlDtype d)
{
    return tl_bits_from_int(d, 1);
}

uint64_t tl_elem_get(TlDtype d, const void *data, int64_t i)
{
    TL_ASSERT(i >= 0, "element %lld", (long long)i);
    const uint8_t *p = (const uint8_t *)data + i * tl_dtype_bytes(d);
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (tl_dtype_bytes(d)) {
    case 1: return d == TL_BOOL ? *p != 0 : *p & low_mask(tl_dtype_bits(d));
    case 2: memcpy(&u16, p, 2); return u16;
    case 4: memcpy(&u32, p, 4); return u32;
    default: memcpy(&u64, p, 8); return u64;
    }
}

void tl_elem_set(TlDtype d, void *data, int64_t i, uint64_t bits)
{
    uint8_t *p = (uint8_t *)data + i * tl_dtype_bytes(d);
    uint16_t u16 = (uint16_t)bits;
    uint32_t u32 = (uint32_t)bits;
    switch (tl_dtype_bytes(d)) {
    case 1: *p = (uint8_t)(d == TL_BOOL ? bits != 0 : bits & low_mask(tl_dtype_bits(d))); break;
    case 2: memcpy(p, &u16, 2); break;
    case 4: memcpy(p, &u32, 4); break;
    default: memcpy(p, &bits, 8); break;
    }
}
