/* Arithmetic of the interpreter: one loop per op and element type, in one table.
 *
 * Integers compute in 64 bits and are cut to their type, which is wrapping. f32 and f64 are the
 * host's IEEE arithmetic (the build forbids contraction). f16 and bf16 compute in f32 and round
 * once: f32 has more than twice their precision plus two bits, so this is the correctly rounded
 * result of every op here, division and square root included. Division by zero and MIN / -1: see
 * numeric.h. f8 and packed types have no arithmetic. */
#include <math.h>
#include <string.h>

#include "ir/border_op.h"
#include "ir/interp/interp_impl.h"

/* clang-format off */
#define BINARY(NAME, S, Y, EXPR)                                               \
    static void NAME(void *yv, const void *av, const void *bv, int64_t n)      \
    {                                                                          \
        const S *a = av, *b = bv;                                              \
        Y *y = yv;                                                             \
        for (int64_t i = 0; i < n; i++) {                                      \
            S p = a[i], q = b[i];                                              \
            y[i] = (Y)(EXPR);                                                  \
        }                                                                      \
    }
#define UNARY(NAME, S, EXPR)                                                   \
    static void NAME(void *yv, const void *av, const void *bv, int64_t n)      \
    {                                                                          \
        const S *a = av;                                                       \
        S *y = yv;                                                             \
        (void)bv;                                                              \
        for (int64_t i = 0; i < n; i++) {                                      \
            S p = a[i];                                                        \
            y[i] = (S)(EXPR);                                                  \
        }                                                                      \
    }

#define LIMIT(bits) ((TlWide)1 << (bits))

static inline TlWide within(TlWide v, TlWide least, TlWide greatest)
{
    return v < least ? least : v > greatest ? greatest : v;
}

/* ---- integers: D dtype, T type, U its unsigned twin, W width --------------------------------- */

#define COMPARE(D, T)                        \
    BINARY(eq_##D, T, uint8_t, p == q)       \
    BINARY(ne_##D, T, uint8_t, p != q)       \
    BINARY(lt_##D, T, uint8_t, p < q)        \
    BINARY(le_##D, T, uint8_t, p <= q)       \
    BINARY(gt_##D, T, uint8_t, p > q)        \
    BINARY(ge_##D, T, uint8_t, p >= q)

#define BITWISE(D, T)             \
    BINARY(and_##D, T, T, p & q)  \
    BINARY(or_##D, T, T, p | q)   \
    BINARY(xor_##D, T, T, p ^ q)  \
    BINARY(min_##D, T, T, q < p ? q : p) \
    BINARY(max_##D, T, T, q > p ? q : p)

#define INTEGER(D, T, U, W)                                                    \
    COMPARE(D, T)                                                              \
    BITWISE(D, T)                                                              \
    BINARY(add_##D, T, T, (uint64_t)p + (uint64_t)q)                           \
    BINARY(sub_##D, T, T, (uint64_t)p - (uint64_t)q)                           \
    BINARY(mul_##D, T, T, (uint64_t)p * (uint64_t)q)                           \
    BINARY(shl_##D, T, T, (uint64_t)p << ((U)q & (W - 1)))                     \
    BINARY(shr_##D, T, T, p >> ((U)q & (W - 1)))                               \
    UNARY(neg_##D, T, 0 - (uint64_t)p)                                         \
    UNARY(not_##D, T, ~p)                                                      \
    UNARY(popcount_##D, T, __builtin_popcountll((U)p))                         \
    UNARY(clz_##D, T, p ? __builtin_clzll((U)p) - (64 - W) : W)                \
    UNARY(ctz_##D, T, p ? __builtin_ctzll((U)p) : W)

#define SIGNED(D, T, U, W)                                                     \
    INTEGER(D, T, U, W)                                                        \
    BINARY(div_##D, T, T, q == 0 ? 0 : q == -1 ? (T)(0 - (uint64_t)p) : p / q) \
    BINARY(rem_##D, T, T, q == 0 || q == -1 ? 0 : p % q)                       \
    BINARY(mulhi_##D, T, T, (TlWide)p * q >> W)                                \
    BINARY(add_sat_##D, T, T, within((TlWide)p + q, -LIMIT(W - 1), LIMIT(W - 1) - 1)) \
    BINARY(sub_sat_##D, T, T, within((TlWide)p - q, -LIMIT(W - 1), LIMIT(W - 1) - 1)) \
    UNARY(abs_##D, T, p < 0 ? 0 - (uint64_t)p : (uint64_t)p)

#define UNSIGNED(D, T, U, W)                       \
    INTEGER(D, T, U, W)                            \
    BINARY(div_##D, T, T, q == 0 ? 0 : p / q)      \
    BINARY(rem_##D, T, T, q == 0 ? 0 : p % q)      \
    BINARY(mulhi_##D, T, T, (TlUWide)p * q >> W)   \
    BINARY(add_sat_##D, T, T, within((TlWide)p + q, 0, LIMIT(W) - 1)) \
    BINARY(sub_sat_##D, T, T, within((TlWide)p - q, 0, LIMIT(W) - 1)) \
    UNARY(abs_##D, T, p)

SIGNED(I8, int8_t, uint8_t, 8)
SIGNED(I16, int16_t, uint16_t, 16)
SIGNED(I32, int32_t, uint32_t, 32)
SIGNED(I64, int64_t, uint64_t, 64)
UNSIGNED(U8, uint8_t, uint8_t, 8)
UNSIGNED(U16, uint16_t, uint16_t, 16)
UNSIGNED(U32, uint32_t, uint32_t, 32)
UNSIGNED(U64, uint64_t, uint64_t, 64)
COMPARE(BOOL, uint8_t)
BITWISE(BOOL, uint8_t)
UNARY(not_BOOL, uint8_t, !p)

/* ---- floats: S storage, LD and ST to and from what it computes in, M and F suffixes ---------- */

#define LOSER(x, y, pick) ((x) != (x) ? (y) : (y) != (y) ? (x) : (pick))
#define NAN_WINS(x, y, pick) ((x) != (x) ? (x) : (y) != (y) ? (y) : (pick))
#define LESSER(x, y) ((x) == (y) ? (signbit(x) ? (x) : (y)) : (x) < (y) ? (x) : (y))
#define GREATER(x, y) ((x) == (y) ? (signbit(x) ? (y) : (x)) : (x) > (y) ? (x) : (y))

static inline float min_f(float x, float y) { return LOSER(x, y, LESSER(x, y)); }
static inline float max_f(float x, float y) { return LOSER(x, y, GREATER(x, y)); }
static inline float min_nan_f(float x, float y) { return NAN_WINS(x, y, LESSER(x, y)); }
static inline float max_nan_f(float x, float y) { return NAN_WINS(x, y, GREATER(x, y)); }
static inline double min_(double x, double y) { return LOSER(x, y, LESSER(x, y)); }
static inline double max_(double x, double y) { return LOSER(x, y, GREATER(x, y)); }
static inline double min_nan_(double x, double y) { return NAN_WINS(x, y, LESSER(x, y)); }
static inline double max_nan_(double x, double y) { return NAN_WINS(x, y, GREATER(x, y)); }

#define SAME(x) (x)
#define FLOAT(D, S, LD, ST, M, F)                                  \
    BINARY(eq_##D, S, uint8_t, LD(p) == LD(q))                     \
    BINARY(ne_##D, S, uint8_t, LD(p) != LD(q))                     \
    BINARY(lt_##D, S, uint8_t, LD(p) < LD(q))                      \
    BINARY(le_##D, S, uint8_t, LD(p) <= LD(q))                     \
    BINARY(gt_##D, S, uint8_t, LD(p) > LD(q))                      \
    BINARY(ge_##D, S, uint8_t, LD(p) >= LD(q))                     \
    BINARY(add_##D, S, S, ST(LD(p) + LD(q)))                       \
    BINARY(sub_##D, S, S, ST(LD(p) - LD(q)))                       \
    BINARY(mul_##D, S, S, ST(LD(p) * LD(q)))                       \
    BINARY(div_##D, S, S, ST(LD(p) / LD(q)))                       \
    BINARY(rem_##D, S, S, ST(fmod##F(LD(p), LD(q))))               \
    BINARY(min_##D, S, S, ST(min_##M(LD(p), LD(q))))               \
    BINARY(max_##D, S, S, ST(max_##M(LD(p), LD(q))))               \
    BINARY(min_nan_##D, S, S, ST(min_nan_##M(LD(p), LD(q))))       \
    BINARY(max_nan_##D, S, S, ST(max_nan_##M(LD(p), LD(q))))       \
    UNARY(sqrt_##D, S, ST(sqrt##F(LD(p))))                         \
    UNARY(floor_##D, S, ST(floor##F(LD(p))))                       \
    UNARY(ceil_##D, S, ST(ceil##F(LD(p))))                         \
    UNARY(trunc_##D, S, ST(trunc##F(LD(p))))                       \
    UNARY(rint_##D, S, ST(nearbyint##F(LD(p))))                    \
    UNARY(round_##D, S, ST(round##F(LD(p))))

FLOAT(F16, uint16_t, tl_f16_to_f32, tl_f32_to_f16, f, f)
FLOAT(BF16, uint16_t, tl_bf16_to_f32, tl_f32_to_bf16, f, f)
FLOAT(F32, float, SAME, SAME, f, f)
FLOAT(F64, double, SAME, SAME, , )

/* Only the sign bit changes: NaN payloads are kept. */
UNARY(neg_F16, uint16_t, p ^ 0x8000)
UNARY(neg_F32, uint32_t, p ^ 0x80000000)
UNARY(neg_F64, uint64_t, p ^ 0x8000000000000000)
UNARY(abs_F16, uint16_t, p & 0x7fff)
UNARY(abs_F32, uint32_t, p & 0x7fffffff)
UNARY(abs_F64, uint64_t, p & 0x7fffffffffffffff)

/* Computed in f64: correctly rounded in all but a few cases. */
UNARY(exp2_f32, float, (float)exp2((double)p))

/* ---- the table ------------------------------------------------------------------------------- */

#define INTS(f)                                                                               \
    [TL_I8] = f##_I8, [TL_I16] = f##_I16, [TL_I32] = f##_I32, [TL_I64] = f##_I64,             \
    [TL_U8] = f##_U8, [TL_U16] = f##_U16, [TL_U32] = f##_U32, [TL_U64] = f##_U64
#define FLOATS(f) [TL_F16] = f##_F16, [TL_BF16] = f##_BF16, [TL_F32] = f##_F32, [TL_F64] = f##_F64
#define BOOLS(f) [TL_BOOL] = f##_BOOL
#define SIGNS(f) [TL_F16] = f##_F16, [TL_BF16] = f##_F16, [TL_F32] = f##_F32, [TL_F64] = f##_F64

/* ROW_ID: an elementwise op by element type; what is not there has no meaning. */
#define ROW_ADD      {INTS(add), FLOATS(add)}
#define ROW_SUB      {INTS(sub), FLOATS(sub)}
#define ROW_MUL      {INTS(mul), FLOATS(mul)}
#define ROW_DIV      {INTS(div), FLOATS(div)}
#define ROW_REM      {INTS(rem), FLOATS(rem)}
#define ROW_MIN      {INTS(min), FLOATS(min), BOOLS(min)}
#define ROW_MAX      {INTS(max), FLOATS(max), BOOLS(max)}
#define ROW_MIN_NAN  {INTS(min), FLOATS(min_nan)}
#define ROW_MAX_NAN  {INTS(max), FLOATS(max_nan)}
#define ROW_AND      {INTS(and), BOOLS(and)}
#define ROW_OR       {INTS(or), BOOLS(or)}
#define ROW_XOR      {INTS(xor), BOOLS(xor)}
#define ROW_SHL      {INTS(shl)}
#define ROW_SHR      {INTS(shr)}
#define ROW_MULHI    {INTS(mulhi)}
#define ROW_ADD_SAT  {INTS(add_sat)}
#define ROW_SUB_SAT  {INTS(sub_sat)}
#define ROW_NEG      {INTS(neg), SIGNS(neg)}
#define ROW_NOT      {INTS(not), BOOLS(not)}
#define ROW_ABS      {INTS(abs), SIGNS(abs)}
#define ROW_SQRT     {FLOATS(sqrt)}
#define ROW_EXP2     {[TL_F32] = exp2_f32}
#define ROW_FLOOR    {FLOATS(floor)}
#define ROW_CEIL     {FLOATS(ceil)}
#define ROW_TRUNC    {FLOATS(trunc)}
#define ROW_RINT     {FLOATS(rint)}
#define ROW_ROUND    {FLOATS(round)}
#define ROW_POPCOUNT {INTS(popcount)}
#define ROW_CLZ      {INTS(clz)}
#define ROW_CTZ      {INTS(ctz)}
#define ROW_EQ       {INTS(eq), FLOATS(eq), BOOLS(eq)}
#define ROW_NE       {INTS(ne), FLOATS(ne), BOOLS(ne)}
#define ROW_LT       {INTS(lt), FLOATS(lt), BOOLS(lt)}
#define ROW_LE       {INTS(le), FLOATS(le), BOOLS(le)}
#define ROW_GT       {INTS(gt), FLOATS(gt), BOOLS(gt)}
#define ROW_GE       {INTS(ge), FLOATS(ge), BOOLS(ge)}
/* of other evaluators */
#define ROW_FMA      {NULL}
#define ROW_SELECT   {NULL}
#define ROW_CAST     {NULL}
#define ROW_BORDER   {NULL}
#define ROW_BITCAST  {NULL}
#define ROW_ASM      {NULL}
#define ROW_PTR_ADD  {NULL}
#define ROW_POINTER  {NULL}
#define ROW_ADDRESS  {NULL}

static const TlElemFn table[TL_OP_COUNT][TL_DTYPE_COUNT] = {
#define OP(...)
#define ELEM(ID, ...) [TL_OP_##ID] = ROW_##ID,
#include "ir/ops.def"
};

TlElemFn tl_elem_fn(TlOpcode opcode, TlDtype d) { return table[opcode][d]; }

TlElemFn tl_combine_fn(TlCombine kind, TlDtype d)
{
    TL_ASSERT(kind != TL_COMBINE_USER, "a combiner of its own region");
    return tl_elem_fn(tl_combine_opcode(kind), d);
}

/* clang-format on */
/* ---- evaluators ------------------------------------------------------------------------------ */

static void apply(const TlOp *op, const TlTileData *x, const void *second, TlTileData *y)
{
    TlDtype d = tl_op_dtype(op, x[0].type->dtype);
    TlElemFn fn = d == x[0].type->dtype ? tl_elem_fn(op->opcode, d) : tl_ring_fn(op->opcode, d);
    TL_ASSERT(fn && !x[0].type->ptr, "%s has no meaning on %s", tl_op_info(op->opcode)->text,
              tl_dtype_name(x[0].type->dtype));
    fn(y[0].data, x[0].data, second, tl_type_elems(y[0].type));
}

#define EVAL_UNARY(ID)                                                                             \
    TL_EVAL(ID)                                                                                    \
    {                                                                                              \
        apply(op, x, NULL, y);                                                                     \
    }
#define EVAL_BINARY(ID)                                                                            \
    TL_EVAL(ID)                                                                                    \
    {                                                                                              \
        apply(op, x, x[1].data, y);                                                                \
    }

/* clang-format off */
EVAL_UNARY(NEG)
EVAL_UNARY(NOT)
EVAL_UNARY(ABS)
EVAL_UNARY(SQRT)
EVAL_UNARY(EXP2)
EVAL_UNARY(FLOOR)
EVAL_UNARY(CEIL)
EVAL_UNARY(TRUNC)
EVAL_UNARY(RINT)
EVAL_UNARY(ROUND)
EVAL_UNARY(POPCOUNT)
EVAL_UNARY(CLZ)
EVAL_UNARY(CTZ)
EVAL_BINARY(ADD)
EVAL_BINARY(SUB)
EVAL_BINARY(MUL)
EVAL_BINARY(DIV)
EVAL_BINARY(REM)
EVAL_BINARY(MIN)
EVAL_BINARY(MAX)
EVAL_BINARY(MIN_NAN)
EVAL_BINARY(MAX_NAN)
EVAL_BINARY(AND)
EVAL_BINARY(OR)
EVAL_BINARY(XOR)
EVAL_BINARY(MULHI)
EVAL_BINARY(ADD_SAT)
EVAL_BINARY(SUB_SAT)
EVAL_BINARY(EQ)
EVAL_BINARY(NE)
EVAL_BINARY(LT)
EVAL_BINARY(LE)
EVAL_BINARY(GT)
EVAL_BINARY(GE)
/* clang-format on */

/* The amount may have another integer type. Only its low bits count, and a wrapping cast keeps
 * them. */
static void shift(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    TlDtype d = x[0].type->dtype, by = x[1].type->dtype;
    if (d == by) {
        apply(op, x, x[1].data, y);
        return;
    }
    int64_t n = tl_type_elems(y[0].type);
    void *amount = tl_interp_temp(in, 0, tl_interp_bytes(y[0].type));
    tl_elem_cast(d, amount, by, x[1].data, n, TL_ROUND_NEAREST, false);
    apply(op, x, amount, y);
}
TL_EVAL(SHL)
{
    shift(in, op, x, y);
}
TL_EVAL(SHR)
{
    shift(in, op, x, y);
}

TL_EVAL(FMA)
{
    int64_t n = tl_type_elems(y[0].type);
    TlDtype d = tl_op_dtype(op, x[0].type->dtype);
    if (d != x[0].type->dtype) {
        void *products = tl_interp_temp(in, 0, tl_interp_bytes(y[0].type));
        tl_elem_fn(TL_OP_MUL, d)(products, x[0].data, x[1].data, n);
        tl_elem_fn(TL_OP_ADD, d)(y[0].data, products, x[2].data, n);
        return;
    }
    if (x[0].type->dtype == TL_F64) {
        const double *a = x[0].data, *b = x[1].data, *c = x[2].data;
        for (int64_t i = 0; i < n; i++)
            ((double *)y[0].data)[i] = fma(a[i], b[i], c[i]);
        return;
    }
    TL_ASSERT(x[0].type->dtype == TL_F32, "fma of %s", tl_dtype_name(x[0].type->dtype));
    const float *a = x[0].data, *b = x[1].data, *c = x[2].data;
    for (int64_t i = 0; i < n; i++)
        ((float *)y[0].data)[i] = fmaf(a[i], b[i], c[i]);
}

TL_EVAL(SELECT)
{
    const uint8_t *c = x[0].data;
    int64_t n = tl_type_elems(y[0].type);
    size_t bytes = tl_interp_elem_bytes(y[0].type);
    if (tl_type_elems(x[0].type) != n) { /* a scalar condition selects the whole tile */
        memcpy(y[0].data, c[0] ? x[1].data : x[2].data, bytes * (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        size_t at = bytes * (size_t)i;
        memcpy((char *)y[0].data + at, (const char *)(c[i] ? x[1].data : x[2].data) + at, bytes);
    }
}

TL_EVAL(BORDER)
{
    TlDtype d = x[0].type->dtype;
    TlWay way = (TlWay)tl_attr_int(op, TL_ATTR_WAY, 0);
    const int64_t *extent = x[1].data;
    for (int64_t i = 0; i < tl_type_elems(y[0].type); i++)
        ((int64_t *)y[0].data)[i] = tl_border_position(
            way, d == TL_U64, tl_bits_to_int(d, tl_elem_get(d, x[0].data, i)), extent[i]);
}

/* The interpreter does not know what the instructions do: the result is poison. */
TL_EVAL(ASM)
{
    enum { POISON = 0xAB };
    memset(y[0].data, POISON, tl_interp_bytes(y[0].type));
    tl_interp_fail(in, op, TL_FAIL_ASSERT, "asm has no meaning here");
}
