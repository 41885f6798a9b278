/* weights.h: the tensors of a model on the default device. Of several ranks each has the heads and
 * the hidden columns that are its own. */
#ifndef LLM_WEIGHTS_H
#define LLM_WEIGHTS_H
#include "checkpoint.h"
#include <tile_jit.h>

typedef enum Role {
    EMBEDDING, LAST_NORM, HEAD, /* once; these of each layer: */
    NORM, QUERY, KEY, VALUE, QUERY_NORM, KEY_NORM, SINKS, OUT, OUT_NORM, HIDDEN_NORM, ROUTER, GATE,
    UP, DOWN, DOWN_NORM, ROLES,
    LAYERED = NORM
} Role;

enum { FORMS = 4 }; /* of kernels: for different numbers of rows */

typedef struct Matrix {
    Format format;
    int rows, cols; /* a norm has one row */
    int experts;    /* so many matrices; 0: one */
    tile_buffer *data, *scale, *bias; /* scale: of rows, for I8; bias: f32, NULL: none */
    bool add;                   /* what goes through is added to the result */
    tile_kernel *linear[FORMS]; /* NULL: not needed so far */
} Matrix;

typedef struct Weights {
    Config config; /* heads, kv_heads and hidden: what this rank has of them */
    Matrix *matrix; /* [ROLES - LAYERED] for each layer behind the first LAYERED */
    uint64_t bytes; /* that a step reads */
} Weights;

/* False: the checkpoint lacks something, has something that is no part of the model, or the device
 * failed, as `error` says. weights_free is due in any case. */
bool weights_load(Weights *w, Checkpoint *checkpoint, char *error, size_t size);
void weights_free(Weights *w);
Matrix *weights_of(const Weights *w, Role role, int layer);
bool weights_have(const Weights *w, Role role); /* whether the model's family has it */
bool role_is_vector(Role role); /* a norm's weights: else it is a matrix */
#endif
