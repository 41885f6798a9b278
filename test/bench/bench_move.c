/* Kernels that move elements, on the CPU device beside plain C, in turns; then tiles whose last
 * axis is short beside tiles of [1, 16]. One thread, the processor's time, arrays in the second
 * cache.
 *
 *     TILE_THREADS=1 bench_move [ROUNDS [NAME]]
 *
 * Results are compared, bit for bit. */
#include "bench_move.h"
#include "bench_data.h"
#include <stdbool.h>

enum { N = 3 << 13, MOST_ROUNDS = 99, LAUNCHES = 64, MOST_BYTES = 8 * N };

static unsigned char *x, *y, *want;

typedef struct Move {
    const char *name;
    int size, of_x, of_y, shape_x, shape_y;
    void (*plain)(const void *x, void *y, int n);
} Move;

#define ROW(type, name, of_x, of_y, shape_x, shape_y)                                              \
    {#name, sizeof(type), of_x, of_y, shape_x, shape_y, plain_##name},
static const Move moves[] = {BENCH_MOVES(ROW)};

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define SHAPED(name, type)                                                                         \
    static tile_arg shaped_##name(type *p, int64_t n, int shape)                                   \
    {                                                                                              \
        return shape > 0   ? tile_view(p, n / shape, shape)                                        \
               : shape < 0 ? tile_view(p, -shape, n / -shape)                                      \
                           : tile_view(p, n);                                                      \
    }
SHAPED(u8, uint8_t)
SHAPED(f32, float)

/* ---- movement ---- */

typedef struct Run {
    tile_kernel *kernel;
    tile_arg args[3];
    int nargs;
} Run;

static void launch(const Run *r)
{
    for (int i = 0; i < LAUNCHES; i++)
        TRY(tile_launch(r->kernel, NULL, r->args, r->nargs));
    TRY(tile_stream_synchronize(NULL));
}

/* An array of the work's type, or of floats. */
static tile_arg array(const Move *m, void *p, bool floats, int64_t n, int shape)
{
    if (m->size == 1 && !floats)
        return shaped_u8(p, n, shape);
    return !strncmp(m->name, "iota", 4) ? tile_view((int32_t *)p, n) : shaped_f32(p, n, shape);
}

static Run prepare(tile_module *module, const Move *m)
{
    Run r = {.kernel = bench_kernel(module, m->name, NULL)};
    bool is_f32 = !strcmp(m->name, "table_f32");
    if (strncmp(m->name, "iota", 4))
        r.args[r.nargs++] = array(m, x, false, N, m->shape_x);
    if (!strncmp(m->name, "table", 5))
        r.args[r.nargs++] = array(m, x + N, is_f32, 256, 0);
    r.args[r.nargs++] = array(m, y, is_f32, (int64_t)N * m->of_y / m->of_x, m->shape_y);
    return r;
}

/* Numbers that every type holds; the table of floats needs none of its own. */
static void fill(const Move *m)
{
    for (int i = 0; i < N + 1024; i++)
        if (m->size == 1)
            x[i] = (unsigned char)noise();
        else
            ((float *)x)[i] = (float)(noise() % 1000);
    for (int i = 0; i < 256 && !strcmp(m->name, "table_f32"); i++)
        ((float *)(x + N))[i] = (float)i / 2;
    memset(y, 1, MOST_BYTES), memset(want, 1, MOST_BYTES);
}

/* Of a block's sums the compilers may contract some: floats may differ in the last bits. */
static void check(const Move *m)
{
    if (!strcmp(m->name, "tree") || !strncmp(m->name, "rgb_f32", 7))
        DEMAND(differ((float *)y, (float *)want, N / (size_t)m->of_x) < 1e-4, "%s", m->name);
    else
        DEMAND(!memcmp(y, want, MOST_BYTES), "%s: results differ", m->name);
}

static void compare(tile_module *module, const Move *m, int rounds)
{
    double ours[MOST_ROUNDS], theirs[MOST_ROUNDS];
    Run r = prepare(module, m);
    fill(m);
    for (int i = 0; i < rounds; i++) {
        double from = processor_time();
        launch(&r);
        ours[i] = processor_time() - from;
        from = processor_time();
        for (int k = 0; k < LAUNCHES; k++)
            m->plain(x, want, N);
        theirs[i] = processor_time() - from;
    }
    check(m);
    double a = median(ours, rounds) / LAUNCHES, b = median(theirs, rounds) / LAUNCHES;
    printf("| %s | %.2f | %.2f | %.2f |\n", m->name, 1e6 * a, 1e6 * b, b / a);
    fflush(stdout);
}

/* ---- short axes ---- */

static const struct Tile {
    int rows, columns, width; /* width: of the array */
} tiles[] = {{4, 4, 256},  {8, 8, 256}, {2, 8, 256}, {16, 2, 256}, {16, 3, 256}, {64, 1, 1},
             {64, 1, 256}, {16, 3, 3},  {64, 3, 3},  {64, 4, 4},   {64, 5, 5}};
static const char *const tiled[] = {"carried", "heavy",  "moved",    "apart",
                                    "scaled",  "turned", "in_place", "stencil"};

/* Rows that are apart, as the kernel may not know: of x, as of images with one channel more. */
static tile_arg rows_of(float *p, int h, int width, bool apart)
{
    return tile_view_strided(p, 2, ((int64_t[]){h, width}), ((int64_t[]){width + apart, 1}));
}

static Run tile_run(tile_module *module, const char *name, struct Tile t)
{
    tile_const consts[] = {{"BH", t.rows, NULL}, {"BW", t.columns, NULL}, {0}};
    int h = N / 4 / t.width;
    return (Run){bench_kernel(module, name, consts),
                 {rows_of((float *)x, h, t.width, !strcmp(name, "apart")),
                  rows_of((float *)y, h, t.width, false)},
                 2};
}

static void compare_tiles(tile_module *module, const char *name, int rounds)
{
    const int n = sizeof tiles / sizeof *tiles;
    for (int i = 0; i < N; i++)
        ((float *)x)[i] = (float)(noise() % 1000) / 1000;
    for (int k = 0; k < n; k++) {
        Run ours = tile_run(module, name, tiles[k]),
            flat = tile_run(module, name, (struct Tile){1, 16, 256});
        double a[MOST_ROUNDS], b[MOST_ROUNDS];
        for (int i = 0; i < rounds; i++) {
            double from = processor_time();
            launch(&ours);
            a[i] = processor_time() - from;
            from = processor_time();
            launch(&flat);
            b[i] = processor_time() - from;
        }
        double t = median(a, rounds) / LAUNCHES, u = median(b, rounds) / LAUNCHES;
        printf("| %s [%d, %d] of [N, %d] | %.2f | %.2f | %.2f |\n", name, tiles[k].rows,
               tiles[k].columns, tiles[k].width, 1e6 * t, 1e6 * u, u / t);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 15;
    const char *name = argc > 2 ? argv[2] : "";
    tile_module *module;
    DEMAND(rounds > 0 && rounds <= MOST_ROUNDS, "rounds: 1 to %d", MOST_ROUNDS);
    DEMAND(bench_threads() == 1, "TILE_THREADS=1, please");
    TRY(tile_module_load_file(NULL, ROOT "/test/bench/move.tile", NULL, &module));
    x = memory(MOST_BYTES), y = memory(MOST_BYTES), want = memory(MOST_BYTES);
    printf("| work | tilec, us | plain C or [1, 16], us | ratio |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (strstr(moves[i].name, name))
            compare(module, &moves[i], rounds);
    for (size_t i = 0; i < sizeof tiled / sizeof *tiled; i++)
        if (strstr(tiled[i], name))
            compare_tiles(module, tiled[i], rounds);
    return 0;
}
