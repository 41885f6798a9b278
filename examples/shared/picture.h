/* picture.h: PNG files, for programs that define PROGRAM before they include it. */
#ifndef PICTURE_H
#define PICTURE_H
#include "example.h"
#include <png.h>

/* format: PNG_FORMAT_RGB or PNG_FORMAT_GRAY. False: the file cannot be written, as was said. */
static inline bool picture_write(const char *path, int width, int height, png_uint_32 format,
                                 const uint8_t *pixels)
{
    png_image png = {.version = PNG_IMAGE_VERSION, .format = format, .width = (png_uint_32)width,
                     .height = (png_uint_32)height};
    return png_image_write_to_file(&png, path, 0, pixels, 0, NULL) || fail(path, png.message);
}
#endif
