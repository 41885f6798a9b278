/* chat.h: prompts as a model that talks has learned them, by the chat template of its files. */
#ifndef LLM_CHAT_H
#define LLM_CHAT_H
#include "checkpoint.h"
#include "jinja.h"

typedef struct Chat {
    const char *system; /* the message that goes before all; NULL: none */
    char *first, *end;  /* the tokens that begin texts and end answers; NULL: no file names them */
    int begin;          /* the token that began texts before; -1: none did */
} Chat;

/* Reads the template of an open checkpoint. From then on texts begin with what the template says,
 * and no other token. False: there is none, as c->error says. chat_close is due in any case. */
bool chat_open(Chat *chat, Checkpoint *c, const char *path, const char *system);
void chat_close(Chat *chat);
/* The text up to the answer; the caller frees it. NULL: the template refuses the messages, or does
 * what is not known here, as c->error says. */
char *chat_wrap(const Chat *chat, Checkpoint *c, const char *prompt);
char *chat_wrap_all(const Chat *chat, Checkpoint *c, const Message *message, size_t messages);
#endif
