/* check.h: the network's derivatives against differences of its loss. */
#ifndef CHECK_H
#define CHECK_H
#include <stdbool.h>

/* False: the device failed. *good: all of them agree. */
bool check_gradients(bool *good);
#endif
