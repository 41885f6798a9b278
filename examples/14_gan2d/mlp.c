#include "mlp.h"

bool kernels_open(Kernels *k, const char *loss, const char *loss_generator)
{
#define GEMM "std.kernels.gemm"
#define GAN "std.kernels.gan"
#define OWN KERNEL_DIR "/gan2d.tile"
#define F32_GEMM {"T", 0, "f32"}, {"BM", 64, 0}, {"BN", 32, 0}
#define F32_FUSED {"T", 0, "f32"}, {"fuse.bias", 1, 0}, {"o.BM", 64, 0}, {"o.BN", 32, 0}
    const KernelRow rows[KERNELS] = {
        [FORWARD] = {GEMM, "gemm_fused", {F32_FUSED, {"epilogue", 0, "activation.relu"}}},
        [FORWARD_LAST] = {GEMM, "gemm_fused", {F32_FUSED}},
        [BY_WEIGHTS] = {GEMM, "gemm", {F32_GEMM, {"TA", 1, 0}}},
        [BY_INPUT] = {GEMM, "gemm", {F32_GEMM, {"TB", 1, 0}}},
        [BY_BIAS] = {"std.kernels.conv", "bias_backward", {{"T", 0, "f32"}}},
        [RELU_BACKWARD] = {OWN, "relu_backward", {{0}}},
        [ADAM] = {"std.kernels.optimizers", "adam", {{"T", 0, "f32"}}},
        [LOSS] = {GAN, "gan_loss", {{"loss", 0, loss}}},
        [LOSS_GENERATOR] = {GAN, "gan_loss", {{"loss", 0, loss_generator}}},
        [DRAW_REAL] = {OWN, "draw_real", {{0}}},
        [DRAW_NOISE] = {OWN, "draw_noise", {{0}}},
    };
    return kernels_get(&k->modules, rows, KERNELS, k->kernel) &&
           kernels_prepare(k->kernel, KERNELS);
}

/* ---- memory ---- */

/* Weights uniform within sqrt(6 / in) (He et al. 2015), the last layer's smaller; biases 0. */
static bool begin_weights(Mlp *n, uint64_t *seed)
{
    float *w = calloc((size_t)n->size, sizeof *w);
    for (int i = 0; w && i < LAYERS; i++) {
        double most = sqrt((i == LAYERS - 1 ? 1.0 : 6.0) / n->width[i]);
        for (int64_t j = n->w[i]; j < n->b[i]; j++) w[j] = (float)(most * (2 * uniform(seed) - 1));
    }
    bool good = w && !tile_buffer_upload(n->state[WEIGHTS], 0, w, (uint64_t)n->size * 4, NULL);
    return free(w), good;
}

bool mlp_open(Mlp *n, int in, int out, uint64_t *seed)
{
    *n = (Mlp){.width = {in, WIDTH, WIDTH, out}};
    for (int i = 0; i < LAYERS; i++) {
        n->w[i] = n->size, n->b[i] = n->size + n->width[i] * n->width[i + 1];
        n->size = (n->b[i] + n->width[i + 1] + 3) / 4 * 4; /* multiples of 16 bytes */
        if (!zeros(&n->buffers, &n->y[i], (size_t)(MOST * n->width[i + 1]), 4) ||
            !zeros(&n->buffers, &n->dy[i], (size_t)(MOST * n->width[i + 1]), 4))
            return false;
    }
    uint64_t table[STATES + 1] = {[STATES] = (uint64_t)n->size};
    for (int i = 0; i < STATES; i++) {
        if (!zeros(&n->buffers, &n->state[i], (size_t)n->size, 4)) return false;
        table[i] = (uint64_t)(uintptr_t)tile_buffer_ptr(n->state[i]);
    }
    return zeros(&n->buffers, &n->table, STATES + 1, 8) &&
           !tile_buffer_upload(n->table, 0, table, sizeof table, NULL) && begin_weights(n, seed);
}

void mlp_close(Mlp *n) { buffers_free(&n->buffers); }

/* ---- there and back ---- */

#define NOTHING tile_f32_view(NULL, 0)
/* What gemm_fused has behind its scales and bias: no residual, no sums of rows, no dropout. */
#define NO_MORE tile_f32_view(NULL, 0, 0), NOTHING, tile_f32(0), tile_u64(0)

bool mlp_forward(const Kernels *k, Mlp *n, const float *x, float *y, int rows)
{
    for (int i = 0; i < LAYERS; i++) {
        bool last = i == LAYERS - 1;
        int in = n->width[i], out = n->width[i + 1];
        float *w = tile_buffer_ptr(n->state[WEIGHTS]), *to = last ? y : tile_buffer_ptr(n->y[i]);
        if (!RUN(k, last ? FORWARD_LAST : FORWARD, tile_view(x, rows, in),
                 tile_view(w + n->w[i], in, out), tile_view(to, rows, out), NOTHING, NOTHING,
                 tile_view(w + n->b[i], out), NO_MORE))
            return false;
        x = to;
    }
    return true;
}

bool mlp_backward(const Kernels *k, Mlp *n, const float *x, float *dy, float *dx, int rows,
                  bool weights)
{
    float *w = tile_buffer_ptr(n->state[WEIGHTS]), *dw = tile_buffer_ptr(n->state[GRADIENTS]);
    for (int i = LAYERS - 1; i >= 0; i--) {
        int in = n->width[i], out = n->width[i + 1];
        const float *from = i ? tile_buffer_ptr(n->y[i - 1]) : x;
        float *to = i ? tile_buffer_ptr(n->dy[i - 1]) : dx;
        tile_arg d = tile_view(dy, rows, out);
        if (weights && !(RUN(k, BY_WEIGHTS, tile_view(from, rows, in), d,
                             tile_view(dw + n->w[i], in, out)) &&
                         RUN(k, BY_BIAS, d, tile_view(dw + n->b[i], 1, out))))
            return false;
        if (to && !RUN(k, BY_INPUT, d, tile_view(w + n->w[i], in, out),
                       tile_view(to, rows, in)))
            return false;
        if (i && !RUN(k, RELU_BACKWARD, tile_view(to, rows * in), tile_view(from, rows * in)))
            return false;
        dy = to;
    }
    return true;
}

/* Its address. */
static tile_arg state(const Mlp *n, int i) { return tile_buffer_view_at(n->table, i, TILE_U64, 1); }

bool mlp_step(const Kernels *k, Mlp *n, float rate)
{
    return RUN(k, ADAM, state(n, WEIGHTS), state(n, GRADIENTS), state(n, FIRST), state(n, SECOND),
               tile_u64_view(NULL, 0), tile_buffer_view_at(n->table, STATES, TILE_I64, 1), NOTHING,
               tile_i32_view(NULL, 0), tile_f32(1), tile_i32(++n->steps), tile_f32(rate),
               tile_f32(0.5f), tile_f32(0.99f), tile_f32(1e-8f), tile_f32(0), tile_u64(0));
}
