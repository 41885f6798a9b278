/* cut.h: a text is cut by regular expressions, as tokenizers do before they pair bytes. */
#ifndef LLM_CUT_H
#define LLM_CUT_H
#include <stdbool.h>
#include <stddef.h>

typedef struct Cut Cut;

Cut *cut_new(void); /* NULL: no memory; cut_free accepts NULL */
void cut_free(Cut *cut);

/* Adds an expression, in PCRE2's syntax with Unicode's classes, for the pieces that those before
 * have left: what matches is a piece, and what lies between matches. False: it is no expression
 * that is understood here, or no memory. */
bool cut_by(Cut *cut, const char *expression, size_t length);

/* The same for the names that GGUF has for what cuts texts ("gpt-2"). False: not known here. */
bool cut_by_name(Cut *cut, const char *name, size_t length);
/* GPT-2's expression, which tokenizer.json of Hugging Face does not spell out. */
bool cut_as_gpt2(Cut *cut);

/* Calls take(data, piece, length) for the pieces in order; without expressions the text is one.
 * False: as soon as take was false, or without memory. */
typedef bool cut_take(void *data, const char *piece, size_t length);
bool cut_pieces(const Cut *cut, const char *text, size_t length, cut_take *take, void *data);
#endif
