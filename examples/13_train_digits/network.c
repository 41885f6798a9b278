#include "network.h"
#include "digits.h"

enum { PARTS = 4, SQUARES_PARTS = 16 };
const char *const type_names[TYPES] = {"f32", "bf16", "f16"};
static const tile_dtype dtypes[TYPES] = {TILE_F32, TILE_BF16, TILE_F16};
static const uint64_t sizes[TYPES] = {4, 2, 2};

/* ---- kernels ---- */

static int power_of_two(int n, int most)
{
    int p = 1;
    while (p < n && p < most)
        p *= 2;
    return p;
}

#define OWN KERNEL_DIR "/digits.tile"
#define GEMM "std.kernels.gemm"
#define CONVS "std.kernels.conv"
#define POOLING "std.kernels.pooling"
#define IMAGE_NORMS "std.kernels.image_norms"
#define LOSSES "std.kernels.losses"
#define OPTIMIZERS "std.kernels.optimizers"

#define OF_T {"T", 0, type_names[n->type]}

static bool get_kernels(Network *n)
{
    const KernelRow rows[KERNELS] = {
        [TAKE] = {OWN, "take", {OF_T}},
        [RELU_BACK] = {OWN, "relu_backward", {OF_T}},
        [MEAN_BACK] = {OWN, "mean_backward", {{0}}},
        [TALLY] = {OWN, "tally", {{0}}},
        [NARROW] = {OWN, "narrow", {OF_T}},
#define HEAD OF_T, {"BM", BATCH, 0}, {"BN", 16, 0}
        [PRODUCT] = {GEMM, "gemm_fused",
                     {OF_T, {"fuse.bias", 1, 0}, {"o.BM", BATCH, 0}, {"o.BN", 16, 0}}},
        [PRODUCT_BACK] = {GEMM, "gemm", {OF_T, {"BM", BATCH, 0}, {"BN", 64, 0}, {"TB", 1, 0}}},
        [PRODUCT_WEIGHT] = {GEMM, "gemm", {HEAD, {"TA", 1, 0}, {"O", 0, "f32"}}},
        [BIAS_BACK] = {CONVS, "bias_backward", {OF_T, {"BN", 16, 0}}},
        [SUM_PARTS] = {"std.kernels.norms", "sum_parts", {{0}}},
        [LOSS] = {LOSSES, "cross_entropy", {OF_T, {"BV", 16, 0}}},
        [LOSS_BACK] = {LOSSES, "cross_entropy_backward", {OF_T, {"BV", 16, 0}}},
        [BEST] = {"std.kernels.sampling", "argmax_rows", {OF_T, {"BV", 16, 0}}},
        [SQUARES] = {OPTIMIZERS, "sum_squares", {{0}}},
        [CONTROL] = {OPTIMIZERS, "step_control", {{0}}},
        [ADAM] = {OPTIMIZERS, "adam",
                  {OF_T, {"U", 0, "f32"}, {"o.master", 1, 0}, {"o.control", 1, 0}}},
    };
    return kernels_get(&n->modules, rows, KERNELS, n->kernel);
}

static bool get_layer_kernels(Network *n, Layer *l)
{
    int in = power_of_two(l->in, 64), out = power_of_two(l->out, 64);
#define OUT OF_T, {"BC", out, 0}
#define RELU {"epilogue", 0, "activation.relu"}
    const KernelRow rows[LAYER_KERNELS] = {
        [CONV] = {CONVS, "conv2d", {OF_T, {"BN", out, 0}, {"BC", in, 0}}},
        [CONV_DATA] = {CONVS, "conv2d_backward_data",
                       {OF_T, {"BM", 64, 0}, {"BN", in, 0}, {"BK", out, 0}}},
        [CONV_WEIGHT] = {CONVS, "conv2d_backward_weight",
                         {OF_T, {"O", 0, "f32"}, {"BM", in, 0}, {"BN", out, 0}}},
        [STATISTICS] = {IMAGE_NORMS, "batch_norm_statistics", {OUT}},
        [NORM] = {IMAGE_NORMS, "batch_norm", {OUT, {"W", 0, type_names[n->type]}, RELU}},
        [NORM_FIXED] = {IMAGE_NORMS, "batch_norm",
                        {OUT, {"W", 0, type_names[n->type]}, RELU, {"INFERENCE", 1, 0}}},
        [NORM_SUMS] = {IMAGE_NORMS, "batch_norm_backward_sums", {OUT}},
        [NORM_BACK] = {IMAGE_NORMS, "batch_norm_backward", {OUT, {"W", 0, type_names[n->type]}}},
        [POOL] = {POOLING, "max_pool2d", {OUT}},
        [POOL_BACK] = {POOLING, "max_pool2d_backward", {OUT}},
    };
    return kernels_get(&n->modules, rows, LAYER_KERNELS, l->kernel);
}

/* Tensors, as views of these extents. */
#define WEIGHT(tensor, ...) tile_buffer_view_at(n->state[WEIGHTS], (tensor)->at, t, __VA_ARGS__)
#define GRAD(tensor, ...)                                                                          \
    tile_buffer_view_at(n->state[GRADS], (tensor)->at, TILE_F32, __VA_ARGS__)

/* ---- memory ---- */

static Tensor *add_tensor(Network *n, int i, const char *name, int layer, int64_t count)
{
    Tensor *t = &n->tensor[i];
    snprintf(t->name, sizeof t->name, layer < 0 ? "%s" : "%s %d", name, layer + 1);
    t->at = n->size, t->count = count;
    n->size += (count + 63) / 64 * 64; /* the optimisers want multiples of 16 bytes */
    return t;
}

static bool open_layer(Network *n, Layer *l, int i)
{
    Buffers *b = &n->buffers;
    size_t size = sizes[n->type], out = (size_t)l->out, weights = 9 * (size_t)l->in * out;
    size_t mid = BATCH * (size_t)(l->mid * l->mid) * out;
    size_t end = l->pool ? BATCH * (size_t)(l->end * l->end) * out : 0;
    l->w = add_tensor(n, 3 * i, "filters", i, weights);
    l->gain = add_tensor(n, 3 * i + 1, "gains", i, l->out);
    l->shift = add_tensor(n, 3 * i + 2, "shifts", i, l->out);
    return zeros(b, &l->sums, mid, size) && zeros(b, &l->normed, mid, size) &&
           zeros(b, &l->pooled, end, size) &&
           zeros(b, &l->index, end, 4) && zeros(b, &l->dsums, mid, size) &&
           zeros(b, &l->dnormed, mid, size) && zeros(b, &l->dpooled, end, size) &&
           zeros(b, &l->mean, out, 4) && zeros(b, &l->rstd, out, 4) &&
           zeros(b, &l->all_mean, out, 4) && zeros(b, &l->all_variance, out, 4) &&
           zeros(b, &l->parts, PARTS * 2 * out, 4) &&
           zeros(b, &l->parts_w, PARTS * weights, 4) && zeros(b, &l->arrived, 1, 4) &&
           zeros(b, &l->arrived_w, 9, 4) && get_layer_kernels(n, l);
}

static bool open_tensors(Network *n, uint64_t seed)
{
    Buffers *b = &n->buffers;
    uint64_t address[TENSORS];
    int64_t length[TENSORS];
    for (int i = 0; i < STATES; i++) {
        uint64_t size = i == WEIGHTS ? sizes[n->type] : 4;
        if (!zeros(b, &n->state[i], (size_t)n->size, size) || !zeros(b, &n->table[i], TENSORS, 8))
            return false;
        for (int t = 0; t < TENSORS; t++)
            address[t] = (uint64_t)(uintptr_t)tile_buffer_ptr(n->state[i]) +
                         (uint64_t)n->tensor[t].at * size;
        if (tile_buffer_upload(n->table[i], 0, address, sizeof address, NULL))
            return false;
    }
    for (int t = 0; t < TENSORS; t++)
        length[t] = n->tensor[t].count;
    float *w = calloc((size_t)n->size, sizeof *w);
    for (int i = 0; w && i < LAYERS; i++) {
        const Layer *l = &n->layer[i];
        float size = sqrtf(2 / (9 * (float)l->in));
        for (int64_t k = 0; k < l->w->count; k++)
            w[l->w->at + k] = size * (float)normal(&seed);
        for (int64_t k = 0; k < l->out; k++)
            w[l->gain->at + k] = 1;
    }
    for (int64_t k = 0; w && k < n->features * CLASSES; k++)
        w[n->tensor[TENSORS - 2].at + k] = (float)(normal(&seed) / sqrt(n->features));
    bool good = w && zeros(b, &n->length, TENSORS, 8) &&
                !tile_buffer_upload(n->length, 0, length, sizeof length, NULL) &&
                !tile_buffer_upload(n->state[MASTER], 0, w, (uint64_t)n->size * 4, NULL) &&
                network_narrow(n);
    return free(w), good;
}

bool network_open(Network *n, Type type, uint64_t seed)
{
    static const Layer layers[LAYERS] = {{.side = SIDE, .in = 1, .out = 16, .stride = 1, .pool = 1},
                                         {.in = 16, .out = 32, .stride = 1, .pool = 1},
                                         {.in = 32, .out = 64, .stride = 2}};
    const float scale = type == F16 ? 65536 : 1;
    *n = (Network){.type = type};
    for (int i = 0; i < LAYERS; i++) {
        Layer *l = &n->layer[i];
        *l = layers[i];
        if (i)
            l->side = l[-1].end;
        l->mid = (l->side - 1) / l->stride + 1, l->end = l->pool ? l->mid / 2 : l->mid;
        if (!open_layer(n, l, i))
            return false;
        n->features = l->end * l->end * l->out;
    }
    add_tensor(n, TENSORS - 2, "weights", -1, n->features * CLASSES);
    add_tensor(n, TENSORS - 1, "biases", -1, CLASSES);
    Buffers *b = &n->buffers;
    size_t size = sizes[type];
    return get_kernels(n) && open_tensors(n, seed) && zeros(b, &n->x, BATCH * PIXELS, size) &&
           zeros(b, &n->label, BATCH, 4) && zeros(b, &n->order, BATCH, 4) &&
           zeros(b, &n->logits, BATCH * CLASSES, size) &&
           zeros(b, &n->dlogits, BATCH * CLASSES, size) && zeros(b, &n->loss, BATCH, 4) &&
           zeros(b, &n->lse, BATCH, 4) && zeros(b, &n->dloss, BATCH, 4) &&
           zeros(b, &n->best, BATCH, 4) && zeros(b, &n->total, 1, 4) &&
           zeros(b, &n->bias_parts, PARTS * CLASSES, 4) &&
           zeros(b, &n->squares, SQUARES_PARTS, 4) && zeros(b, &n->factor, 1, 4) &&
           zeros(b, &n->norm, 1, 4) && zeros(b, &n->scale, 1, 4) && zeros(b, &n->steps, 1, 4) &&
           zeros(b, &n->good, 1, 4) && !tile_buffer_upload(n->scale, 0, &scale, 4, NULL);
}

void network_close(Network *n)
{
    buffers_free(&n->buffers), modules_free(&n->modules);
}

bool network_narrow(Network *n)
{
    const tile_dtype t = dtypes[n->type];
    return RUN(n, NARROW, tile_f32_view(n->state[MASTER], n->size),
               tile_buffer_view(n->state[WEIGHTS], t, n->size));
}

/* ---- forward ---- */

#define WINDOW(l)                                                                                  \
    tile_i32((l)->stride), tile_i32((l)->stride), tile_i32(1), tile_i32(1), tile_i32(1), tile_i32(1)
#define POOL_WINDOW                                                                                \
    tile_i32(2), tile_i32(2), tile_i32(2), tile_i32(2), tile_i32(0), tile_i32(0), tile_i32(1),     \
        tile_i32(1)

static const tile_buffer *result(const Layer *l)
{
    return l->pool ? l->pooled : l->normed;
}

static bool layer_forward(Network *n, Layer *l, const tile_buffer *x, int rows, bool training)
{
    const tile_dtype t = dtypes[n->type];
    int pixels = rows * l->mid * l->mid, c = l->out;
    const tile_buffer *mean = training ? l->mean : l->all_mean;
    const tile_buffer *spread = training ? l->rstd : l->all_variance;
    if (!RUN(l, CONV, tile_buffer_view(x, t, rows, l->side, l->side, l->in),
             WEIGHT(l->w, 3, 3, l->in, c), tile_buffer_view(NULL, t, 0),
             tile_buffer_view(l->sums, t, rows, l->mid, l->mid, c), WINDOW(l)))
        return false;
    if (training &&
        !RUN(l, STATISTICS, tile_buffer_view(l->sums, t, pixels, c),
             tile_f32_view(l->parts, PARTS, 2, c), tile_u32_view(l->arrived, 1),
             tile_f32_view(l->mean, c), tile_f32_view(l->rstd, c), tile_f32_view(l->all_mean, c),
             tile_f32_view(l->all_variance, c), tile_f32(1e-5f), tile_f32(0.05f)))
        return false;
    return RUN(l, training ? NORM : NORM_FIXED, tile_buffer_view(l->sums, t, pixels, c),
               tile_f32_view(mean, c), tile_f32_view(spread, c), WEIGHT(l->gain, c),
               WEIGHT(l->shift, c), tile_buffer_view(NULL, t, 0, 0),
               tile_buffer_view(l->normed, t, pixels, c), tile_f32(1e-5f)) &&
           (!l->pool ||
            RUN(l, POOL, tile_buffer_view(l->normed, t, rows, l->mid, l->mid, c),
                tile_buffer_view(l->pooled, t, rows, l->end, l->end, c),
                tile_i32_view(l->index, rows, l->end, l->end, c), POOL_WINDOW));
}

bool network_forward(Network *n, const tile_buffer *pictures, const tile_buffer *labels,
                     int64_t count, const int32_t *order, int rows, bool training)
{
    const tile_dtype t = dtypes[n->type];
    const Tensor *w = &n->tensor[TENSORS - 2], *b = &n->tensor[TENSORS - 1];
    if (tile_buffer_upload(n->order, 0, order, (uint64_t)rows * 4, NULL) ||
        !RUN(n, TAKE, tile_u8_view(pictures, count, PIXELS), tile_i32_view(labels, count),
             tile_i32_view(n->order, rows), tile_buffer_view(n->x, t, rows, PIXELS),
             tile_i32_view(n->label, rows)))
        return false;
    const tile_buffer *x = n->x;
    for (int i = 0; i < LAYERS; x = result(&n->layer[i++]))
        if (!layer_forward(n, &n->layer[i], x, rows, training))
            return false;
    return RUN(n, PRODUCT, tile_buffer_view(x, t, rows, n->features),
               WEIGHT(w, n->features, CLASSES), tile_buffer_view(n->logits, t, rows, CLASSES),
               tile_f32_view(NULL, 0), tile_f32_view(NULL, 0), WEIGHT(b, CLASSES),
               tile_buffer_view(NULL, t, 0, 0), tile_f32_view(NULL, 0), tile_f32(0), tile_u64(0)) &&
           RUN(n, LOSS, tile_buffer_view(n->logits, t, rows, CLASSES),
               tile_i32_view(n->label, rows), tile_f32_view(n->loss, rows),
               tile_f32_view(n->lse, rows), tile_f32(0), tile_f32(0), tile_i32(-1)) &&
           RUN(n, TALLY, tile_f32_view(n->loss, rows), tile_f32_view(n->total, 1));
}

bool network_read(Network *n, int32_t *digit, int rows)
{
    const tile_dtype t = dtypes[n->type];
    return RUN(n, BEST, tile_buffer_view(n->logits, t, rows, CLASSES),
               tile_i32_view(n->best, rows)) &&
           !tile_buffer_download(n->best, 0, digit, (uint64_t)rows * 4, NULL);
}

/* ---- backward ---- */

/* From the derivative by the result to that by the input dx, which the first has no use for. */
static bool layer_backward(Network *n, Layer *l, const tile_buffer *x, tile_buffer *dx, int rows)
{
    const tile_dtype t = dtypes[n->type];
    int pixels = rows * l->mid * l->mid, c = l->out;
    int64_t count = (int64_t)rows * l->end * l->end * c;
    tile_arg sums = tile_buffer_view(l->sums, t, pixels, c),
             dnormed = tile_buffer_view(l->dnormed, t, pixels, c);
    tile_arg mean = tile_f32_view(l->mean, c), rstd = tile_f32_view(l->rstd, c);
    tile_arg dw = GRAD(l->gain, c), dbias = GRAD(l->shift, c);
    tile_arg dy = tile_buffer_view(l->dsums, t, rows, l->mid, l->mid, c);
    /* The relu comes after the maximum here, which is as good and has less to do. */
    return RUN(n, RELU_BACK, tile_buffer_view(l->pool ? l->dpooled : l->dnormed, t, count),
               tile_buffer_view(result(l), t, count)) &&
           (!l->pool ||
            RUN(l, POOL_BACK, tile_buffer_view(l->dpooled, t, rows, l->end, l->end, c),
                tile_i32_view(l->index, rows, l->end, l->end, c),
                tile_buffer_view(l->dnormed, t, rows, l->mid, l->mid, c), POOL_WINDOW)) &&
           RUN(l, NORM_SUMS, dnormed, sums, mean, rstd,
               tile_f32_view(l->parts, PARTS, 2, c), tile_u32_view(l->arrived, 1), dw, dbias) &&
           RUN(l, NORM_BACK, dnormed, sums, mean, rstd, WEIGHT(l->gain, c), dw, dbias,
               tile_buffer_view(l->dsums, t, pixels, c)) &&
           RUN(l, CONV_WEIGHT, tile_buffer_view(x, t, rows, l->side, l->side, l->in), dy,
               GRAD(l->w, 3, 3, l->in, c), tile_f32_view(l->parts_w, PARTS, 3, 3, l->in, c),
               tile_u32_view(l->arrived_w, 9, 1, 1), WINDOW(l)) &&
           (!dx || RUN(l, CONV_DATA, dy, WEIGHT(l->w, 3, 3, l->in, c),
                       tile_buffer_view(dx, t, rows, l->side, l->side, l->in), WINDOW(l)));
}

bool network_backward(Network *n, int rows)
{
    const tile_dtype t = dtypes[n->type];
    const Tensor *w = &n->tensor[TENSORS - 2], *b = &n->tensor[TENSORS - 1];
    const Layer *last = &n->layer[LAYERS - 1];
    tile_arg dlogits = tile_buffer_view(n->dlogits, t, rows, CLASSES);
    if (!(RUN(n, MEAN_BACK, tile_f32_view(n->scale, 1), tile_f32_view(n->dloss, rows)) &&
          RUN(n, LOSS_BACK, tile_buffer_view(n->logits, t, rows, CLASSES),
              tile_i32_view(n->label, rows), tile_f32_view(n->lse, rows),
              tile_f32_view(n->dloss, rows), dlogits, tile_f32(0), tile_f32(0), tile_i32(-1)) &&
          RUN(n, PRODUCT_WEIGHT, tile_buffer_view(result(last), t, rows, n->features),
              dlogits, GRAD(w, n->features, CLASSES)) &&
          RUN(n, BIAS_BACK, dlogits, tile_f32_view(n->bias_parts, PARTS, CLASSES)) &&
          RUN(n, SUM_PARTS, tile_f32_view(n->bias_parts, PARTS, CLASSES),
              GRAD(b, CLASSES)) &&
          RUN(n, PRODUCT_BACK, dlogits, WEIGHT(w, n->features, CLASSES),
              tile_buffer_view(last->pool ? last->dpooled : last->dnormed, t, rows, n->features))))
        return false;
    for (int i = LAYERS - 1; i >= 0; i--) {
        Layer *l = &n->layer[i];
        tile_buffer *dx = i == 0 ? NULL : l[-1].pool ? l[-1].dpooled : l[-1].dnormed;
        if (!layer_backward(n, l, i ? result(l - 1) : n->x, dx, rows))
            return false;
    }
    return true;
}

static tile_arg table(const Network *n, int i) { return tile_u64_view(n->table[i], TENSORS); }

bool network_step(Network *n, float rate)
{
    bool scaled = n->type == F16;
    tile_arg lengths = tile_i64_view(n->length, TENSORS);
    return RUN(n, SQUARES, table(n, GRADS), lengths,
               tile_f32_view(n->squares, SQUARES_PARTS)) &&
           RUN(n, CONTROL, tile_f32_view(n->squares, SQUARES_PARTS),
               tile_f32_view(n->factor, 1), tile_f32_view(n->norm, 1), tile_f32_view(n->scale, 1),
               tile_i32_view(n->steps, 1), tile_i32_view(n->good, 1), tile_f32(1),
               tile_f32(INFINITY), tile_f32(scaled ? 2 : 1), tile_f32(scaled ? 0.5f : 1),
               tile_i32(200)) &&
           RUN(n, ADAM, table(n, WEIGHTS), table(n, GRADS), table(n, FIRST),
               table(n, SECOND), table(n, MASTER), lengths, tile_f32_view(n->factor, 1),
               tile_i32_view(n->steps, 1), tile_f32(1), tile_i32(0), tile_f32(rate), tile_f32(0.9f),
               tile_f32(0.99f), tile_f32(1e-7f), tile_f32(1e-3f), tile_u64(0));
}
