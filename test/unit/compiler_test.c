/* The compiler as a library (tilec.h). */
#include "codegen/include/tilec.h"
#include <string.h>
#include "runtime/include/tile_image.h"
#include "test/unit/unit.h"

static const char KERNEL[] = "kernel k(f32 x[N]) { x[0 +: 32] = 1; }";

/* The text is `size` bytes: what follows in memory is not read. */
static void text_needs_no_end_mark(void)
{
    char text[sizeof KERNEL + 8];
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out;
    memset(text, ')', sizeof text);
    memcpy(text, KERNEL, sizeof KERNEL - 1);
    CHECK(tilec_compile_source("k.tile", text, sizeof KERNEL - 1, &o, &out) == TILEC_OK);
    tilec_output_free(out);
}

/* Every kind of target gives an image that says which it is for. */
static void images_name_their_target(void)
{
    static const char *const TARGETS[] = {"cpu", "ref", "sm_80", "gfx942", "emu:sm_80"};
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        tilec_options o = TILEC_OPTIONS_INIT;
        tilec_output *out;
        size_t size;
        o.target = TARGETS[i];
        CHECK(tilec_compile_source("k.tile", KERNEL, sizeof KERNEL - 1, &o, &out) == TILEC_OK);
        const char *image = tilec_output_data(out, &size);
        const tile_image_header *h = (const void *)image;
        CHECK(image && !strcmp(image + h->target, TARGETS[i]));
        const tile_image_kernel *k = (const void *)(image + h->kernels);
        if (!strcmp(TARGETS[i], "sm_80"))
            CHECK(k->threads == 128 && !image[k->code + k->ncode - 1] &&
                  strstr(image + k->code, image + k->symbol));
        tilec_output_free(out);
    }
}

int main(void)
{
    text_needs_no_end_mark();
    images_name_their_target();
    return unit_result();
}
