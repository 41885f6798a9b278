#ifndef V0_1_LAYOUT_H
#define V0_1_LAYOUT_H
#include <stddef.h>

typedef struct Member {
    const char *name;
    size_t at, size;
} Member;
extern const Member LAYOUT_0_1[], LAYOUT_NOW[];
#endif
