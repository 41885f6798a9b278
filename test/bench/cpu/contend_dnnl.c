/* oneDNN: products (f32, bf16, i8, with bias and gelu), softmax, layer norm, convolutions. Weights
 * of products are in the plain format, as everybody else gets them: packing counts. */
#include "contender.h"
#include <oneapi/dnnl/dnnl.h>

enum { MAX_MEMORIES = 6 };

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_t primitive;
static dnnl_exec_arg_t args[MAX_MEMORIES];
static int nargs;

static bool open_engine(void)
{
    if (engine)
        return true;
    return (dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success &&
            dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success) ||
           refuse("oneDNN has no engine");
}

/* A dense array; its last axis is innermost. */
static dnnl_memory_desc_t dense(dnnl_data_type_t type, int rank, const long *shape)
{
    dnnl_dims_t dims, strides;
    for (int i = rank - 1; i >= 0; i--) {
        dims[i] = shape[i];
        strides[i] = i == rank - 1 ? 1 : strides[i + 1] * shape[i + 1];
    }
    dnnl_memory_desc_t d;
    dnnl_memory_desc_init_by_strides(&d, rank, dims, type, strides);
    return d;
}

static void give(int which, const dnnl_memory_desc_t *d, void *data)
{
    args[nargs].arg = which;
    dnnl_memory_create(&args[nargs++].memory, d, engine, data);
}

static void forget(void)
{
    for (int i = 0; i < nargs; i++)
        dnnl_memory_destroy(args[i].memory);
    nargs = 0;
    if (primitive)
        dnnl_primitive_destroy(primitive);
    primitive = NULL;
}

static bool make(const void *op, dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t d;
    if (dnnl_primitive_desc_create(&d, op, attr, engine, NULL) != dnnl_success)
        return refuse("oneDNN does not have it on this CPU");
    dnnl_status_t s = dnnl_primitive_create(&primitive, d);
    dnnl_primitive_desc_destroy(d);
    return s == dnnl_success || refuse("oneDNN: no primitive");
}

static void run(void)
{
    if (dnnl_primitive_execute(primitive, stream, nargs, args) != dnnl_success ||
        dnnl_stream_wait(stream) != dnnl_success) {
        fprintf(stderr, "oneDNN failed\n");
        exit(1);
    }
}

/* ---- products: rank 2 m n k, rank 3 l m n k ---- */

static bool product(int rank, const long *size, dnnl_data_type_t from, dnnl_data_type_t to, void *a,
                    void *b, void *c, float *bias)
{
    if (!open_engine())
        return false;
    forget();
    long l = size[0], m = size[rank - 2], n = size[rank - 1], k = size[rank];
    const long sa[] = {l, m, k}, sb[] = {l, k, n}, sc[] = {l, m, n}, sbias[] = {1, n};
    int skip = 3 - rank;
    dnnl_memory_desc_t da = dense(from, rank, sa + skip), db = dense(from, rank, sb + skip);
    dnnl_memory_desc_t dc = dense(to, rank, sc + skip), dbias = dense(dnnl_f32, 2, sbias);
    dnnl_matmul_desc_t d;
    dnnl_primitive_attr_t attr = NULL;
    if (bias) {
        dnnl_post_ops_t ops;
        dnnl_post_ops_create(&ops);
        dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_gelu_erf, 0, 0);
        dnnl_primitive_attr_create(&attr);
        dnnl_primitive_attr_set_post_ops(attr, ops);
        dnnl_post_ops_destroy(ops);
    }
    bool fine = dnnl_matmul_desc_init(&d, &da, &db, bias ? &dbias : NULL, &dc) == dnnl_success
                    ? make(&d, attr)
                    : refuse("oneDNN does not have such a product");
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    if (!fine)
        return false;
    give(DNNL_ARG_SRC, &da, a);
    give(DNNL_ARG_WEIGHTS, &db, b);
    give(DNNL_ARG_DST, &dc, c);
    if (bias)
        give(DNNL_ARG_BIAS, &dbias, bias);
    return true;
}

static bool prepare_matmul(void)
{
    long m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1), *b = floats(1, (size_t)(k * n), -1, 1);
    return product(2, arg, dnnl_f32, dnnl_f32, a, b, result((size_t)(m * n)), NULL);
}
static bool prepare_matmul_gelu(void)
{
    long m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1), *b = floats(1, (size_t)(k * n), -1, 1);
    float *bias = floats(2, (size_t)n, -1, 1);
    return product(2, arg, dnnl_f32, dnnl_f32, a, b, result((size_t)(m * n)), bias);
}
static bool prepare_batched(void)
{
    long l = arg[0], m = arg[1], n = arg[2], k = arg[3];
    float *a = floats(0, (size_t)(l * m * k), -1, 1), *b = floats(1, (size_t)(l * k * n), -1, 1);
    return product(3, arg, dnnl_f32, dnnl_f32, a, b, result((size_t)(l * m * n)), NULL);
}
static bool prepare_matmul_bf16(void)
{
    long m = arg[0], n = arg[1], k = arg[2];
    uint16_t *a = bfloats(0, (size_t)(m * k)), *b = bfloats(1, (size_t)(k * n));
    return product(2, arg, dnnl_bf16, dnnl_f32, a, b, result((size_t)(m * n)), NULL);
}
static bool prepare_matmul_i8(void)
{
    long m = arg[0], n = arg[1], k = arg[2];
    int8_t *a = bytes(0, (size_t)(m * k)), *b = bytes(1, (size_t)(k * n));
    return product(2, arg, dnnl_s8, dnnl_s32, a, b, int_result((size_t)(m * n)), NULL);
}

/* C = A W^T, W in rows of k; with scales, times one of its column. */
static bool linear(dnnl_data_type_t from, void *a, void *w, float *of_w)
{
    if (!open_engine())
        return false;
    forget();
    long m = arg[0], n = arg[1], k = arg[2];
    const long sa[] = {m, k}, sc[] = {m, n};
    dnnl_memory_desc_t da = dense(from, 2, sa), dc = dense(dnnl_f32, 2, sc), dw;
    dnnl_memory_desc_init_by_strides(&dw, 2, (dnnl_dims_t){k, n}, from, (dnnl_dims_t){1, k});
    dnnl_matmul_desc_t d;
    dnnl_primitive_attr_t attr = NULL;
    if (of_w) {
        dnnl_primitive_attr_create(&attr);
        dnnl_primitive_attr_set_output_scales(attr, n, 1 << 1, of_w);
    }
    bool fine = dnnl_matmul_desc_init(&d, &da, &dw, NULL, &dc) == dnnl_success
                    ? make(&d, attr)
                    : refuse("oneDNN does not have such a product");
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    if (!fine)
        return false;
    give(DNNL_ARG_SRC, &da, a);
    give(DNNL_ARG_WEIGHTS, &dw, w);
    give(DNNL_ARG_DST, &dc, result((size_t)(m * n)));
    return true;
}
static bool prepare_lib_gemm(void)
{
    long m = arg[0], n = arg[1], k = arg[2];
    float *a = floats(0, (size_t)(m * k), -1, 1), *w = floats(1, (size_t)(n * k), -1, 1);
    return linear(dnnl_f32, a, w, NULL);
}
static bool prepare_lib_gemm_bf16(void)
{
    long m = arg[0], n = arg[1], k = arg[2];
    uint16_t *a = bfloats(0, (size_t)(m * k)), *w = bfloats(1, (size_t)(n * k));
    return linear(dnnl_bf16, a, w, NULL);
}
static bool prepare_lib_gemm_i8(void)
{
    long m = arg[0], n = arg[1], k = arg[2];
    int8_t *a = bytes(0, (size_t)(m * k)), *w = bytes(1, (size_t)(n * k));
    return linear(dnnl_s8, a, w, floats(2, (size_t)n, 0, 1));
}

/* ---- rows ---- */

static bool prepare_softmax(void)
{
    if (!open_engine())
        return false;
    forget();
    float *x = floats(0, (size_t)(arg[0] * arg[1]), -4, 4);
    dnnl_memory_desc_t d = dense(dnnl_f32, 2, arg);
    dnnl_softmax_v2_desc_t op;
    if (dnnl_softmax_v2_forward_desc_init(&op, dnnl_forward_inference, dnnl_softmax_accurate, &d,
                                          &d, 1) != dnnl_success)
        return refuse("oneDNN: no softmax");
    if (!make(&op, NULL))
        return false;
    give(DNNL_ARG_SRC, &d, x);
    give(DNNL_ARG_DST, &d, result((size_t)(arg[0] * arg[1])));
    return true;
}

static bool prepare_layer_norm(void)
{
    if (!open_engine())
        return false;
    forget();
    size_t n = (size_t)arg[1];
    float *x = floats(0, (size_t)arg[0] * n, -4, 4), *w = floats(1, n, 0.5f, 1.5f);
    float *b = floats(2, n, -1, 1);
    dnnl_memory_desc_t d = dense(dnnl_f32, 2, arg), row = dense(dnnl_f32, 1, arg + 1);
    dnnl_layer_normalization_desc_t op;
    if (dnnl_layer_normalization_forward_desc_init(&op, dnnl_forward_inference, &d, NULL, 1e-5f,
                                                   dnnl_use_scale | dnnl_use_shift) != dnnl_success)
        return refuse("oneDNN: no layer norm");
    if (!make(&op, NULL))
        return false;
    give(DNNL_ARG_SRC, &d, x);
    give(DNNL_ARG_SCALE, &row, w);
    give(DNNL_ARG_SHIFT, &row, b);
    give(DNNL_ARG_DST, &d, result((size_t)arg[0] * n));
    return true;
}

/* ---- convolutions of images, channels innermost: n images of h x h x i, o filters of 3 x 3, a
 * border of one, a stride. The filters are packed as oneDNN likes it, before the clock runs.
 * ---- */

static dnnl_primitive_t packing(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to)
{
    dnnl_primitive_desc_t d;
    dnnl_primitive_t p = NULL;
    if (dnnl_reorder_primitive_desc_create(&d, from, engine, to, engine, NULL) == dnnl_success) {
        dnnl_primitive_create(&p, d);
        dnnl_primitive_desc_destroy(d);
    }
    return p;
}

/* `to` is the descriptor that the primitive asks for; the memory is freed by the next forget(). */
static bool pack(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to, void *filters)
{
    dnnl_memory_t source;
    dnnl_primitive_t p = packing(from, to);
    if (!p)
        return refuse("oneDNN does not pack these filters");
    dnnl_memory_create(&source, from, engine, filters);
    give(DNNL_ARG_WEIGHTS, to, DNNL_MEMORY_ALLOCATE);
    dnnl_exec_arg_t both[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, args[nargs - 1].memory}};
    bool fine = dnnl_primitive_execute(p, stream, 2, both) == dnnl_success;
    dnnl_stream_wait(stream);
    dnnl_primitive_destroy(p);
    dnnl_memory_destroy(source);
    return fine || refuse("oneDNN cannot pack");
}

static bool prepare_conv2d(void)
{
    if (!open_engine())
        return false;
    forget();
    long n = arg[0], h = arg[1], i = arg[2], o = arg[3], step = arg[4], p = (h - 1) / step + 1;
    float *x = floats(0, (size_t)(n * h * h * i), -1, 1),
          *f = floats(1, (size_t)(9 * i * o), -1, 1);
    dnnl_dims_t xs = {n, i, h, h}, ws = {o, i, 3, 3}, ys = {n, o, p, p}, strides = {step, step};
    dnnl_dims_t before = {1, 1}, after = {(p - 1) * step + 2 - h, (p - 1) * step + 2 - h};
    dnnl_memory_desc_t dx, dw, any, dy;
    dnnl_memory_desc_init_by_tag(&dx, 4, xs, dnnl_f32, dnnl_nhwc);
    dnnl_memory_desc_init_by_tag(&dw, 4, ws, dnnl_f32, dnnl_hwio);
    dnnl_memory_desc_init_by_tag(&any, 4, ws, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&dy, 4, ys, dnnl_f32, dnnl_nhwc);
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t d;
    if (dnnl_convolution_forward_desc_init(&op, dnnl_forward_inference, dnnl_convolution_direct,
                                           &dx, &any, NULL, &dy, strides, before,
                                           after) != dnnl_success ||
        dnnl_primitive_desc_create(&d, &op, NULL, engine, NULL) != dnnl_success)
        return refuse("oneDNN does not have such a convolution");
    bool fine = dnnl_primitive_create(&primitive, d) == dnnl_success &&
                pack(&dw, dnnl_primitive_desc_query_md(d, dnnl_query_weights_md, 0), f);
    dnnl_primitive_desc_destroy(d);
    give(DNNL_ARG_SRC, &dx, x);
    give(DNNL_ARG_DST, &dy, result((size_t)(n * p * p * o)));
    return fine;
}

const Work works[] = {
    {"matmul", prepare_matmul, run},         {"matmul_gelu", prepare_matmul_gelu, run},
    {"batched", prepare_batched, run},       {"matmul_bf16", prepare_matmul_bf16, run},
    {"matmul_i8", prepare_matmul_i8, run},   {"softmax", prepare_softmax, run},
    {"layer_norm", prepare_layer_norm, run}, {"conv2d", prepare_conv2d, run},
    {"lib_gemm", prepare_lib_gemm, run},     {"lib_gemm_i8", prepare_lib_gemm_i8, run},
    {"lib_gemm_nn", prepare_matmul, run},    {"lib_gemm_bf16", prepare_lib_gemm_bf16, run},
    {"lib_gemm_split_k", prepare_matmul, run},
};
const size_t nworks = sizeof works / sizeof *works;
