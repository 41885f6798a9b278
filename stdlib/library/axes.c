/* axes.c: tile_reduce and tile_scan. */
#include "stdlib/library/library.h"

#include <math.h>

#include "runtime/contract/grow.h"

/* Types with their sums' type. */
static bool is_real(tile_dtype type)
{
    return type == TILE_F32 || type == TILE_F16 || type == TILE_BF16 || type == TILE_F64;
}

static tile_arg number_of(double x, tile_dtype type)
{
    return type == TILE_F64 ? tile_f64(x) : tile_f32((float)x);
}

static tile_status check(const tile_kernels *k, const char *function, tile_dtype type,
                         const TlLibExtent *extents, int n)
{
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", function);
    if (!is_real(type))
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: type is %s, but must be f32, f16, bf16 or f64",
                           function, tile_dtype_name(type));
    return tl_lib_check_extents(function, extents, n);
}

/* ---- reductions ---- */

/* A reduction is a form of the kernels: those of its row here. */
static const struct {
    int form;
    bool mean, some, place; /* times 1 / N; needs an element; gives places */
} reductions[] = {
    [TILE_REDUCE_SUM] = {.form = 0},
    [TILE_REDUCE_MEAN] = {.form = 0, .mean = true},
    [TILE_REDUCE_NORM1] = {.form = 1},
    [TILE_REDUCE_NORM2] = {.form = 2},
    [TILE_REDUCE_MAX] = {.form = 3, .some = true},
    [TILE_REDUCE_MIN] = {.form = 4, .some = true},
    [TILE_REDUCE_ARGMAX] = {.form = 5, .some = true, .place = true},
    [TILE_REDUCE_ARGMIN] = {.form = 6, .some = true, .place = true},
};

static tile_status launch_reduce(tile_kernels *k, tile_stream *stream, const TlLibArray *x,
                                 const TlLibArray *y, tile_reduction reduction)
{
    int64_t M = x->extents[0], N = x->extents[1], L = x->extents[2];
    bool rows = L == 1 && (x->strides[1] == 1 || N == 1);
    TlLibArray matrix = *x, vector = *y;
    matrix.rank = 2;
    matrix.strides[1] = 1;
    vector.rank = 1;
    vector.strides[0] = 1;
    if (M == 1)
        matrix.strides[0] = N;
    double factor = reductions[reduction].mean ? 1 / (double)N : 1;
    const tile_arg args[] = {tl_lib_array_view(rows ? &matrix : x),
                             tl_lib_array_view(rows ? &vector : y), number_of(factor, x->type)};
    TlLibCall call = {.function = "tile_reduce",
                      .images = tl_lib_axes_images,
                      .kernel = rows ? TL_LIB_reduce_rows : TL_LIB_reduce_middle,
                      .type = x->type,
                      .form = reductions[reduction].form,
                      .sizes = {N, rows ? M : L, reductions[reduction].place}};
    return tl_lib_launch(k, stream, &call, args, 3);
}

tile_status tile_reduce(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                        tile_reduction reduction, int64_t M, int64_t N, int64_t L, const void *X,
                        void *Y, const tile_reduce_options *options)
{
    static const char function[] = "tile_reduce";
    const TlLibExtent extents[] = {{"M", M}, {"N", N}, {"L", L}};
    tile_reduce_options o = TILE_REDUCE_OPTIONS_INIT;
    tile_status status = tl_lib_take(function, "tile_reduce_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_reduce_options, x_strides));
    if (status == TILE_OK)
        status = check(kernels, function, type, extents, 3);
    if (status == TILE_OK && (int)reduction != (int)(reduction & 7))
        status = tl_lib_wrong(function, "reduction", (int)reduction, "of tile_reduction");
    if (status == TILE_OK && N == 0 && reductions[reduction].some)
        status = tl_lib_wrong(function, "N", 0, "1 or more for this reduction");
    if (status != TILE_OK)
        return status;
    tile_dtype result = reductions[reduction].place ? TILE_I32 : type;
    TlLibArray arrays[] = {
        tl_lib_dense("X", X, type, 3, (int64_t[]){M, N, L}),
        tl_lib_dense("Y", Y, result, 2, (int64_t[]){M, L})};
    if (o.x_strides[0] || o.x_strides[1]) {
        arrays[0].strides_name = "options->x_strides";
        for (int i = 0; i < 2; i++)
            arrays[0].strides[i] = o.x_strides[i];
    }
    status = tl_lib_check_arrays(function, arrays, 2);
    if (status != TILE_OK || !M || !L)
        return status;
    return launch_reduce(kernels, stream, &arrays[0], &arrays[1], reduction);
}

/* ---- scans ---- */

static double neutral_of(tile_scan_operation operation)
{
    switch (operation) {
    case TILE_SCAN_SUM: return 0;
    case TILE_SCAN_PRODUCT: return 1;
    case TILE_SCAN_MAX: return -HUGE_VAL;
    case TILE_SCAN_MIN: return HUGE_VAL;
    }
    return 0;
}

tile_status tile_scan(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                      tile_scan_operation operation, int64_t M, int64_t N, const void *X,
                      int64_t ldx, void *Y, int64_t ldy, const tile_scan_options *options)
{
    static const char function[] = "tile_scan";
    const TlLibExtent extents[] = {{"M", M}, {"N", N}};
    const TlLibMatrix x = {"X", "ldx", "", X, M, N, ldx, 0}, y = {"Y", "ldy", "", Y, M, N, ldy, 0};
    tile_scan_options o = TILE_SCAN_OPTIONS_INIT;
    tile_status status = tl_lib_take(function, "tile_scan_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_scan_options, exclusive));
    if (status == TILE_OK)
        status = check(kernels, function, type, extents, 2);
    if (status == TILE_OK && (int)operation != (int)(operation & 3))
        status = tl_lib_wrong(function, "operation", (int)operation, "of tile_scan_operation");
    if (status == TILE_OK)
        status = tl_lib_check_matrix(function, &x, 1);
    if (status == TILE_OK)
        status = tl_lib_check_matrix(function, &y, 1);
    if (status == TILE_OK)
        status = tl_lib_check_in_place(function, &x, &y, type);
    if (status != TILE_OK || !M || !N)
        return status;
    const tile_arg args[] = {tl_lib_matrix_view(&x, type), tl_lib_matrix_view(&y, type),
                             number_of(neutral_of(operation), type), tile_i32(o.exclusive != 0)};
    TlLibCall call = {.function = function, .images = tl_lib_axes_images,
                      .kernel = TL_LIB_scan_rows, .type = type, .form = (int)operation,
                      .sizes = {N}};
    return tl_lib_launch(kernels, stream, &call, args, 4);
}
