/* Gradients of norms, tile_sgd and tile_adam: values against f64, and every argument that is wrong.
 *
 *     training_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

static bool near(tile_dtype type, double got, double want)
{
    double slack = (rounding(type) + ldexp(1, -17)) * (fabs(want) + 1);
    return fabs(got - want) <= slack || (isnan(got) && isnan(want));
}

/* ---- gradients of norms ---- */

typedef struct Gradient {
    tile_dtype type;
    int64_t M, N;
    bool rms, weight, sums;
} Gradient;

static void moments(const Gradient *g, const void *x, float *mean, float *rstd)
{
    for (int64_t m = 0; m < g->M; m++) {
        double sum = 0, squares = 0;
        for (int64_t n = 0; n < g->N; n++)
            sum += get(x, g->type, m * g->N + n);
        mean[m] = g->rms ? 0 : (float)(sum / (double)g->N);
        for (int64_t n = 0; n < g->N; n++)
            squares += pow(get(x, g->type, m * g->N + n) - mean[m], 2);
        rstd[m] = (float)(1 / sqrt(squares / (double)g->N + 0.01));
    }
}

/* Elements of dx that are wrong; dw and db get what is to be added up. */
static int64_t wrong_of_row(const Gradient *g, int64_t m, const void *x, const void *dy,
                            const void *w, double mean, double rstd, const void *dx, double *dw,
                            double *db)
{
    double sum = 0, product = 0;
    int64_t wrong = 0, at = m * g->N;
    for (int64_t n = 0; n < g->N; n++) {
        double v = (get(x, g->type, at + n) - mean) * rstd, up = get(dy, g->type, at + n);
        double d = up * ((g->weight ? get(w, g->type, n) : 1) + (g->rms ? 0.5 : 0));
        sum += d / (double)g->N;
        product += d * v / (double)g->N;
        dw[n] += up * v;
        db[n] += up;
    }
    for (int64_t n = 0; n < g->N; n++) {
        double v = (get(x, g->type, at + n) - mean) * rstd, up = get(dy, g->type, at + n);
        double d = up * ((g->weight ? get(w, g->type, n) : 1) + (g->rms ? 0.5 : 0));
        d = (d - v * product - (g->rms ? 0 : sum)) * rstd;
        wrong += !near(g->type, get(dx, g->type, at + n), d);
    }
    return wrong;
}

static void gradient_of(const Gradient *g)
{
    int64_t M = g->M, N = g->N, wrong = 0;
    void *x = numbers(g->type, M * N), *dy = numbers(g->type, M * N), *dx = numbers(g->type, M * N);
    void *w = numbers(g->type, N), *dw = numbers(g->type, N), *db = numbers(g->type, N);
    float *mean = numbers(TILE_F32, M), *rstd = numbers(TILE_F32, M);
    double *want_w = calloc((size_t)N + 1, sizeof(double)), *want_b = calloc((size_t)N + 1, 8);
    size_t bytes = tile_norm_backward_workspace(M, N);
    void *room = g->sums && bytes ? malloc(bytes) : NULL;
    const void *weight = g->weight ? w : NULL;
    moments(g, x, mean, rstd);
    if (g->rms)
        OK(tile_rms_norm_backward(library, NULL, g->type, M, N, dy, N, x, N, weight, 0.5, rstd, dx,
                                  N, g->sums ? dw : NULL, room));
    else
        OK(tile_layer_norm_backward(library, NULL, g->type, M, N, dy, N, x, N, weight, mean, rstd,
                                    dx, N, g->sums ? dw : NULL, g->sums ? db : NULL, room));
    for (int64_t m = 0; m < M; m++)
        wrong += wrong_of_row(g, m, x, dy, w, mean[m], rstd[m], dx, want_w, want_b);
    for (int64_t n = 0; n < N && g->sums; n++)
        wrong += fabs(get(dw, g->type, n) - want_w[n]) >
                     rounding(g->type) * fabs(want_w[n]) + ldexp((double)M + 4, -15) ||
                 (!g->rms && !near(g->type, get(db, g->type, n), want_b[n]));
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d x %d, rms %d\n", tile_dtype_name(g->type), (int)M, (int)N,
                g->rms);
    void *all[] = {x, dy, dx, w, dw, db, mean, rstd, want_w, want_b, room};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* ---- steps ---- */

enum { TENSORS = 3, STEPS = 3 };
static const int64_t lengths[TENSORS] = {5, 0, 1500};

typedef struct List {
    void *at[TENSORS];
} List;

static List list_of(tile_dtype type, bool zeros)
{
    List l;
    for (int i = 0; i < TENSORS; i++) {
        l.at[i] = numbers(type, lengths[i]);
        for (int64_t n = 0; n < lengths[i] && zeros; n++)
            put(l.at[i], type, n, 0);
    }
    return l;
}

static void free_list(List *l)
{
    for (int i = 0; i < TENSORS; i++)
        free(l->at[i]);
}

/* Elements are followed with the rounded weights of the step before. */
static void sgd_of(tile_dtype type, double momentum, bool nesterov)
{
    List w = list_of(type, false), dw = list_of(type, false), b = list_of(TILE_F32, true);
    tile_sgd_options o = {.struct_size = sizeof o, .momentum = momentum, .decay = 0.1,
                          .nesterov = nesterov};
    int64_t wrong = 0;
    double speed = 0;
    for (int step = 0; step < STEPS; step++) {
        double before = get(w.at[2], type, 1027);
        OK(tile_sgd(library, NULL, type, TENSORS, lengths, w.at, (const void *const *)dw.at,
                    momentum != 0 ? (float *const *)b.at : NULL, 0.01, &o));
        double d = get(dw.at[2], type, 1027) + 0.1 * before;
        speed = momentum * speed + d;
        d = momentum == 0 ? d : nesterov ? d + momentum * speed : speed;
        wrong += !near(type, get(w.at[2], type, 1027), before - 0.01 * d);
    }
    CHECK_INT(wrong, 0);
    free_list(&w);
    free_list(&dw);
    free_list(&b);
}

static void adam_of(tile_dtype type, bool coupled, bool master)
{
    List w = list_of(type, false), dw = list_of(type, false), exact = list_of(TILE_F32, false);
    List m = list_of(TILE_F32, true), v = list_of(TILE_F32, true);
    tile_adam_options o = {.struct_size = sizeof o, .decay = 0.1, .coupled = coupled,
                           .master = master ? (float *const *)exact.at : NULL};
    int64_t wrong = 0;
    double mean = 0, square = 0;
    for (int step = 1; step <= STEPS; step++) {
        double before = master ? get(exact.at[0], TILE_F32, 4) : get(w.at[0], type, 4);
        OK(tile_adam(library, NULL, type, TENSORS, lengths, w.at, (const void *const *)dw.at,
                     (float *const *)m.at, (float *const *)v.at, step, 0.01, &o));
        double d = get(dw.at[0], type, 4) + (coupled ? 0.1 * before : 0);
        mean = 0.9 * mean + 0.1 * d;
        square = 0.999 * square + 0.001 * d * d;
        double want = before * (coupled ? 1 : 1 - 0.01 * 0.1) -
                      0.01 * mean / (1 - pow(0.9, step)) /
                          (sqrt(square / (1 - pow(0.999, step))) + 1e-8);
        wrong += !near(type, get(w.at[0], type, 4), want);
        wrong += master && !near(TILE_F32, get(exact.at[0], TILE_F32, 4), want);
    }
    CHECK_INT(wrong, 0);
    List *all[] = {&w, &dw, &exact, &m, &v};
    for (int i = 0; i < 5; i++)
        free_list(all[i]);
}

/* ---- wrong arguments ---- */

static _Alignas(64) float cells[400];

typedef struct Norm {
    tile_kernels *kernels;
    int type;
    int64_t M, N, lddy, lddx;
    const float *dy, *x, *mean, *rstd;
    float *dx, *dw, *room;
} Norm;

static tile_status norm_call(const Norm *n, bool rms)
{
    tile_dtype type = (tile_dtype)n->type;
    if (rms)
        return tile_rms_norm_backward(n->kernels, NULL, type, n->M, n->N, n->dy, n->lddy, n->x, 3,
                                      NULL, 0, n->rstd, n->dx, n->lddx, n->dw, n->room);
    return tile_layer_norm_backward(n->kernels, NULL, type, n->M, n->N, n->dy, n->lddy, n->x, 3,
                                    NULL, n->mean, n->rstd, n->dx, n->lddx, n->dw, NULL, n->room);
}

#define WRONG_NORM(rms, change, text)                                                              \
    WRONG_BUT(change, norm_call(&n, rms), text,                                                    \
              Norm n = {library, TILE_F32, 2, 3, 3, 3, cells, cells + 16, cells + 32,              \
                  cells + 48, cells + 64, cells + 80, cells + 96})

static void wrong_norms(void)
{
    WRONG_NORM(false, n.kernels = NULL, "tile_layer_norm_backward: kernels is NULL");
    WRONG_NORM(true, n.type = TILE_F64, "tile_rms_norm_backward: type is f64");
    WRONG_NORM(false, n.M = -1, "M is -1");
    WRONG_NORM(false, n.lddy = 2, "lddy is 2, but a row of dY has 3 elements");
    WRONG_NORM(true, n.lddx = 0, "lddx is 0, but a row of dX has 3 elements");
    WRONG_NORM(false, n.dy = NULL, "dY is NULL");
    WRONG_NORM(false, n.x = NULL, "X is NULL");
    WRONG_NORM(false, n.dx = NULL, "dX is NULL");
    WRONG_NORM(false, n.mean = NULL, "mean is NULL");
    WRONG_NORM(true, n.rstd = NULL, "rstd is NULL");
    WRONG_NORM(true, n.room = NULL, "workspace is NULL");
    WRONG_NORM(false, n.dx = cells + 1, "dX overlaps dY and is not the same matrix");
}

typedef struct Step {
    tile_kernels *kernels;
    int type;
    int64_t count, number, length;
    float *w, *dw, *m, *v;
    bool no_table;
    tile_adam_options o;
} Step;

static tile_status step_call(const Step *s)
{
    void *w[] = {s->w};
    const void *dw[] = {s->dw};
    float *m[] = {s->m}, *v[] = {s->v};
    return tile_adam(s->kernels, NULL, (tile_dtype)s->type, s->count, &s->length, w, dw,
                     s->no_table ? NULL : m, v, s->number, 0.1, &s->o);
}

#define WRONG_STEP(change, text)                                                                   \
    WRONG_BUT(change, step_call(&s), text,                                                         \
              Step s = {library, TILE_F32, 1, 1, 4, cells, cells + 16, cells + 32, cells + 48,     \
                  false, TILE_ADAM_OPTIONS_INIT})

static void wrong_steps(void)
{
    WRONG_STEP(s.kernels = NULL, "tile_adam: kernels is NULL");
    WRONG_STEP(s.type = TILE_F64, "type is f64, but must be f32, f16 or bf16");
    WRONG_STEP(s.count = -1, "count is -1");
    WRONG_STEP(s.length = -3, "an element of lengths is -3");
    WRONG_STEP(s.no_table = true, "means is NULL");
    WRONG_STEP(s.w = NULL, "W[0] is");
    WRONG_STEP(s.dw = cells + 1, "dW[0] is");
    WRONG_STEP(s.v = cells + 2, "squares[0] is");
    WRONG_STEP(s.number = 0, "step is 0, but must be from 1");
    WRONG_STEP(s.o.beta1 = 1, "options->beta1 is 1");
    WRONG_STEP(s.o.struct_size = 3, "struct_size of tile_adam_options is 3");
    tile_sgd_options o = {.struct_size = sizeof o, .nesterov = 1};
    WRONG(tile_sgd(library, NULL, TILE_F32, 0, NULL, NULL, NULL, NULL, 1, &o),
          "options->nesterov is set without options->momentum");
    OK(tile_sgd(library, NULL, TILE_F32, 0, NULL, NULL, NULL, NULL, 1, NULL));
}

static void each_type(tile_dtype type, tile_dtype result)
{
    static const int64_t sizes[][2] = {{0, 5}, {3, 1}, {40, 9}, {5, 200}, {2, 777}, {2, 4097}};
    (void)result;
    if (!is_float_below_64(type))
        return;
    for (int i = 0; i < (brief ? 4 : 6); i++)
        for (int form = 0; form < 8; form++)
            gradient_of(&(Gradient){type, sizes[i][0], sizes[i][1], form & 1, form & 2, form & 4});
    sgd_of(type, 0, false);
    sgd_of(type, 0.9, false);
    sgd_of(type, 0.9, true);
    for (int form = 0; form < 4; form++)
        adam_of(type, form & 1, form & 2);
}

static void once(void)
{
    wrong_norms();
    wrong_steps();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
