/* windows.c: functions of the windows of images [N, H, W, C], channels innermost: tile_conv2d,
 * tile_max_pool2d, tile_avg_pool2d. */
#include "stdlib/library/library.h"

#include "runtime/contract/grow.h"

typedef struct Windows {
    const char *function;
    tile_dtype type;
    int64_t N, H, W, C, R, S, P, Q; /* windows of R x S taps, P x Q of them */
    tile_window_options options;
} Windows;

/* How many whole windows there are in the padded image. */
static int64_t count_of(int64_t size, int64_t taps, int64_t stride, int64_t pad, int64_t dilation)
{
    int64_t room = size + 2 * pad - dilation * (taps - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

static tile_status check_option(const char *function, const char *name, int64_t value,
                                int64_t least)
{
    if (value >= least && value <= 1 << 20)
        return TILE_OK;
    return tl_lib_wrong(function, name, value, least ? "from 1 to 2^20, or 0 for 1"
                                                     : "from 0 to 2^20");
}

static tile_status take(Windows *w, const tile_window_options *options)
{
    w->options = (tile_window_options)TILE_WINDOW_OPTIONS_INIT;
    tile_status status =
        tl_lib_take(w->function, "tile_window_options", &w->options, sizeof w->options, options,
                    TL_LEAST_SIZE(tile_window_options, stride));
    tile_window_options *o = &w->options;
    for (int i = 0; i < 2 && status == TILE_OK; i++) {
        o->stride[i] = o->stride[i] ? o->stride[i] : 1;
        o->dilation[i] = o->dilation[i] ? o->dilation[i] : 1;
        status = check_option(w->function, "options->stride", o->stride[i], 1);
        if (status == TILE_OK)
            status = check_option(w->function, "options->dilation", o->dilation[i], 1);
        if (status == TILE_OK)
            status = check_option(w->function, "options->pad", o->pad[i], 0);
    }
    return status;
}

/* Sizes and what follows from them: P and Q. */
static tile_status check_sizes(const tile_kernels *k, Windows *w)
{
    const TlLibExtent extents[] = {{"N", w->N}, {"H", w->H}, {"W", w->W},
                                   {"C", w->C}, {"R", w->R}, {"S", w->S}};
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", w->function);
    tile_status status = tl_lib_check_float(w->function, w->type);
    if (status == TILE_OK)
        status = tl_lib_check_extents(w->function, extents, 6);
    for (int i = 4; i < 6 && status == TILE_OK; i++)
        if (extents[i].value < 1 || extents[i].value > 1 << 20)
            status = tl_lib_wrong(w->function, extents[i].name, extents[i].value, "from 1 to 2^20");
    const tile_window_options *o = &w->options;
    w->P = count_of(w->H, w->R, o->stride[0], o->pad[0], o->dilation[0]);
    w->Q = count_of(w->W, w->S, o->stride[1], o->pad[1], o->dilation[1]);
    return status;
}

/* Kernels count elements in 31 bits. */
static tile_status check_arrays(const Windows *w, const TlLibArray *arrays, int n)
{
    tile_status status = tl_lib_check_arrays(w->function, arrays, n);
    for (int i = 0; i < n && status == TILE_OK; i++)
        if (tl_lib_span(arrays[i].extents, arrays[i].strides, arrays[i].rank, TILE_I8) > INT32_MAX)
            status = tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s has more than 2147483647 elements",
                                 w->function, arrays[i].name);
    return status;
}

/* The numbers of conv_window, from args on. */
static int put_window(tile_arg *args, const Windows *w)
{
    const tile_window_options *o = &w->options;
    for (int i = 0; i < 2; i++) {
        args[i] = tile_i32((int32_t)o->stride[i]);
        args[2 + i] = tile_i32((int32_t)o->pad[i]);
        args[4 + i] = tile_i32((int32_t)o->dilation[i]);
    }
    return 6;
}

static tile_status pool(tile_kernels *k, tile_stream *stream, Windows *w, TlLibKernel kernel,
                        const void *X, void *Y, int32_t *places)
{
    bool with_places = kernel == TL_LIB_max_pool2d;
    tile_arg args[11];
    int n = 0;
    tile_status status = check_sizes(k, w);
    if (status != TILE_OK)
        return status;
    const TlLibArray arrays[] = {
        tl_lib_dense("X", X, w->type, 4, (int64_t[]){w->N, w->H, w->W, w->C}),
        tl_lib_dense("Y", Y, w->type, 4, (int64_t[]){w->N, w->P, w->Q, w->C}),
        tl_lib_dense("places", places, TILE_I32, 4, (int64_t[]){w->N, w->P, w->Q, w->C})};
    status = check_arrays(w, arrays, 2 + with_places);
    if (status != TILE_OK || !w->N || !w->P || !w->Q || !w->C)
        return status;
    for (; n < 2 + with_places; n++)
        args[n] = tl_lib_array_view(&arrays[n]);
    args[n++] = tile_i32((int32_t)w->R);
    args[n++] = tile_i32((int32_t)w->S);
    n += put_window(args + n, w);
    TlLibCall call = {.function = w->function, .images = tl_lib_windows_images, .kernel = kernel,
                      .type = w->type, .form = !with_places && w->options.count_pad,
                      .sizes = {w->C}};
    return tl_lib_launch(k, stream, &call, args, (size_t)n);
}

tile_status tile_max_pool2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                            int64_t H, int64_t W, int64_t C, int64_t R, int64_t S, const void *X,
                            void *Y, int32_t *places, const tile_window_options *options)
{
    Windows w = {.function = "tile_max_pool2d", .type = type, .N = N, .H = H, .W = W, .C = C,
                 .R = R, .S = S};
    tile_status status = take(&w, options);
    return status == TILE_OK ? pool(kernels, stream, &w, TL_LIB_max_pool2d, X, Y, places) : status;
}

tile_status tile_avg_pool2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                            int64_t H, int64_t W, int64_t C, int64_t R, int64_t S, const void *X,
                            void *Y, const tile_window_options *options)
{
    Windows w = {.function = "tile_avg_pool2d", .type = type, .N = N, .H = H, .W = W, .C = C,
                 .R = R, .S = S};
    tile_status status = take(&w, options);
    return status == TILE_OK ? pool(kernels, stream, &w, TL_LIB_avg_pool2d, X, Y, NULL) : status;
}

tile_status tile_conv2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                        int64_t H, int64_t W, int64_t C, int64_t K, int64_t R, int64_t S,
                        const void *X, const void *F, const void *bias, void *Y,
                        const tile_window_options *options)
{
    Windows w = {.function = "tile_conv2d", .type = type, .N = N, .H = H, .W = W, .C = C,
                 .R = R, .S = S};
    tile_arg args[10];
    tile_status status = take(&w, options);
    if (status == TILE_OK)
        status = check_sizes(kernels, &w);
    if (status == TILE_OK)
        status = tl_lib_check_extent(w.function, "K", K);
    if (status != TILE_OK)
        return status;
    const TlLibArray arrays[] = {tl_lib_dense("X", X, type, 4, (int64_t[]){N, H, W, C}),
                                 tl_lib_dense("F", F, type, 4, (int64_t[]){R, S, C, K}),
                                 tl_lib_dense("bias", bias, type, 1, (int64_t[]){bias ? K : 0}),
                                 tl_lib_dense("Y", Y, type, 4, (int64_t[]){N, w.P, w.Q, K})};
    status = check_arrays(&w, arrays, 4);
    if (status != TILE_OK || !N || !w.P || !w.Q || !K)
        return status;
    for (int i = 0; i < 4; i++)
        args[i] = tl_lib_array_view(&arrays[i]);
    put_window(args + 4, &w);
    TlLibCall call = {.function = w.function, .images = tl_lib_windows_images,
                      .kernel = TL_LIB_conv2d, .type = type, .form = bias != NULL,
                      .sizes = {N * w.P * w.Q, K, C}};
    return tl_lib_launch(kernels, stream, &call, args, 10);
}
