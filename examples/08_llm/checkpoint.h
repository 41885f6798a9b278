/* checkpoint.h: what files hold of a model: settings, tensors, a vocabulary. Two kinds are read, a
 * folder with config.json, model.safetensors (or its parts) and tokenizer.json, as Hugging Face
 * has them, and a file in GGUF, as llama.cpp has it. Nothing in a file is believed: lengths,
 * offsets and shapes are checked before they are used. Nothing in it is left out, either: a
 * setting or a tensor is used, known to change nothing, or refused by its name. */
#ifndef LLM_CHECKPOINT_H
#define LLM_CHECKPOINT_H
#include "family.h"
#include "tokens.h"
#include <stdint.h>

/* How the numbers of a tensor are stored. I8 has a scale for each row, in a tensor of its own;
 * RAW are parts of something; from Q4_0 on they are ggml's blocks. */
typedef enum Format {
    F32, F16, BF16, I8, RAW, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL,
    IQ4_XS, MXFP4, FORMATS
} Format;

typedef struct FormatInfo {
    const char *name;    /* in safetensors, or as people say */
    int gguf;            /* the type's number in GGUF; -1: none */
    int elements, bytes; /* of a block; of one number, where there are none */
} FormatInfo;
extern const FormatInfo format_info[FORMATS];

typedef struct Tensor {
    char *name;
    Format format;
    int rank;
    int64_t shape[4]; /* the last extent runs fastest */
    const unsigned char *data;
    uint64_t bytes;
    bool used; /* somebody asked for it */
} Tensor;

enum { MOST_PAIRS = 256 }; /* of a head, rotated */
enum { MOST_ENDS = 16, MOST_LAYERS = 1000, MOST_EXPERTS = 1024 };

typedef enum RopeKind { UNSCALED = 1, LINEAR, LLAMA3, YARN, LONGROPE } RopeKind;
typedef enum Sight { EVERYTHING = 1, A_WINDOW } Sight;

/* What each layer sees. */
typedef struct Sights {
    int count; /* of layers for which it is said */
    unsigned char kind[MOST_LAYERS];
} Sights;

/* A number for each pair of a head. */
typedef struct Factors {
    int count; /* that are said */
    double of[MOST_PAIRS];
} Factors;

/* How positions are scaled, see positions.c; 0: not said. */
typedef struct Rope {
    int kind, original, truncate; /* original: the length of texts that it was made for */
    double base, factor, low, high, attention, fast, slow, mscale, mscale_all;
    Factors near, far; /* LONGROPE: of texts up to the original length, of longer ones */
} Rope;

typedef struct Config {
    unsigned features;        /* of the family, and what settings say */
    int experts, experts_used, expert_hidden; /* expert_hidden: in place of hidden, 0: the same */
    int whole_share;          /* the shares of a token's experts sum to 1; -1: not said */
    int family, layers, width, hidden, heads, kv_heads, head_size, context;
    int vocabulary;           /* rows of the embedding; the last may have no token */
    int window;               /* so many keys a query sees, its own one too; 0: all; -1: not said */
    int sight;                /* of all layers; 0: not said */
    int pattern;              /* of so many layers all but the last have the window; 0: not said */
    Sights sees;
    int activation;
    int attention_bias, mlp_bias;
    int tied;                 /* the head is the embedding; -1: not said */
    int end[MOST_ENDS], ends; /* tokens that end a text */
    int begin, last, add_begin, add_space; /* of GGUF's vocabularies; -1: not said */
    double norm_eps, attention_scale;
    double query_scalar;      /* in place of the head size, whose root scales; 0: not said */
    double attention_cap, logit_cap; /* scores and logits stay below; 0: none; -1: not said */
    int turned;               /* so many elements of a head turn, the first; 0: not said */
    double turned_share;      /* the same as a share of all */
    double gate_limit, gate_slope; /* of CLAMPED; 0: not said */
    double local_base;        /* of positions in layers with a window; 0: as everywhere */
    Rope rope;
    double rope_size;         /* what turns is multiplied by it */
    float rope_factor[MOST_PAIRS]; /* angles of pair i are divided by it */
    float far_factor[MOST_PAIRS];  /* in place of it in texts longer than far_from */
    int far_from;                  /* 0: there are no others */
    bool interleaved; /* rotary pairs are neighbours, as in GGUF, not halves of a head */
} Config;

typedef struct Checkpoint {
    Config config;
    Words *words;
    Tensor *tensor;
    size_t ntensors;
    bool gguf; /* tensors have GGUF's names */
    char *chat; /* the template of talks; NULL: there is none, or none was read so far */
    char **file; /* the bytes that tensors point into */
    size_t files;
    const char *reading; /* the file that errors name */
    char error[400];
} Checkpoint;

/* False: the file is missing or wrong, as c->error says. checkpoint_close is due in any case. */
bool checkpoint_open(Checkpoint *c, const char *path);
void checkpoint_close(Checkpoint *c);
const Tensor *checkpoint_find(Checkpoint *c, const char *name); /* NULL: not there */
/* The first tensor that nobody asked for and that changes what the model computes; NULL: none. */
const char *checkpoint_unused(const Checkpoint *c);
bool checkpoint_ends(const Checkpoint *c, int token); /* whether it ends a text */

/* For the readers of the two kinds; an error begins with the name of the file. */
bool checkpoint_fail(Checkpoint *c, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* false */
bool read_file(Checkpoint *c, const char *path, char **out_bytes, size_t *out_size);
/* The same; the checkpoint keeps the bytes until it is closed. */
bool keep_file(Checkpoint *c, const char *path, char **out_bytes, size_t *out_size);
/* Bytes that the checkpoint keeps until it is closed. NULL: no memory, as c->error says. */
char *keep_bytes(Checkpoint *c, size_t size);
/* Room for more tensors; NULL: no memory, as c->error says. ntensors++ makes the first known. */
Tensor *more_tensors(Checkpoint *c, size_t count);
/* The bytes of a tensor of that shape; false: too many, or no whole blocks in a row. */
bool tensor_bytes(const Tensor *t, uint64_t *out_bytes);
bool read_folder(Checkpoint *c, const char *folder);
bool split_experts(Checkpoint *c);
bool read_gguf(Checkpoint *c, const char *path);
#endif
