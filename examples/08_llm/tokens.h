/* tokens.h: text to tokens and back, by a checkpoint's vocabulary. */
#ifndef LLM_TOKENS_H
#define LLM_TOKENS_H
#include "cut.h"

/* How a vocabulary is written, and what a text is at first.
 * BYTES: GPT-2's way. Each byte of a token is written as a letter ("\u0120the" is " the"), and a
 * text is its bytes.
 * CHARACTERS: SentencePiece's. Blanks are written as U+2581, and a text is a blank and its
 * characters; those without a token become bytes, which are written <0x00> to <0xFF>. */
typedef enum Alphabet { BYTES, CHARACTERS } Alphabet;

typedef struct Words Words;

Words *words_new(Alphabet alphabet); /* NULL: no memory; words_free accepts NULL */
void words_free(Words *words);

/* Adds the next token. False: no memory. */
bool words_add(Words *words, const char *text, size_t length);
/* Tokens are merged by their scores, 4 bytes of f32 for each, the greatest first. words_scores or
 * words_merge, not both. False: no memory. */
bool words_scores(Words *words, const char *scores);
/* Adds the next pair to be merged, "left right". False: not two known tokens whose union is one. */
bool words_merge(Words *words, const char *text, size_t length);
/* The token stands for itself wherever a text has its bytes, as <|end|>, with the blanks behind
 * them if it eats those. False: no memory. */
bool words_special(Words *words, int token, bool eats);
/* The token that begins a text; -1, as from the start: none. Returns what it was. */
int words_begin(Words *words, int token);
/* CHARACTERS: where a blank is added. At first: before each text between special tokens; or before
 * each, or the one that begins it all, if it does not begin with a blank. */
typedef enum Blank { BEFORE_EACH, WHERE_NONE_IS, AT_THE_START, NOWHERE } Blank;
void words_blank(Words *words, Blank blank);
/* Pieces that are a token as a whole become it, whatever the merges say. */
void words_whole(Words *words);
/* What cuts a text into pieces, which are merged each by itself. */
Cut *words_cut(Words *words);

int words_count(const Words *words);
/* The number of a token by its bytes; -1: there is none. */
int words_find(const Words *words, const char *bytes, size_t length);
/* The bytes of a token. */
const char *words_bytes(const Words *words, int token, size_t *length);
/* The tokens of a text; NULL if a byte has no token (*count is its place) or without memory
 * (*count is the length). The caller frees them. */
int *words_encode(const Words *words, const char *text, size_t length, size_t *count);
#endif
