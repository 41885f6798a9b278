/* gemm.c: tile_gemm, tile_gemm_batched, and with vectors tile_gemv and tile_ger.
 *
 * 1. check: types, extents, leading dimensions, strides, what must not be NULL.
 * 2. reduce: no elements of C: done. alpha = 0: a product with K = 0, which reads neither A nor B.
 * 3. vectors: a product with one row or one column whose vectors are contiguous is a matrix times
 *    a vector, in one of two kernels: y = A x where the matrix is stored by rows of y, or A^T x.
 *                        op(B) = B           op(B) = B^T
 *        M = 1            gemv_t of B         gemv of B
 *                        op(A) = A           op(A) = A^T
 *        N = 1            gemv of A           gemv_t of A
 * 4. launch: views with the caller's strides. */
#include "stdlib/library/library.h"

#include <math.h>
#include <string.h>

#include "runtime/contract/grow.h"

typedef struct Gemm {
    const char *function;
    tile_dtype type;
    int64_t M, N, K, batch;
    bool ta, tb;
    double alpha, beta;
    TlLibMatrix a, b, c;
    tile_gemm_options options;
} Gemm;

/* What a type of A and B means. */
typedef struct Types {
    tile_dtype type, result, factor; /* of A and B, of C, of alpha and beta */
} Types;

static const Types types[] = {
    {TILE_F32, TILE_F32, TILE_F32},   {TILE_F16, TILE_F16, TILE_F32},
    {TILE_BF16, TILE_BF16, TILE_F32}, {TILE_F64, TILE_F64, TILE_F64},
    {TILE_I8, TILE_I32, TILE_I32},
};

static const Types *find_types(tile_dtype type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return &types[i];
    return NULL;
}

/* ---- 1. check ---- */

static tile_status wrong(const Gemm *g, const char *name, int64_t value, const char *rule)
{
    return tl_lib_wrong(g->function, name, value, rule);
}

static bool is_factor(double x)
{
    return x >= INT32_MIN && x <= INT32_MAX && x == trunc(x);
}

static tile_status check_factors(const Gemm *g, const Types *t)
{
    if (t->factor != TILE_I32 || (is_factor(g->alpha) && is_factor(g->beta)))
        return TILE_OK;
    bool alpha = !is_factor(g->alpha);
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is %g, but must be an integer of 32 bits for %s",
                       g->function, alpha ? "alpha" : "beta", alpha ? g->alpha : g->beta,
                       tile_dtype_name(g->type));
}

static tile_status check_choices(const Gemm *g, int transpose_a, int transpose_b)
{
    const Types *t = find_types(g->type);
    int act = (int)g->options.activation;
    if (!t)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: type is %s, but must be f32, f16, bf16, f64 or "
                                              "i8", g->function, tile_dtype_name(g->type));
    if (transpose_a < 0 || transpose_a > TILE_TRANSPOSE)
        return wrong(g, "transpose_a", transpose_a, "of tile_transpose");
    if (transpose_b < 0 || transpose_b > TILE_TRANSPOSE)
        return wrong(g, "transpose_b", transpose_b, "of tile_transpose");
    if (act < 0 || act > TILE_SILU)
        return wrong(g, "options->activation", act, "of tile_activation");
    if (act > TILE_RELU && t->factor != TILE_F32)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: options->activation is %d, but %s has "
                                              "TILE_IDENTITY and TILE_RELU only", g->function, act,
                           tile_dtype_name(g->type));
    return check_factors(g, t);
}

/* The matrices of C do not overlap: they stand one behind the other, or their rows alternate. Rows
 * of one do not, by what was checked. */
static tile_status check_apart(const Gemm *g)
{
    const int64_t extents[] = {g->batch, g->M, g->N}, strides[] = {g->c.stride, g->c.ld, 1};
    if (g->batch <= 1 || tl_lib_is_apart(extents, strides, 3))
        return TILE_OK;
    return wrong(g, "stride_c", g->c.stride, "so large that the matrices of C do not overlap");
}

static tile_status check_extents(const Gemm *g)
{
    tile_status status = tl_lib_check_extent(g->function, "M", g->M);
    if (status == TILE_OK)
        status = tl_lib_check_extent(g->function, "N", g->N);
    if (status == TILE_OK)
        status = tl_lib_check_extent(g->function, "K", g->K);
    return status == TILE_OK ? tl_lib_check_extent(g->function, "batch", g->batch) : status;
}

static tile_status check_factor(const Gemm *g, const TlLibMatrix *m, bool read)
{
    if (read)
        return tl_lib_check_matrix(g->function, m, g->batch);
    TlLibMatrix unread = *m;
    unread.address = "";
    return tl_lib_check_matrix(g->function, &unread, g->batch);
}

static tile_status check(const Gemm *g, int transpose_a, int transpose_b)
{
    tile_status status = check_choices(g, transpose_a, transpose_b);
    if (status == TILE_OK)
        status = check_extents(g);
    /* A and B are not read, and may be NULL, where C has no elements or alpha is 0 */
    bool read = g->M && g->N && g->alpha != 0;
    if (status == TILE_OK)
        status = check_factor(g, &g->a, read);
    if (status == TILE_OK)
        status = check_factor(g, &g->b, read);
    if (status == TILE_OK)
        status = tl_lib_check_matrix(g->function, &g->c, g->batch);
    return status == TILE_OK ? check_apart(g) : status;
}

/* ---- 2. reduce ---- */

static void drop_product(Gemm *g)
{
    g->K = 0;
    *(g->ta ? &g->a.rows : &g->a.columns) = 0;
    *(g->tb ? &g->b.columns : &g->b.rows) = 0;
    g->a.address = g->b.address = NULL;
}

/* ---- 4. launch ---- */

/* The arguments: A, B or the vector, C, bias; alpha, beta, activation. */
enum { AT_A, AT_B, AT_C, AT_BIAS, AT_ALPHA, AT_BETA, AT_ACTIVATION, ARGUMENTS };

static void put_vector(tile_arg *to, const TlLibMatrix *m, int64_t n, int64_t batch,
                       tile_dtype type)
{
    const int64_t extents[] = {batch, n}, strides[] = {m->stride, 1};
    tl_lib_put_view(to, m->address, type, 2, extents, strides);
}

/* N numbers, or for a column of C (stride 0) the same one M times. */
static void put_bias(tile_arg *to, const Gemm *g, int64_t n, int64_t stride, tile_dtype type)
{
    int64_t extent = g->options.bias ? n : 0;
    tl_lib_put_view(to, g->options.bias, type, 1, &extent, &stride);
}

static void put_factor(tile_arg *to, double x, tile_dtype type)
{
    uint64_t bits = 0;
    float f = (float)x;
    int32_t i = type == TILE_I32 ? (int32_t)x : 0;
    if (type == TILE_I32)
        memcpy(&bits, &i, sizeof i);
    else if (type == TILE_F64)
        memcpy(&bits, &x, sizeof x);
    else
        memcpy(&bits, &f, sizeof f);
    tl_lib_put_bits(to, type, bits);
}

static tile_status launch(tile_kernels *k, tile_stream *stream, const Gemm *g, TlLibCall *call,
                          tile_arg *args)
{
    const Types *t = find_types(g->type);
    put_factor(&args[AT_ALPHA], g->alpha, t->factor);
    put_factor(&args[AT_BETA], g->beta, t->factor);
    tl_lib_put_bits(&args[AT_ACTIVATION], TILE_I32, (uint64_t)g->options.activation);
    call->function = g->function;
    call->images = tl_lib_gemm_images;
    call->type = g->type;
    call->batch = g->batch;
    return tl_lib_launch(k, stream, call, args, ARGUMENTS);
}

static tile_status multiply(tile_kernels *k, tile_stream *stream, const Gemm *g)
{
    tile_dtype result = find_types(g->type)->result;
    tile_arg args[ARGUMENTS];
    tl_lib_put_matrix(&args[AT_A], &g->a, g->batch, g->type);
    tl_lib_put_matrix(&args[AT_B], &g->b, g->batch, g->type);
    tl_lib_put_matrix(&args[AT_C], &g->c, g->batch, result);
    put_bias(&args[AT_BIAS], g, g->N, 1, result);
    TlLibCall call = {
        .kernel = TL_LIB_gemm, .form = 2 * g->ta + g->tb, .speed = g->ta ? 1 : g->tb ? 2 : 0,
        .sizes = {g->M, g->N, g->K}};
    return launch(k, stream, g, &call, args);
}

/* ---- 3. vectors ---- */

/* A row is contiguous, and so is a column whose rows follow each other. */
static bool is_vector(const TlLibMatrix *m)
{
    return m->rows <= 1 || (m->columns <= 1 && m->ld == 1);
}

/* y = matrix x, or matrix^T x with `transposed`; y has n elements. */
static tile_status multiply_vector(tile_kernels *k, tile_stream *stream, const Gemm *g,
                                   const TlLibMatrix *matrix, const TlLibMatrix *x, bool transposed,
                                   int64_t n)
{
    tile_dtype result = find_types(g->type)->result;
    tile_arg args[ARGUMENTS];
    tl_lib_put_matrix(&args[AT_A], matrix, g->batch, g->type);
    put_vector(&args[AT_B], x, g->K, g->batch, g->type);
    put_vector(&args[AT_C], &g->c, n, g->batch, result);
    put_bias(&args[AT_BIAS], g, n, g->M == 1, result);
    TlLibCall call = {.kernel = transposed ? TL_LIB_gemv_t : TL_LIB_gemv, .sizes = {n, 1, g->K}};
    return launch(k, stream, g, &call, args);
}

static tile_status run(tile_kernels *k, tile_stream *stream, Gemm *g, int transpose_a,
                       int transpose_b, const tile_gemm_options *options)
{
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", g->function);
    tile_status status =
        tl_lib_take(g->function, "tile_gemm_options", &g->options, sizeof g->options, options,
                    TL_LEAST_SIZE(tile_gemm_options, bias));
    if (status == TILE_OK)
        status = check(g, transpose_a, transpose_b);
    if (status != TILE_OK || !g->M || !g->N || !g->batch)
        return status;
    if (g->alpha == 0)
        drop_product(g);
    if (g->M == 1 && is_vector(&g->a))
        return multiply_vector(k, stream, g, &g->b, &g->a, !g->tb, g->N);
    if (g->N == 1 && is_vector(&g->b) && is_vector(&g->c))
        return multiply_vector(k, stream, g, &g->a, &g->b, g->ta, g->M);
    return multiply(k, stream, g);
}

static void put_matrix(TlLibMatrix *to, const char *const names[3], const void *address,
                       int64_t rows, int64_t columns, bool transposed, int64_t ld, int64_t stride)
{
    int64_t down = transposed ? columns : rows, across = transposed ? rows : columns;
    *to = (TlLibMatrix){names[0], names[1], names[2], address, down, across, ld, stride};
}

/* In place, field by field: a literal of the whole is zeroed first, which takes 5 ns. */
static void describe(Gemm *g, const char *function, tile_dtype type, int ta, int tb, int64_t M,
                     int64_t N, int64_t K, double alpha, const void *A, int64_t lda,
                     int64_t stride_a, const void *B, int64_t ldb, int64_t stride_b, double beta,
                     void *C, int64_t ldc, int64_t stride_c, int64_t batch)
{
    static const char *const a[] = {"A", "lda", "stride_a"}, *const b[] = {"B", "ldb", "stride_b"},
                             *const c[] = {"C", "ldc", "stride_c"};
    g->function = function;
    g->type = type;
    g->M = M;
    g->N = N;
    g->K = K;
    g->batch = batch;
    g->ta = ta == TILE_TRANSPOSE;
    g->tb = tb == TILE_TRANSPOSE;
    g->alpha = alpha;
    g->beta = beta;
    put_matrix(&g->a, a, A, M, K, g->ta, lda, stride_a);
    put_matrix(&g->b, b, B, K, N, g->tb, ldb, stride_b);
    put_matrix(&g->c, c, C, M, N, false, ldc, stride_c);
    g->options = (tile_gemm_options){0};
}

tile_status tile_gemm(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                      tile_transpose transpose_a, tile_transpose transpose_b, int64_t M, int64_t N,
                      int64_t K, double alpha, const void *A, int64_t lda, const void *B,
                      int64_t ldb, double beta, void *C, int64_t ldc,
                      const tile_gemm_options *options)
{
    Gemm g;
    describe(&g, "tile_gemm", type, (int)transpose_a, (int)transpose_b, M, N, K, alpha, A, lda, 0,
             B, ldb, 0, beta, C, ldc, 0, 1);
    return run(kernels, stream, &g, (int)transpose_a, (int)transpose_b, options);
}

tile_status tile_gemm_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                              tile_transpose transpose_a, tile_transpose transpose_b, int64_t M,
                              int64_t N, int64_t K, double alpha, const void *A, int64_t lda,
                              int64_t stride_a, const void *B, int64_t ldb, int64_t stride_b,
                              double beta, void *C, int64_t ldc, int64_t stride_c, int64_t batch,
                              const tile_gemm_options *options)
{
    Gemm g;
    describe(&g, "tile_gemm_batched", type, (int)transpose_a, (int)transpose_b, M, N, K, alpha, A,
             lda, stride_a, B, ldb, stride_b, beta, C, ldc, stride_c, batch);
    return run(kernels, stream, &g, (int)transpose_a, (int)transpose_b, options);
}

/* ---- vectors of BLAS: matrices of one column, whose rows are at the increment ---- */

static tile_status check_vectors(const char *function, int64_t M, int64_t N, int64_t incx,
                                 int64_t incy)
{
    const TlLibExtent extents[] = {{"M", M}, {"N", N}};
    tile_status status = tl_lib_check_extents(function, extents, 2);
    if (status == TILE_OK && incx < 1)
        status = tl_lib_wrong(function, "incx", incx, "1 or more");
    if (status == TILE_OK && incy < 1)
        status = tl_lib_wrong(function, "incy", incy, "1 or more");
    return status;
}

static void rename_matrix(TlLibMatrix *m, const char *name, const char *ld_name)
{
    m->name = name;
    m->ld_name = ld_name;
}

tile_status tile_gemv(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                      tile_transpose transpose_a, int64_t M, int64_t N, double alpha,
                      const void *A, int64_t lda, const void *x, int64_t incx, double beta,
                      void *y, int64_t incy)
{
    bool transposed = transpose_a == TILE_TRANSPOSE;
    Gemm g;
    describe(&g, "tile_gemv", type, (int)transpose_a, TILE_NO_TRANSPOSE, transposed ? N : M, 1,
             transposed ? M : N, alpha, A, lda, 0, x, incx, 0, beta, y, incy, 0, 1);
    rename_matrix(&g.b, "x", "incx");
    rename_matrix(&g.c, "y", "incy");
    tile_status status = check_vectors(g.function, M, N, incx, incy);
    return status == TILE_OK ? run(kernels, stream, &g, (int)transpose_a, TILE_NO_TRANSPOSE, NULL)
                             : status;
}

tile_status tile_ger(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                     int64_t N, double alpha, const void *x, int64_t incx, const void *y,
                     int64_t incy, void *A, int64_t lda)
{
    Gemm g;
    describe(&g, "tile_ger", type, TILE_NO_TRANSPOSE, TILE_TRANSPOSE, M, N, 1, alpha, x, incx, 0, y,
             incy, 0, 1, A, lda, 0, 1);
    rename_matrix(&g.a, "x", "incx");
    rename_matrix(&g.b, "y", "incy");
    rename_matrix(&g.c, "A", "lda");
    tile_status status = check_vectors(g.function, M, N, incx, incy);
    return status == TILE_OK ? run(kernels, stream, &g, TILE_NO_TRANSPOSE, TILE_TRANSPOSE, NULL)
                             : status;
}
