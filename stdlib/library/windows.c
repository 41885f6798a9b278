/* windows.c: functions of the windows of images: tile_conv2d, tile_max_pool2d, tile_avg_pool2d and
 * the gradients of both pools.
 *
 * Kernels take images [N, H, W, C], channels innermost. With channels outermost
 * - a pool has N C images of one channel: the same memory;
 * - a convolution of each channel for itself (depthwise) has a kernel for planes;
 * - one of a single tap that goes everywhere is a product of the filters and each image (with
 *   channels innermost, too, a product of all pixels and the filters);
 * - one of few channels, or groups of few filters, has kernels for CPUs: with channels outermost
 *   vectors go along rows of pixels, with channels innermost along filters, of several groups where
 *   these have few;
 * - one of 3 or 4 channels with a stride of 4 has a kernel for CPUs, of which the taps of a row are
 *   one product;
 * - any other one turns the image, in the workspace, convolves, and turns the result back. Filters
 *   [K, C / groups, R, S] are turned, too, so that K is innermost. */
#include "stdlib/library/images.h"

/* ---- pools ---- */

/* Planes are images of one channel. */
static tile_status take_planes(TlLibWindows *w)
{
    int64_t planes;
    if (w->options.layout == TILE_NHWC)
        return TILE_OK;
    if (__builtin_mul_overflow(w->N, w->C, &planes) || planes > INT32_MAX)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: X has more than 2147483647 elements",
                           w->function);
    w->N = planes;
    w->C = 1;
    return TILE_OK;
}

/* An array of a pool: one element for each pixel, or for each window. */
typedef struct PoolArray {
    const char *name;
    const void *address;
    bool of_windows, of_places;
} PoolArray;

/* Arrays in the kernel's order; the last one is written. */
typedef struct Pool {
    TlLibKernel kernel;
    bool means; /* have count_pad */
    int count;
    PoolArray arrays[3];
} Pool;

static TlLibArray pool_array(const TlLibWindows *w, const PoolArray *a)
{
    const int64_t pixels[] = {w->N, w->H, w->W, w->C}, windows[] = {w->N, w->P, w->Q, w->C};
    return tl_lib_dense(a->name, a->address, a->of_places ? TILE_I32 : w->type, 4,
                        a->of_windows ? windows : pixels);
}

static bool has_elements(const TlLibArray *a)
{
    return a->extents[0] && a->extents[1] && a->extents[2] && a->extents[3];
}

static TlLibCall planes_call(const TlLibWindows *w)
{
    return (TlLibCall){.function = w->function, .images = tl_lib_windows_images,
                       .kernel = TL_LIB_max_pool2d_planes_backward, .type = w->type};
}

/* With channels outermost each window adds to its pixel, where choices.def has the kernel. */
static bool adds_by_planes(const tile_kernels *k, const TlLibWindows *w, TlLibKernel kernel)
{
    TlLibCall call = planes_call(w);
    return kernel == TL_LIB_max_pool2d_backward && w->type == TILE_F32 && w->C == 1 &&
           tl_lib_fits(k, &call);
}

/* arrays: dY, places, dX */
static tile_status add_by_planes(tile_kernels *k, tile_stream *stream, const TlLibWindows *w,
                                 const TlLibArray *arrays)
{
    const int64_t windows[] = {w->N, w->P * w->Q}, pixels[] = {w->N, w->H * w->W};
    const TlLibArray planes[] = {
        tl_lib_dense("dY", arrays[0].address, w->type, 2, windows),
        tl_lib_dense("places", arrays[1].address, TILE_I32, 2, windows),
        tl_lib_dense("dX", arrays[2].address, w->type, 2, pixels)};
    const tile_arg args[] = {tl_lib_array_view(&planes[0]), tl_lib_array_view(&planes[1]),
                             tl_lib_array_view(&planes[2])};
    TlLibCall call = planes_call(w);
    return tl_lib_launch(k, stream, &call, args, 3);
}

static tile_status pool(tile_kernels *k, tile_stream *stream, TlLibWindows *w,
                        const tile_window_options *options, Pool p)
{
    tile_arg args[11];
    TlLibArray arrays[3];
    int n = 0;
    tile_status status = tl_lib_begin_windows(k, w, options);
    if (status == TILE_OK)
        status = tl_lib_check_windows(w);
    if (status == TILE_OK && w->options.groups != 1)
        status = tl_lib_wrong(w->function, "options->groups", w->options.groups, "0 or 1");
    if (status == TILE_OK)
        status = take_planes(w);
    if (status != TILE_OK)
        return status;
    for (int i = 0; i < p.count; i++)
        arrays[i] = pool_array(w, &p.arrays[i]);
    status = tl_lib_check_images(w, arrays, p.count);
    if (status != TILE_OK || !has_elements(&arrays[p.count - 1]))
        return status;
    if (adds_by_planes(k, w, p.kernel))
        return add_by_planes(k, stream, w, arrays);
    for (; n < p.count; n++)
        args[n] = tl_lib_array_view(&arrays[n]);
    args[n++] = tile_i32((int32_t)w->R);
    args[n++] = tile_i32((int32_t)w->S);
    n += tl_lib_put_window(args + n, w);
    TlLibCall call = {.function = w->function, .images = tl_lib_windows_images,
                      .kernel = p.kernel, .type = w->type,
                      .form = p.means && w->options.count_pad, .sizes = {w->C}};
    return tl_lib_launch(k, stream, &call, args, (size_t)n);
}

tile_status tile_max_pool2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                            int64_t H, int64_t W, int64_t C, int64_t R, int64_t S, const void *X,
                            void *Y, int32_t *places, const tile_window_options *options)
{
    TlLibWindows w = {.function = "tile_max_pool2d", .type = type, .N = N, .H = H, .W = W, .C = C,
                      .R = R, .S = S};
    return pool(kernels, stream, &w, options,
                (Pool){TL_LIB_max_pool2d, false, 3,
                       {{"X", X, false, false}, {"Y", Y, true, false},
                        {"places", places, true, true}}});
}

tile_status tile_max_pool2d_backward(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                     int64_t N, int64_t H, int64_t W, int64_t C, int64_t R,
                                     int64_t S, const void *dY, const int32_t *places, void *dX,
                                     const tile_window_options *options)
{
    TlLibWindows w = {.function = "tile_max_pool2d_backward", .type = type, .N = N, .H = H, .W = W,
                      .C = C, .R = R, .S = S};
    return pool(kernels, stream, &w, options,
                (Pool){TL_LIB_max_pool2d_backward, false, 3,
                       {{"dY", dY, true, false}, {"places", places, true, true},
                        {"dX", dX, false, false}}});
}

tile_status tile_avg_pool2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                            int64_t H, int64_t W, int64_t C, int64_t R, int64_t S, const void *X,
                            void *Y, const tile_window_options *options)
{
    TlLibWindows w = {.function = "tile_avg_pool2d", .type = type, .N = N, .H = H, .W = W, .C = C,
                      .R = R, .S = S};
    return pool(kernels, stream, &w, options,
                (Pool){TL_LIB_avg_pool2d, true, 2,
                       {{"X", X, false, false}, {"Y", Y, true, false}}});
}

tile_status tile_avg_pool2d_backward(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                     int64_t N, int64_t H, int64_t W, int64_t C, int64_t R,
                                     int64_t S, const void *dY, void *dX,
                                     const tile_window_options *options)
{
    TlLibWindows w = {.function = "tile_avg_pool2d_backward", .type = type, .N = N, .H = H, .W = W,
                      .C = C, .R = R, .S = S};
    return pool(kernels, stream, &w, options,
                (Pool){TL_LIB_avg_pool2d_backward, true, 2,
                       {{"dY", dY, true, false}, {"dX", dX, false, false}}});
}

/* ---- convolutions ---- */

/* Images of up to so many channels have kernels of their own, where choices.def has them; with
 * channels outermost, images of fewer than some are turned faster. TAPS is what a filter may have,
 * squared along an axis (conv2d_rows). */
enum { FEW_CHANNELS = 4, SOME_CHANNELS = 3, TAPS = 0x8000 };

/* The forms of conv2d_groups: channels and filters of a group. */
static const struct {
    int C, K;
} GROUP_FORMS[] = {{1, 2}, {1, 4}, {2, 2}, {4, 4}, {8, 8}};

/* What is turned in the workspace: filters, images, results. */
typedef struct Rooms {
    int64_t f, x, y, all;
} Rooms;

static Rooms rooms_of(const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    if (w->options.layout == TILE_NHWC || tl_lib_is_depthwise(c) || tl_lib_is_of_points(c))
        return (Rooms){0, 0, 0, 0};
    Rooms r = {tl_lib_room(w->type, c->CG * w->R * w->S * c->K),
               tl_lib_room(w->type, w->N * w->H * w->W * w->C),
               tl_lib_room(w->type, w->N * w->P * w->Q * c->K), 0};
    r.all = r.f + r.x + r.y;
    return r;
}

/* Each channel for itself. */
static tile_status convolve_channels(tile_kernels *k, tile_stream *stream, const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    bool outer = w->options.layout == TILE_NCHW;
    TlLibArray f = tl_lib_dense("F", c->f.address, w->type, 3,
                                outer ? (int64_t[]){w->C, w->R, w->S}
                                      : (int64_t[]){w->R, w->S, w->C});
    tile_arg args[10] = {tl_lib_array_view(&c->x), tl_lib_array_view(&f),
                         tl_lib_array_view(&c->bias), tl_lib_array_view(&c->y)};
    tl_lib_put_window(args + 4, w);
    const int64_t *stride = w->options.stride;
    int form = !outer ? c->bias.address != NULL
                      : stride[0] == stride[1] && stride[0] <= 2 ? (int)stride[0] : 0;
    TlLibCall call = tl_lib_image_call(c, outer ? TL_LIB_depthwise_planes : TL_LIB_depthwise, form,
                             outer ? w->Q : w->C, 0, 0);
    return tl_lib_launch(k, stream, &call, args, 10);
}

/* The form of conv2d_groups for several groups; -1: there is none. */
static int form_of_groups(const TlLibConv *c)
{
    int64_t groups = c->w.options.groups;
    for (int i = 0; i < (int)(sizeof GROUP_FORMS / sizeof *GROUP_FORMS); i++)
        if (groups > 1 && c->CG == GROUP_FORMS[i].C && c->K == groups * GROUP_FORMS[i].K)
            return i;
    return -1;
}

/* The call of conv2d_direct; it multiplies in f32, which takes other types longer. */
static bool goes_directly(const tile_kernels *k, const TlLibConv *c, TlLibCall *call)
{
    const TlLibWindows *w = &c->w;
    *call = tl_lib_image_call(c, TL_LIB_conv2d_direct, 0, c->K / w->options.groups,
                              c->CG * w->R * w->S, w->type == TILE_F32 ? 0 : c->CG);
    return tl_lib_fits(k, call);
}

/* The call of conv2d_planes, with channels outermost. */
static bool goes_by_planes(const tile_kernels *k, const TlLibConv *c, TlLibCall *call)
{
    const tile_window_options *o = &c->w.options;
    int form = o->stride[1] <= 2 ? (int)o->stride[1] - 1 : -1;
    *call = tl_lib_image_call(c, TL_LIB_conv2d_planes, form, c->w.Q, c->K / o->groups, c->CG);
    return o->layout == TILE_NCHW && form >= 0 && tl_lib_fits(k, call);
}

/* The call of conv2d_rows for images of few channels in f32, whose taps are one product: with
 * channels innermost where windows do not overlap. */
static bool goes_by_rows(const tile_kernels *k, const TlLibConv *c, TlLibCall *call)
{
    const TlLibWindows *w = &c->w;
    const int64_t *stride = w->options.stride;
    int64_t rows = w->C * w->R * w->R, columns = w->C * w->R * w->S * w->S, n = stride[0];
    bool inner = w->options.layout == TILE_NHWC;
    int form = n == 4 ? 0 : -1;
    if (inner) {
        form = n == 4 && w->C == SOME_CHANNELS && w->S <= n ? 1 : -1;
        columns *= w->C;
    }
    *call = tl_lib_image_call(c, TL_LIB_conv2d_rows, form, c->K, 0, 0);
    return w->type == TILE_F32 && form >= 0 && stride[1] == n && w->options.groups == 1 &&
           w->C >= SOME_CHANNELS && w->C <= FEW_CHANNELS && rows <= TAPS && columns <= TAPS &&
           tl_lib_fits(k, call);
}

/* The channels of a group by which choices.def chooses conv2d: 16 where chunks of 16 leave fewer of
 * the last one empty than chunks of 32, and outputs are more than few. */
static int64_t depth_of(const TlLibConv *c)
{
    int64_t rest = c->CG % 32;
    return c->CG > 32 && rest > 0 && rest <= 16 && c->K / c->w.options.groups > 16 ? 16 : c->CG;
}

/* y [N, P, Q, K] of x [N, H, W, C] and f, any array with the axes [R, S, C / groups, K]. */
static tile_status convolve(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                            const TlLibArray *x, const TlLibArray *f, const TlLibArray *y)
{
    const TlLibWindows *w = &c->w;
    tile_arg args[11] = {tl_lib_array_view(x), tl_lib_array_view(f), tl_lib_array_view(&c->bias),
                         tl_lib_array_view(y)};
    tl_lib_put_window(args + 4, w);
    args[10] = tile_i32((int32_t)w->options.groups);
    TlLibCall by_rows, direct;
    if (w->options.layout == TILE_NHWC && goes_by_rows(k, c, &by_rows))
        return tl_lib_launch(k, stream, &by_rows, args, 10);
    int form = form_of_groups(c);
    TlLibCall groups = tl_lib_image_call(c, TL_LIB_conv2d_groups, form, c->K, 0, 0);
    if (form >= 0 && tl_lib_fits(k, &groups))
        return tl_lib_launch(k, stream, &groups, args, 10);
    if (goes_directly(k, c, &direct))
        return tl_lib_launch(k, stream, &direct, args, 11);
    TlLibCall call = tl_lib_image_call(c, TL_LIB_conv2d, 0, w->N * w->P * w->Q,
                                       c->K / w->options.groups, depth_of(c));
    return tl_lib_launch(k, stream, &call, args, 11);
}

/* Filters, as they lie, times what outputs read: x [N, C R S, P Q]. */
static tile_status convolve_points(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                                   const void *x)
{
    const TlLibWindows *w = &c->w;
    int64_t pixels = w->P * w->Q, depth = w->C * w->R * w->S;
    const TlLibArray arrays[] = {
        tl_lib_dense("X", x, w->type, 3, (int64_t[]){w->N, depth, pixels}),
        tl_lib_dense("F", c->f.address, w->type, 2, (int64_t[]){c->K, depth}), c->bias,
        tl_lib_dense("Y", c->y.address, w->type, 3, (int64_t[]){w->N, c->K, pixels})};
    const tile_arg args[] = {tl_lib_array_view(&arrays[0]), tl_lib_array_view(&arrays[1]),
                             tl_lib_array_view(&arrays[2]), tl_lib_array_view(&arrays[3])};
    TlLibCall call = tl_lib_image_call(c, TL_LIB_conv2d_points, 0, c->K, pixels, depth);
    return tl_lib_launch(k, stream, &call, args, 4);
}

static TlLibCall unfold_call(const TlLibConv *c)
{
    int64_t stride = c->w.options.stride[1];
    return tl_lib_image_call(c, TL_LIB_unfold_images, stride <= 2 ? (int)stride : 0, 0, 0, 0);
}

/* Images with channels outermost of which few outputs read, or one tap here and there: what they
 * read is moved, where that is less than what would be turned, so that there is room for it. */
static bool unfolds(const tile_kernels *k, const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    int64_t outputs = w->N * w->P * w->Q, depth = w->C * w->R * w->S,
            turned = w->N * w->H * w->W * w->C + c->K * depth + outputs * c->K;
    TlLibCall call = unfold_call(c);
    return w->options.layout == TILE_NCHW && w->options.groups == 1 && w->C &&
           depth * outputs <= turned && tl_lib_fits(k, &call);
}

static tile_status convolve_unfolded(tile_kernels *k, tile_stream *stream, const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    const TlLibArray y = tl_lib_dense("workspace", w->options.workspace, w->type, 3,
                                      (int64_t[]){w->N, w->C * w->R * w->S, w->P * w->Q});
    tile_arg args[11] = {tl_lib_array_view(&c->x), tl_lib_array_view(&y)};
    int n = 2 + tl_lib_put_window(args + 2, w);
    args[n++] = tile_i32((int32_t)w->R);
    args[n++] = tile_i32((int32_t)w->S);
    args[n++] = tile_i32((int32_t)w->Q);
    TlLibCall call = unfold_call(c);
    tile_status status = tl_lib_launch(k, stream, &call, args, n);
    return status == TILE_OK ? convolve_points(k, stream, c, w->options.workspace) : status;
}

/* Pixels one by one: each is a row of a product. */
static tile_status multiply_pixels(tile_kernels *k, tile_stream *stream, const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    const tile_gemm_options bias = {.struct_size = sizeof bias, .bias = c->bias.address};
    return tile_gemm(k, stream, w->type, TILE_NO_TRANSPOSE, TILE_NO_TRANSPOSE, w->N * w->H * w->W,
                     c->K, w->C, 1, c->x.address, w->C, c->f.address, c->K, 0,
                     (void *)(uintptr_t)c->y.address, c->K, &bias);
}

/* Images with channels outermost, of which only the filters are turned: F is [C, R, S, K] then. */
static tile_status convolve_rows(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                                 const TlLibCall *call)
{
    const TlLibWindows *w = &c->w;
    TlLibArray f =
        tl_lib_dense("F", w->options.workspace, w->type, 4, (int64_t[]){w->C, w->R, w->S, c->K});
    tile_arg args[10] = {tl_lib_array_view(&c->x), tl_lib_array_view(&f),
                         tl_lib_array_view(&c->bias), tl_lib_array_view(&c->y)};
    tl_lib_put_window(args + 4, w);
    tile_status status = tl_lib_turn(k, stream, c, c->f.address, (void *)(uintptr_t)f.address, 1,
                                     c->K, w->C * w->R * w->S);
    return status == TILE_OK ? tl_lib_launch(k, stream, call, args, 10) : status;
}

/* Images with channels outermost, as they lie. */
static tile_status convolve_planes(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                                   const TlLibCall *call)
{
    tile_arg args[11] = {tl_lib_array_view(&c->x), tl_lib_array_view(&c->f),
                         tl_lib_array_view(&c->bias), tl_lib_array_view(&c->y)};
    tl_lib_put_window(args + 4, &c->w);
    args[10] = tile_i32((int32_t)c->w.options.groups);
    return tl_lib_launch(k, stream, call, args, 11);
}

/* Images with channels outermost, which are turned. */
static tile_status convolve_turned(tile_kernels *k, tile_stream *stream, const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    Rooms r = rooms_of(c);
    char *room = w->options.workspace;
    const int64_t pixels = w->H * w->W, outputs = w->P * w->Q, taps = w->R * w->S;
    bool x_lies = tl_lib_lies_either_way(w->C, pixels),
         y_lies = tl_lib_lies_either_way(c->K, outputs);
    TlLibArray x = tl_lib_dense("X", x_lies ? c->x.address : room + r.f, w->type, 4,
                                (int64_t[]){w->N, w->H, w->W, w->C});
    TlLibArray y = tl_lib_dense("Y", y_lies ? c->y.address : room + r.f + r.x, w->type, 4,
                                (int64_t[]){w->N, w->P, w->Q, c->K});
    TlLibArray f = {"F", "F", room, w->type, 4, {w->R, w->S, c->CG, c->K},
                    {w->S * c->K, c->K, taps * c->K, 1}};
    tile_status status = tl_lib_turn(k, stream, c, c->f.address, room, 1, c->K, c->CG * taps);
    if (status == TILE_OK && !x_lies)
        status = tl_lib_turn(k, stream, c, c->x.address, x.address, w->N, w->C, pixels);
    if (status == TILE_OK)
        status = convolve(k, stream, c, &x, &f, &y);
    if (status == TILE_OK && !y_lies)
        status = tl_lib_turn(k, stream, c, y.address, c->y.address, w->N, outputs, c->K);
    return status;
}

size_t tile_conv2d_workspace(tile_dtype type, int64_t N, int64_t H, int64_t W, int64_t C, int64_t K,
                             int64_t R, int64_t S, const tile_window_options *options)
{
    TlLibConv c = {.w = {.function = "tile_conv2d_workspace", .type = type, .N = N, .H = H, .W = W,
                         .C = C, .R = R, .S = S},
                   .K = K};
    tile_status status = tl_lib_take_windows(&c.w, options);
    if (status == TILE_OK)
        status = tl_lib_check_conv(&c);
    if (status != TILE_OK)
        return 0;
    tl_lib_set_conv(&c, &c, &c, NULL, &c);
    const TlLibArray arrays[] = {c.x, c.f, c.y};
    return tl_lib_check_images(&c.w, arrays, 3) == TILE_OK ? (size_t)rooms_of(&c).all : 0;
}

tile_status tile_conv2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                        int64_t H, int64_t W, int64_t C, int64_t K, int64_t R, int64_t S,
                        const void *X, const void *F, const void *bias, void *Y,
                        const tile_window_options *options)
{
    TlLibConv c = {.w = {.function = "tile_conv2d", .type = type, .N = N, .H = H, .W = W, .C = C,
                         .R = R, .S = S},
                   .K = K};
    tile_status status = tl_lib_begin_conv(kernels, &c, options);
    if (status != TILE_OK)
        return status;
    tl_lib_set_conv(&c, X, F, bias, Y);
    const TlLibArray arrays[] = {c.x, c.f, c.bias, c.y};
    status = tl_lib_check_images(&c.w, arrays, 4);
    if (status != TILE_OK || !N || !c.w.P || !c.w.Q || !K)
        return status;
    if (rooms_of(&c).all && !c.w.options.workspace)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "tile_conv2d: options->workspace is NULL");
    if (tl_lib_is_depthwise(&c))
        return convolve_channels(kernels, stream, &c);
    if (tl_lib_is_of_points(&c))
        return convolve_points(kernels, stream, &c, X);
    if (tl_lib_is_pointwise(&c) && c.w.C > FEW_CHANNELS)
        return multiply_pixels(kernels, stream, &c);
    TlLibCall by_rows, by_planes;
    if (goes_by_planes(kernels, &c, &by_planes))
        return convolve_planes(kernels, stream, &c, &by_planes);
    if (c.w.options.layout == TILE_NCHW && goes_by_rows(kernels, &c, &by_rows))
        return convolve_rows(kernels, stream, &c, &by_rows);
    if (unfolds(kernels, &c))
        return convolve_unfolded(kernels, stream, &c);
    if (c.w.options.layout == TILE_NCHW)
        return convolve_turned(kernels, stream, &c);
    return convolve(kernels, stream, &c, &c.x, &c.f, &c.y);
}
