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
                       .type = r->type, .sizes = {r->x.columns, r->x.rows}};
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

/* ---- gradients of norms ---- */

/* So many rows leave one partial sum of dweight and dbias, and there are at most so many sums: a
 * matter of the shape alone, so that results are. */
enum { ROWS_A_PART = 16, MOST_PARTS = 64 };

static int64_t parts_of(int64_t M)
{
    int64_t parts = (M + ROWS_A_PART - 1) / ROWS_A_PART;
    return parts < MOST_PARTS ? parts : MOST_PARTS;
}

size_t tile_norm_backward_workspace(int64_t M, int64_t N)
{
    return M < 1 || N < 1 || N > INT32_MAX ? 0 : (size_t)(2 * parts_of(M) * N) * sizeof(float);
}

/* What both gradients have; bias and mean are of layer norm alone. */
typedef struct Backward {
    Rows rows; /* x: X, y: dX */
    TlLibMatrix dy;
    const void *weight, *dweight, *dbias;
    const float *mean, *rstd;
    float *workspace;
    double offset;
    bool rms;
} Backward;

static tile_status check_backward(const tile_kernels *k, const Backward *b, const TlLibCall *call)
{
    const char *function = b->rows.function;
    tile_status status = check_norm(k, &b->rows, call);
    if (status == TILE_OK)
        status = tl_lib_check_matrix(function, &b->dy, 1);
    if (status == TILE_OK)
        status = tl_lib_check_in_place(function, &b->dy, &b->rows.y, b->rows.type);
    if (status != TILE_OK || is_empty(&b->rows))
        return status;
    const char *missing = !b->rstd                  ? "rstd"
                          : !b->mean && !b->rms     ? "mean"
                          : !b->workspace && (b->dweight || b->dbias) ? "workspace"
                                                    : NULL;
    return missing ? tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", function, missing) : TILE_OK;
}

static tile_arg sums_of(const float *at, int64_t parts, int64_t N)
{
    return tile_arg_view(at, TILE_F32, 2, parts, N, 0, 0, 0, 0, 0, 0);
}

/* gradient = the sum of the parts. */
static tile_status add_parts(tile_kernels *k, tile_stream *stream, const Backward *b,
                             const float *parts, const void *gradient)
{
    int64_t M = b->rows.x.rows, N = b->rows.x.columns;
    TlLibCall call = call_of(&b->rows, TL_LIB_norm_parts);
    const tile_arg args[] = {sums_of(parts, parts_of(M), N),
                             vector_of(gradient, N, b->rows.type)};
    return gradient ? tl_lib_launch(k, stream, &call, args, 2) : TILE_OK;
}

/* Without rows gradients of parameters are 0: the sum of no parts. */
static tile_status run_backward(tile_kernels *k, tile_stream *stream, const Backward *b)
{
    TlLibCall call = call_of(&b->rows, TL_LIB_norm_backward);
    call.form = b->rms;
    tile_status status = check_backward(k, b, &call);
    int64_t M = b->rows.x.rows, N = b->rows.x.columns, parts = parts_of(M);
    if (status != TILE_OK || !N)
        return status;
    const float *of_weight = b->workspace;
    const float *of_bias = of_weight ? of_weight + parts * N : NULL;
    const tile_arg args[] = {
        tl_lib_matrix_view(&b->dy, b->rows.type), tl_lib_matrix_view(&b->rows.x, b->rows.type),
        vector_of(b->weight, N, b->rows.type), vector_of(b->mean, M, TILE_F32),
        vector_of(b->rstd, M, TILE_F32), tl_lib_matrix_view(&b->rows.y, b->rows.type),
        sums_of(of_weight, parts, b->dweight ? N : 0), sums_of(of_bias, parts, b->dbias ? N : 0),
        tile_f32((float)b->offset)};
    if (M)
        status = tl_lib_launch(k, stream, &call, args, sizeof args / sizeof *args);
    if (status == TILE_OK)
        status = add_parts(k, stream, b, of_weight, b->dweight);
    return status == TILE_OK ? add_parts(k, stream, b, of_bias, b->dbias) : status;
}

tile_status tile_layer_norm_backward(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                     int64_t M, int64_t N, const void *dY, int64_t lddy,
                                     const void *X, int64_t ldx, const void *weight,
                                     const float *mean, const float *rstd, void *dX, int64_t lddx,
                                     void *dweight, void *dbias, void *workspace)
{
    const Backward b = {.rows = {"tile_layer_norm_backward", type,
                                 {"X", "ldx", "", X, M, N, ldx, 0},
                                 {"dX", "lddx", "", dX, M, N, lddx, 0}},
                        .dy = {"dY", "lddy", "", dY, M, N, lddy, 0}, .weight = weight,
                        .mean = mean, .rstd = rstd, .dweight = dweight, .dbias = dbias,
                        .workspace = workspace};
    return run_backward(kernels, stream, &b);
}

tile_status tile_rms_norm_backward(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                   int64_t M, int64_t N, const void *dY, int64_t lddy,
                                   const void *X, int64_t ldx, const void *weight,
                                   double weight_offset, const float *rstd, void *dX, int64_t lddx,
                                   void *dweight, void *workspace)
{
    const Backward b = {.rows = {"tile_rms_norm_backward", type,
                                 {"X", "ldx", "", X, M, N, ldx, 0},
                                 {"dX", "lddx", "", dX, M, N, lddx, 0}},
                        .dy = {"dY", "lddy", "", dY, M, N, lddy, 0}, .weight = weight,
                        .rstd = rstd, .dweight = dweight, .workspace = workspace,
                        .offset = weight_offset, .rms = true};
    return run_backward(kernels, stream, &b);
}
