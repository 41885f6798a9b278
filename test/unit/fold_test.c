/* Rows of which only the launch knows how long they are and how far apart, on the CPU: where they
 * lie one after the other, they are one axis (nest_fold.c), and where they lie apart, too
 * (cpu_rows.c); elsewhere they are not. Of elements of one to eight bytes, by code for several CPU
 * levels. */
#include <stdio.h>
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

/* ---- rows of one to eight elements, of any type ---- */

/* Moved, with a loop of work for each element, and in place with one of two arrays' elements. */
#define KERNELS(T)                                                                                 \
    "kernel moves_" #T "(const " #T " x[H : sx, W], " #T " y[H : sy, W], const int R = 3, "        \
    "const int B = 16) grid(cdiv(W, R), cdiv(H, B))\n"                                             \
    "{\n"                                                                                          \
    "    y[pid(1) * B +: B, pid(0) * R +: R] = x[pid(1) * B +: B, pid(0) * R +: R];\n"             \
    "}\n"                                                                                          \
    "kernel adds_" #T "(const " #T " x[H : sx, W], " #T " y[H : sy, W], const int R = 3, "         \
    "const int B = 16) grid(cdiv(W, R), cdiv(H, B))\n"                                             \
    "{\n"                                                                                          \
    "    auto v = x[pid(1) * B +: B, pid(0) * R +: R];\n"                                          \
    "    auto w = y[pid(1) * B +: B, pid(0) * R +: R];\n"                                          \
    "    y[pid(1) * B +: B, pid(0) * R +: R] = v > w ? v - w : v + w;\n"                           \
    "}\n"                                                                                          \
    "kernel loops_" #T "(const " #T " x[H : sx, W], " #T " y[H : sy, W], const int R = 3, "        \
    "const int B = 16) grid(cdiv(W, R), cdiv(H, B))\n"                                             \
    "{\n"                                                                                          \
    "    auto v = x[pid(1) * B +: B, pid(0) * R +: R];\n"                                          \
    "    for (int _k : range(40)) v = v * v - v;\n"                                                \
    "    y[pid(1) * B +: B, pid(0) * R +: R] = v;\n"                                               \
    "}\n"                                                                                          \
    "kernel fixed_" #T "(const " #T " x[H : (R + 1), (R)], " #T " y[H : (R + 2), (R)],"            \
    " const int R = 3, const int B = 16) grid(cdiv(H, B))\n"                                       \
    "{\n"                                                                                          \
    "    y[pid(0) * B +: B, 0 +: R] = x[pid(0) * B +: B, 0 +: R];\n"                               \
    "}\n"
static const char typed_source[] = KERNELS(u8) KERNELS(i16) KERNELS(f32) KERNELS(f64);

enum { TYPED_ROOM = 1 << 14, TYPED_MIDDLE = TYPED_ROOM / 2 };
static double typed_x[TYPED_ROOM], typed_y[TYPED_ROOM], typed_want[TYPED_ROOM]; /* of any type */

/* What is stored where, in the order of rows. */
#define FILL(name, T)                                                                              \
    static void fill_##name(char kind, int64_t h, int w, int64_t sx, int64_t sy)                   \
    {                                                                                              \
        T *a = (T *)typed_x, *b = (T *)typed_y, *c = (T *)typed_want;                              \
        for (int i = 0; i < TYPED_ROOM; i++)                                                       \
            a[i] = (T)(i % 101), b[i] = c[i] = (T)(7 * i % 100);                                   \
        for (int64_t j = 0; j < h; j++)                                                            \
            for (int64_t i = 0; i < w; i++) {                                                      \
                T v = a[TYPED_MIDDLE + j * sx + i], *to = &c[TYPED_MIDDLE + j * sy + i];           \
                if (kind == 'l')                                                                   \
                    a[TYPED_MIDDLE + j * sx + i] = v = (T)(i % 3);                                 \
                if (kind == 'l')                                                                   \
                    for (int k = 0; k < 40; k++)                                                   \
                        v = (T)(v * v - v);                                                        \
                *to = kind != 'a' ? v : v > *to ? (T)(v - *to) : (T)(v + *to);                     \
            }                                                                                      \
    }                                                                                              \
    static tile_arg view_##name(void *p, int64_t h, int w, int64_t by)                             \
    {                                                                                              \
        return tile_view_strided((T *)p + TYPED_MIDDLE, 2, ((int64_t[]){h, w}),                    \
                                 ((int64_t[]){by, 1}));                                            \
    }
FILL(u8, uint8_t)
FILL(i16, int16_t)
FILL(f32, float)
FILL(f64, double)

typedef struct Type {
    const char *name;
    void (*fill)(char kind, int64_t h, int w, int64_t sx, int64_t sy);
    tile_arg (*view)(void *p, int64_t h, int w, int64_t by);
} Type;
static const Type types[] = {{"u8", fill_u8, view_u8},
                             {"i16", fill_i16, view_i16},
                             {"f32", fill_f32, view_f32},
                             {"f64", fill_f64, view_f64}};

static void runs(tile_device *device, tile_kernel *k, const Type *type, char kind, int64_t h, int w,
                 int64_t sx, int64_t sy)
{
    type->fill(kind, h, w, sx, sy);
    tile_arg args[2] = {type->view(typed_x, h, w, sx), type->view(typed_y, h, w, sy)};
    OK(tile_launch(k, NULL, args, 2));
    OK(tile_device_synchronize(device));
    bool same = !memcmp(typed_y, typed_want, sizeof typed_y);
    CHECK(same);
    if (!same)
        printf("%c %s: %d rows of %d, %d and %d apart\n", kind, type->name, (int)h, w, (int)sx,
               (int)sy);
}

/* Rows that are one after the other, or apart: of x, of y, of both; x's from the last to the first,
 * or one for all. */
static void all_distances(tile_device *device, tile_kernel *k, const Type *type, char kind, int w)
{
    static const int64_t rows[] = {1, 7, 16, 64, 67, 131};
    const int64_t by[][2] = {{w, w},   {w + 1, w},  {w, w + 1},  {w + 2, w + 3},
                             {17, 19}, {-w, w + 1}, {-w - 1, w}, {0, w}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t d = 0; d < sizeof by / sizeof *by; d++)
            runs(device, k, type, kind, rows[i], w, by[d][0], by[d][1]);
}

static void all_rows(const char *name)
{
    static const char *const kinds[] = {"moves", "adds", "loops"};
    static const int tiles[] = {16, 64, 5};
    tile_device *device = NULL;
    tile_module *module = NULL;
    if (tile_device_open(name, &device) == TILE_UNAVAILABLE) /* this CPU is below it */
        return;
    CHECK(device);
    OK(tile_module_load_source(device, "rows.tile", typed_source, sizeof typed_source - 1, NULL,
                               &module));
    for (int w = 1; w <= 7; w++)
        for (int kind = 0; kind < 3; kind++) {
            const Type *type = &types[(w + kind) % 4];
            char kernel[32];
            tile_kernel *k = NULL;
            tile_const consts[] = {{"R", w, NULL}, {"B", tiles[(w + kind) % 3], NULL}, {0}};
            snprintf(kernel, sizeof kernel, "%s_%s", kinds[kind], type->name);
            OK(tile_kernel_get(module, kernel, consts, &k));
            all_distances(device, k, type, *kinds[kind], w);
        }
    for (int w = 2; w <= 7; w++) {
        const Type *type = &types[w % 4];
        char kernel[32];
        tile_kernel *k = NULL;
        tile_const consts[] = {{"R", w, NULL}, {0}};
        snprintf(kernel, sizeof kernel, "fixed_%s", type->name);
        OK(tile_kernel_get(module, kernel, consts, &k));
        for (int64_t h = 1; h < 70; h += 23)
            runs(device, k, type, 'f', h, w, w + 1, w + 2);
    }
    tile_module_free(module);
    tile_device_close(device);
}

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
    all_rows("cpu");
    all_rows("cpu:x86-64-v2");
    all_rows("cpu:x86-64-v3");
    all_rows("cpu:x86-64-v4");
    return unit_result();
}
