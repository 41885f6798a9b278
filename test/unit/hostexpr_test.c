/* Launch-time expressions: each operator, what is refused, and where faults go. */
#include "runtime/runtime.h"
#include "test/unit/image_maker.h"
#include "test/unit/unit.h"
#include <math.h>

static tl_hx_result run(const char *text, int64_t *out)
{
    tile_hx_ins code[64];
    uint32_t n = maker_code(NULL, text, code);
    tl_hx_env env = {.processors = 13};
    *out = 0;
    if (!CHECK(tl_hostexpr_valid(code, n, 0, 0)))
        return TL_HX_OVERFLOW;
    return tl_hostexpr_eval(code, n, &env, out);
}

static const struct {
    const char *text;
    int64_t value;
    tl_hx_result result;
} integers[] = {
    {"42", 42, TL_HX_FINE},
    {"sms", 13, TL_HX_FINE},
    {"3 4 +", 7, TL_HX_FINE},
    {"3 4 -", -1, TL_HX_FINE},
    {"-3 4 *", -12, TL_HX_FINE},
    {"7 2 /", 3, TL_HX_FINE},
    {"-7 2 /", -3, TL_HX_FINE},
    {"7 -2 /", -3, TL_HX_FINE},
    {"-7 2 %", -1, TL_HX_FINE},
    {"7 -2 %", 1, TL_HX_FINE},
    {"7 2 cdiv", 4, TL_HX_FINE},
    {"-7 2 cdiv", -3, TL_HX_FINE},
    {"8 2 cdiv", 4, TL_HX_FINE},
    {"0 5 cdiv", 0, TL_HX_FINE},
    {"7 -2 cdiv", -3, TL_HX_FINE},
    {"-7 -2 cdiv", 4, TL_HX_FINE},
    {"9223372036854775807 2 cdiv", INT64_C(4611686018427387904), TL_HX_FINE},
    {"3 4 min", 3, TL_HX_FINE},
    {"3 4 max", 4, TL_HX_FINE},
    {"5 neg", -5, TL_HX_FINE},
    {"-5 abs", 5, TL_HX_FINE},
    {"5 !", 0, TL_HX_FINE},
    {"0 !", 1, TL_HX_FINE},
    {"3 4 <", 1, TL_HX_FINE},
    {"4 4 <", 0, TL_HX_FINE},
    {"4 4 <=", 1, TL_HX_FINE},
    {"4 4 ==", 1, TL_HX_FINE},
    {"4 4 !=", 0, TL_HX_FINE},
    {"2 3 &&", 1, TL_HX_FINE},
    {"2 0 &&", 0, TL_HX_FINE},
    {"0 2 ||", 1, TL_HX_FINE},
    {"0 0 ||", 0, TL_HX_FINE},
    {"12 10 &", 8, TL_HX_FINE},
    {"12 10 |", 14, TL_HX_FINE},
    {"12 10 ^", 6, TL_HX_FINE},
    {"3 4 <<", 48, TL_HX_FINE},
    {"-16 2 >>", -4, TL_HX_FINE},
    {"1 65 <<", 2, TL_HX_FINE},
    {"1 10 20 ?:", 10, TL_HX_FINE},
    {"0 10 20 ?:", 20, TL_HX_FINE},
    {"1 0 /", 0, TL_HX_DIV_ZERO},
    {"1 0 %", 0, TL_HX_DIV_ZERO},
    {"1 0 cdiv", 0, TL_HX_DIV_ZERO},
    {"1 0 / 3 +", 0, TL_HX_DIV_ZERO},
    {"0 1 0 / &&", 0, TL_HX_FINE},
    {"1 1 0 / ||", 1, TL_HX_FINE},
    {"1 1 0 / &&", 0, TL_HX_DIV_ZERO},
    {"0 1 0 / 5 ?:", 5, TL_HX_FINE},
    {"1 1 0 / 5 ?:", 0, TL_HX_DIV_ZERO},
    {"1 0 / 4 5 ?:", 0, TL_HX_DIV_ZERO},
    {"9223372036854775807 1 +", 0, TL_HX_OVERFLOW},
    {"4294967296 4294967296 *", 0, TL_HX_OVERFLOW},
    {"-9223372036854775808 neg", 0, TL_HX_OVERFLOW},
    {"-9223372036854775808 abs", 0, TL_HX_OVERFLOW},
    {"-9223372036854775808 -1 /", 0, TL_HX_OVERFLOW},
    {"-9223372036854775808 -1 %", 0, TL_HX_FINE},
    {"2.75 f2i", 2, TL_HX_FINE},
    {"-2.75 f2i", -2, TL_HX_FINE},
    {"1.5 2.5 f+ f2i", 4, TL_HX_FINE},
    {"1.5 2.5 f- f2i", -1, TL_HX_FINE},
    {"1.5 2.0 f* f2i", 3, TL_HX_FINE},
    {"1.0 0.0 f/ f2i", INT64_MAX, TL_HX_FINE},
    {"-1.0 0.0 f/ f2i", INT64_MIN, TL_HX_FINE},
    {"0.0 0.0 f/ f2i", 0, TL_HX_FINE},
    {"3 i2f fneg f2i", -3, TL_HX_FINE},
    {"1.0 2.0 fmin f2i", 1, TL_HX_FINE},
    {"1.0 2.0 fmax f2i", 2, TL_HX_FINE},
    {"1.0 2.0 f<", 1, TL_HX_FINE},
    {"2.0 2.0 f<=", 1, TL_HX_FINE},
    {"2.0 2.0 f==", 1, TL_HX_FINE},
    {"2.0 2.0 f!=", 0, TL_HX_FINE},
    {"0.0 0.0 f/ 1.0 f<", 0, TL_HX_FINE},
};

static bool valid(const tile_hx_ins *code, uint32_t n)
{
    return tl_hostexpr_valid(code, n, 2, 1);
}

int main(void)
{
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        int64_t v;
        tl_hx_result r = run(integers[i].text, &v);
        if (!CHECK(r == integers[i].result && (r != TL_HX_FINE || v == integers[i].value)))
            fprintf(stderr, "    %s: %lld, fault %d\n", integers[i].text, (long long)v, (int)r);
    }
    const int64_t syms[2] = {100, 200};
    const tile_arg args[1] = {tile_i8(-3)};
    tl_hx_env env = {.syms = syms, .args = args};
    tile_hx_ins good[] = {
        {.op = TILE_HX_SYM, .imm = 1}, {.op = TILE_HX_ARG, .imm = 0}, {.op = TILE_HX_ADD}};
    int64_t v;
    CHECK(valid(good, 3));
    CHECK(tl_hostexpr_eval(good, 3, &env, &v) == TL_HX_FINE && v == 197);
    CHECK(!valid(good, 2)); /* two values left */
    CHECK(!valid(good, 0));
    CHECK(!valid(good + 2, 1)); /* no operands */
    good[0].imm = 2;
    CHECK(!valid(good, 3)); /* no such name */
    good[0].imm = -1;
    CHECK(!valid(good, 3));
    good[0].imm = 0;
    good[1].imm = 1;
    CHECK(!valid(good, 3)); /* no such argument */
    good[1] = (tile_hx_ins){.op = TILE_HX_COUNT};
    CHECK(!valid(good, 3));
    tile_hx_ins deep[TILE_HX_MAX_STACK + 1 + TILE_HX_MAX_STACK] = {{0}};
    for (int i = TILE_HX_MAX_STACK + 1; i < 2 * TILE_HX_MAX_STACK + 1; i++)
        deep[i].op = TILE_HX_ADD;
    CHECK(!valid(deep, 2 * TILE_HX_MAX_STACK + 1));
    CHECK(valid(deep + 1, 1));
    deep[TILE_HX_MAX_STACK].op = TILE_HX_ADD;
    CHECK(valid(deep, 2 * TILE_HX_MAX_STACK - 1));
    CHECK(tl_decode_float(TILE_F16, 0x3c00) == 1 && tl_decode_float(TILE_F16, 1) == 0x1p-24 &&
          isnan(tl_decode_float(TILE_F16, 0x7e00)));
    CHECK(tl_decode_float(TILE_BF16, 0xff80) == -INFINITY &&
          tl_decode_float(TILE_F8E4M3, 0x7e) == 448 && isnan(tl_decode_float(TILE_F8E4M3, 0xff)));
    CHECK(tl_decode_float(TILE_F8E5M2, 0x7c) == INFINITY && tl_decode_float(TILE_F4E2M1, 7) == 6 &&
          tl_decode_float(TILE_F4E2M1, 15) == -6);
    CHECK(tl_decode_float(TILE_F8E4M3FNUZ, 0x7f) == 240 &&
          tl_decode_float(TILE_F8E4M3FNUZ, 0x81) == -0x1p-10 &&
          tl_decode_float(TILE_F8E4M3FNUZ, 0) == 0 &&
          isnan(tl_decode_float(TILE_F8E4M3FNUZ, 0x80)));
    CHECK(tl_decode_float(TILE_F8E5M2FNUZ, 0xff) == -57344 &&
          tl_decode_float(TILE_F8E5M2FNUZ, 0x40) == 1 &&
          isnan(tl_decode_float(TILE_F8E5M2FNUZ, 0x80)));
    CHECK(tl_decode_float(TILE_F8E4M3, 0x78) == 256 && tl_decode_int(TILE_I4, 15) == -1 &&
          tl_decode_int(TILE_U4, 15) == 15);
    return unit_result();
}
