/* fourier.c: tile_fft_table, tile_fft, tile_fft_2d, tile_rfft_table, tile_rfft, tile_irfft.
 *
 * Short rows go by fft, those of LONG complex numbers and more by fft_long, in room at the end of
 * the workspace, but ABREAST of them or more by fft_blocks, if choices.def has that N; real ones,
 * which are half as many complex numbers, by fft_real and fft_real_long.
 *   images: rows, turned over, rows, turned over: X, workspace, Y, workspace, Y. */
#include "stdlib/library/library.h"

#include "runtime/contract/grow.h"

enum { LONG = 64, MOST_ROOMS = 64, ABREAST = 16 };
static const char power[] = "a power of 2 from 2 to 2^28",
                  real_power[] = "a power of 2 from 4 to 2^28";

/* What a function was called with. */
typedef struct Fourier {
    const char *function;
    tile_kernels *kernels;
    tile_stream *stream;
    tile_dtype type;
    bool inverse;
} Fourier;

static bool is_size(int64_t N, int64_t least)
{
    return N >= least && N <= 1 << 28 && (N & (N - 1)) == 0;
}

static tile_status check_begin(const Fourier *f)
{
    return f->kernels ? tl_lib_check_real(f->function, f->type)
                      : tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", f->function);
}

static tile_status check_size(const Fourier *f, const char *name, int64_t N, bool real)
{
    if (is_size(N, real ? 4 : 2))
        return TILE_OK;
    return tl_lib_wrong(f->function, name, N, real ? real_power : power);
}

static int64_t rooms_of(int64_t M)
{
    return M < MOST_ROOMS ? M : MOST_ROOMS;
}

/* Numbers that fft_long needs for M rows of N. */
static int64_t room_of(int64_t M, int64_t N)
{
    return N < LONG || M < 1 ? 0 : rooms_of(M) * 4 * N;
}

static size_t bytes_of(tile_dtype type, int64_t numbers)
{
    return (type != TILE_F32 && type != TILE_F64) ? 0 : (size_t)numbers * tile_dtype_bits(type) / 8;
}

static const void *behind(const void *address, tile_dtype type, int64_t numbers)
{
    return address ? (const char *)address + bytes_of(type, numbers) : NULL;
}

static TlLibArray complex_rows(const Fourier *f, const char *name, const void *address, int64_t M,
                               int64_t N)
{
    return tl_lib_dense(name, address, f->type, 3, (int64_t[]){M, N, 2});
}

static TlLibArray table_of(const Fourier *f, const char *name, const void *address, int64_t N)
{
    return tl_lib_dense(name, address, f->type, 2, (int64_t[]){2, N});
}

static tile_status launch(const Fourier *f, TlLibKernel kernel, int form, int64_t N,
                          const TlLibArray *arrays, int n)
{
    tile_arg args[5];
    for (int i = 0; i < n; i++)
        args[i] = tl_lib_array_view(&arrays[i]);
    TlLibCall call = {.function = f->function, .images = tl_lib_fourier_images, .kernel = kernel,
                      .type = f->type, .form = form, .sizes = {N}};
    return tl_lib_launch(f->kernels, f->stream, &call, args, (size_t)n);
}

/* `to` = the transforms of rows; the room is room_of(M, N) numbers. */
static tile_status transform_rows(const Fourier *f, int64_t M, int64_t N, const void *from,
                                  const void *table, const void *to, const void *room)
{
    const TlLibArray arrays[] = {
        complex_rows(f, "X", from, M, N), table_of(f, "table", table, N),
        complex_rows(f, "Y", to, M, N),
        tl_lib_dense("workspace", room, f->type, 3, (int64_t[]){rooms_of(M), 4, N})};
    const TlLibCall blocks = {.images = tl_lib_fourier_images,
                              .kernel = TL_LIB_fft_blocks,
                              .type = f->type,
                              .sizes = {N}};
    bool is_long = N >= LONG;
    if (is_long && M >= ABREAST && tl_lib_fits(f->kernels, &blocks))
        return launch(f, TL_LIB_fft_blocks, f->inverse, N, arrays, 3);
    return launch(f, is_long ? TL_LIB_fft_long : TL_LIB_fft, f->inverse, N, arrays,
                  is_long ? 4 : 3);
}

static tile_status find_table(const Fourier *f, int64_t N, const void *table)
{
    const TlLibArray w = table_of(f, "table", table, N);
    return launch(f, TL_LIB_fft_table, 0, N, &w, 1);
}

/* Of a function that makes a table. */
static tile_status check_table(const Fourier *f, int64_t N, bool real, const void *table)
{
    tile_status status = check_begin(f);
    if (status == TILE_OK)
        status = check_size(f, "N", N, real);
    return status == TILE_OK ? tl_lib_check_given(f->function, "table", table, N) : status;
}

static tile_status take_inverse(Fourier *f, const tile_fft_options *options)
{
    tile_fft_options o = TILE_FFT_OPTIONS_INIT;
    tile_status status = tl_lib_take(f->function, "tile_fft_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_fft_options, inverse));
    f->inverse = o.inverse != 0;
    return status;
}

/* ---- rows ---- */

tile_status tile_fft_table(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                           void *table)
{
    const Fourier f = {"tile_fft_table", kernels, stream, type, false};
    tile_status status = check_table(&f, N, false, table);
    return status == TILE_OK ? find_table(&f, N, table) : status;
}

size_t tile_fft_workspace(tile_dtype type, int64_t M, int64_t N)
{
    return is_size(N, 2) ? bytes_of(type, room_of(M, N)) : 0;
}

tile_status tile_fft(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                     int64_t N, const void *X, const void *table, void *Y, void *workspace,
                     const tile_fft_options *options)
{
    Fourier f = {"tile_fft", kernels, stream, type, false};
    tile_status status = check_begin(&f);
    if (status == TILE_OK)
        status = take_inverse(&f, options);
    if (status == TILE_OK)
        status = tl_lib_check_extent(f.function, "M", M);
    if (status == TILE_OK)
        status = check_size(&f, "N", N, false);
    if (status != TILE_OK || !M)
        return status;
    const TlLibArray arrays[] = {
        complex_rows(&f, "X", X, M, N), table_of(&f, "table", table, N),
        complex_rows(&f, "Y", Y, M, N),
        tl_lib_dense("workspace", workspace, type, 1, (int64_t[]){room_of(M, N)})};
    status = tl_lib_check_arrays(f.function, arrays, 4);
    return status == TILE_OK ? transform_rows(&f, M, N, X, table, Y, workspace) : status;
}

/* ---- images ---- */

static int64_t room_of_images(int64_t M, int64_t N1, int64_t N2)
{
    int64_t rows = room_of(M * N1, N2), columns = room_of(M * N2, N1);
    return 2 * M * N1 * N2 + (rows > columns ? rows : columns);
}

static bool is_few(int64_t M, int64_t N1, int64_t N2)
{
    return M >= 0 && M <= INT32_MAX && is_size(N1, 2) && is_size(N2, 2) && N1 * N2 <= INT32_MAX &&
           M * N1 <= INT32_MAX && M * N2 <= INT32_MAX;
}

size_t tile_fft_2d_workspace(tile_dtype type, int64_t M, int64_t N1, int64_t N2)
{
    return M > 0 && is_few(M, N1, N2) ? bytes_of(type, room_of_images(M, N1, N2)) : 0;
}

/* `to` [M, N2, N1] = `from` [M, N1, N2] */
static tile_status turn(const Fourier *f, int64_t M, int64_t N1, int64_t N2, const void *from,
                        const void *to)
{
    const TlLibArray arrays[] = {
        tl_lib_dense("X", from, f->type, 4, (int64_t[]){M, N1, N2, 2}),
        tl_lib_dense("Y", to, f->type, 4, (int64_t[]){M, N2, N1, 2})};
    return launch(f, TL_LIB_fft_turn, 0, N2, arrays, 2);
}

tile_status tile_fft_2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                        int64_t N1, int64_t N2, const void *X, const void *table1,
                        const void *table2, void *Y, void *workspace,
                        const tile_fft_options *options)
{
    Fourier f = {"tile_fft_2d", kernels, stream, type, false};
    tile_status status = check_begin(&f);
    if (status == TILE_OK)
        status = take_inverse(&f, options);
    if (status == TILE_OK)
        status = tl_lib_check_extent(f.function, "M", M);
    if (status == TILE_OK)
        status = check_size(&f, "N1", N1, false);
    if (status == TILE_OK)
        status = check_size(&f, "N2", N2, false);
    if (status == TILE_OK && !is_few(M, N1, N2))
        status = tl_lib_fail(TILE_BAD_ARGUMENT, "%s: N1 N2, M N1 or M N2 is not below 2^31",
                             f.function);
    if (status != TILE_OK || !M)
        return status;
    const TlLibArray arrays[] = {
        complex_rows(&f, "X", X, M * N1, N2), table_of(&f, "table1", table1, N1),
        table_of(&f, "table2", table2, N2), complex_rows(&f, "Y", Y, M * N1, N2),
        tl_lib_dense("workspace", workspace, type, 1, (int64_t[]){room_of_images(M, N1, N2)})};
    status = tl_lib_check_arrays(f.function, arrays, 5);
    const void *room = behind(workspace, type, 2 * M * N1 * N2);
    if (status == TILE_OK)
        status = transform_rows(&f, M * N1, N2, X, table2, workspace, room);
    if (status == TILE_OK)
        status = turn(&f, M, N1, N2, workspace, Y);
    if (status == TILE_OK)
        status = transform_rows(&f, M * N2, N1, Y, table1, workspace, room);
    return status == TILE_OK ? turn(&f, M, N2, N1, workspace, Y) : status;
}

/* ---- real rows: a table is that of N / 2, and behind it that of N ---- */

tile_status tile_rfft_table(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t N,
                            void *table)
{
    const Fourier f = {"tile_rfft_table", kernels, stream, type, false};
    tile_status status = check_table(&f, N, true, table);
    if (status == TILE_OK)
        status = find_table(&f, N / 2, table);
    return status == TILE_OK ? find_table(&f, N, behind(table, type, N)) : status;
}

size_t tile_rfft_workspace(tile_dtype type, int64_t M, int64_t N)
{
    return M > 0 && M <= INT32_MAX && is_size(N, 4) ? bytes_of(type, room_of(M, N / 2)) : 0;
}

static tile_status check_real_sizes(const Fourier *f, int64_t M, int64_t N)
{
    tile_status status = check_begin(f);
    if (status == TILE_OK)
        status = tl_lib_check_extent(f->function, "M", M);
    return status == TILE_OK ? check_size(f, "N", N, true) : status;
}

/* `to` = the transforms of real rows, or back; `arrays`: from, to. */
static tile_status transform_real_rows(const Fourier *f, int64_t M, int64_t N,
                                       const TlLibArray *arrays, const void *table,
                                       const void *workspace)
{
    int64_t half = N / 2;
    const TlLibArray w = table_of(f, "table", table, half),
                     w2 = table_of(f, "table", behind(table, f->type, N), N),
                     all[] = {arrays[0], arrays[1],
                              tl_lib_dense("table", table, f->type, 1, (int64_t[]){3 * N}),
                              tl_lib_dense("workspace", workspace, f->type, 1,
                                           (int64_t[]){room_of(M, half)})};
    const TlLibArray brief[] = {arrays[0], w2, arrays[1]},
                     full[] = {arrays[0], w, w2, arrays[1],
                               tl_lib_dense("workspace", workspace, f->type, 3,
                                            (int64_t[]){rooms_of(M), 4, half})};
    tile_status status = tl_lib_check_arrays(f->function, all, 4);
    if (status != TILE_OK)
        return status;
    if (half < LONG)
        return launch(f, f->inverse ? TL_LIB_fft_real_inverse : TL_LIB_fft_real, 0, N, brief, 3);
    return launch(f, f->inverse ? TL_LIB_fft_real_long_inverse : TL_LIB_fft_real_long, 0, N, full,
                  5);
}

tile_status tile_rfft(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                      int64_t N, const void *X, const void *table, void *Y, void *workspace)
{
    const Fourier f = {"tile_rfft", kernels, stream, type, false};
    tile_status status = check_real_sizes(&f, M, N);
    if (status != TILE_OK || !M)
        return status;
    const TlLibArray arrays[] = {tl_lib_dense("X", X, type, 2, (int64_t[]){M, N}),
                                 complex_rows(&f, "Y", Y, M, N / 2 + 1)};
    return transform_real_rows(&f, M, N, arrays, table, workspace);
}

tile_status tile_irfft(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                       int64_t N, const void *X, const void *table, void *Y, void *workspace)
{
    const Fourier f = {"tile_irfft", kernels, stream, type, true};
    tile_status status = check_real_sizes(&f, M, N);
    if (status != TILE_OK || !M)
        return status;
    const TlLibArray arrays[] = {complex_rows(&f, "X", X, M, N / 2 + 1),
                                 tl_lib_dense("Y", Y, type, 2, (int64_t[]){M, N})};
    return transform_real_rows(&f, M, N, arrays, table, workspace);
}
