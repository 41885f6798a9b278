/* attention.c: tile_attention.
 *
 * 1. arrays: each of Q, K, V, O with its extents [batch, heads, rows, elements] and strides, those
 *    of the caller or those of dense [batch, rows, heads, elements].
 * 2. check all of them.
 * 3. launch: the form by causal and window, the tile by the elements of a head and the queries. */
#include "stdlib/library/library.h"

#include <math.h>

#include "runtime/contract/grow.h"

enum { MOST_ELEMENTS = 256 };

typedef struct Heads {
    const char *name, *strides_name;
    const void *address;
    int64_t extents[4], strides[4];
} Heads;

typedef struct Attention {
    tile_dtype type;
    int64_t B, H, HK, M, N, D;
    Heads q, k, v, o;
    tile_attention_options options;
} Attention;

static const char function[] = "tile_attention";

static Heads heads(const char *name, const char *strides_name, const void *address, int64_t batch,
                   int64_t count, int64_t rows, int64_t elements, const int64_t *given)
{
    Heads h = {name, strides_name, address, {batch, count, rows, elements},
               {rows * count * elements, elements, count * elements, 1}};
    if (given[0] || given[1] || given[2])
        for (int i = 0; i < 3; i++)
            h.strides[i] = given[i];
    return h;
}

static tile_status wrong(const char *name, int64_t value, const char *rule)
{
    return tl_lib_wrong(function, name, value, rule);
}

static tile_status check_sizes(const Attention *a)
{
    const struct {
        const char *name;
        int64_t value;
    } extents[] = {{"B", a->B}, {"H", a->H}, {"HK", a->HK}, {"M", a->M}, {"N", a->N}};
    tile_status status = tl_lib_check_float(function, a->type);
    for (size_t i = 0; i < sizeof extents / sizeof *extents && status == TILE_OK; i++)
        status = tl_lib_check_extent(function, extents[i].name, extents[i].value);
    if (status != TILE_OK)
        return status;
    int64_t DV = a->options.value_size;
    if (a->D < 1 || a->D > MOST_ELEMENTS)
        return wrong("D", a->D, "from 1 to 256");
    if (DV < 0 || DV > MOST_ELEMENTS)
        return wrong("options->value_size", DV, "from 1 to 256, or 0 for D");
    if (a->H > 0 && (a->HK < 1 || a->H % a->HK))
        return wrong("HK", a->HK, "a divisor of H");
    if (a->options.window < 0)
        return wrong("options->window", a->options.window, "0 or more");
    if (a->options.window && !a->options.causal)
        return wrong("options->window", a->options.window, "0 without options->causal");
    return TILE_OK;
}

static tile_status check(const Attention *a)
{
    const Heads *all[] = {&a->q, &a->k, &a->v, &a->o};
    tile_status status = TILE_OK;
    for (int i = 0; i < 4 && status == TILE_OK; i++)
        status = tl_lib_check_strided(function, all[i]->name, all[i]->strides_name,
                                      all[i]->address, all[i]->extents, all[i]->strides, 4,
                                      a->type);
    if (status == TILE_OK && !tl_lib_is_apart(a->o.extents, a->o.strides, 4))
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s lets rows of O overlap", function,
                             a->o.strides_name);
    return status;
}

static tile_arg view_of(const Heads *h, tile_dtype type)
{
    return tile_arg_view_strided(h->address, type, 4, h->extents, h->strides);
}

/* Numbers of [B, H, M], or none. */
static tile_arg sums_of(const Attention *a)
{
    int64_t there = a->options.lse != NULL;
    return tile_arg_view(a->options.lse, TILE_F32, 3, there * a->B, a->H, a->M, 0, 0, 0, 0, 0);
}

static tile_status launch(tile_kernels *k, tile_stream *stream, const Attention *a)
{
    const tile_attention_options *o = &a->options;
    double scale = o->scale != 0 ? o->scale : 1 / sqrt((double)a->D);
    int64_t left = o->window ? o->window - 1 : 0;
    const tile_arg args[] = {
        view_of(&a->q, a->type), view_of(&a->k, a->type), view_of(&a->v, a->type),
        view_of(&a->o, a->type), sums_of(a),
        tile_arg_view(NULL, TILE_F32, 1, 0, 0, 0, 0, 0, 0, 0, 0), /* slope, sink */
        tile_arg_view(NULL, TILE_F32, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        tile_f32((float)scale), tile_f32(1), /* scores: scale, cap, left, longest, page */
        tile_i32((int32_t)(left < INT32_MAX ? left : INT32_MAX)), tile_i32(0), tile_i32(16)};
    int64_t DV = a->o.extents[3];
    TlLibCall call = {.function = function, .images = tl_lib_attention_images,
                      .kernel = TL_LIB_attention, .type = a->type,
                      .form = o->causal ? 1 + (o->window > 0) : 0,
                      .sizes = {a->D > DV ? a->D : DV, a->M, a->N}};
    return tl_lib_launch(k, stream, &call, args, sizeof args / sizeof *args);
}

tile_status tile_attention(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t B,
                           int64_t H, int64_t HK, int64_t M, int64_t N, int64_t D, const void *Q,
                           const void *K, const void *V, void *O,
                           const tile_attention_options *options)
{
    Attention a = {.type = type, .B = B, .H = H, .HK = HK, .M = M, .N = N, .D = D,
                   .options = TILE_ATTENTION_OPTIONS_INIT};
    if (!kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", function);
    tile_status status =
        tl_lib_take(function, "tile_attention_options", &a.options, sizeof a.options, options,
                    TL_LEAST_SIZE(tile_attention_options, scale));
    if (status == TILE_OK)
        status = check_sizes(&a);
    if (status != TILE_OK)
        return status;
    const tile_attention_options *o = &a.options;
    int64_t DV = o->value_size ? o->value_size : D;
    a.q = heads("Q", "options->q_strides", Q, B, H, M, D, o->q_strides);
    a.k = heads("K", "options->k_strides", K, B, HK, N, D, o->k_strides);
    a.v = heads("V", "options->v_strides", V, B, HK, N, DV, o->v_strides);
    a.o = heads("O", "options->o_strides", O, B, H, M, DV, o->o_strides);
    status = check(&a);
    if (status != TILE_OK || !B || !H || !M)
        return status;
    return launch(kernels, stream, &a);
}
