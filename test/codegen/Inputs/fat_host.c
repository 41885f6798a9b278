/* A host of the kernel in an object for several targets; the default device is the
 * environment's. */
#include <stdio.h>
#include <tile.h>
#include "fat.h"

int main(void)
{
    static float x[100], y[100];
    for (int i = 0; i < 100; i++) x[i] = (float)i;
    if (twice(NULL, x, y, 100) || tile_stream_synchronize(NULL)) {
        fprintf(stderr, "%s\n", tile_last_error());
        return 1;
    }
    for (int i = 0; i < 100; i++)
        if (y[i] != 2 * (float)i) return 2;
    puts("twice");
    return 0;
}
