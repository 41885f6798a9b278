/* kernels.h: the kernels of a training step: all of them are the library's. */
#ifndef TRAIN_KERNELS_H
#define TRAIN_KERNELS_H
#include "../shared/example.h"

typedef enum Type { F32, BF16, F16, TYPES } Type;

typedef enum Id {
    EMBED, EMBED_BACK, FIRST_NORM, ADD_NORM, NORM_BACK, ADD_NORM_BACK, SUM_PARTS,
    PRODUCT, PRODUCT_BACK, PRODUCT_WEIGHTS, ROPE_TABLES, ROPE, ROPE_BACK,
    ATTEND, ATTEND_BACK_SUMS, ATTEND_BACK_Q, ATTEND_BACK_KV, GATE, GATE_BACK, LOSS, LOSS_BACK,
    SPREAD, SQUARES, CONTROL, ADAM, ACCUMULATE, ACCUMULATE_FIRST, SAMPLE, KERNELS
} Id;

typedef struct Kernels {
    Modules modules;
    tile_kernel *kernel[KERNELS];
} Kernels;

const char *type_name(Type type);
tile_dtype type_dtype(Type type);
int type_size(Type type);

/* width: elements of a row that is normalised; head: of one head. */
bool kernels_open(Kernels *k, Type type, int width, int head);
#endif
