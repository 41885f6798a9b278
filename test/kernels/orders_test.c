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

typedef struct Wave {
    double re, im;
} Wave;

/* Number k of the transform of N complex numbers `step` apart, from x[at] on. */
static Wave wave_of(const void *x, tile_dtype type, int64_t at, int64_t step, int64_t N, int64_t k,
                    bool inverse)
{
    Wave sum = {0, 0};
    for (int64_t j = 0; j < N; j++) {
        double turn = (inverse ? 2 : -2) * 3.14159265358979323846 * (double)(j * k % N) / (double)N;
        double a = get(x, type, 2 * (at + j * step)), b = get(x, type, 2 * (at + j * step) + 1);
        sum.re += a * cos(turn) - b * sin(turn);
        sum.im += a * sin(turn) + b * cos(turn);
    }
    if (inverse)
        sum = (Wave){sum.re / (double)N, sum.im / (double)N};
    return sum;
}

static double bound_of(tile_dtype type, int64_t N)
{
    return (type == TILE_F64 ? 1e-13 : 1e-5) * sqrt((double)N);
}

static bool is_wave(const void *y, tile_dtype type, int64_t at, Wave w, int64_t N)
{
    return is_near(type, get(y, type, 2 * at), w.re, bound_of(type, N)) &&
           is_near(type, get(y, type, 2 * at + 1), w.im, bound_of(type, N));
}

static void *room_for(size_t bytes)
{
    return bytes ? malloc(bytes) : NULL;
}

static void free_all(void *const *each, int n)
{
    for (int i = 0; i < n; i++)
        free(each[i]);
}

static void fft_of(tile_dtype type, int64_t M, int64_t N, bool inverse)
{
    void *all[] = {numbers(type, 2 * M * N), numbers(type, 2 * M * N), numbers(type, 2 * N),
                   room_for(tile_fft_workspace(type, M, N))};
    tile_fft_options o = {.struct_size = sizeof o, .inverse = inverse};
    int64_t wrong = 0;
    OK(tile_fft_table(library, NULL, type, N, all[2]));
    OK(tile_fft(library, NULL, type, M, N, all[0], all[2], all[1], all[3], inverse ? &o : NULL));
    for (int64_t m = 0; m < M; m++)
        for (int64_t k = 0; k < N; k += N > 64 ? 37 : 1)
            wrong += !is_wave(all[1], type, m * N + k,
                              wave_of(all[0], type, m * N, 1, N, k, inverse), N);
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    fft of %d x %d\n", (int)M, (int)N);
    free_all(all, 4);
}

/* Columns of what rows gave, in f64. */
static void fft_2d_of(tile_dtype type, int64_t M, int64_t N1, int64_t N2, bool inverse)
{
    const int64_t n = M * N1 * N2;
    void *all[] = {numbers(type, 2 * n), numbers(type, 2 * n), numbers(type, 2 * N1),
                   numbers(type, 2 * N2), room_for(tile_fft_2d_workspace(type, M, N1, N2)),
                   numbers(TILE_F64, 2 * n)};
    tile_fft_options o = {.struct_size = sizeof o, .inverse = inverse};
    double *rows = all[5];
    int64_t wrong = 0;
    OK(tile_fft_table(library, NULL, type, N1, all[2]));
    OK(tile_fft_table(library, NULL, type, N2, all[3]));
    OK(tile_fft_2d(library, NULL, type, M, N1, N2, all[0], all[2], all[3], all[1], all[4], &o));
    for (int64_t i = 0; i < n; i++) {
        Wave w = wave_of(all[0], type, i / N2 * N2, 1, N2, i % N2, inverse);
        rows[2 * i] = w.re;
        rows[2 * i + 1] = w.im;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t first = i / (N1 * N2) * N1 * N2 + i % N2;
        Wave w = wave_of(rows, TILE_F64, first, N2, N1, i / N2 % N1, inverse);
        wrong += !is_wave(all[1], type, i, w, N1 * N2);
    }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    fft of %d x %d x %d\n", (int)M, (int)N1, (int)N2);
    free_all(all, 6);
}

/* There, as complex numbers without imaginary parts; and back, where what stands in the imaginary
 * parts of the first and the last counts as 0. */
static void rfft_of(tile_dtype type, int64_t M, int64_t N)
{
    const int64_t L = N / 2 + 1;
    void *all[] = {numbers(type, M * N), numbers(type, 2 * M * L), numbers(type, 3 * N),
                   room_for(tile_rfft_workspace(type, M, N)), numbers(type, M * N),
                   numbers(type, 2 * M * N)};
    int64_t wrong = 0;
    OK(tile_rfft_table(library, NULL, type, N, all[2]));
    OK(tile_rfft(library, NULL, type, M, N, all[0], all[2], all[1], all[3]));
    for (int64_t i = 0; i < M * N; i++) {
        put(all[5], type, 2 * i, get(all[0], type, i));
        put(all[5], type, 2 * i + 1, 0);
    }
    for (int64_t i = 0; i < M * L; i += N > 64 ? 37 : 1)
        wrong += !is_wave(all[1], type, i,
                          wave_of(all[5], type, i / L * N, 1, N, i % L, false), N);
    for (int64_t m = 0; m < M; m++) {
        put(all[1], type, 2 * m * L + 1, NAN);
        put(all[1], type, 2 * (m * L + N / 2) + 1, 9);
    }
    OK(tile_irfft(library, NULL, type, M, N, all[1], all[2], all[4], all[3]));
    for (int64_t i = 0; i < M * N; i++)
        wrong += !is_near(type, get(all[4], type, i), get(all[0], type, i), bound_of(type, N));
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    fft of %d x %d real numbers\n", (int)M, (int)N);
    free_all(all, 6);
}

static void fourier_of(tile_dtype type)
{
    for (int64_t N = 2; N <= (brief ? 128 : 4096); N *= 2)
        for (int inverse = 0; inverse < 2; inverse++)
            fft_of(type, N > 100 ? 2 : 70, N, inverse);
    fft_of(type, 15, 64, false); /* fewer than go abreast, one block, several and a part of one */
    fft_of(type, 16, 64, true);
    fft_of(type, brief ? 85 : 200, 64, false);
    for (int64_t N = 4; N <= (brief ? 128 : 2048); N *= 2)
        rfft_of(type, N > 100 ? 2 : 66, N);
    for (int inverse = 0; inverse < 2; inverse++) {
        fft_2d_of(type, 3, 8, 16, inverse);
        fft_2d_of(type, 1, 2, 64, inverse);
        fft_2d_of(type, 2, brief ? 16 : 128, 4, inverse);
        fft_2d_of(type, 0, 4, 4, inverse);
    }
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
}

static void wrong_waves(void)
{
    float *x = cells, *y = cells + 4000;
    const tile_dtype t = TILE_F32;
    WRONG(tile_fft_table(library, NULL, t, 12, x), "N is 12, but must be a power of 2");
    WRONG(tile_fft_table(library, NULL, TILE_F16, 16, x), "type is f16, but must be f32 or f64");
    WRONG(tile_fft_table(library, NULL, t, 16, NULL), "table is NULL");
    WRONG(tile_fft(NULL, NULL, t, 1, 16, x, x, y, NULL, NULL), "kernels is NULL");
    WRONG(tile_fft(library, NULL, t, 1, 1, x, x, y, NULL, NULL), "N is 1, but must be a power of");
    WRONG(tile_fft(library, NULL, t, -1, 16, x, x + 64, y, NULL, NULL), "M is -1");
    WRONG(tile_fft(library, NULL, t, 1, 16, NULL, x, y, NULL, NULL), "X is NULL");
    WRONG(tile_fft(library, NULL, t, 1, 16, x, NULL, y, NULL, NULL), "table is NULL");
    WRONG(tile_fft(library, NULL, t, 1, 16, x, x + 64, NULL, NULL, NULL), "Y is NULL");
    WRONG(tile_fft(library, NULL, t, 1, 64, x, x + 512, y, NULL, NULL), "workspace is NULL");
    CHECK(tile_fft_workspace(t, -1, 64) == 0 && tile_fft_workspace(t, 4, 32) == 0);
    CHECK(tile_fft_workspace(TILE_F16, 4, 64) == 0 && tile_fft_workspace(t, 4, 96) == 0);
    WRONG(tile_fft_2d(library, NULL, t, 1, 3, 4, x, x, x, y, y, NULL), "N1 is 3");
    WRONG(tile_fft_2d(library, NULL, t, 1, 4, 0, x, x, x, y, y, NULL), "N2 is 0");
    WRONG(tile_fft_2d(library, NULL, t, 1 << 20, 1 << 20, 4, x, x, x, y, y, NULL), "below 2^31");
    WRONG(tile_fft_2d(library, NULL, t, 1, 4, 4, x, NULL, x, y, y, NULL), "table1 is NULL");
    WRONG(tile_fft_2d(library, NULL, t, 1, 4, 4, x, x, NULL, y, y, NULL), "table2 is NULL");
    WRONG(tile_fft_2d(library, NULL, t, 1, 4, 4, x, x, x, y, NULL, NULL), "workspace is NULL");
    CHECK(tile_fft_2d_workspace(t, 1, 4, 3) == 0 && tile_fft_2d_workspace(t, -1, 4, 4) == 0);
    WRONG(tile_rfft_table(library, NULL, t, 2, x), "N is 2, but must be a power of 2 from 4");
    WRONG(tile_rfft_table(library, NULL, t, 8, NULL), "table is NULL");
    WRONG(tile_rfft(library, NULL, t, 1, INT64_MAX, x, x, y, y), "N is 9223372036854775807");
    WRONG(tile_rfft(library, NULL, t, 1, 8, NULL, x, y, y), "X is NULL");
    WRONG(tile_rfft(library, NULL, t, 1, 8, x, NULL, y, y), "table is NULL");
    WRONG(tile_rfft(library, NULL, t, 1, 8, x, x, NULL, y), "Y is NULL");
    WRONG(tile_irfft(library, NULL, t, 1, 128, x, x, y, NULL), "workspace is NULL");
    WRONG(tile_irfft(library, NULL, t, -3, 8, x, x, y, y), "M is -3");
    CHECK(tile_rfft_workspace(t, 1, 2) == 0 && tile_rfft_workspace(t, 4, 64) == 0);
    CHECK(tile_rfft_workspace(TILE_I8, 1, 128) == 0 && tile_rfft_workspace(t, 4, 128) > 0);
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
    if (type == TILE_F32 || type == TILE_F64)
        fourier_of(type);
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
    wrong_orders();
    wrong_waves();
    wrong_blocks();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
