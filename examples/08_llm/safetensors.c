/* A folder as Hugging Face has it. model.safetensors: the length of a header in 8 bytes, the header
 * in JSON, {"NAME": {"dtype": "F32", "shape": [...], "data_offsets": [from, to]}, ...}, the
 * numbers. */
#include "checkpoint.h"
#include <jansson.h>
#include <stdio.h>
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

static bool read_config(Checkpoint *c, const char *path)
{
    json_t *root = read_json(c, path);
    if (!root) return false;
    const char *type = json_string_value(json_object_get(root, "model_type"));
    bool known = type && !strcmp(type, "llama") &&
                 !json_is_object(json_object_get(root, "rope_scaling"));
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
    if (!known)
        checkpoint_fail(c, "model_type '%s' is not 'llama', or its positions are scaled",
                        type ? type : "");
    json_decref(root);
    return known;
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

static bool read_tokenizer(Checkpoint *c, const char *path)
{
    json_t *root = read_json(c, path);
    if (!root) return false;
    const json_t *model = json_object_get(root, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    bool good = type && !strcmp(type, "BPE");
    if (!good) checkpoint_fail(c, "the model's type '%s' is not 'BPE'", type ? type : "");
    good = good &&
           add_tokens(c, json_object_get(model, "vocab"), json_object_get(root, "added_tokens")) &&
           add_merges(c, json_object_get(model, "merges"));
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
