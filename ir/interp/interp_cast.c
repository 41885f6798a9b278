/* Value conversions of whole tiles. The usual pairs have a loop of their own; the rest goes element
 * by element through tl_cast_bits, which means the same. */
#include <string.h>

#include "ir/interp/interp_impl.h"

#define LOOP(NAME, X, Y, EXPR)                                                                     \
    static void NAME(void *yv, const void *xv, int64_t n)                                          \
    {                                                                                              \
        const X *x = xv;                                                                           \
        Y *y = yv;                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            X p = x[i];                                                                            \
            y[i] = (Y)(EXPR);                                                                      \
        }                                                                                          \
    }

LOOP(f16_f32, uint16_t, float, tl_f16_to_f32(p))
LOOP(bf16_f32, uint16_t, float, tl_bf16_to_f32(p))
LOOP(f32_f16, float, uint16_t, tl_f32_to_f16(p))
LOOP(f32_bf16, float, uint16_t, tl_f32_to_bf16(p))
LOOP(f32_f64, float, double, p)
LOOP(f64_f32, double, float, p)
LOOP(i32_f32, int32_t, float, p)
LOOP(i64_f32, int64_t, float, p)
LOOP(u32_f32, uint32_t, float, p)
LOOP(i32_f64, int32_t, double, p)
LOOP(bool_f32, uint8_t, float, p != 0)
LOOP(bool_i32, uint8_t, int32_t, p != 0)
LOOP(i8_i32, int8_t, int32_t, p)
LOOP(u8_i32, uint8_t, int32_t, p)
LOOP(i16_i32, int16_t, int32_t, p)
LOOP(u16_i32, uint16_t, int32_t, p)
LOOP(i32_i64, int32_t, int64_t, p)
LOOP(u32_i64, uint32_t, int64_t, p)
LOOP(i64_i32, int64_t, int32_t, p)
LOOP(same_32, uint32_t, uint32_t, p)
LOOP(same_64, uint64_t, uint64_t, p)
LOOP(i32_i8, int32_t, int8_t, p)

typedef void (*CastFn)(void *y, const void *x, int64_t n);

/* [from][to]; narrowing floats here round to nearest */
static const CastFn direct[TL_DTYPE_COUNT][TL_DTYPE_COUNT] = {
    [TL_F16] = {[TL_F32] = f16_f32},
    [TL_BF16] = {[TL_F32] = bf16_f32},
    [TL_F32] = {[TL_F16] = f32_f16, [TL_BF16] = f32_bf16, [TL_F64] = f32_f64},
    [TL_F64] = {[TL_F32] = f64_f32},
    [TL_BOOL] = {[TL_F32] = bool_f32, [TL_I32] = bool_i32},
    [TL_I8] = {[TL_I32] = i8_i32, [TL_U32] = i8_i32},
    [TL_U8] = {[TL_I32] = u8_i32, [TL_U32] = u8_i32},
    [TL_I16] = {[TL_I32] = i16_i32, [TL_U32] = i16_i32},
    [TL_U16] = {[TL_I32] = u16_i32, [TL_U32] = u16_i32},
    [TL_I32] = {[TL_F32] = i32_f32,
                [TL_F64] = i32_f64,
                [TL_I64] = i32_i64,
                [TL_U64] = i32_i64,
                [TL_U32] = same_32,
                [TL_I8] = i32_i8,
                [TL_U8] = i32_i8},
    [TL_U32] = {[TL_F32] = u32_f32, [TL_I64] = u32_i64, [TL_U64] = u32_i64, [TL_I32] = same_32},
    [TL_I64] = {[TL_F32] = i64_f32, [TL_I32] = i64_i32, [TL_U32] = i64_i32, [TL_U64] = same_64},
    [TL_U64] = {[TL_I32] = i64_i32, [TL_U32] = i64_i32, [TL_I64] = same_64},
};

void tl_elem_cast(TlDtype to, void *y, TlDtype from, const void *x, int64_t n, int round,
                  bool nosat)
{
    TL_ASSERT((unsigned)to < TL_DTYPE_COUNT && (unsigned)from < TL_DTYPE_COUNT && n >= 0,
              "%lld elements from %d to %d", (long long)n, (int)from, (int)to);
    if (from == to) {
        memmove(y, x, (size_t)(n * tl_dtype_bytes(to)));
        return;
    }
    CastFn fn = direct[from][to];
    if (fn && round == TL_ROUND_NEAREST) {
        fn(y, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        tl_elem_set(to, y, i, tl_cast_bits(from, to, tl_elem_get(from, x, i), round, nosat));
}

TL_EVAL(CAST)
{
    int round = (int)tl_attr_int(op, TL_ATTR_ROUND, TL_ROUND_NEAREST);
    tl_elem_cast(tl_op_dtype(op, y[0].type->dtype), y[0].data, tl_op_dtype(op, x[0].type->dtype),
                 x[0].data, tl_type_elems(y[0].type), round, tl_attr_flag(op, TL_ATTR_NOSAT));
}

TL_EVAL(BITCAST)
{
    TL_ASSERT(tl_interp_bytes(x[0].type) == tl_interp_bytes(y[0].type), "bits of another size");
    memcpy(y[0].data, x[0].data, tl_interp_bytes(y[0].type));
}
