/* model.h: the decoder on the default device. A step takes rows, each the next token of some
 * sequence: of many sequences, or several of one that follow each other, as in a prompt. */
#ifndef LLM_MODEL_H
#define LLM_MODEL_H
#include "checkpoint.h"

enum { PAGE = 16, MOST_ROWS = 64 }; /* keys in a page of the cache; rows of a step */

typedef struct Model Model;

typedef struct Row {
    int token, place;  /* place: how many tokens of the sequence go before */
    const int *pages; /* of the sequence: page i has its places from i PAGE on; unused ones are 0 */
    bool wanted;       /* choose the token that follows: */
    float temperature; /* 0: the most probable one */
    float top_p;
    int top_k;
    int next;          /* the result */
} Row;

/* A model for sequences of up to `length` tokens, with `pages` pages for all of them. NULL: the
 * checkpoint lacks something, has something that is no part of the model, or the device failed, as
 * `error` says. model_free accepts NULL. */
Model *model_new(Checkpoint *checkpoint, int length, int pages, char *error, size_t size);
void model_free(Model *model);

/* Compiles what steps of so many rows need, which else their first one does. */
bool model_prepare(Model *model, int rows);

int model_pages(const Model *model); /* of a row: the length of its list of pages */
int model_tokens(const Model *model);
uint64_t model_bytes(const Model *model); /* of weights that a step reads */

/* Runs the rows through the model and chooses, with random numbers of `seed`, the tokens that are
 * wanted. False: the device failed, as tile_last_error() says. */
bool model_step(Model *model, Row *row, int rows, uint64_t seed);
/* The logits of the last step, a row for each row that was wanted. */
bool model_logits(const Model *model, float *logits, int rows);

/* Bytes that the device reads and writes in a second while it copies. 0: it failed. */
double model_copy_speed(const Model *model);
#endif
