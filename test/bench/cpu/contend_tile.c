/* tilec: the kernels of cpu.tile, through the public interface, and the compilation of the
 * examples. Blocks are those of the kernels' texts; rows of a length get a tile of the next power
 * of two. */
#include "contender.h"
#include "runtime/include/tile_jit.h"

static tile_module *module;
static tile_kernel *kernel;
static tile_arg args[10];
static int nargs;

static void die(void)
{
    fprintf(stderr, "%s\n", tile_last_error());
    exit(1);
}

static bool get_from(tile_module **from, const char *file, const char *name,
                     const tile_const *consts)
{
    if (!*from && tile_module_load_file(NULL, file, NULL, from))
        die();
    tile_status status = tile_kernel_get(*from, name, consts, &kernel);
    if (status == TILE_OK)
        status = tile_kernel_prepare(kernel);
    return status == TILE_OK || refuse(tile_last_error());
}
static bool get(const char *name, const tile_const *consts)
{
    return get_from(&module, CPU_TILE, name, consts);
}

/* The kernel over a row, or another that is named by the tile's length. */
static bool get_rows(const char *name)
{
    int64_t b = 1;
    while (b < arg[1])
        b *= 2;
    return get(name, (tile_const[]){{"B", b, NULL}, {0}});
}

static void give(int n, const tile_arg *list)
{
    memcpy(args, list, (size_t)n * sizeof *list);
    nargs = n;
}
#define GIVE(...)                                                                                  \
    give(sizeof(tile_arg[]){__VA_ARGS__} / sizeof(tile_arg), (tile_arg[]){__VA_ARGS__})

static void run(void)
{
    if (tile_launch(kernel, NULL, args, nargs) || tile_stream_synchronize(NULL))
        die();
}

/* ---- products ---- */

static bool prepare_matmul(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1), *b = floats(1, (size_t)(k * n), -1, 1);
    float *c = result((size_t)(m * n));
    GIVE(tile_view(a, m, k), tile_view(b, k, n), tile_view(c, m, n));
    return get("matmul", NULL);
}
/* arg[0] products of m x n x k */
static bool prepare_batched(void)
{
    int64_t l = arg[0], m = arg[1], n = arg[2], k = arg[3];
    float *a = floats(0, (size_t)(l * m * k), -1, 1), *b = floats(1, (size_t)(l * k * n), -1, 1);
    float *c = result((size_t)(l * m * n));
    GIVE(tile_view(a, l, m, k), tile_view(b, l, k, n), tile_view(c, l, m, n));
    return get("batched", NULL);
}
static bool prepare_matmul_gelu(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1), *b = floats(1, (size_t)(k * n), -1, 1);
    float *bias = floats(2, (size_t)n, -1, 1), *c = result((size_t)(m * n));
    GIVE(tile_view(a, m, k), tile_view(b, k, n), tile_view(bias, n), tile_view(c, m, n));
    return get("matmul_gelu", NULL);
}
static bool prepare_matmul_bf16(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    uint16_t *a = bfloats(0, (size_t)(m * k)), *b = bfloats(1, (size_t)(k * n));
    float *c = result((size_t)(m * n));
    GIVE(tile_view(a, m, k), tile_view(b, k, n), tile_view(c, m, n));
    return get("matmul_bf16", NULL);
}
static bool prepare_matmul_i8(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    int8_t *a = bytes(0, (size_t)(m * k)), *b = bytes(1, (size_t)(k * n));
    int32_t *c = int_result((size_t)(m * n));
    GIVE(tile_view(a, m, k), tile_view(b, k, n), tile_view(c, m, n));
    return get("matmul_i8", NULL);
}
static bool prepare_gemv(void)
{
    int64_t m = arg[0], n = arg[1];
    float *a = floats(0, (size_t)(m * n), -1, 1), *x = floats(1, (size_t)n, -1, 1);
    float *y = result((size_t)m);
    GIVE(tile_view(a, m, n), tile_view(x, n), tile_view(y, m));
    return get("gemv", NULL);
}
/* Weights in ggml's blocks, of arg[2] equal matrices in turn. */
static uint8_t *weights;
static size_t matrix_bytes;
static bool prepare_blocks(const char *name, int64_t size)
{
    int64_t m = arg[0], n = arg[1];
    matrix_bytes = (size_t)(m * n / 32 * size);
    weights = blocks(0, matrix_bytes, (size_t)arg[2], (size_t)size);
    float *x = floats(1, (size_t)n, -1, 1), *y = result((size_t)m);
    GIVE(tile_view(weights, m, n / 32, size), tile_view(x, n), tile_view(y, m));
    return get(name, NULL);
}
static bool prepare_gemv_q4_0(void)
{
    return prepare_blocks("gemv_q4_0", 18);
}
static bool prepare_gemv_q8_0(void)
{
    return prepare_blocks("gemv_q8_0", 34);
}
static void run_blocks(void)
{
    args[0].address = weights + matrix_bytes * turn_of(arg[2]);
    run();
}
static bool prepare_attention(void)
{
    int64_t h = arg[0], n = arg[1], d = arg[2];
    float *q = floats(0, (size_t)(h * n * d), -1, 1), *k = floats(1, (size_t)(h * n * d), -1, 1);
    float *v = floats(2, (size_t)(h * n * d), -1, 1), *o = result((size_t)(h * n * d));
    GIVE(tile_view(q, h, n, d), tile_view(k, h, n, d), tile_view(v, h, n, d), tile_view(o, h, n, d),
         tile_f32(1 / sqrtf((float)d)));
    return get("attention", (tile_const[]){{"BD", d, NULL}, {"CAUSAL", arg[3], NULL}, {0}});
}
static bool prepare_convolution(void)
{
    int64_t h = arg[0], w = arg[1], from = arg[2], to = arg[3];
    float *x = floats(0, (size_t)((h + 2) * (w + 2) * from), -1, 1);
    float *f = floats(1, (size_t)(9 * from * to), -1, 1), *y = result((size_t)(h * w * to));
    GIVE(tile_view(x, h + 2, w + 2, from), tile_view(f, 9, from, to), tile_view(y, h, w, to));
    return get("convolution", NULL);
}

/* ---- elementwise ---- */

static bool prepare_add(void)
{
    int64_t n = arg[0];
    float *a = floats(0, (size_t)n, -1, 1), *b = floats(1, (size_t)n, -1, 1);
    float *y = result((size_t)n);
    GIVE(tile_view(a, n), tile_view(b, n), tile_view(y, n));
    return get("add", NULL);
}
static bool prepare_gelu(void)
{
    int64_t n = arg[0];
    float *a = floats(0, (size_t)n, -4, 4), *y = result((size_t)n);
    GIVE(tile_view(a, n), tile_view(y, n));
    return get("gelu", NULL);
}
static bool prepare_black_scholes(void)
{
    int64_t n = arg[0];
    float *a = floats(0, (size_t)n, 5, 30), *b = floats(1, (size_t)n, 1, 100);
    float *c = floats(2, (size_t)n, 0.25f, 10), *y = result(2 * (size_t)n);
    GIVE(tile_view(a, n), tile_view(b, n), tile_view(c, n), tile_view(y, 2, n));
    return get("black_scholes", NULL);
}
static bool prepare_mandelbrot(void)
{
    int64_t w = arg[0], h = arg[1];
    int32_t *y = int_result((size_t)(w * h));
    GIVE(tile_view(y, h, w), tile_i32((int32_t)arg[2]));
    return get("mandelbrot", NULL);
}

/* ---- rows ---- */

static bool prepare_sums(void)
{
    int64_t r = arg[0], n = arg[1];
    float *x = floats(0, (size_t)(r * n), -4, 4), *y = result((size_t)r);
    GIVE(tile_view(x, r, n), tile_view(y, r));
    return get("sums", NULL);
}
static bool prepare_map(const char *name)
{
    int64_t r = arg[0], n = arg[1];
    float *x = floats(0, (size_t)(r * n), -4, 4), *y = result((size_t)(r * n));
    GIVE(tile_view(x, r, n), tile_view(y, r, n));
    return get_rows(name);
}
static bool prepare_softmax(void)
{
    return prepare_map("softmax");
}
static bool prepare_cumsum(void)
{
    return prepare_map("cumsum_rows");
}
static bool prepare_sort(void)
{
    return prepare_map("sort_rows");
}
static bool prepare_layer_norm(void)
{
    int64_t r = arg[0], n = arg[1];
    float *x = floats(0, (size_t)(r * n), -4, 4), *w = floats(1, (size_t)n, 0.5f, 1.5f);
    float *b = floats(2, (size_t)n, -1, 1), *y = result((size_t)(r * n));
    GIVE(tile_view(x, r, n), tile_view(w, n), tile_view(b, n), tile_view(y, r, n));
    return get_rows("layer_norm");
}
static bool prepare_rms_norm(void)
{
    int64_t r = arg[0], n = arg[1];
    float *x = floats(0, (size_t)(r * n), -4, 4), *w = floats(1, (size_t)n, 0.5f, 1.5f);
    float *y = result((size_t)(r * n));
    GIVE(tile_view(x, r, n), tile_view(w, n), tile_view(y, r, n));
    return get_rows("rms_norm");
}

/* ---- moving, counting, neighbourhoods ---- */

static bool prepare_transpose(void)
{
    int64_t m = arg[0], n = arg[1];
    float *x = floats(0, (size_t)(m * n), -1, 1), *y = result((size_t)(m * n));
    GIVE(tile_view(x, m, n), tile_view(y, n, m));
    return get("transpose", NULL);
}
static bool prepare_gather(void)
{
    int64_t r = arg[0], n = arg[1], rows = arg[2];
    float *t = floats(0, (size_t)(rows * n), -1, 1), *y = result((size_t)(r * n));
    int32_t *index = ints(1, (size_t)r, (int32_t)rows);
    GIVE(tile_view(t, rows, n), tile_view(index, r), tile_view(y, r, n));
    return get_rows("gather_rows");
}
static bool prepare_histogram(void)
{
    int64_t n = arg[0], bins = arg[1];
    int32_t *x = ints(0, (size_t)n, (int32_t)bins), *y = int_result((size_t)bins);
    GIVE(tile_view(x, n), tile_view(y, bins));
    return get("count", (tile_const[]){{"BINS", bins, NULL}, {0}});
}
static void run_histogram(void)
{
    memset(arena.result, 0, arena.count * sizeof(int32_t));
    run();
}
static bool prepare_stencil(void)
{
    int64_t h = arg[0], w = arg[1];
    float *x = floats(0, (size_t)((h + 2) * (w + 2)), -1, 1), *y = result((size_t)(h * w));
    GIVE(tile_view(x, h + 2, w + 2), tile_view(y, h, w));
    return get("stencil", NULL);
}

#include "contend_library.h"
#include "contend_images.h"

/* ---- compiling: example arg[0], from its file to code that is ready to launch ---- */

enum { SIDE = 8, COUNT = SIDE * SIDE };
static const uint16_t HALF_ONE = 0x3C00, HALF_EIGHT = 0x4800;
static float *ones, *sums;
static uint16_t *half_ones, *half_sums;

static void give_vector_add(void)
{
    GIVE(tile_view(ones, COUNT), tile_view(ones, COUNT), tile_view(sums, COUNT));
}
static void give_softmax(void)
{
    GIVE(tile_view(ones, SIDE, SIDE), tile_view(sums, SIDE, SIDE));
}
static void give_matmul(void)
{
    tile_arg a = tile_view(ones, SIDE, SIDE);
    GIVE(a, a, tile_view(sums, SIDE, SIDE));
}
static void give_layernorm(void)
{
    GIVE(tile_view(ones, SIDE, SIDE), tile_view(ones, SIDE), tile_view(ones, SIDE),
         tile_view(sums, SIDE, SIDE));
}
static void give_attention(void)
{
    tile_arg a = tile_view(ones, 1, SIDE, SIDE);
    GIVE(a, a, a, tile_view(sums, 1, SIDE, SIDE), tile_f32(1));
}
static void give_persistent(void)
{
    tile_arg a = tile_view_typed(TILE_F16, half_ones, SIDE, SIDE);
    GIVE(a, a, tile_view_typed(TILE_F16, half_sums, SIDE, SIDE));
}
static void give_split_k(void)
{
    static float parts[COUNT];
    static uint32_t arrived[1];
    tile_arg a = tile_view_typed(TILE_F16, half_ones, SIDE, SIDE);
    GIVE(a, a, tile_view_typed(TILE_F16, half_sums, SIDE, SIDE), tile_view(parts, 1, SIDE, SIDE),
         tile_view(arrived, 1, 1));
}

/* What each makes of ones is known. */
static const struct Example {
    const char *file, *kernel;
    tile_const consts[3];
    void (*give)(void);
    float result;
    bool half;
} examples[] = {
    {"01_vector_add/vector_add", "vector_add", {{0}}, give_vector_add, 2, false},
    {"02_softmax/softmax", "softmax", {{"B", 4096, NULL}, {0}}, give_softmax, 1.0f / SIDE, false},
    {"03_matmul/matmul", "matmul", {{"epilogue", 0, "relu"}, {0}}, give_matmul, SIDE, false},
    {"04_layernorm/layernorm", "layernorm", {{"B", 4096, NULL}, {0}}, give_layernorm, 1, false},
    {"05_attention/attention",
     "attention",
     {{"BD", 64, NULL}, {"CAUSAL", 1, NULL}, {0}},
     give_attention,
     1,
     false},
    {"06_persistent/persistent", "persistent", {{0}}, give_persistent, SIDE, true},
    {"07_split_k/split_k", "split_k", {{0}}, give_split_k, SIDE, true},
};
static const struct Example *example;

static void compile(void)
{
    static tile_module *compiled;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.tile", EXAMPLES, example->file);
    tile_module_free(compiled);
    if (tile_module_load_file(NULL, path, NULL, &compiled) ||
        tile_kernel_get(compiled, example->kernel, example->consts, &kernel) ||
        tile_kernel_prepare(kernel))
        die();
}
/* Also runs what was compiled. */
static bool prepare_compile(void)
{
    if (arg[0] < 1 || arg[0] > (long)(sizeof examples / sizeof *examples))
        return refuse("no such example");
    example = &examples[arg[0] - 1];
    ones = floats(0, COUNT, 1, 1);
    half_ones = memory(1, COUNT * sizeof *half_ones);
    half_sums = memory(2, COUNT * sizeof *half_sums);
    for (int i = 0; i < COUNT; i++)
        half_ones[i] = HALF_ONE;
    sums = result(COUNT);
    compile();
    example->give();
    run();
    for (int i = 0; i < COUNT; i++) {
        if (example->half)
            sums[i] = half_sums[i] == HALF_EIGHT ? 8 : NAN;
        if (!(fabsf(sums[i] - example->result) < 1e-5f))
            return refuse("a wrong result");
    }
    return true;
}

const Work works[] = {
    {"matmul", prepare_matmul, run},
    {"batched", prepare_batched, run},
    {"matmul_gelu", prepare_matmul_gelu, run},
    {"matmul_bf16", prepare_matmul_bf16, run},
    {"matmul_i8", prepare_matmul_i8, run},
    {"gemv", prepare_gemv, run},
    {"gemv_q4_0", prepare_gemv_q4_0, run_blocks},
    {"gemv_q8_0", prepare_gemv_q8_0, run_blocks},
    {"attention", prepare_attention, run},
    {"convolution", prepare_convolution, run},
    {"add", prepare_add, run},
    {"gelu", prepare_gelu, run},
    {"black_scholes", prepare_black_scholes, run},
    {"mandelbrot", prepare_mandelbrot, run},
    {"sums", prepare_sums, run},
    {"softmax", prepare_softmax, run},
    {"layer_norm", prepare_layer_norm, run},
    {"rms_norm", prepare_rms_norm, run},
    {"cumsum", prepare_cumsum, run},
    {"sort", prepare_sort, run},
    {"transpose", prepare_transpose, run},
    {"gather", prepare_gather, run},
    {"histogram", prepare_histogram, run_histogram},
    {"stencil", prepare_stencil, run},
    {"lib_gemm", prepare_lib_gemm, run_library},
    {"lib_gemm_nn", prepare_lib_gemm_nn, run_library},
    {"lib_gemm_bf16", prepare_lib_gemm_bf16, run_library},
    {"lib_gemm_split_k", prepare_lib_gemm_split_k, run_library},
    {"lib_gemm_u4", prepare_lib_gemm_u4, run_library},
    {"lib_gemm_q4_0", prepare_lib_gemm_q4_0, run_library},
    {"lib_gemm_q8_0", prepare_lib_gemm_q8_0, run_library},
    {"lib_gemm_q4_0_i8", prepare_lib_gemm_q4_0_i8, run_library},
    {"lib_gemm_q8_0_i8", prepare_lib_gemm_q8_0_i8, run_library},
    {"lib_gemm_q4_k_i8", prepare_lib_gemm_q4_k_i8, run_library},
    {"lib_gemm_i8", prepare_lib_gemm_i8, run_library},
    {"lib_attention", prepare_lib_attention, run_library},
    {"lib_attention_backward", prepare_lib_attention_backward, run_library},
    {"lib_decode", prepare_lib_decode, run_library},
    {"lib_layer_norm", prepare_lib_layer_norm, run_library},
    {"lib_layer_norm_backward", prepare_lib_layer_norm_backward, run_library},
    {"lib_cross_entropy", prepare_lib_cross_entropy, run_library},
    {"lib_cross_entropy_backward", prepare_lib_cross_entropy_backward, run_library},
    {"lib_argmax", prepare_lib_argmax, run_library},
    {"lib_swiglu", prepare_lib_swiglu, run_library},
    {"lib_rope", prepare_lib_rope, run_library},
    {"lib_embedding", prepare_lib_embedding, run_library},
    {"lib_embedding_backward", prepare_lib_embedding_backward, run_embedding_backward},
    {"conv2d", prepare_conv2d, run_library},
    {"conv2d_backward_data", prepare_conv2d_backward_data, run_library},
    {"conv2d_backward_weight", prepare_conv2d_backward_weight, run_library},
    {"conv2d_transpose", prepare_conv2d_transpose, run_library},
    {"depthwise_conv2d", prepare_depthwise_conv2d, run_library},
    {"max_pool", prepare_max_pool, run_library},
    {"avg_pool", prepare_avg_pool, run_library},
    {"group_norm", prepare_group_norm, run_library},
    {"batch_norm", prepare_batch_norm, run_library},
    {"batch_norm_backward", prepare_batch_norm_backward, run_library},
    {"compile", prepare_compile, compile},
};
const size_t nworks = sizeof works / sizeof *works;
