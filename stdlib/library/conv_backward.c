/* conv_backward.c: tile_conv2d_backward_data, tile_conv2d_backward_weights.
 *
 * Kernels take images with channels innermost; those with channels outermost are turned in the
 * workspace, and so is the result.
 *
 * By the image: filters are turned, too, so that the channels that are written are innermost. Each
 * pixel looks for the outputs that read it; pixels that the same taps reach are done together.
 * By the filters: shares of the outputs are multiplied by what they read, and the parts are added
 * up in order. How many shares there are follows from the sizes alone, so that bits do, too. */
#include "stdlib/library/images.h"

/* Arrays as kernels take them, and what is turned or added up in the workspace, in bytes. */
typedef struct Rooms {
    int64_t f, x, y, parts, all;
} Rooms;

static bool is_turned(const TlLibConv *c, int64_t channels, int64_t pixels)
{
    return c->w.options.layout == TILE_NCHW && !tl_lib_lies_either_way(channels, pixels);
}

static Rooms with_sum(Rooms r)
{
    r.all = r.f + r.x + r.y + r.parts;
    return r;
}

static bool is_missing(const TlLibConv *c, const Rooms *r)
{
    return r->all && !c->w.options.workspace;
}

static tile_status fail_for_workspace(const TlLibConv *c)
{
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: options->workspace is NULL", c->w.function);
}

/* Of one window the stride says nothing, and of one tap the dilation. */
static void drop_idle_options(TlLibWindows *w)
{
    tile_window_options *o = &w->options;
    o->stride[0] = w->P > 1 ? o->stride[0] : 1;
    o->stride[1] = w->Q > 1 ? o->stride[1] : 1;
    o->dilation[0] = w->R > 1 ? o->dilation[0] : 1;
    o->dilation[1] = w->S > 1 ? o->dilation[1] : 1;
}

/* An output is apart from an input: it may be written before that is read. */
static tile_status check_apart(const TlLibConv *c, const TlLibArray *output,
                               const TlLibArray *input)
{
    int64_t written = tl_lib_span(output->extents, output->strides, output->rank, output->type),
            read = tl_lib_span(input->extents, input->strides, input->rank, input->type);
    uintptr_t to = (uintptr_t)output->address, from = (uintptr_t)input->address;
    if (!written || !read || to + (uintptr_t)written <= from || from + (uintptr_t)read <= to)
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s overlaps %s", c->w.function, output->name,
                       input->name);
}

/* Images [N, pixels, channels], turned into the room if they need to be. */
static tile_status turn_images(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                               TlLibArray *images, int64_t channels, int64_t height, int64_t width,
                               char *room)
{
    const void *from = images->address;
    bool turned = is_turned(c, channels, height * width);
    *images = tl_lib_dense(images->name, turned ? room : from, c->w.type, 4,
                           (int64_t[]){c->w.N, height, width, channels});
    return turned ? tl_lib_turn(k, stream, c, from, room, c->w.N, channels, height * width)
                  : TILE_OK;
}

static TlLibCall own_call(const TlLibConv *c, TlLibKernel kernel, int64_t a, int64_t b, int64_t d)
{
    TlLibCall call = tl_lib_image_call(c, kernel, 0, a, b, d);
    call.images = tl_lib_conv_backward_images;
    return call;
}

/* ---- by the image ---- */

static Rooms rooms_of_data(const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    bool outer = w->options.layout == TILE_NCHW;
    Rooms r = {0, 0, 0, 0, 0};
    if (!tl_lib_is_depthwise(c) || (outer && is_turned(c, w->C, w->R * w->S)))
        r.f = tl_lib_room(w->type, c->CG * w->R * w->S * c->K);
    if (tl_lib_is_of_points(c))
        return with_sum(r);
    if (is_turned(c, w->C, w->H * w->W))
        r.x = tl_lib_room(w->type, w->N * w->H * w->W * w->C);
    if (is_turned(c, c->K, w->P * w->Q))
        r.y = tl_lib_room(w->type, w->N * w->P * w->Q * c->K);
    return with_sum(r);
}

/* dX [N, C, pixels] = F^T dY */
static tile_status spread_points(tile_kernels *k, tile_stream *stream, const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    int64_t pixels = w->H * w->W;
    char *room = w->options.workspace;
    const TlLibArray arrays[] = {
        tl_lib_dense("dY", c->y.address, w->type, 3, (int64_t[]){w->N, c->K, pixels}),
        tl_lib_dense("F", room, w->type, 2, (int64_t[]){w->C, c->K}), c->bias,
        tl_lib_dense("dX", c->x.address, w->type, 3, (int64_t[]){w->N, w->C, pixels})};
    const tile_arg args[] = {tl_lib_array_view(&arrays[0]), tl_lib_array_view(&arrays[1]),
                             tl_lib_array_view(&arrays[2]), tl_lib_array_view(&arrays[3])};
    TlLibCall call = tl_lib_image_call(c, TL_LIB_conv2d_points, 0, w->C, pixels, c->K);
    tile_status status = tl_lib_turn(k, stream, c, c->f.address, room, 1, c->K, w->C);
    return status == TILE_OK ? tl_lib_launch(k, stream, &call, args, 4) : status;
}

/* Each channel for itself: F [R, S, C]. */
static tile_status spread_channels(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                                   const TlLibArray *y, const TlLibArray *x)
{
    const TlLibWindows *w = &c->w;
    bool turned = is_turned(c, w->C, w->R * w->S);
    TlLibArray f = tl_lib_dense("F", turned ? w->options.workspace : c->f.address, w->type, 3,
                                (int64_t[]){w->R, w->S, w->C});
    tile_arg args[9] = {tl_lib_array_view(y), tl_lib_array_view(&f), tl_lib_array_view(x)};
    tl_lib_put_window(args + 3, w);
    TlLibCall call = own_call(c, TL_LIB_depthwise_data, w->C, 0, 0);
    tile_status status = turned ? tl_lib_turn(k, stream, c, c->f.address, f.address, 1, w->C,
                                              w->R * w->S)
                                : TILE_OK;
    return status == TILE_OK ? tl_lib_launch(k, stream, &call, args, 9) : status;
}

/* F as [R, S, K, C / groups]; without outputs of no taps, so that dX is 0. */
static tile_status spread(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                          const TlLibArray *y, const TlLibArray *x)
{
    const TlLibWindows *w = &c->w;
    bool outer = w->options.layout == TILE_NCHW, some = w->P && w->Q;
    int64_t taps = w->R * w->S, CG = c->CG;
    int64_t down = (w->H + w->options.stride[0] - 1) / w->options.stride[0],
            across = (w->W + w->options.stride[1] - 1) / w->options.stride[1];
    TlLibArray f = {"F", "F", w->options.workspace, w->type, 4,
                    {some ? w->R : 0, some ? w->S : 0, c->K, CG},
                    {outer ? w->S * CG : w->S * c->K * CG, outer ? CG : c->K * CG,
                     outer ? taps * CG : CG, 1}};
    tile_arg args[10] = {tl_lib_array_view(y), tl_lib_array_view(&f), tl_lib_array_view(x)};
    tl_lib_put_window(args + 3, w);
    args[9] = tile_i32((int32_t)w->options.groups);
    TlLibCall call = own_call(c, TL_LIB_conv2d_data, w->N * down * across, CG,
                              c->K / w->options.groups);
    tile_status status = tl_lib_turn(k, stream, c, c->f.address, f.address, outer ? c->K : taps, CG,
                                     outer ? taps : c->K);
    return status == TILE_OK ? tl_lib_launch(k, stream, &call, args, 10) : status;
}

static tile_status run_data(tile_kernels *k, tile_stream *stream, const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    Rooms r = rooms_of_data(c);
    char *room = w->options.workspace;
    TlLibArray y = c->y;
    bool turned = is_turned(c, w->C, w->H * w->W);
    TlLibArray x = tl_lib_dense("dX", turned ? room + r.f : c->x.address, w->type, 4,
                                (int64_t[]){w->N, w->H, w->W, w->C});
    if (is_missing(c, &r))
        return fail_for_workspace(c);
    if (tl_lib_is_of_points(c))
        return spread_points(k, stream, c);
    tile_status status = turn_images(k, stream, c, &y, c->K, w->P, w->Q, room + r.f + r.x);
    if (status == TILE_OK)
        status = tl_lib_is_depthwise(c) ? spread_channels(k, stream, c, &y, &x)
                                        : spread(k, stream, c, &y, &x);
    return status == TILE_OK && turned
               ? tl_lib_turn(k, stream, c, x.address, c->x.address, w->N, w->H * w->W, w->C)
               : status;
}

/* ---- by the filters and the bias ---- */

enum {
    SHARE = 1024,   /* outputs that a share has at least */
    PROGRAMS = 256, /* there are so many at most, or one share */
    BLOCK = 64      /* nominal edge of what a program does */
};

static int64_t blocks_of(int64_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

/* Into how many shares outputs are parted where `programs` do each. */
static int64_t shares_of(const TlLibConv *c, int64_t programs)
{
    int64_t most = programs ? PROGRAMS / programs : 1,
            there = c->w.N * c->w.P * c->w.Q / SHARE;
    most = most < there ? most : there;
    return most > 1 ? most : 1;
}

static int64_t filter_shares(const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    int64_t taps = w->R * w->S, groups = w->options.groups;
    return tl_lib_is_depthwise(c)
               ? shares_of(c, taps * blocks_of(w->C))
               : shares_of(c, taps * groups * blocks_of(c->CG) * blocks_of(c->K / groups));
}

static int64_t bias_shares(const TlLibConv *c)
{
    return shares_of(c, blocks_of(c->K));
}

static int64_t count_filters(const TlLibConv *c)
{
    return c->CG * c->w.R * c->w.S * c->K;
}

/* Filters come out of the kernels in an order of axes that TILE_NCHW has not. */
static bool are_filters_turned(const TlLibConv *c)
{
    return is_turned(c, c->K, c->CG * c->w.R * c->w.S);
}

/* One part of the filters' type is the whole. */
static bool is_whole(const TlLibConv *c)
{
    return c->w.type == TILE_F32 && filter_shares(c) == 1;
}

static Rooms rooms_of_weights(const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    int64_t filters = is_whole(c) ? 0 : filter_shares(c) * count_filters(c),
            bias = bias_shares(c) * c->K;
    Rooms r = {0, 0, 0, tl_lib_room(TILE_F32, filters > bias ? filters : bias), 0};
    if (are_filters_turned(c))
        r.f = tl_lib_room(w->type, count_filters(c));
    if (is_turned(c, w->C, w->H * w->W))
        r.x = tl_lib_room(w->type, w->N * w->H * w->W * w->C);
    if (is_turned(c, c->K, w->P * w->Q))
        r.y = tl_lib_room(w->type, w->N * w->P * w->Q * c->K);
    return with_sum(r);
}

/* to [n] = the sum of parts [shares, n] */
static tile_status add_parts(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                             const void *parts, int64_t shares, int64_t n, const void *to)
{
    const tile_arg args[] = {tile_arg_view(parts, TILE_F32, 2, shares, n, 0, 0, 0, 0, 0, 0),
                             tile_arg_view(to, c->w.type, 1, n, 0, 0, 0, 0, 0, 0, 0)};
    TlLibCall call = own_call(c, TL_LIB_conv2d_parts, n, 0, 0);
    return tl_lib_launch(k, stream, &call, args, 2);
}

/* parts [shares, R, S, C / groups, K], or with channels outermost [shares, C / groups, R, S, K] */
static tile_status gather_parts(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                                const TlLibArray *x, const TlLibArray *y, const void *parts)
{
    const TlLibWindows *w = &c->w;
    int64_t shares = filter_shares(c), taps = w->R * w->S, CG = c->CG, K = c->K;
    bool alone = tl_lib_is_depthwise(c), inner = w->options.layout == TILE_NHWC || alone;
    TlLibArray p = {"parts", "parts", parts, TILE_F32, alone ? 4 : 5,
                    {shares, w->R, w->S, alone ? K : CG, K},
                    {CG * taps * K, inner ? w->S * CG * K : w->S * K, inner ? CG * K : K,
                     alone ? 1 : inner ? K : taps * K, 1}};
    tile_arg args[10] = {tl_lib_array_view(x), tl_lib_array_view(y), tl_lib_array_view(&p)};
    tl_lib_put_window(args + 3, w);
    args[9] = tile_i32((int32_t)w->options.groups);
    TlLibCall call = alone ? own_call(c, TL_LIB_depthwise_weight, w->C, 0, 0)
                           : own_call(c, TL_LIB_conv2d_weight, CG, K / w->options.groups,
                                      w->N * w->P * w->Q);
    return tl_lib_launch(k, stream, &call, args, alone ? 9 : 10);
}

static tile_status derive_filters(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                                  const TlLibArray *x, const TlLibArray *y, char *room)
{
    Rooms r = rooms_of_weights(c);
    int64_t each = c->CG * c->w.R * c->w.S;
    bool turned = are_filters_turned(c);
    const void *to = turned ? room : c->f.address;
    char *parts = room + r.f + r.x + r.y;
    tile_status status = gather_parts(k, stream, c, x, y, is_whole(c) ? to : parts);
    if (status == TILE_OK && !is_whole(c))
        status = add_parts(k, stream, c, parts, filter_shares(c), count_filters(c), to);
    return status == TILE_OK && turned
               ? tl_lib_turn(k, stream, c, to, c->f.address, 1, each, c->K)
               : status;
}

static tile_status derive_bias(tile_kernels *k, tile_stream *stream, const TlLibConv *c,
                               const TlLibArray *y, char *parts)
{
    const TlLibWindows *w = &c->w;
    const tile_arg args[] = {
        tile_arg_view(y->address, w->type, 2, w->N * w->P * w->Q, c->K, 0, 0, 0, 0, 0, 0),
        tile_arg_view(parts, TILE_F32, 2, bias_shares(c), c->K, 0, 0, 0, 0, 0, 0)};
    TlLibCall call = own_call(c, TL_LIB_conv2d_bias, c->K, 0, 0);
    tile_status status = tl_lib_launch(k, stream, &call, args, 2);
    return status == TILE_OK
               ? add_parts(k, stream, c, parts, bias_shares(c), c->K, c->bias.address)
               : status;
}

static tile_status run_weights(tile_kernels *k, tile_stream *stream, const TlLibConv *c)
{
    const TlLibWindows *w = &c->w;
    Rooms r = rooms_of_weights(c);
    char *room = w->options.workspace;
    TlLibArray x = c->x, y = c->y;
    bool filters = c->f.address && count_filters(c), bias = c->bias.address && c->K;
    if (!filters && !bias)
        return TILE_OK;
    if (is_missing(c, &r))
        return fail_for_workspace(c);
    tile_status status = turn_images(k, stream, c, &y, c->K, w->P, w->Q, room + r.f + r.x);
    if (status == TILE_OK && filters)
        status = turn_images(k, stream, c, &x, w->C, w->H, w->W, room + r.f);
    if (status == TILE_OK && filters)
        status = derive_filters(k, stream, c, &x, &y, room);
    return status == TILE_OK && bias
               ? derive_bias(k, stream, c, &y, room + r.f + r.x + r.y)
               : status;
}

/* ---- the functions ---- */

static void set_names(TlLibConv *c, const char *x, const char *f, const char *bias)
{
    c->x.name = x;
    c->f.name = f;
    c->bias.name = bias;
    c->y.name = "dY";
}

/* A workspace for arrays that are as they should be; else 0. */
static size_t workspace_of(TlLibConv *c, const tile_window_options *options,
                           Rooms (*rooms)(const TlLibConv *))
{
    tile_status status = tl_lib_take_windows(&c->w, options);
    if (status == TILE_OK)
        status = tl_lib_check_conv(c);
    if (status != TILE_OK)
        return 0;
    tl_lib_set_conv(c, c, c, NULL, c);
    drop_idle_options(&c->w);
    const TlLibArray arrays[] = {c->x, c->f, c->y};
    return tl_lib_check_images(&c->w, arrays, 3) == TILE_OK ? (size_t)rooms(c).all : 0;
}

size_t tile_conv2d_backward_data_workspace(tile_dtype type, int64_t N, int64_t H, int64_t W,
                                           int64_t C, int64_t K, int64_t R, int64_t S,
                                           const tile_window_options *options)
{
    TlLibConv c = {.w = {.function = "tile_conv2d_backward_data_workspace", .type = type, .N = N,
                         .H = H, .W = W, .C = C, .R = R, .S = S},
                   .K = K};
    return workspace_of(&c, options, rooms_of_data);
}

size_t tile_conv2d_backward_weights_workspace(tile_dtype type, int64_t N, int64_t H, int64_t W,
                                              int64_t C, int64_t K, int64_t R, int64_t S,
                                              const tile_window_options *options)
{
    TlLibConv c = {.w = {.function = "tile_conv2d_backward_weights_workspace", .type = type,
                         .N = N, .H = H, .W = W, .C = C, .R = R, .S = S},
                   .K = K};
    return workspace_of(&c, options, rooms_of_weights);
}

tile_status tile_conv2d_backward_data(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                      int64_t N, int64_t H, int64_t W, int64_t C, int64_t K,
                                      int64_t R, int64_t S, const void *dY, const void *F, void *dX,
                                      const tile_window_options *options)
{
    TlLibConv c = {.w = {.function = "tile_conv2d_backward_data", .type = type, .N = N, .H = H,
                         .W = W, .C = C, .R = R, .S = S},
                   .K = K};
    tile_status status = tl_lib_begin_conv(kernels, &c, options);
    if (status != TILE_OK)
        return status;
    tl_lib_set_conv(&c, dX, F, NULL, dY);
    set_names(&c, "dX", "F", "bias");
    drop_idle_options(&c.w);
    const TlLibArray arrays[] = {c.y, c.f, c.x};
    status = tl_lib_check_images(&c.w, arrays, 3);
    for (int i = 0; i < 2 && status == TILE_OK; i++)
        status = check_apart(&c, &c.x, &arrays[i]);
    if (status != TILE_OK || !N || !H || !W || !C)
        return status;
    const tile_window_options *o = &c.w.options;
    if (o->stride[0] * o->stride[1] > INT32_MAX / o->groups)
        return tl_lib_fail(TILE_UNAVAILABLE, "%s: options->stride is %d and %d, but kernels take "
                           "products with the groups to 2147483647 alone", c.w.function,
                           (int)o->stride[0], (int)o->stride[1]);
    return run_data(kernels, stream, &c);
}

tile_status tile_conv2d_backward_weights(tile_kernels *kernels, tile_stream *stream,
                                         tile_dtype type, int64_t N, int64_t H, int64_t W,
                                         int64_t C, int64_t K, int64_t R, int64_t S, const void *X,
                                         const void *dY, void *dF, void *dbias,
                                         const tile_window_options *options)
{
    TlLibConv c = {.w = {.function = "tile_conv2d_backward_weights", .type = type, .N = N, .H = H,
                         .W = W, .C = C, .R = R, .S = S},
                   .K = K};
    tile_status status = tl_lib_begin_conv(kernels, &c, options);
    if (status != TILE_OK)
        return status;
    tl_lib_set_conv(&c, X, dF, dbias, dY);
    set_names(&c, "X", "dF", "dbias");
    drop_idle_options(&c.w);
    const TlLibArray inputs[] = {c.x, c.y}, outputs[] = {c.f, c.bias};
    status = tl_lib_check_images(&c.w, inputs, 2);
    for (int i = 0; i < 2 && status == TILE_OK; i++) {
        if (!outputs[i].address)
            continue;
        status = tl_lib_check_images(&c.w, &outputs[i], 1);
        for (int j = 0; j < 2 && status == TILE_OK; j++)
            status = check_apart(&c, &outputs[i], &inputs[j]);
        if (status == TILE_OK && i)
            status = check_apart(&c, &outputs[1], &outputs[0]);
    }
    return status == TILE_OK ? run_weights(kernels, stream, &c) : status;
}
