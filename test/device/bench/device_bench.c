/* device_bench: times of the kernels that everybody has, as lines of JSON:
 *
 *     device_bench DEVICE [--quick] [-k NAME]       device_bench DEVICE --info
 *
 * Each launch lies between two events; the figure is the median of many. Arrays of the full sizes
 * are larger than any cache, so what is read comes from memory; the matrix product is bound by
 * arithmetic. The row `launch` is the host's time for a launch that is not waited for. A few
 * results are compared with plain C in double precision. peers.py times the same with PyTorch and
 * Triton. --quick: small sizes, for the emulator. Run in the root of the tree. */
#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_ARRAYS = 4, WARM = 3, REPEAT = 30 };

typedef struct Size {
    int64_t m, n, k;
} Size;
typedef struct Row {
    const char *name, *file, *kernel;
    Size full, quick;
    tile_const consts[4];
    int warps; /* 0: the compiler's choice */
} Row;

#define EXAMPLE(dir, name) "examples/" dir "/" name ".tile"
static const Row rows[] = {
    {"vector_add",
     EXAMPLE("01_vector_add", "vector_add"),
     "vector_add",
     {1 << 26, 1, 1},
     {1000, 1, 1},
     {{"B", 1024, NULL}},
     0},
    {"vector_add",
     EXAMPLE("01_vector_add", "vector_add"),
     "vector_add",
     {1 << 26, 1, 1},
     {1000, 1, 1},
     {{"B", 4096, NULL}},
     0},
    {"softmax",
     EXAMPLE("02_softmax", "softmax"),
     "softmax",
     {16384, 4096, 1},
     {3, 100, 1},
     {{"B", -1, NULL}},
     0},
    {"softmax",
     EXAMPLE("02_softmax", "softmax"),
     "softmax",
     {65536, 781, 1},
     {5, 33, 1},
     {{"B", -1, NULL}},
     0},
    {"layernorm",
     EXAMPLE("04_layernorm", "layernorm"),
     "layernorm",
     {16384, 4096, 1},
     {3, 100, 1},
     {{"B", -1, NULL}},
     0},
    {"launch",
     EXAMPLE("01_vector_add", "vector_add"),
     "vector_add",
     {1024, 1, 1},
     {100, 1, 1},
     {{"B", 1024, NULL}},
     0},
    {"matmul_f32",
     EXAMPLE("03_matmul", "matmul"),
     "matmul",
     {2048, 2048, 2048},
     {40, 33, 35},
     {{"BM", 64, NULL}, {"BN", 64, NULL}, {"BK", 32, NULL}},
     4},
    {"matmul_f32",
     EXAMPLE("03_matmul", "matmul"),
     "matmul",
     {2048, 2048, 2048},
     {40, 33, 35},
     {{"BM", 128, NULL}, {"BN", 64, NULL}, {"BK", 16, NULL}},
     8},
};

typedef struct Bench {
    const Row *row;
    Size size;
    bool quick;
    tile_device *device;
    tile_module *module;
    tile_kernel *kernel;
    tile_event *begin, *end;
    int narrays;
    size_t count[MAX_ARRAYS]; /* the last is what is written */
    float *host[MAX_ARRAYS];
    tile_buffer *buffer[MAX_ARRAYS];
    tile_arg args[MAX_ARRAYS];
    double bytes, flops, us, best, compile_ms, error;
} Bench;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool is(const Bench *b, const char *name)
{
    return strcmp(b->row->name, name) == 0;
}

static bool adds(const Bench *b)
{
    return is(b, "vector_add") || is(b, "launch");
}

/* ---- arrays ---- */

static bool add_array(Bench *b, int64_t rows_, int64_t cols)
{
    int i = b->narrays++;
    size_t n = (size_t)(rows_ * (cols ? cols : 1));
    b->count[i] = n;
    b->host[i] = malloc(n * 4);
    if (!b->host[i] || tile_buffer_alloc(b->device, n * 4, &b->buffer[i]))
        return false;
    uint32_t seed = 12345u + (uint32_t)i; /* not zeros: chips are faster on those */
    for (size_t j = 0; j < n; j++) {
        seed = seed * 1664525u + 1013904223u;
        b->host[i][j] = (float)(int32_t)seed * 0x1p-31f;
    }
    float *p = tile_buffer_ptr(b->buffer[i]);
    b->args[i] = cols ? tile_view(p, rows_, cols) : tile_view(p, rows_);
    return tile_buffer_upload(b->buffer[i], 0, b->host[i], n * 4, NULL) == TILE_OK;
}

static bool make_arrays(Bench *b)
{
    int64_t m = b->size.m, n = b->size.n, k = b->size.k;
    double all = (double)m * (double)n;
    if (adds(b)) {
        b->bytes = 12.0 * (double)m;
        b->flops = (double)m;
        return add_array(b, m, 0) && add_array(b, m, 0) && add_array(b, m, 0);
    }
    b->bytes = 8 * all;
    if (is(b, "softmax")) {
        b->flops = 5 * all;
        return add_array(b, m, n) && add_array(b, m, n);
    }
    if (is(b, "layernorm")) {
        b->flops = 8 * all;
        return add_array(b, m, n) && add_array(b, n, 0) && add_array(b, n, 0) && add_array(b, m, n);
    }
    b->bytes = 4 * ((double)m * (double)k + (double)k * (double)n + all);
    b->flops = 2 * all * (double)k;
    return add_array(b, m, k) && add_array(b, k, n) && add_array(b, m, n);
}

/* ---- what should come out, of a few elements ---- */

static double want_norm(const Bench *b, int64_t r, int64_t c)
{
    int64_t n = b->size.n;
    const float *x = b->host[0] + r * n;
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < n; j++)
        mean += x[j] / (double)n;
    for (int64_t j = 0; j < n; j++)
        squares += (x[j] - mean) * (x[j] - mean) / (double)n;
    return (x[c] - mean) / sqrt(squares + 1e-5) * b->host[1][c] + b->host[2][c];
}

static double want(const Bench *b, size_t i)
{
    int64_t n = b->size.n, r = (int64_t)i / n, c = (int64_t)i % n;
    double sum = 0;
    if (adds(b))
        return b->host[0][i] + b->host[1][i];
    if (is(b, "layernorm"))
        return want_norm(b, r, c);
    if (is(b, "softmax")) {
        for (int64_t j = 0; j < n; j++)
            sum += exp((double)b->host[0][r * n + j]);
        return exp((double)b->host[0][i]) / sum;
    }
    for (int64_t j = 0; j < b->size.k; j++)
        sum += (double)b->host[0][r * b->size.k + j] * b->host[1][j * n + c];
    return sum;
}

/* Largest error of 100 elements, relative to the largest value among them. */
static bool compare(Bench *b)
{
    int last = b->narrays - 1;
    size_t n = b->count[last], step = n < 100 ? 1 : n / 100;
    double top = 0;
    float *got = malloc(n * 4);
    if (!got || tile_buffer_download(b->buffer[last], 0, got, n * 4, NULL)) {
        free(got);
        return false;
    }
    b->error = 0;
    for (size_t i = step / 2; i < n; i += step) {
        double w = want(b, i), e = fabs(got[i] - w);
        top = fmax(top, fabs(w));
        b->error = e >= 0 ? fmax(b->error, e) : INFINITY;
    }
    b->error /= top;
    free(got);
    return true;
}

/* ---- time ---- */

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What the host spends on a launch, many of them in a row, none waited for. */
static bool measure_launches(Bench *b)
{
    double times[REPEAT];
    int n = b->quick ? 1 : REPEAT, burst = b->quick ? 2 : 200;
    for (int i = 0; i < n; i++) {
        double start = now_ms();
        for (int j = 0; j < burst; j++)
            if (tile_launch(b->kernel, NULL, b->args, (size_t)b->narrays))
                return false;
        times[i] = (now_ms() - start) * 1e3 / burst;
        if (tile_device_synchronize(b->device))
            return false;
    }
    qsort(times, (size_t)n, sizeof *times, by_time);
    b->us = times[n / 2];
    b->best = times[0];
    return true;
}

static bool measure(Bench *b)
{
    double times[REPEAT], ms;
    int n = b->quick ? 1 : REPEAT, warm = b->quick ? 0 : WARM;
    for (int i = -warm; i < n; i++) {
        if (tile_event_record(b->begin, NULL) ||
            tile_launch(b->kernel, NULL, b->args, (size_t)b->narrays) ||
            tile_event_record(b->end, NULL) || tile_device_synchronize(b->device) ||
            tile_event_elapsed(b->begin, b->end, &ms))
            return false;
        if (i >= 0)
            times[i] = ms * 1e3;
    }
    qsort(times, (size_t)n, sizeof *times, by_time);
    b->us = times[n / 2];
    b->best = times[0];
    return true;
}

static int64_t power_of_two(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static bool load(Bench *b)
{
    tile_jit_options options = TILE_JIT_OPTIONS_INIT;
    tile_const consts[5] = {{0}};
    for (int i = 0; i < 4 && b->row->consts[i].name; i++) {
        consts[i] = b->row->consts[i];
        if (consts[i].value < 0)
            consts[i].value = power_of_two(b->size.n);
    }
    options.warps = b->row->warps;
    double start = now_ms();
    if (tile_module_load_file(b->device, b->row->file, &options, &b->module) ||
        tile_kernel_get(b->module, b->row->kernel, consts, &b->kernel) ||
        tile_kernel_prepare(b->kernel))
        return false;
    b->compile_ms = now_ms() - start;
    return true;
}

/* ---- rows ---- */

static void put_text(const char *key, const char *text)
{
    printf("\"%s\": \"", key);
    for (; *text; text++)
        printf((unsigned char)*text < ' ' ? " " : strchr("\"\\", *text) ? "\\%c" : "%c", *text);
    printf("\"");
}

static void put_row(const Bench *b)
{
    char variant[128] = "";
    for (int i = 0; i < 4 && b->row->consts[i].name; i++)
        if (b->row->consts[i].value > 0)
            snprintf(variant + strlen(variant), sizeof variant - strlen(variant), "%s%s=%d",
                     i ? " " : "", b->row->consts[i].name, (int)b->row->consts[i].value);
    printf("{");
    put_text("what", b->row->name);
    printf(", \"size\": [%lld, %lld, %lld], ", (long long)b->size.m, (long long)b->size.n,
           (long long)b->size.k);
    put_text("variant", variant);
}

static bool run_row(Bench *b)
{
    bool ran = load(b) && make_arrays(b) && !tile_event_create(b->device, &b->begin) &&
               !tile_event_create(b->device, &b->end) &&
               (is(b, "launch") ? measure_launches(b) : measure(b)) && compare(b);
    put_row(b);
    if (ran)
        printf(", \"us\": %.3f, \"best_us\": %.3f, \"gb_s\": %.1f, \"gflop_s\": %.1f, "
               "\"compile_ms\": %.1f, \"error\": %.3g}\n",
               b->us, b->best, b->bytes / b->us * 1e-3, b->flops / b->us * 1e-3, b->compile_ms,
               b->error);
    else
        printf(", "), put_text("failed", tile_last_error()), printf("}\n");
    fflush(stdout);
    for (int i = 0; i < b->narrays; i++) {
        tile_buffer_free(b->buffer[i]);
        free(b->host[i]);
    }
    tile_event_free(b->begin);
    tile_event_free(b->end);
    tile_module_free(b->module);
    return ran && b->error < 1e-4;
}

static int info(tile_device *device)
{
    tile_device_info i = TILE_DEVICE_INFO_INIT;
    tile_device_get_info(device, &i);
    printf("{");
    put_text("name", i.name);
    printf(", ");
    put_text("target", i.target);
    printf(", \"processors\": %d, \"memory_bytes\": %llu}\n", i.processors,
           (unsigned long long)i.memory_bytes);
    return 0;
}

int main(int argc, char **argv)
{
    bool quick = false, only_info = false;
    const char *only = NULL;
    int bad = 0;
    tile_device *device = NULL;
    for (int i = 2; i < argc; i++) {
        quick |= strcmp(argv[i], "--quick") == 0;
        only_info |= strcmp(argv[i], "--info") == 0;
        if (strcmp(argv[i], "-k") == 0 && i + 1 < argc)
            only = argv[++i];
    }
    if (argc < 2 || tile_device_open(argv[1], &device) || tile_set_default_device(device)) {
        fprintf(stderr, "%s\n",
                argc < 2 ? "device_bench DEVICE [--quick] [-k NAME]" : tile_last_error());
        return 2;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !only_info; i++) {
        Bench b = {.row = &rows[i],
                   .size = quick ? rows[i].quick : rows[i].full,
                   .quick = quick,
                   .device = device};
        if (!only || strstr(rows[i].name, only))
            bad += !run_row(&b);
    }
    if (only_info)
        info(device);
    tile_set_default_device(NULL);
    tile_device_close(device);
    return bad > 0;
}
