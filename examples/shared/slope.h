/* slope.h: derivatives by a tensor's weights against differences of the loss. */
#ifndef SLOPE_H
#define SLOPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Slope {
    size_t n;        /* numbers of the tensor */
    const float *w, *g; /* its weights, and derivatives by them */
    float *way, *moved; /* room for n each */
    size_t columns;  /* of a table by bytes, of which only "abcdefgh" are there; else 0 */
    int elements;    /* that are checked */
    float step;      /* along a direction */
    uint64_t seed;
    bool (*loss)(void *user, const float *w, double *out); /* with w in place of the weights */
    void *user;
} Slope;

/* *worst grows to the greatest error of some elements and of a random direction, relative to the
 * tensor's greatest derivative, or to the length of all. False: the device failed. */
bool slope_check(const Slope *s, double *worst);
#endif
