/* jinja.h: chat templates, programs in Jinja, as transformers runs them: with trim_blocks and
 * lstrip_blocks. What templates of talks do is known here; what is not is refused by its name, but
 * only where it is reached: most have parts for tools, which are read and left out. */
#ifndef LLM_JINJA_H
#define LLM_JINJA_H
#include <stdbool.h>
#include <stddef.h>

typedef struct Message {
    const char *role, *text;
} Message;

typedef struct Talk {
    const Message *message;
    size_t messages;
    const char *first, *end;   /* tokens: 'bos_token', 'eos_token'; NULL: not defined */
} Talk;

/* The text up to the answer; the caller frees it. NULL: the template is wrong, refuses the
 * messages, or does what is not known here, as `error` says. */
char *jinja_render(const char *text, const Talk *talk, char error[200]);
#endif
