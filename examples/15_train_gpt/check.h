/* check.h: the derivatives of the whole model against differences of its loss. */
#ifndef TRAIN_CHECK_H
#define TRAIN_CHECK_H
#include <stdbool.h>

/* Prints the greatest error of each kind of tensor; *good: all are small. False: the device
 * failed. */
bool check_gradients(bool *good);
#endif
