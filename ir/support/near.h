/* near.h: the known name that somebody may have meant by another one. */
#ifndef TL_NEAR_H
#define TL_NEAR_H
#include <stdint.h>

/* A search: candidates come one by one. */
typedef struct TlNear {
    const char *name, *best; /* best: NULL: none is near */
    uint32_t score;          /* of what would be better than it, letters that differ are fewer */
} TlNear;
/* Names are near that differ in at most a third of their letters, and in fewer than 3. */
TlNear tl_near(const char *name);
/* The first of several that are equally near counts. NULL and "" are none. */
void tl_near_try(TlNear *n, const char *candidate);
#endif
