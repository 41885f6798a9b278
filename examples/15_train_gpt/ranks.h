/* ranks.h: processes that train one model together, by MPI; one process where there is none. */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H
#include <stdbool.h>
#include <stddef.h>

void ranks_open(int *argc, char ***argv);
void ranks_close(void);
int ranks_me(void);
int ranks_count(void);
int ranks_local(void); /* the place among the ranks of this machine */
/* Each becomes the sum over all ranks, the same bits everywhere. */
void ranks_sum_floats(float *x, size_t n);
void ranks_sum_doubles(double *x, size_t n);
/* The first rank's n bytes become everyone's. */
void ranks_give(void *x, size_t n);
/* The first rank on which it is true; if on none, ranks_count(). */
int ranks_first(bool mine);
/* Do these n bytes differ from those of every other rank of this machine? */
bool ranks_differ(const void *x, size_t n);
/* True where it is on all ranks: so that all of them stop when one has to. */
bool ranks_all(bool mine);
#endif
