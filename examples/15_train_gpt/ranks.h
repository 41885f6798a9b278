/* ranks.h: processes that train one model together, by MPI; one process where there is no mpirun.
 * What they tell each other lies in the host's memory. Errors end the process: mpirun ends the
 * others, which may be waiting. */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H
#include <stdbool.h>
#include <stddef.h>

void ranks_open(void);
void ranks_close(void);
int ranks_me(void);
int ranks_count(void);
int ranks_local(void); /* the place among the ranks of this machine */
/* Each becomes the sum over all ranks, the same bits everywhere. */
void ranks_sum_floats(float *x, size_t n);
void ranks_sum_doubles(double *x, size_t n);
/* Of n bytes part r is rank r's: everyone gets the others. */
void ranks_gather(void *x, size_t n);
/* The first rank's n bytes become everyone's. */
void ranks_give(void *x, size_t n);
/* The first rank on which it is true; if on none, ranks_count(). */
int ranks_first(bool mine);
/* True where it is on all ranks: so that all of them stop when one has to. */
bool ranks_all(bool mine);
#endif
