/* curve.h: how the loss falls, as a picture. */
#ifndef CURVE_H
#define CURVE_H
#include <stdbool.h>

typedef struct Point {
    int step;
    double train, held; /* bits a byte; held < 0: not measured here */
} Point;

/* Writes an SVG with both curves. False: it cannot be written; errno says why. */
bool curve_write(const char *path, const Point *point, int n, const char *title);
#endif
