/* rows.c: functions of the rows of a matrix: tile_softmax, tile_log_softmax, tile_layer_norm,
 * tile_rms_norm. What is optional is a view without elements. */
#include "stdlib/library/library.h"

#include <inttypes.h>

#include "runtime/contract/grow.h"

/* A call's arguments that all of these functions have. */
typedef struct Rows {
    const char *function;
    tile_dtype type;
    TlLibMatrix x, y;
} Rows;

static Rows rows_of(const char *function, tile_dtype type, int64_t M, int64_t N, const void *X,
                    int64_t ldx, void *Y, int64_t ldy)
{
    return (Rows){function, type, {"X", "ldx", "", X, M, N, ldx, 0},
                  {"Y", "ldy", "", Y, M, N, ldy, 0}};
}

static tile_status check(const tile_kernels *k, const Rows *r)
{
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", r->function);
    tile_status status = tl_lib_check_float(r->function, r->type);
    if (status == TILE_OK)
        status = tl_lib_check_extent(r->function, "M", r->x.rows);
    if (status == TILE_OK)
        status = tl_lib_check_extent(r->function, "N", r->x.columns);
    if (status == TILE_OK)
        status = tl_lib_check_matrix(r->function, &r->x, 1);
    if (status == TILE_OK)
        status = tl_lib_check_matrix(r->function, &r->y, 1);
    return status == TILE_OK ? tl_lib_check_in_place(r->function, &r->x, &r->y, r->type) : status;
}

static bool is_empty(const Rows *r)
{
    return r->x.rows == 0 || r->x.columns == 0;
}

/* n elements, or none. */
static tile_arg vector_of(const void *address, int64_t n, tile_dtype type)
{
    return tile_arg_view(address, type, 1, address ? n : 0, 0, 0, 0, 0, 0, 0, 0);
}

static TlLibCall call_of(const Rows *r, TlLibKernel kernel)
{
    return (TlLibCall){.function = r->function, .images = tl_lib_rows_images, .kernel = kernel,
                       .type = r->type, .sizes = {r->x.columns}};
}

/* ---- softmax ---- */

static tile_status run_softmax(tile_kernels *k, tile_stream *stream, const Rows *r, bool log)
{
    tile_status status = check(k, r);
    if (status != TILE_OK || is_empty(r))
        return status;
    TlLibCall call = call_of(r, TL_LIB_softmax);
    if (!tl_lib_fits(k, &call))
        call.kernel = TL_LIB_softmax_long;
    call.form = log;
    const tile_arg args[] = {tl_lib_matrix_view(&r->x, r->type),
                             tl_lib_matrix_view(&r->y, r->type)};
    return tl_lib_launch(k, stream, &call, args, 2);
}

tile_status tile_softmax(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                         int64_t N, const void *X, int64_t ldx, void *Y, int64_t ldy)
{
    Rows r = rows_of("tile_softmax", type, M, N, X, ldx, Y, ldy);
    return run_softmax(kernels, stream, &r, false);
}

tile_status tile_log_softmax(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                             int64_t N, const void *X, int64_t ldx, void *Y, int64_t ldy)
{
    Rows r = rows_of("tile_log_softmax", type, M, N, X, ldx, Y, ldy);
    return run_softmax(kernels, stream, &r, true);
}

/* ---- norms ---- */

static tile_status check_norm(const tile_kernels *k, const Rows *r, const TlLibCall *call)
{
    tile_status status = check(k, r);
    if (status != TILE_OK || is_empty(r) || tl_lib_fits(k, call))
        return status;
    return tl_lib_fail(TILE_UNAVAILABLE,
                       "%s: N is %" PRId64 ", more than the kernels for this device take",
                       r->function, r->x.columns);
}

tile_status tile_layer_norm(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                            int64_t N, const void *X, int64_t ldx, const void *weight,
                            const void *bias, double eps, void *Y, int64_t ldy,
                            const tile_norm_options *options)
{
    Rows r = rows_of("tile_layer_norm", type, M, N, X, ldx, Y, ldy);
    TlLibCall call = call_of(&r, TL_LIB_layer_norm);
    tile_norm_options o = TILE_NORM_OPTIONS_INIT;
    tile_status status = tl_lib_take(r.function, "tile_norm_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_norm_options, mean));
    if (status == TILE_OK)
        status = check_norm(kernels, &r, &call);
    if (status != TILE_OK || is_empty(&r))
        return status;
    const tile_arg args[] = {tl_lib_matrix_view(&r.x, type), vector_of(weight, N, type),
                             vector_of(bias, N, type), tl_lib_matrix_view(&r.y, type),
                             vector_of(o.mean, M, TILE_F32), vector_of(o.rstd, M, TILE_F32),
                             tile_f32((float)eps)};
    return tl_lib_launch(kernels, stream, &call, args, sizeof args / sizeof *args);
}

tile_status tile_rms_norm(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                          int64_t N, const void *X, int64_t ldx, const void *weight, double eps,
                          void *Y, int64_t ldy, const tile_norm_options *options)
{
    Rows r = rows_of("tile_rms_norm", type, M, N, X, ldx, Y, ldy);
    TlLibCall call = call_of(&r, TL_LIB_rms_norm);
    tile_norm_options o = TILE_NORM_OPTIONS_INIT;
    tile_status status = tl_lib_take(r.function, "tile_norm_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_norm_options, mean));
    if (status == TILE_OK)
        status = check_norm(kernels, &r, &call);
    if (status == TILE_OK && o.mean)
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "tile_rms_norm: options->mean is set, but there is "
                                                "no mean");
    if (status != TILE_OK || is_empty(&r))
        return status;
    const tile_arg args[] = {tl_lib_matrix_view(&r.x, type), vector_of(weight, N, type),
                             tl_lib_matrix_view(&r.y, type),
                             vector_of(o.rstd, M, TILE_F32), tile_f32((float)eps),
                             tile_f32((float)o.weight_offset)};
    return tl_lib_launch(kernels, stream, &call, args, sizeof args / sizeof *args);
}
