// A C++ host: lists in place of compound literals, element types by overloads. host IMAGE
#include <cstdio>
#include <vector>
#include "tile.h"

struct half { // a type of the host's own
    uint16_t bits;
};
template <> struct tile_element<half> { static const tile_dtype dtype = TILE_F16; };

static int failures;
static void check(bool ok, const char *what)
{
    if (!ok)
        std::printf("failed: %s: %s\n", what, tile_last_error());
    failures += !ok;
}
#define CHECK(cond) check((cond), #cond)

static double wrong[3][4][2][2];
static float x[2][4], y[2][4];
static uint16_t h[4] = {0x3c00, 0x4000, 0x4200, 0x4400};
static half out[4];

int main(int argc, char **argv)
{
    std::FILE *f = argc > 1 ? std::fopen(argv[1], "rb") : nullptr;
    if (!f)
        return 2;
    std::vector<char> image(1 << 20);
    image.resize(std::fread(image.data(), 1, image.size(), f));
    std::fclose(f);
    tile_device *d = nullptr;
    tile_module *m = nullptr;
    tile_kernel *scale = nullptr, *copy = nullptr;
    CHECK(tile_device_open("cpu", &d) == TILE_OK);
    CHECK(tile_module_load_image(d, image.data(), image.size(), &m) == TILE_OK);
    CHECK(tile_kernel_get(m, "scale", nullptr, &scale) == TILE_OK);
    CHECK(tile_kernel_get(m, "copy", nullptr, &copy) == TILE_OK);
    for (int i = 0; i < 8; i++)
        x[i / 4][i % 4] = float(i);
    CHECK(tile_launch(scale, nullptr, {tile_view(x, 2, 4), tile_view(y, 2, 4), tile_f32(3)}) == TILE_OK);
    CHECK(y[1][3] == 21);
    CHECK(tile_launch_grid(scale, nullptr, {tile_view(x, 2, 4), tile_view(y, 2, 4), tile_f32(5)}, {2}) == TILE_OK);
    CHECK(y[1][3] == 35);
    CHECK(tile_launch(scale, nullptr, {tile_view(wrong[0], 2, 4), tile_view(y, 2, 4), tile_f32(1)}) ==
          TILE_BAD_ARGUMENT);
    CHECK(strstr(tile_last_error(), "expects elements of type f32, got f64"));
    CHECK(tile_launch(scale, nullptr, {}) == TILE_BAD_ARGUMENT);
    CHECK(tile_launch(copy, nullptr, {tile_view(h, 4), tile_view(out, 4)}) == TILE_OK);
    CHECK(out[3].bits == 0x4400);
    CHECK(tile_launch(copy, nullptr, {tile_view(x, 4), tile_view(out, 4)}) == TILE_BAD_ARGUMENT);
    CHECK(tile_view(nullptr, 0).dtype == TILE_ANY && tile_ptr(wrong).dtype == TILE_F64);
    tile_buffer *b = nullptr;
    CHECK(tile_buffer_alloc(d, 64, &b) == TILE_OK && tile_buffer_upload(b, 32, x, 32, nullptr) == TILE_OK);
    CHECK(tile_launch(scale, nullptr, TILE_ARGS(tile_buffer_view_at(b, 8, TILE_F32, 2, 4),
                                                tile_f32_view(b, 2, 4), tile_f32(2))) == TILE_OK);
    CHECK(tile_buffer_download(b, 0, y, 32, nullptr) == TILE_OK && y[1][3] == 14);
    CHECK(tile_launch(copy, nullptr, {tile_f16_view(b, 33), tile_f16_view(b, 33)}) ==
          TILE_BAD_ARGUMENT);
    CHECK(strstr(tile_last_error(), "needs 66 bytes of memory, got 64"));
    tile_buffer_free(b);
    tile_device_close(d);
    tile_module_free(m);
    std::printf("%d failed\n", failures);
    return failures != 0;
}
