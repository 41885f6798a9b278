/* Elements at distances that only the launch knows, on the CPU: side by side (nest_dense.c), a few
 * apart, all of one, backwards, and further apart; of elements of one to eight bytes. */
#include <string.h>

#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"
#include "test/unit/ok.h"
#include "test/unit/unit.h"

/* Along the last axis, with neighbours; along the first one; both, by an index tile. */
#define KERNELS(T)                                                                                 \
    "kernel rows_" #T "(const " #T " x[H : sx, W : tx], " #T " y[H : sy, W : ty])\n"               \
    "    grid(cdiv(W, 70), H)\n"                                                                   \
    "{\n"                                                                                          \
    "    int j = pid(1);\n"                                                                        \
    "    int i = pid(0) * 70;\n"                                                                   \
    "    y[j, i +: 70] = y[j, i +: 70] + x[j, i +: 70] + x[j, i + 1 +: 70];\n"                     \
    "}\n"                                                                                          \
    "kernel columns_" #T "(const " #T " x[H : sx, W : tx], " #T " y[H : sy, W : ty])\n"            \
    "    grid(W, cdiv(H, 64))\n"                                                                   \
    "{\n"                                                                                          \
    "    int j = pid(1) * 64;\n"                                                                   \
    "    y[j +: 64, pid(0)] = y[j +: 64, pid(0)] + x[j +: 64, pid(0)] + x[j +: 64, pid(0) + 1];\n" \
    "}\n"                                                                                          \
    "kernel blocks_" #T "(const " #T " x[H : sx, W : tx], " #T " y[H : sy, W : ty])\n"             \
    "    grid(cdiv(W, 16), cdiv(H, 16))\n"                                                         \
    "{\n"                                                                                          \
    "    int j = pid(1) * 16;\n"                                                                   \
    "    auto i = pid(0) * 16 + iota(16);\n"                                                       \
    "    auto v = x[j +: 16, i] + x[j +: 16, i + 1];\n"                                            \
    "    y[j +: 16, pid(0) * 16 +: 16] = y[j +: 16, pid(0) * 16 +: 16] + v;\n"                     \
    "}\n"
static const char source[] = KERNELS(u8) KERNELS(i16) KERNELS(f32) KERNELS(f64);

enum { ROOM = 1 << 16, MIDDLE = ROOM / 2 };
static double x[ROOM], y[ROOM], want[ROOM]; /* room for elements of any type */

typedef struct Shape {
    int64_t extent[2], x[2], y[2]; /* strides of x, of y */
} Shape;

static tile_arg view(char type, void *p, const Shape *s, bool of_x)
{
    const int64_t *by = of_x ? s->x : s->y;
    return type == 'u'   ? tile_view_strided((uint8_t *)p + MIDDLE, 2, s->extent, by)
           : type == 'i' ? tile_view_strided((int16_t *)p + MIDDLE, 2, s->extent, by)
           : type == 'f' ? tile_view_strided((float *)p + MIDDLE, 2, s->extent, by)
                         : tile_view_strided((double *)p + MIDDLE, 2, s->extent, by);
}

#define FILL(T)                                                                                    \
    static void fill_##T(const Shape *s)                                                           \
    {                                                                                              \
        T *a = (T *)x, *b = (T *)y, *c = (T *)want;                                                \
        for (int i = 0; i < ROOM; i++)                                                             \
            a[i] = (T)(i % 101), b[i] = c[i] = (T)(7 * i % 100);                                   \
        for (int64_t h = 0; h < s->extent[0]; h++)                                                 \
            for (int64_t w = 0; w < s->extent[1]; w++) {                                           \
                const T *from = a + MIDDLE + h * s->x[0] + w * s->x[1];                            \
                T next = w + 1 < s->extent[1] ? from[s->x[1]] : 0;                                 \
                T *to = c + MIDDLE + h * s->y[0] + w * s->y[1];                                    \
                *to = (T)(*to + from[0] + next);                                                   \
            }                                                                                      \
    }
FILL(uint8_t)
FILL(int16_t)
FILL(float)
FILL(double)

static void fill(char type, const Shape *s)
{
    switch (type) {
    case 'u': fill_uint8_t(s); return;
    case 'i': fill_int16_t(s); return;
    case 'f': fill_float(s); return;
    }
    fill_double(s);
}

/* Both arrays begin in the middle of more memory, none of which changes beside their elements. */
static void adds(tile_device *device, tile_module *module, const char *name, char type,
                 const Shape *s)
{
    tile_kernel *k = NULL;
    OK(tile_kernel_get(module, name, NULL, &k));
    fill(type, s);
    tile_arg args[2] = {view(type, x, s, true), view(type, y, s, false)};
    OK(tile_launch(k, NULL, args, 2));
    OK(tile_device_synchronize(device));
    CHECK(!memcmp(y, want, sizeof y));
}

static const Shape shapes[] = {
    {{5, 150}, {150, 1}, {150, 1}},                                  /* side by side */
    {{5, 150}, {160, 1}, {170, 1}},                                  /* rows apart */
    {{5, 150}, {150, 1}, {300, 2}},                                  /* every second element of y */
    {{5, 150}, {300, 2}, {150, 1}},                                  /* of x */
    {{5, 150}, {450, 3}, {450, 3}},                                  /* a channel of three */
    {{5, 150}, {600, 4}, {600, 4}},                                  /* of four */
    {{5, 150}, {1, 5}, {1, 7}},                                      /* in another order */
    {{5, 150}, {0, 0}, {150, 1}},                                    /* all of one element */
    {{5, 150}, {150, 0}, {450, 3}},                                  /* of one for each row */
    {{5, 150}, {-150, -1}, {150, 1}},                                /* backwards */
    {{5, 150}, {300, -2}, {-450, -3}}, {{70, 33}, {1, 70}, {1, 70}}, /* columns side by side */
    {{70, 33}, {1, 70}, {33, 1}},                                    /* of x */
    {{130, 1}, {3, 1}, {2, 1}},        {{130, 1}, {1, 9}, {1, 9}},   {{1, 1}, {5, 4}, {3, 2}},
    {{3, 17}, {34, 2}, {68, 4}},       {{0, 9}, {9, 1}, {9, 1}},     {{9, 0}, {1, 1}, {1, 1}},
};

static void all_on(tile_device *device)
{
    static const char *const types[] = {"u8", "i16", "f32", "f64"}, *const kernels[] = {"rows",
                                                                                        "columns",
                                                                                        "blocks"};
    tile_module *module = NULL;
    OK(tile_module_load_source(device, "apart.tile", source, sizeof source - 1, NULL, &module));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                char name[32];
                snprintf(name, sizeof name, "%s_%s", kernels[k], types[t]);
                adds(device, module, name, strcmp(types[t], "f64") ? *types[t] : 'd', &shapes[i]);
            }
    tile_module_free(module);
}

/* Levels of other CPUs are not there. */
int main(void)
{
    static const char *const devices[] = {"cpu", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        tile_device *device = NULL;
        tile_status s = tile_device_open(devices[i], &device);
        CHECK(i > 0 || s == TILE_OK);
        if (s == TILE_OK)
            all_on(device);
        tile_device_close(device);
    }
    return unit_result();
}
