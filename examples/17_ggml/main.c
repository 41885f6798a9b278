/* ggml's graphs on tile kernels beside ggml's own CPU backend: each operation by itself, then a
 * decoder of two layers through ggml's scheduler.
 *
 *     17_ggml [-n THREADS] [-w WIDTH]
 *
 * A line for each: the error, as the sum of squared differences over that of squares. The program
 * fails where one is greater than what ggml's own tests allow. A decoder is held against the same
 * in f32 with the same weights, as ggml rounds activations to 8 bits and tile kernels only those of
 * few rows: its error may be a fifth more than ggml's. */
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct ggml_tensor Node;
typedef struct ggml_context Context;

static int threads = 2, width = 512, faults;

/* ---- inputs ---- */

static uint32_t state;

static float by_chance(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (1 << 23) - 1;
}

static Node *input(Context *c, enum ggml_type type, int64_t n0, int64_t n1, int64_t n2, int64_t n3)
{
    return ggml_new_tensor_4d(c, type, n0, n1, n2, n3);
}

/* Numbers 0 to below - 1, each once before the first comes again. */
static Node *numbers(Context *c, enum ggml_type type, int64_t n, int below)
{
    Node *t = ggml_new_tensor_1d(c, type, n);
    ggml_format_name(t, "%d", below);
    return t;
}

static void fill_numbers(Node *t)
{
    const int below = atoi(t->name);
    for (int64_t i = 0; i < ggml_nelements(t); i++) {
        const int64_t v = i * (below > 7 && below % 7 ? 7 : 1) % below;
        if (t->type == GGML_TYPE_I64)
            ((int64_t *)t->data)[i] = v;
        else
            ((int32_t *)t->data)[i] = (int32_t)v;
    }
}

/* Matrices of f32 hold what is left of the numbers in this format. */
static enum ggml_type rounded = GGML_TYPE_F32;

static void fill_matrix(Node *t, float *x, int64_t n)
{
    const int64_t rows = n / t->ne[0];
    if (t->type != GGML_TYPE_F32) {
        ggml_quantize_chunk(t->type, x, t->data, 0, rows, t->ne[0], NULL);
    } else if (rounded != GGML_TYPE_F32 && rows > 1) {
        void *kept = malloc(ggml_row_size(rounded, n));
        if (!kept)
            exit(1);
        ggml_quantize_chunk(rounded, x, kept, 0, rows, t->ne[0], NULL);
        ggml_get_type_traits(rounded)->to_float(kept, t->data, n);
        free(kept);
    } else {
        memcpy(t->data, x, (size_t)n * sizeof *x);
    }
}

static void fill(Node *t)
{
    if (t->type == GGML_TYPE_I32 || t->type == GGML_TYPE_I64) {
        fill_numbers(t);
        return;
    }
    const int64_t n = ggml_nelements(t);
    float *x = malloc((size_t)n * sizeof *x);
    if (!x)
        exit(1);
    for (int64_t i = 0; i < n; i++)
        x[i] = by_chance();
    fill_matrix(t, x, n);
    free(x);
}

/* ---- one operation on both backends ---- */

typedef struct Case {
    enum ggml_type type;
    int64_t a, b; /* what the graph makes of them */
} Case;
typedef Node *Build(Context *, const Case *);

static void fill_all(Context *c)
{
    state = 1;
    for (Node *t = ggml_get_first_tensor(c); t; t = ggml_get_next_tensor(c, t))
        if (t->op == GGML_OP_NONE && !t->view_src)
            fill(t);
}

/* What the graph gives on one backend, as f32; NULL: it does not take it. */
static float *result(ggml_backend_t backend, Build *build, const Case *of, int64_t *count)
{
    Context *c = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    Node *out = ggml_cont(c, ggml_cast(c, build(c, of), GGML_TYPE_F32));
    struct ggml_cgraph *graph = ggml_new_graph(c);
    ggml_build_forward_expand(graph, out);
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++)
        if (!ggml_backend_supports_op(backend, ggml_graph_node(graph, i)))
            return ggml_free(c), NULL;
    ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(c, backend);
    fill_all(c);
    if (ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS)
        exit(1);
    *count = ggml_nelements(out);
    float *values = malloc((size_t)*count * sizeof *values);
    if (values)
        ggml_backend_tensor_get(out, values, 0, (size_t)*count * sizeof *values);
    ggml_backend_buffer_free(memory);
    ggml_free(c);
    return values;
}

static double error_of(const float *x, const float *y, int64_t n)
{
    double apart = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isinf(y[i]) && x[i] == y[i])
            continue;
        apart += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        all += (double)y[i] * y[i];
    }
    return all > 0 ? apart / all : apart;
}

static void report(const char *name, double error, double allowed)
{
    const bool good = error <= allowed;
    printf("%-44s error %.1e%s\n", name, error, good ? "" : " WRONG");
    faults += !good;
}

static void compare(ggml_backend_t tile, ggml_backend_t cpu, const char *name, Build *build,
                    Case of, double allowed)
{
    int64_t n = 0;
    char text[80];
    snprintf(text, sizeof text, "%s %s %d %d", name, ggml_type_name(of.type), (int)of.a, (int)of.b);
    float *x = result(tile, build, &of, &n), *y = result(cpu, build, &of, &n);
    if (!x) {
        printf("%-44s not taken\n", text);
        faults++;
    } else {
        report(text, error_of(x, y, n), allowed);
    }
    free(x);
    free(y);
}

/* a rows, b: 1 for one matrix, else for 2 x b of them that 1 x 1 or 2 x 1 serve. */
static Node *product(Context *c, const Case *of)
{
    Node *w = input(c, of->type, 512, 33, 1, of->b > 1 ? 2 : 1);
    return ggml_mul_mat(c, w, input(c, GGML_TYPE_F32, 512, of->a, of->b, of->b > 1 ? 2 : 1));
}

static Node *product_of_turned(Context *c, const Case *of)
{
    Node *w = ggml_permute(c, input(c, of->type, 64, 5, of->b, 1), 0, 2, 1, 3);
    return ggml_mul_mat(c, w,
                        ggml_permute(c, input(c, GGML_TYPE_F32, 64, 5, of->a, 1), 0, 2, 1, 3));
}

static Node *get_rows(Context *c, const Case *of)
{
    return ggml_get_rows(c, input(c, of->type, of->a, 29, 1, 1),
                         numbers(c, GGML_TYPE_I32, of->b, 29));
}

static Node *set_rows(Context *c, const Case *of)
{
    Node *to = input(c, of->type, of->a, 40, 1, 1);
    return ggml_set_rows(c, to, input(c, GGML_TYPE_F32, of->a, 5, 1, 1),
                         numbers(c, of->b ? GGML_TYPE_I64 : GGML_TYPE_I32, 5, 40));
}

static Node *norm(Context *c, const Case *of)
{
    Node *x = input(c, of->type, of->a, 3, 2, 1);
    return of->b ? ggml_norm(c, x, 1e-5f) : ggml_rms_norm(c, x, 1e-5f);
}

static Node *soft_max(Context *c, const Case *of)
{
    Node *mask = of->b ? input(c, of->type, of->a, 7, 1, 1) : NULL;
    return ggml_soft_max_ext(c, input(c, GGML_TYPE_F32, of->a, 7, 3, 2), mask, 0.3f, 0);
}

static Node *binary(Context *c, const Case *of)
{
    Node *(*const make[])(Context *, Node *, Node *) = {ggml_add, ggml_sub, ggml_mul, ggml_div};
    Node *x = input(c, of->type, 70, 5, 3, 2);
    const bool row = of->b == 1, column = of->b == 2;
    return make[of->a](
        c, x, input(c, of->type, column ? 1 : 70, row ? 1 : 5, row ? 1 : 3, of->b ? 1 : 2));
}

static Node *unary(Context *c, const Case *of)
{
    return ggml_unary(c, input(c, of->type, 333, 4, 1, 1), (enum ggml_unary_op)of->a);
}

static Node *gate(Context *c, const Case *of)
{
    Node *x = input(c, of->type, 90, 5, 2, 1);
    if (of->b == 2)
        return ggml_glu_split(c, x, input(c, of->type, 90, 5, 2, 1), (enum ggml_glu_op)of->a);
    return ggml_glu(c, x, (enum ggml_glu_op)of->a, of->b);
}

static Node *scale(Context *c, const Case *of)
{
    return ggml_scale_bias(c, input(c, of->type, of->a, of->b, 1, 1), 0.7f, -3);
}

static Node *copy(Context *c, const Case *of)
{
    Node *x = ggml_permute(c, input(c, GGML_TYPE_F32, 40, 6, 5, 2), 2, 0, 1, 3);
    return of->a ? ggml_cpy(c, ggml_cont(c, x), input(c, of->type, 240, 10, 1, 1))
                 : ggml_cast(c, x, of->type);
}

/* a elements are turned; b: 1 for halves, 2 with factors. */
static Node *rope(Context *c, const Case *of)
{
    Node *x = input(c, of->type, 96, 4, 9, 1), *place = numbers(c, GGML_TYPE_I32, 9, 100);
    Node *factors =
        of->b & 2 ? ggml_scale_bias(c, input(c, of->type, of->a / 2, 1, 1, 1), 0.2f, 1) : NULL;
    return ggml_rope_ext(c, x, place, factors, (int)of->a,
                         of->b & 1 ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL, 4096, 10000, 0.8f,
                         0, 1.1f, 32, 1);
}

/* a queries of 6 heads that share 2, heads of b elements, 100 keys. */
static Node *attention(Context *c, const Case *of)
{
    Node *q = input(c, GGML_TYPE_F32, of->b, of->a, 6, 2),
         *k = input(c, of->type, of->b, 100, 2, 2), *v = input(c, of->type, of->b, 100, 2, 2),
         *mask = input(c, GGML_TYPE_F16, 100, of->a, 1, 1);
    return ggml_flash_attn_ext(c, q, k, v, of->a > 1 ? mask : NULL, 1 / sqrtf((float)of->b), 0, 0);
}

#define EACH(list, of) for (size_t of = 0; of < sizeof list / sizeof *list; of++)

static void compare_all(ggml_backend_t tile, ggml_backend_t cpu)
{
    static const enum ggml_type formats[] = {
        GGML_TYPE_F32,  GGML_TYPE_F16,    GGML_TYPE_BF16,   GGML_TYPE_Q4_0,
        GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,   GGML_TYPE_Q5_1,   GGML_TYPE_Q8_0,
        GGML_TYPE_Q2_K, GGML_TYPE_Q3_K,   GGML_TYPE_Q4_K,   GGML_TYPE_Q5_K,
        GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4};
    static const int64_t rows[] = {1, 3, 16, 70};
    static const int unaries[] = {GGML_UNARY_OP_SILU, GGML_UNARY_OP_GELU,    GGML_UNARY_OP_GELU_ERF,
                                  GGML_UNARY_OP_RELU, GGML_UNARY_OP_SIGMOID, GGML_UNARY_OP_TANH,
                                  GGML_UNARY_OP_EXP,  GGML_UNARY_OP_NEG};
    static const int gates[] = {GGML_GLU_OP_SWIGLU, GGML_GLU_OP_GEGLU, GGML_GLU_OP_GEGLU_ERF,
                                GGML_GLU_OP_REGLU};
    const enum ggml_type F32 = GGML_TYPE_F32, F16 = GGML_TYPE_F16, BF16 = GGML_TYPE_BF16;
#define COMPARE(allowed, build, ...) compare(tile, cpu, #build, build, (Case){__VA_ARGS__}, allowed)
    EACH(formats, f)
    {
        EACH(rows, r) COMPARE(5e-4, product, formats[f], rows[r], 1);
        COMPARE(5e-4, product, formats[f], 3, 2);
        COMPARE(1e-7, get_rows, formats[f], 768, 11);
    }
    COMPARE(5e-4, product_of_turned, F16, 7, 9);
    COMPARE(5e-4, product_of_turned, F32, 1, 9);
    for (int wide = 0; wide < 2; wide++) {
        COMPARE(1e-7, set_rows, F32, 130, wide);
        COMPARE(1e-7, set_rows, F16, 64, wide);
        COMPARE(1e-7, set_rows, BF16, 5, wide);
        COMPARE(1e-7, norm, F32, 100, wide);
        COMPARE(1e-7, norm, F32, 3000, wide);
        COMPARE(1e-7, copy, F16, wide, 0);
        COMPARE(1e-7, copy, F32, wide, 0);
        COMPARE(1e-7, copy, BF16, wide, 0);
    }
    COMPARE(1e-6, soft_max, F32, 100, 0);
    COMPARE(1e-6, soft_max, F16, 64, 1);
    COMPARE(1e-6, soft_max, F32, 2100, 1);
    COMPARE(1e-7, scale, F32, 100, 7);
    EACH(unaries, u) COMPARE(1e-7, unary, F32, unaries[u], 0);
    for (int how = 0; how < 3; how++) {
        for (int op = 0; op < 4; op++)
            COMPARE(1e-7, binary, F32, op, how);
        EACH(gates, g) COMPARE(1e-7, gate, F32, gates[g], how);
    }
    for (int how = 0; how < 4; how++) {
        COMPARE(1e-7, rope, F32, 96, how);
        COMPARE(1e-7, rope, F32, 64, how);
    }
    EACH(rows, r)
    {
        COMPARE(5e-4, attention, F16, rows[r], 64);
        COMPARE(5e-4, attention, F16, rows[r], 80);
    }
#undef COMPARE
}

/* ---- a decoder ---- */

enum { LAYERS = 2, HEADS = 8, SHARED = 2, WORDS = 1024, PAST = 256 };

typedef struct Decoder {
    Context *weights;
    Node *words, *head, *norm, *place, *at, *mask, *id;
    struct Layer {
        Node *norm, *q, *k, *v, *o, *norm2, *gate, *up, *down, *keys, *values;
    } layer[LAYERS];
} Decoder;

static Node *normed(Context *c, Node *x, Node *weight)
{
    return ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), weight);
}

static Node *turned(Context *c, const Decoder *d, Node *x, int heads, int64_t rows)
{
    const int size = width / HEADS;
    return ggml_rope_ext(c, ggml_reshape_3d(c, x, size, heads, rows), d->place, NULL, size,
                         GGML_ROPE_TYPE_NORMAL, 4096, 10000, 1, 0, 1, 32, 1);
}

static Node *seen(Context *c, Node *all, int64_t keys)
{
    const int size = width / HEADS;
    Node *part =
        ggml_view_3d(c, all, size, SHARED, keys, ggml_row_size(all->type, size), all->nb[1], 0);
    return ggml_permute(c, part, 0, 2, 1, 3);
}

/* Rows of one sequence, with `keys` keys, their own ones among them. */
static struct ggml_cgraph *decoder_graph(Context *c, const Decoder *d, int64_t rows, int64_t keys,
                                         Node **out)
{
    struct ggml_cgraph *graph = ggml_new_graph(c);
    Node *x = ggml_get_rows(c, d->words, d->id);
    for (int i = 0; i < LAYERS; i++) {
        const struct Layer *l = &d->layer[i];
        Node *h = normed(c, x, l->norm), *q = turned(c, d, ggml_mul_mat(c, l->q, h), HEADS, rows),
             *k = turned(c, d, ggml_mul_mat(c, l->k, h), SHARED, rows),
             *v = ggml_mul_mat(c, l->v, h);
        ggml_build_forward_expand(
            graph, ggml_set_rows(c, l->keys, ggml_reshape_2d(c, k, l->keys->ne[0], rows), d->at));
        ggml_build_forward_expand(graph, ggml_set_rows(c, l->values, v, d->at));
        Node *o = ggml_flash_attn_ext(c, ggml_permute(c, q, 0, 2, 1, 3), seen(c, l->keys, keys),
                                      seen(c, l->values, keys), d->mask,
                                      1 / sqrtf((float)width / HEADS), 0, 0);
        x = ggml_add(c, x, ggml_mul_mat(c, l->o, ggml_reshape_2d(c, o, width, rows)));
        h = normed(c, x, l->norm2);
        h = ggml_swiglu_split(c, ggml_mul_mat(c, l->gate, h), ggml_mul_mat(c, l->up, h));
        x = ggml_add(c, x, ggml_mul_mat(c, l->down, h));
    }
    *out = ggml_mul_mat(c, d->head, normed(c, x, d->norm));
    ggml_set_output(*out);
    ggml_build_forward_expand(graph, *out);
    return graph;
}

static Node *weight(Decoder *d, enum ggml_type type, int64_t in, int64_t out)
{
    return ggml_new_tensor_2d(d->weights, type, in, out);
}

static void decoder_weights(Decoder *d, enum ggml_type type, int64_t rows, int64_t keys)
{
    const int64_t e = width, s = width / HEADS * SHARED, hidden = 3 * width;
    d->weights = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    d->words = weight(d, type, e, WORDS);
    d->head = weight(d, type, e, WORDS);
    d->norm = weight(d, GGML_TYPE_F32, e, 1);
    for (int i = 0; i < LAYERS; i++)
        d->layer[i] = (struct Layer){weight(d, GGML_TYPE_F32, e, 1),
                                     weight(d, type, e, e),
                                     weight(d, type, e, s),
                                     weight(d, type, e, s),
                                     weight(d, type, e, e),
                                     weight(d, GGML_TYPE_F32, e, 1),
                                     weight(d, type, e, hidden),
                                     weight(d, type, e, hidden),
                                     weight(d, type, hidden, e),
                                     weight(d, GGML_TYPE_F16, s, PAST),
                                     weight(d, GGML_TYPE_F16, s, PAST)};
    d->id = numbers(d->weights, GGML_TYPE_I32, rows, WORDS);
    d->place = numbers(d->weights, GGML_TYPE_I32, rows, PAST);
    d->at = numbers(d->weights, GGML_TYPE_I64, rows, PAST);
    d->mask = ggml_new_tensor_2d(d->weights, GGML_TYPE_F16, keys, rows);
}

/* Row i sees the keys up to its own place. */
static void fill_places(Decoder *d, int64_t rows, int64_t keys)
{
    for (int64_t i = 0; i < rows; i++) {
        ((int32_t *)d->place->data)[i] = (int32_t)(keys - rows + i);
        ((int64_t *)d->at->data)[i] = keys - rows + i;
        for (int64_t j = 0; j < keys; j++)
            ((ggml_fp16_t *)d->mask->data)[i * keys + j] =
                ggml_fp32_to_fp16(j <= keys - rows + i ? 0 : -INFINITY);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Logits, the least time of several runs, and how many nodes the first backend computes. */
static float *decode(ggml_backend_t *backends, int n, enum ggml_type type, int64_t rows,
                     double *least, int *taken)
{
    const int64_t keys = 64 + rows;
    Decoder d;
    Node *out;
    decoder_weights(&d, type, rows, keys);
    ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(d.weights, backends[n - 1]);
    ggml_backend_buffer_set_usage(memory, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    fill_all(d.weights);
    fill_places(&d, rows, keys);
    Context *c = ggml_init((struct ggml_init_params){1 << 22, NULL, true});
    struct ggml_cgraph *graph = decoder_graph(c, &d, rows, keys, &out);
    ggml_backend_sched_t plan = ggml_backend_sched_new(backends, NULL, n, 1024, false, true);
    float *logits = malloc((size_t)ggml_nbytes(out));
    *least = INFINITY;
    if (!logits || !ggml_backend_sched_alloc_graph(plan, graph))
        exit(1);
    for (int run = 0; run < 20; run++) {
        const double t = seconds();
        if (ggml_backend_sched_graph_compute(plan, graph) != GGML_STATUS_SUCCESS)
            exit(1);
        *least = fmin(*least, seconds() - t);
    }
    *taken = 0;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++)
        *taken +=
            ggml_backend_sched_get_tensor_backend(plan, ggml_graph_node(graph, i)) == backends[0];
    ggml_backend_tensor_get(out, logits, 0, ggml_nbytes(out));
    ggml_backend_sched_free(plan);
    ggml_backend_buffer_free(memory);
    ggml_free(c);
    ggml_free(d.weights);
    return logits;
}

static void compare_decoder(ggml_backend_t tile, ggml_backend_t cpu, enum ggml_type type,
                            int64_t rows)
{
    double ours, theirs, exact_time;
    int taken, all;
    char text[80];
    float *x = decode((ggml_backend_t[]){tile, cpu}, 2, type, rows, &ours, &taken);
    float *y = decode((ggml_backend_t[]){cpu}, 1, type, rows, &theirs, &all);
    rounded = type;
    float *exact = decode((ggml_backend_t[]){cpu}, 1, GGML_TYPE_F32, rows, &exact_time, &all);
    rounded = GGML_TYPE_F32;
    const int64_t n = WORDS * rows;
    const double error = error_of(x, exact, n);
    snprintf(text, sizeof text, "decoder %s %d, %d of %d nodes", ggml_type_name(type), (int)rows,
             taken, all);
    const double own = error_of(y, exact, n);
    report(text, error, fmax(1e-4, 1.2 * own));
    printf("    error of ggml %.1e; %.2f ms, ggml %.2f ms\n", own, 1e3 * ours, 1e3 * theirs);
    free(x);
    free(y);
    free(exact);
}

int main(int argc, char **argv)
{
    for (int o; (o = getopt(argc, argv, "n:w:")) != -1;) {
        if (o == 'n')
            threads = atoi(optarg);
        if (o == 'w')
            width = atoi(optarg);
        if (o == '?' || threads < 1 || width < 256 || width % 256)
            return fprintf(stderr, "usage: 17_ggml [-n THREADS] [-w WIDTH, a multiple of 256]\n"),
                   2;
    }
    ggml_backend_reg_t registry = ggml_backend_load(BACKEND);
    if (!registry)
        return fprintf(stderr, "17_ggml: %s cannot be loaded\n", BACKEND), 1;
    ggml_backend_t tile = ggml_backend_dev_init(ggml_backend_reg_dev_get(registry, 0), NULL),
                   cpu = ggml_backend_cpu_init();
    ggml_backend_set_n_threads_t set = NULL;
    void *found = ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads");
    memcpy(&set, &found, sizeof set);
    if (!tile || !cpu || !set)
        return 1;
    set(tile, threads);
    ggml_backend_cpu_set_n_threads(cpu, threads);
    compare_all(tile, cpu);
    static const enum ggml_type types[] = {GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                           GGML_TYPE_Q4_K};
    EACH(types, i)
    {
        compare_decoder(tile, cpu, types[i], 1);
        compare_decoder(tile, cpu, types[i], 48);
    }
    ggml_backend_free(tile);
    ggml_backend_free(cpu);
    printf("%d wrong\n", faults);
    return faults != 0;
}
