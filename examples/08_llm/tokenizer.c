/* tokenizer.json: the vocabulary of byte pairs, what cuts a text before, what goes before it. */
#include "folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A whole number; without one, `other`. */
static int number(const json_t *root, const char *key, int other)
{
    const json_t *v = json_object_get(root, key);
    json_int_t n = json_integer_value(v);
    return json_is_integer(v) ? (n > INT32_MAX || n < -1 ? -1 : (int)n) : other;
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

bool read_tokenizer(Checkpoint *c, const char *folder)
{
    char path[LONGEST_PATH];
    json_t *root = read_json(c, folder, "tokenizer.json", path);
    if (!root) return false;
    const json_t *model = json_object_get(root, "model");
    bool good = !strcmp(type_of(model), "BPE") ? read_words(c, root, model)
                : checkpoint_fail(c, "the model's type '%s' is not 'BPE'", type_of(model));
    json_decref(root);
    return good;
}
