/* Nodes of ggml's graphs as launches of the kernels in ggml.tile. A table has a row for each
 * operation: whether a kernel takes this node, and its launches.
 *
 * ggml names extents from the innermost; views name them from the outermost. */
#include "tile_ggml.h"
#include <tilec.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ggml_tensor Node;

/* ---- formats ---- */

/* What the language calls a type of ggml, or the function that reads blocks of it (std.ggml), and a
 * kernel of std.kernels.quantized that multiplies these as integers, with activations that are
 * rounded to 8 bits, or NULL. */
typedef struct Format {
    enum ggml_type type;
    tile_dtype dtype;
    const char *name, *decode, *integer;
} Format;
static const Format FORMATS[] = {
    {GGML_TYPE_F32, TILE_F32, "f32", NULL, NULL},
    {GGML_TYPE_F16, TILE_F16, "f16", NULL, NULL},
    {GGML_TYPE_BF16, TILE_BF16, "bf16", NULL, NULL},
    {GGML_TYPE_I32, TILE_I32, "i32", NULL, NULL},
    {GGML_TYPE_I64, TILE_I64, "i64", NULL, NULL},
    {GGML_TYPE_Q4_0, TILE_U8, NULL, "ggml.from_q4_0", "gemm_q4_0"},
    {GGML_TYPE_Q4_1, TILE_U8, NULL, "ggml.from_q4_1", NULL},
    {GGML_TYPE_Q5_0, TILE_U8, NULL, "ggml.from_q5_0", NULL},
    {GGML_TYPE_Q5_1, TILE_U8, NULL, "ggml.from_q5_1", NULL},
    {GGML_TYPE_Q8_0, TILE_U8, NULL, "ggml.from_q8_0", "gemm_q8_0"},
    {GGML_TYPE_Q2_K, TILE_U8, NULL, "ggml.from_q2_k", NULL},
    {GGML_TYPE_Q3_K, TILE_U8, NULL, "ggml.from_q3_k", NULL},
    {GGML_TYPE_Q4_K, TILE_U8, NULL, "ggml.from_q4_k", "gemm_q4_k"},
    {GGML_TYPE_Q5_K, TILE_U8, NULL, "ggml.from_q5_k", NULL},
    {GGML_TYPE_Q6_K, TILE_U8, NULL, "ggml.from_q6_k", NULL},
    {GGML_TYPE_IQ4_NL, TILE_U8, NULL, "ggml.from_iq4_nl", NULL},
    {GGML_TYPE_IQ4_XS, TILE_U8, NULL, "ggml.from_iq4_xs", NULL},
    {GGML_TYPE_MXFP4, TILE_U8, NULL, "ggml.from_mxfp4", NULL},
};

static const Format *format_of(const Node *t)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (FORMATS[i].type == t->type) return &FORMATS[i];
    return NULL;
}

static bool is_float(const Node *t)
{
    return t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_BF16;
}

static bool is_f32(const Node *t)
{
    return t->type == GGML_TYPE_F32;
}

/* Do the elements of a row lie side by side? */
static bool has_rows(const Node *t)
{
    return t->nb[0] == ggml_type_size(t->type);
}

static bool are_f32_rows(const Node *a, const Node *b)
{
    return is_f32(a) && is_f32(b) && has_rows(a) && has_rows(b);
}

/* ---- views ---- */

static tile_arg part_of(const Node *t, const int64_t *ne, size_t first, size_t step)
{
    const int64_t size = (int64_t)ggml_type_size(t->type),
                  extent[] = {ne[3], ne[2], ne[1], ne[0]},
                  stride[] = {(int64_t)t->nb[3] / size, (int64_t)t->nb[2] / size,
                              (int64_t)t->nb[1] / size, (int64_t)(t->nb[0] / (size_t)size * step)};
    return tile_arg_view_strided((char *)t->data + first * t->nb[0], format_of(t)->dtype, 4, extent,
                                 stride);
}

static tile_arg view(const Node *t)
{
    return part_of(t, t->ne, 0, 1);
}

/* With a fifth extent: the bytes of a block. */
static tile_arg view_blocks(const Node *t)
{
    const int64_t bytes = (int64_t)ggml_type_size(t->type),
                  blocks = t->ne[0] / ggml_blck_size(t->type),
                  extent[] = {t->ne[3], t->ne[2], t->ne[1], blocks, bytes},
                  stride[] = {(int64_t)t->nb[3], (int64_t)t->nb[2], (int64_t)t->nb[1], bytes, 1};
    return tile_arg_view_strided(t->data, TILE_U8, 5, extent, stride);
}

/* As large as `like`: an extent of 1 serves all. */
static tile_arg view_spread(const Node *t, const Node *like)
{
    tile_arg v = view(t);
    for (int i = 0; i < 4; i++) {
        if (v.extent[i] == 1) v.stride[i] = 0;
        v.extent[i] = like->ne[3 - i];
    }
    return v;
}

static tile_arg no_view(tile_dtype type)
{
    return tile_arg_view(NULL, type, 4, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* Of a row of numbers, or of none. */
static tile_arg view_line(const Node *t, tile_dtype type)
{
    return t ? tile_arg_view(t->data, type, 1, t->ne[0], 0, 0, 0, 0, 0, 0, 0)
             : tile_arg_view(NULL, type, 1, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* ---- kernels ---- */

enum { MOST_CONSTS = 5, MOST_KERNELS = 256 };

typedef struct Variant {
    const char *name;
    tile_const consts[MOST_CONSTS];
    tile_kernel *kernel;
} Variant;

enum { MOST_ARGS = 12 };

struct Launch {
    tile_kernel *kernel;
    size_t n;
    tile_arg args[MOST_ARGS];
};

struct Kernels {
    tile_device *device;
    tile_module *module, *quantized; /* ggml.tile, and of the library */
    int n, count, room;
    Launch *launch;
    Variant variant[MOST_KERNELS];
};

/* Its own pool is of one thread: launches run in ggml's. */
Kernels *kernels_open(void)
{
    Kernels *k = calloc(1, sizeof *k);
    tile_device_options options = TILE_DEVICE_OPTIONS_INIT;
    options.threads = 1;
    static const char library[] = "std.kernels.quantized";
    size_t size = 0;
    const char *text = tilec_library_text(library, &size);
    if (k && (tile_device_open_with("cpu", &options, &k->device) ||
              tile_module_load_file(k->device, KERNEL_DIR "/ggml.tile", NULL, &k->module) ||
              tile_module_load_source(k->device, library, text, size, NULL, &k->quantized))) {
        kernels_close(k);
        k = NULL;
    }
    return k;
}

void kernels_close(Kernels *k)
{
    if (!k) return;
    tile_module_free(k->module);
    tile_module_free(k->quantized);
    tile_device_close(k->device);
    free(k->launch);
    free(k);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_consts(const tile_const *a, const tile_const *b)
{
    while (a->name && b->name && a->value == b->value && same_text(a->name, b->name) &&
           same_text(a->text, b->text))
        a++, b++;
    return !a->name && !b->name;
}

static tile_kernel *kernel(Kernels *k, tile_module *module, const char *name,
                           const tile_const *consts)
{
    for (int i = 0; i < k->n; i++)
        if (same_text(k->variant[i].name, name) && same_consts(k->variant[i].consts, consts))
            return k->variant[i].kernel;
    Variant v = {.name = name};
    for (int i = 0; consts[i].name; i++) v.consts[i] = consts[i];
    if (tile_kernel_get(module, name, consts, &v.kernel)) return NULL;
    if (k->n < MOST_KERNELS) k->variant[k->n++] = v;
    return v.kernel;
}

#define CONSTS(...) ((const tile_const[MOST_CONSTS]){__VA_ARGS__})
#define ADD_OF(k, module, name, consts, ...)                                                       \
    add((k), (module), (name), (consts), (const tile_arg[]){__VA_ARGS__},                          \
        sizeof((const tile_arg[]){__VA_ARGS__}) / sizeof(tile_arg))
#define ADD(k, name, consts, ...) ADD_OF(k, (k)->module, name, consts, __VA_ARGS__)

static Launch *new_launch(Kernels *k)
{
    if (k->count == k->room) {
        const int room = k->room ? 2 * k->room : 64;
        Launch *more = realloc(k->launch, (size_t)room * sizeof *more);
        if (!more) {
            tile_set_last_error(TILE_NO_MEMORY, "out of memory");
            return NULL;
        }
        k->launch = more;
        k->room = room;
    }
    return &k->launch[k->count++];
}

static bool add(Kernels *k, tile_module *module, const char *name, const tile_const *consts,
                const tile_arg *args, size_t n)
{
    if (n > MOST_ARGS) {
        tile_set_last_error(TILE_BAD_ARGUMENT, "a launch of more arguments than MOST_ARGS");
        return false;
    }
    tile_kernel *f = kernel(k, module, name, consts);
    Launch *l = f && !tile_launch_prepare(f, args, n, NULL) ? new_launch(k) : NULL;
    if (!l) return false;
    l->kernel = f;
    l->n = n;
    memcpy(l->args, args, n * sizeof *args);
    return true;
}

bool kernels_run(const Launch *l, int part, int parts)
{
    return !tile_launch_part(l->kernel, l->args, l->n, (uint32_t)part, (uint32_t)parts);
}

void kernels_clear(Kernels *k)
{
    k->count = 0;
}

int kernels_count(const Kernels *k)
{
    return k->count;
}

Launch *kernels_launch(Kernels *k, int i)
{
    return &k->launch[i];
}

/* ---- parameters of nodes ---- */

static float real(const Node *n, int i)
{
    float f;
    memcpy(&f, &n->op_params[i], sizeof f);
    return f;
}

/* ---- products ---- */

/* Rows that are multiplied together. */
static int together(int64_t rows)
{
    return rows == 1 ? 1 : rows <= 4 ? 4 : rows <= 16 ? 16 : 64;
}

static bool takes_product(const Node *n)
{
    const Node *w = n->src[0], *x = n->src[1];
    const Format *f = format_of(w);
    return f && (f->decode || is_float(w)) && has_rows(w) && are_f32_rows(x, n) && w->ne[2] &&
           w->ne[3];
}

/* Up to so many rows go as ggml has them all: memory is what they wait for, and numbers of 8 bits
 * are multiplied at its speed. */
enum { FEW = 16 };

static bool is_dense_matrix(const Node *t)
{
    return t->ne[2] == 1 && t->ne[3] == 1 && ggml_is_contiguous(t);
}

static bool is_integer_product(const Node *n)
{
    const Node *w = n->src[0], *x = n->src[1];
    return format_of(w)->integer && x->ne[1] <= FEW && is_dense_matrix(w) && is_dense_matrix(x) &&
           is_dense_matrix(n);
}

static bool add_integer_product(Kernels *k, Node *n)
{
    const Node *w = n->src[0], *x = n->src[1];
    const int64_t blocks = w->ne[0] / ggml_blck_size(w->type),
                  bytes = (int64_t)ggml_type_size(w->type);
    return ADD_OF(k, k->quantized, format_of(w)->integer, CONSTS({"T", 0, "f32"}, {"A8", 1, NULL}),
                  tile_arg_view(x->data, TILE_F32, 2, x->ne[1], x->ne[0], 0, 0, 0, 0, 0, 0),
                  tile_arg_view(w->data, TILE_U8, 3, w->ne[1], blocks, bytes, 0, 0, 0, 0, 0),
                  tile_arg_view(n->data, TILE_F32, 2, n->ne[1], n->ne[0], 0, 0, 0, 0, 0, 0));
}

static bool add_product(Kernels *k, Node *n)
{
    const Node *w = n->src[0], *x = n->src[1];
    const Format *f = format_of(w);
    if (is_integer_product(n)) return add_integer_product(k, n);
    const int rows = together(x->ne[1]);
    if (!f->decode)
        return ADD(k, "product", CONSTS({"W", 0, f->name}, {"BM", rows, NULL}), view(x), view(w),
                   view(n));
    return ADD(k, "product_blocks",
               CONSTS({"decode", 0, f->decode}, {"EACH", ggml_blck_size(w->type), NULL},
                      {"BYTES", (int64_t)ggml_type_size(w->type), NULL}, {"BM", rows, NULL}),
               view(x), view_blocks(w), view(n));
}

/* ---- rows ---- */

/* Without the innermost one: a number for each row. */
static tile_arg view_ids(const Node *t, const int64_t *extent)
{
    const int64_t size = (int64_t)ggml_type_size(t->type),
                  stride[] = {(int64_t)t->nb[2] / size, (int64_t)t->nb[1] / size,
                              (int64_t)t->nb[0] / size};
    return tile_arg_view_strided(t->data, format_of(t)->dtype, 3, extent, stride);
}

static bool takes_get_rows(const Node *n)
{
    const Format *f = format_of(n->src[0]);
    return f && (f->decode || is_float(n->src[0])) && has_rows(n->src[0]) && is_f32(n) &&
           has_rows(n);
}

static bool add_get_rows(Kernels *k, Node *n)
{
    const Node *w = n->src[0], *id = n->src[1];
    const Format *f = format_of(w);
    const tile_arg ids = view_ids(id, (int64_t[]){id->ne[2], id->ne[1], id->ne[0]});
    if (!f->decode) return ADD(k, "rows_of", CONSTS({"W", 0, f->name}), view(w), ids, view(n));
    return ADD(k, "rows_of_blocks",
               CONSTS({"decode", 0, f->decode}, {"EACH", ggml_blck_size(w->type), NULL},
                      {"BYTES", (int64_t)ggml_type_size(w->type), NULL}),
               view_blocks(w), ids, view(n));
}

static bool takes_set_rows(const Node *n)
{
    return is_f32(n->src[0]) && has_rows(n->src[0]) && is_float(n) && has_rows(n);
}

static bool add_set_rows(Kernels *k, Node *n)
{
    const Node *x = n->src[0], *id = n->src[1];
    return ADD(k, "set_rows",
               CONSTS({"T", 0, format_of(n)->name}, {"I", 0, format_of(id)->name}), view(x),
               view_ids(id, (int64_t[]){id->ne[2], id->ne[1], id->ne[0]}), view(n));
}

static bool takes_norm(const Node *n)
{
    return are_f32_rows(n->src[0], n);
}

static bool add_norm(Kernels *k, Node *n)
{
    return ADD(k, "norm", CONSTS({"MEAN", n->op == GGML_OP_NORM, NULL}), view(n->src[0]), view(n),
               tile_f32(real(n, 0)));
}

static bool takes_soft_max(const Node *n)
{
    const Node *mask = n->src[1];
    return are_f32_rows(n->src[0], n) && (!mask || (is_float(mask) && has_rows(mask))) &&
           !n->src[2] && real(n, 1) == 0; /* no sinks, no slopes */
}

static bool add_soft_max(Kernels *k, Node *n)
{
    const Node *mask = n->src[1];
    return ADD(k, "soft_max",
               CONSTS({"T", 0, mask ? format_of(mask)->name : "f32"},
                      {"MASKED", mask != NULL, NULL}),
               view(n->src[0]), mask ? view(mask) : no_view(TILE_F32), view(n),
               tile_f32(real(n, 0)));
}

/* ---- elements ---- */

static bool is_spread(const Node *b, const Node *like)
{
    for (int i = 0; i < 4; i++)
        if (b->ne[i] != 1 && b->ne[i] != like->ne[i]) return false;
    return true;
}

static bool takes_binary(const Node *n)
{
    return are_f32_rows(n->src[0], n) && is_f32(n->src[1]) &&
           ggml_are_same_shape(n->src[0], n) && is_spread(n->src[1], n);
}

static bool add_binary(Kernels *k, Node *n)
{
    const char *f = n->op == GGML_OP_ADD   ? "plus"
                    : n->op == GGML_OP_SUB ? "minus"
                    : n->op == GGML_OP_MUL ? "times"
                                           : "over";
    return ADD(k, "binary", CONSTS({"f", 0, f}), view(n->src[0]), view_spread(n->src[1], n),
               view(n));
}

static const char *unary_function(const Node *n)
{
    enum ggml_unary_op op = ggml_get_unary_op(n);
    return op == GGML_UNARY_OP_SILU       ? "activation.silu"
           : op == GGML_UNARY_OP_GELU     ? "activation.gelu_tanh"
           : op == GGML_UNARY_OP_GELU_ERF ? "activation.gelu"
           : op == GGML_UNARY_OP_RELU     ? "activation.relu"
           : op == GGML_UNARY_OP_SIGMOID  ? "sigmoid"
           : op == GGML_UNARY_OP_TANH     ? "tanh"
           : op == GGML_UNARY_OP_EXP      ? "exp"
           : op == GGML_UNARY_OP_NEG      ? "negative"
                                          : NULL;
}

static bool takes_unary(const Node *n)
{
    return are_f32_rows(n->src[0], n) && unary_function(n);
}

static bool add_unary(Kernels *k, Node *n)
{
    return ADD(k, "unary", CONSTS({"f", 0, unary_function(n)}), view(n->src[0]), view(n));
}

static const char *gate_function(const Node *n)
{
    enum ggml_glu_op op = ggml_get_glu_op(n);
    return op == GGML_GLU_OP_SWIGLU      ? "activation.silu"
           : op == GGML_GLU_OP_GEGLU     ? "activation.gelu_tanh"
           : op == GGML_GLU_OP_GEGLU_ERF ? "activation.gelu"
           : op == GGML_GLU_OP_REGLU     ? "activation.relu"
                                         : NULL;
}

static bool takes_gate(const Node *n)
{
    return are_f32_rows(n->src[0], n) && (!n->src[1] || are_f32_rows(n->src[1], n)) &&
           gate_function(n);
}

/* Two tensors, or the halves of the rows of one, either of which may be the gate. */
static bool add_gate(Kernels *k, Node *n)
{
    const Node *a = n->src[0], *b = n->src[1];
    const size_t second = (size_t)n->ne[0], swapped = n->op_params[1] != 0;
    const tile_arg gate = b ? view(a) : part_of(a, n->ne, swapped ? second : 0, 1),
                   value = b ? view(b) : part_of(a, n->ne, swapped ? 0 : second, 1);
    return ADD(k, "gated", CONSTS({"f", 0, gate_function(n)}), gate, value, view(n));
}

static bool takes_scale(const Node *n)
{
    return are_f32_rows(n->src[0], n);
}

static bool add_scale(Kernels *k, Node *n)
{
    return ADD(k, "scaled", CONSTS({NULL, 0, NULL}), view(n->src[0]), view(n),
               tile_f32(real(n, 0)), tile_f32(real(n, 1)));
}

static bool takes_copy(const Node *n)
{
    const Node *x = n->src[0];
    return is_float(x) && is_float(n) &&
           (ggml_are_same_shape(x, n) || (ggml_is_contiguous(x) && ggml_is_contiguous(n)));
}

static bool add_copy(Kernels *k, Node *n)
{
    const Node *x = n->src[0];
    const int64_t line[] = {ggml_nelements(n), 1, 1, 1};
    const bool same = ggml_are_same_shape(x, n);
    return ADD(k, "copy", CONSTS({"T", 0, format_of(x)->name}, {"U", 0, format_of(n)->name}),
               part_of(x, same ? x->ne : line, 0, 1), part_of(n, same ? n->ne : line, 0, 1));
}

static bool takes_rope(const Node *n)
{
    const int32_t turned = n->op_params[1], mode = n->op_params[2], offset = n->op_params[15];
    const float yarn = real(n, 7);
    return are_f32_rows(n->src[0], n) && turned % 2 == 0 && offset == 0 && yarn == 0 &&
           (mode == GGML_ROPE_TYPE_NORMAL || mode == GGML_ROPE_TYPE_NEOX);
}

/* Pairs lie side by side, or a half of what is turned apart. What is behind them stays. */
static bool add_rope(Kernels *k, Node *n)
{
    const Node *x = n->src[0], *factors = n->src[2];
    const int64_t turned = n->op_params[1], pairs[] = {turned / 2, n->ne[1], n->ne[2], n->ne[3]},
                  rest[] = {n->ne[0] - turned, n->ne[1], n->ne[2], n->ne[3]};
    const bool halves = n->op_params[2] == GGML_ROPE_TYPE_NEOX;
    const size_t second = halves ? (size_t)turned / 2 : 1, step = halves ? 1 : 2;
    if (rest[0] && !ADD(k, "copy", CONSTS({"T", 0, "f32"}), part_of(x, rest, (size_t)turned, 1),
                        part_of(n, rest, (size_t)turned, 1)))
        return false;
    return ADD(k, "turned", CONSTS({"FACTORS", factors != NULL, NULL}), part_of(x, pairs, 0, step),
               part_of(x, pairs, second, step), view_line(n->src[1], TILE_I32),
               view_line(factors, TILE_F32), part_of(n, pairs, 0, step),
               part_of(n, pairs, second, step), tile_f32(-2 / (float)turned * log2f(real(n, 5))),
               tile_f32(real(n, 6)), tile_f32(real(n, 8)));
}

/* ---- attention ---- */

enum { MOST_HEAD = 256 };

static bool takes_attention(const Node *n)
{
    const Node *q = n->src[0], *k = n->src[1], *v = n->src[2], *mask = n->src[3];
    return are_f32_rows(q, n) && is_float(k) && k->type == v->type && has_rows(k) && has_rows(v) &&
           (!mask || has_rows(mask)) && !n->src[4] && real(n, 1) == 0 && real(n, 2) == 0 &&
           q->ne[0] <= MOST_HEAD && v->ne[0] <= MOST_HEAD && q->ne[2] % k->ne[2] == 0 &&
           k->ne[2] == v->ne[2] && k->ne[3] == q->ne[3];
}

static int power_above(int64_t n)
{
    int p = 16;
    while (p < n) p *= 2;
    return p;
}

static bool add_attention(Kernels *k, Node *n)
{
    const Node *q = n->src[0], *mask = n->src[3];
    return ADD(k, "attend",
               CONSTS({"T", 0, format_of(n->src[1])->name}, {"MASKED", mask != NULL, NULL},
                      {"BD", power_above(q->ne[0]), NULL}, {"BE", power_above(n->ne[0]), NULL}),
               view(q), view(n->src[1]), view(n->src[2]), mask ? view(mask) : no_view(TILE_F16),
               view(n), tile_f32(real(n, 0)));
}

/* ---- all of them ---- */

static const struct Row {
    enum ggml_op op;
    bool (*takes)(const Node *);
    bool (*add)(Kernels *, Node *);
} ROWS[] = {
    {GGML_OP_MUL_MAT, takes_product, add_product},
    {GGML_OP_GET_ROWS, takes_get_rows, add_get_rows},
    {GGML_OP_SET_ROWS, takes_set_rows, add_set_rows},
    {GGML_OP_RMS_NORM, takes_norm, add_norm},
    {GGML_OP_NORM, takes_norm, add_norm},
    {GGML_OP_SOFT_MAX, takes_soft_max, add_soft_max},
    {GGML_OP_ADD, takes_binary, add_binary},
    {GGML_OP_SUB, takes_binary, add_binary},
    {GGML_OP_MUL, takes_binary, add_binary},
    {GGML_OP_DIV, takes_binary, add_binary},
    {GGML_OP_UNARY, takes_unary, add_unary},
    {GGML_OP_GLU, takes_gate, add_gate},
    {GGML_OP_SCALE, takes_scale, add_scale},
    {GGML_OP_CPY, takes_copy, add_copy},
    {GGML_OP_CONT, takes_copy, add_copy},
    {GGML_OP_DUP, takes_copy, add_copy},
    {GGML_OP_ROPE, takes_rope, add_rope},
    {GGML_OP_FLASH_ATTN_EXT, takes_attention, add_attention},
};

static bool is_view(const Node *n)
{
    return n->op == GGML_OP_NONE || n->op == GGML_OP_RESHAPE || n->op == GGML_OP_VIEW ||
           n->op == GGML_OP_PERMUTE || n->op == GGML_OP_TRANSPOSE;
}

static const struct Row *row_of(const Node *n)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (ROWS[i].op == n->op) return &ROWS[i];
    return NULL;
}

bool kernels_take(const Node *n)
{
    const struct Row *row = row_of(n);
    return is_view(n) || (row && row->takes(n));
}

bool kernels_add(Kernels *k, Node *n)
{
    return is_view(n) || ggml_is_empty(n) || row_of(n)->add(k, n);
}
