/* bench_plot.c: tilec bench's SVG. Above, speed for each size beside the lower bound from the
 * machine's limits; below, if operations are counted, the roofline. Both axes of the roofline and
 * the upper plot's y axis are logarithmic. Letters are large enough for a screen of 400 pixels. */
#include "ir/support/number.h"
#include "tools/bench_plot.h"

#include <math.h>
#include <stdbool.h>

enum { WIDTH = 380, HEIGHT = 260, LEFT = 64, TOP = 84, GAP = 170, BOTTOM = 60, RIGHT = 20 };

static const char STYLE[] =
    "<style>\n"
    ".page { fill: #fff } text { fill: #222 } .grid { stroke: #ddd }\n"
    ".roof { stroke: #c03050; stroke-width: 2 } .span { stroke: #2060a0 } .dot { fill: #2060a0 }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  .page { fill: #181a1b } text { fill: #ddd } .grid { stroke: #444 }\n"
    "  .roof { stroke: #ff7a90 } .span { stroke: #7ab4f0 } .dot { fill: #7ab4f0 }\n"
    "}\n"
    "</style>\n";

typedef struct Axis {
    double low, high; /* powers of ten */
    double top;       /* of the plot, of vertical ones */
} Axis;

static void put_text(FILE *f, double x, double y, const char *anchor, const char *text)
{
    fprintf(f, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\">", TL_NUMBER("%.1f", x),
            TL_NUMBER("%.1f", y), anchor);
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", f);
        else
            fputc(*text, f);
    fputs("</text>\n", f);
}

static void put_line(FILE *f, double x1, double y1, double x2, double y2, const char *kind)
{
    fprintf(f, "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" class=\"%s\"/>\n",
            TL_NUMBER("%.1f", x1), TL_NUMBER("%.1f", y1), TL_NUMBER("%.1f", x2),
            TL_NUMBER("%.1f", y2), kind);
}

/* Whole powers of ten around what is shown. */
static void widen(Axis *a, double value)
{
    if (!(value > 0) || !isfinite(value))
        return;
    a->low = fmin(a->low, floor(log10(value) + 1e-9));
    a->high = fmax(a->high, ceil(log10(value) - 1e-9));
    if (a->high <= a->low)
        a->high = a->low + 1;
}

static double at(const Axis *a, double value, double from, double length)
{
    double part = (log10(value) - a->low) / (a->high - a->low);
    return from + length * fmin(fmax(part, 0), 1);
}

static double y_of(const Axis *a, double value)
{
    return a->top + HEIGHT - at(a, value, 0, HEIGHT);
}

static void put_axis(FILE *f, const Axis *a, bool vertical, const char *unit)
{
    char text[64];
    for (double e = a->low; e <= a->high; e++) {
        double value = pow(10, e);
        tl_number_format(text, sizeof text, "%g", value);
        if (vertical) {
            put_line(f, LEFT, y_of(a, value), LEFT + WIDTH, y_of(a, value), "grid");
            put_text(f, LEFT - 6, y_of(a, value) + 4, "end", text);
        } else {
            double x = at(a, value, LEFT, WIDTH);
            put_line(f, x, a->top, x, a->top + HEIGHT, "grid");
            put_text(f, x, a->top + HEIGHT + 18, "middle", text);
        }
    }
    if (vertical)
        put_text(f, LEFT, a->top - 12, "start", unit);
    else
        put_text(f, LEFT + WIDTH / 2.0, a->top + HEIGHT + 40, "middle", unit);
}

double bench_least(const BenchPoint *p, const BenchLimits *l)
{
    double memory = l->bytes_per_second > 0 ? p->bytes / l->bytes_per_second : 0,
           compute = l->flops_per_second > 0 ? p->flops / l->flops_per_second : 0;
    return fmax(memory, compute);
}

/* In units of 1e9 a second: operations where they are counted, else bytes. */
static double speed(const BenchPoint *p, double seconds)
{
    return (p->flops > 0 ? p->flops : p->bytes) / seconds * 1e-9;
}

static void put_dot(FILE *f, double x, double y, const BenchPoint *p)
{
    fprintf(f,
            "<circle cx=\"%s\" cy=\"%s\" r=\"4\" class=\"dot\"><title>%s: %s ms</title>"
            "</circle>\n",
            TL_NUMBER("%.1f", x), TL_NUMBER("%.1f", y), p->sizes,
            TL_NUMBER("%.4g", p->seconds * 1e3));
}

static void put_speeds(FILE *f, const BenchPoint *points, size_t n, const BenchLimits *l)
{
    Axis a = {1e9, -1e9, TOP};
    for (size_t i = 0; i < n; i++) {
        widen(&a, speed(&points[i], points[i].seconds));
        if (bench_least(&points[i], l) > 0)
            widen(&a, speed(&points[i], bench_least(&points[i], l)));
    }
    put_axis(f, &a, true, points[0].flops > 0 ? "GFLOP/s" : "GB/s");
    for (size_t i = 0; i < n; i++) {
        const BenchPoint *p = &points[i];
        double x = LEFT + WIDTH * (i + 0.5) / n, half = fmin(WIDTH * 0.4 / n, 20),
               least = bench_least(p, l);
        if (least > 0)
            put_line(f, x - half, y_of(&a, speed(p, least)), x + half, y_of(&a, speed(p, least)),
                     "roof");
        put_line(f, x, y_of(&a, speed(p, p->worst)), x, y_of(&a, speed(p, p->best)),
                 "span");
        put_dot(f, x, y_of(&a, speed(p, p->seconds)), p);
        fprintf(f, "<g transform=\"translate(%s %d) rotate(-55)\">", TL_NUMBER("%.1f", x),
                TOP + HEIGHT + 16);
        put_text(f, 0, 0, "end", p->sizes[0] ? p->sizes : "(no sizes)");
        fputs("</g>\n", f);
    }
}

static void put_roofline(FILE *f, const BenchPoint *points, size_t n, const BenchLimits *l)
{
    const double top = TOP + HEIGHT + GAP;
    Axis x = {1e9, -1e9, top}, y = {1e9, -1e9, top};
    double ridge = l->flops_per_second / l->bytes_per_second;
    widen(&x, ridge);
    widen(&y, l->flops_per_second * 1e-9);
    for (size_t i = 0; i < n; i++) {
        widen(&x, points[i].flops / points[i].bytes);
        widen(&y, speed(&points[i], points[i].seconds));
    }
    put_axis(f, &x, false, "operations for each byte");
    put_axis(f, &y, true, "GFLOP/s");
    double low = pow(10, x.low), slope = l->bytes_per_second * 1e-9;
    low = fmax(low, pow(10, y.low) / slope);
    put_line(f, at(&x, low, LEFT, WIDTH), y_of(&y, low * slope), at(&x, ridge, LEFT, WIDTH),
             y_of(&y, ridge * slope), "roof");
    put_line(f, at(&x, ridge, LEFT, WIDTH), y_of(&y, ridge * slope), LEFT + WIDTH,
             y_of(&y, ridge * slope), "roof");
    for (size_t i = 0; i < n; i++)
        put_dot(f, at(&x, points[i].flops / points[i].bytes, LEFT, WIDTH),
                y_of(&y, speed(&points[i], points[i].seconds)), &points[i]);
}

void bench_plot(FILE *f, const char *title, const char *legend, const BenchPoint *points, size_t n,
                const BenchLimits *limits)
{
    bool roofline = n && points[0].flops > 0 && limits->flops_per_second > 0;
    int width = LEFT + WIDTH + RIGHT,
        height = TOP + HEIGHT + (roofline ? GAP + HEIGHT + BOTTOM : GAP);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" viewBox=\"0 0 %d %d\" "
            "style=\"max-width: 720px\" font-family=\"sans-serif\" font-size=\"13\">\n",
            width, height);
    fputs(STYLE, f);
    fputs("<rect width=\"100%\" height=\"100%\" class=\"page\"/>\n", f);
    put_text(f, 10, 22, "start", title);
    if (limits->bytes_per_second > 0)
        put_text(f, 10, 42, "start", legend);
    if (n)
        put_speeds(f, points, n, limits);
    if (roofline)
        put_roofline(f, points, n, limits);
    fputs("</svg>\n", f);
}
