/* Rows of which only the launch knows how long they are and how far apart, on the CPU: where they
 * lie one after the other, they are one axis (nest_fold.c); elsewhere they are not. */
#include <string.h>

#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"
#include "test/unit/ok.h"
#include "test/unit/unit.h"

static const char source[] = "kernel k(const f32 x[D : dx, H : sx, W], f32 y[D : dy, H : sy, W])\n"
                             "    grid(cdiv(W, 3), cdiv(H, 16), D)\n"
                             "{\n"
                             "    int j = pid(1) * 16;\n"
                             "    int i = pid(0) * 3;\n"
                             "    auto v = x[pid(2), j +: 16, i +: 3];\n"
                             "    y[pid(2), j +: 16, i +: 3] = y[pid(2), j +: 16, i +: 3] + v;\n"
                             "}\n";

enum { ROOM = 2048, MIDDLE = ROOM / 2 };
static float x[ROOM], y[ROOM], want[ROOM];

typedef struct Shape {
    int64_t extent[3], x[3], y[3]; /* strides of x, of y */
    int64_t programs;              /* along the first axis; 0: as the kernel says */
} Shape;

/* Both arrays begin in the middle of more memory, none of which changes beside their elements. */
static void adds(tile_device *device, tile_kernel *k, Shape s)
{
    int64_t grid[3] = {s.programs, (s.extent[1] + 15) / 16, s.extent[0]};
    tile_arg args[2] = {tile_view_strided((const float *)x + MIDDLE, 3, s.extent, s.x),
                        tile_view_strided(y + MIDDLE, 3, s.extent, s.y)};
    for (int i = 0; i < ROOM; i++)
        x[i] = (float)i, y[i] = want[i] = (float)(7 * i % 100);
    for (int64_t d = 0; d < s.extent[0]; d++)
        for (int64_t h = 0; h < s.extent[1]; h++)
            for (int64_t w = 0; w < s.extent[2]; w++)
                want[MIDDLE + d * s.y[0] + h * s.y[1] + w] +=
                    x[MIDDLE + d * s.x[0] + h * s.x[1] + w];
    OK(s.programs ? tile_launch_grid(k, NULL, args, 2, grid, 3) : tile_launch(k, NULL, args, 2));
    OK(tile_device_synchronize(device));
    CHECK(!memcmp(y, want, sizeof y));
}

static const Shape shapes[] = {
    {{2, 50, 3}, {150, 3, 1}, {150, 3, 1}, 0},  /* one after the other */
    {{2, 50, 3}, {200, 4, 1}, {150, 3, 1}, 0},  /* of x, with a gap */
    {{2, 50, 3}, {150, 3, 1}, {200, 4, 1}, 0},  /* of y */
    {{2, 50, 3}, {160, 3, 1}, {150, 3, 1}, 0},  /* planes with a gap */
    {{2, 50, 3}, {150, -3, 1}, {150, 3, 1}, 0}, /* from the last to the first */
    {{2, 50, 3}, {0, 3, 1}, {150, 3, 1}, 0},    /* one plane for both */
    {{2, 50, 3}, {150, 0, 1}, {150, 3, 1}, 0},  /* one row for all */
    {{1, 50, 3}, {-9, 3, 1}, {77, 3, 1}, 0},    /* of one plane */
    {{2, 50, 5}, {250, 5, 1}, {250, 5, 1}, 0},  /* longer */
    {{2, 50, 2}, {100, 2, 1}, {100, 2, 1}, 0},  /* shorter */
    {{2, 50, 3}, {150, 3, 1}, {150, 3, 1}, 3},  /* programs beyond the row */
    {{2, 0, 3}, {0, 3, 1}, {0, 3, 1}, 0},       /* no rows */
};

int main(void)
{
    tile_device *device = NULL;
    tile_module *module = NULL;
    tile_kernel *k = NULL;
    OK(tile_device_open("cpu", &device));
    OK(tile_module_load_source(device, "fold.tile", source, sizeof source - 1, NULL, &module));
    OK(tile_kernel_get(module, "k", NULL, &k));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        adds(device, k, shapes[i]);
    tile_module_free(module);
    tile_device_close(device);
    return unit_result();
}
