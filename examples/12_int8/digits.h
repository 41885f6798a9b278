/* digits.h: pictures of digits, drawn by chance: turned, moved, stretched, and with noise. */
#ifndef INT8_DIGITS_H
#define INT8_DIGITS_H
#include "../shared/example.h"

enum { SIDE = 16, PIXELS = SIDE * SIDE };

/* How dark the digit is at (x, y), in its own 5 by 7 squares, with soft edges. */
static inline double digits_ink(int digit, double x, double y)
{
    static const char *const font[10] = {
        " ### #   ##  ### # ###  ##   # ### ", "  #   ##    #    #    #    #   ### ",
        " ### #   #    #  ##  #   #    #####", " ### #   #    #  ##     ##   # ### ",
        "   #   ##  # # #  # #####   #    # ", "######    ####     #    ##   # ### ",
        "  ##  #   #    #### #   ##   # ### ", "#####    #   #   #    #    #    #  ",
        " ### #   ##   # ### #   ##   # ### ", " ### #   ##   # ####    #   #  ##  "};
    double ink = 0;
    int i = (int)floor(y), j = (int)floor(x);
    for (int r = i; r <= i + 1; r++)
        for (int c = j; c <= j + 1; c++)
            if (r >= 0 && r < 7 && c >= 0 && c < 5 && font[digit][r * 5 + c] == '#')
                ink += (1 - fabs(y - r)) * (1 - fabs(x - c));
    return ink;
}

static inline void digits_draw(int digit, float *pixels, uint64_t *state)
{
    double turn = between(state, -0.2, 0.2), size = between(state, 0.5, 0.6);
    double wide = size * between(state, 0.85, 1.15),
           lean = between(state, -0.15, 0.15);
    double x0 = between(state, -1.5, 1.5) + 7.5, y0 = between(state, -1.5, 1.5) + 7.5;
    for (int i = 0; i < PIXELS; i++) {
        double dx = i % SIDE - x0, dy = i / SIDE - y0;
        double x = cos(turn) * dx + sin(turn) * dy, y = cos(turn) * dy - sin(turn) * dx;
        double noise = 0; /* nearly normal */
        for (int k = 0; k < 4; k++) noise += between(state, -0.2, 0.2);
        pixels[i] = (float)(digits_ink(digit, (x + lean * y) * wide + 2, y * size + 3) + noise);
    }
}
#endif
