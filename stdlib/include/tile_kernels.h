/* tile_kernels.h: kernels without a compiler (libtilekernels). Products of matrices as functions
 * that one calls, compiled ahead of time from stdlib/kernels for several CPUs. C11, clean C++.
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

#ifdef __cplusplus
}
#endif
#endif
