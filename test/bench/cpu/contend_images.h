/* Works of images [n, h, h, channels], channels innermost, that are kernels of the library, in f32:
 * part of contend_tile.c. Filters are 3 x 3 with a border of one, and a stride. */

/* Of the stride `step`: strides, borders, dilations. */
#define WINDOW(step)                                                                               \
    tile_i32((int32_t)(step)), tile_i32((int32_t)(step)), tile_i32(1), tile_i32(1), tile_i32(1),   \
        tile_i32(1)
#define FEW(channels) {(channels) > 4 ? NULL : "BC", 4, NULL}

static int64_t smaller(int64_t h, int64_t step)
{
    return (h - 1) / step + 1;
}

static tile_arg image(float *at, int64_t n, int64_t h, int64_t channels)
{
    return tile_view(at, n, h, h, channels);
}

/* ---- convolutions: n, h, channels in, channels out, stride ---- */

static bool prepare_conv2d(void)
{
    int64_t n = arg[0], h = arg[1], i = arg[2], o = arg[3], step = arg[4], p = smaller(h, step);
    float *x = floats(0, (size_t)(n * h * h * i), -1, 1);
    float *f = floats(1, (size_t)(9 * i * o), -1, 1);
    nlaunches = 0;
    return ADD("conv", "conv2d", CONSTS(F32, FEW(i)), image(x, n, h, i), tile_view(f, 3, 3, i, o),
               NO_VECTOR, image(result((size_t)(n * p * p * o)), n, p, o), WINDOW(step));
}
static bool prepare_conv2d_backward_data(void)
{
    int64_t n = arg[0], h = arg[1], i = arg[2], o = arg[3], step = arg[4], p = smaller(h, step);
    float *up = floats(0, (size_t)(n * p * p * o), -1, 1);
    float *f = floats(1, (size_t)(9 * i * o), -1, 1);
    nlaunches = 0;
    return ADD("conv", "conv2d_backward_data", CONSTS(F32), image(up, n, p, o),
               tile_view(f, 3, 3, i, o), image(result((size_t)(n * h * h * i)), n, h, i),
               WINDOW(step));
}
static bool prepare_conv2d_backward_weight(void)
{
    enum { BLOCK = 64 };
    int64_t n = arg[0], h = arg[1], i = arg[2], o = arg[3], step = arg[4], p = smaller(h, step);
    int64_t a = (i + BLOCK - 1) / BLOCK, b = (o + BLOCK - 1) / BLOCK;
    float *x = floats(0, (size_t)(n * h * h * i), -1, 1);
    float *up = floats(1, (size_t)(n * p * p * o), -1, 1);
    tile_arg parts = tile_view(spare(0, 9 * i * o), 1, 3, 3, i, o);
    tile_arg arrived = tile_view((uint32_t *)spare(1, 9 * a * b), 9, a, b);
    nlaunches = 0;
    return ADD("conv", "conv2d_backward_weight",
               CONSTS(F32, {"BM", BLOCK, NULL}, {"BN", BLOCK, NULL}), image(x, n, h, i),
               image(up, n, p, o), tile_view(result((size_t)(9 * i * o)), 3, 3, i, o), parts,
               arrived, WINDOW(step));
}
/* The image becomes `step` times as wide. */
static bool prepare_conv2d_transpose(void)
{
    int64_t n = arg[0], p = arg[1], i = arg[2], o = arg[3], step = arg[4], h = p * step;
    float *x = floats(0, (size_t)(n * p * p * i), -1, 1);
    float *f = floats(1, (size_t)(9 * i * o), -1, 1);
    nlaunches = 0;
    return ADD("conv", "conv2d_transpose", CONSTS(F32), image(x, n, p, i),
               tile_view(f, 3, 3, o, i), NO_VECTOR, image(result((size_t)(n * h * h * o)), n, h, o),
               WINDOW(step));
}

/* ---- by channels: n, h, channels, stride ---- */

static bool prepare_depthwise_conv2d(void)
{
    int64_t n = arg[0], h = arg[1], c = arg[2], step = arg[3], p = smaller(h, step);
    float *x = floats(0, (size_t)(n * h * h * c), -1, 1);
    float *f = floats(1, (size_t)(9 * c), -1, 1);
    nlaunches = 0;
    return ADD("conv", "depthwise_conv2d", CONSTS(F32), image(x, n, h, c), tile_view(f, 3, 3, c),
               NO_VECTOR, image(result((size_t)(n * p * p * c)), n, p, c), WINDOW(step));
}
static bool prepare_max_pool(void)
{
    int64_t n = arg[0], h = arg[1], c = arg[2], step = arg[3], p = smaller(h, step);
    float *x = floats(0, (size_t)(n * h * h * c), -1, 1);
    int32_t *index = (int32_t *)spare(0, n * p * p * c);
    nlaunches = 0;
    return ADD("pooling", "max_pool2d", CONSTS(F32), image(x, n, h, c),
               image(result((size_t)(n * p * p * c)), n, p, c), tile_view(index, n, p, p, c),
               tile_i32(3), tile_i32(3), WINDOW(step));
}
static bool prepare_avg_pool(void)
{
    int64_t n = arg[0], h = arg[1], c = arg[2], step = arg[3], p = smaller(h, step);
    float *x = floats(0, (size_t)(n * h * h * c), -1, 1);
    nlaunches = 0;
    return ADD("pooling", "avg_pool2d", CONSTS(F32), image(x, n, h, c),
               image(result((size_t)(n * p * p * c)), n, p, c), tile_i32(3), tile_i32(3),
               WINDOW(step));
}

/* ---- group norm: n images of l pixels, c channels in g groups ---- */

static bool prepare_group_norm(void)
{
    int64_t n = arg[0], l = arg[1], c = arg[2], g = arg[3];
    float *x = floats(0, (size_t)(n * l * c), -4, 4), *w = floats(1, (size_t)c, 0.5f, 1.5f);
    float *b = floats(2, (size_t)c, -1, 1);
    nlaunches = 0;
    return ADD("image_norms", "group_norm", CONSTS(F32), tile_view(x, n, l, c), tile_view(w, c),
               tile_view(b, c), tile_view(result((size_t)(n * l * c)), n, l, c),
               tile_view(spare(0, n * g), n, g), tile_view(spare(1, n * g), n, g),
               tile_f32(1e-5f));
}

/* ---- batch norm of m pixels of c channels, as in training ---- */

enum { PARTS = 16, CHANNELS = 64 }; /* of a program */

static bool prepare_batch_norm(void)
{
    int64_t m = arg[0], c = arg[1];
    tile_arg x = tile_view(floats(0, (size_t)(m * c), -4, 4), m, c),
             w = tile_view(floats(1, (size_t)c, 0.5f, 1.5f), c),
             b = tile_view(floats(2, (size_t)c, -1, 1), c);
    tile_arg mean = tile_view(spare(0, c), c), rstd = tile_view(spare(1, c), c);
    tile_arg parts = tile_view(spare(2, PARTS * 2 * c), PARTS, 2, c),
             arrived = tile_view((uint32_t *)spare(3, c), (c + CHANNELS - 1) / CHANNELS);
    nlaunches = 0;
    return ADD("image_norms", "batch_norm_statistics", CONSTS(F32), x, parts, arrived, mean, rstd,
               tile_view(spare(4, c), c), tile_view(spare(5, c), c), tile_f32(1e-5f),
               tile_f32(0.1f)) &&
           ADD("image_norms", "batch_norm", CONSTS(F32), x, mean, rstd, w, b, NO_MATRIX,
               tile_view(result((size_t)(m * c)), m, c), tile_f32(1e-5f));
}
/* The result is dx. */
static bool prepare_batch_norm_backward(void)
{
    int64_t m = arg[0], c = arg[1];
    if (!prepare_batch_norm())
        return false;
    run_library();
    tile_arg *of = launches[0].args, x = of[0], parts = of[1], arrived = of[2], mean = of[3],
             rstd = of[4], w = launches[1].args[3];
    tile_arg up = tile_view(floats(3, (size_t)(m * c), -1, 1), m, c),
             dx = tile_view(result((size_t)(m * c)), m, c), dw = tile_view(spare(6, c), c),
             db = tile_view(spare(7, c), c);
    nlaunches = 0;
    return ADD("image_norms", "batch_norm_backward_sums", CONSTS(F32), up, x, mean, rstd, parts,
               arrived, dw, db) &&
           ADD("image_norms", "batch_norm_backward", CONSTS(F32), up, x, mean, rstd, w, dw, db, dx);
}
