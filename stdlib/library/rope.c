/* rope.c: tile_rope. */
#include "stdlib/library/library.h"

#include "runtime/contract/grow.h"

enum { MOST_PAIRS = 128 };

static const char function[] = "tile_rope";

typedef struct Rope {
    tile_dtype type;
    int64_t N, H, D, pairs, P;
    const void *x;
    void *y;
    int64_t x_strides[3], y_strides[3]; /* of a token, a head, an element */
    tile_rope_options options;
} Rope;

static tile_status wrong(const char *name, int64_t value, const char *rule)
{
    return tl_lib_wrong(function, name, value, rule);
}

static tile_status check_sizes(const Rope *r)
{
    const struct {
        const char *name;
        int64_t value;
    } extents[] = {{"N", r->N}, {"H", r->H}, {"D", r->D}, {"P", r->P}};
    tile_status status = tl_lib_check_float(function, r->type);
    for (size_t i = 0; i < sizeof extents / sizeof *extents && status == TILE_OK; i++)
        status = tl_lib_check_extent(function, extents[i].name, extents[i].value);
    if (status != TILE_OK)
        return status;
    if (r->options.rotated < 0 || r->options.rotated > r->D || r->options.rotated % 2)
        return wrong("options->rotated", r->options.rotated, "even and at most D");
    if (!r->options.rotated && r->D % 2)
        return wrong("D", r->D, "even where options->rotated is 0");
    if (r->pairs > MOST_PAIRS)
        return wrong(r->options.rotated ? "options->rotated" : "D", 2 * r->pairs, "at most 256");
    if (!r->options.place && r->N > r->P)
        return wrong("N", r->N, "at most P where options->place is NULL");
    return TILE_OK;
}

static tile_status check_array(const Rope *r, const char *name, const char *strides_name,
                               const void *address, const int64_t *strides)
{
    const int64_t extents[] = {r->N, r->H, r->D};
    return tl_lib_check_strided(function, name, strides_name, address, extents, strides, 3,
                                r->type);
}

static tile_status check_places(const Rope *r)
{
    const int64_t extents[] = {r->N, r->H, r->D};
    int64_t x = tl_lib_span(extents, r->x_strides, 3, r->type);
    int64_t y = tl_lib_span(extents, r->y_strides, 3, r->type);
    bool same = r->x == r->y && !memcmp(r->x_strides, r->y_strides, sizeof r->x_strides);
    if (!tl_lib_is_apart(extents, r->y_strides, 3))
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: options->y_strides lets heads of Y overlap",
                           function);
    if (!same && (uintptr_t)r->x < (uintptr_t)r->y + (uintptr_t)y &&
        (uintptr_t)r->y < (uintptr_t)r->x + (uintptr_t)x)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: Y overlaps X and is not the same array",
                           function);
    return TILE_OK;
}

static tile_status check(const Rope *r, const float *cosine, const float *sine)
{
    tile_status status = check_array(r, "X", "options->x_strides", r->x, r->x_strides);
    if (status == TILE_OK)
        status = check_array(r, "Y", "options->y_strides", r->y, r->y_strides);
    if (status == TILE_OK)
        status = check_places(r);
    if (status == TILE_OK && r->pairs && r->P && (!cosine || !sine))
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", function,
                             cosine ? "sine" : "cosine");
    return status;
}

static void take_strides(int64_t *strides, const int64_t *given, int64_t H, int64_t D)
{
    bool dense = !given[0] && !given[1];
    strides[0] = dense ? H * D : given[0];
    strides[1] = dense ? D : given[1];
    strides[2] = 1;
}

static tile_arg view_of(const Rope *r, const void *address, const int64_t *strides)
{
    const int64_t extents[] = {r->N, r->H, r->D};
    return tile_arg_view_strided(address, r->type, 3, extents, strides);
}

tile_status tile_rope(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                      int64_t H, int64_t D, const void *X, const float *cosine, const float *sine,
                      int64_t P, void *Y, const tile_rope_options *options)
{
    Rope r = {.type = type, .N = N, .H = H, .D = D, .P = P, .x = X, .y = Y,
              .options = TILE_ROPE_OPTIONS_INIT};
    if (!kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", function);
    tile_status status = tl_lib_take(function, "tile_rope_options", &r.options, sizeof r.options,
                                     options, TL_LEAST_SIZE(tile_rope_options, place));
    r.pairs = (r.options.rotated ? r.options.rotated : D) / 2;
    if (status == TILE_OK)
        status = check_sizes(&r);
    if (status != TILE_OK)
        return status;
    take_strides(r.x_strides, r.options.x_strides, H, D);
    take_strides(r.y_strides, r.options.y_strides, H, D);
    status = check(&r, cosine, sine);
    if (status != TILE_OK || !N || !H || !D)
        return status;
    const tile_arg args[] = {
        view_of(&r, X, r.x_strides),
        tile_arg_view(r.options.place, TILE_I32, 1, r.options.place ? N : 0, 0, 0, 0, 0, 0, 0, 0),
        tile_arg_view(cosine, TILE_F32, 2, P, r.pairs, 0, 0, 0, 0, 0, 0),
        tile_arg_view(sine, TILE_F32, 2, P, r.pairs, 0, 0, 0, 0, 0, 0),
        view_of(&r, Y, r.y_strides)};
    TlLibCall call = {.function = function, .images = tl_lib_rope_images, .kernel = TL_LIB_rope,
                      .type = type, .form = r.options.backward != 0, .sizes = {r.pairs}};
    return tl_lib_launch(kernels, stream, &call, args, sizeof args / sizeof *args);
}
