/* A folder as Hugging Face has it. model.safetensors: the length of a header in 8 bytes, the header
 * in JSON, {"NAME": {"dtype": "F32", "shape": [...], "data_offsets": [from, to]}, ...}, the
 * numbers. */
#include "checkpoint.h"
#include <jansson.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t little(const char *bytes, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    return v;
}

/* ---- tensors ---- */

static bool read_shape(Tensor *t, const json_t *shape)
{
    if (!json_is_array(shape) || json_array_size(shape) > 4) return false;
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank; i++) {
        const json_t *n = json_array_get(shape, (size_t)i);
        if (!json_is_integer(n) || json_integer_value(n) < 0) return false;
        t->shape[i] = json_integer_value(n);
    }
    return true;
}

static bool read_tensor(Checkpoint *c, const char *name, const json_t *about, const char *data,
                        uint64_t size)
{
    const char *dtype = json_string_value(json_object_get(about, "dtype"));
    Tensor *t = &c->tensor[c->ntensors];
    int format = 0;
    while (format < FORMATS && (!dtype || strcmp(dtype, format_info[format].name))) format++;
    if (format == FORMATS || format_info[format].elements > 1)
        return checkpoint_fail(c, "tensor '%s': unknown type '%s'", name, dtype ? dtype : "");
    *t = (Tensor){.format = (Format)format};
    if (!read_shape(t, json_object_get(about, "shape")))
        return checkpoint_fail(c, "tensor '%s': the shape is no list of up to 4 extents", name);
    const json_t *offsets = json_object_get(about, "data_offsets");
    json_int_t from = json_integer_value(json_array_get(offsets, 0));
    json_int_t to = json_integer_value(json_array_get(offsets, 1));
    if (json_array_size(offsets) != 2 || from < 0 || to < from || (uint64_t)to > size)
        return checkpoint_fail(c, "tensor '%s': bytes %lld to %lld are not within the %llu of data",
                               name, (long long)from, (long long)to, (unsigned long long)size);
    if (!tensor_bytes(t, &t->bytes) || t->bytes != (uint64_t)(to - from))
        return checkpoint_fail(c, "tensor '%s': %lld bytes do not hold its shape", name,
                               (long long)(to - from));
    t->data = (const unsigned char *)data + from;
    size_t length = strlen(name) + 1;
    if (!(t->name = malloc(length))) return checkpoint_fail(c, "no memory");
    memcpy(t->name, name, length);
    c->ntensors++;
    return true;
}

static bool read_tensors(Checkpoint *c, const char *path)
{
    if (!read_file(c, path, &c->file, &c->size)) return false;
    uint64_t length = c->size < 8 ? 0 : little(c->file, 8);
    if (c->size < 8 || length > c->size - 8)
        return checkpoint_fail(c, "a header of %llu bytes in a file of %zu",
                               (unsigned long long)length, c->size);
    json_error_t error;
    json_t *header = json_loadb(c->file + 8, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    bool good = json_is_object(header);
    if (!good) checkpoint_fail(c, "the header is no JSON object: %s", error.text);
    if (good && !(c->tensor = calloc(json_object_size(header) + 1, sizeof *c->tensor)))
        good = checkpoint_fail(c, "no memory");
    const char *name;
    json_t *about;
    if (good) json_object_foreach(header, name, about) {
        if (good && strcmp(name, "__metadata__"))
            good = read_tensor(c, name, about, c->file + 8 + length, c->size - 8 - length);
    }
    json_decref(header);
    return good;
}

/* ---- the files beside it ---- */

static json_t *read_json(Checkpoint *c, const char *path)
{
    json_error_t error;
    c->reading = path;
    json_t *root = json_load_file(path, 0, &error);
    if (json_is_object(root)) return root;
    checkpoint_fail(c, "line %d: %s", error.line, root ? "no JSON object" : error.text);
    return json_decref(root), NULL;
}

/* A whole number; without one, `other`. */
static int number(const json_t *root, const char *key, int other)
{
    const json_t *v = json_object_get(root, key);
    json_int_t n = json_integer_value(v);
    return json_is_integer(v) ? (n > INT32_MAX || n < -1 ? -1 : (int)n) : other;
}

static double real(const json_t *root, const char *key, double other)
{
    const json_t *v = json_object_get(root, key);
    return json_is_number(v) ? json_number_value(v) : other;
}

/* Llama 3.1's positions: what turns slowly, in a long text, turns `factor` times as slowly. */
static void scale_llama3(Config *g, const json_t *about)
{
    double factor = real(about, "factor", 8), low = real(about, "low_freq_factor", 1);
    double high = real(about, "high_freq_factor", 4);
    double length = real(about, "original_max_position_embeddings", 8192);
    for (int i = 0; i < g->head_size / 2 && i < MOST_PAIRS; i++) {
        double wave = 2 * 3.14159265358979323846 * pow(g->rope_base, 2.0 * i / g->head_size);
        double smooth = (length / wave - low) / (high - low);
        smooth = smooth < 0 ? 0 : smooth > 1 ? 1 : smooth;
        g->rope_factor[i] = (float)(1 / ((1 - smooth) / factor + smooth));
    }
}

/* False: positions are scaled in a way that is not known here. */
static bool read_scaling(Config *g, const json_t *about)
{
    const char *type = json_string_value(json_object_get(about, "rope_type"));
    if (!type) type = json_string_value(json_object_get(about, "type"));
    if (!json_is_object(about) || (type && !strcmp(type, "default"))) return true;
    if (!type || strcmp(type, "llama3")) return false;
    scale_llama3(g, about);
    return true;
}

static bool read_config(Checkpoint *c, const char *path)
{
    json_t *root = read_json(c, path);
    if (!root) return false;
    const char *type = json_string_value(json_object_get(root, "model_type"));
    bool known = type && !strcmp(type, "llama");
    Config *g = &c->config;
    g->layers = number(root, "num_hidden_layers", 0);
    g->width = number(root, "hidden_size", 0);
    g->hidden = number(root, "intermediate_size", 0);
    g->heads = number(root, "num_attention_heads", 0);
    g->kv_heads = number(root, "num_key_value_heads", g->heads);
    g->head_size = number(root, "head_dim", g->heads > 0 ? g->width / g->heads : 0);
    g->context = number(root, "max_position_embeddings", 2048);
    g->rope_base = real(root, "rope_theta", 10000);
    g->norm_eps = real(root, "rms_norm_eps", 1e-6);
    g->end = number(root, "eos_token_id", -1);
    bool scaled = read_scaling(g, json_object_get(root, "rope_scaling"));
    if (!known) checkpoint_fail(c, "model_type '%s' is not 'llama'", type ? type : "");
    else if (!scaled) checkpoint_fail(c, "this rope_scaling is not known here ('llama3' is)");
    json_decref(root);
    return known && scaled;
}

/* The tokens by their numbers. */
static bool add_tokens(Checkpoint *c, const json_t *vocab, const json_t *added)
{
    size_t n = json_object_size(vocab) + json_array_size(added), place;
    const char **text = calloc(n + 1, sizeof *text);
    const char *key;
    json_t *id, *about;
    bool good = text;
    if (good) json_object_foreach((json_t *)(uintptr_t)vocab, key, id) {
        json_int_t i = json_integer_value(id);
        good = good && json_is_integer(id) && i >= 0 && i < (json_int_t)n;
        if (good) text[i] = key;
    }
    if (good) json_array_foreach(added, place, about) {
        int i = number(about, "id", -1);
        key = json_string_value(json_object_get(about, "content"));
        good = good && key && i >= 0 && i < (int)n;
        if (good) text[i] = key;
    }
    while (n && text && !text[n - 1]) n--; /* some are in both lists */
    for (size_t i = 0; good && i < n; i++)
        good = text[i] && words_add(c->words, text[i], strlen(text[i]));
    free(text);
    if (good) json_array_foreach(added, place, about)
        good = good && words_special(c->words, number(about, "id", 0));
    return good || checkpoint_fail(c, "the tokens are not numbered from 0 on, each once");
}

static bool add_merges(Checkpoint *c, const json_t *merges)
{
    size_t i;
    json_t *m;
    json_array_foreach(merges, i, m) {
        char pair[512] = "";
        if (json_is_string(m)) snprintf(pair, sizeof pair, "%s", json_string_value(m));
        else {
            const char *a = json_string_value(json_array_get(m, 0));
            const char *b = json_string_value(json_array_get(m, 1));
            snprintf(pair, sizeof pair, "%s %s", a ? a : "", b ? b : "");
        }
        if (!words_merge(c->words, pair, strlen(pair)))
            return checkpoint_fail(c, "merge %zu, '%.60s', is not of tokens", i, pair);
    }
    return true;
}

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : "";
}

/* One of the tokenizer's steps that cut a text. False: not known here. */
static bool add_cut(Cut *cut, const json_t *step)
{
    const json_t *pattern = json_object_get(json_object_get(step, "pattern"), "Regex");
    const char *behavior = json_string_value(json_object_get(step, "behavior"));
    if (!strcmp(type_of(step), "Split"))
        return json_is_string(pattern) && behavior && !strcmp(behavior, "Isolated") &&
               cut_by(cut, json_string_value(pattern), json_string_length(pattern));
    if (!strcmp(type_of(step), "Digits")) {
        const char *digits = json_is_true(json_object_get(step, "individual_digits")) ? "\\p{N}"
                                                                                      : "\\p{N}+";
        return cut_by(cut, digits, strlen(digits));
    }
    return !strcmp(type_of(step), "ByteLevel") &&
           !json_is_true(json_object_get(step, "add_prefix_space")) &&
           (json_is_false(json_object_get(step, "use_regex")) || cut_as_gpt2(cut));
}

static bool add_cuts(Checkpoint *c, const json_t *step)
{
    if (!strcmp(type_of(step), "Sequence")) {
        size_t i;
        json_t *part;
        json_array_foreach(json_object_get(step, "pretokenizers"), i, part)
            if (!add_cuts(c, part)) return false;
        return true;
    }
    return add_cut(words_cut(c->words), step) ||
           checkpoint_fail(c, "the pre_tokenizer '%s' is not known here", type_of(step));
}

/* The token that a template puts before a text, wherever its step is. */
static void find_begin(Checkpoint *c, const json_t *step)
{
    size_t i;
    json_t *part;
    json_array_foreach(json_object_get(step, "processors"), i, part) find_begin(c, part);
    const json_t *first = json_array_get(json_object_get(step, "single"), 0);
    const char *name =
        json_string_value(json_object_get(json_object_get(first, "SpecialToken"), "id"));
    if (name) words_begin(c->words, words_find(c->words, name, strlen(name)));
}

/* Tokens of bytes, cut by expressions, or, where bytes are what is left over, of characters. */
static bool read_words(Checkpoint *c, const json_t *root, const json_t *model)
{
    bool characters = json_is_true(json_object_get(model, "byte_fallback"));
    if (!(c->words = words_new(characters ? CHARACTERS : BYTES)))
        return checkpoint_fail(c, "no memory");
    if (json_is_true(json_object_get(model, "ignore_merges"))) words_whole(c->words);
    if (!add_tokens(c, json_object_get(model, "vocab"), json_object_get(root, "added_tokens")) ||
        !add_merges(c, json_object_get(model, "merges")) ||
        (!characters && !add_cuts(c, json_object_get(root, "pre_tokenizer"))))
        return false;
    find_begin(c, json_object_get(root, "post_processor"));
    return true;
}

static bool read_tokenizer(Checkpoint *c, const char *path)
{
    json_t *root = read_json(c, path);
    if (!root) return false;
    const json_t *model = json_object_get(root, "model");
    bool good = !strcmp(type_of(model), "BPE") ? read_words(c, root, model)
                : checkpoint_fail(c, "the model's type '%s' is not 'BPE'", type_of(model));
    json_decref(root);
    return good;
}

bool read_safetensors(Checkpoint *c, const char *folder)
{
    char config[1024], tokenizer[1024], tensors[1024];
    int n = snprintf(config, sizeof config, "%s/config.json", folder);
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", folder);
    snprintf(tensors, sizeof tensors, "%s/model.safetensors", folder);
    if (n > 1000) return checkpoint_fail(c, "the path is too long");
    return read_config(c, config) && read_tokenizer(c, tokenizer) && read_tensors(c, tensors);
}
