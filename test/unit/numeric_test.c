/* Conversions between number formats against a slow independent rounding: every code of a format is
 * listed with its value (computed by ldexp from its fields), and a rounding is a search for the
 * nearest, ties to the even code. */
#include <math.h>
#include <stdlib.h>

#include "ir/interp/interp_impl.h"
#include "ir/ir.h"
#include "ir/numeric.h"
#include "test/unit/unit.h"

static double slow_value(int mantissa, int bias, uint32_t code) /* code without sign, finite */
{
    uint32_t field = code >> mantissa, m = code & ((1u << mantissa) - 1);
    if (field == 0)
        return ldexp((double)m, 1 - bias - mantissa);
    return ldexp((double)(m | 1u << mantissa), (int)field - bias - mantissa);
}

typedef struct Slow {
    TlDtype dtype;
    int mantissa, bias, width;
    uint32_t max; /* greatest finite code */
} Slow;

static const Slow slow_formats[] = {
    {TL_F16, 10, 15, 16, 0x7bff}, {TL_BF16, 7, 127, 16, 0x7f7f}, {TL_F8E4M3, 3, 7, 8, 0x7e},
    {TL_F8E5M2, 2, 15, 8, 0x7b},  {TL_F4E2M1, 1, 1, 4, 7},
    {TL_F8E4M3FNUZ, 3, 8, 8, 0x7f}, {TL_F8E5M2FNUZ, 2, 16, 8, 0x7f},
};

/* The code of |x| rounded to nearest even; max + 1 on overflow. */
static uint32_t slow_round(const Slow *s, double x)
{
    uint32_t low = 0, high = s->max + 1;
    x = fabs(x);
    while (high - low >
           1) { /* value(low) <= x < value(high), value(max + 1) as if there were one more */
        uint32_t mid = (low + high) / 2;
        if (slow_value(s->mantissa, s->bias, mid) <= x)
            low = mid;
        else
            high = mid;
    }
    double a = slow_value(s->mantissa, s->bias, low), b = slow_value(s->mantissa, s->bias, high);
    double up = b - x, down = x - a; /* exact for the values tried, or far from a tie */
    if (x >= b)
        return high;
    return down < up || (down == up && low % 2 == 0) ? low : high;
}

static uint64_t rng_state = 88172645463325252u;
static uint64_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state;
}

static uint64_t as_u64(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

static bool is_fnuz(const Slow *s)
{
    return s->dtype == TL_F8E4M3FNUZ || s->dtype == TL_F8E5M2FNUZ;
}

/* The fnuz formats have 0x80 for NaN: what overflows is that already, and 0 has no sign. */
static uint64_t with_sign(const Slow *s, double x, uint64_t code)
{
    uint64_t sign = (uint64_t)(signbit(x) != 0) << (s->width - 1);
    return is_fnuz(s) && code == 0 ? 0 : sign | code;
}

static void check_round(const Slow *s, double x)
{
    uint64_t sign = (uint64_t)(signbit(x) != 0) << (s->width - 1);
    uint32_t want = slow_round(s, x);
    uint64_t nosat = want, sat = want > s->max ? s->max : want;
    if (want > s->max && s->dtype == TL_F4E2M1)
        nosat = s->max; /* the format has neither infinity nor NaN */
    bool is8 = s->width <= 8;
    CHECK_INT(tl_cast_bits(TL_F64, s->dtype, as_u64(x), TL_ROUND_NEAREST, true),
              with_sign(s, x, nosat));
    CHECK_INT(tl_bits_from_double(s->dtype, x), with_sign(s, x, is8 ? sat : nosat));
    if (s->dtype == TL_F16 && (double)(float)x == x)
        CHECK_INT(tl_f32_to_f16((float)x), sign | want);
    if (s->dtype == TL_BF16 && (double)(float)x == x)
        CHECK_INT(tl_f32_to_bf16((float)x), sign | want);
    if (want <= s->max) {
        double zero = slow_value(s->mantissa, s->bias, want);
        if (zero > fabs(x))
            zero = slow_value(s->mantissa, s->bias, want - 1);
        uint64_t z = tl_cast_bits(TL_F64, s->dtype, as_u64(x), TL_ROUND_ZERO, true);
        CHECK(fabs(tl_bits_to_double(s->dtype, z)) == zero);
    } else {
        CHECK_INT(tl_cast_bits(TL_F64, s->dtype, as_u64(x), TL_ROUND_ZERO, true), sign | s->max);
    }
}

/* Every value, every tie between neighbours, and both sides of it, of both signs. */
static void check_all_codes(const Slow *s)
{
    for (uint32_t c = 0; c <= s->max; c++) {
        double v = slow_value(s->mantissa, s->bias, c),
               next = slow_value(s->mantissa, s->bias, c + 1);
        double tie = v + (next - v) / 2;
        double tries[] = {v,
                          tie,
                          nextafter(tie, 0),
                          nextafter(tie, INFINITY),
                          nextafter(v, INFINITY),
                          (float)(v + (next - v) * 0.375)};
        CHECK(tl_bits_to_double(s->dtype, c) == v);
        for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
            check_round(s, tries[i]);
            check_round(s, -tries[i]);
        }
    }
    for (int i = 0; i < 2000; i++)
        check_round(s, ldexp((double)rng(), (int)(rng() % 60) - 100));
    check_round(s, 0x1p-1074);
    check_round(s, 1e300);
}

static double value_of(TlDtype d, uint64_t code)
{
    return tl_bits_to_double(d, code);
}

static void check_specials(void)
{
    CHECK_INT(tl_f32_to_f16(INFINITY), 0x7c00);
    CHECK_INT(tl_bits_from_double(TL_F16, -INFINITY), 0xfc00);
    CHECK_INT(tl_f32_to_bf16(-INFINITY), 0xff80);
    CHECK_INT(tl_f32_to_f16(65519.996f), 0x7bff);
    CHECK_INT(tl_f32_to_f16(65520.0f), 0x7c00);
    CHECK_INT(tl_bits_from_double(TL_F8E4M3, INFINITY), 0x7e);
    CHECK_INT(tl_bits_from_double(TL_F8E5M2, -INFINITY), 0xfb);
    CHECK_INT(tl_cast_bits(TL_F32, TL_F8E4M3, 0x7f800000, TL_ROUND_NEAREST, true), 0x7f);
    CHECK_INT(tl_cast_bits(TL_F32, TL_F8E5M2, 0xff800000, TL_ROUND_NEAREST, true), 0xfc);
    CHECK_INT(tl_bits_from_double(TL_F8E4M3, 464.0), 0x7e);
    CHECK_INT(tl_cast_bits(TL_F64, TL_F8E4M3, as_u64(464.0), TL_ROUND_NEAREST, true), 0x7e);
    CHECK_INT(tl_cast_bits(TL_F64, TL_F8E4M3, as_u64(464.1), TL_ROUND_NEAREST, true), 0x7f);
    for (int i = 0; i < 2; i++) { /* 0x80 is what is no number or does not fit, 0 has no sign */
        TlDtype d = i ? TL_F8E5M2FNUZ : TL_F8E4M3FNUZ;
        static const uint32_t NOT_FINITE[4] = {0x7fc00000, 0xffc00000, 0x7f800000, 0xff800000};
        for (int j = 0; j < 4; j++)
            CHECK_INT(tl_cast_bits(TL_F32, d, NOT_FINITE[j], TL_ROUND_NEAREST, true), 0x80);
        CHECK_INT(tl_bits_from_double(d, INFINITY), 0x7f);
        CHECK_INT(tl_bits_from_double(d, -INFINITY), 0xff);
        CHECK_INT(tl_bits_from_double(d, NAN), 0x80);
        CHECK_INT(tl_bits_from_double(d, -0.0), 0);
        CHECK_INT(tl_bits_from_double(d, -1e-30), 0);
        CHECK_INT(tl_cast_bits(TL_F32, d, 0x80000001, TL_ROUND_ZERO, false), 0);
        CHECK_INT(tl_bits_from_int(d, -1), 0xc0);
        CHECK_INT(tl_bits_from_int(d, -100000), 0xff);
        CHECK_INT(tl_cast_bits(TL_I32, d, (uint32_t)-100000, TL_ROUND_NEAREST, true), 0x80);
        CHECK_INT(tl_dtype_min_bits(d), 0xff);
        CHECK_INT(tl_dtype_max_bits(d), 0x7f);
        CHECK(isnan(tl_bits_to_double(d, 0x80)));
    }
    CHECK_INT(tl_bits_from_double(TL_F8E4M3FNUZ, 247.9), 0x7f);
    CHECK_INT(tl_cast_bits(TL_F64, TL_F8E4M3FNUZ, as_u64(247.9), TL_ROUND_NEAREST, true), 0x7f);
    CHECK_INT(tl_cast_bits(TL_F64, TL_F8E4M3FNUZ, as_u64(248), TL_ROUND_NEAREST, true), 0x80);
    CHECK_INT(tl_cast_bits(TL_F64, TL_F8E4M3FNUZ, as_u64(-1e9), TL_ROUND_ZERO, true), 0xff);
    CHECK(value_of(TL_F8E4M3FNUZ, 0xff) == -240 && value_of(TL_F8E4M3FNUZ, 1) == 0x1p-10f &&
          isnan(value_of(TL_F8E4M3FNUZ, 0x80)));
    CHECK(value_of(TL_F8E5M2FNUZ, 0xff) == -57344 && value_of(TL_F8E5M2FNUZ, 1) == 0x1p-17f &&
          isnan(value_of(TL_F8E5M2FNUZ, 0x80)));
    for (TlDtype d = 0; d < TL_DTYPE_COUNT; d++) {
        if (!tl_is_float(d) || d == TL_F4E2M1)
            continue;
        CHECK(isnan(tl_bits_to_double(d, tl_bits_from_double(d, NAN))));
        CHECK(
            isnan(tl_bits_to_double(d, tl_cast_bits(TL_F32, d, 0xff800001, TL_ROUND_ZERO, false))));
    }
    for (uint32_t h = 0; h < 0x10000;
         h++) { /* round trips through f32 and f64, NaNs become quiet ones */
        uint16_t f = (uint16_t)h, quiet = (h & 0x7fff) > 0x7c00 ? h | 0x200 : h;
        CHECK_INT(tl_f32_to_f16(tl_f16_to_f32(f)), quiet);
        CHECK_INT(tl_bits_from_double(TL_F16, tl_bits_to_double(TL_F16, f)), quiet);
        quiet = (h & 0x7fff) > 0x7f80 ? h | 0x40 : h;
        CHECK_INT(tl_f32_to_bf16(tl_bf16_to_f32(f)), quiet);
        CHECK_INT(tl_bits_from_double(TL_BF16, tl_bits_to_double(TL_BF16, f)), quiet);
        CHECK(isnan(tl_f16_to_f32(f)) || (double)tl_f16_to_f32(f) == tl_bits_to_double(TL_F16, f));
    }
    for (uint32_t b = 0; b < 256; b++) {
        CHECK(isnan(value_of(TL_F8E4M3, b)) == (b % 128 == 127));
        CHECK(isnan(value_of(TL_F8E5M2, b)) == (b % 128 > 124));
    }
    CHECK(value_of(TL_F8E4M3, 0xfe) == -448 && value_of(TL_F8E5M2, 0x7b) == 57344 &&
          isinf(value_of(TL_F8E5M2, 0xfc)));
    CHECK(value_of(TL_F4E2M1, 0xf) == -6 && value_of(TL_F4E2M1, 1) == 0.5 &&
          value_of(TL_F4E2M1, 5) == 3);
}

static uint64_t cast(TlDtype from, TlDtype to, uint64_t bits)
{
    return tl_cast_bits(from, to, bits, TL_ROUND_NEAREST, false);
}

/* What follows from the columns of types.def, of every float type. */
static void check_formats(void)
{
    for (int i = 0; i < TL_DTYPE_COUNT; i++) {
        TlDtype d = (TlDtype)i;
        if (!tl_is_float(d))
            continue;
        const TlFloatFormat *f = tl_float_format(d);
        uint64_t normal = (uint64_t)1 << f->fraction;
        CHECK_INT(ilogb(tl_bits_to_double(d, f->max)), tl_float_max_exponent(d));
        CHECK_INT(ilogb(tl_bits_to_double(d, normal)), tl_float_normal_exponent(d));
        CHECK_INT(ilogb(tl_bits_to_double(d, 1)), tl_float_least_exponent(d));
        CHECK_INT(tl_cast_bits(TL_F64, d, 0x7ff0000000000000, TL_ROUND_NEAREST, true),
                  tl_float_overflow(d));
        CHECK(!f->nan || isnan(tl_bits_to_double(d, f->nan)));
        CHECK_INT(isnan(tl_bits_to_double(d, (uint64_t)1 << (f->width - 1))), tl_is_fnuz(d));
    }
}

static void check_ints(void)
{
    CHECK_INT(tl_bits_from_double(TL_I8, 127.9), 127);
    CHECK_INT(tl_bits_from_double(TL_I8, 128), 127);
    CHECK_INT(tl_bits_from_double(TL_I8, -128.9), 0x80);
    CHECK_INT(tl_bits_from_double(TL_I8, -1e30), 0x80);
    CHECK_INT(tl_bits_from_double(TL_U8, -0.5), 0);
    CHECK_INT(tl_bits_from_double(TL_U8, -INFINITY), 0);
    CHECK_INT(tl_bits_from_double(TL_U8, 1e9), 255);
    CHECK_INT(tl_bits_from_double(TL_I32, NAN), 0);
    CHECK_INT(tl_bits_from_double(TL_I32, -2147483648.5), 0x80000000);
    CHECK_INT(tl_bits_from_double(TL_I32, -1.5), 0xffffffff);
    CHECK_INT(tl_bits_from_double(TL_I64, 9223372036854775808.0), INT64_MAX);
    CHECK_INT(tl_bits_from_double(TL_I64, -9223372036854775808.0), INT64_MIN);
    CHECK_INT(tl_bits_from_double(TL_U64, 18446744073709551616.0), -1);
    CHECK_INT(tl_bits_from_double(TL_U64, 0x1.fffffffffffffp63), (int64_t)0xfffffffffffff800);
    CHECK_INT(tl_bits_from_double(TL_I4, 100), 7);
    CHECK_INT(tl_bits_from_double(TL_I4, -100), 8);
    CHECK_INT(tl_bits_to_int(TL_I4, 0xf), -1);
    CHECK_INT(tl_bits_to_int(TL_U4, 0xf), 15);
    CHECK_INT(cast(TL_I32, TL_I8, 0xffffff80), 0x80);
    CHECK_INT(cast(TL_I8, TL_U32, 0x80), 0xffffff80);
    CHECK_INT(cast(TL_U8, TL_I64, 0x80), 0x80);
    CHECK_INT(cast(TL_I32, TL_BOOL, 256), 1);
    CHECK_INT(cast(TL_F32, TL_BOOL, 0x80000000), 0);
    CHECK_INT(cast(TL_F32, TL_BOOL, 0x7fc00000), 1);
    CHECK_INT(cast(TL_BOOL, TL_F16, 1), 0x3c00);
    /* one rounding from 64-bit integers: 2^62 + 2^54 is a tie in bf16, one more bit is not */
    CHECK_INT(cast(TL_I64, TL_BF16, (1ull << 62) + (1ull << 54)), 0x5e80);
    CHECK_INT(cast(TL_I64, TL_BF16, (1ull << 62) + (1ull << 54) + 1), 0x5e81);
    CHECK_INT(cast(TL_U64, TL_F32, (1ull << 63) + (1ull << 39) + 1), 0x5f000001);
    CHECK_INT(cast(TL_I64, TL_F64, (uint64_t)INT64_MIN), (int64_t)0xc3e0000000000000);
    CHECK_INT(cast(TL_I32, TL_F16, (uint64_t)-65520), 0xfc00);
    CHECK_INT(cast(TL_I32, TL_F8E4M3, 1000), 0x7e);
    for (int i = 0; i < 20000; i++) { /* against C's own conversions */
        int64_t x = (int64_t)(rng() >> (rng() % 63)) * (rng() & 1 ? 1 : -1);
        float f = (float)x;
        double d = (double)x;
        uint32_t fu;
        memcpy(&fu, &f, 4);
        CHECK_INT(tl_bits_from_int(TL_F32, x), fu);
        CHECK_INT(tl_bits_from_int(TL_F64, x), as_u64(d));
        CHECK_INT(tl_bits_from_int(TL_I16, x), (uint16_t)x);
        double r = ldexp((double)(int64_t)rng(), (int)(rng() % 300) - 212);
        float rf = (float)r;
        memcpy(&fu, &rf, 4);
        CHECK_INT(tl_bits_from_double(TL_F32, r), fu);
    }
}

static void check_limits_and_elements(void)
{
    CHECK_INT(tl_dtype_min_bits(TL_I32), 0x80000000);
    CHECK_INT(tl_dtype_max_bits(TL_I32), 0x7fffffff);
    CHECK_INT(tl_dtype_max_bits(TL_U64), -1);
    CHECK_INT(tl_dtype_min_bits(TL_U16), 0);
    CHECK_INT(tl_dtype_min_bits(TL_F16), 0xfc00);
    CHECK_INT(tl_dtype_max_bits(TL_F32), 0x7f800000);
    CHECK_INT(tl_dtype_min_bits(TL_F8E4M3), 0xfe);
    CHECK_INT(tl_dtype_max_bits(TL_BOOL), 1);
    CHECK_INT(tl_dtype_one_bits(TL_BF16), 0x3f80);
    CHECK_INT(tl_dtype_one_bits(TL_F4E2M1), 2);
    uint64_t store[4] = {0};
    for (TlDtype d = 0; d < TL_DTYPE_COUNT; d++) {
        uint64_t want = d == TL_BOOL ? 1 : tl_dtype_max_bits(d);
        tl_elem_set(d, store, 1, want);
        CHECK_INT(tl_elem_get(d, store, 1), want);
        CHECK_INT(tl_elem_get(d, store, 0), 0);
        tl_elem_set(d, store, 1, 0);
    }
}

/* Of each kind of reduction and each type that it takes: the identity changes nothing, there is an
 * op that combines, and elements met again change what the table says. */
static void check_combines(void)
{
    for (int kind = 0; kind < TL_COMBINE_USER; kind++)
        for (TlDtype d = 0; d < TL_DTYPE_COUNT; d++) {
            if (!tl_combine_takes((TlCombine)kind, d))
                continue;
            uint64_t xs[] = {0, tl_dtype_one_bits(d), tl_dtype_min_bits(d), tl_dtype_max_bits(d)};
            uint64_t identity = tl_combine_identity((TlCombine)kind, d), got, again;
            TlElemFn fn = tl_combine_fn((TlCombine)kind, d);
            CHECK(fn != NULL);
            for (size_t i = 0; fn && i < sizeof xs / sizeof *xs; i++) {
                got = again = 0;
                fn(&got, &identity, &xs[i], 1);
                CHECK_INT(got, xs[i]);
                fn(&again, &xs[i], &xs[i], 1);
                TlAgain what = tl_combine_again((TlCombine)kind);
                if (what == TL_AGAIN_NOTHING || (what == TL_AGAIN_NOTHING_IF_0 && !xs[i]))
                    CHECK_INT(again, xs[i]);
            }
        }
    CHECK_INT(tl_combine_of_none(TL_COMBINE_ADD, TL_F32), 0);
    CHECK_INT(tl_combine_of_none(TL_COMBINE_MAX, TL_F32), 0xff800000);
    CHECK_INT(tl_combine_of_none(TL_COMBINE_MIN, TL_F16), 0x7c00);
    CHECK_INT(tl_combine_of_none(TL_COMBINE_MIN, TL_I8), 0x7f);
    CHECK(tl_combine_opcode(TL_COMBINE_USER) == TL_OP_COUNT);
    CHECK(tl_combine_is_offered(TL_COMBINE_ADD, TL_BOOL));
    CHECK(!tl_combine_takes(TL_COMBINE_ADD, TL_BOOL) && !tl_combine_takes(TL_COMBINE_ADD, TL_I4));
    CHECK(!tl_combine_is_offered(TL_COMBINE_AND, TL_I32));
}

static void check_atomics(void)
{
    CHECK(tl_rmw_combine(TL_RMW_MIN) == TL_COMBINE_MIN);
    CHECK(tl_rmw_combine(TL_RMW_XCHG) == TL_COMBINE_USER);
    CHECK(tl_rmw_takes(TL_RMW_ADD, TL_BF16) && !tl_rmw_takes(TL_RMW_MAX, TL_BF16));
    CHECK(tl_rmw_takes(TL_RMW_XCHG, TL_F64) && !tl_rmw_takes(TL_RMW_XOR, TL_F32));
    CHECK(tl_rmw_takes(TL_RMW_XOR, TL_U32) && tl_rmw_takes(TL_RMW_ADD, TL_I16));
    CHECK(!tl_rmw_takes(TL_RMW_ADD, TL_F8E5M2) && !tl_rmw_takes(TL_RMW_ADD, TL_BOOL));
    CHECK(!tl_rmw_takes(TL_RMW_ADD, TL_I4) && tl_rmw_takes(TL_RMW_XOR, TL_BOOL));
    CHECK(tl_rmw_takes(TL_RMW_MUL, TL_F16) && !tl_rmw_takes(TL_RMW_MUL, TL_BOOL));
    CHECK(tl_rmw_takes(TL_RMW_XCHG, TL_BOOL) && !tl_rmw_takes(TL_RMW_MAX, TL_BOOL));
    CHECK(tl_atomic_moves(TL_U8) && tl_atomic_moves(TL_BOOL) && tl_atomic_moves(TL_F64));
    CHECK(!tl_atomic_moves(TL_F16) && !tl_atomic_moves(TL_U4));
}

int main(void)
{
    for (size_t i = 0; i < sizeof slow_formats / sizeof *slow_formats; i++)
        check_all_codes(&slow_formats[i]);
    check_specials();
    check_formats();
    check_ints();
    check_limits_and_elements();
    check_combines();
    check_atomics();
    return unit_result();
}
