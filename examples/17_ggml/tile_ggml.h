/* Tile kernels as a backend of ggml: ggml_backend_load("libggml-tile.so") finds a device "Tile",
 * of the type ACCEL, that computes on the CPU beside ggml's own backend. */
#ifndef TILE_GGML_H
#define TILE_GGML_H
#include <ggml-backend.h>
#include <tile_jit.h>

/* ---- kernels.c: which nodes of a graph run as kernels, and how ---- */

/* A device with the kernels that graphs have asked for so far. */
typedef struct Kernels Kernels;

/* threads: 0 for the device's own choice. NULL: it cannot be opened; tile_last_error says why. */
Kernels *kernels_open(int threads);
void kernels_close(Kernels *k);
/* Does a kernel compute the node, or is it one that only looks at memory in another way? */
bool kernels_take(const struct ggml_tensor *node);
/* Starts it. False: it failed, tile_last_error says why. */
bool kernels_run(Kernels *k, struct ggml_tensor *node);
bool kernels_wait(Kernels *k);
#endif
