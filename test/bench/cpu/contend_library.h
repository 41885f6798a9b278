/* Works that are kernels of the library, std.kernels.*, in f32: part of contend_tile.c. A work is
 * one launch or several, which are timed together. */
enum { MOST_LAUNCHES = 3, MOST_ARGS = 20, SPARES = 8 };

static struct Launch {
    tile_kernel *kernel;
    tile_arg args[MOST_ARGS];
    int nargs;
} launches[MOST_LAUNCHES];
static int nlaunches;
static void *spares[SPARES];

#define F32 {"T", 0, "f32"}
#define NO_VECTOR tile_view(NULL, 0)
#define NO_MATRIX tile_view(NULL, 0, 0)

/* Zeros beside inputs and result. */
static float *spare(int i, int64_t n)
{
    free(spares[i]);
    spares[i] = aligned_alloc(64, (size_t)(n * (int64_t)sizeof(float) + 63) / 64 * 64);
    if (!spares[i])
        exit(1);
    memset(spares[i], 0, (size_t)n * sizeof(float));
    return spares[i];
}

/* One more launch; the first of a work after nlaunches = 0. */
static bool add(const char *file, const char *name, const tile_const *consts, int n,
                const tile_arg *list)
{
    static struct {
        const char *file;
        tile_module *module;
    } modules[16];
    int i = 0;
    while (modules[i].file && strcmp(modules[i].file, file)) i++;
    if (!modules[i].file && tile_module_load_file(NULL, file, NULL, &modules[i].module))
        die();
    modules[i].file = file;
    struct Launch *l = &launches[nlaunches++];
    memcpy(l->args, list, (size_t)n * sizeof *list);
    l->nargs = n;
    tile_status status = tile_kernel_get(modules[i].module, name, consts, &l->kernel);
    if (status == TILE_OK)
        status = tile_kernel_prepare(l->kernel);
    return status == TILE_OK || refuse(tile_last_error());
}
#define CONSTS(...) ((tile_const[]){__VA_ARGS__, {0}})
#define ADD(file, name, consts, ...)                                                               \
    add("std.kernels." file, name, consts, sizeof(tile_arg[]){__VA_ARGS__} / sizeof(tile_arg),     \
        (tile_arg[]){__VA_ARGS__})

static void run_library(void)
{
    for (int i = 0; i < nlaunches; i++)
        if (tile_launch(launches[i].kernel, NULL, launches[i].args, launches[i].nargs))
            die();
    if (tile_stream_synchronize(NULL))
        die();
}

/* ---- products: C = A W^T, sizes m, n, k ---- */

static bool prepare_lib_gemm(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1), *w = floats(1, (size_t)(n * k), -1, 1);
    nlaunches = 0;
    return ADD("gemm", "gemm", CONSTS(F32, {"TB", 1, NULL}), tile_view(a, m, k),
               tile_view(w, n, k), tile_view(result((size_t)(m * n)), m, n));
}
/* C = A W, rows of W being those of k. */
static bool prepare_lib_gemm_nn(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1), *w = floats(1, (size_t)(k * n), -1, 1);
    nlaunches = 0;
    return ADD("gemm", "gemm", CONSTS(F32), tile_view(a, m, k), tile_view(w, k, n),
               tile_view(result((size_t)(m * n)), m, n));
}
static bool prepare_lib_gemm_bf16(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    uint16_t *a = bfloats(0, (size_t)(m * k)), *w = bfloats(1, (size_t)(n * k));
    nlaunches = 0;
    return ADD("gemm", "gemm", CONSTS({"T", 0, "bf16"}, {"O", 0, "f32"}, {"TB", 1, NULL}),
               tile_view_typed(TILE_BF16, a, m, k), tile_view_typed(TILE_BF16, w, n, k),
               tile_view(result((size_t)(m * n)), m, n));
}
/* By arg[3] programs a tile of C. */
static bool prepare_lib_gemm_split_k(void)
{
    enum { SIDE_OF_TILE = 64 };
    int64_t m = arg[0], n = arg[1], k = arg[2], s = arg[3];
    int64_t down = (m + SIDE_OF_TILE - 1) / SIDE_OF_TILE,
            across = (n + SIDE_OF_TILE - 1) / SIDE_OF_TILE;
    float *a = floats(0, (size_t)(m * k), -1, 1), *w = floats(1, (size_t)(k * n), -1, 1);
    nlaunches = 0;
    return ADD("gemm", "gemm_split_k", CONSTS(F32), tile_view(a, m, k), tile_view(w, k, n),
               tile_view(result((size_t)(m * n)), m, n), tile_view(spare(0, s * m * n), s, m, n),
               tile_view((uint32_t *)spare(1, down * across), down, across));
}
static bool prepare_lib_gemm_u4(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2], groups = k / 128;
    float *a = floats(0, (size_t)(m * k), -1, 1), *scale = floats(2, (size_t)(n * groups), 0, 1);
    int8_t *w = bytes(1, (size_t)(n * k / 2));
    uint8_t *zero = (uint8_t *)spare(0, n * groups);
    nlaunches = 0;
    return ADD("quantized", "gemm_u4", CONSTS(F32), tile_view(a, m, k),
               tile_view_typed(TILE_U4, w, n, k),
               tile_view(scale, n, groups), tile_view(zero, n, groups),
               tile_view(result((size_t)(m * n)), m, n));
}
/* a8: A is rounded to i8 on the way, as ggml rounds it. */
static bool prepare_lib_blocks(const char *name, int64_t size, bool a8)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1);
    uint8_t *w = blocks(1, (size_t)(n * k / 32 * size), 1, (size_t)size);
    nlaunches = 0;
    return ADD("quantized", name, CONSTS(F32, {"A8", a8, NULL}), tile_view(a, m, k),
               tile_view(w, n, k / 32, size), tile_view(result((size_t)(m * n)), m, n));
}
static bool prepare_lib_gemm_q4_0(void)
{
    return prepare_lib_blocks("gemm_q4_0", 18, false);
}
static bool prepare_lib_gemm_q8_0(void)
{
    return prepare_lib_blocks("gemm_q8_0", 34, false);
}
static bool prepare_lib_gemm_q4_0_i8(void)
{
    return prepare_lib_blocks("gemm_q4_0", 18, true);
}
static bool prepare_lib_gemm_q8_0_i8(void)
{
    return prepare_lib_blocks("gemm_q8_0", 34, true);
}
static bool prepare_lib_gemm_q4_k_i8(void)
{
    enum { NUMBERS = 256, BYTES = 144 };
    int64_t m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1);
    uint8_t *w = blocks(1, (size_t)(n * k / NUMBERS * BYTES), 1, BYTES);
    nlaunches = 0;
    return ADD("quantized", "gemm_q4_k", CONSTS(F32, {"A8", 1, NULL}), tile_view(a, m, k),
               tile_view(w, n, k / NUMBERS, BYTES), tile_view(result((size_t)(m * n)), m, n));
}
/* int8 with a scale for each row of W: oneDNN has no fast way for scales of A's rows too. */
static bool prepare_lib_gemm_i8(void)
{
    int64_t m = arg[0], n = arg[1], k = arg[2];
    int8_t *a = bytes(0, (size_t)(m * k)), *w = bytes(1, (size_t)(n * k));
    float *scale = floats(2, (size_t)n, 0, 1);
    nlaunches = 0;
    return ADD("gemm", "gemm_fused",
               CONSTS({"T", 0, "i8"}, {"O", 0, "f32"}, {"o.tb", 1, NULL},
                      {"fuse.column_scale", 1, NULL}),
               tile_view(a, m, k), tile_view(w, n, k), tile_view(result((size_t)(m * n)), m, n),
               NO_VECTOR, tile_view(scale, n), NO_VECTOR, NO_MATRIX, NO_VECTOR,
               tile_f32(0), tile_u64(0));
}

/* ---- attention: h heads, n by d ---- */

#define HEADS F32, {"t.D", d, NULL}, {"o.causal", arg[3], NULL}
/* Its numbers: the scale, and what only other options take. */
#define SCORES                                                                                     \
    tile_f32(1 / sqrtf((float)d)), tile_f32(0), tile_i32(0), tile_i32(0), tile_i32(0),             \
        tile_f32(0), tile_u64(0), tile_i32(0)

static bool prepare_lib_attention(void)
{
    int64_t h = arg[0], n = arg[1], d = arg[2];
    size_t all = (size_t)(h * n * d);
    tile_arg q = tile_view(floats(0, all, -1, 1), 1, h, n, d),
             k = tile_view(floats(1, all, -1, 1), 1, h, n, d),
             v = tile_view(floats(2, all, -1, 1), 1, h, n, d),
             o = tile_view(result(all), 1, h, n, d), lse = tile_view(spare(0, h * n), 1, h, n);
    nlaunches = 0;
    return ADD("attention", "attention", CONSTS(HEADS), q, k, v, o, lse, NO_VECTOR, NO_VECTOR,
               SCORES);
}
/* One query of arg[0] heads, the last of n places; arg[1] heads of keys. */
static bool prepare_lib_decode(void)
{
    int64_t h = arg[0], hk = arg[1], n = arg[2], d = arg[3];
    size_t keys = (size_t)(hk * n * d);
    tile_arg q = tile_view(floats(0, (size_t)(h * d), -1, 1), 1, h, 1, d),
             k = tile_view(floats(1, keys, -1, 1), 1, hk, n, d),
             v = tile_view(floats(2, keys, -1, 1), 1, hk, n, d),
             o = tile_view(result((size_t)(h * d)), 1, h, 1, d),
             lse = tile_view(spare(0, h), 1, h, 1);
    nlaunches = 0;
    return ADD("attention", "attention", CONSTS(F32, {"t.D", d, NULL}, {"o.causal", 1, NULL}), q,
               k, v, o, lse, NO_VECTOR, NO_VECTOR, SCORES);
}
/* The result is dQ. */
static bool prepare_lib_attention_backward(void)
{
    int64_t h = arg[0], n = arg[1], d = arg[2];
    size_t all = (size_t)(h * n * d);
    if (!prepare_lib_attention())
        return false;
    run_library();
    tile_arg *of = launches[0].args, q = of[0], k = of[1], v = of[2], lse = of[4];
    float *kept = spare(1, (int64_t)all);
    memcpy(kept, arena.result, all * sizeof(float));
    tile_arg o = tile_view(kept, 1, h, n, d), up = tile_view(floats(3, all, -1, 1), 1, h, n, d),
             delta = tile_view(spare(2, h * n), 1, h, n), dq = tile_view(result(all), 1, h, n, d),
             dk = tile_view(spare(3, (int64_t)all), 1, h, n, d),
             dv = tile_view(spare(4, (int64_t)all), 1, h, n, d);
    nlaunches = 0;
    return ADD("attention", "attention_backward_delta", CONSTS(F32, {"DV", d, NULL}), o, up, lse,
               delta, NO_VECTOR, NO_VECTOR) &&
           ADD("attention", "attention_backward_dq", CONSTS(HEADS), q, k, v, up, lse, delta, dq,
               NO_VECTOR, SCORES) &&
           ADD("attention", "attention_backward_dkdv", CONSTS(HEADS), q, k, v, up, lse, delta, dk,
               dv, NO_VECTOR, SCORES);
}

/* ---- rows: r of n ---- */

static bool prepare_lib_layer_norm(void)
{
    int64_t r = arg[0], n = arg[1];
    float *x = floats(0, (size_t)(r * n), -4, 4), *w = floats(1, (size_t)n, 0.5f, 1.5f);
    float *b = floats(2, (size_t)n, -1, 1), *y = result((size_t)(r * n));
    nlaunches = 0;
    return ADD("norms", "layer_norm", CONSTS(F32, {"BN", n, NULL}), tile_view(x, r, n), NO_MATRIX,
               tile_view(w, n), tile_view(b, n), tile_view(y, r, n), NO_MATRIX,
               tile_view(spare(0, r), r), tile_view(spare(1, r), r), tile_f32(1e-5f));
}
/* The result is dx. */
static bool prepare_lib_layer_norm_backward(void)
{
    enum { PARTS = 8 };
    int64_t r = arg[0], n = arg[1];
    if (!prepare_lib_layer_norm())
        return false;
    run_library();
    tile_arg *of = launches[0].args, x = of[0], w = of[2], mean = of[6], rstd = of[7];
    float *up = floats(3, (size_t)(r * n), -1, 1), *dx = result((size_t)(r * n));
    tile_arg part_w = tile_view(spare(2, PARTS * n), PARTS, n),
             part_b = tile_view(spare(3, PARTS * n), PARTS, n);
    nlaunches = 0;
    return ADD("norms", "layer_norm_backward", CONSTS(F32, {"BN", n, NULL}), tile_view(up, r, n),
               x, w, mean, rstd, NO_MATRIX, tile_view(dx, r, n), part_w, part_b) &&
           ADD("norms", "sum_parts", CONSTS(F32), part_w, tile_view(spare(4, n), n)) &&
           ADD("norms", "sum_parts", CONSTS(F32), part_b, tile_view(spare(5, n), n));
}
static bool prepare_lib_cross_entropy(void)
{
    int64_t r = arg[0], v = arg[1];
    float *x = floats(0, (size_t)(r * v), -4, 4), *loss = result((size_t)r);
    int32_t *label = ints(1, (size_t)r, (int32_t)v);
    nlaunches = 0;
    return ADD("losses", "cross_entropy", CONSTS(F32), tile_view(x, r, v), tile_view(label, r),
               tile_view(loss, r), tile_view(spare(0, r), r), tile_f32(0), tile_f32(0),
               tile_i32(-1));
}
static bool prepare_lib_cross_entropy_backward(void)
{
    int64_t r = arg[0], v = arg[1];
    if (!prepare_lib_cross_entropy())
        return false;
    run_library();
    tile_arg *of = launches[0].args, x = of[0], label = of[1], lse = of[3];
    float *up = floats(3, (size_t)r, 1, 1), *dx = result((size_t)(r * v));
    nlaunches = 0;
    return ADD("losses", "cross_entropy_backward", CONSTS(F32), x, label, lse, tile_view(up, r),
               tile_view(dx, r, v), tile_f32(0), tile_f32(0), tile_i32(-1));
}
static bool prepare_lib_argmax(void)
{
    int64_t r = arg[0], v = arg[1];
    float *x = floats(0, (size_t)(r * v), -4, 4);
    nlaunches = 0;
    return ADD("sampling", "argmax_rows", CONSTS(F32), tile_view(x, r, v),
               tile_view(int_result((size_t)r), r));
}
static bool prepare_lib_swiglu(void)
{
    int64_t r = arg[0], n = arg[1];
    float *x = floats(0, (size_t)(2 * r * n), -4, 4);
    nlaunches = 0;
    return ADD("layers", "gated", CONSTS(F32), tile_view(x, r, 2 * n),
               tile_view(result((size_t)(r * n)), r, n));
}

/* ---- rope: n places, h heads of d ---- */

static bool prepare_lib_rope(void)
{
    int64_t n = arg[0], h = arg[1], d = arg[2];
    float *x = floats(0, (size_t)(n * h * d), -1, 1), *c = floats(1, (size_t)(n * d / 2), -1, 1);
    float *s = floats(2, (size_t)(n * d / 2), -1, 1), *y = result((size_t)(n * h * d));
    int32_t *place = memory(3, (size_t)n * sizeof *place);
    for (int32_t i = 0; i < n; i++) place[i] = i;
    nlaunches = 0;
    return ADD("layers", "rope", CONSTS(F32, {"D", d, NULL}), tile_view(x, n, h, d),
               tile_view(place, n), tile_view(c, n, d / 2), tile_view(s, n, d / 2),
               tile_view(y, n, h, d));
}

/* ---- embeddings: n rows of d, of a table of v ---- */

static bool prepare_lib_embedding(void)
{
    int64_t n = arg[0], d = arg[1], v = arg[2];
    float *w = floats(0, (size_t)(v * d), -1, 1), *y = result((size_t)(n * d));
    int32_t *id = ints(1, (size_t)n, (int32_t)v);
    nlaunches = 0;
    return ADD("layers", "embedding", CONSTS(F32), tile_view(w, v, d), tile_view(id, n),
               tile_view(y, n, d), tile_f32(1));
}
static bool prepare_lib_embedding_backward(void)
{
    int64_t n = arg[0], d = arg[1], v = arg[2];
    float *up = floats(0, (size_t)(n * d), -1, 1), *dw = result((size_t)(v * d));
    int32_t *id = ints(1, (size_t)n, (int32_t)v);
    nlaunches = 0;
    return ADD("layers", "embedding_backward", CONSTS(F32), tile_view(up, n, d), tile_view(id, n),
               tile_view(dw, v, d), tile_f32(1), tile_i32(-1));
}
static void run_embedding_backward(void)
{
    memset(arena.result, 0, arena.count * sizeof(float));
    run_library();
}
