/* images.c: what the functions of windows of images share (images.h). */
#include "stdlib/library/images.h"

#include "runtime/contract/grow.h"

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

tile_status tl_lib_take_windows(TlLibWindows *w, const tile_window_options *options)
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
    if (status == TILE_OK && o->layout != TILE_NHWC && o->layout != TILE_NCHW)
        status = tl_lib_wrong(w->function, "options->layout", (int64_t)o->layout, "of tile_layout");
    o->groups = o->groups ? o->groups : 1;
    return status;
}

tile_status tl_lib_begin_windows(const tile_kernels *k, TlLibWindows *w,
                                 const tile_window_options *options)
{
    return k ? tl_lib_take_windows(w, options)
             : tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", w->function);
}

tile_status tl_lib_check_windows(TlLibWindows *w)
{
    const TlLibExtent extents[] = {{"N", w->N}, {"H", w->H}, {"W", w->W},
                                   {"C", w->C}, {"R", w->R}, {"S", w->S}};
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

tile_status tl_lib_check_images(const TlLibWindows *w, const TlLibArray *arrays, int n)
{
    tile_status status = tl_lib_check_arrays(w->function, arrays, n);
    for (int i = 0; i < n && status == TILE_OK; i++)
        if (tl_lib_span(arrays[i].extents, arrays[i].strides, arrays[i].rank, TILE_I8) > INT32_MAX)
            status = tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s has more than 2147483647 elements",
                                 w->function, arrays[i].name);
    return status;
}

int tl_lib_put_window(tile_arg *args, const TlLibWindows *w)
{
    const tile_window_options *o = &w->options;
    for (int i = 0; i < 2; i++) {
        args[i] = tile_i32((int32_t)o->stride[i]);
        args[2 + i] = tile_i32((int32_t)o->pad[i]);
        args[4 + i] = tile_i32((int32_t)o->dilation[i]);
    }
    return 6;
}

bool tl_lib_is_depthwise(const TlLibConv *c)
{
    return c->w.options.groups == c->w.C && c->K == c->w.C;
}

bool tl_lib_is_pointwise(const TlLibConv *c)
{
    const tile_window_options *o = &c->w.options;
    return o->groups == 1 && c->w.R == 1 && c->w.S == 1 &&
           o->stride[0] == 1 && o->stride[1] == 1 && !o->pad[0] && !o->pad[1];
}

bool tl_lib_is_of_points(const TlLibConv *c)
{
    return c->w.options.layout == TILE_NCHW && tl_lib_is_pointwise(c);
}

int64_t tl_lib_room(tile_dtype type, int64_t elements)
{
    return (elements * tile_dtype_bits(type) / 8 + 63) / 64 * 64;
}

tile_status tl_lib_check_conv(TlLibConv *c)
{
    tile_status status = tl_lib_check_windows(&c->w);
    if (status == TILE_OK)
        status = tl_lib_check_extent(c->w.function, "K", c->K);
    int64_t groups = c->w.options.groups;
    if (status == TILE_OK && (groups < 1 || c->w.C % groups || c->K % groups))
        status = tl_lib_wrong(c->w.function, "options->groups", groups, "a divisor of C and K");
    c->CG = status == TILE_OK ? c->w.C / groups : 0;
    return status;
}

tile_status tl_lib_begin_conv(const tile_kernels *k, TlLibConv *c,
                              const tile_window_options *options)
{
    tile_status status = tl_lib_begin_windows(k, &c->w, options);
    return status == TILE_OK ? tl_lib_check_conv(c) : status;
}

TlLibCall tl_lib_image_call(const TlLibConv *c, TlLibKernel kernel, int form, int64_t a, int64_t b,
                            int64_t d)
{
    return (TlLibCall){.function = c->w.function, .images = tl_lib_windows_images,
                       .kernel = kernel, .type = c->w.type, .form = form, .sizes = {a, b, d}};
}

void tl_lib_set_conv(TlLibConv *c, const void *X, const void *F, const void *bias, const void *Y)
{
    const TlLibWindows *w = &c->w;
    bool outer = w->options.layout == TILE_NCHW;
    const int64_t x[] = {w->N, w->H, w->W, w->C}, x_outer[] = {w->N, w->C, w->H, w->W},
                  f[] = {w->R, w->S, c->CG, c->K}, f_outer[] = {c->K, c->CG, w->R, w->S},
                  y[] = {w->N, w->P, w->Q, c->K}, y_outer[] = {w->N, c->K, w->P, w->Q};
    c->x = tl_lib_dense("X", X, w->type, 4, outer ? x_outer : x);
    c->f = tl_lib_dense("F", F, w->type, 4, outer ? f_outer : f);
    c->bias = tl_lib_dense("bias", bias, w->type, 1, (int64_t[]){bias ? c->K : 0});
    c->y = tl_lib_dense("Y", Y, w->type, 4, outer ? y_outer : y);
}

tile_status tl_lib_turn(tile_kernels *k, tile_stream *stream, const TlLibConv *c, const void *from,
                        const void *to, int64_t B, int64_t m, int64_t n)
{
    if (!B || !m || !n)
        return TILE_OK;
    const tile_arg args[] = {tile_arg_view(from, c->w.type, 3, B, m, n, 0, 0, 0, 0, 0),
                             tile_arg_view(to, c->w.type, 3, B, n, m, 0, 0, 0, 0, 0)};
    TlLibCall call = tl_lib_image_call(c, TL_LIB_turn_images, 0, m, n, 0);
    return tl_lib_launch(k, stream, &call, args, 2);
}

bool tl_lib_lies_either_way(int64_t m, int64_t n)
{
    return m == 1 || n == 1;
}
