/* family.h: families of models: what files call them, what each does in another way than Llama, and
 * what holds where a file says nothing. */
#ifndef LLM_FAMILY_H
#define LLM_FAMILY_H
#include <stdbool.h>

typedef enum Family {
    LLAMA = 1, MISTRAL, QWEN2, QWEN3, GEMMA2, GEMMA3, PHI3, MIXTRAL, QWEN3_MOE, GPT_OSS, FAMILIES
} Family;

/* Bits of some families. */
#define OF(family) (1u << (family))
#define GEMMAS (OF(GEMMA2) | OF(GEMMA3))
#define OF_EXPERTS (OF(MIXTRAL) | OF(QWEN3_MOE) | OF(GPT_OSS))
#define OF_SIGHTS (GEMMAS | OF(GPT_OSS)) /* layers see different things */

typedef enum Feature {
    QKV_BIASES = 1,      /* queries, keys and values have biases, whatever settings say */
    HEAD_NORMS = 2,      /* heads of queries and keys are normalised before they are turned */
    NORMS_AFTER = 4,     /* what attention and the hidden layer give is normalised, then added */
    NORMS_LESS_ONE = 8,  /* folders have the weights of norms less 1 */
    WIDE_EMBEDDING = 16, /* the embedding is multiplied by the root of the width */
    NEIGHBOURS = 32,     /* in GGUF rotary pairs are neighbours, not halves of a head */
    UNUSED_WINDOW = 64,  /* the length of a window is said, but none is used */
    EATS_BLANKS = 128,   /* in GGUF tokens of SentencePiece that control take blanks behind */
    EXPERTS = 256,       /* the hidden layer is several, of which a token goes through a few */
    ALL_BIASES = 512,    /* all matrices of layers have biases, those of experts too */
    HEAD_SINKS = 1024,   /* each head has a score more, without a value */
    CLAMPED = 2048,      /* the gate is clamp(gate) sigmoid(a gate) (clamp(up) + 1) */
    LONG_FACTORS = 8192, /* in GGUF positions of long texts may turn by other factors */
    SPLIT_EXPERTS = 4096, /* folders have experts as split.c says */
} Feature;

/* Which names tensors have, see weights.c: in safetensors, in GGUF. */
typedef enum Naming {
    AS_LLAMA, AS_GEMMA, AS_PHI, AS_MIXTRAL, AS_QWEN_MOE, AS_GPT_OSS,
    AS_GGUF, AS_PHI_IN_GGUF, AS_MOE_IN_GGUF, AS_OSS_IN_GGUF, NAMINGS
} Naming;

typedef enum Activation {
    UNSAID, SILU, GELU, GELU_TANH, GELU_QUICK, RELU, RELU_SQUARED, ACTIVATIONS
} Activation;

typedef struct Architecture {
    const char *name[2]; /* 'model_type', 'general.architecture'; NULL: it is called so nowhere */
    unsigned features;
    Naming naming[2];    /* in folders, in GGUF */
    Activation activation;
    bool tied;           /* the head is the embedding */
    int head_size;       /* in folders; 0: the width over the number of heads */
    int window[2];       /* in folders, in GGUF; 0: none */
    int pattern;         /* of so many layers all but the last have the window; 0: all have it */
    int wide_layers;     /* in GGUF: models of so many layers scale by the width over the heads */
    double base[2];      /* of positions, in folders and GGUF */
    double local_base;   /* of layers with a window; 0: the same */
    double query_scalar; /* in folders: scores are scaled by its root; 0: by the head size's */
    double attention_cap, logit_cap; /* 0: none */
    bool whole_share[2]; /* in folders, in GGUF: the shares of a token's experts sum to 1 */
} Architecture;
extern const Architecture architecture[FAMILIES];
#endif
