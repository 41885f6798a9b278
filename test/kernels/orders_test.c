/* tile_sort, tile_top_k, tile_fft, tile_gemm_blocks: values against plain loops, workspaces of
 * exactly the size that the queries say, and every argument that is wrong.
 *
 *     orders_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

/* ---- order ---- */

static bool comes_before(double a, int64_t i, double b, int64_t j, bool down)
{
    if (isnan(a) || isnan(b))
        return isnan(a) == isnan(b) ? i < j : isnan(b);
    return a == b ? i < j : down ? a > b : a < b;
}

/* Elements follow each other in the order, and every place is there once. */
static void sort_of(tile_dtype type, int64_t M, int64_t N, bool down, bool places)
{
    int64_t ld = N + 1, wrong = 0;
    void *x = numbers(type, M * ld), *y = numbers(type, M * ld);
    int32_t *at = places ? malloc((size_t)(M * N) * 4 + 8) : NULL;
    char *seen = calloc((size_t)N + 1, 1);
    size_t bytes = tile_sort_workspace(type, N);
    void *room = N > 1024 ? malloc(bytes) : NULL;
    tile_sort_options o = {.struct_size = sizeof o, .descending = down};
    for (int64_t i = 7; i < M * ld; i += 40)
        put(x, type, i, NAN);
    OK(tile_sort(library, NULL, type, M, N, x, ld, y, ld, at, room, &o));
    for (int64_t m = 0; m < M; m++) {
        memset(seen, 0, (size_t)N);
        for (int64_t n = 0; n < N; n++) {
            double v = get(y, type, m * ld + n), u = n ? get(y, type, m * ld + n - 1) : v;
            if (!places) {
                wrong += n && !comes_before(u, 0, v, 1, down);
                continue;
            }
            int32_t from = at[m * N + n];
            bool inside = from >= 0 && from < N && !seen[from]++;
            double of = inside ? get(x, type, m * ld + from) : 0;
            wrong += !inside || (of != v && !(isnan(of) && isnan(v)));
            wrong += n && !comes_before(u, at[m * N + n - 1], v, from, down);
        }
    }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d x %d\n", tile_dtype_name(type), (int)M, (int)N);
    void *all[] = {x, y, at, seen, room};
    for (int i = 0; i < 5; i++)
        free(all[i]);
}

static void top_of(tile_dtype type, int64_t M, int64_t N, int64_t K)
{
    void *x = numbers(type, M * N), *all = numbers(type, M * N), *y = numbers(type, M * K);
    int32_t *at = malloc((size_t)(M * K) * 4 + 8), *order = malloc((size_t)(M * N) * 4 + 8);
    void *room = malloc(tile_sort_workspace(type, N));
    tile_sort_options o = {.struct_size = sizeof o, .descending = 1};
    int64_t wrong = 0;
    OK(tile_sort(library, NULL, type, M, N, x, N, all, N, order, room, &o));
    OK(tile_top_k(library, NULL, type, M, N, K, x, N, y, at));
    for (int64_t i = 0; i < M * K; i++)
        wrong += at[i] != order[i / K * N + i % K] ||
                 get(y, type, i) != get(all, type, i / K * N + i % K);
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d of %d x %d\n", tile_dtype_name(type), (int)K, (int)M, (int)N);
    void *each[] = {x, all, y, at, order, room};
    for (int i = 0; i < 6; i++)
        free(each[i]);
}

/* ---- Fourier ---- */

static void fft_of(int64_t M, int64_t N, bool inverse)
{
    float *x = numbers(TILE_F32, 2 * M * N), *y = numbers(TILE_F32, 2 * M * N);
    float *table = numbers(TILE_F32, 2 * N);
    size_t bytes = tile_fft_workspace(M, N);
    void *room = bytes ? malloc(bytes) : NULL;
    tile_fft_options o = {.struct_size = sizeof o, .inverse = inverse};
    int64_t wrong = 0;
    OK(tile_fft_table(library, NULL, N, table));
    OK(tile_fft(library, NULL, M, N, x, table, y, room, inverse ? &o : NULL));
    for (int64_t m = 0; m < M; m++)
        for (int64_t k = 0; k < N; k += N > 64 ? 37 : 1) {
            double re = 0, im = 0, sign = inverse ? 1 : -1;
            for (int64_t j = 0; j < N; j++) {
                double turn = sign * 2 * 3.14159265358979323846 * (double)(j * k % N) / (double)N;
                double a = x[2 * (m * N + j)], b = x[2 * (m * N + j) + 1];
                re += a * cos(turn) - b * sin(turn);
                im += a * sin(turn) + b * cos(turn);
            }
            double f = inverse ? 1 / (double)N : 1, bound = 1e-5 * sqrt((double)N);
            wrong += !is_near(TILE_F32, y[2 * (m * N + k)], f * re, bound) ||
                     !is_near(TILE_F32, y[2 * (m * N + k) + 1], f * im, bound);
        }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    fft of %d x %d\n", (int)M, (int)N);
    void *all[] = {x, y, table, room};
    for (int i = 0; i < 4; i++)
        free(all[i]);
}

/* ---- blocks ---- */

static void blocks_of(tile_dtype type, int64_t M, int64_t N, int64_t K, bool q4)
{
    int64_t bytes = q4 ? 18 : 34, wrong = 0;
    void *a = numbers(type, M * K), *c = numbers(type, M * N);
    uint8_t *w = malloc((size_t)(N * K / 32 * bytes) + 8);
    for (int64_t b = 0; b < N * K / 32; b++) {
        uint16_t scale = half_of(0.25 + 0.125 * (double)(b % 5));
        memcpy(w + b * bytes, &scale, 2);
        for (int64_t i = 2; i < bytes; i++)
            w[b * bytes + i] = (uint8_t)((i * 37 + b * 11) % (q4 ? 256 : 16));
    }
    OK(tile_gemm_blocks(library, NULL, type, q4 ? TILE_Q4_0 : TILE_Q8_0, M, N, K, a, w, c, NULL));
    for (int64_t i = 0; i < M * N; i++) {
        double sum = 0;
        for (int64_t k = 0; k < K; k++) {
            const uint8_t *block = w + (i % N * (K / 32) + k / 32) * bytes;
            uint16_t scale;
            memcpy(&scale, block, 2);
            int p = (int)(k % 32), byte = block[2 + (q4 ? p % 16 : p)];
            int q = !q4 ? (int8_t)byte : (p < 16 ? byte & 15 : byte >> 4) - 8;
            sum += get(a, type, i / N * K + k) * of_half(scale) * q;
        }
        wrong += !is_near(type, get(c, type, i), sum, 1e-4 * (double)K);
    }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d x %d x %d\n", tile_dtype_name(type), (int)M, (int)N, (int)K);
    free(a);
    free(c);
    free(w);
}

/* ---- wrong arguments ---- */

static _Alignas(64) float cells[9000];

static tile_status sort_call(int type, int64_t M, int64_t N, const void *x, int64_t ldx, void *y,
                             void *room)
{
    return tile_sort(library, NULL, (tile_dtype)type, M, N, x, ldx, y, N, NULL, room, NULL);
}

static void wrong_orders(void)
{
    float *x = cells, *y = cells + 4000;
    int32_t *at = (int32_t *)(cells + 8000);
    WRONG(tile_sort(NULL, NULL, TILE_F32, 1, 1, x, 1, y, 1, NULL, NULL, NULL), "kernels is NULL");
    WRONG(sort_call(TILE_I8, 1, 4, x, 4, y, NULL), "type is i8, but must be f32, f16, bf16 or f64");
    WRONG(sort_call(TILE_F32, -1, 4, x, 4, y, NULL), "M is -1");
    WRONG(sort_call(TILE_F32, 1, 1 << 30, x, 1 << 30, y, NULL), "at most 2^30 - 1");
    WRONG(sort_call(TILE_F32, 1, 4, x, 3, y, NULL), "ldx is 3, but a row of X has 4 elements");
    WRONG(sort_call(TILE_F32, 1, 4, NULL, 4, y, NULL), "X is NULL");
    WRONG(sort_call(TILE_F32, 1, 4, x, 4, NULL, NULL), "Y is NULL");
    WRONG(sort_call(TILE_F32, 1, 4, x, 4, x + 1, NULL), "overlap");
    WRONG(sort_call(TILE_F32, 1, 2000, x, 2000, y, NULL), "workspace is");
    WRONG(sort_call(TILE_F32, 1, 2000, x, 2000, y, (char *)at + 4), "an address that 8 divides");
    CHECK(tile_sort_workspace(TILE_I8, 4) == 0 && tile_sort_workspace(TILE_F32, -4) == 0);
    WRONG(tile_top_k(library, NULL, TILE_F32, 1, 4, 5, x, 4, y, at), "K is 5, but must be from 0");
    WRONG(tile_top_k(library, NULL, TILE_F32, 1, 4, -1, x, 4, y, at), "K is -1");
    WRONG(tile_top_k(library, NULL, TILE_F32, 1, 4, 2, x, 4, y, NULL), "places is NULL");
    CHECK_INT(tile_top_k(library, NULL, TILE_F32, 1, 2000, 600, x, 2000, y, at), TILE_UNAVAILABLE);
    WRONG(tile_fft_table(library, NULL, 12, x), "N is 12, but must be a power of 2");
    WRONG(tile_fft_table(library, NULL, 16, NULL), "table is NULL");
    WRONG(tile_fft(library, NULL, 1, 1, x, x, y, NULL, NULL), "N is 1, but must be a power of 2");
    WRONG(tile_fft(library, NULL, -1, 16, x, x + 64, y, NULL, NULL), "M is -1");
    WRONG(tile_fft(library, NULL, 1, 16, NULL, x, y, NULL, NULL), "X is NULL");
    WRONG(tile_fft(library, NULL, 1, 16, x, NULL, y, NULL, NULL), "table is NULL");
    WRONG(tile_fft(library, NULL, 1, 16, x, x + 64, NULL, NULL, NULL), "Y is NULL");
    WRONG(tile_fft(library, NULL, 1, 64, x, x + 512, y, NULL, NULL), "workspace is NULL");
    CHECK(tile_fft_workspace(-1, 64) == 0 && tile_fft_workspace(4, 32) == 0);
}

static tile_status blocks_call(int type, int format, int64_t M, int64_t K, const void *a,
                               const void *w, void *c)
{
    return tile_gemm_blocks(library, NULL, (tile_dtype)type, (tile_block_format)format, M, 2, K, a,
                            w, c, NULL);
}

static void wrong_blocks(void)
{
    float *a = cells, *w = cells + 1000, *c = cells + 2000;
    WRONG(tile_gemm_blocks(NULL, NULL, TILE_F32, TILE_Q8_0, 1, 1, 32, a, w, c, NULL),
          "tile_gemm_blocks: kernels is NULL");
    WRONG(blocks_call(TILE_F64, TILE_Q8_0, 1, 32, a, w, c), "type is f64");
    WRONG(blocks_call(TILE_F32, 2, 1, 32, a, w, c), "format is 2, but must be of");
    WRONG(blocks_call(TILE_F32, TILE_Q4_0, -1, 32, a, w, c), "M is -1");
    WRONG(blocks_call(TILE_F32, TILE_Q4_0, 1, 33, a, w, c), "K is 33, but must be a multiple");
    WRONG(blocks_call(TILE_F32, TILE_Q4_0, 3, 32, NULL, w, c), "A is NULL");
    WRONG(blocks_call(TILE_F32, TILE_Q4_0, 3, 32, a, NULL, c), "W is NULL");
    WRONG(blocks_call(TILE_F32, TILE_Q4_0, 3, 32, a, w, NULL), "C is NULL");
}

static void each_type(tile_dtype type, tile_dtype result)
{
    static const int64_t rows[][2] = {{0, 5}, {3, 1}, {4, 60}, {2, 700}, {2, 1500}, {1, 20000}};
    (void)result;
    if (type == TILE_I8)
        return;
    for (int i = 0; i < (brief ? 5 : 6); i++)
        for (int form = 0; form < 4; form++)
            sort_of(type, rows[i][0], rows[i][1], form & 1, form & 2);
    top_of(type, 3, 40, 5);
    top_of(type, 2, 700, brief ? 20 : 300);
    if (type == TILE_F64)
        return;
    for (int q4 = 0; q4 < 2; q4++) {
        blocks_of(type, 1, 70, 96, q4);
        blocks_of(type, 3, 65, 64, q4);
        blocks_of(type, brief ? 5 : 37, 9, 160, q4);
    }
}

static void once(void)
{
    for (int64_t N = 2; N <= (brief ? 128 : 4096); N *= 2)
        for (int inverse = 0; inverse < 2; inverse++)
            fft_of(N > 100 ? 2 : 70, N, inverse);
    wrong_orders();
    wrong_blocks();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
