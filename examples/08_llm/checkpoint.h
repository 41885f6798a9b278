/* checkpoint.h: what files hold of a model: sizes, tensors, a vocabulary. Two kinds are read, a
 * folder with config.json, model.safetensors and tokenizer.json, as Hugging Face has them, and a
 * file in GGUF, as llama.cpp has it. Nothing in a file is believed: lengths, offsets and shapes
 * are checked before they are used. */
#ifndef LLM_CHECKPOINT_H
#define LLM_CHECKPOINT_H
#include "tokens.h"
#include <stdint.h>

/* How the numbers of a tensor are stored. I8 has a scale for each row, in a tensor of its own. */
typedef enum Format { F32, F16, BF16, I8, Q4_0, Q8_0, FORMATS } Format;

typedef struct FormatInfo {
    const char *name;    /* in safetensors, or as people say */
    int gguf;            /* the type's number in GGUF; -1: none */
    int elements, bytes; /* of a block; of one number, but for Q4_0 and Q8_0 */
} FormatInfo;
extern const FormatInfo format_info[FORMATS];

typedef struct Tensor {
    char *name;
    Format format;
    int rank;
    int64_t shape[4]; /* the last extent runs fastest */
    const unsigned char *data;
    uint64_t bytes;
} Tensor;

enum { MOST_PAIRS = 256 }; /* of a head, rotated */

typedef struct Config {
    int layers, width, hidden, heads, kv_heads, head_size, context;
    double rope_base, norm_eps;
    float rope_factor[MOST_PAIRS]; /* angles of pair i are divided by it */
    bool
        interleaved; /* rotary pairs are neighbours, as in GGUF, not halves of a head */
    int end;          /* the token that ends a text; -1: none */
} Config;

typedef struct Checkpoint {
    Config config;
    Words *words;
    Tensor *tensor;
    size_t ntensors;
    bool gguf; /* tensors have GGUF's names */
    char *file; /* the bytes that tensors point into */
    size_t size;
    const char *reading; /* the file that errors name */
    char error[400];
} Checkpoint;

/* False: the file is missing or wrong, as c->error says. checkpoint_close is due in any case. */
bool checkpoint_open(Checkpoint *c, const char *path);
void checkpoint_close(Checkpoint *c);
const Tensor *checkpoint_find(const Checkpoint *c, const char *name); /* NULL: not there */

/* For the readers of the two kinds; an error begins with the name of the file. */
bool checkpoint_fail(Checkpoint *c, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* false */
bool read_file(Checkpoint *c, const char *path, char **out_bytes, size_t *out_size);
/* The bytes of a tensor of that shape; false: too many, or no whole blocks in a row. */
bool tensor_bytes(const Tensor *t, uint64_t *out_bytes);
bool read_safetensors(Checkpoint *c, const char *folder);
bool read_gguf(Checkpoint *c, const char *path);
#endif
