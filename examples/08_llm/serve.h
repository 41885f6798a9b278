/* serve.h: a server on the loopback interface that answers as OpenAI's does: GET /v1/models, POST
 * /v1/chat/completions and /v1/completions, as a whole or as events while it comes. Texts of all
 * clients go through the model together (batch.h). */
#ifndef LLM_SERVE_H
#define LLM_SERVE_H
#include "checkpoint.h"

typedef struct Serving {
    const char *model; /* the path, whose last part is the model's name */
    int port;          /* 0: any that is free */
    int longest, room; /* tokens of a text, of all texts that are in the cache */
    uint64_t seed;
} Serving;

/* Prints where it listens, and runs until SIGINT or SIGTERM. False: something failed, as was
 * said. */
bool serve(Checkpoint *checkpoint, const Serving *serving);
#endif
