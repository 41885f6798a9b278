/* Two galaxies meet: 10_nbody [BODIES [STEPS [OUT.png]]]. What should stay the same is printed, and
 * six views go into a picture. */
#define PROGRAM "10_nbody"
#include "../shared/picture.h"

enum { VIEWS = 6, SIDE = 200 }; /* of a picture of 3 by 2 squares */
static const float SOFT = 0.1f, TIME = 5, HALF = 3;

enum { X, V, A, MASS, POTENTIAL, TOTAL, PIXELS, BUFFERS };
enum { ATTRACT, ADVANCE, MEASURE, COUNT, KERNELS };

typedef struct World {
    size_t n;
    Modules modules;
    Buffers buffers;
    tile_kernel *kernel[KERNELS];
    tile_buffer *buffer[BUFFERS];
} World;

/* ---- the beginning ---- */

/* A disk of bodies on circles around a heavy one, the first; tilted around the first axis. */
static void galaxy(float *x, float *v, float *m, size_t n, size_t first, size_t count,
                   const double *place, const double *speed, double tilt, uint64_t *state)
{
    for (size_t i = first; i < first + count; i++) {
        double r = i == first ? 0 : 0.15 + 0.85 * sqrt(uniform(state)),
               angle = 6.2831853 * uniform(state);
        double circle = r > 0 ? r * pow(r * r + SOFT * SOFT, -0.75) : 0; /* speed, for mass 1 */
        double p[3] = {r * cos(angle), r * sin(angle), 0.02 * (uniform(state) - 0.5)};
        double q[3] = {-circle * sin(angle), circle * cos(angle), 0};
        const double c = cos(tilt), s = sin(tilt);
        double tp[3] = {p[0], c * p[1] - s * p[2], s * p[1] + c * p[2]};
        double tq[3] = {q[0], c * q[1], s * q[1]};
        for (size_t k = 0; k < 3; k++) {
            x[k * n + i] = (float)(place[k] + (r > 0 ? tp[k] : 0));
            v[k * n + i] = (float)(speed[k] + (r > 0 ? tq[k] : 0));
        }
        m[i] = r > 0 ? 0.1f / (float)count : 1;
    }
}

/* Two of them on a parabola, which would pass at a distance of 0.8. */
static bool place_bodies(World *w)
{
    float *host = malloc(7 * w->n * sizeof *host);
    uint64_t state = 88172645463325252u;
    size_t half = w->n / 2, n = w->n;
    const double at[2][3] = {{1.6, 0, 0}, {-1.6, 0, 0}};
    const double way[2][3] = {{-0.484, 0.280, 0}, {0.484, -0.280, 0}};
    if (!host) return fail("", "no memory");
    galaxy(host, host + 3 * n, host + 6 * n, n, 0, half, at[0], way[0], 0.3, &state);
    galaxy(host, host + 3 * n, host + 6 * n, n, half, n - half, at[1], way[1], 1.1, &state);
    bool good = !(tile_buffer_upload(w->buffer[X], 0, host, 12 * n, NULL) ||
                  tile_buffer_upload(w->buffer[V], 0, host + 3 * n, 12 * n, NULL) ||
                  tile_buffer_upload(w->buffer[MASS], 0, host + 6 * n, 4 * n, NULL));
    free(host);
    return good || fail("", tile_last_error());
}

static bool open_world(World *w)
{
#define OWN KERNEL_DIR "/nbody.tile"
    static const KernelRow rows[KERNELS] = {
        [ATTRACT] = {"std.kernels.simulate", "nbody_forces", {{0}}},
        [ADVANCE] = {OWN, "advance", {{0}}},
        [MEASURE] = {OWN, "measure", {{0}}},
        [COUNT] = {OWN, "count", {{0}}}};
    const size_t n = w->n, count[BUFFERS] = {3 * n, 3 * n, 3 * n, n, n, 16, 2 * SIDE * SIDE};
    for (int i = 0; i < BUFFERS; i++)
        if (!zeros(&w->buffers, &w->buffer[i], count[i], 4)) return fail("", tile_last_error());
    if (!kernels_get(&w->modules, rows, KERNELS, w->kernel) ||
        !kernels_prepare(w->kernel, KERNELS))
        return fail("", tile_last_error());
    return place_bodies(w);
}

/* ---- steps ---- */

/* Of all bodies. */
static tile_arg vectors(const World *w, int i) { return tile_f32_view(w->buffer[i], 3, w->n); }
static tile_arg numbers(const World *w, int i) { return tile_f32_view(w->buffer[i], w->n); }

static bool attract(World *w)
{
    return RUN(w, ATTRACT, vectors(w, X), numbers(w, MASS), vectors(w, A), numbers(w, POTENTIAL),
               tile_f32(SOFT));
}

/* Leapfrog: half a kick, a drift, half a kick. */
static bool step(World *w, float dt)
{
    return RUN(w, ADVANCE, vectors(w, V), vectors(w, A), tile_f32(dt / 2)) &&
           RUN(w, ADVANCE, vectors(w, X), vectors(w, V), tile_f32(dt)) && attract(w) &&
           RUN(w, ADVANCE, vectors(w, V), vectors(w, A), tile_f32(dt / 2));
}

static bool measure(World *w, double total[8])
{
    return !tile_buffer_fill(w->buffer[TOTAL], 0, 0, 64, NULL) &&
           RUN(w, MEASURE, vectors(w, X), vectors(w, V), numbers(w, MASS), numbers(w, POTENTIAL),
               tile_f64_view(w->buffer[TOTAL], 8)) &&
           !tile_buffer_download(w->buffer[TOTAL], 0, total, 64, NULL);
}

/* View number i of the picture: warm and cold light, brighter where there are more bodies. */
static bool draw(World *w, uint8_t *picture, int i)
{
    static uint32_t pixels[2][SIDE][SIDE];
    tile_buffer *b = w->buffer[PIXELS];
    if (tile_buffer_fill(b, 0, 0, sizeof pixels, NULL) ||
        !RUN(w, COUNT, vectors(w, X), tile_u32_view(b, 2, SIDE, SIDE),
             tile_i32((int32_t)(w->n / 2)), tile_f32(HALF)) ||
        tile_buffer_download(b, 0, pixels, sizeof pixels, NULL))
        return false;
    static const float colour[2][3] = {{1, 0.75f, 0.45f}, {0.45f, 0.7f, 1}};
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int c = 0; c < 3; c++) {
                float light = 0;
                for (int g = 0; g < 2; g++)
                    light += colour[g][c] * sqrtf((float)pixels[g][y][x] * 2048 / (float)w->n);
                uint8_t *p = picture + ((i / 3 * SIDE + y) * 3 * SIDE + i % 3 * SIDE + x) * 3;
                p[c] = (uint8_t)fminf(255, 12 + 150 * light);
            }
    return true;
}

/* ---- the whole ---- */

static double worst; /* change of energy, relative; of momenta */

static bool report(World *w, double t, const double *from)
{
    double s[8], change = 0;
    if (!measure(w, s)) return false;
    for (int i = 2; i < 8; i++) change = fmax(change, fabs(s[i] - from[i]));
    double energy = (s[0] + s[1]) / (from[0] + from[1]) - 1;
    printf("time %4.1f: kinetic %.4f, potential %.4f, energy off by %+.1e, momenta by %.1e\n", t,
           s[0], s[1], energy, change);
    worst = fmax(worst, fmax(fabs(energy), change));
    return true;
}

static bool simulate(World *w, int steps, uint8_t *picture)
{
    float dt = TIME / (float)steps;
    double from[8], start = now();
    if (!attract(w) || !measure(w, from) || !report(w, 0, from) || !draw(w, picture, 0))
        return false;
    for (int i = 1; i <= steps; i++) {
        if (!step(w, dt)) return false;
        for (int k = 1; k < VIEWS; k++)
            if (i == steps * k / (VIEWS - 1) && (!report(w, i * dt, from) || !draw(w, picture, k)))
                return false;
    }
    double pairs = (double)w->n * (double)w->n * steps;
    printf("%zu bodies, %d steps: %.2f s, %.2f G pairs/s\n", w->n, steps, now() - start,
           1e-9 * pairs / (now() - start));
    return true;
}

int main(int argc, char **argv)
{
    World w = {.n = argc > 1 ? strtoul(argv[1], NULL, 0) : 2048};
    int steps = argc > 2 ? atoi(argv[2]) : 450;
    const char *out = argc > 3 ? argv[3] : "nbody.png";
    if (argc > 4 || w.n < 2 || w.n > 1 << 24 || steps < VIEWS - 1 || steps > 1 << 20)
        return fputs("usage: 10_nbody [BODIES [STEPS [OUT.png]]]\n", stderr), 2;
    uint8_t *picture = calloc(VIEWS * SIDE * SIDE, 3);
    bool good = picture || fail("", "no memory");
    good = good && open_world(&w) && (simulate(&w, steps, picture) || fail("", tile_last_error()));
    good = good && picture_write(out, 3 * SIDE, VIEWS / 3 * SIDE, PNG_FORMAT_RGB, picture);
    if (good) printf("%s: six views of them, from left to right and down\n", out);
    buffers_free(&w.buffers), modules_free(&w.modules), free(picture);
    return !good || !(worst < 0.02);
}
