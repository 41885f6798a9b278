/* batch.h: which rows a step takes. Sequences come and go between steps, tokens of prompts and
 * generated ones share steps, and sequences that begin with the same tokens share pages of keys and
 * values, also with those that have ended, while their pages are not needed otherwise. */
#ifndef LLM_BATCH_H
#define LLM_BATCH_H
#include "model.h"

typedef struct Sequence Sequence;
struct Sequence {
    int *token;              /* of the prompt, then what was generated; room for `most` */
    int given, known, most;  /* tokens of the prompt; tokens; it ends with so many */
    float temperature, top_p;
    int top_k;
    /* `next` follows all tokens. True: it is among them now, and what follows is asked for. */
    bool (*take)(Sequence *s, int next);
    void *user;
    /* the batch's: */
    int done, reused; /* tokens that are in the cache; of these, tokens that others left there */
    int *pages, npages;
    Sequence *after;  /* of those that wait */
};

typedef struct Batch Batch;

/* Rows of a step, and the sequence of each. */
typedef struct Step {
    Row row[MOST_ROWS];
    Sequence *of[MOST_ROWS];
    int rows;
} Step;

/* With `pages` pages for all sequences, at most MOST_ROWS at a time. all: what follows is asked for
 * each token of a prompt, and so no sequence takes what another has left. NULL: no memory. */
Batch *batch_new(Model *model, int pages, bool all);
void batch_free(Batch *batch);

/* The sequence waits until there is room for all that it may become. False: there never is. It has
 * to stay until it has ended (take has been false) or batch_drop. */
bool batch_add(Batch *batch, Sequence *s);
void batch_drop(Batch *batch, Sequence *s); /* ends it, if it has not ended */
bool batch_has_work(const Batch *batch);

/* One step, if there is anything to do (out_step->rows). False: the device failed, as
 * tile_last_error() says. */
bool batch_step(Batch *batch, uint64_t seed, Step *out_step);
#endif
