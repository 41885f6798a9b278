/* The operators: attributes, shapes, launches, and the table of them.
 *
 * Names and meanings are those of ONNX (Gelu, RMSNormalization, Attention) and of ONNX Runtime's
 * com.microsoft (MatMulNBits), so a model changes nothing but the domain of a node. */
#include "tile_onnx.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *type_name(tile_dtype type)
{
    return type == TILE_F32    ? "f32"
           : type == TILE_F16  ? "f16"
           : type == TILE_BF16 ? "bf16"
                               : NULL;
}

/* ---- help ---- */

__attribute__((format(printf, 2, 3))) static bool refuse(Fault *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return false;
}

/* "[2, 3]" */
static const char *shape_text(const Tensor *t, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < t->rank && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? ", " : "",
                               (long long)t->extent[i]);
    if (at < size) snprintf(text + at, size - at, "]");
    return text;
}
#define SHAPE(t) shape_text((t), (char[128]){""}, 128)

static int64_t product(const int64_t *extent, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= extent[i];
    return n;
}

static int64_t elements(const Tensor *t)
{
    return product(t->extent, 0, t->rank);
}

static bool same_shape(const Tensor *a, const Tensor *b)
{
    return a->rank == b->rank &&
           !memcmp(a->extent, b->extent, (size_t)a->rank * sizeof *a->extent);
}

static void set_const(Launch *l, const char *name, int64_t value, const char *text)
{
    l->consts[l->nconsts++] = (tile_const){name, value, text};
}

static void add_arg(Launch *l, tile_arg arg)
{
    l->args[l->nargs++] = arg;
}

/* A row of numbers, of any type; n is 0: there are none. */
static void add_line(Launch *l, tile_dtype type, const void *data, int64_t n)
{
    add_arg(l, tile_arg_view(n ? data : NULL, type, 1, n, 0, 0, 0, 0, 0, 0, 0));
}

static void add_matrix(Launch *l, tile_dtype type, const void *data, int64_t rows, int64_t columns)
{
    add_arg(l, tile_arg_view(rows ? data : NULL, type, 2, rows, columns, 0, 0, 0, 0, 0, 0));
}

static int64_t multiple_above(int64_t n, int64_t step)
{
    return n <= step ? step : (n + step - 1) / step * step;
}

static int64_t power_above(int64_t n)
{
    int64_t p = 16;
    while (p < n) p *= 2;
    return p;
}

static bool shape_of_first(const Settings *s, const Tensor *in, Tensor *out, Fault *why)
{
    (void)s;
    (void)why;
    out->rank = in[0].rank;
    memcpy(out->extent, in[0].extent, sizeof out->extent);
    return true;
}

/* ---- Gelu(X): x Phi(x), or with approximate = "tanh" its approximation (ONNX 20) ---- */

static bool read_gelu(Attributes *a, Settings *s, Fault *why)
{
    const char *approximate = a->text(a->node, "approximate", "none");
    if (!strcmp(approximate, "none"))
        s->function = "activation.gelu";
    else if (!strcmp(approximate, "tanh"))
        s->function = "activation.gelu_tanh";
    else
        return refuse(why, "approximate is \"%s\", but \"none\" and \"tanh\" are what there is",
                      approximate);
    return true;
}

static void launch_gelu(const Settings *s, const Tensor *in, const Tensor *out, Launch *l)
{
    l->module = "std.kernels.elementwise";
    l->kernel = "unary";
    set_const(l, "T", 0, type_name(s->type));
    set_const(l, "A", 0, "f32");
    set_const(l, "f", 0, s->function);
    add_line(l, s->type, in[0].data, elements(out));
    add_line(l, s->type, out->data, elements(out));
}

/* ---- Gated(gate, value): activation(gate) value, in one pass ---- */

static bool read_gated(Attributes *a, Settings *s, Fault *why)
{
    static const char *const KNOWN[][2] = {{"silu", "activation.swiglu"},
                                           {"gelu", "activation.geglu"},
                                           {"gelu_tanh", "activation.geglu_tanh"},
                                           {"relu", "activation.reglu"},
                                           {"sigmoid", "activation.glu"}};
    const char *name = a->text(a->node, "activation", "silu");
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (!strcmp(KNOWN[i][0], name)) s->function = KNOWN[i][1];
    return s->function || refuse(why, "activation is \"%s\", but silu, gelu, gelu_tanh, relu and "
                                      "sigmoid are what there is", name);
}

static bool shape_gated(const Settings *s, const Tensor *in, Tensor *out, Fault *why)
{
    if (!same_shape(&in[0], &in[1]))
        return refuse(why, "gate is %s and value %s, but they must have one shape", SHAPE(&in[0]),
                      SHAPE(&in[1]));
    return shape_of_first(s, in, out, why);
}

static void launch_gated(const Settings *s, const Tensor *in, const Tensor *out, Launch *l)
{
    l->module = "std.kernels.elementwise";
    l->kernel = "binary";
    set_const(l, "T", 0, type_name(s->type));
    set_const(l, "A", 0, "f32");
    set_const(l, "f", 0, s->function);
    add_line(l, s->type, in[0].data, elements(out));
    add_line(l, s->type, in[1].data, elements(out));
    add_line(l, s->type, out->data, elements(out));
}

/* ---- RMSNormalization(X, scale): x / sqrt(mean(x^2) + epsilon) scale (ONNX 23) ---- */

enum { LONGEST_ROW = 1 << 20 };

static bool read_norm(Attributes *a, Settings *s, Fault *why)
{
    s->axis = a->integer(a->node, "axis", -1);
    s->real = a->real(a->node, "epsilon", 1e-5f);
    const int64_t stash = a->integer(a->node, "stash_type", 1);
    return stash == 1 || refuse(why, "stash_type is %lld, but 1 (f32) is what there is",
                                (long long)stash);
}

static int first_axis(const Settings *s, const Tensor *x)
{
    return (int)(s->axis < 0 ? s->axis + x->rank : s->axis);
}

static bool shape_norm(const Settings *s, const Tensor *in, Tensor *out, Fault *why)
{
    const Tensor *x = &in[0], *w = &in[1];
    const int axis = first_axis(s, x);
    if (axis < 0 || axis >= x->rank)
        return refuse(why, "axis is %lld, but X is %s", (long long)s->axis, SHAPE(x));
    const int64_t n = product(x->extent, axis, x->rank);
    if (n > LONGEST_ROW)
        return refuse(why, "a row has %lld elements, at most %d are what there is", (long long)n,
                      LONGEST_ROW);
    if (w->rank != x->rank - axis ||
        memcmp(w->extent, x->extent + axis, (size_t)w->rank * sizeof *w->extent))
        return refuse(why, "scale is %s, but X is %s and axis %lld", SHAPE(w), SHAPE(x),
                      (long long)s->axis);
    return shape_of_first(s, in, out, why);
}

static void launch_norm(const Settings *s, const Tensor *in, const Tensor *out, Launch *l)
{
    const int axis = first_axis(s, &in[0]);
    const int64_t m = product(out->extent, 0, axis), n = product(out->extent, axis, out->rank);
    l->module = "std.kernels.rows";
    l->kernel = "rms_norm_rows";
    set_const(l, "T", 0, type_name(s->type));
    set_const(l, "BN", multiple_above(n, 64), NULL);
    add_matrix(l, s->type, in[0].data, m, n);
    add_line(l, s->type, in[1].data, n);
    add_matrix(l, s->type, out->data, m, n);
    add_line(l, TILE_F32, NULL, 0);
    add_arg(l, tile_f32(s->real));
    add_arg(l, tile_f32(0));
}

/* ---- Attention(Q, K, V, attn_mask): of ONNX 23, without a cache or second outputs ---- */

enum { LARGEST_HEAD = 256 };

static bool read_attention(Attributes *a, Settings *s, Fault *why)
{
    s->causal = a->integer(a->node, "is_causal", 0) != 0;
    s->real = a->real(a->node, "scale", 0);
    s->cap = a->real(a->node, "softcap", 0);
    s->heads = a->integer(a->node, "q_num_heads", 0);
    s->key_heads = a->integer(a->node, "kv_num_heads", 0);
    if (a->integer(a->node, "qk_matmul_output_mode", 0) != 0)
        return refuse(why, "qk_matmul_output_mode is set, but there is one output");
    const int64_t precision = a->integer(a->node, "softmax_precision", 1);
    if (precision != 1)
        return refuse(why, "softmax_precision is %lld, but 1 (f32) is what there is",
                      (long long)precision);
    if (!s->heads != !s->key_heads || s->heads < 0 || s->key_heads < 0)
        return refuse(why, "q_num_heads is %lld and kv_num_heads %lld", (long long)s->heads,
                      (long long)s->key_heads);
    return true;
}

/* Queries, keys or values as [B, H, M, D] with strides, of heads side by side too. */
typedef struct Heads {
    int64_t extent[4], stride[4];
} Heads;

static bool heads_of(const Tensor *t, int64_t heads, Heads *h)
{
    const int64_t *e = t->extent;
    if (t->rank == 4) {
        *h = (Heads){{e[0], e[1], e[2], e[3]}, {e[1] * e[2] * e[3], e[2] * e[3], e[3], 1}};
        return true;
    }
    if (t->rank != 3 || !heads || e[2] % heads) return false;
    const int64_t d = e[2] / heads;
    *h = (Heads){{e[0], heads, e[1], d}, {e[1] * e[2], d, e[2], 1}};
    return true;
}

/* The mask with an extent of 1 for all: [B, H, M, N]; its last axis must be whole. */
static bool mask_of(const Tensor *t, const int64_t *extent, Heads *h)
{
    if (t->rank < 2 || t->rank > 4) return false;
    int64_t step = 1;
    for (int i = 3; i >= 0; i--) {
        const int at = i - (4 - t->rank);
        const int64_t e = at < 0 ? 1 : t->extent[at];
        if (e != extent[i] && (e != 1 || i == 3)) return false;
        h->extent[i] = extent[i];
        h->stride[i] = e == 1 && i < 3 ? 0 : step;
        step *= e;
    }
    return true;
}

static bool shape_attention(const Settings *s, const Tensor *in, Tensor *out, Fault *why)
{
    const Tensor *mask = &in[3];
    Heads q, k, v, m;
    if (in[0].rank != in[1].rank || in[0].rank != in[2].rank ||
        !heads_of(&in[0], s->heads, &q) || !heads_of(&in[1], s->key_heads, &k) ||
        !heads_of(&in[2], s->key_heads, &v))
        return refuse(why, "Q is %s, K %s and V %s, but they must be [B, H, M, D], or [B, M, H D] "
                           "with q_num_heads and kv_num_heads",
                      SHAPE(&in[0]), SHAPE(&in[1]), SHAPE(&in[2]));
    if (q.extent[0] != k.extent[0] || q.extent[0] != v.extent[0] || k.extent[1] != v.extent[1] ||
        k.extent[2] != v.extent[2] || q.extent[3] != k.extent[3])
        return refuse(why, "Q is %s, K %s and V %s, which do not go together", SHAPE(&in[0]),
                      SHAPE(&in[1]), SHAPE(&in[2]));
    if (!k.extent[1] || q.extent[1] % k.extent[1])
        return refuse(why, "%lld heads of queries cannot share %lld heads of keys",
                      (long long)q.extent[1], (long long)k.extent[1]);
    if (q.extent[3] > LARGEST_HEAD || v.extent[3] > LARGEST_HEAD)
        return refuse(why, "heads have %lld and %lld elements, at most %d are what there is",
                      (long long)q.extent[3], (long long)v.extent[3], LARGEST_HEAD);
    if (mask->rank >= 0 &&
        !mask_of(mask, (int64_t[]){q.extent[0], q.extent[1], q.extent[2], k.extent[2]}, &m))
        return refuse(why, "attn_mask is %s, but there are %lld queries and %lld keys in %lld "
                           "heads", SHAPE(mask), (long long)q.extent[2], (long long)k.extent[2],
                      (long long)q.extent[1]);
    shape_of_first(s, in, out, why);
    out->extent[out->rank - 1] = out->rank == 4 ? v.extent[3] : q.extent[1] * v.extent[3];
    return true;
}

static void add_heads(Launch *l, tile_dtype type, const Tensor *t, const Heads *h)
{
    add_arg(l, tile_arg_view_strided(t->data, type, 4, h->extent, h->stride));
}

static void launch_attention(const Settings *s, const Tensor *in, const Tensor *out, Launch *l)
{
    const bool masked = in[3].rank >= 0;
    Heads q, k, v, o, m = {{0}, {0}};
    heads_of(&in[0], s->heads, &q);
    heads_of(&in[1], s->key_heads, &k);
    heads_of(&in[2], s->key_heads, &v);
    heads_of(out, s->heads, &o);
    const int64_t queries = q.extent[2], keys = k.extent[2];
    if (masked) mask_of(&in[3], (int64_t[]){q.extent[0], q.extent[1], queries, keys}, &m);
    l->module = "std.kernels.attention";
    l->kernel = "attention_any";
    set_const(l, "T", 0, type_name(s->type));
    set_const(l, "t.D", power_above(q.extent[3]), NULL);
    set_const(l, "t.DV", power_above(v.extent[3]), NULL);
    set_const(l, "t.BM", queries == 1 ? 1 : queries <= 16 ? 16 : queries <= 32 ? 32 : 64, NULL);
    set_const(l, "t.BN", keys <= 16 ? 16 : keys <= 32 ? 32 : 64, NULL);
    set_const(l, "o.causal", s->causal, NULL);
    set_const(l, "o.softcap", s->cap > 0, NULL);
    set_const(l, "o.mask", masked, NULL);
    add_heads(l, s->type, &in[0], &q);
    add_heads(l, s->type, &in[1], &k);
    add_heads(l, s->type, &in[2], &v);
    add_heads(l, s->type, out, &o);
    add_heads(l, s->type, masked ? &in[3] : &(Tensor){.data = NULL}, &m);
    add_arg(l, tile_arg_view(NULL, TILE_F32, 3, 0, 0, 0, 0, 0, 0, 0, 0)); /* lse */
    add_line(l, TILE_F32, NULL, 0);                                       /* slopes */
    add_line(l, TILE_F32, NULL, 0);                                       /* sinks */
    add_arg(l, tile_f32(s->real != 0 ? s->real : 1 / sqrtf((float)q.extent[3])));
    add_arg(l, tile_f32(s->cap > 0 ? s->cap : 1));
    for (int i = 0; i < 3; i++) add_arg(l, tile_i32(i < 2 ? 0 : 16)); /* left, longest, page */
    add_arg(l, tile_f32(0));                                          /* no dropout */
    add_arg(l, tile_u64(0));
    add_arg(l, tile_i32((int32_t)(queries - keys))); /* query i is at place i */
}

/* ---- MatMulNBits(A, B, scales, zero_points, g_idx, bias): ONNX Runtime's ---- */

static bool read_bits(Attributes *a, Settings *s, Fault *why)
{
    s->k = a->integer(a->node, "K", 0);
    s->n = a->integer(a->node, "N", 0);
    s->bits = a->integer(a->node, "bits", 4);
    s->block = a->integer(a->node, "block_size", 0);
    if (s->k < 1 || s->n < 1)
        return refuse(why, "K is %lld and N %lld", (long long)s->k, (long long)s->n);
    if (s->bits != 4 && s->bits != 8)
        return refuse(why, "bits is %lld, but 4 and 8 are what there is", (long long)s->bits);
    if (s->block < 16 || s->block > 256 || s->block & (s->block - 1))
        return refuse(why, "block_size is %lld, but it must be 16, 32, 64, 128 or 256",
                      (long long)s->block);
    return true;
}

static int64_t blocks_of(const Settings *s)
{
    return (s->k + s->block - 1) / s->block;
}

/* Of a row's zeros, one for each block. */
static int64_t zero_bytes(const Settings *s)
{
    return (blocks_of(s) * s->bits + 7) / 8;
}

static bool shape_bits(const Settings *s, const Tensor *in, Tensor *out, Fault *why)
{
    const Tensor *x = &in[0], *w = &in[1], *scale = &in[2], *zero = &in[3], *bias = &in[5];
    const int64_t row = blocks_of(s) * s->block * s->bits / 8;
    if (x->rank < 1 || x->extent[x->rank - 1] != s->k)
        return refuse(why, "A is %s, but K is %lld", SHAPE(x), (long long)s->k);
    if (w->rank < 1 || w->extent[0] != s->n || elements(w) != s->n * row)
        return refuse(why, "B is %s, but it must be [%lld, %lld, %lld]", SHAPE(w), (long long)s->n,
                      (long long)blocks_of(s), (long long)(s->block * s->bits / 8));
    if (elements(scale) != s->n * blocks_of(s))
        return refuse(why, "scales is %s, but it must be [%lld, %lld]", SHAPE(scale),
                      (long long)s->n, (long long)blocks_of(s));
    if (zero->rank >= 0 && elements(zero) != s->n * zero_bytes(s))
        return refuse(why, "zero_points is %s, but it must be [%lld, %lld]", SHAPE(zero),
                      (long long)s->n, (long long)zero_bytes(s));
    if (in[4].rank >= 0) return refuse(why, "g_idx is given, but blocks are in their order");
    if (bias->rank >= 0 && (bias->rank != 1 || bias->extent[0] != s->n))
        return refuse(why, "bias is %s, but N is %lld", SHAPE(bias), (long long)s->n);
    shape_of_first(s, in, out, why);
    out->extent[out->rank - 1] = s->n;
    return true;
}

static void launch_bits(const Settings *s, const Tensor *in, const Tensor *out, Launch *l)
{
    const bool zero = in[3].rank >= 0, bias = in[5].rank >= 0;
    const int64_t m = product(out->extent, 0, out->rank - 1), blocks = blocks_of(s);
    l->module = KERNEL_DIR "/onnx.tile";
    l->kernel = "matmul_nbits";
    set_const(l, "T", 0, type_name(s->type));
    set_const(l, "BITS", s->bits, NULL);
    set_const(l, "EACH", s->block, NULL);
    set_const(l, "ZERO", zero, NULL);
    set_const(l, "BIAS", bias, NULL);
    set_const(l, "BM", m == 1 ? 1 : m <= 4 ? 4 : m <= 16 ? 16 : 64, NULL);
    add_matrix(l, s->type, in[0].data, m, s->k);
    add_arg(l, tile_view_typed(TILE_U8, in[1].data, s->n, blocks, s->block * s->bits / 8));
    add_matrix(l, s->type, in[2].data, s->n, blocks);
    add_matrix(l, TILE_U8, in[3].data, zero ? s->n : 0, zero ? zero_bytes(s) : 0);
    add_line(l, s->type, in[5].data, bias ? s->n : 0);
    add_matrix(l, s->type, out->data, m, s->n);
}

/* ---- all of them ---- */

const Operator OPERATORS[] = {
    {"Gelu", 1, 1, "T", read_gelu, shape_of_first, launch_gelu},
    {"Gated", 2, 2, "TT", read_gated, shape_gated, launch_gated},
    {"RMSNormalization", 2, 2, "TT", read_norm, shape_norm, launch_norm},
    {"Attention", 3, 4, "TTTT", read_attention, shape_attention, launch_attention},
    {"MatMulNBits", 3, 6, "TuTuiT", read_bits, shape_bits, launch_bits},
};
const int OPERATORS_COUNT = sizeof OPERATORS / sizeof *OPERATORS;
