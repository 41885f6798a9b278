#include "chat.h"
#include "folder.h"
#include <stdlib.h>
#include <string.h>

/* The text of a key that has one, or has an object with it. */
static char *text_of(const json_t *root, const char *key, const char *inner)
{
    const json_t *v = json_object_get(root, key);
    const char *text = json_string_value(json_is_object(v) ? json_object_get(v, inner) : v);
    return text ? strdup(text) : NULL;
}

/* The template in tokenizer_config.json: one, or the one of several that is called default. */
static char *template_of(const json_t *root)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(root, "chat_template"), i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && !strcmp(name, "default")) return text_of(one, "template", "");
    }
    return text_of(root, "chat_template", "");
}

/* What the files of a folder say: the template, and tokens. */
static bool read_template(Chat *chat, Checkpoint *c, const char *folder)
{
    char path[LONGEST_PATH];
    size_t size;
    if (folder_has(folder, "tokenizer_config.json")) {
        json_t *root = read_json(c, folder, "tokenizer_config.json", path);
        if (!root) return false;
        chat->first = text_of(root, "bos_token", "content");
        chat->end = text_of(root, "eos_token", "content");
        c->chat = template_of(root);
        json_decref(root);
    }
    if (!folder_has(folder, "chat_template.jinja")) return true;
    free(c->chat), c->chat = NULL;
    return folder_path(c, folder, "chat_template.jinja", path) &&
           read_file(c, path, &c->chat, &size);
}

static char *token_text(const Checkpoint *c, int token)
{
    size_t n;
    if (token < 0 || token >= words_count(c->words)) return NULL;
    const char *bytes = words_bytes(c->words, token, &n);
    return strndup(bytes, n);
}

bool chat_open(Chat *chat, Checkpoint *c, const char *path, const char *system)
{
    *chat = (Chat){.system = system};
    if (c->gguf) {
        chat->first = token_text(c, c->config.begin);
        chat->end = token_text(c, c->config.last);
    }
    bool good = c->gguf || read_template(chat, c, path);
    c->reading = path;
    if (!good || !c->chat) return good && checkpoint_fail(c, "it has no chat template");
    chat->begin = words_begin(c->words, -1);
    int end = chat->end ? words_find(c->words, chat->end, strlen(chat->end)) : -1;
    if (end >= 0 && !checkpoint_ends(c, end) && c->config.ends < MOST_ENDS)
        c->config.end[c->config.ends++] = end;
    return true;
}

void chat_close(Chat *chat)
{
    free(chat->first), free(chat->end);
    *chat = (Chat){0};
}

char *chat_wrap(const Chat *chat, Checkpoint *c, const char *prompt)
{
    const Message message[] = {{"system", chat->system}, {"user", prompt}};
    return chat->system ? chat_wrap_all(chat, c, message, 2)
                        : chat_wrap_all(chat, c, message + 1, 1);
}

char *chat_wrap_all(const Chat *chat, Checkpoint *c, const Message *message, size_t messages)
{
    char error[200];
    const Talk talk = {message, messages, chat->first, chat->end};
    char *text = jinja_render(c->chat, &talk, error);
    if (!text) checkpoint_fail(c, "its chat template: %s", error);
    return text;
}
