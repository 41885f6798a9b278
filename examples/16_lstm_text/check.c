#include "check.h"
#include "lstm.h"
#include "text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Odd extents; bytes of a few kinds. */
enum { WIDTH = 11, ROWS = 3, LENGTH = 7, ELEMENTS = 16 };
static const char *const names[TENSORS] = {"input", "state", "scores"};

static bool mean_loss(Lstm *m, Memory *s, double *out)
{
    return lstm_forward(m, s, ROWS, LENGTH) && lstm_loss(m, ROWS, LENGTH, out);
}

/* The loss with w + h way in place of a tensor's weights w. */
static bool moved(Lstm *m, Memory *s, Tensor t, const float *w, const float *way, float h,
                  double *out)
{
    float *x = malloc(m->size[t] * sizeof *x);
    for (size_t i = 0; x && i < m->size[t]; i++) x[i] = w[i] + h * way[i];
    bool good = x && !tile_buffer_upload(m->tensor[WEIGHTS][t], 0, x, m->size[t] * 4, NULL) &&
                mean_loss(m, s, out);
    return free(x), good;
}

/* The derivative along `way`, by differences over h and 2 h, whose leading errors cancel. */
static bool slope(Lstm *m, Memory *s, Tensor t, const float *w, const float *way, float h,
                  double *out)
{
    double a, b, c, d;
    if (!moved(m, s, t, w, way, h, &a) || !moved(m, s, t, w, way, -h, &b) ||
        !moved(m, s, t, w, way, 2 * h, &c) || !moved(m, s, t, w, way, -2 * h, &d))
        return false;
    *out = (8 * (a - b) - (c - d)) / (12 * (double)h);
    return true;
}

/* *worst grows to the greatest error of some elements and of a random direction, relative to the
 * tensor's greatest derivative, or to the length of all. */
static bool check_tensor(Lstm *m, Memory *s, Tensor t, float *w, float *g, float *way,
                         double *worst)
{
    size_t n = m->size[t];
    double most = 0, along = 0, length = 0, found;
    if (tile_buffer_download(m->tensor[WEIGHTS][t], 0, w, n * 4, NULL) ||
        tile_buffer_download(m->tensor[GRADIENTS][t], 0, g, n * 4, NULL))
        return false;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(g[i])), length += (double)g[i] * g[i];
    for (int e = 0; e < ELEMENTS; e++) {
        size_t at = (size_t)text_random(5 + t, (uint64_t)e) % n;
        if (t == INPUT) /* of a byte that is there */
            at = ('a' + at % 8) * 4 * WIDTH + at % (4 * WIDTH);
        for (size_t i = 0; i < n; i++) way[i] = i == at;
        if (!slope(m, s, t, w, way, 0.02f, &found)) return false;
        *worst = fmax(*worst, fabs(found - g[at]) / most);
    }
    for (size_t i = 0; i < n; i++) {
        way[i] = text_random(7, i) & 1 ? 1 : -1;
        along += (double)g[i] * way[i];
    }
    if (!slope(m, s, t, w, way, 0.005f, &found)) return false;
    *worst = fmax(*worst, fabs(found - along) / sqrt(length));
    return !tile_buffer_upload(m->tensor[WEIGHTS][t], 0, w, n * 4, NULL);
}

static bool check_all(Lstm *m, Memory *s, double worst[TENSORS])
{
    size_t most = m->size[INPUT];
    float *all = malloc(3 * most * sizeof *all);
    bool good = all;
    for (int t = 0; good && t < TENSORS; t++)
        good = check_tensor(m, s, (Tensor)t, all, all + most, all + 2 * most, &worst[t]);
    return free(all), good;
}

bool check_gradients(bool *good)
{
    Lstm m;
    Memory s = {0};
    uint8_t x[ROWS * (LENGTH + 1)];
    double worst[TENSORS] = {0}, loss;
    for (int i = 0; i < ROWS * (LENGTH + 1); i++)
        x[i] = (uint8_t)('a' + text_random(1, (uint64_t)i) % 8);
    bool fine = lstm_open(&m, WIDTH, ROWS, LENGTH, 3) && lstm_remember(&m, &s) &&
                lstm_load(&m, x, ROWS, LENGTH) && mean_loss(&m, &s, &loss) &&
                lstm_go_on(&m, &s, ROWS, LENGTH) && /* with something in memory */
                mean_loss(&m, &s, &loss) && lstm_backward(&m, &s, ROWS, LENGTH) &&
                check_all(&m, &s, worst);
    *good = fine;
    for (int t = 0; fine && t < TENSORS; t++) {
        printf("%-7s derivatives differ from differences by %.1e of the greatest\n", names[t],
               worst[t]);
        *good &= worst[t] < 2e-3;
    }
    lstm_forget(&s), lstm_close(&m);
    return fine;
}
