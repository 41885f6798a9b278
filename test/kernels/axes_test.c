/* tile_reduce and tile_scan against f64: types, operations, rows and middle axes of every length
 * class of choices.def, arrays at a distance, NaN and infinities, and every argument that is wrong.
 *
 *     axes_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

static bool near(tile_dtype type, double got, double want)
{
    double slack = (rounding(type) + ldexp(1, type == TILE_F64 ? -48 : -19)) * (fabs(want) + 1);
    return fabs(got - want) <= slack || got == want || (isnan(got) && isnan(want));
}

/* ---- reductions ---- */

/* The greatest or least, and its place in *at. */
static double extreme_of(const void *x, tile_dtype type, int64_t first, int64_t step, int64_t N,
                         bool least, int64_t *at)
{
    double best = get(x, type, first);
    *at = 0;
    for (int64_t n = 1; n < N; n++) {
        double v = get(x, type, first + n * step);
        if (!isnan(best) && (isnan(v) || (least ? v < best : v > best))) {
            best = v;
            *at = n;
        }
    }
    return best;
}

static double reduced(const void *x, tile_dtype type, int64_t first, int64_t step, int64_t N,
                      int reduction)
{
    double sum = 0, absolute = 0, squares = 0;
    int64_t at = 0;
    if (reduction >= TILE_REDUCE_MAX) {
        bool least = reduction == TILE_REDUCE_MIN || reduction == TILE_REDUCE_ARGMIN;
        double v = extreme_of(x, type, first, step, N, least, &at);
        return reduction >= TILE_REDUCE_ARGMAX ? (double)at : v;
    }
    for (int64_t n = 0; n < N; n++) {
        double v = get(x, type, first + n * step);
        sum += v;
        absolute += fabs(v);
        squares += v * v;
    }
    return reduction == TILE_REDUCE_SUM     ? sum
           : reduction == TILE_REDUCE_MEAN  ? sum / (double)N
           : reduction == TILE_REDUCE_NORM1 ? absolute
                                            : sqrt(squares);
}

/* One of few values is NaN or infinite with `odd`. The array is dense, or has gaps with pad. */
static void reduce_of(tile_dtype type, int64_t M, int64_t N, int64_t L, int64_t pad, bool odd)
{
    int64_t step_n = L + pad, step_m = N * step_n + 3 * pad, count = M * step_m;
    void *x = numbers(type, count), *y = numbers(TILE_F64, M * L);
    for (int64_t i = 5; odd && i < count; i += 13)
        put(x, type, i, i % 2 ? NAN : -INFINITY);
    tile_reduce_options o = TILE_REDUCE_OPTIONS_INIT;
    o.x_strides[0] = step_m;
    o.x_strides[1] = step_n;
    for (int r = N ? 0 : TILE_REDUCE_SUM; r <= (N ? TILE_REDUCE_ARGMIN : TILE_REDUCE_NORM2); r++) {
        int64_t wrong = 0;
        tile_dtype result = r >= TILE_REDUCE_ARGMAX ? TILE_I32 : type;
        OK(tile_reduce(library, NULL, type, (tile_reduction)r, M, N, L, x, y, pad ? &o : NULL));
        for (int64_t i = 0; i < M * L; i++)
            wrong += !near(result, get(y, result, i),
                           reduced(x, type, i / L * step_m + i % L, step_n, N, r));
        if (!CHECK_INT(wrong, 0))
            fprintf(stderr, "    %s %d x %d x %d, reduction %d\n", tile_dtype_name(type), (int)M,
                    (int)N, (int)L, r);
    }
    free(x);
    free(y);
}

/* ---- scans ---- */

static double joined(double a, double b, int operation)
{
    switch (operation) {
    case TILE_SCAN_SUM: return a + b;
    case TILE_SCAN_PRODUCT: return a * b;
    case TILE_SCAN_MAX: return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    default: return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    }
}

static void scan_of(tile_dtype type, int64_t M, int64_t N, int64_t pad, int operation,
                    bool exclusive, bool in_place)
{
    static const double start[] = {0, 1, -INFINITY, INFINITY};
    int64_t ld = N + pad, wrong = 0;
    void *x = numbers(type, M * ld), *y = numbers(type, M * ld);
    void *before = malloc((size_t)(M * ld) * 8 + 8);
    for (int64_t i = 0; i < M * ld; i++) /* products stay within the type */
        if (operation == TILE_SCAN_PRODUCT)
            put(x, type, i, i % 7 == 3 ? -1 : i % 7 == 4 ? 0.5 : i % 7 == 5 ? 2 : 1);
        else if (operation > TILE_SCAN_PRODUCT && i % 91 == 90)
            put(x, type, i, NAN);
    memcpy(before, x, (size_t)(M * ld) * 8);
    tile_scan_options o = TILE_SCAN_OPTIONS_INIT;
    o.exclusive = exclusive;
    void *to = in_place ? x : y;
    OK(tile_scan(library, NULL, type, (tile_scan_operation)operation, M, N, x, ld, to, ld,
                 exclusive ? &o : NULL));
    for (int64_t m = 0; m < M; m++) {
        double sum = start[operation];
        for (int64_t n = 0; n < N; n++) {
            double next_sum = joined(sum, get(before, type, m * ld + n), operation);
            wrong += !near(type, get(to, type, m * ld + n), exclusive ? sum : next_sum);
            sum = next_sum;
        }
    }
    if (!CHECK_INT(wrong, 0))
        fprintf(stderr, "    %s %d x %d, scan %d\n", tile_dtype_name(type), (int)M, (int)N,
                operation);
    free(x);
    free(y);
    free(before);
}

/* ---- wrong arguments ---- */

static float cells[200];

typedef struct Reduce {
    tile_kernels *kernels;
    int type, reduction;
    int64_t M, N, L;
    const void *x;
    void *y;
    tile_reduce_options o;
} Reduce;

static tile_status reduce_call(const Reduce *r)
{
    return tile_reduce(r->kernels, NULL, (tile_dtype)r->type, (tile_reduction)r->reduction, r->M,
                       r->N, r->L, r->x, r->y, &r->o);
}

#define WRONG_REDUCE(change, text)                                                                 \
    WRONG_BUT(change, reduce_call(&r), text,                                                       \
              Reduce r = {library, TILE_F32, 0, 2, 3, 4, cells, cells + 100,                       \
                  TILE_REDUCE_OPTIONS_INIT})

static void wrong_reductions(void)
{
    WRONG_REDUCE(r.kernels = NULL, "tile_reduce: kernels is NULL");
    WRONG_REDUCE(r.type = TILE_I8, "type is i8, but must be f32, f16, bf16 or f64");
    WRONG_REDUCE(r.reduction = 8, "reduction is 8, but must be of tile_reduction");
    WRONG_REDUCE(r.reduction = -1, "reduction is -1, but must be of tile_reduction");
    WRONG_REDUCE(r.M = -2, "M is -2");
    WRONG_REDUCE(r.N = INT64_MAX, "N is 9223372036854775807");
    WRONG_REDUCE(r.L = -1, "L is -1");
    WRONG_REDUCE((r.M = r.N = r.L = INT32_MAX), "is larger than memory");
    WRONG_REDUCE((r.N = 0, r.reduction = TILE_REDUCE_ARGMIN), "N is 0, but must be 1 or more");
    WRONG_REDUCE(r.x = NULL, "X is NULL");
    WRONG_REDUCE(r.y = NULL, "Y is NULL");
    WRONG_REDUCE(r.y = cells + 3, "overlap");
    WRONG_REDUCE(r.o.x_strides[0] = -4, "options->x_strides has a negative stride");
    WRONG_REDUCE(r.o.struct_size = 7, "struct_size of tile_reduce_options is 7");
}

typedef struct Scan {
    tile_kernels *kernels;
    int type, operation;
    int64_t M, N, ldx, ldy;
    const void *x;
    void *y;
    tile_scan_options o;
} Scan;

static tile_status scan_call(const Scan *s)
{
    return tile_scan(s->kernels, NULL, (tile_dtype)s->type, (tile_scan_operation)s->operation, s->M,
                     s->N, s->x, s->ldx, s->y, s->ldy, &s->o);
}

#define WRONG_SCAN(change, text)                                                                   \
    WRONG_BUT(change, scan_call(&s), text,                                                         \
              Scan s = {library, TILE_F32, 0, 2, 3, 3, 3, cells, cells + 100,                      \
                  TILE_SCAN_OPTIONS_INIT})

static void wrong_scans(void)
{
    WRONG_SCAN(s.kernels = NULL, "tile_scan: kernels is NULL");
    WRONG_SCAN(s.type = TILE_U8, "type is u8");
    WRONG_SCAN(s.operation = 4, "operation is 4, but must be of tile_scan_operation");
    WRONG_SCAN(s.M = -1, "M is -1");
    WRONG_SCAN(s.N = -1, "N is -1");
    WRONG_SCAN(s.ldx = 2, "ldx is 2, but a row of X has 3 elements");
    WRONG_SCAN(s.ldy = 0, "ldy is 0, but a row of Y has 3 elements");
    WRONG_SCAN(s.x = NULL, "X is NULL");
    WRONG_SCAN(s.y = NULL, "Y is NULL");
    WRONG_SCAN(s.y = cells + 1, "Y overlaps X and is not the same matrix");
    WRONG_SCAN(s.o.struct_size = 9, "struct_size of tile_scan_options is 9");
}

static void each_type(tile_dtype type, tile_dtype result)
{
    static const int64_t sizes[][3] = {{0, 5, 1},  {3, 0, 1},   {3, 1, 1},    {37, 5, 1},
                                       {9, 33, 1}, {5, 3, 4},   {2, 17, 5},   {1, 40, 17},
                                       {2, 9, 200}, {2, 5, 0},  {2, 300, 1},  {1, 1000, 3},
                                       {3, 70, 130}};
    if (type == TILE_I8)
        return;
    (void)result;
    for (int i = 0; i < (brief ? 10 : 13); i++)
        for (int form = 0; form < 3; form++)
            reduce_of(type, sizes[i][0], sizes[i][1], sizes[i][2], form == 1 ? 3 : 0, form == 2);
    static const int64_t rows[][2] = {{0, 3}, {3, 1}, {11, 7}, {2, 33}, {2, 256}, {3, 700}};
    for (int i = 0; i < (brief ? 5 : 6); i++)
        for (int form = 0; form < 16; form++)
            scan_of(type, rows[i][0], rows[i][1], form & 2, form / 4, form & 1, form & 2);
}

static void once(void)
{
    wrong_reductions();
    wrong_scans();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
