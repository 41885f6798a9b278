/* share.h: what lies in the memory of devices, added up over all ranks: on GPUs by NCCL or RCCL,
 * else through the host by MPI. */
#ifndef TRAIN_SHARE_H
#define TRAIN_SHARE_H
#include <stdbool.h>
#include <stddef.h>
#include <tile.h>

/* Before anything uses the default device: with TILE_DEVICE=cuda or hip the ranks of a machine take
 * one GPU each. False: there is none; tile_last_error() says why. */
bool share_device(void);
/* Before share_sum, by all ranks, on the default device. library: the name of one with NCCL's
 * functions, "mpi" for none; NULL: that of the GPU's maker, where there are GPUs. The first rank
 * says which way is taken, and the first that cannot use the library says why. */
void share_open(const char *library);
void share_close(void); /* waits for the other ranks: not when they may have failed */
/* Each of the first n numbers becomes the sum over all ranks, the same bits everywhere. */
bool share_sum(tile_buffer *numbers, size_t n);
/* What went wrong in share_sum; "" if it was the device: then tile_last_error() says it. */
const char *share_error(void);
#endif
