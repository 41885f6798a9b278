/* How the promises of a form are written (ir/form.h says what they mean): the compiler writes those
 * of a kernel, the runtime those that a launch wishes for. */
#ifndef TL_FORM_TEXT_H
#define TL_FORM_TEXT_H
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/contract/tile_image.h"

#define TL_FORM_ALIGNED "aligned" /* all that can be promised */
#define TL_FORM_GENERAL "general" /* nothing */
#define TL_FORM_NEAR "near"
#define TL_FORM_GRID "grid"
#define TL_FORM_PAIRS   "pairs"
#define TL_FORM_EXTENT ".extent."
#define TL_FORM_STRIDE ".stride."

/* A text in the making; without `text`, only its length. */
typedef struct tl_form_out {
    char *text;
    size_t len, room;
} tl_form_out;

static inline void tl_form_put(tl_form_out *out, const char *name, const char *rest)
{
    size_t room = out->text && out->len < out->room ? out->room - out->len : 0;
    out->len += (size_t)snprintf(room ? out->text + out->len : NULL, room, "%s%s%s",
                                 out->len ? "," : "", name, rest);
}

/* The number that the test is of, of a parameter, is a multiple of `unit`. */
static inline void tl_form_put_unit(tl_form_out *out, const char *param, const tile_image_test *t,
                                    uint64_t unit)
{
    char rest[64];
    if (t->kind == TILE_TEST_EXTENT || t->kind == TILE_TEST_STRIDE)
        snprintf(rest, sizeof rest, "%s%" PRIu32 "=%" PRIu64,
                 t->kind == TILE_TEST_EXTENT ? TL_FORM_EXTENT : TL_FORM_STRIDE, t->axis, unit);
    else
        snprintf(rest, sizeof rest, "=%" PRIu64, unit);
    tl_form_put(out, param, rest);
}

/* What comes last. */
static inline void tl_form_end(tl_form_out *out, bool near, bool grid, bool pairs)
{
    if (near)
        tl_form_put(out, TL_FORM_NEAR, "");
    if (grid)
        tl_form_put(out, TL_FORM_GRID, "");
    if (pairs)
        tl_form_put(out, TL_FORM_PAIRS, "");
    if (!out->len)
        tl_form_put(out, TL_FORM_GENERAL, "");
}
#endif
