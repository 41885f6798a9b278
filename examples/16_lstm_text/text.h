/* text.h: bytes to learn from, and bytes that are held out. */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Text {
    uint8_t *train, *held; /* of each file the last tenth is held out */
    size_t trains, helds;
} Text;

/* Reads the files, one after the other. False: one cannot be read, which has been said. */
bool text_open(Text *t, char **files, int n);
void text_close(Text *t);

/* Random numbers by a counter: the same whatever process asks. */
uint64_t text_random(uint64_t seed, uint64_t i);
double text_uniform(uint64_t seed, uint64_t i); /* in [0, 1) */
#endif
