/* tile_kernels.h: kernels without a compiler (libtilekernels). Products of matrices, softmax,
 * norms, attention, rotary positions, systems of equations as functions that one calls, compiled
 * ahead of time from stdlib/kernels for several CPUs. C11, clean C++.
 *
 *     tile_kernels *k;
 *     if (tile_kernels_open(NULL, &k) ||
 *         tile_gemm(k, NULL, TILE_F32, TILE_NO_TRANSPOSE, TILE_TRANSPOSE, M, N, K,
 *                   1, A, K, B, K, 0, C, N, NULL) ||
 *         tile_stream_synchronize(NULL))
 *         puts(tile_last_error());
 *     tile_kernels_close(k);
 *
 * The rules are those of tile.h: statuses, tile_last_error, streams, structs with a struct_size.
 * Beyond them:
 *
 * Arrays are row-major: element (i, j) of a matrix with the leading dimension ld is at i * ld + j.
 * Extents come in the order M, N, K, leading dimensions and strides in elements. Addresses are the
 * device's (tile_buffer_ptr); on devices with host_memory any address of the process will do.
 *
 * Arguments are checked before anything runs. TILE_BAD_ARGUMENT leaves all arrays as they were, and
 * the text names the function, the argument and its value. Arrays without elements may be NULL. An
 * output must not overlap an input or another output.
 *
 * A call starts its work on the stream and returns (but see the default stream of tile.h). It
 * allocates nothing and compiles nothing; a first call of its kind loads code, which
 * tile_kernels_prepare does ahead of time. Scalars and structs are read before it returns.
 *
 * Same arguments, same bits: all functions are deterministic on one kind of CPU or GPU, whatever
 * the number of threads, unless they say otherwise. Calls with different streams may be made from
 * different threads at the same time, with the same tile_kernels.
 *
 * stdlib/library/README.md has the formulas, what is built, and how to build more. */
#ifndef TILE_KERNELS_H
#define TILE_KERNELS_H
#include <tile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the library on a device ---- */

typedef struct tile_kernels tile_kernels;

/* The functions below for a device (NULL: the default one), which must stay open until after
 * tile_kernels_close. TILE_UNAVAILABLE: this build has no kernels for such a device; the text lists
 * what it was built for. */
TILE_0_1 tile_status tile_kernels_open(tile_device *device, tile_kernels **out_kernels);
/* No call may be running, and the streams that were used must be empty. */
TILE_0_1 void tile_kernels_close(tile_kernels *kernels);
/* Loads the code of all functions: no later call allocates memory or takes a lock. */
TILE_0_1 tile_status tile_kernels_prepare(tile_kernels *kernels);

/* ---- products ---- */

typedef enum tile_transpose { TILE_NO_TRANSPOSE, TILE_TRANSPOSE } tile_transpose;

typedef enum tile_activation {
    TILE_IDENTITY,
    TILE_RELU,
    TILE_GELU,      /* by erf */
    TILE_GELU_TANH, /* the approximation by tanh */
    TILE_SILU       /* x / (1 + e^-x) */
} tile_activation;

/* What a product does beyond BLAS. */
typedef struct tile_gemm_options {
    size_t struct_size;
    const void *bias; /* N elements of C's type, one a column; NULL: none */
    tile_activation activation;
} tile_gemm_options;
#define TILE_GEMM_OPTIONS_INIT TILE_INIT_(tile_gemm_options)

/* C = activation(alpha op(A) op(B) + beta C + bias), op(A) being M x K, op(B) K x N, C M x N.
 *
 * `type` is that of A and B. TILE_F32, TILE_F16, TILE_BF16: C has the same type; alpha, beta and
 * the sums are f32. TILE_F64: all are f64. TILE_I8: C is i32, alpha and beta must be integers, and
 * sums wrap. Each element is rounded once, at the end.
 * op(X) is X, or with TILE_TRANSPOSE the transpose of the array: A is then stored as K x M with
 * lda >= M, else M x K with lda >= K; likewise B, as N x K or K x N. ldc >= N.
 * As in BLAS, C is not read if beta is 0, and A and B are not if alpha or K is 0. If M or N is 0,
 * nothing is done. options: NULL for none. The activations from TILE_GELU on are for types whose
 * sums are f32.
 * TILE_BAD_ARGUMENT: an extent is negative or above 2^31 - 1, a leading dimension too small, an
 * array missing, or a choice not one of those above.  TILE_UNAVAILABLE: this build lacks the type.
 * One launch: it may run in the streams of tile_stream_create_part. Thread-safe. */
TILE_0_1 tile_status tile_gemm(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_transpose transpose_a, tile_transpose transpose_b, int64_t M,
                               int64_t N, int64_t K, double alpha, const void *A, int64_t lda,
                               const void *B, int64_t ldb, double beta, void *C, int64_t ldc,
                               const tile_gemm_options *options);

/* The same for `batch` products: matrix z of A begins at element z * stride_a, and so on. A stride
 * of 0 takes one matrix of A or B for all. The matrices of C must not overlap: stride_c is at least
 * (M - 1) * ldc + N, or ldc is at least (batch - 1) * stride_c + N, rows then being interleaved. */
TILE_0_1 tile_status tile_gemm_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                       tile_transpose transpose_a, tile_transpose transpose_b,
                                       int64_t M, int64_t N, int64_t K, double alpha, const void *A,
                                       int64_t lda, int64_t stride_a, const void *B, int64_t ldb,
                                       int64_t stride_b, double beta, void *C, int64_t ldc,
                                       int64_t stride_c, int64_t batch,
                                       const tile_gemm_options *options);

/* y = alpha op(A) x + beta y, and A = alpha x y^T + A, with an M x N matrix A: tile_gemm of one
 * column, and of K = 1. The elements of x and y are incx and incy apart, 1 or more; side by side is
 * fastest. A of tile_ger is of C's type. */
TILE_0_1 tile_status tile_gemv(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_transpose transpose_a, int64_t M, int64_t N, double alpha,
                               const void *A, int64_t lda, const void *x, int64_t incx,
                               double beta, void *y, int64_t incy);
TILE_0_1 tile_status tile_ger(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                              int64_t M, int64_t N, double alpha, const void *x, int64_t incx,
                              const void *y, int64_t incy, void *A, int64_t lda);

/* Weights in ggml's blocks of 32 numbers of a row, one behind the other: an f16 scale d, then 32 i8
 * q (34 bytes, d q), or 16 bytes whose lower and then upper 4 bits are q (18 bytes, d (q - 8)). */
typedef enum tile_block_format { TILE_Q8_0, TILE_Q4_0 } tile_block_format;

typedef struct tile_gemm_blocks_options {
    size_t struct_size;
    int round_a; /* not 0: each 32 numbers of A to i8, as ggml rounds them; products of integers */
} tile_gemm_blocks_options;
#define TILE_GEMM_BLOCKS_OPTIONS_INIT TILE_INIT_(tile_gemm_blocks_options)

/* C = A W^T with dense A [M, K] and C [M, N] of f32, f16 or bf16, W [N, K / 32] blocks. Weights are
 * rounded to the type, but for one row f32; sums are f32. options: NULL for none. Errors as those
 * of tile_gemm; K must be a multiple of 32. One launch. Thread-safe. */
TILE_0_1 tile_status tile_gemm_blocks(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                      tile_block_format format, int64_t M, int64_t N, int64_t K,
                                      const void *A, const void *W, void *C,
                                      const tile_gemm_blocks_options *options);

/* ---- rows ---- */

/* The functions of this part take rows of N elements of f32, f16 or bf16, M of them, compute in f32
 * and round once. Y may be X with the same leading dimension, or is apart from it. If M or N is 0,
 * nothing is done. TILE_BAD_ARGUMENT: an extent is negative or above 2^31 - 1, ldx or ldy is below
 * N, an array is missing, Y overlaps X.  TILE_UNAVAILABLE: this build lacks the type. One launch
 * each. Thread-safe. */

/* Y = e^X / (the row's sum of e^X). A row of -inf gives zeros, one with NaN or +inf NaN. */
TILE_0_1 tile_status tile_softmax(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                  int64_t M, int64_t N, const void *X, int64_t ldx, void *Y,
                                  int64_t ldy);
/* Y = X - ln(the row's sum of e^X). A row of -inf gives NaN. */
TILE_0_1 tile_status tile_log_softmax(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                      int64_t M, int64_t N, const void *X, int64_t ldx, void *Y,
                                      int64_t ldy);

typedef struct tile_norm_options {
    size_t struct_size;
    float *mean, *rstd; /* M elements each, as computed, for a backward pass; NULL: not kept */
    double weight_offset; /* is added to the weight by tile_rms_norm: 1 in Gemma */
} tile_norm_options;
#define TILE_NORM_OPTIONS_INIT TILE_INIT_(tile_norm_options)

/* Y = (X - mean) rstd weight + bias with a row's mean and rstd = 1 / sqrt(its variance + eps).
 * weight and bias: N elements of the type; NULL: 1, 0. options: NULL for none.
 * TILE_UNAVAILABLE: a row is longer than the device's kernels take, too (65,536 on cpu, 8,192 on
 * GPUs). */
TILE_0_1 tile_status tile_layer_norm(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                     int64_t M, int64_t N, const void *X, int64_t ldx,
                                     const void *weight, const void *bias, double eps, void *Y,
                                     int64_t ldy, const tile_norm_options *options);
/* Y = X rstd (weight + weight_offset) with rstd = 1 / sqrt(the row's mean of X^2 + eps). Likewise,
 * but there is no mean to be kept. */
TILE_0_1 tile_status tile_rms_norm(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                   int64_t M, int64_t N, const void *X, int64_t ldx,
                                   const void *weight, double eps, void *Y, int64_t ldy,
                                   const tile_norm_options *options);

/* The gradients of these norms by X, and if there is a place for them by weight and bias, with mean
 * and rstd as kept by the norm. dX may be dY with the same leading dimension, or is apart from it;
 * weight may be NULL as there. dweight, dbias: N elements of the type, NULL: not wanted; sums over
 * rows are f32, in an order that M decides, and rounded once.
 * workspace: tile_norm_backward_workspace(M, N) bytes at a multiple of 4, whose contents do not
 * matter; NULL where neither dweight nor dbias is wanted. Otherwise as the norms; up to three
 * launches. */
TILE_0_1 size_t tile_norm_backward_workspace(int64_t M, int64_t N);
TILE_0_1 tile_status tile_layer_norm_backward(tile_kernels *kernels, tile_stream *stream,
                                              tile_dtype type, int64_t M, int64_t N, const void *dY,
                                              int64_t lddy, const void *X, int64_t ldx,
                                              const void *weight, const float *mean,
                                              const float *rstd, void *dX, int64_t lddx,
                                              void *dweight, void *dbias, void *workspace);
TILE_0_1 tile_status tile_rms_norm_backward(tile_kernels *kernels, tile_stream *stream,
                                            tile_dtype type, int64_t M, int64_t N, const void *dY,
                                            int64_t lddy, const void *X, int64_t ldx,
                                            const void *weight, double weight_offset,
                                            const float *rstd, void *dX, int64_t lddx,
                                            void *dweight, void *workspace);

/* ---- losses ---- */

typedef struct tile_cross_entropy_options {
    size_t struct_size;
    double smoothing; /* of labels, 0 to 1 (Szegedy et al. 2016) */
    double z;         /* the factor of lse^2, which keeps logits small (z-loss) */
    int32_t ignore;   /* rows with this label have the loss 0 and no gradient; 0: -100 */
} tile_cross_entropy_options;
#define TILE_CROSS_ENTROPY_OPTIONS_INIT TILE_INIT_(tile_cross_entropy_options)

/* Of each of M rows of V logits, of f32, f16 or bf16:
 *     lse = ln(the sum of e^X)
 *     loss = lse - (1 - smoothing) X[label] - smoothing (the mean of X) + z lse^2
 * computed in f32, in nats. A label that is neither from 0 to V - 1 nor `ignore` gives NaN.
 * options: NULL for none. TILE_BAD_ARGUMENT: an extent is negative or above 2^31 - 1, ldx is below
 * V, an array is missing, smoothing is out of its range.  TILE_UNAVAILABLE: this build lacks the
 * type. One launch. Thread-safe. */
TILE_0_1 tile_status tile_cross_entropy(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                        int64_t M, int64_t V, const void *X, int64_t ldx,
                                        const int32_t *labels, float *loss, float *lse,
                                        const tile_cross_entropy_options *options);
/* dX = dloss times the derivative of the loss by X, with the same options and the lse from there:
 *     e^(X - lse) (1 + 2 z lse) - smoothing / V, and at the label - (1 - smoothing) more
 * Labels must be from 0 to V - 1 or `ignore`. dX may be X with the same leading dimension, or is
 * apart from it. Otherwise the same. */
TILE_0_1 tile_status tile_cross_entropy_backward(tile_kernels *kernels, tile_stream *stream,
                                                 tile_dtype type, int64_t M, int64_t V,
                                                 const void *X, int64_t ldx, const int32_t *labels,
                                                 const float *lse, const float *dloss, void *dX,
                                                 int64_t lddx,
                                                 const tile_cross_entropy_options *options);

/* ---- attention ---- */

typedef struct tile_attention_options {
    size_t struct_size;
    double scale;       /* of the scores; 0: 1 / sqrt(D) */
    int causal;         /* not 0: query i sees the keys up to i + N - M, the last query all */
    int64_t window;     /* with causal: the last so many of these, its own among them; 0: all */
    int64_t value_size; /* DV, the elements of a value; 0: D */
    /* [B, H, M]: ln of each row's sum of e^score, -inf where no key is seen; NULL: not kept */
    float *lse;
    /* In elements from batch to batch, head to head, row to row. All 0: dense [B, rows, H, D]. */
    int64_t q_strides[3], k_strides[3], v_strides[3], o_strides[3];
    /* [B, H, M, N] of the type, added to the scores, -inf: not seen; without causal; NULL: none.
     * Strides as above, 0: the same for all; [M, N] for all heads has {0, 0, N}. */
    const void *mask;
    int64_t mask_strides[3];
    /* Of gradients. All 0: those of O, Q, K, V. */
    int64_t do_strides[3], dq_strides[3], dk_strides[3], dv_strides[3];
    /* Of training: probabilities are 0 by this chance, else divided by 1 - dropout. Which ones,
     * follows from the seed and the place of the score; gradients take those of their call. */
    double dropout;
    uint64_t seed;
} tile_attention_options;
#define TILE_ATTENTION_OPTIONS_INIT TILE_INIT_(tile_attention_options)

/* O = softmax(scale Q K^T + mask) V for B x H heads of M queries and N keys, of f32, f16 or bf16.
 * Scores and sums are f32; probabilities are rounded to the type for the product with V. K and V
 * have HK heads, a divisor of H: query head h takes head h / (H / HK). A query that sees no key
 * gives 0.
 * D and value_size: 1 to 256, to 128 on GPUs. options: NULL for none.
 * TILE_BAD_ARGUMENT: a size is out of its range, an array is missing, strides are negative or let
 * rows of O overlap, O overlaps an input.  TILE_UNAVAILABLE: this build lacks the type, or the
 * device's kernels the size. One launch. Thread-safe. */
TILE_0_1 tile_status tile_attention(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                    int64_t B, int64_t H, int64_t HK, int64_t M, int64_t N,
                                    int64_t D, const void *Q, const void *K, const void *V, void *O,
                                    const tile_attention_options *options);

/* dQ, dK, dV from dO, the gradient by O: of the same call, with the O and the lse that it gave.
 *     p = e^(scores - lse), ds = p (dO V^T - sum(O dO)),
 *     dQ = scale ds K, dK = scale ds^T Q, dV = p^T dO, summed over the query heads of a head of K
 * dQ may be NULL, and so may dK and dV together: not computed. None for the mask. workspace:
 * tile_attention_backward_workspace(B, H, M) bytes at a multiple of 4. Sums are f32, in a fixed
 * order; p and ds are rounded to the type for their products. Otherwise the same. Three launches
 * or two, which cannot run in streams of a part. Thread-safe. */
TILE_0_1 size_t tile_attention_backward_workspace(int64_t B, int64_t H, int64_t M);
TILE_0_1 tile_status tile_attention_backward(tile_kernels *kernels, tile_stream *stream,
                                             tile_dtype type, int64_t B, int64_t H, int64_t HK,
                                             int64_t M, int64_t N, int64_t D, const void *Q,
                                             const void *K, const void *V, const void *O,
                                             const void *dO, void *dQ, void *dK, void *dV,
                                             void *workspace,
                                             const tile_attention_options *options);

typedef struct tile_rope_options {
    size_t struct_size;
    const int32_t *place; /* N places from 0 to P - 1; NULL: token n is at place n */
    int64_t rotated;      /* so many elements of a head are rotated, an even number; 0: all D */
    int backward;         /* not 0: the other way round, the gradient */
    /* In elements from token to token, head to head. Both 0: of dense [N, H, D]. */
    int64_t x_strides[2], y_strides[2];
} tile_rope_options;
#define TILE_ROPE_OPTIONS_INIT TILE_INIT_(tile_rope_options)

/* Y = X [N, H, D] rotated by place: with I = rotated / 2, elements (i, i + I) of each head, (a, b),
 * become (a cos - b sin, a sin + b cos), with cosine and sine [P, I] at the token's place and i;
 * the others stay. f32, f16 or bf16, computed in f32. At most 256 elements are rotated. Y may be X
 * with the same strides, or is apart from it. A place outside of the tables gives 0.
 * TILE_BAD_ARGUMENT: a size is out of its range, an array is missing, strides are negative or let
 * heads of Y overlap, Y overlaps X.  TILE_UNAVAILABLE: this build lacks the type. One launch.
 * Thread-safe. */
TILE_0_1 tile_status tile_rope(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t N, int64_t H, int64_t D, const void *X, const float *cosine,
                               const float *sine, int64_t P, void *Y,
                               const tile_rope_options *options);

/* ---- along an axis ---- */

typedef enum tile_reduction {
    TILE_REDUCE_SUM,
    TILE_REDUCE_MEAN,
    TILE_REDUCE_NORM1, /* the sum of |X| */
    TILE_REDUCE_NORM2, /* the root of the sum of X^2 */
    TILE_REDUCE_MAX,   /* as in NumPy a NaN is the greatest, and the least */
    TILE_REDUCE_MIN,
    TILE_REDUCE_ARGMAX, /* the place of the first that is the greatest, from 0 to N - 1, an i32 */
    TILE_REDUCE_ARGMIN
} tile_reduction;

typedef struct tile_reduce_options {
    size_t struct_size;
    /* In elements from m to m and from n to n; elements of L lie side by side. Both 0: dense. */
    int64_t x_strides[2];
} tile_reduce_options;
#define TILE_REDUCE_OPTIONS_INIT TILE_INIT_(tile_reduce_options)

/* Y [M, L] = X [M, N, L] reduced along N: rows with L = 1, columns with M = 1, of f32, f16, bf16 or
 * f64. Sums are f32, f64 for f64, and rounded once; each is made of partial ones, 32 or more for
 * rows, which keeps errors small. Of no elements a sum is 0 and a mean NaN; extremes need one.
 * options: NULL for none.
 * TILE_BAD_ARGUMENT: an extent is negative or above 2^31 - 1, an array is missing, a stride is
 * negative, N is 0 where there must be an element.  TILE_UNAVAILABLE: this build lacks the type.
 * One launch; a row is one processor's work. Thread-safe. */
TILE_0_1 tile_status tile_reduce(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                 tile_reduction reduction, int64_t M, int64_t N, int64_t L,
                                 const void *X, void *Y, const tile_reduce_options *options);

typedef enum tile_scan_operation {
    TILE_SCAN_SUM,
    TILE_SCAN_PRODUCT,
    TILE_SCAN_MAX, /* NaN stays, as in NumPy */
    TILE_SCAN_MIN
} tile_scan_operation;

typedef struct tile_scan_options {
    size_t struct_size;
    int exclusive; /* not 0: of the elements before n; Y[m, 0] = 0, 1, -inf or inf */
} tile_scan_options;
#define TILE_SCAN_OPTIONS_INIT TILE_INIT_(tile_scan_options)

/* Y[m, n] = the sum, product, greatest or least of X[m, 0 to n], of M rows of N elements of f32,
 * f16, bf16 or f64; computed in f32, f64 for f64, and rounded once. Y may be X with the same
 * leading dimension, or is apart from it. options: NULL for none. Errors as those of tile_softmax.
 * One launch; a row is one processor's work. Thread-safe. */
TILE_0_1 tile_status tile_scan(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_scan_operation operation, int64_t M, int64_t N, const void *X,
                               int64_t ldx, void *Y, int64_t ldy,
                               const tile_scan_options *options);

typedef struct tile_sort_options {
    size_t struct_size;
    int descending;
} tile_sort_options;
#define TILE_SORT_OPTIONS_INIT TILE_INIT_(tile_sort_options)

/* Y = the rows of X sorted, of f32, f16, bf16 or f64, and places [M, N]: where the elements were,
 * or NULL. Equal elements stay in their order, NaN is last. Y must not overlap X. N is at most
 * 2^30 - 1. workspace: tile_sort_workspace(type, N) bytes at a multiple of 8; NULL for N up to
 * 1024. options: NULL for none. Errors as those of tile_softmax. One launch, or with N above 1024
 * for each row 2 and as many as an element has bytes, which cannot run in streams of a part.
 * Thread-safe. */
TILE_0_1 size_t tile_sort_workspace(tile_dtype type, int64_t N);
TILE_0_1 tile_status tile_sort(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t M, int64_t N, const void *X, int64_t ldx, void *Y,
                               int64_t ldy, int32_t *places, void *workspace,
                               const tile_sort_options *options);
/* Y [M, K] = the K greatest of each row of X, greatest first, and places [M, K]; of equal ones the
 * first; NaN last. K is at most N. TILE_UNAVAILABLE: K is above 512, too. One launch. */
TILE_0_1 tile_status tile_top_k(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                int64_t M, int64_t N, int64_t K, const void *X, int64_t ldx,
                                void *Y, int32_t *places);

/* ---- steps of training ---- */

/* Steps over a list of `count` tensors of f32, f16 or bf16, dense, of any shape: tables W, dW, ...
 * hold their addresses, multiples of 16, and lengths their numbers of elements. On devices without
 * host_memory the tables lie in the device's memory. Momenta are f32, zeros before the first step.
 * Computed in f32, rounded once, to nearest. One launch. Thread-safe.
 * TILE_BAD_ARGUMENT: count or a length is negative, a table or an address missing or not a multiple
 * of 16.  TILE_UNAVAILABLE: this build lacks the type. */
typedef struct tile_sgd_options {
    size_t struct_size;
    double momentum;       /* the part that stays; 0: none, `momenta` may be NULL */
    double decay;          /* of weights: times W is added to gradients */
    double gradient_scale; /* gradients are multiplied by it; 0: 1 */
    int nesterov;
} tile_sgd_options;
#define TILE_SGD_OPTIONS_INIT TILE_INIT_(tile_sgd_options)
/* W -= rate b with b = momentum b + dW (PyTorch's, without dampening). */
TILE_0_1 tile_status tile_sgd(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                              int64_t count, const int64_t *lengths, void *const *W,
                              const void *const *dW, float *const *momenta, double rate,
                              const tile_sgd_options *options);

typedef struct tile_adam_options {
    size_t struct_size;
    double beta1, beta2, eps; /* 0: 0.9, 0.999, 1e-8 */
    double decay;             /* of weights */
    double gradient_scale;    /* gradients are multiplied by it; 0: 1 */
    int coupled;              /* not 0: decay times W is added to gradients (Adam), else AdamW */
    float *const *master;     /* weights in f32, of which W gets the rounded ones; NULL: none */
} tile_adam_options;
#define TILE_ADAM_OPTIONS_INIT TILE_INIT_(tile_adam_options)
/* W -= rate (decay W + m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + eps)) with
 * m = beta1 m + (1 - beta1) dW and v = beta2 v + (1 - beta2) dW^2 in `means` and `squares`; step
 * counts from 1. */
TILE_0_1 tile_status tile_adam(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t count, const int64_t *lengths, void *const *W,
                               const void *const *dW, float *const *means, float *const *squares,
                               int64_t step, double rate, const tile_adam_options *options);

/* ---- Fourier transforms ---- */

typedef struct tile_fft_options {
    size_t struct_size;
    int inverse; /* not 0: e^(2 pi i j k / N) and the sum over N */
} tile_fft_options;
#define TILE_FFT_OPTIONS_INIT TILE_INIT_(tile_fft_options)

/* Of f32 or f64: numbers of `type`, u = 2^-24 or 2^-53, and the root mean square of errors is about
 * u sqrt(log2 N) of that of Y. Complex numbers have their parts side by side; all arrays are dense,
 * and none overlaps another. N, N1, N2 are powers of 2 up to 2^28, from 2 on, or of real rows 4.
 * workspace: as many bytes at a multiple of 8 as the query says; NULL where that is 0.
 * TILE_BAD_ARGUMENT: M is negative or above 2^31 - 1, N no such power, an array missing.
 * TILE_UNAVAILABLE: this build lacks the type. Thread-safe. */

/* table [2, N] = the cosines and sines that tile_fft takes, once for each N. */
TILE_0_1 tile_status tile_fft_table(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                    int64_t N, void *table);
/* Y[m, k] = sum over j of X[m, j] e^(-2 pi i j k / N) of M rows of N complex numbers. options: NULL
 * for none. One launch. */
TILE_0_1 size_t tile_fft_workspace(tile_dtype type, int64_t M, int64_t N);
TILE_0_1 tile_status tile_fft(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                              int64_t M, int64_t N, const void *X, const void *table, void *Y,
                              void *workspace, const tile_fft_options *options);
/* The same along both axes of M images of N1 x N2 complex numbers, with the tables of N1 and N2.
 * N1 N2, M N1 and M N2 are below 2^31. Four launches, which cannot run in streams of a part. */
TILE_0_1 size_t tile_fft_2d_workspace(tile_dtype type, int64_t M, int64_t N1, int64_t N2);
TILE_0_1 tile_status tile_fft_2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                 int64_t M, int64_t N1, int64_t N2, const void *X,
                                 const void *table1, const void *table2, void *Y, void *workspace,
                                 const tile_fft_options *options);
/* tile_rfft: X [M, N] of real numbers, Y [M, N / 2 + 1] of complex ones, k from 0 to N / 2: the
 * others are their conjugates. tile_irfft: the inverse, X [M, N / 2 + 1] of complex numbers, of
 * which the imaginary parts of the first and the last count as 0, Y [M, N] of real ones. table:
 * 3 N numbers that tile_rfft_table makes for both. */
TILE_0_1 tile_status tile_rfft_table(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                     int64_t N, void *table);
TILE_0_1 size_t tile_rfft_workspace(tile_dtype type, int64_t M, int64_t N);
TILE_0_1 tile_status tile_rfft(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t M, int64_t N, const void *X, const void *table, void *Y,
                               void *workspace);
TILE_0_1 tile_status tile_irfft(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                int64_t M, int64_t N, const void *X, const void *table, void *Y,
                                void *workspace);

/* ---- windows of images ---- */

typedef enum tile_layout {
    TILE_NHWC, /* channels innermost: X [N, H, W, C], F [R, S, C, K], Y [N, P, Q, K] */
    TILE_NCHW  /* channels outermost: X [N, C, H, W], F [K, C, R, S], Y [N, K, P, Q] */
} tile_layout;

typedef struct tile_window_options {
    size_t struct_size;
    int64_t stride[2];   /* from window to window, down and across; 0: 1 */
    int64_t pad[2];      /* pixels around the image */
    int64_t dilation[2]; /* from tap to tap; 0: 1 */
    int count_pad;       /* tile_avg_pool2d divides by R S, not by the pixels within the image */
    tile_layout layout;
    /* Of tile_conv2d and its gradients. groups divides C and K; the first part of the channels goes
     * to the first of the outputs, and so on; F has C / groups in place of C. 0: 1; C with K = C:
     * depthwise. */
    int64_t groups;
    /* As many bytes at a multiple of 64 as tile_conv2d_workspace says, or that of the gradient. */
    void *workspace;
} tile_window_options;
#define TILE_WINDOW_OPTIONS_INIT TILE_INIT_(tile_window_options)

/* Images X, dense, of f32, f16 or bf16, in the layout of the options; windows of R x S taps.
 * There are P x Q whole ones in the padded image, or none,
 * P = (H + 2 pad - dilation (R - 1) - 1) / stride + 1 and likewise Q. Computed in f32, rounded
 * once. options: NULL for none.
 * TILE_BAD_ARGUMENT: an extent is negative or above 2^31 - 1, an array is missing or has 2^31
 * elements, R, S or an option is not from 0 or 1 to 2^20.  TILE_UNAVAILABLE: this build lacks the
 * type. One launch each, but for tile_conv2d of TILE_NCHW, which turns arrays in the workspace, or
 * puts there what outputs read, and has up to four, and its gradients, up to six, which cannot run
 * in streams of a part.
 * Thread-safe. */

/* Y = the sum of pixels times F over taps and channels, + bias [K] unless it is NULL; pixels around
 * the image are 0. The workspace is of TILE_NCHW, but for depthwise convolutions and those of one
 * tap everywhere; else 0 bytes. */
TILE_0_1 size_t tile_conv2d_workspace(tile_dtype type, int64_t N, int64_t H, int64_t W, int64_t C,
                                      int64_t K, int64_t R, int64_t S,
                                      const tile_window_options *options);
TILE_0_1 tile_status tile_conv2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                 int64_t N, int64_t H, int64_t W, int64_t C, int64_t K, int64_t R,
                                 int64_t S, const void *X, const void *F, const void *bias, void *Y,
                                 const tile_window_options *options);
/* The gradients of tile_conv2d, with its sizes and options, whose dY is the derivative by Y. With a
 * stride they do no product of zeros. Sums are f32, in an order that the sizes decide, and rounded
 * once. workspace: as of the _workspace function, mostly for turned filters and images.
 *     dX[n, h, w, c] = the sum of dY[n, p, q, k] F[r, s, c, k] over what read the pixel */
TILE_0_1 size_t tile_conv2d_backward_data_workspace(tile_dtype type, int64_t N, int64_t H,
                                                    int64_t W, int64_t C, int64_t K, int64_t R,
                                                    int64_t S, const tile_window_options *options);
TILE_0_1 tile_status tile_conv2d_backward_data(tile_kernels *kernels, tile_stream *stream,
                                               tile_dtype type, int64_t N, int64_t H, int64_t W,
                                               int64_t C, int64_t K, int64_t R, int64_t S,
                                               const void *dY, const void *F, void *dX,
                                               const tile_window_options *options);
/*     dF[r, s, c, k] = the sum of X[n, h, w, c] dY[n, p, q, k] over all outputs (n, p, q)
 *     dbias[k] = the sum of dY[n, p, q, k]
 * Either may be NULL: not wanted. */
TILE_0_1 size_t tile_conv2d_backward_weights_workspace(tile_dtype type, int64_t N, int64_t H,
                                                       int64_t W, int64_t C, int64_t K, int64_t R,
                                                       int64_t S,
                                                       const tile_window_options *options);
TILE_0_1 tile_status tile_conv2d_backward_weights(tile_kernels *kernels, tile_stream *stream,
                                                  tile_dtype type, int64_t N, int64_t H, int64_t W,
                                                  int64_t C, int64_t K, int64_t R, int64_t S,
                                                  const void *X, const void *dY, void *dF,
                                                  void *dbias, const tile_window_options *options);
/* Y, with C for K, = the greatest pixel, NaN if there is one, and places, of Y's shape: h W + w of
 * the first. Of no pixel -inf and -1. */
TILE_0_1 tile_status tile_max_pool2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                     int64_t N, int64_t H, int64_t W, int64_t C, int64_t R,
                                     int64_t S, const void *X, void *Y, int32_t *places,
                                     const tile_window_options *options);
/* Y, with C for K, = the mean of the pixels; of none 0. */
TILE_0_1 tile_status tile_avg_pool2d(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                     int64_t N, int64_t H, int64_t W, int64_t C, int64_t R,
                                     int64_t S, const void *X, void *Y,
                                     const tile_window_options *options);

/* dX = the derivative by X, with the options of the pool, whose dY is the derivative by Y: the sum
 * of dY over the windows that took the pixel, or of their shares. places: as tile_max_pool2d gave
 * them. Sums are f32 and rounded once. */
TILE_0_1 tile_status tile_max_pool2d_backward(tile_kernels *kernels, tile_stream *stream,
                                              tile_dtype type, int64_t N, int64_t H, int64_t W,
                                              int64_t C, int64_t R, int64_t S, const void *dY,
                                              const int32_t *places, void *dX,
                                              const tile_window_options *options);
TILE_0_1 tile_status tile_avg_pool2d_backward(tile_kernels *kernels, tile_stream *stream,
                                              tile_dtype type, int64_t N, int64_t H, int64_t W,
                                              int64_t C, int64_t R, int64_t S, const void *dY,
                                              void *dX, const tile_window_options *options);

/* ---- vectors: BLAS 1 ---- */

/* Vectors of N elements of f32 or f64, in which sums are. Elements are incx and incy apart, which
 * may not be 0; with a negative increment, as in BLAS, the vector begins at its last element in
 * memory. Side by side is fastest. What gives a number writes it to `result`, of the type, which is
 * on the device, as arrays are; the order of a sum is decided by N.
 * TILE_BAD_ARGUMENT: type is another one, N is negative or above 2^31 - 1, an increment is 0, an
 * array is missing.  TILE_UNAVAILABLE: this build lacks the type. One launch each, of one program
 * where there is a result. Thread-safe. */

/* y = alpha x + y; with alpha 0 nothing is read. */
TILE_0_1 tile_status tile_axpy(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t N, double alpha, const void *x, int64_t incx, void *y,
                               int64_t incy);
/* x = alpha x, and NaN and infinities times 0 are NaN. */
TILE_0_1 tile_status tile_scal(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t N, double alpha, void *x, int64_t incx);
/* y = x, and both exchanged. */
TILE_0_1 tile_status tile_copy(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t N, const void *x, int64_t incx, void *y, int64_t incy);
TILE_0_1 tile_status tile_swap(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t N, void *x, int64_t incx, void *y, int64_t incy);
/* The sum of x[i] y[i]; of |x[i]|; the square root of the sum of x[i]^2, which overflows only where
 * the result does. Of no elements 0. */
TILE_0_1 tile_status tile_dot(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                              int64_t N, const void *x, int64_t incx, const void *y, int64_t incy,
                              void *result);
TILE_0_1 tile_status tile_asum(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t N, const void *x, int64_t incx, void *result);
TILE_0_1 tile_status tile_nrm2(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               int64_t N, const void *x, int64_t incx, void *result);
/* The first i, from 0, with the greatest |x[i]|, a NaN being infinite. Of no elements -1. */
TILE_0_1 tile_status tile_iamax(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                int64_t N, const void *x, int64_t incx, int32_t *result);

/* ---- triangles, symmetric matrices, systems of equations ---- */

/* Matrices are f32 or f64, and so are sums; op(A) is A or with TILE_TRANSPOSE its transpose. Of a
 * triangle, the other half of the array is neither read nor written, and with TILE_UNIT the
 * diagonal is not, which then means ones. The _batched functions do the same for `batch` matrices:
 * matrix z of A begins at element z * stride_a, those of B and of what is written do not overlap.
 * If there are no elements, nothing is done. info [batch] is on the device, as arrays are: whether
 * a matrix could be factored is known when the stream has come there.
 * The methods are those of LAPACK, so residuals have bounds like its own.
 * TILE_BAD_ARGUMENT: an extent is negative or above 2^31 - 1, a leading dimension too small, an
 * array missing, or a choice not one of those above.  TILE_UNAVAILABLE: this build lacks the type.
 * What factors has some launches for each 64 columns, and tile_potrs and tile_getrs, triangles of
 * more than 128 rows and symmetric matrices of more than 256 a few: they cannot run in streams of a
 * part. The others are one launch. Thread-safe. */
typedef enum tile_side { TILE_LEFT, TILE_RIGHT } tile_side;
typedef enum tile_triangle { TILE_LOWER, TILE_UPPER } tile_triangle;
typedef enum tile_diagonal { TILE_NON_UNIT, TILE_UNIT } tile_diagonal;

/* B = alpha op(A)^-1 B with a triangle A, M x M, or with TILE_RIGHT B = alpha B op(A)^-1 with
 * N x N, B being M x N. A pivot of 0 gives infinities and NaN. A is not read if alpha is 0. */
TILE_0_1 tile_status tile_trsm(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_side side, tile_triangle triangle, tile_transpose transpose_a,
                               tile_diagonal diagonal, int64_t M, int64_t N, double alpha,
                               const void *A, int64_t lda, void *B, int64_t ldb);
TILE_0_1 tile_status tile_trsm_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                       tile_side side, tile_triangle triangle,
                                       tile_transpose transpose_a, tile_diagonal diagonal,
                                       int64_t M, int64_t N, double alpha, const void *A,
                                       int64_t lda, int64_t stride_a, void *B, int64_t ldb,
                                       int64_t stride_b, int64_t batch);

/* B = alpha op(A) B with a triangle A, or with TILE_RIGHT B = alpha B op(A). Otherwise the same. */
TILE_0_1 tile_status tile_trmm(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_side side, tile_triangle triangle, tile_transpose transpose_a,
                               tile_diagonal diagonal, int64_t M, int64_t N, double alpha,
                               const void *A, int64_t lda, void *B, int64_t ldb);
TILE_0_1 tile_status tile_trmm_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                       tile_side side, tile_triangle triangle,
                                       tile_transpose transpose_a, tile_diagonal diagonal,
                                       int64_t M, int64_t N, double alpha, const void *A,
                                       int64_t lda, int64_t stride_a, void *B, int64_t ldb,
                                       int64_t stride_b, int64_t batch);
/* x = op(A)^-1 x, and x = op(A) x, with a triangle A, N x N. Increments as of tile_axpy. */
TILE_0_1 tile_status tile_trsv(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_triangle triangle, tile_transpose transpose_a,
                               tile_diagonal diagonal, int64_t N, const void *A, int64_t lda,
                               void *x, int64_t incx);
TILE_0_1 tile_status tile_trmv(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_triangle triangle, tile_transpose transpose_a,
                               tile_diagonal diagonal, int64_t N, const void *A, int64_t lda,
                               void *x, int64_t incx);

/* The triangle, of C, N x N, of alpha op(A) op(A)^T + beta C, op(A) being N x K: A stored as N x K,
 * or with TILE_TRANSPOSE as K x N. */
TILE_0_1 tile_status tile_syrk(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_triangle triangle, tile_transpose transpose_a, int64_t N,
                               int64_t K, double alpha, const void *A, int64_t lda, double beta,
                               void *C, int64_t ldc);
/* C = alpha A B + beta C with a symmetric A, M x M, of which the triangle is read, or with
 * TILE_RIGHT C = alpha B A + beta C with N x N; B and C are M x N. And of one column:
 * y = alpha A x + beta y, increments as of tile_axpy. As in BLAS, C and y are not read if beta is
 * 0, and A, B and x are not if alpha is 0. */
TILE_0_1 tile_status tile_symm(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_side side, tile_triangle triangle, int64_t M, int64_t N,
                               double alpha, const void *A, int64_t lda, const void *B,
                               int64_t ldb, double beta, void *C, int64_t ldc);
TILE_0_1 tile_status tile_symv(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                               tile_triangle triangle, int64_t N, double alpha, const void *A,
                               int64_t lda, const void *x, int64_t incx, double beta, void *y,
                               int64_t incy);

/* A = L L^T (Cholesky), N x N, symmetric: the lower triangle becomes L, or the upper one U = L^T.
 * info: 0, or n if the leading n x n part is the first that is not positive definite; the triangle
 * then means nothing. */
TILE_0_1 tile_status tile_potrf(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                tile_triangle triangle, int64_t N, void *A, int64_t lda,
                                int32_t *info);
TILE_0_1 tile_status tile_potrf_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                        tile_triangle triangle, int64_t N, void *A, int64_t lda,
                                        int64_t stride_a, int32_t *info, int64_t batch);
/* B = A^-1 B with the triangle of tile_potrf, B being N x K. */
TILE_0_1 tile_status tile_potrs(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                tile_triangle triangle, int64_t N, int64_t K, const void *A,
                                int64_t lda, void *B, int64_t ldb);
TILE_0_1 tile_status tile_potrs_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                        tile_triangle triangle, int64_t N, int64_t K, const void *A,
                                        int64_t lda, int64_t stride_a, void *B, int64_t ldb,
                                        int64_t stride_b, int64_t batch);

/* P A = L U, M x N, with partial pivoting: A becomes L below the diagonal, where L has ones, and U.
 * pivots [min(M, N)]: in step n, row n was exchanged with row pivots[n], n or greater (LAPACK
 * counts from 1); of equal pivots the first is taken, a NaN before all. info: 0, or n if the pivot
 * of step n, from 1, is the first that is 0: there is no solution, but L and U are right. */
TILE_0_1 tile_status tile_getrf(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                int64_t M, int64_t N, void *A, int64_t lda, int32_t *pivots,
                                int32_t *info);
TILE_0_1 tile_status tile_getrf_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                        int64_t M, int64_t N, void *A, int64_t lda,
                                        int64_t stride_a, int32_t *pivots, int32_t *info,
                                        int64_t batch);
/* B = op(A)^-1 B with the factors and pivots of tile_getrf, A being N x N, B N x K. */
TILE_0_1 tile_status tile_getrs(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                tile_transpose transpose_a, int64_t N, int64_t K, const void *A,
                                int64_t lda, const int32_t *pivots, void *B, int64_t ldb);
TILE_0_1 tile_status tile_getrs_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                        tile_transpose transpose_a, int64_t N, int64_t K,
                                        const void *A, int64_t lda, int64_t stride_a,
                                        const int32_t *pivots, void *B, int64_t ldb,
                                        int64_t stride_b, int64_t batch);

/* A = Q R, M x N, by reflections: A becomes R in its upper triangle, and below the diagonal the
 * reflections, tau [min(M, N)] of the type, as LAPACK has them (of rows, not columns). Errors are a
 * few u sqrt(M) of the norm of A; squares of large or small numbers neither overflow nor are lost.
 * workspace: tile_geqrf_workspace(type, M, N, batch) bytes at a multiple of 8, NULL for 0. Several
 * launches from 33 rows and columns on, and for wide matrices, which cannot run in streams of a
 * part. batch: tau follows each other. */
TILE_0_1 size_t tile_geqrf_workspace(tile_dtype type, int64_t M, int64_t N, int64_t batch);
TILE_0_1 tile_status tile_geqrf(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                int64_t M, int64_t N, void *A, int64_t lda, void *tau,
                                void *workspace);
TILE_0_1 tile_status tile_geqrf_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                        int64_t M, int64_t N, void *A, int64_t lda,
                                        int64_t stride_a, void *tau, void *workspace,
                                        int64_t batch);
/* C = op(Q) C, M x N, with the M x M matrix Q of the first K columns of tile_geqrf's A and tau; K
 * is M or less. Q itself is that of C = 1 (and 0), its first N columns of one with N columns.
 * workspace: tile_ormqr_workspace(type, M, N, K, batch) bytes at a multiple of 8, NULL for 0. */
TILE_0_1 size_t tile_ormqr_workspace(tile_dtype type, int64_t M, int64_t N, int64_t K,
                                     int64_t batch);
TILE_0_1 tile_status tile_ormqr(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                tile_transpose transpose_q, int64_t M, int64_t N, int64_t K,
                                const void *A, int64_t lda, const void *tau, void *C, int64_t ldc,
                                void *workspace);
TILE_0_1 tile_status tile_ormqr_batched(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                        tile_transpose transpose_q, int64_t M, int64_t N,
                                        int64_t K, const void *A, int64_t lda, int64_t stride_a,
                                        const void *tau, void *C, int64_t ldc, int64_t stride_c,
                                        void *workspace, int64_t batch);

#ifdef __cplusplus
}
#endif
#endif
