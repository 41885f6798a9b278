/* Matrix products. Operands are widened to the type the sums are kept in, then acc = fma(a, b, acc)
 * for k = 0, 1, ... in this order for every element. The fma is what makes the result independent
 * of whether products of narrow types are exact in the wide one. f16 and bf16 accumulators are kept
 * in f32 and rounded once at the end; integers wrap. Precisions below ieee are permissions, not
 * demands, and are not taken up here. */
#include <math.h>
#include <string.h>

#include "ir/plan/dot_plan.h"
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

TL_EVAL(DOT)
{
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
