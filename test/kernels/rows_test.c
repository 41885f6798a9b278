/* tile_softmax, tile_log_softmax, tile_layer_norm, tile_rms_norm, tile_rope, tile_cross_entropy and
 * its gradient against f64: types, rows of every length class of choices.def, in place, what is
 * optional there and not, and every argument that is wrong.
 *
 *     rows_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

static bool near(tile_dtype type, double got, double want)
{
    double slack = (rounding(type) + ldexp(1, -19)) * (fabs(want) + 1);
    return fabs(got - want) <= slack || (isnan(got) && isnan(want));
}

/* ---- softmax ---- */

static void row_softmax(const void *x, tile_dtype type, int64_t at, int64_t N, bool log_of,
                        double *out)
{
    double most = -INFINITY, sum = 0;
    for (int64_t n = 0; n < N; n++)
        most = fmax(most, get(x, type, at + n));
    for (int64_t n = 0; n < N; n++)
        sum += exp(get(x, type, at + n) - most);
    for (int64_t n = 0; n < N; n++)
        out[n] = log_of ? get(x, type, at + n) - most - log(sum)
                        : exp(get(x, type, at + n) - most) / sum;
}

static void softmax_of(tile_dtype type, int64_t M, int64_t N, int64_t pad, bool log_of,
                       bool in_place)
{
    int64_t ld = N + pad, wrong = 0;
    void *x = numbers(type, M * ld), *before = numbers(type, M * ld), *y = numbers(type, M * N);
    double *want = malloc((size_t)N * sizeof *want + 8);
    memcpy(before, x, (size_t)(M * ld) * 8);
    void *to = in_place ? x : y;
    int64_t ldy = in_place ? ld : N;
    if (log_of)
        OK(tile_log_softmax(library, NULL, type, M, N, x, ld, to, ldy));
    else
        OK(tile_softmax(library, NULL, type, M, N, x, ld, to, ldy));
    for (int64_t m = 0; m < M; m++) {
        row_softmax(before, type, m * ld, N, log_of, want);
        for (int64_t n = 0; n < N; n++)
            wrong += !near(type, get(to, type, m * ldy + n), want[n]);
        for (int64_t n = N; n < ldy; n++)
            wrong += get(to, type, m * ldy + n) != get(before, type, m * ld + n);
    }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d x %d\n", tile_dtype_name(type), (int)M, (int)N);
    free(x);
    free(before);
    free(y);
    free(want);
}

/* Rows of -inf, with a NaN, with +inf. */
static void softmax_of_infinities(void)
{
    float x[] = {-INFINITY, -INFINITY, 1, NAN, 0, INFINITY}, y[6];
    OK(tile_softmax(library, NULL, TILE_F32, 3, 2, x, 2, y, 2));
    CHECK(y[0] == 0 && y[1] == 0 && isnan(y[2]) && isnan(y[3]) && isnan(y[5]));
    OK(tile_log_softmax(library, NULL, TILE_F32, 3, 2, x, 2, y, 2));
    CHECK(isnan(y[0]) && isnan(y[2]));
}

/* ---- norms ---- */

typedef struct Norm {
    tile_dtype type;
    int64_t M, N;
    bool rms, weight, bias, kept;
    double eps, offset;
} Norm;

static void row_moments(const Norm *c, const void *x, int64_t at, double *mean, double *rstd)
{
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < c->N; n++)
        sum += get(x, c->type, at + n);
    *mean = c->rms ? 0 : sum / (double)c->N;
    for (int64_t n = 0; n < c->N; n++)
        squares += pow(get(x, c->type, at + n) - *mean, 2);
    *rstd = 1 / sqrt(squares / (double)c->N + c->eps);
}

static void norm_of(const Norm *c)
{
    int64_t ld = c->N + 1, wrong = 0;
    void *x = numbers(c->type, c->M * ld), *y = numbers(c->type, c->M * c->N);
    void *w = numbers(c->type, c->N), *b = numbers(c->type, c->N);
    float *mean = numbers(TILE_F32, c->M), *rstd = numbers(TILE_F32, c->M);
    tile_norm_options o = TILE_NORM_OPTIONS_INIT;
    o.mean = c->kept && !c->rms ? mean : NULL;
    o.rstd = c->kept ? rstd : NULL;
    o.weight_offset = c->offset;
    const tile_norm_options *options = c->kept || c->offset != 0 ? &o : NULL;
    if (c->rms)
        OK(tile_rms_norm(library, NULL, c->type, c->M, c->N, x, ld, c->weight ? w : NULL, c->eps, y,
                         c->N, options));
    else
        OK(tile_layer_norm(library, NULL, c->type, c->M, c->N, x, ld, c->weight ? w : NULL,
                           c->bias ? b : NULL, c->eps, y, c->N, options));
    for (int64_t m = 0; m < c->M; m++) {
        double average, r;
        row_moments(c, x, m * ld, &average, &r);
        wrong += o.mean && !near(TILE_F32, mean[m], average);
        wrong += o.rstd && !near(TILE_F32, rstd[m] / r, 1);
        for (int64_t n = 0; n < c->N; n++) {
            double v = (get(x, c->type, m * ld + n) - average) * r;
            v *= (c->weight ? get(w, c->type, n) : 1) + c->offset;
            wrong += !near(c->type, get(y, c->type, m * c->N + n),
                           v + (c->bias ? get(b, c->type, n) : 0));
        }
    }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d x %d, rms %d\n", tile_dtype_name(c->type), (int)c->M, (int)c->N,
                c->rms);
    free(x);
    free(y);
    free(w);
    free(b);
    free(mean);
    free(rstd);
}

/* ---- rope ---- */

static void rope_of(tile_dtype type, int64_t N, int64_t H, int64_t D, int64_t rotated, bool places,
                    bool in_place)
{
    int64_t P = N + 3, I = (rotated ? rotated : D) / 2, wrong = 0, count = N * H * D;
    void *x = numbers(type, count), *before = malloc((size_t)count * 8 + 8);
    void *y = numbers(type, count);
    float *c = numbers(TILE_F32, P * I), *s = numbers(TILE_F32, P * I);
    int32_t *place = malloc((size_t)N * sizeof *place + 8);
    for (int64_t n = 0; n < N; n++)
        place[n] = (int32_t)(N + 2 - n);
    memcpy(before, x, (size_t)count * 8);
    tile_rope_options o = TILE_ROPE_OPTIONS_INIT;
    o.place = places ? place : NULL;
    o.rotated = rotated;
    void *to = in_place ? x : y;
    OK(tile_rope(library, NULL, type, N, H, D, x, c, s, P, to, &o));
    for (int64_t i = 0; i < count; i++) {
        int64_t n = i / (H * D), d = i % D, at = (places ? place[n] : n) * I + d % (I ? I : 1);
        double v = get(before, type, i);
        if (d < 2 * I) {
            double other = get(before, type, d < I ? i + I : i - I);
            v = d < I ? v * c[at] - other * s[at] : other * s[at] + v * c[at];
        }
        wrong += !near(type, get(to, type, i), v);
    }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d x %d x %d, %d rotated\n", tile_dtype_name(type), (int)N, (int)H,
                (int)D, (int)rotated);
    free(x);
    free(before);
    free(y);
    free(c);
    free(s);
    free(place);
}

/* The backward rotation undoes the forward one, of heads within longer tokens. */
static void rope_back(void)
{
    enum { N = 3, H = 2, D = 6, TOKEN = 20 };
    float x[N * TOKEN], y[N * H * D], z[N * TOKEN], c[N * D / 2], s[N * D / 2];
    for (int i = 0; i < N * TOKEN; i++)
        x[i] = z[i] = (float)next();
    for (int i = 0; i < N * D / 2; i++) {
        c[i] = (float)cos(i);
        s[i] = (float)sin(i);
    }
    tile_rope_options o = {.struct_size = sizeof o, .x_strides = {TOKEN, 8}};
    OK(tile_rope(library, NULL, TILE_F32, N, H, D, x, c, s, N, y, &o));
    tile_rope_options back = {.struct_size = sizeof back, .backward = 1, .y_strides = {TOKEN, 8}};
    OK(tile_rope(library, NULL, TILE_F32, N, H, D, y, c, s, N, z, &back));
    int wrong = 0;
    for (int i = 0; i < N * TOKEN; i++)
        wrong += !near(TILE_F32, z[i], x[i]);
    CHECK_INT(wrong, 0);
}

/* ---- cross entropy ---- */

/* The third row has a label that is ignored. */
static void loss_of(tile_dtype type, int64_t M, int64_t V, double smoothing, double z)
{
    int64_t ld = V + 2, wrong = 0;
    void *x = numbers(type, M * ld), *dx = numbers(type, M * V);
    int32_t *label = malloc((size_t)M * sizeof *label + 8);
    float *loss = numbers(TILE_F32, M), *lse = numbers(TILE_F32, M), *up = numbers(TILE_F32, M);
    tile_cross_entropy_options o = TILE_CROSS_ENTROPY_OPTIONS_INIT;
    o.smoothing = smoothing;
    o.z = z;
    for (int64_t m = 0; m < M; m++)
        label[m] = m == 2 ? -100 : (int32_t)(m * 7 % V);
    const tile_cross_entropy_options *options = smoothing != 0 || z != 0 ? &o : NULL;
    OK(tile_cross_entropy(library, NULL, type, M, V, x, ld, label, loss, lse, options));
    OK(tile_cross_entropy_backward(library, NULL, type, M, V, x, ld, label, lse, up, dx, V,
                                   options));
    for (int64_t m = 0; m < M; m++) {
        double sum = 0, mean = 0, l;
        for (int64_t v = 0; v < V; v++) {
            sum += exp(get(x, type, m * ld + v));
            mean += get(x, type, m * ld + v) / (double)V;
        }
        l = log(sum);
        double want = l - smoothing * mean + z * l * l;
        if (m != 2)
            want -= (1 - smoothing) * get(x, type, m * ld + label[m]);
        wrong += !near(TILE_F32, loss[m], m == 2 ? 0 : want) || !near(TILE_F32, lse[m], l);
        for (int64_t v = 0; v < V; v++) {
            double g = exp(get(x, type, m * ld + v) - l) * (1 + 2 * z * l) - smoothing / (double)V;
            g = m == 2 ? 0 : (g - (v == label[m] ? 1 - smoothing : 0)) * up[m];
            wrong += !near(type, get(dx, type, m * V + v), g);
        }
    }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d x %d\n", tile_dtype_name(type), (int)M, (int)V);
    free(x);
    free(dx);
    free(label);
    free(loss);
    free(lse);
    free(up);
}

/* ---- wrong arguments ---- */

static float cells[200];

static tile_status softmax_call(int type, int64_t M, int64_t N, const void *X, int64_t ldx, void *Y,
                                int64_t ldy)
{
    return tile_softmax(library, NULL, (tile_dtype)type, M, N, X, ldx, Y, ldy);
}

static void wrong_rows(void)
{
    float *x = cells, *y = cells + 100;
    WRONG(tile_softmax(NULL, NULL, TILE_F32, 1, 1, x, 1, y, 1), "tile_softmax: kernels is NULL");
    WRONG(softmax_call(TILE_F64, 2, 3, x, 3, y, 3), "type is f64, but must be f32, f16 or bf16");
    WRONG(softmax_call(TILE_F32, -1, 3, x, 3, y, 3), "M is -1");
    WRONG(softmax_call(TILE_F32, 2, INT64_MAX, x, 3, y, 3), "N is 9223372036854775807");
    WRONG(softmax_call(TILE_F32, 2, 3, x, 2, y, 3), "ldx is 2, but a row of X has 3 elements");
    WRONG(softmax_call(TILE_F32, 2, 3, x, 3, y, -3), "ldy is -3, but a row of Y has 3 elements");
    WRONG(softmax_call(TILE_F32, 9, 3, x, INT64_MAX, y, 3), "X with ldx = 9223372036854775807 is");
    WRONG(softmax_call(TILE_F32, 2, 3, NULL, 3, y, 3), "X is NULL");
    WRONG(softmax_call(TILE_F32, 2, 3, x, 3, NULL, 3), "Y is NULL");
    WRONG(softmax_call(TILE_F32, 2, 3, x, 3, x, 4), "Y overlaps X and is not the same matrix");
    WRONG(softmax_call(TILE_F32, 2, 3, x, 3, x + 1, 3), "Y overlaps X and is not the same matrix");
    OK(softmax_call(TILE_F32, 0, 3, NULL, 3, NULL, 3));
    OK(softmax_call(TILE_F32, 3, 0, NULL, 1, NULL, 1));
    tile_norm_options o = TILE_NORM_OPTIONS_INIT;
    o.mean = cells + 150;
    WRONG(tile_rms_norm(library, NULL, TILE_F32, 1, 3, x, 3, NULL, 0, y, 3, &o),
          "options->mean is set");
    o.struct_size = 3;
    WRONG(tile_layer_norm(library, NULL, TILE_F32, 1, 3, x, 3, NULL, NULL, 0, y, 3, &o),
          "struct_size of tile_norm_options is 3");
    CHECK_INT(tile_layer_norm(library, NULL, TILE_F32, 0, 1 << 30, x, 1 << 30, NULL, NULL, 0, y,
                              1 << 30, NULL), TILE_OK);
}

typedef struct Rope {
    int type;
    int64_t N, H, D, P;
    const float *x, *c, *s;
    float *y;
    tile_rope_options o;
} Rope;

static tile_status rope_call(const Rope *r)
{
    return tile_rope(library, NULL, (tile_dtype)r->type, r->N, r->H, r->D, r->x, r->c, r->s, r->P,
                     r->y, &r->o);
}

#define WRONG_ROPE(change, text)                                                                   \
    WRONG_BUT(change, rope_call(&r), text,                                                         \
              Rope r = {TILE_F32, 2, 2, 4, 3, cells, cells + 80, cells + 90, cells + 40,           \
                  TILE_ROPE_OPTIONS_INIT})

static void wrong_ropes(void)
{
    WRONG_ROPE(r.type = TILE_I8, "type is i8");
    WRONG_ROPE(r.N = -1, "N is -1");
    WRONG_ROPE(r.P = -5, "P is -5");
    WRONG_ROPE(r.P = 1, "N is 2, but must be at most P where options->place is NULL");
    WRONG_ROPE(r.D = 5, "D is 5, but must be even where");
    WRONG_ROPE(r.D = 300, "D is 300, but must be at most 256");
    WRONG_ROPE(r.o.rotated = 3, "options->rotated is 3, but must be even and at most D");
    WRONG_ROPE(r.o.rotated = 6, "options->rotated is 6");
    WRONG_ROPE(r.o.x_strides[0] = -8, "options->x_strides has a negative stride");
    WRONG_ROPE((r.o.y_strides[0] = 4, r.o.y_strides[1] = 4), "lets heads of Y overlap");
    WRONG_ROPE(r.x = NULL, "X is NULL");
    WRONG_ROPE(r.y = NULL, "Y is NULL");
    WRONG_ROPE(r.s = NULL, "sine is NULL");
    WRONG_ROPE(r.y = cells + 1, "Y overlaps X and is not the same array");
    WRONG_ROPE(r.o.struct_size = 9, "struct_size of tile_rope_options is 9");
}

typedef struct Loss {
    tile_kernels *kernels;
    int type;
    int64_t V, ldx;
    const float *x, *dloss;
    const int32_t *labels;
    float *loss, *lse, *dx;
    tile_cross_entropy_options o;
} Loss;

static tile_status loss_call(const Loss *l, bool backward)
{
    tile_dtype type = (tile_dtype)l->type;
    if (backward)
        return tile_cross_entropy_backward(l->kernels, NULL, type, 2, l->V, l->x, l->ldx, l->labels,
                                           l->lse, l->dloss, l->dx, l->V, &l->o);
    return tile_cross_entropy(l->kernels, NULL, type, 2, l->V, l->x, l->ldx, l->labels, l->loss,
                              l->lse, &l->o);
}

#define WRONG_LOSS(backward, change, text)                                                         \
    WRONG_BUT(change, loss_call(&l, backward), text, Loss l = right_loss())

static Loss right_loss(void)
{
    static const int32_t labels[2] = {0, 7};
    return (Loss){library, TILE_F32, 3, 3, cells, cells + 10, labels, cells + 20, cells + 30,
                  cells + 40, TILE_CROSS_ENTROPY_OPTIONS_INIT};
}

static void wrong_losses(void)
{
    Loss right = right_loss();
    OK(loss_call(&right, false));
    CHECK(isnan(right.loss[1])); /* no such class */
    WRONG_LOSS(false, l.kernels = NULL, "tile_cross_entropy: kernels is NULL");
    WRONG_LOSS(false, l.type = TILE_I8, "type is i8");
    WRONG_LOSS(false, l.V = -3, "V is -3");
    WRONG_LOSS(false, l.ldx = 2, "ldx is 2, but a row of X has 3 elements");
    WRONG_LOSS(false, l.labels = NULL, "labels is NULL");
    WRONG_LOSS(false, l.lse = NULL, "lse is NULL");
    WRONG_LOSS(false, l.loss = cells + 1, "overlap");
    WRONG_LOSS(false, l.o.smoothing = NAN, "options->smoothing is nan");
    WRONG_LOSS(true, l.o.struct_size = 4, "struct_size of tile_cross_entropy_options is 4");
    WRONG_LOSS(true, l.dx = cells + 1, "dX overlaps X and is not the same matrix");
    WRONG_LOSS(true, l.dx = NULL, "dX is NULL");
    WRONG_LOSS(true, l.dloss = NULL, "dloss is NULL");
}

static void lengths(tile_dtype type)
{
    static const int64_t sizes[][2] = {{0, 5},  {3, 1},    {37, 5},   {9, 40},  {5, 200},
                                       {2, 777}, {3, 1025}, {2, 4097}, {1, 9000}};
    for (int i = 0; i < (brief ? 5 : 9); i++) {
        int64_t M = sizes[i][0], N = sizes[i][1];
        for (int form = 0; form < 4; form++)
            softmax_of(type, M, N, form, form & 1, form & 2);
        norm_of(&(Norm){type, M, N, false, true, true, i % 2 == 0, 1e-5, 0});
        norm_of(&(Norm){type, M, N, false, i % 2, false, i % 3 == 0, 1e-3, 0});
        norm_of(&(Norm){type, M, N, true, true, false, i % 2, 1e-5, i % 3 == 0});
        norm_of(&(Norm){type, M, N, true, false, false, false, 1e-3, 0});
    }
    loss_of(type, 5, 10, 0, 0);
    loss_of(type, 3, 300, 0.1, 0);
    loss_of(type, 4, brief ? 7 : 5000, 0.2, 1e-3);
    loss_of(type, 1, 1, 0, 1e-2);
    loss_of(type, 0, 5, 0, 0);
    for (int form = 0; form < 4; form++) {
        rope_of(type, 5, 3, 64, 0, form & 1, form & 2);
        rope_of(type, 3, 9, 80, 20, form & 1, form & 2);
        rope_of(type, 2, 1, brief ? 8 : 256, 0, form & 1, form & 2);
        rope_of(type, 1, 2, 7, 6, form & 1, form & 2);
    }
}

static void each_type(tile_dtype type, tile_dtype result)
{
    (void)result;
    if (is_float_below_64(type))
        lengths(type);
}

static void once(void)
{
    softmax_of_infinities();
    rope_back();
    wrong_rows();
    wrong_ropes();
    wrong_losses();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
