/* Tile kernels as custom operators of ONNX Runtime, domain "tile": what an operator is
 * (operators.c), apart from how ONNX Runtime calls it (library.c). */
#ifndef TILE_ONNX_H
#define TILE_ONNX_H
#include <stdbool.h>
#include <tile_jit.h>

enum { MOST_INPUTS = 6, MOST_CONSTS = 12, MOST_ARGS = 16 };

/* A dense tensor; rank -1: an optional input that is not there. */
typedef struct Tensor {
    int rank;
    int64_t extent[TILE_MAX_RANK];
    void *data;
} Tensor;

/* Why something cannot be done. */
typedef struct Fault {
    char text[512];
} Fault;

/* How an operator reads the attributes of its node, each with what it is where the node has none.
 * A text lives as long as the node. */
typedef struct Attributes {
    void *node;
    int64_t (*integer)(void *node, const char *name, int64_t otherwise);
    float (*real)(void *node, const char *name, float otherwise);
    const char *(*text)(void *node, const char *name, const char *otherwise);
} Attributes;

/* The attributes of a node, as its operator keeps them. */
typedef struct Settings {
    tile_dtype type;      /* of what is not bytes */
    const char *function; /* Gelu, Gated */
    float real;           /* epsilon, or the scale of scores; 0: its default */
    float cap;            /* of scores; 0: none */
    int64_t axis;
    int64_t heads, key_heads; /* of tensors [B, M, H D]; 0: they are [B, H, M, D] */
    bool causal;
    int64_t k, n, bits, block;
} Settings;

/* A launch: the kernel by its module, name and constants, and its arguments. */
typedef struct Launch {
    const char *module, *kernel;
    tile_const consts[MOST_CONSTS + 1];
    int nconsts;
    tile_arg args[MOST_ARGS];
    size_t nargs;
} Launch;

typedef struct Operator {
    const char *name;
    int least, most;     /* inputs */
    const char *types;   /* of inputs: T is the node's, u is u8, i is i32 */
    bool (*read)(Attributes *a, Settings *s, Fault *why);
    /* The output's shape from those of the inputs, which are right if this is true. */
    bool (*shape)(const Settings *s, const Tensor *in, Tensor *out, Fault *why);
    /* The output has elements. */
    void (*launch)(const Settings *s, const Tensor *in, const Tensor *out, Launch *l);
} Operator;

extern const Operator OPERATORS[];
extern const int OPERATORS_COUNT;

/* The language's name of a type that operators take (f32, f16, bf16); NULL: it is another. */
const char *type_name(tile_dtype type);
#endif
