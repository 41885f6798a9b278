/* Number formats in plain C, exact and the same on every host: conversions between element types by
 * their bits. Integer division that the language leaves unspecified gives the same on every device
 * of ours: x / 0 = 0, x % 0 = 0, MIN / -1 = MIN, MIN % -1 = 0. */
#ifndef TL_NUMERIC_H
#define TL_NUMERIC_H
#include "ir/type.h"

typedef enum TlSpecial {
    TL_SPECIAL_NONE,
    TL_SPECIAL_IEEE,
    TL_SPECIAL_TOP,
    TL_SPECIAL_FNUZ
} TlSpecial;

/* A float type, as types.def describes it, and what follows; codes are without the sign. */
typedef struct TlFloatFormat {
    int fraction; /* bits of it */
    int width, bias;
    TlSpecial special;
    uint64_t max;      /* code of the greatest finite number */
    uint64_t infinity; /* its code, 0 = there is none */
    uint64_t nan;      /* of a quiet NaN, 0 = there is none; fnuz: the sign's bit */
} TlFloatFormat;
const TlFloatFormat *tl_float_format(TlDtype d);
/* Exponents of the greatest finite number, of the least number that has all bits of the fraction
 * (the least normal one), and of the least of all. */
int tl_float_max_exponent(TlDtype d);
int tl_float_normal_exponent(TlDtype d);
int tl_float_least_exponent(TlDtype d);
/* What is beyond the greatest number becomes, unless it saturates: infinity, else NaN, else the
 * greatest number. */
uint64_t tl_float_overflow(TlDtype d);

float tl_f16_to_f32(uint16_t h);
float tl_bf16_to_f32(uint16_t h);
uint16_t tl_f32_to_f16(float x);  /* nearest even */
uint16_t tl_f32_to_bf16(float x);

/* One element's bits (zero-extended) to the widest form of its kind and back. */
double tl_bits_to_double(TlDtype d, uint64_t bits); /* any type; i64/u64 round */
/* Integer types and bool, sign- or zero-extended. */
int64_t tl_bits_to_int(TlDtype d, uint64_t bits);
/* Floats round once to nearest even (f8 saturates); integers saturate, NaN gives 0. */
uint64_t tl_bits_from_double(TlDtype d, double x);
/* Integers wrap, bool is x != 0, floats round once. */
uint64_t tl_bits_from_int(TlDtype d, int64_t x);
uint64_t tl_bits_from_uint(TlDtype d, uint64_t x);
/* The language's cast of one element, by bits: LANGUAGE.md section 4. nosat: see CAST. */
uint64_t tl_cast_bits(TlDtype from, TlDtype to, uint64_t bits, int round, bool nosat);
uint64_t tl_dtype_min_bits(TlDtype d); /* least value: -infinity for floats */
uint64_t tl_dtype_max_bits(TlDtype d);
uint64_t tl_dtype_one_bits(TlDtype d);
/* Reads or writes element i of a packed array as in TlTileData. */
uint64_t tl_elem_get(TlDtype d, const void *data, int64_t i);
void tl_elem_set(TlDtype d, void *data, int64_t i, uint64_t bits);
#endif
