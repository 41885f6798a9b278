/* network.h: a network of three layers on the default device: trained in f32, run in f32 or with
 * integers. Functions are false when the device failed; tile_last_error() says why. */
#ifndef INT8_NETWORK_H
#define INT8_NETWORK_H
#include "../shared/example.h"

enum { LAYERS = 3, CLASSES = 10, BINS = 1024 };
extern const int widths[LAYERS + 1]; /* of the input and of each layer's output */

typedef struct Layer {
    int in, out;
    tile_buffer *w, *b, *y;               /* [in, out], [out], [rows, out] */
    tile_buffer *dw, *db, *dy;            /* derivatives of the loss */
    tile_buffer *first[2], *second[2];    /* Adam's moments of w and b */
    tile_buffer *qx, *qw, *scale;         /* integers: input [rows, in], weights; column scales */
    tile_buffer *inverse;                 /* of the weights' scales */
    float inverse_x;                      /* of the input's scale */
} Layer;

enum { FORWARD, FORWARD_LAST, BY_WEIGHTS, BACKWARD, INTEGER, INTEGER_LAST, JUDGE, GRADIENT,
       RELU_BACKWARD, COLUMN_SUMS, ADAM, MAGNITUDE, SPREAD, TO_INT8, WEIGHTS_TO_INT8, KERNELS };

typedef struct Network {
    Layer layer[LAYERS];
    Modules modules;
    Buffers buffers;
    tile_kernel *kernel[KERNELS];
    tile_buffer *loss, *right, *greatest, *bins; /* [rows], [rows], [1], [BINS] */
    int rows, steps;                             /* rows: at most so many go through together */
    float limit;                                 /* of integers: 127, or 7 for 4 bits */
} Network;

/* All weights are small random numbers. network_close is due in any case. */
bool network_open(Network *net, int rows);
void network_close(Network *net);

/* One step of training on `rows` pictures x and their labels; *loss: the mean cross entropy. */
bool network_train(Network *net, const float *x, const int32_t *label, int rows, double *loss);
/* Runs pictures that lie on the device; the logits are those of the last layer's y. */
bool network_run(Network *net, const float *x, int rows);
bool network_run_int8(Network *net, const float *x, int rows);
/* How many of the last run's rows have the label's logit as their greatest. */
bool network_count(Network *net, const int32_t *label, int rows, int *out_right, int32_t *right);

/* What went into a layer in the last run in f32: the greatest magnitude and a histogram of them. */
bool network_spread(Network *net, int layer, const float *x, int rows, float *greatest,
                    int32_t bins[BINS]);
/* Makes the weights integers of `bits` bits, with a scale for each column, and takes the greatest
 * magnitude that the input of each layer is to hold. */
bool network_quantise(Network *net, int bits, const float most[LAYERS]);
#endif
