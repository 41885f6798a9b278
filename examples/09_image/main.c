/* Filters of a picture: 09_image [IN.png [OUT.png]]. OUT shows the picture and what five filters
 * make of it; each is compared with plain C. */
#define PROGRAM "09_image"
#include "../shared/picture.h"

enum { RADIUS = 6, WINDOW = 4 }; /* of the blur, of the bilateral filter */
#include "plain.h"
PLAIN(plain, float)
PLAIN(exact, double)

static const float SIGMA = 2.5f, NEAR = 2.5f, LIKE = 0.12f, AMOUNT = 1.5f, STEPS = 6;

enum { PICTURE, HALF, SOFT, EDGES, SMOOTH, LINES, SHARP, DRAWING, PLANES };
enum { TO_PLANES, ALONG, DOWN, SOBEL, BILATERAL, SHARPEN, DRAW, TO_BYTES, KERNELS };

typedef struct Image {
    int64_t h, w;
    uint8_t *pixels; /* [h][w][3] */
} Image;

typedef struct Filters {
    Modules modules;
    Buffers buffers;
    tile_kernel *kernel[KERNELS];
    tile_buffer *plane[PLANES], *in, *out; /* [3][h][w] of f32; pictures of bytes */
    double seconds[KERNELS];
} Filters;

static bool read_png(const char *path, Image *image)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_file(&png, path)) return fail(path, png.message);
    png.format = PNG_FORMAT_RGB;
    *image = (Image){png.height, png.width, NULL};
    if (image->h * image->w > 1 << 26) return png_image_free(&png), fail(path, "too large");
    if (!(image->pixels = malloc(PNG_IMAGE_SIZE(png))))
        return png_image_free(&png), fail(path, "no memory");
    return png_image_finish_read(&png, NULL, image->pixels, 0, NULL) || fail(path, png.message);
}

/* ---- the kernels ---- */

static bool prepare(Filters *f, const Image *image)
{
#define OWN KERNEL_DIR "/image.tile"
#define LIBRARY "std.kernels.filter"
    static const KernelRow rows[KERNELS] = {
        [TO_PLANES] = {OWN, "planes", {{0}}},
        [ALONG] = {LIBRARY, "blur", {{"R", RADIUS, 0}}},
        [DOWN] = {LIBRARY, "blur", {{"R", RADIUS, 0}, {"DOWN", 1, 0}}},
        [SOBEL] = {LIBRARY, "sobel", {{0}}},
        [BILATERAL] = {LIBRARY, "bilateral", {{"R", WINDOW, 0}}},
        [SHARPEN] = {OWN, "sharpen", {{0}}},
        [DRAW] = {OWN, "drawing", {{0}}},
        [TO_BYTES] = {OWN, "bytes", {{0}}},
    };
    size_t n = 3 * (size_t)(image->h * image->w);
    for (int i = 0; i < PLANES; i++)
        if (!zeros(&f->buffers, &f->plane[i], n, 4)) return false;
    return kernels_get(&f->modules, rows, KERNELS, f->kernel) &&
           kernels_prepare(f->kernel, KERNELS) && zeros(&f->buffers, &f->in, n, 1) &&
           zeros(&f->buffers, &f->out, 6 * n, 1) &&
           !tile_buffer_upload(f->in, 0, image->pixels, n, NULL);
}

/* The least time of three runs is kept. */
static bool measure(Filters *f, int i, const tile_arg *args, size_t n)
{
    f->seconds[i] = INFINITY;
    for (int k = 0; k < 3; k++) {
        double start = now();
        if (tile_launch(f->kernel[i], NULL, args, n) || tile_stream_synchronize(NULL)) return false;
        f->seconds[i] = fmin(f->seconds[i], now() - start);
    }
    return true;
}

static bool filter(Filters *f, int64_t h, int64_t w)
{
#define P(i) tile_f32_view(f->plane[i], 3, h, w)
#define MEASURE(f, i, ...) measure(f, i, TILE_ARGS(__VA_ARGS__))
    if (!(MEASURE(f, TO_PLANES, tile_u8_view(f->in, h, w, 3), P(PICTURE)) &&
          MEASURE(f, ALONG, P(PICTURE), P(HALF), tile_f32(SIGMA)) &&
          MEASURE(f, DOWN, P(HALF), P(SOFT), tile_f32(SIGMA)) &&
          MEASURE(f, SOBEL, P(PICTURE), P(EDGES)) &&
          MEASURE(f, BILATERAL, P(PICTURE), P(SMOOTH), tile_f32(NEAR), tile_f32(LIKE)) &&
          MEASURE(f, SHARPEN, P(PICTURE), P(SOFT), P(SHARP), tile_f32(AMOUNT)) &&
          MEASURE(f, SOBEL, P(SMOOTH), P(LINES)) &&
          MEASURE(f, DRAW, P(SMOOTH), P(LINES), P(DRAWING), tile_f32(STEPS))))
        return false;
    const int shown[6] = {PICTURE, SOFT, SHARP, EDGES, SMOOTH, DRAWING}; /* 2 rows of 3 */
    for (int i = 0; i < 6; i++) {
        int64_t extents[3] = {h, w, 3}, strides[3] = {9 * w, 3, 1};
        int64_t place = (i / 3 * h * 3 + i % 3) * w * 3;
        if (!MEASURE(f, TO_BYTES, P(shown[i]),
                 tile_buffer_view_strided(f->out, place, TILE_U8, 3, extents, strides)))
            return false;
    }
    return true;
#undef P
#undef MEASURE
}

/* ---- beside plain C ---- */

/* Prints a filter's greatest error and times; false: the error is no rounding error. */
static bool compare(const Filters *f, int plane, const char *name, const double *want, size_t n,
                    double tile, double c, float *scratch)
{
    double error = 0;
    if (tile_buffer_download(f->plane[plane], 0, scratch, 4 * n, NULL))
        return fail("", tile_last_error());
    for (size_t i = 0; i < n; i++) error = worse(error, fabs(scratch[i] - want[i]));
    printf("%-10s max error %.1e, %8.3f ms, plain C %8.3f ms\n", name, error, 1e3 * tile, 1e3 * c);
    return error < 2e-5;
}

static bool check(const Filters *f, const Image *image)
{
    ptrdiff_t h = image->h, w = image->w;
    size_t n = 3 * (size_t)(h * w);
    float *x = malloc(n * 4 * sizeof *x);
    double *z = malloc(n * 4 * sizeof *z), time[5];
    if (!x || !z) return free(x), free(z), fail("", "no memory");
    for (size_t i = 0; i < n; i++) {
        size_t c = i / (n / 3), at = i % (n / 3);
        z[i] = image->pixels[3 * at + c] / 255.0, x[i] = (float)z[i];
    }
    time[0] = now(), plain_blur(h, w, x, x + n, x + 2 * n, SIGMA);
    time[1] = now(), plain_sharpen(h, w, x, x + 2 * n, x + 3 * n, AMOUNT);
    time[2] = now(), plain_sobel(h, w, x, x + 3 * n);
    time[3] = now(), plain_bilateral(h, w, x, x + 3 * n, NEAR, LIKE), time[4] = now();
    double *result = z + 3 * n;
    const double *s = f->seconds;
    bool good = true;
    exact_blur(h, w, z, z + n, z + 2 * n, SIGMA);
    good &= compare(f, SOFT, "blur", z + 2 * n, n, s[ALONG] + s[DOWN], time[1] - time[0], x);
    exact_sharpen(h, w, z, z + 2 * n, result, AMOUNT);
    good &= compare(f, SHARP, "sharpen", result, n, s[SHARPEN], time[2] - time[1], x);
    exact_sobel(h, w, z, result);
    good &= compare(f, EDGES, "edges", result, n, s[SOBEL], time[3] - time[2], x);
    exact_bilateral(h, w, z, result, NEAR, LIKE);
    good &= compare(f, SMOOTH, "bilateral", result, n, s[BILATERAL], time[4] - time[3], x);
    return free(x), free(z), good;
}

int main(int argc, char **argv)
{
    const char *in = argc > 1 ? argv[1] : KERNEL_DIR "/picture.png";
    Image image = {0}, sheet = {0};
    Filters f = {0};
    if (argc > 3) return fputs("usage: 09_image [IN.png [OUT.png]]\n", stderr), 2;
    bool good = read_png(in, &image);
    if (good) {
        sheet = (Image){2 * image.h, 3 * image.w, malloc(18 * (size_t)(image.h * image.w))};
        printf("%lld x %lld pixels\n", (long long)image.w, (long long)image.h);
        good = sheet.pixels || fail("", "no memory");
    }
    if (good && !(prepare(&f, &image) && filter(&f, image.h, image.w) &&
                  !tile_buffer_download(f.out, 0, sheet.pixels, tile_buffer_bytes(f.out), NULL)))
        good = fail("", tile_last_error());
    if (good) good = check(&f, &image);
    if (good) {
        const char *out = argc > 2 ? argv[2] : "image.png";
        good = picture_write(out, (int)sheet.w, (int)sheet.h, PNG_FORMAT_RGB, sheet.pixels);
        if (good) printf("%s: the picture, blurred, sharper; edges, smooth, a drawing\n", out);
    }
    buffers_free(&f.buffers), modules_free(&f.modules), free(image.pixels), free(sheet.pixels);
    return !good;
}
