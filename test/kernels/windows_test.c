/* tile_conv2d, pooling and their gradients: values against plain loops in both layouts, groups, a
 * workspace of exactly the size that the query says, and every argument that is wrong.
 *
 *     windows_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

typedef struct Case {
    int64_t N, H, W, C, K, R, S;
    int64_t stride[2], pad[2], dilation[2];
    int64_t groups;
    bool bias, count_pad;
    tile_layout layout;
    int64_t P, Q;
} Case;

static const Case cases[] = {
    {1, 5, 6, 3, 2, 3, 2, {1, 1}, {0, 0}, {1, 1}, 1, .bias = true},
    {2, 7, 5, 20, 17, 3, 3, {2, 1}, {1, 2}, {1, 2}, 0, .count_pad = true},
    {2, 5, 4, 6, 9, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3, .bias = true},  /* groups */
    {2, 9, 8, 5, 5, 3, 3, {1, 2}, {1, 1}, {1, 1}, 5, .bias = false}, /* depthwise */
    {1, 3, 3, 70, 65, 1, 1, {1, 2}, {0, 0}, {1, 1}, 1, .bias = true},
    {1, 1, 1, 33, 66, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, .bias = false}, /* nothing to turn */
    {2, 40, 70, 3, 3, 5, 3, {1, 1}, {2, 1}, {1, 1}, 3, .bias = true},  /* more than a tile */
    {1, 6, 6, 2, 8, 3, 3, {1, 1}, {1, 1}, {2, 2}, 2, .bias = true},    /* several of a channel */
    {1, 30, 31, 1, 1, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1, .bias = false},
    {2, 12, 11, 130, 72, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2, .bias = true},
    /* three and four channels, row by row: of each number of outputs, each stride */
    {2, 7, 70, 3, 20, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, .bias = true},
    {1, 12, 143, 3, 66, 5, 3, {2, 2}, {2, 1}, {1, 1}, 1, .bias = false},
    {1, 10, 45, 3, 97, 4, 4, {4, 4}, {1, 0}, {1, 1}, 1, .bias = true},
    {2, 9, 30, 4, 5, 3, 3, {4, 4}, {1, 1}, {2, 1}, 1, .bias = true},
    {1, 6, 31, 3, 9, 3, 3, {3, 3}, {1, 1}, {1, 1}, 1, .bias = true},   /* a stride of no kernel */
    {2, 5, 4, 7, 40, 3, 2, {1, 1}, {1, 1}, {1, 2}, 1, .bias = true},   /* outputs as filters */
    {1, 12, 8, 3, 30, 4, 4, {4, 4}, {0, 0}, {1, 1}, 1, .bias = false}, /* patches */
    {1, 9, 12, 40, 30, 1, 1, {2, 2}, {0, 0}, {1, 1}, 1, .bias = true}, /* every other pixel */
    /* groups of 1, 2, 4 and 8 channels, as many filters and others; rows of pixels, wide and not */
    {1, 5, 19, 16, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 16, .bias = true},
    {2, 4, 7, 5, 20, 3, 2, {2, 1}, {1, 0}, {1, 1}, 5, .bias = false},
    {1, 6, 21, 26, 26, 3, 3, {1, 1}, {1, 1}, {1, 1}, 13, .bias = true},
    {1, 5, 22, 36, 36, 3, 3, {2, 2}, {2, 1}, {1, 2}, 9, .bias = true},
    {2, 4, 13, 24, 24, 2, 3, {1, 1}, {1, 1}, {1, 1}, 3, .bias = false},
    {1, 5, 9, 12, 54, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3, .bias = true},
    /* few channels, few outputs */
    {1, 9, 18, 1, 33, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, .bias = true},
    {1, 7, 23, 20, 7, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, .bias = true},
    {1, 6, 26, 64, 40, 3, 3, {1, 2}, {1, 1}, {1, 1}, 1, .bias = true},
};
enum { CASES = sizeof cases / sizeof *cases };

static tile_window_options options_of(const Case *c, void *room)
{
    tile_window_options o = TILE_WINDOW_OPTIONS_INIT;
    for (int i = 0; i < 2; i++) {
        o.stride[i] = c->stride[i];
        o.pad[i] = c->pad[i];
        o.dilation[i] = c->dilation[i];
    }
    o.count_pad = c->count_pad;
    o.layout = c->layout;
    o.groups = c->groups;
    o.workspace = room;
    return o;
}

/* The pixel of window (p, q) and tap (r, s), or -1 outside. */
static int64_t pixel_of(const Case *c, int64_t p, int64_t q, int64_t r, int64_t s)
{
    int64_t h = p * c->stride[0] - c->pad[0] + r * c->dilation[0];
    int64_t w = q * c->stride[1] - c->pad[1] + s * c->dilation[1];
    return h < 0 || w < 0 || h >= c->H || w >= c->W ? -1 : h * c->W + w;
}

/* Where channel ch of `pixel` of image n of `pixels` pixels and C channels is. */
static int64_t place_of(const Case *c, int64_t n, int64_t pixel, int64_t ch, int64_t pixels,
                        int64_t C)
{
    return c->layout == TILE_NCHW ? (n * C + ch) * pixels + pixel : (n * pixels + pixel) * C + ch;
}

static double filter_of(const Case *c, const void *f, tile_dtype type, int64_t tap, int64_t ch,
                        int64_t k)
{
    int64_t CG = c->C / (c->groups ? c->groups : 1), taps = c->R * c->S;
    return get(f, type, c->layout == TILE_NCHW ? (k * CG + ch) * taps + tap
                                               : (tap * CG + ch) * c->K + k);
}

static double output_of(const Case *c, tile_dtype type, const void *x, const void *f, int64_t n,
                        int64_t at, int64_t k)
{
    int64_t groups = c->groups ? c->groups : 1, CG = c->C / groups, g = k / (c->K / groups);
    double sum = 0;
    for (int64_t t = 0; t < c->R * c->S; t++) {
        int64_t from = pixel_of(c, at / c->Q, at % c->Q, t / c->S, t % c->S);
        for (int64_t i = 0; i < CG && from >= 0; i++)
            sum += get(x, type, place_of(c, n, from, g * CG + i, c->H * c->W, c->C)) *
                   filter_of(c, f, type, t, i, k);
    }
    return sum;
}

static void name_case(const Case *c, tile_dtype type)
{
    fprintf(stderr, "    %s %d x %d x %d x %d to %d, layout %d, groups %d\n",
            tile_dtype_name(type), (int)c->N, (int)c->H, (int)c->W, (int)c->C, (int)c->K,
            (int)c->layout, (int)c->groups);
}

static void convolution_of(tile_dtype type, const Case *c)
{
    int64_t outputs = c->P * c->Q, wrong = 0;
    int64_t CG = c->C / (c->groups ? c->groups : 1);
    void *x = numbers(type, c->N * c->H * c->W * c->C);
    void *f = numbers(type, c->R * c->S * CG * c->K), *b = numbers(type, c->K);
    void *y = numbers(type, c->N * outputs * c->K);
    tile_window_options o = options_of(c, NULL);
    size_t size = tile_conv2d_workspace(type, c->N, c->H, c->W, c->C, c->K, c->R, c->S, &o);
    void *room = size ? aligned_alloc(64, size) : NULL;
    o.workspace = room;
    OK(tile_conv2d(library, NULL, type, c->N, c->H, c->W, c->C, c->K, c->R, c->S, x, f,
                   c->bias ? b : NULL, y, &o));
    for (int64_t i = 0; i < c->N * outputs * c->K; i++) {
        int64_t k = i % c->K, at = i / c->K % outputs, n = i / c->K / outputs;
        double want = output_of(c, type, x, f, n, at, k) + (c->bias ? get(b, type, k) : 0);
        wrong += !is_near(type, get(y, type, place_of(c, n, at, k, outputs, c->K)), want, 2e-3);
    }
    if (!CHECK_INT(wrong, 0))
        name_case(c, type);
    void *all[] = {x, f, b, y, room};
    for (int i = 0; i < 5; i++)
        free(all[i]);
}

static int64_t count_wrong_pools(tile_dtype type, const Case *c, const void *x, const void *most,
                                 const void *mean, const int32_t *places)
{
    int64_t outputs = c->P * c->Q, wrong = 0;
    for (int64_t i = 0; i < c->N * outputs * c->C; i++) {
        int64_t ch = i % c->C, at = i / c->C % outputs, n = i / c->C / outputs;
        int64_t place = -1, count = 0, to = place_of(c, n, at, ch, outputs, c->C);
        double best = -INFINITY, sum = 0;
        for (int64_t t = 0; t < c->R * c->S; t++) {
            int64_t from = pixel_of(c, at / c->Q, at % c->Q, t / c->S, t % c->S);
            double v = from < 0 ? 0 : get(x, type, place_of(c, n, from, ch, c->H * c->W, c->C));
            count += from >= 0;
            sum += v;
            if (from >= 0 && v > best) {
                best = v;
                place = from;
            }
        }
        count = c->count_pad ? c->R * c->S : count;
        wrong += get(most, type, to) != best || places[to] != place;
        wrong += !is_near(type, get(mean, type, to), count ? sum / (double)count : 0, 1e-5);
    }
    return wrong;
}

static void pools_of(tile_dtype type, const Case *c)
{
    int64_t n = c->N * c->P * c->Q * c->C;
    void *x = numbers(type, c->N * c->H * c->W * c->C), *most = numbers(type, n);
    void *mean = numbers(type, n);
    int32_t *places = malloc((size_t)n * 4 + 8);
    tile_window_options o = options_of(c, NULL);
    o.groups = 0;
    OK(tile_max_pool2d(library, NULL, type, c->N, c->H, c->W, c->C, c->R, c->S, x, most, places,
                       &o));
    OK(tile_avg_pool2d(library, NULL, type, c->N, c->H, c->W, c->C, c->R, c->S, x, mean, &o));
    if (!CHECK_INT(count_wrong_pools(type, c, x, most, mean, places), 0))
        name_case(c, type);
    void *all[] = {x, most, mean, places};
    for (int i = 0; i < 4; i++)
        free(all[i]);
}

/* What the pools' gradients of dy are at a pixel, and their sum of absolute values. */
typedef struct Slopes {
    double most, mean, size;
} Slopes;

static Slopes slopes_of(const Case *c, tile_dtype type, const void *dy, const int32_t *places,
                        int64_t n, int64_t pixel, int64_t ch)
{
    int64_t outputs = c->P * c->Q;
    Slopes s = {0, 0, 0};
    for (int64_t at = 0; at < outputs; at++) {
        int64_t from = place_of(c, n, at, ch, outputs, c->C), count = 0, mine = 0;
        double v = get(dy, type, from);
        for (int64_t t = 0; t < c->R * c->S; t++) {
            int64_t read = pixel_of(c, at / c->Q, at % c->Q, t / c->S, t % c->S);
            count += c->count_pad || read >= 0;
            mine += read == pixel;
        }
        s.most += places[from] == pixel ? v : 0;
        s.mean += mine ? v * (double)mine / (double)count : 0;
        s.size += mine ? fabs(v) : 0;
    }
    return s;
}

static void gradients_of(tile_dtype type, const Case *c)
{
    int64_t n = c->N * c->P * c->Q * c->C, pixels = c->H * c->W, all = c->N * pixels * c->C;
    void *x = numbers(type, all), *y = numbers(type, n), *dy = numbers(type, n);
    void *most = numbers(type, all), *mean = numbers(type, all);
    int32_t *places = malloc((size_t)n * 4 + 8);
    int64_t wrong = 0;
    tile_window_options o = options_of(c, NULL);
    o.groups = 0;
    OK(tile_max_pool2d(library, NULL, type, c->N, c->H, c->W, c->C, c->R, c->S, x, y, places, &o));
    OK(tile_max_pool2d_backward(library, NULL, type, c->N, c->H, c->W, c->C, c->R, c->S, dy, places,
                                most, &o));
    OK(tile_avg_pool2d_backward(library, NULL, type, c->N, c->H, c->W, c->C, c->R, c->S, dy, mean,
                                &o));
    OK(tile_stream_synchronize(NULL));
    for (int64_t i = 0; i < all; i++) {
        int64_t ch = i % c->C, pixel = i / c->C % pixels, image = i / c->C / pixels;
        int64_t at = place_of(c, image, pixel, ch, pixels, c->C);
        Slopes s = slopes_of(c, type, dy, places, image, pixel, ch);
        wrong += !is_near(type, get(most, type, at), s.most, 1e-6 * s.size);
        wrong += !is_near(type, get(mean, type, at), s.mean, 1e-6 * s.size);
    }
    if (!CHECK_INT(wrong, 0))
        name_case(c, type);
    void *arrays[] = {x, y, dy, most, mean, places};
    for (int i = 0; i < 6; i++)
        free(arrays[i]);
}

/* ---- gradients of convolutions ---- */

/* The arrays of a case, as the caller has them, and their sums by plain loops. */
typedef struct Slope {
    void *x, *f, *dy, *dx, *df, *db;
    double *want_x, *want_f, *want_b;
    int64_t pixels, filters, outputs;
} Slope;

/* One product of the convolution: a pixel, a filter and an output of these numbers. */
static void add_product(const Slope *s, tile_dtype type, int64_t x, int64_t f, int64_t y)
{
    s->want_x[x] += get(s->dy, type, y) * get(s->f, type, f);
    s->want_f[f] += get(s->dy, type, y) * get(s->x, type, x);
}

static int64_t filter_place(const Case *c, int64_t tap, int64_t ch, int64_t k)
{
    int64_t CG = c->C / (c->groups ? c->groups : 1), taps = c->R * c->S;
    return c->layout == TILE_NCHW ? (k * CG + ch) * taps + tap : (tap * CG + ch) * c->K + k;
}

static void add_output(const Slope *s, const Case *c, tile_dtype type, int64_t n, int64_t at,
                       int64_t k)
{
    int64_t groups = c->groups ? c->groups : 1, CG = c->C / groups, g = k / (c->K / groups);
    int64_t y = place_of(c, n, at, k, c->P * c->Q, c->K);
    s->want_b[k] += get(s->dy, type, y);
    for (int64_t t = 0; t < c->R * c->S; t++) {
        int64_t from = pixel_of(c, at / c->Q, at % c->Q, t / c->S, t % c->S);
        for (int64_t i = 0; i < CG && from >= 0; i++)
            add_product(s, type, place_of(c, n, from, g * CG + i, c->H * c->W, c->C),
                        filter_place(c, t, i, k), y);
    }
}

static Slope make_slope(tile_dtype type, const Case *c)
{
    int64_t CG = c->C / (c->groups ? c->groups : 1);
    Slope s = {.pixels = c->N * c->H * c->W * c->C, .filters = c->R * c->S * CG * c->K,
               .outputs = c->N * c->P * c->Q * c->K};
    s.x = numbers(type, s.pixels);
    s.f = numbers(type, s.filters);
    s.dy = numbers(type, s.outputs);
    s.dx = numbers(type, s.pixels);
    s.df = numbers(type, s.filters);
    s.db = numbers(type, c->K);
    s.want_x = calloc((size_t)s.pixels + 1, sizeof(double));
    s.want_f = calloc((size_t)s.filters + 1, sizeof(double));
    s.want_b = calloc((size_t)c->K + 1, sizeof(double));
    for (int64_t i = 0; i < s.outputs; i++)
        add_output(&s, c, type, i / c->K / (c->P * c->Q), i / c->K % (c->P * c->Q), i % c->K);
    return s;
}

static int64_t count_far(tile_dtype type, const void *got, const double *want, int64_t n)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++)
        wrong += !is_near(type, get(got, type, i), want[i], 2e-3);
    return wrong;
}

static void convolution_gradients_of(tile_dtype type, const Case *c)
{
    Slope s = make_slope(type, c);
    tile_window_options o = options_of(c, NULL);
    size_t data = tile_conv2d_backward_data_workspace(type, c->N, c->H, c->W, c->C, c->K, c->R,
                                                      c->S, &o);
    size_t weights = tile_conv2d_backward_weights_workspace(type, c->N, c->H, c->W, c->C, c->K,
                                                            c->R, c->S, &o);
    void *rooms[] = {data ? aligned_alloc(64, data) : NULL,
                     weights ? aligned_alloc(64, weights) : NULL};
    o.workspace = rooms[0];
    OK(tile_conv2d_backward_data(library, NULL, type, c->N, c->H, c->W, c->C, c->K, c->R, c->S,
                                 s.dy, s.f, s.dx, &o));
    o.workspace = rooms[1];
    OK(tile_conv2d_backward_weights(library, NULL, type, c->N, c->H, c->W, c->C, c->K, c->R, c->S,
                                    s.x, s.dy, s.df, c->bias ? s.db : NULL, &o));
    OK(tile_stream_synchronize(NULL));
    bool good = CHECK_INT(count_far(type, s.dx, s.want_x, s.pixels), 0);
    good &= CHECK_INT(count_far(type, s.df, s.want_f, s.filters), 0);
    good &= !c->bias || CHECK_INT(count_far(type, s.db, s.want_b, c->K), 0);
    if (!good)
        name_case(c, type);
    void *all[] = {s.x, s.f, s.dy, s.dx, s.df, s.db, s.want_x, s.want_f, s.want_b, rooms[0],
                   rooms[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Cases of which the sums are long, so that they are parted, and those without outputs. */
static const Case long_cases[] = {
    {3, 60, 50, 4, 5, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, .bias = true},
    {2, 70, 40, 6, 6, 3, 3, {1, 1}, {1, 1}, {1, 1}, 6, .bias = true},
    {2, 3, 2, 4, 6, 5, 1, {3, 2}, {0, 0}, {1, 1}, 2, .bias = true}, /* no window fits */
    {2, 3, 2, 4, 0, 2, 1, {1, 1}, {0, 0}, {1, 1}, 1, .bias = true}, /* no output */
    {2, 3, 2, 0, 4, 2, 2, {1, 1}, {0, 0}, {1, 1}, 1, .bias = true}, /* no channel */
    {0, 3, 2, 3, 4, 2, 2, {1, 1}, {0, 0}, {1, 1}, 1, .bias = true}, /* no image */
    {1, 9, 7, 3, 2, 2, 3, {5, 3}, {4, 0}, {3, 2}, 1, .bias = true}, /* pixels that none reads */
    {1, 4, 4, 3, 2, 2, 1, {9, 1 << 20}, {1, 0}, {1, 1 << 20}, 1, .bias = true},
};
enum { LONG_CASES = sizeof long_cases / sizeof *long_cases };

static Case with_outputs(Case c, int layout)
{
    int64_t P = c.H + 2 * c.pad[0] - c.dilation[0] * (c.R - 1) - 1,
            Q = c.W + 2 * c.pad[1] - c.dilation[1] * (c.S - 1) - 1;
    c.layout = (tile_layout)layout;
    c.P = P < 0 ? 0 : P / c.stride[0] + 1;
    c.Q = Q < 0 ? 0 : Q / c.stride[1] + 1;
    return c;
}

static void each_type(tile_dtype type, tile_dtype result)
{
    (void)result;
    if (!is_float_below_64(type))
        return;
    for (int i = 0; i < (brief ? 6 : CASES); i++)
        for (int layout = 0; layout < 2; layout++) {
            Case c = with_outputs(cases[i], layout);
            convolution_of(type, &c);
            pools_of(type, &c);
            gradients_of(type, &c);
            convolution_gradients_of(type, &c);
        }
    for (int i = brief ? 2 : 0; i < LONG_CASES; i++)
        for (int layout = 0; layout < 2; layout++) {
            Case c = with_outputs(long_cases[i], layout);
            convolution_gradients_of(type, &c);
        }
}

/* ---- wrong arguments ---- */

static _Alignas(64) float cells[9000];

typedef struct Call {
    tile_kernels *kernels;
    int type;
    int64_t H, C, K, R;
    const float *x, *f;
    float *y;
    tile_window_options o;
} Call;

static tile_status conv_call(const Call *c)
{
    return tile_conv2d(c->kernels, NULL, (tile_dtype)c->type, 1, c->H, 4, c->C, c->K, c->R, 3, c->x,
                       c->f, NULL, c->y, &c->o);
}

#define CALL                                                                                       \
    {                                                                                              \
        library, TILE_F32, 4, 2, 2, 3, cells, cells + 1000, cells + 2000, TILE_WINDOW_OPTIONS_INIT \
    }
#define WRONG_CALL(change, text)                                                                   \
    WRONG_BUT(change, conv_call(&c), text, Call c = CALL)

static void wrong_convolutions(void)
{
    WRONG_CALL(c.kernels = NULL, "tile_conv2d: kernels is NULL");
    WRONG_CALL(c.type = TILE_F64, "tile_conv2d: type is f64");
    WRONG_CALL(c.H = -4, "H is -4");
    WRONG_CALL(c.K = -1, "K is -1");
    WRONG_CALL(c.R = 0, "R is 0, but must be from 1 to 2^20");
    WRONG_CALL(c.o.stride[0] = -1, "options->stride is -1");
    WRONG_CALL(c.o.pad[0] = -1, "options->pad is -1");
    WRONG_CALL(c.o.dilation[1] = -3, "options->dilation is -3");
    WRONG_CALL(c.o.layout = (tile_layout)2, "options->layout is 2, but must be of tile_layout");
    WRONG_CALL(c.o.groups = 3, "options->groups is 3, but must be a divisor of C and K");
    WRONG_CALL(c.o.groups = -2, "options->groups is -2");
    WRONG_CALL((c.o.groups = 2, c.K = 3), "options->groups is 2");
    WRONG_CALL(c.o.layout = TILE_NCHW, "options->workspace is NULL");
    WRONG_CALL(c.x = NULL, "X is NULL");
    WRONG_CALL(c.f = NULL, "F is NULL");
    WRONG_CALL(c.y = NULL, "Y is NULL");
    WRONG_CALL(c.y = cells, "overlap");
    WRONG_CALL(c.H = INT32_MAX, "X has more than 2147483647 elements");
    WRONG_CALL(c.o.struct_size = 5, "struct_size of tile_window_options is 5");
    Call none = CALL;
    none.H = 2;
    none.y = NULL;
    OK(conv_call(&none)); /* no window fits */
}

static tile_status data_call(const Call *c)
{
    return tile_conv2d_backward_data(c->kernels, NULL, (tile_dtype)c->type, 1, c->H, 4, c->C, c->K,
                                     c->R, 3, c->y, c->f, (void *)(uintptr_t)c->x, &c->o);
}

static tile_status weights_call(const Call *c)
{
    return tile_conv2d_backward_weights(c->kernels, NULL, (tile_dtype)c->type, 1, c->H, 4, c->C,
                                        c->K, c->R, 3, c->x, c->y, (void *)(uintptr_t)c->f, NULL,
                                        &c->o);
}

#define ROOM CALL; c.o.workspace = cells + 4000
#define WRONG_DATA(change, text) WRONG_BUT(change, data_call(&c), text, Call c = ROOM)
#define WRONG_WEIGHTS(change, text) WRONG_BUT(change, weights_call(&c), text, Call c = ROOM)

static void wrong_gradients(void)
{
    WRONG_DATA(c.kernels = NULL, "tile_conv2d_backward_data: kernels is NULL");
    WRONG_DATA(c.type = TILE_F64, "type is f64");
    WRONG_DATA(c.C = -4, "C is -4");
    WRONG_DATA(c.o.groups = 3, "options->groups is 3, but must be a divisor of C and K");
    WRONG_DATA(c.o.workspace = NULL, "tile_conv2d_backward_data: options->workspace is NULL");
    WRONG_DATA(c.y = NULL, "dY is NULL");
    WRONG_DATA(c.f = NULL, "F is NULL");
    WRONG_DATA(c.x = NULL, "dX is NULL");
    WRONG_DATA(c.x = c.f + 1, "dX overlaps F");
    WRONG_DATA(c.x = c.y + 1, "dX overlaps dY");
    WRONG_DATA(c.H = INT32_MAX, "more than 2147483647 elements");
    WRONG_DATA(c.o.struct_size = 5, "struct_size of tile_window_options is 5");
    WRONG_WEIGHTS(c.kernels = NULL, "tile_conv2d_backward_weights: kernels is NULL");
    WRONG_WEIGHTS(c.type = TILE_I8, "type is i8");
    WRONG_WEIGHTS(c.R = 0, "R is 0");
    WRONG_WEIGHTS(c.o.pad[1] = -1, "options->pad is -1");
    WRONG_WEIGHTS(c.o.workspace = NULL, "tile_conv2d_backward_weights: options->workspace is NULL");
    WRONG_WEIGHTS(c.x = NULL, "X is NULL");
    WRONG_WEIGHTS(c.y = NULL, "dY is NULL");
    WRONG_WEIGHTS(c.f = c.x + 1, "dF overlaps X");
    WRONG_WEIGHTS(c.f = c.y, "dF overlaps dY");
    WRONG_WEIGHTS(c.o.layout = (tile_layout)7, "options->layout is 7");
    WRONG(tile_conv2d_backward_weights(library, NULL, TILE_F32, 1, 4, 4, 2, 2, 3, 3, cells,
                                       cells + 1000, cells + 2000, cells + 2008, NULL),
          "dbias overlaps dF");
    Call none = CALL;
    none.f = none.y = NULL;
    none.H = 2;
    OK(weights_call(&none)); /* nothing is wanted */
    WRONG(data_call(&none), "F is NULL");
    tile_window_options o = TILE_WINDOW_OPTIONS_INIT;
    o.stride[0] = o.stride[1] = 1 << 18;
    o.pad[0] = o.pad[1] = 1 << 18;
    o.workspace = cells;
    CHECK_INT(tile_conv2d_backward_data(library, NULL, TILE_F32, 1, 1, 1, 1, 1, 1, 1, cells + 1000,
                                        cells + 2000, cells + 3000, &o), TILE_UNAVAILABLE);
    CHECK_INT(tile_conv2d_backward_data_workspace(TILE_F32, -1, 4, 4, 2, 2, 3, 3, NULL), 0);
    CHECK_INT(tile_conv2d_backward_weights_workspace(TILE_F64, 1, 4, 4, 2, 2, 3, 3, NULL), 0);
}

static void wrong_pools(void)
{
    float *x = cells, *y = cells + 2000;
    int32_t *places = (int32_t *)(cells + 3000);
    tile_window_options o = {.struct_size = 5}, outer = TILE_WINDOW_OPTIONS_INIT;
    WRONG(tile_max_pool2d(library, NULL, TILE_F32, 1, 4, 4, 2, 2, 2, x, y, NULL, NULL),
          "places is NULL");
    WRONG(tile_avg_pool2d(library, NULL, TILE_F32, 1, 4, 4, 2, 2, 2, x, y, &o),
          "struct_size of tile_window_options is 5");
    WRONG(tile_avg_pool2d(NULL, NULL, TILE_F32, 1, 4, 4, 2, 2, 2, x, y, NULL), "kernels is NULL");
    WRONG(tile_max_pool2d_backward(library, NULL, TILE_F32, 1, 4, 4, 2, 2, 2, y, NULL, x, NULL),
          "tile_max_pool2d_backward: places is NULL");
    WRONG(tile_max_pool2d_backward(library, NULL, TILE_F32, 1, 4, 4, 2, 2, 2, NULL, places, x,
                                   NULL), "dY is NULL");
    WRONG(tile_max_pool2d_backward(NULL, NULL, TILE_F32, 1, 4, 4, 2, 2, 2, y, places, x, NULL),
          "kernels is NULL");
    WRONG(tile_avg_pool2d_backward(library, NULL, TILE_F32, 1, 4, 4, 2, 2, 2, y, NULL, NULL),
          "tile_avg_pool2d_backward: dX is NULL");
    WRONG(tile_avg_pool2d_backward(library, NULL, TILE_F64, 1, 4, 4, 2, 2, 2, y, x, NULL),
          "type is f64");
    WRONG(tile_avg_pool2d_backward(library, NULL, TILE_F32, 1, 4, 4, -2, 2, 2, y, x, NULL),
          "C is -2");
    x[0] = x[1] = 7; /* no window fits: no gradient */
    OK(tile_avg_pool2d_backward(library, NULL, TILE_F32, 1, 1, 2, 1, 2, 2, NULL, x, NULL));
    OK(tile_stream_synchronize(NULL));
    CHECK(x[0] == 0 && x[1] == 0);
    outer.layout = TILE_NCHW;
    WRONG(tile_max_pool2d(library, NULL, TILE_F32, INT32_MAX, 4, 4, 2, 2, 2, x, y, places, &outer),
          "X has more than 2147483647 elements");
    outer.groups = 2;
    WRONG(tile_avg_pool2d(library, NULL, TILE_F32, 1, 4, 4, 2, 2, 2, x, y, &outer),
          "options->groups is 2, but must be 0 or 1");
}

static void once(void)
{
    wrong_convolutions();
    wrong_gradients();
    wrong_pools();
    CHECK_INT(tile_conv2d_workspace(TILE_F32, 1, 4, 4, 2, 2, 3, 3, NULL), 0);
    CHECK_INT(tile_conv2d_workspace(TILE_F32, -1, 4, 4, 2, 2, 3, 3, NULL), 0);
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
