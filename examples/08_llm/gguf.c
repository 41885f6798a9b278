/* GGUF, versions 2 and 3 (llama.cpp): "GGUF", the version, the number of tensors and of keys; the
 * keys, each a name, a type and a value; the tensors, each a name, extents (the first runs
 * fastest), a type and an offset; then the numbers, aligned. All in little-endian order. */
#include "checkpoint.h"
#include <stdlib.h>
#include <string.h>

typedef struct Span {
    const char *bytes;
    uint64_t length;
} Span;

enum { U8, I8_, U16, I16, U32, I32, F32_, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };
static const unsigned char type_size[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

typedef struct Key {
    Span name;
    uint32_t type, of; /* of: the type of an array's elements */
    Span value;        /* an array's: all of its elements, `count` of them */
    uint64_t count;
} Key;

typedef struct Reader {
    const char *at, *end;
    bool bad; /* something reached past the end; what is read then is 0 */
} Reader;

static Span take(Reader *r, uint64_t n)
{
    if (r->bad || n > (uint64_t)(r->end - r->at)) return r->bad = true, (Span){"", 0};
    Span s = {r->at, n};
    r->at += n;
    return s;
}

static uint64_t unsigned_of(Span s)
{
    uint64_t v = 0;
    for (uint64_t i = 0; i < s.length; i++) v |= (uint64_t)(unsigned char)s.bytes[i] << 8 * i;
    return v;
}

static uint64_t integer(Reader *r, unsigned size)
{
    return unsigned_of(take(r, size));
}

static Span string(Reader *r)
{
    return take(r, integer(r, 8));
}

static bool same(Span s, const char *text)
{
    return s.length == strlen(text) && !memcmp(s.bytes, text, s.length);
}

/* ---- keys ---- */

static void read_value(Reader *r, Key *k)
{
    const char *start = r->at;
    if (k->type == STRING) k->value = string(r);
    else if (k->type != ARRAY) k->value = take(r, type_size[k->type]);
    else {
        k->of = (uint32_t)integer(r, 4);
        k->count = integer(r, 8);
        start = r->at;
        if (k->of >= TYPES || k->of == ARRAY) r->bad = true;
        else if (k->of == STRING) for (uint64_t i = 0; i < k->count && !r->bad; i++) string(r);
        else if (k->count > UINT64_MAX / 8) r->bad = true;
        else take(r, k->count * type_size[k->of]);
        k->value = (Span){start, (uint64_t)(r->at - start)};
    }
}

static bool read_keys(Checkpoint *c, Reader *r, Key *key, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        Key *k = &key[i];
        k->name = string(r);
        k->type = (uint32_t)integer(r, 4);
        if (k->type >= TYPES)
            return checkpoint_fail(c, "key '%.*s': unknown type %u", (int)(k->name.length & 127),
                                   k->name.bytes, k->type);
        read_value(r, k);
        if (r->bad)
            return checkpoint_fail(c,
                                   "key %llu of %llu reaches past the end of the file, or "
                                   "is an array of arrays",
                                   (unsigned long long)i + 1, (unsigned long long)n);
    }
    return true;
}

typedef struct Keys {
    const Key *key;
    uint64_t n;
} Keys;

static const Key *find(Keys keys, const char *name, uint32_t type)
{
    for (uint64_t i = 0; i < keys.n; i++)
        if (same(keys.key[i].name, name) && keys.key[i].type == type) return &keys.key[i];
    return NULL;
}

static int number(Keys keys, const char *name, int other)
{
    const Key *k = find(keys, name, U32);
    uint64_t v = k ? unsigned_of(k->value) : 0;
    return !k ? other : v > INT32_MAX ? -1 : (int)v;
}

static double real(Keys keys, const char *name, double other)
{
    const Key *k = find(keys, name, F32_);
    float v = 0;
    if (k) memcpy(&v, k->value.bytes, sizeof v);
    return k ? v : other;
}

static bool read_config(Checkpoint *c, Keys keys)
{
    const Key *kind = find(keys, "general.architecture", STRING);
    if (!kind || !same(kind->value, "llama"))
        return checkpoint_fail(c, "general.architecture is not 'llama'");
    Config *g = &c->config;
    g->layers = number(keys, "llama.block_count", 0);
    g->width = number(keys, "llama.embedding_length", 0);
    g->hidden = number(keys, "llama.feed_forward_length", 0);
    g->heads = number(keys, "llama.attention.head_count", 0);
    g->kv_heads = number(keys, "llama.attention.head_count_kv", g->heads);
    g->head_size =
        number(keys, "llama.rope.dimension_count", g->heads > 0 ? g->width / g->heads : 0);
    g->context = number(keys, "llama.context_length", 2048);
    g->rope_base = real(keys, "llama.rope.freq_base", 10000);
    g->norm_eps = real(keys, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    g->end = number(keys, "tokenizer.ggml.eos_token_id", -1);
    g->interleaved = true;
    const Key *scaling = find(keys, "llama.rope.scaling.type", STRING);
    return !scaling || same(scaling->value, "none") ||
           checkpoint_fail(c, "scaled positions, '%.*s', are not known here",
                           (int)(scaling->value.length & 63), scaling->value.bytes);
}

/* Llama 3's words are tokens as they are, and its texts have a beginning. */
static bool cuts_as_llama3(Span cut)
{
    return same(cut, "llama-bpe") || same(cut, "llama3") || same(cut, "llama-v3");
}

/* All strings of an array. */
static bool each(Checkpoint *c, const Key *array, bool (*add)(Words *, const char *, size_t),
                 const char *complaint)
{
    Reader r = {array->value.bytes, array->value.bytes + array->value.length, false};
    for (uint64_t i = 0; i < array->count; i++) {
        Span s = string(&r);
        if (!add(c->words, s.bytes, s.length))
            return checkpoint_fail(c, complaint, (unsigned long long)i, (int)(s.length & 63),
                                   s.bytes);
    }
    return true;
}

/* Tokens that control, or that users have defined, stand for themselves. */
static bool add_specials(Checkpoint *c, Keys keys)
{
    const Key *types = find(keys, "tokenizer.ggml.token_type", ARRAY);
    uint64_t n = types && types->of == I32 ? types->count : 0;
    for (uint64_t i = 0; i < n && i < (uint64_t)words_count(c->words); i++) {
        uint64_t type = unsigned_of((Span){types->value.bytes + 4 * i, 4});
        if ((type == 3 || type == 4) && !words_special(c->words, (int)i))
            return checkpoint_fail(c, "no memory");
    }
    return true;
}

static bool flag(Keys keys, const char *name, bool other)
{
    const Key *k = find(keys, name, BOOL);
    return k ? k->value.bytes[0] != 0 : other;
}

/* SentencePiece's: scores of all tokens. */
static bool add_scores(Checkpoint *c, Keys keys)
{
    const Key *scores = find(keys, "tokenizer.ggml.scores", ARRAY);
    if (!scores || scores->of != F32_ || scores->count != (uint64_t)words_count(c->words))
        return checkpoint_fail(c, "no scores of the tokens");
    if (!flag(keys, "tokenizer.ggml.add_space_prefix", true)) words_bare(c->words);
    return words_scores(c->words, scores->value.bytes) || checkpoint_fail(c, "no memory");
}

static bool add_pairs(Checkpoint *c, Keys keys, Span cut)
{
    const Key *merges = find(keys, "tokenizer.ggml.merges", ARRAY);
    if (!merges || merges->of != STRING) return checkpoint_fail(c, "no merges of byte pairs");
    if (!cut_by_name(words_cut(c->words), cut.bytes, cut.length))
        return checkpoint_fail(c, "tokenizer.ggml.pre '%.*s' is not known here",
                               (int)(cut.length & 63), cut.bytes);
    if (cuts_as_llama3(cut)) words_whole(c->words);
    return each(c, merges, words_merge, "merge %llu, '%.*s', is not of tokens");
}

static bool read_words(Checkpoint *c, Keys keys)
{
    const Key *model = find(keys, "tokenizer.ggml.model", STRING);
    const Key *tokens = find(keys, "tokenizer.ggml.tokens", ARRAY);
    const Key *pre = find(keys, "tokenizer.ggml.pre", STRING);
    Span cut = pre ? pre->value : (Span){"gpt-2", 5};
    bool pairs = model && same(model->value, "gpt2");
    if (!pairs && (!model || !same(model->value, "llama")))
        return checkpoint_fail(c, "tokenizer.ggml.model is neither 'gpt2', byte pairs, nor "
                               "'llama', SentencePiece's");
    if (!tokens || tokens->of != STRING) return checkpoint_fail(c, "no tokens");
    if (!(c->words = words_new(pairs ? BYTES : CHARACTERS))) return checkpoint_fail(c, "no memory");
    if (!each(c, tokens, words_add, "token %llu, '%.*s': no memory") || !add_specials(c, keys) ||
        !(pairs ? add_pairs(c, keys, cut) : add_scores(c, keys)))
        return false;
    int begin = number(keys, "tokenizer.ggml.bos_token_id", -1);
    bool begins = flag(keys, "tokenizer.ggml.add_bos_token", !pairs || cuts_as_llama3(cut));
    if (begins && begin >= words_count(c->words))
        return checkpoint_fail(c, "the token %d that begins a text is not in the vocabulary",
                               begin);
    if (begins) words_begin(c->words, begin);
    return true;
}

/* ---- tensors ---- */

static bool read_tensor(Checkpoint *c, Reader *r, uint64_t *offset)
{
    Span name = string(r);
    uint64_t rank = integer(r, 4), extent[4];
    if (r->bad || name.length > 256 || rank > 4)
        return checkpoint_fail(c, "tensor %zu: a name of %llu bytes, %llu extents", c->ntensors,
                               (unsigned long long)name.length, (unsigned long long)rank);
    Tensor *t = &c->tensor[c->ntensors];
    *t = (Tensor){.rank = (int)rank, .name = calloc(name.length + 1, 1)};
    if (!t->name) return checkpoint_fail(c, "no memory");
    memcpy(t->name, name.bytes, name.length);
    c->ntensors++;
    for (uint64_t i = 0; i < rank; i++) {
        extent[i] = integer(r, 8);
        if (extent[i] > INT64_MAX)
            return checkpoint_fail(c, "tensor '%s': an extent of %llu", t->name,
                                   (unsigned long long)extent[i]);
        t->shape[rank - 1 - i] = (int64_t)extent[i];
    }
    uint64_t type = integer(r, 4);
    *offset = integer(r, 8);
    int format = 0;
    while (format < FORMATS && (uint64_t)format_info[format].gguf != type) format++;
    if (r->bad) return checkpoint_fail(c, "tensor '%s' reaches past the end of the file", t->name);
    if (format == FORMATS)
        return checkpoint_fail(c, "tensor '%s': type %llu is not known here (F32, F16, BF16, Q4_0 "
                               "and Q8_0 are)", t->name, (unsigned long long)type);
    t->format = (Format)format;
    if (!tensor_bytes(t, &t->bytes))
        return checkpoint_fail(c, "tensor '%s': too large, or rows of %lld numbers are no whole "
                               "blocks", t->name, (long long)t->shape[rank - 1]);
    return true;
}

/* The offsets count from behind the header. */
static bool place_tensors(Checkpoint *c, const uint64_t *offset, uint64_t start)
{
    for (size_t i = 0; i < c->ntensors; i++) {
        Tensor *t = &c->tensor[i];
        if (start > c->size || offset[i] > c->size - start ||
            t->bytes > c->size - start - offset[i])
            return checkpoint_fail(
                c, "tensor '%s': %llu bytes at %llu reach past the end of the file", t->name,
                (unsigned long long)t->bytes, (unsigned long long)offset[i]);
        t->data = (const unsigned char *)c->file + start + offset[i];
    }
    return true;
}

static bool read_header(Checkpoint *c, Reader *r, Key *key, uint64_t nkeys, uint64_t *offset,
                        uint64_t ntensors)
{
    Keys keys = {key, nkeys};
    if (!read_keys(c, r, key, nkeys) || !read_config(c, keys) || !read_words(c, keys)) return false;
    for (uint64_t i = 0; i < ntensors; i++)
        if (!read_tensor(c, r, &offset[i])) return false;
    int align = number(keys, "general.alignment", 32);
    if (align < 1 || (align & (align - 1))) return checkpoint_fail(c, "an alignment of %d", align);
    uint64_t at = (uint64_t)(r->at - c->file), unit = (uint64_t)align;
    return place_tensors(c, offset, (at + unit - 1) / unit * unit);
}

static bool read_all(Checkpoint *c)
{
    Reader r = {c->file, c->file + c->size, false};
    if (!same(take(&r, 4), "GGUF")) return checkpoint_fail(c, "no GGUF file");
    uint64_t version = integer(&r, 4), ntensors = integer(&r, 8), nkeys = integer(&r, 8);
    if (version != 2 && version != 3)
        return checkpoint_fail(c, "version %llu, not 2 or 3", (unsigned long long)version);
    if (ntensors > c->size / 24 || nkeys > c->size / 12) /* the least that each takes */
        return checkpoint_fail(c, "%llu tensors and %llu keys in a file of %zu bytes",
                               (unsigned long long)ntensors, (unsigned long long)nkeys, c->size);
    Key *key = calloc(nkeys + 1, sizeof *key);
    uint64_t *offset = calloc(ntensors + 1, sizeof *offset);
    c->tensor = calloc(ntensors + 1, sizeof *c->tensor);
    bool good = key && offset && c->tensor ? read_header(c, &r, key, nkeys, offset, ntensors)
                                           : checkpoint_fail(c, "no memory");
    free(key), free(offset);
    return good;
}

bool read_gguf(Checkpoint *c, const char *path)
{
    return read_file(c, path, &c->file, &c->size) && read_all(c);
}
