/* check.h: derivatives against finite differences. */
#ifndef TRAIN_CHECK_H
#define TRAIN_CHECK_H
#include "network.h"

/* For each tensor of weights: the derivative of a batch's loss along a direction, and what the loss
 * changes along it. The network has to be of f32. *good: they agree. */
bool check_gradients(Network *net, const tile_buffer *pictures, const tile_buffer *labels,
                     int64_t count, bool *good);
#endif
