/* blocks.c: tile_gemm_blocks, products with weights of few bits in ggml's blocks. */
#include "stdlib/library/library.h"

#include "runtime/contract/grow.h"

enum { BLOCK = 32 };

/* A format: the bytes of a block, and the kernels. */
static const struct {
    int64_t bytes;
    TlLibKernel product, vector;
} formats[] = {
    [TILE_Q8_0] = {34, TL_LIB_gemm_q8_0, TL_LIB_gemv_q8_0},
    [TILE_Q4_0] = {18, TL_LIB_gemm_q4_0, TL_LIB_gemv_q4_0},
};

static tile_status check(const tile_kernels *k, const char *function, tile_dtype type, int format,
                         int64_t M, int64_t N, int64_t K)
{
    const TlLibExtent extents[] = {{"M", M}, {"N", N}, {"K", K}};
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", function);
    tile_status status = tl_lib_check_float(function, type);
    if (status == TILE_OK && format != TILE_Q8_0 && format != TILE_Q4_0)
        status = tl_lib_wrong(function, "format", format, "of tile_block_format");
    if (status == TILE_OK)
        status = tl_lib_check_extents(function, extents, 3);
    return status == TILE_OK && K % BLOCK ? tl_lib_wrong(function, "K", K, "a multiple of 32")
                                          : status;
}

tile_status tile_gemm_blocks(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                             tile_block_format format, int64_t M, int64_t N, int64_t K,
                             const void *A, const void *W, void *C,
                             const tile_gemm_blocks_options *options)
{
    static const char function[] = "tile_gemm_blocks";
    tile_gemm_blocks_options o = TILE_GEMM_BLOCKS_OPTIONS_INIT;
    tile_status status = tl_lib_take(function, "tile_gemm_blocks_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_gemm_blocks_options, round_a));
    if (status == TILE_OK)
        status = check(kernels, function, type, (int)format, M, N, K);
    if (status != TILE_OK)
        return status;
    const int64_t bytes = formats[format].bytes;
    TlLibArray a = tl_lib_dense("A", A, type, 2, (int64_t[]){M, K});
    TlLibArray w = tl_lib_dense("W", W, TILE_U8, 3, (int64_t[]){N, K / BLOCK, bytes});
    TlLibArray c = tl_lib_dense("C", C, type, 2, (int64_t[]){M, N});
    const TlLibArray all[] = {a, w, c};
    status = tl_lib_check_arrays(function, all, 3);
    if (status != TILE_OK || !M || !N)
        return status;
    bool vector = M == 1 && !o.round_a;
    TlLibCall call = {.function = function, .images = tl_lib_blocks_images, .type = type,
                      .kernel = vector ? formats[format].vector : formats[format].product,
                      .form = !vector && o.round_a, .sizes = {M, N, K}};
    if (vector) {
        const tile_arg args[] = {tl_lib_array_view(&w),
                                 tile_arg_view(A, type, 1, K, 0, 0, 0, 0, 0, 0, 0),
                                 tile_arg_view(C, type, 1, N, 0, 0, 0, 0, 0, 0, 0)};
        return tl_lib_launch(kernels, stream, &call, args, 3);
    }
    const tile_arg args[] = {tl_lib_array_view(&a), tl_lib_array_view(&w), tl_lib_array_view(&c)};
    return tl_lib_launch(kernels, stream, &call, args, 3);
}
