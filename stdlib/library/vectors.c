/* vectors.c: BLAS 1: tile_axpy, tile_scal, tile_copy, tile_swap; tile_dot, tile_nrm2, tile_asum,
 * tile_iamax, whose one number is on the device.
 *
 * As in BLAS, a vector with a negative increment begins at its last element in memory. Vectors that
 * lie side by side have kernels of their own. */
#include "stdlib/library/library.h"

typedef struct Vector {
    const char *name, *increment;
    const void *address;
    int64_t n, step;
} Vector;

typedef struct Vectors {
    const char *function;
    tile_kernels *kernels;
    tile_stream *stream;
    tile_dtype type;
    int64_t N;
    Vector x, y; /* y.name: NULL where there is none */
} Vectors;

static Vector vector_x(const void *address, int64_t n, int64_t step)
{
    return (Vector){"x", "incx", address, n, step};
}

static Vector vector_y(const void *address, int64_t n, int64_t step)
{
    return (Vector){"y", "incy", address, n, step};
}

static tile_status check_vector(const Vectors *v, const Vector *x)
{
    tile_status status = tl_lib_check_increment(v->function, x->increment, x->step);
    if (status != TILE_OK)
        return status;
    int64_t far = x->step < 0 ? -x->step : x->step;
    return tl_lib_check_strided(v->function, x->name, x->increment, x->address, &x->n, &far, 1,
                                v->type);
}

static tile_status check(const Vectors *v)
{
    if (!v->kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", v->function);
    tile_status status = tl_lib_check_real(v->function, v->type);
    if (status == TILE_OK)
        status = tl_lib_check_extent(v->function, "N", v->N);
    if (status == TILE_OK)
        status = check_vector(v, &v->x);
    return status == TILE_OK && v->y.name ? check_vector(v, &v->y) : status;
}

/* Of one element there is no other at any distance. */
static int64_t step_of(const Vector *x)
{
    return x->n > 1 ? x->step : 1;
}

static void put_vector(tile_arg *to, const Vectors *v, const Vector *x)
{
    tl_lib_put_vector(to, x->address, v->type, x->n, step_of(x));
}

static void put_result(tile_arg *to, const void *result, tile_dtype type)
{
    const int64_t one = 1;
    tl_lib_put_view(to, result, type, 1, &one, &one);
}

/* forms: that of elements apart, and behind it that of elements side by side */
static tile_status launch(const Vectors *v, TlLibKernel kernel, int form, const tile_arg *args,
                          size_t nargs)
{
    bool dense = step_of(&v->x) == 1 && (!v->y.name || step_of(&v->y) == 1);
    TlLibCall call = {.function = v->function, .images = tl_lib_vectors_images, .kernel = kernel,
                      .type = v->type, .form = form + dense, .sizes = {v->N}};
    return tl_lib_launch(v->kernels, v->stream, &call, args, nargs);
}

/* Each element for itself; alpha: NULL where there is none. */
static tile_status map(const Vectors *v, TlLibKernel kernel, const double *alpha)
{
    tile_arg args[3];
    size_t n = 0;
    tile_status status = check(v);
    if (status != TILE_OK || !v->N)
        return status;
    put_vector(&args[n++], v, &v->x);
    if (v->y.name)
        put_vector(&args[n++], v, &v->y);
    if (alpha)
        tl_lib_put_factor(&args[n++], *alpha, v->type);
    return launch(v, kernel, 0, args, n);
}

/* One number of all. */
static tile_status fold(const Vectors *v, TlLibKernel kernel, int form, const void *result,
                        tile_dtype type)
{
    tile_arg args[3];
    size_t n = 0;
    tile_status status = check(v);
    if (status == TILE_OK && !result)
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "%s: result is NULL", v->function);
    if (status != TILE_OK)
        return status;
    put_vector(&args[n++], v, &v->x);
    if (v->y.name)
        put_vector(&args[n++], v, &v->y);
    put_result(&args[n++], result, type);
    return launch(v, kernel, form, args, n);
}

tile_status tile_axpy(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                      double alpha, const void *x, int64_t incx, void *y, int64_t incy)
{
    Vectors v = {"tile_axpy", kernels, stream, type, N, vector_x(x, N, incx), vector_y(y, N, incy)};
    if (alpha == 0)
        return check(&v);
    return map(&v, TL_LIB_vector_axpy, &alpha);
}

tile_status tile_scal(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                      double alpha, void *x, int64_t incx)
{
    Vectors v = {"tile_scal", kernels, stream, type, N, vector_x(x, N, incx), {NULL}};
    return map(&v, TL_LIB_vector_scale, &alpha);
}

tile_status tile_copy(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                      const void *x, int64_t incx, void *y, int64_t incy)
{
    Vectors v = {"tile_copy", kernels, stream, type, N, vector_x(x, N, incx), vector_y(y, N, incy)};
    return map(&v, TL_LIB_vector_copy, NULL);
}

tile_status tile_swap(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                      void *x, int64_t incx, void *y, int64_t incy)
{
    Vectors v = {"tile_swap", kernels, stream, type, N, vector_x(x, N, incx), vector_y(y, N, incy)};
    return map(&v, TL_LIB_vector_swap, NULL);
}

tile_status tile_dot(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                     const void *x, int64_t incx, const void *y, int64_t incy, void *result)
{
    Vectors v = {"tile_dot", kernels, stream, type, N, vector_x(x, N, incx), vector_y(y, N, incy)};
    return fold(&v, TL_LIB_vector_dot, 0, result, type);
}

tile_status tile_asum(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                      const void *x, int64_t incx, void *result)
{
    Vectors v = {"tile_asum", kernels, stream, type, N, vector_x(x, N, incx), {NULL}};
    return fold(&v, TL_LIB_vector_size, 0, result, type);
}

tile_status tile_nrm2(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                      const void *x, int64_t incx, void *result)
{
    Vectors v = {"tile_nrm2", kernels, stream, type, N, vector_x(x, N, incx), {NULL}};
    return fold(&v, TL_LIB_vector_size, 2, result, type);
}

tile_status tile_iamax(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                       const void *x, int64_t incx, int32_t *result)
{
    Vectors v = {"tile_iamax", kernels, stream, type, N, vector_x(x, N, incx), {NULL}};
    return fold(&v, TL_LIB_vector_greatest, 0, result, TILE_I32);
}
