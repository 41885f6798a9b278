#include "curve.h"
#include <math.h>
#include <stdio.h>

enum { W = 640, H = 360, LEFT = 48, RIGHT = 16, TOP = 36, BOTTOM = 36 };

typedef struct Axes {
    double steps, most; /* the ends of both axes, which begin at 0 */
} Axes;

static double across(const Axes *a, double step)
{
    return LEFT + step / a->steps * (W - LEFT - RIGHT);
}

static double down(const Axes *a, double bits)
{
    return TOP + (1 - fmin(bits, a->most) / a->most) * (H - TOP - BOTTOM);
}

static void draw_axes(FILE *f, const Axes *a)
{
    for (int bits = 0; bits <= a->most; bits++)
        fprintf(f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>"
                   "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n",
                LEFT, down(a, bits), W - RIGHT, LEFT - 6, down(a, bits) + 4, bits);
    for (int i = 0; i <= 4; i++)
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
                across(a, a->steps * i / 4), H - BOTTOM + 16, a->steps * i / 4);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">steps</text>\n", W - RIGHT, H - 4);
}

static void draw_curve(FILE *f, const Axes *a, const Point *p, int n, bool held, const char *colour)
{
    const char *move = "M";
    fprintf(f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"", colour);
    for (int i = 0; i < n; i++) {
        double bits = held ? p[i].held : p[i].train;
        if (bits < 0) continue;
        fprintf(f, "%s%.1f %.1f", move, across(a, p[i].step), down(a, bits));
        move = "L";
    }
    fprintf(f, "\"/>\n");
}

bool curve_write(const char *path, const Point *point, int n, const char *title)
{
    FILE *f = fopen(path, "w");
    if (!f) return false;
    Axes a = {n ? fmax(point[n - 1].step, 1) : 1, 8};
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n"
               "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
               "<text x=\"%d\" y=\"20\" font-size=\"13\">%s</text>\n",
            W, H, W, H, LEFT, title);
    draw_axes(f, &a);
    draw_curve(f, &a, point, n, false, "#8ab");
    draw_curve(f, &a, point, n, true, "#c33");
    fprintf(f, "<text x=\"%d\" y=\"%d\" fill=\"#8ab\">training</text>"
               "<text x=\"%d\" y=\"%d\" fill=\"#c33\">held out</text>\n</svg>\n",
            W - 150, TOP + 16, W - 84, TOP + 16);
    bool good = !ferror(f);
    return !fclose(f) && good;
}
