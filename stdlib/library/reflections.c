/* reflections.c: tile_geqrf, tile_ormqr.
 *
 * Panels of columns, each a product of reflections (factor_reflections), which for all that is not
 * in the panel are one, Q = I - V T V^T (join_reflections):
 *     1. V with its ones and zeros, and T, into the workspace
 *     2. W = V^T C    3. op(T) W    4. C less V times that: products of tile_gemm_batched
 * tile_geqrf does so with Q^T after each panel to the columns right of it; tile_ormqr to C, with
 * Q^T from the first panel to the last, with Q backwards. Few columns of C go one by one, without V
 * and T (apply_reflections). */
#include "stdlib/library/library.h"

/* Columns of a panel: those that the tiles of choices.def hold. */
enum { PANEL = 32 };

typedef struct Reflections {
    const char *function;
    tile_kernels *kernels;
    tile_stream *stream;
    tile_dtype type;
    int64_t batch, steps; /* steps: reflections of a matrix */
    TlLibMatrix a, c;
    const void *tau;
    void *workspace;
} Reflections;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Numbers of the workspace: V, T, W, T W for `columns` of C. */
static int64_t room_of(int64_t rows, int64_t steps, int64_t columns, int64_t batch)
{
    int64_t p = least(steps, PANEL);
    return columns > 0 ? batch * p * (rows + p + 2 * columns) : 0;
}

static size_t bytes_of(tile_dtype type, int64_t numbers)
{
    return (size_t)numbers * tile_dtype_bits(type) / 8;
}

/* ---- checks ---- */

static tile_status check(const Reflections *q, const TlLibExtent *extents, int n)
{
    tile_status status = tl_lib_check_matrices(q->function, q->kernels, q->type, extents, n, &q->a,
                                               &q->c, q->batch);
    return status == TILE_OK
               ? tl_lib_check_given(q->function, "tau", q->tau, q->batch * q->steps)
               : status;
}

/* ---- launches ---- */

static tile_status launch(const Reflections *q, TlLibKernel kernel, int64_t size,
                          const tile_arg *args, size_t nargs)
{
    TlLibCall call = {.function = q->function, .images = tl_lib_reflections_images,
                      .kernel = kernel, .type = q->type, .sizes = {size}, .batch = q->batch};
    return tl_lib_launch(q->kernels, q->stream, &call, args, nargs);
}

static void put_tau(tile_arg *to, const Reflections *q, int64_t j, int64_t n)
{
    const int64_t extents[] = {q->batch, n}, strides[] = {q->steps, 1};
    tl_lib_put_view(to, (const char *)q->tau + bytes_of(q->type, j), q->type, 2, extents, strides);
}

static tile_status factor_panel(const Reflections *q, int64_t j, int64_t n)
{
    TlLibMatrix panel = tl_lib_part(&q->a, q->type, j, j, q->a.rows - j, n);
    tile_arg args[2];
    tl_lib_put_matrix(&args[0], &panel, q->batch, q->type);
    put_tau(&args[1], q, j, n);
    return launch(q, TL_LIB_factor_reflections, n, args, 2);
}

/* A dense matrix of the workspace, which begins behind *numbers others. */
static TlLibMatrix matrix_of(const Reflections *q, int64_t *numbers, int64_t rows, int64_t columns)
{
    TlLibMatrix m = {"workspace", "", "", (char *)q->workspace + bytes_of(q->type, *numbers), rows,
                     columns, columns, rows * columns};
    *numbers += q->batch * m.stride;
    return m;
}

/* c += alpha op(a) b, or without `add` c = that. */
static tile_status multiply(const Reflections *q, bool transposed, double alpha,
                            const TlLibMatrix *a, const TlLibMatrix *b, bool add,
                            const TlLibMatrix *c)
{
    return tile_gemm_batched(q->kernels, q->stream, q->type,
                             transposed ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE, TILE_NO_TRANSPOSE,
                             c->rows, c->columns, b->rows, alpha, a->address, a->ld, a->stride,
                             b->address, b->ld, b->stride, add, (void *)(uintptr_t)c->address,
                             c->ld, c->stride, q->batch, NULL);
}

/* c, whose rows are those of A from j on, = op(Q) c with the n reflections of columns j and on. */
static tile_status reflect(const Reflections *q, int64_t j, int64_t n, bool transposed,
                           const TlLibMatrix *c)
{
    int64_t at = 0;
    const TlLibMatrix panel = tl_lib_part(&q->a, q->type, j, j, q->a.rows - j, n),
                      v = matrix_of(q, &at, panel.rows, n), t = matrix_of(q, &at, n, n),
                      w = matrix_of(q, &at, n, c->columns),
                      tw = matrix_of(q, &at, n, c->columns);
    tile_arg args[4];
    tl_lib_put_matrix(&args[0], &panel, q->batch, q->type);
    put_tau(&args[1], q, j, n);
    tl_lib_put_matrix(&args[2], &v, q->batch, q->type);
    tl_lib_put_matrix(&args[3], &t, q->batch, q->type);
    tile_status status = launch(q, TL_LIB_join_reflections, n, args, 4);
    if (status == TILE_OK)
        status = multiply(q, true, 1, &v, c, false, &w);
    if (status == TILE_OK)
        status = multiply(q, transposed, 1, &t, &w, false, &tw);
    return status == TILE_OK ? multiply(q, false, -1, &v, &tw, true, c) : status;
}

/* All reflections for few columns of C, in one launch. */
static tile_status apply(const Reflections *q, const TlLibCall *call, bool transposed)
{
    tile_arg args[4];
    tl_lib_put_matrix(&args[0], &q->a, q->batch, q->type);
    put_tau(&args[1], q, 0, q->steps);
    tl_lib_put_matrix(&args[2], &q->c, q->batch, q->type);
    args[3] = tile_i32(transposed);
    return tl_lib_launch(q->kernels, q->stream, call, args, 4);
}

/* ---- the factors ---- */

static bool is_query(tile_dtype type, int64_t a, int64_t b, int64_t c, int64_t batch)
{
    const int64_t all[] = {a, b, c, batch};
    for (int i = 0; i < 4; i++)
        if (all[i] < 1 || all[i] > INT32_MAX)
            return false;
    return (type == TILE_F32 || type == TILE_F64) && batch * PANEL < INT32_MAX;
}

size_t tile_geqrf_workspace(tile_dtype type, int64_t M, int64_t N, int64_t batch)
{
    return is_query(type, M, N, 1, batch)
               ? bytes_of(type, room_of(M, least(M, N), N - least(least(M, N), PANEL), batch))
               : 0;
}

tile_status tile_geqrf_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t M, int64_t N, void *A, int64_t lda, int64_t stride_a,
                               void *tau, void *workspace, int64_t batch)
{
    const Reflections q = {"tile_geqrf", kernels, stream, type, batch, least(M, N),
                           {"A", "lda", "stride_a", A, M, N, lda, stride_a}, {.name = NULL}, tau,
                           workspace};
    const TlLibExtent extents[] = {{"M", M}, {"N", N}};
    tile_status status = check(&q, extents, 2);
    if (status == TILE_OK)
        status = tl_lib_check_given(q.function, "workspace", workspace,
                                    tile_geqrf_workspace(type, M, N, batch) > 0);
    for (int64_t j = 0; j < q.steps && batch && status == TILE_OK; j += PANEL) {
        int64_t n = least(q.steps - j, PANEL), end = j + n;
        TlLibMatrix rest = tl_lib_part(&q.a, type, j, end, M - j, N - end);
        status = factor_panel(&q, j, n);
        if (status == TILE_OK && rest.columns)
            status = reflect(&q, j, n, true, &rest);
    }
    return status;
}

tile_status tile_geqrf(tile_kernels *kernels, tile_stream *stream, tile_dtype type, int64_t M,
                       int64_t N, void *A, int64_t lda, void *tau, void *workspace)
{
    return tile_geqrf_batched(kernels, stream, type, M, N, A, lda, 0, tau, workspace, 1);
}

size_t tile_ormqr_workspace(tile_dtype type, int64_t M, int64_t N, int64_t K, int64_t batch)
{
    return is_query(type, M, N, K, batch) ? bytes_of(type, room_of(M, K, N, batch)) : 0;
}

tile_status tile_ormqr_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_transpose transpose_q, int64_t M, int64_t N, int64_t K,
                               const void *A, int64_t lda, int64_t stride_a, const void *tau,
                               void *C, int64_t ldc, int64_t stride_c, void *workspace,
                               int64_t batch)
{
    const Reflections q = {"tile_ormqr", kernels, stream, type, batch, K,
                           {"A", "lda", "stride_a", A, M, K, lda, stride_a},
                           {"C", "ldc", "stride_c", C, M, N, ldc, stride_c}, tau, workspace};
    const TlLibExtent extents[] = {{"M", M}, {"N", N}, {"K", K}};
    bool transposed = transpose_q == TILE_TRANSPOSE;
    tile_status status = tl_lib_check_choice(q.function, "transpose_q", (int)transpose_q,
                                             "of tile_transpose");
    if (status == TILE_OK && K > M)
        status = tl_lib_wrong(q.function, "K", K, "M or less");
    if (status == TILE_OK)
        status = check(&q, extents, 3);
    if (status == TILE_OK)
        status = tl_lib_check_given(q.function, "workspace", workspace,
                                    tile_ormqr_workspace(type, M, N, K, batch) > 0);
    if (status != TILE_OK || !K || !N || !batch)
        return status;
    const TlLibCall few = {.function = q.function,
                           .images = tl_lib_reflections_images,
                           .kernel = TL_LIB_apply_reflections,
                           .type = type,
                           .sizes = {N},
                           .batch = batch};
    if (tl_lib_fits(kernels, &few))
        return apply(&q, &few, transposed);
    int64_t panels = (K + PANEL - 1) / PANEL;
    for (int64_t i = 0; i < panels && status == TILE_OK; i++) {
        int64_t j = (transposed ? i : panels - 1 - i) * PANEL;
        TlLibMatrix rows = tl_lib_part(&q.c, type, j, 0, M - j, N);
        status = reflect(&q, j, least(K - j, PANEL), transposed, &rows);
    }
    return status;
}

tile_status tile_ormqr(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                       tile_transpose transpose_q, int64_t M, int64_t N, int64_t K, const void *A,
                       int64_t lda, const void *tau, void *C, int64_t ldc, void *workspace)
{
    return tile_ormqr_batched(kernels, stream, type, transpose_q, M, N, K, A, lda, 0, tau, C, ldc,
                              0, workspace, 1);
}
