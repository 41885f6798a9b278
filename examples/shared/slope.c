#include "slope.h"
#include "example.h"

/* The loss with w + h way in place of the weights w. */
static bool moved(const Slope *s, float h, double *out)
{
    for (size_t i = 0; i < s->n; i++) s->moved[i] = s->w[i] + h * s->way[i];
    return s->loss(s->user, s->moved, out);
}

/* The derivative along `way`, by differences over h and 2 h, whose leading errors cancel. */
static bool slope(const Slope *s, float h, double *out)
{
    double a, b, c, d;
    if (!moved(s, h, &a) || !moved(s, -h, &b) || !moved(s, 2 * h, &c) || !moved(s, -2 * h, &d))
        return false;
    *out = (8 * (a - b) - (c - d)) / (12 * (double)h);
    return true;
}

bool slope_check(const Slope *s, double *worst)
{
    double most = 0, along = 0, length = 0, found;
    for (size_t i = 0; i < s->n; i++)
        most = fmax(most, fabs(s->g[i])), length += (double)s->g[i] * s->g[i];
    for (int e = 0; e < s->elements; e++) {
        size_t at = (size_t)(uniform_at(s->seed, (uint64_t)e) * (double)s->n);
        if (s->columns) at = ('a' + at % 8) * s->columns + at % s->columns;
        for (size_t i = 0; i < s->n; i++) s->way[i] = i == at;
        if (!slope(s, 0.02f, &found)) return false;
        *worst = fmax(*worst, fabs(found - s->g[at]) / most);
    }
    for (size_t i = 0; i < s->n; i++) {
        s->way[i] = random_at(7, i) & 1 ? 1 : -1;
        along += (double)s->g[i] * s->way[i];
    }
    if (!slope(s, s->step, &found)) return false;
    *worst = fmax(*worst, fabs(found - along) / sqrt(length));
    return true;
}
