/* Runs the kernel @NAME@ and checks its result against plain C. Argument: the length. The device
 * is what TILE_DEVICE says (cpu). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "@NAME@.h" /* made by tilec from @NAME@.tile */

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tile_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    uint64_t bytes = n * sizeof(float);
    float *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    tile_buffer *dx, *dy;
    if (!x || !y)
        return fputs("out of memory\n", stderr), 1;
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(i % 100);
        y[i] = 1;
    }
    if (tile_buffer_alloc(NULL, bytes, &dx) || tile_buffer_alloc(NULL, bytes, &dy) ||
        tile_buffer_upload(dx, 0, x, bytes, NULL) || tile_buffer_upload(dy, 0, y, bytes, NULL))
        return failed("memory");
    if (@NAME@(NULL, tile_buffer_ptr(dx), tile_buffer_ptr(dy), 2, (int64_t)n) ||
        tile_stream_synchronize(NULL))
        return failed("@NAME@");
    if (tile_buffer_download(dy, 0, y, bytes, NULL))
        return failed("memory");
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += fabsf(y[i] - (2 * x[i] + 1)) > 1e-5f;
    printf("@NAME@: %zu elements, %zu wrong\n", n, wrong);
    tile_buffer_free(dx);
    tile_buffer_free(dy);
    free(x);
    free(y);
    return wrong != 0;
}
