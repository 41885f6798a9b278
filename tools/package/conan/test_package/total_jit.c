/* Compiles the kernel at run time. */
#include <stdio.h>
#include <tile_jit.h>

int main(void)
{
    float x[10], s[1];
    tile_module *module;
    tile_kernel *kernel;
    for (int i = 0; i < 10; i++)
        x[i] = 1;
    if (tile_module_load_file(NULL, "total.tile", NULL, &module) ||
        tile_kernel_get(module, "total", NULL, &kernel) ||
        tile_launch(kernel, NULL, (tile_arg[]){tile_view(x, 10), tile_view(s, 1)}, 2) ||
        tile_stream_synchronize(NULL)) {
        puts(tile_last_error());
        return 1;
    }
    printf("sum %d\n", (int)s[0]);
    tile_module_free(module);
    return 0;
}
