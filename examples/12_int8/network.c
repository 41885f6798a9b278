#include "network.h"
#include "digits.h"

const int widths[LAYERS + 1] = {PIXELS, 96, 48, CLASSES};

static bool get_kernels(Network *n)
{
#define GEMM "std.kernels.gemm"
#define OWN KERNEL_DIR "/int8.tile"
#define F32_GEMM {"T", 0, "f32"}, {"BM", 64, 0}, {"BN", 32, 0}
#define FUSED {"fuse.bias", 1, 0}, {"o.BM", 64, 0}, {"o.BN", 32, 0}
#define F32_FUSED {"T", 0, "f32"}, FUSED
#define INT_FUSED {"T", 0, "i8"}, {"O", 0, "f32"}, {"fuse.column_scale", 1, 0}, FUSED
#define RELU {"epilogue", 0, "activation.relu"}
    static const KernelRow rows[KERNELS] = {
        [FORWARD] = {GEMM, "gemm_fused", {F32_FUSED, RELU}},
        [FORWARD_LAST] = {GEMM, "gemm_fused", {F32_FUSED}},
        [BY_WEIGHTS] = {GEMM, "gemm", {F32_GEMM, {"TA", 1, 0}}},
        [BACKWARD] = {GEMM, "gemm", {F32_GEMM, {"TB", 1, 0}}},
        [INTEGER] = {GEMM, "gemm_fused", {INT_FUSED, RELU}},
        [INTEGER_LAST] = {GEMM, "gemm_fused", {INT_FUSED}},
        [JUDGE] = {OWN, "judge", {{0}}},
        [GRADIENT] = {OWN, "judge", {{"GRAD", 1, 0}}},
        [RELU_BACKWARD] = {OWN, "relu_backward", {{0}}},
        [COLUMN_SUMS] = {OWN, "column_sums", {{0}}},
        [ADAM] = {OWN, "adam", {{0}}},
        [MAGNITUDE] = {OWN, "magnitude", {{0}}},
        [SPREAD] = {OWN, "spread", {{"BINS", BINS, 0}}},
        [TO_INT8] = {OWN, "to_int8", {{0}}},
        [WEIGHTS_TO_INT8] = {OWN, "weights_to_int8", {{0}}},
    };
    return kernels_get(&n->modules, rows, KERNELS, n->kernel) &&
           kernels_prepare(n->kernel, KERNELS);
}

/* ---- memory ---- */

static bool open_layer(Buffers *b, Layer *l, int in, int out, int rows, uint64_t *state)
{
    size_t i = (size_t)in, o = (size_t)out, r = (size_t)rows;
    l->in = in, l->out = out;
    if (!(zeros(b, &l->w, i * o, 4) && zeros(b, &l->b, o, 4) && zeros(b, &l->y, r * o, 4) &&
          zeros(b, &l->dw, i * o, 4) && zeros(b, &l->db, o, 4) && zeros(b, &l->dy, r * o, 4) &&
          zeros(b, &l->first[0], i * o, 4) && zeros(b, &l->second[0], i * o, 4) &&
          zeros(b, &l->first[1], o, 4) && zeros(b, &l->second[1], o, 4) &&
          zeros(b, &l->qx, r * i, 1) && zeros(b, &l->qw, i * o, 1) &&
          zeros(b, &l->scale, o, 4) && zeros(b, &l->inverse, o, 4)))
        return false;
    float *w = malloc(i * o * sizeof *w), size = sqrtf(6.0f / (float)in);
    for (size_t k = 0; w && k < i * o; k++) w[k] = (float)between(state, -size, size);
    bool good = w && !tile_buffer_upload(l->w, 0, w, i * o * 4, NULL);
    return free(w), good;
}

bool network_open(Network *n, int rows)
{
    uint64_t state = 2463534242u;
    Buffers *b = &n->buffers;
    *n = (Network){.rows = rows};
    for (int i = 0; i < LAYERS; i++)
        if (!open_layer(b, &n->layer[i], widths[i], widths[i + 1], rows, &state)) return false;
    return zeros(b, &n->loss, (size_t)rows, 4) && zeros(b, &n->right, (size_t)rows, 4) &&
           zeros(b, &n->greatest, 1, 4) && zeros(b, &n->bins, BINS, 4) && get_kernels(n);
}

void network_close(Network *n)
{
    buffers_free(&n->buffers), modules_free(&n->modules);
}

/* ---- in f32 ---- */

#define NOTHING tile_f32_view(NULL, 0)
/* What gemm_fused has behind its scales and bias: no residual, no sums of rows, no dropout. */
#define NO_MORE tile_f32_view(NULL, 0, 0), NOTHING, tile_f32(0), tile_u64(0)

bool network_run(Network *n, const float *x, int rows)
{
    for (int i = 0; i < LAYERS; i++) {
        Layer *l = &n->layer[i];
        if (!RUN(n, i == LAYERS - 1 ? FORWARD_LAST : FORWARD, tile_view(x, rows, l->in),
                 tile_f32_view(l->w, l->in, l->out), tile_f32_view(l->y, rows, l->out), NOTHING,
                 NOTHING, tile_f32_view(l->b, l->out), NO_MORE))
            return false;
        x = tile_buffer_ptr(l->y);
    }
    return true;
}

static bool backward(Network *n, const float *x, int rows, float *dy, int i)
{
    Layer *l = &n->layer[i];
    const float *in = i ? tile_buffer_ptr(n->layer[i - 1].y) : x;
    tile_arg d = tile_view(dy, rows, l->out);
    if (!(RUN(n, BY_WEIGHTS, tile_view(in, rows, l->in), d, tile_f32_view(l->dw, l->in, l->out)) &&
          RUN(n, COLUMN_SUMS, d, tile_f32_view(l->db, l->out))))
        return false;
    if (i == 0) return true;
    float *dx = tile_buffer_ptr(n->layer[i - 1].dy);
    return RUN(n, BACKWARD, d, tile_f32_view(l->w, l->in, l->out), tile_view(dx, rows, l->in)) &&
           RUN(n, RELU_BACKWARD, tile_view(dx, rows, l->in), tile_view(in, rows, l->in)) &&
           backward(n, x, rows, dx, i - 1);
}

static bool adam(Network *n, tile_buffer *w, tile_buffer *g, tile_buffer *first,
                 tile_buffer *second, int count)
{
    double t = n->steps, rate = 2e-3 * pow(0.998, t) * sqrt(1 - pow(0.99, t)) / (1 - pow(0.9, t));
    return RUN(n, ADAM, tile_f32_view(w, count), tile_f32_view(g, count),
               tile_f32_view(first, count), tile_f32_view(second, count), tile_f32((float)rate));
}

bool network_train(Network *n, const float *x, const int32_t *label, int rows, double *loss)
{
    float *logits = tile_buffer_ptr(n->layer[LAYERS - 1].y);
    if (!network_run(n, x, rows) ||
        !RUN(n, GRADIENT, tile_view(logits, rows, CLASSES), tile_view(label, rows),
             tile_f32_view(n->loss, rows), tile_i32_view(n->right, rows)) ||
        !backward(n, x, rows, logits, LAYERS - 1))
        return false;
    n->steps++;
    for (int i = 0; i < LAYERS; i++) {
        Layer *l = &n->layer[i];
        if (!adam(n, l->w, l->dw, l->first[0], l->second[0], l->in * l->out) ||
            !adam(n, l->b, l->db, l->first[1], l->second[1], l->out))
            return false;
    }
    float part[1024];
    *loss = 0;
    if (rows > 1024 || tile_buffer_download(n->loss, 0, part, 4 * (uint64_t)rows, NULL))
        return false;
    for (int i = 0; i < rows; i++) *loss += part[i] / rows;
    return true;
}

bool network_count(Network *n, const int32_t *label, int rows, int *out_right, int32_t *right)
{
    if (!RUN(n, JUDGE, tile_f32_view(n->layer[LAYERS - 1].y, rows, CLASSES), tile_view(label, rows),
             tile_f32_view(n->loss, rows), tile_i32_view(n->right, rows)) ||
        tile_buffer_download(n->right, 0, right, 4 * (uint64_t)rows, NULL))
        return false;
    *out_right = 0;
    for (int i = 0; i < rows; i++) *out_right += right[i];
    return true;
}

/* ---- in integers ---- */

bool network_spread(Network *n, int layer, const float *x, int rows, float *greatest,
                    int32_t bins[BINS])
{
    const float *in = layer ? tile_buffer_ptr(n->layer[layer - 1].y) : x;
    tile_arg v = tile_view(in, rows * widths[layer]);
    return !tile_buffer_fill(n->greatest, 0, 0, 4, NULL) &&
           RUN(n, MAGNITUDE, v, tile_f32_view(n->greatest, 1)) &&
           !tile_buffer_download(n->greatest, 0, greatest, 4, NULL) &&
           !tile_buffer_fill(n->bins, 0, 0, 4 * BINS, NULL) &&
           RUN(n, SPREAD, v, tile_i32_view(n->bins, BINS), tile_f32(*greatest)) &&
           !tile_buffer_download(n->bins, 0, bins, 4 * BINS, NULL);
}

static bool quantise_layer(Network *n, Layer *l, float scale_x)
{
    float *w = malloc((size_t)(l->in * l->out) * sizeof *w), scale[512], inverse[512];
    bool good = w && l->out <= 512 &&
                !tile_buffer_download(l->w, 0, w, (uint64_t)(l->in * l->out) * 4, NULL);
    for (int j = 0; good && j < l->out; j++) {
        float most = 1e-20f;
        for (int i = 0; i < l->in; i++) most = fmaxf(most, fabsf(w[i * l->out + j]));
        inverse[j] = n->limit / most;
        scale[j] = most / n->limit * scale_x;
    }
    free(w);
    l->inverse_x = 1 / scale_x;
    return good && !tile_buffer_upload(l->scale, 0, scale, 4 * (uint64_t)l->out, NULL) &&
           !tile_buffer_upload(l->inverse, 0, inverse, 4 * (uint64_t)l->out, NULL) &&
           RUN(n, WEIGHTS_TO_INT8, tile_f32_view(l->w, l->in, l->out),
               tile_f32_view(l->inverse, l->out), tile_i8_view(l->qw, l->in, l->out),
               tile_f32(n->limit));
}

bool network_quantise(Network *n, int bits, const float most[LAYERS])
{
    n->limit = (float)((1 << (bits - 1)) - 1);
    for (int i = 0; i < LAYERS; i++)
        if (!quantise_layer(n, &n->layer[i], most[i] / n->limit)) return false;
    return true;
}

bool network_run_int8(Network *n, const float *x, int rows)
{
    for (int i = 0; i < LAYERS; i++) {
        Layer *l = &n->layer[i];
        if (!RUN(n, TO_INT8, tile_view(x, rows * l->in), tile_i8_view(l->qx, rows * l->in),
                 tile_f32(l->inverse_x), tile_f32(n->limit)) ||
            !RUN(n, i == LAYERS - 1 ? INTEGER_LAST : INTEGER, tile_i8_view(l->qx, rows, l->in),
                 tile_i8_view(l->qw, l->in, l->out), tile_f32_view(l->y, rows, l->out), NOTHING,
                 tile_f32_view(l->scale, l->out), tile_f32_view(l->b, l->out), NO_MORE))
            return false;
        x = tile_buffer_ptr(l->y);
    }
    return true;
}
