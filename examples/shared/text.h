/* text.h: bytes to learn from, and bytes that are held out. */
#ifndef TEXT_H
#define TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BYTES = 256 };

typedef struct Text {
    uint8_t *train, *held; /* of each file the last tenth is held out */
    size_t trains, helds;
} Text;

/* Reads the files, one after the other. False: *wrong cannot be read; errno says why. */
bool text_open(Text *t, char **files, int n, const char **wrong);
void text_close(Text *t);

/* Where the bytes of each kind are, in order: what the derivative of their rows adds up. */
void text_sort(const int32_t *byte, int n, int32_t *order, int32_t offsets[BYTES + 1]);
#endif
