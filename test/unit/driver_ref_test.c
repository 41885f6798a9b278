/* The ref device through tile.h: an image made by hand around tile IR text. */
#include "runtime/include/tile.h"
#include "runtime/contract/tile_image.h"
#include "test/unit/unit.h"

static const char *good = "files \"k.tile\"\n"
                          "kernel @bump(%x: ptr<i32>, %n: i32) {\n"
                          "  %0 = pid {axis = 0} : i32\n"
                          "  %1 = pid {axis = 1} : i32\n"
                          "  %2 = npid {axis = 0} : i32\n"
                          "  %3 = mul %1, %2 : i32\n"
                          "  %4 = add %3, %0 : i32\n"
                          "  %5 = ptr_add %x, %4 : ptr<i32>\n"
                          "  %6 = load %5 : i32 @4:9\n"
                          "  %7 = add %6, %n : i32\n"
                          "  store %5, %7\n"
                          "  %8 = ne %4, %n : bool\n"
                          "  assert %8 {text = \"met itself\"} @7:3\n"
                          "  print %7 {text = \"now\"}\n"
                          "  return\n"
                          "}\n";

static char image[8192] __attribute__((aligned(64)));
static uint32_t used;

static uint32_t put(const void *data, size_t size)
{
    uint32_t at = used = (used + 7) / 8 * 8;
    memcpy(image + at, data, size);
    used += (uint32_t)size;
    return at;
}
static uint32_t put_text(const char *text)
{
    return put(text, strlen(text) + 1);
}

static void make_image(const char *code, uint32_t flags)
{
    memset(image, 0, sizeof image);
    used = sizeof(tile_image_header);
    tile_image_param params[2] = {
        {.name = put_text("x"), .kind = TILE_PARAM_POINTER, .dtype = TILE_I32},
        {.name = put_text("n"), .kind = TILE_PARAM_SCALAR, .dtype = TILE_I32, .is_const = 1},
    };
    tile_image_kernel k = {.name = put_text("bump"), .nparams = 2, .flags = flags};
    k.symbol = k.name;
    k.params = put(params, sizeof params);
    k.code = put_text(code);
    k.ncode = (uint32_t)strlen(code);
    uint32_t file = put_text("k.tile");
    tile_image_header h = {.version = TILE_IMAGE_VERSION,
                           .header_bytes = sizeof h,
                           .target = put_text("ref"),
                           .nkernels = 1,
                           .kernels = put(&k, sizeof k),
                           .nfiles = 1,
                           .files = put(&file, sizeof file)};
    memcpy(h.magic, TILE_IMAGE_MAGIC, sizeof h.magic);
    h.total_bytes = used;
    h.checksum = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = sizeof h; i < used; i++)
        h.checksum = (h.checksum ^ (unsigned char)image[i]) * UINT64_C(0x100000001b3);
    memcpy(image, &h, sizeof h);
}

static char prints[512], failure[512];
static void on_print(void *user, const char *text)
{
    (void)user;
    strncat(prints, text, sizeof prints - strlen(prints) - 1);
    strncat(prints, ";", sizeof prints - strlen(prints) - 1);
}
static void on_failure(void *user, const char *text)
{
    (void)user;
    snprintf(failure, sizeof failure, "%s", text);
}

/* Two rows of three programs add n to x[0..5]. */
static tile_status launch(tile_device *dev, const tile_arg *args)
{
    tile_module *mod;
    tile_kernel *k;
    prints[0] = failure[0] = 0;
    tile_status s = tile_module_load_image(dev, image, used, &mod);
    if (s != TILE_OK)
        return s;
    tile_stream *stream;
    s = tile_device_default_stream(dev, &stream);
    if (s == TILE_OK)
        s = tile_kernel_get(mod, "bump", NULL, &k);
    if (s == TILE_OK)
        s = tile_launch_grid(k, NULL, args, 2, (int64_t[]){3, 2}, 2);
    if (s == TILE_OK)
        s = tile_stream_synchronize(stream);
    tile_module_free(mod);
    return s;
}

int main(void)
{
    tile_device *dev;
    tile_callbacks callbacks = {sizeof callbacks, on_print, on_failure, NULL};
    if (!CHECK(tile_device_open("ref", &dev) == TILE_OK))
        return unit_result();
    CHECK(tile_device_set_callbacks(dev, &callbacks) == TILE_OK);
    int32_t x[6] = {1, 2, 3, 4, 5, 6};

    make_image(good, 0);
    CHECK(launch(dev, (tile_arg[]){tile_ptr_sized(x, sizeof x), tile_i32(10)}) == TILE_OK);
    for (int i = 0; i < 6; i++)
        CHECK_INT(x[i], i + 11);
    CHECK(strstr(prints, "11") && strstr(prints, "16"));
    CHECK(strstr(prints, "12") < strstr(prints, "13"));

    CHECK(launch(dev, (tile_arg[]){tile_ptr_sized(x, sizeof x), tile_i32(4)}) == TILE_FAILED);
    CHECK(strstr(failure, "k.tile:7:3") && strstr(failure, "met itself"));
    CHECK_INT(x[5], 20); /* the others went on */

    make_image(good, TILE_KERNEL_CHECKED);
    CHECK(launch(dev, (tile_arg[]){tile_ptr_sized(x, 5 * sizeof *x), tile_i32(10)}) == TILE_FAILED);
    CHECK(strstr(failure, "k.tile:4:9") && strstr(failure, "x + 20 is outside its 20 bytes"));
    CHECK_INT(x[5], 20);

    make_image("kernel @bump(%x: ptr<i32>) {\n  return\n}\n", 0);
    CHECK(launch(dev, (tile_arg[]){tile_ptr(x), tile_i32(1)}) == TILE_BAD_IMAGE);
    make_image("kernel @bump(%x: ptr<i32>, %n: i32) {\n  nonsense\n}\n", 0);
    CHECK(launch(dev, (tile_arg[]){tile_ptr(x), tile_i32(1)}) == TILE_BAD_IMAGE);
    tile_device_close(dev);
    return unit_result();
}
