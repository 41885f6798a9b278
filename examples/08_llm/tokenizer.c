/* tokenizer.json: the vocabulary of byte pairs, what cuts a text before, what goes before it. What
 * does something to texts that nothing here does is refused; what changes token numbers back to
 * texts, or pads and cuts off lists of them, is left out. */
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

#define UNDERLINE "\xe2\x96\x81" /* U+2581, a blank in SentencePiece's tokens */

/* The tokens by their numbers. Added ones stand for themselves, but for blanks: a text has none
 * that are written so. */
static bool add_tokens(Checkpoint *c, const json_t *vocab, const json_t *added, bool characters)
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
    if (good) json_array_foreach(added, place, about) {
        key = json_string_value(json_object_get(about, "content"));
        good = good && ((characters && strstr(key, UNDERLINE)) ||
                        words_special(c->words, number(about, "id", 0),
                                      json_is_true(json_object_get(about, "rstrip"))));
    }
    return good || checkpoint_fail(c, "the tokens are not numbered from 0 on, each once");
}

/* Tokens that stand for themselves do so wherever they are, and leave what is before them. */
static bool check_added(Checkpoint *c, const json_t *added)
{
    static const char *const flags[] = {"lstrip", "single_word"};
    size_t place;
    json_t *about;
    json_array_foreach(added, place, about)
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
            if (json_is_true(json_object_get(about, flags[i])))
                return checkpoint_fail(c, "'%s' of the token %d is not known here", flags[i],
                                       number(about, "id", -1));
    return true;
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

static bool is_text(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value && !strcmp(value, text);
}

static bool unknown(Checkpoint *c, const char *what, const json_t *step)
{
    return checkpoint_fail(c, "the %s '%.60s', or what it is to do, is not known here", what,
                           type_of(step));
}

/* One of the tokenizer's steps that cut a text. False: not known here. */
static bool add_cut(Cut *cut, const json_t *step)
{
    const json_t *pattern = json_object_get(json_object_get(step, "pattern"), "Regex");
    const char *behavior = json_string_value(json_object_get(step, "behavior"));
    if (!strcmp(type_of(step), "Split"))
        return json_is_string(pattern) && behavior && !strcmp(behavior, "Isolated") &&
               !json_is_true(json_object_get(step, "invert")) &&
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
    return add_cut(words_cut(c->words), step) || unknown(c, "pre_tokenizer", step);
}

/* Steps that change a text. NFC is left out: texts are taken to be normalised. Of characters they
 * may put a blank before, which *blank says, and write blanks in their own way: *replaced. */
static bool take_normalizer(Checkpoint *c, const json_t *step, bool characters, Blank *blank,
                            bool *replaced)
{
    if (!json_is_object(step) || !strcmp(type_of(step), "NFC")) return true;
    if (!strcmp(type_of(step), "Sequence")) {
        size_t i;
        json_t *part;
        json_array_foreach(json_object_get(step, "normalizers"), i, part)
            if (!take_normalizer(c, part, characters, blank, replaced)) return false;
        return true;
    }
    bool prepend = !strcmp(type_of(step), "Prepend") && is_text(step, "prepend", UNDERLINE);
    bool replace = !strcmp(type_of(step), "Replace") && is_text(step, "content", UNDERLINE) &&
                   is_text(json_object_get(step, "pattern"), "String", " ");
    if (prepend) *blank = BEFORE_EACH;
    if (replace) *replaced = true;
    return (characters && (prepend || replace)) || unknown(c, "normalizer", step);
}

/* The step that cuts a text of characters, at most, at blanks: Gemma's where none are left. */
static bool take_metaspace(Checkpoint *c, const json_t *step, Blank *blank, bool replaced)
{
    static const char *const schemes[] = {[WHERE_NONE_IS] = "always", [AT_THE_START] = "first",
                                          [NOWHERE] = "never"};
    const char *cut = " ?[^ ]+| ";
    const json_t *scheme = json_object_get(step, "prepend_scheme");
    int i = json_is_false(json_object_get(step, "add_prefix_space")) ? NOWHERE : WHERE_NONE_IS;
    if (!json_is_object(step)) return true;
    if (replaced && !strcmp(type_of(step), "Split") &&
        is_text(json_object_get(step, "pattern"), "String", " "))
        return true;
    if (json_is_string(scheme))
        for (i = WHERE_NONE_IS; i <= NOWHERE && strcmp(schemes[i], json_string_value(scheme));) i++;
    if (strcmp(type_of(step), "Metaspace") || !is_text(step, "replacement", UNDERLINE) ||
        i > NOWHERE ||
        (!json_is_false(json_object_get(step, "split")) &&
         !cut_by(words_cut(c->words), cut, strlen(cut))))
        return unknown(c, "pre_tokenizer", step);
    *blank = (Blank)i;
    return true;
}

/* The one token that a template puts before a text. */
static bool take_template(Checkpoint *c, const json_t *step)
{
    size_t i;
    json_t *part;
    bool text = false;
    json_array_foreach(json_object_get(step, "single"), i, part) {
        const json_t *special = json_object_get(part, "SpecialToken");
        const char *name = json_string_value(json_object_get(special, "id"));
        int token = name ? words_find(c->words, name, strlen(name)) : -1;
        text = text || json_object_get(part, "Sequence");
        if (special && (i || text || token < 0))
            return checkpoint_fail(c, "the post_processor puts '%.60s' where it cannot be here",
                                   name ? name : "");
        if (special) words_begin(c->words, token);
    }
    return true;
}

/* Steps that put tokens around a text. */
static bool take_processor(Checkpoint *c, const json_t *step)
{
    size_t i;
    json_t *part;
    if (!json_is_object(step) || !strcmp(type_of(step), "ByteLevel")) return true;
    if (!strcmp(type_of(step), "TemplateProcessing")) return take_template(c, step);
    if (strcmp(type_of(step), "Sequence")) return unknown(c, "post_processor", step);
    json_array_foreach(json_object_get(step, "processors"), i, part)
        if (!take_processor(c, part)) return false;
    return true;
}

/* What texts become before they are tokens. */
static bool take_steps(Checkpoint *c, const json_t *root, bool characters)
{
    const json_t *cut = json_object_get(root, "pre_tokenizer");
    Blank blank = NOWHERE;
    bool replaced = false;
    if (!take_normalizer(c, json_object_get(root, "normalizer"), characters, &blank, &replaced) ||
        !(characters ? take_metaspace(c, cut, &blank, replaced) : add_cuts(c, cut)))
        return false;
    words_blank(c->words, blank);
    return take_processor(c, json_object_get(root, "post_processor"));
}

static bool check_model(Checkpoint *c, const json_t *model)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++)
        if (json_string_length(json_object_get(model, affixes[i])))
            return checkpoint_fail(c, "the model's '%s' is not known here", affixes[i]);
    return !strcmp(type_of(model), "BPE") ||
           checkpoint_fail(c, "the model's type '%s' is not 'BPE'", type_of(model));
}

/* Tokens of bytes, cut by expressions, or, where bytes are what is left over, of characters. */
static bool read_words(Checkpoint *c, const json_t *root)
{
    const json_t *model = json_object_get(root, "model"),
                 *added = json_object_get(root, "added_tokens");
    bool characters = json_is_true(json_object_get(model, "byte_fallback"));
    if (!check_model(c, model) || !check_added(c, added)) return false;
    if (!(c->words = words_new(characters ? CHARACTERS : BYTES)))
        return checkpoint_fail(c, "no memory");
    if (json_is_true(json_object_get(model, "ignore_merges"))) words_whole(c->words);
    return add_tokens(c, json_object_get(model, "vocab"), added, characters) &&
           add_merges(c, json_object_get(model, "merges")) && take_steps(c, root, characters);
}

bool read_tokenizer(Checkpoint *c, const char *folder)
{
    char path[LONGEST_PATH];
    json_t *root = read_json(c, folder, "tokenizer.json", path);
    if (!root) return false;
    bool good = read_words(c, root);
    json_decref(root);
    return good;
}
