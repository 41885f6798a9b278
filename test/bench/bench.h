/* What the benchmarks share: time, the median, a kernel of an example loaded on the default
 * device. */
#ifndef TL_BENCH_H
#define TL_BENCH_H
#include "runtime/include/tile_jit.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (call) {                                                                                \
            fprintf(stderr, "%s\n", tile_last_error());                                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A figure counts only if the work behind it took place: else the benchmark ends with status 1. */
#define DEMAND(cond, ...)                                                                          \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Time on the clock, in seconds. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int bench_order(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static inline double median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, bench_order);
    return times[n / 2];
}

static inline tile_module *bench_module(const char *example)
{
    char path[512];
    tile_module *module;
    snprintf(path, sizeof path, "%s/%s.tile", EXAMPLES, example);
    TRY(tile_module_load_file(NULL, path, NULL, &module));
    return module;
}

static inline tile_kernel *bench_kernel(tile_module *module, const char *name,
                                        const tile_const *consts)
{
    tile_kernel *kernel;
    TRY(tile_kernel_get(module, name, consts, &kernel));
    TRY(tile_kernel_prepare(kernel));
    return kernel;
}

/* As many threads as the cpu device uses. */
static inline int bench_threads(void)
{
    tile_device *device;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    TRY(tile_default_device(&device));
    TRY(tile_device_get_info(device, &info));
    return info.processors;
}
#endif
