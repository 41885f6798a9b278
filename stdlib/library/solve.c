/* solve.c: tile_trsm and tile_trmm, tile_trsv and tile_trmv, and what solves systems of equations:
 * tile_potrf, tile_potrs, tile_getrf, tile_getrs.
 *
 * One kernel solves with every triangle, and one multiplies. T is op(A), or on the right its
 * transpose; a transpose is a view with its strides exchanged, and an upper triangle, seen from its
 * last row and column, is a lower one: the views of T and of B run backwards. Of one column that is
 * slow, as elements of a row of T would be apart: kernels for such know the triangle, and read A by
 * rows. Triangles of many rows go by halves, and most of the work is products between these.
 *
 * Cholesky goes by panels of columns (of rows, for an upper triangle), left of which all is done:
 *     1. the block on the diagonal: less the products of what is done, then its own factor
 *     2. below it: a product, and the solution with that block
 * LU goes by panels of columns, too, and does the rest of the matrix after each:
 *     1. the panel's factors and pivots    2. its exchanges, in the columns on both sides of it
 *     3. the rows of U right of it         4. the product of both from the rest */
#include "stdlib/library/library.h"

/* Columns of a panel: those that the tiles of choices.def hold. */
enum { PANEL = 64 };
/* Rows of a triangle that one kernel does. */
enum { AT_ONCE = 128 };

typedef struct Solve {
    const char *function;
    tile_kernels *kernels;
    tile_stream *stream;
    tile_dtype type;
    int64_t batch;
    TlLibMatrix a, b;
} Solve;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- checks ---- */

/* `extents`: two of a matrix. */
static tile_status check(const Solve *s, const TlLibExtent *extents)
{
    return tl_lib_check_matrices(s->function, s->kernels, s->type, extents, 2, &s->a, &s->b,
                                 s->batch);
}

/* ---- arguments of launches ---- */

static TlLibMatrix matrix_a(const void *address, int64_t rows, int64_t columns, int64_t ld,
                            int64_t stride)
{
    return (TlLibMatrix){"A", "lda", "stride_a", address, rows, columns, ld, stride};
}

static TlLibMatrix matrix_b(const void *address, int64_t rows, int64_t columns, int64_t ld,
                            int64_t stride)
{
    return (TlLibMatrix){"B", "ldb", "stride_b", address, rows, columns, ld, stride};
}

static const void *element(const Solve *s, const TlLibMatrix *m, int64_t i, int64_t j)
{
    return (const char *)m->address + (i * m->ld + j) * tile_dtype_bits(s->type) / 8;
}

static TlLibMatrix part(const Solve *s, const TlLibMatrix *m, int64_t i, int64_t j, int64_t rows,
                        int64_t columns)
{
    return tl_lib_part(m, s->type, i, j, rows, columns);
}

static tile_status launch(const Solve *s, TlLibKernel kernel, int form, int64_t size,
                          const tile_arg *args, size_t nargs)
{
    TlLibCall call = {.function = s->function, .images = tl_lib_solve_images, .kernel = kernel,
                      .type = s->type, .form = form, .sizes = {size}, .batch = s->batch};
    return tl_lib_launch(s->kernels, s->stream, &call, args, nargs);
}

/* ---- triangles ---- */

typedef struct Triangle {
    bool right, upper, transposed, unit;
    double alpha;
    bool multiply; /* by op(A), not by its inverse */
} Triangle;

/* C = alpha op(A) op(B) + beta C */
static tile_status add_product(const Solve *s, const TlLibMatrix *a, bool ta, const TlLibMatrix *b,
                               bool tb, double alpha, double beta, const TlLibMatrix *c)
{
    return tile_gemm_batched(
        s->kernels, s->stream, s->type, ta ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE,
        tb ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE, c->rows, c->columns, ta ? a->rows : a->columns,
        alpha, a->address, a->ld, a->stride, b->address, b->ld, b->stride, beta,
        (void *)(uintptr_t)c->address, c->ld, c->stride, s->batch, NULL);
}

static tile_status solve(const Solve *s, const TlLibMatrix *a, const TlLibMatrix *b, Triangle t);

/* The first of b's halves that is solved needs no other, and what follows from it for the second is
 * a product with the block beside the triangles. A product by op(A) goes the other way. */
static tile_status solve_halves(const Solve *s, const TlLibMatrix *a, const TlLibMatrix *b,
                                Triangle t)
{
    int64_t n = a->rows, h = (n / 2 + PANEL - 1) / PANEL * PANEL, end = n - h;
    bool from_top = (t.upper != t.transposed) == t.right;
    const TlLibMatrix a1 = part(s, a, 0, 0, h, h), a2 = part(s, a, h, h, end, end),
                      beside = t.upper ? part(s, a, 0, h, h, end) : part(s, a, h, 0, end, h),
                      b1 = part(s, b, 0, 0, t.right ? b->rows : h, t.right ? h : b->columns),
                      b2 = t.right ? part(s, b, 0, h, b->rows, end)
                                   : part(s, b, h, 0, end, b->columns),
                      *first_a = from_top ? &a1 : &a2, *first = from_top ? &b1 : &b2,
                      *other_a = from_top ? &a2 : &a1, *other = from_top ? &b2 : &b1;
    tile_status status = t.multiply ? solve(s, other_a, other, t) : solve(s, first_a, first, t);
    double by = t.multiply ? t.alpha : -1, beta = t.multiply ? 1 : t.alpha;
    if (status == TILE_OK)
        status = t.right ? add_product(s, first, false, &beside, t.transposed, by, beta, other)
                         : add_product(s, &beside, t.transposed, first, false, by, beta, other);
    if (status != TILE_OK || t.multiply)
        return status == TILE_OK ? solve(s, first_a, first, t) : status;
    t.alpha = 1;
    return solve(s, other_a, other, t);
}

/* B is one column, or on the right one row. */
static tile_status solve_one(const Solve *s, const TlLibMatrix *a, const TlLibMatrix *b, Triangle t)
{
    const int64_t x[] = {s->batch, a->rows}, strides[] = {b->stride, t.right ? 1 : b->ld};
    tile_arg args[5];
    tl_lib_put_matrix(&args[0], a, s->batch, s->type);
    tl_lib_put_view(&args[1], b->address, s->type, 2, x, strides);
    tl_lib_put_factor(&args[2], t.alpha, s->type);
    args[3] = tile_i32(t.upper);
    args[4] = tile_i32(t.unit);
    return launch(s, t.multiply ? TL_LIB_multiply_vector : TL_LIB_solve_vector,
                  t.transposed != t.right, 1, args, 5);
}

/* B = alpha op(A)^-1 B, or on the right alpha B op(A)^-1. The same of op(A). */
static tile_status solve(const Solve *s, const TlLibMatrix *a, const TlLibMatrix *b, Triangle t)
{
    bool exchanged = t.transposed != t.right, backwards = t.upper != exchanged;
    int64_t n = a->rows, last = backwards ? n - 1 : 0, sign = backwards ? -1 : 1;
    int64_t columns = t.right ? b->rows : b->columns;
    const int64_t l[] = {s->batch, n, n}, x[] = {s->batch, b->rows, b->columns};
    const int64_t l_strides[] = {a->stride, sign * (exchanged ? 1 : a->ld),
                                 sign * (exchanged ? a->ld : 1)};
    const int64_t x_strides[] = {b->stride, t.right ? b->ld : sign * b->ld, t.right ? sign : 1};
    if (!s->batch || !n || !columns)
        return TILE_OK;
    if (columns == 1)
        return solve_one(s, a, b, t);
    if (n > AT_ONCE)
        return solve_halves(s, a, b, t);
    tile_arg args[4];
    tl_lib_put_view(&args[0], element(s, a, last, last), s->type, 3, l, l_strides);
    tl_lib_put_view(&args[1], element(s, b, t.right ? 0 : last, t.right ? last : 0), s->type, 3, x,
                    x_strides);
    tl_lib_put_factor(&args[2], t.alpha, s->type);
    args[3] = tile_i32(t.unit);
    return launch(s, t.multiply ? TL_LIB_multiply_triangle : TL_LIB_solve_triangle, t.right,
                  columns, args, 4);
}

/* A vector with a negative increment is a column that runs backwards. */
static void turn_back(Solve *s)
{
    s->b.address = element(s, &s->b, s->b.rows ? s->b.rows - 1 : 0, 0);
    s->b.ld = -s->b.ld;
}

/* tile_trsm or, with `multiply`, tile_trmm; `backwards`: B is such a vector. */
static tile_status trsm(Solve *s, int side, int triangle, int transpose, int diagonal, int64_t M,
                        int64_t N, double alpha, bool multiply, bool backwards)
{
    const TlLibExtent extents[] = {{"M", M}, {"N", N}};
    tile_status status = tl_lib_check_choice(s->function, "side", side, "of tile_side");
    if (status == TILE_OK)
        status = tl_lib_check_choice(s->function, "triangle", triangle, "of tile_triangle");
    if (status == TILE_OK)
        status = tl_lib_check_choice(s->function, "transpose_a", transpose, "of tile_transpose");
    if (status == TILE_OK)
        status = tl_lib_check_choice(s->function, "diagonal", diagonal, "of tile_diagonal");
    s->a.rows = s->a.columns = side == TILE_RIGHT ? N : M;
    if (status == TILE_OK)
        status = check(s, extents);
    if (status != TILE_OK)
        return status;
    if (alpha == 0)
        return tile_gemm_batched(s->kernels, s->stream, s->type, TILE_NO_TRANSPOSE,
                                 TILE_NO_TRANSPOSE, M, N, 0, 0, NULL, 1, 0, NULL, N > 0 ? N : 1, 0,
                                 0, (void *)(uintptr_t)s->b.address, s->b.ld, s->b.stride,
                                 s->batch, NULL);
    if (backwards)
        turn_back(s);
    return solve(s, &s->a, &s->b,
                 (Triangle){side == TILE_RIGHT, triangle == TILE_UPPER, transpose == TILE_TRANSPOSE,
                            diagonal == TILE_UNIT, alpha, multiply});
}

tile_status tile_trsm(tile_kernels *kernels, tile_stream *stream, tile_dtype type, tile_side side,
                      tile_triangle triangle, tile_transpose transpose_a, tile_diagonal diagonal,
                      int64_t M, int64_t N, double alpha, const void *A, int64_t lda, void *B,
                      int64_t ldb)
{
    Solve s = {"tile_trsm", kernels, stream, type, 1, matrix_a(A, 0, 0, lda, 0),
               matrix_b(B, M, N, ldb, 0)};
    return trsm(&s, (int)side, (int)triangle, (int)transpose_a, (int)diagonal, M, N, alpha, false,
                false);
}

tile_status tile_trsm_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                              tile_side side, tile_triangle triangle, tile_transpose transpose_a,
                              tile_diagonal diagonal, int64_t M, int64_t N, double alpha,
                              const void *A, int64_t lda, int64_t stride_a, void *B, int64_t ldb,
                              int64_t stride_b, int64_t batch)
{
    Solve s = {"tile_trsm_batched", kernels, stream, type, batch,
               matrix_a(A, 0, 0, lda, stride_a), matrix_b(B, M, N, ldb, stride_b)};
    return trsm(&s, (int)side, (int)triangle, (int)transpose_a, (int)diagonal, M, N, alpha, false,
                false);
}

tile_status tile_trmm(tile_kernels *kernels, tile_stream *stream, tile_dtype type, tile_side side,
                      tile_triangle triangle, tile_transpose transpose_a, tile_diagonal diagonal,
                      int64_t M, int64_t N, double alpha, const void *A, int64_t lda, void *B,
                      int64_t ldb)
{
    Solve s = {"tile_trmm", kernels, stream, type, 1, matrix_a(A, 0, 0, lda, 0),
               matrix_b(B, M, N, ldb, 0)};
    return trsm(&s, (int)side, (int)triangle, (int)transpose_a, (int)diagonal, M, N, alpha, true,
                false);
}

tile_status tile_trmm_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                              tile_side side, tile_triangle triangle, tile_transpose transpose_a,
                              tile_diagonal diagonal, int64_t M, int64_t N, double alpha,
                              const void *A, int64_t lda, int64_t stride_a, void *B, int64_t ldb,
                              int64_t stride_b, int64_t batch)
{
    Solve s = {"tile_trmm_batched", kernels, stream, type, batch,
               matrix_a(A, 0, 0, lda, stride_a), matrix_b(B, M, N, ldb, stride_b)};
    return trsm(&s, (int)side, (int)triangle, (int)transpose_a, (int)diagonal, M, N, alpha, true,
                false);
}

/* Matrices of one column. */
static tile_status trsv(const char *function, tile_kernels *k, tile_stream *stream,
                        tile_dtype type, int triangle, int transpose, int diagonal, int64_t N,
                        const void *A, int64_t lda, void *x, int64_t incx, bool multiply)
{
    tile_status status = tl_lib_check_extent(function, "N", N);
    if (status == TILE_OK)
        status = tl_lib_check_increment(function, "incx", incx);
    if (status != TILE_OK)
        return status;
    Solve s = {function, k, stream, type, 1, matrix_a(A, 0, 0, lda, 0),
               {"x", "incx", "", x, N, 1, incx < 0 ? -incx : incx, 0}};
    return trsm(&s, TILE_LEFT, triangle, transpose, diagonal, N, 1, 1, multiply, incx < 0);
}

tile_status tile_trsv(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                      tile_triangle triangle, tile_transpose transpose_a, tile_diagonal diagonal,
                      int64_t N, const void *A, int64_t lda, void *x, int64_t incx)
{
    return trsv("tile_trsv", kernels, stream, type, (int)triangle, (int)transpose_a, (int)diagonal,
                N, A, lda, x, incx, false);
}

tile_status tile_trmv(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                      tile_triangle triangle, tile_transpose transpose_a, tile_diagonal diagonal,
                      int64_t N, const void *A, int64_t lda, void *x, int64_t incx)
{
    return trsv("tile_trmv", kernels, stream, type, (int)triangle, (int)transpose_a, (int)diagonal,
                N, A, lda, x, incx, true);
}

/* ---- Cholesky ---- */

static void put_info(tile_arg *to, const Solve *s, int32_t *info)
{
    const int64_t one = 1;
    tl_lib_put_view(to, info, TILE_I32, 1, &s->batch, &one);
}

/* The n rows and columns from j on, as a factor. */
static tile_status factor_diagonal(const Solve *s, bool upper, int64_t j, int64_t n, int32_t *info)
{
    TlLibMatrix block = part(s, &s->a, j, j, n, n);
    TlLibMatrix done = upper ? part(s, &s->a, 0, j, j, n) : part(s, &s->a, j, 0, n, j);
    tile_arg args[3];
    tl_lib_put_matrix(&args[0], &block, s->batch, s->type);
    tl_lib_put_matrix(&args[1], &done, s->batch, s->type);
    put_info(&args[2], s, info);
    return launch(s, TL_LIB_factor_cholesky, upper, n, args, 3);
}

/* The panel below the block, L = A L^-T with the L of the block, or right of it U = U^-T A, of
 * what is left without the products of what is done. */
static tile_status factor_panel(const Solve *s, bool upper, int64_t j, int64_t n)
{
    const TlLibMatrix *a = &s->a;
    int64_t end = j + n, rest = a->rows - end;
    TlLibMatrix block = part(s, a, j, j, n, n), panel, done, beside;
    tile_status status = TILE_OK;
    if (rest <= 0)
        return status;
    if (upper) {
        panel = part(s, a, j, end, n, rest);
        done = part(s, a, 0, j, j, n);
        beside = part(s, a, 0, end, j, rest);
        status = j ? add_product(s, &done, true, &beside, false, -1, 1, &panel) : status;
    } else {
        panel = part(s, a, end, j, rest, n);
        done = part(s, a, j, 0, n, j);
        beside = part(s, a, end, 0, rest, j);
        status = j ? add_product(s, &beside, false, &done, true, -1, 1, &panel) : status;
    }
    if (status != TILE_OK)
        return status;
    return solve(s, &block, &panel,
                 (Triangle){.right = !upper, .upper = upper, .transposed = true, .alpha = 1});
}

tile_status tile_potrf_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_triangle triangle, int64_t N, void *A, int64_t lda,
                               int64_t stride_a, int32_t *info, int64_t batch)
{
    Solve s = {"tile_potrf", kernels, stream, type, batch, matrix_a(A, N, N, lda, stride_a),
               {.name = NULL}};
    const TlLibExtent extents[] = {{"N", N}, {"N", N}};
    bool upper = triangle == TILE_UPPER;
    tile_status status =
        tl_lib_check_choice(s.function, "triangle", (int)triangle, "of tile_triangle");
    if (status == TILE_OK)
        status = check(&s, extents);
    if (status == TILE_OK)
        status = tl_lib_check_given(s.function, "info", info, batch);
    int64_t j = 0;
    do {
        int64_t n = least(N - j, PANEL);
        if (status == TILE_OK && batch)
            status = factor_diagonal(&s, upper, j, n, info);
        if (status == TILE_OK)
            status = factor_panel(&s, upper, j, n);
    } while (status == TILE_OK && (j += PANEL) < N);
    return status;
}

tile_status tile_potrf(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                       tile_triangle triangle, int64_t N, void *A, int64_t lda, int32_t *info)
{
    return tile_potrf_batched(kernels, stream, type, triangle, N, A, lda, 0, info, 1);
}

tile_status tile_potrs_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_triangle triangle, int64_t N, int64_t K, const void *A,
                               int64_t lda, int64_t stride_a, void *B, int64_t ldb,
                               int64_t stride_b, int64_t batch)
{
    Solve s = {"tile_potrs", kernels, stream, type, batch, matrix_a(A, N, N, lda, stride_a),
               matrix_b(B, N, K, ldb, stride_b)};
    const TlLibExtent extents[] = {{"N", N}, {"K", K}};
    bool upper = triangle == TILE_UPPER;
    tile_status status =
        tl_lib_check_choice(s.function, "triangle", (int)triangle, "of tile_triangle");
    if (status == TILE_OK)
        status = check(&s, extents);
    if (status == TILE_OK)
        status = solve(&s, &s.a, &s.b, (Triangle){.upper = upper, .transposed = upper, .alpha = 1});
    if (status == TILE_OK)
        status = solve(&s, &s.a, &s.b,
                       (Triangle){.upper = upper, .transposed = !upper, .alpha = 1});
    return status;
}

tile_status tile_potrs(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                       tile_triangle triangle, int64_t N, int64_t K, const void *A, int64_t lda,
                       void *B, int64_t ldb)
{
    return tile_potrs_batched(kernels, stream, type, triangle, N, K, A, lda, 0, B, ldb, 0, 1);
}

/* ---- LU ---- */

/* n pivots from the one of row j on, of matrices that have `stride` each. */
static void put_pivots(tile_arg *to, const Solve *s, const int32_t *pivots, int64_t stride,
                       int64_t j, int64_t n)
{
    const int64_t extents[] = {s->batch, n}, strides[] = {stride, 1};
    tl_lib_put_view(to, pivots + j, TILE_I32, 2, extents, strides);
}

/* Exchanges rows of m, whose first one is row j of the pivots. */
static tile_status swap_rows(const Solve *s, const TlLibMatrix *m, const int32_t *pivots,
                             int64_t stride, int64_t j, int64_t n, bool backwards)
{
    tile_arg args[4];
    if (!s->batch || !n || !m->columns)
        return TILE_OK;
    tl_lib_put_matrix(&args[0], m, s->batch, s->type);
    put_pivots(&args[1], s, pivots, stride, j, n);
    args[2] = tile_i32((int32_t)j);
    args[3] = tile_i32(backwards);
    return launch(s, TL_LIB_swap_rows, 0, m->columns, args, 4);
}

/* How many of the batch's panels are factored a matrix to a lane: whole groups of as many as there
 * are columns, if a group stays in the cache. */
static int64_t count_abreast(const Solve *s, const TlLibMatrix *panel)
{
    enum { MOST = 65536 }; /* elements of a group */
    int64_t rows = panel->rows, columns = panel->columns;
    TlLibCall call = {.images = tl_lib_solve_images,
                      .kernel = TL_LIB_factor_abreast,
                      .type = s->type,
                      .sizes = {columns}};
    if (columns < 2 || rows < columns || s->batch < columns || !tl_lib_fits(s->kernels, &call) ||
        rows > MOST / (columns * columns))
        return 0;
    return s->batch / columns * columns;
}

/* Matrices `from` to `to` of the batch. */
static tile_status factor_some(const Solve *all, TlLibKernel kernel, TlLibMatrix panel,
                               int32_t *pivots, int64_t stride, int64_t j, int32_t *info,
                               int64_t from, int64_t to)
{
    Solve s = *all;
    tile_arg args[4];
    if (from == to)
        return TILE_OK;
    s.batch = to - from;
    panel.address = (const char *)panel.address + from * panel.stride * tile_dtype_bits(s.type) / 8;
    tl_lib_put_matrix(&args[0], &panel, s.batch, s.type);
    put_pivots(&args[1], &s, pivots + from * stride, stride, j, least(panel.rows, panel.columns));
    put_info(&args[2], &s, info + from);
    args[3] = tile_i32((int32_t)j);
    return launch(&s, kernel, 0, panel.columns, args, 4);
}

static tile_status factor_columns(const Solve *s, const TlLibMatrix *panel, int32_t *pivots,
                                  int64_t stride, int64_t j, int32_t *info)
{
    int64_t abreast = count_abreast(s, panel);
    tile_status status =
        factor_some(s, TL_LIB_factor_abreast, *panel, pivots, stride, j, info, 0, abreast);
    if (status != TILE_OK)
        return status;
    return factor_some(s, TL_LIB_factor_columns, *panel, pivots, stride, j, info, abreast,
                       s->batch);
}

/* What is right of the panel of n columns from j on, and below: the rows of U, and the rest less
 * the product of L and U. */
static tile_status update_rest(const Solve *s, int64_t j, int64_t n)
{
    const TlLibMatrix *a = &s->a;
    int64_t end = j + n, rows = a->rows - end, columns = a->columns - end;
    TlLibMatrix l = part(s, a, j, j, n, n), u = part(s, a, j, end, n, columns),
                below = part(s, a, end, j, rows, n), rest = part(s, a, end, end, rows, columns);
    if (!n || columns <= 0)
        return TILE_OK;
    tile_status status = solve(s, &l, &u, (Triangle){.unit = true, .alpha = 1});
    if (status != TILE_OK || rows <= 0)
        return status;
    return add_product(s, &below, false, &u, false, -1, 1, &rest);
}

/* The n columns from j on: factors, exchanges, and what follows for the rest. */
static tile_status factor_step(const Solve *s, int64_t j, int64_t n, int32_t *pivots,
                               int64_t stride, int32_t *info)
{
    const TlLibMatrix *a = &s->a;
    int64_t rows = a->rows - j, end = j + n, steps = least(rows, n);
    TlLibMatrix panel = part(s, a, j, j, rows, n), left = part(s, a, j, 0, rows, j),
                right = part(s, a, j, end, rows, a->columns - end);
    tile_status status = factor_columns(s, &panel, pivots, stride, j, info);
    if (status == TILE_OK)
        status = swap_rows(s, &left, pivots, stride, j, steps, false);
    if (status == TILE_OK)
        status = swap_rows(s, &right, pivots, stride, j, steps, false);
    return status == TILE_OK ? update_rest(s, j, n) : status;
}

tile_status tile_getrf_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t M, int64_t N, void *A, int64_t lda, int64_t stride_a,
                               int32_t *pivots, int32_t *info, int64_t batch)
{
    Solve s = {"tile_getrf", kernels, stream, type, batch, matrix_a(A, M, N, lda, stride_a),
               {.name = NULL}};
    const TlLibExtent extents[] = {{"M", M}, {"N", N}};
    int64_t steps = least(M, N), j = 0;
    tile_status status = check(&s, extents);
    if (status == TILE_OK)
        status = tl_lib_check_given(s.function, "pivots", pivots, batch && steps);
    if (status == TILE_OK)
        status = tl_lib_check_given(s.function, "info", info, batch);
    /* the columns right of a wide matrix's last panel are done with it */
    do
        if (status == TILE_OK && batch)
            status = factor_step(&s, j, least(steps - j, PANEL), pivots, steps, info);
    while (status == TILE_OK && (j += PANEL) < steps);
    return status;
}

tile_status tile_getrf(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                       int64_t N, void *A, int64_t lda, int32_t *pivots, int32_t *info)
{
    return tile_getrf_batched(kernels, stream, type, M, N, A, lda, 0, pivots, info, 1);
}

tile_status tile_getrs_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_transpose transpose_a, int64_t N, int64_t K, const void *A,
                               int64_t lda, int64_t stride_a, const int32_t *pivots, void *B,
                               int64_t ldb, int64_t stride_b, int64_t batch)
{
    Solve s = {"tile_getrs", kernels, stream, type, batch, matrix_a(A, N, N, lda, stride_a),
               matrix_b(B, N, K, ldb, stride_b)};
    const TlLibExtent extents[] = {{"N", N}, {"K", K}};
    bool transposed = transpose_a == TILE_TRANSPOSE;
    const Triangle l = {.transposed = transposed, .unit = true, .alpha = 1},
                   u = {.upper = true, .transposed = transposed, .alpha = 1};
    tile_status status = tl_lib_check_choice(s.function, "transpose_a", (int)transpose_a,
                                      "of tile_transpose");
    if (status == TILE_OK)
        status = check(&s, extents);
    if (status == TILE_OK)
        status = tl_lib_check_given(s.function, "pivots", pivots, batch && N);
    if (status == TILE_OK && !transposed)
        status = swap_rows(&s, &s.b, pivots, N, 0, N, false);
    if (status == TILE_OK)
        status = solve(&s, &s.a, &s.b, transposed ? u : l);
    if (status == TILE_OK)
        status = solve(&s, &s.a, &s.b, transposed ? l : u);
    if (status == TILE_OK && transposed)
        status = swap_rows(&s, &s.b, pivots, N, 0, N, true);
    return status;
}

tile_status tile_getrs(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                       tile_transpose transpose_a, int64_t N, int64_t K, const void *A,
                       int64_t lda, const int32_t *pivots, void *B, int64_t ldb)
{
    return tile_getrs_batched(kernels, stream, type, transpose_a, N, K, A, lda, 0, pivots, B, ldb,
                              0, 1);
}
