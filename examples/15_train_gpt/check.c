#include "check.h"
#include "steps.h"
#include "text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A small model in f32; odd extents, two layers. */
static const Config tiny = {2, 24, 3, 20, 13, 3, F32};
static const char *const names[ROLES] = {"embedding", "head", "qkv", "out", "up", "down",
                                         "last norm", "norm", "hidden norm"};
enum { ELEMENTS = 24, ROWS = 3, LENGTH = 13 };

/* The mean loss of the batch, summed in f64. */
static bool mean_loss(Model *m, double *out)
{
    float loss[ROWS * LENGTH];
    if (!model_forward(m, ROWS, LENGTH) || !model_loss(m, ROWS, LENGTH) ||
        tile_buffer_download(m->loss, 0, loss, sizeof loss, NULL))
        return false;
    *out = 0;
    for (int i = 0; i < ROWS * LENGTH; i++) *out += (double)loss[i] / (ROWS * LENGTH);
    return true;
}

/* The loss with w + h way in place of a tensor's weights w. */
static bool moved(Steps *s, const Tensor *t, const float *w, const float *way, float h, double *out)
{
    size_t n = (size_t)t->rows * (size_t)t->cols;
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; x && i < n; i++) x[i] = w[i] + h * way[i];
    bool good = x && steps_set(s, t, x) && mean_loss(s->model, out);
    return free(x), good;
}

/* The derivative along `way`, by differences over h and 2 h, whose leading errors cancel. */
static bool slope(Steps *s, const Tensor *t, const float *w, const float *way, float h, double *out)
{
    double a, b, c, d;
    if (!moved(s, t, w, way, h, &a) || !moved(s, t, w, way, -h, &b) ||
        !moved(s, t, w, way, 2 * h, &c) || !moved(s, t, w, way, -2 * h, &d))
        return false;
    *out = (8 * (a - b) - (c - d)) / (12 * (double)h);
    return true;
}

/* *worst grows to the greatest error of some elements and of a random direction, relative to the
 * tensor's greatest derivative, or the direction's greatest one. */
static bool check_tensor(Steps *s, const Tensor *t, const float *w, const float *g, float *way,
                         double *worst)
{
    size_t n = (size_t)t->rows * (size_t)t->cols;
    double most = 0, along = 0, length = 0, found;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(g[i])), length += (double)g[i] * g[i];
    for (int e = 0; e < ELEMENTS; e++) {
        size_t at = (size_t)(text_uniform(5 + t->at, (uint64_t)e) * (double)n);
        if (t->role == EMBEDDING) /* a byte that is there */
            at = ((size_t)'a' + at % 8) * (size_t)t->cols + at % (size_t)t->cols;
        for (size_t i = 0; i < n; i++) way[i] = i == at;
        if (!slope(s, t, w, way, 0.02f, &found)) return false;
        *worst = fmax(*worst, fabs(found - g[at]) / most);
    }
    for (size_t i = 0; i < n; i++) {
        way[i] = text_random(7, i) & 1 ? 1 : -1;
        along += (double)g[i] * way[i];
    }
    if (!slope(s, t, w, way, 0.002f, &found)) return false;
    *worst = fmax(*worst, fabs(found - along) / sqrt(length));
    return steps_set(s, t, w);
}

static bool check_all(Steps *s, double worst[ROLES])
{
    Model *m = s->model;
    float *all = calloc(3 * m->size, sizeof *all), *w = all, *g = all + m->size, *way = g + m->size;
    bool good = all && !tile_buffer_download(m->grads, 0, g, m->size * 4, NULL) &&
                !tile_buffer_download(m->weights, 0, w, m->size * 4, NULL);
    for (int i = 0; good && i < m->tensors; i++) {
        const Tensor *t = &m->tensor[i];
        good = check_tensor(s, t, w + t->at, g + t->at, way, &worst[t->role]);
    }
    return free(all), good;
}

/* Weights so great that everything bends, and norms that are not 1. */
static bool great_weights(Steps *s)
{
    Model *m = s->model;
    float *w = malloc(m->size * sizeof *w);
    bool good = w && !tile_buffer_download(m->weights, 0, w, m->size * 4, NULL);
    for (int i = 0; good && i < m->tensors; i++) {
        const Tensor *t = &m->tensor[i];
        for (size_t k = 0; k < (size_t)t->rows * (size_t)t->cols; k++)
            w[t->at + k] = t->rows == 1 ? 0.75f + 0.5f * (float)text_uniform(9, t->at + k)
                                        : w[t->at + k] * (t->role == EMBEDDING ? 10 : 2.5f);
        good = steps_set(s, t, w + t->at);
    }
    return free(w), good;
}

bool check_gradients(bool *good)
{
    Model m;
    Steps s = {0};
    uint8_t x[ROWS * (LENGTH + 1)];
    double worst[ROLES] = {0}, loss;
    for (int i = 0; i < ROWS * (LENGTH + 1); i++)
        x[i] = (uint8_t)('a' + text_random(1, (uint64_t)i) % 8);
    bool fine = model_open(&m, tiny) && steps_open(&s, &m, 3) && great_weights(&s) &&
                model_load(&m, x, ROWS, LENGTH) && mean_loss(&m, &loss) &&
                model_backward(&m, ROWS, LENGTH, ROWS * LENGTH) && check_all(&s, worst);
    *good = fine;
    for (int i = 0; fine && i < ROLES; i++) {
        printf("%-12s derivatives differ from differences by %.1e of the greatest\n", names[i],
               worst[i]);
        *good &= worst[i] < 2e-3;
    }
    steps_close(&s), model_close(&m);
    return fine;
}
