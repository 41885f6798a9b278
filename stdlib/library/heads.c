/* heads.c: sizes, options and arrays of attention, forward and backward. */
#include "stdlib/library/heads.h"

#include <math.h>

#include "runtime/contract/grow.h"

enum { MOST_ELEMENTS = 256 };

/* ---- sizes and options ---- */

static tile_status check_options(const TlLibAttention *a)
{
    const tile_attention_options *o = &a->options;
    if (o->value_size < 0 || o->value_size > MOST_ELEMENTS)
        return tl_lib_wrong(a->function, "options->value_size", o->value_size,
                            "from 1 to 256, or 0 for D");
    if (o->window < 0)
        return tl_lib_wrong(a->function, "options->window", o->window, "0 or more");
    if (o->window && !o->causal)
        return tl_lib_wrong(a->function, "options->window", o->window,
                            "0 without options->causal");
    if (o->mask && o->causal)
        return tl_lib_wrong(a->function, "options->causal", o->causal, "0 with options->mask");
    if (!(o->dropout >= 0 && o->dropout <= 1))
        return tl_lib_fail(TILE_BAD_ARGUMENT,
                           "%s: options->dropout is %g, but must be from 0 to 1", a->function,
                           o->dropout);
    if (o->dropout > 0 && a->M + a->N > INT32_MAX)
        return tl_lib_wrong(a->function, "M + N", a->M + a->N,
                            "below 2^31 with options->dropout");
    return TILE_OK;
}

static tile_status check_sizes(const TlLibAttention *a)
{
    const TlLibExtent extents[] = {{"B", a->B}, {"H", a->H}, {"HK", a->HK}, {"M", a->M},
                                   {"N", a->N}};
    tile_status status = tl_lib_check_float(a->function, a->type);
    if (status == TILE_OK)
        status = tl_lib_check_extents(a->function, extents, 5);
    if (status != TILE_OK)
        return status;
    if (a->D < 1 || a->D > MOST_ELEMENTS)
        return tl_lib_wrong(a->function, "D", a->D, "from 1 to 256");
    if (a->H > 0 && (a->HK < 1 || a->H % a->HK))
        return tl_lib_wrong(a->function, "HK", a->HK, "a divisor of H");
    return check_options(a);
}

tile_status tl_lib_take_attention(const tile_kernels *k, TlLibAttention *a,
                                  const tile_attention_options *options)
{
    a->options = (tile_attention_options)TILE_ATTENTION_OPTIONS_INIT;
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", a->function);
    tile_status status =
        tl_lib_take(a->function, "tile_attention_options", &a->options, sizeof a->options, options,
                    TL_LEAST_SIZE(tile_attention_options, scale));
    if (status == TILE_OK)
        status = check_sizes(a);
    if (a->options.scale == 0)
        a->options.scale = 1 / sqrt((double)a->D);
    if (!a->options.value_size)
        a->options.value_size = a->D;
    return status;
}

int tl_lib_attention_form(const TlLibAttention *a)
{
    const tile_attention_options *o = &a->options;
    return tl_lib_has_dropout(a) ? 0 : o->mask ? 3 : o->causal ? 1 + (o->window > 0) : 0;
}

bool tl_lib_has_dropout(const TlLibAttention *a)
{
    return a->options.dropout > 0;
}

int64_t tl_lib_head_size(const TlLibAttention *a)
{
    return a->D > a->options.value_size ? a->D : a->options.value_size;
}

/* ---- arrays ---- */

TlLibHeadsRule tl_lib_queries(const TlLibAttention *a)
{
    return (TlLibHeadsRule){"Q", "options->q_strides", a->H, a->M, a->D, a->options.q_strides};
}

TlLibHeadsRule tl_lib_keys(const TlLibAttention *a)
{
    return (TlLibHeadsRule){"K", "options->k_strides", a->HK, a->N, a->D, a->options.k_strides};
}

TlLibHeadsRule tl_lib_values(const TlLibAttention *a)
{
    return (TlLibHeadsRule){"V", "options->v_strides", a->HK, a->N, a->options.value_size,
                            a->options.v_strides};
}

TlLibHeadsRule tl_lib_outputs(const TlLibAttention *a)
{
    return (TlLibHeadsRule){"O", "options->o_strides", a->H, a->M, a->options.value_size,
                            a->options.o_strides};
}

static bool is_given(const int64_t *strides)
{
    return strides[0] || strides[1] || strides[2];
}

TlLibHeadsRule tl_lib_gradient(TlLibHeadsRule of, const char *name, const char *strides_name,
                               const int64_t *strides)
{
    of.name = name;
    if (is_given(strides)) {
        of.strides = strides;
        of.strides_name = strides_name;
    }
    return of;
}

/* Without strides dense [batch, rows, heads, elements]. */
TlLibArray tl_lib_heads(const TlLibAttention *a, const TlLibHeadsRule *rule, const void *address)
{
    int64_t across = rule->heads * rule->elements;
    TlLibArray h = {rule->name, rule->strides_name, address, a->type, 4,
                    {a->B, rule->heads, rule->rows, rule->elements},
                    {rule->rows * across, rule->elements, across, 1}};
    for (int i = 0; i < 3 && is_given(rule->strides); i++)
        h.strides[i] = rule->strides[i];
    return h;
}

TlLibArray tl_lib_mask(const TlLibAttention *a)
{
    const tile_attention_options *o = &a->options;
    const int64_t *s = o->mask_strides;
    TlLibArray m = {"options->mask", "options->mask_strides", o->mask, a->type, 4,
                    {o->mask ? a->B : 0, a->H, a->M, a->N}, {s[0], s[1], s[2], 1}};
    return m;
}

tile_status tl_lib_check_rows_apart(const TlLibAttention *a, const TlLibArray *output)
{
    if (tl_lib_is_apart(output->extents, output->strides, 4))
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s lets rows of %s overlap", a->function,
                       output->strides_name, output->name);
}

/* ---- arguments of kernels ---- */

tile_arg tl_lib_numbers_of_rows(const TlLibAttention *a, const float *address)
{
    return tile_arg_view(address, TILE_F32, 3, address ? a->B : 0, a->H, a->M, 0, 0, 0, 0, 0);
}

/* scale, cap, left, longest, page, drop, seed, ahead. A window of N + M is one of all. */
void tl_lib_put_scores(const TlLibAttention *a, tile_arg *args)
{
    const tile_attention_options *o = &a->options;
    int64_t all = a->N + a->M < INT32_MAX ? a->N + a->M : INT32_MAX;
    int64_t left = o->window && o->window - 1 < all ? o->window - 1 : all;
    args[0] = tile_f32((float)o->scale);
    args[1] = tile_f32(1);
    args[2] = tile_i32((int32_t)left);
    args[3] = tile_i32(0);
    args[4] = tile_i32(16);
    args[5] = tile_f32((float)o->dropout);
    args[6] = tile_u64(o->seed);
    args[7] = tile_i32(o->causal ? 0 : (int32_t)a->M);
}
