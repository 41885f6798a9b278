/* The programs that ISPC and Halide show (programs.tile) on the CPU device, beside plain C, in
 * turns. One thread, the processor's time, arrays in the second cache.
 *
 *     TILE_THREADS=1 bench_programs [ROUNDS [NAME [LIBRARY]]]
 *
 * Results are compared, in floats up to each work's tolerance. A LIBRARY has the works, or some,
 * by another peer: program_NAME as in bench_programs.h (peers/ispc_programs.py). */
#include "bench_programs.h"
#include "bench_data.h"
#include <dlfcn.h>
#include <stdbool.h>

enum { MOST_ROUNDS = 99, LAUNCHES = 4, MOST_ARRAYS = 4 };
enum { OURS, PLAIN, OTHER, WAYS };

typedef struct Array {
    tile_dtype dtype;
    int bytes, rank;
    int64_t extent[4];
} Array;
typedef void Peer(void *const *p);
typedef struct Program {
    const char *name;
    double tolerance;
    Peer *plain;
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
    void *arrays[WAYS][MOST_ARRAYS]; /* which differ in the last, the result */
    Peer *peers[WAYS];
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
    memcpy((float *)r->arrays[OURS][0] + 3 * k, lo, 3 * sizeof *lo);
    memcpy((float *)r->arrays[OURS][1] + 3 * k, hi, 3 * sizeof *hi);
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
    ((int32_t *)r->arrays[OURS][2])[k] = next;
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

/* The work of that name in the library, or NULL. */
static Peer *find(void *library, const char *name)
{
    char symbol[64];
    Peer *peer = NULL;
    snprintf(symbol, sizeof symbol, "program_%s", name);
    void *found = library ? dlsym(library, symbol) : NULL;
    memcpy(&peer, &found, sizeof peer);
    return peer;
}

static Run prepare(tile_module *module, const Program *p, void *library)
{
    Run r = {.program = p,
             .kernel = bench_kernel(module, p->name, NULL),
             .peers = {[PLAIN] = p->plain, [OTHER] = find(library, p->name)}};
    for (; r.n < MOST_ARRAYS && p->arrays[r.n].rank; r.n++) {
        const Array *a = &p->arrays[r.n];
        const int64_t *e = a->extent;
        r.elements[r.n] = 1;
        for (int d = 0; d < a->rank; d++)
            r.elements[r.n] *= (size_t)e[d];
        void *data = memory(r.elements[r.n] * (size_t)a->bytes);
        for (int way = 0; way < WAYS; way++)
            r.arrays[way][r.n] = data;
        fill(a, data, r.elements[r.n]);
        r.args[r.n] = tile_arg_view(data, a->dtype, a->rank, e[0], e[1], e[2], e[3], 0, 0, 0, 0);
    }
    int last = r.n - 1;
    for (int way = PLAIN; way < WAYS; way++)
        r.arrays[way][last] = memory(r.elements[last] * (size_t)p->arrays[last].bytes);
    if (!strncmp(p->name, "tracer", 6))
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

static void check(const Run *r, int way)
{
    const Program *p = r->program;
    int last = r->n - 1;
    const void *x = r->arrays[way][last], *y = r->arrays[PLAIN][last];
    double part = part_differs(&p->arrays[last], x, y, r->elements[last]);
    double error = p->tolerance > 0 ? differ(x, y, r->elements[last]) : part;
    DEMAND(error <= fabs(p->tolerance), "%s: %s differs by %g", p->name,
           way == OURS ? "tilec" : "the library", error);
}

static double timed(const Run *r, int way)
{
    double from = processor_time();
    if (way == OURS)
        launch(r);
    for (int k = 0; way != OURS && k < LAUNCHES; k++)
        r->peers[way](r->arrays[way]);
    return (processor_time() - from) / LAUNCHES;
}

static void compare(tile_module *module, const Program *p, int rounds, void *library)
{
    double times[WAYS][MOST_ROUNDS], us[WAYS], best = INFINITY;
    Run r = prepare(module, p, library);
    int ways = !library ? OTHER : WAYS;
    if (library && !r.peers[OTHER])
        return;
    for (int i = 0; i < rounds; i++)
        for (int way = 0; way < ways; way++)
            times[way][i] = timed(&r, way);
    printf("| %s |", p->name);
    for (int way = 0; way < ways; way++) {
        check(&r, way);
        us[way] = 1e6 * median(times[way], rounds);
        best = way == OURS ? best : fmin(best, us[way]);
        printf(" %.1f |", us[way]);
    }
    printf(" %.2f |\n", best / us[OURS]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    const char *name = argc > 2 ? argv[2] : "";
    void *library = argc > 3 ? dlopen(argv[3], RTLD_NOW) : NULL;
    tile_module *module;
    DEMAND(argc < 4 || library, "%s", dlerror());
    DEMAND(rounds > 0 && rounds <= MOST_ROUNDS, "rounds: 1 to %d", MOST_ROUNDS);
    DEMAND(bench_threads() == 1, "TILE_THREADS=1, please");
    TRY(tile_module_load_file(NULL, ROOT "/test/bench/programs.tile", NULL, &module));
    printf("| work | tilec, us | plain C, us |%s ratio |\n| --- | --- | --- |%s --- |\n",
           library ? " library, us |" : "", library ? " --- |" : "");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strstr(programs[i].name, name))
            compare(module, &programs[i], rounds, library);
    return 0;
}
