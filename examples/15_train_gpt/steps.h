/* steps.h: steps of AdamW on a model's weights, with clipping and a scale of the loss, that never
 * wait for the device. Of several ranks each has the moments and master weights of its part of
 * every bucket, makes the step for these weights, and gets the others from the others (ZeRO-1). */
#ifndef TRAIN_STEPS_H
#define TRAIN_STEPS_H
#include "model.h"

/* What this rank has of a tensor. */
typedef struct Piece {
    const Tensor *tensor;
    size_t at, own, n; /* in elements: among all tensors, among this rank's; how many */
} Piece;

typedef struct Steps {
    Model *model;
    Buffers buffers;
    Piece *piece;
    int pieces, matrices;                   /* of matrices: the first so many */
    tile_buffer *master, *first, *second;   /* f32, of this rank's pieces */
    tile_buffer *total;                     /* f32, as the model's tensors lie */
    tile_buffer *length, *table[6];         /* of the pieces: numbers and addresses */
    tile_buffer *all_length, *all_table[2]; /* of whole tensors: gradients, totals */
    tile_buffer *part, *factor, *norm, *taken, *good;
} Steps;

/* Gives the weights their first values, random ones of this seed. steps_close is due in any
 * case. */
bool steps_open(Steps *s, Model *m, uint64_t seed);
void steps_close(Steps *s);
/* Gradients of several batches are added up; `first`: of the first one. */
bool steps_accumulate(Steps *s, bool first);
/* A step with the gradients of this batch, or with those that were added up. */
bool steps_step(Steps *s, bool accumulated, float rate, float decay);
/* Steps that were made, not left out; the last global norm; the scale of the loss. */
bool steps_state(const Steps *s, int *taken, float *norm, float *scale);
/* Sets a tensor's weights, from f32, in all their copies. */
bool steps_set(Steps *s, const Tensor *t, const float *w);
#endif
