/* Matrix products. Operands are widened to the type the sums are kept in, then acc = fma(a, b, acc)
 * for k = 0, 1, ... in this order for every element. The fma is what makes the result independent
 * of whether products of narrow types are exact in the wide one. f16 and bf16 accumulators are kept
 * in f32 and rounded once at the end; integers wrap. Precisions below ieee are permissions, not
 * demands, and are not taken up here. */
#include <math.h>
#include <string.h>

#include "ir/numeric.h"
#include "ir/plan/dot_plan.h"
#include "ir/plan/mma.h"
#include "ir/interp/interp_impl.h"

typedef struct Gemm {
    int64_t m, n, k;
} Gemm;

#define GEMM(NAME, T, ATTRIBUTE, STEP)                                                             \
    ATTRIBUTE static void NAME(T *acc, const T *a, const T *b, Gemm g)                             \
    {                                                                                              \
        for (int64_t i = 0; i < g.m; i++)                                                          \
            for (int64_t k = 0; k < g.k; k++) {                                                    \
                T p = a[i * g.k + k];                                                              \
                const T *q = b + k * g.n;                                                          \
                T *c = acc + i * g.n;                                                              \
                for (int64_t j = 0; j < g.n; j++)                                                  \
                    c[j] = STEP;                                                                   \
            }                                                                                      \
    }

GEMM(gemm_f32, float, , fmaf(p, q[j], c[j]))
GEMM(gemm_f64, double, , fma(p, q[j], c[j]))
GEMM(gemm_i32, uint32_t, , c[j] + p * q[j])
GEMM(gemm_i64, uint64_t, , c[j] + p * q[j])

/* The same loops with the fma instruction instead of a call: 10 to 50 times faster, with equal
 * bits. */
#if defined(__x86_64__) && defined(__GNUC__)
#define WITH_FMA __attribute__((target("avx2,fma"), optimize("O3")))
#ifdef __clang__
#undef WITH_FMA
#define WITH_FMA __attribute__((target("avx2,fma")))
#endif
GEMM(gemm_f32_fma, float, WITH_FMA, __builtin_fmaf(p, q[j], c[j]))
GEMM(gemm_f64_fma, double, WITH_FMA, __builtin_fma(p, q[j], c[j]))
static bool has_fma(void)
{
    return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
}
#else
#define gemm_f32_fma gemm_f32
#define gemm_f64_fma gemm_f64
static bool has_fma(void)
{
    return false;
}
#endif

static void gemm(TlDtype d, void *acc, const void *a, const void *b, Gemm g)
{
    if (d == TL_F32)
        (has_fma() ? gemm_f32_fma : gemm_f32)(acc, a, b, g);
    else if (d == TL_F64)
        (has_fma() ? gemm_f64_fma : gemm_f64)(acc, a, b, g);
    else if (d == TL_I32)
        gemm_i32(acc, a, b, g);
    else if (d == TL_I64)
        gemm_i64(acc, a, b, g);
    else
        TL_UNREACHABLE("sums of products in %s", tl_dtype_name(d));
}

static void *widened(TlInterp *in, int temp, TlDtype to, TlDtype from, const TlTileData *t)
{
    if (from == to)
        return t->data;
    int64_t n = tl_type_elems(t->type);
    void *wide = tl_interp_temp(in, temp, (size_t)(n * tl_dtype_bytes(to)));
    tl_elem_cast(to, wide, from, t->data, n, TL_ROUND_NEAREST, false);
    return wide;
}

/* ---- with scales ---- */

static double scale_value(TlDtype type, const void *scales, int64_t i, bool is_unsigned)
{
    uint64_t bits = tl_elem_get(type, scales, i);
    if (type == TL_U8)
        return bits == 255 ? (double)NAN : ldexp(1.0, (int)bits - 127);
    double x = tl_bits_to_double(type, bits);
    return is_unsigned ? fabs(x) : x;
}

/* Element k of a row of A (stride 1) or a column of B; u8 has two of f4e2m1, the low one first. */
static double element(TlDtype type, const void *data, int64_t first, int64_t stride, int64_t k)
{
    if (type != TL_U8)
        return tl_bits_to_double(type, tl_elem_get(type, data, first + stride * k));
    uint64_t pair = tl_elem_get(type, data, first + stride * (k / 2));
    return tl_bits_to_double(TL_F4E2M1, pair >> (k % 2 * 4) & 15);
}

/* The numbers, times their scales: exact in f64, and so are their products. */
static double *scaled(TlInterp *in, int temp, const TlTileData *x, const TlTileData *s, bool is_b,
                      bool is_unsigned)
{
    TlDtype type = x->type->dtype;
    int64_t rows = s->type->shape[0], blocks = s->type->shape[1],
            each = tl_scale_each(s->type->dtype), k = blocks * each;
    double *to = tl_interp_temp(in, temp, (size_t)(rows * k) * sizeof *to);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++)
            to[is_b ? i * rows + r : r * k + i] =
                element(type, x->data, is_b ? r : r * x->type->shape[1], is_b ? rows : 1, i) *
                scale_value(s->type->dtype, s->data, r * blocks + i / each, is_unsigned);
    return to;
}

/* Sums in f32, rounded after each product. */
void tl_interp_scaled_dot(TlInterp *in, const TlOp *op, const TlTileData *x, TlTileData *y)
{
    bool is_unsigned = tl_attr_flag(op, TL_ATTR_UNSIGNED);
    const TlType *ty = y->type;
    const double *a = scaled(in, 0, &x[TL_MMA_A], &x[TL_MMA_SA], false, is_unsigned),
                 *b = scaled(in, 1, &x[TL_MMA_B], &x[TL_MMA_SB], true, is_unsigned);
    int64_t m = ty->shape[0], n = ty->shape[1],
            k = x[TL_MMA_SA].type->shape[1] * tl_scale_each(x[TL_MMA_SA].type->dtype);
    float *to = y->data;
    memcpy(to, x[TL_MMA_C].data, (size_t)(m * n) * sizeof *to);
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++)
                to[i * n + j] = (float)fma(a[i * k + l], b[l * n + j], to[i * n + j]);
}

TL_EVAL(DOT)
{
    if (op->opcode == TL_OP_DOT && op->nin > 3) { /* not dot_async, whose operands are here, too */
        tl_interp_scaled_dot(in, op, x, y);
        return;
    }
    const TlType *ta = x[0].type, *ty = y[0].type;
    TlDtype result = tl_op_dtype(op, ty->dtype), d = tl_dot_sum_type(result);
    int r = ty->rank, batch = r == 3 ? ty->shape[0] : 1;
    Gemm g = {ty->shape[r - 2], ty->shape[r - 1], ta->shape[r - 1]};
    size_t bytes = (size_t)tl_dtype_bytes(d);
    const char *a = widened(in, 0, d, tl_op_dtype(op, ta->dtype), &x[0]);
    const char *b = widened(in, 1, d, tl_op_dtype(op, x[1].type->dtype), &x[1]);
    char *acc =
        d == result ? y[0].data : tl_interp_temp(in, 2, bytes * (size_t)tl_type_elems(ty));
    tl_elem_cast(d, acc, result, x[2].data, tl_type_elems(ty), TL_ROUND_NEAREST, false);
    for (int i = 0; i < batch; i++)
        gemm(d, acc + (size_t)(i * g.m * g.n) * bytes, a + (size_t)(i * g.m * g.k) * bytes,
             b + (size_t)(i * g.k * g.n) * bytes, g);
    if (acc != y[0].data)
        tl_elem_cast(result, y[0].data, d, acc, tl_type_elems(ty), TL_ROUND_NEAREST, false);
}
