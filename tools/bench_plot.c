/* bench_plot.c: tilec bench's SVG. On the left, speed for each size beside the lower bound from
 * the machine's limits; on the right, if operations are counted, the roofline. Both axes of the
 * roofline and the left plot's y axis are logarithmic. */
#include "ir/support/number.h"
#include "tools/bench_plot.h"

#include <math.h>
#include <stdbool.h>

enum { WIDTH = 460, HEIGHT = 300, LEFT = 70, TOP = 60, GAP = 110, BOTTOM = 150 };

typedef struct Axis {
    double low, high; /* powers of ten */
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

static void put_line(FILE *f, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(f, "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" %s/>\n", TL_NUMBER("%.1f", x1),
            TL_NUMBER("%.1f", y1), TL_NUMBER("%.1f", x2), TL_NUMBER("%.1f", y2), style);
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
    return TOP + HEIGHT - at(a, value, 0, HEIGHT);
}

static void put_axis(FILE *f, const Axis *a, double x, bool vertical, const char *unit)
{
    char text[64];
    for (double e = a->low; e <= a->high; e++) {
        double value = pow(10, e);
        tl_number_format(text, sizeof text, "%g", value);
        if (vertical) {
            put_line(f, x, y_of(a, value), x + WIDTH, y_of(a, value), "stroke=\"#ddd\"");
            put_text(f, x - 6, y_of(a, value) + 4, "end", text);
        } else {
            double at_x = at(a, value, x, WIDTH);
            put_line(f, at_x, TOP, at_x, TOP + HEIGHT, "stroke=\"#ddd\"");
            put_text(f, at_x, TOP + HEIGHT + 16, "middle", text);
        }
    }
    if (vertical)
        put_text(f, x, TOP - 12, "start", unit);
    else
        put_text(f, x + WIDTH / 2.0, TOP + HEIGHT + 36, "middle", unit);
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
            "<circle cx=\"%s\" cy=\"%s\" r=\"4\" fill=\"#2060a0\"><title>%s: %s ms</title>"
            "</circle>\n",
            TL_NUMBER("%.1f", x), TL_NUMBER("%.1f", y), p->sizes,
            TL_NUMBER("%.4g", p->seconds * 1e3));
}

static void put_speeds(FILE *f, const BenchPoint *points, size_t n, const BenchLimits *l)
{
    Axis a = {1e9, -1e9};
    for (size_t i = 0; i < n; i++) {
        widen(&a, speed(&points[i], points[i].seconds));
        if (bench_least(&points[i], l) > 0)
            widen(&a, speed(&points[i], bench_least(&points[i], l)));
    }
    put_axis(f, &a, LEFT, true, points[0].flops > 0 ? "GFLOP/s" : "GB/s");
    for (size_t i = 0; i < n; i++) {
        const BenchPoint *p = &points[i];
        double x = LEFT + WIDTH * (i + 0.5) / n, half = fmin(WIDTH * 0.4 / n, 20),
               least = bench_least(p, l);
        if (least > 0)
            put_line(f, x - half, y_of(&a, speed(p, least)), x + half, y_of(&a, speed(p, least)),
                     "stroke=\"#c03050\" stroke-width=\"2\"");
        put_line(f, x, y_of(&a, speed(p, p->worst)), x, y_of(&a, speed(p, p->best)),
                 "stroke=\"#2060a0\"");
        put_dot(f, x, y_of(&a, speed(p, p->seconds)), p);
        fprintf(f, "<g transform=\"translate(%s %d) rotate(-40)\">", TL_NUMBER("%.1f", x),
                TOP + HEIGHT + 16);
        put_text(f, 0, 0, "end", p->sizes[0] ? p->sizes : "(no sizes)");
        fputs("</g>\n", f);
    }
}

static void put_roofline(FILE *f, const BenchPoint *points, size_t n, const BenchLimits *l)
{
    const double x0 = LEFT + WIDTH + GAP;
    Axis x = {1e9, -1e9}, y = {1e9, -1e9};
    double ridge = l->flops_per_second / l->bytes_per_second;
    widen(&x, ridge);
    widen(&y, l->flops_per_second * 1e-9);
    for (size_t i = 0; i < n; i++) {
        widen(&x, points[i].flops / points[i].bytes);
        widen(&y, speed(&points[i], points[i].seconds));
    }
    put_axis(f, &x, x0, false, "operations for each byte");
    put_axis(f, &y, x0, true, "GFLOP/s");
    double low = pow(10, x.low), slope = l->bytes_per_second * 1e-9;
    low = fmax(low, pow(10, y.low) / slope);
    put_line(f, at(&x, low, x0, WIDTH), y_of(&y, low * slope), at(&x, ridge, x0, WIDTH),
             y_of(&y, ridge * slope), "stroke=\"#c03050\" stroke-width=\"2\"");
    put_line(f, at(&x, ridge, x0, WIDTH), y_of(&y, ridge * slope), x0 + WIDTH,
             y_of(&y, ridge * slope), "stroke=\"#c03050\" stroke-width=\"2\"");
    for (size_t i = 0; i < n; i++)
        put_dot(f, at(&x, points[i].flops / points[i].bytes, x0, WIDTH),
                y_of(&y, speed(&points[i], points[i].seconds)), &points[i]);
}

void bench_plot(FILE *f, const char *title, const BenchPoint *points, size_t n,
                const BenchLimits *limits)
{
    bool roofline = n && points[0].flops > 0 && limits->flops_per_second > 0;
    int width = LEFT + WIDTH + 30 + (roofline ? GAP + WIDTH : 0), height = TOP + HEIGHT + BOTTOM;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, height, width, height);
    put_text(f, LEFT, 20, "start", title);
    if (n)
        put_speeds(f, points, n, limits);
    if (roofline)
        put_roofline(f, points, n, limits);
    fputs("</svg>\n", f);
}
