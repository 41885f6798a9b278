/* steps.h: steps of AdamW on a model's weights, with clipping and a scale of the loss, that never
 * wait for the device but where several ranks add up their gradients. */
#ifndef TRAIN_STEPS_H
#define TRAIN_STEPS_H
#include "model.h"

typedef struct Steps {
    Model *model;
    Buffers buffers;
    tile_buffer *master, *first, *second, *total; /* f32, as the model's tensors lie */
    tile_buffer *length, *table[6];               /* of all tensors: numbers and addresses */
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
