/* pictures.h: how the training went, as SVG, and digits, as PNG. Functions are false where the file
 * cannot be written, as they have said. */
#ifndef TRAIN_PICTURES_H
#define TRAIN_PICTURES_H
#include <stdbool.h>
#include <stdint.h>

typedef struct Point {
    double epoch, loss, held,
        right; /* held, right: of held-out digits, in percent; < 0: not measured */
} Point;

bool pictures_curves(const char *path, const Point *point, int n, const char *title);
/* Digits side by side, 16 a row. */
bool pictures_digits(const char *path, const uint8_t *const *digit, int n);
#endif
