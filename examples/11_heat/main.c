/* Heat spreads in a plate: 11_heat [STEPS [OUT.png]]. First a wave whose decay is known, then
 * letters of hot metal behind walls that conduct badly, with six views in a picture. */
#define PROGRAM "11_heat"
#include "../shared/picture.h"

enum { VIEWS = 6, H = 200, W = 280, CELLS = H * W };
static const float R = 0.24f;

enum { U, NEXT, K, TOTAL, RANGE, PICTURE, BUFFERS };
enum { STEP, MEASURE, COLOURS, KERNELS };

typedef struct Plate {
    Modules modules;
    Buffers buffers;
    tile_kernel *kernel[KERNELS];
    tile_buffer *buffer[BUFFERS];
    float u[CELLS], k[CELLS];
} Plate;

static bool open_plate(Plate *p)
{
#define OWN KERNEL_DIR "/heat.tile"
    static const KernelRow rows[KERNELS] = {[STEP] = {OWN, "step", {{0}}},
                                            [MEASURE] = {OWN, "measure", {{0}}},
                                            [COLOURS] = {OWN, "colours", {{0}}}};
    const size_t bytes[BUFFERS] = {4 * CELLS, 4 * CELLS, 4 * CELLS, 8, 8, VIEWS * 3 * CELLS};
    for (int i = 0; i < BUFFERS; i++)
        if (!zeros(&p->buffers, &p->buffer[i], bytes[i], 1)) return false;
    return kernels_get(&p->modules, rows, KERNELS, p->kernel) &&
           kernels_prepare(p->kernel, KERNELS);
}

static tile_arg plane(const Plate *p, int i) { return tile_f32_view(p->buffer[i], H, W); }

static bool put(Plate *p)
{
    return !(tile_buffer_upload(p->buffer[U], 0, p->u, sizeof p->u, NULL) ||
             tile_buffer_upload(p->buffer[K], 0, p->k, sizeof p->k, NULL));
}

static bool steps(Plate *p, int n)
{
    for (int i = 0; i < n; i++) {
        if (!RUN(p, STEP, plane(p, U), plane(p, K), plane(p, NEXT), tile_f32(R))) return false;
        tile_buffer *u = p->buffer[U];
        p->buffer[U] = p->buffer[NEXT], p->buffer[NEXT] = u;
    }
    return !tile_stream_synchronize(NULL);
}

/* ---- what is known ---- */

/* One wave in a plate of one metal: cos(a (i + 1/2)) shrinks by 1 - 4 r sin(a / 2)^2 in a step, to
 * the last digit, for a = 2 pi / W. Returns the greatest error; -1: failed. */
static double wave(Plate *p, int n)
{
    const double pi = acos(-1), a = 2 * pi / W,
                 left = pow(1 - 4 * (double)R * pow(sin(a / 2), 2), n);
    double worst = 0;
    for (int i = 0; i < CELLS; i++) {
        p->k[i] = 1;
        p->u[i] = (float)(0.5 + 0.5 * cos(a * (i % W + 0.5)));
    }
    if (!put(p) || !steps(p, n) ||
        tile_buffer_download(p->buffer[U], 0, p->u, sizeof p->u, NULL))
        return fail("", tile_last_error()), -1;
    for (int i = 0; i < CELLS; i++)
        worst = fmax(worst, fabs(p->u[i] - 0.5 - 0.5 * left * cos(a * (i % W + 0.5))));
    printf("a wave: %d steps leave %.4f of it, the greatest error is %.1e\n", n, left, worst);
    return worst;
}

/* ---- the picture ---- */

/* Hot letters, and a wall around them with a gap on either side. */
static void letters(Plate *p)
{
    static const char *const rows[7] = {"##### ##### #     #####", "  #     #   #     #    ",
                                        "  #     #   #     #    ", "  #     #   #     ####  ",
                                        "  #     #   #     #    ", "  #     #   #     #    ",
                                        "  #   ##### ##### #####"};
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            int row = (y - 65) / 10, column = (x - 28) / 10;
            bool letter = y >= 65 && row < 7 && x >= 28 && column < 23 && rows[row][column] == '#';
            bool frame = abs(abs(y - H / 2) - 60) < 3 && x > 12 && x < W - 12;
            bool side = abs(abs(x - W / 2) - 125) < 3 && abs(y - H / 2) < 60 && abs(y - H / 2) > 12;
            p->u[y * W + x] = letter;
            p->k[y * W + x] = frame || side ? 0.002f : 1;
        }
}

static bool view(Plate *p, int i)
{
    int64_t extents[3] = {H, W, 3}, strides[3] = {9 * W, 3, 1};
    int place = (i / 3 * H * 3 + i % 3) * W * 3;
    return RUN(p, COLOURS, plane(p, U), plane(p, K),
               tile_buffer_view_strided(p->buffer[PICTURE], place, TILE_U8, 3, extents, strides));
}

/* Prints what the plate holds; *lost: the greatest loss or gain so far, relative. */
static bool report(Plate *p, int done, double *first, double *lost)
{
    double total;
    float range[2] = {INFINITY, -INFINITY};
    if (tile_buffer_fill(p->buffer[TOTAL], 0, 0, 8, NULL) ||
        tile_buffer_upload(p->buffer[RANGE], 0, range, 8, NULL) ||
        !RUN(p, MEASURE, plane(p, U), tile_f64_view(p->buffer[TOTAL], 1),
             tile_f32_view(p->buffer[RANGE], 2)) ||
        tile_buffer_download(p->buffer[TOTAL], 0, &total, 8, NULL) ||
        tile_buffer_download(p->buffer[RANGE], 0, range, 8, NULL))
        return false;
    if (done == 0) *first = total;
    *lost = fmax(*lost, fabs(total / *first - 1));
    printf("step %5d: heat %.3f, off by %+.1e; from %.4f to %.4f\n", done, total,
           total / *first - 1, range[0], range[1]);
    return range[0] >= -1e-6f &&
           range[1] <= 1 + 1e-6f; /* nothing gets hotter than the hottest was */
}

static bool simulate(Plate *p, int n, double *lost)
{
    double first = 0, start = now();
    int done = 0;
    letters(p);
    if (!put(p)) return false;
    for (int i = 0; i < VIEWS; i++) { /* later views are further apart: 0, 1/25, 4/25, ... */
        int until = (int)((int64_t)n * i * i / ((VIEWS - 1) * (VIEWS - 1)));
        if (!steps(p, until - done) || !report(p, done = until, &first, lost) || !view(p, i))
            return false;
    }
    printf("%d x %d cells, %d steps: %.2f s, %.2f G cells/s\n", W, H, n, now() - start,
           1e-9 * CELLS * n / (now() - start));
    return true;
}

static bool save(const Plate *p, const char *out)
{
    uint8_t *pixels = malloc(VIEWS * 3 * CELLS);
    bool good = pixels || fail("", "no memory");
    if (good && tile_buffer_download(p->buffer[PICTURE], 0, pixels, VIEWS * 3 * CELLS, NULL))
        good = fail("", tile_last_error());
    good = good && picture_write(out, 3 * W, VIEWS / 3 * H, PNG_FORMAT_RGB, pixels);
    if (good) printf("%s: six views of the plate, from left to right and down\n", out);
    return free(pixels), good;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4000;
    const char *out = argc > 2 ? argv[2] : "heat.png";
    if (argc > 3 || n < 1 || n > 1 << 24)
        return fputs("usage: 11_heat [STEPS [OUT.png]]\n", stderr), 2;
    Plate *p = calloc(1, sizeof *p);
    double lost = 0, error = -1;
    bool good = p || fail("", "no memory");
    if (good) good = open_plate(p) || fail("", tile_last_error());
    if (good) good = (error = wave(p, n)) >= 0;
    if (good) good = simulate(p, n, &lost) || fail("", tile_last_error());
    if (good) good = save(p, out);
    if (p) buffers_free(&p->buffers), modules_free(&p->modules);
    return free(p), !good || !(error < 1e-4) || !(lost < 1e-4);
}
