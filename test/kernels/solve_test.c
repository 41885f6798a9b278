/* tile_trsm, tile_potrf, tile_potrs, tile_getrf, tile_getrs, tile_geqrf and tile_ormqr by their
 * residuals, as LAPACK's own tests: every side, triangle and form, sizes of less than a block to
 * several panels, batches, arrays with gaps, what must not be used as NaN, what must not be written
 * compared; matrices that have no factors; every argument that is wrong.
 *
 *     solve_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

static double eps_of(tile_dtype type)
{
    return type == TILE_F64 ? ldexp(1, -53) : ldexp(1, -24);
}

/* A matrix in an array with gaps: element (i, j) of matrix z is at z * stride + i * ld + j. */
typedef struct Array {
    tile_dtype type;
    int64_t batch, rows, columns, ld, stride, count;
    void *at, *before;
} Array;

static Array array_of(tile_dtype type, int64_t batch, int64_t rows, int64_t columns, int64_t gap)
{
    Array a = {type, batch, rows, columns, columns + gap + 1, 0, 0, NULL, NULL};
    a.stride = rows * a.ld + 3 * gap;
    a.count = batch * a.stride;
    a.at = numbers(type, a.count);
    a.before = malloc((size_t)a.count * 8 + 8);
    return a;
}

static double item(const Array *a, const void *from, int64_t z, int64_t i, int64_t j)
{
    return get(from, a->type, z * a->stride + i * a->ld + j);
}

static void set(const Array *a, int64_t z, int64_t i, int64_t j, double x)
{
    put(a->at, a->type, z * a->stride + i * a->ld + j, x);
}

/* The array is what the call gets. */
static void keep(const Array *a)
{
    memcpy(a->before, a->at, (size_t)a->count * (a->type == TILE_F64 ? 8 : 4));
}

static void drop(const Array *a)
{
    free(a->at);
    free(a->before);
}

/* Which elements belong to the call: for `shape` 0 all of the matrix. */
typedef enum Shape { WHOLE, LOWER, UPPER } Shape;

static bool belongs(const Array *a, int64_t at, Shape shape)
{
    int64_t i = at % a->stride / a->ld, j = at % a->stride % a->ld;
    return i < a->rows && j < a->columns &&
           (shape == WHOLE || (shape == LOWER ? j <= i : i <= j));
}

/* How many other elements have changed. */
static int64_t strays(const Array *a, Shape shape)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->count; i++) {
        double x = get(a->before, a->type, i), y = get(a->at, a->type, i);
        n += !belongs(a, i, shape) && x != y && !(isnan(x) && isnan(y));
    }
    return n;
}

/* Everything outside of the shape becomes NaN, and the diagonal with `unit`. */
static void poison_rest(const Array *a, Shape shape, bool unit)
{
    for (int64_t i = 0; i < a->count; i++)
        if (!belongs(a, i, shape) || (unit && i % a->stride / a->ld == i % a->stride % a->ld))
            put(a->at, a->type, i, NAN);
}

/* ---- triangles ---- */

/* Element (i, j) of op(A). */
static double of_triangle(const Array *a, int64_t z, int64_t i, int64_t j, bool upper, bool turned,
                          bool unit)
{
    int64_t r = turned ? j : i, c = turned ? i : j;
    if (r == c && unit)
        return 1;
    return (upper ? r > c : r < c) ? 0 : item(a, a->before, z, r, c);
}

/* |op(A) X - alpha B| by rows, or |X op(A) - alpha B|, over what rounding allows: below 1. */
static double residual(const Array *a, const Array *b, int form, double alpha)
{
    bool right = form & 1, upper = form & 2, turned = form & 4, unit = form & 8;
    double worst = 0;
    for (int64_t z = 0; z < b->batch; z++)
        for (int64_t i = 0; i < b->rows; i++)
            for (int64_t j = 0; j < b->columns; j++) {
                double sum = 0, size = fabs(alpha * item(b, b->before, z, i, j));
                for (int64_t k = 0; k < a->rows; k++) {
                    double t = right ? of_triangle(a, z, k, j, upper, turned, unit)
                                     : of_triangle(a, z, i, k, upper, turned, unit);
                    double x = right ? item(b, b->at, z, i, k) : item(b, b->at, z, k, j);
                    if (t != 0) {
                        sum += t * x;
                        size += fabs(t * x);
                    }
                }
                double error = fabs(sum - alpha * item(b, b->before, z, i, j));
                error /= eps_of(a->type) * (double)(a->rows + 4) * size + 1e-300;
                worst = error <= worst ? worst : error; /* NaN is the worst */
            }
    return worst;
}

static void trsm_of(tile_dtype type, int64_t batch, int64_t M, int64_t N, int form)
{
    bool right = form & 1, upper = form & 2, turned = form & 4, unit = form & 8;
    int64_t n = right ? N : M;
    double alpha = form & 4 ? -0.5 : 1;
    Array a = array_of(type, batch, n, n, form % 3), b = array_of(type, batch, M, N, form % 2);
    for (int64_t i = 0; i < a.count; i++) /* a pivot outweighs its row */
        put(a.at, type, i, get(a.at, type, i) / (double)(2 * n));
    for (int64_t i = 0; i < batch * n; i++)
        set(&a, i / n, i % n, i % n, 1.5 + (double)(i % 3));
    poison_rest(&a, upper ? UPPER : LOWER, unit);
    keep(&a);
    keep(&b);
    OK(tile_trsm_batched(library, NULL, type, right ? TILE_RIGHT : TILE_LEFT,
                         upper ? TILE_UPPER : TILE_LOWER,
                         turned ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE,
                         unit ? TILE_UNIT : TILE_NON_UNIT, M, N, alpha, a.at, a.ld, a.stride, b.at,
                         b.ld, b.stride, batch));
    double error = residual(&a, &b, form, alpha);
    bool ok = CHECK(error < 1);
    ok = CHECK_INT(strays(&b, WHOLE), 0) && ok;
    if (!CHECK_INT(strays(&a, WHOLE), 0) || !ok)
        fprintf(stderr, "    %s %d of %d x %d, form %d: %g\n", tile_dtype_name(type), (int)batch,
                (int)M, (int)N, form, error);
    drop(&a);
    drop(&b);
}

/* ---- Cholesky ---- */

/* Small integers, symmetric, with a diagonal that outweighs them. */
static void make_positive(const Array *a)
{
    int64_t n = a->rows;
    for (int64_t z = 0; z < a->batch; z++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                double x = i == j ? (double)(2 * n + i % 5) : next();
                set(a, z, i, j, x);
                set(a, z, j, i, x);
            }
}

/* A X - B with the whole A of `full`, X in b->at, B in b->before. */
static double solved(const Array *full, const Array *b, bool turned)
{
    double worst = 0;
    for (int64_t z = 0; z < b->batch; z++)
        for (int64_t i = 0; i < b->rows; i++)
            for (int64_t j = 0; j < b->columns; j++) {
                double sum = 0, size = fabs(item(b, b->before, z, i, j));
                for (int64_t k = 0; k < b->rows; k++) {
                    double t = turned ? item(full, full->at, z, k, i)
                                      : item(full, full->at, z, i, k);
                    sum += t * item(b, b->at, z, k, j);
                    size += fabs(t * item(b, b->at, z, k, j));
                }
                double error = fabs(sum - item(b, b->before, z, i, j));
                error /= eps_of(full->type) * (double)(b->rows + 4) * 4 * size + 1e-300;
                worst = error <= worst ? worst : error;
            }
    return worst;
}

static Array copy_of(const Array *a)
{
    Array c = *a;
    c.at = malloc((size_t)a->count * 8 + 8);
    c.before = malloc((size_t)a->count * 8 + 8);
    memcpy(c.at, a->at, (size_t)a->count * (a->type == TILE_F64 ? 8 : 4));
    return c;
}

static void cholesky_of(tile_dtype type, int64_t batch, int64_t N, int64_t K, bool upper)
{
    Shape shape = upper ? UPPER : LOWER;
    tile_triangle triangle = upper ? TILE_UPPER : TILE_LOWER;
    Array full = array_of(type, batch, N, N, upper), b = array_of(type, batch, N, K, !upper);
    int32_t info[3] = {7, 7, 7};
    make_positive(&full);
    Array a = copy_of(&full);
    poison_rest(&a, shape, false);
    keep(&a);
    keep(&b);
    OK(tile_potrf_batched(library, NULL, type, triangle, N, a.at, a.ld, a.stride, info, batch));
    OK(tile_stream_synchronize(NULL));
    for (int64_t z = 0; z < 3; z++)
        CHECK_INT(info[z], z < batch ? 0 : 7);
    int64_t written = strays(&a, shape);
    OK(tile_potrs_batched(library, NULL, type, triangle, N, K, a.at, a.ld, a.stride, b.at, b.ld,
                          b.stride, batch));
    double error = solved(&full, &b, false);
    bool ok = CHECK(error < 1);
    ok = CHECK_INT(written, 0) && ok;
    if (!CHECK_INT(strays(&b, WHOLE), 0) || !ok)
        fprintf(stderr, "    %s %d of %d, %d columns%s: %g\n", tile_dtype_name(type), (int)batch,
                (int)N, (int)K, upper ? ", upper" : "", error);
    drop(&full);
    drop(&a);
    drop(&b);
}

/* The first pivot that is not positive is known, wherever it is. */
static void not_positive(tile_dtype type, int64_t N, int64_t at, bool upper)
{
    Array a = array_of(type, 2, N, N, 0);
    int32_t info[2] = {7, 7};
    make_positive(&a);
    set(&a, 1, at, at, -1);
    OK(tile_potrf_batched(library, NULL, type, upper ? TILE_UPPER : TILE_LOWER, N, a.at, a.ld,
                          a.stride, info, 2));
    OK(tile_stream_synchronize(NULL));
    CHECK_INT(info[0], 0);
    CHECK_INT(info[1], at + 1);
    drop(&a);
}

/* ---- LU ---- */

/* |P A - L U| over what rounding allows; the matrix before is in a->before. */
static double factored(const Array *a, int64_t z, const int32_t *pivots)
{
    int64_t M = a->rows, N = a->columns, steps = M < N ? M : N;
    int64_t *row = malloc((size_t)(M + 1) * sizeof *row), held;
    double worst = 0;
    for (int64_t i = 0; i < M; i++)
        row[i] = i;
    for (int64_t n = 0; n < steps; n++) {
        CHECK(pivots[n] >= n && pivots[n] < M);
        held = row[n];
        row[n] = row[pivots[n]];
        row[pivots[n]] = held;
    }
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0, size = 0, want = item(a, a->before, z, row[i], j);
            for (int64_t k = 0; k <= i && k <= j && k < steps; k++) {
                double l = k == i ? 1 : item(a, a->at, z, i, k);
                CHECK(fabs(l) <= 1);
                sum += l * item(a, a->at, z, k, j);
                size += fabs(l * item(a, a->at, z, k, j));
            }
            double error = fabs(sum - want);
            error /= eps_of(a->type) * (double)(steps + 4) * (size + fabs(want)) + 1e-300;
            worst = error <= worst ? worst : error;
        }
    free(row);
    return worst;
}

/* With `zero`, that column is 0. */
static void lu_of(tile_dtype type, int64_t batch, int64_t M, int64_t N, int64_t zero)
{
    Array a = array_of(type, batch, M, N, N % 2);
    int64_t steps = M < N ? M : N;
    int32_t info[40] = {7, 7, 7}, *pivots = malloc((size_t)(batch * steps + 1) * sizeof *pivots);
    for (int64_t i = 0; i < batch * M && zero >= 0; i++)
        set(&a, i / M, i % M, zero, 0);
    keep(&a);
    OK(tile_getrf_batched(library, NULL, type, M, N, a.at, a.ld, a.stride, pivots, info, batch));
    OK(tile_stream_synchronize(NULL));
    CHECK_INT(strays(&a, WHOLE), 0);
    for (int64_t z = 0; z < batch; z++) {
        double error = factored(&a, z, pivots + z * steps);
        bool ok = CHECK(error < 1);
        if (!CHECK_INT(info[z], zero + 1) || !ok)
            fprintf(stderr, "    %s %d x %d, matrix %d: %g\n", tile_dtype_name(type), (int)M,
                    (int)N, (int)z, error);
    }
    drop(&a);
    free(pivots);
}

static void lu_solves(tile_dtype type, int64_t batch, int64_t N, int64_t K, bool turned)
{
    Array full = array_of(type, batch, N, N, 1), b = array_of(type, batch, N, K, 2);
    int32_t info[3], *pivots = malloc((size_t)(batch * N + 1) * sizeof *pivots);
    for (int64_t i = 0; i < batch * N; i++) /* not singular, and every row is exchanged */
        set(&full, i / N, i % N, (i + 1) % N, (double)(2 * N));
    Array a = copy_of(&full);
    keep(&b);
    OK(tile_getrf_batched(library, NULL, type, N, N, a.at, a.ld, a.stride, pivots, info, batch));
    OK(tile_getrs_batched(library, NULL, type, turned ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE, N, K,
                          a.at, a.ld, a.stride, pivots, b.at, b.ld, b.stride, batch));
    OK(tile_stream_synchronize(NULL));
    double error = solved(&full, &b, turned);
    bool ok = CHECK(error < 1);
    if (!CHECK_INT(strays(&b, WHOLE), 0) || !ok)
        fprintf(stderr, "    %s %d of %d, %d columns%s: %g\n", tile_dtype_name(type), (int)batch,
                (int)N, (int)K, turned ? ", transposed" : "", error);
    drop(&full);
    drop(&a);
    drop(&b);
    free(pivots);
}

/* Q R is the matrix, Q^T Q C is C, and R is the upper triangle: with R as a matrix, Q R by
 * tile_ormqr beside what was there before. */
static void qr_of(tile_dtype type, int64_t batch, int64_t M, int64_t N, double size)
{
    const int64_t K = M < N ? M : N;
    Array a = array_of(type, batch, M, N, N % 2), r = array_of(type, batch, M, N, 1);
    void *tau = numbers(type, batch * K), *room[2] = {
        malloc(tile_geqrf_workspace(type, M, N, batch) + 8),
        malloc(tile_ormqr_workspace(type, M, N, K, batch) + 8)};
    for (int64_t i = 0; i < a.count; i++)
        put(a.at, type, i, get(a.at, type, i) * size);
    keep(&a);
    OK(tile_geqrf_batched(library, NULL, type, M, N, a.at, a.ld, a.stride, tau, room[0], batch));
    CHECK_INT(strays(&a, WHOLE), 0);
    for (int64_t i = 0; i < batch * M * N; i++)
        set(&r, i / (M * N), i / N % M, i % N,
            i % N >= i / N % M ? item(&a, a.at, i / (M * N), i / N % M, i % N) : 0);
    keep(&r);
    OK(tile_ormqr_batched(library, NULL, type, TILE_NO_TRANSPOSE, M, N, K, a.at, a.ld, a.stride,
                          tau, r.at, r.ld, r.stride, room[1], batch));
    CHECK_INT(strays(&r, WHOLE), 0);
    double most = 0, far = 0, back = 0;
    for (int64_t i = 0; i < batch * M * N; i++) {
        double was = item(&a, a.before, i / (M * N), i / N % M, i % N);
        most = fmax(most, fabs(was));
        far = fmax(far, fabs(was - item(&r, r.at, i / (M * N), i / N % M, i % N)));
    }
    OK(tile_ormqr_batched(library, NULL, type, TILE_TRANSPOSE, M, N, K, a.at, a.ld, a.stride, tau,
                          r.at, r.ld, r.stride, room[1], batch));
    for (int64_t i = 0; i < batch * M * N; i++)
        back = fmax(back, fabs(item(&r, r.before, i / (M * N), i / N % M, i % N) -
                               item(&r, r.at, i / (M * N), i / N % M, i % N)));
    double bound = 8 * eps_of(type) * sqrt((double)(M * N + 1)) * (double)(K + 1) * most;
    if (!CHECK(far <= bound && back <= bound))
        fprintf(stderr, "    %s %d x %d x %d: %g and %g of %g\n", tile_dtype_name(type),
                (int)batch, (int)M, (int)N, far, back, bound);
    drop(&a);
    drop(&r);
    void *all[] = {tau, room[0], room[1]};
    for (int i = 0; i < 3; i++)
        free(all[i]);
}

/* Few columns of C, which go by a kernel of their own, are what they are among many. */
static void few_columns(tile_dtype type, int64_t batch, int64_t M, int64_t K, bool transposed)
{
    enum { MANY = 9, FEW = 3 };
    Array a = array_of(type, batch, M, K, 1), c = array_of(type, batch, M, MANY, 1);
    int side = transposed ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE;
    void *tau = numbers(type, batch * K),
         *room[2] = {malloc(tile_geqrf_workspace(type, M, K, batch) + 8),
                     malloc(tile_ormqr_workspace(type, M, MANY, K, batch) + 8)};
    OK(tile_geqrf_batched(library, NULL, type, M, K, a.at, a.ld, a.stride, tau, room[0], batch));
    keep(&c);
    OK(tile_ormqr_batched(library, NULL, type, (tile_transpose)side, M, MANY, K, a.at, a.ld,
                          a.stride, tau, c.at, c.ld, c.stride, room[1], batch));
    OK(tile_ormqr_batched(library, NULL, type, (tile_transpose)side, M, FEW, K, a.at, a.ld,
                          a.stride, tau, c.before, c.ld, c.stride, room[1], batch));
    double far = 0, most = 1;
    for (int64_t i = 0; i < batch * M * FEW; i++) {
        int64_t z = i / (M * FEW), row = i / FEW % M;
        double want = item(&c, c.at, z, row, i % FEW);
        most = fmax(most, fabs(want));
        far = fmax(far, fabs(want - item(&c, c.before, z, row, i % FEW)));
    }
    if (!CHECK(far <= 8 * eps_of(type) * (double)(M + K) * most))
        fprintf(stderr, "    %s few columns, %d x %d x %d: %g of %g\n", tile_dtype_name(type),
                (int)batch, (int)M, (int)K, far, most);
    drop(&a);
    drop(&c);
    void *all[] = {tau, room[0], room[1]};
    for (int i = 0; i < 3; i++)
        free(all[i]);
}

static void orthogonal(tile_dtype type)
{
    few_columns(type, 2, 50, 37, true);
    few_columns(type, 1, 41, 41, false);
    few_columns(type, 1, 9, 8, false);
    qr_of(type, 1, 1, 1, 1);
    qr_of(type, 3, 5, 4, 1);
    qr_of(type, 2, 8, 8, 1);
    qr_of(type, 2, 7, 20, type == TILE_F64 ? 1e200 : 1e25);
    qr_of(type, 1, 40, 1, 1);
    qr_of(type, 1, 1, 40, 1);
    qr_of(type, 2, 33, 33, 1);
    qr_of(type, 0, 4, 4, 1);
    qr_of(type, 2, 0, 4, 1);
    qr_of(type, 2, 4, 0, 1);
    if (brief)
        return;
    qr_of(type, 1, 150, 70, type == TILE_F64 ? 1e-200 : 1e-25);
    qr_of(type, 1, 70, 150, 1);
    qr_of(type, 2, 64, 64, 1);
}

static void each_type(tile_dtype type, tile_dtype result)
{
    static const int64_t sizes[][3] = {{1, 1, 1},   {2, 5, 3},    {0, 4, 4},    {2, 0, 5},
                                       {2, 5, 0},   {1, 16, 17},  {2, 37, 1},   {1, 1, 40},
                                       {1, 70, 33}, {1, 33, 131}, {3, 130, 20}, {1, 150, 150},
                                       {1, 300, 7}};
    (void)result;
    if (type != TILE_F32 && type != TILE_F64)
        return;
    for (int i = 0; i < (brief ? 9 : 13); i++) {
        const int64_t *s = sizes[i];
        for (int form = 0; form < 16; form++)
            trsm_of(type, s[0], s[1], s[2], form);
        for (int flag = 0; flag < 2; flag++) {
            cholesky_of(type, s[0], s[1], s[2], flag);
            if (s[1])
                lu_solves(type, s[0], s[1], s[2], flag);
        }
        lu_of(type, s[0], s[1], s[2], -1);
        lu_of(type, s[0], s[2], s[1], -1);
        lu_of(type, s[0], s[1], s[1], -1);
    }
    lu_of(type, 2, 9, 7, 0);
    /* a matrix to a lane, some of the last one by one */
    static const int64_t abreast[][4] = {{2, 2, 2, -1},    {7, 3, 3, 1},     {25, 9, 8, -1},
                                         {7, 7, 7, 6},     {35, 16, 16, -1}, {23, 11, 11, 3},
                                         {40, 20, 19, -1}, {33, 32, 32, 30}};
    for (size_t i = 0; i < sizeof abreast / sizeof *abreast; i++)
        lu_of(type, abreast[i][0], abreast[i][1], abreast[i][2], abreast[i][3]);
    lu_of(type, 3, 66, 66, -1);
    lu_of(type, 3, 66, 66, 64);
    lu_of(type, 1, 20, 20, 19);
    lu_of(type, 1, brief ? 70 : 140, brief ? 70 : 140, brief ? 65 : 100);
    not_positive(type, 1, 0, false);
    not_positive(type, 20, 19, true);
    not_positive(type, brief ? 70 : 140, brief ? 65 : 70, false);
    not_positive(type, brief ? 70 : 140, 3, true);
    orthogonal(type);
}

/* ---- wrong arguments ---- */

static float cells[400];
static int32_t whole[20];

typedef struct Call {
    tile_kernels *kernels;
    int type, side, triangle, transpose, diagonal;
    int64_t M, N, lda, stride_a, ldb, stride_b, batch;
    const void *a;
    void *b;
    int32_t *pivots, *info;
} Call;

static tile_status trsm_call(const Call *c)
{
    return tile_trsm_batched(c->kernels, NULL, (tile_dtype)c->type, (tile_side)c->side,
                             (tile_triangle)c->triangle, (tile_transpose)c->transpose,
                             (tile_diagonal)c->diagonal, c->M, c->N, 1, c->a, c->lda, c->stride_a,
                             c->b, c->ldb, c->stride_b, c->batch);
}

static tile_status potrf_call(const Call *c)
{
    return tile_potrf_batched(c->kernels, NULL, (tile_dtype)c->type, (tile_triangle)c->triangle,
                              c->N, c->b, c->ldb, c->stride_b, c->info, c->batch);
}

static tile_status potrs_call(const Call *c)
{
    return tile_potrs_batched(c->kernels, NULL, (tile_dtype)c->type, (tile_triangle)c->triangle,
                              c->M, c->N, c->a, c->lda, c->stride_a, c->b, c->ldb, c->stride_b,
                              c->batch);
}

static tile_status getrf_call(const Call *c)
{
    return tile_getrf_batched(c->kernels, NULL, (tile_dtype)c->type, c->M, c->N, c->b, c->ldb,
                              c->stride_b, c->pivots, c->info, c->batch);
}

static tile_status getrs_call(const Call *c)
{
    return tile_getrs_batched(c->kernels, NULL, (tile_dtype)c->type, (tile_transpose)c->transpose,
                              c->M, c->N, c->a, c->lda, c->stride_a, c->pivots, c->b, c->ldb,
                              c->stride_b, c->batch);
}

#define WRONG_CALL(function, change, text)                                                         \
    WRONG_BUT(change, function(&c), text,                                                          \
              Call c = {library, TILE_F32, 0, 0, 0, 0, 3, 4, 5, 30, 5, 30, 2, cells, cells + 200,  \
                  whole, whole + 10})

static void wrong_triangles(void)
{
    WRONG_CALL(trsm_call, c.kernels = NULL, "tile_trsm_batched: kernels is NULL");
    WRONG_CALL(trsm_call, c.type = TILE_F16, "type is f16, but must be f32 or f64");
    WRONG_CALL(trsm_call, c.side = 2, "side is 2, but must be of tile_side");
    WRONG_CALL(trsm_call, c.triangle = -1, "triangle is -1, but must be of tile_triangle");
    WRONG_CALL(trsm_call, c.transpose = 2, "transpose_a is 2, but must be of tile_transpose");
    WRONG_CALL(trsm_call, c.diagonal = 7, "diagonal is 7, but must be of tile_diagonal");
    WRONG_CALL(trsm_call, c.M = -1, "M is -1, but must be from 0 to 2147483647");
    WRONG_CALL(trsm_call, c.N = INT64_MAX, "N is 9223372036854775807");
    WRONG_CALL(trsm_call, c.batch = -3, "batch is -3");
    WRONG_CALL(trsm_call, c.lda = 2, "lda is 2, but a row of A has 3 elements");
    WRONG_CALL(trsm_call, (c.side = 1, c.lda = 3), "lda is 3, but a row of A has 4 elements");
    WRONG_CALL(trsm_call, c.ldb = 3, "ldb is 3, but a row of B has 4 elements");
    WRONG_CALL(trsm_call, c.stride_a = -1, "stride_a is -1, but must be 0 or more");
    WRONG_CALL(trsm_call, c.stride_b = 0, "stride_b is 0, so that the matrices of B overlap");
    WRONG_CALL(trsm_call, c.a = NULL, "A is NULL");
    WRONG_CALL(trsm_call, c.b = NULL, "B is NULL");
}

static void wrong_factors(void)
{
    WRONG_CALL(potrf_call, c.kernels = NULL, "tile_potrf: kernels is NULL");
    WRONG_CALL(potrf_call, c.type = TILE_I8, "tile_potrf: type is i8, but must be f32 or f64");
    WRONG_CALL(potrf_call, c.triangle = 2, "triangle is 2, but must be of tile_triangle");
    WRONG_CALL(potrf_call, c.N = -4, "N is -4");
    WRONG_CALL(potrf_call, c.ldb = 3, "lda is 3, but a row of A has 4 elements");
    WRONG_CALL(potrf_call, c.stride_b = 5, "stride_a is 5, so that the matrices of A overlap");
    WRONG_CALL(potrf_call, c.b = NULL, "A is NULL");
    WRONG_CALL(potrf_call, c.info = NULL, "tile_potrf: info is NULL");
    WRONG_CALL(getrf_call, c.kernels = NULL, "tile_getrf: kernels is NULL");
    WRONG_CALL(getrf_call, c.type = TILE_BF16, "tile_getrf: type is bf16");
    WRONG_CALL(getrf_call, c.M = -1, "M is -1");
    WRONG_CALL(getrf_call, c.N = -1, "N is -1");
    WRONG_CALL(getrf_call, c.batch = -1, "batch is -1");
    WRONG_CALL(getrf_call, c.ldb = 1, "lda is 1, but a row of A has 4 elements");
    WRONG_CALL(getrf_call, c.b = NULL, "A is NULL");
    WRONG_CALL(getrf_call, c.pivots = NULL, "pivots is NULL");
    WRONG_CALL(getrf_call, c.info = NULL, "tile_getrf: info is NULL");
}

static void wrong_systems(void)
{
    WRONG_CALL(potrs_call, c.triangle = 3, "tile_potrs: triangle is 3");
    WRONG_CALL(potrs_call, c.M = -1, "N is -1");
    WRONG_CALL(potrs_call, c.N = -2, "K is -2");
    WRONG_CALL(potrs_call, c.a = NULL, "A is NULL");
    WRONG_CALL(potrs_call, c.ldb = 3, "ldb is 3, but a row of B has 4 elements");
    WRONG_CALL(getrs_call, c.transpose = -1, "transpose_a is -1, but must be of tile_transpose");
    WRONG_CALL(getrs_call, c.lda = 2, "lda is 2, but a row of A has 3 elements");
    WRONG_CALL(getrs_call, c.pivots = NULL, "tile_getrs: pivots is NULL");
    WRONG_CALL(getrs_call, c.b = NULL, "B is NULL");
    WRONG_CALL(getrs_call, c.kernels = NULL, "tile_getrs: kernels is NULL");
}

static void wrong_reflections(void)
{
    const tile_dtype t = TILE_F32;
    float *x = cells, *y = cells + 200;
    WRONG(tile_geqrf(NULL, NULL, t, 3, 2, x, 2, y, NULL), "tile_geqrf: kernels is NULL");
    WRONG(tile_geqrf(library, NULL, TILE_F16, 3, 2, x, 2, y, NULL), "type is f16");
    WRONG(tile_geqrf(library, NULL, t, -3, 2, x, 2, y, NULL), "M is -3");
    WRONG(tile_geqrf(library, NULL, t, 3, -2, x, 2, y, NULL), "N is -2");
    WRONG(tile_geqrf(library, NULL, t, 3, 2, x, 1, y, NULL), "lda is 1, but a row of A has 2");
    WRONG(tile_geqrf(library, NULL, t, 3, 2, NULL, 2, y, NULL), "A is NULL");
    WRONG(tile_geqrf(library, NULL, t, 3, 2, x, 2, NULL, NULL), "tau is NULL");
    WRONG(tile_geqrf(library, NULL, t, 3, 4, x, 4, y, NULL), "workspace is NULL");
    WRONG(tile_geqrf_batched(library, NULL, t, 3, 2, x, 2, 4, y, NULL, 2), "stride_a is 4");
    WRONG(tile_geqrf_batched(library, NULL, t, 3, 2, x, 2, 6, y, NULL, -2), "batch is -2");
    WRONG(tile_ormqr(library, NULL, t, 7, 3, 2, 2, x, 2, y, y + 9, 2, y + 40),
          "transpose_q is 7, but must be of tile_transpose");
    WRONG(tile_ormqr(library, NULL, t, TILE_TRANSPOSE, 3, 2, 4, x, 4, y, y + 9, 2, y + 40),
          "K is 4, but must be M or less");
    WRONG(tile_ormqr(library, NULL, t, TILE_TRANSPOSE, 3, 2, 2, x, 2, y, NULL, 2, y + 40),
          "C is NULL");
    WRONG(tile_ormqr(library, NULL, t, TILE_TRANSPOSE, 3, 2, 2, x, 2, NULL, y, 2, y + 40),
          "tau is NULL");
    WRONG(tile_ormqr(library, NULL, t, TILE_TRANSPOSE, 3, 2, 2, x, 2, y, y + 9, 2, NULL),
          "workspace is NULL");
    CHECK(tile_geqrf_workspace(t, 30, 20, 4) == 0 && tile_geqrf_workspace(t, -1, 4, 1) == 0);
    CHECK(tile_ormqr_workspace(TILE_I8, 3, 2, 2, 1) == 0 && tile_geqrf_workspace(t, 3, 4, 1) > 0);
}

/* alpha = 0: B becomes 0, and A is not read. One matrix by the functions without batches. */
static void single(void)
{
    float a[] = {4, 2, 2, 10}, b[] = {8, 22}, z[] = {NAN, 3};
    int32_t info, pivots[2];
    OK(tile_trsm(library, NULL, TILE_F32, TILE_LEFT, TILE_LOWER, TILE_NO_TRANSPOSE, TILE_UNIT, 2, 1,
                 0, a, 2, z, 1));
    OK(tile_potrf(library, NULL, TILE_F32, TILE_LOWER, 2, a, 2, &info));
    OK(tile_potrs(library, NULL, TILE_F32, TILE_LOWER, 2, 1, a, 2, b, 1));
    OK(tile_stream_synchronize(NULL));
    CHECK(z[0] == 0 && z[1] == 0);
    CHECK(a[0] == 2 && a[1] == 2 && a[2] == 1 && a[3] == 3 && info == 0);
    CHECK(b[0] == 1 && b[1] == 2);
    float c[] = {0, 2, 4, 8};
    OK(tile_getrf(library, NULL, TILE_F32, 2, 2, c, 2, pivots, &info));
    OK(tile_getrs(library, NULL, TILE_F32, TILE_TRANSPOSE, 2, 1, c, 2, pivots, b, 1));
    OK(tile_stream_synchronize(NULL));
    CHECK(pivots[0] == 1 && pivots[1] == 1 && info == 0);
    CHECK(b[0] == 0 && b[1] == 0.25F);
}

static void once(void)
{
    wrong_triangles();
    wrong_factors();
    wrong_systems();
    wrong_reflections();
    single();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
