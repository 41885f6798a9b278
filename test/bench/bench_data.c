/* Kernels of the library on data, scan to FFT, on the CPU device beside plain C and FFTW, in
 * turns; on one thread, by the processor's time, so that other work on the machine counts little.
 * Each result is compared with the peer's.
 *
 *     TILE_THREADS=1 bench_data [ROUNDS [NAME]]
 *
 * FFTW where libfftw3f.so.3 is found, planned with FFTW_MEASURE. */
#include "bench_data.h"
#include <dlfcn.h>

enum { MOST_ROUNDS = 99, B = 2048 };

/* ---- scan ---- */
enum { SCAN = 1 << 22, SCAN_PARTS = SCAN / B };
static float *scan_x, *scan_y, *scan_z, *scan_part;
static int32_t *scan_state;
static tile_kernel *scan_kernel;

static void scan_make(void)
{
    scan_x = memory(4 * SCAN), scan_y = memory(4 * SCAN), scan_z = memory(4 * SCAN);
    scan_part = memory(8 * SCAN_PARTS), scan_state = memory(4 * SCAN_PARTS);
    for (size_t i = 0; i < SCAN; i++) scan_x[i] = (float)(noise() % 3) - 1;
    scan_kernel = kernel("std.kernels.scan", "prefix_scan", (tile_const[]){{"T", 0, "f32"}, {0}});
}
static void scan_ready(void)
{
    memset(scan_state, 0, 4 * SCAN_PARTS);
}
static void scan_ours(void)
{
    LAUNCH(scan_kernel, tile_view(scan_x, SCAN), tile_view(scan_y, SCAN),
           tile_view(scan_state, SCAN_PARTS), tile_view(scan_part, 2, SCAN_PARTS), tile_f32(0));
}
static void scan_plain(void)
{
    float sum = 0;
    for (size_t i = 0; i < SCAN; i++) scan_z[i] = sum += scan_x[i];
}
static void scan_copy(void)
{
    memcpy(scan_z, scan_x, 4 * SCAN);
}
static double scan_error(void)
{
    scan_plain();
    return differ(scan_y, scan_z, SCAN);
}

/* ---- sort ---- */
enum { SORT = 1 << 20, SORT_PARTS = SORT / B };
static uint32_t *sort_x, *sort_a, *sort_b, *sort_c, *sort_d, *sort_count, *sort_state;
static tile_kernel *sort_counts, *sort_pass;

static void sort_make(void)
{
    sort_x = memory(4 * SORT), sort_a = memory(4 * SORT), sort_b = memory(4 * SORT);
    sort_c = memory(4 * SORT), sort_d = memory(4 * SORT);
    sort_count = memory(4 * 4 * 256), sort_state = memory(5ull * 4 * SORT_PARTS * 256);
    for (size_t i = 0; i < SORT; i++) sort_x[i] = noise();
    sort_counts = kernel("std.kernels.sort", "radix_count", (tile_const[]){{"T", 0, "u32"}, {0}});
    sort_pass = kernel("std.kernels.sort", "radix_pass", (tile_const[]){{"T", 0, "u32"}, {0}});
}
static void sort_ready(void)
{
    memcpy(sort_a, sort_x, 4 * SORT), memcpy(sort_c, sort_x, 4 * SORT);
}
static void sort_ours(void)
{
    uint32_t *from = sort_a, *to = sort_b, *kept, none[1];
    memset(sort_count, 0, 4 * 4 * 256), memset(sort_state, 0, 4ull * 4 * SORT_PARTS * 256);
    LAUNCH(sort_counts, tile_view(from, SORT), tile_view(sort_count, 4, 256));
    for (int d = 0; d < 4; d++, kept = from, from = to, to = kept)
        LAUNCH(sort_pass, tile_view(from, SORT), tile_view(none, 0),
               tile_view(sort_count, 4, 256), tile_view(to, SORT), tile_view(none, 0),
               tile_view(sort_state, 5, SORT_PARTS, 256), tile_i32(d));
}
/* One pass of counting, four of scattering, as it is usually written. */
static void sort_plain(void)
{
    static uint32_t count[4][256];
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < SORT; i++)
        for (int d = 0; d < 4; d++) count[d][sort_c[i] >> 8 * d & 255]++;
    uint32_t *from = sort_c, *to = sort_d, *kept;
    for (int d = 0; d < 4; d++, kept = from, from = to, to = kept) {
        uint32_t place[256], next = 0;
        for (int b = 0; b < 256; b++) place[b] = next, next += count[d][b];
        for (size_t i = 0; i < SORT; i++) to[place[from[i] >> 8 * d & 255]++] = from[i];
    }
}
static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}
static void sort_library(void)
{
    qsort(sort_c, SORT, sizeof *sort_c, by_number);
}
static double sort_error(void)
{
    return memcmp(sort_a, sort_c, 4 * SORT) ? 1 : 0;
}

/* ---- histogram ---- */
enum { BYTES = 1 << 24 };
static uint8_t *bytes;
static int32_t *bins, *plain_bins;
static tile_kernel *bins_kernel;

static void bins_make(void)
{
    bytes = memory(BYTES), bins = memory(1024), plain_bins = memory(1024);
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (uint8_t)noise();
    bins_kernel = kernel("std.kernels.histogram", "histogram_u8", NULL);
}
static void bins_ready(void)
{
    memset(bins, 0, 1024), memset(plain_bins, 0, 1024);
}
static void bins_ours(void)
{
    LAUNCH(bins_kernel, tile_view(bytes, BYTES), tile_view(bins, 256));
}
static void bins_plain(void) /* four tables, so that equal neighbours do not wait for each other */
{
    static int32_t part[4][256];
    memset(part, 0, sizeof part);
    for (size_t i = 0; i < BYTES; i += 4)
        for (size_t k = 0; k < 4; k++) part[k][bytes[i + k]]++;
    for (int b = 0; b < 256; b++)
        plain_bins[b] += part[0][b] + part[1][b] + part[2][b] + part[3][b];
}
static double bins_error(void)
{
    return memcmp(bins, plain_bins, 1024) ? 1 : 0;
}

/* ---- sparse ---- */
enum { MATRIX = 1 << 17 };
typedef struct Csr {
    int32_t *offset, *column;
    float *value;
    size_t nonzeros;
} Csr;
static Csr even, skewed, *csr;
static float *spmv_x, *spmv_y, *spmv_z;
static tile_kernel *spmv_rows, *spmv_balanced;

static Csr csr_make(int skew)
{
    Csr a = {.offset = memory(4 * (MATRIX + 1))};
    for (size_t m = 0; m < MATRIX; m++) /* 8 to 23 of a row; or 1 to 3, and of one in 4096, 32768 */
        a.offset[m + 1] =
            a.offset[m] + (int32_t)(!skew ? 8 + noise() % 16 : m % 4096 ? 1 + noise() % 3 : 32768);
    a.nonzeros = (size_t)a.offset[MATRIX];
    a.column = memory(4 * a.nonzeros), a.value = memory(4 * a.nonzeros);
    for (size_t i = 0; i < a.nonzeros; i++)
        a.column[i] = (int32_t)(noise() % MATRIX), a.value[i] = (float)(noise() % 5) - 2;
    return a;
}
static void spmv_make(void)
{
    even = csr_make(0), skewed = csr_make(1);
    spmv_x = memory(4 * MATRIX), spmv_y = memory(4 * MATRIX), spmv_z = memory(4 * MATRIX);
    for (size_t i = 0; i < MATRIX; i++) spmv_x[i] = (float)(noise() % 7) - 3;
    spmv_rows = kernel("std.kernels.sparse", "spmv_csr", (tile_const[]){{"T", 0, "f32"}, {0}});
    spmv_balanced =
        kernel("std.kernels.sparse", "spmv_csr_balanced", (tile_const[]){{"T", 0, "f32"}, {0}});
}
static void even_ready(void)
{
    csr = &even, memset(spmv_y, 0, 4 * MATRIX);
}
static void skewed_ready(void)
{
    csr = &skewed, memset(spmv_y, 0, 4 * MATRIX);
}
#define MATRIX_ARGS                                                                                \
    tile_view(csr->value, csr->nonzeros), tile_view(csr->column, csr->nonzeros),                   \
        tile_view(csr->offset, MATRIX + 1), tile_view(spmv_x, MATRIX), tile_view(spmv_y, MATRIX)
static void spmv_ours(void)
{
    LAUNCH(spmv_rows, MATRIX_ARGS, tile_f32(1), tile_f32(0));
}
static void balanced_ours(void)
{
    LAUNCH(spmv_balanced, MATRIX_ARGS);
}
static void spmv_plain(void)
{
    for (size_t m = 0; m < MATRIX; m++) {
        float sum = 0;
        for (int32_t i = csr->offset[m]; i < csr->offset[m + 1]; i++)
            sum += csr->value[i] * spmv_x[csr->column[i]];
        spmv_z[m] = sum;
    }
}
static double spmv_error(void)
{
    return differ(spmv_y, spmv_z, MATRIX);
}

/* ---- Fourier ---- */
enum { ROWS = 64, LENGTH = 4096, EDGE = 64 };
static float *fft_x, *fft_y, *fft_z, *fft_w, *fft_root, *fft_room, *fft_middle;
static tile_kernel *fft_kernel, *fft_tile, *fft_columns, *fft_last;
static void *fft_plan, (*fft_execute)(void *);

static void fft_make(void)
{
    size_t bytes_of = 8ull * ROWS * LENGTH;
    fft_x = memory(bytes_of), fft_y = memory(bytes_of), fft_z = memory(bytes_of);
    fft_w = memory(8 * LENGTH), fft_room = memory(16 * LENGTH);
    LAUNCH(kernel("std.kernels.fft", "fft_table", NULL), tile_view(fft_w, 2, LENGTH));
    fft_root = memory(8 * EDGE), fft_middle = memory(bytes_of);
    LAUNCH(kernel("std.kernels.fft", "fft_table", NULL), tile_view(fft_root, 2, EDGE));
    fft_kernel = kernel("std.kernels.fft", "fft_long", NULL);
    fft_tile = kernel("std.kernels.fft", "fft", (tile_const[]){{"N", LENGTH, NULL}, {0}});
    fft_columns = kernel("std.kernels.fft", "fft_columns", (tile_const[]){{"N1", EDGE, NULL}, {0}});
    fft_last = kernel("std.kernels.fft", "fft_last", (tile_const[]){{"N2", EDGE, NULL}, {0}});
    void *library = dlopen("libfftw3f.so.3", RTLD_NOW);
    if (library) {
        void *(*plan)(int, const int *, int, void *, const int *, int, int, void *, const int *,
                      int, int, int, unsigned);
        *(void **)&plan = dlsym(library, "fftwf_plan_many_dft");
        *(void **)&fft_execute = dlsym(library, "fftwf_execute");
        const int n = LENGTH;
        fft_plan = plan(1, &n, ROWS, fft_x, NULL, 1, n, fft_z, NULL, 1, n, -1, 0);
    }
    for (size_t i = 0; i < 2ull * ROWS * LENGTH; i++) fft_x[i] = (float)(noise() % 2001) / 1000 - 1;
}
static void nothing(void)
{
}
static void fft_ours(void)
{
    LAUNCH(fft_kernel, tile_view(fft_x, ROWS, LENGTH, 2), tile_view(fft_w, 2, LENGTH),
           tile_view(fft_y, ROWS, LENGTH, 2), tile_view(fft_room, 1, 4, LENGTH));
}
static void fft_in_tile(void)
{
    LAUNCH(fft_tile, tile_view(fft_x, ROWS, LENGTH, 2), tile_view(fft_w, 2, LENGTH),
           tile_view(fft_y, ROWS, LENGTH, 2));
}
static void fft_in_two(void)
{
    LAUNCH(fft_columns, tile_view(fft_x, ROWS, EDGE, EDGE, 2), tile_view(fft_root, 2, EDGE),
           tile_view(fft_middle, ROWS, EDGE, EDGE, 2));
    LAUNCH(fft_last, tile_view(fft_middle, ROWS, EDGE, EDGE, 2), tile_view(fft_root, 2, EDGE),
           tile_view(fft_y, ROWS, EDGE, EDGE, 2));
}
static void fft_theirs(void)
{
    fft_execute(fft_plan);
}
static double fft_error(void)
{
    return differ(fft_y, fft_z, 2ull * ROWS * LENGTH);
}

/* ---- the whole ---- */
static const Work works[] = {
    {"scan of 2^22 f32", "plain C", scan_ready, scan_ours, scan_plain, scan_error},
    {"scan of 2^22 f32", "memcpy", scan_ready, scan_ours, scan_copy, scan_error},
    {"sort of 2^20 u32", "radix sort, plain C", sort_ready, sort_ours, sort_plain, sort_error},
    {"sort of 2^20 u32", "qsort", sort_ready, sort_ours, sort_library, sort_error},
    {"histogram of 2^24 bytes", "plain C, 4 tables", bins_ready, bins_ours, bins_plain, bins_error},
    {"spmv_csr, rows of 8 to 23", "plain C", even_ready, spmv_ours, spmv_plain, spmv_error},
    {"spmv_csr_balanced, the same", "plain C", even_ready, balanced_ours, spmv_plain, spmv_error},
    {"spmv_csr_balanced, skewed", "plain C", skewed_ready, balanced_ours, spmv_plain, spmv_error},
    {"fft_long, 64 rows of 4096", "FFTW", nothing, fft_ours, fft_theirs, fft_error},
    {"fft, 64 rows of 4096", "FFTW", nothing, fft_in_tile, fft_theirs, fft_error},
    {"fft_columns and fft_last, the same", "FFTW", nothing, fft_in_two, fft_theirs, fft_error},
};

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double timed(const Work *w, void (*run)(void))
{
    w->ready();
    double begin = processor_time();
    run();
    return processor_time() - begin;
}

static void compare(const Work *w, int rounds)
{
    double ours[MOST_ROUNDS], theirs[MOST_ROUNDS];
    w->ready(), w->ours(), w->theirs();
    DEMAND(w->error() < 1e-5, "%s: results differ by %g", w->name, w->error());
    for (int r = 0; r < rounds; r++)
        ours[r] = timed(w, w->ours), theirs[r] = timed(w, w->theirs);
    double a = median(ours, rounds), b = median(theirs, rounds);
    printf("| %s | %s | %.2f | %.2f | %.2f |\n", w->name, w->peer, 1e3 * a, 1e3 * b, b / a);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 15;
    const char *name = argc > 2 ? argv[2] : "";
    DEMAND(rounds > 0 && rounds <= MOST_ROUNDS, "rounds: 1 to %d", MOST_ROUNDS);
    DEMAND(bench_threads() == 1, "TILE_THREADS=1, please");
    scan_make(), sort_make(), bins_make(), spmv_make(), fft_make();
    size_t nnumbers;
    const Work *numbers = numbers_make(&nnumbers);
    printf("| work | peer | tilec, ms | peer, ms | ratio |\n| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strstr(works[i].name, name) && (works[i].theirs != fft_theirs || fft_plan))
            compare(&works[i], rounds);
    for (size_t i = 0; i < nnumbers; i++)
        if (strstr(numbers[i].name, name))
            compare(&numbers[i], rounds);
    return 0;
}
