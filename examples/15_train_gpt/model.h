/* model.h: a decoder of bytes on the default device: rms norm, rotary positions, attention, swiglu.
 * Functions are false when the device failed; tile_last_error() says why. */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H
#include "../shared/text.h"
#include "kernels.h"

/* Matrices come first, of all layers; only they decay. */
typedef enum Role { EMBEDDING, HEAD, QKV, OUT, UP, DOWN, LAST_NORM, NORM, HIDDEN_NORM, ROLES } Role;

typedef struct Config {
    int layers, width, heads, hidden, context; /* context: tokens of a sequence */
    int batch;                                 /* sequences that go through together */
    Type type;                                 /* of weights and what lies between the layers */
    int ranks; /* in so many parts each bucket is divided; 0: as in 1 */
} Config;

typedef struct Tensor {
    Role role;
    int layer, rows, cols;
    size_t at; /* in elements, from the beginning of the buffer that all tensors share */
    size_t chance; /* of its first weights: as `at` with one rank */
    int bucket;
} Tensor;

/* Tensors that follow each other and whose derivatives are complete at the same time: the
 * embedding, the head, the matrices of each layer, all norms. Its n elements are a multiple of 64
 * for each rank. */
typedef struct Bucket {
    size_t at, n;
} Bucket;

/* What a layer keeps for its way back; rows are tokens. */
typedef struct Layer {
    tile_buffer *x, *rstd, *y;       /* what came in, its norm's factor, normalised */
    tile_buffer *qkv, *lse, *heads;  /* rotated; of attention; its result */
    tile_buffer *mid, *rstd_mid, *z; /* with attention's result added; normalised */
    tile_buffer *up, *act;           /* both halves; gated */
} Layer;

typedef struct Model {
    Config config;
    Kernels kernels;
    Buffers buffers;
    Tensor *tensor;
    Bucket *bucket;
    int tensors, matrices, buckets;
    size_t size; /* elements of all tensors, each from a multiple of 64 */
    tile_buffer *weights, *grads; /* of config.type; f32 */
    Layer *layer;
    tile_buffer *token, *place, *label, *order, *offsets; /* of a batch */
    tile_buffer *cosine, *sine, *branch, *last, *rstd_last, *y_last, *logits;
    tile_buffer *loss, *lse, *scale, *dloss, *zero;
    tile_buffer *d[2], *dy, *dact, *dup, *dqkv, *dheads, *delta, *part;
} Model;

bool model_open(Model *m, Config c); /* weights are 0; model_close is due in any case */
void model_close(Model *m);
Tensor *model_tensor(const Model *m, Role role, int layer);

/* Puts bytes on the device: of each of `rows` sequences `length` inputs, and what follows each as
 * its label. `x` has row after row with length + 1 bytes. */
bool model_load(Model *m, const uint8_t *x, int rows, int length);
/* Runs what was loaded; the logits are those of m->logits, [rows * length, BYTES]. */
bool model_forward(Model *m, int rows, int length);
/* After model_forward: the losses of all tokens, in nats, to m->loss. */
bool model_loss(Model *m, int rows, int length);
/* After model_loss: derivatives of scale[0] / all times the sum of the losses, to m->grads. What
 * completes a bucket has been launched when `ready`, if not NULL, is called. */
typedef bool Ready(const Model *m, const Bucket *bucket);
bool model_backward(Model *m, int rows, int length, double all, Ready *ready);
#endif
