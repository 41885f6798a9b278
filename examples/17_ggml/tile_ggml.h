/* Tile kernels as a backend of ggml: ggml_backend_load("libggml-tile.so") finds a device "Tile",
 * of the type ACCEL, that computes on the CPU beside ggml's own backend. */
#ifndef TILE_GGML_H
#define TILE_GGML_H
#include <ggml-backend.h>
#include <tile_jit.h>

/* ---- kernels.c: which nodes of a graph run as kernels, and how ---- */

/* A device with the kernels that graphs have asked for so far. */
typedef struct Kernels Kernels;

/* Of a node one or two, which run one after the other. */
typedef struct Launch Launch;

/* NULL: it cannot be opened; tile_last_error says why. */
Kernels *kernels_open(void);
void kernels_close(Kernels *k);
/* Does a kernel compute the node, or is it one that only looks at memory in another way? */
bool kernels_take(const struct ggml_tensor *node);
/* Adds the node's launches to those that are to be run, compiled and all. False: it failed,
 * tile_last_error says why. */
bool kernels_add(Kernels *k, struct ggml_tensor *node);
void kernels_clear(Kernels *k); /* takes all of them away */
int kernels_count(const Kernels *k);
Launch *kernels_launch(Kernels *k, int i); /* until the next is added */
/* Runs a part of a launch in the calling thread; the parts in any threads at the same time. False:
 * it failed, tile_last_error of this thread says why. */
bool kernels_run(const Launch *l, int part, int parts);
#endif
