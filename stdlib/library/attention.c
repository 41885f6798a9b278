/* attention.c: tile_attention.
 *
 * 1. arrays: each of Q, K, V, O with its extents [batch, heads, rows, elements] and strides, those
 *    of the caller or those of dense [batch, rows, heads, elements] (heads.c).
 * 2. check all of them.
 * 3. launch: the form by causal, window, mask and dropout, the tile by the elements of a head and
 *    the queries. */
#include "stdlib/library/heads.h"

static tile_status launch(tile_kernels *k, tile_stream *stream, const TlLibAttention *a,
                          const TlLibArray *arrays)
{
    tile_arg none = tile_arg_view(NULL, TILE_F32, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    tile_arg args[8 + TL_LIB_SCORES];
    for (int i = 0; i < 5; i++)
        args[i] = tl_lib_array_view(&arrays[i]);
    args[5] = tl_lib_numbers_of_rows(a, a->options.lse);
    args[6] = args[7] = none; /* slope, sink */
    tl_lib_put_scores(a, args + 8);
    TlLibCall call = {.function = a->function,
                      .images = tl_lib_attention_images,
                      .kernel = tl_lib_has_dropout(a) ? TL_LIB_attention_drop : TL_LIB_attention,
                      .type = a->type,
                      .form = tl_lib_attention_form(a),
                      .causal = a->options.causal != 0,
                      .sizes = {tl_lib_head_size(a), a->M, a->N},
                      .batch = a->B * a->H};
    return tl_lib_launch(k, stream, &call, args, sizeof args / sizeof *args);
}

tile_status tile_attention(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t B,
                           int64_t H, int64_t HK, int64_t M, int64_t N, int64_t D, const void *Q,
                           const void *K, const void *V, void *O,
                           const tile_attention_options *options)
{
    TlLibAttention a = {.function = "tile_attention", .type = type, .B = B, .H = H, .HK = HK,
                        .M = M, .N = N, .D = D};
    tile_status status = tl_lib_take_attention(kernels, &a, options);
    if (status != TILE_OK)
        return status;
    const TlLibHeadsRule q = tl_lib_queries(&a), key = tl_lib_keys(&a), v = tl_lib_values(&a),
                         o = tl_lib_outputs(&a);
    const TlLibArray arrays[] = {tl_lib_heads(&a, &q, Q), tl_lib_heads(&a, &key, K),
                                 tl_lib_heads(&a, &v, V), tl_lib_heads(&a, &o, O),
                                 tl_lib_mask(&a)};
    status = tl_lib_check_arrays(a.function, arrays, 5);
    if (status == TILE_OK)
        status = tl_lib_check_rows_apart(&a, &arrays[3]);
    if (status != TILE_OK || !B || !H || !M)
        return status;
    return launch(kernels, stream, &a, arrays);
}
