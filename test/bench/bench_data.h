/* What bench_data's works share. */
#ifndef TL_BENCH_DATA_H
#define TL_BENCH_DATA_H
#include "bench.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* A work: what we do, what the peer does; `ready` undoes what a run leaves and is not timed. */
typedef struct Work {
    const char *name, *peer;
    void (*ready)(void), (*ours)(void), (*theirs)(void);
    double (*error)(void); /* the greatest difference of the results, of the greatest number */
} Work;

static inline uint32_t noise(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static inline void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    DEMAND(p, "no memory");
    memset(p, 0, bytes);
    return p;
}

static inline tile_kernel *kernel(const char *module, const char *name, const tile_const *consts)
{
    tile_module *m;
    TRY(tile_module_load_file(NULL, module, NULL, &m));
    return bench_kernel(m, name, consts);
}

#define LAUNCH(k, ...)                                                                            \
    do {                                                                                           \
        tile_arg args_[] = {__VA_ARGS__};                                                          \
        TRY(tile_launch(k, NULL, args_, sizeof args_ / sizeof *args_));                            \
        TRY(tile_stream_synchronize(NULL));                                                        \
    } while (0)

static inline double differ(const float *x, const float *y, size_t n)
{
    double most = 0, size = 1e-30;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)x[i] - y[i]));
        size = fmax(size, fabs(y[i]));
    }
    return most / size;
}

/* bench_numbers.c: makes its works' data; the works, as many as *n. */
const Work *numbers_make(size_t *n);
#endif
