/* fourier.c: tile_fft_table, tile_fft. */
#include "stdlib/library/library.h"

#include "runtime/contract/grow.h"

/* From this length on rows are transformed in memory, in room of the workspace (fft_long). */
enum { LONG = 64, MOST_ROOMS = 64 };

static tile_status check_size(const char *function, int64_t N)
{
    if (N >= 2 && N <= 1 << 28 && (N & (N - 1)) == 0)
        return TILE_OK;
    return tl_lib_wrong(function, "N", N, "a power of 2 from 2 to 2^28");
}

static tile_arg table_of(const float *table, int64_t N)
{
    return tile_arg_view(table, TILE_F32, 2, 2, N, 0, 0, 0, 0, 0, 0);
}

static int64_t rooms_of(int64_t M)
{
    return M < MOST_ROOMS ? M : MOST_ROOMS;
}

size_t tile_fft_workspace(int64_t M, int64_t N)
{
    return N < LONG || M < 1 || N > 1 << 28 ? 0 : (size_t)(rooms_of(M) * 4 * N) * sizeof(float);
}

tile_status tile_fft_table(tile_kernels *kernels, tile_stream *stream, int64_t N, float *table)
{
    static const char function[] = "tile_fft_table";
    if (!kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", function);
    tile_status status = check_size(function, N);
    if (status == TILE_OK && !table)
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "%s: table is NULL", function);
    if (status != TILE_OK)
        return status;
    TlLibCall call = {.function = function, .images = tl_lib_fourier_images,
                      .kernel = TL_LIB_fft_table, .type = TILE_F32, .sizes = {N}};
    const tile_arg args[] = {table_of(table, N)};
    return tl_lib_launch(kernels, stream, &call, args, 1);
}

tile_status tile_fft(tile_kernels *kernels, tile_stream *stream, int64_t M, int64_t N,
                     const float *X, const float *table, float *Y, void *workspace,
                     const tile_fft_options *options)
{
    static const char function[] = "tile_fft";
    tile_fft_options o = TILE_FFT_OPTIONS_INIT;
    if (!kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", function);
    tile_status status = tl_lib_take(function, "tile_fft_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_fft_options, inverse));
    if (status == TILE_OK)
        status = tl_lib_check_extent(function, "M", M);
    if (status == TILE_OK)
        status = check_size(function, N);
    if (status != TILE_OK || !M)
        return status;
    const TlLibArray arrays[] = {
        tl_lib_dense("X", X, TILE_F32, 3, (int64_t[]){M, N, 2}),
        tl_lib_dense("table", table, TILE_F32, 2, (int64_t[]){2, N}),
        tl_lib_dense("Y", Y, TILE_F32, 3, (int64_t[]){M, N, 2}),
        tl_lib_dense("workspace", workspace, TILE_F32, 3, (int64_t[]){rooms_of(M), 4, N})};
    bool is_long = N >= LONG;
    status = tl_lib_check_arrays(function, arrays, is_long ? 4 : 3);
    if (status != TILE_OK)
        return status;
    tile_arg args[4];
    for (int i = 0; i < 4; i++)
        args[i] = tl_lib_array_view(&arrays[i]);
    TlLibCall call = {.function = function, .images = tl_lib_fourier_images,
                      .kernel = is_long ? TL_LIB_fft_long : TL_LIB_fft, .type = TILE_F32,
                      .form = o.inverse != 0, .sizes = {N}};
    return tl_lib_launch(kernels, stream, &call, args, is_long ? 4 : 3);
}
