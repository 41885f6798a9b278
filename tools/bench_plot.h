/* bench_plot.h: what tilec bench has measured, as a picture (bench_plot.c). */
#ifndef TL_BENCH_PLOT_H
#define TL_BENCH_PLOT_H
#include <stddef.h>
#include <stdio.h>

typedef struct BenchPoint {
    char sizes[128];
    double seconds, best, worst; /* median; of one launch */
    double bytes, flops;         /* flops 0: not said */
} BenchPoint;

/* What the device reached in the same run; 0: not measured. */
typedef struct BenchLimits {
    double bytes_per_second, flops_per_second;
} BenchLimits;

/* The least time that the limits allow. 0: there are none. */
double bench_least(const BenchPoint *p, const BenchLimits *l);
/* Speed against size and, with flops, the roofline below: one SVG without references to anything,
 * as wide as there is room, dark where the reader's pages are. `legend` says what red lines are. */
void bench_plot(FILE *f, const char *title, const char *legend, const BenchPoint *points, size_t n,
                const BenchLimits *limits);
#endif
