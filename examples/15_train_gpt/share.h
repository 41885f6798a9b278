/* share.h: what lies in the memory of devices, added up over all ranks, by libtile-collectives: on
 * GPUs NCCL or RCCL, on CPUs MPI. Numbers are f32; their count is a multiple of the ranks', but
 * that of share_sum. Functions are false when something failed; tile_last_error() says what. */
#ifndef TRAIN_SHARE_H
#define TRAIN_SHARE_H
#include <stdbool.h>
#include <stddef.h>
#include <tile.h>

/* Before anything uses the default device: with TILE_DEVICE=cuda or hip the ranks of a machine take
 * one GPU each. */
bool share_device(void);
/* Before what follows, by all ranks, on the default device. library: the name of one with NCCL's
 * functions, "mpi" for none; NULL: that of the GPU's maker, where there are GPUs. The first rank
 * says which way is taken, and why if it is not the one that was asked for. */
bool share_open(const char *library);
void share_close(void);
/* Each of the first n numbers becomes the sum over all ranks, the same bits everywhere. */
bool share_sum(tile_buffer *numbers, size_t n);
/* Of the n numbers from `at` on, rank r's part r becomes the sum over all ranks, beside what the
 * default stream goes on with: it starts when that has done what it was given before. */
bool share_begin(tile_buffer *numbers, size_t at, size_t n);
/* What the default stream is given from now on starts when all that has begun is done. */
bool share_end(void);
/* Part r of the n elements from `at` on is rank r's: everyone gets the others. */
bool share_gather(tile_buffer *elements, tile_dtype type, size_t at, size_t n);
#endif
