/* sort.c: tile_sort, tile_top_k.
 *
 * A row that fits a tile is sorted in it. A longer one is sorted by radix, byte by byte from the
 * lowest, back and forth between Y and room in the workspace (std.kernels.sort), row by row:
 *     start: the words of the workspace are 0, places 0, 1, 2, ...
 *     count: how often each byte has each value
 *     pass d, of D, an even number: X -> room -> Y -> room -> Y, places likewise */
#include "stdlib/library/library.h"

#include "runtime/contract/grow.h"

/* BLOCK: elements of a block of a pass, the least of all devices. */
enum { BINS = 256, BLOCK = 2048, MOST_IN_A_ROW = 0x3FFFFFFF, MOST_GREATEST = 512 };

typedef struct Sort {
    const char *function;
    tile_dtype type;
    TlLibMatrix x, y;
    int32_t *places;
    bool down;
    /* parts of the workspace */
    uint32_t *count, *state;
    char *room;
    int32_t *room_places;
} Sort;

static int64_t bytes_of(tile_dtype type)
{
    return tile_dtype_bits(type) / 8;
}

static int64_t blocks_of(int64_t N)
{
    return (N + BLOCK - 1) / BLOCK;
}

/* Words of count and state of a row. */
static int64_t words_of(tile_dtype type, int64_t N)
{
    int64_t D = bytes_of(type);
    return (D + (D + 1) * blocks_of(N)) * BINS;
}

static bool is_real(tile_dtype type)
{
    return type == TILE_F32 || type == TILE_F16 || type == TILE_BF16 || type == TILE_F64;
}

static TlLibCall call_of(const Sort *s, TlLibKernel kernel)
{
    return (TlLibCall){.function = s->function, .images = tl_lib_sort_images, .kernel = kernel,
                       .type = s->type, .form = s->down, .sizes = {s->x.columns}};
}

size_t tile_sort_workspace(tile_dtype type, int64_t N)
{
    if (!is_real(type) || N < 1 || N > MOST_IN_A_ROW)
        return 0;
    return (size_t)(words_of(type, N) * 4 + N * (bytes_of(type) + 4) + 8);
}

static tile_status check(const tile_kernels *k, const Sort *s)
{
    if (!k)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", s->function);
    if (!is_real(s->type))
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: type is %s, but must be f32, f16, bf16 or f64",
                           s->function, tile_dtype_name(s->type));
    const TlLibExtent extents[] = {{"M", s->x.rows}, {"N", s->x.columns}};
    tile_status status = tl_lib_check_extents(s->function, extents, 2);
    if (status == TILE_OK && s->x.columns > MOST_IN_A_ROW)
        status = tl_lib_wrong(s->function, "N", s->x.columns, "at most 2^30 - 1");
    if (status == TILE_OK)
        status = tl_lib_check_matrix(s->function, &s->x, 1);
    return status == TILE_OK ? tl_lib_check_matrix(s->function, &s->y, 1) : status;
}

static tile_arg vector_of(const void *at, int64_t n, tile_dtype type)
{
    return tile_arg_view(at, type, 1, at ? n : 0, 0, 0, 0, 0, 0, 0, 0);
}

static tile_arg places_of(const int32_t *places, int64_t M, int64_t N)
{
    return tile_arg_view(places, TILE_I32, 2, places ? M : 0, places ? N : 0, 0, 0, 0, 0, 0, 0);
}

static tile_status sort_short(tile_kernels *k, tile_stream *stream, const Sort *s,
                              const TlLibCall *call)
{
    const tile_arg args[] = {tl_lib_matrix_view(&s->x, s->type), tl_lib_matrix_view(&s->y, s->type),
                             places_of(s->places, s->y.rows, s->y.columns)};
    return tl_lib_launch(k, stream, call, args, 3);
}

static const char *row_of(const TlLibMatrix *m, int64_t row, tile_dtype type)
{
    return (const char *)m->address + row * m->ld * bytes_of(type);
}

static tile_arg words_view(const Sort *s, bool state)
{
    int64_t D = bytes_of(s->type), P = blocks_of(s->x.columns);
    return state ? tile_arg_view(s->state, TILE_U32, 3, D + 1, P, BINS, 0, 0, 0, 0, 0)
                 : tile_arg_view(s->count, TILE_U32, 2, D, BINS, 0, 0, 0, 0, 0, 0);
}

/* Byte d of the elements at x, with their places, to y. */
static tile_status pass(tile_kernels *k, tile_stream *stream, const Sort *s, int d, const void *x,
                        const int32_t *x_places, void *y, int32_t *y_places)
{
    int64_t N = s->x.columns;
    TlLibCall call = call_of(s, TL_LIB_sort_pass);
    call.form = 2 * (s->places != NULL) + s->down;
    const tile_arg args[] = {vector_of(x, N, s->type), vector_of(x_places, N, TILE_I32),
                             words_view(s, false), vector_of(y, N, s->type),
                             vector_of(y_places, N, TILE_I32), words_view(s, true), tile_i32(d)};
    return tl_lib_launch(k, stream, &call, args, sizeof args / sizeof *args);
}

static tile_status sort_row(tile_kernels *k, tile_stream *stream, const Sort *s, int64_t m)
{
    int64_t N = s->x.columns;
    const char *x = row_of(&s->x, m, s->type), *y = row_of(&s->y, m, s->type);
    int32_t *places = s->places ? s->places + m * N : NULL;
    int32_t *room_places = s->places ? s->room_places : NULL;
    TlLibCall start = call_of(s, TL_LIB_sort_start), count = call_of(s, TL_LIB_sort_count);
    start.type = TILE_F32;
    start.form = 0;
    const tile_arg start_args[] = {vector_of(s->count, words_of(s->type, N), TILE_U32),
                                   vector_of(places, N, TILE_I32)};
    const tile_arg count_args[] = {vector_of(x, N, s->type), words_view(s, false)};
    tile_status status = tl_lib_launch(k, stream, &start, start_args, 2);
    if (status == TILE_OK)
        status = tl_lib_launch(k, stream, &count, count_args, 2);
    for (int d = 0; d < bytes_of(s->type) && status == TILE_OK; d++)
        status = d % 2 ? pass(k, stream, s, d, s->room, room_places, (void *)(uintptr_t)y, places)
                       : pass(k, stream, s, d, d ? y : x, places, s->room, room_places);
    return status;
}

static tile_status sort_long(tile_kernels *k, tile_stream *stream, Sort *s, void *workspace)
{
    int64_t D = bytes_of(s->type), N = s->x.columns;
    if (!workspace || (uintptr_t)workspace % 8)
        return tl_lib_fail(TILE_BAD_ARGUMENT,
                           "%s: workspace is %p, but must be an address that 8 divides where N is "
                           "above 1024", s->function, workspace);
    s->room = workspace;
    s->count = (uint32_t *)(s->room + (N * D + 7) / 8 * 8);
    s->state = s->count + D * BINS;
    s->room_places = (int32_t *)(s->count + words_of(s->type, N));
    tile_status status = TILE_OK;
    for (int64_t m = 0; m < s->x.rows && status == TILE_OK; m++)
        status = sort_row(k, stream, s, m);
    return status;
}

tile_status tile_sort(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                      int64_t N, const void *X, int64_t ldx, void *Y, int64_t ldy, int32_t *places,
                      void *workspace, const tile_sort_options *options)
{
    Sort s = {.function = "tile_sort", .type = type, .x = {"X", "ldx", "", X, M, N, ldx, 0},
              .y = {"Y", "ldy", "", Y, M, N, ldy, 0}, .places = places};
    tile_sort_options o = TILE_SORT_OPTIONS_INIT;
    tile_status status = tl_lib_take(s.function, "tile_sort_options", &o, sizeof o, options,
                                     TL_LEAST_SIZE(tile_sort_options, descending));
    if (status == TILE_OK)
        status = check(kernels, &s);
    if (status != TILE_OK || !M || !N)
        return status;
    s.down = o.descending;
    TlLibCall call = call_of(&s, TL_LIB_sort_rows);
    if (tl_lib_fits(kernels, &call))
        return sort_short(kernels, stream, &s, &call);
    return sort_long(kernels, stream, &s, workspace);
}

tile_status tile_top_k(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                       int64_t N, int64_t K, const void *X, int64_t ldx, void *Y, int32_t *places)
{
    const Sort s = {.function = "tile_top_k", .type = type, .x = {"X", "ldx", "", X, M, N, ldx, 0},
                    .y = {"Y", "K", "", Y, M, K > 0 ? K : 0, K > 0 ? K : 1, 0}, .places = places};
    tile_status status = check(kernels, &s);
    if (status == TILE_OK && (K < 0 || K > N))
        status = tl_lib_wrong(s.function, "K", K, "from 0 to N");
    if (status == TILE_OK && K > MOST_GREATEST)
        status = tl_lib_fail(TILE_UNAVAILABLE, "tile_top_k: K is above %d, more than the kernels "
                                               "take: tile_sort sorts whole rows", MOST_GREATEST);
    if (status != TILE_OK || !M || !K)
        return status;
    if (!places)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "tile_top_k: places is NULL");
    TlLibCall call = call_of(&s, TL_LIB_top_k);
    call.sizes[0] = K;
    return sort_short(kernels, stream, &s, &call);
}
