/* tokens.h: text to tokens and back, by the byte pairs of a checkpoint's vocabulary. */
#ifndef LLM_TOKENS_H
#define LLM_TOKENS_H
#include <stdbool.h>
#include <stddef.h>

typedef struct Words Words;

Words *words_new(void); /* NULL: no memory; words_free accepts NULL */
void words_free(Words *words);

/* Adds the next token, written in GPT-2's alphabet, where each byte is a letter ("\u0120the" is
 * " the"). False: no memory. */
bool words_add(Words *words, const char *text, size_t length);
/* Adds the next pair to be merged, "left right". False: not two known tokens whose union is one. */
bool words_merge(Words *words, const char *text, size_t length);

int words_count(const Words *words);
/* The bytes of a token. */
const char *words_bytes(const Words *words, int token, size_t *length);
/* The tokens of a text; NULL if a byte has no token (*count is its place) or without memory
 * (*count is the length). The caller frees them. */
int *words_encode(const Words *words, const char *text, size_t length, size_t *count);
#endif
