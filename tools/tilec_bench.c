/* tilec_bench.c: tilec bench: how fast a kernel is for each size, and how fast the device's memory
 * and products allow it to be.
 *
 * A sample is a series of launches that together take at least 0.2 ms; the time of one launch is
 * that divided by their number. Samples are taken for --seconds; the median counts. Inputs stay in
 * place, so small ones are in the caches. The limits are measured in the same run: a copy of 64
 * MiB, and, if operations are counted, a product of matrices of the type of the kernel's own, large
 * enough for all processors, and short, as a long one finds no quiet moment. Where a kernel is
 * faster than they allow, they were measured under load: then again. */
#define TILE_UNSTABLE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/support/number.h"
#include "tools/bench_plot.h"
#include "tools/formula.h"
#include "tools/run_args.h"
#include "tools/sizes.h"
#include "tools/tuned.h"

/* A format of the type of matrices and of that of their sums. */
static const char LIMITS[] =
    "kernel copy(const f32 x[N], f32 y[N])\n"
    "    grid(cdiv(N, 4096))\n"
    "{\n"
    "    y[pid(0) * 4096 +: 4096] = x[pid(0) * 4096 +: 4096];\n"
    "}\n"
    "kernel product(const T A[M, K], const T B[K, N], S C[M, N],\n"
    "               const type T = %s, const type S = %s)\n"
    "    grid(cdiv(M, 128), cdiv(N, 64))\n"
    "{\n"
    "    tile<S, 128, 64> sum = 0;\n"
    "    for (int k : range(0, K, 32)) pipeline\n"
    "        sum = dot(A[pid(0) * 128 +: 128, k +: 32], B[k +: 32, pid(1) * 64 +: 64], sum);\n"
    "    C[pid(0) * 128 +: 128, pid(1) * 64 +: 64] = sum;\n"
    "}\n";
enum { COPIED = 1 << 24, SMALLEST = 256, LARGEST = 4096, MOST_TRIES = 4 };

/* Types of matrices whose products have a roof of their own, and of their sums. */
static const struct {
    tile_dtype type, sum;
} ROOFS[] = {{TILE_F32, TILE_F32}, {TILE_F16, TILE_F32}, {TILE_BF16, TILE_F32},
             {TILE_F64, TILE_F64}, {TILE_I8, TILE_I32}};
enum { NROOFS = sizeof ROOFS / sizeof *ROOFS };

enum { SAMPLES = 1000, LEAST_SAMPLES = 5 };
static const double SAMPLE_SECONDS = 2e-4;

typedef struct Bench {
    const Options *o;
    tile_device *device;
    tile_device_info info;
    double seconds; /* for each size */
    BenchLimits limits;
    int roof;               /* of ROOFS */
    tile_module *of_limits; /* NULL: nothing is measured for them */
    int tries;
    BenchPoint *points;
    size_t npoints;
} Bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int run_error(void)
{
    fprintf(stderr, "%s\n", tile_last_error());
    return EXIT_RUN;
}

/* ---- timing ---- */

/* Seconds of n launches. */
static tile_status time_launches(tile_device *device, tile_kernel *kernel, const tile_arg *args,
                                 size_t nargs, size_t n, double *out)
{
    double start = now();
    tile_status status = TILE_OK;
    for (size_t i = 0; i < n && status == TILE_OK; i++)
        status = tile_launch(kernel, NULL, args, nargs);
    if (status == TILE_OK)
        status = tile_device_synchronize(device);
    *out = now() - start;
    return status;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tile_status measure(tile_device *device, tile_kernel *kernel, const tile_arg *args,
                           size_t nargs, double seconds, BenchPoint *p)
{
    double samples[SAMPLES], t;
    size_t n = 1, len = 0;
    tile_status status = tile_launch_prepare(kernel, args, nargs, NULL);
    if (status == TILE_OK)
        status = time_launches(device, kernel, args, nargs, 1, &t);
    do {
        if (status == TILE_OK)
            status = time_launches(device, kernel, args, nargs, n, &t);
        if (status != TILE_OK)
            return status;
    } while (t < SAMPLE_SECONDS && (n *= 2) < (size_t)1 << 20);
    double end = now() + seconds;
    while (status == TILE_OK && len < SAMPLES && (len < LEAST_SAMPLES || now() < end)) {
        status = time_launches(device, kernel, args, nargs, n, &t);
        samples[len++] = t / (double)n;
    }
    qsort(samples, len, sizeof *samples, by_time);
    p->seconds = samples[len / 2];
    p->best = samples[0];
    p->worst = samples[len - 1];
    return status;
}

/* ---- what the device can do ---- */

typedef struct Limit {
    const char *kernel;
    uint64_t bytes[3];
    tile_arg args[3];
    size_t nargs;
    tile_buffer *buffers[3];
} Limit;

static tile_status run_limit(const Bench *b, tile_module *module, Limit *l, BenchPoint *p)
{
    tile_kernel *kernel;
    tile_status status = tile_kernel_get(module, l->kernel, NULL, &kernel);
    for (size_t i = 0; i < l->nargs && status == TILE_OK; i++) {
        status = tile_buffer_alloc(b->device, l->bytes[i], &l->buffers[i]);
        if (status == TILE_OK)
            status = tile_buffer_fill(l->buffers[i], 0, 0, l->bytes[i], NULL);
        if (status == TILE_OK)
            l->args[i].address = tile_buffer_ptr(l->buffers[i]);
    }
    if (status == TILE_OK)
        status = measure(b->device, kernel, l->args, l->nargs, 0.2, p);
    for (size_t i = 0; i < l->nargs; i++)
        tile_buffer_free(l->buffers[i]);
    return status;
}

/* The product's size: four of its programs, of 128 x 64 elements, for each processor. */
static int64_t size_of_product(const Bench *b)
{
    int64_t n = SMALLEST;
    while (n < LARGEST && n * n < INT64_C(4) * 128 * 64 * b->info.processors)
        n *= 2;
    return n;
}

/* Again, the greatest speeds count. */
static tile_status measure_limits(Bench *b)
{
    BenchPoint p;
    const tile_dtype type = ROOFS[b->roof].type, sum = ROOFS[b->roof].sum;
    const int64_t n = size_of_product(b);
    const uint64_t square = (uint64_t)(n * n);
    Limit copy = {
        "copy",
        {(uint64_t)COPIED * 4, (uint64_t)COPIED * 4},
        {tile_view_typed(TILE_F32, NULL, COPIED), tile_view_typed(TILE_F32, NULL, COPIED)},
        2,
        {NULL}};
    tile_arg factor = tile_view_typed(type, NULL, n, n);
    uint64_t bytes = square * (uint64_t)tile_dtype_bits(type) / 8;
    Limit product = {"product",
                     {bytes, bytes, square * (uint64_t)tile_dtype_bits(sum) / 8},
                     {factor, factor, tile_view_typed(sum, NULL, n, n)},
                     3,
                     {NULL}};
    tile_status status = run_limit(b, b->of_limits, &copy, &p);
    if (status == TILE_OK)
        b->limits.bytes_per_second = fmax(b->limits.bytes_per_second, 8.0 * COPIED / p.best);
    if (status == TILE_OK && b->o->flops)
        status = run_limit(b, b->of_limits, &product, &p);
    if (status == TILE_OK && b->o->flops)
        b->limits.flops_per_second =
            fmax(b->limits.flops_per_second, 2.0 * (double)(n * n) * (double)n / p.best);
    b->tries++;
    return status;
}

/* The interpreter and the emulators are not for speed. */
static bool is_for_speed(const Bench *b)
{
    const char *name = b->o->device ? b->o->device : getenv("TILE_DEVICE");
    return !name || (strncmp(name, "ref", 3) != 0 && strncmp(name, "emu", 3) != 0);
}

/* That of the first array that is read and has such a type; f32 where none has. */
static int roof_of(const RunArgs *args)
{
    for (size_t i = 0; i < args->len; i++)
        for (int k = 0; k < NROOFS; k++)
            if (args->data[i].param.is_const && args->data[i].param.kind != TILE_ARG_SCALAR &&
                args->data[i].param.dtype == ROOFS[k].type)
                return k;
    return 0;
}

static int find_limits(Bench *b)
{
    char source[1024];
    tilec_output *output = NULL;
    const tilec_options o = {.struct_size = sizeof o,
                             .target = tilec_device_target(b->info.target),
                             .cache = b->o->compile.cache};
    size_t size;
    if (!is_for_speed(b))
        return EXIT_FINE;
    int length = snprintf(source, sizeof source, LIMITS, tile_dtype_name(ROOFS[b->roof].type),
                          tile_dtype_name(ROOFS[b->roof].sum));
    tilec_status compiled =
        tilec_compile_source("limits.tile", source, (size_t)length, &o, &output);
    int status = report_compile(compiled, output);
    const void *image = tilec_output_data(output, &size);
    if (status == EXIT_FINE &&
        (tile_module_load_image(b->device, image, size, &b->of_limits) != TILE_OK ||
         measure_limits(b) != TILE_OK))
        status = run_error();
    tilec_output_free(output);
    return status;
}

static void say_limits(const Bench *b)
{
    if (b->limits.bytes_per_second <= 0 || b->o->json)
        return;
    printf("%s: copy %s GB/s", b->info.name, TL_NUMBER("%.1f", b->limits.bytes_per_second * 1e-9));
    if (b->o->flops)
        printf(", product of %s %s GFLOP/s", tile_dtype_name(ROOFS[b->roof].type),
               TL_NUMBER("%.1f", b->limits.flops_per_second * 1e-9));
    putchar('\n');
}

/* Before the first measurement, when all arguments are known to be right. */
static int limits_once(Bench *b, const RunArgs *args)
{
    if (b->npoints)
        return EXIT_FINE;
    b->roof = roof_of(args);
    int status = find_limits(b);
    if (status == EXIT_FINE)
        say_limits(b);
    return status;
}

/* A kernel that is faster than its limits: they were measured while others used the machine. */
static int raise_limits(Bench *b, const BenchPoint *p)
{
    while (b->of_limits && b->tries < MOST_TRIES && bench_least(p, &b->limits) > p->seconds)
        if (measure_limits(b) != TILE_OK)
            return run_error();
    return EXIT_FINE;
}

/* ---- one size ---- */

/* Each array is read or written once. */
static double bytes_of(const RunArgs *args)
{
    double bytes = 0;
    for (size_t i = 0; i < args->len; i++)
        if (!args->data[i].same_as)
            bytes += (double)args->data[i].bytes;
    return bytes;
}

static int count(const Bench *b, const RunArgs *args, const char *sizes, BenchPoint *p)
{
    char why[256];
    p->bytes = bytes_of(args);
    p->flops = 0;
    if (b->o->flops && !formula_value(b->o->flops, sizes, &p->flops, why, sizeof why))
        return usage_error("--flops '%s': %s", b->o->flops, why);
    if (b->o->bytes && !formula_value(b->o->bytes, sizes, &p->bytes, why, sizeof why))
        return usage_error("--bytes '%s': %s", b->o->bytes, why);
    return EXIT_FINE;
}

static int compile(const Bench *b, const Options *with, tilec_output **out_output)
{
    tilec_options c = with->compile;
    Tuned tuned;
    c.target = tilec_device_target(b->info.target);
    c.emit = "image";
    c.one_kernel = 1;
    int status = tuned_read_device(with, b->device, &c, &tuned);
    if (status == EXIT_FINE) {
        tilec_status compiled = tilec_compile_file(with->input, &c, out_output);
        status = report_compile(compiled, *out_output);
    }
    tuned_free(&tuned);
    return status;
}

static int measure_image(Bench *b, const Options *with, const char *sizes, tilec_output *output,
                         BenchPoint *p)
{
    size_t size;
    const void *image = tilec_output_data(output, &size);
    tile_module *module = NULL;
    tile_kernel *kernel;
    RunArgs args = {0};
    tile_arg *launch = NULL;
    if (tile_module_load_image(b->device, image, size, &module) != TILE_OK ||
        tile_kernel_get(module, tile_module_kernel_name(module, 0), NULL, &kernel) != TILE_OK) {
        tile_module_free(module);
        return run_error();
    }
    int status = run_args_make(with, kernel, image, &args);
    if (status == EXIT_FINE)
        status = run_args_upload(&args, b->device, &launch);
    if (status == EXIT_FINE)
        status = count(b, &args, sizes, p);
    if (status == EXIT_FINE)
        status = limits_once(b, &args);
    if (status == EXIT_FINE &&
        measure(b->device, kernel, launch, args.nparams, b->seconds, p) != TILE_OK)
        status = run_error();
    run_args_free(&args);
    free(launch);
    tile_module_free(module);
    return status;
}

static void say(const Bench *b, const BenchPoint *p)
{
    double least = bench_least(p, &b->limits);
    if (b->o->json) {
        printf("{\"sizes\": \"%s\", \"seconds\": %s, \"best\": %s, \"worst\": %s, "
               "\"bytes\": %s, \"flops\": %s, \"copy_bytes_per_second\": %s, "
               "\"product_flops_per_second\": %s}\n",
               p->sizes, TL_NUMBER("%.6g", p->seconds), TL_NUMBER("%.6g", p->best),
               TL_NUMBER("%.6g", p->worst), TL_NUMBER("%.6g", p->bytes),
               TL_NUMBER("%.6g", p->flops), TL_NUMBER("%.6g", b->limits.bytes_per_second),
               TL_NUMBER("%.6g", b->limits.flops_per_second));
        return;
    }
    printf("%-32s %s ms %s GB/s", p->sizes, TL_NUMBER("%11.4f", p->seconds * 1e3),
           TL_NUMBER("%9.2f", p->bytes / p->seconds * 1e-9));
    if (b->o->flops)
        printf(" %s GFLOP/s", TL_NUMBER("%10.2f", p->flops / p->seconds * 1e-9));
    if (least > 0)
        printf("  %s%% of the limit", TL_NUMBER("%4.0f", 100 * least / p->seconds));
    printf("  (%s to %s)\n", TL_NUMBER("%.4f", p->best * 1e3), TL_NUMBER("%.4f", p->worst * 1e3));
    fflush(stdout);
}

static int bench_sizes(const Options *with, const char *sizes, void *user)
{
    Bench *b = user;
    tilec_output *output = NULL;
    BenchPoint *more = realloc(b->points, (b->npoints + 1) * sizeof *more);
    if (!more)
        return out_of_memory();
    b->points = more;
    BenchPoint *p = &b->points[b->npoints];
    snprintf(p->sizes, sizeof p->sizes, "%s", sizes);
    int status = compile(b, with, &output);
    if (status == EXIT_FINE)
        status = measure_image(b, with, sizes, output, p);
    tilec_output_free(output);
    if (status == EXIT_FINE)
        status = raise_limits(b, p);
    if (status == EXIT_FINE) {
        b->npoints++;
        say(b, p);
    }
    return status;
}

/* ---- all ---- */

static int write_plot(const Bench *b)
{
    char *text = NULL, title[512], legend[80];
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    snprintf(title, sizeof title, "%s%s%s on %s", b->o->input, b->o->compile.kernel ? ", " : "",
             b->o->compile.kernel ? b->o->compile.kernel : "", b->info.name);
    snprintf(legend, sizeof legend, "red: what a copy%s%s", b->o->flops ? " and a product of " : "",
             b->o->flops ? tile_dtype_name(ROOFS[b->roof].type) : "");
    snprintf(legend + strlen(legend), sizeof legend - strlen(legend), " allow%s",
             b->o->flops ? "" : "s");
    if (f)
        bench_plot(f, title, legend, b->points, b->npoints, &b->limits);
    if (!f || fclose(f) != 0) {
        free(text);
        return out_of_memory();
    }
    Outputs outputs = {.program = "tilec"};
    bool ok = output_write(&outputs, b->o->svg, text, size) && output_commit(&outputs);
    output_drop(&outputs);
    free(text);
    return ok ? EXIT_FINE : EXIT_USAGE;
}

static int open_device(Bench *b)
{
    b->info = (tile_device_info)TILE_DEVICE_INFO_INIT;
    const char *name = b->o->device ? b->o->device : getenv("TILE_DEVICE");
    tile_status status = tile_device_open(name && *name ? name : "cpu", &b->device);
    if (status == TILE_BAD_ARGUMENT)
        return usage_error("%s", tile_last_error());
    if (status == TILE_OK)
        status = tile_device_get_info(b->device, &b->info);
    return status == TILE_OK ? EXIT_FINE : run_error();
}

static bool read_seconds(const char *text, double *out)
{
    char *end;
    *out = tl_number_read(text, &end);
    return end != text && !*end && *out >= 0 && isfinite(*out);
}

int command_bench(const Options *o)
{
    Bench b = {.o = o, .seconds = 0.2};
    if (o->seconds && !read_seconds(o->seconds, &b.seconds))
        return usage_error("--seconds takes a number of 0 or more, not '%s'", o->seconds);
    int status = sizes_check(o);
    if (status == EXIT_FINE)
        status = open_device(&b);
    if (status == EXIT_FINE)
        status = sizes_each(o, bench_sizes, &b);
    if (status == EXIT_FINE && o->svg)
        status = write_plot(&b);
    free(b.points);
    tile_module_free(b.of_limits);
    tile_device_close(b.device);
    return status;
}
