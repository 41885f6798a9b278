/* tile_gemm, tile_gemm_batched, tile_gemv and tile_ger against sums in f64, after netlib's tests of
 * the levels 2 and 3 of BLAS: every transposition; alpha and beta 0, 1 and others; leading
 * dimensions longer than rows; extents of 0, 1, and odd ones up to more than a tile, so that each
 * row of choices.def has its turn. The data are small integers: sums are exact. What must not be
 * read is NaN, what must not be written is compared. And every argument that is wrong.
 *
 *     gemm_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

typedef struct Case {
    tile_dtype type, result;
    int64_t M, N, K;
    bool ta, tb;
    double alpha, beta;
    int pad; /* columns more than there are */
    bool bias;
    tile_activation activation;
} Case;

typedef struct Arrays {
    char *a, *b, *c, *before, *bias;
    int64_t rows[3], columns[3], ld[3];
} Arrays;

static int64_t elements(const Arrays *x, int i)
{
    return x->rows[i] * x->ld[i];
}

static unsigned state = 1;
static int small_integer(void)
{
    state = state * 1103515245 + 12345;
    return (int)(state >> 16) % 5 - 2;
}

/* With NaN (or a number that sums show) where nothing may be read. */
static char *fill(tile_dtype type, const Arrays *x, int i, bool read)
{
    char *p = malloc((size_t)elements(x, i) * 8 + 8);
    for (int64_t at = 0; at < elements(x, i); at++)
        put(p, type, at, read && at % x->ld[i] < x->columns[i] ? small_integer() : NAN);
    return p;
}

static void make(const Case *c, Arrays *x)
{
    const int64_t rows[] = {c->ta ? c->K : c->M, c->tb ? c->N : c->K, c->M};
    const int64_t columns[] = {c->ta ? c->M : c->K, c->tb ? c->K : c->N, c->N};
    for (int i = 0; i < 3; i++) {
        x->rows[i] = rows[i];
        x->columns[i] = columns[i];
        x->ld[i] = (columns[i] ? columns[i] : 1) + c->pad;
    }
    x->a = fill(c->type, x, 0, c->alpha != 0);
    x->b = fill(c->type, x, 1, c->alpha != 0);
    x->c = fill(c->result, x, 2, c->beta != 0);
    x->before = malloc((size_t)elements(x, 2) * 8 + 8);
    memcpy(x->before, x->c, (size_t)elements(x, 2) * 8 + 8);
    x->bias = malloc((size_t)c->N * 8 + 8);
    for (int64_t n = 0; n < c->N; n++)
        put(x->bias, c->result, n, small_integer());
}

static void drop(Arrays *x)
{
    free(x->a);
    free(x->b);
    free(x->c);
    free(x->before);
    free(x->bias);
}

static double activate(double v, tile_activation activation)
{
    switch (activation) {
    case TILE_RELU: return v > 0 ? v : 0;
    case TILE_GELU: return 0.5 * v * (1 + erf(v / sqrt(2)));
    case TILE_GELU_TANH: return 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    case TILE_SILU: return v / (1 + exp(-v));
    default: return v;
    }
}

static double element(const Case *c, const Arrays *x, int64_t m, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < c->K && c->alpha != 0; k++)
        sum += get(x->a, c->type, c->ta ? k * x->ld[0] + m : m * x->ld[0] + k) *
               get(x->b, c->type, c->tb ? n * x->ld[1] + k : k * x->ld[1] + n);
    sum *= c->alpha;
    if (c->beta != 0)
        sum += c->beta * get(x->before, c->result, m * x->ld[2] + n);
    if (c->bias)
        sum += get(x->bias, c->result, n);
    return activate(sum, c->activation);
}

/* The elements of C are right and those between its rows are as they were. */
static bool is_right(const Case *c, const Arrays *x)
{
    size_t size = (size_t)tile_dtype_bits(c->result) / 8;
    double slack = rounding(c->result) + (c->activation > TILE_RELU ? ldexp(1, -20) : 0);
    for (int64_t at = 0; at < elements(x, 2); at++) {
        int64_t m = at / x->ld[2], n = at % x->ld[2];
        if (n >= c->N) {
            if (memcmp(x->c + (size_t)at * size, x->before + (size_t)at * size, size) != 0)
                return false;
            continue;
        }
        double want = element(c, x, m, n), got = get(x->c, c->result, at);
        if (!(fabs(got - want) <= slack * (fabs(want) + (c->activation > TILE_RELU))))
            return false;
    }
    return true;
}

static tile_transpose flip(bool t)
{
    return t ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE;
}

static void try_case(const Case *c)
{
    Arrays x;
    make(c, &x);
    const tile_gemm_options options = {.struct_size = sizeof options,
                                       .bias = c->bias ? x.bias : NULL,
                                       .activation = c->activation};
    OK(tile_gemm(library, NULL, c->type, flip(c->ta), flip(c->tb), c->M, c->N, c->K, c->alpha, x.a,
                 x.ld[0], x.b, x.ld[1], c->beta, x.c, x.ld[2],
                 c->bias || c->activation ? &options : NULL));
    if (!CHECK(is_right(c, &x)))
        fprintf(stderr,
                "    %s %d%d M = %d, N = %d, K = %d, alpha = %g, beta = %g, pad %d, bias %d, "
                "activation %d\n", tile_dtype_name(c->type), c->ta, c->tb, (int)c->M, (int)c->N,
                (int)c->K, c->alpha, c->beta, c->pad, c->bias, (int)c->activation);
    drop(&x);
}

/* Every size with every transposition, the other axes in turn. */
static void extents(tile_dtype type, tile_dtype result)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 17, 33}, few[] = {0, 1, 5};
    static const double factors[][2] = {{1, 0}, {1, 1}, {2, -1}, {0, 2}, {-1, 0}, {0, 0}, {3, 1}};
    const int64_t *list = brief ? few : sizes;
    int n = brief ? 3 : 6, turn = 0;
    for (int i = 0; i < n * n * n * 4; i++, turn++) {
        Case c = {.type = type, .result = result, .M = list[i / 4 % n], .N = list[i / 4 / n % n],
                  .K = list[i / 4 / n / n], .ta = i & 1, .tb = i & 2,
                  .alpha = factors[turn % 7][0], .beta = factors[turn % 7][1], .pad = turn % 3,
                  .bias = turn % 5 == 0, .activation = turn % 11 == 0 ? TILE_RELU : TILE_IDENTITY};
        try_case(&c);
    }
}

/* A shape for each row of choices.def. */
static void tiles(tile_dtype type, tile_dtype result)
{
    static const int64_t shapes[][3] = {
        {31, 30, 200}, {130, 9, 70}, {70, 29, 90}, {20, 70, 50}, {3, 130, 300}, {19, 90, 270},
        {100, 70, 33}, {130, 140, 70}, {140, 70, 270}, {1, 300, 70}, {1, 40, 5}, {1, 100, 20},
        {270, 1, 70}, {40, 1, 5}, {100, 1, 20}, {5, 1, 300}, {1, 7, 300},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * 4 && !brief; i++) {
        const int64_t *s = shapes[i / 4];
        Case c = {.type = type, .result = result, .M = s[0], .N = s[1], .K = s[2], .ta = i & 1,
                  .tb = i & 2, .alpha = 1, .beta = i % 3 == 0, .pad = (int)(i % 2)};
        try_case(&c);
    }
}

static void activations(tile_dtype type)
{
    static const int64_t shapes[][3] = {{9, 20, 3}, {1, 20, 3}, {20, 1, 3}};
    for (int i = 0; i < 3 * (TILE_SILU + 1); i++) {
        const int64_t *s = shapes[i % 3];
        Case c = {.type = type, .result = type, .M = s[0], .N = s[1], .K = s[2], .alpha = 0.5,
                  .tb = i & 1, .bias = i % 2 == 0, .activation = (tile_activation)(i / 3)};
        try_case(&c);
    }
}

/* ---- batches ---- */

static void batches(void)
{
    enum { Z = 3, M = 4, N = 5, K = 6 };
    float a[Z * M * K], b[K * N], behind[Z * M * N], between[M * Z * N];
    for (int i = 0; i < Z * M * K; i++)
        a[i] = (float)small_integer();
    for (int i = 0; i < K * N; i++)
        b[i] = (float)small_integer();
    OK(tile_gemm_batched(library, NULL, TILE_F32, TILE_NO_TRANSPOSE, TILE_NO_TRANSPOSE, M, N, K, 1,
                         a, K, M * K, b, N, 0, 0, behind, N, M * N, Z, NULL));
    OK(tile_gemm_batched(library, NULL, TILE_F32, TILE_NO_TRANSPOSE, TILE_NO_TRANSPOSE, M, N, K, 1,
                         a, K, M * K, b, N, 0, 0, between, Z * N, N, Z, NULL));
    OK(tile_gemm_batched(library, NULL, TILE_F32, TILE_NO_TRANSPOSE, TILE_NO_TRANSPOSE, M, N, K, 1,
                         NULL, K, 0, NULL, N, 0, 0, NULL, N, 0, 0, NULL));
    int wrong = 0;
    for (int z = 0; z < Z; z++)
        for (int i = 0; i < M * N; i++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[z * M * K + i / N * K + k] * b[k * N + i % N];
            wrong += behind[z * M * N + i] != sum || between[i / N * Z * N + z * N + i % N] != sum;
        }
    CHECK_INT(wrong, 0);
}

/* ---- wrong arguments ---- */

/* The arguments of a call that is right, to be made wrong one at a time. */
typedef struct Call {
    tile_kernels *kernels;
    int type, ta, tb;
    int64_t M, N, K;
    double alpha, beta;
    const void *A, *B;
    void *C;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    tile_gemm_options options;
} Call;

static float cells[64];

static Call right(void)
{
    return (Call){library, TILE_F32, 0, 0, 2, 3, 4, 1, 0, cells, cells + 8, cells + 20, 4, 3, 3,
                  0, 0, 6, 2, TILE_GEMM_OPTIONS_INIT};
}

static tile_status make_call(const Call *c)
{
    return tile_gemm_batched(c->kernels, NULL, (tile_dtype)c->type, (tile_transpose)c->ta,
                             (tile_transpose)c->tb, c->M, c->N, c->K, c->alpha, c->A, c->lda,
                             c->stride_a, c->B, c->ldb, c->stride_b, c->beta, c->C, c->ldc,
                             c->stride_c, c->batch, &c->options);
}

#define WRONG_CALL(change, text)                                                                   \
    WRONG_BUT(change, make_call(&c), text, Call c = right())

static void wrong_arguments(void)
{
    Call fine = right();
    OK(make_call(&fine));
    WRONG_CALL(c.kernels = NULL, "kernels is NULL");
    WRONG_CALL(c.type = TILE_I32, "type is i32, but must be");
    WRONG_CALL(c.type = TILE_ANY, "type is ");
    WRONG_CALL(c.type = 1000, "type is ?");
    WRONG_CALL(c.ta = 2, "transpose_a is 2");
    WRONG_CALL(c.tb = -1, "transpose_b is -1");
    WRONG_CALL(c.M = -1, "M is -1, but must be from 0");
    WRONG_CALL(c.N = INT64_MAX, "N is 9223372036854775807");
    WRONG_CALL(c.K = INT64_C(1) << 31, "K is 2147483648");
    WRONG_CALL(c.batch = -2, "batch is -2");
    WRONG_CALL(c.lda = 3, "lda is 3, but a row of A has 4 elements");
    WRONG_CALL(c.ldb = 2, "ldb is 2, but a row of B has 3 elements");
    WRONG_CALL((c.ldc = 0, c.N = 0, c.ldb = 1), "ldc is 0, but a row of C has 1");
    WRONG_CALL(c.ldc = INT64_MIN, "ldc is ");
    WRONG_CALL(c.lda = INT64_MAX, "A with lda = 9223372036854775807 is larger than memory");
    WRONG_CALL((c.stride_c = INT64_MAX, c.batch = 5), "C with ldc = 3 is larger than memory");
    WRONG_CALL(c.stride_a = -1, "stride_a is -1");
    WRONG_CALL(c.stride_c = 5, "stride_c is 5, but must be so large");
    WRONG_CALL(c.stride_c = 0, "stride_c is 0");
    WRONG_CALL(c.A = NULL, "A is NULL");
    WRONG_CALL(c.B = NULL, "B is NULL");
    WRONG_CALL(c.C = NULL, "C is NULL");
    WRONG_CALL(c.C = cells + 1, "overlap");
    WRONG_CALL(c.A = (char *)cells + 1, "multiple of");
    WRONG_CALL(c.options.struct_size = 8, "struct_size of tile_gemm_options is 8");
    WRONG_CALL(c.options.activation = (tile_activation)9, "options->activation is 9");
    WRONG_CALL((c.type = TILE_F64, c.options.activation = TILE_GELU), "f64 has TILE_IDENTITY and");
    WRONG_CALL((c.type = TILE_I8, c.alpha = 0.5), "alpha is 0.5, but must be an integer");
    WRONG_CALL((c.type = TILE_I8, c.beta = 1e10), "beta is 1e+10, but must be an integer");
    WRONG_CALL((c.type = TILE_I8, c.beta = NAN), "beta is ");
    CHECK_INT(tile_kernels_open(NULL, NULL), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_kernels_prepare(NULL), TILE_BAD_ARGUMENT);
    tile_kernels_close(NULL);
}

/* ---- vectors ---- */

/* n elements `step` apart, NaN between them. */
static char *spaced(tile_dtype type, int64_t n, int64_t step)
{
    char *p = malloc((size_t)(n * step) * 8 + 8);
    for (int64_t i = 0; i < n * step; i++)
        put(p, type, i, i % step ? NAN : small_integer());
    return p;
}

/* How many numbers of y differ from what is wanted, or between them from NaN. */
static int64_t count_other(tile_dtype type, const char *y, const double *want, int64_t n,
                           int64_t step)
{
    char gap[8];
    int64_t wrong = 0;
    put(gap, type, 0, NAN);
    for (int64_t i = 0; i < n * step; i++) {
        double got = get(y, type, i), other = get(gap, type, 0);
        wrong += i % step ? got != other && !(isnan(got) && isnan(other)) : got != want[i / step];
    }
    return wrong;
}

static void vectors_of(tile_dtype type, tile_dtype result, int64_t M, int64_t N, int64_t incx,
                       int64_t incy)
{
    char *a = spaced(type, M * (N + 2), 1), *c = spaced(result, M * (N + 2), 1);
    for (int turned = 0; turned < 2; turned++) {
        int64_t rows = turned ? N : M, terms = turned ? M : N;
        char *x = spaced(type, terms, incx), *y = spaced(result, rows, incy);
        double *want = malloc((size_t)rows * sizeof *want + 8);
        for (int64_t i = 0; i < rows; i++) {
            want[i] = -get(y, result, i * incy);
            for (int64_t k = 0; k < terms; k++)
                want[i] += 2 * get(a, type, turned ? k * (N + 2) + i : i * (N + 2) + k) *
                           get(x, type, k * incx);
        }
        OK(tile_gemv(library, NULL, type, turned ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE, M, N, 2, a,
                     N + 2, x, incx, -1, y, incy));
        OK(tile_stream_synchronize(NULL));
        CHECK_INT(count_other(result, y, want, rows, incy), 0);
        free(x);
        free(y);
        free(want);
    }
    char *x = spaced(type, M, incx), *y = spaced(type, N, incy);
    double *want = malloc((size_t)(M * (N + 2)) * sizeof *want + 8);
    for (int64_t i = 0; i < M * (N + 2); i++) {
        int64_t m = i / (N + 2), n = i % (N + 2);
        double more = n < N ? 3 * get(x, type, m * incx) * get(y, type, n * incy) : 0;
        want[i] = get(c, result, i) + more;
    }
    OK(tile_ger(library, NULL, type, M, N, 3, x, incx, y, incy, c, N + 2));
    OK(tile_stream_synchronize(NULL));
    CHECK_INT(count_other(result, c, want, M * (N + 2), 1), 0);
    void *all[] = {a, c, x, y, want};
    for (int i = 0; i < 5; i++)
        free(all[i]);
}

static void vectors(tile_dtype type, tile_dtype result)
{
    static const int64_t sizes[][2] = {{0, 3}, {3, 0}, {1, 1}, {1, 9}, {9, 1}, {33, 20}, {5, 70}};
    for (int i = 0; i < 7; i++)
        for (int form = 0; form < 4; form++)
            vectors_of(type, result, sizes[i][0], sizes[i][1], form & 1 ? 3 : 1, form & 2 ? 2 : 1);
}

static void wrong_vectors(void)
{
    float a[16] = {0}, x[8] = {0}, y[8] = {0};
    const tile_transpose no = TILE_NO_TRANSPOSE;
    WRONG(tile_gemv(NULL, NULL, TILE_F32, no, 3, 4, 1, a, 4, x, 1, 0, y, 1),
          "tile_gemv: kernels is NULL");
    WRONG(tile_gemv(library, NULL, TILE_U8, no, 3, 4, 1, a, 4, x, 1, 0, y, 1), "type is u8");
    WRONG(tile_gemv(library, NULL, TILE_F32, (tile_transpose)2, 3, 4, 1, a, 4, x, 1, 0, y, 1),
          "transpose_a is 2");
    WRONG(tile_gemv(library, NULL, TILE_F32, no, -1, 4, 1, a, 4, x, 1, 0, y, 1), "M is -1");
    WRONG(tile_gemv(library, NULL, TILE_F32, TILE_TRANSPOSE, 3, -2, 1, a, 4, x, 1, 0, y, 1),
          "N is -2");
    WRONG(tile_gemv(library, NULL, TILE_F32, no, 3, 4, 1, a, 3, x, 1, 0, y, 1),
          "lda is 3, but a row of A has 4 elements");
    WRONG(tile_gemv(library, NULL, TILE_F32, no, 3, 4, 1, a, 4, x, 0, 0, y, 1),
          "incx is 0, but must be 1 or more");
    WRONG(tile_gemv(library, NULL, TILE_F32, no, 3, 4, 1, a, 4, x, 1, 0, y, -1),
          "incy is -1, but must be 1 or more");
    WRONG(tile_gemv(library, NULL, TILE_F32, no, 3, 4, 1, NULL, 4, x, 1, 0, y, 1), "A is NULL");
    WRONG(tile_gemv(library, NULL, TILE_F32, no, 3, 4, 1, a, 4, NULL, 1, 0, y, 1), "x is NULL");
    WRONG(tile_gemv(library, NULL, TILE_F32, no, 3, 4, 1, a, 4, x, 1, 0, NULL, 1), "y is NULL");
    WRONG(tile_ger(NULL, NULL, TILE_F32, 3, 4, 1, x, 1, y, 1, a, 4), "tile_ger: kernels is NULL");
    WRONG(tile_ger(library, NULL, TILE_F32, 3, -1, 1, x, 1, y, 1, a, 4), "N is -1");
    WRONG(tile_ger(library, NULL, TILE_F32, 3, 4, 1, x, 0, y, 1, a, 4), "incx is 0");
    WRONG(tile_ger(library, NULL, TILE_F32, 3, 4, 1, x, 1, y, 0, a, 4), "incy is 0");
    WRONG(tile_ger(library, NULL, TILE_F32, 3, 4, 1, x, 1, y, 1, a, 3),
          "lda is 3, but a row of A has 4 elements");
    WRONG(tile_ger(library, NULL, TILE_F32, 3, 4, 1, NULL, 1, y, 1, a, 4), "x is NULL");
    WRONG(tile_ger(library, NULL, TILE_F32, 3, 4, 1, x, 1, NULL, 1, a, 4), "y is NULL");
    WRONG(tile_ger(library, NULL, TILE_F32, 3, 4, 1, x, 1, y, 1, NULL, 4), "A is NULL");
}

static void each_type(tile_dtype type, tile_dtype result)
{
    extents(type, result);
    tiles(type, result);
    vectors(type, result);
    if (is_float_below_64(type))
        activations(type);
}

static void once(void)
{
    batches();
    wrong_arguments();
    wrong_vectors();
    OK(tile_kernels_prepare(library));
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
