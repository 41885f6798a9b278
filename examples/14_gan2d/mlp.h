/* mlp.h: networks of three layers with relu between them, f32, on the default device. Functions are
 * false when the device failed; tile_last_error() says why. */
#ifndef GAN2D_MLP_H
#define GAN2D_MLP_H
#include "../shared/example.h"

enum { LAYERS = 3, WIDTH = 128, MOST = 2048 }; /* MOST: rows go through together */

enum { FORWARD, FORWARD_LAST, BY_WEIGHTS, BY_INPUT, BY_BIAS, RELU_BACKWARD, ADAM,
       LOSS, LOSS_GENERATOR, DRAW_REAL, DRAW_NOISE, KERNELS };

typedef struct Kernels {
    Modules modules;
    tile_kernel *kernel[KERNELS];
} Kernels;

/* The losses are functions of std.kernels.gan. */
bool kernels_open(Kernels *k, const char *loss, const char *loss_generator);

enum { WEIGHTS, GRADIENTS, FIRST, SECOND, STATES };

typedef struct Mlp {
    Buffers buffers;
    int width[LAYERS + 1], steps;
    int64_t w[LAYERS], b[LAYERS], size; /* where weights [in, out] and biases lie in each state */
    tile_buffer *state[STATES];         /* [size]: what Adam keeps, too */
    tile_buffer *table;                 /* addresses of the states, and their size */
    tile_buffer *y[LAYERS], *dy[LAYERS]; /* [MOST, out] */
} Mlp;

bool mlp_open(Mlp *n, int in, int out, uint64_t *seed);
void mlp_close(Mlp *n);
/* y [rows, out] of x [rows, in], device addresses; n->y keeps what the other layers gave. */
bool mlp_forward(const Kernels *k, Mlp *n, const float *x, float *y, int rows);
/* After it, from dy [rows, out]: gradients by weights, and, where dx is not NULL, dx [rows, in]. */
bool mlp_backward(const Kernels *k, Mlp *n, const float *x, float *dy, float *dx, int rows,
                  bool weights);
bool mlp_step(const Kernels *k, Mlp *n, float rate);
#endif
