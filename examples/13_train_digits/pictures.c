#include "pictures.h"
#define PROGRAM "13_train_digits"
#include "../shared/picture.h"
#include "digits.h"
#include <errno.h>

/* ---- curves ---- */

enum { W = 720, H = 300, TOP = 44, BOTTOM = 46, PANEL = 290, LOSS_AT = 52, RIGHT_AT = 414 };

/* Both ordinates have logarithmic scales, from low to high. */
typedef struct Panel {
    double left, epochs, low, high;
} Panel;

static double across(const Panel *p, double epoch)
{
    return p->left + epoch / p->epochs * PANEL;
}

static double down(const Panel *p, double y)
{
    double part = log(fmin(fmax(y, p->low), p->high) / p->low) / log(p->high / p->low);
    return H - BOTTOM - part * (H - TOP - BOTTOM);
}

static void draw_axes(FILE *f, const Panel *p, const char *title)
{
    static const double ticks[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100};
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        if (ticks[i] >= p->low * 0.99 && ticks[i] <= p->high * 1.01)
            fprintf(f,
                    "<path d=\"M%.0f %.1fh%d\" stroke=\"#ddd\"/>"
                    "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                    p->left, down(p, ticks[i]), PANEL, p->left - 6, down(p, ticks[i]) + 4,
                    ticks[i]);
    for (int e = 0, by = (int)ceil(p->epochs / 8); e <= p->epochs; e += by)
        fprintf(f,
                "<path d=\"M%.1f %dv5\" stroke=\"#444\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                across(p, e), H - BOTTOM, across(p, e), H - BOTTOM + 18, e);
    fprintf(f,
            "<path d=\"M%.0f %dV%dh%d\" fill=\"none\" stroke=\"#444\"/>"
            "<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">epochs</text>"
            "<text x=\"%.0f\" y=\"%d\">%s</text>\n",
            p->left, TOP, H - BOTTOM, PANEL, p->left + PANEL / 2.0, H - 10, p->left, TOP - 8,
            title);
}

enum { TRAINED, HELD, WRONG };

static void draw_curve(FILE *f, const Panel *p, const Point *point, int n, int what,
                       const char *colour)
{
    for (int dots = 0; dots <= (what != TRAINED); dots++) {
        const char *move = "M";
        fprintf(f,
                "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" stroke-linecap=\"round\" "
                "stroke-linejoin=\"round\" d=\"",
                colour, dots ? "6" : "1.5");
        for (int i = 0; i < n; i++) {
            double y = what == TRAINED ? point[i].loss
                       : what == HELD  ? point[i].held
                                       : 100 - point[i].right;
            if ((what == TRAINED ? point[i].loss : point[i].held) < 0)
                continue;
            fprintf(f, "%s%.1f %.1f%s", move, across(p, point[i].epoch), down(p, y),
                    dots ? "h0" : "");
            move = dots ? "M" : "L";
        }
        fprintf(f, "\"/>\n");
    }
}

bool pictures_curves(const char *path, const Point *point, int n, const char *title)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return fail(path, strerror(errno));
    double epochs = n ? fmax(point[n - 1].epoch, 1) : 1;
    Panel loss = {LOSS_AT, epochs, 0.003, 3}, wrong = {RIGHT_AT, epochs, 0.3, 100};
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" "
            "fill=\"#fff\"/>\n<text x=\"%d\" y=\"18\" font-size=\"14\">%s</text>\n",
            W, H, W, H, LOSS_AT, title);
    draw_axes(f, &loss, "cross entropy, nats"),
        draw_axes(f, &wrong, "held-out digits read wrong, %");
    draw_curve(f, &loss, point, n, TRAINED, "#7a9fc4");
    draw_curve(f, &loss, point, n, HELD, "#c0392b");
    draw_curve(f, &wrong, point, n, WRONG, "#c0392b");
    fprintf(f,
            "<text x=\"%d\" y=\"%d\" fill=\"#5580aa\">in training</text>"
            "<text x=\"%d\" y=\"%d\" fill=\"#c0392b\">held out</text>\n</svg>\n",
            LOSS_AT + PANEL - 130, TOP + 14, LOSS_AT + PANEL - 56, TOP + 14);
    bool good = !ferror(f);
    good = !fclose(f) && good;
    return good || fail(path, strerror(errno));
}

/* ---- digits ---- */

bool pictures_digits(const char *path, const uint8_t *const *digit, int n)
{
    enum { ACROSS = 16, SCALE = 2, CELL = SIDE + 2, WIDE = ACROSS * CELL * SCALE };
    int high = (n + ACROSS - 1) / ACROSS * CELL * SCALE;
    uint8_t *pixels = malloc((size_t)(WIDE * (high + 1)));
    if (!pixels)
        return fail("", "no memory");
    for (int i = 0; i < WIDE * high; i++) {
        int y = i / WIDE / SCALE, x = i % WIDE / SCALE, cell = y / CELL * ACROSS + x / CELL;
        int v = y % CELL - 1, u = x % CELL - 1;
        bool edge = v < 0 || u < 0 || v >= SIDE || u >= SIDE || cell >= n;
        pixels[i] = edge ? 255 : (uint8_t)(240 - digit[cell][v * SIDE + u] * 15 / 16);
    }
    bool good = picture_write(path, WIDE, high, PNG_FORMAT_GRAY, pixels);
    return free(pixels), good;
}
