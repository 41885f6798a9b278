/* GGUF, versions 2 and 3 (llama.cpp): "GGUF", the version, the number of tensors and of keys; the
 * keys, each a name, a type and a value; the tensors, each a name, extents (the first runs
 * fastest), a type and an offset; then the numbers, aligned. All in little-endian order. */
#include "settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Span {
    const char *bytes;
    uint64_t length;
} Span;

enum { U8, I8_, U16, I16, U32, I32, F32_, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };
static const bool type_signed[TYPES] = {[I8_] = true, [I16] = true, [I32] = true, [I64] = true};
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

static const Key *find(Keys keys, const char *name)
{
    for (uint64_t i = 0; i < keys.n; i++)
        if (same(keys.key[i].name, name)) return &keys.key[i];
    return NULL;
}

/* The same, if it is an array of that type. */
static const Key *find_array(Keys keys, const char *name, uint32_t of)
{
    const Key *k = find(keys, name);
    return k && k->type == ARRAY && k->of == of ? k : NULL;
}

static double read_number(uint32_t type, Span s)
{
    uint64_t bits = unsigned_of(s);
    float f;
    double d;
    if (type == F32_) return memcpy(&f, s.bytes, sizeof f), f;
    if (type == F64) return memcpy(&d, s.bytes, sizeof d), d;
    unsigned unused = 64 - 8 * (unsigned)s.length;
    return type_signed[type] ? (double)((int64_t)(bits << unused) >> unused) : (double)bits;
}

static Value value_of(uint32_t type, Span s)
{
    return type == STRING ? (Value){.kind = TEXT, .text = s.bytes, .length = s.length}
           : type == BOOL ? (Value){.kind = TRUTH, .number = s.bytes[0] != 0}
                          : (Value){.kind = NUMBER, .number = read_number(type, s)};
}

static Value element(const void *list, size_t i)
{
    const Key *k = list;
    Reader r = {k->value.bytes, k->value.bytes + k->value.length, false};
    if (k->of != STRING) take(&r, i * type_size[k->of]);
    for (; k->of == STRING && i > 0; i--) string(&r);
    return value_of(k->of, k->of == STRING ? string(&r) : take(&r, type_size[k->of]));
}

static Value value_of_key(const Key *k)
{
    if (k->type != ARRAY) return value_of(k->type, k->value);
    return (Value){.kind = LIST, .list = k, .count = k->count, .element = element};
}

/* ---- settings ---- */

static const Choice families[] = {
    {"llama", LLAMA}, {"qwen2", QWEN2}, {"qwen3", QWEN3}, {"gemma2", GEMMA2}, {"gemma3", GEMMA3},
    {"phi3", PHI3}, {"qwen3moe", QWEN3_MOE}, {"gpt-oss", GPT_OSS}, {0}};
static const Choice scalings[] = {{"none", UNSCALED}, {"linear", LINEAR}, {"yarn", YARN}, {0}};
static const Choice activations[] = {{"silu", SILU}, {0}};

#define WITH_EXPERTS (OF(LLAMA) | OF(QWEN3_MOE) | OF(GPT_OSS))

/* clang-format off */
static const Setting settings[] = {
    CHOOSE("general.architecture", family, families),
    MUST_BE("general.type", "model"),
    MUST_BE("general.quantization_version", "2"),
    ELSEWHERE("general.alignment"),
    HARMLESS("general.*"), /* names, authors, licences, advice on sampling */
    HARMLESS("quantize.imatrix.*"),
    MUST_BE("split.count", "0 1"),
    HARMLESS("split.*"),

    SETTING("llama.block_count", SIZE, layers),
    SETTING("llama.embedding_length", SIZE, width),
    SETTING("llama.feed_forward_length", SIZE, hidden),
    SETTING("llama.attention.head_count", SIZE, heads),
    SETTING("llama.attention.head_count_kv", SIZE, kv_heads),
    SETTING("llama.attention.key_length", SIZE, head_size),
    SETTING("llama.attention.value_length", SIZE, head_size),
    SETTING_OF(OF(PHI3), "llama.rope.dimension_count", SIZE, turned),
    SETTING("llama.rope.dimension_count", SIZE, head_size), /* all of a head turns */
    SETTING("llama.context_length", SIZE, context),
    SETTING("llama.vocab_size", SIZE, vocabulary),
    SETTING("llama.attention.sliding_window", SIZE, window),
    SETTING_OF(OF(GEMMA3), "llama.attention.sliding_window_pattern", SIZE, pattern),
    SETTING_OF(OF(GEMMA3), "llama.rope.freq_base_swa", REAL, local_base),
    SETTING_OF(GEMMAS, "llama.attn_logit_softcapping", REAL, attention_cap),
    SETTING_OF(GEMMAS, "llama.final_logit_softcapping", REAL, logit_cap),
    SETTING("llama.attention.layer_norm_rms_epsilon", REAL, norm_eps),
    SETTING("llama.attention.scale", REAL, attention_scale),
    MUST_BE("llama.attention.causal", "true"),
    CHOOSE("llama.hidden_activation", activation, activations),
    SETTING_OF(WITH_EXPERTS, "llama.expert_count", SIZE, experts),
    SETTING_OF(WITH_EXPERTS, "llama.expert_used_count", SIZE, experts_used),
    SETTING_OF(OF(QWEN3_MOE) | OF(GPT_OSS), "llama.expert_feed_forward_length", SIZE, expert_hidden),
    MUST_BE("llama.expert_count", "0"),
    MUST_BE("llama.expert_used_count", "0"),
    MUST_BE("llama.use_parallel_residual", "false"),
    MUST_BE("llama.tensor_data_layout", "Meta AI original pth"),

    SETTING("llama.rope.freq_base", REAL, rope.base),
    CHOOSE("llama.rope.scaling.type", rope.kind, scalings),
    SETTING("llama.rope.scaling.factor", REAL, rope.factor),
    SETTING("llama.rope.scale_linear", REAL, rope.factor), /* the older name */
    SETTING("llama.rope.scaling.original_context_length", SIZE, rope.original),
    SETTING("llama.rope.scaling.yarn_beta_fast", REAL, rope.fast),
    SETTING("llama.rope.scaling.yarn_beta_slow", REAL, rope.slow),
    MUST_BE("llama.rope.scaling.yarn_ext_factor", "1 -1"),
    MUST_BE("llama.rope.scaling.yarn_attn_factor", "1 -1"),
    MUST_BE("llama.rope.scaling.yarn_log_multiplier", "0"),
    SETTING_OF(OF(PHI3), "llama.rope.scaling.attn_factor", REAL, rope.attention),
    MUST_BE("llama.rope.scaling.attn_factor", "1"),
    MUST_BE("llama.rope.scaling.alpha", "0"),
    HARMLESS("llama.rope.scaling.finetuned"),

    ELSEWHERE("tokenizer.ggml.model"),
    ELSEWHERE("tokenizer.ggml.pre"),
    ELSEWHERE("tokenizer.ggml.tokens"),
    ELSEWHERE("tokenizer.ggml.token_type"),
    ELSEWHERE("tokenizer.ggml.scores"),
    ELSEWHERE("tokenizer.ggml.merges"),
    SETTING("tokenizer.ggml.bos_token_id", TOKEN, begin),
    SETTING("tokenizer.ggml.add_bos_token", FLAG, add_begin),
    SETTING("tokenizer.ggml.add_space_prefix", FLAG, add_space),
    SETTING("tokenizer.ggml.eos_token_id", ENDS, ends),
    SETTING("tokenizer.ggml.eot_token_id", ENDS, ends),
    SETTING("tokenizer.ggml.eom_token_id", ENDS, ends),
    SETTING("tokenizer.ggml.fim_pad_token_id", ENDS, ends),
    SETTING("tokenizer.ggml.fim_rep_token_id", ENDS, ends),
    SETTING("tokenizer.ggml.fim_sep_token_id", ENDS, ends),
    MUST_BE("tokenizer.ggml.add_eos_token", "false"),
    MUST_BE("tokenizer.ggml.add_sep_token", "false"),
    MUST_BE("tokenizer.ggml.remove_extra_whitespaces", "false"),
    MUST_BE("tokenizer.ggml.normalizer.lowercase", "false"),
    MUST_BE("tokenizer.ggml.normalizer.strip_accents", "false"),
    HARMLESS("tokenizer.ggml.unknown_token_id"),
    HARMLESS("tokenizer.ggml.padding_token_id"),
    HARMLESS("tokenizer.ggml.seperator_token_id"),
    HARMLESS("tokenizer.ggml.separator_token_id"),
    HARMLESS("tokenizer.ggml.mask_token_id"),
    HARMLESS("tokenizer.ggml.cls_token_id"),
    HARMLESS("tokenizer.ggml.fim_*"), /* for programs that fill gaps in a text */
    HARMLESS("tokenizer.ggml.prefix_token_id"),
    HARMLESS("tokenizer.ggml.suffix_token_id"),
    HARMLESS("tokenizer.ggml.middle_token_id"),
    ELSEWHERE("tokenizer.chat_template"),
    HARMLESS("tokenizer.chat_*"), /* other ones */
    HARMLESS("tokenizer.huggingface.json"), /* the same vocabulary once more */
    NO_MORE,
};
/* clang-format on */
_Static_assert(sizeof settings / sizeof *settings <= MOST_SETTINGS, "room for all rows");

static bool take_key(Settings *s, const Key *k)
{
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)(k->name.length < 127 ? k->name.length : 127),
             k->name.bytes);
    return setting_take(s, name, value_of_key(k));
}

static bool read_config(Checkpoint *c, Keys keys)
{
    Settings s = {.c = c, .table = settings};
    const Key *kind = find(keys, "general.architecture");
    c->config.norm_eps = 1e-5;
    if (!kind) return checkpoint_fail(c, "no general.architecture");
    if (!take_key(&s, kind)) return false; /* others have settings of their own */
    s.family = architecture[c->config.family].name[1];
    c->config.interleaved = architecture[c->config.family].features & NEIGHBOURS;
    for (uint64_t i = 0; i < keys.n; i++)
        if (!take_key(&s, &keys.key[i])) return false;
    const Key *chat = find(keys, "tokenizer.chat_template");
    const Key *last = find(keys, "tokenizer.ggml.eos_token_id");
    double number = last ? value_of_key(last).number : -1;
    c->config.last = number >= 0 && number < INT32_MAX ? (int)number : -1;
    if (!chat || chat->type != STRING) return true;
    c->chat = strndup(chat->value.bytes, chat->value.length);
    return c->chat || checkpoint_fail(c, "no memory");
}

/* ---- words ---- */

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

/* Phi-3's tokens that control take blanks behind them with them, but for these. */
static bool keeps_blanks(const Checkpoint *c, int token)
{
    static const char *const names[] = {"<unk>", "<s>", "<|endoftext|>"};
    size_t n;
    const char *bytes = words_bytes(c->words, token, &n);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (n == strlen(names[i]) && !memcmp(bytes, names[i], n)) return true;
    return false;
}

/* Tokens that control, or that users have defined, stand for themselves. */
static bool add_specials(Checkpoint *c, Keys keys, bool pairs)
{
    bool eats = !pairs && architecture[c->config.family].features & EATS_BLANKS;
    const Key *types = find(keys, "tokenizer.ggml.token_type");
    if (!types) return true;
    if (types->type != ARRAY || types->of == STRING)
        return checkpoint_fail(c, "tokenizer.ggml.token_type is no array of numbers");
    for (uint64_t i = 0; i < types->count && i < (uint64_t)words_count(c->words); i++) {
        double type = element(types, i).number;
        if ((type == 3 || type == 4) &&
            !words_special(c->words, (int)i, eats && !keeps_blanks(c, (int)i)))
            return checkpoint_fail(c, "no memory");
    }
    return true;
}

/* SentencePiece's: scores of all tokens. */
static bool add_scores(Checkpoint *c, Keys keys)
{
    const Key *scores = find_array(keys, "tokenizer.ggml.scores", F32_);
    if (!scores || scores->count != (uint64_t)words_count(c->words))
        return checkpoint_fail(c, "no scores of the tokens");
    if (c->config.add_space == 0) words_blank(c->words, NOWHERE);
    return words_scores(c->words, scores->value.bytes) || checkpoint_fail(c, "no memory");
}

static bool add_pairs(Checkpoint *c, Keys keys, Span cut)
{
    const Key *merges = find_array(keys, "tokenizer.ggml.merges", STRING);
    if (!merges) return checkpoint_fail(c, "no merges of byte pairs");
    if (!cut_by_name(words_cut(c->words), cut.bytes, cut.length))
        return checkpoint_fail(c, "tokenizer.ggml.pre '%.*s' is not known here",
                               (int)(cut.length & 63), cut.bytes);
    if (cuts_as_llama3(cut)) words_whole(c->words);
    return each(c, merges, words_merge, "merge %llu, '%.*s', is not of tokens");
}

/* The token that begins a text. */
static bool add_begin(Checkpoint *c, bool usual)
{
    const Config *g = &c->config;
    bool begins = g->add_begin < 0 ? usual : g->add_begin;
    if (begins && g->begin >= words_count(c->words))
        return checkpoint_fail(c, "the token %d that begins a text is not in the vocabulary",
                               g->begin);
    if (begins) words_begin(c->words, g->begin);
    return true;
}

static bool read_words(Checkpoint *c, Keys keys)
{
    const Key *model = find(keys, "tokenizer.ggml.model"), *pre = find(keys, "tokenizer.ggml.pre");
    const Key *tokens = find_array(keys, "tokenizer.ggml.tokens", STRING);
    Span cut = pre && pre->type == STRING ? pre->value : (Span){"gpt-2", 5};
    bool pairs = model && model->type == STRING && same(model->value, "gpt2");
    if (!pairs && (!model || model->type != STRING || !same(model->value, "llama")))
        return checkpoint_fail(c, "tokenizer.ggml.model is neither 'gpt2', byte pairs, nor "
                               "'llama', SentencePiece's");
    if (!tokens) return checkpoint_fail(c, "no tokens");
    if (!(c->words = words_new(pairs ? BYTES : CHARACTERS))) return checkpoint_fail(c, "no memory");
    return each(c, tokens, words_add, "token %llu, '%.*s': no memory") &&
           add_specials(c, keys, pairs) &&
           (pairs ? add_pairs(c, keys, cut) : add_scores(c, keys)) &&
           add_begin(c, !pairs || cuts_as_llama3(cut));
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
        return checkpoint_fail(c, "tensor '%s': type %llu is not known here (F32, F16, BF16, Q4_0, "
                               "Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4 are)",
                               t->name, (unsigned long long)type);
    t->format = (Format)format;
    const FormatInfo *f = &format_info[format];
    if (rank && t->shape[rank - 1] % f->elements)
        return checkpoint_fail(c, "tensor '%s': rows of %lld numbers are no whole blocks of %s, "
                               "which have %d", t->name, (long long)t->shape[rank - 1], f->name,
                               f->elements);
    return tensor_bytes(t, &t->bytes) || checkpoint_fail(c, "tensor '%s': too large", t->name);
}

/* The offsets count from behind the header. */
static bool place_tensors(Checkpoint *c, const uint64_t *offset, const char *file, size_t size,
                          uint64_t start)
{
    for (size_t i = 0; i < c->ntensors; i++) {
        Tensor *t = &c->tensor[i];
        if (start > size || offset[i] > size - start || t->bytes > size - start - offset[i])
            return checkpoint_fail(
                c, "tensor '%s': %llu bytes at %llu reach past the end of the file", t->name,
                (unsigned long long)t->bytes, (unsigned long long)offset[i]);
        t->data = (const unsigned char *)file + start + offset[i];
    }
    return true;
}

static bool read_header(Checkpoint *c, Reader *r, Key *key, uint64_t nkeys, uint64_t *offset,
                        uint64_t ntensors)
{
    Keys keys = {key, nkeys};
    const char *file = r->at - 24;
    if (!read_keys(c, r, key, nkeys) || !read_config(c, keys) || !read_words(c, keys)) return false;
    for (uint64_t i = 0; i < ntensors; i++)
        if (!read_tensor(c, r, &offset[i])) return false;
    const Key *k = find(keys, "general.alignment");
    double align = k && k->type != ARRAY ? value_of_key(k).number : 32;
    if (!(align >= 1 && align <= 1 << 30) || ((uint64_t)align & ((uint64_t)align - 1)))
        return checkpoint_fail(c, "an alignment of %g", align);
    uint64_t at = (uint64_t)(r->at - file), unit = (uint64_t)align;
    return place_tensors(c, offset, file, (size_t)(r->end - file), (at + unit - 1) / unit * unit);
}

static bool read_all(Checkpoint *c, const char *file, size_t size)
{
    Reader r = {file, file + size, false};
    if (!same(take(&r, 4), "GGUF")) return checkpoint_fail(c, "no GGUF file");
    uint64_t version = integer(&r, 4), ntensors = integer(&r, 8), nkeys = integer(&r, 8);
    if (version != 2 && version != 3)
        return checkpoint_fail(c, "version %llu, not 2 or 3", (unsigned long long)version);
    if (ntensors > size / 24 || nkeys > size / 12) /* the least that each takes */
        return checkpoint_fail(c, "%llu tensors and %llu keys in a file of %zu bytes",
                               (unsigned long long)ntensors, (unsigned long long)nkeys, size);
    Key *key = calloc(nkeys + 1, sizeof *key);
    uint64_t *offset = calloc(ntensors + 1, sizeof *offset);
    bool good = key && offset ? more_tensors(c, ntensors) &&
                                    read_header(c, &r, key, nkeys, offset, ntensors)
                              : checkpoint_fail(c, "no memory");
    free(key), free(offset);
    return good;
}

bool read_gguf(Checkpoint *c, const char *path)
{
    char *file;
    size_t size;
    return keep_file(c, path, &file, &size) && read_all(c, file, size);
}
