/* A folder as Hugging Face has it, for its three readers. */
#ifndef LLM_FOLDER_H
#define LLM_FOLDER_H
#include "checkpoint.h"
#include <jansson.h>

enum { LONGEST_PATH = 1024 };

/* Writes FOLDER/name to `path`, which errors name from now on, and so has to stay. False: it is too
 * long. */
bool folder_path(Checkpoint *c, const char *folder, const char *name, char path[LONGEST_PATH]);
bool folder_has(const char *folder, const char *name);
/* The object in that file. NULL: there is none, as c->error says. */
json_t *read_json(Checkpoint *c, const char *folder, const char *name, char path[LONGEST_PATH]);
bool read_tokenizer(Checkpoint *c, const char *folder);
bool read_safetensors(Checkpoint *c, const char *folder);
#endif
