/* The kernel was compiled ahead of time. */
#include <stdio.h>
#include "total.h"

int main(void)
{
    float x[10], s[1];
    for (int i = 0; i < 10; i++)
        x[i] = 1;
    if (total(NULL, x, s, 10) || tile_stream_synchronize(NULL)) {
        puts(tile_last_error());
        return 1;
    }
    printf("sum %d\n", (int)s[0]);
    return 0;
}
