/* The programs that ISPC and Halide show (programs.tile) on the CPU device, beside plain C, in
 * turns. One thread, the processor's time, arrays in the second cache.
 *
 *     TILE_THREADS=1 bench_programs [ROUNDS [NAME]]
 *
 * Results are compared, in floats up to each work's tolerance. */
#include "bench_programs.h"
#include "bench_data.h"
#include <stdbool.h>

enum { MOST_ROUNDS = 99, LAUNCHES = 4, MOST_ARRAYS = 4 };

typedef struct Array {
    tile_dtype dtype;
    int bytes, rank;
    int64_t extent[4];
} Array;
typedef struct Program {
    const char *name;
    double tolerance;
    void (*plain)(void *const *p);
    Array arrays[MOST_ARRAYS];
} Program;

#define RANK(...)      (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))
#define ARRAY(t, ...)  {TILE_##t, sizeof(TYPE_##t), RANK(__VA_ARGS__), {__VA_ARGS__}}
#define TYPE_U8        uint8_t
#define TYPE_U16       uint16_t
#define TYPE_I32       int32_t
#define TYPE_F32       float
#define U8(...)        ARRAY(U8, __VA_ARGS__)
#define U16(...)       ARRAY(U16, __VA_ARGS__)
#define I32(...)       ARRAY(I32, __VA_ARGS__)
#define F32(...)       ARRAY(F32, __VA_ARGS__)
#define ROW(name, tolerance, ...) {#name, tolerance, program_##name, {__VA_ARGS__}},
static const Program programs[] = {BENCH_PROGRAMS(ROW)};

typedef struct Run {
    const Program *program;
    tile_kernel *kernel;
    int n;
    size_t elements[MOST_ARRAYS];
    void *arrays[MOST_ARRAYS], *plain[MOST_ARRAYS];
    tile_arg args[MOST_ARRAYS];
} Run;

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Boxes in the order in which a tree of them is walked: each is followed by what is in it, and
 * knows what comes after that. */
static int make_tree(Run *r, int k, int levels, const float *lo, const float *hi)
{
    int axis = levels % 2, next = k + 1;
    memcpy((float *)r->arrays[0] + 3 * k, lo, 3 * sizeof *lo);
    memcpy((float *)r->arrays[1] + 3 * k, hi, 3 * sizeof *hi);
    for (int half = 0; levels && half < 2; half++) {
        float from[3] = {lo[0], lo[1], lo[2]}, to[3] = {hi[0], hi[1], hi[2]};
        float side = (hi[axis] - lo[axis]) * 0.55f;
        if (half)
            from[axis] = hi[axis] - side;
        else
            to[axis] = lo[axis] + side;
        from[2] += 0.01f * (float)(noise() % 16);
        next = make_tree(r, next, levels - 1, from, to);
    }
    ((int32_t *)r->arrays[2])[k] = next;
    return next;
}

/* Numbers between 0 and 1; integers that every type and every table holds. */
static void fill(const Array *a, void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t x = noise() % 256;
        if (a->dtype == TILE_F32)
            ((float *)p)[i] = (float)(x + 1) / 512;
        else if (a->dtype == TILE_U16)
            ((uint16_t *)p)[i] = (uint16_t)(4 * x);
        else if (a->dtype == TILE_I32)
            ((int32_t *)p)[i] = (int32_t)x;
        else
            ((uint8_t *)p)[i] = (uint8_t)x;
    }
}

static Run prepare(tile_module *module, const Program *p)
{
    Run r = {.program = p, .kernel = bench_kernel(module, p->name, NULL)};
    for (; r.n < MOST_ARRAYS && p->arrays[r.n].rank; r.n++) {
        const Array *a = &p->arrays[r.n];
        const int64_t *e = a->extent;
        r.elements[r.n] = 1;
        for (int d = 0; d < a->rank; d++)
            r.elements[r.n] *= (size_t)e[d];
        r.arrays[r.n] = r.plain[r.n] = memory(r.elements[r.n] * (size_t)a->bytes);
        fill(a, r.arrays[r.n], r.elements[r.n]);
        r.args[r.n] = tile_arg_view(r.arrays[r.n], a->dtype, a->rank, e[0], e[1], e[2], e[3], 0,
                                    0, 0, 0);
    }
    r.plain[r.n - 1] = memory(r.elements[r.n - 1] * (size_t)p->arrays[r.n - 1].bytes);
    if (!strcmp(p->name, "tracer"))
        make_tree(&r, 0, 5, (float[]){-1, -1, 0}, (float[]){1, 1, 1});
    return r;
}

static void launch(const Run *r)
{
    for (int i = 0; i < LAUNCHES; i++)
        TRY(tile_launch(r->kernel, NULL, r->args, r->n));
    TRY(tile_stream_synchronize(NULL));
}

/* The part of the elements that differ: floats by more than a thousandth. */
static double part_differs(const Array *a, const char *x, const char *y, size_t n)
{
    size_t differ = 0, bytes = (size_t)a->bytes;
    for (size_t i = 0; i < n; i++, x += bytes, y += bytes)
        differ += a->dtype == TILE_F32 ? !(fabsf(*(const float *)x - *(const float *)y) <= 1e-3f)
                                       : memcmp(x, y, bytes) != 0;
    return (double)differ / (double)n;
}

static void check(const Run *r)
{
    const Program *p = r->program;
    int last = r->n - 1;
    const void *x = r->arrays[last], *y = r->plain[last];
    double part = part_differs(&p->arrays[last], x, y, r->elements[last]);
    double error = p->tolerance > 0 ? differ(x, y, r->elements[last]) : part;
    DEMAND(error <= fabs(p->tolerance), "%s: differs by %g", p->name, error);
}

static void compare(tile_module *module, const Program *p, int rounds)
{
    double ours[MOST_ROUNDS], theirs[MOST_ROUNDS];
    Run r = prepare(module, p);
    for (int i = 0; i < rounds; i++) {
        double from = processor_time();
        launch(&r);
        ours[i] = processor_time() - from;
        from = processor_time();
        for (int k = 0; k < LAUNCHES; k++)
            p->plain(r.plain);
        theirs[i] = processor_time() - from;
    }
    check(&r);
    double a = median(ours, rounds) / LAUNCHES, b = median(theirs, rounds) / LAUNCHES;
    printf("| %s | %.1f | %.1f | %.2f |\n", p->name, 1e6 * a, 1e6 * b, b / a);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    const char *name = argc > 2 ? argv[2] : "";
    tile_module *module;
    DEMAND(rounds > 0 && rounds <= MOST_ROUNDS, "rounds: 1 to %d", MOST_ROUNDS);
    DEMAND(bench_threads() == 1, "TILE_THREADS=1, please");
    TRY(tile_module_load_file(NULL, ROOT "/test/bench/programs.tile", NULL, &module));
    printf("| work | tilec, us | plain C, us | ratio |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strstr(programs[i].name, name))
            compare(module, &programs[i], rounds);
    return 0;
}
