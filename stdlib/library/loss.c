/* loss.c: tile_cross_entropy and tile_cross_entropy_backward. */
#include "stdlib/library/library.h"

#include "runtime/contract/grow.h"

/* What both functions have. */
typedef struct Loss {
    const char *function;
    tile_dtype type;
    TlLibMatrix x;
    const int32_t *labels;
    tile_cross_entropy_options options;
} Loss;

static tile_status check(const tile_kernels *k, const Loss *l)
{
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", l->function);
    tile_status status = tl_lib_check_float(l->function, l->type);
    if (status == TILE_OK)
        status = tl_lib_check_extent(l->function, "M", l->x.rows);
    if (status == TILE_OK)
        status = tl_lib_check_extent(l->function, "V", l->x.columns);
    return status == TILE_OK ? tl_lib_check_matrix(l->function, &l->x, 1) : status;
}

/* A vector of M elements. */
static tile_status check_vector(const Loss *l, const char *name, const void *address)
{
    if (address || !l->x.rows)
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", l->function, name);
}

static tile_status take(Loss *l, const tile_cross_entropy_options *options)
{
    tile_status status =
        tl_lib_take(l->function, "tile_cross_entropy_options", &l->options, sizeof l->options,
                    options, TL_LEAST_SIZE(tile_cross_entropy_options, smoothing));
    if (status != TILE_OK)
        return status;
    if (!l->options.ignore)
        l->options.ignore = -100;
    if (l->options.smoothing >= 0 && l->options.smoothing <= 1)
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT,
                       "%s: options->smoothing is %g, but must be from 0 to 1", l->function,
                       l->options.smoothing);
}

static Loss loss_of(const char *function, tile_dtype type, int64_t M, int64_t V, const void *X,
                    int64_t ldx, const int32_t *labels)
{
    return (Loss){function, type, {"X", "ldx", "", X, M, V, ldx, 0}, labels,
                  TILE_CROSS_ENTROPY_OPTIONS_INIT};
}

static tile_arg vector_of(const Loss *l, const void *address, tile_dtype type)
{
    return tile_arg_view(address, type, 1, l->x.rows, 0, 0, 0, 0, 0, 0, 0);
}

static tile_status launch(tile_kernels *k, tile_stream *stream, const Loss *l, TlLibKernel kernel,
                          const tile_arg *arrays, size_t narrays)
{
    enum { MOST = 8 };
    tile_arg args[MOST];
    size_t n = 0;
    for (; n < narrays; n++)
        args[n] = arrays[n];
    args[n++] = tile_f32((float)l->options.smoothing);
    args[n++] = tile_f32((float)l->options.z);
    args[n++] = tile_i32(l->options.ignore);
    TlLibCall call = {.function = l->function, .images = tl_lib_loss_images, .kernel = kernel,
                      .type = l->type, .sizes = {l->x.columns}};
    return tl_lib_launch(k, stream, &call, args, n);
}

tile_status tile_cross_entropy(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t M, int64_t V, const void *X, int64_t ldx,
                               const int32_t *labels, float *loss, float *lse,
                               const tile_cross_entropy_options *options)
{
    Loss l = loss_of("tile_cross_entropy", type, M, V, X, ldx, labels);
    tile_status status = take(&l, options);
    if (status == TILE_OK)
        status = check(kernels, &l);
    if (status == TILE_OK)
        status = check_vector(&l, "labels", labels);
    if (status == TILE_OK)
        status = check_vector(&l, "loss", loss);
    if (status == TILE_OK)
        status = check_vector(&l, "lse", lse);
    if (status != TILE_OK || !M)
        return status;
    const tile_arg arrays[] = {tl_lib_matrix_view(&l.x, type), vector_of(&l, labels, TILE_I32),
                               vector_of(&l, loss, TILE_F32), vector_of(&l, lse, TILE_F32)};
    return launch(kernels, stream, &l, TL_LIB_cross_entropy, arrays, 4);
}

tile_status tile_cross_entropy_backward(tile_kernels *kernels, tile_stream *stream,
                                        tile_dtype type, int64_t M, int64_t V, const void *X,
                                        int64_t ldx, const int32_t *labels, const float *lse,
                                        const float *dloss, void *dX, int64_t lddx,
                                        const tile_cross_entropy_options *options)
{
    Loss l = loss_of("tile_cross_entropy_backward", type, M, V, X, ldx, labels);
    TlLibMatrix dx = {"dX", "lddx", "", dX, M, V, lddx, 0};
    tile_status status = take(&l, options);
    if (status == TILE_OK)
        status = check(kernels, &l);
    if (status == TILE_OK)
        status = tl_lib_check_matrix(l.function, &dx, 1);
    if (status == TILE_OK)
        status = tl_lib_check_in_place(l.function, &l.x, &dx, type);
    if (status == TILE_OK)
        status = check_vector(&l, "labels", labels);
    if (status == TILE_OK)
        status = check_vector(&l, "lse", lse);
    if (status == TILE_OK)
        status = check_vector(&l, "dloss", dloss);
    if (status != TILE_OK || !M || !V)
        return status;
    const tile_arg arrays[] = {tl_lib_matrix_view(&l.x, type), vector_of(&l, labels, TILE_I32),
                               vector_of(&l, lse, TILE_F32), vector_of(&l, dloss, TILE_F32),
                               tl_lib_matrix_view(&dx, type)};
    return launch(kernels, stream, &l, TL_LIB_cross_entropy_backward, arrays, 5);
}
