/* BLAS 1, tile_trmm, tile_trmv, tile_trsv, tile_syrk, tile_symm, tile_symv against plain loops:
 * data are sixteenths, whose products and sums are exact, so that results are equal; every side,
 * triangle and form, increments of both signs, arrays with gaps, what must not be read as NaN, what
 * must not be written compared; every argument that is wrong.
 *
 *     blas_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

/* A matrix of rows ld apart, with its first contents. */
typedef struct Matrix {
    tile_dtype type;
    int64_t rows, columns, ld, count;
    void *at, *before;
} Matrix;

static Matrix matrix_of(tile_dtype type, int64_t rows, int64_t columns, int64_t gap)
{
    Matrix m = {type, rows, columns, columns + gap + 1, 0, NULL, NULL};
    m.count = rows * m.ld + 2;
    m.at = numbers(type, m.count);
    m.before = malloc((size_t)m.count * 8);
    return m;
}

static void keep(const Matrix *m)
{
    memcpy(m->before, m->at, (size_t)m->count * (m->type == TILE_F64 ? 8 : 4));
}

static void drop(const Matrix *m)
{
    free(m->at);
    free(m->before);
}

static double item(const Matrix *m, int64_t i, int64_t j)
{
    return get(m->before, m->type, i * m->ld + j);
}

static bool is_in_half(bool upper, int64_t i, int64_t j)
{
    return upper ? i <= j : j <= i;
}

/* What is not of the triangle, with `unit` nor below it, is NaN. */
static void poison_half(const Matrix *m, bool upper, bool unit)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++)
            if (!is_in_half(upper, i, j) || (unit && i == j))
                put(m->at, m->type, i * m->ld + j, NAN);
}

static double of_triangle(const Matrix *a, int64_t i, int64_t j, bool upper, bool turned, bool unit)
{
    int64_t r = turned ? j : i, c = turned ? i : j;
    if (r == c && unit)
        return 1;
    return is_in_half(upper, r, c) ? item(a, r, c) : 0;
}

static double of_symmetric(const Matrix *a, int64_t i, int64_t j, bool upper)
{
    return is_in_half(upper, i, j) ? item(a, i, j) : item(a, j, i);
}

/* Elements that are not what `want`, one for each of rows and columns, and those outside that have
 * changed; NaN: as before. */
static int64_t count_wrong(const Matrix *m, const double *want)
{
    int64_t wrong = 0;
    for (int64_t at = 0; at < m->count; at++) {
        int64_t i = at / m->ld, j = at % m->ld;
        bool inside = i < m->rows && j < m->columns && !isnan(want[i * m->columns + j]);
        double w = inside ? want[i * m->columns + j] : get(m->before, m->type, at);
        double v = get(m->at, m->type, at);
        wrong += v != w && !(isnan(v) && isnan(w));
    }
    return wrong;
}

static double *room_for(const Matrix *m)
{
    return calloc((size_t)(m->rows * m->columns) + 1, sizeof(double));
}

static void trmm_of(tile_dtype type, int64_t M, int64_t N, int form)
{
    bool right = form & 1, upper = form & 2, turned = form & 4, unit = form & 8;
    double alpha = form & 4 ? -0.5 : 1;
    Matrix a = matrix_of(type, right ? N : M, right ? N : M, form % 3);
    Matrix b = matrix_of(type, M, N, form % 2);
    double *want = room_for(&b);
    poison_half(&a, upper, unit);
    keep(&a);
    keep(&b);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++)
            for (int64_t k = 0; k < a.rows; k++)
                want[i * N + j] +=
                    alpha * (right ? item(&b, i, k) * of_triangle(&a, k, j, upper, turned, unit)
                                   : of_triangle(&a, i, k, upper, turned, unit) * item(&b, k, j));
    OK(tile_trmm(library, NULL, type, right ? TILE_RIGHT : TILE_LEFT,
                 upper ? TILE_UPPER : TILE_LOWER, turned ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE,
                 unit ? TILE_UNIT : TILE_NON_UNIT, M, N, alpha, a.at, a.ld, b.at, b.ld));
    OK(tile_stream_synchronize(NULL));
    if (!CHECK_INT(count_wrong(&b, want), 0))
        fprintf(stderr, "    %s %d x %d, form %d\n", tile_dtype_name(type), (int)M, (int)N, form);
    free(want);
    drop(&a);
    drop(&b);
}

static void syrk_of(tile_dtype type, int64_t N, int64_t K, int form)
{
    bool upper = form & 1, turned = form & 2;
    double alpha = form & 4 ? -0.5 : 1, beta = form & 4 ? 2 : 0;
    Matrix a = matrix_of(type, turned ? K : N, turned ? N : K, form % 3);
    Matrix c = matrix_of(type, N, N, form % 2);
    double *want = room_for(&c);
    if (beta == 0)
        for (int64_t i = 0; i < c.count; i++)
            put(c.at, type, i, NAN);
    keep(&a);
    keep(&c);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += turned ? item(&a, k, i) * item(&a, k, j) : item(&a, i, k) * item(&a, j, k);
            want[i * N + j] = is_in_half(upper, i, j)
                                  ? alpha * sum + (beta != 0 ? beta * item(&c, i, j) : 0)
                                  : NAN;
        }
    OK(tile_syrk(library, NULL, type, upper ? TILE_UPPER : TILE_LOWER,
                 turned ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE, N, K, alpha, a.at, a.ld, beta, c.at,
                 c.ld));
    OK(tile_stream_synchronize(NULL));
    if (!CHECK_INT(count_wrong(&c, want), 0))
        fprintf(stderr, "    syrk %s %d x %d, form %d\n", tile_dtype_name(type), (int)N, (int)K,
                form);
    free(want);
    drop(&a);
    drop(&c);
}

static void symm_of(tile_dtype type, int64_t M, int64_t N, int form)
{
    bool upper = form & 1, right = form & 2;
    double alpha = form & 4 ? -0.5 : 1, beta = form & 4 ? 2 : 0;
    Matrix a = matrix_of(type, right ? N : M, right ? N : M, form % 3);
    Matrix b = matrix_of(type, M, N, form % 2), c = matrix_of(type, M, N, 1);
    double *want = room_for(&c);
    poison_half(&a, upper, false);
    for (int64_t i = 0; beta == 0 && i < c.count; i++)
        put(c.at, type, i, NAN);
    keep(&a);
    keep(&b);
    keep(&c);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = 0; k < a.rows; k++)
                sum += right ? item(&b, i, k) * of_symmetric(&a, k, j, upper)
                             : of_symmetric(&a, i, k, upper) * item(&b, k, j);
            want[i * N + j] = alpha * sum + (beta != 0 ? beta * item(&c, i, j) : 0);
        }
    OK(tile_symm(library, NULL, type, right ? TILE_RIGHT : TILE_LEFT,
                 upper ? TILE_UPPER : TILE_LOWER, M, N, alpha, a.at, a.ld, b.at, b.ld, beta, c.at,
                 c.ld));
    OK(tile_stream_synchronize(NULL));
    if (!CHECK_INT(count_wrong(&c, want), 0))
        fprintf(stderr, "    symm %s %d x %d, form %d\n", tile_dtype_name(type), (int)M, (int)N,
                form);
    free(want);
    drop(&a);
    drop(&b);
    drop(&c);
}

/* ---- vectors ---- */

/* N elements, `step` apart. */
typedef struct Vector {
    tile_dtype type;
    int64_t n, step, count;
    void *at, *before;
} Vector;

static Vector vector_of(tile_dtype type, int64_t n, int64_t step)
{
    int64_t far = step < 0 ? -step : step;
    Vector v = {type, n, step, n ? (n - 1) * far + 1 : 0, NULL, NULL};
    v.at = numbers(type, v.count);
    v.before = malloc((size_t)v.count * 8 + 8);
    memcpy(v.before, v.at, (size_t)v.count * (type == TILE_F64 ? 8 : 4));
    return v;
}

static void drop_vector(const Vector *v)
{
    free(v->at);
    free(v->before);
}

static int64_t place(const Vector *v, int64_t i)
{
    return v->step < 0 ? (v->n - 1 - i) * -v->step : i * v->step;
}

static double first(const Vector *v, int64_t i)
{
    return get(v->before, v->type, place(v, i));
}

/* want: NULL where nothing may have changed */
static int64_t count_wrong_elements(const Vector *v, const double *want)
{
    int64_t wrong = 0, seen = 0;
    for (int64_t i = 0; i < v->n; i++) {
        wrong += get(v->at, v->type, place(v, i)) != (want ? want[i] : first(v, i));
        put(v->at, v->type, place(v, i), 99);
    }
    for (int64_t i = 0; i < v->count; i++)
        seen += get(v->at, v->type, i) == 99;
    for (int64_t i = 0; i < v->count; i++)
        wrong += get(v->at, v->type, i) != 99 &&
                 get(v->at, v->type, i) != get(v->before, v->type, i);
    return wrong + (seen != v->n);
}

static void check_vectors(const char *what, const Vector *x, const double *want_x, const Vector *y,
                          const double *want_y)
{
    bool ok = CHECK_INT(count_wrong_elements(x, want_x), 0);
    ok = (!y || CHECK_INT(count_wrong_elements(y, want_y), 0)) && ok;
    if (!ok)
        fprintf(stderr, "    %s: %s %d, %d apart\n", what, tile_dtype_name(x->type), (int)x->n,
                (int)x->step);
    drop_vector(x);
    if (y)
        drop_vector(y);
}

typedef enum Map { AXPY, SCAL, COPY, SWAP } Map;

static void map_of(Map map, tile_dtype type, int64_t n, int64_t incx, int64_t incy)
{
    static const char *const names[] = {"axpy", "scal", "copy", "swap"};
    Vector x = vector_of(type, n, incx), y = vector_of(type, n, incy);
    double *want_x = calloc((size_t)n + 1, sizeof(double)),
           *want_y = calloc((size_t)n + 1, sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        double a = first(&x, i), b = first(&y, i);
        want_x[i] = map == SCAL ? -2.5 * a : map == SWAP ? b : a;
        want_y[i] = map == AXPY ? b - 2.5 * a : map == SCAL ? b : a;
    }
    switch (map) {
    case AXPY: OK(tile_axpy(library, NULL, type, n, -2.5, x.at, incx, y.at, incy)); break;
    case SCAL: OK(tile_scal(library, NULL, type, n, -2.5, x.at, incx)); break;
    case COPY: OK(tile_copy(library, NULL, type, n, x.at, incx, y.at, incy)); break;
    case SWAP: OK(tile_swap(library, NULL, type, n, x.at, incx, y.at, incy)); break;
    }
    OK(tile_stream_synchronize(NULL));
    check_vectors(names[map], &x, want_x, &y, want_y);
    free(want_x);
    free(want_y);
}

static void fold_of(tile_dtype type, int64_t n, int64_t incx, int64_t incy)
{
    Vector x = vector_of(type, n, incx), y = vector_of(type, n, incy);
    double dot = 0, sum = 0, squares = 0, most = -1, got[3];
    int32_t at = -1, found = 77;
    double results[3] = {7, 7, 7}; /* of either type */
    for (int64_t i = 0; i < n; i++) {
        double a = first(&x, i);
        dot += a * first(&y, i);
        sum += fabs(a);
        squares += a * a;
        at = fabs(a) > most ? (int32_t)i : at;
        most = fabs(a) > most ? fabs(a) : most;
    }
    OK(tile_dot(library, NULL, type, n, x.at, incx, y.at, incy, &results[0]));
    OK(tile_asum(library, NULL, type, n, x.at, incx, &results[1]));
    OK(tile_nrm2(library, NULL, type, n, x.at, incx, &results[2]));
    OK(tile_iamax(library, NULL, type, n, x.at, incx, &found));
    OK(tile_stream_synchronize(NULL));
    for (int i = 0; i < 3; i++)
        got[i] = get(&results[i], type, 0);
    CHECK(got[0] == dot);
    CHECK(got[1] == sum);
    CHECK(fabs(got[2] - sqrt(squares)) <=
          sqrt(squares) * 2 * ldexp(1, type == TILE_F64 ? -53 : -24));
    CHECK_INT(found, at);
    check_vectors("fold", &x, NULL, &y, NULL);
}

static void symv_of(tile_dtype type, int64_t n, bool upper, int64_t incx, int64_t incy, double beta)
{
    Matrix a = matrix_of(type, n, n, 1);
    Vector x = vector_of(type, n, incx), y = vector_of(type, n, incy);
    double *want = calloc((size_t)n + 1, sizeof(double));
    poison_half(&a, upper, false);
    keep(&a);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            want[i] += -0.5 * of_symmetric(&a, i, j, upper) * first(&x, j);
        want[i] += beta * first(&y, i);
        if (beta == 0)
            put(y.at, type, place(&y, i), NAN);
    }
    OK(tile_symv(library, NULL, type, upper ? TILE_UPPER : TILE_LOWER, n, -0.5, a.at, a.ld, x.at,
                 incx, beta, y.at, incy));
    OK(tile_stream_synchronize(NULL));
    check_vectors("symv", &x, NULL, &y, want);
    free(want);
    drop(&a);
}

/* x becomes A x, and then what it was: divisors are powers of 2, so that all is exact. */
static void triangle_vector_of(tile_dtype type, int64_t n, int form, int64_t step)
{
    bool upper = form & 1, turned = form & 2, unit = form & 4;
    tile_triangle triangle = upper ? TILE_UPPER : TILE_LOWER;
    tile_transpose transpose = turned ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE;
    tile_diagonal diagonal = unit ? TILE_UNIT : TILE_NON_UNIT;
    Matrix a = matrix_of(type, n, n, form);
    Vector x = vector_of(type, n, step);
    double *want = calloc((size_t)n + 1, sizeof(double));
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) /* one element beside the diagonal */
            if (i == j || i - j > 1 || j - i > 1)
                put(a.at, type, i * a.ld + j, i == j ? i % 2 ? 0.5 : 2 : 0);
    poison_half(&a, upper, unit);
    keep(&a);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            want[i] += of_triangle(&a, i, j, upper, turned, unit) * first(&x, j);
    OK(tile_trmv(library, NULL, type, triangle, transpose, diagonal, n, a.at, a.ld, x.at, step));
    OK(tile_stream_synchronize(NULL));
    for (int64_t i = 0; i < n; i++)
        wrong += get(x.at, type, place(&x, i)) != want[i];
    CHECK_INT(wrong, 0);
    OK(tile_trsv(library, NULL, type, triangle, transpose, diagonal, n, a.at, a.ld, x.at, step));
    OK(tile_stream_synchronize(NULL));
    check_vectors("trsv", &x, NULL, NULL, NULL);
    free(want);
    drop(&a);
}

static void vectors_of(tile_dtype type)
{
    static const int64_t steps[][2] = {{1, 1}, {3, 2}, {1, -2}, {-1, 1}, {-3, -1}};
    static const int64_t sizes[] = {0, 1, 2, 65, 1500};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < (brief ? 3 : 5); j++) {
            int64_t n = sizes[i], incx = steps[j][0], incy = steps[j][1];
            for (int map = AXPY; map <= SWAP; map++)
                map_of((Map)map, type, n, incx, incy);
            fold_of(type, n, incx, incy);
            if (n > 100)
                continue;
            symv_of(type, n, j & 1, incx, incy, j & 2 ? 2 : 0);
            for (int form = 0; form < 8; form++)
                triangle_vector_of(type, n, form, incx);
        }
}

static void each_type(tile_dtype type, tile_dtype result)
{
    static const int64_t sizes[][2] = {{1, 1}, {5, 1}, {0, 3}, {3, 0},
                                       {17, 20}, {70, 65}, {130, 9}, {9, 300}, {1, 140}};
    (void)result;
    if (type != TILE_F32 && type != TILE_F64)
        return;
    vectors_of(type);
    if (!brief) /* more rows than one program has */
        symv_of(type, 2051, type == TILE_F64, 1, 1, 0);
    for (int i = 0; i < (brief ? 5 : 9); i++) {
        for (int form = 0; form < 16; form++)
            trmm_of(type, sizes[i][0], sizes[i][1], form);
        for (int form = 0; form < 8; form++) {
            syrk_of(type, sizes[i][0], sizes[i][1], form);
            symm_of(type, sizes[i][0], sizes[i][1], form);
            symm_of(type, sizes[i][1], sizes[i][0], form);
        }
    }
}

/* ---- what is special ---- */

static void single(void)
{
    float a[4] = {2, NAN, 3, 5}, x[4] = {1, NAN, 10, NAN}, c[2] = {4, 8};
    float batch_a[8] = {2, NAN, 3, 5, 1, NAN, 1, 1}, batch_b[4] = {1, 10, 1, 1};
    OK(tile_trmv(library, NULL, TILE_F32, TILE_LOWER, TILE_NO_TRANSPOSE, TILE_NON_UNIT, 2, a, 2, x,
                 -2)); /* x is 10, 1 */
    OK(tile_stream_synchronize(NULL));
    CHECK(x[2] == 20 && x[0] == 35 && isnan(x[1]));
    OK(tile_trmm_batched(library, NULL, TILE_F32, TILE_LEFT, TILE_LOWER, TILE_NO_TRANSPOSE,
                         TILE_NON_UNIT, 2, 1, 1, batch_a, 2, 4, batch_b, 1, 2, 2));
    OK(tile_trmm(library, NULL, TILE_F32, TILE_LEFT, TILE_UPPER, TILE_NO_TRANSPOSE, TILE_NON_UNIT,
                 1, 1, 0, a + 1, 1, x + 1, 1)); /* A is not read, nor is B: both are NaN */
    OK(tile_symm(library, NULL, TILE_F32, TILE_LEFT, TILE_UPPER, 1, 2, 0, NULL, 1, NULL, 2, 0.5, c,
                 2));
    OK(tile_stream_synchronize(NULL));
    CHECK(batch_b[0] == 2 && batch_b[1] == 53 && batch_b[2] == 1 && batch_b[3] == 2);
    CHECK(x[1] == 0);
    CHECK(c[0] == 2 && c[1] == 4);
    OK(tile_symv(library, NULL, TILE_F32, TILE_UPPER, 2, 0, NULL, 2, NULL, 1, 2, c, -1));
    OK(tile_syrk(library, NULL, TILE_F32, TILE_UPPER, TILE_TRANSPOSE, 1, 5, 0, NULL, 1, 3, c + 1,
                 1));
    OK(tile_stream_synchronize(NULL));
    CHECK(c[0] == 4 && c[1] == 24);
    float y[2] = {NAN, 3};
    OK(tile_axpy(library, NULL, TILE_F32, 2, 0, y, 1, c, 1)); /* nothing is done */
    OK(tile_swap(library, NULL, TILE_F32, 2, a, 2, a + 1, 2)); /* columns of one matrix */
    OK(tile_stream_synchronize(NULL));
    CHECK(c[0] == 4 && isnan(a[0]) && a[1] == 2 && a[2] == 5 && a[3] == 3);
}

/* ---- wrong arguments ---- */

typedef struct Call {
    tile_kernels *kernels;
    int type, side, triangle, transpose, diagonal;
    int64_t M, N, lda, ldb, ldc, incx, incy;
    const float *a, *x;
    float *b, *y;
    void *result;
} Call;

static float cells[400];

#define CALL                                                                                       \
    {                                                                                              \
        library, TILE_F32, TILE_LEFT, TILE_UPPER, TILE_TRANSPOSE, TILE_UNIT, 3, 2, 4, 5, 6, 1, 1,  \
            cells, cells + 100, cells + 200, cells + 300, cells + 350                              \
    }
#define EACH(call, change, text) WRONG_BUT(change, call(&c), text, Call c = CALL)

static tile_status axpy_call(const Call *c)
{
    return tile_axpy(c->kernels, NULL, (tile_dtype)c->type, c->N, 2, c->x, c->incx, c->y, c->incy);
}

static tile_status scal_call(const Call *c)
{
    return tile_scal(c->kernels, NULL, (tile_dtype)c->type, c->N, 2, c->y, c->incx);
}

static tile_status dot_call(const Call *c)
{
    return tile_dot(c->kernels, NULL, (tile_dtype)c->type, c->N, c->x, c->incx, c->y, c->incy,
                    c->result);
}

static tile_status iamax_call(const Call *c)
{
    return tile_iamax(c->kernels, NULL, (tile_dtype)c->type, c->N, c->x, c->incx, c->result);
}

static tile_status trmm_call(const Call *c)
{
    return tile_trmm(c->kernels, NULL, (tile_dtype)c->type, (tile_side)c->side,
                     (tile_triangle)c->triangle, (tile_transpose)c->transpose,
                     (tile_diagonal)c->diagonal, c->M, c->N, 1, c->a, c->lda, c->b, c->ldb);
}

static tile_status trmv_call(const Call *c)
{
    return tile_trmv(c->kernels, NULL, (tile_dtype)c->type, (tile_triangle)c->triangle,
                     (tile_transpose)c->transpose, (tile_diagonal)c->diagonal, c->N, c->a, c->lda,
                     c->y, c->incx);
}

static tile_status syrk_call(const Call *c)
{
    return tile_syrk(c->kernels, NULL, (tile_dtype)c->type, (tile_triangle)c->triangle,
                     (tile_transpose)c->transpose, c->N, c->M, 1, c->a, c->lda, 0, c->b, c->ldb);
}

static tile_status symm_call(const Call *c)
{
    return tile_symm(c->kernels, NULL, (tile_dtype)c->type, (tile_side)c->side,
                     (tile_triangle)c->triangle, c->M, c->N, 1, c->a, c->lda, c->x, c->ldb, 0,
                     c->b, c->ldc);
}

static tile_status symv_call(const Call *c)
{
    return tile_symv(c->kernels, NULL, (tile_dtype)c->type, (tile_triangle)c->triangle, c->N, 1,
                     c->a, c->lda, c->x, c->incx, 0, c->y, c->incy);
}

static void wrong_vectors(void)
{
    EACH(axpy_call, c.kernels = NULL, "tile_axpy: kernels is NULL");
    EACH(axpy_call, c.type = TILE_F16, "tile_axpy: type is f16, but must be f32 or f64");
    EACH(axpy_call, c.N = -2, "N is -2");
    EACH(axpy_call, c.incx = 0, "incx is 0, but must be 1 or more, or -1 or less");
    EACH(axpy_call, c.incy = INT64_MIN, "incy is -9223372036854775808");
    EACH(axpy_call, c.incy = -INT64_MAX, "incy has a negative stride, or is larger than memory");
    EACH(axpy_call, c.x = NULL, "x is NULL");
    EACH(axpy_call, c.y = NULL, "y is NULL");
    EACH(axpy_call, c.x = c.y, "overlap");
    EACH(scal_call, c.incx = 0, "tile_scal: incx is 0");
    EACH(scal_call, c.y = NULL, "tile_scal: x is NULL");
    EACH(dot_call, c.result = NULL, "tile_dot: result is NULL");
    EACH(dot_call, c.N = INT64_C(1) << 31, "N is 2147483648");
    EACH(iamax_call, c.result = NULL, "tile_iamax: result is NULL");
    EACH(iamax_call, c.type = TILE_I8, "type is i8");
}

static void wrong_matrices(void)
{
    EACH(trmm_call, c.kernels = NULL, "tile_trmm: kernels is NULL");
    EACH(trmm_call, c.side = 2, "side is 2");
    EACH(trmm_call, c.diagonal = -1, "diagonal is -1");
    EACH(trmm_call, c.lda = 2, "lda is 2");
    EACH(trmm_call, c.ldb = 1, "ldb is 1");
    EACH(trmm_call, c.a = NULL, "A is NULL");
    EACH(trmm_call, c.b = NULL, "B is NULL");
    EACH(trmv_call, c.N = -1, "tile_trmv: N is -1");
    EACH(trmv_call, c.incx = 0, "tile_trmv: incx is 0");
    EACH(trmv_call, c.incx = INT64_MIN, "tile_trmv: incx is -9223372036854775808");
    EACH(trmv_call, c.y = NULL, "tile_trmv: x is NULL");
    EACH(trmv_call, c.triangle = 2, "triangle is 2");
    EACH(syrk_call, c.kernels = NULL, "tile_syrk: kernels is NULL");
    EACH(syrk_call, c.transpose = 5, "transpose_a is 5");
    EACH(syrk_call, c.triangle = 5, "triangle is 5");
    EACH(syrk_call, c.type = TILE_BF16, "type is bf16");
    EACH(syrk_call, c.lda = 1, "lda is 1");
    EACH(syrk_call, c.ldb = 1, "ldc is 1");
    EACH(syrk_call, c.b = NULL, "C is NULL");
    EACH(syrk_call, c.M = -7, "K is -7");
    EACH(symm_call, c.side = 3, "side is 3");
    EACH(symm_call, c.lda = 2, "lda is 2");
    EACH(symm_call, c.x = NULL, "B is NULL");
    EACH(symm_call, c.x = c.b, "overlap");
    EACH(symm_call, c.ldc = 0, "ldc is 0");
    EACH(symv_call, c.kernels = NULL, "tile_symv: kernels is NULL");
    EACH(symv_call, c.incx = 0, "incx is 0");
    EACH(symv_call, c.incy = INT64_MIN, "incy is -9223372036854775808");
    EACH(symv_call, c.N = INT64_C(1) << 40, "N is 1099511627776");
    EACH(symv_call, c.a = NULL, "A is NULL");
    EACH(symv_call, c.y = NULL, "y is NULL");
}

static void once(void)
{
    single();
    wrong_vectors();
    wrong_matrices();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
