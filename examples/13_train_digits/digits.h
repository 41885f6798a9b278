/* digits.h: pictures of digits, drawn by chance. */
#ifndef TRAIN_DIGITS_H
#define TRAIN_DIGITS_H
#include <stdint.h>

enum { SIDE = 20, PIXELS = SIDE * SIDE, CLASSES = 10 };

/* Ink from 0 to 255: strokes of any width, bent, turned, leaning, moved, scratched, with noise. */
void digits_draw(int digit, uint8_t pixels[PIXELS], uint64_t *state);
#endif
