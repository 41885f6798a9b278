/* Two networks, one against the other, learn eight Gaussians: 14_gan2d [LOSS [STEPS [OUT.png]]]. */
#define PROGRAM "14_gan2d"
#include "../shared/picture.h"
#include "mlp.h"

enum { BATCH = 256, MODES = 8, PANELS = 5, SIDE = 180 };
static const float sigma = 0.1f;

static const struct Loss {
    const char *name, *generator;
    float fake; /* the target of generated points; that of real ones, and the generator's, is 1 */
} losses[] = {{"logistic", "logistic", 0},
              {"least_squares", "least_squares", 0},
              {"hinge", "wasserstein", -1}};
enum { LOSSES = sizeof losses / sizeof *losses };

typedef struct Run {
    const struct Loss *loss;
    Kernels k;
    Buffers buffers;
    Mlp generator, judge;
    tile_buffer *x, *z, *dx, *score, *mean; /* x: real points, then generated */
    float real[MOST * 2], made[PANELS][MOST * 2];
    uint64_t drawn; /* seeds so far */
} Run;

static bool open_run(Run *r)
{
    uint64_t seed = 88172645463325252u;
    return kernels_open(&r->k, r->loss->name, r->loss->generator) &&
           mlp_open(&r->generator, 2, 2, &seed) && mlp_open(&r->judge, 2, 1, &seed) &&
           zeros(&r->buffers, &r->x, MOST * 2, 4) && zeros(&r->buffers, &r->z, MOST * 2, 4) &&
           zeros(&r->buffers, &r->dx, MOST * 2, 4) && zeros(&r->buffers, &r->score, MOST, 4) &&
           zeros(&r->buffers, &r->mean, 3, 4);
}

static void close_run(Run *r)
{
    buffers_free(&r->buffers), mlp_close(&r->generator), mlp_close(&r->judge);
    modules_free(&r->k.modules);
}

/* Noise becomes points x [rows, 2]. */
static bool generate(Run *r, float *x, int rows)
{
    return RUN(&r->k, DRAW_NOISE, tile_f32_view(r->z, rows * 2), tile_u64(r->drawn++)) &&
           mlp_forward(&r->k, &r->generator, tile_buffer_ptr(r->z), x, rows);
}

/* Scores become their derivatives by the loss, whose mean is kept. */
static bool judge(Run *r, int loss, int from, float target, int mean)
{
    tile_arg score = tile_buffer_view_at(r->score, from, TILE_F32, BATCH);
    return RUN(&r->k, loss, score, score, tile_buffer_view_at(r->mean, mean, TILE_F32, 1),
               tile_f32(target), tile_f32(1));
}

/* One step of the judge on as many real points as generated ones, then one of the generator. */
static bool step(Run *r, float rate)
{
    float *x = tile_buffer_ptr(r->x), *made = x + 2 * BATCH, *score = tile_buffer_ptr(r->score);
    float *z = tile_buffer_ptr(r->z), *dx = tile_buffer_ptr(r->dx);
    if (!RUN(&r->k, DRAW_REAL, tile_view(x, BATCH, 2), tile_f32(sigma), tile_u64(r->drawn)))
        return false;
    r->drawn += 3;
    return generate(r, made, BATCH) && mlp_forward(&r->k, &r->judge, x, score, 2 * BATCH) &&
           judge(r, LOSS, 0, 1, 0) && judge(r, LOSS, BATCH, r->loss->fake, 1) &&
           mlp_backward(&r->k, &r->judge, x, score, NULL, 2 * BATCH, true) &&
           mlp_step(&r->k, &r->judge, rate) && mlp_forward(&r->k, &r->judge, made, score, BATCH) &&
           judge(r, LOSS_GENERATOR, 0, 1, 2) &&
           mlp_backward(&r->k, &r->judge, made, score, dx, BATCH, false) &&
           mlp_backward(&r->k, &r->generator, z, dx, NULL, BATCH, true) &&
           mlp_step(&r->k, &r->generator, rate);
}

/* Points within four deviations of a centre are of its mode, which is covered by a fifth of its
 * share of all points. */
static int covered(const float *x, double *near)
{
    int count[MODES] = {0}, modes = 0, all = 0;
    for (int i = 0; i < MOST; i++)
        for (int m = 0; m < MODES; m++) {
            double turn = m * 6.283185307179586 / MODES;
            count[m] += hypot(x[2 * i] - 2 * cos(turn), x[2 * i + 1] - 2 * sin(turn)) < 4 * sigma;
        }
    for (int m = 0; m < MODES; m++) modes += count[m] >= MOST / MODES / 5, all += count[m];
    *near = 100.0 * all / MOST;
    return modes;
}

static bool look(Run *r, int at, int panel, bool *learned)
{
    float mean[3];
    double near;
    float *x = r->made[panel];
    if (!generate(r, tile_buffer_ptr(r->x), MOST) ||
        tile_buffer_download(r->x, 0, x, MOST * 8, NULL) ||
        tile_buffer_download(r->mean, 0, mean, sizeof mean, NULL))
        return false;
    int modes = covered(x, &near);
    *learned = modes >= MODES - 1 && near > 60;
    printf("step %5d: %d of %d modes, %4.1f %% of points are near one", at, modes, MODES, near);
    if (at)
        printf("; losses: real points %.3f, generated %.3f, generator's %.3f", (double)mean[0],
               (double)mean[1], (double)mean[2]);
    puts("");
    fflush(stdout);
    return true;
}

/* Panels at 0, 1/16, 1/4, 1/2 and all of the steps; the rate falls to 0 in the second half. */
static bool train(Run *r, int steps, bool *learned)
{
    static const int sixteenth[PANELS] = {0, 1, 4, 8, 16};
    for (int s = 0, panel = 0; s <= steps; s++) {
        if (s == steps * sixteenth[panel] / 16 && !look(r, s, panel++, learned)) return false;
        double left = 2.0 * (steps - s) / steps;
        if (s < steps && !step(r, 1e-3f * (float)fmin(1, left))) return false;
    }
    if (!RUN(&r->k, DRAW_REAL, tile_f32_view(r->x, MOST, 2), tile_f32(sigma), tile_u64(r->drawn)))
        return false;
    return !tile_buffer_download(r->x, 0, r->real, MOST * 8, NULL);
}

/* A point darkens its pixel, in the colours that `less` takes away. */
static void dot(uint8_t *pixels, const float *x, int panel, const int less[3])
{
    int u = (int)((x[0] / 6 + 0.5f) * SIDE), v = (int)((0.5f - x[1] / 6) * SIDE);
    if (u < 0 || v < 0 || u >= SIDE || v >= SIDE) return;
    uint8_t *p = pixels + ((size_t)v * SIDE * PANELS + (size_t)(panel * SIDE + u)) * 3;
    for (int c = 0; c < 3; c++) p[c] = (uint8_t)(p[c] > less[c] ? p[c] - less[c] : 0);
}

static bool save(const Run *r, const char *out)
{
    static const int blue[3] = {70, 40, 0}, red[3] = {0, 110, 130};
    const size_t size = (size_t)PANELS * SIDE * SIDE * 3;
    uint8_t *pixels = malloc(size);
    if (!pixels) return fail("", "no memory");
    memset(pixels, 255, size);
    for (int i = 1; i < PANELS * SIDE; i++) /* lines between the panels */
        memset(pixels + ((size_t)i / PANELS * PANELS + (size_t)(i % PANELS)) * SIDE * 3, 190, 3);
    for (int p = 0; p < PANELS; p++)
        for (int i = 0; i < MOST; i++) {
            dot(pixels, r->real + 2 * i, p, blue);
            dot(pixels, r->made[p] + 2 * i, p, red);
        }
    bool good = picture_write(out, PANELS * SIDE, SIDE, PNG_FORMAT_RGB, pixels);
    if (good) printf("%s: generated points, red, over real ones, blue\n", out);
    return free(pixels), good;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "logistic", *out = argc > 3 ? argv[3] : "gan2d.png";
    int steps = argc > 2 ? atoi(argv[2]) : 2000, loss = 0;
    bool learned = false;
    while (loss < LOSSES && strcmp(name, losses[loss].name)) loss++;
    if (argc > 4 || loss == LOSSES || steps < 16 || steps > 1000000)
        return fputs("usage: 14_gan2d [logistic|least_squares|hinge [STEPS [OUT.png]]]\n", stderr),
               2;
    Run *r = calloc(1, sizeof *r);
    if (!r) return fail("", "no memory"), 1;
    r->loss = &losses[loss];
    bool good = (open_run(r) && train(r, steps, &learned)) || fail("", tile_last_error());
    good = good && save(r, out);
    if (good && !learned) good = fail("", "too few modes are covered, or too few points near one");
    close_run(r);
    return free(r), !good;
}
