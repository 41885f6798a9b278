/* network.h: a convolutional network on the default device and its training, with numbers of f32,
 * bf16 or f16. Functions are false when the device failed; tile_last_error() says why. */
#ifndef TRAIN_NETWORK_H
#define TRAIN_NETWORK_H
#include "../shared/example.h"

typedef enum Type { F32, BF16, F16, TYPES } Type;
extern const char *const type_names[TYPES];

enum { LAYERS = 3, TENSORS = 3 * LAYERS + 2, BATCH = 64 };

/* Weights: one of many in each buffer of weights, gradients, moments. */
typedef struct Tensor {
    char name[24];
    int64_t at, count; /* elements */
} Tensor;

enum {
    CONV,
    CONV_DATA,
    CONV_WEIGHT,
    STATISTICS,
    NORM,
    NORM_FIXED,
    NORM_SUMS,
    NORM_BACK,
    POOL,
    POOL_BACK,
    LAYER_KERNELS
};

/* A convolution of 3 x 3, batch norm, relu, and perhaps the greatest of 2 x 2. */
typedef struct Layer {
    int side, in, out, stride, pool; /* pixels on a side, channels */
    int mid, end;                    /* pixels on a side after the convolution, at the end */
    Tensor *w, *gain, *shift;
    tile_kernel *kernel[LAYER_KERNELS];
    tile_buffer *sums, *normed, *pooled, *index; /* forward */
    tile_buffer *dsums, *dnormed, *dpooled;      /* backward */
    tile_buffer *mean, *rstd, *all_mean, *all_variance;
    tile_buffer *parts, *parts_w, *arrived, *arrived_w; /* of programs that share a sum */
} Layer;

enum {
    TAKE,
    RELU_BACK,
    MEAN_BACK,
    TALLY,
    NARROW,
    PRODUCT,
    PRODUCT_BACK,
    PRODUCT_WEIGHT,
    BIAS_BACK,
    SUM_PARTS,
    LOSS,
    LOSS_BACK,
    BEST,
    SQUARES,
    CONTROL,
    ADAM,
    KERNELS
};
enum {
    WEIGHTS,
    MASTER,
    GRADS,
    FIRST,
    SECOND,
    STATES
}; /* of all tensors; weights are of the type */

typedef struct Network {
    Type type;
    int features; /* of a picture, after the last layer */
    Layer layer[LAYERS];
    Tensor tensor[TENSORS];
    int64_t size; /* of all tensors, in elements */
    Modules modules;
    Buffers buffers;
    tile_kernel *kernel[KERNELS];
    tile_buffer *state[STATES], *table[STATES], *length;
    tile_buffer *x, *label, *order, *logits, *dlogits, *loss, *lse, *dloss, *best, *total,
        *bias_parts;
    tile_buffer *squares, *factor, *norm, *scale, *steps, *good; /* of step_control */
} Network;

/* The weights are random. network_close is due in any case. */
bool network_open(Network *net, Type type, uint64_t seed);
void network_close(Network *net);

/* Reads `rows` pictures, at most BATCH, whose numbers are in `order`; the losses go into
 * net->loss and are added to net->total. `training`: batch norm by this batch, else by all batches
 * before. */
bool network_forward(Network *net, const tile_buffer *pictures, const tile_buffer *labels,
                     int64_t count, const int32_t *order, int rows, bool training);
/* Derivatives of the mean loss, times net->scale, by all weights. */
bool network_backward(Network *net, int rows);
/* A step of Adam with them; none where one is not finite: then net->scale is halved. */
bool network_step(Network *net, float rate);
/* The greatest logit's class of each row. */
bool network_read(Network *net, int32_t *digit, int rows);
/* After net->state[MASTER] was written. */
bool network_narrow(Network *net);
#endif
