#include "digits.h"
#include "../shared/example.h"

/* Strokes of each digit: points of smooth curves, in hundredths of its box; a stroke ends at -1, a
 * digit at -2. */
static const int8_t strokes[CLASSES][32] = {
    {50, 0, 85, 15, 95, 50, 85, 85, 50, 100, 15, 85, 5, 50, 15, 15, 50, 0, -2},
    {25, 20, 50, 0, -1, 50, 0, 50, 100, -2},
    {8, 22, 30, 2, 75, 3, 88, 30, 55, 62, 10, 100, -1, 10, 100, 92, 100, -2},
    {10, 10, 50, 0, 85, 20, 75, 42, 45, 48, -1, 45, 48, 85, 60, 88, 85, 50, 100, 8, 88, -2},
    {65, 0, 5, 68, -1, 5, 68, 95, 68, -1, 65, 0, 65, 100, -2},
    {85, 0, 20, 0, -1, 20, 0, 15, 45, -1, 15, 45, 50, 36, 88, 55, 85, 85, 50, 100, 10, 90, -2},
    {75, 2, 35, 20, 10, 60, 20, 92, 55, 100, 88, 80, 75, 52, 45, 47, 12, 68, -2},
    {8, 0, 92, 0, -1, 92, 0, 55, 50, 40, 100, -2},
    {50, 47, 20, 30, 25, 6,   50, 0,  75, 6,  80, 30, 50, 47,
     15, 70, 20, 93, 50, 100, 80, 93, 85, 70, 50, 47, -2},
    {88, 32, 55, 53, 25, 48, 12, 20, 45, 0, 80, 8, 90, 40, 65, 80, 30, 100, -2},
};

typedef struct Point {
    double x, y;
} Point;

/* How the box of a digit lies in the picture. */
typedef struct Pose {
    Point at, right, down; /* centre; vectors of its sides */
    double radius, shade;  /* of strokes; how dark they are */
} Pose;

static Pose pose(uint64_t *state)
{
    double turn = between(state, -0.4, 0.4), lean = between(state, -0.3, 0.3);
    double high = SIDE * between(state, 0.5, 0.8), wide = high * between(state, 0.5, 0.85);
    double c = cos(turn), s = sin(turn), room = 0.35 * (SIDE - high);
    Pose p = {{SIDE / 2.0 + between(state, -room, room), SIDE / 2.0 + between(state, -room, room)},
              {wide * c, wide * s},
              {high * (lean * c - s), high * (lean * s + c)},
              between(state, 0.3, 1.3),
              between(state, 0.55, 1)};
    return p;
}

/* The darkest ink wins where strokes cross. */
static void draw_line(double ink[PIXELS], Point a, Point b, double radius, double shade)
{
    double dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy + 1e-9;
    for (int i = 0; i < PIXELS; i++) {
        double x = i % SIDE + 0.5 - a.x, y = i / SIDE + 0.5 - a.y;
        double t = fmin(fmax((x * dx + y * dy) / square, 0), 1);
        double far = hypot(x - t * dx, y - t * dy);
        ink[i] = fmax(ink[i], shade * fmin(fmax(radius + 0.5 - far, 0), 1));
    }
}

/* A curve through all points (Catmull and Rom 1974), as lines. */
static void draw_curve(double ink[PIXELS], const Point *p, int n, const Pose *pose)
{
    enum { PIECES = 3 };
    Point last = p[0];
    for (int i = 0; i + 1 < n; i++) {
        Point a = p[i ? i - 1 : 0], b = p[i], c = p[i + 1], d = p[i + 2 < n ? i + 2 : n - 1];
        for (int k = n > 2 ? 1 : PIECES; k <= PIECES; k++) {
            double t = (double)k / PIECES, u = t * t, v = u * t;
            double wa = -t + 2 * u - v, wb = 2 - 5 * u + 3 * v, wc = t + 4 * u - 3 * v, wd = v - u;
            Point next = {(wa * a.x + wb * b.x + wc * c.x + wd * d.x) / 2,
                          (wa * a.y + wb * b.y + wc * c.y + wd * d.y) / 2};
            draw_line(ink, last, next, pose->radius, pose->shade);
            last = next;
        }
    }
}

static void draw_strokes(double ink[PIXELS], const int8_t *stroke, const Pose *at, uint64_t *state)
{
    Point p[16];
    for (int n = 0;;) {
        if (*stroke < 0) {
            draw_curve(ink, p, n, at);
            if (*stroke++ == -2)
                return;
            n = 0;
        } else {
            double x = stroke[0] / 100.0 - 0.5 + between(state, -0.06, 0.06);
            double y = stroke[1] / 100.0 - 0.5 + between(state, -0.06, 0.06);
            p[n++] = (Point){at->at.x + x * at->right.x + y * at->down.x,
                             at->at.y + x * at->right.y + y * at->down.y};
            stroke += 2;
        }
    }
}

/* A short stroke that is of no digit. */
static void scratch(double ink[PIXELS], uint64_t *state)
{
    double way = between(state, 0, 6.283), length = between(state, 2, 6);
    Point a = {between(state, 0, SIDE), between(state, 0, SIDE)};
    Point b = {a.x + length * cos(way), a.y + length * sin(way)};
    draw_line(ink, a, b, between(state, 0.1, 0.6), between(state, 0.3, 0.8));
}

void digits_draw(int digit, uint8_t pixels[PIXELS], uint64_t *state)
{
    double ink[PIXELS] = {0}, dirt = between(state, 0.03, 0.15);
    Pose at = pose(state);
    draw_strokes(ink, strokes[digit], &at, state);
    while (uniform(state) < 0.4)
        scratch(ink, state);
    for (int i = 0; i < PIXELS; i++) {
        double noise = 0; /* nearly normal, of variance 1 */
        for (int k = 0; k < 3; k++)
            noise += between(state, -1, 1);
        pixels[i] = (uint8_t)(255 * fmin(fmax(ink[i] + dirt * noise, 0), 1));
    }
}
