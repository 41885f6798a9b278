/* symmetric.c: products with a symmetric matrix, of which one triangle is there: tile_syrk, which
 * makes one, tile_symm, tile_symv. Matrices of many rows go by halves: what is beside the two
 * symmetric ones is a matrix like any other, and its products are those of tile_gemm. */
#include "stdlib/library/library.h"

/* Rows of a symmetric matrix that one kernel does. */
enum { AT_ONCE = 256, BLOCK = 64 };

typedef struct Symmetric {
    const char *function;
    tile_kernels *kernels;
    tile_stream *stream;
    tile_dtype type;
    double alpha, beta;
    TlLibMatrix a, b, c; /* b.name: NULL where there is none */
    int triangle;
} Symmetric;

static TlLibMatrix matrix(const char *name, const char *ld_name, const void *address, int64_t rows,
                          int64_t columns, int64_t ld)
{
    return (TlLibMatrix){name, ld_name, "", address, rows, columns, ld, 0};
}

/* `extents`: two. */
static tile_status check(const Symmetric *s, const TlLibExtent *extents)
{
    if (!s->kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", s->function);
    tile_status status = tl_lib_check_real(s->function, s->type);
    if (status == TILE_OK)
        status = tl_lib_check_choice(s->function, "triangle", s->triangle, "of tile_triangle");
    if (status == TILE_OK)
        status = tl_lib_check_extents(s->function, extents, 2);
    const TlLibMatrix *const all[] = {&s->a, &s->b, &s->c};
    for (int i = 0; i < 3 && status == TILE_OK; i++)
        if (all[i]->name && (i == 2 || s->alpha != 0))
            status = tl_lib_check_matrix(s->function, all[i], 1);
    return status;
}

static TlLibCall call_of(const Symmetric *s, TlLibKernel kernel, int form, int64_t a, int64_t b,
                         int64_t c)
{
    return (TlLibCall){.function = s->function,
                       .images = tl_lib_symmetric_images,
                       .kernel = kernel,
                       .type = s->type,
                       .form = form,
                       .sizes = {a, b, c},
                       .batch = 1};
}

static tile_status launch(const Symmetric *s, TlLibKernel kernel, int form, int64_t a, int64_t b,
                          int64_t c, tile_arg *args, size_t nargs)
{
    TlLibCall call = call_of(s, kernel, form, a, b, c);
    tl_lib_put_factor(&args[nargs++], s->alpha, s->type);
    tl_lib_put_factor(&args[nargs++], s->beta, s->type);
    tl_lib_put_bits(&args[nargs++], TILE_I32, s->triangle == TILE_UPPER);
    return tl_lib_launch(s->kernels, s->stream, &call, args, nargs);
}

/* C = beta C */
static tile_status scale(const Symmetric *s)
{
    return tile_gemm(s->kernels, s->stream, s->type, TILE_NO_TRANSPOSE, TILE_NO_TRANSPOSE,
                     s->c.rows, s->c.columns, 0, 0, NULL, 1, NULL,
                     s->c.columns ? s->c.columns : 1, s->beta, (void *)(uintptr_t)s->c.address,
                     s->c.ld, NULL);
}

tile_status tile_syrk(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                      tile_triangle triangle, tile_transpose transpose_a, int64_t N, int64_t K,
                      double alpha, const void *A, int64_t lda, double beta, void *C, int64_t ldc)
{
    bool ta = transpose_a == TILE_TRANSPOSE;
    Symmetric s = {.function = "tile_syrk", .kernels = kernels, .stream = stream, .type = type,
                   .alpha = alpha, .beta = beta, .triangle = (int)triangle,
                   .a = matrix("A", "lda", A, ta ? K : N, ta ? N : K, lda),
                   .c = matrix("C", "ldc", C, N, N, ldc)};
    tile_status status = tl_lib_check_choice(s.function, "transpose_a", (int)transpose_a,
                                             "of tile_transpose");
    if (status == TILE_OK)
        status = check(&s, (TlLibExtent[]){{"N", N}, {"K", K}});
    if (status != TILE_OK || !N)
        return status;
    if (alpha == 0) {
        s.a.rows = ta ? 0 : N;
        s.a.columns = ta ? N : 0;
    }
    tile_arg args[5];
    tl_lib_put_matrix(&args[0], &s.a, 1, type);
    tl_lib_put_matrix(&args[1], &s.c, 1, type);
    return launch(&s, TL_LIB_syrk, ta, N, 0, 0, args, 2);
}

/* c += alpha op(a) op(b) */
static tile_status add_product(const Symmetric *s, const TlLibMatrix *a, bool ta,
                               const TlLibMatrix *b, bool tb, const TlLibMatrix *c)
{
    return tile_gemm(s->kernels, s->stream, s->type, ta ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE,
                     tb ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE, c->rows, c->columns,
                     ta ? a->rows : a->columns, s->alpha, a->address, a->ld, b->address, b->ld, 1,
                     (void *)(uintptr_t)c->address, c->ld, NULL);
}

/* c = alpha a b + beta c, or on the right alpha b a + beta c. */
static tile_status symm(const Symmetric *s, const TlLibMatrix *a, const TlLibMatrix *b,
                        const TlLibMatrix *c, bool right)
{
    int64_t n = a->rows, h = (n / 2 + BLOCK - 1) / BLOCK * BLOCK, end = n - h;
    if (n <= AT_ONCE) {
        tile_arg args[6];
        tl_lib_put_single(&args[0], a, s->type);
        tl_lib_put_single(&args[1], b, s->type);
        tl_lib_put_single(&args[2], c, s->type);
        return launch(s, TL_LIB_symm, right, c->rows, c->columns, n, args, 3);
    }
    bool upper = s->triangle == TILE_UPPER;
    int64_t rows = c->rows, columns = c->columns;
    const TlLibMatrix a1 = tl_lib_part(a, s->type, 0, 0, h, h),
                      a2 = tl_lib_part(a, s->type, h, h, end, end),
                      beside = upper ? tl_lib_part(a, s->type, 0, h, h, end)
                                     : tl_lib_part(a, s->type, h, 0, end, h),
                      *const full[] = {b, c};
    TlLibMatrix first[2], last[2]; /* of b, of c */
    for (int i = 0; i < 2; i++) {
        first[i] = tl_lib_part(full[i], s->type, 0, 0, right ? rows : h, right ? h : columns);
        last[i] = tl_lib_part(full[i], s->type, right ? 0 : h, right ? h : 0, right ? rows : end,
                              right ? end : columns);
    }
    tile_status status = symm(s, &a1, &first[0], &first[1], right);
    if (status == TILE_OK)
        status = symm(s, &a2, &last[0], &last[1], right);
    if (status == TILE_OK)
        status = right ? add_product(s, &last[0], false, &beside, upper, &first[1])
                       : add_product(s, &beside, !upper, &last[0], false, &first[1]);
    if (status != TILE_OK)
        return status;
    return right ? add_product(s, &first[0], false, &beside, !upper, &last[1])
                 : add_product(s, &beside, upper, &first[0], false, &last[1]);
}

tile_status tile_symm(tile_kernels *kernels, tile_stream *stream, tile_dtype type, tile_side side,
                      tile_triangle triangle, int64_t M, int64_t N, double alpha, const void *A,
                      int64_t lda, const void *B, int64_t ldb, double beta, void *C, int64_t ldc)
{
    int64_t n = side == TILE_RIGHT ? N : M;
    Symmetric s = {.function = "tile_symm", .kernels = kernels, .stream = stream, .type = type,
                   .alpha = alpha, .beta = beta, .triangle = (int)triangle,
                   .a = matrix("A", "lda", A, n, n, lda), .b = matrix("B", "ldb", B, M, N, ldb),
                   .c = matrix("C", "ldc", C, M, N, ldc)};
    tile_status status = tl_lib_check_choice(s.function, "side", (int)side, "of tile_side");
    if (status == TILE_OK)
        status = check(&s, (TlLibExtent[]){{"M", M}, {"N", N}});
    if (status != TILE_OK || !M || !N)
        return status;
    if (alpha == 0)
        return scale(&s);
    return symm(&s, &s.a, &s.b, &s.c, side == TILE_RIGHT);
}

/* What is no increment is found later. */
static int64_t distance(int64_t increment)
{
    return increment < 0 && increment != INT64_MIN ? -increment : increment;
}

/* symv_once reads the triangle once, in one program; symv does twice the work, in the time of
 * `slower` elements of the former for each, on as many processors as there are blocks of rows. Of
 * 256 to 2000 rows on one thread of a Zen 4: 1.6 to 2.3 in f32, 2.9 to 4.9 in f64 (2026-11-30). */
static bool is_read_once(const Symmetric *s, int64_t N)
{
    enum { ROWS = 16, WAKE = 100000 }; /* WAKE: elements in the time that starts other processors */
    const TlLibCall once = call_of(s, TL_LIB_symv_once, 0, N, 0, 0);
    int64_t processors = tl_lib_processors(s->kernels), blocks = (N + ROWS - 1) / ROWS;
    double slower = s->type == TILE_F64 ? 4 : 2.2, all = (double)N * (double)N;
    if (!tl_lib_fits(s->kernels, &once))
        return false;
    return all <= all * slower / (double)(processors < blocks ? processors : blocks) + WAKE;
}

tile_status tile_symv(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                      tile_triangle triangle, int64_t N, double alpha, const void *A, int64_t lda,
                      const void *x, int64_t incx, double beta, void *y, int64_t incy)
{
    Symmetric s = {.function = "tile_symv", .kernels = kernels, .stream = stream, .type = type,
                   .alpha = alpha, .beta = beta, .triangle = (int)triangle,
                   .a = matrix("A", "lda", A, N, N, lda),
                   .b = matrix("x", "incx", x, N, 1, distance(incx)),
                   .c = matrix("y", "incy", y, N, 1, distance(incy))};
    tile_status status = tl_lib_check_increment(s.function, "incx", incx);
    if (status == TILE_OK)
        status = tl_lib_check_increment(s.function, "incy", incy);
    if (status == TILE_OK)
        status = check(&s, (TlLibExtent[]){{"N", N}, {"N", N}});
    if (status != TILE_OK || !N)
        return status;
    if (alpha == 0)
        return scale(&s);
    tile_arg args[6];
    tl_lib_put_single(&args[0], &s.a, type);
    tl_lib_put_vector(&args[1], x, type, N, incx);
    tl_lib_put_vector(&args[2], y, type, N, incy);
    return launch(&s, is_read_once(&s, N) ? TL_LIB_symv_once : TL_LIB_symv, 0, N, 0, 0, args, 3);
}
