#include "checkpoint.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const FormatInfo format_info[FORMATS] = {
    [F32] = {"F32", 0, 1, 4}, [F16] = {"F16", 1, 1, 2},      [BF16] = {"BF16", 30, 1, 2},
    [I8] = {"I8", -1, 1, 1},  [Q4_0] = {"Q4_0", 2, 32, 18}, [Q8_0] = {"Q8_0", 8, 32, 34},
};

bool checkpoint_fail(Checkpoint *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = snprintf(c->error, sizeof c->error, "%.200s: ", c->reading);
    vsnprintf(c->error + n, sizeof c->error - (size_t)n, format, list);
    va_end(list);
    return false;
}

bool read_file(Checkpoint *c, const char *path, char **out_bytes, size_t *out_size)
{
    c->reading = path;
    errno = EIO;
    FILE *f = fopen(path, "rb");
    long size = -1;
    char *bytes = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0 && size < INT64_MAX - 1 &&
        fseek(f, 0, SEEK_SET) == 0)
        bytes = malloc((size_t)size + 1);
    bool read = bytes && fread(bytes, 1, (size_t)size, f) == (size_t)size;
    int why = errno;
    if (f) fclose(f);
    if (!read) return free(bytes), checkpoint_fail(c, "%s", strerror(why));
    bytes[size] = 0;
    *out_bytes = bytes;
    *out_size = (size_t)size;
    return true;
}

bool tensor_bytes(const Tensor *t, uint64_t *out_bytes)
{
    const FormatInfo *f = &format_info[t->format];
    uint64_t blocks = 1;
    if (t->rank && t->shape[t->rank - 1] % f->elements) return false;
    for (int i = 0; i < t->rank; i++) {
        uint64_t n = (uint64_t)t->shape[i] / (i == t->rank - 1 ? (uint64_t)f->elements : 1);
        if (t->shape[i] < 0 || (n && blocks > INT64_MAX / n)) return false;
        blocks *= n;
    }
    if (blocks > INT64_MAX / 64) return false;
    *out_bytes = blocks * (uint64_t)f->bytes;
    return true;
}

const Tensor *checkpoint_find(const Checkpoint *c, const char *name)
{
    for (size_t i = 0; i < c->ntensors; i++)
        if (!strcmp(c->tensor[i].name, name)) return &c->tensor[i];
    return NULL;
}

/* What the kernels take. */
static bool check_config(Checkpoint *c)
{
    const Config *g = &c->config;
    const struct {
        const char *name;
        int value, most;
    } rows[] = {{"layers", g->layers, 1000},         {"width", g->width, 1 << 16},
                {"hidden width", g->hidden, 1 << 20}, {"heads", g->heads, 1024},
                {"heads of keys", g->kv_heads, 1024}, {"head size", g->head_size, 2 * MOST_PAIRS},
                {"context", g->context, 1 << 28}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < 1 || rows[i].value > rows[i].most)
            return checkpoint_fail(c, "%s is %d, not from 1 to %d", rows[i].name, rows[i].value,
                                   rows[i].most);
    if (g->heads % g->kv_heads)
        return checkpoint_fail(c, "%d heads share %d heads of keys", g->heads, g->kv_heads);
    if (g->head_size % 2) return checkpoint_fail(c, "the head size %d is odd", g->head_size);
    if (!(g->rope_base > 0) || !(g->norm_eps >= 0))
        return checkpoint_fail(c, "the base %g of positions or epsilon %g of norms is out of range",
                               g->rope_base, g->norm_eps);
    if (g->end >= words_count(c->words))
        return checkpoint_fail(c, "the token %d that ends a text is not in the vocabulary", g->end);
    return true;
}

/* What slows the turning of each pair of a head, as GGUF has it of Llama 3.1. */
static bool read_factors(Checkpoint *c)
{
    const Tensor *t = checkpoint_find(c, "rope_freqs.weight");
    float *factor = c->config.rope_factor;
    if (!t) return true;
    bool good = t->format == F32 && t->rank == 1 && t->shape[0] == c->config.head_size / 2;
    if (good) memcpy(factor, t->data, t->bytes);
    for (int64_t i = 0; good && i < t->shape[0]; i++) good = factor[i] > 0;
    return good || checkpoint_fail(c, "rope_freqs.weight is not F32, a positive number for each "
                                   "pair of a head");
}

bool checkpoint_open(Checkpoint *c, const char *path)
{
    size_t n = strlen(path);
    *c = (Checkpoint){.config = {.end = -1}, .reading = path};
    for (int i = 0; i < MOST_PAIRS; i++) c->config.rope_factor[i] = 1;
    c->gguf = n > 5 && !strcmp(path + n - 5, ".gguf");
    bool good = c->gguf ? read_gguf(c, path) : read_safetensors(c, path);
    c->reading = path;
    return good && check_config(c) && (!c->gguf || read_factors(c));
}

void checkpoint_close(Checkpoint *c)
{
    for (size_t i = 0; i < c->ntensors; i++) free(c->tensor[i].name);
    words_free(c->words);
    free(c->tensor), free(c->file);
    memset(c, 0, sizeof *c);
}
