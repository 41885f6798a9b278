/* team.h: the ranks of an MPI job that hold one model together; one process alone where there is no
 * mpirun. Each has some heads and some of the hidden columns of every layer, and what comes out of
 * these is added up. Functions are false when something failed, as tile_last_error() says. */
#ifndef LLM_TEAM_H
#define LLM_TEAM_H
#include <stdbool.h>
#include <stddef.h>
#include <tile.h>

/* By all ranks, before anything uses the default device. */
bool team_open(void);
void team_close(void);
int team_rank(void);
int team_size(void);
/* Each of the first n numbers, which are f32, becomes the sum over all ranks. */
bool team_sum(tile_buffer *numbers, size_t n);
/* The first n numbers, which are i32, become the first rank's. */
bool team_agree(tile_buffer *numbers, size_t n);

/* What a rank has of n things: from `first` on. */
typedef struct Part {
    int first, count;
} Part;
Part team_part(int n); /* count: 0 only where there are more ranks than things */
#endif
