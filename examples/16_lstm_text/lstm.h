/* lstm.h: a recurrent network of bytes on the default device, in f32: an LSTM layer, whose state
 * gives the scores of the next byte. Functions are false when the device failed; tile_last_error()
 * says why.
 *
 * Rows are time after time: row t * rows + r is step t of sequence r. */
#ifndef LSTM_H
#define LSTM_H
#include "../shared/example.h"
#include "../shared/text.h"

typedef enum Tensor { INPUT, STATE, SCORES, TENSORS } Tensor;
typedef enum Table { WEIGHTS, GRADIENTS, FIRST, SECOND, TABLES } Table;

/* Where the sequences are: h and c, [length + 1, rows, width]; place 0 is what was before. */
typedef struct Memory {
    Buffers buffers;
    tile_buffer *h, *c;
} Memory;

typedef struct Lstm {
    int width, rows, length; /* of the state; of a chunk, at most */
    Modules modules;
    Buffers buffers;
    tile_kernel *kernel[12];
    size_t size[TENSORS];                      /* numbers of the tensors */
    tile_buffer *tensor[TABLES][TENSORS], *table[TABLES], *sizes;
    tile_buffer *token, *label, *order, *offsets, *loss, *lse, *dloss; /* of a chunk */
    tile_buffer *x, *gates, *logits, *dh, *dz, *dc, *dstart;
    tile_buffer *part, *factor, *norm, *scale, *steps, *good;
} Lstm;

/* Random weights of this seed. lstm_close is due in any case. */
bool lstm_open(Lstm *m, int width, int rows, int length, uint64_t seed);
void lstm_close(Lstm *m);
bool lstm_remember(const Lstm *m, Memory *s); /* nothing yet; lstm_forget is due in any case */
void lstm_forget(Memory *s);

/* Puts a chunk on the device: x has row after row with length + 1 bytes. */
bool lstm_load(Lstm *m, const uint8_t *x, int rows, int length);
/* Goes through the chunk from place 0 of the memory: scores to m->logits. */
bool lstm_forward(Lstm *m, Memory *s, int rows, int length);
/* What is at the chunk's end becomes what was before the next one. */
bool lstm_go_on(const Lstm *m, Memory *s, int rows, int length);
/* After lstm_forward: the mean loss of the chunk's bytes, in nats. */
bool lstm_loss(Lstm *m, int rows, int length, double *mean);
/* After lstm_loss: the derivatives of that mean by all weights; what was before counts as given. */
bool lstm_backward(Lstm *m, Memory *s, int rows, int length);
/* A step of Adam, gradients clipped to a norm of 1. */
bool lstm_step(Lstm *m, float rate);
#endif
